# The positive part of a sum of independent variables, each in a few atoms. Method, ranges and errors: the header of _excess.pyx.

# count users, each with the value x[j] with probability exp(log_w[j]), and 0 with the remaining probability.
cdef struct Users:
    const double *x
    const double *log_w
    Py_ssize_t atoms
    double count

# Bounds of log E[max(0, S)], S the sum over all users of all groups; they aim at a relative gap
# of rtol and have a larger gap where rtol would need more than `work` evaluations of an atom.
# Returns 0, or -1 without memory.
# Checked by the caller: counts integers >= 1 of total at most 2**53, x finite, log_w <= 0 with a sum of at most 1 (to rounding) in
# each group, 1e-14 <= rtol <= 0.1.
cdef int c_log_excess(const Users *groups, Py_ssize_t number, double rtol, double work,
                      double *lower, double *upper) noexcept nogil

# An approximation with a relative error of a few percent that is smooth in x: the saddle point of e^K(s)/s^2. -inf if no x > 0.
cdef double c_rough_excess(const Users *groups, Py_ssize_t number) noexcept nogil
