"""Hockey-stick divergence between two sums of independent bits that differ in the value of one bit: shuffled randomized response.

Definition. S is the sum of the other users' bits and W(k) = Pr[S = k]; q = flip, p = 1 - q, E = e^eps. The target's bit is added:
under P the sum is S + Ber(q), under Q it is S + Ber(p). The likelihood ratio of P to Q decreases with the sum, so the optimal set
is {sum <= k} for some k, and the divergence is
    H = max_k (p - q E) W(k) - (E - 1) Pr[S < k].
The maximum is at the last k with W(k)/W(k-1) > rho = (p E - q)/(p - q E). This k is the mode of the distribution of S after
exponential tilting by e^theta = 1/rho. The probability under P that the privacy loss exceeds eps is Pr[S < k] + p W(k).
Method. The tilt theta has a closed form. Let k be the integer next to the tilted mean. One Fourier inversion along the contour
tilted by theta computes W(k-1), W(k), W(k+1) and Pr[S < k], all relative to one exponential factor. If the mode is k - 1 or
k + 1, the inversion is repeated there. The difference in H is computed from these relative values. Its relative rounding error is
about |log H| times 1e-16, which is a few ulp of log H.
Error     the bounds contain the error of the inversion (docs/theorems/contours.md) and its effect on the difference, and the
          roundings of p - q E and of the exponent. If these errors exceed the difference, the lower bound is -inf. This was
          observed for log delta below -1e11.
Measured error of the middle of the bounds, relative to delta, less 4 ulp(log delta):
              every dataset of 1..12 users, exact fractions  1866 cases   peak 3.2e-14   rms 0.9e-15
              the same, tail of the loss, relative to the tail   2000 cases   peak 3e-16   rms 2e-17
              n = 100..1e6, delta 1e-2..1e-48, 30 digits     24 cases     peak 1.0e-13   rms 2.1e-14
          Half of the gap was at most 7e-13, and no exact value was outside of the bounds.
Cost      4 to 5 us for two groups at any n, O(groups) otherwise.
Source    M. Zhilyaev, shuffled bits, Lemma 4.2 with its coefficient corrected; Darroch 1964 for the mode.
"""

import numpy as np

from libc.float cimport DBL_MAX
from libc.math cimport INFINITY, NAN, ceil, exp, expm1, fabs, floor, fmax, fmin, log, log1p, sinh, sqrt

from shufflebounds._core._constants cimport BAND, TWO_53, UNIT
from shufflebounds._core._dd cimport dd, dd_accumulate, dd_make
from shufflebounds._core._lattice cimport (
    Geometric, Law, Node, Phi, Tilt, c_exponent, c_geometric_below, c_geometric_make, c_half_period_within, c_lattice_law,
    c_left_out_within, c_node, c_nodes_make_within,
)
from shufflebounds._core._special cimport c_log_add_exp
from shufflebounds._core._ufunc cimport ufunc_of_pairs

cdef extern from "arithmetic.h" nogil:
    Py_ssize_t whole(double x, Py_ssize_t low, Py_ssize_t high)

cdef extern from "lattice.h" nogil:
    dd lattice_shift(const double *p, const double *q, const double *g, Py_ssize_t n, double a, double b, double c,
                     double *var)
    dd lattice_tilted_mean(const double *p, const double *q, const double *g, Py_ssize_t n, double theta, dd mean, dd change,
                           double *blur)


cdef struct Local:
    double below        # tilted W(k-1); this and the next three omit the common factor
    double here         # W(k)
    double above        # W(k+1)
    double strict       # Pr[S < k]
    double error        # bound of the absolute error of below, here and above
    double strict_error  # bound of the absolute error of strict


