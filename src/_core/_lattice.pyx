"""Sums of independent Bernoulli variables, by Fourier inversion along an exponentially tilted contour.

    S = sum_j Bin(g_j, p_j):    Pr[S = k] = e^(K(theta) - k theta) 1/(2 pi) int phi_theta(t) e^(-i t k) dt,
    K(theta) = sum_j g_j log(q_j + p_j e^theta); Pr[S >= k] has the factor 1/(1 - e^(-(theta + i t))) in the integrand.

Layer: scalar kernels ``noexcept nogil`` declared in _lattice.pxd, the passes over the data in lattice.h; _blocks.pyx
makes single points and blocks of points available to Python.

Checked by the caller: 0 < p < 1 (subnormals too), counts integers >= 1 of total n <= 2**53, k an integer.
Ranges   k = 0, n; Pr[S >= 1], Pr[S < n]   closed forms: the tilt would be infinite
         otherwise    K'(theta) = k within 0.02 sigma; trapezoidal rule with 2J ~ 19 sigma + 30 nodes, of which those with
                      2 sigma^2 sin^2(t/2) <= 43 are evaluated (about 28 in half a period if sigma is large)
         tails        the smaller tail; a tail above e^-0.5 as 1 minus the other, a pmf above e^-0.2 as 1 minus the tails
                      below and above k: there the logarithm is small, and its relative error matters

Measured error of log p (pmf and both tails), in units of 1e-13 min(1, |log p|) + 2.2e-16 |log p|, against python-flint
(512 bits: products of polynomials, ratios of neighbours; 420 bits: the incomplete beta integral). The probabilities p are
uniform, log-uniform down to 1e-320, up to 1 - 1e-16, mixtures of both, or equal; k = 0, 1, 2, n-2, n-1, n and between.

    domain                                          trials    peak    rms
    n <= 600, log p down to -4e5                    15000     1.7     0.12
    one group, n = 10..1e15                         864       0.8     0.17
    two groups, n = 1e6..1e12, to 440 sigma         24        0.5     0.16
    distinct p, n = 16..8192                        446       0.6     0.11
    distinct p, n = 9000, log p down to -11000      600       0.9     0.24    (113-bit direct convolution)
    distinct p, n = 1e5, 1e6, to 430 sigma          682       0.7     0.13    (against the same distribution in groups)

In all of these trials the error was at most rel_error plus 4 ulp of the logarithm. rel_error is the sum of the error terms of
docs/theorems/contours.md; roundings are a model (ulp counts times magnitudes), not interval arithmetic: 20 for each node, those of
log phi, and those of the tilted mean. Sums over nodes are compensated.

Cost     4.6 us for one group, 5.6 us for two (any n); 0.016 ms for 1000 p, 0.07 ms for 1e4, 0.7 ms for 1e5, 8 ms for 1e6 (AVX2)
         (within 10 sigma tails/ takes the series of _blocks.pyx)
Source   tilt and inversion: classical (Daniels 1954; Hong 2013 without the tilt); deviances: Loader 2000
"""

from libc.math cimport INFINITY, M_PI, NAN, atan, atan2, ceil, cos, exp, expm1, fabs, floor, log, log1p, sin, sinh, sqrt
from libc.stdlib cimport free, malloc

from shufflebounds._core._constants cimport BAND, UNIT
from shufflebounds._core._dd cimport dd, dd_accumulate, dd_add, dd_fast_sum, dd_make, dd_mul_d, dd_neg, dd_prod, dd_sum
from shufflebounds._core._special cimport c_deviance, c_deviance_dd, c_log1mexp

cdef extern from "arithmetic.h" nogil:
    Py_ssize_t whole(double x, Py_ssize_t low, Py_ssize_t high)

cdef extern from "lattice.h" nogil:
    const int LATTICE_CHUNK
    const int LATTICE_ORDERS
    const int LATTICE_SMALL
    Py_ssize_t lattice_fill(const double *p, const double *q, const double *g, Py_ssize_t n, double a, double b,
                            double c, double *x, double *y, double *d, double *w)
    dd lattice_shift(const double *p, const double *q, const double *g, Py_ssize_t n, double a, double b, double c,
                     double *var)
    dd lattice_tilted_mean(const double *p, const double *q, const double *g, Py_ssize_t n, double theta, dd mean, dd change,
                           double *blur)
    dd lattice_mean(const double *p, const double *q, const double *g, Py_ssize_t n, double *count, double *var)
    void lattice_sums(const double *p, const double *q, const double *g, Py_ssize_t n, double a, double b, double c,
                      int orders, Interrupted interrupted, double *even, double *odd)
    Py_ssize_t lattice_split(const double *p, const double *q, const double *g, Py_ssize_t n, double a, double b,
                             double c, Interrupted interrupted, double *low, double *high, double *mx, double *my, double *mg,
                             Py_ssize_t room)
    bint lattice_leave(Interrupted interrupted, Py_ssize_t done)
    const double LATTICE_TINY
    int vectors_level()
    void lattice_log(int level, const double *p, const double *q, Py_ssize_t n, double theta, Interrupted interrupted, dd *total)

