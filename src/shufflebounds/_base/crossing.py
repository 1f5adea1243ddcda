"""The search for the smallest eps at which a decreasing curve of log delta meets a target. Every `eps(delta)` uses it.

The kernel `_core/_crossing.pyx` is the same search for curves that are C functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

from shufflebounds._base.limits import TINY, UNDERFLOW_EXPONENT
from shufflebounds._base.search import bracket, expand_bracket, narrowed
from shufflebounds._base.types import EXP_SLACK, ULP

__all__ = ["Curve", "crossing", "eps_at", "last_positive"]

Point = tuple[float, float]
"""An eps and the excess there."""

JUMP = 20.0
"""A curve counts as discontinuous in a bracket over which it falls JUMP times as much as its rough curve.

Bounds that come from a search of finite tolerance jump (`Curve.settles`). The search for eps ends at such a bracket. Raised: more
evaluations, which only locate the jump. Lowered: steep curves count as discontinuous, and eps is less accurate.
"""


@dataclass(frozen=True)
class Curve:
    """A decreasing curve of log delta, at most 0, as a function of eps >= 0.

    Attributes
    ----------
    log_delta : callable
        Returns log delta at one eps.
    rough : Curve, optional
        A cheaper curve close to this one, which may lie above or below it. The search begins where the rough curve meets the
        target. The fields `pure` and `cap` of this curve replace those of the rough curve.
    pure : float
        The pure budget: log delta is -inf for every eps >= `pure`.
    cap : float
        The largest eps that is evaluated.
    rtol : float
        Relative distance from the crossing that an answer may have. Lowered: more evaluations.
    settles : float
        If this curve is the rough curve of another curve and `settles` is larger than the other curve's `rtol`, `settles` replaces
        that `rtol`. Curves whose bounds have a gap, such as those of a search over datasets, set `settles` to their tolerance.
    jumps : bool
        If this curve is the rough curve of another curve: whether the other curve may be discontinuous (JUMP). False if this curve
        may be wrong by orders of magnitude, so that its slope says nothing about the other curve.
    """

    log_delta: Callable[[float], float]
    rough: Curve | None = None
    pure: float = math.inf
    cap: float = 1e6
    rtol: float = 1e-13
    settles: float = 0.0
    jumps: bool = True


def eps_at(bound: Callable[[float], float], delta: float, *, upper: bool, rough: Curve | None, pure: float,
           cap: float = 1e6) -> float:
    """Return an upper or a lower bound of the eps at which delta is `delta`, in (0, 1].

    `bound` returns an upper or a lower bound of log delta at one eps. It may be positive, and NaN stands for the trivial bound. The
    other arguments are those of `Curve`.
    """
    # delta() rounds the exponential conservatively. Adjusting the target by this rounding makes delta(epsilon(d)) <= d exact.
    outward = -1 if upper else 1
    reach = delta * (1 + outward * 4 * EXP_SLACK) + outward * 1e-323
    target = min(0.0, math.nextafter(math.log(reach), outward * math.inf)) if reach > 0 else -UNDERFLOW_EXPONENT
    if delta == 1:
        target = 0.0

    def log_delta(eps: float) -> float:
        value = bound(eps)
        return min(0.0, value) if not math.isnan(value) else 0.0 if upper else -math.inf

    return crossing(Curve(log_delta, rough, pure, cap), target, upper=upper)


def last_positive(log_delta: Callable[[float], float], pure: float, cap: float = 1e6) -> float:
    """Return the largest eps found, at most `pure`, with a positive delta; inf if every eps searched has one.

    `log_delta` returns a lower bound. If no pure budget is known, the search ends at `cap`.
    """
    def positive(eps: float) -> bool:
        return log_delta(eps) > -math.inf

    if math.isfinite(pure):
        return expand_bracket(pure, positive, -pure * ULP, 0.0)
    if positive(cap):
        return pure
    # No finite pure budget is known, but there may be one, so the search goes up to `cap`.
    return bracket(lambda eps: not positive(eps), 0.0, cap, rtol=1e-12)[0] if positive(0.0) else 0.0


def crossing(curve: Curve, target: float, *, upper: bool) -> float:
    """Return an eps close to the one at which the curve meets the target, a log delta <= 0; an upper or a lower bound of that eps.

    If `upper` is true, the curve was evaluated at the returned eps and is at most the target there, or the returned eps is `pure`.
    If `upper` is false, the curve was evaluated at the returned eps and is at least the target there, or the returned eps is 0 or
    `pure`. If `pure` is inf and the curve is above the target up to `cap`, the answer is inf.
    """
    if curve.pure < TINY:
        # Both ends are within the absolute tolerance; differences of smaller numbers may be 0.
        return curve.pure if upper else 0.0
    goal, rough = math.sqrt(-target), curve.rough
    if rough is not None:
        rough = replace(rough, log_delta=cache(rough.log_delta), pure=curve.pure, cap=curve.cap)
    rtol = curve.rtol if rough is None else max(curve.rtol, rough.settles)

    def excess(eps: float) -> float:
        """Return sqrt(-log delta) - sqrt(-target), nearly linear in eps, as a quotient whose sign is exact."""
        value = curve.log_delta(eps)
        if value == target:
            return 0.0
        # log delta = -inf from the pure budget on. The search needs only the sign of the excess there, so any large number serves.
        return (target - value) / (goal + math.sqrt(-value)) if value > -math.inf else goal + 1e3

    at, slope = (0.0, 0.0) if rough is None else _rough_crossing(rough, target, upper)
    value = excess(at)
    valid = value >= 0 if upper else value <= 0
    if slope > 0 and valid and abs(value) <= slope * rtol * at:
        return at
    right = value < 0
    # With a guess, the first step is 1.02 times the estimated distance of the crossing. A longer one would widen the bracket, and a
    # shorter one would end before the crossing more often. Without a guess the first step is 0.05, a typical eps.
    step = max(1.02 * abs(value) / slope, 0.5 * rtol * at) if slope > 0 else min(0.05, 0.5 * curve.pure)
    # If the guess itself is a valid answer, the first step ends half of the tolerance before the crossing: most often it reaches an
    # answer that is close enough, which saves the evaluations of a bracket.
    close = slope * rtol * at if slope > 0 and valid and rtol > curve.rtol else 0.0
    if close > 0:
        step = (abs(value) - 0.5 * close) / slope
    while True:
        if at >= curve.pure if right else at == 0:
            return at
        there = min(at + step, curve.pure) if right else max(at - step, 0.0)
        if there > curve.cap:
            # The crossing lies above `cap`: the upper bound is `pure`, and the lower bound the last eps that was evaluated, or both
            # are inf.
            return curve.pure if upper or curve.pure == math.inf else at
        last, at, value = (at, value), there, excess(there)
        if (value < 0) != right:
            break
        rise = (value - last[1]) / (at - last[0])
        # The slope is that of the curve itself: near a pure budget, that of the rough curve may be far larger.
        if close > 0 and abs(value) <= rise * rtol * at:
            return at
        # The next step ends 10 % beyond the point where the line through both points reaches the target.
        step = min(max(1.1 * abs(value) / rise, step), 3 * at) if rise > 0 else 3 * at
    (low, at_low), (high, at_high) = sorted([last, (at, value)])
    # The search aims half of the tolerance beyond the crossing (above it for an upper bound, below it for a lower bound). An
    # evaluated eps that close to its aim is a valid answer and ends the search, even if the bracket is still wide.
    margin = 0.5 * rtol * min((at_high - at_low) / (high - low) * high, goal)
    aim = margin if upper else -margin

    def enough(low: float, high: float, at_low: float, at_high: float) -> bool:
        if min(abs(at_low), abs(at_high)) <= margin:
            return True
        fall = (at_high - at_low) / JUMP
        if rough is None or not (rough.settles and rough.jumps) or not slope * (high - low) < fall < goal / JUMP:
            return False
        # The rough curve may be steeper in this bracket than at the guess, so its fall is evaluated here.
        return _fall(rough, low, high) < fall

    if high == curve.pure and high - low > 4 * ULP * high:
        (low, at_low), (high, at_high) = _below_pure(excess, (low, at_low), (high, at_high))
    # If the curve exceeds the target at eps = 0 only, the crossing is 0, where only the absolute tolerance TINY ends the search.
    low, high, at_low, at_high = narrowed(
        lambda eps: excess(eps) - aim, low, high, at_low - aim, at_high - aim, rtol=rtol, xtol=TINY, enough=enough
    )
    if upper:
        return low if abs(at_low) <= margin else high
    return high if abs(at_high) <= margin else low


def _below_pure(excess: Callable[[float], float], below: Point, pure: Point) -> tuple[Point, Point]:
    """Return a bracket of the crossing inside one that ends at the pure budget. A point is an eps and its excess.

    As eps approaches the pure budget, delta often falls like a power of the distance d = pure - eps, so that it may cross the
    target where d is many orders of magnitude smaller than eps. Therefore the variable of this search is -log d. The search ends
    when d is known to about 20 %; in that bracket the curve is smooth in eps.
    """
    first, last = -math.log(pure[0] - below[0]), -math.log(ULP * pure[0])
    points = {first: below, last: pure}

    def of_log(distance: float) -> float:
        eps = pure[0] - math.exp(-distance)
        points[distance] = eps, excess(eps)
        return points[distance][1]

    # The excess at the pure budget is arbitrary. Here it is as large as that of the other end, so that the first step bisects.
    first, last, *_ = narrowed(of_log, first, last, below[1], -below[1], rtol=0.0, xtol=0.1)
    return points[first], points[last]


def _rough_crossing(rough: Curve, target: float, upper: bool) -> tuple[float, float]:
    """Return the eps at which the rough curve meets the target, and the slope of its sqrt(-log delta) there.

    Both are 0 if the rough curve does not meet the target below its pure budget and its cap.
    """
    eps = crossing(rough, target, upper=upper)
    reach = 1e-4 * min(eps, rough.pure - eps)
    if not (reach > 0 and eps < rough.cap):
        return 0.0, 0.0
    slope = _fall(rough, eps, eps + reach) / reach
    return (eps, slope) if 0 < slope < math.inf else (0.0, 0.0)


def _fall(rough: Curve, low: float, high: float) -> float:
    """Return the increase of sqrt(-log delta) of the curve from `low` to `high`."""
    return math.sqrt(-rough.log_delta(high)) - math.sqrt(-rough.log_delta(low))
