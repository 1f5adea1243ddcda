"""Certificates of shuffled noise on an interval: few users against sums over all messages, more against the stated bounds."""

import itertools
import math

import numpy as np
import pytest
from scipy import special as sp

from shufflebounds.certify import interval_noise
from shufflebounds.certify.balls import NoCertificateError
from shufflebounds.certify.interval_noise import TOLERANCE
from shufflebounds.mechanisms import DiscreteGaussianMechanism, GaussianMechanism, GeometricMechanism, LaplaceMechanism
from tests.strategies import slow

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


def _rows(noise, inputs):
    """Return the probabilities of 600 intervals of outputs, of which the two outer ones are half-lines."""
    edges = np.linspace(min(inputs) - 6, max(inputs) + 6, 599)
    below = [sp.ndtr((edges - x) / noise.sigma) if isinstance(noise, GaussianMechanism) else
             0.5 + 0.5 * np.sign(edges - x) * -np.expm1(-np.abs(edges - x) / noise.scale) for x in inputs]
    return np.array([np.diff(np.concatenate([[0.0], row, [1.0]])) for row in below])


@pytest.mark.slow
@pytest.mark.parametrize("noise", [slow(GaussianMechanism(0.8)), LaplaceMechanism(0.7)], ids=repr)
@pytest.mark.parametrize("inputs", [(0.0, 1.0), slow((-0.25, 0.0, 0.625))])
def test_two_users_of_listed_inputs_against_every_dataset(monkeypatch, noise, inputs):
    protocol, eps = noise.shuffled(2, inputs=inputs), 0.3
    exact = _largest(_rows(noise, inputs), eps)
    upper, lower = (next(interval_noise.interval_outputs(protocol, eps, bound)).value(interval_noise.arb(eps).exp())
                    for bound in (True, False))
    # The intervals reveal less than the outputs, by less than 1e-3.
    assert float(lower.lower()) <= exact * (1 + 1e-3)
    assert exact <= float(upper.upper()) < 1.5 * exact
    assert float(lower.lower().log()) >= protocol.log_delta(eps, bound="lower") - TOLERANCE
    for other, target in itertools.product(inputs, itertools.permutations(inputs, 2)):
        monkeypatch.setattr(interval_noise, "dataset", lambda text, inputs, other=other, target=target: ((other,), target))
        value = next(interval_noise.interval_outputs(protocol, eps, False)).value(interval_noise.arb(eps).exp())
        assert float(value.lower()) <= exact * (1 + 1e-3)


def test_datasets_are_read_from_the_words_of_the_library():
    of = interval_noise.dataset
    assert of("half of the other users have either end", ()) == ((0.0, 1.0), (0, 1))
    assert of("every other user has input 0.4; target between inputs 1 and 0.4", (0.0, 0.4, 1.0)) == ((0.4,), [1.0, 0.4])
    assert of("the other users are spread evenly over the inputs; target between inputs 0 and 1", (0.0, 1.0)) == (
        (0.0, 1.0), [0.0, 1.0])
    assert of("every other user has input 1", (0.0, 1.0)) == ((1.0,), (0.0, 1.0))
    with pytest.raises(NoCertificateError):
        of("none known", ())


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "eps"), [
    (LaplaceMechanism(1.0).shuffled(20, 0.5), 0.7), (LaplaceMechanism(1.0).shuffled(20, 0.5, inputs=(3.0, 3.25, 3.5)), 0.3),
    (GaussianMechanism(2.0).shuffled(300, inputs=(0.0, 0.25, 1.0)), 0.1),
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
