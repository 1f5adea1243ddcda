"""Logarithms of binomial probabilities and tails, relatively accurate for every n up to 2**53 and every double p in [0, 1].

Layer: scalar kernels ``cdef double c_...(...) noexcept nogil``, declared in _binomial.pxd. They check only what their declaration
states. The ufuncs evaluate blocks of elements by the same formulas in vector code (tails.h), and return NaN outside the domain.

Definitions. q = 1 - p is a double-double and n p is formed in double-double, so that k - n p is exact to double-double.
    pmf     -dev(k, n p) - dev(n - k, n q) + log(n/(2 pi k (n-k)))/2 + s(n) - s(k) - s(n-k), with the deviance
            dev(x, m) = x log(x/m) - x + m >= 0 and Stirling's error s (Loader 2000). No term cancels another.
    tails   Only the smaller tail is computed; the other is log(1 - e^small). With N = n + 1, j = k + 1, b = N - j
            and D = dev(j, N p) + dev(b, N q), the upper tail Pr[X >= j] is, for j >= N p:
      near the mode   e^-D/sqrt(2 pi) [M(s) + B(s)], s = sqrt(2 D), M Mills' ratio. This is the integral of
                      u^j (1-u)^b du/(u(1-u)) in the logit y of u, where the exponent is N K(y) with K the cumulant
                      function of a Bernoulli(j/N) variable; dy/ds is a power series in s/sigma, sigma^2 = j b/N, whose
                      coefficients are polynomials in 2j/N - 1 (tables.h), integrated term by term. The Beta function
                      itself is the same series over the whole line, so Stirling's errors cancel exactly.
                      Used where max(s, 2.5) < 0.27 sigma: the dropped terms are then below 2e-17.
      elsewhere       The pmf times the even part of Gauss's continued fraction for the incomplete beta integral
                      (DLMF 8.17.22), all of whose terms are positive.
    D <= 32 is formed in plain double. Beyond, an ulp of D exceeds the other errors, and D is formed in double-double.
    For p < 2**-830 the kernels use p = 2**-830, because log Pr[X = k], k >= 1, is then linear in log p to 1e-200.

Measured error of log p in units of max(ulp(log p), 2**-53), the second being the roundoff of p itself
(tests/reference/measure_errors.py, Gauss quadrature in python-flint at 400 bits; tests/core/ allows 3e-14 + 4 ulp):

    function   domain                                        trials   peak      rms
    logpmf     n 1..2**53, p any double, k anywhere           2.0e4    2.4       0.35
    smaller    the same                                       1.8e4    5.2       0.65
    larger     log p > -0.69, of log p, in the smaller's unit 1.5e4    6.8       0.80
    blocks     n to 1e7, within 6.5 sigma: smaller            6.0e3    5.2       0.81
               larger                                         6.0e3    7.3       0.92

These are the errors of the ufuncs. The scalar kernels have the peaks 3.4, 7.6 and 11 (rms 0.40, 0.79 and 1.0).

Cost      see docs/numerics and tails.h: in arrays 9 to 26 ns a probability and 17 to 55 ns a tail with AVX-512; scalar
          kernels 35 to 330 ns.
Source    Loader 2000; Temme 1979/1982 for the idea of the uniform expansion; DLMF 8.17.
"""

from libc.math cimport INFINITY, M_PI, NAN, ceil, exp, expm1, fabs, floor, fmax, fmin, log, log1p, sqrt

from shufflebounds._core._constants cimport (
    INV_SQRT_2PI, LOG_SQRT_2PI, LOW_ORDER_SLOPE, NEAR_SLOPE, SERIES_VARIANCE, TAILS_BINOMIAL, TINY_P, TWO_53, UNIT)
from shufflebounds._core._dd cimport dd, dd_add, dd_make, dd_neg, dd_prod, dd_sum
from shufflebounds._core._special cimport c_deviance, c_deviance_dd, c_log1mexp, c_mills_ratio, c_stirling_error
from shufflebounds._core._ufunc cimport document, ufunc_of_blocks, ufunc_of_pairs

