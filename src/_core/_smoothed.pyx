"""Bounds of the expected positive part of a sum from smoothed sums, computed by Fourier inversion along a tilted contour.

    S is the sum and x_+ = max(0, x). The smoothing adds U ~ N(0, tau^2), independent of S; pdf and cdf are standard normal. With
    polynomials A and B, the effect of the smoothing at S = s is
    E(s+U)_+ - s_+ = tau g(|s|/tau), g(z) = pdf(z) - z cdf(-z), B(z) pdf(z) <= g(z) <= A(z) pdf(z)

Method   smoothing       A and B are sums c_k He_2k of Hermite polynomials, with the coefficients ABOVE and BELOW from linear
                         programs (tests/reference/sandwich.py; a test checks B <= g/pdf <= A).
                         E He_2k(S/tau) pdf(S/tau) is tau^(2k+1) f^(2k)(0), f the density of S + U
         trapezoid       the trapezoidal rule is applied to e^(K(s) + tau^2 s^2/2) times 1/s^2, or times s^2k, on the line
                         Re s = theta with K'(theta) = 2/theta, where K is the cumulant function of S. The period 2 pi/step is
                         increased until the aliasing error (c_alias) is a thousandth of rtol. In the upper bound x_+ is replaced by
                         a larger function, so that aliasing only increases the bound. In the lower bound the aliasing error is
                         subtracted
         maxima          |phi| may return to 1 (secondary maxima). Nodes are evaluated only outside of intervals on which
                         |phi| < e^-band is proven. The proof uses the standard deviations (c_stride), or that |phi| near 1 requires
                         nearly equal phases of all atoms (c_apart)
Bounds      docs/theorems/contours.md proves the error terms
Roundings   a model (ulp counts) bounds the errors of n arg phi, n log|phi| and the sum of nodes; `blur` bounds the error of K
Checked     as a part of _excess.pyx, whose header states errors and run time
Source   inversion: classical; the smoothing bounds and the step are derived above
"""

from libc.math cimport INFINITY, M_PI, atan2, cos, exp, expm1, fabs, floor, fmax, fmin, log, log1p, sin, sqrt
from libc.stdlib cimport free, malloc

import numpy as np

from shufflebounds._core._constants cimport UNIT
from shufflebounds._core._tilted cimport Cumulant, c_cumulant, c_lay_out, c_saddle, room_of

cdef extern from "excess.h" nogil:
    void excess_phi(const double *p, const double *y, Py_ssize_t n, double t, double reach, double *less, double *side)
    void excess_turned(const double *t, Py_ssize_t n, double y, double reach, const double *weights, Py_ssize_t rows, double *out)

cdef double SPARE = 7.0                           # aliasing and omitted nodes: about e^-SPARE rtol. Raised: more nodes
cdef double REACH = 7.0                           # nodes reach to this many standard deviations of the Gaussian factor
cdef double MORE_DEPTH = 31.0                     # -log of the omitted terms if the result is far below that of a Gaussian
cdef double MORE_REACH = 8.5                      # REACH if the result is far below that of a Gaussian
cdef double *ABOVE = [0.6482, -0.063716, 0.10414, 0.018912, 0.0024703]      # coefficients c_k of A
cdef double *BELOW = [0.4103, -0.1536, -0.01702, -0.007484, 0.0]            # coefficients c_k of B
cdef double *SIZES = [0.6482, 0.1536, 0.10414, 0.018912, 0.0024703]         # the larger |c_k| of both, for error bounds
cdef Py_ssize_t FEW = 16                          # atoms up to which c_apart takes less time than a node
cdef int TERMS = 5                                # number of coefficients


# The integrand at t without its Gaussian factor: log |phi|, arg phi, and the relative error of phi.
cdef struct Node:
    double t
    double log_abs
    double phase
    double error


cdef inline double c_angle(double square) noexcept nogil:
    """Returns a lower bound of arccos(r), r^2 = 1 + square: the first terms of 2 asin(y/2) with y^2 = 2 (1 - r), all positive."""
    cdef double z = -2 * square / (1 + sqrt(fmax(1 + square, 0)))
    return sqrt(fmax(z, 0)) * (1 + z * (1.0 / 24 + z * (3.0 / 640)))


