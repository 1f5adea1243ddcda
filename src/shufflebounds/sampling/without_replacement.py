"""The privacy profile of a mechanism on a random batch of fixed size, drawn without replacement, if one record is replaced.

The bound is that of Balle, Barthe and Gaboardi (2018), Theorem 9.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.limits import FIRST_TAIL
from shufflebounds._base.types import ULP, FloatArray, IntervalArray, largest
from shufflebounds._losses.release import Attained, DominatingPairInfo, Sampling
from shufflebounds.profile import DominatingPair, PrivacyProfile
from shufflebounds.profile.profile import CHANGES, KnownPair
from shufflebounds.sampling._of_mechanism import OfMechanism, OfMechanismForms
from shufflebounds.sampling.poisson import SampledPair, sampled_budget, sampled_sides

__all__ = ["WithoutReplacement"]

MERGED = np.array([0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.4, 2.0])
"""Cuts c that are tried, in standard deviations of the loss. For the lower bound of a composition, outcomes with losses between -c
and c are merged into one. A smaller cut gives a tighter bound, but may violate the condition of `three_laws`."""


class _Forms(OfMechanismForms):
    """Results for a batch that contains all records, and for mechanisms whose divergences are infinite."""

    def loss_tail(self, eps: FloatArray, upper: bool) -> IntervalArray | None:
        return largest(one._loss_tail(eps, upper) for one in self.parts) if self.rate == 1 else None

    def mu(self, upper: bool) -> float | None:
        if self.rate == 1:
            return max(one._gdp_mu(upper) for one in self.parts)
        return math.inf if not upper and self._infinite else super().mu(upper)

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        if self.rate == 1:
            return np.asarray(np.max([one._rdp(orders, upper) for one in self.parts], axis=0))
        return np.full(orders.size, math.inf) if not upper and self._infinite else None

    @property
    def _infinite(self) -> bool:
        """Whether the Kullback-Leibler divergence of the mechanism, and hence that on a batch, is infinite.

        It is infinite if and only if the integral of delta over eps is. At large eps, delta on a batch is about q times delta of
        the mechanism at eps + ln(1/q). As the divergence is finite for normal noise of every mu, mu is infinite, too.
        """
        return any(one._pure_epsilon() == math.inf and one._rdp(np.ones(1), False)[0] == math.inf for one in self.parts)


@dataclass(frozen=True)
class WithoutReplacement(OfMechanism):
    r"""A mechanism on a uniformly random batch of m out of n records, one record of which is replaced.

    .. math:: \delta(\varepsilon) = \gamma\, \delta_M\Bigl(\ln\bigl(1 + (e^\varepsilon - 1)/\gamma\bigr)\Bigr),
        \qquad \gamma = m/n

    Parameters
    ----------
    mechanism : PrivacyProfile
        The mechanism on the batch, under the replacement of one of its records. Noise on a sum needs the sensitivity under
        replacement, which is twice that under removal. If the mechanism is a single ordered pair (P, Q), the pair (Q, P) is
        used as well.
    records : int
        Number n of records, 1 to 2**53.
    batch : int
        Size m of the batch, 1 to n.

    Notes
    -----
    Adjacency: **replace** one record. The upper bound is the formula, in which :math:`\delta_M` is delta of the mechanism on the
    batch. No smaller bound is valid for every mechanism with the same :math:`\delta_M`: a mechanism whose output also states
    whether the record is in the batch attains it for at least one order of the two neighbouring datasets. The lower bound is that
    of such a mechanism. The upper bound of a composition uses for each release, at each real eps, the larger divergence of the two
    orders.

    *Tightness of compositions.* If the mechanism has one symmetric pair, the lower bound of a composition is that of another
    mechanism, which nearly attains the formula in both orders. In the construction of this mechanism :math:`H_E` is the
    hockey-stick divergence:

    1. Let P and Q be the distributions of the output for a batch with one or the other record, and R that for a batch with
       neither record. For E > 1, the divergence of the sampled mechanism is :math:`H_E((1-\gamma) R + \gamma P \| (1-\gamma) R
       + \gamma Q) = \gamma H_F(P \| (1-w) R + w Q)`, where :math:`F = 1 + (E-1)/\gamma` and w = E/F.
    2. This divergence equals the bound :math:`\gamma H_F(P \| Q)` if R = Q wherever P > Q. For the other order of P and Q the
       condition is R = P wherever Q > P. Both conditions hold if R = min(P, Q) wherever P and Q differ, and the rest of the mass of
       R is where P = Q.
    3. A mechanism with these P, Q and R has a delta of at most :math:`\delta_M` if :math:`H_F(R \| P) \le \delta_M(\ln F)`. If
       P = Q nowhere, as for Gaussian noise, no R satisfies this for all E. So outcomes with losses between -c and c, for a
       small c, are first merged into one.

    For 1000 batches with m/n = 0.01 the gap is 0.3 % of eps for Gaussian noise with sigma 2 (sensitivity 2), and 4 % for Laplace
    noise. If no such c is found (binary response), the lower bound is that of the mechanism that states whether the record is in
    the batch, and the gap is up to 20 %.

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
    >>> noise = GaussianMechanism(sigma=2.0, sensitivity=2.0)
    >>> step = WithoutReplacement(noise, records=10**5, batch=1000)
    >>> print(f"{step.delta(0.5):.9f}")
    0.000000221
    """

    records: int
    batch: int

    theorem: ClassVar[str] = "upper bound for every mechanism with the given delta (Balle, Barthe, Gaboardi 2018, Theorem 9)"
    lower_theorem: ClassVar[str] = ("delta of a mechanism with the given delta whose output also states whether the record is in "
                                    "the batch; another mechanism may have a smaller delta")
    _covers_many: ClassVar[bool] = True
    neighbours: ClassVar[str] = "replace one record of a dataset of fixed size; the batch is drawn without replacement"
    relation: ClassVar[str] = "replace-one"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.mechanism.relation in ("add-remove", "zeroed"):
            removed = ", or use mechanism.subsampled(rate)" if self.mechanism.relation == "add-remove" else ""
            raise ValueError(f"mechanism={self.mechanism!r} is private for {CHANGES[self.mechanism.relation]}: for a batch of "
                             f"fixed size pass one that is private under the replacement of a record{removed}")
        _validate.integer_field(self, "records", 1)
        _validate.integer_field(self, "batch", 1, self.records)

    @property
    def rate(self) -> float:
        """The probability that a record is in the batch."""
        return self.batch / self.records

    @property
    def _orders(self) -> tuple[PrivacyProfile, ...]:
        """The mechanism, and the mechanism with both datasets exchanged if it is one ordered pair."""
        return tuple({id(one): one for one in (self.mechanism, self.mechanism.reverse())}.values())

    def describe(self) -> DominatingPairInfo:
        info, orders = self.mechanism._pair_info(), self._orders
        return DominatingPairInfo(
            partial(_largest, orders, self.rate),
            sampled_budget(max(one._pure_epsilon() for one in orders), self.rate, True),
            sampling=Sampling(info.sampling.effort, info.sampling.spacing),
            attained=Attained(profiles=partial(_attained, orders, self.rate)),
        )

    def closed_forms(self) -> OfMechanismForms:
        # The replaced record is in the batch with probability `rate`. Batches without it have the same distribution for both
        # datasets.
        return _Forms(self.mechanism, self._orders, self.rate)


def _largest(orders: tuple[PrivacyProfile, ...], rate: float, eps: FloatArray) -> IntervalArray:
    # The error 16 ULP covers the rounding of the rate, a quotient.
    return largest(sampled_sides(one, rate, 16 * ULP, eps) for one in orders)


class _TwoValues(KnownPair):
    """The pair of a mechanism that is private under the replacement of a record, for `SampledPair`.

    P and Q there are the distributions with and without the record, here those for two values of the record.
    """

    relation: ClassVar[str] = "either"


def _attained(orders: tuple[PrivacyProfile, ...], rate: float) -> tuple[DominatingPair, ...]:
    if not orders[0]._pair_info().attained.single:
        return ()
    # The first pair has the same divergence in both directions, if such a pair is known. The other pairs are those of the
    # mechanism that also reveals whether the record was drawn: (P, Q) and (Q, P).
    covered = orders[0].relation != "replace-one" or orders[0]._covers_absence
    known = orders if covered else tuple(_TwoValues(one._pair_info()) for one in orders)
    pairs = tuple(SampledPair(one, rate, removed) for one in known for removed in (True, False))
    both = both_orders(orders[0], rate) if rate < 1 else None
    return pairs if both is None else (both, *pairs)


def both_orders(mechanism: PrivacyProfile, rate: float) -> DominatingPair | None:
    """Return a pair of output distributions that attains the mechanism's delta in both directions, (P, Q) and (Q, P).

    Losses near 0 are merged into one outcome, which makes delta slightly smaller. The result is None if the mechanism has no pair
    with the same divergences in both directions, or if no cut in MERGED can be used.
    """
    laws = three_laws(mechanism)
    if laws is None:
        return None
    first, second, neither = laws
    # The rate is reduced slightly to cover rounding, which gives a lower bound.
    one, other = (neither + rate * (1 - 1e-9) * (law - neither) for law in (first, second))
    return DominatingPair.from_pmfs(np.log(one / one.sum()), np.log(other / other.sum()))


def three_laws(mechanism: PrivacyProfile) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return distributions P, Q and R such that every divergence between two of them is at most the mechanism's delta.

    P and Q have the outcomes with losses above a cut, from a distribution that the mechanism dominates, and their mirror images;
    the last outcome has all other mass. R is the minimum of P and Q, with its remaining mass at the last outcome. The divergences
    H(P || R) and H(Q || R) are at most those between P and Q. In H(R || P) and H(R || Q) only the last outcome has a positive term.
    """
    info = mechanism._pair_info()
    scale = info.scale(FIRST_TAIL)
    # If the variance is 0, no finite loss differs from 0, and no cut leaves a loss above it.
    if info.reverse is not None or not scale.var > 0:
        return None
    # With more than 4000 losses, the lower bound of a composition would be tighter and take longer.
    law = info.law(0.0, (scale.high - scale.low) / 4000, FIRST_TAIL, None, upper=False)
    high = law.losses > 0
    loss, p = law.losses[high], np.exp(law.log_p[high] - law.slack)
    q = p * np.exp(law.loss_error - loss)
    eps = np.linspace(0.0, scale.high, 2000)
    allowed = np.exp(mechanism._log_side(eps[1:], upper=False))
    for cut in MERGED * math.sqrt(scale.var):
        kept = (loss > cut) & (q > 0)
        common, rest = 1 - float(p[kept].sum() + q[kept].sum()), 1 - 2 * float(q[kept].sum())
        # The divergence of R, rest - e^eps common, and delta of the mechanism decrease in eps. So on each interval of eps the
        # divergence at the left end is compared with delta at the right end.
        if kept.any() and common > 0 and (rest - np.exp(eps[:-1]) * common <= allowed * (1 - 1e-9)).all():
            ends = ((p, q, common), (q, p, common), (q, q, rest))
            first, second, neither = (np.concatenate([up[kept], down[kept], [last]]) for up, down, last in ends)
            return first, second, neither
    return None
