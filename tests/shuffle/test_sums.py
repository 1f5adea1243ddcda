"""Real sums against enumeration of the encodings, reference values and simulation."""

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import poisson_binom

from shufflebounds._core import _worst_bits
from shufflebounds.shuffle import RealSum, ShuffledBits
from tests.oracles import assert_encloses, binomial, coin, hockey_stick, logarithm, power, rational, references, total
from tests.strategies import thinned


def bits(ones, zeros, flip):
    """Return the distribution of the sum of `ones` bits 1 and `zeros` bits 0, each flipped with probability `flip`."""
    q = Fraction(flip)
    return total(binomial(ones, 1 - q), binomial(zeros, q))


def worst_total(users, r, flip, factor):
    """Return the largest hockey-stick divergence over all datasets and every pair of encodings of the target."""
    others = (users - 1) * r
    worst = Fraction(0)
    for ones in range(others + 1):
        rest = bits(ones, others - ones, flip)
        laws = [total(rest, bits(k, r - k, flip)) for k in range(r + 1)]
        worst = max(worst, *(hockey_stick(a, b, factor) for a, b in itertools.permutations(laws, 2)))
    return worst


@pytest.mark.parametrize("eps", [0.0, 0.25, 1.0, 2.5])
@pytest.mark.parametrize(("users", "r", "lam"), thinned([(1, 2, 0.5), (2, 3, 0.5), (3, 2, 2.25), (4, 3, 0.25), (3, 4, 1.5)], 3))
def test_total_over_every_dataset(users, r, lam, eps):
    mechanism = RealSum(users, lam, r)
    assert_encloses(mechanism, eps, worst_total(users, r, mechanism.flip, rational(eps)), apart=2e-9)


def columns_worst(users, r, flip, factor):
    """Return the largest divergence of the column sums over all encodings of the other users; the target's value is 0 or r."""
    worst = Fraction(0)
    q = Fraction(flip)
    for encoded in itertools.combinations_with_replacement(range(r + 1), users - 1):
        laws = []
        for target in (0, r):
            law = {(): Fraction(1)}
            for j in range(r):
                ones = sum(k > j for k in (*encoded, target))
                column = bits(ones, users - ones, q)
                law = {(*seen, s): p * c for seen, p in law.items() for s, c in column.items()}
            laws.append(law)
        worst = max(worst, hockey_stick(*laws, factor), hockey_stick(*reversed(laws), factor))
    return worst


@pytest.mark.slow
@pytest.mark.parametrize(("users", "r", "lam"), [(2, 2, 0.5), (3, 2, 1.5), (4, 3, 2.0)])
def test_columns_are_within_the_bounds(users, r, lam):
    mechanism = RealSum(users, lam, r, view="columns")
    for eps in (0.0, 0.5, 1.5):
        true = logarithm(columns_worst(users, r, mechanism.flip, rational(eps)))
        assert mechanism.log_delta(eps, bound="lower") <= true <= mechanism.log_delta(eps)
        assert mechanism.log_delta(eps) - true < 0.5


def test_columns_of_the_specification():
    # The exact value for n = 10, lam = 5, r = 3 is the sum over all totals of the columns with mpmath, for the worst dataset, in
    # which all other users have value 0. The published bound is .2881645.
    mechanism = RealSum(10, 5, 3, view="columns")
    exact = 0.0425765465537300516
    assert exact * (1 - 1e-9) <= mechanism.delta(1.0, bound="lower") <= exact <= mechanism.delta(1.0) < 1.03 * exact
    assert RealSum(10, 5, 3).delta(1.0) == pytest.approx(0.0370462102176, rel=1e-10)


@pytest.mark.parametrize("entry", references("s000.realsum.total"), ids=lambda e: e["id"])
def test_reference_all_zeros(entry):
    p, exact = entry["params"], mpmath.log(mpmath.mpf(entry["value"]))
    flip, others = p["lam"] / (2 * p["n"]), (p["n"] - 1) * p["r"]
    eps = np.array([float(p["eps"])])
    sides = [_worst_bits.sum_log_delta(*data, p["r"], flip, eps) for data in ((0, others), (others, 0))]
    low, high = (max(float(s[side][0]) for s in sides) for side in (0, 1))
    assert low - 1e-14 <= exact <= high + 1e-14
    assert high - low < 1e-10
    assert RealSum(p["n"], p["lam"], p["r"]).log_delta(float(p["eps"])) >= exact


def test_one_bit_is_shuffled_bits():
    for eps in (0.1, 1.0):
        assert RealSum(50, 4, 1).log_delta(eps) == ShuffledBits.boolean_sum(50, 4).log_delta(eps)


