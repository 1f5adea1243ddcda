r"""Chernoff's bound of the expected positive part of a sum of independent privacy-amplification random variables (`ExcessLaw`).

.. math:: \mathbb{E} S_+ \le \frac{\mathbb{E} e^{\theta S}}{e\,\theta}, \qquad \theta > 0

The bound follows from s_+ <= e^(theta s)/(e theta). S is the sum of n users' values.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import LARGEST, NEGLIGIBLE, SAFE_EXPONENT
from shufflebounds._base.types import ULP, FloatArray

__all__ = ["chernoff"]


@np.errstate(over="ignore")
def chernoff(values: FloatArray, log_mass: FloatArray, users: float) -> float:
    """Return an upper bound of log E S_+ for `users` users with the given values and log masses, which sum to 1."""
    top = float(values.max())
    if not top > 0:
        return -math.inf
    # Every theta gives a valid bound. The log of the bound is convex in theta, so its slope is bisected for the best theta up to
    # SAFE_EXPONENT/top. Negative values may be far larger than `top` in absolute value; their terms then underflow.
    high = math.log(SAFE_EXPONENT / top)
    low = high - 80
    # A value of -inf, where e^eps times a likelihood ratio overflows, has the weight 0.
    finite = np.maximum(values, -LARGEST)
    for _ in range(30):
        theta = math.exp(0.5 * (low + high))
        terms = log_mass + theta * values
        weight = np.exp(terms - terms.max())
        if users * float(weight @ finite) * theta > float(weight.sum()):
            high = math.log(theta)
        else:
            low = math.log(theta)
    # Each term has an error of a few ulp of its two parts, and each addition adds an error of one ulp. Terms that are negligible in
    # the sum contribute nothing to `error`.
    seen = terms > terms.max() - NEGLIGIBLE
    error = ULP * users * (64 + 2 * values.size + 4 * float((np.abs(theta * values[seen]) - log_mass[seen]).max()))
    bound = users * float(np.logaddexp.reduce(terms)) - math.log(theta) - 1
    return bound + error + 4 * ULP * abs(bound)
