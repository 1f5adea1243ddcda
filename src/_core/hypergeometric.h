/* Log probabilities and log tails of hypergeometric distributions, one element or one block at a time.
 * Method and errors: the header of _hypergeom.pyx. */
#ifndef SHUFFLEBOUNDS_HYPERGEOMETRIC_H
#define SHUFFLEBOUNDS_HYPERGEOMETRIC_H

#include "binomial.h"
#include "hypergeom.h"
#include "tails.h"

static inline void points_add(Points *t, ptrdiff_t at, double j, double total, double marked, double draws)
{
    t->at[t->count] = (int)at;
    t->j[t->count] = j; t->total[t->count] = total; t->marked[t->count] = marked; t->draws[t->count] = draws;
    t->count += 1;
}

/* Computes log Pr[X = j] of all points, as c_hypergeom_logpmf does of one. */
static inline void points_pmf(int level, Points *t, double *value)
{
    double p[HYPERGEOM_BLOCK], k[HYPERGEOM_BLOCK], n[HYPERGEOM_BLOCK], part[HYPERGEOM_BLOCK];
    const double *arguments[3];
    ptrdiff_t i;
    arguments[0] = t->j; arguments[1] = t->marked; arguments[2] = p;
    for (i = 0; i < t->count; i++) {
        p[i] = t->draws[i] / t->total[i];
        k[i] = t->draws[i] - t->j[i]; n[i] = t->total[i] - t->marked[i];
    }
    pmf_block(level, TAILS_BINOMIAL, arguments, value, t->count, kernel_checked_binom_logpmf);
    arguments[0] = k; arguments[1] = n;
    pmf_block(level, TAILS_BINOMIAL, arguments, part, t->count, kernel_checked_binom_logpmf);
    for (i = 0; i < t->count; i++) value[i] += part[i];
    arguments[0] = t->draws; arguments[1] = t->total;
    pmf_block(level, TAILS_BINOMIAL, arguments, part, t->count, kernel_checked_binom_logpmf);
    for (i = 0; i < t->count; i++) value[i] -= part[i];
}

/* Computes log Pr[X >= j] of all points except those of the method HYPERGEOM_LONE, whose indices are order[lone[0]:]. */
static inline void points_tails(int level, Points *t, const double *way, ptrdiff_t *lone, int *order)
{
    Points some;
    double mass[HYPERGEOM_BLOCK];
    ptrdiff_t first[HYPERGEOM_WAYS + 1];
    ptrdiff_t i, place = 0, last;
    int w;
    for (w = 0; w < HYPERGEOM_WAYS + 1; w++) first[w] = 0;
    for (i = 0; i < t->count; i++) first[(int)way[i] + 1] += 1;
    for (w = 0; w < HYPERGEOM_WAYS; w++) first[w + 1] += first[w];
    *lone = first[HYPERGEOM_LONE];
    for (i = 0; i < t->count; i++) {
        w = (int)way[i];
        order[first[w]] = (int)i;
        first[w] += 1; /* the end of this list after all points are placed */
    }
    for (w = 0; w < HYPERGEOM_SUM + 1; w++) {
        last = w < HYPERGEOM_SUM ? first[w] : *lone;
        some.count = 0;
        while (place < last) {
            i = order[place];
            points_add(&some, i, t->j[i], t->total[i], t->marked[i], t->draws[i]);
            place += 1;
        }
        while (some.count % HYPERGEOM_ABREAST)
            points_add(&some, some.at[0], some.j[0], some.total[0], some.marked[0], some.draws[0]);
        hypergeom_groups(level, &some, w);
        if (w == HYPERGEOM_SUM) {
            points_pmf(level, &some, mass);
            for (i = 0; i < some.count; i++) some.value[i] += mass[i];
        }
        for (i = 0; i < some.count; i++) t->value[some.at[i]] = some.value[i];
    }
}

static inline double hypergeom_least(double total, double marked, double draws) { return fmax(0, draws - (total - marked)); }

static inline void hypergeom_block_tail(int level, const double *const *x, double *value, ptrdiff_t count, int upper);

/* Returns log Pr[X > k] (upper) or log Pr[X <= k]. */
static inline double hypergeom_tail(double k, double total, double marked, double draws, int upper)
{
    const double *x[4];
    double value;
    if (k < hypergeom_least(total, marked, draws)) return upper ? 0 : -INFINITY;
    if (k >= fmin(marked, draws)) return upper ? -INFINITY : 0;
    x[0] = &k; x[1] = &total; x[2] = &marked; x[3] = &draws;
    hypergeom_block_tail(vectors_level(), x, &value, 1, upper);
    return value;
}

