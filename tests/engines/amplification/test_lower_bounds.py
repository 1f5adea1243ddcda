"""The lower bound of delta is that of the best dataset listed, also where the approximation that ranks datasets is poor."""

import math

import pytest

from shufflebounds.mechanisms import DiscreteGaussianMechanism


@pytest.mark.parametrize("delta", [3.6106e-7, 5.539e-6])
def test_the_lower_bound_reaches_delta_at_the_lower_eps(delta):
    shuffled = DiscreteGaussianMechanism(2.0).shuffled(1000)
    eps = shuffled.epsilon(delta, bound="lower")
    assert math.log(delta) <= shuffled.log_delta(eps, bound="lower") <= math.log(delta) + 1e-4
