"""Shuffled Gaussian noise at very small delta and of large Renyi orders, where one message decides."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds._engines.datasets.cases import FiniteCases
from shufflebounds._engines.datasets.largest_message import LargestMessage
from shufflebounds._engines.datasets.largest_sum import LargestSums
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds.mechanisms import DiscreteGaussianMechanism, FiniteRandomizer, GaussianMechanism
from tests.strategies import slow


def largest_message(n, eps):
    """Return the largest log(Pr_0[some message > c] - e^eps Pr_1[some message > c]) over c, for noise of variance 1.

    The target's value is 1 under Pr_0 and 0 under Pr_1; all other users have the value 0.
    """
    def value(c):
        rare, often = mp.erfc(c / mp.sqrt(2)) / 2, mp.erfc((c - 1) / mp.sqrt(2)) / 2
        some = [1 - (1 - rare) ** (n - 1) * (1 - p) for p in (often, rare)]
        return some[0] - mp.exp(eps) * some[1]

    with mp.workdps(130):
        best = max(range(8, 60), key=lambda c: value(mp.mpf(c) / 2)) / 2
        return float(mp.log(max(value(best + mp.mpf(i) / 50) for i in range(-25, 26))))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "eps", "upper"), [(10**4, 2.61, -69.047710), slow(10**4, 12.42, -230.235848), slow(10**6, 7.8124, -230.257373)]
)
def test_both_bounds_of_gaussian_noise_at_tiny_delta(n, eps, upper):
    shuffled, exact = GaussianMechanism(1.0).shuffled(n), largest_message(n, mp.mpf(eps))
    # `upper` is a bound of an independent implementation, with one large jump split off.
    assert exact - 0.01 <= shuffled.log_delta(eps, bound="lower") <= upper
    assert exact <= shuffled.log_delta(eps) <= upper + 0.5


@pytest.mark.parametrize(("noise", "delta", "most"), [
    slow(GaussianMechanism(1.0), 1e-100, 1.002), slow(DiscreteGaussianMechanism(1.0), 1e-30, 1.01),
])
def test_no_bound_of_eps_ends_where_outputs_are_truncated(noise, delta, most):
    shuffled = noise.shuffled(10**4)
    lower, upper = shuffled.epsilon(delta, bound="lower"), shuffled.epsilon(delta)
    assert lower <= upper <= most * lower
    assert shuffled.delta(upper) <= delta * (1 + 1e-6)


@pytest.mark.parametrize("noise", [GaussianMechanism(1.0), DiscreteGaussianMechanism(1.0)], ids=repr)
def test_lower_renyi_divergences_of_large_orders(noise):
    shuffled = noise.shuffled(10**4)
    values = shuffled.rdp([32.0, 32.5, 200.0], bound="lower")
    assert values[0] == pytest.approx(6.78965963, rel=1e-5)
    assert values[1] >= values[0]
    # The moment of a mean of n likelihood ratios is at least that of one, divided by n^(order - 1).
    assert values[2] == pytest.approx(100 - math.log(10**4), rel=1e-6)


@pytest.mark.parametrize("users", [1, 2, 7])
def test_the_largest_message_is_a_test_of_the_exact_pair(users):
    randomizer = FiniteRandomizer([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6], [0.2, 0.7, 0.1]])
    for pair in randomizer.excess_laws():
        for _, law in pair.lower:
            test = LargestMessage(law, users)
            for eps in (0.0, 0.3, 1.0):
                upper = law.log_phi([eps], users).upper[0]
                assert test.log_delta(eps) <= upper + 1e-12
            found = test.epsilon(0.05)
            assert found == 0 or test.log_delta(found) == pytest.approx(math.log(0.05), abs=1e-6)


def test_cut_sets_whose_masses_underflow_are_kept():
    law = ExcessLaw(np.log([0.5, 0.5]), np.array([1.0, -2.0]), np.array([0.0, 0.0]), -math.inf, -800.0)
    assert law.log_phi([5.0], 10).upper[0] >= -800.0
    # The bound over all datasets has the same cut sets. The X of all atoms are negative, so log of the bound is that of the cut
    # sets, -800.
    kinds = FiniteCases.of([law, ExcessLaw(law.log_mass, law.log_a, law.log_b, -math.inf, [-760.0, -790.0], [-765.0, -793.0])])
    assert kinds.laws(5.0, 0.0).log_cut == pytest.approx(-800.0, abs=1e-9)
    assert LargestSums(kinds, 5.0, [10], -5.0).bound() == pytest.approx(-800.0, abs=1e-9)
    assert kinds.laws(4.0, 0.0).log_cut == pytest.approx(float(mp.log(mp.exp(-760) - mp.exp(4 - 765))), abs=1e-9)


@pytest.mark.parametrize(("sigma", "users", "eps"), [
    slow(1.0, 100, [9.0, 10.5, 12.9]), slow(2.0, 1000, [0.5, 2.0, 9.0, 10.0]),
])
def test_the_upper_bound_falls_in_the_far_tail(sigma, users, eps):
    """Sums of many small values, and merged atoms, had errors larger than delta: -93.0 at eps 10.5, -91.7 at 12.9."""
    shuffled = GaussianMechanism(sigma).shuffled(users)
    upper, lower = (shuffled.log_delta(np.array(eps), bound=bound) for bound in ("upper", "lower"))
    assert (np.diff(upper) < 0).all()
    assert (lower <= upper).all()
    assert (upper <= 0.97 * lower).all()


@settings(max_examples=2)
@given(sigma=st.floats(0.6, 3.0), users=st.integers(50, 3000), first=st.floats(0.05, 12.0), more=st.floats(0.05, 6.0))
@pytest.mark.slow
def test_the_upper_bound_is_monotone_in_eps_and_users(sigma, users, first, more):
    shuffled = GaussianMechanism(sigma).shuffled(users)
    one, two = shuffled.log_delta(np.array([first, first + more]))
    # Upper bounds of a delta below e^-550 are only about e^-550, so their order is not compared.
    assert two <= max(one + 1e-3, -550.0)
    assert GaussianMechanism(sigma).shuffled(2 * users).log_delta(first) <= max(one + 1e-3, -550.0)


@pytest.mark.parametrize(("sigma", "users"), [(1.0, 100), (2.39, 65 * 10**6), slow(0.5, 10**9), slow(1.0, 10**12)])
def test_the_first_sample_is_not_far_in_the_tail(sigma, users):
    # a value of a far smaller delta takes seconds
    shuffled = GaussianMechanism(sigma).shuffled(users)
    assert shuffled.log_delta(shuffled._pair_info().sampling.scale) > shuffled.log_delta(0) - 60
