"""Laplace noise against quadrature, reference values and dp-accounting."""

import math
from fractions import Fraction
from functools import partial

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds import Tradeoff
from shufflebounds.mechanisms import LaplaceMechanism
from shufflebounds.shuffle import PersonalizedClones, StrongerClones
from tests.errors import reference, relative, survey_cases
from tests.oracles import assert_sides_and_monotone
from tests.strategies import thinned


def budget(scale, sensitivity):
    return mp.mpf(sensitivity) / mp.mpf(scale)


def integral(scale, sensitivity, eps):
    """Return the integral of (p - e^eps q)_+ by quadrature between its kinks."""
    b, d, e = mp.mpf(scale), mp.mpf(sensitivity), mp.exp(mp.mpf(eps))
    kink = (d - b * mp.mpf(eps)) / 2

    def p(y):
        return mp.exp(-abs(y) / b) / (2 * b)

    # `left` is the integral over y < 0 in closed form, because both densities are exponential functions there.
    left = mp.mpf(1) / 2 - e * mp.exp(-d / b) / 2
    return left + (mp.quad(lambda y: p(y) - e * p(y - d), [0, kink]) if kink > 0 else 0)


@pytest.mark.parametrize(("scale", "sensitivity"), [(1.0, 1.0), (0.3, 1.0), (20.0, 1.0), (3.0, 7.0), (0.05, 1.0)])
@pytest.mark.parametrize("share", thinned([0.0, 0.2, 0.5, 0.97], 2))
def test_delta_by_quadrature(scale, sensitivity, share):
    noise = LaplaceMechanism(scale, sensitivity)
    eps = share * sensitivity / scale
    with mp.workdps(30):
        value = mp.log(integral(scale, sensitivity, eps))
        assert mp.mpf(noise.log_delta(eps, bound="lower")) <= value <= mp.mpf(noise.log_delta(eps))


@pytest.mark.parametrize(("scale", "sensitivity"), [(3.0, 1.0), (0.1, 0.3), (7.0, 1e-9), (1e-5, 9.0), (1e300, 1e299)])
@pytest.mark.parametrize("ulps", thinned([0, 1, 2, 3, 1000, 2**40], 3))
def test_delta_close_to_the_budget(scale, sensitivity, ulps):
    # The budget is not a double, and delta close to the budget depends on how it is rounded.
    noise = LaplaceMechanism(scale, sensitivity)
    eps = noise._pure_epsilon()
    assert Fraction(eps) >= Fraction(sensitivity) / Fraction(scale)
    eps -= ulps * math.ulp(eps)
    with mp.workdps(50):
        gap = mp.mpf(eps) - budget(scale, sensitivity)
        lower, upper = noise.log_delta(eps, bound="lower"), noise.log_delta(eps)
        if gap >= 0:
            assert lower == upper == -math.inf
        else:
            assert lower <= mp.log(-mp.expm1(gap / 2)) <= upper
            assert upper - lower < 4e-15 * (1 + abs(lower))


QUANTITIES = {
    "s4_lap_delta": lambda v: LaplaceMechanism.from_eps(eps=float(v["eps0"])).delta(float(v["eps"])),
    "s4_lap_tradeoff": lambda v: LaplaceMechanism(1.0 / v["mu"]).tradeoff().beta(float(v["alpha"])),
    "s4_rdp_lap": lambda v: LaplaceMechanism(v["b"]).rdp(v["alpha"]),
}


@pytest.mark.parametrize(("answer", "case"), survey_cases(QUANTITIES))
def test_reference(answer, case):
    assert relative(answer(case["params"]), case["value"]) < 1e-13


@pytest.mark.parametrize("case", [v for v in reference("survey") if "s4_lap_acc_union" in v["id"]], ids=lambda v: v["id"])
def test_quantile_against_the_union_bound(case):
    k, beta, union = case["params"]["k"], float(case["params"]["delta"]), float(case["value"])
    noise = LaplaceMechanism(1.0)
    with mp.workdps(40):
        exact = float(-mp.log(1 - (1 - mp.mpf(beta)) ** (mp.mpf(1) / k)))
    t = noise.error_quantile(beta, k)
    assert exact * (1 - 1e-13) <= t <= exact * (1 + 1e-12)
    assert exact <= union * (1 + 1e-15)
    assert noise.error_tail(t, k) <= beta < noise.error_tail(t * (1 - 1e-12), k)


