"""Times of Poisson, negative binomial and hypergeometric tails (arrays of 1e4) and of frozen sums of bits, against SciPy."""

import numpy as np
import pytest
import scipy.stats

from shufflebounds import tails


def points(law, size=10**4):
    """Return counts near the mode and random parameters of a distribution."""
    rng = np.random.default_rng(1)
    z = rng.normal(size=size)
    if law == "poisson":
        mu = np.exp(rng.uniform(0, 14, size))
        return np.floor(np.maximum(mu + np.sqrt(mu) * z, 0)), mu
    if law == "nbinom":
        r, p = np.exp(rng.uniform(0, 10, size)), rng.uniform(0.05, 0.95, size)
        return np.floor(np.maximum(r * (1 - p) / p + np.sqrt(r * (1 - p)) / p * z, 0)), r, p
    total = np.floor(np.exp(rng.uniform(6, 14, size)))
    marked, draws = np.floor(total / 3), np.floor(total / 4)
    mean = marked * draws / total
    return np.floor(np.maximum(mean + np.sqrt(mean / 2) * z, 0)), total, marked, draws


@pytest.mark.parametrize("name", ["logpmf", "logsf"])
@pytest.mark.parametrize("law", ["poisson", "nbinom", "hypergeom"])
def test_shufflebounds(benchmark, law, name):
    out = benchmark(getattr(tails, f"{law}_{name}"), *points(law))
    assert (out <= 0).all()


@pytest.mark.parametrize("law", ["poisson", "nbinom"])
def test_scipy(benchmark, law):
    benchmark(getattr(scipy.stats, law).logsf, *points(law))


@pytest.mark.parametrize("size", [300, 3000, 10**5])
def test_quantiles_of_a_poisson_binomial_law(benchmark, size):
    law = tails.poisson_binom(np.linspace(0.01, 0.99, size))
    assert benchmark(law.isf, 1e-30) > law.mean()
