"""Elementary functions used by the other kernels, each without cancellation.

Layer: scalar ``cdef double f(...) noexcept nogil``, declared in _special.pxd, then one ufunc a function. The scalars
check nothing; each docstring says what the caller has checked. The ufuncs test ``x == x`` first: an ordered comparison
with NaN would raise the invalid flag, and NumPy would warn.

Measured error (units: ulp of the result, python-flint at 200 bits or more; tests/reference/measure_errors.py, and
tests/core/test_special.py repeats it):

    function        domain                          trials    peak    rms
    log1pmx         (-1, 1e300], |x| >= 1e-150      2e4       2.6     0.42
    log1mexp        [-700, -1e-300]                 2e4       1.5     0.31
    stirling_error  1..2**53                        2e4       2.1     0.61
    mills_ratio     [0, 1e300]                      2e4       4.2     0.67    (the largest error is next to an end of a piece)
    log_ratio       1e-270 <= m, x <= 2**53         2e4       2**-72 relative; 2**-75 absolute within 1/16 of 1
    deviance        x, m in [1e-3, 2**53]           1.3e4     6.8     0.89    (x - m exact)
    deviance_dd     the same, above 32              1.2e4     0.51    0.29    (hi alone; hi + lo has a relative error of 2**-57)
"""

from libc.math cimport INFINITY, M_LN2, NAN, exp, expm1, fabs, floor, frexp, log, log1p

from shufflebounds._core._dd cimport dd, dd_add, dd_div, dd_fast_sum, dd_make, dd_mul, dd_mul_d, dd_prod, dd_sum
from shufflebounds._core._ufunc cimport ufunc

cdef extern from "arithmetic.h" nogil:
    Py_ssize_t whole(double x, Py_ssize_t low, Py_ssize_t high)

cdef extern from "tables.h" nogil:
    const double *ATANH
    const double *LOG_C
    const double *LOG_HI
    const double *LOG_LO
    const Py_ssize_t LOG_CELLS
    const double LOG_FIRST
    const double LOG_STEP
    const double *STIRLING
    const int STIRLING_LAST
    const double *MILLS
    const int MILLS_DEGREE
    const Py_ssize_t MILLS_PIECES
    const double MILLS_SCALE

cdef extern from *:
    """
    #define LEAST 0x1p-990
    #define MOST 0x1p990
    """
    const double LEAST
    const double MOST

# ln 2 in two parts; the first has 21 trailing zero bits, so that its product with an exponent is exact.
cdef double LN2_HI = 0.693147180558298714458942413330078125
cdef double LN2_LO = 1.6465949582897081279e-12


cdef inline double atanh_tail(double w) noexcept nogil:
    """Returns (atanh(v)/v - 1)/v^2 at w = v^2 <= 1/9: twelve terms, in two independent halves that a processor runs in parallel."""
    cdef double w2 = w * w, w4 = w2 * w2
    return ((ATANH[0] + w * ATANH[1]) + w2 * (ATANH[2] + w * ATANH[3])
            + w4 * (((ATANH[4] + w * ATANH[5]) + w2 * (ATANH[6] + w * ATANH[7]))
                    + w4 * ((ATANH[8] + w * ATANH[9]) + w2 * (ATANH[10] + w * ATANH[11]))))


cdef double c_log1pmx(double x) noexcept nogil:
    """Returns log(1 + x) - x. The caller has checked: x > -1.

    -0.5 < x < 0.8   v (2 v^2 (1/3 + v^2/5 + ...) - x), v = x/(2 + x): log(1+x) = 2 atanh(v), x = 2v + v x
    otherwise        log1p(x) - x, where at most two bits cancel
    """
    cdef double v, w
    if -0.5 < x < 0.8:
        v = x / (2 + x)
        w = v * v
        return v * (2 * w * atanh_tail(w) - x)
    return log1p(x) - x


cdef double c_log1mexp(double x) noexcept nogil:
    """Returns log(1 - e^x). The caller has checked: x <= 0. The cut at -ln 2 keeps both inner results in [1/2, 1]."""
    if x > -M_LN2:
        return log(-expm1(x)) if x < 0 else -INFINITY
    return log1p(-exp(x))


