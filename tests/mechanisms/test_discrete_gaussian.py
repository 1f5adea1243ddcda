"""Discrete Gaussian noise against sums over all outcomes, reference values and dp-accounting."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism
from tests.errors import reference, relative
from tests.mechanisms import exact
from tests.oracles import assert_sides_and_monotone
from tests.strategies import slow, thinned

CASES = [(0.1, 1), (0.3, 1), (0.5, 1), (1.0, 1), (1.0, 3), (2.0, 1), slow(4.0, 7), slow(4.0, 40)]


def laws(sigma, sensitivity):
    law = exact.discrete_gaussian(sigma, math.ceil(38 * sigma) + sensitivity)
    return law, exact.shifted(law, sensitivity)


@pytest.mark.parametrize(("sigma", "sensitivity"), thinned(CASES, 2))
def test_delta_by_enumeration(sigma, sensitivity):
    noise = DiscreteGaussianMechanism(sigma, sensitivity)
    law, other = laws(sigma, sensitivity)
    mu = sensitivity / sigma
    for x in (-30, -3, -1, 0, 0.5, 2, 5, 11, 20):
        asked = max(0.0, mu * (x + mu / 2))
        value = exact.log(exact.hockey_stick(law, other, exact.exponential(asked)))
        lower, upper = noise.log_delta(asked, bound="lower"), noise.log_delta(asked)
        assert lower <= value <= upper
        assert upper - lower < 1e-12 * (1 + abs(lower))
    # These eps equal the privacy loss of an outcome up to rounding.
    for j in (0, 1, 4):
        asked = sensitivity * (2 * j + sensitivity) / (2 * sigma**2)
        value = exact.log(exact.hockey_stick(law, other, exact.exponential(asked)))
        assert noise.log_delta(asked, bound="lower") <= value <= noise.log_delta(asked)


def theta(s, c, reach):
    return mp.fsum(mp.exp(-(((k - c) / s) ** 2) / 2) for k in range(-reach, reach + 1))


@pytest.mark.parametrize(("sigma", "sensitivity"), thinned(CASES, 3))
def test_rdp_by_enumeration(sigma, sensitivity):
    noise = DiscreteGaussianMechanism(sigma, sensitivity)
    with mp.workdps(exact.DIGITS):
        s, d = mp.mpf(sigma), sensitivity
        for order in (1.0, 1 + 2.0**-20, 1.5, 2.0, 2.625, 10.0):
            # The sum of p^a q^(1-a) follows by completing the square in the exponent.
            a = mp.mpf(order)
            reach = math.ceil(45 * sigma + 12 * sensitivity)
            value = a * d * d / (2 * s * s)
            if order > 1:
                moved, still = (theta(s, c, reach) for c in ((1 - a) * d, 0))
                value += mp.log(moved / still) / (a - 1)
            lower, upper = noise.rdp(order, bound="lower"), noise.rdp(order)
            assert lower <= value <= upper
            assert upper - lower < 1e-12 * value
            assert value <= a * d * d / (2 * s * s)
    assert noise.rdp(math.inf) == math.inf


def test_rdp_is_the_divergence():
    law, other = laws(0.5, 1)
    both = {y: law[y] for y in law if y in other}, {y: other[y] for y in law if y in other}
    for order in (1, 1.5, 3):
        assert DiscreteGaussianMechanism(0.5).rdp(order) == pytest.approx(exact.renyi(*both, order), rel=1e-12)


@pytest.mark.parametrize("sigma", thinned([0.02, 0.2, 0.49, 0.51, 0.99, 1.0, 1.7, 6.0], 3))
def test_variance(sigma):
    law = exact.discrete_gaussian(sigma, math.ceil(38 * sigma) + 2)
    noise = DiscreteGaussianMechanism(sigma)
    assert noise.variance == pytest.approx(float(mp.fsum(k * k * v for k, v in law.items())), rel=1e-13, abs=1e-300)
    assert noise.variance <= sigma**2


def test_reference():
    case = next(v for v in reference("survey") if v["id"].endswith("s4_dgauss_var_2"))
    assert relative(DiscreteGaussianMechanism(math.sqrt(1 / 4)).variance, case["value"]) < 1e-13


@pytest.mark.parametrize(("sigma", "sensitivity", "eps"), [(1.5, 1, 0.5), (3.0, 2, 1.0), (0.6, 1, 2.0)])
def test_dp_accounting_agrees(sigma, sensitivity, eps):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    theirs = pld.DiscreteGaussianPrivacyLoss(sigma, sensitivity=sensitivity)
    assert DiscreteGaussianMechanism(sigma, sensitivity).delta(eps) == pytest.approx(theirs.get_delta_for_epsilon(eps), rel=1e-9)


@pytest.mark.parametrize("sigma", [300.0, 1e5])
def test_noise_of_large_sigma_approaches_normal_noise(sigma):
    noise, normal = DiscreteGaussianMechanism(sigma), GaussianMechanism(sigma)
    for x in (0.0, 3.0, 30.0):
        asked = x / sigma
        assert noise.log_delta(asked) == pytest.approx(normal.log_delta(asked), abs=2 * (x + 1) / sigma)


def test_bounds_are_in_order_at_very_small_delta():
    noise = DiscreteGaussianMechanism(1e5)
    for asked in (1e3, 1e6, 1e300):
        lower, upper = noise.log_delta(asked, bound="lower"), noise.log_delta(asked)
        assert lower <= upper < -1e6
        assert upper > -math.inf


@pytest.mark.parametrize(("beta", "k"), [(0.5, 1), (0.01, 1), (1e-8, 20)])
@pytest.mark.parametrize("sigma", [0.2, 2.0, 9.0])
def test_error_quantile(sigma, beta, k):
    law = exact.discrete_gaussian(sigma, math.ceil(38 * sigma) + 2)
    noise = DiscreteGaussianMechanism(sigma)

    def tail(t):
        with mp.workdps(exact.DIGITS):
            return float(1 - (1 - mp.fsum(v for y, v in law.items() if abs(y) > t)) ** k)

    t = noise.error_quantile(beta, k)
    assert noise.error_tail(t, k) == pytest.approx(tail(t), rel=1e-11, abs=1e-300)
    assert tail(t) <= beta
    assert t == 0 or tail(t - 1) > beta * (1 - 1e-12)


@pytest.mark.parametrize("sigma", thinned([0.3, 1.0, 4.5], 2))
def test_randomize(sigma):
    noise = DiscreteGaussianMechanism(sigma)
    out = noise.randomize(np.full((3, 40000), -2), rng=13)
    assert out.dtype == np.int64
    assert abs(noise.estimate(out).mean() + 2) < 4.5 * math.sqrt(noise.variance / out.size)
    law = exact.discrete_gaussian(sigma, 200)
    for k in (-3, -1, 0, 1, 2):
        chance = float(law[k])
        assert abs((out + 2 == k).mean() - chance) < 4.5 * math.sqrt(chance / out.size) + 2 / out.size


def test_curve():
    noise = DiscreteGaussianMechanism(1.5, 2)
    law = exact.discrete_gaussian(1.5, 80)
    below, above = noise.tradeoff(), noise.tradeoff(bound="upper")
    for threshold in range(-4, 8):
        alpha = float(sum(v for k, v in law.items() if k >= threshold))
        beta = float(sum(v for k, v in law.items() if k + 2 < threshold))
        assert below.beta(alpha) == pytest.approx(beta, rel=1e-11)
        assert below.beta(alpha) <= beta * (1 + 1e-13)
        assert above.beta(alpha) >= beta * (1 - 1e-13)


def test_shuffled():
    shuffled = DiscreteGaussianMechanism(1.0).shuffled(1000)
    lower, upper = shuffled.log_delta(0.5, bound="lower"), shuffled.log_delta(0.5)
    assert lower <= upper < DiscreteGaussianMechanism(1.0).log_delta(0.5) - 1


@given(sigma=st.floats(0.02, 50), sensitivity=st.integers(1, 60), x=st.floats(-20, 60), more=st.floats(0, 3))
def test_sides_and_monotone(sigma, sensitivity, x, more):
    noise = DiscreteGaussianMechanism(sigma, sensitivity)
    mu = sensitivity / sigma
    asked = max(0.0, mu * (x + mu / 2))
    assert_sides_and_monotone(noise, asked, more * mu)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: DiscreteGaussianMechanism(0.0), "sigma=0"),
        (lambda: DiscreteGaussianMechanism(1.0, 0), "sensitivity=0"),
        (lambda: DiscreteGaussianMechanism(0.01, 200), "sensitivity=200 must be at most 1e4 times"),
        (lambda: DiscreteGaussianMechanism(1.0).randomize([1.5]), "values holds 1.5"),
        (lambda: DiscreteGaussianMechanism(1.0).tradeoff(bound="x"), "bound='x'"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("order", thinned([1.0001794806059712, 1.00018, 1.001, 1.3, 1.7, 2.001], 3))
@pytest.mark.parametrize("sigma", [0.001, 0.01, 0.39])
def test_divergence_of_little_noise(sigma, order):
    with mp.workdps(60):
        s, a = mp.mpf(sigma), mp.mpf(order)
        ratio = mp.log(mp.fsum(mp.exp(-((k - (a - 1)) ** 2) / (2 * s * s)) for k in range(-5, 7)))
        ratio -= mp.log(mp.fsum(mp.exp(-(mp.mpf(k) ** 2) / (2 * s * s)) for k in range(-5, 6)))
        value = a / (2 * s * s) + ratio / (a - 1)
    mechanism = DiscreteGaussianMechanism(sigma)
    assert mechanism.rdp(order, bound="lower") <= value <= mechanism.rdp(order)
    assert relative(mechanism.rdp(order), value) < 1e-12
