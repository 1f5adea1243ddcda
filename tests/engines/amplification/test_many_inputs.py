"""The lower bound of a matrix with many inputs is the largest over the datasets with the largest second moments of X."""

import math
from itertools import permutations

import numpy as np
import pytest

from shufflebounds.mechanisms import FiniteRandomizer
from shufflebounds.shuffle import Shuffled
from tests.strategies import slow


def every_law(rows):
    """Return the distribution of X of every pair of inputs and every dataset of equal inputs, and for evenly spread inputs."""
    datasets = [*rows, rows.mean(axis=0)]
    pairs = permutations(range(len(rows)), 2)
    # Of three inputs, no distribution is left out.
    return [FiniteRandomizer([rows[i], rows[j], row]).excess_laws()[0].lower[2][1] for i, j in pairs for row in datasets]


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


@pytest.mark.parametrize(("floor", "eps"), [
    (1e-3, 0.02), (3e-2, 1.5), slow(3e-2, 0.02), slow(3e-2, 0.4), slow(1e-3, 0.4), slow(1e-3, 1.5)])
def test_the_blanket_is_the_largest_of_all_pairs(floor, eps):
    rows = np.maximum(np.random.default_rng(3).dirichlet(np.ones(5), size=5), floor)
    randomizer = FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True))
    largest = max(pair.upper.log_phi_side(eps, 400, upper=True) for pair in randomizer.excess_laws())
    lines = [line.split() for line in randomizer.shuffled(400).explain(eps).splitlines()]
    # The blanket is left out if another bound is clearly smaller.
    stated = [float(line[2]) for line in lines if line[:2] == ["at", "most"] and line[-2:] == ["privacy", "blanket"]]
    assert stated == [pytest.approx(largest, rel=1e-8)] or not stated


@pytest.mark.parametrize("floor", [0.0, 1e-3])
def test_delta_of_many_inputs_is_the_largest_of_all_pairs(floor):
    rows = np.maximum(np.random.default_rng(5).dirichlet(np.ones(4), size=10), floor)
    rows[1] = rows[0]
    randomizer = FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True))
    eps = np.array([0.0, 1e-3, 0.7, 0.999 * min(randomizer.epsilon(0.0), 5.0), 8.0])
    for points in (eps, *np.split(eps, eps.size)):
        for bound in ("lower", "upper"):
            each = [pair.log_delta(points, bound=bound) for pair in randomizer.pairs()]
            assert np.array_equal(randomizer.log_delta(points, bound=bound), np.max(each, axis=0))
