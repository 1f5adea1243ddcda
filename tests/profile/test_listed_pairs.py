"""Pairs of enumerated distributions against interval arithmetic: eps close to the pure budget, similar rows, small masses."""

import math
import random

import numpy as np
import pytest
from flint import arb, ctx

from shufflebounds import DominatingPair
from shufflebounds.mechanisms import FiniteRandomizer
from shufflebounds.profile.extend import LossAtoms
from shufflebounds.tradeoff import renyi_divergence
from tests.sampling.test_enumeration import budget
from tests.strategies import thinned

BITS = 2500

NEARLY_EQUAL = [
    [[771 / 1024, 253 / 1024], [772 / 1024, 252 / 1024]],
    [[0.5, 0.5], [0.5 + 2**-45, 0.5 - 2**-45]],
    [[0.3115234375, 0.6884765625], [0.3115234375 - 2**-53, 0.6884765625 + 2**-53]],
    [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]],
    [[2**-60, 1 - 2**-53, 0.0], [2**-61, 1 - 2**-53, 2**-62]],
]


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(BITS):
        yield


def rows_of(matrix):
    return [[arb(x) for x in row] for row in matrix]


def ordered(matrix):
    rows = rows_of(matrix)
    return [(p, q) for p in rows for q in rows if p is not q]


def delta(matrix, eps):
    """Return the exact delta at one eps."""
    factor = arb(eps).exp()
    return max((sum(((a - factor * b).max(arb(0)) for a, b in zip(p, q)), arb(0)) for p, q in ordered(matrix)), key=float)


def renyi(p, q, order):
    """Return the divergence of two rows of positive probabilities."""
    a = arb(order)
    if order == 1:
        return sum((x * (x / y).log() - x + y for x, y in zip(p, q)), arb(0))
    excess = sum(((x * (x / y) ** (a - 1) - a * x - (1 - a) * y) / (a - 1) for x, y in zip(p, q)), arb(0))
    return (1 + (a - 1) * excess).log() / (a - 1)


def two_rows(seed):
    """Return two random rows with probabilities that are multiples of a power of 2; the second one is often close to the first."""
    rng = random.Random(seed)
    unit = 2.0 ** -rng.choice([10, 20, 40, 53])
    count = int(1 / unit)
    first = rng.randrange(1, count)
    second = min(max(first + rng.choice([-2, -1, 1, 2]), 1), count - 1) if rng.random() < 0.5 else rng.randrange(1, count)
    return [[first * unit, (count - first) * unit], [second * unit, (count - second) * unit]]


MATRICES = NEARLY_EQUAL + [two_rows(seed) for seed in range(60)]


@pytest.mark.parametrize("matrix", thinned(MATRICES, 3), ids=range(len(MATRICES)))
def test_the_pure_budget_is_not_below_the_exact_one(matrix):
    """Differences of rounded logarithms were once below the exact loss for half of the nearly equal rows, by up to 5 % of eps."""
    profile, exact = FiniteRandomizer(matrix), budget(ordered(matrix))
    eps = profile.epsilon(0.0)
    if exact == math.inf:
        assert eps == math.inf
        return
    assert exact <= eps <= float(exact) * (1 + 1e-14)
    for at in (eps, np.nextafter(eps, 0.0), eps * (1 - 2**-50), eps * (1 - 2**-30), eps / 2, 0.0):
        low, high, true = profile.delta(at, bound="lower"), profile.delta(at), delta(matrix, at)
        assert low <= true <= high
        if at <= eps * (1 - 2**-30):
            assert high - low <= 1e-5 * high


@pytest.mark.parametrize("matrix", NEARLY_EQUAL[:4])
@pytest.mark.parametrize("order", [1.0, 1 + 2**-52, 2.0, 40.0])
def test_renyi_divergences_of_nearly_equal_rows(matrix, order):
    exact = max((renyi(p, q, order) for p, q in ordered(matrix)), key=float)
    profile = FiniteRandomizer(matrix)
    low, high = profile.rdp(order, bound="lower"), profile.rdp(order)
    assert low <= exact <= high <= low * (1 + 1e-12)


@pytest.mark.parametrize("order", [1.0, 1.000001, 2.0, 3.5])
def test_renyi_divergence_of_masses_below_the_square_root_of_the_least_double(order):
    """A product in the sum underflows, although the divergence does not."""
    log_p, log_q = [-700.0, 0.0], [-700.5, 0.0]
    p, q = ([arb(x).exp() for x in row] for row in (log_p, log_q))
    exact, pair = renyi(p, q, order), DominatingPair.from_pmfs(log_p, log_q)
    assert pair.rdp(order, bound="lower") <= exact <= pair.rdp(order)
    assert renyi_divergence(log_p, log_q, order) == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e-17, 1e-3])
def test_the_hockey_stick_keeps_the_digits_of_small_losses(scale):
    log_p = np.log([0.25, 0.125, 0.5])
    loss = scale * np.array([3.0, 2.0, 1.0])
    eps = scale * np.array([2.5, 1.5, 0.5, 0.0])
    exact = [sum((arb(x).exp() * (1 - (arb(e) - arb(l)).exp()) for x, l in zip(log_p, loss) if l > e), arb(0)).log() for e in eps]
    # The outcomes have exact masses and losses, and P has further outcomes, which add nothing.
    atoms = LossAtoms(log_p[::-1], loss[::-1], -math.inf, -math.inf, -math.inf, 0.0, 0.0)
    lower, upper = atoms.log_delta(eps)
    for low, x, high in zip(lower, exact, upper):
        assert low <= float(x) <= high <= low + 4e-16 * (32 + 4 * abs(low))
