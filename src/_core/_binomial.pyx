"""Logarithms of binomial probabilities and tails, to a few units of roundoff, for every n up to 2**53 and double p in [0, 1].

The ufuncs evaluate blocks of elements by the same formulas in vector code (tails.h). They return NaN outside the domain.

Definitions. q = 1 - p is a double-double and n p is formed in double-double, so that k - n p is exact to double-double.
    pmf     -dev(k, n p) - dev(n - k, n q) + log(n/(2 pi k (n-k)))/2 + s(n) - s(k) - s(n-k), with the deviance
            dev(x, m) = x log(x/m) - x + m >= 0 and Stirling's error s (Loader 2000). No term cancels another.
    tails   Only the smaller tail is computed; the other is log(1 - e^small). With N = n + 1, j = k + 1, b = N - j
            and D = dev(j, N p) + dev(b, N q), the upper tail Pr[X >= j] is, for j >= N p:
      near the mode   e^-D/sqrt(2 pi) [M(s) + B(s)], s = sqrt(2 D), M Mills' ratio. This is the incomplete beta integral of
                      u^j (1-u)^b du/(u(1-u)), written with the logit y of u. The exponent is then N K(y), where K is the
                      cumulant function of a Bernoulli(j/N) variable. dy/ds is a power series in s/sigma, sigma^2 = j b/N; its
                      coefficients are polynomials in 2j/N - 1 (tables.h), and the series is integrated term by term. The Beta
                      function itself is the same series over the whole line, so Stirling's errors cancel exactly.
                      This expansion is used where max(s, 2.5) < 0.27 sigma: the dropped terms are then below 2e-17.
      elsewhere       The pmf times the even part of Gauss's continued fraction for the incomplete beta integral
                      (DLMF 8.17.22). All terms of the continued fraction are positive.
    D <= 32 is computed in plain double. For larger D, an ulp of D exceeds the other errors, so D is computed in double-double.
    For p < 2**-830 the kernels use p = 2**-830, because log Pr[X = k], k >= 1, is then linear in log p to 1e-200.

Measured error of log p in units of max(ulp(log p), 2**-53), where 2**-53 is the unit of roundoff of p itself
(tests/reference/measure_errors.py, against Gauss quadrature in python-flint at 400 bits; tests/core/ allows 3e-14 + 4 ulp):

    function   domain                                        trials   peak      rms
    logpmf     n 1..2**53, p any double, k anywhere           2.0e4    2.4       0.35
    smaller    the same                                       1.8e4    5.2       0.65
    larger     log p > -0.69, of log p, in the smaller's unit 1.5e4    6.8       0.80
    blocks     n to 1e7, within 6.5 sigma: smaller            6.0e3    5.2       0.81
               larger                                         6.0e3    7.3       0.92

These are the errors of the ufuncs. The scalar kernels have the peaks 3.4, 7.6 and 11 (rms 0.40, 0.79 and 1.0).

Cost      see docs/numerics and tails.h. In arrays, with AVX-512: 9 to 26 ns for a probability and 17 to 55 ns for a tail. A scalar
          kernel takes 35 to 330 ns.
Source    Loader 2000; Temme 1979/1982 for the idea of the uniform expansion; DLMF 8.17.
"""

from libc.math cimport INFINITY, NAN, floor

from shufflebounds._core._constants cimport TAILS_BINOMIAL, TWO_53
from shufflebounds._core._ufunc cimport document, ufunc_of_blocks, ufunc_of_pairs

cdef extern from "binomial.h" nogil:
    double kernel_binom_logpmf(double k, double n, double p)
    double kernel_binom_logcdf(double k, double n, double p)
    double kernel_binom_logsf(double k, double n, double p)
    double kernel_binom_tail_ratio(double j, double n, double p, double p_lo, double q, double q_lo)
    double kernel_shift_log_delta(double n, double p, double eps, bint reverse, double *error)
    double kernel_checked_binom_logpmf(double k, double n, double p)
    double kernel_checked_binom_logcdf(double k, double n, double p)
    double kernel_checked_binom_logsf(double k, double n, double p)

cdef extern from "tails.h" nogil:
    void pmf_block(int level, int law, const double *const *x, double *value, Py_ssize_t count, scalar one)
    void tails_block(int level, int law, const double *const *x, double *value, Py_ssize_t count, double upper, scalar one)


