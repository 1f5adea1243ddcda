/* The downward sweep of _compound.pyx for u < 1/2, with SWEEP_RUNS parallel runs of steps, written so that a compiler can
 * vectorise over them: 0.7 ns a step with AVX-512, 1.2 with AVX2.
 * Every instruction set gives the same bits.
 */
#ifndef SHUFFLEBOUNDS_SWEEP_H
#define SHUFFLEBOUNDS_SWEEP_H

#include <math.h>
#include "arithmetic.h"
#include "vectors.h"

enum { SWEEP_RUNS = 8 };

/* Each run starts at m clones with the threshold a, tail = S/b and value = G/b. sum and moment are the sums of the run, log_scale the
 * logarithm of the factor by which the caller multiplies them, and gap the smallest 2a - m - u m of its steps. */
typedef struct {
    double m[SWEEP_RUNS], a[SWEEP_RUNS], tail[SWEEP_RUNS], value[SWEEP_RUNS], log_scale[SWEEP_RUNS];
    double sum[SWEEP_RUNS], moment[SWEEP_RUNS], gap[SWEEP_RUNS];
} sweep_runs;

/* Sets sum = sum_(i < count) w_i G_(m-i)/b in every run, w_i = Pr[Bin(n, r) = m-i]/Pr[Bin(n, r) = m], odds = (1-r)/r, and, if slopes is
 * 1, gap and moment = sum_(i < count) w_i (m-i) S_(m-i)/b.
 *
 * The symbols are those of _compound.pyx. In each step m decreases by 1, and so does a if y + 1 + u > 2, y = 2a - m - u m: then fall is
 * 2, otherwise 0. If the two sides are equal, either choice is right, because the term at the boundary is then 0. y is carried on
 * from step to step: its error, 3 ulp(2) a step, is less than that of 2a - m - u m.
 *
 * b, S and G are multiplied by the weight w_i without its factors 1/(n-m+1):
 * `lag` is the product of these factors over their first one, by which the sums are multiplied instead. S, G and the threshold a are
 * doubled. Each step has 4 roundings of b and 7 of S and G, and the sums have 4. masked = 1 selects by comparisons, 0 by arithmetic
 * with the same results: adding and subtracting `even` rounds to an even integer, and m + side (2a - m) is exactly 2a or 2(m - a). */
VECTORS_INLINE void sweep_body(sweep_runs *runs, int count, double n, double odds, double u, int slopes, int masked)
{
    double m[SWEEP_RUNS], a[SWEEP_RUNS], b[SWEEP_RUNS], y[SWEEP_RUNS], tail[SWEEP_RUNS], value[SWEEP_RUNS], sum[SWEEP_RUNS];
    double moment[SWEEP_RUNS], lowest[SWEEP_RUNS], first[SWEEP_RUNS], scale[SWEEP_RUNS], lag[SWEEP_RUNS];
    const double even = 13510798882111488.0;        /* 3 2^52: numbers of its size are even */
    int i, j;
    for (j = 0; j < SWEEP_RUNS; j++) {
        m[j] = runs->m[j];
        a[j] = 2 * runs->a[j];
        lowest[j] = y[j] = (a[j] - m[j]) - u * m[j];
        tail[j] = 2 * runs->tail[j];
        sum[j] = value[j] = 2 * runs->value[j];
        moment[j] = m[j] * tail[j];
        lag[j] = b[j] = 1;
        first[j] = 1 / (n - m[j] + 1);
        scale[j] = odds * first[j];
    }
    for (i = 1; i < count; i++)
        for (j = 0; j < SWEEP_RUNS; j++) {
            double next = m[j] - 1, ratio = m[j] * scale[j], mass = b[j] * scale[j], part = mass * a[j];
            double moved = y[j] + (1 + u), fall = masked ? (moved > 2 ? 2.0 : 0.0) : ((moved - 1) + even) - even, side = fall - 1;
            double more = (n - next) * first[j];
            b[j] = mass * (masked ? (fall > 1 ? a[j] : 2 * m[j] - a[j]) : m[j] + side * (a[j] - m[j]));
            a[j] -= fall;
            y[j] = moved - fall;
            tail[j] = ratio * tail[j] + side * part;
            value[j] = ratio * value[j] + (u * tail[j] - fabs(y[j] - (1 + u)) * part);
            sum[j] = sum[j] * more + value[j];
            if (slopes) {
                moment[j] = moment[j] * more + next * tail[j];
                lowest[j] = y[j] < lowest[j] ? y[j] : lowest[j];
            }
            lag[j] *= more;
            m[j] = next;
        }
    for (j = 0; j < SWEEP_RUNS; j++) {
        runs->sum[j] = 0.5 * sum[j] / lag[j];
        runs->moment[j] = 0.5 * moment[j] / lag[j];
        runs->gap[j] = lowest[j];
    }
}

static VECTORS_CLONES void sweep_plain(sweep_runs *runs, int count, double n, double odds, double u)
{
    sweep_body(runs, count, n, odds, u, 0, 0);
}

static VECTORS_CLONES void sweep_slopes(sweep_runs *runs, int count, double n, double odds, double u)
{
    sweep_body(runs, count, n, odds, u, 1, 0);
}

#if VECTORS_LEVELS == 3
static VECTORS_TARGET_2 void sweep_plain_masked(sweep_runs *runs, int count, double n, double odds, double u)
{
    sweep_body(runs, count, n, odds, u, 0, 1);
}

static VECTORS_TARGET_2 void sweep_slopes_masked(sweep_runs *runs, int count, double n, double odds, double u)
{
    sweep_body(runs, count, n, odds, u, 1, 1);
}
#endif

static void sweep_down(sweep_runs *runs, int count, double n, double odds, double u, int slopes)
{
#if VECTORS_LEVELS == 3
    if (vectors_level() == 2) {
        if (slopes) sweep_slopes_masked(runs, count, n, odds, u); else sweep_plain_masked(runs, count, n, odds, u);
        return;
    }
#endif
    if (slopes) sweep_slopes(runs, count, n, odds, u); else sweep_plain(runs, count, n, odds, u);
}

#endif
