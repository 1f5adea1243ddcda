"""Curves, mu and Renyi divergences of profiles whose values take long: valid bounds from few values of delta.

The profiles have closed forms: delta, the trade-off function, mu and the divergences of Gaussian and Laplace noise (Dong, Roth, Su
2022; Mironov 2017), and their exact values are formed by mpmath.
"""

import math
import pickle
from bisect import bisect_left
from dataclasses import dataclass, field

import numpy as np
import pytest
from mpmath import mp
from scipy.special import ndtri

from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.extend import Attained, DominatingPairInfo, IntervalArray, Sampling
from shufflebounds.tradeoff import Tradeoff
from tests.strategies import thinned

mp.dps = 30


def gaussian_log_delta(eps):
    """Return log delta of two normal distributions whose means differ by one standard deviation."""
    return float(mp.log(mp.ncdf(0.5 - mp.mpf(eps)) - mp.exp(eps) * mp.ncdf(-0.5 - mp.mpf(eps))))


def gaussian_beta(alpha):
    """Return the trade-off function of N(0, 1) and N(1, 1)."""
    quantile = mp.sqrt(2) * mp.erfinv(1 - 2 * mp.mpf(alpha))
    return float(mp.ncdf(quantile - 1))


def laplace_log_delta(eps):
    """Return log delta of two Laplace distributions whose means differ by 3 scales."""
    return math.log(-math.expm1((eps - 3) / 2)) if eps < 3 else -math.inf


def laplace_beta(alpha):
    """Return the trade-off function of these two Laplace distributions."""
    shrunk = math.exp(-3)
    return 1 - alpha / shrunk if alpha < shrunk / 2 else shrunk / (4 * alpha) if alpha <= 0.5 else shrunk * (1 - alpha)


@dataclass(frozen=True)
class Slow(PrivacyProfile):
    """A profile that counts the evaluated values of delta, and whose bounds of log delta have a gap of `apart`."""

    law: str
    apart: float = 0.0
    asked: list = field(default_factory=list, compare=False)

    def describe(self):
        pure = math.inf if self.law == "gaussian" else 3.0
        return DominatingPairInfo(self.bounds, pure, sampling=Sampling(1e-2, 0.3), attained=Attained(single=True))

    def bounds(self, eps):
        self.asked.extend(eps.tolist())
        exact = np.array([(gaussian_log_delta if self.law == "gaussian" else laplace_log_delta)(value) for value in eps.tolist()])
        return IntervalArray(exact - self.apart - 1e-13 * np.abs(exact), exact + self.apart + 1e-13 * np.abs(exact))


BETA = {"gaussian": gaussian_beta, "laplace": laplace_beta}


@pytest.mark.parametrize("law", BETA)
@pytest.mark.parametrize("alpha", thinned([1e-9, 0.003, 0.05, 0.3, 0.5, 0.9, 0.9999], 3))
def test_one_level_needs_few_values(law, alpha):
    slow = Slow(law)
    low, high = slow.tradeoff().beta(alpha), slow.tradeoff(bound="upper").beta(alpha)
    exact = BETA[law](alpha)
    assert low <= exact * (1 + 1e-14)
    assert high >= exact * (1 - 1e-14)
    assert high - low <= 1e-6 * exact
    assert len(slow.asked) <= 75


@pytest.mark.parametrize("law", BETA)
def test_bounds_of_delta_that_are_apart_leave_valid_curves(law):
    slow = Slow(law, 0.2)
    for alpha in (1e-4, 0.05, 0.4):
        low, high = slow.tradeoff().beta(alpha), slow.tradeoff(bound="upper").beta(alpha)
        assert low <= BETA[law](alpha) <= high
        # Delta has an error of up to 22 %, and 1 - f is at least delta.
        assert high - low <= 0.5 * (1 - low)


