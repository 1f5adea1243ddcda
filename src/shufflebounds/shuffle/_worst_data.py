"""The worst data by branch and bound, for mechanisms that lose privacy when users leave."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from shufflebounds._search import Interval, halves, maximum
from shufflebounds._types import FloatArray

__all__ = ["RTOL", "of_counts", "of_two_counts"]

RTOL = 0.99e-3
"""How far apart the sides may stay, in log delta."""

SMALL, SMALL_RTOL = 1024, 1e-9
"""Up to so many candidates the sides meet as closely as this."""

BATCH = 8
"""Intervals split at a time, so that the kernel is called on arrays."""

SMALL_SQUARE, SQUARE_RTOL = 32, 1e-2
"""The same for pairs of counts: up to so many of each, and how far apart the sides may stay beyond."""

Rectangle = tuple[int, int, int, int]


def of_counts(
    enclose: Callable[[NDArray[np.int64], NDArray[np.int64]], tuple[FloatArray, FloatArray]], count: int, loose: float = 0.0
) -> tuple[float, float]:
    """Return a lower and an upper bound of max over m = 0..count-1 of f(m) (logarithms).

    ``enclose(m, removed)`` bounds from both sides the value at m with so many users removed, and
    f(m + j) <= value(m, removed=B) for 0 <= j <= B: one evaluation bounds a whole interval m..m+B from above. The search ends
    when the sides are within a tolerance, `loose` times the logarithm more than usual.
    """
    least = RTOL if count > SMALL else SMALL_RTOL

    def measure(intervals: Sequence[Interval], enough: float) -> list[tuple[float, float, float]]:
        ends = np.array(intervals, dtype=np.int64)
        removed = ends[:, 1] - ends[:, 0]
        # the interval's bound, and the value at its left end, which the maximum cannot miss
        wide = removed > 0
        firsts = np.concatenate([ends[:, 0], ends[wide, 0]])
        lows, highs = enclose(firsts, np.concatenate([np.zeros_like(removed), removed[wide]]))
        size = len(intervals)
        bounds = highs[:size].copy()
        bounds[wide] = highs[size:]
        return list(zip(lows[:size].tolist(), highs[:size].tolist(), bounds.tolist()))

    found = maximum([(0, count - 1)], measure, halves, tolerance=lambda best: least + loose * (1 - best), batch=BATCH)
    return found.lower, found.upper


def of_two_counts(
    enclose: Callable[[int, int, int, int], tuple[float, float]], count: int, diagonal: bool, most: int
) -> tuple[float, float]:
    """Return bounds of max of f(i, j) over 0 <= j <= i < count, or over i = j where diagonal is set (logarithms).

    ``enclose(i, j, b, c)`` bounds from both sides f at (i, j) with b and c users removed in the two bins, and
    f(i + s, j + t) <= that value for 0 <= s <= b, 0 <= t <= c. The search ends when the sides are within a tolerance, or after
    some `most` evaluations.
    """
    rtol = SQUARE_RTOL if count > SMALL_SQUARE else SMALL_RTOL
    known: dict[tuple[int, int], tuple[float, float]] = {}

    def measure(rectangles: Sequence[Rectangle], enough: float) -> list[tuple[float, float, float]]:
        out = []
        for first, last, low, high in rectangles:
            sides = -math.inf, -math.inf
            single = first == last and low == high
            bound = math.inf if single else enclose(first, low, last - first, high - low)[1]
            if not bound <= enough:
                # the corner nearest to the worst data that the rectangle holds
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
    return found.lower, found.upper
