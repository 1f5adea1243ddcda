"""Gaussian noise: log delta(eps) with a bound of its error, and eps(delta).

Layer: kernels ``cdef ... c_...(...) noexcept nogil`` (declared in _gaussian.pxd, which says what the caller has checked), a ufunc,
and a search that releases the interpreter's lock.

Definition. mu = Delta/sigma, x = eps/mu - mu/2, y = x + mu, h = mu/2, c = eps/mu, M = (1 - Phi)/phi Mills' ratio:
    delta(eps) = Phi(-x) - e^eps Phi(-y) = phi(x) (M(x) - M(y)).
x is (2 eps sigma^2 - Delta^2)/(2 sigma Delta) in double-double arithmetic, because the error of log phi(x) is x^2 times the
relative error of x.
Ranges of M(c - h) - M(c + h) = 2 sum_j h^(2j+1) I_(2j+1)(c)/(2j+1)!,  I_n(c) = int_0^inf s^n e^(-s^2/2 - c s) ds:
    c >= 1.5, h <= max(1, c/2)      the series, with ratios r_n = I_(n+1)/I_n = (n + 1)/(c + r_(n+1)) from their continued
                                    fraction, evaluated downward: DEEP steps for c < 8, SHALLOW above. All terms are positive
    c < 1.5, h < 0.1                the series, with the recursion I_(n+1) = n I_(n-1) - c I_n, which loses three digits at most
    otherwise                       the difference itself: M(c + h) is at most 0.92 M(c - h). For x < 0 the first term is Phi(-x),
                                    a probability above 1/2
Measured error of log delta, absolute, less 1 ulp of log delta and 0.6 ulp of x^2 (tests/reference/measure_errors.py, python-flint
at 500 bits); largest error over the returned bound: peak 0.5

    domain                                          trials    peak      rms
    mu in 1e-12..1e6, log delta >= -1               2e3       7.5e-16   7.2e-17
    the same, -700 <= log delta < -1                1.8e4     5.8e-15   2.7e-16
Returned error: 48 ulp for the continued fraction, 96 for the recursion, for the difference 12 ulp of each term over the difference;
          and the roundings of log phi(x) and of the sum.
Cost      0.1 to 0.5 us a value, 8 us an eps
Source    the formula: Balle and Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018, Theorem 8.
"""

from libc.math cimport INFINITY, exp, fabs, fmax, fmin, frexp, ldexp, log, sqrt

from shufflebounds._core._constants cimport UNIT
from shufflebounds._core._crossing cimport Curve, c_crossing, c_level
from shufflebounds._core._dd cimport dd, dd_prod
from shufflebounds._core._special cimport c_mills_ratio
from shufflebounds._core._ufunc cimport ufunc_of_pairs

cdef extern from *:
    """
    #define DEEP 140                        /* steps of the continued fraction for c < 8: fewer lose digits at c = 1.5 */
    #define SHALLOW 72                      /* steps for c >= 8 */
    #define HALF_LOG_2PI 0.91893853320467274
    #define SQUARABLE 1e140                 /* largest eps that is squared; the delta there bounds that at larger eps */
    """
    const int DEEP
    const int SHALLOW
    const double HALF_LOG_2PI
    const double SQUARABLE


cdef struct Noise:
    double sigma
    double sensitivity


cdef inline double threshold(double s, double d, double eps, double *x_low) noexcept nogil:
    """Returns x as a double-double. The head is the double nearest to x, because only the head is passed to Mills' ratio."""
    cdef dd square = dd_prod(s, s), p = dd_prod(2 * eps, square.hi), r = dd_prod(d, d), g = dd_prod(2 * s, d), t
    cdef double p_low = p.lo + 2 * eps * square.lo, top = p.hi - r.hi, part = top - p.hi, top_low, x, low, head
    top_low = (p.hi - (top - part)) + (-r.hi - part) + (p_low - r.lo)
    x = top / g.hi
    t = dd_prod(x, g.hi)
    low = ((top - t.hi) - t.lo + top_low - x * g.lo) / g.hi
    head = x + low
    x_low[0] = low - (head - x)
    return head


cdef double log_difference(double c, double h) noexcept nogil:
    """Returns log(M(c - h) - M(c + h)) for c >= 1.5 and h <= max(1, c/2)."""
    cdef int depth = DEEP if c < 8 else SHALLOW, n
    cdef double r = 0.5 * (sqrt(c * c + 4.0 * (depth + 2)) - c), total = 1, after
    for n in range(depth, -1, -1):
        after = r
        r = (n + 1) / (c + r)
        if n & 1 and n < 64:
            # The next term of the series has the factor I_(n+2) h^2/((n+1)(n+2) I_n). Each ratio r is multiplied by h first,
            # because r alone may be as small as 1e-140.
            total = 1 + (h * r) * (h * after) / ((n + 1.0) * (n + 2.0)) * total
    return log(2 * h) + log(r) + log(c_mills_ratio(c)) + log(total)


