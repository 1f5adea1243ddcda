# Heavy tails: values so large that one of them decides the sign of the sum are removed from the distribution of the sum.
# Method: the header of _heavy_tails.pyx.

from shufflebounds._core._smoothed cimport Turn
from shufflebounds._core._tilted cimport Group

# The event that some user has a value above a threshold, where a single such value makes the sum positive.
cdef struct Jumps:
    double log_none        # log of the probability that no user has such a value
    double mean            # E[S; some user has such a value], with an absolute error of at most `error`
    double error

# Splits off the values above a threshold: the distributions become those given that no user has such a value. top is the largest
# value, and turns a buffer with one element per group.
cdef void c_split(Group *groups, Py_ssize_t number, double top, double rtol, Turn *turns, Jumps *out) noexcept nogil

# Returns whether any value is above 0.
cdef bint c_gains(const Group *groups, Py_ssize_t number) noexcept nogil
