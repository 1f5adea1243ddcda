/* Log probabilities and log tails of a block of elements, in passes that a compiler can vectorise (vectors.h). The formulas are
 * those of binomial.h, which computes the tail of one element.
 *
 * Distributions. All tails are computed as binomial tails. Those of the negative binomial distribution and the incomplete beta
 * function are binomial tails with real parameters; the formulas do not need integers. The Poisson distribution and the
 * incomplete gamma functions are the limit of infinitely many trials at a fixed mean. They are computed with TAILS_MANY = 2**200
 * trials, at which the difference from the limit is far below the rounding of a double.
 *
 * Probabilities. One pass computes every element with deviances in plain double. The elements whose deviance exceeds 32, or where
 * k or n - k is more than twice or less than half of its mean, are gathered and computed again with deviances in double-double.
 *
 * Tails. The elements are sorted by method, and each method is a pass:
 *   near     the uniform expansion, of order 9 or 15
 *   far      the continued fraction. Its elements are sorted into six lists by the expected number of steps (5 to 37), so that
 *            elements of a list take about as many steps. The deviance is in plain double up to 32 and in double-double beyond.
 * The scalar kernel of the distribution computes the other elements: those with p below 2**-830, with arguments outside the domain or
 * the support, with parameters below 3 that are no integers, and those whose fraction has not converged.
 *
 * The method of an element depends on its own arguments only. Therefore an element has the same bits alone, in any block, and on
 * every instruction set.
 *
 * Error    in _binomial.pyx
 * Cost     in ns an element with AVX-512: probabilities 9, and 26 in double-double; tails 17 near the mode at n = 1e6, 33 within 6
 *          standard deviations for n from 10 to 1e6, 55 for any k. AVX2 with FMA takes 1.3 to 2 times as long, the baseline 4 times.
 */
#ifndef SHUFFLEBOUNDS_TAILS_H
#define SHUFFLEBOUNDS_TAILS_H

#include <math.h>
#include <stddef.h>
#include <string.h>
#include "constants.h"
#include "vectors.h"

enum { TAILS_BLOCK = 256, TAILS_ABREAST = 8, TAILS_STEPS = 4, TAILS_MOST_STEPS = 100, TAILS_LENGTH = 24 };
/* The methods of a tail: the expansion of order 9, that of order 15, the fraction in six lists, the scalar kernel. Among the sorted
 * elements each list begins at a multiple of TAILS_ABREAST, so that a group of TAILS_ABREAST elements has one method. */
enum { TAILS_LOW, TAILS_HIGH, TAILS_FAR, TAILS_LONE = TAILS_FAR + 6, TAILS_WAYS,
       TAILS_ROOM = TAILS_BLOCK + TAILS_ABREAST * TAILS_WAYS };
#define TAILS_MANY 0x1p200
#define TAILS_MOST_MEAN 0x1p100          /* Poisson means between its inverse and this are computed in blocks */
/* The scalar kernel of the distribution; it ignores arguments that the distribution does not need. */
typedef double (*tails_scalar)(double first, double second, double third);

/* The means of a binomial variable, N p and N (1 - p), and the distance d = x - N p, in double-double. All of them are formed from
 * the smaller of p and 1 - p; x and y are the two counts, N = x + y, and real numbers are allowed. */
typedef struct { dd mean, other, d; } Means;

VECTORS_INLINE Means tails_means(double x, double y, double p, int fused)
{
    dd q = dd_sum(1, -p), n = dd_sum(x, y), m, d, l;
    int swap = p > q.hi;
    double smaller = swap ? q.hi : p, rest = swap ? q.lo : 0, taken = swap ? y : x, left = swap ? x : y;
    Means r;
    m = dd_prod_by(n.hi, smaller, fused);
    m = dd_fast_sum(m.hi, m.lo + (n.hi * rest + n.lo * smaller));
    d = dd_add(dd_make(taken, 0), dd_neg(m));
    l = dd_add(dd_make(left, 0), d);
    r.mean.hi = swap ? l.hi : m.hi;
    r.mean.lo = swap ? l.lo : m.lo;
    r.other.hi = swap ? m.hi : l.hi;
    r.other.lo = swap ? m.lo : l.lo;
    r.d.hi = swap ? -d.hi : d.hi;
    r.d.lo = swap ? -d.lo : d.lo;
    return r;
}

