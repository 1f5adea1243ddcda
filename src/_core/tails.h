/* Binomial tails of a block of elements, in passes that a compiler can vectorise: what _binomial.pyx says of one, for many.
 *
 * The elements are sorted by the way they are computed, each way is a pass, and what none serves is left to the scalar kernel.
 * So an element's bits depend on nothing but itself, on every instruction set.
 *   all      deviance of the smaller tail, its distance from the mode in double-double
 *   near     the uniform expansion, of order 9 or 15
 *   far      the continued fraction, in six lists by the number of steps, 5 to 37 over the whole domain
 *   scalar   deviances above 32 (8 standard deviations), p below 2**-830, arguments outside the domain or the support
 * The logarithm is 2 atanh(f/(2 + f)), the exponential Taylor's polynomial of degree 13; Mills' ratio a polynomial and Stirling's
 * error a quotient (tables.h), so that no pass looks anything up.
 *
 * Error    in _binomial.pyx; gcc, clang, -O0, AVX2 and AVX-512 give the same bits, alone or in a block.
 * Cost     AVX2, an element: 8 ns deviances, 8 (order 9) or 11 (order 15) the expansion, 9 the logarithms, 2 to sort, 6 to gather
 *          where a block has several ways; far ones 1.5 a step and 15 the logarithms, 8 more where a part is steep
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
#define TAILS_CLONES __attribute__((target_clones("avx2","default")))
#define TAILS_INLINE static inline __attribute__((always_inline))
#else
#define TAILS_CLONES
#define TAILS_INLINE static inline
#endif

enum { TAILS_BLOCK = 256, TAILS_ABREAST = 4, TAILS_STEPS = 4, TAILS_MOST_STEPS = 100, TAILS_LENGTH = 24 };
/* The ways to compute an element: the expansion of order 9, that of order 15, the fraction by how many steps it takes, the scalar
 * kernel. Each begins at a multiple of TAILS_ABREAST among the sorted. */
enum { TAILS_LOW, TAILS_HIGH, TAILS_FAR, TAILS_LONE = TAILS_FAR + 6, TAILS_WAYS,
       TAILS_ROOM = TAILS_BLOCK + TAILS_ABREAST * TAILS_WAYS };

typedef double (*tails_scalar)(double k, double n, double p);

TAILS_INLINE uint64_t tails_bits(double x) { uint64_t u; memcpy(&u, &x, sizeof u); return u; }
TAILS_INLINE double tails_double(uint64_t u) { double x; memcpy(&x, &u, sizeof x); return x; }

/* One over the power of two at or below x, 2^-1022 <= x < 2^1022. */
TAILS_INLINE double tails_inverse(double x) { return tails_double(0x7fe0000000000000u - (tails_bits(x) & 0x7ff0000000000000u)); }

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

/* log(1 - t), 0 < t < 1; what 1 - t loses is below 2^-54, and nothing for t > 1/2. */
TAILS_INLINE double tails_log1m(double t)
{
    double rest = 1 - t;
    return tails_log(rest) + ((1 - rest) - t) * (1 + t);
}

/* Mills' ratio, 0 <= x <= SMALL_MILLS_MOST. */
TAILS_INLINE double tails_mills(double x)
{
    const double *c = SMALL_MILLS;
    double u = 1 - (1 + SMALL_MILLS_SCALE / SMALL_MILLS_MOST) * x / (SMALL_MILLS_SCALE + x), u2 = u * u, u4 = u2 * u2;
    double low = (c[0] + u * c[1]) + u2 * (c[2] + u * c[3]) + u4 * ((c[4] + u * c[5]) + u2 * (c[6] + u * c[7]));
    double high = (c[8] + u * c[9]) + u2 * (c[10] + u * c[11]) + u4 * ((c[12] + u * c[13]) + u2 * (c[14] + u * c[15])
        + u4 * ((c[16] + u * c[17]) + u2 * c[18]));
    return low + u4 * u4 * high;
}

/* log(n!/Stirling's formula), 1 <= n <= 2^53. */
TAILS_INLINE double tails_stirling(double n)
{
    const double *p = STIRLING_P, *q = STIRLING_Q;
    double m = n * n, m2 = m * m, m4 = m2 * m2;
    return ((p[0] + m * p[1]) + m2 * (p[2] + m * p[3]) + m4 * (p[4] + m * p[5]))
        / (n * ((q[0] + m * q[1]) + m2 * (q[2] + m * q[3]) + m4 * (q[4] + m * q[5])));
}

/* x log(x/m) - d, d = x - m, |d| <= (x + m)/3; *v = d/(x + m). */
TAILS_INLINE double tails_deviance(double x, double m, double d, double *v)
{
    double r = d / (x + m), w = r * r;
    *v = r;
    return r * (d + 2 * x * w * tails_atanh(w));
}

