"""Clone bounds: eps(delta) and log delta over the grid of the field, and beyond it."""

import pytest
from compare import CLONE_GRID

from shufflebounds.shuffle import Clones, StrongerClones


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
