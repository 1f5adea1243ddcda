"""Counts instead of messages, and parts of the users, for every randomizer and protocol that estimates."""

import math

import numpy as np
import pytest

from shufflebounds import InfeasibleError, shuffle
from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    FiniteRandomizer,
    GaussianMechanism,
    GaussianVector,
    GeometricMechanism,
    HadamardResponse,
    KaryResponse,
    LaplaceMechanism,
    LocalHashing,
    PrivUnit,
    RandomizedResponse,
    Rappor,
    SubsetSelection,
    UnaryEncoding,
)
from tests.examples import profile_classes

RNG = np.random.default_rng(41)
BINS, BITS, REALS = RNG.integers(0, 5, 60), RNG.integers(0, 2, 60), RNG.random(60)
VECTORS = RNG.normal(size=(60, 3))
UNIT = VECTORS / np.linalg.norm(VECTORS, axis=1)[:, None]
MATRIX = [[0.5, 0.25, 0.125, 0.125], [0.25, 0.5, 0.125, 0.125], [0.125, 0.125, 0.5, 0.25], [0.2, 0.2, 0.2, 0.4]]

CASES = [
    (KaryResponse(5, 1.0), BINS),
    (SubsetSelection(5, 1.0, 2), BINS),
    (LocalHashing(5, 1.0), BINS),
    (HadamardResponse(5, 1.0), BINS),
    (UnaryEncoding(5, 0.75, 0.25), BINS),
    (FiniteRandomizer(MATRIX), BINS % 4),
    (RandomizedResponse(1.0), BITS),
    (Rappor(0.5, bits=5), np.eye(5, dtype=int)[BINS]),
    (PrivUnit(3, 2.0), UNIT),
    (GaussianVector(1.0, 3, "sphere"), UNIT),
    (shuffle.ShuffledBits(60, 0.2), BITS),
    (shuffle.ShuffledBits(60, 0.2, fakes=7), BITS),
    (shuffle.ClearReports(23, 5), BINS),
    (shuffle.GeometricDummies(5, 9, 0.4, 0.5), BINS),
    (shuffle.GeometricDummies(5, 9, 0.4, 0.5, 0.75), BINS),
    (shuffle.FlippedReports(60, 11, 5, 0.1, view="sums"), BINS),
    (shuffle.FlippedReports(60, 11, 5, 0.1, view="records"), BINS),
    (shuffle.ZeroSum(60, 0.2), BITS),
    (shuffle.ShuffledHistogram(60, 5, 0.2), BINS),
    (shuffle.RealSum(60, 20.0, 3), REALS),
    (shuffle.RealSum(60, 20.0, 3, view="columns"), REALS),
]
every = pytest.mark.parametrize(("each", "values"), CASES, ids=lambda case: repr(case) if hasattr(case, "aggregate") else "")


def test_every_class_that_estimates_counts():
    classes = {kind for name, kind in profile_classes().items() if hasattr(kind, "estimate")}
    # Noise on a number has no messages of users: its estimate is the released number.
    noises = {GaussianMechanism, LaplaceMechanism, GeometricMechanism, DiscreteGaussianMechanism}
    assert {kind for kind in classes if not hasattr(kind, "aggregate")} == noises
    assert {type(each) for each, _ in CASES} == classes - noises - {shuffle.BinomialNoise}


@every
def test_counts_of_parts_add_up_and_give_the_estimate_of_all_messages(each, values):
    # The parts have different sizes, one is empty, and every part has its own seed.
    seeds = np.random.SeedSequence(5).spawn(5)
    parts = [each.randomize(part, rng=seed) for part, seed in zip(np.split(values, [7, 7, 40]), seeds)]
    dummies = each.dummies(seeds[4])
    messages = np.concatenate([*parts, dummies])
    counts = sum(each.aggregate(part) for part in [*parts, dummies])
    assert np.asarray(counts) == pytest.approx(np.asarray(each.aggregate(messages)), rel=1e-12)
    order = np.random.default_rng(1).permutation(len(messages))
    assert each.estimate(counts=counts, users=60) == pytest.approx(each.estimate(messages[order], users=60), rel=1e-12, abs=1e-12)
    assert each.estimate(messages) == pytest.approx(each.estimate(messages, users=60))