cdef double c_log_add_exp(double a, double b) noexcept nogil:
    """Returns log(e^a + e^b) for any a, b < inf."""
    cdef double high = a if a > b else b
    if high == -INFINITY:
        return high
    return high + log1p(exp(-fabs(a - b)))


cdef double c_log_sub_exp(double a, double b) noexcept nogil:
    """Returns log(e^a - e^b). The caller has checked: a >= b. If b is close to a, rounded arguments cause cancellation."""
    if b == -INFINITY:
        return a
    return a + c_log1mexp(b - a)


cdef double c_stirling_error(double n) noexcept nogil:
    """Returns log n! - log(sqrt(2 pi n) (n/e)^n). The caller has checked: n is an integer, 1 <= n.

    Values up to n = 15 are from a table, later ones from the asymptotic series. Its first omitted term is 4e-18 at n = 16.
    """
    cdef double r, w
    if n <= STIRLING_LAST:
        return STIRLING[whole(n, 1, STIRLING_LAST)]
    r = 1 / n
    w = r * r
    return r * (1 / 12.0 - w * (1 / 360.0 - w * (1 / 1260.0 - w * (
        1 / 1680.0 - w * (1 / 1188.0 - w * (691 / 360360.0))))))


cdef double c_mills_ratio(double x) noexcept nogil:
    """Returns M(x) = e^(x^2/2) int_x^inf e^(-t^2/2) dt. The caller has checked: x >= 0.

    M(x)/y is smooth in y = 4/(4 + x) on [0, 1]: 32 polynomials of degree 8.
    """
    cdef double y = MILLS_SCALE / (MILLS_SCALE + x)
    cdef double z = y * MILLS_PIECES
    # z = MILLS_PIECES at x = 0
    cdef Py_ssize_t piece = whole(z, 0, MILLS_PIECES - 1) if z < MILLS_PIECES else MILLS_PIECES - 1
    cdef const double *c
    cdef double t, t2, t4
    t = z - piece - 0.5
    c = MILLS + piece * (MILLS_DEGREE + 1)
    t2 = t * t
    t4 = t2 * t2
    return y * ((c[0] + (t * c[1] + t2 * (c[2] + t * c[3])))
                + t4 * ((c[4] + t * c[5]) + t2 * (c[6] + t * c[7]) + t4 * c[8]))


cdef double c_log_ratio(double x, double m, double m_lo, double *lo) noexcept nogil:
    """Returns log(x/(m + m_lo)) as a double-double. The caller has checked: x > 0, m > 0.

    z = x/m = 2^e z', z' in [11/16, 11/8): c ~ 1/z' from a table, r = c z' - 1 with |r| < 0.008,
    log = e ln 2 - log c + log1p(r), the series' first two terms in double-double.
    For x/m outside 2^+-990, where the splitting of x/m would overflow, the value is log x - log m in plain double.
    """
    cdef dd z = dd_div(dd_make(x, 0), dd_make(m, m_lo)), r, total, square
    cdef int e
    cdef double f = frexp(z.hi, &e), scale, c, u
    cdef Py_ssize_t cell
    if not LEAST < z.hi < MOST:
        lo[0] = 0
        return log(x) - log(m)
    if f < LOG_FIRST:
        f *= 2
        e -= 1
    scale = f / z.hi                                   # a power of two
    cell = whole((f - LOG_FIRST) * LOG_STEP, 0, LOG_CELLS - 1)          # 87 at most, as f < 11/8
    c = LOG_C[cell]
    r = dd_prod(f, c)
    r = dd_sum(r.hi - 1, r.lo + z.lo * scale * c)      # r.hi - 1 is exact
    u = r.hi
    square = dd_prod(u, u)
    total = dd_sum(u, -0.5 * square.hi)
    total.lo += r.lo * (1 - u) - 0.5 * square.lo + u * square.hi * (
        1 / 3.0 - u * (1 / 4.0 - u * (1 / 5.0 - u * (1 / 6.0 - u * (1 / 7.0 - u * (1 / 8.0 - u / 9.0))))))
    total = dd_add(dd_make(LOG_HI[cell], LOG_LO[cell]), dd_fast_sum(total.hi, total.lo))
    if e:
        total = dd_add(dd_sum(e * LN2_HI, e * LN2_LO), total)
    lo[0] = total.lo
    return total.hi


