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

/* Adds a term of a compensated sum; the value is hi + lo. */
DD_INLINE void dd_accumulate(dd *total, double term)
{
    dd added = dd_sum(total->hi, term);
    total->hi = added.hi;
    total->lo += added.lo;
}

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

/* e^x within 2^-95, |x| <= 700: Taylor's polynomial of degree 10 at (x - k ln 2)/64, with ln 2 in three parts; then six
 * squarings. */
static inline dd dd_exp(double x)
{
    /* 1/j!, and its rounding error */
    static const double inverse[] = {1, 1, 0.5, 0.16666666666666666, 0.041666666666666664, 0.008333333333333333,
        0.001388888888888889, 0.0001984126984126984, 2.48015873015873e-05, 2.7557319223985893e-06, 2.755731922398589e-07};
    static const double inverse_lo[] = {0, 0, 0, 9.25185853854297e-18, 2.3129646346357427e-18, 1.1564823173178714e-19,
        -5.300543954373577e-20, 1.7209558293420705e-22, 2.1511947866775882e-23, -1.858393274046472e-22,
        2.3767714622250297e-23};
    double k = rint(x * 1.4426950408889634);
    dd t = dd_add(dd_make(x - k * 0.693147180558298714458942413330078125, 1.011689003775276e-28 * -k),
                  dd_neg(dd_prod(k, 1.6465949582897081279e-12)));
    dd sum = dd_make(inverse[10], inverse_lo[10]);
    int j;
    t = dd_make(t.hi / 64, t.lo / 64);
    for (j = 9; j >= 0; j--) sum = dd_add(dd_make(inverse[j], inverse_lo[j]), dd_mul(t, sum));
    for (j = 0; j < 6; j++) sum = dd_mul(sum, sum);
    return dd_make(ldexp(sum.hi, (int)k), ldexp(sum.lo, (int)k));
}

#endif