cdef extern from "tables.h" nogil:
    void uniform_5(double gamma, double *f)
    double uniform_9(double gamma, double h, double s, double *leading)
    double uniform_15(double gamma, double h, double s, double *leading)

cdef extern from "tails.h" nogil:
    void pmf_block(int level, int law, const double *const *x, double *value, Py_ssize_t count, scalar one)
    void tails_block(int level, int law, const double *const *x, double *value, Py_ssize_t count, double upper, scalar one)


cdef inline dd complement(double p) noexcept nogil:
    """Returns 1 - p as a double-double, which is exact for p in [0, 1]."""
    return dd_sum(1, -p)


cdef inline dd times(double n, double extra, double p, double p_lo) noexcept nogil:
    """Returns (n + extra)(p + p_lo), where extra is 0 or 1."""
    cdef dd m = dd_prod(n, p)
    m.lo += n * p_lo
    return dd_add(m, dd_make(extra * p, extra * p_lo)) if extra else m


cdef inline dd distance_dd(double a, double b, double n, double extra,
                           double p, double p_lo, double q, double q_lo) noexcept nogil:
    """Returns a - N p = N q - b, formed from the smaller of p and q; N = n + extra = a + b.

    The smaller of p and 1 - p is found by an index, because the processor could not predict a branch.
    """
    cdef double high[2]
    cdef double low[2]
    cdef double count[2]
    cdef int i = p > q
    cdef double sign = 1 - 2 * i
    cdef dd d
    high[0], high[1] = p, q
    low[0], low[1] = p_lo, q_lo
    count[0], count[1] = a, b
    d = dd_add(dd_make(count[i], 0), dd_neg(times(n, extra, high[i], low[i])))
    return dd_make(sign * d.hi, sign * d.lo)


cdef inline double total_deviance(double a, double b, double n, double extra,
                                  double p, double p_lo, double q, double q_lo, dd d, double *lo) noexcept nogil:
    """Returns the deviances dev(a, N p) + dev(b, N q), and writes their low part to lo.

    d = a - N p, N = n + extra = a + b, and a, b > 0.
    """
    cdef dd m, first, second
    cdef double total = c_deviance(a, (n + extra) * p, d.hi) + c_deviance(b, (n + extra) * q, -d.hi)
    lo[0] = 0
    if total <= 32:
        return total
    m = times(n, extra, p, p_lo)
    first.hi = c_deviance_dd(a, m.hi, m.lo, d.hi, d.lo, &first.lo)
    m = times(n, extra, q, q_lo)
    second.hi = c_deviance_dd(b, m.hi, m.lo, -d.hi, -d.lo, &second.lo)
    first = dd_add(first, second)
    lo[0] = first.lo
    return first.hi


cdef inline double uniform_series(double s, double sigma, double gamma, bint low_order, double *leading) noexcept nogil:
    """Returns B(s), and writes the coefficient of M(s), of the uniform expansion in the header:
    int_s^inf e^(-(t^2-s^2)/2) (dy/dt)(t) dt = (leading M(s) + B(s))/sigma.

    dy/dt = sum_m e_m(gamma) (t/sigma)^m/sigma. Pr[X >= j] is the integral over t < 0, hence gamma = 2 j/N - 1. Integration by parts
    expresses the coefficient of order m by that of order m - 2. The nearest singularity is at 2 sqrt(pi) sigma, so the term of
    order m is about r^m, r = max(s, 2.5)/(2 sqrt(pi) sigma), where 2.5 replaces s near the mode, because the moments (m/e)^(1/2)
    dominate there. Order 9 is used for r < 0.0138, order 15 for r < 0.077: then r^(order + 1) < 2e-17 relative to M ~ 1/s.
    """
    if low_order:
        return uniform_9(gamma, 1 / sigma, s, leading)
    return uniform_15(gamma, 1 / sigma, s, leading)


