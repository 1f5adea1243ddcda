/* Upper tails of hypergeometric distributions in passes that a compiler can vectorise (vectors.h). The formulas are those of
 * _hypergeom.pyx.
 *
 * The points are sorted by method. Each pass computes HYPERGEOM_ABREAST points side by side:
 *   expansion   the uniform expansion, of order 7, 9 or 11
 *   sum         the sum of the terms, whose lists are sorted by the expected number of terms, so that points of a group end together
 * The method of a point depends on its own arguments only, and every instruction set performs the same operations. Therefore a point
 * has the same bits alone, in any block, and on every instruction set.
 *
 * Cost     in ns a point with AVX-512: the expansions 53, 67 and 85, with deviances in double-double 40 more; a sum 20 and 0.4 a term.
 *          AVX2 takes 1.2 times as long, the baseline 2 times.
 */
#ifndef SHUFFLEBOUNDS_HYPERGEOM_H
#define SHUFFLEBOUNDS_HYPERGEOM_H

#include "constants.h"
#include "vectors.h"

enum { HYPERGEOM_BLOCK = 256, HYPERGEOM_ABREAST = 8, HYPERGEOM_ORDER = 11 };
/* The methods of an element: the expansions of orders 7, 9 and 11, sums in 64 lists by their expected number of terms, the scalar
 * kernel. */
enum { HYPERGEOM_EXPAND, HYPERGEOM_SUM = HYPERGEOM_EXPAND + 3, HYPERGEOM_LONE = HYPERGEOM_SUM + 64, HYPERGEOM_WAYS };
/* The expansion of an order is used if max(s, 2.5)^2 is below this multiple of sigma^2, and order 11 only above the variance. */
#define HYPERGEOM_SLOPE_7 9e-4
#define HYPERGEOM_SLOPE_9 6.4e-3
#define HYPERGEOM_SLOPE_11 2.25e-2
#define HYPERGEOM_WIDE 2500.0

/* Up to HYPERGEOM_BLOCK points j of hypergeometric distributions. at is the place of a point in another array, value the result. */
typedef struct {
    ptrdiff_t count;
    int at[HYPERGEOM_BLOCK];
    double j[HYPERGEOM_BLOCK], total[HYPERGEOM_BLOCK], marked[HYPERGEOM_BLOCK], draws[HYPERGEOM_BLOCK], value[HYPERGEOM_BLOCK];
} Points;

#define LANES VECTORS_LOOP for (r = 0; r < HYPERGEOM_ABREAST; r++)

/* (total + 2)(j - m_0) = j (total + 2) - (marked + 1)(draws + 1) in double-double; m_0 as in the header of _hypergeom.pyx. */
VECTORS_INLINE dd hypergeom_distance(double j, double total, double marked, double draws, int fused)
{
    dd lead = dd_add(dd_prod_by(j, total, fused), dd_neg(dd_prod_by(marked, draws, fused)));
    return dd_add(lead, dd_add(dd_sum(j - marked, j - draws), dd_make(-1, 0)));
}

VECTORS_INLINE int hypergeom_whole(double n) { return (n >= 0) & (n <= TWO_53) & (n == floor(n)); }

/* Writes for every element k, total, marked, draws: to t the point whose upper tail is the smaller one of Pr[X > k] and Pr[X <= k];
 * to other whether the larger one is wanted, that is, Pr[X > k] (upper = 1) or Pr[X <= k] (upper = 0); and to way the method. The
 * expected number of terms of a sum is the number after which a term is below e^-40, estimated from its slope at j and the variance
 * of X. */
