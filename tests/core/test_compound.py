"""The kernel of the clone sum E max(0, D - u M) against direct sums; for given weights of M, also against the binomial kernel."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds._core import _compound
from shufflebounds.tails import binom_logpmf
from tests.errors import WIDE, distance, log_of, to_decimal
from tests.strategies import thinned


def direct(n, rate, u):
    """Return E max(0, D - u M) as a fraction: M ~ Bin(n, rate), and D is the sum of M fair signs +1 or -1."""
    total = Fraction(0)
    for m in range(1, n + 1):
        weight = math.comb(n, m) * rate**m * (1 - rate) ** (n - m)
        inner = sum(math.comb(m, a) * max(Fraction(0), 2 * a - m - u * m) for a in range(m + 1))
        total += weight * inner / 2**m
    return total


def inside(lower, exact, upper, slack=0.0):
    """Return whether lower <= exact <= upper up to `slack`, in exact decimals."""
    e = to_decimal(exact)
    return WIDE.subtract(to_decimal(lower), e) <= slack and WIDE.subtract(e, to_decimal(upper)) <= slack


@pytest.mark.parametrize("rate", [2.0**-12, 0.25, 0.7, 0.984375, 1.0])
@pytest.mark.parametrize("n", thinned([1, 2, 3, 5, 8, 12], 2))
def test_small_n_by_enumeration(n, rate):
    for u in [0.0, 2.0**-30, 0.125, 0.25, 0.4375, 0.5, 0.515625, 0.75, 0.875, 1 - 2.0**-20, 1 - 2.0**-52]:
        exact = log_of(direct(n, Fraction(rate), Fraction(u)))
        lower, upper = _compound.log_sign_excess(n, rate, u, 1 - u)
        assert inside(lower, exact, upper)
        assert upper - lower < 3e-12


def test_ends_of_the_slope():
    assert _compound.log_sign_excess(5, 0.5, 1.0, 0.0) == (-math.inf, -math.inf)
    for bad in (
        (0, 0.5, 0.1, 0.9),
        (1.5, 0.5, 0.1, 0.9),
        (5, 0.0, 0.1, 0.9),
        (5, 1.5, 0.1, 0.9),
        (5, 0.5, -0.1, 0.9),
        (2.0**53 + 2, 0.5, 0.1, 0.9),
        (5, math.nan, 0.1, 0.9),
        (math.nan, 0.5, 0.1, 0.9),
        (5, 0.5, math.nan, 0.9),
    ):
        assert all(math.isnan(x) for x in _compound.log_sign_excess(*bad)), bad


@given(st.integers(1, 10**7), st.integers(1, 64), st.integers(0, 2**12 - 1))
def test_bounds_are_ordered_and_close(n, rate, u):
    rate, u = rate / 64, u / 2**12
    lower, upper = _compound.log_sign_excess(n, rate, u, 1 - u)
    assert lower <= upper <= math.log(n)
    # The gap has three causes: the truncated part, the errors of the starting values, and a few ulp of a logarithm.
    assert upper - lower <= 1e-10 + 200 * math.ulp(lower)


@given(st.integers(1, 3000), st.integers(1, 15), st.integers(0, 2**8 - 1))
def test_weighted_form_agrees(users, rate, u):
    # The identity is Pr[Bin(n - 1, r) = m - 1]/m = Pr[Bin(n, r) = m]/(n r).
    rate, u = rate / 16, u / 2**8
    weights = binom_logpmf(np.arange(users), users - 1, rate)
    value, error = _compound.log_weighted_excess(0.0, weights, u, 1 - u)
    lower, upper = _compound.log_sign_excess(users, rate, u, 1 - u)
    shift = math.log(users * rate)
    slack = error + 1e-12 + 64 * math.ulp(value)
    assert 0 < error < 1e-9
    assert lower - shift - slack <= value <= upper - shift + slack


@pytest.mark.parametrize("first", [0, 3, 40])
@pytest.mark.parametrize("u", [0.125, 0.75])
def test_weighted_form_by_enumeration(first, u):
    # The weights are multiples of a power of 2, and one of them is 0.
    weights = [Fraction(1, 2), Fraction(0), Fraction(1, 8), Fraction(3, 8)]
    logs = np.array([math.log(w) if w else -math.inf for w in weights])
    exact = Fraction(0)
    for i, w in enumerate(weights):
        m = first + i + 1
        inner = sum(math.comb(m, a) * max(Fraction(0), 2 * a - m - Fraction(u) * m) for a in range(m + 1))
        exact += w * inner / 2**m / m
    value, error = _compound.log_weighted_excess(float(first), logs, u, 1 - u)
    assert distance(value, log_of(exact)) < error + 2e-15


def test_all_weights_zero():
    value, _ = _compound.log_weighted_excess(0.0, np.full(5, -np.inf), 0.25, 0.75)
    assert value == -math.inf


def test_empty_weights_are_refused():
    with pytest.raises(ValueError, match="must not be empty"):
        _compound.log_weighted_excess(0.0, np.empty(0), 0.25, 0.75)


@given(st.integers(1, 14), st.integers(1, 63), st.integers(1, 2**10 - 1), st.fractions(0, 1))
def test_the_slope_bounds_the_sum_ahead_of_small_n(n, rate, u, part):
    rate, u = Fraction(rate, 64), Fraction(u, 2**11)
    upper = _compound.log_sign_excess(n, float(rate), float(u), float(1 - u))[1]
    pull, still = _compound.log_sign_ahead(n, float(rate), float(u), float(1 - u))
    step = part * max(Fraction(0), Fraction(still) - u)
    bound = upper + math.log1p(-pull * float(step))
    assert inside(bound - 1e-11, log_of(direct(n, rate, u + step)), bound, 1e-15)


@given(st.floats(3, 7), st.floats(-2, 0), st.floats(0.02, 6), st.floats(0, 1))
def test_the_slope_bounds_the_sum_ahead_of_parallel_runs(log_users, log_rate, x, part):
    n, rate = math.floor(10**log_users), 10**log_rate
    u = min(0.49, x / math.sqrt(n * rate))
    upper = _compound.log_sign_sweep(n, rate, u, 1 - u)[1]
    pull, still = _compound.log_sign_ahead(n, rate, u, 1 - u)
    if pull == 0:
        # the sum was taken along the contour, where the slope is not known
        return
    ahead = u + part * max(0.0, still - u)
    lower, after = _compound.log_sign_sweep(n, rate, ahead, 1 - ahead)
    bound = upper + math.log1p(-pull * (ahead - u))
    assert lower <= bound
    assert abs(after - bound) < 1e-10
