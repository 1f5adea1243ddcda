"""The clone sum E[max(0, D - u M)], the core of every clone bound, by a sweep over the number of clones or by _contour.pyx.

Layer: kernels ``cdef ... c_...(...) noexcept nogil`` (declared in _compound.pxd, which says what the caller has checked),
a ufunc for a binomial number of clones, and a function on a memoryview for any distribution of the number of clones.

Definition. M is a random number of clones, D the sum of M independent random signs (+1 or -1, probability 1/2 each). Parameters are
u and v = 1 - u. For 0 <= u < 1
    G_m = E[max(0, D - u m) | M = m] = sum_(a >= tau) (2a - m - u m) b_m(a),  tau = floor(m (1+u)/2) + 1,
where b_m is the distribution Bin(m, 1/2). The kernels sum G_m over the distribution of M. With n users, w = 1/(e^eps0 + 1) and
the number C ~ Bin(n - 1, r) of the other users' clones, M = C + 1, a clone bound is
    delta(eps) = (1 - 2w)(1 + e^eps) sum_c Pr[C = c] G_(c+1)/(c+1),  u = tanh(eps/2)/(1 - 2w)
(the hockey-stick divergence of the clone pair, whose optimal test is a/(a+b) > theta with theta - 1/2 = u/2). Since
Pr[Bin(n-1, r) = m-1]/m = Pr[Bin(n, r) = m]/(n r), the sum is E[max(0, D - u M)]/(n r) with M ~ Bin(n, r).

Method. Downward in m, with B = b_m(tau) 2 tau/m, tau' the threshold of m - 1 (tau or tau - 1) and g' = 2 tau' - (m-1) - u (m-1):
    tau' = tau - 1:  b' = B,                       S' = S + B/2
    tau' = tau:      b' = b_m(tau) 2 (m-tau)/m,    S' = S - B/2
    both:            G' = G + u S' - |g' - 1 - u| B/2
where S = Pr[Bin(m, 1/2) >= tau]. The recursion runs downward because it damps the errors of earlier steps (upward they grow).
The recursion starts anew in every block of at most 512 steps, with b from the binomial kernel, S/b from its tail ratio, and
G = tau b - u m S.
The cancellation in this difference multiplies rounding errors by about |log G|: the error of log G is a few ulp. For u >= 1/2
there is more cancellation (G << S as u -> 1); there G_m/b is summed term by term, at most 43 positive terms.
Slope: while no threshold changes, G_m is linear in u, with the slope -m S_m. The threshold of m changes where u grows by g_m/m. So
one sweep also bounds the sum at larger u, by up to the smallest g_m/m (Ahead in _compound.pxd).
Truncation range: with tanh(l) = u and k = l u - log cosh(l), G_m <= e^(-k m)/(e l). So the sum outside m = lo..hi is at most
(1 - r + r e^-k)^n/(e l) times a tail of Bin(n, r'), r' = r e^-k/(1 - r + r e^-k). The terms are largest near the mean of
Bin(n, r'), which is far below n r for small delta; the range lies around that mean. The bound of the truncated sum is added to
the upper bound only.

Measured error, relative to delta, of the middle of the two bounds, less 4 ulp(log delta), and the gap between them
(tests/reference/measure_errors.py, clone bounds for 1..3e4 users, direct sums of the two laws at 500 bits):

    domain                       trials   peak      rms       gap: peak   rms
    delta >= 1e-30               855      3.7e-14   5.5e-15   3.7e-12     6.2e-13
    1e-300 <= delta < 1e-30      107      1.4e-14   1.7e-15   1.0e-11     3.2e-12
    below                        38       0         0         3.0e-11     1.5e-11
Returned error: twelve roundings a step of a block, 21 a step of parallel runs, the cancellation of the starting values and
          the stated errors of the kernels; the bounds are rounded conservatively.
Cost      about 4 ns a step (u < 1/2; 0.7 to 1.2 by eight parallel runs, sweep.h) or 60 ns (u >= 1/2), for 18 sigma of M steps.
          From 4000 steps on the contour integral is tried first (5 us at any n, .2 us where its secondary maxima forbid it).
          It is used if the gap of its bounds is below 1e-10 times 1 - log of the tilted mass (about 1 + |log delta|). From 1e4
          steps on up to 40 secondary maxima are integrated (5 us each); from 1e5 steps on a gap of 1e-9 is accepted, from 1e6
          on any gap.
Source    Feldman, McMillan, Talwar 2021 and 2023 for the pair; the sweep and the bounds are derived above.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, NAN, atanh, ceil, cosh, exp, expm1, fabs, floor, fmax, fmin, log, log1p, sqrt

from shufflebounds._core._binomial cimport c_binom_logcdf, c_binom_logpmf, c_binom_logsf, c_binom_tail_ratio
from shufflebounds._core._constants cimport TWO_53, UNIT
from shufflebounds._core._contour cimport c_log_sign_contour
from shufflebounds._core._special cimport c_deviance, c_log_add_exp
from shufflebounds._core._ufunc cimport ufunc_of_pairs

cdef extern from "arithmetic.h" nogil:
    Py_ssize_t whole(double x, Py_ssize_t low, Py_ssize_t high)

cdef extern from "sweep.h" nogil:
    const int SWEEP_RUNS

    ctypedef struct sweep_runs:
        double m[1]
        double a[1]
        double tail[1]
        double value[1]
        double log_scale[1]
        double sum[1]
        double moment[1]
        double gap[1]

    void sweep_down(sweep_runs *runs, int count, double n, double odds, double u, bint slopes)

cdef extern from *:
    """
    #define BLOCK 512                       /* steps between two starting values: more save time, and each adds 12 roundings */
    #define LONGEST_RUN 300                 /* steps of a parallel run, 21 roundings each: the error of a block of 512 steps */
    #define FEW_STEPS 600                   /* for fewer steps, eight starting values take longer than parallel runs save */
    #define RANGE 300.0                     /* b and the weights may change by e^RANGE within a block without underflow */
    #define WIDTH 9.0                       /* half width of the truncation range, in standard deviations of the number of clones */
    #define NEGLIGIBLE 1e-13                /* largest truncated part, relative to the sum */
    #define PATIENCE 65536                  /* binomial terms between two checks for signals */
    #define CLOSE 1e-10                     /* gap of the contour's bounds, over 1 - log of the tilted mass, that is accepted */
    #define FEW 4e3                         /* steps up to which a sweep is not slower than the contour */
    #define SOME 1e4                        /* steps above which secondary maxima are integrated, one per 3000 steps */
    #define PEAKS 40                        /* largest number of secondary maxima that are integrated */
    #define MANY 1e6                        /* steps above which any gap is accepted; with u >= 1/2 a step counts as 15 steps */
    #define TOO_MANY 1e8                    /* steps above which no sweep is run (more than 0.1 s) */
    """
    const int BLOCK
    const int LONGEST_RUN
    const double FEW_STEPS
    const double RANGE
    const double WIDTH
    const double NEGLIGIBLE
    const Py_ssize_t PATIENCE
    const double CLOSE
    const double FEW
    const double SOME
    const int PEAKS
    const double MANY
    const double TOO_MANY

cdef struct Line:
    double u        # in G_m = E[max(0, D - u m) | M = m] of the module's docstring
    double v        # 1 - u, accurate as u -> 1
    double rate     # of exponential decay: G_m <= e^(-rate m) times a constant


cdef inline double gap(double a, double m, Line *line) noexcept nogil:
    """Returns 2 a - m - u m."""
    return (2 * a - m) - line.u * m if line.u <= 0.5 else line.v * m - 2 * (m - a)


cdef inline double threshold(double m, Line *line) noexcept nogil:
    """Returns the smallest a with gap > 0. Rounding may give its neighbour; the term at the boundary is then negligible."""
    if line.u <= 0.5:
        return floor(0.5 * (m + line.u * m)) + 1
    return m - (ceil(0.5 * line.v * m) - 1)


cdef inline double positive_series(double a, double m, double g) noexcept nogil:
    """Returns G_m/b_m(a) = sum_i (g + 2i) b_m(a+i)/b_m(a)."""
    cdef double term = 1, total = g, i = 0
    while a < m:
        term *= (m - a) / (a + 1)
        a += 1
        i += 2
        total += (g + i) * term
        if (g + i) * term < 1e-18 * total:
            break
    return total


cdef inline double seed(double a, double m, double g, Line *line, double *tail, double *error) noexcept nogil:
    """Returns G_m/b for u < 1/2, writes S/b to `tail` and adds the cancellation error to error[0]. Symbols: module docstring."""
    cdef double value
    tail[0] = c_binom_tail_ratio(a, m, 0.5, 0, 0.5, 0)
    value = a - line.u * m * tail[0]
    if value < 1e-8 * a:
        return positive_series(a, m, g)
    error[0] += 32 * UNIT * (a / value)
    return value


cdef double excess_block(double m, int count, Line *line, double *out, double *tails, double *least, double *error) noexcept nogil:
    """Writes out[i] = G_(m-i)/b, i = 0..count-1, and returns log b, b = b_m(tau). error[0]: bound of the relative error of all.

    For u < 1/2 also tails[i] = S_(m-i)/b, and least[0] falls to the smallest 2 tau - m - u m of the steps.
    """
    cdef double a = threshold(m, line), g = gap(a, m, line), b = 1, tail, value, step
    cdef double log_b = c_binom_logpmf(a, m, 0.5)
    cdef int i
    error[0] = 3e-14 + (8 * fabs(log_b) + 12 * count) * UNIT
    if line.u >= 0.5:
        for i in range(count):
            out[i] = b * positive_series(a, m, g)
            if i + 1 == count:
                break
            step = b * (2 * a / m)
            # The threshold of m - 1 is a - 1 if gap(a - 1, m - 1) > 0. The equivalent condition gap(a, m) > 1 - u would be decided
            # by rounding errors if 1 - u is small.
            g = gap(a - 1, m - 1, line)
            if g > 0:
                a -= 1
                b = step
            else:
                b *= 2 * (m - a) / m
                g = gap(a, m - 1, line)
            m -= 1
        return log_b
    value = seed(a, m, g, line, &tail, error)
    for i in range(count):
        out[i], tails[i] = value, tail
        least[0] = fmin(least[0], g)
        if i + 1 == count:
            break
        step = b * (2 * a / m)
        g = gap(a, m - 1, line)
        if g > 2:
            a -= 1
            g -= 2
            b = step
            tail += 0.5 * step
        else:
            b *= 2 * (m - a) / m
            tail -= 0.5 * step
        m -= 1
        value += line.u * tail - 0.5 * fabs(g - 1 - line.u) * step
    return log_b


cdef inline int block_length(double steps, double steepness) noexcept nogil:
    """Returns how many steps, 1..BLOCK, change a quantity by at most e^RANGE, if one step changes it by e^steepness."""
    return <int> whole(fmin(steps, fmin(BLOCK, 1 + floor(RANGE / (steepness + 1e-300)))), 1, BLOCK)


cdef inline double steepness(double m, double low, double n, double log_odds, Line *line) noexcept nogil:
    """Returns a bound of the change of the logarithm of a weight, or of G, in one step between low and m."""
    return fmax(line.rate, fmax(fabs(log(m / (n - m + 1)) + log_odds), fabs(log(low / (n - low + 1)) + log_odds)))


# d/du sum w_m G_m = -sum w_m m S_m as long as no threshold changes.
cdef struct Moment:
    double value        # log sum w_m m S_m
    double gap          # the smallest 2 tau - m - u m: with u' m - u m below it, u' has the same thresholds as u


cdef double side_by_side(double m, int count, double n, double rate, double odds, Line *line, Moment *moment,
                         double *error) noexcept nogil:
    """Returns log sum of Pr[Bin(n, rate) = i] G_i over SWEEP_RUNS parallel runs of count steps each, downward from m.

    The terms are also added to the moment, unless it is NULL.
    """
    cdef sweep_runs runs
    cdef double total = 0, firsts = 0, top = -INFINITY, a, log_b, log_weight, own
    cdef int j
    for j in range(SWEEP_RUNS):
        a = threshold(m, line)
        log_b = c_binom_logpmf(a, m, 0.5)
        log_weight = c_binom_logpmf(m, n, rate)
        own = 6e-14 + (8 * (fabs(log_b) + fabs(log_weight)) + 21 * count) * UNIT
        runs.m[j], runs.a[j] = m, a
        runs.value[j] = seed(a, m, gap(a, m, line), line, &runs.tail[j], &own)
        runs.log_scale[j] = log_b + log_weight
        top = fmax(top, runs.log_scale[j])
        error[0] = fmax(error[0], own)
        m -= count
    sweep_down(&runs, count, n, odds, line.u, moment != NULL)
    for j in range(SWEEP_RUNS):
        own = exp(runs.log_scale[j] - top)
        total += own * runs.sum[j]
        if moment != NULL:
            firsts += own * runs.moment[j]
            moment.gap = fmin(moment.gap, runs.gap[j])
    if moment != NULL:
        moment.value = c_log_add_exp(moment.value, top + log(firsts))
    return top + log(total)


cdef double window_sum(double n, double rate, double lo, double hi, Line *line, Moment *moment, double *error) noexcept nogil:
    """Returns log sum_(m = lo..hi) Pr[Bin(n, rate) = m] G_m, a bound of its absolute error, and its moment, unless that is NULL."""
    cdef double out[BLOCK]
    cdef double tails[BLOCK]
    cdef double total = -INFINITY, m = hi, partial, firsts, least = INFINITY, weight, scale, log_weight, worst = 0, steep
    # The odds stay finite for rates below 1e-300. They are not used there, because a block has only one step.
    cdef double odds = (1 - rate) / fmax(rate, 1e-300)
    # a compiler may evaluate this logarithm also at rate = 1, where it is not used; log(0) would raise a floating-point flag
    cdef double log_odds = log(odds if odds > 0 else 1)
    cdef int count, i
    while line.u < 0.5 and rate < 1 and m - lo >= FEW_STEPS:
        steep = steepness(m, fmax(lo, m - SWEEP_RUNS * LONGEST_RUN), n, log_odds, line)
        # n - m + 1 at most doubles, which keeps the product of its values in range
        count = min(LONGEST_RUN, block_length(fmin((m - lo + 1) / SWEEP_RUNS, n - m + 1), steep))
        if count < 64:
            break
        total = c_log_add_exp(total, side_by_side(m, count, n, rate, odds, line, moment, &worst))
        m -= SWEEP_RUNS * count
    while m >= lo:
        steep = steepness(m, fmax(lo, m - BLOCK), n, log_odds, line) if rate < 1 else fmax(RANGE, line.rate)
        count = block_length(m - lo + 1, steep)
        scale = excess_block(m, count, line, out, tails, &least, error)
        log_weight = c_binom_logpmf(m, n, rate)
        worst = fmax(worst, error[0] + 3e-14 + 8 * UNIT * fabs(log_weight))
        weight = 1
        partial = firsts = 0
        for i in range(count):
            partial += weight * out[i]
            if moment != NULL:
                firsts += weight * tails[i] * m
            m -= 1
            if i + 1 < count:
                weight *= (m + 1) * odds / (n - m)
        total = c_log_add_exp(total, scale + log_weight + log(partial))
        if moment != NULL:
            moment.value = c_log_add_exp(moment.value, scale + log_weight + log(firsts))
    if moment != NULL:
        moment.gap = fmin(moment.gap, least)
    error[0] = worst
    return total


cdef inline Line make_line(double u, double v) noexcept nogil:
    cdef Line line
    line.u = u
    line.v = v
    line.rate = 0.5 * (c_deviance(1 + u, 1, u) + c_deviance(v, 1, -u)) if u > 0 else 0
    return line

cdef struct Window:
    double mean         # of the number of clones under the tilted distribution
    double sigma
    double tilted       # r', the tilted probability of a clone
    double log_mass     # n log(1 - r + r e^-k), the mass of the tilted distribution
    double bound        # log of the factor of a tail of the tilted distribution in the bound of the truncated sum
    Line line


cdef inline Window make_window(double n, double rate, double u, double v) noexcept nogil:
    cdef Window w
    # Every tilt l > 0 gives a valid bound with the factor 1/l, so a tilt below 1/sqrt(n rate), as at u = 0, is replaced by
    # 1/sqrt(n rate).
    cdef double tilt = atanh(u) if u <= 0.5 else 0.5 * (log(1 + u) - log(v)), decay, shrink
    w.line = make_line(u, v)
    decay = w.line.rate
    if tilt < 1 / sqrt(n * rate + 1):
        tilt = 1 / sqrt(n * rate + 1)
        decay = tilt * u - log(cosh(tilt))
    shrink = rate * expm1(-decay)
    w.tilted = fmin(1, rate * exp(-decay) / (1 + shrink))
    w.mean = n * w.tilted
    w.sigma = sqrt(w.mean * (1 - w.tilted))
    w.log_mass = n * log1p(shrink)
    w.bound = w.log_mass - log(tilt) - 1
    w.bound += 1e-9 + 16 * UNIT * fabs(w.bound)
    return w


cdef void sweep(double n, double rate, Window *w, double *lower, double *upper, Ahead *ahead) noexcept nogil:
    """Writes bounds from the sum over a truncation range that is wide enough to make the bound of the truncated sum negligible."""
    cdef double lo, hi, inside, outside, error, width = WIDTH
    cdef Moment moment
    cdef Moment *wanted = &moment if ahead != NULL and w.line.u < 0.5 else NULL
    while True:
        moment.value, moment.gap = -INFINITY, INFINITY
        lo = fmax(1, floor(w.mean - width * w.sigma))
        hi = fmin(n, ceil(w.mean + width * w.sigma + width * width / 2))
        inside = window_sum(n, rate, lo, hi, &w.line, wanted, &error)
        outside = w.bound + c_log_add_exp(c_binom_logcdf(lo - 1, n, w.tilted) if lo > 1 else -INFINITY,
                                          c_binom_logsf(hi, n, w.tilted))
        if outside < inside + log(NEGLIGIBLE) or (lo == 1 and hi == n):
            break
        width *= 1.25
    # relative errors of UNIT in rate and u change the sum by a relative error of a few UNIT |log sum|
    error += 16 * UNIT * fabs(inside)
    lower[0] = inside - error
    upper[0] = (c_log_add_exp(inside, outside) if lo > 1 or hi < n else inside) + error
    if wanted != NULL:
        # The terms outside the range decrease in u: without them the moment is a lower bound. S has fewer roundings than G. The
        # gap has 3 a step of a run, of numbers up to 4, and those of its start.
        ahead.pull = exp(moment.value - error - upper[0])
        ahead.still = w.line.u + (moment.gap - 8 * UNIT * (BLOCK + hi)) / hi


cdef void c_log_sign_ahead(double n, double rate, double u, double v, double *lower, double *upper, Ahead *ahead) noexcept nogil:
    cdef Window w
    cdef double error, steps
    if ahead != NULL:
        ahead.pull = ahead.still = 0
    if v * n <= 2:
        # Here n v <= 2, so D - u M > 0 only if all M signs are +1. Then D - u M = v M, and E[max(0, D - u M)] = v E[M 2^-M].
        lower[0] = log(v) + log(0.5 * n * rate) + (n - 1) * log1p(-0.5 * rate)
        error = 8 * UNIT * (fabs(log(v)) + fabs(log(0.5 * n * rate)) + (1 - n) * log1p(-0.5 * rate) + 1)
        upper[0] = lower[0] + error
        lower[0] -= error
        return
    w = make_window(n, rate, u, v)
    steps = fmin(n, 2 * WIDTH * w.sigma) * (1 if u < 0.5 else 15)
    error = CLOSE * (1 - w.log_mass)
    if steps > FEW:
        if c_log_sign_contour(n, rate, u, v, 0, error, lower, upper) and upper[0] - lower[0] <= error:
            return
        # The more steps a sweep would take, the larger the accepted gap (Cost in the header). Integrating one secondary maximum
        # takes as long as about 2000 sweep steps.
        error *= 1 if steps <= 1e5 else 10 if steps <= MANY else 1e300
        if (steps > SOME and c_log_sign_contour(n, rate, u, v, <int> whole(fmin(PEAKS, steps / 3000), 0, 100), error, lower, upper)
                and upper[0] - lower[0] <= error):
            return
    if steps > TOO_MANY:
        # Here a sweep would take more than 0.1 s, and log delta is below about -1e11. The upper bound is that of the tail, the
        # lower bound the sum over 1024 terms next to the tilted mean. The gap is about 30 in log delta.
        lower[0] = window_sum(n, rate, fmax(1, floor(w.mean) - BLOCK), fmin(n, floor(w.mean) + BLOCK), &w.line, NULL, &error)
        lower[0] -= error + 16 * UNIT * fabs(lower[0])
        upper[0] = fmax(w.bound, lower[0])
        return
    sweep(n, rate, &w, lower, upper, ahead)


cdef void c_log_sign_excess(double n, double rate, double u, double v, double *lower, double *upper) noexcept nogil:
    c_log_sign_ahead(n, rate, u, v, lower, upper, NULL)


cdef double c_log_weighted_excess(double first, const double *log_weights, Py_ssize_t count,
                                  double u, double v, double *error) noexcept nogil:
    cdef Line line = make_line(u, v)
    cdef double out[BLOCK]
    cdef double tails[BLOCK]
    cdef double total = -INFINITY, m, scale, partial, top, least = 0, worst = 0
    cdef Py_ssize_t last = count
    cdef int length, i
    while last > 0:
        length = block_length(last, line.rate)
        m = first + last
        scale = excess_block(m, length, &line, out, tails, &least, error)
        worst = fmax(worst, error[0])
        top = -INFINITY
        for i in range(length):
            top = fmax(top, log_weights[last - 1 - i])
        partial = 0
        if top > -INFINITY:
            for i in range(length):
                partial += exp(log_weights[last - 1 - i] - top) * out[i] / (m - i)
            total = c_log_add_exp(total, scale + top + log(partial))
        last -= length
    error[0] = worst + 16 * UNIT * fabs(total)
    return total


cdef inline bint out_of_range(double n, double rate, double u, double v) noexcept nogil:
    return not (n == n and rate == rate and u == u and v == v and 1 <= n <= TWO_53 and n == floor(n)
                and 0 < rate <= 1 and 0 <= u <= 1 and 0 <= v <= 1)


cdef void each_sign_excess(const double *x, double *sides) noexcept nogil:
    sides[0] = sides[1] = NAN
    if out_of_range(x[0], x[1], x[2], x[3]):
        return
    if x[3] == 0:
        sides[0] = sides[1] = -INFINITY
        return
    c_log_sign_excess(x[0], x[1], x[2], x[3], sides, sides + 1)


cdef void each_sign_ahead(const double *x, double *both) noexcept nogil:
    cdef Ahead ahead
    cdef double lower, upper
    both[0] = both[1] = NAN
    if out_of_range(x[0], x[1], x[2], x[3]) or x[3] == 0:
        return
    c_log_sign_ahead(x[0], x[1], x[2], x[3], &lower, &upper, &ahead)
    both[0], both[1] = ahead.pull, ahead.still


cdef void each_sign_sweep(const double *x, double *sides) noexcept nogil:
    cdef Window w
    sides[0] = sides[1] = NAN
    if out_of_range(x[0], x[1], x[2], x[3]) or x[3] == 0:
        return
    w = make_window(x[0], x[1], x[2], x[3])
    sweep(x[0], x[1], &w, sides, sides + 1, NULL)


log_sign_excess = ufunc_of_pairs(
    <void *> each_sign_excess,
    "log_sign_excess(n, rate, u, v) -> (lower, upper): bounds of log E[max(0, D - u M)], M ~ Bin(n, rate), v = 1 - u.")
log_sign_ahead = ufunc_of_pairs(
    <void *> each_sign_ahead,
    "log_sign_ahead(n, rate, u, v) -> (pull, still) of Ahead in _compound.pxd, for tests.")
log_sign_sweep = ufunc_of_pairs(
    <void *> each_sign_sweep,
    "log_sign_sweep(n, rate, u, v): the same bounds by the sweep at any n; the contour integral is tested against it.")


def log_weighted_excess(double first, const double[::1] log_weights, double u, double v):
    """Return log sum_i exp(log_weights[i]) G_m/m at m = first + i + 1, and a bound of its absolute error."""
    cdef double error = 0, value
    cdef Py_ssize_t count = log_weights.shape[0]
    if count == 0:
        raise ValueError("log_weights must not be empty")
    with nogil:
        value = c_log_weighted_excess(first, &log_weights[0], count, u, v, &error)
    return value, error


cdef double c_compound_log(int kind, double k, double first, const double *log_weights, Py_ssize_t count,
                           double p) noexcept nogil:
    """Returns log Pr[X = k] (kind 0), log Pr[X <= k] (1) or log Pr[X > k] (2), X ~ Bin(S, p), Pr[S = first + i] = e^log_weights[i].

    All terms are positive and relatively accurate. Terms below e^-50 of the largest so far are dropped: they are below
    the rounding error of the sum.
    """
    cdef double top = -INFINITY, total = 0, term
    cdef Py_ssize_t i
    for i in range(count):
        if log_weights[i] < top - 50:
            continue
        if kind == 0:
            term = c_binom_logpmf(k, first + i, p)
        elif kind == 1:
            term = c_binom_logcdf(k, first + i, p)
        else:
            term = c_binom_logsf(k, first + i, p)
        term += log_weights[i]
        if term > top:
            total = total * exp(top - term) + 1
            top = term
        elif term > top - 50:
            total += exp(term - top)
    return top + log(total) if total > 0 else -INFINITY


def compound_binom(int kind, const double[::1] k, double first, const double[::1] log_weights, double p, double[::1] out):
    """Fill out with c_compound_log at every k, and check for signals every few milliseconds."""
    cdef Py_ssize_t i, start = 0, count = log_weights.shape[0], block = max(1, PATIENCE // max(1, count))
    while start < k.shape[0]:
        with nogil:
            for i in range(start, min(k.shape[0], start + block)):
                out[i] = c_compound_log(kind, k[i], first, &log_weights[0], count, p)
        start += block
        PyErr_CheckSignals()
