/* Log delta and eps of Gaussian noise.
 * Method and errors: the header of _gaussian.pyx. */
#ifndef SHUFFLEBOUNDS_GAUSSIAN_H
#define SHUFFLEBOUNDS_GAUSSIAN_H

#include "crossing.h"
#include "special.h"

#define GAUSSIAN_DEEP 140                       /* steps of the continued fraction for c < 8: fewer lose digits at c = 1.5 */
#define GAUSSIAN_SHALLOW 72                     /* steps for c >= 8 */
#define GAUSSIAN_HALF_LOG_2PI 0.91893853320467274
#define GAUSSIAN_SQUARABLE 1e140                /* largest eps that is squared; its delta is an upper bound for larger eps */

typedef struct {
    double sigma;
    double sensitivity;
} GaussianNoise;

/* Returns x = eps s/d - d/(2 s) as a double-double, for s = sigma and d = sensitivity. The head is the double nearest to x, because
 * only the head is passed to Mills' ratio. */
static inline double gaussian_threshold(double s, double d, double eps, double *x_low)
{
    dd square = dd_prod(s, s), p = dd_prod(2 * eps, square.hi), r = dd_prod(d, d), g = dd_prod(2 * s, d), t;
    double p_low = p.lo + 2 * eps * square.lo, top = p.hi - r.hi, part = top - p.hi, top_low, x, low, head;
    top_low = p.hi - (top - part) + (-r.hi - part) + (p_low - r.lo);
    x = top / g.hi;
    t = dd_prod(x, g.hi);
    low = (top - t.hi - t.lo + top_low - x * g.lo) / g.hi;
    head = x + low;
    *x_low = low - (head - x);
    return head;
}

/* Returns log(M(c - h) - M(c + h)) for c >= 1.5 and h <= max(1, c/2). */
static inline double gaussian_log_difference(double c, double h)
{
    int depth = c < 8 ? GAUSSIAN_DEEP : GAUSSIAN_SHALLOW, n;
    double r = 0.5 * (sqrt(c * c + 4.0 * (depth + 2)) - c), total = 1, after;
    for (n = depth; n > -1; n--) {
        after = r;
        r = (n + 1) / (c + r);
        if (n & 1 && n < 64) {
            /* The next term of the series has the factor I_(n+2) h^2/((n+1)(n+2) I_n). Each ratio r is multiplied by h first,
             * because r alone may be as small as 1e-140. */
            total = 1 + h * r * (h * after) / ((n + 1.0) * (n + 2.0)) * total;
        }
    }
    return log(2 * h) + log(r) + log(kernel_mills_ratio(c)) + log(total);
}

/* Returns (M(c - h) - M(c + h))/(2 h) for 0 <= c < 1.5 and h < 0.1. */
static inline double gaussian_small_difference(double c, double h)
{
    double before = kernel_mills_ratio(c), here, total, factor = 1, after;
    int n;
    here = 1 - c * before;
    total = here;
    for (n = 1; n < 13; n++) {
        after = n * before - c * here;
        before = here;
        here = after;
        factor *= h / (n + 1);
        if (n % 2 == 0) total += factor * here;
    }
    return total;
}

static inline void kernel_gaussian_log_delta(double sigma, double sensitivity, double eps, double *value, double *error)
{
    int power = 0;
    /* scaled to 1 <= d < 2 */
    double d = 2 * frexp(sensitivity, &power), s = ldexp(sigma, 1 - power), x, x_low, h, c, log_density, first, second, scale;
    dd square;
    eps = fmin(eps, GAUSSIAN_SQUARABLE);
    x = gaussian_threshold(s, d, eps, &x_low);
    h = d / (2 * s); c = eps * s / d;
    square = dd_prod(x, x);
    log_density = -0.5 * (square.hi + (square.lo + 2 * x * x_low)) - GAUSSIAN_HALF_LOG_2PI;
    if (c >= 1.5 && (h <= 1 || h <= 0.5 * c)) {
        *value = log_density + gaussian_log_difference(c, h);
        *error = 96 * UNIT;
    } else if (c < 1.5 && h < 0.1) {
        *value = log_density + log(2 * h * gaussian_small_difference(c, h));
        *error = 192 * UNIT;
    } else {
        second = kernel_mills_ratio(c + h);
        if (x < 0) {
            /* Mills' ratio of x < 0 may overflow, so the first term, Phi(-x), is formed as 1 - Phi(x) with Phi(x) < 1/2 */
            scale = exp(log_density);
            first = 1 - exp(-0.5 * x * x - GAUSSIAN_HALF_LOG_2PI) * kernel_mills_ratio(-x); second = scale * second;
            *value = log(first - second);
            /* the exponential of the log density adds a rounding error */
            *error = 2 * UNIT * ((12 * first + (12 + 2 * fabs(log_density)) * second) / (first - second) + 9 + fabs(*value));
            return;
        }
        first = kernel_mills_ratio(x);
        *value = log_density + log(first - second);
        *error = 2 * UNIT * (12 * (first + second) / (first - second) + 8);
    }
    *error += 2 * UNIT * (fabs(*value) + 1.25 * fabs(log_density));
}

