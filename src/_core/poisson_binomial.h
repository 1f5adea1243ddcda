/* One point or tail of a Poisson-binomial distribution, by Fourier inversion along a tilted contour.
 * Method and errors: the header of _lattice.pyx. */
#ifndef SHUFFLEBOUNDS_POISSON_BINOMIAL_H
#define SHUFFLEBOUNDS_POISSON_BINOMIAL_H

#include "binomial.h"
#include "lattice.h"

/* Up to LATTICE_FEW groups are evaluated one by one at every node. */
#define LATTICE_FEW 24
/* Size of the sample of groups from which the search for a tilt starts if there are 16 times as many groups: about six passes
 * over the sample save one or two passes over all groups. */
#define LATTICE_SAMPLE 2048
/* Limit of the number of nodes of one inversion. It is never reached: the half period J (kernel_half_period) is at most
 * 12 sigma + 16 + reach, which is below 2**53 for n <= 2**53. */
#define LATTICE_MOST_NODES ((ptrdiff_t)1 << 53)
#define LATTICE_ROOM 616                        /* groups that are evaluated one by one: at most 9.2 * 1.5 * 43 + 16 */

/* _lattice.pxd describes the fields of Law, Tilt, Phi, Node and Geometric. */
typedef struct {
    const double *p;
    const double *q;
    const double *counts;
    ptrdiff_t groups;
    double trials;
    double mean;
    double mean_lo;
    double var;
    lattice_interrupted interrupted;
} Law;

typedef struct {
    double theta;
    double shift;
    double blur;
    double var;
    double exponent;
    double exponent_error;
} Tilt;

typedef struct {
    int orders;
    int small;
    ptrdiff_t middle;
    double *x;
    double *y;
    double *g;
    double even[64];
    double odd[64];
    double low[28];
    double high[28];
    double near[3 * LATTICE_ROOM];
} Phi;

typedef struct {
    double t;
    double s;
    double c;
    double weight;
    double re;
    double im;
    double size;
    double rounding;
} Node;

typedef struct {
    double J;
    double keep;
    double decay;
    double cut;
    double whole;
    double toward;
} Geometric;

typedef struct {
    double pmf;  /* relative to exp(exponent) */
    double tail;  /* relative to exp(exponent) */
    double pmf_error;  /* absolute error bound of pmf */
    double tail_error;  /* absolute error bound of tail */
} Inverted;

/* Fill in a Law: mean (as a double-double), variance and number of trials. */
static inline void kernel_lattice_law(Law *law, const double *p, const double *q, const double *counts, ptrdiff_t groups)
{
    law->p = p;
    law->q = q;
    law->counts = counts;
    law->groups = groups;
    law->interrupted = NULL;
    dd mean = lattice_mean(p, q, counts, groups, &law->trials, &law->var);
    law->mean = mean.hi; law->mean_lo = mean.lo;
}

/* Returns X log(X/m) - d at X = x + rest, with d = X - m rounded; `rest` is the rounding error of x, 0 < m < 1. */
static inline double lattice_deviance(double x, double rest, double m, double d)
{
    dd part;
    double r, log_r;
    if (!(x > 0)) return -d;
    if (fabs(d) <= 0.03125 * (x + m)) return kernel_deviance(x, m, d);
    /* products of numbers below LATTICE_TINY would lose their low parts, and the quotient x/m may overflow */
    if (LESSER(m, x) < LATTICE_TINY) return x * (log(x) - log(m)) - d + rest * (1 + log(x) - log(m));
    r = x / m;
    part = dd_prod(r, m);
    rest += x - part.hi - part.lo;
    log_r = log(r);
    part = dd_prod(x, log_r);
    return part.hi - d + (part.lo + rest + rest * log_r);
}

/* Writes the exact d = x - p to d, and the rounding errors of x and of y = 1 - x to x_rest and y_rest.
 *
 * y = 1 - x and q = 1 - p. The smaller double of each pair is taken as exact, the larger one as 1 minus the smaller one. */
static inline void lattice_change(double p, double q, double x, double y, dd *d, double *x_rest, double *y_rest)
{
    *x_rest = *y_rest = 0;
    /* the larger of p and q is at least 1/2, so 1 minus it is exact in doubles */
    if (x <= y) {
        *d = dd_sum(x, -p);
        if (p > q) *d = dd_fast_sum(d->hi, d->lo - (1 - p - q));
        *y_rest = 1 - y - x;
    } else {
        *d = dd_sum(q, -y);
        if (q >= p) *d = dd_fast_sum(d->hi, d->lo + (1 - q - p));
        *x_rest = 1 - x - y;
    }
}

