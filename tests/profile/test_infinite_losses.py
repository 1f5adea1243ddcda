"""Pairs with outcomes that only one distribution can produce: every method against sums over the outcomes with 40 digits."""

import math
from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    FiniteRandomizer,
    GaussianMechanism,
    GaussianVector,
    GeometricMechanism,
    LaplaceMechanism,
)
from shufflebounds.profile import DominatingPair
from shufflebounds.sampling import AllocationPair, RandomAllocation, ShuffledBatches, Subsampled
from shufflebounds.shuffle import BinomialNoise, PersonalizedClones, Shuffled, ShuffledBits
from tests.oracles import at, hull, thresholds

EPSILONS = [0.0, 1e-3, 0.1, 1.0, 3.0, 30.0, 700.0]
LEVELS = [0.0, 1e-300, 1e-9, 1e-3, 0.05, 0.2, 0.5, 0.8, 0.99, 1.0]
ORDERS = [1.0, 1.5, 2.0, 10.0, math.inf]


@pytest.fixture(autouse=True)
def forty_digits():
    with mpmath.workdps(40):
        yield


def noise(eps, bound):
    """Return bounded geometric noise added to 0 and to 1, whose largest and smallest outcomes identify the value."""
    q = mpmath.exp(-mpf(eps))
    law = [q ** abs(k) * (1 if abs(k) == bound else 1 - q) / (1 + q) for k in range(-bound, bound + 1)]
    return [*law, mpf(0)], [mpf(0), *law]


def mixed(pair, rate):
    p, q = pair
    return [rate * a + (1 - rate) * b for a, b in zip(p, q)], q


def together(pair, times):
    return tuple([mpmath.fprod(terms) for terms in product(law, repeat=times)] for law in pair)


def averaged(pair, steps):
    """Return the average over i of (P in step i, Q in all other steps), and Q in all steps."""
    p, q = pair
    words = list(product(range(len(p)), repeat=steps))
    one = [mpmath.fsum(mpmath.fprod((p if i == j else q)[w] for i, w in enumerate(word)) for j in range(steps)) / steps
           for word in words]
    return one, together(pair, steps)[1]


def both(pair):
    return [pair, pair[::-1]]


def logs(law):
    return [float(mpmath.log(x)) if x else -math.inf for x in law]


def hockey_stick(pairs, eps):
    factor = mpmath.exp(mpf(eps))
    return max(mpmath.fsum(max(a - factor * b, 0) for a, b in zip(p, q)) for p, q in pairs)


def divergence(p, q, order):
    if any(a > 0 and not b for a, b in zip(p, q)):
        return mpmath.inf
    seen = [(a, b) for a, b in zip(p, q) if a]
    if order == math.inf:
        return max(mpmath.log(a / b) for a, b in seen)
    if order == 1:
        return mpmath.fsum(a * mpmath.log(a / b) for a, b in seen)
    order = mpf(order)
    return mpmath.log(mpmath.fsum(a**order * b ** (1 - order) for a, b in seen)) / (order - 1)


def fractions(law):
    return [Fraction(x.man_exp[0]) * Fraction(2) ** x.man_exp[1] for x in law]


def between(low, exact, high, apart):
    """Assert lower <= exact <= upper, up to the rounding of this comparison, and a gap of at most `apart`."""
    assert low <= exact * (1 + mpf(2) ** -50)
    assert exact <= high * (1 + mpf(2) ** -50)
    assert exact == mpmath.inf or high - low <= apart * exact


QUARTER = mpf(1) / 4
ZEROS = ([mpf(1) / 2, QUARTER, QUARTER, mpf(0)], [mpf(0), QUARTER, mpf(5) / 8, mpf(1) / 8])
APART = ([mpf(1), mpf(0)], [mpf(0), mpf(1)])
SAME = ([QUARTER, 3 * QUARTER], [QUARTER, 3 * QUARTER])
LISTED = {name: DominatingPair.from_pmfs(*map(logs, pair)) for name, pair in (("zeros", ZEROS), ("apart", APART), ("same", SAME))}
RATE = mpf(0.1)


def geometric(eps, bound):
    return GeometricMechanism(eps, bound=bound)


