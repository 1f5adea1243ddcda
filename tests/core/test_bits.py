"""The divergence of two independent sums of bits, against exact sums over all pairs of outcomes."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds._core import _bits
from shufflebounds.shuffle import ShuffledBits
from tests.oracles import log_odds, logarithm, rational, tails_of_bits
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


def tail_arguments(flip, eps, gap):
    """Return the arguments of the kernel of tails after the numbers of ones and zeros."""
    return (flip, 1 - flip), (1 - flip, flip), eps, gap


@pytest.mark.parametrize("flip", [1e-7, 0.01, 0.25, 0.4375, 0.5 - 1e-9])
@pytest.mark.parametrize("share", [1e-12, 1e-5, 0.1, 0.45, 0.9, 1 - 1e-9])
def test_tails_of_every_dataset(flip, share):
    budget = log_odds(flip)
    eps = share * float(budget)
    for others in (0, 1, 6, 11):
        exact, further = tails_of_bits(others, flip, eps)
        logs = [logarithm(value) for value in exact]
        ones = np.arange(others + 1.0)
        lower, upper, last, beyond = _bits.bits_log_tails(ones, others - ones, *tail_arguments(flip, eps, float(budget - eps)))
        assert all(low <= log <= high and high - low < 1e-12 * (1 + abs(log)) for low, log, high in zip(lower, logs, upper))
        # At eps near the budget, the probability of the next sum is computed from an absolute error.
        assert all(logarithm(value) <= high < logarithm(value) + (1e-9 if share < 0.95 else math.inf)
                   for value, high in zip(further, beyond))
        assert (np.diff(last) >= 0).all()
        assert (np.diff(last) <= 1).all()


@pytest.mark.parametrize(("flip", "fakes"), [(0.25, 0), (0.49, 0), (1e-3, 0), (0.25, 5000), (0.49, 2000)])
@pytest.mark.parametrize("share", [1e-4, 0.02, 0.3])
def test_blocks_of_datasets(flip, fakes, share):
    """The search evaluates at most about a thousand datasets, the kernel all of them."""
    budget = log_odds(flip)
    eps = share * float(budget)
    users = 3000
    others = users + fakes - 1
    ones = np.arange(others + 1.0)
    ones = ones[(ones < users) | (ones >= fakes)]
    lower, *_ = _bits.bits_log_tails(ones, others - ones, *tail_arguments(flip, eps, float(budget - eps)))
    below, above = (math.log(ShuffledBits(users, flip, fakes=fakes).loss_tail(eps, bound=bound)) for bound in ("lower", "upper"))
    assert below <= lower.max() + 1e-15
    assert lower.max() - 1e-15 <= above <= below + 0.15
