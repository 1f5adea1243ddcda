"""Compound binomial tails against exact sums of fractions and the binomial identity."""

import math
from fractions import Fraction
from math import comb

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import tails


def exact(k, first, weights, p):
    """Return Pr[X = k], Pr[X <= k] and Pr[X > k] as fractions."""
    pmf = {}
    for i, weight in enumerate(weights):
        for j in range(first + i + 1):
            pmf[j] = pmf.get(j, 0) + weight * comb(first + i, j) * p**j * (1 - p) ** (first + i - j)
    return pmf.get(k, Fraction(0)), sum(v for j, v in pmf.items() if j <= k), sum(v for j, v in pmf.items() if j > k)


@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(1, 1024), Fraction(7, 8)])
def test_exact_small(p):
    weights = [Fraction(1, 2), Fraction(1, 4), Fraction(0), Fraction(1, 4)]
    with np.errstate(divide="ignore"):
        logs = np.log([float(w) for w in weights])
    functions = (tails.compound_binom_logpmf, tails.compound_binom_logcdf, tails.compound_binom_logsf)
    for first in (0, 1, 6):
        for k in range(-1, 12):
            for function, true in zip(functions, exact(k, first, weights, p)):
                value = function(k, first, logs, float(p))
                if true == 0:
                    assert value == -math.inf
                else:
                    with mpmath.workdps(40):
                        reference = mpmath.log(mpmath.mpf(true.numerator) / true.denominator)
                    assert abs(value - reference) <= 1e-13 * max(abs(reference), 1e-300) + (1e-14 if reference < -0.5 else 0)


@given(n=st.integers(1, 400), s=st.floats(0.01, 0.99), p=st.floats(0.01, 0.99), z=st.floats(-1, 2))
@settings(max_examples=25, deadline=None)
def test_binomial_numbers_of_trials_give_a_binomial_distribution(n, s, p, z):
    sizes = tails.binom_logpmf(np.arange(n + 1), n, s)
    k = min(max(round(n * s * p * (1 + z)), 0), n)
    # s * p is rounded, which changes the logarithm by at most n ulp.
    slack = 1e-12 + 1e-15 * n
    assert tails.compound_binom_logpmf(k, 0, sizes, p) == pytest.approx(tails.binom_logpmf(k, n, s * p), rel=1e-12, abs=slack)
    assert tails.compound_binom_logsf(k, 0, sizes, p) == pytest.approx(tails.binom_logsf(k, n, s * p), rel=1e-9, abs=slack)


def test_shapes_and_floors():
    die = np.full(6, -math.log(6))
    k = np.array([[0, 1.5], [2, np.inf]])
    assert tails.compound_binom_logpmf(k, 1, die, 0.5)[0, 1] == -np.inf
    assert tails.compound_binom_logcdf(1.5, 1, die, 0.5) == tails.compound_binom_logcdf(1, 1, die, 0.5)
    assert tails.compound_binom_logcdf(k, 1, die, 0.5)[1, 1] == 0
    assert isinstance(tails.compound_binom_logsf(0, 1, die, 0.5), float)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ((math.nan, 0, [0.0], 0.5), "k has a NaN"),
        ((0, -1, [0.0], 0.5), "first=-1"),
        ((0, 0, [], 0.5), "log_weights has shape"),
        ((0, 0, [[0.0]], 0.5), "log_weights has shape"),
        ((0, 0, [-1.0], 0.5), "log_weights sum to"),
        ((0, 0, [0.1], 0.5), "log_weights holds"),
        ((0, 0, [math.nan], 0.5), "log_weights holds"),
        ((0, 0, [0.0], 1.5), "p=1.5"),
        ((0, 2**53, [-math.log(2)] * 2, 0.5), "must stay within"),
    ],
)
def test_bad_input(arguments, named):
    with pytest.raises(ValueError, match=named):
        tails.compound_binom_logpmf(*arguments)
