"""Masses that are split between the ends of cells or merged to their means, against exact arithmetic in fractions."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from shufflebounds._base.convex_order import (
    grid_spread,
    log_shares,
    log_spread,
    merged,
    merged_sum,
    rising,
    rounding_charge,
    shares,
    spread_sum,
    to_nodes,
)
from shufflebounds._base.types import EXP_SLACK
from shufflebounds._core import _cell_sums
from tests.strategies import thinned


def atoms(count, seed):
    rng = np.random.default_rng(seed)
    values = np.sort(rng.normal(size=count) * np.exp(3 * rng.normal(size=count)))
    mass = np.exp(-5 * rng.exponential(size=count))
    nodes = np.unique(np.concatenate([[values[0], values[-1]], rng.choice(values, 5), values[0] + np.ptp(values) * rng.random(20)]))
    return values, mass, nodes


def spread(values, mass, nodes):
    """Return the masses at the nodes: each mass is split between the two nodes next to its value such that its mean is kept."""
    cell = np.clip(np.searchsorted(nodes, values, side="right") - 1, 0, nodes.size - 2)
    share = shares(values, nodes[cell], nodes[cell + 1])
    return np.bincount(cell, mass * (1 - share), nodes.size) + np.bincount(cell + 1, mass * share, nodes.size)


def stop_loss(values, mass, level):
    """Return the exact sum of mass * (value - level)_+ for doubles."""
    return sum((Fraction(m) * max(Fraction(v) - level, 0) for v, m in zip(values.tolist(), mass.tolist())), Fraction(0))


@pytest.mark.parametrize("seed", thinned(range(4), 2))
def test_the_expected_excess_increases_when_masses_are_spread_and_decreases_when_they_are_merged(seed):
    values, mass, nodes = atoms(300, seed)
    means, total = merged(values, mass, nodes)
    ends = spread(values, mass, nodes)
    # The rounding error is relative to the largest value.
    error = rounding_charge(2 * values.size) * mass.sum() * np.abs(nodes).max()
    for level in np.quantile(values, np.linspace(0.01, 0.99, 15)).tolist():
        exact = stop_loss(values, mass, Fraction(level))
        assert stop_loss(means, total, Fraction(level)) <= exact + Fraction(error)
        assert stop_loss(nodes, ends, Fraction(level)) >= exact - Fraction(error)
    # For a linear function both sums are equal, because the mean is kept.
    below = Fraction(values[0]) - 1
    for at, weight in ((means, total), (nodes, ends)):
        assert abs(stop_loss(at, weight, below) - stop_loss(values, mass, below)) <= error


def test_two_values_in_a_cell():
    nodes = np.array([0.0, 4.0])
    values, mass = np.array([1.0, 3.0]), np.array([0.5, 0.5])
    assert spread(values, mass, nodes).tolist() == [0.5, 0.5]
    means, total = merged(values, mass, nodes)
    assert (means.tolist(), total.tolist()) == ([2.0], [1.0])


def test_a_cell_without_mass_has_its_lower_end_as_mean():
    means, total = merged(np.array([0.5]), np.ones(1), np.array([0.0, 1.0, 2.0]))
    assert (means.tolist(), total.tolist()) == ([0.5, 1.0], [1.0, 0.0])


def test_equal_ends_keep_the_mass_at_one_node():
    nodes = np.array([0.0, 1.0, 1.0, 2.0])
    assert spread(np.array([1.0]), np.ones(1), nodes).sum() == 1.0
    assert shares(np.ones(1), np.ones(1), np.ones(1)).tolist() == [0.0]
    assert log_shares(np.ones(1), np.ones(1), np.ones(1)).tolist() == [0.0]


def test_a_grid_is_the_same_as_its_nodes():
    rng = np.random.default_rng(5)
    places, mass = np.sort(rng.uniform(-7, 9, 400)), rng.random(400)
    found = grid_spread(places, mass, -7.0, 17)
    assert found == pytest.approx(spread(places, mass, np.arange(-7.0, 10.0)), rel=1e-13)
    # The first and the last grid point receive the masses of values that are equal to them.
    assert grid_spread(np.array([-7.0, 9.0]), np.ones(2), -7.0, 17)[[0, -1]].tolist() == [1.0, 1.0]


@pytest.mark.parametrize("seed", range(3))
def test_masses_at_exponentials_keep_their_mean(seed):
    rng = np.random.default_rng(seed)
    levels = np.sort(rng.uniform(-30, 40, 60))
    log_mass = -50 * rng.random(60)
    nodes = np.concatenate([[levels[0]], np.sort(rng.uniform(-30, 40, 12)).clip(levels[0], levels[-1]), [levels[-1]]])
    found = log_spread(levels, log_mass, nodes)
    with mpmath.workdps(40):
        def moments(at, log):
            heights = [(mpmath.exp(x), mpmath.exp(w)) for x, w in zip(at.tolist(), log.tolist())]
            return [sum(w for _, w in heights), sum(w * x for x, w in heights)]

        for exact, rounded in zip(moments(levels, log_mass), moments(nodes, found)):
            assert abs(rounded / exact - 1) < rounding_charge(60) + EXP_SLACK * (50 + 70)


def test_shares_of_exponentials_of_wide_cells_do_not_overflow():
    low, high, level = np.array([-700.0, 0.0]), np.array([800.0, 1e-9]), np.array([750.0, 5e-10])
    with mpmath.workdps(40):
        exact = [(mpmath.exp(x) - mpmath.exp(a)) / (mpmath.exp(b) - mpmath.exp(a)) for a, b, x in zip(low, high, level)]
    assert log_shares(level, low, high) == pytest.approx([float(x) for x in exact], rel=1e-13)


def test_a_sum_is_not_below_the_exact_one_when_a_cell_has_many_terms():
    # A cell receives 3000 x 7 terms, and their rounded sum must not decrease the mean.
    place, jump = np.linspace(1.0, 2.0, 3000), np.linspace(0.0, 0.5, 7)
    mass, prob = np.full(3000, 1 / 3000), np.full(7, 1 / 7)
    nodes = np.array([0.0, 3.0])
    found = spread_sum(place, mass, jump, prob, nodes)
    exact = sum(map(Fraction, place.tolist())) / 3000 + sum(map(Fraction, jump.tolist())) / 7
    assert exact <= 3 * Fraction(float(found[1])) / Fraction(float(found.sum())) <= exact * (1 + Fraction(2, 10**12))


def test_a_sum_whose_factor_and_number_of_places_depend_on_the_jump():
    rng = np.random.default_rng(3)
    place, jump, factor = np.sort(rng.exponential(size=60)), np.sort(rng.normal(size=9)), rng.exponential(size=9)
    mass, prob, used = rng.random(60), rng.random(9), rng.integers(0, 61, 9)
    nodes = np.linspace(-10.0, 80.0, 301)
    total, moment = _cell_sums.cell_sums(place, mass, jump, prob, nodes, True, factor, used)
    found = to_nodes(total, moment / np.diff(nodes))
    pairs = [(factor[j] * place[i] + jump[j], mass[i] * prob[j]) for j in range(9) for i in range(used[j])]
    values, masses = (np.array(part) for part in zip(*pairs))
    np.testing.assert_allclose(found, spread(values, masses, nodes), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", thinned(range(8), 3))
def test_sums_of_values_of_many_orders_of_magnitude(seed):
    """At a node a, E(X + Y - a)_+ is that of the cells, and the two distributions enclose it: exact sums over all pairs."""
    rng = np.random.default_rng(seed)
    # a wide range has most sums in the cell of one of both values, a narrow one nearly none
    farthest, step = [(1e40, 0.3), (1e12, 0.1), (10.0, 0.05), (1e140, 1.0)][seed % 4]
    reach = math.asinh(farthest)
    nodes = rising(1.0, 2 * farthest, step)
    inner = nodes[np.abs(nodes) <= farthest]
    draws = [np.sinh(rng.uniform(-reach, reach, 25)), rng.choice(inner, 25),
             np.append(rng.choice(inner, 16), [0, farthest, -farthest]),
             -(10.0 ** rng.uniform(-300, math.log10(farthest), 25)), 10.0 ** rng.uniform(-20, math.log10(farthest), 25)]
    place, jump = (np.unique(draws[i]) for i in rng.integers(0, 5, 2))
    mass, prob = (rng.dirichlet(np.full(values.size, 0.2)) + 1e-60 for values in (place, jump))
    spread, (where, merged) = spread_sum(place, mass, jump, prob, nodes), merged_sum(place, mass, jump, prob, nodes)
    pairs = [(Fraction(x) + Fraction(y), Fraction(p) * Fraction(q)) for x, p in zip(place.tolist(), mass.tolist())
             for y, q in zip(jump.tolist(), prob.tolist())]
    def exactly(pairs, level):
        return sum((p * (x - level) for x, p in pairs if x > level), Fraction(0))

    above, below = (list(zip(map(Fraction, at.tolist()), map(Fraction, masses.tolist())))
                    for at, masses in ((nodes, spread), (where, merged)))
    for a in map(Fraction, [0.0, *rng.choice(nodes, 6).tolist()]):
        exact = exactly(pairs, a)
        # a charge for the errors of masses, and one for values near `a`, which may be moved over it
        slack = Fraction(1, 10**13)
        moved = Fraction(16, 2**52) * sum(p * (abs(x) + abs(a)) for x, p in pairs if abs(x - a) <= Fraction(1, 10**14) * abs(a))
        assert exactly(below, a) * (1 - slack) <= exact <= exactly(above, a) * (1 + slack)
        assert exactly(above, a) <= exact * (1 + 10 * slack) + moved
        assert exactly(below, a) >= exact * (1 - 10 * slack) - moved


@pytest.mark.parametrize("terms", [1, 30, 10**4])
def test_the_charge_covers_a_sum_of_rounded_products(terms):
    rng = np.random.default_rng(terms)
    log_mass = -300 * rng.random(terms)
    with mpmath.workdps(40):
        exact = mpmath.log(mpmath.fsum(mpmath.exp(x) for x in log_mass.tolist()))
        found = mpmath.mpf(math.log(float(np.bincount(np.zeros(terms, dtype=int), np.exp(log_mass))[0])))
        assert abs(found - exact) <= rounding_charge(terms) + EXP_SLACK * float(abs(exact))
