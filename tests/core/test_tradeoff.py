"""Kernels of trade-off functions: breakpoints against exact sums, over several blocks of atoms too, and the order of ratios."""

import mpmath
import numpy as np
import pytest

from shufflebounds._core import _tradeoff
from tests.strategies import thinned

ATOMS = 1300


def sums(log_x, arb):
    """Return the logarithms of the cumulated sums of e^log_x, starting with the empty sum, in interval arithmetic."""
    total, out = arb(0), []
    for x in log_x:
        out.append(total.log() if total > 0 else None)
        total += arb(float(x)).exp() if x > -np.inf else 0
    return [*out, total.log()]


rng = np.random.default_rng(3)
place = np.arange(ATOMS)
CASES = {
    "random": rng.normal(-8, 1, ATOMS),
    "rising in every block": -2000 + 1.5 * place,
    "falling": -1.5 * place,
    "a jump inside a block": np.where(place < 700, -900.0, -3.0) + rng.normal(size=ATOMS),
    "normal": -0.5 * ((place - 650) / 1.5) ** 2,
    "no mass at first": np.where(place < 600, -np.inf, -7.0),
    "no mass here and there": np.where(rng.random(ATOMS) < 0.3, -np.inf, rng.normal(-8, 3, ATOMS)),
    "far below": rng.normal(-1e5, 300, ATOMS),
}


@pytest.mark.parametrize("case", thinned(CASES, 2))
def test_sums_over_blocks(case):
    flint = pytest.importorskip("flint")
    x, arb = CASES[case], flint.arb
    with flint.ctx.workprec(200):
        alpha, rest_alpha, beta, rest_beta = _tradeoff.tradeoff_knots(x, x)
        rising, falling = sums(x, arb), sums(x[::-1], arb)
        for got, exact in ((alpha, rising), (rest_alpha[::-1], falling), (beta[::-1], falling), (rest_beta, rising)):
            for value, ball in zip(got, exact, strict=True):
                if ball is None:
                    assert value == -np.inf
                else:
                    middle = float(ball.mid())
                    assert abs(float((arb(float(value)) - ball).mid())) <= 1.5 * 2.2e-16 * max(1.0, abs(middle))


@pytest.mark.slow
@pytest.mark.parametrize("spread", [0.5, 40.0, 1e5])
def test_knots_are_relatively_accurate(spread):
    rng = np.random.default_rng(int(spread))
    a, b = -spread * rng.random(400), -spread * rng.random(400)
    alpha, _, beta, _ = _tradeoff.tradeoff_knots(a, b)
    with mpmath.workdps(40):
        for i in range(1, 400, 7):
            for value, part in ((alpha[i], a[:i]), (beta[i], b[i:])):
                top = max(part)
                exact = mpmath.log(mpmath.fsum(mpmath.exp(mpmath.mpf(x) - mpmath.mpf(top)) for x in part)) + mpmath.mpf(top)
                assert abs(value - exact) <= 2 * 2.3e-16 * max(1, abs(exact))


def test_order():
    p, q = np.log([0.2, 0.3, 0.5]), np.log([0.5, 0.3, 0.2])
    assert _tradeoff.ratio_order(p, q) == 1
    assert _tradeoff.ratio_order(q, p) == -1
    assert _tradeoff.ratio_order(p[[0, 2, 1]], q[[0, 2, 1]]) == 0
    assert _tradeoff.ratio_order(p[:0], q[:0]) == 1
    assert _tradeoff.ratio_order(np.array([-np.inf, -1.0]), np.array([-1.0, -np.inf])) == 1


@pytest.mark.parametrize("size", [0, 1, 2, 7, 5000])
def test_sort(size):
    rng = np.random.default_rng(size)
    p = rng.standard_normal(size) * 10.0 ** rng.integers(-300, 5, size)
    q = np.where(rng.random(size) < 0.5, 0.0, -p)
    p[rng.random(size) < 0.1] = -np.inf
    q[(rng.random(size) < 0.1) & (p > -np.inf)] = -np.inf
    q[(p == -np.inf) & (q == -np.inf)] = 0.0
    np.testing.assert_array_equal(_tradeoff.ratio_argsort(p, q), np.argsort(p - q, kind="stable"))


@pytest.mark.parametrize("size", [1, 2, 1000, 30000])
def test_order_of_ratios_that_agree_in_many_digits(size):
    rng = np.random.default_rng(4)
    whole = np.arange(size, dtype=np.float64)
    for ratio in (
        rng.integers(0, 3, size).astype(float), 1 + rng.integers(0, 2**20, size) * 2.0**-52, 1 + whole[::-1] * 2.0**-52,
        -1 - whole * 2.0**-52, 1 + rng.integers(0, 5, size) * 2.0**-52,
    ):
        np.testing.assert_array_equal(_tradeoff.ratio_argsort(ratio, np.zeros(size)), np.argsort(ratio, kind="stable"))
