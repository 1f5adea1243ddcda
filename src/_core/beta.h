/* Negative binomial tails and incomplete beta functions in logarithms, one element at a time; blocks of elements: tails.h.
 * Method and errors: the header of _beta.pyx. */
#ifndef SHUFFLEBOUNDS_BETA_H
#define SHUFFLEBOUNDS_BETA_H

#include "gamma.h"

#define BETA_MOST 1e100

/* Returns log Gamma(z + e) - log Gamma(z) + e log(x) with a small error relative to e; 0 <= e <= 1, z > 0, x > 0.
 *
 * The logarithms of z and x cancel where z x is near 1, so that of their product is computed.
 * For z >= 16: Stirling's series, with the differences factored out. For smaller z: the result at z + n >= 16 minus the terms
 * log1p(e/(z + i)), i < n. */
static inline double lgamma_step_times(double e, double z, double x)
{
    double total = 0, r, r1, first, second, power, step;
    while (z < 16) {
        total -= log1p(e / z);
        z += 1;
    }
    r = 1 / z; r1 = 1 / (z + e);
    first = -e * r * r1; /* r1 - r */
    second = first * (r + r1); /* r1^2 - r^2 */
    power = r; step = first;
    total += e * (z * x > 1e-290 ? log(z * x) : log(z) + log(x)) + z * kernel_log1pmx(e * r) + (e - 0.5) * log1p(e * r) + step / 12;
    step = r1 * r1 * step + power * second;
    power *= r * r;
    total -= step / 360;
    step = r1 * r1 * step + power * second;
    power *= r * r;
    total += step / 1260;
    step = r1 * r1 * step + power * second;
    power *= r * r;
    total -= step / 1680;
    step = r1 * r1 * step + power * second;
    return total + step / 1188;
}

/* Returns log Gamma(z + e) - log Gamma(z). */
static inline double kernel_lgamma_step(double e, double z) { return lgamma_step_times(e, z, 1); }

/* Returns the deviances dev(a, N x) + dev(b, N y) of _binomial.pyx, N = a + b, and writes the low part to lo.
 *
 * d = a - N x and a, b > 0. */
static inline double beta_deviances(double a, double b, dd x, dd y, dd d, double *lo)
{
    dd n = dd_sum(a, b), first, second, m = dd_mul(n, x), w = dd_mul(n, y);
    double total = kernel_deviance(a, m.hi, d.hi) + kernel_deviance(b, w.hi, -d.hi);
    *lo = 0;
    if (total <= 32) return total;
    first.hi = kernel_deviance_dd(a, m.hi, m.lo, d.hi, d.lo, &first.lo);
    second.hi = kernel_deviance_dd(b, w.hi, w.lo, -d.hi, -d.lo, &second.lo);
    first = dd_add(first, second);
    *lo = first.lo;
    return first.hi;
}

/* Returns x^a y^b/(B(a, b) I_x(a, b)) by the continued fraction DLMF 8.17.22, two steps of it at a time.
 *
 * Valid for a + 1 > 0 and x < (a + 1)/(a + b + 2). */
static inline double beta_fraction(double a, double b, double x, double d)
{
    double f = a * (d + 1) / (a + 1), c, e = 0, n = 0, w = a, up, down;
    c = f;
    for (;;) {
        n += 1;
        w += 2; /* a + 2 n */
        up = (a + n - 1) / (w - 1) * ((a + b + n - 1) / (w - 1)) * n * (b - n) * x * x;
        down = n + n * (b - n) * x / (w - 1) + (a + n) / (w + 1) * (d + 1 + n * (2 - x));
        e = 1 / (down + up * e);
        c = down + up / c;
        f *= c * e;
        if (fabs(c * e - 1) <= 2e-16 || n > 1e5) return f;
    }
}

/* Returns log I_x(a, b) for a, b >= 1, y = 1 - x and d = a y - b x >= 0, so that I_x is below or about 1/2. */
static inline double beta_lower(double a, double b, dd x, dd y, dd d)
{
    double lo, dev = beta_deviances(a, b, x, y, d, &lo), size = a + b, variance = a * (b / size), s, leading, rest;
    if (variance > SERIES_VARIANCE && (dev > 3.125 ? 2 * dev : 6.25) < NEAR_SLOPE * variance) {
        s = sqrt(2 * dev);
        rest = uniform_15((a - b) / size, 1 / sqrt(variance), s, &leading);
        return -dev + (log(kernel_mills_ratio(s) + rest / leading) - LOG_SQRT_2PI - lo);
    }
    rest = a / beta_fraction(a, b, x.hi, d.hi);
    return -dev + (0.5 * log(b / size / (2 * M_PI * a) * rest * rest) - lo
        + (kernel_stirling_real(size) - kernel_stirling_real(a) - kernel_stirling_real(b)));
}

