/* eps(delta) of a curve log delta(eps) that is given by functions.
 * Method and errors: the header of _crossing.pyx. */
#ifndef SHUFFLEBOUNDS_CROSSING_H
#define SHUFFLEBOUNDS_CROSSING_H

#include <math.h>
#include <stddef.h>
#include "arithmetic.h"
#include "constants.h"

#define CROSSING_SLACK 8.881784197001252e-16    /* relative rounding allowance that delta() adds in exp(log delta) */
#define CROSSING_NEAR 1e-3                      /* relative step up to which a second-order expansion of log delta is used */
#define CROSSING_BUDGET 1e-3                    /* relative distance of eps from the pure budget below which delta is a power of it */
#define CROSSING_FAR 1e-8                       /* relative distance of two eps up to which no slope is computed */

/* A decreasing curve of log delta; _crossing.pxd describes the fields. */
typedef struct {
    double (*side)(double eps, int upper, const void *law);
    double (*rough)(double eps, const void *law);
    double (*centre)(double eps, const void *law);
    double (*ahead)(double eps, int upper, double target, const void *law, double *crossing, int *proved);
    const void *law;
    double pure, last, span, close, miss;
    int sure;
} Curve;

/* Linear correction of the approximation: log delta is taken to be rough(eps) - offset - rise (eps - about). It is updated after
 * each exact value. */
typedef struct {
    double offset;
    double rise;
    double about;  /* the eps of the last correction, 0 before the first */
    double seen;  /* rough(about) */
    /* the approximation's slope and second derivative at `centre`, and the slope of log delta divided by this slope */
    double centre;
    double slope;
    double bend;
    double ratio;
    double last;  /* the last eps with a known log delta, and that value; 0 before the first */
    double value;
} CrossingLine;

/* Returns sqrt(-log delta), which is nearly linear in eps. */
static inline double crossing_depth(double value) { return sqrt(fmax(0, -value)); }

/* Returns sqrt(-log) of the corrected approximate curve at eps, minus its value `goal` at the target. */
static inline double crossing_beyond(double eps, double goal, const CrossingLine *line, const Curve *curve)
{
    return crossing_depth(fmax(-1e300, curve->rough(eps, curve->law) - line->offset - line->rise * (eps - line->about))) - goal;
}

/* Returns the eps in 0..pure where the corrected curve meets the target, with a relative error of close/3; before the first
 * correction, of at most 1e-5. */
static inline double crossing_rough(double target, double start, const CrossingLine *line, const Curve *curve)
{
    double goal = crossing_depth(target), a = 0, b = curve->pure, fa, fb, eps, value;
    /* the search ends after a step of this relative length; its error is about the square */
    double close = line->about > 0 ? curve->close / 3 : fmin(1e-5, sqrt(curve->miss));
    int i, stay = 0;
    if (start > 0) {
        /* secant steps from a start close to the solution */
        a = start; b = fmin(start + 1e-4 * fmin(start, curve->span), start + 0.5 * (curve->pure - start));
        fa = crossing_beyond(a, goal, line, curve); fb = crossing_beyond(b, goal, line, curve);
        for (i = 0; i < 6; i++) {
            eps = b - fb * (b - a) / (fb - fa);
            if (!(0.5 * start < eps && eps < fmin(2 * start, curve->pure))) break;
            if (fabs(eps - b) <= close * eps) return eps;
            a = b; fa = fb;
            b = eps; fb = crossing_beyond(eps, goal, line, curve);
        }
        a = 0; b = curve->pure;
    }
    fa = crossing_beyond(a, goal, line, curve);
    if (fa >= 0) return a;
    if (b == INFINITY) {
        b = 0.05;
        while (crossing_beyond(b, goal, line, curve) < 0 && b < 1e4) b *= 2;
    }
    fb = fmin(crossing_beyond(b, goal, line, curve), 1e3 + 2 * goal);
    if (fb <= 0) return b;
    for (i = 0; i < 80; i++) {
        eps = a - fa * (b - a) / (fb - fa);
        /* false position with the Illinois rule (an end kept twice counts half); every eighth step bisects */
        if (!(a < eps && eps < b) || i % 8 == 7) eps = 0.5 * (a + b);
        value = crossing_beyond(eps, goal, line, curve);
        if (value < 0) {
            if (stay == -1) fb *= 0.5;
            stay = -1;
            a = eps; fa = value;
        } else {
            if (stay == 1) fa *= 0.5;
            stay = 1;
            b = eps; fb = value;
        }
        if (b - a <= close * b || fabs(value) <= close * (1 + goal)) break;
    }
    return eps;
}

