"""Error tails and quantiles of flipped bits and of noise, against exact distributions and over all datasets."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds.mechanisms import FiniteRandomizer, KaryResponse, UnaryEncoding
from shufflebounds.shuffle import BinomialNoise, ClearReports, FlippedReports, RealSum, ShuffledBits, ShuffledHistogram
from tests.oracles import assert_error_tail, binomial, total
from tests.strategies import thinned


def bits_errors(users, flip, ones):
    """Return the distribution of the estimate's error."""
    q = Fraction(flip)
    law = total(binomial(ones, 1 - q), binomial(users - ones, q))
    return {(y - users * q) / (1 - 2 * q) - ones: p for y, p in law.items()}


@pytest.mark.parametrize("flip", [0.0625, 0.2, 0.4375])
def test_bits_over_every_dataset(flip):
    users = 8
    mechanism = ShuffledBits(users, flip)
    points = [0, 0.5, 1, 1.25, 2, 3.7, 6, 20]
    laws = [bits_errors(users, flip, ones) for ones in range(users + 1)]
    for ones, law in enumerate(laws):
        assert_error_tail(mechanism, law, ones, points)
    for a in points:
        worst = float(max(sum((p for e, p in law.items() if abs(e) > Fraction(a)), Fraction(0)) for law in laws))
        assert mechanism.error_tail(a, bound="lower") * (1 - 1e-14) <= worst <= mechanism.error_tail(a) * (1 + 1e-14)
        assert mechanism.error_tail(a) == pytest.approx(worst, rel=1e-10, abs=1e-300)


@pytest.mark.parametrize(("trials", "prob"), [(0, 0.5), (7, 0.25), (20, 0.9), (40, 0.3)])
def test_noise(trials, prob):
    mechanism = BinomialNoise(trials, prob)
    errors = {k - Fraction(trials * prob): p for k, p in binomial(trials, prob).items()}
    assert_error_tail(mechanism, errors, None, [0, 0.1, 1, 2, 3, 4.5, 12])


@pytest.mark.slow
@given(users=st.integers(513, 10**9), flip=st.floats(1e-9, 0.49), x=st.floats(0.5, 6), data=st.data())
@settings(max_examples=25, deadline=None)
def test_no_dataset_has_a_larger_error_than_the_worst(users, flip, x, data):
    mechanism = ShuffledBits(users, flip)
    a = x * math.sqrt(mechanism.variance)
    ones = data.draw(st.integers(0, users))
    assert mechanism.error_tail(a, ones, bound="lower") <= mechanism.error_tail(a)
    assert mechanism.error_tail(a, bound="lower") <= mechanism.error_tail(a)


@pytest.mark.parametrize("flip", [1 / 3, 0.1])
@pytest.mark.parametrize("beta", thinned([0.02, 0.3, 0.6], 2))
def test_quantiles_of_few_users_are_those_of_the_exact_distribution(flip, beta):
    users, ones = 3, 1
    errors = bits_errors(users, flip, ones)
    exact = min(abs(a) for a in errors if sum(p for e, p in errors.items() if abs(e) > abs(a)) <= beta)
    reports, numbers = FlippedReports(users, 0, 4, flip, view="sums"), RealSum(users, 2 * users * flip, 1)
    for mechanism, truth in ((ShuffledBits(users, flip), ones), (reports, ones), (numbers, [1.0, 0.0, 0.0])):
        assert mechanism.error_quantile(beta, truth) == pytest.approx(float(exact), rel=1e-9)
        assert mechanism.error_quantile(beta, truth, bound="lower") == pytest.approx(float(exact), rel=1e-9)


@given(users=st.integers(1, 400), flip=st.floats(0.001, 0.49), beta=st.floats(1e-12, 0.9), share=st.floats(0, 1))
@settings(max_examples=25, deadline=None)
def test_quantiles_are_upper_and_lower_bounds(users, flip, beta, share):
    mechanism, ones = ShuffledBits(users, flip), round(share * users)
    upper, lower = mechanism.error_quantile(beta, ones), mechanism.error_quantile(beta, ones, bound="lower")
    assert mechanism.error_tail(upper, ones) <= beta
    assert lower <= upper <= lower * (1 + 1e-9) + 1e-300
    assert lower == 0 or mechanism.error_tail(lower, ones, bound="lower") > beta


