"""Profiles for other libraries: a privacy loss distribution of dp-accounting, a privacy profile of OpenDP."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from shufflebounds import _validate
from shufflebounds.composing.chords import connect

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


def privacy_loss_distribution(profile: Outputs, opposite: Outputs, interval: float, log_tail: float) -> Any:
    """Return the pessimistic distribution whose delta meets the profile's upper bound at the multiples of interval."""
    interval = _validate.real("interval", interval, 0, 10, open_low=True)
    log_tail = _validate.real("log_tail", log_tail, -700, -1)
    try:
        from dp_accounting.pld import privacy_loss_distribution as pld
    except ImportError as problem:
        raise ImportError("to_dp_accounting needs dp-accounting: pip install 'shufflebounds[interop]'") from problem
    sides = [profile] if opposite is profile else [profile, opposite]
    tops = [_top(side, interval, log_tail) for side in sides]
    laws, rests = [], []
    for i, side in enumerate(sides):
        index = np.arange(-tops[-1 - i], tops[i] + 1, dtype=np.float64)
        atoms = connect(interval * index, side._log_delta, sides[-1 - i]._log_delta)
        masses = np.minimum(np.exp(atoms.log_p + atoms.slack) * (1 + _OUTWARD), 1.0)
        laws.append(dict(zip(np.rint(atoms.loss / interval).astype(int).tolist(), masses.tolist())))
        rests.append(min(1.0, math.exp(atoms.log_rest + atoms.slack) * (1 + _OUTWARD)))
    if len(sides) == 1:
        return pld.PrivacyLossDistribution.create_from_rounded_probability(laws[0], rests[0], interval)
    return pld.PrivacyLossDistribution.create_from_rounded_probability(
        laws[0], rests[0], interval, True, laws[1], rests[1], symmetric=False
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
