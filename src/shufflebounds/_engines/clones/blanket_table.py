r"""The privacy blanket of k-ary randomized response with personalized budgets, by summation over a table; for few users.

Let W be the uniform distribution on the k categories. User i with budget :math:`\varepsilon_i` and value x sends a message with
the distribution :math:`R_i(x) \ge g_i W`, where :math:`g_i = k/(e^{\varepsilon_i}+k-1)`: with probability :math:`g_i` the message
is drawn from W. If the analyst learns which users drew from W, the target's message is hidden among :math:`M \sim \mathrm{PB}(g_i)`
uniform messages (PB: Poisson-binomial). With :math:`m = M+1` messages in all,

.. math:: \delta(\varepsilon) \le \sum_m \Pr[M = m-1]\, \frac{k a}{m}\,
    \mathbb{E}\bigl(\alpha N_0 + \beta N_1 + \gamma (m-N_0-N_1)\bigr)_+, \qquad
    (N_0, N_1, \cdot) \sim \mathrm{Mult}(m; \tfrac1k, \tfrac1k, 1-\tfrac2k) .

Here :math:`E = e^\varepsilon`, :math:`E_1 = e^{\varepsilon_1}` for the target's budget :math:`\varepsilon_1`,
:math:`a = 1/(E_1+k-1)`, :math:`\alpha = E_1-E`, :math:`\beta = 1-E E_1`, :math:`\gamma = 1-E`. For (Q, P) instead of (P, Q), N_0
and N_1 change places, so both hockey-stick divergences are equal. Given s = N_0 + N_1, N_0 is Bin(s, 1/2), and the expectation is a
combination of one tail and one mass of Bin(s-1, 1/2).
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import DEEPEST, NEGLIGIBLE, SAFE_EXPONENT, TABLE_SIZE, TINY
from shufflebounds._base.quadrature import total_of
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._core import _clones
from shufflebounds.tails._poisson_tables import bits_window
from shufflebounds.tails.concentration import binomial_range

__all__ = ["blanket_shares", "log_blanket_table", "table_cells", "table_too_large"]


def blanket_shares(budgets: FloatArray, categories: int) -> tuple[FloatArray, FloatArray]:
    """Return for each budget eps_i the probability g_i = k/(e^eps_i + k - 1) that a message does not depend on the user's value,
    and 1 - g_i, both with a small relative error.
    """
    k, x = float(categories), np.exp(-budgets)
    total = 1 + (k - 1) * x
    return np.minimum(k * x / total, 1.0), -np.expm1(-budgets) / total


def table_cells(mean: float, square: float, log_tail: float) -> float:
    """Return an estimate of the number of cells of the table with truncated mass e^log_tail.

    `mean` and `square` are the sums over all users of the probabilities g_i of the module docstring and of their squares.
    """
    return math.sqrt(max(0.0, mean - square) * mean) * -log_tail


def table_too_large(shares: FloatArray, counts: FloatArray, log_tail: float, most: int = TABLE_SIZE) -> bool:
    """Return whether the table with truncated mass e^log_tail has more than `most` cells, by the estimate `table_cells`."""
    return table_cells(total_of(shares, counts), total_of(shares * shares, counts), log_tail) > most


def log_blanket_table(
    budgets: FloatArray, counts: FloatArray, categories: int, local_eps: float, eps: float, log_scale: float,
    most: int = TABLE_SIZE, enough: float = -math.inf,
) -> Interval | None:
    """Return bounds of log delta of the blanket, or None if the table would have more than `most` cells.

    `log_scale` is a rough upper bound of log delta, from which the truncated mass follows. If the upper bound is at most `enough`,
    the gap of the bounds is not reduced further.
    """
    if local_eps < TINY:
        # No table is computed, because its weights would be subnormal numbers, which have fewer than 53 significant bits.
        return None
    present = counts > 0
    shares, missed = blanket_shares(budgets[present], categories)
    table = _Table(shares, missed, counts[present], categories, local_eps, eps)
    log_scale = min(log_scale, table.log_bound)
    log_tail = min(-NEGLIGIBLE, max(log_scale, DEEPEST) - 35.0)
    if table.log_bound <= enough:
        return Interval(-math.inf, table.log_bound)
    while True:
        sides = table.log_sum(log_tail, most)
        # If delta is much smaller than e^log_scale, the truncated mass widens the bounds. Then the table is computed again with
        # less truncated mass.
        if sides is None or sides[1] - sides[0] < 1e-6 or sides[1] <= enough or log_tail < -1e4:
            return sides
        log_tail = min(2 * log_tail, sides[0] - 35.0) if sides[0] > -math.inf else 2 * log_tail


class _Table:
    r"""The bound of delta in the module docstring, as a sum over m and s = N_0 + N_1.

    The positive part of a sum of m variables X, which are alpha, beta or gamma (module docstring), is at most
    :math:`e^{t \sum X}/(e t)` for each t > 0. With the cumulant generating function :math:`K(t) = \log \mathbb{E} e^{tX}`, a term
    of the sum over m is at most :math:`\Pr[M = m-1] e^{m K(t)}/(m e t)`, and the share of s = N_0 + N_1 in this bound is Pr[Bin(m,
    `tilted`) = s].
    """

    def __init__(
        self, shares: FloatArray, missed: FloatArray, counts: FloatArray, categories: int, local_eps: float, eps: float
    ) -> None:
        self.shares, self.missed, self.counts, self.k = shares, missed, counts, float(categories)
        y = math.exp(-local_eps)
        self.log_factor = math.log(self.k / (1 + (self.k - 1) * y))  # k a E_1 of the sum in the module docstring
        # The three variables are alpha, beta and gamma of the module docstring, divided by E_1.
        self.alpha = alpha = -math.expm1(eps - local_eps)
        # beta = e^-local_eps - e^eps; expm1 avoids the cancellation if the two terms are close.
        self.beta = beta = y - math.exp(eps) if eps + local_eps > 1 else -math.expm1(eps + local_eps) * y
        self.gamma = gamma = -math.expm1(eps) * y
        messages = 1 + float((shares * counts).sum())

        def shares_of(t: float) -> tuple[float, float]:
            """Return e^((beta - alpha) t) and (k - 2) e^((gamma - alpha) t)."""
            return math.exp((beta - alpha) * t), (self.k - 2) * math.exp((gamma - alpha) * t)

        def rises(t: float) -> bool:
            """Return whether e^(m K(t))/t increases at t, where m = `messages` is the expected number of messages."""
            other, rest = shares_of(t)
            return messages * t * (alpha + beta * other + gamma * rest) > 1 + other + rest

        low = high = 1 / alpha
        while not rises(high):
            low, high = high, 2 * high
        while rises(low):
            low, high = 0.5 * low, low
        # Every t gives a bound. A smaller tolerance of the search would not reduce the number of cells further.
        while high > 1.01 * low:
            middle = low + 0.5 * (high - low)
            low, high = (low, middle) if rises(middle) else (middle, high)
        self.t = t = low
        other, rest = shares_of(t)
        self.tilted = (1 + other) / (1 + other + rest)
        cumulant = alpha * t + math.log((1 + other + rest) / self.k)
        # The rounding error of the cumulant is multiplied by the number of messages; 1e-6 bounds all other errors.
        slack = 1e-6 + 8 * ULP * (alpha * t + math.log(self.k) + 2) * (1 + float(counts.sum()))
        chance = float((counts * np.log(missed + shares * math.exp(cumulant))).sum())
        self.log_chernoff = self.log_factor + cumulant + chance - math.log(t) - 1 + slack
        self.log_bound = min(self.log_factor + math.log(alpha), self.log_chernoff)

    def log_sum(self, log_tail: float, most: int) -> Interval | None:
        """Return bounds of log delta with tails of mass e^log_tail truncated, or None if the table has more than `most` cells."""
        if self.counts.size:
            if table_too_large(self.shares, self.counts, log_tail, most):
                return None
            first, log_weights, weight_error = bits_window(self.shares, self.missed, self.counts, log_tail=log_tail, most=2**53)
        else:
            first, log_weights, weight_error = 0, np.zeros(1), 0.0
        fewest, largest = float(first + 1), float(first + log_weights.size)
        # The smallest positive value of the sum of the X may be as large as alpha. Then the bound of a term is too large by a
        # factor of up to e^(t alpha), and the omitted share must be smaller by this factor.
        outside = -NEGLIGIBLE - 1.0 - min(self.alpha * self.t, NEGLIGIBLE)
        few, many = (binomial_range(m, self.tilted, outside)[end] for end, m in enumerate((fewest, largest)))
        cells = log_weights.size * (many + 1 - few)
        if cells > most:
            return None
        top = self.log_bound - self.log_factor
        low, high = _clones.blanket_sum(fewest, log_weights, few, many, 2 / self.k, self.alpha, self.beta, self.gamma, top)
        error = 1e-12 + 4 * ULP * abs(self.log_bound) + 2 * weight_error
        # `rest` bounds the omitted terms: two tails of M of mass e^log_tail, in which each expectation over m is at most alpha; two
        # tails of s with the share e^outside of the bound; and the cells that underflow.
        rest = float(np.logaddexp.reduce([
            self.log_factor + math.log(2 * self.alpha) + log_tail, self.log_chernoff + outside,
            self.log_bound + math.log(cells) - SAFE_EXPONENT]))
        lower = self.log_bound + math.log(low) - error if low > 0 else -math.inf
        upper = float(np.logaddexp(self.log_bound + math.log(high) + error if high > 0 else -math.inf, rest))
        return Interval(lower, min(upper, self.log_bound))