cdef double c_binom_logpmf(double k, double n, double p) noexcept nogil: return kernel_binom_logpmf(k, n, p)
cdef double c_binom_logcdf(double k, double n, double p) noexcept nogil: return kernel_binom_logcdf(k, n, p)
cdef double c_binom_logsf(double k, double n, double p) noexcept nogil: return kernel_binom_logsf(k, n, p)
cdef double c_binom_tail_ratio(double j, double n, double p, double p_lo, double q, double q_lo) noexcept nogil:
    return kernel_binom_tail_ratio(j, n, p, p_lo, q, q_lo)
cdef double c_shift_log_delta(double n, double p, double eps, bint reverse, double *error) noexcept nogil:
    return kernel_shift_log_delta(n, p, eps, reverse, error)
cdef double checked_binom_logpmf(double k, double n, double p) noexcept nogil: return kernel_checked_binom_logpmf(k, n, p)
cdef double checked_binom_logcdf(double k, double n, double p) noexcept nogil: return kernel_checked_binom_logcdf(k, n, p)
cdef double checked_binom_logsf(double k, double n, double p) noexcept nogil: return kernel_checked_binom_logsf(k, n, p)


cdef dict BINOM_ARGUMENTS = {
    "n": "Number of trials, an integer in 0..2**53.",
    "p": "Probability of success of each trial, in [0, 1].",
}

cdef void c_pmf_block(int level, int law, const double *const *x, double *value, Py_ssize_t count, scalar one) noexcept nogil:
    pmf_block(level, law, x, value, count, one)


cdef void c_tails_block(int level, int law, const double *const *x, double *value, Py_ssize_t count, double upper,
                        scalar one) noexcept nogil:
    tails_block(level, law, x, value, count, upper, one)


cdef void block_logpmf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    pmf_block(level, TAILS_BINOMIAL, x, value, count, checked_binom_logpmf)


binom_logpmf = ufunc_of_blocks(<void *> block_logpmf, document(
    "binom_logpmf(k, n, p)", "Log of the probability of exactly k successes, X ~ Bin(n, p).",
    {"k": "Number of successes; -inf where it is not an integer in 0..n.", **BINOM_ARGUMENTS},
    "binom_logcdf, binom_logsf", "binom_logpmf(1, 10**15, 1e-12):.8f", "-993.09224472",
    "The logarithm is Loader's sum of deviances, in double-double arithmetic where they are large. No term cancels another."))

cdef void block_logcdf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    tails_block(level, TAILS_BINOMIAL, x, value, count, 0, checked_binom_logcdf)


cdef void block_logsf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    tails_block(level, TAILS_BINOMIAL, x, value, count, 1, checked_binom_logsf)


binom_logcdf = ufunc_of_blocks(<void *> block_logcdf, document(
    "binom_logcdf(k, n, p)", "Log of the probability of at most k successes, X ~ Bin(n, p).",
    {"k": "Number of successes, any real number; its floor counts.", **BINOM_ARGUMENTS},
    "binom_logpmf, binom_logsf", "binom_logcdf(1, 10**15, 1e-12):.8f", "-993.09124522",
    "The smaller one of the two tails is computed, by a uniform expansion near the mode, and by a continued fraction or a positive "
    "series elsewhere; the larger one is 1 minus the smaller one. The relative error is small, however small the probability is."))

binom_logsf = ufunc_of_blocks(<void *> block_logsf, document(
    "binom_logsf(k, n, p)", "Log of the probability of more than k successes, X ~ Bin(n, p).",
    {"k": "Number of successes, any real number; its floor counts.", **BINOM_ARGUMENTS},
    "binom_logpmf, binom_logcdf", "binom_logsf(9000, 10**4, 0.5):.8f", "-3687.04201456",
    "Computed as :func:`binom_logcdf`; the survival function is Pr[X > k], not Pr[X >= k]."))


cdef void each_shift(const double *x, double *out) noexcept nogil:
    out[0] = out[1] = NAN
    if 0 < x[1] < 1 and 0 <= x[0] <= TWO_53 and x[0] == floor(x[0]) and 0 <= x[2] < INFINITY and x[3] == x[3]:
        out[1] = 0
        out[0] = c_shift_log_delta(x[0], x[1], x[2], x[3] != 0, out + 1)


shift_log_delta = ufunc_of_pairs(
    <void *> each_shift,
    "shift_log_delta(n, p, eps, reverse) -> (value, error): log hockey stick of Bin(n, p) against its shift by one.")