static inline double gaussian_side(double eps, int upper, const void *law)
{
    const GaussianNoise *noise = (const GaussianNoise *)law;
    double value, error;
    kernel_gaussian_log_delta(noise->sigma, noise->sensitivity, eps, &value, &error);
    return fmin(0, upper ? value + error : value - error);
}

static inline double gaussian_rough(double eps, const void *law)
{
    const GaussianNoise *noise = (const GaussianNoise *)law;
    double value, error;
    kernel_gaussian_log_delta(noise->sigma, noise->sensitivity, eps, &value, &error);
    return value;
}

static inline double kernel_gaussian_guess(double target, double mu)
{
    /* M(x) - M(x + mu) is about mu/((x + 1)(x + 1 + mu)), M Mills' ratio */
    double x = sqrt(-2 * target), rest;
    int i;
    for (i = 0; i < 4; i++) {
        rest = -target - GAUSSIAN_HALF_LOG_2PI + log(mu / ((x + 1) * (x + 1 + mu)));
        if (!(rest > 0.5)) return 0;
        x = sqrt(2 * rest);
    }
    return mu * (x + 0.5 * mu);
}

static inline double kernel_gaussian_epsilon(double sigma, double sensitivity, double delta, int upper)
{
    GaussianNoise noise;
    Curve curve;
    double mu = sensitivity / sigma;
    noise.sigma = sigma; noise.sensitivity = sensitivity;
    curve.side = gaussian_side; curve.rough = gaussian_rough; curve.centre = NULL;
    curve.ahead = NULL; curve.miss = 1e-5;
    /* delta underflows at an eps far below `last` */
    curve.law = &noise; curve.pure = INFINITY; curve.last = 1e6 * fmax(1, mu * mu); curve.span = mu;
    curve.close = 1e-13; curve.sure = 1;
    return kernel_crossing(&curve, delta, upper, 0 < delta && delta < 1 ? kernel_gaussian_guess(kernel_level(delta, upper), mu)
        : 0, 0, 1);
}

static inline int gaussian_domain(double sigma, double sensitivity)
{
    return 0 < sigma && sigma < INFINITY && 1e-12 <= sensitivity / sigma && sensitivity / sigma <= 1e6;
}

/* For eps above GAUSSIAN_SQUARABLE the kernel returns log delta at GAUSSIAN_SQUARABLE; the lower bound is log 0 there. */
static inline void kernel_checked_gaussian_log_delta(double sigma, double sensitivity, double eps, double *lower, double *upper)
{
    double value, error;
    *lower = *upper = NAN;
    if (!(gaussian_domain(sigma, sensitivity) && 0 <= eps && eps < INFINITY)) return;
    kernel_gaussian_log_delta(sigma, sensitivity, eps, &value, &error);
    *lower = eps <= GAUSSIAN_SQUARABLE ? fmin(0, value - error) : -INFINITY;
    *upper = fmin(0, value + error);
}

static inline double kernel_checked_gaussian_epsilon(double sigma, double sensitivity, double delta, int upper)
{
    if (!(gaussian_domain(sigma, sensitivity) && 0 < delta && delta <= 1)) return NAN;
    return kernel_gaussian_epsilon(sigma, sensitivity, delta, upper != 0);
}

#endif
