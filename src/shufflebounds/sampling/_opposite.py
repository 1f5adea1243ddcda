r"""The pair of a replaced record of sampled Gaussian noise whose old and new contributions are opposite.

A record of a sum with noise of standard deviation sigma contributes at most the sensitivity Delta in either direction. If it is
sampled with probability q, its replacement may move the output from :math:`(1-q) N(0, \sigma^2) + q N(\Delta, \sigma^2)` to
:math:`(1-q) N(0, \sigma^2) + q N(-\Delta, \sigma^2)`. The output is rounded to cells, which is post-processing.

This pair dominates that of any old and new contributions a and b. Take a set S of outputs and the half-line {y > c} of the same
probability without the record. By the lemma of Neyman and Pearson, the contribution a gives S at most the probability that Delta
gives the half-line, and b gives S at least the probability that -Delta gives it. The same holds for vectors, with half-spaces.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.convex_order import log_shares, log_to_nodes
from shufflebounds._base.limits import COMPUTED_ERROR, MANY, TINY
from shufflebounds._base.types import ULP
from shufflebounds._engines.allocation.ratios import gaussian_ratios
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile import Composition, PrivacyProfile
from shufflebounds.profile.profile import OutcomePair
from shufflebounds.sampling.poisson import Subsampled

__all__ = ["OppositeContributions", "opposite"]

_END = 36.0
"""Outputs beyond this number of standard deviations, with a probability of about e^-650, form one cell on either side."""

_CELLS = 8 * MANY
"""Number of cells. Raised: longer run time. Lowered: a smaller lower bound; their width is about 0.01 standard deviations."""


@dataclass(frozen=True)
class OppositeContributions(OutcomePair):
    """The pair of the module docstring, in cells. The reversed pair is its mirror image.

    If `spread`, the masses of the cells are split between their ends: a dominating pair, for upper bounds.
    """

    mechanism: GaussianMechanism
    rate: float
    spread: bool = False

    theorem: ClassVar[str] = "exact for outputs in cells: a bound for the replacement of a record"

    def reverse(self) -> OppositeContributions:
        return self

    @cached_property
    def _atoms(self) -> LossAtoms:
        mu = self.mechanism.mu
        half = np.linspace(0.0, _END + mu, _CELLS // 2 + 1)
        z = np.concatenate([[-1e3], -half[:0:-1], half, [1e3]])
        # The loss of one message of the mechanism, with and without the record, is an increasing function of z = y/sigma.
        none, with_record, error = gaussian_ratios(mu).cells(mu * z - mu * mu / 2)
        first, second = ((1 - self.rate) * none + self.rate * side for side in (with_record, with_record[::-1]))
        held = np.minimum(first, second) > (TINY if self.spread else 0.0)
        if self.spread:
            # The losses of the two outer cells have no bound.
            held[[0, -1]] = False
        # The last term covers the rounding of the edges, by 1e-15, relative to the width of a cell.
        slack = float(np.maximum(error, error[::-1])[held].max()) + 8 * COMPUTED_ERROR
        if not self.spread:
            return LossAtoms.of(np.log(first[held]), np.log(second[held]), error=slack)
        # Cells that are not held count as outputs that identify the dataset.
        lost = float(np.log(np.maximum(first, second)[~held].sum())) + slack
        first, second, at = np.log(first[held]), np.log(second[held]), np.append(z[:-1][held], z[1:][held][-1])
        log_none, log_rate = np.log1p(-self.rate) if self.rate < 1 else -np.inf, np.log(self.rate)
        loss = np.logaddexp(log_none, log_rate + mu * at - mu * mu / 2) - np.logaddexp(log_none, log_rate - mu * at - mu * mu / 2)
        # The rounding error of both logarithms, and that of the ratio of the masses.
        blur = 2 * slack + 16 * ULP * (1 + mu * float(at[-1]) + mu * mu - log_rate)
        level = np.clip(first - second + blur, loss[:-1], loss[1:])
        log_q = log_to_nodes(second, log_shares(level, loss[:-1], loss[1:]))
        log_q, loss = log_q[log_q > -np.inf], loss[log_q > -np.inf]
        return LossAtoms(log_q + loss, loss, lost, lost, -np.inf, slack, blur)


def opposite(profile: PrivacyProfile, spread: bool = False) -> PrivacyProfile | None:
    """Return the profile for opposite contributions in every release of sampled Gaussian noise; None for other profiles.

    Use its upper bound if `spread`, otherwise its lower bound.
    """
    if isinstance(profile, Composition):
        factors = [(opposite(factor, spread), times) for factor, times in profile.factors]
        known = tuple((factor, times) for factor, times in factors if factor is not None)
        return Composition(known, profile.rtol) if len(known) == len(factors) else None
    if isinstance(profile, Subsampled) and isinstance(profile.mechanism, GaussianMechanism):
        return OppositeContributions(profile.mechanism, profile.rate, spread)
    return None
