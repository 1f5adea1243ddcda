"""Delta of a sum of randomized bits for a given dataset of the other users, between the target's bits 0 and 1."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray
from shufflebounds._core import _bits
from shufflebounds._losses.budget import log_odds
from shufflebounds.tails._poisson_tables import bits_window


def flip_probability(budget: float) -> Interval:
    """Return bounds of 1/(e^budget + 1), the flip probability of randomized response with this budget."""
    less = math.exp(-budget)
    error = 8 * ULP * (1 + budget)
    return Interval(less / (1 + less) * (1 - error), min(0.5, less / (1 + less) * (1 + error)))


def flipped_bits(ones: int, zeros: int, flip: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the probabilities of 1 and of 0, and the number of bits, for each group of flipped bits that is not empty.

    `ones` and `zeros` are the numbers of bits with these values before they are flipped.
    """
    one, counts = np.array([1 - flip, flip]), np.array([ones, zeros], dtype=np.float64)
    used = counts > 0
    return one[used], one[::-1][used], counts[used]


def bit_sides(
    ones: FloatArray | float, zeros: FloatArray | float, flip: float, eps: FloatArray | float
) -> IntervalArray:
    """Return bounds of log delta between the target's bits 0 and 1; of the other users' bits, `ones` are 1 and `zeros` are 0."""
    # e^eps must not overflow, so eps is limited to LARGEST_EXPONENT. At a larger eps delta may still be positive if the flip
    # probability is below e^-700. Without flips delta is 1 at every eps.
    budget, near = log_odds(flip), np.minimum(eps, LARGEST_EXPONENT)
    lower, upper = _bits.shuffled_bits_log_delta(ones, zeros, flip, near, budget.less(near))
    certain = (near == eps) | (flip == 0)
    return IntervalArray(np.where(certain, lower, -np.inf), np.where(budget.less(eps) > 0, upper, -np.inf))


def middle_losses(ones: int, zeros: int, flip: float) -> tuple[float, float] | None:
    """Return the loss (target's bit 0 against 1) at the most likely sum, and the distance of this loss from that at the next sum.

    None is returned if there are too few sums.
    """
    if not 0 < flip < 0.5 or ones + zeros < 2:
        return None
    keep = 1 - flip
    _, window, _ = bits_window(*flipped_bits(ones, zeros, flip), log_tail=-1.0, most=2**24)
    place = int(np.argmax(window))
    near = window[max(place - 1, 0) : place + 2]
    if near.size < 3:
        return None
    ratio = np.exp(near[:-1] - near[1:])
    losses = np.log((keep + flip * ratio) / (flip + keep * ratio))
    return float(losses[0]), float(abs(losses[1] - losses[0]))
