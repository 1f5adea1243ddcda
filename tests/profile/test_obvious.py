"""Upper sides of mechanisms, shuffled and sampled ones and compositions stand above one obvious test, lower sides below none.

As tests/shuffle/test_obvious.py, for all that is not a protocol: an event, its two chances, at the ends of the parameters.
"""

import mpmath as mp
import pytest

from shufflebounds import mechanisms, sampling, shuffle
from tests.shuffle.test_obvious import LOGS, below, digits, holds  # noqa: F401
from tests.strategies import thinned

SIGMAS = [0.03, 0.3, 1.0, 30.0, 1e6]
FAR = [0.0, 1e-12, 0.1, 1.0, 30.0, 700.0]


@pytest.mark.parametrize("sigma", SIGMAS)
@pytest.mark.parametrize("point", [-3.0, 0.0, 0.5])
def test_gaussian_noise(sigma, point):
    at = mp.mpf(point) * sigma
    event = mp.ncdf(at / sigma), mp.ncdf((at - 1) / sigma)
    holds(mechanisms.GaussianMechanism(sigma), FAR, event)
    # the first record is in a sample with the chance rate
    for rate in (1e-9, 0.1, 1.0):
        r = mp.mpf(rate)
        sampled = mechanisms.GaussianMechanism(sigma).subsampled(rate)
        mixed = r * event[0] + (1 - r) * event[1]
        holds(sampled, FAR[:5], (mixed, event[1]))
        holds(sampled, FAR[:5], (1 - event[1], 1 - mixed))


@pytest.mark.parametrize("sigma", [1.0, 30.0])
@pytest.mark.parametrize("steps", [2])
def test_random_allocation(sigma, steps):
    # no step shows more than t
    for t in (-1.0, 0.5, 2.0):
        calm, moved = mp.ncdf(mp.mpf(t)), mp.ncdf(mp.mpf(t) - 1 / mp.mpf(sigma))
        without, held = calm**steps, calm ** (steps - 1) * moved
        profile = sampling.RandomAllocation(mechanisms.GaussianMechanism(sigma), steps)
        holds(profile, FAR[::3], (without, held))
        holds(profile, FAR[::3], (1 - held, 1 - without))


@pytest.mark.parametrize("budget", [b for b in LOGS if b >= 1e-3])
def test_pure_mechanisms(budget):
    e, parts = mp.mpf(budget), below(budget)
    # as bytes travel: one answer of k-ary response, a set that holds one value and not the other, two bits of an encoding
    for k in (2, 3, 1000):
        total = mp.exp(e) + k - 1
        holds(mechanisms.KaryResponse(k, budget), parts, (mp.exp(e) / total, 1 / total))
    for k, size in ((4, 2), (100, 7)):
        own = size * mp.exp(e) / (size * mp.exp(e) + k - size)
        event = own * mp.mpf(k - size) / (k - 1), (1 - own) * mp.mpf(size) / (k - 1)
        holds(mechanisms.SubsetSelection(k, budget, size), parts, event)
    encoding = mechanisms.UnaryEncoding.optimized(3, min(budget, 690.0))
    p, q = mp.mpf(encoding.p), mp.mpf(encoding.q)
    holds(encoding, below(encoding.local_eps), (p * (1 - q), q * (1 - p)))
    holds(shuffle.Shuffled(encoding, 1), below(encoding.local_eps), (p * (1 - q), q * (1 - p)))
    holds(mechanisms.GeometricMechanism(budget), parts, (1 / (1 + mp.exp(-e)), mp.exp(-e) / (1 + mp.exp(-e))))


@pytest.mark.parametrize("budget", [0.3, 4.0, 36.7, 690.0])
@pytest.mark.parametrize(("users", "categories"), [(1, 3), (2, 2), (2, 3), (3, 100)])
def test_shuffled_responses(budget, users, categories):
    k, big = categories, mp.exp(mp.mpf(budget))
    total = big + k - 1
    profile = shuffle.Shuffled(mechanisms.KaryResponse(k, budget), users)
    if k == 2:
        # all messages are zeros
        event = (big / total) ** users, (big / total) ** (users - 1) / total
    else:
        # all others hold the last value; seen: none of the target's second value and at least one of its first
        without, neither = (1 - 1 / total) ** (users - 1), (1 - 2 / total) ** (users - 1)
        event = (without * (1 - 1 / total) - neither * (1 - (big + 1) / total),
                 (without - neither) * (1 - (big + 1) / total) + without * (1 / total))
    holds(profile, below(budget), event)


@pytest.mark.parametrize("times", thinned([1, 2, 10], 3))
def test_the_same_event_every_time(times):
    e, q = mp.mpf("0.25"), mp.mpf("0.125")
    response = mp.exp(e) / (mp.exp(e) + 1), 1 / (mp.exp(e) + 1)
    normal = mp.ncdf(mp.mpf(1) / 2), mp.ncdf(mp.mpf(1) / 2 - mp.mpf(1) / 4)
    w, rate = 1 / (mp.exp(4 * e) + 1), 2 / (mp.exp(4 * e) + 1)
    cases = [
        (mechanisms.KaryResponse(2, 0.25), response),
        (mechanisms.LaplaceMechanism(4.0), (mp.mpf(1) / 2, mp.exp(-e) / 2)),
        (mechanisms.GaussianMechanism(4.0), normal),
        (shuffle.ShuffledBits(3, 0.125, ones=0), ((1 - q) ** 3, q * (1 - q) ** 2)),
        (shuffle.StrongerClones(3, 1.0), ((1 - rate) ** 2 * (1 - w), (1 - rate) ** 2 * w)),
    ]
    for profile, (p, r) in cases:
        pure = min(profile.epsilon(0.0), 3.0)
        holds(profile.self_compose(times), [0.0, 0.3 * times * pure, 0.9 * times * pure], (p**times, r**times))
    # and all of them together
    together = cases[0][0].compose(cases[3][0], cases[4][0])
    p, r = (cases[0][1][i] * cases[3][1][i] * cases[4][1][i] for i in (0, 1))
    holds(together, [0.0, 0.5, 1.0, 2.0], (p, r))
