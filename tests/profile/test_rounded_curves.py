"""Bounds of trade-off functions are rounded conservatively, also between their breakpoints, against 50 digits."""

import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds.mechanisms import DiscreteGaussianMechanism, FiniteRandomizer, KaryResponse, RandomizedResponse
from shufflebounds.profile import DominatingPair
from shufflebounds.shuffle import ShuffledBits

LEVELS = np.concatenate([np.random.default_rng(1).random(60), [1e-300, 1e-12, 1e-3, 0.25, 0.5, 0.75, 1 - 1e-9, 1 - 2**-53]])


def exact_beta(p, q, alpha):
    """Return the least type II error at level alpha between two lists of mpmath numbers."""
    atoms = sorted(((b / a if a else mp.inf, a, b) for a, b in zip(p, q)), key=lambda atom: -atom[0])
    left, power = mp.mpf(alpha), mp.mpf(0)
    for _, a, b in atoms:
        used = min(mp.mpf(1), left / a) if a else mp.mpf(1)
        power, left = power + used * b, left - used * a
    return 1 - power


def enclosed(profile, exact, levels=LEVELS):
    sides = [profile.tradeoff(bound=bound) for bound in ("lower", "upper")]
    for alpha in levels.tolist():
        value = exact(alpha)
        low, high = (side.beta(alpha) for side in sides)
        assert low <= value <= high
        logs = [side.log_beta(math.log(alpha)) for side in sides]
        assert logs[0] - 1e-10 <= logs[1]
    return sides


def normalized(weights):
    return [w / mp.fsum(weights) for w in weights]


@pytest.mark.parametrize("seed", range(6))
def test_listed_probabilities(seed):
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.full(7, (0.1, 1.0, 10.0)[seed % 3]), 2)
    with np.errstate(divide="ignore"):
        logs = np.log(rows)
    with mp.workdps(120):
        masses = [normalized([mp.exp(mp.mpf(x)) for x in row]) for row in logs.tolist()]
        low, high = enclosed(DominatingPair.from_pmfs(*logs), lambda alpha: exact_beta(*masses, alpha))
        for eps in (0.0, 0.3, 1.0):
            delta = mp.fsum(max(b - mp.exp(mp.mpf(eps)) * a, 0) for a, b in zip(*masses))
            assert high.delta(eps) <= delta <= low.delta(eps)


def test_probabilities_that_lack_mass():
    """The missing 5e-10 may belong to an outcome that the other list lacks, so each error of a test may be smaller by it."""
    p, q = np.array([0.6, 0.3, 0.1 - 5e-10]), np.array([0.2, 0.3, 0.5 - 5e-10])
    with mp.workdps(120):
        masses = [[mp.exp(mp.mpf(x)) for x in np.log(law).tolist()] for law in (p, q)]
        lost = [1 - mp.fsum(law) for law in masses]
        whole = [*masses[0], lost[0], mp.mpf(0)], [*masses[1], mp.mpf(0), lost[1]]
        low = DominatingPair.from_pmfs(np.log(p), np.log(q)).tradeoff()
        for alpha in LEVELS.tolist():
            value = exact_beta(*whole, alpha)
            assert value - 1e-9 <= low.beta(alpha) <= value


@pytest.mark.parametrize("budget", [1e-9, 0.1, 1.0, 7.3, 40.0])
@pytest.mark.parametrize("sides", [2, 5])
def test_randomized_response(budget, sides):
    with mp.workdps(120):
        top = mp.exp(mp.mpf(budget))
        masses = [[w / (top + sides - 1) for w in law] for law in ([top, *[1] * (sides - 1)], [1, top, *[1] * (sides - 2)])]
        profile = RandomizedResponse(budget) if sides == 2 else KaryResponse(sides, budget)
        enclosed(profile, lambda alpha: exact_beta(*masses, alpha))


def test_finite_randomizer():
    rows = [[0.5, 0.3, 0.2], [0.25, 0.35, 0.4]]
    with mp.workdps(120):
        first, second = (normalized([mp.mpf(x) for x in row]) for row in rows)
        # Both orders count, so the curve is the hull of two curves.
        enclosed(FiniteRandomizer(rows), lambda alpha: min(exact_beta(first, second, alpha), exact_beta(second, first, alpha)),
                 np.array([0.5]))


def test_discrete_gaussian():
    with mp.workdps(120):
        k = range(-40, 42)
        masses = [normalized([mp.exp(-mp.mpf(j - shift) ** 2 / 8) for j in k]) for shift in (0, 1)]
        low = DiscreteGaussianMechanism(2.0).tradeoff()
        for alpha in LEVELS.tolist():
            assert low.beta(alpha) <= exact_beta(*masses, alpha)


def test_shuffled_bits():
    users, flip = 4, 0.25
    with mp.workdps(120):
        def law(ones):
            out = [mp.mpf(1)]
            for bit in range(users):
                one = 1 - mp.mpf(flip) if bit < ones else mp.mpf(flip)
                out = [a * (1 - one) + b * one for a, b in zip([*out, 0], [0, *out])]
            return out

        pairs = [(law(ones), law(ones + 1)) for ones in range(users)]
        low = ShuffledBits(users, flip).tradeoff()
        for alpha in LEVELS.tolist():
            assert low.beta(alpha) <= min(min(exact_beta(a, b, alpha), exact_beta(b, a, alpha)) for a, b in pairs)


def test_the_ends_of_a_curve_are_exact():
    """Levels of 0 and 1 are not rounded, and an upper bound that underflows is the smallest positive double."""
    for profile in (KaryResponse(3, 1.0), ShuffledBits(10, 0.0), FiniteRandomizer([[0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])):
        for bound in ("lower", "upper"):
            assert profile.tradeoff(bound=bound).beta(1.0) == 0.0
    assert ShuffledBits(10, 0.0).tradeoff(bound="upper").beta(0.05) == 5e-324
    assert KaryResponse(3, 1.0).tradeoff(bound="upper").beta(0.0) == 1.0