/* Returns kl(x || p) = x log(x/p) + y log(y/q) with relative error about 2**-60, and writes d of lattice_change. */
static inline dd lattice_divergence(double p, double q, double x, double y, dd *d)
{
    double lo = 0, part, x_rest, y_rest, p_lo = p > q ? 1 - p - q : 0, q_lo = p > q ? 0 : 1 - q - p;
    dd total;
    lattice_change(p, q, x, y, d, &x_rest, &y_rest);
    part = kernel_deviance_dd(x, p, p_lo, d->hi, d->lo, &lo);
    total = dd_make(part, lo);
    part = kernel_deviance_dd(y, q, q_lo, -d->hi, -d->lo, &lo);
    total = dd_add(total, dd_make(part, lo));
    /* the effect of the rounding of the larger of x and y is added where c_deviance_dd uses a logarithm */
    if (x <= y) {
        if (fabs(d->hi) > 0.03125 * (y + q))
            total = dd_add(total, dd_make(y_rest * (1 + log(y / q)), 0));
    } else if (fabs(d->hi) > 0.03125 * (x + p)) {
        total = dd_add(total, dd_make(x_rest * (1 + log(x / p)), 0));
    }
    return total;
}

/* Computes the exponent K(theta) - k theta.
 *
 * Without multiplicities the exponent is the logarithm of a product (lattice_log) minus k theta, in double-double.
 *
 * Otherwise, and for |theta| > 700, it is theta shift - sum g kl(x || p) over the groups of g trials with equal p. There x is the
 * tilted probability of a trial, and shift = sum g x - k. The divergences kl(x || p) are not negative, so their sum has no
 * cancellation, however large g is. With the shift of the rounded x, the expression is stationary in x at fixed theta, so that
 * rounding x has an effect of second order only. */
static inline void kernel_exponent(const Law *law, double theta, double k, Tilt *tilt)
{
    double x[256], y[256], d[256], w[256];
    double a = exp(0.5 * theta), b = exp(-0.5 * theta), c = 2 * sinh(0.5 * theta);
    ptrdiff_t start = 0, size, i;
    dd total = dd_make(0, 0), shift = dd_add(dd_make(law->mean, law->mean_lo), dd_make(-k, 0)), term, change;
    double p, q, x_rest, y_rest, lost = 0;
    if (law->counts == NULL && fabs(theta) <= 700) {
        lattice_log(vectors_level(), law->p, law->q, law->groups, theta, law->interrupted, &total);
        total = dd_add(total, dd_prod(theta, theta < 0 ? law->trials - k : -k));
        tilt->exponent = total.hi;
        tilt->exponent_error = UNIT * (fabs(total.hi) + 2);
        return;
    }
    while (start < law->groups && !lattice_leave(law->interrupted, start)) {
        size = LESSER(law->groups - start, (ptrdiff_t)LATTICE_CHUNK);
        lattice_fill(law->p + start, law->q != NULL ? law->q + start : NULL, law->counts != NULL ? law->counts + start : NULL,
            size, a, b, c, x, y, d, w);
        for (i = 0; i < size; i++) {
            p = law->p[start + i];
            q = law->q != NULL ? law->q[start + i] : 1 - p;
            if (LESSER(x[i], y[i]) > LATTICE_TINY && LESSER(p, q) > LATTICE_TINY)
                term = lattice_divergence(p, q, x[i], y[i], &change);
            else {
                lattice_change(p, q, x[i], y[i], &change, &x_rest, &y_rest);
                term = dd_make(lattice_deviance(x[i], x_rest, p, change.hi) + lattice_deviance(y[i], y_rest, q, -change.hi), 0);
                lost += 10 * w[i] * term.hi;
            }
            total = dd_add(total, dd_mul_d(term, w[i]));
            shift = dd_add(shift, dd_mul_d(change, w[i]));
        }
        start += size;
    }
    /* tilt.shift keeps its value: the inversion needs the mean at the exact tilt, not the mean of the rounded x. */
    total = dd_add(dd_mul_d(shift, theta), dd_neg(total));
    tilt->exponent = total.hi;
    tilt->exponent_error = UNIT * (fabs(total.hi) + lost);
}

static inline int kernel_lattice_tilt(const Law *law, double k, double tolerance, Tilt *tilt);