cdef void invert(const Law *law, const Tilt *tilt, double band, Local *out) noexcept nogil:
    """Fill `out` with the tilted probabilities of k - 1, k, k + 1 and the tail below k, by the trapezoidal rule with 2J nodes.

    The tilted probability of i is P_theta(i) = e^(theta (i - k)) Pr[S = i]. So the results `below`, `above` and `strict` are
    e^(-theta) Pr[S = k - 1], e^theta Pr[S = k + 1] and Pr[S < k]. The tail is Pr[S < k] = sum_(i >= 1) e^(theta i) P_theta(k - i),
    theta <= 0; this sum is restricted to J terms as in _lattice.pyx.
    """
    cdef double slope = -tilt.theta, J = c_half_period_within(tilt.var, fabs(tilt.shift) + 1, band), half
    cdef double s, c, re, im, dr, di, norm, wr, wi, stray, difference
    cdef double here_abs = 0, strict_abs = 0
    cdef dd here = dd_make(0, 0), even = here, odd = here, strict = here
    cdef Py_ssize_t m
    cdef Phi phi
    cdef Node at
    cdef Geometric sums
    c_geometric_make(slope, J, 1, &sums)
    # keep - cut, which would cancel for theta near 0
    difference = -sums.keep * expm1(-slope * (J - 1))
    half = c_nodes_make_within(law, tilt, band, &phi)
    for m in range(whole(J, 0, <Py_ssize_t> TWO_53) + 1):
        if not c_node(&phi, tilt, half, J, m, &at):
            break
        s, c, re, im = at.s, at.c, at.re, at.im
        dd_accumulate(&here, re)
        here_abs += at.size * at.rounding
        dd_accumulate(&even, re * (1 - 2 * s * s))
        dd_accumulate(&odd, im * 2 * s * c)
        # the Fourier factor of the sum over i = 1 .. J-1, with keep = e^theta and cut = e^(theta J):
        # (keep e^(it) - (-1)^m cut)/(1 - keep e^(it))
        norm = c_geometric_below(&sums, &at, &dr, &di)
        if norm > 0:
            wr = (sums.keep + sums.cut if m & 1 else difference) - 2 * s * s * sums.keep
            wi = sums.keep * 2 * s * c
            # the real part of (re + i im) (wr + i wi)/(dr + i di)
            dd_accumulate(&strict, (re * (wr * dr + wi * di) - im * (wi * dr - wr * di)) / norm)
            strict_abs += at.size * at.rounding * sqrt((wr * wr + wi * wi) / norm)
        else:
            dd_accumulate(&strict, re * (J - 1))
            strict_abs += at.size * (J - 1) * at.rounding
    stray = c_left_out_within(tilt.var, half, J, band)
    out.here = (here.hi + here.lo) / (2 * J)
    out.below = ((even.hi - odd.hi) + (even.lo - odd.lo)) / (2 * J)
    out.above = ((even.hi + odd.hi) + (even.lo + odd.lo)) / (2 * J)
    out.strict = (strict.hi + strict.lo) / (2 * J)
    out.error = stray + UNIT * here_abs / (2 * J)
    out.strict_error = stray * (1 / -sums.decay if slope * J > 1 else J) * sums.keep + UNIT * strict_abs / (2 * J)


cdef struct Threshold:
    double k            # the mode of the tilted distribution, or a value next to it if rounding hides which one is larger
    double exponent     # log of the common factor of `at`
    double slack        # bound of the error of a log with this factor
    double theta
    double up           # bound of the increase of the tilted probability from k to k + 1, and from k to k - 1
    double down
    double above        # the mode is at most `above` values above k, and at most `beneath` values below k
    double beneath
    Local at            # tilted probabilities at k


