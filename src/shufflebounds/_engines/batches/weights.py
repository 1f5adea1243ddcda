r"""Upper bounds D(c) of the tail of the records' weights in the theorem of shuffled batches.

In the proof, a random record takes the target's place in the first step. Given the output of this step, the probability that it was
record r is proportional to the weight :math:`R_{w_r}/M` of the record, where :math:`R_w` is the normal distribution with the mean
w, and M is the mean of the :math:`R_{w_r}` over all records r. Lengths are in units of the standard deviation of the noise, and no
vector is longer than mu. The theorem of docs/theorems/shuffled-batches needs bounds of

.. math:: D(c) = \sup \operatorname{mean}_r H_c(R_{w_r} \| M), \qquad D(c, B) = \min_A D(A) + \mathbb{E}
    \bigl(\tfrac{A}{B} \operatorname{Bin}(B, \tfrac1A) - c\bigr)_+

The supremum is over all families of vectors. With :math:`g_c(q) = H_c(R_v \| R_0)`, :math:`|v|^2 = q \mu^2`, each of the following
numbers is at least D(c):

- **pairs**: the concave majorant of :math:`g_c` on [0, 4] at q = 2;
- **centre**: the largest, over m in [0, 1], concave majorant of :math:`g_x` on :math:`[0, (1+m)^2]` at :math:`q = 1 - m^2`,
  :math:`x = c\, e^{-q \mu^2/2}`;
- **lists**: :math:`g_\lambda(1) + \frac{\lambda}{c}\, g_{c/\lambda}(1)` for every :math:`\lambda \in [1, c]`.

*Suprema.* For :math:`x \ge 1`, :math:`g_x(0) = 0`, and :math:`g_x` increases and is first convex and then concave. So its concave
majorant on [0, Q] at q is the largest :math:`q\, g_x(p)/p` with :math:`q \le p \le Q`. As :math:`g_x` increases, this is at most
:math:`q\, g_x(p_{i+1})/p_i` for p between :math:`p_i` and :math:`p_{i+1}`. The majorant increases in q and in Q and decreases in x,
so that each interval of m is covered by the largest q and Q and the smallest x in it.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from shufflebounds._base.caches import cached_property, kept
from shufflebounds._base.limits import COMPARED, SAME_LOG
from shufflebounds._base.scipy_functions import gammaln
from shufflebounds._base.types import FloatArray
from shufflebounds._core._gaussian import gaussian_log_delta

__all__ = ["CUTS", "Weights", "log_binomial_excess", "log_divergence"]

CUTS = 1 + np.append(0.0, np.geomspace(1e-3, 1e7, 192))
"""Values of c at which D(c) is bounded. D is convex, so that it is at most the linear interpolation between these bounds. More
values: a tighter bound of delta and a longer run time for the first value of each mu."""

_LARGEST_BATCH = 2**24
"""Larger batches count as batches of this size, because D(c, B) decreases in B: the mean of B weights is an average of the means of
smaller sets of these weights. In log-gamma functions of larger numbers the rounding error would exceed _SLACK."""

_SLACK = 1e-6
"""Relative amount added to binomial probabilities, which covers rounding errors of log-gamma functions up to 3e8."""


class Weights:
    """Upper bounds of D(c) and of D(c, B) (module docstring) at all `CUTS`.

    mu is the largest length of a vector over the standard deviation of the noise.
    """

    def __init__(self, mu: float) -> None:
        self.mu = mu

    @cached_property
    def alone(self) -> FloatArray:
        """Upper bounds of D(c)."""
        middle = np.linspace(0.0, 1.0, COMPARED + 1)
        square = 1 - middle[:-1] ** 2
        pairs = self._majorant(np.full(1, 2.0), np.full(1, 4.0), CUTS[:, None])
        centre = self._majorant(square, (1 + middle[1:]) ** 2, CUTS[:, None] * np.exp(-square * self.mu**2 / 2))
        share = np.linspace(0.0, 1.0, COMPARED + 1)
        log_c = np.log(CUTS)[:, None]
        lists = np.logaddexp(log_divergence(self.mu, share * log_c),
                             (share - 1) * log_c + log_divergence(self.mu, (1 - share) * log_c))
        logs = np.min([pairs.max(axis=1), centre.max(axis=1), lists.min(axis=1), np.zeros(CUTS.size)], axis=0)
        return np.asarray(np.minimum.accumulate(np.exp(logs + SAME_LOG)))

    def _majorant(self, q: FloatArray, end: FloatArray, x: FloatArray) -> FloatArray:
        """Return upper bounds of the log of the concave majorant of g_x (module docstring) on [0, end] at q; the bound is 0 if
        x < 1.
        """
        p = q * (end / q) ** np.linspace(0.0, 1.0, COMPARED // 2 + 1)[:, None]
        top = np.full(np.broadcast(x, q).shape, -np.inf)
        for low, high in pairwise(p):
            top = np.maximum(top, log_divergence(self.mu * np.sqrt(high), np.log(np.maximum(x, 1.0))) - np.log(low))
        return np.where(x < 1, 0.0, top + np.log(q))

    @kept(COMPARED)
    def batched(self, batch: int) -> FloatArray:
        """Return upper bounds of D(c, B) for batches of B records."""
        if batch == 1:
            return self.alone
        both = self.alone[:, None] + np.exp(log_binomial_excess(batch, CUTS[:, None], CUTS))
        return np.asarray(np.minimum(self.alone, both.min(axis=0)))

    def cut(self, batch: int, c: float) -> float:
        """Return A of the smallest of the bounds D(A) + E(...)_+ of D(c, B), for D(A) at `CUTS` and at A = c."""
        # For A <= c the expectation is 0, and D decreases.
        return max(c, float(CUTS[(self.alone + np.exp(log_binomial_excess(batch, CUTS, np.array(c)))).argmin()]))


def log_divergence(mu: FloatArray | float, eps: FloatArray | float) -> FloatArray:
    """Return upper bounds of the log hockey-stick divergence, at eps >= 0, of normal distributions at the distance mu."""
    value, error = gaussian_log_delta(1.0, mu, eps)
    return np.asarray(np.minimum(value + error, 0.0))


def log_binomial_excess(batch: int, cut: FloatArray, c: FloatArray) -> FloatArray:
    r"""Return upper bounds of the log of :math:`\mathbb{E} (\frac{A}{B} \operatorname{Bin}(B, \frac1A) - c)_+`, A = `cut`, c >= 1.

    The quotients of neighbouring probabilities decrease. So, with :math:`k_0` the first number of successes above
    :math:`cB/A` and :math:`\rho` the quotient there, the expectation is at most a geometric series,
    :math:`\frac{A}{B} \Pr[k_0] \bigl((k_0 - cB/A)/(1 - \rho) + \rho/(1 - \rho)^2\bigr)`, if :math:`\rho < 1`. By the inequality
    of Cauchy and Schwarz it is at most :math:`\frac12 (\sqrt{v + (c-1)^2} - (c-1))` with the variance v = (A - 1)/B, too, because
    the mean is 1. The smaller bound is returned.
    """
    batch = min(batch, _LARGEST_BATCH)
    level = c * batch / cut
    first = np.floor(level) + 1
    k = np.minimum(first, batch)
    with np.errstate(divide="ignore", invalid="ignore"):
        rest = np.where(k < batch, (batch - k) * np.log1p(-1 / cut), 0.0)
        log_prob = math.lgamma(batch + 1) - gammaln(k + 1) - gammaln(batch - k + 1) - k * np.log(cut) + rest
        ratio = (batch - k) / ((k + 1) * (cut - 1))
        series = (k - level) / (1 - ratio) + ratio / (1 - ratio) ** 2
        tail = np.where(ratio < 1, log_prob + np.log(series * cut / batch) + _SLACK, 0.0)
        variance = (cut - 1) / batch
        plain = np.log(0.5 * variance / (np.sqrt(variance + (c - 1) ** 2) + c - 1)) + _SLACK
    # (A/B) Bin(B, 1/A) is a mean of B values of at most A, so it never exceeds c if A <= c.
    return np.asarray(np.where((first > batch) | (cut <= c), -np.inf, np.minimum(tail, plain)))