/* Returns the tilt that moves the mean of a sample of LATTICE_SAMPLE groups by the distance of k from the mean of all groups, times
 * the sample's share of the trials. */
static inline double lattice_first_tilt(const Law *law, double k)
{
    double p[LATTICE_SAMPLE], q[LATTICE_SAMPLE], counts[LATTICE_SAMPLE];
    ptrdiff_t i, step = law->groups / LATTICE_SAMPLE;
    Law part;
    Tilt tilt;
    for (i = 0; i < LATTICE_SAMPLE; i++) {
        p[i] = law->p[i * step];
        q[i] = law->q != NULL ? law->q[i * step] : 0;
        counts[i] = law->counts != NULL ? law->counts[i * step] : 1;
    }
    kernel_lattice_law(&part, p, law->q != NULL ? q : NULL, law->counts != NULL ? counts : NULL, LATTICE_SAMPLE);
    k = part.mean + (k - law->mean) * (part.trials / law->trials);
    if (!(0 < k && k < part.trials)) return 0;
    kernel_lattice_tilt(&part, k, 0.02, &tilt);
    return tilt.theta;
}

/* Finds theta with |K'(theta) - k| <= tolerance max(1, sigma); writes it with the tilted shift, variance and exponent to tilt.
 *
 * The search makes Newton steps on logit(K'(theta)/n) inside a bracket. This logit is linear in theta for one group, and has a
 * slope in (0, 1] for any number of groups. The caller has checked: 0 < k < n. Returns the number of steps. */
static inline int kernel_lattice_tilt(const Law *law, double k, double tolerance, Tilt *tilt)
{
    double low = -1400, high = 1400, theta = 0, var = law->var, mean, slope, step;
    dd gap = dd_add(dd_make(law->mean, law->mean_lo), dd_make(-k, 0)), shift = gap;
    int steps = 0;
    while (fabs(shift.hi) > tolerance * (var < 1 ? 1 : sqrt(var)) && steps < 200) {
        steps += 1;
        if (shift.hi > 0) high = theta;
        else low = theta;
        mean = k + shift.hi;
        step = INFINITY;
        if (steps == 1 && law->groups >= 16 * LATTICE_SAMPLE) step = lattice_first_tilt(law, k);
        else if ((0 < mean && mean < law->trials) && var > 0) {
            slope = var * law->trials / (mean * (law->trials - mean));
            step = (log1p(-shift.hi / mean) - log1p(shift.hi / (law->trials - mean))) / slope;
        }
        theta += step;
        if (!(low < theta && theta < high)) theta = 0.5 * (low + high);
        shift = dd_add(gap, lattice_shift(law->p, law->q, law->counts, law->groups, exp(0.5 * theta), exp(-0.5 * theta),
            2 * sinh(0.5 * theta), &var));
        if (low == high || (law->interrupted != NULL && law->interrupted())) break;
    }
    tilt->theta = theta;
    shift = lattice_tilted_mean(law->p, law->q, law->counts, law->groups, theta, dd_make(law->mean, law->mean_lo),
        dd_add(shift, dd_neg(gap)), &tilt->blur);
    tilt->shift = dd_add(shift, dd_make(-k, 0)).hi;
    tilt->var = var;
    kernel_exponent(law, theta, k, tilt);
    return steps;
}

/* Writes to tilt the distribution tilted by theta, |theta| <= 1, with exponent K(theta); returns the integer k next to its mean. */
static inline double kernel_lattice_tilted(const Law *law, double theta, Tilt *tilt)
{
    double k, more = expm1(theta);
    dd mean = lattice_shift(law->p, law->q, law->counts, law->groups, exp(0.5 * theta), exp(-0.5 * theta), 2 * sinh(0.5 * theta),
        &tilt->var), total = dd_make(0, 0);
    ptrdiff_t j;
    mean = lattice_tilted_mean(law->p, law->q, law->counts, law->groups, theta, dd_make(law->mean, law->mean_lo), mean,
        &tilt->blur);
    k = floor(mean.hi + 0.5);
    tilt->theta = theta;
    tilt->shift = dd_add(mean, dd_make(-k, 0)).hi;
    if (law->counts == NULL) {
        kernel_exponent(law, theta, 0, tilt);
        return k;
    }
    /* The terms have one sign. Each has a relative error of at most 8 UNIT, because 1 + p expm1(theta) >= 1/e does not cancel. */
    for (j = 0; j < law->groups; j++)
        total = dd_add(total, dd_prod(law->counts[j], log1p(law->p[j] * more)));
    tilt->exponent = total.hi;
    tilt->exponent_error = 8 * UNIT * fabs(total.hi);
    return k;
}

