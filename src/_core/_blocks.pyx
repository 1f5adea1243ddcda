"""Poisson-binomial probabilities and tails for Python, at one point or in a block of consecutive points; built on _lattice.pyx.

A block is a run of consecutive values s = center + j of one tilted distribution, computed with one inverse real FFT. The kernel
returns the Fourier coefficients of the tilted probabilities P_theta(center + j), or of the geometric sums

    sum_{i < J} e^(-theta i) P_theta(s + i)   (upper tail)        sum_{i < J} e^(theta i) P_theta(s - i)   (lower tail)

A value of a block gives log Pr[S = s], log Pr[S >= s] or log Pr[S <= s] as exponent - theta j + log(value). All values of a block
have the same absolute rounding error, so only values above 1.5e-3 of the largest one are used (3.6 sigma to either end).

One pass over the data suffices for all blocks near the mean: with z = theta + i t, U = sinh(z/2)^2, T = tanh(z/2),

    sum_j log(q_j + p_j e^z) - p_j z = 1/2 sum_m (-1)^(m+1) U^m/m sum_j (4 p_j q_j)^m
                                       - sum_m T^(2m+1)/(2m+1) sum_j delta_j (1 - delta_j^2m),   delta = p - q.

Measured error of log p, for values whose tails are above e^-50, in units of 1e-13 min(1, |log p|) + 2.2e-16 |log p|:

    domain                                  trials    peak    rms     against
    n <= 600, by blocks of sigma < 13       3083      5.1     0.14    python-flint, 512 bits
    n = 9000, pmf and tail of every k       36000     1.6     0.27    113-bit direct convolution
    n = 1e5, 1e6                            2239      8.4     0.34    the single points of _lattice.pyx, grouped
    The largest errors are where two blocks meet (5e-16 of a block's largest value); the median error is 4e-15.

Cost       convolution of 1000 p: 22 us with `cut` = 1e-50, 40 us without (AVX-512)
           n = 1e6 distinct p: mean and variance 0.3 ms, the series 1.3 ms (6 orders), then 4 us for each block and its FFT
Source     series and blocks: derived here; convolution: textbook, four factors at a time
"""

cimport cython
from libc.math cimport ceil, cos, cosh, exp, fabs, log2, sin, sinh, sqrt, tanh
from libc.string cimport memset

import numpy as np
cimport numpy as cnp

from shufflebounds._core._constants cimport UNIT
from shufflebounds._core._dd cimport dd, dd_add, dd_make
from shufflebounds._core._lattice cimport (
    Geometric, Interrupted, Law, Node, Phi, Tilt, c_fill, c_geometric_make, c_geometric_times, c_half, c_half_period, c_lattice_law,
    c_lattice_point, c_lattice_tilt, c_left_out, c_log_edge, c_node, c_orders, c_phi_make, c_place,
)

cdef extern from "arithmetic.h" nogil:
    Py_ssize_t whole(double x, Py_ssize_t low, Py_ssize_t high)

cdef extern from "Python.h":
    # Cython checks no exception after these functions. If PyErr_CheckSignals sets one (KeyboardInterrupt), `settled` raises it.
    void *error_set "PyErr_Occurred"()
    int look_for_signals "PyErr_CheckSignals"()
    void *this_interpreter "PyInterpreterState_Get"()
    void *main_interpreter "PyInterpreterState_Main"()

cdef extern from "lattice.h" nogil:
    const int LATTICE_LONG
    void lattice_sums(const double *p, const double *q, const double *g, Py_ssize_t n, double a, double b, double c,
                      int orders, Interrupted interrupted, double *even, double *odd)
    void lattice_convolve(const double *x, double *out, Py_ssize_t n, const double *c)


ctypedef struct Series:
    int orders
    double radius                     # largest |theta| for which the series may be used
    double[64] even
    double[64] odd


