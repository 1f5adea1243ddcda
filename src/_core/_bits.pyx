"""Hockey hockey_stick of a sum of independent bits between the two values of one of them: shuffled randomized response, exactly.

Layer: one kernel ``noexcept nogil`` (declared in _bits.pxd), a ufunc for two groups, a function on arrays of groups.

Definition. S is the sum of the other users' bits, W its law; q = flip, p = 1 - q, E = e^eps. The ratio of S + Ber(q) to
S + Ber(p) decreases, so the best test is one threshold:
    H = max_k (p - q E) W(k) - (E - 1) Pr[S < k],
attained at the last k with W(k)/W(k-1) > rho = (p E - q)/(p - q E), which is the mode of the law tilted by e^theta = 1/rho.
Method. One inversion along the contour tilted by theta (no search for a tilt) gives W(k-1), W(k), W(k+1) and the strict
tail Pr[S < k], all relative to one exponential factor, for k next to the tilted mean; where the mode is a neighbour, a
second one there. The difference above is taken between these relative values: it loses about the square of the distance
in sigmas, that is |log H|, times 1e-16: a few ulp of the logarithm at most.
Error     the inversion's own bound (roundings at every node, nodes left out, aliasing) through that difference, and the
          roundings of p - q E and of the exponent; returned. Measured, relative to delta, less 4 ulp(log delta):
              every data of 1..12 users, exact fractions     1866 cases   peak 3.2e-14   rms 0.9e-15
              n = 100..1e6, delta 1e-2..1e-48, 30 digits     24 cases     peak 1.0e-13   rms 2.1e-14
          the returned bound held in all of them, and was 7e-13 at most.
Cost      about 4 us for two groups at any n, O(groups) otherwise.
Source    M. Zhilyaev, shuffled bits, Lemma 4.2 with its coefficient corrected; Darroch 1964 for the mode.
"""

from libc.math cimport INFINITY, NAN, exp, expm1, fabs, floor, log, sinh, sqrt
from libc.stdlib cimport free

from shufflebounds._core._constants cimport TWO_53, UNIT
from shufflebounds._core._dd cimport dd, dd_add, dd_make
from shufflebounds._core._lattice cimport (
    Geometric, Law, Node, Phi, Tilt, c_exponent, c_geometric_below, c_geometric_make, c_half_period, c_lattice_law, c_left_out,
    c_node, c_nodes_make,
)
from shufflebounds._core._ufunc cimport ufunc_of_pairs

cdef extern from "arithmetic.h" nogil:
    Py_ssize_t whole(double x, Py_ssize_t low, Py_ssize_t high)

cdef extern from "lattice.h" nogil:
    dd lattice_shift(const double *p, const double *q, const double *g, Py_ssize_t n, double a, double b, double c,
                     double *var)


cdef struct Local:
    double below        # W(k-1), W(k), W(k+1) and Pr[S < k], tilted to k and without the common factor
    double here
    double above
    double strict
    double error        # of the first three, absolute
    double strict_error


cdef void invert(const Law *law, const Tilt *tilt, Local *out) noexcept nogil:
    """Trapezoid of 2J nodes about k; below, above and strict are divided by e^(-theta), e^theta and 1, as the tilt has it.

    Pr[S < k] = sum_(i >= 1) e^(theta i) P_theta(k - i) with theta <= 0, cut at J terms as in _lattice.pyx.
    """
    cdef double slope = -tilt.theta, J = c_half_period(tilt.var, fabs(tilt.shift) + 1), half
    cdef double s, c, re, im, dr, di, norm, wr, wi, stray
    cdef double here = 0, even = 0, odd = 0, strict = 0, here_abs = 0, strict_abs = 0
    cdef Py_ssize_t m
    cdef Phi phi
    cdef Node at
    cdef Geometric sums
    c_geometric_make(slope, J, 1, &sums)
    half = c_nodes_make(law, tilt, &phi)
    for m in range(whole(J, 0, <Py_ssize_t> TWO_53) + 1):
        if not c_node(&phi, tilt, half, J, m, &at):
            break
        s, c, re, im = at.s, at.c, at.re, at.im
        here += re
        here_abs += at.size * at.rounding
        even += re * (1 - 2 * s * s)
        odd += im * 2 * s * c
        # the sum without its term at k: (keep e^(it) - (-1)^m cut)/(1 - keep e^(it))
        norm = c_geometric_below(&sums, &at, &dr, &di)
        if norm > 0:
            wr = sums.keep * (1 - 2 * s * s) - (-sums.cut if m & 1 else sums.cut)
            wi = sums.keep * 2 * s * c
            # (wr + i wi)/(dr + i di), times re + i im, real part
            strict += (re * (wr * dr + wi * di) - im * (wi * dr - wr * di)) / norm
            strict_abs += at.size * at.rounding * sqrt((wr * wr + wi * wi) / norm)
        else:
            strict += re * (J - 1)
            strict_abs += at.size * (J - 1) * at.rounding
    if phi.small:
        free(phi.heap)
    stray = c_left_out(tilt.var, half, J)
    out.here = here / (2 * J)
    out.below = (even - odd) / (2 * J)
    out.above = (even + odd) / (2 * J)
    out.strict = strict / (2 * J)
    out.error = stray + UNIT * here_abs / (2 * J)
    out.strict_error = stray * (1 / -sums.decay if slope * J > 1 else J) * sums.keep + UNIT * strict_abs / (2 * J)


