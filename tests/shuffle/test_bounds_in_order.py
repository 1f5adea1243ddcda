"""Both bounds of a shuffled randomizer decrease with users and eps and increase with the local budget, as the exact delta does."""

import itertools

import numpy as np
import pytest

from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    FiniteRandomizer,
    GaussianMechanism,
    KaryResponse,
    LaplaceMechanism,
    RandomizedResponse,
    SubsetSelection,
)
from shufflebounds.shuffle import Shuffled
from tests.strategies import slow

FAMILIES = {
    "k-ary response": lambda eps0, users: KaryResponse(12, eps0).shuffled(users),
    "Laplace noise": lambda eps0, users: LaplaceMechanism(1 / eps0).shuffled(users),
    "Gaussian noise": lambda eps0, users: GaussianMechanism(1 / eps0).shuffled(users),
    "Laplace noise of 0 and 1": lambda eps0, users: LaplaceMechanism(1 / eps0).shuffled(users, inputs=(0, 1)),
    "Gaussian noise of 0 and 1": lambda eps0, users: GaussianMechanism(1 / eps0).shuffled(users, inputs=(0, 1)),
}
ORDERED = ["k-ary response", *map(slow, ("Laplace noise", "Gaussian noise", "Gaussian noise of 0 and 1"))]

SEARCH = 3e-3
"""Tolerance of the search over datasets in log delta, for a bound close to that of equal inputs. Other errors of the bounds are
below 1e-3 in log delta. Each step of the tests below changes the exact log delta by more."""


def falls(values, tolerance):
    assert all(after <= before + tolerance for before, after in itertools.pairwise(values)), values
    # Without this line constant values would pass.
    assert values[-1] < values[0] - 10 * tolerance


@pytest.mark.parametrize("family", ORDERED)
@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_more_users_reduce_delta(family, bound):
    # The numbers are one user, numbers whose datasets are enumerated, numbers on both sides of the limit near 90, and many users.
    users = (1, 2, 7, 8, 90, 91, 2000, 2100)
    falls([FAMILIES[family](1.0, n).log_delta(0.05, bound=bound) for n in users], SEARCH)


@pytest.mark.parametrize("family", ORDERED)
@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_larger_eps_has_smaller_delta(family, bound):
    for users, eps in ((5, (0.0, 0.01, 0.1, 0.5, 0.9)), (1500, (0.0, 0.01, 0.05, 0.055, 0.1))):
        protocol = FAMILIES[family](1.0, users)
        falls([protocol.log_delta(e, bound=bound) for e in eps], SEARCH)


@pytest.mark.parametrize("family", ORDERED)
@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_a_larger_local_budget_has_larger_delta(family, bound):
    for users, eps in ((4, 0.2), (1500, 0.05)):
        falls([FAMILIES[family](eps0, users).log_delta(eps, bound=bound) for eps0 in (1.5, 1.0, 0.97, 0.7)], SEARCH)


@pytest.mark.parametrize("bound", ["lower", "upper"])
def test_bounds_of_laplace_noise_among_many_users(bound):
    make = FAMILIES["Laplace noise"]
    falls([make(1.0, n).log_delta(0.05, bound=bound) for n in (1000, 1010, 2000)], SEARCH)
    falls([make(1.0, 1000).log_delta(eps, bound=bound) for eps in (0.04, 0.041, 0.06)], SEARCH)
    falls([make(eps0, 1000).log_delta(0.05, bound=bound) for eps0 in (1.0, 0.99, 0.8)], SEARCH)


def rows(seed, inputs, outputs):
    return np.random.default_rng(seed).dirichlet(3 * np.ones(outputs), inputs)


@pytest.mark.parametrize(("inputs", "outputs", "enumerated", "eps"), [
    (3, 3, 33, 0.1), slow(2, 4, 40, 0.2), slow(3, 2, 1023, 0.0),
])
def test_users_beyond_the_enumeration_have_no_larger_delta(inputs, outputs, enumerated, eps):
    randomizer = FiniteRandomizer(rows(inputs + outputs, inputs, outputs))
    last, *more = (randomizer.shuffled(enumerated + extra) for extra in (0, 1, 2))
    assert last.argument(eps) == "every dataset"
    before = last.log_delta(eps)
    for protocol in more:
        assert protocol.argument(eps) != "every dataset"
        assert protocol.log_delta(eps, bound="lower") <= protocol.log_delta(eps) <= before + 1e-12
    assert any(protocol.argument(eps) == "every dataset of a stronger protocol" for protocol in more)


