"""Compositions of rarely sampled releases by sums over all pairs of outcomes."""

import math

import numpy as np
import pytest
from mpmath import mp

from shufflebounds._engines.compose.pair_sums import _Losses, _Placed, _Table
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism, LaplaceMechanism
from shufflebounds.profile import DominatingPair
from shufflebounds.sampling import SampledPair
from tests.engines.compose.test_inversion import log_delta_of_two
from tests.strategies import slow


def log_delta_of_many(p, q, times, eps):
    """Return log delta of many releases with three outcomes, by the multinomial probabilities of their numbers."""
    first, second = (i.ravel() for i in np.indices((times + 1, times + 1)))
    numbers = np.array([first, second, times - first - second])[:, first + second <= times]
    logs = np.append(0.0, np.cumsum(np.log(np.arange(1.0, times + 1))))
    log_p, loss = np.log(p) @ numbers + logs[times] - logs[numbers].sum(axis=0), (np.log(p) - np.log(q)) @ numbers
    return math.log(np.exp(log_p[loss > eps]) @ -np.expm1(eps - loss[loss > eps]))


@pytest.mark.parametrize(("rate", "revealed", "removed", "eps"), [
    (1e-3, 0.0, False, 0.001), (0.03, 1e-7, True, 2.0), slow(1e-6, 0.0, True, 1e-7), slow(1e-6, 0.0, False, 1e-7),
    slow(1e-3, 0.0, True, 0.05), slow(1e-3, 0.0, False, 0.05), slow(0.03, 0.0, False, 0.1), slow(0.03, 0.0, False, 2.0),
])
@pytest.mark.filterwarnings("ignore:divide by zero")
def test_two_hundred_releases_of_few_outcomes(rate, revealed, removed, eps):
    """A further outcome, of probability `revealed`, is possible with the record only."""
    p, q = np.array([0.5, 0.3, 0.2]) * (1 - revealed), np.array([0.15, 0.35, 0.5])
    pair = DominatingPair.from_pmfs(np.log([*p, revealed]), np.log([*q, 0.0]))
    many = SampledPair(pair, rate, removed).self_compose(200)
    mixed = (1 - rate) * q + rate * p
    exact = math.exp(log_delta_of_many(*((mixed, q) if removed else (q, mixed)), 200, eps))
    exact = math.log(exact - math.expm1(200 * math.log1p(-rate * revealed)))
    lower, upper = many.log_delta(eps, bound="lower"), many.log_delta(eps)
    assert lower <= exact + 1e-10
    assert exact - 1e-10 <= upper <= exact + 1e-4
    # The lower bound omits infinite losses of most releases.
    assert exact - lower < (0.01 if revealed else 1e-4)
    assert "pairs of outcomes" in many.explain(eps)


@pytest.mark.parametrize(("sigma", "rate", "eps"), [(1.0, 1e-4, 0.0357), slow(2.0, 1e-5, 1.2e-4)])
def test_two_releases_of_rarely_sampled_records(sigma, rate, eps):
    # The grid took up to 40 s for such compositions, and its bounds of eps were up to 24 % apart.
    two = SampledPair(GaussianMechanism(sigma), rate).self_compose(2)
    with mp.workdps(15):
        exact = float(log_delta_of_two(sigma, rate, True, eps))
    lower, upper = float(two.log_delta(eps, bound="lower")), float(two.log_delta(eps))
    assert lower <= exact <= upper
    assert upper - lower < 1e-4
    assert "pairs of outcomes" in two.explain(eps)


@pytest.mark.slow
def test_eps_of_a_few_rarely_sampled_releases():
    # A transform of 4,478,976 points was refused with an error.
    releases = GaussianMechanism(1.0).subsampled(1e-5).self_compose(5)
    lower, upper = releases.epsilon(1e-12, bound="lower"), releases.epsilon(1e-12)
    assert 0 < lower <= upper < lower * (1 + 2e-5)
    assert np.isclose(releases.delta(upper), 1e-12, rtol=1e-3)


@pytest.mark.parametrize("mechanism", [slow(GaussianMechanism(0.02)), LaplaceMechanism(0.0012), LaplaceMechanism(0.02)], ids=repr)
@pytest.mark.parametrize("eps", [690.0, slow(0.0), slow(1200.0)])
def test_losses_beyond_the_range_of_exponentials(mechanism, eps):
    many = mechanism.subsampled(1e-6).self_compose(5)
    low, high = many.log_delta(eps, bound="lower"), many.log_delta(eps)
    assert low <= high <= 0
    # delta is at least that of one release.
    assert high >= mechanism.subsampled(1e-6).log_delta(eps, bound="lower")


def test_rare_records_of_discrete_noise():
    # Delta of 64 releases is at least that of one. The record is so rarely sampled that it is close to 64 times that of one.
    one = DiscreteGaussianMechanism(1.0).subsampled(1e-6)
    many = one.self_compose(64)
    low, high = many.log_delta(0.5, bound="lower"), many.log_delta(0.5)
    assert one.log_delta(0.5, bound="lower") <= low <= high <= low + 1e-3
    assert high == pytest.approx(one.log_delta(0.5) + math.log(64), abs=1e-3)
    assert "pairs of outcomes" in many.explain(0.5)


def test_tiny_divergences_of_many_releases_are_bounded_without_a_grid():
    # A transform of 6,480,000 points was refused with an error.
    one = GaussianMechanism(7.3).subsampled(7e-5)
    many = one.self_compose(2813)
    assert one.log_delta(0.5, bound="lower") <= many.log_delta(0.5, bound="lower") <= many.log_delta(0.5) < -600


def test_mu_of_sampled_discrete_noise_adds():
    one = DiscreteGaussianMechanism(2.0).subsampled(0.01)
    many = one.self_compose(9)
    assert many.gdp_mu(bound="lower") == pytest.approx(3 * one.gdp_mu(bound="lower"), rel=1e-12)
    assert many.gdp_mu(bound="lower") <= many.gdp_mu() <= 3 * one.gdp_mu() * (1 + 1e-12)


@pytest.mark.parametrize("losses", [(1e-17, 1.0), (1.0, 1e-17), (3e-17, 0.5), (-1e-18, 1.0 + 2.0**-52)])
def test_an_upper_bound_includes_a_sum_that_rounds_to_eps(losses):
    with mp.workdps(60):
        total = mp.fsum(map(mp.mpf, losses))
        eps = float(total) if mp.mpf(float(total)) < total else float(np.nextafter(float(total), 0.0))
        exact = mp.log(1 - mp.exp(eps - total))
    # The mass 1 under P of the only outcome is above eps by less than the rounding error of eps minus one of the losses.
    ones = [_Losses.held(np.array([loss]), np.ones(1), 1e-290, upper=True) for loss in losses]
    table = _Table(ones, (1, 1), _Placed(1e-3, 0.1, 2.0, 2.0, 1e-2), upper=True)
    assert table.log_delta(eps) >= exact
