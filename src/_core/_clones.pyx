"""Clone bounds of deployments: delta(eps) and eps(delta) of one, and loops over arrays of them.

Layer: kernels ``cdef ... c_...(...) noexcept nogil`` (declared in _clones.pxd, which says what the caller has checked), and
functions on memoryviews that give up the interpreter's lock and look for signals between blocks.

Definition. w = 1/(e^l + 1) for a target of pure budget l (w = 0 for l = inf), C ~ Bin(n - 1, r) clones:
    delta(eps) = tanh(l/2) (1 + e^eps) E[max(0, D - u M)]/(n r),   M ~ Bin(n, r),   D a sum of M random signs,
    u = tanh(eps/2)/tanh(l/2),   v = 1 - u = sinh((l - eps)/2)/(sinh(l/2) cosh(eps/2)),
the expectation by _compound.pyx, at a cost free of n where that is large. l - eps is exact near the budget, and v is formed
from it, so that delta falls to 0 with full relative accuracy. For n v <= 2 one user on the other side ends it:
    delta(eps) = (1 - e^(eps - l)) (1 - r/2)^(n-1)/(1 + e^-l).

eps(delta). An estimate of log delta (a normal law about the tilted mean, a constant off) is solved, its offset is measured by
the kernel, where that is dear by the middle of the contour integral, and it is solved again with the offset extended as a
straight line. The last evaluations are those of the side asked for, each time a step outward by the rest, until it holds; a
bracket keeps every step, and cuts where the estimate leads nowhere. Where one user on the other side ends it, eps has a form.

Returned error, taken outward: that of _compound.pyx, and some ulp of every logarithm that is added to it.
Cost      3 to 18 us a value of delta; an epsilon takes 4 of them at n = 1e2..1e4, two or three, found by two contours, from 1e5
          on: 20 to 37 us, 31 in the mean over n = 1e2..1e8, budgets .1..6, delta 1e-12..1e-5
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, atanh, exp, expm1, fabs, fmax, fmin, log, log1p, nextafter, sinh, sqrt, tanh

from shufflebounds._core._compound cimport c_log_sign_excess
from shufflebounds._core._contour cimport c_log_sign_contour
from shufflebounds._core._special cimport c_log_add_exp, c_mills_ratio

cdef extern from *:
    """
    #define UNIT 1.1102230246251565e-16     /* the unit roundoff */
    #define BLOCK 64                        /* answers between two looks for signals, some 2 ms */
    #define CLOSE 3e-13                     /* of eps: of it an answer may lie beyond the crossing */
    #define DEAR 2e4                        /* variance of the number of clones: from here the sweep is dearer than the contour */
    #define BEYOND 1500.0                   /* an eps where 2^53 e^-eps is nothing */
    #define EXP_SLACK 8.881784197001252e-16 /* what delta() adds on the way back from the logarithm */
    """
    const double UNIT
    const int BLOCK
    const double CLOSE
    const double DEAR
    const double BEYOND
    const double EXP_SLACK


cdef struct Pair:
    double users
    double rate
    double local
    double log_factor       # log tanh(local/2) - log(users rate)


cdef double c_clone_rate(double local, bint stronger) noexcept nogil:
    return 2 * exp(-local) / (1 + exp(-local)) if stronger else exp(-local)


cdef inline Pair make_pair(double users, double rate, double local) noexcept nogil:
    cdef Pair pair
    pair.users, pair.rate, pair.local = users, rate, local
    pair.log_factor = (log(tanh(0.5 * local)) if local > 1e-8 else log(local) - 0.6931471805599453) - log(users) - log(rate)
    return pair


cdef inline void slopes(double eps, Pair *pair, double *u, double *v) noexcept nogil:
    cdef double local = pair.local
    if local < 1e-8:
        # also where half of it is no double
        u[0] = eps / local
        v[0] = (local - eps) / local
        return
    u[0] = fmin(1.0, tanh(0.5 * eps) / tanh(0.5 * local))
    v[0] = fmin(1.0, 2 * exp(-eps) * -expm1(eps - local) / ((1 + exp(-eps)) * -expm1(-local)))


cdef inline double edge(double eps, Pair *pair, double *error) noexcept nogil:
    """log delta where users v <= 2."""
    cdef double gap = pair.local - eps, part = -log1p(exp(-pair.local)), others = (pair.users - 1) * log1p(-0.5 * pair.rate)
    gap = log(-expm1(-gap))
    error[0] = 4 * UNIT * (fabs(gap) + 4 * fabs(others) + 2)
    return gap + part + others


cdef void log_delta(double eps, Pair *pair, double *lower, double *upper) noexcept nogil:
    cdef double u, v, factor, slack
    if eps >= pair.local:
        lower[0] = upper[0] = -INFINITY
        return
    slopes(eps, pair, &u, &v)
    if pair.users * v <= 2:
        factor = edge(eps, pair, &slack)
        lower[0] = factor - slack
        upper[0] = fmin(0, factor + slack)
        return
    c_log_sign_excess(pair.users, pair.rate, u, v, lower, upper)
    factor = pair.log_factor + c_log_add_exp(0, eps)
    slack = 8 * UNIT * (fabs(pair.log_factor) + eps + fabs(upper[0]) + 1)
    lower[0] += factor - slack
    upper[0] = fmin(0, upper[0] + (factor + slack))


cdef void c_clone_log_delta(double users, double rate, double local, double eps, double *lower, double *upper) noexcept nogil:
    cdef Pair pair = make_pair(users, rate, local)
    log_delta(eps, &pair, lower, upper)


cdef inline double side(double eps, Pair *pair, bint upper) noexcept nogil:
    cdef double low, high
    log_delta(eps, pair, &low, &high)
    return high if upper else low


cdef double centre(double eps, Pair *pair) noexcept nogil:
    """log delta within a few parts in a thousand of delta, and much less from 1e5 clones on, by the contour where it serves."""
    cdef double u, v, low, high
    if eps >= pair.local:
        return -INFINITY
    slopes(eps, pair, &u, &v)
    if pair.users * v > 2 and c_log_sign_contour(pair.users, pair.rate, u, v, 0, 0, &low, &high) and low > -INFINITY:
        return fmin(0, 0.5 * (low + high) + pair.log_factor + c_log_add_exp(0, eps))
    log_delta(eps, pair, &low, &high)
    return 0.5 * (low + high)


cdef double estimate(double eps, Pair *pair) noexcept nogil:
    """log delta, roughly, as if the number of messages on the other side were normal: smooth to the edge."""
    cdef double u, v, tilt, half, weight, moved, mean, x
    if eps >= pair.local:
        return -INFINITY
    slopes(eps, pair, &u, &v)
    if u <= 0.5:
        tilt = atanh(u)
        half = sinh(0.5 * tilt)
        weight = log1p(2 * half * half) - u * tilt
    else:
        tilt = 0.5 * (log1p(u) - log(v))
        weight = v * tilt - 0.6931471805599453 + log1p(exp(-2 * tilt))
    moved = pair.rate * expm1(weight)
    mean = pair.users * pair.rate * exp(weight) / (1 + moved)
    x = tilt * sqrt(mean * v * (1 + u))
    # E max(0, S) of a normal S: x M(x) falls short of 1 by 1/x^2, M Mills' ratio
    x = 1 - x * c_mills_ratio(x) if x < 40 else 1 / (x * x + 3)
    return (pair.users * log1p(moved) + 0.5 * log(mean * v * (1 + u) + 1e-300) - 0.91893853320467274 + log(x)
            + pair.log_factor + c_log_add_exp(0, eps))


cdef inline double depth(double value) noexcept nogil:
    """A scale on which log delta is nearly straight in eps."""
    return sqrt(fmax(0, -value))


cdef struct Line:
    double offset       # of the estimate: estimate(eps) - offset - rise (eps - about) stands for log delta
    double rise
    double about
    double seen         # the estimate there


cdef inline double beyond(double eps, double goal, Line *line, Pair *pair) noexcept nogil:
    """The depth of the corrected estimate, less the depth that is looked for."""
    return depth(fmax(-1e300, estimate(eps, pair) - line.offset - line.rise * (eps - line.about))) - goal


cdef inline double guess(double target, Pair *pair) noexcept nogil:
    """An eps from which to look for that of the estimate, 0 where none is at hand: a normal law about the number of clones."""
    cdef double mean = pair.users * pair.rate, depth = pair.log_factor + 0.5 * log(mean) - target - 0.23, x
    if not depth > 0.5:
        return 0
    # depth = x^2/2 - log(1 - x M(x))
    x = sqrt(2 * depth)
    x = sqrt(fmax(0.5, 2 * (depth - log1p(1.25 * x + x * x))))
    x = sqrt(fmax(0.5, 2 * (depth - log1p(1.25 * x + x * x)))) / sqrt(mean)
    return 2 * atanh(x * tanh(0.5 * pair.local)) if x < 0.7 else 0


cdef double solve_estimate(double target, double start, Line *line, Pair *pair) noexcept nogil:
    """An eps in 0..local at which the corrected estimate is target, to 1e-13 of it; before it is corrected, to 1e-5."""
    cdef double goal = depth(target), a = 0, b = pair.local, fa, fb, eps, value, close = 1e-13 if line.about > 0 else 1e-5
    cdef int i, stay = 0
    if start > 0:
        # secant steps from a start that is nearly right
        a, b = start, fmin(start * (1 + 1e-4), start + 0.5 * (pair.local - start))
        fa, fb = beyond(a, goal, line, pair), beyond(b, goal, line, pair)
        for _ in range(6):
            eps = b - fb * (b - a) / (fb - fa)
            if not 0.5 * start < eps < fmin(2 * start, pair.local):
                break
            if fabs(eps - b) <= close * eps:
                return eps
            a, fa = b, fb
            b, fb = eps, beyond(eps, goal, line, pair)
        a, b = 0, pair.local
    fa = beyond(a, goal, line, pair)
    if fa >= 0:
        return a
    if b == INFINITY:
        b = 0.05
        while beyond(b, goal, line, pair) < 0 and b < 1e4:
            b *= 2
    fb = fmin(beyond(b, goal, line, pair), 1e3 + 2 * goal)
    if fb <= 0:
        return b
    for i in range(80):
        eps = a - fa * (b - a) / (fb - fa)
        # a false position that stays on one side twice is cut in half (Illinois), or the bracket is
        if not a < eps < b or i % 8 == 7:
            eps = 0.5 * (a + b)
        value = beyond(eps, goal, line, pair)
        if value < 0:
            if stay == -1:
                fb *= 0.5
            stay = -1
            a, fa = eps, value
        else:
            if stay == 1:
                fa *= 0.5
            stay = 1
            b, fb = eps, value
        if b - a <= close * b or fabs(value) <= close * (1 + goal):
            break
    return eps


cdef inline void correct(double eps, double value, Line *line, Pair *pair) noexcept nogil:
    """Take in the value of log delta at eps."""
    cdef double seen = estimate(eps, pair), offset = seen - value
    line.rise = 0
    # where the estimate tells something of the change
    if line.about > 0 and -4 < (offset - line.offset) / (seen - line.seen) < 0.75:
        line.rise = (offset - line.offset) / (eps - line.about)
    line.offset, line.seen, line.about = offset, seen, eps


cdef inline double level(double delta, bint upper) noexcept nogil:
    """The log delta that an answer has to meet: past delta by what delta() adds on the way back from the logarithm."""
    cdef double outward = -1 if upper else 1, reach
    reach = delta * (1 + outward * 4 * EXP_SLACK) + outward * 1e-323
    return fmin(0, nextafter(log(reach), outward * INFINITY)) if reach > 0 else -746.0


cdef double last_positive(Pair *pair) noexcept nogil:
    """An eps with positive lower delta next below the budget."""
    cdef double eps = nextafter(pair.local, 0), step = 4 * UNIT, low, high
    log_delta(eps, pair, &low, &high)
    while low == -INFINITY and eps > 0:
        eps = fmax(0, eps - pair.local * step)
        step *= 2
        log_delta(eps, pair, &low, &high)
    return eps


cdef double near(double target, Line *line, Pair *pair) noexcept nogil:
    """An eps with centre(eps) = target, nearly, in 0..local; line is left corrected by what was seen."""
    cdef double value, before, eps = solve_estimate(target, guess(target, pair), line, pair)
    for _ in range(4):
        if not 0 < eps < pair.local:
            break
        value = centre(eps, pair)
        if value == -INFINITY:
            break
        correct(eps, value, line, pair)
        before = eps
        eps = solve_estimate(target, eps, line, pair)
        if fabs(eps - before) <= 1e-6 * eps:
            break
    return eps


cdef inline double edge_of(double target, Pair *pair) noexcept nogil:
    """The eps at which one user on the other side makes log delta the target, 0 where more count."""
    cdef double u, v, error, gap = target - edge(0, pair, &error) + log(-expm1(-pair.local))
    if not (gap < 0 and pair.local < INFINITY):
        return 0
    gap = pair.local + log1p(-exp(gap))
    if not 0 < gap < pair.local:
        return 0
    slopes(gap, pair, &u, &v)
    return gap if pair.users * v <= 2 else 0


cdef inline double pushed(double eps, double push, bint upper, Pair *pair) noexcept nogil:
    """eps, moved outward."""
    cdef double moved = fmin(eps, pair.local - eps) * push
    return fmax(eps + moved, nextafter(eps, INFINITY)) if upper else fmin(eps - moved, nextafter(eps, 0))


cdef double c_clone_epsilon(double users, double rate, double local, double delta, bint upper) noexcept nogil:
    cdef Pair pair = make_pair(users, rate, local)
    cdef Line line
    cdef double target, eps, trial, value, low = 0, high = local, slope, step, rest = INFINITY, before, push = 0.5 * CLOSE
    cdef double at_low = 0, at_high = 0, beyond_it
    cdef int i, stay = 0
    line.offset = line.rise = line.about = line.seen = 0
    if delta == 0:
        return local if upper or local == INFINITY else last_positive(&pair)
    if delta >= 1:
        return 0
    target = level(delta, upper)
    # the value at 0, where the sweep is dear, only if the estimate leaves it open
    if (users * rate < 100 or estimate(0, &pair) < target + 1 + 0.1 * fabs(target)) and side(0, &pair, upper) <= target:
        return 0
    # without a budget delta falls to the chance that nobody hides the target, and no further
    if local == INFINITY and side(BEYOND, &pair, upper) > target:
        return INFINITY
    eps = edge_of(target, &pair)
    if eps > 0:
        pass
    elif users * rate * (1 - rate) > DEAR:
        eps = near(target, &line, &pair)
    else:
        eps = solve_estimate(target, guess(target, &pair), &line, &pair)
    eps = pushed(eps, push, upper, &pair)
    for i in range(200):
        if not low < eps < high:
            eps = 0.5 * (low + high) if high < INFINITY else 2 * low + 0.01
            if not low < eps < high:
                break
        value = side(eps, &pair, upper)
        beyond_it = depth(fmax(value, -1e300)) - depth(target)
        # the end that stays twice counts half (Illinois)
        if (value <= target) if upper else (value < target):
            at_low *= 0.5 if stay == 1 else 1
            high, at_high, stay = eps, fmax(beyond_it, 1e-300), 1
        else:
            at_high *= 0.5 if stay == -1 else 1
            low, at_low, stay = eps, fmin(beyond_it, -1e-300), -1
        if high < INFINITY and high - low <= CLOSE * high:
            break
        # rest: how far eps lies beyond the crossing, by the slope of the estimate
        step = 1e-4 * fmin(eps, local - eps)
        slope = (estimate(eps + step, &pair) - estimate(eps - step, &pair)) / (2 * step) - line.rise if step > 0 else 0
        before, rest = rest, (value - target) / slope if slope < 0 and value > -INFINITY else INFINITY
        if 0 <= (rest if upper else -rest) <= fmax(CLOSE, 2 * push) * eps:
            break
        if fabs(rest) > 1e-8 * eps and value > -INFINITY:
            correct(eps, value, &line, &pair)
            trial = solve_estimate(target, eps, &line, &pair)
        else:
            trial = eps - rest
            # rounding may hold the side back: further out every time
            push *= 1.5
        if i > 20 or not low < trial < high or (i > 1 and fabs(rest) > fmax(0.5 * fabs(before), 1e-8 * eps)):
            # no slope, or one that leads nowhere
            trial = low - at_low * (high - low) / (at_high - at_low) if at_low < 0 < at_high < INFINITY and i % 8 < 6 else 0
        eps = pushed(trial, push, upper, &pair)
    # high and low were evaluated, but for the ends of the range, where delta is 0 and above the target
    return high if upper else low


def clone_rate(double local, bint stronger):
    """Return the chance that another user's message is a clone."""
    return c_clone_rate(local, stronger)


