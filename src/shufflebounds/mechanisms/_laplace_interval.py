r"""Laplace noise for inputs of a whole interval: the distributions that the upper bound over all datasets needs (`DatasetLaws`).

Let L be the length of the interval in units of the scale, L at most ln 10. Two facts, both proved in
docs/theorems/laplace-interval, reduce the interval to finitely many inputs:

- The two ends are the worst pair of the target's inputs for this bound.
- Another user's input x lies between two neighbouring points of a grid of width w. :math:`R_x` is equal to a combination of the
  distributions of these two points, plus a nonnegative rest of mass :math:`1 - \cosh(w/2 - t)/\cosh(w/2)`, with t the distance of
  x to one of them. So :math:`R_x` is at least :math:`s = 1/\cosh(w/2)` times a mixture of the distributions of the grid.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from shufflebounds._types import ULP, FloatArray
from shufflebounds.mechanisms._interval import BLUR
from shufflebounds.mechanisms._listed_inputs import laplace_rows
from shufflebounds.mechanisms._matrix_datasets import MatrixDatasets
from shufflebounds.shuffle.dataset_laws import DatasetLaws

__all__ = ["interval_datasets"]


def interval_datasets(length: float, steps: int = 16) -> DatasetLaws | None:
    """Return the distributions for the pair of both ends; None if the interval is longer than ln 10, the limit of the proof.

    Parameters
    ----------
    length : float
        Length of the interval in units of the scale, rounded up.
    steps : int
        Number of steps of the grid; even, so that the middle of the interval is a point of it. At L = 1 the mass s is 1 - 5e-4 by
        default, which has the effect of a relative 5e-4 fewer users. More steps: a larger s, and a longer search over the numbers
        of users of each kind.
    """
    if not length <= math.log(10) * (1 - 4 * ULP):
        return None
    half = 0.5 * length / steps
    share = 1 / math.cosh(half) * (1 - 8 * ULP)
    grid = MatrixDatasets(laplace_rows(np.linspace(0.0, length, steps + 1))[0], BLUR).of(0, -1)
    # `rest` bounds the norm of the nonnegative rest, the Green's function of the cell. Its square is at most tanh(w/2)/2, its
    # largest value, times itself. On the interval m is at least e^(-L)/2, as at its ends; the factor 1.001 covers the smaller m
    # of the matrix between two outputs.
    rest = math.sqrt(math.tanh(half) * (1 - share) * math.exp(length) * 1.001)
    # The radius of a ball that contains all R_x has three parts: the radius for the grid, the norm of the nonnegative rest, and the
    # norm of the missing mass 1 - s times the centre of the ball, whose density is at most e^L times m.
    radius = math.sqrt(grid.distance) + rest + (1 - share) * math.exp(0.5 * length)
    return replace(grid, distance=radius**2 * (1 + 8 * ULP), local_eps=length, share=share,
                   ratio_tail=lambda t: _ratio_tail(t, length))


def _ratio_tail(t: FloatArray, length: float) -> FloatArray:
    """Return for each t > 1 the largest probability, over pairs of inputs, of a likelihood ratio above t.

    The two ends of the interval attain it. `length` is the length L of the interval in units of the scale.
    """
    # Under input 0, the ratio R_0/R_L exceeds t at outputs to the left of (L - log t)/2.
    left = 0.5 * (length - np.log(t * (1 - 4 * ULP))) + 4 * ULP
    return np.where(left > 0, 1 - 0.5 * np.exp(-left), 0.0) * (1 + 8 * ULP)
