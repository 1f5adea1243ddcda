"""Searches for a root, for the least argument that satisfies a monotone predicate, and for a maximum (branch and bound)."""

from __future__ import annotations

import heapq
import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from shufflebounds._base.progress import tick
from shufflebounds._base.validate import MAX_COUNT

__all__ = [
    "IntRange", "SearchResult", "bracket", "expand_bracket", "halves", "least_int", "least_real", "maximum", "narrowed", "root",
]

B = TypeVar("B")


def root(
    function: Callable[[float], float], low: float, high: float, at_low: float, at_high: float, *, rtol: float, xtol: float = 0.0
) -> float:
    """Return where the function changes its sign between low and high.

    The result is the end of the final bracket with the smaller absolute value of the function.
    """
    low, high, at_low, at_high = narrowed(function, low, high, at_low, at_high, rtol=rtol, xtol=xtol, share=0.5)
    return low if abs(at_low) < abs(at_high) else high


def narrowed(
    function: Callable[[float], float], low: float, high: float, at_low: float, at_high: float, *, rtol: float, xtol: float = 0.0,
    enough: Callable[[float, float, float, float], bool] | None = None, share: float | None = None,
) -> tuple[float, float, float, float]:
    """Return a narrow bracket of a change of sign between low and high, and the values at its ends, by Chandrupatla's method.

    The arguments at_low and at_high are the values at low and high, of opposite sign. The search ends at a bracket around x that is
    narrower than 2 (xtol + rtol |x|), at a single x with the value 0, or at a bracket for which ``enough(low, high, at_low,
    at_high)`` is true. The method takes about the same number of evaluations as Brent's method, and fewer where the function is
    flat. Values of the function may be infinite. `share` is the length of the first step, from `high`, as a fraction of the
    interval; by default the step ends where the straight line through the two ends crosses 0.
    """
    a, at_a, b, at_b = high, at_high, low, at_low
    c, at_c = a, at_a
    if share is None:
        # An end at which the caller's function is 0 is already a root; the caller then passes low == high and at_low == at_high.
        share = at_a / (at_a - at_b) if a != b and math.isfinite(at_a) and math.isfinite(at_b) else 0.5
    while True:
        best, at_best = (a, at_a) if abs(at_a) < abs(at_b) else (b, at_b)
        if at_best == 0:
            return best, best, 0.0, 0.0
        ends = (a, b, at_a, at_b) if a < b else (b, a, at_b, at_a)
        smallest = (xtol + rtol * abs(best)) / abs(b - a) if b != a else 1.0
        if smallest > 0.5 or (enough is not None and enough(*ends)):
            return ends
        x = a + min(1 - smallest, max(smallest, share)) * (b - a)
        at_x = function(x)
        tick()
        if (at_x > 0) == (at_a > 0):
            c, at_c = a, at_a
        else:
            c, at_c, b, at_b = b, at_b, a, at_a
        a, at_a = x, at_x
        # If Chandrupatla's condition holds, inverse quadratic interpolation stays inside the interval. Otherwise the step bisects.
        place, value = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        if math.isfinite(value) and value * value < place and (1 - value) ** 2 < 1 - place:
            share = at_a / (at_b - at_a) * at_c / (at_b - at_c) + (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
        else:
            share = 0.5


def expand_bracket(start: float, enough: Callable[[float], bool], step: float, end: float, growth: float = 2.0) -> float:
    """Return the first visited number that satisfies `enough`, or `end` if none before `end` does.

    The search starts at `start`. The first step is `step`, with the sign of end - start; each step is `growth` times the last.
    """
    value = start
    while not enough(value):
        if value + step == value:
            # The step underflowed or is below an ulp of the value: use the next double.
            step = math.nextafter(value, end) - value
        value += step
        step *= growth
        if value >= end if step > 0 else value <= end:
            return end
    return value


def bracket(enough: Callable[[float], bool], low: float, high: float, *, rtol: float) -> tuple[float, float]:
    """Return an interval (low, high) of relative width at most rtol in which the monotone predicate `enough` becomes true.

    The predicate is false at the returned low and true at the returned high. It must be false at the argument `low`, and once true,
    it must stay true at every larger number. `high` is doubled until the predicate is true there; then the interval is bisected.
    """
    while not enough(high):
        low, high = high, 2 * high
    while high - low > rtol * high:
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (low, middle) if enough(middle) else (middle, high)
    return low, high


def least_int(enough: Callable[[int], bool], low: int, high: int = MAX_COUNT, guess: int | None = None) -> int | None:
    """Return the least integer in low..high that satisfies the monotone predicate `enough`, or None if none does.

    Once true, the predicate must stay true at every larger integer. The search moves away from the guess, upward or downward, in
    steps that double until the value of the predicate changes, and then bisects the last step.
    """
    first, top = low, low if guess is None else min(max(guess, low), high)
    start = max(1, top // 16) if guess is not None else 1
    step = start
    while not enough(top):
        if top == high:
            return None
        first, top, step = top + 1, min(high, top + step), 2 * step
    step = start
    while first == low and top - step > low and enough(top - step):
        top, step = top - step, 2 * step
    first = max(first, top - step) if first == low else first
    return first + bisect_left(range(first, top), True, key=enough)


def least_real(
    excess: Callable[[float], float], low: float, high: float, *, enough: Callable[[float], bool], rtol: float = 1e-13
) -> float:
    """Return a number in (0, high] that satisfies `enough` and lies close to the least such number.

    `enough` is evaluated at the returned number and must be true at `high`. The function excess(x) decreases and crosses 0 near the
    least x that satisfies `enough`; the search for this root starts at `low` > 0 and has the relative tolerance rtol.
    """
    at_low = excess(low)
    while at_low <= 0:
        if low < 1e-300 and enough(low):
            return low
        low /= 16
        at_low = excess(low)

    def of_log(log_value: float) -> float:
        return excess(math.exp(log_value))

    # The function `excess` is not evaluated at `high`. The predicate is true at `high`, so any negative value may be used as the
    # excess there.
    at_high = -max(1.0, at_low)
    value = min(high, math.exp(root(of_log, math.log(low), math.log(high), at_low, at_high, rtol=1e-13, xtol=rtol)))
    # The root of `excess` may lie slightly below the least number that satisfies the predicate, so the number is increased.
    return expand_bracket(value, enough, rtol * value, high, 8.0)


IntRange = tuple[int, int]


def halves(interval: IntRange) -> list[IntRange]:
    """Return the two halves of the range first..last, or an empty list for a single number."""
    first, last = interval
    middle = (first + last) // 2
    return [(first, middle), (middle + 1, last)] if first < last else []


@dataclass(frozen=True)
class SearchResult(Generic[B]):
    """Result of :func:`maximum`, with lower <= maximum <= upper.

    `left` has the blocks that were not split, with their upper bounds.

    `best` is the block in which the lower bound was found, or None if the lower bound is the value known before the search.
    `measured` is the number of blocks that were measured.
    """

    lower: float
    upper: float
    best: B | None
    left: list[tuple[float, B]]
    measured: int


def maximum(
    blocks: Sequence[B],
    measure: Callable[[Sequence[B], float], Sequence[tuple[float, float, float]]],
    split: Callable[[B], Sequence[B]],
    *,
    tolerance: Callable[[float], float],
    reached: float = -math.inf,
    batch: int = 1,
    most: float = math.inf,
    stop: Callable[[float], bool] | None = None,
) -> SearchResult[B]:
    """Return bounds of the largest value in the blocks, by best-first branch and bound.

    A block is a set of values. ``measure(blocks, enough)`` returns three numbers for each block: a lower and an upper bound of one
    value in the block (both -inf if no value was evaluated), and an upper bound of all values in the block. If this last bound is
    at most `enough`, it need not be tighter. ``split(block)`` returns smaller blocks, or no block for a single value. Each round
    splits the `batch` blocks that have the largest upper bounds. Let v be the larger of `reached`, a value known before, and the
    largest upper bound of an evaluated value. The search ends when no block exceeds v + tolerance(v), when `most` blocks have been
    measured, or when ``stop(bound)`` is true for the largest upper bound of a block.
    """
    order = itertools.count()
    heap: list[tuple[float, int, B, Sequence[B]]] = []
    left: list[tuple[float, B]] = []
    lower = upper = reached
    best: B | None = None
    measured = 0
    above = [math.inf] * len(blocks)
    while blocks:
        enough = upper + tolerance(upper) if upper > -math.inf else upper
        for block, outer, (low, high, bound) in zip(blocks, above, measure(blocks, enough)):
            # A kernel returns NaN outside its domain; the trivial bound 0 = log 1 replaces NaN. The upper bound of a part is at
            # most that of its block.
            high, bound = min(outer, 0.0 if math.isnan(high) else high), min(outer, 0.0 if math.isnan(bound) else bound)
            if low > lower:
                lower, best = low, block
            upper = max(upper, high)
            pieces = split(block)
            if pieces:
                heapq.heappush(heap, (-bound, next(order), block, pieces))
            else:
                left.append((bound, block))
        measured += len(blocks)
        tick()
        enough = upper + tolerance(upper) if upper > -math.inf else upper
        blocks, above = [], []
        while heap and -heap[0][0] > enough and len(blocks) < 2 * batch and measured < most:
            if stop is not None and stop(-heap[0][0]):
                break
            bound, _, _, pieces = heapq.heappop(heap)
            blocks = [*blocks, *pieces]
            above += [-bound] * len(pieces)
    left += [(-bound, block) for bound, _, block, _ in heap]
    return SearchResult(lower, max([upper, *(bound for bound, _ in left)]), best, left, measured)
