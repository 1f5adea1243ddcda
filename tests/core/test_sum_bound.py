"""The bound of sums to which distributions are added, and the atoms of cells, against the formulas in mpmath and in NumPy."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds._base.convex_order import rising, rounding_charge, shares, to_nodes
from shufflebounds._core import _cell_sums, _moments, _sum_bound
from tests.strategies import thinned

ERROR, JUMPS, POOL, NODES, SPREAD, SMOOTHING = 1e-12, 60, 7, 40, 6.5, 5e-4


def some_laws(rng, number, heavy=True):
    """Return random distributions with means near 0, as pairs (values, masses); a few values are large and rare."""
    laws = []
    for _ in range(number):
        values, masses = rng.normal(size=9), rng.dirichlet(np.ones(10))[:9]
        values -= masses @ values
        if heavy:
            values[-2:], masses[-2:] = rng.uniform(4, 40, size=2), 10.0 ** rng.uniform(-7, -4, size=2)
        laws.append((values, masses))
    return laws


def packed(laws):
    values, masses = (np.concatenate([law[i] for law in laws]) for i in (0, 1))
    return values, masses, np.log(masses), np.concatenate([[0], np.cumsum([law[0].size for law in laws])]).astype(np.intp)


def bound_of(laws, count, thetas, limit=math.inf):
    return _sum_bound.SumBound(*packed(laws), counts=np.atleast_1d(count).astype(float), thetas=np.array(thetas), limit=limit,
                           smoothing=SMOOTHING, spread=SPREAD, nodes=NODES, jumps=JUMPS, pool=POOL, blur=0.0, error=ERROR)


def light(law, limit):
    """Return the distribution given values of at most `limit`, and the probability of larger values."""
    values, masses = law
    rare = math.fsum(masses[values > limit])
    return (values[values <= limit], masses[values <= limit] / (1 - rare)), rare


def formula(laws, first, count, thetas, limit):
    """Return the log of the bound in the header of _sum_bound.pyx, in mpmath; the variance of the contour is that of `first`."""
    parts = [light(law, limit) for law in laws]
    below, rare = [part[0] for part in parts], max(part[1] for part in parts)
    moments = [(mp.fdot(zip(m, x)), mp.fdot(zip(m, x * x)) - mp.fdot(zip(m, x)) ** 2) for x, m in below]
    start = [light(law, limit)[0] for law in first]
    variance = max(float(m @ x**2 - (m @ x) ** 2) for x, m in start) * count
    best = [_moments.largest(*(packed(below)[i] for i in (0, 2, 3)), np.array([float(count)]), np.array([theta]),
                             2 * math.pi / (SPREAD * math.sqrt(variance)), SMOOTHING * variance, NODES)[0, 0] for theta in thetas]
    gain = max(mp.fdot(zip(m, np.maximum(x, 0))) for x, m in laws)

    def positive(u):
        simple = max((u + count * m + mp.sqrt((u + count * m) ** 2 + count * v)) / 2 for m, v in moments)
        return min(min(mp.exp(mp.mpf(theta) * u + b) for theta, b in zip(thetas, best)), simple)

    top = max(float(x.max()) for x, _ in laws) * (1 + 16 * 2.0**-53)
    edges = [limit * (mp.mpf(top) / limit) ** (mp.mpf(i) / (JUMPS - 1)) for i in range(JUMPS)]
    beyond = [max(mp.fsum(p for v, p in zip(x, m) if v > edge) for x, m in laws) for edge in edges[:-1]] + [mp.mpf(0)]
    least = min(m for m, _ in moments)
    jumps = [edge - least for edge in edges[1:]]
    mass = [(a - b) / rare for a, b in zip([rare, *beyond[1:]], beyond[1:])]
    few = [jumps[min(i + POOL, JUMPS - 1) - 1] for i in range(0, JUMPS - 1, POOL)]
    pooled = [mp.fsum(mass[i : i + POOL]) for i in range(0, JUMPS - 1, POOL)]
    q, expected = 1 - mp.mpf(rare), count * mp.mpf(rare)
    total = positive(mp.mpf(0)) * q**count + expected * q ** (count - 1) * mp.fsum(p * positive(u) for p, u in zip(mass, jumps))
    pairs = itertools.product(zip(pooled, few), repeat=2)
    total += expected**2 / 2 * q ** (count - 2) * mp.fsum(p * r * positive(u + v) for (p, u), (r, v) in pairs)
    total += expected**3 * (positive(mp.mpf(0)) / 6 + mp.fsum(p * u for p, u in zip(mass, jumps)) / 2)
    return min(mp.log(total), mp.log(count * gain))


@pytest.mark.slow
def test_bound_with_large_values_against_the_formula():
    excess = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        laws, count = some_laws(rng, int(rng.integers(1, 4))), int(10 ** rng.uniform(1, 5))
        theta, limit = float(rng.uniform(0.5, 3)) / math.sqrt(count), 3.5
        thetas = [theta, 0.6 * theta]
        # The last distribution has the largest value, so that the edges are those of one call.
        laws.sort(key=lambda law: law[0].max())
        bound = bound_of(laws[-1:], count, thetas, limit)
        for law in laws[:-1]:
            bound.add(*packed([law]))
        with mp.workdps(60):
            excess.append(float(bound.log_sum(0) - formula(laws, laws[-1:], count, thetas, limit)))
    assert min(excess) >= 0
    assert np.median(excess) < 5e-12
    assert max(excess) < 1e-9


@pytest.mark.parametrize("limit", [math.inf, 3.5])
def test_one_call_or_many(limit):
    """Several calls of `add` give the bound of one call; `undo` restores the bound before; `only` keeps one number of users."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        laws, counts = some_laws(rng, 4, limit < math.inf), np.array([1000.0, 990.0])
        laws.sort(key=lambda law: -law[0].max())
        bound = bound_of(laws[:1], counts, [0.03, 0.02] if limit < math.inf else [0.03], limit)
        for law in laws[1:3]:
            assert bound.add(*packed([law])) == bound.log_sum(0)
        known = [bound.log_sum(i) for i in (0, 1)]
        more = bound.add(*packed(laws[3:]))
        assert more >= known[0]
        bound.undo()
        assert [bound.log_sum(i) for i in (0, 1)] == known
        assert bound.add(*packed(laws[3:]), more) == more
        alone = bound.only(1)
        assert alone.log_sum(0) == bound.log_sum(1)
        assert alone.add(*packed(laws)) == pytest.approx(bound.log_sum(1), abs=1e-12)
        larger = [(2 * x, m) for x, m in laws]
        assert alone.add(*packed(larger), more) > more
        alone.undo()
        assert alone.log_sum(0) == pytest.approx(bound.log_sum(1), abs=1e-12)


