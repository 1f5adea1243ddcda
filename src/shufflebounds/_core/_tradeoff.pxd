from libc.stdint cimport uint64_t

# Trade-off functions of two distributions. Errors: the header of _tradeoff.pyx.

# Writes out[step i] = log(e^start + sum_(j < i) e^(x[step j])), i <= n; with step = -1, x and out are traversed downwards from
# where they point. The caller has checked: x and start are not NaN and <= 1.
cdef void c_log_cumulate(const double *x, Py_ssize_t n, Py_ssize_t step, double start, double *out) noexcept nogil

# Writes out[k] = log sum max(0, e^x - e^(eps[k] + y)). The caller has checked: x, y, eps finite; x - y and eps decrease.
cdef void c_log_hockey_stick(const double *x, const double *y, Py_ssize_t n, const double *eps, Py_ssize_t m,
                             double *out) noexcept nogil

# Writes the vertices of the lower hull of the points (e^a, e^b) and the logarithms of the steps that lead to them, and returns
# their number; ac, bc are the logarithms of 1 - e^a, 1 - e^b. The caller has checked: a increases, n >= 1, no NaN; kept, across
# and down have n elements.
cdef Py_ssize_t c_lower_hull(const double *a, const double *ac, const double *b, const double *bc, Py_ssize_t n,
                             Py_ssize_t *kept, double *across, double *down) noexcept nogil

# Returns 1 if Q/P never increases along the atoms, -1 if it never decreases, 0 otherwise. The caller has checked: no NaN, no atom
# with both logarithms -inf.
cdef int c_ratio_order(const double *log_p, const double *log_q, Py_ssize_t n) noexcept nogil

# Writes the order of the atoms by decreasing Q/P to one half of place, and returns which. The caller has checked: as above; keys
# and place have 2 n elements.
cdef int c_ratio_argsort(const double *log_p, const double *log_q, Py_ssize_t n, uint64_t *keys, Py_ssize_t *place) noexcept nogil