/* The sum of the two deviances in double-double. */
VECTORS_INLINE dd tails_deviances_dd(double x, double y, Means m, int fused)
{
    return dd_add(vector_deviance_dd(dd_make(x, 0), m.mean, m.d, 0, fused),
                  vector_deviance_dd(dd_make(y, 0), m.other, dd_neg(m.d), 0, fused));
}

/* Returns whether the passes accept this parameter: an integer, or a real number of at least 3, for which vector_stirling has an
 * absolute error below 1e-15. */
VECTORS_INLINE int tails_serves(double x) { return (x >= 1) & ((x >= 3) | (x == floor(x))) & (x <= TWO_53); }

/* log Pr[X = x] without the deviances: log(n/(2 pi x y))/2 and Stirling's errors. With negative = 1 the probability has another
 * factor x/n, because the last trial is the x-th success. */
VECTORS_INLINE double tails_rest(double x, double y, double n, int negative)
{
    double over = negative ? x : n, under = negative ? n : x;
    return 0.5 * vector_log(over / (y * 6.283185307179586477 * under)) + (vector_stirling(n) - vector_stirling(x) - vector_stirling(y));
}

/* Writes log Pr[X = x] to out[i], and to deep[i]: 0 if this is accurate, 1 if the deviances are needed in double-double, 2 if the
 * element needs the scalar kernel. The counts x and y are k and n - k, or, with negative = 1, the successes r and the failures k. */
VECTORS_INLINE void pmf_all(const double *first, const double *second, const double *p, int negative, double *out, double *deep,
                            ptrdiff_t count, int fused)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = 0; i < count; i++) {
        double x = negative ? second[i] : first[i], y = negative ? first[i] : second[i] - x, n = negative ? x + y : second[i], v, u, dev;
        Means m = tails_means(x, y, p[i], fused);
        int whole = negative ? tails_serves(x) & (y == floor(y)) : (n == floor(n)) & (x == floor(x));
        int plain = whole & (x >= 1) & (y >= 1) & (n <= TWO_53) & (p[i] >= TINY_P) & (p[i] < 1);
        dev = vector_deviance(x, n * p[i], m.d.hi, &v) + vector_deviance(y, n * (1 - p[i]), -m.d.hi, &u);
        /* The low part of d matters up to an ulp of dev = 32. The derivative of dev by d is 2 (v - u), to first order. */
        out[i] = -dev + (tails_rest(x, y, n, negative) - 2 * (v - u) * m.d.lo);
        deep[i] = plain ? ((dev <= TAILS_PLAIN) & (fabs(v) <= 1 / 3.0) & (fabs(u) <= 1 / 3.0) ? 0.0 : 1.0) : 2.0;
    }
}

VECTORS_INLINE void pmf_deep(const double *first, const double *second, const double *p, int negative, double *out, ptrdiff_t count,
                             int fused)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = 0; i < count; i++) {
        double x = negative ? second[i] : first[i], y = negative ? first[i] : second[i] - x;
        dd dev = tails_deviances_dd(x, y, tails_means(x, y, p[i], fused), fused);
        out[i] = -dev.hi + (tails_rest(x, y, negative ? x + y : second[i], negative) - dev.lo);
    }
}

