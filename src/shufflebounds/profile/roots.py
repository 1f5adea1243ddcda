"""The least eps with a given delta: a safeguarded root on the scale of normal quantiles."""

import math
from collections.abc import Callable

from shufflebounds._search import outward, root

_ROOT_RTOL = 1e-13


def solve(log_delta: Callable[[float], float], target: float, pure: float, *, upper: bool, cap: float = 1e6,
          near: float | None = None) -> float:
    """Return eps with log_delta(eps) <= target (upper) or >= target (lower), next to the crossing; no looking further than cap.

    The search begins near the guess, where one is given.
    """
    goal = math.sqrt(-target)

    def excess(eps: float) -> float:
        value = log_delta(eps)
        # -inf only beyond the pure value: any large number on the right side of the root
        return (math.sqrt(-value) if value > -math.inf else 2 * goal + 1e3) - goal

    guessed = near is not None and 0 < near < 0.9 * pure
    low = 0.97 * near if guessed and near is not None else 0.0
    at_low = excess(low)
    if at_low >= 0 and guessed:
        guessed, low, at_low = False, 0.0, excess(0.0)
    if at_low >= 0:
        return 0.0
    high = 1.06 * low if guessed else min(0.05, pure / 2)
    at_high = excess(high)
    while at_high < 0:
        if high >= pure:
            return pure
        slope = (at_high - at_low) / (high - low)
        step = -1.1 * at_high / slope if slope > 0 else math.inf
        low, at_low = high, at_high
        high = min(pure, high + min(max(step, 0.01 * high), 3 * high))
        if high > cap:
            # below, the last eps that was tried; from above the pure budget serves, finite or not
            return pure if upper or pure == math.inf else low
        at_high = excess(high)
    eps = root(excess, low, high, at_low, at_high, rtol=_ROOT_RTOL) if at_high > 0 else high
    if upper:
        return outward(eps, lambda eps: log_delta(eps) <= target, _ROOT_RTOL * eps, pure)
    return outward(eps, lambda eps: log_delta(eps) >= target, -_ROOT_RTOL * eps, 0.0)