cdef void find_threshold(const double *p, const double *q, const double *counts, Py_ssize_t groups, double gain, double loss,
                         double band, Threshold *out) noexcept nogil:
    """Fills `out` for gain > 0 and groups > 0.

    The tilted probabilities are log-concave, so towards the mode they grow by at most 1.01 `up` at each step up and by at most
    1.01 `down` at each step down.
    """
    cdef double blur = 0, drift
    cdef int attempt
    cdef Law law
    cdef Tilt tilt
    cdef dd mean
    # rho of the header is 1 + loss/gain
    tilt.theta = -log1p(loss / gain) if loss < 1e16 * gain else log(gain) - log(loss)
    out.theta = tilt.theta
    c_lattice_law(&law, p, q, counts, groups)
    mean = lattice_shift(p, q, counts, groups, exp(0.5 * tilt.theta), exp(-0.5 * tilt.theta), 2 * sinh(0.5 * tilt.theta), &tilt.var)
    mean = lattice_tilted_mean(p, q, counts, groups, tilt.theta, dd_make(law.mean, law.mean_lo), mean, &tilt.blur)
    out.k = min(max(floor(mean.hi + 0.5), 0), law.trials)
    # The mode is within 1 of the mean (Darroch 1964). The rounding error of theta, 12 UNIT |theta|, moves the mean. `drift` covers
    # both, so the mode is within `drift` of the computed mean.
    drift = 1 + 12 * UNIT * fabs(tilt.theta) * tilt.var
    for attempt in range(16):
        tilt.shift = (mean.hi - out.k) + mean.lo
        c_exponent(&law, tilt.theta, out.k, &tilt)
        invert(&law, &tilt, band, &out.at)
        # bound of the error of the difference of two neighbouring probabilities
        blur = 2 * (out.at.error + 4 * UNIT * out.at.here) + out.at.here * (8 * UNIT + 8 * UNIT * (1 + 2 * fabs(tilt.theta)))
        out.up, out.down = out.at.above - out.at.here + blur, out.at.below - out.at.here + blur
        if attempt < 15 and out.up > 2 * blur and out.k < law.trials:
            out.k += 1
        elif attempt < 15 and out.down > 2 * blur and out.k > 0:
            out.k -= 1
        else:
            break
    if out.k == 0:
        out.at.strict = out.at.strict_error = 0
    out.exponent = tilt.exponent
    out.slack = tilt.exponent_error + UNIT * (16 + 2 * fabs(tilt.exponent) + 8 * fabs(tilt.theta))
    # Because of rounding, the mode may differ from k.
    out.above = fmax(floor(mean.hi + drift) - out.k, 0) if out.up > 0 else 0
    out.beneath = fmax(out.k - ceil(mean.hi - drift), 0) if out.down > 0 else 0


cdef void c_best_threshold(const double *p, const double *q, const double *counts, Py_ssize_t groups, double gain, double loss,
                           double band, double *lower, double *upper) noexcept nogil:
    cdef double gain_error = 8 * UNIT * gain, value, rounding, most
    cdef Threshold best
    cdef Local at
    lower[0] = upper[0] = -INFINITY
    if not gain > 0:
        return
    # the value is at most gain W(k) <= gain, for every k
    most = log(gain) + UNIT * (16 + 4 * fabs(log(gain)))
    if groups == 0:
        lower[0], upper[0] = log(gain) - UNIT * (16 + 4 * fabs(log(gain))), most
        return
    find_threshold(p, q, counts, groups, gain, loss, band, &best)
    at = best.at
    if best.k == 0:
        loss = 0
    value = gain * at.here - loss * at.strict
    rounding = (gain_error * at.here + gain * (at.error + 4 * UNIT * at.here)
                + loss * (at.strict_error + 4 * UNIT * at.strict))
    if value > rounding:
        lower[0] = log(value - rounding)
        lower[0] = best.exponent + lower[0] - best.slack - 4 * UNIT * fabs(lower[0])
    # With rho = e^-theta, the divergence (divided by the tilting factor at k) grows by at most gain rho^j 1.01 `up` at the j-th
    # step up, and by at most gain 1.01 `down` at every step down.
    rounding += 1.01 * gain * best.down * best.beneath
    # the rounding errors may exceed the value; the sum of both is nevertheless an upper bound
    upper[0] = log(max(value, 0) + rounding)
    if best.above > 0:
        upper[0] = c_log_add_exp(upper[0], log(1.01 * gain * best.up * best.above) - best.above * best.theta)
    upper[0] = fmin(most, best.exponent + upper[0] + best.slack + 4 * UNIT * fabs(upper[0]))