static inline double kernel_hypergeom_logpmf(double k, double total, double marked, double draws)
{
    double low = hypergeom_least(total, marked, draws), high = fmin(marked, draws), p;
    if (k < low || k > high) return -INFINITY;
    if (low == high) return 0;
    p = draws / total;
    return kernel_binom_logpmf(k, marked, p) + kernel_binom_logpmf(draws - k, total - marked, p)
        - kernel_binom_logpmf(draws, total, p);
}

static inline double kernel_hypergeom_logcdf(double k, double total, double marked, double draws)
{
    return hypergeom_tail(k, total, marked, draws, 0);
}

static inline double kernel_hypergeom_logsf(double k, double total, double marked, double draws)
{
    return hypergeom_tail(k, total, marked, draws, 1);
}

/* Returns log Pr[X = k], given as `value`. If it is near 0, where the relative error matters, it is formed from the tails below and
 * above k. */
static inline double hypergeom_near_one(double value, double k, double total, double marked, double draws)
{
    double outside;
    if (value < -0.2 || hypergeom_least(total, marked, draws) == fmin(marked, draws)) return value;
    outside = kernel_log_add_exp(hypergeom_tail(k - 1, total, marked, draws, 0), hypergeom_tail(k, total, marked, draws, 1));
    return kernel_log1mexp(fmin(outside, 0));
}

static inline int hypergeom_count(double n) { return (0 <= n && n <= TWO_53) && n == floor(n); }

static inline int hypergeom_domain(double k, double total, double marked, double draws)
{
    return k == k && hypergeom_count(total) && hypergeom_count(marked) && hypergeom_count(draws) && marked <= total
        && draws <= total;
}

static inline double kernel_checked_hypergeom_logpmf(double k, double total, double marked, double draws)
{
    if (!hypergeom_domain(k, total, marked, draws)) return NAN;
    return k == floor(k) ? hypergeom_near_one(kernel_hypergeom_logpmf(k, total, marked, draws), k, total, marked, draws)
        : -INFINITY;
}

static inline double kernel_checked_hypergeom_logcdf(double k, double total, double marked, double draws)
{
    return hypergeom_domain(k, total, marked, draws) ? kernel_hypergeom_logcdf(floor(k), total, marked, draws) : NAN;
}

static inline double kernel_checked_hypergeom_logsf(double k, double total, double marked, double draws)
{
    return hypergeom_domain(k, total, marked, draws) ? kernel_hypergeom_logsf(floor(k), total, marked, draws) : NAN;
}

static inline void hypergeom_block_pmf(int level, const double *const *x, double *value, ptrdiff_t count)
{
    Points t;
    double mass[HYPERGEOM_BLOCK];
    ptrdiff_t i;
    double k, total, marked, draws;
    t.count = 0;
    for (i = 0; i < count; i++) {
        k = x[0][i]; total = x[1][i]; marked = x[2][i]; draws = x[3][i];
        if (hypergeom_domain(k, total, marked, draws) && k == floor(k) && (hypergeom_least(total, marked, draws) <= k
            && k <= fmin(marked, draws)) && hypergeom_least(total, marked, draws) < fmin(marked, draws))
            points_add(&t, i, k, total, marked, draws);
        else value[i] = kernel_checked_hypergeom_logpmf(k, total, marked, draws);
    }
    points_pmf(level, &t, mass);
    for (i = 0; i < t.count; i++)
        value[t.at[i]] = hypergeom_near_one(mass[i], t.j[i], t.total[i], t.marked[i], t.draws[i]);
}

/* Computes log Pr[X > k] (upper) or log Pr[X <= k]. log_tail computes the elements outside of the support. */
static inline void hypergeom_block_tail(int level, const double *const *x, double *value, ptrdiff_t count, int upper)
{
    Points t;
    double other[HYPERGEOM_BLOCK], way[HYPERGEOM_BLOCK];
    int order[HYPERGEOM_BLOCK];
    ptrdiff_t i, at, lone;
    hypergeom_sort(level, x, count, upper, &t, other, way);
    points_tails(level, &t, way, &lone, order);
    hypergeom_complete(level, other, t.value, count);
    for (i = 0; i < count; i++) value[i] = t.value[i];
    for (i = lone; i < count; i++) {
        at = order[i];
        value[at] = (upper ? kernel_checked_hypergeom_logsf : kernel_checked_hypergeom_logcdf)(x[0][at], x[1][at], x[2][at],
            x[3][at]);
    }
}

#endif