/* The passes pmf_all and pmf_deep for a Poisson variable. */
VECTORS_INLINE void poisson_all(const double *k, const double *mu, double *out, double *deep, ptrdiff_t count)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = 0; i < count; i++) {
        double x = k[i], v, dev = vector_deviance(x, mu[i], x - mu[i], &v);
        int plain = (x >= 1) & (x <= TWO_53) & (x == floor(x)) & (mu[i] >= 1 / TAILS_MOST_MEAN) & (mu[i] <= TAILS_MOST_MEAN);
        out[i] = -dev - (0.5 * vector_log(6.283185307179586477 * x) + vector_stirling(x));
        deep[i] = plain ? ((dev <= TAILS_PLAIN) & (fabs(v) <= 1 / 3.0) ? 0.0 : 1.0) : 2.0;
    }
}

VECTORS_INLINE void poisson_deep(const double *k, const double *mu, double *out, ptrdiff_t count, int fused)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = 0; i < count; i++) {
        double x = k[i];
        dd dev = vector_deviance_dd(dd_make(x, 0), dd_make(mu[i], 0), dd_sum(x, -mu[i]), 0, fused);
        out[i] = -dev.hi - ((0.5 * vector_log(6.283185307179586477 * x) + vector_stirling(x)) + dev.lo);
    }
}

/* log Pr[X = k] of count <= TAILS_BLOCK elements; law is TAILS_BINOMIAL, TAILS_POISSON or TAILS_NEGATIVE. */
VECTORS_INLINE void pmf_block_body(int law, const double *const *in, double *out, ptrdiff_t count, tails_scalar scalar, int fused)
{
    const double *k = in[0], *n = in[1], *p = law == TAILS_POISSON ? n : in[2];
    double deep[TAILS_BLOCK], some[4][TAILS_BLOCK];
    int at[TAILS_BLOCK];
    ptrdiff_t i, chosen = 0;
    if (law == TAILS_POISSON) poisson_all(k, n, out, deep, count);
    else if (law == TAILS_NEGATIVE) pmf_all(k, n, p, 1, out, deep, count, fused);
    else pmf_all(k, n, p, 0, out, deep, count, fused);
    for (i = 0; i < count; i++) {
        at[chosen] = (int)i;
        chosen += deep[i] == 1;
        if (deep[i] == 2) out[i] = scalar(k[i], n[i], p[i]);
    }
    if (!chosen) return;
    for (i = 0; i < chosen; i++) {
        some[0][i] = k[at[i]];
        some[1][i] = n[at[i]];
        some[2][i] = p[at[i]];
    }
    for (; i % TAILS_ABREAST; i++) {
        some[0][i] = some[0][0];
        some[1][i] = some[1][0];
        some[2][i] = some[2][0];
    }
    if (law == TAILS_POISSON) poisson_deep(some[0], some[1], some[3], i, fused);
    else if (law == TAILS_NEGATIVE) pmf_deep(some[0], some[1], some[2], 1, some[3], i, fused);
    else pmf_deep(some[0], some[1], some[2], 0, some[3], i, fused);
    for (i = 0; i < chosen; i++) out[at[i]] = some[3][i];
}

VECTORS_ENTRY(pmf_block, (int law, const double *const *in, double *out, ptrdiff_t count, tails_scalar scalar),
              (law, in, out, count, scalar))

typedef struct {
    /* The smaller tail is Pr[X >= j] with probability p of success and q of failure, size = n + 1 = j + b, d = j - size p and
     * var = j b/size. Its deviance is dev + dev_lo, and steep is the larger |d/(x + m)| of the two parts of dev. other is 1 if
     * the larger tail is requested. mirror is 1 if failures are counted, so that p is one minus the given probability. plain is 1
     * if the passes can be used. */
    double j[TAILS_ROOM], b[TAILS_ROOM], size[TAILS_ROOM], p[TAILS_ROOM], q[TAILS_ROOM], d[TAILS_ROOM];
    double dev[TAILS_ROOM], dev_lo[TAILS_ROOM], steep[TAILS_ROOM], var[TAILS_ROOM], value[TAILS_ROOM];
    double other[TAILS_ROOM], mirror[TAILS_ROOM], plain[TAILS_ROOM];
} Tails;