cdef void c_bits_log_delta_within(const double *p, const double *q, const double *counts, Py_ssize_t groups, double flip,
                                  double eps, double gap, double band, double *lower, double *upper) noexcept nogil:
    # p - q E is computed from `gap`, the local budget minus eps, without cancellation if the gap is small
    c_best_threshold(p, q, counts, groups, -(1 - flip) * expm1(-gap) if gap > 0 else 0, expm1(eps), band, lower, upper)


cdef void c_bits_log_delta(const double *p, const double *q, const double *counts, Py_ssize_t groups, double flip, double eps,
                           double gap, double *lower, double *upper) noexcept nogil:
    c_bits_log_delta_within(p, q, counts, groups, flip, eps, gap, BAND, lower, upper)


cdef void each_bits(const double *x, double *out) noexcept nogil:
    cdef double p[2]
    cdef double q[2]
    cdef double counts[2]
    cdef double ones = x[0], zeros = x[1], flip = x[2]
    out[0] = out[1] = NAN
    if not (0 <= ones and 0 <= zeros and ones + zeros < TWO_53 and ones == floor(ones) and zeros == floor(zeros)
            and 0 <= flip <= 0.5 and 0 <= x[3] < INFINITY and x[4] == x[4]):
        return
    out[0] = out[1] = 0
    if flip > 0:
        c_bits_log_delta(p, q, counts, known_bits(ones, zeros, flip, p, q, counts), flip, x[3], x[4], out, out + 1)


# The caller passes gap = ln((1 - flip)/flip) - eps, because the difference of a rounded budget and eps would lose its digits where
# the two are close.
shuffled_bits_log_delta = ufunc_of_pairs(
    <void *> each_bits,
    "shuffled_bits_log_delta(ones, zeros, flip, eps, gap) -> (lower, upper) bound of log delta, the target 0 against 1.")


def bits_log_delta(const double[::1] p, const double[::1] q, const double[::1] counts, double flip, double eps, double gap):
    """Return the lower and the upper bound of log delta for the target's values 0 and 1, in this order.

    Bits of other users are 1 with probability p[j] and 0 with probability q[j], and counts[j] is the number of these bits.
    counts=None means one bit for each p, which is faster. `gap` is ln((1 - flip)/flip) - eps, accurate to an ulp.
    """
    cdef double lower = 0, upper = 0
    cdef Py_ssize_t groups = p.shape[0]
    cdef const double *g = &counts[0] if counts is not None and groups else NULL
    with nogil:
        c_bits_log_delta(&p[0] if groups else NULL, &q[0] if groups else NULL, g, groups, flip, eps, gap, &lower, &upper)
    return lower, upper


