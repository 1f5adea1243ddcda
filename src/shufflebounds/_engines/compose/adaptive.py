r"""Bounds for the best adaptive adversary, who chooses the pair of each release after seeing the losses of the earlier ones.

Each release has one of the pairs (P_o, Q_o), o = 1..m. Let L be the privacy loss of a release, E = e^eps, and h_s(E) the largest
hockey-stick divergence of s releases. Then

    h_0(E) = max(0, 1 - E),     h_s(E) = max_o mean over P_o of h_(s-1)(E e^-L),     h_s(0) = 1 (for infinite losses).

To see this, let S be a set of sequences of results. Then P(S) - E Q(S) is the sum, over the first result y, of P_o(y) (P(S | y) - E
e^-L(y) Q(S | y)). So after the result y the best strategy is that for E e^-L(y) in place of E. On a grid of x = ln E that contains
all losses, the recursion is a convolution followed by a pointwise maximum. The code computes f_s(x) = e^(theta x) h_s(e^x) for a
tilt theta. The distributions are then exponentially tilted by theta, the values of f_s are bounded, and their errors are small
relative to f_s near the eps for which theta was chosen. Every h_s is convex in E, hence a mixture of hockey-stick functions max(0,
1 - E/k). So distributions that dominate the pairs give an upper bound, and distributions that the pairs dominate give a lower
bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import Kept, kept
from shufflebounds._base.limits import CACHED_TABLES, NEGLIGIBLE, TABLE_SIZE, TINY
from shufflebounds._base.progress import tick
from shufflebounds._base.quadrature import capped_exp, log_sum
from shufflebounds._base.scipy_functions import fft
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._engines.compose.grid import COMPOSED, Grid
from shufflebounds._engines.compose.grid_product import NEAR, Product
from shufflebounds._engines.compose.steps import Releases
from shufflebounds._losses.atoms import GridPLD, TooLongError, union_probability

__all__ = ["Adaptive", "AdaptiveChoice"]

CHOSEN = 4e7
"""Largest total number of points of all Fourier transforms of an adaptive strategy; they take about two seconds. Raised: longer run
time. Lowered: a coarser grid, and less tight bounds."""

Laws = Sequence[tuple[GridPLD, int]]
"""Distributions of independent releases, each with its number of releases."""

SLOW = 1.5
"""Smallest exponential tilt, in units of 1/standard deviation of the total loss. The tilt is positive so that f = e^(theta x) h is
small for small x, where the grid begins. Raised: larger rounding errors near the mean. Lowered: a longer grid."""


class _Block(NamedTuple):
    """The values f(x) = e^(theta x) h(e^x) on a grid of x after all releases (module docstring), divided by e^scale.

    Entry i of the array `f` belongs to the grid point with index first + i, and has an error of at most `error`. In addition,
    cutting the grid off at its right end makes every h (not divided by e^scale) too small by at most e^right. `log_rest` is the log
    of the probability of infinite loss.
    """

    theta: float
    first: int
    f: FloatArray
    scale: float
    error: float
    right: float
    log_rest: float


class _Tilted(NamedTuple):
    """An exponentially tilted distribution of losses on the grid: masses divided by e^scale, with the sum `total`.

    `place` are the grid indices, `weight` the masses. `rough` bounds the relative error of a mass, and `lost` the truncated mass,
    divided by e^scale. `ahead` has the log moment generating function of the loss at theta and at several larger tilts.
    """

    place: FloatArray
    weight: FloatArray
    scale: float
    total: float
    lost: float
    rough: float
    ahead: FloatArray
    log_rest: float


class AdaptiveChoice(NamedTuple):
    """The mechanism whose pair of datasets may change from release to release.

    `place` is the index of the mechanism among the distributions of the upper bound. For the lower bound, the adversary takes one
    of `pairs` (each a product of pairs) in each of the `times` releases of the mechanism, and the releases in `others` have fixed
    pairs. `pairs` is empty if there is no adaptive lower bound.
    """

    place: int
    times: int
    pairs: Sequence[Releases]
    others: Releases


class Adaptive:
    """Bounds of the best adaptive strategy: one mechanism's pair of datasets may be chosen anew after each result.

    Parameters
    ----------
    grid : Grid
        The composition without adaptive choice.
    free : AdaptiveChoice
        The mechanism.
    """

    name: ClassVar[str] = "adaptive choice of the pair on a grid"

    def __init__(self, grid: Grid, free: AdaptiveChoice) -> None:
        self._grid, self._free = grid, free
        self._strategies: Kept[tuple[float, float, float, bool], _Strategy] = Kept(COMPOSED)

    def method(self, eps: float) -> list[str]:
        """Return the lines of :meth:`Composition.explain` about the method."""
        return self._grid.method(eps, adaptive=True)

    def bounds(self, eps: float) -> tuple[Interval, bool]:
        """Return bounds of log delta at eps, and True, because no other engine is tighter."""
        grid, free, spread = self._grid, self._free, self._grid.steps.spread
        log_tail, middle = grid.tail(eps), grid.middle(eps)
        guide = grid.product(grid.steps.first, log_tail, middle, -1, grid.rtol)
        if not guide.finite:
            # If all losses of one release are infinite, the bound without adaptive choice is already exact.
            return Interval(-math.inf, 0.0), True
        # The recursion has about size/step grid points.
        theta = max(guide.tilt(eps), SLOW / spread)
        size = eps + 20 * spread + NEGLIGIBLE / theta
        mechanism, times = grid.upper[free.place]

        def answer(transforms: int, upper: bool) -> float:
            rtol, most = grid.rtol, CHOSEN
            if mechanism.blocks:
                # The upper bound of a block of datasets is valid for all of them, so it is not tight. It leaves a relative gap of
                # eps above 5e-5, which no finer grid reduces.
                rtol, most = max(rtol, 5e-5), most if upper else most / 2
            # The step is large enough that the transforms have at most `most` points together, and none more than TABLE_SIZE.
            step = max(grid.steps.accurate(rtol), size * transforms / most, size / TABLE_SIZE)
            if step > 0.5 * spread / math.sqrt(grid.steps.count):
                return 0.0 if upper else -math.inf
            # The step is rounded down to a power of two, so that neighbouring values of eps share a grid.
            step = 2.0 ** math.floor(math.log2(step))

            def adaptive_strategy() -> _Strategy:
                tick()

                def laws(releases: Releases) -> Laws:
                    return [(grid.law(one, 0.0, step, log_tail, middle, grid.rtol, upper=upper), r) for one, r in releases]

                if not upper:
                    return _Strategy([laws(pair) for pair in free.pairs], free.times, laws(free.others), guide, upper=False)
                others = [pair for i, pair in enumerate(grid.upper) if i != free.place]
                if mechanism.blocks is None:
                    several = [laws([(one, 1)]) for one in mechanism.below]
                else:
                    listed = mechanism.blocks.laws(grid.placed(mechanism, log_tail, middle, grid.rtol)[0])
                    several = [[(atoms.law(0.0, step, upper=True), 1)] for atoms in listed]
                return _Strategy(several, times, laws(others), guide, upper=True)

            releases = [*grid.upper, *(pair for pairs in free.pairs for pair in pairs)]
            try:
                key = (step, log_tail, grid.eps_of_key(releases, step, log_tail, middle), upper)
                strategy = self._strategies.of(key, adaptive_strategy)
            except TooLongError:
                # If a loss is too many grid steps away from 0, only the bounds without adaptive choice remain.
                return 0.0 if upper else -math.inf
            return strategy.log_delta(eps)

        below, above = self._transforms()
        return Interval(answer(below, False) if free.pairs else -math.inf, answer(above, True)), True

    def _transforms(self) -> tuple[int, int]:
        """Return the number of Fourier transforms of the adaptive recursion, for the lower and the upper bound."""
        grid, free = self._grid, self._free
        mechanism, times = grid.upper[free.place]
        # Each distribution takes a forward and an inverse transform; all choices share the first forward transform of a release.
        below = free.times * (1 + sum(2 * sum(r for _, r in pair) - 1 for pair in free.pairs)) + 2 * sum(r for _, r in free.others)
        return below, times * (1 + mechanism.choices) + 2 * (grid.steps.count - times)


class _Strategy:
    """The best strategy on one grid. In some releases the adversary chooses one of several distributions; the other releases have
    fixed distributions.

    Parameters
    ----------
    choices : sequence of sequences of (GridPLD, int)
        The choices. Each is a product of distributions, whose offsets are multiples of the step.
    times : int
        Number of releases with a choice.
    fixed : sequence of (GridPLD, int)
        Releases without a choice. The upper bound assumes that they come first, so that all choices may depend on them; the lower
        bound assumes that they come last. So the upper and the lower bound are valid for any order.
    guide : Product
        A similar composition without choice; the tilts are taken from it.
    upper : bool
        Whether the result is an upper or a lower bound.
    """

    def __init__(
        self, choices: Sequence[Laws], times: int, fixed: Laws, guide: Product, *, upper: bool
    ) -> None:
        self.upper, self.step, self._guide = upper, choices[0][0][0].step, guide
        self._stages = (choices, times), ((fixed,), 1)
        self._releases = self._most(lambda law: 1.0)
        self.slack, self.loss_error = self._most(_slack), self._most(lambda law: law.loss_error)

    def _most(self, measure: Callable[[GridPLD], float]) -> float:
        """Return the sum over all releases of the largest value of `measure` among the choices."""
        return sum(r * max(sum(count * measure(law) for law, count in laws) for laws in several) for several, r in self._stages)

    def log_delta(self, eps: float) -> float:
        """Return the bound of the log hockey-stick divergence at eps."""
        outward = (-1 if self.upper else 1) * (self.loss_error + 4 * ULP * abs(eps))
        at = eps + outward
        if self.loss_error > self.step or abs(at) > 2.0**24 * self.step:
            # Rounding errors exceed the step of the grid, or eps is more than 2**24 steps from 0: return the trivial bound.
            return 0.0 if self.upper else -math.inf
        block = self._solved(self._guide.center(at))
        place = math.floor(at / self.step) - block.first
        if not 1 <= place < block.f.size - 2:
            return 0.0 if self.upper else -math.inf
        x = self.step * (block.first + place + np.arange(-1, 3))
        # `value` is h at the four grid points around `at`, multiplied by e^(theta * at - scale). Because h is convex in E, linear
        # interpolation in E is an upper bound, and linear extrapolation from two grid points on one side is a lower bound.
        rise = np.exp(block.theta * (at - x))
        raw = block.scale - block.theta * at
        value, error = block.f[place - 1 : place + 3] * rise, block.error * float(rise.max()) + capped_exp(block.right - raw)
        part = math.expm1(at - x[1]) / math.expm1(x[2] - x[1])
        if self.upper:
            total = (1 - part) * value[1] + part * value[2] + 2 * error
        else:
            # On a grid with a long step the line from the left multiplies the errors of its two values by up to e^step.
            grown = math.expm1(at - x[1]) / -math.expm1(x[0] - x[1])
            left = value[1] - (value[0] - value[1]) * grown - 8 * max(grown - 1, 0.0) * error
            ahead = math.exp(at - x[2]) * math.expm1(x[3] - at) / math.expm1(x[3] - x[2])
            total = max(left, value[3] + (value[2] - value[3]) * ahead, value[2]) - 8 * error
        if not total > 0:
            return block.log_rest + (self.slack if self.upper else -self.slack)
        slack = self.slack + ULP * (64 + (16 + self._releases) * abs(block.scale) + 16 * (abs(block.theta * at) + abs(raw)))
        side = 1 if self.upper else -1
        return float(np.logaddexp(raw + math.log(total), block.log_rest)) + side * slack

    def _tilted(self, law: GridPLD, theta: float, more: FloatArray, enough: float) -> _Tilted:
        loss, logs, log_rest = law.losses, law.log_p, law.log_rest
        # Rare losses far above `enough` would dominate the tilted distribution. The upper bound replaces them by infinite losses,
        # the lower bound by smaller losses.
        tails = np.logaddexp.accumulate(logs[::-1])[::-1]
        far = int(np.searchsorted(loss, enough, side="right"))
        if far < loss.size:
            ends = np.append(enough, loss[far:-1])
            cut = int(np.argmin(tails[far:] + theta * ends))
            log_rest = float(np.logaddexp(log_rest, tails[far + cut])) if self.upper else log_rest
            last = ([], []) if self.upper else ([ends[cut]], [tails[far + cut]])
            loss, logs = np.append(loss[: far + cut], last[0]), np.append(logs[: far + cut], last[1])
        if not loss.size:
            return _Tilted(np.zeros(0), np.zeros(0), 0.0, 0.0, 0.0, 0.0, np.full(more.size, -np.inf), log_rest)
        power = logs + theta * loss
        top = float(power.max())
        kept = power > top - NEGLIGIBLE - math.log(law.log_p.size)
        weight = np.exp(power[kept] - top)
        size = float(np.abs(logs[kept]).max() + np.abs(theta * loss[kept]).max())
        place = np.round(loss[kept] / self.step)
        moments = np.array([log_sum(power + step * loss) for step in more])
        return _Tilted(place, weight, top, float(weight.sum()), math.exp(-NEGLIGIBLE), ULP * (8 + size), moments, log_rest)

    @kept(CACHED_TABLES)
    def _solved(self, center: float) -> _Block:
        step = self.step
        # If all losses are equal, the standard deviation is 0; half a step replaces it.
        plain = max(math.sqrt(self._guide.moments(0.0)[2]), 0.5 * step)
        theta = max(self._guide.tilt(center), SLOW / plain)
        spread = max(math.sqrt(self._guide.moments(theta)[2]), 0.5 * step)
        # The moment generating function at each larger tilt theta + m, m in `more`, gives a Chernoff bound of the divergence h
        # beyond the right end of the grid. The grid ends where the smallest of these bounds is below e^-margin times the size of h
        # at `high`, the largest eps for which the result is used.
        more = np.append(0.0, np.geomspace(1.0, 16.0, 9) / spread)
        enough = step * math.floor((center + 3 / theta) / step)
        stages = [
            ([[(self._tilted(law, theta, more, enough), count) for law, count in laws] for laws in several], r)
            for several, r in self._stages
        ]
        # A choice that contains a distribution of infinite losses only is omitted from the recursion; `rests` has its mass at
        # infinite loss.
        finite = [([laws for laws in several if all(law.total > 0 for law, _ in laws)], r) for several, r in stages]
        margin = NEGLIGIBLE + 2 * math.log1p(theta * spread)
        first = math.floor(-margin / (theta * step)) - 2
        # Moment generating functions below 1 are replaced by 1, because `grown` must bound the divergence h after fewer releases,
        # too.
        grown = np.zeros(more.size)
        for several, r in finite:
            grown += r * np.max([0 * more, *(sum((n * law.ahead for law, n in laws), 0 * more) for laws in several)], axis=0)
        high = center + NEAR * spread
        last = max(float(((grown - grown[0] + margin + theta * high) / (theta + more)).min()), high + 4 * step)
        size = math.ceil(last / step) + 2 - first
        reach = max((float(np.abs(law.place).max()) for several, _ in finite for laws in several for law, _ in laws), default=0.0)
        length = fft.next_fast_len(size + int(min(reach, size)) + 1, real=True)
        x = step * (first + np.arange(size))
        with np.errstate(over="ignore"):
            f = np.exp(theta * np.minimum(x, 0.0)) * np.maximum(-np.expm1(x), 0.0)
        error = ULP * (2 * abs(theta * x[0]) + 8) * float(f.max())
        run = _Recursion(size, length, theta * x[0])
        state = _State(f, 0.0, error)
        # The recursion runs backwards in time: the distribution applied last is that of the first release.
        for several, r in finite if self.upper else finite[::-1]:
            if not several:
                state = state._replace(f=np.zeros(size), error=0.0)
                break
            for _ in range(r):
                state = run.best(state, several)
        # `rests` has the probabilities of infinite loss of the strategy with the largest such probability (upper bound) or with the
        # smallest one (lower bound).
        outermost = max if self.upper else min
        rests = [(outermost(union_probability([(law.log_rest, count) for law, count in laws]) for laws in several if laws), r)
                 for several, r in stages if any(several)]
        # The recursion omits sequences of losses that lead beyond the right end of the grid. This makes a computed h too small by
        # at most the largest h beyond the right end, and `right` is the log of a bound of this largest h. The factor 2 covers
        # rounded masses, whose sum may slightly exceed 1.
        right = float((grown - (theta + more) * x[-1]).min()) + math.log(2)
        return _Block(theta, first, state.f, state.scale, state.error + 8 * ULP * self._releases, right, union_probability(rests))


def _slack(law: GridPLD) -> float:
    return law.slack + abs(float(np.logaddexp.reduce(np.append(law.log_p, law.log_rest)))) + 16 * ULP


class _State(NamedTuple):
    """The function f_s of the recursion on the grid after s of the releases, divided by e^scale.

    `error` bounds the error of each value, if f_s is taken as 0 to the right of the grid.
    """

    f: FloatArray
    scale: float
    error: float


class _Recursion:
    """Applies the recursion of the module docstring, one release at a time, with a bound of all errors."""

    def __init__(self, size: int, length: int, left: float) -> None:
        # To the left of the grid, f <= e^(theta x) <= e^left.
        self._size, self._length, self._left = size, length, left
        self._spectra: dict[int, tuple[NDArray[np.complex128], float]] = {}
        self._last: tuple[FloatArray, NDArray[np.complex128]] | None = None

    def _spectrum(self, law: _Tilted) -> tuple[NDArray[np.complex128], float]:
        if id(law) not in self._spectra:
            near = np.abs(law.place) < self._size
            folded = np.bincount(
                np.mod(law.place[near], self._length).astype(np.intp), weights=law.weight[near], minlength=self._length
            )
            self._spectra[id(law)] = fft.rfft(folded), math.sqrt(float((folded**2).sum()))
        return self._spectra[id(law)]

    def best(self, state: _State, several: Sequence[Sequence[tuple[_Tilted, int]]]) -> _State:
        """Return the pointwise maximum over the choices of E f(x - L), f from `state` and L the sum of the losses of a choice."""
        states = []
        for laws in several:
            one = state
            for law, count in laws:
                for _ in range(count):
                    one = self._released(one, law)
            states.append(one)
        if len(states) == 1:
            return states[0]
        scale = max(one.scale for one in states)
        share = [math.exp(one.scale - scale) for one in states]
        f = share[0] * states[0].f
        for part, one in zip(share[1:], states[1:]):
            np.maximum(f, part * one.f, out=f)
        error = max(part * (one.error + ULP) for part, one in zip(share, states)) + TINY
        return _State(f, scale, error)

    def _released(self, state: _State, law: _Tilted) -> _State:
        """Return E f(x - L) at the grid points x, for f from `state` and a loss L with the distribution `law`.

        The values of f outside the grid are replaced by 0. The error bound includes the error that is due to values to the left of
        the grid, but not to the right.
        """
        stage = 4 * ULP * (math.log2(self._length) + 2)
        f, top = state.f, float(state.f.max())
        outside = capped_exp(self._left - state.scale)
        spectrum, norm = self._spectrum(law)
        out = fft.irfft(self._transform(f) * spectrum, self._length)[: self._size]
        # The error has five parts. The first three are rounding errors of the transforms (a bound of their mean square bounds them
        # at every point), errors of the masses, and the error of f.
        error = 4 * stage * norm * math.sqrt(float((f**2).sum())) + law.rough * law.total * top + state.error * law.total
        # The other two parts of the error are due to truncated losses, and to values of f to the left of the grid, which count as
        # 0.
        error += law.lost * top + (law.total + law.lost) * outside
        np.maximum(out, 0.0, out=out)
        error += TINY
        highest, scale = float(out.max()), state.scale + law.scale
        if highest > 0:
            scale += math.log(highest)
            out /= highest
            error /= highest
        return _State(out, scale, error)

    def _transform(self, f: FloatArray) -> NDArray[np.complex128]:
        # All choices share the transform of f.
        if self._last is None or self._last[0] is not f:
            self._last = f, fft.rfft(f, self._length)
        return self._last[1]
