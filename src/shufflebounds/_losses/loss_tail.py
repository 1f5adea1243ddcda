"""Bounds of the probability that the privacy loss exceeds eps, for `PrivacyProfile.loss_tail`.

The bounds follow from bounds of delta: delta is a convex function of e^eps, and its slope is minus the probability under Q that the
loss exceeds eps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.limits import COMPUTED_ERROR, TINY
from shufflebounds._base.types import EXP_SLACK, FloatArray, IntervalArray

__all__ = ["loss_tail"]

STEPS = np.geomspace(1e-6, 1.0, 40)
"""Lengths h, in eps, of the secants of delta that are tried; see `loss_tail`. More lengths tighten the bounds in more time."""


def loss_tail(
    lower: Callable[[FloatArray], FloatArray],
    upper: Callable[[FloatArray], FloatArray],
    eps: FloatArray,
    single: bool,
    roughly: Callable[[FloatArray], FloatArray] | None = None,
    limits: FloatArray | None = None,
) -> IntervalArray:
    """Return bounds of Pr[L > eps] at each eps > 0. L is the loss of one pair (P, Q) if `single`, otherwise of the worst pair.

    `lower` and `upper` return bounds of log delta. `lower` may take longer, and is called for `eps` only. If a value of delta is
    expensive, `roughly` is a cheaper upper bound of log delta; fewer lengths of secants are then tried, and the lower bound of
    delta(eps) is returned as the lower bound of Pr[L > eps]. If `limits` is given, it is returned as the upper bound, and secants
    give the lower bound.

    With E = e^eps, delta of a pair is convex in E, its right slope is -Q(L > eps), and P(L > eps) = delta + E Q(L > eps). So the
    slope of a secant from E to the right gives a lower bound of P(L > eps), and that of a secant to the left an upper bound. A
    secant to the left needs delta of the same pair at both ends. If delta is the maximum over several pairs, the upper bound for a
    secant of length h in eps is delta(eps - h)/(1 - x) with x = e^-h, because P - x E Q >= (1 - x) P on the outcomes with L > eps.
    """
    low = lower(eps)[:, None]

    def losses(steps: FloatArray, rows: NDArray[np.intp]) -> FloatArray:
        at = eps[rows, None]
        later = np.minimum(at + steps * np.maximum(at, 1.0), np.finfo(float).max)
        fall = -np.expm1(np.minimum(_of(roughly or upper, later) - low[rows], 0.0))
        # A secant may have length 0 if eps is close to the largest double.
        most = np.where((low[rows] > -np.inf) & (later > at), 1 / np.expm1(later - at), 0.0)
        return np.where(most > 0, -fall * most, 0.0)

    def bounds(
        steps: FloatArray, rows: NDArray[np.intp], log_delta: Callable[[FloatArray], FloatArray] = roughly or upper
    ) -> FloatArray:
        at = eps[rows, None]
        earlier = at * (1 - steps)
        log_before = _of(log_delta, earlier)
        rest, before = -np.expm1(earlier - at), np.exp(log_before)
        # Where delta underflows, delta / rest may still be a normal number, so it is computed from logarithms.
        deep = np.exp(log_before - np.log(rest) + COMPUTED_ERROR)
        if single:
            # `rise` is a difference of two deltas. A bound of its rounding error, 4 EXP_SLACK times the first delta, is added.
            rise = before - np.exp(earlier - at + low[rows])
            above = (rise + 4 * EXP_SLACK * before) / rest
            deep *= COMPUTED_ERROR - np.expm1(np.minimum(earlier - at + low[rows] - log_before, 0.0))
        else:
            above = before / rest
        return np.where(rest > 0, np.where(before < TINY, deep, above), 1.0)

    # If delta underflows at every eps, the lower bounds are 0 and no secant is tried for them. If the upper bounds from the
    # shortest secants are 0, too, no longer secant is tried.
    below, every = np.exp(low[:, 0]) * (1 - 4 * EXP_SLACK), np.arange(eps.size)
    if (limits is not None or roughly is None) and below.any():
        gain = -_least(losses, eps.size, roughly is not None)
        # Where delta underflows, its product with a large gain is computed from logarithms and rounded down.
        deep = np.nextafter(np.exp(low[:, 0] + np.log1p(gain) - COMPUTED_ERROR), 0.0)
        below = np.where(below < TINY, deep, below * (1 + gain))
    below = np.clip(below, 0.0, 1.0)
    if limits is not None:
        return IntervalArray(below, limits)
    high = upper(eps)
    above = np.ones(eps.size) if np.exp(high).any() else bounds(STEPS[:1], every, upper)[:, 0]
    if above.any():
        above = _least(bounds, eps.size, roughly is not None)
    value = np.nextafter(above * (1 + 4 * EXP_SLACK), np.inf)
    return IntervalArray(below, np.where(high == -np.inf, 0.0, np.minimum(value, 1.0)))


def _least(values: Callable[[FloatArray, NDArray[np.intp]], FloatArray], count: int, fewer: bool) -> FloatArray:
    """Return for each of `count` eps the smallest result of `values` over the lengths of secants in STEPS.

    Given an array of lengths and the indices of some eps, `values` returns a result for each eps and length. With `fewer`, about
    nine lengths are tried. They suffice because the results for one eps first decrease and then increase with the length, apart
    from numerical errors.
    """
    every = np.arange(count)
    if not fewer:
        return np.asarray(values(STEPS, every).min(axis=1))
    # `best` is the index of the length with the smallest result so far. The best of all lengths lies between `ends`, the nearest
    # tried lengths on either side.
    best, ends = np.full(count, STEPS.size // 2), np.repeat([[-1], [STEPS.size]], count, axis=1)
    smallest = values(STEPS[best][:, None], every)[:, 0]
    for width in (8, 4, 2, 1):
        for side, step in ((1, width), (0, -width)):
            rows = every
            while (rows := rows[step * (ends[side, rows] - best[rows] - step) > 0]).size:
                place = best[rows] + step
                value = values(STEPS[place][:, None], rows)[:, 0]
                # All results for short lengths may be 0, because the gap of the bounds of delta exceeds the decrease of delta
                # there. So if two lengths have equal results, the search goes on from the longer one.
                less = (value < smallest[rows]) | ((value == smallest[rows]) & (side == 1))
                ends[side, rows[~less]] = place[~less]
                rows, place = rows[less], place[less]
                smallest[rows], ends[1 - side, rows], best[rows] = value[less], best[rows], place
    return smallest


def _of(log_delta: Callable[[FloatArray], FloatArray], eps: FloatArray) -> FloatArray:
    return log_delta(eps.ravel()).reshape(eps.shape)
