"""Upper bounds of mechanisms, also shuffled, sampled and composed, are at least the advantage of one simple test.

The test is an event with its two probabilities, at the ends of the ranges of the parameters.
tests/shuffle/test_obvious_protocols.py does the same for protocols.
"""

import mpmath as mp
import pytest

from shufflebounds import mechanisms, sampling, shuffle
from tests.densities import Tilted
from tests.shuffle.test_obvious_protocols import LOGS, below, digits, holds  # noqa: F401
from tests.strategies import slow, thinned

SIGMAS = [0.03, 0.3, 1.0, 30.0, 1e6]
FAR = [0.0, 1e-12, 0.1, 1.0, 30.0, 700.0]


@pytest.mark.parametrize("sigma", thinned(SIGMAS, 3))
@pytest.mark.parametrize("point", [-3.0, 0.0, 0.5])
def test_gaussian_noise(sigma, point):
    at = mp.mpf(point) * sigma
    event = mp.ncdf(at / sigma), mp.ncdf((at - 1) / sigma)
    holds(mechanisms.GaussianMechanism(sigma), FAR, event)
    # The record is in the sample with probability `rate`.
    for rate in (1e-9, 0.1, 1.0):
        r = mp.mpf(rate)
        sampled = mechanisms.GaussianMechanism(sigma).subsampled(rate)
        mixed = r * event[0] + (1 - r) * event[1]
        holds(sampled, FAR[:5], (mixed, event[1]))
        holds(sampled, FAR[:5], (1 - event[1], 1 - mixed))


@pytest.mark.parametrize("sigma", [slow(1.0), 30.0])
@pytest.mark.parametrize("steps", [2])
def test_random_allocation(sigma, steps):
    # The test accepts the record's absence if no step has an output above t.
    for t in (-1.0, 0.5, 2.0):
        unmoved, moved = mp.ncdf(mp.mpf(t)), mp.ncdf(mp.mpf(t) - 1 / mp.mpf(sigma))
        without, held = unmoved**steps, unmoved ** (steps - 1) * moved
        profile = sampling.RandomAllocation(mechanisms.GaussianMechanism(sigma), steps)
        holds(profile, FAR[::3], (without, held))
        holds(profile, FAR[::3], (1 - held, 1 - without))


@pytest.mark.parametrize("budget", thinned([b for b in LOGS if b >= 1e-3], 3))
def test_pure_mechanisms(budget):
    e, parts = mp.mpf(budget), below(budget)
    # The events are one answer of k-ary response, a set with one value and without the other, and two bits of an encoding.
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
        # The event is that all messages are 0.
        event = (big / total) ** users, (big / total) ** (users - 1) / total
    else:
        # Every other user has the last value. The event is that no message is the target's second value and at least one is its
        # first.
        without, neither = (1 - 1 / total) ** (users - 1), (1 - 2 / total) ** (users - 1)
        event = (without * (1 - 1 / total) - neither * (1 - (big + 1) / total),
                 (without - neither) * (1 - (big + 1) / total) + without * (1 / total))
    holds(profile, below(budget), event)


@pytest.mark.slow
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
    # The joint event of all of them is compared with their composition.
    together = cases[0][0].compose(cases[3][0], cases[4][0])
    p, r = (cases[0][1][i] * cases[3][1][i] * cases[4][1][i] for i in (0, 1))
    holds(together, [0.0, 0.5, 1.0, 2.0], (p, r))


@pytest.mark.parametrize("budget", thinned([1e-12, *LOGS[2:]], 3))
def test_more_pure_mechanisms(budget):
    e, parts = mp.exp(mp.mpf(budget)), below(budget)
    binary = e / (e + 1), 1 / (e + 1)
    for mechanism in (mechanisms.PureLocal(budget), mechanisms.RandomizedResponse(budget)):
        holds(mechanism, parts, binary)
    # The event is an output that belongs to the first value and not to the second: half of the outputs of a value.
    for bins in (2, 100, 2**20):
        holds(mechanisms.HadamardResponse(bins, budget), parts, (binary[0] / 2, binary[1] / 2))
    # The event is a hash function that separates the two values, with the bucket of the first one.
    for bins, g in ((2, 2), (100, 2), (1000, 1000)):
        apart, total = 1 - mp.mpf(1) / g, e + g - 1
        holds(mechanisms.LocalHashing(bins, budget, g), parts, (apart * e / total, apart / total))
    # Caps around opposite vectors are disjoint.
    for dimension in (2, 30, 2**20):
        unit = mechanisms.PrivUnit(dimension, budget)
        cap, one = mp.mpf(unit.cap), 1 - mp.mpf(2) ** -40
        holds(unit, parts, (one * cap * e / (1 + cap * (e - 1)), cap / (1 + cap * (e - 1))))


