# Bounds of log E[max(0, S)] by Fourier inversion of a smoothed sum. Method, errors: the headers of _smoothed.pyx and _excess.pyx.

from shufflebounds._core._tilted cimport Group

# For one group at one node: 1 - Re phi and Im phi of the centred characteristic function phi, and a lower bound of arccos |phi|.
cdef struct Turn:
    double less
    double side
    double angle

# Bounds of log E[max(0, S)] that aim at a relative gap of rtol and use at most `work` evaluations of an atom; turns: a buffer
# with one element per group. Returns the number of nodes, or -1 if memory runs out. The caller has checked: some value is above 0.
cdef Py_ssize_t c_contour(Group *groups, Py_ssize_t number, double rtol, double work, Turn *turns,
                          double *lower, double *upper) noexcept nogil
