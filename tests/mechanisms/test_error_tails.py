"""Tails of the errors of noise and of SmallDB at probabilities down to 1e-300, against interval arithmetic."""

import math
from fractions import Fraction

import pytest
from flint import arb, ctx, fmpz
from scipy.stats import binom

from shufflebounds.mechanisms import DiscreteGaussianMechanism, FiniteRandomizer, GaussianMechanism, LaplaceMechanism
from shufflebounds.selection import small_db_error

BITS = 1400


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(BITS):
        yield


def of_all(each, k):
    """Return the probability that at least one of k independent errors exceeds t, if each does with probability `each`."""
    return 1 - (1 - each) ** arb(k)


def gaussian(mechanism, t, k):
    return of_all((arb(t) / (arb(mechanism.sigma) * arb(2).sqrt())).erfc(), k)


def laplace(mechanism, t, k):
    return of_all((-arb(t) / arb(mechanism.scale)).exp(), k)


def discrete(mechanism, t, k):
    def mass(j):
        return (-(arb(j) ** 2) / (2 * arb(mechanism.sigma) ** 2)).exp()

    reach = 60
    whole = 1 + 2 * sum((mass(j) for j in range(1, reach)), arb(0))
    return of_all(2 * sum((mass(j) for j in range(int(t) + 1, reach)), arb(0)) / whole, k)


CASES = [
    (GaussianMechanism(0.24407603695963584, 3.3), gaussian, 1.6906077269821396e-300, 2**53),
    (GaussianMechanism(1.0), gaussian, 1e-300, 1),
    (GaussianMechanism(3.0), gaussian, 0.5, 1000),
    (GaussianMechanism(4.0), gaussian, 1 - 2.0**-50, 2),
    (LaplaceMechanism(999900009999.0001), laplace, 0.06892773646782413, 18254),
    (LaplaceMechanism(1.0), laplace, 1e-300, 2**53),
    (LaplaceMechanism(2.0), laplace, 1 - 1e-12, 3),
    (DiscreteGaussianMechanism(0.6771456277230247), discrete, 1e-229, 1),
    (DiscreteGaussianMechanism(0.6771456277230247), discrete, 1e-200, 2**40),
]


@pytest.mark.parametrize(("mechanism", "exact", "beta", "k"), CASES, ids=range(len(CASES)))
def test_tails_and_quantiles_meet_their_stated_tolerance(mechanism, exact, beta, k):
    """At beta = 1e-300 and 2^53 values the probability for one value is subnormal, which once caused a relative error of 1e-8."""
    tolerance = 1e-14 * (1 - math.log(beta))
    t = mechanism.error_quantile(beta, k)
    assert mechanism.error_tail(t, k) <= beta
    assert exact(mechanism, t, k) <= beta * (1 + tolerance)
    for at in (t, 0.5 * t):
        whole = math.floor(at) if mechanism.whole else at
        true = float(exact(mechanism, whole, k))
        assert mechanism.error_tail(at, k) == pytest.approx(true, rel=1e-14 * (1 - math.log(true)))
    below = t - 1 if mechanism.whole else t * (1 - 1e-12)
    assert below < 0 or exact(mechanism, below, k) > beta * (1 - tolerance)


@pytest.mark.parametrize(
    ("domain", "size", "records", "eps", "beta"),
    [(748202, 1, 1, 0.32484197652800423, 7.855123021687462e-38), (3, 10**6, 5, 1.0, 0.5), (10**9, 7, 100, 0.1, 0.05),
     (1, 5, 2, 1.0, 0.5), (2000, 2000, 10, 2.0, 1e-9)],
)
def test_small_db_error_is_not_below_the_exact_bound(domain, size, records, eps, beta):
    """A difference of log gamma functions was once too small by a relative 1e-11."""
    few = min(size, domain - 1)
    databases = fmpz(1)
    for i in range(few):
        databases = databases * (size + domain - 1 - i) // (i + 1)
    queries = 10
    exact = (arb(2 * queries).log() / (2 * size)).sqrt() + 2 / (arb(eps) * records) * (arb(databases).log() - arb(beta).log())
    value = small_db_error(domain=domain, queries=queries, records=records, eps=eps, beta=beta, size=size).error
    assert exact <= value <= float(exact) * (1 + 1e-12)


@pytest.mark.parametrize(("users", "beta"), [(12, 0.05), (24, 1e-6)])
def test_error_quantile_of_a_matrix_is_near_the_exact_one(users, beta):
    """Each of two inputs is reported with probability 3/4, so the estimate of a count is (y - users/4)/(1/2)."""
    keep, worst = Fraction(3, 4), Fraction(0)
    for ones in range(users + 1):
        law = [Fraction(1)]
        for chance in [keep] * ones + [1 - keep] * (users - ones):
            law = [chance * a + (1 - chance) * b for a, b in zip([0, *law], [*law, 0])]
        tail = Fraction(0)
        for error, mass in sorted(((abs(2 * (y - Fraction(users, 4)) - ones), mass) for y, mass in enumerate(law)), reverse=True):
            tail += mass
            if tail > Fraction(beta):
                worst = max(worst, error)
                break
    quantile = FiniteRandomizer([[0.75, 0.25], [0.25, 0.75]]).error_quantile(beta, users=users)
    # For two normal tails, Chernoff's bound is at most sqrt(2 log 40)/1.96 = 1.39 times the quantile for beta = .05.
    assert worst * (1 - Fraction(1, 10**12)) <= quantile <= 1.5 * worst


def test_error_tail_of_many_users_is_near_the_exact_one():
    """The number of users who report their input 0 is binomial, and the error of the estimate is twice its distance from 3 n/4."""
    users = 4 * 10**8
    for z in (2.0, 4.0):
        a = z * math.sqrt(0.75 * users)
        above = binom.sf(math.floor(0.75 * users + a / 2), users, 0.75)
        below = binom.cdf(math.ceil(0.75 * users - a / 2) - 1, users, 0.75)
        tail = FiniteRandomizer([[0.75, 0.25], [0.25, 0.75]]).error_tail(a, [users, 0])
        assert above + below <= tail <= 2 * math.exp(-z * z / 2) * (1 + 1e-3)
