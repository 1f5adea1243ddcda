"""Bounds of E max(0, S - K) for a sum S of independent non-negative variables on a grid.

The distribution of one variable is exponentially tilted and its convolution power computed by FFT.

The error of the grid is controlled by the caller, who passes a larger and a smaller distribution in the increasing convex order.
All further errors are bounded here: those of the transform, of the truncation range and of the exponents.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.fft
from numpy.typing import NDArray

from shufflebounds._core import _losses
from shufflebounds._types import ULP, FloatArray
from shufflebounds.composing.window import Tails

__all__ = ["GridLaw", "SumLaw", "contracted", "spread"]

NEAR = 4.0
"""A transform is used for levels within NEAR standard deviations of the mean of its tilted sum. A larger value means fewer
transforms and larger errors."""

OUTSIDE, LONG, OUTSIDE_LONG, MARGIN, ENOUGH = -40.0, 2**17, -30.0, 64, -18.0
"""OUTSIDE: log of the tilted mass that may be truncated at either end; OUTSIDE_LONG: the same if the range would have more than
LONG points; ENOUGH: the same if it would then have more than MOST_POINTS. MARGIN: extra points at either end."""

LOWEST = 0.25
"""Smallest tilt, in units of 1/(standard deviation of the sum). Without a tilt, errors at all points would add up without decay."""

MOST_POINTS = 2**22

NEARLY = 1e-8
"""A mean at most this distance, in steps, below a grid point is treated as this grid point; callers move their levels by as
much."""

_NEAR_HEAVIEST = 20
"""Number of cells on either side of the heaviest one in which `_exchanged` looks for the equation to omit."""

MOST_BLOCKS = 64
"""Largest number of transforms that a sum keeps."""


@dataclass(frozen=True, eq=False)
class GridLaw:
    """A distribution with masses at anchor + step k, k = 0, 1, ..."""

    anchor: float
    step: float
    mass: FloatArray

    @property
    def values(self) -> FloatArray:
        """The grid points."""
        return np.asarray(self.anchor + self.step * np.arange(self.mass.size))

    def reversed(self) -> GridLaw:
        """Return the distribution of minus the number."""
        return GridLaw(-(self.anchor + self.step * (self.mass.size - 1)), self.step, self.mass[::-1].copy())


def spread(anchor: float, step: float, size: int, values: FloatArray, mass: FloatArray) -> GridLaw:
    """Return the distribution with each mass split between its two neighbouring grid points, with the same mean.

    It is larger in the convex order.
    """
    place = (values - anchor) / step
    left = np.clip(np.floor(place), 0, size - 2)
    share = np.clip(place - left, 0.0, 1.0)
    left = left.astype(np.intp)
    out = np.bincount(left, weights=mass * (1 - share), minlength=size)
    out = out + np.bincount(left + 1, weights=mass * share, minlength=size)
    return GridLaw(anchor, step, np.asarray(out, dtype=np.float64))


def contracted(anchor: float, step: float, mass: FloatArray, means: FloatArray) -> GridLaw:
    """Return a distribution on the grid, smaller in the increasing convex order, of masses with one given mean in each cell.

    At every grid point, parts of the masses of the two cells beside it are merged into one mass with this point as their mean. The
    remainder of a cell's mass is moved down to its lower end.
    """
    grid = anchor + step * np.arange(mass.size)
    inside = np.clip(means - grid, 0.0, step)
    after, before = inside[1:], (step - inside)[:-1]
        # means within NEARLY of the next grid point are treated as this point
    at_end = inside >= step * (1 - NEARLY)
    moment = _exchanged(mass, inside / step, (inside <= 0.0) | at_end)
    moment *= step
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(after > 0, moment[1:-1] / after, 0.0)
        right = np.where(before > 0, moment[1:-1] / before, 0.0)
        used = np.append(0.0, left) + np.append(right, 0.0)
        fits = np.where(used > mass, mass / used, 1.0)
    kept = np.minimum(fits[:-1], fits[1:])
    kept[(after <= 0) | (before <= 0)] = 0.0
    left, right = left * kept, right * kept
    rest = np.maximum(mass - (np.append(0.0, left) + np.append(right, 0.0)) * (1 + 8 * ULP), 0.0)
    out = np.append(np.where(at_end, 0.0, rest), 0.0)
    out[1:] += np.where(at_end, rest, 0.0)
    out[1:-1] += left + right
    return GridLaw(anchor, step, out)


def _exchanged(mass: FloatArray, inside: FloatArray, free: NDArray[np.bool_]) -> FloatArray:
    """Return, for every grid point, the moment in steps that the two cells beside it contribute to the mass merged at the point.

    A cell k with mean at `inside` of its width gives M[k]/inside to its left end and M[k + 1]/(1 - inside) to its right end, at
    most its mass in total. Setting these equal to its mass gives one moment after the other from either end. Errors alternate in
    sign and shrink where masses grow, so both recursions run up to the heaviest cell. There, one equation is omitted: that of a
    free cell, which lies on the grid and need not give anything, or of the cell with the smallest remainder.
    """
    size = mass.size

    def chain(mass: list[float], near: list[float], far: list[float], free: list[bool], last: int) -> list[float]:
        # the moments at the right ends of the cells
        out, moment = [], 0.0
        for k in range(last):
            if free[k]:
                # about half of what the next cell can give
                moment = 0.5 * (1 - far[k + 1]) * mass[k + 1] if k + 1 < len(mass) and not free[k + 1] else 0.0
            else:
                moment = max(0.0, far[k] * (mass[k] - moment / near[k]))
            out.append(moment)
        return out

    near, back = inside.tolist(), (1 - inside).tolist()
    heaviest = int(np.argmax(mass))
    low, high = max(heaviest - _NEAR_HEAVIEST, 0), min(heaviest + _NEAR_HEAVIEST, size - 1)
    given, held = mass.tolist(), free.tolist()
    right_of = np.array([0.0, *chain(given, near, back, held, high)])
    left_of = np.array([0.0, *chain(given[::-1], back[::-1], near[::-1], held[::-1], size - 1 - low)])[::-1]
    # cells low .. high: the parts requested by the left recursion at their left ends and by the right one at their right ends
    cells = np.arange(low, high + 1)
    first, second = right_of[cells], left_of[cells - low]
    with np.errstate(divide="ignore", invalid="ignore"):
        given_up = np.where(second > 0, second / (1 - inside[cells]), 0.0)
        rest = mass[cells] - np.where(first > 0, first / inside[cells], 0.0) - given_up
    lost = np.where(free[cells], 0.0, np.where(rest >= 0, rest * inside[cells], -rest))
    best = int(cells[np.argmin(lost)])
    return np.concatenate([right_of[: best + 1], left_of[best - low :]])


@dataclass(frozen=True, eq=False)
class _Block:
    """Tilted tails for a range of levels, with bounds of their rounding error and of the truncated mass."""

    low: float
    high: float
    theta: float
    log_scale: float
    origin: float
    whole: bool
    tail: FloatArray
    second: FloatArray
    error: float
    outside: float


class SumLaw:
    """The sum of `times` independent numbers with the same distribution, for evaluating its stop-loss transform."""

    def __init__(self, law: GridLaw, times: int) -> None:
        held = np.flatnonzero(law.mass > 0)
        first = int(held[0]) if held.size else 0
        self.step, self.times = law.step, times
        self._index = (held - first).astype(np.float64)
        self._mass = law.mass[held]
        self._base = law.anchor + law.step * first
        self.total = float(self._mass.sum())
        self.mean = times * (self._base + self.step * float(self._mass @ self._index) / self.total) if held.size else 0.0
        self._blocks: list[_Block] = []
        if held.size:
            self._starts = _groups(self._index, int(np.argmax(self._mass)))
            last = np.append(self._starts[1:], self._index.size) - 1
            self._ends = self._index[self._starts], self._index[last]
            self._rough_mass = np.add.reduceat(self._mass, self._starts)
            self._rough_index = np.add.reduceat(self._mass * self._index, self._starts) / self._rough_mass

    def _rough(self, theta: float) -> tuple[float, float]:
        """Return approximate mean and variance of one tilted number, in steps."""
        power = theta * self.step * self._rough_index
        weight = self._rough_mass * np.exp(power - power.max())
        weight /= weight.sum()
        mean = float(weight @ self._rough_index)
        return mean, float(weight @ (self._rough_index - mean) ** 2)

    def _growth(self, theta: float, mean: float) -> float:
        """Return the approximate cumulant of one number minus its mean."""
        power = theta * self.step * (self._rough_index - mean)
        top = float(power.max())
        return top + math.log(float(self._rough_mass @ np.exp(power - top)) / self.total)

    def _tilted(self, theta: float) -> tuple[FloatArray, float, float, float]:
        """Return the normalised tilted masses, the log of their sum before, and mean and variance in steps."""
        power = theta * self.step * self._index
        top = float(power.max())
        weight = self._mass * np.exp(power - top)
        total = float(weight.sum())
        weight /= total
        mean = float(weight @ self._index)
        return weight, top + math.log(total), mean, float(weight @ (self._index - mean) ** 2)

    def _tilt(self, level: float) -> float:
        """Return the theta at which the mean of the sum is about the level, or the smallest tilt if that is larger."""
        goal = (level / self.times - self._base) / self.step
        mean, var = self._rough(0.0)
        least = LOWEST / (self.step * math.sqrt(max(var, 1e-12) * self.times))
        # a few values far above the mean may have all the tilted mass at a smaller tilt already
        while self.times * self._growth(least, mean) > 1:
            least /= 1.5
        if mean >= goal:
            return least
        low, high = 0.0, 1.0 / self.step
        goal = min(goal, float(self._index[-1]) - 1e-3)
        while self._rough(high)[0] < goal and high < 2.0**60 / self.step:
            low, high = high, 2 * high
        for _ in range(50):
            middle = (low + high) / 2
            mean, var = self._rough(middle)
            if abs(mean - goal) * self.times <= 0.05 * math.sqrt(self.times * max(var, 1e-12)):
                low = high = middle
                break
            low, high = (middle, high) if mean < goal else (low, middle)
        return max((low + high) / 2, least)

    def _block(self, level: float) -> _Block:
        theta = self._tilt(level)
        weight, log_total, mean, var = self._tilted(theta)
        r, deviation = self.times, math.sqrt(max(self.times * var, 0.25))
        support = r * int(self._index[-1]) + 1
        tails = Tails([(weight, self._index, r)], r * mean, deviation)
        for limit, most in ((OUTSIDE, LONG), (OUTSIDE_LONG, MOST_POINTS), (ENOUGH, MOST_POINTS)):
            down, up = tails.reach(-1, limit), tails.reach(1, limit)
            if down + up < most - 2 * MARGIN:
                break
        first = math.floor(r * mean - down) - MARGIN
        size = math.ceil(r * mean + up) + MARGIN - first
        outside = 2 * math.exp(limit) * (1 + 1e-6)
        if size > MOST_POINTS:
            first, size, outside = math.floor(r * mean) - MOST_POINTS // 2, MOST_POINTS, 1.0
        if size >= support:
            first, size, outside = 0, support, 0.0
        size = scipy.fft.next_fast_len(size, real=True)
        values, error = _power(weight, self._index, r, size)
        values = np.roll(values, -(first % size))
        tail, _ = _losses.tilted_hockey_stick(np.ascontiguousarray(values), 0.0, theta * self.step)
        second, _ = _losses.tilted_hockey_stick(np.ascontiguousarray(tail), 0.0, theta * self.step)
        center, far = r * (self._base + self.step * mean), NEAR * self.step * deviation
        # keep only the levels that the block is used for; a block below the smallest tilt is also used for its own level
        low, high = min(center - far, level), max(center + far, math.nextafter(level, math.inf))
        start = r * self._base + self.step * first
        left = min(max(math.floor((low - start) / self.step) - 2, 0), size - 1)
        right = min(max(math.ceil((high - start) / self.step) + 3, left + 2), size)
        return _Block(
            low, high, theta, r * log_total, start + self.step * left, right == size,
            tail[left:right].copy(), second[left:right].copy(), error, outside,
        )

    def _chernoff(self, levels: FloatArray) -> FloatArray:
        """Return an upper bound of log E max(0, S - K) by z <= e^(theta z)/(e theta), the least over 48 tilts."""
        deviation = math.sqrt(max(self.times * self._rough(0.0)[1], 0.25))
        rates = np.geomspace(LOWEST / deviation, 40.0, 48)
        power = np.multiply.outer(rates, self._ends[1])
        top = power.max(axis=1)
        log_total = top + np.log(np.exp(power - top[:, None]) @ self._rough_mass)
        base = self.times * (log_total * (1 + 1e-12) + 1e-14) - 1 - np.log(rates * self.step)
        gap = (levels - self.times * self._base) / self.step
        return np.asarray((base[:, None] - np.multiply.outer(rates, gap) * (1 - np.sign(gap) * 1e-12)).min(axis=0))

    def stop_loss(self, levels: FloatArray, *, upper: bool, floor: FloatArray | float = -math.inf) -> FloatArray:
        """Return a bound of log E max(0, S - K) at every level K; if the value is certainly below `floor`, a Chernoff bound."""
        if not self._mass.size:
            return np.full(levels.size, -np.inf)
        out = self._chernoff(levels) if upper else np.full(levels.size, -np.inf)
        wanted = (out if upper else self._chernoff(levels)) > floor
        if wanted.any():
            out[wanted] = self._stop_loss(levels[wanted], upper)
        return out

    def _stop_loss(self, levels: FloatArray, upper: bool) -> FloatArray:
        order = np.argsort(levels, kind="stable")
        out = np.empty(levels.size)
        deviation = self.step * math.sqrt(max(self.times * self._rough(0.0)[1], 0.25))
        low = self.mean - 6 * deviation
        highest = self.times * (self._base + self.step * float(self._index[-1]))
        at = 0
        while at < levels.size:
            level = float(levels[order[at]])
            if level >= highest:
                out[order[at:]] = -np.inf
                break
            if level < low:
                stop = int(np.searchsorted(levels[order], low))
                out[order[at:stop]] = self._far_below(levels[order[at:stop]], low, upper)
                at = stop
                continue
            block = self._serving(level)
            stop = int(np.searchsorted(levels[order], max(block.high, math.nextafter(level, math.inf)), side="left"))
            stop = max(stop, at + 1)
            out[order[at:stop]] = self._read(block, levels[order[at:stop]], upper)
            at = stop
        return out

    def _far_below(self, levels: FloatArray, low: float, upper: bool) -> FloatArray:
        """Return bounds of log E max(0, S - level) for levels more than 6 sigma below the mean: about log(mean - level)."""
        whole = self.times * math.log(self.total)
        slack = ULP * self.times * 64 + 64 * ULP
        if upper:
            base = float(self._read(self._serving(low), np.array([low]), True)[0])
            # lowering the level by x raises the stop-loss transform by at most x times the total mass
            return np.asarray(np.logaddexp(base, whole + np.log(low - levels)) + slack)
        return np.asarray(whole + np.log(np.maximum(self.mean - levels, 1e-300)) - slack)

    def _serving(self, level: float) -> _Block:
        for block in self._blocks:
            if block.low <= level < block.high:
                return block
        block = self._block(level)
        self._blocks = [*self._blocks[1 - MOST_BLOCKS :], block]
        return block

    def _read(self, block: _Block, levels: FloatArray, upper: bool) -> FloatArray:
        theta, size = block.theta, block.tail.size
        # a level below the block has all of its values above; the grid points are rounded, so the level is moved
        off = 8 * ULP * (abs(block.origin) + self.step * size + self.times * abs(self._base))
        levels = levels - off if upper else levels + off
        place = np.maximum(np.ceil((levels - block.origin) / self.step), 0.0)
        inside = np.minimum(place, size - 1).astype(np.intp)
        x = np.maximum(block.origin + self.step * place - levels, 0.0)
        after = np.where(inside + 1 < size, block.second[np.minimum(inside + 1, size - 1)], 0.0)
        value = np.exp(-theta * x) * (x * block.tail[inside] + self.step * math.exp(-theta * self.step) * after)
        # the truncation range ends here: the value is 0, and the truncated mass is added below
        value = np.where(place > size - 1, 0.0, value)
        # an error in the mass at distance z above the level has the weight z e^(-theta z): the sum and the largest of these weights
        largest = 1 / (math.e * theta)
        shares = 1 / (theta * theta * self.step) + 2 * largest
        rough = block.error * shares + 64 * ULP * 32 * (np.abs(value) + self.step * np.abs(after))
        value = value + (1 if upper else -1) * (rough + block.outside * largest)
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(value, 0.0))
        base = self.times * self._base
        loss_error = ULP * (16 + 64 * self.times + 8 * (abs(block.log_scale) + theta * (np.abs(levels) + abs(base))))
        return np.asarray(block.log_scale - theta * (levels - base) + logs + (loss_error if upper else -loss_error))


def _groups(index: FloatArray, heaviest: int) -> NDArray[np.intp]:
    """Return the starts of groups of points: single points around the heaviest, wider groups in proportion to their distance."""
    size = index.size
    if size <= 4096:
        return np.arange(size)
    far = np.unique(np.round(1024 * 1.003 ** np.arange(0, math.ceil(math.log(max(size / 1024, 2)) / math.log(1.003)))))
    near = np.arange(-1024, 1025)
    starts = heaviest + np.concatenate([-far, near, far]).astype(np.intp)
    return np.unique(np.append(0, starts[(starts >= 0) & (starts < size)]))


def _power(weight: FloatArray, index: FloatArray, times: int, size: int) -> tuple[FloatArray, float]:
    """Return the circular convolution power, and a bound of the absolute error of each point."""
    stage = 4 * ULP * (math.log2(size) + 2)
    folded = np.bincount(np.mod(index, size).astype(np.intp), weights=weight, minlength=size)
    spectrum = scipy.fft.rfft(folded)
    sizes = times * np.log(np.abs(spectrum) + stage)
    kept = sizes > -60
    part = spectrum[kept]
    heavy = np.exp(np.minimum(sizes[kept], 0.0))
    with np.errstate(divide="ignore"):
        growth = times * np.log1p(stage / np.abs(part))
    lost = float(np.exp(sizes[~kept]).sum())
    error = float((heavy * -np.expm1(-growth)).sum()) + lost + float(heavy.sum()) * (4 * ULP * times + stage)
    full = np.zeros(spectrum.size, dtype=np.complex128)
    full[kept] = part**times if times < 2 else np.exp(times * np.log(part))
    return scipy.fft.irfft(full, size), 2 * error / size