cdef void c_bits_log_tail(const double *p, const double *q, const double *counts, Py_ssize_t groups, double flip, double keep,
                          double eps, double gap, double *lower, double *upper, double *last, double *beyond) noexcept nogil:
    """Writes bounds of log Pr[loss > eps] under P, and in `last` an upper bound of the last sum with such a loss.

    Under P the target's bit is 1 with probability `flip` and 0 with probability `keep`. Under Q it is 0 with the smaller
    probability keep e^-(eps + gap), where gap > 0. The upper bound is at least log Pr[sum <= last], and `beyond` is an upper bound
    of log Pr[sum <= last + 1]. The caller has checked the other arguments as for `c_bits_log_delta`.
    """
    cdef double value, rounding, steps, common
    cdef Threshold best
    cdef Local at
    last[0] = beyond[0] = 0
    lower[0] = upper[0] = log1p(-flip) if flip < 0.5 else log(keep)
    if groups == 0:
        lower[0], upper[0] = lower[0] * (1 + 4 * UNIT), upper[0] * (1 - 4 * UNIT)
        return
    find_threshold(p, q, counts, groups, -keep * expm1(-gap), expm1(eps), BAND, &best)
    at = best.at
    # Pr[S + Ber(flip) <= k] = Pr[S < k] + keep W(k)
    value = at.strict + keep * at.here
    rounding = at.strict_error + 4 * UNIT * at.strict + keep * (at.error + 4 * UNIT * at.here)
    # If the mode is j values below k, these are not counted: their probabilities are at most the tilted ones, as theta <= 0.
    steps = best.beneath
    lower[0] = -INFINITY
    if value - rounding > steps * (at.here + at.error + 1.01 * best.down * steps):
        lower[0] = log(value - rounding - steps * (at.here + at.error + 1.01 * best.down * steps))
        lower[0] = best.exponent + lower[0] - best.slack - 4 * UNIT * fabs(lower[0])
    # The sums up to k + 1 add flip W(k) + keep W(k + 1), where W(k + 1) is e^(-theta) times its tilted probability.
    upper[0] = log(value + rounding)
    beyond[0] = c_log_add_exp(log(value + rounding + flip * (at.here + at.error)),
                              log(keep * (fmax(at.above, 0) + at.error)) - best.theta)
    steps = best.above
    if steps > 0:
        # W(k) ... W(k + steps) are added, each at most e^(-theta steps) times its tilted probability
        common = log(at.here + at.error + 1.01 * best.up * (steps + 1))
        upper[0] = c_log_add_exp(upper[0], log(steps + 1) + common - steps * best.theta)
        beyond[0] = c_log_add_exp(upper[0], log(steps + 2) + common - (steps + 1) * best.theta)
    upper[0] = fmin(0, best.exponent + upper[0] + best.slack + 4 * UNIT * fabs(upper[0]))
    beyond[0] = fmin(0, best.exponent + beyond[0] + 2 * best.slack + 4 * UNIT * fabs(beyond[0]))
    last[0] = best.k + steps


cdef inline Py_ssize_t two_groups(double ones, double zeros, tuple zero, tuple one, double *p, double *q, double *counts):
    cdef Py_ssize_t groups = 0
    for number, chances in ((ones, one), (zeros, zero)):
        if number > 0:
            p[groups], q[groups], counts[groups] = chances[0], chances[1], number
            groups += 1
    return groups


def bits_log_tails(const double[::1] ones, const double[::1] zeros, tuple zero, tuple one, double eps, double gap):
    """Return four arrays for several datasets: bounds of log Pr[loss > eps], the last sum with such a loss, and a tail beyond it.

    A bit with value 0 is 1 with probability zero[0] and 0 with probability zero[1] after its randomization, and one[0] > zero[0]
    and one[1] are those of a bit with value 1. Of the other users' bits ones[i] are 1 and zeros[i] are 0; the loss is that of the
    target's bit 0 against 1. The third array has upper bounds of the last sum k, which are exact unless rounding hides k. The upper
    bounds of the second array are at least log Pr[sum <= k], and those of the fourth array at least log Pr[sum <= k + 1], for this
    bound of k. The caller has checked: whole numbers, probabilities in (0, 1), 0 <= eps <= 700, and
    gap = ln(zero[1]/one[1]) - eps > 0, accurate to an ulp.
    """
    lower, upper, last, beyond = (np.empty(ones.shape[0]) for _ in range(4))
    cdef double[::1] low = lower, high = upper, end = last, more = beyond
    cdef double p[2]
    cdef double q[2]
    cdef double counts[2]
    cdef double flip = zero[0], keep = zero[1]
    cdef Py_ssize_t i, groups
    for i in range(ones.shape[0]):
        groups = two_groups(ones[i], zeros[i], zero, one, p, q, counts)
        c_bits_log_tail(p, q, counts, groups, flip, keep, eps, gap, &low[i], &high[i], &end[i], &more[i])
    return lower, upper, last, beyond