/* Returns the number of orders of the series in w and delta for nodes z = theta + i t, |theta| sigma <= depth.
 *
 * With v = (sigma t)^2, the terms beyond m orders, times |phi| = e^(-v/2), are at most
 * 2 sigma^2 r^(m+1) e^(-v/2)/(m+1), r = tan^2 of half of |z|. The largest is at v = 2(m+1) - depth^2 or at v = 0. */
static inline int kernel_orders(double var, double depth)
{
    int m;
    double v, r;
    for (m = 2; m < LATTICE_ORDERS; m += 2) {
        v = GREATER(2 * (m + 1) - depth * depth, 0.0);
        r = (depth * depth + v) / (4 * var);
        r /= GREATER(1 - r, 0.1);
        if (log(2 * var / (m + 1)) + (m + 1) * log(r) - 0.5 * v < -36.5) return m;
    }
    return LATTICE_ORDERS;
}

/* Chooses the form of log phi for nodes |sin(t/2)| <= half, and computes its sums in one pass over the groups.
 *
 * At most 24 groups          one by one
 * tan(t/2)^2 < 1/2           series, with T = tan(t/2), S = sin(t/2), w = 4xy, delta = x - y:
 *                            log|phi| = -1/2 sum_m S^2m/m sum_j g w^m,
 *                            arg phi = sum_m (-1)^(m+1) T^(2m+1)/(2m+1) sum_j g delta (1 - delta^2m)
 * otherwise                  sigma < 8.1: sums of x^m over x < 1/8, of y^m over y < 1/8; at most 9.2 sigma^2 other groups */
static inline void kernel_phi_make(const Law *law, double theta, double var, double half, Phi *phi)
{
    double a = exp(0.5 * theta), b = exp(-0.5 * theta), c = 2 * sinh(0.5 * theta);
    double ratio = half < 1 ? half * half / (1 - half * half) : INFINITY;
    double d[256];
    ptrdiff_t room;
    phi->orders = phi->small = 0;
    phi->middle = 0;
    phi->x = phi->near;
    phi->y = phi->near + LATTICE_ROOM;
    phi->g = phi->near + 2 * LATTICE_ROOM;
    if (law->groups <= LATTICE_FEW) {
        /* lattice_fill pads to a multiple of 8, and LATTICE_FEW is one */
        lattice_fill(law->p, law->q, law->counts, law->groups, a, b, c, phi->x, phi->y, d, phi->g);
        phi->middle = law->groups;
    } else if (ratio < 0.5) {
        phi->orders = kernel_orders(var, 0);
        lattice_sums(law->p, law->q, law->counts, law->groups, a, b, c, phi->orders, law->interrupted, phi->even, phi->odd);
    } else {
        phi->small = LATTICE_SMALL;
        room = 9.2 * var + 16 >= law->groups ? law->groups : whole(9.2 * var, 0, law->groups) + 16;
        /* half >= 1/sqrt(3) here, so that var <= 1.5 BAND (kernel_half_within) and 9.2 var + 16 < LATTICE_ROOM */
        room = LESSER(room, LATTICE_ROOM);
        phi->middle = lattice_split(law->p, law->q, law->counts, law->groups, a, b, c, law->interrupted, phi->low, phi->high,
            phi->x, phi->y, phi->g, room);
        phi->middle = LESSER(phi->middle, room);
    }
}

/* Returns atan(v) - v without cancellation for small v. */
static inline double lattice_atan_rest(double v)
{
    double w = v * v, s;
    if (w > 0.12) return atan(v) - v;
    if (w < 1e-3) s = 1 / 5.0 - w * (1 / 7.0 - w * (1 / 9.0 - w * (1 / 11.0 - w / 13.0)));
    else {
        s = 1 / 19.0 - w * (1 / 21.0 - w * (1 / 23.0 - w * (1 / 25.0 - w * (1 / 27.0
            - w * (1 / 29.0 - w * (1 / 31.0 - w * (1 / 33.0 - w / 35.0)))))));
        s = 1 / 5.0 - w * (1 / 7.0 - w * (1 / 9.0 - w * (1 / 11.0 - w * (1 / 13.0 - w * (1 / 15.0 - w * (1 / 17.0 - w * s))))));
    }
    return -v * w * (1 / 3.0 - w * s);
}

