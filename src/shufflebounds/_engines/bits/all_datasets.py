"""Shuffled bits of few users, maximized over all datasets by enumeration.

A dataset is given by m = 0..users - 1, the number of ones among the other users' bits. P0 and P1 are the distributions of the sum
of all flipped bits if the target's bit is 0 and if it is 1. Exchanging the names of 0 and 1 turns the pair (P1, P0) with m ones
into (P0, P1) with users - 1 - m ones, so the pairs (P0, P1) for all m suffice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from shufflebounds._base.limits import TINY
from shufflebounds._base.types import FloatArray
from shufflebounds._core import _binomial
from shufflebounds._losses.curves import convex_hull, curve_of_masses
from shufflebounds.tradeoff import Tradeoff, renyi_divergence

__all__ = ["curve_of_all", "renyi_of_all"]


def _error(users: int) -> float:
    """Return a bound of the relative rounding error of a computed probability and of sums of such probabilities.

    All terms of the sums are positive, so no term cancels another.
    """
    return 6e-14 + 8 * users * float(np.finfo(float).eps)


def _sum_laws(users: int, flip: float) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the distributions P0 and P1 of the sum, for every number of ones among the other users' bits."""
    others = users - 1
    for ones in range(users):
        # The distributions of the numbers of flipped ones and of flipped zeros are convolved. Binomials with probability 1 - flip
        # are avoided, because the rounding of 1 - flip is a large relative error of a small flip.
        flips = [np.exp(_binomial.binom_logpmf(np.arange(count + 1.0), float(count), flip)) for count in (ones, others - ones)]
        law = np.convolve(flips[0][::-1], flips[1])
        stay, step = np.append(law, 0.0), np.append(0.0, law)
        yield (1 - flip) * stay + flip * step, flip * stay + (1 - flip) * step


def curve_of_all(users: int, flip: float, upper: bool) -> Tradeoff:
    """Return an upper or lower bound of the convex hull of the trade-off curves of all datasets."""
    error = _error(users)
    curves = []
    for laws in _sum_laws(users, flip):
        # `curve_of_masses` needs the outcomes in the order of decreasing P1/P0, which increases with the sum, so the masses are
        # reversed. Computed masses below TINY may have underflowed; the exact masses are between 0 and TINY.
        with np.errstate(divide="ignore"):
            low, high = ([np.log(mass[::-1]) + sign * error for mass in sides] for sign, sides in (
                (-1, [np.where(law > TINY, law, 0.0) for law in laws]), (1, [np.maximum(law, TINY) for law in laws])))
        curves.append(curve_of_masses(low, [np.minimum(law, 0.0) for law in high], upper=upper))
    return convex_hull(curves)


def renyi_of_all(users: int, flip: float, orders: FloatArray, upper: bool) -> FloatArray:
    """Return an upper or lower bound of the largest Renyi divergence over all datasets, for finite orders and flip > 0."""
    error = _error(users)
    best, hidden = np.zeros(orders.size), False
    for zero, one in _sum_laws(users, flip):
        seen = (zero > TINY) & (one > TINY)
        hidden |= not seen.any()
        if not seen.any():
            continue
        value = np.asarray(renyi_divergence(np.log(zero[seen]), np.log(one[seen]), orders))
        best = np.maximum(best, value)
    # The log likelihood ratio has an error of at most 2 * error. The divergence of order a is about a/2 times the mean square m of
    # this log ratio, so its error is about a times 2 * error times sqrt(m).
    slack = 4 * error * (np.sqrt(2 * orders * best) + orders * error + best)
    if not upper:
        return np.maximum(best - slack, 0.0)
    local = math.log1p(-flip) - math.log(flip)
    if hidden:
        return np.full(orders.size, local * (1 + 1e-15))
    # `lost` is an upper bound of the contribution of outcomes whose probabilities underflowed.
    with np.errstate(over="ignore"):
        lost = np.exp(math.log(users * TINY) + np.minimum(orders * local - (orders - 1) * best, 1e3))
    out: FloatArray = np.minimum(best + slack + lost / np.maximum(orders - 1, 1e-3), local * (1 + 1e-15))
    return out
