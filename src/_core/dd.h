/* Double-double arithmetic: an unevaluated sum hi + lo with |lo| <= ulp(hi)/2, about 106 bits.
 *
 * Error-free transforms of Dekker (1971) and Knuth. The caller keeps magnitudes between 2^-900 and 2^900, so that
 * neither the splitting nor the low parts leave the range. Needs IEEE arithmetic without contraction or reassociation
 * (built with -ffp-contract=off, never -ffast-math).
 */
#ifndef SHUFFLEBOUNDS_DD_H
#define SHUFFLEBOUNDS_DD_H

#include <math.h>
#include "arithmetic.h"

typedef struct { double hi, lo; } dd;

static inline dd dd_make(double hi, double lo) { dd r = {hi, lo}; return r; }

static inline dd dd_fast_sum(double a, double b) {          /* |a| >= |b| */
    dd r;
    r.hi = a + b;
    r.lo = b - (r.hi - a);
    return r;
}

static inline dd dd_sum(double a, double b) {
    dd r;
    double t;
    r.hi = a + b;
    t = r.hi - a;
    r.lo = (a - (r.hi - t)) + (b - t);
    return r;
}

static inline dd dd_prod(double a, double b) {
    dd r;
    r.hi = a * b;
#if defined(__FMA__) || defined(__aarch64__)
    r.lo = __builtin_fma(a, b, -r.hi);                      /* one instruction; a library call would cost more than this: */
#else
    double t = 134217729.0 * a, ah = t - (t - a), al = a - ah;
    double u = 134217729.0 * b, bh = u - (u - b), bl = b - bh;
    r.lo = ((ah * bh - r.hi) + ah * bl + al * bh) + al * bl;
#endif
    return r;
}

static inline dd dd_add(dd a, dd b) {
    dd s = dd_sum(a.hi, b.hi);
    return dd_fast_sum(s.hi, s.lo + (a.lo + b.lo));
}

static inline dd dd_neg(dd a) { return dd_make(-a.hi, -a.lo); }

static inline dd dd_mul_d(dd a, double b) {
    dd p = dd_prod(a.hi, b);
    return dd_fast_sum(p.hi, p.lo + a.lo * b);
}

static inline dd dd_mul(dd a, dd b) {
    dd p = dd_prod(a.hi, b.hi);
    return dd_fast_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

static inline dd dd_div(dd a, dd b) {
    double q = a.hi / b.hi;
    dd p = dd_prod(q, b.hi);
    return dd_fast_sum(q, ((a.hi - p.hi) - p.lo + a.lo - q * b.lo) / b.hi);
}

#endif