def test_edges_for_larger_values_are_above_those_before():
    """The bound does not decrease if the edges are spread over a larger range, and exceeds that of one call by little."""
    rng = np.random.default_rng(2)
    for _ in range(20):
        laws = some_laws(rng, 3)
        laws.sort(key=lambda law: law[0].max())
        bound = bound_of(laws[:1], 500, [0.05, 0.02], 3.5)
        found = [bound.log_sum(0), *(bound.add(*packed([law])) for law in laws[1:])]
        assert found == sorted(found)
        together = bound_of(laws[:1], 500, [0.05, 0.02], 3.5).add(*packed(laws[1:]))
        assert together - 1e-12 <= found[-1] < together + 0.1


def test_distributions_without_small_values_and_without_positive_ones():
    values = np.array([9.0, -1.0]), np.array([1.0, 1e-200])
    bound = bound_of([values], 50, [0.1], 3.5)
    assert bound.log_sum(0) == pytest.approx(math.log(450), abs=1e-9)
    nothing = bound_of([(np.array([-1.0, -2.0]), np.array([0.5, 0.5]))], 50, [0.0])
    assert nothing.log_sum(0) == -math.inf


def test_the_tilt_below_a_limit_is_that_of_the_remaining_values():
    rng = np.random.default_rng(4)
    for _ in range(20):
        laws, count = some_laws(rng, 3), float(rng.integers(20, 10**5))
        below = [light(law, 3.5)[0] for law in laws]
        variance = max(float(m @ x**2 - (m @ x) ** 2) for x, m in below)
        values, _, log_mass, starts = packed(below)
        theta, _ = _moments.tilt(values, log_mass, starts, count, SMOOTHING * count * variance, 0.1)
        assert _sum_bound.tilt_below(*packed(laws), 3.5, count, SMOOTHING, 0.1) == pytest.approx(theta, rel=1e-6)