@pytest.mark.slow
@given(users=st.integers(1, 10**7), r=st.integers(1, 20), share=st.floats(1e-6, 1), eps=st.floats(0, 5), data=st.data())
@settings(max_examples=25, deadline=None)
def test_no_dataset_exceeds_the_worst_case(users, r, share, eps, data):
    mechanism = RealSum(users, share * users, r)
    others = (users - 1) * r
    ones = data.draw(st.integers(0, others))
    assert mechanism.log_delta(eps, bound="lower") <= mechanism.log_delta(eps)
    if eps < mechanism.epsilon(0.0) * (1 - 1e-9):
        assert _worst_bits.sum_log_delta(ones, others - ones, r, mechanism.flip, np.array([eps]))[0][0] <= mechanism.log_delta(eps)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("users", "r", "eps", "delta", "view"),
    [(1000, 4, 0.5, 1e-6, "total"), (10**6, 10, 1.0, 1e-9, "total"), (50, 3, 2.0, 1e-4, "columns"), (7, 2, 0.0, 1e-3, "total")],
)
def test_calibration_meets_its_target(users, r, eps, delta, view):
    mechanism = RealSum.calibrate(users=users, bits=r, eps=eps, delta=delta, view=view)
    assert mechanism.delta(eps) <= delta
    assert RealSum(users, mechanism.lam * (1 - 1e-4), r, view=view).delta(eps) > delta * (1 - 2e-3)


def exact_errors(mechanism, numbers):
    """Return the distribution of the error of the estimate for these numbers, by encoding, flipping and summing."""
    q, r = Fraction(mechanism.flip), mechanism.bits
    law = {0: Fraction(1)}
    for x in numbers:
        scaled = Fraction(x) * r
        below = math.floor(scaled)
        for one in [1 - q] * below + [q] * (r - below - (scaled > below)):
            law = total(law, coin(one))
        if scaled > below:
            part = scaled - below
            law = total(law, coin(part * (1 - q) + (1 - part) * q))
    n, truth = len(numbers), sum(map(Fraction, numbers), Fraction(0))
    errors = {}
    for y, p in law.items():
        error = (y - n * r * q) / (r * (1 - 2 * q)) - truth
        errors[error] = errors.get(error, 0) + p
    return errors


@pytest.mark.parametrize("numbers", [[0.0, 0.0, 1.0], [0.25, 0.3, 0.875, 1.0], [0.5, 0.5]])
def test_error_tails_and_moments(numbers):
    mechanism = RealSum(len(numbers), 0.5, 4)
    errors = exact_errors(mechanism, numbers)
    assert float(sum(e * p for e, p in errors.items())) == pytest.approx(0, abs=1e-14)
    assert float(sum(e * e * p for e, p in errors.items())) <= mechanism.variance * (1 + 1e-12)
    for a in (0, 0.1, 0.3, 0.5, 0.8, 1.4):
        exact = float(sum((p for e, p in errors.items() if abs(e) > Fraction(a)), Fraction(0)))
        low, high = (mechanism.error_tail(a, numbers, bound=side) for side in ("lower", "upper"))
        assert low * (1 - 1e-12) <= exact <= high * (1 + 1e-12)
        assert high - low <= 1e-9
        assert exact <= mechanism.error_tail(a) * (1 + 1e-12)


@pytest.mark.slow
def test_error_of_thousands_of_distinct_numbers():
    # The sum of more than 4096 distinct numbers is rounded. SciPy forms the distribution of the ones by another method.
    mechanism, x = RealSum(8192, 900, 1), np.append(np.arange(6000), np.full(2192, 7000)) / 8192
    ones = poisson_binom(mechanism.flip + x * (1 - 2 * mechanism.flip))
    for a in (60.0, 100.0):
        width = a * (1 - 2 * mechanism.flip)
        exact = ones.sf(math.floor(ones.mean() + width)) + ones.cdf(math.ceil(ones.mean() - width) - 1)
        assert mechanism.error_tail(a, x) == pytest.approx(exact, rel=1e-8)


def test_chernoff_holds_for_any_numbers():
    mechanism = RealSum(5, 1.5, 3)
    for numbers in ([0.1] * 5, [0.5] * 5, [1.0] * 5, [0.2, 0.9, 0.5, 0.0, 1.0]):
        errors = exact_errors(mechanism, numbers)
        for a in (0.2, 0.7, 1.5, 2.5):
            assert float(sum((p for e, p in errors.items() if abs(e) > Fraction(a)), Fraction(0))) <= mechanism.error_tail(a)


@pytest.mark.parametrize("view", ["total", "columns"])
def test_messages_have_the_mean_and_variance_of_flipped_bits(view):
    mechanism, x, rng = RealSum(60, 12, 4, view=view), np.repeat([0.25, 0.75], 30), np.random.default_rng(3)
    errors = np.array([mechanism.estimate(counts=mechanism.simulate(x, rng)) for _ in range(400)]) - x.sum()
    # The values are multiples of 1/4, so that only the 240 flipped bits are random; the estimate is divided by r (1 - 2 q).
    q = mechanism.flip
    variance = 240 * q * (1 - q) / (4 * (1 - 2 * q)) ** 2
    assert abs(errors.mean()) < 5 * math.sqrt(variance / 400)
    assert errors.var() == pytest.approx(variance, rel=0.4)


