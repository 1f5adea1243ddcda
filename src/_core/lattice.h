/* Passes over the probabilities of a Poisson-binomial distribution, written so that a compiler can vectorise them.
 *
 * The inputs are p, q = 1 - p and multiplicities g; q and g may be NULL (then q is formed as 1 - p, and g is 1). The tilted
 * probabilities are x = a p/(a p + b q) and y = b q/(a p + b q) with a = e^(theta/2), b = e^(-theta/2), and
 * d = x - p = c p q/(a p + b q) with c = 2 sinh(theta/2): none of x, y and d is computed as a difference.
 *
 * Each sum runs as several partial sums (lanes) over chunks of 256 or runs of 4096, which are added in double-double. The order
 * is fixed, so every instruction set gives the same bits, and a sum of 1e7 terms has an error of about 1e-15 of the sum of
 * their magnitudes. With lanes a compiler can vectorise a sum without -ffast-math.
 */
#ifndef SHUFFLEBOUNDS_LATTICE_H
#define SHUFFLEBOUNDS_LATTICE_H

#include <stddef.h>
#include <string.h>
#include "dd.h"
#include "vectors.h"

enum { LATTICE_CHUNK = 256, LATTICE_RUN = 4096, LATTICE_ORDERS = 64, LATTICE_SMALL = 28, LATTICE_EXACT = 24, LATTICE_LONG = 1 << 21 };

/* Called after every LATTICE_LONG elements of a slow pass, unless it is NULL; returns whether to stop the pass. The sums of a
 * stopped pass are not valid. Two calls may be a tenth of a second apart. */
typedef int (*lattice_interrupted)(void);

VECTORS_INLINE int lattice_leave(lattice_interrupted interrupted, ptrdiff_t done)
{
    return interrupted && done && !(done & (LATTICE_LONG - 1)) && interrupted();
}

/* Fills x, y, d and w = g for one chunk, padded with zeros to a multiple of 8; returns the padded length. */
VECTORS_INLINE ptrdiff_t lattice_fill(const double *p, const double *q, const double *g, ptrdiff_t n,
                                      double a, double b, double c, double *x, double *y, double *d, double *w)
{
    ptrdiff_t i, padded = (n + 7) & ~(ptrdiff_t)7;
    for (i = 0; i < n; i++) y[i] = q ? q[i] : 1 - p[i];
    if (c == 0)
        for (i = 0; i < n; i++) {
            x[i] = p[i];
            d[i] = 0;
        }
    else
        for (i = 0; i < n; i++) {
            double up = a * p[i], down = b * y[i], r = 1 / (up + down);
            d[i] = c * p[i] * y[i] * r;
            x[i] = up * r;
            y[i] = down * r;
        }
    for (i = 0; i < n; i++) w[i] = g ? g[i] : 1;
    for (; i < padded; i++) x[i] = y[i] = d[i] = w[i] = 0;
    return padded;
}

