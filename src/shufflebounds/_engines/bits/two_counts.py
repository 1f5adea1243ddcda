"""The largest delta over all datasets that two counts describe, by branch and bound.

The search is valid for mechanisms whose delta does not decrease when users are removed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from shufflebounds._base.limits import SAME_LOG, SEARCH_GAP
from shufflebounds._base.search import maximum
from shufflebounds._base.types import Interval

__all__ = ["maximize_over_two_counts"]

Rectangle = tuple[int, int, int, int]


def maximize_over_two_counts(
    bounds_at: Callable[[int, int, int, int], Interval], count: int, diagonal: bool, most: int, tolerance: float | None = None
) -> Interval:
    """Return bounds of the maximum of f(i, j), a log delta, over 0 <= j <= i < count, or over i = j if `diagonal` is true.

    ``bounds_at(i, j, b, c)`` returns bounds of f at (i, j) after b and c users left the two bins. Its upper bound must also be an
    upper bound of f(i + s, j + t) for 0 <= s <= b, 0 <= t <= c. The search ends when the gap is within the tolerance, or after
    about `most` evaluations. A tolerance below the default, which depends on `count`, has no effect.
    """
    # The run time grows with the square of the number of users, so the gap is 1e-2 for more than 32 users.
    rtol = 10 * SEARCH_GAP if count > 32 else SAME_LOG
    rtol = max(rtol, tolerance or 0.0)
    evaluated: dict[tuple[int, int], Interval] = {}

    def measure(rectangles: Sequence[Rectangle], enough: float) -> list[tuple[float, float, float]]:
        out = []
        for first, last, low, high in rectangles:
            sides = Interval(-math.inf, -math.inf)
            single = first == last and low == high
            bound = math.inf if single else bounds_at(first, low, last - first, high - low).upper
            # A search with a given tolerance evaluates at most 16 single datasets for its lower bound.
            if not bound <= enough and (single or tolerance is None or len(evaluated) < 16):
                # The worst dataset is usually close to (0, 0), so the corner of the block that is nearest to (0, 0) is evaluated.
                corner = max(first, low), low
                if corner not in evaluated:
                    evaluated[corner] = bounds_at(*corner, 0, 0)
                sides = evaluated[corner]
            out.append((*sides, sides[1] if single else bound))
        return out

    def split(rectangle: Rectangle) -> list[Rectangle]:
        a, b, c, d = rectangle
        middle, other = (a + b) // 2, (c + d) // 2
        if a == b and c == d:
            return []
        if diagonal:
            return [(a, middle, a, middle), (middle + 1, b, middle + 1, b)]
        pieces = [(a, middle, c, d), (middle + 1, b, c, d)] if b - a >= d - c else [(a, b, c, other), (a, b, other + 1, d)]
        return [piece for piece in pieces if piece[2] <= piece[1]]

    start = (0, count - 1, 0, count - 1)
    result = maximum([start], measure, split, tolerance=lambda best: rtol, most=most / 2)
    return Interval(result.lower, result.upper)
