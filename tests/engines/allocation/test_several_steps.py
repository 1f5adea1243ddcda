"""Random allocation to several steps: tests of sums and the additive upper bound against enumeration in fractions."""

import itertools
import math
import pickle
import random
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from shufflebounds.mechanisms import GaussianMechanism, RandomizedResponse
from shufflebounds.profile import DominatingPair
from shufflebounds.sampling import RandomAllocation
from tests.strategies import slow


def parts(total, kinds):
    """Return all vectors of `kinds` nonnegative whole numbers with the given sum."""
    return [np.diff([-1, *cuts, total + kinds - 1]) - 1 for cuts in itertools.combinations(range(total + kinds - 1), kinds - 1)]


def allocated(p, q, steps, chosen):
    """Return the exact probabilities of the numbers of each outcome in all steps, with and without the record."""
    used, rest = parts(chosen, len(p)), parts(steps - chosen, len(p))

    def chance(law, count):
        number = math.factorial(int(sum(count)))
        for n in count:
            number //= math.factorial(int(n))
        return number * math.prod(x ** int(n) for x, n in zip(law, count))

    with_record, without = {}, {tuple(count): chance(q, count) for count in parts(steps, len(p))}
    for a in used:
        for b in rest:
            key = tuple(a + b)
            with_record[key] = with_record.get(key, 0) + chance(p, a) * chance(q, b)
    return [(with_record.get(key, Fraction(0)), value) for key, value in without.items()]


def deltas(pairs, eps):
    """Return the hockey-stick divergences at e^eps, which is taken as exactly the double, in both orders."""
    factor = Fraction(math.exp(eps))
    return [float(sum(max(pair[way] - factor * pair[1 - way], 0) for pair in pairs)) for way in (0, 1)]


def random_case(r, most):
    """Return two exact distributions of an outcome, some with impossible outcomes, and numbers of steps."""
    kinds, steps = r.choice([2, 2, 3]), r.randint(2, most)
    laws = []
    for _ in range(2):
        weights = [r.randint(1, 2**10) * (1 if r.random() < 0.8 else 2**10) for _ in range(kinds)]
        if r.random() < 0.2:
            weights[r.randrange(kinds)] = 0
        # The last probability is what is missing to 1, so that all of them are doubles.
        first = [Fraction(round(w / sum(weights) * 2**40), 2**40) for w in weights[:-1]]
        laws.append([*first, 1 - sum(first)])
    return *laws, steps, r.randint(2, steps)


def profile_of(p, q, steps, chosen):
    with np.errstate(divide="ignore"):
        pair = DominatingPair.from_pmfs(*(np.log([float(x) for x in law]) for law in (p, q)))
    return RandomAllocation(pair, steps, chosen)


def check(p, q, steps, chosen, places):
    """Compare both bounds with the exact divergences."""
    allocation = profile_of(p, q, steps, chosen)
    largest = max((abs(math.log(x / y)) for x, y in zip(p, q) if x and y), default=0.0)
    pairs, ratios = allocated(p, q, steps, chosen), []
    for place in places:
        eps = place * chosen * largest
        exact = deltas(pairs, eps)
        lower, upper = allocation.delta(eps, bound="lower"), allocation.delta(eps)
        # The logarithms of the probabilities are rounded.
        assert lower <= max(exact) * (1 + 1e-9) + 1e-15
        assert max(exact) * (1 - 1e-9) - 1e-15 <= upper
        if max(exact) > 1e-6:
            ratios.append(lower / max(exact))
    return ratios


@pytest.mark.parametrize("seed", range(2))
def test_both_bounds_against_fractions(seed):
    r = random.Random(seed)
    for _ in range(2):
        check(*random_case(r, 4), [0.0, 0.3, 0.7])


@pytest.mark.slow
def test_many_allocations_against_fractions():
    r, ratios = random.Random(4), []
    for _ in range(8):
        ratios += check(*random_case(r, 6), [0.0, *(r.random() ** 2 for _ in range(6))])
    # The tests are close to the best one in most cases.
    assert np.median(ratios) > 0.99


