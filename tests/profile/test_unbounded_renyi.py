"""Renyi divergences of mechanisms without pure privacy, against exact moments of the mean of independent likelihood ratios.

If all users, or all steps, have the same Gaussian noise, the likelihood ratio is the mean of n independent ratios e^L, and

    E[(e^L_1 + ... + e^L_n)^a] = a! [x^a] (sum_k E[e^(kL)] x^k / k!)^n,    E[e^(kL)] = e^(k (k - 1)/(2 sigma^2)).
"""

import math

import mpmath
import numpy as np
import pytest

from shufflebounds._engines.datasets.largest_message import mean_renyi
from shufflebounds.mechanisms import GaussianMechanism, GaussianVector
from shufflebounds.profile.extend import ClosedForms, DominatingPairInfo, IntervalArray, PrivacyProfile, Sampling
from shufflebounds.sampling import AllocationPair, RandomAllocation
from tests.strategies import slow, thinned


def mean_of_ratios(sigma, number, order):
    """Return the Renyi divergence of an integer order for the mean of `number` likelihood ratios."""
    with mpmath.workdps(60):
        growth = 1 / (2 * mpmath.mpf(sigma) ** 2)
        factor = [mpmath.exp(k * (k - 1) * growth) / mpmath.factorial(k) for k in range(order + 1)]
        power, left = [mpmath.mpf(1)] + [mpmath.mpf(0)] * order, number
        while left:
            if left & 1:
                power = product(power, factor)
            factor, left = product(factor, factor), left >> 1
        moment = power[order] * mpmath.factorial(order) / mpmath.mpf(number) ** order
        return float(mpmath.log(moment) / (order - 1))


def product(one, other):
    """Return the product of two power series, truncated to their number of terms."""
    return [mpmath.fsum(one[i] * other[k - i] for i in range(k + 1)) for k in range(len(one))]


@pytest.mark.parametrize(("sigma", "users", "order"), [
    slow(2.4, 10**6, 16), slow(1.0, 300, 3),
])
def test_shuffled_gaussian_noise(sigma, users, order):
    shuffled, exact = GaussianMechanism(sigma).shuffled(users), mean_of_ratios(sigma, users, order)
    # If the value of all other users is the target's second value, the divergence is that of the mean of the likelihood ratios.
    # Other datasets may have a larger one.
    upper = shuffled.rdp(order)
    assert shuffled.rdp(order, bound="lower") <= upper * (1 + 1e-9)
    assert exact <= upper < 2.5 * exact
    # An earlier version did not bound the tail of the integral, and returned the divergence of one user's noise as upper bound.
    assert upper < 0.02 * GaussianMechanism(sigma).rdp(order)


@pytest.mark.parametrize("shuffled", [GaussianMechanism(2.0).shuffled(10**6), GaussianVector(1.5, 5).shuffled(1000, 0.3)])
def test_mu_of_shuffled_gaussian_noise_is_that_of_one_user(shuffled):
    mu = shuffled.randomizer.gdp_mu()
    assert mu * (1 - 1e-9) <= shuffled.gdp_mu(bound="lower") <= shuffled.gdp_mu() <= mu
    # All other users have the first value. The test that rejects if some message exceeds T approaches mu as T grows; t is T/sigma.
    distance = shuffled.randomizer.gdp_mu(bound="lower") * 1.0
    with mpmath.workdps(30):
        t = mpmath.mpf(10) ** 6
        # The logs of the normal tails at t and at t - distance. The error of the first kind has n such tails (+ log n), and the
        # power has the probability that the target takes part.
        level, power = (-x * x / 2 - mpmath.log(x * mpmath.sqrt(2 * mpmath.pi)) for x in (t, t - distance))
        z = [mpmath.sqrt(-2 * log) for log in (level + mpmath.log(shuffled.users), power + mpmath.log(shuffled.participation))]
        assert z[0] - z[1] == pytest.approx(mu, rel=1e-4)


def test_orders_that_a_shuffle_amplifies():
    # docs/randomizers.md states that shuffling reduces Renyi divergences of orders up to about 2 (sigma/Delta)^2 ln n. This is 18.4
    # here: the divergence of order 17 is reduced by a factor of more than 1000, and that of order 25 by a factor of less than 5.
    local = GaussianMechanism(1.0)
    assert mean_of_ratios(1.0, 10**4, 17) < 1e-3 * local.rdp(17)
    assert mean_of_ratios(1.0, 10**4, 25) > 0.2 * local.rdp(25)


