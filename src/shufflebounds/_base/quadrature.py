"""Gauss-Legendre quadrature on panels, and sums and exponentials of logarithms."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import FloatArray

__all__ = ["STEEPEST", "capped_exp", "gauss_legendre", "log_normal_masses", "log_sum", "log_sums", "total_of"]

STEEPEST = 8.0
"""Largest change of the log of an integrand over a panel: with 12 nodes the rule is then accurate to the rounding of the sum.
Raised: less accurate integrals. Lowered: more panels, and longer run time."""


_RULE = np.polynomial.legendre.leggauss(16)
"""Nodes and weights of the rule for the masses of cells, on [-1, 1]."""


def gauss_legendre(number: int) -> tuple[FloatArray, FloatArray]:
    """Return the nodes and the weights of the Gauss-Legendre rule on [0, 1] with `number` nodes.

    The rule is exact for polynomials of degree 2 number - 1.
    """
    nodes, weights = np.polynomial.legendre.leggauss(number)
    return np.asarray((nodes + 1) / 2), np.asarray(weights / 2)


def log_normal_masses(edges: FloatArray, mean: float, deviation: float) -> FloatArray:
    """Return the log masses of the cells between increasing edges under a normal distribution.

    Each cell has one rule of 16 nodes, which is accurate to rounding if the log density changes by at most STEEPEST over the cell.
    """
    nodes, weights = _RULE
    width = np.diff(edges)
    at = (edges[:-1] + width / 2)[:, None] + width[:, None] / 2 * nodes
    square = -0.5 * ((at - mean) / deviation) ** 2
    top = square.max(axis=1)
    inner = np.log(np.exp(square - top[:, None]) @ weights) + top
    return np.asarray(inner + np.log(width / (2 * deviation)) - 0.5 * math.log(2 * math.pi))


def log_sum(logs: FloatArray) -> float:
    """Return the log of the sum of the exponentials; -inf for no terms."""
    top = float(logs.max(initial=-math.inf))
    return top + math.log(float(np.exp(logs - top).sum())) if -math.inf < top < math.inf else top


def log_sums(log_terms: FloatArray) -> FloatArray:
    """Return the log of the sum over the last axis, with about the rounding error of the largest term."""
    top = log_terms.max(axis=-1)
    safe = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(log_terms - safe[..., None]).sum(axis=-1)))


def total_of(values: FloatArray, counts: FloatArray) -> float:
    """Return the sum of values times counts.

    A scalar product by BLAS has an error of 14 ulp for 1e6 terms, above SUMMED, and starts threads for more than 1e4 terms, which
    takes a thousand times as long if other processes are busy.
    """
    return float((values * counts).sum())


def capped_exp(exponent: float) -> float:
    """Return e^exponent, or e^LARGEST_EXPONENT if the exponent is larger; for error bounds, which are useless at that size."""
    return math.exp(min(exponent, LARGEST_EXPONENT))
