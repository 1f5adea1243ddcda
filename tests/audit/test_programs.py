"""Audits of programs: planted faults are found, and the library's own implementations of its protocols are not refuted."""

import numpy as np
import pytest

from shufflebounds import audit, mechanisms, shuffle
from shufflebounds.profile import DominatingPair

USERS = 20
BITS = [0] * USERS, [1] + [0] * (USERS - 1)
CLAIM = shuffle.ShuffledBits.calibrate(users=USERS, eps=1.0, delta=1e-6)
HIDDEN = shuffle.ShuffledBits.calibrate(users=USERS, eps=1.0, delta=1e-6, fakes=100)


def half_the_flip(values, rng):
    return shuffle.ShuffledBits(USERS, CLAIM.flip / 2).simulate(values, rng)


def one_coin_for_all(values, rng):
    return int((np.array(values) ^ (rng.random() < CLAIM.flip)).sum())


def no_dummies(values, rng):
    return int(HIDDEN.randomize(values, rng).sum())


@pytest.mark.parametrize(("run", "claim", "runs", "most"), [
    (half_the_flip, CLAIM, 2000, 1e-6), (one_coin_for_all, CLAIM, 300, 1e-40), (no_dummies, HIDDEN, 1000, 1e-3),
])
@pytest.mark.slow
def test_planted_faults(run, claim, runs, most):
    found = audit.program(run, claim, *BITS, runs=runs, rng=11)
    assert found.p_value(claim) < most
    assert found.relation == "replace-one"


def counts(protocol):
    """Return a program that randomizes every user's value, adds the dummy reports, and counts the shuffled messages."""
    def run(values, rng):
        total = protocol.aggregate(protocol.randomize(values, rng))
        added = getattr(protocol, "_dummies", 0) or isinstance(protocol, shuffle.GeometricDummies)
        return total + protocol.aggregate(protocol.dummies(rng)) if added else total
    return run


def released(mechanism):
    """Return a program that releases one number."""
    return lambda value, rng: mechanism.randomize(value, rng)


def sums(randomizer):
    """Return a program that adds the messages of all users."""
    return lambda values, rng: float(np.sum(randomizer.randomize(values, rng)))


NUMBERS = [0.0] * USERS, [1.0] + [0.0] * (USERS - 1)
MATRIX = mechanisms.FiniteRandomizer([[0.6, 0.3, 0.1], [0.3, 0.4, 0.3], [0.1, 0.3, 0.6]])
COUNTED = [
    CLAIM, HIDDEN, shuffle.ZeroSum(USERS, 0.2), shuffle.ShuffledHistogram(USERS, 4, 0.2), shuffle.ClearReports(60, 4),
    shuffle.GeometricDummies(4, 12, 0.6, 0.6),
    *(shuffle.FlippedReports(USERS, 30, 3, 0.2, view=view, fake=fake)
      for view in ("sums", "records") for fake in ("uniform", "known")),
]
ORACLES = [mechanisms.KaryResponse(4, 1.0), mechanisms.SubsetSelection(4, 1.0), mechanisms.LocalHashing(4, 1.0),
           mechanisms.HadamardResponse(4, 1.0), mechanisms.UnaryEncoding.symmetric(4, 1.0),
           mechanisms.RandomizedResponse(1.0), MATRIX]
ADDED = [mechanisms.LaplaceMechanism(1.0), mechanisms.GaussianMechanism(1.0), mechanisms.GeometricMechanism(1.0, 1),
         mechanisms.DiscreteGaussianMechanism(1.0, 1), shuffle.BinomialNoise(40, 0.5)]
CASES = [
    *((one, counts(one), *BITS) for one in COUNTED),
    (shuffle.PersonalizedBits(np.linspace(0.5, 2, USERS)), counts(shuffle.PersonalizedBits(np.linspace(0.5, 2, USERS))), *BITS),
    *((one, counts(one), *NUMBERS) for one in (shuffle.RealSum(USERS, 8.0, 3), shuffle.RealSum(USERS, 8.0, 3, view="columns"))),
    *((shuffle.Shuffled(one, USERS), counts(one), *BITS) for one in ORACLES),
    *((one, released(one), 0, 1) for one in ADDED),
    (shuffle.Shuffled(ADDED[0], USERS), sums(ADDED[0]), *NUMBERS),
    (mechanisms.Rappor(0.5, bits=3), counts(mechanisms.Rappor(0.5, bits=3)), [[1, 0, 0]], [[0, 1, 0]]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "run", "data", "neighbour"), CASES, ids=lambda case: type(case).__name__)