cdef Py_ssize_t FEW = 24                          # up to FEW groups are evaluated one by one at every node (Phi.near: 3 * FEW)
cdef enum:
    # Groups of which the search for a tilt starts from a sample, where there are 16 times as many: about six passes over the sample
    # save one or two over all of them.
    SAMPLE = 2048
# Limit of the number of nodes of one inversion. It is never reached: the half period J (c_half_period) is at most
# 12 sigma + 16 + reach, which is below 2**53 for n <= 2**53.
cdef Py_ssize_t MOST_NODES = 1 << 53


# ---------------------------------------------------------------------------------------------------------------- tilt

cdef void c_lattice_law(Law *law, const double *p, const double *q, const double *counts,
                        Py_ssize_t groups) noexcept nogil:
    """Fill in a Law: mean (as a double-double), variance and number of trials."""
    law.p = p
    law.q = q
    law.counts = counts
    law.groups = groups
    law.interrupted = NULL
    cdef dd mean = lattice_mean(p, q, counts, groups, &law.trials, &law.var)
    law.mean, law.mean_lo = mean.hi, mean.lo


cdef inline double deviance(double m, double d) noexcept nogil:
    """Returns x log(x/m) - d at x = m + d, for 0 < m < 1 and 0 <= x < 1. The rounding error of x is corrected."""
    cdef dd x = dd_sum(m, d), part
    cdef double r, rest, log_r
    if x.hi <= 0:
        return -d
    if fabs(d) <= (x.hi + m) / 3:
        return c_deviance(x.hi, m, d)
    if m < 1e-270 or x.hi < 1e-270:
        return x.hi * (log(x.hi) - log(m)) - d
    r = x.hi / m
    part = dd_prod(r, m)
    rest = (x.hi - part.hi) - part.lo + x.lo
    log_r = log(r)
    part = dd_prod(x.hi, log_r)
    return (part.hi - d) + (part.lo + rest + x.lo * log_r)


cdef inline dd divergence(double p, double q, double x, double y, dd *d) noexcept nogil:
    """Returns kl(x || p) with relative error about 2**-60, and the exact d = x - p, for the smaller of the doubles x and y = 1 - x.

    The smaller of p and q is exact, too; the rounding error of the larger is corrected.
    """
    cdef double lo = 0, part, rest, p_lo = 0, q_lo = 0
    cdef dd total
    # the larger of p and q is at least 1/2, so 1 minus it is exact in doubles
    if p > q:
        p_lo = (1 - p) - q
    else:
        q_lo = (1 - q) - p
    if x <= y:
        d[0] = dd_sum(x, -p)
        d[0] = dd_fast_sum(d[0].hi, d[0].lo - p_lo)
        rest = (1 - y) - x
    else:
        d[0] = dd_sum(q, -y)
        d[0] = dd_fast_sum(d[0].hi, d[0].lo + q_lo)
        rest = (1 - x) - y
    part = c_deviance_dd(x, p, p_lo, d[0].hi, d[0].lo, &lo)
    total = dd_make(part, lo)
    part = c_deviance_dd(y, q, q_lo, -d[0].hi, -d[0].lo, &lo)
    total = dd_add(total, dd_make(part, lo))
    # the larger of x and y is rounded: where c_deviance_dd uses a logarithm, its rounding error is added here
    if x <= y:
        if fabs(d[0].hi) > 0.03125 * (y + q):
            total = dd_add(total, dd_make(rest * (1 + log(y / q)), 0))
    elif fabs(d[0].hi) > 0.03125 * (x + p):
        total = dd_add(total, dd_make(rest * (1 + log(x / p)), 0))
    return total


