"""The clone sum over a Poisson-binomial number of clones: every personalised clone bound is one or two of these."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from shufflebounds._core import _compound
from shufflebounds._types import ULP, FloatArray, Interval
from shufflebounds.composing.kept import Kept
from shufflebounds.profile._budget import Budget
from shufflebounds.tails._poisson_tables import window_of
from shufflebounds.tails.poisson_binomial import inner_law

__all__ = ["CloneLaw", "log_clone_delta", "log_estimates"]

LEAST_V = 1e-290        # a smaller v = 1 - u has lost its digits
NEGLIGIBLE = -30.0      # log of the part of the sum that may stay outside the window
LOG_TAIL = -50.0
STRETCH = 3.0           # a window serves tilts so many standard deviations apart
KEPT = 3


@dataclass
class _Window:
    """log Pr[C = first + i], relatively accurate about the peak of the law tilted by e^(-decay c)."""

    decay: float
    first: int
    log_weights: FloatArray
    error: float
    complete_below: bool
    complete_above: bool


@dataclass
class CloneLaw:
    r"""The number of clones :math:`C = \sum_j \mathrm{Bin}(g_j, 2 r_j)` among the other users.

    The terms of the clone sum decay like e^(-decay c), so they peak where the law tilted by that factor does. A window of the
    tilted law is kept and serves every eps whose terms it holds: what lies outside is bounded by a geometric series, since the
    tilted probabilities are log-concave, and is added to the upper bound only.
    """

    rates: FloatArray
    counts: FloatArray
    windows: Kept[tuple[float, float], _Window] = field(default_factory=lambda: Kept(KEPT))

    def __post_init__(self) -> None:
        seen = (self.rates > 0) & (self.counts > 0)
        if not seen.all():
            self.rates, self.counts = self.rates[seen], self.counts[seen]
        self.chances = np.minimum(2 * self.rates, 1.0)
        self.counted = self.counts if (self.counts != 1).any() else None
        self.trials = float(self.counts.sum())
        self.mean = float(self.chances @ self.counts)
        self.sure = int(self.counts[self.chances == 1].sum())
        spread = math.sqrt(float((self.chances * (1 - self.chances)) @ self.counts))
        self.stretch = STRETCH / (1 + spread)

    @property
    def log_alone(self) -> float:
        """Log of the chance of no clone."""
        return float(np.log1p(-self.chances) @ self.counts) if not self.sure else -math.inf

    def _window(self, decay: float, log_tail: float) -> _Window:
        if self.rates.size == 0:
            return _Window(decay, 0, np.zeros(1), 0.0, True, True)
        shrink = math.exp(-decay)
        scale = self.chances * math.expm1(-decay)
        tilted = np.minimum(self.chances * shrink / (1 + scale), 1.0)
        first, log_weights, error = window_of(inner_law(tilted, self.counted), log_tail)
        level = np.log1p(scale)
        total = float(level @ self.counts)
        spread = float(np.abs(level) @ self.counts) if decay < 0 else -total
        last = first + log_weights.size - 1
        log_weights = log_weights + decay * np.arange(first, last + 1, dtype=np.float64) + total
        error += 4 * ULP * (spread + abs(decay) * last + 4)
        return _Window(decay, first, log_weights, error, first <= self.sure, last >= self.trials)

    def log_sum(self, u: float, v: float) -> Interval:
        """Return bounds of log sum_c Pr[C = c] G_(c+1)/(c+1) for the threshold D > u m, v = 1 - u (see _core/_compound)."""
        if v <= 0:
            return Interval(-math.inf, -math.inf)
        decay, beyond = self._decay(u, v)
        # the tilt is rounded to a grid, so that an answer does not depend on what was asked before
        middle, log_tail = self.stretch * round(decay / self.stretch), LOG_TAIL
        while True:
            window = self.windows.of((middle, log_tail), partial(self._window, middle, log_tail))
            inside, error, outside = self._sum(window, u, v, decay, beyond)
            if outside <= inside + NEGLIGIBLE or log_tail < -1e4:
                break
            log_tail *= 1.6
        upper = np.logaddexp(inside, outside) if outside > -math.inf else inside
        return Interval(inside - error, float(upper) + error)

    def _decay(self, u: float, v: float) -> tuple[float, float]:
        """Return k and b with G_(c+1) <= e^(b - k c)."""
        tilt = math.atanh(u) if u <= 0.5 else 0.5 * math.log((1 + u) / v)
        # any tilt gives a bound of the terms; the second stands in where u vanishes
        tilt = max(tilt, 1 / math.sqrt(self.mean + 1))
        decay = tilt * u - _log_cosh(tilt) if u <= 0.5 else math.log(2) - tilt * v - math.log1p(math.exp(-2 * tilt))
        return decay, -decay - 1 - math.log(tilt) + 1e-9

    def _sum(self, window: _Window, u: float, v: float, decay: float, beyond: float) -> tuple[float, float, float]:
        """Return log of the sum over the window, its error, and a bound of the log of the rest."""
        weights = window.log_weights
        inside, error = _compound.log_weighted_excess(float(window.first), weights, u, v)
        last = window.first + weights.size - 1
        moved = abs(decay - window.decay) * last
        error += window.error + 4 * ULP * (moved + abs(inside) + 8)
        outside = -math.inf
        for complete, edge, step, c in (
            (window.complete_below, weights[:2], decay, window.first),
            (window.complete_above, weights[:-3:-1], -decay, last),
        ):
            if complete:
                continue
            if edge.size < 2:
                return inside, error, math.inf
            # tilted, the weights fall by at least this ratio at every step outward
            ratio = float(edge[0] - edge[1] + step) + 2 * window.error
            if ratio >= 0:
                return inside, error, math.inf
            rest = float(edge[0]) - decay * c + ratio - math.log(-math.expm1(ratio)) + beyond + window.error + 1e-9
            outside = float(np.logaddexp(outside, rest))
        return inside, error, outside


def _log_cosh(x: float) -> float:
    return math.log1p(2 * math.sinh(x / 2) ** 2)


def _threshold(budget: Budget, eps: float) -> tuple[float, float, float]:
    """Return u, v = 1 - u and the log of the factor before the sum."""
    local_eps = budget.head
    u = min(1.0, math.tanh(eps / 2) / math.tanh(local_eps / 2))
    # 1 - u in a form that does not cancel as eps -> local_eps
    v = min(1.0, 2 * math.exp(-eps) * -math.expm1(-budget.less(eps)) / ((1 + math.exp(-eps)) * -math.expm1(-local_eps)))
    return u, v, math.log(math.tanh(local_eps / 2)) + float(np.logaddexp(0, eps))


def log_clone_delta(law: CloneLaw, budget: Budget, eps: float) -> Interval:
    r"""Return bounds of log delta_clone(eps) for the target weight 1/(e^budget + 1).

    .. math:: \delta = \tanh(\varepsilon_1/2)(1 + e^\varepsilon)\sum_c \Pr[C = c]\, G_{c+1}/(c+1)
    """
    if budget.less(eps) <= 0:
        return Interval(-math.inf, -math.inf)
    u, v, factor = _threshold(budget, eps)
    # at most what the target loses without clones, which is the term c = 0
    alone = math.log(-math.expm1(-budget.less(eps))) - math.log1p(math.exp(-budget.head))
    loss_error = 4 * ULP * (2 - alone)
    if v < LEAST_V:
        return Interval(alone + law.log_alone - loss_error + 16 * ULP * law.log_alone, alone + loss_error)
    lower, upper = law.log_sum(u, v)
    # the sum is at most as steep in log v as its own logarithm
    slack = 4 * ULP * abs(factor) + (abs(upper) + 4) * 16 * ULP
    return Interval(lower + factor - slack, min(alone + loss_error, upper + factor + slack))


def log_estimates(rates: FloatArray, counts: FloatArray, taken: FloatArray, local_eps: FloatArray, eps: float) -> FloatArray:
    """Return log delta_clone(eps) of several laws, a row of rates each, roughly: to choose among bounds, never as one.

    One user of rate `taken` is left out of each row. In one pass: Gaussian about the tilted mean of the number of clones.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.minimum(math.tanh(eps / 2) / np.tanh(local_eps / 2), 1.0)
        less = np.minimum(eps - local_eps, 0.0)
        v = np.minimum(2 * math.exp(-eps) / (1 + math.exp(-eps)) * np.expm1(less) / np.expm1(-local_eps), 1.0)
        factor = np.log(np.tanh(local_eps / 2)) + np.logaddexp(0, eps)
        decay = 0.5 * ((1 + u) * np.log1p(u) + v * np.log(v))
        shrink = np.expm1(-decay)
        chances, one = np.minimum(2 * rates, 1.0), np.minimum(2 * taken, 1.0)
        scale, alone = np.maximum(1 + chances * shrink[:, None], 1e-300), np.maximum(1 + one * shrink, 1e-300)
        total = np.log(scale) @ counts - np.log(alone)
        mean = 1 + np.exp(-decay) * np.maximum((chances / scale) @ counts - one / alone, 0.0)
        x = u * np.sqrt(mean)
        value = total - decay - 0.5 * np.log(mean) - 0.92 - np.log1p(1.25 * x + x * x) + factor
    return np.where((local_eps > eps) & (v > 0), value, -math.inf)