/* Updates the linear correction so that the corrected approximation of log delta has the given value at eps. */
static inline void crossing_correct(double eps, double value, CrossingLine *line, const Curve *curve)
{
    double seen = curve->rough(eps, curve->law), offset = seen - value, change;
    line->rise = 0;
    /* a slope is used only if it makes the corrected curve between 1/4 and 5 times as steep as the approximate one */
    change = (offset - line->offset) / (seen - line->seen);
    if (line->about > 0 && -4 < change && change < 0.75) line->rise = (offset - line->offset) / (eps - line->about);
    line->offset = offset; line->seen = seen; line->about = eps;
}

/* Returns whether delta falls like a power of pure - eps from eps on, so that log delta is linear in log(pure - eps), not in eps. */
static inline int crossing_at_budget(double eps, const Curve *curve) { return curve->pure - eps < CROSSING_BUDGET * curve->pure; }

/* Returns the estimated distance of eps from the crossing, or INFINITY if there is no estimate; `value` is log delta at eps.
 *
 * The slope is that of the approximation at first, and that of the line through two values of log delta once two are known. */
static inline double crossing_distance(double eps, double value, double target, CrossingLine *line, const Curve *curve)
{
    double scale = fmin(fmin(eps, curve->span), curve->pure - eps), low, high, slope, moved, rest;
    double step = fmin(fmax(1e-4 * scale, 16 * UNIT * eps), 0.25 * scale);
    if (!(step > 0 && value > -INFINITY)) return INFINITY;
    if (fabs(eps - line->centre) > CROSSING_NEAR * scale) {
        line->centre = eps; rest = curve->rough(eps, curve->law);
        low = curve->rough(eps - step, curve->law); high = curve->rough(eps + step, curve->law);
        line->slope = (high - low) / (2 * step); line->bend = (high - 2 * rest + low) / (step * step);
    }
    slope = (line->slope + line->bend * (eps - line->centre)) * line->ratio; moved = eps - line->last;
    /* the errors of both values, about `close` in eps, must be small in comparison with the distance of the two eps */
    if (line->last > 0 && (fmax(CROSSING_FAR, 100 * curve->close) * eps < fabs(moved) && fabs(moved) <= CROSSING_NEAR * scale)) {
        rest = ((value - line->value) / moved + 0.5 * line->bend * moved) / slope;
        if (0.25 < rest && rest < 5) {
            slope = slope * rest; line->ratio = line->ratio * rest;
        }
    }
    line->last = eps; line->value = value;
    if (!(slope < 0)) return INFINITY;
    rest = (value - target) / slope;
    step = 0.5 * line->bend * rest / slope;
    if (fabs(step) < 0.1) return rest * (1 + step);
    return crossing_at_budget(eps, curve) ? (curve->pure - eps) * expm1(fmin(rest / (curve->pure - eps), 700)) : rest;
}

static inline double kernel_level(double delta, int upper)
{
    double outward = upper ? -1 : 1, reach;
    reach = delta * (1 + outward * 4 * CROSSING_SLACK) + outward * 1e-323;
    return reach > 0 ? fmin(0, nextafter(log(reach), outward * INFINITY)) : -746.0;
}

/* Returns the largest eps below pure, of a sequence with doubling steps, at which the lower bound of delta is positive. */
static inline double crossing_last_positive(const Curve *curve)
{
    double eps = nextafter(curve->pure, 0), step = 4 * UNIT;
    while (eps > 0 && curve->side(eps, 0, curve->law) == -INFINITY) {
        eps = fmax(0, eps - curve->pure * step);
        step *= 2;
    }
    return eps;
}

/* Returns an eps in 0..pure with centre(eps) close to the target; every evaluation of centre corrects `line`. */
static inline double crossing_near(double target, double guess, CrossingLine *line, const Curve *curve)
{
    double value, before, eps = crossing_rough(target, guess, line, curve);
    int i;
    for (i = 0; i < 4; i++) {
        if (!(0 < eps && eps < curve->pure)) break;
        value = curve->centre(eps, curve->law);
        if (value == -INFINITY) break;
        before = eps;
        eps -= crossing_distance(eps, value, target, line, curve);
        if (!(fabs(eps - before) <= CROSSING_NEAR * fmin(before, curve->pure - before))) {
            crossing_correct(before, value, line, curve);
            eps = crossing_rough(target, before, line, curve);
        }
        /* the step has an error of a few thousandths of its length */
        if (fabs(eps - before) <= 2e-5 * eps) break;
    }
    return eps;
}

/* Returns eps moved by the relative step `push` to the conservative end: up for the upper bound, down for the lower. */
static inline double crossing_pushed(double eps, double push, int upper, const Curve *curve)
{
    double moved = fmin(eps, curve->pure - eps) * push;
    return upper ? fmax(eps + moved, nextafter(eps, INFINITY)) : fmin(eps - moved, nextafter(eps, 0));
}

/* Returns the permitted distance of eps from the crossing, for the relative tolerance `close`.
 *
 * Near the pure budget delta falls like a power of pure - eps, so that the slope says nothing about a crossing further away. */
