/* Numbers that several kernels share. */
#ifndef SHUFFLEBOUNDS_CONSTANTS_H
#define SHUFFLEBOUNDS_CONSTANTS_H
#ifndef M_PI                                   /* not of ISO C */
#define M_PI 3.14159265358979323846
#define M_LN2 0.69314718055994530942
#endif
#define LOG_SQRT_2PI 0.91893853320467274178
#define INV_SQRT_2PI 0.39894228040143267794
#define TWO_53 9007199254740992.0
#define UNIT 1.1102230246251565e-16             /* the unit roundoff */
#define BAND 43.0                               /* inversions omit nodes with |phi| <= e^-BAND; more means more nodes */
#define BEYOND 1500.0                           /* an eps above which delta no longer changes: 2^53 e^-1500 underflows */
/* Limits of the uniform expansion of _binomial.pyx; sigma^2 is the variance and s the distance from the mode. With
 * r = max(s, 2.5)^2/sigma^2, order 9 is used for r < LOW_ORDER_SLOPE, order 15 for r < NEAR_SLOPE. Below SERIES_VARIANCE a series
 * is used. */
#define NEAR_SLOPE 0.0745                       /* (0.077 * 2 sqrt(pi))^2 */
#define LOW_ORDER_SLOPE 2.4e-3                  /* (0.0138 * 2 sqrt(pi))^2 */
#define SERIES_VARIANCE 84.0
#define EXCESS_LANES 8                          /* number of partial sums over tilted atoms that run in parallel (excess.h) */
#define TINY_P 0x1p-830                         /* for smaller p, probabilities are a leading power of p times a constant */
/* A deviance above this number is computed in double-double, because its rounding to a double would exceed the other errors. */
#define TAILS_PLAIN 32.0
/* The functions of tails.h and their arguments: the binomial distribution (k, n, p), the Poisson distribution (k, mu), the
 * incomplete gamma functions (a, x), the negative binomial distribution (k, r, p), the incomplete beta functions (a, b, x). */
enum { TAILS_BINOMIAL, TAILS_POISSON, TAILS_GAMMA, TAILS_NEGATIVE, TAILS_BETA };
#endif
