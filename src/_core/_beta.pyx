"""Logarithms of negative binomial probabilities and of the regularized incomplete beta function, relatively accurate everywhere.

Layer: scalar kernels ``noexcept nogil``, declared in _beta.pxd. They check only what their declaration states. The ufuncs evaluate
blocks of elements whose parameters are integers or at least 3 in vector code (tails.h), leave the other elements to the scalar
kernels, and return NaN outside the domain.

Definitions, for real a, b > 0, y = 1 - x carried as a double-double, d = a y - b x formed in double-double:
    I_x(a, b) = int_0^x t^(a-1) (1-t)^(b-1) dt / B(a, b) = P,  Q = 1 - P = I_y(b, a);
    Pr[F <= k] = I_p(r, k + 1) for the number F of failures before the r-th success.
The scalar kernels:
    a, b >= 1   the smaller of P and Q (P where d >= 0), with N = a + b and D = dev(a, N x) + dev(b, N y) as in _binomial.pyx:
        near    the uniform expansion of _binomial.pyx, which does not need integers
        else    x^a y^b/B(a, b) over the even part of Gauss's continued fraction (DLMF 8.17.22), by Lentz's method
    a or b < 1, x <= 1/2 (else the roles of P and Q change); u = log(x^a/(a B(a, b))), in which the logarithm of the Gamma
                functions is relatively accurate in the small parameter:
        b < 1   P = e^u sum_n (1-b)_n x^n a/(n! (a+n)), all terms positive
        b >= 1  P = x^a y^b/(a B) + I_x(a+1, b)
        Q       where P > 1/2: -expm1(u) - e^u sum_(n > 0), the same terms, for b x < 3/2; else the continued fraction of Q

Measured error of log p in units of 1e-13 min(1, |log p|) + 4 ulp(log p) (of the smaller tail, carried to the larger), against
python-flint (arb, to 1e-20; tests/reference/measure_gamma.py, tests/core/test_gamma.py):

    domain                                               trials    peak    rms
    a, b 1e-10..200, any x, both functions               600       0.19    0.029
    integers to 2**53, 40 sigma, against quadrature      3674      0.12    0.020
These are the errors of the ufuncs. The scalar kernels differ from them by at most 0.25 of these units (2.5e4 random arguments).
Cost      in arrays, AVX-512, parameters that are integers or at least 3: 9 ns the pmf, 28 ns a tail near x = a/(a+b), 60 ns far
          from it (SciPy's betainc: 0.48 us). A scalar kernel takes 0.14 to 0.21 us near, 0.28 us far, 0.06 us the pmf.
Source    Loader 2000 for the deviances; DLMF 8.17; Didonato, Morris 1992 for the case distinction by size.
"""

from libc.math cimport INFINITY, M_PI, NAN, exp, expm1, fabs, floor, log, log1p, sqrt

from shufflebounds._core._binomial cimport c_pmf_block, c_tails_block
from shufflebounds._core._constants cimport (
    LOG_SQRT_2PI, NEAR_SLOPE, SERIES_VARIANCE, TAILS_BETA, TAILS_NEGATIVE, TINY_P, TWO_53)
from shufflebounds._core._dd cimport dd, dd_add, dd_make, dd_mul, dd_mul_d, dd_neg, dd_sum
from shufflebounds._core._gamma cimport c_lgamma1p, c_stirling_real
from shufflebounds._core._special cimport (
    c_deviance, c_deviance_dd, c_log1mexp, c_log1pmx, c_log_add_exp, c_mills_ratio, c_stirling_error)
from shufflebounds._core._ufunc cimport document, ufunc_of_blocks

cdef extern from "tables.h" nogil:
    double uniform_15(double gamma, double h, double s, double *leading)

cdef extern from *:
    """
    #define MOST 1e100
    """
    const double MOST


cdef double c_lgamma_step(double e, double z) noexcept nogil:
    """Returns log Gamma(z + e) - log Gamma(z), relatively accurate in e; 0 <= e <= 1, z > 0.

    For z >= 16 Stirling's series is used, with the differences factored out; smaller z are raised to it by terms log1p(e/(z + i)).
    """
    cdef double total = 0, r, r1, first, second, power, step
    while z < 16:
        total -= log1p(e / z)
        z += 1
    r, r1 = 1 / z, 1 / (z + e)
    first = -e * r * r1                             # r1 - r
    second = first * (r + r1)                       # r1^2 - r^2
    power, step = r, first
    total += e * log(z) + z * c_log1pmx(e * r) + (e - 0.5) * log1p(e * r) + step / 12
    step = r1 * r1 * step + power * second
    power *= r * r
    total -= step / 360
    step = r1 * r1 * step + power * second
    power *= r * r
    total += step / 1260
    step = r1 * r1 * step + power * second
    power *= r * r
    total -= step / 1680
    step = r1 * r1 * step + power * second
    return total + step / 1188


