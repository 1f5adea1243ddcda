"""The search over boxes of datasets: upper bounds for more users than can be enumerated one by one."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds._engines.datasets import boxes
from shufflebounds.mechanisms import FiniteRandomizer, HadamardResponse, SubsetSelection, UnaryEncoding
from tests.strategies import slow, thinned


def laws_of(rows, shares, place=1):
    """Return the distributions of the counts of all outputs but the last, for the users `shares` and one more with each input.

    A count of output y is a power of 1000^y, so that the distributions are polynomials in one variable.
    """
    law = {0: 1}
    for row, count in zip(rows, shares):
        for _ in range(count):
            law = times(law, row)
    return [times(law, row) for row in rows]


def times(law, row):
    out = {}
    for y, p in enumerate(row):
        step = 1000**y if y < len(row) - 1 else 0
        for place, q in law.items():
            out[place + step] = out.get(place + step, 0) + p * q
    return out


def delta(first, second, factor):
    return sum(max(p - factor * second[z], 0) for z, p in first.items())


def exact_rows(weights):
    """Return rows whose entries are multiples of 2^-20, as integers."""
    rows = []
    for row in weights:
        cuts = [round(2**20 * x) for x in itertools.accumulate(row, initial=0.0)]
        rows.append([b - a for a, b in itertools.pairwise([*cuts[:-1], 2**20])])
    return rows


@pytest.mark.parametrize(("randomizer", "users", "eps"), thinned([
    (SubsetSelection(4, 3.0, 3), 15, 2.7), (SubsetSelection(4, 3.0, 3), 30, 1.5), (SubsetSelection(4, 4.2, 3), 47, 2.0),
    (UnaryEncoding.symmetric(3, 4.0), 12, 3.0), (HadamardResponse(3, 3.0), 25, 1.5),
], 3))
def test_the_upper_bound_of_an_oracle_is_the_maximum(randomizer, users, eps):
    """The lower bound is delta of one dataset, so an upper bound that equals it is the maximum over every dataset."""
    protocol = randomizer.shuffled(users)
    assert protocol.argument(eps) == "every dataset of a stronger protocol"
    low, high = (protocol.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
    assert low <= high <= low + 1e-6


@pytest.mark.parametrize(("seed", "inputs", "outputs", "users", "eps"), [
    slow(1, 3, 3, 20, 0.3), slow(3, 3, 4, 14, 0.8), slow(4, 4, 3, 14, 0.5),
])
def test_the_upper_bound_of_a_matrix_is_the_maximum_over_every_dataset(seed, inputs, outputs, users, eps):
    weights = np.random.default_rng(seed).dirichlet(np.ones(outputs), inputs)
    whole = exact_rows(weights)
    protocol = FiniteRandomizer([[p / 2**20 for p in row] for row in whole]).shuffled(users)
    high = protocol.log_delta(eps)
    factor = Fraction(math.exp(eps))
    rows, near = [[p / 2**20 for p in row] for row in whole], []
    for shares in itertools.product(range(users), repeat=inputs):
        if sum(shares) == users - 1:
            laws = laws_of(rows, shares)
            near.append(max((delta(p, q, float(factor)), shares) for p, q in itertools.permutations(laws, 2)))
    value, shares = max(near)
    # The value of the worst dataset is computed again with integers, which have no rounding errors.
    exact = max(delta({z: p * factor.denominator for z, p in first.items()}, second, factor.numerator)
                for first, second in itertools.permutations(laws_of(whole, shares), 2))
    exact = float(Fraction(exact, factor.denominator * 2 ** (20 * users)))
    assert exact == pytest.approx(value, rel=1e-9)
    assert exact * (1 - 1e-12) <= math.exp(high) <= exact * (1 + 1e-8)


@pytest.mark.parametrize("most_boxes", [1, 3, 10, 40])
@pytest.mark.parametrize("randomizer", [
    SubsetSelection(4, 3.0, 3), FiniteRandomizer(np.random.default_rng(5).dirichlet(np.ones(3), 4)),
    FiniteRandomizer(np.random.default_rng(6).dirichlet(np.ones(4), 3)),
], ids=lambda one: type(one).__name__)
def test_a_search_with_a_limit_of_boxes_does_not_rise_with_the_number_of_users(monkeypatch, randomizer, most_boxes):
    rows = np.array(randomizer._matrix())
    values = []
    for users in range(8, 31):
        search = boxes.BoxesOfDatasets(rows, users)
        monkeypatch.setattr(search, "_most_boxes", most_boxes)
        values.append(search.covered(0.7).log_delta)
    assert max(np.diff(values)) <= 1e-9


def test_the_limit_of_boxes_falls_with_the_number_of_users_only_after_the_numbers_of_the_list():
    rows = np.random.default_rng(5).dirichlet(np.ones(3), 4)
    limits = [boxes.BoxesOfDatasets(rows, users)._most_boxes for users in range(2, 200)]
    assert {users for users, limit, after in zip(range(2, 199), limits, limits[1:]) if limit != after} <= {*boxes.NUMBERS}
    assert sorted(limits, reverse=True) == limits


@pytest.mark.parametrize(("seed", "eps"), [slow(377744, 0.211), slow(972528, 0.11), (922800, 0.249)])
def test_a_search_that_gains_little_is_not_omitted_if_the_bound_would_rise(seed, eps):
    rows = np.random.default_rng(seed).dirichlet(np.full(5, 3.0), 2)
    values = [FiniteRandomizer(rows).shuffled(users).log_delta(eps) for users in range(36, 41)]
    assert max(np.diff(values)) <= 1e-9
