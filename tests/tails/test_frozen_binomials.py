"""Frozen distributions: quantiles against their definition, moments and draws against exact sums, and extreme tails."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import tails

LAWS = st.one_of(
    st.builds(tails.binom, st.integers(0, 2**53), st.floats(0, 1)),
    st.builds(tails.binom, st.integers(0, 30), st.floats(0, 1)),
    st.builds(tails.poisson_binom, st.lists(st.floats(0, 1), min_size=1, max_size=20)),
    st.builds(lambda p, c: tails.poisson_binom([p, 0.3], [c, 7]), st.floats(0.01, 0.99), st.integers(1, 10**9)),
    st.builds(lambda first, p: tails.compound_binom(first, np.log([0.25, 0.5, 0.25]), p), st.integers(0, 10**9), st.floats(0, 1)),
)
# These are the methods of scipy.stats.poisson_binom that are supported here.
METHODS = ["logpmf", "logcdf", "logsf", "pmf", "cdf", "sf", "ppf", "isf", "rvs", "mean", "var", "std", "support", "expect",
           "interval", "median"]


@pytest.mark.slow
@settings(max_examples=25)
@given(LAWS, st.floats(0, 1), st.floats(-600, 0))
def test_quantiles_are_the_smallest_that_meet_their_level(law, q, log_q):
    for k, inside in (
        (law.ppf(q), lambda j: law.cdf(j) >= q if q <= 0.5 else law.sf(j) <= (1 - q) * (1 + 1e-11) + 1.2e-16),
        (law.isf(q), lambda j: law.sf(j) <= q * (1 + 1e-11) if q <= 0.5 else law.cdf(j) >= (1 - q) * (1 - 1e-11) - 1.2e-16),
        (law.ilogcdf(log_q), lambda j: law.logcdf(j) >= log_q - 1e-11),
        (law.ilogsf(log_q), lambda j: law.logsf(j) <= log_q + 1e-11),
    ):
        first, last = law.support()
        assert first - 1 <= k <= last
        if first <= k:
            assert inside(k) or law.cdf(k) >= q * (1 - 1e-11)
    for k, level in ((law.ppf(q), q), (law.ilogcdf(log_q), math.exp(log_q))):
        if law.support()[0] < k and 0 < level <= 0.5:
            assert law.cdf(k - 1) < level * (1 + 1e-11)
    for k, level in ((law.isf(q), q), (law.ilogsf(log_q), math.exp(log_q))):
        if law.support()[0] < k and 0 < level <= 0.5:
            assert law.sf(k - 1) > level * (1 - 1e-11)


@settings(max_examples=25)
@given(LAWS, st.floats(-8, 8))
def test_quantiles_undo_the_tails(law, z):
    first, last = law.support()
    k = min(max(math.floor(law.mean() + z * law.std()), first), last)
    # The assertion holds only if the step of the tail at k exceeds its rounding error.
    if law.logpmf(k) > law.logcdf(k) - 23 and law.cdf(k) <= 0.5:
        assert law.ppf(law.cdf(k)) == k
        assert law.ilogcdf(law.logcdf(k)) == k
    if k > first and law.logpmf(k) > law.logsf(k) - 23 and 0 < law.sf(k) <= 0.5:
        assert law.isf(law.sf(k)) == k
        assert law.ilogsf(law.logsf(k)) == k


@pytest.mark.parametrize("law", [
    tails.binom(12, 0.3), tails.poisson_binom([0.1, 0.5, 1.0, 0.9, 0.0]), tails.poisson_binom([0.25, 0.75], [3, 4]),
    tails.compound_binom(2, np.log([0.25, 0.5, 0.25]), 0.125),
])
def test_moments_expectations_and_draws(law):
    first, last = law.support()
    k = np.arange(first, last + 1)
    mass = law.pmf(k)
    assert mass.sum() == pytest.approx(1, rel=1e-13)
    assert law.mean() == pytest.approx(mass @ k, rel=1e-13)
    assert law.var() == pytest.approx(mass @ (k - law.mean()) ** 2, rel=1e-12)
    assert law.std() ** 2 == pytest.approx(law.var())
    assert law.expect() == pytest.approx(law.mean(), rel=1e-13)
    assert law.expect(np.square) == pytest.approx(law.var() + law.mean() ** 2, rel=1e-13)
    assert law.expect(lambda j: np.ones(j.size), lb=1, ub=3) == pytest.approx(law.cdf(3) - law.cdf(0), rel=1e-12)
    assert law.expect(lambda j: j > 1, lb=1, conditional=True) == pytest.approx(law.sf(1) / law.sf(0), rel=1e-12)
    assert law.expect(lb=last + 1, ub=last + 5) == 0
    with pytest.raises(ValueError, match="no mass"):
        law.expect(lb=last + 1, ub=last + 5, conditional=True)
    assert np.array_equal(law.ppf(law.cdf(k[:-1])), [law.ppf(law.cdf(j)) for j in k[:-1]])
    assert (law.ppf(0), law.ppf(1), law.isf(0), law.isf(1)) == (first - 1, last, last, first - 1)
    assert law.interval(0.9) == (law.ppf(0.05), law.isf(0.05))
    assert law.expect(lb=-np.inf, ub=np.inf) == law.expect()
    low, high = law.interval([[0.5, 0.9]])
    assert low.shape == high.shape == (1, 2)
    assert (low[0, 1], high[0, 1]) == law.interval(0.9)
    assert np.array_equal(law.rvs(5, random_state=3), law.rvs(5, rng=3))
    with pytest.raises(ValueError, match="give one of the two"):
        law.rvs(5, 1, random_state=1)
    for size in ((2**30, 2**30), 10**400):
        with pytest.raises(ValueError, match="random values"):
            law.rvs(size)
    draws = law.rvs(20000, rng=1)
    assert draws.min() >= first
    assert draws.max() <= last
    assert abs(draws.mean() - law.mean()) < 5 * law.std() / math.sqrt(20000)
    assert abs(draws.var() - law.var()) < 0.1 * law.var()
    assert np.ndim(law.rvs(rng=1)) == 0
    assert law.rvs((2, 3), rng=1).shape == (2, 3)
    assert repr(law).startswith(type(law).__name__)


def test_expectations_in_the_extreme_tail():
    # Pr[X >= lb] = e^-5990, so all probabilities are relative to that of lb, by the ratio (n - k) p/((k + 1)(1 - p)).
    law, lb = tails.binom(10**6, 0.3), 350000
    ratios = np.cumprod([(10**6 - k) * 0.3 / ((k + 1) * 0.7) for k in range(lb, lb + 500)])
    mass = np.append(1.0, ratios)
    assert law.sf(lb) == 0.0
    assert law.expect(lb=lb, conditional=True) == pytest.approx(lb + mass @ np.arange(501) / mass.sum(), rel=1e-13)
    assert law.expect(lb=lb) == 0.0


@pytest.mark.parametrize("name", METHODS)
def test_names_are_those_of_scipy(name):
    from scipy import stats

    assert callable(getattr(stats.binom(5, 0.5), name))
    assert callable(getattr(tails.binom(5, 0.5), name))


def test_tails_below_the_smallest_double():
    law = tails.poisson_binom(np.linspace(0.01, 0.99, 3000))
    k = math.ceil(law.mean() + 12 * law.std())
    assert law.logsf(k) == tails.poisson_binom_logsf(k, law.p) < -70
    assert law.isf(law.sf(k)) == k
    assert law.ilogsf(law.logsf(2500)) == 2500
    p = [Fraction(j, 64) for j in range(1, 64)]
    exact = [Fraction(1)]
    for q in p:
        exact = [a * (1 - q) + b * q for a, b in zip([*exact, Fraction(0)], [Fraction(0), *exact])]
    small = tails.poisson_binom([float(q) for q in p])
    for k in range(0, 63, 7):
        assert math.exp(small.logsf(k)) == pytest.approx(float(sum(exact[k + 1:])), rel=1e-12)


def test_draws_of_many_chances_are_by_inversion():
    law = tails.poisson_binom(np.linspace(0.01, 0.99, 2000))
    draws = law.rvs(4000, rng=3)
    assert abs(draws.mean() - law.mean()) < 5 * law.std() / math.sqrt(4000)
    assert abs(draws.std() - law.std()) < 0.08 * law.std()
    assert law.rvs(rng=3) == draws[0]


@pytest.mark.parametrize(("call", "named"), [
    (lambda: tails.binom(-1, 0.5), "n="), (lambda: tails.binom(3, 1.5), "p="), (lambda: tails.binom(3, 0.5).ppf(1.5), "q="),
    (lambda: tails.poisson_binom([2.0]), "p holds"), (lambda: tails.binom(3, 0.5).logsf(math.nan), "k has a NaN"),
    (lambda: tails.compound_binom(0, [0.0, 0.0], 0.5), "log_weights sum"), (lambda: tails.binom(3, 0.5).interval(2), "confidence"),
    (lambda: tails.binom(2**53, 0.5).expect(), "values to sum over"),
])
def test_errors_name_the_argument(call, named):
    with pytest.raises(ValueError, match=named):
        call()
