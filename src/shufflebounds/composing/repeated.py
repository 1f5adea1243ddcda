r"""What one test of a single release proves of many: a lower side of the composition where no pair of laws is named.

delta(E), E = e^eps, is the largest hockey stick over the pairs of neighbours. The pair that attains it at E has a test with
P(S) - E Q(S) = delta(E), and its own hockey stick lies nowhere above delta, so -Q(S) is a slope of delta at E. Secants of a convex
delta enclose that slope, hence P(S) from below and Q(S) from above. Asked of every release, the test makes two binomial laws.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._core._binomial import binom_logsf
from shufflebounds._types import ULP, FloatArray
from shufflebounds.composing.sampled_profile import SampledProfile

__all__ = ["log_repeated"]

ERROR = 1e-12
"""Of the binomial tails, relative, beside 16 units of their logarithms; the kernel's own errors are far smaller."""


def tests(samples: SampledProfile) -> tuple[FloatArray, FloatArray]:
    """Return P(S) from below and Q(S) from above, for one test at every sample but the ends."""
    eps = samples.eps[samples.eps < 300]
    low, high = np.exp(samples.low[: eps.size]), np.exp(samples.high[: eps.size])
    if eps.size < 3:
        return np.empty(0), np.empty(0)
    width = np.exp(eps[:-1]) * np.expm1(np.diff(eps))
    steepest = (high[:-2] - low[1:-1]) / width[:-1] * (1 + 16 * ULP) + 1e-300
    flattest = np.maximum((low[1:-1] - high[2:]) / width[1:] * (1 - 16 * ULP), 0.0)
    first, second = (low[1:-1] + np.exp(eps[1:-1]) * flattest) * (1 - 16 * ULP), np.minimum(steepest, 1.0)
    useful = (first > second) & (first < 1)
    return first[useful], second[useful]


def log_repeated(samples: SampledProfile, times: int, eps: float) -> float:
    """Return a lower bound of the log hockey stick at eps of so many releases, by the best of the tests."""
    first, second = tests(samples)
    if not first.size:
        return -math.inf
    gain, loss = np.log(first / second), np.log1p(-first) - np.log1p(-second)
    # any number of positive answers makes a test of the whole; this one is the best, up to rounding
    count = np.clip(np.ceil((eps - times * loss) / (gain - loss)), 0.0, float(times))
    inside, outside = (binom_logsf(count - 1, float(times), chance) for chance in (first, second))
    slack = ERROR + 16 * ULP * (np.abs(inside) + np.abs(outside) + eps)
    fall = np.minimum(outside + eps - inside + slack, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = inside + np.log(-np.expm1(fall)) - slack
    return float(np.max(np.where(np.isnan(value), -np.inf, value)))