def test_two_of_five_steps_of_a_response():
    p = [Fraction(3, 4), Fraction(1, 4)]
    for eps, ratio in ((0.0, 0.999), (0.5, 0.999), (1.5, 0.99)):
        exact = max(deltas(allocated(p, p[::-1], 5, 2), eps))
        allocation = RandomAllocation(RandomizedResponse(math.log(3)), 5, 2)
        assert ratio * exact < allocation.delta(eps, bound="lower") <= exact * (1 + 1e-9)
        assert exact <= allocation.delta(eps)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "steps", "chosen", "lower", "upper"), [
    # Lower bounds by a Fourier transform in floating point, and upper bounds (docs/training), by a program that does not use the
    # package; delta is 1e-6.
    (1.0, 1000, 10, 1.9450, 1.9650), (1.0, 1000, 2, 0.3612, 0.3621), (1.0, 100, 10, 6.537, 6.67), (0.6, 1000, 10, 7.56, 7.75),
])
def test_gaussian_noise(sigma, steps, chosen, lower, upper):
    allocation = RandomAllocation(GaussianMechanism(sigma), steps, chosen)
    assert lower <= allocation.epsilon(1e-6, bound="lower") <= allocation.epsilon(1e-6) <= upper


@pytest.mark.slow
def test_ten_epochs():
    for sigma, chosen, lower, upper in ((2.0, 10, 2.4160, 2.4189), (1.0, 2, 1.1350, 1.1366)):
        epochs = RandomAllocation(GaussianMechanism(sigma), 1000, chosen).self_compose(10)
        assert lower <= epochs.epsilon(1e-6, bound="lower") <= epochs.epsilon(1e-6) <= upper


@pytest.mark.slow
def test_the_additive_bound_is_below_the_composition():
    allocation = RandomAllocation(GaussianMechanism(1.0), 100, 10)
    removed = allocation._ways[0]
    assert removed.epsilon(1e-6) < 6.67 < 6.89 < removed._forms.blocks.epsilon(1e-6)


@pytest.mark.slow
def test_derived_results_and_copies():
    allocation = RandomAllocation(RandomizedResponse(1.0), 20, 4)
    orders = [1.5, 2.0, 16.0, math.inf]
    lower, upper = allocation.rdp(orders, bound="lower"), allocation.rdp(orders)
    assert (lower > 0).all()
    assert (lower <= upper).all()
    assert 0 < allocation.gdp_mu(bound="lower") <= allocation.gdp_mu()
    below, above = allocation.tradeoff(), allocation.tradeoff(bound="upper")
    alpha = np.linspace(0.01, 0.99, 9)
    assert (below.beta(alpha) <= above.beta(alpha)).all()
    assert above.beta(0.1) < 0.9 - 1e-3
    assert allocation.loss_tail(0.5, bound="lower") <= allocation.loss_tail(0.5)
    again = pickle.loads(pickle.dumps(allocation))
    assert again.delta(0.7, bound="lower") == allocation.delta(0.7, bound="lower")
    two = allocation.self_compose(2)
    assert allocation.delta(0.7, bound="lower") < two.delta(0.7, bound="lower") <= two.delta(0.7)
    mixed = allocation.compose(RandomizedResponse(0.5).subsampled(0.1))
    assert 0 < mixed.delta(1.0, bound="lower") <= mixed.delta(1.0)


@pytest.mark.parametrize(("one", "other", "revealed", "steps", "chosen", "eps"), [
    (0.03, 0.01, 0.0, 2000, 600, (3.0, 8.0)), slow(0.5, 0.484375, 0.0, 1200, 1199, (0.5, 8.0)),
    (0.5, 0.484375, 1e-4, 1200, 900, (0.5, 200.0)),
])
def test_the_number_of_ones_of_many_steps(one, other, revealed, steps, chosen, eps):
    """The best tests are by the number of ones, and by an outcome that only steps with the record have, if it is seen.

    The upper bound of the first case is that by a sum over the steps; the other cases have wider ones, by blocks of steps.
    """
    p, q = ([(1 - chance) * (1 - shown), chance * (1 - shown), shown] for chance, shown in ((one, revealed), (other, 0.0)))
    allocation, hidden = profile_of(p, q, steps, chosen), (1 - revealed) ** chosen
    laws = [binom.pmf(np.arange(n + 1), n, chance) for n, chance in ((chosen, one), (steps - chosen, other), (steps, other))]
    first, second = hidden * np.convolve(*laws[:2]), laws[2]
    for at in eps:
        removed, added = (np.maximum(a - math.exp(at) * b, 0).sum() for a, b in ((first, second), (second, first)))
        exact = max(removed + (1 - hidden), added)
        assert exact * (1 - 2e-6) <= allocation.delta(at, bound="lower") <= exact * (1 + 1e-11)
        assert exact * (1 - 1e-11) <= allocation.delta(at)
        assert one > 0.1 or allocation.delta(at) < 1.01 * exact


def test_an_outcome_that_only_steps_without_the_record_have():
    # Without the record half of the steps have it, with the record only the single step that does not use it.
    allocation = profile_of([0.5, 0.5, 0.0], [0.25, 0.25, 0.5], 1200, 1199)
    assert 0.999 < allocation.delta(1e4, bound="lower") <= 1
