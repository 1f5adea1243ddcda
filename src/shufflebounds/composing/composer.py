"""Releases composed on a grid that is refined until its two sides meet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from shufflebounds._types import FloatArray
from shufflebounds.composing.law import Law, Listed, Stick, TooLongError, _grid, connect, envelope, reach
from shufflebounds.composing.product import Product

__all__ = ["Composer", "Release"]

FIRST_TAIL, DEEPER = -60.0, 2.5
"""Logarithm of the mass above the listed losses, and by how much it deepens where that matters."""

SPARE = 45.0
"""How far, in logarithms, the unlisted mass must stay below delta."""

MOST_KNOTS = 2**18
"""Finer grids take their knots wider apart in the tails."""

REFINEMENTS, COARSER = 8, 6
"""How often the grid may be halved, and doubled where its transform would be too long."""

REMEMBERED = 2**14
"""Answers kept."""

CHEAP_POINTS, REFINED_POINTS = 2**17, 2**20
"""A grid starts with at least so many points, and is refined to about so many."""

MOST_TRIED = 2**14
"""Steps tried, where several mechanisms have atoms that should lie on one grid."""

TIED = 1e-9
"""An atom so far from the grid, in steps, counts as on it."""


class _Remembered:
    """A stick that keeps its last answer: both sides of a law ask for the same points."""

    def __init__(self, stick: Stick) -> None:
        self._stick = stick
        self._last: tuple[FloatArray, tuple[FloatArray, FloatArray]] | None = None

    def __call__(self, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        last = self._last
        if last is None or not np.array_equal(last[0], eps):
            last = self._last = (eps, self._stick(eps))
        return last[1]


@dataclass(frozen=True, eq=False)
class Release:
    """One mechanism by its hockey stick in both directions, or by its outcomes.

    Parameters
    ----------
    stick, reverse : callable
        Lower and upper log hockey stick at eps >= 0 of the pair and of the pair in the other order; the same object where
        they are equal.
    pure : float
        No loss lies above, inf if that is not known.
    listed : Listed, optional
        The outcomes themselves.
    lattice : tuple of two floats, optional
        Anchor and spacing of a lattice near which the heaviest losses lie.
    merged : callable, optional
        Given anchor and step of a grid, its outcomes with those of a density merged into one around every grid point: what
        bounds from below where atoms stand beside a density, and delta cannot tell them apart.
    """

    stick: Stick
    reverse: Stick
    pure: float = math.inf
    listed: Listed | None = None
    lattice: tuple[float, float] | None = None
    merged: Callable[[float, float], Listed] | None = None

    @property
    def on_lattice(self) -> bool:
        """Whether all atoms lie on one lattice."""
        two = self.listed is not None and self.listed.loss.size <= 2
        return two or self.merged is not None or (self.listed is not None and self.lattice is not None)

    @cached_property
    def _sticks(self) -> tuple[Stick, Stick]:
        first = _Remembered(self.stick)
        return first, first if self.reverse is self.stick else _Remembered(self.reverse)

    @cached_property
    def _scales(self) -> dict[float, tuple[float, float, float, float, float]]:
        return {}

    def scale(self, log_tail: float) -> tuple[float, float, float, float, float]:
        """Return the lowest and the highest loss that matter, mean and variance, and how far apart the sides are."""
        if log_tail not in self._scales:
            self._scales[log_tail] = self._scale(log_tail)
        return self._scales[log_tail]

    def _scale(self, log_tail: float) -> tuple[float, float, float, float, float]:
        if self.listed is not None:
            p, x = np.exp(self.listed.log_p), self.listed.loss
            if not x.size:
                return 0.0, 0.0, 0.0, 0.0, 0.0
            mean = float(p @ x)
            return float(x[0]), float(x[-1]), mean, float(p @ (x - mean) ** 2), 0.0
        high = reach(self.stick, log_tail, min(self.pure, 1e5))
        low = high if self.reverse is self.stick else reach(self.reverse, FIRST_TAIL, 1e5)
        near = np.geomspace(1e-6, 1, 120)
        index = np.concatenate([-low * near[::-1], [0.0], high * near])
        right, left = self.stick(high * near), self.reverse(low * near)
        rough = envelope(index, self.stick, self.reverse)
        lower, upper = np.concatenate([right[0], left[0]]), np.concatenate([right[1], left[1]])
        apart = upper[lower > -np.inf] - lower[lower > -np.inf]
        # infinite losses stand far beyond the others
        inside = (rough.loss >= -1.01 * low) & (rough.loss <= 1.01 * high)
        p, x = np.exp(rough.log_p[inside]), rough.loss[inside]
        mean = float(p @ x)
        return -low, high, mean, float(p @ (x - mean) ** 2), float(np.median(apart)) if apart.size else 0.0

    def _index(self, anchor: float, step: float, log_tail: float) -> NDArray[np.int64]:
        """Grid points at which the hockey stick is asked for."""
        low, high, mean, var, apart = self.scale(log_tail)
        sigma = math.sqrt(var)
        # finer knots than the values can resolve would only follow their errors
        stride = max(1, round(math.sqrt(8 * apart) * sigma / step))
        first, last = math.floor((low - anchor) / step) - 1, math.ceil((high - anchor) / step) + 1
        first, last = min(first, math.floor(-anchor / step) - 2), max(last, math.ceil(-anchor / step) + 2)
        if (last - first) / stride <= MOST_KNOTS:
            center = round(-anchor / step)
            return center + stride * np.arange((first - center) // stride, -((center - last) // stride) + 1)
        reach_down, reach_up = (round(s * MOST_KNOTS / 3) * stride for s in (-1, 1))
        center = round((mean - anchor) / step)
        runs = [np.arange(max(first, center + reach_down), min(last, center + reach_up) + 1, stride)]
        growth = stride * np.cumsum(np.maximum(1, np.round(1.01 ** np.arange(3000.0))))
        up, down = runs[0][-1] + growth, runs[0][0] - growth
        runs = [down[down > first][::-1], *runs, up[up < last]]
        index = np.unique(np.concatenate([[first], *runs, [last]])).astype(np.int64)
        join = round(-anchor / step)
        if min(np.count_nonzero(index > join), np.count_nonzero(index < join)) < 2:
            # the two directions join at eps = 0, and each needs two points
            index = np.union1d(index, join + np.arange(-2, 3))
        return index

    def law(self, anchor: float, step: float, log_tail: float, *, upper: bool) -> Law:
        """Return the law on the grid, from above or from below."""
        if self.listed is not None:
            return self.listed.law(anchor, step, upper=upper)
        if self.merged is not None and not upper:
            return self.merged(anchor, step).law(anchor, step, upper=False)
        index = self._index(anchor, step, log_tail)
        if upper:
            return connect(index, anchor, step, *self._sticks)
        return envelope(_grid(anchor, step, index), *self._sticks).law(anchor, step, upper=False)


class Composer:
    """Two sides of the composed hockey stick.

    Parameters
    ----------
    upper : sequence of (Release, int)
        Releases whose composition bounds from above, and how often each.
    lower : sequence of sequences of (Release, int)
        Compositions each of which bounds from below.
    rtol : float
        The grid is refined until the sides are so close, relatively in eps.
    """

    def __init__(
        self, upper: Sequence[tuple[Release, int]], lower: Sequence[Sequence[tuple[Release, int]]], rtol: float
    ) -> None:
        self._upper, self._lower, self._rtol = upper, lower, rtol
        self._products: dict[tuple[float, float, int], Product] = {}
        self._known: dict[float, tuple[float, float]] = {}
        self._finer = 0
        self._final = False
        self._count = sum(r for _, r in upper)
        # where other laws bound from below, their distance is no matter of the grid
        self._tight = any(all(a is b for (a, _), (b, _) in zip(upper, side)) for side in lower)

    @cached_property
    def _lattice(self) -> float | None:
        """The spacing of the lattice that holds all losses exactly, if there is one and it is coarse enough."""
        sides = [*self._upper, *(pair for side in self._lower for pair in side)]
        listed = [release.listed for release, _ in sides]
        if any(one is None for one in listed):
            return None
        gaps = np.unique(np.concatenate([np.diff(one.loss) for one in listed if one is not None]))
        return _common_step(gaps)

    def _fitted(self, step: float) -> float:
        """At most the step, so that the losses of every mechanism whose atoms are known lie on a grid, or nearly."""
        hints = [(release, hint[1], r) for release, r in self._upper if (hint := self._hint(release)) and hint[1] >= step]
        if not hints:
            return step
        base = max(spacing for _, spacing, _ in hints)
        others = [(spacing, r) for release, spacing, r in hints if spacing < base and release.on_lattice]
        least = math.ceil(base / step * (1 - TIED))
        tried = base / (least + np.arange(1 + min(least // 2 + 8, MOST_TRIED) if others else 1))
        cost = np.zeros(tried.size)
        for spacing, r in others:
            # an atom beside the grid costs its distance times that of the atom which makes up for it
            away = np.abs(spacing / tried - np.round(spacing / tried))
            cost += r * spacing * tried * np.where(away > TIED, away, 0.0)
        return float(tried[np.argmin(cost)])

    @cached_property
    def _first_step(self) -> float:
        if self._lattice is not None:
            return self._lattice
        smooth = variance = 0.0
        spacings = []
        for release, r in self._upper:
            _, _, _, var, _ = release.scale(FIRST_TAIL)
            variance += r * var
            smooth += r
            hint = self._hint(release)
            if hint and hint[1] > 0:
                spacings.append(hint[1])
        if not variance > 0:
            return 1.0
        # each side adds about step^2/6 to a variance, and eps moves by half as much, relatively: ten times finer than asked
        step = math.sqrt(0.2 * self._rtol * variance / smooth)
        if not self._tight:
            # other laws bound from below, and their distance is far larger
            step *= 8
        if spacings:
            # between the kinks of a lattice errors do not average out; short transforms cost nothing
            step = min(step, 20 * math.sqrt(variance) / CHEAP_POINTS)
        step = max(step, 40 * math.sqrt(variance) / REFINED_POINTS)
        # laws without spread, whose variance is rounding; those below may have more
        sides = self._upper if self._tight else [*self._upper, *(pair for side in self._lower for pair in side)]
        step = max(step, max(max(abs(s) for s in release.scale(FIRST_TAIL)[:2]) for release, _ in sides) / REFINED_POINTS)
        return self._fitted(step)

    def _anchor(self, release: Release, step: float) -> float:
        """Where the release's grid starts: at its heaviest losses, or a spacing below where these would lie below the grid.

        A loss just above a grid point is cheap to move there from below, one just below it is not.
        """
        hint = self._hint(release)
        if hint is None:
            return 0.0
        anchor, spacing = hint
        if release.on_lattice and spacing >= step and spacing / step - round(spacing / step) > TIED:
            anchor -= spacing
        return anchor - step * round(anchor / step)

    @staticmethod
    def _hint(release: Release) -> tuple[float, float] | None:
        """Anchor and spacing of what the grid should hit: the heaviest losses, or both ends where these may be atoms."""
        hint = release.lattice or _own_lattice(release.listed)
        if hint is None and release.reverse is release.stick and release.pure <= 30 * math.sqrt(release.scale(FIRST_TAIL)[3]):
            return release.pure, 2 * release.pure
        return hint

    def _product(self, step: float, log_tail: float, side: int) -> Product:
        """Product of the upper side, -1, or of a lower one."""
        key = (step, log_tail, side)
        if key not in self._products:
            releases = self._upper if side < 0 else self._lower[side]
            laws = []
            for release, _ in releases:
                laws.append(release.law(self._anchor(release, step), step, log_tail, upper=side < 0))
            self._products[key] = Product(laws, [r for _, r in releases], upper=side < 0)
        return self._products[key]

    def _tail(self, eps: float) -> float:
        """How deep the laws must be listed for delta at eps."""
        log_tail = FIRST_TAIL
        if all(release.listed is not None for release, _ in self._upper):
            return log_tail
        while log_tail > -1e6:
            depth = self._depth(eps, log_tail) - SPARE - math.log(self._count)
            if depth >= log_tail:
                break
            log_tail *= DEEPER
        return log_tail

    def _depth(self, eps: float, log_tail: float) -> float:
        """About log delta: a Gaussian's, from mean and variance; a look ahead only, corrected by the result."""
        mean = var = 0.0
        for release, r in self._upper:
            _, _, m, v, _ = release.scale(log_tail)
            mean, var = mean + r * m, var + r * v
        return -max(0.0, eps - mean) ** 2 / (2 * var) if var > 0 else 0.0

    def bounds(self, eps: float) -> tuple[float, float]:
        """Return a lower and an upper bound of the composed log hockey stick at eps; asked again, the same ones."""
        while eps not in self._known:
            try:
                found = self._bounds(eps)
            except TooLongError:
                if self._finer < -COARSER:
                    raise
                self._finer -= 1
                self._final = True
                continue
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            # the grid is refined as questions come: an eps that was found by search must keep the delta it was found with
            self._known[eps] = found
            return found
        return self._known[eps]

    def _bounds(self, eps: float) -> tuple[float, float]:
        log_tail = self._tail(eps)
        found: tuple[float, float] | None = None
        while True:
            step = math.ldexp(self._first_step, -self._finer)
            product = self._product(step, log_tail, -1)
            high, slope = product.log_delta(eps)
            if product.log_rest > high - 25 and log_tail > -1e6:
                deeper = self._product(step, log_tail * DEEPER, -1)
                if deeper.log_rest < product.log_rest - 1:
                    log_tail *= DEEPER
                    continue
            low = max((self._product(step, log_tail, i).log_delta(eps)[0] for i in range(len(self._lower))), default=-math.inf)
            gap = high - low
            if found is not None:
                last = found[1] - found[0]
                found = max(low, found[0]), min(high, found[1])
                if not gap < 0.8 * last:
                    # no better: the grid is not what keeps the sides apart
                    self._finer -= gap >= last
                    self._final = True
                    return found
            scale = max(eps, self._spread)
            met = gap <= max(slope * scale, 1.0) * self._rtol
            room = self._finer < REFINEMENTS and step > 40 * self._spread / REFINED_POINTS
            if met or self._final or not self._tight or self._lattice is not None or not room:
                return found or (low, high)
            found = low, high
            self._finer += 1
            # the products of coarser grids are of no more use, but for the last
            self._products = {key: value for key, value in self._products.items() if key[0] == step}

    @cached_property
    def coarse(self) -> bool:
        """Whether the first grid is far wider than what a single release spreads: its bounds say nothing then."""
        if self._lattice is not None:
            return False
        spreads = [math.sqrt(release.scale(FIRST_TAIL)[3]) for release, _ in self._upper]
        return any(self._first_step > 4 * spread > 0 for spread in spreads)

    @cached_property
    def _spread(self) -> float:
        return math.sqrt(sum(r * release.scale(FIRST_TAIL)[3] for release, r in self._upper))


def _common_step(gaps: FloatArray) -> float | None:
    """The largest step of which all gaps are multiples, up to rounding; None where it is far smaller than they are."""
    gaps = gaps[gaps > 0]
    if not gaps.size or gaps.size > 4096:
        return None
    tiny = 1e-12 * float(gaps[-1])
    step = float(gaps[0])
    for gap in gaps:
        rest = float(gap)
        while rest > tiny:
            step, rest = rest, math.fmod(step, rest)
            rest = min(rest, step - rest) if rest > tiny else 0.0
        if step < float(gaps[-1]) / 4096:
            return None
    # the Euclidean remainders gather rounding: the largest gap gives the step back
    return float(gaps[-1]) / round(float(gaps[-1]) / step)


def _own_lattice(listed: Listed | None) -> tuple[float, float] | None:
    """Anchor and spacing at the heaviest of listed outcomes."""
    if listed is None or not listed.loss.size:
        return None
    place = int(np.argmax(listed.log_p))
    gaps = np.diff(listed.loss[max(place - 1, 0) : place + 2])
    gaps = gaps[gaps > 0]
    return float(listed.loss[place]), float(gaps.min()) if gaps.size else 0.0
