"""Bounds of the hockey-stick divergence of several releases, for `profile.Composition`.

If the moment generating functions of all losses are known, they are inverted (`inversion`). Where this fails, or if the largest
loss is too large for a grid that resolves the others, the outcomes of all pairs of releases are summed (`pair_sums`). Otherwise the
distributions of the privacy losses are composed on a grid (`grid_product`), which is refined until the two bounds agree to a
relative tolerance of eps. `adaptive` serves adversaries who choose pairs of datasets adaptively.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from shufflebounds._base.caches import Kept, cached_property
from shufflebounds._base.limits import (
    BLOCK,
    DEEPER,
    FIRST_TAIL,
    LOG_TINY,
    MOST_ENUMERATED,
    MOST_ROUNDS,
    NEGLIGIBLE,
    NEGLIGIBLE_ROUGHLY,
    ON_GRID,
    SAME_LOG,
    SQUARABLE,
    TABLE_SIZE,
)
from shufflebounds._base.progress import tick
from shufflebounds._base.types import Interval
from shufflebounds._engines.compose.adaptive import Adaptive, Laws, points
from shufflebounds._engines.compose.grid_product import NEAR, Product
from shufflebounds._engines.compose.inversion import Inversion, InversionAccount, normal_estimate
from shufflebounds._engines.compose.pair_sums import PairSums
from shufflebounds._engines.compose.repeated import log_repeated
from shufflebounds._losses.atoms import GridPLD, TooLongError
from shufflebounds._losses.lattice import common_step, own_lattice
from shufflebounds._losses.release import MOST_GRID_EFFORT, DominatingPairInfo
from shufflebounds._losses.samples import SampledProfile

__all__ = ["LOOSE", "Account", "AdaptiveChoice", "Composer"]

LOOSE = 1e-3
"""Relative accuracy of an upper bound without a lower one to compare it with, and of the coarse grid a search starts with.

