from libc.stdint cimport uint64_t

# Knots of a trade-off function. Errors: the header of _tradeoff.pyx.

# out[0] = -inf, out[step (i + 1)] = log sum_(j <= i) e^(x[step j]), i < n; step -1 walks x and out downwards from where
# they point. The caller has checked: no NaN, x <= 1.
cdef void c_log_cumulate(const double *x, Py_ssize_t n, Py_ssize_t step, double *out) noexcept nogil

# 1 where Q/P never rises along the atoms, -1 where it never falls, 0 otherwise. The caller has checked: no NaN, no atom with
# both logarithms -inf.
cdef int c_ratio_order(const double *log_p, const double *log_q, Py_ssize_t n) noexcept nogil

# The order of the atoms by falling Q/P, in the half of place that is returned. The caller has checked: as above; keys and
# place have room for 2 n.
cdef int c_ratio_argsort(const double *log_p, const double *log_q, Py_ssize_t n, uint64_t *keys, Py_ssize_t *place) noexcept nogil
