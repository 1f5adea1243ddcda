"""Adaptive strategies: the recursion is compared with all strategies, and compositions with the recursion in fractions."""

import itertools
import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import mechanisms, shuffle
from shufflebounds._engines.compose.adaptive import Adaptive, _Strategy
from shufflebounds._engines.compose.grid_product import Product
from shufflebounds.profile import Composition
from shufflebounds.profile.extend import LossAtoms
from shufflebounds.sampling import ReplaceOne
from tests.strategies import slow, thinned


def best(pairs, releases, factor):
    """Return the largest divergence over all adaptive strategies; `pairs` holds lists of (P, Q) masses as fractions."""
    if releases == 0:
        return max(Fraction(0), 1 - factor)
    return max(
        sum((p * best(pairs, releases - 1, factor * q / p) for p, q in pair if p > 0), Fraction(0)) for pair in pairs
    )


def strategies(pairs, releases):
    """Return the joint distributions of all results, one list of (P, Q) for every adaptive strategy."""
    if releases == 0:
        yield [(Fraction(1), Fraction(1))]
        return
    for pair in pairs:
        for rest in itertools.product(list(strategies(pairs, releases - 1)), repeat=len(pair)):
            yield [(p * a, q * b) for (p, q), one in zip(pair, rest) for a, b in one]


def both_orders(weights, others):
    first, second = [Fraction(w, sum(weights)) for w in weights], [Fraction(w, sum(others)) for w in others]
    pair = list(zip(first, second))
    return [pair, [(q, p) for p, q in pair]]


@pytest.mark.parametrize("factor", [Fraction(1), Fraction(3, 2), Fraction(7, 2)])
def test_recursion_is_the_best_of_all_strategies(factor):
    games = (both_orders([5, 3, 1], [1, 4, 6]), 2), (both_orders([9, 1], [4, 6]), 3), (both_orders([0, 3], [2, 1]), 2)
    for pairs, releases in games:
        hockey_sticks = (sum(max(Fraction(0), p - factor * q) for p, q in law) for law in strategies(pairs, releases))
        assert max(hockey_sticks) == best(pairs, releases, factor)


@settings(max_examples=15)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=2, max_size=3), st.integers(2, 4), st.integers(1, 30))
def test_composition_of_two_orders_is_enclosed(masses, releases, tenth):
    weights, others = zip(*masses)
    pairs = both_orders(weights, others)
    matrix = np.array([[float(p) for p, _ in pair] for pair in pairs])
    # The composition uses the rounded rows, so the reference does too.
    rows = [[Fraction(float(x)) for x in row] for row in mechanisms.FiniteRandomizer(matrix).matrix]
    pairs = [list(zip(*rows)), list(zip(*rows[::-1]))]
    eps = tenth / 10
    exact = best(pairs, releases, Fraction(math.exp(eps)))
    many = mechanisms.FiniteRandomizer(matrix).self_compose(releases)
    lower, upper = (Fraction(float(many.delta(eps, bound=side))) for side in ("lower", "upper"))
    assert lower <= exact * (1 + Fraction(1, 10**12)) + Fraction(1, 10**15)
    assert exact <= upper * (1 + Fraction(1, 10**12)) + Fraction(1, 10**15)
    # The few sequences of outcomes are enumerated.
    assert upper - lower <= exact * Fraction(1, 10**10) + Fraction(1, 10**14)


@pytest.mark.parametrize(("matrix", "f", "eps"), [
    ([[0.47095203399658203, 0.529047966003418], [0.2753000259399414, 0.7246999740600586]], 0.9999867255723169, 0.00026651923812),
    ([[0.38, 0.2, 0.27, 0.15], [0.21, 0.1, 0.39, 0.3], [0.31, 0.39, 0.11, 0.19]], 0.9999999968867206, 2.7477110075074745e-05),
])
def test_a_release_more_does_not_lower_the_upper_bound(matrix, f, eps):
    two = mechanisms.FiniteRandomizer(matrix).self_compose(2)
    assert two.log_delta(eps) <= two.compose(mechanisms.Rappor(f)).log_delta(eps) + 1e-9


def test_adaptive_choice_with_infinite_losses_and_a_fixed_release():
    matrix, other = [[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]], [[0.75, 0.25], [0.25, 0.75]]
    pairs = [[(Fraction(p), Fraction(q)) for p, q in zip(*rows)] for rows in (matrix, matrix[::-1])]
    fixed = [(Fraction(p), Fraction(q)) for p, q in zip(*other)]
    many = mechanisms.FiniteRandomizer(matrix).self_compose(2).compose(mechanisms.FiniteRandomizer(other))
    for eps in (0.0, 0.3, 1.0, 2.0):
        factor = Fraction(math.exp(eps))
        first = sum(p * best(pairs, 2, factor * q / p) for p, q in fixed)
        assert many.delta(eps, bound="lower") <= first * (1 + Fraction(1, 10**12))
        assert first * (1 - Fraction(1, 10**12)) <= many.delta(eps) <= first * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize("profile", [slow(shuffle.ShuffledBits(100, 0.25, ones=0)), shuffle.BinomialNoise(400, 0.3)])
def test_sides_meet_where_the_worse_order_changes(profile):
    many = profile.self_compose(12)
    upper, lower = many.epsilon(1e-6), many.epsilon(1e-6, bound="lower")
    assert lower <= upper <= lower * (1 + 2e-4)
    # Using the same order in every release is one of the strategies, so its eps is at most the upper bound.
    orders = [Composition(((pair, 12),)).epsilon(1e-6, bound="lower") for pair in profile.pairs()]
    assert max(orders) <= upper


