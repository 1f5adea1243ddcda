r"""Splits of eps among the changes of a group: eps_1, ..., eps_k with the sum eps, whose bound of delta is close to the smallest.

Let :math:`C_j = e^{\varepsilon_1 + \cdots + \varepsilon_j}`. The bound :math:`F = \sum_j C_{j-1}\, \delta(\varepsilon_j)` is a
convex function of :math:`C_1, \ldots, C_k`: delta is convex in :math:`E = e^\varepsilon`, and each term is its perspective. For a
fixed :math:`\varepsilon`, F is smallest where :math:`Q(\varepsilon_j) = P(\varepsilon_{j+1})` for every j, with
:math:`Q = -d\delta/dE` and :math:`P = \delta + E\, Q`, the probabilities of the best test. So one number
:math:`\alpha = Q(\varepsilon_k)` determines the best split for one sum, from the last change to the first: each part attains the
minimum :math:`g(\alpha) = \min_{\varepsilon \ge 0} \delta(\varepsilon) + e^\varepsilon \alpha`, and :math:`g(\alpha)` is the number
of the change before. Between two splits that are the best ones for their sums, the :math:`C_j` are interpolated linearly.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from shufflebounds._base.limits import ALL_OUTCOMES, COMPARED, MOST_ROUNDS
from shufflebounds._base.types import FloatArray

__all__ = ["Splits", "breakpoints"]

FINER = 16
"""Number of parts of each interval between two values of log delta. Raised: longer run time. Lowered: splits that are farther from
the best one."""


NEAR = 1 / 64
"""Distance from the end of an interval, as a part of its length, at which the slope of delta is computed. Raised: breakpoints
near the end are missed. Lowered: rounding errors of the slope."""

BREAKPOINTS = 128
"""Largest number of eps between which delta is taken as linear in e^eps. Raised: longer run time. Lowered: less tight bounds for
mechanisms of many outputs."""


def breakpoints(profile: Any) -> FloatArray | None:
    """Return eps from 0 on between which delta of a mechanism of few outputs is linear in e^eps; None for other profiles."""
    info = profile._pair_info()
    if info.sampling.expensive or not 0 < len(info.below) <= COMPARED or any(one.losses.listed is None for one in info.below):
        return None
    lists = [one.losses.listed(ALL_OUTCOMES) for one in info.below]
    if any(one is None or one.loss.size > BREAKPOINTS for one in lists):
        return None
    eps = np.unique(np.concatenate([[0.0], *(one.loss for one in lists)]))
    eps = eps[(eps >= 0) & (eps < math.inf)]
    for _ in range(MOST_ROUNDS if eps.size <= BREAKPOINTS else 0):
        # Delta is the largest of several functions, each linear between these eps. If the lines next to both ends of an interval
        # meet inside, delta has a breakpoint there.
        at = np.exp(eps)
        near = np.diff(at) * NEAR
        delta, after, before = (np.exp(profile._known_side(np.log(x), upper=True)) for x in (at, at[:-1] + near, at[1:] - near))
        with np.errstate(divide="ignore", invalid="ignore"):
            left, right = (after - delta[:-1]) / near, (delta[1:] - before) / near
            meets = at[:-1] + (delta[1:] - delta[:-1] - right * np.diff(at)) / (left - right)
        inside = (right - left > 1e-9 * np.abs(left)) & (meets > at[:-1] + near) & (meets < at[1:] - near)
        if not inside.any():
            break
        eps = np.sort(np.append(eps, np.log(meets[inside])))
    return eps if 1 < eps.size <= BREAKPOINTS else None


class Splits(NamedTuple):
    """The best splits for increasing sums.

    Attributes
    ----------
    sums : ndarray
        The sums of eps over all changes.
    splits : ndarray, shape (sums, blocks)
        The eps of one change in each block; a block has changes with the same eps.
    """

    sums: FloatArray
    splits: FloatArray

    @classmethod
    def linear(cls, eps: FloatArray, log_delta: FloatArray, size: int) -> Self:
        """Return the best splits, with a block for each change, if delta is linear in e^eps between two of the given eps.

        Then g is piecewise linear, and for all alpha between two of its breakpoints under iteration the best split is the same.
        """
        growth, delta = np.exp(eps), np.exp(log_delta)
        ends = [-np.diff(delta) / np.diff(growth)]
        for _ in range(size - 1):
            # The inverse of a minimum of increasing functions is the maximum of their inverses.
            ends.append(((ends[-1][:, None] - delta) / growth).max(axis=1))
        inner = np.concatenate(ends)
        inner = np.unique(inner[inner > 0])
        alpha = np.concatenate([inner[:1] / 2, np.sqrt(inner[:-1] * inner[1:]), 2 * inner[-1:]]) if inner.size else np.ones(1)
        splits = np.empty((alpha.size, size))
        for j in range(size)[::-1]:
            values = delta + growth * alpha[:, None]
            splits[:, j] = eps[values.argmin(axis=1)]
            alpha = values.min(axis=1)
        return cls._sorted(splits, np.ones(size))

    @classmethod
    def smooth(cls, eps: FloatArray, log_delta: FloatArray, counts: FloatArray) -> Self:
        """Return splits close to the best one for a smooth delta, given at increasing eps from 0 on; `counts` has the sizes of the
        blocks.

        sqrt(-log delta) is interpolated by cubic polynomials.
        """
        roots, width = np.sqrt(-log_delta), np.diff(eps)
        slopes = np.gradient(roots, eps, edge_order=2)
        t = np.arange(FINER)[:, None] / FINER
        # The cubic polynomials with the given values and slopes at both ends, and their slopes.
        ends, starts = slopes[1:], slopes[:-1]
        rise = np.diff(roots) / width
        bend, twist = 3 * rise - 2 * starts - ends, starts + ends - 2 * rise
        fine, values, slopes = (np.append(part.T, last) for part, last in (
            (eps[:-1] + width * t, eps[-1]), (roots[:-1] + width * t * (starts + t * (bend + t * twist)), roots[-1]),
            (starts + t * (2 * bend + t * 3 * twist), ends[-1])))
        steps = {count: _Step.of(fine, -values**2, -2 * values * slopes, count) for count in np.unique(counts).tolist()}
        # For alpha below the last value of a step, its part is the last eps.
        first = steps[counts[-1]].alpha
        alpha = np.concatenate([np.linspace(first[0] - float(counts.sum()) * fine[-1], first[0], fine.size)[:-1], first])
        splits = np.empty((alpha.size, counts.size))
        for j in range(counts.size)[::-1]:
            splits[:, j], alpha = steps[counts[j]](alpha)
        return cls._sorted(splits, counts)

    @classmethod
    def _sorted(cls, splits: FloatArray, counts: FloatArray) -> Self:
        sums, places = np.unique(splits @ counts, return_index=True)
        return cls(sums, splits[places])

    def at(self, eps: float) -> tuple[FloatArray, FloatArray]:
        """Return the best splits for the next smaller and the next larger sum, or one of the two twice."""
        place = int(np.searchsorted(self.sums, eps))
        return self.splits[max(place - 1, 0)], self.splits[min(place, self.sums.size - 1)]


class _Step(NamedTuple):
    """One block of the chain: the best eps of one change, and log g, at increasing log alpha.

    `ends` has log delta at the smallest and at the largest eps, of which all changes of the block together have `reach`.
    """

    alpha: FloatArray
    eps: FloatArray
    following: FloatArray
    ends: tuple[float, float]
    reach: float

    @classmethod
    def of(cls, eps: FloatArray, log_delta: FloatArray, slope: FloatArray, count: float) -> Self:
        """Return the step of a block of `count` changes, given values and slopes of log delta of one change."""
        # The bound of a block is delta times 1 + e^eps + ... + e^((count-1) eps).
        with np.errstate(divide="ignore", invalid="ignore"):
            links = (count - 1) * eps + np.log(np.expm1(-count * eps) / np.expm1(-eps))
            growth = count / -np.expm1(-count * eps) - 1 / -np.expm1(-eps)
        log_delta = log_delta + np.where(eps > 0, links, math.log(count))
        fall = np.maximum(-(slope + np.where(eps > 0, growth, (count - 1) / 2)) / count, 1e-300)
        alpha = np.minimum.accumulate(log_delta + np.log(fall) - count * eps)
        following = log_delta + np.log1p(fall)
        return cls(alpha[::-1], eps[::-1], following[::-1], (float(log_delta[0]), float(log_delta[-1])), float(count * eps[-1]))

    def __call__(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the best eps at each log alpha, and the next log alpha."""
        following = np.interp(alpha, self.alpha, self.following)
        following = np.where(alpha > self.alpha[-1], np.logaddexp(self.ends[0], alpha), following)
        following = np.where(alpha < self.alpha[0], np.logaddexp(self.ends[1], self.reach + alpha), following)
        return np.interp(alpha, self.alpha, self.eps), following