cdef double c_stride(const Group *groups, Py_ssize_t number, const Turn *turns, double band) noexcept nogil:
    """Returns a distance in t over which |phi| is proven to stay below e^-band.

    arccos |phi_i(t)| is the angle between the states sqrt(p) and sqrt(p) e^(itx). Its rate of change is at most the standard
    deviation of group i (Fubini-Study metric).
    """
    cdef double best = 0, edge, low, high, middle, total
    cdef Py_ssize_t i
    cdef int _k
    for i in range(number):
        if groups[i].sd > 0:
            # arccos(e^-x) <= sqrt(2 x)
            best = fmax(best, (turns[i].angle - sqrt(2 * band / groups[i].count)) / groups[i].sd)
    if number == 1:
        return best
    low, high = best, 0
    for i in range(number):
        if groups[i].sd > 0:
            high = fmax(high, turns[i].angle / groups[i].sd)
    for _k in range(8):
        middle = 0.5 * (low + high)
        total = 0
        for i in range(number):
            edge = turns[i].angle - groups[i].sd * middle
            if edge > 0:
                total += groups[i].count * log(cos(edge))
        if total < -band:
            low = middle
        else:
            high = middle
    return low


cdef double c_apart(const Group *group, double t, double missing) noexcept nogil:
    """Returns a distance in t over which |phi_i|^2 is proven to stay below 1 - missing, for one group of at most FEW atoms.

    Let p be the largest mass and q the mass of another atom at the distance `gap` from it. Then |phi_i|^2 <= 1 - 4 p q sin^2(t
    gap/2). So |phi_i| is near 1 only if t is near a multiple of 2 pi/gap for every such atom. 1e-9 covers the rounding of the
    phase.
    """
    cdef double best = 0, left, edge, gap, turn
    cdef Py_ssize_t j, top = 0
    if group.seen > FEW:
        return 0
    for j in range(1, group.seen):
        top = j if group.p[j] > group.p[top] else top
    for j in range(group.seen):
        left, gap = 4 * group.p[top] * group.p[j] - missing, fabs(group.y[j] - group.y[top])
        if left > 0 and gap > 0:
            turn = 0.5 * t * gap / M_PI
            # asin(x) <= x/sqrt(1 - x^2)
            edge = sqrt(missing / left) + 1e-9 * (1 + turn)
            turn = M_PI * (turn - floor(turn))
            if turn >= edge:
                best = fmax(best, 2 * (M_PI - edge - turn) / gap)
    return best


cdef Py_ssize_t c_nodes(const Group *groups, Py_ssize_t number, double step, double last, double band, const Cumulant *at,
                        Node *nodes, Py_ssize_t most, Turn *turns, double *end, Py_ssize_t *used) noexcept nogil:
    """Write the nodes t = k step <= last with |phi| >= e^-band, with at most `most` evaluations of phi.

    used[0] is the number of evaluations. All such nodes below end[0] are included.
    """
    cdef double k = 0, t = 0, less, square, effort, jump
    cdef Py_ssize_t kept = 0, i
    cdef Node *node
    end[0] = last
    used[0] = 0
    while used[0] < most:
        t = k * step
        if t > last:
            break
        used[0] += 1
        node = &nodes[kept]
        node.t = t
        node.log_abs = 0
        for i in range(number):
            excess_phi(groups[i].p, groups[i].y, groups[i].seen, t, groups[i].reach, &turns[i].less, &turns[i].side)
            less = turns[i].less
            square = fmax(fmax(-2 * less + less * less + turns[i].side * turns[i].side, -2 * less), -1.0)
            turns[i].angle = c_angle(square)
            node.log_abs += 0.5 * groups[i].count * log1p(square)
        if node.log_abs < -band:
            jump = c_stride(groups, number, turns, band)
            if number == 1:
                jump = fmax(jump, c_apart(groups, t, -expm1(-2 * band / groups[0].count)))
            jump = floor(jump * (1 - 1e-9) / step)
            k += jump if jump > 1 else 1
            continue
        node.phase = t * at.slope
        effort = 0
        for i in range(number):
            square = atan2(turns[i].side, 1 - turns[i].less)
            node.phase += groups[i].count * square
            effort += groups[i].count * fabs(square)
        node.error = t * at.blur + UNIT * (8 + 2 * fabs(node.phase) + 2 * effort - 8 * node.log_abs)
        kept += 1
        k += 1
    else:
        end[0] = t
    return kept


