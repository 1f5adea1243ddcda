"""Compositions of records that are sampled with a small probability, and bounds at the ends of the range of eps."""

import numpy as np
import pytest

from shufflebounds._engines.compose.grid import Grid
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile.profile import Composition
from shufflebounds.sampling import RandomAllocation
from tests.strategies import slow, thinned


@pytest.mark.parametrize(("sigma", "rate", "times", "eps", "gap", "rtol"), [
    slow(0.3, 1e-4, 10**5, 19.35, 2e-3, 1e-5), (0.25, 1e-5, 10**5, 12.0, 3e-2, 1e-3),
])
def test_bounds_meet_where_nearly_all_losses_share_a_grid_step(sigma, rate, times, eps, gap, rtol):
    # The loss is log(1 - rate) with a probability close to 1. When this loss was merged with larger ones, the lower bound of delta
    # was e^-32 instead of e^-9.2.
    one = GaussianMechanism(sigma).subsampled(rate).pairs()[0]
    releases = Composition(((one, times),), rtol=rtol)
    lower, upper = (float(releases.log_delta(eps, bound=bound)) for bound in ("lower", "upper"))
    assert upper - gap <= lower <= upper < -1


@pytest.mark.parametrize("profile", [
    Composition(((GaussianMechanism(1.0).subsampled(0.1).pairs()[0], 2),), rtol=0.1),
    slow(RandomAllocation(GaussianMechanism(1.0), 10, chosen=3)),
], ids=["Subsampled", "RandomAllocation"])
def test_answers_at_the_largest_eps(profile):
    # The square of eps overflowed from eps = 1e155 on, and the upper bound was 1 from eps = 1e20 on.
    near = float(profile.log_delta(100.0))
    for eps in (1e20, 1e155, 1e308):
        assert -np.inf <= profile.log_delta(eps, bound="lower") <= profile.log_delta(eps) <= near + 0.1 < -20


@pytest.mark.parametrize("times", thinned([3, 30, 1000], 2))
def test_eps_of_rarely_sampled_noise_needs_no_grid(times, monkeypatch):
    # The saddle-point approximation at eps .256 is e^-13.8, the exact divergence below e^-41. A search that began there fell back
    # to grids of four million points, 5 to 14 s.
    def refused(self, eps):
        raise AssertionError(f"grid at eps {eps}")

    monkeypatch.setattr(Grid, "bounds", refused)
    releases = GaussianMechanism(1.5818).subsampled(5.855e-4).self_compose(times)
    upper, lower = releases.epsilon(1e-6), releases.epsilon(1e-6, bound="lower")
    assert 0 <= upper - lower <= 2e-8 * upper


@pytest.mark.parametrize("eps", [0.0, 0.005, 0.02, slow(0.1), slow(0.3)])
def test_one_integral_bounds_the_divergence_from_above(eps):
    releases = GaussianMechanism(1.5818).subsampled(5.855e-4).pairs()[0].self_compose(30)
    lower, once = releases.log_delta(eps, bound="lower"), releases._product.composer.inversion.log_delta_once(eps)[0]
    assert lower <= once
    # The error is about 1e-7 times the saddle-point approximation, which is between e^-14 and e^-5: at most about e^-21.
    assert once <= max(lower + 1e-3, -18.0)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "rate", "times", "delta"), [(1.118, 6.83e-5, 5, 4.3e-13), (2.986, 1.853e-5, 76378, 1.8e-14)])
def test_search_goes_on_where_the_first_guess_is_wrong(sigma, rate, times, delta):
    # The bound by one integral is above the target where the divergence is far below it; its slope does not end the search.
    releases = GaussianMechanism(sigma).subsampled(rate).self_compose(times)
    upper, lower = releases.epsilon(delta), releases.epsilon(delta, bound="lower")
    assert lower <= upper <= 1.03 * lower
