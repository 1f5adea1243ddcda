"""Distribution of the error of an estimated count: exact for a given dataset, with bounds for the worst dataset."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.types import ULP, Interval
from shufflebounds._engines.errors.accuracy import CountErrorLaw, log_exceeded
from shufflebounds._engines.errors.worst_count import largest_tail, tails_over_counts

__all__ = ["CountErrors", "SupportProbabilities"]


class SupportProbabilities(NamedTuple):
    """Probabilities that a message supports the user's value (`own`), and another value (`other`).

    A message supports the values whose counts it increases. `not_own` and `not_other` are the complements, and `gap` is own -
    other; all have small relative errors.
    """

    own: float
    not_own: float
    other: float
    not_other: float
    gap: float


@dataclass(frozen=True)
class CountErrors(CountErrorLaw):
    """The error of the estimated number of users with a value, out of `users` users; `bins` values are estimated.

    Every user has `each` of the values: one, or the number of bits that a user's value sets in a Bloom filter.
    """

    probabilities: SupportProbabilities
    users: int
    bins: int
    each: int = 1

    @property
    def variance(self) -> float:
        """Largest variance of one estimate over all datasets."""
        return max(self._variance(holders) for holders in (0, self.users))

    def _variance(self, holders: float) -> float:
        """Return the variance of the estimate for a value that `holders` users have."""
        own, not_own, other, not_other, gap = self.probabilities
        if gap < 1e-140:
            raise _validate.InfeasibleError(f"the probabilities of support by the own value and by another differ by {gap:.3g}: "
                                            "the error of an estimate overflows: choose a larger local budget")
        return (holders * own * not_own + (self.users - holders) * other * not_other) / gap**2

    @property
    def _held(self) -> int:
        return self.each * self.users

    def _one_mean_square(self, held: int | None) -> float:
        if held is None and self.bins == 1:
            return self.variance
        # The variance is linear in the number of holders, so its mean over all bins is the variance for the mean number.
        return self._variance(self._held / self.bins if held is None else held)

    def _scale(self) -> float:
        return math.sqrt(self.variance) + 1

    def _many(self) -> int:
        return self.bins

    def _one_error(self, a: Fraction, held: int | None) -> Interval:
        reach = a * Fraction(self.probabilities.gap)
        if held is not None:
            return self._known(held, self.users - held, reach)
        return largest_tail(self.users, self._known, self._largest_variance, reach)

    def _rounding(self, a: Fraction, truth: Any) -> float:
        # The estimate has the rounding errors of three operations, and a bias, because its probabilities are rounded by up to 8 ULP
        # of `own`.
        own, _, _, _, gap = self.probabilities
        return ULP * (16 * self.users * own / gap + 4 * float(a))

    @property
    def _largest_variance(self) -> float:
        own, not_own, other, not_other, _ = self.probabilities
        return max(own * not_own, other * not_other)

    def _largest_error(self, a: Fraction, largest: int | None) -> Interval:
        # The mean of the counts of all values is the same for every dataset. The tails of all bins sum to at most `bins` times the
        # concave envelope of the tail, as a function of the count, at this mean.
        reach = a * Fraction(self.probabilities.gap)
        mean = self._held / self.bins
        lower, points = tails_over_counts(self.users, self._known, self._largest_variance, reach)
        high = _envelope(points, mean)
        if largest is not None:
            # If only counts up to `largest` are evaluated, the blocks of counts are shorter, but their bounds may be larger. So the
            # smaller of the two results is used.
            lower = self._one_error(a, largest).lower
            points = tails_over_counts(self.users, self._known, self._largest_variance, reach, largest).points
            high = min(high, _envelope(points, mean))
        return Interval(lower, min(0.0, math.log(self.bins) + high))

    def _known(self, holders: int, others: int, reach: Fraction) -> Interval:
        """Return bounds of log Pr[|error| > reach] if `holders` users have the value; the unit of `reach` is one message."""
        own, not_own, other, not_other, _ = self.probabilities
        # `center`, the mean of the count, is computed with integers, because a sum of two products of fractions takes five times as
        # long.
        (own_number, own_parts), (other_number, other_parts) = own.as_integer_ratio(), other.as_integer_ratio()
        center = Fraction(holders * own_number * other_parts + others * other_number * own_parts, own_parts * other_parts)
        one, zero = np.array([own, other]), np.array([not_own, not_other])
        return log_exceeded(one, zero, np.array([holders, others], dtype=np.float64), center, reach, rounding=8 * ULP)


def _envelope(points: list[tuple[int, float]], mean: float) -> float:
    """Return log f(mean) for the smallest concave nondecreasing function f with f(x) >= e^y at all `points` (x, y)."""
    top = max(y for _, y in points)
    if top == -math.inf:
        return top
    x = np.array([float(x) for x, _ in points])
    y = np.exp(np.array([y for _, y in points]) - top)
    # For a slope, take the lowest line that is nowhere below the points. Its value at the mean is a convex, piecewise linear
    # function of the slope. The minimum is at the slope 0, or at the slope of the line through one point to the left and one point
    # to the right of the mean.
    right = x > mean
    slopes = np.concatenate([[0.0], ((y[right][:, None] - y[~right][None, :]) / (x[right][:, None] - x[~right][None, :])).ravel()])
    increasing: list[float] = np.unique(np.maximum(slopes, 0.0)).tolist()

    def height(slope: float) -> tuple[float, float]:
        """Return the value at `mean` of the lowest line above the points with this slope, and its derivative in the slope."""
        values = slope * mean + (y - slope * x)
        at = int(values.argmax())
        return float(values[at]), mean - float(x[at])

    # The derivative increases with the slope; the minimum is attained where the derivative changes its sign.
    at = bisect_left(increasing, True, hi=len(increasing) - 1, key=lambda slope: height(slope)[1] >= 0)
    best = min(height(slope)[0] for slope in increasing[max(0, at - 1) : at + 2])
    return top + math.log(best) + 1e-12
