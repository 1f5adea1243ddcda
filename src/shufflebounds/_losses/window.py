"""Truncation ranges of a sum of independent integer-valued variables, by Chernoff's bound.

The Fourier transforms of compositions represent the sum on a finite range; this module bounds the mass outside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shufflebounds._base.convex_order import grid_spread
from shufflebounds._base.types import FloatArray
from shufflebounds._core import _losses

__all__ = ["Tails"]

RATES = np.geomspace(0.05, 40.0, 32)
"""Rates s of the Chernoff bound P(X >= x) <= E e^(s (X - x)) that are tried, in units of 1/standard deviation of the sum X.

More rates take longer; fewer rates give longer truncation ranges.
"""


class Tails:
    """The tails of a sum of independent integer-valued variables.

    Each variable is given by normalized masses, their places, and the number of times it occurs.

    Each distribution is moved to a coarser grid: each mass is split over two points such that its mean stays the same. This
    increases every exponential moment, so the Chernoff bounds remain valid.
    """

    def __init__(self, laws: Sequence[tuple[FloatArray, FloatArray, int]], mean: float, deviation: float) -> None:
        self._mean, self._deviation = mean, deviation
        # At rate s, moving r equal distributions to a grid of step w increases the exponent of Chernoff's bound by at most r s^2
        # w^2/8. With the w chosen here, the total increase is below 0.03 for s up to 9/deviation.
        coarse = [(*_coarsened(weight, place, 0.05 * deviation / math.sqrt(r * len(laws))), r) for weight, place, r in laws]
        self._laws = [(np.log(weight), place, r) for weight, place, r in coarse]

    def reach(self, sign: int, limit: float) -> float:
        """Return a distance from the mean; the log of the mass beyond this distance is at most `limit`.

        The mass above the mean is meant if `sign` is 1, and the mass below the mean if `sign` is -1. Chernoff's bound at the rate s
        gives the distance (K(s) - limit)/s, where K is the log moment generating function about the mean. At the best rate,
        s K'(s) - K(s) = -limit. As s K'(s) - K(s) increases with s, the best entry of RATES is found by bisection.
        """
        low, high, best = 0, RATES.size, math.inf
        middle = sign * self._mean
        while low < high:
            half = (low + high) // 2
            s = float(RATES[half]) / self._deviation
            cumulant, slope = -s * middle, -middle
            for logs, place, r in self._laws:
                log_total, mean, _ = _losses.tilted_moments(logs, place, sign * s)
                cumulant += r * log_total
                slope += r * sign * mean
            reached = (cumulant - limit) / s
            best = min(best, reached + 1e-9 * (abs(middle) + abs(reached)))
            low, high = (half + 1, high) if s * slope - cumulant < -limit else (low, half)
        return best


def _coarsened(weight: FloatArray, place: FloatArray, width: float) -> tuple[FloatArray, FloatArray]:
    """Return masses and places on a coarser grid with steps of at most `width`, each mass split over the two nearest points."""
    stride = math.floor(width)
    # With fewer than 1024 points, coarsening would save no time.
    if stride < 2 or place.size < 1024:
        return weight, place
    places = place / stride
    first = math.floor(places[0])
    out = grid_spread(places, weight, first, math.floor(places[-1]) - first + 2)
    held = np.flatnonzero(out)
    return out[held], np.asarray((first + held) * stride, dtype=np.float64)