/* Returns sin(t) - t without cancellation for small t. */
static inline double lattice_sin_rest(double t)
{
    double w = t * t;
    if (w > 1) return sin(t) - t;
    return -t * w / 6 * (1 - w / 20 * (1 - w / 42 * (1 - w / 72 * (1 - w / 110 * (1 - w / 156 * (1 - w / 210 * (1 - w / 272)))))));
}

/* Computes log|phi(t)| and arg phi(t), centred at the mean, for s = sin(t/2), c = cos(t/2), 0 <= t <= pi.
 *
 * One group, with delta = x - y and T = tan(t/2): log|phi| = log1p(-4xy s^2)/2, or log(c^2 + (delta s)^2)/2 where the argument of
 * log1p is near -1. For a fair coin the last logarithm tends to log 0 as t -> pi, so its argument is kept above 1e-31; effort
 * contains the error of this.
 * |delta| <= 1/2   arg = (atan(delta T) - delta T) - delta (atan(T) - T)
 * otherwise        arg = (atan(r) - r) + u ((sin t - t) + 2 u s^2 t)/(1 - 2 u s^2),
 *                  r = u sin t/(1 - 2 u s^2), u = min(x, y)
 * The rounding errors of log|phi| and arg are below 4 ulp of effort, the sum of the magnitudes of the terms. */
static inline void kernel_phi_at(const Phi *phi, double t, double s, double c, double *log_abs, double *phase, double *effort)
{
    double s2 = s * s, total = 0, turn = 0, part, delta, u, v, sine = 2 * s * c, rest = lattice_sin_rest(t), tangent, bend;
    double re, im, hold, ur, ui, spent = 0, wide = t > 0.6 ? 2 * t : 0;
    ptrdiff_t j;
    int m;
    if (phi->orders) {
        part = 0;
        for (m = phi->orders; m > 0; m--) part = part * s2 + phi->even[m - 1] / m;
        total = -0.5 * s2 * part;
        tangent = s / c;
        v = tangent * tangent;
        part = 0;
        for (m = phi->orders; m > 0; m--) part = phi->odd[m - 1] / (2 * m + 1) - v * part;
        turn = tangent * v * part;
        *log_abs = total;
        *phase = turn;
        *effort = fabs(total) + fabs(turn);
        return;
    }
    if (phi->small) {
        ur = -2 * s2;
        ui = sine;
        re = im = 0;
        for (m = phi->small; m > 1; m--) {
            /* (re, im) is the value of a polynomial by Horner's rule; its coefficients are low + high here, and low - high below */
            part = (phi->low[m - 1] + phi->high[m - 1]) / m;
            hold = part - (re * ur - im * ui);
            im = -(re * ui + im * ur);
            re = hold;
        }
        total = (phi->low[0] + phi->high[0]) * ur - (re * (ur * ur - ui * ui) - im * (2 * ur * ui));
        re = im = 0;
        for (m = phi->small; m > 1; m--) {
            part = (phi->low[m - 1] - phi->high[m - 1]) / m;
            hold = part - (re * ur - im * ui);
            im = -(re * ui + im * ur);
            re = hold;
        }
        turn = (phi->low[0] - phi->high[0]) * rest - (re * (2 * ur * ui) + im * (ur * ur - ui * ui));
        spent = fabs(turn) + wide * (phi->low[0] + phi->high[0]);
    }
    if (c > 0.7) {
        tangent = s / c;
        bend = lattice_atan_rest(tangent);
    }
    for (j = 0; j < phi->middle; j++) {
        v = -4 * phi->x[j] * phi->y[j] * s2;
        delta = phi->x[j] - phi->y[j];
        if (v > -0.5) total += 0.5 * phi->g[j] * log1p(v);
        else {
            v = GREATER(c * c + delta * delta * s2, 1e-31);
            total += 0.5 * phi->g[j] * log(v);
            spent += phi->g[j] / sqrt(v);
        }
        if (fabs(delta) <= 0.5) {
            if (c > 0.7) part = lattice_atan_rest(delta * tangent) - delta * bend;
            else part = atan2(delta * s, c) - 0.5 * delta * t;
        } else {
            u = delta < 0 ? phi->x[j] : phi->y[j];
            v = 1 / (1 - 2 * u * s2);
            part = lattice_atan_rest(u * sine * v) + u * (rest + 2 * u * s2 * t) * v;
            if (delta > 0) part = -part;
        }
        turn += phi->g[j] * part;
        spent += phi->g[j] * (fabs(part) + wide * LESSER(phi->x[j], phi->y[j]));
    }
    *log_abs = total;
    *phase = turn;
    *effort = fabs(total) + spent;
}

