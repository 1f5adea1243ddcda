# The public C interface of shufflebounds: version 1.1, semantic. Names and signatures of version 1 stay as they are
# (tests/reference/cython_tails.json holds them); additions raise the second number. docs/kernels.md shows three ways to call them.
#
# All may be called without the GIL and from many threads. Counts are doubles that hold integers up to 2**53. Unlike the kernels of
# shufflebounds._core, these check what they are given: an argument that is NaN or outside its range gives NaN (in each result),
# never an exception and never a read outside an array. Natural logarithms everywhere, -inf for zero.

# --- tails: log Pr[X = k], log Pr[X <= k], log Pr[X > k] at any real k. Relative errors: docs/numerics.md.

# X ~ Bin(n, p).
cdef double binom_logpmf(double k, double n, double p) noexcept nogil
cdef double binom_logcdf(double k, double n, double p) noexcept nogil
cdef double binom_logsf(double k, double n, double p) noexcept nogil

# X ~ Poisson(mu), 0 <= mu <= 1e270.
cdef double poisson_logpmf(double k, double mu) noexcept nogil
cdef double poisson_logcdf(double k, double mu) noexcept nogil
cdef double poisson_logsf(double k, double mu) noexcept nogil

# X failures before the r-th success, 0 < r <= 1e100.
cdef double nbinom_logpmf(double k, double r, double p) noexcept nogil
cdef double nbinom_logcdf(double k, double r, double p) noexcept nogil
cdef double nbinom_logsf(double k, double r, double p) noexcept nogil

# X marked ones among `draws` of `total`, of which `marked` are marked, without replacement.
cdef double hypergeom_logpmf(double k, double total, double marked, double draws) noexcept nogil
cdef double hypergeom_logcdf(double k, double total, double marked, double draws) noexcept nogil
cdef double hypergeom_logsf(double k, double total, double marked, double draws) noexcept nogil

# Regularized incomplete functions: log P(a, x), log Q(a, x), log I_x(a, b), log(1 - I_x(a, b)).
cdef double log_gammainc(double a, double x) noexcept nogil
cdef double log_gammaincc(double a, double x) noexcept nogil
cdef double log_betainc(double a, double b, double x) noexcept nogil
cdef double log_betaincc(double a, double b, double x) noexcept nogil

# X a sum of independent Bernoulli variables, counts[j] of chance p[j], 0 < p[j] < 1: log Pr[X >= k] (upper) or log Pr[X <= k] at an
# integer k. counts may be NULL (1 each). *rel_error, unless NULL, bounds the relative error of the probability.
cdef double poisson_binom_log_tail(const double *p, const double *counts, Py_ssize_t groups, double k, int upper,
                                   double *rel_error) noexcept nogil

# The same X, as the Python functions of these names: log Pr[X <= k] and log Pr[X > k] at any real k, 0 <= p[j] <= 1, counts >= 0.
cdef double poisson_binom_logcdf(const double *p, const double *counts, Py_ssize_t groups, double k) noexcept nogil
cdef double poisson_binom_logsf(const double *p, const double *counts, Py_ssize_t groups, double k) noexcept nogil

# X ~ Bin(S, p), Pr[S = first + i] = exp(log_weights[i]): kind 0 Pr[X = k], 1 Pr[X <= k], 2 Pr[X > k].
cdef double compound_binom_log(int kind, double k, double first, const double *log_weights, Py_ssize_t count,
                               double p) noexcept nogil

# --- hockey sticks

# log sum_i max(0, Pr[B = i] - e^eps Pr[B + 1 = i]), B ~ Bin(n, p), 0 < p < 1, or of the reverse; *error bounds its absolute error.
cdef double shift_log_delta(double n, double p, double eps, int reverse, double *error) noexcept nogil

# Bounds of log delta of the clone pair of `users` users of pure local budget local_eps (stronger: the bound of 2023).
cdef void clones_log_delta(double users, double local_eps, double eps, int stronger, double *lower, double *upper) noexcept nogil

# The eps at which the upper delta was evaluated and is at most delta (upper = 1), or at which the lower still reaches it (0).
cdef double clones_epsilon(double users, double local_eps, double delta, int stronger, int upper) noexcept nogil

# Bounds of log E[max(0, S)], S the sum of `users` independent variables with the value x[j] of chance exp(log_w[j]) and 0 otherwise;
# rtol in [1e-14, 0.1] is the distance aimed at. NaN without memory.
cdef void log_excess(const double *x, const double *log_w, Py_ssize_t atoms, double users, double rtol, double *lower,
                     double *upper) noexcept nogil

# --- for scipy.integrate.quad over p: x = (p, k, n), count = 3

cdef double quad_binom_pmf(int count, double *x) noexcept nogil
cdef double quad_binom_sf(int count, double *x) noexcept nogil
