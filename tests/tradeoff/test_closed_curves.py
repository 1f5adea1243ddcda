"""Closed-form trade-off functions against mpmath, and against discrete distributions that converge to them."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds import Tradeoff
from shufflebounds.mechanisms import GaussianMechanism, GaussianVector, LaplaceMechanism
from tests.strategies import slow, thinned

CLOSED = [
    Tradeoff.gaussian(0.0), Tradeoff.gaussian(0.3), Tradeoff.gaussian(4.0), Tradeoff.laplace(0.0), Tradeoff.laplace(0.7),
    Tradeoff.laplace(6.0), Tradeoff.approximate(1.0, 1e-3), Tradeoff.approximate(0.0, 0.2), Tradeoff.randomized_response(0.0),
    Tradeoff.randomized_response(2.0),
]  # fmt: skip


def tail(z):
    return mpmath.erfc(z / mpmath.sqrt(2)) / 2


def gaussian_log_delta(mu, eps):
    mu, eps = mpmath.mpf(mu), mpmath.mpf(eps)
    x = eps / mu - mu / 2
    return mpmath.log(tail(x) - mpmath.exp(eps) * tail(x + mu))


@pytest.mark.parametrize(
    ("mu", "eps"),
    thinned([
        (1.0, 0.0), (1.0, 1.0), (1.0, 3.0), (1.0, 10.0), (1.0, 1e3), (0.001, 0.01), (0.05, 2.0), (30.0, 400.0), (1.0, 20.0),
        (0.01, 0.0), (5.0, 1.0), (1.0, 1414.7), (0.1, 141.4), (1e-3, 1.4142), (1e-6, 0.0), (1e-6, 1e-7), (1e-3, 1e-3), (0.3, 1e-8),
        (0.49, 0.12), (0.51, 0.13), (0.5, 0.3), (10.0, 0.0), (60.0, 0.0), (100.0, 3.0), (40.0, 810.0), (80.0, 700.0), (1.0, -2.0),
        (0.2, -1.0), (1e4, 5e7), (0.43, -0.7), (0.4999, -0.81), (0.3, -0.01), (1e-3, -1e-3), (5.0, -30.0),
    ], 3),
)  # fmt: skip
def test_gaussian_delta(mu, eps):
    # The parameters range from delta near 1 down to log delta = -1e6.
    with mpmath.workdps(500):
        exact = gaussian_log_delta(mu, eps)
        value = mpmath.mpf(Tradeoff.gaussian(mu).log_delta(eps))
        # Here 1 - delta is about e^-450; the tolerance is ten rounding errors of this exponent.
        assert abs(value - exact) <= (1e-14 * max(1, abs(exact)) if exact < -1e-3 else 2e-13 * abs(exact))


def test_gaussian_delta_of_the_spec():
    f = Tradeoff.gaussian(1.0)
    exact = [0.38292492254802620728, 0.12693673750664394580, 0.0015371853694009548469, 9.8127058268469559492e-23]
    np.testing.assert_allclose(f.delta([0, 1, 3, 10]), exact, rtol=1e-14)


@pytest.mark.parametrize("mu", [0.0, 1e-3, 0.7, 12.0, 500.0])
@pytest.mark.parametrize("log_alpha", thinned([-1e5, -9876.5, -800.0, -701.0, -30.0, -1.0, -0.7, -0.69, -1e-3, -1e-20, -1e-300], 3))
def test_gaussian_beta(mu, log_alpha):
    with mpmath.workdps(60):
        low = min(mpmath.exp(mpmath.mpf(log_alpha)), -mpmath.expm1(mpmath.mpf(log_alpha)))
        z = -mpmath.sqrt(max(-2 * mpmath.log(low) - mpmath.log(max(-2 * mpmath.log(low), 1)), mpmath.mpf("0.01")))
        for _ in range(40):
            at = tail(-z)
            z -= (mpmath.log(at) - mpmath.log(low)) * at / mpmath.npdf(z)
        z = z if log_alpha < -math.log(2) else -z
        below, above = tail(z + mpmath.mpf(mu)), tail(-z - mpmath.mpf(mu))
        exact = mpmath.log(below) if below < 0.5 else mpmath.log1p(-above)
        assert abs(mpmath.mpf(Tradeoff.gaussian(mu).log_beta(log_alpha)) - exact) <= 1e-14 * max(1, abs(exact))


@pytest.mark.parametrize("eps", [0.0, slow(0.25), 1.0, slow(7.5)])
def test_laplace(eps):
    f = Tradeoff.laplace(eps)
    with mpmath.workdps(40):
        cdf = lambda x: mpmath.exp(x) / 2 if x < 0 else 1 - mpmath.exp(-x) / 2  # noqa: E731
        e = mpmath.mpf(eps)
        for t in (-50, -3, -0.5, 0, 0.1, eps / 2, eps, eps + 0.3, 4 * eps + 5, 600):
            # The test rejects if x > t.
            alpha, beta = cdf(-mpmath.mpf(t)), cdf(mpmath.mpf(t) - e)
            if t > -5:
                assert f.log_beta(float(mpmath.log(alpha))) == pytest.approx(float(mpmath.log(beta)), abs=1e-12, rel=1e-13)
        for at in (-eps - 1, -eps / 2, 0.0, eps / 2, 0.99 * eps, eps, eps + 1):
            exact = mpmath.quad(
                lambda x: max(0, mpmath.exp(-abs(x - e)) - mpmath.exp(at) * mpmath.exp(-abs(x))) / 2,  # noqa: B023
                sorted({-60, 0, (at + eps) / 2 if abs(at) < eps else 0, eps, 60 + eps}),
            )
            assert f.delta(at) == pytest.approx(float(exact), abs=1e-12)
    for delta in (0.0, 1e-12, 0.1, 0.9, 1.0):
        assert f.delta(f.epsilon(delta)) <= delta
    assert f.epsilon(0.0) == eps
    # At the smallest mu, the curves touch at alpha = beta.
    mu = f.gdp_mu()
    alpha = np.linspace(0, 1, 2001)
    assert (Tradeoff.gaussian(mu).beta(alpha) <= f.beta(alpha) + 1e-15).all()
    if eps:
        middle = math.exp(-eps / 2) / 2
        assert Tradeoff.gaussian(mu).beta(middle) == pytest.approx(middle, rel=1e-13)


def test_laplace_is_the_limit_of_lists():
    x = np.linspace(-30, 32, 62 * 64 + 1)
    law = [-np.abs(x - m) for m in (0.0, 2.0)]
    law = [v - np.logaddexp.reduce(v) for v in law]
    f, g = Tradeoff.from_pmfs(*law), Tradeoff.laplace(2.0)
    alpha = np.linspace(0, 1, 41)
    np.testing.assert_allclose(f.beta(alpha), g.beta(alpha), atol=2e-4)
    np.testing.assert_allclose(f.delta([0.0, 0.5, 1.0, 1.9]), g.delta([0.0, 0.5, 1.0, 1.9]), atol=2e-4)


@pytest.mark.parametrize("eps", [0.0, 0.5, 3.0, 900.0])
@pytest.mark.parametrize("delta", thinned([0.0, 1e-300, 1e-5, 0.5, 1.0], 2))
def test_approximate(eps, delta):
    f = Tradeoff.approximate(eps, delta)
    for alpha in (0.0, 1e-9, 0.1, 0.3, 0.5, 0.9, 1.0):
        with mpmath.workdps(40):
            a, d, e = mpmath.mpf(alpha), mpmath.mpf(delta), mpmath.exp(mpmath.mpf(eps))
            exact = max(0, 1 - d - e * a, (1 - d - a) / e)
        assert f.beta(alpha) == pytest.approx(float(exact), abs=1e-15)
    assert f.delta(eps) == pytest.approx(delta, rel=1e-14)
    assert f.delta(eps + 1) == pytest.approx(delta, rel=1e-14)
    assert f.epsilon(delta) <= eps * (1 + 1e-14)
    for at in (0.0, eps / 3, 0.9 * eps):
        exact = delta + (1 - delta) * math.exp(-eps) * (math.exp(eps) - math.exp(at)) / (1 + math.exp(-eps)) if eps < 700 else None
        if exact is not None:
            assert f.delta(at) == pytest.approx(exact, rel=1e-12)
    assert f.gdp_mu() == math.inf if delta else f.gdp_mu() >= 0
    assert f.inverse() == f
    assert (delta == 0) == (f == Tradeoff.randomized_response(eps))


@pytest.mark.parametrize("categories", [2, 3, 10])
def test_randomized_response_over_categories(categories):
    # In one category p/q = e^eps; in all others p = q.
    eps = 1.5
    q = 1 / (math.exp(eps) + categories - 1)
    p = math.exp(eps) * q
    laws = [[p if i == j else q for i in range(categories)] for j in (0, 1)]
    f = Tradeoff.from_pmfs(*np.log(laws))
    alpha = np.linspace(0, 1, 201)
    closed = np.where(alpha <= 1 - p, 1 - p + q - alpha, math.exp(-eps) * (1 - alpha))
    closed = np.where(alpha <= q, 1 - math.exp(eps) * alpha, closed)
    np.testing.assert_allclose(f.beta(alpha), closed, atol=1e-15)
    for e in (0.0, 0.4, 1.5, 2.0):
        assert f.delta(e) == pytest.approx(max(0.0, p - math.exp(e) * q), abs=1e-15)
    if categories == 2:
        np.testing.assert_allclose(Tradeoff.randomized_response(eps).beta(alpha), f.beta(alpha), atol=1e-15)


@pytest.mark.parametrize("f", CLOSED, ids=repr)
def test_laws_of_every_curve(f):
    alpha = np.linspace(0, 1, 257)
    beta = f.beta(alpha)
    assert (beta <= 1 - alpha + 1e-15).all()
    assert (np.diff(beta) <= 1e-15).all()
    assert (beta[:-2] + beta[2:] - 2 * beta[1:-1] >= -1e-14).all()
    assert f.beta(1.0) == 0
    eps = np.linspace(-3, 12, 61)
    delta = f.delta(eps)
    assert (np.diff(delta) <= 1e-15).all()
    # The dual formula on a grid of alpha is at most delta, and close to it.
    dual = np.maximum(0, (1 - beta[:, None] - np.exp(eps) * alpha[:, None]).max(axis=0))
    assert (dual <= delta + 1e-14).all()
    assert f.advantage() == f.delta(0.0)
    assert f.log_delta(eps.reshape(1, -1)).shape == (1, 61)
    assert f.inverse().inverse() == f
    for level in (1e-4, 0.1, 0.4):
        assert f.inverse().beta(f.beta(level)) == pytest.approx(level, rel=1e-9) or f.beta(level) == 0
    grid = [0.3, 0.01, 1e-10, 1e-100]
    at = f.epsilon(grid)
    assert (f.delta(at[np.isfinite(at)]) <= np.array(grid)[np.isfinite(at)]).all()
    assert eval(repr(f), {"Tradeoff": Tradeoff}) == f
    np.testing.assert_allclose(f.symmetrized().beta(alpha), beta, atol=1e-15)
    np.testing.assert_allclose(f.convex_hull().beta(alpha), beta, atol=1e-15)


@given(st.floats(1e-3, 30), st.floats(1e-300, 0.99))
def test_gaussian_epsilon_is_the_inverse(mu, delta):
    f = Tradeoff.gaussian(mu)
    eps = f.epsilon(delta)
    assert f.log_delta(eps) <= math.log(delta)
    if eps > 1e-6:
        assert f.log_delta(eps * (1 - 1e-9)) >= math.log(delta) * (1 + 1e-12)
    else:
        assert f.delta(0.0) <= delta * (1 + 1e-5)


def test_gaussian_of_extreme_mu():
    for mu in (5e-324, 1e-300, 1e-100):
        f = Tradeoff.gaussian(mu)
        # To first order, delta(0) = mu phi(0).
        assert f.log_delta(0.0) == pytest.approx(math.log(mu) - math.log(2 * math.pi) / 2, rel=1e-14)
        assert f.log_delta(1.0) < -1e199
        assert f.log_delta(-1.0) == pytest.approx(math.log(-math.expm1(-1.0)), rel=1e-14)
        assert f.beta([0.0, 0.3, 1.0]) == pytest.approx([1.0, 0.7, 0.0], rel=1e-14)
    f = Tradeoff.gaussian(1e6)
    assert f.delta([0.0, 1e11]).tolist() == [1.0, 1.0]
    assert f.epsilon(1e-3) == pytest.approx(5e11, rel=1e-4)


def test_gaussian_calibration_of_the_field():
    # For the analytic Gaussian mechanism at (1, 1e-5), sigma is 3.7306316.
    assert Tradeoff.gaussian(1 / 3.7306316).epsilon(1e-5) == pytest.approx(1.0, rel=1e-7)


def test_closed_forms_have_no_knots():
    for f in (Tradeoff.gaussian(1.0), Tradeoff.laplace(1.0)):
        with pytest.raises(AttributeError, match="not piecewise linear"):
            _ = f.knots
    assert Tradeoff.gaussian(1.0) == Tradeoff.gaussian(1)
    assert Tradeoff.gaussian(1.0) != Tradeoff.gaussian(2.0)
    assert hash(Tradeoff.laplace(1.0)) == hash(Tradeoff.laplace(1))
    assert Tradeoff.gaussian(3.5).gdp_mu() == 3.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Tradeoff.gaussian(-1.0), r"mu=-1 must be in \[0, 1e\+06\]"),
        (lambda: Tradeoff.gaussian(math.nan), "mu=nan"),
        (lambda: Tradeoff.laplace(-1.0), "eps=-1"),
        (lambda: Tradeoff.approximate(1.0, 1.5), "delta=1.5"),
        (lambda: Tradeoff.approximate(math.inf, 0.5), "eps=inf"),
        (lambda: Tradeoff.randomized_response([1.0]), "eps must be a single number"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def _log_normal(x):
    """Return log Phi(x), computed from the smaller tail."""
    return mpmath.log1p(-mpmath.erfc(x / mpmath.sqrt(2)) / 2) if x > 0 else mpmath.log(mpmath.erfc(-x / mpmath.sqrt(2)) / 2)


def _laplace(eps, log_alpha):
    alpha, shift = mpmath.exp(log_alpha), mpmath.exp(-eps)
    if alpha < shift / 2:
        return mpmath.log1p(-alpha / shift)
    return mpmath.log(shift / (4 * alpha)) if alpha <= 0.5 else mpmath.log(shift * (1 - alpha))


@pytest.mark.parametrize("seed", range(4))
def test_curves_of_noise_lie_on_their_sides_without_tolerance(seed):
    rng = np.random.default_rng(seed)
    for _ in range(12):
        sigma, dimension = float(10 ** rng.uniform(-1, 2)), int(rng.integers(1, 257))
        with mpmath.workdps(90):
            # The level is that of a given quantile, so that no inversion is necessary.
            z = mpmath.mpf(float(rng.normal(scale=4)))
            level = float(_log_normal(z))
            slope = mpmath.exp(-z * z / 2) / mpmath.sqrt(2 * mpmath.pi) / mpmath.exp(_log_normal(z))
            z -= (_log_normal(z) - mpmath.mpf(level)) / slope
            cases = [
                (GaussianVector(sigma, dimension, "cube"), _log_normal(-z - mpmath.sqrt(dimension) / mpmath.mpf(sigma))),
                (GaussianMechanism(sigma, 0.3), _log_normal(-z - mpmath.mpf(0.3) / mpmath.mpf(sigma))),
                (LaplaceMechanism(sigma, 0.3), _laplace(mpmath.mpf(0.3) / mpmath.mpf(sigma), mpmath.mpf(level))),
            ]
            for mechanism, exact in cases:
                lower, upper = (mechanism.tradeoff(bound=bound).log_beta(level) for bound in ("lower", "upper"))
                assert lower <= exact <= upper
                assert upper - lower <= 1e-10 * abs(exact)


@pytest.mark.parametrize(
    "mechanism",
    [GaussianMechanism(0.7), GaussianMechanism(0.01), GaussianMechanism(2.33), LaplaceMechanism(2.0), LaplaceMechanism(0.01)],
    ids=repr,
)
def test_deltas_of_the_curves_of_noise_enclose_the_delta(mechanism):
    below, above = mechanism.tradeoff(), mechanism.tradeoff(bound="upper")
    for eps in (0.0, 1e-6, 0.3, 1.0, 30.0):
        assert above.log_delta(eps) <= mechanism.log_delta(eps)
        assert below.log_delta(eps) >= mechanism.log_delta(eps, bound="lower")
    if isinstance(mechanism, GaussianMechanism):
        for eps in (-5.0, -0.7, -0.1):
            with mpmath.workdps(80):
                assert above.log_delta(eps) <= gaussian_log_delta(1 / mpmath.mpf(mechanism.sigma), eps) <= below.log_delta(eps)
    both = below.tensor(below) if isinstance(mechanism, GaussianMechanism) else below
    assert both.delta(0.1) >= below.delta(0.1)
