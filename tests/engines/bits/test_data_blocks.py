"""Blocks of datasets: the bound of a block is at least delta of all its datasets, and close to the largest."""

import numpy as np
import pytest
from scipy.stats import binom

from shufflebounds.shuffle import ShuffledBits
from tests.strategies import thinned

EPS = np.array([0.0, 0.01, 0.1, 0.5])


def log_delta(ones, zeros, width, flip):
    """Return log delta of (P, Q) at EPS by convolutions, if all `width` bits of the target change from 0 to 1."""
    law = np.convolve(*(binom.pmf(np.arange(count + 1), count, p) for count, p in ((ones, 1 - flip), (zeros, flip))))
    p, q = (np.convolve(law, binom.pmf(np.arange(width + 1), width, chance)) for chance in (flip, 1 - flip))
    # The tolerance is for the rounding errors of these sums.
    return np.log(np.maximum(p - np.exp(EPS)[:, None] * q, 0).sum(axis=1)) - 1e-9


def blocks_of(profile):
    return profile.describe().attained.blocks()


@pytest.mark.parametrize(("flip", "bits"), thinned([(0.25, 1), (0.25, 2), (0.1, 15), (0.01, 1501)], 2))
def test_every_number_of_ones_is_below_a_block(flip, bits):
    protocol = ShuffledBits(bits + 1, flip)
    blocks = blocks_of(protocol)
    rows = blocks.rows(EPS)
    assert rows.shape == (blocks.count, EPS.size)
    # Blocks are ordered by the number of ones: a dataset and its complement are in blocks at the same distance from the ends.
    for ones in {0, bits // 100, bits // 7, (bits - 1) // 2}:
        below = [log_delta(m, bits - m, 1, flip) for m in (ones, bits - ones)]
        assert any((below[0] <= row).all() and (below[1] <= other).all() for row, other in zip(rows, rows[::-1]))
    for at, ones in ((0, 0), (-1, bits)):
        assert (log_delta(ones, bits - ones, 1, flip) <= rows[at]).all()
    np.testing.assert_allclose(rows.max(axis=0), protocol.log_delta(EPS), atol=1e-2)


def test_several_bits_of_a_target():
    rows = blocks_of(ShuffledBits(403, 0.1).for_group(3)).rows(EPS)
    for ones in (0, 37, 200, 399):
        assert (log_delta(ones, 400 - ones, 3, 0.1) <= rows.max(axis=0)).all()
    assert (log_delta(0, 400, 3, 0.1) <= rows[0]).all()
    assert (log_delta(400, 0, 3, 0.1) <= rows[-1]).all()


@pytest.mark.parametrize("protocol", [ShuffledBits(1, 0.1), ShuffledBits(11, 0.5), ShuffledBits(10**9 + 1, 0.25)], ids=repr)
def test_no_blocks_if_they_are_useless_or_take_long(protocol):
    assert blocks_of(protocol) is None