cdef Py_ssize_t fast_length(Py_ssize_t wanted) noexcept nogil:
    """Returns the smallest 2^a 3^b 5^c >= wanted, for wanted >= 1: a length for which the real FFT is fast."""
    cdef Py_ssize_t best = 1, five = 1, three, size
    while best < wanted:
        best *= 2
    while five < best:
        three = five
        while three < best:
            size = three
            while size < wanted:
                size *= 2
            best = min(best, size)
            three *= 3
        five *= 5
    return best


cdef void series_at(const Series *series, double zr, double zi, double *re, double *im) noexcept nogil:
    """Writes sum_j log(q_j + p_j e^z) - p_j z, the log moment generating function about the mean, by the series in the header."""
    cdef double sh = sinh(0.5 * zr), ch = cosh(0.5 * zr), s = sin(0.5 * zi), c = cos(0.5 * zi)
    cdef double ar = sh * c, ai = ch * s, br = ch * c, bi = sh * s        # sinh(z/2), cosh(z/2)
    cdef double Sr = ar * ar - ai * ai, Si = 2 * ar * ai
    cdef double norm = br * br + bi * bi, Tr = (ar * br + ai * bi) / norm, Ti = (ai * br - ar * bi) / norm
    cdef double wr = Tr * Tr - Ti * Ti, wi = 2 * Tr * Ti
    cdef double er = 0, ei = 0, odd_r = 0, odd_i = 0, hold
    cdef int m
    for m in range(series.orders, 0, -1):
        hold = series.even[m - 1] / m - (er * Sr - ei * Si)
        ei = -(er * Si + ei * Sr)
        er = hold
        hold = series.odd[m - 1] / (2 * m + 1) + (odd_r * wr - odd_i * wi)
        odd_i = odd_r * wi + odd_i * wr
        odd_r = hold
    hold = odd_r * wr - odd_i * wi
    odd_i = odd_r * wi + odd_i * wr
    odd_r = hold
    re[0] = 0.5 * (er * Sr - ei * Si) - (odd_r * Tr - odd_i * Ti)
    im[0] = 0.5 * (er * Si + ei * Sr) - (odd_r * Ti + odd_i * Tr)


cdef double series_moments(const Series *series, double theta, double *var) noexcept nogil:
    """Returns K'(theta) - K'(0) and writes K''(theta) to var, from the derivatives of the series of K."""
    cdef double S = sinh(0.5 * theta) ** 2, S1 = 0.5 * sinh(theta), S2 = 0.5 * cosh(theta)
    cdef double T = tanh(0.5 * theta), T1 = 0.5 * (1 - T * T), T2 = -T * T1
    cdef double even1 = 0, even2 = 0, odd1 = 0, odd2 = 0, W = T * T
    cdef int m
    for m in range(series.orders, 0, -1):
        even1 = series.even[m - 1] - S * even1
        odd1 = series.odd[m - 1] + W * odd1
        odd2 = 2 * m * series.odd[m - 1] + W * odd2
        if m > 1:
            even2 = (m - 1) * series.even[m - 1] - S * even2
    var[0] = 0.5 * (S2 * even1 - S1 * S1 * even2) - (T2 * W * odd1 + T1 * T1 * T * odd2)
    return 0.5 * S1 * even1 - T1 * W * odd1


cdef int signalled() noexcept with gil:
    """Returns whether the pass must stop, because an exception is set, for example by Ctrl-C.

    Acquiring the interpreter's lock for this check lets other threads run.
    """
    return error_set() != NULL or look_for_signals() < 0


cdef int settled() except -1:
    """Raises the exception that is set, if any: a signal has then stopped the pass over the data, and its results are not valid."""
    return -1 if error_set() != NULL else 0


