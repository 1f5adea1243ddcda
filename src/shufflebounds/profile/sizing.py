"""Calibration of shuffled randomizers to a target (eps, delta).

The result is the smallest number of users for a local budget, or the largest local budget for a number of users.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shufflebounds._base import validate as _validate
from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.search import bracket, expand_bracket
from shufflebounds.profile.calibration import least_count, meets
from shufflebounds.profile.profile import PrivacyProfile

__all__ = ["fewest_users", "largest_budget"]

_Profile = TypeVar("_Profile", bound=PrivacyProfile)
_BUDGETS = (1e-12, LARGEST_EXPONENT)
"""Smallest and largest local budget of the search; shuffled randomizers refuse budgets above 700."""


def fewest_users(build: Callable[[int], _Profile], eps: float, delta: float, least: int = 1) -> _Profile:
    """Return the profile with the smallest number of users whose upper bounds of delta(eps) and of epsilon(delta) meet the target.

    The number of users is at least `least`, the number of messages that one person may send.

    The exact delta must not increase with the number of users. If the bounds do not decide whether a number of users meets the
    target, it counts as too small.
    """
    eps, delta = _validate.target(eps, delta, open_eps=True)
    with _validate.quiet():
        users = least_count(build, eps, delta, low=least)
        if users is None:
            raise _validate.InfeasibleError(f"delta={delta:g} at eps={eps:g} needs more than 2**53 users")
        return build(users)


def largest_budget(build: Callable[[float], _Profile], eps: float, delta: float) -> _Profile:
    """Return the profile with the largest local budget, to a relative 1e-9, whose upper bounds meet the target.

    These are the upper bounds of delta(eps) and of epsilon(delta).
    """
    eps, delta = _validate.target(eps, delta, open_eps=True)

    def is_met(budget: float) -> bool:
        return build(budget).delta(eps) <= delta

    with _validate.quiet():
        low = high = eps
        # At the local budget eps, the local guarantee alone meets the target for every number of users. The computed bound may
        # nevertheless exceed the target; smaller budgets are then tried.
        while not is_met(low):
            low /= 2
            if low < _BUDGETS[0]:
                raise _validate.InfeasibleError(f"no local budget from {_BUDGETS[0]:g} on meets delta={delta:g} at eps={eps:g}")
        if low == eps:
            while is_met(high):
                low = high
                if high == _BUDGETS[1]:
                    break
                high = min(2 * high, _BUDGETS[1])
        else:
            high = 2 * low
        if low < high:
            low = bracket(lambda budget: not is_met(budget), low, high, rtol=1e-9)[0]
        return build(expand_bracket(low, lambda budget: meets(build(budget), eps, delta), -1e-12 * low, _BUDGETS[0]))
