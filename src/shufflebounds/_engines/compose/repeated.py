r"""A lower bound of a composition from delta(eps) of one release, if no pair of distributions is known.

Write E = e^eps, and delta(E) for the maximum of the divergence over all pairs of neighbours. The pair (P, Q) that attains the
maximum at E has a test S, a set of outcomes, with P(S) - E Q(S) = delta(E). At other E the divergence of this pair is at most
delta, so -Q(S) is a subgradient of delta at E. Secants of the convex function delta bound this subgradient, which gives a lower
bound of P(S) and an upper bound of Q(S). If the test is repeated in every release, the number of releases in which S occurs is
binomial under P and under Q, and the divergence of these two binomial distributions is the lower bound.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import COMPUTED_ERROR
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core._binomial import binom_logsf
from shufflebounds._losses.sampled_profile import SampledProfile

__all__ = ["log_repeated"]


def tests(samples: SampledProfile) -> tuple[FloatArray, FloatArray]:
    """Return lower bounds of P(S) and upper bounds of Q(S), with one test S for each sampled eps except the first and the last."""
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
    """Return a lower bound of the log divergence of `times` releases at eps, by the best of the tests."""
    first, second = tests(samples)
    if not first.size:
        return -math.inf
    gain, loss = np.log(first / second), np.log1p(-first) - np.log1p(-second)
    # The composed test rejects if the event S occurs in at least `count` releases. Every `count` gives a valid lower bound; this
    # one is the best up to rounding.
    count = np.clip(np.ceil((eps - times * loss) / (gain - loss)), 0.0, float(times))
    inside, outside = (binom_logsf(count - 1, float(times), chance) for chance in (first, second))
    slack = COMPUTED_ERROR + 16 * ULP * (np.abs(inside) + np.abs(outside) + eps)
    fall = np.minimum(outside + eps - inside + slack, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = inside + np.log(-np.expm1(fall)) - slack
    return float(np.max(np.where(np.isnan(value), -np.inf, value)))
