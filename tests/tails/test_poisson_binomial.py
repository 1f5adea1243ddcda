"""The Poisson-binomial distribution against reference values and methods that the library does not use; see tests/reference."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("flint")

from flint import arb, ctx

from shufflebounds._core import _blocks
from shufflebounds.tails import _poisson_tables as tables
from shufflebounds.tails.poisson_binomial import (
    inner_law,
    poisson_binom_logcdf,
    poisson_binom_logpmf,
    poisson_binom_logsf,
    poisson_binom_window,
)
from tests.strategies import slow, thinned

REFERENCE = json.loads((Path(__file__).parents[1] / "reference" / "poisson-binomial.json").read_text())["values"]
FAMILIES = {
    "ramp": lambda i, n: (2 * i + 1) / (2 * n),
    "edge": lambda i, n: np.where(i % 2 == 0, 2.0**-10, 0.25),
    "tiny": lambda i, n: (2 * i + 1) * 2.0**-40,
    "high": lambda i, n: 1 - (2 * i + 1) * 2.0**-30,
    "split": lambda i, n: np.where(i % 2 == 0, (2 * i + 1) * 2.0**-70, 1 - (2 * i + 1) * 2.0**-50),
    "deep": lambda i, n: 2.0 ** -(60.0 + i),
}
WANTED = {"logpmf": poisson_binom_logpmf, "logcdf": poisson_binom_logcdf, "logsf": poisson_binom_logsf}


def law_of(p, counts):
    return inner_law(np.array(p, dtype=float), None if counts is None else np.array(counts, dtype=float))


def window_with_error(p, counts=None, *, log_tail=-50.0):
    """Return the truncated distribution, and a bound of the relative error of every probability in it."""
    return tables.window_of(law_of(p, counts), log_tail)


def tails_with_error(k, p, counts=None):
    """Return log Pr[S = k], log Pr[S <= k] and log Pr[S > k], and a bound of the relative error of all three."""
    inner, multiplicities, shift = law_of(p, counts)
    flat, kinds = np.ravel(k).astype(float) - shift, (tables.Kind.PMF, tables.Kind.LOWER, tables.Kind.UPPER)
    results = [tables.served(inner, multiplicities, flat, kind) for kind in kinds]
    logs, error = [r[0] for r in results], np.max([r[1] for r in results], axis=0)
    return tuple(value.reshape(np.shape(k)) for value in [*logs, error])


def score(got, exact):
    """Return the error of a log probability divided by the allowed error min(1, |log p|) 1e-12 + 8 ulp; it must be below 1."""
    exact = arb(exact)
    size = abs(float(exact))
    if size == math.inf or size == 0:
        return 0.0 if got == float(exact) else math.inf
    error = abs(float(arb(float(got)) - exact))
    return error / (1e-12 * min(1.0, size) + 8 * 2.0**-52 * size) if error < math.inf else math.inf


def exact_law(p, counts=None):
    """Return the probabilities of 0..n as fractions."""
    # The probabilities are whole numbers over a common denominator, so that no product is reduced.
    pmf, denominator = [1], 1
    for x, g in zip(p, [1] * len(p) if counts is None else counts):
        one, whole = float(x).as_integer_ratio()
        for _ in range(int(g)):
            pmf = [a * (whole - one) + b * one for a, b in zip([*pmf, 0], [0, *pmf])]
        denominator *= whole ** int(g)
    return [Fraction(mass, denominator) for mass in pmf]


def exact_log(mass):
    """Return the log of a fraction to 300 bits, computed from its complement if that is smaller."""
    ctx.prec = 300
    if mass == 0:
        return -math.inf
    if mass < Fraction(1, 2):
        return (arb(mass.numerator) / mass.denominator).log()
    rest = 1 - mass
    return (-(arb(rest.numerator) / rest.denominator)).log1p()


def case(value):
    if value["family"] == "two":
        return np.array([float.fromhex(x) for x in value["p"]]), np.array(value["counts"], float)
    return FAMILIES[value["family"]](np.arange(value["n"]), value["n"]), None


@pytest.fixture
def inversion_only(monkeypatch):
    monkeypatch.setattr(tables, "DIRECT_TRIALS", 0)


@pytest.mark.parametrize("value", thinned(REFERENCE, 2), ids=lambda v: v["id"])
def test_reference_one_point(value, inversion_only):
    p, counts = case(value)
    for name in value.keys() & WANTED.keys():
        assert score(WANTED[name](value["k"], p, counts), value[name]) < 0.3, name


@pytest.mark.slow
@pytest.mark.parametrize("direct", [True, False])
def test_reference_many_points(direct, monkeypatch):
    if not direct:
        monkeypatch.setattr(tables, "DIRECT_TRIALS", 0)
    for name, n in {(v["family"], v["n"]) for v in REFERENCE if v["family"] != "two"}:
        values = [v for v in REFERENCE if (v["family"], v["n"]) == (name, n)]
        p, _ = case(values[0])
        results = tails_with_error(np.arange(n + 1), p)
        for v in values:
            for kind, result in zip(("logpmf", "logcdf", "logsf"), results):
                assert score(result[v["k"]], v[kind]) < 1, (v["id"], kind)
                if math.isfinite(result[v["k"]]):
                    error = abs(float(arb(float(result[v["k"]])) - arb(v[kind])))
                    assert error <= results[3][v["k"]] + 2.0**-51 * abs(result[v["k"]]), (v["id"], kind)


def test_reference_window():
    for v in REFERENCE:
        p, counts = case(v)
        log_tail = max(-5000.0, 1.3 * float(v["logpmf"]) - 20)
        if v["n"] > 10**10 or float(v["logpmf"]) < -1000:
            continue
        first, logpmf, error = window_with_error(p, counts, log_tail=log_tail)
        got = logpmf[v["k"] - first]
        assert score(got, v["logpmf"]) < 1, v["id"]
        assert abs(float(arb(float(got)) - arb(v["logpmf"]))) <= error + 2.0**-51 * abs(got), v["id"]


probabilities = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1.0, 0.5, 1e-300, 5e-324, 1 - 2.0**-53, 1e-9, 1 - 1e-9, 0.25]))


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(probabilities, st.integers(0, 4)), min_size=1, max_size=7), st.booleans())
def test_small_laws_against_fractions(law, direct):
    p, counts = (np.array(x, float) for x in zip(*law))
    pmf = exact_law(p, counts)
    n = len(pmf) - 1
    k = np.arange(-1, n + 2)
    saved, tables.DIRECT_TRIALS = tables.DIRECT_TRIALS, tables.DIRECT_TRIALS if direct else 0
    try:
        got = [function(k, p, counts) for function in WANTED.values()]
    finally:
        tables.DIRECT_TRIALS = saved
    for i in range(n + 1):
        exact = (pmf[i], sum(pmf[: i + 1]), sum(pmf[i + 1 :]))
        for value, mass in zip(got, exact):
            reference = exact_log(mass)
            if 0 < abs(float(reference)) < 1e-290:
                continue  # The probability is close to the smallest double.
            assert score(value[i + 1], reference) < 1, (i, value[i + 1], float(reference))
    assert [x[0] for x in got] == [-math.inf, -math.inf, 0.0]
    assert [x[-1] for x in got] == [-math.inf, 0.0, -math.inf]


@pytest.mark.parametrize("n", [10**3, 10**6, 10**9, slow(10**15)])
@pytest.mark.parametrize("p", [0.5, 2.0**-10, 1 - 2.0**-7, 2.0**-33])
def test_one_group_is_the_binomial_law(n, p):
    ctx.prec = 300
    sd = math.sqrt(n * p * (1 - p))
    q = 1 - arb(p)
    for k in {0, 1, 2, n - 2, n - 1, n} | {round(n * p + z * sd) for z in (-40, -6, -1, 0, 0.5, 3, 30, 440)}:
        if not 0 <= k <= n:
            continue
        exact = arb(n + 1).lgamma() - arb(k + 1).lgamma() - arb(n - k + 1).lgamma()
        exact += k * arb(p).log() + (n - k) * q.log()
        assert score(poisson_binom_logpmf(k, [p], [n]), exact) < 0.3 or float(exact) > -0.1
        if float(exact) >= -20:
            continue
        tail, term = arb(0), arb(1)
        upper = k > n * p
        for i in range(20000):  # `tail` becomes Pr[S >= k] or Pr[S <= k], divided by Pr[S = k].
            tail += term
            if not (0 <= k + (i if upper else -i) <= n) or term < 1e-40 * tail:
                break
            j = k + i if upper else k - i
            term = term * (arb(n - j) / (j + 1) * arb(p) / q if upper else arb(j) / (n - j + 1) * q / arb(p))
            term = arb(term.mid())
        if i < 19999:
            got = poisson_binom_logsf(k - 1, [p], [n]) if upper else poisson_binom_logcdf(k, [p], [n])
            assert score(got, exact + tail.log()) < 0.3


@pytest.mark.parametrize("kind", ["uniform", "tiny", "high", "split"])
@pytest.mark.parametrize("n", [2000, 10**4, slow(10**6)])
def test_grouped_and_ungrouped_agree(n, kind):
    rng = np.random.default_rng(n)
    base = {
        "uniform": rng.random(50),
        "tiny": rng.random(50) * 20 / n,
        "high": 1 - rng.random(50) * 1e-3,
        "split": np.concatenate([10 ** rng.uniform(-8, -5, 25), 1 - 10 ** rng.uniform(-7, -4, 25)]),
    }[kind]
    p, counts = np.repeat(base, n // 50), np.full(50, n // 50)
    rng.shuffle(p)
    law = _blocks.PoissonBinomialPMF(p)
    for z in (-200, -20, -1, 0, 2, 30, 300):
        k = round(law.mean + z * math.sqrt(law.var))
        if 0 <= k <= n:
            one, other = tails_with_error(k, p), tails_with_error(k, base, counts)
            for a, b in zip(one[:3], other[:3]):
                assert score(a, float(b)) < 0.5
    first, logpmf, error = window_with_error(p)
    other_first, other, other_error = window_with_error(base, counts)
    assert abs(first - other_first) <= 1
    assert abs(logpmf.size - other.size) <= 2
    low, high = max(first, other_first), min(first + logpmf.size, other_first + other.size)
    gap = np.abs(logpmf[low - first : high - first] - other[low - other_first : high - other_first])
    assert gap.max() <= error + other_error + 1e-13
    assert gap.max() < 2e-12


def test_order_of_p_does_not_matter():
    p = np.random.default_rng(1).random(3000)
    k = np.arange(1300, 1700)
    np.testing.assert_allclose(poisson_binom_logpmf(k, p), poisson_binom_logpmf(k, np.sort(p)), rtol=1e-13)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.integers(1, 3000), st.integers(0, 2**32 - 1), st.floats(-3, 3))
def test_complements_and_symmetry(n, seed, skew):
    p = 1 / (1 + np.exp(-np.random.default_rng(seed).normal(skew, 1.5, n)))
    p = np.round(p * 2**40) / 2**40  # Then 1 - p is exact.
    k = np.arange(n + 1)
    pmf, lower, upper, error = tails_with_error(k, p)
    bound = 2 * error + 1e-14
    assert np.all(np.abs(np.expm1(np.logaddexp(lower, upper))) <= bound)
    mirrored = tails_with_error(n - k, 1 - p)
    assert np.all(np.abs(mirrored[0] - pmf) <= mirrored[3] + bound + 1e-15 * np.abs(pmf))
    after = tails_with_error(n - k - 1, 1 - p)  # The tails satisfy Pr[n - S <= n - k - 1] = Pr[S > k].
    assert after[1][-1] == upper[-1] == -math.inf
    gap = np.abs(after[1][:-1] - upper[:-1])
    assert np.all(gap <= (after[3] + bound)[:-1] + 2e-15 * np.abs(upper[:-1]))
    steps = np.logaddexp(lower[:-1], pmf[1:])
    assert np.all(np.abs(steps - lower[1:]) <= bound[1:] + bound[:-1] + 1e-15 * np.abs(lower[1:]))


def test_window_truncates_at_most_the_stated_mass():
    p = np.random.default_rng(2).random(4000)
    for log_tail in (-1.0, -5.0, -50.0, -400.0):
        first, logpmf = poisson_binom_window(p, log_tail=log_tail)
        last = first + logpmf.size - 1
        assert poisson_binom_logcdf(first - 1, p) <= log_tail < poisson_binom_logcdf(first + 1, p)
        assert poisson_binom_logsf(last, p) <= log_tail < poisson_binom_logsf(last - 2, p)
        np.testing.assert_allclose(logpmf, poisson_binom_logpmf(np.arange(first, last + 1), p), rtol=0, atol=1e-12)


def test_certain_terms_are_shifts():
    p = [0.0, 1.0, 0.3, 1.0, 0.0, 0.6]
    np.testing.assert_allclose(poisson_binom_logpmf([2, 3, 4], p), poisson_binom_logpmf([0, 1, 2], [0.3, 0.6]))
    assert poisson_binom_window(p)[0] == 2
    assert poisson_binom_logpmf([1, 2, 3], [1.0, 1.0, 0.0]).tolist() == [-math.inf, 0.0, -math.inf]
    assert poisson_binom_logcdf([1, 2], [1.0], [2]).tolist() == [-math.inf, 0.0]
    assert poisson_binom_logsf([1, 2], [1.0, 0.5], [2, 0]).tolist() == [0.0, -math.inf]
    first, logpmf = poisson_binom_window([1.0, 0.0], [7, 2])
    assert (first, logpmf.tolist()) == (7, [0.0])


def test_shapes_and_values_of_k():
    p = np.full(30, 0.25)
    assert isinstance(poisson_binom_logpmf(3, p), float)
    k = np.array([[-np.inf, -0.5, 2.5], [3, 30, np.inf]])
    assert poisson_binom_logpmf(k, p).shape == k.shape
    assert np.array_equal(np.isfinite(poisson_binom_logpmf(k, p)), [[False, False, False], [True, True, False]])
    assert poisson_binom_logcdf(2.5, p) == poisson_binom_logcdf(2, p)
    assert poisson_binom_logsf(-0.5, p) == 0.0
    assert poisson_binom_logsf(k, p)[1].tolist()[1:] == [-math.inf, -math.inf]
    assert poisson_binom_logpmf(np.zeros((0, 2)), p).shape == (0, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, [0.5, 1.5]), r"p holds 1\.5: every entry must be in \[0, 1\]"),
        ((1, [0.5, math.nan]), r"p holds nan: every entry must be in \[0, 1\]"),
        ((1, [-1e-300]), r"p holds -1e-300: every entry must be in \[0, 1\]"),
        ((1, 0.5), r"p has shape \(\)"),
        ((1, "abc"), r"p='abc' must be a number in \[0, 1\]"),
        ((1, [True]), r"p=\[True\] must be a number"),
        ((1, [1 + 2j]), r"p=.* must be a number"),
        ((1, [0.5], [1, 2]), r"counts has shape \(2,\)"),
        ((1, [0.5], [-1]), r"counts holds -1: every entry must be an integer in 0\.\.2\*\*53"),
        ((1, [0.5], [1.5]), r"counts holds 1\.5"),
        ((1, [0.5], [math.nan]), r"counts holds nan"),
        ((1, [0.5], ["a"]), r"counts=\['a'\] must be an integer"),
        ((1, [0.5, 0.5], [2.0**53, 1.0]), r"counts sum to"),
        (("k", [0.5]), r"k='k' must be a real number"),
        ((math.nan, [0.5]), r"k has a NaN"),
    ],
)
def test_bad_input(arguments, message):
    for function in WANTED.values():
        with pytest.raises(ValueError, match=message):
            function(*arguments)


@pytest.mark.parametrize("log_tail", [0.0, -0.5, -2e6, math.nan, math.inf])
def test_bad_log_tail(log_tail):
    with pytest.raises(ValueError, match=r"log_tail=.* must be in \[-1e\+06, -1\]"):
        poisson_binom_window([0.5], log_tail=log_tail)


def test_extreme_tails():
    ctx.prec = 300
    n = 10**5
    p = np.full(n, 2.0**-20)
    for k in (n, n - 1, n // 10):
        exact = (
            arb(n + 1).lgamma()
            - arb(k + 1).lgamma()
            - arb(n - k + 1).lgamma()
            + k * arb(2.0**-20).log()
            + (n - k) * (-arb(2.0**-20)).log1p()
        )
        assert float(exact) < -9e4
        assert score(poisson_binom_logpmf(k, p), exact) < 0.5
        assert score(poisson_binom_logpmf(k, [2.0**-20], [n]), exact) < 0.3


def test_complements_beyond_double_precision():
    """With q = 2**-80 passed, p rounds to 1. The distribution of n - S has p = 2**-80 and needs no q."""
    q, counts = np.array([2.0**-80, 2.0**-30, 0.75, 2.0**-70]), np.array([50.0, 7.0, 3.0, 1e6])
    law, mirror = _blocks.PoissonBinomialPMF(1 - q, counts, q), _blocks.PoissonBinomialPMF(q, counts)
    n = int(counts.sum())
    for k in (0, 1, 2, 5, 20, 57, 62, n - 3, n):
        for upper in (True, False):
            got, expected = mirror.point(k, upper), law.point(n - k, not upper)
            for a, b in zip(got[:2], expected[:2]):
                assert a == b or abs(a) < 1e-290 or score(a, b) < 0.3


@pytest.mark.parametrize("shape", thinned(["uniform", "sorted", "equal", "tiny", "near one"], 2))
def test_the_exponent_of_distinct_probabilities_is_within_its_bound(shape):
    """K(theta) - k theta at the tilt of a block, as the logarithm of a product in Arb; "sorted" starts its search from a sample."""
    ctx.prec = 300
    rng = np.random.default_rng(5)
    p = {
        "uniform": lambda: rng.random(3000),
        "sorted": lambda: np.sort(rng.random(33000)),
        "equal": lambda: np.full(3000, 0.3),
        "tiny": lambda: 10 ** rng.uniform(-320, -1, 300),
        "near one": lambda: 10 ** rng.uniform(-320, -1, 300),
    }[shape]()
    law = _blocks.PoissonBinomialPMF(1 - p, None, p) if shape == "near one" else _blocks.PoissonBinomialPMF(p)
    pairs = [(1 - arb(x), arb(x)) if shape == "near one" else (arb(x), 1 - arb(x)) for x in p]
    for k in {1, 2, p.size // 10, p.size // 2, p.size - 2, p.size - 1, round(law.mean), round(law.mean) + 3}:
        theta, exponent, _, _, error = law.block(k, 0)[3:]
        power, product = arb(theta).exp(), arb(1)
        for x, y in pairs:
            product *= y + x * power
        assert abs(product.log() - k * arb(theta) - arb(exponent)) <= error
        assert error <= 1.2e-16 * (abs(exponent) + 3) or abs(theta) > 700


@pytest.mark.parametrize(("p", "counts"), [
    ([0.28, 1e-302], [117, 4]),
    ([0.49999866214187405, 0.49999768097958713, 0.7966889627524437, 2.0**-1022], [5, 161, 5, 2]),
])
def test_rare_bits_among_many_others(inversion_only, p, counts):
    # At the tilt of a rare bit the others are 0 with probabilities below LATTICE_TINY, which 1 minus a double cannot hold.
    law = exact_law(p, counts)
    for k in range(sum(counts[:-1]) - 2, sum(counts)):
        *logs, rounding = tails_with_error(k, p, counts)
        for got, mass in zip(logs, (law[k], sum(law[: k + 1]), sum(law[k + 1 :]))):
            exact = exact_log(mass)
            assert abs(arb(float(got)) - exact) <= float(rounding) + 4 * 2.0**-52 * abs(float(exact))


def test_direct_convolution_is_exact_to_rounding():
    p = np.random.default_rng(5).random(12)
    for size in (1, 2, 5, 12):
        exact = [float(x) for x in exact_law(p[:size])]
        np.testing.assert_allclose(_blocks.convolve(p[:size])[1], exact, rtol=4e-16 * size)


@pytest.mark.parametrize("shape", ["uniform", "small", "large", "rare"])
def test_convolution_without_the_ends_loses_no_more_than_it_says(shape):
    ctx.prec = 300
    n = 403
    p = {"uniform": 1.0, "small": 0.1, "large": 1.0, "rare": 1e-30}[shape] * np.random.default_rng(6).random(n)
    if shape == "large":
        p = 1 - 0.2 * p
    exact = [arb(1)]
    for x in map(arb, p):
        exact = [a * (1 - x) + b * x for a, b in zip([*exact, arb(0)], [arb(0), *exact])]
    for least in (1e-20, 1e-60):
        first, pmf = _blocks.convolve(p, least)
        assert 64 <= pmf.size < n
        for k, value in enumerate(pmf, first):
            assert abs(arb(float(value)) - exact[k]) <= 3.4e-16 * n * exact[k] + (n + 1) * least
        outside = [*exact[:first], *exact[first + pmf.size :]]
        assert all(mass <= (n + 2) * least for mass in outside)
    # there is no mass to compare the logarithm of nearly 1 with if all of it is left out
    first, logpmf = poisson_binom_window(p)
    for k, value in enumerate(logpmf, first):
        assert score(value, exact[k].log()) < 1


def test_run_around_a_point_of_a_circle():
    circle = np.array([9.0, 8.0, 1.0, 7.0, 0.5, 6.0, 2.0, 5.0])
    for least, below, above, run in [
        (2.0, 3, 4, (-3, [6.0, 2.0, 5.0, 9.0, 8.0])), (2.0, 1, 4, (-1, [5.0, 9.0, 8.0])), (0.1, 0, 2, (0, [9.0, 8.0, 1.0])),
        (9.5, 3, 3, (0, [])), (3.0, 2, 0, (-1, [5.0, 9.0])),
    ]:
        first, values = _blocks.run_around(circle, least, below, above)
        assert (first, values.tolist()) == run
    with pytest.raises(ValueError, match="fit into a circle"):
        _blocks.run_around(circle, 1.0, 4, 4)


def test_window_leaves_the_mass_it_may_leave():
    rng = np.random.default_rng(7)
    for size in (1, 2, 3, 50):
        logs = np.log(rng.dirichlet(np.ones(size)))
        for log_tail, below, above in [(-1.0, -math.inf, -math.inf), (-3.0, -3.5, -4.0), (-50.0, -60.0, 9.0), (-2.0, -1.0, -9.0)]:
            first, last = _blocks.window_ends(logs, below, above, log_tail)
            sums = np.cumsum(np.exp(logs)) + math.exp(below), np.cumsum(np.exp(logs[::-1])) + math.exp(above)
            assert (first, size - last) == tuple(int((mass <= math.exp(log_tail)).sum()) for mass in sums)


@pytest.mark.parametrize("p", [[0.5, 0.5000000000000001, 0.5, 0.16658457354994738], [0.25] * 4, [0.75, 0.75, 0.25], [0.5, 1e-9]])
def test_fair_coins_with_zeros_of_the_characteristic_function(p):
    p = np.array(p)
    law, exact = _blocks.PoissonBinomialPMF(p, np.ones(p.size), 1 - p), exact_law(p)
    for k in range(1, p.size):
        for upper in (False, True):
            value, error = law.tail(float(k), upper)
            assert abs(arb(value) - exact_log(sum(exact[k:] if upper else exact[: k + 1]))) <= error < 1e-13
            _, value, error = law.point(float(k), upper)
            assert abs(arb(value) - exact_log(exact[k])) <= error < 1e-13


@pytest.mark.parametrize("shape", ["uniform", "skewed"])
def test_one_point_of_many_groups_by_the_series_is_the_point_itself(shape):
    rng = np.random.default_rng(4)
    p = rng.random(30000) ** (1 if shape == "uniform" else 6)
    sigma = math.sqrt(float(p @ (1 - p)))
    for kind in (tables.Kind.PMF, tables.Kind.LOWER, tables.Kind.UPPER):
        for z in (-9.0, -0.3, 0.4, 4.0, 9.3, 11.0):
            k = np.array([math.floor(p.sum() + z * sigma)], dtype=float)
            fast = tables.served(p, None, k, kind, series=True)[0][0]
            plain = tables.served(p, None, k, kind)[0][0]
            assert abs(fast - plain) <= 1e-13 * min(1, abs(plain)) + 2.2e-16 * abs(plain)


def test_a_window_is_refused_or_given_by_its_standard_deviation():
    # The window has 2 sqrt(-2 log_tail) = 28 standard deviations of 2**22.5, which are 1.7e8 entries; at most 2**27 are returned.
    with pytest.raises(ValueError, match="the window"):
        poisson_binom_window([0.5], counts=[2**47], log_tail=-100)
    first, logpmf = poisson_binom_window([2.0**-17], counts=[2**40], log_tail=-100)
    # The mean is 2**23, and the standard deviation is 2896.
    assert first < 2**23 < first + logpmf.size
    assert logpmf.size < 200 * 2896
