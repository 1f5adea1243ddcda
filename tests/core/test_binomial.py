"""Logarithms of binomial tails against quadrature, exact fractions and identities."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import example, given

from shufflebounds._core import _binomial
from shufflebounds.tails import binom_logcdf, binom_logpmf, binom_logsf
from tests.errors import distance, excess, log_of, reference, relative, spacing, to_decimal
from tests.strategies import binomial_points, thinned

ALLOWED = 3e-14
NEAR_ONE = 1e-13
FUNCTIONS = {"logpmf": binom_logpmf, "logcdf": binom_logcdf, "logsf": binom_logsf}
TAILS = {"logcdf": "logsf", "logsf": "logcdf"}


def failure(name, actual, case):
    """Return by how much the error exceeds the allowed error, at least 0."""
    exact = case[name]
    if name in TAILS and to_decimal(exact) > to_decimal("-0.69"):
        # The allowed error is the rounding error of the smaller tail, plus a few ulp of a result that may be subnormal.
        small = case[TAILS[name]]
        allowed = NEAR_ONE + 4 * (float(spacing(small)) if to_decimal(small).is_finite() else 0)
        return max(0.0, relative(actual, exact, ulps=2) - allowed)
    return max(0.0, excess(actual, exact) - ALLOWED)


@pytest.mark.parametrize("file", ["binomial", "binomial_corners"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_against_quadrature(file, name):
    cases = reference(file)["values"]
    k, n, p = (np.array([c[key] for c in cases], dtype=object) for key in ("k", "n", "p"))
    answers = FUNCTIONS[name](k.astype(float), n.astype(float), np.array([float.fromhex(x) for x in p]))
    wrong = [(c["n"], c["p"], c["k"], c[name], a, f) for c, a in zip(cases, answers) if (f := failure(name, a, c)) > 0]
    assert not wrong, f"{len(wrong)} of {len(cases)}, the worst {max(wrong, key=lambda w: w[-1])}"


def exact_tails(n, p):
    """Return for each k the exact values of Pr[X = k], Pr[X <= k] and Pr[X > k]."""
    pmf = [math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(n + 1)]
    cdf = [sum(pmf[: i + 1]) for i in range(n + 1)]
    return pmf, cdf, [1 - c for c in cdf]


def log_fraction(x):
    """Return log x to 40 digits, or -inf."""
    if x == 0:
        return "-inf"
    if x == 1:
        return 0
    # With 120 digits, 1 - x is exact for the smallest x of this test.
    import mpmath

    with mpmath.workdps(120):
        return mpmath.nstr(mpmath.log(mpmath.mpf(x.numerator) / x.denominator), 40)


@pytest.mark.parametrize("n", thinned(range(13), 2))
def test_small_n_by_enumeration(n):
    for p in [0.5, 0.1, 0.75, 2.0**-30, 1 - 2.0**-30, 1 / 3]:
        exact = exact_tails(n, Fraction(p))
        for k in range(n + 1):
            case = dict(zip(FUNCTIONS, (log_fraction(row[k]) for row in exact)))
            for name, function in FUNCTIONS.items():
                answer = function(k, n, p)
                assert failure(name, answer, case) == 0, (name, k, answer, case[name])


@pytest.mark.parametrize("k", [-math.inf, -1, -0.5, 0, 2.5, 3, 7, 7.5, 8, math.inf])
def test_counts_outside_and_between(k):
    n, p = 7, 0.25
    exact = exact_tails(n, Fraction(p))
    assert binom_logpmf(k, n, p) == (binom_logpmf(int(k), n, p) if k in range(n + 1) else -math.inf)
    if k < 0:
        assert (binom_logcdf(k, n, p), binom_logsf(k, n, p)) == (-math.inf, 0)
    elif k >= n:
        assert (binom_logcdf(k, n, p), binom_logsf(k, n, p)) == (0, -math.inf)
    else:
        whole = math.floor(k)
        assert distance(binom_logcdf(k, n, p), log_fraction(exact[1][whole])) < 1e-14
        assert distance(binom_logsf(k, n, p), log_fraction(exact[2][whole])) < 1e-14


@pytest.mark.parametrize(("n", "p"), [(0, 0.3), (5, 0.0), (5, 1.0), (0, 0.0), (0, 1.0), (2**53, 1.0), (2**53, 0.0)])
def test_degenerate_distributions(n, p):
    atom = n if p == 1 else 0
    for k in {0, 1, n // 2, n}:
        assert binom_logpmf(k, n, p) == (0 if k == atom else -math.inf)
        assert binom_logcdf(k, n, p) == (0 if k >= atom else -math.inf)
        assert binom_logsf(k, n, p) == (0 if k < atom else -math.inf)


@pytest.mark.parametrize(
    ("k", "n", "p"),
    thinned([
        (math.nan, 5, 0.5),
        (1, math.nan, 0.5),
        (1, 5, math.nan),
        (1, 5, -0.1),
        (1, 5, 1.1),
        (1, -1, 0.5),
        (1, 2.5, 0.5),
        (1, 2.0**53 + 2, 0.5),
        (1, math.inf, 0.5),
        (1, 5, -5e-324),
        (1, 5, math.inf),
    ], 2),
)
@pytest.mark.parametrize("function", FUNCTIONS.values())
def test_nan_outside_the_domain(function, k, n, p):
    assert math.isnan(function(k, n, p))


@given(binomial_points())
@example((2**52, 2**53, 0.5))
def test_tails_are_complements(case):
    k, n, p = case
    low, high = binom_logcdf(k, n, p), binom_logsf(k, n, p)
    assert low <= 0
    assert high <= 0
    assert abs(math.exp(low) + math.exp(high) - 1) < 1e-13


@given(binomial_points())
def test_reflection_of_k_and_p(case):
    k, n, p = case
    pmf, mirrored = binom_logpmf(k, n, p), binom_logpmf(n - k, n, 1 - p)
    assert abs(pmf - mirrored) <= 2 * ALLOWED + 8 * math.ulp(pmf)
    low, high = binom_logcdf(k, n, p), binom_logsf(n - k - 1, n, 1 - p)
    if low > -0.69:
        small = binom_logsf(k, n, p)
        assert abs(low - high) <= abs(low) * (2 * NEAR_ONE + 8 * (math.ulp(small) if small > -math.inf else 0)) + 1e-322
    else:
        assert abs(low - high) <= 2 * ALLOWED + 8 * math.ulp(low)


@given(binomial_points())
def test_monotone_in_k_and_above_the_pmf(case):
    k, n, p = case
    pmf, low, high = binom_logpmf(k, n, p), binom_logcdf(k, n, p), binom_logsf(k - 1, n, p)
    slack = 4 * ALLOWED + 16 * math.ulp(pmf)
    assert low >= pmf - slack
    assert high >= pmf - slack
    if k < n:
        assert binom_logcdf(k + 1, n, p) >= low - slack
        assert binom_logsf(k, n, p) <= high + slack


@given(binomial_points())
def test_pmf_is_the_step_of_the_cdf(case):
    k, n, p = case
    pmf, before, at = binom_logpmf(k, n, p), binom_logcdf(k - 1, n, p), binom_logcdf(k, n, p)
    # The tolerance is relative to the largest of the three probabilities, plus a few ulp of the logarithms.
    scale = 1e-13 + 16 * math.ulp(at)
    assert abs(math.exp(before - at) + math.exp(pmf - at) - 1) < scale


SHIFT_FIELDS = {"H_{e^eps}(Bin||Bin+1)": 0.0, "H_{e^eps}(Bin+1||Bin)": 1.0}


def test_shift_by_one_reference():
    cases = [v for v in reference("shuffled-bits") if v["quantity"] in SHIFT_FIELDS]
    assert len(cases) == 9
    for v in cases:
        prob, eps = v["params"]["gamma"], v["params"]["eps"]
        value, error = _binomial.shift_log_delta(v["params"]["n"], float(prob), float(eps), SHIFT_FIELDS[v["quantity"]])
        # The reference parameters are decimal fractions. Rounding them to doubles changes log delta by at most n times their
        # rounding error.
        assert 0 < error < 1e-10
        assert distance(value, log_of(v["value"])) < error + 1e-11, v["id"]


@pytest.mark.parametrize("n", [2**53, 2**53 - 1, 2**50])
@pytest.mark.parametrize("p", [1e-12, 1e-13, 3.3e-13, 1 - 1e-12, 1 - 2.0**-43])
def test_the_threshold_of_a_shift_is_not_rounded(n, p):
    """Both divergences at eps = 0 are the total variation distance; a threshold next to the right one is smaller by up to 2e-3."""
    forward, backward = (_binomial.shift_log_delta(float(n), p, 0.0, reverse) for reverse in (0.0, 1.0))
    assert distance(forward[0], backward[0]) < forward[1] + backward[1]
    # The divergences end with the same terms if p is replaced by 1 - p, which is exact here for p above 1/2.
    if p > 0.5:
        for eps in (1e-6, 1e-4):
            mirrored = _binomial.shift_log_delta(float(n), 1 - p, eps, 0.0)[0]
            assert _binomial.shift_log_delta(float(n), p, eps, 1.0)[0] == pytest.approx(mirrored, abs=1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 11, 40])
@pytest.mark.parametrize("p", [0.5, 0.75, 0.999, 1 - 2.0**-20, 1 - 2.0**-50, 3e-15])
def test_a_shift_next_to_a_privacy_loss_is_bounded(n, p):
    """Next to a loss, rounding may omit an outcome whose mass is far above delta."""
    with mp.workdps(80):
        law = [mp.binomial(n, k) * mp.mpf(p) ** k * (1 - mp.mpf(p)) ** (n - k) for k in range(n + 1)]
        for reverse in (0.0, 1.0):
            # In both orders the impossible outcome comes first.
            first = law[::-1] if reverse else law
            for k in range(1, n + 1):
                asked = float(mp.log(first[k] / first[k - 1]))
                for _ in range(4):
                    if 0 < asked < 690:
                        e = mp.exp(mp.mpf(asked))
                        exact = mp.log(first[0] + mp.fsum(max(x - e * y, 0) for x, y in zip(first[1:], first)))
                        value, error = _binomial.shift_log_delta(float(n), p, asked, reverse)
                        assert value - error <= exact <= value + error, (k, asked)
                    asked = math.nextafter(asked, 0)


def test_tails_in_blocks_have_the_bits_of_one_alone():
    rng = np.random.default_rng(11)
    n = np.floor(10 ** rng.uniform(0, 7, 700))
    p = np.concatenate([rng.random(500), 10 ** rng.uniform(-300, 0, 200)])
    k = np.round(n * p + rng.normal(size=n.size) * 4 * np.sqrt(n * p * (1 - p)))
    # Some elements are outside of the range of the vector code and are left to the scalar kernel.
    k[::7], n[::11], p[::13] = np.nan, -1, 2
    for tail in (binom_logcdf, binom_logsf):
        alone = np.array([tail(*x) for x in zip(k, n, p, strict=True)])
        for order in (np.arange(n.size), rng.permutation(n.size)):
            assert np.array_equal(tail(k[order], n[order], p[order]), alone[order], equal_nan=True)
        assert np.array_equal(tail(k[::-3], n[::-3], p[::-3]), alone[::-3], equal_nan=True)
