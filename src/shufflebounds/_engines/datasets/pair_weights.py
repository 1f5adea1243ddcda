r"""The weights of the signed distribution W of the messages of s drawn pairs of users, in the proof of docs/theorems/worst-dataset.

W has weights :math:`\omega_0 = 1, \omega_1, \ldots, \omega_K`, :math:`K \le s`. The error term of the bound has the factors
:math:`|\omega_{k-1} - \omega_k|`, k = 1, ..., K + 1. The bound is valid if W is nonnegative. Let all likelihood ratios be in
:math:`[e^{-\varepsilon_0}, e^{\varepsilon_0}]`. By the section "The conditions for W >= 0" of that page, s + 1 linear conditions on
the weights are then enough:

.. math:: \sum_k \omega_k (-\gamma)^k \bar e_k(t_1, \ldots, t_s) \ge 0, \qquad 0 \le \gamma < \tfrac12,

where :math:`\bar e_k` is the mean of the products of k of the :math:`t_i`, of which j are :math:`\tau` and the others
:math:`-\tau/C`, j = 0, ..., s, with :math:`C = \cosh \varepsilon_0` and :math:`\tau = 2 (C - 1)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate, pairwise, repeat
from typing import NamedTuple

import numpy as np

from shufflebounds._base.limits import CACHED_ANSWERS
from shufflebounds._base.types import ULP, FloatArray

__all__ = ["BLOCK_PAIRS", "EXCEEDED", "ORDERS", "Weights", "bounded_choices", "negative_mass", "signed_choices", "signed_product"]

ORDERS = 16
"""Largest order k of the error term whose weight is kept; a geometric series bounds the sum of later orders."""

_MOST = 8
"""Largest K of weights from a linear program. Lowered: a larger error term at small delta. Raised: no smaller error term in the
cases that were tried."""

_FALL = 0.05
"""Ratio of the terms of consecutive orders that the linear program assumes. From .003 to .1 the weights agree to three digits."""

_STEP = Fraction(1, 10**9)
"""The weights of a linear program are multiplied by 1 - 1e-9, so that W is positive at every corner: the solution lies on the
boundary of the constraints. Lowered to 0: the conditions, computed by other formulas, are violated by rounding errors."""

_DIGITS = 2**160
"""The weights of a linear program are multiples of 1/_DIGITS. At a corner some terms of W are above 1e12 and cancel to 0; rounding
the weights to doubles would change W there by 1e-4."""

_LARGEST_STEP = Fraction(1, 1000)
"""Largest x for which the weights of a linear program may be multiplied by 1 - x. An x above _STEP is needed if the simplex method,
because of rounding errors, ended at a vertex that violates some constraints."""

_ROUNDS, _LEVEL = 300, 1e-11
"""Largest number of steps of the simplex method (20 are usual), and the largest size of a number that it treats as 0."""

_MORE = (1.0, 1.2, 1.35, 2.0, 3.0, 4.0)
"""Numbers s of drawn pairs that are tried, as multiples of C - 1 = cosh(eps0) - 1. No smaller number is tried. Large
multiples serve a small delta, where the error term is larger than the increase of the main term: 3 and 4 for a delta below about
1e-10 and 1000 users."""

_PAIRS = (*range(1, 9), *range(10, 21, 2), 23, 27, 31, 35, 40, 45, 52, 60, 70, 80, 95, 110, 130, 150, 175, 200, 230, 260, 300, 350,
          400, 450, 550, 700, 850, 1000, 1500, 2200, 3300, 5000, 10000, 30000)
"""Numbers s of drawn pairs that are tried with a signed part, c_- > 0. The largest ones serve a million users with little noise."""

BLOCK_PAIRS = (*range(2, 25, 2), 28, 32, 38, 46, 54, 64, 78, 94, 112, 134, 160, 200)
"""Even numbers s of drawn pairs that are tried if the pairs are matched within blocks of four users."""

_SIGNED = 0.1
"""Largest c_- that is tried."""

EXCEEDED = np.geomspace(1 / 32, 32.0, 81)
"""Values of w at which Pr[likelihood ratio > A (1 + w)] is bounded, to bound c_- (`negative_mass`); A = 1 + s for s drawn pairs.
Twice as many values reduce the bound of c_- by 6 to 8 %."""

_TIMES = 1 + np.concatenate([[0.0], EXCEEDED])
"""Likelihood ratios, as multiples of A = 1 + s, at which their tail probability is bounded."""


class Weights(NamedTuple):
    """The number s of drawn pairs, the mass c_- of the negative part of W, and logs of the factors of the error term.

    The error term has the factor abs(omega_(k-1) - omega_k) for each order k. `log_steps` has the logs of these factors for k =
    1..ORDERS. For k >= ORDERS, the factor of order k + 1 is at most `later`/(2k + 3) times that of order k; `later` is 0 if all
    factors of orders above ORDERS are 0. `omegas` are the exact weights of a linear program, valid for C - 1 <= `less`, or None if
    W is the product of :func:`signed_product`.
    """

    pairs: int
    signed: float
    log_steps: FloatArray
    later: float = 0.0
    omegas: tuple[Fraction, ...] | None = None
    less: float = math.inf


def _steps(weights: tuple[Fraction, ...]) -> FloatArray:
    """Return the logs of abs(omega_(k-1) - omega_k) for k = 1..ORDERS, given omega_1..omega_K, rounded up."""
    steps = np.zeros(ORDERS)
    steps[: len(weights) + 1] = [float(abs(one - other)) for one, other in pairwise([Fraction(1), *weights, Fraction(0)])]
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(steps) + 8 * ULP)


def bounded_choices(local_eps: float, most: int) -> list[Weights]:
    """Return numbers s of drawn pairs, s <= `most`, with weights for which c_- = 0, for likelihood ratios up to e^local_eps."""
    # For larger budgets eps0, s >= C - 1 = cosh(eps0) - 1 drawn pairs would need more than 2**53 users.
    if not local_eps < 36:
        return []
    half = math.sinh(0.5 * local_eps * (1 + 8 * ULP))
    less = 2 * half * half * (1 + 16 * ULP)
    # C - 1 = cosh(eps0) - 1 is rounded up to 12 bits, so that many randomizers share cached weights.
    scale = 2.0 ** (math.frexp(less)[1] - 12)
    less = math.ceil(less / scale) * scale
    choices = []
    for pairs in sorted({max(1, math.ceil(more * less)) for more in _MORE}):
        if pairs <= most and (weights := _optimal(pairs, less)) is not None:
            choices.append(Weights(pairs, 0.0, _steps(weights), omegas=weights, less=less))
    return choices


@lru_cache(CACHED_ANSWERS)
def _optimal(pairs: int, less: float) -> tuple[Fraction, ...] | None:
    """Return omega_1..omega_K with W > 0 for C - 1 = `less` and nearly the smallest error term, or None if none are found."""
    most = min(pairs, _MOST)
    if pairs >= 4096:
        # There are too many corners to verify each of them.
        return None
    # The unknowns of the linear program are the positive and negative parts of d_k = omega_(k-1) - omega_k, k = 1..K + 1; the d_k
    # have the sum 1. The constraints are W >= 0 at every corner, where W is the sum of the omega_k times a row of `terms`, or of
    # the d_k times a column of `sums`. The dual program is solved: it has one unknown for the equation and one for each corner, the
    # simplex method starts at its vertex 0, and its multipliers are the parts of the d_k.
    terms = np.column_stack([np.ones(pairs + 1), _corners(pairs, most, less) * (-0.5) ** np.arange(1.0, most + 1)])
    sums = np.cumsum(terms, axis=1).T
    sums = np.concatenate([np.ones((most + 1, 1)), sums], axis=1)
    costs = np.tile(_FALL ** np.arange(most + 1.0), 2)
    columns = np.concatenate([sums, -sums]) / costs[:, None]
    columns /= np.abs(columns).max(axis=0)
    used = _basis(columns)
    if used is None:
        return None
    # Compute the vertex of this basis exactly: parts of the d_k whose slack variable is in the basis are 0, and W is 0 at the
    # corners in the basis.
    corners = [place - 1 for place in used if 0 < place < columns.shape[1]]
    parts = sorted({place % (most + 1) for place in range(2 * (most + 1)) if place + columns.shape[1] not in used})
    if len(parts) != len(corners) + 1:
        return None
    exact = [_exact_corner(pairs, most, less, corner) for corner in corners]
    rows = [[sum(row[: place + 1], Fraction(0)) for place in parts] for row in exact]
    steps = _solved([[Fraction(1)] * len(parts), *rows], [Fraction(1)] + [Fraction(0)] * len(rows))
    if steps is None:
        return None
    weights = [sum((step for step, place in zip(steps, parts) if place >= k), Fraction(0)) for k in range(1, most + 1)]
    weights = [Fraction(round(omega * _DIGITS), _DIGITS) for omega in weights]
    # Multiplying the weights by 1 - x replaces W by (1 - x) W + x times the product of all R_a R_j.
    step = _STEP + max(Fraction(0), -_least(pairs, less, tuple(weights)))
    return tuple(omega * (1 - step) for omega in weights) if step < _LARGEST_STEP else None


def _basis(columns: FloatArray) -> list[int] | None:
    """Maximize the first entry of y >= 0 with `columns` @ y <= 1 by the simplex method; return the indices of the basis, or None if
    it fails.

    An index that is at least the number of columns belongs to the slack variable of a row.
    """
    rows = len(columns)
    whole = np.concatenate([columns, np.eye(rows)], axis=1)
    gains, used = np.zeros(whole.shape[1]), np.arange(columns.shape[1], whole.shape[1])
    gains[0] = 1.0
    for _ in range(_ROUNDS):
        inverse = np.linalg.inv(whole[:, used])
        rates = gains - gains[used] @ inverse @ whole
        rates[used] = 0.0
        enters = int(rates.argmax())
        if rates[enters] <= _LEVEL:
            return [int(place) for place in used]
        change, level = inverse @ whole[:, enters], np.maximum(inverse.sum(axis=1), 0.0)
        ratios = np.divide(level, change, out=np.full(rows, np.inf), where=change > _LEVEL)
        leaves = int(ratios.argmin())
        if ratios[leaves] == np.inf:
            return None
        used[leaves] = enters
    return None


def _solved(rows: list[list[Fraction]], right: list[Fraction]) -> list[Fraction] | None:
    """Return the solution of linear equations in rational numbers, or None if it does not exist or is not unique."""
    left = [[*row, value] for row, value in zip(rows, right)]
    for place in range(len(left)):
        pivot = next((i for i in range(place, len(left)) if left[i][place]), None)
        if pivot is None:
            return None
        left[place], left[pivot] = left[pivot], left[place]
        left[place] = [entry / left[place][place] for entry in left[place]]
        for i, row in enumerate(left):
            if i != place and row[place]:
                left[i] = [entry - row[place] * other for entry, other in zip(row, left[place])]
    return [row[-1] for row in left]


def _corners(pairs: int, most: int, less: float) -> FloatArray:
    """Return the means of the products of k of the t_i, k = 1..most, at the corners j = 0..pairs, shape (pairs + 1, most).

    At the corner j, j of the t_i (module docstring) have their largest and the others their smallest value.
    """
    high, low, j = 2 * less, -2 * less / (1 + less), np.arange(pairs + 1.0)
    # If j of the t_i are `high` and the other s - j are `low`, their elementary symmetric polynomial of degree k is the sum over i
    # of C(j, i) high^i C(s - j, k - i) low^(k - i).
    parts = [[np.ones_like(j)], [np.ones_like(j)]]
    for i in range(most):
        parts[0].append(parts[0][-1] * (j - i) / (i + 1) * high)
        parts[1].append(parts[1][-1] * (pairs - j - i) / (i + 1) * low)
    return np.array([sum(parts[0][i] * parts[1][k - i] for i in range(k + 1)) / math.comb(pairs, k) for k in range(1, most + 1)]).T


def _exact_corner(pairs: int, most: int, less: float, corner: int) -> list[Fraction]:
    """Return the factors of omega_0 = 1, omega_1, ..., omega_K in the sum W (module docstring) at the corner with this index j."""
    high = 2 * Fraction(less)
    low = -high / (1 + high / 2)
    counts = (corner, high), (pairs - corner, low)
    parts = [[math.comb(number, i) * value**i for i in range(most + 1)] for number, value in counts]
    return [sum((parts[0][i] * parts[1][k - i] for i in range(k + 1)), Fraction(0)) * Fraction(-1, 2) ** k / math.comb(pairs, k)
            for k in range(most + 1)]


def _least(pairs: int, less: float, weights: tuple[Fraction, ...]) -> Fraction:
    """Return the smallest value of W (module docstring) over all corners, in integer arithmetic."""
    # C - 1 = p/q is a fraction. To compute W with integers, all terms are multiplied by the integer `below` times `whole`**K.
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
    return Fraction(int(min(values)), below * whole**most)


def signed_product(pairs: int, signed: float) -> Weights:
    r"""Return the weights :math:`\omega_k = C(s, k)/s^k` with s = `pairs`, for which W is a product, and c_- = `signed`."""
    k, i = np.arange(2, ORDERS + 1), np.arange(1.0, ORDERS)
    # omega_(k-1) - omega_k = C(s, k-1)/s^(k-1) (1 - (s - k + 1)/(k s)), where the last factor is (k - 1)(s + 1)/(k s).
    with np.errstate(divide="ignore"):
        log_choices = np.cumsum(np.log(np.maximum(1 - (i - 1) / pairs, 0.0)) - np.log(i))
    steps = log_choices + np.log((k - 1) * (pairs + 1) / (k * pairs)) + 64 * ULP
    # For an order k >= ORDERS, the factor of order k + 1 is at most (1 + 1/(k^2 - 1))/k times that of order k. This is at most
    # `later`/(2k + 3), because (2k + 3)/k decreases in k.
    later = (1 + 1 / (ORDERS**2 - 1)) * (2 * ORDERS + 3) / ORDERS if pairs >= ORDERS else 0.0
    return Weights(pairs, signed, np.concatenate([[-np.inf], steps]), later)


def signed_choices(ratio_tail: Callable[[FloatArray], FloatArray]) -> list[tuple[int, float]]:
    """Return numbers s of drawn pairs, and for each the c_- (mass of the negative part of W) of :func:`signed_product`.

    The bound of delta contains the term c_- (e^eps - 1), so numbers s with c_- >= _SIGNED never give the smallest bound and are
    omitted.
    """
    beyond = ratio_tail(np.multiply.outer(1.0 + np.array(_PAIRS), _TIMES).ravel()).reshape(len(_PAIRS), -1)
    masses = [(pairs, _negative_mass(tail, pairs)) for pairs, tail in zip(_PAIRS, beyond)]
    return [(pairs, signed) for pairs, signed in masses if signed < _SIGNED]


def negative_mass(ratio_tail: Callable[[FloatArray], FloatArray], pairs: int) -> float:
    r"""Return an upper bound of c_-, the mass of the negative part of W, for :func:`signed_product`.

    Let A = 1 + s, and let A (1 + w) and A (1 + w') be the likelihood ratios R_a/R_j at two independent messages from R_a, where a
    and j are two inputs. Let F be the expectation of the positive part of :math:`(w w' - 1 + 1/A^2)/((1 + w)(1 + w'))` over the
    messages with positive w and w'. This quotient increases in w and w'. So F is at most the same expectation for independent w and
    w' with the tail probability `ratio_tail` (A (1 + x)) at x. There w and w' are rounded up to the next number of EXCEEDED. The
    negative part of the measure of one drawn pair has at most the mass F/s, and :math:`c_- = ((1 + 2 F/s)^s - 1)/2`.
    """
    return _negative_mass(ratio_tail((1.0 + pairs) * _TIMES), pairs)


def _negative_mass(beyond: FloatArray, pairs: int) -> float:
    """Return :func:`negative_mass`; `beyond` has the values of `ratio_tail` at (1 + `pairs`) t for each t of _TIMES."""
    height = 1.0 + pairs
    mass = -np.diff(beyond, append=0.0)
    smallest = (height - 1) * (height + 1) / height**2 * (1 - 8 * ULP)
    w = EXCEEDED[:, None]
    share = np.ones((w.size + 1, w.size + 1))
    share[:-1, :-1] = (w * w.T - smallest) / ((1 + w) * (1 + w.T)) + 8 * ULP
    # The last row and the last column of `share` are the limits for w = inf and for w' = inf.
    share[-1, :-1] = share[:-1, -1] = EXCEEDED / (1 + EXCEEDED)
    # The second term covers rounding errors.
    mass = np.maximum(mass, 0.0) + 4 * ULP * beyond[0]
    expectation = float(mass @ np.maximum(share, 0.0) @ mass) * (1 + 1e-9)
    return 0.5 * math.expm1(pairs * math.log1p(2 * expectation / pairs)) * (1 + 1e-9)