cdef inline double real_part(const double *series, double re, double im, double cosine, double sine) noexcept nogil:
    """Returns Re e^(i phase) sum series[k] (re + i im)^k."""
    cdef double a = series[TERMS - 1], b = 0
    cdef int k
    for k in range(TERMS - 2, -1, -1):
        a, b = a * re - b * im + series[k], a * im + b * re
    return cosine * a - sine * b


cdef double c_sum(const Node *nodes, Py_ssize_t kept, double theta, double step, double tau, double reach, double band,
                  double alias, double *lower, double *upper) noexcept nogil:
    """Writes bounds of e^-K(theta) E S_+: bounds of E(S+U)_+ minus the largest and the smallest effect of smoothing by U.

    Returns the part of the gap between both bounds that is due to numerical errors.
    """
    cdef double total = 0, total_error = 0, most = 0, least = 0, error = 0, end = reach / tau, square = tau * tau, peak
    cdef double t, size, turn, cosine, sine, norm, less, weight = step / 6.283185307179586, left
    # rounding error of adding the terms
    cdef double sums = UNIT * (kept + 16)
    cdef Py_ssize_t i
    for i in range(kept):
        t = nodes[i].t
        if t > end:
            break
        size = exp(nodes[i].log_abs + 0.5 * square * (theta * theta - t * t)) * (2 if t > 0 else 1)
        turn = nodes[i].phase + square * theta * t
        cosine, sine = cos(turn), sin(turn)
        less, norm = theta * theta - t * t, theta * theta + t * t
        most += size * real_part(ABOVE, square * less, 2 * square * theta * t, cosine, sine)
        least += size * real_part(BELOW, square * less, 2 * square * theta * t, cosine, sine)
        error += size * real_part(SIZES, square * norm, 0, 1, 0) * (nodes[i].error + sums)
        size /= norm
        total += size * (cosine * less + sine * 2 * theta * t) / norm
        total_error += size * (nodes[i].error + sums)
    # Nodes with |phi| < e^-band or tau t > reach are omitted. At s = theta + i t, with v = tau |s| and left = e^(tau^2 theta^2/2),
    # an omitted term of the sums `most` and `least` is at most left^2 e^(-v^2/2) sum SIZES v^2k, which is below .66 left^2 and
    # falls like v^8 e^(-v^2/2) for v > reach.
    left = exp(0.5 * square * theta * theta)
    peak = exp(-0.5 * reach * reach)
    total_error = weight * total_error + left * (exp(-band) / (2 * theta) + peak / (end * reach))
    peak *= real_part(SIZES, reach * reach, 0, 1, 0)
    error = weight * error + left * left * (exp(-band) * end / 4
                                            + sqrt(1 + square * theta * theta) * peak * (1.2 / reach + tau * step) / tau / 3)
    upper[0] = weight * total + total_error - square * (weight * least - error)
    lower[0] = weight * total - total_error - square * (weight * most + error) - alias
    return 2 * total_error + 2 * square * error + alias


cdef double c_alias(Group *groups, Py_ssize_t number, double theta, double period, double depth,
                    const Cumulant *at) noexcept nogil:
    """Returns a bound of the aliasing error, the sum over m != 0 of e^(theta L m - K(theta)) E(S - L m)_+ with L = `period`.

    The bound uses (x)_+ <= e^(s x)/(e s) at s = theta +- d, where the number d is the best one for a Gaussian S. The factor 2
    covers rounding.
    """
    cdef Cumulant beside
    cdef double root = period * period - 2 * at.var * depth, total = 0, d
    d = (period - sqrt(fmax(root, 0))) / at.var if at.var * depth > 1e-6 * period * period else depth / period
    c_cumulant(groups, number, theta + d, False, &beside)
    total += exp(beside.value - at.value - d * period) / ((theta + d) * -expm1(-d * period))
    d = fmin(d, theta - 1 / period)
    if d <= 0:
        return INFINITY
    c_cumulant(groups, number, theta - d, False, &beside)
    total += exp(beside.value - at.value - d * period) / ((theta - d) * -expm1(-d * period))
    return 2 * total / 2.718281828459045 if total == total else INFINITY


