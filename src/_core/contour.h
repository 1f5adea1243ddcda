/* The clone sum as a contour integral, in a time that does not grow with the number of users.
 * Method and errors: the header of _contour.pyx. */
#ifndef SHUFFLEBOUNDS_CONTOUR_H
#define SHUFFLEBOUNDS_CONTOUR_H

#include "special.h"

#define CONTOUR_DEPTH 36.0                      /* -log of the relative aliasing and truncation errors; raised: more nodes */
#define CONTOUR_LEAST_SPREAD 1000.0             /* smallest a (_contour.pyx): for smaller a a peak reaches the next one */
#define CONTOUR_MEAN 1.2                        /* at least sqrt(2 pi c) e^-c I_0(c) for every c > 0 */
#define CONTOUR_EVEN 0.04583                    /* at least zeta(2, 15/16)/(4 pi^2): weights of the maxima of even j near full turns */
#define CONTOUR_ODD 0.15741                     /* at least zeta(2, 7/16)/(4 pi^2): weights of the maxima of odd j */
#define CONTOUR_EXPLICIT 64                     /* secondary maxima that are bounded one by one where u >= 1/8 */

typedef struct {
    double n;
    double rate;
    double u;
    double v;  /* 1 - u */
    double theta;
    double slope;  /* T */
    double off;  /* 1 - T */
    double tilted;  /* r' */
    double idle;  /* 1 - r' */
    double spread;  /* a */
    double level;  /* n K(theta) */
    double level_error;
} ContourTilt;

/* Returns log cosh(theta) - u theta. */
static inline double contour_log_cosh(double theta, double u, double v)
{
    if (u < 0.5) return log1p(2 * sinh(0.5 * theta) * sinh(0.5 * theta)) - u * theta;
    return v * theta - 0.6931471805599453 + log1p(exp(-2 * theta));
}

static inline void contour_tilt(double theta, ContourTilt *p)
{
    double weight = contour_log_cosh(theta, p->u, p->v), moved = p->rate * expm1(weight);
    p->theta = theta;
    p->slope = tanh(theta);
    p->off = 2 / (exp(fmin(2 * theta, 700)) + 1);
    p->tilted = p->rate * exp(weight) / (1 + moved);
    p->idle = (1 - p->rate) / (1 + moved);
    p->spread = p->n * p->tilted * p->off * (1 + p->slope);
    p->level = p->n * log1p(moved);
    /* Error of n K(theta). Up to a factor of 1.5, the next line sets `weight` to the sum of the absolute values of the terms of
     * log cosh(theta) - u theta. Each term has a relative error of a few ulp. */
    weight = p->u < 0.5 ? log1p(2 * sinh(0.5 * theta) * sinh(0.5 * theta)) + p->u * theta : p->v * theta + 0.7;
    p->level_error = UNIT * (12 * p->n * p->tilted * weight + 8 * fabs(p->level));
}

/* Returns n K(theta + d) - n K(theta). */
static inline double contour_change(double d, ContourTilt *p)
{
    double weight;
    if (p->u < 0.5)
        weight = log1p(2 * sinh(0.5 * d) * sinh(0.5 * d) + p->slope * sinh(d)) - p->u * d;
    else weight = p->v * d + log1p(-0.5 * p->off * -expm1(-2 * d));
    return p->n * log1p(p->tilted * expm1(weight));
}

/* Returns Re phi(s)^n/s^2 over phi(theta)^n at s = theta + i (tau + 2 pi turns), and adds its rounding error to error[0]. */
static inline double contour_node(double tau, double turns, ContourTilt *p, double *error)
{
    double x = sin(tau), y = cos(tau), t = tau + 2 * M_PI * turns;
    double missing, length, chi, parts, half, turn, real, size, phase, weight;
    /* 1 - |zeta|^2 and |zeta| */
    missing = p->off * (1 + p->slope) * x * x;
    length = sqrt(1 - missing);
    if (p->u < 0.5) {
        chi = atan(p->slope * x / y) - p->u * t;
        parts = p->slope * fabs(tau) + p->u * t;
    } else {
        chi = p->v * t - atan(p->off * x * y / (y * y + p->slope * x * x));
        parts = (p->v + p->off) * t;
    }
    half = sin(0.5 * chi);
    turn = 2 * length * half * cos(0.5 * chi);
    /* 1 - Re zeta */
    real = missing / (1 + length) + 2 * length * half * half;
    size = 0.5 * p->n * log1p(-p->tilted * (2 * p->idle * real + p->tilted * missing));
    phase = p->n * atan2(p->tilted * turn, 1 - p->tilted * real);
    weight = 1 / (p->theta * p->theta + t * t);
    *error += exp(size) * weight * UNIT * (24 + 12 * fabs(size) + 6 * p->n * p->tilted * parts + 4 * fabs(phase));
    return exp(size) * weight * weight * ((p->theta * p->theta - t * t) * cos(phase) + 2 * p->theta * t * sin(phase));
}

