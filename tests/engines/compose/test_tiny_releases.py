"""Releases whose losses are far below the grid of a composition, beside releases that are not."""

import pytest

from shufflebounds.mechanisms import FiniteRandomizer, GaussianMechanism, KaryResponse, LaplaceMechanism
from shufflebounds.profile import Composition
from shufflebounds.sampling import RandomAllocation
from tests.strategies import slow

NOISE = LaplaceMechanism(1.0).self_compose(30)


@pytest.mark.parametrize(("budget", "times"), [(1e-12, 1), (1e-5, 1), (1e-4, 10), (1e-6, 10**6), slow(1e-4, 10**5)])
def test_tiny_budgets_beside_laplace_noise(budget, times):
    both = Composition(((KaryResponse(3, budget), times), (LaplaceMechanism(1.0), 30)))
    low, high = both.epsilon(1e-6, bound="lower"), both.epsilon(1e-6)
    # The composition contains the noise, and the tiny releases add at most the sum of their budgets. An earlier version returned
    # [1, 30]: a single release from below and Gaussian guarantees from above.
    assert NOISE.epsilon(1e-6, bound="lower") <= low * (1 + 1e-12)
    assert low <= high <= (NOISE.epsilon(1e-6) + budget * times) * (1 + 1e-5)
    assert high - low < 1e-3 * high


@pytest.mark.parametrize("sigma", [slow(1e8), slow(1e9), 4e9, slow(1e12)])
@pytest.mark.parametrize("faint", [GaussianMechanism, lambda sigma: GaussianMechanism(sigma).subsampled(0.1),
                                   lambda sigma: RandomAllocation(GaussianMechanism(sigma), 10)])
def test_noise_of_a_huge_scale_beside_ordinary_noise(sigma, faint):
    """At the losses of the ordinary noise, log delta of the other release is about -(sigma eps)^2/2, down to -1e25."""
    noise = LaplaceMechanism(1.0)
    both = noise.compose(faint(sigma))
    for eps in (0.0, 0.3):
        exact = noise.delta(eps)
        assert exact * (1 - 1e-12) <= both.delta(eps) <= (exact + 1 / sigma) * (1 + 1e-8)
        assert both.delta(eps, bound="lower") >= exact * (1 - 1e-8)


@pytest.mark.slow
def test_tiny_budgets_beside_a_matrix():
    rows = [[0.5, 0.3, 0.2], [0.25, 0.35, 0.4]]
    alone = FiniteRandomizer(rows).self_compose(60)
    both = Composition(((FiniteRandomizer(rows), 60), (KaryResponse(2, 1e-5), 60)))
    for eps in (3.0, 8.0):
        low, high = both.log_delta(eps, bound="lower"), both.log_delta(eps)
        assert alone.log_delta(eps, bound="lower") - 1e-9 <= low <= high
        assert high - low < 0.1
        assert high <= alone.log_delta(eps - 60e-5) + 1e-6
