"""Every `calibrate`: its result satisfies delta(eps) <= delta and epsilon(delta) <= eps, and slightly less noise does not."""

import math

import pytest

from shufflebounds import mechanisms, shuffle
from shufflebounds.profile.calibration import meets
from tests.examples import EXAMPLES
from tests.strategies import slow

TARGETS = [(1.0, 1e-6), (2.0, 3.1e-4), (0.3, 1e-9)]
DEFAULT = {"shuffle.Shuffled, users": TARGETS[:1]}
"""The targets that run by default, if they are not the first two."""

CASES = {f"{name}, {way}": calibrated for name, example in EXAMPLES.items() for way, calibrated in example.calibrated.items()}
SLOW = {"shuffle.RealSum, lam", "shuffle.FlippedReports, flip, records"}


@pytest.mark.parametrize(("name", "target"), [
    (slow if name in SLOW or target not in DEFAULT.get(name, TARGETS[:2]) else pytest.param)(name, target, id=f"{name}-{target}")
    for name in CASES for target in TARGETS])
def test_target_is_met_from_both_ends(name, target):
    eps, delta = target
    profile = CASES[name](eps, delta)
    delta = 0.0 if name.endswith("pure") else delta
    assert profile.delta(eps) <= delta
    assert profile.epsilon(delta) <= eps
    assert meets(profile, eps, delta)


@pytest.mark.parametrize("bins", [2, 500])
def test_the_targets_that_were_missed_by_a_rounding(bins):
    for profile, slack in (
        (shuffle.ShuffledHistogram.calibrate(users=10**5, bins=bins, eps=1.0, delta=1e-6), 1e-9),
        # The search over datasets ends within its own gap.
        (shuffle.ShuffledBits.calibrate(users=10**6, eps=1.0, delta=1e-6), 1e-6),
        (shuffle.ZeroSum.calibrate(users=10**6, eps=1.0, delta=1e-6), 1e-9),
    ):
        assert profile.delta(1.0) <= 1e-6
        assert 1 - slack < profile.epsilon(1e-6) <= 1


# At these targets, delta(eps) met the target but epsilon(delta) did not, because of subnormal numbers or a large gap of the bounds.
ONCE_MISSED = {
    "shuffle.ClearReports, dummy reports": (0.5, 5e-324),
    "shuffle.Clones, users": (0.5, 5e-324),
    "shuffle.Shuffled, users": (0.001, 1e-300),
    "shuffle.Shuffled, budget": (0.3, 1e-200),
    "mechanisms.GeometricMechanism, budget": (1.0, 1e-300),
}


@pytest.mark.parametrize("name", ONCE_MISSED)
def test_extreme_targets_are_met_from_both_ends(name):
    eps, delta = ONCE_MISSED[name]
    assert meets(CASES[name](eps, delta), eps, delta)


def test_a_truncated_noise_keeps_its_own_budget():
    # The losses are points at and below eps, and the search for epsilon(delta) once skipped the last one.
    noise = mechanisms.GeometricMechanism.from_dp(eps=3.237527279355827, delta=5.842900668431626e-18, sensitivity=2)
    assert noise.epsilon(5.842900668431626e-18) == noise.eps
    assert noise.epsilon(5.842900668431626e-18, bound="lower") <= noise.eps


def test_nothing_hidden_is_no_guarantee():
    profile = shuffle.ShuffledBits(10, 0.0)
    assert not meets(profile, 1.0, 0.5)
    assert meets(profile, 1.0, 1.0)
    assert meets(shuffle.ShuffledBits(10, 0.5), 0.0, 0.0)


@pytest.mark.parametrize("users", [10**6, 10**12, 10**14, slow(2**53)])
def test_the_smallest_flip_probability_where_delta_is_a_plateau(users):
    # Without a flip delta is e^(-users flip) up to eps = ln users and more, so epsilon(delta) jumps from 2.7 to 25 at this flip
    # probability. The search took the jump for a step in proportion, and returned six times the smallest number.
    eps, delta = 2.859165437057502, 3.4458318690475305e-07
    bits = shuffle.ShuffledBits.calibrate(users, eps=eps, delta=delta)
    assert bits.delta(eps) <= delta
    assert bits.epsilon(delta) <= eps
    assert shuffle.ShuffledBits(users, bits.flip * (1 - 1e-8)).delta(eps) > delta
    assert users * bits.flip == pytest.approx(-math.log(delta), rel=1e-4)