/* Returns a y - b x. */
static inline dd beta_balance(double a, double b, dd x, dd y) { return dd_add(dd_mul_d(y, a), dd_neg(dd_mul_d(x, b))); }

/* Writes log I_x(a, b) and log(1 - I_x(a, b)) for a, b >= 1. */
static inline void beta_both_large(double a, double b, dd x, dd y, double *lower, double *upper)
{
    dd d;
    if (x.hi < TINY_P) {
        d = beta_balance(a, b, dd_make(TINY_P, 0), dd_make(1, -TINY_P));
        *lower = beta_lower(a, b, dd_make(TINY_P, 0), dd_make(1, -TINY_P), d) + a * log(x.hi / TINY_P);
        *upper = kernel_log1mexp(*lower);
        return;
    }
    d = beta_balance(a, b, x, y);
    if (d.hi >= 0) {
        *lower = beta_lower(a, b, x, y, d);
        *upper = kernel_log1mexp(*lower);
    } else {
        *upper = beta_lower(b, a, y, x, dd_neg(d));
        *lower = kernel_log1mexp(*upper);
    }
}

/* Returns log(x^a/(a B(a, b))) for a < 1 or b < 1; where a < 1, the error is small relative to a. */
static inline double beta_power(double a, double b, double x)
{
    if (a < 1) return lgamma_step_times(a, b, x) - kernel_lgamma1p(a);
    return a * log(x) + (kernel_lgamma_step(b, a) - log(a) - kernel_lgamma1p(b) + log(b));
}

/* Writes log I_x(a, b) and log(1 - I_x(a, b)) for a < 1 or b < 1, and x <= 1/2; formulas: the header of _beta.pyx. */
static inline void beta_one_small(double a, double b, dd x, dd y, double *lower, double *upper)
{
    double u = beta_power(a, b, x.hi), term = 1, rest = 0, n = 0, part, t, above, q;
    int terms = b < 1 || b * x.hi < 1.5;
    if (terms) {
        /* sum_(n > 0) (1-b)_n x^n a/(n! (a+n)) */
        for (;;) {
            n += 1;
            term *= (n - b) / n * x.hi;
            part = term * (a / (a + n));
            rest += part;
            if (fabs(part) <= 1e-17 * fabs(rest) || term == 0) break;
        }
    }
    if (b < 1) *lower = u + log1p(rest);
    else {
        t = u + b * log1p(-x.hi);
        beta_both_large(a + 1, b, x, y, &part, &above);
        *lower = kernel_log_add_exp(t, part);
    }
    if (*lower < -0.69) *upper = kernel_log1mexp(*lower);
    else if (terms) {
        q = -expm1(u) - exp(u) * rest;
        *upper = log(q); *lower = log1p(-q);
    } else {
        /* q = x^a y^b/(B(b, a) Q), Q = 1 - I_x(a, b). Its fraction converges, because x is above (a + 1)/(a + b + 2) here. */
        q = beta_fraction(b, a, y.hi, dd_neg(beta_balance(a, b, x, y)).hi);
        *upper = u + b * log1p(-x.hi) + log(a / q);
        *lower = kernel_log1mexp(*upper);
    }
}

static inline void beta_tails(double a, double b, double x, double x_lo, double y, double y_lo, double *lower, double *upper)
{
    dd first = dd_make(x, x_lo), second = dd_make(y, y_lo);
    if (a >= 1 && b >= 1) beta_both_large(a, b, first, second, lower, upper);
    else if (x <= y) beta_one_small(a, b, first, second, lower, upper);
    else beta_one_small(b, a, second, first, upper, lower);
}

static inline double beta_log(double a, double b, double x, int want_upper)
{
    double lower = 0, upper = -INFINITY;
    dd y = dd_sum(1, -x);
    if (x == 0) {
        lower = -INFINITY; upper = 0;
    } else if (x < 1) {
        beta_tails(a, b, x, 0, y.hi, y.lo, &lower, &upper);
    }
    return want_upper ? upper : lower;
}

static inline double kernel_log_betainc(double a, double b, double x) { return beta_log(a, b, x, 0); }

static inline double kernel_log_betaincc(double a, double b, double x) { return beta_log(a, b, x, 1); }

