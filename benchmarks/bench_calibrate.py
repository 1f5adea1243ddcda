"""Times of the calibration of every protocol for a billion users and more."""

import pytest

from shufflebounds import shuffle
from shufflebounds.mechanisms import KaryResponse

CASES = {
    "ShuffledBits": lambda users: shuffle.ShuffledBits.calibrate(users=users, eps=1.0, delta=1e-9),
    "RealSum": lambda users: shuffle.RealSum.calibrate(users=users, bits=16, eps=1.0, delta=1e-9),
    "ZeroSum": lambda users: shuffle.ZeroSum.calibrate(users=users, eps=1.0, delta=1e-9),
    "ShuffledHistogram": lambda users: shuffle.ShuffledHistogram.calibrate(users=users, bins=1000, eps=1.0, delta=1e-9),
    "FlippedReports, records": lambda users: shuffle.FlippedReports.calibrate(
        users=users, bins=100, eps=1.0, delta=1e-9, view="records"),
    "FlippedReports, sums": lambda users: shuffle.FlippedReports.calibrate(users=users, bins=10, eps=1.0, delta=1e-9, view="sums"),
    "Clones": lambda users: shuffle.Clones.calibrate(eps=1.0, delta=1e-9, users=users),
    "StrongerClones": lambda users: shuffle.StrongerClones.calibrate(eps=1.0, delta=1e-9, users=users),
    "Shuffled": lambda users: shuffle.Shuffled.calibrate(lambda eps: KaryResponse(10, eps), eps=1.0, delta=1e-9, users=users),
}


@pytest.mark.parametrize("users", [10**9, 10**12])
@pytest.mark.parametrize("name", CASES)
def test_users(benchmark, name, users):
    found = benchmark.pedantic(CASES[name], args=(users,), rounds=3)
    assert found.delta(1.0) <= 1e-9


def test_fakes(benchmark):
    # The calibrated protocol has more than five billion dummy reports.
    assert benchmark(shuffle.ClearReports.calibrate, bins=10**6, eps=0.1, delta=1e-9).fakes > 5e9


def test_trials(benchmark):
    assert benchmark(shuffle.BinomialNoise.calibrate, eps=1e-4, delta=1e-9).trials > 5e9


def test_users_asked_for(benchmark):
    assert benchmark(shuffle.StrongerClones.calibrate, eps=1e-3, delta=1e-9, local_eps=4.0).users > 1e9
