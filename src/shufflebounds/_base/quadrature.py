"""Gauss-Legendre quadrature on panels, and sums and exponentials of logarithms."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.scipy_functions import log_ndtr
from shufflebounds._base.types import FloatArray

__all__ = ["STEEPEST", "capped_exp", "gauss_legendre", "log_normal_masses", "log_sum", "log_sums", "total_of"]

STEEPEST = 8.0
"""Largest change of the log of an integrand over a panel. For sums of two exponentials the relative error of a rule of 12 nodes is
then below 4e-13 (`_losses/sampled_profile`). Raised: less accurate integrals. Lowered: more panels, and longer run time."""


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

    A narrow cell is integrated by a rule of 16 nodes with a relative error below 2**-55, by the theorem of docs/theorems/vectors
    ("Masses of cells"). The mass of a wider cell is the difference of the tails at its two ends: the tails differ by a factor of at
    least e^4, or the cell contains the mean.
    """
    nodes, weights = _RULE
    low, high = (edges[:-1] - mean) / deviation, (edges[1:] - mean) / deviation
    half = 0.5 * (np.diff(edges) / deviation)
    centre = low + half
    with np.errstate(over="ignore"):
        narrow = 4.56 * np.abs(centre) * half + 10.1 * half * half <= 31
    masses = np.empty(half.size)
    masses[~narrow] = _log_differences(low[~narrow], high[~narrow])
    square = -0.5 * (centre[narrow, None] + half[narrow, None] * nodes) ** 2
    top = square.max(axis=1)
    inner = np.log(np.exp(square - top[:, None]) @ weights) + top
    masses[narrow] = inner + np.log(half[narrow]) - 0.5 * math.log(2 * math.pi)
    return masses


def _log_differences(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the log normal mass between `low` and `high`, as a difference of tails, or as 1 minus both tails around the mean."""
    near, far = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
    apart, beyond = log_ndtr(-near), log_ndtr(-far)
    with np.errstate(divide="ignore"):
        inside, outside = np.log1p(-(np.exp(apart) + np.exp(beyond))), apart + np.log(-np.expm1(beyond - apart))
    return np.asarray(np.where((low < 0) & (high > 0), inside, outside))


def log_sum(logs: FloatArray) -> float:
    """Return the log of the sum of the exponentials; -inf for no terms."""
    top = float(logs.max(initial=-math.inf))
    return top + math.log(float(np.exp(logs - top).sum())) if -math.inf < top < math.inf else top


def log_sums(log_terms: FloatArray) -> FloatArray:
    """Return the log of the sum of e^log_terms over the last axis, with about the rounding error of the largest term."""
    top = log_terms.max(axis=-1)
    safe = np.where(top > -np.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(safe + np.log(np.exp(log_terms - safe[..., None]).sum(axis=-1)))


def total_of(values: FloatArray, counts: FloatArray) -> float:
    """Return the sum of values times counts.

    A scalar product by BLAS is not used. Its error is 14 ulp for 1e6 terms, above SUMMED. For more than 1e4 terms BLAS starts
    threads; if other processes are busy, the product then takes a thousand times as long.
    """
    return float((values * counts).sum())


def capped_exp(exponent: float) -> float:
    """Return e^exponent, but at most e^LARGEST_EXPONENT.

    The limit avoids an overflow.
    """
    return math.exp(min(exponent, LARGEST_EXPONENT))
