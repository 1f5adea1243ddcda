"""Delta of a sum of bits with personalized flip probabilities for one dataset, and the user whose delta is largest.

`PersonalizedBits` uses this module if the dataset is given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.crossing import Curve
from shufflebounds._base.limits import COMPARED, MOST_ENUMERATED, SAME_LOG, SEARCH_GAP
from shufflebounds._base.search import IntRange, halves, maximum
from shufflebounds._base.types import FloatArray, Interval
from shufflebounds._core import _bits

__all__ = ["SMALLEST_BUDGET", "BernoulliGroups", "Groups", "WorstTarget", "by_kind", "distinct"]


SMALLEST_BUDGET = 1e-290
"""Differences of the budget and eps below this number count as this number or 0: the kernel halves them, which is not exact for
subnormal numbers."""


@dataclass(frozen=True, eq=False)
class BernoulliGroups:
    """Independent bits in groups of equal distribution: the probabilities of 1 and of 0, and the number of bits, of each group.

    The smaller of the two probabilities has full relative accuracy.
    """

    one: FloatArray
    zero: FloatArray
    counts: FloatArray

    @classmethod
    def of(cls, budgets: FloatArray, bits: FloatArray, counts: FloatArray) -> Self:
        """Return the distribution of the randomized responses to these bits."""
        flip, keep = np.exp(-budgets) / (1 + np.exp(-budgets)), 1 / (1 + np.exp(-budgets))
        return cls(np.where(bits == 1, keep, flip), np.where(bits == 1, flip, keep), counts)

    def mirrored(self) -> BernoulliGroups:
        """Return the distribution with 0 and 1 exchanged."""
        return BernoulliGroups(self.zero, self.one, self.counts)

    @cached_property
    def arrays(self) -> tuple[FloatArray, FloatArray, FloatArray | None]:
        """The arguments of the kernel, without empty groups; `counts` is None if all counts are 1."""
        kept = self.counts > 0
        one, zero, counts = (a if kept.all() else a[kept] for a in (self.one, self.zero, self.counts))
        return one, zero, None if (counts == 1).all() else counts

    def sides(self, budget: float, eps: float) -> Interval:
        """Return bounds of log delta of a target with this budget, for its bit 0 against 1, given the other users' bits."""
        flip, gap = math.exp(-budget) / (1 + math.exp(-budget)), budget - eps
        if 0 < gap < SMALLEST_BUDGET:
            return Interval(-math.inf, _bits.bits_log_delta(*self.arrays, flip, eps, SMALLEST_BUDGET)[1])
        return Interval(*_bits.bits_log_delta(*self.arrays, flip, eps, gap))


class Groups(NamedTuple):
    """Groups of users with equal budget and bit, sorted by bit and then by budget; `counts` has the number of users of each."""

    budgets: FloatArray
    bits: FloatArray
    counts: FloatArray


def by_kind(local_eps: FloatArray, data: FloatArray, counts: FloatArray | None = None) -> Groups:
    """Return the distinct (budget, bit) pairs with their numbers of users; `counts[i]` users have the i-th budget and bit."""
    # Two calls of np.unique, one for each bit, take a tenth of the time of one call for pairs (budget, bit).
    kinds = [(bit, *distinct(local_eps[data == bit], None if counts is None else counts[data == bit])) for bit in (0.0, 1.0)]
    return Groups(np.concatenate([budgets for _, budgets, _ in kinds]), np.repeat([0.0, 1.0], [b.size for _, b, _ in kinds]),
                  np.concatenate([sizes for *_, sizes in kinds]))


