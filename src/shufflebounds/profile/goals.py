"""The targets of a search for the smallest noise: (eps, delta), an advantage, or both error rates of an attack."""

from __future__ import annotations

import math

from shufflebounds._base import validate as _validate
from shufflebounds._base.scipy_functions import ndtri
from shufflebounds.profile.calibration import OUT, Goal, goal_of
from shufflebounds.profile.profile import PrivacyProfile

__all__ = ["target_goal"]


def target_goal(eps: float | None, delta: float | None, advantage: float | None, fpr: float | None, fnr: float | None) -> Goal:
    """Return the target that the caller has given: (eps, delta), an advantage, or both error rates of an attack."""
    given = tuple(value is not None for value in (eps, delta, advantage, fpr, fnr))
    if given == (True, True, False, False, False):
        eps, delta = _validate.target(_validate.real("eps", eps, 0, 1e4, open_low=True), delta)
        return goal_of(eps, delta)
    if given == (False, False, True, False, False):
        most = _validate.real("advantage", advantage, 0, 1, open_low=True, open_high=True)
        return Goal(f"the advantage {most:g}", lambda profile: _log_of(float(profile.delta(0.0)) / most),
                     lambda profile: bool(profile.delta(0.0) <= most))
    if given == (False, False, False, True, True):
        level = _validate.real("fpr", fpr, 0, 1, open_low=True, open_high=True)
        missed = _validate.real("fnr", fnr, 0, 1, open_low=True, open_high=True)
        if not level + missed < 1:
            raise ValueError(f"fpr={level!r} and fnr={missed!r} have the sum {level + missed:g}, which must be below 1: guessing "
                             "without the results has these rates")
        # ndtri(fnr) replaces -ndtri(1 - fnr), because 1 - fnr rounds to 1 for a small false negative rate fnr. The distance may
        # round to 0 if the sum of both error rates is next to 1.
        distance = max(-float(ndtri(missed) + ndtri(level)), 2.0**-53)

        def of_rates(profile: PrivacyProfile) -> float:
            # For Gaussian noise this distance is the sensitivity over sigma.
            beta = float(profile.tradeoff().beta(level))
            return _log_of(max(0.0, -float(ndtri(beta) + ndtri(level))) / distance) if beta > 0 else OUT

        return Goal(f"the rates fpr={level:g}, fnr={missed:g}", of_rates,
                     lambda profile: bool(profile.tradeoff().beta(level) >= missed))
    raise ValueError("pass one target: eps and delta, or advantage, or fpr and fnr")


def _log_of(ratio: float) -> float:
    return min(max(math.log(ratio), -OUT), OUT) if ratio > 0 else -OUT
