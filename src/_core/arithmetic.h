/* Requirements of the kernels on the machine's arithmetic, and the conversion of a double to an index.
 *
 * The kernels' error bounds hold for IEEE doubles, evaluated as written: no reassociation, no wider registers.
 */
#ifndef SHUFFLEBOUNDS_ARITHMETIC_H
#define SHUFFLEBOUNDS_ARITHMETIC_H

#include <float.h>
#include <math.h>
#include <stddef.h>

#if defined(__FAST_MATH__) || defined(_M_FP_FAST)
#error "the kernels' error bounds do not hold under -ffast-math: build without it"
#endif
#if defined(FLT_EVAL_METHOD) && FLT_EVAL_METHOD != 0
#error "the kernels need doubles that are evaluated as doubles (FLT_EVAL_METHOD 0): on 32-bit x86 build with -msse2 -mfpmath=sse"
#endif

/* In a build for tests (setup.py reads the environment variable SHUFFLEBOUNDS_CHECKED), a violated condition on an index
 * ends the process. */
#ifdef SHUFFLEBOUNDS_CHECKED
#include <stdio.h>
#include <stdlib.h>
#define PROMISE(condition) \
    ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition), abort()))
#else
#define PROMISE(condition) ((void)0)
#endif

/* log |Gamma(x)|. POSIX's lgamma writes the sign to a global variable, which is a data race between threads. */
#ifdef _WIN32
static inline double log_gamma(double x) { return lgamma(x); }
#else
extern double lgamma_r(double, int *);
static inline double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}
#endif

#define LESSER(a, b) ((b) < (a) ? (b) : (a))
#define GREATER(a, b) ((b) > (a) ? (b) : (a))

/* x rounded towards 0, as an integer in low..high. Callers pass no NaN and nothing outside of this range; if one does,
 * the result is an end of the range, not an undefined cast or an index outside of an array. */
static inline ptrdiff_t whole(double x, ptrdiff_t low, ptrdiff_t high)
{
    PROMISE(x > (double)low - 1 && x < (double)high + 1);
    return x >= (double)low ? (x <= (double)high ? (ptrdiff_t)x : high) : low;
}

/* An index into an array of n elements. Callers pass 0 <= i < n; for any other i the nearest index in this range is returned. */
static inline ptrdiff_t slot(ptrdiff_t i, ptrdiff_t n)
{
    PROMISE(0 <= i && i < n);
    return i < 0 ? 0 : i < n ? i : n - 1;
}

#endif