VECTORS_INLINE void hypergeom_sort_body(const double *const *in, ptrdiff_t count, double upper, Points *t, double *other, double *way,
                                        int fused)
{
    ptrdiff_t i;
    t->count = count;
    VECTORS_LOOP
    for (i = 0; i < count; i++) {
        double k = floor(in[0][i]), total = in[1][i], marked = in[2][i], draws = in[3][i], size = total + 2;
        double rest = total - marked - draws, distance = hypergeom_distance(k + 1, total, marked, draws, fused).hi, d = distance / size;
        double var = (marked + 1) / size * (draws + 1) * ((total - marked + 1) / size) * ((total - draws + 1) / size);
        double square = d * d > 6.25 * var ? d * d / var : 6.25, straight = (k + 1) * (rest + k + 1), crossed = (marked - k) * (draws - k);
        double w = 2 * fabs(straight - crossed) / (straight + crossed), terms = 80 / (w + sqrt(w * w + 80 / var));
        double list = HYPERGEOM_SUM + (terms < 512 ? floor(terms / 8) : HYPERGEOM_LONE - HYPERGEOM_SUM - 1);
        int plain = hypergeom_whole(total) & hypergeom_whole(marked) & hypergeom_whole(draws) & (marked <= total) & (draws <= total)
            & (k >= 0) & (k >= -rest) & (k < marked) & (k < draws), lower = distance < 0;
        t->j[i] = lower ? marked - k : k + 1;
        t->total[i] = total;
        t->marked[i] = marked;
        t->draws[i] = lower ? total - draws : draws;
        other[i] = (double)lower == upper ? 1 : 0;
        list = (square < HYPERGEOM_SLOPE_11 * var) & (var > HYPERGEOM_WIDE) ? HYPERGEOM_EXPAND + 2 : list;
        list = square < HYPERGEOM_SLOPE_9 * var ? HYPERGEOM_EXPAND + 1 : list;
        list = square < HYPERGEOM_SLOPE_7 * var ? HYPERGEOM_EXPAND : list;
        way[i] = plain ? list : HYPERGEOM_LONE;
    }
}

VECTORS_ENTRY(hypergeom_sort, (const double *const *in, ptrdiff_t count, double upper, Points *t, double *other, double *way),
              (in, count, upper, t, other, way))

/* Replaces value, the log of the smaller tail, by log(1 - e^value) if the larger tail is requested. The smaller tail is at most
 * 1 - 1/e. */
VECTORS_INLINE void hypergeom_complete_body(const double *other, double *value, ptrdiff_t count, int fused)
{
    ptrdiff_t i;
    (void)fused;
    VECTORS_LOOP
    for (i = 0; i < count; i++) {
        double large = vector_log1mexp(value[i]);
        value[i] = other[i] > 0 ? large : value[i];
    }
}

VECTORS_ENTRY(hypergeom_complete, (const double *other, double *value, ptrdiff_t count), (other, value, count))

typedef double Lanes[HYPERGEOM_ABREAST];

/* sum_(m = from..n) u_m v_(n-m), a coefficient of the product of two series. */
VECTORS_INLINE void hypergeom_product(const Lanes *u, const Lanes *v, int from, int n, double *out)
{
    Lanes sum;
    int r, m;
    LANES sum[r] = 0;
    for (m = from; m <= n; m++) LANES sum[r] += u[m][r] * v[n - m][r];
    LANES out[r] = sum[r];
}

/* The coefficients e_n of the expansion of (dy/dt) h in powers of t = s/sigma, n <= order, h scaled to 1 at t = 0; g are the four
 * numbers g_i with their signs. Formulas: the header of _hypergeom.pyx. */
