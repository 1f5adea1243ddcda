# The positive part of a sum of independent variables, each in a few atoms. Method, ranges and errors: the header of _excess.pyx.

# What c_log_excess keeps from one sum to the next: sums over two kinds of users, which depend on their masses and not on x.
# All fields are 0 at first; c_forget frees the memory.
cdef struct Tables:
    double first                # log masses of the two kinds
    double second
    Py_ssize_t users            # the largest number of users
    Py_ssize_t held             # numbers in all rows
    double *log_factorial
    double *inverse             # 1/k
    double **rows               # for each number of users of the two kinds NULL, or their sums (c_row)

cdef void c_forget(Tables *tables) noexcept nogil

# count users, each with the value x[j] with probability exp(log_w[j]). The probabilities sum to 1, that of the value 0 included.
cdef struct Users:
    const double *x
    const double *log_w
    Py_ssize_t atoms
    double count
    Tables *tables              # of sums with the same masses, or NULL

# Bounds of log E[max(0, S)], S the sum over all users of all groups. Their relative gap is at most rtol, unless this would take
# more than `work` evaluations of an atom.
# Returns 0, -1 without memory, or -2 if the probabilities of a group do not sum to 1 within 1e-6; in these cases the bounds are
# -inf and inf. Checked by the caller: counts integers >= 1 of total at most 2**53, x finite, log_w <= 0, 1e-14 <= rtol <= 0.1.
cdef int c_log_excess(const Users *groups, Py_ssize_t number, double rtol, double work,
                      double *lower, double *upper) noexcept nogil

# A smooth approximation, exact for a normal sum: the saddle point of e^K(s)/s^2 with a correction. -inf if no x > 0. Relative error
# for ten-ary response (budget 2) and delta 1e-6: 9e-3 for 100 users, 4e-4 for 1000, 3e-5 for 1e4, below 5e-6 from 1e5 on.
cdef double c_rough_excess(const Users *groups, Py_ssize_t number) noexcept nogil
