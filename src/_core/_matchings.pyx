"""The mass of the negative part of the signed distribution of four messages, averaged over the ways to match their users.

Four users are matched into two pairs in one of three ways, and so are their four messages. The outputs lie on a grid. Each pair of
users has tables P0 and P1 of positive terms and N0 and N1 of negative terms, with an entry for each pair of outputs. With
    W(i, j, k, m) = (1/18) sum over matchings {A, B} of users, {u, v} of outputs, and both assignments of u, v to A, B
                    of  P0_A(u) P0_B(v) + P1_A(u) P1_B(v) - N0_A(u) N1_B(v) - N1_A(u) N0_B(v)
the result is the sum of mass_i mass_j mass_k mass_m (-W)_+ over all quadruples of outputs (docs/theorems/worst-dataset).

Method     W is symmetric, so each multiset of outputs is evaluated once and multiplied by the number of its orders
Rounding   the negative terms are raised and the positive ones lowered by a relative 64 UNIT, and the result is raised by 1e-9

Measured error: relative excess of the upper bound over exact rationals (tests/reference/measure_sums.py)
    quantity                                                    trials    peak      rms
    1 to 3 outputs, masses to 1e-3                              500       1.1e-09   1e-09
    1 to 3 outputs, masses to 1e-20                             500       1.1e-09   1e-09
Cost       20 to 30 ns for each multiset: 3 ms for 40 outputs. Evaluating every order of a multiset would take 7 times as long
Source     docs/theorems/worst-dataset, blocks of four users
"""

import numpy as np

from libc.math cimport INFINITY
from libc.stdlib cimport calloc, free

from shufflebounds._core._constants cimport UNIT

cdef extern from "matchings.h" nogil:
    const int MATCHINGS_ENTRIES
    const int MATCHINGS_LANES
    void matchings_row(const double *const *u, const double *const *v, Py_ssize_t stride, Py_ssize_t n, double *plus, double *minus)


cdef double c_negative_part(const double *mass, Py_ssize_t outputs, const double *tables) noexcept nogil:
    cdef Py_ssize_t i, j, k, m, a, c, stride = outputs + MATCHINGS_LANES, size = MATCHINGS_ENTRIES * stride
    cdef const double *u[3]
    cdef const double *v[3]
    cdef double total = 0, gap, orders, share
    cdef double *rows = <double *> calloc(size * outputs + 2 * stride, sizeof(double))
    cdef double *plus = rows + size * outputs
    cdef double *minus = plus + stride
    cdef Py_ssize_t[4] other
    if rows == NULL:
        return INFINITY
    # The products of two pairs of users are P0 P0, P1 P1, N0 N1 and N1 N0, so N0 and N1 of the second pair are exchanged. The pairs
    # are numbered 01, 02, 03, 12, 13, 23, so that the pairs a and 5 - a have no user in common and are a matching.
    other[0], other[1], other[2], other[3] = 20, 21, 23, 22
    for i in range(outputs):
        for a in range(MATCHINGS_ENTRIES):
            c = other[a % 4] - a // 4 * 4
            for m in range(outputs):
                rows[i * size + a * stride + m] = tables[(i * outputs + m) * MATCHINGS_ENTRIES + c]
    for i in range(outputs):
        for j in range(i, outputs):
            u[0] = tables + (i * outputs + j) * MATCHINGS_ENTRIES
            for k in range(j, outputs):
                share = mass[i] * mass[j] * mass[k]
                u[1] = tables + (i * outputs + k) * MATCHINGS_ENTRIES
                u[2] = tables + (j * outputs + k) * MATCHINGS_ENTRIES
                v[0], v[1], v[2] = rows + k * size + k, rows + j * size + k, rows + i * size + k
                matchings_row(u, v, stride, outputs - k, plus, minus)
                # the number of different orders of a multiset of outputs, which depends on its runs of equal outputs; this one is
                # for m = k
                orders = (1 if i == j else 4) if j == k else (6 if i == j else 12)
                for m in range(outputs - k):
                    gap = minus[m] * (1 + 64 * UNIT) - plus[m] * (1 - 64 * UNIT)
                    if gap > 0:
                        total += orders * share * mass[k + m] * gap
                    if m == 0:
                        orders = (4 if i == j else 12) if j == k else (12 if i == j else 24)
    free(rows)
    return total / 18 * (1 + 1e-9)


def negative_part(const double[::1] mass, const double[:, :, :, ::1] tables):
    """Return the mass of the negative part of W, rounded up.

    Parameters
    ----------
    mass : ndarray
        Nonnegative weights of the outputs.
    tables : ndarray, shape (outputs, outputs, 6, 4)
        The tables P0, P1, N0 and N1 for the six pairs 01, 02, 03, 12, 13, 23 of users; symmetric in the two outputs.

    Returns
    -------
    float
    """
    cdef double out
    if tables.shape[0] != mass.shape[0] or tables.shape[1] != mass.shape[0] or tables.shape[2] != 6 or tables.shape[3] != 4:
        raise ValueError(f"tables has the shape {np.shape(tables)}: it must be ({mass.shape[0]}, {mass.shape[0]}, 6, 4)")
    if not mass.shape[0]:
        return 0.0
    with nogil:
        out = c_negative_part(&mass[0], mass.shape[0], &tables[0, 0, 0, 0])
    return out