# Limits of the nodes of a trapezoidal sum. With a larger value of any field, the gap is smaller and there are more nodes.
cdef struct Effort:
    double depth           # omitted terms are at most e^-depth times the result for a Gaussian
    double reach           # end of the nodes, in standard deviations of the Gaussian factor of U
    Py_ssize_t most        # largest number of evaluations of phi


cdef bint c_trapezoid(Group *groups, Py_ssize_t number, double theta, double tau, const Effort *effort, const Cumulant *at,
                      Node *nodes, Turn *turns, double *lower, double *upper, double *errors, Py_ssize_t *used) noexcept nogil:
    """Writes bounds of e^-K(theta) E S_+, and to errors[0] the part of their gap that is due to numerical errors.

    Returns whether effort.most evaluations of phi sufficed for this tau. If not, a larger tau was used.
    """
    cdef double wide = sqrt(theta * theta * at.var + 2), depth = effort.depth + log(wide), alias = INFINITY, step, end
    cdef double period = fmax(1.15 * (depth + 4) / theta, 1.1 * sqrt(2 * (depth + 4) * at.var))
    cdef Py_ssize_t kept, _try
    for _try in range(24):
        alias = c_alias(groups, number, theta, period, depth + 4, at)
        # compare with the saddle-point approximation of e^-K(theta) E S_+
        if alias * theta * 2.5066282746310002 * wide < exp(-effort.depth):
            break
        period *= 1.25
    step = 6.283185307179586 / period
    kept = c_nodes(groups, number, step, effort.reach / tau, depth, at, nodes, effort.most, turns, &end, used)
    errors[0] = c_sum(nodes, kept, theta, step, fmax(tau, effort.reach / end), effort.reach, depth, alias, lower, upper)
    return end >= effort.reach / tau


cdef int c_contour(Group *groups, Py_ssize_t number, double rtol, double enough, double work, Turn *turns,
                   double *lower, double *upper) noexcept nogil:
    """Writes bounds of log E S_+ by the trapezoidal rule.

    Returns 1, or 0 if the limit of nodes was reached, or -1 if there was no memory.
    """
    cdef Cumulant at
    cdef double theta = c_saddle(groups, number, True, &at), tau, low, high, least, most, errors, slack
    cdef Py_ssize_t i, size = 0, used
    cdef bint all_nodes
    cdef int _k
    cdef Node *nodes
    cdef Effort effort
    lower[0], upper[0] = -INFINITY, INFINITY
    if theta == INFINITY:
        # all positive values have masses that underflow
        return 0
    for i in range(number):
        size += groups[i].seen
    effort.depth, effort.reach, effort.most = SPARE - log(rtol), REACH, <Py_ssize_t> fmin(fmax(work / size, 2048), 4e5)
    nodes = <Node *> malloc((effort.most + 1) * sizeof(Node))
    if nodes == NULL:
        return -1
    # the tau for which the smoothing bounds (A and B in the header) differ by a relative rtol
    tau = sqrt(rtol / (ABOVE[0] - BELOW[0])) / theta
    all_nodes = c_trapezoid(groups, number, theta, tau, &effort, &at, nodes, turns, &low, &high, &errors, &used)
    if high - low > rtol * high and errors > 0.25 * (high - low):
        # The result is far below that for a Gaussian, and the gap is due to omitted terms, so only smaller terms are omitted now.
        effort.depth, effort.reach = fmax(MORE_DEPTH, effort.depth + 3), MORE_REACH
        all_nodes = c_trapezoid(groups, number, theta, tau, &effort, &at, nodes, turns, &low, &high, &errors, &used)
    # Every further sum takes at most four times as long as the first.
    effort.most = min(effort.most, 4 * used)
    for _k in range(3):
        if not (high - low > enough * high and all_nodes):
            break
        if errors <= 0.25 * (high - low):
            # The gap is due to the smoothing, because the density of S at 0 is above that of a Gaussian. It decreases like tau^2,
            # or like tau if S has an atom near 0. tau is divided by at most 64, because a smaller tau might need far more nodes
            # than the last step.
            tau *= fmax(sqrt(0.5 * enough * high / (high - low)), 1.0 / 64)
        elif effort.depth < MORE_DEPTH:
            effort.depth = fmin(effort.depth + 1 + log(errors / (0.125 * enough * high)), MORE_DEPTH)
        else:
            # the remaining errors are roundings, which more nodes do not reduce
            break
        all_nodes = c_trapezoid(groups, number, theta, tau, &effort, &at, nodes, turns, &least, &most, &errors, &used)
        low, high = fmax(low, least), fmin(high, most)
    free(nodes)
    # `slack` bounds the error of K(theta) that is caused by errors of a few ulp in the given values and masses
    slack = theta * at.blur + 4 * UNIT * (2 + fabs(at.value))
    lower[0] = at.value + log(low) - slack if low > 0 else -INFINITY
    upper[0] = at.value + log(high) + slack if high > 0 else INFINITY
    return all_nodes


