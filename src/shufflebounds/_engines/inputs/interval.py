r"""Distributions of X for symmetric noise and inputs in an interval; the target's inputs are its two ends.

The density (or the masses) of the noise decreases with the distance from the input. So at each output the minimum of the
densities over all inputs is attained by the farther end, and the log likelihood ratio of the two ends is monotone in the output.
Only the outputs for which the first end is more likely are enumerated; the others are their mirror images.

The two ends are the worst pair of the interval for symmetric log-concave noise: docs/theorems/interval-inputs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.convex_order import log_parts, log_shares
from shufflebounds._base.limits import COMPARED, LARGEST_EXPONENT, TABLE_SIZE
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._engines.excess.excess_law import BLUR, ExcessLaw, LowerLaws, PairLaws

__all__ = ["BLUR", "blanket_of", "checked", "group_outcomes", "interval_laws", "matrix_laws"]


def checked(cells: int, log_cut: float) -> tuple[int, float]:
    """Return the arguments of `excess_laws` if they are valid, or raise ValueError."""
    return _validate.integer("cells", cells, 1, TABLE_SIZE), _validate.real("log_cut", log_cut, -LARGEST_EXPONENT, 0)


def group_outcomes(log_far: FloatArray, log_near: FloatArray, loss: FloatArray, cells: int) -> tuple[FloatArray, ...]:
    """Return at most `cells` runs of neighbouring outcomes.

    The arrays have the log masses of each run under the farther and under the nearer input, and its largest and smallest privacy
    loss.
    """
    size = -(-loss.size // cells)
    starts = np.arange(0, loss.size, size)
    last = np.minimum(starts + size, loss.size) - 1
    far, near = (np.logaddexp.reduceat(log, starts) for log in (log_far, log_near))
    return far, near, loss[starts], loss[last]


def interval_laws(
    log_far: FloatArray, log_near: FloatArray, low: FloatArray, high: FloatArray, log_middle: FloatArray | None = None, *,
    unbounded_loss: bool = False, loss_error: float = 0.0,
) -> tuple[PairLaws, ...]:
    """Return the distributions of X (`ExcessLaw`) for the two ends of the interval.

    Parameters
    ----------
    log_far, log_near : ndarray
        Log masses, under the second end and under the first, of the cells where the first end is more likely.
    low, high : ndarray
        Log likelihood ratios at the two ends of each cell; equal if the ratio is constant on the cell.
    log_middle : ndarray, optional
        Log masses of the cells under the middle of the interval.
    unbounded_loss : bool
        Whether the loss in the last cell is unbounded. The cell is then a cut set: the upper bound adds its probability.
    loss_error : float
        An upper bound of the relative error of the masses.
    """
    mean = np.where(low == high, low, log_near - log_far)
    # The masses under the first end are recomputed from those under the second end and the mean ratio, so that masses and ratio
    # agree.
    log_near = log_far + mean
    kept = slice(0, -1) if unbounded_loss else slice(None)
    # The mass of each cell is split between the two ends of the cell such that the mean of a = R_0/m stays the same.
    below, above = log_parts(log_far[kept], log_shares(mean[kept], low[kept], high[kept]))
    log_mass, log_a = np.concatenate([above, below]), np.concatenate([high[kept], low[kept]]) + loss_error
    if not unbounded_loss:
        # No loss exceeds the pure budget, so log a is limited to the largest loss.
        log_a = np.minimum(log_a, high.max())
    seen = log_mass > -np.inf
    log_mass, log_a = log_mass[seen], log_a[seen]
    log_b = np.zeros_like(log_a)
    # Under the privacy blanket m, a cell and its mirror image have the mass of the farther input. The excess mass of the nearer
    # input and the mass of a cut set are moved to X = 0.
    rest = math.fsum(np.exp(log_near[kept]) * -np.expm1(-mean[kept])) + loss_error
    if unbounded_loss:
        rest += math.exp(log_far[-1]) + math.exp(log_near[-1])
    upper = ExcessLaw(np.tile(log_mass, 2), np.concatenate([log_a, log_b]), np.concatenate([log_b, log_a]),
                      min(0.0, math.log(rest)), float(log_near[-1]) if unbounded_loss else -np.inf)
    zero = np.zeros_like(mean)
    lower = [
        ("every other user has the second end", np.concatenate([log_far, log_near]), np.concatenate([mean, -mean]),
         np.concatenate([zero, zero])),
        ("every other user has the first end", np.concatenate([log_near, log_far]), np.concatenate([zero, zero]),
         np.concatenate([-mean, mean])),
    ]
    log_both = np.logaddexp(0.0, mean) - np.log(2)
    lower.append(("half of the other users have either end", np.tile(log_far + log_both, 2),
                  np.concatenate([mean, zero]) - np.tile(log_both, 2), np.concatenate([zero, mean]) - np.tile(log_both, 2)))
    if log_middle is not None:
        ratio = np.tile(log_far - log_middle, 2)
        lower.append(("every other user has the middle", np.tile(log_middle, 2), np.concatenate([mean, zero]) + ratio,
                      np.concatenate([zero, mean]) + ratio))
    listed = tuple((text, ExcessLaw(m, a - loss_error, b + loss_error, -math.inf)) for text, m, a, b in lower)
    return (PairLaws("the two ends of the interval", upper, listed, symmetric=True),)


def matrix_laws(
    rows: FloatArray, pairs: list[tuple[int, int]], *, symmetric: bool = False, names: Sequence[object] = (), error: float = 0.0
) -> tuple[PairLaws, ...]:
    """Return the distributions of X (`ExcessLaw`) for pairs of rows of a matrix (inputs, outputs); `names` describe the inputs.

    `error` is the relative error of the entries, in addition to a few ulp.

    In the lower bounds all other users have the same input, or all inputs are equally frequent. Cut sets (`ExcessLaw`) are the
    outputs that these inputs cannot produce and, for the upper bound, the outputs that some input cannot produce.
    """
    base, rest = blanket_of(rows)
    names = names or range(len(rows))
    others = [(f"every other user has input {name}", row) for name, row in zip(names, rows)]
    if len(rows) > 2:
        others.append(("the other users are spread evenly over the inputs", rows.mean(axis=0)))
    kept = _widest(rows, pairs, np.array([row for _, row in others]))

    def lower(place: int) -> LowerLaws:
        i, j = pairs[place]
        return tuple((text, ExcessLaw.of(rows[i], rows[j], row, 0.0).widened(upper=False, error=error))
                     for (text, row), used in zip(others, kept[place]) if used)

    return tuple(
        PairLaws(f"inputs {names[i]} and {names[j]}", ExcessLaw.of(rows[i], rows[j], base, rest).widened(upper=True, error=error),
                 partial(lower, place), symmetric)
        for place, (i, j) in enumerate(pairs)
    )


def blanket_of(rows: FloatArray) -> tuple[FloatArray, float]:
    """Return m = min_x R_x for the rows R_x of a matrix (inputs, outputs), and an upper bound of 1 - sum(m), the mass at X = 0.

    The bound is the largest sum(R_x - m) over x, whose terms do not cancel, so it is accurate even if all rows are nearly equal.
    The distance of sum(R_x) from 1, due to rounding of the entries, is added.
    """
    base = rows.min(axis=0)
    rests = [math.fsum(row - base) + abs(math.fsum([*row.tolist(), -1.0])) for row in rows]
    return base, max(rests) * (1 + 4 * ULP)


def _widest(rows: FloatArray, pairs: list[tuple[int, int]], others: FloatArray) -> NDArray[np.bool_]:
    """Return whether lower bounds use the distribution of X, for each of `pairs` (rows) and each of the rows `others` (columns).

    If there are at most COMPARED distributions, all are used. Otherwise a distribution is used if its second moment of X is among
    the COMPARED largest at eps = 0 or at some power of two; `Shuffled` compares distributions at these eps. The distribution with
    the largest mass of outputs that identify the target is used, too.
    """
    shape = len(pairs), len(others)
    if math.prod(shape) <= COMPARED:
        return np.ones(shape, dtype=np.bool_)
    first, second = rows[[i for i, _ in pairs]], rows[[j for _, j in pairs]]
    missing = others == 0
    inverse = np.where(missing, 0.0, 1 / np.where(missing, 1.0, others)).T
    used = np.zeros(math.prod(shape), dtype=np.bool_)
    used[np.argmax((first * (second == 0)) @ missing.T)] = True
    with np.errstate(all="ignore"):
        budget = float(np.nanmax(np.where(second > 0, np.log(first) - np.log(second), -np.inf), initial=0.0))
        for eps in (0.0, *(2.0 ** np.arange(-10, math.log2(max(budget, 1e-3)) + 1))):
            moments = (first - math.exp(min(eps, LARGEST_EXPONENT / 2)) * second) ** 2 @ inverse
            used[np.argpartition(-moments.ravel(), COMPARED)[:COMPARED]] = True
    return used.reshape(shape)
