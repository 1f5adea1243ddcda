"""Bounds of E max(0, S - K) for levels K and a sum S of independent random variables whose values are points of a grid.

The summands are likelihood ratios of random allocation. For an upper bound the caller passes a distribution on the grid that is
larger in the increasing convex order than the distribution of a ratio, and for a lower bound a smaller distribution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import LARGEST, ON_GRID
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core import _losses
from shufflebounds._losses.tilted_sum import LEAST_TILT, Summand, TiltedSum

__all__ = ["GridLaw", "StopLoss", "contracted"]

LOWEST = 6.0
"""For levels K at least LOWEST standard deviations below the mean of the sum S no transform is computed. The lower bound is then
the mean minus K. The upper bound adds the largest value of E max(0, K - S) for these K. This value is attained at the largest of
these K, and is about e^(-LOWEST^2/2) deviations. Raised: more Fourier transforms. Lowered: a less tight upper bound."""


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
        """Return the distribution of -X for a number X with this distribution."""
        return GridLaw(-(self.anchor + self.step * (self.mass.size - 1)), self.step, self.mass[::-1].copy())


def contracted(anchor: float, step: float, mass: FloatArray, means: FloatArray) -> GridLaw:
    """Return a grid distribution that is smaller in the increasing convex order than one with these masses and means of cells.

    Cell k lies between anchor + step k and anchor + step (k + 1); its mass is `mass[k]`, and the mean of this mass is `means[k]`.
    At every grid point, parts of the masses of the two adjacent cells are merged into one mass whose mean is this point. The
    remainder of the mass of a cell is moved down to the lower end of the cell.
    """
    grid = anchor + step * np.arange(mass.size)
    inside = np.clip(means - grid, 0.0, step)
    after, before = inside[1:], (step - inside)[:-1]
    # A mean at most ON_GRID steps below a grid point counts as this point, because of rounding.
    at_end = inside >= step * (1 - ON_GRID)
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
    """Return for every grid point k the moment M[k] of the masses merged there by `contracted`, in units of mass times grid step.

    The moment is the mass that an adjacent cell gives to the point, times the distance of the cell's mean from the point. Both
    adjacent cells give the same moment, so that the mean of the merged mass is the point.

    `inside[k]` is the position of the mean of cell k, as a fraction of its width. The cell gives the mass M[k]/inside[k] to its
    left end and M[k + 1]/(1 - inside[k]) to its right end, together at most its mass. If every cell gives all of its mass, M[k]
    determines M[k + 1] and vice versa. Errors of this recursion alternate in sign and shrink where masses grow, so one recursion
    runs from each end of the grid to the heaviest cell. One cell near the heaviest one may keep a part of its mass as a remainder:
    a cell whose mean is a grid point (`free`), or else the cell whose remainder changes the mean least.
    """
    size = mass.size
    heaviest = int(np.argmax(mass))
    # The cell that keeps a remainder is chosen among the heaviest cell and the 20 cells on either side; comparing more takes
    # longer.
    low, high = max(heaviest - 20, 0), min(heaviest + 20, size - 1)
    back, held = 1 - inside, free.view(np.uint8)
    right_of = _losses.balanced(mass, inside, back, held, high)
    left_of = _losses.balanced(mass[::-1], back[::-1], inside[::-1], held[::-1], size - 1 - low)[::-1]
    # `first` has the moments at the left ends of the cells low..high, by the recursion from the left end of the grid; `second` has
    # the moments at their right ends, by the recursion from the right end.
    cells = np.arange(low, high + 1)
    first, second = right_of[cells], left_of[cells - low]
    with np.errstate(divide="ignore", invalid="ignore"):
        given_up = np.where(second > 0, second / (1 - inside[cells]), 0.0)
        rest = mass[cells] - np.where(first > 0, first / inside[cells], 0.0) - given_up
    lost = np.where(free[cells], 0.0, np.where(rest >= 0, rest * inside[cells], -rest))
    best = int(cells[np.argmin(lost)])
    return np.concatenate([right_of[: best + 1], left_of[best - low :]])


class StopLoss(TiltedSum):
    """Bounds, at levels K, of log E max(0, S - K) for the sum S of `times` independent variables of the distribution `law`.

    The masses of `law` need not sum to 1.
    """

    def __init__(self, law: GridLaw, times: int, *, upper: bool) -> None:
        held = np.flatnonzero(law.mass > 0)
        mass, self._times = law.mass[held], times
        middle = int(held[np.argmax(mass)]) if held.size else 0
        # `error` bounds the rounding error of the first grid point of the sum: two products and a sum are rounded, and one more
        # product if the distribution is reversed.
        error = 4 * ULP * times * (abs(law.anchor) + law.step * law.mass.size)
        # With these values of `near` and `widest` (see `TiltedSum`) one Fourier transform is used for a wide interval of levels.
        # The likelihood ratio of Gaussian noise with sigma below 1 has heavy tails, so otherwise many levels would each need a
        # separate transform. The rounding error grows by the factor e^(near^2/2), and remains far below the error of the grid.
        super().__init__(
            [Summand(np.log(mass), (held - middle).astype(np.float64), times)], times * (law.anchor + law.step * middle), law.step,
            discount=0.0, near=4.0, widest=3, upper=upper, slack=16 * ULP * times, level_error=error,
        )

    @cached_property
    def _untilted(self) -> tuple[float, float, float]:
        """Log of the total mass of the sum S, and the mean and the standard deviation of S, all without exponential tilting."""
        log_total, mean, var = self.moments(0.0)
        return log_total, mean, math.sqrt(max(var, 0.25 * self.step**2))

    @cached_property
    def _lines(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The rates in units of 1/step, the intercepts, and the crossings of neighbouring lines of Chernoff's bounds.

        Each rate theta gives an upper bound of log E max(0, S - K), which is a line in the level K. The intercept of the line is
        convex in the rate. So each line is the lowest one between its crossings with the two neighbouring lines.
        """
        rates = np.geomspace(LEAST_TILT * self.step / self._untilted[2], 40.0, 48)
        cumulants = np.array([self.moments(rate / self.step)[0] for rate in rates.tolist()])
        base = cumulants * (1 + 1e-12) + 1e-14 * self._times - 1 - np.log(rates / self.step)
        return rates, base, np.diff(base) / np.diff(rates)

    def _chernoff(self, levels: FloatArray) -> FloatArray:
        """Return Chernoff's upper bound of log E max(0, S - K), for the sum S and the given levels K.

        The bound follows from z <= e^(theta z)/(e theta) for all theta > 0; the best of 48 theta is used.
        """
        rates, base, corners = self._lines
        gap = (levels - self.origin) / self.step
        best = np.searchsorted(corners, gap)
        return np.asarray(base[best] - rates[best] * gap * (1 - np.sign(gap) * 1e-12))

    def reach(self, limits: FloatArray) -> FloatArray:
        """Return for each limit a level such that `_chernoff` is at most the limit at this and at every higher level."""
        rates, base, _ = self._lines
        gap = np.min((base - limits[:, None]) / rates, axis=1)
        return np.asarray(self.origin + self.step * (gap + 1e-9 * (1 + np.abs(gap))))

    def log_stop_loss(self, levels: FloatArray, *, floor: FloatArray | float = -math.inf) -> FloatArray:
        """Return the upper or the lower bound of log E max(0, S - K) for the sum S at every level K.

        Where Chernoff's bound is below `floor`, no transform is computed: Chernoff's bound is the upper bound, and the lower bound
        is -inf.
        """
        out = np.full(levels.size, -np.inf)
        if not self.finite:
            return out
        chernoff = self._chernoff(levels)
        if self.upper:
            out = chernoff
        wanted = chernoff > floor
        inside, below = wanted & (levels >= self._low), wanted & (levels < self._low)
        if inside.any():
            out[inside] = self.log_values(levels[inside])[0]
        if below.any():
            low, value, slope = self.line
            out[below] = np.log(value + slope * (low - levels[below]))
        return out

    @property
    def _low(self) -> float:
        """The level below which no transform is computed."""
        _, mean, deviation = self._untilted
        return mean - LOWEST * deviation

    @cached_property
    def line(self) -> tuple[float, float, float]:
        """Numbers (low, value, slope): at levels K <= low the bound of E max(0, S - K) is value + slope (low - K)."""
        if not self.finite:
            return -LARGEST, 0.0, 0.0
        (log_total, mean, _), low = self._untilted, self._low
        slack = 64 * ULP * (self._times + 1)
        if not self.upper:
            total = math.exp(log_total - slack)
            return low, total * (mean - low), total
        # If the level decreases by x, the stop-loss transform increases by at most x times the total mass.
        return low, math.exp(float(self.log_values(np.array([low]))[0][0]) + slack), math.exp(log_total + slack)
