"""The tail of an estimate's error when the number of users who hold a value is unknown: bounds over every such number."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from shufflebounds._types import Between
from shufflebounds.tails.closed import bernstein

__all__ = ["CountTails", "tails_over_counts"]

SCANNED = 256
"""Most numbers of holders that are evaluated one by one. For more, the upper bound takes that many blocks of them; more blocks give
a tighter upper bound in proportionally more time."""

DEEPER = 6.0
"""Logarithm of the factor by which the probability that the users within a block move the error too far lies below the answer. A
larger one widens the allowance for these users; a smaller one lets their probability enter the answer."""

DEEPEST = 745.0
"""The same where the lower bound is 0: beyond the logarithm of the smallest positive double."""


class CountTails(NamedTuple):
    """Lower bound of the largest log tail, and an upper bound of the log tail for the counts from each listed first one on."""

    lower: float
    points: list[tuple[int, float]]

    @property
    def largest(self) -> Between:
        """Bounds of the largest log tail over all counts."""
        return Between(self.lower, max(high for _, high in self.points))


def tails_over_counts(
    users: int, known: Callable[[int, int, Fraction], Between], variance: float, reach: Fraction, *, last: int | None = None
) -> CountTails:
    """Return bounds of log Pr[|error| > reach] over every number of holders among the users.

    Parameters
    ----------
    users : int
        Number n of users.
    known : callable
        ``known(holders, others, reach)`` bounds the log tail for `holders` users with the value and `others` without it; it is
        also called with fewer than n users in all.
    variance : float
        Largest variance of the contribution of one user.
    reach : Fraction
        The error, in units of the sum of contributions.
    last : int, optional
        Largest number of holders that needs to be looked at, where larger ones follow by symmetry; n by default.

    Notes
    -----
    A block of counts first, ..., first + w leaves w users undetermined. Their part of the error exceeds a with probability at most
    2 e^-depth by Bernstein's inequality, so the tail at `reach` of any count in the block is at most the tail of the other users
    at reach - a, plus that probability.
    """
    last = users if last is None else last
    if last < SCANNED:
        tails = [known(count, users - count, reach) for count in range(last + 1)]
        return CountTails(max(low for low, _ in tails), [(count, high) for count, (_, high) in enumerate(tails)])
    lower = max(known(count, users - count, reach).lower for count in (0, users // 2, users))
    width = -(-(last + 1) // SCANNED)
    depth = max(1.0, DEEPER - lower) if lower > -math.inf else DEEPEST
    left = reach - Fraction(bernstein((width - 1) * variance, depth))
    points = []
    for first in range(0, last + 1, width):
        undetermined = min(width - 1, users - first)
        high = known(first, users - first - undetermined, left).upper
        points.append((first, min(0.0, float(np.logaddexp(high, math.log(2) - depth)) + 1e-12)))
    return CountTails(lower, points)
