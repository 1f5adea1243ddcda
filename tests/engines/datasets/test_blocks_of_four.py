"""Drawn users that are matched within blocks of four (docs/theorems/worst-dataset): the expansion, and c_- of Gaussian noise."""

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from scipy.special import ndtr

from shufflebounds import mechanisms
from shufflebounds._engines.datasets.pair_weights import BLOCK_PAIRS, negative_mass
from shufflebounds._engines.datasets.worst import WorstDataset
from shufflebounds._engines.inputs import gaussian_blocks as blocks
from tests.engines.datasets.test_worst_dataset_theorem import plus

MATCHINGS = [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]


def multiplied(*laws):
    """Return the product of signed measures on multisets of messages, given as Counters of sorted tuples."""
    out = Counter({(): Fraction(1)})
    for law in laws:
        new = Counter()
        for (one, p), (other, q) in itertools.product(out.items(), law.items()):
            new[tuple(sorted(one + other))] += p * q
        out = new
    return out


def pair_law(a, j, g):
    """Return R_a R_j - g (R_a - R_j)^2."""
    first, second = (Counter({(y,): p for y, p in enumerate(row)}) for row in (a, j))
    gap = plus((1, first), (-1, second))
    return plus((1, multiplied(first, second)), (-g, multiplied(gap, gap)))


@pytest.mark.parametrize("seed", range(4))
def test_blocks_have_the_mean_of_all_draws(seed):
    """For s = 2 the mean over ordered draws of two pairs of four users is W of the block, with a smaller negative part."""
    rng = np.random.default_rng(seed)
    rows = [[Fraction(int(w), int(sum(row))) for w in row] for row in rng.integers(1, 30, (3, 3))]
    users, g = [rows[x] for x in rng.integers(0, 3, 4)], Fraction(2, 9)
    laws = {pair: pair_law(users[pair[0]], users[pair[1]], g) for pair in itertools.combinations(range(4), 2)}
    block = plus(*((Fraction(1, 3), multiplied(laws[u], laws[v])) for u, v in MATCHINGS))
    draws = list(itertools.permutations(range(4)))
    mean = plus(*((Fraction(1, len(draws)), multiplied(pair_law(users[a], users[b], g), pair_law(users[c], users[d], g)))
                  for a, b, c, d in draws))
    assert {k: v for k, v in (mean - block).items() if v} == {} == {k: v for k, v in (block - mean).items() if v}
    assert sum(block.values()) == 1
    negative = [sum(max(-p, 0) for p in law.values()) for law in (block, *laws.values())]
    assert negative[0] <= max((1 + 2 * one) * (1 + 2 * other) - 1 for one in negative[1:] for other in negative[1:]) / 2


def binned(length, pairs, inputs, gamma=0.5, edges=34):
    """Return the mass of the negative part of W for outputs in bins: at most that of the outputs, as binning is post-processing."""
    y = np.concatenate([[-np.inf], np.linspace(-5.5, length + 5.5, edges), [np.inf]])
    rows = [np.where(y[1:] < x, np.diff(ndtr(y - x)), -np.diff(ndtr(x - y))) for x in inputs]
    g = gamma / pairs

    def form(a, b):
        mixed = 0.5 * (np.outer(rows[a], rows[b]) + np.outer(rows[b], rows[a]))
        return (1 + 2 * g) * mixed - g * (np.outer(rows[a], rows[a]) + np.outer(rows[b], rows[b]))

    total = 0
    for (a, b), (c, d) in MATCHINGS:
        product = np.multiply.outer(form(a, b), form(c, d))
        product = product + product.transpose(2, 3, 0, 1)
        total = total + product + product.transpose(0, 2, 1, 3) + product.transpose(0, 2, 3, 1)
    return float(np.maximum(-total / 18, 0).sum())


@pytest.mark.slow
@pytest.mark.parametrize(("length", "pairs"), [(1.0, 8), (1.25, 20), (1 / 0.7, 46), (2.0, 200), (0.5, 2)])
def test_the_negative_part_is_bounded_and_close(length, pairs):
    bound = blocks._largest(length, pairs, ())
    below = [binned(length, pairs, four) for four in ((0, 0, 0, length), (0, 0, length, length))]
    assert max(below) < bound < 6 * max(below) + 1e-11
    two = blocks._largest(length, pairs, (0.0, length))
    assert max(below) < two <= bound
    rng = np.random.default_rng(pairs)
    for _ in range(4):
        inputs = np.sort(rng.uniform(0, length, 4)) if rng.random() < 0.5 else length * np.sort([0, *rng.beta(0.3, 0.3, 2), 1])
        assert binned(length, pairs, inputs, rng.uniform(0.496, 0.5)) < bound


def test_few_bins_have_less_negative_mass_than_the_bound():
    below = binned(1.0, 8, (0, 0, 1, 1), edges=18)
    assert below < blocks._largest(1.0, 8, (0.0, 1.0)) <= blocks._largest(1.0, 8, ()) < 12 * below


@pytest.mark.parametrize("length", [0.3, 1.0, 2.5])
def test_masses_at_the_edges_keep_the_masses_of_both_ends(length):
    y, _, weights, _ = blocks._edges(length, 22)
    assert weights.min() >= 0
    for x in (0.0, length):
        assert weights @ np.exp(x * (y - 0.5 * x)) == pytest.approx(ndtr(y[-1] - x) - ndtr(y[0] - x), rel=1e-12)


def test_rough_values_decrease_and_are_near_the_bounds():
    for length in (0.3, 1.0, 1.5):
        rough = [max(blocks.rough_negative_mass(length, pairs), 1e-9) for pairs in BLOCK_PAIRS]
        assert sorted(rough, reverse=True) == rough
    for pairs in (4, 8, 12):
        assert 0.3 < blocks.rough_negative_mass(1.0, pairs) / blocks.negative_mass(1.0, pairs) < 3
    assert all(pairs % 2 == 0 for pairs in BLOCK_PAIRS)


def test_no_positive_value_has_no_delta():
    """At eps above the pure budget no X is positive; the bound is then the error term alone."""
    data = mechanisms.FiniteRandomizer([[0.5, 0.5], [0.4, 0.6]]).dataset_laws()
    assert -math.inf <= WorstDataset(data, 1000).log_delta(0.5) < -10


def test_blocks_leave_out_fewer_users_than_pairs():
    data = mechanisms.GaussianMechanism(1.0).dataset_laws()
    assert blocks.negative_mass(data.cases.noise.length, 8) < 1e-2 * negative_mass(data.ratio_tail, 8)
    bound = WorstDataset(data, 1000)
    chosen = bound._blocks_near(0.17, math.log(1e-6))
    assert len(chosen) >= 2
    assert all(1000 - 2 * pairs >= blocks.FEWEST_LEFT for pairs in chosen)
    # For 200 users gamma is below the range for which the mass of the negative part is computed, so there are no blocks.
    assert WorstDataset(data, 200)._blocks == ()
    assert mechanisms.GaussianMechanism(0.2).dataset_laws().blocks is None
