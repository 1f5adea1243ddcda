"""Several bits of one target user, each in a separate shuffle (column): an upper bound from the privacy profile of one column."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._types import ULP, FloatArray, IntervalArray
from shufflebounds.composing.interpolation import connect_the_dots
from shufflebounds.profile._budget import log_odds
from shufflebounds.shuffle.bits import ShuffledBits

LEAST_LOCAL = 1e-9
"""For a smaller local budget no grid of losses is used: e^loss - 1 would have large relative errors."""

MOST_ATOMS = 6000
"""Approximate largest number of losses in the composed distribution. Raised: a finer grid, tighter bounds and longer run time."""


class ComposedColumns:
    """An upper bound of delta of `times` columns of one target user, for every dataset; values of one column are cached.

    The delta of one column, maximized over all datasets, is a function h(e^eps) that is the same for (P, Q) and (Q, P). Linear
    interpolation of upper bounds of h on a grid of losses is at least h, and is the hockey-stick curve of a pair of distributions
    with losses on this grid (Doroshenko et al. 2022). This pair dominates that of every column, and dominating pairs compose.
    Mass with a loss beyond the grid is assigned infinite loss.
    """

    def __init__(self, column: ShuffledBits, times: int) -> None:
        self.column, self.times = column, times
        self.local = column._pure_epsilon()
        self.values: dict[float, float] = {}
        self.laws: dict[int, tuple[FloatArray, FloatArray, float]] = {}

    def log_delta(self, eps: float, log_scale: float) -> float:
        """Return an upper bound of log delta(eps). `log_scale` approximates the answer and sets the end of the grid."""
        # the quotient is rounded down: close to the pure budget of a column, delta falls to 0 within one ulp of eps
        basic = math.log(self.times) + self._upper(math.nextafter(eps / self.times, 0.0)) + 4 * ULP
        if 0 < (gap := log_odds(self.column.flip).times(self.times).less(eps)) < 1:
            # an upper bound for every mechanism with this pure budget: 1 - e^(eps - budget)
            basic = min(basic, math.log(-math.expm1(-gap)) + 4 * ULP * (1 - math.log(gap)))
        if log_scale < -600 or self.local == math.inf or self.local < LEAST_LOCAL:
            return basic
        # delta is the sum of p (1 - e^(eps - loss)) over losses above eps
        loss, law, infinite = self._law(self._reach(log_scale - math.log(self.times) - 9))
        # rounding of grid points and of their sums is at most a few ulp of the largest loss, times * local
        below = eps - 4 * ULP * self.times * self.local
        beyond = loss > below
        finite = float(law[beyond] @ -np.expm1(below - loss[beyond]))
        lost = -math.expm1(self.times * math.log1p(-infinite)) if infinite < 1 else 1.0
        total = (finite + lost) * (1 + 1e-9)
        return min(basic, math.log(total)) if total > 0 else basic

    def _upper(self, eps: float) -> float:
        """Return the upper bound of log delta of one column at eps."""
        return self.column._log_side_at(eps, upper=True)

    def _value(self, loss: float) -> float:
        """Return the upper bound of log delta of one column at this loss, from the cache if it is known."""
        if loss not in self.values:
            self.values[loss] = self._upper(loss)
        return self.values[loss]

    def _hockey_stick(self, eps: FloatArray) -> IntervalArray:
        """Return upper bounds of log delta of one column, as both ends of an interval, the format that `connect_the_dots` takes."""
        high = np.array([self._value(float(loss)) for loss in eps])
        return IntervalArray(high, high)

    def _reach(self, goal: float) -> int:
        """Return k such that a grid up to 0.8**k times the local budget suffices: delta beyond it is below e^goal."""
        k = 0
        while k < 200 and self._value(self.local * 0.8 ** (k + 1)) < goal:
            k += 1
        return k

    def _law(self, k: int) -> tuple[FloatArray, FloatArray, float]:
        """Return the losses and masses of the composed distribution, and the mass of infinite loss of one column.

        The grid ends at 0.8**k times the local budget.
        """
        if k not in self.laws:
            fewest = max(8, min(160, MOST_ATOMS // (2 * self.times)))
            reach = self.local * 0.8**k
            # the step is the local budget times a power of 1/2, so that grids for different k have losses in common
            step = self.local * 2.0 ** math.floor(math.log2(reach / (fewest * self.local)))
            half = math.ceil(reach / step)
            atoms = connect_the_dots(step * np.arange(-half, half + 1, dtype=np.float64), self._hockey_stick, self._hockey_stick)
            mass = np.zeros(2 * half + 1)
            mass[half + np.rint(atoms.loss / step).astype(int)] = np.exp(atoms.log_p + atoms.slack) * (1 + 1e-12)
            law, first = _power(mass, -half, self.times)
            losses = step * np.arange(first, first + law.size, dtype=np.float64)
            self.laws[k] = losses, law, math.exp(atoms.log_rest + atoms.slack)
        return self.laws[k]


def _power(mass: FloatArray, first: int, times: int) -> tuple[FloatArray, int]:
    """Return the masses of the sum of `times` independent integers, and its smallest value; `first` is that of one integer."""
    law, start = np.ones(1), 0
    while times:
        if times & 1:
            law, start = np.convolve(law, mass), start + first
        times >>= 1
        if times:
            mass, first = np.convolve(mass, mass), 2 * first
    return law, start
