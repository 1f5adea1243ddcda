"""Arrays of binomial noise and shuffled randomizers: the results of the classes, valid bounds, no interpreter lock."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import mechanisms, shuffle, sweep
from shufflebounds.shuffle import shuffled_deployments

DELTA = st.floats(-300, 0).map(math.exp) | st.sampled_from([0.0, 5e-324, 1e-300, 0.5, 1.0])
SIDES = ("upper", "lower")


def deployments(count, seed, least_users=2000.0):
    """Return random randomizers with few outputs, numbers of users and deltas."""
    rng = np.random.default_rng(seed)
    kinds = [
        mechanisms.KaryResponse(int(rng.integers(2, 200)), float(rng.uniform(0.05, 6)))
        if rng.random() < 0.6 else mechanisms.SubsetSelection(int(rng.integers(3, 60)), float(rng.uniform(0.1, 4)))
        for _ in range(max(1, count // 10))
    ]
    picked = [kinds[i] for i in rng.integers(0, len(kinds), count)]
    users = np.floor(np.exp(rng.uniform(math.log(least_users), math.log(1e12), count)))
    return picked, users.astype(np.int64), np.exp(-rng.uniform(1, 60, count))


def mechanisms_of_noise(count, seed):
    """Return random trials, probabilities and deltas."""
    rng = np.random.default_rng(seed)
    prob = np.where(rng.random(count) < 0.3, 0.5, 1 / (1 + np.exp(rng.uniform(-8, 8, count))))
    return np.floor(np.exp(rng.uniform(0, 36, count))).astype(np.int64), prob, np.exp(-rng.uniform(0, 100, count))


@given(st.integers(0, 2**53) | st.integers(0, 40), st.floats(1e-12, 1 - 1e-12) | st.just(0.5), DELTA)
def test_noise_is_verified_and_the_class_agrees(trials, prob, delta):
    noise = shuffle.BinomialNoise(trials, prob)
    upper, lower = (shuffle.binomial_noise_epsilons(trials, prob, delta, bound=side) for side in SIDES)
    assert [noise.epsilon(delta), noise.epsilon(delta, bound="lower")] == [upper, lower]
    assert 0 <= lower <= upper
    if upper < math.inf:
        assert noise.delta(upper) <= delta
    if 0 < lower < math.inf:
        assert noise.delta(lower, bound="lower") >= delta * (1 - 4e-15)
    if math.isfinite(upper) and lower > 0 and delta > 1e-250:
        # The two bounds of eps differ at most by (gap of the bounds of log delta)/(slope of log delta).
        flat = noise.log_delta(upper * 0.999) - noise.log_delta(upper)
        gap = noise.log_delta(upper) - noise.log_delta(upper, bound="lower")
        assert upper - lower <= upper * (2e-12 + 0.01 * gap / max(flat, 1e-300))


@given(st.integers(0, 2**53), st.floats(1e-9, 1 - 1e-9), st.floats(0, 50))
def test_log_delta_of_noise_is_that_of_the_class(trials, prob, eps):
    noise = shuffle.BinomialNoise(trials, prob)
    for side in SIDES:
        assert shuffle.binomial_noise_log_deltas(trials, prob, eps, bound=side) == noise.log_delta(eps, bound=side)


def agree(count, seed):
    """Assert that arrays and single calls of noise give the same results, and that each result is a valid bound."""
    trials, prob, delta = mechanisms_of_noise(count, seed)
    for side in SIDES:
        eps = shuffle.binomial_noise_epsilons(trials, prob, delta, bound=side)
        rows = zip(trials.tolist(), prob.tolist(), delta.tolist())
        single = [shuffle.BinomialNoise(n, p).epsilon(d, bound=side) for n, p, d in rows]
        assert np.array_equal(eps, single)
        there = np.isfinite(eps) & (eps > 0)
        reached = np.exp(shuffle.binomial_noise_log_deltas(trials[there], prob[there], eps[there], bound=side))
        ratio = reached / delta[there]
        assert (ratio.max() <= 1) if side == "upper" else (ratio.min() >= 1 - 4e-15)


def test_arrays_of_noise_are_the_single_calls():
    agree(300, 1)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [2, 3])
def test_many_arrays_of_noise_are_the_single_calls(seed):
    agree(12_000, seed)


def agree_shuffled(count, seed, least_users=2000.0):
    """Assert the same as `agree` for shuffled randomizers.

    Results of arrays and classes are equal if the class uses the blanket alone; otherwise the eps of the class may be smaller.
    """
    kinds, users, delta = deployments(count, seed, least_users)
    upper, lower = (shuffle.shuffled_epsilons(kinds, users, delta, bound=side) for side in SIDES)
    assert (lower <= upper * (1 + 1e-8)).all()
    for i in range(count):
        protocol = shuffle.Shuffled(kinds[i], int(users[i]))
        alone = isinstance(kinds[i], mechanisms.KaryResponse)
        found = protocol.epsilon(delta[i])
        # If the class has two upper bounds, it searches for eps with a relative tolerance of up to 1e-6.
        assert found == upper[i] if alone else lower[i] <= found <= upper[i] * (1 + 2e-6)
        assert protocol.epsilon(delta[i], bound="lower") == lower[i]
        assert protocol.delta(upper[i]) <= delta[i]
        if lower[i] > 0:
            assert protocol.delta(lower[i], bound="lower") >= delta[i] * (1 - 4e-15)
    values = [shuffle.shuffled_log_deltas(kinds, users, upper, bound=side) for side in SIDES]
    singles = [[shuffle.Shuffled(k, n).log_delta(e, bound=side) for k, n, e in zip(kinds, users.tolist(), upper)] for side in SIDES]
    alone = [isinstance(kind, mechanisms.KaryResponse) for kind in kinds]
    assert np.array_equal(values[1], singles[1])
    assert np.array_equal(values[0][alone], np.array(singles[0])[alone])
    assert (np.array(singles[0]) <= values[0]).all()
    # A smaller eps does not meet delta, up to the gap of the bounds.
    inside = upper > 1e-6
    less = shuffle.shuffled_log_deltas([k for k, some in zip(kinds, inside) if some], users[inside], upper[inside] * (1 - 1e-6))
    assert (less > np.log(delta[inside])).all()


def test_arrays_of_shuffled_randomizers_are_the_single_calls():
    agree_shuffled(40, 3, 1e5)


@pytest.mark.slow
def test_many_arrays_of_shuffled_randomizers_are_the_single_calls():
    agree_shuffled(120, 4, 1e4)


def test_lower_bounds_of_few_users_are_those_of_the_class():
    matrix = mechanisms.FiniteRandomizer([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.1, 0.2, 0.7]])
    for users in (3, 6):
        protocol = shuffle.Shuffled(matrix, users)
        for side in SIDES:
            assert shuffle.shuffled_epsilons(matrix, users, 1e-3, bound=side) == protocol.epsilon(1e-3, bound=side)
            assert shuffle.shuffled_log_deltas(matrix, users, 0.3, bound=side) == protocol.log_delta(0.3, bound=side)


def test_heavy_tails_are_evaluated_by_the_class():
    # The compiled search once returned eps = 19.57, although 10.45 meets delta.
    kinds = [mechanisms.GaussianMechanism(0.35), mechanisms.KaryResponse(4, 1.0)]
    population = shuffled_deployments._DeploymentArray(kinds, 10**4, 1.0, "blanket", 1, delta=np.array(1e-8))
    for side in SIDES:
        assert population.left(side, population.laws(side)).tolist() == [True, False]


@pytest.mark.slow
def test_eps_of_heavy_tails_in_an_array():
    kind = mechanisms.GaussianMechanism(0.35)
    eps = shuffle.shuffled_epsilons([kind], 10**4, 1e-8)[0]
    assert eps < 10.5
    assert kind.shuffled(10**4).delta(eps) <= 1e-8


@pytest.mark.slow
@settings(max_examples=8)
@given(st.lists(st.floats(0.05, 1), min_size=9, max_size=9), st.integers(2000, 10**9), DELTA)
def test_the_largest_of_several_pairs_is_found(weights, users, delta):
    rows = np.array(weights).reshape(3, 3)
    protocol = shuffle.Shuffled(mechanisms.FiniteRandomizer((rows / rows.sum(axis=1, keepdims=True)).tolist()), users)
    upper, lower = protocol.epsilon(delta), protocol.epsilon(delta, bound="lower")
    assert protocol.delta(upper) <= delta
    assert lower <= upper
    if lower > 0:
        assert protocol.delta(lower, bound="lower") >= delta * (1 - 4e-15)


def test_broadcasting_and_participation():
    kinds = np.array([mechanisms.KaryResponse(4, 1.0), mechanisms.GaussianMechanism(1.0)], dtype=object)
    eps = shuffle.shuffled_epsilons(kinds, [[10**6], [10**8]], 1e-6, participation=0.5)
    assert eps.shape == (2, 2)
    assert eps[1, 0] == kinds[0].shuffled(10**8, 0.5).epsilon(1e-6)
    assert eps[0, 1] == kinds[1].shuffled(10**6, 0.5).epsilon(1e-6)
    assert isinstance(shuffle.shuffled_epsilons(kinds[0], 10**6, 1e-6), float)
    assert shuffle.binomial_noise_log_deltas([[10], [20]], [0.5, 0.25], 1.0).shape == (2, 2)


def test_a_randomizer_that_cannot_be_hashed_is_taken_too():
    class Listed(mechanisms.FiniteRandomizer):
        __hash__ = None

    kind = Listed([[0.75, 0.25], [0.25, 0.75]])
    assert shuffle.shuffled_epsilons([kind, kind], 10**6, 1e-6).tolist() == [kind.shuffled(10**6).epsilon(1e-6)] * 2


def test_a_sweep_over_parameters():
    def budget(bins, local_eps, users):
        kinds = [mechanisms.KaryResponse(k, e) for k, e in zip(bins.tolist(), local_eps.tolist())]
        return shuffle.shuffled_epsilons(kinds, users, 1e-6)

    table = sweep(budget, {"bins": [3, 50], "local_eps": [1.0, 2.0], "users": [10**6, 10**8]}, arrays=True, workers=2)
    row = table[5]
    kind = mechanisms.KaryResponse(int(row["bins"]), float(row["local_eps"]))
    assert row["value"] == kind.shuffled(int(row["users"])).epsilon(1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: shuffle.binomial_noise_epsilons(-1, 0.5, 0.1), "trials"),
        (lambda: shuffle.binomial_noise_epsilons(5, 1.0, 0.1), "prob"),
        (lambda: shuffle.binomial_noise_epsilons(5, 0.5, 2.0), "delta"),
        (lambda: shuffle.binomial_noise_epsilons(5, 0.5, 0.1, bound="both"), "bound"),
        (lambda: shuffle.binomial_noise_log_deltas(5, 0.5, -1.0), "eps"),
        (lambda: shuffle.binomial_noise_log_deltas([1, 2], [0.5, 0.5, 0.5], 0.0), "trials, prob and eps have shapes"),
        (lambda: shuffle.shuffled_epsilons([], 5, 0.1), "randomizer must not be empty"),
        (lambda: shuffle.shuffled_epsilons(mechanisms.KaryResponse(3, 1.0), 0, 0.1), "users"),
        (lambda: shuffle.shuffled_epsilons(mechanisms.KaryResponse(3, 1.0), 5, 0.1, participation=2), "participation"),
        (lambda: shuffle.shuffled_log_deltas([mechanisms.KaryResponse(3, 1.0)] * 2, [1, 2, 3], 0.1), "must broadcast"),
    ],
)
def test_what_is_out_of_range_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_other_objects_than_randomizers_are_refused():
    for none in ("kary", 3, [mechanisms.KaryResponse(3, 1.0), None]):
        with pytest.raises(TypeError, match="must be a local randomizer"):
            shuffle.shuffled_epsilons(none, 10, 0.1)
