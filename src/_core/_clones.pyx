"""Clone bounds: delta(eps) and eps(delta) of one deployment or of arrays of deployments, and the clone sum for personalized rates.

Definition. l is the target's pure budget, n the number of users, and every other user sends a clone with probability r:
    delta(eps) = tanh(l/2) (1 + e^eps) E[max(0, D - u M)]/(n r),   M ~ Bin(n, r),   D a sum of M random signs,
    u = tanh(eps/2)/tanh(l/2),   v = 1 - u = sinh((l - eps)/2)/(sinh(l/2) cosh(eps/2)).
The expectation is computed by _compound.pyx, whose run time does not grow with n for large n. v is computed from l - eps, which is
exact if eps is close to l, so that delta has a small relative error even as it falls to 0. For n v <= 2, D - u M is positive only
if all M signs are +1, and
    delta(eps) = (1 - e^(eps - l)) (1 - r/2)^(n-1)/(1 + e^-l).

eps(delta). The search of _crossing.pyx uses an estimate of log delta: the saddle-point approximation with the Edgeworth terms of
the tilted skewness and kurtosis. The search starts where this estimate is equal to the target. The relative error of this first eps
is usually below 1/(n r)^2. For 90 % of random deployments it is below 7e-6 (1e3..1e4 users), 5e-8 (1e4..1e5), 6e-10 (1e5..1e6) and
2e-11 (1e6..1e7). For n v <= 2 the solution of delta(eps) = delta has a closed form.

Returned error: that of _compound.pyx and the roundings of every logarithm that is added to it; both bounds are rounded
          conservatively.
Cost      2 to 9 us for a value of delta, 0.25 us for an approximate value. An upper bound of epsilon takes one value of delta up to
          n = 1e6, two from n = 1e7 on, and sometimes one more; a lower bound takes two values. Either bound takes 5 to 12 us, and
          8 us on average over n = 1e3..1e9. Personal rates: 30 us for a clone sum of 500 groups, 0.1 ms for 12,500 (AVX-512)
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, M_PI, NAN, ceil, cos, exp, expm1, fabs, fmax, fmin, log, log1p, sin, sqrt, tanh
from libc.stdlib cimport free, malloc

import numpy as np

from shufflebounds._core._binomial cimport c_binom_logpmf, c_binom_logsf
from shufflebounds._core._compound cimport c_log_weighted_excess
from shufflebounds._core._constants cimport BAND, INV_SQRT_2PI, LOG_SQRT_2PI, UNIT
from shufflebounds._core._dd cimport dd, dd_add, dd_make
from shufflebounds._core._lattice cimport (
    Law, Node, Phi, Tilt, c_half_period, c_lattice_law, c_lattice_tilted, c_left_out, c_node, c_nodes_make,
)
from shufflebounds._core._special cimport c_log_add_exp, c_mills_ratio

cdef extern from "clones.h" nogil:
    double kernel_clone_rate(double local, bint stronger)
    void kernel_clone_log_delta(double users, double rate, double local, double eps, double *lower, double *upper)
    double kernel_clone_epsilon(double users, double rate, double local, double delta, bint upper)
    void kernel_checked_clones_log_delta(double users, double local, double eps, bint stronger, double *lower, double *upper)
    double kernel_checked_clones_epsilon(double users, double local, double delta, bint stronger, bint upper)
    void clones_slopes_of(double eps, double local, double *u, double *v)
    Py_ssize_t whole(double x, Py_ssize_t low, Py_ssize_t high)

cdef extern from *:
    """
    #define BLOCK 64                        /* results between two checks for signals, about 2 ms */
    #define MOST_NODES 96                   /* half a period has at most 64 nodes: about 28 of large distributions */
    #define LEAST_LOG -1e280                /* stands for the log of smaller probabilities in upper bounds */
    #define STEPS 64                        /* products and sums between two computations of a probability */
    #define TURNS 16                        /* rotations of a node between two computations of its sine and cosine */
    """
    const int BLOCK
    const double LEAST_LOG
    const int MOST_NODES
    const int STEPS
    const int TURNS


cdef double c_clone_rate(double local, bint stronger) noexcept nogil: return kernel_clone_rate(local, stronger)
cdef void c_clone_log_delta(double users, double rate, double local, double eps, double *lower, double *upper) noexcept nogil:
    kernel_clone_log_delta(users, rate, local, eps, lower, upper)
cdef double c_clone_epsilon(double users, double rate, double local, double delta, bint upper) noexcept nogil:
    return kernel_clone_epsilon(users, rate, local, delta, upper)
cdef void checked_clones_log_delta(double users, double local, double eps, bint stronger, double *lower,
                                   double *upper) noexcept nogil:
    kernel_checked_clones_log_delta(users, local, eps, stronger, lower, upper)
cdef double checked_clones_epsilon(double users, double local, double delta, bint stronger, bint upper) noexcept nogil:
    return kernel_checked_clones_epsilon(users, local, delta, stronger, upper)


cdef void c_personal_sum(const Law *law, double sure, double decay, double beyond, double u, double v, double *lower,
                         double *upper) noexcept nogil:
    """Write bounds of log E G_(C+1)/(C+1), where G_m = E max(0, D - u m) for a sum D of m random signs.

    C is `sure` plus the sum of the independent bits of `law`.

    The caller has checked: G_(c+1) <= e^(b - k c) for every c, with b = `beyond` and k = `decay`; |k| <= 1; and v = 1 - u > 0. Let
    w be the distribution of the bits tilted by e^(-k c): Pr[C = sure + c] = e^(K + k c) w_c. As G_m <= v m Pr[D > u m], a term of
    the sum is at most w_c e^K times the smaller of e^(b - k sure)/(c + 1) and v e^(-k (1 + sure)). So an absolute error of w is
    small in comparison to the sum, and one inversion of 2 J points around the mean suffices. The errors:
        beyond the points     at most 2 e^-BAND of w. 1/(c + 1) is at most 4/(mean + 4) for c >= mean/4; for smaller c, w has at
                              most the mass e^(-0.403 mean) (Chernoff: 1 - x + x log x = 0.403 for x = 1/4)
        at each point         `stray`, for the omitted nodes and the mass beyond the period; and the roundings: those of a
                              node (Node.rounding), 4 UNIT of each of TURNS rotations, 1 UNIT of each of MOST_NODES sums, and
                              32 UNIT for sine, cosine and their argument of at most 2 pi
        e^-k rounded          4 UNIT for each step of c from the mean
    The bounds are NaN without memory, and if there are MOST_NODES nodes; half a period has fewer.
    """
    cdef double[MOST_NODES] re, im, x, y, turn_x, turn_y
    cdef double k, error = 0, stray, spread = 0, even, odd, hold, value, outside, each = 0, mean, angle, half, flat
    cdef double below = 0, above = 0
    cdef Py_ssize_t reach, J, j, m, nodes = 0, low, high
    cdef double *logs
    cdef Tilt tilt
    cdef Phi phi
    cdef Node at
    lower[0] = upper[0] = NAN
    k = c_lattice_tilted(law, -decay, &tilt)
    mean = k + tilt.shift
    reach = whole(c_half_period(tilt.var, fabs(tilt.shift)), 1, 1 << 53)
    J = reach + 1
    low, high = whole(k, 0, reach), whole(law.trials - k, 0, reach)
    logs = <double *> malloc((low + high + 1) * sizeof(double))
    half = c_nodes_make(law, &tilt, &phi)
    while logs != NULL and nodes <= J and nodes < MOST_NODES and c_node(&phi, &tilt, half, J, nodes, &at):
        re[nodes], im[nodes] = at.re, at.im
        angle = M_PI * nodes / J
        turn_x[nodes], turn_y[nodes] = cos(angle), sin(angle)
        spread += at.size * (at.rounding + 4 * TURNS + MOST_NODES + 32)
        nodes += 1
    if logs == NULL or nodes == MOST_NODES:
        free(logs)
        return
    stray = c_left_out(tilt.var, half, J) + UNIT * spread * 0.5 / J
    for j in range(max(low, high) + 1):
        if j % TURNS == 0:
            for m in range(nodes):
                angle = M_PI * ((m * j) % (2 * J)) / J
                x[m], y[m] = cos(angle), sin(angle)
        even = odd = 0
        for m in range(nodes):
            even += re[m] * x[m]
            odd += im[m] * y[m]
            hold = x[m] * turn_x[m] - y[m] * turn_y[m]
            y[m] = y[m] * turn_x[m] + x[m] * turn_y[m]
            x[m] = hold
        if j <= high:
            hold = (even + odd) * 0.5 / J
            logs[low + j] = log(hold) + decay * j if hold > stray else -INFINITY
        if j <= low:
            hold = (even - odd) * 0.5 / J
            logs[low - j] = log(hold) - decay * j if hold > stray else -INFINITY
    for j in range(low + high + 1):
        each += 1 / (k - low + j + 1)
    value = c_log_weighted_excess(sure + k - low, logs, low + high + 1, u, v, &error)
    free(logs)
    if high < law.trials - k:
        above = 2 * exp(-BAND)
    if low < k:
        below = 2 * exp(-BAND)
    # a point whose computed value is at most its error bound `stray` is omitted; its exact value is then at most 2 stray
    outside = 2 * stray * each + above / (k + high + 2) + 4 * below / (mean + 4) + fmin(below, exp(-0.403 * mean))
    flat = 2 * stray * (low + high + 1) + above + below
    outside = fmin(log(outside) + beyond, log(flat) + log(v) - decay) - decay * sure
    value += decay * k
    error += tilt.exponent_error + 4 * UNIT * reach
    error += 8 * UNIT * (fabs(value) + fabs(tilt.exponent) + fabs(decay) * (k + high + sure) + 4)
    lower[0] = value + log1p(-exp(outside - value)) - error if outside < value else -INFINITY
    upper[0] = c_log_add_exp(value, outside) + error
    lower[0] += tilt.exponent
    upper[0] += tilt.exponent


def personal_clone_sum(const double[::1] probs not None, const double[::1] counts, double sure, double decay, double beyond,
                       double u, double v):
    """Return bounds of log E G_(C+1)/(C+1) for C = sure + sum of Bin(counts, probs); `c_personal_sum` defines G.

    counts may be None: one bit for each probability.

    The caller has checked: 0 < probs < 1, u in [0, 1], and the conditions of `c_personal_sum`.
    """
    cdef Law law
    cdef double lower, upper
    with nogil:
        c_lattice_law(&law, &probs[0], NULL, &counts[0] if counts is not None else NULL, probs.shape[0])
        c_personal_sum(&law, sure, decay, beyond, u, v, &lower, &upper)
    if upper != upper:
        raise MemoryError("no memory for the distribution of the number of clones")
    return lower, upper


cdef inline double c_least_log_ratio(double a, double b, double reach) noexcept nogil:
    cdef double at = reach, bend = (a - b) * (a + b), x = 0.5 * a, y = 0.5 * b, first
    first = 0.5 * x * x - 0.5 * y * y
    if bend > 0:
        at = fmin(0.5 * (a * a + b * b) / bend, reach)
    x, y = a * (at - 0.5), b * (at + 0.5)
    return fmin(first, 0.5 * x * x - 0.5 * y * y)


def least_log_ratio(double a, const double[::1] b not None, double reach):
    """For Gaussian noise, return the minimum of a^2 (t - 1/2)^2/2 - b^2 (t + 1/2)^2/2 over 0 <= t <= reach.

    a and b are 1/sigma of the target and of another user. Let R_0, R_1 be the output densities of the target and R_i that of the
    other user. The expression is the logarithm of R_i/max(R_0, R_1), without the factor b/a, at the output 1/2 - t. The value of
    the other user is 1, the farthest from this output, and the value of the target is 0.
    """
    cdef Py_ssize_t i
    ratios = np.empty(b.shape[0])
    cdef double[::1] out = ratios
    for i in range(b.shape[0]):
        out[i] = c_least_log_ratio(a, b[i], reach)
    return ratios


cdef inline double log_beyond(double x) noexcept nogil:
    """Returns an upper bound of the log of the probability that a standard normal variable exceeds x, as a finite number."""
    if x >= 0:
        return fmax(log(c_mills_ratio(x)) - 0.5 * x * x - LOG_SQRT_2PI, LEAST_LOG)
    return log1p(-c_mills_ratio(-x) * exp(-0.5 * x * x) * INV_SQRT_2PI)


def gaussian_terms(double low, double high, double eps, const double[::1] reach not None):
    """Return rows (local eps, log scale, log tail) for targets with 1/sigma in low..high.

    There is one entry for each window [1/2 - reach, 1/2 + reach] of outputs.

    The caller has checked: reach >= eps/low^2. So the ratio of the output densities R_0 and R_1 of the target's inputs 0 and 1
    exceeds e^eps beyond one end of the window.
    """
    cdef Py_ssize_t i
    cdef double first, kept, left, error
    terms = np.empty((3, reach.shape[0]))
    cdef double[:, ::1] out = terms
    for i in range(reach.shape[0]):
        first, left = log_beyond((reach[i] - 0.5) * low), log_beyond((reach[i] + 0.5) * high)
        kept = log_beyond((reach[i] - 0.5) * high)
        error = 1e-13 * (2 + fabs(first) + eps)
        out[0, i] = reach[i] * high * high
        out[1, i] = log1p(-exp(kept) - exp(left))
        out[2, i] = first + log(-expm1(fmin(eps + left - first, 0) - error)) + error
    return terms


def gaussian_rates(double low, double high, const double[::1] budgets not None, const double[::1] reach not None, double rounding):
    """Return the rates of users with Gaussian noise for targets with 1/sigma in low..high, one row for each window of outputs.

    A rate is kappa p/(p + 1) b/high e^l, rounded down by a relative `rounding` (1 + |l|). Here kappa is the target's mass in the
    window, p is the largest ratio of the densities R_0 and R_1 there, and b is 1/sigma of the user (`budgets`). l is the result of
    `least_log_ratio`, which omits the factor b/low. For other targets in [low, high], max(R_0, R_1) is at most high/low times
    larger, so the factor b/high is valid for all targets.
    """
    cdef Py_ssize_t i, j
    cdef double ratio, log_factor
    rates = np.empty((reach.shape[0], budgets.shape[0]))
    cdef double[:, ::1] out = rates
    with nogil:
        for i in range(reach.shape[0]):
            log_factor = log1p(-exp(log_beyond((reach[i] - 0.5) * low)) - exp(log_beyond((reach[i] + 0.5) * low)))
            log_factor += -log1p(exp(-reach[i] * high * high)) - log(high)
            for j in range(budgets.shape[0]):
                ratio = c_least_log_ratio(low, budgets[j], reach[i])
                out[i, j] = fmin(budgets[j] * exp(ratio + log_factor) * (1 - rounding * (1 + fabs(ratio))), 0.5)
    return rates


def tilted_bins(const double[::1] lowest not None, const double[::1] largest not None, const double[::1] users not None,
                double decay):
    """Return lower bounds of the variance and mean of the number c of clones, tilted by e^(-decay c), for all rates in the bins.

    The third number is the smallest value of 1 - (1 - e^-decay) p over the probabilities p = 2 rate.
    """
    cdef Py_ssize_t j
    cdef double a = -expm1(-decay), keep = exp(-decay), low, high, one, two, var = 0, mean = 0, smallest = 1
    with nogil:
        for j in range(users.shape[0]):
            low, high = 2 * lowest[j], 2 * largest[j]
            one, two = 1 - a * low, 1 - a * high
            var += users[j] * fmin(keep * low * (1 - low) / (one * one), keep * high * (1 - high) / (two * two))
            mean += users[j] * (keep * low / one)
            smallest = fmin(smallest, fmin(one, two))
    return var, mean, smallest


def log_estimates(const double[:, ::1] rates not None, const double[::1] counts not None, const double[::1] taken not None,
                  const double[::1] local_eps not None, double eps):
    """Return approximations of log delta of a target, one for each row of rates; they decide which bounds are evaluated.

    Each row has the rates of all users including the target, whose rate `taken` is subtracted. In the clone sum, only the summand
    at the mean of the tilted number of clones is used, with a Gaussian approximation of G_m = E max(0, D - u m), D the sum of m
    random signs.
    """
    cdef Py_ssize_t i, j
    cdef double u, v, decay, shrink, keep, total, mean, prob, part, x
    estimates = np.full(rates.shape[0], -INFINITY)
    cdef double[::1] out = estimates
    with nogil:
        for i in range(rates.shape[0]):
            clones_slopes_of(eps, local_eps[i], &u, &v)
            if not (eps < local_eps[i] and v > 0):
                continue
            decay = 0.5 * ((1 + u) * log1p(u) + v * log(v))
            shrink, keep = expm1(-decay), exp(-decay)
            prob = fmin(2 * taken[i], 1.0)
            part = fmax(1 + prob * shrink, 1e-300)
            total, mean = -log(part), -prob / part
            for j in range(counts.shape[0]):
                prob = fmin(2 * rates[i, j], 1.0)
                part = fmax(1 + prob * shrink, 1e-300)
                total += counts[j] * log(part)
                mean += counts[j] * prob / part
            mean = 1 + keep * fmax(mean, 0)
            x = u * sqrt(mean)
            out[i] = (total - decay - 0.5 * log(mean) - 0.92 - log1p(1.25 * x + x * x) + log(tanh(0.5 * local_eps[i]))
                      + c_log_add_exp(0, eps))
    return estimates


def blanket_sum(double first, const double[::1] log_weights not None, double few, double many, double q, double alpha,
                double beta, double gamma, double top):
    """Return bounds of e^-top sum_(m, s) w_m/m Pr[Bin(m, q) = s] E(alpha N + beta (s - N) + gamma (m - s))_+, N ~ Bin(s, 1/2).

    m runs over first, first + 1, ..., and s over few..many; `log_weights` are the log w_m. The caller has checked: gamma <= 0 and
    0 < alpha <= -beta, so that the t below is not negative. Terms below e^-600 may count as 0. If there is no finite sum, 0 and
    INFINITY are returned. The expectation is full/2 Pr[X = t] + (full - slope s/2) Pr[X > t], X ~ Bin(s - 1, 1/2), full = alpha s +
    gamma (m - s), slope = alpha - beta. The least N with a positive term is t + 1 = s + 1 - ceil(full/slope). For large budgets the
    rounding of beta would absorb alpha, the only positive term, so beta is not multiplied by N. For each s, m runs downward, and t
    does not increase. The probabilities and the ratio Pr[X > t]/Pr[X = t] follow from those of the last m by products and sums of
    positive terms, of at most 5 UNIT each, and are computed anew after STEPS of them (1e-13 in all) or where the product leaves the
    range
    of e^-100 to e^100.
    """
    cdef Py_ssize_t i, count = log_weights.shape[0], steps = 0
    cdef double s, m, n, full, slope = alpha - beta, t, aim, other = 0, mass = 0, ratio = 0, scale = 0, value, loss, safe, error
    cdef double cell, part_low, part_high
    cdef dd low = dd_make(0, 0), high = dd_make(0, 0)
    with nogil:
        s = few
        while s <= many:
            n = fmax(s - 1, 0)
            part_low = part_high = 0
            t = INFINITY
            for i in range(count - 1, -1, -1):
                m = first + i
                full = alpha * s + gamma * (m - s)
                if not (1 <= s <= m and full > 0):
                    continue
                aim = fmin(s + 1 - ceil(full / slope), s) - 1
                if not (0 <= t - aim < STEPS - steps and 1e-43 < mass < 1e43 and q < 1):
                    t, steps = aim, 0
                    scale = c_binom_logpmf(s, m, q) + c_binom_logpmf(t, n, 0.5)
                    ratio = exp(c_binom_logsf(t, n, 0.5) - c_binom_logpmf(t, n, 0.5))
                    mass = 1
                else:
                    mass *= (m + 1 - s) / ((m + 1) * (1 - q))
                    steps += 1
                    while t > aim:
                        other = t / (n - t + 1)
                        ratio = (ratio + 1) / other
                        mass *= other
                        t -= 1
                        steps += 1
                value = 0.5 * full + (full - 0.5 * slope * s) * ratio
                loss = (fabs(full - 0.5 * slope * s) * ratio * (3e-13 + 16 * UNIT * fabs(scale))
                        + 16 * UNIT * (alpha * s - gamma * (m - s) + slope * s * ratio))
                # for q = 1 only cells with s = m have mass
                if value + loss > 0 and scale > -INFINITY:
                    safe = fmax(value, 0.5 * loss)
                    other = scale + log_weights[i]
                    error = 2 * loss / safe + 4e-13
                    error += 16 * UNIT * (fabs(scale) + fabs(other - top) + fabs(top) + 8)
                    cell = exp(other - top) * mass * safe / m
                    part_low += cell * fmax(0, 1 - error)
                    part_high += cell * (1 + error)
            low, high = dd_add(low, dd_make(part_low, 0)), dd_add(high, dd_make(part_high, 0))
            s += 1
    if not high.hi < INFINITY:
        return 0.0, INFINITY
    # a sum over m has at most `count` roundings
    return low.hi * (1 - 2 * UNIT * count), high.hi * (1 + 2 * UNIT * count)


def clone_rate(double local, bint stronger):
    """Return the probability that another user's message is a clone."""
    return c_clone_rate(local, stronger)


