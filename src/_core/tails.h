/* Binomial tails of a block of elements, in passes that a compiler can vectorise: what _binomial.pyx says of one, for many.
 *
 * Every element of a pass is computed alike, whether it is needed or not, and what a pass does not serve is left to the scalar
 * kernel. So an element's bits depend on nothing but itself, on every instruction set.
 *   all      deviance of the smaller tail, its distance from the mode in double-double
 *   near     the uniform expansion
 *   far      compacted first, then eight side by side: the series, or the continued fraction, each until the last is done
 *   scalar   deviances above 32 (8 standard deviations), p below 2**-830, arguments outside the domain or the support
 * The logarithm is 2 atanh(f/(2 + f)), the exponential Taylor's polynomial of degree 13.
 *
 * Error    as in _binomial.pyx; gcc, clang, -O0, AVX2 and AVX-512 give the same bits, alone or in a block.
 * Cost     AVX2, an element: 8 ns deviances, 13 (order 9) or 19 (order 15) the expansion, 10 the logarithms, 2 to sort; far ones
 *          some 100 besides, of which 30 are divisions: two a step of the fraction, a dozen steps
 */
#ifndef SHUFFLEBOUNDS_TAILS_H
#define SHUFFLEBOUNDS_TAILS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "constants.h"
#include "dd.h"
#include "tables.h"

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__)
#define TAILS_CLONES __attribute__((target_clones("avx2", "default")))
#define TAILS_INLINE static inline __attribute__((always_inline))
#else
#define TAILS_CLONES
#define TAILS_INLINE static inline
#endif

enum { TAILS_BLOCK = 256, TAILS_ABREAST = 8 };

typedef double (*tails_scalar)(double k, double n, double p);

TAILS_INLINE uint64_t tails_bits(double x) { uint64_t u; memcpy(&u, &x, sizeof u); return u; }
TAILS_INLINE double tails_double(uint64_t u) { double x; memcpy(&x, &u, sizeof x); return x; }

/* (atanh(v)/v - 1)/v^2 at w = v^2 <= 1/9. */
TAILS_INLINE double tails_atanh(double w)
{
    double w2 = w * w, w4 = w2 * w2;
    return ((ATANH[0] + w * ATANH[1]) + w2 * (ATANH[2] + w * ATANH[3])
            + w4 * (((ATANH[4] + w * ATANH[5]) + w2 * (ATANH[6] + w * ATANH[7]))
                    + w4 * ((ATANH[8] + w * ATANH[9]) + w2 * (ATANH[10] + w * ATANH[11]))));
}