static inline double crossing_tolerance(double eps, double close, const Curve *curve)
{
    return fmin(close * eps, CROSSING_NEAR * (curve->pure - eps));
}

/* Returns the requested bound of eps, from a starting eps close to it. */
static inline double crossing_from(double target, double eps, int upper, CrossingLine *line, const Curve *curve)
{
    double trial, value, low = 0, high = curve->pure, rest = INFINITY, before, push = 0.5 * curve->close;
    double at_low = 0, at_high = 0, beyond_it, far = fmax(CROSSING_FAR, 10 * curve->close);
    double crossing = 0, step;
    int proved = 0;
    int i, stay = 0;
    /* the last value of log delta is not a bound, so the next slope does not use it */
    line->last = 0;
    eps = crossing_pushed(eps, push, upper, curve);
    for (i = 0; i < 200; i++) {
        if (!(low < eps && eps < high)) {
            eps = high < INFINITY ? 0.5 * (low + high) : 2 * low + 0.01;
            if (!(low < eps && eps < high)) break;
        }
        if (curve->ahead != NULL)
            value = curve->ahead(eps, upper, target, curve->law, &crossing, &proved);
        else value = curve->side(eps, upper, curve->law);
        if (proved) return fmin(high, crossing_pushed(crossing, 0.5 * curve->close, 1, curve));
        beyond_it = crossing_depth(fmax(value, -1e300)) - crossing_depth(target);
        /* Illinois rule: the value at an end that is kept twice counts half */
        if (upper ? value <= target : value < target) {
            at_low *= stay == 1 ? 0.5 : 1;
            high = eps; at_high = fmax(beyond_it, 1e-300); stay = 1;
        } else {
            at_high *= stay == -1 ? 0.5 : 1;
            low = eps; at_low = fmin(beyond_it, -1e-300); stay = -1;
        }
        if (high < INFINITY && high - low <= fmax(crossing_tolerance(high, curve->close, curve), 4 * UNIT * high)) break;
        before = rest; rest = crossing > 0 ? eps - crossing : crossing_distance(eps, value, target, line, curve);
        step = upper ? rest : -rest;
        if (0 <= step && step <= crossing_tolerance(eps, fmax(curve->close, 2 * push), curve)) break;
        trial = eps - rest;
        if (fabs(rest) > CROSSING_NEAR * fmin(eps, curve->pure - eps) && value > -INFINITY
            && !(crossing_at_budget(eps, curve) && fabs(rest) < INFINITY)) {
            crossing_correct(eps, value, line, curve);
            trial = crossing_rough(target, eps, line, curve);
        } else if (fabs(rest) <= far * eps) {
            /* rounding may keep the bound from meeting the target: move by a larger step every time */
            push *= 1.5;
        }
        if (i > 20 || !(low < trial && trial < high) || (i > 1 && fabs(rest) > fmax(0.5 * fabs(before), far * eps))) {
            /* The slope is not usable or has not led closer: take a step of false position, or bisect (trial = 0). */
            trial = (at_low < 0 && 0 < at_high && at_high < INFINITY) && i % 8 < 6 ? low
                - at_low * (high - low) / (at_high - at_low) : 0;
        }
        eps = crossing_pushed(trial, push, upper, curve);
    }
    /* high and low were evaluated, or are ends of the range: delta is 0 at high = pure, and above the target at low = 0 */
    return upper ? high : low;
}

static inline double kernel_crossing(const Curve *curve, double delta, int upper, double guess, double exact, int endless)
{
    CrossingLine line;
    double target, eps, value;
    line.offset = line.rise = line.about = line.seen = line.centre = line.last = 0;
    line.ratio = 1;
    if (delta == 0)
        return upper || curve->pure == INFINITY ? curve->pure : crossing_last_positive(curve);
    if (delta >= 1) return 0;
    target = kernel_level(delta, upper);
    /* The bound at eps = 0, which may be slow, is evaluated only if the approximate curve does not decide whether eps is 0. */
    if (!curve->sure || curve->rough(0, curve->law) < target + 1 + 0.1 * fabs(target)) {
        value = curve->side(0, upper, curve->law);
        if (upper ? value <= target : value < target) return 0;
    }
    /* If the pure budget is infinite, delta may stay above the target at every eps: for example, delta is at least the
     * probability that no message hides the target user. */
    if (curve->pure == INFINITY && curve->side(curve->last, upper, curve->law) > target)
        return upper || endless ? INFINITY : curve->last;
    eps = exact;
    if (!(eps > 0)) {
        eps = curve->centre != NULL ? crossing_near(target, guess, &line, curve) : crossing_rough(target, guess, &line, curve);
        if (curve->ahead != NULL && upper) eps -= fmin(eps, curve->pure - eps) * curve->miss;
    }
    return crossing_from(target, eps, upper, &line, curve);
}

#endif