/* The state of the continued fraction: p0 and p1 are the denominators of the last two convergents, gap is the product of all u, and
 * odd is the part of the next u that is known. t0..t3 are the coefficients of t as a cubic of the step, and unit2 and rate are the
 * scales of the steps. open is 0 where the fraction has converged. */
typedef struct {
    double p0[TAILS_ROOM], p1[TAILS_ROOM], gap[TAILS_ROOM], odd[TAILS_ROOM], unit2[TAILS_ROOM], rate[TAILS_ROOM], open[TAILS_ROOM];
    double t0[TAILS_ROOM], t1[TAILS_ROOM], t2[TAILS_ROOM], t3[TAILS_ROOM];
} Fraction;

/* Sets the fields of Tails for every element: the smaller tail, and its deviance in plain double; upper as in tails_block_body.
 * The parameters j and b of a tail are
 *   j = k + 1, b = n - k   if more than k of n trials succeed
 *   j = r, b = k + 1       if there are at most k failures before the r-th success, thus at least r successes in k + r trials
 *   j = a, b = b           for the incomplete beta function. */
VECTORS_INLINE void tails_all(int law, const double *first, const double *second, const double *p, double upper, ptrdiff_t count,
                              Tails *t, int fused)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = 0; i < count; i++) {
        double j = law == TAILS_BINOMIAL ? floor(first[i]) + 1 : law == TAILS_NEGATIVE ? second[i] : first[i];
        double b = law == TAILS_BINOMIAL ? second[i] - j + 1 : law == TAILS_NEGATIVE ? floor(first[i]) + 1 : second[i];
        double size = j + b, q = 1 - p[i], v, u, d;
        int whole = law == TAILS_BINOMIAL ? (first[i] >= 0) & (first[i] < second[i]) & (second[i] <= TWO_53) & (second[i] == floor(second[i]))
                                          : tails_serves(j) & tails_serves(b) & (size <= TWO_53)
                                            & ((law == TAILS_BETA) | (first[i] < TWO_53));
        int low, plain = whole & (p[i] >= TINY_P) & (p[i] < 1);
        d = tails_means(j, b, p[i], fused).d.hi;
        low = d < 0;
        t->j[i] = low ? b : j;
        t->b[i] = low ? j : b;
        t->size[i] = size;
        t->p[i] = low ? q : p[i];
        t->q[i] = low ? p[i] : q;
        t->d[i] = fabs(d);
        t->mirror[i] = low ? 1 : 0;
        t->other[i] = (double)low == upper ? 1 : 0;
        t->dev[i] = vector_deviance(t->j[i], size * t->p[i], t->d[i], &v) + vector_deviance(t->b[i], size * t->q[i], -t->d[i], &u);
        t->dev_lo[i] = 0;
        t->steep[i] = fabs(v) > fabs(u) ? fabs(v) : fabs(u);
        t->var[i] = t->j[i] * (t->b[i] / size);
        t->plain[i] = plain ? 1 : 0;
    }
}

/* Sets the same fields for the tail Pr[N > k] of a Poisson variable N of mean mu (shift = 1), or for the incomplete gamma functions
 * at a = k, x = mu (shift = 0). */
VECTORS_INLINE void tails_gamma(const double *k, const double *mu, int shift, double upper, ptrdiff_t count, Tails *t)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = 0; i < count; i++) {
        double x = mu[i], j = shift ? floor(k[i]) + 1 : k[i], d = dd_sum(j, -x).hi, p = x / TAILS_MANY, v;
        int low = d < 0, plain = tails_serves(j) & ((j > k[i]) | !shift) & (x >= 1 / TAILS_MOST_MEAN) & (x <= TAILS_MOST_MEAN);
        t->j[i] = low ? TAILS_MANY : j;
        t->b[i] = low ? j : TAILS_MANY;
        t->size[i] = TAILS_MANY;
        t->p[i] = low ? 1 : p;
        t->q[i] = low ? p : 1;
        t->d[i] = fabs(d);
        t->mirror[i] = low ? 1 : 0;
        t->other[i] = (double)low == upper ? 1 : 0;
        t->dev[i] = vector_deviance(j, x, d, &v);
        t->dev_lo[i] = 0;
        t->steep[i] = fabs(v);
        t->var[i] = j;
        t->plain[i] = plain ? 1 : 0;
    }
}

