"""Compositions of independent parts, bins and columns, against products listed in full, for every data of few users."""

import itertools
import math
from functools import reduce

import numpy as np
import pytest

from shufflebounds.shuffle import FlippedReports, PersonalizedBits, RealSum, ShuffledBits, ShuffledHistogram


def bits(ones, zeros, flip):
    """Return the law of the sum of so many flipped bits."""
    return reduce(np.convolve, [np.array([flip, 1 - flip])] * ones + [np.array([1 - flip, flip])] * zeros, np.ones(1))


def product(*laws):
    """Return the joint law of independent numbers."""
    return reduce(np.multiply.outer, laws).ravel()


def largest(pairs, times, eps):
    """Return the largest hockey stick of so many releases, a pair and its order chosen anew for each by what was seen before."""
    orders = [(a[a > 0], b[a > 0]) for pair in pairs for a, b in (pair, pair[::-1])]

    def stick(factor, left):
        if left == 0:
            return np.maximum(0, 1 - factor)
        return np.max([stick(np.multiply.outer(factor, b / a), left - 1) @ a for a, b in orders], axis=0)

    return float(stick(math.exp(eps), times))


def reports(users, flip):
    """Return both laws of two bins' sums for every data of the others."""
    others = users - 1
    for i in range(others + 1):
        yield tuple(
            product(bits(i + here, others - i + 1 - here, flip), bits(others - i + 1 - here, i + here, flip)) for here in (1, 0)
        )


def columns(users, flip, width):
    """Return both laws of the columns where the target moves from 0 to 1, for every data of the others."""
    for ones in itertools.product(range(users), repeat=width):
        yield tuple(product(*(bits(m + here, users - m - here, flip) for m in ones)) for here in (0, 1))


def histogram(users, gamma):
    """Return both laws of two counts of which one rises and one falls."""
    noise = bits(0, users, gamma)
    plain, more = np.append(noise, 0.0), np.append(0.0, noise)
    yield product(more, plain), product(plain, more)


def personal(budgets):
    """Return both laws of the sum for the last user, for every data of the others."""
    flips = 1 / (np.exp(budgets) + 1)
    for data in itertools.product((0, 1), repeat=len(budgets) - 1):
        rest = [np.array([1 - q, q][:: 1 - 2 * bit]) for q, bit in zip(flips, data)]
        yield tuple(reduce(np.convolve, [*rest, np.array([1 - flips[-1], flips[-1]][:: 1 - 2 * bit])]) for bit in (0, 1))


def total(users, flip, width):
    """Return both laws of the sum of all columns."""
    for ones in range((users - 1) * width + 1):
        others = bits(ones, (users - 1) * width - ones, flip)
        yield tuple(np.convolve(others, bits(width * here, width * (1 - here), flip)) for here in (0, 1))


def targets(budgets, data):
    """Return both laws of the sum for every user, the others' bits known."""
    flips = 1 / (np.exp(budgets) + 1)
    laws = [np.array([1 - q, q][:: 1 - 2 * bit]) for q, bit in zip(flips, data)]
    for i, q in enumerate(flips):
        rest = reduce(np.convolve, laws[:i] + laws[i + 1 :])
        yield np.convolve(rest, [1 - q, q]), np.convolve(rest, [q, 1 - q])


BUDGETS = np.array([0.4, 0.9, 1.3])

CASES = {
    "reports": (FlippedReports(3, 0, 2, 0.2, view="sums"), list(reports(3, 0.2))),
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
    for times, eps in ((2, 1.2), (3, 0.7)):
        many, exact = profile.self_compose(times), largest(pairs, times, eps)
        assert many.delta(eps, bound="lower") <= exact * (1 + 1e-12) + 1e-15
        assert exact <= many.delta(eps) * (1 + 1e-12) + 1e-15
        assert many.delta(eps, bound="lower") > 0.2 * exact


@pytest.mark.parametrize("profile", [ShuffledBits(50, 0.5), ShuffledBits(50, 0.5 - 1e-12), RealSum(20, 20, 3)])
def test_next_to_nothing_is_composed(profile):
    many = profile.self_compose(2)
    assert 0 <= many.epsilon(1e-9, bound="lower") <= many.epsilon(1e-9) <= 1e-11