/* Returns the sum of n numbers, n a power of 2, by halving; overwrites them. */
VECTORS_INLINE double lattice_fold(double *s, int n)
{
    int i, half;
    for (half = n / 2; half >= 4; half /= 2)
        for (i = 0; i < half; i++) s[i] += s[i + half];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

VECTORS_INLINE double lattice_dot(const double *u, const double *v, ptrdiff_t n)
{
    double s[8] = {0};
    ptrdiff_t i, j;
    for (i = 0; i < n; i += 8)
        for (j = 0; j < 8; j++) s[j] += u[i + j] * v[i + j];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

VECTORS_INLINE double lattice_dot3(const double *u, const double *v, const double *w, ptrdiff_t n)
{
    double s[8] = {0};
    ptrdiff_t i, j;
    for (i = 0; i < n; i += 8)
        for (j = 0; j < 8; j++) s[j] += u[i + j] * v[i + j] * w[i + j];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

/* Returns sum g d as a double-double (products with a given g are exact), and writes sum g x y to var. */
static VECTORS_CLONES dd lattice_shift(const double *p, const double *q, const double *g, ptrdiff_t n,
                                       double a, double b, double c, double *var)
{
    double x[LATTICE_CHUNK], y[LATTICE_CHUNK], d[LATTICE_CHUNK], w[LATTICE_CHUNK];
    dd shift = {0, 0}, total = {0, 0};
    ptrdiff_t start, i;
    for (start = 0; start < n; start += LATTICE_CHUNK) {
        ptrdiff_t m = n - start < LATTICE_CHUNK ? n - start : LATTICE_CHUNK;
        ptrdiff_t padded = lattice_fill(p + start, q ? q + start : q, g ? g + start : g, m, a, b, c, x, y, d, w);
        if (g)
            for (i = 0; i < m; i++) shift = dd_add(shift, dd_prod(w[i], d[i]));
        else
            shift = dd_add(shift, dd_make(lattice_dot(w, d, padded), 0));
        total = dd_add(total, dd_make(lattice_dot3(w, x, y, padded), 0));
    }
    *var = total.hi;
    return shift;
}

/* Returns the mean of the tilted sum, given the mean without the tilt and its change by `lattice_shift`, and writes a bound of the
 * error, in units of roundoff, to blur.
 *
 * Each term of the change has at most 8 roundings. For few groups the change is computed again in double-double, because in the
 * extreme tail, and where few of many bits remain 1, it is far larger than the standard deviation of the tilted sum. */
static dd lattice_tilted_mean(const double *p, const double *q, const double *g, ptrdiff_t n, double theta, dd mean, dd change,
                              double *blur)
{
    dd r, more, total = {0, 0};
    ptrdiff_t i;
    *blur = 8 * fabs(change.hi);
    if (n > LATTICE_EXACT || fabs(theta) > 500) return dd_add(mean, change);
    r = dd_exp(fabs(theta));
    more = dd_add(r, dd_make(-1, 0));
    for (i = 0; i < n; i++) {
        double y = q ? q[i] : 1 - p[i], s = p[i] <= y ? p[i] : y;
        dd small = dd_make(s, 0), rest = dd_sum(1, -s), one = p[i] <= y ? small : rest, zero = p[i] <= y ? rest : small, d;
        if (s < 1e-150) return dd_add(mean, change);
        d = theta < 0 ? dd_add(one, dd_mul(zero, r)) : dd_add(zero, dd_mul(one, r));
        d = dd_div(dd_mul(dd_mul(small, rest), more), d);
        total = dd_add(total, g ? dd_mul_d(d, g[i]) : d);
    }
    *blur = 1;
    return dd_add(mean, theta < 0 ? dd_neg(total) : total);
}

/* Returns sum g p as a double-double, and writes sum g to count and sum g p q to var. */
static VECTORS_CLONES dd lattice_mean(const double *p, const double *q, const double *g, ptrdiff_t n, double *count,
                                      double *var)
{
    double y[32] = {0}, hi[32] = {0}, lo[32] = {0};
    dd mean = {0, 0}, total = {0, 0}, spread = {0, 0};
    ptrdiff_t start, i;
    if (g || q) {
        for (i = 0; i < n; i++) {
            double w = g ? g[i] : 1;
            mean = dd_add(mean, dd_prod(w, p[i]));
            /* the smaller of p and q is exact: add the rounding error of 1 - q */
            if (q && p[i] > q[i]) mean = dd_add(mean, dd_make(w * ((1 - p[i]) - q[i]), 0));
            total = dd_add(total, dd_make(w, 0));
            spread = dd_add(spread, dd_make(w * p[i] * (q ? q[i] : 1 - p[i]), 0));
        }
        *count = total.hi;
        *var = spread.hi;
        return mean;
    }
    /* The caller multiplies the mean minus k by theta, so its rounding would matter: every addition keeps its error (Knuth). */
    for (start = 0; start + 32 <= n; start += 32)
        for (i = 0; i < 32; i++) {
            double u = p[start + i], v = hi[i] + u, w = v - hi[i];
            lo[i] += (hi[i] - (v - w)) + (u - w);
            hi[i] = v;
            y[i] += u * (1 - u);
        }
    for (i = 0; i < 32; i++) {
        mean = dd_add(mean, dd_make(hi[i], lo[i]));
        spread.hi += y[i];
    }
    for (; start < n; start++) {
        mean = dd_add(mean, dd_make(p[start], 0));
        spread.hi += p[start] * (1 - p[start]);
    }
    *count = (double)n;
    *var = spread.hi;
    return mean;
}

/* For numbers above LATTICE_TINY, the low parts of double-doubles stay in the range of normal doubles. */
#define LATTICE_TINY 1e-270

enum { LATTICE_LANES = 8, LATTICE_STEPS = 16 };

/* Sets *total to log prod_j (q_j + p_j e^theta) for theta >= 0, and to log prod_j (p_j + q_j e^-theta) for theta < 0; |theta| <= 700, no
 * multiplicities. Its error is 2^-53 + 1e-28 n |theta|: the product is formed in double-double, and its powers of two are counted.
 *
 * With r = e^|theta|, a factor lies in [1, r]. It is 1 + s (r - 1) or r - s (r - 1), where s is the smaller of p and q, which is exact;
 * neither form cancels. Low parts are not normalised within LATTICE_STEPS products. */
VECTORS_INLINE void lattice_log_body(const double *p, const double *q, ptrdiff_t n, double theta, lattice_interrupted interrupted,
                                     dd *total, int fused)
{
    enum { SIZE = LATTICE_LANES * LATTICE_STEPS };
    double hi[LATTICE_LANES], lo[LATTICE_LANES], power[LATTICE_LANES], f[SIZE], f_lo[SIZE], part[SIZE], other[SIZE], count = 0, scale;
    dd r = dd_exp(fabs(theta)), one = dd_make(1, 0), slope = dd_add(r, dd_make(-1, 0)), low = one, high = r, product = one;
    ptrdiff_t start, i, j, next, steps = 700 < LATTICE_STEPS * fabs(theta) ? (ptrdiff_t)(700 / fabs(theta)) : LATTICE_STEPS;
    if (theta < 0) {
        low = r;
        high = one;
        slope = dd_neg(slope);
    }
    for (j = 0; j < LATTICE_LANES; j++) {
        hi[j] = 1;
        lo[j] = power[j] = 0;
    }
    for (start = 0; start < n && !lattice_leave(interrupted, start); start += SIZE) {
        ptrdiff_t size = n - start < SIZE ? n - start : SIZE;
        for (i = 0; i < size; i++) part[i] = p[start + i];
        for (i = 0; i < size; i++) other[i] = q ? q[start + i] : 1 - part[i];
        for (; i < SIZE; i++) {
            part[i] = theta < 0;
            other[i] = 1 - part[i];
        }
        VECTORS_LOOP
        for (i = 0; i < SIZE; i++) {
            int less = part[i] <= other[i];
            double s = less ? part[i] : other[i];
            dd move = dd_prod_by(s, less ? slope.hi : -slope.hi, fused), sum = dd_sum(less ? low.hi : high.hi, move.hi);
            f[i] = sum.hi;
            f_lo[i] = sum.lo + (move.lo + ((less ? low.lo : high.lo) + s * (less ? slope.lo : -slope.lo)));
        }
        for (i = 0; i < LATTICE_STEPS; i = next) {
            next = i + steps < LATTICE_STEPS ? i + steps : LATTICE_STEPS;
            for (; i < next; i++) {
                VECTORS_LOOP
                for (j = 0; j < LATTICE_LANES; j++) {
                    dd more = dd_prod_by(hi[j], f[i * LATTICE_LANES + j], fused);
                    lo[j] = more.lo + (lo[j] * f[i * LATTICE_LANES + j] + hi[j] * f_lo[i * LATTICE_LANES + j]);
                    hi[j] = more.hi;
                }
            }
            VECTORS_LOOP
            for (j = 0; j < LATTICE_LANES; j++) {
                dd sum = dd_fast_sum(hi[j], lo[j]);
                double down = vector_inverse(sum.hi);
                hi[j] = sum.hi * down;
                lo[j] = sum.lo * down;
                power[j] -= vector_power(down);
            }
        }
    }
    for (j = 0; j < LATTICE_LANES; j++) {
        product = dd_mul_by(product, dd_make(hi[j], lo[j]), fused);
        count += power[j];
    }
    scale = vector_inverse(product.hi);
    *total = dd_mul_d_by(dd_make(0.69314718055994531, 2.3190468138462996e-17), count - vector_power(scale), fused);
    *total = dd_add(*total, dd_make(log(product.hi * scale), product.lo / product.hi));
}

VECTORS_ENTRY(lattice_log, (const double *p, const double *q, ptrdiff_t n, double theta, lattice_interrupted interrupted, dd *total),
              (p, q, n, theta, interrupted, total))

/* Two orders at once: power *= w and rest = rest * u + v over a chunk, twice. The quarters of the chunk are added: the powers
 * after the first and the second time to s[0] and s[1], the rests to s[2] and s[3]. */
VECTORS_INLINE void lattice_step(double *__restrict power, const double *__restrict w, double *__restrict rest,
                                 const double *__restrict u, const double *__restrict v,
                                 double (*__restrict s)[LATTICE_CHUNK / 4])
{
    enum { Q = LATTICE_CHUNK / 4 };
    int i;
    for (i = 0; i < Q; i++) {
        double a0 = power[i] * w[i], a1 = power[i + Q] * w[i + Q];
        double a2 = power[i + 2 * Q] * w[i + 2 * Q], a3 = power[i + 3 * Q] * w[i + 3 * Q];
        s[0][i] += (a0 + a1) + (a2 + a3);
        a0 *= w[i];
        a1 *= w[i + Q];
        a2 *= w[i + 2 * Q];
        a3 *= w[i + 3 * Q];
        s[1][i] += (a0 + a1) + (a2 + a3);
        power[i] = a0;
        power[i + Q] = a1;
        power[i + 2 * Q] = a2;
        power[i + 3 * Q] = a3;
    }
    for (i = 0; i < Q; i++) {
        double b0 = rest[i] * u[i] + v[i], b1 = rest[i + Q] * u[i + Q] + v[i + Q];
        double b2 = rest[i + 2 * Q] * u[i + 2 * Q] + v[i + 2 * Q], b3 = rest[i + 3 * Q] * u[i + 3 * Q] + v[i + 3 * Q];
        s[2][i] += (b0 + b1) + (b2 + b3);
        b0 = b0 * u[i] + v[i];
        b1 = b1 * u[i + Q] + v[i + Q];
        b2 = b2 * u[i + 2 * Q] + v[i + 2 * Q];
        b3 = b3 * u[i + 3 * Q] + v[i + 3 * Q];
        s[3][i] += (b0 + b1) + (b2 + b3);
        rest[i] = b0;
        rest[i + Q] = b1;
        rest[i + 2 * Q] = b2;
        rest[i + 3 * Q] = b3;
    }
}

/* One element of lattice_begin: w = 4xy, u = delta^2, v = g delta w, power = g w^2, rest = v u + v; returns g w. */
VECTORS_INLINE double lattice_first(double x, double y, double g, double *w, double *u, double *v, double *power,
                                    double *rest)
{
    double delta = x - y, four = 4 * x * y, a = g * four;
    *w = four;
    *u = delta * delta;
    *v = a * delta;
    *power = a * four;
    *rest = *v * *u + *v;
    return a;
}

/* Computes the arrays for lattice_step from a chunk of x, y and multiplicities g, or (plain) from x alone with y = 1 - x, g = 1.
 * They contain the first two orders, whose sums are added to s. */
VECTORS_INLINE void lattice_begin(const double *__restrict x, const double *__restrict y, const double *__restrict g,
                                  int plain, double *__restrict w, double *__restrict u, double *__restrict v,
                                  double *__restrict power, double *__restrict rest,
                                  double (*__restrict s)[LATTICE_CHUNK / 4])
{
    enum { Q = LATTICE_CHUNK / 4 };
    int i;
    for (i = 0; i < Q; i++) {
        int j = i + Q, k = i + 2 * Q, l = i + 3 * Q;
        double yi = plain ? 1 - x[i] : y[i], yj = plain ? 1 - x[j] : y[j];
        double yk = plain ? 1 - x[k] : y[k], yl = plain ? 1 - x[l] : y[l];
        double a = lattice_first(x[i], yi, plain ? 1 : g[i], w + i, u + i, v + i, power + i, rest + i);
        double b = lattice_first(x[j], yj, plain ? 1 : g[j], w + j, u + j, v + j, power + j, rest + j);
        double c = lattice_first(x[k], yk, plain ? 1 : g[k], w + k, u + k, v + k, power + k, rest + k);
        double d = lattice_first(x[l], yl, plain ? 1 : g[l], w + l, u + l, v + l, power + l, rest + l);
        s[0][i] += (a + b) + (c + d);
        s[1][i] += (power[i] + power[j]) + (power[k] + power[l]);
        s[2][i] += (v[i] + v[j]) + (v[k] + v[l]);
        s[3][i] += (rest[i] + rest[j]) + (rest[k] + rest[l]);
    }
}

/* Adds the lanes of both families of sums (two orders of one and two of the other alternate) to their totals. */
VECTORS_INLINE void lattice_gather(double (*__restrict s)[LATTICE_CHUNK / 4], int orders, dd *__restrict one, dd *__restrict two)
{
    int m, i;
    for (m = 0; m < orders; m += 2)
        for (i = 0; i < 2; i++) {
            one[m + i] = dd_add(one[m + i], dd_make(lattice_fold(s[2 * m + i], LATTICE_CHUNK / 4), 0));
            two[m + i] = dd_add(two[m + i], dd_make(lattice_fold(s[2 * m + i + 2], LATTICE_CHUNK / 4), 0));
        }
}

/* even[m-1] = sum g w^m and odd[m-1] = sum g delta (1 - delta^2m), m = 1..orders, for w = 4xy, delta = x - y. */
static VECTORS_CLONES void lattice_sums(const double *p, const double *q, const double *g, ptrdiff_t n,
                                        double a, double b, double c, int orders, lattice_interrupted interrupted,
                                        double *even, double *odd)
{
    double x[LATTICE_CHUNK], y[LATTICE_CHUNK], d[LATTICE_CHUNK], w[LATTICE_CHUNK];
    double four[LATTICE_CHUNK], square[LATTICE_CHUNK], v[LATTICE_CHUNK];
    double power[LATTICE_CHUNK], rest[LATTICE_CHUNK];
    double s[2 * LATTICE_ORDERS + 4][LATTICE_CHUNK / 4];
    dd e[LATTICE_ORDERS + 1], o[LATTICE_ORDERS + 1];
    ptrdiff_t start, first;
    int m;
    for (m = 0; m <= orders; m++) e[m] = o[m] = dd_make(0, 0);
    for (first = 0; first < n && !lattice_leave(interrupted, first); first += LATTICE_RUN) {
        ptrdiff_t last = n - first < LATTICE_RUN ? n : first + LATTICE_RUN;
        memset(s, 0, 2 * (orders + 1) * sizeof s[0]);
        for (start = first; start < last; start += LATTICE_CHUNK) {
            ptrdiff_t size = n - start < LATTICE_CHUNK ? n - start : LATTICE_CHUNK;
            if (c == 0 && !q && !g && size == LATTICE_CHUNK) {
                lattice_begin(p + start, NULL, NULL, 1, four, square, v, power, rest, s);
            } else {
                ptrdiff_t padded = lattice_fill(p + start, q ? q + start : q, g ? g + start : g, size, a, b, c,
                                                x, y, d, w);
                for (; padded < LATTICE_CHUNK; padded++) x[padded] = y[padded] = w[padded] = 0;
                lattice_begin(x, y, w, 0, four, square, v, power, rest, s);
            }
            for (m = 2; m < orders; m += 2) lattice_step(power, four, rest, square, v, s + 2 * m);
        }
        lattice_gather(s, orders, e, o);
    }
    for (m = 0; m < orders; m++) {
        even[m] = e[m].hi;
        odd[m] = o[m].hi;
    }
}

/* Computes power sums of order 1..LATTICE_SMALL of x where x < 1/8 (low) and of y where y < 1/8 (high). The other groups are
 * copied to (mx, my, mg), at most `room` of them. Returns their number. */
static VECTORS_CLONES ptrdiff_t lattice_split(const double *p, const double *q, const double *g, ptrdiff_t n,
                                              double a, double b, double c, lattice_interrupted interrupted, double *low,
                                              double *high, double *mx, double *my, double *mg, ptrdiff_t room)
{
    double x[LATTICE_CHUNK], y[LATTICE_CHUNK], d[LATTICE_CHUNK], w[LATTICE_CHUNK];
    double s[2 * LATTICE_SMALL][LATTICE_CHUNK / 4];
    ptrdiff_t start, first, i, middle = 0;
    dd sum[LATTICE_SMALL], other[LATTICE_SMALL];
    int m;
    for (m = 0; m < LATTICE_SMALL; m++) sum[m] = other[m] = dd_make(0, 0);
    for (first = 0; first < n && !lattice_leave(interrupted, first); first += LATTICE_RUN) {
        ptrdiff_t last = n - first < LATTICE_RUN ? n : first + LATTICE_RUN;
        memset(s, 0, sizeof s);
        for (start = first; start < last; start += LATTICE_CHUNK) {
            ptrdiff_t size = n - start < LATTICE_CHUNK ? n - start : LATTICE_CHUNK;
            ptrdiff_t padded = lattice_fill(p + start, q ? q + start : q, g ? g + start : g, size, a, b, c, x, y, d, w);
            for (i = 0; i < size; i++)
                if (x[i] >= 0.125 && y[i] >= 0.125) {
                    if (middle < room) {
                        mx[middle] = x[i];
                        my[middle] = y[i];
                        mg[middle] = w[i];
                    }
                    middle++;
                    w[i] = 0;
                }
            /* from here on x is the smaller of x and y, y = 0, and w, d are the running powers of the low and the high groups */
            for (i = 0; i < padded; i++) {
                double least = x[i] < y[i] ? x[i] : y[i], high = x[i] < y[i] ? 0 : w[i];
                w[i] -= high;
                d[i] = high;
                x[i] = least;
                y[i] = 0;
            }
            for (; padded < LATTICE_CHUNK; padded++) x[padded] = y[padded] = d[padded] = w[padded] = 0;
            for (m = 0; m < LATTICE_SMALL; m += 2) lattice_step(w, x, d, x, y, s + 2 * m);
        }
        lattice_gather(s, LATTICE_SMALL, sum, other);
    }
    for (m = 0; m < LATTICE_SMALL; m++) {
        low[m] = sum[m].hi;
        high[m] = other[m].hi;
    }
    return middle;
}

/* Sets out[j] = c[0] in[j] + c[1] in[j-1] + ... + c[4] in[j-4], j = 0..n-1, with n rounded up to a multiple of 8. */
static VECTORS_CLONES void lattice_convolve(const double *__restrict in, double *__restrict out, ptrdiff_t n, const double *c)
{
    double c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4];
    ptrdiff_t j;
    n = (n + 7) & ~(ptrdiff_t)7;
    for (j = 0; j < n; j++) out[j] = (c0 * in[j] + c1 * in[j - 1]) + (c2 * in[j - 2] + (c3 * in[j - 3] + c4 * in[j - 4]));
}

#endif
