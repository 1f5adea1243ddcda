"""The worst data by branch and bound, for mechanisms that lose privacy when users leave."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shufflebounds._types import FloatArray

RTOL = 0.99e-3
"""How far apart, relatively in delta, the sides may stay."""

SMALL, SMALL_RTOL = 1024, 1e-9
"""Up to so many candidates the sides meet as closely as this."""

BATCH = 8
"""Intervals split at a time, so that the kernel is called on arrays."""


def maximum(
    enclose: Callable[[NDArray[np.int64], NDArray[np.int64]], tuple[FloatArray, FloatArray]], count: int, loose: float = 0.0
) -> tuple[float, float]:
    """Return a lower and an upper bound of max over m = 0..count-1 of f(m) (logarithms).

    ``enclose(m, removed)`` bounds from both sides the value at m with so many users removed, and
    f(m + j) <= value(m, removed=B) for 0 <= j <= B: one evaluation bounds a whole interval m..m+B from above. Best-first:
    split the interval with the largest bound until that bound is within a tolerance of the best single value found, `loose` times
    the logarithm more than usual.
    """
    least = RTOL if count > SMALL else SMALL_RTOL
    rtol = least
    best_low = best_high = -np.inf
    heap: list[tuple[float, int, int]] = [(-np.inf, 0, count - 1)]
    while heap and -heap[0][0] > best_high + rtol:
        split: list[tuple[int, int]] = []
        while heap and len(split) < 2 * BATCH and -heap[0][0] > best_high + rtol:
            _, first, last = heapq.heappop(heap)
            if first == last:
                split.append((first, last))
            else:
                middle = (first + last) // 2
                split += [(first, middle), (middle + 1, last)]
        firsts = np.array([first for first, _ in split], dtype=np.int64)
        removed = np.array([last - first for first, last in split], dtype=np.int64)
        # the interval's bound, and the value at its left end, which the maximum cannot miss
        lows, highs = enclose(np.concatenate([firsts, firsts]), np.concatenate([removed, np.zeros_like(removed)]))
        single = len(split)
        # a kernel that leaves its range says nothing
        lows, highs = np.where(np.isnan(lows), -np.inf, lows), np.where(np.isnan(highs), 0.0, highs)
        best_low = max(best_low, float(lows[single:].max()))
        best_high = max(best_high, float(highs[single:].max()))
        rtol = least + loose * (1 - best_high) if best_high > -np.inf else least
        for (first, last), bound in zip(split, highs[:single]):
            if last > first:
                heapq.heappush(heap, (-float(bound), first, last))
    return best_low, max(best_high, -heap[0][0]) if heap else best_high
