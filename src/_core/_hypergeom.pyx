"""Logarithms of hypergeometric probabilities and tails, with small relative errors in extreme tails, populations up to 2**53.

The ufuncs evaluate blocks of elements in vector code (hypergeom.h), and return NaN outside the domain. A scalar kernel of a tail
evaluates a block of one element.

Definition. X is the number of marked items among `draws` taken without replacement from `total`, of which `marked` are marked.
    pmf     b(k; marked, p) b(draws - k; total - marked, p)/b(draws; total, p), where b is the binomial pmf. This holds for every
            p; with p = draws/total its three deviances do not cancel. A pmf above e^-0.2 is 1 minus the tails below and above k.
    tails   Only the smaller tail is computed; the other is log(1 - e^small). A lower tail is an upper tail of marked - X. Let
            a = (j, marked+1-j, draws+1-j, rest+j), rest = total - marked - draws, with the expectations
            m = ((marked+1)(draws+1), (marked+1)(total-draws+1), ...)/(total+2), the signs e = (+, -, -, +),
            1/sigma^2 = sum 1/m_i and D = sum dev(a_i, m_i). The tail Pr[X >= j] with j >= m_0 is the smaller one. It is at most
            1 - 1/e, its limit for rare successes (checked by computation for every population up to 60). Two methods compute it:
      near the mode   e^-D/sqrt(2 pi) [M(s) + (B(s) + C)/A], where s = sqrt(2 D), M is Mills' ratio, and A, B(s) and C follow.
                      Pr[X = x] is proportional to f = h e^-D at j = x + 1/2, with log h = sum 1/(24 a_i) - 7/(2880 a_i^3) + ...
                      The sum of f over x >= j is the integral of f from j - 1/2, plus the other terms of the Euler-Maclaurin
                      formula, which are e^-D times
                      C = (f^(1)/24 - 7 f^(3)/5760 + 31 f^(5)/967680 - 127 f^(7)/154828800) e^D/sigma at j - 1/2.
                      Let j = m_0 + sigma^2 y and g_i = e_i sigma^2/m_i. Then D/sigma^2 = K(y) with K'' = sum |g_i|/(1 + g_i y), and
                      t = s/sigma = sqrt(2 K(y)) has an inverse y(t), a power series. The power series of (dy/dt) h is integrated
                      term by term, which gives e^-D (A M(s) + B(s)) with a number A and a polynomial B. A sqrt(2 pi) is the
                      integral over the whole line, so that no normalisation is needed. The order of the series is 7 for
                      max(s, 2.5) < 0.03 sigma, 9 below 0.08 sigma, and 11 below 0.15 sigma if sigma > 50. The dropped terms are
                      then below 5e-14 of the tail.
      elsewhere       the pmf times the sum of positive terms by the ratios of neighbours, of at most about 450 terms

Measured error of log p in units of 1e-13 min(1, |log p|) + 4 ulp(log p), against exact sums (python-flint;
tests/reference/measure_sums.py, tests/core/test_hypergeom.py):

    domain                                               trials    peak    rms
    total to 2**53, sigma to 2500, to 40 sigma: pmf      3000      0.29    0.04
    the same, smaller tail                               3000      0.35    0.04
Cost      in arrays, with AVX-512: the pmf takes 37 ns near the mode and 77 ns far from it. Within 6 standard deviations of the
          mode, a tail takes 77 ns for a population of 1e6 and more, and 90 ns for one of 1e2 to 1e6; far from it, 60 to 140 ns
Source    Loader 2000 for the pmf by binomials; Temme 1979/1982 for the idea of the uniform expansion
"""

from shufflebounds._core._ufunc cimport document, ufunc_of_blocks

