# Binomial tails in logarithms. Domains and errors: the header of _binomial.pyx.
# The caller has checked: 0 <= p <= 1, n and k integers with 0 <= n <= 2**53; k may lie outside 0..n if "any integer k" is stated.

# log Pr[X = k], log Pr[X <= k], log Pr[X > k] for X ~ Bin(n, p), any integer k.
cdef double c_binom_logpmf(double k, double n, double p) noexcept nogil
cdef double c_binom_logcdf(double k, double n, double p) noexcept nogil
cdef double c_binom_logsf(double k, double n, double p) noexcept nogil

# Pr[X >= j]/Pr[X = j] for X ~ Bin(n, p + p_lo), q + q_lo = 1 - p - p_lo; 1 <= j <= n and j >= (n + 1) p.
cdef double c_binom_tail_ratio(double j, double n, double p, double p_lo, double q, double q_lo) noexcept nogil

# log sum_i max(0, Pr[B = i] - e^eps Pr[B + 1 = i]), B ~ Bin(n, p), eps >= 0, 0 < p < 1; error[0] bounds its absolute error.
cdef double c_shift_log_delta(double n, double p, double eps, bint reverse, double *error) noexcept nogil

# The functions behind the ufuncs and cython_tails: any doubles, NaN outside the domain; k any real number.
cdef double checked_binom_logpmf(double k, double n, double p) noexcept nogil
cdef double checked_binom_logcdf(double k, double n, double p) noexcept nogil
cdef double checked_binom_logsf(double k, double n, double p) noexcept nogil

# Log probabilities of at most 256 elements by vector code. `level` is the instruction set (vectors.h), and `law` one of the
# distributions of constants.h (TAILS_BINOMIAL, ...). c_pmf_block computes log Pr[X = k]; c_tails_block computes log Pr[X > k]
# (upper = 1) or log Pr[X <= k] (upper = 0). For the incomplete gamma and beta functions, c_tails_block computes log P or log I_x
# (upper = 1), and log Q or log(1 - I_x) (upper = 0).
# The scalar function `one` computes the elements that the vector code does not. It checks its domain. It has three arguments for
# every distribution, and ignores those that the distribution does not need.
ctypedef double (*scalar)(double, double, double) noexcept nogil
cdef void c_pmf_block(int level, int law, const double *const *x, double *value, Py_ssize_t count, scalar one) noexcept nogil
cdef void c_tails_block(int level, int law, const double *const *x, double *value, Py_ssize_t count, double upper,
                        scalar one) noexcept nogil
