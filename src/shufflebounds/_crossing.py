"""The smallest eps at which a decreasing curve of log delta meets a target: one search for every class.

The kernel `_core/_crossing.pyx` is the same search for curves that are C functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from shufflebounds._search import narrowed

__all__ = ["Curve", "crossing"]

FIRST = 0.05
"""Largest first step of eps where no guess is known. A larger one costs evaluations for small eps, a smaller one for large eps."""

LEAST = 1e-290
"""Absolute tolerance of eps, which ends the search on a curve that is above its target at eps = 0 only. Its value has no influence
on other curves."""

PAST = 1.02
"""Factor by which the first step from a guess exceeds the estimated distance of the crossing, so that it ends beyond it.

Raised: the bracket is wider. Lowered: more first steps end before the crossing.
"""

JUMP = 20.0
"""A bracket is not narrowed if the curve falls in it by more than JUMP times the fall of its rough curve.

The curve jumps there, as bounds by a search of finite tolerance do (`Curve.settles`). The bracket is then narrower, in eps, than
1/JUMP of the jump. Raised: more evaluations, which only locate the jump.
"""


@dataclass(frozen=True)
class Curve:
    """A decreasing curve of log delta, at most 0, as a function of eps >= 0.

    Attributes
    ----------
    log_delta : callable
        Returns log delta at one eps.
    rough : Curve, optional
        A cheaper curve close to this one, which may lie above or below it. The search begins at its crossing. The fields `pure` and
        `cap` of this curve hold for it, too.
    pure : float
        log delta is -inf from here on.
    cap : float
        No larger eps is evaluated.
    rtol : float
        Relative distance from the crossing that an answer may have. Lowered: more evaluations.
    settles : float
        The same for the answer of a curve of which this one is the rough curve, if it is larger than that curve's `rtol`. It serves
        curves whose bounds have a gap, as those by a search over datasets.
    """

    log_delta: Callable[[float], float]
    rough: Curve | None = None
    pure: float = math.inf
    cap: float = 1e6
    rtol: float = 1e-13
    settles: float = 0.0


def crossing(curve: Curve, target: float, *, upper: bool) -> float:
    """Return an eps close to the crossing of the curve with the target, a log delta <= 0, on the chosen side of it.

    If `upper` is true, the curve was evaluated at the returned eps and is at most the target, or the returned eps is `pure`.
    Otherwise it was evaluated there and is at least the target, or the returned eps is 0 or `pure`. If `pure` is inf and the curve
    is above the target up to `cap`, the answer is inf.
    """
    goal, rough = math.sqrt(-target), curve.rough
    if rough is not None:
        rough = replace(rough, log_delta=cache(rough.log_delta), pure=curve.pure, cap=curve.cap)
    rtol = curve.rtol if rough is None else max(curve.rtol, rough.settles)

    def excess(eps: float) -> float:
        """Return sqrt(-log delta) - sqrt(-target), nearly linear in eps, as a quotient whose sign is exact."""
        value = curve.log_delta(eps)
        if value == target:
            return 0.0
        # log delta is -inf only beyond the pure budget; any large positive number serves there
        return (target - value) / (goal + math.sqrt(-value)) if value > -math.inf else goal + 1e3

    at, slope = (0.0, 0.0) if rough is None else _guess(rough, target, upper)
    value = excess(at)
    if slope > 0 and (value >= 0 if upper else value <= 0) and abs(value) <= slope * rtol * at:
        return at
    right = value < 0
    step = max(PAST * abs(value) / slope, 0.5 * rtol * at) if slope > 0 else min(FIRST, 0.5 * curve.pure)
    while True:
        if at >= curve.pure if right else at == 0:
            return at
        there = min(at + step, curve.pure) if right else max(at - step, 0.0)
        if there > curve.cap:
            # With a finite pure budget the lower bound is the last eps that was evaluated.
            return curve.pure if upper or curve.pure == math.inf else at
        last, at, value = (at, value), there, excess(there)
        if (value < 0) != right:
            break
        # the line through both points, extended a little beyond the point where it reaches the target
        rise = (value - last[1]) / (at - last[0])
        step = min(max(1.1 * abs(value) / rise, step), 3 * at) if rise > 0 else 3 * at
    (low, at_low), (high, at_high) = sorted([last, (at, value)])
    # The root search aims at the middle of the tolerance on the chosen side: a point there ends it, without one on the other side.
    margin = 0.5 * rtol * min((at_high - at_low) / (high - low) * high, goal)
    aim = margin if upper else -margin

    def enough(low: float, high: float, at_low: float, at_high: float) -> bool:
        if min(abs(at_low), abs(at_high)) <= margin:
            return True
        fall = (at_high - at_low) / JUMP
        if rough is None or not rough.settles or not slope * (high - low) < fall < goal / JUMP:
            return False
        # the rough curve may be steeper here than at the guess
        return _fall(rough, low, high) < fall

    low, high, at_low, at_high = narrowed(
        lambda eps: excess(eps) - aim, low, high, at_low - aim, at_high - aim, rtol=rtol, xtol=LEAST, enough=enough
    )
    if upper:
        return low if abs(at_low) <= margin else high
    return high if abs(at_high) <= margin else low


def _guess(rough: Curve, target: float, upper: bool) -> tuple[float, float]:
    """Return the crossing of the rough curve and its slope there, in sqrt(-log delta); both 0 if it has none below `pure`."""
    eps = crossing(rough, target, upper=upper)
    reach = 1e-4 * min(eps, rough.pure - eps)
    if not (reach > 0 and eps < rough.cap):
        return 0.0, 0.0
    slope = _fall(rough, eps, eps + reach) / reach
    return (eps, slope) if 0 < slope < math.inf else (0.0, 0.0)


def _fall(rough: Curve, low: float, high: float) -> float:
    """Return the difference of sqrt(-log delta) of the curve between two eps."""
    return math.sqrt(-rough.log_delta(high)) - math.sqrt(-rough.log_delta(low))
