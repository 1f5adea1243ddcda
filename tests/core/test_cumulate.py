"""Breakpoints of trade-off functions over several blocks of atoms, against sums in python-flint."""

import numpy as np
import pytest

pytest.importorskip("flint")

from flint import arb, ctx

from shufflebounds._core import _tradeoff
from tests.strategies import thinned

ATOMS = 1300


def sums(log_x):
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
    ctx.prec = 200
    x = CASES[case]
    alpha, rest_alpha, beta, rest_beta = _tradeoff.tradeoff_knots(x, x)
    for got, exact in ((alpha, sums(x)), (rest_alpha[::-1], sums(x[::-1])), (beta[::-1], sums(x[::-1])), (rest_beta, sums(x))):
        for value, ball in zip(got, exact, strict=True):
            if ball is None:
                assert value == -np.inf
            else:
                middle = float(ball.mid())
                assert abs(float((arb(float(value)) - ball).mid())) <= 1.5 * 2.2e-16 * max(1.0, abs(middle))