@pytest.mark.parametrize("scale", [1e-3, 0.2, 1.0, 50.0, 1e6])
@pytest.mark.parametrize("order", thinned([1, 1 + 2.0**-30, 1.25, 2, 8, 3000], 3))
def test_rdp_from_its_definition(scale, order):
    noise = LaplaceMechanism(scale)
    with mp.workdps(60):
        a, e0 = mp.mpf(order), 1 / mp.mpf(scale)
        value = (e0 + mp.exp(-e0) - 1 if order == 1 else
                 mp.log(a / (2 * a - 1) * mp.exp((a - 1) * e0) + (a - 1) / (2 * a - 1) * mp.exp(-a * e0)) / (a - 1))
        lower, upper = noise.rdp(order, bound="lower"), noise.rdp(order)
        assert lower <= value <= upper
        assert upper - lower < 4e-14 * value


def test_rdp_closed_form_by_quadrature():
    noise = LaplaceMechanism(0.7)

    def power(y, a):
        b = mp.mpf(0.7)
        return mp.exp((-a * abs(y) - (1 - a) * abs(y - 1)) / b) / (2 * b)

    for a in (1.5, 3):
        with mp.workdps(25):
            total = mp.quad(partial(power, a=a), [-mp.inf, 0, 1, mp.inf])
        assert noise.rdp(a) == pytest.approx(float(mp.log(total) / (a - 1)), rel=1e-12)
    assert noise.rdp([1.0, math.inf])[1] == pytest.approx(1 / 0.7, rel=1e-14)


@pytest.mark.filterwarnings("ignore:delta=")
@pytest.mark.parametrize(("eps", "delta"), [(0.3, 0.0), (1 / 3, 0.0), (700.0, 0.0), (0.0, 1e-6), (1.0, 1e-9), (2.0, 0.3)])
def test_from_eps_meets_the_target_with_the_smallest_scale(eps, delta):
    noise = LaplaceMechanism.from_eps(eps=eps, sensitivity=3.0, delta=delta)
    assert noise.delta(eps) <= delta
    if delta:
        assert LaplaceMechanism(noise.scale * (1 - 1e-7), 3.0).delta(eps, bound="lower") > delta
    else:
        assert Fraction(noise.sensitivity) / Fraction(noise.scale) <= Fraction(eps)
        assert noise.scale == pytest.approx(3 / eps, rel=4e-16)


@pytest.mark.parametrize(("scale", "eps"), [(1.0, 0.5), (4.0, 0.1), (0.25, 3.0)])
def test_dp_accounting_agrees(scale, eps):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_mechanism")
    rdp = pytest.importorskip("dp_accounting.rdp")
    dp_event = pytest.importorskip("dp_accounting.dp_event")
    noise = LaplaceMechanism(scale)
    theirs = pld.LaplacePrivacyLoss(scale)
    assert noise.delta(eps) == pytest.approx(theirs.get_delta_for_epsilon(eps), rel=1e-10)
    accountant = rdp.RdpAccountant([2.0, 8.0])
    accountant.compose(dp_event.LaplaceDpEvent(scale))
    assert noise.rdp([2.0, 8.0]) == pytest.approx(accountant._rdp, rel=1e-10)


def test_randomize_and_estimate():
    noise = LaplaceMechanism(2.5)
    values = np.full((4, 50000), 10.0)
    out = noise.randomize(values, rng=3)
    assert out.shape == values.shape
    assert noise.estimate(out).shape == values.shape
    assert abs(noise.estimate(out).mean() - 10) < 4.5 * math.sqrt(noise.variance / out.size)
    # The fourth moment of Laplace noise is 24 scale^4, so its square has the variance 20 scale^4.
    assert abs(((out - 10) ** 2).mean() - noise.variance) < 4.5 * math.sqrt(20 * 2.5**4 / out.size)
    tail = noise.error_tail(4.0)
    assert abs((np.abs(out - 10) > 4).mean() - tail) < 4.5 * math.sqrt(tail / out.size)
    assert (noise.randomize(values, rng=3) == out).all()


@pytest.mark.slow
def test_shuffled():
    noise = LaplaceMechanism(0.5)
    clones = PersonalizedClones.laplace(np.full(1000, 2.0), target=0)
    for eps in (0.1, 0.3):
        # Users of one budget are the shuffled noise, which has a smaller delta than the bound for all randomizers of its budget.
        assert noise.shuffled(1000).log_delta(eps) == clones.log_delta(eps)
        assert noise.shuffled(1000).log_delta(eps) < StrongerClones(1000, 2.0).log_delta(eps)
        assert noise.shuffled(1000).log_delta(eps, bound="lower") <= noise.shuffled(1000).log_delta(eps)
    with pytest.raises(ValueError, match="at most 700"):
        LaplaceMechanism(0.001).shuffled(10).delta(0.1)


