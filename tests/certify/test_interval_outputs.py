"""Certificates of shuffled noise on an interval: few users against sums over all messages, more against the stated bounds."""

import itertools
import math

import numpy as np
import pytest

from shufflebounds.certify.interval_noise import TOLERANCE
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GeometricMechanism, LaplaceMechanism

pytest.importorskip("flint")


def _largest(rows, eps):
    """Return the largest delta of two users over all inputs of the other one, and of the target."""
    def law(x, z):
        joint = np.multiply.outer(rows[x], rows[z])
        return np.triu(joint) + np.tril(joint, -1).T

    inputs = range(len(rows))
    return max(np.maximum(law(x, z) - math.exp(eps) * law(y, z), 0).sum()
               for z in inputs for x, y in itertools.permutations(inputs, 2))


@pytest.mark.parametrize("noise", [GeometricMechanism(1.2, 3), GeometricMechanism(1.0, 2, 3), DiscreteGaussianMechanism(1.5, 2)],
                         ids=repr)
@pytest.mark.parametrize("eps", [0.0, 0.5])
def test_two_users_of_whole_noise_against_every_dataset(noise, eps):
    d = noise.sensitivity
    if isinstance(noise, DiscreteGaussianMechanism):
        weights = np.exp([-0.5 * ((np.arange(-20, d + 21) - x) / noise.sigma) ** 2 for x in range(d + 1)])
    elif noise.bound is not None:
        weights = noise._clipped_rows(noise.bound)
    else:
        weights = np.exp([-noise.eps / d * np.abs(np.arange(-90, d + 91) - x) for x in range(d + 1)])
    exact = _largest(weights / weights.sum(axis=1, keepdims=True), eps)
    protocol = noise.shuffled(2)
    upper, lower = (protocol.certify(eps, bound=bound) for bound in ("upper", "lower"))
    assert float(lower.lower()) <= exact * (1 + 1e-9)
    assert exact <= float(upper.upper()) * (1 + 1e-9)
    assert float(upper.upper().log()) <= protocol.log_delta(eps) + TOLERANCE


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "eps"), [
    (LaplaceMechanism(1.0).shuffled(20, 0.5), 0.7),
    (GeometricMechanism(1.0, 3).shuffled(1000), 0.1),
], ids=repr)
def test_stated_bounds_are_certified(protocol, eps):
    lower, upper = (protocol.log_delta(eps, bound=bound) for bound in ("lower", "upper"))
    ball = protocol.certify(eps, bound="upper", seconds=30)
    assert lower <= float(ball.upper().log()) <= upper + TOLERANCE
    ball = protocol.certify(eps, bound="lower", seconds=30)
    assert lower - TOLERANCE <= float(ball.lower().log()) <= upper


def test_budget_of_one_message_is_certified():
    protocol = LaplaceMechanism(1.0).shuffled(30)
    assert protocol.log_delta(1.0) == -math.inf
    assert float(protocol.certify(1.0, bound="upper").upper()) < 1e-20
