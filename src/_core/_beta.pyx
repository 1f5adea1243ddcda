"""Logarithms of negative binomial probabilities and of the regularized incomplete beta function, with small relative errors.

The ufuncs use vector code (tails.h) for blocks of elements whose parameters are integers or at least 3, and the scalar kernels for
all other elements. They return NaN outside the domain.

Definitions, for real a, b > 0. y = 1 - x is a double-double, and d = a y - b x is computed in double-double:
    I_x(a, b) = int_0^x t^(a-1) (1-t)^(b-1) dt / B(a, b) = P,  Q = 1 - P = I_y(b, a);
    Pr[F <= k] = I_p(r, k + 1) for the number F of failures before the r-th success.
The scalar kernels:
    a, b >= 1   The smaller one of P and Q is computed (P if d >= 0). With N = a + b and dev as in _binomial.pyx, the deviance
                D = dev(a, N x) + dev(b, N y) decides whether x is near the mode:
        near    the uniform expansion of _binomial.pyx, which does not need integers
        else    x^a y^b/B(a, b) divided by the even part of Gauss's continued fraction (DLMF 8.17.22), by Lentz's method
    a or b < 1, x <= 1/2 (else P and Q are exchanged); u = log(x^a/(a B(a, b))) is computed from logarithms of Gamma functions whose
                errors are small relative to the small parameter:
        b < 1   P = e^u sum_n (1-b)_n x^n a/(n! (a+n)), all terms positive
        b >= 1  P = x^a y^b/(a B) + I_x(a+1, b)
        Q       if P > 1/2: for b x < 3/2, -expm1(u) - e^u sum_(n > 0) of the terms for b < 1; else the continued fraction of Q

Measured error of log p in units of 1e-13 min(1, |log p|) + 4 ulp(log p), against python-flint (arb, to 1e-20;
tests/reference/measure_gamma.py, tests/core/test_gamma.py). For the larger tail, the unit is the change of log(1 - e^small) that
one unit of the smaller tail causes:

    domain                                               trials    peak    rms
    a, b 1e-10..200, any x, both functions               600       0.19    0.029
    integers to 2**53, 40 sigma, against quadrature      3674      0.12    0.020
These are the errors of the ufuncs. The scalar kernels differ from them by at most 0.25 of these units (2.5e4 random arguments).
Cost      in arrays, with AVX-512 and parameters that are integers or at least 3: 9 ns for the pmf, 28 ns for a tail near
          x = a/(a+b), 60 ns for a tail far from it (SciPy's betainc: 0.48 us). A scalar kernel takes 0.06 us for the pmf, 0.14 to
          0.21 us for a tail near x = a/(a+b), and 0.28 us far from it.
Source    Loader 2000 for the deviances; DLMF 8.17; Didonato, Morris 1992 for the case distinction by size.
"""

from shufflebounds._core._binomial cimport c_pmf_block, c_tails_block
from shufflebounds._core._constants cimport TAILS_BETA, TAILS_NEGATIVE
from shufflebounds._core._ufunc cimport document, ufunc_of_blocks

cdef extern from "beta.h" nogil:
    double kernel_log_betainc(double a, double b, double x)
    double kernel_log_betaincc(double a, double b, double x)
    double kernel_nbinom_logpmf(double k, double r, double p)
    double kernel_nbinom_logcdf(double k, double r, double p)
    double kernel_nbinom_logsf(double k, double r, double p)
    double kernel_lgamma_step(double e, double z)
    double kernel_checked_log_betainc(double a, double b, double x)
    double kernel_checked_log_betaincc(double a, double b, double x)
    double kernel_checked_nbinom_logpmf(double k, double r, double p)
    double kernel_checked_nbinom_logcdf(double k, double r, double p)
    double kernel_checked_nbinom_logsf(double k, double r, double p)


cdef double c_log_betainc(double a, double b, double x) noexcept nogil: return kernel_log_betainc(a, b, x)
cdef double c_log_betaincc(double a, double b, double x) noexcept nogil: return kernel_log_betaincc(a, b, x)
cdef double c_nbinom_logpmf(double k, double r, double p) noexcept nogil: return kernel_nbinom_logpmf(k, r, p)
cdef double c_nbinom_logcdf(double k, double r, double p) noexcept nogil: return kernel_nbinom_logcdf(k, r, p)
cdef double c_nbinom_logsf(double k, double r, double p) noexcept nogil: return kernel_nbinom_logsf(k, r, p)
cdef double c_lgamma_step(double e, double z) noexcept nogil: return kernel_lgamma_step(e, z)
cdef double checked_log_betainc(double a, double b, double x) noexcept nogil: return kernel_checked_log_betainc(a, b, x)
cdef double checked_log_betaincc(double a, double b, double x) noexcept nogil: return kernel_checked_log_betaincc(a, b, x)
cdef double checked_nbinom_logpmf(double k, double r, double p) noexcept nogil: return kernel_checked_nbinom_logpmf(k, r, p)
cdef double checked_nbinom_logcdf(double k, double r, double p) noexcept nogil: return kernel_checked_nbinom_logcdf(k, r, p)
cdef double checked_nbinom_logsf(double k, double r, double p) noexcept nogil: return kernel_checked_nbinom_logsf(k, r, p)


