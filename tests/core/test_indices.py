"""Conversions of doubles to array indices, for extreme arguments at which kernels once read outside of a table."""

import math

import numpy as np
import pytest

from shufflebounds._core import _binomial, _compound, _losses, _special
from shufflebounds.shuffle import BinomialNoise, ShuffledHistogram, ZeroSum
from tests.strategies import thinned

LOSSES = np.linspace(0, 1500, 100)


@pytest.mark.parametrize("protocol", [BinomialNoise(1001, 1e-307), ShuffledHistogram(1001, 1000, 1e-306), ZeroSum(1001, 1e-306)])
def test_a_probability_close_to_the_smallest_double(protocol):
    upper, lower = protocol.log_delta(LOSSES), protocol.log_delta(LOSSES, bound="lower")
    assert (lower <= upper).all()
    assert (np.diff(upper) <= 1e-15).all()
    # Outcome 0 is possible under one distribution only, where it has a probability close to 1.
    assert lower[-1] > -1e-12


def test_a_shift_where_the_ratio_of_two_counts_overflows():
    for p in (5e-324, 1e-320, 1e-307, 2.0**-830, 1 - 2.0**-53):
        for reverse in (0.0, 1.0):
            value, error = _binomial.shift_log_delta(float(2**53), p, LOSSES, reverse)
            assert not np.isnan(value).any()
            assert not np.isnan(error).any()


def test_tables_at_their_ends():
    assert _special.mills_ratio(5e-324) == pytest.approx(math.sqrt(math.pi / 2), rel=1e-15)
    assert _special.mills_ratio(1.7e308) == pytest.approx(1 / 1.7e308, rel=1e-15)
    assert np.isfinite(_special.stirling_error(np.arange(1.0, 40.0))).all()
    assert _special.stirling_error(1.7e308) >= 0


@pytest.mark.parametrize("rate", thinned([1.0, 0.5, 5e-324, 1 - 2.0**-53], 2))
@pytest.mark.parametrize("u", [0.0, 5e-324, 0.5, 1 - 2.0**-53])
def test_blocks_of_clones_are_not_empty(rate, u):
    # The length of a block of steps is inversely proportional to the change of the log weight in one step, which is 0, finite or
    # infinite here. A block has at least one step.
    lower, upper = _compound.log_sign_excess(100.0, rate, u, 1 - u)
    assert lower <= upper


def test_losses_on_the_ends_of_a_grid():
    loss = np.array([-1.0, 0.3, 1.0])
    log_p = np.log(np.full(3, 1 / 3))
    for place in (_losses.split, _losses.merge):
        out = place(log_p, loss, -1.0, 0.5, 0, 5)
        assert np.exp(out).sum() == pytest.approx(1, rel=1e-12)
