/* Clone bounds of one deployment: delta(eps) and eps(delta).
 * Method and errors: the header of _clones.pyx. */
#ifndef SHUFFLEBOUNDS_CLONES_H
#define SHUFFLEBOUNDS_CLONES_H

#include "compound.h"
#include "crossing.h"

#define CLONES_MOST_BUDGET 700.0                /* e^-local is a normal number, as the kernels need */
#define CLONES_CLOSE 2e-13                      /* largest relative distance of the returned eps from the crossing */

typedef struct {
    double users;
    double rate;
    double local;
    double log_factor;  /* log tanh(local/2) - log(users rate) */
} ClonePair;

static inline double kernel_clone_rate(double local, int stronger)
{
    return stronger ? 2 * exp(-local) / (1 + exp(-local)) : exp(-local);
}

static inline ClonePair clones_pair(double users, double rate, double local)
{
    ClonePair pair;
    pair.users = users; pair.rate = rate; pair.local = local;
    pair.log_factor = (local > 1e-8 ? log(tanh(0.5 * local)) : log(local) - 0.6931471805599453) - log(users) - log(rate);
    return pair;
}

/* Writes u and v = 1 - u, which the header of _clones.pyx defines. */
static inline void clones_slopes_of(double eps, double local, double *u, double *v)
{
    if (local < 1e-8) {
        /* tanh(x) = x here; 0.5 * local would not be representable for a subnormal `local` */
        *u = eps / local;
        *v = (local - eps) / local;
        return;
    }
    *u = fmin(1.0, tanh(0.5 * eps) / tanh(0.5 * local));
    *v = fmin(1.0, 2 * exp(-eps) * -expm1(eps - local) / ((1 + exp(-eps)) * -expm1(-local)));
}

static inline void clones_slopes(double eps, const ClonePair *pair, double *u, double *v)
{
    clones_slopes_of(eps, pair->local, u, v);
}

/* Returns log delta by the closed form in _clones.pyx, valid for users v <= 2, and writes a bound of its absolute error. */
static inline double clones_edge(double eps, const ClonePair *pair, double *error)
{
    double gap = pair->local - eps, part = -log1p(exp(-pair->local)), others = (pair->users - 1) * log1p(-0.5 * pair->rate);
    gap = log(-expm1(-gap));
    *error = 4 * UNIT * (fabs(gap) + 4 * fabs(others) + 2);
    return gap + part + others;
}

/* Writes the bounds of log delta(eps) and, unless `ahead` is NULL, properties of the clone sum at larger eps. */
static inline void clones_log_delta(double eps, const ClonePair *pair, double *lower, double *upper, Ahead *ahead)
{
    double u, v, factor, slack;
    if (ahead != NULL) ahead->pull = 0;
    if (eps >= pair->local) {
        *lower = *upper = -INFINITY;
        return;
    }
    clones_slopes(eps, pair, &u, &v);
    if (pair->users * v <= 2) {
        factor = clones_edge(eps, pair, &slack);
        *lower = factor - slack;
        *upper = fmin(0, factor + slack);
        return;
    }
    kernel_log_sign_ahead(pair->users, pair->rate, u, v, lower, upper, ahead);
    factor = pair->log_factor + kernel_log_add_exp(0, eps);
    slack = 8 * UNIT * (fabs(pair->log_factor) + eps + fabs(*upper) + 1);
    *lower += factor - slack;
    *upper = fmin(0, *upper + (factor + slack));
}

static inline void kernel_clone_log_delta(double users, double rate, double local, double eps, double *lower, double *upper)
{
    ClonePair pair = clones_pair(users, rate, local);
    clones_log_delta(eps, &pair, lower, upper, NULL);
}

/* Returns sqrt(2 pi) E e^(-x Z) max(0, Z), x >= 0, by an Edgeworth expansion, for Z with mean 0, variance 1 and the given third and
 * fourth cumulants.
 *
 * The value for a normal Z is multiplied by 1 + t/(1 + t^2), where t is the relative correction: 1 + t could be negative. */
