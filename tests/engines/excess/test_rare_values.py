"""E S_+ where values that few users have decide the sum, against the sum over all numbers of users with each value."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds import mechanisms, shuffle
from shufflebounds._engines.excess.evaluation import Effort, sums
from tests.strategies import slow, thinned

flint = pytest.importorskip("flint")


def exact(values, weights, users):
    """Return log E S_+ for whole values with the masses weights/sum(weights)."""
    total, *later = values
    powers = [[w**k for k in range(users + 1)] for w in weights]
    found = 0
    for counts in itertools.product(*[range(users + 1) for _ in later]):
        first = users - sum(counts)
        if first >= 0 and (s := first * total + sum(k * x for k, x in zip(counts, later))) > 0:
            ways = math.factorial(users)
            for k in (first, *counts):
                ways //= math.factorial(k)
            found += ways * s * math.prod(row[k] for row, k in zip(powers, (first, *counts)))
    value = flint.arb(found) / flint.arb(sum(weights)) ** users
    return float(value.log().mid())


@pytest.mark.parametrize("effort", list(Effort))
@pytest.mark.parametrize(("values", "weights", "users"), thinned([
    # A single user with the lowest value makes the sum negative, whatever the others have: often, rarely, and nearly always.
    ((0, 3, -2, -(10**9)), (60, 10, 20, 10), 20),
    ((0, 5, -1, -(10**15)), (10**6, 10, 10**6, 1), 40),
    ((0, 2, -1, -(10**8)), (1, 1, 1, 10**7), 12),
    ((-3, 2, 1, -37 * 2), (5, 7, 9, 1), 30),
    # Values of users that are not allowed to be left out: just above the sum of all others.
    ((0, 2, -1, -2 * 29), (4, 3, 5, 2), 30),
    # Large values that nobody is likely to have, and a small E S_+.
    ((0, 20000, -1, 1), (10**4, 1, 10**4, 10**3), 50),
    ((-1, 30000, 15000, 4), (10**13, 1, 10, 10**9), 45),
    slow((-2, 25000, 1, 12500), (10**12, 1, 10**8, 10**3), 60),
], 2))
def test_sums_enclose_exact_values(values, weights, users, effort):
    value = exact(values, weights, users)
    log_mass = np.log([float(Fraction(w, sum(weights))) for w in weights])
    for upper in (None, False, True):
        found = sums(np.array(values, dtype=float), log_mass, float(users), upper, effort)
        slack = 1e-13 * users * (1 + abs(value))
        assert found.lower <= value + slack
        assert value - slack <= found.upper
        if upper is None and effort is Effort.FINE:
            assert found.upper - found.lower < 0.01


def test_the_mass_of_an_upper_bound_may_exceed_one():
    # n E X_+ was compared with a sum over masses of 1 + 2^-42, and declared inconsistent.
    noise = shuffle.Shuffled(mechanisms.GeometricMechanism(0.952), 30)
    assert noise.gdp_mu(bound="lower") <= noise.gdp_mu() < 0.3


@pytest.mark.parametrize("chance", [1e-25, 1e-16, 1e-310])
def test_rare_fatal_values_of_many_users_keep_the_gap_small(chance):
    # Their rounding error was once that of all masses: 16 for 2^53 users.
    users, mass = 2.0**53, 1e-10
    values = np.array([0.0, 1.0, -1.0, -1e17])
    log_mass = np.array([math.log1p(-2 * mass), math.log(mass), math.log(mass), math.log(chance)])
    found = sums(values, log_mass, users, None, Effort.FINE)
    # The others have a normal distribution with variance 2 mass users.
    normal = math.log(math.sqrt(mass * users / math.pi)) + users * math.log1p(-chance)
    assert found.upper - found.lower < 1e-5
    assert found.lower - 1e-6 <= normal <= found.upper + 1e-6