/* Returns J such that the tilted mass farther than J from a point within `reach` of the mean is at most 2 e^-band.
 *
 * Bennett: Pr[|S - m| >= a] <= 2 exp(-sigma^2 h(a/sigma^2)), h(u) = (1+u) log(1+u) - u. At a = 9.4 sigma + 15 this
 * bound is e^-43, and 43 is the largest `band`. Probabilities have the size 1/sigma, and the log1p below makes the omitted mass
 * smaller by this factor. */
static inline double kernel_half_period_within(double var, double reach, double band)
{
    return ceil(sqrt(var * (2 * band + 2.4 + 2 * log1p(sqrt(var)))) + 15 + reach);
}

/* Returns a bound of the sum over the omitted nodes plus the tilted mass farther than J from k; J is half the number of nodes.
 *
 * The bound uses |phi| <= exp(-2 sigma^2 sin^2(t/2)), separately for sin^2 below and above 3/4. Below 3/4 the integral over the
 * omitted nodes is at most e^-band/(pi sigma sqrt(band/2)): less than 0.1 e^-band/sigma for a band of at least 21. */
static inline double kernel_left_out_within(double var, double half, double J, double band)
{
    double nodes = 0;
    if (half < 1)
        nodes = var > 29 ? exp(-band) * (2 / J + 0.1 / sqrt(var)) + exp(-1.5 * var) : exp(-band);
    return nodes + 4 * exp(-band) / (1 + sqrt(var));
}

static inline double kernel_half_within(double var, double band) { return var > 0.5 * band ? sqrt(0.5 * band / var) : 1.0; }

static inline double kernel_half_period(double var, double reach) { return kernel_half_period_within(var, reach, BAND); }

static inline double kernel_left_out(double var, double half, double J) { return kernel_left_out_within(var, half, J, BAND); }

static inline double kernel_half(double var) { return kernel_half_within(var, BAND); }

static inline int kernel_place(double half, double J, ptrdiff_t m, Node *at)
{
    at->t = M_PI; at->s = 1; at->c = 0; at->weight = 1;
    if (m != J) {
        at->t = M_PI * m / J;
        at->s = sin(0.5 * at->t); at->c = cos(0.5 * at->t); at->weight = m ? 2 : 1;
    }
    return at->s <= half;
}

static inline void kernel_fill(double log_abs, double phase, double effort, Node *at)
{
    at->size = at->weight * exp(log_abs);
    at->re = at->size * cos(phase);
    at->im = at->size * sin(phase);
    /* 5 roundings of exp, cos and sin, 10 of the weight of a tail, 3 of products and 2 of the node */
    at->rounding = 20 + 4 * effort + 2 * fabs(phase);
}

static inline double kernel_nodes_make_within(const Law *law, const Tilt *tilt, double band, Phi *phi)
{
    double half = kernel_half_within(tilt->var, band);
    kernel_phi_make(law, tilt->theta, tilt->var, half, phi);
    return half;
}

static inline double kernel_nodes_make(const Law *law, const Tilt *tilt, Phi *phi)
{
    return kernel_nodes_make_within(law, tilt, BAND, phi);
}

static inline int kernel_node(const Phi *phi, const Tilt *tilt, double half, double J, ptrdiff_t m, Node *at)
{
    double log_abs, phase, effort;
    if (!kernel_place(half, J, m, at)) return 0;
    kernel_phi_at(phi, at->t, at->s, at->c, &log_abs, &phase, &effort);
    kernel_fill(log_abs, phase + at->t * tilt->shift, effort, at);
    at->rounding += at->t * tilt->blur;
    return 1;
}

static inline void kernel_geometric_make(double slope, double J, double toward, Geometric *out)
{
    out->J = J; out->keep = exp(-slope); out->decay = expm1(-slope); out->toward = toward;
    out->cut = exp(-slope * J); out->whole = -expm1(-slope * J);
}

static inline double kernel_geometric_below(const Geometric *sum, const Node *at, double *re, double *im)
{
    *re = -sum->decay + 2 * sum->keep * at->s * at->s;
    *im = -sum->toward * 2 * sum->keep * at->s * at->c;
    return *re * *re + *im * *im;
}

