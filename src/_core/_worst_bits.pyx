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
    One interval often contains all datasets. Between the ends of an interval, e^(linear in m + j) is multiplied by a linear
    function of j, because a maximum of linear functions is at most its chord; the logarithm of the product is concave, and its
    maximum has a closed form. The sums for j = 0 alone are the smallest bound of this kind, and bound one dataset.
Third bound, for width = 1, more than SMALL candidates and short intervals: the threshold moves with the dataset.
    1. Let k(j) be r + j for the dataset with m + j ones, or r, whichever changes x = k - mu less from j to j + 1. This change is a
       constant: the tilted probabilities that a bit with value 0 and one with value 1 are flipped add up to it, or the same minus
       1. With r = e^theta the sum is q r/(p + q r) + q/(q + p r) <= 1, because q (q + p r) <= p (p + q r) for q <= p; so the change
       of x is at most 1/2. The interval is so short that x changes by at most 1 from end to end. The best threshold is one of the r
       with |x| < 1 for some j (and any threshold bounds the divergence below): two to four whole numbers. From any of them the mean
       is at most 2 away, for every j; the period of the inversion is chosen for this distance.
    2. For each r the divergence is e^(linear in j) Re 1/(2J) sum_t C(t) e^(s (x(0) - 1/2) + j h), where h is g plus s times the
       change of x. No term is left out. e^(j h) is replaced by 1 + j h + (j h)^2/2; the remainder is at most |j h|^3 e^|j h|/6.
       With a bound of the sum of the remainders, this is e^(linear in j) times a quadratic polynomial P(j).
    3. The second derivative of log P is P''/P - (P'/P)^2. It is at most its value with the largest or smallest P and the smallest
       |P'| in the interval. So the logarithm of the divergence is at most the parabola with the slope at j = 0 and this second
       derivative. The gap is of third order in the length of the interval.
    4. P without the remainders bounds the divergence of the dataset below, for every threshold. This lower bound is evaluated at
       the maximum of the parabola.
    The nodes of the second bound serve all datasets. Those of the third bound are computed for a range in which the variance
    changes by half at most, so the third bound holds for small variances and all theta.
Method. Best-first search: BATCH intervals are divided at a time, until the largest bound is within CLOSE of the best value. The
first bound is halved. An interval with one of the other bounds is divided around its peak; the length of the piece around the peak
follows from the order of the gap.
Similar datasets. At sigma |theta| near 0 all datasets have nearly the same value, and many pairs of m and k would have to be
compared. There the second bound, the maximum over real thresholds, is the result (SIMILAR). A whole threshold is at most 1/2 from
the best real one. With u = sigma |theta|, Mills' ratio M and normal noise, the divergence is proportional to 1 - u M(u) there, and
its second derivative in k to -1/sigma^2. So the gap is about 1/(8 sigma^2 (1 - u M(u))) <= (3 + u^2)/(8 sigma^2) at most, because
u M(u) <= 4 u/(3 u + sqrt(u^2 + 8)). It is most often a tenth of this, because one of the many datasets nearly attains the bound.
The measured gap less 1e-9 was at most 1.1 times this limit in 100,000 cases with log delta above -1000, and 1.8 times below. Both
bounds are valid whether the limit holds or not: the upper bound is the maximum over real thresholds, and the lower bound that of a
dataset and a whole threshold.
Other tolerances. If `loose` is positive or width > 1, or after MOST_DIVIDED intervals, the tolerance is 0.6e-3 in log delta, or
0.6e-5 times -log delta if that is larger. The intervals left are then scanned from the first number of ones to the last. The bound
of an interval minus a value in it is about proportional to the length of the interval; the length of the next interval is chosen
accordingly. If the expansion is used, it also selects the dataset with at most MOST_FEW ones that is evaluated.
Values. For width = 1 a value f_N(m) is computed by _bits.pyx. Otherwise f_N(m) is the divergence between the distributions P of
S + Bin(width, q) and Q of S + Bin(width, 1 - q), where S is the sum of the other bits. The likelihood ratio P/Q decreases, so the
optimal set has the sums up to the last k with P(k) > e^eps Q(k). This k is found by steps along the local slope, and the value is
computed from two tails of _lattice.pyx.
Error     that of the values plus the tolerance. In 12,400 random cases of width 1, n = 1025..1e13, q = 1e-8..0.5, eps next to that
          of delta = 1e-12..0.3 or below, the gap upper - lower was at most 1.01e-9 in 96 %, and at most 1.3e-4; in 12,600 with q
          next to 1/2 in half of them, and eps down to 1e-6 of these, at most 1.01e-9 in 83 %, and at most 2.5e-4. At smaller log
          delta, where a search does not end otherwise, it is up to 0.6e-5 times -log delta, plus `loose` times 1 - log delta. The
          roundings of the expansions are counted at every node. No dataset exceeded the upper bound, and no lower bound exceeded
          all datasets: 1,900 cases with all datasets evaluated, n = 1026..4e4, q = 1e-5..0.5 - 1e-8, dummy reports in half of
          them; and in 7,100 other cases with all datasets evaluated, n = 1026..1e5, q = 1e-300..0.5 - 1e-14, eps = 1e-18 to an ulp
          below the budget, up to 10 n dummy reports, where the gap was at most 3.1e-4. In 1,300 of these the maximum was computed
          in interval arithmetic with 320 bits. For log delta below -1e11, _bits.pyx may have no lower bound. For width 2..4
          against enumeration by Fractions, up to 12 other bits, less 4 ulp(log delta): 300 cases, peak 5.2e-14, rms 3.2e-15; the
          bounds held in all, and their gap was at most 2.8e-11.
Cost      for width = 1, 4 us for a value and 2.5 to 5 us for the bound of an interval; otherwise 50 us for either. Most searches
          take 15 to 60 us if the second bound can be used, which is the case from a variance of about 200 on, and 140 to 600 us
          otherwise. If the variance is below 400 and eps is nearly 0, or 2 q nearly whole and the best datasets in the middle,
          they take several ms. An eps takes two to four searches; one below 1e-9, where the gap hides how delta changes with eps,
          up to about 60, or 0.6 s at the slowest parameters that were found.
Source    M. Zhilyaev, shuffled bits, Proposition 3.1; Land and Doig 1960.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, cbrt, cos, exp, expm1, fabs, floor, fmax, fmin, log, log1p, sin, sqrt
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
    #define BATCH 8                         /* intervals divided before their bounds are compared with the best value */
    #define SMALL 1024                      /* datasets up to which the bounds are computed to 1e-9 instead of 1e-3 */
    #define CLOSE 1e-9                      /* gap of log delta */
    #define MOST_HALVED 128                 /* intervals to divide; with more than SMALL datasets the rest is scanned */
    #define MOST_DIVIDED 2000               /* the same for a gap of CLOSE */
    #define SIMILAR 200.0                   /* datasets are similar from sigma = SIMILAR (tilt + tilt^3) on, tilt = sigma |theta| */
    #define AIM 0.95                        /* fraction of the tolerance that an interval of the chosen length should use */
    #define FEW_ONES 8                      /* datasets with fewer ones are evaluated: the worst one is most often among them */
    #define MOST_FEW 63.0                   /* with an expansion, the best one of 0..MOST_FEW ones by the expansion is evaluated */
    #define ROUGH_BAND 28.0                 /* the inversions of intervals omit e^-28: two thirds of the nodes of BAND */
    #define ROUGH_ERROR 1e-8                /* an interval whose value has a larger error is evaluated with BAND */
    #define VALUE_EVERY 16                  /* intervals scanned between two evaluated datasets */
    #define NEARLY_FAIR 1e-3                /* sum of p - q over the target's bits up to which nearly_fair is used, too */
    #define LEAST 0.08                      /* the piece around a peak is not shorter than this part of the interval */
    #define CENTRE 0.5                      /* expansion in k - mean: the best real k is about the mode of S plus 1/2 */
    """
    const int BATCH
    const double SMALL
    const long MOST_HALVED
    const int VALUE_EVERY
    const double CLOSE
    const long MOST_DIVIDED
    const double SIMILAR
    const double AIM
    const int FEW_ONES
    const double MOST_FEW
    const double ROUGH_BAND
    const double ROUGH_ERROR
    const double NEARLY_FAIR
    const double LEAST
    const double CENTRE

cdef enum:
    MOST_NODES = 128    # nodes of the expansion; with a variance above 22 it has 21 to 30 of them

cdef struct Guess:
    double peak         # number of ones with about the largest value of an interval
    double level        # limit of the bounds of intervals that shrink to the peak
    double gap          # bound of the interval minus this limit; INFINITY if unknown
    double low          # a lower bound of the largest bound


cdef struct Block:
    double bound        # no value in first..last is larger
    double first
    double last
    long order          # blocks of equal bounds are processed in this order
    double low          # lower and upper bound of the value at first
    double high
    Guess near

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
    double first                    # datasets with first..last ones
    double last
    double bits
    double theta
    double reach                    # the best k is at most this far from the mean
    double growth                   # e^(|theta| times the largest distance of k from the centre)
    double stray                    # error of the trapezoidal rule
    double slack                    # error of the exponent by the roundings of the means
    double[2] exponent              # K(theta) - theta mean of a bit with value 0, and of one with value 1
    double[2] mean                  # their tilted means
    double[2] flipped               # tilted probabilities that the bit differs from its value
    double[MOST_NODES] t
    double[MOST_NODES] re                   # weight/(2J) times B(t)
    double[MOST_NODES] im
    double[MOST_NODES] unit                 # bound of its rounding error, in units of roundoff
    double[2][MOST_NODES] log_abs
    double[2][MOST_NODES] phase
    double[MOST_NODES] effort
    double[MOST_NODES] turn_re              # e^-(theta + i t)
    double[MOST_NODES] turn_im


cdef void expand(Expansion *out, double bits, double flip, double eps, double gap, double first, double last, double band,
                 int most_nodes) noexcept nogil:
    """Fill in the nodes of an expansion for datasets with first..last ones, and a few others: out.first..out.last.

    The variances of these datasets decide the number of nodes. There are none if it exceeds `most_nodes`.
    """
    cdef double keep = 1 - flip, gain = -keep * expm1(-gap), loss = expm1(eps), shrink, x, half, J, cut, re, im, norm, lost, d
    cdef double sign, effort, most, smallest
    cdef double[2] p, q, var
    cdef double one = 1
    cdef Law law
    cdef Phi[2] phi
    cdef Node at
    cdef int m = 0, i
    out.nodes = 0
    out.bits, out.slack = bits, 0
    # as in _bits.pyx, accurate to 8 units of roundoff
    out.theta = -log1p(loss / gain) if loss < 1e16 * gain else log(gain) - log(loss)
    shrink = exp(out.theta)
    p[0] = q[1] = flip
    p[1] = q[0] = keep
    for i in range(2):
        x = q[i] + p[i] * shrink
        d = p[i] * q[i] * expm1(out.theta) / x
        out.mean[i] = p[i] * shrink / x
        out.flipped[i] = (q[i] if i else p[i] * shrink) / x
        out.slack = fmax(out.slack, 16 * UNIT * fabs(out.theta * d) * bits)
        out.exponent[i] = -(c_deviance(p[i] * shrink / x, p[i], d) + c_deviance(q[i] / x, q[i], -d))
        var[i] = p[i] * q[i] * shrink / (x * x)
    # the interval is extended at both ends until the variance has changed by about a quarter
    d = 0.25 * (first * var[1] + (bits - first) * var[0]) / fabs(var[1] - var[0]) if last < bits else 0
    out.first, out.last = fmax(first - d, 0), fmin(last + d, bits)
    most = out.last * var[1] + (bits - out.last) * var[0]
    smallest = out.first * var[1] + (bits - out.first) * var[0]
    most, smallest = fmax(most, smallest) * (1 + 1e-9), fmin(most, smallest) * (1 - 1e-9)
    # theta has an error of about 8 units of roundoff
    out.reach = 1 + 16 * UNIT * (1 + fabs(out.theta)) * (1 + most)
    J, half = c_half_period_within(most, out.reach + 1, band), c_half_within(smallest, band)
    if not J * half < most_nodes:
        return
    out.growth = exp(fabs(out.theta) * (out.reach + CENTRE))
    cut = exp(out.theta * J)
    lost = c_left_out_within(smallest, half, J, band)
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
            # loss + gain = gain e^-theta up to 8 units of roundoff times gain theta
            out.unit[m] = at.weight * (32 * gain * (at.s - out.theta) + 8 * loss * cut * (1 - out.theta * J)) / sqrt(norm)
        else:
            out.re[m], out.im[m], out.unit[m] = at.weight * gain, 0, at.weight * 32 * gain
        out.t[m], out.effort[m] = at.t, 0
        out.turn_re[m], out.turn_im[m] = cos(at.t) / shrink, -sin(at.t) / shrink
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


cdef double expanded(const Expansion *of, double first, double last, double *remains, double *peak) noexcept nogil:
    """Returns the second bound of log f_N(m) for first <= m <= last.

    *remains is the part of its gap that shorter intervals do not reduce, and *peak is about the m of the maximum.
    """
    cdef double mid = 0.5 * (first + last), wide = 0.5 * (last - first), largest, e, turn, change, x, error, spread
    cdef double[4] c
    cdef double[2] top
    cdef int i, j
    cdef Terms at
    sum_terms(of, mid, wide, &at)
    for j in range(2):
        for i in range(4):
            c[i] = at.a[i] + (wide if j else -wide) * at.b[i]
        top[j] = largest_cubic(c, -of.reach - CENTRE, of.reach - CENTRE) + at.rest
    e = mid * of.exponent[1] + (of.bits - mid) * of.exponent[0]
    error = UNIT * (64 + 32 * fabs(e)) + of.slack
    remains[0] = at.fixed / at.a[0] + error if at.a[0] > 0 else INFINITY
    peak[0] = mid
    if not fmin(top[0], top[1]) > 0:
        return INFINITY
    # between the two ends, the value is at most e^(a linear function) times a linear function, whose logarithm is concave
    turn, change = wide * (of.exponent[1] - of.exponent[0]), (top[1] - top[0]) / (top[1] + top[0])
    largest = fmax(turn + log1p(change), log1p(-change) - turn)
    x = -(1 / turn + 1 / change)
    if -1 < x < 1:
        # the concave logarithm is above its chord by at most this; x is inaccurate if both slopes are nearly 0
        spread = change / (1 - fabs(change))
        largest = fmin(largest + 0.5 * spread * spread, fmax(largest, x * turn + log1p(x * change)))
    else:
        x = 1 if turn + log1p(change) > log1p(-change) - turn else -1
    peak[0] = mid + x * wide
    largest += e + log(0.5 * (top[0] + top[1])) + error
    return largest if largest == largest else INFINITY


cdef inline double drift_of(const Expansion *of) noexcept nogil:
    """Returns the change of k - mean if one more bit is 1 and k increases by 1, or k stays, whichever is closer to 0."""
    cdef double drift = of.flipped[0] + of.flipped[1]
    return drift if drift < 0.5 else drift - 1


cdef double coupled(const Expansion *of, double first, double last, Guess *near) noexcept nogil:
    """Returns the third bound of log f_N(m) for first <= m <= last, or INFINITY if it cannot be used."""
    cdef double mid = floor(0.5 * (first + last)), wide = last - mid, theta = of.theta, e, x, span, size, angle, re, im, hold
    cdef double mean_error, error
    cdef double more = mid * of.flipped[1], less = (of.bits - mid) * of.flipped[0], drift = drift_of(of)
    cdef double h_re, h_im, g_re, g_im, v, rest = 0, rounding = 0, linear = of.exponent[1] - of.exponent[0], largest = -INFINITY
    cdef double[4] a
    cdef double[4] b
    cdef double[4] c
    cdef double start = first - mid, stray, high, low, left, right, bend, slope, j, bound, best = 0, value
    cdef int m, i, count
    if not of.nodes:
        return INFINITY
    mean_error = 16 * UNIT * (more + less)
    span = of.reach + wide * fabs(drift) + mean_error
    # then every distance below is at most reach + 1, for which `expand` chose the period
    if not wide * fabs(drift) + mean_error <= 0.5:
        return INFINITY
    # thresholds k = mid + whole number, whose distances x from the tilted mean are at most `span`
    x = less - more
    x = floor(x) - x
    while x - 1 >= -span:
        x -= 1
    while x < -span:
        x += 1
    count = 0
    while count < 4 and x + count <= span:
        a[count] = b[count] = c[count] = 0
        count += 1
    if count == 0 or x + count <= span:
        return INFINITY
    for m in range(of.nodes):
        size = exp(mid * of.log_abs[1][m] + (of.bits - mid) * of.log_abs[0][m] - theta * x)
        angle = mid * of.phase[1][m] + (of.bits - mid) * of.phase[0][m] - of.t[m] * x
        g_re, g_im = cos(angle) * size, sin(angle) * size
        re, im = g_re * of.re[m] - g_im * of.im[m], g_re * of.im[m] + g_im * of.re[m]
        h_re = of.log_abs[1][m] - of.log_abs[0][m] - theta * drift
        h_im = of.phase[1][m] - of.phase[0][m] - of.t[m] * drift
        hold, v = sqrt(re * re + im * im), wide * sqrt(h_re * h_re + h_im * h_im)
        rest += hold * v * v * v * exp(v) / 6
        rounding += (hold * (200 + 8 * of.effort[m] + 4 * fabs(angle) + 16 * (more + less) * (fabs(theta) + of.t[m]))
                     + size * of.unit[m]) * exp(v)
        for i in range(count):
            g_re, g_im = re * h_re - im * h_im, re * h_im + im * h_re
            a[i] += re
            b[i] += g_re
            c[i] += g_re * h_re - g_im * h_im
            hold = re * of.turn_re[m] - im * of.turn_im[m]
            im = re * of.turn_im[m] + im * of.turn_re[m]
            re = hold
    rest += UNIT * rounding
    stray = of.stray * exp(fabs(theta) * (span + wide * fabs(drift) + mean_error))
    e = mid * of.exponent[1] + (of.bits - mid) * of.exponent[0]
    error = UNIT * (64 + 32 * fabs(e)) + of.slack
    near.low, near.peak = -INFINITY, mid
    for i in range(count):
        # e^(linear j) (a + b j + c j^2/2) for start <= j <= wide
        hold = rest * exp(-theta * i) + stray
        if not hold + fabs(a[i]) + fabs(b[i]) + fabs(c[i]) < INFINITY:
            near.low = -INFINITY
            return INFINITY
        a[i] += hold
        left, right = a[i] + start * (b[i] + 0.5 * start * c[i]), a[i] + wide * (b[i] + 0.5 * wide * c[i])
        low, high = fmin(left, right), fmax(left, right)
        j = -b[i] / c[i] if c[i] else 0
        if start < j < wide:
            value = a[i] + 0.5 * j * b[i]
            low, high = fmin(low, value), fmax(high, value)
        if not high > 0:
            continue
        j = 0
        if low > 0:
            # the second derivative of the logarithm is at most `bend`
            left, right = b[i] + start * c[i], b[i] + wide * c[i]
            bend = c[i] / low if c[i] > 0 else c[i] / high
            if left * right > 0:
                bend -= fmin(left * left, right * right) / (high * high)
            slope = linear + b[i] / a[i]
            left, right = start * (slope + 0.5 * start * bend), wide * (slope + 0.5 * wide * bend)
            j, bound = (wide, right) if right > left else (start, left)
            if bend < 0 and start < -slope / bend < wide:
                j, bound = -slope / bend, fmax(bound, -0.5 * slope * slope / bend)
            bound += log(a[i])
        else:
            bound = fmax(start * linear, wide * linear) + log(high)
        if bound > largest:
            largest, best = bound, floor(j + 0.5)
        # the value at `best` is a lower bound of the worst case, whatever the threshold
        j = floor(j + 0.5)
        value = a[i] + j * (b[i] + 0.5 * j * c[i]) - 2 * hold
        if value > 0:
            near.low = fmax(near.low, e + j * linear + log(value) - error)
    near.peak = mid + best
    largest += e + error
    if not largest == largest:
        largest = INFINITY
    near.level, near.gap = near.low, largest - near.low
    return largest


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


# The arguments of c_worst_log_delta, and what follows from them.
cdef struct Arguments:
    double others
    double fakes
    double width
    double flip
    double eps
    double gap
    double enough               # if the bound of an interval is at most this number, no tighter bound is needed
    const Expansion *expansion  # of the second bound; NULL if it cannot be used
    Expansion *phases           # of the third bound, in both orders of the two values; NULL if it cannot be used
    double short                # largest length of an interval with the third bound
    bint smooth                 # all datasets have nearly the same value; the second bound is the result


cdef double close_to(const Arguments *of, int order, double first, double last, Guess *near) noexcept nogil:
    """Returns the third bound, after an expansion around the interval if necessary."""
    cdef Expansion *at = of.phases + order
    cdef double band
    if not (at.first <= first and last <= at.last):
        # a larger band, because far from the mean the error of the inversion is multiplied by e^(2 |theta|)
        band = fmin(ROUGH_BAND + 4 + 2 * fabs(at.theta), BAND)
        expand(at, of.others + of.fakes, of.flip, of.eps, of.gap, first, last, band, MOST_NODES)
    return coupled(at, first, last, near)


cdef void enclose(const Arguments *of, double first, double removed, double *lower, double *upper, Guess *near) noexcept nogil:
    """Writes bounds of log f_(N - removed)(first).

    The upper bound also holds for log f_N(first), ..., log f_N(first + removed).
    """
    cdef double zeros = of.others + of.fakes - removed - first, low, high, bound = INFINITY, stray
    # the bound of an interval may have a gap of up to the tolerance, so a shorter inversion is accurate enough
    cdef double band = ROUGH_BAND if removed > 0 and of.others + 1 > SMALL else BAND
    cdef Guess other
    near.low, near.gap, near.peak = -INFINITY, INFINITY, first
    other.low = -INFINITY
    if removed > 0 and of.expansion != NULL:
        bound = expanded(of.expansion, first, first + removed, &stray, &near.peak)
        low = near.peak
        if of.fakes > 0:
            high = expanded(of.expansion, zeros, zeros + removed, &stray, &low)
            if high > bound:
                bound, near.peak = high, of.others + of.fakes - low
            else:
                low = near.peak
        if bound <= of.enough:
            lower[0], upper[0] = -INFINITY, fmin(bound, 0)
            return
        if bound < INFINITY and (of.smooth or removed > of.short):
            near.level = expanded(of.expansion, low, low, &stray, &low)
            near.gap = bound - near.level
            near.low = near.level if of.smooth else -INFINITY
            lower[0], upper[0] = -INFINITY, fmin(bound, 0)
            return
    if removed > 0 and of.phases != NULL and removed <= of.short:
        low = close_to(of, 0, first, first + removed, near)
        if low < INFINITY and of.fakes > 0:
            high = close_to(of, 1, zeros, zeros + removed, &other)
            stray = fmax(near.low, other.low)
            if high > low:
                low, near[0] = high, other
                near.peak = of.others + of.fakes - other.peak
            near.low = stray
        if low < INFINITY:
            lower[0], upper[0] = near.low, fmin(fmin(bound, low), 0)
            return
        near.low, near.gap = -INFINITY, INFINITY
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
    cdef Guess near
    enclose(of, first, 0, &low, value, &near)
    so_far.lower, so_far.best = fmax(so_far.lower, low), fmax(so_far.best, value[0])


cdef void scan(const Arguments *of, const Block *block, const Tolerance *to, double *length, Found *so_far) noexcept nogil:
    """Cover an interval by pieces whose bounds are at most the best value plus the tolerance. The first piece has this `length`."""
    cdef double first = block.first, last, value = 0, bound, low, slope
    cdef int age = 0
    cdef Guess near
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
        enclose(of, first, last - first, &low, &bound, &near)
        slope = fmax(bound - value, 0) / (last - first)
        if bound <= within(so_far.best, to):
            so_far.bound = fmax(so_far.bound, bound)
            first = last + 1
            age -= 1
            length[0] = fmin(AIM * (within(so_far.best, to) - value) / fmax(slope, 1e-300), 4 * (length[0] + 1))
        else:
            length[0] = fmin(AIM * (within(so_far.best, to) - value) / fmax(slope, 1e-300), 0.75 * (last - first))


cdef double around(const Arguments *of, const Block *block, double enough) noexcept nogil:
    """Returns half of the length of a piece around the peak of an interval. The bound of the piece should be at most `enough`."""
    cdef double length = block.last - block.first, share = fmax(0.5 * (enough - block.near.level) / block.near.gap, 0)
    if of.expansion != NULL and (of.smooth or length > of.short):
        # the gap is about proportional to the square of the length; shorter intervals have the third bound
        length = fmax(0.5 * length * fmin(sqrt(share), 0.5), 0 if of.smooth else fmin(0.48 * of.short, 0.4 * length))
    else:
        length *= 0.5 * fmin(fmax(cbrt(share), LEAST), 0.5)
    return floor(length)


cdef bint c_worst_log_delta(double others, double fakes, double width, double flip, double eps, double gap, double loose,
                            double *lower, double *upper) noexcept nogil:
    cdef Arguments of
    cdef Expansion expansion
    cdef Expansion[2] phases
    cdef Tolerance to, close
    cdef double best = -INFINITY, enough, stray, length, first, spread, tilt, peak = 0
    cdef Heap heap
    cdef Found so_far
    cdef Block block
    cdef Block[2 * BATCH + 3] pieces
    cdef Guess near
    cdef double[4] ends
    cdef long order = 0, most = MOST_HALVED
    cdef int count = 1, i, side
    cdef bint held = True, scanned = False
    of.others, of.fakes, of.width, of.flip, of.eps, of.gap = others, fakes, width, flip, eps, gap
    of.enough, of.expansion, of.phases, of.smooth = -INFINITY, NULL, NULL, False
    to.rtol, to.deep, to.loose = 0.6e-3 if others + 1 > SMALL else 1e-9, 0.6e-5 if others + 1 > SMALL else 0, loose
    heap.items, heap.size, heap.room = NULL, 0, 0
    lower[0] = upper[0] = -INFINITY
    pieces[0].first, pieces[0].last, pieces[0].bound = 0, others, INFINITY
    enclose(&of, 0, 0, &pieces[0].low, &pieces[0].high, &near)
    if others + 1 > SMALL:
        if width == 1:
            expand(&expansion, others + fakes, flip, eps, gap, 0, others + fakes, ROUGH_BAND, 48)
            for i in range(2):
                phases[i].nodes, phases[i].first, phases[i].last, phases[i].theta = 0, 1, 0, expansion.theta
                phases[i].flipped[0], phases[i].flipped[1] = expansion.flipped[0], expansion.flipped[1]
            of.phases = phases
            of.short = 0.99 / fabs(drift_of(&expansion))
            if expansion.nodes:
                expanded(&expansion, 0, others + fakes, &stray, &length)
                if stray < to.rtol and fabs(expansion.theta) < 1:
                    of.expansion = &expansion
                    spread = sqrt((others + fakes) * flip * (1 - flip))
                    tilt = fabs(expansion.theta) * spread
                    of.smooth = spread > 20 and spread > fmin(SIMILAR * tilt * (1 + tilt * tilt), 3e4)
                    # the bounds aim at a third of the tolerance if shorter intervals, which take 3 us each, reach this aim
                    to.rtol = fmin(to.rtol, fmax(0.2e-3, 2 * stray))
        for i in range(1, FEW_ONES if of.expansion == NULL else 2):
            first = i if of.expansion == NULL else best_of_few(&expansion, fmin(others, MOST_FEW))
            enclose(&of, first, 0, &stray, &enough, &near)
            lower[0], best = fmax(lower[0], stray), fmax(best, enough)
        # the worst case at eps = 0
        enclose(&of, floor(0.5 * others), 0, &stray, &enough, &near)
        lower[0], best = fmax(lower[0], stray), fmax(best, enough)
    # at most the tolerance of a scan: otherwise `enclose` may return a bound that is too large for the scan, at any length
    close = to
    if width == 1 and others + 1 > SMALL and loose == 0:
        close.rtol, close.deep, most = CLOSE, 0, MOST_DIVIDED
    of.enough = within(fmax(best, pieces[0].high), &close)
    while count and held:
        for i in range(count):
            block = pieces[i]
            if block.last > block.first:
                enclose(&of, block.first, block.last - block.first, &stray, &enough, &near)
                block.near = near
                if not of.smooth:
                    lower[0] = fmax(lower[0], near.low)
                elif near.low > best:
                    peak = near.peak
                best = fmax(best, near.low)
                block.bound = fmin(block.bound, enough)
            else:
                if block.high == INFINITY:
                    enclose(&of, block.first, 0, &block.low, &block.high, &near)
                block.bound = fmin(block.bound, block.high)
            block.order = order
            order += 1
            lower[0] = fmax(lower[0], block.low)
            best = fmax(best, fmin(block.high, pieces[i].bound)) if block.high < INFINITY else best
            if block.last > block.first:
                held = held and push(&heap, &block)
            else:
                upper[0] = fmax(upper[0], block.bound)
        of.enough = enough = within(best, &close)
        count = 0
        if others + 1 > SMALL and order >= most:
            break
        while heap.size and heap.items[0].bound > enough and count < 2 * BATCH:
            block = pop(&heap)
            ends[0] = block.first
            ends[1] = floor(0.5 * (block.first + block.last)) + 1
            ends[2] = ends[3] = block.last + 1
            if block.near.gap < INFINITY:
                length = around(&of, &block, enough)
                ends[1] = fmin(fmax(floor(block.near.peak) - length, block.first), block.last)
                ends[2] = fmax(fmin(floor(block.near.peak) + length + 1, block.last + 1), block.first + 1)
            for side in range(3):
                if ends[side + 1] <= ends[side]:
                    continue
                pieces[count] = block
                pieces[count].first, pieces[count].last = ends[side], ends[side + 1] - 1
                if ends[side] > block.first:
                    pieces[count].low, pieces[count].high = -INFINITY, INFINITY
                    if block.near.gap == INFINITY:
                        enclose(&of, ends[side], 0, &pieces[count].low, &pieces[count].high, &near)
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
    if of.smooth and upper[0] - lower[0] > 1e-6:
        # a dataset close to the peak nearly attains the bound
        first = fmin(fmax(floor(peak - 0.45 * of.short), 0), others)
        length = fmin(floor(0.9 * of.short), others - first)
        for i in range(2 if fakes > 0 else 1):
            near.low = -INFINITY
            close_to(&of, i, first, first + length, &near)
            lower[0] = fmax(lower[0], near.low)
            first = others + fakes - first - length
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
    curve.close = 1e-10
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
