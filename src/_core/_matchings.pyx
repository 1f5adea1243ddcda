"""The mass of the negative part of the signed distribution of four messages, averaged over the matchings of their users.

Four users are matched into two pairs in one of three ways, and so are their four messages. On a grid of outputs, with the tables
P (for positive terms) and N (for negative terms) of each pair of users and each pair of outputs,
    W(i, j, k, m) = (1/18) sum over matchings {A, B} of users, {u, v} of outputs, and both assignments of u, v to A, B
                    of  P0_A(u) P0_B(v) + P1_A(u) P1_B(v) - N0_A(u) N1_B(v) - N1_A(u) N0_B(v)
and the result is the sum of mass_i mass_j mass_k mass_m (-W)_+ over all quadruples of outputs (docs/theorems/worst-dataset).

Layer: ``c_negative_part``, noexcept nogil, declared in _matchings.pxd. The caller has checked: tables >= 0, symmetric in the
outputs, and products of two entries do not overflow.

Method     W is symmetric, so each multiset of outputs is evaluated once and multiplied by the number of its orders
Rounding   the negative terms are raised and the positive ones lowered by a relative 64 UNIT, and the result is raised by 1e-9

Measured relative excess of the upper bound over exact rationals (tests/reference/measure_sums.py)
    quantity                                                    trials    peak      rms
    1 to 3 outputs, masses to 1e-3                              500       1.1e-09   1e-09
    1 to 3 outputs, masses to 1e-20                             500       1.1e-09   1e-09
Cost       60 ns a multiset: 4 ms for 40 outputs, 7 times as much if the multisets are not merged
Source     docs/theorems/worst-dataset, blocks of four users
"""

import numpy as np

from shufflebounds._core._constants cimport UNIT


cdef double c_negative_part(const double *mass, Py_ssize_t outputs, const double *tables) noexcept nogil:
    cdef Py_ssize_t i, j, k, m, a, x, first, second
    cdef Py_ssize_t at[3][2]
    cdef const double *u
    cdef const double *v
    cdef double total = 0, plus, minus, gap, orders, share
    for i in range(outputs):
        for j in range(i, outputs):
            at[0][0] = i * outputs + j
            for k in range(j, outputs):
                share = mass[i] * mass[j] * mass[k]
                at[1][0] = i * outputs + k
                at[2][0] = j * outputs + k
                for m in range(k, outputs):
                    at[0][1] = k * outputs + m
                    at[1][1] = j * outputs + m
                    at[2][1] = i * outputs + m
                    plus = minus = 0
                    for x in range(3):
                        u = tables + 24 * at[x][0]
                        v = tables + 24 * at[x][1]
                        # the pairs of users 0..5 are 01, 02, 03, 12, 13, 23, so that a and 5 - a are a matching
                        for a in range(3):
                            first = 4 * a
                            second = 20 - 4 * a
                            plus += (u[first] * v[second] + v[first] * u[second]
                                     + u[first + 1] * v[second + 1] + v[first + 1] * u[second + 1])
                            minus += (u[first + 2] * v[second + 3] + v[first + 2] * u[second + 3]
                                      + u[first + 3] * v[second + 2] + v[first + 3] * u[second + 2])
                    gap = minus * (1 + 64 * UNIT) - plus * (1 - 64 * UNIT)
                    if gap > 0:
                        orders = 24
                        # runs of equal outputs
                        if i == j:
                            if j == k:
                                orders = 1 if k == m else 4
                            else:
                                orders = 6 if k == m else 12
                        elif j == k:
                            orders = 4 if k == m else 12
                        elif k == m:
                            orders = 12
                        total += orders * share * mass[m] * gap
    return total / 18 * (1 + 1e-9)


def negative_part(const double[::1] mass, const double[:, :, :, ::1] tables):
    """Return the mass of the negative part of W, rounded up.

    Parameters
    ----------
    mass : ndarray
        Nonnegative weights of the outputs.
    tables : ndarray, shape (outputs, outputs, 6, 4)
        P0, P1, N0 and N1 for the six pairs 01, 02, 03, 12, 13, 23 of users; symmetric in the two outputs.

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
