r"""The mass c_- for Gaussian noise if the drawn users are matched at random within blocks of four (docs/theorems/worst-dataset).

In the proof, s pairs of users are drawn, and the messages of a block with the inputs :math:`x_1, \ldots, x_4` get the signed
distribution W. It is the mean over the three matchings of the product of :math:`C_{aj} = (1 + 2 g) R_a R_j - g\,(R_a^2 + R_j^2)`
over the two pairs, with :math:`g = \gamma/s`, :math:`\gamma < 1/2` and R_x = N(x, 1). If the negative part of W has a mass of
at most :math:`\nu`, the product of the W of s/2 blocks has a negative part of mass at most :math:`c_- = ((1 + 2\nu)^{s/2} - 1)/2`.
Four steps bound :math:`\nu` for all inputs in [0, L]:

- **Ends.** A contraction of the line plus noise maps the inputs 0, u, v, L to any other four inputs. So it suffices that one user
  has the input 0 and another one the input L.
- **Cells.** W is a sum of positive and negative terms, and each term is a product of densities such as R_u. If u is in a cell of
  width h, W is at least a mixture of the W for the two ends of the cell, with an additional factor for each term. The factor of a
  positive term is at least :math:`e^{-h^2 t^2/8}`, where t is the sum of y - u over the messages y with the density R_u in this
  term. The factor of a negative term is at most :math:`e^{h^2/8}` for each of these messages.
- **Powers.** With :math:`r = R_L/R_0` every factor :math:`R_z/R_0` is a multiple of :math:`r^{z/L}`. In a bin of outputs this power
  is at least its chord and at most its tangent. The tangent is at most :math:`e^{\beta^2/8}` times the power at the ends of the
  bin, where :math:`2 \beta` is the width of the bin in :math:`\ln r`. So W is at least a function that is affine in r of each
  message.
- **Bins.** The negative part of an affine function is convex. So its mean does not decrease if in each bin r is replaced by its
  values at the two ends of the bin, with the same mean.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import combinations_with_replacement

import numpy as np

from shufflebounds._base.convex_order import shares
from shufflebounds._base.limits import CACHED_ANSWERS
from shufflebounds._base.quadrature import log_normal_masses
from shufflebounds._base.scipy_functions import log_ndtr
from shufflebounds._base.types import FloatArray
from shufflebounds._core import _matchings

__all__ = ["FEWEST_LEFT", "WIDEST", "negative_mass", "rough_negative_mass"]

WIDEST = 4.0
"""Largest distance of two inputs in standard deviations. For longer intervals users are matched in pairs instead."""

FEWEST_LEFT = 250
"""Smallest number n' = n - 2s of users that remain after s pairs are drawn. The bounds of c_- hold for every
:math:`\\gamma = 1/2 - 1/n'` with n' >= FEWEST_LEFT. Raised: blocks are not used for fewer users. Lowered: a larger c_-."""

_BEYOND = 7.3
"""Distance of the outermost edge from the nearer end of the interval in standard deviations."""

_EDGES = (14, 22, 40)
"""Numbers of bins that are tried until a bound is below the largest bound of other inputs. With 60 edges c_- is 25 % smaller."""

_GRID = (0.0, 0.1, 0.35, 0.65, 0.9, 1.0)
"""Ends of the cells of inputs, relative to L. Inputs near the ends are the worst, so the cells between them may be wide."""

_MATCHED = ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3))


def negative_mass(length: float, pairs: int, inputs: tuple[float, ...] = ()) -> float:
    """Return an upper bound of c_- for every gamma in [1/2 - 1/FEWEST_LEFT, 1/2] and inputs in [0, length], or only those given.

    Parameters
    ----------
    length : float
        Length of the interval in standard deviations, at most WIDEST.
    pairs : int
        The even number s of drawn pairs.
    inputs : tuple of float
        The values that users may have, increasing from 0 to `length`; more than four are treated as the whole interval.
    """
    return _from_block(_largest(length, pairs, inputs if len(inputs) <= 4 else ()), pairs)


@lru_cache(CACHED_ANSWERS)
def rough_negative_mass(length: float, pairs: int) -> float:
    """Return an approximation of :func:`negative_mass`, within a factor of 3, in 3 ms."""
    largest = max(_of_inputs(length, pairs, (0.0, 0.0, x, length), (0.0, 0.0), _EDGES[1]) for x in (0.0, length))
    # With these few edges the bound is about three times the mass.
    return _from_block(largest / 3, pairs)


def _from_block(mass: float, pairs: int) -> float:
    return 0.5 * math.expm1(0.5 * pairs * math.log1p(2 * mass)) * (1 + 1e-9)