def test_the_library_implements_its_protocols(protocol, run, data, neighbour):
    """Together these tests fail with probability at most 1e-6 if all implementations are right; the seeds are fixed."""
    found = audit.program(run, protocol, data, neighbour, runs=400, rng=2026)
    assert found.p_value(protocol) > 1e-6 / len(CASES)


def test_every_protocol_is_audited():
    audited = {type(case[0]).__name__ for case in CASES}
    simulated = {name for name in shuffle.__all__ if hasattr(getattr(shuffle, name), "simulate")
                 or hasattr(getattr(shuffle, name), "randomize")}
    assert simulated - {"Shuffled"} <= audited


@pytest.mark.slow
def test_relations_scores_and_thresholds():
    noise = mechanisms.LaplaceMechanism(1.0)
    found = audit.program(lambda values, rng: noise.randomize(sum(values), rng), noise, [1, 0], [1, 0, 1], runs=200, rng=1)
    assert (found.relation, found.p_value(noise)) == ("add-remove", 1.0)
    assert found.method == "40 thresholds from pilot runs, 200 runs on each dataset"
    constant = audit.program(lambda values, rng: 7, CLAIM, *BITS, runs=10, rng=1)
    assert (constant.epsilon(), constant.p_value(CLAIM)) == (0.0, 1.0)
    leaks = audit.program(lambda values, rng: list(values), CLAIM, *BITS, runs=60, rng=1, score=lambda output: output[0])
    assert leaks.epsilon(1e-6) > 1.0
    assert leaks.p_value(CLAIM) < 1e-9


def test_an_ordered_pair_is_that_of_data_and_neighbour():
    # P is the law of the output on the data. Its outcome "1" has no chance under Q, so the exchanged pair is refuted at once.
    p, q = [0.5, 0.0, 0.5], [0.25, 0.75, 0.0]
    pair = DominatingPair.from_pmfs(*(np.log(np.maximum(law, 1e-300)) for law in (p, q)))
    found = audit.program(lambda value, rng: float(rng.choice([0, 2, 1], p=(p, q)[value])), pair, 0, 1, runs=300, rng=4)
    assert found.p_value(pair) > 0.05
    assert found.p_value(pair.reverse()) < 1e-9


@pytest.mark.slow
def test_outputs_that_no_user_sends_do_not_count():
    matrix = mechanisms.FiniteRandomizer([[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.0, 0.0, 1.0]])
    protocol = shuffle.Shuffled(matrix, 4)
    found = audit.program(counts(matrix), protocol, [0, 0, 0, 0], [1, 0, 0, 0], runs=50, rng=1)
    assert found.p_value(protocol) > 0.05
    # Output 2 is sent on the neighbour only: it must not be 0/0 or infinite.
    leaks = audit.program(counts(matrix), protocol, [0, 0, 0, 0], [2, 0, 0, 0], runs=50, rng=1)
    assert leaks.epsilon() > 1


@pytest.mark.parametrize(("data", "neighbour", "output", "text"), [
    ([0, 0], [1, 1], 1, "differs from data in the values of 2 users"), ([0], [0, 1, 1], 1, "neighbour has 3 users, data 1"),
    ([0, 0], [[0, 0]], 1, "neighbour has shape"), ([0, 0], [0, 1], float("nan"), "is not a number"),
    ([0, 0], [0, 1], "text", "is not a number"), ([0, 0], [0, 0], 1, "values of 0 users"),
])
def test_what_is_refused(data, neighbour, output, text):
    with pytest.raises(ValueError, match=text):
        audit.program(lambda values, rng: output, CLAIM, data, neighbour, runs=10, rng=1)
    with pytest.raises(TypeError, match="protocol=3 must be a PrivacyProfile"):
        audit.program(lambda values, rng: 1, 3, *BITS, runs=10)
