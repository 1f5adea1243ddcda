/* libshufflebounds: tails of discrete distributions in logarithms, clone bounds and Gaussian noise, for programs without Python.
 *
 * Conventions. Counts are doubles that hold integers up to 2^53. Logarithms are natural; log 0 is -inf. An argument that is NaN or
 * outside its domain gives NaN in every result, never an access outside an array. A pointer that "may be NULL" is optional.
 * Every function may be called from many threads. None allocates memory, keeps a global variable, locks or prints. Floating-point
 * flags and errno may change. A call uses at most 256 kB of stack. The rounding mode must be to nearest.
 * Bounds. A lower bound is never above the exact value, and an upper bound never below it, rounding included.
 * Linking. `python -m shufflebounds config --cflags --libs` prints the flags; docs: "The C library". SB_ABI changes when a function
 * of this file changes its signature or is removed; functions may be added.
 */
#ifndef SHUFFLEBOUNDS_H
#define SHUFFLEBOUNDS_H

#include <stddef.h>

#define SB_ABI 1

#ifndef SB_API
#if defined(__GNUC__) && !defined(_WIN32)
#define SB_API __attribute__((visibility("default")))
#else
#define SB_API
#endif
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* SB_ABI of the library that was linked. */
SB_API int sb_abi(void);

/* Tails at any real k: log Pr[X = k] (logpmf), log Pr[X <= k] (logcdf), log Pr[X > k] (logsf). The result has an absolute error of
 * at most 3e-14 plus 8 ulp; the headers of _binomial.pyx, _gamma.pyx, _beta.pyx and _hypergeom.pyx have tables of measured errors. */

/* X ~ Bin(n, p): n an integer in 0..2^53, 0 <= p <= 1. */
SB_API double sb_binom_logpmf(double k, double n, double p);
SB_API double sb_binom_logcdf(double k, double n, double p);
SB_API double sb_binom_logsf(double k, double n, double p);

/* X ~ Poisson(mu): k <= 2^53 or k = inf, 0 <= mu <= 1e270. */
SB_API double sb_poisson_logpmf(double k, double mu);
SB_API double sb_poisson_logcdf(double k, double mu);
SB_API double sb_poisson_logsf(double k, double mu);

/* X is the number of failures before the r-th success: k <= 2^53 or k = inf, 0 < r <= 1e100, 0 <= p <= 1. */
SB_API double sb_nbinom_logpmf(double k, double r, double p);
SB_API double sb_nbinom_logcdf(double k, double r, double p);
SB_API double sb_nbinom_logsf(double k, double r, double p);

/* X is the number of marked objects among `draws` that are drawn without replacement from `total`, of which `marked` are marked:
 * integers 0 <= marked, draws <= total <= 2^53. */
SB_API double sb_hypergeom_logpmf(double k, double total, double marked, double draws);
SB_API double sb_hypergeom_logcdf(double k, double total, double marked, double draws);
SB_API double sb_hypergeom_logsf(double k, double total, double marked, double draws);

/* Regularized incomplete functions: log P(a, x), log Q(a, x), log I_x(a, b), log(1 - I_x(a, b)). a and x in [0, 1e270] or inf, not
 * both inf; a and b in [0, 1e100] or inf, not both 0 and not both inf, 0 <= x <= 1. */
SB_API double sb_log_gammainc(double a, double x);
SB_API double sb_log_gammaincc(double a, double x);
SB_API double sb_log_betainc(double a, double b, double x);
SB_API double sb_log_betaincc(double a, double b, double x);

/* The functions above over arrays, by vector code that is 2 to 10 times as fast as calls in a loop; the last bits of a result may
 * differ from those of such a call. in[0], in[1], ... are the arrays of the first, second, ... argument, of `count` elements each;
 * `out` overlaps none of them. For an unknown `function` every result is NaN. */
enum sb_function {
    SB_BINOM_LOGPMF, SB_BINOM_LOGCDF, SB_BINOM_LOGSF, SB_POISSON_LOGPMF, SB_POISSON_LOGCDF, SB_POISSON_LOGSF, SB_NBINOM_LOGPMF,
    SB_NBINOM_LOGCDF, SB_NBINOM_LOGSF, SB_HYPERGEOM_LOGPMF, SB_HYPERGEOM_LOGCDF, SB_HYPERGEOM_LOGSF, SB_LOG_GAMMAINC,
    SB_LOG_GAMMAINCC, SB_LOG_BETAINC, SB_LOG_BETAINCC
};
SB_API void sb_array(int function, size_t count, const double *const *in, double *out);

/* X is a sum of independent bits, counts[j] of them with probability p[j], 0 <= p[j] <= 1, j < groups, groups >= 1. counts[j] are
 * integers of at most 2^53 in total; counts may be NULL, for 1 each. `work` has space for 2 groups doubles. *rel_error becomes a
 * bound of the relative error of the probability (0 where the result is exact); it may be NULL. */
SB_API double sb_poisson_binom_logcdf(const double *p, const double *counts, size_t groups, double k, double *work, double *rel_error);
SB_API double sb_poisson_binom_logsf(const double *p, const double *counts, size_t groups, double k, double *work, double *rel_error);

/* Bounds of log delta at eps of `users` shuffled reports, each with pure local budget local_eps: the clone bound (stronger = 0) or
 * the stronger clone bound (stronger = 1). users an integer in 1..2^53, 0 < local_eps <= 700, 0 <= eps < inf. *upper is a bound for
 * every randomizer with this budget. *lower is a lower bound of the formula's value; a given randomizer may have a smaller delta. */
SB_API void sb_clones_log_delta(double users, double local_eps, double eps, int stronger, double *lower, double *upper);

/* The eps of the clone bounds for 0 < delta <= 1. upper = 1: the upper bound of delta was evaluated at this eps and is at most
 * delta; upper = 0: the lower bound was evaluated and is at least delta. */
SB_API double sb_clones_epsilon(double users, double local_eps, double delta, int stronger, int upper);

/* Bounds of log delta and of eps for noise N(0, sigma^2) added to a number with this sensitivity: sigma and sensitivity positive
 * and finite, 1e-12 <= sensitivity/sigma <= 1e6, 0 <= eps < inf, 0 < delta <= 1. `upper` as for the clone bounds. */
SB_API void sb_gaussian_log_delta(double sigma, double sensitivity, double eps, double *lower, double *upper);
SB_API double sb_gaussian_epsilon(double sigma, double sensitivity, double delta, int upper);

#ifdef __cplusplus
}
#endif
#endif
