/* The clone sum E[max(0, D - u M)], by a downward sweep (sweep.h) or by the contour integral.
 * Method and errors: the header of _compound.pyx. */
#ifndef SHUFFLEBOUNDS_COMPOUND_H
#define SHUFFLEBOUNDS_COMPOUND_H

#include "binomial.h"
#include "contour.h"
#include "sweep.h"

#define COMPOUND_BLOCK 512                      /* steps between two starting values: more save time, and add 12 roundings each */
#define COMPOUND_LONGEST_RUN 300                /* steps of a parallel run, 21 roundings each: as many as in COMPOUND_BLOCK steps */
#define COMPOUND_FEW_STEPS 600                  /* for fewer steps, eight starting values take longer than parallel runs save */
#define COMPOUND_RANGE 300.0                    /* b and the weights change by at most e^RANGE within a block: no underflow */
#define COMPOUND_WIDTH 9.0                      /* half width of the truncation range, in standard deviations of the number of clones */
#define COMPOUND_NEGLIGIBLE 1e-13               /* largest truncated part, relative to the sum */
#define COMPOUND_CLOSE 1e-10                    /* accepted gap of the contour's bounds, divided by 1 - log of the tilted mass */
#define COMPOUND_FEW 4e3                        /* steps up to which a sweep is not slower than the contour */
#define COMPOUND_SOME 1e4                       /* steps from which on secondary maxima are integrated, one for every 3000 */
#define COMPOUND_PEAKS 40                       /* largest number of secondary maxima that are integrated */
#define COMPOUND_MANY 1e6                       /* steps above which any gap is accepted; with u >= 1/2 a step counts as 15 steps */
#define COMPOUND_TOO_MANY 1e8                   /* steps above which no sweep is run (more than 0.1 s) */

typedef struct { double pull, still; } Ahead;   /* _compound.pxd */

typedef struct {
    double u;  /* in G_m = E[max(0, D - u m) | M = m] of _compound.pyx */
    double v;  /* 1 - u, accurate as u -> 1 */
    double rate;  /* of exponential decay: G_m <= e^(-rate m) times a constant */
} CompoundLine;

/* d/du sum w_m G_m = -sum w_m m S_m as long as no threshold changes. */
typedef struct {
    double value;  /* log sum w_m m S_m */
    double gap;  /* the smallest 2 tau - m - u m: u' has the thresholds tau of u if (u' - u) m is below this number for every m */
} CompoundMoment;

typedef struct {
    double mean;  /* of the number of clones under the tilted distribution */
    double sigma;
    double tilted;  /* r', the tilted probability of a clone */
    double log_mass;  /* n log(1 - r + r e^-k), the mass of the tilted distribution */
    double bound;  /* the truncated sum is at most e^bound times the truncated mass of the tilted distribution */
    CompoundLine line;
} CompoundWindow;

/* Returns 2 a - m - u m. */
static inline double compound_gap(double a, double m, CompoundLine *line)
{
    return line->u <= 0.5 ? 2 * a - m - line->u * m : line->v * m - 2 * (m - a);
}

/* Returns the smallest a with gap(a, m) > 0. Rounding may give a neighbour of this a; the term between the two is negligible. */
static inline double compound_threshold(double m, CompoundLine *line)
{
    if (line->u <= 0.5) return floor(0.5 * (m + line->u * m)) + 1;
    return m - (ceil(0.5 * line->v * m) - 1);
}

/* Returns G_m/b_m(a) = sum_i (g + 2i) b_m(a+i)/b_m(a). */
static inline double compound_series(double a, double m, double g)
{
    double term = 1, total = g, i = 0;
    while (a < m) {
        term *= (m - a) / (a + 1);
        a += 1;
        i += 2;
        total += (g + i) * term;
        if ((g + i) * term < 1e-18 * total) break;
    }
    return total;
}

/* Returns G_m/b for u < 1/2, writes S/b to `tail` and adds the cancellation error to error[0]. Symbols: _compound.pyx. */
static inline double compound_seed(double a, double m, double g, CompoundLine *line, double *tail, double *error)
{
    double value;
    *tail = kernel_binom_tail_ratio(a, m, 0.5, 0, 0.5, 0);
    value = a - line->u * m * *tail;
    if (value < 1e-8 * a) return compound_series(a, m, g);
    *error += 32 * UNIT * (a / value);
    return value;
}

/* Writes out[i] = G_(m-i)/b, i = 0..count-1, and returns log b, b = b_m(tau). error[0]: bound of the relative error of all.
 *
 * For u < 1/2 also tails[i] = S_(m-i)/b, and lowest[0] falls to the smallest 2 tau - m - u m of the steps. */