cdef void c_exponent(const Law *law, double theta, double k, Tilt *tilt) noexcept nogil:
    """Compute K(theta) - k theta.

    Without multiplicities it is the logarithm of a product (lattice_log) minus k theta, in double-double.

    Otherwise, and for |theta| > 700, it is theta shift - sum g kl(x || p) over the groups of g trials with equal p. There x is the
    tilted probability of a trial, and shift = sum g x - k. The deviances kl(x || p) are not negative, so their sum has no
    cancellation, however large g is. If the shift is computed from the rounded x, the expression is stationary in x at fixed theta,
    so that rounding x has an effect of second order only.
    """
    cdef double[256] x, y, d, w
    cdef double a = exp(0.5 * theta), b = exp(-0.5 * theta), c = 2 * sinh(0.5 * theta)
    cdef Py_ssize_t start = 0, size, i
    cdef dd total = dd_make(0, 0), shift = dd_add(dd_make(law.mean, law.mean_lo), dd_make(-k, 0)), term, change
    cdef double p, q, lost = 0
    if law.counts == NULL and fabs(theta) <= 700:
        lattice_log(vectors_level(), law.p, law.q, law.groups, theta, law.interrupted, &total)
        total = dd_add(total, dd_prod(theta, law.trials - k if theta < 0 else -k))
        tilt.exponent = total.hi
        tilt.exponent_error = UNIT * (fabs(total.hi) + 2)
        return
    while start < law.groups and not lattice_leave(law.interrupted, start):
        size = min(law.groups - start, <Py_ssize_t> LATTICE_CHUNK)
        lattice_fill(law.p + start, law.q + start if law.q != NULL else NULL,
                     law.counts + start if law.counts != NULL else NULL, size, a, b, c, x, y, d, w)
        for i in range(size):
            p = law.p[start + i]
            q = law.q[start + i] if law.q != NULL else 1 - p
            if min(x[i], y[i]) > LATTICE_TINY and min(p, q) > LATTICE_TINY:
                term = divergence(p, q, x[i], y[i], &change)
            else:
                term = dd_make(deviance(p, d[i]) + deviance(q, -d[i]), 0)
                change = dd_make(d[i], 0)
                lost += 10 * w[i] * term.hi
            total = dd_add(total, dd_mul_d(term, w[i]))
            shift = dd_add(shift, dd_mul_d(change, w[i]))
        start += size
    # tilt.shift keeps its value: the inversion needs the mean at the exact tilt, not that of the rounded x.
    total = dd_add(dd_mul_d(shift, theta), dd_neg(total))
    tilt.exponent = total.hi
    tilt.exponent_error = UNIT * (fabs(total.hi) + lost)


cdef double first_tilt(const Law *law, double k) noexcept nogil:
    """Returns the tilt that moves the mean of SAMPLE groups as far, in relation to their trials, as k is from the mean of all."""
    cdef double[SAMPLE] p, q, counts
    cdef Py_ssize_t i, step = law.groups // SAMPLE
    cdef Law part
    cdef Tilt tilt
    for i in range(SAMPLE):
        p[i] = law.p[i * step]
        q[i] = law.q[i * step] if law.q != NULL else 0
        counts[i] = law.counts[i * step] if law.counts != NULL else 1
    c_lattice_law(&part, p, q if law.q != NULL else NULL, counts if law.counts != NULL else NULL, SAMPLE)
    k = part.mean + (k - law.mean) * (part.trials / law.trials)
    if not 0 < k < part.trials:
        return 0
    c_lattice_tilt(&part, k, 0.02, &tilt)
    return tilt.theta


cdef int c_lattice_tilt(const Law *law, double k, double tolerance, Tilt *tilt) noexcept nogil:
    """Find theta with |K'(theta) - k| <= tolerance max(1, sigma); write it with the tilted shift, variance and exponent to tilt.

    The search makes Newton steps on logit(K'(theta)/n) inside a bracket. This function is linear in theta for one group, and has a
    slope in (0, 1] for any number of groups. The caller has checked: 0 < k < n. Returns the number of steps.
    """
    cdef double low = -1400, high = 1400, theta = 0, var = law.var, mean, slope, step
    cdef dd gap = dd_add(dd_make(law.mean, law.mean_lo), dd_make(-k, 0)), shift = gap
    cdef int steps = 0
    while fabs(shift.hi) > tolerance * (1 if var < 1 else sqrt(var)) and steps < 200:
        steps += 1
        if shift.hi > 0:
            high = theta
        else:
            low = theta
        mean = k + shift.hi
        step = INFINITY
        if steps == 1 and law.groups >= 16 * SAMPLE:
            step = first_tilt(law, k)
        elif 0 < mean < law.trials and var > 0:
            slope = var * law.trials / (mean * (law.trials - mean))
            step = (log1p(-shift.hi / mean) - log1p(shift.hi / (law.trials - mean))) / slope
        theta += step
        if not (low < theta < high):
            theta = 0.5 * (low + high)
        shift = dd_add(gap, lattice_shift(law.p, law.q, law.counts, law.groups, exp(0.5 * theta), exp(-0.5 * theta),
                                          2 * sinh(0.5 * theta), &var))
        if low == high or law.interrupted != NULL and law.interrupted():
            break
    tilt.theta = theta
    shift = lattice_tilted_mean(law.p, law.q, law.counts, law.groups, theta, dd_make(law.mean, law.mean_lo),
                                dd_add(shift, dd_neg(gap)), &tilt.blur)
    tilt.shift = dd_add(shift, dd_make(-k, 0)).hi
    tilt.var = var
    c_exponent(law, theta, k, tilt)
    return steps


