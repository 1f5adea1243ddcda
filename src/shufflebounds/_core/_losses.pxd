# Privacy losses on a grid. Definitions and errors: the header of _losses.pyx.

# Writes the log of the hockey-stick divergence at each of n increasing losses; log_rest is the log mass of infinite loss.
# The caller has checked: no NaN.
cdef void c_law_hockey_stick(const double *loss, const double *log_p, Py_ssize_t n, double log_rest, double *out) noexcept nogil

# Merges outcomes of increasing losses into the points anchor + step k, first <= k < first + size, and adds their log masses to
# `out`. The caller has checked: every loss lies between the first and the last point. On entry `out` is -inf.
cdef void c_merge(
    const double *log_p, const double *loss, Py_ssize_t n, double anchor, double step, Py_ssize_t first, Py_ssize_t size,
    double *out
) noexcept nogil
