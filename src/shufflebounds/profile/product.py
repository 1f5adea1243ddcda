"""The product of the pairs of a composition: the distributions that are composed for each bound and for each adjacency relation.

`_engines.compose` composes these distributions; `Composition` presents the answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.crossing import CAP, Curve
from shufflebounds._base.limits import LOOSE
from shufflebounds._base.types import EXP_SLACK, ULP, FloatArray, IntervalArray, consistent, largest
from shufflebounds._losses.atoms import LossAtoms, union_probability
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.curves import SKETCH, Staged, breakpoints, convex_hull, repeated_mu
from shufflebounds._losses.loss_tail import loss_tail
from shufflebounds._losses.release import SINGLE, CurveBounds, DominatingPairInfo, Losses, Reverse, Sampling
from shufflebounds._losses.renyi import log_levels
from shufflebounds.answers.sampled_answers import Samples
from shufflebounds.profile.two_orders import TwoOrders
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.closed_curves import GaussianCurve

if TYPE_CHECKING:
    from shufflebounds._engines.compose.composer import Composer
    from shufflebounds._engines.compose.released import Released

__all__ = ["Product", "flattened"]

CURVE_DEPTH = 26.0
"""The trade-off function of a composition has breakpoints down to delta = e^(-CURVE_DEPTH**2/2) = 1e-147. A smaller delta needs
more grids. Raised: longer run time. Lowered: a less tight curve at small alpha."""

CURVE_DEEPEST = -120.0
"""Log delta below which the breakpoints of a trade-off function use only an upper bound, by inversion: a grid would take seconds
for each eps, and for alpha below e^-50 the two bounds of the curve have a large gap in any case."""

Factors = tuple[tuple[Any, int], ...]
"""Profiles, each with its number of releases."""


def flattened(factors: Sequence[tuple[Any, int]]) -> Factors:
    """Return the factors, with compositions among them expanded and equal mechanisms combined."""
    flat: list[tuple[Any, int]] = []
    for profile, count in factors:
        for part, number in profile.factors if isinstance(profile._closed, Product | TwoOrders) else ((profile, 1),):
            # `place` is the index of an equal factor in the list, or the length of the list if there is none.
            place = next((i for i, (other, _) in enumerate(flat) if part is other or part == other), len(flat))
            before = sum(times for _, times in flat[place : place + 1])
            flat[place : place + 1] = [(part, _validate.integer("times", before + number * count, 1))]
    return tuple(flat)


class Product(ClosedForms):
    """The product of the dominating pairs of several mechanisms, each released a number of times.

    Parameters
    ----------
    factors, rtol
        As for :class:`Composition`; compositions among the factors are expanded.
    reverse : Product, optional
        The product of the pairs in the other order, if it is known.
    for_curve : bool
        Whether the bounds are used for the breakpoints of a trade-off function only. They are then computed without adaptive
        choice, and without a lower bound where log delta is below CURVE_DEEPEST.
    """

    def __init__(self, factors: Factors, rtol: float, *, reverse: Product | None = None, for_curve: bool = False) -> None:
        self.factors, self.rtol = factors, rtol
        self._reverse, self._for_curve = reverse, for_curve

    @cached_property
    def ways(self) -> tuple[Product, ...]:
        """The products for a removed and for an added record, or () if every factor has the same guarantee for both."""
        both = [(profile._adjacencies(), profile, times) for profile, times in self.factors]
        if not any(ways for ways, _, _ in both):
            return ()
        removed, added = (
            Product(flattened([(ways[i] if ways else profile, times) for ways, profile, times in both]), self.rtol) for i in (0, 1)
        )
        # The products for (P, Q) and for (Q, P) share their caches.
        return removed, removed.reverse if removed.reverse.factors == added.factors else added

    @cached_property
    def _unmatched(self) -> Callable[[], tuple[FloatArray, FloatArray] | None] | None:
        """See `Losses.unmatched`."""
        if self.ways:
            if self.ways[1] is self.ways[0].reverse:
                return None
        elif all(profile._described.losses.unmatched is None for profile, _ in self.factors):
            return None
        return self._breakpoints

    def _breakpoints(self) -> tuple[FloatArray, FloatArray] | None:
        """Return the eps between which delta is linear in e^eps, for both orders; None if the outcomes are not enumerated."""
        if self.ways:
            eps = breakpoints([way._enumerated for way in self.ways])
            return None if eps is None else (eps, eps)
        own, reverse = (breakpoints([product._enumerated]) for product in (self, self.reverse))
        return None if own is None or reverse is None else (own, reverse)

    @cached_property
    def reverse(self) -> Product:
        """The product of the reversed pairs, which is this product itself if all pairs are symmetric."""
        if self._reverse is not None:
            return self._reverse
        opposite: tuple[tuple[Any, int], ...] = tuple((profile.reverse(), times) for profile, times in self.factors)
        if all(there is here for (there, _), (here, _) in zip(opposite, self.factors)):
            return self
        return Product(flattened(opposite), self.rtol, reverse=self)

    @cached_property
    def released(self) -> Released:
        """The releases of all factors."""
        # The modules of compositions are imported here, because delta of a single mechanism needs none of them.
        from shufflebounds._engines.compose.released import Released

        return Released([(profile._pair_info(), times) for profile, times in self.factors], self.rtol)

    @property
    def above(self) -> tuple[tuple[DominatingPairInfo, int], ...]:
        """The distributions of the upper bound."""
        return self.released.above

    @cached_property
    def composer(self) -> Composer:
        """The composer of all releases."""
        deepest = CURVE_DEEPEST if self._for_curve else -math.inf
        return self.released.composer(self.rtol, with_choice=not self._for_curve, deepest=deepest)

    @cached_property
    def _loose(self) -> Composer | None:
        """A composer on a coarse grid for the first steps of a search, without sums over pairs of losses; None if it is not faster.

        If values of delta are not expensive and no sums over pairs of losses are needed, the first steps of a search use the
        transform on the fine grid. The last steps need this transform in any case.
        """
        if self.rtol >= LOOSE or self._is_one or not (self.composer.sums or any(one.sampling.expensive for one, _ in self.above)):
            return None
        loose = self.released.composer(LOOSE, with_choice=False)
        if loose.steps.first > 2 * self.composer.steps.first:
            return loose
        # With the same step, both composers evaluate the divergences at the same points.
        loose.steps = self.composer.steps
        return loose if self.composer.sums is not None else None

    @cached_property
    def _is_one(self) -> bool:
        """Whether there is a single release; its own bounds are tighter than those on a grid."""
        single = len(self.factors) == 1 and self.factors[0][1] == 1
        return single or (len(self.above) == 1 and self.above[0][1] == 1)

    @cached_property
    def pure(self) -> float:
        """The sum of the pure budgets, or the larger one of both adjacencies."""
        if self.ways:
            return max(way.pure for way in self.ways)
        total = math.fsum(times * profile._pure_epsilon() for profile, times in self.factors)
        return math.nextafter(total * (1 + EXP_SLACK), math.inf) if total > 0 else 0.0

    def describe(self) -> DominatingPairInfo:
        """Return the pair of a composition; every call makes a new description."""
        opposite = self.reverse
        # A curve ends at CURVE_DEPTH, because every value of a smaller delta would need a grid of its own. If the guarantees for an
        # added and for a removed record differ, the curve follows from the larger delta, which is the same for (P, Q) and (Q, P).
        curve = CurveBounds(self._curve_log_delta, opposite._curve_log_delta, CURVE_DEPTH)
        losses = Losses(unmatched=self._unmatched)
        info = DominatingPairInfo(self.log_delta, self.pure, sampling=Sampling(spacing=self._spacing, curve=curve), losses=losses)
        if not self.ways and self._enumerated:
            info = replace(info, attained=SINGLE, losses=losses._replace(listed=lambda log_tail: self._enumerated))
        return info if self.ways or opposite is self else replace(info, reverse=Reverse(opposite.log_delta, opposite.pure))

    @cached_property
    def samples(self) -> Samples:
        """Results that follow from the values of delta, or from the outcomes."""
        return Samples(self.describe())

    @property
    def _spacing(self) -> float:
        """Distance of the samples of delta for a trade-off function (see `Sampling`)."""
        return max(0.02, *(info.sampling.spacing for info, _ in self.above))

    @cached_property
    def _coarse(self) -> Product:
        """The same product on a coarser grid that is accurate enough for the breakpoints of a trade-off function."""
        return Product(self.factors, min(0.1, 10 * self.rtol), for_curve=True)

    def _curve_log_delta(self, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta on the coarser grid.

        If the guarantees for an added and for a removed record differ, the bounds are those of the larger log delta.
        """
        ways = tuple(way._coarse for way in self.ways)
        return _larger(ways, eps) if ways else self._coarse.log_delta(eps)

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return self._composed(eps)

    def side(self, eps: FloatArray, upper: bool) -> FloatArray:
        return consistent(self._composed(eps, lower_profiles=not upper), "log delta at eps={!r}", eps)[upper]

    def _composed(self, eps: FloatArray, *, lower_profiles: bool = True, composer: Composer | None = None) -> IntervalArray:
        """Return both bounds of log delta.

        If `lower_profiles` is false, the profiles in `_lower_profiles` are not evaluated, and the lower bound may be smaller. By
        default, `composer` is the composer of this product; another composer may give less tight bounds.
        """
        if self.ways:
            return _larger(self.ways, eps, lower_profiles)
        if self._is_one:
            ((alone, times), *others) = self.factors
            return alone._pair_info().hockey_stick(eps) if times == 1 and not others else self.above[0][0].hockey_stick(eps)
        pure = self.pure
        if self._enumerated is not None:
            lower, upper = self._enumerated.log_delta(eps)
            return IntervalArray(np.where(eps < pure, lower, -np.inf), np.where(eps < pure, upper, -np.inf))
        lower, upper = np.full(eps.size, -np.inf), np.full(eps.size, -np.inf)
        within = eps < pure
        if self._by_gaussian_rule:
            # There are too many releases for a grid. Each release is dominated by a Gaussian mechanism, and Gaussian mechanisms
            # compose in closed form; the Renyi divergences of the releases add up.
            value = np.minimum(GaussianCurve(self._gaussian_rule).log_delta(eps * (1 - EXP_SLACK)), self._by_renyi(eps))
            # The assumed relative error of this log delta is 1e-6.
            upper[within] = np.minimum(value + 1e-6 * (1 + np.abs(value)), 0.0)[within]
        else:
            for i in np.flatnonzero(within):
                lower[i], upper[i] = (composer or self.composer).bounds(float(eps[i]))
        if lower_profiles:
            for profile_below, expensive in self._lower_profiles:
                # A factor whose bound takes long is evaluated only where the bounds of the composition have a gap.
                at = np.flatnonzero((upper - lower > self.rtol) | (not expensive))
                if at.size:
                    lower[at] = np.maximum(lower[at], profile_below(eps[at], lower[at]))
        return consistent(IntervalArray(lower, upper), "log delta at eps={!r}", eps)

    def by_rules(self, eps: float) -> bool:
        """Whether the upper bound at eps is that of the Gaussian guarantees or Renyi divergences of the releases."""
        if self.ways:
            return any(way.by_rules(eps) for way in self.ways)
        return not self._is_one and eps < self.pure and self._enumerated is None and self._by_gaussian_rule

    @cached_property
    def _by_gaussian_rule(self) -> bool:
        """Whether the losses of one release are too small for a grid.

        Each release is then replaced by the Gaussian mechanism that dominates it.

        delta of a Gaussian mechanism is computed for mu up to 1e6.
        """
        resolved = self.pure == math.inf or self.composer.needs_no_grid or not self.composer.steps.coarse
        return not resolved and self._gaussian_rule <= 1e6

    @cached_property
    def _gaussian_rule(self) -> float:
        """An upper bound of mu of the composition: the square root of the sum of mu^2 over all releases."""
        parts = ((profile._gdp_mu(True), times) for profile, times in self.factors)
        return math.sqrt(math.fsum(times * mu * mu for mu, times in parts)) * (1 + EXP_SLACK)

    def _by_renyi(self, eps: FloatArray) -> FloatArray:
        """Return upper bounds of log delta that follow from the Renyi divergences of releases with few outcomes; otherwise 0."""
        if self.composer.steps.lattice is None or self._unmatched is not None:
            return np.zeros(eps.size)
        orders = 1 + np.geomspace(1e-4, 1e6, 241)
        total = np.sum([profile._rdp(orders, True) * times for profile, times in self.factors], axis=0) * (1 + EXP_SLACK)
        error = 64 * ULP * orders * (1 + total + eps[:, None])
        return np.asarray(np.min(log_levels(orders, total, eps[:, None]) + error, axis=1))

    @cached_property
    def _lower_profiles(self) -> list[tuple[Callable[[FloatArray, FloatArray], FloatArray], bool]]:
        """Functions that bound delta of profiles from below, where delta of each profile is at most that of the composition.

        The profiles are the factors, and the composition of the releases whose losses the grid resolves.

        Each profile has a pair: a function that returns lower bounds of log delta at each eps, given other lower bounds, and
        whether a value of this function takes long. If many losses of a release are smaller than a step of the grid, rounding them
        may reduce the lower bound by more than omitting the release.
        """
        if self._unmatched is not None:
            # The masses of another program under Q may sum to more than 1. Then a release may lower delta of the composition.
            return []
        # If the list `releases` is empty, the releases of this factor are combined with those of another factor.
        large = tuple(factor for factor, (_, releases) in zip(self.factors, self.released.pairs)
                      if not releases or any(self.composer.steps.resolves(pair) for pair, _ in releases))
        rest = Product(large, self.rtol)
        some = [(lambda eps, lower: rest.side(eps, upper=False), False)] if 0 < len(large) < len(self.factors) else []
        if self._by_gaussian_rule and self.composer.steps.lattice is not None and not self._for_curve:
            # Fewer releases, whose lattice a transform can hold, have a smaller delta.
            share = 0.9 / self.composer.steps.fitting**2
            fewer = Product(tuple((profile, max(1, int(times * share))) for profile, times in self.factors), self.rtol)
            some = [(lambda eps, lower: fewer.side(eps, upper=False), True)]
        described = [(profile, profile._pair_info()) for profile, _ in self.factors]
        return [*some, *((partial(_alone, *factor), factor[1].sampling.expensive) for factor in described)]

    def roughly(self, eps: FloatArray) -> FloatArray:
        """Return an upper bound of log delta that is less tight than that of `log_delta` and takes less time."""
        if self._is_one or not self.composer.needs_no_grid:
            return self._composed(eps, lower_profiles=False, composer=self._loose).upper
        return np.array([self.composer.roughly(at) if at < self.pure else -math.inf for at in eps.tolist()])

    def closer(self, eps: FloatArray) -> FloatArray:
        """Return upper bounds of log delta that are tighter than those of `roughly` if records are rarely sampled."""
        if self._is_one or self.composer.sums is None:
            return np.zeros(eps.size)
        return np.array([self.composer.once(at) if at < self.pure else -math.inf for at in eps.tolist()])

    @cached_property
    def _enumerated(self) -> LossAtoms | None:
        """The joint outcomes of all releases if they are few, otherwise None."""
        if not all(info.attained.single and info.losses.listed and not info.releases.parts for info, _ in self.released.pairs):
            return None
        product = LossAtoms.product([(info.atoms, times) for info, times in self.above if info.atoms])
        return product if product and product.log_lost == -math.inf else None

    def method(self, eps: float) -> list[str]:
        """Return the lines of `explain` about the method."""
        if self.ways:
            at = np.array([eps])
            worse = max(self.ways, key=lambda way: float(way.side(at, upper=True)[0]))
            place = ("removed", "added")[self.ways.index(worse)]
            return [f"adjacency: add/remove; the larger of both, with the record {place}", *worse.method(eps)]
        if self._is_one:
            whole = "a single release" if self.factors[0][1] == 1 == len(self.factors) else "all releases as one release"
            return [f"method: {whole}, by its own bounds"]
        if eps >= self.pure:
            return [f"method: the sum of the pure budgets is {self.pure:.12g}, and delta is 0 from there on"]
        if self._enumerated is not None:
            return [f"method: all {self._enumerated.loss.size} outcomes of all releases are enumerated"]
        if self._by_gaussian_rule:
            return [f"method: more releases than a grid can resolve; Gaussian guarantees (mu = {self._gaussian_rule:.6g}) or Renyi "
                    "divergences above, fewer releases below"]
        return self.composer.method(eps)

    def epsilon(self, delta: float, upper: bool) -> float | None:
        """Return the bound of eps if it needs no search, or None.

        The result is inf if a test shows that no eps of the search meets the target.
        """
        if not 0 < delta < 1 or self.pure < math.inf:
            return None
        if self._is_one and (direct := self.above[0][0].releases.epsilon):
            return direct(delta, upper)
        if self._without_grid:
            return None
        # The search ends at eps = `end`. A grid at large eps takes long, so tests of single releases are tried first. If delta of
        # one release is positive at eps = 2 end, the best test at 2 end rejects with probability below e^(-2 end) under Q. The test
        # that rejects if the best test rejects in any release may show that delta of the composition exceeds the target at `end`.
        end = CAP * self.eps_scale

        def exceeds(upper: bool, mixed: bool = False) -> bool:
            covers = (((mixed and profile._closed.mixture()[0]) or (profile,), times) for profile, times in self.factors)
            gains = ((max(part._log_side_at(2 * end, upper=upper) for part in parts), times) for parts, times in covers)
            # If a profile that a user has defined returns NaN outside of its range, `epsilon` returns None.
            return any(gain > -math.inf and union_probability([(gain, times)]) > math.log(delta) + 1e-9 for gain, times in gains)

        # The upper bounds of delta of single releases are tried first, because they often take less time. If they are too small to
        # exceed the target, so are the lower bounds. By joint convexity, delta of a sampled mechanism is at most the largest delta
        # of the profiles in `mixture`. At an eps far above their losses, these profiles take little time.
        return math.inf if exceeds(True, mixed=True) and exceeds(True) and exceeds(False) else None

    def loss_tail(self, eps: FloatArray, upper: bool) -> IntervalArray | None:
        if not self.ways:
            return None

        def tail(way: Product) -> IntervalArray:
            def bound(at: FloatArray, *, upper: bool) -> FloatArray:
                return np.where(at < way.pure, np.minimum(way.side(at, upper), 0.0), -np.inf)

            return loss_tail(partial(bound, upper=False), partial(bound, upper=True), eps, way.of_one_pair)

        return largest(map(tail, self.ways))

    @property
    def of_one_pair(self) -> bool:
        # The product of the pairs of the factors is the worst pair of the composition.
        return not self.ways and all(profile._of_one_pair for profile, _ in self.factors)

    @property
    def eps_scale(self) -> float:
        scale = math.fsum(times * profile._eps_scale() for profile, times in self.factors)
        return max(scale, 1e-6 * self.pure) if self.pure < math.inf else scale

    def last_positive(self, pure: float) -> float | None:
        # delta of a composition is at least that of each factor.
        return None if pure < math.inf else max(profile._last_positive(profile._pure_epsilon()) for profile, _ in self.factors)

    @cached_property
    def _without_grid(self) -> tuple[Composer, ...]:
        """The composer for each adjacency, or () if either needs a grid."""
        ways = self.ways or (self,)
        possible = all(not way._is_one and way.composer.needs_no_grid for way in ways)
        return tuple(way.composer for way in ways) if possible else ()

    def rough(self, upper: bool) -> Curve | None:
        composers = self._without_grid
        if composers:
            normal = Curve(lambda eps: max(one.normal_estimate(eps) for one in composers), rtol=0.05)
            estimate = Curve(lambda eps: max(one.estimate(eps) for one in composers), normal, rtol=1e-3)
            # `jumps` is False, because the saddle-point approximation may be too large by many orders of magnitude if records are
            # rarely sampled. `settles` is 1e-4 rtol: the gap of the bounds is rarely below 1e-3 rtol, and a search with a far
            # smaller tolerance would follow rounding errors.
            return Curve(partial(_largest_once, composers), estimate, rtol=1e-3, settles=1e-4 * self.rtol, jumps=False)
        if self.ways:
            return _largest([way.rough(upper) for way in self.ways])
        if self._is_one:
            return None
        estimate = Curve(self.composer.estimate, rtol=1e-3)
        if self.composer.chooses:
            # Each adaptive strategy takes up to two seconds. Therefore most steps of the search use bounds without adaptive choice.
            return Curve(lambda eps: min(0.0, self.composer.without_choice(eps)), estimate, rtol=0.1 * LOOSE)
        if self._loose is None:
            return estimate
        return Curve(lambda eps: min(0.0, float(self.roughly(np.array([eps]))[0])), estimate, rtol=0.1 * LOOSE)

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff:
        # If the two adjacencies are unmatched, the curve follows from the larger delta.
        ways = self.ways if self.ways and self._unmatched is None else (self,)
        exact = [way.samples.exact_curve(upper) for way in ways]
        curves = [curve for curve in exact if curve is not None]
        if len(curves) == len(ways):
            return convex_hull(curves)
        # The lower and the upper bound of delta may be those of different distributions. More samples near one level alpha then do
        # not close the gap of the curve, and the refinement ends early. In this case closer first samples improve the lower bound
        # of the curve.
        sketch = SKETCH if all(way.composer.tight for way in self.ways or (self,)) else 0.1
        return Tradeoff(Staged(self.samples.staged, self._spacing, max(self._spacing, sketch), upper=upper))

    def mu(self, upper: bool) -> float:
        if self._unmatched is not None:
            ways = self.ways or (self,)
            if any(info.atoms and info.atoms.log_rest > -math.inf for way in ways for info, _ in way.above):
                return math.inf
            exact = self.samples.exact_mu(upper)
            exact = self.samples.mu(upper) if exact is None else exact
            return min(exact, max(way._gaussian_rule for way in ways)) if upper else exact
        if self.ways:
            if not upper:
                # The pairs for one adjacency may give no lower bound (as in `renyi`). In this case the lower bound is the largest
                # mu of a single release.
                return max(way.mu(False) for way in self.ways) or max(profile._gdp_mu(False) for profile, _ in self.factors)
            # mu is at most the value of the Gaussian rule. If this value for one adjacency (record added or removed) is at most mu
            # of the other one, the curve of the first adjacency is not needed.
            largest = 0.0
            for way in sorted(self.ways, key=lambda way: way.pure, reverse=True):
                if way._gaussian_rule > largest:
                    largest = max(largest, way.mu(True))
            return largest
        if all(info.releases.gdp_adds for info, _ in self.above):
            squares = (times * profile._gdp_mu(upper) ** 2 for profile, times in self.factors)
            return math.sqrt(math.fsum(squares)) * (1 + EXP_SLACK if upper else 1 - EXP_SLACK)
        exact = self.samples.exact_mu(upper) if self._enumerated else None
        if exact is not None:
            return exact
        if upper:
            # The samples end at delta = e^(-d^2/2), where d is between CURVE_DEPTH and twice this number. The line from there to
            # delta = 0 at the pure budget has a corner with mu = sqrt(d^2 + 2 pure) - d, up to lower-order terms.
            end = 2 * CURVE_DEPTH
            sampled = not self._by_gaussian_rule and math.sqrt(end**2 + 2 * self.pure) - end < self._gaussian_rule
            return min(self._gaussian_rule, self.samples.mu(True)) if sampled else self._gaussian_rule
        alone = (repeated_mu(profile._tradeoff(True), times) for profile, times in self.factors
                 if profile._pair_info().sampling.convex)
        each = (float(profile._gdp_mu(False)) for profile, _ in self.factors)
        whole = 0.0 if self._by_gaussian_rule else self.samples.mu(False)
        return max([whole, *alone, *each])

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray:
        if self.ways:
            value = np.max([way.renyi(orders, upper) for way in self.ways], axis=0)
            # The pairs for one adjacency (record added or removed) may give no lower bound. The divergence is at least that of each
            # single release.
            if not upper and not value.all():
                value = np.max([value, *(profile._rdp(orders, False) for profile, _ in self.factors)], axis=0)
            return np.asarray(value)
        if upper:
            total = np.sum([times * profile._rdp(orders, True) for profile, times in self.factors], axis=0)
            return np.asarray(total * (1 + EXP_SLACK))
        from shufflebounds._engines.compose.released import matched

        # Divergences of independent ordered pairs add. A lower bound needs one pair of datasets for all releases. If several
        # mechanisms have several pairs each, only one of the mechanisms certainly attains its best pair in every release.
        sure, single, several = np.zeros(orders.size), np.zeros(orders.size), []
        for profile, times in self.factors:
            info = profile._pair_info()
            if info.attained.single:
                sure = sure + times * profile._rdp(orders, False)
            else:
                single = np.maximum(single, times * profile._rdp(orders, False))
                several.append((profile._attained, times))
        for i in matched([len(pairs) for pairs, _ in several]) if len(several) > 1 else ():
            # The pairs with the same index are combined. Further combinations could only raise this lower bound, and are not tried.
            total = np.sum([times * pairs[min(i, len(pairs) - 1)]._rdp(orders, False) for pairs, times in several], axis=0)
            single = np.maximum(single, total)
        return np.asarray((sure + single) * (1 - EXP_SLACK))


