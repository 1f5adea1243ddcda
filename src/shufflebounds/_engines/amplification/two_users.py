r"""Two users who both send a value of an interval with Gaussian noise: both bounds of delta and of Renyi divergences.

If the two values are a and z, the analyst sees two messages without their order: their sum, normal with mean a + z and variance
:math:`2 \sigma^2`, and the absolute value of their difference, which is independent of it. :math:`F_p` is the distribution of
:math:`|p + Z|` for a standard normal Z. In units of :math:`\sqrt 2 \sigma` the two statistics have the distributions
:math:`N(a + z, 1)` and :math:`F_{|a - z|}`.

The ratio of the densities of :math:`F_q` and :math:`F_p`, q > p, increases in the outcome. So the best tests are thresholds, and
every hockey-stick divergence of :math:`(F_p, F_q)` grows as p decreases and as q increases; it is at most that of :math:`(F_0,
F_m)`, where m is the length of the interval. If the target's values are a and b, the divergence of the two sums depends on the
distance of a and b alone, which is at most m, and grows with it. The target's values 0 and m, with the other user's value 0, attain
both maxima. A pair whose hockey-stick divergences are all at most those of another pair is a post-processing of it (Blackwell), and
so are products of such pairs. So the worst pairs are :math:`N(0, 1) \times F_0` and :math:`N(m, 1) \times F_m`, in both orders
(docs/theorems/worst-dataset).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from shufflebounds._base.caches import Kept
from shufflebounds._base.convex_order import log_shares, log_to_nodes
from shufflebounds._base.limits import CACHED_ANSWERS, SQUARABLE
from shufflebounds._base.progress import tick
from shufflebounds._base.quadrature import log_normal_masses, log_sum
from shufflebounds._base.scipy_functions import log_ndtr
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core._gaussian import gaussian_log_delta
from shufflebounds._losses.atoms import LossAtoms

__all__ = ["TwoUsers"]

_LENGTHS = (1e-5, 4.0)
"""Values of m for which this class is used. For a smaller m rounding errors of the masses of bins matter. For a larger m two
messages nearly always reveal the values, and bins are too wide."""

_BINS = 2**13
"""Number of bins of the absolute difference. Doubling it divides the gap of the bounds by four and doubles the run time."""

_END = 38.0
"""The bins end at m + _END, or farther for a Renyi divergence. The probability beyond is below e^-700."""

_FARTHEST = 1e3
"""Largest product of m and the order of a Renyi divergence for which bins are used. Beyond, the gap of the bounds without bins is
below a relative 1e-3."""


class TwoUsers:
    """The largest delta, and the largest Renyi divergences, over all datasets of two users.

    Parameters
    ----------
    mu : float
        Length of the interval of values, in standard deviations of the noise.
    """

    def __init__(self, mu: float) -> None:
        self._m = mu / math.sqrt(2)
        self._known: Kept[tuple[float, bool], tuple[LossAtoms, LossAtoms]] = Kept(CACHED_ANSWERS)

    @classmethod
    def of(cls, mu: float | None) -> TwoUsers | None:
        """Return the object, or None if the noise is not normal or hides too much or too little."""
        return cls(mu) if mu is not None and _LENGTHS[0] <= mu / math.sqrt(2) <= _LENGTHS[1] else None

    def _pairs(self, end: float, upper: bool) -> tuple[LossAtoms, LossAtoms]:
        """Return (F_0, F_m) and (F_m, F_0) on finitely many outcomes, which are a post-processing, or with `upper` a refinement.

        The outcomes up to `end` are in bins. For a refinement the mass of a bin moves to its two ends such that both masses of the
        bin remain the same, and the mass beyond `end` is left out of the pair, in `log_lost` of the second one.
        """
        return self._known.of((end, upper), lambda: self._made(end, upper))

    def _made(self, end: float, upper: bool) -> tuple[LossAtoms, LossAtoms]:
        m, edges = self._m, np.linspace(0.0, end, _BINS + 1)
        near = log_normal_masses(edges, 0.0, 1.0) + math.log(2)
        far = np.logaddexp(log_normal_masses(edges, m, 1.0), log_normal_masses(edges, -m, 1.0))
        error = 8 * ULP * (1 + 0.5 * (m + end) ** 2)
        if not upper:
            return LossAtoms.of(near, far, error=error), LossAtoms.of(far, near, error=error)
        # The log of the likelihood ratio of F_m to F_0 at the ends of bins.
        rise = m * edges + np.log1p(np.exp(-2 * m * edges)) - math.log(2) - 0.5 * m * m
        first = log_to_nodes(near, log_shares(far - near, rise[:-1], rise[1:]))
        # The last outcome of (F_0, F_m) also stands for all outcomes beyond, where the likelihood ratio of F_0 to F_m is smaller.
        rest = math.log(2) + float(log_ndtr(-end))
        beyond = np.append(first[:-1], np.logaddexp(first[-1], rest))
        lost = math.log(2) + float(log_ndtr(m - end))
        return (LossAtoms.of(beyond, beyond + rise, error=error),
                LossAtoms.of(first + rise, first, log_lost=max(lost, -1e5), error=error))

    def log_delta(self, eps: FloatArray, upper: bool) -> FloatArray:
        """Return the upper or the lower bound of log delta at each eps >= 0."""
        pairs, way = self._pairs(self._m + _END, upper), 1 if upper else -1
        found = np.array([max(self._both_sent(pair, e, way) for pair in pairs) for e in eps.tolist()])
        tick()
        return np.asarray(np.minimum(found + way * 8 * ULP * (1 + np.abs(np.maximum(found, -SQUARABLE))), 0.0))

    def _both_sent(self, pair: LossAtoms, eps: float, way: int) -> float:
        """Return a bound of log delta of the sum and of one pair of distributions of the absolute difference."""
        # Given the difference, delta is that of the sum at eps minus the loss of the difference.
        left = eps - pair.moved(way)
        value, error = gaussian_log_delta(1.0, self._m, np.abs(left))
        value = np.where((np.abs(left) > SQUARABLE) & (way < 0), -np.inf, value + way * error)
        with np.errstate(divide="ignore"):
            # For e^eps = E < 1, delta is 1 - E + E times delta at 1/E.
            value = np.where(left < 0, np.logaddexp(np.log(-np.expm1(np.minimum(left, 0.0))), left + value), value)
        total = log_sum(pair.log_p + value) + way * (pair.slack + ULP * (16 + pair.log_p.size))
        return float(np.logaddexp(total, pair.log_lost)) if way > 0 else total

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray:
        """Return upper or lower bounds of the largest Renyi divergences of finite orders >= 1."""
        found = np.array([self._both_sent_renyi(order, upper) for order in orders.tolist()])
        tick()
        return np.asarray(found * (1 + (1 if upper else -1) * 64 * ULP))

    def _both_sent_renyi(self, order: float, upper: bool) -> float:
        """Return a bound of the divergence of one order if both messages are sent."""
        m = self._m
        # F_m is a post-processing of N(m, 1). Its density is at least that of N(m, 1), and that of F_0 twice that of N(0, 1): for
        # a large order the two bounds are close.
        most = 0.5 * order * m * m
        least = most - math.log(2) + float(log_ndtr(order * m)) / (order - 1) if order > 2 else 0.0
        if order * m < _FARTHEST:
            # The sum over the outcomes of the second pair is largest near order * m, and the bins end far beyond.
            pairs = self._pairs(m * 2.0 ** math.ceil(math.log2(order)) + _END, upper)
            found = max(float(replace(pair, log_lost=-math.inf).renyi(np.array([order]), upper=upper)[0]) for pair in pairs)
            # The outcomes beyond the last bin add less than e^-350.
            least, most = max(least, found), min(most, found + math.exp(-350))
        return (most if upper else least) + 0.5 * order * m * m