static inline double kernel_nbinom_logpmf(double k, double r, double p)
{
    double lo, dev, size = r + k;
    dd q = dd_sum(1, -p), x = dd_make(p, 0);
    if (k < 0 || p == 0) return -INFINITY;
    if (p == 1) return k == 0 ? 0 : -INFINITY;
    if (k == 0) return r * (p < 0.5 ? log(p) : log1p(-q.hi));
    if (r < 1 || p < TINY_P) {
        /* dev is log(Gamma(k + r)/(k! Gamma(r))), which does not depend on p: for r >= 1 it is computed at p = TINY_P. */
        if (r < 1) dev = log(r) - kernel_lgamma1p(r) + kernel_lgamma_step(r, k) - log(k);
        else dev = kernel_nbinom_logpmf(k, r, TINY_P) - r * log(TINY_P);
        return dev + r * (p < 0.5 ? log(p) : log1p(-q.hi)) + (r < 1 ? k * log1p(-p) : 0);
    }
    dev = beta_deviances(r, k, x, q, beta_balance(r, k, x, q), &lo);
    return -dev + (0.5 * log(r / size / (2 * M_PI * k)) - lo + (kernel_stirling_real(size) - kernel_stirling_real(r)
        - kernel_stirling_error(k)));
}

static inline double kernel_nbinom_logsf(double k, double r, double p);

static inline double kernel_nbinom_logcdf(double k, double r, double p)
{
    double above;
    if (k < TWO_53) return k < 0 ? -INFINITY : kernel_log_betainc(r, k + 1, p);
    above = kernel_nbinom_logsf(k, r, p);
    return above < -0.69 ? kernel_log1mexp(above) : kernel_log_add_exp(kernel_log_betainc(r, k, p), kernel_nbinom_logpmf(k, r, p));
}

static inline double kernel_nbinom_logsf(double k, double r, double p)
{
    double pmf, value, q = dd_sum(1, -p).hi, total = 0, term = (1 + (r - 1) / k) * q, n = 0;
    if (k < TWO_53) return k < 0 ? 0 : kernel_log_betaincc(r, k + 1, p);
    /* k + 1 is not representable. The tail is Pr[F = k] times a sum of ratios of probabilities, or Pr[F > k - 1] - Pr[F = k]
     * where this sum is long. */
    pmf = kernel_nbinom_logpmf(k, r, p);
    if (term < 0.99) {
        while (term > 1e-17 * total) {
            total += term;
            n += 1;
            term *= (1 + (r - 1) / (k + n)) * q;
        }
        return pmf + log(total);
    }
    value = kernel_log_betaincc(r, k, p);
    return value + log1p(-exp(pmf - value));
}

static inline int beta_domain(double a, double b, double x)
{
    return (0 < a && a <= BETA_MOST) && (0 < b && b <= BETA_MOST) && (0 <= x && x <= 1);
}

/* Return the limit where a or b is 0 or infinite, as in scipy.special; NaN outside the domain. */
static inline double beta_limit(double a, double b, double x, int want_upper)
{
    int at_zero = (a == 0 && b > 0) || (b == INFINITY && (0 <= a && a < INFINITY));
    int at_one = (b == 0 && a > 0) || (a == INFINITY && (0 <= b && b < INFINITY));
    if (!(0 <= x && x <= 1) || !(at_zero || at_one)) return NAN;
    /* the limit of the beta distribution has its whole mass at 0 (at_zero) or at 1 */
    return (at_zero ? x > 0 : x == 1) != want_upper ? 0 : -INFINITY;
}

static inline double kernel_checked_log_betainc(double a, double b, double x)
{
    return beta_domain(a, b, x) ? kernel_log_betainc(a, b, x) : beta_limit(a, b, x, 0);
}

static inline double kernel_checked_log_betaincc(double a, double b, double x)
{
    return beta_domain(a, b, x) ? kernel_log_betaincc(a, b, x) : beta_limit(a, b, x, 1);
}

static inline int nbinom_domain(double k, double r, double p)
{
    /* k above TWO_53 is refused, except infinity, where the functions return their limits */
    return (k <= TWO_53 || k == INFINITY) && (0 < r && r <= BETA_MOST) && (0 <= p && p <= 1);
}

static inline double kernel_checked_nbinom_logpmf(double k, double r, double p)
{
    if (!nbinom_domain(k, r, p)) return NAN;
    if (k == INFINITY) return -INFINITY;
    return k == floor(k) ? kernel_nbinom_logpmf(k, r, p) : -INFINITY;
}

static inline double kernel_checked_nbinom_logcdf(double k, double r, double p)
{
    if (!nbinom_domain(k, r, p)) return NAN;
    if (k == INFINITY) return p > 0 ? 0 : -INFINITY;
    return kernel_nbinom_logcdf(floor(k), r, p);
}

static inline double kernel_checked_nbinom_logsf(double k, double r, double p)
{
    if (!nbinom_domain(k, r, p)) return NAN;
    if (k == INFINITY) return p > 0 ? -INFINITY : 0;
    return kernel_nbinom_logsf(floor(k), r, p);
}

#endif
