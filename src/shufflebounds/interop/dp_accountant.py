"""An accountant for dp-accounting that computes with this library. Importing this module needs dp-accounting (extra `interop`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import attr
import numpy as np
from dp_accounting import dp_event, privacy_accountant
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.scipy_functions import ndtr
from shufflebounds._base.types import SLACK, ULP, Bound, FloatArray, plain
from shufflebounds.interop._concentrated import Concentrated
from shufflebounds.mechanisms import (
    DensityRandomizer,
    DiscreteGaussianMechanism,
    GaussianMechanism,
    GeometricMechanism,
    KaryResponse,
    LaplaceMechanism,
)
from shufflebounds.profile import Composition, DominatingPair, PrivacyProfile
from shufflebounds.profile.profile import by_adjacency
from shufflebounds.sampling import RandomAllocation, Subsampled, WithoutReplacement
from shufflebounds.shuffle import StrongerClones
from shufflebounds.tradeoff.representation import log1mexp, log_quantile

__all__ = ["ProfileDpEvent", "RandomAllocationDpEvent", "ShuffleAccountant", "ShuffledDpEvent"]

Relation = privacy_accountant.NeighboringRelation
Problem = privacy_accountant.PrivacyAccountant.CompositionErrorDetails


@attr.s(frozen=True, slots=True, auto_attribs=True)
class RandomAllocationDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """Random allocation: a record enters `chosen` of `steps` applications of the event, drawn uniformly."""

    event: dp_event.DpEvent
    steps: int
    chosen: int = 1


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ShuffledDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """The shuffled messages of users who all use one randomizer with a pure local budget."""

    local_epsilon: float
    users: int


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ProfileDpEvent(dp_event.DpEvent):  # type: ignore[misc]
    """Any privacy profile of this library."""

    profile: PrivacyProfile


class ShuffleAccountant(privacy_accountant.PrivacyAccountant):  # type: ignore[misc]
    """A dp-accounting accountant with upper and lower bounds, for the events of that library and three of this one.

    Parameters
    ----------
    neighboring_relation : dp_accounting.NeighboringRelation
        Whether neighbours add or remove a record (the default), replace a record, or replace it by a special one, which counts as
        removing it.
    bound : {"upper", "lower"}
        The bound that :meth:`get_epsilon` and :meth:`get_delta` return.
    rtol : float
        The grid of a composition is refined until the relative gap between the bounds of eps is at most rtol, in [1e-12, 0.1]. The
        gap may be larger, because the grid has at most about 2**20 points, and for batches drawn without replacement.
        :meth:`gap` returns the gap of the result.

    Notes
    -----
    Events: Gaussian, Laplace, DiscreteLaplace, DiscreteGaussian, RandomizedResponse, EpsilonDelta, ZCDp, ExponentialMechanism,
    PermuteAndFlip, mixtures of Gaussians; PoissonSampled and SampledWithoutReplacement of one of them, or of a composition of
    Gaussians; SelfComposed, Composed, NoOp and NonPrivate; :class:`RandomAllocationDpEvent`, :class:`ShuffledDpEvent` and
    :class:`ProfileDpEvent`. Events of releases of dp-accounting after 0.6 are recognized by their names. An event whose guarantee
    is for another adjacency relation is refused. A noise multiplier is the ratio of the noise to the sensitivity to adding a
    record; the sensitivity to replacing a record is twice as large, as in PLDAccountant (RdpAccountant does not double it).

    For the exponential mechanism and permute-and-flip the bounds are those of every eps-DP mechanism. Discrete Gaussian noise
    is exact for ``dimension=1``; for other dimensions only its zero-concentrated guarantee is used, as for a ZCDp event. In a
    composition the parameters xi and rho of these guarantees (a Renyi divergence of order a of at most xi + rho a) are added,
    and the lower bound is that of the other events.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent
    >>> from shufflebounds.interop.dp_accountant import ShuffleAccountant
    >>> step = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0))
    >>> accountant = ShuffleAccountant().compose(step, 100)
    >>> lower, upper = accountant.get_epsilon(1e-5, bound="lower"), accountant.get_epsilon(1e-5)
    >>> print(f"{lower:.4f} {upper:.4f}")
    0.7180 0.7180
    """

    def __init__(
        self, neighboring_relation: Any = Relation.ADD_OR_REMOVE_ONE, *, bound: Bound = "upper", rtol: float = 1e-5
    ) -> None:
        super().__init__(neighboring_relation)
        self._bound, self._rtol = bound, rtol
        # The keys of both dictionaries say whether the composition is for upper bounds.
        self._factors: dict[bool, list[tuple[PrivacyProfile, int]]] = {False: [], True: []}
        self._whole: dict[bool, Composition] = {}
        self._lost = False

    @property
    def profile(self) -> Composition | None:
        """The composition so far; None before the first event.

        If a parameter of an event had to be rounded, the composition is for upper bounds only.
        """
        return self._composed(upper=True)

    def _composed(self, *, upper: bool) -> Composition | None:
        """Return the composition for upper or lower bounds; None before the first event."""
        if upper not in self._whole and self._factors[upper]:
            whole = Composition(tuple(self._factors[upper]), self._rtol)
            for side in (False, True) if self._factors[False] == self._factors[True] else (upper,):
                self._whole[side], self._factors[side] = whole, list(whole.factors)
        return self._whole.get(upper)

    def _of_bound(self, bound: Bound | None) -> Composition | None:
        return self._composed(upper=(bound or self._bound) != "lower")

    def _maybe_compose(self, event: Any, count: int, do_compose: bool) -> Any:
        if isinstance(event, dp_event.SelfComposedDpEvent):
            return self._maybe_compose(event.event, event.count * count, do_compose)
        if isinstance(event, dp_event.ComposedDpEvent):
            results = (self._maybe_compose(part, count, do_compose) for part in event.events)
            return next((problem for problem in results if problem is not None), None)
        try:
            profile = self._profile_of(event)
        except (TypeError, ValueError) as problem:
            return Problem(invalid_event=event, error_message=str(problem))
        if do_compose and count > 0:
            if profile is None:
                self._lost = True
            elif profile is not _NOTHING:
                self._add(profile, count)
        return None

    def _add(self, profile: PrivacyProfile | _Sides, count: int) -> None:
        """Add releases to both compositions; the parameters of zero-concentrated guarantees are added."""
        self._whole.clear()
        for factors, one in zip(self._factors.values(), profile if isinstance(profile, _Sides) else (profile, profile)):
            if not isinstance(one, Concentrated):
                factors.append((one, count))
                continue
            parts = [factor for factor in factors if isinstance(factor[0], Concentrated)]
            factors[:] = [factor for factor in factors if factor not in parts]
            rho, xi = (math.fsum(times * getattr(part, name) for part, times in (*parts, (one, count))) * (1 + 4 * ULP)
                       for name in ("rho", "xi"))
            factors.append((Concentrated(rho, xi), 1))

    def _profile_of(self, event: Any) -> Any:
        """Return the profile of one event, _NOTHING if its output does not depend on the data, None if it is not private."""
        if isinstance(event, dp_event.NoOpDpEvent):
            return _NOTHING
        if isinstance(event, dp_event.NonPrivateDpEvent):
            return None
        profile = self._release_of(event)
        own, shown = self._neighboring_relation, profile.above if isinstance(profile, _Sides) else profile
        # A zeroed record is replaced by a special value. Profiles for a removed record are accepted for a zeroed one, as in
        # dp-accounting.
        wrong = {Relation.REPLACE_ONE: {"add-remove": "ADD_OR_REMOVE_ONE", "zeroed": "REPLACE_SPECIAL"},
                 Relation.ADD_OR_REMOVE_ONE: {"replace-one": "REPLACE_ONE", "zeroed": "REPLACE_SPECIAL"}}
        other = None if profile in (None, _NOTHING) else wrong.get(own, {"replace-one": "REPLACE_ONE"}).get(shown.relation)
        if other is not None:
            raise ValueError(f"its neighbours are {shown.neighbours!r}, but the accountant is for {self._neighboring_relation}: "
                             f"use ShuffleAccountant(NeighboringRelation.{other}) for all events")
        return profile

    def _release_of(self, event: Any) -> Any:
        if isinstance(event, ProfileDpEvent):
            return event.profile
        if isinstance(event, ShuffledDpEvent):
            return StrongerClones(event.users, event.local_epsilon)
        if isinstance(event, RandomAllocationDpEvent):
            inner = self._noise_of(event.event)
            if inner in (None, _NOTHING):
                return inner
            return _each(inner, lambda one: RandomAllocation(one, event.steps, event.chosen))
        if isinstance(event, dp_event.PoissonSampledDpEvent):
            inner = self._noise_of(event.event)
            if event.sampling_probability == 0 or inner in (None, _NOTHING):
                return _NOTHING if event.sampling_probability == 0 else inner
            return _each(inner, lambda one: Subsampled(one, event.sampling_probability))
        if isinstance(event, dp_event.SampledWithoutReplacementDpEvent):
            inner = self._noise_of(event.event)
            if event.sample_size == 0 or inner in (None, _NOTHING):
                return _NOTHING if event.sample_size == 0 else inner
            return _each(inner, lambda one: WithoutReplacement(one, event.source_dataset_size, event.sample_size))
        noise = self._noise_of(event)
        if _kind(event) in _APPROXIMATE:
            # The pair that dominates (eps, delta) is symmetric, so it covers removing as well as adding a record.
            return noise
        # A DominatingPair covers one direction only, but a record may be removed or added; subsampling at rate 1 covers both.
        return noise if noise in (None, _NOTHING) else _each(
            noise, lambda one: Subsampled(one, 1.0) if isinstance(one, DominatingPair) else one)

    def _noise_of(self, event: Any) -> Any:
        far = 2.0 if self._neighboring_relation == Relation.REPLACE_ONE else 1.0
        if isinstance(event, dp_event.SelfComposedDpEvent | dp_event.ComposedDpEvent):
            return _together(_gaussians(event, 1), far)
        if isinstance(event, dp_event.GaussianDpEvent | dp_event.LaplaceDpEvent):
            kind = GaussianMechanism if isinstance(event, dp_event.GaussianDpEvent) else LaplaceMechanism
            noise = _validate.real("noise_multiplier", event.noise_multiplier, 0)
            return kind(noise, far) if noise > 0 else None
        if isinstance(event, dp_event.DiscreteLaplaceDpEvent):
            noise = _validate.real("noise_parameter", event.noise_parameter, 0)
            reach = _validate.integer("sensitivity", event.sensitivity) * int(far)
            if reach == 0:
                return _NOTHING
            if noise == 0:
                return None
            budgets = _around(noise * reach, 0.0 if Fraction(noise) * reach == Fraction(noise * reach) else ULP)
            return _each(budgets, lambda eps: GeometricMechanism(eps, sensitivity=reach))
        if isinstance(event, dp_event.MixtureOfGaussiansDpEvent):
            return self._mixture_of(event)
        if _kind(event) in _APPROXIMATE:
            eps = _validate.real("epsilon", event.epsilon, 0)
            return _approximate(eps, _validate.real("delta", event.delta, 0, 1) if hasattr(event, "delta") else 0.0)
        if _kind(event) == "ZCDpEvent":
            rho, xi = (_validate.real(name, getattr(event, name), 0) for name in ("rho", "xi"))
            return _NOTHING if rho == xi == 0 else Concentrated(rho, xi)
        if _kind(event) == "DiscreteGaussianDpEvent":
            sigma = _validate.real("sigma", event.sigma, 0)
            farthest = _validate.real("sensitivity", event.sensitivity, 0) * far
            if farthest == 0 or sigma == 0:
                return _NOTHING if farthest == 0 else None
            if event.dimension == 1:
                # The values are whole numbers, so their largest difference is the sensitivity rounded down.
                return DiscreteGaussianMechanism(sigma, math.floor(farthest)) if farthest >= 1 else _NOTHING
            return Concentrated((farthest / sigma) ** 2 / 2 * (1 + 4 * ULP))
        if isinstance(event, dp_event.RandomizedResponseDpEvent):
            if self._neighboring_relation == Relation.ADD_OR_REMOVE_ONE:
                raise ValueError("a randomized response needs a value: use REPLACE_ONE or REPLACE_SPECIAL")
            noise = _validate.real("noise_parameter", event.noise_parameter, 0, 1)
            bins = _validate.integer("num_buckets", event.num_buckets, 1)
            if noise == 1 or bins == 1:
                return _NOTHING
            if noise == 0:
                return None
            if self._neighboring_relation == Relation.REPLACE_ONE:
                return _each(_around(math.log1p((1 - noise) * bins / noise), 8 * ULP), lambda eps: KaryResponse(bins, eps))
            # With REPLACE_SPECIAL the record is replaced by a special value, whose response is uniform.
            wrong = noise * (bins - 1) / bins
            return DominatingPair.from_pmfs([math.log1p(-wrong), math.log(wrong)], [-math.log(bins), math.log1p(-1 / bins)])
        raise TypeError(f"{type(event).__name__} is not supported: if you know its privacy profile, pass ProfileDpEvent(profile)")

    def _mixture_of(self, event: Any) -> Any:
        """Return the profile of a mixture of Gaussians against the Gaussian without the record."""
        if self._neighboring_relation == Relation.REPLACE_ONE:
            raise ValueError("a mixture of Gaussians is for a record added or removed: use ADD_OR_REMOVE_ONE or REPLACE_SPECIAL")
        noise = _validate.real("standard_deviation", event.standard_deviation, 0)
        reaches = _validate.real_array("sensitivities", event.sensitivities, 0).tolist()
        chances = _validate.real_array("sampling_probs", event.sampling_probs, 0, 1).tolist()
        if len(reaches) != len(chances) or abs(math.fsum(chances) - 1) > _SUM_ERROR:
            raise ValueError(f"sampling_probs={chances!r} must have {len(reaches)} probabilities that sum to 1")
        kept = {reach: 0.0 for reach, chance in zip(reaches, chances) if reach > 0 and chance > 0}
        if kept and noise == 0:
            return None
        if not kept:
            return _NOTHING
        if len(kept) > 1:
            return _mixture(noise, reaches, chances)
        reach, off = next(iter(kept)), math.fsum(chances) - 1
        rate = math.fsum(chance for at, chance in zip(reaches, chances) if at == reach)
        # What the probabilities lack, or have in excess of 1, may be part of that of `reach`. A larger rate is less private.
        rates = _Sides(max(0.0, rate - max(0.0, off)) * (1 - 2 * ULP), min(1.0, (rate - min(0.0, off)) * (1 + 2 * ULP)))
        return _each(rates, lambda one: Subsampled(GaussianMechanism(noise, reach), one))

    def get_epsilon(self, target_delta: float, *, bound: Bound | None = None) -> float:
        """Return the upper or lower bound of eps at a delta.

        Parameters
        ----------
        target_delta : float
            Failure probability, in [0, 1].
        bound : {"upper", "lower"}, optional
            By default the bound that was passed to the accountant.

        Returns
        -------
        float
            Privacy loss in nats, inf if delta(eps) is above the target for every eps.
        """
        if self._lost:
            return math.inf
        whole = self._of_bound(bound)
        return 0.0 if whole is None else whole.epsilon(target_delta, bound=bound or self._bound)

    def get_delta(self, target_epsilon: float, *, bound: Bound | None = None) -> float:
        """Return the upper or lower bound of delta at an eps.

        Parameters
        ----------
        target_epsilon : float
            Privacy loss in nats, >= 0 or inf.
        bound : {"upper", "lower"}, optional
            By default the bound that was passed to the accountant.

        Returns
        -------
        float
            Failure probability, in [0, 1].
        """
        if self._lost:
            return 1.0
        whole = self._of_bound(bound)
        if whole is None:
            return 0.0
        if target_epsilon == math.inf:
            # delta at eps = inf is the mass of infinite loss, which is at most delta(1e6). A lower bound d of delta(1e6) is one of
            # this mass only if delta is above d for every eps, which the lower bound of eps at d shows if it is not rounded away.
            far = whole.delta(1e6, bound=bound or self._bound)
            if (bound or self._bound) == "upper" or far == 0:
                return far
            far *= 1 - 4 * SLACK
            return far if whole.epsilon(far, bound="lower") == math.inf else 0.0
        return whole.delta(target_epsilon, bound=bound or self._bound)

    def get_true_positive_rates(
        self, false_positive_rates: ArrayLike, deltas: ArrayLike | None = None, *, bound: Bound | None = None
    ) -> float | FloatArray:
        """Return the upper or lower bound of the largest power of a test between neighbouring datasets.

        Parameters
        ----------
        false_positive_rates : float or array_like
            Levels of the test, in [0, 1].
        deltas : array_like, optional
            Taken for compatibility with PLDAccountant, and ignored: the trade-off function has no grid of deltas.
        bound : {"upper", "lower"}, optional
            By default the bound that was passed to the accountant.

        Returns
        -------
        float or ndarray
            1 minus the trade-off function of the composition, for the direction, (D, D') or (D', D), of the larger power.
        """
        rates = _validate.real_array("false_positive_rates", false_positive_rates, 0, 1)
        whole = self._of_bound(bound)
        if self._lost or whole is None:
            return plain(np.ones(rates.shape) if self._lost else rates)
        upper = (bound or self._bound) == "upper"
        power = np.abs(np.expm1(self._log_beta(whole, rates, upper=upper))) * (1 + (SLACK if upper else -SLACK))
        # A test that ignores the output has the power of its level.
        return plain(np.clip(power, rates, 1.0))

    @staticmethod
    def _log_beta(profile: PrivacyProfile, rates: FloatArray, *, upper: bool) -> FloatArray:
        """Return the log of the smallest type II error at each level; it determines small powers better than the error itself."""
        # The trade-off function of a guarantee for both adjacencies is the convex hull of the functions for a removed and for an
        # added record. A test between given datasets has the error of one of these functions, which may be above the hull.
        ways = by_adjacency(profile) or (profile,)
        ways = ways[:1] if ways[-1] == ways[0].reverse() else ways
        curves = [way.tradeoff(bound="lower" if upper else "upper") for way in ways]
        with np.errstate(divide="ignore"):
            level = np.log(rates)
        value = np.array([one.log_beta(level) for curve in curves for one in (curve, curve.inverse())]).min(axis=0)
        # A power below 2e-308 is minus the logarithm, a subnormal number, and its error is up to 5e-324.
        return np.asarray(np.nextafter(value, -math.inf if upper else 0.0))

    def get_gdp_parameter_estimate(
        self, false_positive_rates: ArrayLike | None = None, deltas: ArrayLike | None = None, *, bound: Bound | None = None
    ) -> float:
        """Return the upper or lower bound of the mu of Gaussian differential privacy.

        Parameters
        ----------
        false_positive_rates : array_like, optional
            The levels at which the power is compared with that of Gaussian differential privacy, in (0, 1); all of them by default.
        deltas : array_like, optional
            As in :meth:`get_true_positive_rates`.
        bound : {"upper", "lower"}, optional
            By default the bound that was passed to the accountant.

        Returns
        -------
        float
            The bound of mu. It is inf if an output reveals the record with positive probability, unless `false_positive_rates`
            excludes levels near 0.
        """
        side, whole = bound or self._bound, self._of_bound(bound)
        if self._lost or whole is None:
            return math.inf if self._lost else 0.0
        if false_positive_rates is None:
            return whole.gdp_mu(bound=side)
        rates = _validate.real_array("false_positive_rates", false_positive_rates, 0, 1, open_low=True, open_high=True).ravel()
        log_beta = self._log_beta(whole, rates, upper=side == "upper")
        # The normal quantiles of 1 - alpha and 1 - beta add up to mu.
        parts = -log_quantile(np.log(rates), np.log1p(-rates)), -log_quantile(log_beta, log1mexp(log_beta))
        error = SLACK * (1 + np.abs(parts[0]) + np.abs(parts[1]))
        with np.errstate(invalid="ignore"):
            mu = np.where(np.isfinite(error), parts[0] + parts[1] + (error if side == "upper" else -error), parts[1])
        return max(0.0, float(np.max(mu)))

    def gap(self, target_delta: float) -> float:
        """Return the relative gap between the bounds of eps at a delta.

        Parameters
        ----------
        target_delta : float
            Failure probability, in [0, 1].

        Returns
        -------
        float
            Upper bound divided by lower bound, minus 1: 0 where the bounds are equal, inf where only the lower one is 0 or only the
            upper one is infinite. It is at most `rtol` if only the grid of the composition causes the gap.
        """
        upper, lower = (self.get_epsilon(target_delta, bound=side) for side in ("upper", "lower"))
        if upper == lower:
            return 0.0
        return math.inf if lower == 0 or upper == math.inf else upper / lower - 1


_NOTHING: Any = object()
"""Sentinel for the profile of an event whose output does not depend on the data."""
_SUM_ERROR = 1e-9
"""Largest distance from 1 of the sum of given probabilities; dp-accounting has the same tolerance."""


_APPROXIMATE = ("EpsilonDeltaDpEvent", "ExponentialMechanismDpEvent", "PermuteAndFlipDpEvent")
"""Names of events of which only an (eps, delta) guarantee is used; most of them are in releases of dp-accounting after 0.6."""


class _Sides(NamedTuple):
    """Two profiles, or two values of a parameter, for lower and for upper bounds: the exact one lies between them."""

    below: Any
    above: Any


def _each(given: Any, made: Callable[[Any], Any]) -> Any:
    """Return what is made of a profile or a parameter, or, if it has two sides, of each side."""
    return _Sides(*map(made, given)) if isinstance(given, _Sides) else made(given)


def _around(value: float, error: float) -> _Sides:
    """Return bounds of a positive parameter, given its computed value and the relative error of this value."""
    return _Sides(value * (1 - error), value * (1 + error))


def _kind(event: Any) -> str:
    """Return the name of the class of an event. Not every release of dp-accounting has all of these classes."""
    return type(event).__name__


def _mixture(noise: float, reaches: list[float], chances: list[float]) -> Subsampled:
    """Return the profile, for removing or adding a record, of Gaussian noise around a random value against that around 0."""
    places, weights = np.array(reaches), np.array(chances)

    def mixed(function: Any, y: FloatArray, x: float) -> FloatArray:
        if x == 0:
            return np.asarray(function(y / noise))
        return np.asarray(function((y[..., None] - places) / noise) @ weights)

    none = float(weights[places == 0].sum())
    # The likelihood ratio increases with the output. Its limit at -inf is the probability of sensitivity 0.
    left = (0.0, math.log(none)) if none > 0 else None
    randomizer = DensityRandomizer(
        lambda y, x: mixed(ndtr, y, x), lambda y, x: mixed(lambda z: np.exp(-0.5 * z * z) / (noise * math.sqrt(2 * math.pi)), y, x),
        (0.0, 1.0), (-math.inf, math.inf), sf=lambda y, x: mixed(lambda z: ndtr(-z), y, x), limits=(left, None))
    # The pairs are those of inputs (0, 1) and (1, 0); input 1 is the record.
    return Subsampled(randomizer.pairs()[1], 1.0)


def _gaussians(event: Any, count: int) -> list[tuple[float, int]]:
    """Return the noise multipliers of nested compositions of Gaussian events, with their counts."""
    if isinstance(event, dp_event.SelfComposedDpEvent):
        return _gaussians(event.event, count * event.count)
    if isinstance(event, dp_event.ComposedDpEvent):
        return [part for inner in event.events for part in _gaussians(inner, count)]
    if isinstance(event, dp_event.NoOpDpEvent):
        return []
    if not isinstance(event, dp_event.GaussianDpEvent):
        raise TypeError(f"a sample of a composition must be one of Gaussian events, not of {type(event).__name__}")
    return [(_validate.real("noise_multiplier", event.noise_multiplier, 0), count)] if count > 0 else []


def _together(parts: list[tuple[float, int]], sensitivity: float) -> Any:
    """Return the Gaussian mechanism that is equivalent to a composition of Gaussian mechanisms."""
    if not parts:
        return _NOTHING
    if any(noise == 0 for noise, _ in parts):
        return None
    if len(parts) == 1 and parts[0][1] == 1:
        return GaussianMechanism(parts[0][0], sensitivity)
    precision = math.fsum(count / noise**2 for noise, count in parts)
    # Less noise is less private.
    return _Sides(*(GaussianMechanism(1 / math.sqrt(precision) * (1 + side * 8 * ULP), sensitivity) for side in (1, -1)))


def _approximate(eps: float, delta: float) -> Any:
    """Return the pair of four outcomes that dominates every (eps, delta) mechanism (Kairouz, Oh, Viswanath 2015)."""
    if delta == 1 or eps == math.inf:
        return None
    if eps == delta == 0:
        return _NOTHING
    rest = math.log1p(-delta) - math.log1p(math.exp(-eps))
    lost = math.log(delta) if delta > 0 else -math.inf
    less = rest - eps
    # The loss rest - less is rounded up, so that it is no smaller than eps.
    while Fraction(rest) - Fraction(less) < Fraction(eps):
        less = math.nextafter(less, -math.inf)
    return DominatingPair.from_pmfs([lost, rest, less, -math.inf], [-math.inf, less, rest, lost])