static inline double compound_block(double m, int count, CompoundLine *line, double *out, double *tails, double *lowest,
    double *error)
{
    double a = compound_threshold(m, line), g = compound_gap(a, m, line), b = 1, tail, value, step;
    double log_b = kernel_binom_logpmf(a, m, 0.5);
    int i;
    *error = 3e-14 + (8 * fabs(log_b) + 12 * count) * UNIT;
    if (line->u >= 0.5) {
        for (i = 0; i < count; i++) {
            out[i] = b * compound_series(a, m, g);
            if (i + 1 == count) break;
            step = b * (2 * a / m);
            /* The threshold of m - 1 is a - 1 if compound_gap(a - 1, m - 1) > 0. The equivalent compound_gap(a, m) > 1 - u would
             * be decided by rounding errors if 1 - u is small. */
            g = compound_gap(a - 1, m - 1, line);
            if (g > 0) {
                a -= 1;
                b = step;
            } else {
                b *= 2 * (m - a) / m;
                g = compound_gap(a, m - 1, line);
            }
            m -= 1;
        }
        return log_b;
    }
    value = compound_seed(a, m, g, line, &tail, error);
    for (i = 0; i < count; i++) {
        out[i] = value; tails[i] = tail;
        *lowest = fmin(*lowest, g);
        if (i + 1 == count) break;
        step = b * (2 * a / m);
        g = compound_gap(a, m - 1, line);
        if (g > 2) {
            a -= 1;
            g -= 2;
            b = step;
            tail += 0.5 * step;
        } else {
            b *= 2 * (m - a) / m;
            tail -= 0.5 * step;
        }
        m -= 1;
        value += line->u * tail - 0.5 * fabs(g - 1 - line->u) * step;
    }
    return log_b;
}

/* Returns how many steps, 1..BLOCK, change a quantity by at most e^RANGE, if one step changes it by e^steepness. */
static inline int compound_length(double steps, double steepness)
{
    return (int)whole(fmin(steps, fmin(COMPOUND_BLOCK, 1 + floor(COMPOUND_RANGE / (steepness + 1e-300)))), 1, COMPOUND_BLOCK);
}

/* Returns a bound of the change of the logarithm of a weight, or of G, in one step between low and m. */
static inline double compound_steepness(double m, double low, double n, double log_odds, CompoundLine *line)
{
    return fmax(line->rate, fmax(fabs(log(m / (n - m + 1)) + log_odds), fabs(log(low / (n - low + 1)) + log_odds)));
}

/* Returns log sum of Pr[Bin(n, rate) = i] G_i over SWEEP_RUNS parallel runs of count steps each, downward from m.
 *
 * The terms are also added to the moment, unless it is NULL. */
static inline double compound_runs(double m, int count, double n, double rate, double odds, CompoundLine *line,
    CompoundMoment *moment, double *error)
{
    sweep_runs runs;
    double total = 0, firsts = 0, top = -INFINITY, a, log_b, log_weight, own;
    int j;
    for (j = 0; j < SWEEP_RUNS; j++) {
        a = compound_threshold(m, line);
        log_b = kernel_binom_logpmf(a, m, 0.5);
        log_weight = kernel_binom_logpmf(m, n, rate);
        own = 6e-14 + (8 * (fabs(log_b) + fabs(log_weight)) + 21 * count) * UNIT;
        runs.m[j] = m; runs.a[j] = a;
        runs.value[j] = compound_seed(a, m, compound_gap(a, m, line), line, &runs.tail[j], &own);
        runs.log_scale[j] = log_b + log_weight;
        top = fmax(top, runs.log_scale[j]);
        *error = fmax(*error, own);
        m -= count;
    }
    sweep_down(&runs, count, n, odds, line->u, moment != NULL);
    for (j = 0; j < SWEEP_RUNS; j++) {
        own = exp(runs.log_scale[j] - top);
        total += own * runs.sum[j];
        if (moment != NULL) {
            firsts += own * runs.moment[j];
            moment->gap = fmin(moment->gap, runs.gap[j]);
        }
    }
    if (moment != NULL) moment->value = kernel_log_add_exp(moment->value, top + log(firsts));
    return top + log(total);
}

