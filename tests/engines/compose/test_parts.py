"""Compositions of independent parts (bins, columns), against enumerated products, for every dataset of few users."""

import itertools
import math
from functools import reduce

import numpy as np
import pytest
from scipy.signal import convolve2d

from shufflebounds.mechanisms import RandomizedResponse
from shufflebounds.shuffle import FlippedReports, PersonalizedBits, RealSum, ShuffledBits, ShuffledHistogram
from tests.strategies import slow


def bits(ones, zeros, flip):
    """Return the distribution of the sum of `ones` bits 1 and `zeros` bits 0, each flipped with probability `flip`."""
    return reduce(np.convolve, [np.array([flip, 1 - flip])] * ones + [np.array([1 - flip, flip])] * zeros, np.ones(1))


def product(*laws):
    """Return the joint distribution of independent integers."""
    return reduce(np.multiply.outer, laws).ravel()


def largest(pairs, times, eps):
    """Return the largest divergence of several releases over all adaptive choices of a pair and its order."""
    orders = [(a[a > 0], b[a > 0]) for pair in pairs for a, b in (pair, pair[::-1])]

    def hockey_stick(factor, left):
        if left == 0:
            return np.maximum(0, 1 - factor)
        return np.max([hockey_stick(np.multiply.outer(factor, b / a), left - 1) @ a for a, b in orders], axis=0)

    return float(hockey_stick(math.exp(eps), times))


def reports(users, flip):
    """Return both distributions of the sums of two bins, for every dataset of the other users."""
    others = users - 1
    for i in range(others + 1):
        yield tuple(
            product(bits(i + here, others - i + 1 - here, flip), bits(others - i + 1 - here, i + here, flip)) for here in (1, 0)
        )


def reports_among_dummies(users, fakes, flip):
    """Return both distributions of the sums of two bins with uniform dummy reports, for every dataset of the other users."""
    one_hot = [np.outer([1 - a, a], [1 - b, b]) for a, b in ((1 - flip, flip), (flip, 1 - flip))]
    dummies = reduce(convolve2d, [0.5 * (one_hot[0] + one_hot[1])] * fakes, np.ones((1, 1)))
    for first in range(users):
        rest = reduce(convolve2d, [one_hot[0]] * first + [one_hot[1]] * (users - 1 - first), dummies)
        yield tuple(convolve2d(rest, report).ravel() for report in one_hot)


def columns(users, flip, width):
    """Return both distributions of the columns if the target's value changes from 0 to 1, for every dataset of the other users."""
    for ones in itertools.product(range(users), repeat=width):
        yield tuple(product(*(bits(m + here, users - m - here, flip) for m in ones)) for here in (0, 1))


def histogram(users, gamma):
    """Return both distributions of two counts, one of which increases by one and the other decreases by one."""
    noise = bits(0, users, gamma)
    plain, more = np.append(noise, 0.0), np.append(0.0, noise)
    yield product(more, plain), product(plain, more)


def personal(budgets):
    """Return both distributions of the sum for the last user as the target, for every dataset of the other users."""
    flips = 1 / (np.exp(budgets) + 1)
    for data in itertools.product((0, 1), repeat=len(budgets) - 1):
        rest = [np.array([1 - q, q][:: 1 - 2 * bit]) for q, bit in zip(flips, data)]
        yield tuple(reduce(np.convolve, [*rest, np.array([1 - flips[-1], flips[-1]][:: 1 - 2 * bit])]) for bit in (0, 1))


def total(users, flip, width):
    """Return both distributions of the sum of all columns."""
    for ones in range((users - 1) * width + 1):
        others = bits(ones, (users - 1) * width - ones, flip)
        yield tuple(np.convolve(others, bits(width * here, width * (1 - here), flip)) for here in (0, 1))


def targets(budgets, data):
    """Return both distributions of the sum for every user as the target, given the bits of all users."""
    flips = 1 / (np.exp(budgets) + 1)
    laws = [np.array([1 - q, q][:: 1 - 2 * bit]) for q, bit in zip(flips, data)]
    for i, q in enumerate(flips):
        rest = reduce(np.convolve, laws[:i] + laws[i + 1 :])
        yield np.convolve(rest, [1 - q, q]), np.convolve(rest, [q, 1 - q])


