r"""Laws of the excess for symmetric noise on an interval, inputs at its two ends.

The noise has a density (or masses) falling in the distance, so the least over all inputs is that of the farther end, and the log
likelihood ratio of the ends is monotone: only the half where the first input is the likelier need be listed, the other mirrors it.

The two ends are the worst pair of the interval for Laplace, Gaussian and geometric noise: docs/theorems/interval-inputs.
"""

from __future__ import annotations

import numpy as np

from shufflebounds._types import FloatArray
from shufflebounds.shuffle.laws import ExcessLaw, PairLaws

__all__ = ["BLUR", "grouped", "interval_laws", "matrix_laws"]

BLUR = 2.0**-42
"""Shift of the heights a and b that makes up for the rounding of masses, 1e-14: m may be taken so much smaller."""


def grouped(log_far: FloatArray, log_near: FloatArray, loss: FloatArray, cells: int) -> tuple[FloatArray, ...]:
    """Return log masses under the farther and the nearer input and the two ends of the loss, of at most that many runs."""
    size = -(-loss.size // cells)
    starts = np.arange(0, loss.size, size)
    last = np.minimum(starts + size, loss.size) - 1
    far, near = (np.logaddexp.reduceat(log, starts) for log in (log_far, log_near))
    return far, near, loss[starts], loss[last]


def interval_laws(
    log_far: FloatArray,
    log_near: FloatArray,
    low: FloatArray,
    high: FloatArray,
    log_middle: FloatArray | None = None,
    *,
    endless: bool = False,
    blur: float = 0.0,
) -> tuple[PairLaws, ...]:
    """Return the laws of X of the two ends of the interval.

    Parameters
    ----------
    log_far, log_near : ndarray
        Log masses of the cells where the first end is the likelier, under the second end and under the first.
    low, high : ndarray
        Log likelihood ratios at the two ends of each cell, the same where all of the cell has one.
    log_middle : ndarray, optional
        Log masses of the cells under the middle of the interval.
    endless : bool
        Whether the last cell has no bound on its loss: the upper law cuts it.
    blur : float
        Relative error of the masses, with room to spare.
    """
    point = low == high
    mean = np.where(point, low, log_near - log_far)
    # masses are read from the far side; the near side is that times the ratio
    log_near = log_far + mean
    kept = slice(0, -1) if endless else slice(None)
    # every cell spread to its two ends, mass and mean of a kept
    width = np.where(point, 1.0, high - low)[kept]
    with np.errstate(divide="ignore", over="ignore"):
        share = np.where(point[kept], 1.0, np.clip(np.expm1(mean[kept] - low[kept]) / np.expm1(width), 0.0, 1.0))
        log_mass = np.concatenate([log_far[kept] + np.log(share), log_far[kept] + np.log1p(-share)])
    log_a = np.concatenate([high[kept], low[kept]]) + blur
    if not endless:
        # a pure budget stays exact
        log_a = np.minimum(log_a, high.max())
    seen = log_mass > -np.inf
    log_mass, log_a = log_mass[seen], log_a[seen]
    log_b = np.zeros_like(log_a)
    upper = ExcessLaw(np.tile(log_mass, 2), np.concatenate([log_a, log_b]), np.concatenate([log_b, log_a]),
                      float(log_near[-1]) if endless else -np.inf)
    zero = np.zeros_like(mean)
    lower = [
        ("all others hold the second end", np.concatenate([log_far, log_near]), np.concatenate([mean, -mean]),
         np.concatenate([zero, zero])),
        ("all others hold the first end", np.concatenate([log_near, log_far]), np.concatenate([zero, zero]),
         np.concatenate([-mean, mean])),
    ]
    log_both = np.logaddexp(0.0, mean) - np.log(2)
    lower.append(("half of the others hold either end", np.tile(log_far + log_both, 2),
                  np.concatenate([mean, zero]) - np.tile(log_both, 2), np.concatenate([zero, mean]) - np.tile(log_both, 2)))
    if log_middle is not None:
        rest = np.tile(log_far - log_middle, 2)
        lower.append(("all others hold the middle", np.tile(log_middle, 2), np.concatenate([mean, zero]) + rest,
                      np.concatenate([zero, mean]) + rest))
    listed = tuple((text, ExcessLaw(m, a - blur, b + blur)) for text, m, a, b in lower)
    return (PairLaws("the two ends of the interval", upper, listed, symmetric=True),)


def matrix_laws(rows: FloatArray, pairs: list[tuple[int, int]], *, symmetric: bool = False) -> tuple[PairLaws, ...]:
    """Return the laws of X for ordered pairs of rows, inputs by outputs; all others hold one input, or all inputs alike.

    A message of the target that no other user can send gives it away, above and below.
    """
    base = rows.min(axis=0)
    # summed from positive terms: next to nothing where all rows are alike
    rest = float((rows[0] - base).sum())
    others = [(f"all others hold {x}", row) for x, row in enumerate(rows)]
    if len(rows) > 2:
        others.append(("the others are spread evenly", rows.mean(axis=0)))
    return tuple(
        PairLaws(f"inputs {i} and {j}", ExcessLaw.of(rows[i], rows[j], base).filled(rest).widened(1),
                 tuple((text, ExcessLaw.of(rows[i], rows[j], row).widened(-1)) for text, row in others), symmetric)
        for i, j in pairs
    )
