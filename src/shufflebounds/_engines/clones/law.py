"""The clone sum E[G_(C+1)/(C+1)], from which every clone bound for personalized budgets follows; C is the number of clones.

C has a Poisson-binomial distribution: another user j sends a clone of the target's message with probability 2 r_j, where r_j is the
user's rate (`clone_families`). G_m is defined in `CloneLaw.log_sum`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shufflebounds._base.limits import TINY
from shufflebounds._base.quadrature import total_of
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._core import _clones, _compound
from shufflebounds._losses.budget import Budget

__all__ = ["CloneLaw", "log_clone_delta", "threshold_and_factor"]

SUMMED = 28 * ULP
"""Relative error of a NumPy sum of fewer than 2**31 products of one sign: 1 roundoff of each product, 26 in a block of 128 terms
(8 accumulators), and one for each of the at most 25 halvings; a roundoff is half of an ulp."""


@dataclass
class CloneLaw:
    r"""Distribution of the number of clones :math:`C = \sum_j \mathrm{Bin}(g_j, 2 r_j)` among the other users.

    There are g_j = `counts` users of rate r_j = `rates`. The factor G_(c+1)/(c+1) of the clone sum (see `log_sum`) decreases about
    as e^(-decay c), so the largest terms are at the peak of the distribution of C tilted by e^(-decay c). The kernel
    `_core/_clones.pyx` inverts the characteristic function around this peak. `sure` users send a clone with probability 1.
    """

    rates: FloatArray
    counts: FloatArray

    def __post_init__(self) -> None:
        positive = (self.rates > 0) & (self.counts > 0)
        if not positive.all():
            self.rates, self.counts = self.rates[positive], self.counts[positive]
        self.probs = np.minimum(2 * self.rates, 1.0)
        self.trials = float(self.counts.sum())
        self.mean = total_of(self.probs, self.counts)
        certain = self.probs == 1
        self.sure, self.inner, counts = 0.0, self.probs, self.counts
        if certain.any():
            self.sure, self.inner, counts = float(counts[certain].sum()), self.inner[~certain], counts[~certain]
        self.counted = counts if (counts != 1).any() else None

    @property
    def log_alone(self) -> float:
        """Log of the probability that there is no clone."""
        return total_of(np.log1p(-self.probs), self.counts) if not self.sure else -math.inf

    def log_sum(self, u: float, v: float) -> Interval:
        """Return bounds of log sum_c Pr[C = c] G_(c+1)/(c+1); v = 1 - u.

        G_m is E(D - u m)_+, where D is the sum of m independent signs, +1 or -1 with probability 1/2 each.
        """
        if v <= 0:
            return Interval(-math.inf, -math.inf)
        decay, beyond = self._decay(u, v)
        if not self.inner.size:
            value, error = _compound.log_weighted_excess(self.sure, np.zeros(1), u, v)
            return Interval(value - error, value + error)
        return Interval(*_clones.personal_clone_sum(self.inner, self.counted, self.sure, decay, beyond, u, v))

    def _decay(self, u: float, v: float) -> tuple[float, float]:
        """Return numbers k and b such that G_(c+1) of `log_sum` is at most e^(b - k c) for every c."""
        tilt = math.atanh(u) if u <= 0.5 else 0.5 * math.log((1 + u) / v)
        # Every tilt > 0 gives a valid bound e^(b - k c). The tilt atanh(u) makes k largest. But it is small for small u, and b
        # grows like -log(tilt). So the tilt is raised to at least 1/sqrt(mean + 1), where `mean` is the mean number of clones.
        tilt = max(tilt, 1 / math.sqrt(self.mean + 1))
        decay = tilt * u - _log_cosh(tilt) if u <= 0.5 else math.log(2) - tilt * v - math.log1p(math.exp(-2 * tilt))
        return decay, -decay - 1 - math.log(tilt) + 1e-9


def _log_cosh(x: float) -> float:
    return math.log1p(2 * math.sinh(x / 2) ** 2)


def threshold_and_factor(budget: Budget, eps: float) -> tuple[float, float, float]:
    """Return the threshold u = tanh(eps/2)/tanh(eps1/2), v = 1 - u, and the log of the factor tanh(eps1/2)(1 + e^eps)."""
    local_eps = budget.head
    u = min(1.0, math.tanh(eps / 2) / math.tanh(local_eps / 2))
    # v is 1 - u in a form without cancellation as eps approaches local_eps.
    v = min(1.0, 2 * math.exp(-eps) * -math.expm1(-budget.less(eps)) / ((1 + math.exp(-eps)) * -math.expm1(-local_eps)))
    return u, v, math.log(math.tanh(local_eps / 2)) + float(np.logaddexp(0, eps))


def log_clone_delta(law: CloneLaw, budget: Budget, eps: float) -> Interval:
    r"""Return bounds of the log of the clone bound delta(eps), for a target user of local budget eps1 = `budget`.

    .. math:: \delta = \tanh(\varepsilon_1/2)(1 + e^\varepsilon)\sum_c \Pr[C = c]\, G_{c+1}/(c+1)
    """
    less = budget.less(eps)
    if less <= 0:
        return Interval(-math.inf, -math.inf)
    if law.rates.size == 1 and less > 1e-3 * budget.head:
        # The number of clones is binomial, so the kernel needs no table. The kernel takes the budget as a double, whose rounding
        # changes log delta by at most a relative 1e-12 at this distance of eps from the budget. As delta increases in the budget,
        # the two neighbouring doubles give bounds.
        sides = np.empty(2), np.empty(2)
        columns = np.full(2, law.trials + 1), np.full(2, law.probs[0]), np.array([budget.below, budget.above]), np.full(2, eps)
        _clones.clones_log_delta(*columns, *sides)
        lower, upper = float(sides[0][0]), float(sides[1][1])
        # The slack covers the rounding of the rates and of the log scales that callers add.
        slack = (abs(upper) + 4) * 16 * ULP
        return Interval(lower - slack, upper + slack)
    u, v, factor = threshold_and_factor(budget, eps)
    # `alone` is an upper bound of log delta without clones, the local delta, (1 - e^(eps - eps1))/(1 + e^-eps1).
    alone = math.log(-math.expm1(-less)) - math.log1p(math.exp(-budget.head))
    loss_error = 4 * ULP * (2 - alone)
    if v < TINY:
        return Interval(alone + law.log_alone - loss_error + (16 * ULP + SUMMED) * law.log_alone, alone + loss_error)
    lower, upper = law.log_sum(u, v)
    # `upper` is the log of the clone sum, which depends on u and v = 1 - u. A relative rounding error r of u or v changes this log
    # by a small multiple of r (1 + abs(upper)).
    slack = 4 * ULP * abs(factor) + (abs(upper) + 4) * 16 * ULP
    return Interval(lower + factor - slack, min(alone + loss_error, upper + factor + slack))
