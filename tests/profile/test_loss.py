"""The tail probability of the loss: for enumerated pairs, by closed forms, and from bounds of delta."""

import math

import numpy as np
import pytest
from mpmath import mp
from scipy.special import ndtr

from shufflebounds import DominatingPair
from shufflebounds.mechanisms import GaussianMechanism, GeometricMechanism, KaryResponse, LaplaceMechanism, RandomizedResponse
from shufflebounds.shuffle import BinomialNoise, ShuffledBits, StrongerClones
from shufflebounds.tradeoff import hockey_stick, loss_tail, privacy_losses

P, Q = np.array([0.4, 0.3, 0.2, 0.1, 0.0]), np.array([0.1, 0.2, 0.3, 0.2, 0.2])
with np.errstate(divide="ignore"):
    LOG_P, LOG_Q = np.log(P), np.log(Q)


def test_listed_losses():
    losses, log_mass = privacy_losses(LOG_P, LOG_Q)
    assert losses == pytest.approx(np.log([0.5, 2 / 3, 1.5, 4]))
    assert np.exp(log_mass) == pytest.approx([0.1, 0.2, 0.3, 0.4])
    assert loss_tail(LOG_P, LOG_Q, [-1.0, 0.0, 0.41, 2.0]) == pytest.approx([1.0, 0.7, 0.4, 0.0])
    assert loss_tail(LOG_Q, LOG_P, 50.0) == pytest.approx(0.2)
    # Delta is the integral of the tail weighted by e^-eps.
    for eps in (0.0, 0.3, 1.0):
        assert loss_tail(LOG_P, LOG_Q, eps) >= hockey_stick(LOG_P, LOG_Q, eps)


@pytest.mark.parametrize("eps", [0.02, 0.41, 1.2, 1.5])
def test_a_pair_encloses_its_own_tail(eps):
    pair = DominatingPair.from_pmfs(LOG_P, LOG_Q)
    truth = loss_tail(LOG_P, LOG_Q, eps)
    assert pair.loss_tail(eps, bound="lower") <= truth <= pair.loss_tail(eps)
    assert pair.loss_tail(eps) == pytest.approx(truth, abs=1e-6)


def test_gaussian_noise_in_closed_form():
    noise = GaussianMechanism(1.0)
    for eps in (0.1, 1.0, 4.0, 10.0):
        truth = ndtr(0.5 - eps)
        assert noise.loss_tail(eps, bound="lower") <= truth <= noise.loss_tail(eps)
        assert noise.loss_tail(eps) == pytest.approx(truth, rel=1e-4)


def test_beyond_the_budget_nothing_is_left():
    response = RandomizedResponse(1.0)
    assert response.loss_tail([0.5, 1.0, 1.1]) == pytest.approx([math.e / (1 + math.e), 0, 0], abs=1e-6)
    assert response.loss_tail(1.1) == 0


def test_bits_by_their_law_and_bounds_for_all_data():
    bits = ShuffledBits(3, 0.2, ones=1)
    zero, one = (np.array([1.0]), np.array([1.0]))
    for p in (0.8, 0.2):
        zero, one = np.convolve(zero, [1 - p, p]), np.convolve(one, [1 - p, p])
    zero, one = np.log(np.convolve(zero, [0.8, 0.2])), np.log(np.convolve(one, [0.2, 0.8]))
    for eps in (0.2, 0.5):
        truth = max(loss_tail(zero, one, eps), loss_tail(one, zero, eps))
        assert bits.loss_tail(eps, bound="lower") <= truth <= bits.loss_tail(eps) <= truth + 1e-6
        assert truth <= ShuffledBits(3, 0.2).loss_tail(eps)
    clones = StrongerClones(1000, 1.0)
    assert clones.delta(0.1) <= clones.loss_tail(0.1, bound="lower") <= clones.loss_tail(0.1) <= 1


def test_the_tail_of_a_composition_is_that_of_the_product_of_its_pairs():
    both, one = GaussianMechanism(4.0).compose(GaussianMechanism(3.0)), GaussianMechanism(12 / 5)
    for eps in (0.1, 0.5, 1.5):
        truth = float(mp.exp(gaussian_tail(one, eps)))
        assert both.loss_tail(eps, bound="lower") <= truth <= both.loss_tail(eps) <= 1.001 * truth
    # All outcomes of two releases of a sampled mechanism, for a removed and for an added record.
    rate, p = 0.3, np.array([0.8, 0.2])
    mixed = rate * p + (1 - rate) * p[::-1]
    twice, without = np.log(np.outer(mixed, mixed).ravel()), np.log(np.outer(p[::-1], p[::-1]).ravel())
    sampled = RandomizedResponse(math.log(4.0)).subsampled(rate).self_compose(2)
    for eps in (0.1, 0.3, 0.6):
        truth = max(loss_tail(twice, without, eps), loss_tail(without, twice, eps))
        assert sampled.loss_tail(eps, bound="lower") <= truth <= sampled.loss_tail(eps) <= 1.001 * truth