cdef double c_deviance(double x, double m, double d) noexcept nogil:
    """Returns x log(x/m) - (x - m) in plain double, given d = x - m as accurately as the caller can form it.

    The caller has checked: x > 0, m > 0, d = x - m.
    |v| <= 1/3    v d + 2 x v^3 (1/3 + v^2/5 + ...), v = d/(x + m) (Loader's deviance by atanh)
    otherwise     x log(x/m) - d, where at most two bits cancel
    """
    cdef double v = d / (x + m), w
    if fabs(v) <= 1 / 3.0:
        w = v * v
        return v * (d + 2 * x * w * atanh_tail(w))
    return x * log(x / m) - d


cdef double c_deviance_dd(double x, double m, double m_lo, double d, double d_lo, double *lo) noexcept nogil:
    """Returns x log(x/m) - (x - m) as a double-double, for deviances so large that an ulp of a double matters in the exponent.

    The caller has checked: as log_ratio; d + d_lo = x - (m + m_lo) to double-double.
    |v| <= 1/32    v d in double-double; the remainder, at most |v|/3 of it, in double
    otherwise      x log(x/m) - d, where five bits of 66 cancel
    """
    cdef dd total, v, sum_
    cdef double w, log_lo = 0
    sum_ = dd_sum(x, m)
    sum_.lo += m_lo
    v = dd_div(dd_make(d, d_lo), sum_)
    if fabs(v.hi) <= 0.03125:
        w = v.hi * v.hi
        total = dd_mul(v, dd_make(d, d_lo))
        total = dd_fast_sum(total.hi, total.lo + 2 * x * w * v.hi * atanh_tail(w))
    else:
        w = c_log_ratio(x, m, m_lo, &log_lo)
        total = dd_add(dd_mul_d(dd_make(w, log_lo), x), dd_make(-d, -d_lo))
    lo[0] = total.lo
    return total.hi


cdef double checked_log1pmx(double x) noexcept nogil:
    if x != x:
        return NAN
    if x > -1:
        return c_log1pmx(x)
    return -INFINITY if x == -1 else NAN


cdef double checked_log1mexp(double x) noexcept nogil:
    return c_log1mexp(x) if x == x and x <= 0 else NAN


cdef double checked_log_add_exp(double a, double b) noexcept nogil:
    return c_log_add_exp(a, b) if a == a and b == b and a < INFINITY and b < INFINITY else a + b


cdef double checked_log_sub_exp(double a, double b) noexcept nogil:
    return c_log_sub_exp(a, b) if a == a and b == b and b <= a < INFINITY else NAN


cdef double checked_stirling_error(double n) noexcept nogil:
    return c_stirling_error(n) if n == n and n >= 1 and n < INFINITY and n == floor(n) else NAN


cdef double checked_mills_ratio(double x) noexcept nogil:
    return c_mills_ratio(x) if x == x and x >= 0 else NAN


cdef double checked_deviance(double x, double m) noexcept nogil:
    if not (x == x and m == m and x >= 0 and 0 < m < INFINITY and x < INFINITY):
        return NAN
    return c_deviance(x, m, x - m) if x > 0 else m


log1pmx = ufunc(<void *> checked_log1pmx, "log1pmx(x): log(1 + x) - x without cancellation; NaN for x < -1.")
log1mexp = ufunc(<void *> checked_log1mexp, "log1mexp(x): log(1 - exp(x)) for x <= 0; NaN otherwise.")
log_add_exp = ufunc(<void *> checked_log_add_exp, "log_add_exp(a, b): log(exp(a) + exp(b)).")
log_sub_exp = ufunc(<void *> checked_log_sub_exp, "log_sub_exp(a, b): log(exp(a) - exp(b)) for a >= b; NaN otherwise.")
stirling_error = ufunc(
    <void *> checked_stirling_error,
    "stirling_error(n): log n! minus Stirling's formula, log(sqrt(2 pi n) (n/e)^n), for integers n >= 1; NaN otherwise.")
mills_ratio = ufunc(
    <void *> checked_mills_ratio,
    "mills_ratio(x): Mills' ratio of the standard normal distribution, (1 - Phi(x))/phi(x), for x >= 0; NaN otherwise.")
deviance = ufunc(<void *> checked_deviance, "deviance(x, m): x log(x/m) - x + m for x >= 0 and m > 0 (m at x = 0); NaN otherwise.")