cdef inline double even_fraction(double a, double b, double x, double y, double d) noexcept nogil:
    """Returns c with Pr[X >= a] = Pr[X = a] (1-x) c, X ~ Bin(a + b - 1, x), by DLMF 8.17.22, two steps of it at a time.

    y = 1 - x and d = a - (a + b) x >= 0. c = 1/(t_0 + u_1/(t_1 + u_2/(t_2 + ...))) with, for m = 0, 1, ...,
    even_m = m (b-m) x/((a+2m-1)(a+2m)), odd_m = (a+m)(a+b+m) x/((a+2m)(a+2m+1)), u_m = odd_(m-1) even_m and
    t_m = 1 + even_m - odd_m = even_m + ((a+m)(1 + d + (2+y) m) + m (m+1))/((a+2m)(a+2m+1)), where the last form has positive terms
    only. The convergents p/q are alternately above and below 1/c.
    """
    cdef double odd = (a + b) * x / (a + 1), even, t, u, m = 0, r, w = a, slope = 2 + y
    cdef double p0 = 1, q0 = 0, p1 = (1 + d) / (a + 1), q1 = 1, p2, q2
    d += 1
    while True:
        m += 1
        w += 2
        r = 1 / ((w - 1) * w * (w + 1))
        even = m * (b - m) * x * (w + 1) * r
        u = odd * even
        r *= w - 1
        odd = (a + m) * (a + b + m) * x * r
        t = even + ((a + m) * (d + slope * m) + m * (m + 1)) * r
        p2 = t * p1 + u * p0
        q2 = t * q1 + u * q0
        # the exact value is between two consecutive convergents
        if fabs(p2 * q1 - p1 * q2) <= 1e-16 * p2 * q1:
            return q2 / p2
        p0, q0, p1, q1 = p1, q1, p2, q2
        if p1 < 1e-150:
            p0 *= 1e150
            q0 *= 1e150
            p1 *= 1e150
            q1 *= 1e150


cdef inline double tail_series(double j, double n, double odds) noexcept nogil:
    """Returns Pr[X >= j]/Pr[X = j] by its series of positive terms, with one division for four terms; odds = p/q."""
    cdef double total = 1, term = 1, top = n - j, bottom = j + 1, inverse
    cdef double a12, a3, a34, b34, c4
    while True:
        a12 = top * odds * ((top - 1) * odds)
        a3 = (top - 2) * odds
        a34 = a3 * ((top - 3) * odds)
        b34 = (bottom + 2) * (bottom + 3)
        inverse = 1 / (bottom * (bottom + 1) * b34)
        c4 = a12 * a34 * inverse
        total += term * ((top * odds * ((bottom + 1) * b34) + a12 * b34 + a12 * (a3 * (bottom + 3))) * inverse + c4)
        term *= c4
        if term <= 1e-18 * total:
            return total
        top -= 4
        bottom += 4


cdef inline double ratio(double j, double b, double n, double p, double q, double variance, double d) noexcept nogil:
    """Returns Pr[X >= j]/Pr[X = j] for j far from the mode or a small variance.

    The computation takes at most about 85 terms of the series, or a dozen steps of the continued fraction.
    """
    if variance < SERIES_VARIANCE:
        return tail_series(j, n, p / q)
    return q * even_fraction(j, b, p, q, d)


cdef inline double spread(double deviance) noexcept nogil:
    """Returns max(s, 2.5)^2 with s^2 = 2 deviance, which the callers compare with a multiple of sigma^2 to choose a method."""
    return 2 * deviance if deviance > 3.125 else 6.25


