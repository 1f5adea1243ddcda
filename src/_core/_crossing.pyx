"""eps(delta) by a search on compiled functions for log delta(eps), shared by the loops over arrays of deployments.

Layer: ``c_crossing`` and ``c_level``, noexcept nogil, declared in _crossing.pxd, which says what the caller has checked.

Method. First, the search finds the eps at which a smooth approximation of log delta equals the target. There the difference between
the approximation and log delta (the approximate middle of the bounds, or the requested bound) is measured. If the crossing is near,
its distance follows from the slope and the second derivative of the approximation; once two values of log delta are known, the
slope through them replaces the approximate one. Otherwise the approximation, corrected by this offset and a slope in eps, is
solved again. The last steps evaluate the requested bound: each step moves eps by the estimated remaining distance to the
conservative end, until the bound meets the target. A bracket is kept throughout, and is bisected where the estimate does not lead
to the crossing. The approximation is solved in terms of sqrt(-log delta), which is nearly linear in eps.
Where a curve tells the slope of its bound (`ahead`), the step is Newton's. delta is convex in e^eps, and linear between the
likelihood ratios of the two laws: the first evaluation is made a little below the crossing, and if no ratio lies between, no second
is needed.

Guarantee the requested bound of delta meets the target at the returned eps: it was evaluated there or follows from an evaluation
          (`ahead`), except where the returned eps is an end of the range: 0, or pure, at which delta is 0.
Measured error   the search adds no error of its own: both bounds of eps are evaluated. Relative gap of the two bounds of eps, for
          random deployments, 10 to 1e12 users or trials, delta 0.1 to 1e-40 (clones: it is the gap of the contour, _contour.pyx)
                                          trials   median   peak
          clones                          19150    3.0e-13  1.4e-8
          binomial noise                  16545    4.8e-13  2.2e-11
Cost      one to four evaluations of a bound and seven of the approximate curve where it is good, at most 200
"""

from libc.math cimport INFINITY, fabs, fmax, fmin, log, nextafter, sqrt

from shufflebounds._core._constants cimport UNIT

cdef extern from *:
    """
    #define EXP_SLACK 8.881784197001252e-16 /* relative rounding allowance that delta() adds in exp(log delta) */
    #define NEAR 1e-3                       /* relative step up to which a second-order expansion of log delta is used */
    #define FAR 1e-8                        /* relative distance up to which two values are too close for a slope between them */
    """
    const double EXP_SLACK
    const double NEAR
    const double FAR


cdef inline double depth(double value) noexcept nogil:
    """Returns sqrt(-log delta), which is nearly linear in eps."""
    return sqrt(fmax(0, -value))


# Linear correction of the approximation: log delta is taken to be rough(eps) - offset - rise (eps - about). It is updated after
# each exact value.
cdef struct Line:
    double offset
    double rise
    double about        # the eps of the last correction, 0 before the first
    double seen         # rough(about)
    # the approximation's slope and second derivative at `centre`, and the ratio of the slope of log delta to its slope
    double centre
    double slope
    double bend
    double ratio
    double last         # the last eps with a known log delta, and that value; 0 before the first
    double value


cdef inline double beyond(double eps, double goal, const Line *line, const Curve *curve) noexcept nogil:
    """Returns sqrt(-log) of the corrected approximate curve at eps, minus its value `goal` at the target."""
    return depth(fmax(-1e300, curve.rough(eps, curve.law) - line.offset - line.rise * (eps - line.about))) - goal


cdef double solve_rough(double target, double start, const Line *line, const Curve *curve) noexcept nogil:
    """Returns the eps in 0..pure where the corrected curve meets the target, to a relative close/3.

    Before a correction, to at most 1e-5.
    """
    cdef double goal = depth(target), a = 0, b = curve.pure, fa, fb, eps, value
    # a step of this length leaves an error of about its square
    cdef double close = curve.close / 3 if line.about > 0 else fmin(1e-5, sqrt(curve.miss))
    cdef int i, stay = 0
    if start > 0:
        # secant steps from a start close to the solution
        a, b = start, fmin(start + 1e-4 * fmin(start, curve.span), start + 0.5 * (curve.pure - start))
        fa, fb = beyond(a, goal, line, curve), beyond(b, goal, line, curve)
        for _ in range(6):
            eps = b - fb * (b - a) / (fb - fa)
            if not 0.5 * start < eps < fmin(2 * start, curve.pure):
                break
            if fabs(eps - b) <= close * eps:
                return eps
            a, fa = b, fb
            b, fb = eps, beyond(eps, goal, line, curve)
        a, b = 0, curve.pure
    fa = beyond(a, goal, line, curve)
    if fa >= 0:
        return a
    if b == INFINITY:
        b = 0.05
        while beyond(b, goal, line, curve) < 0 and b < 1e4:
            b *= 2
    fb = fmin(beyond(b, goal, line, curve), 1e3 + 2 * goal)
    if fb <= 0:
        return b
    for i in range(80):
        eps = a - fa * (b - a) / (fb - fa)
        # false position with the Illinois rule (an end kept twice counts half); every eighth step bisects
        if not a < eps < b or i % 8 == 7:
            eps = 0.5 * (a + b)
        value = beyond(eps, goal, line, curve)
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