static inline void kernel_geometric_times(const Geometric *sum, ptrdiff_t m, Node *at)
{
    double re, im, old = at->re, norm = kernel_geometric_below(sum, at, &re, &im), above = m & 1 ? 1 + sum->cut : sum->whole;
    /* the norm is 0 only at t = 0 for theta = 0; the J terms of the geometric sum are then 1 */
    if (norm > 0) {
        at->re = above * (old * re + at->im * im) / norm;
        at->im = above * (at->im * re - old * im) / norm;
        at->size *= above / sqrt(norm);
    } else {
        at->re *= sum->J;
        at->size *= sum->J;
    }
}

/* Computes Pr[S = k] and Pr[S >= k] (upper) or Pr[S <= k], divided by exp(K(theta) - k theta).
 *
 * The trapezoidal rule has 2J nodes. The tail is a sum over k, k +- 1, ... with geometric weights. It has J terms, so that it is
 * finite for theta = 0 as well. */
static inline void lattice_invert(const Law *law, const Tilt *tilt, int upper, Inverted *out)
{
    double slope = fabs(tilt->theta), half, J = kernel_half_period(tilt->var, fabs(tilt->shift)), stray;
    double pmf_abs = 0, tail_abs = 0;
    dd pmf = dd_make(0, 0), tail = pmf;
    ptrdiff_t m;
    Phi phi;
    Node at;
    Geometric sums;
    kernel_geometric_make(slope, J, upper ? -1 : 1, &sums);
    half = kernel_nodes_make(law, tilt, &phi);
    for (m = 0; m < whole(J, 0, LATTICE_MOST_NODES) + 1; m++) {
        if (!kernel_node(&phi, tilt, half, J, m, &at)) break;
        dd_accumulate(&pmf, at.re);
        pmf_abs += at.size * at.rounding;
        kernel_geometric_times(&sums, m, &at);
        dd_accumulate(&tail, at.re);
        tail_abs += at.size * at.rounding;
    }
    /* `stray` bounds the omitted nodes, and the mass farther than J from k */
    stray = kernel_left_out(tilt->var, half, J);
    out->pmf = (pmf.hi + pmf.lo) / (2 * J);
    out->tail = (tail.hi + tail.lo) / (2 * J);
    out->pmf_error = stray + UNIT * pmf_abs / (2 * J);
    out->tail_error = stray * (slope * J > 1 ? 1 : J) + UNIT * tail_abs / (2 * J);
}

/* Returns log Pr[S = n] or log Pr[S = 0]. */
static inline double kernel_log_edge(const Law *law, int all_ones)
{
    ptrdiff_t j;
    double mine, other, part;
    dd total = dd_make(0, 0);
    for (j = 0; j < law->groups; j++) {
        if (lattice_leave(law->interrupted, j)) break;
        mine = law->p[j];
        other = law->q != NULL ? law->q[j] : 1 - mine;
        if (!all_ones) {
            part = mine;
            mine = other;
            other = part;
        }
        part = mine < 0.5 ? log(mine) : log1p(-other);
        total = dd_add(total, dd_make(law->counts == NULL ? part : law->counts[j] * part, 0));
    }
    return total.hi;
}

/* Returns log Pr[S >= k] (upper) or log Pr[S <= k]. The requested tail must be the smaller one, or have a closed form. */
static inline double lattice_side(const Law *law, double k, int upper, double *log_pmf, double *rel_error)
{
    Tilt tilt;
    Inverted at;
    double edge;
    if (k < 0 || k > law->trials) {
        *rel_error = 0;
        *log_pmf = -INFINITY;
        return (k < 0) == (upper != 0) ? 0.0 : -INFINITY;
    }
    if (k == 0 || k == law->trials) {
        *log_pmf = edge = kernel_log_edge(law, k != 0);
        *rel_error = -4 * UNIT * edge;
        return (k == 0) == (upper != 0) ? 0.0 : edge;
    }
    kernel_lattice_tilt(law, k, 0.02, &tilt);
    lattice_invert(law, &tilt, upper, &at);
    *log_pmf = tilt.exponent + log(at.pmf);
    *rel_error = 2 * tilt.exponent_error + GREATER(at.pmf_error / at.pmf, at.tail_error / at.tail) + 2 * UNIT;
    return tilt.exponent + log(at.tail);
}

/* Returns the log tail. The smaller tail is computed by inversion; a tail above 0.6 is 1 minus the other, so that its log is
 * accurate. */