@every
def test_simulated_counts_have_the_distribution_of_aggregated_messages(each, values):
    rng, runs = np.random.default_rng(9), 400
    ways = (lambda: each.aggregate(np.concatenate([each.randomize(values, rng), each.dummies(rng)])),
            lambda: each.simulate(values, rng))
    drawn = [np.array([np.ravel(way()) for _ in range(runs)], dtype=float) for way in ways]
    spread = drawn[0].std(axis=0) + 1e-9
    assert (np.abs(drawn[0].mean(axis=0) - drawn[1].mean(axis=0)) < 5 * spread * math.sqrt(2 / runs)).all()
    assert drawn[1].std(axis=0) == pytest.approx(spread, rel=0.17)
    # Correlations of the counts agree, too.
    if spread.size > 1:
        assert np.corrcoef(drawn[0].T) == pytest.approx(np.corrcoef(drawn[1].T), abs=0.2)


@pytest.mark.parametrize("each", [LocalHashing(5, 1.0), shuffle.ClearReports(23, 5)])
def test_messages_are_simulated_a_few_at_a_time(each, monkeypatch):
    # Eight messages at a time: the last part of the 60 users, and that of the 23 dummies, is shorter.
    monkeypatch.setattr("shufflebounds._engines.errors.counted.TABLE_SIZE", each._message_bytes)
    counts = each.simulate(BINS, 3)
    assert np.abs(each.estimate(counts=counts, users=60)).max() < 1000
    if isinstance(each, shuffle.ClearReports):
        # Users send their values, and each dummy adds one to a count.
        assert (counts >= np.bincount(BINS)).all()
        assert counts.sum() == 60 + 23


@every
def test_counts_given_as_messages_are_refused(each, values):
    counts = each.aggregate(np.concatenate([each.randomize(values, 1), each.dummies(2)]))
    with pytest.raises(ValueError, match=r"counts=|counts go to"):
        each.estimate(counts)


@pytest.mark.parametrize("oracle", [KaryResponse(500, 7.0), HadamardResponse(511, 2.0),
                                    shuffle.ClearReports(50, 500)], ids=repr)
def test_small_counts_given_as_messages_are_refused(oracle):
    counts = np.random.default_rng(1).integers(0, 200, np.prod(oracle._count_shape))
    with pytest.raises(ValueError, match=r"^messages has 5.. entries, as many as there are different messages: pass counts"):
        oracle.estimate(counts)
    # With `users` the number of messages is confirmed, and the array is accepted as messages.
    assert oracle.estimate(counts, users=counts.size - oracle._dummies).size == oracle.bins


def test_counts_given_as_values_draw_a_warning():
    with pytest.warns(UserWarning, match="values has as many entries as there are bins, 500"):
        KaryResponse(500, 7.0).randomize(np.arange(500) % 100)


@every
def test_parts_of_nobody(each, values):
    nobody = each.randomize(values[:0], 1)
    assert len(nobody) == 0
    assert not np.any(each.aggregate(nobody))
    # The number of geometric dummies is random, and messages may be theirs alone.
    if not each._dummies and not isinstance(each, shuffle.GeometricDummies):
        assert len(each.dummies()) == 0
        with pytest.raises(ValueError, match="messages"):
            each.estimate(nobody)


def test_dummies_in_parts():
    for protocol in (shuffle.ClearReports(23, 5), shuffle.ShuffledBits(60, 0.2, fakes=7)):
        first = protocol.dummies(1, number=3)
        rest = protocol.dummies(2, number=protocol.fakes - 3)
        assert len(first) + len(rest) == protocol.fakes
        with pytest.raises(ValueError, match=f"number={protocol.fakes + 1} must be an integer in 0..{protocol.fakes}"):
            protocol.dummies(number=protocol.fakes + 1)
    # Dummy reports are uniform, and dummy bits are flipped zeros.
    counts = shuffle.ClearReports(10**6, 5).aggregate(shuffle.ClearReports(10**6, 5).dummies(3))
    assert np.abs(counts - 2e5).max() < 5 * 400
    assert abs(shuffle.ShuffledBits(1, 0.25, fakes=10**6).dummies(3).sum() - 250_000) < 5 * 433


