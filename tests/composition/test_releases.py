"""Calibration of one release to a target for several releases together."""

import functools
import math

import pytest

from shufflebounds import InfeasibleError, composition, shuffle
from shufflebounds.mechanisms import GaussianMechanism, KaryResponse
from tests.strategies import slow

EPS, DELTA = 1.0, 1e-9


@pytest.mark.parametrize("calibrate", [
    functools.partial(shuffle.ClearReports.calibrate, bins=20),
    functools.partial(shuffle.Clones.calibrate, users=10**5),
], ids=["dummy reports", "clones"])
@pytest.mark.parametrize("releases", [1, slow(5)])
def test_releases_meet_the_target_and_nearly_use_it(calibrate, releases):
    protocol = composition.calibrate_releases(calibrate, releases, eps=EPS, delta=DELTA)
    together = protocol.self_compose(releases)
    assert together.delta(EPS) <= DELTA
    assert 0.995 * EPS < together.epsilon(DELTA) <= EPS


@pytest.mark.parametrize(("eps", "delta"), [(EPS, DELTA), (2e-3, 9e-4), (1e-5, 9e-4)])
def test_gaussian_noise_of_several_releases_is_that_of_one_with_more_noise(eps, delta):
    once = GaussianMechanism.from_dp(eps=eps, delta=delta)
    each = composition.calibrate_releases(GaussianMechanism.from_dp, 16, eps=eps, delta=delta)
    # Sixteen releases of Gaussian noise are equivalent to one release with a quarter of its sigma.
    assert each.sigma == pytest.approx(4 * once.sigma, rel=2e-3)
    assert each.sigma >= 4 * once.sigma * (1 - 1e-9)


@pytest.mark.slow
def test_releases_whose_delta_at_0_is_limited():
    # The total variation distance of few trials is that of normal noise; that of 25 releases is five times as large.
    once, each = (shuffle.BinomialNoise.calibrate(eps=0.0, delta=9e-4, releases=releases) for releases in (1, 25))
    assert each.trials == pytest.approx(25 * once.trials, rel=0.02)
    assert each.self_compose(25).delta(0.0) <= 9e-4


def test_a_target_that_several_releases_cannot_meet():
    with pytest.raises(InfeasibleError, match=r"\(eps=0.01, delta=1e-12\) cannot be met by releases=30 and devices=1: one message"):
        shuffle.ZeroSum.calibrate(10**6, eps=0.01, delta=1e-12, releases=30)


@pytest.mark.slow
def test_a_year_of_shuffled_reports():
    calibrate = functools.partial(shuffle.Shuffled.calibrate, lambda local_eps: KaryResponse(20, local_eps), users=2 * 10**5)
    month = composition.calibrate_releases(calibrate, 12, eps=EPS, delta=DELTA)
    assert 5.68 < month.randomizer.local_eps < 5.69
    assert month.self_compose(12).epsilon(DELTA) <= EPS


@pytest.mark.parametrize(("arguments", "words"), [
    ({"releases": 0}, "releases=0"), ({"releases": 2.5}, "releases=2.5"), ({"eps": 0.0}, "eps=0"), ({"delta": 0.0}, "delta=0"),
    ({"delta": math.nan}, "delta=nan"),
])
def test_invalid_targets_are_refused(arguments, words):
    given = {"releases": 3, "eps": EPS, "delta": DELTA} | arguments
    with pytest.raises(ValueError, match=words):
        composition.calibrate_releases(functools.partial(shuffle.ClearReports.calibrate, bins=20), given.pop("releases"), **given)
