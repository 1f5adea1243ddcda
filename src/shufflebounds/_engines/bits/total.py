"""The total of flipped bits if a person holds several of them: bounds for given datasets and for the worst one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from shufflebounds._base.crossing import Curve
from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import FloatArray, IntervalArray
from shufflebounds._core import _worst_bits
from shufflebounds._engines.bits.bit_blocks import blocks_of_ones
from shufflebounds._losses.budget import log_odds
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import SINGLE, Attained, DominatingPairInfo, Reverse, Sampling

__all__ = ["TotalOfBits"]


class TotalOfBits(ClosedForms):
    """Bounds for the total of all bits: `others` bits of the other users, and `bits` bits of the target."""

    def __init__(self, others: int, bits: int, flip: float) -> None:
        self.others, self.bits, self.flip, self.pure = others, bits, flip, log_odds(flip).times(bits).above

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        # With more than 2^32 bits delta depends little on the dataset: a search with a smaller tolerance would evaluate many
        # datasets.
        tolerance = 2e-4 if self.others > 2**32 else 0.0

        def sides(at: FloatArray) -> IntervalArray:
            return IntervalArray(*_worst_bits.worst_log_delta(self.others, 0, self.bits, self.flip, at, self.pure - at, tolerance))

        return self._within(eps, sides, lambda far: np.maximum(*(self.known_data(ones, far).lower for ones in (0, self.others))))

    def rough(self, upper: bool) -> Curve | None:
        if self.flip == 0:
            return None
        # The approximate curve is delta of the dataset in which all other bits are 0, usually the worst dataset.
        return Curve(lambda eps: min(0.0, self.known_data(0, np.array([eps])).alone()[upper]), settles=1e-12)

    def _within(
        self, eps: FloatArray, kernel: Callable[[FloatArray], IntervalArray], beyond: Callable[[FloatArray], FloatArray]
    ) -> IntervalArray:
        """Return the bounds of log delta that `kernel` computes; `kernel` is called only at eps below the pure budget.

        For eps above LARGEST_EXPONENT, where e^eps would overflow, the upper bound is that at LARGEST_EXPONENT, and `beyond`
        returns lower bounds.
        """
        if self.flip == 0:
            return IntervalArray(np.zeros(eps.size), np.zeros(eps.size))
        lower, upper = np.full(eps.size, -np.inf), np.full(eps.size, -np.inf)
        inside = eps < self.pure
        lower[inside], upper[inside] = kernel(np.minimum(eps[inside], LARGEST_EXPONENT))
        far = inside & (eps > LARGEST_EXPONENT)
        if far.any():
            lower[far] = np.minimum(beyond(eps[far]), upper[far])
        return IntervalArray(lower, upper)

    def known_data(self, ones: int, eps: FloatArray) -> IntervalArray:
        """Return bounds of log delta if `ones` of the other users' bits are 1, and the target's bits are all 0 against all 1."""
        def sides(at: FloatArray) -> IntervalArray:
            return IntervalArray(*_worst_bits.sum_log_delta(ones, self.others - ones, self.bits, self.flip, at))

        # The lower bound of `sides` is P(S > k) - e^eps Q(S > k) for the total S at one threshold k, which is at most delta(eps)
        # for every k. So it is valid for eps above LARGEST_EXPONENT, too, where the kernel need not find the best threshold.
        return self._within(eps, sides, lambda far: sides(far).lower)

    def described(self) -> DominatingPairInfo:
        """Return the description of the maximum over all datasets of the other bits."""
        # The grid of eps is coarse, because every eps needs a search over the datasets.
        info = DominatingPairInfo(self.log_delta, self.pure, sampling=Sampling(2e-2, 0.15))
        if not 0 < self.pure < math.inf:
            return info
        # The attained pairs, for lower bounds, are those with all other bits 0 or all other bits 1. Their delta is close to that
        # of the worst dataset.
        blocks = partial(blocks_of_ones, self.others, self.bits, self.flip)
        return replace(info, attained=Attained(pairs=self.extremes, blocks=blocks))

    @property
    def extremes(self) -> tuple[DominatingPairInfo, ...]:
        """(P, Q) and (Q, P) of the dataset in which all other users' bits are 0."""
        hockey_sticks = partial(self.known_data, 0), partial(self.known_data, self.others)
        return tuple(DominatingPairInfo(one, self.pure, Reverse(other, self.pure), Sampling(1e-3), attained=SINGLE)
                     for one, other in (hockey_sticks, hockey_sticks[::-1]))
