/* The passes of _sum_bound.pyx that bound E(S + u)_+ for many numbers u, and those over bins of outputs, written so that a compiler
 * can vectorise them; _sum_bound.pyx has the formulas. */
#ifndef SHUFFLEBOUNDS_COVER_H
#define SHUFFLEBOUNDS_COVER_H

#include <math.h>
#include <stddef.h>
#include "vectors.h"

enum { COVER_BLOCK = 64 };

/* Sets out[i] to the smaller of two bounds for u = more[i]. One is the smallest e^(theta[t] u + best[t stride]) over the rows t.
 * The other is the largest (m + r)/2 + error (|m| + r) over j, with m = u + means[j] and r = (m^2 + variances[j])^(1/2). The
 * exponents are raised by their rounding errors, and to -700 if they are smaller; those above 700 are not used. */
static VECTORS_CLONES void cover_positive(const double *more, ptrdiff_t n, const double *theta, const double *best, ptrdiff_t stride,
                                          ptrdiff_t rows, const double *means, const double *variances, ptrdiff_t pairs,
                                          double error, double unit, double *out)
{
    double lowest[COVER_BLOCK], simple[COVER_BLOCK];
    ptrdiff_t i, j, first;
    for (first = 0; first < n; first += COVER_BLOCK) {
        ptrdiff_t size = n - first < COVER_BLOCK ? n - first : COVER_BLOCK;
        const double *u = more + first;
        for (i = 0; i < size; i++) {
            lowest[i] = INFINITY;
            simple[i] = 0;
        }
        for (j = 0; j < rows; j++) {
            double power = best[j * stride], each = theta[j];
            VECTORS_LOOP
            for (i = 0; i < size; i++) {
                double up = each * u[i], exponent = (up + power) + 4 * unit * (fabs(up) + fabs(power));
                lowest[i] = exponent < lowest[i] ? exponent : lowest[i];
            }
        }
        for (j = 0; j < pairs; j++) {
            double move = means[j], square = variances[j];
            VECTORS_LOOP
            for (i = 0; i < size; i++) {
                double mean = u[i] + move, root = sqrt(mean * mean + square);
                double value = 0.5 * (mean + root) + error * (fabs(mean) + root);
                simple[i] = value > simple[i] ? value : simple[i];
            }
        }
        VECTORS_LOOP
        for (i = 0; i < size; i++) {
            double low = lowest[i] < -700 ? -700 : lowest[i], high = vector_exp(low > 700 ? 700 : low);
            out[first + i] = low > 700 || high > simple[i] ? simple[i] : high;
        }
    }
}

/* `table` has seven rows, `stride` apart, for n bins: the mass of a bin, then the mean, the smallest and the largest value of a in
 * the bin, and the same of b. Writes for each bin an interval (low, high) of values of up a - down b, raised to at least `bottom`.
 * Divides the mass times `share` between low and high such that the mean is kept; each part is at least `tiny`. Writes the
 * logarithms of the parts, too. */
static VECTORS_CLONES void cover_bins(const double *table, ptrdiff_t stride, ptrdiff_t n, double up, double down, double share,
                                      double bottom, double tiny, double *low, double *high, double *low_mass, double *high_mass,
                                      double *low_log, double *high_log)
{
    const double *mean_a = table + stride, *low_a = mean_a + stride, *high_a = low_a + stride;
    const double *mean_b = high_a + stride, *low_b = mean_b + stride, *high_b = low_b + stride;
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = 0; i < n; i++) {
        double from = low_a[i] * up - high_b[i] * down, to = high_a[i] * up - low_b[i] * down, mean, width, part, one, two;
        from = from > bottom ? from : bottom;
        to = to > bottom ? to : bottom;
        width = to - from;
        mean = mean_a[i] * up - mean_b[i] * down - from;
        part = width != 0 ? mean / width : 0;
        part = part > 0 ? part : 0;
        part = part < 1 ? part : 1;
        one = table[i] * (1 - part) * share;
        two = table[i] * part * share;
        one = one > tiny ? one : tiny;
        two = two > tiny ? two : tiny;
        low[i] = from;
        high[i] = to;
        low_mass[i] = one;
        high_mass[i] = two;
        low_log[i] = vector_log(one);
        high_log[i] = vector_log(two);
    }
}

/* Writes unit sinh(m step) for the n integers from m = first on. Opposite m give opposite values; step |m| is at most 700. */
static VECTORS_CLONES void cover_nodes(ptrdiff_t first, ptrdiff_t n, double unit, double step, double *out)
{
    ptrdiff_t i;
    VECTORS_LOOP
    for (i = 0; i < n; i++) {
        uint64_t power;
        double m = (double)(first + i), rest = vector_exp_rest(step * fabs(m), &power);
        double scale = vector_double(vector_bits(1) + (power << 52)), more = scale * rest + (scale - 1);
        double value = 0.5 * unit * (more + more / (1 + more));
        out[i] = m < 0 ? -value : value;
    }
}

#endif
