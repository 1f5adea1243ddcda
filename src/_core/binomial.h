/* Logarithms of binomial probabilities and tails, one element at a time; blocks of elements: tails.h.
 * Method and errors: the header of _binomial.pyx. */
#ifndef SHUFFLEBOUNDS_BINOMIAL_H
#define SHUFFLEBOUNDS_BINOMIAL_H

#include "special.h"

/* Returns 1 - p as a double-double, which is exact for p in [0, 1]. */
static inline dd binom_complement(double p) { return dd_sum(1, -p); }

/* Returns (n + extra)(p + p_lo), where extra is 0 or 1. */
static inline dd binom_times(double n, double extra, double p, double p_lo)
{
    dd m = dd_prod(n, p);
    m.lo += n * p_lo;
    return extra ? dd_add(m, dd_make(extra * p, extra * p_lo)) : m;
}

/* Returns a - N p = N q - b, formed from the smaller of p and q = 1 - p; N = n + extra = a + b.
 *
 * An index selects the smaller one, because the processor could not predict a branch. */
static inline dd binom_distance(double a, double b, double n, double extra, double p, double p_lo, double q, double q_lo)
{
    double high[2];
    double low[2];
    double count[2];
    int i = p > q;
    double sign = 1 - 2 * i;
    dd d;
    high[0] = p; high[1] = q;
    low[0] = p_lo; low[1] = q_lo;
    count[0] = a; count[1] = b;
    d = dd_add(dd_make(count[i], 0), dd_neg(binom_times(n, extra, high[i], low[i])));
    return dd_make(sign * d.hi, sign * d.lo);
}

/* Returns the deviances dev(a, N p) + dev(b, N q), and writes their low part to lo.
 *
 * d = a - N p, N = n + extra = a + b, and a, b > 0. */
static inline double binom_deviance(double a, double b, double n, double extra, double p, double p_lo, double q, double q_lo, dd d,
    double *lo)
{
    dd m, first, second;
    double total = kernel_deviance(a, (n + extra) * p, d.hi) + kernel_deviance(b, (n + extra) * q, -d.hi);
    *lo = 0;
    if (total <= 32) return total;
    m = binom_times(n, extra, p, p_lo);
    first.hi = kernel_deviance_dd(a, m.hi, m.lo, d.hi, d.lo, &first.lo);
    m = binom_times(n, extra, q, q_lo);
    second.hi = kernel_deviance_dd(b, m.hi, m.lo, -d.hi, -d.lo, &second.lo);
    first = dd_add(first, second);
    *lo = first.lo;
    return first.hi;
}

/* Returns B(s) and writes `leading`, for the uniform expansion in the header of _binomial.pyx:
 * int_s^inf e^(-(t^2-s^2)/2) (dy/dt)(t) dt = (leading M(s) + B(s))/sigma, with M Mills' ratio.
 *
 * dy/dt = sum_m e_m(gamma) (t/sigma)^m/sigma. Pr[X >= j] is the integral over t < 0, hence gamma = 2 j/N - 1. Integration by parts
 * expresses the integral of t^m by that of t^(m-2). The singularity of dy/dt nearest to 0 is at 2 sqrt(pi) sigma, so the term of
 * order m is about r^m, r = max(s, 2.5)/(2 sqrt(pi) sigma). Near the mode 2.5 replaces s, because the moments (m/e)^(1/2) of t
 * dominate there. Order 9 is used for r < 0.0138, order 15 for r < 0.077: then r^(order + 1) < 2e-17 relative to M ~ 1/s. */
static inline double binom_uniform(double s, double sigma, double gamma, int low_order, double *leading)
{
    if (low_order) return uniform_9(gamma, 1 / sigma, s, leading);
    return uniform_15(gamma, 1 / sigma, s, leading);
}

/* Returns c with Pr[X >= a] = Pr[X = a] (1-x) c, X ~ Bin(a + b - 1, x), by DLMF 8.17.22, two steps of it at a time.
 *
 * y = 1 - x and d = a - (a + b) x >= 0. c = 1/(t_0 + u_1/(t_1 + u_2/(t_2 + ...))) with, for m = 0, 1, ...,
 * even_m = m (b-m) x/((a+2m-1)(a+2m)), odd_m = (a+m)(a+b+m) x/((a+2m)(a+2m+1)), u_m = odd_(m-1) even_m and
 * t_m = 1 + even_m - odd_m = even_m + ((a+m)(1 + d + (2+y) m) + m (m+1))/((a+2m)(a+2m+1)), where the last form has positive terms
 * only. The convergents p/q are alternately above and below 1/c. */