/* Returns log sum_(m = lo..hi) Pr[Bin(n, rate) = m] G_m, a bound of its absolute error, and its moment, unless that is NULL. */
static inline double compound_range(double n, double rate, double lo, double hi, CompoundLine *line, CompoundMoment *moment,
    double *error)
{
    double out[COMPOUND_BLOCK];
    double tails[COMPOUND_BLOCK];
    double total = -INFINITY, m = hi, partial, firsts, lowest = INFINITY, weight, scale, log_weight, worst = 0, steep;
    /* The odds stay finite for rates below 1e-300. Parallel runs are not used in this case, because a block has only one step. */
    double odds = (1 - rate) / fmax(rate, 1e-300);
    /* a compiler may evaluate this logarithm also at rate = 1, where it is not used; log(0) would raise a floating-point flag */
    double log_odds = log(odds > 0 ? odds : 1);
    int count, i;
    while (line->u < 0.5 && rate < 1 && m - lo >= COMPOUND_FEW_STEPS) {
        steep = compound_steepness(m, fmax(lo, m - SWEEP_RUNS * COMPOUND_LONGEST_RUN), n, log_odds, line);
        /* n - m + 1 at most doubles, which keeps the product of its values in range */
        count = LESSER(COMPOUND_LONGEST_RUN, compound_length(fmin((m - lo + 1) / SWEEP_RUNS, n - m + 1), steep));
        if (count < 64) break;
        total = kernel_log_add_exp(total, compound_runs(m, count, n, rate, odds, line, moment, &worst));
        m -= SWEEP_RUNS * count;
    }
    while (m >= lo) {
        steep = rate < 1 ? compound_steepness(m, fmax(lo, m - COMPOUND_BLOCK), n, log_odds, line)
            : fmax(COMPOUND_RANGE, line->rate);
        count = compound_length(m - lo + 1, steep);
        scale = compound_block(m, count, line, out, tails, &lowest, error);
        log_weight = kernel_binom_logpmf(m, n, rate);
        worst = fmax(worst, *error + 3e-14 + 8 * UNIT * fabs(log_weight));
        weight = 1;
        partial = firsts = 0;
        for (i = 0; i < count; i++) {
            partial += weight * out[i];
            if (moment != NULL) firsts += weight * tails[i] * m;
            m -= 1;
            if (i + 1 < count) weight *= (m + 1) * odds / (n - m);
        }
        total = kernel_log_add_exp(total, scale + log_weight + log(partial));
        if (moment != NULL)
            moment->value = kernel_log_add_exp(moment->value, scale + log_weight + log(firsts));
    }
    if (moment != NULL) moment->gap = fmin(moment->gap, lowest);
    *error = worst;
    return total;
}

static inline CompoundLine compound_line(double u, double v)
{
    CompoundLine line;
    line.u = u;
    line.v = v;
    line.rate = u > 0 ? 0.5 * (kernel_deviance(1 + u, 1, u) + kernel_deviance(v, 1, -u)) : 0;
    return line;
}

static inline CompoundWindow compound_window(double n, double rate, double u, double v)
{
    CompoundWindow w;
    /* Every tilt l > 0 gives a valid bound with the factor 1/l, so a tilt below 1/sqrt(n rate), as at u = 0, is replaced by
     * 1/sqrt(n rate). */
    double tilt = u <= 0.5 ? atanh(u) : 0.5 * (log(1 + u) - log(v)), decay, shrink;
    w.line = compound_line(u, v);
    decay = w.line.rate;
    if (tilt < 1 / sqrt(n * rate + 1)) {
        tilt = 1 / sqrt(n * rate + 1);
        decay = tilt * u - log(cosh(tilt));
    }
    shrink = rate * expm1(-decay);
    w.tilted = fmin(1, rate * exp(-decay) / (1 + shrink));
    w.mean = n * w.tilted;
    w.sigma = sqrt(w.mean * (1 - w.tilted));
    w.log_mass = n * log1p(shrink);
    w.bound = w.log_mass - log(tilt) - 1;
    w.bound += 1e-9 + 16 * UNIT * fabs(w.bound);
    return w;
}

/* Writes bounds from the sum over a truncation range that is wide enough to make the bound of the truncated sum negligible. */
static inline void compound_sweep(double n, double rate, CompoundWindow *w, double *lower, double *upper, Ahead *ahead)
{
    double lo, hi, inside, outside, error, width = COMPOUND_WIDTH;
    CompoundMoment moment;
    CompoundMoment *wanted = ahead != NULL && w->line.u < 0.5 ? &moment : NULL;
    for (;;) {
        moment.value = -INFINITY; moment.gap = INFINITY;
        lo = fmax(1, floor(w->mean - width * w->sigma));
        hi = fmin(n, ceil(w->mean + width * w->sigma + width * width / 2));
        inside = compound_range(n, rate, lo, hi, &w->line, wanted, &error);
        outside = w->bound + kernel_log_add_exp(lo > 1 ? kernel_binom_logcdf(lo - 1, n, w->tilted) : -INFINITY,
            kernel_binom_logsf(hi, n, w->tilted));
        if (outside < inside + log(COMPOUND_NEGLIGIBLE) || (lo == 1 && hi == n)) break;
        width *= 1.25;
    }
    /* relative errors of UNIT in rate and u change the sum by a relative error of a few UNIT |log sum| */
    error += 16 * UNIT * fabs(inside);
    *lower = inside - error;
    *upper = (lo > 1 || hi < n ? kernel_log_add_exp(inside, outside) : inside) + error;
    if (wanted != NULL) {
        /* The terms outside the range decrease in u, so the moment of the range is a lower bound of the whole moment. S has fewer
         * roundings than G. The gap has 3 roundings of numbers up to 4 for each step of a run, and those of its starting value. */
        ahead->pull = exp(moment.value - error - *upper);
        ahead->still = w->line.u + (moment.gap - 8 * UNIT * (COMPOUND_BLOCK + hi)) / hi;
    }
}