def test_atoms_of_bins():
    rng = np.random.default_rng(5)
    for share in (1.0, 0.3):
        mass, *parts = rng.uniform(0.1, 1, size=(7, 3, 50))
        low_a, mean_a, high_a = np.sort(parts[:3], axis=0)
        low_b, mean_b, high_b = np.sort(parts[3:], axis=0)
        mean_b[:, :5] = low_b[:, :5] = high_b[:, :5] = 0.5
        mean_a[:, :5] = low_a[:, :5] = high_a[:, :5] = 0.25
        tables = np.stack([mass, mean_a, low_a, high_a, mean_b, low_b, high_b])
        values, masses, logs, starts = _sum_bound.bin_atoms(tables, 1.25, 0.75, share, -0.5)
        assert starts.tolist() == [0, values.size // 3, 2 * values.size // 3, values.size]
        assert logs == pytest.approx(np.log(masses), rel=1e-14)
        low, high = low_a * 1.25 - high_b * 0.75, high_a * 1.25 - low_b * 0.75
        part = shares(mean_a * 1.25 - mean_b * 0.75, low, high)
        expected = np.concatenate([mass * (1 - part) * share, mass * part * share], axis=1)
        rows, kept = values.reshape(3, -1), masses.reshape(3, -1)
        assert rows[:, :100] == pytest.approx(np.concatenate([low, high], axis=1), rel=1e-14)
        assert kept[:, :100] == pytest.approx(np.maximum(expected, 1e-290), rel=1e-12)
        if share < 1:
            assert (rows[:, 100] == -0.5).all()
            assert (kept[:, 100] == 1 - share).all()


@pytest.mark.parametrize("seed", thinned(range(20), 2))
def test_atoms_of_products(seed):
    """The mean and the stop-loss transforms of the new distribution are at least those of A B - C, up to what is left out."""
    rng = np.random.default_rng(seed)
    place, mass = np.sort(np.exp(rng.normal(size=12))), rng.dirichlet(np.ones(12))
    first, second, weight = np.exp(rng.normal(size=15)), np.exp(rng.normal(size=15)), rng.dirichlet(np.ones(15))
    left_out, charge = (0.0, 1e-3)[seed % 2], rounding_charge(27)
    found = _sum_bound.product_masses(place, mass, first, second, weight, left_out, 0.7, 0.05, charge)
    (values, masses), beyond = _sum_bound.mixed_atoms(*found[:2], *found[:2], 0.0, 0.7, 0.05), found[2]
    assert 0 <= beyond <= left_out
    assert (np.diff(values) > 0).all()
    assert (masses > 0).all()
    products, both = np.outer(first, place) - second[:, None], np.outer(weight, mass)
    for c in rng.normal(size=20) * 3:
        # X = 0 with the remaining mass.
        found = masses @ np.maximum(values - c, 0) + (1 - masses.sum()) * max(-c, 0)
        assert float((both * np.maximum(products - c, 0)).sum()) - beyond * (1 + 1e-9) <= found + 1e-14 * (1 + abs(c))
    if not left_out:
        assert masses.sum() == pytest.approx(1, abs=1e-14)
        assert masses @ values == pytest.approx(float((both * products).sum()), abs=1e-12)
        nodes = rising(0.7, float(np.abs(values).max()), 0.05)
        total, moment = _cell_sums.cell_sums(place, mass, -second, weight, nodes, True, first)
        expected = to_nodes(total, moment / np.diff(nodes))
        assert np.interp(nodes, values, masses)[expected > 0] == pytest.approx(expected[expected > 0], rel=1e-9)


@pytest.mark.parametrize("seed", thinned(range(20), 2))
def test_mixtures_at_two_factors_are_larger_than_the_distribution_between(seed):
    """A B - f C is linear in f: E (A B - f C - c)_+ is at most that of the mixture of the two factors f around it."""
    rng = np.random.default_rng(seed)
    place, mass = np.sort(np.exp(rng.normal(size=12))), rng.dirichlet(np.ones(12))
    first, second, weight = np.exp(rng.normal(size=15)), np.exp(rng.normal(size=15)), rng.dirichlet(np.ones(15))
    low, high, part = 1.0, 1.5, float(rng.uniform())
    one, two = (_sum_bound.product_masses(place, mass, first, f * second, weight, 0.0, 0.7, 0.05, rounding_charge(27))
                for f in (low, high))
    values, masses = _sum_bound.mixed_atoms(*one[:2], *two[:2], part, 0.7, 0.05)
    products, both = np.outer(first, place) - (low + part * (high - low)) * second[:, None], np.outer(weight, mass)
    assert masses.sum() == pytest.approx(1, abs=1e-14)
    assert masses @ values == pytest.approx(float((both * products).sum()), abs=1e-12)
    for c in rng.normal(size=20) * 3:
        assert float((both * np.maximum(products - c, 0)).sum()) <= masses @ np.maximum(values - c, 0) + 1e-14 * (1 + abs(c))


@pytest.mark.parametrize("seed", thinned(range(20), 2))
def test_a_tail_is_replaced_where_another_one_is_smaller(seed):
    """E(Z - c)_+ is at least every convex function that is at most both others, and is one of them or a line between them."""
    rng = np.random.default_rng(seed)
    values = np.sort(rng.exponential(size=30)) * (1, 4)[seed % 2] - 0.5
    masses, place, tail = rng.dirichlet(np.ones(30)), np.sort(rng.exponential(size=40)), rng.dirichlet(np.ones(40))
    found, kept = _sum_bound.with_tail(values, masses, place, tail, rounding_charge(70))

    def above(x, p, c):
        return np.maximum(x - c[:, None], 0) @ p

    places = np.concatenate([values, place, np.linspace(-12, 12, 99)])
    own, other, new = above(values, masses, places), above(place, tail, places), above(found, kept, places)
    both = np.minimum(own, other)
    # the largest convex function that is at most both, at each place the largest of the lines that are below both
    slopes = -np.linspace(0, 1, 999)
    convex = (slopes[:, None] * places + (both - slopes[:, None] * places).min(axis=1)[:, None]).max(axis=0)
    assert (new >= convex - 1e-12).all()
    assert (new <= np.maximum(own, other) + 1e-12).all()
    assert (np.diff(found) > 0).all()
    assert (kept >= 0).all()
    assert kept.sum() == pytest.approx(1, abs=1e-12)
