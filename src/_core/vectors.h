/* Passes over blocks of elements, compiled for several instruction sets; the processor's widest is chosen at run time.
 *
 * A pass is a loop over doubles without look-ups and without branches, which gcc and clang turn into vector instructions. Every
 * entry of a block (VECTORS_ENTRY) is compiled three times on x86-64: for the baseline (SSE2), for AVX2 with FMA, and for AVX-512.
 * Elsewhere, and with compilers that lack GNU attributes, it is compiled once.
 *
 * Every version performs the same IEEE operations in the same order, and the only use of fused multiply-adds is the exact product
 * of dd.h. Therefore every version returns the same bits (tests/core/test_vectors.py).
 *
 * The functions below are part of the passes. vector_log and vector_exp have errors below 1 ulp (python-flint, 2e4 random
 * arguments each).
 */
#ifndef SHUFFLEBOUNDS_VECTORS_H
#define SHUFFLEBOUNDS_VECTORS_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "dd.h"
#include "tables.h"

#define VECTORS_INLINE DD_INLINE

/* Write VECTORS_CLONES before a function to compile it for AVX-512, AVX2 and the baseline. The loader chooses one (ifunc, which the
 * GNU C library has). The function may call only functions that are always inlined. */
#if defined(__GNUC__) && defined(__x86_64__) && defined(__GLIBC__)
#if defined(__clang__) ? __clang_major__ >= 16 : __GNUC__ >= 12
#define VECTORS_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#elif !defined(__clang__)
#define VECTORS_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define VECTORS_CLONES
#endif
#else
#define VECTORS_CLONES
#endif

/* Write VECTORS_LOOP before a loop whose elements do not depend on each other. It tells compilers that the arrays are distinct. */
#if defined(__clang__)
#define VECTORS_LOOP _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define VECTORS_LOOP _Pragma("GCC ivdep")
#else
#define VECTORS_LOOP
#endif

/* Write VECTORS_ROLLED before a short loop over lanes: GCC vectorises it only if it was not unrolled before. */
#if defined(__GNUC__) && !defined(__clang__)
#define VECTORS_ROLLED _Pragma("GCC unroll 1")
#else
#define VECTORS_ROLLED
#endif

/* The levels: 0 the baseline, 1 AVX2 and FMA, 2 AVX-512. */
#if defined(__GNUC__) && defined(__x86_64__)
#define VECTORS_LEVELS 3
#define VECTORS_TARGET_1 __attribute__((target("avx2,fma")))
#define VECTORS_TARGET_2 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))

static inline int vectors_level(void)
{
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return 0;
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")
        && __builtin_cpu_supports("avx512vl") ? 2 : 1;
}
#else
#define VECTORS_LEVELS 1
static inline int vectors_level(void) { return 0; }
#endif

/* VECTORS_ENTRY(name, PARAMETERS, ARGUMENTS) defines the function name(level, ...). It calls name_body(..., fused), an always inlined
 * function that is compiled once for each level. PARAMETERS is the list in parentheses of the parameters of name_body without the last
 * one, with their types; ARGUMENTS is the same list without types. */
#define VECTORS_LIST(...) __VA_ARGS__
#if VECTORS_LEVELS == 3
#define VECTORS_ENTRY(name, PARAMETERS, ARGUMENTS)                                                                          \
    static void name##_0 PARAMETERS { name##_body(VECTORS_LIST ARGUMENTS, DD_FUSED); }                                      \
    static VECTORS_TARGET_1 void name##_1 PARAMETERS { name##_body(VECTORS_LIST ARGUMENTS, 1); }                            \
    static VECTORS_TARGET_2 void name##_2 PARAMETERS { name##_body(VECTORS_LIST ARGUMENTS, 1); }                            \
    static void name(int level, VECTORS_LIST PARAMETERS)                                                                    \
    {                                                                                                                       \
        if (level == 2) name##_2 ARGUMENTS; else if (level == 1) name##_1 ARGUMENTS; else name##_0 ARGUMENTS;               \
    }
