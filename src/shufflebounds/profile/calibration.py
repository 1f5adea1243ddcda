"""The least parameter at which a privacy profile meets its target, where more of it gives no less privacy."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from shufflebounds._search import least_int, least_real
from shufflebounds._types import probability
from shufflebounds._validate import MAX_COUNT, quiet
from shufflebounds.profile.profile import PrivacyProfile

__all__ = ["least_count", "least_parameter", "meets"]

PARTED = 8
"""So many parameters are tried one after the other for both ends to meet the target; beyond, they are searched for."""


ROUNDED = 1e-12
"""No parameter is moved further than that for the rounding of its root."""

SHARE = 2.0
"""Share of the relative distance from eps up to epsilon(delta) by which the parameter grows at first."""


@quiet()
def meets(profile: PrivacyProfile, eps: float, delta: float) -> bool:
    """Return whether the target holds from both ends: delta(eps) is at most delta, and epsilon(delta) at most eps."""
    return profile.delta(eps) <= delta and profile.epsilon(delta) <= eps


@quiet()
def least_parameter(
    build: Callable[[float], PrivacyProfile], low: float, high: float, eps: float, delta: float, rtol: float = 1e-13
) -> float:
    """Return a parameter in (0, high] next to the least at which the target is met, from both ends.

    0 < delta < 1; `low` > 0 is where the search starts, and `high` is known to meet the target.
    """
    goal = math.sqrt(-math.log(delta))

    @lru_cache(maxsize=64)
    def log_delta(value: float) -> float:
        return build(value).log_delta(eps)

    def excess(value: float) -> float:
        return goal - math.sqrt(-log_delta(value)) if log_delta(value) > -math.inf else -1e3

    def enough(value: float) -> bool:
        # delta(eps), as the profile says it
        return bool(probability(log_delta(value), True) <= delta)

    value = least_real(excess, low, high, enough=enough, rtol=rtol)
    # epsilon(delta) costs a search: the parameter is moved so far at once that rounding seldom leaves it above eps
    value, step = value * (1 + min(rtol, ROUNDED)), rtol
    while value < high:
        reached = build(value).epsilon(delta)
        if reached <= eps and enough(value):
            return value
        # where a search forms the sides, eps is missed by its tolerance; it falls about like the root of the parameter
        value *= 1 + max(step, SHARE * (reached / eps - 1) if 0 < eps < reached < math.inf else 0.0)
        step *= 8
    return high


@quiet()
def least_count(
    build: Callable[[int], PrivacyProfile],
    eps: float,
    delta: float,
    *,
    low: int = 0,
    high: int = MAX_COUNT,
    guess: int | None = None,
) -> int | None:
    """Return the least whole parameter in low..high at which the target is met, from both ends; None where there is none."""
    count = least_int(lambda value: build(value).delta(eps) <= delta, low, high, guess)
    if count is None:
        return None

    def serves(value: int) -> bool:
        return meets(build(value), eps, delta)

    # delta(eps) and epsilon(delta) differ by a rounding, or by what their sides are apart: many counts where these are large
    last = min(high, count + PARTED)
    near = next((value for value in range(count, last + 1) if serves(value)), None)
    return near if near is not None or last == high else least_int(serves, last + 1, high)
