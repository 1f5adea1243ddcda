"""Decreasing convex functions given by points: hulls against all secants, and supporting lines against known functions."""

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mpf

from shufflebounds.tradeoff import convex
from tests.oracles import logs
from tests.strategies import laws, thinned


@given(st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 3)), min_size=2, max_size=30))
def test_hull_by_all_chords(steps):
    x = np.cumsum([a for a, _ in steps])
    y = -np.cumsum([b for _, b in steps])
    corner, value, fall = convex.hull(x, y)
    assert (corner[0], value[0]) == (x[0], y[0])
    assert abs(value[-1] - y[-1]) < 1e-15
    big_x, big_y = np.exp(x), np.exp(y)
    # The function is constant beyond the last corner.
    assert (np.interp(big_x, np.exp(corner), np.exp(value)) <= big_y * (1 + 1e-12)).all()
    slopes = np.diff(np.exp(value)) / np.diff(np.exp(corner))
    assert (np.diff(slopes) >= -1e-12).all()
    np.testing.assert_allclose(np.exp(fall), -slopes, rtol=1e-9)


def hockey_stick(p, q, eps):
    """Return the sum of max(0, p - e^eps q), each term with an error of an ulp."""
    return np.array([math.fsum(max(0.0, float(a) - math.exp(e) * float(b)) for a, b in zip(p, q)) for e in eps])


@given(laws(), st.sampled_from([0.02, 0.1, 0.7]), st.floats(0, 0.02))
def test_lines_below_a_hockey_stick(pq, step, blur):
    p, q = pq
    x = step * np.arange(-1.0, 40.0)
    value = np.log(np.maximum(hockey_stick(p, q, x), 1e-300))
    low, high = value - blur - 1e-13, value + blur + 1e-13
    gone = value < -600
    low[gone], high[gone] = -np.inf, -500.0
    eps, log = convex.below(x, low, high)
    assert (np.diff(eps) >= 0).all()
    eps, log = convex.distinct(eps, log)
    inside = np.linspace(0, min(eps[-1], 30.0), 301)
    chain = np.interp(np.exp(inside), np.exp(eps), np.exp(log))
    assert (chain <= hockey_stick(p, q, inside) + 1e-12).all()
    assert log[-1] == -np.inf


def test_lines_through_farther_points_are_better_where_the_gap_is_large():
    # The function e^(-5 eps) is known up to 1 % at points that are closer than the gap requires.
    x = 0.002 * np.arange(-1.0, 2000.0)
    inside = np.linspace(0.5, 2, 1001)
    eps, log = convex.below(x, -5 * x - 0.01, -5 * x + 0.01)
    fall = np.log(np.interp(np.exp(inside), np.exp(eps), np.exp(log))) + 5 * inside
    assert (fall < 0).all()
    # With lines through neighbours alone, the bound is down to 1.5 % below.
    assert fall.min() > -0.0115


@pytest.mark.parametrize("kink", [0.31, 0.35, 0.3999])
def test_lines_meet_in_the_kink(kink):
    # The function has two linear pieces in e^eps, and is known exactly at points on either side of the kink.
    x = 0.1 * np.arange(-1.0, 8.0)
    e, k = np.exp(x), math.exp(kink)
    value = np.log(np.where(e < k, 0.1 + (k - e), 0.1 - 0.05 * (e - k)))
    eps, log = convex.below(x, value, value)
    near = np.argmin(np.abs(eps - kink))
    assert eps[near] == pytest.approx(kink, abs=1e-9)
    assert log[near] == pytest.approx(math.log(0.1), abs=1e-9)


