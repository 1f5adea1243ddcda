"""Times of the clone bounds: eps(delta) and log delta for typical and extreme parameters."""

import pytest
from compared.clone_bounds import CLONE_GRID, clone_deployments

from shufflebounds.shuffle import ClearReports, Clones, StrongerClones, clones_epsilons


@pytest.mark.parametrize("kind", [Clones, StrongerClones])
@pytest.mark.parametrize(("users", "local_eps", "delta"), CLONE_GRID)
def test_epsilon(benchmark, kind, users, local_eps, delta):
    eps = benchmark(kind(users, local_eps).epsilon, delta)
    assert 0 < eps < local_eps


@pytest.mark.parametrize(
    ("users", "local_eps", "eps"), [(10**4, 1.0, 0.04), (10**6, 4.0, 0.05), (10**6, 4.0, 3.0), (10**12, 14.0, 0.01)]
)
def test_log_delta(benchmark, users, local_eps, eps):
    assert benchmark(StrongerClones(users, local_eps).log_delta, eps) < 0


@pytest.mark.parametrize("top", [4, 6, 8, 15])
def test_deployments(benchmark, top):
    assert benchmark(clones_epsilons, *clone_deployments(top)).shape == (2000,)


@pytest.mark.parametrize("users", [10**8, 10**12, 2**53])
@pytest.mark.parametrize("delta", [1e-9, 1e-300])
def test_any_number_of_users(benchmark, users, delta):
    assert benchmark(StrongerClones(users, 1.0).epsilon, delta) > 0


def test_most_fake_reports(benchmark):
    assert benchmark(ClearReports(2**53, 100).epsilon, 1e-9) > 0