@pytest.mark.slow
def test_simulated_quantile():
    mechanism = ShuffledBits(3000, 0.1)
    rng = np.random.default_rng(12)
    data = np.r_[np.ones(500), np.zeros(2500)]
    errors = np.array([mechanism.estimate(mechanism.randomize(data, rng)) for _ in range(2000)]) - 500
    a = mechanism.error_quantile(0.05, 500)
    tail = mechanism.error_tail(a, 500)
    assert abs(np.mean(np.abs(errors) > a) - tail) < 5 * math.sqrt(tail / 2000)
    assert a <= mechanism.error_quantile(0.05) <= 1.4 * a
    assert mechanism.messages_per_user() == 1


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: ShuffledBits(5, 0.1).error_tail(math.nan), "a=nan"),
        (lambda: ShuffledBits(5, 0.1).error_tail(1, 6), "truth=6"),
        (lambda: ShuffledBits(5, 0.1).error_tail(1, bound="both"), "bound='both'"),
        (lambda: ShuffledBits(5, 0.5).error_tail(1), r"flip=0\.5"),
        (lambda: ShuffledBits(5, 0.1).error_quantile(1), "beta=1"),
        (lambda: BinomialNoise(5, 0.1).error_tail(1, 3), "truth=3 must be None"),
    ],
)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_quantiles_of_errors_below_the_normal_doubles():
    noise = BinomialNoise(1, 5e-324)
    assert noise.error_tail(noise.error_quantile(0.5)) <= 0.5
    assert noise.error_quantile(0.5, bound="lower") <= noise.error_quantile(0.5)


@pytest.mark.slow
def test_the_errors_of_all_histograms_are_called_alike():
    held, users = np.array([300, 150, 50]), 500
    ways = [ClearReports(900, 3), FlippedReports(users, 0, 3, 0.1, view="sums"), ShuffledHistogram(users, 3, 0.2),
            KaryResponse(3, 2.0), UnaryEncoding.optimized(3, 2.0), FiniteRandomizer(np.full((3, 3), 0.2) + 0.4 * np.eye(3))]
    for law in ways:
        whole, even = (law.error_quantile(0.05, truth, users=users, of="any") for truth in (held, [167, 167, 166]))
        worst = law.error_quantile(0.05, users=users, of="any")
        assert max(whole, even) <= worst * (1 + 1e-9)
        assert law.error_quantile(0.05, held.tolist(), users=users) <= whole
        if not isinstance(law, FiniteRandomizer):
            assert law.error_quantile(0.05, 50, users=users) <= law.error_quantile(0.05, users=users)
            assert whole <= law.error_quantile(0.05, 300, users=users, of="any") * (1 + 1e-9)
            assert law.error_quantile(0.05, 300, users=users, of="any") <= worst * (1 + 1e-9)
        if not isinstance(law, ClearReports):
            with pytest.raises(ValueError, match="truth sums to 499"):
                law.error_quantile(0.05, [300, 150, 49], users=users)
    for law in ways[1:3]:
        with pytest.raises(ValueError, match="users=501 must be 500"):
            law.error_quantile(0.05, users=501)
    with pytest.raises(ValueError, match=r"truth=100 .* must be at least 167"):
        ways[1].error_quantile(0.05, 100, of="any")
    with pytest.raises(ValueError, match="users=None"):
        ways[3].error_quantile(0.05, 100)
    assert ways[5].error_quantile(0.05, held) == ways[5].error_quantile(0.05, held, users=500)
    with pytest.raises(ValueError, match=r"truth=3 must be None or a histogram of shape \(3,\)"):
        ways[5].error_quantile(0.05, 3, users=users)


@pytest.mark.slow
def test_errors_of_one_bin_and_of_any():
    users, bins, goal = 10**5, 500, {"eps": 1.0, "delta": 1e-6}
    laws = [ClearReports.calibrate(bins=bins, **goal), FlippedReports.calibrate(users=users, bins=bins, **goal, view="sums"),
            ShuffledHistogram.calibrate(users=users, bins=bins, **goal)]
    even = [200, 200, [200] * bins]
    # If the error of one bin exceeds a value with probability 5 %, the error of some of 500 bins exceeds it with probability close
    # to 1.
    found = [(law.error_quantile(0.05, truth if i else None), law.error_quantile(0.05, truth if i else None, of="any"))
             for i, (law, truth) in enumerate(zip(laws, even))]
    assert [round(one, 1) for one, _ in found] == [12.6, 13.8, 12.7]
    assert [round(largest, 1) for _, largest in found] == [26.4, 28.2, 26.3]
    assert round(laws[2].error_quantile(0.05, of="any")) == 69


@pytest.mark.parametrize(("users", "fakes", "flip"), [
    (7, 3, 1e-300), (1, 3, 4.6303436274108776e-14), (9, 3, 3.7478471304590113e-13), (2, 1, 1e-200), (5, 5, 1e-100),
])
def test_the_tail_of_rare_flips_includes_the_rounding_of_its_logarithm(users, fakes, flip):
    # For bits in two groups the rounding of the logarithm was not included: bounds of 1e-299 were wrong by a relative 1e-14.
    none = (1 - Fraction(flip)) ** (users + fakes)
    protocol = ShuffledBits(users, flip, fakes=fakes)
    for bound, side in (("lower", 1), ("upper", -1)):
        value = Fraction(protocol.error_tail(0.5, truth=0, bound=bound))
        assert side * (1 - none - value) >= 0
        assert float(value) == pytest.approx(float(1 - none), rel=1e-11)