cdef inline void correct(double eps, double value, Line *line, const Curve *curve) noexcept nogil:
    """Update the linear correction so that the corrected approximation has the given value of log delta at eps."""
    cdef double seen = curve.rough(eps, curve.law), offset = seen - value
    line.rise = 0
    # a slope is used only if it makes the corrected curve between 1/4 and 5 times as steep as the approximate one
    if line.about > 0 and -4 < (offset - line.offset) / (seen - line.seen) < 0.75:
        line.rise = (offset - line.offset) / (eps - line.about)
    line.offset, line.seen, line.about = offset, seen, eps


cdef double distance(double eps, double value, double target, Line *line, const Curve *curve) noexcept nogil:
    """Returns the estimated distance of eps from the crossing, given log delta there, or INFINITY if there is no estimate.

    The slope is that of the approximation, and from the second value on the slope of the line through two values of log delta.
    """
    cdef double scale = fmin(fmin(eps, curve.span), curve.pure - eps), step = 1e-4 * scale, low, high, slope, moved, rest
    if not (step > 0 and value > -INFINITY):
        return INFINITY
    if fabs(eps - line.centre) > NEAR * scale:
        line.centre, rest = eps, curve.rough(eps, curve.law)
        low, high = curve.rough(eps - step, curve.law), curve.rough(eps + step, curve.law)
        line.slope, line.bend = (high - low) / (2 * step), (high - 2 * rest + low) / (step * step)
    slope, moved = (line.slope + line.bend * (eps - line.centre)) * line.ratio, eps - line.last
    # errors of the values are about `close` in eps
    if line.last > 0 and fmax(FAR, 100 * curve.close) * eps < fabs(moved) <= NEAR * scale:
        rest = ((value - line.value) / moved + 0.5 * line.bend * moved) / slope
        if 0.25 < rest < 5:
            slope, line.ratio = slope * rest, line.ratio * rest
    line.last, line.value = eps, value
    if not slope < 0:
        return INFINITY
    rest = (value - target) / slope
    step = 0.5 * line.bend * rest / slope
    return rest * (1 + step) if fabs(step) < 0.1 else rest


cdef double c_level(double delta, bint upper) noexcept nogil:
    cdef double outward = -1 if upper else 1, reach
    reach = delta * (1 + outward * 4 * EXP_SLACK) + outward * 1e-323
    return fmin(0, nextafter(log(reach), outward * INFINITY)) if reach > 0 else -746.0


cdef double last_positive(const Curve *curve) noexcept nogil:
    """Returns the largest eps below pure, of a sequence with doubling steps, at which the lower bound of delta is positive."""
    cdef double eps = nextafter(curve.pure, 0), step = 4 * UNIT
    while eps > 0 and curve.side(eps, False, curve.law) == -INFINITY:
        eps = fmax(0, eps - curve.pure * step)
        step *= 2
    return eps


cdef double near(double target, double guess, Line *line, const Curve *curve) noexcept nogil:
    """Returns an eps in 0..pure with centre(eps) close to the target; every evaluation of centre corrects `line`."""
    cdef double value, before, eps = solve_rough(target, guess, line, curve)
    for _ in range(4):
        if not 0 < eps < curve.pure:
            break
        value = curve.centre(eps, curve.law)
        if value == -INFINITY:
            break
        before = eps
        eps -= distance(eps, value, target, line, curve)
        if not fabs(eps - before) <= NEAR * fmin(before, curve.pure - before):
            correct(before, value, line, curve)
            eps = solve_rough(target, before, line, curve)
        # the step has an error of a few thousandths of its length
        if fabs(eps - before) <= 2e-5 * eps:
            break
    return eps


