"""Logarithms of Poisson probabilities and of the regularized incomplete gamma functions, with small relative errors.

The ufuncs evaluate blocks of elements in vector code (tails.h), as the limit of a binomial distribution, and elements outside the
domain of this code by the scalar kernels. They return NaN outside the domain of the function.

Definitions, for real a > 0 and x >= 0:
    P(a, x) = int_0^x t^(a-1) e^-t dt / Gamma(a),  Q = 1 - P;   Pr[N > k] = P(k + 1, mu) for N ~ Poisson(mu).
    pmf     log(x^a e^-x / Gamma(a+1)) = -dev(a, x) - log(2 pi a)/2 - s(a). The deviance dev(a, x) = a log(a/x) - a + x >= 0 is
            computed from the exact a - x, and in double-double if it is above 32. s is Stirling's error, computed by lgamma for
            real a < 16.
Only one of P and Q is computed; the other one is 1 minus the first. The scalar kernels:
    a < 1, x < 3/2           P = pmf sum_n x^n/((a+1)...(a+n)) where this is below 1/2, else Q by DLMF 8.7.1,
                             Q = -expm1(u) + e^u a sum_n (-1)^(n+1) x^n/((a+n) n!), u = a log x - log Gamma(1+a). The error of
                             log Gamma(1+a) is small relative to a, because Q has the size of a as a -> 0.
    near x = a, a > 84       e^-dev/sqrt(2 pi) [M(s) + B(s)], s = sqrt(2 dev): the uniform expansion of _binomial.pyx at its
                             limit of rare successes, gamma = -1 for P and +1 for Q; the dropped terms are below 2e-17.
    else x <= a              P by the series above, at most about 140 terms
    else                     Q = pmf a/(x + 1 - a - 1 (1-a)/(x + 3 - a - 2 (2-a)/(...))) (DLMF 8.9.2), by Lentz's method

Measured error of log p in units of 1e-13 min(1, |log p|) + 4 ulp(log p), against python-flint (arb, to 1e-40;
tests/reference/measure_gamma.py, tests/core/test_gamma.py):

    domain                                               trials    peak    rms
    a 1e-10..300, x 1e-5..600, both functions            600       0.29    0.033
    a 84..1e15, x to 40 sigma, against _beta at b 2**330 3552      0.18    0.008
These are the errors of the ufuncs. The scalar kernels differ from them by at most 0.25 of these units (2.5e4 random arguments).
Cost      in arrays, with AVX-512: the pmf takes 10 ns near the mode and 15 ns far from it, a tail 18 ns near the mode and 55 ns far
          from it (SciPy's gammaincc: 0.24 us and 0.08 us). A scalar kernel takes 0.14 us near x = a, 0.24 us far from it.
Source    Loader 2000 for the deviance; Temme 1979 for the idea of the uniform expansion; DLMF 8.7, 8.9, 8.11.
"""

from shufflebounds._core._binomial cimport c_pmf_block, c_tails_block
from shufflebounds._core._constants cimport TAILS_GAMMA, TAILS_POISSON
from shufflebounds._core._ufunc cimport document, ufunc_of_blocks

cdef extern from "gamma.h" nogil:
    double kernel_log_gammainc(double a, double x)
    double kernel_log_gammaincc(double a, double x)
    double kernel_poisson_logpmf(double k, double mu)
    double kernel_poisson_logcdf(double k, double mu)
    double kernel_poisson_logsf(double k, double mu)
    double kernel_lgamma1p(double a)
    double kernel_stirling_real(double a)
    double kernel_checked_log_gammainc(double a, double x)
    double kernel_checked_log_gammaincc(double a, double x)
    double kernel_checked_poisson_logpmf(double k, double mu)
    double kernel_checked_poisson_logcdf(double k, double mu)
    double kernel_checked_poisson_logsf(double k, double mu)


cdef double c_log_gammainc(double a, double x) noexcept nogil: return kernel_log_gammainc(a, x)
cdef double c_log_gammaincc(double a, double x) noexcept nogil: return kernel_log_gammaincc(a, x)
cdef double c_poisson_logpmf(double k, double mu) noexcept nogil: return kernel_poisson_logpmf(k, mu)
cdef double c_poisson_logcdf(double k, double mu) noexcept nogil: return kernel_poisson_logcdf(k, mu)
cdef double c_poisson_logsf(double k, double mu) noexcept nogil: return kernel_poisson_logsf(k, mu)
cdef double c_lgamma1p(double a) noexcept nogil: return kernel_lgamma1p(a)
cdef double c_stirling_real(double a) noexcept nogil: return kernel_stirling_real(a)
cdef double checked_log_gammainc(double a, double x) noexcept nogil: return kernel_checked_log_gammainc(a, x)
cdef double checked_log_gammaincc(double a, double x) noexcept nogil: return kernel_checked_log_gammaincc(a, x)
cdef double checked_poisson_logpmf(double k, double mu) noexcept nogil: return kernel_checked_poisson_logpmf(k, mu)
cdef double checked_poisson_logcdf(double k, double mu) noexcept nogil: return kernel_checked_poisson_logcdf(k, mu)
cdef double checked_poisson_logsf(double k, double mu) noexcept nogil: return kernel_checked_poisson_logsf(k, mu)


