r"""Two users who send a value of an interval with Gaussian noise: bounds of delta and of Renyi divergences.

If the two values are a and z, the analyst sees two messages without their order: their sum, normal with mean a + z and variance
:math:`2 \sigma^2`, and the absolute value of their difference, which is independent of the sum. Let all values and messages be in
units of :math:`\sqrt 2 \sigma`, and let :math:`F_p` be the distribution of :math:`|p + Z|` for a standard normal Z. Then the sum
has the distribution :math:`N(a + z, 1)`, and the absolute difference :math:`F_{|a - z|}`.

The ratio of the densities of :math:`F_q` and :math:`F_p`, q > p, increases in the outcome. So the optimal tests are threshold
tests, and every hockey-stick divergence of :math:`(F_p, F_q)` grows as p decreases and as q increases; it is at most that of
:math:`(F_0, F_m)`, where m is the length of the interval. If the target's values are a and b, the divergence of the two sums
depends only on the distance of a and b, and grows with this distance, which is at most m. The target's values 0 and m, with the
other user's value 0, attain both maxima. A pair whose hockey-stick divergences are all at most those of another pair is a
post-processing of the other pair (Blackwell), and a product of such pairs is a post-processing of the product of the other pairs.
So the worst pair consists of :math:`N(0, 1) \times F_0` and :math:`N(m, 1) \times F_m`; either may be P
(docs/theorems/worst-dataset).

Each user may participate with a probability s only. The analyst sees the number of messages, whose distribution does not depend on
the values. So delta, and the moments :math:`e^{(\alpha-1) D_\alpha}` of the Renyi divergences, are means over the number of
messages with the probabilities :math:`(1-s)^2, 2 s (1-s), s^2`. Let the target's value be a under P and b under Q, let the other
user's value be z, and let :math:`R_x` be the distribution of a message of the value x. A single message has the distribution
:math:`(R_a + R_z)/2` under P. Its hockey-stick divergence at :math:`E = e^\varepsilon \ge 1` is at most
:math:`\frac12 H_{2E-1}(R_a \| R_b)` (advanced joint convexity), with equality for z = b. For two messages the largest divergence is
attained for z = b, too, by (P, Q) or by (Q, P).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

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
"""Values of m for which this class is used. For a smaller m rounding errors of the masses of bins are not negligible. For a
larger m two messages nearly always reveal the values, and bins are too wide."""

_BINS = 2**13
"""Number of bins of the absolute difference. Doubling it divides the gap of the bounds by four and doubles the run time."""

_END = 38.0
"""The bins end at m + _END, or farther for a Renyi divergence. The probability beyond this point is below e^-700."""

_FARTHEST = 1e3
"""Largest product of m and the order of a Renyi divergence for which bins are used. For a larger product the gap without bins is
below a relative 1e-3."""


class TwoUsers:
    """The largest delta, and the largest Renyi divergences, over all datasets of two users.

    Parameters
    ----------
    mu : float
        Length of the interval of values, in standard deviations of the noise.
    share : float
        Probability with which each user sends a message, in (0, 1].
    """

    def __init__(self, mu: float, share: float = 1.0) -> None:
        self._mu, self._share, self._m = mu, share, mu / math.sqrt(2)
        self._known: Kept[tuple[float, bool], tuple[LossAtoms, LossAtoms]] = Kept(CACHED_ANSWERS)

    @classmethod
    def of(cls, mu: float | None, share: float) -> TwoUsers | None:
        """Return the object, or None if the noise is not normal (`mu` is None) or mu/sqrt(2) is outside the range of this class."""
        return cls(mu, share) if mu is not None and _LENGTHS[0] <= mu / math.sqrt(2) <= _LENGTHS[1] else None

    def _pairs(self, end: float, upper: bool) -> tuple[LossAtoms, LossAtoms]:
        """Return pairs with finitely many outcomes: post-processings of (F_0, F_m) and (F_m, F_0), or refinements if `upper`.

        F_0 and F_m are distributions of the absolute difference of the two messages (module docstring). Its values up to `end` are
        in bins. In a refinement, of which the exact pair is a post-processing, the mass of a bin moves to its two ends such that
        the masses of the bin under both distributions stay the same. The mass beyond `end` is truncated: `log_lost` of (F_m, F_0)
        contains it, and in (F_0, F_m) the last outcome stands for it.
        """
        return self._known.of((end, upper), lambda: self._made(end, upper))

    def _made(self, end: float, upper: bool) -> tuple[LossAtoms, LossAtoms]:
        m, edges = self._m, np.linspace(0.0, end, _BINS + 1)
        near = log_normal_masses(edges, 0.0, 1.0) + math.log(2)
        far = np.logaddexp(log_normal_masses(edges, m, 1.0), log_normal_masses(edges, -m, 1.0))
        error = 8 * ULP * (1 + 0.5 * (m + end) ** 2)
        if not upper:
            return LossAtoms.of(near, far, error=error), LossAtoms.of(far, near, error=error)
        # `rise` is the log likelihood ratio of F_m to F_0 at the ends of bins.
        rise = m * edges + np.log1p(np.exp(-2 * m * edges)) - math.log(2) - 0.5 * m * m
        first = log_to_nodes(near, log_shares(far - near, rise[:-1], rise[1:]))
        # The last outcome of (F_0, F_m) also stands for all outcomes beyond the last bin, where the likelihood ratio of F_0 to F_m
        # is smaller.
        rest = math.log(2) + float(log_ndtr(-end))
        beyond = np.append(first[:-1], np.logaddexp(first[-1], rest))
        lost = math.log(2) + float(log_ndtr(m - end))
        return (LossAtoms.of(beyond, beyond + rise, error=error),
                LossAtoms.of(first + rise, first, log_lost=max(lost, -1e5), error=error))

    def _compared(self, end: float, upper: bool) -> tuple[LossAtoms, ...]:
        """Return the pairs of `_pairs` whose bounds are compared.

        If the share is below 1, the lower bound for one message is that of the dataset in which the target's values are the ends m
        and 0 of the interval, in this order, and the other user's value is 0. So the lower bound for two messages uses the pair of
        the same dataset.
        """
        pairs = self._pairs(end, upper)
        return pairs if upper or self._share == 1 else pairs[1:]

    def log_delta(self, eps: FloatArray, upper: bool) -> FloatArray:
        """Return the upper or the lower bound of log delta at each eps >= 0."""
        pairs, way = self._compared(self._m + _END, upper), 1 if upper else -1
        value = np.array([max(self._both_sent(pair, e, way) for pair in pairs) for e in eps.tolist()])
        if self._share < 1:
            value = np.logaddexp(2 * math.log(self._share) + value, self._log_one + self._one_sent(eps, way))
        tick()
        return np.asarray(np.minimum(value + way * 8 * ULP * (1 + np.abs(np.maximum(value, -SQUARABLE))), 0.0))

    @property
    def _log_one(self) -> float:
        """The log of the probability that exactly one message is sent."""
        return math.log(2 * self._share) + math.log1p(-self._share)

    def _one_sent(self, eps: FloatArray, way: int) -> FloatArray:
        """Return bounds of log delta if one message is sent: delta is half that of one noisy value at log(2 e^eps - 1)."""
        level = (eps + np.log1p(-np.expm1(-eps))) * (1 - way * 8 * ULP)
        value, error = gaussian_log_delta(1.0, self._mu, level)
        return np.asarray(np.where((level > SQUARABLE) & (way < 0), -np.inf, value + way * error) - math.log(2))

    def _both_sent(self, pair: LossAtoms, eps: float, way: int) -> float:
        """Return a bound of log delta if both messages are sent; `pair` has the distributions of their absolute difference."""
        # Given an absolute difference of the messages with the privacy loss l, delta of both messages is delta of their sum at
        # eps - l.
        left = eps - pair.moved(way)
        value, error = gaussian_log_delta(1.0, self._m, np.abs(left))
        value = np.where((np.abs(left) > SQUARABLE) & (way < 0), -np.inf, value + way * error)
        with np.errstate(divide="ignore"):
            # For E = e^(eps - l) < 1, delta of the sum is 1 - E + E times delta at 1/E, because the pair of normal distributions is
            # symmetric.
            value = np.where(left < 0, np.logaddexp(np.log(-np.expm1(np.minimum(left, 0.0))), left + value), value)
        total = log_sum(pair.log_p + value) + way * (pair.slack + ULP * (16 + pair.log_p.size))
        return float(np.logaddexp(total, pair.log_lost)) if way > 0 else total

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray:
        """Return upper or lower bounds of the largest Renyi divergences of finite orders >= 1."""
        value = np.array([self._renyi(order, upper) for order in orders.tolist()])
        tick()
        return value

    def _renyi(self, order: float, upper: bool) -> float:
        """Return a bound of the divergence of one order."""
        both, way = self._both_sent_renyi(order, upper), 1 if upper else -1
        if self._share == 1:
            return both * (1 + way * 64 * ULP)
        # One message is a post-processing of two, because one of the two can be dropped.
        two = _log_growth(order, both)
        one = min(self._one_sent_above(order), two) if upper else _log_growth(order, self._one_sent_below(order))
        total = float(np.logaddexp(self._log_one + one, 2 * math.log(self._share) + two))
        value = math.exp(total) if order == 1 else float(np.logaddexp(0.0, total + math.log(order - 1))) / (order - 1)
        return min(value * (1 + way * ULP * (64 + 8 * abs(math.log(self._share)))), both)

    def _one_sent_above(self, order: float) -> float:
        r"""Return an upper bound of :math:`\ln \frac{e^{(\alpha-1) D} - 1}{\alpha - 1}`, D the Renyi divergence of order alpha of
        one message.

        At E >= 1 the hockey-stick divergences of (P, Q) and of (Q, P) are at most those of :math:`((R_m + R_0)/2, R_0)`, where R_x
        is N(x, 1) and m is `mu`. As :math:`e^{(\alpha-1) D} - 1` is an integral of these divergences over E with positive weights,
        it is at most, with the likelihood ratio x of the pair :math:`((R_m + R_0)/2, R_0)`,

        .. math:: E_{R_0}\bigl[(x^\alpha + x^{1-\alpha} - x - 1)\, 1_{x > 1}\bigr]
            = E_{R_0}\bigl[(x^{\alpha-1} - 1)\, x\, (1 - x^{-\alpha})\, 1_{x > 1}\bigr] .

        This function of x is convex. So an upper bound follows if the masses of bins are moved to their ends, as in `_pairs`.
        """
        if order * self._mu >= _FARTHEST:
            return math.inf
        end = self._renyi_end(order, self._mu)
        edges = np.linspace(0.5 * self._mu, end, _BINS + 1)
        near, far, ratio = self._one_message(edges)
        error = 8 * ULP * (1 + 0.5 * (self._mu + end) ** 2)
        loss = (ratio + 2 * error) * (1 + 2 * ULP)
        log_mass = log_to_nodes(near, log_shares(far - near, ratio[:-1], ratio[1:]))
        with np.errstate(divide="ignore"):
            terms = log_mass + _log_growth(order, loss) + loss + np.log(-np.expm1(-order * loss))
        # Beyond the last bin the likelihood ratio x is at most that of R_mu to R_0. For the order a, the term (x^(a - 1) -
        # 1)/(a - 1) x (1 - x^-a) is at most x^a for a >= 2, and at most x^(a + 1) for a < 2.
        power = order if order >= 2 else order + 1
        beyond = 0.5 * power * (power - 1) * self._mu**2 + float(log_ndtr(power * self._mu - end))
        return float(np.logaddexp(log_sum(terms), beyond)) + error + ULP * (64 + _BINS + float(np.abs(log_mass).max()))

    def _one_sent_below(self, order: float) -> float:
        """Return a lower bound of the divergence of ((R_m + R_0)/2, R_0)."""
        # The first density is at least half of that of R_m.
        simple = (0.5 * self._mu**2 - math.log(2) / (order - 1)) * order if order > 2 else 0.0
        if order * self._mu >= _FARTHEST:
            return simple
        end = self._renyi_end(order, self._mu)
        edges = np.linspace(-_END, end, 2 * _BINS + 1)
        near, far, _ = self._one_message(edges)
        # The outcomes beyond the bins are two more bins.
        near = np.concatenate(([log_ndtr(-_END)], near, [log_ndtr(-end)]))
        ends = np.array([log_ndtr(-_END - self._mu), log_ndtr(self._mu - end)])
        far = np.concatenate((np.logaddexp(ends[:1], near[:1]) - math.log(2), far, np.logaddexp(ends[1:], near[-1:]) - math.log(2)))
        pair = LossAtoms.of(far, near, error=8 * ULP * (1 + 0.5 * (self._mu + end) ** 2))
        return max(simple, float(pair.renyi(np.array([order]), upper=False)[0]))

    def _one_message(self, edges: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the log masses of bins under R_0 = N(0, 1) and (R_mu + R_0)/2, and the log likelihood ratio at the edges."""
        near, mu = log_normal_masses(edges, 0.0, 1.0), self._mu
        far = np.logaddexp(near, log_normal_masses(edges, mu, 1.0)) - math.log(2)
        return near, far, np.logaddexp(0.0, mu * edges - 0.5 * mu * mu) - math.log(2)

    @staticmethod
    def _renyi_end(order: float, mean: float) -> float:
        """Return the end of the bins: the integrand is largest near order * mean."""
        return mean * 2.0 ** math.ceil(math.log2(order)) + _END

    def _both_sent_renyi(self, order: float, upper: bool) -> float:
        """Return a bound of the divergence of one order if both messages are sent."""
        m = self._m
        # Without bins, `most` and `low` bound the divergence of the absolute difference. (F_0, F_m) is a post-processing of N(0, 1)
        # and N(m, 1), which gives `most`. The density of F_m is at least that of N(m, 1), and the density of F_0 is twice that of
        # N(0, 1), which gives `low`, close to `most` for a large order.
        most = 0.5 * order * m * m
        low = most - math.log(2) + float(log_ndtr(order * m)) / (order - 1) if order > 2 else 0.0
        if order * m < _FARTHEST:
            pairs = self._compared(self._renyi_end(order, m), upper)
            sent = max(float(replace(pair, log_lost=-math.inf).renyi(np.array([order]), upper=upper)[0]) for pair in pairs)
            # The outcomes beyond the last bin add less than e^-350.
            low, most = max(low, sent), min(most, sent + math.exp(-350))
        return (most if upper else low) + 0.5 * order * m * m


def _log_growth(order: float, divergence: float | FloatArray) -> Any:
    """Return the log of (e^((order - 1) D) - 1)/(order - 1) for D = `divergence` >= 0, and the log of D for order 1."""
    with np.errstate(divide="ignore"):
        if order == 1:
            return np.log(divergence)
        grown = (order - 1) * np.asarray(divergence)
        return grown + np.log(-np.expm1(-grown)) - math.log(order - 1)
