"""Geometric and discrete Gaussian noise on integers: the upper bound over all datasets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from shufflebounds.mechanisms import DiscreteGaussianMechanism, FiniteRandomizer, GeometricMechanism
from tests.strategies import slow


def geometric_rows(eps, sensitivity):
    """Return the probabilities of the outputs 0..sensitivity from the definition, with the outputs beyond added to the two ends."""
    q, k = math.exp(-eps / sensitivity), np.arange(-400, 401 + sensitivity)
    rows = np.array([(1 - q) / (1 + q) * q ** np.abs(k - x) for x in range(sensitivity + 1)])
    inner = rows[:, 400 : 401 + sensitivity].copy()
    inner[:, 0] += rows[:, :400].sum(axis=1)
    inner[:, -1] += rows[:, 401 + sensitivity :].sum(axis=1)
    return inner / inner.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(("eps", "sensitivity", "users"), [(1.0, 2, 500), slow(2.0, 3, 2000), (0.5, 4, 10**5)])
def test_geometric_noise_is_its_matrix(eps, sensitivity, users):
    """The bound equals that of the matrix of the noise, computed from its definition, with all pairs of inputs enumerated."""
    noise = GeometricMechanism(eps, sensitivity).shuffled(users)
    matrix = FiniteRandomizer(geometric_rows(eps, sensitivity)).shuffled(users)
    top = noise.epsilon(1e-9)
    for share in (0.2, 0.6, 0.9):
        # Cells of pairs and inputs are divided until the bound of each is at most 1e-4 above the largest value. The blanket's bound
        # is larger by .2.
        assert noise.log_delta(share * top) == pytest.approx(matrix.log_delta(share * top), abs=3e-3)


@pytest.mark.parametrize(("noise", "gap"), [
    (GeometricMechanism(1.0, 2), 0.001), (GeometricMechanism(1.0, 10), 0.001), (GeometricMechanism(4.0, 5), 0.006),
    (GeometricMechanism(2.0, 100), 0.001), slow(DiscreteGaussianMechanism(1.0), 0.004), (DiscreteGaussianMechanism(3.0), 0.001),
    slow(DiscreteGaussianMechanism(2.0, 2), 0.004), slow(DiscreteGaussianMechanism(20.0, 20), 0.004),
])
def test_gap_at_ten_thousand_users(noise, gap):
    """The relative gap of the bounds is at most `gap`; for the privacy blanket it is 17 to 30 %."""
    shuffled = noise.shuffled(10**4)
    lower, upper = (shuffled.epsilon(1e-6, bound=bound) for bound in ("lower", "upper"))
    assert lower <= upper <= lower * (1 + gap)
    assert shuffled.argument(upper) == "worst dataset"


@pytest.mark.slow
@pytest.mark.parametrize("noise", [GeometricMechanism(1.0, 3), DiscreteGaussianMechanism(1.0)])
@pytest.mark.parametrize("users", [12, 300])
def test_above_every_dataset_of_a_bit(noise, users):
    """If the analyst learns only a bit of each message (above a threshold), the maximum over all datasets is at most the bound."""
    k = np.arange(-60, 61 + noise.sensitivity)
    bound = noise.shuffled(users)
    for edge in range(noise.sensitivity + 1):
        rows = []
        for x in range(noise.sensitivity + 1):
            if isinstance(noise, GeometricMechanism):
                mass = np.exp(-noise.eps / noise.sensitivity * np.abs(k - x))
            else:
                mass = np.exp(-0.5 * ((k - x) / noise.sigma) ** 2)
            above = mass[k > edge].sum() / mass.sum()
            rows.append([1 - above, above])
        exact = FiniteRandomizer(rows).shuffled(users)
        for delta in (1e-2, 1e-6, 1e-9):
            eps = exact.epsilon(delta)
            assert exact.log_delta(eps, bound="lower") <= bound.log_delta(eps) + 1e-6


def test_what_has_no_bound_over_all_datasets():
    """Truncated noise and wide noise have no bound over all datasets other than the privacy blanket.

    Some outputs of truncated noise identify the input.
    """
    for noise in (GeometricMechanism(1.0, 2, bound=5), GeometricMechanism(1.0, 10**5), DiscreteGaussianMechanism(5000.0),
                  DiscreteGaussianMechanism(0.01)):
        assert noise.dataset_laws() is None
