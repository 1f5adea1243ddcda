"""How many users a local budget needs, and how large a budget so many users allow."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

from shufflebounds import _validate
from shufflebounds._search import bracket
from shufflebounds.profile import PrivacyProfile

__all__ = ["fewest_users", "largest_budget"]

_Profile = TypeVar("_Profile", bound=PrivacyProfile)
_BUDGETS = (1e-12, 700.0)


def _target(eps: float, delta: float) -> tuple[float, float]:
    return _validate.real("eps", eps, 0, open_low=True), _validate.real("delta", delta, 0, 1, open_low=True, open_high=True)


def fewest_users(build: Callable[[int], _Profile], eps: float, delta: float) -> _Profile:
    """Return the profile of the fewest users with an upper delta of at most `delta` at `eps`; delta falls with users.

    Bisection on the logarithm, then on the numbers: some 60 values of delta. Where the sides do not tell whether the target is met,
    users count as too few.
    """
    eps, delta = _target(eps, delta)

    def serves(users: int) -> bool:
        return build(users).delta(eps) <= delta

    low, high = 0, 1
    while not serves(high):
        if high == _validate.MAX_COUNT:
            raise _validate.InfeasibleError(f"delta={delta:g} at eps={eps:g} needs more than 2**53 users")
        low, high = high, min(4 * high, _validate.MAX_COUNT)
    while high - low > 1:
        middle = max(low + 1, min(high - 1, math.isqrt(low * high))) if high > 2 * low > 0 else (low + high) // 2
        if serves(middle):
            high = middle
        else:
            low = middle
    return build(high)


def largest_budget(build: Callable[[float], _Profile], eps: float, delta: float) -> _Profile:
    """Return the profile of the largest local budget, to 1e-9, with an upper delta of at most `delta` at `eps`."""
    eps, delta = _target(eps, delta)

    def serves(budget: float) -> bool:
        return build(budget).delta(eps) <= delta

    low = high = eps
    # a local budget of eps serves whatever the users
    while not serves(low):
        low /= 2
        if low < _BUDGETS[0]:
            raise _validate.InfeasibleError(f"no local budget from {_BUDGETS[0]:g} on meets delta={delta:g} at eps={eps:g}")
    if low == eps:
        while serves(high):
            low = high
            if high == _BUDGETS[1]:
                return build(high)
            high = min(2 * high, _BUDGETS[1])
    else:
        high = 2 * low
    return build(bracket(lambda budget: not serves(budget), low, high, rtol=1e-9)[0])
