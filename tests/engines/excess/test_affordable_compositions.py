"""The methods that make compositions of shuffled randomizers affordable."""

import math

import numpy as np
import pytest

from shufflebounds import mechanisms as m
from shufflebounds._engines.excess.evaluation import Effort, sums
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds._engines.excess.heavy_tails import sum_of_few
from tests.strategies import thinned


@pytest.mark.parametrize("users", thinned([2, 3, 7, 16, 23, 40], 3))
def test_doubled_sums_contain_the_exact_value(users):
    # X is 1 or -1 with equal probability: E S_+ = E|S|/2. Many atoms of no mass make doubling the faster method.
    values = np.linspace(-1, 1, 802)
    log_mass = np.full(802, -600.0)
    log_mass[[0, -1]] = math.log(0.5)
    exact = math.fsum(math.comb(users, k) * max(2 * k - users, 0) for k in range(users + 1)) / 2**users
    lower, upper = sum_of_few(values, log_mass, float(users))
    assert lower <= math.log(exact) + 1e-12
    assert upper >= math.log(exact) - 1e-12
    assert upper - lower < 0.02


def test_a_heavy_tail_of_losses_alone():
    # A sum with the value -1e9 is not positive, so E S_+ is that of two other values times the probability of no such value.
    users, rare = 30, 1e-3
    values, log_mass = np.array([-1e9, -1.0, 2.0]), np.log([rare, 0.6 * (1 - rare), 0.4 * (1 - rare)])
    exact = math.fsum(math.comb(users, k) * 0.4**k * 0.6**(users - k) * max(3 * k - users, 0) for k in range(users + 1))
    log_exact = math.log(exact) + users * math.log1p(-rare)
    for effort in (Effort.FINE, Effort.SAMPLED):
        lower, upper = sums(values, log_mass, users, None, effort)
        assert lower - 1e-12 <= log_exact <= upper + 1e-12
        assert upper - lower < 1e-3


@pytest.mark.slow
def test_the_ranking_of_thousands_of_distributions_gives_a_valid_lower_bound():
    many = m.GeometricMechanism(0.6, 6, bound=30).shuffled(1000)
    assert len(many._laws.below) > 64
    for eps in (0.1, 0.3, 0.9):
        lower, upper = many._log_delta(np.array([eps]))
        largest = max(law.log_phi_side(eps, 1000, upper=False) for _, _, law in many._laws.below)
        assert largest - 1e-3 <= lower[0] <= upper[0]


@pytest.mark.slow
def test_the_composition_of_bounds_with_a_gap_needs_fewer_values(monkeypatch):
    seen: list[float] = []
    original = ExcessLaw._evaluated

    def counted(law, eps, *rest, **more):
        seen.append(eps)
        return original(law, eps, *rest, **more)

    monkeypatch.setattr(ExcessLaw, "_evaluated", counted)
    releases = m.DiscreteGaussianMechanism(1.8, 7).shuffled(7_700_000).self_compose(30)
    lower, upper = releases.epsilon(1e-6, bound="lower"), releases.epsilon(1e-6)
    # A run with 3400 evaluations of delta gave these bounds; at most 2500 must suffice for them.
    assert 16.298 < lower < upper < 19.142
    assert len(seen) < 2500
