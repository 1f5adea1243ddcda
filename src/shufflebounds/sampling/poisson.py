"""The privacy profile of a mechanism on a Poisson sample: each record enters independently with a given probability.

Neighbouring datasets differ in the presence of one record.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import kept
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._engines.compose.gaussian_transform import SampledGaussian
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.budget import mixed_losses
from shufflebounds._losses.release import SINGLE, Attained, DominatingPairInfo, Losses, Releases, Sampling
from shufflebounds.profile import DominatingPair, PrivacyProfile
from shufflebounds.profile.profile import by_adjacency, largest_of
from shufflebounds.sampling._of_mechanism import OfMechanismForms, OfPresence

__all__ = ["SampledPair", "Subsampled", "sampled_eps"]


def sampled_eps(eps: FloatArray, rate: float) -> FloatArray:
    """Return log(1 + (e^eps - 1)/rate), with relative error below 8 ulp."""
    # `near` has no cancellation for small eps, and `far` no overflow for large eps.
    parting = 30.0
    near = np.log1p(np.expm1(np.minimum(eps, parting)) / rate)
    far = eps - math.log(rate) + np.log1p(-(1 - rate) * np.exp(-np.maximum(eps, parting)))
    return np.asarray(np.where(eps < parting, near, far))


def sampled_budget(pure: float, rate: float, removed: bool) -> float:
    """Return an upper bound of log(1 - rate + rate e^pure) (record removed), or -log(1 - rate + rate e^-pure) (record added)."""
    if pure == 0 or (removed and pure == math.inf):
        return pure
    # 1 - q + q e^-pure is computed without cancellation for small q and pure.
    sign = 1 if removed else -1
    value = sign * float(mixed_losses(np.array([sign * pure]), rate)[0])
    # Products are rounded by at most 5e-324 where they underflow.
    return value * (1 + 16 * ULP) + 1e-323


@dataclass(frozen=True)
class _Sampled(OfPresence):
    """A guarantee of a mechanism on a Poisson sample, which contains each record with probability `rate`."""

    rate: float

    def __post_init__(self) -> None:
        super().__post_init__()
        # With this lower limit, the square of the rate is a normal double.
        _validate.real_field(self, "rate", 1e-100, 1)


@dataclass(frozen=True)
class SampledPair(_Sampled, DominatingPair):
    r"""The distributions of a mechanism that uses one record with probability q, and of the mechanism without the record.

    .. math:: H_E((1-q) Q + q P \| Q) = q\, H_{1 + (E-1)/q}(P \| Q) \quad \text{(remove)}, \qquad
        H_E(Q \| (1-q) Q + q P) = (1 - E(1-q))_+\, H_{E q/(1 - E(1-q))}(Q \| P) \quad \text{(add)}

    Here P and Q are the distributions of the output with and without the record, q is `rate`, :math:`(x)_+ = \max(0, x)`, and
    :math:`H_E` is the hockey-stick divergence at :math:`E = e^\varepsilon`.

    Parameters
    ----------
    mechanism : PrivacyProfile
        The mechanism on the sampled records; its delta is the hockey-stick divergence of (P, Q). If the mechanism has different
        guarantees for a removed and for an added record, because it is itself sampled for example, the guarantee of the same
        direction is used.
    rate : float
        The probability q that the record is sampled, in [1e-100, 1].
    removed : bool
        True for the first formula (the dataset with the record comes first), False for the second.

    Notes
    -----
    Delta is exact if the mechanism has one dominating pair. If delta of the mechanism is a maximum over several pairs, delta of the
    sampled mechanism is the maximum over the sampled pairs. The same holds for the trade-off function, mu and the Renyi divergences
    if :meth:`pairs` of the mechanism lists the pairs. The lower bound of a composition uses the same pair in every release.

    Examples
    --------
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> remove, add = GaussianMechanism(1.0).subsampled(0.01).pairs()
    >>> print(f"{remove.delta(0.005):.9f} {add.delta(0.005):.9f}")
    0.002635151 0.000963144
    """

    removed: bool = True

    theorem: ClassVar[str] = "exact for Poisson sampling of the mechanism's pair (Li, Qardaji, Su 2012; Zhu, Dong, Wang 2022)"
    neighbours: ClassVar[str] = "remove the record (removed=True) or add it"

    def __post_init__(self) -> None:
        super().__post_init__()
        if ways := by_adjacency(self.mechanism):
            # The mechanism has two guarantees of its own, (P, Q) for a removed and (Q', P') for an added record.
            object.__setattr__(self, "mechanism", ways[0] if self.removed else ways[1].reverse())

    def reverse(self) -> SampledPair:
        return SampledPair(self.mechanism, self.rate, not self.removed)

    @property
    def _gaussian(self) -> SampledGaussian | None:
        """The sampled pair with its moment generating function, if the mechanism is Gaussian noise; otherwise None."""
        mu = self.mechanism._normal_mu
        return None if mu is None else SampledGaussian(mu, self.rate, self.removed)

    @property
    def _own(self) -> PrivacyProfile:
        """The mechanism, with the pair (Q, P) instead of (P, Q) if the record is added."""
        return self.mechanism if self.removed else self.mechanism.reverse()

    def closed_forms(self) -> _SampledForms:
        # The pair is (q P + (1-q) Q, q Q + (1-q) Q), or the reversed one: a mixture of (P, Q) and (Q, Q) at rate q.
        return _SampledForms(self.mechanism, self._own, self.rate, self._gaussian)

    def pairs(self) -> tuple[DominatingPair, ...]:
        # If the mechanism has several pairs, trade-off functions and divergences are maxima over the sampled pairs.
        listed = () if self.mechanism._pair_info().attained.single else self.mechanism._listed_pairs()
        return tuple(SampledPair(pair, self.rate, self.removed) for pair in listed) or (self,)

    def describe(self) -> DominatingPairInfo:
        mechanism = self.mechanism._pair_info()
        single, around = mechanism.attained.single, mechanism.losses.density
        pure, density, lattice = self.mechanism._pure_epsilon(), None, None
        if around and self.mechanism.reverse() is self.mechanism:
            density = partial(_around, around, pure, self.rate, self.removed)
        if around and pure < math.inf:
            # The privacy loss of the mixture may have atoms at its smallest and at its largest value, so both should be grid
            # points.
            low, high = mixed_losses(np.array([-pure, pure]), self.rate).tolist()
            lattice = ((high if self.removed else -low), high - low)
        # In a composition, lower bounds of mu add up in squares, too, by the argument in `OfMechanismForms.mu` for the event that
        # all outputs exceed T.
        gdp_adds = single and self.mechanism._closed.mu_in_tails is not None
        listed = partial(_atoms, self.mechanism, self.rate, self.removed) if mechanism.losses.listed else None
        attained = Attained(profiles=partial(_sampled_pairs, self.mechanism, self.rate, self.removed))
        unmatched = mechanism.losses.unmatched and partial(_breakpoints, mechanism.losses.unmatched, self.rate, self.removed)
        bounds = partial(sampled_sides, self.mechanism, self.rate, 8 * ULP), partial(added_sides, self.mechanism, self.rate)
        return DominatingPairInfo(
            bounds[not self.removed], sampled_budget(self._own._pure_epsilon(), self.rate, self.removed),
            sampling=mechanism.sampling._replace(refined_gap=None, curve=None, deep=None, above=None),
            losses=Losses(listed, lattice, density=density, transform=self._gaussian, unmatched=unmatched),
            attained=SINGLE if single else attained, releases=Releases(gdp_adds=gdp_adds),
        )


class _SampledForms(OfMechanismForms):
    """Closed forms of a sampled pair; those of Gaussian noise are known."""

    def __init__(self, mechanism: PrivacyProfile, own: PrivacyProfile, rate: float, gaussian: SampledGaussian | None) -> None:
        super().__init__(mechanism, (own,), rate)
        self._gaussian = gaussian

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        if self._gaussian is None:
            return None
        bounds = [self._gaussian.renyi(order, upper=upper) if order < math.inf else None for order in orders.tolist()]
        value = np.array([math.nan if one is None else one for one in bounds])
        return np.minimum(value, self.renyi_limit(orders, True)) if upper else value


def _sampled_pairs(mechanism: PrivacyProfile, rate: float, removed: bool) -> tuple[SampledPair, ...]:
    """Return sampled versions of the pairs that the mechanism attains."""
    return tuple(SampledPair(pair, rate, removed) for pair in mechanism._attained)


def _atoms(mechanism: PrivacyProfile, rate: float, removed: bool, log_tail: float) -> LossAtoms | None:
    base, other = (side._pair_info().atoms for side in (mechanism, mechanism.reverse()))
    if base is None or other is None:
        return None
    if not removed and mechanism._described.losses.unmatched:
        # Delta for an added record is computed from the losses of (Q, P).
        base, other = other.reversed(), base
    return mixture(base, other, rate, removed, symmetric=mechanism.reverse() is mechanism)


def _breakpoints(
    unmatched: Callable[[], tuple[FloatArray, FloatArray] | None], rate: float, removed: bool
) -> tuple[FloatArray, FloatArray] | None:
    """Return the eps between which the divergences of a sampled pair and of its reverse are linear in e^eps, if they are known.

    `unmatched` returns those of the mechanism.
    """
    eps = unmatched()
    if eps is None:
        return None
    both = np.asarray(mixed_losses(eps[0], rate)), np.asarray(-mixed_losses(-eps[1], rate))
    return both if removed else both[::-1]


def _around(
    density: Callable[[float, float], LossAtoms], pure: float, rate: float, removed: bool, anchor: float, step: float
) -> LossAtoms:
    """Return the outcomes of the sampled mechanism, with a spacing that suits the grid of a composition."""
    # The loss of the mixture, as a function of the loss of the mechanism, has its largest slope, at most 1, at the largest loss. So
    # outcomes of the mechanism that are step/slope apart give losses of the mixture at most `step` apart.
    top = float(mixed_losses(np.array([pure]), rate)[0]) if pure < math.inf else math.inf
    slope = rate * math.exp(pure - top) if pure < math.inf else 1.0
    base = density(pure if pure < math.inf else 0.0, step / min(slope, 1.0))
    return mixture(base, base, rate, removed, symmetric=True) or base


def added_sides(mechanism: PrivacyProfile, rate: float, eps: FloatArray) -> IntervalArray:
    """Return bounds of log delta for an added record, by the second formula of :class:`SampledPair`.

    1 - E(1 - q) is computed as 1 - e^(eps - pure) with pure = -log(1 - q); eps - pure is shifted by its rounding error.
    """
    if rate == 1:
        return IntervalArray(*(mechanism.reverse()._log_side(eps, upper=upper) for upper in (False, True)))
    opposite, pure, sides = mechanism.reverse(), -math.log1p(-rate), []
    for upper, side in ((False, -1), (True, 1)):
        rest = (pure - eps) + side * 4 * ULP * pure
        inside = rest > 0
        gap = -np.expm1(-np.where(inside, rest, 1.0))
        with np.errstate(divide="ignore"):
            at = np.log1p(np.expm1(np.where(inside, eps, 0.0)) / gap)
            value = np.log(gap) + opposite._log_side(at * (1 - side * 8 * ULP), upper=upper)
            sides.append(np.where(inside, log_rounded_outward(value, np.log(gap), upper=upper), -np.inf))
    return IntervalArray(*sides)


def log_rounded_outward(value: FloatArray, weight: float | FloatArray, *, upper: bool) -> FloatArray:
    """Return `value`, a sum of `weight` and a logarithm, raised (upper) or lowered by the rounding error of both; -inf stays."""
    finite = value > -np.inf
    error = ULP * (4 * np.abs(weight) + 2 * np.abs(np.where(finite, value, 0.0)) + 8)
    return np.asarray(np.where(finite, value + error if upper else value - error, -np.inf))


def sampled_sides(mechanism: PrivacyProfile, rate: float, eps_error: float, eps: FloatArray) -> IntervalArray:
    """Return bounds of log(rate * delta'), where delta' is delta of the mechanism at log(1 + (e^eps - 1)/rate) (`sampled_eps`).

    `eps_error` bounds the relative error of this argument.
    """
    at, weight = sampled_eps(eps, rate), math.log(rate)
    lower = weight + mechanism._log_side(at * (1 + eps_error), upper=False)
    upper = weight + mechanism._log_side(at * (1 - eps_error), upper=True)
    return IntervalArray(log_rounded_outward(lower, weight, upper=False), log_rounded_outward(upper, weight, upper=True))


def mixture(base: LossAtoms, other: LossAtoms, rate: float, removed: bool, *, symmetric: bool) -> LossAtoms | None:
    """Return the outcomes of ((1-q) Q + q P, Q), or of the reversed pair, from the outcomes of (P, Q) and of (Q, P).

    Return None where the mass under Q of outcomes that are not enumerated is unknown.
    """
    log_q = base.log_p - base.loss
    log_lost = base.log_lost_other(other, symmetric=symmetric)
    if log_lost is None:
        return None
    loss, loss_error = base.loss, np.broadcast_to(base.loss_error, base.loss.shape)
    mixed = mixed_losses(loss, rate)
    size = float(np.abs(log_q).max(initial=0.0) + 2 * np.abs(loss).max(initial=0.0))
    if base.log_other > -math.inf and rate < 1:
        # Outcomes that P cannot produce are possible under the mixture if Q can produce them.
        log_q, mixed = np.append(base.log_other, log_q), np.append(math.log1p(-rate), mixed)
        loss, loss_error = np.append(-np.inf, loss), np.append(0.0, loss_error)
    log_mix = log_q + mixed
    slack = base.slack + base.most_blur + ULP * (16 + 8 * (size + abs(base.log_other) if base.log_other > -math.inf else size))
    # The error of the loss is multiplied by the derivative q e^loss/(1 - q + q e^loss) of the mixed loss. The rounding error of the
    # mixed loss is relative, except for subnormal numbers: 1e-322.
    loss_error = loss_error * np.exp(np.minimum(math.log(rate) + loss - mixed, 0.0)) * (1 + 1e-6) + 8 * ULP * np.abs(mixed) + 1e-322
    # Outcomes that are possible only under P remain impossible under Q. At rate 1, those possible only under Q are impossible under
    # the mixture.
    mixed_alone, q_alone = math.log(rate) + base.log_rest, base.log_other if rate == 1 else -math.inf
    if removed:
        unlisted = float(np.logaddexp(log_lost, base.log_lost))
        return LossAtoms(log_mix, mixed, mixed_alone, q_alone, unlisted, slack, loss_error)
    back = np.ascontiguousarray(log_q[::-1]), np.ascontiguousarray(-mixed[::-1])
    return LossAtoms(*back, q_alone, mixed_alone, log_lost, slack, loss_error[::-1])


@dataclass(frozen=True)
class Subsampled(_Sampled):
    r"""A mechanism on a Poisson sample: every record enters independently with probability q.

    .. math:: \delta(\varepsilon) = \max\{H_E((1-q) Q + q P \| Q),\; H_E(Q \| (1-q) Q + q P)\}, \qquad E = e^\varepsilon

    P and Q are the distributions of the output with and without the record, and :math:`H_E` is the hockey-stick divergence. Made by
    ``mechanism.subsampled(rate)``.

    Parameters
    ----------
    mechanism : PrivacyProfile
        The mechanism on the sampled records, whose guarantee must cover the absence of a record: for example noise on a sum to
        which a record contributes at most `sensitivity`. For a local randomizer, a record that is not sampled is replaced by a
        fixed value. A protocol with a guarantee only for the replacement of a record is refused.
    rate : float
        The probability q that a record enters, in [1e-100, 1].

    Notes
    -----
    Adjacency: **add or remove** one record. Delta of both directions, remove and add, is exact (:class:`SampledPair`). One of the
    two datasets has the record in all releases of a composition. So a composition is computed once with every release in the
    direction "remove" and once with every release in the direction "add", and the larger result is returned. A step of DP-SGD with
    noise multiplier sigma is ``GaussianMechanism(sigma).subsampled(rate)``.

    References
    ----------
    Zhu, Y., Dong, J., Wang, Y.-X. Optimal accounting of differential privacy via characteristic function. AISTATS 2022, section 5.

    Balle, B., Barthe, G., Gaboardi, M. Privacy amplification by subsampling. NeurIPS 2018, Theorem 8.

    Examples
    --------
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> step = GaussianMechanism(sigma=1.0).subsampled(rate=0.01)
    >>> training = step.self_compose(1000)
    >>> print(f"{training.epsilon(1e-5, bound='lower'):.4f} {training.epsilon(1e-5):.4f}")
    1.8282 1.8282
    """

    theorem: ClassVar[str] = "exact for Poisson sampling (Balle, Barthe, Gaboardi 2018; Zhu, Dong, Wang 2022), both directions"
    neighbours: ClassVar[str] = "add or remove one record, which enters with the given probability"

    @kept(1)
    def pairs(self) -> tuple[DominatingPair, ...]:
        return SampledPair(self.mechanism, self.rate), SampledPair(self.mechanism, self.rate, removed=False)

    def describe(self) -> DominatingPairInfo:
        info = self.mechanism._pair_info()
        return replace(largest_of(self.pairs(), directed=True), sampling=Sampling(info.sampling.effort, info.sampling.spacing))