@lru_cache(CACHED_ANSWERS)
def _largest(length: float, pairs: int, inputs: tuple[float, ...]) -> float:
    """Return the largest mass of the negative part of W (module docstring) of one block."""
    if inputs:
        chosen = [(four, (0.0, 0.0)) for four in combinations_with_replacement(inputs, 4) if four[0] < four[-1]]
    else:
        places = [length * part for part in _GRID]
        gaps = np.diff(places)
        widths = np.maximum(np.append(gaps[0], gaps), np.append(gaps, gaps[-1])).tolist()
        # By reflection the inputs (0, u, v, L) and (0, L - v, L - u, L) give the same negative mass of W.
        count = len(places) - 1
        chosen = [((0.0, places[i], places[j], length), (widths[i], widths[j]))
                  for i, j in combinations_with_replacement(range(count + 1), 2) if i + j <= count]
    # Inputs at the ends are the worst; they are evaluated first.
    chosen.sort(key=lambda one: sum(0 < x < length for x in one[0]))
    most = 0.0
    for four, wide in chosen:
        for edges in _EDGES:
            mass = _of_inputs(length, pairs, four, wide, edges)
            if mass <= most:
                break
        most = max(most, mass)
    return most


@lru_cache(CACHED_ANSWERS)
def _edges(length: float, count: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the edges of about `count` bins of outputs, symmetric about the middle, denser where W (module docstring) may change
    its sign.

    The other arrays have for each edge: the larger width of its two bins, its mass under R_0, and e^(beta^2/8) of the
    module docstring.
    """
    half = 0.5 * length + _BEYOND
    fine = np.linspace(0.0, half, 2001)
    density = 0.25 + np.exp(-(((fine - 0.5 * length - 3.2) / 1.6) ** 2))
    climb = np.append(0.0, np.cumsum(density[1:] + density[:-1]))
    places = np.interp(np.linspace(0.0, 1.0, count // 2 + 1), climb / climb[-1], fine)
    y = 0.5 * length + np.concatenate([-places[:0:-1], places])
    gaps = np.diff(y)
    widest = np.maximum(np.append(gaps, 0.0), np.append(0.0, gaps))
    # R_0, the distribution for the input 0, is the reference. The mass of each bin moves to its two edges, so that the mean of r =
    # R_L/R_0 stays the same.
    ratio, mass = np.exp(length * (y - 0.5 * length)), np.exp(log_normal_masses(y, 0.0, 1.0))
    above = shares(np.exp(log_normal_masses(y, length, 1.0)) / mass, ratio[:-1], ratio[1:])
    weights = np.append(mass * (1 - above), 0.0) + np.append(0.0, mass * above)
    return y, widest, weights, np.exp((0.5 * length * widest) ** 2 / 8)


def _of_inputs(length: float, pairs: int, inputs: tuple[float, ...], widths: tuple[float, float], count: int) -> float:
    """Return an upper bound of the mass of the negative part of W (module docstring) for four increasing inputs.

    The second and the third input each stand for all inputs in the two cells next to them, of at most the given width.
    """
    y, widest, weights, bend = _edges(length, count)
    single, double, raised = [], [], []
    for x, h in zip(inputs, (0.0, *widths, 0.0)):
        power = np.exp(x * (y - 0.5 * x))
        # An edge belongs to two bins. So the distances `one` and `two` are the largest over the outputs of both bins and the inputs
        # of the cell.
        one = np.abs(y - x) + widest + 0.5 * h
        two = np.abs(y[:, None] + y - 2 * x) + widest[:, None] + widest + h
        single.append(power * np.exp(-((h * one) ** 2) / 8))
        double.append(np.outer(power, power) * np.exp(-((h * two) ** 2) / 8))
        raised.append(power * bend * math.exp(h * h / 8))
    low, high = (0.5 - 1 / FEWEST_LEFT) / pairs, 0.5 / pairs
    tables = np.empty((y.size, y.size, 6, 4))
    for place, (a, j) in enumerate(_MATCHED):
        mixed = np.outer(single[a], single[j]), np.outer(raised[a], raised[j])
        tables[:, :, place, 0] = (1 + 2 * low) * 0.5 * (mixed[0] + mixed[0].T)
        tables[:, :, place, 1] = low * (double[a] + double[j])
        tables[:, :, place, 2] = (1 + 2 * high) * 0.5 * (mixed[1] + mixed[1].T)
        tables[:, :, place, 3] = high * (np.outer(raised[a], raised[a]) + np.outer(raised[j], raised[j]))
    # Each of the four messages may be beyond the outermost edges; the total mass of abs(W) is (1 + 4 g)^2.
    beyond = 8 * math.exp(float(log_ndtr(-_BEYOND))) * (1 + 4 * high) ** 2
    return (_matchings.negative_part(weights, tables) + beyond) * (1 + 1e-6)