static inline double clones_positive_part(double x, double skewness, double kurtosis)
{
    double j[8];
    double t;
    int k;
    if (x >= 40) {
        /* 1 - x M(x), M Mills' ratio, cancels: it is about 1/x^2 */
        return 1 / (x * x + 3);
    }
    /* j[k] is the integral of z^k e^(-x z - z^2/2) over z > 0 */
    j[0] = kernel_mills_ratio(x);
    j[1] = 1 - x * j[0];
    for (k = 2; k < 8; k++) j[k] = (k - 1) * j[k - 2] - x * j[k - 1];
    t = skewness / 6 * (j[4] - 3 * j[2]);
    /* the recursion multiplies rounding errors by x in every step */
    if (x < 12)
        t += kurtosis / 24 * (j[5] - 6 * j[3] + 3 * j[1]) + skewness * skewness / 72 * (j[7] - 15 * j[5] + 45 * j[3] - 15 * j[1]);
    t /= j[1];
    return j[1] * (1 + t / (1 + t * t));
}

/* Returns an approximation of log delta that is smooth up to eps = local, from the first four tilted cumulants. */
static inline double clones_estimate(double eps, const ClonePair *pair)
{
    double u, v, tilt, half, weight, moved, mean, variance;
    if (eps >= pair->local) return -INFINITY;
    clones_slopes(eps, pair, &u, &v);
    if (u <= 0.5) {
        tilt = atanh(u);
        half = sinh(0.5 * tilt);
        weight = log1p(2 * half * half) - u * tilt;
    } else {
        tilt = 0.5 * (log1p(u) - log(v));
        weight = v * tilt - 0.6931471805599453 + log1p(exp(-2 * tilt));
    }
    moved = pair->rate * expm1(weight);
    mean = pair->users * pair->rate * exp(weight) / (1 + moved);
    variance = mean * v * (1 + u) + 1e-300;
    /* a message that is a clone, +1 - u or -1 - u with tilted mean 0, has the variance 1 - u^2 = v (1 + u), the third moment
     * -2 u (1 - u^2) and the fourth moment (1 - u^2)(1 + 3 u^2) */
    return pair->users * log1p(moved) + 0.5 * log(variance) - 0.91893853320467274 + pair->log_factor + kernel_log_add_exp(0, eps)
        + log(clones_positive_part(tilt * sqrt(variance), -2 * u / sqrt(variance), (1 + 3 * u * u) / variance - 3 / pair->users));
}

/* Returns an eps to start the search from, or 0 if there is none: the inverse of the normal approximation. */
static inline double clones_guess(double target, const ClonePair *pair)
{
    double mean = pair->users * pair->rate, depth = pair->log_factor + 0.5 * log(mean) - target - 0.23, x;
    if (!(depth > 0.5)) return 0;
    /* solve depth = x^2/2 - log(1 - x M(x)) by two steps of a fixed-point iteration, with -log(1 - x M(x)) ~ log(1 + 1.25 x +
     * x^2) */
    x = sqrt(2 * depth);
    x = sqrt(fmax(0.5, 2 * (depth - log1p(1.25 * x + x * x))));
    x = sqrt(fmax(0.5, 2 * (depth - log1p(1.25 * x + x * x)))) / sqrt(mean);
    return x < 0.7 ? 2 * atanh(x * tanh(0.5 * pair->local)) : 0;
}

/* Returns the eps at which log delta, by the closed form for users v <= 2, is the target, or 0 if users v > 2 at this eps. */
static inline double clones_edge_eps(double target, const ClonePair *pair)
{
    double u, v, error, gap = target - clones_edge(0, pair, &error) + log(-expm1(-pair->local));
    if (!(gap < 0 && pair->local < INFINITY)) return 0;
    gap = pair->local + log1p(-exp(gap));
    if (!(0 < gap && gap < pair->local)) return 0;
    clones_slopes(gap, pair, &u, &v);
    return pair->users * v <= 2 ? gap : 0;
}