with mpmath.workdps(40):
    CASES = {
        "one value of noise": (geometric(0.5, 1), both(noise(0.5, 1))),
        "noise of three values": (geometric(0.02, 3), both(noise(0.02, 3))),
        "noise twice": (geometric(0.002, 2).self_compose(2), both(together(noise(0.002, 2), 2))),
        "noise, sampled": (geometric(0.004, 3).subsampled(0.1), both(mixed(noise(0.004, 3), RATE))),
        "noise, sampled, removal": (geometric(0.004, 3).subsampled(0.1).pairs()[0], [mixed(noise(0.004, 3), RATE)]),
        "noise, sampled, addition": (geometric(0.004, 3).subsampled(0.1).pairs()[1], [mixed(noise(0.004, 3), RATE)[::-1]]),
        "noise, sampled, twice": (geometric(0.4, 1).subsampled(0.1).self_compose(2), both(together(mixed(noise(0.4, 1), RATE), 2))),
        "noise, at rate 1": (geometric(0.3, 2).subsampled(1.0), both(noise(0.3, 2))),
        "allocated": (RandomAllocation(geometric(0.0133, 2), 3), both(averaged(noise(0.0133, 2), 3))),
        "allocated, removal": (AllocationPair(geometric(0.0133, 2), 3), [averaged(noise(0.0133, 2), 3)]),
        "allocated, addition": (AllocationPair(geometric(0.0133, 2), 3, False), [averaged(noise(0.0133, 2), 3)[::-1]]),
        "listed": (LISTED["zeros"], [ZEROS]),
        "listed twice": (LISTED["zeros"].self_compose(2), [together(ZEROS, 2)]),
        "listed, addition": (Subsampled(LISTED["zeros"], 0.1).pairs()[1], [mixed(ZEROS, RATE)[::-1]]),
        "allocated, listed": (RandomAllocation(LISTED["zeros"], 2), both(averaged(ZEROS, 2))),
        "matrix": (FiniteRandomizer([[0.5, 0.25, 0.25, 0.0], [0.0, 0.25, 0.625, 0.125]]), both(ZEROS)),
        "nothing in common": (LISTED["apart"], [APART]),
        "nothing in common, twice": (LISTED["apart"].self_compose(2), [together(APART, 2)]),
        "nothing in common, sampled": (Subsampled(LISTED["apart"], 0.1), both(mixed(APART, RATE))),
        "nothing in common, allocated": (RandomAllocation(LISTED["apart"], 3), both(averaged(APART, 3))),
        "equal": (LISTED["same"], [SAME]),
        "equal, twice": (LISTED["same"].self_compose(2), [SAME]),
        "equal, sampled": (Subsampled(LISTED["same"], 0.1), both(SAME)),
        "equal, allocated": (RandomAllocation(LISTED["same"], 2), both(SAME)),
    }  # fmt: skip


EXPENSIVE = {"allocated", "allocated, addition", "allocated, listed", "nothing in common, allocated", "equal, allocated"}


@pytest.mark.parametrize(("profile", "pairs"), [
    pytest.param(*case, id=name, marks=[pytest.mark.slow] * (name in EXPENSIVE)) for name, case in CASES.items()
])  # fmt: skip
def test_every_view(profile, pairs):
    # The allowed gap is larger for random allocation, whose curves are computed from fewer values of delta.
    apart = 0.03 if isinstance(profile, AllocationPair | RandomAllocation) else 1e-9
    below, above = profile.tradeoff(), profile.tradeoff(bound="upper")
    # With two orders, the profile's curve belongs to the larger delta of both. It is the lower convex hull of the two curves.
    curve = hull({point for pair in pairs for point in thresholds(*map(fractions, pair))})
    for alpha in LEVELS:
        exact, low, high = float(at(curve, Fraction(alpha))), below.beta(alpha), above.beta(alpha)
        assert low <= exact + 1e-15
        assert exact <= high + 1e-15
        # At alpha near 0, finitely many values of delta do not determine f.
        assert high - low <= apart or alpha < 1e-9
    for eps in EPSILONS:
        exact, reverse = hockey_stick(pairs, eps), hockey_stick([pair[::-1] for pair in pairs], eps)
        if exact > 1e-12 or not exact:
            between(profile.delta(eps, bound="lower"), exact, profile.delta(eps), 1e-5)
        # The masses of a curve have an absolute error of 1e-15.
        assert above.delta(eps) - 1e-15 <= reverse <= below.delta(eps) + 1e-15
        if eps:
            tail = max(mpmath.fsum(a for a, b in zip(p, q) if a > mpmath.exp(mpf(eps)) * b) for p, q in pairs)
            assert profile.loss_tail(eps, bound="lower") <= tail * (1 + 1e-14)
            assert tail <= profile.loss_tail(eps) * (1 + 1e-14)
    for order in ORDERS:
        exact = max(divergence(*pair, order) for pair in pairs)
        low, high = profile.rdp(order, bound="lower"), profile.rdp(order)
        assert low <= exact * (1 + 1e-14)
        assert exact <= high * (1 + 1e-14)
    unbounded = any((a == 0) != (b == 0) for p, q in pairs for a, b in zip(p, q))
    assert (profile.gdp_mu() == math.inf) == unbounded


