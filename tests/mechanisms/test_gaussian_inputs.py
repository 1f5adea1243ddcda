"""Matrices that bound Gaussian noise on finitely many inputs, against the noise itself."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri_exp

from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.mechanisms._gaussian_inputs import gaussian_rows, grid_numbers
from shufflebounds.mechanisms._interval import BLUR
from shufflebounds.mechanisms._matrix_datasets import MatrixDatasets
from tests.strategies import slow


def hockey_stick(rows, eps):
    return float(np.maximum(rows[0] - math.exp(eps) * rows[1], 0.0).sum())


@pytest.mark.parametrize(("inputs", "sigma", "gap"), [
    ((0.0, 0.5, 1.0), 1.0, 1e-2), ((0.0, 0.1, 1.0), 1.0, 2e-2), ((0.0, 0.25, 0.5, 0.75, 1.0), 0.25, 1e-2),
    ((2.0, 3.0, 4.0), 0.2, 1e-2),
])
def test_pairs_of_rows_are_above_and_below_the_noise(inputs, sigma, gap):
    above, blanket, below, lost, _ = gaussian_rows(*grid_numbers(inputs), (inputs[-1] - inputs[0]) / sigma, 300, -50.0)
    for i, j in ((0, 1), (1, 0), (0, len(inputs) - 1), (len(inputs) - 2, len(inputs) - 1)):
        noise = GaussianMechanism(sigma, abs(inputs[j] - inputs[i]))
        for eps in (0.0, 0.1, 1.0):
            exact = noise.delta(eps)
            low, high, wide = (hockey_stick(rows[[i, j]], eps) for rows in (below, above, blanket))
            assert low <= exact * (1 + 1e-12) <= high * (1 + 1e-11) + lost
            assert exact <= wide * (1 + 1e-11)
            assert high - low < gap * exact + 1e-12
    assert 0 < lost < 1e-20
    for rows in (above, blanket, below):
        np.testing.assert_allclose(rows.sum(axis=1), 1.0, rtol=0, atol=1e-13)


@pytest.mark.parametrize("inputs", [(0.0, 0.5, 1.0), (0.0, 0.2, 0.4, 1.0), tuple(np.linspace(0, 1, 9))])
def test_likelihoods_in_a_cell_are_combinations_of_those_of_its_outputs(inputs):
    """The likelihoods of the inputs at an output are combinations, with nonnegative coefficients, of those of the cell's outputs.

    The coefficients are computed with 40 digits. That they are nonnegative proves that the noise is a post-processing of the
    matrix.
    """
    (numbers, off), width, log_cut = grid_numbers(inputs), 1.5, -30.0
    steps = numbers[-1]
    above = gaussian_rows(numbers, off, width, 60, log_cut)[0]
    cells = -(-60 // steps)
    with mpmath.workdps(40):
        end = width / 2 - mpmath.findroot(lambda z: mpmath.log(mpmath.ncdf(z)) - log_cut, -7.5)
        place = [mpmath.mpf(width) * (mpmath.mpf(n) / steps - 0.5) for n in numbers]
        for cell in (0, cells // 2, cells - 1):
            edges = [-end + 2 * end * (cell + k) / cells for k in (0, 1)]
            for part in (0.1, 0.5, 0.93):
                z = edges[0] + part * (edges[1] - edges[0])
                low, r, high = (mpmath.exp(mpmath.mpf(width) / steps * y) for y in (edges[0], z, edges[1]))
                t = (r - low) / (high - low)
                found = [mpmath.mpf(0)] * len(inputs)
                for j in range(steps + 1):
                    column = above[:, cell * steps + j]
                    weight = mpmath.binomial(steps, j) * t**j * (1 - t) ** (steps - j)
                    # `column` has the likelihoods of all inputs at one output. They are divided by that of the first input.
                    found = [a + weight * mpmath.mpf(float(b)) / mpmath.mpf(float(column[0])) for a, b in zip(found, column)]
                exact = [mpmath.exp((s - place[0]) * z - (s**2 - place[0] ** 2) / 2) for s in place]
                for value, true in zip(found, exact):
                    assert abs(value / true - 1) < 1e-12


@pytest.mark.parametrize(("inputs", "numbers"), [
    ((0.0, 0.5, 1.0), [0, 1, 2]), ((0.0, 0.1, 1.0), [0, 1, 10]), ((1.0, 2.0, 4.0), [0, 1, 3]), ((0.0, 1 / 3, 1.0), [0, 1, 3]),
    ((-1.0, 0.0, 31.0), [0, 1, 32]), ((0.0, 1.0, 33.0), None), ((0.0, 0.3333, 1.0), None),
])
def test_coarsest_grid(inputs, numbers):
    found = grid_numbers(inputs)
    assert found == (None if numbers is None else (numbers, pytest.approx(0, abs=1e-16)))


@pytest.mark.parametrize(("inputs", "width"), [
    ((0.0, 1 / 3 + 9e-15, 1.0), 27.0), ((10.1, 10.2, 10.4), 20.0), ((0.0, 0.5, 1.0), 2.0),
])
def test_the_error_covers_inputs_beside_the_grid(inputs, width):
    """Likelihood ratios of cells of the matrix for lower bounds, against 400 digits at the exact inputs."""
    numbers, off = grid_numbers(inputs)
    *_, below, _, error = gaussian_rows(numbers, off, width, 300, -50.0)
    with mpmath.workdps(400):
        place = [width * ((mpmath.mpf(x) - inputs[0]) / (mpmath.mpf(inputs[-1]) - inputs[0]) - 0.5) for x in inputs]
        end = 0.5 * width - float(ndtri_exp(-50.0))
        edges = np.linspace(-end, end, 1201)
        for column in (0, 600, 1199):
            low, high = (mpmath.mpf(float(x)) for x in edges[column : column + 2])
            exact = [mpmath.ncdf(high - s) - mpmath.ncdf(low - s) for s in place]
            # Errors that all rows share, such as those of the edges, change no likelihood ratio.
            for row, value in zip(below[1:, column], exact[1:]):
                assert abs(float(row) / float(below[0, column]) * exact[0] / value - 1) <= error
    assert (error > 2 * BLUR) == (inputs[1] != 0.5)


def test_the_local_budget_includes_the_error_of_the_probabilities():
    rows = np.array([[0.25, 0.75], [0.5, 0.5]])
    plain, loose = (MatrixDatasets(rows, error).of(0, 1) for error in (0.0, 1e-10))
    assert loose.local_eps == pytest.approx(plain.local_eps + 2e-10, abs=1e-14)


@pytest.mark.parametrize("users", [1, slow(3)])
def test_few_users_with_listed_inputs(users):
    noise = GaussianMechanism(0.7, 2.0)
    protocol = noise.shuffled(users, inputs=(3.0, 3.5, 5.0))
    for eps in (0.1, 0.7, 2.0):
        lower, upper = (protocol.log_delta(eps, bound=side) for side in ("lower", "upper"))
        assert lower <= upper <= noise.log_delta(eps) + 1e-11
        if users == 1:
            assert upper - lower < 0.02
