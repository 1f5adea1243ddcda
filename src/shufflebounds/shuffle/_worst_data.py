"""The worst data by branch and bound, for mechanisms that lose privacy when users leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from shufflebounds._search import maximum
from shufflebounds._types import Interval

__all__ = ["RTOL", "maximize_over_two_counts"]

RTOL = 0.99e-3
"""How far apart the sides may stay, in log delta."""

SMALL_SQUARE, SMALL_RTOL, SQUARE_RTOL = 32, 1e-9, 1e-2
"""For pairs of counts: up to so many of each the sides meet closely, and how far apart they may stay beyond."""

Rectangle = tuple[int, int, int, int]


def maximize_over_two_counts(
    enclose: Callable[[int, int, int, int], Interval], count: int, diagonal: bool, most: int
) -> Interval:
    """Return bounds of max of f(i, j) over 0 <= j <= i < count, or over i = j where diagonal is set (logarithms).

    ``enclose(i, j, b, c)`` bounds from both sides f at (i, j) with b and c users removed in the two bins, and
    f(i + s, j + t) <= that value for 0 <= s <= b, 0 <= t <= c. The search ends when the sides are within a tolerance, or after
    some `most` evaluations.
    """
    rtol = SQUARE_RTOL if count > SMALL_SQUARE else SMALL_RTOL
    known: dict[tuple[int, int], Interval] = {}

    def measure(rectangles: Sequence[Rectangle], enough: float) -> list[tuple[float, float, float]]:
        out = []
        for first, last, low, high in rectangles:
            sides = Interval(-math.inf, -math.inf)
            single = first == last and low == high
            bound = math.inf if single else enclose(first, low, last - first, high - low).upper
            if not bound <= enough:
                # the worst data are near (0, 0): the corner of the rectangle that is nearest
                corner = max(first, low), low
                if corner not in known:
                    known[corner] = enclose(*corner, 0, 0)
                sides = known[corner]
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
    found = maximum([start], measure, split, tolerance=lambda best: rtol, most=most / 2)
    return Interval(found.lower, found.upper)
