# Moment generating functions phi(z) = E e^(zX) of distributions with finitely many values, at z = theta + i m step, and sums over m
# of products of powers of |phi|. Method, ranges and errors: the header of _moments.pyx.

# One distribution: the value x[j] with probability exp(log_w[j]), and 0 with the remaining probability.
cdef struct Atoms:
    const double *x
    const double *log_w
    Py_ssize_t number

# The contour: the points theta + i m step, |m| <= nodes, and the variance `smoothing` (eta^2) of the Gaussian factor.
cdef struct Contour:
    double step
    double smoothing
    Py_ssize_t nodes

# Number of doubles that c_log_moments needs for `atoms` atoms and `thetas` values of theta.
cdef Py_ssize_t moments_room(Py_ssize_t atoms, Py_ssize_t thetas) noexcept nogil

# Upper and lower bounds of log |phi(theta_t + i m step)|, for each t and m = 0..nodes, rows of nodes + 1; `lower` may be NULL.
# `blur` bounds the relative error of every probability exp(log_w) beyond that of the exponential function.
# Checked by the caller: theta > 0, step > 0, x finite, log_w <= 0 with a sum of at most 1 (to rounding). If theta x exceeds 700 for
# some value, the upper bounds are inf and the lower ones -inf.
cdef void c_log_moments(const Atoms *law, const double *theta, Py_ssize_t thetas, double step, Py_ssize_t nodes, double blur,
                        double *room, double *upper, double *lower) noexcept nogil

# Upper bound of the log of
#     (step/(2 pi)) sum over all integers m of v_m prod |phi(z_m)| exp(smoothing (theta^2 - (m step)^2)/2)/(theta^2 + (m step)^2)
# from log_phi[m], m = 0..nodes, the logs of the product at m >= 0; the terms beyond `nodes` are bounded by their value at m = 0.
# log_phi is multiplied by `count`. `log_weight` holds log v_m >= log v_m', m < m', or is NULL, for v_m = 1.
cdef double c_log_contour(const double *log_phi, double count, double theta, const Contour *contour,
                          const double *log_weight) noexcept nogil

# The theta that minimizes, to a relative 1e-4, the maximum over distributions of
#     count log phi(theta) + smoothing theta^2/2 - log theta - log(3 x + (x^2 + 8)^(1/2)), x = theta (count v + smoothing)^(1/2),
# with v the largest variance: log B of a normal sum, up to a constant. `start` is the first theta of the search. Writes to `chosen`
# the indices of the distributions that attain the maximum near theta, at most 8, and to `number_chosen` their number.
# Checked by the caller: every distribution has an atom above 0.
cdef double c_tilt(const Atoms *laws, Py_ssize_t number, double count, double smoothing, double start,
                   Py_ssize_t *chosen, Py_ssize_t *number_chosen) noexcept nogil

# Raises best[t, j], rows of `columns`, to the largest log B of the distributions for thetas[t] and counts[j]; B is the sum of
# c_log_contour. A distribution is not evaluated where a bound of its B that takes less time is below best. Ends early once
# best[0, 0] exceeds `enough`. Returns 1 if an entry was raised, 0 if none was, and -1 without memory.
cdef int c_largest(const Atoms *laws, Py_ssize_t number, const double *counts, Py_ssize_t columns, const double *thetas,
                   Py_ssize_t rows, const Contour *contour, double blur, double enough, double *best) noexcept nogil
