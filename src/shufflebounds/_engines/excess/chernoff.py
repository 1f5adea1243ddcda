r"""Chernoff's bound of the expected positive part of a sum of independent privacy-amplification random variables (`ExcessLaw`).

.. math:: \mathbb{E} S_+ \le \frac{\mathbb{E} e^{\theta S}}{e\,\theta}, \qquad \theta > 0

since s_+ <= e^(theta s)/(e theta). S is the sum of n users' values.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import NEGLIGIBLE, SAFE_EXPONENT
from shufflebounds._base.types import ULP, FloatArray

__all__ = ["chernoff", "log_moment", "saddle"]


def chernoff(values: FloatArray, log_mass: FloatArray, users: float) -> float:
    """Return an upper bound of log E S_+ for `users` users with the given values and log masses, which sum to 1."""
    top = float(values.max())
    if not top > 0:
        return -math.inf
    # Every theta gives a valid bound. The log of the bound is convex in theta, so its slope is bisected for the best theta up to
    # SAFE_EXPONENT/top. Negative values may be far larger than `top` in absolute value; their terms then underflow.
    high = math.log(SAFE_EXPONENT / top)
    low = high - 80
    for _ in range(30):
        theta = math.exp(0.5 * (low + high))
        terms = log_mass + theta * values
        weight = np.exp(terms - terms.max())
        if users * float(weight @ values) * theta > float(weight.sum()):
            high = math.log(theta)
        else:
            low = math.log(theta)
    # Each term has an error of a few ulp of its two parts, and the sum one ulp for each term. Terms that are negligible in the sum
    # are not counted.
    seen = terms > terms.max() - NEGLIGIBLE
    error = ULP * users * (64 + 2 * values.size + 4 * float((np.abs(theta * values[seen]) - log_mass[seen]).max()))
    bound = users * float(np.logaddexp.reduce(terms)) - math.log(theta) - 1
    return bound + error + 4 * ULP * abs(bound)


def log_moment(values: FloatArray, mass: FloatArray, theta: float) -> float:
    """Return log E e^(theta X)."""
    with np.errstate(over="ignore"):
        return math.log1p(float(mass @ np.expm1(theta * values)))


def saddle(values: FloatArray, mass: FloatArray, users: float) -> float:
    """Return theta close to the solution of n K'(theta) = 2/theta, with K the cumulant generating function and n = `users`.

    Chernoff's bound is valid at any theta > 0.
    """
    low, high = 0.0, SAFE_EXPONENT / float(np.abs(values).max())
    theta = min(4 / math.sqrt(8 * users * float(mass @ values**2) + 1e-300), 0.5 * high)
    for _ in range(30):
        weight = mass * np.exp(theta * values)
        slope = float(weight @ values) / float(weight.sum()) - 2 / (users * theta)
        if slope > 0:
            high = theta
        else:
            low = theta
        theta = min(2 * theta, 0.5 * (low + high)) if high > 2 * theta else 0.5 * (low + high)
    return theta
