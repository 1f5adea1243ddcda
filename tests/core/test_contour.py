"""The clone sum by a Fourier integral, against the sum of all its terms by another kernel, and against reference values."""

import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shufflebounds._core import _compound, _contour
from tests.errors import reference


def overlap(a, b):
    return a[0] <= b[1] and b[0] <= a[1]


@given(
    st.floats(3, 6), st.floats(-3, 0) | st.floats(-8, -1).map(lambda x: math.log10(1 - 10**x)),
    st.floats(0, 3) | st.floats(3, 40) | st.just(0.0), st.integers(0, 40),
)
def test_bounds_contain_the_sum(log_users, log_rate, x, peaks):
    n, rate = math.floor(10**log_users), 10**log_rate
    u = x / math.sqrt(n * rate)
    assume(u < 0.5)
    sides = _contour.log_sign_contour(n, rate, u, 1 - u, peaks)
    assume(not math.isnan(sides[0]))
    assert overlap(sides, _compound.log_sign_sweep(n, rate, u, 1 - u))


@given(st.integers(3000, 200_000), st.floats(0.01, 0.9), st.fractions(0, 1, max_denominator=40) | st.floats(0.05, 0.97))
def test_steep_lines(n, rate, u):
    # For a rational u = p/q the integrand has secondary maxima as large as the main one, at t = pi j (see _contour.pyx) for every
    # multiple j of q or of 2 q.
    assume(0 < u < 1)
    u = float(u)
    sides = _contour.log_sign_contour(n, rate, u, 1 - u, 0)
    assume(not math.isnan(sides[0]))
    assert overlap(sides, _compound.log_sign_sweep(n, rate, u, 1 - u))


@pytest.mark.parametrize("q", [3, 8, 20, 63, 500, 20_011])
def test_peaks_at_full_height(q):
    for p in (1, 2):
        for rate in (0.3, 0.999, 1.0):
            swept = _compound.log_sign_sweep(10**5, rate, p / q, 1 - p / q)
            for peaks in (0, 1, 12):
                assert overlap(_contour.log_sign_contour(10**5, rate, p / q, 1 - p / q, peaks), swept)


REFERENCE_CASES = [case for case in reference("clones-and-personalised")
                   if case["quantity"] in ("delta_clone_fmt2021", "delta_clone_fmt2023") and case["params"]["n"] >= 10**5]


@pytest.mark.parametrize("case", REFERENCE_CASES, ids=lambda case: case["id"])
def test_reference_values(case):
    given = case["params"]
    n, eps0, eps = int(given["n"]), float(given["eps0"]), float(given["eps"])
    rate = math.exp(-eps0) if case["quantity"].endswith("2021") else 2 / (math.exp(eps0) + 1)
    u = math.tanh(eps / 2) / math.tanh(eps0 / 2)
    factor = math.log(math.tanh(eps0 / 2) * (1 + math.exp(eps)) / (n * rate))
    exact = math.log(float(case["value"])) - factor
    lower, upper = _contour.log_sign_contour(n, rate, u, 1 - u, 0)
    assert lower - 1e-13 * (1 + abs(exact)) <= exact <= upper + 1e-13 * (1 + abs(exact))
    assert abs((lower + upper) / 2 - exact) < 1e-4


@pytest.mark.parametrize(
    ("n", "u_sigmas", "gap"),
    [(1e7, 3, 8e-12), (1e7, 12, 2e-9), (1e8, 6, 1.5e-12), (1e9, 1, 2e-10),
     (1e12, 0, 1e-11), (1e12, 6, 1e-12), (2.0**53, 37, 4e-11)],
)
def test_gaps_are_those_in_the_header(n, u_sigmas, gap):
    u = u_sigmas / math.sqrt(n * 0.5)
    lower, upper = _contour.log_sign_contour(n, 0.5, u, 1 - u, 0)
    assert 0 < upper - lower < gap


@pytest.mark.parametrize(("u_sigmas", "gain"), [(0.1, 20), (0.5, 1e4), (1.0, 1e3)])
def test_secondary_maxima_narrow_the_gap(u_sigmas, gain):
    u = u_sigmas / math.sqrt(1e9 * 0.5)
    wide, close = (_contour.log_sign_contour(1e9, 0.5, u, 1 - u, peaks) for peaks in (0, 40))
    assert overlap(wide, close)
    assert wide[1] - wide[0] > gain * (close[1] - close[0] - 2e-12)


def test_the_constants_of_the_secondary_maxima_are_large_enough():
    # These inequalities are used in the proof of docs/theorems/contours.md.
    flint = pytest.importorskip("flint")
    arb, pi = flint.arb, flint.arb.pi()
    mean, even, odd = map(arb, _contour.secondary_constants())

    def proven(low, high):
        """Return whether sqrt(2 pi c) e^-c I_0(c) <= mean for low <= c <= high: e^-c I_0(c) decreases."""
        return (2 * pi * arb(high)).sqrt() * (-arb(low)).exp() * arb(low).bessel_i(0) <= mean

    parts = [(0.0, 3.0)]
    while parts:
        low, high = parts.pop()
        if not proven(low, high):
            assert high - low > 1e-3, (low, high)
            parts += [(low, (low + high) / 2), ((low + high) / 2, high)]
    # For c >= 3, e^-c I_0(c) = (2/pi) int_0^1 e^(-2 c v^2)/sqrt(1 - v^2) dv, and 1/sqrt(1 - x) <= 1 + x for x <= .618.
    cut = arb("0.618")
    assert (1 + cut) * (1 - cut).sqrt() >= 1
    c = arb(3)    # both terms beside 1 decrease with c
    assert 1 + 1 / (4 * c) + 2 / pi * (1 - cut).sqrt().asin() * (2 * pi * c).sqrt() * (-2 * cut * c).exp() <= mean
    assert flint.acb(2).zeta(flint.acb(15) / 16).real / (4 * pi**2) <= even
    assert flint.acb(2).zeta(flint.acb(7) / 16).real / (4 * pi**2) <= odd


def test_nan_where_the_method_does_not_apply():
    # If the number of clones or of signs -1 is too small, the result is NaN.
    assert math.isnan(_contour.log_sign_contour(100.0, 0.5, 0.1, 0.9, 0)[0])
    assert math.isnan(_contour.log_sign_contour(1e15, 0.5, 1 - 1e-14, 1e-14, 0)[0])
    for bad in ((0, 0.5, 0.1, 0.9), (1.5e5 + 0.5, 0.5, 0.1, 0.9), (1e6, 0.0, 0.1, 0.9), (1e6, 0.5, 0.1, 0.0),
                (math.nan, 0.5, 0.1, 0.9)):
        assert all(math.isnan(x) for x in _contour.log_sign_contour(*bad, 0))
