r"""The privacy blanket of k-ary randomized response with personalized budgets, by quadrature.

With probability :math:`g_i = k/(e^{\varepsilon_i}+k-1)` the message of user i, who has the budget :math:`\varepsilon_i`, is drawn
from W, the uniform distribution on the k categories (`blanket_table`). If the analyst learns which users drew from W, the target's
message is hidden among :math:`M \sim \mathrm{PB}(g_i)` uniform messages (PB: Poisson-binomial). Then

.. math:: \delta(\varepsilon) \le \mathbb{E}\, \frac{(X_1 + \cdots + X_{M+1})_+}{M+1}
    = \int_0^1 \mathbb{E}\bigl[ u^M (X_1 + \cdots + X_{M+1})_+ \bigr]\, du .

Here the :math:`X_j` are independent copies of the privacy-amplification random variable :math:`(R_0 - e^\varepsilon R_1)/W` under
W, and :math:`R_0, R_1` are the distributions of the target's message for its two values. The integrand is
:math:`\prod_i (1 - g_i + g_i u)` times the expected positive part of a sum in which user i contributes an X with probability
:math:`g_i u/(1 - g_i + g_i u)`; the kernel `_core/_excess` evaluates such sums. All derivatives of the integrand in u are
non-negative, so Gauss's rule gives a lower bound of the integral, and Radau's rule with a node at the right end an upper bound.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import FEW, NEGLIGIBLE, NEGLIGIBLE_ROUGHLY, TABLE_SIZE
from shufflebounds._base.types import FloatArray, Interval
from shufflebounds._core import _excess
from shufflebounds._engines.clones.blanket_table import blanket_shares, log_blanket_table, table_cells

__all__ = ["log_blanket_delta", "log_rounded_blanket", "too_large"]

GROUPS = 16
"""Number of budgets to which the budgets are rounded up if too many differ. Raised: longer run time. Lowered: a larger bound; with
8 budgets eps is 0.7 % larger."""

_ORDER = 6
"""Number of nodes of each of the two quadrature rules on one panel. More nodes take longer; fewer leave a larger gap of the
bounds."""


def _radau(order: int) -> tuple[FloatArray, FloatArray]:
    """Return Radau's nodes and weights on [0, 1] with a node at 1."""
    legendre = np.polynomial.legendre.Legendre
    inner = ((legendre.basis(order - 1) + legendre.basis(order)) // legendre((1, 1))).roots().real
    weights = (1 - inner) / (order * legendre.basis(order - 1)(inner)) ** 2
    # `inner` and `weights` are Radau's rule on [-1, 1] with a node at -1. This rule is mirrored and mapped to [0, 1].
    return np.append(0.5 - 0.5 * inner, 1.0), np.append(weights / 2, 1 / order**2)


_GAUSS = tuple(0.5 * x + c for x, c in zip(np.polynomial.legendre.leggauss(_ORDER), (0.5, 0.0)))
_RADAU = _radau(_ORDER)


class _Integrand:
    """Bounds of the log of the integrand E[u^M (X_1 + ... + X_(M+1))_+] in the module's docstring, as a function of u in [0, 1]."""

    def __init__(self, shares: FloatArray, missed: FloatArray, counts: FloatArray, values: FloatArray,
                 log_mass: FloatArray) -> None:
        self.shares, self.missed, self.counts, self.log_mass = shares, missed, counts, log_mass
        self.values = np.tile(np.append(values, 0.0), shares.size + 1)
        self.starts = np.arange(shares.size + 2, dtype=np.intp) * (values.size + 1)
        self.users = np.concatenate([[1.0], counts])

    def __call__(self, u: float) -> Interval:
        hit = self.shares * (1 - u)
        log_none = np.where(hit < 0.5, np.log1p(-hit), np.log(self.missed + self.shares * u))
        # The first group is the target, whose X is never missing.
        log_thinned = np.concatenate([[0.0], np.log(self.shares) + math.log(u) - log_none])
        log_missed = np.concatenate([[-math.inf], np.log(self.missed) - log_none])
        mass = np.column_stack([log_thinned[:, None] + self.log_mass, log_missed]).ravel()
        # The relative gap 2e-6 of each value widens the bounds of the integral by 2e-6; a smaller gap takes longer.
        lower, upper = _excess.log_excess(self.values, mass, self.starts, self.users, 2e-6)
        factor = float(self.counts @ log_none)
        slack = 1e-15 * (float(self.counts.sum()) ** 0.5 + abs(factor) + 8)
        return Interval(lower + factor - slack, upper + factor + slack)


def log_blanket_delta(
    budgets: FloatArray, counts: FloatArray, categories: int, local_eps: float, eps: float, log_scale: float,
    enough: float = -math.inf,
) -> Interval | None:
    """Return bounds of log delta of the blanket, or None if both the table and the quadrature would take too long.

    The table and the quadrature take too long for many users with more than FEW distinct budgets. `log_scale` is a rough upper
    bound of log delta, from which the truncated mass follows. A table whose upper bound is at most `enough` is not refined.
    """
    if eps >= local_eps:
        return Interval(-math.inf, -math.inf)
    present = counts > 0
    number = counts[present]
    few = number.size <= FEW
    # Up to 2**17 cells, that is about two thousand users of budget 1, the table is faster and tighter than the quadrature.
    most = TABLE_SIZE // 8 if few else TABLE_SIZE
    table = log_blanket_table(budgets, counts, categories, local_eps, eps, log_scale, most, enough)
    if table is not None or not few:
        return table
    return _integral(integrand_of(budgets[present], number, categories, local_eps, eps))


def log_rounded_blanket(
    budgets: FloatArray, counts: FloatArray, categories: int, local_eps: float, eps: float
) -> float:
    """Return an upper bound of log delta of the blanket for many distinct budgets in increasing order.

    The other users are divided into GROUPS groups of about equal size, and all budgets of a group are replaced by the largest
    budget of the group. Randomized response with a smaller budget is a post-processing of that with a larger one.
    """
    if eps >= local_eps:
        return -math.inf
    middle = np.cumsum(counts) - counts / 2
    starts = np.flatnonzero(np.diff(np.floor(GROUPS * middle / counts.sum()), prepend=-1.0))
    rounded = budgets[np.append(starts[1:], budgets.size) - 1]
    return _integral(integrand_of(rounded, np.add.reduceat(counts, starts), categories, local_eps, eps)).upper


def too_large(distinct: int, mean: float, square: float) -> bool:
    """Return True only if `log_blanket_delta` would return None; this test takes less time.

    `distinct` is the number of distinct budgets of the other users. For `mean` and `square` see `table_cells`.
    """
    return distinct > FEW and table_cells(mean, square, -NEGLIGIBLE) > TABLE_SIZE


def integrand_of(budgets: FloatArray, counts: FloatArray, categories: int, local_eps: float, eps: float) -> _Integrand:
    """Return the integrand of the blanket's bound (module docstring) for other users with these budgets.

    `counts` are the numbers of users with each budget, and `local_eps` is the budget of the target.
    """
    k, y = float(categories), math.exp(-local_eps)
    shares, missed = blanket_shares(budgets, categories)
    top = k / (1 + (k - 1) * y)
    values = top * np.array([-math.expm1(eps - local_eps), y - math.exp(eps), -math.expm1(eps) * y])
    log_mass = np.log(np.array([1 / k, 1 / k, max(k - 2, 1e-300) / k]))
    return _Integrand(shares, missed, counts, values, log_mass)


def _integral(integrand: _Integrand) -> Interval:
    """Return bounds of the logarithm of the integral over [0, 1]."""
    clones = float(integrand.shares @ integrand.counts)
    first = integrand(1.0)
    if clones == 0:
        return first
    # The width of the first panel depends on the slope of the log of the integrand at u = 1. This slope is between 0 and the
    # largest number of uniform messages.
    slope = max(0.0, first[1] - integrand(1 - 0.5 / (1 + clones))[1]) * 2 * (1 + clones)
    lows: list[float] = []
    highs: list[float] = []
    end, width = 1.0, 4 / max(slope, 1.0)
    for _ in range(64):
        start = max(0.0, end - width)
        for (nodes, weights), side, sums in ((_GAUSS, 0, lows), (_RADAU, 1, highs)):
            for t, w in zip(nodes, weights):
                sums.append(integrand(start + (end - start) * float(t))[side] + math.log(w * (end - start)))
        end, width = start, 2 * width
        if end == 0:
            break
        rest = integrand(end)[1]
        if rest < first[0] - NEGLIGIBLE_ROUGHLY:
            # The integrand increases with u, so on the rest of the interval it is at most its value at `end`.
            highs.append(rest + math.log(end))
            break
    else:
        highs.append(integrand(end)[1] + math.log(end))
    # The margin 1e-13 covers the relative error of nodes and weights, which is at most 2e-14.
    return Interval(float(np.logaddexp.reduce(lows)) - 1e-13, float(np.logaddexp.reduce(highs)) + 1e-13)
