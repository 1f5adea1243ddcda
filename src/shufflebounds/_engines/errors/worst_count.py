"""Bounds of Pr[|error of an estimated count| > x], over every number of users who have the counted value.

A holder is a user who has the value. The errors of counting protocols cover every dataset by covering every number of holders.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from shufflebounds._base.limits import UNDERFLOW_EXPONENT
from shufflebounds._base.search import IntRange, halves, maximum
from shufflebounds._base.types import Interval
from shufflebounds.tails.concentration import bernstein

__all__ = ["CountTails", "largest_tail", "tails_over_counts"]

SCANNED = 256
"""Largest number of counts of holders that are evaluated one by one. More counts are divided into this number of blocks, with one
upper bound each. More blocks give a tighter upper bound in proportionally more time."""

Tail = Callable[[int, int, Fraction], Interval]
"""``tail(holders, others, reach)`` bounds log Pr[|error| > reach] for `holders` users with the value and `others` without it."""


class CountTails(NamedTuple):
    """Bounds of the log tail probability over all numbers of holders: one lower bound, and a list of upper bounds.

    An entry (first, upper bound) is valid for the numbers of holders from `first` up to the next entry.
    """

    lower: float
    points: list[tuple[int, float]]


class _Blocks:
    """Bounds of the log tail for blocks of numbers of holders.

    A block is a range first..end of numbers of holders. In a block `first` users are holders, users - end users are not, and end -
    first users are undetermined. By Bernstein's inequality there is a number a such that the part of the error due to the
    undetermined users exceeds a with probability at most 2 e^-depth. So for every number in the block, the tail at `reach` is at
    most the tail of the other users at reach - a, plus 2 e^-depth.
    """

    def __init__(self, users: int, tail: Tail, variance: float, reach: Fraction, last: int) -> None:
        self._users, self._tail, self._variance, self._reach = users, tail, variance, reach
        self.lower = max(tail(count, users - count, reach).lower for count in {0, min(users // 2, last), last})
        # The depth is chosen such that the term 2 e^-depth, which `upper` adds to the tail, is at most 2 e^-6 of the largest tail.
        self._depth = max(1.0, 6.0 - self.lower) if self.lower > -math.inf else UNDERFLOW_EXPONENT
        self._left: dict[int, Fraction] = {}

    def left(self, undetermined: int) -> Fraction:
        """Return reach - a, the error that the other users must exceed if this number of users in a block is undetermined."""
        if undetermined not in self._left:
            self._left[undetermined] = self._reach - Fraction(bernstein(undetermined * self._variance, self._depth))
        return self._left[undetermined]

    def upper(self, first: int, end: int) -> float:
        """Return an upper bound of the log tail for every number of holders from first to end."""
        left = self.left(end - first)
        if left < 0:
            return 0.0
        high = self._tail(first, self._users - end, left).upper
        return min(0.0, float(np.logaddexp(high, math.log(2) - self._depth)) + 1e-12)


def tails_over_counts(users: int, tail: Tail, variance: float, reach: Fraction, last: int | None = None) -> CountTails:
    """Return bounds of log Pr[|error| > reach] for every number of holders among the users, up to `last` if it is given.

    Parameters
    ----------
    tail : callable
        Bounds of the log tail for known counts; it is also called with fewer than `users` users in all.
    variance : float
        Largest variance of the contribution of one user.
    reach : Fraction
        The error, in units of the sum of contributions.
    """
    last = users if last is None else last
    if last < SCANNED:
        tails = [tail(count, users - count, reach) for count in range(last + 1)]
        return CountTails(max(low for low, _ in tails), [(count, high) for count, (_, high) in enumerate(tails)])
    blocks, width = _Blocks(users, tail, variance, reach, last), _width(last)
    firsts = range(0, last + 1, width)
    return CountTails(blocks.lower, [(first, blocks.upper(first, min(first + width - 1, last))) for first in firsts])


def largest_tail(users: int, tail: Tail, variance: float, reach: Fraction, last: int | None = None) -> Interval:
    """Return bounds of the largest log tail over every number of holders.

    If `last` is given, only numbers of holders up to `last` are evaluated; larger numbers must have the same tails by symmetry.
    """
    last = users if last is None else last
    if last < SCANNED:
        tails = [tail(count, users - count, reach) for count in range(last + 1)]
        return Interval(max(low for low, _ in tails), max(high for _, high in tails))
    blocks, width = _Blocks(users, tail, variance, reach, last), _width(last)

    def is_smallest(block: IntRange) -> bool:
        return block[1] - block[0] < width

    def measure(several: Sequence[IntRange], enough: float) -> list[tuple[float, float, float]]:
        # A block of the smallest size is not divided further. Its upper bound is also passed as its value, so that the search drops
        # blocks with smaller upper bounds.
        bounds = [(block, blocks.upper(*block)) for block in several]
        return [(-math.inf, bound if is_smallest(block) else -math.inf, bound) for block, bound in bounds]

    # If the undetermined users of a block alone may cause the error, its upper bound is the trivial bound 0. Such blocks are
    # divided before the search starts.
    starts, wide = [], [(0, last)]
    while wide:
        block = wide.pop()
        if blocks.left(block[1] - block[0]) >= 0:
            starts.append(block)
        elif is_smallest(block):
            return Interval(blocks.lower, 0.0)
        else:
            wide += halves(block)
    result = maximum(starts, measure, lambda block: [] if is_smallest(block) else halves(block),
                     tolerance=lambda best: 0.0, reached=blocks.lower)
    return Interval(blocks.lower, result.upper)


def _width(last: int) -> int:
    """Return the number of counts in a block of the smallest size."""
    return -(-(last + 1) // SCANNED)
