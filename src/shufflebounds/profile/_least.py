"""The pointwise least of several trade-off curves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from shufflebounds.tradeoff import Tradeoff

__all__ = ["least"]

Floats = NDArray[np.float64]

_UNIT = float(np.finfo(float).eps)


def least(curves: list[Tradeoff], *, upper: bool) -> Tradeoff:
    """Return the least of the curves, never below it, or its convex hull, never above it; two at a time."""
    while len(curves) > 1:
        curves = [_of_two(*curves[i : i + 2], upper) if i + 1 < len(curves) else curves[i] for i in range(0, len(curves), 2)]
    return curves[0] if upper else curves[0].convex_hull()


def _of_two(first: Tradeoff, second: Tradeoff, upper: bool) -> Tradeoff:
    log_alpha = np.union1d(first.knots[0], second.knots[0])
    values = np.asarray(first.log_beta(log_alpha)), np.asarray(second.log_beta(log_alpha))
    log_beta = np.minimum(*values)
    # a knot of the curve that lies above lies on a straight piece of the other
    kept = np.isin(log_alpha, first.knots[0]) & (values[0] <= values[1]) | np.isin(log_alpha, second.knots[0]) & (
        values[1] <= values[0])
    kept[[0, -1]] = True
    if upper:
        # between knots both are straight, and their minimum has a corner where they cross
        crossing = _crossings(log_alpha, *values)
        at = np.minimum(np.asarray(first.log_beta(crossing)), np.asarray(second.log_beta(crossing)))
        log_alpha, log_beta = np.append(log_alpha[kept], crossing), np.append(log_beta[kept], at)
        order = np.argsort(log_alpha, kind="stable")
        log_alpha, log_beta = log_alpha[order], log_beta[order]
        log_beta = np.minimum(np.maximum.accumulate((log_beta + 4 * _UNIT)[::-1])[::-1], 0.0)
        return Tradeoff.from_knots(log_alpha, log_beta)
    return Tradeoff.from_knots(log_alpha[kept], np.minimum.accumulate(log_beta[kept] - 4 * _UNIT))


def _crossings(log_alpha: Floats, first: Floats, second: Floats) -> Floats:
    """Return log alpha where two piecewise straight curves on the same knots change places."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.exp(first) - np.exp(second)
        places = np.flatnonzero(gap[:-1] * gap[1:] < 0)
        part = gap[places] / (gap[places] - gap[places + 1])
        return np.logaddexp(np.log1p(-part) + log_alpha[places], np.log(part) + log_alpha[places + 1])
