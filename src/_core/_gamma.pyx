"""Logarithms of Poisson probabilities and of the regularized incomplete gamma functions, relatively accurate everywhere.

Layer: scalar kernels ``cdef double c_...(...) noexcept nogil``, declared in _gamma.pxd. They check only what their declaration
states. The ufuncs evaluate blocks of elements in vector code (tails.h) as the limit of a binomial distribution, leave the elements
outside the domain of this code to the scalar kernels, and return NaN outside the domain of the function.

Definitions, for real a > 0 and x >= 0:
    P(a, x) = int_0^x t^(a-1) e^-t dt / Gamma(a),  Q = 1 - P;   Pr[N > k] = P(k + 1, mu) for N ~ Poisson(mu).
    pmf     log(x^a e^-x / Gamma(a+1)) = -dev(a, x) - log(2 pi a)/2 - s(a). The deviance dev(a, x) = a log(a/x) - a + x >= 0 is
            formed from the exact a - x, in double-double above 32. s is Stirling's error; lgamma gives it for real a < 16.
Only one of P and Q is computed; the other is 1 minus this one. The scalar kernels:
    a < 1, x < 3/2           P = pmf sum_n x^n/((a+1)...(a+n)) where this is below 1/2, else Q by DLMF 8.7.1,
                             Q = -expm1(u) + e^u a sum_n (-1)^(n+1) x^n/((a+n) n!), u = a log x - log Gamma(1+a). That last
                             logarithm is relatively accurate in a, because Q has the size of a as a -> 0.
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
Cost      in arrays, AVX-512: 10 ns the pmf, 15 ns far from the mode; 18 ns a tail near the mode, 55 ns far from it (SciPy's
          gammaincc: 0.24 us and 0.08 us). A scalar kernel takes 0.14 us near x = a, 0.24 us far from it.
Source    Loader 2000 for the deviance; Temme 1979 for the idea of the uniform expansion; DLMF 8.7, 8.9, 8.11.
"""

from libc.math cimport INFINITY, M_PI, NAN, exp, expm1, fabs, floor, log, log1p, sqrt

from shufflebounds._core._binomial cimport c_pmf_block, c_tails_block
from shufflebounds._core._constants cimport LOG_SQRT_2PI, NEAR_SLOPE, TAILS_GAMMA, TAILS_POISSON, TWO_53
from shufflebounds._core._dd cimport dd, dd_sum
from shufflebounds._core._special cimport (
    c_deviance, c_deviance_dd, c_log1mexp, c_log_add_exp, c_mills_ratio, c_stirling_error)
from shufflebounds._core._ufunc cimport document, ufunc_of_blocks

cdef extern from "arithmetic.h" nogil:
    double log_gamma(double x)

cdef extern from "tables.h" nogil:
    double uniform_15(double gamma, double h, double s, double *leading)
    const double *LGAMMA
    const int LGAMMA_TERMS

cdef extern from *:
    """
    #define MOST 1e270                              /* squares and double-doubles stay in range */
    #define STEEP 0x1p-900                          /* x/a below which a/x is not formed */
    """
    const double MOST
    const double STEEP


cdef double c_lgamma1p(double a) noexcept nogil:
    """Returns log Gamma(1 + a) for 0 <= a <= 1; the error is relative to a on [0, 1/2], and absolute above."""
    cdef double total = 0
    cdef int k
    if a > 0.5:
        return log_gamma(1 + a)
    for k in range(LGAMMA_TERMS - 1, -1, -1):
        total = total * a + LGAMMA[k]
    return total * a - log1p(a)


cdef double c_stirling_real(double a) noexcept nogil:
    """Returns Stirling's error log Gamma(a+1) - log(sqrt(2 pi a) (a/e)^a) for real a >= 1, with an absolute error of 2e-14."""
    if a >= 16 or a == floor(a):
        return c_stirling_error(a)
    return log_gamma(a + 1) - (a + 0.5) * log(a) + a - LOG_SQRT_2PI