Lowered: longer run time for an upper bound that is smaller by less than a relative 1e-3. Raised: a larger upper bound.
"""

COMPOSED = 40
"""Number of composed distributions that are cached, and of adaptive strategies. Raised: more memory. Lowered: a search for eps
computes some distributions again."""

FIRST_POINTS = 2**16
"""Smallest number of points of the first grid, if the divergence is fast to evaluate at these points; twice as many if the losses
have a preferred spacing (`Composer._hint`). Raised: longer run time of every composition. Lowered: more refinements."""

CHOSEN = 4e7
"""Largest total number of points of all transforms of an adaptive strategy, in about two seconds. Raised: longer run time. Lowered:
a coarser grid, and less tight bounds."""

Releases = Sequence[tuple[DominatingPairInfo, int]]


class AdaptiveChoice(NamedTuple):
    """The mechanism whose pair of datasets may change from release to release.

    For the upper bound, the release with index `place` may change its pair. For the lower bound, the adversary takes one of `pairs`
    (products of pairs) in each of `times` releases, and the releases in `others` have fixed pairs. `pairs` is empty if there is no
    adaptive lower bound.
    """

    place: int
    times: int
    pairs: Sequence[Releases]
    others: Releases


class Account(NamedTuple):
    """How one bound was computed, for :meth:`Composition.explain`.

    `step` is the spacing of the losses on the finest grid, `points` the number of points of its Fourier transform, `tilt` the
    exponential tilt theta, and `log_tail` the log of the mass that may be truncated. `adaptive` is true if the adversary may choose
    the pair of each release after all earlier results.
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
        A mechanism whose pair may change from release to release. Both bounds are then those of the best adaptive strategy.
    tested : sequence of (DominatingPairInfo, int)
        Mechanisms whose own delta gives a lower bound: one test, repeated in every release. Used if `lower` is empty. The
        distributions in `upper` give no lower bound, because neighbouring datasets need not attain them.
    deepest : float
        If log delta is below this number, only an upper bound is computed, by inversion, and the lower bound is -inf. A trade-off
        function sets it, because its points end at a smallest delta.
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
        # At a few numbers an entry, BLOCK entries take about 3 MB.
        self._known: Kept[float, Interval] = Kept(BLOCK)
        # Only `account` reads the next two caches; no bound depends on them.
        self._steps: Kept[float, float] = Kept(BLOCK)
        self._adaptive: Kept[float, bool] = Kept(BLOCK)
        # The eps at which sums over all pairs gave a lower bound.
        self._summed: Kept[float, bool] = Kept(BLOCK)
        self._lock, self._process = threading.RLock(), os.getpid()
        self._count = sum(r for _, r in upper)
        # If the lower bound comes from other distributions than the upper bound (False), no grid makes the two bounds agree.
        self.tight = any(all(a is b for (a, _), (b, _) in zip(upper, side)) for side in lower)

    @cached_property
    def inversion(self) -> Inversion | None:
        """The inversion of the moment generating function of the total loss.

        It is None if this function is not known for every release, or if the lower bound comes from other distributions.
        """
        releases = [(release.losses.transform, r) for release, r in self._upper if release.losses.transform is not None]
        if not self.tight or len(releases) < len(self._upper):
            return None
        # If the allowed gap is not far below `finest`, sums over all pairs of outcomes take less time than a long integral.
        most = (2e7 if self._count <= 32 else 1e8) * self._first_rtol / self._rtol
        inversion = Inversion(releases, self._rtol, min(most if PairSums.possible(self._upper) else math.inf, 4e8))
        return inversion if inversion.possible else None

    @cached_property
    def sums(self) -> PairSums | None:
        """Sums over all pairs of outcomes, for when inversion fails or a grid is too long or inaccurate; None if not possible."""
        if not self.tight or self._lattice is not None or not PairSums.possible(self._upper) or not self._spread > 0:
            return None
        return PairSums(self._upper, min(self._rtol, 0.1 * LOOSE), self._spread)

    @cached_property
    def _sums_roughly(self) -> PairSums | None:
        return None if self.sums is None else PairSums(self._upper, LOOSE, self._spread, ratio=4.0)

    @cached_property
    def needs_no_grid(self) -> bool:
        """Whether no grid is needed: the bounds come from inversion or sums over all pairs of outcomes, unless delta is tiny.

        Sums replace a grid that cannot be both long enough for the largest loss and as fine as its accuracy requires, and a grid
        with many values.
        """
        if self.inversion is not None or self.sums is None:
            return self.inversion is not None
        return self._accurate_step(self._first_rtol) < self._shortest_step or self._long(FIRST_TAIL)

    def _long(self, log_tail: float) -> bool:
        """Whether a grid down to this log mass takes longer than sums over all pairs.

        It does if it has more points than a transform, or many points at each of which the density of a release is evaluated.
        """
        for known, _ in self._upper:
            scale = known.scale(log_tail)
            size = (scale.high - scale.low) / self.first_step
            if size > 2 * (FIRST_POINTS if known.losses.density is not None and known.atoms is None else TABLE_SIZE):
                return True
        return False

    def once(self, eps: float) -> float:
        """Return an upper bound of log delta at eps, without a grid; it is tighter than `roughly` and faster than both bounds."""
        value, close = (0.0, False) if self.inversion is None else self.inversion.log_delta_once(eps)
        if close or self._sums_roughly is None or eps > self._farthest:
            return value
        return min(value, self._sums_roughly.bounds(eps).upper)

    def normal_estimate(self, eps: float) -> float:
        """Return an estimate of log delta at eps in little time; it may be wrong by orders of magnitude."""
        return normal_estimate(eps, self._mean, self._spread) if self.inversion is None else self.inversion.normal_estimate(eps)

    def roughly(self, eps: float) -> float:
        """Return an upper bound of log delta in little time, without a grid."""
        return 0.0 if self.inversion is None else self.inversion.chernoff(eps)

    @cached_property
    def _lattice(self) -> float | None:
        """The spacing of a lattice that contains all losses exactly, or None if there is none or it is too fine."""
        sides = [*self._upper, *(pair for side in self._lower for pair in side)]
        listed = [release.atoms for release, _ in sides]
        if any(one is None for one in listed):
            return None
        gaps = np.unique(np.concatenate([np.diff(one.loss) for one in listed if one is not None]))
        return common_step(gaps)

    @property
    def on_lattice(self) -> bool:
        """Whether all losses lie exactly on one grid."""
        return self._lattice is not None

    def _fitted(self, step: float) -> float:
        """Return a grid step, at most `step`, for which the known atoms are on or near grid points."""
        hints = [(release, hint[1], r) for release, r in self._upper if (hint := self._hint(release)) and hint[1] >= step]
        if not hints:
            return step
        base = max(spacing for _, spacing, _ in hints)
        others = [(spacing, r) for release, spacing, r in hints if spacing < base and release.aligned]
        least = math.ceil(base / step * (1 - ON_GRID))
        tried = base / (least + np.arange(1 + min(least // 2 + 8, MOST_ENUMERATED) if others else 1))
        cost = np.zeros(tried.size)
        for spacing, r in others:
            # An atom at a distance away * tried from the grid is moved to the grid, and another atom is moved one spacing to keep
            # the mean. This adds the product of this distance and the spacing to the variance.
            away = np.abs(spacing / tried - np.round(spacing / tried))
            cost += r * spacing * tried * np.where(away > ON_GRID, away, 0.0)
        return float(tried[np.argmin(cost)])

    @cached_property
    def first_step(self) -> float:
        """The step of the first grid, in nats. Finer grids divide it by powers of two."""
        if self._lattice is not None:
            return self._lattice
        hints = [hint for release, _ in self._upper if (hint := self._hint(release))]
        spacings = [spacing for _, spacing in hints if spacing > 0]
        if not self._spread > 0:
            return 1.0
        step = self._accurate_step(self._first_rtol)
        if not self.tight:
            # Different distributions for the two bounds cause a much larger gap than the grid does.
            step *= 8
        # At the default rtol of 1e-5, a grid takes little time until its transform has FIRST_POINTS points within 20 standard
        # deviations, or its values take half of MOST_GRID_EFFORT. For a larger rtol, as for a trade-off function, the first grid is
        # coarser.
        spans = ((release.scale(FIRST_TAIL), release.sampling.effort) for release, _ in self._upper)
        efforts = sum((scale.high - scale.low) * effort for scale, effort in spans)
        coarser = math.sqrt(max(self._rtol / 1e-5, 1.0))
        step = min(step, coarser * max(20 * self._spread / FIRST_POINTS, 2 * efforts / MOST_GRID_EFFORT))
        if spacings:
            # The errors at the points of a lattice of losses do not average out, so the step is finer. A transform of 2
            # FIRST_POINTS points is fast.
            step = min(step, coarser * 10 * self._spread / FIRST_POINTS)
        return self._fitted(max(step, 40 * self._spread / TABLE_SIZE, self._shortest_step))

    @property
    def _first_rtol(self) -> float:
        """Relative gap of eps by which grids and sums over pairs are compared, and from which the first step follows.

        For a smaller rtol the first grid is the same and is refined, so a smaller rtol does not give wider bounds.
        """
        return max(self._rtol, PairSums.finest)

    def _accurate_step(self, rtol: float) -> float:
        """Return the grid step with which either bound of eps changes by about a relative rtol/20.

        The grid changes the variance of a release by about step^2/6 in either bound. The relative change of eps is half of the
        relative change of the total variance.
        """
        return math.sqrt(0.6 * rtol * self._spread**2 / self._count)

    @property
    def _shortest_step(self) -> float:
        """The shortest step of a grid on which no loss is more than TABLE_SIZE steps away from 0.

        Both bounds limit the step, because the losses of the upper bound may have variance 0 while those of the lower do not.
        """
        sides = self._upper if self.tight else [*self._upper, *(pair for side in self._lower for pair in side)]
        scales = [release.scale(FIRST_TAIL) for release, _ in sides]
        return max(max(abs(scale.low), abs(scale.high)) for scale in scales) / TABLE_SIZE

    def _anchor(self, release: DominatingPairInfo, step: float) -> float:
        """Return the offset of the grid of a release: the losses with the largest masses are then on or just above grid points.

        The lower bound merges a loss below a grid point with larger losses until their mean is the grid point. A loss slightly
        above a grid point is balanced by smaller losses or rounded down (`_losses.merge`). If nearly all mass is within a few
        steps, as for a record that is rarely sampled, merging losses below grid points would use up the large losses that decide
        delta.
        """
        hint = self._hint(release)
        if hint is None:
            heavy = release.scale(FIRST_TAIL).heavy(step)
            return 0.0 if heavy is None else heavy - step * round(heavy / step)
        anchor, spacing = hint
        if release.aligned and spacing >= step and spacing / step - round(spacing / step) > ON_GRID:
            anchor -= spacing
        return anchor - step * round(anchor / step)

    @staticmethod
    def _hint(release: DominatingPairInfo) -> tuple[float, float] | None:
        """Return (offset, spacing) such that the losses offset + spacing j should be grid points, or None if no loss is preferred.

        Normally these are the release's own lattice, or its most probable loss and the distance to the nearest other loss. A
        release may have neither, and the same distribution of the loss for (P, Q) and (Q, P). Then the result is (eps0, 2 eps0) for
        a pure budget eps0 of at most 30 standard deviations, because the losses eps0 and -eps0 may be atoms.
        """
        hint = release.hint or own_lattice(release.atoms)
        if hint is None and release.reverse is None and release.pure <= 30 * math.sqrt(release.scale(FIRST_TAIL).var):
            return release.pure, 2 * release.pure
        return hint

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
                self._law(release, self._anchor(release, step), step, log_tail, middle, rtol, upper=side < 0)
                for release, _ in releases
            ]
            tick()
            return Product(laws, [r for _, r in releases], upper=side < 0)

        return self._products.of(key, made)

    @staticmethod
    def _eps_of_key(releases: Releases, step: float, log_tail: float, middle: float) -> float:
        """Return the part of the cache key that depends on eps.

        This is `middle` if some distribution is sampled at losses chosen for this eps. Otherwise the composed distribution is the
        same for every eps, and the key is inf.
        """
        return middle if any(release.sparing(step, log_tail) for release, _ in releases) else math.inf

    def _theta(self, eps: float) -> float:
        """Return the exponential tilt that moves the mean of the total loss to eps, if the total loss is taken as Gaussian."""
        return max(0.0, eps - self._mean) / self._spread**2 if self._spread > 0 else 0.0

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

        `log_tail` is the log of the truncated mass of each release.

        It only chooses the truncation; where it was too large, `_on_grid` truncates less.
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
            return self._refined(min(eps, self._farthest)).lower

    def account(self, eps: float) -> Account:
        """Return how the bounds at eps are computed on a grid; compute them again if they are not cached."""
        eps = min(eps, self._farthest)
        self.bounds(eps)
        with self._lock:
            if eps not in self._steps:
                self._bounds_on_grid(eps)
            step = self._steps[eps]
            log_tail, middle = self._tail(eps), self._middle(eps)
            product = self._product(step, log_tail, middle, -1, self._rtol)
            size = product.points(eps) if product.finite else 0
            return Account(step, size, product.tilt(eps) if product.finite else 0.0, log_tail, eps in self._adaptive)

    def estimate(self, eps: float) -> float:
        """Return an estimate of log delta at eps: by the saddle point, or for Gaussian losses of the same mean and variance.

        It is 0 if all losses are 0.
        """
        if self.inversion is not None:
            return self.inversion.estimate(eps)
        return normal_estimate(eps, self._mean, self._spread)

    def _middle(self, eps: float) -> float:
        """Return the middle of the interval that contains eps. All eps of an interval share one set of samples.

        The intervals have the length of 2 NEAR standard deviations of the total loss. The first one extends down to -inf.
        """
        width = 2 * NEAR * self._spread
        place = max(0, math.ceil((eps - self._mean) / width - 0.5)) if width > 0 else 0
        return max(self._mean + place * width, 0.0)

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
        if self.sums is None or eps > self._farthest:
            return found
        low, high = self.sums.bounds(eps)
        if low > -math.inf:
            self._summed.of(eps, lambda: True)
        return Interval(max(low, found.lower), min(high, found.upper))

    def _agree(self, found: Interval, account: InversionAccount | None, eps: float) -> bool:
        """Return whether the gap of bounds by inversion is at most a relative rtol of eps; log delta has about the slope -tilt."""
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
        # There is no lower bound by sums if delta is below about 1e-290, or if sums are not possible.
        if self.sums is not None and eps <= self._farthest and self._long(self._tail(eps)):
            return found
        low, high = self._bounds_on_grid(eps)
        return Interval(max(low, found.lower), min(high, found.upper))

    def _bounds_on_grid(self, eps: float) -> Interval:
        if eps > self._farthest:
            # delta decreases in eps, so the upper bound at the largest evaluated eps is valid.
            return Interval(-math.inf, self.bounds(self._farthest).upper)
        low, high = self._refined(eps)
        # The recursion over adaptive strategies is skipped if the bounds without adaptive choice agree to rtol. It is also skipped
        # if eps is more than 200 standard deviations above the mean loss: rare outcomes decide delta there, and the recursion would
        # need a long grid for a small improvement.
        if self._free is None or not high - low > self._rtol or not self._spread > 0 or eps > self._mean + 200 * self._spread:
            return Interval(low, high)
        better = self._chosen(self._free, eps)
        self._adaptive.of(eps, lambda: True)
        return Interval(max(low, better.lower), min(high, better.upper))

    def _chosen(self, free: AdaptiveChoice, eps: float) -> Interval:
        """Return both bounds for the best adaptive strategy: the pair of one mechanism may change after each result."""
        log_tail, middle = self._tail(eps), self._middle(eps)
        guide = self._product(self.first_step, log_tail, middle, -1, self._rtol)
        if not guide.finite:
            # All losses of one release are infinite: the bound without adaptive choice is already exact.
            return Interval(-math.inf, 0.0)
        size = points(self._spread, 1.0, guide.tilt(eps), eps)
        known, times = self._upper[free.place]

        def answer(transforms: int, upper: bool) -> float:
            rtol, most = self._rtol, CHOSEN
            if known.attained.blocks:
                # The bounds of the blocks of datasets leave a relative gap of eps above 5e-5, which a finer grid does not reduce.
                rtol, most = max(rtol, 5e-5), most if upper else most / 2
            # The step is large enough that the transforms have at most `most` points together, and none more than TABLE_SIZE.
            step = max(self._accurate_step(rtol), size * transforms / most, size / TABLE_SIZE)
            if step > 0.5 * self._spread / math.sqrt(self._count):
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
                    several = [laws([(one, 1)]) for one in known.attained.pairs]
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
        """Return bounds on a grid, or the tighter ones of these and of sums over pairs of outcomes where their gap is too wide."""
        found, allowed = self._on_grids(eps)
        reached = found.upper - found.lower <= allowed * self._first_rtol
        return found if reached or self.inversion is not None or self.sums is None else self._with_sums(found, eps)

    def _on_grids(self, eps: float) -> tuple[Interval, float]:
        """Return bounds on refined grids, and the gap of log delta that changes eps by a factor e."""
        finer, final = 0, False
        found, allowed = Interval(-math.inf, 0.0), 1.0
        # If the lower bound comes from other distributions, the gap may be far larger than rtol. Then the losses at which expensive
        # divergences are sampled are not chosen for rtol.
        rtol = self._rtol if self.tight else max(self._rtol, LOOSE)
        while True:
            step = math.ldexp(self.first_step, -finer)
            try:
                low, high, slope = self._on_grid(step, eps, rtol)
            except TooLongError:
                if found.upper - found.lower < math.inf:
                    return found, allowed
                if finer < -MOST_ROUNDS:
                    raise
                finer, final = finer - 1, True
                continue
            self._steps[eps] = step
            gap, allowed = high - low, max(slope * max(eps, self._spread), 1.0)
            # The samples may add 2 % to the gap.
            if rtol > self._rtol and gap < 50 * allowed * rtol:
                rtol = max(self._rtol, 0.1 * rtol)
                continue
            last = found.upper - found.lower
            found = Interval(max(low, found.lower), min(high, found.upper))
            # Stop if the finer grid reduced the gap by less than 20 %: then the step does not cause the gap. If the two bounds use
            # different distributions (not `tight`), these usually cause the gap, and a finer grid is tried only if rtol is small.
            apart = not gap < 0.8 * last or (not self.tight and self._rtol == self._first_rtol)
            # Where the gap is large, sums reduce it more than several refinements. One refinement divides the gap by four at most.
            sums = False
            if self.inversion is None and self.sums is not None and gap > 2 * allowed * self._first_rtol and high > LOG_TINY:
                found = self._with_sums(found, eps)
                sums = gap > 100 * allowed * self._first_rtol or found.upper - found.lower <= allowed * self._rtol
            room = finer < MOST_ROUNDS and step > 40 * self._spread / TABLE_SIZE
            if gap <= allowed * self._rtol or sums or final or apart or self._lattice is not None or not room:
                return found, allowed
            finer += 1

    def _on_grid(self, step: float, eps: float, rtol: float) -> tuple[float, float, float]:
        """Return both bounds on the grid with this step, and the slope of log delta there.

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
        goal = max(0.25 * rtol * max(middle - NEAR * self._spread, self._spread), SAME_LOG) / self._count
        return release.refined(log_tail, self._theta(middle), goal)

    @cached_property
    def coarse(self) -> bool:
        """Whether the bounds are useless because the first step is much larger than the spread of many releases.

        A loss much smaller than the step is split between two grid points, which adds about the product of the loss and the step to
        the variance. `coarse` is true if this adds more than four times the variance of all releases.
        """
        small = sum(r * math.sqrt(release.scale(FIRST_TAIL).var) for release, r in self._upper if not self.resolves(release, 0.25))
        return self.first_step * small > 4 * self._spread**2

    def resolves(self, release: DominatingPairInfo, steps: float = 1.0) -> bool:
        """Return whether the loss's standard deviation is at least `steps` steps of the first grid, or losses lie on a lattice."""
        return self._lattice is not None or math.sqrt(release.scale(FIRST_TAIL).var) >= steps * self.first_step

    @cached_property
    def _mean(self) -> float:
        return sum(r * release.scale(FIRST_TAIL).mean for release, r in self._upper)

    @cached_property
    def _spread(self) -> float:
        return math.sqrt(sum(r * release.scale(FIRST_TAIL).var for release, r in self._upper))

    @cached_property
    def _farthest(self) -> float:
        """The largest eps that is evaluated on a grid: 1e6 times the largest loss above a mass of e^FIRST_TAIL, or the pure budget.

        For larger eps the rounding errors of grid points are too large, and the square of eps overflows.
        """
        losses = sum(r * release.scale(FIRST_TAIL).high for release, r in self._upper)
        pure = sum(r * release.pure for release, r in self._upper)
        return min(1e6 * max(1.0, losses, pure if pure < math.inf else 0.0), SQUARABLE)
