"""Gauss-Legendre quadrature on panels."""

from __future__ import annotations

import numpy as np

from shufflebounds._types import FloatArray

__all__ = ["STEEPEST", "gauss_legendre"]

STEEPEST = 8.0
"""Largest change of the log of an integrand over a panel: with 12 nodes the rule is then accurate to the rounding of the sum.
Raised: less accurate integrals. Lowered: more panels, and longer run time."""


def gauss_legendre(number: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes and the weights of the Gauss-Legendre rule on [0, 1] with `number` nodes.

    The rule is exact for polynomials of degree 2 number - 1.
    """
    nodes, weights = np.polynomial.legendre.leggauss(number)
    return np.asarray((nodes + 1) / 2), np.asarray(weights / 2)
