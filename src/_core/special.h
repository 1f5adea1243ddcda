/* Elementary functions without cancellation, used by all other kernels.
 * Method and errors: the header of _special.pyx. In this folder, kernel_name of a header is c_name of the .pxd file. */
#ifndef SHUFFLEBOUNDS_SPECIAL_H
#define SHUFFLEBOUNDS_SPECIAL_H

#include <math.h>
#include "arithmetic.h"
#include "constants.h"
#include "dd.h"
#include "tables.h"

#define LOG_RATIO_LEAST 0x1p-990
#define LOG_RATIO_MOST 0x1p990
/* ln 2 in two parts; the first has 21 trailing zero bits, so that its product with an exponent is exact. */
#define LN2_HI 0.693147180558298714458942413330078125
#define LN2_LO 1.6465949582897081279e-12

/* Returns (atanh(v)/v - 1)/v^2 at w = v^2 <= 1/9: twelve terms, in two independent halves that a processor runs in parallel. */
static inline double atanh_tail(double w)
{
    double w2 = w * w, w4 = w2 * w2;
    return ATANH[0] + w * ATANH[1] + w2 * (ATANH[2] + w * ATANH[3]) + w4 * (ATANH[4] + w * ATANH[5]
        + w2 * (ATANH[6] + w * ATANH[7]) + w4 * (ATANH[8] + w * ATANH[9] + w2 * (ATANH[10] + w * ATANH[11])));
}

/* Returns log(1 + x) - x. The caller has checked: x > -1.
 *
 * -0.5 < x < 0.8   v (2 v^2 (1/3 + v^2/5 + ...) - x), v = x/(2 + x): log(1+x) = 2 atanh(v), x = 2v + v x
 * otherwise        log1p(x) - x, where at most two bits cancel */
static inline double kernel_log1pmx(double x)
{
    double v, w;
    if (-0.5 < x && x < 0.8) {
        v = x / (2 + x);
        w = v * v;
        return v * (2 * w * atanh_tail(w) - x);
    }
    return log1p(x) - x;
}

/* Returns log(1 - e^x). The caller has checked: x <= 0. The cut at -ln 2 keeps both inner results in [1/2, 1]. */
static inline double kernel_log1mexp(double x)
{
    if (x > -M_LN2) return x < 0 ? log(-expm1(x)) : -INFINITY;
    return log1p(-exp(x));
}

/* Returns log(e^a + e^b) for any a, b < inf. */
static inline double kernel_log_add_exp(double a, double b)
{
    double high = a > b ? a : b;
    if (high == -INFINITY) return high;
    return high + log1p(exp(-fabs(a - b)));
}

/* Returns log(e^a - e^b). The caller has checked: a >= b. If b is close to a, rounded arguments cause cancellation. */
static inline double kernel_log_sub_exp(double a, double b)
{
    if (b == -INFINITY) return a;
    return a + kernel_log1mexp(b - a);
}

/* Returns log n! - log(sqrt(2 pi n) (n/e)^n). The caller has checked: n is an integer, 1 <= n.
 *
 * Values up to n = 15 are from a table, later ones from the asymptotic series. Its first omitted term is 4e-18 at n = 16. */
static inline double kernel_stirling_error(double n)
{
    double r, w;
    if (n <= STIRLING_LAST) return STIRLING[whole(n, 1, STIRLING_LAST)];
    r = 1 / n;
    w = r * r;
    return r * (1 / 12.0 - w * (1 / 360.0 - w * (1 / 1260.0 - w * (1 / 1680.0 - w * (1 / 1188.0 - w * (691 / 360360.0))))));
}

/* Returns M(x) = e^(x^2/2) int_x^inf e^(-t^2/2) dt. The caller has checked: x >= 0.
 *
 * M(x)/y is smooth in y = 4/(4 + x) on [0, 1]: 32 polynomials of degree 8. */
static inline double kernel_mills_ratio(double x)
{
    double y = MILLS_SCALE / (MILLS_SCALE + x);
    double z = y * MILLS_PIECES;
    /* z = MILLS_PIECES at x = 0 */
    ptrdiff_t piece = z < MILLS_PIECES ? whole(z, 0, MILLS_PIECES - 1) : MILLS_PIECES - 1;
    const double *c;
    double t, t2, t4;
    t = z - piece - 0.5;
    c = MILLS + piece * (MILLS_DEGREE + 1);
    t2 = t * t;
    t4 = t2 * t2;
    return y * (c[0] + (t * c[1] + t2 * (c[2] + t * c[3])) + t4 * (c[4] + t * c[5] + t2 * (c[6] + t * c[7]) + t4 * c[8]));
}