cdef dict BETA_ARGUMENTS = {
    "a, b": "Parameters, in [0, 1e100] or inf, not both 0 and not both infinite.",
    "x": "Argument, in [0, 1].",
}


cdef void block_log_betainc(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_tails_block(level, TAILS_BETA, x, value, count, 1, checked_log_betainc)


log_betainc = ufunc_of_blocks(<void *> block_log_betainc, document(
    "log_betainc(a, b, x)", "Log of the regularized incomplete beta function, log I_x(a, b).",
    BETA_ARGUMENTS,
    "log_betaincc, nbinom_logcdf", "log_betainc(50.0, 2000.5, 1e-3):.8f", "-115.16104885",
    "The relative error is about 1e-13, or a few ulp of the logarithm (table in the header of ``_core/_beta.pyx``)."))


cdef void block_log_betaincc(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_tails_block(level, TAILS_BETA, x, value, count, 0, checked_log_betaincc)


log_betaincc = ufunc_of_blocks(<void *> block_log_betaincc, document(
    "log_betaincc(a, b, x)", "Log of the complement of the regularized incomplete beta function, log(1 - I_x(a, b)).",
    BETA_ARGUMENTS,
    "log_betainc, nbinom_logsf", "log_betaincc(0.5, 2000.5, 0.75):.8f", "-2777.51111528",
    "The relative error is about 1e-13, or a few ulp of the logarithm (table in the header of ``_core/_beta.pyx``). "
    "The difference 1 - x is never rounded."))

cdef dict NBINOM_ARGUMENTS = {
    "r": "Number of successes waited for, any real number in (0, 1e100].",
    "p": "Probability of success of each trial, in [0, 1].",
}
cdef str NBINOM_NOTES = ("Parameters and meaning are those of ``scipy.stats.nbinom``; method and errors are those of "
                         ":func:`log_betainc`.")


cdef void block_nbinom_logpmf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_pmf_block(level, TAILS_NEGATIVE, x, value, count, checked_nbinom_logpmf)


nbinom_logpmf = ufunc_of_blocks(<void *> block_nbinom_logpmf, document(
    "nbinom_logpmf(k, r, p)", "Log of the probability of exactly k failures before the r-th success.",
    {"k": "Number of failures, at most 2**53, or inf; -inf where it is not an integer >= 0.", **NBINOM_ARGUMENTS},
    "nbinom_logcdf, nbinom_logsf", "nbinom_logpmf(10**6, 2.5, 1e-3):.8f", "-997.33113694",
    NBINOM_NOTES))


cdef void block_nbinom_logcdf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_tails_block(level, TAILS_NEGATIVE, x, value, count, 0, checked_nbinom_logcdf)


nbinom_logcdf = ufunc_of_blocks(<void *> block_nbinom_logcdf, document(
    "nbinom_logcdf(k, r, p)", "Log of the probability of at most k failures before the r-th success.",
    {"k": "Number of failures, at most 2**53, or inf; its floor counts.", **NBINOM_ARGUMENTS},
    "nbinom_logpmf, nbinom_logsf, log_betainc", "nbinom_logcdf(10, 1000, 0.5):.8f", "-646.04067365",
    NBINOM_NOTES))


cdef void block_nbinom_logsf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_tails_block(level, TAILS_NEGATIVE, x, value, count, 1, checked_nbinom_logsf)


nbinom_logsf = ufunc_of_blocks(<void *> block_nbinom_logsf, document(
    "nbinom_logsf(k, r, p)", "Log of the probability of more than k failures before the r-th success.",
    {"k": "Number of failures, at most 2**53, or inf; its floor counts.", **NBINOM_ARGUMENTS},
    "nbinom_logpmf, nbinom_logcdf, log_betaincc", "nbinom_logsf(10**6, 2.5, 1e-3):.8f", "-990.42288254",
    NBINOM_NOTES))
