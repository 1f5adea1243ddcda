"""How often the privacy loss exceeds eps, from delta on both sides."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shufflebounds._types import EXP_SLACK, FloatArray, IntervalArray

__all__ = ["loss_tail"]

STEPS = np.geomspace(1e-6, 1.0, 40)


def loss_tail(
    lower: Callable[[FloatArray], FloatArray], upper: Callable[[FloatArray], FloatArray], eps: FloatArray, single: bool
) -> IntervalArray:
    """Return bounds of Pr[L > eps] for the pair behind delta, at each eps > 0; of the worst pair unless `single` is set.

    `lower` and `upper` bound log delta; the lower bound, which may take longer, is evaluated at `eps` only.

    With E = e^eps, delta of a pair is convex in E and has the slope -Q(L > eps) to the right of eps, where P(L > eps) is
    delta + E Q(L > eps): chords to the right bound it from below, and to the left from above. The chord to the left needs delta of
    the same pair at both ends; of several pairs only P - xE Q >= (1 - x) P above eps is left.
    """
    at = eps[:, None]
    low, high = lower(eps)[:, None], upper(eps)[:, None]
    later, earlier = np.minimum(at + STEPS * np.maximum(at, 1.0), np.finfo(float).max), at * (1 - STEPS)
    fall = -np.expm1(np.minimum(_of(upper, later) - low, 0.0))
    # at the largest and the least doubles a step may vanish
    gain = np.where((low > -np.inf) & (later > at), fall / np.expm1(later - at), 0.0).max(axis=1)
    below = np.exp(low[:, 0]) * (1 + gain) * (1 - 4 * EXP_SLACK)
    rest = -np.expm1(earlier - at)
    before = np.exp(_of(upper, earlier))
    if single:
        # the difference of two sides is charged with its rounding
        rise = before - np.exp(earlier - at + low)
        above = (rise + 4 * EXP_SLACK * before) / rest
    else:
        above = before / rest
    above = np.where(rest > 0, above, 1.0)
    value = np.nextafter(above.min(axis=1) * (1 + 4 * EXP_SLACK), np.inf)
    return IntervalArray(np.clip(below, 0.0, 1.0), np.where(high[:, 0] == -np.inf, 0.0, np.minimum(value, 1.0)))


def _of(log_delta: Callable[[FloatArray], FloatArray], eps: FloatArray) -> FloatArray:
    return log_delta(eps.ravel()).reshape(eps.shape)
