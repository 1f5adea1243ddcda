"""Gaussian noise on a cube and on the sphere: upper bounds against a fine grid, and lower bounds along a line."""

import math

import numpy as np
import pytest

from shufflebounds.mechanisms import GaussianMechanism, GaussianVector
from tests.strategies import slow, thinned


def grid(noise, reach, points):
    """Return the masses of the cells of a grid in the plane under the target's two inputs (R_0, R_1) and under the blanket m."""
    y = np.linspace(-reach, reach, points)
    cell, s = (y[1] - y[0]) ** 2, noise.sigma
    x, z = (axis.ravel() for axis in np.meshgrid(y, y))

    def density(squares):
        return np.exp(-0.5 * squares / s**2) * cell / (2 * math.pi * s**2)

    if noise.domain == "sphere":
        return density((x - 1) ** 2 + z**2), density((x + 1) ** 2 + z**2), density((np.hypot(x, z) + 1) ** 2)
    first, second = density((x + 0.5) ** 2 + (z + 0.5) ** 2), density((x - 0.5) ** 2 + (z - 0.5) ** 2)
    return first, second, density((np.abs(x) + 0.5) ** 2 + (np.abs(z) + 0.5) ** 2)


@pytest.mark.parametrize("noise", thinned(
    [GaussianVector(0.7, 2), GaussianVector(2.0, 2), GaussianVector(1.5, 2, "sphere")], 2), ids=repr)
def test_upper_law_against_a_grid(noise):
    first, second, base = grid(noise, 1 + 9 * noise.sigma, 900)
    upper = noise.excess_laws()[0].upper
    mass = np.exp(upper.log_mass)
    # The derivative of |y| jumps at 0, so the grid has an error of 1e-4.
    assert mass.sum() == pytest.approx(base.sum(), rel=2e-4)
    for height in (upper.log_a, upper.log_b):
        assert np.exp(upper.log_mass + height).sum() == pytest.approx(1, abs=1e-11)
    for eps in (0.1, 1.0):
        x = upper.values(eps)
        for threshold in (-3.0, -0.5, 0.0, 0.5, 3.0, 20.0):
            exact = float(np.maximum(first - math.exp(eps) * second - threshold * base, 0).sum())
            above = float((mass * np.maximum(x - threshold, 0)).sum())
            assert exact * (1 - 1e-3) - 1e-9 <= above <= exact * 1.03 + 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("sigma", [1.0, 0.3])
def test_one_coordinate_answers_as_noise_on_a_number(sigma):
    vector, number = GaussianVector(sigma, 1), GaussianMechanism(sigma)
    assert vector.epsilon(1e-6) == number.epsilon(1e-6)
    for bound in ("lower", "upper"):
        first, second = (noise.shuffled(1000).log_delta(0.3, bound=bound) for noise in (vector, number))
        assert first == second


def test_the_blanket_of_one_coordinate_is_that_of_the_interval():
    (vector,), (number,) = (noise.excess_laws() for noise in (GaussianVector(1.0, 1), GaussianMechanism(1.0)))
    first, second = (pair.upper.log_phi_side(0.05, 10**4, upper=True) for pair in (vector, number))
    assert -1e-4 <= first - second < 2e-2


@pytest.mark.slow
def test_delta_grows_with_the_dimension():
    values = [GaussianVector(3.0, d).shuffled(10**4).delta(0.05) for d in (1, 2, 5)]
    assert values == sorted(values)


@pytest.mark.parametrize(("sigma", "dimension"), [slow(20.0, 100), slow(100.0, 200)])
def test_a_hundred_coordinates(sigma, dimension):
    # The probability that all coordinates are below 1/2 is smaller than the cut, which is added for every set of such coordinates.
    noise = GaussianVector(sigma, dimension)
    assert noise.shuffled(10**5).delta(0.01 * noise.epsilon(1e-6)) <= 1e-6


@pytest.mark.parametrize("noise", [
    GaussianVector(0.1, 2, "sphere"), GaussianVector(0.12, 8, "sphere"), GaussianVector(1.0, 5, "sphere"),
    GaussianVector(1e4, 256, "sphere"), GaussianVector(0.1, 2), GaussianVector(0.3, 10), slow(GaussianVector(1e4, 256)),
], ids=repr)
def test_masses_add_up_to_at_least_one_above_and_at_most_one_below(noise):
    # For sigma = 1/10 on the sphere, the mass under R_0 was once too small by 1e-7, and so was the upper bound of delta.
    (pair,) = noise.excess_laws()
    total = math.fsum(np.exp(pair.upper.log_mass + pair.upper.log_a)) + float(np.exp(pair.upper.log_cut).sum())
    assert 1 <= total <= 1 + 1.5 * 2.0**-42 * (1 if noise.domain == "sphere" else noise.dimension)
    for _, law in pair.lower:
        assert 1 - 1e-11 <= math.fsum(np.exp(law.log_mass + law.log_a)) <= 1


def test_vectors_that_are_told_apart_almost_surely():
    shuffled = GaussianVector(0.1, 2, "sphere").shuffled(3)
    lower, upper = (shuffled.log_delta(0.1, bound=bound) for bound in ("lower", "upper"))
    # The target's vector is known except with probability e^-50.
    assert -1e-10 < lower < -1e-20 < upper <= 0


def test_without_a_shuffle_it_is_gaussian_noise_on_a_line():
    cube, sphere = GaussianVector(2.0, 9), GaussianVector(2.0, 9, "sphere")
    assert cube.epsilon(1e-5) == pytest.approx(GaussianMechanism(2.0, 3.0).epsilon(1e-5), rel=1e-12)
    assert sphere.epsilon(1e-5) == pytest.approx(GaussianMechanism(2.0, 2.0).epsilon(1e-5), rel=1e-12)
    assert cube.rdp(2.0) == pytest.approx(9 / 4, rel=1e-12)
    assert cube.gdp_mu() == pytest.approx(1.5, rel=1e-12)
    assert cube.delta(0.3, bound="lower") <= GaussianMechanism(2.0, 3.0).delta(0.3) <= cube.delta(0.3)


def test_messages():
    rng = np.random.default_rng(3)
    noise = GaussianVector(0.5, 3, "sphere")
    values = rng.normal(size=(20_000, 3))
    values /= np.linalg.norm(values, axis=1)[:, None]
    error = noise.estimate(noise.randomize(values, rng)) - values.mean(axis=0)
    assert (np.abs(error) < 5 * 0.5 / math.sqrt(20_000)).all()
    assert noise.variance == 0.75
    assert noise.message_bits == 192


@pytest.mark.parametrize(("call", "text"), [
    (lambda: GaussianVector(1.0, 0), "dimension=0"),
    (lambda: GaussianVector(1.0, 1, "sphere"), "dimension=1"),
    (lambda: GaussianVector(1.0, 2, "ball"), "domain"),
    (lambda: GaussianVector(0.0, 2), "sigma=0"),
    (lambda: GaussianVector(0.1, 200).excess_laws(), r"sigma=0\.1 with dimension=200"),
    (lambda: GaussianVector(1.0, 2).randomize([[0.5, 1.5]]), "values"),
    (lambda: GaussianVector(1.0, 2, "sphere").randomize([[0.5, 0.5]]), "length 1"),
    (lambda: GaussianVector(1.0, 2).estimate([1.0, 2.0]), "shape"),
])
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()