def sandwich():
    """Return ABOVE and BELOW, the coefficients of the polynomials A and B, and SIZES; a test checks B <= g/pdf <= A."""
    return [ABOVE[i] for i in range(TERMS)], [BELOW[i] for i in range(TERMS)], [SIZES[i] for i in range(TERMS)]


def tilted_nodes(const double[::1] values, const double[::1] log_mass, double count, double theta, double step, double last,
                 Py_ssize_t most):
    """Return nodes of the characteristic function of a sum of `count` users tilted by theta, where it is not proven negligible.

    Parameters
    ----------
    values, log_mass : ndarray
        Values and log probabilities of one user. The probabilities, including that of the value 0, sum to 1.
    count, theta : float
        Number of users, and the tilt > 0.
    step, last : float
        Distance between nodes, and the largest t.
    most : int
        Largest number of evaluations.

    Returns
    -------
    (ndarray, float, float, float)
        An array with the columns t, log |phi|, arg phi and a bound of the relative error; the t up to which every node with |phi|
        above e^-40 is included; K(theta); and the rounding error of K(theta) divided by theta.
    """
    cdef Py_ssize_t atoms = values.shape[0], kept
    cdef double[::1] room = np.empty(room_of(atoms))
    cdef double[:, ::1] out = np.empty((most + 1, 4))
    cdef double end = 0
    cdef Py_ssize_t used = 0
    cdef Cumulant at
    cdef Group group
    cdef Turn turn
    with nogil:
        # the values are not scaled: the caller's theta times the values is moderate
        c_lay_out(&group, &values[0], &log_mass[0], atoms, 0, count, &room[0])
        c_cumulant(&group, 1, theta, True, &at)
        kept = c_nodes(&group, 1, step, last, 40, &at, <Node *> &out[0, 0], most, &turn, &end, &used)
    return np.asarray(out)[:kept], end, at.value, at.blur


def turned_sums(const double[::1] y, const double[::1] t, const double[:, :, ::1] weights):
    """Return sum_j Re e^(i t_j y) (weights[0, r, j] + i weights[1, r, j]), with a row for each y and a column for each r.

    The error has two parts: that of the angles, an ulp of t_j y, and 16 + n ulp of the sum of the absolute values of the weights,
    for n frequencies t >= 0.
    """
    cdef double[:, ::1] out = np.empty((y.shape[0], weights.shape[1]))
    cdef Py_ssize_t i, n = t.shape[0]
    cdef double reach = np.max(t, initial=0.0)
    if weights.shape[0] != 2 or weights.shape[2] != n:
        raise ValueError(f"weights must have the shape (2, rows, {n}), got {weights.shape[0], weights.shape[1], weights.shape[2]}")
    if n and weights.shape[1]:
        with nogil:
            for i in range(y.shape[0]):
                excess_turned(&t[0], n, y[i], reach, &weights[0, 0, 0], weights.shape[1], &out[i, 0])
    else:
        out[:] = 0
    return np.asarray(out)