cdef inline double deviances(double a, double b, dd x, dd y, dd d, double *lo) noexcept nogil:
    """Returns the deviances dev(a, N x) + dev(b, N y) of _binomial.pyx, N = a + b, and writes the low part to lo.

    d = a - N x and a, b > 0.
    """
    cdef dd n = dd_sum(a, b), first, second, m = dd_mul(n, x), w = dd_mul(n, y)
    cdef double total = c_deviance(a, m.hi, d.hi) + c_deviance(b, w.hi, -d.hi)
    lo[0] = 0
    if total <= 32:
        return total
    first.hi = c_deviance_dd(a, m.hi, m.lo, d.hi, d.lo, &first.lo)
    second.hi = c_deviance_dd(b, w.hi, w.lo, -d.hi, -d.lo, &second.lo)
    first = dd_add(first, second)
    lo[0] = first.lo
    return first.hi


cdef inline double fraction(double a, double b, double x, double d) noexcept nogil:
    """Returns x^a y^b/(B(a, b) I_x(a, b)) by the continued fraction DLMF 8.17.22, two steps of it at a time.

    Valid for a + 1 > 0 and x < (a + 1)/(a + b + 2).
    """
    cdef double f = a * (d + 1) / (a + 1), c, e = 0, n = 0, w = a, up, down
    c = f
    while True:
        n += 1
        w += 2                                      # a + 2 n
        up = (a + n - 1) / (w - 1) * ((a + b + n - 1) / (w - 1)) * n * (b - n) * x * x
        down = n + n * (b - n) * x / (w - 1) + (a + n) / (w + 1) * (d + 1 + n * (2 - x))
        e = 1 / (down + up * e)
        c = down + up / c
        f *= c * e
        if fabs(c * e - 1) <= 2e-16 or n > 1e5:
            return f


cdef double log_lower(double a, double b, dd x, dd y, dd d) noexcept nogil:
    """Returns log I_x(a, b) for a, b >= 1 and d = a y - b x >= 0, where I_x is below or about 1/2."""
    cdef double lo, dev = deviances(a, b, x, y, d, &lo), size = a + b, variance = a * (b / size), s, leading, rest
    if variance > SERIES_VARIANCE and (2 * dev if dev > 3.125 else 6.25) < NEAR_SLOPE * variance:
        s = sqrt(2 * dev)
        rest = uniform_15((a - b) / size, 1 / sqrt(variance), s, &leading)
        return -dev + (log(c_mills_ratio(s) + rest / leading) - LOG_SQRT_2PI - lo)
    rest = a / fraction(a, b, x.hi, d.hi)
    return -dev + (0.5 * log(b / size / (2 * M_PI * a) * rest * rest) - lo
                   + (c_stirling_real(size) - c_stirling_real(a) - c_stirling_real(b)))


cdef inline dd balance(double a, double b, dd x, dd y) noexcept nogil:
    """Returns a y - b x."""
    return dd_add(dd_mul_d(y, a), dd_neg(dd_mul_d(x, b)))


cdef void both_large(double a, double b, dd x, dd y, double *lower, double *upper) noexcept nogil:
    """Writes log I_x(a, b) and log(1 - I_x(a, b)) for a, b >= 1."""
    cdef dd d
    if x.hi < TINY_P:
        d = balance(a, b, dd_make(TINY_P, 0), dd_make(1, -TINY_P))
        lower[0] = log_lower(a, b, dd_make(TINY_P, 0), dd_make(1, -TINY_P), d) + a * log(x.hi / TINY_P)
        upper[0] = c_log1mexp(lower[0])
        return
    d = balance(a, b, x, y)
    if d.hi >= 0:
        lower[0] = log_lower(a, b, x, y, d)
        upper[0] = c_log1mexp(lower[0])
    else:
        upper[0] = log_lower(b, a, y, x, dd_neg(d))
        lower[0] = c_log1mexp(upper[0])


