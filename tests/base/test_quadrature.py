"""Masses of cells under a normal distribution: against mpmath, and the error bound of the quadrature rule."""

import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds._base.quadrature import log_normal_masses
from tests.strategies import thinned

CELLS = [
    (50.0, 52.5), (6.1, 8.3), (0.0, 25.0), (-4.0, 4.0), (100.0, 100.5), (-1.7, 1.7), (-2.0, 5.0), (-30.0, 0.1), (-1e4, -9e3),
    (-0.01, 0.01), (37.0, 37.02), (3.0, 3.4), (1e6, 1e6 + 1e3), (-4.0, -3.0), (15.0, 15.59), (-1e9, 1e9), (1e-3, 1e9),
]


@pytest.mark.parametrize(("low", "high"), thinned(CELLS, 3))
def test_masses_of_narrow_and_of_wide_cells(low, high):
    with mp.workdps(60):
        a, b = sorted((abs(mp.mpf(low)), abs(mp.mpf(high))))
        one, other = (mp.erfc(x / mp.sqrt(2)) / 2 for x in (a, b))
        exact = float(mp.log(1 - one - other if low < 0 < high else one - other))
    (found,) = log_normal_masses(np.array([low, high]), 0.0, 1.0)
    assert found == pytest.approx(exact, rel=2e-15, abs=2e-15)
    (shifted,) = log_normal_masses(3.0 * np.array([low, high]) + 1.0, 1.0, 3.0)
    assert shifted == pytest.approx(exact, rel=1e-9, abs=1e-9)


def test_masses_of_many_cells_add_up():
    edges = np.concatenate([[-60.0, -20.0], np.linspace(-8, 8, 33), [9.0, 45.0]])
    assert math.fsum(np.exp(log_normal_masses(edges, 0.3, 1.1))) == pytest.approx(1, abs=1e-14)


def test_the_error_bound_of_the_rule():
    """The largest bound over all narrow cells, from the formula of the theorem; the rule in exact arithmetic is within it."""
    flint = pytest.importorskip("flint")
    flint.ctx.prec, before = 160, flint.ctx.prec
    rho = mp.mpf(9)
    a, b = (rho + 1 / rho) / 2, (rho - 1 / rho) / 2
    assert a <= 4.56
    assert b * b / 2 + mp.mpf(1) / 6 <= 10.1
    assert mp.mpf("2.01") * rho**-32 / (1 - rho**-2) * mp.exp(31) < mp.mpf(2) ** -55
    with mp.workdps(50):
        # flint has the nodes and the weights as balls.
        rule = [[mp.mpf(one.mid().str(40, radius=False)) for one in flint.arb.legendre_p_root(16, k, weight=True)]
                for k in range(16)]
        for centre, half in ((mp.mpf(c), mp.mpf(h)) for c, h in ((0, 1.7), (4.5, 1), (60, 0.11), (2, 1.3))):
            assert 4.56 * centre * half + 10.1 * half * half <= 31
            whole = mp.sqrt(2 * mp.pi) / half * (mp.ncdf(half - centre) - mp.ncdf(-half - centre))
            found = sum(w * mp.exp(-((centre + half * x) ** 2) / 2) for x, w in rule)
            assert abs(found / whole - 1) < mp.mpf(2) ** -55
    flint.ctx.prec = before
