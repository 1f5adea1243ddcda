"""How many users a local budget needs, and how large a budget so many users allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from shufflebounds import _validate
from shufflebounds._search import bracket, expand_bracket
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.calibration import least_count, meets

__all__ = ["fewest_users", "largest_budget"]

_Profile = TypeVar("_Profile", bound=PrivacyProfile)
_BUDGETS = (1e-12, 700.0)


def fewest_users(build: Callable[[int], _Profile], eps: float, delta: float) -> _Profile:
    """Return the profile of the fewest users that meets the target from both ends; delta falls with users.

    Where the sides do not tell whether the target is met, users count as too few.
    """
    eps, delta = _validate.target(eps, delta, open_eps=True)
    with _validate.quiet():
        users = least_count(build, eps, delta, low=1)
        if users is None:
            raise _validate.InfeasibleError(f"delta={delta:g} at eps={eps:g} needs more than 2**53 users")
        return build(users)


def largest_budget(build: Callable[[float], _Profile], eps: float, delta: float) -> _Profile:
    """Return the profile of the largest local budget, to 1e-9, that meets the target from both ends."""
    eps, delta = _validate.target(eps, delta, open_eps=True)
    with _validate.quiet():
        return _largest(build, eps, delta)


def _largest(build: Callable[[float], _Profile], eps: float, delta: float) -> _Profile:
    def serves(budget: float) -> bool:
        return build(budget).delta(eps) <= delta

    low = high = eps
    # a local budget of eps suffices at any number of users
    while not serves(low):
        low /= 2
        if low < _BUDGETS[0]:
            raise _validate.InfeasibleError(f"no local budget from {_BUDGETS[0]:g} on meets delta={delta:g} at eps={eps:g}")
    if low == eps:
        while serves(high):
            low = high
            if high == _BUDGETS[1]:
                break
            high = min(2 * high, _BUDGETS[1])
    else:
        high = 2 * low
    if low < high:
        low = bracket(lambda budget: not serves(budget), low, high, rtol=1e-9)[0]
    return build(expand_bracket(low, lambda budget: meets(build(budget), eps, delta), -1e-12 * low, _BUDGETS[0]))
