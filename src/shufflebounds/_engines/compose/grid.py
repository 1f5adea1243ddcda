"""Bounds of the hockey-stick divergence of several releases, for `profile.Composition`.

If the moment generating functions of all losses are known, they are inverted (`inversion`). Where inversion fails, or if the
largest loss is too large for a grid that resolves the others, losses are added for all pairs of outcomes of two releases, of four
releases and so on (`pair_sums`). Otherwise the distributions of the privacy losses are composed on a grid (`grid_product`), which
is refined until the relative gap of eps is at most rtol. `adaptive` bounds adversaries who choose pairs of datasets adaptively.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from shufflebounds._base.caches import Kept, cached_property
from shufflebounds._base.limits import (
    BLOCK,
    DEEPER,
    FIRST_TAIL,
    LOG_TINY,
    MOST_ROUNDS,
    NEGLIGIBLE,
    NEGLIGIBLE_ROUGHLY,
    SAME_LOG,
    TABLE_SIZE,
)
from shufflebounds._base.progress import tick
from shufflebounds._base.types import Interval
from shufflebounds._engines.compose.adaptive import Adaptive, Laws, points
from shufflebounds._engines.compose.grid_product import NEAR, Product
from shufflebounds._engines.compose.inversion import Inversion, InversionAccount, normal_estimate
from shufflebounds._engines.compose.pair_sums import PairSums
from shufflebounds._engines.compose.repeated import log_repeated
from shufflebounds._engines.compose.steps import FIRST_POINTS, GridSteps, Releases
from shufflebounds._losses.atoms import GridPLD, TooLongError
from shufflebounds._losses.release import DominatingPairInfo
from shufflebounds._losses.samples import SampledProfile

__all__ = ["LOOSE", "Account", "AdaptiveChoice", "Composer"]

LOOSE = 1e-3
"""Relative accuracy of eps for the upper bound if there is no lower bound, and for the composition with which a search starts.