typedef struct {
    /* the smaller tail is Pr[X >= j] at odds p : q; d = j - (n + 1) p, dev its deviance, steep the larger |d/(x + m)| of its parts,
     * var the variance, other whether the larger tail is asked for */
    double j[TAILS_ROOM], b[TAILS_ROOM], size[TAILS_ROOM], p[TAILS_ROOM], q[TAILS_ROOM], d[TAILS_ROOM];
    double dev[TAILS_ROOM], steep[TAILS_ROOM], var[TAILS_ROOM], other[TAILS_ROOM], value[TAILS_ROOM];
} Tails;

/* Of the fraction: the denominators of the last two convergents, the product of all u, the odd part of what comes next, the t as a
 * cubic of the step, whether it is still wanted. */
typedef struct {
    double p0[TAILS_ROOM], p1[TAILS_ROOM], gap[TAILS_ROOM], odd[TAILS_ROOM], unit2[TAILS_ROOM], rate[TAILS_ROOM], open[TAILS_ROOM];
    double t0[TAILS_ROOM], t1[TAILS_ROOM], t2[TAILS_ROOM], t3[TAILS_ROOM];
} Fraction;

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

/* way[i]: how element i is computed; far ones by their number of steps. */
static TAILS_CLONES void tails_sort(const Tails *t, const double *k, const double *n, const double *p, ptrdiff_t count, double *way)
{
    ptrdiff_t i;
    for (i = 0; i < count; i++) {
        double dev = t->dev[i], var = t->var[i], square = dev > 3.125 ? 2 * dev : 6.25, close = var / (1 + 0.4 * dev);
        double far = TAILS_FAR + ((close > 1.5 ? 1.0 : 0) + (close > 5 ? 1.0 : 0)) + ((close > 13 ? 1.0 : 0)
            + (close > 26 ? 1.0 : 0)) + (close > 50 ? 1.0 : 0);
        int plain = (k[i] >= 0) & (k[i] < n[i]) & (n[i] <= TWO_53) & (n[i] == floor(n[i])) & (p[i] >= TINY_P) & (p[i] < 1);
        int near = (t->steep[i] <= 1 / 3.0) & (square < NEAR_SLOPE * var);
        far = near ? (square < LOW_ORDER_SLOPE * var ? TAILS_LOW : TAILS_HIGH) : far;
        way[i] = (plain & (dev <= 32)) ? far : TAILS_LONE;
    }
}

/* M(s) + B(s)/leading: the uniform expansion. */
#define NEAR(order)                                                                                                     \
    static TAILS_CLONES void tails_near_##order(Tails *t, ptrdiff_t from, ptrdiff_t to)                                 \
    {                                                                                                                   \
        ptrdiff_t i;                                                                                                    \
        for (i = from; i < to; i++) {                                                                                   \
            double leading, s = sqrt(2 * t->dev[i]);                                                                    \
            double more = uniform_##order((t->j[i] - t->b[i]) / t->size[i], 1 / sqrt(t->var[i]), s, &leading);          \
            t->value[i] = tails_mills(s) + more / leading;                                                              \
        }                                                                                                               \
    }
NEAR(9)
NEAR(15)
#undef NEAR

static TAILS_CLONES void tails_near_logs(Tails *t, ptrdiff_t to)
{
    ptrdiff_t i;
    for (i = 0; i < to; i++) {
        double small = tails_exp(-t->dev[i]) * (t->value[i] * INV_SQRT_2PI);
        double log_small = -t->dev[i] + (tails_log(t->value[i]) - LOG_SQRT_2PI);
        t->value[i] = t->other[i] > 0 ? tails_log1m(small) : log_small;
    }
}

/* Steps 0 and 1 of the even part of Gauss's continued fraction 1/(t_0 + u_1/(t_1 + ...)) for Pr[X >= a]/Pr[X = a] (_binomial.pyx,
 * even_fraction), and what the next ones take.
 *
 * With g_m the product of u_1..u_m, the convergents c_m = q_m/p_m have c_(m+1) = c_(m-1) + g_m t_(m+1)/(p_(m-1) p_(m+1)), m even: a
 * sum of positive terms, which forgives what the recurrence of the p has gathered by the time the terms are small.
 * Every step is multiplied by its denominators, so that none divides: with w = a + 2 m,
 *     t w (w^2-1) = m (b-m) x (w+1) + ((a+m)(1 + d + (1+q) m) + m (m+1))(w-1),
 * a cubic of m with positive coefficients. Lengths count in units of a + TAILS_LENGTH, and steps are so scaled, by powers of two,
 * that p stays between 1e-20 and 1e60: d + sqrt(b x) of them are what t and u have of a. */
