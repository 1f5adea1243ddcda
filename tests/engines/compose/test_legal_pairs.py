"""Compositions of extreme pairs: all mass or no mass at infinite loss, rows that are equal up to 1e-12, and tiny masses."""

import itertools
import math

import mpmath
import numpy as np
import pytest

from shufflebounds import DominatingPair
from shufflebounds.mechanisms import FiniteRandomizer, RandomizedResponse, Rappor
from shufflebounds.shuffle import Shuffled, ZeroSum

CERTAIN = FiniteRandomizer([[0.5, 0.25, 0.25], [1, 0, 0], [0.25, 0.25, 0.5]])
NOISY = FiniteRandomizer([[0.125, 0.875], [0.0625, 0.9375]])


def adaptive(first, second, eps):
    """Return the largest divergence of two releases over all adaptive choices of an ordered pair of rows."""
    factor = math.exp(eps)

    def best(rows, p, q):
        return max(float(np.maximum(p * a - factor * q * b, 0).sum()) for a, b in itertools.permutations(rows, 2))

    one, two = (np.array(randomizer.matrix) for randomizer in (first, second))
    orders = [
        max(sum(best(rows, float(p), float(q)) for p, q in zip(a, b)) for a, b in itertools.permutations(other, 2))
        for other, rows in ((one, two), (two, one))
    ]
    return max(orders)


@pytest.mark.parametrize(("first", "second"), [
    (CERTAIN, NOISY), (NOISY, CERTAIN), (CERTAIN, CERTAIN),
    (FiniteRandomizer([[1, 0], [0, 1]]), NOISY), (FiniteRandomizer([[0.5, 0.5], [0.5, 0.5]]), NOISY),
    (FiniteRandomizer([[0, 0, 1.0], [0, 0.25, 0.75], [0.5, 0.375, 0.125]]), NOISY),
])
def test_two_matrices_with_certain_outputs(first, second):
    both = first.compose(second)
    for eps in (0.0, 0.1, 0.8, 3.5, 709.0):
        exact = adaptive(first, second, eps)
        assert both.delta(eps, bound="lower") <= exact * (1 + 1e-9) + 1e-15
        assert exact <= both.delta(eps) * (1 + 1e-9) + 1e-15


@pytest.mark.slow
def test_what_is_certain_in_the_shuffler_composes():
    # With two users, an output that only one input can produce identifies the target's message.
    shuffled = Shuffled(FiniteRandomizer([[1.0, 0], [0, 1], [1, 0]]), 2)
    assert FiniteRandomizer([[0.625, 0.375], [0.375, 0.625]]).compose(shuffled).delta(0.1) == 1.0
    alone = Shuffled(FiniteRandomizer([[62 / 64, 2 / 64], [19 / 64, 45 / 64]]), 1, 0.25)
    matrix = FiniteRandomizer([[0, 0, 1.0], [0, 381626 / 2**20, 666950 / 2**20], [524210 / 2**20, 387388 / 2**20, 136978 / 2**20]])
    both = matrix.compose(alone)
    sent = FiniteRandomizer([[0.25 * 62 / 64, 0.25 * 2 / 64, 0.75], [0.25 * 19 / 64, 0.25 * 45 / 64, 0.75]])
    exact = adaptive(matrix, sent, 3.5)
    assert both.delta(3.5, bound="lower") <= exact * (1 + 1e-9)
    assert exact <= both.delta(3.5) * (1 + 1e-9)


@pytest.mark.parametrize("power", [45, 50])
def test_nearly_equal_rows_compose_to_nearly_nothing(power):
    gap = 2.0**-power
    coin = FiniteRandomizer([[0.5, 0.5], [0.5 + gap, 0.5 - gap]])
    twice = coin.self_compose(2)
    # For one release, P - Q is (-gap, gap). So delta(0) of two releases is between gap and twice gap.
    assert gap * (1 - 1e-12) <= twice.delta(0.0) <= 2 * gap + 1e-13
    assert twice.delta(0.0, bound="lower") >= gap * (1 - 1e-12)
    assert Shuffled(coin, 2).self_compose(2).delta(0.0) <= 1e-9


