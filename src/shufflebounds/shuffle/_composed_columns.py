"""Several bits of one target, each in a shuffle of its own: an upper bound from the privacy profile of one."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._types import UNIT, FloatArray
from shufflebounds.profile._budget import log_odds
from shufflebounds.shuffle.bits import ShuffledBits

LEAST_LOCAL = 1e-9
"""On a grid of smaller losses e^loss has no digits left."""

MOST_ATOMS = 6000
"""Largest number of losses in the composed law, about."""


def log_composed(column: ShuffledBits, times: int, eps: float, log_scale: float) -> float:
    """Return an upper bound of log delta(eps) of so many columns, whatever the data in each; log_scale: about the answer.

    delta of one column, over all data, is a hockey-stick curve h(E), the same in both directions, that no data exceeds. Chords
    of upper values of it on a grid of losses lie above it, and belong to a pair of laws on that grid (Doroshenko et al. 2022),
    which dominates every column's; dominating pairs compose. What has no loss on the grid counts as infinite loss.
    """
    local = column._pure_epsilon()
    basic = math.log(times) + column.log_delta(eps / times)
    if 0 < (gap := log_odds(column.flip).times(times).less(eps)) < 1:
        # what any mechanism of that budget leaks
        basic = min(basic, math.log(-math.expm1(-gap)) + 4 * UNIT * (1 - math.log(gap)))
    if log_scale < -600 or local == math.inf or local < LEAST_LOCAL:
        return basic
    # beyond the grid a column loses less than a ten-thousandth of the whole
    reach, goal = 0.5 * local, log_scale - math.log(times) - 9
    while reach < local and column.log_delta(reach) > goal:
        reach = min(local, 1.25 * reach)
    while column.log_delta(0.8 * reach) < goal:
        reach *= 0.8
    half = max(8, min(160, MOST_ATOMS // (2 * times)))
    step = reach / half
    losses = step * np.arange(half + 1, dtype=np.float64)
    high = np.array([math.exp(column.log_delta(float(loss))) * (1 + 1e-13) for loss in losses])
    mass, infinite = _chords(losses, high)
    # sum over the composed law of p (1 - e^(eps - loss)) beyond eps
    law, first = np.ones(1), 0
    power, start, left = mass, -half, times
    while left:
        if left & 1:
            law, first = np.convolve(law, power), first + start
        left >>= 1
        if left:
            power, start = np.convolve(power, power), 2 * start
    loss = step * (first + np.arange(law.size))
    beyond = loss > eps
    finite = float(law[beyond] @ -np.expm1(eps - loss[beyond]))
    lost = -math.expm1(times * math.log1p(-infinite)) if infinite < 1 else 1.0
    total = (finite + lost) * (1 + 1e-9)
    return min(basic, math.log(total)) if total > 0 else basic


def _chords(losses: FloatArray, high: FloatArray) -> tuple[FloatArray, float]:
    """Return the masses, on -losses and losses, and the mass of infinite loss of the law whose hockey stick the chords are.

    Below E = 1 the curve is 1 - E + E h(1/E); 1 - E has no kink, so only the rest is differenced.
    """
    upward, value = np.exp(losses), high
    after, after_error = _slopes(upward, _hull(upward, value))
    downward = np.append(0.0, np.exp(-losses[::-1]))
    rest = np.append(0.0, np.exp(-losses[::-1]) * high[::-1])
    before, before_error = _slopes(downward, _hull(downward, rest))
    kinks = np.concatenate([np.diff(before), [after[0] - before[-1] + 1], np.diff(np.append(after, 0.0))])
    # kinks are differences of slopes, and these of values: short steps leave few digits
    error = np.concatenate([before_error, np.append(after_error, 0.0)])
    kinks += error[:-1] + error[1:]
    kinks[before.size - 1] += 4 * UNIT
    grid = np.concatenate([downward[1:], upward[1:]])
    return np.maximum(kinks, 0.0) * grid * (1 + 1e-12), float(value[-1])


def _slopes(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the slopes, and how far rounding may have moved each."""
    width = np.diff(x)
    slope = np.diff(y) / width
    error = 4 * UNIT * ((y[:-1] + y[1:]) + (x[:-1] + x[1:]) * np.abs(slope)) / width
    return slope, error


def _hull(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the lower convex hull of the points, at the same x."""
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (x[i] - x[a]) < (y[i] - y[a]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(i)
    return np.interp(x, x[kept], y[kept])