def least_log_deltas(const double[::1] ones, const double[::1] zeros, tuple zero, tuple one, double eps, double gap):
    """Return lower bounds of log delta for several datasets. The arguments are those of `bits_log_tails`."""
    lower = np.empty(ones.shape[0])
    cdef double[::1] low = lower
    cdef double p[2]
    cdef double q[2]
    cdef double counts[2]
    cdef double gain = -zero[1] * expm1(-gap), loss = expm1(eps), spare
    cdef Py_ssize_t i, groups
    for i in range(ones.shape[0]):
        groups = two_groups(ones[i], zeros[i], zero, one, p, q, counts)
        c_best_threshold(p, q, counts, groups, gain, loss, BAND, &low[i], &spare)
    return lower


cdef inline Py_ssize_t c_first_at_most(const double *ratio, Py_ssize_t size, double limit, Py_ssize_t start) noexcept nogil:
    """Returns the first index with ratio <= limit, found by steps from `start`. Elements that are NaN are skipped."""
    while start < size and not ratio[start] <= limit:
        start += 1
    while start > 0 and not ratio[start - 1] > limit:
        start -= 1
    return start


def two_sums(const double[::1] first, const double[::1] second, const double[::1] ratio, const double[::1] below, double flip,
             double eps, double half, double gap, double error):
    """Return bounds of the hockey-stick divergence of two independent sums of bits if the target's bit changes in both of them.

    With the masses W of the first and V of the second sum without the target's bits, p = 1 - q and E = e^eps, the divergence is
    the sum over i of the largest partial sum over j of
        P_i P_j - E Q_i Q_j = V_j X_i - V_(j-1) Y_i,
        X_i = (p^2 - E q^2) W_i - p q (E - 1) W_(i-1),   Y_i = p q (E - 1) W_i + (E p^2 - q^2) W_(i-1),
    where P_i = p W_i + q W_(i-1), Q_i = q W_i + p W_(i-1), and P_j, Q_j are the same with V in place of W. As V_j/V_(j-1)
    decreases, the best set for i is {j < m}, where m is the first j with V_j X_i <= V_(j-1) Y_i. With A_k the sum of V_j over
    j < k, the partial sum over this set is
        ((p - E q) W_i - (E p - q) W_(i-1)) A_(m-1) + X_i V_(m-1).
    No coefficient cancels, and as q tends to 1/2 and eps to 0, coefficients and errors become small together. m is monotone in i,
    so one pass finds all sets, in 5 ns for each i.

    Rounding. Let e = `error`, and let U_i be X_i with plus in place of minus. X_i has an absolute error of at most e U_i. Y_i and
    the computed ratios V_j/V_(j-1) have relative errors of at most e. The ratio is compared with two limits, the larger one
    Y_i (1 + 3 e)/(X_i - 2 e U_i) and the smaller one Y_i (1 - 3 e)/(X_i + 2 e U_i). Let `least` be the first j whose computed ratio
    is at or below the larger limit, and `most` the first j whose computed ratio is at or below the smaller limit. Then
    least <= m <= most: the exact ratios decrease; an exact ratio is above Y_i/X_i if the computed one is above the larger limit,
    and at most Y_i/X_i if the computed one is at most the smaller limit. For least <= j < most the exact ratio is within a factor
    of 1 +- e of the limits, so the term of j is at most 10 e U_i V_j in absolute value. The lower bound is that of the set
    {j < least}. The upper bound adds 12 e U_i V_j for every j from `least` to `most`.

    Parameters
    ----------
    first, second : ndarray
        Masses W and V, of consecutive numbers of ones.
    ratio : ndarray
        V_j/V_(j-1) for j = 0..second.size: inf first, 0 last.
    below : ndarray
        A_k for k = 0..second.size.
    flip, eps : float
        q and eps.
    half, gap : float
        ln(p/q) - eps and 2 ln(p/q) - eps > 0, accurate to an ulp.
    error : float
        Bound of the relative error of a mass W times a mass V or a sum A. It must also cover 32 units of roundoff
        for each term of the sum over i, and the rounding of this sum, less than 256 + rows/256 units (5e-13 for 2**20 rows),
        because partial sums have 256 terms.

    Returns
    -------
    (float, float)
        Lower and upper bound.
    """
    cdef Py_ssize_t i, rows = first.shape[0], size = second.shape[0], least = 0, most = 0
    cdef double p = 1 - flip, more = exp(eps), here, before, x, y, wide, gain, slack, v
    cdef double g = -p * p * expm1(-gap), h = p * flip * expm1(eps), k = -p * p * more * expm1(-(2 * eps + gap))
    cdef double g_sum = -p * expm1(-half), k_sum = -p * more * expm1(-(2 * eps + half))
    cdef double low = 0, high = 0, part_low = 0, part_high = 0
    with nogil:
        for i in range(rows + 1):
            if i % 256 == 0:
                low += part_low
                high += part_high
                part_low = part_high = 0
            here, before = first[i] if i < rows else 0, first[i - 1] if i > 0 else 0
            x, y, wide = here * g - before * h, here * h + before * k, here * g + before * h
            if not x > -2 * error * wide:
                continue
            least = c_first_at_most(&ratio[0], size + 1,
                                    y * (1 + 3 * error) / (x - 2 * error * wide) if x > 2 * error * wide else INFINITY, least)
            most = c_first_at_most(&ratio[0], size + 1, fmin(y * (1 - 3 * error) / (x + 2 * error * wide), DBL_MAX), most)
            gain = slack = 0
            if least > 0:
                v = second[least - 1] if least <= size else 0
                gain = below[least - 1] * (here * g_sum - before * k_sum) + v * x
                slack = error * (below[least - 1] * (here * fabs(g_sum) + before * k_sum) + v * wide)
            part_low += fmax(gain - slack, 0)
            v = below[min(most, size)]
            part_high += fmax(gain + slack + 12 * error * wide * (v - below[min(least, size)] + error * v), 0)
    return low + part_low, high + part_high