@pytest.mark.parametrize("protocol", [shuffle.ShuffledBits(3, 0.1), shuffle.ZeroSum(3, 0.1), RandomizedResponse(1.0),
                                      Rappor(0.5), shuffle.PersonalizedBits([1.0, 1.0, 1.0])], ids=repr)
def test_booleans_are_bits(protocol):
    for values in ([True, False, True], np.array([True, False, True])):
        assert protocol.randomize(values, 7).tolist() == protocol.randomize([1, 0, 1], 7).tolist()
    assert protocol.aggregate(np.array([[True], [False]]) if isinstance(protocol, Rappor) else [True, False]) == 1


def test_a_boolean_value_is_zero_or_the_upper_end():
    response = RandomizedResponse(30.0, upper=5.0)
    assert response.randomize(np.array([True] * 100 + [False] * 100), 1).tolist() == [1] * 100 + [0] * 100
    assert response.prob([True, False])[0] == response.prob(5.0)
    assert KaryResponse(2, 30.0).randomize([True, False], 1).tolist() == [1, 0]


def test_messages_of_two_million_users_are_added_in_small_memory():
    protocol = shuffle.FlippedReports(2 * 10**6, 0, 500, 1e-4, view="sums")
    with pytest.raises(InfeasibleError, match=r"^the messages of 2000000 users would take 1 GB|^the messages of 3000000 users"):
        shuffle.FlippedReports(3 * 10**6, 0, 500, 1e-4, view="sums").randomize(np.zeros(3 * 10**6, dtype=int))
    counts = protocol.simulate(np.repeat(np.arange(500), 4000), 1)
    assert np.abs(protocol.estimate(counts=counts) - 4000).max() < 6 * math.sqrt(protocol.variance)


@pytest.mark.parametrize("call", [
    lambda: shuffle.ClearReports(2**53, 4).dummies(1),
    lambda: shuffle.FlippedReports(2, 2**50, 4, 0.1, view="sums").dummies(1),
    lambda: shuffle.FlippedReports(2, 1, 2**53, 0.1, view="sums").randomize([0, 1], 1),
    lambda: shuffle.FlippedReports(2, 1, 2**40, 0.1, view="records").randomize([0, 1], 1),
    lambda: shuffle.RealSum(2**13, 1.0, 2**20).randomize(np.zeros(2**13)),
    lambda: shuffle.ShuffledHistogram(2, 2**40, 0.1).randomize([0, 1]),
    lambda: UnaryEncoding(2**20, 0.5, 0.1).randomize(np.zeros(2**11)),
])
def test_messages_beyond_the_memory_are_refused_with_what_to_do(call):
    with pytest.raises(InfeasibleError, match=r"^the messages of .* take .* GB: at most 1.07 GB are made; .*add up aggregate"):
        call()


