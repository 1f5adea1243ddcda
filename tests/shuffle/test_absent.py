"""Colluding and missing users: the guarantee is that of the users who remain, by enumeration and for every protocol."""

import itertools
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds.cli.command import main
from shufflebounds.composition import from_dict
from shufflebounds.mechanisms import KaryResponse, RandomizedResponse
from shufflebounds.shuffle import (
    ClearReports,
    Clones,
    FlippedReports,
    GeometricDummies,
    PersonalizedClones,
    RealSum,
    Shuffled,
    ShuffledBits,
    ShuffledHistogram,
    StrongerClones,
    ZeroSum,
    compare_at,
)
from tests.oracles import binomial_masses, convolved, messages
from tests.profile.test_group import encloses, hockey_stick, kary, largest
from tests.shuffle.test_compare_at import only
from tests.strategies import slow

ABSENT = {"colluding": 5, "missing": 2}
PROTOCOLS = {
    "bits": lambda n, **absent: ShuffledBits(n, 0.25, fakes=3, **absent),
    "total": lambda n, **absent: RealSum(n, 0.3 * n, 2, **absent),
    "columns": lambda n, **absent: RealSum(n, 0.3 * n, 2, view="columns", **absent),
    "records": lambda n, **absent: FlippedReports(n, 0, 3, 0.2, view="records", **absent),
    "sums": lambda n, **absent: FlippedReports(n, 2, 2, 0.2, view="sums", **absent),
    "clones": lambda n, **absent: Clones(n, 1.0, **absent), "stronger clones": lambda n, **absent: StrongerClones(n, 1.0, **absent),
    "k-ary": lambda n, **absent: Shuffled(KaryResponse(3, 1.0), n, **absent),
    "bit": lambda n, **absent: Shuffled(RandomizedResponse(1.0), n, 0.5, **absent),
    "zero sum": lambda n, **absent: ZeroSum(n, 0.3, **absent),
    "histogram": lambda n, **absent: ShuffledHistogram(n, 4, 0.3, **absent),
}


@pytest.mark.parametrize("name", [slow(name) if name in ("columns", "records", "k-ary") else name for name in PROTOCOLS])
def test_the_guarantee_is_that_of_the_remaining_users(name):
    one, fewer = PROTOCOLS[name](17, **ABSENT), PROTOCOLS[name](10)
    for bound in ("lower", "upper"):
        assert one.delta(0.5, bound=bound) == fewer.delta(0.5, bound=bound)
        assert one.epsilon(1e-6, bound=bound) == fewer.epsilon(1e-6, bound=bound)
    assert one.for_group(2).delta(0.7) == fewer.for_group(2).delta(0.7)
    assert one.delta(0.5) > PROTOCOLS[name](17).delta(0.5, bound="lower")
    assert repr(one).endswith("colluding=5, missing=2)")
    assert "colluding" not in repr(fewer)
    for copy in (from_dict(one.to_dict()), pickle.loads(pickle.dumps(one))):
        assert copy == one
        assert copy.delta(0.5) == one.delta(0.5)


def test_known_messages_tell_nothing_else():
    """The known messages and the multiset of all messages, jointly, against the messages of the others alone."""
    matrix, eps = kary(3, 1.0), 0.4
    for others in ((0, 0, 1, 2), (1, 1, 1, 1), (2, 0, 2, 0)):
        known, rest = others[:2], [matrix[x] for x in others[2:]]
        joint = 0.0
        for seen in itertools.product(range(3), repeat=2):
            share = math.prod(matrix[x][y] for x, y in zip(known, seen))
            shift = np.bincount(seen, minlength=3)
            laws = [{tuple(np.add(key, shift)): share * p for key, p in messages(*[matrix[target], *rest]).items()}
                    for target in (0, 1)]
            joint += hockey_stick(*laws, eps)
        assert joint == pytest.approx(hockey_stick(*(messages(*[matrix[target], *rest]) for target in (0, 1)), eps), rel=1e-12)


def test_the_largest_delta_falls_with_the_users_who_remain():
    # 5 users, one of whom colludes and one of whom may be missing, are 3 users.
    protocol = Shuffled(KaryResponse(3, 1.5), 5, colluding=1, missing=1)
    for eps in (0.2, 1.0):
        deltas = [largest(kary(3, 1.5), users, 1, eps) for users in (3, 4, 5)]
        assert deltas == sorted(deltas, reverse=True)
        encloses(protocol, eps, deltas[0], 1.5)


def test_nearly_fair_columns_keep_their_probability_of_a_flip():
    # lam = 2 flip 3, the parameter of the remaining users, gives another double as flip, whose distance from 1/2 is 10 % larger.
    protocol = RealSum(5, 4.999999999999995, 2, view="columns", missing=2)
    q, exact = Fraction(protocol.flip), Fraction(0)
    for ones in itertools.combinations_with_replacement(range(3), 2):
        others = [convolved(binomial_masses(m, 1 - q), binomial_masses(2 - m, q)) for m in ones]
        laws = [[convolved(law, bit) for law in others] for bit in ([1 - q, q], [q, 1 - q])]
        first, second = ([x * y for x, y in itertools.product(*pair)] for pair in laws)
        exact = max(exact, sum(max(0, p - r) for p, r in zip(first, second)))
    assert protocol.log_delta(0.0, bound="lower") <= math.log(exact) + 1e-12 <= protocol.log_delta(0.0)


