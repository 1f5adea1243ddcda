"""Parameters at the ends of their ranges: finite numbers where they exist, and no warnings of NumPy."""

import math
import warnings

import numpy as np
import pytest

from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism, LaplaceMechanism, RandomizedResponse


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.mark.parametrize("noise", [
    RandomizedResponse(1e-300), RandomizedResponse(1.0, upper=1e300), LaplaceMechanism(1e300, 1e300),
    GaussianMechanism(1e300, 1e300),
])
def test_variances_beyond_the_largest_double(noise):
    assert noise.variance == math.inf


def test_variances_close_to_the_largest_double():
    assert RandomizedResponse(1e-150).variance == pytest.approx(1e300, rel=1e-14)
    assert RandomizedResponse(700.0, upper=1e300).variance == pytest.approx(math.exp(-700 + 600 * math.log(10)), rel=1e-12)


def test_a_divergence_beyond_the_largest_double():
    noise = GaussianMechanism(1e-6)
    assert noise.rdp(1e300) == math.inf
    assert noise.rdp(1e300, bound="lower") == np.finfo(float).max
    assert noise.rdp(math.inf, bound="lower") == math.inf


@pytest.mark.parametrize("sigma", [1e-3, 1.0, 1e5])
def test_discrete_gaussian_at_very_large_eps(sigma):
    noise = DiscreteGaussianMechanism(sigma)
    for eps in (1e9, 1e20, 1e300):
        assert noise.log_delta(eps, bound="lower") <= noise.log_delta(eps) < -1e5
    assert noise.error_tail(1e300) == 0
    # eps equals the loss of an outcome in the extreme tail, whose log probability is known exactly
    m = 1_500_000_000 if sigma > 1 else 1_000_000
    eps = (2 * m + 1) / (2 * sigma**2)
    near = -((m + 1) ** 2) / (2 * sigma**2) - 0.5 * math.log(2 * math.pi * sigma**2) * (sigma > 1)
    assert noise.log_delta(eps, bound="lower") == pytest.approx(near, rel=1e-6)
    assert noise.log_delta(eps) == pytest.approx(near, rel=1e-6)