cdef double log_scale(double a, double b) noexcept nogil:
    """Returns log(1/(a B(a, b))) for a < 1 or b < 1, relatively accurate in a where a < 1."""
    if a < 1:
        return c_lgamma_step(a, b) - c_lgamma1p(a)
    return c_lgamma_step(b, a) - log(a) - c_lgamma1p(b) + log(b)


cdef void one_small(double a, double b, dd x, dd y, double *lower, double *upper) noexcept nogil:
    """Writes log I_x(a, b) and log(1 - I_x(a, b)) for a < 1 or b < 1, and x <= 1/2; formulas in the header."""
    cdef double log_x = log(x.hi), scale = log_scale(a, b), u = a * log_x + scale, term = 1, rest = 0, n = 0, part, t, above, q
    cdef bint terms = b < 1 or b * x.hi < 1.5
    if terms:
        # sum_(n > 0) (1-b)_n x^n a/(n! (a+n))
        while True:
            n += 1
            term *= (n - b) / n * x.hi
            part = term * (a / (a + n))
            rest += part
            if fabs(part) <= 1e-17 * fabs(rest) or term == 0:
                break
    if b < 1:
        lower[0] = u + log1p(rest)
    else:
        t = u + b * log1p(-x.hi)
        both_large(a + 1, b, x, y, &part, &above)
        lower[0] = c_log_add_exp(t, part)
    if lower[0] < -0.69:
        upper[0] = c_log1mexp(lower[0])
    elif terms:
        q = -expm1(u) - exp(u) * rest
        upper[0], lower[0] = log(q), log1p(-q)
    else:
        # Q = x^a y^b/(B(b, a) fraction(Q)): here Q is below 1/2, and x is above (a + 1)/(a + b + 2), where this fraction converges
        q = fraction(b, a, y.hi, dd_neg(balance(a, b, x, y)).hi)
        upper[0] = u + b * log1p(-x.hi) + log(a / q)
        lower[0] = c_log1mexp(upper[0])


cdef void c_log_beta_tails(double a, double b, double x, double x_lo, double y, double y_lo, double *lower,
                           double *upper) noexcept nogil:
    cdef dd first = dd_make(x, x_lo), second = dd_make(y, y_lo)
    if a >= 1 and b >= 1:
        both_large(a, b, first, second, lower, upper)
    elif x <= y:
        one_small(a, b, first, second, lower, upper)
    else:
        one_small(b, a, second, first, upper, lower)


cdef inline double beta_log(double a, double b, double x, bint want_upper) noexcept nogil:
    cdef double lower = 0, upper = -INFINITY
    cdef dd y = dd_sum(1, -x)
    if x == 0:
        lower, upper = -INFINITY, 0
    elif x < 1:
        c_log_beta_tails(a, b, x, 0, y.hi, y.lo, &lower, &upper)
    return upper if want_upper else lower


cdef double c_log_betainc(double a, double b, double x) noexcept nogil:
    return beta_log(a, b, x, False)


cdef double c_log_betaincc(double a, double b, double x) noexcept nogil:
    return beta_log(a, b, x, True)


cdef double c_nbinom_logpmf(double k, double r, double p) noexcept nogil:
    cdef double lo, dev, size = r + k
    cdef dd q = dd_sum(1, -p), x = dd_make(p, 0)
    if k < 0 or p == 0:
        return -INFINITY
    if p == 1:
        return 0 if k == 0 else -INFINITY
    if k == 0:
        return r * (log(p) if p < 0.5 else log1p(-q.hi))
    if r < 1 or p < TINY_P:
        # dev is log(Gamma(k + r)/(k! Gamma(r))), which does not depend on p: for r >= 1 it is computed at p = TINY_P.
        if r < 1:
            dev = log(r) - c_lgamma1p(r) + c_lgamma_step(r, k) - log(k)
        else:
            dev = c_nbinom_logpmf(k, r, TINY_P) - r * log(TINY_P)
        return dev + r * (log(p) if p < 0.5 else log1p(-q.hi)) + (k * log1p(-p) if r < 1 else 0)
    dev = deviances(r, k, x, q, balance(r, k, x, q), &lo)
    return -dev + (0.5 * log(r / size / (2 * M_PI * k)) - lo
                   + (c_stirling_real(size) - c_stirling_real(r) - c_stirling_error(k)))


cdef double c_nbinom_logcdf(double k, double r, double p) noexcept nogil:
    cdef double above
    if k < TWO_53:
        return -INFINITY if k < 0 else c_log_betainc(r, k + 1, p)
    above = c_nbinom_logsf(k, r, p)
    return c_log1mexp(above) if above < -0.69 else c_log_add_exp(c_log_betainc(r, k, p), c_nbinom_logpmf(k, r, p))


