"""Looking for a number: a root, the least argument that is enough, and the largest of many values by branch and bound."""

from __future__ import annotations

import heapq
import itertools
import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from shufflebounds._validate import MAX_COUNT

__all__ = ["Found", "Interval", "bracket", "halves", "least_int", "least_real", "maximum", "outward", "root"]

B = TypeVar("B")


def root(
    function: Callable[[float], float], low: float, high: float, at_low: float, at_high: float, *, rtol: float, xtol: float = 0.0
) -> float:
    """Return where the function changes its sign between low and high, by Chandrupatla's method.

    at_low, at_high are its values there, of opposite sign. The answer is within xtol + rtol |x| of a change of sign. About as many
    evaluations as Brent's method takes, fewer where the function is flat; infinite values are allowed.
    """
    a, at_a, b, at_b = high, at_high, low, at_low
    c, at_c, share = a, at_a, 0.5
    while True:
        x = a + share * (b - a)
        at_x = function(x)
        if (at_x > 0) == (at_a > 0):
            c, at_c = a, at_a
        else:
            c, at_c, b, at_b = b, at_b, a, at_a
        a, at_a = x, at_x
        best, at_best = (a, at_a) if abs(at_a) < abs(at_b) else (b, at_b)
        least = (xtol + rtol * abs(best)) / abs(b - a) if b != a else 1.0
        if at_best == 0 or least > 0.5:
            return best
        # inverse quadratic interpolation where the three values bend little enough
        place, value = (a - b) / (c - b), (at_a - at_b) / (at_c - at_b)
        if math.isfinite(value) and value * value < place and (1 - value) ** 2 < 1 - place:
            share = at_a / (at_b - at_a) * at_c / (at_b - at_c) + (c - a) / (b - a) * at_a / (at_c - at_a) * at_b / (at_c - at_b)
        else:
            share = 0.5
        share = min(1 - least, max(least, share))


def outward(start: float, enough: Callable[[float], bool], step: float, end: float, growth: float = 2.0) -> float:
    """Return the first number that is enough, at growing steps from start, or `end` if none is found before it.

    The first step is `step`, of the sign of end - start; each is `growth` times the one before.
    """
    value = start
    while not enough(value):
        value += step
        step *= growth
        if value >= end if step > 0 else value <= end:
            return end
    return value


def bracket(enough: Callable[[float], bool], low: float, high: float, *, rtol: float) -> tuple[float, float]:
    """Return two numbers next to each other: the first is not enough, the second is. What exceeds an enough is enough; low is not.

    Doubling starts at `high`. The interval that it finds is halved until it is within a relative rtol.
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
    """Return the least whole number in low..high that is enough, or None. Whatever exceeds an enough is enough.

    Steps that double lead away from the guess, upward or downward; then the last of them is halved.
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
    return bisect_left(range(top), True, lo=max(first, top - step if first == low else first), key=enough)


def least_real(
    excess: Callable[[float], float], low: float, high: float, *, enough: Callable[[float], bool], rtol: float = 1e-13
) -> float:
    """Return a number in (0, high] next to the least that is enough, as seen there; `high` is enough.

    excess(x) falls, through 0 about where x begins to be enough; `low` > 0 is where the search for it starts.
    """
    at_low = excess(low)
    while at_low <= 0:
        if low < 1e-300 and enough(low):
            return low
        low /= 16
        at_low = excess(low)

    def of_log(log_value: float) -> float:
        return excess(math.exp(log_value))

    # the value at high may be anything below 0: it is known to be enough
    at_high = -max(1.0, at_low)
    value = min(high, math.exp(root(of_log, math.log(low), math.log(high), at_low, at_high, rtol=1e-13, xtol=rtol)))
    # seldom more than a few steps, but where the sides are a search's, to its tolerance
    return outward(value, enough, rtol * value, high, 8.0)


Interval = tuple[int, int]


def halves(interval: Interval) -> list[Interval]:
    """Return the two halves of first..last; a single number has none."""
    first, last = interval
    middle = (first + last) // 2
    return [(first, middle), (middle + 1, last)] if first < last else []


@dataclass(frozen=True)
class Found(Generic[B]):
    """What a search for a maximum knows: lower <= maximum <= upper, and the blocks that are left, with a bound of each.

    `best` is the block where the lower bound was seen, None where that is the one known before; `measured` counts blocks.
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
    known: float = -math.inf,
    batch: int = 1,
    most: float = math.inf,
) -> Found[B]:
    """Return bounds of the largest of the values that the blocks hold, by best-first branch and bound.

    ``measure(blocks, enough)`` gives for each block a lower and an upper bound of one value in it (-inf, -inf: of none) and an
    upper bound of all; a bound that is at most `enough` need not be improved, nor the value be looked at. ``split(block)`` gives
    smaller blocks, none for a single value. `batch` blocks with the largest bounds are split at a time, until these are within
    tolerance(best) of the best upper value seen, or of the `known` one, or `most` blocks have been measured.
    """
    order = itertools.count()
    heap: list[tuple[float, int, B, Sequence[B]]] = []
    left: list[tuple[float, B]] = []
    lower = upper = known
    best: B | None = None
    measured = 0
    above = [math.inf] * len(blocks)
    while blocks:
        enough = upper + tolerance(upper) if upper > -math.inf else upper
        for block, outer, (low, high, bound) in zip(blocks, above, measure(blocks, enough)):
            # a kernel that leaves its range says nothing; nothing exceeds the bound of the block that was split
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
        enough = upper + tolerance(upper) if upper > -math.inf else upper
        blocks, above = [], []
        while heap and -heap[0][0] > enough and len(blocks) < 2 * batch and measured < most:
            bound, _, _, pieces = heapq.heappop(heap)
            blocks = [*blocks, *pieces]
            above += [-bound] * len(pieces)
    left += [(-bound, block) for bound, _, block, _ in heap]
    return Found(lower, max([upper, *(bound for bound, _ in left)]), best, left, measured)