static inline double binom_fraction(double a, double b, double x, double y, double d)
{
    double odd = (a + b) * x / (a + 1), even, t, u, m = 0, r, w = a, slope = 2 + y;
    double p0 = 1, q0 = 0, p1 = (1 + d) / (a + 1), q1 = 1, p2, q2;
    d += 1;
    for (;;) {
        m += 1;
        w += 2;
        r = 1 / ((w - 1) * w * (w + 1));
        even = m * (b - m) * x * (w + 1) * r;
        u = odd * even;
        r *= w - 1;
        odd = (a + m) * (a + b + m) * x * r;
        t = even + ((a + m) * (d + slope * m) + m * (m + 1)) * r;
        p2 = t * p1 + u * p0;
        q2 = t * q1 + u * q0;
        /* the exact value is between two consecutive convergents */
        if (fabs(p2 * q1 - p1 * q2) <= 1e-16 * p2 * q1) return q2 / p2;
        p0 = p1; q0 = q1; p1 = p2; q1 = q2;
        if (p1 < 1e-150) {
            p0 *= 1e150;
            q0 *= 1e150;
            p1 *= 1e150;
            q1 *= 1e150;
        }
    }
}

/* Returns Pr[X >= j]/Pr[X = j] by its series of positive terms, with one division for four terms; odds = p/q. */
static inline double binom_series(double j, double n, double odds)
{
    double total = 1, term = 1, top = n - j, bottom = j + 1, inverse;
    double a12, a3, a34, b34, c4;
    for (;;) {
        a12 = top * odds * ((top - 1) * odds);
        a3 = (top - 2) * odds;
        a34 = a3 * ((top - 3) * odds);
        b34 = (bottom + 2) * (bottom + 3);
        inverse = 1 / (bottom * (bottom + 1) * b34);
        c4 = a12 * a34 * inverse;
        total += term * ((top * odds * ((bottom + 1) * b34) + a12 * b34 + a12 * (a3 * (bottom + 3))) * inverse + c4);
        term *= c4;
        if (term <= 1e-18 * total) return total;
        top -= 4;
        bottom += 4;
    }
}

/* Returns Pr[X >= j]/Pr[X = j] for j far from the mode or a small variance.
 *
 * The computation takes at most about 85 terms of the series, or a dozen steps of the continued fraction. */
static inline double binom_ratio(double j, double b, double n, double p, double q, double variance, double d)
{
    if (variance < SERIES_VARIANCE) return binom_series(j, n, p / q);
    return q * binom_fraction(j, b, p, q, d);
}

/* Returns max(s, 2.5)^2 with s^2 = 2 deviance, which the callers compare with a multiple of sigma^2 to choose a method. */
static inline double binom_spread(double deviance) { return deviance > 3.125 ? 2 * deviance : 6.25; }

/* Returns log Pr[X >= j], or log Pr[X < j] if `other`; 1 <= j <= n, 0 < p < 1, d = j - (n + 1) p >= 0. */
static inline double binom_upper_tail(double j, double n, double p, double p_lo, double q, double q_lo, dd d, int other)
{
    double b = n - j + 1, size = n + 1, lo, leading, value, s, square;
    double dev = binom_deviance(j, b, n, 1, p, p_lo, q, q_lo, d, &lo);
    double variance = j * (b / size);
    square = binom_spread(dev);
    if (square < NEAR_SLOPE * variance) {
        s = sqrt(2 * dev);
        value = binom_uniform(s, sqrt(variance), (j - b) / size, square < LOW_ORDER_SLOPE * variance, &leading);
        value = kernel_mills_ratio(s) + value / leading;
        if (other) return log1p(-exp(-dev) * (value * INV_SQRT_2PI));
        return -dev + (log(value) - LOG_SQRT_2PI - lo);
    }
    value = binom_ratio(j, b, n, p, q, variance, d.hi) / q;
    value = -dev + (0.5 * log(b / size / (2 * M_PI * j) * value * value) - lo
        + (kernel_stirling_error(size) - kernel_stirling_error(j) - kernel_stirling_error(b)));
    return other ? kernel_log1mexp(value) : value;
}

