r"""Curves of profiles: enclosed by finitely many values of delta, and the convex hull of several.

With E = e^eps the curve is :math:`f(\alpha) = \sup_E 1 - \delta(E) - E \alpha`, a supremum of lines. Lines of an upper bound
of delta, at some E only, give a curve at or below f. A polyline in E at or below delta gives a curve at or above f, and the
lines of its corners make it all up.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._types import ULP, FloatArray
from shufflebounds.composing.sampled_profile import SampledProfile
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.closed import QUANTILE_ERROR, Gaussian
from shufflebounds.tradeoff.envelope import envelope
from shufflebounds.tradeoff.piecewise import Piecewise, prune
from shufflebounds.tradeoff.representation import log1mexp, log_quantile

__all__ = ["convex_hull", "curve", "gdp_mu", "mu_of_knots", "repeated_mu", "rounded"]


def _enclosing(forward: SampledProfile, backward: SampledProfile, upper: bool) -> tuple[Piecewise, FloatArray]:
    """Return a curve above or below T(P, Q), and the eps of its pieces. Forward are samples of H(Q||P), backward of H(P||Q)."""
    if upper:
        return envelope(*forward.below(backward), *backward.below(forward), upper=True)
    return envelope(forward.eps, forward.high, backward.eps, backward.high)


def curve(forward: SampledProfile, backward: SampledProfile, *, upper: bool) -> Tradeoff:
    """Return a curve at or above T(P, Q), or at or below it, as the samples enclose it."""
    return Tradeoff(_enclosing(forward, backward, upper)[0])


def _corner_mu(points: FloatArray, *, upper: bool) -> FloatArray:
    """Return the Gaussian mu of every point, from above or below."""
    alpha, beta = log_quantile(*points[:2]), log_quantile(*points[2:])
    error = QUANTILE_ERROR * (1 + np.abs(alpha))
    return np.asarray(-alpha - beta + (error if upper else -error))


def gdp_mu(forward: SampledProfile, backward: SampledProfile, upper: bool, rtol: float, evaluations: int) -> float:
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
    if isinstance(form, Gaussian):
        return math.sqrt(times) * form.gdp_mu() * (1 - QUANTILE_ERROR)
    if isinstance(form, Piecewise):
        one = form.points[0, 1:-1], form.points[3, 1:-1]
    else:
        # any tests give a lower bound; only for normal noise do the squares of mu add up
        log_alpha = -np.geomspace(1e-3, 700.0, 256)
        one = log_alpha, log1mexp(form.log_beta(log_alpha))
    log_alpha, log_power = (times * row * (1 + sign * 4 * ULP) for row, sign in zip(one, (-1, 1)))
    points = np.array([log_alpha, log1mexp(log_alpha), log1mexp(log_power), log_power])
    return float(_corner_mu(points[:, np.isfinite(points).all(axis=0)], upper=False).max(initial=0.0))


def _halve(samples: SampledProfile, left: FloatArray, right: FloatArray, most: int) -> int:
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


def convex_hull(curves: list[Tradeoff]) -> Tradeoff:
    """Return the greatest convex curve at or below all of the curves, that of all their knots; they are piecewise linear.

    The hull of upper bounds is an upper bound of the hull, and the hull of lower bounds a lower one.
    """
    points = np.concatenate([_pieces(f).points for f in curves], axis=1)
    return Tradeoff(prune(points[:, np.lexsort((points[2], -points[1], points[0]))]))


def _pieces(f: Tradeoff) -> Piecewise:
    if not isinstance(f._form, Piecewise):
        raise TypeError(f"{f!r} is not piecewise linear: it has no knots")
    return f._form
