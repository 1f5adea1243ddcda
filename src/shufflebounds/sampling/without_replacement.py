"""Sampling without replacement: a batch of fixed size, and one record replaced by another."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from shufflebounds import _validate
from shufflebounds._types import UNIT, FloatArray, Sides
from shufflebounds.composing import Knowledge
from shufflebounds.profile import DominatingPair, PrivacyProfile
from shufflebounds.sampling.poisson import SampledPair, mixed_losses, outward, sampled_eps

__all__ = ["WithoutReplacement"]


@dataclass(frozen=True)
class WithoutReplacement(PrivacyProfile):
    r"""A mechanism on a uniform batch of m out of n records, one record of which is replaced.

    .. math:: \delta(\varepsilon) = \gamma\, \delta_M\Bigl(\ln\bigl(1 + (e^\varepsilon - 1)/\gamma\bigr)\Bigr),
        \qquad \gamma = m/n

    Parameters
    ----------
    mechanism : PrivacyProfile
        The mechanism on the batch, under the replacement of one of its records: noise on a sum needs the sensitivity to a
        replacement, which is twice that to a removal.
    records : int
        Number n of records, 1 to 2**53.
    batch : int
        Size m of the batch, 1 to n.

    Notes
    -----
    Neighbours: **replace** one record. The least bound that holds for every mechanism with this delta: there is one for which it
    is attained in either order (the answer tells whether the record is in the batch), and that is what the lower side stands
    for. In composition a release takes, at each eps of the whole line, the larger of the two orders.

    References
    ----------
    Balle, B., Barthe, G., Gaboardi, M. Privacy amplification by subsampling. NeurIPS 2018, Theorem 9 and section 5.

    Wang, Y.-X., Balle, B., Kasiviswanathan, S. P. Subsampled Renyi differential privacy and analytical moments accountant.
    AISTATS 2019.

    Zhu, Y., Dong, J., Wang, Y.-X. Optimal accounting of differential privacy via characteristic function. AISTATS 2022, section 5.

    Examples
    --------
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> from shufflebounds.sampling import WithoutReplacement
    >>> step = WithoutReplacement(GaussianMechanism(sigma=2.0, sensitivity=2.0), records=10**5, batch=1000)
    >>> print(f"{step.delta(0.5):.9f}")
    0.000000221
    """

    mechanism: PrivacyProfile
    records: int
    batch: int

    theorem: ClassVar[str] = "tight for all mechanisms of the given delta (Balle, Barthe, Gaboardi 2018, Theorem 9)"
    neighbours: ClassVar[str] = "replace one record of data of fixed size; the batch is drawn without replacement"
    relation: ClassVar[str] = "replace-one"

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, PrivacyProfile):
            raise TypeError(f"mechanism={self.mechanism!r} must be a PrivacyProfile")
        if self.mechanism.relation == "add-remove":
            raise ValueError(f"mechanism={self.mechanism!r} is private under the removal of a record: a batch of fixed size needs "
                             "a guarantee under its replacement")
        object.__setattr__(self, "records", _validate.integer("records", self.records, 1))
        object.__setattr__(self, "batch", _validate.integer("batch", self.batch, 1, self.records))

    @property
    def rate(self) -> float:
        """The chance of a record to be in the batch."""
        return self.batch / self.records

    def _log_delta(self, eps: FloatArray) -> Sides:
        # the quotient is rounded too
        at, weight = sampled_eps(eps, self.rate), math.log(self.rate)
        lower = weight + self.mechanism._log_delta(at * (1 + 16 * UNIT))[0]
        upper = weight + self.mechanism._log_delta(at * (1 - 16 * UNIT))[1]
        return Sides(outward(lower, weight, -1), outward(upper, weight, 1))

    def _pure_epsilon(self) -> float:
        pure = self.mechanism._pure_epsilon()
        return float(mixed_losses(np.array([pure]), self.rate)[0]) * (1 + 16 * UNIT) if pure < math.inf else math.inf

    def _realised_pairs(self) -> tuple[DominatingPair, ...]:
        # the mechanism that tells whether the record was drawn, in both orders
        remove = SampledPair(self.mechanism, self.rate)
        return (remove, remove.reverse()) if self.mechanism._knowledge().single else ()

    def _knowledge(self) -> Knowledge:
        known = self.mechanism._knowledge()
        return replace(super()._knowledge(), seconds=known.seconds, spacing=known.spacing)

    def _eps_scale(self) -> float:
        return self.mechanism._eps_scale()
