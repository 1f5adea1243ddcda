# The public C interface of shufflebounds: version 1.1, semantic. Names and signatures of version 1 stay as they are
# (tests/reference/cython_tails.json holds them); additions raise the second number. docs/kernels.md shows three ways to call them.
#
# All may be called without the GIL and from many threads. Counts are doubles that hold integers up to 2**53. Unlike the kernels
# of shufflebounds._core, these functions check their arguments: an argument that is NaN or outside its range gives NaN (in each
# result), never an exception and never a read outside an array. Natural logarithms everywhere, -inf for zero.

# --- tails: log Pr[X = k] (logpmf), log Pr[X <= k] (logcdf), log Pr[X > k] (logsf) at any real k. Errors: docs/numerics.md.

# X ~ Bin(n, p).
cdef double binom_logpmf(double k, double n, double p) noexcept nogil
cdef double binom_logcdf(double k, double n, double p) noexcept nogil
cdef double binom_logsf(double k, double n, double p) noexcept nogil

# X ~ Poisson(mu), 0 <= mu <= 1e270.
cdef double poisson_logpmf(double k, double mu) noexcept nogil
cdef double poisson_logcdf(double k, double mu) noexcept nogil
cdef double poisson_logsf(double k, double mu) noexcept nogil

# X is the number of failures before the r-th success, 0 < r <= 1e100.
cdef double nbinom_logpmf(double k, double r, double p) noexcept nogil
cdef double nbinom_logcdf(double k, double r, double p) noexcept nogil
cdef double nbinom_logsf(double k, double r, double p) noexcept nogil

# X is the number of marked objects among `draws` that are drawn without replacement from `total`, of which `marked` are marked.
cdef double hypergeom_logpmf(double k, double total, double marked, double draws) noexcept nogil
cdef double hypergeom_logcdf(double k, double total, double marked, double draws) noexcept nogil
cdef double hypergeom_logsf(double k, double total, double marked, double draws) noexcept nogil

# Regularized incomplete functions: log P(a, x), log Q(a, x), log I_x(a, b), log(1 - I_x(a, b)).
cdef double log_gammainc(double a, double x) noexcept nogil
cdef double log_gammaincc(double a, double x) noexcept nogil
cdef double log_betainc(double a, double b, double x) noexcept nogil
cdef double log_betaincc(double a, double b, double x) noexcept nogil

# X is a sum of independent bits, counts[j] of them with probability p[j], 0 < p[j] < 1. Returns log Pr[X >= k] (upper = 1) or
# log Pr[X <= k] (upper = 0) at an integer k. If counts is NULL, each count is 1. *rel_error, unless NULL, is set to a bound of the
# relative error of the probability.
cdef double poisson_binom_log_tail(const double *p, const double *counts, Py_ssize_t groups, double k, int upper,
                                   double *rel_error) noexcept nogil

# log Pr[X <= k] and log Pr[X > k] at any real k, as in the Python functions of these names; 0 <= p[j] <= 1, counts >= 0.
cdef double poisson_binom_logcdf(const double *p, const double *counts, Py_ssize_t groups, double k) noexcept nogil
cdef double poisson_binom_logsf(const double *p, const double *counts, Py_ssize_t groups, double k) noexcept nogil

# X ~ Bin(S, p) with Pr[S = first + i] = exp(log_weights[i]). Returns log Pr[X = k] (kind = 0), log Pr[X <= k] (1) or log Pr[X >
# k] (2).
cdef double compound_binom_log(int kind, double k, double first, const double *log_weights, Py_ssize_t count,
                               double p) noexcept nogil

# --- hockey-stick divergences

# log sum_i max(0, Pr[B = i] - e^eps Pr[B + 1 = i]) with B ~ Bin(n, p), 0 < p < 1, 0 <= eps < inf; reverse = 1 exchanges B and
# B + 1. *error is set to a bound of the absolute error of the logarithm.
cdef double shift_log_delta(double n, double p, double eps, int reverse, double *error) noexcept nogil

# Lower and upper bound of log delta of the clone pair, for users with pure local budget local_eps, 0 < local_eps <= 700: Clones
# (stronger = 0) or StrongerClones (stronger = 1).
cdef void clones_log_delta(double users, double local_eps, double eps, int stronger, double *lower, double *upper) noexcept nogil

# An eps at which the upper bound of delta(eps) was evaluated and is at most the argument delta (upper = 1), or at which the lower
# bound is at least the argument (upper = 0).
cdef double clones_epsilon(double users, double local_eps, double delta, int stronger, int upper) noexcept nogil

# Lower and upper bound of log E[max(0, S)], where S is the sum of `users` independent variables with value x[j] with probability
# exp(log_w[j]). rtol in [1e-14, 0.1] is the relative gap to aim at. NaN without memory, or if the probabilities do not sum to 1;
# the value 0 is listed, too.
cdef void log_excess(const double *x, const double *log_w, Py_ssize_t atoms, double users, double rtol, double *lower,
                     double *upper) noexcept nogil

# --- for SciPy's integrators

# Integrands of scipy.integrate.quad over p: x = (p, k, n), count = 3. They return probabilities, not logarithms.

cdef double quad_binom_pmf(int count, double *x) noexcept nogil
cdef double quad_binom_sf(int count, double *x) noexcept nogil