@pytest.mark.parametrize(("call", "text"), [
    (lambda: KaryResponse(5, 1.0).estimate(), "messages=None: pass the messages, or counts=..., the sum of aggregate"),
    (lambda: KaryResponse(5, 1.0).estimate([1], counts=[1]), "messages and counts are both given: pass one of them"),
    (lambda: KaryResponse(5, 1.0).estimate(counts=[1, 2]), r"counts has shape \(2,\): it must be of shape \(5,\)"),
    (lambda: KaryResponse(5, 1.0).estimate(counts=[1, 0, 0, 0, 0.5]), "counts holds 0.5: every entry must be a whole"),
    (lambda: KaryResponse(5, 1.0).estimate(counts=[1, 0, 0, 0, -1]), "counts holds -1"),
    (lambda: KaryResponse(5, 1.0).estimate(counts=[1, 0, 0, 2, 1], users=5), "counts are those of 4 users, not of users=5"),
    (lambda: UnaryEncoding(2, 0.5, 0.1).estimate(counts=[1, 2]), "users=None must be the number of users whose messages"),
    (lambda: UnaryEncoding(2, 0.5, 0.1).estimate(counts=[1, 6], users=5), "counts holds 6: every entry must be at most 5"),
    (lambda: SubsetSelection(5, 1.0, 2).estimate(counts=[1, 0, 0, 1, 1]), "counts sums to 3: it must be a multiple of size"),
    (lambda: RandomizedResponse(1.0).estimate([3000]), "messages holds 3000: every entry must be 0 or 1"),
    (lambda: RandomizedResponse(1.0).estimate(3000), r"messages=3000 is one number: .* estimate\(counts=3000\)"),
    (lambda: RandomizedResponse(1.0).estimate(counts=[3, 4], users=9), r"counts has shape \(2,\): it must be one number"),
    (lambda: shuffle.ShuffledBits(10**9, 1e-6).estimate(3000), r"messages=3000 is one number: .* estimate\(counts=3000\)"),
    (lambda: shuffle.ShuffledBits(10**9, 1e-6).estimate(counts=3000, users=10**8), "users=100000000 must be 1000000000, as in the"),
    (lambda: shuffle.ShuffledBits(9, 0.1).estimate([1, 0]), "messages has shape .* it must have 9 entries, those of all users=9"),
    (lambda: shuffle.ShuffledBits(2, 0.1, fakes=3).estimate([1, 0]), "it must have 5 entries, those of all users=2 and the 3 du"),
    (lambda: shuffle.ShuffledBits(2, 0.1).randomize([1, 0, 1]), "values has 3 entries: at most users=2, one for each user"),
    (lambda: shuffle.ShuffledBits(2, 0.1).simulate([1]), "values has 1 entries: it must have users=2, .*add up aggregate"),
    (lambda: shuffle.ZeroSum(5, 0.1).estimate(7), r"messages=7 is one number: .* estimate\(counts=7\)"),
    (lambda: shuffle.ZeroSum(2, 0.1).estimate([3, 0]), r"messages holds 3: every entry must be a whole number in 0..2"),
    (lambda: shuffle.ZeroSum(2, 0.1).estimate(counts=5), "counts holds 5: every entry must be at most 4"),
    (lambda: shuffle.ShuffledHistogram(5, 3, 0.1).estimate([7, 8, 9]), r"messages has shape \(3,\): .*counts go to estimate"),
    (lambda: shuffle.RealSum(5, 1.0, 3).estimate(7), r"messages has shape \(\): .*counts go to estimate"),
    (lambda: PrivUnit(3, 2.0).estimate(counts=[9.0, 0, 0], users=5), "counts has length 9: it must be at most 5"),
    (lambda: PrivUnit(3, 2.0).estimate([9.0, 0, 0]), r"messages has shape \(3,\): .*sums of messages go to"),
    (lambda: PrivUnit(3, 2.0).estimate(counts=[9.0, 0], users=5), r"counts has shape \(2,\): it must be \(3,\)"),
    (lambda: shuffle.PersonalizedBits([1.0, 2.0]).randomize([1]), r"values has shape \(1,\): it must be \(2,\).* part="),
    (lambda: shuffle.PersonalizedBits([1.0, 2.0]).randomize([1], part=[2]), "part holds 2"),
])
def test_bad_calls(call, text):
    with pytest.raises(ValueError, match=text):
        call()


def test_binomial_noise_takes_counts_and_releases():
    noise = shuffle.BinomialNoise(20, 0.5)
    released = noise.randomize([3, 5], 1)
    assert noise.aggregate(released).tolist() == released.tolist()
    assert noise.estimate(released).tolist() == noise.estimate(counts=released).tolist() == (released - 10.0).tolist()
    assert noise.estimate(counts=13) == 3.0