VECTORS_INLINE void hypergeom_series(const Lanes *g, const double *var, int order, Lanes *e)
{
    /* The coefficients of powers of t of: y; z, its derivative; l, K'(y); k, K''(y), the sum of four terms c; h. */
    Lanes y[HYPERGEOM_ORDER + 2], z[HYPERGEOM_ORDER + 1], l[HYPERGEOM_ORDER + 2], k[HYPERGEOM_ORDER + 1], c[4][HYPERGEOM_ORDER + 1];
    Lanes h[HYPERGEOM_ORDER + 1], sum, other;
    int i, n, r;
    LANES z[0][r] = y[1][r] = l[1][r] = k[0][r] = h[0][r] = 1;
    for (i = 0; i < 4; i++) LANES c[i][0][r] = fabs(g[i][r]);
    for (n = 1; n <= order; n++) {
        const double part = 1 / (n + 1.0);
        LANES k[n][r] = 0;
        for (i = 0; i < 4; i++) {
            /* c = g/(1 + g y), so that c + g y c = g */
            hypergeom_product(y, c[i], 1, n, sum);
            LANES c[i][n][r] = -g[i][r] * sum[r];
            LANES k[n][r] += c[i][n][r];
        }
        /* K'(y) z = t, and the derivative of K'(y) is K''(y) z */
        LANES l[n + 1][r] = 0;
        hypergeom_product(k, z, 1, n, sum);
        hypergeom_product(l + 1, z, 1, n, other);
        LANES z[n][r] = -(other[r] + part * sum[r]) * ((n + 1) / (n + 2.0));
        LANES l[n + 1][r] = part * (z[n][r] + sum[r]);
        LANES y[n + 1][r] = part * z[n][r];
    }
    /* log h = K''(y)/(24 sigma^2) - 7/2880 sum |c|^3/sigma^6; k becomes its derivative, with two terms of the second part */
    LANES other[r] = 1 / (24 * var[r]);
    for (n = 1; n <= order; n++) LANES k[n][r] *= n * other[r];
    LANES {
        double q0 = g[0][r] * g[0][r], q1 = g[1][r] * g[1][r], q2 = g[2][r] * g[2][r], q3 = g[3][r] * g[3][r];
        double fourth = (q0 * q0 - q1 * q1) - (q2 * q2 - q3 * q3), cube = 7 / 2880.0 / (var[r] * var[r] * var[r]);
        double fifth = (q0 * q0 * g[0][r] - q1 * q1 * g[1][r]) - (q2 * q2 * g[2][r] - q3 * q3 * g[3][r]);
        k[1][r] += 3 * cube * fourth;
        k[2][r] -= 2 * cube * (6 * fifth - 3 * fourth * y[2][r]);
    }
    for (n = 1; n <= order; n++) {
        hypergeom_product(k, h, 1, n, sum);
        LANES h[n][r] = sum[r] * (1.0 / n);
    }
    for (n = 0; n <= order; n++) hypergeom_product(z, h, 0, n, e[n]);
}