cdef extern from "hypergeometric.h" nogil:
    double kernel_hypergeom_logpmf(double k, double total, double marked, double draws)
    double kernel_hypergeom_logcdf(double k, double total, double marked, double draws)
    double kernel_hypergeom_logsf(double k, double total, double marked, double draws)
    double kernel_checked_hypergeom_logpmf(double k, double total, double marked, double draws)
    double kernel_checked_hypergeom_logcdf(double k, double total, double marked, double draws)
    double kernel_checked_hypergeom_logsf(double k, double total, double marked, double draws)
    void hypergeom_block_pmf(int level, const double *const *x, double *value, Py_ssize_t count)
    void hypergeom_block_tail(int level, const double *const *x, double *value, Py_ssize_t count, bint upper)


cdef double c_hypergeom_logpmf(double k, double total, double marked, double draws) noexcept nogil:
    return kernel_hypergeom_logpmf(k, total, marked, draws)
cdef double c_hypergeom_logcdf(double k, double total, double marked, double draws) noexcept nogil:
    return kernel_hypergeom_logcdf(k, total, marked, draws)
cdef double c_hypergeom_logsf(double k, double total, double marked, double draws) noexcept nogil:
    return kernel_hypergeom_logsf(k, total, marked, draws)
cdef double checked_hypergeom_logpmf(double k, double total, double marked, double draws) noexcept nogil:
    return kernel_checked_hypergeom_logpmf(k, total, marked, draws)
cdef double checked_hypergeom_logcdf(double k, double total, double marked, double draws) noexcept nogil:
    return kernel_checked_hypergeom_logcdf(k, total, marked, draws)
cdef double checked_hypergeom_logsf(double k, double total, double marked, double draws) noexcept nogil:
    return kernel_checked_hypergeom_logsf(k, total, marked, draws)


cdef void block_logcdf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    hypergeom_block_tail(level, x, value, count, False)


cdef void block_logsf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    hypergeom_block_tail(level, x, value, count, True)


cdef dict HYPERGEOM_ARGUMENTS = {
    "M": "Size of the population, an integer in 0..2**53.",
    "n": "Number of marked items in the population, an integer in 0..M.",
    "N": "Number of items drawn, an integer in 0..M.",
}
cdef str HYPERGEOM_NOTES = ("The parameters are those of ``scipy.stats.hypergeom``. The relative error is about 1e-13, or a few "
                            "ulp of the logarithm (table in the header of ``_core/_hypergeom.pyx``).")

hypergeom_logpmf = ufunc_of_blocks(<void *> hypergeom_block_pmf, document(
    "hypergeom_logpmf(k, M, n, N)", "Log of the probability that exactly k of N drawn are marked, without replacement.",
    {"k": "Number of marked items drawn; -inf where it is not an integer of the support.", **HYPERGEOM_ARGUMENTS},
    "hypergeom_logcdf, hypergeom_logsf", "hypergeom_logpmf(0, 10**6, 1000, 10**5):.8f", "-105.41605472",
    HYPERGEOM_NOTES))

hypergeom_logcdf = ufunc_of_blocks(<void *> block_logcdf, document(
    "hypergeom_logcdf(k, M, n, N)", "Log of the probability that at most k of N drawn are marked, without replacement.",
    {"k": "Number of marked items drawn; any real number, rounded down.", **HYPERGEOM_ARGUMENTS},
    "hypergeom_logpmf, hypergeom_logsf", "hypergeom_logcdf(10, 10**6, 1000, 10**5):.8f", "-73.35557152",
    HYPERGEOM_NOTES))

hypergeom_logsf = ufunc_of_blocks(<void *> block_logsf, document(
    "hypergeom_logsf(k, M, n, N)", "Log of the probability that more than k of N drawn are marked, without replacement.",
    {"k": "Number of marked items drawn; any real number, rounded down.", **HYPERGEOM_ARGUMENTS},
    "hypergeom_logpmf, hypergeom_logcdf", "hypergeom_logsf(6 * 10**11, 2**50, 10**12, 2**49):.8f", "-20153292923.74845886",
    HYPERGEOM_NOTES))
