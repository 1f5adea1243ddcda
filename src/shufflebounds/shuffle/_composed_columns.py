"""Several bits of one target, each in a shuffle of its own: an upper bound from the privacy profile of one."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._types import ULP, FloatArray, IntervalArray
from shufflebounds.composing.interpolation import connect_the_dots
from shufflebounds.profile._budget import log_odds
from shufflebounds.shuffle.bits import ShuffledBits

LEAST_LOCAL = 1e-9
"""On a grid of smaller losses e^loss has no digits left."""

MOST_ATOMS = 6000
"""Largest number of losses in the composed law, about."""


class ComposedColumns:
    """So many columns of one target, whatever the data in each; what is known of one column is kept for the next eps.

    delta of one column, over all data, is a hockey-stick curve h(E), the same in both directions, that no data exceeds. Chords
    of upper values of it on a grid of losses lie above it, and belong to a pair of laws on that grid (Doroshenko et al. 2022),
    which dominates every column's; dominating pairs compose. What has no loss on the grid counts as infinite loss.
    """

    def __init__(self, column: ShuffledBits, times: int) -> None:
        self.column, self.times = column, times
        self.local = column._pure_epsilon()
        self.values: dict[float, float] = {}
        self.laws: dict[int, tuple[FloatArray, FloatArray, float]] = {}

    def log_delta(self, eps: float, log_scale: float) -> float:
        """Return an upper bound of log delta(eps); log_scale: about the answer."""
        # the quotient must not be rounded up, since next to the pure budget of a column delta falls to 0 within an ulp
        basic = math.log(self.times) + self._upper(math.nextafter(eps / self.times, 0.0)) + 4 * ULP
        if 0 < (gap := log_odds(self.column.flip).times(self.times).less(eps)) < 1:
            # what any mechanism of that budget leaks
            basic = min(basic, math.log(-math.expm1(-gap)) + 4 * ULP * (1 - math.log(gap)))
        if log_scale < -600 or self.local == math.inf or self.local < LEAST_LOCAL:
            return basic
        # sum over the composed law of p (1 - e^(eps - loss)) beyond eps
        loss, law, infinite = self._law(self._reach(log_scale - math.log(self.times) - 9))
        # every grid point is rounded once, and so is the sum of the losses that it stands for: at most an ulp of the largest sum
        below = eps - 4 * ULP * self.times * self.local
        beyond = loss > below
        finite = float(law[beyond] @ -np.expm1(below - loss[beyond]))
        lost = -math.expm1(self.times * math.log1p(-infinite)) if infinite < 1 else 1.0
        total = (finite + lost) * (1 + 1e-9)
        return min(basic, math.log(total)) if total > 0 else basic

    def _upper(self, eps: float) -> float:
        return self.column._log_side_at(eps, upper=True)

    def _value(self, loss: float) -> float:
        """Return the upper log delta of one column."""
        if loss not in self.values:
            self.values[loss] = self._upper(loss)
        return self.values[loss]

    def _hockey_stick(self, eps: FloatArray) -> IntervalArray:
        """Return an upper bound alone, on both sides."""
        high = np.array([self._value(float(loss)) for loss in eps])
        return IntervalArray(high, high)

    def _reach(self, goal: float) -> int:
        """Return k for which a grid up to 0.8**k local is enough: losses beyond it have a mass below e^goal."""
        k = 0
        while k < 200 and self._value(self.local * 0.8 ** (k + 1)) < goal:
            k += 1
        return k

    def _law(self, k: int) -> tuple[FloatArray, FloatArray, float]:
        """Return the losses and masses of the composed law on the grid that ends there, and the infinite mass of one column."""
        if k not in self.laws:
            fewest = max(8, min(160, MOST_ATOMS // (2 * self.times)))
            reach = self.local * 0.8**k
            # the local budget halved so many times: grids of other reaches have losses in common
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
    """Return the law of the sum of so many independent numbers, and its first number."""
    law, start = np.ones(1), 0
    while times:
        if times & 1:
            law, start = np.convolve(law, mass), start + first
        times >>= 1
        if times:
            mass, first = np.convolve(mass, mass), 2 * first
    return law, start