/* Sets way[i] to the method of element i. The steps of the fraction increase with var/(1 + 0.4 dev), which selects the list. */
VECTORS_INLINE void tails_sort(const Tails *t, ptrdiff_t count, double *way)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = 0; i < count; i++) {
        double dev = t->dev[i], var = t->var[i], square = dev > 3.125 ? 2 * dev : 6.25, close = var / (1 + 0.4 * dev);
        double far = TAILS_FAR + ((close > 1.5 ? 1.0 : 0) + (close > 5 ? 1.0 : 0)) + ((close > 13 ? 1.0 : 0)
            + (close > 26 ? 1.0 : 0)) + (close > 50 ? 1.0 : 0);
        int near = (t->steep[i] <= 1 / 3.0) & (dev <= TAILS_PLAIN) & (square < NEAR_SLOPE * var);
        far = near ? (square < LOW_ORDER_SLOPE * var ? TAILS_LOW : TAILS_HIGH) : far;
        way[i] = t->plain[i] > 0 ? far : TAILS_LONE;
    }
}

/* value = M(s) + B(s)/leading, the uniform expansion (binom_uniform in binomial.h). */
#define NEAR(order)                                                                                                     \
    VECTORS_INLINE void tails_near_##order(Tails *t, ptrdiff_t from, ptrdiff_t to)                                      \
    {                                                                                                                   \
        ptrdiff_t i;                                                                                                    \
        VECTORS_LOOP                                                                                                    \
        for (i = from; i < to; i++) {                                                                                   \
            double leading, s = sqrt(2 * t->dev[i]);                                                                    \
            double more = uniform_##order((t->j[i] - t->b[i]) / t->size[i], 1 / sqrt(t->var[i]), s, &leading);          \
            t->value[i] = vector_mills(s) + more / leading;                                                              \
        }                                                                                                               \
    }
NEAR(9)
NEAR(15)
#undef NEAR

VECTORS_INLINE void tails_near_logs(Tails *t, ptrdiff_t to)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = 0; i < to; i++) {
        double small = vector_exp(-t->dev[i]) * (t->value[i] * INV_SQRT_2PI);
        double log_small = -t->dev[i] + (vector_log(t->value[i]) - LOG_SQRT_2PI);
        t->value[i] = t->other[i] > 0 ? vector_log1m(small) : log_small;
    }
}

/* Computes steps 0 and 1 of a continued fraction for Pr[X >= a]/Pr[X = a], X ~ Bin(a + b - 1, x), and prepares the next steps in f.
 *
 * The fraction 1/(t_0 + u_1/(t_1 + u_2/(t_2 + ...))) is the even part of Gauss's fraction; binom_fraction in binomial.h states t_m
 * and u_m. Its convergents are c_m = q_m/p_m, where p_m follows a recurrence. With g_m = u_1 ... u_m and even m,
 *     c_(m+1) = c_(m-1) + g_m t_(m+1)/(p_(m-1) p_(m+1)),
 * so that the value is a sum of positive terms. The recurrence of p_m accumulates rounding errors, but later terms are small.
 * No step needs a division, because t_m and u_m are multiplied by their denominators. With w = a + 2 m, q = 1 - x and
 * d = a - (a + b) x,
 *     t_m w (w^2-1) = m (b-m) x (w+1) + ((a+m)(1 + d + (2+q) m) + m (m+1))(w-1),
 * a cubic polynomial of m with positive coefficients. As t and u have the size of (d + sqrt(b x))/a, the products are scaled: a and
 * w are divided by a + TAILS_LENGTH, and each step is multiplied by a power of two, so that p_m stays between 1e-20 and 1e60.
 *
 * For an integer b the fraction ends at m = b, where u is 0; u is kept at 0 from there on. For another b, u_m is negative for m > b.
 * The terms then alternate; they are small. */
