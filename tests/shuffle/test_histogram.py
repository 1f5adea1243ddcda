"""The histogram that is exactly 0 for empty bins, against enumeration and the reference values."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds import InfeasibleError
from shufflebounds._engines.bits import mixed_sum as _mixed_sum
from shufflebounds.profile.extend import IntervalArray
from shufflebounds.shuffle import ShuffledHistogram, ZeroSum, histogram, samples
from shufflebounds.tails import binom_logpmf
from tests.oracles import assert_encloses, binomial, coin, hockey_stick, power, rational, references
from tests.strategies import thinned


def seen(counts, users, gamma):
    """Return the distribution of the numbers of messages in every bin."""
    noise = power(coin(1 - Fraction(gamma)), users)
    law = {}
    for drawn in itertools.product(noise.items(), repeat=len(counts)):
        names = tuple(count + extra for count, (extra, _) in zip(counts, drawn))
        law[names] = law.get(names, 0) + math.prod(p for _, p in drawn)
    return law


@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0, 2.5])
@pytest.mark.parametrize(("users", "bins", "gamma"), thinned(
    [(1, 2, 0.25), (2, 3, 0.5), (3, 2, 0.3), (2, 2, 0.0625), (3, 3, 0.4)], 3))
def test_every_dataset_of_few_users(users, bins, gamma, eps):
    worst = Fraction(0)
    for others in itertools.combinations_with_replacement(range(bins), users - 1):
        laws = [seen(np.bincount([*others, target], minlength=bins).tolist(), users, gamma) for target in range(bins)]
        worst = max(worst, *(hockey_stick(a, b, rational(eps)) for a, b in itertools.permutations(laws, 2)))
    assert_encloses(ShuffledHistogram(users, bins, gamma), eps, worst, apart=1e-11)


@pytest.mark.parametrize("entry", references("s003.hist.pair"), ids=lambda e: e["id"])
def test_reference_pairs(entry):
    p, exact = entry["params"], float(entry["value"])
    eps = 2 * float(p["eps_total"].partition("*")[2])
    mechanism = ShuffledHistogram(p["n"], 9, float(p["gamma"]))
    assert mechanism.delta(eps) == pytest.approx(exact, rel=1e-10)
    assert mechanism.delta(eps, bound="lower") == pytest.approx(exact, rel=1e-10)
    # The published bound by composition is twice the delta of one bin at eps/2.
    assert mechanism.delta(eps) < 2 * ZeroSum(p["n"], float(p["gamma"])).delta(eps / 2)


@pytest.mark.parametrize(("users", "bins", "delta", "worst", "even"), [
    (2 * 10**5, 20, 1e-9, 59.0270260879, 8.488), (10**4, 5, 1e-6, 33.9722496647, 6.524),
])
def test_root_mean_squared_error(users, bins, delta, worst, even):
    """The reference values are the largest over all counts of a sum over all outcomes, in double precision."""
    protocol = ShuffledHistogram.calibrate(users=users, bins=bins, eps=1.0, delta=delta)
    assert math.sqrt(protocol.mean_squared_error()) == pytest.approx(worst, rel=1e-6)
    assert math.sqrt(protocol.mean_squared_error([users // bins] * bins)) == pytest.approx(even, abs=5e-4)
    assert protocol.mean_squared_error([users] + [0] * (bins - 1)) == pytest.approx(protocol.variance / bins, rel=1e-9)


def test_mean_squared_error_of_a_histogram_is_the_mean_over_its_bins():
    # 19 bins have 1000 users each, fewer than the mean 1893 of the noise. The error of a bin was once stated as 43.1.
    protocol = ShuffledHistogram(users=10**5, bins=20, gamma=0.018937396190056174)
    truth = [10**5 - 19_000, *[1000] * 19]
    assert math.sqrt(protocol.mean_squared_error(truth)) == pytest.approx(974.7, abs=0.05)
    each = [protocol.mean_squared_error(held) for held in truth]
    assert protocol.mean_squared_error(truth) == pytest.approx(sum(each) / 20, rel=1e-12)
    assert max(each) < protocol.mean_squared_error() < protocol.error_quantile(0.05) ** 2


def test_table_of_two_bins():
    for eps, exact in ((0.6, 0.004784828787675343657), (1.2, 1.433440243481945093694e-5), (2.0, 1.89361214886087694694e-10)):
        assert ShuffledHistogram(80, 2, 0.5).delta(eps) == pytest.approx(exact, rel=1e-10)


def exact_exceeded(counts, users, gamma, a):
    """Return the probability that some bin has an absolute error above a."""
    within = Fraction(1)
    for count in counts:
        law = Fraction(0)
        for zeros, p in binomial(users, gamma).items():
            number = count + users - zeros
            error = (number - users + Fraction(users * gamma) if number > users else 0) - count
            law += p if abs(error) <= Fraction(a) else 0
        within *= law
    return 1 - within


@pytest.mark.slow
@pytest.mark.parametrize(("users", "bins", "gamma"), [(6, 3, 0.25), (4, 5, 0.5), (8, 2, 0.1)])
def test_simultaneous_error(users, bins, gamma):
    mechanism = ShuffledHistogram(users, bins, gamma)
    for a in (0, 0.4, 1, 1.75, 2, 3.5, 6, 8):
        worst = Fraction(0)
        for data in itertools.combinations_with_replacement(range(bins), users):
            counts = np.bincount(data, minlength=bins)
            exact = exact_exceeded(counts.tolist(), users, gamma, a)
            worst = max(worst, exact)
            assert mechanism.error_tail(a, counts, of="any") == pytest.approx(float(exact), rel=1e-10, abs=1e-300)
            assert mechanism.error_tail(a, counts, of="any", bound="lower") <= exact
            alone = [exact_exceeded([int(count)], users, gamma, a) for count in counts]
            assert mechanism.error_tail(a, counts) == pytest.approx(float(max(alone)), rel=1e-10, abs=1e-300)
            assert mechanism.error_tail(a, int(counts[0])) == pytest.approx(float(alone[0]), rel=1e-10, abs=1e-300)
            assert float(max(alone)) <= mechanism.error_tail(a) * (1 + 1e-12)
        assert mechanism.error_tail(a, of="any", bound="lower") <= worst
        assert float(worst) <= mechanism.error_tail(a, of="any") * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:delta=")
@given(users=st.integers(1, 10**9), eps=st.floats(0.2, 3), delta=st.floats(1e-12, 0.5))
@settings(max_examples=15, deadline=None)
def test_calibration_meets_the_target(users, eps, delta):
    try:
        mechanism = ShuffledHistogram.calibrate(users=users, bins=10, eps=eps, delta=delta)
    except InfeasibleError:
        assert ShuffledHistogram(users, 10, 0.5).delta(eps) > delta
    else:
        assert mechanism.delta(eps) <= delta
        assert mechanism.delta(0.999 * eps) > delta * 0.5
        assert mechanism.gamma >= ZeroSum.calibrate(users=users, eps=eps, delta=delta).gamma * (1 - 1e-3)


def test_protocol_on_data():
    mechanism = ShuffledHistogram(1000, 6, 0.03)
    rng = np.random.default_rng(8)
    data = np.repeat([1, 2, 4], [500, 450, 50])
    truth = np.bincount(data, minlength=6)
    estimates = np.array([mechanism.estimate(counts=mechanism.simulate(data, rng)) for _ in range(3000)])
    assert not estimates[:, truth == 0].any()
    raw = np.array([mechanism.estimate(counts=mechanism.simulate(data, rng), raw=True) for _ in range(3000)]) - truth
    assert (np.abs(raw.mean(axis=0)) < 5 * math.sqrt(mechanism.variance / 3000)).all()
    assert raw.var(axis=0) == pytest.approx(np.full(6, mechanism.variance), rel=0.15)
    largest = np.abs(estimates - truth).max(axis=1)
    for a in (5, 10, 14):
        tail = mechanism.error_tail(a, truth, of="any")
        assert abs(np.mean(largest > a) - tail) < 5 * math.sqrt(tail / 3000)
    assert mechanism.error_tail(mechanism.error_quantile(0.05, truth, of="any"), truth, of="any") <= 0.05
    assert mechanism.messages_per_user() == pytest.approx(1 + 6 * 0.97)


def test_delta_of_one_bin_is_zero():
    assert ShuffledHistogram(5, 1, 0.1).delta(0.0) == 0.0
    assert ShuffledHistogram(5, 1, 0.1).epsilon(0.0) == 0.0
    assert ShuffledHistogram(5, 2, 0.1).epsilon(0.0) == math.inf


@pytest.mark.parametrize("blocks", [3, 5, 40])
@pytest.mark.parametrize("falls", [0.0, 0.02, 0.7])
def test_a_sum_over_wide_blocks_is_enclosed(monkeypatch, blocks, falls):
    # The sum of Pr[Bin(n, p) = i] e^(-falls i) is (1 - p + p e^-falls)^n. There are few wide blocks, so the mode is inside of one.
    monkeypatch.setattr(_mixed_sum, "MOST_TERMS", blocks)
    n, p = 1000.0, 0.3

    def value(i):
        return IntervalArray(-falls * i, -falls * i)

    lower, upper = _mixed_sum.enclose_sum(lambda i: binom_logpmf(i, n, p), math.floor((n + 1) * p), 0.0, n, value)
    exact = n * math.log1p(p * math.expm1(-falls))
    assert lower < exact < upper
    # The gap is at most the log of the ratio of the largest to the smallest term within a block.
    if blocks == 40:
        assert upper - lower < 12.0


def test_the_last_term_of_a_long_range_is_counted():
    # 2**53 + 1, the successor of the last index, is no double.
    end = 2.0**53

    def log_pmf(i):
        return np.where(i == end, 0.0, -math.inf)

    def value(i):
        return IntervalArray(np.zeros(i.shape), np.zeros(i.shape))

    found = _mixed_sum._log_sum_beyond(log_pmf, end, 1.0, end, 1.0, value, -1000.0)
    assert 0.0 <= found < 1e-9


def test_a_sum_of_zeros_is_zero():
    def value(i):
        return IntervalArray(np.full(i.shape, -math.inf), np.full(i.shape, -math.inf))

    assert _mixed_sum.enclose_sum(lambda i: binom_logpmf(i, 9.0, 0.3), 3, 0.0, 9.0, value) == (-math.inf, -math.inf)


@pytest.mark.parametrize(("users", "gamma"), [(10, 0.25), (7, 0.3), (100, 0.01), (999, 0.4999)])
def test_sums_are_given_the_mode_of_the_noise(monkeypatch, users, gamma):
    given = []

    def recorded(log_pmf, mode, *rest):
        given.append(mode)
        return _mixed_sum.enclose_sum(log_pmf, mode, *rest)

    for module in (histogram, samples):
        monkeypatch.setattr(module, "enclose_sum", recorded)
    ShuffledHistogram(users, 2, gamma).delta(0.5)
    samples._log_missed(users, gamma, 3)
    # Bin(n, gamma) increases up to its mode and decreases beyond: pmf(k + 1)/pmf(k) = (n - k) gamma/((k + 1)(1 - gamma)).
    chance = Fraction(gamma)
    assert len(given) == 2
    for mode in map(int, given):
        assert (users - mode) * chance <= (mode + 1) * (1 - chance)
        assert mode == 0 or (users - mode + 1) * chance >= mode * (1 - chance)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: ShuffledHistogram(0, 2, 0.1), "users=0"),
        (lambda: ShuffledHistogram(5, 0, 0.1), "bins=0"),
        (lambda: ShuffledHistogram(5, 2, 0.6), r"gamma=0\.6"),
        (lambda: ShuffledHistogram(5, 2, 0.1).simulate([0, 1]), "values has 2 entries"),
        (lambda: ShuffledHistogram(2, 2, 0.1).randomize([0, 2]), "values holds 2"),
        (lambda: ShuffledHistogram(5, 2, 0.1).estimate(counts=[1, 11]), "counts holds 11"),
        (lambda: ShuffledHistogram(5, 2, 0.1).error_tail(1, [2, 2]), "truth sums to 4"),
        (lambda: ShuffledHistogram(5, 2, 0.1).error_tail(1, [2, 2, 1]), "truth has shape"),
        (lambda: ShuffledHistogram(5, 2, 0.1).error_tail(1, 2, of="any"), "truth=2 .* must be at least 3"),
        (lambda: ShuffledHistogram(5, 2, 0.1).error_tail(1, 6), "truth=6"),
        (lambda: ShuffledHistogram.calibrate(users=5, bins=1, eps=1.0, delta=0.1), "bins=1"),
    ],
)
def test_bad_input(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_a_sum_far_from_the_mode_of_its_masses_takes_one_truncation_range(monkeypatch):
    # The largest term is 360 standard deviations from the mode, where wide blocks give a far too large bound of the truncated
    # terms. Nevertheless the truncation range is not extended: its two ends are computed once.
    ranges = []
    edge = _mixed_sum._edge
    monkeypatch.setattr(_mixed_sum, "_edge", lambda *arguments: ranges.append(edge(*arguments)) or ranges[-1])
    lower, upper = ShuffledHistogram(10**7, 3, 1 / 3)._log_delta(np.array([0.5]))
    assert lower[0] <= upper[0] < lower[0] + 1e-7 < -1e5
    assert len(ranges) == 2
