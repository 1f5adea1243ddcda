"""Trade-off functions of two distributions: breakpoints in likelihood-ratio order, divergences, hulls, lines below a divergence.

Definition. For atoms ordered by decreasing Q/P, the most powerful tests reject the first i of them:
    log_alpha[i] = log sum_(j < i) P(j),   log_beta[i] = log sum_(j >= i) Q(j),   i = 0..n.
    H(eps) = sum max(0, X - e^eps Y) for masses X and Y of the same atoms.
    The hull is the greatest convex, non-increasing function at or below given points.
Method. alpha, beta, 1 - alpha and 1 - beta are four sums over the atoms, so that none is computed as 1 minus another. The terms
          e^(x - top) are added with compensation; the integer `top` grows with the sum, so that differences of tops are exact.
          The result is top + log(sum). If Q/P is not monotone along the atoms, they are sorted: NumPy sorts integers, which are the
          bits of the ratios with the last bits replaced by the index. Ratios that agree in the other bits are sorted by insertion
          or, if that would take long, by a radix sort of all bits, eleven at a time.
          H is computed at decreasing eps in one sweep, O(atoms + eps). When eps falls from e to e', the atoms counted before
          increase H by Y(counted) (e^e - e^e'), and each newly counted atom adds X (1 - e^(e' - log X/Y)). All these terms are
          positive, whereas differences of prefix sums of X and of Y would cancel.
          The hull is found by one scan that drops a point if the next step down is steeper. A step between two points is the
          difference of the levels or of their complements, whichever are smaller: top + log(-expm1(low - top)) for the logarithms
          low < top.
          Two lines are below a convex function of E = e^x between two points at which it is known: the line through the two points
          to the left and the line through the two points to the right. The left line is stored as its decrease per unit of E, in
          units of the value and of E at the point before the interval. The right line is stored as its decrease over the interval,
          in units of its value at the point after the interval. Both numbers are moderate even if the interval is long: if e^width
          overflows, the right line is flat at the intersection up to a relative e^-709. The intersection is rounded to the left,
          where the right line is the lower one. The value at the intersection is that of the right line, a sum of positive terms.
Error     absolute, of the logarithms, in units of 2.2e-16 max(1, |log|); against python-flint at 200 bits:
              breakpoints, random atoms, e^-50 .. e^-10     2.0e4          peak 0.88    rms 0.22
              breakpoints, normal on lattices, to -1e5      2.4e5          peak 0.97    rms 0.24
              H, random atoms, e^-50 .. e^-10               4.5e3 values   peak 2.1     rms 0.31
              H, the same, to log = -1e5                    3.0e3 values   peak 0.48    rms 0.05
          The difference of a log ratio and eps is computed exactly, so H is accurate even if they agree to an ulp.
          The vertices of the hull are given points, so the hull is never too low. Rounding may drop a point that is below the new
          edge. The hull is then too high at this point: relative to the steps, by a few of the above units at most.
          Lines below are rounded down: 4.8e3 values at intersections, in intervals from 0.01 to 3e3, are below those of the exact
          right line by at most 19 units (rms 1.4), and none is above an exact line, against mpmath at 80 digits.
Cost      for 1e6 atoms: the four sums 20 ms (AVX-512, cumulate.h), the test whether the ratios are sorted 1 ms, the sort if needed
          23 ms (NumPy sorts 1e6 doubles in 14 ms), or 72 ms if the ratios agree in 40 bits; the hull 17 ms; H at 1000 eps 6 ms, at
          1e6 eps 32 ms. Lines below a function at 1e5 points: 13 ms
Source    J. Neyman, E. S. Pearson 1933; A. Neumaier 1974 for the compensated sum; A. M. Andrew 1979 for the hull
"""

from libc.math cimport INFINITY, ceil, exp, expm1, fabs, fmax, fmin, log, log1p
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

import numpy as np

cdef extern from *:
    """
    #define DIGIT 11                        /* bits sorted in one pass */
    #define PASSES 6                        /* passes for 64 bits */
    #define BUCKETS 2048                    /* 2^DIGIT */
    #define ULP 2.220446049250313e-16
    #define SMALLEST 5e-324                 /* the smallest double: the rounding of a result that underflows */
    #define BETTER 1e-9                     /* relative change of a slope that is more than rounding */
    """
    const int DIGIT
    const int PASSES
    const int BUCKETS
    const double ULP
    const double SMALLEST
    const double BETTER

