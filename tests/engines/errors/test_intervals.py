"""Confidence intervals of true counts: coverage by exact enumeration for few users, and the ends of the intervals."""

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from shufflebounds import mechanisms as m
from shufflebounds import shuffle
from tests.examples import profile_classes
from tests.oracles import binomial, total
from tests.shuffle.test_geometric_dummies import law as drawn

MATRIX = [[0.625, 0.25, 0.125], [0.25, 0.5, 0.25], [0.125, 0.25, 0.625]]


def bits(held, users, own, other, *extra):
    """Return the distribution of the number of ones of all users' bits, and of more bits."""
    law = total(binomial(held, Fraction(own)), binomial(users - held, Fraction(other)))
    for number, chance in extra:
        law = total(law, binomial(number, chance))
    return law


def supported(oracle):
    own, _, other, _, _ = oracle._support_probabilities()
    return lambda held, users: bits(held, users, own, other)


def dummy(flip, bins):
    return Fraction(1, bins) * (1 - Fraction(flip)) + (1 - Fraction(1, bins)) * Fraction(flip)


KEPT, ALL = shuffle.GeometricDummies(3, 4, 0.5, 0.25, 0.75), shuffle.GeometricDummies(3, 7, 0.375, 0.25)
ORACLES = [m.KaryResponse(3, 1.5), m.SubsetSelection(4, 1.0, 2), m.LocalHashing(4, 1.0, 3), m.HadamardResponse(3, 2.0),
           m.UnaryEncoding(3, 0.75, 0.125), m.Rappor(0.25, bits=3)]
COUNTS = {
    "bits": (shuffle.ShuffledBits(6, 0.1875), lambda t, n: bits(t, n, 1 - Fraction(0.1875), 0.1875)),
    "bits and dummies": (shuffle.ShuffledBits(6, 0.125, fakes=4), lambda t, n: bits(t, n, 0.875, 0.125, (4, Fraction(0.125)))),
    "a fair coin, nearly": (shuffle.ShuffledBits(6, 0.4375), lambda t, n: bits(t, n, 0.5625, 0.4375)),
    "sums": (shuffle.FlippedReports(6, 5, 3, 0.125, view="sums"), lambda t, n: bits(t, n, 0.875, 0.125, (5, dummy(0.125, 3)))),
    "records": (shuffle.FlippedReports(6, 5, 2, 0.25, view="records"), lambda t, n: bits(t, n, 0.75, 0.25, (5, dummy(0.25, 2)))),
    "no flips": (shuffle.FlippedReports(6, 3, 3, 0.0, view="sums"), lambda t, n: bits(t, n, 1, 0, (3, Fraction(1, 3)))),
    "clear reports": (shuffle.ClearReports(11, 4), lambda t, n: bits(t, n, 1, 0, (11, Fraction(1, 4)))),
    "zero sum": (shuffle.ZeroSum(6, 0.25), lambda t, n: bits(t, n, 1, 0, (6, Fraction(3, 4)))),
    "histogram": (shuffle.ShuffledHistogram(6, 3, 0.375), lambda t, n: bits(t, n, 1, 0, (6, Fraction(5, 8)))),
    "binomial noise": (shuffle.BinomialNoise(9, 0.375), lambda t, n: bits(t, n, 1, 0, (9, Fraction(3, 8)))),
    "geometric dummies": (ALL, lambda t, n: total(drawn(ALL, 40), {t: Fraction(1)})),
    "geometric dummies, some kept": (KEPT, lambda t, n: total(drawn(KEPT, 40), binomial(t, Fraction(0.75)))),
    **{type(oracle).__name__: (oracle, supported(oracle)) for oracle in ORACLES},
}


@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 2.0**-20])
@pytest.mark.parametrize("name", COUNTS)
def test_exact_coverage_and_shortest_range_of_every_count(name, confidence):
    law_of, users, beta = COUNTS[name][1], 6, 1 - Fraction(confidence)
    laws = [law_of(held, users) for held in range(users + 1)]
    found = COUNTS[name][0]._count_law(users)
    ends = {y: found.inverted(y, float(y), math.log(beta / 2)) for y in sorted(set().union(*laws))}
    for held, law in enumerate(laws):
        assert sum(p for y, p in law.items() if ends[y][0] <= held <= ends[y][1]) >= confidence
        # The range has every truth with both tails above (1 - confidence)/2, and no other truth.
        for y, (low, high) in ends.items():
            above, below = (sum(p for k, p in law.items() if k != y and (k > y) == way) + law.get(y, 0) for way in (True, False))
            if abs(min(above, below) / (beta / 2) - 1) > 1e-9:
                empty = low == high and low in (0, users)
                assert (low <= held <= high) == (min(above, below) > beta / 2) or empty, (y, held)


