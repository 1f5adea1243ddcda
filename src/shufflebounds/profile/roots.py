"""The least eps with a given delta: a safeguarded root on the scale of normal quantiles."""

import math
from collections.abc import Callable

_ROOT_RTOL = 1e-13


def solve(log_delta: Callable[[float], float], target: float, pure: float, *, upper: bool, cap: float = 1e6,
          near: float | None = None) -> float:
    """Return eps with log_delta(eps) <= target (upper) or >= target (lower), next to the crossing, inf where that is above cap.

    The search begins near the guess, where one is given.
    """
    # scipy.optimize takes half a second to import: only who asks for eps pays
    from scipy.optimize import brentq

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
            return math.inf
        at_high = excess(high)
    eps = float(brentq(excess, low, high, xtol=1e-300, rtol=_ROOT_RTOL)) if at_high > 0 else high
    step = _ROOT_RTOL * eps
    while (log_delta(eps) > target) if upper else (log_delta(eps) < target):
        eps = eps + step if upper else max(0.0, eps - step)
        step *= 2
        if upper and eps >= pure:
            return pure
        if not upper and eps == 0:
            break
    return eps