static inline double lattice_tail(const Law *law, double k, int upper, double *log_pmf, double *rel_error)
{
    double toward = upper ? 1.0 : -1.0, tail = -0.0, edge, unused;
    int far = upper ? k > law->mean : k < law->mean;
    *log_pmf = INFINITY;
    if ((upper && k == 1) || (!upper && k == law->trials - 1)) {
        edge = kernel_log_edge(law, !upper);
        *rel_error = 4 * UNIT * (1 - edge);
        return kernel_log1mexp(edge);
    }
    if (far || k <= 0 || k >= law->trials) {
        tail = lattice_side(law, k, upper, log_pmf, rel_error);
        if (tail <= -0.5 || k <= 0 || k >= law->trials) return tail;
    }
    tail = lattice_side(law, k - toward, !upper, &unused, rel_error);
    *rel_error *= exp(tail) / -expm1(tail);
    return kernel_log1mexp(tail);
}

/* Returns log Pr[S >= k] (upper) or log Pr[S <= k], and writes log Pr[S = k] to log_pmf unless that is NULL.
 *
 * rel_error bounds the relative error of both probabilities. A pmf above 0.8 is formed as 1 minus the tails below and above k,
 * so that its logarithm is accurate. */
static inline double kernel_lattice_point(const Law *law, double k, int upper, double *log_pmf, double *rel_error)
{
    double pmf, tail, error, below, above, error_below = 0, error_above = 0, unused;
    tail = lattice_tail(law, k, upper, &pmf, &error);
    if (log_pmf != NULL) {
        if (pmf == INFINITY) {
            if (k < 0 || k > law->trials) pmf = -INFINITY;
            else {
                lattice_side(law, k, k > law->mean, &pmf, &error_above);
                error = GREATER(error, error_above);
            }
        }
        if (pmf > -0.2 && (0 < k && k < law->trials)) {
            below = lattice_tail(law, k - 1, 0, &unused, &error_below);
            above = lattice_tail(law, k + 1, 1, &unused, &error_above);
            pmf = log1p(-(exp(below) + exp(above)));
            error = GREATER(error, GREATER(error_below, error_above));
        }
        *log_pmf = pmf;
    }
    *rel_error = error + 2 * UNIT;
    return tail;
}

/* `c_lattice_point` for a distribution that is used once. */
static inline double kernel_lattice_log_tail(const double *p, const double *q, const double *counts, ptrdiff_t groups, double k,
    int upper, double *log_pmf, double *rel_error)
{
    Law law;
    kernel_lattice_law(&law, p, q, counts, groups);
    return kernel_lattice_point(&law, k, upper, log_pmf, rel_error);
}

/* log Pr[X > k] (upper) or log Pr[X <= k] at any real k. Bits with p = 0 or p = 1 are removed first, because the kernel needs
 * 0 < p < 1. `work` has space for 2 groups doubles; rel_error may be NULL. */
static inline double kernel_checked_poisson_binom(const double *p, const double *counts, ptrdiff_t groups, double k, int upper,
    double *work, double *rel_error)
{
    double total = 0, sure = 0, many, value, unused, *held;
    ptrdiff_t j, size = 0;
    if (rel_error == NULL) rel_error = &unused;
    *rel_error = NAN;
    if (groups < 1 || k != k) return NAN;
    for (j = 0; j < groups; j++) {
        many = counts != NULL ? counts[j] : 1;
        if (!(0 <= p[j] && p[j] <= 1 && 0 <= many && many <= TWO_53 && many == floor(many))) return NAN;
        total += many;
        sure += p[j] == 1 ? many : 0;
        size += many > 0 && 0 < p[j] && p[j] < 1;
    }
    if (total > TWO_53) return NAN;
    k = floor(k) - sure;
    total = 0;
    held = work + size;
    size = 0;
    for (j = 0; j < groups; j++) {
        many = counts != NULL ? counts[j] : 1;
        if (!(many > 0 && 0 < p[j] && p[j] < 1)) continue;
        work[size] = p[j];
        held[size] = many;
        size += 1;
        total += many;
    }
    *rel_error = 0;
    if (k < 0) return upper ? 0 : -INFINITY;
    if (k >= total) return upper ? -INFINITY : 0;
    if (size > 1) return kernel_lattice_log_tail(work, NULL, held, size, k + (upper != 0), upper != 0, NULL, rel_error);
    value = upper ? kernel_checked_binom_logsf(k, held[0], work[0]) : kernel_checked_binom_logcdf(k, held[0], work[0]);
    *rel_error = 3e-14 + 16 * UNIT * fabs(value);
    return value;
}

#endif
