"""The worst-case dataset of shuffled bits and of their sums: branch and bound over all numbers of ones, in one call.

Definition. The other users have N = `others` bits, of which m are ones; each bit is flipped with probability q. Let f_N(m) be the
hockey-stick divergence of a target user that adds `width` bits, all 0 against all 1. The kernels bound the maximum of f_N(m) over
m = 0..N above and below.
First bound of an interval of m. Without B of the other bits, j ones and B - j zeros, the divergence is not smaller:
    f_N(m + j) <= f_(N - B)(m),   0 <= j <= B,
because adding bits is post-processing (shuffled bits, Proposition 3.1). So one value bounds f_N on an interval of B + 1 datasets.
Second bound, for width = 1 and more than SMALL candidates: an expansion around the middle m of an interval.
    1. Notation. theta is the tilt of _bits.pyx, mu(m) the mean of the tilted number of ones, which is linear in m, and chi_i the
       tilted and centred characteristic function of a bit with value i. The threshold of the sum is k = mu(m) + 1/2 + d, where
       |d + 1/2| < 1, because the mode is within 1 of the mean (Darroch). p = 1 - q, E = e^eps, gain = p - q E, loss = E - 1.
    2. The divergence as an inversion:
           B(t) = gain - loss sum_(0 < l < J) e^((theta + i t) l),   C = B chi_1^m chi_0^(N - m) e^(s/2),
           f_N(m + j) <= e^(linear in m + j) max_d Re 1/(2J) sum_t C(t) e^(s d + j g),    s = -(theta + i t), g = log chi_1/chi_0.
    3. The exponential e^(s d + j g) is replaced by its terms up to (s d)^5, j g (s d)^3 and (j g)^2. g is small, because both
       values of a bit have the same variance before tilting. With u = |s d| and v = |j g| the other terms are at most
       e^|theta d| (u^6/720 + v u^4/24 + v^2 u/2 + v^3 e^v/6). The sum over t of |C| times this bound is added.
    4. The maximum over d is taken over the terms up to (s d)^3. For each term of (s d)^4, (s d)^5 and (j g)^2 its largest value in
       the interval is used, most often 0.
    One interval often contains all datasets.
Method. Best-first search: BATCH intervals are halved at a time, until the largest bound is within the tolerance of the best value.
Where the expansion is not used and log delta is above HIGH, halving aims at a gap of 1e-9: log delta may then fall by less than the
tolerance between two eps, and the bounds must not rise. If all datasets give similar values, the intervals left after MOST_HALVED
halvings are scanned from the first number of ones to the last. The bound of an interval minus a value in it is about proportional
to the length of the interval; the length of the next interval is chosen accordingly. If the expansion is used, it also selects the
dataset with at most MOST_FEW ones that is evaluated.
Values. For width = 1 a value f_N(m) is computed by _bits.pyx. Otherwise f_N(m) is the divergence between the distributions P of
S + Bin(width, q) and Q of S + Bin(width, 1 - q), where S is the sum of the other bits. The likelihood ratio P/Q decreases, so the
optimal set has the sums up to the last k with P(k) > e^eps Q(k). This k is found by steps along the local slope, and the value is
computed from two tails of _lattice.pyx.
Error     that of the values plus the tolerance: the gap upper - lower is at most 0.6e-3, or 0.6e-5 times -log delta if that is
          larger (1e-9 up to 1024 candidates), plus `loose` times 1 - log delta. The roundings of the expansion are counted at every
          node. For width = 1 no dataset exceeded the upper bound: 2,600 cases with all datasets evaluated, n = 1100..2e4,
          q = 1e-4..0.499, dummy reports in a third of them; 1,700 cases of n = 2**14..2**53 with 200 datasets each. The gap was as
          stated for log delta above -1e11; for smaller log delta, _bits.pyx may have no lower bound. For width 2..4 against
          enumeration by Fractions, up to 12 other bits, less 4 ulp(log delta): 300 cases, peak 5.2e-14, rms 3.2e-15; the bounds
          held in all, and their gap was at most 2.8e-11.
Cost      for width = 1, 4 us for a value and 2.5 us for the bound of an interval; otherwise 50 us for either. A search needs about
          30 of them if the worst case is 0 or N ones, and 1500 if all datasets give similar values. From a variance of about 200
          on, the expansion can be used, and a search takes 25 to 50 us at n >= 1e5 and 170 us at 1e4. An eps takes two such
          searches, and 25 us.
Source    M. Zhilyaev, shuffled bits, Proposition 3.1; Land and Doig 1960.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, cos, exp, expm1, fabs, floor, fmax, fmin, log, log1p, sin, sqrt
from libc.stdlib cimport free, realloc

import numpy as np

from shufflebounds._core._bits cimport c_best_threshold, c_bits_log_delta, c_bits_log_delta_within, known_bits
from shufflebounds._core._constants cimport BAND, UNIT
from shufflebounds._core._crossing cimport Curve, c_crossing, c_level
from shufflebounds._core._gaussian cimport c_gaussian_guess, c_gaussian_log_delta
from shufflebounds._core._lattice cimport (
    Law, Node, Phi, c_half_period_within, c_half_within, c_lattice_law, c_lattice_point, c_left_out_within, c_log_edge, c_phi_at,
    c_phi_make, c_place,
)
from shufflebounds._core._special cimport c_deviance

cdef extern from *:
    """
    #define BATCH 8                         /* intervals halved before their bounds are compared with the best value */
    #define SMALL 1024                      /* datasets up to which the bounds are computed to 1e-9 instead of 1e-3 */
    #define MOST_HALVED 128                 /* intervals to halve; with more than SMALL datasets the rest is scanned */
    #define HIGH -4.0                       /* above this log delta, halving aims at 1e-9: log delta falls slowly with eps */
    #define AIM 0.95                        /* fraction of the tolerance that an interval of the chosen length should use */
    #define FEW_ONES 8                      /* datasets with fewer ones are evaluated: the worst one is most often among them */
    #define MOST_FEW 63.0                   /* with an expansion, the best one of 0..MOST_FEW ones by the expansion is evaluated */
    #define ROUGH_BAND 28.0                 /* the inversions of intervals omit e^-28: two thirds of the nodes of BAND */
    #define ROUGH_ERROR 1e-8                /* an interval whose value has a larger error is evaluated with BAND */
    #define VALUE_EVERY 16                  /* intervals scanned between two evaluated datasets */
    #define NEARLY_FAIR 1e-3                /* sum of p - q over the target's bits up to which nearly_fair is used, too */
    #define CENTRE 0.5                      /* expansion in k - mean: the best real k is about the mode of S plus 1/2 */
    """
    const int BATCH
    const double SMALL
    const long MOST_HALVED
    const int VALUE_EVERY
    const double HIGH
    const double AIM
    const int FEW_ONES
    const double MOST_FEW
    const double ROUGH_BAND
    const double ROUGH_ERROR
    const double NEARLY_FAIR
    const double CENTRE

cdef enum:
    MOST_NODES = 96     # nodes of the expansion; with a variance above 22 it has 21 to 30 of them

cdef struct Block:
    double bound        # no value in first..last is larger
    double first
    double last
    long order          # blocks of equal bounds are processed in this order
    double low          # lower and upper bound of the value at first
    double high

cdef struct Heap:
    Block *items
    long size
    long room


cdef inline bint before(const Block *a, const Block *b) noexcept nogil:
    return a.bound > b.bound or (a.bound == b.bound and a.order < b.order)


cdef bint push(Heap *heap, const Block *block) noexcept nogil:
    cdef long i = heap.size, up
    cdef Block *more
    if heap.size == heap.room:
        more = <Block *> realloc(heap.items, 2 * (heap.room + 32) * sizeof(Block))
        if more == NULL:
            return False
        heap.items = more
        heap.room = 2 * (heap.room + 32)
    heap.size += 1
    while i > 0:
        up = (i - 1) // 2
        if not before(block, &heap.items[up]):
            break
        heap.items[i] = heap.items[up]
        i = up
    heap.items[i] = block[0]
    return True


cdef Block pop(Heap *heap) noexcept nogil:
    cdef Block top = heap.items[0], last = heap.items[heap.size - 1]
    cdef long i = 0, child
    heap.size -= 1
    while True:
        child = 2 * i + 1
        if child >= heap.size:
            break
        if child + 1 < heap.size and before(&heap.items[child + 1], &heap.items[child]):
            child += 1
        if not before(&heap.items[child], &last):
            break
        heap.items[i] = heap.items[child]
        i = child
    heap.items[i] = last
    return top


cdef double log_pmf(const Law *law, double k, double *error) noexcept nogil:
    cdef double value
    if k == 0 or k == law.trials:
        value = c_log_edge(law, k > 0)
        error[0] = 1e-14 + 8 * UNIT * fabs(value)
        return value
    c_lattice_point(law, k, k > law.mean, &value, error)
    return value


cdef double log_cdf(const Law *law, double k, double *error) noexcept nogil:
    if k == 0:
        return log_pmf(law, 0, error)
    error[0] = 0
    return c_lattice_point(law, k, 0, NULL, error) if k < law.trials else 0


cdef inline void make_law(Law *law, double ones, double zeros, double *p, double *q, double *counts,
                          double flip) noexcept nogil:
    c_lattice_law(law, p, q, counts, known_bits(ones, zeros, flip, p, q, counts))


cdef double excess_loss(const Law *first, const Law *second, double k, double eps, double *blur) noexcept nogil:
    """Returns log P(k)/Q(k) - eps; *blur bounds its error."""
    cdef double f_error = 0, g_error = 0, f = log_pmf(first, k, &f_error), g = log_pmf(second, k, &g_error)
    blur[0] = f_error + g_error + 4 * UNIT * (fabs(f) + fabs(g) + eps + 4)
    return f - g - eps


cdef double ties_above(const Law *first, const Law *second, double k, double eps) noexcept nogil:
    """Returns the last k, from the given k on, at which log P(k)/Q(k) - eps may be positive; this number decreases with k."""
    cdef double step = 1, last = k, end, blur
    while True:
        end = fmin(last + step, first.trials)
        if end == first.trials or excess_loss(first, second, end, eps, &blur) < -blur:
            break
        last, step = end, 2 * step
    while end - last > 1:
        k = floor(0.5 * (last + end))
        if excess_loss(first, second, k, eps, &blur) < -blur:
            end = k
        else:
            last = k
    return last


cdef void nearly_fair(double ones, double zeros, double width, double excess, double flip, double eps, double *lower,
                      double *upper) noexcept nogil:
    """Writes bounds of log delta whose gap is a few times width (p - q), for small width (p - q); excess = p - q.

    Let the target's bits become 1 one after the other. Each time, Pr[sum <= k] falls by p - q times the probability that all other
    bits add up to k. Replace the width - 1 bits of the target that do not change by zeros that are flipped. Then these
    probabilities, and Q(sum <= k), change by a factor of at most c = (p/q)^(width - 1). Let W be the distribution of the sum S of
    the other users' bits and these zeros. It follows that log delta is at most log c + L(c^-2 (e^eps - 1)) and at least
    -log c + L(c^2 (e^eps - 1)), where
    L(t) = log max_k (width (p - q) - q t) W(k) - t Pr[S < k].
    """
    cdef double p[2]
    cdef double q[2]
    cdef double counts[2]
    cdef double step = (width - 1) * log1p(excess / flip), loss, gain = width * excess, unused
    cdef Py_ssize_t groups = known_bits(ones, zeros + width - 1, flip, p, q, counts)
    step *= 1 + 4 * UNIT
    loss = expm1(eps) * exp(-2 * step) * (1 - 8 * UNIT)
    c_best_threshold(p, q, counts, groups, gain - flip * loss + 4 * UNIT * gain, loss, BAND, &unused, upper)
    loss = expm1(eps) * exp(2 * step) * (1 + 8 * UNIT)
    c_best_threshold(p, q, counts, groups, gain - flip * loss - 4 * UNIT * gain, loss, BAND, lower, &unused)
    lower[0], upper[0] = lower[0] - step, upper[0] + step


cdef void c_sum_log_delta(double ones, double zeros, double width, double flip, double eps, double *lower,
                          double *upper) noexcept nogil:
    cdef double p[2]
    cdef double q[2]
    cdef double g[2]
    cdef double p_other[2]
    cdef double q_other[2]
    cdef double g_other[2]
    cdef Law first, second
    cdef double low = 0, high, slope, k, value, f, g_tail, f_error, g_error, ratio, blur, error, spare
    # log P(k)/Q(k) - eps and its error bound at two k: the last one found with a positive value (low), the first without (high)
    cdef double low_blur = 0, low_value = INFINITY, high_blur = 0, high_value = -INFINITY
    cdef int _attempt
    lower[0], upper[0] = -INFINITY, INFINITY
    if width * (1 - 2 * flip) < NEARLY_FAIR:
        nearly_fair(ones, zeros, width, 1 - 2 * flip, flip, eps, lower, upper)
        if upper[0] - lower[0] < 1e-9:
            return
    make_law(&first, ones, zeros + width, p, q, g, flip)
    make_law(&second, ones + width, zeros, p_other, q_other, g_other, flip)
    # P(k) - e^eps Q(k) changes sign once, from positive at k = 0 to negative at the last k
    high = first.trials
    slope = width * (1 - 2 * flip) / fmax(first.var, 0.25)
    k = floor(first.mean + 0.5 * width * (1 - 2 * flip) - eps / slope)
    for _attempt in range(240):
        if high - low <= 1:
            break
        k = fmin(fmax(k, low + 1), high - 1)
        value = excess_loss(&first, &second, k, eps, &blur)
        if value > 0:
            low, low_value, low_blur = k, value, blur
        else:
            high, high_value, high_blur = k, value, blur
        # Newton step with the local slope, longer by 1 after a positive value, so that the upper end of the bracket moves, too
        k += floor(value / slope) + (1 if value > 0 else 0)
        # every fourth step bisects: at most 53 bisections end the search, however far the local slope is from the mean slope
        if not low < k < high or _attempt % 4 == 3:
            k = floor(0.5 * (low + high)) if high - low > 4 else low + 1
    k = low
    f = log_cdf(&first, k, &f_error)
    g_tail = log_cdf(&second, k, &g_error)
    ratio = exp(fmin(g_tail + eps - f, 0))
    f_error += 4 * UNIT * (fabs(f) + 4)
    g_error += 4 * UNIT * (fabs(g_tail) + eps + 4)
    error = f_error + g_error * ratio
    value = -expm1(fmin(g_tail + eps - f, 0))
    if value > error:
        lower[0] = fmax(lower[0], f + log(value - error))
    # Because of rounding, k may not be the best threshold. If the best one is below k, the sums in between have losses of at least
    # eps - low_blur, so that the divergence is too small by at most Pr_P[S <= k] (e^low_blur - 1). If the best one is above k, the
    # sums in between have losses of at most eps + high_blur, so that the divergence is too small by at most their mass under P
    # times high_blur.
    if low_value <= low_blur:
        error += expm1(low_blur)
    if high_value >= -high_blur:
        spare = log_cdf(&first, ties_above(&first, &second, high, eps), &blur) + blur
        error += high_blur * exp(fmin(spare - f, 700))
    upper[0] = fmin(upper[0], f + log(value + error))


cdef void bit_sides(double ones, double zeros, double flip, double eps, double gap, double band, double *lower,
                    double *upper) noexcept nogil:
    """Writes both bounds of log delta for width 1."""
    cdef double p[2]
    cdef double q[2]
    cdef double counts[2]
    cdef Py_ssize_t groups = known_bits(ones, zeros, flip, p, q, counts)
    c_bits_log_delta_within(p, q, counts, groups, flip, eps, gap, band, lower, upper)
    if band < BAND and not upper[0] - lower[0] < 2 * ROUGH_ERROR:
        c_bits_log_delta(p, q, counts, groups, flip, eps, gap, lower, upper)


# Numbers shared by the bounds of all intervals, such as the log of the tilted characteristic function of one bit at each node.
cdef struct Expansion:
    int nodes                       # 0 if the expansion cannot be used
    double bits
    double theta
    double reach                    # the best k is at most this far from the mean
    double growth                   # e^(|theta| times the largest distance of k from the centre)
    double stray                    # error of the trapezoidal rule
    double slack                    # error of the exponent by the roundings of the means
    double[2] exponent              # K(theta) - theta mean of a bit with value 0, and of one with value 1
    double[2] mean                  # their tilted means
    double[MOST_NODES] t
    double[MOST_NODES] re                   # weight/(2J) times B(t)
    double[MOST_NODES] im
    double[MOST_NODES] unit                 # bound of its rounding error, in units of roundoff
    double[2][MOST_NODES] log_abs
    double[2][MOST_NODES] phase
    double[MOST_NODES] effort


cdef void expand(Expansion *out, double bits, double flip, double eps, double gap) noexcept nogil:
    """Fill in the nodes of the expansion; their number depends on the range of the variance over all datasets."""
    cdef double keep = 1 - flip, gain = -keep * expm1(-gap), loss = expm1(eps), shrink, x, half, J, cut, re, im, norm, lost, d
    cdef double sign, effort, most = 0, smallest = INFINITY
    cdef double[2] p, q
    cdef double one = 1
    cdef Law law
    cdef Phi[2] phi
    cdef Node at
    cdef int m = 0, i
    out.nodes = 0
    out.bits, out.slack = bits, 0
    out.theta = -log(exp(eps) * expm1(-2 * eps - gap) / expm1(-gap))
    shrink = exp(out.theta)
    p[0] = q[1] = flip
    p[1] = q[0] = keep
    for i in range(2):
        x = q[i] + p[i] * shrink
        d = p[i] * q[i] * expm1(out.theta) / x
        out.mean[i] = p[i] * shrink / x
        out.slack = fmax(out.slack, 16 * UNIT * fabs(out.theta * d) * bits)
        out.exponent[i] = -(c_deviance(p[i] * shrink / x, p[i], d) + c_deviance(q[i] / x, q[i], -d))
        most, smallest = fmax(most, bits * p[i] * q[i] * shrink / (x * x)), fmin(smallest, bits * p[i] * q[i] * shrink / (x * x))
    # theta has an error of about 8 units of roundoff
    out.reach = 1 + 16 * UNIT * (1 + most)
    J, half = c_half_period_within(most, out.reach + 1, ROUGH_BAND), c_half_within(smallest, ROUGH_BAND)
    if not (smallest > 1 and J * half < MOST_NODES / 2 and fabs(out.theta) < 1):
        return
    out.growth = exp(fabs(out.theta) * (out.reach + CENTRE))
    cut = exp(out.theta * J)
    lost = c_left_out_within(smallest, half, J, ROUGH_BAND)
    out.stray = lost * (gain + loss * shrink * (1 / -expm1(out.theta) if out.theta * J < -1 else J))
    for i in range(2):
        c_lattice_law(&law, p + i, q + i, &one, 1)
        c_phi_make(&law, out.theta, smallest, half, phi + i)
    while m <= J and c_place(half, J, m, &at):
        # B(t) = gain - loss sum_(0 < l < J) e^((theta + i t) l), where (gain + loss) e^theta = gain
        re, im = -expm1(out.theta) + 2 * shrink * at.s * at.s, -2 * shrink * at.s * at.c
        norm, sign = re * re + im * im, -cut if m & 1 else cut
        at.weight /= 2 * J
        if norm > 0:
            at.re, at.im = gain * 2 * at.s * at.s + loss * sign, -gain * 2 * at.s * at.c
            out.re[m], out.im[m] = at.weight * (at.re * re + at.im * im) / norm, at.weight * (at.im * re - at.re * im) / norm
            out.unit[m] = at.weight * 32 * gain / sqrt(norm)
        else:
            out.re[m], out.im[m], out.unit[m] = at.weight * gain, 0, at.weight * 32 * gain
        out.t[m], out.effort[m] = at.t, 0
        for i in range(2):
            c_phi_at(phi + i, at.t, at.s, at.c, &out.log_abs[i][m], &out.phase[i][m], &effort)
            out.effort[m] += bits * effort
        m += 1
        if m == MOST_NODES:
            return
    out.nodes = m


cdef double largest_cubic(const double *c, double low, double high) noexcept nogil:
    """Returns the maximum of c0 + c1 x + c2 x^2/2 + c3 x^3/6 for low <= x <= high."""
    cdef double root = c[2] * c[2] - 2 * c[1] * c[3], x, largest = -INFINITY
    cdef double[4] at
    cdef int i
    root = -(c[2] + (sqrt(root) if c[2] > 0 else -sqrt(root))) if root > 0 else 0
    at[0], at[1], at[2], at[3] = low, high, root / c[3] if c[3] else low, 2 * c[1] / root if root else low
    for i in range(4):
        x = fmin(fmax(at[i], low), high)
        largest = fmax(largest, c[0] + x * (c[1] + x * (c[2] / 2 + x * c[3] / 6)))
    return largest


# At the middle of an interval: the real parts of the sums over t of C s^i, i < 6, and of C g s^i, i < 4, with C, s and g of the
# header, and bounds of the omitted terms.
cdef struct Terms:
    double[6] a
    double[4] b
    double rest
    double fixed        # the part that shorter intervals do not reduce


cdef void sum_terms(const Expansion *of, double mid, double wide, Terms *out) noexcept nogil:
    cdef double size, angle, re, im, g_re, g_im, s2, u, v, g, hold, far = of.reach + CENTRE, rounding = 0, square = 0
    cdef int m, i
    for i in range(6):
        out.a[i] = out.b[i // 2] = 0
    out.b[3] = 0
    out.rest = out.fixed = 0
    for m in range(of.nodes):
        size = exp(mid * of.log_abs[1][m] + (of.bits - mid) * of.log_abs[0][m] - of.theta * CENTRE)
        angle = mid * of.phase[1][m] + (of.bits - mid) * of.phase[0][m] - of.t[m] * CENTRE
        g_re, g_im = cos(angle) * size, sin(angle) * size
        re, im = g_re * of.re[m] - g_im * of.im[m], g_re * of.im[m] + g_im * of.re[m]
        g_re, g_im = of.log_abs[1][m] - of.log_abs[0][m], of.phase[1][m] - of.phase[0][m]
        g = sqrt(g_re * g_re + g_im * g_im)
        s2 = of.theta * of.theta + of.t[m] * of.t[m]
        u, v = sqrt(s2) * far, wide * g
        hold = sqrt(re * re + im * im)
        rounding += (hold * (160 + 8 * of.effort[m] + 4 * fabs(angle)) + size * of.unit[m]) * exp(u + v)
        out.fixed += hold * u * u * u * u * u * u / 720
        out.rest += hold * v * (u * u * u * u / 24 + v * (0.5 * u + v * exp(v) / 6))
        square += re * (g_re * g_re - g_im * g_im) - 2 * im * g_re * g_im
        for i in range(6):
            out.a[i] += re
            if i < 4:
                out.b[i] += re * g_re - im * g_im
            hold = -of.theta * re + of.t[m] * im          # times s = -(theta + i t)
            im = -of.theta * im - of.t[m] * re
            re = hold
    out.fixed = (of.growth * (out.fixed + UNIT * rounding + of.stray)
                 + far * far * far * far / 24 * fmax(0, out.a[4] + fmax(-out.a[5] * far, out.a[5] * (of.reach - CENTRE)) / 5))
    out.rest = of.growth * out.rest + out.fixed + 0.5 * wide * wide * fmax(0, square)


cdef double expanded(const Expansion *of, double first, double last, double *remains) noexcept nogil:
    """Returns an upper bound of log f_N(m) for first <= m <= last.

    *remains is the part of its gap that shorter intervals do not reduce.
    """
    cdef double wide = 0.5 * (last - first), largest = -INFINITY, e, spread
    cdef double[4] c
    cdef double[2] top
    cdef int i, j
    cdef Terms at
    sum_terms(of, 0.5 * (first + last), wide, &at)
    for j in range(2):
        for i in range(4):
            c[i] = at.a[i] + (wide if j else -wide) * at.b[i]
        top[j] = largest_cubic(c, -of.reach - CENTRE, of.reach - CENTRE) + at.rest
        e = (last if j else first) * of.exponent[1] + (of.bits - (last if j else first)) * of.exponent[0]
        largest = fmax(largest, e + log(top[j]) if top[j] > 0 else INFINITY)
        largest = fmax(largest, largest + UNIT * (64 + 32 * fabs(e)) + of.slack)
    # between the two ends, the value is at most e^(a linear function) times a linear function, whose logarithm is concave
    spread = (top[1] - top[0]) / fmin(top[0], top[1])
    remains[0] = at.fixed / at.a[0] + UNIT * (64 + 32 * fabs(e)) + of.slack if at.a[0] > 0 else INFINITY
    largest += spread * spread / 8
    return largest if largest == largest else INFINITY


cdef double best_of_few(const Expansion *of, double last) noexcept nogil:
    """Returns the number of ones, at most `last`, with the largest value by the expansion at the nearest integers k."""
    cdef double m = 0, mean, d, value, highest = -INFINITY, best = 0, e
    cdef Terms at
    sum_terms(of, 0, 0, &at)
    while m <= last:
        mean = m * of.mean[1] + (of.bits - m) * of.mean[0]
        e = m * (of.exponent[1] - of.exponent[0])
        d = floor(mean) - mean - CENTRE
        for _ in range(3):
            value = at.a[3] / 6 + d * (at.a[4] / 24 + d * at.a[5] / 120)
            value = at.a[1] + m * at.b[1] + d * ((at.a[2] + m * at.b[2]) / 2 + d * value)
            value = e + log(at.a[0] + m * at.b[0] + d * value)
            if value > highest:
                highest, best = value, m
            d += 1
        m += 1
    return best


# The arguments of c_worst_log_delta.
cdef struct Arguments:
    double others
    double fakes
    double width
    double flip
    double eps
    double gap
    double enough               # if the bound of an interval is at most this number, no tighter bound is needed
    const Expansion *expansion  # NULL if it cannot be used


cdef inline void enclose(const Arguments *of, double first, double removed, double *lower, double *upper) noexcept nogil:
    """Writes bounds of log f_(N - removed)(first).

    The upper bound also holds for log f_N(first), ..., log f_N(first + removed).
    """
    cdef double zeros = of.others + of.fakes - removed - first, low, high, bound = INFINITY, stray
    # the bound of an interval may have a gap of up to the tolerance, so a shorter inversion is accurate enough
    cdef double band = ROUGH_BAND if removed > 0 and of.others + 1 > SMALL else BAND
    if removed > 0 and of.expansion != NULL:
        bound = expanded(of.expansion, first, first + removed, &stray)
        if of.fakes > 0:
            bound = fmax(bound, expanded(of.expansion, zeros, zeros + removed, &stray))
        if bound <= of.enough or bound < of.enough + 1 and removed > 1e-3 * of.others:
            lower[0], upper[0] = -INFINITY, fmin(bound, 0)
            return
    if of.width == 1:
        bit_sides(first, zeros, of.flip, of.eps, of.gap, band, lower, upper)
        if of.fakes > 0:
            # with dummy reports, which have value 0, the pair (Q, P) is not the pair (P, Q) of another dataset, so both orders are
            # evaluated
            bit_sides(zeros, first, of.flip, of.eps, of.gap, band, &low, &high)
            lower[0], upper[0] = fmax(lower[0], low), fmax(upper[0], high)
    else:
        c_sum_log_delta(first, zeros, of.width, of.flip, of.eps, lower, upper)
    # a kernel outside its range returns NaN: use the trivial bounds
    if lower[0] != lower[0]:
        lower[0] = -INFINITY
    upper[0] = fmin(bound, upper[0] if upper[0] == upper[0] else 0)


cdef struct Found:
    double lower        # the largest lower bound of a value
    double best         # the largest upper bound of a value
    double bound        # upper bound of all values in the intervals that are finished


cdef struct Tolerance:
    double rtol         # gap of log delta
    double deep         # the gap relative to -log delta, if it is larger
    double loose        # added to the gap, relative to 1 - log delta


cdef inline double within(double best, const Tolerance *to) noexcept nogil:
    """Returns the largest log delta that is small enough for the bound of an interval: the best value plus the tolerance."""
    return best + fmax(to.rtol, -to.deep * best) + to.loose * (1 - best) if best > -INFINITY else best


cdef void evaluate(const Arguments *of, double first, double *value, Found *so_far) noexcept nogil:
    """Write the upper bound of the value at `first`, and update the largest lower and upper bounds found so far."""
    cdef double low
    enclose(of, first, 0, &low, value)
    so_far.lower, so_far.best = fmax(so_far.lower, low), fmax(so_far.best, value[0])


cdef void scan(const Arguments *of, const Block *block, const Tolerance *to, double *length, Found *so_far) noexcept nogil:
    """Cover an interval by pieces whose bounds are at most the best value plus the tolerance. The first piece has this `length`."""
    cdef double first = block.first, last, value = 0, bound, low, slope
    cdef int age = 0
    while first <= block.last:
        if age == 0:
            evaluate(of, first, &value, so_far)
            age = VALUE_EVERY
        last = fmin(first + floor(length[0]), block.last)
        if last == first:
            evaluate(of, first, &value, so_far)
            so_far.bound = fmax(so_far.bound, value)
            first += 1
            length[0] = 1
            continue
        enclose(of, first, last - first, &low, &bound)
        slope = fmax(bound - value, 0) / (last - first)
        if bound <= within(so_far.best, to):
            so_far.bound = fmax(so_far.bound, bound)
            first = last + 1
            age -= 1
            length[0] = fmin(AIM * (within(so_far.best, to) - value) / fmax(slope, 1e-300), 4 * (length[0] + 1))
        else:
            length[0] = fmin(AIM * (within(so_far.best, to) - value) / fmax(slope, 1e-300), 0.75 * (last - first))


cdef bint c_worst_log_delta(double others, double fakes, double width, double flip, double eps, double gap, double loose,
                            double *lower, double *upper) noexcept nogil:
    cdef Arguments of
    cdef Expansion expansion
    cdef Tolerance to, close
    cdef double best = -INFINITY, enough, stray, length
    cdef Heap heap
    cdef Found so_far
    cdef Block block, half
    cdef Block[2 * BATCH] pieces
    cdef long order = 0
    cdef int count = 1, i, side
    cdef bint held = True, scanned = False
    of.others, of.fakes, of.width, of.flip, of.eps, of.gap = others, fakes, width, flip, eps, gap
    of.enough, of.expansion = -INFINITY, NULL
    to.rtol, to.deep, to.loose = 0.6e-3 if others + 1 > SMALL else 1e-9, 0.6e-5 if others + 1 > SMALL else 0, loose
    heap.items, heap.size, heap.room = NULL, 0, 0
    lower[0] = upper[0] = -INFINITY
    pieces[0].first, pieces[0].last, pieces[0].bound = 0, others, INFINITY
    enclose(&of, 0, 0, &pieces[0].low, &pieces[0].high)
    if others + 1 > SMALL:
        if width == 1:
            expand(&expansion, others + fakes, flip, eps, gap)
            if expansion.nodes:
                expanded(&expansion, 0, others + fakes, &stray)
                if stray < to.rtol:
                    of.expansion = &expansion
                    # the bounds aim at a third of the tolerance if shorter intervals, which take 3 us each, reach this aim
                    to.rtol = fmin(to.rtol, fmax(0.2e-3, 2 * stray))
        for i in range(1, FEW_ONES if of.expansion == NULL else 2):
            enclose(&of, i if of.expansion == NULL else best_of_few(&expansion, fmin(others, MOST_FEW)), 0, &stray, &enough)
            lower[0], best = fmax(lower[0], stray), fmax(best, enough)
        # the worst case at eps = 0
        enclose(&of, floor(0.5 * others), 0, &stray, &enough)
        lower[0], best = fmax(lower[0], stray), fmax(best, enough)
    close = to
    if width == 1 and others + 1 > SMALL and of.expansion == NULL and loose == 0 and fmax(best, pieces[0].high) > HIGH:
        close.rtol, close.deep = 1e-9, 0
    of.enough = within(fmax(best, pieces[0].high), &close)
    while count and held:
        for i in range(count):
            block = pieces[i]
            if block.last > block.first:
                enclose(&of, block.first, block.last - block.first, &stray, &enough)
                block.bound = fmin(block.bound, enough)
            else:
                block.bound = fmin(block.bound, block.high)
            block.order = order
            order += 1
            lower[0] = fmax(lower[0], block.low)
            best = fmax(best, fmin(block.high, pieces[i].bound))
            if block.last > block.first:
                held = held and push(&heap, &block)
            else:
                upper[0] = fmax(upper[0], block.bound)
        of.enough = enough = within(best, &close)
        count = 0
        if others + 1 > SMALL and order >= MOST_HALVED:
            break
        while heap.size and heap.items[0].bound > enough and count < 2 * BATCH:
            block = pop(&heap)
            for side in range(2):
                half = block
                if side:
                    half.first = floor(0.5 * (block.first + block.last)) + 1
                    enclose(&of, half.first, 0, &half.low, &half.high)
                else:
                    half.last = floor(0.5 * (block.first + block.last))
                pieces[count] = half
                count += 1
    so_far.lower, so_far.best, so_far.bound = lower[0], best, upper[0]
    length = others / MOST_HALVED
    while heap.size and heap.items[0].bound > within(so_far.best, &to):
        block = pop(&heap)
        scanned = True
        scan(&of, &block, &to, &length, &so_far)
    lower[0], upper[0] = so_far.lower, fmax(so_far.bound, so_far.best)
    if heap.size:
        upper[0] = fmax(upper[0], heap.items[0].bound)
    # A scan most often uses 95 % of the tolerance, and the exact fraction varies with eps. If the upper bound is raised to use the
    # whole tolerance, it is as smooth in eps as the best value. The search for eps then needs fewer searches over datasets.
    if scanned and width == 1:
        upper[0] = fmin(fmax(upper[0], within(so_far.best, &to)), 0)
    free(heap.items)
    return held


def worst_log_delta(double others, double fakes, double width, double flip, const double[::1] eps, const double[::1] gap,
                    double loose=0):
    """Return bounds of the largest log delta over all datasets of `others` other bits, at each eps.

    `fakes` dummy reports with value 0 are added (0 if width > 1). The target adds `width` bits; the values all 0 and all 1 are
    compared. `gap` is ln((1 - flip)/flip) - eps, accurate to an ulp, and used if width = 1. The caller has checked: whole numbers,
    others + fakes + width at most 2**53, 0 < flip < 1/2, 0 <= eps < width ln((1 - flip)/flip), eps <= 700.
    """
    lower, upper = np.empty(eps.shape[0]), np.empty(eps.shape[0])
    cdef double[::1] low = lower, high = upper
    cdef Py_ssize_t i
    cdef bint held
    for i in range(eps.shape[0]):
        with nogil:
            held = c_worst_log_delta(others, fakes, width, flip, eps[i], gap[i], loose, &low[i], &high[i])
        if not held:
            raise MemoryError("memory ran out in the search for the worst-case dataset")
        PyErr_CheckSignals()
    return lower, upper


cdef struct Bits:
    double others
    double fakes
    double flip
    double head         # ln((1 - flip)/flip) = head + rest
    double rest
    double mu           # of normal noise with the same variance


cdef double bits_side(double eps, bint upper, const void *law) noexcept nogil:
    cdef const Bits *bits = <const Bits *> law
    cdef double low = -INFINITY, high = -INFINITY, gap = (bits.head - eps) + bits.rest
    if gap > 0 and not c_worst_log_delta(bits.others, bits.fakes, 1, bits.flip, eps, gap, 0, &low, &high):
        return 0 if upper else -INFINITY
    return fmin(0, high if upper else low)


cdef double zeros_value(double eps, const void *law) noexcept nogil:
    cdef const Bits *bits = <const Bits *> law
    cdef double p = bits.flip, q = 1 - p, count = bits.others + bits.fakes, low = 0, high = 0
    c_bits_log_delta_within(&p, &q, &count, 1, p, eps, (bits.head - eps) + bits.rest, ROUGH_BAND, &low, &high)
    return fmin(0, high)


cdef double normal_value(double eps, const void *law) noexcept nogil:
    cdef double value, error
    c_gaussian_log_delta(1, (<const Bits *> law).mu, eps, &value, &error)
    return value


def worst_epsilon(double others, double fakes, double flip, double head, double rest, double pure, double delta, bint upper):
    """Return the upper or lower bound of eps of the worst dataset at a delta in (0, 1], for width 1 and `others` > SMALL.

    `pure` is the budget head + rest = ln((1 - flip)/flip) < 700, rounded up or down. The approximate curve of the search
    (_crossing.pyx) is that of the dataset without ones. If eps is small and more than about 25 flips are expected, it is that of
    normal noise (0.1 us for a value), and the dataset without ones gives the approximate middle of the bounds. With fewer flips log
    delta is a staircase, for which normal noise has a slope that can be wrong by any factor.
    """
    cdef Bits bits
    cdef Curve curve
    cdef double eps, start
    bits.others, bits.fakes, bits.flip, bits.head, bits.rest = others, fakes, flip, head, rest
    bits.mu = (1 - 2 * flip) / sqrt((others + fakes) * flip * (1 - flip))
    start = c_gaussian_guess(c_level(delta, upper), bits.mu)
    curve.side, curve.rough, curve.centre, curve.law = bits_side, zeros_value, NULL, &bits
    curve.pure, curve.last, curve.span, curve.sure = pure, pure, INFINITY, False
    curve.ahead, curve.miss = NULL, 1e-5
    # not closer, because the bounds of log delta have a gap
    curve.close = 5e-7 if upper else 1e-8
    if start < fmin(0.3, 0.5 * pure) and bits.mu < 0.2:
        curve.rough, curve.centre = normal_value, zeros_value
    else:
        start = 0
    with nogil:
        eps = c_crossing(&curve, delta, upper, start, 0, True)
    PyErr_CheckSignals()
    return eps


def sum_log_delta(double ones, double zeros, double width, double flip, const double[::1] eps):
    """Return bounds of log delta of a dataset at each eps.

    `ones` and `zeros` count the other bits; for limits see `worst_log_delta`.
    """
    lower, upper = np.empty(eps.shape[0]), np.empty(eps.shape[0])
    cdef double[::1] low = lower, high = upper
    cdef Py_ssize_t i
    with nogil:
        for i in range(eps.shape[0]):
            c_sum_log_delta(ones, zeros, width, flip, eps[i], &low[i], &high[i])
    return lower, upper
