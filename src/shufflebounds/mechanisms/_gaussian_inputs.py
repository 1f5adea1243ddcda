r"""Matrices that bound Gaussian noise on finitely many inputs, which lie on a grid of equal steps.

A randomizer with finitely many inputs and outputs is given by its matrix R of probabilities. The matrix for the upper bound is one
of which the noise is a post-processing. With outputs z in units of sigma and g the step of the grid, the likelihood of the input at
:math:`s_x = s_0 + n_x g` is

.. math:: R_x(z) = \varphi(z)\, e^{s_0 z - s_x^2/2}\, r^{n_x}, \qquad r = e^{g z},

so that, up to a factor, all likelihoods are powers of r up to :math:`r^N`. On a cell :math:`r_0 \le r \le r_1` these are linear
combinations of Bernstein's polynomials :math:`B_j(t) = \binom{N}{j} t^j (1 - t)^{N-j}`, :math:`t = (r - r_0)/(r_1 - r_0)`, with
positive coefficients:

.. math:: r^n = \sum_{j=0}^N c_{jn} B_j(t), \qquad
    c_{jn} = \sum_i \frac{\binom{j}{i} \binom{N-j}{n-i}}{\binom{N}{n}}\, r_1^i\, r_0^{n-i}.

The matrix for the upper bound has an output for every cell and j, with probability :math:`e^{-s_x^2/2} c_{jn_x}` times the integral
of :math:`\varphi(z) e^{s_0 z} B_j`. Given this output, z has a density that does not depend on the input. So the noise on the cells
is a post-processing of the matrix. The last output of a cell and the first one of the next cell have proportional probabilities and
are one output.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._scipy import log_ndtr, ndtri_exp
from shufflebounds._types import ULP, FloatArray
from shufflebounds.mechanisms._interval import BLUR

__all__ = ["MOST_STEPS", "WIDEST", "gaussian_rows", "grid_numbers"]

MOST_STEPS = 32
"""Largest number N of steps of the grid. Each cell has N outputs. Raised: fewer cells and a larger upper bound. Lowered: inputs on
a finer grid are refused."""

WIDEST = 27.0
"""Largest distance of the first and the last input in units of sigma. Raised: probabilities could underflow. Lowered: inputs that
are further apart are refused."""


def grid_numbers(inputs: tuple[float, ...]) -> tuple[list[int], float] | None:
    """Return the numbers n_x of increasing inputs on the coarsest grid of at most MOST_STEPS equal steps; None if there is none.

    The second value is the largest distance of an input from its grid point, as a fraction of the distance of the last input from
    the first one. It is at most 1e-14, for inputs such as multiples of 0.1, which are rounded.
    """
    positions = (np.array(inputs) - inputs[0]) / (inputs[-1] - inputs[0])
    for steps in range(len(inputs) - 1, MOST_STEPS + 1):
        numbers = np.rint(positions * steps)
        off = float(np.abs(positions - numbers / steps).max())
        if off <= 1e-14:
            return [int(number) for number in numbers], off
    return None


def gaussian_rows(
    numbers: list[int], off: float, width: float, outputs: int, log_cut: float
) -> tuple[FloatArray, FloatArray, FloatArray, float, float]:
    """Return three matrices: for the upper bound over all datasets, for the privacy blanket and for lower bounds.

    Parameters
    ----------
    numbers : list of int
        Increasing places n_x of the inputs on the grid; the first is 0, the last N.
    off : float
        Largest distance of an input from its grid point, as a fraction of the distance of the last input from the first one.
    width : float
        Distance of the first and the last input in units of sigma, at most WIDEST.
    outputs : int
        Approximate number of outputs of the first matrix.
    log_cut : float
        Log mass of the tail beyond the cells, on either side, under the nearest input.

    Returns
    -------
    tuple of (ndarray, ndarray, ndarray, float, float)
        The matrices (inputs, outputs). In the first, the mass of the tails is moved to the outermost outputs; the fourth entry of
        the tuple is the total variation distance, at most, between the noise and a post-processing of this matrix. In the second,
        the tails identify the input. The third is a post-processing of the noise. The last entry is the largest relative error of
        the likelihood ratios of two inputs.
    """
    steps = numbers[-1]
    place = width * (np.array(numbers) / steps - 0.5)
    end = 0.5 * width - float(ndtri_exp(log_cut))
    inner = _bernstein_masses(np.linspace(-end, end, -(-outputs // steps) + 1), place, numbers, width / steps)
    # The tail masses of the blanket are increased by a margin that covers their rounding.
    margin = 1 + 1e-9
    cut = math.exp(log_cut) * margin
    above = inner.copy()
    for nearest, column in ((0, 0), (-1, -1)):
        # The tail is added to the outermost output. Likelihood ratios are more extreme in the tail, so the mass added for each
        # input is at least its tail.
        above[:, column] *= 1 + cut / inner[nearest, column]
    tails = np.exp(log_ndtr(np.array([-end - place, place - end])))
    blanket = np.concatenate([inner, np.diag(tails.sum(axis=0) * margin)], axis=1)
    # The lower bound uses four cells for each output of the upper bound. More cells would increase the bound slightly and take
    # longer.
    at, weights = _quadrature_points(np.linspace(-end, end, 4 * outputs + 1))
    below = np.concatenate([np.exp(-0.5 * (at - place[:, None, None]) ** 2) @ weights, tails.T], axis=1)
    # The log likelihood of an output at z changes by |z - s| per unit of the input s, and by at most one more in the tails.
    # BLUR covers the rounding errors.
    error = BLUR + (off + 2 * ULP) * width * (end + 0.5 * width + 1)
    return above, blanket, below, 4 * cut, error


def _quadrature_points(edges: FloatArray, more: int = 0) -> tuple[FloatArray, FloatArray]:
    """Return the nodes of Gauss-Legendre quadrature in each cell, shape (cells, nodes), and the weights divided by sqrt(2 pi).

    Each cell has 16 + `more` nodes; 16 give integrals exact to rounding for cells of less than two standard deviations.
    """
    nodes, weights = np.polynomial.legendre.leggauss(16 + more)
    half = 0.5 * np.diff(edges)
    return (edges[:-1] + half)[:, None] + half[:, None] * nodes, weights * (half[0] / math.sqrt(2 * math.pi))


def _bernstein_masses(edges: FloatArray, place: FloatArray, numbers: list[int], step: float) -> FloatArray:
    """Return the matrix for the upper bound (module docstring) on equal cells between the first and the last edge.

    `place` are the inputs in units of sigma, `numbers` their numbers n_x on the grid, and `step` is the step g of this grid.
    """
    steps, high = numbers[-1], step * (edges[1] - edges[0])
    at, weights = _quadrature_points(edges, steps)
    beyond = step * (at - edges[:-1, None])
    # The variables are `ratio` = r/r_0, t, and `rest` = 1 - t, as in the module docstring.
    ratio, t = np.exp(beyond), np.expm1(beyond) / math.expm1(high)
    rest = ratio * np.expm1(step * (edges[1:, None] - at)) / math.expm1(high)
    part = np.stack([math.comb(steps, j) * t**j * rest ** (steps - j) for j in range(steps + 1)], axis=-1)
    masses = []
    for centre, n in zip(place, numbers):
        # These are the entries c_jn of the module docstring, divided by r_0^n.
        coefficient = [math.fsum(math.comb(j, i) * math.comb(steps - j, n - i) / math.comb(steps, n) * math.exp(high * i)
                                 for i in range(n + 1)) for j in range(steps + 1)]
        density = np.exp(-0.5 * (at - centre) ** 2) * ratio**-n
        masses.append(np.einsum("cq,q,cqj->cj", density, weights, part) * coefficient)
    found = np.array(masses)
    # The last output of a cell and the first output of the next cell are one output, so their columns are added.
    outputs = np.zeros((len(numbers), steps * (edges.size - 1) + 1))
    outputs[:, :-1] += found[:, :, :-1].reshape(len(numbers), -1)
    outputs[:, steps::steps] += found[:, :, -1]
    return outputs