cdef class PoissonBinomialPMF:
    """The distribution of a sum of independent bits: counts[j] bits are 1 with probability p[j], 0 with q[j] = 1 - p[j].

    Pass q if some p are close to 1, where 1 - p would have a large relative error. The caller has checked the conditions of
    _lattice.pxd and passes C-contiguous float64 arrays of one length.
    """

    cdef Law law
    cdef Series series
    cdef object p, counts, q

    def __init__(self, const double[::1] p not None, const double[::1] counts=None, const double[::1] q=None):
        # self.law points into these buffers, which the references keep alive
        self.p = p
        self.counts = counts
        self.q = q
        self.series.orders = 0
        self.series.radius = 0
        cdef const double *g = &counts[0] if counts is not None else NULL
        cdef const double *complement = &q[0] if q is not None else NULL
        with nogil:
            c_lattice_law(&self.law, &p[0], complement, g, p.shape[0])
        # only the main interpreter handles signals
        if p.shape[0] > LATTICE_LONG and this_interpreter() == main_interpreter():
            self.law.interrupted = signalled

    @property
    def groups(self):
        """Number of probabilities."""
        return self.law.groups

    @property
    def trials(self):
        """Number of Bernoulli variables."""
        return self.law.trials

    @property
    def mean(self):
        """Mean of the sum."""
        return self.law.mean

    @property
    def var(self):
        """Variance of the sum."""
        return self.law.var

    @property
    def reach(self):
        """Approximate largest distance from the mean at which the series of the header applies; 0 before `expand` is called."""
        return self.series.radius * self.law.var

    def edge(self, bint all_ones):
        """Return log Pr[S = n] (all_ones) or log Pr[S = 0]."""
        cdef double edge
        with nogil:
            edge = c_log_edge(&self.law, all_ones)
        settled()
        return edge

    def point(self, double k, bint upper):
        """Return (log tail, log pmf, bound of the relative error) at the integer k; the tail is Pr[S >= k] or Pr[S <= k]."""
        cdef double pmf, error, tail
        with nogil:
            tail = c_lattice_point(&self.law, k, upper, &pmf, &error)
        settled()
        return tail, pmf, error

    def tail(self, double k, bint upper):
        """Return (log tail, bound of its relative error), in less time than `point` where the pmf would need a second inversion."""
        cdef double error, tail
        with nogil:
            tail = c_lattice_point(&self.law, k, upper, NULL, &error)
        settled()
        return tail, error

    def expand(self, double depth):
        """Compute the power sums of the series, for tilts with |theta| sigma <= depth.

        The caller has checked: hypot(depth, 9.4) < sigma.
        """
        cdef double radius = depth / sqrt(self.law.var)
        if self.series.radius >= radius:
            return
        cdef int orders = c_orders(self.law.var, depth)
        # `series` is marked as empty until the pass is complete, because Ctrl-C may end the pass early
        self.series.orders = 0
        self.series.radius = 0
        with nogil:
            lattice_sums(self.law.p, self.law.q, self.law.counts, self.law.groups, 1, 1, 0, orders,
                         self.law.interrupted, self.series.even, self.series.odd)
        settled()
        self.series.orders = orders
        self.series.radius = radius

    cdef bint tilt_by_series(self, double target, Tilt *tilt) noexcept nogil:
        """Find the tilt whose mean is `target` by Newton steps; returns whether one within the radius of the series was found."""
        cdef dd gap = dd_add(dd_make(self.law.mean, self.law.mean_lo), dd_make(-target, 0))
        cdef double theta = 0, var = self.law.var, shift = gap.hi, unused
        cdef int steps = 0
        while fabs(shift) > 0.02 * sqrt(var):
            theta -= shift / var
            steps += 1
            if steps > 20 or fabs(theta) > self.series.radius:
                return False
            shift = gap.hi + series_moments(&self.series, theta, &var)
            if not var > 0:
                return False
        tilt.theta = theta
        tilt.shift = shift
        tilt.var = var
        series_at(&self.series, theta, 0, &tilt.exponent, &unused)
        tilt.exponent += gap.hi * theta
        tilt.exponent_error = UNIT * (6 * fabs(gap.hi * theta) + 6 * fabs(tilt.exponent))
        return True

    @cython.boundscheck(False)
    @cython.wraparound(False)
    def block(self, double center, int kind):
        """Return one block around the integer `center`, 0 < center < n, of Pr[S = s], Pr[S >= s] or Pr[S <= s] (kind 0, 1 or -1).

        The result is (coefficients, period, reach, theta, exponent, sigma, error, exponent_error). The values at center + j are
        irfft(coefficients, period), with an absolute error of at most `error` and without aliasing for |j| <= reach.
        """
        cdef Tilt tilt
        cdef Phi phi
        cdef Node at
        cdef Geometric sums
        cdef bint fast = False
        cdef double sigma, reach, span, half, im, log_abs, phase, effort, base, slope, J, spread = 0, error
        cdef Py_ssize_t period, m
        with nogil:
            if self.series.orders:
                fast = self.tilt_by_series(center, &tilt)
            if not fast:
                c_lattice_tilt(&self.law, center, 0.02, &tilt)
        settled()
        sigma = sqrt(tilt.var)
        reach = ceil(3.8 * sigma) + 4
        span = c_half_period(tilt.var, reach + fabs(tilt.shift))
        # The period is even, so that t = pi is a node. For tails, the geometric sum that turns a pmf into a tail has period/2
        # terms.
        period = 2 * fast_length(whole(span if kind else ceil(0.5 * (span + reach)), 1, 1 << 53))
        J = period // 2
        half = c_half(tilt.var)
        coefficients = np.zeros(period // 2 + 1, dtype=np.complex128)
        cdef double complex[::1] out = coefficients
        with nogil:
            if fast:
                series_at(&self.series, tilt.theta, 0, &base, &im)
            else:
                c_phi_make(&self.law, tilt.theta, tilt.var, half, &phi)
            slope = fabs(tilt.theta)
            c_geometric_make(slope, J, -kind, &sums)
            for m in range(period // 2 + 1):
                if fast:
                    if not c_place(half, J, m, &at):
                        break
                    # centred characteristic function of the tilted distribution: e^(K(theta+it) - K(theta)) without its mean
                    series_at(&self.series, tilt.theta, at.t, &log_abs, &phase)
                    log_abs -= base
                    effort = fabs(base) + fabs(log_abs) + fabs(phase)
                    c_fill(log_abs, phase + at.t * (self.law.mean - center + self.law.mean_lo), effort, &at)
                elif not c_node(&phi, &tilt, half, J, m, &at):
                    break
                if kind:
                    c_geometric_times(&sums, m, &at)
                spread += at.size * (at.rounding + 3 * log2(period))
                out[m] = (at.re - 1j * at.im) / at.weight
        settled()
        error = c_left_out(tilt.var, half, J)
        if kind and slope * period <= 2:
            error *= J
        error += UNIT * spread / period
        return coefficients, period, reach, tilt.theta, tilt.exponent, sigma, error, tilt.exponent_error


cnp.import_array()


cdef inline void quadratic(double x, double y, double *out) noexcept nogil:
    """Writes the probabilities of 0, 1 and 2 of the sum of two bits."""
    out[0], out[1], out[2] = (1 - x) * (1 - y), x * (1 - y) + y * (1 - x), x * y


@cython.boundscheck(False)
@cython.wraparound(False)
def convolve(const double[::1] p not None, double cut=0):
    """Return (first, probabilities of first, first + 1, ...) by direct convolution.

    Values below `cut` at both ends are omitted.

    All terms are positive, and each factor of four p takes at most 12 roundings, so the relative error is below 3.4e-16 n. Below
    1e-290 the probabilities are less accurate, and below 5e-324 they are 0: the caller checks that this does not matter.
    The convolutions of the first 4, 8, ... p omit values below `cut`, too, so that subnormal numbers, which take a hundred times
    as long, do not occur. At most n + 1 values are omitted, and each would be multiplied by a probability, so no probability
    decreases by more than (n + 1) cut. At least 64 values are kept. The ratios of neighbouring values decrease. So if all 64 are
    above `cut`, some ratio is above cut^(1/64), and if the largest probability is near 1, its complement is far above the omitted
    mass.
    """
    cdef Py_ssize_t n = p.shape[0], room = (n + 47) // 8 * 8, low = 0, high = 1, start, i
    # a pass starts at a multiple of 8, reads four values below its start, and writes up to seven beyond its end
    both = np.empty(2 * room + 8)
    cdef double *data = <double *> cnp.PyArray_DATA(both)
    cdef Py_ssize_t margin = 16 + (-(<Py_ssize_t> data // 8) & 7)
    cdef double *pmf = data + margin
    cdef double *other = pmf + room
    cdef double[3] one
    cdef double[3] two
    cdef double[5] four
    with nogil:
        pmf[0] = 1
        for i in range(0, n, 4):
            quadratic(p[i], p[i + 1] if i + 1 < n else 0, one)
            quadratic(p[i + 2] if i + 2 < n else 0, p[i + 3] if i + 3 < n else 0, two)
            four[0], four[1] = one[0] * two[0], one[0] * two[1] + one[1] * two[0]
            four[2] = one[0] * two[2] + one[1] * two[1] + one[2] * two[0]
            four[3], four[4] = one[1] * two[2] + one[2] * two[1], one[2] * two[2]
            memset(pmf + low - 12, 0, 12 * sizeof(double))
            memset(pmf + high, 0, 12 * sizeof(double))
            start = low & ~7
            high = min(high + 4, n + 1)
            lattice_convolve(pmf + start, other + start, high - start, four)
            pmf, other = other, pmf
            while high - low > 64 and pmf[low] < cut:
                low += 1
            while high - low > 64 and pmf[high - 1] < cut:
                high -= 1
    return low, both[pmf - data + low:pmf - data + high]


cdef Py_ssize_t outside(const double *logs, Py_ssize_t step, Py_ssize_t size, double beyond, double log_tail) noexcept nogil:
    """Returns the largest number of values at one end that may be omitted: their mass plus the mass e^beyond is at most e^log_tail.

    `logs` points to the last value at this end, and e^beyond is a bound of the mass outside of the table.
    """
    cdef double mass = exp(beyond - log_tail)
    cdef Py_ssize_t i
    for i in range(size):
        mass += exp(logs[i * step] - log_tail)
        if not mass <= 1:
            return i
    return size


@cython.boundscheck(False)
@cython.wraparound(False)
def run_around(const double[::1] circle not None, double cut, Py_ssize_t below, Py_ssize_t above):
    """Return (first, values): the run of values of at least `cut` around point 0 of a circle; `first` is at most 0.

    The run has at most `below` points below 0 and `above` points above 0. It is empty if the value at point 0 is below `cut`.
    """
    cdef Py_ssize_t size = circle.shape[0], low = 0, high = 0, i
    if not (0 <= below and 0 <= above and below + above < size):
        raise ValueError(f"below = {below} and above = {above} must fit into a circle of {size} points")
    with nogil:
        if circle[0] >= cut:
            high = 1
            while high <= above and circle[high] >= cut:
                high += 1
            while low < below and circle[size - low - 1] >= cut:
                low += 1
    out = np.empty(low + high)
    cdef double[::1] run = out
    with nogil:
        for i in range(low):
            run[i] = circle[size - low + i]
        for i in range(high):
            run[low + i] = circle[i]
    return -low, out


def window_ends(const double[::1] logs not None, double below, double above, double log_tail):
    """Return the ends (first, last + 1) of the smallest part of a table that leaves at most the mass e^log_tail on each side.

    below and above are the logarithms of the masses outside of the table.
    """
    cdef Py_ssize_t size = logs.shape[0], first, last
    with nogil:
        first = outside(&logs[0], 1, size, below, log_tail)
        last = size - outside(&logs[size - 1], -1, size, above, log_tail)
    return first, last