@pytest.mark.parametrize("order", [slow(2), slow(4), slow(8)])
def test_random_allocation(order):
    exact = mean_of_ratios(1.6, 100, order)
    added, removed = (AllocationPair(GaussianMechanism(1.6), 100, removed=removed) for removed in (False, True))
    pair = max((added, removed), key=lambda p: p.rdp(order))
    assert pair.rdp(order, bound="lower") <= exact * (1 + 1e-9)
    assert exact <= RandomAllocation(GaussianMechanism(1.6), 100).rdp(order)
    if order < 8:
        assert RandomAllocation(GaussianMechanism(1.6), 100).rdp(order) < 1.01 * exact


class Mixed(ClosedForms):
    """A mixture of some noise with a given rate, whose Renyi divergences are at least `least`, and at most a number that follows
    from values of delta alone.
    """

    def __init__(self, noise, rate, least=-math.inf):
        self.noise, self.rate, self.least = noise, rate, least

    def mixture(self):
        return (self.noise,), self.rate

    def renyi_limit(self, orders, upper):
        return np.full(orders.size, math.inf if upper else self.least)


class Sampled(PrivacyProfile):
    """Gaussian noise, given by upper bounds of delta and by closed forms, whose answers may have a relative gap of `gap`."""

    def __init__(self, noise, gap, forms):
        self.noise, self.gap, self.forms = noise, gap, forms

    def both(self, eps):
        exact = self.noise.log_delta(eps)
        return IntervalArray(exact, exact)

    def describe(self):
        return DominatingPairInfo(self.both, sampling=Sampling(spacing=0.1, refined_gap=self.gap, above=self.both))

    def closed_forms(self):
        return self.forms


@pytest.mark.parametrize(("power", "start"), thinned([(0.0, 3.0), (1.0, 3.0), (3.0, 1.0), slow(7.0, 12.0)], 2))
def test_tail_of_the_integral(power, start):
    # The integrand is that of Gaussian noise with sigma = 1 that is not sampled (rate 1).
    found, sampled = (Mixed(GaussianMechanism(1.0), rate).tail()(power, start) for rate in (1.0, 0.01))
    with mpmath.workdps(30):
        def grown(t):
            return mpmath.exp(power * t) * (mpmath.ncdf(0.5 - t) - mpmath.exp(t) * mpmath.ncdf(-0.5 - t))

        exact = mpmath.log(mpmath.quad(grown, [start, start + 2, start + 6, start + 20]))
    assert exact <= found < exact + 8
    assert sampled == pytest.approx(found + np.log(0.01), abs=1e-9)


@pytest.mark.parametrize(("mu", "order"), [(0.5, 1.0), (0.5, 2.5), (1.0, 8.0)])
def test_upper_bounds_alone(mu, order):
    """The exact hockey-stick divergence of N(mu, 1) and N(0, 1), whose Renyi divergence is known, with a bound of its tail."""
    noise, exact = GaussianMechanism(1 / mu), order * mu**2 / 2
    for rtol, least in ((0.005, -np.inf), (0.005, exact), (1e-3, 0.5 * exact)):
        found = Sampled(noise, rtol, Mixed(noise, 1.0, least)).rdp(order)
        # With a small `least` the interpolation may add twice as much.
        assert exact <= found * (1 + 1e-12) <= exact * (1 + 4 * rtol)
    assert Sampled(noise, 0.005, ClosedForms()).rdp(order) == math.inf


def test_mean_of_three_ratios_by_quadrature():
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    weights = weights / weights.sum()
    # The likelihood ratio of N(-1, 1) and N(0, 1), and the mean of three.
    ratio = np.exp(-nodes - 0.5)
    mean = (ratio[:, None, None] + ratio[None, :, None] + ratio) / 3
    mass = weights[:, None, None] * weights[None, :, None] * weights
    orders = np.array([1.0, 1.5, 2.0, 2.3, 3.75, 5.5, 6.0])
    lower, upper = mean_renyi(GaussianMechanism(1.0)._rdp, 3, orders)
    exact = np.array([np.log((mass * mean**a).sum()) / (a - 1) if a > 1 else (mass * mean * np.log(mean)).sum() for a in orders])
    assert (lower <= exact * (1 + 1e-9)).all()
    assert (exact <= upper * (1 + 1e-9)).all()
    assert np.allclose(upper[[2, 6]], lower[[2, 6]], rtol=1e-11, atol=0)
    assert (upper[2:] - lower[2:] < [0, 0.2, 0.1, 0.05, 0] * exact[2:] + 1e-11).all()
    # For many users the chords are close.
    lower, upper = mean_renyi(GaussianMechanism(1.0)._rdp, 10**6, orders)
    assert (upper[2:] <= lower[2:] * (1 + 1e-4)).all()
