"""The largest tail of the loss over all datasets of bits, its kernel, and the bounds of blocks, against exact fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from shufflebounds._core import _bits
from shufflebounds._engines.bits.largest_tail import largest_tails
from shufflebounds.mechanisms import FiniteRandomizer
from shufflebounds.shuffle import ShuffledBits
from tests.oracles import log_odds, logarithm, rational, with_bit
from tests.strategies import slow


def tails(protocol, eps):
    """Return the lower and the upper bounds of the tail of the loss."""
    return [protocol.loss_tail(eps, bound=bound) for bound in ("lower", "upper")]


def exact_tails(others, flip, eps):
    """Return the probability of a loss above eps, target's bit 0 against 1, for each number of ones among the other bits.

    A second list has the same probabilities with those of the next larger sum added.
    """
    q, factor, out, further = Fraction(flip), rational(eps), [], []
    for ones in range(others + 1):
        law = [Fraction(1)]
        for chance in [1 - q] * ones + [q] * (others - ones):
            law = with_bit(law, chance)
        zero, one = with_bit(law, q), with_bit(law, 1 - q)
        count = sum(a > factor * b for a, b in zip(zero, one))
        out.append(sum(zero[:count]))
        further.append(sum(zero[: count + 1]))
    return out, further


@pytest.mark.parametrize("flip", [1e-7, 0.01, 0.25, 0.4375, 0.5 - 1e-9])
@pytest.mark.parametrize("share", [1e-12, 1e-5, 0.1, 0.45, 0.9, 1 - 1e-9])
def test_every_dataset(flip, share):
    # At 1e-12 of the budget, the kernel subtracts two exponentials close to 1.
    budget = log_odds(flip)
    eps = share * float(budget)
    gap = float(budget - eps)
    for others in (0, 1, 6, 11):
        exact, further = exact_tails(others, flip, eps)
        logs = [logarithm(value) for value in exact]
        ones = np.arange(others + 1.0)
        lower, upper, last, beyond = _bits.bits_log_tails(ones, others - ones, *question(flip, eps, gap))
        assert all(low <= log <= high and high - low < 1e-12 * (1 + abs(log)) for low, log, high in zip(lower, logs, upper))
        # At eps near the budget, the probability of the next sum is computed from an absolute error.
        assert all(logarithm(value) <= high < logarithm(value) + (1e-9 if share < 0.95 else math.inf)
                   for value, high in zip(further, beyond))
        assert (np.diff(last) >= 0).all()
        assert (np.diff(last) <= 1).all()
        for fakes in (0, others // 2 + 1):
            users = others + 1 - fakes
            if users < 1:
                continue
            best = max(exact[:users] + exact[fakes:])
            below, above = tails(ShuffledBits(users, flip, fakes=fakes), eps)
            assert below <= best <= above
            assert above - below < 1e-12 * best


def question(flip, eps, gap):
    """Return the arguments of the kernel after the numbers of ones and zeros."""
    return (flip, 1 - flip), (1 - flip, flip), eps, gap


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
    lower, *_ = _bits.bits_log_tails(ones, others - ones, *question(flip, eps, float(budget - eps)))
    below, above = np.log(tails(ShuffledBits(users, flip, fakes=fakes), eps))
    assert below <= lower.max() + 1e-15
    assert lower.max() - 1e-15 <= above <= below + 0.15


@pytest.mark.parametrize("flip", [1e-320, 1e-300, 0.1, 0.5 - 2.0**-54])
def test_extreme_losses(flip):
    eps = np.array([5e-324, 1e-300, 1e-17, 0.1, 36.0, 699.9, 700.1, 733.0, 1e308])
    for users, fakes in ((1, 0), (10, 2**40), (2**53, 0), (2, 2**53 - 2)):
        lower, upper = tails(ShuffledBits(users, flip, fakes=fakes), eps)
        assert (lower >= 0).all()
        assert (lower <= upper).all()
        assert (upper <= 1).all()
        assert (upper[eps > float(log_odds(flip))] == 0).all()
        assert upper[0] > 0.5 - 1e-15 or flip > 0.4


def test_a_rounded_flip_probability():
    """Bounds with an error of the flip probability are valid for each flip probability in this range."""
    eps, error = 0.3, 1e-6
    for flip in (0.1 * (1 - error), 0.1 * (1 + 0.1 * error)):
        exact = max(exact_tails(9, flip, eps)[0])
        lower, upper = largest_tails(10, 0, 0.1, np.array([eps]), error).alone()
        assert lower <= exact <= upper <= (1 + 1e-4) * lower
    assert largest_tails(10, 0, 0.1, np.array([1e-9]), error).alone().upper == 1


@pytest.mark.parametrize(("zero", "one"), [
    (0.2, 0.7), (0.001, 0.96875), slow(0.3, 0.3001), (2.0**-30, 0.25), slow(0.75, 1 - 2.0**-40),
])
def test_two_outputs_with_different_probabilities(zero, one):
    """The upper bound of 2000 users with the rows (.8, .2) and (.3, .7) was 3.4 times the lower one."""
    rows = np.array([[1 - zero, zero], [1 - one, one]])
    chances = Fraction(zero), Fraction(one)
    budget = max(math.log(one / zero), math.log((1 - zero) / (1 - one)))
    for users in (1, 2, 7):
        laws = []
        for ones in range(users):
            law = [Fraction(1)]
            for chance in [chances[1]] * ones + [chances[0]] * (users - 1 - ones):
                law = with_bit(law, chance)
            laws.append([with_bit(law, chance) for chance in chances])
        for share in (0.001, 0.3, 0.8):
            eps, factor = share * budget, rational(share * budget)
            exact = max(sum(a for a, b in zip(p, q) if a > factor * b) for pair in laws for p, q in (pair, pair[::-1]))
            for order in (rows, rows[::-1], rows[:, ::-1]):
                lower, upper = tails(FiniteRandomizer(order).shuffled(users), eps)
                assert lower <= exact <= upper < (1 + 1e-9) * lower


@pytest.mark.parametrize(("chances", "users"), [
    *itertools.product([(1e-296, 1e-122), (1e-300, 0.5), (1e-17, 1 - 1e-16), (1e-320, 1e-310)], [1, 100]),
    slow((1e-320, 1e-310), 2**53),
])
def test_extreme_probabilities_of_two_outputs(chances, users):
    rows = np.array([[1 - chance, chance] for chance in chances])
    budget = math.log(chances[1]) - math.log(chances[0])
    lower, upper = tails(FiniteRandomizer(rows).shuffled(users), budget * np.array([1e-300, 1e-3, 0.5, 0.999, 1.1]))
    assert (lower >= 0).all()
    assert (lower <= upper).all()
    assert (upper <= 1).all()


@pytest.mark.slow
@pytest.mark.parametrize(("zero", "one", "eps"), [(0.2, 0.7, 0.1), (0.2, 0.7, 0.2), (0.002, 0.95, 1.0)])
def test_two_outputs_of_many_users(zero, one, eps):
    users, best = 1200, 0.0
    laws = [[binom.pmf(np.arange(count + 1), count, chance) for count in range(users)] for chance in (zero, one)]
    for ones in range(users):
        law = np.convolve(laws[1][ones], laws[0][users - 1 - ones])
        p, q = (np.convolve(law, [1 - chance, chance]) for chance in (zero, one))
        best = max(best, p[p > math.exp(eps) * q].sum(), q[q > math.exp(eps) * p].sum())
    rows = np.array([[1 - zero, zero], [1 - one, one]])
    lower, upper = tails(FiniteRandomizer(rows).shuffled(users), eps)
    assert (lower, upper) == pytest.approx((best, best), rel=1e-9)
