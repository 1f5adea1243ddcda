# Privacy losses on a grid. Definitions and errors: the header of _losses.pyx.

# Writes the log of the hockey-stick divergence at each of n increasing losses; log_rest is the log mass of infinite loss.
# The caller has checked: no NaN.
cdef void c_law_hockey_stick(const double *loss, const double *log_p, Py_ssize_t n, double log_rest, double *out) noexcept nogil

# Writes tilted tails of Q, e^((theta + 1) l) Q(loss >= l), and tilted divergences, e^(theta l) H(l), of masses g a step apart.
# The caller has checked: theta >= 0, step > 0.
cdef void c_tilted_hockey_stick(const double *g, Py_ssize_t n, double theta, double step, double *tail,
                                double *hockey_stick) noexcept nogil

# Merges outcomes of increasing losses onto the points anchor + step (first..first + size - 1), which enclose every loss; out is
# -inf at all of them on entry.
cdef void c_merge(
    const double *log_p, const double *loss, Py_ssize_t n, double anchor, double step, Py_ssize_t first, Py_ssize_t size,
    double *out
) noexcept nogil
