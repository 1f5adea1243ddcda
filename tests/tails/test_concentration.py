"""Closed-form tail bounds: their values in exact arithmetic, and comparisons with the tails."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from shufflebounds import tails
from shufflebounds.tails.concentration import binomial_range
from tests.errors import reference

SURVEY = {x["id"].removeprefix("survey/s4_"): x for x in reference("survey")}
METHODS = ("kl", "hoeffding", "multiplicative")


def exponent(k, n, mean, method):
    """Return the published exponent to 60 digits."""
    with mp.workdps(60):
        k, n, mean = mp.mpf(k), mp.mpf(n), mp.mpf(mean)
        if method == "hoeffding":
            return -2 * n * (k / n - mean) ** 2
        if method == "multiplicative":
            e = k / (n * mean) - 1
            return -n * mean * e**2 / (2 + e)
        rest = (n - k) * mp.log((n - k) / (n * (1 - mean))) if n > k else 0
        return -(k * mp.log(k / (n * mean)) + rest)


@pytest.mark.parametrize(
    ("key", "method"),
    [
        ("hoeffding_1000_600", "hoeffding"),
        ("chernoff_kl_1000000_60", "kl"),
        ("hoeffding_1000000_60", "hoeffding"),
        ("chernoff_kl_200_90", "kl"),
        ("hoeffding_200_90", "hoeffding"),
    ],
)
def test_reference(key, method):
    p = SURVEY[key]["params"]
    got = tails.chernoff_logsf(p["k"], p["n"], float(Fraction(p["p"])), method=method)
    assert got == pytest.approx(float(SURVEY[key]["value"]), rel=1e-11)
    exact = float(SURVEY[key.replace("chernoff_kl", "binom_logsf").replace("hoeffding", "binom_logsf")]["value"])
    assert got > exact
    assert tails.binom_logsf(p["k"] - 1, p["n"], float(Fraction(p["p"]))) == pytest.approx(exact, rel=1e-13)


@given(st.integers(1, 10**9), st.floats(1e-12, 1), st.floats(0, 1), st.sampled_from(METHODS))
def test_formula_rounded_up(n, mean, part, method):
    k = math.ceil(n * (mean + (1 - mean) * part))
    got = tails.chernoff_logsf(k, n, mean, method=method)
    if Fraction(k) <= n * Fraction(mean):
        assert got == 0
        return
    exact = exponent(k, n, mean, method)
    assert got >= exact
    # Conservative rounding has the effect of a relative change of k by 2^-51.
    slope = abs(exponent(k * (1 + 1e-9), n, mean, method) - exact) / (k * 1e-9) if k * (1 + 1e-9) < n else 40
    assert got <= exact * (1 - 1e-13) + k * 2.0**-50 * slope + 1e-300 or got == 0


@given(st.integers(1, 2000), st.floats(0.001, 0.999), st.floats(0, 1))
def test_above_the_binomial(n, p, part):
    k = math.ceil(n * part)
    exact = tails.binom_logsf(k - 1, n, p)
    for method in METHODS:
        assert tails.chernoff_logsf(k, n, p, method=method) >= exact - 1e-12
        # The lower tail follows by exchanging k and n - k.
        assert tails.chernoff_logsf(n - k, n, 1 - p, method=method) >= tails.binom_logcdf(k, n, p) - 1e-12
    kl = tails.chernoff_logsf(k, n, p)
    assert kl <= tails.chernoff_logsf(k, n, p, method="hoeffding") + 1e-12
    assert kl <= tails.chernoff_logsf(k, n, p, method="multiplicative") + 1e-12


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=20), st.integers(0, 20))
def test_above_the_poisson_binomial(p, k):
    k = min(k, len(p))
    exact = tails.poisson_binom_logsf(k - 1, p)
    mean = float(sum(map(Fraction, p)) / len(p)) * (1 + 1e-15)
    for method in METHODS:
        assert tails.chernoff_logsf(k, len(p), min(mean, 1.0), method=method) >= exact - 1e-12
    t = k - float(sum(map(Fraction, p)))
    if t > 0:
        assert tails.bounded_difference_logsf(t * (1 - 1e-15), np.ones(len(p))) >= exact - 1e-12


def test_edges():
    assert tails.chernoff_logsf(5, 5, 0.25) == pytest.approx(5 * math.log(0.25), rel=1e-14)
    assert tails.chernoff_logsf(6, 5, 0.25) == -math.inf
    assert tails.chernoff_logsf(1, 5, 0.0) == -math.inf
    assert tails.chernoff_logsf(0, 5, 0.0) == 0
    assert tails.chernoff_logsf(-3.5, 5, 0.5) == 0
    assert tails.chernoff_logsf(5, 5, 1.0) == 0
    assert tails.chernoff_logsf([1, 4], 5, [[0.5], [0.9]]).shape == (2, 2)
    assert isinstance(tails.chernoff_logsf(4, 5, 0.5), float)


@given(st.floats(0, 1e6), st.lists(st.floats(0, 1e3), min_size=1, max_size=6))
def test_bounded_differences(t, widths):
    got = tails.bounded_difference_logsf(t, widths)
    squares = sum(Fraction(w) ** 2 for w in widths)
    if squares == 0:
        assert got == (-math.inf if t > 0 else 0)
        return
    exact = -2 * Fraction(t) ** 2 / squares
    assert got >= exact
    if exact > -Fraction(10) ** 300:
        assert got == pytest.approx(float(exact), rel=1e-13, abs=1e-300)


def test_privacy_losses_have_width_two_eps():
    # For a hundred randomized responses, the exact probability that the loss exceeds its mean by t is at most the bound.
    eps, k, t = 0.5, 100, 30.0
    mean = k * eps * math.tanh(eps / 2)
    least = math.ceil((mean + t + k * eps) / (2 * eps))
    exact = tails.binom_logsf(least - 1, k, 1 / (1 + math.exp(-eps)))
    assert exact < tails.bounded_difference_logsf(t, np.full(k, 2 * eps)) < 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tails.chernoff_logsf(1, 0, 0.5), "n=0"),
        (lambda: tails.chernoff_logsf(1, 2.5, 0.5), r"n holds 2\.5"),
        (lambda: tails.chernoff_logsf(1, 2, 1.5), r"mean=1\.5"),
        (lambda: tails.chernoff_logsf(math.nan, 2, 0.5), "k=nan"),
        (lambda: tails.chernoff_logsf(1, 2, 0.5, method="best"), "method='best'"),
        (lambda: tails.chernoff_logsf([1, 2], [1, 2, 3], 0.5), "must broadcast"),
        (lambda: tails.bounded_difference_logsf(-1.0, [1.0]), "t=-1"),
        (lambda: tails.bounded_difference_logsf(1.0, [-1.0]), "widths holds -1"),
        (lambda: tails.bounded_difference_logsf(1.0, [[1.0]]), "one-dimensional"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mean", [5e-324, 1e-310, 1e-300])
def test_means_close_to_zero(mean):
    # The probability of at least one success in a thousand trials is at most n * mean.
    value = tails.chernoff_logsf(1, 1000, mean)
    assert math.log(1000) + math.log(mean) <= value < -600


@pytest.mark.parametrize(("trials", "prob"), [(1000, 0.9), (1000, 0.1), (50, 0.5), (10**6, 1e-5)])
@pytest.mark.parametrize("log_tail", [-2.0, -20.0])
def test_a_range_truncates_at_most_the_stated_mass_and_is_not_wide(trials, prob, log_tail):
    low, high = binomial_range(trials, prob, log_tail)
    outside = binom.cdf(low - 1, trials, prob) + binom.sf(high, trials, prob)
    assert 0 <= low <= trials * prob <= high <= trials
    assert outside <= math.exp(log_tail)
    # By Bernstein's inequality with half of the truncated mass at either end, half of the width is at most 2 d/3 + sqrt(2 var d).
    depth = math.log(2) - log_tail
    assert high - low <= 2 * (2 * depth / 3 + math.sqrt(2 * trials * prob * (1 - prob) * depth)) + 2
