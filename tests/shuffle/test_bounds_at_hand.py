"""A bound of a shuffled randomizer is at least as good as every other one that the library has, at any number of users."""

import math
import random

import numpy as np
import pytest

from shufflebounds.mechanisms import GaussianMechanism, GaussianVector, KaryResponse, LaplaceMechanism, PureLocal
from shufflebounds.shuffle import PersonalizedBits, PersonalizedClones, StrongerClones, shuffled_epsilons
from tests.fuzz import at_hand
from tests.strategies import slow, thinned

EXPENSIVE = {"GaussianVector": 3, "GaussianMechanism": 5}
"""Numbers of questions, in place of 8, for classes of which one takes .3 CPU s or more."""


@pytest.mark.parametrize(("name", "cases"), [
    *((name, 1) for name in at_hand.KINDS if name not in ("mechanisms.GaussianMechanism", "mechanisms.GaussianVector")),
    *(slow(name, EXPENSIVE.get(name.rpartition(".")[2], 8)) for name in at_hand.KINDS),
])
def test_no_other_bound_is_better(name, cases):
    counts, found = at_hand.attack(cases, cases, only=name)
    assert counts.total() == cases
    assert not found


@pytest.mark.parametrize("seed", range(4))
def test_a_pure_budget_has_the_bound_of_the_clones(seed):
    r = random.Random(seed)
    cases = [(391_190_288_779, 1.0, 1e-6)] + [
        (round(10 ** r.uniform(1, 15)), math.exp(r.uniform(-3, 2.3)), 10.0 ** r.uniform(-12, -0.5)) for _ in range(10)]
    for users, budget, delta in cases:
        shuffled, clones = PureLocal(budget).shuffled(users), StrongerClones(users, budget)
        eps = clones.epsilon(delta)
        assert shuffled.epsilon(delta) <= eps
        for at in (0.0, eps, 0.3 * budget):
            assert shuffled.log_delta(at, bound="lower") <= shuffled.log_delta(at) <= clones.log_delta(at)
        assert (shuffled.epsilon([delta, 2 * delta]) <= clones.epsilon([delta, 2 * delta])).all()


@pytest.mark.parametrize(("users", "delta", "lower"), thinned([
    (10**11, 1e-6, 3.53e-7), (10**11, 1e-8, 6.80e-6), (10**15, 1e-8, 3.53e-9), (10**9, 1e-6, 4.19e-5), (10**14, 1e-8, 7.96e-8),
], 2))
def test_laplace_noise_among_many_users(users, delta, lower):
    """The bound over all datasets does not lose precision with the number of users."""
    noise = LaplaceMechanism(1.0)
    shuffled = noise.shuffled(users)
    upper = shuffled.epsilon(delta)
    assert lower < shuffled.epsilon(delta, bound="lower") <= upper
    assert upper <= shuffled_epsilons(noise, users, delta, method="blanket") < StrongerClones(users, 1.0).epsilon(delta)
    assert shuffled.argument(upper) == "worst dataset"
    # Where eps is far below a standard deviation, the ratio of both bounds of eps is larger.
    assert shuffled.log_delta(upper) - shuffled.log_delta(upper, bound="lower") < 0.02


@pytest.mark.slow
@pytest.mark.parametrize(("noise", "users", "delta"), [
    (LaplaceMechanism(0.3), 300, 1e-9), (GaussianMechanism(1.0), 300, 1e-6),
    (GaussianMechanism(0.5), 10**4, 1e-6),
])
def test_eps_of_the_blanket_has_the_tolerance_of_its_own_search(noise, users, delta):
    # The search over cells of inputs ends at a relative 1e-5.
    shuffled = noise.shuffled(users)
    upper = shuffled.epsilon(delta)
    assert shuffled.argument(upper) == "privacy blanket"
    assert upper == pytest.approx(float(shuffled_epsilons(noise, users, delta, method="blanket")), rel=1e-12)
    assert shuffled.log_delta(upper) <= math.log(delta)


@pytest.mark.slow
def test_few_messages_of_many_users():
    """With a small participation the approximation of the blanket is poor; 37 users once had a larger bound than 30."""
    noise = GaussianVector(1.526553737910803, 2)
    for eps in (0.0, 5.3e-5, 0.02):
        bounds = [noise.shuffled(users, 0.11551332827834751).log_delta(eps) for users in (30, 37, 60)]
        assert bounds == sorted(bounds, reverse=True)


@pytest.mark.parametrize(("values", "users", "eps0"), [(3, 5, 1.0), slow(4, 8, 4.0), (2, 10, 3.0)])
def test_lower_bounds_of_nearly_equal_budgets_are_those_of_the_least_budget(values, users, eps0):
    """The lower bound of the Renyi divergence of order 30 was up to 10 % smaller, and so was 1 minus the trade-off function."""
    budgets = np.linspace(eps0 - 1e-6, eps0, users)
    least, most = (KaryResponse(values, budget).shuffled(users) for budget in budgets[[0, -1]])
    orders, levels = [1.0, 2.0, 30.0], np.array([1e-3, 0.01, 0.3])
    for one in [PersonalizedClones.randomized_response(budgets, values), *([PersonalizedBits(budgets)] if values == 2 else [])]:
        assert one.gdp_mu(bound="lower") >= least.gdp_mu(bound="lower")
        assert (one.rdp(orders, bound="lower") >= least.rdp(orders, bound="lower")).all()
        assert (one.rdp(orders, bound="lower") <= most.rdp(orders)).all()
        # Curves of bits are sampled in stages, and not merged with that of the least budget.
        if values > 2:
            assert (one.tradeoff(bound="upper").beta(levels) <= least.tradeoff(bound="upper").beta(levels) * 1.01).all()
        assert (one.tradeoff(bound="upper").beta(levels) >= most.tradeoff(bound="lower").beta(levels) * (1 - 1e-9)).all()
