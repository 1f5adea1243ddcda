/* Calls every function of shufflebounds.h with random and with adversarial arguments, and prints for each a hash of the bits of its
 * results and the number of results that are NaN. Builds by other compilers and flags must print the same lines.
 *
 * The argument is the number of calls for each function. */
#include <math.h>
#include <shufflebounds.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252u;

static uint64_t next(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static double uniform(void) { return (double)(next() >> 11) * 0x1p-53; }

/* Numbers below 2^most, and numbers in (0, 1) down to 2^-most. No expression of this file calls `next` twice, because compilers
 * differ in the order of such calls. */
static double large(int most)
{
    double u = 1 + uniform();
    return ldexp(u, (int)(next() % (unsigned)most));
}

static double small(int most)
{
    double u = uniform();
    return ldexp(u, -(int)(next() % (unsigned)most));
}

/* a number of one of the kinds that the tests of the ufuncs use: an edge, of any size, a count, a probability, a budget */
static double argument(void)
{
    static const double edges[] = {
        0, -0.0, 1, -1, 0.5, 0.25, 5e-324, 1e-308, 1e308, 0x1p53, 0x1p53 + 2, 0x1p52 + 0.5, 1 - 0x1p-53, 10, 1e-300, 700, -700, 4e-12,
        1e6, 1e140, 2
    };
    switch (next() % 8) {
    case 0: return edges[next() % (sizeof edges / sizeof *edges)];
    case 1: return next() % 3 == 0 ? NAN : next() % 2 ? INFINITY : -INFINITY;
    case 2: return ldexp(large(2000), -1000);
    case 3: case 4: return floor(large(40));
    case 5: return 10 * uniform();
    default: return uniform();
    }
}

static uint64_t hash;
static long unknown;

static void seen(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (value != value) bits = 1, unknown++;
    hash = (hash ^ bits) * 1099511628211u;
}

static void report(const char *name)
{
    printf("%s %016llx %ld\n", name, (unsigned long long)hash, unknown);
    hash = 14695981039346656037u;
    unknown = 0;
}

/* Fills x with the arguments of a distribution (the order of enum sb_function): in three of four calls inside its domain. */
static void arguments(int family, double *x)
{
    double n = floor(large(52)), p = next() % 2 ? uniform() : small(60);
    double mean = n * p, near = floor(mean + sqrt(mean + 1) * (16 * uniform() - 8));
    int j;
    for (j = 0; j < 4; j++) x[j] = argument();
    if (next() % 4 == 0) return;
    switch (family) {
    case 0: x[0] = near, x[1] = n, x[2] = p; break;
    case 1: x[0] = near, x[1] = mean; break;
    case 2: x[0] = near, x[1] = mean + uniform(), x[2] = p; break;
    case 3:
        x[1] = n, x[2] = floor(n * uniform()), x[3] = floor(n * p);
        x[0] = floor(x[2] * p + sqrt(x[2] * p + 1) * (8 * uniform() - 4));
        break;
    case 4: x[0] = mean + uniform(), x[1] = x[0] + sqrt(x[0]) * (8 * uniform() - 4); break;
    default: x[0] = mean + uniform(), x[1] = n - mean + uniform(), x[2] = next() % 2 ? p : uniform();
    }
}

/* users, local eps, eps and delta of a deployment, in seven of eight calls inside their domains */
static void budgets(double *x)
{
    int j;
    x[0] = floor(large(40));
    x[1] = 10 * uniform();
    x[2] = x[1] * small(10);
    x[3] = small(200);
    for (j = 0; j < 4; j++) if (next() % 32 == 0) x[j] = argument();
}

#define EACH(family, name, ...)                                                     \
    for (i = 0; i < calls; i++) {                                                   \
        arguments(family, x);                                                       \
        seen(name(__VA_ARGS__));                                                    \
    }                                                                               \
    report(#name);
#define TWO(family, name) EACH(family, name, x[0], x[1])
#define THREE(family, name) EACH(family, name, x[0], x[1], x[2])
#define FOUR(family, name) EACH(family, name, x[0], x[1], x[2], x[3])

enum { MOST = 1000 };

int main(int count, char **words)
{
    long calls = count > 1 ? atol(words[1]) : 1000, i;
    static double in[4][MOST], out[MOST], work[2 * MOST];
    const double *at[4] = {in[0], in[1], in[2], in[3]};
    double lower, upper, x[4];
    static const int families[] = {5, 0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 5, 5, 5};
    int function, j, k;
    size_t some;
    report("start");
    THREE(0, sb_binom_logpmf)
    THREE(0, sb_binom_logcdf)
    THREE(0, sb_binom_logsf)
    TWO(1, sb_poisson_logpmf)
    TWO(1, sb_poisson_logcdf)
    TWO(1, sb_poisson_logsf)
    THREE(2, sb_nbinom_logpmf)
    THREE(2, sb_nbinom_logcdf)
    THREE(2, sb_nbinom_logsf)
    FOUR(3, sb_hypergeom_logpmf)
    FOUR(3, sb_hypergeom_logcdf)
    FOUR(3, sb_hypergeom_logsf)
    TWO(4, sb_log_gammainc)
    TWO(4, sb_log_gammaincc)
    THREE(5, sb_log_betainc)
    THREE(5, sb_log_betaincc)
    for (function = -1; function <= SB_LOG_BETAINCC + 1; function++)
        for (i = 0; i < calls; i += (long)some) {
            some = next() % MOST;
            for (j = 0; j < (int)some; j++) {
                arguments(families[function + 1], x);
                for (k = 0; k < 4; k++) in[k][j] = x[k];
            }
            sb_array(function, some, at, out);
            for (j = 0; j < (int)some; j++) seen(out[j]);
            some += !some;
        }
    report("sb_array");
    for (i = 0; i < calls; i += (long)some) {
        some = next() % 40;
        /* most sums have no argument outside of the domain */
        for (j = 0; j < (int)some; j++) {
            in[0][j] = next() % 500 ? fmax(0, 1.2 * uniform() - 0.2) : argument();
            in[1][j] = next() % 500 ? (double)(next() % 1000) : argument();
        }
        lower = next() % 10 ? (double)(next() % (500 * some + 1)) : argument();
        seen(sb_poisson_binom_logsf(in[0], next() % 2 ? in[1] : NULL, some, lower, work, &upper));
        seen(upper);
        seen(sb_poisson_binom_logcdf(in[0], in[1], some, lower, work, NULL));
        some += !some;
    }
    report("sb_poisson_binom");
    for (i = 0; i < calls; i++) {
        budgets(x);
        sb_clones_log_delta(x[0], x[1], x[2], i % 2, &lower, &upper);
        seen(lower);
        seen(upper);
        sb_gaussian_log_delta(x[1], 1 + x[2], x[2], &lower, &upper);
        seen(lower);
        seen(upper);
    }
    report("log_delta");
    for (i = 0; i < calls; i += 10) {
        budgets(x);
        seen(sb_clones_epsilon(x[0], x[1], x[3], i % 20 == 0, i % 40 < 20));
        seen(sb_gaussian_epsilon(x[1], 1 + x[2], x[3], i % 20 == 0));
    }
    report("epsilon");
    return sb_abi() != SB_ABI;
}