VECTORS_INLINE void tails_first(Tails *t, ptrdiff_t from, ptrdiff_t to, Fraction *f)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = from; i < to; i++) {
        double a = t->j[i], b = t->b[i], x = t->p[i], d = 1 + t->d[i], slope = 2 + t->q[i], w = a + 2;
        double unit = vector_inverse(a + TAILS_LENGTH), unit2 = unit * unit, rate = unit * vector_inverse(d + sqrt(b * x));
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

/* Computes TAILS_STEPS more steps of the fraction after the first m steps, m odd. The exact value lies between the last two
 * convergents; an element is finished when these convergents agree to 2e-16. Returns whether an element of the list is not
 * finished. */
VECTORS_INLINE int tails_steps(Tails *t, double m, ptrdiff_t from, ptrdiff_t to, Fraction *f)
{
    ptrdiff_t i, r;
    double left[TAILS_ABREAST] = {0};
    VECTORS_LOOP
    for (i = from; i < to; i++) {
        double a = t->j[i], b = t->b[i], x = t->p[i], unit2 = f->unit2[i], rate = f->rate[i], odd = f->odd[i], gap = f->gap[i];
        double t0 = f->t0[i], t1 = f->t1[i], t2 = f->t2[i], t3 = f->t3[i], p0 = f->p0[i], p1 = f->p1[i], old = p1;
        double more, v, turn, u, mid, sum = t->value[i], open = f->open[i], end = b == floor(b) ? 0 : -INFINITY;
        /* Before STEP, p is the denominator of the convergent before the last one; STEP overwrites it with the next denominator. */
#define STEP(r, p, last)                                                                    \
        more = b - (m + r);                                                                 \
        v = a + (2 * (m + r) - 1);                                                          \
        turn = t0 + (m + r) * (t1 + (m + r) * (t2 + (m + r) * t3));                         \
        u = odd * ((more > end ? more : end) * x * ((m + r) * rate)) * ((v * v - 4) * unit2);   \
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
        open = fabs(gap) <= 2e-16 * (sum * (p0 * p1)) ? 0 : open;
        f->p0[i] = p0;
        f->p1[i] = p1;
        f->odd[i] = odd;
        f->gap[i] = gap;
        f->open[i] = open;
        t->value[i] = sum;
    }
    /* a sum in one variable would keep compilers from vectorising the loop */
    for (i = from; i < to; i += TAILS_ABREAST)
        for (r = 0; r < TAILS_ABREAST; r++) left[r] += f->open[i + r];
    for (r = 1; r < TAILS_ABREAST; r++) left[0] += left[r];
    return left[0] > 0;
}

/* Recomputes dev for one group, where |d/(x + m)| of one of its two parts is too large for the polynomial. */
VECTORS_INLINE void tails_steep(Tails *t, ptrdiff_t from)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = from; i < from + TAILS_ABREAST; i++) {
        double x = t->j[i], m = t->size[i] * t->p[i], d = t->d[i], v, u;
        double first = vector_deviance(x, m, d, &v), plain = x * vector_log(x / m) - d, second, y = t->b[i], l = t->size[i] * t->q[i];
        second = vector_deviance(y, l, -d, &u);
        first = fabs(v) <= 1 / 3.0 ? first : plain;
        plain = y * vector_log(y / l) + d;
        second = fabs(u) <= 1 / 3.0 ? second : plain;
        t->dev[i] = first + second;
    }
}

