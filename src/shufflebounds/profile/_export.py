"""Profiles for other libraries: a privacy loss distribution of dp-accounting, a privacy profile of OpenDP."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from shufflebounds import _validate
from shufflebounds._types import FloatArray

if TYPE_CHECKING:
    from shufflebounds.profile._outputs import Outputs

__all__ = ["opendp_profile", "privacy_loss_distribution"]


MAX_POINTS = 2**20
"""Grid points a direction: dp-accounting keeps them in a dictionary, about 100 bytes each, before it makes an array."""
LARGEST_EPS = 700.0
"""Beyond it e^eps leaves the doubles; delta is not increasing, so its value here serves."""
_OUTWARD = 1e-13
"""Covers the rounding of the masses (a few ulp) and that of the sums that dp-accounting forms of them."""


def _top(profile: Outputs, interval: float, log_tail: float) -> int:
    """Return the grid point from which on delta is not resolved: 0, below the tail, or as good as constant."""
    cap = MAX_POINTS * interval
    tail = max(math.exp(log_tail), 5e-324)
    eps = profile.epsilon(tail)
    if eps == math.inf:
        # a part of the law has infinite loss: resolve what lies above it
        eps = profile.epsilon(min(1.0, profile.delta(min(cap, LARGEST_EPS)) * (1 + 1e-9) + tail))
    if eps > min(cap, LARGEST_EPS):
        if cap < LARGEST_EPS:
            raise ValueError(
                f"interval={interval:g} must be >= {min(eps, LARGEST_EPS) / MAX_POINTS:.2g}: the losses reach {eps:.6g}, "
                f"and the grid may have {MAX_POINTS} points on a side"
            )
        eps = LARGEST_EPS
    return max(1, math.ceil(float(eps) / interval))


def _slopes(eps: FloatArray, delta: FloatArray) -> FloatArray:
    """Return the slopes of the convex hull of delta as a function of e^eps, positive and decreasing."""
    # scipy.optimize takes half a second to import: only who exports pays
    from scipy.optimize import isotonic_regression

    width = np.exp(eps[:-1]) * np.expm1(np.diff(eps))
    raw = np.maximum(0, -np.diff(delta) / width)
    # the exact delta is convex, so the hull of upper bounds still lies above it; without it, their rounding makes negative mass
    return np.asarray(isotonic_regression(raw, weights=width, increasing=False).x)


def privacy_loss_distribution(profile: Outputs, opposite: Outputs, interval: float, log_tail: float) -> Any:
    """Return the pessimistic distribution whose delta meets the profile's upper bound at the multiples of interval."""
    interval = _validate.real("interval", interval, 0, 10, open_low=True)
    log_tail = _validate.real("log_tail", log_tail, -700, -1)
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError as problem:
        raise ImportError("to_dp_accounting needs dp-accounting: pip install 'shufflebounds[interop]'") from problem
    sides = [profile] if opposite is profile else [profile, opposite]
    # Connect the Dots (Doroshenko et al. 2022, Algorithm 1) in a form that does not cancel: the slope of delta between two
    # grid points is minus the mass of Q above them, so differences of slopes are masses of Q, and e^loss times these of P.
    # Below 0, P and Q change places, so that no mass is the difference of numbers near 1.
    above, beyond, total = [], [], []
    start = min(float(side.delta(0.0)) for side in sides)
    for side in sides:
        eps = interval * np.arange(_top(side, interval, log_tail) + 1, dtype=np.float64)
        delta = np.asarray(side.delta(eps), dtype=np.float64) * (1 + _OUTWARD)
        # the total variation distance is the same in both directions
        delta[0] = start * (1 + _OUTWARD)
        delta = np.minimum(1, np.minimum.accumulate(delta))
        slopes = _slopes(eps, delta)
        above.append((np.exp(eps[1:]), np.append(slopes[:-1] - slopes[1:], slopes[-1])))
        beyond.append(float(delta[-1]))
        total.append(float(slopes[0]))
    forward = [(above[i], above[-1 - i]) for i in range(len(sides))]
    at_zero = max(0.0, 1 - start - total[0] - total[-1])
    laws = []
    for (ratio, mass), (_, mass_below) in forward:
        law = {-i: float(m) for i, m in zip(range(mass_below.size, 0, -1), mass_below[::-1])}
        law[0] = at_zero
        law.update((i, float(m)) for i, m in enumerate(ratio * mass, 1))
        laws.append(law)
    if len(sides) == 1:
        return pld.PrivacyLossDistribution.create_from_rounded_probability(laws[0], beyond[0], interval)
    return pld.PrivacyLossDistribution.create_from_rounded_probability(
        laws[0], beyond[0], interval, True, laws[1], beyond[1], symmetric=False
    )


def opendp_profile(profile: Outputs) -> Any:
    """Return the upper bound of delta as a privacy profile of OpenDP."""
    try:
        from opendp.measures import new_privacy_profile
    except ImportError as problem:
        raise ImportError("to_opendp needs opendp: pip install 'shufflebounds[interop]'") from problem
    pure = profile.epsilon(0.0)

    def delta(eps: float) -> float:
        return 0.0 if eps >= pure else profile.delta(min(eps, LARGEST_EPS))

    return new_privacy_profile(delta)
