"""The smallest parameter at which a privacy profile meets a target (eps, delta), if delta decreases in the parameter.

The methods `calibrate` of all protocols use these searches. The returned parameter has been evaluated and meets the target.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from shufflebounds._limits import CACHED_ANSWERS
from shufflebounds._progress import announced
from shufflebounds._search import least_int, least_real
from shufflebounds._types import probability
from shufflebounds._validate import MAX_COUNT, quiet
from shufflebounds.profile.profile import PrivacyProfile

__all__ = ["least_count", "least_parameter", "meets"]


@quiet()
def meets(profile: PrivacyProfile, eps: float, delta: float) -> bool:
    """Return whether both delta(eps) <= delta and epsilon(delta) <= eps hold."""
    return profile.delta(eps) <= delta and profile.epsilon(delta) <= eps


@quiet()
@announced("calibrate")
def least_parameter(
    build: Callable[[float], PrivacyProfile], low: float, high: float, eps: float, delta: float, rtol: float = 1e-13
) -> float:
    """Return a parameter in (0, high] that satisfies `meets` and is close to the smallest one.

    0 < delta < 1. The search starts at `low` > 0, and `high` is known to meet the target.
    """
    goal = math.sqrt(-math.log(delta))

    @lru_cache(CACHED_ANSWERS)
    def log_delta(value: float) -> float:
        return build(value).log_delta(eps)

    def excess(value: float) -> float:
        return goal - math.sqrt(-log_delta(value)) if log_delta(value) > -math.inf else -1e3

    def enough(value: float) -> bool:
        # `probability` gives the value that the method delta(eps) returns.
        return bool(probability(log_delta(value), True) <= delta)

    value = least_real(excess, low, high, enough=enough, rtol=rtol)
    # epsilon(delta) is the result of a search. The parameter is first increased by a relative 1e-12 (or rtol, if smaller), so that
    # rounding rarely makes epsilon(delta) exceed eps.
    value, step = value * (1 + min(rtol, 1e-12)), rtol
    while value < high:
        reached = build(value).epsilon(delta)
        if reached <= eps and enough(value):
            return value
        # epsilon(delta) may exceed eps by the tolerance of a search. It is about proportional to 1/sqrt(parameter), so twice its
        # relative excess is added to the parameter.
        value *= 1 + max(step, 2.0 * (reached / eps - 1) if 0 < eps < reached < math.inf else 0.0)
        step *= 8
    return high


@quiet()
@announced("calibrate")
def least_count(
    build: Callable[[int], PrivacyProfile],
    eps: float,
    delta: float,
    *,
    low: int = 0,
    high: int = MAX_COUNT,
    guess: int | None = None,
) -> int | None:
    """Return the smallest integer in low..high that satisfies `meets`, or None."""
    count = least_int(lambda value: build(value).delta(eps) <= delta, low, high, guess)
    if count is None:
        return None

    def serves(value: int) -> bool:
        return meets(build(value), eps, delta)

    # By rounding or by the gap of the bounds, the smallest integers that meet the conditions on delta(eps) and on epsilon(delta)
    # may differ. Eight integers are tried first. For large integers the difference may be larger, and a search follows.
    last = min(high, count + 8)
    near = next((value for value in range(count, last + 1) if serves(value)), None)
    return near if near is not None or last == high else least_int(serves, last + 1, high)