def test_divergence_of_a_sampled_pair_counts_what_only_the_other_law_produces():
    pair = GeometricMechanism(eps=0.0038702584950475777, bound=7).subsampled(0.08736579164253393).pairs()[1]
    exact = divergence(*mixed(noise(0.0038702584950475777, 7), mpf(0.08736579164253393))[::-1], 2)
    between(pair.rdp(2.0, bound="lower"), exact, pair.rdp(2.0), 1e-12)


@pytest.mark.parametrize("profile", [
    GeometricMechanism(0.5, bound=1), GeometricMechanism(0.3, bound=5), GeometricMechanism(0.5, bound=10**6),
    GeometricMechanism(0.7, 3), DiscreteGaussianMechanism(1.0, 30), LISTED["zeros"], LISTED["apart"], ShuffledBits(9, 0.25).pair(3),
    *BinomialNoise(9, 0.3).pairs(), *GeometricMechanism(0.5, bound=2).subsampled(0.3).pairs(),
    *Subsampled(LISTED["apart"], 0.3).pairs(), *GeometricMechanism(0.5, bound=2).subsampled(1.0).pairs(),
], ids=repr)  # fmt: skip
def test_listed_masses_of_both_laws_sum_to_one(profile):
    known = profile._pair_info()
    atoms = known.atoms
    assert math.fsum(np.exp([*atoms.log_p, atoms.log_rest, atoms.log_lost])) == pytest.approx(1, abs=1e-12)
    reverse = profile.reverse()._pair_info().atoms
    lost = atoms.log_lost_other(reverse, symmetric=profile.reverse() is profile)
    assert math.fsum(np.exp([*(atoms.log_p - atoms.loss), atoms.log_other, lost])) == pytest.approx(1, abs=1e-12)
    # An outcome that is impossible for Q in one order is impossible for P in the other.
    assert (atoms.log_rest, atoms.log_other) == pytest.approx((reverse.log_other, reverse.log_rest), rel=1e-12)


def test_unlisted_outcomes_of_a_far_shift_count_in_an_allocation():
    """A mass of e^-40 is shifted by 30, beyond the truncation range, and contributes to delta at every eps."""
    with mpmath.workdps(30):
        total = mpmath.fsum(mpmath.exp(-mpf(k) ** 2 / 2) for k in range(-60, 61))
        law = [mpmath.exp(-mpf(k) ** 2 / 2) / total for k in range(-60, 121)]
        away = [mpmath.exp(-mpf(k - 30) ** 2 / 2) / total for k in range(-60, 121)]
        exact = mpmath.log(hockey_stick([(away, law)], 730.0))
    pair = AllocationPair(DiscreteGaussianMechanism(1.0, 30), 1, removed=False)
    assert pair.log_delta(730.0, bound="lower") <= exact <= pair.log_delta(730.0)


def test_an_allocation_counts_what_only_one_law_produces():
    """Only one of the two orders has mass beyond the largest finite loss."""
    law = noise(0.013278948837213627, 6)
    for removed, pair in ((True, averaged(law, 2)), (False, averaged(law, 2)[::-1])):
        profile = AllocationPair(GeometricMechanism(eps=0.013278948837213627, bound=6), 2, removed)
        for eps in (0.5, 5.0, 700.0):
            between(profile.delta(eps, bound="lower"), hockey_stick([pair], eps), profile.delta(eps), 1e-9)


@pytest.mark.parametrize("profile", [
    *(build(noise) for noise in (GaussianMechanism(1.0), DiscreteGaussianMechanism(0.8)) for build in (
        lambda noise: noise, lambda noise: noise.subsampled(0.1), lambda noise: noise.shuffled(1), lambda noise: noise.shuffled(2),
        lambda noise: noise.shuffled(10, participation=0.5), lambda noise: noise.shuffled(10).self_compose(3))),
    GaussianVector(1.0, 3).shuffled(10), Shuffled(GaussianMechanism(1.0), 10, inputs=(0.0, 0.25)),
    ShuffledBatches(GaussianMechanism(1.0), 10), PersonalizedClones.gaussian([1.0, 2.0]),
], ids=repr)
def test_unbounded_losses_have_no_pure_budget(profile):
    # Each message may have any likelihood ratio in favour of the target's first value, so that no eps has delta = 0.
    for bound in ("lower", "upper"):
        assert profile.epsilon(0.0, bound=bound) == profile.rdp(math.inf, bound=bound) == math.inf
        assert profile.epsilon([0.0, 0.0], bound=bound)[1] == math.inf


@pytest.mark.parametrize("profile", [LaplaceMechanism(0.5).shuffled(5), LaplaceMechanism(1.0).shuffled(1),
                                     PersonalizedClones.laplace([1.0, 2.0])], ids=repr)
def test_the_largest_loss_is_the_pure_budget(profile):
    largest = profile.rdp(math.inf, bound="lower")
    assert 0 < profile.epsilon(0.0, bound="lower") == pytest.approx(largest, rel=1e-11)
    assert largest <= profile.epsilon(0.0)