def clone_epsilon(double users, double rate, double local, double delta, bint upper):
    """Return the upper or lower bound of epsilon of one deployment."""
    cdef double eps
    with nogil:
        eps = c_clone_epsilon(users, rate, local, delta, upper)
    return eps


def rates(const double[::1] local, bint stronger, double[::1] out):
    """Fill out with clone_rate for every local budget."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(local.shape[0]):
            out[i] = c_clone_rate(local[i], stronger)


def clones_log_delta(const double[::1] users, const double[::1] rates, const double[::1] local, const double[::1] eps,
                     double[::1] lower, double[::1] upper):
    """Fill lower and upper with the bounds of log delta of each deployment."""
    cdef Py_ssize_t i, first = 0, count = users.shape[0]
    while first < count:
        with nogil:
            for i in range(first, min(count, first + BLOCK)):
                c_clone_log_delta(users[i], rates[i], local[i], eps[i], &lower[i], &upper[i])
        first += BLOCK
        PyErr_CheckSignals()


def clones_epsilon(const double[::1] users, const double[::1] rates, const double[::1] local, const double[::1] delta,
                   bint upper, double[::1] out):
    """Fill out with the upper or lower bound of epsilon of each deployment."""
    cdef Py_ssize_t i, first = 0, count = users.shape[0]
    while first < count:
        with nogil:
            for i in range(first, min(count, first + BLOCK)):
                out[i] = c_clone_epsilon(users[i], rates[i], local[i], delta[i], upper)
        first += BLOCK
        PyErr_CheckSignals()
