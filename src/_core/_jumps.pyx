"""Sums of two independent discrete variables, reduced to few points: the mass and the first moment of each cell between points.

    X and Y have increasing atoms. The kernel returns, for each cell between points z_0 < ... < z_m, the probability that X + Y is
    in the cell, and the sum of probability times distance from its lower end. The caller reduces X + Y to few points by
    splitting    the mass of a cell moves to its two ends and keeps its mean: E f(X + Y) increases for every convex f
    merging      the mass moves to its mean: E f(X + Y) decreases
X may be multiplied by a positive factor, and be limited to its smallest atoms; the factor and the limit may depend on Y.

Layer: ``c_cell_sums``, noexcept nogil, declared in _jumps.pxd, which says what the caller has checked; ``cell_sums`` for Python.

Roundings   each sum of two values is moved by 4 UNIT, up or down as requested; this is more than its rounding error, also with a
            factor, which adds an error of UNIT. Masses and distances are sums of positive terms, each with an error of 2 UNIT
Cost        3 to 6 ns a pair: for each atom of Y one pass over the atoms of X and the points
Source      Shaked, Shanthikumar, Stochastic Orders, 3.A: splitting and merging
"""

from libc.math cimport fabs

import numpy as np

from shufflebounds._core._constants cimport UNIT


cdef void c_cell_sums(const double *place, const double *mass, Py_ssize_t places, const double *jump, const double *chance,
                      Py_ssize_t jumps, const double *nodes, Py_ssize_t cells, bint upper, const double *factor,
                      const Py_ssize_t *used, double least, double *total, double *moment) noexcept nogil:
    cdef Py_ssize_t i, j, k, low, high
    cdef double x, p, here, first, faint, scale = 1, blur = 4 * UNIT if upper else -4 * UNIT
    for j in range(jumps):
        if factor != NULL:
            scale = factor[j]
        k = -1
        here = first = 0
        faint = least / chance[j] if chance[j] > 0 else least
        for i in range(places if used == NULL else used[j]):
            if mass[i] < faint:
                continue
            p = mass[i] * chance[j]
            x = scale * place[i]
            x = x + jump[j] + blur * (fabs(x) + fabs(jump[j]))
            if k < 0:
                # the cell of the smallest sum, by bisection; those of the others follow
                low, high = 0, cells
                while high - low > 1:
                    k = (low + high) // 2
                    if nodes[k] <= x:
                        low = k
                    else:
                        high = k
                k = low
            elif nodes[k + 1] <= x and k < cells - 1:
                total[k] += here
                moment[k] += first
                here = first = 0
                k += 1
                while nodes[k + 1] <= x and k < cells - 1:
                    k += 1
            here += p
            first += p * (x - nodes[k])
        if k >= 0:
            total[k] += here
            moment[k] += first


def cell_sums(const double[::1] place, const double[::1] mass, const double[::1] jump, const double[::1] chance,
              const double[::1] nodes, bint upper, const double[::1] factor=None, const Py_ssize_t[::1] used=None,
              double least=0):
    """Return the mass of X + Y in each cell between nodes, and the sum of mass times distance from the cell's lower end.

    Parameters
    ----------
    place, mass, jump, chance : ndarray
        Values and probabilities of X (place, mass) and of Y (jump, chance), values increasing.
    nodes : ndarray
        Increasing, at least two, with all sums between the first and the last.
    upper : bool
        Whether sums are rounded up or down.
    factor : ndarray, optional
        Positive numbers, one for each value of Y: the results are those of factor X + Y.
    used : ndarray, optional
        For each value of Y, the number of values of X that are used, from the smallest one on.
    least : float
        Pairs with a mass below it, up to rounding, are left out. A product that underflows takes 13 times as long.

    Returns
    -------
    (ndarray, ndarray)
    """
    cdef Py_ssize_t cells = nodes.shape[0] - 1
    cdef double[::1] total = np.zeros(cells), moment = np.zeros(cells)
    if place.shape[0] > 0 and jump.shape[0] > 0:
        with nogil:
            c_cell_sums(&place[0], &mass[0], place.shape[0], &jump[0], &chance[0], jump.shape[0], &nodes[0], cells, upper,
                        NULL if factor is None else &factor[0], NULL if used is None else &used[0], least, &total[0], &moment[0])
    return np.asarray(total), np.asarray(moment)