def test_personalized_clones_lose_the_largest_rates():
    one = PersonalizedClones(0.2, [0.3, 0.1, 0.2], counts=[5, 30, 20], colluding=6, missing=1)
    assert one.delta(0.3) == PersonalizedClones(0.2, [0.1, 0.2], counts=[30, 18]).delta(0.3)
    alone = PersonalizedClones(0.2, [0.3, 0.1], missing=2)
    assert alone.epsilon(0.0) == pytest.approx(math.log(4))
    assert alone.delta(0.3) == pytest.approx(0.8 - math.exp(0.3) * 0.2)
    with pytest.raises(ValueError, match="leave nobody"):
        PersonalizedClones(0.2, [0.3, 0.1], missing=3)


@pytest.mark.slow
def test_calibrations():
    target = {"eps": 1.0, "delta": 1e-6, **ABSENT}
    for calibrated, again in (
        (ShuffledBits.calibrate(users=100, **target), lambda p: ShuffledBits(93, p.flip)),
        (RealSum.calibrate(users=100, bits=2, **target), lambda p: ShuffledBits(93, p.flip)),
        (ZeroSum.calibrate(users=1000, **target), lambda p: ZeroSum(993, p.gamma)),
        (ShuffledHistogram.calibrate(users=1000, bins=3, **target), lambda p: ShuffledHistogram(993, 3, p.gamma)),
        (StrongerClones.calibrate(local_eps=2.0, **target), lambda p: StrongerClones(p.users - 7, 2.0)),
        (StrongerClones.calibrate(users=100, **target), lambda p: StrongerClones(93, p.local_eps)),
        (Shuffled.calibrate(KaryResponse(5, 2.0), **target), lambda p: KaryResponse(5, 2.0).shuffled(p.users - 7)),
    ):
        assert (calibrated.colluding, calibrated.missing) == (5, 2)
        assert calibrated.delta(1.0) <= 1e-6
        assert calibrated.epsilon(1e-6) > 0.9
        if not isinstance(calibrated, RealSum):
            assert again(calibrated).epsilon(1e-6) == calibrated.epsilon(1e-6)
    assert StrongerClones.calibrate(local_eps=2.0, **target).users == StrongerClones.calibrate(
        local_eps=2.0, eps=1.0, delta=1e-6).users + 7


def test_estimates_take_the_number_that_arrived():
    for name in ("bits", "total", "sums", "zero sum", "histogram"):
        full, fewer = PROTOCOLS[name](40, missing=3), PROTOCOLS[name](38)
        if name == "total":
            fewer = RealSum(38, 0.3 * 38, 2)
        counts = fewer.simulate(np.zeros(38) if name == "total" else np.zeros(38, dtype=int), rng=1)
        assert np.allclose(full.estimate(counts=counts, users=38), fewer.estimate(counts=counts), rtol=1e-12, atol=1e-9)
        assert np.allclose(full.interval(counts=counts, users=38, confidence=0.5), fewer.interval(counts=counts, confidence=0.5),
                           rtol=1e-12, atol=1e-9)
        for users in (36, 41):
            with pytest.raises(ValueError, match="users="):
                full.estimate(counts=counts, users=users)


@pytest.mark.parametrize("absent", [{"colluding": -1}, {"missing": 1.5}, {"colluding": 20, "missing": 20}])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_bad_numbers(name, absent):
    with pytest.raises((ValueError, TypeError), match=r"colluding=|missing="):
        PROTOCOLS[name](40, **absent)


def test_one_dataset_has_no_absent_users():
    with pytest.raises(ValueError, match="ones=3"):
        ShuffledBits(40, 0.25, ones=3, missing=1)


def test_the_command(capsys):
    def printed(words):
        assert main([*words.split(), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    found = printed("epsilon shuffled-bits --users 1e3 --flip .25 --delta 1e-6 --devices 3 --colluding 100")
    assert found["epsilon"]["upper"] == ShuffledBits(1000, 0.25, colluding=100).for_group(3).epsilon(1e-6)
    assert (found["parameters"]["devices"], found["parameters"]["colluding"]) == (3, 100)
    assert "missing" not in found["parameters"]
    found = printed("calibrate clones --local-eps 2 --eps 1 --delta 1e-6 --devices 2 --missing 20")
    assert found["epsilon"]["upper"] <= 1
    protocol = Clones(found["parameters"]["users"], 2.0, missing=20)
    assert found["epsilon"]["upper"] == protocol.for_group(2).epsilon(1e-6)
    with pytest.raises(SystemExit):
        main(["epsilon", "shuffled-bits", "--users", "100", "--flip", ".25", "--delta", "1e-6", "--devices", "101"])
    assert "devices" in capsys.readouterr().err


@pytest.mark.slow
def test_comparisons_state_what_they_cover(monkeypatch):
    only(monkeypatch, ("clear reports", "geometric dummies", "histogram", "k-ary response"))
    table = compare_at(users=500, bins=2, eps=1.0, delta=1e-4, colluding=50, missing=20)
    for row in table:
        if not isinstance(row.profile, ClearReports | GeometricDummies):
            assert (row.profile.colluding, row.profile.missing) == (50, 20)
        assert row.profile.delta(1.0) <= 1e-4 * (1 + 1e-9)
    assert "up to 50 of the other users reveal" in str(table)
    assert table.covers()[-1] in str(table)


@pytest.mark.slow
def test_comparisons_for_a_person_with_several_devices(monkeypatch):
    only(monkeypatch, ("clear reports", "histogram", "k-ary response"))
    table = compare_at(users=300, bins=2, eps=2.0, delta=1e-3, devices=2)
    names = [row.name for row in table]
    assert {"clear reports", "histogram", "k-ary response"} == set(names)
    for row in table:
        assert row.profile.for_group(2).delta(2.0) <= 1e-3 * (1 + 1e-9), row.name
    assert "up to 2 of the messages" in str(table)