@pytest.mark.parametrize("left", [0.0, 1e-3])
@pytest.mark.parametrize("ends", [(940.0,), (1500.0, 3000.0), (2.0, 705.0, 710.0)])
def test_intervals_longer_than_an_exponential(ends, left):
    # The function is linear in e^eps up to the kink at eps = 1, and constant from there on.
    x = np.array([-1.0, 0.0, 0.5, *ends])
    with np.errstate(divide="ignore"):
        value = np.log(left + 0.2 * np.maximum(0.0, -np.expm1(np.minimum(x - 1, 0.0))))
    eps, log = convex.below(x, value, value)
    assert np.isfinite(eps).all()
    assert not np.isnan(log).any()
    assert (np.diff(eps) >= 0).all()
    assert (np.diff(log) <= 0).all()
    inside = np.linspace(0, 1.5, 301)
    chain = np.interp(np.exp(inside), np.exp(np.minimum(eps, 700.0)), np.exp(log))
    exact = left + np.maximum(0.0, 0.2 * (1 - np.exp(inside - 1)))
    assert (chain <= exact + 1e-15).all()
    assert chain == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize("seed", thinned(range(24), 3))
def test_lines_below_random_losses_at_any_distance(seed):
    rng = np.random.default_rng(seed)
    scale = 10 ** rng.uniform(-2, 4)
    loss = np.sort(rng.uniform(0.1, 1, 4)) * scale
    mass = rng.dirichlet(np.ones(4)) * np.exp(-rng.exponential(5, 4))
    x = np.array([-rng.uniform(0.01, 1), 0.0, *np.sort(rng.uniform(0, 1.2, rng.integers(2, 20)) * scale)])
    gap = rng.choice([0.0, 1e-3, 0.1])

    def exact(eps):
        return mpmath.fsum(mpf(p) * -mpmath.expm1(mpf(eps) - mpf(l)) for p, l in zip(mass, loss) if l > eps)

    def at(chain, eps):
        place = int(np.searchsorted(chain[0], eps, side="right")) - 1
        (left, right), (first, last) = ([mpmath.exp(mpf(v)) for v in row[place : place + 2]] for row in chain)
        return first + (last - first) * (mpmath.exp(mpf(eps)) - left) / (right - left)

    with mpmath.workdps(60):
        value = np.array([float(mpmath.log(v)) if (v := exact(eps)) else -np.inf for eps in x])
        low, high = value - gap * rng.uniform(0, 1, x.size), value + gap * rng.uniform(0, 1, x.size)
        low[0], high[0] = -np.inf, high[0] + 1e-15
        # The logarithms of the exact values are rounded outward.
        low, high = low * (1 + 4e-16), np.minimum(high * (1 - 4e-16), 0)
        low[1:] = np.maximum.accumulate(low[:0:-1])[::-1]
        chain = convex.distinct(*convex.below(x, low, np.minimum.accumulate(high)))
        assert chain[1][-1] == -np.inf
        for eps in np.concatenate([np.linspace(0, min(chain[0][-1], 1.1 * scale), 40, endpoint=False), chain[0][:-1]]):
            assert at(chain, eps) <= exact(eps)
        if gap == 0:
            assert all(at(chain, eps) >= mpmath.exp(mpf(v)) * (1 - mpf(2) ** -50) for eps, v in zip(x[1:], low[1:]) if v > -np.inf)


@given(laws())
def test_masses_of_a_law_come_back(pq):
    p, q = (np.array([float(v) for v in law]) for law in pq)
    held = (p > 0) & (q > 0)
    p, q = np.append(p[held], 1 - p[held].sum()), np.append(q[held], 1 - q[held].sum())
    p, q = np.maximum(p, 0), np.maximum(q, 0)
    losses = np.unique(np.concatenate([[0.0], np.array(logs(p[:-1])) - np.array(logs(q[:-1]))]))
    right = np.concatenate([losses[losses >= 0], [20.0]])
    left = np.concatenate([[0.0], -losses[losses < 0][::-1], [20.0]])
    with np.errstate(divide="ignore"):
        chains = [(x, np.log(hockey_stick(*pair, x))) for x, pair in ((right, (p, q)), (left, (q, p)))]
    loss, mass, value = convex.masses(*convex.joined(*chains))
    for e, v in zip(loss, value):
        # Mass beyond the last point counts as infinite loss.
        rest = math.exp(chains[0][1][-1])
        assert rest + hockey_stick(np.exp(mass), np.exp(mass - loss), [e])[0] == pytest.approx(math.exp(v), abs=1e-9)