def distinct(values: FloatArray, counts: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the distinct values in increasing order and the number of users with each; without `counts`, `values` is sorted in
    place.
    """
    if counts is not None:
        unique, place = np.unique(values, return_inverse=True)
        return unique, np.bincount(place, weights=counts, minlength=unique.size).astype(np.float64)
    values.sort()
    if (values[1:] > values[:-1]).all():
        # If all values are distinct, np.unique would take twice the time and three times the memory.
        return values, np.ones(values.size)
    unique, sizes = np.unique(values, return_counts=True)
    return unique, sizes.astype(np.float64)


def _coarser(exact: Groups) -> Groups:
    """Return fewer groups, for an upper bound: each budget is replaced by the largest budget in the same cell of a grid.

    Larger budgets of the other users mean smaller flip probabilities, which can only increase the privacy loss of the target.
    """
    budgets, bits, counts = exact
    if budgets.size <= MOST_ENUMERATED:
        return exact
    width = np.ptp(budgets) / (MOST_ENUMERATED // 2)
    cell = np.floor((budgets - budgets.min()) / width)
    start = np.flatnonzero(np.r_[True, (cell[1:] != cell[:-1]) | (bits[1:] != bits[:-1])])
    return Groups(np.maximum.reduceat(budgets, start), bits[start], np.add.reduceat(counts, start))


@dataclass(frozen=True, eq=False)
class WorstTarget:
    """The largest delta of any user for a given dataset.

    Upper bounds use coarser groups, with budgets rounded up; lower bounds use the exact groups.
    """

    exact: Groups
    coarse: Groups

    @classmethod
    def of(cls, local_eps: FloatArray, data: FloatArray, counts: FloatArray | None) -> Self:
        """Return the search for users with these budgets and bits."""
        exact = by_kind(local_eps, data, counts)
        return cls(exact, _coarser(exact))

    @cached_property
    def targets(self) -> FloatArray:
        """The distinct budgets of the coarser groups, in increasing order."""
        return np.unique(self.coarse.budgets)

    @cached_property
    def _laws(self) -> dict[bool, BernoulliGroups]:
        """The distributions of all users' bits: with exact budgets (key False), and with budgets that are rounded up (key True)."""
        return {rounded: BernoulliGroups.of(*groups) for rounded, groups in ((False, self.exact), (True, self.coarse))}

    def _one(self, rounded: bool, budget: float, eps: float) -> Interval:
        """Return bounds of the largest log delta of the targets with this budget, over their bits and over (P, Q) and (Q, P)."""
        budgets = (self.coarse if rounded else self.exact).budgets
        law, sides = self._laws[rounded], []
        for place in np.flatnonzero(budgets == budget):
            counts = law.counts.copy()
            counts[place] -= 1
            rest = BernoulliGroups(law.one, law.zero, counts)
            sides += [rest.sides(budget, eps), rest.mirrored().sides(budget, eps)]
        return Interval(max(low for low, _ in sides), max(high for _, high in sides))

    def _below(self, budget: float, eps: float) -> float:
        """Return the lower bound of log delta for the target with the largest exact budget that is at most `budget`."""
        kinds = self.exact.budgets
        return self._one(False, float(kinds[kinds <= budget].max()), eps)[0]

    def _above(self, first: int, last: int, eps: float) -> float:
        """Return an upper bound of log delta for every target with a budget in targets[first..last].

        For several targets, this is the bound for the largest of these budgets, without the other users whose budgets are in this
        range: fewer other users can only increase delta.
        """
        if first == last:
            return self._one(True, float(self.targets[first]), eps)[1]
        budgets, law, largest = self.coarse.budgets, self._laws[True], float(self.targets[last])
        inside = (budgets >= self.targets[first]) & (budgets <= largest)
        rest = BernoulliGroups(law.one, law.zero, np.where(inside, 0, law.counts))
        return max(rest.sides(largest, eps).upper, rest.mirrored().sides(largest, eps).upper)

    def sides(self, eps: float) -> Interval:
        """Return bounds of log delta for the user whose delta is largest, by branch and bound over ranges of sorted budgets."""
        def measure(intervals: Sequence[IntRange], enough: float) -> list[tuple[float, float, float]]:
            out = []
            for first, last in intervals:
                middle, bound = (first + last) // 2, self._above(first, last, eps)
                # Only a block with a bound above `enough` may contain the worst target; the middle target of such a block is
                # evaluated.
                low = high = -math.inf
                if bound > enough:
                    high = bound if first == last else self._above(middle, middle, eps)
                    low = self._below(self.targets[middle], eps) if high > enough else -math.inf
                out.append((low, high, bound))
            return out

        lower = self._below(float(self.targets[-1]), eps)
        # The worst target is most often the last one, so it is a block of its own. Each block of smaller budgets is twice as long
        # as the next one, as if the range of targets had been halved again and again towards the last target.
        ends = [self.targets.size - 1]
        while ends[-1] > 0:
            ends.append(max(2 * ends[-1] - self.targets.size, 0) if ends[-1] < ends[0] else ends[0] - 1)
        blocks = [(0, ends[-1]), *((low + 1, high) for high, low in pairwise(ends))]
        # The tolerance is below SEARCH_GAP, so that the gap of the result, rounding included, is at most SEARCH_GAP.
        result = maximum(blocks, measure, halves, tolerance=lambda best: 0.99 * SEARCH_GAP, reached=lower)
        return Interval(result.lower, result.upper)

    def rough(self) -> Curve:
        """Return the upper bound of log delta for the user with the largest budget, as a curve for the search for eps."""
        last = float(self.targets[-1])
        # For more than COMPARED distinct budgets the bounds of log delta have a gap, so a relative error SAME_LOG of eps is enough.
        settles = SAME_LOG if self.targets.size > COMPARED else 0.0
        return Curve(lambda eps: min(0.0, self._one(True, last, eps).upper), settles=settles)
