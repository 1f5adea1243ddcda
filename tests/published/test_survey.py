"""The survey's published formulas: both numbers of each counterexample are computed by another method."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds import published
from shufflebounds.selection import SVTScales, svt_scales
from tests.errors import reference
from tests.selection.test_selection import failure_law

SURVEY = {x["id"].removeprefix("survey/s4_"): x for x in reference("survey")}
NAMES = [name for name in published.__all__ if name.startswith("das2022_")]


def value(key):
    return float(SURVEY[key]["value"])


@pytest.mark.parametrize("name", NAMES)
def test_verdicts(name):
    form = getattr(published, name)
    if name in ("das2022_numeric_sparse_scale", "das2022_small_db_cube", "das2022_small_db_error", "das2022_sparse_gaussian_eps"):
        assert form.verdict == "unproven"
        with pytest.raises(ValueError, match="no counterexample"):
            form.counterexample()
        return
    claim, truth, case = form.counterexample()
    assert case
    # A false lower bound or mean is too large; every other false number is too small.
    if name in ("das2022_point_sum_tradeoff", "das2022_point_rounding"):
        assert claim > truth
    else:
        assert claim < truth
    assert form.verdict == "false"


def test_hoeffding():
    # The enumeration covers all outcomes of ten equal bits, and of ten independent bits, for which the bound is valid.
    claim, truth, _ = published.das2022_hoeffding.counterexample()
    assert truth == sum(0.5 for bit in (0, 1) if abs(10 * bit - 5) > 4.5)
    independent = sum(2.0**-10 for bits in itertools.product((0, 1), repeat=10) if abs(sum(bits) - 5) > 4.5)
    assert independent <= claim < truth


def test_gaussian_sigma():
    sigma = published.das2022_gaussian_sigma(0.1, 1e-6)
    assert sigma == pytest.approx(value("gauss_classic_.1_1e-6"), rel=1e-14)
    assert published.das2022_gaussian_sigma(8.0, 1e-5) == pytest.approx(value("gauss_classic_8_1e-5"), rel=1e-14)
    with mp.workdps(30):
        mu = 1 / mp.mpf(published.das2022_gaussian_sigma(10.0, 1e-5))
        exact = mp.ncdf(mu / 2 - 10 / mu) - mp.exp(10) * mp.ncdf(-mu / 2 - 10 / mu)
    assert published.das2022_gaussian_sigma.counterexample().truth == pytest.approx(float(exact), rel=1e-10)


def test_above_threshold():
    with mp.workdps(20):
        def below(x):
            return mp.exp(x / 4) / 2 if x < 0 else 1 - mp.exp(-x / 4) / 2

        def chance(low, high):
            return mp.quad(
                lambda z: mp.exp(-abs(z) / 2) / 4 * below(z - low) ** 5 * (1 - below(z - high)) ** 5, [-mp.inf, 0, 1, mp.inf]
            )

        exact = mp.log(chance(0, 1) / chance(1, 0))
    assert published.das2022_above_threshold_eps.counterexample().truth == pytest.approx(float(exact), rel=1e-9)


@pytest.mark.slow
def test_numeric_sparse():
    claim, truth, _ = published.das2022_numeric_sparse_accuracy.counterexample()
    scales = svt_scales(1.0, 1e-6, 1, numeric=True, method="advanced")
    assert failure_law(scales, 10, claim) > 0.05
    assert failure_law(scales, 10, truth) <= 0.05
    # With the corrected root the error is still too small: the noise of the released number alone exceeds it.
    corrected = claim * math.sqrt(math.sqrt(512) + 1)
    assert math.exp(-corrected / scales.answer) == pytest.approx(value("ns_fail_prob"), rel=1e-12)
    assert failure_law(SVTScales(*scales), 10, corrected) > 0.05
    # One answer is released with noise of the published scale.
    budget = 1 / published.das2022_numeric_sparse_answer(1, 1e-6)
    with mp.workdps(20):
        # The difference of the densities is positive up to the point where they cross.
        cross = (1 - 0.001 / budget) / 2

        def excess(x):
            return mp.mpf(budget) / 2 * (mp.exp(-abs(x) * budget) - mp.exp(0.001 - abs(x - 1) * budget))

        exact = mp.quad(excess, [-mp.inf, -1000, 0, cross])
    assert published.das2022_numeric_sparse_answer.counterexample().truth == pytest.approx(float(exact), rel=1e-9)


def test_point_rounding():
    for x in range(11):
        right = sum(10 * (x + a >= 10) for a in range(10)) / 10
        assert right == x
        assert sum(10 * (x + a > 10) for a in range(1, 11)) / 10 == x
    assert published.das2022_point_rounding.counterexample().truth == pytest.approx(40 / 9, rel=1e-15)


def test_tradeoff():
    claim, truth, _ = published.das2022_point_sum_tradeoff.counterexample()
    with mp.workdps(30):
        q, d = mp.exp(-20), mp.floor(mp.exp(20))
        # E max(0, noise)^2 + E min(0, noise)^2 is the variance. For a count of 0 the error is the positive part of the noise only.
        point = mp.sqrt(2 * q) / (1 - q)
        bias = mp.nsum(lambda k: k * (1 - q) / (1 + q) * q**k, [1, 40])
        total = mp.sqrt(d * point**2 + (d * bias) ** 2)
        assert claim == pytest.approx(float(0.2 * (d - 1) / (16 * point + 8 * total + 0.8)), rel=1e-6)
        assert truth == pytest.approx(float(mp.exp(40 * (2 * point + 0.2))), rel=1e-9)


def test_largest_square():
    rng = np.random.default_rng(2)
    truth = published.das2022_laplace_max_square.counterexample().truth
    assert truth == pytest.approx(value("lapmax2_100"), rel=1e-13)
    sample = (rng.laplace(size=(20_000, 100)) ** 2).max(axis=1)
    assert sample.mean() == pytest.approx(truth, abs=5 * sample.std() / math.sqrt(20_000))
    for d in range(1, 200):
        exact = sum(1 / i for i in range(1, d + 1)) ** 2 + sum(1 / i**2 for i in range(1, d + 1))
        assert (published.das2022_laplace_max_square(d, 1.0) < exact) == (d >= 6)
        assert exact <= math.log(d) ** 2 + 2 * math.log(d) + 2 + 1e-12


def test_moment_and_sum():
    claim, truth, _ = published.das2022_sparse_moment.counterexample()
    assert truth == pytest.approx(value("svt_moment_T0"), rel=1e-11)
    assert claim == pytest.approx(1 + 2 * math.pi * math.sqrt(3), rel=1e-14)
    with mp.workdps(20):
        exact = mp.quad(lambda x: x * x * mp.exp(-x / 2) / 4, [0, 10, 50, mp.inf])
    assert published.das2022_sum_error.counterexample().truth == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.slow
def test_gaussian_sparse_vector():
    """The exact epsilon for one query comes from tests on the sum of both noises, the published one from the formula's terms."""
    a = 1 / 800 + 2 / 1600
    claim = published.das2022_sparse_gaussian_eps(20.0, 40.0, 1, 100, 1e-6)
    assert claim == pytest.approx(a + math.sqrt(2 * a * (math.log(1e6) + math.log(100))), rel=1e-13)
    exact = published.das2022_sparse_gaussian_eps.comparison().exact
    sigma = mp.sqrt(20**2 + 40**2)
    # Delta is the largest difference over half-lines.
    best = max(mp.ncdf(t + 1 / sigma) - mp.exp(exact) * mp.ncdf(t) for t in mp.linspace(-6, 0, 2001))
    assert float(best) == pytest.approx(1e-6, rel=1e-3)


def test_domains():
    with pytest.raises(ValueError, match="eps=0"):
        published.das2022_gaussian_sigma(0.0, 0.1)
    with pytest.raises(ValueError, match="moment=1"):
        published.das2022_sparse_moment(0.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="max_queries=2"):
        published.das2022_sparse_gaussian_eps(1.0, 1.0, 3, 2, 0.1)
