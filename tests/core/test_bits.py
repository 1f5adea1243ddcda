"""The divergence of two independent sums of bits, against exact sums over all pairs of outcomes."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds._core import _bits
from shufflebounds._engines.bits import two_bins as _bin_pair
from tests.oracles import log_odds, logarithm, rational
from tests.strategies import thinned


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


def arguments(first, second, flip):
    """Return the first four arguments of the kernel for the other bits of two sums."""
    one, other = (np.array(masses(*counts, Fraction(flip)), dtype=float) for counts in (first, second))
    with np.errstate(divide="ignore"):
        return one, other, np.append(other, 0.0) / np.append(0.0, other), np.append(0.0, np.cumsum(other))


@pytest.mark.parametrize(("first", "second"), thinned(
    [((0, 9), (0, 9)), ((3, 6), (9, 0)), ((0, 0), (5, 4)), ((0, 12), (2, 10))], 2))
@pytest.mark.parametrize("flip", [0.0625, 0.375, 0.5 - 2.0**-20, 0.5 - 2.0**-40, 0.5 - 2.0**-53])
def test_two_sums(first, second, flip):
    for share in [0.0, 0.1, 0.7, 1 - 2.0**-20]:
        budget = log_odds(flip)
        eps = share * float(2 * budget)
        gaps = float(budget - eps), float(2 * budget - eps)
        low, high = _bits.two_sums(*arguments(first, second, flip), flip, eps, *gaps, 1e-13)
        value = exact(first, second, flip, rational(eps))
        assert low <= value <= high
        # the errors are relative to delta at every distance of the flip probability from 1/2
        assert high - low <= 1e-10 * value


def test_masses_that_underflow_are_passed():
    # The masses are (0, 1/2, 1/2, 0); without the zeros the answer is the same.
    law = np.array([0.0, 0.5, 0.5, 0.0])
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.append(law, 0.0) / np.append(0.0, law)
    other = law[1:3], np.array([np.inf, 1.0, 0.0])
    eps, gaps = 0.5, (math.log(3) - 0.5, math.log(9) - 0.5)
    found = [_bits.two_sums(part, part, ratios, np.append(0.0, np.cumsum(part)), 0.25, eps, *gaps, 1e-13)
             for part, ratios in ((law, ratio), other)]
    assert found[0] == pytest.approx(found[1], rel=1e-12)


@pytest.mark.parametrize("eps", [0.1, 0.7])
def test_tables_of_bins(eps):
    bins = _bin_pair.TwoBins(0.2, eps, -60.0)
    value = logarithm(exact((2, 10), (3, 9), 0.2, rational(eps)))
    found = bins.log_delta((2, 10), (3, 9))
    assert found.lower <= value <= found.upper
    assert found.upper - found.lower < 1e-9