cdef double upper_tail(double j, double n, double p, double p_lo, double q, double q_lo, dd d,
                       bint other) noexcept nogil:
    """Returns log Pr[X >= j], or log Pr[X < j] if `other`; 1 <= j <= n, 0 < p < 1, d = j - (n + 1) p >= 0."""
    cdef double b = n - j + 1, size = n + 1, lo, leading, value, s, square
    cdef double dev = total_deviance(j, b, n, 1, p, p_lo, q, q_lo, d, &lo)
    cdef double variance = j * (b / size)
    square = spread(dev)
    if square < NEAR_SLOPE * variance:
        s = sqrt(2 * dev)
        value = uniform_series(s, sqrt(variance), (j - b) / size, square < LOW_ORDER_SLOPE * variance, &leading)
        value = c_mills_ratio(s) + value / leading
        if other:
            return log1p(-exp(-dev) * (value * INV_SQRT_2PI))
        return -dev + (log(value) - LOG_SQRT_2PI - lo)
    value = ratio(j, b, n, p, q, variance, d.hi) / q
    value = -dev + (0.5 * log(b / size / (2 * M_PI * j) * value * value) - lo
                    + (c_stirling_error(size) - c_stirling_error(j) - c_stirling_error(b)))
    return c_log1mexp(value) if other else value


cdef double c_binom_tail_ratio(double j, double n, double p, double p_lo, double q, double q_lo) noexcept nogil:
    """Returns Pr[X >= j]/Pr[X = j], a sum of positive terms, with a relative error below 1e-14 (measured 9.4e-16, 7e3 trials)."""
    cdef double b = n - j + 1, size = n + 1, lo, leading, value, s, dev, square
    cdef double variance = j * (b / size)
    cdef dd d = distance_dd(j, b, n, 1, p, p_lo, q, q_lo)
    # for p < TINY_P the deviances are not formed, because j/(n p) may overflow; the expansion would not apply so far from the mode
    if variance >= SERIES_VARIANCE and p >= TINY_P:
        dev = total_deviance(j, b, n, 1, p, p_lo, q, q_lo, d, &lo)
        square = spread(dev)
        if square < NEAR_SLOPE * variance:
            s = sqrt(2 * dev)
            value = uniform_series(s, sqrt(variance), (j - b) / size, square < LOW_ORDER_SLOPE * variance, &leading)
            return j * q * (leading * c_mills_ratio(s) + value) / sqrt(variance)
    return ratio(j, b, n, p, q, variance, d.hi)


cdef double c_binom_logpmf(double k, double n, double p) noexcept nogil:
    cdef dd q, d
    cdef double dev, lo
    if k < 0 or k > n:
        return -INFINITY
    if p == 0 or p == 1:
        return 0 if k == (n if p else 0) else -INFINITY
    if k == 0:
        return n * log1p(-p) if n else 0
    if k == n:
        return n * log(p)
    if p < TINY_P:
        return c_binom_logpmf(k, n, TINY_P) + k * log(p / TINY_P)
    q = complement(p)
    d = distance_dd(k, n - k, n, 0, p, 0, q.hi, q.lo)
    dev = total_deviance(k, n - k, n, 0, p, 0, q.hi, q.lo, d, &lo)
    return -dev + (0.5 * log(n / (n - k) / (2 * M_PI * k)) - lo
                   + (c_stirling_error(n) - c_stirling_error(k) - c_stirling_error(n - k)))


cdef inline double tail(double j, double n, double p, bint upper) noexcept nogil:
    """Returns log Pr[X >= j] (upper) or log Pr[X < j]; 1 <= j <= n, 0 < p < 1."""
    cdef dd q = complement(p), d
    cdef double small, b = n - j + 1
    if p < TINY_P:
        d = distance_dd(j, b, n, 1, TINY_P, 0, 1, -TINY_P)
        small = upper_tail(j, n, TINY_P, 0, 1, -TINY_P, d, False) + j * log(p / TINY_P)
        return small if upper else c_log1mexp(small)
    d = distance_dd(j, b, n, 1, p, 0, q.hi, q.lo)
    # compute the smaller tail; p and q are exchanged by an index instead of a branch, as in distance_dd
    cdef int i = d.hi < 0
    cdef double high[2]
    cdef double low[2]
    cdef double count[2]
    cdef double sign = 1 - 2 * i
    high[0], high[1] = p, q.hi
    low[0], low[1] = 0, q.lo
    count[0], count[1] = j, b
    return upper_tail(count[i], n, high[i], low[i], high[1 - i], low[1 - i], dd_make(sign * d.hi, sign * d.lo),
                      upper == i)


