# Hockey-stick divergence of a sum of independent bits for the two values of the target user. Errors: the header of _bits.pyx.

# log max(0, sum_s (P0(s) - e^eps P1(s))), P0 the distribution of S + Ber(flip), P1 that of
# S + Ber(1 - flip), S the sum of the bits of the other users.
# The caller has checked: the law as in _lattice.pxd (counts > 0, 0 < p < 1; groups may be 0), 0 < flip <= 1/2, eps >= 0;
# gap = ln((1 - flip)/flip) - eps to an ulp. The caller passes gap, since the difference
# of a rounded budget and eps cancels where eps is close to the budget.
# error[0] bounds the absolute error of the logarithm.
cdef double c_bits_log_delta(const double *p, const double *q, const double *counts, Py_ssize_t groups,
                             double flip, double eps, double gap, double *error) noexcept nogil


# Writes the groups of the given numbers of ones and zeros, all with one flip probability, into arrays of length 2.
# Returns the number of groups.
cdef inline Py_ssize_t known_bits(double ones, double zeros, double flip, double *p, double *q, double *counts) noexcept nogil:
    cdef Py_ssize_t groups = 0
    if ones > 0:
        p[groups], q[groups], counts[groups] = 1 - flip, flip, ones
        groups += 1
    if zeros > 0:
        p[groups], q[groups], counts[groups] = flip, 1 - flip, zeros
        groups += 1
    return groups
