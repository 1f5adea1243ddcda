r"""The signed distribution W of the messages of s drawn pairs of users, in the proof of docs/theorems/worst-dataset.

W has weights :math:`\omega_0 = 1, \omega_1, \ldots, \omega_K`, :math:`K \le s`. It is a sum over sets of k drawn pairs, with weight
:math:`\omega_k`, in which the distributions :math:`R_a R_j` of these pairs are replaced by :math:`(R_a - R_j)^2`. The error term of
the bound has the factors :math:`|\omega_{k-1} - \omega_k|`, k = 1, ..., K + 1. Relative to the product of all :math:`R_a R_j`, W is

.. math:: \sum_k \omega_k (-\gamma)^k \bar e_k(t_1, \ldots, t_s), \qquad 0 \le \gamma < \tfrac12,

where :math:`\bar e_k` is the mean of the products of k of the :math:`t_i`. If all likelihood ratios are in
:math:`[e^{-\varepsilon_0}, e^{\varepsilon_0}]`, every :math:`t_i` is in :math:`[-\tau/C, \tau]` with
:math:`C = \cosh \varepsilon_0` and :math:`\tau = 2 (C - 1)`. The sum is affine in each :math:`t_i`, so it is nonnegative everywhere
if it is at the corners, where j of the :math:`t_i` are at the upper end and the others at the lower one. By symmetry these are
s + 1 linear conditions on the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import accumulate, repeat
from typing import NamedTuple

import numpy as np

from shufflebounds._base.limits import CACHED_ANSWERS
from shufflebounds._base.scipy_functions import linprog
from shufflebounds._base.types import ULP, FloatArray

__all__ = ["EXCEEDED", "ORDERS", "Weights", "bounded_choices", "negative_mass", "signed_choices", "signed_product"]

ORDERS = 16
"""Largest order k of the error term whose weight is kept; a geometric series bounds the sum of later orders."""

_MOST = 8
"""Largest K of weights from a linear program. Lowered: a larger error term where delta is small. Raised: no gain was seen, and for
12 the program has no accurate solution for some s."""

_FALL = 0.05
"""Ratio of the terms of consecutive orders that the linear program assumes. From .003 to .1 the weights agree to three digits."""

_STEP = 1e-9
"""The weights of a linear program are multiplied by 1 - 1e-9: its solution may violate its constraints by rounding."""

_MORE = (1.0, 1.2, 1.35, 2.0, 3.0, 4.0)
"""Numbers s of drawn pairs that are tried, as multiples of C - 1. No smaller number is tried. Large multiples serve a small delta,
where the error term is larger than the increase of the main term: 3 and 4 for a delta below about 1e-10 and 1000 users."""

_PAIRS = (*range(1, 9), *range(10, 21, 2), 23, 27, 31, 35, 40, 45, 52, 60, 70, 80, 95, 110, 130, 150, 175, 200, 230, 260, 300, 350,
          400, 450, 550, 700, 850, 1000, 1500, 2200, 3300, 5000, 10000, 30000)
"""Numbers s of drawn pairs that are tried with a signed part, c_- > 0. The largest ones serve a million users with little noise."""

_SIGNED = 0.1
"""Largest c_- that is tried."""

EXCEEDED = np.geomspace(1 / 32, 32.0, 81)
"""Values of w at which Pr[likelihood ratio > A (1 + w)] is bounded, to bound c_-; A = 1 + s for s drawn pairs. Twice as many
values reduce the bound of c_- by 6 to 8 %."""

_TIMES = 1 + np.concatenate([[0.0], EXCEEDED])
"""Likelihood ratios, as multiples of A = 1 + s, at which their tail probability is bounded."""


class Weights(NamedTuple):
    """The number s of drawn pairs, the mass c_- of the negative part of W, and logs of the factors of the error term.

    `log_steps` has the logs of abs(omega_(k-1) - omega_k) for the orders k = 1..ORDERS. For k >= ORDERS, the factor of order k + 1
    is at most `later`/(2k + 3) times that of order k; `later` is 0 if these factors are 0. `omegas` are the weights of a linear
    program, valid for C - 1 <= `less`, or None if W is a product.
    """

    pairs: int
    signed: float
    log_steps: FloatArray
    later: float = 0.0
    omegas: tuple[float, ...] | None = None
    less: float = math.inf


def _steps(weights: tuple[float, ...]) -> FloatArray:
    """Return the logs of abs(omega_(k-1) - omega_k) for k = 1..ORDERS, given omega_1..omega_K, rounded up."""
    steps = np.zeros(ORDERS)
    steps[: len(weights) + 1] = np.abs(np.diff([1.0, *weights, 0.0]))
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(steps) + 8 * ULP)


def bounded_choices(local_eps: float, most: int) -> list[Weights]:
    """Return choices of s >= 1 with weights for which c_- = 0, for likelihood ratios of at most e^local_eps.

    Parameters
    ----------
    local_eps : float
        Upper bound of the absolute logs of all likelihood ratios, or inf.
    most : int
        Largest s.
    """
    # For larger budgets s >= C - 1 would need more than 2**53 users.
    if not local_eps < 36:
        return []
    half = math.sinh(0.5 * local_eps * (1 + 8 * ULP))
    less = 2 * half * half * (1 + 16 * ULP)
    # C - 1 is rounded up to 12 bits, so that many randomizers share cached weights.
    scale = 2.0 ** (math.frexp(less)[1] - 12)
    less = math.ceil(less / scale) * scale
    found = []
    for pairs in sorted({max(1, math.ceil(more * less)) for more in _MORE}):
        if pairs <= most and (weights := _optimal(pairs, less)) is not None:
            found.append(Weights(pairs, 0.0, _steps(weights), omegas=weights, less=less))
    return found


@lru_cache(CACHED_ANSWERS)
def _optimal(pairs: int, less: float) -> tuple[float, ...] | None:
    """Return omega_1..omega_K with W >= 0 for C - 1 = `less` that nearly minimize the error term, or None if none are found."""
    most = min(pairs, _MOST)
    if pairs >= 4096:
        # There are too many corners to verify each.
        return None
    table = _corners(pairs, most, less)
    signs = -table * (-0.5) ** np.arange(1.0, most + 1)
    size = np.maximum(1.0, np.abs(signs).max(axis=1))
    # The unknowns are omega_1..omega_K and the absolute differences of consecutive ones.
    steps = np.eye(most + 1, most, -1) - np.eye(most + 1, most)
    start = np.append(1.0, np.zeros(most))
    inequalities = np.block([[signs / size[:, None], np.zeros((pairs + 1, most + 1))], [steps, -np.eye(most + 1)],
                             [-steps, -np.eye(most + 1)]])
    solution = linprog(np.concatenate([np.zeros(most), _FALL ** np.arange(most + 1.0)]), inequalities,
                       np.concatenate([1 / size, -start, start]), bounds=[(-10, 10)] * most + [(0, None)] * (most + 1))
    if solution.x is None:
        return None
    weights = tuple(float(omega) * (1 - _STEP) for omega in solution.x[:most])
    return weights if _nonnegative(pairs, less, weights) else None


def _corners(pairs: int, most: int, less: float) -> FloatArray:
    """Return the mean of the products of k of the t_i, k = 1..most, at the corners j = 0..pairs, shape (pairs + 1, most)."""
    high, low, j = 2 * less, -2 * less / (1 + less), np.arange(pairs + 1.0)
    # An elementary symmetric polynomial of the t_i is a sum of products of C(j, i) high^i and C(s - j, k - i) low^(k - i).
    parts = [[np.ones_like(j)], [np.ones_like(j)]]
    for i in range(most):
        parts[0].append(parts[0][-1] * (j - i) / (i + 1) * high)
        parts[1].append(parts[1][-1] * (pairs - j - i) / (i + 1) * low)
    return np.array([sum(parts[0][i] * parts[1][k - i] for i in range(k + 1)) / math.comb(pairs, k) for k in range(1, most + 1)]).T


def _nonnegative(pairs: int, less: float, weights: tuple[float, ...]) -> bool:
    """Return whether W is nonnegative at every corner, in integer arithmetic."""
    # With C - 1 = p/q, all terms are multiplied by the same positive integer.
    p, q = less.as_integer_ratio()
    ratios = [(1, 1), *(omega.as_integer_ratio() for omega in weights)]
    below = math.lcm(*(bottom * math.comb(pairs, k) for k, (_, bottom) in enumerate(ratios)))
    most, whole = len(weights), q * (p + q)
    factors = [(-1) ** k * top * (below // (bottom * math.comb(pairs, k))) * whole ** (most - k)
               for k, (top, bottom) in enumerate(ratios)]
    high, low = [(p * (p + q)) ** i for i in range(most + 1)], [(-p * q) ** i for i in range(most + 1)]
    row = np.array([sum(factor * sum(math.comb(j, i) * math.comb(pairs - j, k - i) * high[i] * low[k - i] for i in range(k + 1))
                        for k, factor in enumerate(factors)) for j in range(most + 1)], dtype=object)
    # The value at corner j is a polynomial in j of degree at most K, so the differences of K + 1 values give every value exactly.
    values: Iterable[int] = repeat(np.diff(row, most)[0], pairs + 1 - most)
    for order in reversed(range(most)):
        values = accumulate(values, initial=np.diff(row, order)[0])
    return min(values) >= 0


def signed_product(pairs: int, signed: float) -> Weights:
    r"""Return the weights :math:`\omega_k = C(s, k)/s^k` with s = `pairs`, for which W is a product, and c_- = `signed`."""
    k, i = np.arange(2, ORDERS + 1), np.arange(1.0, ORDERS)
    # omega_(k-1) - omega_k = C(s, k-1)/s^(k-1) (1 - (s - k + 1)/(k s)), where the last factor is (k - 1)(s + 1)/(k s).
    with np.errstate(divide="ignore"):
        log_choices = np.cumsum(np.log(np.maximum(1 - (i - 1) / pairs, 0.0)) - np.log(i))
    steps = log_choices + np.log((k - 1) * (pairs + 1) / (k * pairs)) + 64 * ULP
    # The factor of order k + 1 is at most (1 + 1/(k^2 - 1))/k times that of order k, and (2k + 3)/k decreases in k.
    later = (1 + 1 / (ORDERS**2 - 1)) * (2 * ORDERS + 3) / ORDERS if pairs >= ORDERS else 0.0
    return Weights(pairs, signed, np.concatenate([[-np.inf], steps]), later)


def signed_choices(ratio_tail: Callable[[FloatArray], FloatArray]) -> list[tuple[int, float]]:
    """Return numbers s of drawn pairs, and for each the c_- of :func:`signed_product`.

    The bound of delta contains the term c_- (e^eps - 1), so numbers of pairs with c_- >= _SIGNED are never the best and omitted.
    """
    beyond = ratio_tail(np.multiply.outer(1.0 + np.array(_PAIRS), _TIMES).ravel()).reshape(len(_PAIRS), -1)
    found = [(pairs, _negative_mass(tail, pairs)) for pairs, tail in zip(_PAIRS, beyond)]
    return [(pairs, signed) for pairs, signed in found if signed < _SIGNED]


def negative_mass(ratio_tail: Callable[[FloatArray], FloatArray], pairs: int) -> float:
    r"""Return an upper bound of c_- for :func:`signed_product`.

    Two independent messages of users with the same input a have the likelihood ratios r = A (1 + w) and r' = A (1 + w') of R_a to
    R_j, the distribution for another input j, with A = 1 + s. F is the expectation of the positive part of
    :math:`(w w' - 1 + 1/A^2)/((1 + w)(1 + w'))` for positive w and w'. The negative part of the measure of one drawn pair has at
    most the mass F/s, and :math:`c_- = ((1 + 2 F/s)^s - 1)/2`. The quotient increases in w and w'. So F is at most the expectation
    for two independent variables with :math:`\Pr[W > w]` equal to the bound `ratio_tail` at A (1 + w), each rounded up to the next
    number of EXCEEDED.
    """
    return _negative_mass(ratio_tail((1.0 + pairs) * _TIMES), pairs)


def _negative_mass(beyond: FloatArray, pairs: int) -> float:
    """Return :func:`negative_mass` from the values of `ratio_tail` at 1 + `pairs` times each of _TIMES."""
    height = 1.0 + pairs
    mass = -np.diff(beyond, append=0.0)
    least = (height - 1) * (height + 1) / height**2 * (1 - 8 * ULP)
    w = EXCEEDED[:, None]
    share = np.ones((w.size + 1, w.size + 1))
    share[:-1, :-1] = (w * w.T - least) / ((1 + w) * (1 + w.T)) + 8 * ULP
    # The last entries are the limits for w = inf or w' = inf.
    share[-1, :-1] = share[:-1, -1] = EXCEEDED / (1 + EXCEEDED)
    # The second term covers rounding errors.
    mass = np.maximum(mass, 0.0) + 4 * ULP * beyond[0]
    expectation = float(mass @ np.maximum(share, 0.0) @ mass) * (1 + 1e-9)
    return 0.5 * math.expm1(pairs * math.log1p(2 * expectation / pairs)) * (1 + 1e-9)