BUDGETS = np.array([0.4, 0.9, 1.3])

CASES = {
    "reports": (FlippedReports(3, 0, 2, 0.2, view="sums"), list(reports(3, 0.2))),
    "dummies": (FlippedReports(3, 1, 2, 261 / 1024, view="sums"), list(reports_among_dummies(3, 1, 261 / 1024))),
    "more dummies": (FlippedReports(10, 5, 2, 0.2, view="sums"), list(reports_among_dummies(10, 5, 0.2))),
    "columns": (RealSum(3, 1.2, 2, view="columns"), list(columns(3, 0.2, 2))),
    "histogram": (ShuffledHistogram(4, 2, 0.4), list(histogram(4, 0.4))),
    "bits": (ShuffledBits(4, 0.2), list(total(4, 0.2, 1))),
    "total": (RealSum(3, 1.2, 2), list(total(3, 0.2, 2))),
    "targets": (PersonalizedBits(BUDGETS, bits=[1, 0, 1]), list(targets(BUDGETS, [1, 0, 1]))),
    "budgets": (PersonalizedBits(BUDGETS, target=2), list(personal(BUDGETS))),
}


@pytest.mark.parametrize("name", CASES)
def test_encloses_the_worst_data_of_all_releases(name):
    profile, pairs = CASES[name]
    for times, eps in ((2, 1.2), (3, 0.7)) if len(pairs[0][0]) < 100 else ((2, 1.0),):
        many, exact = profile.self_compose(times), largest(pairs, times, eps)
        assert many.delta(eps, bound="lower") <= exact * (1 + 1e-12) + 1e-15
        assert exact <= many.delta(eps) * (1 + 1e-12) + 1e-15
        assert many.delta(eps, bound="lower") > 0.2 * exact


@pytest.mark.parametrize("name", ["dummies", "columns", "bits", "histogram"])
def test_composed_with_another_mechanism_the_lower_bound_is_valid(name):
    profile, pairs = CASES[name]
    coin = RandomizedResponse(0.7)
    both = profile.compose(coin)
    keep = math.exp(0.7) / (1 + math.exp(0.7))
    law = np.array([keep, 1 - keep])
    for eps in (0.3, 1.1):
        # `fixed` uses one order of randomized response for the whole release; `adaptive` chooses the worse order after each outcome
        # of the first mechanism.
        fixed = adaptive = 0.0
        for p, q in (order for pair in pairs for order in (pair, pair[::-1])):
            gains = [
                np.maximum(np.multiply.outer(p, one) - math.exp(eps) * np.multiply.outer(q, one[::-1]), 0).sum(axis=1)
                for one in (law, law[::-1])
            ]
            fixed = max(fixed, *(float(gain.sum()) for gain in gains))
            adaptive = max(adaptive, float(np.maximum(*gains).sum()))
        assert fixed <= adaptive * (1 + 1e-12)
        assert both.delta(eps, bound="lower") <= adaptive * (1 + 1e-12) + 1e-15
        assert fixed <= both.delta(eps) * (1 + 1e-12) + 1e-15


@pytest.mark.parametrize("profile", [
    slow(FlippedReports(1000, 200, 10, 0.1, view="sums")), slow(FlippedReports(1000, 200, 10, 0.1, view="records")),
    FlippedReports(20, 5, 4, 0.1, view="sums"), FlippedReports(20, 5, 4, 0.1, view="records"),
    RealSum(20, 4.0, 2, view="columns"), ShuffledHistogram(40, 3, 0.3),
])
def test_a_composition_loses_at_least_what_one_release_loses(profile):
    for eps in (0.1, 1.0):
        assert profile.self_compose(2).delta(eps, bound="lower") >= profile.delta(eps, bound="lower")


@pytest.mark.parametrize("profile", [ShuffledBits(50, 0.5), ShuffledBits(50, 0.5 - 1e-12), RealSum(20, 20, 3)])
def test_next_to_nothing_is_composed(profile):
    many = profile.self_compose(2)
    assert 0 <= many.epsilon(1e-9, bound="lower") <= many.epsilon(1e-9) <= 1e-11