def clone_epsilon(double users, double rate, double local, double delta, bint upper):
    """Return a side of epsilon of one deployment."""
    cdef double eps
    with nogil:
        eps = c_clone_epsilon(users, rate, local, delta, upper)
    return eps


def rates(const double[::1] local, bint stronger, double[::1] out):
    """Fill out with clone_rate at every budget."""
    cdef Py_ssize_t i
    with nogil:
        for i in range(local.shape[0]):
            out[i] = c_clone_rate(local[i], stronger)


def clones_log_delta(const double[::1] users, const double[::1] rates, const double[::1] local, const double[::1] eps,
                     double[::1] lower, double[::1] upper):
    """Fill lower and upper with the sides of log delta, deployment by deployment."""
    cdef Py_ssize_t i, first = 0, count = users.shape[0]
    while first < count:
        with nogil:
            for i in range(first, min(count, first + BLOCK)):
                c_clone_log_delta(users[i], rates[i], local[i], eps[i], &lower[i], &upper[i])
        first += BLOCK
        PyErr_CheckSignals()


def clones_epsilon(const double[::1] users, const double[::1] rates, const double[::1] local, const double[::1] delta,
                   bint upper, double[::1] out):
    """Fill out with a side of epsilon, deployment by deployment."""
    cdef Py_ssize_t i, first = 0, count = users.shape[0]
    while first < count:
        with nogil:
            for i in range(first, min(count, first + BLOCK)):
                out[i] = c_clone_epsilon(users[i], rates[i], local[i], delta[i], upper)
        first += BLOCK
        PyErr_CheckSignals()