/* log Pr[X >= j] of a group of points by the uniform expansion. */
VECTORS_INLINE void hypergeom_expand(const double *j, const double *total, const double *marked, const double *draws, int order,
                                     double *value, int fused)
{
    Lanes g[4], a[4], e[HYPERGEOM_ORDER + 1], var, dev, low, large, scale, power, up, part[2], more, s, mills, leading;
    double deep = 0, factor = 1;
    int n, r;
    LANES {
        double size = total[r] + 2, d = hypergeom_distance(j[r], total[r], marked[r], draws[r], fused).hi / size, v;
        double yes = (marked[r] + 1) / size, no = (total[r] - marked[r] + 1) / size;
        double in = (draws[r] + 1) / size, out = (total[r] - draws[r] + 1) / size;
        a[0][r] = j[r];
        a[1][r] = (marked[r] - j[r]) + 1;
        a[2][r] = (draws[r] - j[r]) + 1;
        a[3][r] = (total[r] - marked[r] - draws[r]) + j[r];
        g[0][r] = no * out;
        g[1][r] = -(no * in);
        g[2][r] = -(yes * out);
        g[3][r] = yes * in;
        var[r] = size * ((yes * no) * (in * out));
        dev[r] = (vector_deviance(a[0][r], size * (yes * in), d, &v) + vector_deviance(a[1][r], size * (yes * out), -d, &v))
            + (vector_deviance(a[2][r], size * (no * in), -d, &v) + vector_deviance(a[3][r], size * (no * out), d, &v));
        low[r] = 0;
        large[r] = dev[r] > TAILS_PLAIN ? 1 : 0;
    }
    for (r = 0; r < HYPERGEOM_ABREAST; r++) deep += large[r];
    if (deep > 0) {
        LANES {
            dd size = dd_sum(total[r], 2), d = dd_div_by(hypergeom_distance(j[r], total[r], marked[r], draws[r], fused), size, fused);
            dd yes = dd_sum(marked[r], 1), in = dd_sum(draws[r], 1), no = dd_add(size, dd_neg(yes)), out = dd_add(size, dd_neg(in));
            dd sum = vector_deviance_dd(dd_make(a[0][r], 0), dd_div_by(dd_mul_by(yes, in, fused), size, fused), d, 0, fused);
            dd minus = dd_neg(d);
            sum = dd_add(sum, vector_deviance_dd(dd_make(a[1][r], 0), dd_div_by(dd_mul_by(yes, out, fused), size, fused), minus, 0, fused));
            sum = dd_add(sum, vector_deviance_dd(dd_make(a[2][r], 0), dd_div_by(dd_mul_by(no, in, fused), size, fused), minus, 0, fused));
            sum = dd_add(sum, vector_deviance_dd(dd_make(a[3][r], 0), dd_div_by(dd_mul_by(no, out, fused), size, fused), d, 0, fused));
            low[r] = large[r] > 0 ? sum.lo : 0;
            dev[r] = large[r] > 0 ? sum.hi : dev[r];
        }
    }
    hypergeom_series(g, var, order, e);
    LANES s[r] = sqrt(2 * dev[r]);
    LANES mills[r] = vector_mills(s[r] < SMALL_MILLS_MOST ? s[r] : SMALL_MILLS_MOST);
    if (deep > 0) {
        /* two loops: clang vectorises no loop in which a value is computed for some lanes only */
        LANES more[r] = vector_mills_large(s[r]);
        LANES mills[r] = large[r] > 0 ? more[r] : mills[r];
    }
    /* J_n = int_s^inf t^n e^-((t^2 - s^2)/2) dt is s^(n-1) + (n-1) J_(n-2), J_0 = M(s), J_1 = 1. The part (n-1)!! M(s) of J_n, n
     * even, is omitted here; these parts sum to leading times M(s). */
    LANES {
        scale[r] = 1 / sqrt(var[r]);
        leading[r] = e[0][r];
        more[r] = e[1][r] * scale[r];
        part[0][r] = 0;
        part[1][r] = 1;
        power[r] = scale[r] * scale[r];
        up[r] = s[r];
    }
    for (n = 2; n <= order; n++) {
        double *same = part[n % 2];
        if (n % 2 == 0) factor *= n - 1;
        LANES {
            double term = e[n][r] * power[r];
            same[r] = up[r] + (n - 1) * same[r];
            more[r] += term * same[r];
            leading[r] += n % 2 == 0 ? term * factor : 0;
            up[r] *= s[r];
            power[r] *= scale[r];
        }
    }
    LANES {
        /* l1 to l7 the derivatives of log f at the edge, f2 to f7 those of f divided by f */
        double b0 = 1 / a[0][r], b1 = 1 / a[1][r], b2 = 1 / a[2][r], b3 = 1 / a[3][r];
        double c0 = b0 * b0, c1 = b1 * b1, c2 = b2 * b2, c3 = b3 * b3, q0 = c0 * c0, q1 = c1 * c1, q2 = c2 * c2, q3 = c3 * c3;
        double inverse = (b0 + b3) + (b1 + b2), square = (c0 - c1) - (c2 - c3), cube = (c0 * b0 + c1 * b1) + (c2 * b2 + c3 * b3);
        double straight = a[0][r] * a[3][r], crossed = a[1][r] * a[2][r];
        double v = hypergeom_distance(j[r], total[r], marked[r], draws[r], fused).hi / (straight + crossed), w = v * v;
        double l1 = -2 * v * (1 + w * vector_atanh(w)) - square / 24, l2 = cube / 12 - inverse, l3 = square, l4 = -2 * cube;
        double l5 = 6 * ((q0 - q1) - (q2 - q3)), l6 = -24 * ((q0 * b0 + q1 * b1) + (q2 * b2 + q3 * b3));
        double l7 = 120 * ((q0 * c0 - q1 * c1) - (q2 * c2 - q3 * c3)), f2 = l1 * l1 + l2, f3 = l1 * f2 + 2 * l2 * l1 + l3;
        double f4 = l1 * f3 + 3 * (l2 * f2 + l3 * l1) + l4, f5 = l1 * f4 + 4 * (l2 * f3 + l4 * l1) + 6 * l3 * f2 + l5;
        double f6 = l1 * f5 + 5 * (l2 * f4 + l5 * l1) + 10 * (l3 * f3 + l4 * f2) + l6;
        double f7 = l1 * f6 + 6 * (l2 * f5 + l6 * l1) + 15 * (l3 * f4 + l5 * f2) + 20 * l4 * f3 + l7;
        double edge = (l1 / 24 - (7 / 5760.0) * f3) + ((31 / 967680.0) * f5 - (127 / 154828800.0) * f7);
        more[r] += (1 + (inverse - 1 / var[r]) / 24) * edge * scale[r];
        value[r] = -dev[r] + (vector_log(mills[r] + more[r] / leading[r]) - LOG_SQRT_2PI - low[r]);
    }
}

