"""A Cython module outside of the package can cimport the installed kernels, with the same results as the ufuncs."""

import shutil
import sys
import sysconfig

import numpy as np
import pytest

from shufflebounds import tails
from shufflebounds._core import _binomial, _bits, _compound, _special
from tests.core.extending import build

compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "win32" and shutil.which(compiler) is None, reason="no C compiler"),
]


@pytest.fixture(scope="module")
def outside(tmp_path_factory):
    pytest.importorskip("Cython")
    return build(tmp_path_factory.mktemp("outside"))


BINOMIAL = [
    (3.0, 10.0, 0.25),
    (0.0, 10.0, 0.25),
    (5e8, 1e9, 0.5),
    (9000.0, 1e4, 0.5),
    (2.0, 1e15, 1e-12),
    (7.0, 7.0, 0.1),
]


@pytest.mark.parametrize("name", ["binom_logpmf", "binom_logcdf", "binom_logsf"])
def test_binomial(outside, name):
    # The ufuncs use vector code (tails.h), whose last bits differ from those of the scalar kernels.
    for point in BINOMIAL:
        assert getattr(outside, name)(*point) == pytest.approx(getattr(_binomial, name)(*point), rel=1e-14, abs=0)


@pytest.mark.parametrize("name", ["log1pmx", "log1mexp", "stirling_error", "mills_ratio", "log_add_exp", "log_sub_exp", "deviance"])
def test_special(outside, name):
    points = {
        "log1pmx": [(-0.9,), (0.01,), (5.0,)],
        "log1mexp": [(-1e-9,), (-3.0,)],
        "stirling_error": [(3.0,), (1e6,)],
        "mills_ratio": [(0.0,), (7.5,)],
        "log_add_exp": [(1.0, 2.0)],
        "log_sub_exp": [(2.0, 1.0)],
        "deviance": [(3.0, 4.0), (9.0, 1.0)],
    }
    for point in points[name]:
        assert getattr(outside, name)(*point) == getattr(_special, name)(*point)


def test_out_parameters(outside):
    assert outside.shift_log_delta(100.0, 0.25, 0.5, False) == _binomial.shift_log_delta(100.0, 0.25, 0.5, 0.0)
    assert outside.shift_log_delta(100.0, 0.25, 0.5, True) == _binomial.shift_log_delta(100.0, 0.25, 0.5, 1.0)
    assert outside.log_sign_excess(1e4, 0.5, 0.125, 0.875) == _compound.log_sign_excess(1e4, 0.5, 0.125, 0.875)
    weights = np.log(np.full(50, 0.02))
    assert outside.log_weighted_excess(3.0, weights, 0.125, 0.875) == _compound.log_weighted_excess(3.0, weights, 0.125, 0.875)


def test_sums_of_independent_bits(outside):
    p, counts = np.array([0.25, 0.5, 0.9]), np.array([100.0, 20.0, 3.0])
    for k in (0.0, 1.0, 35.0, 80.0, 122.0, 123.0):
        above, pmf, error = outside.lattice_log_tail(p, counts, k, True)
        below, _, _ = outside.lattice_log_tail(p, counts, k, False)
        assert pmf == pytest.approx(tails.poisson_binom_logpmf(k, p, counts), rel=1e-12, abs=error + 1e-13)
        assert above == pytest.approx(tails.poisson_binom_logsf(k - 1, p, counts), rel=1e-12, abs=1e-13)
        assert below == pytest.approx(tails.poisson_binom_logcdf(k, p, counts), rel=1e-12, abs=1e-13)
    assert outside.bits_log_delta(p, 1 - p, counts, 0.1, 0.5, 1.7) == _bits.bits_log_delta(p, 1 - p, counts, 0.1, 0.5, 1.7)
    weights = np.log([0.25, 0.75])
    for kind, function in enumerate((tails.compound_binom_logpmf, tails.compound_binom_logcdf, tails.compound_binom_logsf)):
        assert outside.compound_log(kind, 4.0, 9.0, weights, 0.125) == pytest.approx(function(4, 9, weights, 0.125), rel=1e-12)


def test_double_double_logarithm(outside):
    flint = pytest.importorskip("flint")
    old, flint.ctx.prec = flint.ctx.prec, 300
    try:
        rng = np.random.default_rng(2)
        for x, m in np.exp(rng.uniform(-600, 36, (400, 2))):
            hi, lo = outside.log_ratio(x, m, 0.0)
            exact = (flint.arb(x) / flint.arb(m)).log()
            assert abs((flint.arb(hi) + flint.arb(lo) - exact) / exact) < flint.arb(2) ** -66
    finally:
        flint.ctx.prec = old


def test_double_double_deviance(outside):
    flint = pytest.importorskip("flint")
    old, flint.ctx.prec = flint.ctx.prec, 300
    try:
        rng = np.random.default_rng(4)
        for m, share in zip(np.floor(np.exp(rng.uniform(5, 36, 400))), rng.uniform(0.5, 2, 400)):
            x = np.floor(m * share)
            hi, lo = outside.deviance_dd(x, m, 0.0, x - m, 0.0)
            exact = flint.arb(x) * (flint.arb(x) / flint.arb(m)).log() - flint.arb(x) + flint.arb(m)
            if exact > 32:
                assert abs((flint.arb(hi) + flint.arb(lo) - exact) / exact) < flint.arb(2) ** -57
    finally:
        flint.ctx.prec = old


def test_tail_ratio(outside):
    # Pr[X >= j]/Pr[X = j] is computed as an exact sum.
    from fractions import Fraction

    for j, n, p in ((6, 10, 0.5), (3, 12, 0.125), (12, 12, 0.75)):
        term = total = Fraction(1)
        for i in range(j, n):
            term *= Fraction(n - i, i + 1) * Fraction(p) / (1 - Fraction(p))
            total += term
        assert outside.binom_tail_ratio(j, n, p, 0.0, 1 - p, 0.0) == pytest.approx(float(total), rel=3e-15)