/* Returns log(x/(m + m_lo)) as a double-double. The caller has checked: x > 0, m > 0.
 *
 * z = x/m = 2^e z', z' in [11/16, 11/8): c ~ 1/z' from a table, r = c z' - 1 with |r| < 0.008,
 * log = e ln 2 - log c + log1p(r), the series' first two terms in double-double.
 * For x/m outside 2^+-990, where the splitting of x/m would overflow, the value is log x - log m in plain double. */
static inline double kernel_log_ratio(double x, double m, double m_lo, double *lo)
{
    dd z = dd_div(dd_make(x, 0), dd_make(m, m_lo)), r, total, square;
    int e;
    double f = frexp(z.hi, &e), scale, c, u;
    ptrdiff_t cell;
    if (!(LOG_RATIO_LEAST < z.hi && z.hi < LOG_RATIO_MOST)) {
        *lo = 0;
        return log(x) - log(m);
    }
    if (f < LOG_FIRST) {
        f *= 2;
        e -= 1;
    }
    scale = f / z.hi; /* a power of two */
    cell = whole((f - LOG_FIRST) * LOG_STEP, 0, LOG_CELLS - 1); /* 87 at most, as f < 11/8 */
    c = LOG_C[cell];
    r = dd_prod(f, c);
    r = dd_sum(r.hi - 1, r.lo + z.lo * scale * c); /* r.hi - 1 is exact */
    u = r.hi;
    square = dd_prod(u, u);
    total = dd_sum(u, -0.5 * square.hi);
    total.lo += r.lo * (1 - u) - 0.5 * square.lo + u * square.hi * (1 / 3.0
        - u * (1 / 4.0 - u * (1 / 5.0 - u * (1 / 6.0 - u * (1 / 7.0 - u * (1 / 8.0 - u / 9.0))))));
    total = dd_add(dd_make(LOG_HI[cell], LOG_LO[cell]), dd_fast_sum(total.hi, total.lo));
    if (e) total = dd_add(dd_sum(e * LN2_HI, e * LN2_LO), total);
    *lo = total.lo;
    return total.hi;
}

/* Returns x log(x/m) - (x - m) in plain double, given d = x - m as accurately as the caller can form it.
 *
 * The caller has checked: x > 0, m > 0, d = x - m.
 * |v| <= 1/3    v d + 2 x v^3 (1/3 + v^2/5 + ...), v = d/(x + m) (Loader's deviance by atanh)
 * otherwise     x log(x/m) - d, where at most two bits cancel */
static inline double kernel_deviance(double x, double m, double d)
{
    double v = d / (x + m), w;
    if (fabs(v) <= 1 / 3.0) {
        w = v * v;
        return v * (d + 2 * x * w * atanh_tail(w));
    }
    return x * log(x / m) - d;
}

/* Returns x log(x/m) - (x - m) as a double-double, for deviances so large that an ulp of a double matters in the exponent.
 *
 * The caller has checked: as log_ratio; d + d_lo = x - (m + m_lo) to double-double.
 * |v| <= 1/32    v d in double-double; the remainder, at most |v|/3 of it, in double
 * otherwise      x log(x/m) - d, where five bits of 66 cancel */
static inline double kernel_deviance_dd(double x, double m, double m_lo, double d, double d_lo, double *lo)
{
    dd total, v, sum_;
    double w, log_lo = 0;
    sum_ = dd_sum(x, m);
    sum_.lo += m_lo;
    v = dd_div(dd_make(d, d_lo), sum_);
    if (fabs(v.hi) <= 0.03125) {
        w = v.hi * v.hi;
        total = dd_mul(v, dd_make(d, d_lo));
        total = dd_fast_sum(total.hi, total.lo + 2 * x * w * v.hi * atanh_tail(w));
    } else {
        w = kernel_log_ratio(x, m, m_lo, &log_lo);
        total = dd_add(dd_mul_d(dd_make(w, log_lo), x), dd_make(-d, -d_lo));
    }
    *lo = total.lo;
    return total.hi;
}

#endif
