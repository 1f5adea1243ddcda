/* The sums over atoms of a complex moment generating function along a vertical line, written so that a compiler can vectorise them.
 *
 * c_m = e^(i m step x) - 1 follows from c_(m+1) = c_m + c_1 + c_m c_1, one complex multiplication for each atom. A step multiplies
 * the error of c_m by e^(i step x), of modulus 1, and adds at most 1.5 (2m + 8) UNIT step |x|, because |c_m| <= min(2, m step |x|)
 * and c_1 has the relative error 6 UNIT. Hence |error of c_m| <= 2 m (m + 10) UNIT step |x|.
 * Sums run in MOMENT_LANES partial sums, each of atoms/MOMENT_LANES terms.
 */
#ifndef SHUFFLEBOUNDS_MOMENTS_H
#define SHUFFLEBOUNDS_MOMENTS_H

#include <math.h>
#include <stddef.h>
#include "vectors.h"

enum { MOMENT_LANES = 8 };

/* Replaces (re, im) = c_m by c_(m+1) for every atom, with (re1, im1) = c_1, and sets sum_re[t], sum_im[t] to the sum of
 * weight[t] c_(m+1) over the atoms, for every row t of `weight` (rows, n). n is a multiple of MOMENT_LANES. */
static VECTORS_CLONES void moments_step(const double *re1, const double *im1, double *re, double *im, const double *weight,
                                        ptrdiff_t n, ptrdiff_t rows, double *sum_re, double *sum_im)
{
    ptrdiff_t i, j, t;
    VECTORS_LOOP
    for (i = 0; i < n; i++) {
        double u = re[i], v = im[i], p = re1[i], q = im1[i];
        re[i] = (u + p) + (u * p - v * q);
        im[i] = (v + q) + (u * q + v * p);
    }
    for (t = 0; t < rows; t++) {
        const double *w = weight + t * n;
        double c[MOMENT_LANES] = {0}, d[MOMENT_LANES] = {0};
        for (i = 0; i < n; i += MOMENT_LANES) {
            VECTORS_ROLLED
            for (j = 0; j < MOMENT_LANES; j++) {
                c[j] += w[i + j] * re[i + j];
                d[j] += w[i + j] * im[i + j];
            }
        }
        sum_re[t] = ((c[0] + c[4]) + (c[1] + c[5])) + ((c[2] + c[6]) + (c[3] + c[7]));
        sum_im[t] = ((d[0] + d[4]) + (d[1] + d[5])) + ((d[2] + d[6]) + (d[3] + d[7]));
    }
}

#endif
