"""Times of trade-off functions of a million atoms: breakpoints, levels, hull, and hockey-stick divergences at a thousand eps."""

import numpy as np
import pytest
from compared.tradeoff_curves import random_laws

from shufflebounds import Tradeoff
from shufflebounds.tradeoff import hockey_stick

ATOMS = 10**6


@pytest.mark.parametrize("ordered", [True, False])
def test_from_pmfs(benchmark, ordered):
    p, q = random_laws(ATOMS)
    if ordered:
        place = np.argsort(p - q)
        p, q = p[place], q[place]
    assert benchmark(Tradeoff.from_pmfs, p, q).knots[0].size == ATOMS + 1


def test_beta(benchmark):
    curve = Tradeoff.from_pmfs(*random_laws(ATOMS))
    assert benchmark(curve.beta, np.linspace(0, 1, 1001)).shape == (1001,)


def test_hull(benchmark):
    knots = Tradeoff.from_pmfs(*random_laws(ATOMS)).knots
    assert benchmark(lambda: Tradeoff.from_knots(*knots).convex_hull()).knots[0].size > ATOMS / 2


def test_hockey_stick(benchmark):
    p, q = random_laws(ATOMS)
    assert benchmark(hockey_stick, p, q, np.linspace(0, 3, 1000)).shape == (1000,)


def test_epsilon(benchmark):
    curve = Tradeoff.from_pmfs(*random_laws(ATOMS))
    assert benchmark(curve.epsilon, 1e-3) > 0


@pytest.mark.parametrize("eps", [0.0, 1.0])
def test_gaussian_delta(benchmark, eps):
    assert benchmark(Tradeoff.gaussian(0.1).delta, eps) < 1
