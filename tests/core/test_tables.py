"""The file tables.h is exactly the output of its generator, and its entries agree with mpmath at 60 digits."""

import functools
import importlib.util
import re
from fractions import Fraction
from pathlib import Path

import mpmath
import pytest

CORE = Path(__file__).parents[2] / "src" / "_core"

pytestmark = pytest.mark.skipif(not CORE.exists(), reason="needs the source tree")


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("make_tables", CORE / "make_tables.py")
    module = importlib.util.module_from_spec(spec)
    old = mpmath.mp.dps
    spec.loader.exec_module(module)
    # its rows take seconds, and stand in the header
    module.uniform_table = functools.cache(module.uniform_table)
    yield module
    mpmath.mp.dps = old


def array(name):
    text = re.search(rf"static const double {name}\[\d+\] = \{{(.*?)\}};", (CORE / "tables.h").read_text(), re.S)
    return [float(x) for x in text.group(1).replace("\n", " ").split(",") if x.strip()]


@pytest.mark.slow
def test_header_is_what_its_generator_writes(generator):
    assert generator.render() == (CORE / "tables.h").read_text()


def test_logarithms_in_two_parts():
    with mpmath.workdps(60):
        for c, hi, lo in zip(array("LOG_C"), array("LOG_HI"), array("LOG_LO"), strict=True):
            assert abs(mpmath.mpf(hi) + mpmath.mpf(lo) + mpmath.log(mpmath.mpf(c))) < mpmath.mpf(2) ** -106
            assert c * 512 == round(c * 512)


def test_stirling_entries():
    with mpmath.workdps(50):
        for n, value in enumerate(array("STIRLING")[1:], 1):
            exact = mpmath.log(mpmath.factorial(n)) - mpmath.log(mpmath.sqrt(2 * mpmath.pi * n) * (n / mpmath.e) ** n)
            assert value == float(exact)


def test_mills_pieces():
    rows = array("MILLS")
    with mpmath.workdps(40):
        for i in range(1, 32, 3):
            for t in (-0.5, -0.2, 0.1, 0.5):
                y = (mpmath.mpf(i) + 0.5 + mpmath.mpf(t)) / 32
                x = 4 * (1 - y) / y
                exact = mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(x * x / 2) * mpmath.erfc(x / mpmath.sqrt(2)) / y
                value = sum(mpmath.mpf(c) * mpmath.mpf(t) ** d for d, c in enumerate(rows[9 * i : 9 * i + 9]))
                assert abs(value / exact - 1) < 2.5e-16


def test_mills_ratio_near_the_mode():
    row = array("SMALL_MILLS")
    with mpmath.workdps(40):
        for x in (0, 1e-9, 0.3, 1, 2.5, 4, 6.3, 7.99, 8):
            exact = mpmath.sqrt(mpmath.pi / 2) * mpmath.exp(mpmath.mpf(x) ** 2 / 2) * mpmath.erfc(x / mpmath.sqrt(2))
            u = 6 * (8 - mpmath.mpf(x)) / (8 * (6 + mpmath.mpf(x)))
            assert abs(sum(mpmath.mpf(c) * u**d for d, c in enumerate(row)) / exact - 1) < 3e-17
    # Negative coefficients are at most 0.1 % of the sum, so that no terms cancel.
    assert sum(abs(c) for c in row) < 1.001 * sum(row)


def test_stirling_quotient():
    rows = array("STIRLING_P"), array("STIRLING_Q")
    with mpmath.workdps(50):
        for n in [*range(1, 60), 100, 10**3, 10**6, 2**53]:
            n = mpmath.mpf(n)
            exact = mpmath.loggamma(n + 1) - mpmath.log(2 * mpmath.pi * n) / 2 - n * mpmath.log(n) + n
            p, q = (sum(mpmath.mpf(c) * n ** (2 * d) for d, c in enumerate(row)) for row in rows)
            assert abs(p / (n * q) - exact) < 1e-17
    assert min(min(row) for row in rows) > 0


def test_atanh_polynomial():
    with mpmath.workdps(40):
        for w in (1e-6, 0.01, 0.05, 1 / 9):
            exact = (mpmath.atanh(mpmath.sqrt(w)) / mpmath.sqrt(mpmath.mpf(w)) - 1) / mpmath.mpf(w)
            value = sum(mpmath.mpf(c) * mpmath.mpf(w) ** d for d, c in enumerate(array("ATANH")))
            assert abs(value / exact - 1) < 1.5e-16


@pytest.fixture(scope="module")
def uniform_rows(generator):
    return generator.uniform_table()


@pytest.mark.slow
@pytest.mark.parametrize("gamma", [Fraction(0), Fraction(1, 3), Fraction(-9, 10)])
def test_uniform_coefficients_solve_their_equation(uniform_rows, gamma):
    # With e_m the coefficients of the table, y(t) = sum e_m t^(m+1)/(m+1) must satisfy K(y)/(p (1 - p)) = t^2/2, where K is the
    # cumulant generating function of a centred Bernoulli variable of probability p and variance p (1 - p).
    p = (1 - gamma) / 2
    with mpmath.workdps(60):
        e = [sum(c * gamma ** (m % 2 + 2 * i) for i, c in enumerate(row)) for m, row in enumerate(uniform_rows)]
        to_mpf = lambda x: mpmath.mpf(x.numerator) / x.denominator  # noqa: E731
        t = mpmath.mpf("0.001")
        y = sum(to_mpf(c) * t ** (m + 1) / (m + 1) for m, c in enumerate(e))
        p = to_mpf(p)
        cumulant = mpmath.log(1 - p + p * mpmath.exp(y)) - p * y
        assert abs(cumulant / (p * (1 - p)) / (t * t / 2) - 1) < 1e-44