cdef double c_nbinom_logsf(double k, double r, double p) noexcept nogil:
    cdef double pmf, value, q = dd_sum(1, -p).hi, total = 0, term = (1 + (r - 1) / k) * q, n = 0
    if k < TWO_53:
        return 0 if k < 0 else c_log_betaincc(r, k + 1, p)
    # k + 1 is not representable. The tail is Pr[F = k] times a sum of ratios of probabilities, or Pr[F > k - 1] - Pr[F = k] where
    # this sum is long.
    pmf = c_nbinom_logpmf(k, r, p)
    if term < 0.99:
        while term > 1e-17 * total:
            total += term
            n += 1
            term *= (1 + (r - 1) / (k + n)) * q
        return pmf + log(total)
    value = c_log_betaincc(r, k, p)
    return value + log1p(-exp(pmf - value))


cdef inline bint beta_domain(double a, double b, double x) noexcept nogil:
    return 0 < a <= MOST and 0 < b <= MOST and 0 <= x <= 1


cdef inline double beta_limit(double a, double b, double x, bint want_upper) noexcept nogil:
    """Return the limit where a or b is 0 or infinite, as scipy.special has it; NaN outside the domain."""
    cdef bint at_zero = (a == 0 and b > 0) or (b == INFINITY and 0 <= a < INFINITY)
    cdef bint at_one = (b == 0 and a > 0) or (a == INFINITY and 0 <= b < INFINITY)
    if not (0 <= x <= 1) or not (at_zero or at_one):
        return NAN
    # the limit of the beta distribution has its whole mass at 0 (at_zero) or at 1
    return 0 if (x > 0 if at_zero else x == 1) != want_upper else -INFINITY


cdef double checked_log_betainc(double a, double b, double x) noexcept nogil:
    return c_log_betainc(a, b, x) if beta_domain(a, b, x) else beta_limit(a, b, x, False)


cdef double checked_log_betaincc(double a, double b, double x) noexcept nogil:
    return c_log_betaincc(a, b, x) if beta_domain(a, b, x) else beta_limit(a, b, x, True)


cdef inline bint nbinom_domain(double k, double r, double p) noexcept nogil:
    # k above TWO_53 is refused, except infinity, where the functions return their limits
    return (k <= TWO_53 or k == INFINITY) and 0 < r <= MOST and 0 <= p <= 1


cdef double checked_nbinom_logpmf(double k, double r, double p) noexcept nogil:
    if not nbinom_domain(k, r, p):
        return NAN
    if k == INFINITY:
        return -INFINITY
    return c_nbinom_logpmf(k, r, p) if k == floor(k) else -INFINITY


cdef double checked_nbinom_logcdf(double k, double r, double p) noexcept nogil:
    if not nbinom_domain(k, r, p):
        return NAN
    if k == INFINITY:
        return 0 if p > 0 else -INFINITY
    return c_nbinom_logcdf(floor(k), r, p)


cdef double checked_nbinom_logsf(double k, double r, double p) noexcept nogil:
    if not nbinom_domain(k, r, p):
        return NAN
    if k == INFINITY:
        return -INFINITY if p > 0 else 0
    return c_nbinom_logsf(floor(k), r, p)


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
    "Relative error about 1e-13, or some ulp of the logarithm: the header of ``_core/_beta.pyx`` has the table."))


cdef void block_log_betaincc(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    c_tails_block(level, TAILS_BETA, x, value, count, 0, checked_log_betaincc)


log_betaincc = ufunc_of_blocks(<void *> block_log_betaincc, document(
    "log_betaincc(a, b, x)", "Log of the complement of the regularized incomplete beta function, log(1 - I_x(a, b)).",
    BETA_ARGUMENTS,
    "log_betainc, nbinom_logsf", "log_betaincc(0.5, 2000.5, 0.75):.8f", "-2777.51111528",
    "Relative error about 1e-13, or some ulp of the logarithm: the header of ``_core/_beta.pyx`` has the "
    "table. 1 - x is never rounded."))

cdef dict NBINOM_ARGUMENTS = {
    "r": "Number of successes waited for, any real number in (0, 1e100].",
    "p": "Probability of success of each trial, in [0, 1].",
}
cdef str NBINOM_NOTES = ("As :func:`log_betainc`, of which these are values at integers: parameters and meaning as in "
                         "``scipy.stats.nbinom``.")


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
