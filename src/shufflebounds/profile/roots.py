"""The smallest eps with a given delta, by a bracketed root search in sqrt(-log delta)."""

import math
from collections.abc import Callable

from shufflebounds._search import expand_bracket, root

_ROOT_RTOL = 1e-13
"""Relative width at which a search for eps ends. Raised: a looser eps; lowered: rounding of log delta decides the last steps."""

FURTHER, INWARD = 1e-3, 0.95
"""If log delta at the result is below the target by more than the relative amount FURTHER, one step back towards the target is
tried.

INWARD is the length of this step, relative to linear interpolation.
"""

NEAR_RTOL = 2e-3
"""Relative width of the first bracket around a guess of eps."""


def solve(log_delta: Callable[[float], float], target: float, pure: float, *, upper: bool, cap: float = 1e6,
          near: float | None = None, rtol: float = _ROOT_RTOL) -> float:
    """Return an eps with log_delta(eps) <= target (upper) or >= target (lower), close to the crossing.

    The search starts at the guess `near`, if given, and ends at `cap`.
    """
    goal = math.sqrt(-target)

    def excess(eps: float) -> float:
        value = log_delta(eps)
        # log delta is -inf only beyond the pure budget; any large positive number serves there.
        return (math.sqrt(-value) if value > -math.inf else 2 * goal + 1e3) - goal

    low, high, at_low, at_high = _about(excess, near, pure) if near is not None and 0 < near < 0.9 * pure else (0.0,) * 4
    if not low < high:
        low, at_low = 0.0, excess(0.0)
        if at_low >= 0:
            return 0.0
        high = min(0.05, pure / 2)
        at_high = excess(high)
    while at_high < 0:
        if high >= pure:
            return pure
        slope = (at_high - at_low) / (high - low)
        step = -1.1 * at_high / slope if slope > 0 else math.inf
        low, at_low = high, at_high
        high = min(pure, high + min(max(step, 0.01 * high), 3 * high))
        if high > cap:
            # Lower bound: the last eps tried. Upper bound: the pure budget, which may be inf.
            return pure if upper or pure == math.inf else low
        at_high = excess(high)
    eps = root(excess, low, high, at_low, at_high, rtol=rtol) if at_high > 0 else high
    if upper:
        return expand_bracket(eps, lambda eps: log_delta(eps) <= target, rtol * eps, pure)
    return expand_bracket(eps, lambda eps: log_delta(eps) >= target, -rtol * eps, 0.0)


def _about(excess: Callable[[float], float], near: float, pure: float) -> tuple[float, float, float, float]:
    """Return a bracket around the guess and the values of `excess` there, of opposite sign; all 0 if the guess is poor."""
    at, at_near, width = near, excess(near), NEAR_RTOL
    if at_near == 0:
        return math.nextafter(near, 0.0), near, -1e-300, 0.0
    away = -1 if at_near > 0 else 1
    while width < 0.5:
        beyond = min(near * (1 + away * width), pure)
        at_beyond = excess(beyond)
        if (at_beyond > 0) != (at_near > 0):
            return (beyond, at, at_beyond, at_near) if away < 0 else (at, beyond, at_near, at_beyond)
        # Go a little beyond the point where the line through both points reaches the target.
        rise = at_beyond - at_near
        crossing = abs((beyond - at_beyond * (beyond - at) / rise) / near - 1) if rise else math.inf
        at, at_near, width = beyond, at_beyond, max(1.5 * width, min(8 * width, 1.2 * crossing))
    return (0.0,) * 4


def bracket_near(one: Callable[[float], float], every: Callable[[float], float], target: float, pure: float, *, upper: bool,
           cap: float = 1e6, near: float | None = None) -> float:
    """Return the result of `solve` for the expensive function `every`, with few evaluations of it.

    `one` is a lower bound of `every` that is close to it and faster. The root of `one` is moved in the conservative direction, by
    steps from the slope of `one`, until `every` satisfies the inequality; then a single step back is tried.
    """
    eps = solve(one, target, pure, upper=upper, cap=cap, near=near)
    if eps >= min(pure, cap):
        return eps
    if eps == 0:
        return solve(every, target, pure, upper=upper, cap=cap)
    reach = 1e-4 * min(eps, pure - eps)
    slope = (one(eps) - one(eps + reach)) / reach
    value, growth = every(eps), 1.02 if upper else 0.98
    if not 0 < slope < math.inf or not math.isfinite(value) or value < target * (1 + 1e-2) - 0.1:
        return solve(every, target, pure, upper=upper, cap=cap)
    if not upper:
        further = eps + growth * max(value - target, 0.0) / slope
        return further if eps < further < pure and every(further) >= target else eps
    before, at_before = eps, value
    while value > target:
        before, at_before = eps, value
        eps += max(growth * (value - target) / slope, _ROOT_RTOL * eps)
        growth *= 1.5
        if eps >= pure:
            return pure
        value = every(eps)
    if before < eps and target - value > FURTHER * abs(target) and math.isfinite(value):
        # The last step was too long: go back by linear interpolation, but not all the way, because log delta is curved.
        inward = eps - INWARD * (target - value) * (eps - before) / (at_before - value)
        return inward if before < inward and every(inward) <= target else eps
    return eps
