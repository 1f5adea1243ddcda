r"""Two randomizers with finitely many outputs that replace a randomizer with densities p_x, for upper and for lower bounds.

**Lower bounds.** The new output is the cell that contains the original output y. So it is a post-processing of y.

**Upper bounds.** Here y must be a post-processing of the new output. Let J be a cell, r a reference input, and
:math:`v(y) = (p_x(y)/p_r(y))_x` the likelihood ratios at y of all inputs x to r, with :math:`l_x \le v_x(y) \le h_x` on J. With k
inputs, v(y) lies in the simplex with the vertices

.. math:: l, \qquad l + (k - 1)(h_x - l_x)\, e_x \quad (x \ne r),

Indeed, the coordinates :math:`t_x = (v_x(y) - l_x)/((k - 1)(h_x - l_x))` are at least 0 and their sum is at most 1. Write
:math:`v(y) = \sum_i w_i(y) v^i` with the vertices v^i and weights w_i(y) of sum 1. Let output (J, i) have the probability
:math:`R_x(J, i) = v^i_x \int_J w_i\, p_r`; given (J, i), draw y in J with a density proportional to :math:`w_i(y) p_r(y)`, which
does not depend on x. The density of y is then :math:`\sum_i v^i_x w_i(y) p_r(y) = p_x(y)`. The weights are affine functions of v,
and :math:`\int_J v_x p_r = R_x(J)`, so :math:`R_x(J, i)` follows from the probabilities of the cell alone. For two inputs the
vertices are the two ends of the cell.

In cells where no ratio is known the input is revealed: each input has an output of its own, whose probability is that of these
cells.

**Errors.** The computed probability :math:`\hat R_x(J)` of a cell has an error of at most e_x. If e_x is small, it is included in
the error of the likelihood ratios. Otherwise the density on the cell is split by thinning into a part of probability
:math:`\hat R_x(J) - e_x`, whose ratios have a wider range, and a rest of probability at most :math:`2 e_x`, which is treated as
revealing the input.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._engines.inputs.density_cells import Cells, Densities

__all__ = ["lower_rows", "upper_rows"]

SMALL_ERROR = 2.0**-32
"""If the relative error of the probability of a cell is at most this number, this error is included in the error of the likelihood
ratios; otherwise the cell is merged. Raised: less tight bounds for many users. Lowered: the input is revealed with a larger
probability."""


def upper_rows(densities: Densities, cells: Cells) -> tuple[FloatArray, FloatArray, float]:
    """Return the rows of the randomizer for upper bounds, its probabilities of revealing the input, and the error of the ratios.

    Returns
    -------
    rows : ndarray, shape (inputs, outputs)
        Probabilities of the outputs (J, i). A row and the probability of revealing the input sum to 1 up to errors.
    revealed : ndarray, shape (inputs,)
        Probabilities with which the input is revealed.
    error : float
        Largest relative error of a likelihood ratio of the rows.

    Raises
    ------
    ValueError
        If the probabilities of a cell contradict the ratios at its ends.
    """
    mass, miss = cells.masses(densities)
    count = len(mass)
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(miss > 0, miss / mass, 0.0)
    thinned = (relative > SMALL_ERROR).any(axis=0)
    kept = np.where(thinned & (mass <= 2 * miss), 0.0, np.where(thinned, mass - miss, mass))
    revealed = np.where(thinned, np.minimum(2 * miss, mass + miss), 0.0)
    revealed = np.where(kept == 0, mass + miss, revealed)
    with np.errstate(divide="ignore", invalid="ignore"):
        wider = np.where(thinned & (kept > 0), np.log1p(2 * miss / kept), 0.0)
    # The reference r of a cell has the smallest probability among the inputs whose density is positive at both ends.
    fit = np.isfinite(cells.log_left) & np.isfinite(cells.log_right) & (kept > 0)
    usable = np.asarray(fit.any(axis=0))
    place = np.where(fit, kept, np.inf).argmin(axis=0), np.arange(mass.shape[1])
    with np.errstate(invalid="ignore", divide="ignore"):
        left, right = cells.log_left - cells.log_left[place], cells.log_right - cells.log_right[place]
        size = np.where(fit, np.abs(cells.log_left) + np.abs(cells.log_right), 0.0).max(axis=0)
        slack = 4 * (densities.accuracy + ULP) * (1 + size) + wider + wider[place]
        low = np.where(kept > 0, np.exp(np.minimum(left, right) - slack), 0.0)
        high = np.where(kept > 0, np.exp(np.maximum(left, right) + slack), 0.0)
        low[place] = high[place] = 1.0
        usable = usable & np.isfinite(low).all(axis=0) & np.isfinite(high).all(axis=0)
        mean = kept / kept[place]
    _check(densities, cells, usable, mean, low, high, np.where(thinned, 0.0, relative))
    low, high, mean, reference = low[:, usable], high[:, usable], mean[:, usable], kept[place][usable]
    room = (count - 1) * (high - low)
    share = np.divide(np.clip(mean - low, 0.0, high - low), room, out=np.zeros_like(room), where=room > 0)
    # `share` has the weights of the vertices other than l, which sum to at most 1 up to rounding. The rounding error of the weight
    # of l changes the probability of the cell by less than `error`.
    rows = [low * np.maximum(1 - share.sum(axis=0), 0.0) * reference]
    for x in range(count):
        vertex = low.copy()
        vertex[x] += room[x]
        rows.append((vertex * share[x] * reference)[:, share[x] > 0])
    whole = np.concatenate(rows, axis=1)
    given = np.where(usable, revealed, mass + miss).sum(axis=1)
    error = 2 * float(np.where(thinned | ~usable, 0.0, relative).max(initial=0.0)) + 4 * densities.accuracy + 64 * ULP
    return whole[:, whole.any(axis=0)], np.asarray(given), error


def _check(densities: Densities, cells: Cells, usable: NDArray[np.bool_], mean: FloatArray, low: FloatArray, high: FloatArray,
           relative: FloatArray) -> None:
    """Raise ValueError if a ratio of probabilities of a cell lies outside the likelihood ratios at its ends."""
    room = 2 * (relative + relative.max(axis=0)) + 16 * ULP
    off = usable & ((mean < low * (1 - room)) | (mean > high * (1 + room)))
    if off.any():
        x, place = np.argwhere(off)[0]
        raise ValueError(f"cdf and pdf disagree for x={densities.inputs[x]:g} and y from {cells.left[place]:g} to "
                         f"{cells.right[place]:g}: the probability of this interval is {mean[x, place]:.9g} times that of another "
                         f"input, but the densities have ratios from {low[x, place]:.9g} to {high[x, place]:.9g}: is cdf the "
                         "integral of pdf, and is every output in breakpoints at which a ratio turns or jumps?")


def lower_rows(densities: Densities, cells: Cells) -> tuple[FloatArray, float]:
    """Return the rows of the randomizer for lower bounds, shape (inputs, outputs), and the error of the likelihood ratios.

    Neighbouring cells are merged, from both ends, until the relative errors of their probabilities are at most SMALL_ERROR.
    """
    edges = tuple(np.concatenate([left, right[:, -1:]], axis=1) for left, right in zip(cells.tails_left, cells.tails_right))

    def relative(first: int, last: int) -> float:
        mass, miss = densities.between(*((edges[0][:, [at]], edges[1][:, [at]]) for at in (first, last)))
        return float(np.divide(miss, mass, out=np.where(miss > 0, np.inf, 0.0), where=mass > 0).max())

    size, ends = cells.left.size, [0]
    for at in range(1, size + 1):
        if relative(ends[-1], at) <= SMALL_ERROR:
            ends.append(at)
    ends = [*ends[: max(1, len(ends) - 1)], size]
    while len(ends) > 2 and relative(ends[-2], size) > SMALL_ERROR:
        del ends[-2]
    place = np.array(ends)
    mass, miss = densities.between(*((edges[0][:, part], edges[1][:, part]) for part in (place[:-1], place[1:])))
    worst = float(np.divide(miss, mass, out=np.zeros_like(mass), where=mass > 0).max())
    return mass[:, mass.any(axis=0)], 2 * worst + 64 * ULP
