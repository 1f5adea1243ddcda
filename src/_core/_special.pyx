"""Elementary functions used by the other kernels, each without cancellation.

The scalar functions check nothing; special.h says what the caller has checked. The ufuncs test ``x == x`` first, because an ordered
comparison with NaN would raise the floating-point flag "invalid", and NumPy would warn.

Measured error in ulp of the result, against python-flint at 200 bits or more (tests/reference/measure_errors.py;
tests/core/test_special.py repeats the measurement):

    function        domain                          trials    peak    rms
    log1pmx         (-1, 1e300], |x| >= 1e-150      2e4       2.6     0.42
    log1mexp        [-700, -1e-300]                 2e4       1.5     0.31
    stirling_error  1..2**53                        2e4       2.1     0.61
    mills_ratio     [0, 1e300]                      2e4       4.2     0.67    (the largest error is next to an end of a piece)
    log_ratio       1e-270 <= m, x <= 2**53         2e4       2**-72 relative; 2**-75 absolute within 1/16 of 1
    deviance        x, m in [1e-3, 2**53]           1.3e4     6.8     0.89    (x - m exact)
    deviance_dd     the same, above 32              1.2e4     0.51    0.29    (hi alone; hi + lo has a relative error of 2**-57)
"""

from libc.math cimport INFINITY, NAN, floor

from shufflebounds._core._ufunc cimport ufunc

cdef extern from "special.h" nogil:
    double kernel_log1pmx(double x)
    double kernel_log1mexp(double x)
    double kernel_log_add_exp(double a, double b)
    double kernel_log_sub_exp(double a, double b)
    double kernel_stirling_error(double n)
    double kernel_mills_ratio(double x)
    double kernel_log_ratio(double x, double m, double m_lo, double *lo)
    double kernel_deviance(double x, double m, double d)
    double kernel_deviance_dd(double x, double m, double m_lo, double d, double d_lo, double *lo)


cdef double c_log1pmx(double x) noexcept nogil: return kernel_log1pmx(x)
cdef double c_log1mexp(double x) noexcept nogil: return kernel_log1mexp(x)
cdef double c_log_add_exp(double a, double b) noexcept nogil: return kernel_log_add_exp(a, b)
cdef double c_log_sub_exp(double a, double b) noexcept nogil: return kernel_log_sub_exp(a, b)
cdef double c_stirling_error(double n) noexcept nogil: return kernel_stirling_error(n)
cdef double c_mills_ratio(double x) noexcept nogil: return kernel_mills_ratio(x)
cdef double c_log_ratio(double x, double m, double m_lo, double *lo) noexcept nogil: return kernel_log_ratio(x, m, m_lo, lo)
cdef double c_deviance(double x, double m, double d) noexcept nogil: return kernel_deviance(x, m, d)
cdef double c_deviance_dd(double x, double m, double m_lo, double d, double d_lo, double *lo) noexcept nogil:
    return kernel_deviance_dd(x, m, m_lo, d, d_lo, lo)


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