def datasets(values, users):
    return itertools.combinations_with_replacement(range(values), users)


@cache
def messages_of(rows, values):
    """Return the distribution of the counts of messages of users with these values, for the probabilities of each message."""
    law = {(0,) * len(rows[0]): Fraction(1)}
    for value in values:
        law = total(law, {tuple(int(i == y) for i in range(len(rows[0]))): Fraction(p) for y, p in enumerate(rows[value])})
    return law


@pytest.mark.parametrize(("law", "rows"), [
    (m.KaryResponse(3, math.log(4)), [[0.75 if x == y else 0.125 for y in range(3)] for x in range(3)]),
    (m.FiniteRandomizer(MATRIX), MATRIX),
], ids=["KaryResponse", "FiniteRandomizer"])
def test_exact_coverage_of_all_bins_together(law, rows):
    # The probabilities of k-ary response are rounded: 4 + 2 = 6 are the parts of a budget of log 4.
    rows = tuple(tuple(Fraction(4 if x == y else 1, 6) if isinstance(law, m.KaryResponse) else Fraction(p)
                       for y, p in enumerate(row)) for x, row in enumerate(rows))
    for confidence in (0.5, 0.9):
        ends = cache(lambda counts, c=confidence: law.interval(counts=counts, confidence=c, of="any"))
        one = cache(lambda counts, c=confidence: law.interval(counts=counts, confidence=c))
        for values in datasets(3, 4):
            truth, seen = np.bincount(values, minlength=3), messages_of(rows, values)
            inside = {counts: (truth >= ends(counts)[0]) & (truth <= ends(counts)[1]) for counts in seen}
            assert float(sum(p for counts, p in seen.items() if inside[counts].all())) >= confidence
            alone = {counts: (truth >= one(counts)[0]) & (truth <= one(counts)[1]) for counts in seen}
            assert all(float(sum(p for counts, p in seen.items() if alone[counts][x])) >= confidence for x in range(3))


@pytest.mark.slow
def test_exact_coverage_of_means_and_sums():
    coin, sums = m.RandomizedResponse(1.5, upper=2.0), shuffle.RealSum(5, 2.0, 2)
    of_mean = {c: [coin.interval(counts=y, users=5, confidence=c) for y in range(6)] for c in (0.5, 0.9)}
    of_sum = {c: [sums.interval(counts=y, confidence=c) for y in range(11)] for c in (0.5, 0.9)}
    for numbers in itertools.combinations_with_replacement((0.0, 0.3, 0.5, 1.0), 5):
        ones, chances = {0: Fraction(1)}, [Fraction(coin.prob(2 * x)) for x in numbers]
        for chance in chances:
            ones = total(ones, binomial(1, chance))
        shown = {0: Fraction(1)}
        for x in numbers:
            whole = min(int(2 * x), 1)
            part = Fraction(x) * 2 - whole
            q = Fraction(sums.flip)
            shown = total(total(shown, binomial(1, 1 - q if whole else q)), binomial(1, q + part * (1 - 2 * q)))
        for confidence in (0.5, 0.9):
            ends, mean = of_mean[confidence], 2 * math.fsum(numbers) / 5
            assert float(sum(p for y, p in ones.items() if ends[y][0] <= mean <= ends[y][1])) >= confidence
            ends, exact = of_sum[confidence], sum(map(Fraction, numbers))
            assert float(sum(p for y, p in shown.items() if ends[y][0] <= exact <= ends[y][1])) >= confidence


@pytest.mark.slow
def test_the_intervals_of_a_histogram_are_far_below_the_worst_error():
    survey, held = m.KaryResponse(200, 8.23), np.repeat([150_000, 0], [20, 180])
    counts = survey.simulate(np.repeat(np.arange(200), held), rng=1)
    assert (survey.estimate(counts=counts) < 0).sum() > 50
    lower, upper = survey.interval(counts=counts, of="any")
    assert lower.dtype == upper.dtype == np.int64
    assert ((lower <= held) & (held <= upper)).all()
    half = (upper - lower) / 2
    worst, known = (survey.error_quantile(0.05, truth, users=3_000_000, of="any") for truth in (None, held))
    assert round(worst) == 960
    assert known < half[:20].max() < 1.25 * known
    assert half[20:].max() < 110
    assert (lower[20:] == 0).mean() > 0.9
    alone = survey.interval(counts=counts)
    assert ((alone[0] >= lower) & (alone[1] <= upper)).all()