/* Returns an upper bound of exp(-c (1 - cos psi')) over all psi' within slack of psi. */
static inline double contour_factor(double psi, double slack, double c)
{
    double away = 0.5 * fmax(0, fabs(remainder(psi, 2 * M_PI)) - slack);
    return exp(-2 * c * sin(away) * sin(away));
}

/* Returns a bound of the contribution of the secondary maxima: sum_(j >= 1) m_j/(pi j)^2, without j = 2, 4, .., 2 peaks.
 *
 * m_j is the maximum of |phi/phi(theta)|^n over all t at a distance of at most `reach` from pi j. */
static inline double contour_secondary(double reach, int peaks, ContourTilt *p)
{
    double c = p->n * p->tilted * p->idle * sqrt(1 - reach * reach), u = p->u, v = p->v, slack, mean, total = 0, runs, drift, psi;
    int j, strands;
    drift = u < 0.5 ? fabs(p->slope - u) : fabs(v - p->off);
    slack = drift * reach + p->off * (1 + p->slope) * p->slope * reach * reach * reach / (1 - reach * reach)
        + 4 * UNIT * CONTOUR_EXPLICIT;
    mean = c > 0 ? fmin(1.0, slack / M_PI + CONTOUR_MEAN / sqrt(2 * M_PI * c)) : 1.0;
    if (u < 0.125) {
        /* The maxima with an even index 2 j have the phase psi = 2 pi u j. For j <= peaks + 4 the phase is at most pi, so that
         * the factors decrease with j. */
        for (j = peaks + 1; j < peaks + 4; j++)
            total += contour_factor(2 * M_PI * u * j, slack, c) / (4 * M_PI * M_PI * j * j);
        total += contour_factor(2 * M_PI * u * (peaks + 4), slack, c) / (4 * M_PI * M_PI * (peaks + 3));
        /* The remaining maxima. Those with a phase psi within pi/8 of a multiple of 2 pi contribute at most the first summand. The
         * factors of all others are at most the factor at psi = pi/8. */
        total += (CONTOUR_EVEN + CONTOUR_ODD) * u * (u + mean) + contour_factor(M_PI / 8, slack, c) / 6;
    } else {
        for (j = 1; j < CONTOUR_EXPLICIT + 1; j++) {
            psi = u >= 0.5 ? M_PI * v * j : M_PI * (j & 1) - M_PI * u * j;
            total += contour_factor(psi, slack, c) / (M_PI * M_PI * j * j);
        }
        /* The terms with j > EXPLICIT are bounded separately for every full turn of psi. For u >= 1/2 the phases form one
         * sequence; otherwise they form two, one of the even j and one of the odd j. */
        strands = u >= 0.5 ? 1 : 2;
        runs = u >= 0.5 ? 2 / v : 1 / u;
        total += fmin(1.0, strands * (2 + mean * runs) * (1.0 / CONTOUR_EXPLICIT
            + 1 / (strands * (runs - 1)))) / (M_PI * M_PI * CONTOUR_EXPLICIT);
    }
    return fmin(total, 1.0 / 6);
}

