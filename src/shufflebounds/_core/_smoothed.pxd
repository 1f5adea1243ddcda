# Bounds of log E[max(0, S)] by Fourier inversion of a smoothed sum. Method, errors: the headers of _smoothed.pyx and _excess.pyx.

from shufflebounds._core._tilted cimport Group

# For one group at one node: 1 - Re phi and Im phi of the centred characteristic function phi, and a lower bound of arccos |phi|.
cdef struct Turn:
    double less
    double side
    double angle

# Sides of log E[max(0, S)] that aim at a relative distance of rtol and spend `work` evaluations of an atom at most; turns: room for
# one of each group. Returns the nodes kept, or -1 without memory. Checked by the caller: some value is above 0.
cdef Py_ssize_t c_contour(Group *groups, Py_ssize_t number, double rtol, double work, Turn *turns,
                          double *lower, double *upper) noexcept nogil