static inline double clones_side(double eps, int upper, const void *pair)
{
    double low, high;
    clones_log_delta(eps, (const ClonePair *)pair, &low, &high, NULL);
    return upper ? high : low;
}

/* Returns a bound of log delta at eps. Writes to `crossing` the eps' at which this bound meets the target, if the bound of delta
 * is linear in e^eps between eps and eps'.
 *
 * With x = e^(eps' - eps) - 1, delta(eps') <= delta(eps)(1 - k x), because every term of the clone sum, times 1 + e^eps, is linear
 * in e^eps as long as no threshold changes. Here k = (du/deps) pull - e^eps/(1 + e^eps), with `pull` of Ahead (compound.h). */
static inline double clones_ahead(double eps, int upper, double target, const void *law, double *crossing, int *proved)
{
    const ClonePair *pair = (const ClonePair *)law;
    Ahead ahead;
    double low, high, value, k, x, u, v;
    clones_log_delta(eps, pair, &low, &high, &ahead);
    value = upper ? high : low;
    *crossing = 0; *proved = 0;
    if (!(ahead.pull > 0 && value > -INFINITY)) return value;
    u = cosh(0.5 * eps);
    k = 0.5 / (u * u * tanh(0.5 * pair->local)) * ahead.pull * (1 - 16 * UNIT) - (1 + 4 * UNIT) / (1 + exp(-eps));
    x = -expm1(target - value) / k;
    if (!(k > 0 && x > -0.5)) return value;
    *crossing = eps + log1p(x);
    if (!(*crossing < pair->local)) {
        *crossing = 0;
        return value;
    }
    clones_slopes(*crossing, pair, &u, &v);
    /* the last condition: a relative step of CLONES_CLOSE/2 in eps changes log delta by more than the rounding errors of the
     * target, the value and x */
    *proved = upper && x >= 0 && u <= ahead.still && 0.5 * CLONES_CLOSE * k * *crossing > 16 * UNIT * (1 - target);
    return value;
}

static inline double clones_rough(double eps, const void *pair) { return clones_estimate(eps, (const ClonePair *)pair); }

static inline double kernel_clone_epsilon(double users, double rate, double local, double delta, int upper)
{
    ClonePair pair = clones_pair(users, rate, local);
    Curve curve;
    double target, form = 0, start = 0;
    curve.side = clones_side; curve.rough = clones_rough; curve.centre = NULL; curve.ahead = clones_ahead;
    curve.law = &pair; curve.pure = local; curve.last = BEYOND; curve.span = INFINITY; curve.close = CLONES_CLOSE;
    curve.sure = users * rate >= 1;
    curve.miss = fmin(1e-5, 1 / pow(users * rate, 2));
    if (0 < delta && delta < 1) {
        target = kernel_level(delta, upper);
        form = clones_edge_eps(target, &pair); start = clones_guess(target, &pair);
    }
    return kernel_crossing(&curve, delta, upper, start, form, 1);
}

static inline int clones_domain(double users, double local)
{
    return 1 <= users && users <= TWO_53 && users == floor(users) && 0 < local && local <= CLONES_MOST_BUDGET;
}

static inline void kernel_checked_clones_log_delta(double users, double local, double eps, int stronger, double *lower, double *upper)
{
    *lower = *upper = NAN;
    if (clones_domain(users, local) && 0 <= eps && eps < INFINITY)
        kernel_clone_log_delta(users, kernel_clone_rate(local, stronger != 0), local, eps, lower, upper);
}

static inline double kernel_checked_clones_epsilon(double users, double local, double delta, int stronger, int upper)
{
    if (!(clones_domain(users, local) && 0 < delta && delta <= 1)) return NAN;
    return kernel_clone_epsilon(users, kernel_clone_rate(local, stronger != 0), local, delta, upper != 0);
}

#endif
