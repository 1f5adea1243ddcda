"""How far a sum of independent numbers reaches: Chernoff's bound at the rate where it is least."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shufflebounds._types import FloatArray

__all__ = ["Tails"]

FEW = 1024
"""Laws of fewer points are not coarsened."""

RATES = np.geomspace(0.05, 40.0, 32)
"""Rates that are tried, per standard deviation of the sum."""

FAINT = -500.0
"""Smaller exponents count as this one: subnormal numbers are slow."""


class Tails:
    """The tails of a sum of laws on whole numbers, each (normalised masses, places, how often).

    The laws are coarsened in balance, which makes no log moment smaller, so the bounds hold for the laws given.
    """

    def __init__(self, laws: Sequence[tuple[FloatArray, FloatArray, int]], mean: float, deviation: float) -> None:
        self._mean, self._deviation = mean, deviation
        # the exponent grows by r s^2 width^2/8 at most, s some 9 deviations: by less than 0.03
        self._laws = [(*_coarsened(weight, place, 0.05 * deviation / math.sqrt(r * len(laws))), r) for weight, place, r in laws]

    def reach(self, sign: int, limit: float) -> float:
        """Return how far from the mean, on the side of the sign, the log mass beyond is surely down to the limit.

        At rate s that is reach = (K(s) - limit)/s, K the log moments about the mean; it is least where s K'(s) - K(s) = -limit,
        and the left of this rises with s, so the best of a list of rates is found by bisection.
        """
        low, high, best = 0, RATES.size, math.inf
        middle = sign * self._mean
        while low < high:
            half = (low + high) // 2
            s = float(RATES[half]) / self._deviation
            cumulant, slope = -s * middle, -middle
            for weight, place, r in self._laws:
                power = (sign * s) * place
                top = float(power.max())
                grown = weight * np.exp(np.maximum(power - top, FAINT))
                total = float(grown.sum())
                cumulant += r * (top + math.log(total))
                slope += r * sign * float((grown * place).sum()) / total
            reached = (cumulant - limit) / s
            best = min(best, reached + 1e-9 * (abs(middle) + abs(reached)))
            low, high = (half + 1, high) if s * slope - cumulant < -limit else (low, half)
        return best


def _coarsened(weight: FloatArray, place: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
    stride = math.floor(width)
    if stride < 2 or place.size < FEW:
        return weight, place
    low = np.floor_divide(place, stride)
    share = place / stride - low
    first = low[0]
    left = (low - first).astype(np.intp)
    out: FloatArray = np.bincount(left, weights=weight * (1 - share), minlength=int(left[-1]) + 2).astype(np.float64)
    out += np.bincount(left + 1, weights=weight * share, minlength=out.size)
    held = np.flatnonzero(out)
    return out[held], np.asarray((first + held) * stride, dtype=np.float64)
