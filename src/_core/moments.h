/* The sums over atoms of a complex moment generating function along a vertical line, written so that a compiler can vectorise them.
 *
 * For an atom x, c_m = e^(i m step x) - 1 follows from c_(m+1) = c_m + c_1 + c_m c_1, one complex multiplication. A step multiplies
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

/* e^x for any x <= 700: the square of e^(x/2), relative error below 5 UNIT; 0 for x < -1400. */
VECTORS_INLINE double moments_exp(double x)
{
    double half = vector_exp(0.5 * (x < -1400 ? -1400 : x));
    return half * half;
}

/* Writes weight = w e^(theta x) and more = w (e^(theta x) - 1), w = e^log_w, for one theta and every atom. `sums` receives the sums
 * over atoms of `more`, of |more| and of the four terms of the error bound (Blur in _moments.pyx). `each` bounds the relative error
 * of a probability. The caller has checked that theta x <= 700; e^(theta x) is computed as e^-700 where it is smaller. */
static VECTORS_CLONES void moments_real(const double *x, const double *log_w, ptrdiff_t n, double theta, double step, double each,
                                        double unit, double *weight, double *more, double *sums)
{
    double total[6][MOMENT_LANES] = {{0}};
    ptrdiff_t i, j, k;
    VECTORS_LOOP
    for (i = 0; i < n; i++) {
        uint64_t power;
        double up = theta * x[i], rest = vector_exp_rest(up < -700 ? -700 : up, &power);
        double scale = vector_double(vector_bits(1) + (power << 52)), w = moments_exp(log_w[i]), large = moments_exp(up + log_w[i]);
        double small = w * (scale * (1 + rest)), gain = w * (scale * rest + (scale - 1)), loss = large - w;
        more[i] = up < 1 ? gain : loss;
        weight[i] = up < 1 ? small : large;
    }
    for (i = 0; i < n; i += MOMENT_LANES) {
        ptrdiff_t lanes = n - i < MOMENT_LANES ? n - i : MOMENT_LANES;
        VECTORS_ROLLED
        for (j = 0; j < lanes; j++) {
            double size = fabs(more[i + j]), grown = weight[i + j], far = fabs(x[i + j]), part = each - unit * log_w[i + j];
            double turned = 2 * unit * theta * far, moved = (part + turned) * grown;
            /* the rounding error of theta x + log w is an error of e^(theta x + log w), not of its difference from w */
            double rounded = theta * x[i + j] < 1 ? size : grown;
            total[0][j] += more[i + j];
            total[1][j] += size;
            total[2][j] += part * rounded + turned * grown;
            total[3][j] += moved * step * far;
            total[4][j] += 2 * moved;
            total[5][j] += grown * step * far;
        }
    }
    for (k = 0; k < 6; k++)
        sums[k] = ((total[k][0] + total[k][4]) + (total[k][1] + total[k][5]))
            + ((total[k][2] + total[k][6]) + (total[k][3] + total[k][7]));
}

/* The sum over atoms of w (e^(theta x) - 1), with w = weight = e^log_w. Exponents count as at most 700. */
static VECTORS_CLONES double moments_gain(const double *x, const double *log_w, const double *weight, ptrdiff_t n, double theta)
{
    double total[MOMENT_LANES] = {0};
    ptrdiff_t i, j;
    for (i = 0; i < n; i += MOMENT_LANES) {
        ptrdiff_t lanes = n - i < MOMENT_LANES ? n - i : MOMENT_LANES;
        VECTORS_ROLLED
        for (j = 0; j < lanes; j++) {
            uint64_t power;
            double up = theta * x[i + j], low = up < -700 ? -700 : up, top = up + log_w[i + j];
            double rest = vector_exp_rest(low > 30 ? 30 : low, &power), scale = vector_double(vector_bits(1) + (power << 52));
            double gain = weight[i + j] * (scale * rest + (scale - 1)), large = moments_exp(top > 700 ? 700 : top);
            total[j] += up < 30 ? gain : large;
        }
    }
    return ((total[0] + total[4]) + (total[1] + total[5])) + ((total[2] + total[6]) + (total[3] + total[7]));
}

#endif