def merged_losses(const double[:, ::1] p, const double[:, ::1] q, Py_ssize_t cells):
    """Return masses under P and under Q of outcomes with losses log(p/q) > 0.

    The outcomes in each of `cells` intervals of losses of equal length are merged.

    Merging outcomes is post-processing, which does not increase the hockey-stick divergence, and neither does omitting outcomes.
    The masses are 0 if no finite loss is positive.

    Parameters
    ----------
    p, q : ndarray, two-dimensional
        Masses of the same outcomes.
    cells : int
        Number of intervals between 0 and the largest finite loss. Let w be their width: merging reduces a divergence that falls
        like e^(-s eps) by a fraction of at most (s w)^2/4.

    Returns
    -------
    (ndarray, ndarray)
        The masses under P and under Q of each interval. They are compensated sums, with relative errors below 4 units of roundoff
        for up to 2**40 outcomes.
    """
    total = np.zeros((4, cells))
    cdef double[:, ::1] sums = total
    cdef Py_ssize_t i, j, k, side, rows = p.shape[0], columns = p.shape[1]
    cdef double most = 1, ratio, narrow, mass, before
    with nogil:
        for i in range(rows):
            for j in range(columns):
                if q[i, j] > 0 and p[i, j] > most * q[i, j]:
                    ratio = p[i, j] / q[i, j]
                    most = ratio if ratio < INFINITY else most
        narrow = (cells - 1) / log(most) if most > 1 else 0
        for i in range(rows):
            for j in range(columns):
                if not p[i, j] > q[i, j] or narrow == 0:
                    continue
                ratio = narrow * log(p[i, j] / q[i, j])
                k = cells - 1 if not ratio < cells - 1 else <Py_ssize_t> ratio if ratio > 0 else 0
                for side in range(2):
                    mass = (q[i, j] if side else p[i, j]) - sums[side + 2, k]
                    before = sums[side, k]
                    sums[side, k] = before + mass
                    sums[side + 2, k] = (sums[side, k] - before) - mass
    return total[0], total[1]