static inline void kernel_log_sign_ahead(double n, double rate, double u, double v, double *lower, double *upper, Ahead *ahead)
{
    CompoundWindow w;
    double error, steps;
    if (ahead != NULL) ahead->pull = ahead->still = 0;
    if (v * n <= 2) {
        /* Here n v <= 2, so D - u M > 0 only if all M signs are +1. Then D - u M = v M, and E[max(0, D - u M)] = v E[M 2^-M]. */
        *lower = log(v) + log(0.5 * n * rate) + (n - 1) * log1p(-0.5 * rate);
        error = 8 * UNIT * (fabs(log(v)) + fabs(log(0.5 * n * rate)) + (1 - n) * log1p(-0.5 * rate) + 1);
        *upper = *lower + error;
        *lower -= error;
        return;
    }
    w = compound_window(n, rate, u, v);
    steps = fmin(n, 2 * COMPOUND_WIDTH * w.sigma) * (u < 0.5 ? 1 : 15);
    error = COMPOUND_CLOSE * (1 - w.log_mass);
    if (steps > COMPOUND_FEW) {
        if (kernel_log_sign_contour(n, rate, u, v, 0, error, lower, upper) && *upper - *lower <= error)
            return;
        /* The more steps a sweep would take, the larger the accepted gap (Cost in _compound.pyx). Integrating one secondary maximum
         * takes as long as about 2000 sweep steps. */
        error *= steps <= 1e5 ? 1 : steps <= COMPOUND_MANY ? 10 : 1e300;
        if (steps > COMPOUND_SOME && kernel_log_sign_contour(n, rate, u, v, (int)whole(fmin(COMPOUND_PEAKS, steps / 3000), 0, 100),
            error, lower, upper) && *upper - *lower <= error)
            return;
    }
    if (steps > COMPOUND_TOO_MANY) {
        /* Here a sweep would take more than 0.1 s, and log delta is below about -1e11. The upper bound is the bound of a truncated
         * sum, applied to all terms; the lower bound is the sum over 1024 terms next to the tilted mean. The gap is about 30 in
         * log delta. */
        *lower = compound_range(n, rate, fmax(1, floor(w.mean) - COMPOUND_BLOCK), fmin(n, floor(w.mean) + COMPOUND_BLOCK), &w.line,
            NULL, &error);
        *lower -= error + 16 * UNIT * fabs(*lower);
        *upper = fmax(w.bound, *lower);
        return;
    }
    compound_sweep(n, rate, &w, lower, upper, ahead);
}

static inline void kernel_log_sign_excess(double n, double rate, double u, double v, double *lower, double *upper)
{
    kernel_log_sign_ahead(n, rate, u, v, lower, upper, NULL);
}

static inline double kernel_log_weighted_excess(double first, const double *log_weights, ptrdiff_t count, double u, double v,
    double *error)
{
    CompoundLine line = compound_line(u, v);
    double out[COMPOUND_BLOCK];
    double tails[COMPOUND_BLOCK];
    double total = -INFINITY, m, scale, partial, top, lowest = 0, worst = 0;
    ptrdiff_t last = count;
    int length, i;
    while (last > 0) {
        length = compound_length(last, line.rate);
        m = first + last;
        scale = compound_block(m, length, &line, out, tails, &lowest, error);
        worst = fmax(worst, *error);
        top = -INFINITY;
        for (i = 0; i < length; i++) top = fmax(top, log_weights[last - 1 - i]);
        partial = 0;
        if (top > -INFINITY) {
            for (i = 0; i < length; i++)
                partial += exp(log_weights[last - 1 - i] - top) * out[i] / (m - i);
            total = kernel_log_add_exp(total, scale + top + log(partial));
        }
        last -= length;
    }
    *error = worst + 16 * UNIT * fabs(total);
    return total;
}

static inline int compound_outside(double n, double rate, double u, double v)
{
    return !(n == n && rate == rate && u == u && v == v && (1 <= n && n <= TWO_53) && n == floor(n) && (0 < rate && rate <= 1)
        && (0 <= u && u <= 1) && (0 <= v && v <= 1));
}

#endif
