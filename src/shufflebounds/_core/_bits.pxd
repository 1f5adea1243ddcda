# Hockey-stick divergence of a sum of independent bits for the two values of the target user. Errors: the header of _bits.pyx.

# Writes bounds of log max_k (gain W(k) - loss Pr[S < k]), W the distribution of S, loss >= 0; both are -inf if gain <= 0. No bound
# is NaN, and the upper one is finite if gain > 0. The caller has checked: p, q, counts as in _lattice.pxd (counts > 0, 0 < p < 1;
# groups may be 0); gain, at most 1, and loss, at most e^700, have relative errors of at most 8 units of roundoff. The inversion
# omits about e^-band (21 to BAND; _lattice.pxd).
cdef void c_best_threshold(const double *p, const double *q, const double *counts, Py_ssize_t groups, double gain, double loss,
                           double band, double *lower, double *upper) noexcept nogil

# Writes bounds of log max(0, sum_s (P0(s) - e^eps P1(s))), where P0 is the distribution of S + Ber(flip), P1 that of
# S + Ber(1 - flip), and S the sum of the bits of the other users. No bound is NaN; the upper one is finite if gap > 0.
# The caller has checked: p, q, counts as above, 0 < flip <= 1/2, 0 <= eps <= 700. It passes gap = ln((1 - flip)/flip) - eps,
# accurate to an ulp, since the difference of a rounded budget and eps cancels where eps is close to the budget.
cdef void c_bits_log_delta_within(const double *p, const double *q, const double *counts, Py_ssize_t groups, double flip,
                                  double eps, double gap, double band, double *lower, double *upper) noexcept nogil
# The same function with band = BAND.
cdef void c_bits_log_delta(const double *p, const double *q, const double *counts, Py_ssize_t groups, double flip, double eps,
                           double gap, double *lower, double *upper) noexcept nogil


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
