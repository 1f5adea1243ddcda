# Bounds of log E[max(0, S)] by Fourier inversion of a smoothed sum. Method, errors: the headers of _smoothed.pyx and _excess.pyx.

from shufflebounds._core._tilted cimport Group

# For one group at one node: 1 - Re phi and Im phi of the centred characteristic function phi, and a lower bound of arccos |phi|.
cdef struct Turn:
    double less
    double side
    double angle

# Bounds of log E[max(0, S)] that aim at a relative gap of rtol and use at most `work` evaluations of an atom for each sum. If
# rounding or omitted nodes cause the gap, one more sum is formed. While the gap is above `enough`, up to three sums with less
# smoothing or more nodes follow (none if `enough` is INFINITY). turns: a buffer with one element per group. Returns 1, 0 if the
# smoothing needs more than `work`, -1 if memory runs out. The caller has checked: some value is above 0.
cdef int c_contour(Group *groups, Py_ssize_t number, double rtol, double enough, double work, Turn *turns,
                   double *lower, double *upper) noexcept nogil