cdef dict GAMMA_ARGUMENTS = {
    "x": "Argument, in [0, 1e270] or inf.",
}


cdef double three_log_gammainc(double a, double x, double unused) noexcept nogil:
    return checked_log_gammainc(a, x)


cdef void block_log_gammainc(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_tails_block(level, TAILS_GAMMA, x, value, count, 1, three_log_gammainc)


log_gammainc = ufunc_of_blocks(<void *> block_log_gammainc, document(
    "log_gammainc(a, x)", "Log of the regularized lower incomplete gamma function, log P(a, x).",
    {"a": "Shape, in [0, 1e270] or inf, not both infinite; P(0, x) is 1 for x > 0, and P(0, 0) is 0.", **GAMMA_ARGUMENTS},
    "log_gammaincc, poisson_logsf", "log_gammainc(1000.0, 10.0):.9f", "-3619.533045351",
    "The relative error of P is about 1e-14, or a few ulp of its logarithm (table in the header of ``_core/_gamma.pyx``). "
    "``scipy.special.gammainc`` returns P itself, which underflows."))


cdef double three_log_gammaincc(double a, double x, double unused) noexcept nogil:
    return checked_log_gammaincc(a, x)


cdef void block_log_gammaincc(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_tails_block(level, TAILS_GAMMA, x, value, count, 0, three_log_gammaincc)


log_gammaincc = ufunc_of_blocks(<void *> block_log_gammaincc, document(
    "log_gammaincc(a, x)", "Log of the regularized upper incomplete gamma function, log Q(a, x) = log(1 - P(a, x)).",
    {"a": "Shape, in [0, 1e270] or inf, not both infinite; Q(0, x) is 0 for x > 0, and Q(0, 0) is 1.", **GAMMA_ARGUMENTS},
    "log_gammainc, poisson_logcdf", "log_gammaincc(0.5, 1000.0):.9f", "-1004.026741959",
    "Accurate as :func:`log_gammainc`. A chi-square tail is log_gammaincc(df/2, x/2)."))

cdef dict POISSON_ARGUMENTS = {
    "mu": "Expectation, in [0, 1e270].",
}


cdef double three_poisson_logpmf(double a, double x, double unused) noexcept nogil:
    return checked_poisson_logpmf(a, x)


cdef void block_poisson_logpmf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_pmf_block(level, TAILS_POISSON, x, value, count, three_poisson_logpmf)


poisson_logpmf = ufunc_of_blocks(<void *> block_poisson_logpmf, document(
    "poisson_logpmf(k, mu)", "Log of the probability of exactly k events, N ~ Poisson(mu).",
    {"k": "Number of events, at most 2**53, or inf; -inf where it is not an integer >= 0.", **POISSON_ARGUMENTS},
    "poisson_logcdf, poisson_logsf", "poisson_logpmf(10**15, 1e15):.9f", "-18.188326731"))


cdef double three_poisson_logcdf(double a, double x, double unused) noexcept nogil:
    return checked_poisson_logcdf(a, x)


cdef void block_poisson_logcdf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_tails_block(level, TAILS_POISSON, x, value, count, 0, three_poisson_logcdf)


poisson_logcdf = ufunc_of_blocks(<void *> block_poisson_logcdf, document(
    "poisson_logcdf(k, mu)", "Log of the probability of at most k events, N ~ Poisson(mu).",
    {"k": "Number of events, any real number up to 2**53, or inf; its floor counts.", **POISSON_ARGUMENTS},
    "poisson_logpmf, poisson_logsf, log_gammaincc", "poisson_logcdf(10, 1000.0):.9f", "-946.016819630"))


cdef double three_poisson_logsf(double a, double x, double unused) noexcept nogil:
    return checked_poisson_logsf(a, x)


cdef void block_poisson_logsf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_tails_block(level, TAILS_POISSON, x, value, count, 1, three_poisson_logsf)


poisson_logsf = ufunc_of_blocks(<void *> block_poisson_logsf, document(
    "poisson_logsf(k, mu)", "Log of the probability of more than k events, N ~ Poisson(mu).",
    {"k": "Number of events, any real number up to 2**53, or inf; its floor counts.", **POISSON_ARGUMENTS},
    "poisson_logpmf, poisson_logcdf, log_gammainc", "poisson_logsf(1000, 10.0):.9f", "-3624.139225107"))
