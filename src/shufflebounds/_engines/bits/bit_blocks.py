"""Blocks of datasets of randomized bits, each with one upper bound of delta(eps), for compositions with adaptively chosen datasets.

In a composition the adversary may choose a different block in every release (`Blocks` of `_losses`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from shufflebounds._base.limits import COMPUTED_ERROR, DEEPER, FIRST_TAIL, TABLE_SIZE
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core import _binomial
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.blocks import Blocks

__all__ = ["blocks_of_ones"]

CUTS = np.array([0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3])
"""Edges of the blocks below N/2, as fractions of N.

A dataset is given by m, the number of ones among the N bits of the other users. The pair (Q, P) of m ones is the pair (P, Q) of
N - m ones, so the blocks above N/2 are the mirror images of those below. More blocks: tighter bounds in more time.
"""

FINE, SKEWED = (5e-5, 1e-4, 2e-4, 4e-4, 8e-4), 0.1
"""Factors that set the length of a run: consecutive m within a block (see CUTS) that share one upper bound.

For m < N/2, a run that starts at m has about max(f N, SKEWED * m * skewness of Bin(N, flip)) values of m, where f is the smallest
entry of FINE for which the tables of the sums of bits, one for each run, together have at most 2 * TABLE_SIZE entries. Longer runs:
less tight bounds in less time.
"""

LOG_TAIL = DEEPER * FIRST_TAIL
"""Log of the truncated mass at each end of an enumerated sum. Raised: a larger upper bound. Lowered: longer run time."""


def _upper(sums: FloatArray, target: FloatArray, log_lost: float, error: float, eps: FloatArray) -> FloatArray:
    """Return upper bounds of log delta of the sum of all bits between the target's two values: rows for (P, Q) and for (Q, P).

    `sums` is the distribution of the sum of the other users' bits. The sum of the target's bits has the masses `target` under P and
    the same masses in reversed order under Q.
    """
    with np.errstate(divide="ignore"):
        laws = [np.log(np.convolve(sums, added)) for added in (target, target[::-1])]
    error += ULP * (8 + target.size)
    return np.array([LossAtoms.of(*pair, log_lost=log_lost, error=error).log_side(eps, upper=True) for pair in (laws, laws[::-1])])


def _flips(bits: int, flip: float) -> FloatArray:
    """Return the masses of Bin(bits, flip), the number of flipped bits, on a range around the mean.

    The mass truncated on each side is at most e^LOG_TAIL by Bernstein's inequality.
    """
    mean, reach = bits * flip, -LOG_TAIL / 3 + math.sqrt(LOG_TAIL**2 / 9 - 2 * LOG_TAIL * bits * flip * (1 - flip))
    counts = np.arange(max(0, math.floor(mean - reach)), min(bits, math.ceil(mean + reach)) + 1.0)
    return np.asarray(np.exp(_binomial.binom_logpmf(counts, float(bits), flip)))


def _of_ones(ones: int, zeros: int, flip: float, target: FloatArray, eps: FloatArray) -> FloatArray:
    """Return the rows of `_upper` if `ones` of the other users' bits are 1 and `zeros` are 0."""
    sums = np.convolve(_flips(ones, flip)[::-1], _flips(zeros, flip))
    return _upper(sums, target, math.log(4) + LOG_TAIL + 4 * ULP, COMPUTED_ERROR + 2 * ULP * sums.size, eps)


def _runs(bits: int, skew: float, fine: float) -> Iterator[list[tuple[int, int]]]:
    """Yield the blocks of 0..(bits - 1)//2 ones, each as a list of runs (first, last) in which delta changes little."""
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
    """Return the datasets in blocks of consecutive numbers of ones among the other users' bits.

    All `width` bits of the target change from 0 to 1. None is returned if the tables of all sums would have more than
    2 * TABLE_SIZE entries. The upper bound for all datasets with first..last ones is the delta of `first` ones and bits - last
    zeros: all of these datasets contain these bits, and further bits are added by post-processing.
    """
    deviation = math.sqrt(bits * flip * (1 - flip))
    if not deviation > 0 or flip == 0.5:
        return None
    for fine in FINE:
        lower = list(_runs(bits, (1 - 2 * flip) / deviation, fine))
        points = 2 * sum(map(len, lower)) * (2 * math.sqrt(-2 * LOG_TAIL) * deviation + width)
        if points <= 2 * TABLE_SIZE:
            break
    else:
        return None
    middle = [[(bits // 2, bits // 2)]] if bits % 2 == 0 else []
    target = np.exp(_binomial.binom_logpmf(np.arange(width + 1.0), float(width), flip))

    def rows(eps: FloatArray) -> FloatArray:
        first, second = np.array([np.max([_of_ones(least, bits - last, flip, target, eps) for least, last in block], axis=0)
                                  for block in lower + middle]).swapaxes(0, 1)
        # The pair (P, Q) of the mirror image of a block is the pair (Q, P) of the block.
        return np.concatenate([first, second[: len(lower)][::-1]])

    return Blocks(rows, 2 * len(lower) + len(middle))
