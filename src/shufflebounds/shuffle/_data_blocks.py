"""Blocks of neighbours of flipped bits, each below one curve: what an adversary chooses from who takes other data every time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from shufflebounds._core import _binomial
from shufflebounds._types import ULP, FloatArray
from shufflebounds.composing import Blocks, LossAtoms
from shufflebounds.shuffle._personal_sum import BernoulliGroups, Groups
from shufflebounds.tails._poisson_tables import bits_window

__all__ = ["blocks_of_ones", "blocks_of_targets"]

CUTS = np.array([0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3])
"""Where blocks begin, as shares of the others' bits; the same from behind, as the reverse of m ones among N bits is N - m."""

FINE, SKEWED = (5e-5, 1e-4, 2e-4, 4e-4, 8e-4), 0.1
"""How long a run is: as a share of all bits, the least that takes no longer than allowed; of its distance from the end times the
skewness of the sum."""

LOG_TAIL, DEVIATIONS = -120.0, 31.0
"""What the listed sums leave out on a side, and about how many deviations they span then."""

MOST_POINTS, POINT = 2.2e6, 9e-7
"""How many sums the pairs of all runs may list, and the seconds of one."""

ERROR = 1e-13
"""Of the logarithm of a binomial mass, and of those of a sum of two."""

MOST_BUDGETS, TARGETS = 2**17, 0.6
"""Beyond so many different budgets targets are not told apart, and the seconds that some thirty runs of them take."""


def _upper(sums: FloatArray, target: FloatArray, log_lost: float, error: float, eps: FloatArray) -> FloatArray:
    """Return the upper log hockey stick of the others' sum and what the target adds, against the sum and that from behind."""
    with np.errstate(divide="ignore"):
        laws = [np.log(np.convolve(sums, added)) for added in (target, target[::-1])]
    return LossAtoms.of(*laws, log_lost=log_lost, error=error + ULP * (8 + target.size)).log_delta(eps).upper


def _flips(bits: int, flip: float) -> FloatArray:
    """Return the masses of the number of flips of so many bits; what is left out on a side is bounded by Bernstein's inequality."""
    mean, reach = bits * flip, -LOG_TAIL / 3 + math.sqrt(LOG_TAIL**2 / 9 - 2 * LOG_TAIL * bits * flip * (1 - flip))
    counts = np.arange(max(0, math.floor(mean - reach)), min(bits, math.ceil(mean + reach)) + 1.0)
    return np.asarray(np.exp(_binomial.binom_logpmf(counts, float(bits), flip)))


def _of_ones(ones: int, zeros: int, flip: float, target: FloatArray, eps: FloatArray) -> FloatArray:
    """Return the upper log hockey stick where so many of the others' bits are 1 and 0."""
    sums = np.convolve(_flips(ones, flip)[::-1], _flips(zeros, flip))
    return _upper(sums, target, math.log(4) + LOG_TAIL + 4 * ULP, ERROR + 2 * ULP * sums.size, eps)


def _runs(bits: int, skew: float, fine: float) -> Iterator[list[tuple[int, int]]]:
    """Yield the blocks of 0..(bits - 1)//2, each a list of runs, first and last, in which all data are nearly alike."""
    half, start = (bits + 1) // 2, 0
    cuts = np.maximum(np.floor(CUTS * bits), np.arange(CUTS.size)).astype(int).tolist()
    for end in [*(cut for cut in cuts if 0 < cut < half), half]:
        block = []
        while start < end:
            block.append((start, min(start + math.floor(max(fine * bits, SKEWED * skew * start)), end - 1)))
            start = block[-1][1] + 1
        yield block


@lru_cache(maxsize=64)
def blocks_of_ones(bits: int, width: int, flip: float) -> Blocks | None:
    """Return blocks of numbers of ones among the others' bits, the target's bits all 0 or all 1; None where they take long.

    The data of a run lie below the pair of its first number of ones and its last number of zeros: more bits are post-processing.
    """
    deviation = math.sqrt(bits * flip * (1 - flip))
    if not deviation > 0 or flip == 0.5:
        return None
    for fine in FINE:
        lower = list(_runs(bits, (1 - 2 * flip) / deviation, fine))
        points = 2 * sum(map(len, lower)) * (DEVIATIONS * deviation + width)
        if points <= MOST_POINTS:
            break
    else:
        return None
    middle = [[(bits // 2, bits // 2)]] if bits % 2 == 0 else []
    runs = lower + middle + [[(bits - last, bits - first) for first, last in block[::-1]] for block in lower[::-1]]
    target = np.exp(_binomial.binom_logpmf(np.arange(width + 1.0), float(width), flip))

    def rows(eps: FloatArray) -> FloatArray:
        values = ([_of_ones(first, bits - last, flip, target, eps) for first, last in block] for block in runs)
        return np.array([np.max(block, axis=0) for block in values])

    return Blocks(rows, len(runs), points * POINT)


def _targets(users: Groups) -> Iterator[tuple[float, Groups]]:
    """Yield budgets of targets, falling, and who hides them, such that every target lies below one of these.

    Several targets lie below the largest budget among them, hidden by the users beside them: both are post-processing. So much
    smaller as their budgets are than the largest, so many users may be left out.
    """
    budgets, place = np.unique(users.budgets, return_inverse=True)
    beyond = np.cumsum(np.bincount(place, weights=users.counts)[::-1])[::-1]
    last = budgets.size - 1
    while last >= 0:
        smaller = 1 - math.tanh(budgets[last] / 2) / max(math.tanh(budgets[-1] / 2), 1e-300)
        spare = beyond[last] - float(users.counts[place == last].sum()) + beyond[0] * max(FINE[0], smaller)
        first = min(last, int(np.count_nonzero(beyond > spare)))
        if first == last:
            for one in np.flatnonzero(place == last):
                yield float(budgets[last]), users._replace(counts=users.counts - (np.arange(place.size) == one))
        else:
            inside = (place >= first) & (place <= last)
            yield float(budgets[last]), users._replace(counts=np.where(inside, 0.0, users.counts))
        last = first - 1


def blocks_of_targets(users: Groups) -> Blocks | None:
    """Return two blocks of targets among users of known bits, at 0 against 1 and at 1 against 0; None where they take long."""
    if users.budgets.size > MOST_BUDGETS:
        return None

    def rows(eps: FloatArray) -> FloatArray:
        out = np.full((2, eps.size), -np.inf)
        for budget, others in _targets(users):
            one, zero, counts = BernoulliGroups.of(*others).arrays
            _, window, error = bits_window(one, zero, counts, log_tail=LOG_TAIL, most=2**24)
            log_lost = math.log(2) + LOG_TAIL + 4 * ULP
            error += ULP * (8 + float(np.abs(window).max()))
            target = np.array([1.0, math.exp(-budget)]) / (1 + math.exp(-budget))
            for row, added in zip(out, (target, target[::-1])):
                np.maximum(row, _upper(np.exp(window), added, log_lost, error, eps), out=row)
        return out

    return Blocks(rows, 2, TARGETS)
