"""Lower bounds for users with personalized budgets: against enumeration, and against datasets of users with equal budgets."""

import functools
import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import laplace, norm

from shufflebounds._engines.clones.attained import intervals
from shufflebounds._engines.clones.clone_families import ROUNDING, GaussianFamily, LaplaceFamily
from shufflebounds.mechanisms import KaryResponse
from shufflebounds.shuffle import PersonalizedClones, Shuffled
from tests.shuffle.test_personalized import gaussian_row, laplace_row, response, true_delta
from tests.strategies import slow, thinned


@pytest.mark.parametrize(("k", "most"), thinned([(3, 4), (4, 3), (6, 3)], 2))
def test_third_value_by_enumeration(k, most):
    rng = np.random.default_rng(k)
    for _ in range(20):
        users = int(rng.integers(1, most + 1))
        budgets = np.sort(rng.uniform(0.05, 4, users))
        place, at = int(rng.integers(users)), rng.uniform(0, 1) * budgets.min()
        others = np.delete(budgets, place)
        first, second = (response(budgets[place], k, x) for x in (0, 1))
        found = PersonalizedClones.randomized_response(budgets, k, target=place).delta(at, bound="lower")
        # The bound is that of the dataset in which all others have a third value, from the numbers of messages 0 and 1 alone.
        merged = [np.append(row[:2], row[2:].sum()) for row in (first, second, *(response(e, k, 2) for e in others))]
        assert found >= true_delta(merged[0], merged[1], merged[2:], at) * (1 - 1e-9)
        data = itertools.product(range(min(k, 3)), repeat=users - 1)
        worst = max(true_delta(first, second, [response(e, k, x) for e, x in zip(others, xs)], at) for xs in data)
        assert found <= worst * (1 + 1e-12) + 1e-300


@pytest.mark.parametrize(("k", "users", "eps0"), [
    (3, 1000, 0.5), (3, 10**5, 2.0), slow(3, 40, 9.0), (100, 10**5, 5.0), (10, 10**7, 4.0),
])
def test_third_value_among_equal_budgets_is_that_of_shuffled(k, users, eps0):
    personal = PersonalizedClones.randomized_response([eps0], k, counts=[users], target=0)
    protocol = Shuffled(KaryResponse(k, eps0), users)
    for delta in (1e-3, 1e-9):
        eps = protocol.epsilon(delta)
        found = personal.delta(eps, bound="lower")
        assert found <= delta * (1 + 1e-9)
        if k == 3 and users >= 1000:
            # For three values the dataset is the worst one, and no message is merged.
            assert found == pytest.approx(protocol.delta(eps, bound="lower"), rel=1e-4)
        elif users > 1000:
            assert found > 0.9 * delta


def inside(law, budgets, start, end):
    """Return the probabilities that noise of these budgets is in (start, end]."""
    low, high = np.asarray(budgets) * start, np.asarray(budgets) * end
    return np.where(low > 0, law.sf(low) - law.sf(high), law.cdf(high) - law.cdf(low))


def of_numbers(law, budgets, counts, place, start, end):
    """Return the distributions of the number of messages in (start, end] for both values of the target, by enumeration."""
    others = np.repeat(budgets, np.asarray(counts) - (np.arange(len(budgets)) == place))
    noise = functools.reduce(np.convolve, [[1 - p, p] for p in inside(law, others, start, end)], np.ones(1))
    return [np.convolve(noise, [1 - p, p]) for p in (float(inside(law, budgets[place], start - x, end - x)) for x in (0, 1))]


def largest(tests, eps):
    return max(np.maximum(p - math.exp(eps) * q, 0).sum() for sums in tests for p, q in (sums, sums[::-1]))


@pytest.mark.parametrize(("budgets", "counts", "place", "least"), [
    ([0.4, 1.0, 2.5], [2, 1, 3], 1, 0.55), slow([0.9, 1.0, 1.1], [5, 4, 2], 2, 0.7), ([0.05, 6.0], [40, 1], 1, 0.7),
    slow([0.01, 0.3, 2.0], [9, 1, 1], 2, 0.8), slow([0.5, 2.0], [3, 2], 0, 0.7),
])
@pytest.mark.parametrize(("make", "law"), [
    (PersonalizedClones.laplace, laplace), (lambda eps, **more: PersonalizedClones.gaussian(1 / np.array(eps), **more), norm),
], ids=["laplace", "gaussian"])
def test_numbers_of_messages_in_intervals_by_enumeration(make, law, budgets, counts, place, least):
    """The other users have the value 0, and the test is the number of messages in the best of several intervals."""
    profile = make(budgets, counts=counts, target=place)
    chosen = intervals(profile.population, budgets[place])
    stated = [of_numbers(law, budgets, counts, place, *ends) for ends in chosen]
    ends = [*np.linspace(-3, 6, 19), 0.7, 1.3, 9.0, 20.0, math.inf]
    tried = [of_numbers(law, budgets, counts, place, *both) for both in itertools.combinations(sorted(ends), 2)]
    for eps in (0.0, 0.1, 0.5, 0.4 * budgets[place]):
        found = profile.delta(eps, bound="lower")
        assert found <= largest(stated, eps) * (1 + 1e-12)
        assert found == pytest.approx(largest(stated, eps), rel=1e-9)
        assert found >= least * largest(tried, eps) - 1e-15