def test_every_class_that_estimates_numbers_has_intervals():
    vectors = {m.PrivUnit, m.GaussianVector}
    assert {kind for kind in profile_classes().values() if hasattr(kind, "interval")} == {
        kind for kind in profile_classes().values()
        if hasattr(kind, "estimate") and hasattr(kind, "aggregate") and kind not in vectors}


def test_impossible_counts_have_the_nearest_end():
    # At least all users' noise bits are sent if every user holds 1, and at most as many if none does.
    assert shuffle.ZeroSum(1000, 0.05).interval(counts=0) == (0, 0)
    assert shuffle.ZeroSum(1000, 0.05).interval(counts=2000) == (1000, 1000)
    lower, upper = m.KaryResponse(4, 3.0).interval(counts=[0, 0, 0, 10**5])
    assert lower.tolist() == upper.tolist() == [0, 0, 0, 10**5]


def test_shapes_and_numbers_of_users():
    noise = shuffle.BinomialNoise(100, 0.5)
    released = np.array([[40, 50], [55, 900]])
    lower, upper = noise.interval(counts=released, of="any")
    assert lower.shape == (2, 2)
    # Without a number of users the truth may be any whole number within the range of the noise.
    assert -28 < lower[0, 0] < -20
    assert 860 < upper[1, 1] < 868
    assert noise.interval(released, users=800)[0][0, 0] == 0
    assert noise.interval(counts=900, users=800) == (800, 800)
    assert isinstance(noise.interval(counts=50)[0], int)


@pytest.mark.parametrize("trials", [1, 80, 2**53])
def test_noisy_counts_at_the_largest_doubles(trials):
    """The search for the truth of the count -2**53 had no end, because not every integer below it is a double."""
    noise = shuffle.BinomialNoise(trials, 0.5)
    middle = np.array(noise.interval(counts=0))
    for count in (-(2**53), 2**53):
        assert np.array_equal(noise.interval(counts=count), middle + count)
    dummies = shuffle.GeometricDummies.calibrate(bins=3, eps=1.0, delta=1e-6)
    assert [ends.tolist() for ends in dummies.interval(counts=[25, 1025, 30], users=1000)] == [[0, 994, 0], [6, 1000, 11]]
    bits = shuffle.ShuffledBits(1000, 0.1)
    messages = bits.randomize([1] * 300 + [0] * 700, 4)
    assert bits.interval(messages) == bits.interval(counts=int(messages.sum()))


@pytest.mark.parametrize(("users", "bins"), [(2**53, 2), (10**15, 100)])
def test_very_many_users(users, bins):
    oracle = m.KaryResponse(bins, 1.0)
    own, _, other, _, _ = oracle._support_probabilities()
    held = users // 3
    count = round(held * own + (users - held) * other)
    rest, more = divmod(users - count, bins - 1)
    lower, upper = oracle.interval(counts=[count, rest + more, *[rest] * (bins - 2)])
    scale = math.sqrt(oracle.variance(held, users))
    assert held - 2.1 * scale < lower[0] < held - 1.8 * scale
    assert held + 1.8 * scale < upper[0] < held + 2.1 * scale


@pytest.mark.parametrize(("call", "text"), [
    (lambda: m.KaryResponse(3, 1.0).interval(counts=[1, 2, 3], confidence=95), r"confidence=95 must be in \(0, 1\)"),
    (lambda: m.KaryResponse(3, 1.0).interval(counts=[1, 2, 3], of="all"), "of='all' must be one of"),
    (lambda: m.KaryResponse(3, 1.0).interval(), "messages=None: pass the messages"),
    (lambda: m.KaryResponse(3, 1.0).interval(counts=[1, 2, 3.5]), r"counts holds 3\.5: every entry must be a whole number"),
    (lambda: m.UnaryEncoding(3, 0.5, 0.25).interval(counts=[1, 2, 3]), "users=None must be the number of users"),
    (lambda: shuffle.ShuffledBits(5, 0.5).interval(counts=2), r"flip=0\.5"),
    (lambda: m.KaryResponse(3, 1.0).error_quantile(0.05, [3.2, -1.0, 2.0], users=5), r"interval\(counts=\.\.\.\) has confidence"),
    (lambda: m.KaryResponse(3, 1.0).error_quantile(0.05, [3.2, 1.0, 2.0]), r"interval\(counts=\.\.\.\) has confidence"),
    (lambda: shuffle.ShuffledHistogram(9, 3, 0.2).error_quantile(0.05, [3, 3, 4]), r"sums to 10: .*interval\(counts="),
    (lambda: shuffle.ShuffledBits(9, 0.2).error_tail(1.0, -2), r"truth=-2 .*interval\(counts="),
])
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()