static TAILS_CLONES void tails_first(Tails *t, ptrdiff_t from, ptrdiff_t to, Fraction *f)
{
    ptrdiff_t i;
    for (i = from; i < to; i++) {
        double a = t->j[i], b = t->b[i], x = t->p[i], d = 1 + t->d[i], slope = 2 + t->q[i], w = a + 2;
        double unit = tails_inverse(a + TAILS_LENGTH), unit2 = unit * unit, rate = unit * tails_inverse(d + sqrt(b * x));
        double cube = unit * rate;
        double even = (b - 1) * x / ((a + 1) * w), start = d / (a + 1), u = (a + b) * x / (a + 1) * even;
        double turn = even + ((a + 1) * (d + slope) + 2) / (w * (a + 3)), scale = w * (a + 1) * (a + 3) * cube;
        t->value[i] = turn / (turn * start + u);
        f->p0[i] = start;
        f->p1[i] = (turn * start + u) * scale;
        f->gap[i] = u * scale;
        f->odd[i] = (a + 1) * ((a + 1 + b) * x * rate);
        f->t0[i] = a * d * (a - 1) * cube;
        f->t1[i] = (x * b * (a + 1) + (a * slope + d + 1) * (a - 1) + 2 * a * d) * cube;
        f->t2[i] = (2 * x * b + ((slope + 1) * (a - 1) + 2 * (a * slope + d + 1) - x * (a + 1))) * cube;
        f->t3[i] = 2 * ((slope + 1) - x) * cube;
        f->unit2[i] = unit2;
        f->rate[i] = rate;
        f->open[i] = 1;
    }
}

/* TAILS_STEPS more after m of them, m odd; the exact value lies between the last two convergents. Returns how many elements are
 * still wanted: not those whose last two are as near as doubles can be. */
static TAILS_CLONES ptrdiff_t tails_steps(Tails *t, double m, ptrdiff_t from, ptrdiff_t to, Fraction *f)
{
    ptrdiff_t i;
    double left = 0;
    for (i = from; i < to; i++) {
        double a = t->j[i], b = t->b[i], x = t->p[i], unit2 = f->unit2[i], rate = f->rate[i], odd = f->odd[i], gap = f->gap[i];
        double t0 = f->t0[i], t1 = f->t1[i], t2 = f->t2[i], t3 = f->t3[i], p0 = f->p0[i], p1 = f->p1[i], old = p1;
        double more, v, turn, u, mid, sum = t->value[i], open = f->open[i];
        /* p, which held the last but one, from it and the last */
#define STEP(r, p, last)                                                                    \
        more = b - (m + r);                                                                 \
        v = a + (2 * (m + r) - 1);                                                          \
        turn = t0 + (m + r) * (t1 + (m + r) * (t2 + (m + r) * t3));                         \
        u = odd * ((more > 0 ? more : 0) * x * ((m + r) * rate)) * ((v * v - 4) * unit2);   \
        odd = (a + (m + r)) * ((a + (m + r) + b) * x * rate);                               \
        p = turn * last + u * p;
        STEP(1, p0, p1)
        gap *= u;
        STEP(2, p1, p0)
        mid = gap * turn / (old * p1);
        gap *= u;
        old = p1;
        STEP(3, p0, p1)
        gap *= u;
        STEP(4, p1, p0)
        mid += gap * turn / (old * p1);
        gap *= u;
#undef STEP
        sum = open > 0 ? sum + mid : sum;
        open = gap <= 2e-16 * (sum * (p0 * p1)) ? 0 : open;
        f->p0[i] = p0;
        f->p1[i] = p1;
        f->odd[i] = odd;
        f->gap[i] = gap;
        f->open[i] = open;
        t->value[i] = sum;
        left += open;
    }
    return (ptrdiff_t)left;
}

/* dev anew where a part is too steep for the polynomial. */
static TAILS_CLONES void tails_steep(Tails *t, ptrdiff_t from, ptrdiff_t to)
{
    ptrdiff_t i;
    for (i = from; i < to; i++) {
        double x = t->j[i], m = t->size[i] * t->p[i], d = t->d[i], v, u;
        double first = tails_deviance(x, m, d, &v), plain = x * tails_log(x / m) - d, second, y = t->b[i], l = t->size[i] * t->q[i];
        second = tails_deviance(y, l, -d, &u);
        first = fabs(v) <= 1 / 3.0 ? first : plain;
        plain = y * tails_log(y / l) + d;
        second = fabs(u) <= 1 / 3.0 ? second : plain;
        t->dev[i] = first + second;
    }
}

static TAILS_CLONES void tails_far_logs(Tails *t, const Fraction *f, ptrdiff_t from, ptrdiff_t to)
{
    ptrdiff_t i;
    for (i = from; i < to; i++) {
        double j = t->j[i], b = t->b[i], size = t->size[i], value = t->value[i], log_small, big;
        double extra = tails_stirling(size) - tails_stirling(j) - tails_stirling(b);
        log_small = -t->dev[i] + (0.5 * tails_log(b * value * value / (6.283185307179586477 * j * size)) + extra);
        big = tails_log1m(tails_exp(log_small));
        big = t->other[i] > 0 ? big : log_small;
        t->value[i] = f->open[i] > 0 ? 1 : big;
    }
}