#else
#define VECTORS_ENTRY(name, PARAMETERS, ARGUMENTS)                                                                          \
    static void name(int level, VECTORS_LIST PARAMETERS) { (void)level; name##_body(VECTORS_LIST ARGUMENTS, DD_FUSED); }
#endif

VECTORS_INLINE uint64_t vector_bits(double x) { uint64_t u; memcpy(&u, &x, sizeof u); return u; }
VECTORS_INLINE double vector_double(uint64_t u) { double x; memcpy(&x, &u, sizeof x); return x; }

/* One over the power of two at or below x, 2^-1022 <= x < 2^1022. */
VECTORS_INLINE double vector_inverse(double x) { return vector_double(0x7fe0000000000000u - (vector_bits(x) & 0x7ff0000000000000u)); }

/* (atanh(v)/v - 1)/v^2 at w = v^2 <= 1/9. */
VECTORS_INLINE double vector_atanh(double w)
{
    double w2 = w * w, w4 = w2 * w2;
    return ((ATANH[0] + w * ATANH[1]) + w2 * (ATANH[2] + w * ATANH[3])
            + w4 * (((ATANH[4] + w * ATANH[5]) + w2 * (ATANH[6] + w * ATANH[7]))
                    + w4 * ((ATANH[8] + w * ATANH[9]) + w2 * (ATANH[10] + w * ATANH[11]))));
}

/* (atanh(v)/v - 1 - v^2/3)/v^4 at w = v^2 <= 1/9. */
VECTORS_INLINE double vector_atanh_rest(double w)
{
    double w2 = w * w, w4 = w2 * w2;
    return ((ATANH[1] + w * ATANH[2]) + w2 * (ATANH[3] + w * ATANH[4]))
        + w4 * (((ATANH[5] + w * ATANH[6]) + w2 * (ATANH[7] + w * ATANH[8])) + w4 * ((ATANH[9] + w * ATANH[10]) + w2 * ATANH[11]));
}

/* 1/3 in double-double. */
#define VECTOR_THIRD dd_make(1 / 3.0, 1.850371707708594e-17)

/* ln 2 in two parts; the first has 21 trailing zero bits, so that its product with an exponent is exact. */
#define VECTOR_LN2_HI 0.693147180558298714458942413330078125
#define VECTOR_LN2_LO 1.6465949582897081279e-12

/* The exponent of a normal x > 0. */
VECTORS_INLINE double vector_power(double x) { return vector_double((vector_bits(x) >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1023); }

/* x = 2^e f, f in [sqrt(1/2), sqrt(2)), for a normal x > 0. */
VECTORS_INLINE double vector_split(double x, double *e)
{
    const uint64_t root = 0x3fe6a09e00000000u;
    uint64_t u = vector_bits(x) + (0x3ff0000000000000u - root);
    *e = vector_double((u >> 52) | 0x4330000000000000u) - (4503599627370496.0 + 1023);
    return vector_double((u & 0x000fffffffffffffu) + root);
}

/* top + log x of a normal x > 0, top an integer: with x = 2^e (1 + f), log(1 + f) = 2 atanh(f/(2 + f)). The two large parts are added
 * first, so that the error is that of the result where they cancel. */
VECTORS_INLINE double vector_log_plus(double top, double x)
{
    double e, f = vector_split(x, &e) - 1, s = f / (2 + f), z = s * s, half = 0.5 * f * f;
    return (top + e * VECTOR_LN2_HI) + (f - (half - (s * (half + 2 * z * vector_atanh(z)) + e * VECTOR_LN2_LO)));
}

VECTORS_INLINE double vector_log(double x) { return vector_log_plus(0, x); }

/* log z of a double-double z > 0 as a double-double, with absolute error below 2^-58 max(1, |log z|/8), or (precise) 2^-63 max(1,
 * |log z|/2): as vector_log, with the quotient s = f/(2 + f), or (precise) with s + s^3/3, in double-double. */
VECTORS_INLINE dd vector_log_dd(dd z, int precise, int fused)
{
    double e, f = vector_split(z.hi, &e), scale = f / z.hi, f_lo = z.lo * scale, w;     /* scale is a power of two */
    dd below, s, cube, total;
    f -= 1;
    below = dd_sum(2, f);
    below.lo += f_lo;
    s = dd_div_by(dd_make(f, f_lo), below, fused);
    w = s.hi * s.hi;
    if (precise) {
        cube = dd_mul_by(dd_mul_by(s, s, fused), dd_mul_by(s, VECTOR_THIRD, fused), fused);
        cube.lo += s.hi * w * w * vector_atanh_rest(w);
        s = dd_add(s, cube);
    }
    total = dd_sum(e * VECTOR_LN2_HI, 2 * s.hi);
    total.lo += 2 * s.lo + (precise ? 0 : 2 * s.hi * w * vector_atanh(w)) + e * VECTOR_LN2_LO;
    return total;
}

/* e^x = 2^k (1 + value), -700 <= x <= 700, by Taylor's polynomial of degree 13; k stands in the last bits of *power. */
VECTORS_INLINE double vector_exp_rest(double x, uint64_t *power)
{
    const double shift = 6755399441055744.0;
    double t = x * 1.4426950408889634 + shift, k = t - shift;
    double r = (x - k * VECTOR_LN2_HI) - k * VECTOR_LN2_LO, r2 = r * r, r4 = r2 * r2;
    double low = (1 / 2.0 + r * (1 / 6.0)) + r2 * (1 / 24.0 + r * (1 / 120.0));
    double high = (1 / 720.0 + r * (1 / 5040.0)) + r2 * (1 / 40320.0 + r * (1 / 362880.0))
        + r4 * ((1 / 3628800.0 + r * (1 / 39916800.0)) + r2 * (1 / 479001600.0 + r * (1 / 6227020800.0)));
    *power = vector_bits(t);
    return r + r2 * (low + r4 * high);
}

VECTORS_INLINE double vector_exp(double x)
{
    uint64_t power;
    double rest = vector_exp_rest(x, &power);
    return vector_double(vector_bits(1 + rest) + (power << 52));
}

/* e^x as a double-double with relative error 6e-17. */
VECTORS_INLINE dd vector_exp_dd(double x)
{
    uint64_t power;
    double rest = vector_exp_rest(x, &power), scale = vector_double(vector_bits(1) + (power << 52)), hi = 1 + rest;
    return dd_make(hi * scale, (rest - (hi - 1)) * scale);
}

/* log(1 - t), 0 <= t < 1. The rounding error of 1 - t is at most 2^-54, and zero for t > 1/2. */
VECTORS_INLINE double vector_log1m(double t)
{
    double rest = 1 - t;
    return vector_log(rest) + ((1 - rest) - t) * (1 + t);
}

/* log(1 - e^x) for x < -0.4; for x nearer to 0 the rounding error of e^x would dominate. Below -690, e^x is formed as the square of
 * e^(x/2), which underflows gradually to 0. */
VECTORS_INLINE double vector_log1mexp(double x)
{
    int tiny = x < -690;
    double half = tiny ? 0.5 * x : x, t = vector_exp(half < -700 ? -700 : half);
    return vector_log1m(tiny ? t * t : t);
}

/* Mills' ratio, 0 <= x <= SMALL_MILLS_MOST. */
VECTORS_INLINE double vector_mills(double x)
{
    const double *c = SMALL_MILLS;
    double u = 1 - (1 + SMALL_MILLS_SCALE / SMALL_MILLS_MOST) * x / (SMALL_MILLS_SCALE + x), u2 = u * u, u4 = u2 * u2;
    double low = (c[0] + u * c[1]) + u2 * (c[2] + u * c[3]) + u4 * ((c[4] + u * c[5]) + u2 * (c[6] + u * c[7]));
    double high = (c[8] + u * c[9]) + u2 * (c[10] + u * c[11]) + u4 * ((c[12] + u * c[13]) + u2 * (c[14] + u * c[15])
        + u4 * ((c[16] + u * c[17]) + u2 * c[18]));
    return low + u4 * u4 * high;
}

/* Mills' ratio, x >= SMALL_MILLS_MOST, by 14 steps of 1/(x + 1/(x + 2/(x + ...))), within 5e-17 relative. */
VECTORS_INLINE double vector_mills_large(double x)
{
    double above = x, below = 1, old_above = 1, old_below = 0, next;
    int k;
    for (k = 1; k <= 14; k++) {
        next = x * above + k * old_above;
        old_above = above;
        above = next;
        next = x * below + k * old_below;
        old_below = below;
        below = next;
    }
    return below / above;
}

/* Stirling's error log(n!/(sqrt(2 pi n) (n/e)^n)), n an integer in 1..2^53. */
VECTORS_INLINE double vector_stirling(double n)
{
    const double *p = STIRLING_P, *q = STIRLING_Q;
    double m = n * n, m2 = m * m, m4 = m2 * m2;
    return ((p[0] + m * p[1]) + m2 * (p[2] + m * p[3]) + m4 * (p[4] + m * p[5]))
        / (n * ((q[0] + m * q[1]) + m2 * (q[2] + m * q[3]) + m4 * (q[4] + m * q[5])));
}

/* The deviance x log(x/m) - d, d = x - m, by the polynomial of atanh(v), *v = d/(x + m). Valid for |*v| <= 1/3. */
VECTORS_INLINE double vector_deviance(double x, double m, double d, double *v)
{
    double r = d / (x + m), w = r * r;
    *v = r;
    return r * (d + 2 * x * w * vector_atanh(w));
}

/* The deviance x log(x/m) - d as a double-double, d = x - m, all of them in double-double. Its relative error is below 2^-54, or
 * (precise) below 2^-59 (measured, 2e4 random arguments). With v = d/(x + m) and |v| <= 1/6 it is v d (1 + r), where
 * r = (1 + v)(atanh(v) - v)/v^2 is at most 1/15. All of r, or (precise) only its part beyond (1 + v) v/3, is formed in double. For
 * larger |v| the deviance is formed from a logarithm in double-double. */
VECTORS_INLINE dd vector_deviance_dd(dd x, dd m, dd d, int precise, int fused)
{
    dd sum = dd_sum(x.hi, m.hi), v, above, ratio, small, big;
    double w;
    int near;
    sum.lo += x.lo + m.lo;
    v = dd_div_by(d, sum, fused);
    near = fabs(v.hi) <= 1 / 6.0;
    w = near ? v.hi * v.hi : 0;
    small = dd_mul_by(v, d, fused);
    if (precise) {
        above = dd_fast_sum(1, v.hi);
        above.lo += v.lo;
        ratio = dd_mul_by(dd_mul_by(v, above, fused), VECTOR_THIRD, fused);
        ratio.lo += above.hi * v.hi * w * vector_atanh_rest(w);
        small = dd_add(small, dd_mul_by(small, ratio, fused));
    } else {
        small = dd_fast_sum(small.hi, small.lo + 2 * x.hi * w * v.hi * vector_atanh(w));
    }
    big = vector_log_dd(dd_div_by(x, m, fused), precise, fused);
    big = dd_add(dd_mul_by(big, x, fused), dd_neg(d));
    small.hi = near ? small.hi : big.hi;
    small.lo = near ? small.lo : big.lo;
    return small;
}

#endif
