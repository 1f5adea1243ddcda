"""Gaussian noise against its definition in multiple precision, reference values and dp-accounting."""

import math
from fractions import Fraction
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds.mechanisms import GaussianMechanism
from tests.errors import reference, relative, survey_cases
from tests.mechanisms import exact
from tests.oracles import assert_sides_and_monotone
from tests.strategies import thinned

MUS = [1e-8, 3e-5, 0.01, 0.199, 0.2, 0.21, 0.7, 1.0, 1.99, 2.0, 2.01, 5.0, 30.0, 700.0, 1e4]


@pytest.mark.parametrize("mu", thinned(MUS, 3))
def test_delta_in_multiple_precision(mu):
    for x in [-40, -6, -1.1, -0.4, -1e-3, 0, 0.01, 0.9, 1.4, 1.6, 3, 12, 40, 300, 1414.2]:
        noise = GaussianMechanism(1 / mu)
        eps = max(0.0, mu * (x + mu / 2))
        value = exact.gaussian_log_delta(1 / mu, 1.0, eps)
        lower, upper = noise.log_delta(eps, bound="lower"), noise.log_delta(eps)
        assert lower <= value <= upper
        assert upper - lower < 2e-13 + 16 * math.ulp(lower)


@pytest.mark.parametrize(("sigma", "sensitivity"), [(1e-200, 3e-200), (1e250, 1e245), (7.0, 1e-11), (3.0, 1e6)])
def test_extreme_scales(sigma, sensitivity):
    noise = GaussianMechanism(sigma, sensitivity)
    mu = float(Fraction(sensitivity) / Fraction(sigma))
    for eps in (0.0, mu * mu / 2, mu * mu):
        value = exact.gaussian_log_delta(sigma, sensitivity, eps)
        assert noise.log_delta(eps, bound="lower") <= value <= noise.log_delta(eps)


@pytest.mark.parametrize("eps", [1e20, 1e139, 1e200, 1e308])
def test_bounds_are_in_order_at_huge_eps(eps):
    lower, upper = GaussianMechanism(1.0).log_delta(eps, bound="lower"), GaussianMechanism(1.0).log_delta(eps)
    assert lower <= upper < -1e30
    assert upper > -math.inf
    assert not math.isnan(lower)


QUANTITIES = {
    "s4_gauss_delta": lambda v: GaussianMechanism(1 / float(v["mu"])).delta(float(v["eps"])),
    "s4_gauss_logdelta": lambda v: GaussianMechanism(1 / float(v["mu"])).log_delta(float(v["eps"])),
    "s4_gauss_sigma": lambda v: GaussianMechanism.from_dp(eps=float(v["eps"]), delta=float(v["delta"])).sigma,
    "s4_gauss_eps": lambda v: GaussianMechanism.from_rho(float(v["rho"])).epsilon(float(v["delta"])),
}


@pytest.mark.parametrize(("answer", "case"), thinned(survey_cases(QUANTITIES), 3))
def test_reference(answer, case):
    assert relative(answer(case["params"]), case["value"]) < 1e-12


def test_classical_calibration_fails_where_the_reference_says():
    case = next(v for v in reference("survey") if v["id"].endswith("s4_gauss_classical_fail_eps"))
    edge = float(case["value"])

    def short(eps):
        return GaussianMechanism(math.sqrt(2 * math.log(1.25e5)) / eps).delta(eps, bound="lower") > 1e-5

    assert short(edge * (1 + 1e-10))
    assert not short(edge * (1 - 1e-10))


@pytest.mark.filterwarnings("ignore:delta=")
@pytest.mark.parametrize(
    ("eps", "delta", "sensitivity"),
    [
        (1.0, 1e-5, 1.0), (0.0, 1e-6, 1.0), (0.1, 1e-300, 2.0), (50.0, 1e-12, 1e-3), (1e-6, 1e-9, 1.0), (3.0, 0.4, 1.0),
        (0.5, 0.9, 1.0),
    ],
)
def test_from_dp_meets_the_target_with_nearly_the_smallest_sigma(eps, delta, sensitivity):
    noise = GaussianMechanism.from_dp(eps=eps, delta=delta, sensitivity=sensitivity)
    assert noise.delta(eps) <= delta
    assert GaussianMechanism(noise.sigma * (1 - 1e-11), sensitivity).delta(eps, bound="lower") > delta


@pytest.mark.filterwarnings("ignore:delta=")
@pytest.mark.parametrize(("eps", "delta", "sensitivity"), [
    (700.0, 0.9999990463256836, 3.3), (0.003, 0.0037, 12.0), (218.6, 9e-8, 4.7), (169.0, 0.378, 0.054), (1.0, 1e-13, 1.0),
    (0.02, 0.99, 1.0), (0.02, 0.999, 1.0), (0.5, 0.999, 1.0), (0.02, 1 - 1e-6, 1.0),
])
def test_from_dp_is_within_its_stated_tolerance_of_the_smallest_sigma(eps, delta, sensitivity):
    tolerance = 1e-11 if delta <= 0.99 else 1e-12 / (1 - delta)
    sigma = GaussianMechanism.from_dp(eps=eps, delta=delta, sensitivity=sensitivity).sigma
    with mp.workdps(50):

        def exact_delta(sigma):
            mu, loss = mp.mpf(sensitivity) / sigma, mp.mpf(eps)
            return mp.ncdf(mu / 2 - loss / mu) - mp.exp(loss) * mp.ncdf(-mu / 2 - loss / mu)

        assert exact_delta(mp.mpf(sigma)) <= delta < exact_delta(mp.mpf(sigma) * (1 - mp.mpf(tolerance)))


def test_from_dp_for_an_infeasible_target():
    with pytest.raises(ValueError, match="delta=1e-14 cannot be met at eps=0"):
        GaussianMechanism.from_dp(eps=0.0, delta=1e-14)


