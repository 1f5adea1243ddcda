"""Compositions of distributions with infinite losses, with few finite losses or with losses near 0, against exact enumeration."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from shufflebounds import DominatingPair
from shufflebounds.mechanisms import FiniteRandomizer, RandomizedResponse
from shufflebounds.shuffle import Shuffled
from tests.fuzz.compositions import exact, neighbours, wrong
from tests.strategies import slow

pytest.importorskip("flint")

FINE = 2.0**-20
CERTAIN = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
SPARSE = [[0.0, 0.0, 1.0], [0.0, 381626 * FINE, 666950 * FINE], [524210 * FINE, 387388 * FINE, 136978 * FINE]]
HALF = [[0.5, 0.5], [1.0, 0.0]]
CLOSE = [[0.5, 0.5], [0.5 + 2.0**-50, 0.5 - 2.0**-50]]
# One loss is 6.24, and all others are below 1e-10.
RARE = [[2.0**-47, 1 - 2.0**-40, 2.0**-40 - 2.0**-47], [2.0**-38, 1 - 2.0**-38 - 2.0**-40, 2.0**-40],
        [2.0**-47, 1 - 2.0**-40 + 2.0**-48, 2.0**-40 - 2.0**-47 - 2.0**-48]]


def violation(profile, releases, eps):
    """Return a description of what is wrong with the bounds of log delta at eps, or None.

    The exact value comes from an enumeration of the best strategy.
    """
    low, high = (float(profile.log_delta(eps, bound=bound)) for bound in ("lower", "upper"))
    return wrong(low, high, *exact(releases, eps))


@pytest.mark.parametrize("eps", [slow(0.0), 0.1])
@pytest.mark.parametrize(
    "releases",
    [
        # Every loss of one release is infinite, or larger than every eps of interest.
        [([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]],), ([[0.125, 0.875], [0.0625, 0.9375]],)],
        [([[0.125, 0.875], [0.0625, 0.9375]],), ([[0.5, 0.25, 0.25], [1.0, 0.0, 0.0], [0.25, 0.25, 0.5]],)],
        # One release reveals its input with certainty.
        [([[0.625, 0.375], [0.375, 0.625]],), (CERTAIN, 2)],
        # In one of the two orders, the lower bound of delta is 0 at every eps.
        slow([([[0.5, 0.5], [0.5 + 2.0**-45, 0.5 - 2.0**-45]], 2)] * 2),
        # Exponential tilting leaves a single loss with a mass above 0 in double precision.
        [(SPARSE,), ([[62 / 64, 2 / 64], [19 / 64, 45 / 64]], 1, 0.25)],
        slow([(HALF, 3)] * 2),
        # The losses of some pairs need a grid that is too long for the adaptive recursion.
        slow([(RARE,)] * 2),
        [([[1.0, 0.0], [1.0, 0.0], [0.595, 0.405]], 2), ([[0.0, 1.0], [0.40625, 0.59375]],)],
    ],
)  # fmt: skip
def test_composition_encloses_the_best_strategy(releases, eps):
    both = [neighbours(*one) for one in releases]
    profile = both[0][0].compose(*(mechanism for mechanism, _ in both[1:]))
    assert violation(profile, [pairs for _, pairs in both], eps) is None


def test_infinite_losses_leave_no_finite_lower_epsilon():
    # A search once went up to eps = 609, although infinite losses have mass 1/2 in one release.
    for users in (3, 5):
        one = Shuffled(FiniteRandomizer(HALF), users)
        assert one.self_compose(2).epsilon(0.3, bound="lower") == math.inf
        # The mass at infinite loss is part of delta at every finite eps.
        assert one.log_delta(710.0, bound="lower") == pytest.approx(math.log(0.5), rel=1e-12)


def test_nearly_equal_rows_compose_to_their_own_size():
    # The upper bound was once 1e-9 for a delta of 2e-15.
    many, pairs = neighbours(CLOSE)
    both = many.self_compose(2)
    assert violation(both, [pairs] * 2, 0.0) is None
    assert both.delta(0.0) < 100 * 2.0**-49


@pytest.mark.parametrize("faint", [1e-50, 1e-100, 1e-300])
def test_four_outcomes_ten_times_are_enumerated(faint):
    # An outcome of tiny mass once caused a grid that took 40 s, instead of an enumeration of 286 multisets.
    spread = (1 - 1e-6) / (1 + math.e)
    p, q = [1e-6, spread * math.e, spread, faint], [faint, spread, spread * math.e, 1e-6]
    many = DominatingPair.from_pmfs(np.log(p), np.log(q)).self_compose(10)
    first, second = ([Fraction(x) for x in law] for law in (p, q))
    eps, exact = 8.0, Fraction(0)
    for outcome in itertools.combinations_with_replacement(range(4), 10):
        ways = math.factorial(10) // math.prod(math.factorial(outcome.count(i)) for i in range(4))
        here, there = (math.prod(law[i] for i in outcome) for law in (first, second))
        exact += ways * max(Fraction(0), here - Fraction(math.exp(eps)) * there)
    # The tolerance covers the rounding of the logarithms of the masses.
    for bound in ("lower", "upper"):
        assert many.delta(eps, bound=bound) == pytest.approx(float(exact), rel=1e-11)
    assert many._product._enumerated is not None


@pytest.mark.parametrize("budget", [1e-11, 1e-7, 1e-3])
@pytest.mark.parametrize("times", [2, 5, 40])
def test_releases_of_a_small_budget_have_relative_accuracy(budget, times):
    # The losses are multiples of the budget, so all outcomes are the numbers of true answers.
    answers = RandomizedResponse(budget).self_compose(times)
    with mpmath.workdps(60):
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(budget)))
        for part in (0.1, 0.5, 0.9):
            eps = part * times * budget
            terms = (math.comb(times, k) * (p**k * (1 - p) ** (times - k) - mpmath.exp(eps) * p ** (times - k) * (1 - p) ** k)
                     for k in range(times + 1))
            exact = mpmath.log(sum(max(term, mpmath.mpf(0)) for term in terms))
            lower, upper = (answers.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
            assert lower <= exact <= upper
            assert upper - lower < 1e-11
    assert answers.epsilon(0.0, bound="lower") == pytest.approx(times * budget, rel=1e-12)
