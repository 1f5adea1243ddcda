"""Laws of sums of two independent variables on few points, larger or smaller in the convex order.

    X + Y,  X and Y in atoms, rising;  points z_0 < ... < z_m
    spread   every sum goes to the two points beside it, its mass and mean kept: E f(X + Y) grows for every convex f
    merged   the sums of a cell go to their mean: E f(X + Y) falls

Layer: functions on memoryviews. Points must enclose all sums; masses >= 0, their products may underflow.

Roundings   a sum is moved up (spread) or down (merged) by more than its rounding, so that E f keeps its side for rising f;
            masses are relatively good to 2 EPS a term, which the caller charges: (len X)(len Y) EPS at most
Cost        2 to 3 ns a pair: for each jump the places go through the points once
Source      Shaked, Shanthikumar, Stochastic Orders, 3.A: splitting and merging
"""

from libc.math cimport fabs

import numpy as np

cdef double EPS = 1.1102230246251565e-16          # half an ulp of 1


def spread_sum(const double[::1] place, const double[::1] mass, const double[::1] jump, const double[::1] chance,
               const double[::1] nodes):
    """Masses at the nodes of a law at or above that of the sum.

    Parameters
    ----------
    place, mass, jump, chance : ndarray
        The atoms of the two laws, both rising.
    nodes : ndarray
        Rising, at least two, with all sums between the first and the last.

    Returns
    -------
    ndarray
    """
    cdef Py_ssize_t i, j, k, cells = nodes.shape[0] - 1
    cdef double x, share, p
    cdef double[::1] out = np.zeros(cells + 1)
    with nogil:
        for j in range(jump.shape[0]):
            k = 0
            for i in range(place.shape[0]):
                p = mass[i] * chance[j]
                x = place[i] + jump[j] + 4 * EPS * (fabs(place[i]) + fabs(jump[j]))
                while k < cells - 1 and nodes[k + 1] <= x:
                    k += 1
                share = (x - nodes[k]) / (nodes[k + 1] - nodes[k])
                share = 0 if share < 0 else 1 if share > 1 else share
                out[k] += p * (1 - share)
                out[k + 1] += p * share
    return np.asarray(out)


def merged_sum(const double[::1] place, const double[::1] mass, const double[::1] jump, const double[::1] chance,
               const double[::1] nodes):
    """Atoms of a law at or below that of the sum: what lies between two nodes is at its mean.

    Parameters
    ----------
    place, mass, jump, chance, nodes : ndarray
        As for `spread_sum`.

    Returns
    -------
    (ndarray, ndarray)
        Rising places, and their masses; cells without mass are left out.
    """
    cdef Py_ssize_t i, j, k, cells = nodes.shape[0] - 1
    cdef double x, p
    cdef double[::1] out = np.zeros(cells), first = np.zeros(cells)
    with nogil:
        for j in range(jump.shape[0]):
            k = 0
            for i in range(place.shape[0]):
                p = mass[i] * chance[j]
                x = place[i] + jump[j] - 4 * EPS * (fabs(place[i]) + fabs(jump[j]))
                while k < cells - 1 and nodes[k + 1] <= x:
                    k += 1
                out[k] += p
                # from the end of the cell, which loses no digits
                first[k] += p * (x - nodes[k])
    total, moment, low = np.asarray(out), np.asarray(first), np.asarray(nodes)[:-1]
    kept = total > 0
    return low[kept] + moment[kept] / total[kept], total[kept]
