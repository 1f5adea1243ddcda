"""Bounds against exact values for eps within an ulp of the pure budget, and for parameters at the ends of their ranges."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds import InfeasibleError, shuffle, tradeoff
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism, GeometricMechanism
from shufflebounds.profile import DominatingPair
from shufflebounds.selection import svt_scales
from shufflebounds.tails import poisson_binom_window
from tests.strategies import slow


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(120):
        yield


def ulps_below(x, many=3):
    for _ in range(many):
        x = math.nextafter(x, 0)
        yield x


def encloses(profile, eps, exact):
    exact = mp.log(exact) if exact > 0 else mp.ninf
    assert profile.log_delta(eps, bound="lower") <= exact <= profile.log_delta(eps), (profile, eps, exact)


@pytest.mark.parametrize("chance", [5e-324, 1e-300, 1e-9, 0.1, 0.3, 0.49999, 0.5 - 1e-13, 0.5 - 2.0**-53, 0.5])
def test_budget_is_the_next_double(chance):
    exact = mp.log((1 - mp.mpf(chance)) / chance)
    for many in (1, 2, 7, 2**20):
        # The flip probability lam/(2 users) is exact.
        above = shuffle.RealSum(1, 2 * chance, many).epsilon(0.0)
        assert many * exact <= above
        assert math.nextafter(above, -math.inf) < many * exact or above == many * exact
    # Of one bit, or of one record of two bits, the outcome with the largest loss alone has a loss above eps.
    for protocol, many in ((shuffle.ShuffledBits(1, chance), 1), (shuffle.FlippedReports(1, 0, 2, chance, view="records"), 2)):
        above = protocol.epsilon(0.0)
        for eps in [above / 2, *ulps_below(above)] if chance > 5e-324 else []:
            gap = many * exact - mp.mpf(eps)
            value = mp.log((1 - mp.mpf(chance)) ** many * (1 - mp.exp(-gap))) if gap > 0 else -mp.inf
            assert protocol.log_delta(eps, bound="lower") <= value <= protocol.log_delta(eps) <= value + mp.mpf(1e-12)


@pytest.mark.parametrize("flip", [1e-300, 1e-9, 0.1, 0.3, 0.4999, 0.5 - 1e-13, 0.5 - 1e-16])
@pytest.mark.parametrize("users", [1, 2, 5])
def test_bits_next_to_their_budget(users, flip):
    # The outcome with all bits 0 is the only one with a loss above eps.
    bits, q = shuffle.ShuffledBits(users, flip, ones=0), mp.mpf(flip)
    total = shuffle.RealSum(users, 2 * users * flip, 1)
    for eps in ulps_below(bits.epsilon(0.0)):
        exact = (1 - q) ** (users - 1) * (1 - q - mp.exp(mp.mpf(eps)) * q)
        encloses(bits, eps, max(exact, 0))
        if 2 * users * flip / (2 * users) == flip:
            assert total.log_delta(eps) >= bits.log_delta(eps, bound="lower")
    assert bits.delta(bits.epsilon(0.0)) == 0


def test_personal_bits_of_tiny_budgets():
    one = shuffle.PersonalizedBits([6.98e-9], bits=[1], target=0)
    assert one.delta(6.980801410550315e-09) == 0 == one.delta(6.980801410550315e-09, bound="lower")
    for eps in ulps_below(6.98e-9):
        keep = 1 / (1 + mp.exp(-mp.mpf(6.98e-9)))
        encloses(one, eps, keep - mp.exp(mp.mpf(eps)) * (1 - keep))
    many = shuffle.PersonalizedBits([0.4425, 2.81, 1e-17, 2.28e-12, 0], bits=[1, 0, 0, 0, 1], target=3)
    assert many.delta(many.epsilon(0.0)) == 0


@pytest.mark.parametrize("scale", [1e-300, 1e-10, 1.0])
def test_clones_of_weight_a_quarter_one_ulp_below_three(scale):
    # No user sends a clone, so delta follows from the two weights alone.
    for weight in (0.25, 0.1, 1e-9, 0.499999, 1e-290):
        profile, w = shuffle.PersonalizedClones(weight, [0.0], scale), mp.mpf(weight)
        for eps in ulps_below(profile.epsilon(0.0)):
            encloses(profile, eps, max(scale * (1 - w - mp.exp(mp.mpf(eps)) * w), 0))
    ten = shuffle.PersonalizedClones(0.25, np.linspace(0.01, 0.4, 10), 1e-10)
    assert 0 < ten.delta(math.nextafter(math.log(3), 0), bound="lower") <= ten.delta(math.nextafter(math.log(3), 0))


@pytest.mark.parametrize("bins", [2, 3, 5])
@pytest.mark.parametrize("fakes", [0, 1])
@pytest.mark.parametrize("view", ["sums", "records"])
def test_reports_next_to_their_budget(view, fakes, bins):
    flip, q = 0.3957546622364118, mp.mpf(0.3957546622364118)
    protocol = shuffle.FlippedReports(3, fakes, bins, flip, view=view)
    pure = protocol.epsilon(0.0)
    # Delta is at most `gain`, that of the target's two bits alone. Without dummies it is at least `gain` times `rest`, the
    # probability of certain bits of the other users, which is the same for both values of the target.
    for eps in (0.8463716487192399, *ulps_below(pure)):
        gain = max((1 - q) ** 2 - mp.exp(mp.mpf(eps)) * q**2, mp.mpf(0))
        rest = ((1 - q) * q) ** (2 + fakes)
        upper = protocol.log_delta(eps)
        assert upper >= (mp.log(gain * rest) if gain and fakes == 0 else -mp.inf)
        assert upper <= mp.log(gain) + mp.mpf(1e-10) if gain else upper == -math.inf
        assert protocol.log_delta(eps, bound="lower") <= upper


@pytest.mark.parametrize("bins", [2, 3, 10])
def test_records_of_tiny_budgets(bins):
    flip = 0.5 - 2e-13
    one = shuffle.FlippedReports(1, 0, bins, flip, view="records")
    encloses(one, 0.0, 1 - 2 * mp.mpf(flip))
    for users in (2, 5):
        more = shuffle.FlippedReports(users, 0, bins, flip, view="records")
        assert more.delta(0.0, bound="lower") <= more.delta(0.0) <= (1 - 2 * flip) * (1 + 1e-10)


@pytest.mark.parametrize("lam", [2 * (1 - 1e-13), 2 - 2.0**-51, 1.9, 1e-300])
def test_columns_of_tiny_budgets(lam):
    # For two users and two columns, all outcomes are enumerated.
    mp.mp.dps = 1500
    protocol = shuffle.RealSum(2, lam, 2, view="columns")
    q = mp.mpf(protocol.flip)
    column = {m: [(1 - a) * (1 - b), a * (1 - b) + b * (1 - a), a * b]
              for m, (a, b) in {0: (q, q), 1: (1 - q, q), 2: (1 - q, 1 - q)}.items()}
    pure = protocol.epsilon(0.0)
    for eps in (0.0, 0.3 * pure, 0.9 * pure, *ulps_below(pure)):
        factor, best = mp.exp(mp.mpf(eps)), mp.mpf(0)
        for first in (0, 1):
            for second in (0, 1):
                sides = [(column[first + t], column[second + t]) for t in (0, 1)]
                for (a, b), (c, d) in (sides, sides[::-1]):
                    best = max(best, sum(max(x * y - factor * z * w, 0) for x, z in zip(a, c) for y, w in zip(b, d)))
        encloses(protocol, eps, best)


def test_equal_losses_within_rounding():
    # x - y rounds to eps, although the exact difference is larger.
    rng = np.random.default_rng(3)
    with mp.workdps(60):
        for _ in range(200):
            p = rng.dirichlet(np.ones(4))
            log_p, log_q = np.log(p), np.log(rng.permutation(p))
            eps = float((log_p - log_q).max())
            exact = sum(max(mp.exp(mp.mpf(x)) - mp.exp(mp.mpf(y) + mp.mpf(eps)), 0) for x, y in zip(log_p, log_q))
            value = tradeoff.log_hockey_stick(log_p, log_q, eps)
            if exact == 0:
                assert value == -math.inf
            else:
                assert abs(value - mp.log(exact)) <= 1e-13 * abs(value)
            assert tradeoff.max_divergence(log_p, log_q, 0.0) >= max(mp.mpf(x) - mp.mpf(y) for x, y in zip(log_p, log_q))


@pytest.mark.parametrize("depth", [-300.0, -746.0, -1e6])
def test_an_outcome_of_one_distribution_alone_counts_for_every_mass(depth):
    first, second = [math.log(0.5), math.log(0.5), depth], [math.log(0.5), math.log(0.5), -math.inf]
    assert tradeoff.renyi_divergence(first, second, [1.0, 2.0, math.inf]).tolist() == [math.inf] * 3
    assert tradeoff.renyi_divergence(second, first, 2.0) < 1e-100
    assert DominatingPair.from_pmfs(first, second).rdp(2.0) == math.inf


@pytest.mark.slow
def test_a_lower_bound_of_eps_stays_below_the_pure_budget():
    protocol = shuffle.RealSum(10**9, 2e-291, 2**20)
    low, high = (protocol.epsilon(0.5, bound=side) for side in ("lower", "upper"))
    assert low <= high <= protocol.epsilon(0.0) < math.inf
    assert protocol.delta(low, bound="lower") >= 0.5


def test_one_gaussian_user_is_the_gaussian_mechanism():
    for sigma in (0.03, 0.5):
        alone, exact = shuffle.PersonalizedClones.gaussian([sigma]), GaussianMechanism(sigma)
        assert exact.epsilon(1e-3, bound="lower") <= alone.epsilon(1e-3) <= exact.epsilon(1e-3) * (1 + 1e-9)
        assert alone.log_delta(1.0, bound="lower") <= exact.log_delta(1.0)


def test_noise_that_overflows_is_refused():
    with pytest.raises(ValueError, match=r"^eps=.* must be in \[1e-290, 700\]"):
        svt_scales(5e-324, 0.01, 2)


@pytest.mark.parametrize("call", [
    lambda: poisson_binom_window([0.5], [2**53]),
    lambda: shuffle.FlippedReports(2, 0, 2**53, 0.1, view="sums").simulate([0, 1], 1),
])
def test_arrays_beyond_the_memory_are_refused_with_their_size(call):
    with pytest.raises(InfeasibleError, match=r"would hold .* numbers, .* GB"):
        call()


def listed(rows, users, eps):
    """Return the largest delta of `users` messages over all datasets, by enumeration of the multisets of outputs."""
    def added(law, row):
        out = {}
        for (seen, p), (y, r) in itertools.product(law.items(), row.items()):
            key = tuple(sorted((*seen, y)))
            out[key] = out.get(key, 0) + p * r
        return out

    deltas = []
    for others in itertools.combinations_with_replacement(rows, users - 1):
        law = {(): mp.mpf(1)}
        for row in others:
            law = added(law, row)
        for first, second in itertools.permutations([added(law, row) for row in rows], 2):
            deltas.append(mp.fsum(max(p - mp.exp(eps) * second.get(y, 0), 0) for y, p in first.items()))
    return max(deltas)


@pytest.mark.parametrize(("eps0", "sensitivity", "bound"), [(600.0, 1, 2), slow(700.0, 2, 3), (372.0, 1, 2), (231.7867, 1, 3)])
def test_clipped_noise_with_probabilities_that_underflow(eps0, sensitivity, bound):
    mp.mp.dps = 1000
    q = mp.exp(-mp.mpf(eps0) / sensitivity)
    noise = {k: q ** abs(k) * (1 if abs(k) == bound else 1 - q) / (1 + q) for k in range(-bound, bound + 1)}
    rows = [{x + k: p for k, p in noise.items()} for x in range(sensitivity + 1)]
    protocol = shuffle.Shuffled(GeometricMechanism(eps0, sensitivity, bound), 2)
    for eps in (0.0, 0.9 * eps0, 0.999 * eps0, eps0, 1.1 * eps0):
        encloses(protocol, eps, listed(rows, 2, mp.mpf(eps)))
    delta = 0.999 * protocol.delta(0.0)
    assert 0.9 * eps0 / sensitivity < protocol.epsilon(delta, bound="lower") <= protocol.epsilon(delta) < eps0


@pytest.mark.parametrize(("sigma", "users"), [(0.07910338744596222, 2), (0.07910338744596222, 3), (0.0792, 100)])
def test_likelihood_ratios_next_to_the_largest_double(sigma, users):
    # The largest likelihood ratio is e^719 or e^717.4; the largest double is e^709.8.
    noise = DiscreteGaussianMechanism(sigma, 3)
    protocol = shuffle.Shuffled(noise, users)
    density = {k: mp.exp(-mp.mpf(k) ** 2 / (2 * mp.mpf(sigma) ** 2)) for k in range(-6, 7)}
    rows = [{x + k: p / sum(density.values()) for k, p in density.items()} for x in (0, 3)]
    for eps in (0.0, 1.25, 700.0, 720.0, 2158.46):
        lower, upper = (protocol.log_delta(eps, bound=side) for side in ("lower", "upper"))
        assert lower <= upper <= noise.log_delta(eps) + 1e-11 * (1 + abs(upper))
        if users == 2:
            assert mp.log(listed(rows, 2, mp.mpf(eps))) <= upper
