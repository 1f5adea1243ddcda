/* Passes over tilted masses, and over spectra, on a grid, written so that a compiler can vectorise them.
 *
 * Sums run in 8 lanes over chunks of 256 terms, which are added in double-double: of n positive terms they have a relative error of
 * at most 36 units in the last place, whatever n is. Every instruction set gives the same bits.
 */
#ifndef SHUFFLEBOUNDS_TILTING_H
#define SHUFFLEBOUNDS_TILTING_H

#include <math.h>
#include <stddef.h>
#include "dd.h"
#include "vectors.h"

enum { TILTING_CHUNK = 256 };

/* The sum of the products of count numbers, count a multiple of 8, at most TILTING_CHUNK. */
VECTORS_INLINE double tilting_sum(const double *x, const double *y, ptrdiff_t count)
{
    double s[8] = {0};
    ptrdiff_t i, j;
    for (i = 0; i < count; i += 8)
        for (j = 0; j < 8; j++) s[j] += x[i + j] * y[i + j];
    return ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
}

/* Sets out to the logarithm of sum e^(logs + rate place), and to the mean and the variance of `place` with these weights, of n >= 1
 * numbers. The largest logs + rate place is finite; terms below e^-700 of the largest count as e^-700 of it. `weight` has room for n
 * numbers. */
static VECTORS_CLONES void tilting_moments(const double *logs, const double *place, ptrdiff_t n, double rate, double *weight, double *out)
{
    double high[8], w[TILTING_CHUNK], x[TILTING_CHUNK], one[TILTING_CHUNK], top;
    dd total = {0, 0}, first = {0, 0}, second = {0, 0};
    ptrdiff_t start, i, j, count, padded;
    for (j = 0; j < 8; j++) high[j] = logs[0] + rate * place[0];
    for (i = 0; i + 8 <= n; i += 8)
        for (j = 0; j < 8; j++) {
            weight[i + j] = logs[i + j] + rate * place[i + j];
            high[j] = weight[i + j] > high[j] ? weight[i + j] : high[j];
        }
    for (; i < n; i++) {
        weight[i] = logs[i] + rate * place[i];
        high[0] = weight[i] > high[0] ? weight[i] : high[0];
    }
    top = high[0];
    for (j = 1; j < 8; j++) top = high[j] > top ? high[j] : top;
    for (i = 0; i < TILTING_CHUNK; i++) one[i] = 1;
    VECTORS_LOOP
    for (i = 0; i < n; i++) {
        double depth = weight[i] - top;
        weight[i] = vector_exp(depth > -700 ? depth : -700);
    }
    for (start = 0; start < n; start += count) {
        count = n - start < TILTING_CHUNK ? n - start : TILTING_CHUNK;
        padded = (count + 7) & ~(ptrdiff_t)7;
        for (i = 0; i < count; i++) w[i] = weight[start + i];
        for (i = 0; i < count; i++) x[i] = place[start + i];
        for (; i < padded; i++) w[i] = x[i] = 0;
        total = dd_add(total, dd_make(tilting_sum(w, one, padded), 0));
        first = dd_add(first, dd_make(tilting_sum(w, x, padded), 0));
    }
    out[0] = top + log(total.hi);
    out[1] = first.hi / total.hi;
    for (start = 0; start < n; start += count) {
        count = n - start < TILTING_CHUNK ? n - start : TILTING_CHUNK;
        padded = (count + 7) & ~(ptrdiff_t)7;
        for (i = 0; i < count; i++) x[i] = place[start + i] - out[1];
        for (i = 0; i < count; i++) w[i] = weight[start + i] * x[i];
        for (; i < padded; i++) w[i] = x[i] = 0;
        second = dd_add(second, dd_make(tilting_sum(w, x, padded), 0));
    }
    out[2] = second.hi / total.hi;
}

/* The largest |z|^2 of n complex numbers (re, im, re, im, ...). */
static VECTORS_CLONES double tilting_largest(const double *z, ptrdiff_t n)
{
    double high[8] = {0}, top;
    ptrdiff_t i, j;
    for (i = 0; i + 8 <= n; i += 8)
        for (j = 0; j < 8; j++) {
            double size = z[2 * (i + j)] * z[2 * (i + j)] + z[2 * (i + j) + 1] * z[2 * (i + j) + 1];
            high[j] = size > high[j] ? size : high[j];
        }
    top = high[0];
    for (j = 1; j < 8; j++) top = high[j] > top ? high[j] : top;
    for (; i < n; i++) top = fmax(top, z[2 * i] * z[2 * i] + z[2 * i + 1] * z[2 * i + 1]);
    return top;
}

#endif