cdef double c_lattice_tilted(const Law *law, double theta, Tilt *tilt) noexcept nogil:
    """Write the distribution tilted by theta, |theta| <= 1, with exponent K(theta); returns the integer k next to its mean."""
    cdef double k, more = expm1(theta)
    cdef dd mean = lattice_shift(law.p, law.q, law.counts, law.groups, exp(0.5 * theta), exp(-0.5 * theta), 2 * sinh(0.5 * theta),
                                 &tilt.var), total = dd_make(0, 0)
    cdef Py_ssize_t j
    mean = lattice_tilted_mean(law.p, law.q, law.counts, law.groups, theta, dd_make(law.mean, law.mean_lo), mean, &tilt.blur)
    k = floor(mean.hi + 0.5)
    tilt.theta = theta
    tilt.shift = dd_add(mean, dd_make(-k, 0)).hi
    if law.counts == NULL:
        c_exponent(law, theta, 0, tilt)
        return k
    # Each term, of one sign, has a relative error of at most 8 UNIT: 1 + p expm1(theta) >= 1/e does not cancel.
    for j in range(law.groups):
        total = dd_add(total, dd_prod(law.counts[j], log1p(law.p[j] * more)))
    tilt.exponent = total.hi
    tilt.exponent_error = 8 * UNIT * fabs(total.hi)
    return k


# ------------------------------------------------------------------------------------------- characteristic function

cdef int c_orders(double var, double depth) noexcept nogil:
    """Returns the number of orders of the series in w and delta for nodes z = theta + i t, |theta| sigma <= depth.

    With v = (sigma t)^2, the terms beyond m orders, times |phi| = e^(-v/2), are at most
    2 sigma^2 r^(m+1) e^(-v/2)/(m+1), r = tan^2 of half of |z|. The largest is at v = 2(m+1) - depth^2 or at v = 0.
    """
    cdef int m
    cdef double v, r
    for m in range(2, LATTICE_ORDERS, 2):
        v = max(2 * (m + 1) - depth * depth, 0.0)
        r = (depth * depth + v) / (4 * var)
        r /= max(1 - r, 0.1)
        if log(2 * var / (m + 1)) + (m + 1) * log(r) - 0.5 * v < -36.5:
            return m
    return LATTICE_ORDERS


cdef void c_phi_make(const Law *law, double theta, double var, double half, Phi *phi) noexcept nogil:
    """Choose the form of log phi for nodes |sin(t/2)| <= half, and compute its sums in one pass over the data.

    At most 24 groups          one by one
    tan(t/2)^2 < 1/2           series, with T = tan(t/2), S = sin(t/2), w = 4xy, delta = x - y:
                               log|phi| = -1/2 sum_m S^2m/m sum_j g w^m,
                               arg phi = sum_m (-1)^(m+1) T^(2m+1)/(2m+1) sum_j g delta (1 - delta^2m)
    otherwise                  sigma < 8.1: sums of x^m over x < 1/8, of y^m over y < 1/8; at most 9.2 sigma^2 other groups
    """
    cdef double a = exp(0.5 * theta), b = exp(-0.5 * theta), c = 2 * sinh(0.5 * theta)
    cdef double ratio = half * half / (1 - half * half) if half < 1 else INFINITY
    cdef double[256] d
    cdef Py_ssize_t room
    phi.orders = phi.small = 0
    phi.middle = 0
    phi.heap = NULL
    phi.x = phi.near
    phi.y = phi.near + 24
    phi.g = phi.near + 48
    if law.groups <= FEW:
        # lattice_fill pads to a multiple of 8, and 24 is one
        lattice_fill(law.p, law.q, law.counts, law.groups, a, b, c, phi.x, phi.y, d, phi.g)
        phi.middle = law.groups
    elif ratio < 0.5:
        phi.orders = c_orders(var, 0)
        lattice_sums(law.p, law.q, law.counts, law.groups, a, b, c, phi.orders, law.interrupted, phi.even, phi.odd)
    else:
        phi.small = LATTICE_SMALL
        room = law.groups if 9.2 * var + 16 >= law.groups else whole(9.2 * var, 0, law.groups) + 16
        phi.heap = <double *> malloc(3 * room * sizeof(double))
        phi.x = phi.heap
        phi.y = phi.heap + room
        phi.g = phi.heap + 2 * room
        if phi.heap == NULL:
            phi.low[0] = NAN                    # out of memory: every answer is NaN, the error bound too
        else:
            phi.middle = lattice_split(law.p, law.q, law.counts, law.groups, a, b, c, law.interrupted, phi.low, phi.high,
                                       phi.x, phi.y, phi.g, room)
            phi.middle = min(phi.middle, room)


