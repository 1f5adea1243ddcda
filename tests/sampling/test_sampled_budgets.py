"""Sampled mechanisms at eps close to the pure budget, mechanisms with several pairs, and mechanisms that must be refused."""

import math

import mpmath as mp
import numpy as np
import pytest

from shufflebounds.mechanisms import FiniteRandomizer, GaussianMechanism, KaryResponse, Rappor
from shufflebounds.sampling import RandomAllocation, ReplaceOne, SampledPair, Subsampled, WithoutReplacement
from shufflebounds.shuffle import BinomialNoise, ClearReports, GeometricDummies, ShuffledBits, ShuffledHistogram, StrongerClones
from tests.strategies import slow, thinned

ROWS = (
    (0.3099240565480875, 0.17633207302331744, 0.317974580386828, 0.19576929004176702),
    (0.33800401259656754, 0.14924976937941747, 0.3807666003012664, 0.13197961772274858),
)


@pytest.mark.parametrize("delta", thinned([0.0, 5e-324, 1e-310, 1.5034419298415715e-138, 1e-12], 2))
@pytest.mark.parametrize(
    "profile",
    [
        WithoutReplacement(KaryResponse(2**53, 10.131995973437295), records=10, batch=1),
        WithoutReplacement(FiniteRandomizer(ROWS), records=1000, batch=3),
        Subsampled(Rappor(0.0, 0.9, 0.025989248897014962, 3, 10), 1e-100),
        SampledPair(Rappor(0.0, 0.9, 0.025989248897014962, 3, 10), 1e-100),
        ReplaceOne(SampledPair(KaryResponse(3, 1.0), 0.1)),
    ],
    ids=lambda profile: type(profile).__name__,
)
def test_epsilon_meets_its_delta(profile, delta):
    """delta(epsilon(d)) <= d holds in double precision, even if epsilon(d) is the pure budget."""
    assert profile.delta(profile.epsilon(delta)) <= delta


def exact_renyi(order, rate, removed):
    """Return the largest Renyi divergence of the sampled rows, over both orders of the rows, with 60 digits."""
    with mp.workdps(60):
        a, q, found = mp.mpf(order), mp.mpf(rate), []
        for first, second in (ROWS, ROWS[::-1]):
            p, r = [mp.mpf(x) for x in first], [mp.mpf(x) for x in second]
            mixed = [(1 - q) * y + q * x for x, y in zip(p, r)]
            one, other = (mixed, r) if removed else (r, mixed)
            if a == 1:
                found.append(mp.fsum(x * mp.log(x / y) for x, y in zip(one, other)))
            else:
                found.append(mp.log(mp.fsum(x * (x / y) ** (a - 1) for x, y in zip(one, other))) / (a - 1))
        return max(found)


@pytest.mark.parametrize("order", [1.0, 1.0000000197239858, 2.0, 17.0])
@pytest.mark.parametrize("removed", [True, False])
def test_renyi_of_several_pairs_is_the_largest(order, removed):
    """The Renyi divergence is the maximum over pairs of rows.

    No single pair has the largest hockey-stick divergence at every eps, so the divergence computed from delta would be 25 % larger.
    """
    rate = 0.00010431573854442376
    pair = SampledPair(FiniteRandomizer(ROWS), rate, removed)
    exact = exact_renyi(order, rate, removed)
    low, high = pair.rdp(order, bound="lower"), pair.rdp(order)
    assert low <= exact <= high <= low * (1 + 1e-6)


@pytest.mark.parametrize("kind", [Subsampled, SampledPair])
@pytest.mark.parametrize(
    "protocol",
    [StrongerClones(1000, 2.0), ShuffledBits(100, 0.25), KaryResponse(3, 1.0).shuffled(100), StrongerClones(9, 1.0).self_compose(2),
     ReplaceOne(GaussianMechanism(1.0).subsampled(0.1)), WithoutReplacement(KaryResponse(3, 1.0), 10, 1)],
    ids=lambda profile: type(profile).__name__,
)
def test_a_protocol_private_under_replacement_is_refused(kind, protocol):
    """The number of messages reveals the number of records: delta of StrongerClones(1, 1.0) at rate 0.1 is 0.1 at every eps."""
    with pytest.raises(ValueError, match=r"a record replaced by another.*use WithoutReplacement"):
        kind(protocol, 0.1)


