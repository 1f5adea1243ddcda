"""The lower bound of a matrix with many inputs is the largest over the datasets with the largest second moments of X."""

import math
from itertools import permutations

import numpy as np
import pytest

from shufflebounds._engines.datasets.largest_sum import single_bounds
from shufflebounds._engines.excess.excess_law import ExcessLaw
from shufflebounds.mechanisms import FiniteRandomizer
from shufflebounds.shuffle import Shuffled


def every_law(rows):
    """Return the distribution of X of every pair of inputs and every dataset of equal inputs, and for evenly spread inputs."""
    datasets = [*rows, rows.mean(axis=0)]
    pairs = permutations(range(len(rows)), 2)
    return [ExcessLaw.of(rows[i], rows[j], row, 0.0).widened(upper=False) for i, j in pairs for row in datasets]


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_widest_distributions_are_kept(seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(8, 3.0), 7)
    protocol, laws = Shuffled(FiniteRandomizer(rows), 500), every_law(rows)
    assert len(laws) > 320
    assert len(protocol._laws.below) < len(laws)
    for eps in (0.0, 2.0**-6, 0.25, 0.5, 1.0, 2.0):
        widest = sorted((law.spread(eps) for law in laws), reverse=True)[:64]
        kept = sorted((law.spread(eps) for _, _, law in protocol._laws.below), reverse=True)[:64]
        assert kept == pytest.approx(widest, rel=1e-12)
    eps = protocol.epsilon(1e-6, bound="lower")
    best = max(law.log_phi_side(eps, 500, upper=False) for law in laws)
    assert protocol.log_delta(eps, bound="lower") == pytest.approx(best, abs=1e-9)


def test_an_output_of_one_input_alone_is_kept():
    rows = np.full((10, 10), 0.1)
    rows[3] = [0.0999, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1001]
    rows = np.column_stack([rows, np.zeros(10)])
    rows[5, 0], rows[5, 10] = 0.0999, 1e-4
    protocol = Shuffled(FiniteRandomizer((rows / rows.sum(axis=1, keepdims=True)).tolist()), 50)
    assert protocol.epsilon(1e-5, bound="lower") == math.inf
    assert protocol.gdp_mu(bound="lower") == math.inf


@pytest.mark.parametrize("floor", [1e-3, 3e-2])
@pytest.mark.parametrize("eps", [0.02, 0.4, 1.5])
def test_the_blanket_is_the_largest_of_all_pairs(floor, eps):
    rows = np.maximum(np.random.default_rng(3).dirichlet(np.ones(5), size=5), floor)
    protocol = FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True)).shuffled(400)
    laws = [pair.upper for pair in protocol._laws.pairs]
    largest = max(law.log_phi_side(eps, 400, upper=True) for law in laws)
    bounds = dict(protocol._bounds.upper._named(eps))
    assert bounds.get("privacy blanket", largest) == largest
    for bound, law in zip(single_bounds(laws, eps, 400), laws, strict=True):
        assert bound >= law.log_phi_side(eps, 400, upper=False)


@pytest.mark.parametrize("floor", [0.0, 1e-3])
def test_delta_of_many_inputs_is_the_largest_of_all_pairs(floor):
    rows = np.maximum(np.random.default_rng(5).dirichlet(np.ones(4), size=10), floor)
    rows[1] = rows[0]
    randomizer = FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True))
    eps = np.array([0.0, 1e-3, 0.7, 0.999 * min(randomizer.epsilon(0.0), 5.0), 8.0])
    for points in (eps, *np.split(eps, eps.size)):
        sides = [[pair._log_delta(points)[side] for pair in randomizer.pairs()] for side in (0, 1)]
        assert np.array_equal(randomizer._log_delta(points), np.max(sides, axis=1))
