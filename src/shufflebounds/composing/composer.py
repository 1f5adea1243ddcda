"""Releases composed on a grid that is refined until its two sides meet."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from shufflebounds._cached import cached_property
from shufflebounds._types import Interval
from shufflebounds.composing.adaptive import Adaptive, Laws, points
from shufflebounds.composing.kept import Kept
from shufflebounds.composing.lattice import common_step, own_lattice
from shufflebounds.composing.loss_atoms import GridPLD, TooLongError
from shufflebounds.composing.pair_info import FIRST_TAIL, GRID_VALUE_SECONDS, DominatingPairInfo
from shufflebounds.composing.product import BYTES_A_POINT, NEAR, Product
from shufflebounds.composing.progress import Cost, tick
from shufflebounds.composing.repeated import log_repeated
from shufflebounds.composing.sampled_profile import SampledProfile

__all__ = ["Account", "Composer", "AdaptiveChoice"]

DEEPER = 2.5
"""By how much the logarithm of the mass above the listed losses deepens where that matters."""

LEAST_GOAL = 1e-10
"""How near the sides of the log moments are brought, at the nearest: also where no spread of the losses is known."""

LOOSE = 1e-3
"""How near, as a share of it, the upper side is brought to its limit where no law bounds from below."""

SPARE, LEAST_SPARE = 45.0, 30.0
"""How far, in logarithms, the unlisted mass must stay below delta; and the same where values are dear."""

REFINEMENTS, COARSER = 8, 6
"""How often the grid may be halved, and doubled where its transform would be too long."""

REMEMBERED, ANSWERS = 40, 2**14
"""Products kept, and answers."""

CHEAP_POINTS, REFINED_POINTS = 2**17, 2**20
"""A grid starts with at least so many points, and is refined to about so many."""

SHORT_POINTS, QUICK = 2**16, 0.25
"""A grid starts with at least so many points, too, where its values take no more seconds than that."""

USUAL = 1e-5
"""The distance of the sides where nothing else is asked: a curve asks for a larger one, and its first grids are coarser."""

MOST_TRIED = 2**14
"""Steps tried, where several mechanisms have atoms that should lie on one grid."""

TRANSFORMS, GRID_POINT, ON_LATTICE = 0.02, 3e-6, 0.015
"""Seconds that the transforms of one answer take, those of a grid point within the losses of one release, and all on a lattice."""

CHOSEN_POINT, CHOSEN_POINTS = 1.5e-8, 2e5
"""Where pairs are chosen anew, the seconds of a point, and the points of a release."""

APART = 5e-5
"""Blocks of neighbours leave more than that between the sides, relative to eps: no finer grid is taken."""

TIED = 1e-9
"""An atom so far from the grid, in steps, counts as on it."""

CHOSEN = 4e7
"""Points of all transforms where pairs are chosen anew for every release, at most: some two seconds."""

RARE = 200.0
"""Beyond so many standard deviations of the losses rare outcomes decide, and a choice for each release gains nothing that is worth
its long grid."""

FARTHEST, MOST_EPS = 1e6, 1e140
"""Multiple of the largest loss above a mass of e^FIRST_TAIL, or of the pure budget. At larger eps delta is bounded by its value at
this multiple, at most MOST_EPS: a grid loses its digits there, and the square of eps overflows."""

Releases = Sequence[tuple[DominatingPairInfo, int]]


class AdaptiveChoice(NamedTuple):
    """The place, among the releases from above, of the one whose pair is chosen anew.

    From below so many releases each take one of several pairs, products perhaps, and the others are as they are; no pairs where
    nothing is known.
    """

    place: int
    times: int
    pairs: Sequence[Releases]
    others: Releases


class Account(NamedTuple):
    """How one answer was formed: for :meth:`Composition.explain`.

    The step of the finest grid, the number of points of its transform, the tilt, the logarithm of the mass down to which losses are
    listed, and whether the pair of a release may change after every result.
    """

    step: float
    points: int
    tilt: float
    log_tail: float
    adaptive: bool


class Composer:
    """Two sides of the composed hockey stick.

    An answer depends on eps alone, not on what was asked before: grids are refined anew for every eps, and values that are placed
    one by one are placed for the middle of a stretch of the line. Only what was computed is kept.

    Parameters
    ----------
    upper : sequence of (DominatingPairInfo, int)
        Releases whose composition bounds from above, and how often each.
    lower : sequence of sequences of (DominatingPairInfo, int)
        Compositions each of which bounds from below.
    rtol : float
        The grid is refined until the sides are so close, relative to eps.
    free : Free, optional
        A release whose pair may be chosen anew each time: both sides are then those of the best adaptive choice.
    tested : sequence of (DominatingPairInfo, int)
        Mechanisms whose own delta is a lower bound through one test that is repeated in every release; used where `lower` is empty.
        The distributions in `upper` do not serve for that: they may only dominate those of neighbours.
    """

    def __init__(
        self, upper: Releases, lower: Sequence[Releases], rtol: float, free: AdaptiveChoice | None = None, tested: Releases = ()
    ) -> None:
        self._upper, self._lower, self._rtol, self._free, self._tested = upper, lower, rtol, free, tested
        self._games: Kept[tuple[float, float, float, bool], Adaptive] = Kept(REMEMBERED)
        self._products: Kept[tuple[float, float, float, int], Product] = Kept(REMEMBERED)
        self._known: Kept[float, Interval] = Kept(ANSWERS)
        # for `account` only: no answer reads them
        self._steps: Kept[float, float] = Kept(ANSWERS)
        self._adaptive: Kept[float, bool] = Kept(ANSWERS)
        self._lock, self._process = threading.RLock(), os.getpid()
        self._count = sum(r for _, r in upper)
        # where other laws bound from below, no grid brings the sides together
        self._tight = any(all(a is b for (a, _), (b, _) in zip(upper, side)) for side in lower)

    @property
    def cost(self) -> Cost:
        """Predicted seconds of one more answer, and the most memory."""
        memory = (1 + len(self._lower)) * REFINED_POINTS * BYTES_A_POINT
        if self._lattice is not None:
            return Cost(ON_LATTICE, memory)
        releases = {id(known): known for side in (self._upper, *self._lower) for known, _ in side}
        seconds = 0.0 if self._known else sum(known.expected for known in releases.values())
        cheap = all(max(known.effort, known.setup) <= GRID_VALUE_SECONDS for known in releases.values())
        if not self._known and self._count > 1 and cheap:
            # where a look at the losses costs nothing: how many grid points they span
            scales = (known.scale(FIRST_TAIL) for known, _ in self._upper)
            seconds += GRID_POINT * min(sum(scale.high - scale.low for scale in scales) / self.first_step, REFINED_POINTS)
        if self._free is not None:
            blocks = self._upper[self._free.place][0].blocks
            seconds += blocks.seconds if blocks and not self._known else 0.0
            seconds += sum(CHOSEN_POINT * min(transforms * CHOSEN_POINTS, CHOSEN) for transforms in self._transforms(self._free))
        return Cost(seconds + TRANSFORMS, memory)

    @cached_property
    def _lattice(self) -> float | None:
        """The spacing of the lattice that holds all losses exactly, if there is one and it is coarse enough."""
        sides = [*self._upper, *(pair for side in self._lower for pair in side)]
        listed = [release.atoms for release, _ in sides]
        if any(one is None for one in listed):
            return None
        gaps = np.unique(np.concatenate([np.diff(one.loss) for one in listed if one is not None]))
        return common_step(gaps)

    @property
    def on_lattice(self) -> bool:
        """Whether a grid holds all losses exactly."""
        return self._lattice is not None

    def _fitted(self, step: float) -> float:
        """Return a step, at most the given one, with which all known atoms lie on the grid, or nearly."""
        hints = [(release, hint[1], r) for release, r in self._upper if (hint := self._hint(release)) and hint[1] >= step]
        if not hints:
            return step
        base = max(spacing for _, spacing, _ in hints)
        others = [(spacing, r) for release, spacing, r in hints if spacing < base and release.aligned]
        least = math.ceil(base / step * (1 - TIED))
        tried = base / (least + np.arange(1 + min(least // 2 + 8, MOST_TRIED) if others else 1))
        cost = np.zeros(tried.size)
        for spacing, r in others:
            # an atom at a distance d from the grid is moved there, and one a spacing away moves to balance it: the product of both
            # is added to the variance
            away = np.abs(spacing / tried - np.round(spacing / tried))
            cost += r * spacing * tried * np.where(away > TIED, away, 0.0)
        return float(tried[np.argmin(cost)])

    @cached_property
    def first_step(self) -> float:
        """The step of the first grid, before any is refined."""
        if self._lattice is not None:
            return self._lattice
        smooth = variance = 0.0
        spacings = []
        for release, r in self._upper:
            variance += r * release.scale(FIRST_TAIL).var
            smooth += r
            hint = self._hint(release)
            if hint and hint[1] > 0:
                spacings.append(hint[1])
        if not variance > 0:
            return 1.0
        # each side adds about step^2/6 to a variance, and eps moves by half that share of it: three times finer than asked
        step = math.sqrt(0.6 * self._rtol * variance / smooth)
        if not self._tight:
            # other laws bound from below, and their distance is far larger
            step *= 8
        # a finer step costs little while transforms are short and values on the grid are cheap
        spans = ((release.scale(FIRST_TAIL), release.effort) for release, _ in self._upper)
        values = sum((scale.high - scale.low) * seconds for scale, seconds in spans)
        step = min(step, max(20 * math.sqrt(variance) / SHORT_POINTS, values / QUICK) * math.sqrt(max(self._rtol / USUAL, 1.0)))
        if spacings:
            # errors between the kinks of a lattice do not average out, so the step is finer; short transforms cost nothing
            step = min(step, 20 * math.sqrt(variance) / CHEAP_POINTS)
        step = max(step, 40 * math.sqrt(variance) / REFINED_POINTS)
        # a law may have no spread but rounding, while one below has more: the grid must reach every loss
        sides = self._upper if self._tight else [*self._upper, *(pair for side in self._lower for pair in side)]
        scales = [release.scale(FIRST_TAIL) for release, _ in sides]
        step = max(step, max(max(abs(scale.low), abs(scale.high)) for scale in scales) / REFINED_POINTS)
        return self._fitted(step)

    def _anchor(self, release: DominatingPairInfo, step: float) -> float:
        """Where the release's grid starts: at its heaviest losses, or a spacing below them where that leaves them above the grid.

        A loss just above a grid point is cheap to move there from below, one just below it is not. The lower bound merges a mass
        between two grid points with larger losses until their mean is a grid point: where nearly all mass lies within a few steps,
        as that of a record that is seldom sampled, this would consume the large losses that decide delta.
        """
        hint = self._hint(release)
        if hint is None:
            heavy = release.scale(FIRST_TAIL).heavy(step)
            return 0.0 if heavy is None else heavy - step * round(heavy / step)
        anchor, spacing = hint
        if release.aligned and spacing >= step and spacing / step - round(spacing / step) > TIED:
            anchor -= spacing
        return anchor - step * round(anchor / step)

    @staticmethod
    def _hint(release: DominatingPairInfo) -> tuple[float, float] | None:
        """Anchor and spacing of what the grid should hit: the heaviest losses, or both ends where these may be atoms."""
        hint = release.hint or own_lattice(release.atoms)
        if hint is None and release.reverse is None and release.pure <= 30 * math.sqrt(release.scale(FIRST_TAIL).var):
            return release.pure, 2 * release.pure
        return hint

    def _product(self, step: float, log_tail: float, middle: float, side: int) -> Product:
        """The product of the upper side (-1) or of a lower one. Dear values are taken where the eps in the middle needs them."""
        releases = self._upper if side < 0 else self._lower[side]
        key = (step, log_tail, self._asked(releases, step, log_tail, middle), side)

        def made() -> Product:
            laws = [
                self._law(release, self._anchor(release, step), step, log_tail, middle, upper=side < 0) for release, _ in releases
            ]
            tick()
            return Product(laws, [r for _, r in releases], upper=side < 0)

        return self._products.of(key, made)

    @staticmethod
    def _asked(releases: Releases, step: float, log_tail: float, middle: float) -> float:
        """Return the middle where laws depend on it, since values are placed one by one; else inf, so that laws serve again."""
        return middle if any(release.sparing(step, log_tail) for release, _ in releases) else math.inf

    def _theta(self, eps: float) -> float:
        """The tilt that moves the mean of a Gaussian of the same mean and variance to eps; that of the composition is near it."""
        return max(0.0, eps - self._mean) / self._spread**2 if self._spread > 0 else 0.0

    def _tail(self, eps: float) -> float:
        """How deep the laws must be listed for delta at eps."""
        log_tail = FIRST_TAIL
        if all(release.atoms is not None for release, _ in self._upper):
            return log_tail
        spare = LEAST_SPARE if any(release.effort > GRID_VALUE_SECONDS for release, _ in self._upper) else SPARE
        while log_tail > -1e6:
            depth = self._depth(eps, log_tail) - spare - math.log(self._count)
            if depth >= log_tail:
                break
            log_tail *= DEEPER
        return log_tail

    def _depth(self, eps: float, log_tail: float) -> float:
        """Return about log delta, that of a Gaussian of the same mean and variance: a look ahead, which the result corrects."""
        mean = var = 0.0
        for release, r in self._upper:
            scale = release.scale(log_tail)
            mean, var = mean + r * scale.mean, var + r * scale.var
        return -max(0.0, eps - mean) ** 2 / (2 * var) if var > 0 else 0.0

    def bounds(self, eps: float) -> Interval:
        """Return a lower and an upper bound of the composed log hockey stick at eps."""
        if self._process != os.getpid():
            # after a fork the lock may be that of a thread that is not here
            self._lock, self._process = threading.RLock(), os.getpid()
        with self._lock:
            return self._known.of(eps, partial(self._bounds, eps))

    def account(self, eps: float) -> Account:
        """Return how the bounds at eps are formed; they are formed again if they are no longer kept."""
        eps = min(eps, self._farthest)
        self.bounds(eps)
        with self._lock:
            if eps not in self._steps:
                self._bounds(eps)
            step = self._steps[eps]
            log_tail, middle = self._tail(eps), self._middle(eps)
            product = self._product(step, log_tail, middle, -1)
            size = product.points(eps) if product.finite else 0
            return Account(step, size, product.tilt(eps) if product.finite else 0.0, log_tail, eps in self._adaptive)

    def near(self, log_delta: float) -> float | None:
        """Return an eps near which the composition may have that log delta: that of a Gaussian of its mean and variance."""
        if not self._spread > 0:
            return None
        # log of the tail at z times the usual share of it that delta is
        z = 0.0
        for _ in range(30):
            z = math.sqrt(max(0.0, -2 * (log_delta + math.log((1 + z * (self._spread + z)) * 2.5 / max(self._spread, 1e-9)))))
        return max(0.0, self._mean + z * self._spread)

    def _middle(self, eps: float) -> float:
        """Return the middle of the stretch about eps, 2 NEAR standard deviations wide; the first reaches down to -inf."""
        width = 2 * NEAR * self._spread
        place = max(0, math.ceil((eps - self._mean) / width - 0.5)) if width > 0 else 0
        return max(self._mean + place * width, 0.0)

    def _bounds(self, eps: float) -> Interval:
        if eps > self._farthest:
            # delta falls in eps
            return Interval(-math.inf, self.bounds(self._farthest).upper)
        low, high = self._refined(eps)
        # where the plain sides meet, no choice is left to gain
        if self._free is None or not high - low > self._rtol or not self._spread > 0 or eps > self._mean + RARE * self._spread:
            return Interval(low, high)
        better = self._chosen(self._free, eps)
        self._adaptive.of(eps, lambda: True)
        return Interval(max(low, better.lower), min(high, better.upper))

    def _chosen(self, free: AdaptiveChoice, eps: float) -> Interval:
        """Return both sides where the pair of one mechanism is chosen anew for each release."""
        log_tail, middle = self._tail(eps), self._middle(eps)
        guide = self._product(self.first_step, log_tail, middle, -1)
        if not guide.finite:
            # one release reveals everything: its mass at infinite loss is the whole bound already
            return Interval(-math.inf, 0.0)
        size = points(self._spread, 1.0, guide.tilt(eps), eps)
        known, times = self._upper[free.place]

        def answer(transforms: int, upper: bool) -> float:
            rtol, most = (max(self._rtol, APART), CHOSEN if upper else CHOSEN / 2) if known.blocks else (self._rtol, CHOSEN)
            # transforms that are longer than those of the plain sides take seconds each
            step = max(math.sqrt(0.6 * rtol / self._count) * self._spread, size * transforms / most, size / REFINED_POINTS)
            if step > 0.5 * self._spread / math.sqrt(self._count):
                return 0.0 if upper else -math.inf
            # powers of two: an answer depends on eps alone, and neighbouring eps share a grid
            step = 2.0 ** math.floor(math.log2(step))

            def adaptive_strategy() -> Adaptive:
                tick()

                def laws(releases: Releases) -> Laws:
                    return [(self._law(one, 0.0, step, log_tail, middle, upper=upper), r) for one, r in releases]

                if not upper:
                    return Adaptive([laws(pair) for pair in free.pairs], free.times, laws(free.others), guide, upper=False)
                others = [pair for i, pair in enumerate(self._upper) if i != free.place]
                if known.blocks is None:
                    several = [laws([(one, 1)]) for one in known.attained]
                else:
                    listed = known.blocks.laws(self._placed(known, log_tail, middle)[0])
                    several = [[(atoms.law(0.0, step, upper=True), 1)] for atoms in listed]
                return Adaptive(several, times, laws(others), guide, upper=True)

            releases = [*self._upper, *(pair for pairs in free.pairs for pair in pairs)]
            try:
                found = self._games.of((step, log_tail, self._asked(releases, step, log_tail, middle), upper), adaptive_strategy)
            except TooLongError:
                # a few losses lie too many grid steps away: the bounds without a choice stand
                return 0.0 if upper else -math.inf
            return found.log_delta(eps)

        below, above = self._transforms(free)
        return Interval(answer(below, False) if free.pairs else -math.inf, answer(above, True))

    def _transforms(self, free: AdaptiveChoice) -> tuple[int, int]:
        """How many transforms the best adaptive choice takes, from below and from above."""
        known, times = self._upper[free.place]
        # two transforms for every law; the first of them is the same for all choices
        below = free.times * (1 + sum(2 * sum(r for _, r in pair) - 1 for pair in free.pairs)) + 2 * sum(r for _, r in free.others)
        return below, times * (1 + known.choices) + 2 * (self._count - times)

    def _law(
        self, release: DominatingPairInfo, anchor: float, step: float, log_tail: float, middle: float, *, upper: bool
    ) -> GridPLD:
        placed = self._placed(release, log_tail, middle) if release.sparing(step, log_tail) else None
        return release.law(anchor, step, log_tail, placed, upper=upper)

    def _refined(self, eps: float) -> Interval:
        finer, final = 0, False
        found: Interval | None = None
        while True:
            step = math.ldexp(self.first_step, -finer)
            try:
                low, high, slope = self._on_grid(step, eps)
            except TooLongError:
                if found is not None:
                    return found
                if finer < -COARSER:
                    raise
                finer, final = finer - 1, True
                continue
            self._steps[eps] = step
            gap = high - low
            if found is not None:
                last = found[1] - found[0]
                found = Interval(max(low, found[0]), min(high, found[1]))
                if not gap < 0.8 * last:
                    # no better on a finer grid: it is not the grid that keeps the sides apart
                    return found
            found = found or Interval(low, high)
            met = gap <= max(slope * max(eps, self._spread), 1.0) * self._rtol
            room = finer < REFINEMENTS and step > 40 * self._spread / REFINED_POINTS
            if met or final or not self._tight or self._lattice is not None or not room:
                return found
            finer += 1

    def _on_grid(self, step: float, eps: float) -> tuple[float, float, float]:
        """Return both sides on that grid, and how fast log delta falls there."""
        log_tail, middle = self._tail(eps), self._middle(eps)
        while True:
            above = self._product(step, log_tail, middle, -1)
            high, slope = above.log_delta(eps)
            if above.log_rest <= high - 25 or log_tail <= -1e6:
                break
            deeper = self._product(step, log_tail * DEEPER, middle, -1)
            if not deeper.log_rest < above.log_rest - 1:
                break
            log_tail *= DEEPER
        below = [self._product(step, log_tail, middle, i).log_delta(eps)[0] for i in range(len(self._lower))]
        if not below:
            for release, r in self._tested:
                if release.convex and r > 1:
                    below.append(log_repeated(self._placed(release, log_tail, middle)[0], r, eps))
        return max(below, default=-math.inf), high, slope

    def _placed(self, release: DominatingPairInfo, log_tail: float, middle: float) -> tuple[SampledProfile, SampledProfile]:
        # some goal even where nothing is known of the spread; where no law bounds from below the sides never meet
        rtol = self._rtol if self._lower else max(self._rtol, LOOSE)
        goal = max(0.25 * rtol * max(middle - NEAR * self._spread, self._spread), LEAST_GOAL) / self._count
        return release.refined(log_tail, self._theta(middle), goal)

    @cached_property
    def coarse(self) -> bool:
        """Whether the first grid is far wider than what a single release spreads: its bounds say nothing then."""
        if self._lattice is not None:
            return False
        spreads = [math.sqrt(release.scale(FIRST_TAIL).var) for release, _ in self._upper]
        return any(self.first_step > 4 * spread > 0 for spread in spreads)

    @cached_property
    def _mean(self) -> float:
        return sum(r * release.scale(FIRST_TAIL).mean for release, r in self._upper)

    @cached_property
    def _spread(self) -> float:
        return math.sqrt(sum(r * release.scale(FIRST_TAIL).var for release, r in self._upper))

    @cached_property
    def _farthest(self) -> float:
        """The largest eps that is asked of a grid."""
        losses = sum(r * release.scale(FIRST_TAIL).high for release, r in self._upper)
        pure = sum(r * release.pure for release, r in self._upper)
        return min(FARTHEST * max(1.0, losses, pure if pure < math.inf else 0.0), MOST_EPS)
