"""The law of the error of an estimated count: exact for given data, enclosed for the worst."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from shufflebounds import _validate
from shufflebounds._types import ULP, Interval
from shufflebounds.shuffle._accuracy import ErrorLaw, log_exceeded
from shufflebounds.shuffle._worst_count import largest_tail, tails_over_counts

__all__ = ["Chances", "CountErrors"]

class Chances(NamedTuple):
    """Chances that a message supports the value behind it, and another value; their complements, and the gap between them."""

    own: float
    not_own: float
    other: float
    not_other: float
    gap: float


@dataclass(frozen=True)
class CountErrors(ErrorLaw):
    """The error of the estimated number of holders of a value, of `users` users; `bins` values are estimated.

    `truth` is the number of users who hold the value, for any of them together the largest such number.
    """

    chances: Chances
    users: int
    bins: int

    @property
    def variance(self) -> float:
        """Largest variance of one estimate, over all data."""
        return max(self._variance(held) for held in (0, self.users))

    def _variance(self, held: float) -> float:
        own, not_own, other, not_other, gap = self.chances
        if gap < 1e-140:
            raise _validate.InfeasibleError(f"the messages say next to nothing: a value supports its own by {gap:.3g} more than "
                                            "another's, and the error of an estimate leaves the numbers there are")
        return (held * own * not_own + (self.users - held) * other * not_other) / gap**2

    def _checked_truth(self, truth: Any) -> int | None:
        return None if truth is None else _validate.integer("truth", truth, 0, self.users)

    def _scale(self) -> float:
        return math.sqrt(self.variance) + 1

    def _many(self) -> int:
        return self.bins

    def _even(self) -> int:
        return -(-self.users // self.bins)

    def _error(self, a: Fraction, truth: int | None) -> Interval:
        reach = a * Fraction(self.chances.gap)
        if truth is not None:
            return self._known(truth, self.users - truth, reach)
        return largest_tail(self.users, self._known, self._largest_variance, reach)

    @property
    def _largest_variance(self) -> float:
        own, not_own, other, not_other, _ = self.chances
        return max(own * not_own, other * not_other)

    def _any_error(self, a: Fraction, truth: int | None) -> Interval:
        if truth is not None:
            return super()._any_error(a, truth)
        # every user holds one value: a value has users/values holders on average, where the concave envelope of the tail is read
        reach = a * Fraction(self.chances.gap)
        lower, points = tails_over_counts(self.users, self._known, self._largest_variance, reach)
        return Interval(lower, min(0.0, math.log(self.bins) + _envelope(points, self.users / self.bins)))

    def _known(self, held: int, others: int, reach: Fraction) -> Interval:
        own, not_own, other, not_other, _ = self.chances
        center = held * Fraction(own) + others * Fraction(other)
        one, zero = np.array([own, other]), np.array([not_own, not_other])
        return log_exceeded(one, zero, np.array([held, others], dtype=np.float64), center, reach, rounding=8 * ULP)


def _envelope(points: list[tuple[int, float]], mean: float) -> float:
    """Return, at the mean, the logarithm of the least concave and not falling function above all points (x, e^y)."""
    top = max(y for _, y in points)
    if top == -math.inf:
        return top
    x = np.array([float(x) for x, _ in points])
    y = np.exp(np.array([y for _, y in points]) - top)
    # the least line above all points, by its slope: convex and piecewise linear, so that a finite list of slopes has it
    right = x > mean
    slopes = np.concatenate([[0.0], ((y[right][:, None] - y[~right][None, :]) / (x[right][:, None] - x[~right][None, :])).ravel()])
    slopes = np.unique(np.maximum(slopes, 0.0))
    best = math.inf
    for part in np.array_split(slopes, max(1, slopes.size // 1024)):
        best = min(best, float((part * mean + (y[None, :] - part[:, None] * x[None, :]).max(axis=1)).min()))
    return top + math.log(best) + 1e-12
