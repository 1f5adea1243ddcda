r"""Laws of the excess for symmetric noise on an interval, inputs at its two ends.

The noise has a density (or masses) falling in the distance, so the least over all inputs is that of the farther end, and the log
likelihood ratio of the ends is monotone: only the half where the first input is the likelier need be listed, the other mirrors it.

The two ends are the worst pair of the interval for Laplace, Gaussian and geometric noise: docs/theorems/interval-inputs. For the
discrete Gaussian that is established for the parameters at hand.
"""

from __future__ import annotations

import numpy as np

from shufflebounds import _validate
from shufflebounds._types import FloatArray
from shufflebounds.shuffle.laws import BLUR, ExcessLaw, PairLaws

__all__ = ["BLUR", "checked", "ends_are_worst", "grouped", "interval_laws", "matrix_laws"]

_TIE = 2.0**-46
"""Relative difference, 1e-14, up to which two sums of masses count as equal: what adding them rounds."""

_MOST_CELLS = 2**20


def checked(cells: int, log_cut: float) -> tuple[int, float]:
    """Return both arguments of `excess_laws` in their ranges, or raise ValueError."""
    return _validate.integer("cells", cells, 1, _MOST_CELLS), _validate.real("log_cut", log_cut, -700, 0)


def ends_are_worst(logs: FloatArray) -> bool:
    r"""Tell whether :math:`X_{ab}` is smaller in the convex order than that of the two ends for all inputs a, b and every eps.

    By steps 1 and 2 of docs/theorems/interval-inputs without the crossing argument: for every mass c of m the largest
    :math:`R_a(S)` over sets with :math:`m(S) = c` is at most that of :math:`R_0`, the least at least that of :math:`R_0`. Both are
    concave or convex in c with their corners at the outputs in the order of :math:`R_a/m`, so that these corners are enough.

    Parameters
    ----------
    logs : ndarray, shape (inputs, outputs)
        Log masses of log-concave symmetric noise around whole numbers, on a window that is symmetric about the middle.
    """
    base = np.minimum(logs[0], logs[-1])
    first = _corners(logs[0], base)
    # the other inputs mirror these
    for row in logs[1 : (len(logs) + 1) // 2]:
        up, left, gain, rest = _corners(row, base)
        # the mass or what is left of it, whichever is known the better
        few = up < left
        most, least = (np.where(few, np.interp(up, first[0], side), np.interp(-left, -first[1], side)) for side in first[2:])
        if (gain > most * (1 + _TIE)).any() or (rest < least * (1 - _TIE)).any():
            return False
    return True


def _corners(log_row: FloatArray, base: FloatArray) -> tuple[FloatArray, ...]:
    """Return the masses under m and under a row of the sets of highest ratio, each with that of the complement."""
    order = np.argsort(base - log_row, kind="stable")
    masses = [np.exp(log[order]) for log in (base, log_row)]
    sums = [(np.append(0.0, np.cumsum(mass)), np.append(np.cumsum(mass[::-1])[::-1], 0.0)) for mass in masses]
    return *sums[0], *sums[1]


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
    unbounded_loss: bool = False,
    loss_error: float = 0.0,
    inputs: str = "the two ends of the interval",
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
    loss_error : float
        Relative error of the masses, with room to spare.
    inputs : str
        The pair in words.
    """
    point = low == high
    mean = np.where(point, low, log_near - log_far)
    # masses under the first end follow from those under the second, times the ratio
    log_near = log_far + mean
    kept = slice(0, -1) if unbounded_loss else slice(None)
    # every cell spread to its two ends, mass and mean of a kept
    width = np.where(point, 1.0, high - low)[kept]
    with np.errstate(divide="ignore", over="ignore"):
        share = np.where(point[kept], 1.0, np.clip(np.expm1(mean[kept] - low[kept]) / np.expm1(width), 0.0, 1.0))
        log_mass = np.concatenate([log_far[kept] + np.log(share), log_far[kept] + np.log1p(-share)])
    log_a = np.concatenate([high[kept], low[kept]]) + loss_error
    if not unbounded_loss:
        # a pure budget stays exact
        log_a = np.minimum(log_a, high.max())
    seen = log_mass > -np.inf
    log_mass, log_a = log_mass[seen], log_a[seen]
    log_b = np.zeros_like(log_a)
    upper = ExcessLaw(np.tile(log_mass, 2), np.concatenate([log_a, log_b]), np.concatenate([log_b, log_a]),
                      float(log_near[-1]) if unbounded_loss else -np.inf)
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
    listed = tuple((text, ExcessLaw(m, a - loss_error, b + loss_error)) for text, m, a, b in lower)
    return (PairLaws(inputs, upper, listed, symmetric=True),)


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
        PairLaws(f"inputs {i} and {j}", ExcessLaw.of(rows[i], rows[j], base).filled(rest).widened(upper=True),
                 tuple((text, ExcessLaw.of(rows[i], rows[j], row).widened(upper=False)) for text, row in others), symmetric)
        for i, j in pairs
    )
