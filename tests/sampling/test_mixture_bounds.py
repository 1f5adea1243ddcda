"""Bounds by joint convexity of the Renyi divergences and mu of mixtures, and the lower bound of ReplaceOne."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from mpmath import mp, mpf

from shufflebounds.mechanisms import (
    DiscreteGaussianMechanism,
    FiniteRandomizer,
    GaussianMechanism,
    GeometricMechanism,
    RandomizedResponse,
)
from shufflebounds.profile import DominatingPair
from shufflebounds.profile.extend import ClosedForms
from shufflebounds.sampling import AllocationPair, RandomAllocation, ReplaceOne, Subsampled, WithoutReplacement
from shufflebounds.shuffle import ClearReports, Shuffled
from tests.strategies import slow

ORDERS = np.array([1.0, 1.5, 2.0, 8.0, 40.0])


def exact_sampled_renyi(sigma: float, rate: float, order: int) -> mpf:
    """Return the binomial sum of Mironov, Talwar, Zhang (2019), section 3.3, for removing a record, at an integer order."""
    with mp.workdps(40):
        s, q = mpf(sigma), mpf(rate)
        weights = [mp.binomial(order, k) * (1 - q) ** (order - k) * q**k for k in range(order + 1)]
        terms = (weight * mp.exp(mpf(k * k - k) / (2 * s * s)) for k, weight in enumerate(weights))
        return mp.log(mp.fsum(terms)) / (order - 1)


@pytest.mark.parametrize(("sigma", "rate"), [(1.0, 0.01), (7.5, 0.41)])
def test_sampled_gaussian_renyi_is_bounded_on_both_sides(sigma, rate):
    pair = GaussianMechanism(sigma).subsampled(rate).pairs()[0]
    for order in (2, 8):
        exact = float(exact_sampled_renyi(sigma, rate, order))
        assert pair.rdp(float(order), bound="lower") <= exact * (1 + 1e-12)
        upper = pair.rdp(float(order))
        assert exact * (1 - 1e-12) <= upper <= order / (2 * sigma**2)


class Mixture(ClosedForms):
    def __init__(self, whole, rate: float) -> None:
        self.whole, self.rate = whole, rate

    def mixture(self):
        return (self.whole,), self.rate


@pytest.mark.parametrize("rate", [1e-80, 1e-3, 0.5, 1.0])
def test_limit_of_a_mixture_is_joint_convexity(rate):
    orders = np.array([1.0, 1 + 1e-9, 2.0, 50.0])
    for mu in (1e-6, 0.8, 2.0, 8.0, 37.0):
        whole = GaussianMechanism(1 / mu)
        value = Mixture(whole, rate).renyi_limit(orders, True)
        with mp.workdps(130):
            for order, d, v in zip(orders.tolist(), whole.rdp(orders).tolist(), value.tolist(), strict=True):
                step = mpf(order) - 1
                exact = mpf(rate) * d if step == 0 else mp.log(1 - mpf(rate) + mpf(rate) * mp.exp(step * d)) / step
                assert exact <= v or v >= d
                assert v <= exact * (1 + mpf(10) ** -11) + mpf(10) ** -300


@pytest.mark.parametrize(
    ("mixed", "sigma"),
    [
        (GaussianMechanism(1.0).subsampled(0.01), 1.0),
        slow(WithoutReplacement(GaussianMechanism(2.0, 2.0), 100, 7), 1.0),
        slow(RandomAllocation(GaussianMechanism(1.5), 100, chosen=3), 1.5 / math.sqrt(3)),
        slow(GaussianMechanism(1.5).shuffled(100), 1.5),
    ],
)
def test_mixtures_are_no_worse_than_their_mechanism(mixed, sigma):
    assert mixed.gdp_mu() <= (1 + 1e-12) / sigma
    assert (np.asarray(mixed.rdp(ORDERS)) <= (1 + 1e-12) * ORDERS / (2 * sigma**2)).all()


@pytest.mark.parametrize(
    ("mixed", "mu"),
    [
        (GaussianMechanism(2.0).subsampled(1e-3), 0.5),
        (WithoutReplacement(GaussianMechanism(2.0, 2.0), 100, 7), 1.0),
        (AllocationPair(GaussianMechanism(2.0), 100, False), 0.5),
        (RandomAllocation(GaussianMechanism(2.0), 10**4), 0.5),
        (RandomAllocation(GaussianMechanism(2.0), 100, chosen=4), 1.0),
    ],
)
def test_sampling_does_not_change_mu_of_normal_noise(mixed, mu):
    assert mu * (1 - 1e-12) <= mixed.gdp_mu(bound="lower") <= mu <= mixed.gdp_mu() <= mu * (1 + 1e-12)


def test_mu_of_allocated_noise_is_approached_in_the_tails():
    # One of t steps has the record. The test rejects if some output exceeds T; its probabilities are sums of tails.
    sigma, steps, cut = 2.0, 1000, 10**6
    with mp.workdps(40):
        tail = [mp.erfc((mpf(cut) - mean / mpf(sigma)) / mp.sqrt(2)) / 2 for mean in (0, 1)]
        level, power = steps * tail[0], tail[1] + (steps - 1) * tail[0]
        mu = mp.sqrt(-2 * mp.log(level)) - mp.sqrt(-2 * mp.log(power))
    assert RandomAllocation(GaussianMechanism(sigma), steps).gdp_mu(bound="lower") == pytest.approx(float(mu), rel=1e-4)


@pytest.mark.parametrize(
    "profile",
    [
        RandomAllocation(GeometricMechanism(0.3, 1, bound=2), 3),
        AllocationPair(GeometricMechanism(0.3, 1, bound=2), 3),
        AllocationPair(GeometricMechanism(0.3, 1, bound=2), 3, False),
        ClearReports(fakes=100, bins=3),
    ],
)
def test_outputs_that_reveal_the_record_make_divergences_infinite(profile):
    for bound in ("lower", "upper"):
        assert profile.gdp_mu(bound=bound) == math.inf
        assert (np.asarray(profile.rdp([1.0, 8.0], bound=bound)) == math.inf).all()


def test_compositions_of_mixtures_are_finite():
    steps = GaussianMechanism(2.0).subsampled(0.1).self_compose(9)
    assert steps.gdp_mu() <= 1.5 * (1 + 1e-12)
    assert math.isfinite(steps.rdp(4.0))


def test_infinite_loss_of_shuffled_messages_is_infinite_from_below():
    # Only the target can send the third output, and only for the first input, so this output reveals the target's input.
    shuffled = Shuffled(FiniteRandomizer([[0.5, 0.4, 0.1], [0.6, 0.4, 0.0]]), users=10**4)
    assert shuffled.gdp_mu(bound="lower") == math.inf
    assert (np.asarray(shuffled.rdp([1.0, 2.0], bound="lower")) == math.inf).all()


@pytest.mark.slow
def test_few_users_of_discrete_gaussian_have_finite_divergences():
    shuffled = DiscreteGaussianMechanism(2.0).shuffled(50)
    assert np.isfinite(shuffled.rdp([1.0, 2.0, 8.0])).all()


def test_replaced_gaussian_records():
    # The mechanism is a sum of values in [-1, 1] with N(0, 1) noise. The worst replacement, of -1 by 1, changes the sum by 2.
    replaced, two = ReplaceOne(GaussianMechanism(1.0)), GaussianMechanism(1.0, 2.0)
    for eps in (0.0, 0.5, 2.0, 6.0):
        for bound in ("lower", "upper"):
            assert replaced.log_delta(eps, bound=bound) == pytest.approx(two.log_delta(eps, bound=bound), rel=1e-9)
    assert replaced.gdp_mu(bound="lower") == pytest.approx(2.0)
    # By group privacy, the mu of the two steps are added.
    assert 2.0 <= replaced.gdp_mu() <= 2.0 * (1 + 1e-12)
    for order in ORDERS:
        for bound in ("lower", "upper"):
            assert replaced.rdp(order, bound=bound) == pytest.approx(2 * order, rel=1e-9)


def test_replaced_records_of_samples():
    # Replacing a record by one with value 0 has the effect of a removal, and replacing one with value 0 that of an addition. For
    # log-concave noise, opposite contributions are worse; of a pair nothing else is known.
    sampled = Subsampled(DominatingPair.from_pmfs(np.log([0.5, 0.25, 0.25]), np.log([0.25, 0.25, 0.5])), 0.1)
    for eps in (0.05, 1.0):
        one_record = max(pair.log_delta(eps, bound="lower") for pair in sampled.pairs())
        assert ReplaceOne(sampled).log_delta(eps, bound="lower") == one_record


@pytest.mark.slow
def test_several_steps_chosen_of_gaussian_noise():
    # If all steps are chosen, the sum of the outputs is a sufficient statistic, and mu is the square root of the number of steps.
    exact = GaussianMechanism(1.0, math.sqrt(2.0))
    all_steps = RandomAllocation(GaussianMechanism(1.0), 2, chosen=2)
    for eps in (0.0, 1.0, 4.0):
        assert exact.log_delta(eps) * (1 + 1e-9) - 1e-9 <= all_steps.log_delta(eps, bound="lower") <= exact.log_delta(eps)
    # For the sum of 100 outputs, 5 of which used the record, mu is 5/10.
    part = RandomAllocation(GaussianMechanism(1.0), 100, chosen=5)
    assert GaussianMechanism(2.0).log_delta(1.0) - 1e-9 <= part.log_delta(1.0, bound="lower") < part.log_delta(1.0)


@pytest.mark.parametrize("eps", [0.0, 0.25, 0.5])
def test_several_steps_chosen_against_enumeration(eps):
    flip, steps, chosen = Fraction(1, 4), 4, 2
    allocation = RandomAllocation(RandomizedResponse(math.log(3)), steps, chosen=chosen)
    sets = list(itertools.combinations(range(steps), chosen))

    def mass(outputs, entered):
        return math.prod(1 - flip if bit == (i in entered) else flip for i, bit in enumerate(outputs))

    laws = [(sum(mass(y, entered) for entered in sets) / len(sets), mass(y, ())) for y in itertools.product((0, 1), repeat=steps)]
    factor = Fraction(math.exp(eps))
    exact = max(sum(max(Fraction(0), p - factor * q) for p, q in pairs) for pairs in (laws, [(q, p) for p, q in laws]))
    assert 0 < allocation.delta(eps, bound="lower") <= exact <= allocation.delta(eps)


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "steps", "chosen", "reach", "deepest"), [
    (GeometricMechanism(0.7), 200, 3, 1.6, -30),
    (DiscreteGaussianMechanism(4.566), 1283, 11, 2.0, -200),
])
def test_upper_tails_of_the_loss_do_not_increase(mechanism, steps, chosen, reach, deepest):
    epoch = RandomAllocation(mechanism, steps, chosen)
    high = np.log(epoch.loss_tail(np.array([1e-3, *np.linspace(reach / 4, reach, 4)])))
    assert (np.diff(high) <= 0).all()
    assert math.log(epoch.loss_tail(1e-3, bound="lower")) <= high[0]
    # If far less mass is truncated than delta needs, losses far above eps have most of the tilted mass, and the error of the
    # transform hides delta: e^-145 at eps = 2 for discrete Gaussian noise.
    assert high[-1] < deepest
