"""The pointwise least of several trade-off curves."""

from __future__ import annotations

import numpy as np

from shufflebounds._types import UNIT, FloatArray
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.piecewise import Piecewise, prune

__all__ = ["least", "rounded"]




def rounded(log_alpha: FloatArray, log_beta: FloatArray, *, upper: bool) -> Tradeoff:
    """Return the curve through the knots, those that rounding has put out of order moved up (or down, for a lower side)."""
    if upper:
        log_alpha, log_beta = np.maximum.accumulate(log_alpha), np.maximum.accumulate(log_beta[::-1])[::-1]
    else:
        log_alpha, log_beta = np.minimum.accumulate(log_alpha[::-1])[::-1], np.minimum.accumulate(log_beta)
    return Tradeoff.from_knots(np.minimum(log_alpha, 0.0), np.minimum(log_beta, 0.0))


def least(curves: list[Tradeoff], *, upper: bool) -> Tradeoff:
    """Return the least of the curves, never below it, or its convex hull, that of all knots."""
    if not upper:
        points = np.concatenate([piecewise(f).points for f in curves], axis=1)
        return Tradeoff(prune(points[:, np.lexsort((points[2], -points[1], points[0]))]))
    while len(curves) > 1:
        curves = [_of_two(*curves[i : i + 2]) if i + 1 < len(curves) else curves[i] for i in range(0, len(curves), 2)]
    return curves[0]


def piecewise(f: Tradeoff) -> Piecewise:
    """Return the knots of f with their complements."""
    assert isinstance(f._form, Piecewise)
    return f._form


def _of_two(first: Tradeoff, second: Tradeoff) -> Tradeoff:
    """Return the least of two curves without jumps, rounded up."""
    log_alpha = np.union1d(first.knots[0], second.knots[0])
    values = np.asarray(first.log_beta(log_alpha)), np.asarray(second.log_beta(log_alpha))
    # a knot of the curve that lies above lies on a straight piece of the other
    kept = (np.isin(log_alpha, first.knots[0]) & (values[0] <= values[1])) | (
        np.isin(log_alpha, second.knots[0]) & (values[1] <= values[0])
    )
    kept[[0, -1]] = True
    # between knots both are straight, and their minimum has a corner where they cross: the larger value, for a crossing that
    # rounding has moved, since chords from it to both neighbours are then nowhere below the minimum
    crossing = _crossings(log_alpha, *values)
    at = np.maximum(first.log_beta(crossing), second.log_beta(crossing)) if crossing.size else crossing
    log_alpha, log_beta = np.append(log_alpha[kept], crossing), np.append(np.minimum(*values)[kept], at)
    order = np.argsort(log_alpha, kind="stable")
    return rounded(log_alpha[order], log_beta[order] + 4 * UNIT, upper=True)


def _crossings(log_alpha: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return log alpha where two piecewise straight curves on the same knots change places."""
    above = np.sign(np.where(first == second, 0.0, np.nan_to_num(first, neginf=-1e308) - np.nan_to_num(second, neginf=-1e308)))
    places = np.flatnonzero(above[:-1] * above[1:] < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # beta falls: the values on the left are the largest
        top = np.maximum(first, second)[places]
        gap, after = (np.abs(np.exp(first[at] - top) - np.exp(second[at] - top)) for at in (places, places + 1))
        part = np.clip(np.nan_to_num(gap / (gap + after), nan=0.5), 0.0, 1.0)
        out: FloatArray = np.logaddexp(np.log1p(-part) + log_alpha[places], np.log(part) + log_alpha[places + 1])
    return out
