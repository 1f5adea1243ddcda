/* A calculator for shuffled reports: eps of the stronger clone bound, and the least number of users for a target.
 *
 *     cc calculator.c $(python -m shufflebounds config --cflags --libs) -o calculator
 *     ./calculator eps 1000000 4 1e-8         users, local eps, delta
 *     ./calculator users 0.5 4 1e-8           eps, local eps, delta
 */
#include <math.h>
#include <shufflebounds.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* the least number of users in 1..2^53 whose upper bound of eps is at most eps, by bisection; NaN if there is none */
static double least_users(double eps, double local_eps, double delta)
{
    double low = 0, high = 0x1p53;
    if (!(sb_clones_epsilon(high, local_eps, delta, 1, 1) <= eps)) return NAN;
    while (high - low > 1) {
        double middle = floor(0.5 * (low + high));
        if (sb_clones_epsilon(middle, local_eps, delta, 1, 1) <= eps) high = middle; else low = middle;
    }
    return high;
}

int main(int count, char **words)
{
    double first, local_eps, delta;
    if (sb_abi() != SB_ABI || count != 5 || (strcmp(words[1], "eps") && strcmp(words[1], "users"))) {
        fprintf(stderr, "usage: calculator eps USERS LOCAL_EPS DELTA | calculator users EPS LOCAL_EPS DELTA\n");
        return 2;
    }
    first = atof(words[2]), local_eps = atof(words[3]), delta = atof(words[4]);
    if (!strcmp(words[1], "eps"))
        printf("%.17g %.17g\n", sb_clones_epsilon(first, local_eps, delta, 1, 0), sb_clones_epsilon(first, local_eps, delta, 1, 1));
    else
        printf("%.0f\n", least_users(first, local_eps, delta));
    return 0;
}
