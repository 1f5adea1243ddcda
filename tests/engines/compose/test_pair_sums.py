"""Compositions of rarely sampled releases by sums over all pairs of outcomes."""

import math

import numpy as np
import pytest
from mpmath import mp

from shufflebounds._engines.compose.pair_sums import PairSums, _Losses, _Placed, _Table
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism, LaplaceMechanism
from shufflebounds.sampling import SampledPair
from tests.engines.compose.test_inversion import log_delta_of_two
from tests.strategies import slow


def sums(pair, times, rtol=1e-4):
    known = pair._pair_info()
    return PairSums([(known, times)], rtol, math.sqrt(times * known.scale(-60.0).var))


@pytest.mark.parametrize(("sigma", "rate", "removed", "times", "eps", "rtol", "gap"), [
    (1.0, 0.05, True, 3, 0.9, 1e-4, 0.01),
    (2.0, 0.2, True, 7, 1.5, 1e-4, 0.01),
    (0.8, 0.1, False, 5, 0.35, 1e-4, 0.01),
    slow(3.0, 0.3, False, 30, 1.4, 1e-4, 0.01),
    (1.0, 1e-4, True, 320, 1e-3, 1e-3, 0.1),
    (1.0, 1e-3, False, 1000, 2e-3, 1e-3, 0.1),
    slow(2.0, 1e-5, True, 4999, 1e-4, 1e-3, 0.1),
])
def test_bounds_enclose_those_by_inversion(sigma, rate, removed, times, eps, rtol, gap):
    pair = SampledPair(GaussianMechanism(sigma), rate, removed)
    exact = pair.self_compose(times)._product.composer.inversion.log_delta(eps)[0]
    found = sums(pair, times, rtol).bounds(eps)[0]
    assert exact.upper - exact.lower < 1e-5
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper
    assert found.upper - found.lower < gap


def test_unsampled_releases_are_one_gaussian():
    whole = GaussianMechanism(2.0 / math.sqrt(6))
    found = sums(SampledPair(GaussianMechanism(2.0), 1.0), 6).bounds(4.0)[0]
    assert found.lower <= float(whole.log_delta(4.0, bound="lower")) <= float(whole.log_delta(4.0)) <= found.upper
    assert found.upper - found.lower < 0.01


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "rate", "eps"), [(1.0, 1e-4, 0.0357), (2.0, 1e-5, 1.2e-4)])
def test_two_releases_of_rarely_sampled_records(sigma, rate, eps):
    # The grid took up to 40 s for such compositions, and its bounds of eps were up to 24 % apart.
    two = SampledPair(GaussianMechanism(sigma), rate).self_compose(2)
    with mp.workdps(30):
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


@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_bounds_of_laplace_noise_enclose_those_of_a_grid(rate):
    pair = SampledPair(LaplaceMechanism(2.0), rate)
    grid = pair.self_compose(4)
    for eps in (0.0, 0.02, 0.3):
        found = sums(pair, 4).bounds(eps)[0]
        assert found.lower <= float(grid.log_delta(eps))
        assert float(grid.log_delta(eps, bound="lower")) <= found.upper


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
