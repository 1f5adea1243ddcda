"""SmallDB: its output distribution over enumerated databases, and the bound of its error."""

import math
from itertools import product

import numpy as np
import pytest

from shufflebounds.selection import small_db, small_db_error

QUERIES = np.array([[1.0, 0.0, 0.5], [0.0, 1.0, 1.0]])


class Chosen(np.random.Generator):
    """A source of random numbers that draws the given index, and keeps the probabilities of all indices."""

    def __init__(self, index):
        super().__init__(np.random.PCG64())
        self.index = index

    def choice(self, number, p):
        assert p.shape == (number,)
        self.probs = p
        return self.index


def drawn(data, eps, size):
    """Return every database that a run may return, and its probability."""
    source = Chosen(0)
    small_db(data, QUERIES, eps, size, rng=source)
    return np.array([small_db(data, QUERIES, eps, size, rng=Chosen(i)) for i in range(source.probs.size)]), source.probs


def test_no_replaced_record_changes_a_chance_by_more_than_eps():
    eps, records = 1.2, 4
    data = [counts for counts in product(range(records + 1), repeat=3) if sum(counts) == records]
    laws = {counts: np.log(drawn(counts, eps, 3)[1]) for counts in data}
    for one in data:
        for other in data:
            if np.abs(np.subtract(one, other)).sum() == 2:
                assert np.max(laws[one] - laws[other]) <= eps * (1 + 1e-12)


def test_the_error_is_at_most_its_bound():
    data, eps, beta, size = np.array([50, 30, 20]), 2.0, 0.1, 4
    databases, probs = drawn(data, eps, size)
    assert len(databases) == math.comb(6, 2)
    assert (databases.sum(axis=1) == size).all()
    errors = np.abs(databases @ QUERIES.T / size - QUERIES @ data / 100).max(axis=1)
    # The exponential mechanism; a replaced record changes an error by at most 1/100.
    weights = np.exp(-eps * 100 * errors / 2)
    assert probs == pytest.approx(weights / weights.sum(), rel=1e-12)
    bound = small_db_error(3, 2, 100, eps, beta, size=size).error
    assert probs[errors > bound].sum() <= beta
    # At least one database has an error of at most the first term of the bound.
    assert errors.min() <= math.sqrt(math.log(4) / (2 * size))


@pytest.mark.parametrize("case", [(2, 1, 1), (1, 1, 50), (1000, 100, 10**6), (10, 10**9, 100), (10**15, 10**15, 10**15)])
def test_no_other_size_has_a_smaller_bound(case):
    found = small_db_error(*case, 1.0, 0.05)
    for factor in (0.5, 0.9, 1.1, 2):
        other = min(max(1, int(found.size * factor)), 2**53)
        assert small_db_error(*case, 1.0, 0.05, size=other).error >= found.error * (1 - 1e-9)


def test_a_run_returns_a_database_and_refuses_what_it_cannot_list():
    found = small_db([40, 30, 30], QUERIES, 50.0, 6, rng=3)
    assert found.sum() == 6
    with pytest.raises(ValueError, match="too many to enumerate"):
        small_db(np.ones(100, dtype=int), np.zeros((1, 100)), 1.0, 20)
    with pytest.raises(ValueError, match="has no records"):
        small_db([0, 0], [[0.0, 1.0]], 1.0, 2)
    with pytest.raises(ValueError, match="queries has shape"):
        small_db([1, 1, 1], [[0.0, 1.0]], 1.0, 2)