cdef inline double atan_rest(double v) noexcept nogil:
    """Returns atan(v) - v without cancellation for small v."""
    cdef double w = v * v, s
    if w > 0.12:
        return atan(v) - v
    if w < 1e-3:
        s = 1 / 5.0 - w * (1 / 7.0 - w * (1 / 9.0 - w * (1 / 11.0 - w / 13.0)))
    else:
        s = 1 / 19.0 - w * (1 / 21.0 - w * (1 / 23.0 - w * (1 / 25.0 - w * (1 / 27.0 - w * (
            1 / 29.0 - w * (1 / 31.0 - w * (1 / 33.0 - w / 35.0)))))))
        s = 1 / 5.0 - w * (1 / 7.0 - w * (1 / 9.0 - w * (1 / 11.0 - w * (1 / 13.0 - w * (
            1 / 15.0 - w * (1 / 17.0 - w * s))))))
    return -v * w * (1 / 3.0 - w * s)


cdef inline double sin_rest(double t) noexcept nogil:
    """Returns sin(t) - t without cancellation for small t."""
    cdef double w = t * t
    if w > 1:
        return sin(t) - t
    return -t * w / 6 * (1 - w / 20 * (1 - w / 42 * (1 - w / 72 * (1 - w / 110 * (1 - w / 156 * (
        1 - w / 210 * (1 - w / 272)))))))