@given(scale=st.floats(1e-3, 1e6), asked=st.floats(0, 2000), more=st.floats(0, 5))
def test_sides_and_monotone(scale, asked, more):
    noise = LaplaceMechanism(scale)
    assert_sides_and_monotone(noise, asked, more)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: LaplaceMechanism(0.0), "scale=0"),
        (lambda: LaplaceMechanism(1.0, -1.0), "sensitivity=-1"),
        (lambda: LaplaceMechanism(1e-7), "sensitivity/scale must be in"),
        (lambda: LaplaceMechanism.from_eps(eps=0.0), "eps=0 must be > 0 where delta=0"),
        (lambda: LaplaceMechanism.from_eps(eps=1.0, delta=1.0), "delta=1"),
        (lambda: LaplaceMechanism(1.0).error_quantile(0.0), "beta=0"),
        (lambda: LaplaceMechanism(1.0).error_quantile(0.1, 0), "k=0"),
        (lambda: LaplaceMechanism(1.0).error_tail(-1.0), "t=-1"),
        (lambda: LaplaceMechanism(1.0).randomize([]), "values must not be empty"),
        (lambda: LaplaceMechanism(1.0).randomize([1.0], rng="x"), "rng='x'"),
    ],
)
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("budget", [1e-12, 3e-6, 0.2, 0.99999, 1.0, 7.0, 300.0])
def test_mu_is_that_of_equal_errors(budget):
    # mu is the maximum of Phi^-1(1 - alpha) - Phi^-1(beta) over the curve, which is at alpha = beta = e^(-budget/2)/2. `exact` uses
    # 1/2 - alpha without cancellation.
    noise = LaplaceMechanism(1.0, budget)
    with mp.workdps(200):
        exact = 2 * mp.sqrt(2) * mp.erfinv(-mp.expm1(-mp.mpf(budget) / 2))
    assert noise.gdp_mu(bound="lower") <= exact <= noise.gdp_mu()
    assert relative(noise.gdp_mu(), exact) < 1e-14
    assert relative(noise.gdp_mu(bound="lower"), exact) < 2e-14


def test_mu_encloses_the_curve():
    noise = LaplaceMechanism(0.5)
    alpha = np.linspace(1e-4, 0.9999, 500)
    assert (Tradeoff.gaussian(noise.gdp_mu()).beta(alpha) <= noise.tradeoff(bound="upper").beta(alpha)).all()


@pytest.mark.filterwarnings("ignore:delta")
@pytest.mark.parametrize(("eps", "delta", "sensitivity"), [
    # The calibrated scale was once 584 ulp above the exact one, because the steps of the search grow by a factor of 8.
    (1.6191168669277785e-05, 0.002097833934705201, 0.005099319480082219),
    (1.272619211062843e-06, 9.690391368996848e-10, 0.019866698001213545),
    (0.001137121336627844, 9.218564286781466e-10, 18.419154648051745),
    (1.0, 1e-6, 1.0), (300.0, 1e-200, 2.0),
])
def test_the_calibrated_scale_is_the_least_to_rounding(eps, delta, sensitivity):
    noise = LaplaceMechanism.from_eps(eps=eps, sensitivity=sensitivity, delta=delta)
    with mp.workdps(60):
        exact = mp.mpf(sensitivity) / (mp.mpf(eps) - 2 * mp.log1p(-mp.mpf(delta)))
        assert exact <= noise.scale <= exact * (1 + 3e-13)
    assert noise.delta(eps) <= delta


@pytest.mark.parametrize("budget", [1e-3, 2.0, 13.9, 27.7, 60.0, 1000.0, 3000.0])
def test_log_delta_next_to_delta_1(budget):
    noise = LaplaceMechanism(1.0, budget)
    for eps in (0.0, budget / 16, budget / 2):
        with mp.workdps(1000):
            exact = mp.log(-mp.expm1((mp.mpf(eps) - mp.mpf(budget)) / 2))
        lower, upper = (noise.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
        assert lower <= exact <= upper
        # For log delta = -1e-6 the error was once 1e-15, a relative error of 1e-9.
        assert upper - lower <= 1e-12 * abs(exact) + 1e-15 * (exact < -0.1) + 1e-321
