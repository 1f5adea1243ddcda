/* Poisson tails and incomplete gamma functions in logarithms, one element at a time; blocks of elements: tails.h.
 * Method and errors: the header of _gamma.pyx. */
#ifndef SHUFFLEBOUNDS_GAMMA_H
#define SHUFFLEBOUNDS_GAMMA_H

#include "special.h"

#define GAMMA_MOST 1e270                        /* largest argument: its square and double-doubles are finite */
#define GAMMA_STEEP 0x1p-900                    /* x/a below which a/x is not formed */

/* Returns log Gamma(1 + a) for 0 <= a <= 1; the error is relative to a on [0, 1/2], and absolute above. */
static inline double kernel_lgamma1p(double a)
{
    double total = 0;
    int k;
    if (a > 0.5) return log_gamma(1 + a);
    for (k = LGAMMA_TERMS - 1; k > -1; k--) total = total * a + LGAMMA[k];
    return total * a - log1p(a);
}

/* Returns Stirling's error log Gamma(a+1) - log(sqrt(2 pi a) (a/e)^a) for real a >= 1, with an absolute error of 2e-14. */
static inline double kernel_stirling_real(double a)
{
    if (a >= 16 || a == floor(a)) return kernel_stirling_error(a);
    return log_gamma(a + 1) - (a + 0.5) * log(a) + a - LOG_SQRT_2PI;
}

/* Returns the deviance a log(a/x) - a + x, and writes its low part to lo; a, x > 0. */
static inline double gamma_deviance(double a, double x, double *lo)
{
    dd d = dd_sum(a, -x);
    double dev;
    *lo = 0;
    if (x < GAMMA_STEEP * a) return a * (log(a) - log(x)) - d.hi;
    dev = kernel_deviance(a, x, d.hi);
    return dev <= 32 ? dev : kernel_deviance_dd(a, x, 0, d.hi, d.lo, lo);
}

/* Returns log(x^a e^-x / Gamma(a + 1)) for x > 0. */
static inline double gamma_density(double a, double x)
{
    double lo, dev;
    if (a < 1) return a * log(x) - x - kernel_lgamma1p(a);
    dev = gamma_deviance(a, x, &lo);
    return -dev - (0.5 * log(2 * M_PI * a) + kernel_stirling_real(a) + lo);
}

/* Returns sum_n x^n/((a+1)...(a+n)) for x <= a or x < 3/2. */
static inline double gamma_series(double a, double x)
{
    double total = 1, term = 1, n = a;
    while (term > 1e-17 * total) {
        n += 1;
        term *= x / n;
        total += term;
    }
    return total;
}

/* Returns Q(a, x) Gamma(a) e^x x^-a for x > a or x >= 3/2, by Lentz's method; no partial denominator vanishes there. */
static inline double gamma_fraction(double a, double x)
{
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d, step, n = 0, an;
    for (;;) {
        n += 1;
        an = -n * (n - a);
        b += 2;
        d = 1 / (an * d + b);
        c = b + an / c;
        step = c * d;
        h *= step;
        if (fabs(step - 1) <= 2e-16 || n > 1e5) return h;
    }
}

static inline double gamma_near(double dev, double lo, double a, double gamma)
{
    double s = sqrt(2 * dev), leading, rest = uniform_15(gamma, 1 / sqrt(a), s, &leading);
    return -dev + (log(kernel_mills_ratio(s) + rest / leading) - LOG_SQRT_2PI - lo);
}

/* Writes log P(a, x) and log Q(a, x) for 0 < a, x < MOST. */
static inline void gamma_tails(double a, double x, double *lower, double *upper)
{
    double u, value, dev, lo, term, n;
    if (a < 1 && x < 1.5) {
        u = a * log(x) - kernel_lgamma1p(a);
        value = u - x + log(gamma_series(a, x));
        if (value < -0.69) {
            *lower = value; *upper = kernel_log1mexp(value);
            return;
        }
        /* sum_n (-1)^(n+1) x^n/((a + n) n!) */
        value = 0; term = 1; n = 0;
        while (fabs(term) > 1e-18) {
            n += 1;
            term *= -x / n;
            value -= term / (a + n);
        }
        value = -expm1(u) + exp(u) * a * value;
        *lower = log1p(-value); *upper = log(value);
        return;
    }
    if (a > 84) {
        dev = gamma_deviance(a, x, &lo);
        if ((dev > 3.125 ? 2 * dev : 6.25) < NEAR_SLOPE * a) {
            if (x <= a) {
                *lower = gamma_near(dev, lo, a, -1);
                *upper = kernel_log1mexp(*lower);
            } else {
                *upper = gamma_near(dev, lo, a, 1);
                *lower = kernel_log1mexp(*upper);
            }
            return;
        }
    }
    value = gamma_density(a, x);
    if (x <= a) {
        *lower = value + log(gamma_series(a, x));
        *upper = kernel_log1mexp(*lower);
    } else {
        *upper = value + log(a * gamma_fraction(a, x));
        *lower = kernel_log1mexp(*upper);
    }
}