def _alone(profile: Any, info: DominatingPairInfo, eps: FloatArray, lower: FloatArray) -> FloatArray:
    """Return a lower bound of log delta of one release, or `lower` where `lower` is known to be at least as large."""
    raised, at = lower.copy(), np.flatnonzero(info.hockey_sticks[0].above(eps) > lower)
    if not at.size:
        return raised
    alone = profile._closed.side(eps[at], False)
    if alone is None:
        # `_log_side` computes both bounds, which may take long. So a less expensive upper bound first excludes every eps at which
        # `lower` is larger.
        at = at[info.quicker(eps[at]).upper > lower[at]] if info.sampling.expensive else at
        alone = profile._log_side(eps[at], upper=False) if at.size else lower[at]
    raised[at] = alone
    return raised


def _largest(curves: Sequence[Curve | None]) -> Curve | None:
    """Return the pointwise maximum of several curves, with the maximum of their rough curves; None if one of the curves is None."""
    given = [curve for curve in curves if curve is not None]
    if len(given) < len(curves):
        return None
    return replace(given[0], log_delta=lambda eps: max(curve.log_delta(eps) for curve in given),
                   rough=_largest([curve.rough for curve in given]))


def _largest_once(composers: Sequence[Composer], eps: float) -> float:
    """Return an approximation of the largest log divergence at eps, without a grid."""
    largest = -math.inf
    bounds = [(one.roughly(eps), one) for one in composers]
    for bound, one in sorted(bounds, key=lambda pair: -pair[0]):
        if bound > largest:
            largest = max(largest, one.once(eps))
    return largest


def _larger(ways: Sequence[Product], eps: FloatArray, lower_profiles: bool = True) -> IntervalArray:
    """Return bounds of the larger log delta of two products, `ways`: one for an added record, one for a removed record.

    If rough bounds show which of the two products has the larger delta, delta of the other product is not computed accurately.
    """
    # NaN, of a profile that a user has defined, counts as no bound.
    rough = [np.where(np.isnan(bound), 0.0, bound) for bound in (way.roughly(eps) for way in ways)]
    lower, upper = np.full(eps.size, -np.inf), np.full(eps.size, -np.inf)
    for smaller in (False, True):
        for way, own, other in zip(ways, rough, rough[::-1]):
            wanted = (own < other) & (own > lower) if smaller else own >= other
            if smaller and wanted.any():
                wanted[wanted] = way.closer(eps[wanted]) > lower[wanted]
            if wanted.any():
                low, high = way._composed(eps[wanted], lower_profiles=lower_profiles)
                lower[wanted], upper[wanted] = np.maximum(lower[wanted], low), np.maximum(upper[wanted], high)
    return IntervalArray(lower, upper)
