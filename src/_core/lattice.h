/* Passes over the probabilities of a Poisson-binomial law, written so that a compiler can vectorise them.
 *
 * p, q = 1 - p and multiplicities g; q and g may be NULL (then q is formed as 1 - p, and g is 1). The tilted
 * probabilities are x = a p/(a p + b q) and y = b q/(a p + b q) with a = e^(theta/2), b = e^(-theta/2), and
 * d = x - p = c p q/(a p + b q) with c = 2 sinh(theta/2): none of the three is a difference.
 *
 * Sums run in 8 interleaved lanes over chunks of 256, and the chunks are added in double-double: the order is fixed, so
 * every instruction set gives the same bits, and a sum of 1e7 terms keeps about 1e-15 of the sum of their magnitudes.
 */
#ifndef SHUFFLEBOUNDS_LATTICE_H
#define SHUFFLEBOUNDS_LATTICE_H

#include <stddef.h>
#include "dd.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define LATTICE_CLONES __attribute__((target_clones("avx2", "default")))
#define LATTICE_INLINE static inline __attribute__((always_inline))
#else
#define LATTICE_CLONES
#define LATTICE_INLINE static inline
#endif

enum { LATTICE_CHUNK = 256, LATTICE_ORDERS = 64, LATTICE_SMALL = 28 };

