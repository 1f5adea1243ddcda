"""The divergence of two independent sums of bits, against exact sums over all pairs of outcomes."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds._core import _bits
from shufflebounds._engines.bits import two_bins as _bin_pair


def masses(ones, zeros, flip):
    """Return the exact probabilities of each number of ones when `ones` bits are 1, `zeros` are 0, and each is flipped."""
    found = [Fraction(1)]
    for one in [1 - flip] * ones + [flip] * zeros:
        found = [a * (1 - one) + b * one for a, b in zip([*found, 0], [0, *found])]
    return found


def pair(ones, zeros, flip):
    """Return the exact distributions of the sum when the target's bit is 0, and when it is 1."""
    return masses(ones, zeros + 1, flip), masses(ones + 1, zeros, flip)


def exact(first, second, flip, more):
    """Return the divergence of two sums by adding all pairs of outcomes; the target's bit is 0 against 1 in both sums."""
    more = Fraction(more)
    (p, q), (r, s) = (pair(*counts, Fraction(flip)) for counts in (first, second))
    return sum(max(Fraction(0), a * c - more * b * d) for a, b in zip(p, q) for c, d in zip(r, s))


@pytest.mark.parametrize(("first", "second"), [((0, 9), (0, 9)), ((3, 6), (9, 0)), ((0, 0), (5, 4)), ((0, 12), (2, 10))])
@pytest.mark.parametrize("flip", [0.0625, 0.375])
@pytest.mark.parametrize("eps", [0.0, 0.75])
def test_two_sums(first, second, flip, eps):
    more = math.exp(eps)
    (p, q), (r, s) = (np.array(pair(*counts, Fraction(flip)), dtype=float) for counts in (first, second))
    below = [np.append(0.0, np.cumsum(side)) for side in (r, s)]
    low, high = _bits.two_sums(p, q, -r / s, *below, more, 1e-13)
    value = float(exact(first, second, flip, more))
    assert low <= value <= high
    assert high - low <= 1e-11 * value + 1e-12


def test_masses_that_underflow_are_passed():
    p, q = np.array([0.0, 0.5, 0.5, 0.0]), np.array([0.0, 0.25, 0.75, 0.0])
    with np.errstate(invalid="ignore"):
        order = -p / q
    below = [np.append(0.0, np.cumsum(side)) for side in (p, q)]
    low, high = _bits.two_sums(p, q, order, *below, 1.0, 1e-15)
    # The masses are (1/4, 1/4, 1/4, 1/4) under P and (1/16, 3/16, 3/16, 9/16) under Q.
    assert low == pytest.approx(5 / 16, rel=1e-12)
    assert high == pytest.approx(5 / 16, rel=1e-12)


@pytest.mark.parametrize("eps", [0.1, 0.7])
def test_tables_of_bins(eps):
    bins = _bin_pair.TwoBins(0.2, eps, -60.0)
    value = float(exact((2, 10), (3, 9), 0.2, math.exp(eps)))
    found = bins.log_delta((2, 10), (3, 9))
    assert found.lower <= math.log(value) <= found.upper
    assert found.upper - found.lower < 1e-9
