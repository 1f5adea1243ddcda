/* The characteristic function of a distribution with finitely many values, written so that a compiler can vectorise it.
 *
 * For u = t y/2, r = u - pi round(u/pi): 1 - cos(ty) = 2 sin(r)^2 and sin(ty) = 2 sin(r) cos(r).
 * Taylor series to r^21 and r^22 on [-pi/2, pi/2] have truncation errors of 1.3e-18; pi in three parts of 33 bits keeps the
 * error of r below 1e-16 + 1e-21 |u| for |u| < 2^19, beyond which libm is called. Sums run in EXCESS_LANES partial sums over chunks
 * of 256, which are added with a compensation: the order is fixed, and the error is 40 UNIT of the sum of magnitudes at any length.
 */
#ifndef SHUFFLEBOUNDS_EXCESS_H
#define SHUFFLEBOUNDS_EXCESS_H

#include <math.h>
#include <stddef.h>
#include "constants.h"
#include "dd.h"
#include "vectors.h"

/* 1 - cos(2u) and sin(2u) */
VECTORS_INLINE void excess_turn(double u, double *less, double *side)
{
    const double shift = 6755399441055744.0;
    double k = (u * 0.31830988618379067 + shift) - shift;
    double r = ((u - k * 3.1415926534682512) - k * 1.2154201012607932e-10) - k * 4.0445324975919010e-21;
    double z = r * r;
    double s = r + r * z * (-1.6666666666666666e-1 + z * (8.3333333333333332e-3 + z * (-1.9841269841269841e-4 + z * (
        2.7557319223985893e-6 + z * (-2.5052108385441720e-8 + z * (1.6059043836821613e-10 + z * (-7.6471637318198164e-13
        + z * (2.8114572543455206e-15 + z * (-8.2206352466243295e-18 + z * 1.9572941063391263e-20)))))))));
    double c = 1 + z * (-0.5 + z * (4.1666666666666664e-2 + z * (-1.3888888888888889e-3 + z * (2.4801587301587302e-5 + z * (
        -2.7557319223985888e-7 + z * (2.0876756987868100e-9 + z * (-1.1470745597729725e-11 + z * (4.7794773323873853e-14
        + z * (-1.5619206968586225e-16 + z * (4.1103176233121648e-19 - z * 8.8967913924505741e-22))))))))));
    *less = 2 * s * s;
    *side = 2 * s * c;
}

/* sum p (1 - cos(t y)) and sum p sin(t y) over n atoms, n a multiple of EXCESS_LANES; reach >= max |y| */
static VECTORS_CLONES void excess_phi(const double *p, const double *y, ptrdiff_t n, double t, double reach,
                                     double *less, double *side)
{
    dd total_less = {0, 0}, total_side = {0, 0};
    double a[EXCESS_LANES], b[EXCESS_LANES], half = 0.5 * t;
    ptrdiff_t start, i, j, end;
    if (half * reach > 524288.0) {
        for (i = 0; i < n; i++) {
            double s = sin(half * y[i]), c = cos(half * y[i]);
            total_less = dd_add(total_less, dd_make(2 * p[i] * s * s, 0));
            total_side = dd_add(total_side, dd_make(2 * p[i] * s * c, 0));
        }
        *less = total_less.hi;
        *side = total_side.hi;
        return;
    }
    for (start = 0; start < n; start += 256) {
        end = start + 256 < n ? start + 256 : n;
        for (j = 0; j < EXCESS_LANES; j++) a[j] = b[j] = 0;
        for (i = start; i < end; i += EXCESS_LANES)
            for (j = 0; j < EXCESS_LANES; j++) {
                double u, v;
                excess_turn(half * y[i + j], &u, &v);
                a[j] += p[i + j] * u;
                b[j] += p[i + j] * v;
            }
        total_less = dd_add(total_less, dd_make(((a[0] + a[4]) + (a[1] + a[5])) + ((a[2] + a[6]) + (a[3] + a[7])), 0));
        total_side = dd_add(total_side, dd_make(((b[0] + b[4]) + (b[1] + b[5])) + ((b[2] + b[6]) + (b[3] + b[7])), 0));
    }
    *less = total_less.hi;
    *side = total_side.hi;
}

/* out[r] = sum over n frequencies of the real part of e^(i t y) weights[r], r < rows; weights has the real parts of all rows, then the
 * imaginary parts; reach >= max |t| */
static VECTORS_CLONES void excess_turned(const double *t, ptrdiff_t n, double y, double reach, const double *weights, ptrdiff_t rows,
                                        double *out)
{
    double cosine[256], sine[256], sums[EXCESS_LANES], half = 0.5 * y;
    ptrdiff_t start, size, whole, i, j, r;
    for (r = 0; r < rows; r++) out[r] = 0;
    for (start = 0; start < n; start += 256) {
        size = start + 256 < n ? 256 : n - start;
        whole = size - size % EXCESS_LANES;
        if (fabs(half) * reach > 524288.0)
            for (i = 0; i < size; i++) {
                cosine[i] = cos(y * t[start + i]);
                sine[i] = sin(y * t[start + i]);
            }
        else
            for (i = 0; i < size; i++) {
                double less;
                excess_turn(half * t[start + i], &less, &sine[i]);
                cosine[i] = 1 - less;
            }
        for (r = 0; r < rows; r++) {
            const double *re = weights + r * n + start, *im = re + rows * n;
            for (j = 0; j < EXCESS_LANES; j++) sums[j] = 0;
            for (i = 0; i < whole; i += EXCESS_LANES)
                for (j = 0; j < EXCESS_LANES; j++) sums[j] += cosine[i + j] * re[i + j] - sine[i + j] * im[i + j];
            for (j = 0; i + j < size; j++) sums[j] += cosine[i + j] * re[i + j] - sine[i + j] * im[i + j];
            out[r] += ((sums[0] + sums[4]) + (sums[1] + sums[5])) + ((sums[2] + sums[6]) + (sums[3] + sums[7]));
        }
    }
}

#endif
