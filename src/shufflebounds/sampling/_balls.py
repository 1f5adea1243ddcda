"""Random allocation by one stop-loss transform: E max(0, S - K) of the sum S of t likelihood ratios.

Small ratios lie on a grid, and their sum is a power by FFT. Of the few large ones (heavy tails: sigma below 1) none, one, two, ...
occur: their sums are kept in cells of a logarithmic grid, and each asks the small ones for the rest of the level.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from shufflebounds._core._binomial import binom_logsf
from shufflebounds._types import UNIT, FloatArray, Sides
from shufflebounds.sampling._ratios import Ratios
from shufflebounds.sampling._sums import GridLaw, SumLaw, contracted, spread

__all__ = ["Allocation"]

POINTS = 2**15
"""Most points of the grid of small ratios."""

FINE = 0.02
"""Step of that grid in standard deviations of one ratio."""

CUT = -75.0
"""Log mass under P beyond which large ratios are not resolved."""

LOWER_CUT = -300.0
"""Log mass under Q beyond which small ratios are not."""

BIG_CELLS, MOST_BIG = 300, 12
"""Cells of the logarithmic grid, and how many large ratios at once are told apart."""

NEGLIGIBLE = -70.0
"""Log chance of still more of them."""

CHUNK = 256
"""So many levels are asked at once."""

NEAR_ENOUGH = 8.0
"""Large ratios that add less than e^-8 of delta are only bounded."""

SPARE = 25.0
"""How far, in logarithms, a part of delta must lie below it to be bounded only."""

SNAP = 1e-7
"""An atom so near to the grid, in steps, is on it; the lower side pays for that."""


@dataclass(frozen=True, eq=False)
class _Side:
    """One side of the law of a ratio: small ones on a grid, large ones listed, and what infinity takes."""

    small: GridLaw
    big: tuple[FloatArray, FloatArray]      # values and masses under Q


class Allocation:
    """Both hockey sticks of (average over the steps of P in that step, Q in all), from the ratios of one step."""

    def __init__(self, law: Ratios, steps: int) -> None:
        self.law, self.steps = law, steps
        self._sums: dict[tuple[str, int], SumLaw] = {}

    @cached_property
    def _range(self) -> tuple[float, float]:
        """Losses between which the ratios are resolved."""
        if self.law.tail_q is None or self.law.tail_p is None:
            return float(self.law.loss[0]), float(self.law.loss[-1])
        if math.isfinite(self.law.high):
            return self.law.low, self.law.high
        at = np.linspace(-600.0, 600.0, 120_001)
        low = at[int(np.argmax(self.law.tail_q(at)[0] > LOWER_CUT)) - 1]
        high = at[int(np.argmax(self.law.tail_p(at)[1] < CUT))]
        return float(low), float(high)

    @cached_property
    def _grid(self) -> tuple[float, float, int]:
        """Anchor, step and size of the grid of small ratios."""
        low, high = self._range
        edges = np.linspace(low - 1e-9 * (1 + abs(low)), high, 8001)
        q, p, _ = self.law.cells(edges)
        value = np.exp(edges[1:])
        ratio = np.where(q > 0, p / np.where(q > 0, q, 1.0), value)
        mass, first, second = (np.cumsum(x) for x in (q, p, p * ratio))
        deviation = np.sqrt(np.maximum(second - first * first / np.maximum(mass, 1e-300), 0.0))
        fine = FINE * max(1.0, math.sqrt(self.steps) / 300)
        fits = value - math.exp(low) <= POINTS * fine * deviation
        fits[-1] |= bool(self.law.loss.size and self.law.tail_q is None)
        top = value[int(np.flatnonzero(fits)[-1])] if fits.any() else value[-1]
        step = fine * float(deviation[np.searchsorted(value, top)])
        step = max(step, (top - math.exp(low)) / POINTS)
        anchor = math.exp(low)
        if self.law.loss.size:
            # the atoms at both ends lie on the grid
            size = max(1, math.ceil((top - anchor) / step))
            return anchor, (top - anchor) / size, size + 1
        anchor = 0.0 if anchor < 100 * step else anchor
        return anchor, step, math.ceil((top - anchor) / step) + 1

    @cached_property
    def _lower_anchor(self) -> float:
        """Where the lower grid starts: at the mean of all that lies below its second point, which then lies on it."""
        anchor, step, _ = self._grid
        if self.law.tail_q is None or self.law.loss.size:
            return anchor
        low, high = -700.0, math.log(anchor + 1000 * step)
        for _ in range(100):
            middle = (low + high) / 2
            q, p, _ = self.law.cells(np.array([-1e3, middle]))
            lean = math.exp(middle) - (float(p[0] / q[0]) if q[0] > 0 else 0.0)
            low, high = (middle, high) if lean < step else (low, middle)
        return math.exp(low) - step

    def _cells(self, anchor: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Masses, means and errors of the density in the cells of the grid, and the grid; the first takes all below it."""
        _, step, size = self._grid
        grid: FloatArray = anchor + step * np.arange(size, dtype=np.float64)
        with np.errstate(divide="ignore"):
            edges = np.log(grid)
        edges[0] = -1e3
        smooth = Ratios(np.empty(0), np.empty(0), np.empty(0), self.law.tail_q, self.law.tail_p, self.law.low, self.law.high)
        q, p, blur = smooth.cells(edges)
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.where(q > 0, p / q, grid[:-1])
        return q, np.clip(means, grid[:-1], grid[1:]), blur, grid

    @cached_property
    def upper(self) -> _Side:
        """The larger law."""
        anchor, step, size = self._grid
        q, means, blur, grid = self._cells(anchor)
        lean = np.clip((means - grid[:-1]) / step + 4 * blur * grid[1:] / step, 0.0, 1.0)
        mass = q * (1 + blur)
        out = np.append(mass * (1 - lean), 0.0) + np.append(0.0, mass * lean)
        place = np.exp(self.law.loss)
        inside = place <= grid[-1] + SNAP * step
        atoms = spread(anchor, step, size, np.minimum(place[inside], grid[-1]), self.law.q[inside] * (1 + 64 * UNIT))
        return _Side(GridLaw(anchor, step, out + atoms.mass), self._big(float(grid[-1]), upper=True))

    @cached_property
    def lower(self) -> _Side:
        """The smaller law."""
        return self._lower(mirrored=False)

    @cached_property
    def mirrored(self) -> _Side:
        """The smaller law of minus the ratio."""
        return self._lower(mirrored=True)

    def _lower(self, *, mirrored: bool) -> _Side:
        _, step, size = self._grid
        anchor = self._lower_anchor
        q, means, blur, grid = self._cells(anchor)
        mass = q * (1 - blur)
        means = np.clip(means * (1 + (4 if mirrored else -4) * blur), grid[:-1], grid[1:])
        value = np.exp(self.law.loss)
        place = (value - anchor) / step
        inside = place <= size - 1 + SNAP
        near = np.round(place[inside])
        on = np.abs(place[inside] - near) <= SNAP
        atoms = np.bincount(near[on].astype(np.intp), weights=self.law.q[inside][on] * (1 - 64 * UNIT), minlength=size)
        if not on.all():
            cell = np.clip(np.floor(place[inside][~on]), 0, size - 2).astype(np.intp)
            held = self.law.q[inside][~on] * (1 - 64 * UNIT)
            total = np.bincount(cell, weights=held, minlength=size - 1)
            moment = np.bincount(cell, weights=held * value[inside][~on], minlength=size - 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                means = np.where(mass + total > 0, (mass * means + moment) / (mass + total), grid[:-1])
            mass, means = mass + total, np.clip(means, grid[:-1], grid[1:])
        if mirrored:
            law = contracted(-float(grid[-1]), step, mass[::-1], -means[::-1])
            return _Side(GridLaw(law.anchor, step, law.mass + atoms[::-1]), (np.empty(0), np.empty(0)))
        law = contracted(anchor, step, mass, means)
        return _Side(GridLaw(anchor, step, law.mass + atoms), self._big(float(grid[-1]), upper=False))

    def _big(self, start: float, *, upper: bool) -> tuple[FloatArray, FloatArray]:
        """Return values and masses of the ratios above the grid."""
        high = self._range[1]
        first = math.log(start)
        none = np.empty(0), np.empty(0)
        if not high > first * (1 + 1e-12) or (self.law.tail_q is None and not (self.law.loss > first).any()):
            return none
        edges = np.linspace(first, high, BIG_CELLS + 1)
        q, p, blur = self.law.cells(edges)
        held = q > 0
        return _condensed(np.exp(edges), q, np.where(held, p / np.where(held, q, 1.0), 0.0), blur, upper)

    def _sum(self, name: str, times: int) -> SumLaw:
        key = (name, times)
        if key not in self._sums:
            if name == "reversed":
                # from above a large ratio counts as the last one of the grid; from below it is left out
                law = self.upper.small.reversed()
                law.mass[0] += float(self.upper.big[1].sum())
            else:
                law = getattr(self, name).small
            self._sums[key] = SumLaw(law, times)
        return self._sums[key]

    def remove(self, eps: FloatArray) -> Sides:
        """Return log H_E(average || Q) at eps >= 0."""
        parts = np.split(eps, range(CHUNK, eps.size, CHUNK))
        lower, upper = (np.concatenate([self._remove(part, upper=upper) for part in parts]) for upper in (False, True))
        return Sides(lower, upper)

    def _remove(self, eps: FloatArray, *, upper: bool) -> FloatArray:
        t, sign = self.steps, 1 if upper else -1
        levels = t * np.exp(np.minimum(eps, 600.0)) * (1 - sign * 8 * UNIT)
        if not upper:
            levels = levels + t * SNAP * self._grid[1]
        side, rest = self.upper if upper else self.lower, -math.inf
        name = "upper" if upper else "lower"
        # about delta by one large ratio: what is far below it need not be known well
        alone = np.array([self.law.log_p_above(math.log1p(t * math.expm1(min(float(e), 600.0)))) for e in eps])
        floor = np.maximum(alone, CUT) + math.log(t) - SPARE
        out = self._sum(name, t).stop_loss(levels, upper=upper, floor=floor)
        values, mass = side.big
        chance = float(mass.sum())
        # what several of them add at most: the record's own step is large, or enough of the others are
        above = self.law.log_p_above(math.log(side.small.values[-1])) if chance > 0 else -math.inf
        if chance > 0 and float(np.logaddexp(above, _more(t, chance, 1))) < float(out.min()) - math.log(t) - NEAR_ENOUGH:
            chance, rest = 0.0, float(np.logaddexp(above, _more(t, chance, 1)))
        held, weight = np.zeros(1), np.ones(1)
        for j in range(1, min(MOST_BIG, t) + 1):
            if not chance > 0:
                break
            if _more(t, chance, j) < NEGLIGIBLE or j == MOST_BIG:
                rest = float(np.logaddexp(_more(t, chance, j), above + _more(t, chance, j - 1)))
                break
            sums, both = np.add.outer(held, values).ravel(), np.multiply.outer(weight, mass).ravel()
            edges = np.exp(np.linspace(math.log(sums.min()) - 1e-12, math.log(sums.max()) + 1e-12, BIG_CELLS + 1))
            held, weight = _binned(edges, sums, both, upper)
            ways = math.lgamma(t + 1) - math.lgamma(j + 1) - math.lgamma(t - j + 1)
            ways += sign * 1e-13 * (1 + math.lgamma(t + 1))
            if t - j == 0:
                with np.errstate(divide="ignore"):
                    inner = np.log(np.maximum(np.subtract.outer(held, levels), 0.0))
            else:
                asked = np.subtract.outer(-held, -levels)
                inner = self._sum(name, t - j).stop_loss(asked.ravel(), upper=upper, floor=np.tile(floor - ways, weight.size))
                inner = inner.reshape(asked.shape)
            with np.errstate(divide="ignore"):
                terms = inner + np.log(weight)[:, None]
            out = np.logaddexp(out, ways + np.logaddexp.reduce(terms, axis=0))
        out = out - math.log(t) + sign * 64 * UNIT
        if upper:
            cut = self.law.log_p_above(self._range[1]) if self.law.tail_p is not None else (
                math.log(self.law.endless) if self.law.endless > 0 else -math.inf)
            out = np.logaddexp(out, np.logaddexp(cut, rest))
        return np.minimum(out, 0.0)

    def add(self, eps: FloatArray) -> Sides:
        """Return log H_E(Q || average) at eps >= 0."""
        t = self.steps
        weight = eps - math.log(t)
        shift = t * SNAP * self._grid[1]
        levels, floor = -t * np.exp(-np.minimum(eps, 600.0)), LOWER_CUT + math.log(t)
        upper = self._sum("reversed", t).stop_loss(levels * (1 + 8 * UNIT), upper=True, floor=floor)
        lower = self._sum("mirrored", t).stop_loss(levels * (1 - 8 * UNIT) + shift, upper=False, floor=floor)
        lost = LOWER_CUT + 1 + math.log(t) if self.law.tail_q is not None and not math.isfinite(self.law.low) else -math.inf
        error = UNIT * (64 + 4 * np.abs(weight))
        # where all ratios must be small for the average to be: no level is then too low
        capped = t * self.law.log_q_below(math.log(t) - eps + 64 * UNIT * (1 + eps))
        high = np.minimum(np.logaddexp(weight + upper + error, lost), capped)
        return Sides(np.minimum(weight + lower - error, high), high)


def _more(trials: int, chance: float, least: int) -> float:
    """Log chance that at least so many of one less than the trials succeed."""
    if least > trials - 1:
        return -math.inf
    return float(binom_logsf(float(least - 1), float(trials - 1), min(chance, 1.0))) if least > 0 else 0.0


def _condensed(
    edges: FloatArray, q: FloatArray, means: FloatArray, blur: FloatArray, upper: bool
) -> tuple[FloatArray, FloatArray]:
    """Return masses in cells with one mean each, at their means (below) or at both ends of the cells (above)."""
    held = q > 0
    if not upper:
        values = np.clip(means * (1 - 4 * blur), edges[:-1], edges[1:])
        return values[held], (q * (1 - blur))[held]
    lean = np.clip((means * (1 + 4 * blur) - edges[:-1]) / np.diff(edges), 0.0, 1.0)
    mass = q * (1 + blur)
    out = np.append(mass * (1 - lean), 0.0) + np.append(0.0, mass * lean)
    return edges[out > 0], out[out > 0]


def _binned(edges: FloatArray, values: FloatArray, mass: FloatArray, upper: bool) -> tuple[FloatArray, FloatArray]:
    """Return values with masses gathered in cells."""
    cell = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)
    q: FloatArray = np.asarray(np.bincount(cell, weights=mass, minlength=edges.size - 1), dtype=np.float64)
    moment = np.bincount(cell, weights=mass * values, minlength=edges.size - 1)
    held = q > 0
    means = np.where(held, moment / np.where(held, q, 1.0), edges[:-1])
    return _condensed(edges, q, means, np.full(q.size, 256 * UNIT), upper)