cdef void c_phi_at(const Phi *phi, double t, double s, double c, double *log_abs, double *phase,
                   double *effort) noexcept nogil:
    """Compute log|phi(t)| and arg phi(t), centred at the mean, for s = sin(t/2), c = cos(t/2), 0 <= t <= pi.

    One group, with delta = x - y and T = tan(t/2): log|phi| = log1p(-4xy s^2)/2, or log(c^2 + (delta s)^2)/2 where that
    cancels. For a fair coin the latter tends to log 0, so its argument is kept above 1e-31; effort contains that error.
    |delta| <= 1/2   arg = (atan(delta T) - delta T) - delta (atan(T) - T)
    otherwise        arg = (atan(r) - r) + u ((sin t - t) + 2 u s^2 t)/(1 - 2 u s^2),
                     r = u sin t/(1 - 2 u s^2), u = min(x, y)
    The rounding errors of log|phi| and arg are below 4 ulp of effort, the sum of the magnitudes of the terms.
    """
    cdef double s2 = s * s, total = 0, turn = 0, part, delta, u, v, sine = 2 * s * c, rest = sin_rest(t), tangent, bend
    cdef double re, im, hold, ur, ui, spent = 0, wide = 2 * t if t > 0.6 else 0
    cdef Py_ssize_t j
    cdef int m
    if phi.orders:
        part = 0
        for m in range(phi.orders, 0, -1):
            part = part * s2 + phi.even[m - 1] / m
        total = -0.5 * s2 * part
        tangent = s / c
        v = tangent * tangent
        part = 0
        for m in range(phi.orders, 0, -1):
            part = phi.odd[m - 1] / (2 * m + 1) - v * part
        turn = tangent * v * part
        log_abs[0] = total
        phase[0] = turn
        effort[0] = fabs(total) + fabs(turn)
        return
    if phi.small:
        ur = -2 * s2
        ui = sine
        re = im = 0
        for m in range(phi.small, 1, -1):
            # (re, im) is the value of a polynomial by Horner's rule; its coefficients are low + high here, and low - high below
            part = (phi.low[m - 1] + phi.high[m - 1]) / m
            hold = part - (re * ur - im * ui)
            im = -(re * ui + im * ur)
            re = hold
        total = (phi.low[0] + phi.high[0]) * ur - (re * (ur * ur - ui * ui) - im * (2 * ur * ui))
        re = im = 0
        for m in range(phi.small, 1, -1):
            part = (phi.low[m - 1] - phi.high[m - 1]) / m
            hold = part - (re * ur - im * ui)
            im = -(re * ui + im * ur)
            re = hold
        turn = (phi.low[0] - phi.high[0]) * rest - (re * (2 * ur * ui) + im * (ur * ur - ui * ui))
        spent = fabs(turn) + wide * (phi.low[0] + phi.high[0])
    if c > 0.7:
        tangent = s / c
        bend = atan_rest(tangent)
    for j in range(phi.middle):
        v = -4 * phi.x[j] * phi.y[j] * s2
        delta = phi.x[j] - phi.y[j]
        if v > -0.5:
            total += 0.5 * phi.g[j] * log1p(v)
        else:
            v = max(c * c + delta * delta * s2, 1e-31)
            total += 0.5 * phi.g[j] * log(v)
            spent += phi.g[j] / sqrt(v)
        if fabs(delta) <= 0.5:
            if c > 0.7:
                part = atan_rest(delta * tangent) - delta * bend
            else:
                part = atan2(delta * s, c) - 0.5 * delta * t
        else:
            u = phi.x[j] if delta < 0 else phi.y[j]
            v = 1 / (1 - 2 * u * s2)
            part = atan_rest(u * sine * v) + u * (rest + 2 * u * s2 * t) * v
            if delta > 0:
                part = -part
        turn += phi.g[j] * part
        spent += phi.g[j] * (fabs(part) + wide * min(phi.x[j], phi.y[j]))
    log_abs[0] = total
    phase[0] = turn
    effort[0] = fabs(total) + spent


# ----------------------------------------------------------------------------------------------------------- one point

cdef struct Inverted:
    double pmf                  # relative to exp(exponent)
    double tail                 # relative to exp(exponent)
    double pmf_error            # absolute error bound of pmf
    double tail_error           # absolute error bound of tail


cdef double c_half_period_within(double var, double reach, double band) noexcept nogil:
    """Returns J such that the tilted mass farther than J from a point within `reach` of the mean is at most 2 e^-band.

    Bennett: Pr[|S - m| >= a] <= 2 exp(-sigma^2 h(a/sigma^2)), h(u) = (1+u) log(1+u) - u. At a = 9.4 sigma + 15 this
    bound is e^-43, and 43 is the largest `band`. The logarithm under the root makes the omitted mass smaller by a factor 1/sigma,
    because the probabilities themselves have the size 1/sigma.
    """
    return ceil(sqrt(var * (2 * band + 2.4 + 2 * log1p(sqrt(var)))) + 15 + reach)


cdef double c_left_out_within(double var, double half, double J, double band) noexcept nogil:
    """Returns a bound of the sum over the omitted nodes plus the tilted mass farther than J, half the number of nodes, from k.

    The bound uses |phi| <= exp(-2 sigma^2 sin^2(t/2)), separately for sin^2 below and above 3/4. Below 3/4 the integral over the
    omitted nodes is at most e^-band/(pi sigma sqrt(band/2)): less than 0.1 e^-band/sigma for a band of at least 21.
    """
    cdef double nodes = 0
    if half < 1:
        nodes = exp(-band) * (2 / J + 0.1 / sqrt(var)) + exp(-1.5 * var) if var > 29 else exp(-band)
    return nodes + 4 * exp(-band) / (1 + sqrt(var))


cdef double c_half_within(double var, double band) noexcept nogil:
    return sqrt(0.5 * band / var) if var > 0.5 * band else 1.0


cdef double c_half_period(double var, double reach) noexcept nogil:
    return c_half_period_within(var, reach, BAND)


cdef double c_left_out(double var, double half, double J) noexcept nogil:
    return c_left_out_within(var, half, J, BAND)


cdef double c_half(double var) noexcept nogil:
    return c_half_within(var, BAND)


