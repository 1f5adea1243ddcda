/* Passes over tilted masses, and over spectra, on a grid, written so that a compiler can vectorise them.
 *
 * Sums run in 8 lanes over chunks of 256 terms, which are added in double-double: of n positive terms they have a relative error of
 * at most 36 units in the last place, whatever n is. Every instruction set gives the same bits.
 */
#ifndef SHUFFLEBOUNDS_TILTING_H
#define SHUFFLEBOUNDS_TILTING_H

#include <math.h>
#include <stddef.h>
#include <string.h>
#include "dd.h"
#include "vectors.h"

enum { TILTING_CHUNK = 256 };

/* Adds the first `count` of TILTING_CHUNK numbers to `total`; sets the others to 0. */
VECTORS_INLINE dd tilting_add(dd total, double *part, ptrdiff_t count)
{
    double s[8] = {0};
    ptrdiff_t i, j;
    for (i = count; i < TILTING_CHUNK; i++) part[i] = 0;
    for (i = 0; i < TILTING_CHUNK; i += 8)
        for (j = 0; j < 8; j++) s[j] += part[i + j];
    return dd_add(total, dd_make(((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7])), 0));
}

/* The largest of count >= 8 numbers, and of 8 numbers in `high`, which are changed. */
VECTORS_INLINE double tilting_top(const double *x, ptrdiff_t count, double *high)
{
    ptrdiff_t i, j;
    double top;
    for (i = 0; i + 8 <= count; i += 8)
        for (j = 0; j < 8; j++) high[j] = x[i + j] > high[j] ? x[i + j] : high[j];
    for (; i < count; i++) high[0] = x[i] > high[0] ? x[i] : high[0];
    top = high[0];
    for (j = 1; j < 8; j++) top = high[j] > top ? high[j] : top;
    return top;
}

/* Sets out to the logarithm of sum e^(logs + rate place), and to the mean and the variance of `place` with these weights, of n >= 1
 * numbers. The largest exponent is finite. Chunks of terms below e^-60 of the largest count as 0, a relative n e^-60 of the sum.
 * `weight` has room for n numbers. */
static VECTORS_CLONES void tilting_moments(const double *logs, const double *place, ptrdiff_t n, double rate, double *__restrict weight,
                                           double *__restrict out)
{
    double high[8], part[TILTING_CHUNK], top;
    dd total = {0, 0}, first = {0, 0}, second = {0, 0};
    ptrdiff_t start, i, count;
    VECTORS_LOOP
    for (i = 0; i < n; i++) weight[i] = logs[i] + rate * place[i];
    for (i = 0; i < 8; i++) high[i] = weight[0];
    top = tilting_top(weight, n, high);
    for (start = 0; start < n; start += count) {
        count = n - start < TILTING_CHUNK ? n - start : TILTING_CHUNK;
        for (i = 0; i < 8; i++) high[i] = weight[start];
        if (tilting_top(weight + start, count, high) - top < -60) {
            memset(weight + start, 0, count * sizeof(double));
            continue;
        }
        VECTORS_LOOP
        for (i = 0; i < count; i++) {
            double depth = weight[start + i] - top;
            part[i] = vector_exp(depth > -700 ? depth : -700);
        }
        memcpy(weight + start, part, count * sizeof(double));
        total = tilting_add(total, part, count);
        for (i = 0; i < count; i++) part[i] = weight[start + i] * place[start + i];
        first = tilting_add(first, part, count);
    }
    out[0] = top + log(total.hi);
    out[1] = first.hi / total.hi;
    for (start = 0; start < n; start += count) {
        count = n - start < TILTING_CHUNK ? n - start : TILTING_CHUNK;
        for (i = 0; i < count; i++) {
            double away = place[start + i] - out[1];
            part[i] = weight[start + i] * away * away;
        }
        second = tilting_add(second, part, count);
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
