"""Polynomials of _smoothed.pyx that are upper and lower bounds of 1 - z cdf(-z)/pdf(z), by linear programs, with a proof.

Run the script as ``python tests/reference/sandwich.py``; it takes two seconds. SciPy solves the linear programs.
"""

import math

import numpy as np
from numpy.polynomial import Polynomial, hermite_e
from scipy.optimize import linprog
from scipy.special import erfcx

EDGE, STEP = 8.0, 2.0**-11


def ratio(z):
    """Return g(z)/pdf(z) = 1 - z cdf(-z)/pdf(z), z >= 0."""
    return 1 - z * math.sqrt(math.pi / 2) * erfcx(z / math.sqrt(2))


def plain(series):
    """Return the sum of series[k] He_2k as a polynomial in z."""
    coefficients = np.zeros(2 * len(series) - 1)
    coefficients[::2] = series
    return Polynomial(hermite_e.herme2poly(coefficients))


def fit(terms, sign):
    """Return the series that is an upper (sign 1) or lower (-1) bound of the ratio on a grid and closest to it.

    The distance is the integral of the difference with weight pdf.
    """
    z = np.linspace(0, 12, 24001)
    columns = np.stack([plain([0] * k + [1 / math.sqrt(math.factorial(2 * k))])(z) for k in range(terms)], 1)
    weight = 1 / np.maximum(1, np.abs(columns).max(1))
    found = linprog([sign] + [0] * (terms - 1), -sign * columns * weight[:, None], -sign * ratio(z) * weight, bounds=(None, None))
    return found.x / [math.sqrt(math.factorial(2 * k)) for k in range(terms)]


def least_distance(series, sign):
    """Return a lower bound of sign (series - ratio) over z >= 0; if it is positive, the series is a valid bound."""
    apart = plain(series) * sign
    z = np.arange(0, EDGE + STEP, STEP)
    # Linear interpolation has an error of at most STEP^2/8 times the second derivative, which is at most 2 for the ratio.
    size = Polynomial(np.abs(apart.deriv(2).coef))(z + STEP) + 2
    inside = apart(z) - sign * ratio(z) - size * STEP**2 / 8
    # Beyond EDGE the series is monotone, because its Taylor coefficients at EDGE have one sign, and the ratio is in (0,
    # ratio(EDGE)].
    shifted = apart(Polynomial([EDGE, 1])).coef
    outside = shifted[0] - (ratio(EDGE) if sign > 0 else 0) if np.all(shifted[1:] >= 0) else -math.inf
    return min(inside.min(), outside)


if __name__ == "__main__":
    for way, count in ((1, 5), (-1, 4)):
        print(fit(count, way))
