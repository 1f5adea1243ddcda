# Heavy tails: values that decide the sign of a sum alone are taken out of its law. Method: the header of _heavy.pyx.

from shufflebounds._core._smoothed cimport Turn
from shufflebounds._core._tilted cimport Group

# Users who hold a value above a threshold so high that a single one decides the sign of the sum.
cdef struct Jumps:
    double log_none        # log of the chance that there are none
    double mean            # E[S; there are some], bounded by error
    double error

# Take them out: the laws become those given that there are none. top: the largest value; turns: room for one of each group.
cdef void c_split(Group *groups, Py_ssize_t number, double top, double rtol, Turn *turns, Jumps *out) noexcept nogil

# Tell whether any value is above 0.
cdef bint c_gains(const Group *groups, Py_ssize_t number) noexcept nogil