static inline int kernel_log_sign_contour(double n, double rate, double u, double v, int peaks, double accepted, double *lower,
    double *upper)
{
    ContourTilt p;
    double theta = u <= 0.5 ? atanh(u) : 0.5 * (log(1 + u) - log(v));
    double depth, reach, period, d, h, tau, error, tails, wings, low, high;
    dd total;
    int j, k, nodes;
    p.n = n; p.rate = rate; p.u = u; p.v = v;
    /* theta is the saddle point if K is replaced by its parabola at atanh u, where K' = 0 */
    contour_tilt(theta, &p);
    if (!(p.spread >= CONTOUR_LEAST_SPREAD)) return 0;
    theta = fmax(0.5 * (theta + sqrt(theta * theta + 8 / p.spread)), 2.5 / sqrt(p.spread));
    contour_tilt(theta, &p);
    if (!(p.spread >= CONTOUR_LEAST_SPREAD)) return 0;
    depth = CONTOUR_DEPTH + log1p(theta * sqrt(p.spread));
    d = 8.2 / sqrt(p.spread);
    period = (depth + contour_change(d, &p)) / d;
    tails = 1 / (theta + d);
    d = fmin(d, 0.8 * theta);
    period = fmax(period, fmax((depth + contour_change(-d, &p)) / d, 30 / d));
    tails += 1 / (theta - d);
    /* The last factor 2 covers the later terms of the aliasing sum and the rounding of the exponents, which are below 200. `total`
     * and the errors are 2 pi times the integral and its errors; log(2 pi) is subtracted from the level at the end. */
    tails *= 2 * M_PI * exp(-1 - depth) * 2;
    h = 2 * M_PI / period;
    reach = asin(sqrt(2 * CONTOUR_DEPTH / p.spread));
    /* The sum is at most about 2/theta^2. If the bound of the secondary maxima already exceeds `accepted`, no node is evaluated. */
    if (accepted > 0 && peaks == 0 && 2 * theta * theta * contour_secondary(reach, 0, &p) > accepted)
        return 0;
    /* fewer than 2**7 nodes, because reach <= 0.28 and reach/h < 60 */
    nodes = (int)whole(ceil(reach / h), 1, 500);
    error = 4 * UNIT / (theta * theta);
    total = dd_make(0.5 / (theta * theta), 0);
    for (k = 1; k < nodes + 1; k++) dd_accumulate(&total, contour_node(k * h, 0, &p, &error));
    /* If the remaining secondary maxima alone make the gap larger than `accepted`, none is integrated. */
    d = 1 - reach / M_PI;
    tau = 2 * (h + 1.044 * sqrt(2 * M_PI / p.spread)) / (d * d);
    if (u * (peaks + 4) > 0.5 || (peaks > 0 && 2 * tau * contour_secondary(reach, peaks, &p) > accepted * 2 * h * total.hi))
        peaks = 0;
    for (j = 1; j < peaks + 1; j++) {
        /* integrate by the nodes of the same rule around 2 pi j, and stop if the next maximum is negligible */
        tau = ceil((2 * M_PI * j - reach) / h);
        for (k = 0; k < (int)whole(floor((2 * M_PI * j + reach) / h) - tau, 0, 1000) + 1; k++)
            dd_accumulate(&total, contour_node((tau + k) * h - 2 * M_PI * j, j, &p, &error));
        if (contour_factor(2 * M_PI * u * (j + 1), 0, n * p.tilted * p.idle) < 1e-14 / (theta * theta)) {
            peaks = j;
            break;
        }
    }
    error *= 2 * h * (1 + nodes * UNIT);
    /* Truncated nodes: those between `reach` and 0.5 from a multiple of pi (`wings`; there sin(t) has a slope of at least
     * cos(0.5) >= 0.877), and those farther than 0.5 from every multiple of pi. */
    wings = exp(-CONTOUR_DEPTH) * (h + 1 / (0.877 * sqrt(2 * CONTOUR_DEPTH * p.spread)));
    error += 2 * wings * (1 / (theta * theta) + 0.5) + 4.2 * exp(-0.1149 * p.spread) * (1 + 1 / (theta * theta));
    d = 1 - reach / M_PI;
    /* within 0.5 of a secondary maximum sin(t)^2 >= 0.9193 t^2, and 1.044 >= 1/sqrt(0.9193) */
    error += 2 * (h + 1.044 * sqrt(2 * M_PI / p.spread)) * contour_secondary(reach, peaks, &p) / (d * d);
    low = 2 * h * (total.hi + total.lo);
    high = low + error;
    low -= error + tails;
    p.level -= log(2 * M_PI);
    p.level_error += 8 * UNIT * (1 + fabs(p.level));
    *lower = low > 0 ? p.level + log(low) - p.level_error : -INFINITY;
    *upper = p.level + log(high) + p.level_error;
    return 1;
}

#endif