/* The logarithms of the far ones, or 1: no value was found. first: where each way begins. */
static void tails_far(Tails *t, const ptrdiff_t *first)
{
    Fraction f;
    ptrdiff_t i, r, to = first[TAILS_LONE];
    int w, m;
    tails_first(t, first[TAILS_FAR], to, &f);
    for (w = TAILS_FAR; w < TAILS_LONE; w++)
        for (m = 1; first[w] < first[w + 1] && m < TAILS_MOST_STEPS; m += TAILS_STEPS)
            if (!tails_steps(t, m, first[w], first[w + 1], &f)) break;
    for (i = first[TAILS_FAR]; i < to; i += TAILS_ABREAST)
        for (r = 0; r < TAILS_ABREAST; r++)
            if (t->steep[i + r] > 1 / 3.0) {
                tails_steep(t, i, i + TAILS_ABREAST);
                break;
            }
    tails_far_logs(t, &f, first[TAILS_FAR], to);
}

/* at: the elements by way, each way filled to a multiple of TAILS_ABREAST by repeating its first; first, last: where it begins,
 * ends. Every other element is listed from the end, or each would wait for the one before to be counted. */
static void tails_list(const double *way, ptrdiff_t count, int *at, ptrdiff_t *first, ptrdiff_t *last)
{
    int list[TAILS_WAYS][TAILS_BLOCK], up[TAILS_WAYS] = {0}, down[TAILS_WAYS] = {0}, w;
    ptrdiff_t i, place = 0;
    for (i = 0; i + 1 < count; i += 2) {
        int here = (int)way[i], there = (int)way[i + 1];
        list[here][up[here]++] = (int)i;
        list[there][TAILS_BLOCK - ++down[there]] = (int)i + 1;
    }
    if (i < count) list[(int)way[i]][up[(int)way[i]]++] = (int)i;
    for (w = 0; w < TAILS_WAYS; w++) {
        first[w] = place;
        for (i = 0; i < up[w]; i++) at[place++] = list[w][i];
        for (i = 1; i <= down[w]; i++) at[place++] = list[w][TAILS_BLOCK - i];
        last[w] = place;
        for (; place % TAILS_ABREAST; place++) at[place] = at[first[w]];
    }
    first[TAILS_WAYS] = place;
}

/* log Pr[X > k] (upper = 1) or log Pr[X <= k] (0) of count <= TAILS_BLOCK elements. */
static void tails_block(const double *const *in, double *out, ptrdiff_t count, double upper, tails_scalar scalar)
{
    const double *k = in[0], *n = in[1], *p = in[2];
    Tails all, some;
    double way[TAILS_BLOCK];
    int at[TAILS_ROOM], w;
    ptrdiff_t i, first[TAILS_WAYS + 1], last[TAILS_WAYS];
    tails_all(k, n, p, upper, count, &all);
    tails_sort(&all, k, n, p, count, way);
    tails_list(way, count, at, first, last);
    w = last[TAILS_LOW] == count ? TAILS_LOW : TAILS_HIGH;
    if (last[w] - first[w] == count) {
        (w == TAILS_LOW ? tails_near_9 : tails_near_15)(&all, 0, count);
        tails_near_logs(&all, count);
        memcpy(out, all.value, (size_t)count * sizeof *out);
        return;
    }
    for (i = 0; i < first[TAILS_LONE]; i++) {
        int from = at[i];
#define PACK(name) some.name[i] = all.name[from]
        PACK(j); PACK(b); PACK(size); PACK(p); PACK(q); PACK(d); PACK(dev); PACK(steep); PACK(var); PACK(other);
#undef PACK
    }
    tails_near_9(&some, first[TAILS_LOW], first[TAILS_HIGH]);
    tails_near_15(&some, first[TAILS_HIGH], first[TAILS_FAR]);
    tails_near_logs(&some, first[TAILS_FAR]);
    if (first[TAILS_FAR] < first[TAILS_LONE]) tails_far(&some, first);
    for (w = 0; w < TAILS_LONE; w++)
        for (i = first[w]; i < last[w]; i++)
            /* deep, now that the deviance is right, or without a value */
            out[at[i]] = some.dev[i] <= 32 && some.value[i] <= 0 ? some.value[i] : scalar(k[at[i]], n[at[i]], p[at[i]]);
    for (i = first[TAILS_LONE]; i < last[TAILS_LONE]; i++) out[at[i]] = scalar(k[at[i]], n[at[i]], p[at[i]]);
}

#endif