/* One chunk of x, y, d and g, padded with zeros to a multiple of 8; returns the padded length. */
LATTICE_INLINE ptrdiff_t lattice_fill(const double *p, const double *q, const double *g, ptrdiff_t n,
                                      double a, double b, double c, double *x, double *y, double *d, double *w)
{
    ptrdiff_t i, padded = (n + 7) & ~(ptrdiff_t)7;
    for (i = 0; i < n; i++) y[i] = q ? q[i] : 1 - p[i];
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

LATTICE_INLINE double lattice_dot(const double *u, const double *v, ptrdiff_t n)
{
    double s[8] = {0};
    ptrdiff_t i, j;
    for (i = 0; i < n; i += 8)
        for (j = 0; j < 8; j++) s[j] += u[i + j] * v[i + j];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

LATTICE_INLINE double lattice_dot3(const double *u, const double *v, const double *w, ptrdiff_t n)
{
    double s[8] = {0};
    ptrdiff_t i, j;
    for (i = 0; i < n; i += 8)
        for (j = 0; j < 8; j++) s[j] += u[i + j] * v[i + j] * w[i + j];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

/* sum g d as a double-double (products with given g are exact), and sum g x y. */
static LATTICE_CLONES dd lattice_shift(const double *p, const double *q, const double *g, ptrdiff_t n,
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

/* sum g p as a double-double, and sum g. */
static LATTICE_CLONES dd lattice_mean(const double *p, const double *g, ptrdiff_t n, double *count)
{
    double one[LATTICE_CHUNK], last[8] = {0};
    dd mean = {0, 0}, total = {0, 0};
    ptrdiff_t start, i;
    if (g) {
        for (i = 0; i < n; i++) {
            mean = dd_add(mean, dd_prod(g[i], p[i]));
            total = dd_add(total, dd_make(g[i], 0));
        }
        *count = total.hi;
        return mean;
    }
    for (i = 0; i < LATTICE_CHUNK; i++) one[i] = 1;
    for (start = 0; start + 8 <= n; start += LATTICE_CHUNK) {
        ptrdiff_t m = n - start < LATTICE_CHUNK ? (n - start) & ~(ptrdiff_t)7 : LATTICE_CHUNK;
        mean = dd_add(mean, dd_make(lattice_dot(p + start, one, m), 0));
    }
    for (i = n & ~(ptrdiff_t)7; i < n; i++) last[i & 7] = p[i];
    mean = dd_add(mean, dd_make(lattice_dot(last, one, 8), 0));
    *count = (double)n;
    return mean;
}

/* even[m-1] = sum g w^m and odd[m-1] = sum g delta (1 - delta^2m), m = 1..orders, for w = 4xy, delta = x - y. */
static LATTICE_CLONES void lattice_sums(const double *p, const double *q, const double *g, ptrdiff_t n,
                                        double a, double b, double c, int orders, double *even, double *odd)
{
    double x[LATTICE_CHUNK], y[LATTICE_CHUNK], d[LATTICE_CHUNK], w[LATTICE_CHUNK];
    double power[LATTICE_CHUNK], rest[LATTICE_CHUNK];
    dd e[LATTICE_ORDERS], o[LATTICE_ORDERS];
    ptrdiff_t start, i, j;
    int m;
    for (m = 0; m < orders; m++) e[m] = o[m] = dd_make(0, 0);
    for (start = 0; start < n; start += LATTICE_CHUNK) {
        ptrdiff_t size = n - start < LATTICE_CHUNK ? n - start : LATTICE_CHUNK;
        ptrdiff_t padded = lattice_fill(p + start, q ? q + start : q, g ? g + start : g, size, a, b, c, x, y, d, w);
        for (i = 0; i < padded; i++) {
            double delta = x[i] - y[i], four = 4 * x[i] * y[i];
            power[i] = w[i];
            rest[i] = 0;
            x[i] = four;
            y[i] = delta * delta;
            d[i] = w[i] * delta * four;
        }
        for (m = 0; m < orders; m++) {
            double s[8] = {0}, t[8] = {0};
            for (i = 0; i < padded; i += 8)
                for (j = 0; j < 8; j++) {
                    double u = power[i + j] * x[i + j], v = rest[i + j] * y[i + j] + d[i + j];
                    power[i + j] = u;
                    rest[i + j] = v;
                    s[j] += u;
                    t[j] += v;
                }
            e[m] = dd_add(e[m], dd_make(((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7])), 0));
            o[m] = dd_add(o[m], dd_make(((t[0] + t[4]) + (t[1] + t[5])) + ((t[2] + t[6]) + (t[3] + t[7])), 0));
        }
    }
    for (m = 0; m < orders; m++) {
        even[m] = e[m].hi;
        odd[m] = o[m].hi;
    }
}

/* Power sums of order 1..LATTICE_SMALL of x where x < 1/8 (low) and of y where y < 1/8 (high); the others are copied
 * to (mx, my, mg), at most `room` of them. Returns how many there are. */
static LATTICE_CLONES ptrdiff_t lattice_split(const double *p, const double *q, const double *g, ptrdiff_t n,
                                              double a, double b, double c, double *low, double *high,
                                              double *mx, double *my, double *mg, ptrdiff_t room)
{
    double x[LATTICE_CHUNK], y[LATTICE_CHUNK], d[LATTICE_CHUNK], w[LATTICE_CHUNK], power[LATTICE_CHUNK];
    double is_high[LATTICE_CHUNK];
    ptrdiff_t start, i, j, middle = 0;
    dd sum[LATTICE_SMALL], diff[LATTICE_SMALL];
    int m;
    for (m = 0; m < LATTICE_SMALL; m++) sum[m] = diff[m] = dd_make(0, 0);
    for (start = 0; start < n; start += LATTICE_CHUNK) {
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
        for (i = 0; i < padded; i++) {
            d[i] = x[i] < y[i] ? x[i] : y[i];
            is_high[i] = x[i] < y[i] ? 0 : 1;
            power[i] = w[i];
        }
        for (m = 0; m < LATTICE_SMALL; m++) {
            double s[8] = {0}, t[8] = {0};
            for (i = 0; i < padded; i += 8)
                for (j = 0; j < 8; j++) {
                    double u = power[i + j] * d[i + j];
                    power[i + j] = u;
                    s[j] += u * (1 - is_high[i + j]);
                    t[j] += u * is_high[i + j];
                }
            sum[m] = dd_add(sum[m], dd_make(((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7])), 0));
            diff[m] = dd_add(diff[m], dd_make(((t[0] + t[4]) + (t[1] + t[5])) + ((t[2] + t[6]) + (t[3] + t[7])), 0));
        }
    }
    for (m = 0; m < LATTICE_SMALL; m++) {
        low[m] = sum[m].hi;
        high[m] = diff[m].hi;
    }
    return middle;
}

#endif
