/* Logarithms of cumulated sums of exponentials, in passes over blocks that a compiler can vectorise (vectors.h).
 *
 * A block has one scale e^top, so that its exponentials and logarithms are independent of each other; only the compensated sum runs
 * element by element. Every instruction set gives the same bits.
 * Cost     5 ns an element with AVX-512; 12 to 23 with a logarithm and an exponential of the C library for each element
 */
#ifndef SHUFFLEBOUNDS_CUMULATE_H
#define SHUFFLEBOUNDS_CUMULATE_H

#include <math.h>
#include <stddef.h>
#include "vectors.h"

enum { CUMULATE_BLOCK = 512 };
#define CUMULATE_DEPTH 690.0        /* e^-690 is a normal double: terms of a block above it keep their relative accuracy */

/* A sum e^top (total + rest), top an integer. */
typedef struct { double top, total, rest; } Sum;

/* Writes out[i] = log(sum + e^x[0] + ... + e^x[i]) for count elements, and adds all of them to the sum. The length of x is a multiple
 * of 8, at least count. Sets `done` to 0, and changes nothing, if the largest x of the block exceeds the smallest by more than
 * CUMULATE_DEPTH and the sum so far is small or of the size of the largest term. */
VECTORS_INLINE void cumulate_body(double *x, double *out, ptrdiff_t count, Sum *sum, int *done, int fused)
{
    double high[8], low[8], term[CUMULATE_BLOCK], term_lo[CUMULATE_BLOCK], part[CUMULATE_BLOCK];
    double top = sum->top, total = sum->total, rest = sum->rest, scale;
    ptrdiff_t i, padded = (count + 7) & ~(ptrdiff_t)7;
    int j, moved;
    for (i = count; i < padded; i++) x[i] = x[0];
    for (j = 0; j < 8; j++) high[j] = low[j] = x[j];
    for (i = 8; i < padded; i += 8)
        for (j = 0; j < 8; j++) {
            high[j] = x[i + j] > high[j] ? x[i + j] : high[j];
            low[j] = x[i + j] < low[j] ? x[i + j] : low[j];
        }
    for (j = 1; j < 8; j++) {
        high[0] = high[j] > high[0] ? high[j] : high[0];
        low[0] = low[j] < low[0] ? low[j] : low[0];
    }
    moved = total == 0 || high[0] > top + 1;
    if (moved) {
        top = ceil(high[0]);
        scale = total > 0 ? exp(sum->top - top) : 0;
        total *= scale;
        rest *= scale;
    }
    /* Terms that underflow at this scale are negligible beside a sum of at least 1/2, but not while the sum itself is small. */
    *done = high[0] > -INFINITY && (low[0] - top >= -CUMULATE_DEPTH || (!moved && total >= 0.5));
    if (!*done) return;
    VECTORS_LOOP
    for (i = 0; i < padded; i++) {
        double at = x[i] - top;
        dd e = vector_exp_dd(at < -CUMULATE_DEPTH ? -CUMULATE_DEPTH : at);
        term[i] = at < -CUMULATE_DEPTH ? 0 : e.hi;
        term_lo[i] = at < -CUMULATE_DEPTH ? 0 : e.lo;
    }
    for (i = 0; i < count; i++) {
        double next = total + term[i], back = next - total;
        rest += ((total - (next - back)) + (term[i] - back)) + term_lo[i];
        total = next;
        part[i] = total + rest;
    }
    for (; i < padded; i++) part[i] = 1;
    VECTORS_LOOP
    for (i = 0; i < padded; i++) part[i] = vector_log_plus(top, part[i]);
    for (i = 0; i < count; i++) out[i] = part[i];
    if (total > 7.38905609893065) {
        /* multiplied by e^-1 in double-double: a long sum is scaled several times */
        dd scaled = dd_mul_by(dd_make(total, rest), dd_make(0.36787944117144233, -1.2428753672788363e-17), fused);
        total = scaled.hi;
        rest = scaled.lo;
        top += 1;
    }
    sum->top = top;
    sum->total = total;
    sum->rest = rest;
}

VECTORS_ENTRY(cumulate, (double *x, double *out, ptrdiff_t count, Sum *sum, int *done), (x, out, count, sum, done))

#endif