/* log x of a normal x > 0: x = 2^e (1 + f), 1 + f in [sqrt(1/2), sqrt(2)). */
TAILS_INLINE double tails_log(double x)
{
    const uint64_t root = 0x3fe6a09e00000000u;
    uint64_t u = tails_bits(x) + (0x3ff0000000000000u - root);
    double e = tails_double((u >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1023);
    double f = tails_double((u & 0x000fffffffffffffu) + root) - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    return e * 0.693147180558298714458942413330078125
        + (f - (half - (s * (half + 2 * z * tails_atanh(z)) + e * 1.6465949582897081279e-12)));
}

/* e^x, -700 <= x <= 700. */
TAILS_INLINE double tails_exp(double x)
{
    const double shift = 6755399441055744.0;
    double t = x * 1.4426950408889634 + shift, k = t - shift;
    double r = (x - k * 0.693147180558298714458942413330078125) - k * 1.6465949582897081279e-12, r2 = r * r, r4 = r2 * r2;
    double low = (1 / 2.0 + r * (1 / 6.0)) + r2 * (1 / 24.0 + r * (1 / 120.0));
    double high = (1 / 720.0 + r * (1 / 5040.0)) + r2 * (1 / 40320.0 + r * (1 / 362880.0))
        + r4 * ((1 / 3628800.0 + r * (1 / 39916800.0)) + r2 * (1 / 479001600.0 + r * (1 / 6227020800.0)));
    return tails_double(tails_bits(1 + (r + r2 * (low + r4 * high))) + (tails_bits(t) << 52));
}

/* log(1 - t), 0 < t < 1. */
TAILS_INLINE double tails_log1m(double t)
{
    double v = t / (2 - t), w = v * v, near = -2 * (v + v * w * tails_atanh(w)), far = tails_log(t > 0.5 ? 1 - t : 0.5);
    return t > 0.5 ? far : near;
}

/* x log(x/m) - d, d = x - m, |d| <= (x + m)/3; *v = d/(x + m). */
TAILS_INLINE double tails_deviance(double x, double m, double d, double *v)
{
    double r = d / (x + m), w = r * r;
    *v = r;
    return r * (d + 2 * x * w * tails_atanh(w));
}

typedef struct {
    /* the smaller tail is Pr[X >= j] at odds p : q; d = j - (n + 1) p, dev its deviance, steep the larger |d/(x + m)| of its parts */
    double j[TAILS_BLOCK], b[TAILS_BLOCK], size[TAILS_BLOCK], p[TAILS_BLOCK], q[TAILS_BLOCK], d[TAILS_BLOCK];
    double dev[TAILS_BLOCK], steep[TAILS_BLOCK], var[TAILS_BLOCK], other[TAILS_BLOCK], value[TAILS_BLOCK], extra[TAILS_BLOCK];
} Tails;

static TAILS_CLONES void tails_all(const double *k, const double *n, const double *chance, double upper, ptrdiff_t count,
                                   Tails *t)
{
    ptrdiff_t i;
    for (i = 0; i < count; i++) {
        double size = n[i] + 1, j = floor(k[i]) + 1, b = n[i] - j + 1, p = chance[i], v, u;
        dd q = dd_sum(1, -p), m, d;
        int swap = p > q.hi, low;
        double least = swap ? q.hi : p, rest = swap ? q.lo : 0, taken = swap ? b : j, from;
        m = dd_prod(n[i], least);
        m.lo += n[i] * rest;
        m = dd_add(m, dd_make(least, rest));
        d = dd_add(dd_make(taken, 0), dd_neg(m));
        from = swap ? -d.hi : d.hi;
        low = from < 0;
        t->j[i] = low ? b : j;
        t->b[i] = low ? j : b;
        t->size[i] = size;
        t->p[i] = low ? q.hi : p;
        t->q[i] = low ? p : q.hi;
        t->d[i] = fabs(from);
        t->other[i] = (double)low == upper ? 1 : 0;
        t->dev[i] = tails_deviance(t->j[i], size * t->p[i], t->d[i], &v) + tails_deviance(t->b[i], size * t->q[i], -t->d[i], &u);
        t->steep[i] = fabs(v) > fabs(u) ? fabs(v) : fabs(u);
        t->var[i] = t->j[i] * (t->b[i] / size);
    }
}

/* way[i]: 0 near the mode, 1 by the series, 2 by the fraction, 3 by the scalar kernel. */
static TAILS_CLONES void tails_sort(const Tails *t, const double *k, const double *n, const double *p, ptrdiff_t count, double *way)
{
    ptrdiff_t i;
    for (i = 0; i < count; i++) {
        double square = t->dev[i] > 3.125 ? 2 * t->dev[i] : 6.25, far = t->var[i] < SERIES_VARIANCE ? 1 : 2;
        int plain = (k[i] >= 0) & (k[i] < n[i]) & (n[i] <= TWO_53) & (n[i] == floor(n[i])) & (p[i] >= TINY_P) & (p[i] < 1);
        int near = (t->steep[i] <= 1 / 3.0) & (square < NEAR_SLOPE * t->var[i]);
        far = near ? 0 : far;
        way[i] = (plain & (t->dev[i] <= 32)) ? far : 3;
    }
}

/* M(s) + B(s)/leading: the uniform expansion of order 9 or, where an element asks for it, 15. */
static TAILS_CLONES void tails_near(Tails *t, ptrdiff_t count, double *s)
{
    ptrdiff_t i, more = 0;
    for (i = 0; i < count; i++) {
        double square = t->dev[i] > 3.125 ? 2 * t->dev[i] : 6.25;
        more += square < LOW_ORDER_SLOPE * t->var[i] ? 0 : 1;
    }
    for (i = 0; i < count; i++) s[i] = sqrt(2 * t->dev[i]);
    if (more < count)
        for (i = 0; i < count; i++) {
            double leading;
            t->value[i] = uniform_9((t->j[i] - t->b[i]) / t->size[i], 1 / sqrt(t->var[i]), s[i], &leading);
            t->value[i] /= leading;
        }
    if (more)
        for (i = 0; i < count; i++) {
            double leading, square = t->dev[i] > 3.125 ? 2 * t->dev[i] : 6.25;
            double fine = uniform_15((t->j[i] - t->b[i]) / t->size[i], 1 / sqrt(t->var[i]), s[i], &leading);
            fine /= leading;
            double coarse = more < count ? t->value[i] : 0;
            t->value[i] = square < LOW_ORDER_SLOPE * t->var[i] ? coarse : fine;
        }
    for (i = 0; i < count; i++) {
        double y = MILLS_SCALE / (MILLS_SCALE + s[i]), z = y * MILLS_PIECES, x, x2, x4;
        /* y is in [0, 1], or NaN where the element is not near: the last piece */
        int piece = z < MILLS_PIECES ? (int)z : MILLS_PIECES - 1;
        const double *c = MILLS + piece * (MILLS_DEGREE + 1);
        x = z - piece - 0.5;
        x2 = x * x;
        x4 = x2 * x2;
        t->value[i] += y * ((c[0] + (x * c[1] + x2 * (c[2] + x * c[3]))) + x4 * ((c[4] + x * c[5]) + x2 * (c[6] + x * c[7]) + x4 * c[8]));
    }
}

static TAILS_CLONES void tails_near_logs(const Tails *t, ptrdiff_t count, double *out)
{
    ptrdiff_t i;
    for (i = 0; i < count; i++) {
        double small = tails_exp(-t->dev[i]) * (t->value[i] * INV_SQRT_2PI);
        double log_small = -t->dev[i] + (tails_log(t->value[i]) - LOG_SQRT_2PI);
        out[i] = t->other[i] > 0 ? tails_log1m(small) : log_small;
    }
}

/* Pr[X >= j]/Pr[X = j] as a series of positive terms, four to a division, for eight elements: those that are done gain nothing. */
static TAILS_CLONES void tails_series(const double *j, const double *b, const double *p, const double *q, double *ratio)
{
    enum { W = TAILS_ABREAST };
    double total[W], term[W], top[W], bottom[W], odds[W];
    int i, left;
    for (i = 0; i < W; i++) {
        total[i] = term[i] = 1;
        top[i] = b[i] - 1;
        bottom[i] = j[i] + 1;
        odds[i] = p[i] / q[i];
    }
    do {
        left = 0;
        for (i = 0; i < W; i++) {
            double a12 = top[i] * odds[i] * ((top[i] - 1) * odds[i]), a3 = (top[i] - 2) * odds[i];
            double a34 = a3 * ((top[i] - 3) * odds[i]), b34 = (bottom[i] + 2) * (bottom[i] + 3);
            double inverse = 1 / (bottom[i] * (bottom[i] + 1) * b34), c4 = a12 * a34 * inverse;
            double part = (top[i] * odds[i] * ((bottom[i] + 1) * b34) + a12 * b34 + a12 * (a3 * (bottom[i] + 3))) * inverse + c4;
            total[i] += term[i] * part;
            term[i] *= c4;
            top[i] -= 4;
            bottom[i] += 4;
        }
        for (i = 0; i < W; i++) left += term[i] > 1e-18 * total[i];
    } while (left);
    for (i = 0; i < W; i++) ratio[i] = total[i];
}

/* The same by the even part of Gauss's continued fraction (_binomial.pyx, even_fraction), each kept as it was when it was done. */
static TAILS_CLONES void tails_fraction(const double *j, const double *b, const double *p, const double *q, const double *d,
                                        double *ratio)
{
    enum { W = TAILS_ABREAST };
    double odd[W], w[W], p0[W], q0[W], p1[W], q1[W], got[W], m = 0;
    int i, left;
    for (i = 0; i < W; i++) {
        odd[i] = (j[i] + b[i]) * p[i] / (j[i] + 1);
        w[i] = j[i];
        p0[i] = 1;
        q0[i] = 0;
        p1[i] = (1 + d[i]) / (j[i] + 1);
        q1[i] = 1;
        got[i] = 0;
    }
    do {
        m += 1;
        left = 0;
        for (i = 0; i < W; i++) {
            double a = j[i], x = p[i], up = w[i] + 2, r = 1 / ((up - 1) * up * (up + 1));
            double even = m * (b[i] - m) * x * (up + 1) * r, u = odd[i] * even, f, p2, q2, done;
            r *= up - 1;
            odd[i] = (a + m) * (a + b[i] + m) * x * r;
            f = even + ((a + m) * ((d[i] + 1) + (2 + q[i]) * m) + m * (m + 1)) * r;
            p2 = f * p1[i] + u * p0[i];
            q2 = f * q1[i] + u * q0[i];
            done = fabs(p2 * q1[i] - p1[i] * q2) <= 1e-16 * p2 * q1[i] ? 1 : 0;
            /* the value lies between two convergents; kept once: a quotient is never 0 */
            got[i] = got[i] == 0 && done > 0 ? q2 / p2 : got[i];
            f = p2 < 1e-150 ? 1e150 : 1;
            p0[i] = p1[i] * f;
            q0[i] = q1[i] * f;
            p1[i] = p2 * f;
            q1[i] = q2 * f;
            w[i] = up;
        }
        for (i = 0; i < W; i++) left += got[i] == 0;
    } while (left && m < 1e5);
    for (i = 0; i < W; i++) ratio[i] = q[i] * got[i];
}

/* sum += sign log(n!/Stirling's formula), n >= 1. */
static TAILS_CLONES void tails_stirling(const double *n, ptrdiff_t count, double sign, double *sum)
{
    ptrdiff_t i;
    for (i = 0; i < count; i++) {
        double r = 1 / n[i], w = r * r;
        int small = n[i] <= STIRLING_LAST;
        double series = r * (1 / 12.0 - w * (1 / 360.0 - w * (1 / 1260.0 - w * (
            1 / 1680.0 - w * (1 / 1188.0 - w * (691 / 360360.0))))));
        sum[i] += sign * (small ? STIRLING[small ? (int)n[i] : 0] : series);
    }
}

/* dev anew where a part is too steep for the polynomial. */
static TAILS_CLONES void tails_far_deviance(Tails *t, ptrdiff_t count)
{
    ptrdiff_t i;
    for (i = 0; i < count; i++) {
        double x = t->j[i], m = t->size[i] * t->p[i], d = t->d[i], v, u;
        double first = tails_deviance(x, m, d, &v), plain = x * tails_log(x / m) - d, second, y = t->b[i], l = t->size[i] * t->q[i];
        second = tails_deviance(y, l, -d, &u);
        first = fabs(v) <= 1 / 3.0 ? first : plain;
        plain = y * tails_log(y / l) + d;
        second = fabs(u) <= 1 / 3.0 ? second : plain;
        t->dev[i] = first + second;
    }
}

static TAILS_CLONES void tails_far_logs(const Tails *t, ptrdiff_t count, double *out)
{
    ptrdiff_t i;
    for (i = 0; i < count; i++) {
        double value = t->value[i] / t->q[i];
        double log_small = -t->dev[i]
            + (0.5 * tails_log(t->b[i] / t->size[i] / (6.283185307179586477 * t->j[i]) * value * value) + t->extra[i]);
        double big = tails_log1m(tails_exp(log_small));
        out[i] = t->other[i] > 0 ? big : log_small;
    }
}

static void tails_pack(const Tails *from, const int *at, ptrdiff_t count, Tails *to)
{
    ptrdiff_t i, padded = (count + TAILS_ABREAST - 1) / TAILS_ABREAST * TAILS_ABREAST;
#define PACK(name) for (i = 0; i < padded; i++) to->name[i] = from->name[at[i < count ? i : 0]]
    PACK(j); PACK(b); PACK(size); PACK(p); PACK(q); PACK(d); PACK(dev); PACK(other);
#undef PACK
}

/* Elements at[0..count-1], by the series or by the fraction; those that turn out deep are appended to lone. Returns how many it holds. */
static ptrdiff_t tails_far(const Tails *all, const int *at, ptrdiff_t count, int series, double *out, int *lone, ptrdiff_t lones)
{
    Tails far;
    double s[TAILS_BLOCK];
    ptrdiff_t i;
    if (!count) return lones;
    tails_pack(all, at, count, &far);
    for (i = 0; i < count; i += TAILS_ABREAST)
        if (series)
            tails_series(far.j + i, far.b + i, far.p + i, far.q + i, far.value + i);
        else
            tails_fraction(far.j + i, far.b + i, far.p + i, far.q + i, far.d + i, far.value + i);
    tails_far_deviance(&far, count);
    memset(far.extra, 0, (size_t)count * sizeof *far.extra);
    tails_stirling(far.size, count, 1, far.extra);
    tails_stirling(far.j, count, -1, far.extra);
    tails_stirling(far.b, count, -1, far.extra);
    tails_far_logs(&far, count, s);
    for (i = 0; i < count; i++)
        if (far.dev[i] <= 32)
            out[at[i]] = s[i];
        else
            lone[lones++] = at[i];
    return lones;
}

/* log Pr[X > k] (upper = 1) or log Pr[X <= k] (0) of count <= TAILS_BLOCK elements. */
static void tails_block(const double *const *in, double *out, ptrdiff_t count, double upper, tails_scalar scalar)
{
    const double *k = in[0], *n = in[1], *p = in[2];
    Tails all;
    double s[TAILS_BLOCK];
    int list[3][TAILS_BLOCK];                       /* by the series, by the fraction, by the scalar kernel */
    ptrdiff_t i, far[2] = {0, 0}, lones = 0, nears = 0;
    tails_all(k, n, p, upper, count, &all);
    tails_sort(&all, k, n, p, count, s);
    for (i = 0; i < count; i++) {
        list[0][far[0]] = list[1][far[1]] = list[2][lones] = (int)i;
        nears += s[i] == 0;
        far[0] += s[i] == 1;
        far[1] += s[i] == 2;
        lones += s[i] == 3;
    }
    if (nears) {
        tails_near(&all, count, s);
        tails_near_logs(&all, count, out);
    }
    lones = tails_far(&all, list[0], far[0], 1, out, list[2], lones);
    lones = tails_far(&all, list[1], far[1], 0, out, list[2], lones);
    for (i = 0; i < lones; i++) out[list[2][i]] = scalar(k[list[2][i]], n[list[2][i]], p[list[2][i]]);
}

#endif