/* log sum_(i >= 0) Pr[X = j + i]/Pr[X = j] of a group of points, from the ratios of neighbours
 * Pr[X = k + 1]/Pr[X = k] = (marked - k)(draws - k)/((k + 1)(rest + k + 1)). One division serves four ratios. All terms are
 * positive. At the end of the support the numerator is 0, so that all later terms are 0. */
VECTORS_INLINE void hypergeom_sum(const double *j, const double *total, const double *marked, const double *draws, double *value)
{
    Lanes sum, term, open;
    double left, k = 0;
    int r;
    LANES sum[r] = term[r] = open[r] = 1;
    do {
        LANES {
            double i = j[r] + k, m = marked[r] - i, d = draws[r] - i, q = (total[r] - marked[r] - draws[r]) + i;
            double a0 = m * d, a01 = a0 * ((m - 1) * (d - 1)), a012 = a01 * ((m - 2) * (d - 2)), all = a012 * ((m - 3) * (d - 3));
            double b0 = (i + 1) * (q + 1), b1 = (i + 2) * (q + 2), b2 = (i + 3) * (q + 3), b3 = (i + 4) * (q + 4), b23 = b2 * b3;
            double inverse = open[r] * term[r] / ((b0 * b1) * b23);
            sum[r] += ((a0 * (b1 * b23) + a01 * b23) + (a012 * b3 + all)) * inverse;
            term[r] = all * inverse;
            open[r] = term[r] > 1e-17 * sum[r] ? 1 : 0;
        }
        left = 0;
        for (r = 0; r < HYPERGEOM_ABREAST; r++) left += open[r];
        k += 4;
    } while (left > 0);
    LANES value[r] = vector_log(sum[r]);
}

/* Writes to value, for points in groups of one method (way, that of the first group; count is a multiple of HYPERGEOM_ABREAST):
 * log Pr[X >= j] by the expansions, and log(Pr[X >= j]/Pr[X = j]) by sums. */
VECTORS_INLINE void hypergeom_groups_body(Points *t, int way, int fused)
{
    ptrdiff_t i;
    for (i = 0; i < t->count; i += HYPERGEOM_ABREAST) {
        const double *j = t->j + i, *total = t->total + i, *marked = t->marked + i, *draws = t->draws + i;
        double *value = t->value + i;
        if (way == HYPERGEOM_EXPAND)
            hypergeom_expand(j, total, marked, draws, 7, value, fused);
        else if (way == HYPERGEOM_EXPAND + 1)
            hypergeom_expand(j, total, marked, draws, 9, value, fused);
        else if (way == HYPERGEOM_EXPAND + 2)
            hypergeom_expand(j, total, marked, draws, HYPERGEOM_ORDER, value, fused);
        else
            hypergeom_sum(j, total, marked, draws, value);
    }
}

VECTORS_ENTRY(hypergeom_groups, (Points *t, int way), (t, way))

#undef LANES
#endif