static inline double kernel_log_gammainc(double a, double x)
{
    double lower, upper;
    if (x == 0 || a == 0) return x > 0 ? 0 : -INFINITY;
    gamma_tails(a, x, &lower, &upper);
    return lower;
}

static inline double kernel_log_gammaincc(double a, double x)
{
    double lower, upper;
    if (x == 0 || a == 0) return x > 0 ? -INFINITY : 0;
    gamma_tails(a, x, &lower, &upper);
    return upper;
}

static inline double kernel_poisson_logpmf(double k, double mu)
{
    double lo, dev;
    if (k < 0 || mu == 0) return k == 0 ? 0 : -INFINITY;
    if (k == 0) return -mu;
    dev = gamma_deviance(k, mu, &lo);
    return -dev - (0.5 * log(2 * M_PI * k) + kernel_stirling_error(k) + lo);
}

static inline double kernel_poisson_logsf(double k, double mu);

static inline double kernel_poisson_logcdf(double k, double mu)
{
    double above;
    if (k < TWO_53) return k < 0 ? -INFINITY : kernel_log_gammaincc(k + 1, mu);
    above = kernel_poisson_logsf(k, mu);
    return above < -0.69 ? kernel_log1mexp(above) : kernel_log_add_exp(kernel_log_gammaincc(k, mu), kernel_poisson_logpmf(k, mu));
}

static inline double kernel_poisson_logsf(double k, double mu)
{
    double pmf, value;
    if (k < TWO_53) return k < 0 ? 0 : kernel_log_gammainc(k + 1, mu);
    /* k + 1 is not representable. The tail is Pr[N = k] times a series in mu/k or, for a long series, Pr[N > k - 1] - Pr[N = k]. */
    pmf = kernel_poisson_logpmf(k, mu);
    /* mu/k may underflow if mu < 1 */
    if (mu < 0.99 * k) return pmf + (mu < 1 ? log(mu) - log(k) : log(mu / k)) + log(gamma_series(k, mu));
    value = kernel_log_gammainc(k, mu);
    return value + log1p(-exp(pmf - value));
}

static inline int gamma_domain(double a, double x) { return (0 <= a && a <= GAMMA_MOST) && (0 <= x && x <= GAMMA_MOST); }

/* Return the limit where one argument is infinite, as in scipy.special; NaN outside the domain. */
static inline double gamma_limit(double a, double x, int want_upper)
{
    if (x == INFINITY && (0 <= a && a < INFINITY)) return want_upper ? -INFINITY : 0;
    if (a == INFINITY && (0 <= x && x < INFINITY)) return want_upper ? 0 : -INFINITY;
    return NAN;
}

static inline double kernel_checked_log_gammainc(double a, double x)
{
    return gamma_domain(a, x) ? kernel_log_gammainc(a, x) : gamma_limit(a, x, 0);
}

static inline double kernel_checked_log_gammaincc(double a, double x)
{
    return gamma_domain(a, x) ? kernel_log_gammaincc(a, x) : gamma_limit(a, x, 1);
}

static inline int poisson_domain(double k, double mu)
{
    /* k above TWO_53 is refused, except infinity, where the functions return their limits */
    return (k <= TWO_53 || k == INFINITY) && (0 <= mu && mu <= GAMMA_MOST);
}

static inline double kernel_checked_poisson_logpmf(double k, double mu)
{
    if (!poisson_domain(k, mu)) return NAN;
    if (k == INFINITY) return -INFINITY;
    return k == floor(k) ? kernel_poisson_logpmf(k, mu) : -INFINITY;
}

static inline double kernel_checked_poisson_logcdf(double k, double mu)
{
    if (!poisson_domain(k, mu)) return NAN;
    return k < INFINITY ? kernel_poisson_logcdf(floor(k), mu) : 0;
}

static inline double kernel_checked_poisson_logsf(double k, double mu)
{
    if (!poisson_domain(k, mu)) return NAN;
    return k < INFINITY ? kernel_poisson_logsf(floor(k), mu) : -INFINITY;
}

#endif