/* Recomputes dev + dev_lo in double-double for one group, where dev is above TAILS_PLAIN. Values are loaded before one of them is
 * chosen, and the results are stored in a second loop: clang vectorises no loop with conditional loads or stores. */
VECTORS_INLINE void tails_deep(Tails *t, int law, ptrdiff_t from, int fused)
{
    int gamma = law == TAILS_POISSON || law == TAILS_GAMMA;
    const double *one = t->j + from, *two = t->b + from, *yes = t->p + from, *no = t->q + from, *flip = t->mirror + from;
    double hi[TAILS_ABREAST], lo[TAILS_ABREAST];
    ptrdiff_t i;
    if (gamma) {
        VECTORS_LOOP
        for (i = 0; i < TAILS_ABREAST; i++) {
            double first = one[i], second = two[i], p = yes[i], q = no[i], j = flip[i] > 0 ? second : first;
            double mu = (flip[i] > 0 ? q : p) * TAILS_MANY;
            dd dev = vector_deviance_dd(dd_make(j, 0), dd_make(mu, 0), dd_sum(j, -mu), 0, fused);
            hi[i] = dev.hi;
            lo[i] = dev.lo;
        }
    } else {
        VECTORS_LOOP
        for (i = 0; i < TAILS_ABREAST; i++) {
            double first = one[i], second = two[i], p = yes[i], q = no[i], j = flip[i] > 0 ? second : first;
            double b = flip[i] > 0 ? first : second, chance = flip[i] > 0 ? q : p;
            dd dev = tails_deviances_dd(j, b, tails_means(j, b, chance, fused), fused);
            hi[i] = dev.hi;
            lo[i] = dev.lo;
        }
    }
    for (i = 0; i < TAILS_ABREAST; i++) {
        int deep = t->dev[from + i] > TAILS_PLAIN;
        t->dev[from + i] = deep ? hi[i] : t->dev[from + i];
        t->dev_lo[from + i] = deep ? lo[i] : 0;
    }
}

/* Stirling's error. For arguments above 2^53 the result is that of 2^53, which is below 1e-17. */
VECTORS_INLINE double tails_stirling(double n) { return vector_stirling(n < TWO_53 ? n : TWO_53); }

VECTORS_INLINE void tails_far_logs(Tails *t, const Fraction *f, ptrdiff_t from, ptrdiff_t to)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = from; i < to; i++) {
        double j = t->j[i], b = t->b[i], size = t->size[i], value = t->value[i], log_small, big;
        double extra = tails_stirling(size) - tails_stirling(j) - tails_stirling(b);
        log_small = -t->dev[i] + (0.5 * vector_log(b * value * value / (6.283185307179586477 * j * size)) - t->dev_lo[i] + extra);
        big = vector_log1mexp(log_small);
        big = t->other[i] > 0 ? big : log_small;
        t->value[i] = f->open[i] > 0 ? 1 : big;
    }
}

/* Writes the log tails of the elements whose method is the continued fraction, or 1 if it has not converged; first has the start of
 * each of the six lists. */
VECTORS_INLINE void tails_far(Tails *t, int law, const ptrdiff_t *first, int fused)
{
    Fraction f;
    ptrdiff_t i, r, from = first[TAILS_FAR], to = first[TAILS_LONE];
    int w, m;
    for (i = from; i < to; i += TAILS_ABREAST) {
        double steep = 0, deep = 0;
        for (r = i; r < i + TAILS_ABREAST; r++) steep = t->steep[r] > steep ? t->steep[r] : steep;
        if (steep > 1 / 3.0) tails_steep(t, i);
        for (r = i; r < i + TAILS_ABREAST; r++) deep = t->dev[r] > deep ? t->dev[r] : deep;
        if (deep > TAILS_PLAIN) tails_deep(t, law, i, fused);
    }
    tails_first(t, from, to, &f);
    for (w = TAILS_FAR; w < TAILS_LONE; w++)
        for (m = 1; first[w] < first[w + 1] && m < TAILS_MOST_STEPS; m += TAILS_STEPS)
            if (!tails_steps(t, m, first[w], first[w + 1], &f)) break;
    tails_far_logs(t, &f, from, to);
}