cdef double c_binom_logcdf(double k, double n, double p) noexcept nogil:
    if k < 0:
        return -INFINITY
    if k >= n or p == 0:
        return 0
    if p == 1:
        return -INFINITY
    return tail(k + 1, n, p, False)


cdef double c_binom_logsf(double k, double n, double p) noexcept nogil:
    if k < 0:
        return 0
    if k >= n or p == 0:
        return -INFINITY
    if p == 1:
        return 0
    return tail(k + 1, n, p, True)


cdef double log_shift_series(double k, double n, double p, double q, double eps, double *error) noexcept nogil:
    """Returns log sum_i (t_i - e^eps t_(i+1)), t_i = Pr[B = k-i]/Pr[B = k], by at most about 40/eps terms; adds its error to
    error[0].

    t_i - e^eps t_(i+1) = t_i (p + e^eps q)(phi + i)/((n-k+1+i) p), phi = (n+1) p/(p + e^eps q) - k in [0, 1]. Only phi is formed as
    a difference; its rounding error is the error of the sum.
    """
    cdef double scale = p * exp(-eps) + q, phi
    cdef double total = 0, plain = 0, t = 1, i = 0, part
    # phi is computed from the smaller of p and 1 - p, as k in c_shift_log_delta
    phi = (n + 1) * (p * exp(-eps) / scale) - k if p * exp(-eps) < q else n - k + 1 - (n + 1) * (q / scale)
    phi = fmin(1, fmax(0, phi))
    while True:
        part = t / (n - k + 1 + i)
        plain += part
        total += part * (phi + i)
        if i == k or (i > 1 and part * (phi + i) <= 1e-18 * total):
            break
        t = part * (k - i) * (q / p)
        i += 1
    error[0] += 10 * UNIT * (k + 1) * plain / total
    return eps + log(scale) - log(p) + log(total)


cdef double c_shift_log_delta(double n, double p, double eps, bint reverse, double *error) noexcept nogil:
    """Returns log H(B || B+1) at e^eps, B ~ Bin(n, p); if `reverse`, log H(B+1 || B), which is the same with p replaced by 1 - p.

    With k the last count where Pr[B = k] > e^eps Pr[B = k - 1], k = ceil((n+1) p/(p + e^eps q)) - 1,
        H = Pr[B <= k] - e^eps Pr[B <= k-1] = Pr[B = k] (1 - y),  y = (1 - e^-eps) r R,
    r = e^eps Pr[B = k-1]/Pr[B = k] <= 1 and R = Pr[B <= k-1]/Pr[B = k-1] from c_binom_tail_ratio. The relative error of H is that
    of y times y/(1 - y): at most about a hundred ulp of log H, since 1/(1 - y) grows like the square of the distance from the mean
    in standard deviations. If 1 - y is below 1e-12, the positive terms are summed instead. Where two counts are tied, rounding may
    choose the other one, which changes H by less than this error.
    """
    cdef dd q = complement(p), swap = dd_make(p, 0)
    cdef double shrink = exp(-eps), k, r, y, value
    if reverse:
        swap, q = q, swap
    # Numerator and denominator of the threshold are multiplied by e^-eps, so that they stay finite. The smaller one of k and n - k
    # is computed: the rounding of the larger one may exceed 1.
    if swap.hi * shrink < q.hi:
        k = ceil((n + 1) * (swap.hi * shrink / (swap.hi * shrink + q.hi))) - 1
    else:
        k = n - floor((n + 1) * (q.hi / (swap.hi * shrink + q.hi)))
    k = fmin(fmax(k, 0), n)
    if k <= 0:
        value = n * (log1p(-p) if not reverse else log(p))
        error[0] = 4 * UNIT * fabs(value)
        return value
    r = exp(eps + log(k / (n - k + 1) * (q.hi / swap.hi)))
    if r > 1:
        r = 1
    y = -expm1(-eps) * r * c_binom_tail_ratio(n - k + 1, n, q.hi, q.lo, swap.hi, swap.lo)
    value = c_binom_logpmf(n - k, n, p) if reverse else c_binom_logpmf(k, n, p)
    error[0] = 3e-14 + 8 * UNIT * fabs(value)
    if y >= 1 - 1e-12:
        # 1 - y is dominated by rounding: sum the positive terms instead
        return value + log_shift_series(k, n, swap.hi, q.hi, eps, error)
    error[0] += (100 + eps) * UNIT / (1 - y)
    return value + log1p(-y)