def test_a_protocol_is_refused_by_random_allocation():
    with pytest.raises(ValueError, match="a record replaced by another"):
        RandomAllocation(StrongerClones(1000, 2.0), 3)


@pytest.mark.parametrize(
    "protocol",
    [StrongerClones(9, 1.0), slow(ClearReports(40, 30)), GeometricDummies(3, 40, 0.5, 0.75), slow(ShuffledHistogram(9, 3, 0.25))],
    ids=lambda profile: type(profile).__name__,
)
def test_releases_on_batches_of_a_protocol_private_under_replacement(protocol):
    # A batch of all records is the protocol itself, and fewer records in a batch do not weaken the guarantee.
    every, half = (WithoutReplacement(protocol, 9 * parts, 9).self_compose(2) for parts in (1, 2))
    both = protocol.self_compose(2)
    for eps in (0.0, 0.25, 1.0):
        assert every.delta(eps, bound="lower") <= both.delta(eps)
        assert both.delta(eps, bound="lower") <= every.delta(eps)
        assert 0 < half.delta(eps, bound="lower") <= half.delta(eps) <= every.delta(eps)


@pytest.mark.filterwarnings("ignore:shift")
def test_releases_on_batches_of_mechanisms_without_finite_losses():
    # A release on all records reveals the dataset with probability delta(0), and otherwise nothing.
    for mechanism in (BinomialNoise(0, 0.5), ClearReports(0, 2), GeometricDummies(2, 0, 0.5, 0.66)):
        twice, sure = WithoutReplacement(mechanism, records=3, batch=1).self_compose(2), mechanism.delta(0.0)
        exact = 1 - (1 - sure / 3) ** 2
        for eps in (0.0, 0.5, 3.0):
            assert twice.delta(eps, bound="lower") <= exact <= twice.delta(eps) + 1e-15
            assert twice.delta(eps) <= exact * (1 + 1e-9)


def test_local_randomizers_and_their_compositions_are_sampled():
    for mechanism in (KaryResponse(3, 1.0), KaryResponse(3, 1.0).self_compose(2)):
        sides = [Subsampled(mechanism, 0.5).delta(0.25, bound=bound) for bound in ("lower", "upper")]
        assert 0 < sides[0] <= sides[1]


def test_beyond_the_pure_budget_delta_is_zero():
    step = WithoutReplacement(FiniteRandomizer(ROWS), records=1000, batch=3)
    pure = step.epsilon(0.0)
    assert (step.delta(np.array([pure, np.nextafter(pure, 9.0), 2 * pure])) == 0).all()
    assert step.log_delta(pure, bound="lower") == -math.inf


def test_divergence_of_order_one_of_wide_losses():
    """The divergence of order 1 is the integral of (1/E + 1/E^2) delta(E) over E >= 1.

    Here delta = a - b E with a = 2^-53 and b = 2^-1000, and it is (a - b) ln(a/b). A quadrature in pieces of width 30 of t = ln E
    violated the bound by 1e-10.
    """
    batch = WithoutReplacement(FiniteRandomizer([[2.0**-1000, 1.0], [2.0**-53, 1 - 2.0**-53]]), records=1, batch=1)
    with mp.workdps(700):
        a, b = mp.mpf(2) ** -53, mp.mpf(2) ** -1000
        ((lower, upper),) = batch._samples._divergences(np.array([1.0]), True)
        assert lower <= (a - b) * mp.log(a / b) <= upper
        # The divergences of the two orders of the pair are smaller.
        exact = [p * mp.log(p / q) + (1 - p) * mp.log((1 - p) / (1 - q)) for p, q in ((a, b), (b, a))]
        assert batch.rdp(1.0, bound="lower") <= max(exact) <= batch.rdp(1.0)


def test_a_budget_that_underflows_is_rounded_up():
    """2.0077772689814543e-315 was rounded to a smaller subnormal number, beyond which delta was 0."""
    profile = Subsampled(KaryResponse(10, 2.0077772689814543e-215), 1e-100)
    nearest = 2.0077772689814543e-215 * 1e-100
    assert profile.epsilon(0.0) > nearest
    assert profile.log_delta(nearest) > -math.inf