cdef inline double gamma_deviance(double a, double x, double *lo) noexcept nogil:
    """Returns the deviance a log(a/x) - a + x, and writes its low part to lo; a, x > 0."""
    cdef dd d = dd_sum(a, -x)
    cdef double dev
    lo[0] = 0
    if x < STEEP * a:
        return a * (log(a) - log(x)) - d.hi
    dev = c_deviance(a, x, d.hi)
    return dev if dev <= 32 else c_deviance_dd(a, x, 0, d.hi, d.lo, lo)


cdef inline double log_density(double a, double x) noexcept nogil:
    """Returns log(x^a e^-x / Gamma(a + 1)) for x > 0."""
    cdef double lo, dev
    if a < 1:
        return a * log(x) - x - c_lgamma1p(a)
    dev = gamma_deviance(a, x, &lo)
    return -dev - (0.5 * log(2 * M_PI * a) + c_stirling_real(a) + lo)


cdef inline double series(double a, double x) noexcept nogil:
    """Returns sum_n x^n/((a+1)...(a+n)) for x <= a or x < 3/2."""
    cdef double total = 1, term = 1, n = a
    while term > 1e-17 * total:
        n += 1
        term *= x / n
        total += term
    return total


cdef inline double fraction(double a, double x) noexcept nogil:
    """Returns Q(a, x) Gamma(a) e^x x^-a for x > a or x >= 3/2, by Lentz's method; no partial denominator vanishes there."""
    cdef double b = x + 1 - a, c = 1e300, d = 1 / b, h = d, step, n = 0, an
    while True:
        n += 1
        an = -n * (n - a)
        b += 2
        d = 1 / (an * d + b)
        c = b + an / c
        step = c * d
        h *= step
        if fabs(step - 1) <= 2e-16 or n > 1e5:
            return h


cdef inline double near_log(double dev, double lo, double a, double gamma) noexcept nogil:
    cdef double s = sqrt(2 * dev), leading, rest = uniform_15(gamma, 1 / sqrt(a), s, &leading)
    return -dev + (log(c_mills_ratio(s) + rest / leading) - LOG_SQRT_2PI - lo)


cdef void c_log_gamma_tails(double a, double x, double *lower, double *upper) noexcept nogil:
    """Writes log P(a, x) and log Q(a, x) for 0 < a, x < MOST."""
    cdef double u, value, dev, lo, term, n
    if a < 1 and x < 1.5:
        u = a * log(x) - c_lgamma1p(a)
        value = u - x + log(series(a, x))
        if value < -0.69:
            lower[0], upper[0] = value, c_log1mexp(value)
            return
        # sum_n (-1)^(n+1) x^n/((a + n) n!)
        value, term, n = 0, 1, 0
        while fabs(term) > 1e-18:
            n += 1
            term *= -x / n
            value -= term / (a + n)
        value = -expm1(u) + exp(u) * a * value
        lower[0], upper[0] = log1p(-value), log(value)
        return
    if a > 84:
        dev = gamma_deviance(a, x, &lo)
        if (2 * dev if dev > 3.125 else 6.25) < NEAR_SLOPE * a:
            if x <= a:
                lower[0] = near_log(dev, lo, a, -1)
                upper[0] = c_log1mexp(lower[0])
            else:
                upper[0] = near_log(dev, lo, a, 1)
                lower[0] = c_log1mexp(upper[0])
            return
    value = log_density(a, x)
    if x <= a:
        lower[0] = value + log(series(a, x))
        upper[0] = c_log1mexp(lower[0])
    else:
        upper[0] = value + log(a * fraction(a, x))
        lower[0] = c_log1mexp(upper[0])


cdef double c_log_gammainc(double a, double x) noexcept nogil:
    cdef double lower, upper
    if x == 0 or a == 0:
        return 0 if x > 0 else -INFINITY
    c_log_gamma_tails(a, x, &lower, &upper)
    return lower


cdef double c_log_gammaincc(double a, double x) noexcept nogil:
    cdef double lower, upper
    if x == 0 or a == 0:
        return -INFINITY if x > 0 else 0
    c_log_gamma_tails(a, x, &lower, &upper)
    return upper


cdef double c_poisson_logpmf(double k, double mu) noexcept nogil:
    cdef double lo, dev
    if k < 0 or mu == 0:
        return 0 if k == 0 else -INFINITY
    if k == 0:
        return -mu
    dev = gamma_deviance(k, mu, &lo)
    return -dev - (0.5 * log(2 * M_PI * k) + c_stirling_error(k) + lo)