def test_the_tail_of_a_group_is_that_of_the_mechanism_with_the_larger_sensitivity():
    group, one = GeometricMechanism(0.0014, 2).for_group(10), GeometricMechanism(0.014, 20)
    for eps in (0.004, 0.0086, 0.0125):
        assert group.loss_tail(eps) == pytest.approx(one.loss_tail(eps), rel=1e-6)
    shifted = np.log(np.convolve([0, 0, 1.0], probabilities := np.array([math.comb(100, k) / 2**100 for k in range(101)])) + 1e-300)
    plain = np.log(np.append(probabilities, [0.0, 0.0]) + 1e-300)
    noise = BinomialNoise(100, 0.5).for_group(2)
    for eps in (0.31, 0.9):
        truth = loss_tail(shifted, plain, eps)
        assert noise.loss_tail(eps, bound="lower") <= truth * (1 + 1e-9) <= noise.loss_tail(eps) * (1 + 2e-9) <= 1.0001 * truth


def test_tails_of_compositions_are_at_least_those_of_their_pairs():
    # Three releases of a discrete loss, and of a loss with atoms and a density.
    response, noise = KaryResponse(3, 0.7).self_compose(3), LaplaceMechanism(1.0).self_compose(2)
    low, high = 1 / (math.exp(0.7) + 2), math.exp(0.7) / (math.exp(0.7) + 2)
    first, second = np.array([high, low, low]), np.array([low, high, low])
    p, q = (np.log(np.einsum("i,j,k->ijk", one, one, one).ravel()) for one in (first, second))
    for eps in (0.3, 1.0, 1.9):
        assert response.loss_tail(eps, bound="lower") <= loss_tail(p, q, eps) <= response.loss_tail(eps)
    assert noise.loss_tail(0.5) <= 1.01 * noise.loss_tail(0.5, bound="lower")


@pytest.mark.parametrize("eps", [0.0, -1.0, math.inf, math.nan])
def test_bad_losses_are_named(eps):
    with pytest.raises(ValueError, match="eps"):
        ShuffledBits(3, 0.2).loss_tail(eps)


@pytest.mark.parametrize("eps", [5e-324, 1e-300, 710.0, 1e308, np.finfo(float).max])
def test_extreme_losses_have_bounds(eps):
    half = DominatingPair.from_pmfs(np.log([0.5, 0.5]), [-np.inf, 0.0])
    # Half of the mass has infinite loss, and the other half has a negative loss.
    assert half.loss_tail(eps, bound="lower") <= 0.5 <= half.loss_tail(eps)
    assert half.loss_tail(eps, bound="lower") > 0.499
    bits = ShuffledBits(9, 0.25, ones=3)
    assert 0 <= bits.loss_tail(eps, bound="lower") <= bits.loss_tail(eps) <= 1
    assert eps < 1 or bits.loss_tail(eps) == 0


def gaussian_tail(noise, eps):
    """Return the log of Pr[L > eps] for Gaussian noise with L ~ N(mu^2/2, mu^2), in multiple precision."""
    with mp.workdps(40):
        mu, eps = mp.mpf(noise.sensitivity) / mp.mpf(noise.sigma), mp.mpf(eps)
        return mp.log(mp.ncdf(mu / 2 - eps / mu))


@pytest.mark.parametrize(("noise", "eps"), [
    (GaussianMechanism(1e12), 3.7600000000000005e-11), (GaussianMechanism(74979953.73627107, 3.3), 1.6832057488142923e-06),
    (GaussianMechanism(1e12), 3.8e-11), (GaussianMechanism(1e9), 3.7e-8), (GaussianMechanism(1.0), 38.4),
    (GaussianMechanism(1.0), 40.0),
])
def test_tail_of_the_loss_where_delta_underflows(noise, eps):
    exact = gaussian_tail(noise, eps)
    lower, upper = noise.loss_tail(eps, bound="lower"), noise.loss_tail(eps)
    assert lower <= mp.exp(exact) <= upper
    assert upper <= max(1.01 * mp.exp(exact), 1e-323)


def test_tails_below_the_normal_doubles():
    rng = np.random.default_rng(4)
    for _ in range(200):
        noise = GaussianMechanism(10 ** rng.uniform(-2, 8), rng.uniform(0.1, 10))
        mu = noise.sensitivity / noise.sigma
        eps = mu * (mu / 2 + rng.uniform(36, 39.5))
        assert noise.loss_tail(eps, bound="lower") <= mp.exp(gaussian_tail(noise, eps)) <= noise.loss_tail(eps), (noise, eps)


def test_a_tail_far_below_all_doubles():
    assert GaussianMechanism(1e-3).loss_tail(1e9) == 5e-324