def test_other_mechanisms_beside_a_choice():
    pairs = both_orders([4, 3, 1], [1, 3, 4])
    other = [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))]
    matrix = np.array([[float(p) for p, _ in pair] for pair in pairs])
    many = mechanisms.FiniteRandomizer(matrix).self_compose(3).compose(mechanisms.RandomizedResponse(math.log(3.0)))
    factor = Fraction(math.exp(0.7))
    # The other mechanism is released before or after the first choice.
    after = sum(p * best(pairs, 3, factor * q / p) for p, q in other)
    assert float(after) <= many.delta(0.7) * (1 + 1e-12)
    assert many.delta(0.7, bound="lower") <= float(after) * (1 + 1e-12)


def sum_of_bits(budgets, bits):
    """Return the distribution of the sum of flipped bits in fractions, for flip probabilities rounded to doubles."""
    law = [Fraction(1)]
    for budget, bit in zip(budgets, bits):
        flip = Fraction(math.exp(-budget) / (1 + math.exp(-budget)))
        zero, one = (flip, 1 - flip) if bit else (1 - flip, flip)
        law = [zero * a + one * b for a, b in zip([*law, 0], [0, *law])]
    return law


@pytest.mark.parametrize("eps", [0.0, 0.1, 1.0, 200.0])
def test_lower_side_between_the_points_of_a_coarse_grid(eps):
    # An earlier version extrapolated linearly in eps instead of in e^eps, and its upper bound was up to 1 % too high.
    budgets, bits = [2.0, 350.0, 229.0, 1e-3, 1.0], [0, 1, 0, 1, 1]
    laws = [sum_of_bits(budgets, [bits[0], mine, *bits[2:]]) for mine in (0, 1)]
    exact = float(best([list(zip(*laws)), list(zip(*laws[::-1]))], 2, Fraction(math.exp(eps))))
    *_, adaptive = shuffle.PersonalizedBits(budgets, bits=bits, target=1).self_compose(2)._product.composer.engines()
    lower, upper = (math.exp(side) for side in adaptive.bounds(eps)[0])
    assert lower <= exact * (1 + 1e-10)
    assert exact <= upper * (1 + 1e-10)


@pytest.mark.slow
def test_tilted_masses_beyond_the_doubles():
    # For losses near 100, tilted by several units, masses of e^750 once raised an OverflowError.
    many = shuffle.ShuffledBits(16, 7.913923263947645e-50, ones=12).self_compose(2)
    assert many.log_delta(226.12126200605456, bound="lower") <= many.log_delta(226.12126200605456) < -600


@pytest.mark.parametrize("eps", thinned([0.05, 1.0, 5.0, 10.0, 20.0, 40.0], 3))
def test_large_losses_without_a_choice(eps):
    # All losses are grid points. Large losses have most of the tilted mass, and their sum is far beyond the end of the grid.
    p, loss, releases = np.array([0.5, 0.4, 0.09, 0.01]), np.array([-0.0625, 0.0625, 2.0, 8.0]), 6
    exact = -math.inf
    for index in itertools.product(range(4), repeat=releases):
        if (total := float(loss[list(index)].sum())) > eps:
            exact = np.logaddexp(exact, float(np.log(p[list(index)]).sum()) + math.log(-math.expm1(eps - total)))
    sides = []
    for upper in (False, True):
        law = LossAtoms(np.log(p), loss, -math.inf, -math.inf, -math.inf, 0.0, 0.0).law(0.0, 2.0**-6, upper=upper)
        guide = Product([law], [releases], upper=True)
        sides.append(_Strategy([[(law, 1)], [(law, 1)]], releases, (), guide, upper=upper).log_delta(eps))
    assert sides[0] <= exact <= sides[1]
    assert eps < 5 or sides[1] - sides[0] < 1e-8


@pytest.mark.slow
def test_a_search_for_eps_needs_few_adaptive_strategies(monkeypatch):
    evaluated = []
    bounds = Adaptive.bounds
    monkeypatch.setattr(Adaptive, "bounds", lambda self, eps: evaluated.append(eps) or bounds(self, eps))
    composed = shuffle.ShuffledBits(100, 0.1).self_compose(3)
    lower, upper = composed.epsilon(1e-4, bound="lower"), composed.epsilon(1e-4)
    assert composed.delta(upper) <= 1e-4 <= composed.delta(lower)
    # Strategies were evaluated, and only at eps close to the answer.
    assert evaluated
    assert all(0.9 * lower < eps < 1.1 * upper for eps in evaluated)


@pytest.mark.filterwarnings("ignore:local_eps")
@pytest.mark.parametrize("below", [0.0, 3e-12, 1e-9, 1e-6, 1e-3, 0.5])
def test_a_lower_bound_on_a_grid_with_a_long_step(below):
    # The step of this grid is 32 nats. The line through two of its values multiplied their rounding errors by e^24: the lower bound
    # of log delta was -15 up to the pure budget.
    rate, budget = 0.9387451082029135, 700.0
    many = ReplaceOne(mechanisms.KaryResponse(2, budget).subsampled(rate)).self_compose(2, rtol=0.1)
    with mp.workdps(700):
        # The only pair with a loss near the budget: the fixed value against a mixture of it and the other value.
        level = mp.mpf(rate)
        first, second = ((1 - level) + level * mp.exp(budget)) / (1 + mp.exp(budget)), 1 / (1 + mp.exp(budget))
        eps = float(2 * mp.log(first / second)) - below
        exact = max(first**2 - mp.exp(eps) * second**2, mp.mpf(0))
        exact = float(mp.log(exact)) if exact else -math.inf
    assert many.log_delta(eps, bound="lower") <= exact <= many.log_delta(eps)
    assert many.epsilon(0.0, bound="lower") <= many.epsilon(0.0)