cdef inline bint binom_domain(double k, double n, double p) noexcept nogil:
    return k == k and 0 <= n <= TWO_53 and n == floor(n) and 0 <= p <= 1


cdef double checked_binom_logpmf(double k, double n, double p) noexcept nogil:
    if not binom_domain(k, n, p):
        return NAN
    return c_binom_logpmf(k, n, p) if k == floor(k) else -INFINITY


cdef double checked_binom_logcdf(double k, double n, double p) noexcept nogil:
    return c_binom_logcdf(floor(k), n, p) if binom_domain(k, n, p) else NAN


cdef double checked_binom_logsf(double k, double n, double p) noexcept nogil:
    return c_binom_logsf(floor(k), n, p) if binom_domain(k, n, p) else NAN


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
    "Loader's deviances, in double-double where they are large: no term cancels another, at any n and p."))

cdef void block_logcdf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    tails_block(level, TAILS_BINOMIAL, x, value, count, 0, checked_binom_logcdf)


cdef void block_logsf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    tails_block(level, TAILS_BINOMIAL, x, value, count, 1, checked_binom_logsf)


binom_logcdf = ufunc_of_blocks(<void *> block_logcdf, document(
    "binom_logcdf(k, n, p)", "Log of the probability of at most k successes, X ~ Bin(n, p).",
    {"k": "Number of successes, any real number; its floor counts.", **BINOM_ARGUMENTS},
    "binom_logpmf, binom_logsf", "binom_logcdf(1, 10**15, 1e-12):.8f", "-993.09124522",
    "The smaller of the two tails is computed, by a uniform expansion near the mode, a continued fraction or "
    "a positive series elsewhere; the other is log(1 - e^small). Relatively accurate however small the probability."))

binom_logsf = ufunc_of_blocks(<void *> block_logsf, document(
    "binom_logsf(k, n, p)", "Log of the probability of more than k successes, X ~ Bin(n, p).",
    {"k": "Number of successes, any real number; its floor counts.", **BINOM_ARGUMENTS},
    "binom_logpmf, binom_logcdf", "binom_logsf(9000, 10**4, 0.5):.8f", "-3687.04201456",
    "As :func:`binom_logcdf`; the survival function is Pr[X > k], not Pr[X >= k]."))


cdef void each_shift(const double *x, double *out) noexcept nogil:
    out[0] = out[1] = NAN
    if 0 < x[1] < 1 and 0 <= x[0] <= TWO_53 and x[0] == floor(x[0]) and 0 <= x[2] < INFINITY and x[3] == x[3]:
        out[1] = 0
        out[0] = c_shift_log_delta(x[0], x[1], x[2], x[3] != 0, out + 1)


shift_log_delta = ufunc_of_pairs(
    <void *> each_shift,
    "shift_log_delta(n, p, eps, reverse) -> (value, error): log hockey stick of Bin(n, p) against its shift by one.")
