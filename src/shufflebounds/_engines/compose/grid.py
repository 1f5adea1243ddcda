"""The composition of distributions of losses on a grid, refined until the bounds have a relative gap in eps of at most rtol."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from shufflebounds._base.caches import Kept
from shufflebounds._base.limits import (
    DEEPER,
    FIRST_TAIL,
    LOG_TINY,
    LOOSE,
    MOST_ROUNDS,
    NEGLIGIBLE,
    NEGLIGIBLE_ROUGHLY,
    SAME_LOG,
    TABLE_SIZE,
)
from shufflebounds._base.progress import tick
from shufflebounds._base.types import Interval
from shufflebounds._engines.compose.grid_product import NEAR, Product
from shufflebounds._engines.compose.pair_sums import PairSums
from shufflebounds._engines.compose.repeated import log_repeated
from shufflebounds._engines.compose.steps import FIRST_POINTS, GridSteps, Releases
from shufflebounds._losses.atoms import GridPLD, TooLongError
from shufflebounds._losses.release import DominatingPairInfo
from shufflebounds._losses.sampled_profile import SampledProfile

__all__ = ["COMPOSED", "Grid"]

COMPOSED = 40
"""Number of composed distributions in one cache, and of adaptive strategies in another. Raised: more memory. Lowered: a search for
eps computes some distributions again."""

_DEEPER = math.sqrt(DEEPER)
"""Factor by which the log of the truncated mass is multiplied for the next pass on a grid (see DEEPER). Raised: losses far above
eps with a negligible mass have most of the tilted mass, so that the error of the transform hides delta, and expensive divergences
are evaluated where they take longest. Lowered: more passes."""

FARTHEST = 200.0
"""Standard deviations above the mean loss beyond which adaptive choice is ignored: at such eps delta is due to rare outcomes, and
the recursion would need a long grid for a small improvement. Raised: longer run time. Lowered: no adaptive choice at more eps."""


class _Refined(NamedTuple):
    """The bounds at one eps, the step of the finest grid, and whether sums over pairs of outcomes gave a lower bound."""

    bounds: Interval
    step: float
    summed: bool


class Grid:
    """Bounds of the hockey-stick divergence of a composition on refined grids of losses.

    Parameters
    ----------
    upper, lower, tested, rtol
        As for :class:`Composer`.
    steps : GridSteps
        The step of the first grid, and where the grid of each release begins.
    sums : PairSums, optional
        Sums over all pairs of outcomes, which are computed as well if a finer grid would leave a large gap.
    tight : bool
        Whether one lower bound has the distributions of the upper bound.
    """

    name: ClassVar[str] = "losses on a grid"

    def __init__(
        self, upper: Releases, lower: Sequence[Releases], tested: Releases, rtol: float, steps: GridSteps, sums: PairSums | None,
        *, tight: bool,
    ) -> None:
        self.upper, self.rtol, self.steps = upper, rtol, steps
        self._lower, self._tested, self._sums, self._tight = lower, tested, sums, tight
        # `steps` may be the grid steps for a smaller rtol.
        self._least_rtol = max(rtol, steps.rtol)
        self._products: Kept[tuple[float, float, float, int, float], Product] = Kept(COMPOSED)

    def bounds(self, eps: float) -> tuple[Interval, bool]:
        """Return bounds of log delta at eps, and whether bounds for adaptive choice are not needed."""
        bounds = self._refined(eps).bounds
        mean, spread = self.steps.mean, self.steps.spread
        # `enough` is true (no adaptive choice is computed) if these bounds agree to rtol, all losses are equal, or eps is too
        # large.
        enough = not bounds.upper - bounds.lower > self.rtol or not spread > 0 or eps > mean + FARTHEST * spread
        return bounds, enough

    def method(self, eps: float, *, adaptive: bool = False) -> list[str]:
        """Return the lines of :meth:`Composition.explain`; `adaptive` states whether adaptive choice was computed as well."""
        _, step, summed = self._refined(eps)
        if summed and self._sums is not None:
            return self._sums.method(eps)
        log_tail = self.tail(eps)
        product = self.product(step, log_tail, self.middle(eps), -1, self.rtol)
        size, tilt = (product.points(eps), product.tilt(eps)) if product.finite else (0, 0.0)
        pairs = ("the pair of neighbouring datasets and its order may change after every release" if adaptive else
                 "not listed; below, one test repeated in every release, or a single release" if not self._lower else
                 "every release is one pair" if len(self._lower) == 1 else
                 "above, the larger order of all pairs at each eps; below, one pair for all releases")
        lattice = "" if self.steps.lattice is None else " (a lattice that holds all losses)"
        return ["method: losses on a grid, composed by one tilted Fourier transform from above and one from below",
                f"pairs: {pairs}", f"grid: step {step:.3g}{lattice}, transform of {size} points, tilt {tilt:.3g}",
                f"depth: losses are listed down to a mass of e^{log_tail:.0f} under P"]

    def is_long(self, log_tail: float) -> bool:
        """Whether a grid that truncates a mass of e^log_tail takes longer than sums over all pairs of outcomes.

        A grid takes longer if one release has more than 2 TABLE_SIZE points, or more than 2 FIRST_POINTS at which its density is
        evaluated.
        """
        for pair, _ in self.upper:
            scale = pair.scale(log_tail)
            size = (scale.high - scale.low) / self.steps.first
            if size > 2 * (FIRST_POINTS if pair.losses.density is not None and pair.atoms is None else TABLE_SIZE):
                return True
        return False

    def product(self, step: float, log_tail: float, middle: float, side: int, rtol: float) -> Product:
        """Return the composed distribution on a grid: for the upper bound if `side` is -1, otherwise for lower bound number `side`.

        Distributions with expensive values are sampled at losses that are chosen for the eps `middle` and for a relative gap `rtol`
        of eps.
        """
        releases = self.upper if side < 0 else self._lower[side]
        sampled = self.eps_of_key(releases, step, log_tail, middle)
        key = (step, log_tail, sampled, side, rtol if sampled < math.inf else math.inf)

        def made() -> Product:
            laws = [
                self.law(release, self.steps.anchor(release, step), step, log_tail, middle, rtol, upper=side < 0)
                for release, _ in releases
            ]
            tick()
            return Product(laws, [r for _, r in releases], upper=side < 0)

        return self._products.of(key, made)

    @staticmethod
    def eps_of_key(releases: Releases, step: float, log_tail: float, middle: float) -> float:
        """Return the part of the cache key that depends on eps.

        This part is `middle` if some distribution is sampled at losses chosen for this eps. Otherwise the composed distribution is
        the same for every eps, and the key is inf.
        """
        return middle if any(release.sparing(step, log_tail) for release, _ in releases) else math.inf

    def _theta(self, eps: float) -> float:
        """Return the exponential tilt that moves the mean of the total loss to eps, if the total loss is taken as Gaussian."""
        return max(0.0, eps - self.steps.mean) / self.steps.spread**2 if self.steps.spread > 0 else 0.0

    def tail(self, eps: float) -> float:
        """Return the log of the mass that may be truncated from each release for delta at eps.

        This mass is so small that the truncated mass of all releases changes delta by less than the rounding error.
        """
        log_tail = FIRST_TAIL
        if all(release.atoms is not None for release, _ in self.upper):
            return log_tail
        spare = NEGLIGIBLE_ROUGHLY if any(release.sampling.expensive for release, _ in self.upper) else NEGLIGIBLE
        while not (self._deepest(log_tail) or self._depth(eps, log_tail) - spare - math.log(self.steps.count) >= log_tail):
            log_tail *= _DEEPER
        return log_tail

    def _deepest(self, log_tail: float) -> bool:
        """Whether truncating a mass below e^log_tail would take too long, or would change the samples of the divergences little.

        For log_tail >= 2 FIRST_TAIL the result is False, because samples take little time. For a smaller log_tail, samples change
        little if all of them end at a larger delta than e^log_tail.
        """
        return log_tail <= -1e6 or (log_tail < 2 * FIRST_TAIL and all(release.exhausted(log_tail) for release, _ in self.upper))

    def _depth(self, eps: float, log_tail: float) -> float:
        """Return an estimate of log delta at eps, with the total loss taken as Gaussian.

        `log_tail` is the log of the truncated mass of each release. The estimate is used only to choose the truncated mass; if
        this mass is too large, `_on_grid` truncates less.
        """
        mean = var = 0.0
        for release, r in self.upper:
            scale = release.scale(log_tail)
            mean, var = mean + r * scale.mean, var + r * scale.var
        return -max(0.0, eps - mean) ** 2 / (2 * var) if var > 0 else 0.0

    def middle(self, eps: float) -> float:
        """Return the middle of the interval that contains eps; all eps of an interval share the samples of expensive distributions.

        The intervals have the length of 2 NEAR standard deviations of the total loss. The first interval extends down to -inf.
        """
        width = 2 * NEAR * self.steps.spread
        place = max(0, math.ceil((eps - self.steps.mean) / width - 0.5)) if width > 0 else 0
        return max(self.steps.mean + place * width, 0.0)

    def law(
        self, release: DominatingPairInfo, anchor: float, step: float, log_tail: float, middle: float, rtol: float, *, upper: bool
    ) -> GridPLD:
        """Return the losses of a release on the grid with this step, for the upper or for the lower bound."""
        placed = self.placed(release, log_tail, middle, rtol) if release.sparing(step, log_tail) else None
        return release.law(anchor, step, log_tail, placed, upper=upper)

    def _refined(self, eps: float) -> _Refined:
        """Return bounds on refined grids; if their gap is too large, the tighter of these bounds and those by sums over pairs of
        outcomes.
        """
        finer, final, step, summed = 0, False, 0.0, False
        # `allowed` is the gap of log delta that corresponds to a relative gap of 1 in eps.
        bounds, allowed = Interval(-math.inf, 0.0), 1.0
        # If the lower bound comes from other distributions than the upper bound, the gap may be far larger than rtol. Then
        # expensive divergences need not be sampled as closely as rtol requires.
        rtol = self.rtol if self._tight else max(self.rtol, LOOSE)
        while True:
            finest = math.ldexp(self.steps.first, -finer)
            try:
                low, high, slope = self._on_grid(finest, eps, rtol)
            except TooLongError:
                if bounds.upper - bounds.lower < math.inf:
                    break
                if finer < -MOST_ROUNDS:
                    raise
                finer, final = finer - 1, True
                continue
            step = finest
            gap, allowed = high - low, max(slope * max(eps, self.steps.spread), 1.0)
            # If the samples of expensive divergences may cause 2 % of the gap or more, they are replaced by samples for a smaller
            # rtol.
            if rtol > self.rtol and gap < 50 * allowed * rtol:
                rtol = max(self.rtol, 0.1 * rtol)
                continue
            last = bounds.upper - bounds.lower
            bounds = Interval(max(low, bounds.lower), min(high, bounds.upper))
            # Stop if the finer grid reduced the gap by less than 20 %: then the step does not cause the gap. If the two bounds use
            # different distributions (not `tight`), these usually cause the gap, and a finer grid is tried only if rtol is small.
            apart = not gap < 0.8 * last or (not self._tight and self.rtol == self._least_rtol)
            # If the gap is large, sums over all pairs of outcomes reduce it more than finer grids, each of which divides it by four
            # at most.
            enough = False
            if self._sums is not None and gap > 2 * allowed * self._least_rtol and high > LOG_TINY:
                bounds, summed = self._with_sums(bounds, eps)
                enough = gap > 100 * allowed * self._least_rtol or bounds.upper - bounds.lower <= allowed * self.rtol
            room = finer < MOST_ROUNDS and step > max(40 * self.steps.spread / TABLE_SIZE, self.steps.useful)
            if gap <= allowed * self.rtol or enough or final or apart or self.steps.lattice is not None or not room:
                break
            finer += 1
        if self._sums is not None and not bounds.upper - bounds.lower <= allowed * self._least_rtol:
            bounds, summed = self._with_sums(bounds, eps)
        return _Refined(bounds, step, summed)

    def _with_sums(self, bounds: Interval, eps: float) -> tuple[Interval, bool]:
        """Return the tighter of the given bounds and of sums over pairs of outcomes, and whether the sums give a lower bound."""
        assert self._sums is not None
        (low, high), summed = self._sums.bounds(eps)
        return Interval(max(low, bounds.lower), min(high, bounds.upper)), summed

    def _on_grid(self, step: float, eps: float, rtol: float) -> tuple[float, float, float]:
        """Return bounds of log delta on the grid with this step, and minus the slope of log delta at eps.

        Expensive divergences are sampled for a relative gap `rtol` of eps.
        """
        log_tail, middle = self.tail(eps), self.middle(eps)
        while True:
            above = self.product(step, log_tail, middle, -1, rtol)
            high, slope = above.log_delta(eps)
            if above.log_rest <= high - 25 or self._deepest(log_tail):
                break
            deeper = self.product(step, log_tail * _DEEPER, middle, -1, rtol)
            if not deeper.log_rest < above.log_rest - 1:
                break
            log_tail *= _DEEPER
        below = [self.product(step, log_tail, middle, i, rtol).log_delta(eps)[0] for i in range(len(self._lower))]
        if not below:
            for release, r in self._tested:
                if release.sampling.convex and r > 1:
                    below.append(log_repeated(self.placed(release, log_tail, middle, rtol)[0], r, eps))
        return max(below, default=-math.inf), high, slope

    def placed(
        self, release: DominatingPairInfo, log_tail: float, middle: float, rtol: float
    ) -> tuple[SampledProfile, SampledProfile]:
        """Return samples of the two bounds of a release's divergence, accurate enough for the composition at eps near `middle`."""
        # SAME_LOG keeps the goal positive if the standard deviation is 0. Without a lower bound there is no gap to reduce: the
        # upper bound is then computed to the relative accuracy LOOSE.
        rtol = rtol if self._lower else max(rtol, LOOSE)
        goal = max(0.25 * rtol * max(middle - NEAR * self.steps.spread, self.steps.spread), SAME_LOG) / self.steps.count
        return release.refined(log_tail, self._theta(middle), goal)
