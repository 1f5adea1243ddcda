/* The signed distribution W of four messages (_matchings.pyx) for a row of quadruples of outputs that differ in the last output m,
 * written so that a compiler can vectorise it. */
#ifndef SHUFFLEBOUNDS_MATCHINGS_H
#define SHUFFLEBOUNDS_MATCHINGS_H

#include <stddef.h>
#include "vectors.h"

/* The entries of `tables` (_matchings.pyx) for one pair of outputs: P0, P1, N0, N1 of the six pairs of users. */
enum { MATCHINGS_ENTRIES = 24, MATCHINGS_LANES = 4 };

/* Sets plus[m] and minus[m] to the sums of the positive and of the negative terms of 18 W for the outputs m = 0..n-1, and for more
 * outputs up to a multiple of MATCHINGS_LANES. x = 0, 1, 2 are the ways to match the four outputs in two pairs. u[x][c] is entry c
 * for the pair without m, and (v[x] + c stride)[m] is the entry for the pair with m by which it is multiplied. Each sum has nine
 * terms, which are sums of four products. */
static VECTORS_CLONES void matchings_row(const double *const *u, const double *const *v, ptrdiff_t stride, ptrdiff_t n,
                                         double *plus, double *minus)
{
    ptrdiff_t x, a, m, i;
    for (m = 0; m < n; m += MATCHINGS_LANES) {
        double p[MATCHINGS_LANES] = {0}, q[MATCHINGS_LANES] = {0};
        for (x = 0; x < 3; x++)
            for (a = 0; a < MATCHINGS_ENTRIES; a += 8) {
                const double *w = u[x] + a, *t = v[x] + a * stride + m;
                VECTORS_ROLLED
                for (i = 0; i < MATCHINGS_LANES; i++) {
                    p[i] += (w[0] * t[i] + w[1] * t[stride + i]) + (w[4] * t[4 * stride + i] + w[5] * t[5 * stride + i]);
                    q[i] += (w[2] * t[2 * stride + i] + w[3] * t[3 * stride + i]) + (w[6] * t[6 * stride + i] + w[7] * t[7 * stride + i]);
                }
            }
        for (i = 0; i < MATCHINGS_LANES; i++) {
            plus[m + i] = p[i];
            minus[m + i] = q[i];
        }
    }
}

#endif
