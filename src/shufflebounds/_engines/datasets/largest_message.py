r"""A lower bound of delta by the largest message: the test whether some message has a likelihood ratio above a threshold.

The other n - 1 users send independent messages with the distribution m, and the target's message has the distribution R_0 or R_1.
Consider a set of outputs with the masses c under m, :math:`\pi_0` under R_0 and :math:`\pi_1` under R_1. If the target's message
has the distribution R_x, some message is in the set with probability :math:`S_x = 1 - (1 - c)^{n-1} (1 - \pi_x)`, so that

.. math:: \delta(\varepsilon) \ge S_0 - e^\varepsilon S_1, \qquad \varepsilon(\delta) \ge \ln \frac{S_0 - \delta}{S_1}

These bounds are valid for every set. The sets used here contain the outputs with the largest R_0/m. The bounds are close to the
exact values if delta is due to one large likelihood ratio, as for Gaussian noise at very small delta.

`mean_renyi` bounds Renyi divergences. If all other users have the target's second value, the likelihood ratio of all messages is
the mean of n independent likelihood ratios of single messages. For an integer k the moment of order k of this mean is known. For
every k, it is at least the moment of order k of one ratio divided by n^(k-1).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

import numpy as np

from shufflebounds._base.limits import COMPUTED_ERROR, LARGEST_EXPONENT
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray
from shufflebounds._engines.allocation.moments import LARGEST_ORDER, allocation_renyi
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds.tradeoff.representation import log1mexp

__all__ = ["LargestMessage", "mean_renyi"]


class LargestMessage:
    """Lower bounds by the test for the largest message; `law` must be a distribution of X for a lower bound."""

    def __init__(self, law: ExcessLaw, users: int) -> None:
        order = np.argsort(-law.log_a, kind="stable")
        log_mass = law.log_mass[order]
        other, *target = (np.minimum(np.logaddexp.accumulate(log_mass + move), 0.0)
                          for move in (0.0, law.log_a[order], law.log_b[order]))
        # Each entry of `other` and `target` is a sum of up to order.size terms, each with an error of a few ulp.
        slack = ULP * (64 + 8 * order.size + 8 * float(np.abs(log_mass).max(initial=0.0)))
        others = math.log(users - 1) + _log_exponent(other) if users > 1 else np.full(order.size, -np.inf)
        first, second = (_some(np.logaddexp(others, _log_exponent(log_prob))) for log_prob in target)
        self._first, self._second = np.minimum(first - slack, 0.0), np.minimum(second + slack, 0.0)

    def log_delta(self, eps: float) -> float:
        """Return the lower bound of log delta at eps."""
        gap = self._first - self._second - eps
        inside = gap > 0
        return float((self._first[inside] + np.log(-np.expm1(-gap[inside]))).max(initial=-np.inf)) * (1 + 8 * ULP)

    def epsilon(self, delta: float) -> float:
        """Return the lower bound of eps at delta > 0."""
        log_delta = math.log(delta)
        inside = self._first > log_delta
        less = log1mexp(np.minimum(log_delta - self._first[inside], 0.0))
        largest = float((self._first[inside] + less - self._second[inside]).max(initial=0.0))
        return max(0.0, largest - 64 * ULP * (1 + abs(log_delta)))


def mean_renyi(local: Callable[..., FloatArray], users: int, orders: FloatArray) -> IntervalArray:
    """Return bounds of the Renyi divergences D_a of all messages, from those of one message; the upper bounds may be inf.

    ``local(orders, upper=...)`` returns bounds for one message.
    """
    lower, upper = local(orders, upper=False) - math.log(users) * (1 + 2 * ULP), np.full(orders.size, np.inf)

    @cache
    def whole(order: int) -> Interval:
        divergences = ((side, local(np.arange(2.0, order + 1), upper=side)) for side in (False, True))
        return Interval(*(allocation_renyi(order, users, one, upper=side) for side, one in divergences))

    def mellin(order: int) -> Interval:
        low, high = (math.log(math.expm1(min((order - 1) * value, LARGEST_EXPONENT)) / (order * (order - 1)))
                     for value in whole(order))
        return Interval(low - COMPUTED_ERROR * (1 + abs(low)), high + COMPUTED_ERROR * (1 + abs(high)))

    for i, order in enumerate(np.minimum(orders, LARGEST_ORDER).tolist()):
        if order < 2:
            continue
        first, share = int(order), order % 1
        lower[i] = max(lower[i], whole(first).lower)
        if share == 0:
            upper[i] = whole(first).upper if orders[i] == first else math.inf
            continue
        # The moments (E L^a - 1)/(a (a - 1)) of a likelihood ratio L are Mellin transforms of hockey-stick divergences (module
        # `renyi`). So their log is convex in a: it is at most its chords between integer orders, and at least the lines through the
        # two integer orders before or after a.
        left, right, lines = mellin(first), mellin(first + 1), []
        if first > 2:
            lines.append(left.lower + share * (left.lower - mellin(first - 1).upper))
        if first + 2 <= LARGEST_ORDER:
            lines.append(right.lower - (1 - share) * (mellin(first + 2).upper - right.lower))
        low, high = (math.log1p(order * (order - 1) * math.exp(value)) / (order - 1)
                     for value in (max(lines), (1 - share) * left.upper + share * right.upper))
        if max(whole(first + 1).upper * first, high * order) < LARGEST_EXPONENT - 50:
            lower[i], upper[i] = max(lower[i], low * (1 - COMPUTED_ERROR)), high * (1 + COMPUTED_ERROR)
    return IntervalArray(lower, upper)


def _log_exponent(log_prob: FloatArray) -> FloatArray:
    """Return log(-log(1 - p)) for p = e^log_prob; if log p < -40, return log p, a lower bound of this number."""
    with np.errstate(divide="ignore"):
        return np.where(log_prob < -40, log_prob, np.log(-log1mexp(np.minimum(log_prob, 0.0))))


def _some(log_exponent: FloatArray) -> FloatArray:
    """Return log(1 - e^-x) for x = e^log_exponent."""
    with np.errstate(over="ignore"):
        return np.where(log_exponent < -40, log_exponent, log1mexp(-np.exp(log_exponent)))
