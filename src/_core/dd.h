/* Double-double arithmetic: an unevaluated sum hi + lo with |lo| <= ulp(hi)/2, about 106 bits.
 *
 * The functions use the error-free transforms of Dekker (1971) and Knuth. The caller keeps magnitudes between 2^-900 and
 * 2^900, so that neither the splitting nor the low parts leave the range of a double. The transforms need IEEE arithmetic
 * without contraction or reassociation (-ffp-contract=off, never -ffast-math).
 *
 * A product is formed by Dekker's splitting or by one fused multiply-add. Both are exact, so both give the same bits. The
 * functions whose name ends in _by take the choice as an argument: vector code passes 1 where it is compiled for processors
 * with that instruction (vectors.h). The others use what the compiler may assume of every processor.
 */
#ifndef SHUFFLEBOUNDS_DD_H
#define SHUFFLEBOUNDS_DD_H

#include <math.h>
#include "arithmetic.h"

/* Inlined at every level of optimisation, so that each function takes the instruction set of its caller. */
#ifdef __GNUC__
#define DD_INLINE static inline __attribute__((always_inline))
#else
#define DD_INLINE static inline
#endif

typedef struct { double hi, lo; } dd;

DD_INLINE dd dd_make(double hi, double lo) { dd r = {hi, lo}; return r; }

DD_INLINE dd dd_fast_sum(double a, double b) {          /* |a| >= |b| */
    dd r;
    r.hi = a + b;
    r.lo = b - (r.hi - a);
    return r;
}

DD_INLINE dd dd_sum(double a, double b) {
    dd r;
    double t;
    r.hi = a + b;
    t = r.hi - a;
    r.lo = (a - (r.hi - t)) + (b - t);
    return r;
}

#if defined(__FMA__) || defined(__aarch64__)
#define DD_FUSED 1
#else
#define DD_FUSED 0              /* fma() would be a call of the C library, slower than the splitting */
#endif

DD_INLINE dd dd_prod_by(double a, double b, int fused) {
    dd r;
    r.hi = a * b;
    if (fused) {
        r.lo = fma(a, b, -r.hi);
    } else {
        double t = 134217729.0 * a, ah = t - (t - a), al = a - ah;
        double u = 134217729.0 * b, bh = u - (u - b), bl = b - bh;
        r.lo = ((ah * bh - r.hi) + ah * bl + al * bh) + al * bl;
    }
    return r;
}

DD_INLINE dd dd_prod(double a, double b) { return dd_prod_by(a, b, DD_FUSED); }

DD_INLINE dd dd_add(dd a, dd b) {
    dd s = dd_sum(a.hi, b.hi);
    return dd_fast_sum(s.hi, s.lo + (a.lo + b.lo));
}

DD_INLINE dd dd_neg(dd a) { return dd_make(-a.hi, -a.lo); }

DD_INLINE dd dd_mul_d_by(dd a, double b, int fused) {
    dd p = dd_prod_by(a.hi, b, fused);
    return dd_fast_sum(p.hi, p.lo + a.lo * b);
}

DD_INLINE dd dd_mul_by(dd a, dd b, int fused) {
    dd p = dd_prod_by(a.hi, b.hi, fused);
    return dd_fast_sum(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi));
}

DD_INLINE dd dd_div_by(dd a, dd b, int fused) {
    double q = a.hi / b.hi;
    dd p = dd_prod_by(q, b.hi, fused);
    return dd_fast_sum(q, ((a.hi - p.hi) - p.lo + a.lo - q * b.lo) / b.hi);
}

DD_INLINE dd dd_mul_d(dd a, double b) { return dd_mul_d_by(a, b, DD_FUSED); }
DD_INLINE dd dd_mul(dd a, dd b) { return dd_mul_by(a, b, DD_FUSED); }
DD_INLINE dd dd_div(dd a, dd b) { return dd_div_by(a, b, DD_FUSED); }

/* e^x within 2^-95, |x| <= 700: Taylor's polynomial of degree 9 at (x - k ln 2)/64, with 32 + 53 bits of ln 2; then six squarings. */
static inline dd dd_exp(double x)
{
    double k = rint(x * 1.4426950408889634);
    dd t = dd_add(dd_make(x - k * 0.693147180558298714458942413330078125, 0), dd_neg(dd_prod(k, 1.6465949582897081279e-12)));
    dd sum = dd_make(1, 0);
    int j;
    t = dd_make(t.hi / 64, t.lo / 64);
    for (j = 9; j; j--) sum = dd_add(dd_make(1, 0), dd_div(dd_mul(t, sum), dd_make(j, 0)));
    for (j = 0; j < 6; j++) sum = dd_mul(sum, sum);
    return dd_make(ldexp(sum.hi, (int)k), ldexp(sum.lo, (int)k));
}

#endif