CROOKED = FiniteRandomizer(np.random.default_rng(0).dirichlet(np.ones(3), 3).tolist())
"""For 50 to 110 users the privacy blanket is far above the exact value of the 33 users whose datasets are enumerated."""


@pytest.mark.slow
def test_delta_of_a_matrix_does_not_rise_with_users():
    found = [CROOKED.shuffled(n).log_delta(4.2) for n in (33, 60, 110)]
    assert all(after <= before + 1e-12 for before, after in itertools.pairwise(found)), found


@pytest.mark.slow
def test_a_search_for_more_users_has_no_larger_bound():
    """log delta rose from -24.46 to -24.38; a search for fewer users than either has -24.97."""
    randomizer = SubsetSelection(4, 2.0, 3)
    few, more = (randomizer.shuffled(users).log_delta(1.2) for users in (53, 60))
    assert more <= few + 1e-12
    assert more < -24.9


@pytest.mark.slow
def test_epsilon_of_a_matrix_does_not_rise_with_users():
    found = [CROOKED.shuffled(n).epsilon(1e-6) for n in (33, 50, 60, 100, 130, 1000)]
    assert all(after <= before * (1 + 1e-9) for before, after in itertools.pairwise(found)), found
    assert found[0] < 4.16


@pytest.mark.parametrize("tiny", [0.0, slow(1e-12)])
def test_the_enumeration_of_few_users_serves_any_number_of_users(tiny):
    # Each of three outputs, which reveal input 0, is impossible under one of the inputs 2, 3 and 4. The blanket adds up all three
    # outputs for any number of users, but a dataset can avoid one of them only.
    rows = [[0.2, 0.2, 0.2], [0.02, 0.02, 0.02], [tiny, 0.02, 0.02], [0.02, tiny, 0.02], [0.02, 0.02, tiny]]
    randomizer = FiniteRandomizer([[*row, 1 - sum(row)] for row in rows])
    few, many = (randomizer.shuffled(n) for n in (10, 10**6))
    assert few.argument(1.0) == "every dataset"
    assert many.log_delta(1.0, bound="lower") <= many.log_delta(1.0) <= few.log_delta(1.0) + 1e-12


@pytest.mark.parametrize("randomizer", [RandomizedResponse(4.9), SubsetSelection(2, 4.9), KaryResponse(2, 4.9)])
def test_less_participation_than_that_of_all_users_has_no_larger_delta(randomizer):
    # The messages of all 3000 users are bits. The privacy blanket alone is .3 above them in log delta, and 3000 users are too many
    # to enumerate.
    full, most = (Shuffled(randomizer, 3000, share) for share in (1.0, 0.999))
    assert most.log_delta(0.02, bound="lower") <= most.log_delta(0.02) <= full.log_delta(0.02) + 1e-12


def test_less_participation_than_the_enumeration_has_no_larger_delta():
    randomizer = FiniteRandomizer(rows(5, 2, 3))
    full, most = (Shuffled(randomizer, 60, share) for share in (1.0, 0.999))
    assert full.argument(0.1) == "every dataset"
    assert most.argument(0.1) == "every dataset of a stronger protocol"
    assert most.log_delta(0.1, bound="lower") <= most.log_delta(0.1) <= full.log_delta(0.1) + 1e-12


@pytest.mark.slow
def test_epsilon_takes_the_enumeration_of_fewer_users():
    randomizer = FiniteRandomizer(rows(4, 2, 2))
    last, more = (randomizer.shuffled(users) for users in (1023, 1024))
    assert more.epsilon(1e-6, bound="lower") <= more.epsilon(1e-6) <= last.epsilon(1e-6) * (1 + 1e-9)


@pytest.mark.parametrize(("sigma", "sensitivity", "users", "participation", "less", "more"), [
    (0.5927312551082949, 2, 25, 0.9382703529536323, 2.6e-5, 3.8e-5),
    (0.41165033710803284, 1, 26, 0.7598978672834867, 2.5606871179639528e-06, 2.706890706605925e-06),
    (0.6963618879571453, 2, 38, 1.0, 4.57068591136985e-06, 7.045490246861265e-06),
])
def test_delta_of_few_users_of_noise_does_not_rise_with_eps(sigma, sensitivity, users, participation, less, more):
    # The nodes of the sum changed with eps, and the gap of the upper bound of about 1e-4 with them.
    shuffled = Shuffled(DiscreteGaussianMechanism(sigma, sensitivity), users, participation)
    assert shuffled.log_delta(more) < shuffled.log_delta(less)