cdef double E_2 = 7.38905609893065
cdef double PER_E = 0.36787944117144233

cdef extern from "cumulate.h" nogil:
    ctypedef struct Sum:
        double top
        double total
        double rest
    const Py_ssize_t CUMULATE_BLOCK
    int vectors_level()
    void cumulate(int level, double *x, double *out, Py_ssize_t count, Sum *sum, int *done)


cdef inline void add(Sum *s, double v, double factor) noexcept nogil:
    """Add factor e^v, factor >= 0."""
    cdef double term, old, scale
    if v > s.top + 1 or (s.total == 0 and v > -INFINITY):
        # the first term, or a term that is much larger than the sum so far, needs a new `top`
        term = ceil(v)
        scale = exp(s.top - term) if s.total > 0 else 0
        s.total *= scale
        s.rest *= scale
        s.top = term
    elif s.total > E_2:
        s.total *= PER_E
        s.rest *= PER_E
        s.top += 1
    term = factor * exp(v - s.top)
    old = s.total
    s.total = old + term
    s.rest += (old - s.total) + term if old >= term else (term - s.total) + old


cdef inline double log_sum(const Sum *s) noexcept nogil:
    return s.top + log(s.total + s.rest) if s.total > 0 else -INFINITY


cdef void c_log_cumulate(const double *x, Py_ssize_t n, Py_ssize_t step, double start, double *out) noexcept nogil:
    """Write out[step i] = log(e^start + sum_(j < i) e^(x[step j])), i <= n. The caller has checked: x and start not NaN, <= 1."""
    cdef double[512] block, value               # CUMULATE_BLOCK
    cdef Sum s = Sum(0, 0, 0)
    cdef Py_ssize_t first = 0, count, i
    cdef int done, level = vectors_level()
    cdef double last = start
    add(&s, start, 1)
    out[0] = start
    while first < n:
        count = min(n - first, CUMULATE_BLOCK)
        for i in range(count):
            block[i] = x[step * (first + i)]
        cumulate(level, block, value, count, &s, &done)
        if not done:
            for i in range(count):
                add(&s, block[i], 1)
                value[i] = log_sum(&s)
        for i in range(count):
            # the sums increase, and rounding must not change that
            last = max(last, value[i])
            out[step * (first + i + 1)] = last
        first += count


cdef inline double lost_of(double x, double y, double difference) noexcept nogil:
    """Returns the rounding error of x - y = difference, exactly (Knuth)."""
    cdef double back = x - difference
    return (x - (difference + back)) + (back - y)


cdef void hockey_sticks(const double *x, const double *y, const double *losses, Py_ssize_t n, const double *eps, Py_ssize_t m,
                        double *out) noexcept nogil:
    """Write out[k] = log sum max(0, e^x - e^(eps[k] + y)); the differences x - y are `losses` if these are given (not NULL).

    The caller has checked: x, y and losses finite, x - y or the losses decrease, eps finite and decreasing. Given losses are used
    as exact values. y is then used only as a weight of the steps of eps, and may be less accurate.
    """
    cdef Sum excess = Sum(0, 0, 0), light = Sum(0, 0, 0), tied
    cdef Py_ssize_t k, j, at = 0
    cdef double e, loss, gap, last = 0
    for k in range(m):
        e = eps[k]
        if k > 0 and e == last:
            # the value for an equal eps is copied, because the loop over tied atoms below may be long
            out[k] = out[k - 1]
            continue
        # as the threshold falls from `last` to e, the atoms that are already counted contribute this increase, a positive term
        if light.total > 0 and e < last:
            add(&excess, last + log_sum(&light), -expm1(e - last))
        while at < n:
            loss = losses[at] if losses else x[at] - y[at]
            if not loss > e:
                break
            gap = 0 if losses else lost_of(x[at], y[at], loss)
            add(&excess, x[at], -expm1(-((loss - e) + gap)))
            add(&light, y[at], 1)
            at += 1
        last = e
        # losses that equal e after rounding may be above e, so x - y - e is computed exactly
        tied = excess
        j = at
        while losses == NULL and j < n and x[j] - y[j] == e:
            gap = lost_of(x[j], y[j], e)
            if gap > 0:
                add(&tied, x[j], -expm1(-gap))
            j += 1
        out[k] = log_sum(&tied)