@pytest.mark.parametrize("sigma", thinned([1e-3, 0.05, 0.3, 1.0, 5.0], 3))
def test_discrete_gaussian_noise(sigma):
    s, reach = mp.mpf(sigma), int(40 * sigma) + 40
    weights = {k: mp.exp(-mp.mpf(k) ** 2 / (2 * s * s)) for k in range(-reach, reach + 1)}
    total = mp.fsum(weights.values())
    for sensitivity in (1, 3):
        if sensitivity > 1e4 * sigma:
            continue
        for top in (-1, 0, 2):
            # The truncated mass is negligible relative to the sums.
            p, q = (mp.fsum(w for k, w in weights.items() if k <= t) / total for t in (top, top - sensitivity))
            holds(mechanisms.DiscreteGaussianMechanism(sigma, sensitivity), FAR[:5], (p, q))


def test_rest_of_the_mechanisms():
    for sigma in SIGMAS[1:]:
        for domain in ("cube", "sphere"):
            # The first entries of the two vectors differ by 1.
            event = mp.ncdf(mp.mpf(1) / (2 * sigma)), mp.ncdf(-mp.mpf(1) / (2 * sigma))
            holds(mechanisms.GaussianVector(sigma, 5, domain), FAR[:4], event)
    for f in (1e-12, 1e-3, 0.5, 0.99):
        half = mp.mpf(f) / 2
        holds(mechanisms.Rappor(f), below(2 * float(mp.log((1 - half) / half))), ((1 - half) ** 2, half**2))
    for p, beta, q in ((1.0001, 1e-9, 2.0), (3.0, 0.5, 3.0), (1e10, 0.9, 1e10)):
        alpha = mp.mpf(beta) / (mp.mpf(p) - 1)
        known = mechanisms.RatioBounded(p, beta, q)
        for profile in (known, known.shuffled(1)):
            holds(profile, below(float(mp.log(p))), (p * alpha, alpha))
    # The event is that the output is below 1/2.
    for slope in (0.125, 1.0, 1.75):
        one = Tilted(slope)
        randomizer = mechanisms.DensityRandomizer(one.cdf, one.pdf, (0, 1), (0, 1), sf=one.sf)
        budget = float(mp.log((1 + mp.mpf(slope) / 2) / (1 - mp.mpf(slope) / 2)))
        holds(randomizer, below(budget), (mp.mpf(0.5) + mp.mpf(slope) / 8, mp.mpf(0.5) - mp.mpf(slope) / 8))
    # The probabilities are multiples of a power of 2, and the second input never produces one of the outputs.
    rows = [[0.5, 0.25, 0.25], [0.0, 2.0**-40, 1 - 2.0**-40]]
    holds(mechanisms.FiniteRandomizer(rows), FAR[:5], (mp.mpf(0.75), mp.mpf(2) ** -40))


@pytest.mark.parametrize("budget", [1e-3, 1.0, 12.0, 60.0])
@pytest.mark.parametrize("rate", thinned([1e-9, 0.25, 1.0], 2))
def test_samples_and_batches(budget, rate):
    e, r = mp.exp(mp.mpf(budget)), mp.mpf(rate)
    total = e + 2
    response = mechanisms.KaryResponse(3, budget)
    with_it = r * e / total + (1 - r) / total
    # If the record is not drawn, a third value takes its place.
    for profile in (response.subsampled(rate), sampling.Subsampled(response, rate), sampling.SampledPair(response, rate)):
        holds(profile, below(budget), (with_it, 1 / total))
    holds(sampling.ReplaceOne(response.subsampled(rate)), below(budget), (with_it, 1 / total))
    records = max(1, round(1 / rate))
    part = mp.mpf(1) / records
    event = part * e / total + (1 - part) / total, 1 / total
    holds(sampling.WithoutReplacement(response, records, 1), below(budget), event)
    for removed in (True, False):
        # The event is that at least one of two steps shows the first value, or that neither does.
        p, q = e / total, 1 / total
        event = (1 - (1 - p) * (1 - q), 1 - (1 - q) ** 2) if removed else ((1 - q) ** 2, (1 - p) * (1 - q))
        holds(sampling.AllocationPair(response, 2, removed), below(budget), event)


def test_no_noise_in_a_bin_of_a_histogram():
    for users in (1, 5, 1000):
        for gamma in (1e-300, 0.01, 0.5):
            holds(shuffle.ShuffledHistogram(users, 3, gamma), FAR[:4], (mp.mpf(gamma) ** users, 0))