cdef bint c_place(double half, double J, Py_ssize_t m, Node *at) noexcept nogil:
    at.t, at.s, at.c, at.weight = M_PI, 1, 0, 1
    if m != J:
        at.t = M_PI * m / J
        at.s, at.c, at.weight = sin(0.5 * at.t), cos(0.5 * at.t), 2 if m else 1
    return at.s <= half


cdef void c_fill(double log_abs, double phase, double effort, Node *at) noexcept nogil:
    at.size = at.weight * exp(log_abs)
    at.re = at.size * cos(phase)
    at.im = at.size * sin(phase)
    # 5 roundings of exp, cos and sin, 10 of the weight of a tail, 3 of products and 2 of the node
    at.rounding = 20 + 4 * effort + 2 * fabs(phase)


cdef double c_nodes_make_within(const Law *law, const Tilt *tilt, double band, Phi *phi) noexcept nogil:
    cdef double half = c_half_within(tilt.var, band)
    c_phi_make(law, tilt.theta, tilt.var, half, phi)
    return half


cdef double c_nodes_make(const Law *law, const Tilt *tilt, Phi *phi) noexcept nogil:
    return c_nodes_make_within(law, tilt, BAND, phi)


cdef bint c_node(const Phi *phi, const Tilt *tilt, double half, double J, Py_ssize_t m, Node *at) noexcept nogil:
    cdef double log_abs, phase, effort
    if not c_place(half, J, m, at):
        return False
    c_phi_at(phi, at.t, at.s, at.c, &log_abs, &phase, &effort)
    c_fill(log_abs, phase + at.t * tilt.shift, effort, at)
    at.rounding += at.t * tilt.blur
    return True


cdef void c_geometric_make(double slope, double J, double toward, Geometric *out) noexcept nogil:
    out.J, out.keep, out.decay, out.toward = J, exp(-slope), expm1(-slope), toward
    out.cut, out.whole = exp(-slope * J), -expm1(-slope * J)


cdef double c_geometric_below(const Geometric *sum, const Node *at, double *re, double *im) noexcept nogil:
    re[0] = -sum.decay + 2 * sum.keep * at.s * at.s
    im[0] = -sum.toward * 2 * sum.keep * at.s * at.c
    return re[0] * re[0] + im[0] * im[0]


cdef void c_geometric_times(const Geometric *sum, Py_ssize_t m, Node *at) noexcept nogil:
    cdef double re, im, norm = c_geometric_below(sum, at, &re, &im), above = 1 + sum.cut if m & 1 else sum.whole
    # the norm is 0 only at t = 0 for theta = 0; the J terms of the geometric sum are then 1
    if norm > 0:
        at.re, at.im = above * (at.re * re + at.im * im) / norm, above * (at.im * re - at.re * im) / norm
        at.size *= above / sqrt(norm)
    else:
        at.re *= sum.J
        at.size *= sum.J


cdef void invert(const Law *law, const Tilt *tilt, int upper, Inverted *out) noexcept nogil:
    """Compute Pr[S = k] and Pr[S >= k] (upper) or Pr[S <= k], divided by exp(K(theta) - k theta).

    The trapezoidal rule has N = 2J nodes. The tail is a geometric sum of the values at k, k +- 1, ..., truncated at J terms, so
    that it is defined for theta = 0 as well.
    """
    cdef double slope = fabs(tilt.theta), half, J = c_half_period(tilt.var, fabs(tilt.shift)), stray
    cdef double pmf_abs = 0, tail_abs = 0
    cdef dd pmf = dd_make(0, 0), tail = pmf
    cdef Py_ssize_t m
    cdef Phi phi
    cdef Node at
    cdef Geometric sums
    c_geometric_make(slope, J, -1 if upper else 1, &sums)
    half = c_nodes_make(law, tilt, &phi)
    for m in range(whole(J, 0, MOST_NODES) + 1):
        if not c_node(&phi, tilt, half, J, m, &at):
            break
        dd_accumulate(&pmf, at.re)
        pmf_abs += at.size * at.rounding
        c_geometric_times(&sums, m, &at)
        dd_accumulate(&tail, at.re)
        tail_abs += at.size * at.rounding
    if phi.small:
        free(phi.heap)
    # `stray` bounds the omitted nodes, and the mass farther than J from k
    stray = c_left_out(tilt.var, half, J)
    out.pmf = (pmf.hi + pmf.lo) / (2 * J)
    out.tail = (tail.hi + tail.lo) / (2 * J)
    out.pmf_error = stray + UNIT * pmf_abs / (2 * J)
    out.tail_error = stray * (1 if slope * J > 1 else J) + UNIT * tail_abs / (2 * J)


