r"""The pairs of a replaced record of a sampled finite randomizer, by enumeration.

Let :math:`R_x` be the distribution of the message for the value x. The record is sampled with probability q; if it is not sampled,
its value is replaced by a fixed value z. If its value changes from x to x', the distribution of the output changes from
:math:`(1-q) R_z + q R_x` to :math:`(1-q) R_z + q R_{x'}`. All triples (z, x, x') of values are enumerated.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import COMPARED
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._losses.atoms import InputRows, LossAtoms
from shufflebounds._losses.budget import mixed_losses
from shufflebounds.profile import DominatingPair, PrivacyProfile
from shufflebounds.profile.profile import OutcomePair

__all__ = ["ReplacedValues"]


def mixed_with_error(ratio: FloatArray, ratio_error: FloatArray | float, rate: float) -> tuple[FloatArray, FloatArray]:
    """Return log(1 - q + q e^ratio) for the rate q, and a bound of its error; the error is 0 for infinite values."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        mixed = mixed_losses(ratio, rate)
        slope = np.exp(np.minimum(math.log(rate) + ratio - mixed, 0.0))
        # The relative error of the logarithm is 8 ulp; the last term is for numbers below the smallest normal double. The error of
        # an infinite ratio may be infinite, and has no effect, because the slope is 0 there.
        error = 8 * ULP * np.abs(mixed) + np.where(np.isfinite(ratio), slope * ratio_error, 0.0) + 1e-322
    return mixed, np.where(np.isfinite(mixed), error, 0.0)


@dataclass(frozen=True)
class _ReplacedPair(OutcomePair):
    """The pair of the module docstring for one triple of inputs."""

    mechanism: PrivacyProfile
    rate: float
    triple: tuple[int, int, int]

    theorem: ClassVar[str] = "exact for the replacement of a record by another, both of given values"

    def reverse(self) -> _ReplacedPair:
        fixed, old, new = self.triple
        return _ReplacedPair(self.mechanism, self.rate, (fixed, new, old))

    @cached_property
    def _atoms(self) -> LossAtoms:
        rows = self.mechanism._input_rows
        assert rows is not None
        return _atoms(rows, self.rate, self.triple)


def _atoms(rows: InputRows, rate: float, triple: tuple[int, int, int]) -> LossAtoms:
    fixed, old, new = triple
    with np.errstate(divide="ignore", invalid="ignore"):
        none = np.log1p(-rate) + rows.log_rows[fixed]
        log_p, log_q = (np.logaddexp(none, math.log(rate) + rows.log_rows[x]) for x in (old, new))
        (risen, error), (other, other_error) = (mixed_with_error(ratio, 4 * ULP * np.abs(ratio), rate)
                                                for ratio in (rows.ratios[fixed, old], rows.ratios[fixed, new]))
        # Where R_z is 0, the ratio is that of R_x and R_x'.
        mixed = np.isfinite(none)
        loss = np.where(mixed, risen - other, rows.ratios[new, old])
    loss_error = np.where(mixed, error + other_error, 4 * ULP * np.abs(loss)) + rows.apart
    log_rest, log_other = (float(np.logaddexp.reduce(one[another == -np.inf], initial=-np.inf))
                           for one, another in ((log_p, log_q), (log_q, log_p)))
    seen = np.flatnonzero((log_p > -np.inf) & (log_q > -np.inf))
    order = seen[np.argsort(loss[seen], kind="stable")]
    slack = rows.error + ULP * (16 + 4 * float(np.abs(log_p[seen]).max(initial=0.0)))
    return LossAtoms(log_p[order], loss[order], log_rest, log_other, -math.inf, slack, loss_error[order])


@dataclass(frozen=True)
class ReplacedValues(PrivacyProfile):
    """The guarantee for replacing the value of a record that a sampled finite randomizer reports."""

    mechanism: PrivacyProfile
    rate: float

    theorem: ClassVar[str] = "exact for the replacement of a record of a sampled finite randomizer, by enumeration of its inputs"
    neighbours: ClassVar[str] = "replace one record"

    @classmethod
    def of(cls, mechanism: PrivacyProfile, rate: float) -> ReplacedValues | None:
        """Return the profile if there are at most COMPARED different pairs, otherwise None."""
        made = cls(mechanism, rate)
        return made if 0 < len(made.pairs()) <= COMPARED else None

    def pairs(self) -> tuple[DominatingPair, ...]:
        return self._triples

    @cached_property
    def _triples(self) -> tuple[DominatingPair, ...]:
        rows = self.mechanism._input_rows
        if rows is None:
            return ()
        # Pairs that differ only by a permutation of the outputs have the same outcomes.
        triples: dict[bytes, tuple[int, int, int]] = {}
        inputs = range(len(rows.log_rows))
        for fixed, (old, new) in itertools.product(inputs, itertools.permutations(inputs, 2)):
            atoms = _atoms(rows, self.rate, (fixed, old, new))
            sizes = np.sort(atoms.log_p), atoms.loss, [atoms.log_rest, atoms.log_other]
            triples.setdefault(np.concatenate(sizes).tobytes(), (fixed, old, new))
        return tuple(_ReplacedPair(self.mechanism, self.rate, triple) for triple in triples.values())