cdef double c_bits_log_delta(const double *p, const double *q, const double *counts, Py_ssize_t groups,
                             double flip, double eps, double gap, double *error) noexcept nogil:
    cdef double keep = 1 - flip
    cdef double gain, loss, gain_error, rho, k, value, rounding, blur
    cdef Law law
    cdef Tilt tilt
    cdef Local at
    cdef dd mean
    cdef int attempt
    error[0] = 0
    if gap <= 0:
        return -INFINITY
    # p - q E and (p E - q)/(p - q E), E = e^eps, by the distance to the local budget eps + gap
    gain = -keep * expm1(-gap)
    gain_error = 8 * UNIT * gain
    loss = expm1(eps)
    rho = exp(eps) * expm1(-2 * eps - gap) / expm1(-gap)
    if groups == 0:
        value = log(gain)
        error[0] = gain_error / gain + UNIT * (8 + 4 * fabs(value))
        return value
    c_lattice_law(&law, p, q, counts, groups)
    tilt.theta = -log(rho)
    mean = dd_add(dd_make(law.mean, law.mean_lo),
                  lattice_shift(p, q, counts, groups, exp(0.5 * tilt.theta), exp(-0.5 * tilt.theta),
                                2 * sinh(0.5 * tilt.theta), &tilt.var))
    k = min(max(floor(mean.hi + 0.5), 0), law.trials)
    # Darroch: the mode lies within 1 of the mean
    for attempt in range(4):
        tilt.shift = (mean.hi - k) + mean.lo
        c_exponent(&law, tilt.theta, k, &tilt)
        invert(&law, &tilt, &at)
        if attempt == 3:
            break
        if at.above > at.here and k < law.trials:
            k += 1
        elif at.below >= at.here and k > 0:
            k -= 1
        else:
            break
    if k == 0:
        at.strict = 0
        loss = 0
    value = gain * at.here - loss * at.strict
    rounding = (gain_error * at.here + gain * (at.error + 4 * UNIT * at.here)
                + loss * (at.strict_error + 4 * UNIT * at.strict))
    # a tie misjudged costs gain |W(j) - rho W(j - 1)|: rho times a rounding where the next k, j = k + 1, is better
    blur = 2 * (at.error + 4 * UNIT * at.here) + at.here * (gain_error / gain + 8 * UNIT * (1 + fabs(tilt.theta)))
    if at.above > at.here - blur or at.below > at.here - blur:
        rounding += gain * blur * (max(rho, 1) if at.above > at.here - blur else 1)
    if value <= 2 * rounding:
        error[0] = INFINITY
        return tilt.exponent + log(gain * at.here)
    error[0] = (tilt.exponent_error + rounding / (value - rounding)
                + UNIT * (8 + 2 * fabs(tilt.exponent) + 4 * fabs(log(value)) + 8 * fabs(tilt.theta)))
    return tilt.exponent + log(value)


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
        out[0] = c_bits_log_delta(p, q, counts, known_bits(ones, zeros, flip, p, q, counts), flip, x[3], x[4], out + 1)


# gap = ln((1 - flip)/flip) - eps to an ulp: formed here, from a rounded budget, it would be off next to it
shuffled_bits_log_delta = ufunc_of_pairs(
    <void *> each_bits,
    "shuffled_bits_log_delta(ones, zeros, flip, eps, gap) -> (value, error): others hold ones and zeros, the target 0 against 1.")


def bits_log_delta(const double[::1] p, const double[::1] q, const double[::1] counts, double flip, double eps, double gap):
    """Return log delta of the target 0 against 1, and a bound of its absolute error; gap: the target's budget less eps, to an ulp.

    p, q, counts: the other bits' law in groups; counts is None where every group is one bit, which is faster.
    """
    cdef double error = 0, value
    cdef Py_ssize_t groups = p.shape[0]
    cdef const double *g = &counts[0] if counts is not None and groups else NULL
    with nogil:
        value = c_bits_log_delta(&p[0] if groups else NULL, &q[0] if groups else NULL, g, groups, flip, eps, gap, &error)
    return value, error