/* Returns Pr[X >= j]/Pr[X = j], a sum of positive terms, with a relative error below 1e-14 (measured 9.4e-16, 7e3 trials). */
static inline double kernel_binom_tail_ratio(double j, double n, double p, double p_lo, double q, double q_lo)
{
    double b = n - j + 1, size = n + 1, lo, leading, value, s, dev, square;
    double variance = j * (b / size);
    dd d = binom_distance(j, b, n, 1, p, p_lo, q, q_lo);
    /* for p < TINY_P the deviances are not formed, because j/(n p) may overflow; the expansion would not apply so far from the
     * mode */
    if (variance >= SERIES_VARIANCE && p >= TINY_P) {
        dev = binom_deviance(j, b, n, 1, p, p_lo, q, q_lo, d, &lo);
        square = binom_spread(dev);
        if (square < NEAR_SLOPE * variance) {
            s = sqrt(2 * dev);
            value = binom_uniform(s, sqrt(variance), (j - b) / size, square < LOW_ORDER_SLOPE * variance, &leading);
            return j * q * (leading * kernel_mills_ratio(s) + value) / sqrt(variance);
        }
    }
    return binom_ratio(j, b, n, p, q, variance, d.hi);
}

static inline double kernel_binom_logpmf(double k, double n, double p)
{
    dd q, d;
    double dev, lo;
    if (k < 0 || k > n) return -INFINITY;
    if (p == 0 || p == 1) return k == (p ? n : 0) ? 0 : -INFINITY;
    if (k == 0) return n ? n * log1p(-p) : 0;
    if (k == n) return n * log(p);
    if (p < TINY_P) return kernel_binom_logpmf(k, n, TINY_P) + k * log(p / TINY_P);
    q = binom_complement(p);
    d = binom_distance(k, n - k, n, 0, p, 0, q.hi, q.lo);
    dev = binom_deviance(k, n - k, n, 0, p, 0, q.hi, q.lo, d, &lo);
    return -dev + (0.5 * log(n / (n - k) / (2 * M_PI * k)) - lo + (kernel_stirling_error(n) - kernel_stirling_error(k)
        - kernel_stirling_error(n - k)));
}

/* Returns log Pr[X >= j] (upper) or log Pr[X < j]; 1 <= j <= n, 0 < p < 1. */
static inline double binom_tail(double j, double n, double p, int upper)
{
    dd q = binom_complement(p), d;
    double small, b = n - j + 1;
    if (p < TINY_P) {
        d = binom_distance(j, b, n, 1, TINY_P, 0, 1, -TINY_P);
        small = binom_upper_tail(j, n, TINY_P, 0, 1, -TINY_P, d, 0) + j * log(p / TINY_P);
        return upper ? small : kernel_log1mexp(small);
    }
    d = binom_distance(j, b, n, 1, p, 0, q.hi, q.lo);
    /* compute the smaller tail; p and q are exchanged by an index instead of a branch */
    int i = d.hi < 0;
    double high[2];
    double low[2];
    double count[2];
    double sign = 1 - 2 * i;
    high[0] = p; high[1] = q.hi;
    low[0] = 0; low[1] = q.lo;
    count[0] = j; count[1] = b;
    return binom_upper_tail(count[i], n, high[i], low[i], high[1 - i], low[1 - i], dd_make(sign * d.hi, sign * d.lo), upper == i);
}

static inline double kernel_binom_logcdf(double k, double n, double p)
{
    if (k < 0) return -INFINITY;
    if (k >= n || p == 0) return 0;
    if (p == 1) return -INFINITY;
    return binom_tail(k + 1, n, p, 0);
}

static inline double kernel_binom_logsf(double k, double n, double p)
{
    if (k < 0) return 0;
    if (k >= n || p == 0) return -INFINITY;
    if (p == 1) return 0;
    return binom_tail(k + 1, n, p, 1);
}

/* Returns log sum_i (t_i - e^eps t_(i+1)), t_i = Pr[B = k-i]/Pr[B = k], by at most about 40/eps terms; adds its error to
 * error[0].
 *
 * t_i - e^eps t_(i+1) = t_i (p + e^eps q)(phi + i)/((n-k+1+i) p), phi = (n+1) p/(p + e^eps q) - k in [0, 1]. Only phi is formed as
 * a difference; its rounding error is the error of the sum. */
