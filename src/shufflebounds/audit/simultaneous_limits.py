"""Simultaneous confidence limits of binomial rates, at several declared thresholds or at all thresholds of a score.

All limits have the same error probability eta, the local level. :class:`Together` relates eta to the probability that any of the
limits fails.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from shufflebounds._base.progress import tick
from shufflebounds._base.scipy_functions import gammaln
from shufflebounds._base.search import narrowed
from shufflebounds._base.types import FloatArray
from shufflebounds.tails import clopper_pearson

__all__ = ["MOST_SCORES", "Together", "log_miss"]

MOST_SCORES = 3000
"""Largest number of scores of a sample for which limits at all thresholds are computed. The run time grows with the square of this
number: about two seconds at 3,000. Lowered: fewer samples have limits for all thresholds."""

_LOG_DROPPED = -80.0
"""Log of the probability that one step of the recursion may drop. The dropped probability is added to the result. Raised: less
tight limits at small error probabilities. Lowered: longer rows of the recursion."""

_LOG_LEAST = -50.0
"""Log of the least local level eta at which the recursion is evaluated. e^-50 is far above the dropped probability. For a smaller
eta, the result is the smaller one of the union bound and the result for e^-50. Raised: less tight limits at small error
probabilities."""

_SLACK = 1e-9
"""Relative error assumed of the recursion: 3,000 steps of sums of up to 500 positive terms have errors below 1e-10."""


@lru_cache(maxsize=256)
def log_miss(size: int, log_eta: float) -> float:
    r"""Return an upper bound of the log probability that a Clopper-Pearson limit at level eta fails at any threshold.

    Let :math:`U_{(1)} \le \cdots \le U_{(n)}` be n sorted independent uniform numbers, and :math:`a_i` the lower limit for i
    successes in n trials. All limits hold if and only if :math:`U_{(i)} \ge a_i` for every i, that is, :math:`N(a_i-) \le i - 1`,
    where N(t) is the number of :math:`U_{(j)}` below t. N is a Poisson process of rate n, given N(1) = n. The probability of a
    failure is the sum, over i, of the probabilities that i is the smallest number with :math:`N(a_i-) \ge i`; all terms are
    positive. Upper limits fail with the same probability.
    """
    if log_eta < _LOG_LEAST:
        return min(log_eta + math.log(size), log_miss(size, _LOG_LEAST))
    low, _ = clopper_pearson(np.arange(1, size + 1), size, log_alpha=log_eta + math.log(2))
    log_factorials = np.asarray(gammaln(np.arange(2 * size + 400) + 1.0))

    def poisson(mean: float, first: int, last: int) -> FloatArray:
        """Return the Poisson probabilities of first, ..., last - 1."""
        if mean <= 0:
            return np.asarray((np.arange(first, last) == 0) * 1.0)
        return np.asarray(np.exp(np.arange(first, last) * math.log(mean) - mean - log_factorials[first:last]))

    # states[j] is the probability that start + j uniform numbers are below the current limit and that no earlier limit has failed.
    states, start, before, failed = np.ones(1), 0, 0.0, 0.0
    for i, limit in enumerate(np.asarray(low).tolist(), 1):
        mean, before = size * (limit - before), limit
        if mean > 0:
            # Beyond the mean plus twelve standard deviations plus 30, the omitted tail is below twice its first term.
            most = min(int(mean + 12 * math.sqrt(mean)) + 30, size)
            states = np.convolve(states, poisson(mean, 0, most + 1))
            failed += 2 * math.exp((most + 1) * math.log(mean) - mean - log_factorials[most + 1]) if most < size else 0.0
        over = states[i - start : size + 1 - start]
        rest = size * (1 - limit)
        failed += float(over @ poisson(rest, size + 1 - i - over.size, size + 1 - i)[::-1])
        states = states[: i - start]
        dropped = int(np.searchsorted(np.cumsum(states), math.exp(_LOG_DROPPED)))
        failed += float(states[:dropped].sum())
        states, start = states[dropped:], start + dropped
        if i % 64 == 0:
            tick()
    given = size * math.log(size) - size - log_factorials[size]
    return float(min(0.0, math.log(failed) - given + math.log1p(_SLACK), log_eta + math.log(size)))


@dataclass(frozen=True)
class Together:
    """The relation between the probability that one of several limits fails and the level eta of each limit.

    Parameters
    ----------
    count : int
        Number of limits: each may fail with probability eta.
    samples : tuple of int
        Sizes of the samples with a lower and an upper limit at every threshold; empty if there are no such limits.
    """

    count: int
    samples: tuple[int, ...] = ()

    def log_total(self, log_eta: float) -> float:
        """Return an upper bound of the log probability that a limit fails."""
        total = math.log(self.count) + log_eta
        if self.samples and log_eta < -math.log(4):
            total = min(total, math.log(2) + float(np.logaddexp.reduce([log_miss(size, log_eta) for size in self.samples])))
        return min(0.0, total)

    def log_eta(self, log_alpha: float) -> float:
        """Return the log of the largest eta found at which any limit fails with probability at most e^log_alpha."""
        return _log_eta(self, log_alpha)


@lru_cache(maxsize=64)
def _log_eta(together: Together, log_alpha: float) -> float:
    lowest = log_alpha - math.log(together.count)
    if not together.samples:
        return lowest
    # The lower limits of a sample fail with probability at least eta, and so do its upper limits. So eta is at most `highest`.
    highest = max(log_alpha - math.log(2 * len(together.samples)), lowest)

    def excess(log_eta: float) -> float:
        return together.log_total(log_eta) - log_alpha

    at_least, at_most = excess(lowest), excess(highest)
    if at_least >= 0 or at_most <= 0:
        return highest if at_most <= 0 else lowest
    return narrowed(excess, lowest, highest, at_least, at_most, rtol=0.0, xtol=1e-9)[0]