@pytest.mark.parametrize("rho", [0.5, 1 / 3, 1e-9, 0.1, 1e10])
def test_from_rho(rho):
    noise = GaussianMechanism.from_rho(rho, 1.7)
    assert Fraction(1.7) ** 2 / (2 * Fraction(noise.sigma) ** 2) <= Fraction(rho)
    assert noise.rdp(1.0) == pytest.approx(rho, rel=1e-14)
    assert noise.rdp([2, 5.5]) == pytest.approx([2 * rho, 5.5 * rho], rel=1e-14)


@pytest.mark.slow
def test_rdp_by_quadrature():
    noise = GaussianMechanism(1.3)

    def power(y, a):
        s = mp.mpf(1.3)
        return mp.npdf(y, 0, s) ** a * mp.npdf(y, 1, s) ** (1 - a)

    for a in (1.5, 4):
        with mp.workdps(25):
            total = mp.quad(partial(power, a=a), [-mp.inf, -5, 0, 5, mp.inf])
        assert noise.rdp(a) == pytest.approx(float(mp.log(total) / (a - 1)), rel=1e-12)
    assert noise.rdp(math.inf) == math.inf


@pytest.mark.parametrize("mu", thinned([1e-6, 0.3, 1.0, 20.0, 1e4], 3))
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-3, 0.3])
def test_epsilon_brackets_the_root(mu, delta):
    noise = GaussianMechanism(1 / mu)
    upper, lower = noise.epsilon(delta), noise.epsilon(delta, bound="lower")
    assert lower <= upper < math.inf
    assert noise.delta(upper) <= delta
    assert upper - lower <= 1e-10 * upper
    if lower > 0:
        assert exact.gaussian_log_delta(1 / mu, 1.0, lower) >= mp.log(mp.mpf(delta)) >= exact.gaussian_log_delta(1 / mu, 1.0, upper)


def test_curve_and_mu():
    noise = GaussianMechanism(0.8)
    f = noise.tradeoff()
    with mp.workdps(30):
        for alpha in (1e-9, 0.05, 0.5, 0.999):
            z = mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(alpha))
            assert f.beta(alpha) == pytest.approx(float(mp.ncdf(z - mp.mpf(1) / mp.mpf(0.8))), rel=1e-12)
    assert noise.gdp_mu(bound="lower") < 1.25 <= noise.gdp_mu() <= 1.25 * (1 + 1e-15)
    assert f.log_delta(2.0) == pytest.approx(noise.log_delta(2.0), rel=1e-12)


@pytest.mark.parametrize(("sigma", "eps"), [(1.0, 1.0), (4.0, 0.3), (0.5, 6.0)])
def test_dp_accounting_agrees(sigma, eps):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    theirs = pld.GaussianPrivacyLoss(sigma, sampling_prob=1.0)
    noise = GaussianMechanism(sigma)
    assert noise.delta(eps) == pytest.approx(theirs.get_delta_for_epsilon(eps), rel=1e-9)


@pytest.mark.parametrize(("beta", "k"), [(0.05, 1), (1e-9, 1), (1e-4, 1000), (0.9, 3)])
def test_error_quantile(beta, k):
    noise = GaussianMechanism(3.0)
    t = noise.error_quantile(beta, k)
    with mp.workdps(40):
        def tail(x):
            return 1 - (1 - mp.erfc(mp.mpf(x) / 3 / mp.sqrt(2))) ** k

        assert tail(t * (1 + 1e-13)) <= beta <= tail(t * (1 - 1e-11))
        assert noise.error_tail(t, k) == pytest.approx(float(tail(t)), rel=1e-12)


def test_randomize_and_estimate():
    noise = GaussianMechanism(2.5)
    out = noise.randomize(np.full((4, 50000), 10.0), rng=5)
    assert out.shape == (4, 50000)
    assert abs(noise.estimate(out).mean() - 10) < 4.5 * math.sqrt(noise.variance / out.size)
    assert abs(((out - 10) ** 2).mean() - noise.variance) < 4.5 * math.sqrt(2 * 2.5**4 / out.size)


@pytest.mark.slow
def test_shuffled():
    shuffled = GaussianMechanism(1.0).shuffled(1000)
    lower, upper = shuffled.log_delta(0.5, bound="lower"), shuffled.log_delta(0.5)
    assert lower <= upper < GaussianMechanism(1.0).log_delta(0.5) - 1


@given(
    log_mu=st.floats(-18, 9.2), x=st.floats(-30, 60), more=st.floats(0, 3), sensitivity=st.floats(1e-3, 1e3),
)
def test_sides_and_monotone(log_mu, x, more, sensitivity):
    mu = math.exp(log_mu)
    noise = GaussianMechanism(sensitivity / mu, sensitivity)
    eps = max(0.0, mu * (x + mu / 2))
    lower, upper = assert_sides_and_monotone(noise, eps, more * mu)
    assert upper - lower < 2e-13 + 16 * math.ulp(lower)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: GaussianMechanism(0.0), "sigma=0"),
        (lambda: GaussianMechanism(math.nan), "sigma=nan"),
        (lambda: GaussianMechanism(1e-7), "sensitivity/sigma must be in"),
        (lambda: GaussianMechanism.from_dp(eps=-1.0, delta=0.1), "eps=-1"),
        (lambda: GaussianMechanism.from_dp(eps=1.0, delta=0.0), "delta=0"),
        (lambda: GaussianMechanism.from_dp(eps=1.0, delta=1.0), "delta=1"),
        (lambda: GaussianMechanism.from_rho(0.0), "rho=0"),
        (lambda: GaussianMechanism(1.0).gdp_mu(bound="x"), "bound='x'"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()