/* Writes to `at` the elements sorted by method; each list is padded to a multiple of TAILS_ABREAST by repeating its first element.
 * first[w] and last[w] are the places in `at` where list w begins and where its elements end. Every other element is put at the
 * end of its list, so that the counts of two neighbours do not depend on each other. */
VECTORS_INLINE void tails_list(const double *way, ptrdiff_t count, int *at, ptrdiff_t *first, ptrdiff_t *last)
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

/* Writes log Pr[X > k] (upper = 1) or log Pr[X <= k] (upper = 0) of count <= TAILS_BLOCK elements. For the incomplete gamma and
 * beta functions upper = 1 stands for the lower function, log P and log I_x. */
VECTORS_INLINE void tails_block_body(int law, const double *const *in, double *out, ptrdiff_t count, double upper, tails_scalar scalar,
                                     int fused)
{
    int gamma = law == TAILS_POISSON || law == TAILS_GAMMA;
    const double *k = in[0], *n = in[1], *p = gamma ? n : in[2];
    Tails all, some;
    double way[TAILS_BLOCK];
    int at[TAILS_ROOM], w;
    ptrdiff_t i, first[TAILS_WAYS + 1], last[TAILS_WAYS];
    if (gamma) {
        tails_gamma(k, n, law == TAILS_POISSON, upper, count, &all);
    } else if (law == TAILS_BINOMIAL) {
        tails_all(TAILS_BINOMIAL, k, n, p, upper, count, &all, fused);
    } else if (law == TAILS_NEGATIVE) {
        tails_all(TAILS_NEGATIVE, k, n, p, 1 - upper, count, &all, fused);
    } else {
        tails_all(TAILS_BETA, k, n, p, upper, count, &all, fused);
    }
    tails_sort(&all, count, way);
    tails_list(way, count, at, first, last);
    w = last[TAILS_LOW] == count ? TAILS_LOW : TAILS_HIGH;
    if (last[w] - first[w] == count) {
        if (w == TAILS_LOW) tails_near_9(&all, 0, count); else tails_near_15(&all, 0, count);
        tails_near_logs(&all, count);
        memcpy(out, all.value, (size_t)count * sizeof *out);
        return;
    }
    for (i = 0; i < first[TAILS_LONE]; i++) {
        int from = at[i];
#define PACK(name) some.name[i] = all.name[from]
        PACK(j); PACK(b); PACK(size); PACK(p); PACK(q); PACK(d); PACK(dev); PACK(dev_lo); PACK(steep); PACK(var); PACK(other);
        PACK(mirror);
#undef PACK
    }
    tails_near_9(&some, first[TAILS_LOW], first[TAILS_HIGH]);
    tails_near_15(&some, first[TAILS_HIGH], first[TAILS_FAR]);
    tails_near_logs(&some, first[TAILS_FAR]);
    if (first[TAILS_FAR] < first[TAILS_LONE]) tails_far(&some, law, first, fused);
    for (w = 0; w < TAILS_LONE; w++)
        for (i = first[w]; i < last[w]; i++)
            out[at[i]] = some.value[i] <= 0 ? some.value[i] : scalar(k[at[i]], n[at[i]], p[at[i]]);
    for (i = first[TAILS_LONE]; i < last[TAILS_LONE]; i++) out[at[i]] = scalar(k[at[i]], n[at[i]], p[at[i]]);
}

VECTORS_ENTRY(tails_block, (int law, const double *const *in, double *out, ptrdiff_t count, double upper, tails_scalar scalar),
              (law, in, out, count, upper, scalar))

#endif