cdef double c_log_edge(const Law *law, int all_ones) noexcept nogil:
    """Returns log Pr[S = n] or log Pr[S = 0]."""
    cdef Py_ssize_t j
    cdef double mine, other, part
    cdef dd total = dd_make(0, 0)
    for j in range(law.groups):
        if lattice_leave(law.interrupted, j):
            break
        mine = law.p[j]
        other = law.q[j] if law.q != NULL else 1 - mine
        if not all_ones:
            mine, other = other, mine
        part = log(mine) if mine < 0.5 else log1p(-other)
        total = dd_add(total, dd_make(part if law.counts == NULL else law.counts[j] * part, 0))
    return total.hi


cdef double one_side(const Law *law, double k, int upper, double *log_pmf, double *rel_error) noexcept nogil:
    """Returns log Pr[S >= k] (upper) or log Pr[S <= k], the smaller tail, or a tail with a closed form."""
    cdef Tilt tilt
    cdef Inverted at
    cdef double edge
    if k < 0 or k > law.trials:
        rel_error[0] = 0
        log_pmf[0] = -INFINITY
        return 0.0 if (k < 0) == (upper != 0) else -INFINITY
    if k == 0 or k == law.trials:
        log_pmf[0] = edge = c_log_edge(law, k != 0)
        rel_error[0] = -4 * UNIT * edge
        return 0.0 if (k == 0) == (upper != 0) else edge
    c_lattice_tilt(law, k, 0.02, &tilt)
    invert(law, &tilt, upper, &at)
    log_pmf[0] = tilt.exponent + log(at.pmf)
    rel_error[0] = 2 * tilt.exponent_error + max(at.pmf_error / at.pmf, at.tail_error / at.tail) + 2 * UNIT
    return tilt.exponent + log(at.tail)


cdef double log_tail(const Law *law, double k, int upper, double *log_pmf, double *rel_error) noexcept nogil:
    """Returns the log tail: the smaller tail by inversion; a tail above 0.6 as 1 minus the other, so that its log is accurate."""
    cdef double toward = 1.0 if upper else -1.0, tail = -0.0, edge, unused
    cdef bint far = k > law.mean if upper else k < law.mean
    log_pmf[0] = INFINITY
    if upper and k == 1 or not upper and k == law.trials - 1:
        edge = c_log_edge(law, not upper)
        rel_error[0] = 4 * UNIT * (1 - edge)
        return c_log1mexp(edge)
    if far or k <= 0 or k >= law.trials:
        tail = one_side(law, k, upper, log_pmf, rel_error)
        if tail <= -0.5 or k <= 0 or k >= law.trials:
            return tail
    tail = one_side(law, k - toward, not upper, &unused, rel_error)
    rel_error[0] *= exp(tail) / -expm1(tail)
    return c_log1mexp(tail)


cdef double c_lattice_point(const Law *law, double k, int upper, double *log_pmf, double *rel_error) noexcept nogil:
    """Returns log Pr[S >= k] (upper) or log Pr[S <= k], and writes log Pr[S = k] to log_pmf unless that is NULL.

    rel_error bounds the relative error of both probabilities. A pmf above 0.8 is formed as 1 minus the tails below and above k,
    so that its logarithm is accurate.
    """
    cdef double pmf, tail, error, below, above, error_below = 0, error_above = 0, unused
    tail = log_tail(law, k, upper, &pmf, &error)
    if log_pmf != NULL:
        if pmf == INFINITY:
            if k < 0 or k > law.trials:
                pmf = -INFINITY
            else:
                one_side(law, k, k > law.mean, &pmf, &error_above)
                error = max(error, error_above)
        if pmf > -0.2 and 0 < k < law.trials:
            below = log_tail(law, k - 1, 0, &unused, &error_below)
            above = log_tail(law, k + 1, 1, &unused, &error_above)
            pmf = log1p(-(exp(below) + exp(above)))
            error = max(error, max(error_below, error_above))
        log_pmf[0] = pmf
    rel_error[0] = error + 2 * UNIT
    return tail


cdef double c_lattice_log_tail(const double *p, const double *q, const double *counts, Py_ssize_t groups, double k,
                               int upper, double *log_pmf, double *rel_error) noexcept nogil:
    """`c_lattice_point` for a distribution that is used once."""
    cdef Law law
    c_lattice_law(&law, p, q, counts, groups)
    return c_lattice_point(&law, k, upper, log_pmf, rel_error)