@pytest.mark.parametrize("family", [LaplaceFamily(), slow(GaussianFamily())], ids=["laplace", "gaussian"])
def test_probabilities_of_intervals_have_small_relative_errors(family):
    rng, normal = np.random.default_rng(1), isinstance(family, GaussianFamily)

    def above(b, z):
        if normal:
            return mp.erfc(b * z / mp.sqrt(2)) / 2
        return mp.exp(-b * z) / 2 if z > 0 else 1 - mp.exp(b * z) / 2

    with mp.workdps(60):
        for _ in range(400):
            budget, other = 10 ** rng.uniform(-5, 1.5 if normal else 2.8, 2)
            start = 1 - rng.choice([0, 1]) * 10 ** rng.uniform(-2, 1.6) / budget
            end = rng.choice([1 + 10 ** rng.uniform(0, 1.5) / budget, math.inf])
            for b, x in ((budget, 0), (budget, 1), (other, 0)):
                found = family.between(np.array([b]), start - x, end - x)
                low, high = mp.mpf(start) - x, mp.mpf(end) - x
                exact = above(b, -low) + above(b, high), above(b, low) - above(b, high)
                for value, truth in zip(found, exact):
                    assert abs(value[0] / truth - 1) < (1 if truth > 1e-65 else 3) * ROUNDING or truth < 1e-290


@pytest.mark.parametrize(("budgets", "counts", "least"), [
    # With the number of messages above a threshold alone, the lower bounds were 0.83, 0.23, 0.005 and 0.62.
    ([6.0, 0.05], [1, 100], 5.8), ([6.0, 0.005], [1, 1000], 5.8), ([5.0, 0.001], [1000, 10**6], 0.017), ([4.0, 1.0], [1, 100], 0.8),
])
def test_an_interval_that_few_messages_of_other_users_are_in(budgets, counts, least):
    profile = PersonalizedClones.laplace(budgets, counts=counts)
    assert least < profile.epsilon(1e-6, bound="lower") <= profile.epsilon(1e-6)


@pytest.mark.parametrize("ratio", [17.5, 18.3, 19.0, 33.0])
def test_probabilities_that_underflow_are_not_infinite_losses(ratio):
    # The probability below a threshold of -2 is 0 in floating point for one of the target's values and positive for the other.
    profile = PersonalizedClones.gaussian([1.0, 1 / ratio])
    for eps in (50.0, 700.0, 1e4):
        assert profile.log_delta(eps, bound="lower") <= profile.log_delta(eps)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["laplace", "gaussian"])
@pytest.mark.parametrize("far", [False, True])
def test_noise_of_two_users_is_at_most_the_exact_value(name, far):
    """The exact value is approximated from below by a partition of the outputs into 300 intervals."""
    rng = np.random.default_rng(7)
    make, row = {"laplace": (PersonalizedClones.laplace, laplace_row),
                 "gaussian": (lambda eps, **more: PersonalizedClones.gaussian(1 / eps, **more),
                              lambda b, x, edges: gaussian_row(1 / b, x, edges))}[name]
    found = []
    for _ in range(6):
        budgets = 10 ** np.array([rng.uniform(0, 0.8), rng.uniform(-2.5, -0.5)]) if far else rng.uniform(0.3, 3, 2)
        edges = np.sort(np.concatenate([np.linspace(-1, 2, 200), 0.5 + np.geomspace(1.5, 20, 50), 0.5 - np.geomspace(1.5, 20, 50)]))
        for at in (0.0, (0.8 if far else 0.3) * budgets[0]):
            target = [row(budgets[0], x, edges) for x in (0, 1)]
            exact = max(true_delta(*target, [row(budgets[1], x, edges)], at) for x in (0, 1))
            profile = make(budgets, target=0)
            assert profile.delta(at, bound="lower") <= exact * 1.005 <= profile.delta(at) * 1.006
            found.append(profile.delta(at, bound="lower") / exact)
    assert max(found) > 0.6


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_lower_bounds_are_below_the_clone_bounds(seed):
    rng = np.random.default_rng(seed)
    budgets = rng.uniform(0.1, 4, 6) if seed % 2 == 0 else 10 ** rng.uniform(-3, 0.6, 6)
    counts = np.floor(10 ** rng.uniform(0, rng.choice([1, 3, 6]), 6))
    for profile in (PersonalizedClones.laplace(budgets, counts=counts), PersonalizedClones.gaussian(1 / budgets, counts=counts),
                    PersonalizedClones.randomized_response(budgets, 5, counts=counts, target=2)):
        for delta in (1e-2, 1e-10):
            assert 0 <= profile.epsilon(delta, bound="lower") <= profile.epsilon(delta)


@pytest.mark.slow
@pytest.mark.parametrize("profile", [
    PersonalizedClones.laplace([0.5, 1.0, 2.0], counts=[9, 4, 1]), PersonalizedClones.gaussian([1.0, 3.0], counts=[9, 4], target=0),
    PersonalizedClones.randomized_response([0.5, 1.0, 2.0], 4, counts=[9, 4, 1]),
], ids=repr)
def test_all_lower_bounds_are_below_the_upper_bounds(profile):
    assert 0 < profile.rdp(3.0, bound="lower") <= profile.rdp(3.0)
    assert 0 < profile.gdp_mu(bound="lower") <= profile.gdp_mu()
    assert (profile.tradeoff().beta([0.01, 0.3]) <= profile.tradeoff(bound="upper").beta([0.01, 0.3])).all()
    composed = profile.self_compose(3)
    assert 0 < composed.epsilon(1e-4, bound="lower") <= composed.epsilon(1e-4)


def test_no_delta_far_beyond_the_budget():
    profile = PersonalizedClones.randomized_response([0.5, 1.0], 3)
    for bound in ("lower", "upper"):
        assert (profile.log_delta([1.0, 720.0, 1e3, 1e300], bound=bound) == -math.inf).all()
