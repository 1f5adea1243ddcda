"""Logarithms of incomplete gamma and beta functions, and of Poisson and negative binomial distributions, against python-flint."""

import math
import random

import numpy as np
import pytest

pytest.importorskip("flint")

import flint
from flint import arb

from shufflebounds._core import _beta, _gamma
from tests.reference.measure_gamma import FAMILIES
from tests.strategies import thinned


@pytest.mark.parametrize("family", thinned(FAMILIES, 2))
@pytest.mark.parametrize("seed", [7, 8])
def test_errors_stay_as_stated(family, seed):
    found = list(FAMILIES[family](random.Random(seed), 40))
    assert len(found) >= 50
    assert max(found) < 1


def test_limits_of_the_incomplete_gamma_functions():
    P, Q = _gamma.log_gammainc, _gamma.log_gammaincc
    assert (P(0.0, 3.0), Q(0.0, 3.0)) == (0, -math.inf)
    assert (P(2.0, 0.0), Q(2.0, 0.0)) == (-math.inf, 0)
    assert P(1.0, 3.0) == pytest.approx(math.log(-math.expm1(-3)), rel=1e-15)
    assert Q(1.0, 1e270) == -1e270
    # As a tends to 0, Q(a, x) is about a E1(x) and P(a, x) about x^a.
    flint.ctx.prec = 200
    for x in (1e-300, 0.1, 1.0, 1.4999, 1.5, 40.0):
        exact = (arb("1e-290") * arb(x).expint(1)).log()
        assert Q(1e-290, x) == pytest.approx(float(exact.mid()), abs=2e-13)
    assert P(1e-10, 1e-300) == pytest.approx(-1e-10 * (300 * math.log(10) - 0.5772156649015329), rel=1e-9)
    assert P(1e200, 1e-300) == pytest.approx(-1e200 * (math.log(1e200) - math.log(1e-300) - 1), rel=1e-15)
    assert P(1e270, 1e270) == pytest.approx(math.log(0.5), rel=1e-13)
    for bad in ((-1.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (math.inf, math.inf), (1e271, 1.0)):
        assert math.isnan(P(*bad))
        assert math.isnan(Q(*bad))


def test_limits_of_the_incomplete_beta_functions():
    P, Q = _beta.log_betainc, _beta.log_betaincc
    assert (P(2.0, 3.0, 0.0), Q(2.0, 3.0, 0.0)) == (-math.inf, 0)
    assert (P(2.0, 3.0, 1.0), Q(2.0, 3.0, 1.0)) == (0, -math.inf)
    for a in (1e-280, 0.3, 1.0, 7.5, 1e60):
        # The reference value is the identity I_x(a, 1) = x^a.
        for x in (5e-324, 1e-200, 0.25, 0.5, 0.75, 1 - 2.0**-53):
            power = a * math.log(x)
            assert P(a, 1.0, x) == pytest.approx(power, rel=1e-13, abs=5e-324)
            if power < 0:
                assert Q(a, 1.0, x) == pytest.approx(math.log(-math.expm1(power)), rel=1e-13, abs=1e-13)
        assert P(a, a, 0.5) == pytest.approx(math.log(0.5), rel=1e-13)
    for bad in ((0.0, 0.0, 0.5), (1.0, -1.0, 0.5), (1.0, 1.0, 1.5), (math.nan, 1.0, 0.5), (1.0, 1.0, -0.1), (1e101, 1.0, 0.5)):
        assert math.isnan(P(*bad))
        assert math.isnan(Q(*bad))


def test_probabilities_of_single_counts():
    rng = random.Random(5)
    flint.ctx.prec = 250
    for _ in range(300):
        k = float(round(math.exp(rng.uniform(0, 36.7))))
        mu = rng.choice([k * rng.uniform(0.5, 2), max(1e-300, k + math.sqrt(k) * rng.gauss(0, 3)), math.exp(rng.uniform(-600, 36))])
        exact = arb(k) * arb(mu).log() - arb(mu) - (arb(k) + 1).lgamma()
        assert abs(float((arb(float(_gamma.poisson_logpmf(k, mu))) - exact).mid())) <= 1e-13 + 4 * math.ulp(float(exact.mid()))
        r = math.exp(rng.uniform(-30, 30))
        p = rng.choice([rng.random(), math.exp(rng.uniform(-700, 0)), min(r / (r + k) * rng.uniform(0.9, 1.1), 1 - 2.0**-53)])
        exact = (arb(k) + arb(r)).lgamma() - (arb(k) + 1).lgamma() - arb(r).lgamma()
        exact += arb(r) * arb(p).log() + arb(k) * (-arb(p)).log1p()
        got = arb(float(_beta.nbinom_logpmf(k, r, p)))
        assert abs(float((got - exact).mid())) <= 1e-13 + 4 * math.ulp(float(exact.mid())), (k, r, p)


def test_tails_are_values_of_the_incomplete_functions():
    k = np.array([-1.0, 0.0, 0.5, 3.0, 50.0])
    whole = np.floor(k[1:]) + 1
    assert np.array_equal(_gamma.poisson_logsf(k[1:], 7.5), _gamma.log_gammainc(whole, 7.5))
    assert np.array_equal(_gamma.poisson_logcdf(k[1:], 7.5), _gamma.log_gammaincc(whole, 7.5))
    assert np.array_equal(_beta.nbinom_logcdf(k[1:], 2.5, 0.25), _beta.log_betainc(2.5, whole, 0.25))
    assert np.array_equal(_beta.nbinom_logsf(k[1:], 2.5, 0.25), _beta.log_betaincc(2.5, whole, 0.25))
    for pmf, cdf, sf, law in ((_gamma.poisson_logpmf, _gamma.poisson_logcdf, _gamma.poisson_logsf, (7.5,)),
                              (_beta.nbinom_logpmf, _beta.nbinom_logcdf, _beta.nbinom_logsf, (2.5, 0.25))):
        assert (pmf(-1, *law), cdf(-1, *law), sf(-1, *law)) == (-math.inf, -math.inf, 0)
        assert pmf(0.5, *law) == -math.inf
        values = np.arange(400.0)
        assert np.exp(cdf(20, *law)) == pytest.approx(np.exp(pmf(values[:21], *law)).sum(), rel=1e-13)
        assert np.exp(sf(20, *law)) == pytest.approx(np.exp(pmf(values[21:], *law)).sum(), rel=1e-12)
        assert math.isnan(pmf(1.0, *(-1.0 for _ in law)))
    assert (_gamma.poisson_logpmf(0, 0.0), _gamma.poisson_logcdf(0, 0.0), _gamma.poisson_logsf(0, 0.0)) == (0, 0, -math.inf)
    assert (_beta.nbinom_logpmf(0, 2.0, 1.0), _beta.nbinom_logpmf(1, 2.0, 1.0)) == (0, -math.inf)
    assert _beta.nbinom_logcdf(5, 2.0, 0.0) == -math.inf


def series(ratio, first=1):
    """Return the sum of the products of ratio(first), ratio(first + 1), ..., in ball arithmetic."""
    total, term, i = arb(0), arb(1), first
    while term > total * arb("1e-40"):
        term *= ratio(i)
        total += term
        i += 1
    return total


@pytest.mark.parametrize("mu", [5e-324, *thinned([1e-300, 1.0, 1e15, 8.9e15, 9.2e15, 9702689792486452.0, 3e16, 1e200], 2)])
def test_the_largest_count_of_a_poisson_variable(mu):
    # k + 1 = 2**53 + 1 is no double. The tails are Pr[N = k] times a series, above and below k.
    k = 2**53
    flint.ctx.prec = 300
    log_pmf = k * arb(mu).log() - arb(mu) - (arb(k) + 1).lgamma()
    if mu < k:
        exact, computed = log_pmf + series(lambda i: arb(mu) / (k + i)).log(), _gamma.poisson_logsf
        other, complement = _gamma.poisson_logcdf, _gamma.poisson_logsf
    else:
        exact, computed = log_pmf + (1 + series(lambda i: (arb(k) - i) / mu, 0)).log(), _gamma.poisson_logcdf
        other, complement = _gamma.poisson_logsf, _gamma.poisson_logcdf
    value = float(exact.mid())
    for found in (computed(float(k), mu), computed(np.full(70, float(k)), mu)[-1]):
        assert abs(float((arb(float(found)) - exact).mid())) <= 1e-13 + 4 * math.ulp(value)
    assert other(float(k), mu) == pytest.approx(math.log1p(-math.exp(complement(float(k), mu))), rel=1e-13)


@pytest.mark.parametrize("mu", [2.0**53, 2.0**53 - 3e8, 2.0**53 + 3e8])
def test_the_largest_count_near_the_mean(mu):
    flint.ctx.prec = 400
    above = arb(mu).gamma_upper(arb(2**53) + 1, regularized=1)
    for found, exact in ((_gamma.poisson_logcdf, above), (_gamma.poisson_logsf, 1 - above)):
        value = float(exact.log().mid())
        assert found(2.0**53, mu) == pytest.approx(value, rel=1e-13)
        assert found(np.full(70, 2.0**53), mu)[-1] == found(2.0**53, mu)


@pytest.mark.parametrize(("r", "p"), [(1.0, 1e-14), (1.0, 0.5), (0.5, 0.25), (3e15, 0.5), (1e15, 0.2), (1e17, 0.9), (1e100, 1e-3)])
def test_the_largest_number_of_failures(r, p):
    k = 2**53
    flint.ctx.prec = 700
    q, size = 1 - arb(p), arb(k) + arb(r)
    log_pmf = size.lgamma() - (arb(k) + 1).lgamma() - arb(r).lgamma() + arb(r) * arb(p).log() + k * q.log()
    # The ratio of the probabilities of k + i and of k + i - 1 failures.
    if q * size < 0.995 * k:
        exact, computed = log_pmf + series(lambda i: q * (size + i - 1) / (k + i)).log(), _beta.nbinom_logsf
    elif q * size > 1.005 * k:
        exact, computed = log_pmf + (1 + series(lambda i: (arb(k) - i) / (q * (size - i - 1)), 0)).log(), _beta.nbinom_logcdf
    else:
        # For r = 1 the tail is q^(k + 1).
        exact, computed = (k + 1) * q.log(), _beta.nbinom_logsf
    for found in (computed(float(k), r, p), computed(np.full(70, float(k)), r, p)[-1]):
        assert abs(float((arb(float(found)) - exact).mid())) <= 1e-13 + 4 * math.ulp(float(exact.mid()))
    both = [found(float(k), r, p) for found in (_beta.nbinom_logcdf, _beta.nbinom_logsf)]
    assert math.fsum(map(math.exp, both)) == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize(("a", "b", "x"), [(0.15129050136317654, 1.553518689830009e93, 5.772317737119406e-94),
                                           (0.1456700763592006, 1.1957250303844574e50, 1.1621863965775209e-50)])
def test_a_small_parameter_beside_a_huge_one(a, b, x):
    # I_x(a, b) tends to the incomplete Gamma function at b x; the difference is of the order of 1/b.
    with flint.ctx.workprec(200):
        exact = (arb(b) * arb(x)).gamma_upper(arb(a), 1).log()
        assert abs(arb(_beta.log_betaincc(a, b, x)) - exact) < 2e-14