@pytest.mark.parametrize("tiny", [1e-100, 1e-300, 1e-320, 0.0])
def test_outcomes_of_tiny_mass_are_listed(tiny):
    rare = 1e-6
    high, low = (1 - rare) * math.e / (1 + math.e), (1 - rare) / (1 + math.e)
    with np.errstate(divide="ignore"):
        pair = DominatingPair.from_pmfs(np.log([rare, high, low, tiny]), np.log([tiny, low, high, rare]))
    many = pair.self_compose(10)
    # The rare outcome reveals the input. Otherwise the loss is 2 k - 10, where k is binomial.
    eps = 4.5
    exact = 1 - (1 - rare) ** 10 + sum(
        (1 - rare) ** 10 * math.comb(10, k) * max(0.0, math.e**k - math.exp(eps) * math.e ** (10 - k)) / (1 + math.e) ** 10
        for k in range(11)
    )
    assert many.delta(eps, bound="lower") == pytest.approx(exact, rel=1e-9)
    assert many.delta(eps) == pytest.approx(exact, rel=1e-9)
    assert many.epsilon(1e-4) == pytest.approx(9.997933792726, rel=1e-9)


@pytest.mark.parametrize(("kinds", "times"), [(2, 40), (3, 12), (4, 5)])
def test_listed_multisets_are_products(kinds, times):
    rng = np.random.default_rng(kinds * 100 + times)
    p, q = rng.dirichlet(np.ones(kinds)), rng.dirichlet(np.ones(kinds))
    many = DominatingPair.from_pmfs(np.log(p), np.log(q)).self_compose(times)
    for eps in (0.0, 1.3, 4.0):
        exact = mpmath.mpf(0)
        for counts in itertools.product(range(times + 1), repeat=kinds - 1):
            if sum(counts) > times:
                continue
            counts = (*counts, times - sum(counts))
            ways = mpmath.factorial(times) / mpmath.fprod(mpmath.factorial(count) for count in counts)
            one, two = (mpmath.fprod(mpmath.mpf(float(x)) ** count for x, count in zip(law, counts)) for law in (p, q))
            exact += ways * max(0, one - mpmath.exp(eps) * two)
        lower, upper = many.log_delta(eps, bound="lower"), many.log_delta(eps)
        assert lower - 1e-13 <= float(mpmath.log(exact)) <= upper + 1e-13
        assert upper - lower < 1e-9


def test_reports_of_tiny_budgets_twice_are_enclosed():
    reports = Rappor(f=0.9999991609802101, p=0.9, q=5.030490237830794e-09, hashes=11)
    twice, eps = reports.self_compose(2), 4.271373447470324e-05
    with mpmath.workdps(50):
        f, p, q = map(mpmath.mpf, (reports.f, reports.p, reports.q))
        one, other = p * (1 - f / 2) + q * f / 2, q * (1 - f / 2) + p * f / 2
        unit = mpmath.log(one * (1 - other) / (other * (1 - one)))

        def binomial(n, x):
            return [mpmath.binomial(n, k) * x**k * (1 - x) ** (n - k) for k in range(n + 1)]

        # The loss is `unit` times the difference of two counts: ones among the bits of the first value, and ones among those of the
        # second value, in both reports.
        first, second = binomial(22, one), binomial(22, other)
        exact = sum(a * b * max(0, 1 - mpmath.exp(eps - unit * (i - j))) for i, a in enumerate(first) for j, b in enumerate(second))
        assert twice.log_delta(eps, bound="lower") <= mpmath.log(exact) <= twice.log_delta(eps)


def test_infinite_losses_are_known_before_anything_is_composed(monkeypatch):
    def refuse(*_):
        raise AssertionError("a composition was formed")

    monkeypatch.setattr("shufflebounds._engines.compose.composer.Composer.bounds", refuse)
    # The mass at infinite loss of one release, 1.6e-5, is above delta.
    many = ZeroSum(54656, 0.00026447).self_compose(30)
    assert many.epsilon(1e-6) == math.inf
    assert many.epsilon(1e-6, bound="lower") == math.inf
    assert RandomizedResponse(1.0).compose(FiniteRandomizer([[1, 0], [0.5, 0.5]])).epsilon(0.25) == math.inf