Lowered: longer run time for an upper bound that is smaller by less than a relative 1e-3. Raised: a larger upper bound.
"""

COMPOSED = 40
"""Number of composed distributions in one cache, and of adaptive strategies in another. Raised: more memory. Lowered: a search for
eps computes some distributions again."""

CHOSEN = 4e7
"""Largest total number of points of all Fourier transforms of an adaptive strategy; they take about two seconds. Raised: longer run
time. Lowered: a coarser grid, and less tight bounds."""


class AdaptiveChoice(NamedTuple):
    """The mechanism whose pair of datasets may change from release to release.

    `place` is its index among the distributions of the upper bound. For the lower bound, the adversary takes one of `pairs`
    (products of pairs) in each of the `times` releases of the mechanism, and the releases in `others` have fixed pairs. `pairs` is
    empty if there is no adaptive lower bound.
    """

    place: int
    times: int
    pairs: Sequence[Releases]
    others: Releases


class Account(NamedTuple):
    """How one bound was computed, for :meth:`Composition.explain`.

    `step` is the spacing of the losses on the finest grid, `points` the number of points of its Fourier transform, `tilt` the
    exponential tilt theta, and `log_tail` the log of the mass that may be truncated from each release. `adaptive` is true if the
    recursion over adaptive strategies was computed.
    """

    step: float
    points: int
    tilt: float
    log_tail: float
    adaptive: bool


class Composer:
    """Lower and upper bound of the hockey-stick divergence of a composition.

    The bounds depend on eps alone and not on earlier calls: grids are refined anew for every eps, and the losses at which an
    expensive distribution is sampled depend on a fixed interval that contains eps (`_middle`). Caches do not change results.

    Parameters
    ----------
    upper : sequence of (DominatingPairInfo, int)
        Distributions whose composition is an upper bound, each with its number of releases.
    lower : sequence of sequences of (DominatingPairInfo, int)
        Compositions, each of which is a lower bound.
    rtol : float
        The grid is refined until the relative gap of eps is at most rtol.
    free : AdaptiveChoice, optional
        A mechanism whose pair may change from release to release. The bounds are then those of the best adaptive strategy.
    tested : sequence of (DominatingPairInfo, int)
        Mechanisms for the lower bound if `lower` is empty: the best test of one release is repeated in every release (`repeated`).
        The distributions in `upper` give no lower bound, because neighbouring datasets need not attain them.
    deepest : float
        If log delta is below this number, only an upper bound is computed, by inversion, and the lower bound is -inf. A trade-off
        function sets this number, because its points end at a smallest delta.
    """

    def __init__(
        self,
        upper: Releases,
        lower: Sequence[Releases],
        rtol: float,
        free: AdaptiveChoice | None = None,
        tested: Releases = (),
        deepest: float = -math.inf,
    ) -> None:
        self._deepest = deepest
        self._upper, self._lower, self._rtol, self._free, self._tested = upper, lower, rtol, free, tested
        self._strategies: Kept[tuple[float, float, float, bool], Adaptive] = Kept(COMPOSED)
        self._products: Kept[tuple[float, float, float, int, float], Product] = Kept(COMPOSED)
        # An entry is a few numbers, so BLOCK entries take about 3 MB.
        self._known: Kept[float, Interval] = Kept(BLOCK)
        # Only `account` reads the caches `_finest` and `_adaptive`; no bound depends on them.
        self._finest: Kept[float, float] = Kept(BLOCK)
        self._adaptive: Kept[float, bool] = Kept(BLOCK)
        # `_summed` has the eps at which sums over all pairs of outcomes gave a lower bound.
        self._summed: Kept[float, bool] = Kept(BLOCK)
        self._lock, self._process = threading.RLock(), os.getpid()
        self._count = sum(r for _, r in upper)
        # Whether one lower bound has the distributions of the upper bound. If not, no grid makes the two bounds agree.
        self.tight = any(all(a is b for (a, _), (b, _) in zip(upper, side)) for side in lower)
        self.steps = GridSteps(upper, [pair for side in lower for pair in side], self.tight, rtol)

    @cached_property
    def inversion(self) -> Inversion | None:
        """The inversion of the moment generating function of the total loss.

        It is None if this function is not known for every release, or if the lower bound comes from other distributions.
        """
        releases = [(release.losses.transform, r) for release, r in self._upper if release.losses.transform is not None]
        if not self.tight or len(releases) < len(self._upper):
            return None
        # Unless rtol is far below `PairSums.finest`, sums over all pairs of outcomes take less time than a long integral. So the
        # length of an integral is limited to `most` if these sums are possible.
        most = (2e7 if self._count <= 32 else 1e8) * self.steps.rtol / self._rtol
        inversion = Inversion(releases, self._rtol, min(most if PairSums.possible(self._upper) else math.inf, 4e8))
        return inversion if inversion.possible else None

    @cached_property
    def sums(self) -> PairSums | None:
        """Sums over all pairs of outcomes, used if inversion fails or a grid is too long or inaccurate; None if not possible."""
        if not self.tight or self.steps.lattice is not None or not PairSums.possible(self._upper) or not self.steps.spread > 0:
            return None
        return PairSums(self._upper, min(self._rtol, 0.1 * LOOSE), self.steps.spread)

    @cached_property
    def _sums_roughly(self) -> PairSums | None:
        return None if self.sums is None else PairSums(self._upper, LOOSE, self.steps.spread, ratio=4.0)

    @cached_property
    def needs_no_grid(self) -> bool:
        """Whether no grid is needed: the bounds come from inversion or sums over all pairs of outcomes, unless delta is tiny.

        Sums are used if no grid of TABLE_SIZE points is both long enough for the largest loss and fine enough, or if the values on
        the grid take longer than the sums (`_long`).
        """
        if self.inversion is not None or self.sums is None:
            return self.inversion is not None
        return self.steps.accurate(self.steps.rtol) < self.steps.shortest or self._long(FIRST_TAIL)

    def _long(self, log_tail: float) -> bool:
        """Whether a grid that truncates this log mass takes longer than sums over all pairs of outcomes.

        The grid does so if one release has more than 2 TABLE_SIZE points, or more than 2 FIRST_POINTS at which its density is
        evaluated.
        """
        for known, _ in self._upper:
            scale = known.scale(log_tail)
            size = (scale.high - scale.low) / self.steps.first
            if size > 2 * (FIRST_POINTS if known.losses.density is not None and known.atoms is None else TABLE_SIZE):
                return True
        return False

    def once(self, eps: float) -> float:
        """Return an upper bound of log delta at eps, without a grid: tighter than `roughly`, and in less time than `bounds`."""
        value, close = (0.0, False) if self.inversion is None else self.inversion.log_delta_once(eps)
        if close or self._sums_roughly is None or eps > self.steps.farthest:
            return value
        return min(value, self._sums_roughly.bounds(eps).upper)

    def normal_estimate(self, eps: float) -> float:
        """Return an estimate of log delta at eps in little time; it may be wrong by orders of magnitude."""
        if self.inversion is not None:
            return self.inversion.normal_estimate(eps)
        return normal_estimate(eps, self.steps.mean, self.steps.spread)

    def roughly(self, eps: float) -> float:
        """Return an upper bound of log delta in little time, without a grid."""
        return 0.0 if self.inversion is None else self.inversion.chernoff(eps)

    @property
    def on_lattice(self) -> bool:
        """Whether all losses lie exactly on one grid."""
        return self.steps.lattice is not None

    def _product(self, step: float, log_tail: float, middle: float, side: int, rtol: float) -> Product:
        """Return the composed distribution on a grid: for the upper bound if `side` is -1, otherwise for lower bound number `side`.

        Distributions with expensive values are sampled at losses that are chosen for the eps `middle` and for a relative gap `rtol`
        of eps.
        """
        releases = self._upper if side < 0 else self._lower[side]
        sampled = self._eps_of_key(releases, step, log_tail, middle)
        key = (step, log_tail, sampled, side, rtol if sampled < math.inf else math.inf)

        def made() -> Product:
            laws = [
                self._law(release, self.steps.anchor(release, step), step, log_tail, middle, rtol, upper=side < 0)
                for release, _ in releases
            ]
            tick()
            return Product(laws, [r for _, r in releases], upper=side < 0)

        return self._products.of(key, made)

    @staticmethod
    def _eps_of_key(releases: Releases, step: float, log_tail: float, middle: float) -> float:
        """Return the part of the cache key that depends on eps.

        This part is `middle` if some distribution is sampled at losses chosen for this eps. Otherwise the composed distribution is
        the same for every eps, and the key is inf.
        """
        return middle if any(release.sparing(step, log_tail) for release, _ in releases) else math.inf

    def _theta(self, eps: float) -> float:
        """Return the exponential tilt that moves the mean of the total loss to eps, if the total loss is taken as Gaussian."""
        return max(0.0, eps - self.steps.mean) / self.steps.spread**2 if self.steps.spread > 0 else 0.0

    def _tail(self, eps: float) -> float:
        """Return the log of the mass that may be truncated for delta at eps."""
        return self._tail_of(partial(self._depth, eps))

    def _tail_of(self, log_delta: Callable[[float], float]) -> float:
        """Return the log of the mass that may be truncated from each release.

        `log_delta` returns an estimate of log delta of the composition for a given log of the truncated mass. The result is smaller
        than this estimate, so that the truncated mass of all releases changes delta by less than the rounding error.
        """
        log_tail = FIRST_TAIL
        if all(release.atoms is not None for release, _ in self._upper):
            return log_tail
        spare = NEGLIGIBLE_ROUGHLY if any(release.sampling.expensive for release, _ in self._upper) else NEGLIGIBLE
        while log_tail > -1e6:
            depth = log_delta(log_tail) - spare - math.log(self._count)
            if depth >= log_tail:
                break
            log_tail *= DEEPER
        return log_tail

    def _depth(self, eps: float, log_tail: float) -> float:
        """Return an estimate of log delta at eps, with the total loss taken as Gaussian.

        `log_tail` is the log of the truncated mass of each release. The estimate only chooses this mass; where the mass is too
        large, `_on_grid` truncates less.
        """
        mean = var = 0.0
        for release, r in self._upper:
            scale = release.scale(log_tail)
            mean, var = mean + r * scale.mean, var + r * scale.var
        return -max(0.0, eps - mean) ** 2 / (2 * var) if var > 0 else 0.0

    def bounds(self, eps: float) -> Interval:
        """Return a lower and an upper bound of the log hockey-stick divergence of the composition at eps."""
        if self._process != os.getpid():
            # After a fork the lock may be held by a thread that does not exist in this process.
            self._lock, self._process = threading.RLock(), os.getpid()
        with self._lock:
            return self._known.of(eps, partial(self._bounds, eps))

    @property
    def chooses(self) -> bool:
        """Whether both bounds are those of an adversary who may choose the pair of each release after all earlier results."""
        return self._free is not None and bool(self._free.pairs)

    def without_choice(self, eps: float) -> float:
        """Return a lower bound of log delta at eps, without adaptive choice, in less time than :meth:`bounds`."""
        with self._lock:
            return self._refined(min(eps, self.steps.farthest)).lower

    def account(self, eps: float) -> Account:
        """Return how the bounds at eps are computed on a grid; compute them again if they are not cached."""
        eps = min(eps, self.steps.farthest)
        self.bounds(eps)
        with self._lock:
            if eps not in self._finest:
                self._bounds_on_grid(eps)
            step = self._finest[eps]
            log_tail, middle = self._tail(eps), self._middle(eps)
            product = self._product(step, log_tail, middle, -1, self._rtol)
            size = product.points(eps) if product.finite else 0
            return Account(step, size, product.tilt(eps) if product.finite else 0.0, log_tail, eps in self._adaptive)

    def estimate(self, eps: float) -> float:
        """Return an estimate of log delta at eps: by the saddle point or, without inversion, for a Gaussian total loss.

        The estimate is 0 if all losses are 0.
        """
        if self.inversion is not None:
            return self.inversion.estimate(eps)
        return normal_estimate(eps, self.steps.mean, self.steps.spread)

    def _middle(self, eps: float) -> float:
        """Return the middle of the interval that contains eps; all eps of an interval share the samples of expensive distributions.

        The intervals have the length of 2 NEAR standard deviations of the total loss. The first one extends down to -inf.
        """
        width = 2 * NEAR * self.steps.spread
        place = max(0, math.ceil((eps - self.steps.mean) / width - 0.5)) if width > 0 else 0
        return max(self.steps.mean + place * width, 0.0)

    def inverted(self, eps: float) -> InversionAccount | None:
        """Return how the bounds at eps are computed by inversion, or None if they are computed on a grid."""
        if self.inversion is None:
            return None
        found, account = self.inversion.log_delta(eps)
        return account if self._agree(found, account, eps) else None

    def summed(self, eps: float) -> bool:
        """Return whether the bounds at eps are sums over all pairs of outcomes; compute them again if they are not cached."""
        self.bounds(eps)
        return eps in self._summed

    def _with_sums(self, found: Interval, eps: float) -> Interval:
        """Return the tighter of the given bounds and those by sums over all pairs of outcomes, if these are possible."""
        if self.sums is None or eps > self.steps.farthest:
            return found
        low, high = self.sums.bounds(eps)
        if low > -math.inf:
            self._summed.of(eps, lambda: True)
        return Interval(max(low, found.lower), min(high, found.upper))

    def _agree(self, found: Interval, account: InversionAccount | None, eps: float) -> bool:
        """Return whether the relative gap of eps is at most rtol for bounds by inversion; log delta has about the slope -tilt."""
        return account is not None and found.upper - found.lower <= self._rtol * max(account.tilt * eps, 1.0)

    def _bounds(self, eps: float) -> Interval:
        if not self.needs_no_grid:
            return self._bounds_on_grid(eps)
        roughly = self.roughly(eps)
        if roughly < self._deepest:
            return Interval(-math.inf, roughly)
        # The bounds by inversion and those of sums are both valid: the tighter ones are returned.
        found = Interval(-math.inf, 0.0)
        if self.inversion is not None:
            found, account = self.inversion.log_delta(eps)
            if self._agree(found, account, eps) or found.upper < self._deepest:
                return found
        found = self._with_sums(found, eps)
        if eps in self._summed or found.upper < self._deepest:
            return found
        # Sums give no lower bound if delta is below about 1e-290. A grid gives one, unless it is too long.
        if self.sums is not None and eps <= self.steps.farthest and self._long(self._tail(eps)):
            return found
        low, high = self._bounds_on_grid(eps)
        return Interval(max(low, found.lower), min(high, found.upper))

    def _bounds_on_grid(self, eps: float) -> Interval:
        if eps > self.steps.farthest:
            # delta decreases in eps, so the upper bound at the largest evaluated eps is valid.
            return Interval(-math.inf, self.bounds(self.steps.farthest).upper)
        low, high = self._refined(eps)
        # The recursion over adaptive strategies is skipped if the bounds without adaptive choice agree to rtol. It is also skipped
        # if eps is more than 200 standard deviations above the mean loss: rare outcomes decide delta there, and the recursion would
        # need a long grid for a small improvement.
        mean, spread = self.steps.mean, self.steps.spread
        if self._free is None or not high - low > self._rtol or not spread > 0 or eps > mean + 200 * spread:
            return Interval(low, high)
        better = self._chosen(self._free, eps)
        self._adaptive.of(eps, lambda: True)
        return Interval(max(low, better.lower), min(high, better.upper))

    def _chosen(self, free: AdaptiveChoice, eps: float) -> Interval:
        """Return both bounds for the best adaptive strategy: the pair of one mechanism may change after each result."""
        log_tail, middle = self._tail(eps), self._middle(eps)
        guide = self._product(self.steps.first, log_tail, middle, -1, self._rtol)
        if not guide.finite:
            # All losses of one release are infinite: the bound without adaptive choice is already exact.
            return Interval(-math.inf, 0.0)
        size = points(self.steps.spread, 1.0, guide.tilt(eps), eps)
        known, times = self._upper[free.place]

        def answer(transforms: int, upper: bool) -> float:
            rtol, most = self._rtol, CHOSEN
            if known.attained.blocks:
                # The bounds of the blocks of datasets leave a relative gap of eps above 5e-5, which a finer grid does not reduce.
                rtol, most = max(rtol, 5e-5), most if upper else most / 2
            # The step is large enough that the transforms have at most `most` points together, and none more than TABLE_SIZE.
            step = max(self.steps.accurate(rtol), size * transforms / most, size / TABLE_SIZE)
            if step > 0.5 * self.steps.spread / math.sqrt(self._count):
                return 0.0 if upper else -math.inf
            # The step is rounded down to a power of two, so that neighbouring values of eps share a grid.
            step = 2.0 ** math.floor(math.log2(step))

            def adaptive_strategy() -> Adaptive:
                tick()

                def laws(releases: Releases) -> Laws:
                    return [(self._law(one, 0.0, step, log_tail, middle, self._rtol, upper=upper), r) for one, r in releases]

                if not upper:
                    return Adaptive([laws(pair) for pair in free.pairs], free.times, laws(free.others), guide, upper=False)
                others = [pair for i, pair in enumerate(self._upper) if i != free.place]
                if known.attained.blocks is None:
                    several = [laws([(one, 1)]) for one in known.below]
                else:
                    listed = known.attained.blocks.laws(self._placed(known, log_tail, middle, self._rtol)[0])
                    several = [[(atoms.law(0.0, step, upper=True), 1)] for atoms in listed]
                return Adaptive(several, times, laws(others), guide, upper=True)

            releases = [*self._upper, *(pair for pairs in free.pairs for pair in pairs)]
            try:
                key = (step, log_tail, self._eps_of_key(releases, step, log_tail, middle), upper)
                found = self._strategies.of(key, adaptive_strategy)
            except TooLongError:
                # A loss is too many grid steps away: keep the bounds without adaptive choice.
                return 0.0 if upper else -math.inf
            return found.log_delta(eps)

        below, above = self._transforms(free)
        return Interval(answer(below, False) if free.pairs else -math.inf, answer(above, True))

    def _transforms(self, free: AdaptiveChoice) -> tuple[int, int]:
        """Return the number of Fourier transforms of the adaptive recursion, for the lower and the upper bound."""
        known, times = self._upper[free.place]
        # Each distribution takes a forward and an inverse transform; all choices share the first forward transform of a release.
        below = free.times * (1 + sum(2 * sum(r for _, r in pair) - 1 for pair in free.pairs)) + 2 * sum(r for _, r in free.others)
        return below, times * (1 + known.choices) + 2 * (self._count - times)

    def _law(
        self, release: DominatingPairInfo, anchor: float, step: float, log_tail: float, middle: float, rtol: float, *, upper: bool
    ) -> GridPLD:
        placed = self._placed(release, log_tail, middle, rtol) if release.sparing(step, log_tail) else None
        return release.law(anchor, step, log_tail, placed, upper=upper)

    def _refined(self, eps: float) -> Interval:
        """Return bounds on a grid; if their gap is too large, the tighter of these and of sums over pairs of outcomes."""
        found, allowed = self._on_grids(eps)
        reached = found.upper - found.lower <= allowed * self.steps.rtol
        return found if reached or self.inversion is not None or self.sums is None else self._with_sums(found, eps)

    def _on_grids(self, eps: float) -> tuple[Interval, float]:
        """Return bounds on refined grids, and the gap of log delta that changes eps by a factor e."""
        finer, final = 0, False
        found, allowed = Interval(-math.inf, 0.0), 1.0
        # If the lower bound comes from other distributions, the gap may be far larger than rtol. Then the losses at which expensive
        # divergences are sampled are not chosen for rtol.
        rtol = self._rtol if self.tight else max(self._rtol, LOOSE)
        while True:
            step = math.ldexp(self.steps.first, -finer)
            try:
                low, high, slope = self._on_grid(step, eps, rtol)
            except TooLongError:
                if found.upper - found.lower < math.inf:
                    return found, allowed
                if finer < -MOST_ROUNDS:
                    raise
                finer, final = finer - 1, True
                continue
            self._finest[eps] = step
            gap, allowed = high - low, max(slope * max(eps, self.steps.spread), 1.0)
            # The samples may cause 2 % of the gap or more: use samples for a smaller rtol.
            if rtol > self._rtol and gap < 50 * allowed * rtol:
                rtol = max(self._rtol, 0.1 * rtol)
                continue
            last = found.upper - found.lower
            found = Interval(max(low, found.lower), min(high, found.upper))
            # Stop if the finer grid reduced the gap by less than 20 %: then the step does not cause the gap. If the two bounds use
            # different distributions (not `tight`), these usually cause the gap, and a finer grid is tried only if rtol is small.
            apart = not gap < 0.8 * last or (not self.tight and self._rtol == self.steps.rtol)
            # If the gap is large, sums over all pairs of outcomes reduce it more than several refinements of the grid: a finer
            # grid divides the gap by four at most.
            sums = False
            if self.inversion is None and self.sums is not None and gap > 2 * allowed * self.steps.rtol and high > LOG_TINY:
                found = self._with_sums(found, eps)
                sums = gap > 100 * allowed * self.steps.rtol or found.upper - found.lower <= allowed * self._rtol
            room = finer < MOST_ROUNDS and step > 40 * self.steps.spread / TABLE_SIZE
            if gap <= allowed * self._rtol or sums or final or apart or self.steps.lattice is not None or not room:
                return found, allowed
            finer += 1

    def _on_grid(self, step: float, eps: float, rtol: float) -> tuple[float, float, float]:
        """Return both bounds on the grid with this step, and minus the slope of log delta at eps.

        Expensive divergences are sampled for a relative gap `rtol` of eps.
        """
        log_tail, middle = self._tail(eps), self._middle(eps)
        while True:
            above = self._product(step, log_tail, middle, -1, rtol)
            high, slope = above.log_delta(eps)
            if above.log_rest <= high - 25 or log_tail <= -1e6:
                break
            deeper = self._product(step, log_tail * DEEPER, middle, -1, rtol)
            if not deeper.log_rest < above.log_rest - 1:
                break
            log_tail *= DEEPER
        below = [self._product(step, log_tail, middle, i, rtol).log_delta(eps)[0] for i in range(len(self._lower))]
        if not below:
            for release, r in self._tested:
                if release.sampling.convex and r > 1:
                    below.append(log_repeated(self._placed(release, log_tail, middle, rtol)[0], r, eps))
        return max(below, default=-math.inf), high, slope

    def _placed(
        self, release: DominatingPairInfo, log_tail: float, middle: float, rtol: float
    ) -> tuple[SampledProfile, SampledProfile]:
        # SAME_LOG keeps the goal positive if the standard deviation is 0. Without a lower bound there is no gap to reduce: the
        # upper bound is then computed to the relative accuracy LOOSE.
        rtol = rtol if self._lower else max(rtol, LOOSE)
        goal = max(0.25 * rtol * max(middle - NEAR * self.steps.spread, self.steps.spread), SAME_LOG) / self._count
        return release.refined(log_tail, self._theta(middle), goal)
