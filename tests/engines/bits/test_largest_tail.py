"""The largest tail of the loss over all datasets of bits, against exact fractions."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from shufflebounds.mechanisms import FiniteRandomizer, RandomizedResponse
from shufflebounds.shuffle import ShuffledBits
from tests.oracles import log_odds, logarithm, rational, tails_of_bits, with_bit
from tests.strategies import slow


def tails(protocol, eps):
    """Return the lower and the upper bounds of the tail of the loss."""
    return [protocol.loss_tail(eps, bound=bound) for bound in ("lower", "upper")]


@pytest.mark.parametrize("flip", [1e-7, 0.01, 0.25, 0.4375, 0.5 - 1e-9])
@pytest.mark.parametrize("share", [1e-12, 1e-5, 0.1, 0.45, 0.9, 1 - 1e-9])
def test_every_dataset(flip, share):
    # At 1e-12 of the budget, the kernel subtracts two exponentials close to 1.
    eps = share * float(log_odds(flip))
    for others in (0, 1, 6, 11):
        exact, _ = tails_of_bits(others, flip, eps)
        for fakes in (0, others // 2 + 1):
            users = others + 1 - fakes
            if users < 1:
                continue
            best = max(exact[:users] + exact[fakes:])
            below, above = tails(ShuffledBits(users, flip, fakes=fakes), eps)
            assert below <= best <= above
            assert above - below < 1e-12 * best


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


@pytest.mark.parametrize("budget", [0.1, 1.0])
def test_a_rounded_flip_probability(budget):
    """The flip probability 1/(e^budget + 1) is no double, and each eps is within an ulp of the loss of an outcome."""
    flip, users = 1 / (1 + rational(budget)), 3
    losses = set()
    for ones in range(users):
        law = [Fraction(1)]
        for chance in [1 - flip] * ones + [flip] * (users - 1 - ones):
            law = with_bit(law, chance)
        losses |= {float(logarithm(a / b)) for a, b in zip(with_bit(law, flip), with_bit(law, 1 - flip))}
    eps = [loss * (1 + step * 2.0**-52) for loss in losses if 1e-3 < loss < 0.99 * budget for step in (-1, 0, 1)]
    protocol = RandomizedResponse(budget).shuffled(users)
    for at, lower, upper in zip(eps, *tails(protocol, np.array(eps))):
        assert lower <= max(tails_of_bits(users - 1, flip, at)[0]) <= upper
    at = 0.3 * budget
    assert tails(protocol, at) == pytest.approx([float(max(tails_of_bits(users - 1, flip, at)[0]))] * 2, rel=1e-11)
    assert protocol.loss_tail(1e-17) == 1


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
