"""Blocks of datasets: the bound of a block is at least delta of all its datasets, and close to the largest."""

import numpy as np
import pytest

from shufflebounds._core import _worst_bits
from shufflebounds._engines.bits.bit_blocks import blocks_of_ones
from tests.strategies import thinned

EPS = np.array([0.0, 0.01, 0.1, 0.5])


@pytest.mark.parametrize(("flip", "bits"), thinned([(0.25, 1), (0.25, 2), (0.1, 15), (0.01, 3001)], 2))
def test_every_number_of_ones_is_below_a_block(flip, bits):
    blocks = blocks_of_ones(bits, 1, flip)
    rows = blocks.rows(EPS)
    assert rows.shape == (blocks.count, EPS.size)
    # Blocks are ordered by the number of ones: a dataset and its complement are in blocks at the same distance from the ends.
    for ones in {0, bits // 100, bits // 7, (bits - 1) // 2}:
        below = [_worst_bits.sum_log_delta(float(m), float(bits - m), 1.0, flip, EPS)[0] for m in (ones, bits - ones)]
        assert any((below[0] <= row).all() and (below[1] <= other).all() for row, other in zip(rows, rows[::-1]))
    for at, ones in ((0, 0), (-1, bits)):
        assert (_worst_bits.sum_log_delta(float(ones), float(bits - ones), 1.0, flip, EPS)[0] <= rows[at]).all()
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
