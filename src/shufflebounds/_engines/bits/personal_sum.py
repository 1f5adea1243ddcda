"""Delta of a sum of bits with personalized flip probabilities, for one dataset and one target.

`PersonalizedBits` uses this module if the dataset is given.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.types import FloatArray, Interval
from shufflebounds._core import _bits

__all__ = ["SMALLEST_BUDGET", "BernoulliGroups", "Groups", "by_kind", "distinct"]


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
