"""Certified values of delta against closed forms and sums in mpmath; the ball must contain them to all of its digits."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds import mechanisms, shuffle
from shufflebounds.certify import outcomes_of
from shufflebounds.profile import Composition
from shufflebounds.profile.profile import DominatingPair
from shufflebounds.sampling import AllocationPair, RandomAllocation, SampledPair, ShuffledBatches, Subsampled

DIGITS = 30
P, Q = (0.5, 0.25, 0.125, 0.125), (0.125, 0.125, 0.25, 0.5)


def stick(outcomes, eps):
    """Return the hockey-stick divergence of enumerated outcomes (p, q)."""
    return mp.fsum(max(mp.mpf(0), p - mp.exp(eps) * q) for p, q in outcomes)


def exactly(logs):
    """Return the masses with these logarithms, divided by their sum."""
    masses = [mp.exp(x) for x in logs]
    return [mass / mp.fsum(masses) for mass in masses]


def assert_certified(profile, eps, exact):
    ball = profile.certify(eps, digits=DIGITS)
    # arb prints the midpoint and the radius; the value is known to DIGITS digits.
    middle, radius = (mp.mpf(x.str(60, radius=False)) for x in (ball.mid(), ball.rad()))
    assert abs(middle - exact) <= radius + abs(exact) * mp.mpf(10) ** -45
    assert radius <= abs(exact) * mp.mpf(10) ** -DIGITS
    assert profile.delta(eps, bound="lower") <= exact <= profile.delta(eps)


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(60):
        yield


@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0])
def test_a_pair_of_masses_and_its_compositions(eps):
    pair = DominatingPair.from_pmfs([math.log(p) for p in P], [math.log(q) for q in Q])
    logs = list(zip(*map(exactly, (pair.log_p, pair.log_q))))
    assert_certified(pair, eps, stick(logs, eps))
    outcomes = [tuple(map(mp.fprod, zip(*choice))) for choice in itertools.product(logs, repeat=3)]
    assert_certified(pair.self_compose(3), eps, stick(outcomes, eps))


@pytest.mark.parametrize("eps", [0.0, 0.4, 1.2])
def test_local_randomizers_and_noise(eps):
    e = mp.exp(mp.mpf(0.7))
    # k-ary response: two outputs differ, with odds e^0.7 : 1 among the five.
    assert_certified(mechanisms.KaryResponse(5, 0.7), eps, max(mp.mpf(0), (e - mp.exp(eps)) / (e + 4)))
    rows = [[0.5, 0.25, 0.25], [0.25, 0.25, 0.5], [0.25, 0.5, 0.25]]
    exact = max(stick([(mp.mpf(a), mp.mpf(b)) for a, b in zip(x, y)], eps) for x, y in itertools.permutations(rows, 2))
    assert_certified(mechanisms.FiniteRandomizer(rows), eps, exact)
    s = mp.mpf(0.8)
    normal = mp.ncdf(1 / (2 * s) - eps * s) - mp.exp(eps) * mp.ncdf(-1 / (2 * s) - eps * s)
    assert_certified(mechanisms.GaussianMechanism(0.8), eps, normal)
    assert_certified(mechanisms.LaplaceMechanism(0.8), eps, max(mp.mpf(0), 1 - mp.exp((eps - 1 / s) / 2)))


@pytest.mark.parametrize("eps", [0.05, 0.5])
def test_geometric_noise(eps):
    # K and K + 2 with probabilities proportional to r^|k|; r = e^-(eps/sensitivity).
    ratio = mp.exp(-mp.mpf(0.9) / 2)
    mass = [(1 - ratio) / (1 + ratio) * ratio ** abs(k) for k in range(-600, 601)]
    assert_certified(mechanisms.GeometricMechanism(0.9, 2), eps, stick(zip(mass[2:], mass[:-2]), eps))


@pytest.mark.parametrize("eps", [0.1, 0.6])
def test_binomial_noise_of_shuffled_bits(eps):
    masses = [mp.mpf(math.comb(40, k)) / 2**40 for k in range(41)]
    pairs = [*zip([*masses, mp.mpf(0)], [mp.mpf(0), *masses])]
    assert_certified(shuffle.BinomialNoise(40, 0.5), eps, stick(pairs, eps))


@pytest.mark.parametrize("eps", [0.05, 0.4])
def test_sampled_noise(eps):
    # With rate q: q P + (1 - q) Q against Q (record removed), and its reverse.
    q, (p0, p1) = mp.mpf(0.25), [1 / (1 + mp.exp(mp.mpf(1.0))), 1 / (1 + mp.exp(mp.mpf(-1.0)))]
    pair = [(p1, p0), (p0, p1)]
    mixed = [(q * a + (1 - q) * b, b) for a, b in pair]
    exact = max(stick(mixed, eps), stick([(b, a) for a, b in mixed], eps))
    assert_certified(Subsampled(mechanisms.KaryResponse(2, 1.0), 0.25), eps, exact)


@pytest.mark.parametrize("noise", [mechanisms.GaussianMechanism(2.0), mechanisms.LaplaceMechanism(2.0),
                                   mechanisms.GeometricMechanism(0.5), mechanisms.DiscreteGaussianMechanism(3.0)])
def test_rare_samples_of_noise_need_a_higher_precision(noise):
    """At the first precision e^eps - 1 is 0 or not; this is then divided by the rate."""
    profile = Subsampled(noise, 1e-100)
    for eps in (5e-101, 3.8e-93):
        for bound in ("lower", "upper"):
            stated, ball = profile.log_delta(eps, bound=bound), profile.certify(eps, bound=bound)
            assert float(ball.log()) == pytest.approx(stated, rel=1e-9) if stated > -math.inf else ball == 0


def test_masses_that_add_up_to_less_than_one_have_no_other_outcome():
    """1 - 2^-53 of the mass is listed; the certificate took the rest as an outcome of equal probabilities."""
    logs = [(-446.7, -(2.0**-53)), (-221.0, -(2.0**-53))]
    pair, eps = AllocationPair(DominatingPair.from_pmfs(*logs), 3, removed=False), 210.0
    p, q = ([mp.exp(x) for x in one] for one in logs)

    def excess(row):
        """Return Q - e^eps P of three results; P has one of the steps, at random, from p."""
        chances = [mp.fprod((p if step == t else q)[i] for step, i in enumerate(row)) for t in range(3)]
        return max(mp.mpf(0), mp.fprod(q[i] for i in row) - mp.exp(eps) * mp.fsum(chances) / 3)

    exact = float(mp.log(mp.fsum(map(excess, itertools.product((0, 1), repeat=3)))))
    assert float(pair.certify(eps).log()) == pytest.approx(exact, rel=1e-9)
    assert pair.log_delta(eps) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("removed", [True, False])
def test_masses_that_add_up_to_more_than_one_are_divided_by_their_sum(removed):
    """The sum of 1 + 2e-15 was taken as it is, so delta of the sample exceeded the sampling rate."""
    logs = [(1.9e-15, -400.0), (-400.0, 1.9e-15)]
    both = [((p + q) / 2, q) for p, q in zip(*map(exactly, logs))]
    exact = stick(both if removed else [(q, p) for p, q in both], 0.1)
    assert_certified(SampledPair(DominatingPair.from_pmfs(*logs), 0.5, removed), 0.1, exact)


@pytest.mark.parametrize("removed", [True, False])
def test_missing_mass_of_a_list_is_one_outcome_of_the_certificate(removed):
    """The certificate omitted 5e-12 of the mass of each of two releases, and was below delta of the third release alone."""
    laws = [[0.25, 0.75 - 5e-12], [0.5, 0.5 - 4e-12]]
    pair, noise = DominatingPair.from_pmfs(*map(np.log, laws)), mechanisms.KaryResponse(2, 2.0)
    composition = SampledPair(pair, 1e-100, removed).self_compose(2).compose(SampledPair(noise, 0.5, removed))
    first, second = ([*masses, 1 - mp.fsum(masses)] for masses in ([mp.exp(x) for x in one] for one in (pair.log_p, pair.log_q)))
    e, rare = mp.exp(mp.mpf(2)), mp.mpf(1e-100)
    one = [(rare * p + (1 - rare) * q, q) for p, q in zip(first, second)]
    coin = [((p + q) / 2, q) for p, q in ((e / (1 + e), 1 / (1 + e)), (1 / (1 + e), e / (1 + e)))]
    outcomes = [tuple(map(mp.fprod, zip(*choice))) for choice in itertools.product(one, one, coin)]
    assert_certified(composition, 0.1, stick(outcomes if removed else [(q, p) for p, q in outcomes], 0.1))


def test_random_allocation_of_one_record_to_two_steps():
    p0, p1 = 1 / (1 + mp.exp(mp.mpf(1.0))), 1 / (1 + mp.exp(mp.mpf(-1.0)))
    ones = {True: (p1, p0), False: (p0, p1)}
    # The outcomes of two steps: the record is in the first or in the second step.
    outcomes = []
    for first, second in itertools.product(ones, repeat=2):
        (a, c), (b, d) = ones[first], ones[second]
        outcomes.append(((a * d + b * c) / 2, c * d))
    for eps in (0.05, 0.4):
        exact = max(stick(outcomes, eps), stick([(q, p) for p, q in outcomes], eps))
        assert_certified(RandomAllocation(mechanisms.KaryResponse(2, 1.0), 2), eps, exact)


def test_random_allocation_of_one_record_to_two_of_three_steps():
    p, q = [mp.mpf(x) for x in (0.5, 0.25, 0.25)], [mp.mpf(x) for x in (0.25, 0.75, 0.0)]
    pair = DominatingPair.from_pmfs([math.log(0.5), math.log(0.25), math.log(0.25)], [math.log(0.25), math.log(0.75), -math.inf])
    words, sets = list(itertools.product(range(3), repeat=3)), [(0, 1), (0, 2), (1, 2)]
    outcomes = [(sum(mp.fprod(p[y] if i in used else q[y] for i, y in enumerate(word)) for used in sets) / 3,
                 mp.fprod(q[y] for y in word)) for word in words]
    for eps in (0.05, 1.4):
        exact = max(stick(outcomes, eps), stick([(b, a) for a, b in outcomes], eps))
        ball = RandomAllocation(pair, 3, 2).certify(eps, digits=12)
        assert abs(float(ball) - exact) <= 1e-12 * exact


def test_a_composition_of_different_releases():
    pair = DominatingPair.from_pmfs([math.log(p) for p in P], [math.log(q) for q in Q])
    e = mp.exp(mp.mpf(0.5))
    coin = [(e / (1 + e), 1 / (1 + e)), (1 / (1 + e), e / (1 + e))]
    logs = list(zip(*map(exactly, (pair.log_p, pair.log_q))))
    outcomes = [(a * b * c, x * y * z) for (a, x), (b, y), (c, z) in itertools.product(logs, coin, coin)]
    assert_certified(Composition([(pair, 1), (mechanisms.KaryResponse(2, 0.5), 2)]), 0.4, stick(outcomes, 0.4))


@pytest.mark.parametrize(
    "profile",
    [
        shuffle.PersonalizedClones.laplace([0.5, 1.0]),
        shuffle.RealSum(10, 3.0, 2, view="columns"),
        ShuffledBatches(mechanisms.GaussianMechanism(1.0), 3),
    ],
)
def test_classes_without_certified_digits_say_so(profile):
    with pytest.raises(TypeError, match="no certified digits"):
        profile.certify(0.5)


@pytest.mark.parametrize(("eps", "digits", "word"), [(-1.0, 15, "eps"), (math.nan, 15, "eps"), (0.5, 0, "digits")])
def test_bad_arguments(eps, digits, word):
    with pytest.raises(ValueError, match=word):
        mechanisms.KaryResponse(3, 1.0).certify(eps, digits=digits)


def test_bounded_geometric_noise_of_sensitivity_one_has_one_pair():
    noise = mechanisms.GeometricMechanism(0.5, 1, 6)
    assert RandomAllocation(noise, 1).certify(0.2).overlaps(noise.certify(0.2))
    with pytest.raises(TypeError, match="the outcomes of GeometricMechanism are not enumerated"):
        outcomes_of(mechanisms.GeometricMechanism(0.5, 2, 6))
