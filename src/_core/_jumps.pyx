"""Sums of two independent variables on few points: what lies in each cell between two of them.

    X + Y,  X and Y in atoms, rising;  points z_0 < ... < z_m;  of each cell the mass, and the mean distance from its lower end
    spread   the mass of a cell goes to its two ends, the mean kept: E f(X + Y) grows for every convex f
    merged   it goes to its mean: E f(X + Y) falls

Layer: a function on memoryviews. Points must enclose all sums; masses >= 0, their products may underflow.

Roundings   a sum is moved by more than its rounding, to the side asked for; masses and distances are sums of positive terms, of
            2 UNIT for each of their terms in error
Cost        3 to 6 ns a pair: for each jump the places go through the points once
Source      Shaked, Shanthikumar, Stochastic Orders, 3.A: splitting and merging
"""

from libc.math cimport fabs

import numpy as np

from shufflebounds._core._constants cimport UNIT


def cell_sums(const double[::1] place, const double[::1] mass, const double[::1] jump, const double[::1] chance,
              const double[::1] nodes, bint upper):
    """Masses of a sum in the cells between nodes, and mass times distance from the lower end.

    Parameters
    ----------
    place, mass, jump, chance : ndarray
        The atoms of the two laws, both rising.
    nodes : ndarray
        Rising, at least two, with all sums between the first and the last.
    upper : bool
        Which way sums are rounded.

    Returns
    -------
    (ndarray, ndarray)
    """
    cdef Py_ssize_t i, j, k, cells = nodes.shape[0] - 1
    cdef double x, p, here, first, blur = 4 * UNIT if upper else -4 * UNIT
    cdef double[::1] total = np.zeros(cells), moment = np.zeros(cells)
    with nogil:
        for j in range(jump.shape[0]):
            k = 0
            here = first = 0
            for i in range(place.shape[0]):
                p = mass[i] * chance[j]
                x = place[i] + jump[j] + blur * (fabs(place[i]) + fabs(jump[j]))
                if nodes[k + 1] <= x and k < cells - 1:
                    total[k] += here
                    moment[k] += first
                    here = first = 0
                    k += 1
                    while nodes[k + 1] <= x and k < cells - 1:
                        k += 1
                here += p
                first += p * (x - nodes[k])
            total[k] += here
            moment[k] += first
    return np.asarray(total), np.asarray(moment)
