"""Divergences of discrete distributions against mpmath sums and an enumeration of all sets of outcomes."""

import math
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds.tradeoff import hockey_stick, log_hockey_stick, max_divergence, renyi_divergence
from tests.oracles import logs
from tests.strategies import laws

ORDERS = [1e-6, 0.3, 0.5, 0.999, 1 - 1e-12, 1.0, 1 + 1e-12, 1.5, 2.0, 20.0, 1e4]


def exact_renyi(p, q, order):
    """Return the Renyi divergence of two lists of mpf that sum to 1."""
    order = mpmath.mpf(order)
    if any(a and not b for a, b in zip(p, q)) and order >= 1:
        return mpmath.inf
    both = [(a, b) for a, b in zip(p, q) if a and b]
    if order == mpmath.inf:
        return mpmath.log(max(a / b for a, b in both))
    if order == 1:
        return mpmath.fsum(a * mpmath.log(a / b) for a, b in both)
    total = mpmath.fsum(a**order * b ** (1 - order) for a, b in both)
    return mpmath.log(total) / (order - 1) if total else mpmath.inf


@given(laws(), st.sampled_from([*ORDERS, math.inf]))
def test_renyi(pq, order):
    with mpmath.workdps(60):
        p, q = ([mpmath.mpf(x.numerator) / x.denominator for x in law] for law in pq)
        exact = exact_renyi(p, q, order)
    # The logarithms of the masses and their sum are rounded, which matters for nearly equal distributions.
    slack = 2e-15 * max(1, min(order, 1e4))
    assert renyi_divergence(logs(pq[0]), logs(pq[1]), order) == pytest.approx(float(exact), rel=1e-11, abs=slack)


@pytest.mark.parametrize("closeness", [1e-2, 1e-5, 1e-8])
def test_renyi_of_close_laws(closeness):
    # The losses are exact in double precision, q = p e^-loss, so that the masses of q sum to about 1.
    rng = np.random.default_rng(7)
    p = rng.dirichlet(np.ones(50))
    shift = rng.standard_normal(50) * closeness
    shift -= p @ shift
    q = p * (1 + shift)
    with mpmath.workdps(60):
        exact_p, exact_q = ([mpmath.exp(mpmath.mpf(x)) for x in np.log(law)] for law in (p, q))
        total = [mpmath.fsum(law) for law in (exact_p, exact_q)]
        exact_p, exact_q = ([x / t for x in law] for law, t in zip((exact_p, exact_q), total))
        for order in ORDERS:
            exact = float(exact_renyi(exact_p, exact_q, order))
            # The losses are differences of rounded logarithms.
            assert renyi_divergence(np.log(p), np.log(q), order) == pytest.approx(exact, rel=3e-14 / closeness + 1e-12)


def test_renyi_deep():
    p, q = np.array([-1e5, 0.0]), np.array([0.0, -1e5])
    assert renyi_divergence(p, q, [0.5, 1.0, 2.0, 3.0, math.inf]) == pytest.approx([1e5 - 2 * math.log(2), 1e5, 1e5, 1e5, 1e5])
    assert renyi_divergence(q, p, 1e-9) == pytest.approx(1e-9 * 1e5 / (1 - 1e-9), rel=1e-4)


@given(laws(3), laws(3), st.floats(0.05, 50))
def test_renyi_adds_up_and_rises(first, second, order):
    joint = [[a * b for a, b in product(x, y)] for x, y in zip(first, second)]
    parts = [renyi_divergence(logs(a), logs(b), order) for a, b in (first, second)]
    assert renyi_divergence(*map(logs, joint), order) == pytest.approx(sum(parts), rel=1e-9, abs=1e-12)
    grid = np.array([0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 10.0, math.inf])
    value = renyi_divergence(*map(logs, first), grid)
    # Two infinite values in a row are not compared, because inf - inf is NaN.
    assert all(b >= a - 1e-14 - 1e-10 * min(a, 1e300) for a, b in pairwise(value))
    assert (value >= 0).all()


def test_max_divergence_of_sets():
    rng = np.random.default_rng(3)
    for _ in range(20):
        p, q = rng.multinomial(1024, rng.dirichlet(np.ones(6))), rng.multinomial(1024, rng.dirichlet(np.ones(6)))
        p, q = [Fraction(int(x), 1024) for x in p], [Fraction(int(x), 1024) for x in q]
        for delta in (0.0, 2.0**-12, 0.1, 0.4):
            exact = 0.0
            for s in product((0, 1), repeat=6):
                heavy, light = sum(a for a, r in zip(p, s) if r), sum(b for b, r in zip(q, s) if r)
                if heavy > delta:
                    exact = max(exact, math.log((heavy - Fraction(delta)) / light) if light else math.inf)
            value = max_divergence(logs(p), logs(q), delta)
            assert value == pytest.approx(exact, rel=1e-12, abs=1e-12)
            if math.isfinite(value):
                assert value >= exact - 1e-15
                assert hockey_stick(logs(p), logs(q), value) <= delta
    assert max_divergence(np.log([0.5, 0.5]), [0.0, -np.inf], [0.4, 0.5, 0.6]).tolist()[0] == math.inf


def test_hockey_stick_in_logs():
    p, q = [-1e5, 0.0], [0.0, -1e5]
    assert log_hockey_stick(q, p, 1e5 + 1) == -math.inf
    assert log_hockey_stick(p, q, [[0.0], [-1e5 - math.log(2)]]) == pytest.approx(np.array([[0.0], [0.0]]), abs=1e-9)
    assert hockey_stick([0.0, -np.inf], [-np.inf, 0.0], 700.0) == 1
    assert hockey_stick([0.0], [0.0], 0.0) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda p: renyi_divergence(p, p, 0.0), "order=0"),
        (lambda p: renyi_divergence(p, p, [1.0, math.nan]), "order holds nan"),
        (lambda p: renyi_divergence(p, p, "1"), "order='1'"),
        (lambda p: renyi_divergence(p, [0.0, 0.0], 2.0), "log_q sums to"),
        (lambda p: renyi_divergence(p, p, [-math.inf, 2.0]), "order holds -inf"),
        (lambda p: hockey_stick(p, p, math.inf), "eps=inf"),
        (lambda p: hockey_stick(p, p[:1], 0.0), "log_q"),
        (lambda p: max_divergence(p, p, -0.1), "delta=-0.1"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.log([0.5, 0.5]))


def test_many_eps_at_the_loss_of_many_atoms():
    # The call would take minutes if it visited the atoms with equal losses at every eps.
    atoms = 10**5
    log_q = np.full(atoms, -math.log(atoms))
    log_p = log_q + np.where(np.arange(atoms) % 2, 0.5, math.log(2 - math.exp(0.5)))
    eps = np.full(10**6, log_p[1] - log_q[1])
    found = hockey_stick(log_p, log_q, eps)
    assert (found == hockey_stick(log_p, log_q, float(eps[0]))).all()


@pytest.mark.parametrize("order", [1e-16, 1e-17, 1e-100, 1e-300, 5e-324])
def test_orders_near_zero_of_different_supports(order):
    """The divergence of P and Q tends to -log Q(P > 0)."""
    p, q = [math.log(0.25), math.log(0.5), -math.inf, math.log(0.25)], [math.log(0.5), math.log(0.25), math.log(0.25), -math.inf]
    assert renyi_divergence(p, q, order) == pytest.approx(-math.log(0.75), rel=1e-14)