cdef inline double small_difference(double c, double h) noexcept nogil:
    """Returns (M(c - h) - M(c + h))/(2 h) for 0 <= c < 1.5 and h < 0.1."""
    cdef double before = c_mills_ratio(c), here, total, factor = 1, after
    cdef int n
    here = 1 - c * before
    total = here
    for n in range(1, 13):
        after = n * before - c * here
        before = here
        here = after
        factor *= h / (n + 1)
        if n % 2 == 0:
            total += factor * here
    return total


cdef void c_gaussian_log_delta(double sigma, double sensitivity, double eps, double *value, double *error) noexcept nogil:
    cdef int power = 0
    # scaled to 1 <= d < 2
    cdef double d = 2 * frexp(sensitivity, &power), s = ldexp(sigma, 1 - power), x, x_low, h, c, log_density, first, second, scale
    cdef dd square
    eps = fmin(eps, SQUARABLE)
    x = threshold(s, d, eps, &x_low)
    h, c = d / (2 * s), eps * s / d
    square = dd_prod(x, x)
    log_density = -0.5 * (square.hi + (square.lo + 2 * x * x_low)) - HALF_LOG_2PI
    if c >= 1.5 and (h <= 1 or h <= 0.5 * c):
        value[0] = log_density + log_difference(c, h)
        error[0] = 96 * UNIT
    elif c < 1.5 and h < 0.1:
        value[0] = log_density + log(2 * h * small_difference(c, h))
        error[0] = 192 * UNIT
    else:
        second = c_mills_ratio(c + h)
        if x < 0:
            # Mills' ratio of x may overflow; the first term is formed from its complement, which is below 1/2
            scale = exp(log_density)
            first, second = 1 - exp(-0.5 * x * x - HALF_LOG_2PI) * c_mills_ratio(-x), scale * second
            value[0] = log(first - second)
            # the exponential of the log density adds a rounding error
            error[0] = 2 * UNIT * ((12 * first + (12 + 2 * fabs(log_density)) * second) / (first - second) + 9 + fabs(value[0]))
            return
        first = c_mills_ratio(x)
        value[0] = log_density + log(first - second)
        error[0] = 2 * UNIT * (12 * (first + second) / (first - second) + 8)
    error[0] += 2 * UNIT * (fabs(value[0]) + 1.25 * fabs(log_density))


cdef double gaussian_side(double eps, bint upper, const void *law) noexcept nogil:
    cdef const Noise *noise = <const Noise *> law
    cdef double value, error
    c_gaussian_log_delta(noise.sigma, noise.sensitivity, eps, &value, &error)
    return fmin(0, value + error if upper else value - error)


cdef double gaussian_rough(double eps, const void *law) noexcept nogil:
    cdef const Noise *noise = <const Noise *> law
    cdef double value, error
    c_gaussian_log_delta(noise.sigma, noise.sensitivity, eps, &value, &error)
    return value


cdef double c_gaussian_guess(double target, double mu) noexcept nogil:
    # M(x) - M(x + mu) is about mu/((x + 1)(x + 1 + mu)), M Mills' ratio
    cdef double x = sqrt(-2 * target), rest
    for _ in range(4):
        rest = -target - HALF_LOG_2PI + log(mu / ((x + 1) * (x + 1 + mu)))
        if not rest > 0.5:
            return 0
        x = sqrt(2 * rest)
    return mu * (x + 0.5 * mu)


cdef double c_gaussian_epsilon(double sigma, double sensitivity, double delta, bint upper) noexcept nogil:
    cdef Noise noise
    cdef Curve curve
    cdef double mu = sensitivity / sigma
    noise.sigma, noise.sensitivity = sigma, sensitivity
    curve.side, curve.rough, curve.centre = gaussian_side, gaussian_rough, NULL
    curve.ahead, curve.miss = NULL, 1e-5
    # delta underflows far below the last eps
    curve.law, curve.pure, curve.last, curve.span = &noise, INFINITY, 1e6 * fmax(1, mu * mu), mu
    curve.close, curve.sure = 1e-13, True
    return c_crossing(&curve, delta, upper, c_gaussian_guess(c_level(delta, upper), mu) if 0 < delta < 1 else 0, 0, True)


def gaussian_epsilon(double sigma, double sensitivity, double delta, bint upper):
    """Return the upper or the lower bound of epsilon of Gaussian noise at a delta in [0, 1]."""
    cdef double eps
    with nogil:
        eps = c_gaussian_epsilon(sigma, sensitivity, delta, upper)
    return eps


cdef void each_gaussian(const double *x, double *sides) noexcept nogil:
    c_gaussian_log_delta(x[0], x[1], x[2], sides, sides + 1)


gaussian_log_delta = ufunc_of_pairs(
    <void *> each_gaussian,
    "gaussian_log_delta(sigma, sensitivity, eps) -> (log delta, bound of its error) of Gaussian noise.")
