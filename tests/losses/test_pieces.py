"""Integrals of e^(power t) delta(t) between neighbouring samples, against their closed form in high precision."""

import numpy as np
import pytest
from mpmath import exp, expm1, mp, mpf

from shufflebounds._losses.sampled_profile import _pieces
from tests.strategies import thinned

STEEPEST = 8.0
"""Largest change of the log of an integrand over an interval on which the rule is used."""


def exponential(rate, width):
    return expm1(rate * width) / rate if rate else width


def integral(power, width, first, last):
    """Return the integral of e^(power t) times the line in e^t through (0, first) and (width, last)."""
    slope = (last - first) / expm1(width)
    return (first - slope) * exponential(power, width) + slope * exponential(power + 1, width)


@pytest.mark.parametrize("power", thinned(
    [-200.0, -20.0, -4.0, -2.0, -1.5, -1.0, -0.75, -0.5, 0.0, 0.25, 1.0, 2.0, 3.0, 20.0, 199.0], 3))
def test_the_quadrature_is_accurate_where_it_is_used(power):
    for share in [1e-3, 0.3, 0.7, 1.0]:
        for fall in [0.0, 0.1, 3.0, 30.0]:
            with mp.workdps(60):
                # The widest interval with this power that is not called coarse.
                width = next(w for w in STEEPEST * share / np.array([1.0, max(abs(power), 1.0), max(abs(power), abs(power + 1))])
                             if not _pieces(np.array([0.0, w]), np.array([-1.0, -1.0]), power)[1][0])
                found, _ = _pieces(np.array([0.0, width]), np.array([-1.0, -1.0 - fall]), power)
                exact = integral(mpf(power), mpf(float(width)), exp(mpf(-1)), exp(mpf(-1.0 - fall)))
                assert abs(exp(mpf(float(found[0]))) / exact - 1) < 1e-14


@pytest.mark.parametrize("power", thinned([-0.5, 0.0, -1.0, 1.0, 7.0, -40.0], 3))
@pytest.mark.parametrize("share", [0.2, 1.0])
def test_the_error_of_the_rule_is_at_most_the_proved_one(power, share):
    flint = pytest.importorskip("flint")
    rate, middle, axis = max(abs(power), abs(power + 1)), abs(power + 0.5), (12 + 1 / 12) / 2
    with mp.workdps(60), flint.ctx.workprec(300):
        width, p = mpf(STEEPEST * share / rate), mpf(power)
        nodes = [flint.arb.legendre_p_root(12, k, weight=True) for k in range(12)]
        rule = [[mpf(part.mid().str(60, radius=False)) for part in pair] for pair in nodes]
        proved = 2.01 * 12.0**-24 / (1 - 12.0**-2) * (1 + axis) * exp(axis * rate * width / 2 + width / 4 + middle * width / 6)
        assert proved < 4e-13
        for first, last in ((mpf(1), mpf(0)), (mpf(0), mpf(1)), (mpf(1), mpf(0.01))):
            places = [(width * (1 + x) / 2, weight * width / 2) for x, weight in rule]
            found = sum(weight * exp(p * t) * (first + (last - first) * expm1(t) / expm1(width)) for t, weight in places)
            assert abs(found / integral(p, width, first, last) - 1) < proved


def test_wide_intervals_are_coarse():
    for power in (-3.0, -0.5, 0.0, 1.0, 4.0):
        rate = max(abs(power), abs(power + 1))
        for width, coarse in ((7.9 / rate, False), (8.1 / rate, True)):
            assert _pieces(np.array([0.0, width]), np.array([-1.0, -2.0]), power)[1][0] == coarse
