"""Times of logarithms of binomial tails for arrays of 1e5 elements, against scipy.stats.binom."""

import pytest
import scipy.stats
from compared.tail_laws import binomial_points

from shufflebounds import tails

NAMES = ["logpmf", "logcdf", "logsf"]


@pytest.mark.parametrize("spread", ["uniform", "log-uniform"])
@pytest.mark.parametrize("name", NAMES)
def test_shufflebounds(benchmark, name, spread):
    k, n, p = binomial_points(10**5, spread)
    out = benchmark(getattr(tails, f"binom_{name}"), k, n, p)
    assert (out <= 0).all()


@pytest.mark.parametrize("spread", ["uniform", "log-uniform"])
@pytest.mark.parametrize("name", NAMES)
def test_scipy(benchmark, name, spread):
    k, n, p = binomial_points(10**4, spread)
    out = benchmark(getattr(scipy.stats.binom, name), k, n, p)
    assert out.shape == k.shape
