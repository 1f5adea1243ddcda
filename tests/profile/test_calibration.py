"""Every `calibrate`: its result satisfies delta(eps) <= delta and epsilon(delta) <= eps, and slightly less noise does not."""

import inspect

import pytest

from shufflebounds import mechanisms, shuffle
from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.calibration import meets
from tests.strategies import slow

TARGETS = [(1.0, 1e-6), slow((0.3, 1e-9)), (0.7371298041236, 3.1e-4), (2.0, 0.001)]
CASES = {
    "ShuffledBits": lambda e, d: shuffle.ShuffledBits.calibrate(10**4, eps=e, delta=d),
    "BinomialNoise": lambda e, d: shuffle.BinomialNoise.calibrate(eps=e, delta=d),
    "BinomialNoise, skewed": lambda e, d: shuffle.BinomialNoise.calibrate(eps=e, delta=d, prob=0.1),
    "ClearReports": lambda e, d: shuffle.ClearReports.calibrate(20, eps=e, delta=d),
    "FlippedReports, records": lambda e, d: shuffle.FlippedReports.calibrate(1000, 2, eps=e, delta=d, view="records"),
    "FlippedReports, sums": lambda e, d: shuffle.FlippedReports.calibrate(16, 2, eps=e, delta=d, view="sums"),
    "ShuffledHistogram": lambda e, d: shuffle.ShuffledHistogram.calibrate(10**5, 50, eps=e, delta=d),
    "ZeroSum": lambda e, d: shuffle.ZeroSum.calibrate(10**5, eps=e, delta=d),
    "RealSum": lambda e, d: shuffle.RealSum.calibrate(300, 2, eps=e, delta=d),
    "Clones": lambda e, d: shuffle.Clones.calibrate(eps=e, delta=d, local_eps=2.5),
    "StrongerClones": lambda e, d: shuffle.StrongerClones.calibrate(eps=e, delta=d, users=10**4),
    "Shuffled": lambda e, d: shuffle.Shuffled.calibrate(mechanisms.KaryResponse(4, 2.5), eps=e, delta=d),
    "GaussianMechanism": lambda e, d: mechanisms.GaussianMechanism.from_dp(eps=e, delta=d, sensitivity=0.7),
    "GeometricMechanism": lambda e, d: mechanisms.GeometricMechanism.from_dp(eps=e, delta=d, sensitivity=2),
    "LaplaceMechanism": lambda e, d: mechanisms.LaplaceMechanism.from_eps(eps=e, sensitivity=0.7, delta=d),
    "LaplaceMechanism, pure": lambda e, d: mechanisms.LaplaceMechanism.from_eps(eps=e, sensitivity=0.7),
}


SLOW = {"RealSum"}


def test_every_class_that_calibrates_is_here():
    public = [getattr(module, name) for module in (shuffle, mechanisms) for name in module.__all__]
    able = {
        kind.__name__
        for kind in public
        if inspect.isclass(kind) and issubclass(kind, PrivacyProfile) and (hasattr(kind, "calibrate") or hasattr(kind, "from_dp"))
    }
    assert able <= {name.split(",")[0] for name in CASES}


@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("name", [slow(name) if name in SLOW else name for name in CASES])
def test_target_is_met_from_both_ends(name, target):
    eps, delta = target
    profile = CASES[name](eps, delta)
    delta = 0.0 if name.endswith("pure") else delta
    assert profile.delta(eps) <= delta
    assert profile.epsilon(delta) <= eps
    assert meets(profile, eps, delta)


@pytest.mark.parametrize("bins", [2, 500])
def test_the_targets_that_were_missed_by_a_rounding(bins):
    for profile in (
        shuffle.ShuffledHistogram.calibrate(10**5, bins, eps=1.0, delta=1e-6),
        shuffle.ShuffledBits.calibrate(10**6, eps=1.0, delta=1e-6),
        shuffle.ZeroSum.calibrate(10**6, eps=1.0, delta=1e-6),
    ):
        assert profile.delta(1.0) <= 1e-6
        assert 1 - 1e-9 < profile.epsilon(1e-6) <= 1


# At these targets, delta(eps) met the target but epsilon(delta) did not, because of subnormal numbers or a large gap of the bounds.
ONCE_MISSED = {
    "ClearReports": (0.5, 5e-324),
    "Clones": (0.5, 5e-324),
    "Shuffled, users": (0.001, 1e-300),
    "Shuffled, budget": (0.3, 1e-200),
    "GeometricMechanism": (1.0, 1e-300),
}
MORE = {
    "Shuffled, users": lambda e, d: shuffle.Shuffled.calibrate(mechanisms.KaryResponse(4, 2.5), eps=e, delta=d),
    "Shuffled, budget": lambda e, d: shuffle.Shuffled.calibrate(
        lambda b: mechanisms.KaryResponse(4, b), eps=e, delta=d, users=10**4),
}


@pytest.mark.parametrize("name", ONCE_MISSED)
def test_extreme_targets_are_met_from_both_ends(name):
    eps, delta = ONCE_MISSED[name]
    assert meets((CASES | MORE)[name](eps, delta), eps, delta)


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