cdef void c_log_hockey_stick(const double *x, const double *y, Py_ssize_t n, const double *eps, Py_ssize_t m,
                             double *out) noexcept nogil:
    """The function `hockey_sticks` without losses.

    The caller has checked: x, y are finite, x - y decreases, eps is finite and decreasing.
    """
    hockey_sticks(x, y, NULL, n, eps, m, out)


cdef inline double log_gap(const double *u, const double *c, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Returns log(e^u[j] - e^u[i]) for u[i] <= u[j]; it is computed from u or from c = log(1 - e^u), whichever is smaller."""
    cdef double top, low
    if u[j] <= c[i]:
        top, low = u[j], u[i]
    else:
        top, low = c[i], c[j]
    return top + log(-expm1(low - top)) if low < top else -INFINITY


cdef inline bint lower(const double *u, const double *c, Py_ssize_t i, Py_ssize_t j) noexcept nogil:
    """Returns whether u[j] is below u[i]; c = log(1 - e^u) is compared instead of u if c is smaller."""
    return u[j] < u[i] if u[i] <= c[j] else c[j] > c[i]


cdef Py_ssize_t c_lower_hull(const double *a, const double *ac, const double *b, const double *bc, Py_ssize_t n,
                             Py_ssize_t *kept, double *across, double *down) noexcept nogil:
    """Find the vertices of the greatest convex, non-increasing function at or below the points (e^a, e^b) with increasing e^a.

    across[k], down[k] are the logarithms of the steps from vertex k - 1 to vertex k. Returns the number of vertices.
    The caller has checked: no NaN, n >= 1; ac and bc are the logarithms of 1 - e^a and 1 - e^b, or inf if e^a is not a probability.
    """
    cdef Py_ssize_t i, size = 1
    cdef double da, db
    kept[0] = 0
    across[0] = down[0] = -INFINITY
    for i in range(1, n):
        if not lower(b, bc, kept[size - 1], i):
            continue
        da = log_gap(a, ac, kept[size - 1], i)
        db = log_gap(b, bc, i, kept[size - 1])
        # the step to point i is steeper than the previous step, so the point between the two steps lies above the hull
        while size > 1 and db - da >= down[size - 1] - across[size - 1]:
            size -= 1
            da = log_gap(a, ac, kept[size - 1], i)
            db = log_gap(b, bc, i, kept[size - 1])
        kept[size], across[size], down[size] = i, da, db
        size += 1
    return size


cdef void c_lines_below(const double *x, const double *low, const double *high, Py_ssize_t n, Py_ssize_t count,
                        double *left, double *right, double *at, double *value) noexcept nogil:
    """Write the chain of `lines_below` for i < count: entry 2 i is point i + 1, entry 2 i + 1 is the vertex after this point.

    The caller has checked: x increases strictly; low and high do not increase; low[1 .. count] is finite, and low is -inf after it;
    n is count + 1 or count + 2. left and right have count elements.
    """
    cdef Py_ssize_t i, step = 1
    cdef double fall, width, line, end, gain, turn, rise, vertex
    cdef bint better = True
    for i in range(count):
        # the slope of a divergence in E is at least -1, also after the last point
        fall = x[i + 1] - low[i + 1]
        left[i] = exp(fall) * (1 + ULP * (8 + fabs(fall)))
        right[i] = 0
    while step <= count and better:
        # farther points are tried until no new line is larger at any point, which happens for example if both bounds are equal
        better = False
        for i in range(step - 1, count):
            fall = fmax(high[i + 1 - step] - low[i + 1], 0)
            line = expm1(fall) / -expm1(x[i + 1 - step] - x[i + 1]) * (1 + ULP * (8 + fall)) + 4 * SMALLEST
            if line < left[i]:
                better |= line < left[i] * (1 - BETTER)
                left[i] = line
        for i in range(min(count - 1, n - 2 - step)):
            width = x[i + 2 + step] - x[i + 2]
            line = expm1(high[i + 2 + step] - low[i + 2]) * expm1(x[i + 1] - x[i + 2]) / expm1(width) * (1 - ULP * (12 + width))
            if line > right[i]:
                better |= line > right[i] * (1 + BETTER)
                right[i] = line
        step *= 2
    for i in range(count):
        at[2 * i], value[2 * i] = x[i + 1], low[i + 1]
        width = x[i + 2] - x[i + 1] if i + 2 < n else INFINITY
        fall = low[i + 1] - low[i + 2] if i + 1 < count else INFINITY
        # Let u be the relative increase of E from the point on. Divided by the value at the point, the left line is 1 - left u and
        # the right line is end (1 + right (1 - u/e)), where e = expm1(width). They meet at u = gain/turn. gain is rounded down and
        # turn is rounded up. 1/turn may overflow.
        end = exp(-fall)
        gain = -expm1(-fall) * (1 - 4 * ULP) - end * right[i] * (1 + 4 * ULP)
        turn = left[i] * (1 + 2 * ULP) - end * right[i] / expm1(width) * (1 - 8 * ULP)
        if gain <= 0:
            rise = 0
        elif turn <= 0:
            rise = INFINITY
        else:
            rise = log1p(gain / turn) if gain / turn < INFINITY else log(gain) - log(turn)
        if i + 1 < count or (i + 2 < n and high[i + 2] == -INFINITY):
            # after the last positive lower bound, the line ends where it is 0, unless the upper bound is 0 at an earlier point
            rise = fmin(rise, width)
        vertex = at[2 * i + 1] = fmax(x[i + 1] + rise - 2 * ULP * (fabs(x[i + 1]) + rise), x[i + 1])
        value[2 * i + 1] = -INFINITY
        if i + 1 < count:
            rise = log1p(right[i] * fmin(expm1(vertex - x[i + 2]) / expm1(-width), 1) * (1 - 8 * ULP))
            line = low[i + 2] + rise * (1 - 2 * ULP)
            # the right line is at least its value at the end
            value[2 * i + 1] = fmin(fmax(line - ULP * fabs(line), low[i + 2]), low[i + 1])


cdef int c_ratio_order(const double *log_p, const double *log_q, Py_ssize_t n) noexcept nogil:
    """Returns 1 if Q/P never increases, -1 if it never decreases, else 0.

    The caller has checked: no NaN, no atom with both logarithms -inf.
    """
    cdef bint falls = True, rises = True
    cdef double last, ratio
    cdef Py_ssize_t i
    if n == 0:
        return 1
    last = log_q[0] - log_p[0]
    for i in range(1, n):
        ratio = log_q[i] - log_p[i]
        if ratio > last:
            falls = False
        elif ratio < last:
            rises = False
        if not (falls or rises):
            return 0
        last = ratio
    return 1 if falls else -1


cdef int radix(Py_ssize_t n, int first, uint64_t *keys, Py_ssize_t *place, int half) noexcept nogil:
    """Sort stably by the digits from `first` on. Returns which half of `keys` and `place` has the result."""
    cdef Py_ssize_t[PASSES][BUCKETS] starts
    cdef uint64_t key
    cdef Py_ssize_t i, at, total, size
    cdef int turn, digit
    cdef uint64_t *from_keys = keys + half * n
    cdef uint64_t *to_keys
    cdef Py_ssize_t *from_place
    cdef Py_ssize_t *to_place
    memset(&starts[0][0], 0, sizeof(starts))
    for i in range(n):
        key = from_keys[i]
        for turn in range(first, PASSES):
            starts[turn][(key >> (turn * DIGIT)) & (BUCKETS - 1)] += 1
    for turn in range(first, PASSES):
        total = size = 0
        for digit in range(BUCKETS):
            at = starts[turn][digit]
            size = at if at > size else size
            starts[turn][digit] = total
            total += at
        if size == n:
            continue
        from_keys, to_keys = keys + half * n, keys + (1 - half) * n
        from_place, to_place = place + half * n, place + (1 - half) * n
        for i in range(n):
            key = from_keys[i]
            digit = (key >> (turn * DIGIT)) & (BUCKETS - 1)
            at = starts[turn][digit]
            starts[turn][digit] = at + 1
            to_keys[at], to_place[at] = key, from_place[i]
        half = 1 - half
    return half


cdef inline uint64_t ratio_key(const double *log_p, const double *log_q, Py_ssize_t i) noexcept nogil:
    """Returns the bits of log P/Q as an integer, in the order of the doubles."""
    cdef uint64_t sign = (<uint64_t> 1) << 63, key
    # adding 0.0 turns -0.0 into 0.0
    cdef double loss = log_p[i] - log_q[i] + 0.0
    memcpy(&key, &loss, sizeof(double))
    return ~key if key & sign else key | sign


cdef int c_ratio_argsort(const double *log_p, const double *log_q, Py_ssize_t n, uint64_t *keys, Py_ssize_t *place) noexcept nogil:
    """Order the atoms by decreasing Q/P, stably.

    The caller has checked the conditions of c_ratio_order. `keys` and `place` have 2 n elements each.

    Returns which half of place has the order.
    """
    cdef Py_ssize_t i
    for i in range(n):
        keys[i], place[i] = ratio_key(log_p, log_q, i), i
    return radix(n, 0, keys, place, 0)


cdef bint settle(const double *log_p, const double *log_q, Py_ssize_t n, int bits, const uint64_t *mixed,
                 Py_ssize_t *place) noexcept nogil:
    """Read the order from sorted keys whose last bits are indices; keys that agree in all other bits are sorted by the whole key.

    Returns False where that takes more than four steps an atom.
    """
    cdef uint64_t key, mask = ((<uint64_t> 1) << bits) - 1
    cdef Py_ssize_t i, j, at, steps = 0
    for i in range(n):
        place[i] = <Py_ssize_t> (mixed[i] & mask)
        if i == 0 or (mixed[i] ^ mixed[i - 1]) > mask:
            continue
        at, j = place[i], i
        key = ratio_key(log_p, log_q, at)
        while j > 0 and ratio_key(log_p, log_q, place[j - 1]) > key:
            place[j] = place[j - 1]
            j -= 1
        place[j] = at
        steps += i - j
        if steps > 4 * n:
            return False
    return True


def ratio_argsort(const double[::1] log_p not None, const double[::1] log_q not None):
    """Return the order of the atoms by decreasing Q/P, ties in input order.

    Atoms with equal ratios stay in input order. The caller has checked: the lists have equal lengths and no NaN, and for no atom
    both logarithms are -inf.
    """
    cdef Py_ssize_t n = log_p.shape[0], i
    cdef int bits = 0, half = 0
    cdef uint64_t mask
    cdef bint done
    if n == 0:
        return np.empty(0, dtype=np.intp)
    while (n - 1) >> bits:
        bits += 1
    mask = ((<uint64_t> 1) << bits) - 1
    order, sorted_keys = np.empty(n, dtype=np.intp), np.empty(n, dtype=np.uint64)
    cdef Py_ssize_t[::1] place = order
    cdef uint64_t[::1] keys = sorted_keys
    with nogil:
        for i in range(n):
            keys[i] = (ratio_key(&log_p[0], &log_q[0], i) & ~mask) | <uint64_t> i
    sorted_keys.sort()
    with nogil:
        done = settle(&log_p[0], &log_q[0], n, bits, &keys[0], &place[0])
    if not done:
        sorted_keys, order = np.empty(2 * n, dtype=np.uint64), np.empty(2 * n, dtype=np.intp)
        keys, place = sorted_keys, order
        with nogil:
            half = c_ratio_argsort(&log_p[0], &log_q[0], n, &keys[0], &place[0])
    return order[half * n : (half + 1) * n]


def ratio_order(const double[::1] log_p not None, const double[::1] log_q not None):
    """Return 1 where Q/P never increases along the atoms, -1 where it never decreases, 0 otherwise. Equal lengths, no NaN."""
    cdef int order
    with nogil:
        order = c_ratio_order(&log_p[0], &log_q[0], log_p.shape[0]) if log_p.shape[0] else 1
    return order


def tradeoff_knots(const double[::1] log_p not None, const double[::1] log_q not None, double lost_p=-INFINITY,
                   double lost_q=-INFINITY, const double[::1] rest_p=None, const double[::1] rest_q=None):
    """Return log alpha, log(1 - alpha), log beta, log(1 - beta) at n + 1 breakpoints, for n atoms in the order of decreasing Q/P.

    lost_p, lost_q: logarithms of the masses that are not in the atoms; they are included in 1 - alpha and 1 - beta. rest_p, rest_q:
    the log masses of the atoms that are used in the sums 1 - alpha and 1 - beta, by default log_p and log_q. If log_p and log_q are
    upper bounds, rest_p and rest_q may be lower bounds, and conversely. All lists have equal lengths and no NaN.
    """
    cdef Py_ssize_t n = log_p.shape[0]
    knots = np.empty((4, n + 1))
    cdef double[:, ::1] k = knots
    cdef double nothing = 0
    rest_p, rest_q = log_p if rest_p is None else rest_p, log_q if rest_q is None else rest_q
    cdef const double *p = &log_p[0] if n else &nothing
    cdef const double *q = &log_q[0] if n else &nothing
    cdef const double *other_p = &rest_p[0] if n else &nothing
    cdef const double *other_q = &rest_q[0] if n else &nothing
    with nogil:
        c_log_cumulate(p, n, 1, -INFINITY, &k[0, 0])
        c_log_cumulate(other_p + n - 1, n, -1, lost_p, &k[1, n])
        c_log_cumulate(q + n - 1, n, -1, -INFINITY, &k[2, n])
        c_log_cumulate(other_q, n, 1, lost_q, &k[3, 0])
    return knots


def log_hockey_stick(const double[::1] log_x not None, const double[::1] log_y not None, const double[::1] eps not None):
    """Return log sum max(0, X - e^eps Y) for atoms by decreasing X/Y, all finite, of equal length; eps decreases."""
    cdef Py_ssize_t n = log_x.shape[0], m = eps.shape[0]
    value = np.empty(m)
    cdef double[::1] out = value
    cdef double nothing = 0
    cdef const double *x = &log_x[0] if n else &nothing
    cdef const double *y = &log_y[0] if n else &nothing
    if m:
        with nogil:
            c_log_hockey_stick(x, y, n, &eps[0], m, &out[0])
    return value


def log_hockey_stick_of_losses(const double[::1] log_p not None, const double[::1] loss not None, const double[::1] eps not None):
    """Return log sum P max(0, 1 - e^(eps - loss)) for atoms by decreasing loss, all finite, of equal length; eps decreases.

    A loss near 0 has a small relative error here, which the difference of two logarithms would not have.
    """
    cdef Py_ssize_t n = log_p.shape[0], m = eps.shape[0], i
    value, light = np.empty(m), np.empty(n)
    cdef double[::1] out = value, y = light
    cdef double nothing = 0
    cdef const double *first = &log_p[0] if n else &nothing
    cdef const double *second = &y[0] if n else &nothing
    cdef const double *losses = &loss[0] if n else &nothing
    if m:
        with nogil:
            for i in range(n):
                y[i] = log_p[i] - loss[i]
            hockey_sticks(first, second, losses, n, &eps[0], m, &out[0])
    return value


def lower_hull(const double[::1] a not None, const double[::1] a_rest not None, const double[::1] b not None,
               const double[::1] b_rest not None):
    """Return (kept, across, down): the indices of the vertices of the lower hull and the logarithms of the steps between them.

    The points are (e^a, e^b); a_rest and b_rest are the logarithms of 1 - e^a and 1 - e^b. The arrays have equal lengths >= 1 and
    no NaN, and a increases.
    """
    cdef Py_ssize_t n = a.shape[0], size
    places, steps = np.empty(n, dtype=np.intp), np.empty((2, n))
    cdef Py_ssize_t[::1] kept = places
    cdef double[:, ::1] s = steps
    with nogil:
        size = c_lower_hull(&a[0], &a_rest[0], &b[0], &b_rest[0], n, &kept[0], &s[0, 0], &s[1, 0])
    return places[:size].copy(), steps[0, 1:size].copy(), steps[1, 1:size].copy()


def lines_below(const double[::1] x not None, const double[::1] low not None, const double[::1] high not None):
    """Return logs (eps, value) of points on lines below a decreasing convex function of e^eps, given bounds of it at the points x.

    low, high: bounds of the logarithm of the function, which do not increase; the function is positive at the second point. See
    `shufflebounds.tradeoff.convex.below`. The arrays have equal lengths >= 2, no NaN, and x increases strictly.
    """
    cdef Py_ssize_t n = x.shape[0], count = 0
    while count + 1 < n and low[count + 1] > -INFINITY:
        count += 1
    chain, slopes = np.empty((2, 2 * count)), np.empty((2, count))
    cdef double[:, ::1] c = chain, s = slopes
    if count:
        with nogil:
            c_lines_below(&x[0], &low[0], &high[0], min(n, count + 2), count, &s[0, 0], &s[1, 0], &c[0, 0], &c[1, 0])
    return chain[0], chain[1]