@pytest.mark.parametrize("law", BETA)
def test_many_levels_and_the_whole_curve(law):
    slow = Slow(law)
    below, above = slow.tradeoff(), slow.tradeoff(bound="upper")
    alpha = np.concatenate([np.geomspace(1e-12, 0.5, 20), 1 - np.geomspace(1e-12, 0.5, 20)])
    exact = np.array([BETA[law](value) for value in alpha.tolist()])
    assert np.all(below.beta(alpha) <= exact * (1 + 1e-9))
    assert np.all(above.beta(alpha) >= exact * (1 - 1e-9))
    assert np.all(above.beta(alpha) - below.beta(alpha) <= 0.03)
    # Properties of the whole curve agree with those of a pickled copy, which contains the breakpoints only.
    again = pickle.loads(pickle.dumps(below))
    assert again == below
    assert again.gdp_mu() == below.gdp_mu()
    delta = math.exp((gaussian_log_delta if law == "gaussian" else laplace_log_delta)(1.0))
    assert above.delta(1.0) <= delta * (1 + 1e-12)
    assert below.delta(1.0) >= delta * (1 - 1e-12)


def test_no_answer_depends_on_earlier_ones():
    slow, other = Slow("laplace"), Slow("laplace")
    first = slow.tradeoff().beta(0.05), slow.gdp_mu(), slow.rdp(8.0)
    assert (other.rdp(8.0), other.tradeoff().beta(1e-40) >= 0, other.gdp_mu(), other.tradeoff().beta(0.05)) == (
        first[2], True, first[1], first[0]
    )


@pytest.mark.parametrize("order", [1.0, 2.0, 8.0, 40.0])
def test_divergences_of_laplace_noise(order):
    slow = Slow("laplace")
    a = mp.mpf(order)
    moment = a / (2 * a - 1) * mp.exp(3 * (a - 1)) + (a - 1) / (2 * a - 1) * mp.exp(-3 * a)
    exact = float(mp.log(moment) / (a - 1)) if order > 1 else 3 + math.expm1(-3)
    low, high = slow.rdp(order, bound="lower"), slow.rdp(order)
    assert low <= exact <= high
    assert high - low <= 0.01 * exact
    assert len(slow.asked) <= 300


def test_mu_of_both():
    slow = Slow("laplace")
    low, high = slow.gdp_mu(bound="lower"), slow.gdp_mu()
    # mu is a supremum over alpha, evaluated on a fine grid up to 1/2, because the curve is symmetric.
    alphas = np.concatenate([np.geomspace(1e-12, math.exp(-3) / 2, 400), np.linspace(math.exp(-3) / 2, 0.5, 400)])
    exact = float(np.max(-ndtri(alphas) - ndtri([laplace_beta(value) for value in alphas.tolist()])))
    assert low <= exact * (1 + 1e-4)
    assert high >= exact
    assert high - low <= 0.02 * exact
    assert len(slow.asked) <= 330
    assert Slow("gaussian").gdp_mu(bound="lower") <= 1
    assert Slow("gaussian").gdp_mu() == math.inf


def test_tail_of_the_loss_of_gaussian_noise():
    slow = Slow("gaussian")
    for eps in (0.1, 1.0, 5.0):
        exact = float(mp.ncdf(0.5 - eps))
        low, high = slow.loss_tail(eps, bound="lower"), slow.loss_tail(eps)
        assert low <= exact <= high
        assert low > 0.95 * exact
    # Both bounds at three eps take fewer values than the 81 that a single bound takes for a profile whose values are fast.
    assert len(slow.asked) <= 3 * 30


def test_mu_of_values_with_a_gap_needs_few_of_them():
    # A bound of mu depends on one bound of delta, which is evaluated at many eps only where it determines mu.
    slow = Slow("laplace", 0.1)
    low, high = slow.gdp_mu(bound="lower"), slow.gdp_mu()
    eps = np.linspace(0, 2.99, 3000)
    exact = np.array([laplace_log_delta(value) for value in eps.tolist()])

    def mu_of(log_delta):
        """Return the largest mu of N(0, 1) and N(mu, 1) that have this log delta at one of the eps."""
        tried = np.linspace(1, 4, 3001)
        return tried[bisect_left(tried, True, key=lambda mu: bool((Tradeoff.gaussian(mu).log_delta(eps) >= log_delta).all()))]

    assert mu_of(exact - 0.1) * (1 - 2e-3) <= low < mu_of(exact) < high <= mu_of(exact + 0.1) * (1 + 1e-3)
    assert len(slow.asked) <= 75
