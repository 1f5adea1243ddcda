# The clone sum, E[max(0, D - u M)] for a random number M of clones. Definitions and errors: the header of _compound.pyx.

# log E[max(0, D - u M)], M ~ Bin(n, rate), D a sum of M independent random signs, as a lower and an upper bound.
# The caller has checked: n an integer in 1..2**53, 0 < rate <= 1, 0 <= u < 1, and v = 1 - u to full relative accuracy.
cdef void c_log_sign_excess(double n, double rate, double u, double v, double *lower, double *upper) noexcept nogil

# E[max(0, D - u' M)] <= E (1 - pull (u' - u)) for u <= u' <= still, E the upper bound at u. pull = still = 0 if not known.
cdef struct Ahead:
    double pull
    double still

# The bounds of c_log_sign_excess, and `ahead`, unless it is NULL.
cdef void c_log_sign_ahead(double n, double rate, double u, double v, double *lower, double *upper, Ahead *ahead) noexcept nogil

# log sum_i exp(log_weights[i]) E[max(0, D - u m)]/m at m = first + i + 1, first >= 0, D a sum of m random signs: the clone sum for
# any distribution of the number m - 1 of clones. error[0] bounds the absolute error of the logarithm, given the weights.
cdef double c_log_weighted_excess(double first, const double *log_weights, Py_ssize_t count,
                                  double u, double v, double *error) noexcept nogil

# log Pr[X = k] (kind 0), log Pr[X <= k] (1) or log Pr[X > k] (2), X ~ Bin(S, p), Pr[S = first + i] = exp(log_weights[i]).
cdef double c_compound_log(int kind, double k, double first, const double *log_weights, Py_ssize_t count,
                           double p) noexcept nogil