cdef double c_poisson_logcdf(double k, double mu) noexcept nogil:
    cdef double above
    if k < TWO_53:
        return -INFINITY if k < 0 else c_log_gammaincc(k + 1, mu)
    above = c_poisson_logsf(k, mu)
    return c_log1mexp(above) if above < -0.69 else c_log_add_exp(c_log_gammaincc(k, mu), c_poisson_logpmf(k, mu))


cdef double c_poisson_logsf(double k, double mu) noexcept nogil:
    cdef double pmf, value
    if k < TWO_53:
        return 0 if k < 0 else c_log_gammainc(k + 1, mu)
    # k + 1 is not representable. The tail is Pr[N = k] times a series in mu/k; where this is long, Pr[N > k - 1] - Pr[N = k].
    pmf = c_poisson_logpmf(k, mu)
    if mu < 0.99 * k:
        return pmf + log(mu / k) + log(series(k, mu))
    value = c_log_gammainc(k, mu)
    return value + log1p(-exp(pmf - value))


cdef inline bint gamma_domain(double a, double x) noexcept nogil:
    return 0 <= a <= MOST and 0 <= x <= MOST


cdef inline double gamma_limit(double a, double x, bint want_upper) noexcept nogil:
    """Return the limit where one argument is infinite, as scipy.special has it; NaN outside the domain."""
    if x == INFINITY and 0 <= a < INFINITY:
        return -INFINITY if want_upper else 0
    if a == INFINITY and 0 <= x < INFINITY:
        return 0 if want_upper else -INFINITY
    return NAN


cdef double checked_log_gammainc(double a, double x) noexcept nogil:
    return c_log_gammainc(a, x) if gamma_domain(a, x) else gamma_limit(a, x, False)


cdef double checked_log_gammaincc(double a, double x) noexcept nogil:
    return c_log_gammaincc(a, x) if gamma_domain(a, x) else gamma_limit(a, x, True)


cdef inline bint poisson_domain(double k, double mu) noexcept nogil:
    # k above TWO_53 is refused, except infinity, where the functions return their limits
    return (k <= TWO_53 or k == INFINITY) and 0 <= mu <= MOST


cdef double checked_poisson_logpmf(double k, double mu) noexcept nogil:
    if not poisson_domain(k, mu):
        return NAN
    if k == INFINITY:
        return -INFINITY
    return c_poisson_logpmf(k, mu) if k == floor(k) else -INFINITY


cdef double checked_poisson_logcdf(double k, double mu) noexcept nogil:
    if not poisson_domain(k, mu):
        return NAN
    return c_poisson_logcdf(floor(k), mu) if k < INFINITY else 0


cdef double checked_poisson_logsf(double k, double mu) noexcept nogil:
    if not poisson_domain(k, mu):
        return NAN
    return c_poisson_logsf(floor(k), mu) if k < INFINITY else -INFINITY


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
    "Relative error of P about 1e-14, or some ulp of its logarithm: the header of ``_core/_gamma.pyx`` has "
    "the table. The name is that of ``scipy.special.gammainc``, which underflows."))


cdef double three_log_gammaincc(double a, double x, double unused) noexcept nogil:
    return checked_log_gammaincc(a, x)


cdef void block_log_gammaincc(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_tails_block(level, TAILS_GAMMA, x, value, count, 0, three_log_gammaincc)


log_gammaincc = ufunc_of_blocks(<void *> block_log_gammaincc, document(
    "log_gammaincc(a, x)", "Log of the regularized upper incomplete gamma function, log Q(a, x) = log(1 - P(a, x)).",
    {"a": "Shape, in [0, 1e270] or inf, not both infinite; Q(0, x) is 0 for x > 0, and Q(0, 0) is 1.", **GAMMA_ARGUMENTS},
    "log_gammainc, poisson_logcdf", "log_gammaincc(0.5, 1000.0):.9f", "-1004.026741959",
    "As :func:`log_gammainc`. A chi-square tail is log_gammaincc(df/2, x/2)."))

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
