"""The negative part of a signed distribution of four messages against exact rational arithmetic."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds._core import _matchings
from tests.strategies import thinned

PAIRS = list(itertools.combinations(range(4), 2))
MATCHINGS = [((0, 1), (2, 3)), ((0, 2), (1, 3)), ((0, 3), (1, 2))]


def exact(mass, tables):
    """Return the mass of the negative part by a sum over all quadruples of outputs."""
    total = Fraction(0)
    for four in itertools.product(range(len(mass)), repeat=4):
        value = Fraction(0)
        for users, messages in itertools.product(MATCHINGS, MATCHINGS):
            for order in (messages, messages[::-1]):
                first, second = ([Fraction(float(x)) for x in tables[four[i], four[j], PAIRS.index(pair)]]
                                 for pair, (i, j) in zip(users, order))
                value += first[0] * second[0] + first[1] * second[1] - first[2] * second[3] - first[3] * second[2]
        share = Fraction(1)
        for output in four:
            share *= Fraction(float(mass[output]))
        total += share * max(-value / 18, Fraction(0))
    return total


@pytest.mark.parametrize("seed", thinned(range(4), 2))
def test_negative_part_against_fractions(seed):
    rng = np.random.default_rng(seed)
    outputs = 3 + (seed == 0)
    tables = rng.integers(0, 40, (outputs, outputs, 6, 4)) / 8.0
    tables = tables + tables.transpose(1, 0, 2, 3)
    mass = rng.integers(1, 20, outputs) / 16.0
    truth = exact(mass, tables)
    assert truth > 0
    found = Fraction(_matchings.negative_part(mass, tables))
    assert truth <= found <= truth * (1 + Fraction(1, 10**8))


def test_no_negative_terms_and_no_outputs():
    tables = np.ones((2, 2, 6, 4))
    tables[..., 2:] = 0.0
    assert _matchings.negative_part(np.ones(2), tables) == 0.0
    assert _matchings.negative_part(np.empty(0), np.empty((0, 0, 6, 4))) == 0.0


def test_tables_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"must be \(3, 3, 6, 4\)"):
        _matchings.negative_part(np.ones(3), np.ones((2, 2, 6, 4)))
