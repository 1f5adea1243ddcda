"""Blocks of datasets: the bound of a block is at least delta of all its datasets, and close to the largest."""

import numpy as np
import pytest

from shufflebounds._core import _worst_bits
from shufflebounds._engines.bits.bit_blocks import FINE, _runs, blocks_of_ones
from shufflebounds._engines.bits.given_bits import bit_sides
from tests.strategies import thinned

EPS = np.array([0.0, 0.01, 0.1, 0.5])


def block_of(ones, blocks):
    """Return the index of the block that contains the datasets with this number of ones."""
    return next(i for i, block in enumerate(blocks) if any(first <= ones <= last for first, last in block))


@pytest.mark.parametrize(("flip", "bits"), thinned([(0.25, 1), (0.25, 2), (0.1, 15), (0.01, 3001)], 2))
def test_every_number_of_ones_is_below_its_block_and_its_reverse(flip, bits):
    blocks = blocks_of_ones(bits, 1, flip)
    rows, lower = blocks.rows(EPS), list(_runs(bits, (1 - 2 * flip) / np.sqrt(bits * flip * (1 - flip)), FINE[0]))
    assert rows.shape == (blocks.count, EPS.size)
    for ones in {0, bits // 100, bits // 7, (bits - 1) // 2}:
        i = block_of(ones, lower)
        for row, m in ((rows[i], ones), (rows[-1 - i], bits - ones)):
            low, _ = bit_sides(float(m), float(bits - m), flip, EPS)
            assert (low <= row).all()
    whole = _worst_bits.worst_log_delta(float(bits), 0.0, 1.0, flip, EPS, np.log((1 - flip) / flip) - EPS)
    np.testing.assert_allclose(rows.max(axis=0), whole[1], atol=1e-2)


def test_several_bits_of_a_target():
    rows = blocks_of_ones(400, 3, 0.1).rows(EPS)
    for ones in (0, 37, 200, 399):
        assert (_worst_bits.sum_log_delta(float(ones), 400.0 - ones, 3.0, 0.1, EPS)[0] <= rows.max(axis=0)).all()
    assert (_worst_bits.sum_log_delta(0.0, 400.0, 3.0, 0.1, EPS)[0] <= rows[0]).all()
    assert (_worst_bits.sum_log_delta(400.0, 0.0, 3.0, 0.1, EPS)[0] <= rows[-1]).all()


def test_no_blocks_if_they_are_useless_or_take_long():
    assert blocks_of_ones(0, 1, 0.1) is None
    assert blocks_of_ones(10, 1, 0.5) is None
    assert blocks_of_ones(10**9, 1, 0.25) is None