cdef inline double pushed(double eps, double push, bint upper, const Curve *curve) noexcept nogil:
    """Returns eps moved by the relative step `push` to the conservative end: up for the upper bound, down for the lower."""
    cdef double moved = fmin(eps, curve.pure - eps) * push
    return fmax(eps + moved, nextafter(eps, INFINITY)) if upper else fmin(eps - moved, nextafter(eps, 0))


cdef double from_start(double target, double eps, bint upper, Line *line, const Curve *curve) noexcept nogil:
    """Returns the requested bound of eps, from a starting eps close to it."""
    cdef double trial, value, low = 0, high = curve.pure, rest = INFINITY, before, push = 0.5 * curve.close
    cdef double at_low = 0, at_high = 0, beyond_it, far = fmax(FAR, 10 * curve.close)
    cdef double crossing = 0
    cdef bint proved = False
    cdef int i, stay = 0
    # a bound is apart from the values of the centre
    line.last = 0
    eps = pushed(eps, push, upper, curve)
    for i in range(200):
        if not low < eps < high:
            eps = 0.5 * (low + high) if high < INFINITY else 2 * low + 0.01
            if not low < eps < high:
                break
        if curve.ahead != NULL:
            value = curve.ahead(eps, upper, target, curve.law, &crossing, &proved)
        else:
            value = curve.side(eps, upper, curve.law)
        if proved:
            return fmin(high, pushed(crossing, 0.5 * curve.close, True, curve))
        beyond_it = depth(fmax(value, -1e300)) - depth(target)
        # Illinois rule: the value at an end that is kept twice counts half
        if (value <= target) if upper else (value < target):
            at_low *= 0.5 if stay == 1 else 1
            high, at_high, stay = eps, fmax(beyond_it, 1e-300), 1
        else:
            at_high *= 0.5 if stay == -1 else 1
            low, at_low, stay = eps, fmin(beyond_it, -1e-300), -1
        if high < INFINITY and high - low <= curve.close * high:
            break
        before, rest = rest, eps - crossing if crossing > 0 else distance(eps, value, target, line, curve)
        if 0 <= (rest if upper else -rest) <= fmax(curve.close, 2 * push) * eps:
            break
        trial = eps - rest
        if fabs(rest) > NEAR * fmin(eps, curve.pure - eps) and value > -INFINITY:
            correct(eps, value, line, curve)
            trial = solve_rough(target, eps, line, curve)
        elif fabs(rest) <= far * eps:
            # rounding may keep the bound from meeting the target: move by a larger step every time
            push *= 1.5
        if i > 20 or not low < trial < high or (i > 1 and fabs(rest) > fmax(0.5 * fabs(before), far * eps)):
            # The slope is not usable or has not led closer: take a step of false position, or bisect (trial = 0).
            trial = low - at_low * (high - low) / (at_high - at_low) if at_low < 0 < at_high < INFINITY and i % 8 < 6 else 0
        eps = pushed(trial, push, upper, curve)
    # high and low were evaluated, or are ends of the range: delta is 0 at high = pure, and above the target at low = 0
    return high if upper else low


cdef double c_crossing(const Curve *curve, double delta, bint upper, double guess, double exact, bint endless) noexcept nogil:
    cdef Line line
    cdef double target, eps, value
    line.offset = line.rise = line.about = line.seen = line.centre = line.last = 0
    line.ratio = 1
    if delta == 0:
        return curve.pure if upper or curve.pure == INFINITY else last_positive(curve)
    if delta >= 1:
        return 0
    target = c_level(delta, upper)
    # The bound at eps = 0, which may be slow, is evaluated only if the approximate curve does not decide whether eps is 0.
    if not curve.sure or curve.rough(0, curve.law) < target + 1 + 0.1 * fabs(target):
        value = curve.side(0, upper, curve.law)
        if (value <= target) if upper else (value < target):
            return 0
    # If the pure budget is infinite, delta may stay above the target at every eps: for example, delta is at least the probability
    # that no message hides the target user.
    if curve.pure == INFINITY and curve.side(curve.last, upper, curve.law) > target:
        return INFINITY if upper or endless else curve.last
    eps = exact
    if not eps > 0:
        eps = near(target, guess, &line, curve) if curve.centre != NULL else solve_rough(target, guess, &line, curve)
        if curve.ahead != NULL and upper:
            eps -= fmin(eps, curve.pure - eps) * curve.miss
    return from_start(target, eps, upper, &line, curve)