@pytest.mark.slow
@pytest.mark.parametrize("view", ["total", "columns"])
def test_protocol_on_data(view):
    mechanism = RealSum(300, 40, 5, view=view)
    rng = np.random.default_rng(2)
    x = np.linspace(0, 1, 300)
    assert np.mean([mechanism.encode(x, rng) for _ in range(3000)], axis=0) == pytest.approx(5 * x, abs=0.06)
    errors = np.array([mechanism.estimate(counts=mechanism.simulate(x, rng)) for _ in range(4000)]) - x.sum()
    rounding = (5 * x - np.floor(5 * x)) * (1 - 5 * x + np.floor(5 * x))
    variance = mechanism.variance - 300 / 100 + rounding.sum() / 25
    assert abs(errors.mean()) < 5 * math.sqrt(variance / 4000)
    assert errors.var() == pytest.approx(variance, rel=0.12)
    a = mechanism.error_quantile(0.05, x)
    tail = mechanism.error_tail(a, x)
    assert abs(np.mean(np.abs(errors) > a) - tail) < 5 * math.sqrt(tail / 4000)
    assert mechanism.error_quantile(0.05) >= a
    zeros = mechanism.simulate(np.zeros(300), rng=1)
    assert mechanism.estimate(counts=zeros, clip=True) == max(0.0, mechanism.estimate(counts=zeros))


def test_reference_variance():
    # This is case s000 of the reference file: n = 100, lam = 58, r = 10, and every x r is an integer.
    mechanism = RealSum(100, 58, 10)
    assert mechanism.variance - 100 / 400 == pytest.approx(11.67233560090702947845805, rel=1e-14)


def test_power_is_the_distribution_of_the_sum():
    assert power(coin(0.25), 5) == binomial(5, 0.25)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: RealSum(0, 0, 2), "users=0"),
        (lambda: RealSum(5, 6, 2), "lam=6"),
        (lambda: RealSum(5, 1, 0), "bits=0"),
        (lambda: RealSum(2**50, 1, 100), "users=1125899906842624 times bits=100"),
        (lambda: RealSum(5, 1, 2, view="bits"), "view='bits'"),
        (lambda: RealSum(2, 1, 2).simulate([0.5]), "values has 1 entries"),
        (lambda: RealSum(2, 1, 2).randomize([0.5, 1.5]), r"values holds 1\.5"),
        (lambda: RealSum(2, 1, 2).estimate(counts=5), "counts=5|counts holds 5"),
        (lambda: RealSum(2, 1, 2, view="columns").estimate(counts=[1, 3]), "counts holds 3"),
        (lambda: RealSum(2, 2, 2).estimate(counts=1), "lam=2 must be < users=2"),
        (lambda: RealSum(2, 1, 2).error_tail(1, [0.5]), "truth has shape"),
    ],
)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_a_fair_coin_among_the_tilted_bits_loses_no_dataset():
    # A tilt that makes every bit a fair coin gives the characteristic function a zero; the worst dataset must still be found.
    mechanism = RealSum(2, 1.0, 2)
    assert_encloses(mechanism, 0.0, worst_total(2, 2, 0.25, Fraction(1)), apart=2e-9)
    columns = RealSum(2, 1.0, 2, view="columns")
    assert logarithm(columns_worst(2, 2, 0.25, Fraction(1))) <= columns.log_delta(0.0)


def test_one_bit_per_user_is_shuffled_bits():
    one, bits_ = RealSum(20, 12.0, 1), ShuffledBits(20, 0.3)
    assert one.gdp_mu() == bits_.gdp_mu()
    assert one.rdp([1, 3]).tolist() == bits_.rdp([1, 3]).tolist()
    assert one.tradeoff(bound="upper").beta(0.3) == bits_.tradeoff(bound="upper").beta(0.3)


@pytest.mark.parametrize(("users", "r", "lam"), thinned([(1, 5, 1e-70), (2, 3, 1e-150), (3, 2, 1e-200), (2, 6, 1e-55)], 2))
def test_lower_bound_where_the_exponential_of_eps_overflows(users, r, lam):
    mechanism = RealSum(users, lam, r)
    others, pure, flip = (users - 1) * r, mechanism._pure_epsilon(), mechanism.flip
    assert pure > 701
    for eps in (701.0, (700 + pure) / 2, pure - 1e-3, pure - 1e-9):
        factor = rational(eps)
        best = logarithm(max(hockey_stick(bits(ones, others - ones + r, flip), bits(ones + r, others - ones, flip), factor)
                             for ones in range(others + 1)))
        low = mechanism.log_delta(eps, bound="lower")
        assert low <= best
        if eps < pure - 1:
            assert low >= best - 1e-6
    assert pure - 2 <= mechanism.epsilon(0.5, bound="lower") <= mechanism.epsilon(0.5)
