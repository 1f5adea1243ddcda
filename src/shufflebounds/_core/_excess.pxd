# The positive part of a sum of independent variables, each in a few atoms. Method, ranges and errors: the header of _excess.pyx.

# Tables that c_log_excess keeps from one sum to the next: sums over two kinds of users, which depend on the masses of the kinds and
# not on x. All fields are 0 at first; c_forget frees the memory.
cdef struct Tables:
    double first                # log masses of the two kinds
    double second
    Py_ssize_t users            # the largest number of users
    Py_ssize_t held             # numbers in all rows
    double *log_factorial
    double *inverse             # 1/k
    double **rows               # for each number of users of the two kinds: NULL, or their sums (c_row)

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

# An upper bound of log E[max(0, S)] for one group of users, in the time of c_rough_excess: the smallest of n E X_+, of Chernoff's
# bound at the saddle point theta, and of the bound of c_log_cell there. The last one exceeds the approximation by about
# 1.3 theta rho/s^2, where s and rho are the standard deviation and the third absolute moment of a tilted value. inf without memory,
# or if the masses do not sum to 1.
cdef double c_most_excess(const Users *users) noexcept nogil

# Moments of one user's value X: log E e^(theta X), and the mean, the variance and the third absolute central moment of the
# distribution tilted by e^(theta X).
cdef struct Moments:
    double cumulant
    double mean
    double variance
    double third

# An upper bound of log E[max(0, S)] for every sum S of n users, of whom low[j]..high[j] are of kind j, by the theorem of Berry and
# Esseen for the tilted sum. With k, mu, v and rho the sums over users of the four moments,
#     E S_+ <= e^k (normal part + 2/(e theta) 0.56 rho/v^(3/2)).
# The numbers of users of each kind are a convex combination of the corners of the cell. At a corner, low[j] users are of kind j,
# and all other users are of one and the same kind. The normal part has two bounds, and the smaller result is used.
# The first bound is 1/(theta^2 sqrt(2 pi v)). Its product with e^k is log-convex in the numbers of users, and so is the error term
# with the largest rho; so each of these two terms is at most its largest value at a corner.
# The second bound is the normal part itself, e^(-theta mu + theta^2 v/2) E N(mu - theta v, v)_+. It increases in the exponent, in
# mu - theta v and in v; the largest value of each of the three at a corner is inserted.
# Checked by the caller: number >= 1, theta > 0, 0 <= low[j] <= high[j], sum of low <= users <= sum of high.
cdef double c_log_cell(const Moments *kinds, Py_ssize_t number, double theta, const double *low, const double *high,
                       double users) noexcept nogil
