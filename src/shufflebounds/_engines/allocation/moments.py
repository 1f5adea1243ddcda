r"""Renyi divergences of whole order of random allocation, by a sum of positive terms.

Let a be a whole order, L_1, ..., L_t independent likelihood ratios dP/dQ under Q, and M_k = E L^k = e^((k-1) D_k(P||Q)). The moment
of the average ratio is a coefficient of a power (multinomial formula):

    E ((L_1 + ... + L_t)/t)^a = a! [x^a] (sum_k M_k (x/t)^k/k!)^t.

As M_0 = M_1 = 1, the sum over k is e^(x/t) + r(x) with r(x) = sum_(k >= 2) (M_k - 1) (x/t)^k/k!. The binomial formula gives

    E ((L_1 + ... + L_t)/t)^a - 1 = sum_(j=1)^(min(t, a/2)) C(t, j) sum_(m=2j)^a a!/(a-m)! (1 - j/t)^(a-m) [x^m] r(x)^j.

All terms are positive. So this moment minus 1 is computed with a small relative error, and so is the Renyi divergence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shufflebounds._base.quadrature import log_sums
from shufflebounds._base.types import ULP, FloatArray

__all__ = ["LARGEST_ORDER", "allocation_renyi", "allocation_renyis"]

LARGEST_ORDER = 256
"""Largest order for which the sum is evaluated, in about 0.2 s. The time grows with the third power of the order. Raised: longer
run time. Lowered: less tight divergences of larger orders."""


def allocation_renyi(order: int, steps: int, divergences: FloatArray, *, upper: bool) -> float:
    """Return the bound of :func:`allocation_renyis` for one order, given the Renyi divergences D_2(P||Q), ..., D_order(P||Q)."""
    return float(allocation_renyis([order], steps, divergences, upper=upper)[0])


def allocation_renyis(orders: Sequence[int], steps: int, divergences: FloatArray, *, upper: bool) -> FloatArray:
    """Return bounds of the Renyi divergences between the average and Q^steps, for whole orders from 2 to LARGEST_ORDER.

    The average is the distribution of all outputs, averaged over the step that uses the record. `divergences` are upper (or lower)
    bounds of the divergences D_2(P||Q), ..., D_a(P||Q) of one step, up to the largest order a. The powers of the series r (module
    docstring) are computed once for all orders.
    """
    largest = max(orders)
    if not np.isfinite(divergences).all():
        return np.full(len(orders), np.inf)
    k, a = np.arange(2.0, largest + 1), np.array(orders)
    # `log_r` has the logs of the coefficients of the series r, and `falling` the logs of a!/(a - m)!, with a row for each order a.
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, largest + 1)))])
    rest = a[:, None] - np.arange(largest + 1.0)
    falling = log_factorial[a][:, None] - np.where(rest >= 0, log_factorial[np.maximum(rest, 0).astype(np.intp)], np.inf)
    grown = (k - 1) * divergences
    with np.errstate(divide="ignore", over="ignore"):
        log_excess = np.where(grown < 30, np.log(np.expm1(np.minimum(grown, 30.0))), grown + np.log1p(-np.exp(-grown)))
    log_r = np.concatenate([[-np.inf, -np.inf], log_excess - log_factorial[2:] - k * math.log(steps)])
    total, power, log_choices = np.full(len(orders), -np.inf), np.append(0.0, np.full(largest, -np.inf)), 0.0
    for j in range(1, min(steps, largest // 2) + 1):
        power = _series_product(power, log_r)
        log_choices += math.log((steps - j + 1) / j)
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = falling + np.where(rest > 0, rest * np.log1p(-j / steps), 0.0) + power
        total = np.logaddexp(total, log_choices + log_sums(terms))
    # The moment of order a takes at most a/2 products of power series, computed with logarithms that are below `size` in absolute
    # value. Each product adds at most 3 roundings of such a logarithm to the error of a term, and the summation adds at most a
    # roundings.
    size = 2 + log_factorial[a] + a * math.log(steps) + np.maximum.accumulate(grown)[a - 2]
    total += (4 * a * size * ULP) * (1 if upper else -1)
    positive = np.maximum(total, 0.0) + np.log1p(np.exp(-np.abs(total)))
    return np.asarray(positive / (a - 1) * (1 + (4 * ULP if upper else -4 * ULP)))


def _series_product(log_first: FloatArray, log_second: FloatArray) -> FloatArray:
    """Return the log coefficients of the product of two power series of equal length, truncated at this length."""
    size = log_first.size
    # Row m has the terms first_i second_(m - i); the padding has the coefficients of negative index, which are 0.
    padded = np.concatenate([np.full(size - 1, -np.inf), log_second])
    shifted = np.lib.stride_tricks.sliding_window_view(padded, size)[:, ::-1]
    return log_sums(log_first + shifted)
