"""Bounds of the probability that the privacy loss exceeds eps, for `PrivacyProfile.loss_tail`.

They follow from bounds of delta: delta is a convex function of e^eps, and its slope is minus the probability under Q that the loss
exceeds eps.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

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
) -> IntervalArray:
    """Return bounds of Pr[L > eps] at each eps > 0. L is the loss of one pair (P, Q) if `single`, otherwise of the worst pair.

    `lower` and `upper` bound log delta; the lower bound, which may take longer, is evaluated at `eps` only. If a value of delta is
    expensive, `roughly` is a cheaper upper bound, and fewer lengths of secants are tried.

    With E = e^eps, delta of a pair is convex in E, its right slope is -Q(L > eps), and P(L > eps) = delta + E Q(L > eps). So a
    secant of delta to the right of E gives a lower bound, and a secant to the left an upper bound. A secant to the left needs delta
    of one pair at both ends. For a maximum over several pairs, the upper bound is delta(eps - h)/(1 - x) with x = e^-h, because
    P - x E Q >= (1 - x) P on the outcomes with L > eps.
    """
    at = eps[:, None]
    low, high = lower(eps)[:, None], upper(eps)[:, None]

    def gains(steps: FloatArray) -> FloatArray:
        later = np.minimum(at + steps * np.maximum(at, 1.0), np.finfo(float).max)
        fall = -np.expm1(np.minimum(_of(roughly or upper, later) - low, 0.0))
        # A secant may have length 0 if eps is close to the largest double.
        return np.where((low > -np.inf) & (later > at), fall / np.expm1(later - at), 0.0)

    def bounds(steps: FloatArray, log_delta: Callable[[FloatArray], FloatArray] = roughly or upper) -> FloatArray:
        earlier = at * (1 - steps)
        log_before = _of(log_delta, earlier)
        rest, before = -np.expm1(earlier - at), np.exp(log_before)
        # Where delta underflows, delta / rest may be a normal number: compute it from logarithms.
        deep = np.exp(log_before - np.log(rest) + COMPUTED_ERROR)
        if single:
            # `rise` is a difference of two deltas. Its rounding error, at most 4 EXP_SLACK times the first, is added.
            rise = before - np.exp(earlier - at + low)
            above = (rise + 4 * EXP_SLACK * before) / rest
            deep *= COMPUTED_ERROR - np.expm1(np.minimum(earlier - at + low - log_before, 0.0))
        else:
            above = before / rest
        return np.where(rest > 0, np.where(before < TINY, deep, above), 1.0)

    # If delta underflows at every eps, the lower bounds are 0 and no secant is tried. If, in addition, the upper bounds from the
    # shortest secants are 0, no longer secant is tried.
    below = np.exp(low[:, 0]) * (1 - 4 * EXP_SLACK)
    if below.any():
        gain = -_least(lambda steps: -gains(steps), eps.size, roughly is not None)
        # The product of a delta that underflows and a large gain is computed from logarithms, and rounded down.
        deep = np.nextafter(np.exp(low[:, 0] + np.log1p(gain) - COMPUTED_ERROR), 0.0)
        below = np.where(below < TINY, deep, below * (1 + gain))
    above = np.ones(eps.size) if np.exp(high).any() else bounds(_tiled(STEPS[:1], eps.size), upper)[:, 0]
    if above.any():
        above = _least(bounds, eps.size, roughly is not None)
    value = np.nextafter(above * (1 + 4 * EXP_SLACK), np.inf)
    return IntervalArray(np.clip(below, 0.0, 1.0), np.where(high[:, 0] == -np.inf, 0.0, np.minimum(value, 1.0)))


def _tiled(lengths: FloatArray, count: int) -> FloatArray:
    """Return the lengths once for each of `count` eps."""
    return np.tile(lengths, (count, 1))


def _least(values: Callable[[FloatArray], FloatArray], count: int, fewer: bool) -> FloatArray:
    """Return for each of `count` eps the smallest result of `values` over the lengths in STEPS.

    `values` takes an array of lengths of shape (count, any number). With `fewer`, fewer lengths are tried.
    """
    if not fewer:
        return np.asarray(values(_tiled(STEPS, count)).min(axis=1))
    # First every fourth length is tried, then two lengths on either side of the best one.
    coarse = np.arange(3, STEPS.size, 4)
    found = values(_tiled(STEPS[coarse], count))
    best = coarse[found.argmin(axis=1)][:, None]
    beside = np.clip(best + np.array([-2, -1, 1, 2]), 0, STEPS.size - 1)
    return np.asarray(np.minimum(found.min(axis=1), values(STEPS[beside]).min(axis=1)))


def _of(log_delta: Callable[[FloatArray], FloatArray], eps: FloatArray) -> FloatArray:
    return log_delta(eps.ravel()).reshape(eps.shape)
