/* The functions of shufflebounds.h. Nothing is computed here: each function calls a kernel that checks its arguments. */
#include "shufflebounds.h"
#include "beta.h"
#include "clones.h"
#include "gaussian.h"
#include "hypergeometric.h"
#include "poisson_binomial.h"
#include "tails.h"

int sb_abi(void) { return SB_ABI; }

#define THREE(name, ...) \
    double sb_##name(double a, double b, double c) { return kernel_checked_##name(a, b, c); }
#define TWO(name) \
    double sb_##name(double a, double b) { return kernel_checked_##name(a, b); } \
    static double three_##name(double a, double b, double unused) { (void)unused; return kernel_checked_##name(a, b); }
#define FOUR(name) \
    double sb_##name(double a, double b, double c, double d) { return kernel_checked_##name(a, b, c, d); }
THREE(binom_logpmf)
THREE(binom_logcdf)
THREE(binom_logsf)
TWO(poisson_logpmf)
TWO(poisson_logcdf)
TWO(poisson_logsf)
THREE(nbinom_logpmf)
THREE(nbinom_logcdf)
THREE(nbinom_logsf)
FOUR(hypergeom_logpmf)
FOUR(hypergeom_logcdf)
FOUR(hypergeom_logsf)
TWO(log_gammainc)
TWO(log_gammaincc)
THREE(log_betainc)
THREE(log_betaincc)

/* At most TAILS_BLOCK elements, as the ufuncs of these names evaluate them. */
static void array_block(int function, int level, const double *const *in, double *out, ptrdiff_t count)
{
    ptrdiff_t i;
    switch (function) {
    case SB_BINOM_LOGPMF: pmf_block(level, TAILS_BINOMIAL, in, out, count, kernel_checked_binom_logpmf); break;
    case SB_BINOM_LOGCDF: tails_block(level, TAILS_BINOMIAL, in, out, count, 0, kernel_checked_binom_logcdf); break;
    case SB_BINOM_LOGSF: tails_block(level, TAILS_BINOMIAL, in, out, count, 1, kernel_checked_binom_logsf); break;
    case SB_POISSON_LOGPMF: pmf_block(level, TAILS_POISSON, in, out, count, three_poisson_logpmf); break;
    case SB_POISSON_LOGCDF: tails_block(level, TAILS_POISSON, in, out, count, 0, three_poisson_logcdf); break;
    case SB_POISSON_LOGSF: tails_block(level, TAILS_POISSON, in, out, count, 1, three_poisson_logsf); break;
    case SB_NBINOM_LOGPMF: pmf_block(level, TAILS_NEGATIVE, in, out, count, kernel_checked_nbinom_logpmf); break;
    case SB_NBINOM_LOGCDF: tails_block(level, TAILS_NEGATIVE, in, out, count, 0, kernel_checked_nbinom_logcdf); break;
    case SB_NBINOM_LOGSF: tails_block(level, TAILS_NEGATIVE, in, out, count, 1, kernel_checked_nbinom_logsf); break;
    case SB_HYPERGEOM_LOGPMF: hypergeom_block_pmf(level, in, out, count); break;
    case SB_HYPERGEOM_LOGCDF: hypergeom_block_tail(level, in, out, count, 0); break;
    case SB_HYPERGEOM_LOGSF: hypergeom_block_tail(level, in, out, count, 1); break;
    case SB_LOG_GAMMAINC: tails_block(level, TAILS_GAMMA, in, out, count, 1, three_log_gammainc); break;
    case SB_LOG_GAMMAINCC: tails_block(level, TAILS_GAMMA, in, out, count, 0, three_log_gammaincc); break;
    case SB_LOG_BETAINC: tails_block(level, TAILS_BETA, in, out, count, 1, kernel_checked_log_betainc); break;
    case SB_LOG_BETAINCC: tails_block(level, TAILS_BETA, in, out, count, 0, kernel_checked_log_betaincc); break;
    default: for (i = 0; i < count; i++) out[i] = NAN;
    }
}

void sb_array(int function, size_t count, const double *const *in, double *out)
{
    int gamma = (SB_POISSON_LOGPMF <= function && function <= SB_POISSON_LOGSF) || function == SB_LOG_GAMMAINC
        || function == SB_LOG_GAMMAINCC;
    int inputs = gamma ? 2 : SB_HYPERGEOM_LOGPMF <= function && function <= SB_HYPERGEOM_LOGSF ? 4 : 3;
    const double *at[4];
    size_t start, some;
    int j, level = vectors_level();
    if (function < 0 || function > SB_LOG_BETAINCC) inputs = 0;
    for (start = 0; start < count; start += some) {
        some = count - start < TAILS_BLOCK ? count - start : TAILS_BLOCK;
        for (j = 0; j < inputs; j++) at[j] = in[j] + start;
        array_block(function, level, at, out + start, (ptrdiff_t)some);
    }
}

double sb_poisson_binom_logcdf(const double *p, const double *counts, size_t groups, double k, double *work, double *rel_error)
{
    return kernel_checked_poisson_binom(p, counts, (ptrdiff_t)groups, k, 0, work, rel_error);
}

double sb_poisson_binom_logsf(const double *p, const double *counts, size_t groups, double k, double *work, double *rel_error)
{
    return kernel_checked_poisson_binom(p, counts, (ptrdiff_t)groups, k, 1, work, rel_error);
}

void sb_clones_log_delta(double users, double local_eps, double eps, int stronger, double *lower, double *upper)
{
    kernel_checked_clones_log_delta(users, local_eps, eps, stronger, lower, upper);
}

double sb_clones_epsilon(double users, double local_eps, double delta, int stronger, int upper)
{
    return kernel_checked_clones_epsilon(users, local_eps, delta, stronger, upper);
}

void sb_gaussian_log_delta(double sigma, double sensitivity, double eps, double *lower, double *upper)
{
    kernel_checked_gaussian_log_delta(sigma, sensitivity, eps, lower, upper);
}

double sb_gaussian_epsilon(double sigma, double sensitivity, double delta, int upper)
{
    return kernel_checked_gaussian_epsilon(sigma, sensitivity, delta, upper);
}
