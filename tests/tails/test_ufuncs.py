"""The array interface: the NumPy ufuncs of the kernels."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds import tails

ALL = [tails.binom_logpmf, tails.binom_logcdf, tails.binom_logsf]


@pytest.mark.parametrize("function", ALL)
def test_is_a_ufunc(function):
    assert isinstance(function, np.ufunc)
    assert (function.nin, function.nout) == (3, 1)
    assert function.__name__ in tails.__all__


@pytest.mark.parametrize("function", ALL)
def test_broadcasting(function):
    k, n, p = np.arange(6)[:, None, None], np.array([5, 9])[:, None], np.array([0.25, 0.5, 0.75])
    table = function(k, n, p)
    assert table.shape == (6, 2, 3)
    assert table.dtype == np.float64
    for i in range(6):
        for j in range(2):
            for m in range(3):
                assert table[i, j, m] == function(float(k[i, 0, 0]), float(n[j, 0]), p[m])
    assert function(np.empty(0), 5, 0.5).shape == (0,)
    assert isinstance(function(1, 2, 0.5), np.float64)


@pytest.mark.parametrize("function", ALL)
def test_out_and_where(function):
    k = np.arange(8)
    out = np.full(8, 7.0)
    where = k % 2 == 0
    answer = function(k, 7, 0.5, out=out, where=where)
    assert answer is out
    assert (out[~where] == 7).all()
    assert (out[where] == function(k[where], 7, 0.5)).all()


@pytest.mark.parametrize("function", ALL)
def test_strides_and_byte_order_do_not_matter(function):
    k, p = np.arange(40), np.linspace(0.1, 0.9, 40)
    straight = function(k, 39, p)
    assert (function(k[::-1], 39, p[::-1])[::-1] == straight).all()
    assert (function(np.repeat(k, 3)[::3], 39, np.asfortranarray(p)) == straight).all()
    assert (function(k.astype(">f8"), 39, p.astype(">f8")) == straight).all()
    assert (function(k[:20], 39, p[:20]) == straight[:20]).all()


@given(st.integers(0, 2**53), st.data())
def test_integers_and_floats_agree(n, data):
    k = data.draw(st.integers(0, n))
    p = data.draw(st.floats(0, 1))
    for function in ALL:
        expected = function(float(k), float(n), p)
        assert function(k, n, p) == expected
        assert function(np.int64(k), np.int64(n), np.float64(p)) == expected


def test_against_scipy_where_scipy_is_good():
    rng = np.random.default_rng(3)
    n = rng.integers(10, 2000, 500)
    p = rng.random(500)
    k = np.clip(np.round(n * p + 3 * rng.normal(size=500) * np.sqrt(n * p * (1 - p))), 0, n)
    law = scipy.stats.binom(n, p)
    inner = k < n
    np.testing.assert_allclose(tails.binom_logpmf(k, n, p), law.logpmf(k), rtol=0, atol=2e-10)
    np.testing.assert_allclose(np.exp(tails.binom_logcdf(k, n, p)), law.cdf(k), rtol=1e-11)
    np.testing.assert_allclose(np.exp(tails.binom_logsf(k, n, p))[inner], law.sf(k)[inner], rtol=1e-11)


@pytest.mark.parametrize("n", [10**3, 10**5])
def test_pmf_sums_to_one(n):
    for p in (0.5, 0.01, 1 - 2.0**-10):
        assert abs(math.fsum(np.exp(tails.binom_logpmf(np.arange(n + 1), n, p))) - 1) < 1e-13


@pytest.mark.parametrize(
    ("name", "k", "n", "p", "exact"),
    # For these arguments other double-precision programs fail.
    [
        ("binom_logcdf", 1, 1e15, 1e-12, -993.09125),
        ("binom_logcdf", 9, 1e4, 0.1, -1003.284411),
        ("binom_logcdf", 3100, 1e4, 0.5, -744.62),
    ],
)
def test_arguments_for_which_other_programs_fail(name, k, n, p, exact):
    digits = len(str(exact).split(".")[1])
    assert abs(getattr(tails, name)(k, n, p) - exact) <= 0.5 * 10.0**-digits * 1.01


@pytest.mark.parametrize("function", ALL)
def test_no_text_and_no_complex(function):
    for bad in ("3", None, 1j, object()):
        with pytest.raises(TypeError):
            function(bad, 5, 0.5)
