r"""Curves of profiles: enclosed by finitely many values of delta, and the pointwise least of several.

With E = e^eps the curve is :math:`f(\alpha) = \sup_E 1 - \delta(E) - E \alpha`, a supremum of lines. Lines of an upper bound
of delta, at some E only, give a curve at or below f. A polyline in E at or below delta gives a curve at or above f, and the
lines of its corners make it all up.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._types import ULP, FloatArray
from shufflebounds.composing.samples import Samples
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.envelope import envelope
from shufflebounds.tradeoff.piecewise import Piecewise, prune
from shufflebounds.tradeoff.representation import log1mexp, log_quantile

__all__ = ["curve", "gdp_mu", "least", "mu_of_knots", "repeated_mu", "rounded"]

QUANTILE_ERROR = 4e-15
"""Of the normal quantiles of logarithms, relative."""


def _enclosing(forward: Samples, backward: Samples, upper: bool) -> tuple[Piecewise, FloatArray]:
    """Return a curve above or below T(P, Q), and the eps of its pieces. Forward are samples of H(Q||P), backward of H(P||Q)."""
    if upper:
        return envelope(*forward.below(backward), *backward.below(forward), upper=True)
    return envelope(forward.eps, forward.high, backward.eps, backward.high)


def curve(forward: Samples, backward: Samples, *, upper: bool) -> Tradeoff:
    """Return a curve at or above T(P, Q), or at or below it, as the samples enclose it."""
    return Tradeoff(_enclosing(forward, backward, upper)[0])


def _corner_mu(points: FloatArray, *, upper: bool) -> FloatArray:
    """Return the Gaussian mu of every point, from above or below."""
    alpha, beta = log_quantile(*points[:2]), log_quantile(*points[2:])
    error = QUANTILE_ERROR * (1 + np.abs(alpha))
    return np.asarray(-alpha - beta + (error if upper else -error))


def gdp_mu(forward: Samples, backward: Samples, upper: bool, rtol: float, evaluations: int) -> float:
    """Return the Gaussian mu of the curve from above or below, refined until the two are rtol apart; the samples grow."""
    best = 0.0
    while True:
        above, eps = _enclosing(forward, backward, False)
        below, _ = _enclosing(forward, backward, True)
        corners = _corner_mu(above.points[:, 1:-1], upper=True)
        most = float(corners.max(initial=0.0))
        best = max(best, float(_corner_mu(below.points[:, 1:-1], upper=False).max(initial=0.0)))
        # where f(0) < 1 no Gaussian curve lies below
        unlimited = max(above.points[3, 0], above.points[1, -1]) > -math.inf
        open_ = corners > best * (1 + rtol)
        if unlimited or not open_.any():
            break
        low, high = eps[1:][open_], eps[:-1][open_]
        grown = _halve(forward, np.maximum(low, 0.0), high, evaluations)
        grown += _halve(backward, np.maximum(-high, 0.0), -low, evaluations)
        if not grown:
            break
    if upper:
        return math.inf if unlimited else most
    return best


def mu_of_knots(points: FloatArray, *, upper: bool) -> float:
    """Return the Gaussian mu of a curve of all its knots, inf where the supports of the laws differ."""
    if max(points[3, 0], points[1, -1]) > -math.inf:
        return math.inf
    return float(_corner_mu(points[:, 1:-1], upper=upper).max(initial=0.0))


def repeated_mu(above: Tradeoff, times: int) -> float:
    """Return a mu that so many releases reach at least, whose curve lies at or below `above`: each test of one, passed by all.

    Where deep losses decide, this comes close to the root of `times` that bounds the growth of mu from above.
    """
    form = above._form
    if not isinstance(form, Piecewise):
        return math.sqrt(times) * form.gdp_mu() * (1 - QUANTILE_ERROR)
    log_alpha, log_power = (times * row[1:-1] * (1 + sign * 4 * ULP) for row, sign in ((form.points[0], -1), (form.points[3], 1)))
    points = np.array([log_alpha, log1mexp(log_alpha), log1mexp(log_power), log_power])
    return float(_corner_mu(points[:, np.isfinite(points).all(axis=0)], upper=False).max(initial=0.0))


def _halve(samples: Samples, left: FloatArray, right: FloatArray, most: int) -> int:
    """Ask for delta in the middle of these intervals, where they are wide and the samples reach; return how many were asked."""
    wide = (right - left > 1e-12 * right) & ~samples.too_deep(left)
    before = samples.evaluations
    if before < most:
        samples.add(0.5 * (left + right)[wide])
    return samples.evaluations - before


def rounded(log_alpha: FloatArray, log_beta: FloatArray, *, upper: bool) -> Tradeoff:
    """Return the curve through the knots, those that rounding has put out of order moved up (or down, for a lower side)."""
    if upper:
        log_alpha, log_beta = np.maximum.accumulate(log_alpha), np.maximum.accumulate(log_beta[::-1])[::-1]
    else:
        log_alpha, log_beta = np.minimum.accumulate(log_alpha[::-1])[::-1], np.minimum.accumulate(log_beta)
    return Tradeoff(Piecewise.through(np.minimum(log_alpha, 0.0), np.minimum(log_beta, 0.0)))


def least(curves: list[Tradeoff], *, upper: bool) -> Tradeoff:
    """Return the least of the curves, never below it, or its convex hull, that of all knots."""
    if not upper:
        points = np.concatenate([f._form.points for f in curves if isinstance(f._form, Piecewise)], axis=1)
        return Tradeoff(prune(points[:, np.lexsort((points[2], -points[1], points[0]))]))
    while len(curves) > 1:
        curves = [_of_two(*curves[i : i + 2]) if i + 1 < len(curves) else curves[i] for i in range(0, len(curves), 2)]
    return curves[0]


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
    return rounded(log_alpha[order], log_beta[order] + 4 * ULP, upper=True)


def _crossings(log_alpha: FloatArray, first: FloatArray, second: FloatArray) -> FloatArray:
    """Return log alpha where two piecewise straight curves on the same knots change places."""
    above = np.sign(np.where(first == second, 0.0, np.nan_to_num(first, neginf=-1e308) - np.nan_to_num(second, neginf=-1e308)))
    places = np.flatnonzero(above[:-1] * above[1:] < 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # beta falls, so that its largest values are on the left
        top = np.maximum(first, second)[places]
        gap, after = (np.abs(np.exp(first[at] - top) - np.exp(second[at] - top)) for at in (places, places + 1))
        part = np.clip(np.nan_to_num(gap / (gap + after), nan=0.5), 0.0, 1.0)
        out: FloatArray = np.logaddexp(np.log1p(-part) + log_alpha[places], np.log(part) + log_alpha[places + 1])
    return out