static inline double binom_shift_series(double k, double n, double p, double q, double eps, double *error)
{
    double scale = p * exp(-eps) + q, phi;
    double total = 0, plain = 0, t = 1, i = 0, part;
    /* phi is computed from the smaller of p and 1 - p, as k in c_shift_log_delta */
    phi = p * exp(-eps) < q ? (n + 1) * (p * exp(-eps) / scale) - k : n - k + 1 - (n + 1) * (q / scale);
    phi = fmin(1, fmax(0, phi));
    for (;;) {
        part = t / (n - k + 1 + i);
        plain += part;
        total += part * (phi + i);
        if (i == k || (i > 1 && part * (phi + i) <= 1e-18 * total)) break;
        t = part * (k - i) * (q / p);
        i += 1;
    }
    *error += 10 * UNIT * (k + 1) * plain / total;
    return eps + log(scale) - log(p) + log(total);
}

/* Returns log H(B || B+1), H the hockey-stick divergence at e^eps, B ~ Bin(n, p); if `reverse`, log H(B+1 || B), which is
 * log H(B || B+1) for 1 - p instead of p.
 *
 * With k the last count where Pr[B = k] > e^eps Pr[B = k - 1], k = ceil((n+1) p/(p + e^eps q)) - 1,
 *     H = Pr[B <= k] - e^eps Pr[B <= k-1] = Pr[B = k] (1 - y),  y = (1 - e^-eps) r R,
 * r = e^eps Pr[B = k-1]/Pr[B = k] <= 1 and R = Pr[B <= k-1]/Pr[B = k-1] from c_binom_tail_ratio. The relative error of H is that
 * of y times y/(1 - y): at most about a hundred ulp of log H, since 1/(1 - y) grows like the square of the distance from the mean
 * in standard deviations. If 1 - y is below 1e-12, the positive terms are summed instead. */
static inline double kernel_shift_log_delta(double n, double p, double eps, int reverse, double *error)
{
    dd q = binom_complement(p), swap = dd_make(p, 0);
    double shrink = exp(-eps), place, margin, k, r, y, value;
    if (reverse) {
        swap = q;
        q = dd_make(p, 0);
    }
    /* Numerator and denominator of the threshold are multiplied by e^-eps, so that they stay finite. The smaller one of k and n
     * - k is computed: the rounding of the larger one may exceed 1. The threshold has a relative error below 16 UNIT, by which it
     * is raised: the error bounds below include a k that is too large by 1, but not one that is too small. If k and n - k are above
     * 1e11, neighbours of k give nearly the same value, and a k that is too large by several would have a larger error. */
    place = (n + 1) * (fmin(swap.hi * shrink, q.hi) / (swap.hi * shrink + q.hi));
    margin = fmin(16 * UNIT * place, 1e-3);
    k = swap.hi * shrink < q.hi ? ceil(place + margin) - 1 : n - floor(place - margin);
    k = fmin(fmax(k, 0), n);
    if (k <= 0) {
        value = n * (!reverse ? log1p(-p) : log(p));
        *error = 4 * UNIT * fabs(value);
        return value;
    }
    r = exp(eps + log(k / (n - k + 1) * (q.hi / swap.hi)));
    if (r > 1) r = 1;
    y = -expm1(-eps) * r * kernel_binom_tail_ratio(n - k + 1, n, q.hi, q.lo, swap.hi, swap.lo);
    value = reverse ? kernel_binom_logpmf(n - k, n, p) : kernel_binom_logpmf(k, n, p);
    *error = 3e-14 + 8 * UNIT * fabs(value);
    if (y >= 1 - 1e-12) {
        /* 1 - y is dominated by rounding: sum the positive terms instead */
        return value + binom_shift_series(k, n, swap.hi, q.hi, eps, error);
    }
    *error += (100 + eps) * UNIT / (1 - y);
    return value + log1p(-y);
}

static inline int binom_domain(double k, double n, double p)
{
    return k == k && (0 <= n && n <= TWO_53) && n == floor(n) && (0 <= p && p <= 1);
}

static inline double kernel_checked_binom_logpmf(double k, double n, double p)
{
    if (!binom_domain(k, n, p)) return NAN;
    return k == floor(k) ? kernel_binom_logpmf(k, n, p) : -INFINITY;
}

static inline double kernel_checked_binom_logcdf(double k, double n, double p)
{
    return binom_domain(k, n, p) ? kernel_binom_logcdf(floor(k), n, p) : NAN;
}

static inline double kernel_checked_binom_logsf(double k, double n, double p)
{
    return binom_domain(k, n, p) ? kernel_binom_logsf(floor(k), n, p) : NAN;
}

#endif
