"""The smallest parameter at which a privacy profile meets its target, where more of it is post-processing."""

from __future__ import annotations

import math
from collections.abc import Callable

from shufflebounds.profile import PrivacyProfile


def smallest(
    build: Callable[[float], PrivacyProfile], low: float, high: float, eps: float, delta: float, rtol: float = 1e-13
) -> float:
    """Return a parameter in (0, high] next to the least at which the upper delta at `eps` is at most `delta`, checked there.

    0 < delta < 1; delta is non-increasing in the parameter and meets the target at `high`; `low` starts the search.
    """
    target = math.log(delta)

    def excess(log_value: float) -> float:
        value = build(min(math.exp(log_value), high)).log_delta(eps) if log_value < math.log(high) else -math.inf
        return math.sqrt(-target) - math.sqrt(-value) if value > -math.inf else -1e3

    # scipy.optimize takes half a second to import: only who calibrates pays
    from scipy.optimize import brentq

    while excess(math.log(low)) <= 0:
        if low < 1e-300 and build(low).delta(eps) <= delta:
            # beyond the local budget of every double
            return low
        low /= 16
    value = min(high, math.exp(brentq(excess, math.log(low), math.log(high), rtol=1e-13, xtol=rtol)))
    step = rtol * value
    while value < high and build(value).delta(eps) > delta:
        value = min(high, value + step)
        step *= 2
    return value
