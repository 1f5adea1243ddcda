"""The clone sum as a contour integral: an upper and a lower bound, in a time that does not grow with the number of users.

Layer: a kernel ``cdef ... c_...(...) noexcept nogil`` (declared in _contour.pxd, which says what the caller has checked), and a
ufunc of it for tests. _compound.pyx chooses between this kernel and its sweep.

Definition. S = D - u M with M ~ Bin(n, r) and D a sum of M random signs. S is thus the sum of n independent values, each 1 - u or
-1 - u with probability r/2, else 0. With phi(s) = 1 - r + r e^(-us) cosh s and any theta > 0
    E max(0, S) = (1/2 pi) int phi(theta + it)^n / (theta + it)^2 dt.
Theta is chosen close to the saddle point of the integrand, n K'(theta) = 2/theta, K = log phi; the bounds hold for every theta.

Form.  T = tanh theta, r' = r e^(-u theta) cosh theta / phi(theta), a = n r' (1 - T^2), zeta = e^(-iut) (cos t + i T sin t):
    phi(s)/phi(theta) = 1 - r' + r' zeta,   |zeta|^2 = 1 - (1 - T^2) sin^2 t,   arg zeta = chi = atan(T tan t) - u t,
    |1 - r' + r' zeta|^2 = 1 - 2 r' (1 - r') (1 - Re zeta) - r'^2 (1 - |zeta|^2).
The terms that are subtracted from 1 have one sign. The two terms of chi have opposite signs; times n r', each is about n r' T t, up
to 9 sigma theta radians, so that the phases need no argument reduction and no extended precision at any n. For u >= 1/2, chi is
formed from 1 - u and 1 - T.

Bounds. docs/theorems/contours.md proves the error terms, that of the secondary maxima included.
    aliasing    at tilts 8.2/sqrt(a) above and below theta; the period 2 pi/h is chosen to make the sum e^-36
    truncation  |phi/phi(theta)|^n <= exp(-a sin^2(t)/2) by the triangle inequality; nodes with an exponent up to 36 are evaluated
    secondary   this envelope is 1 again at t = pi j. There the phase psi = pi j (1 - u) of zeta adds the factor
    maxima      exp(-c |zeta| (1 - cos(psi + chi(tau)))), c = n r' (1 - r'), at t = pi j + tau, and 1/|s|^2 is 1/(pi j)^2, not
                1/theta^2. The weights of all secondary maxima sum to about u^2/5, which is theta^2 u^2 relative to the central
                peak; it is theta^2/12 where M has so small a variance that the first secondary maximum, psi = 2 pi u, keeps its
                height. Up to `peaks` maxima of even j = 2, 4, .. may be integrated, by nodes of the same rule; the bound of the
                remaining maxima widens the gap.

Measured error against the sweep of _compound.pyx, in 137,224 cases of n = 1e5 .. 1e9, r = 0.001 .. 0.99, u = x/sqrt(n r), no
secondary maximum integrated: the distance of the middle of the bounds from that of the sweep, and the gap of the bounds;
_compound.pyx uses the integral only where the gap is small enough. (The two intervals also intersected in 240,000 cases of
n = 1e3 .. 2e6 with rational, steep and narrow integrands, and in 103,213 cases with 1 to 40 secondary maxima integrated.)

    n r       x         middle    gap: peak   rms                n r       x         middle    gap: peak   rms
    1e4..1e5  1..6      2.1e-6    1.4e-5      1.3e-6             1e6..1e7  6..40     2.5e-7    2.6e-6      2.5e-7
    1e5..1e6  1..6      2.3e-6    1.2e-5      1.2e-6             1e7..1e8  below 1   1.2e-8    3.9e-7      1.0e-7
    1e5..1e6  6..40     1.5e-5    2.9e-4      2.3e-5             1e7..1e8  1..6      2.1e-8    1.0e-7      1.2e-8
    1e6..1e7  below 1   1.5e-7    4.0e-6      1.0e-6             1e7..1e8  6..40     2.3e-9    2.9e-8      2.4e-9
    1e6..1e7  1..6      2.0e-7    1.1e-6      1.2e-7             beyond    any       2.1e-9    4.0e-8      falling like 1/n, 1/n^2
Returned error: aliasing, truncation, secondary maxima as above; 24 roundings a node, 12 of its exponent, 6 of the parts of its
          phase.
Cost      13 to 25 nodes, 5 us at any n
Source    the integral is that of E max(0, S) in any text on saddle points; the bounds are derived above.
"""

from libc.math cimport (INFINITY, M_PI, NAN, asin, atan, atan2, atanh, ceil, cos, exp, expm1, fabs, floor, fmax, fmin, log, log1p,
                        remainder, sin, sinh, sqrt, tanh)

from shufflebounds._core._constants cimport TWO_53, UNIT
from shufflebounds._core._dd cimport dd, dd_accumulate, dd_make
from shufflebounds._core._ufunc cimport ufunc_of_pairs

cdef extern from "arithmetic.h" nogil:
    Py_ssize_t whole(double x, Py_ssize_t low, Py_ssize_t high)

cdef extern from *:
    """
    #define DEPTH 36.0                      /* -log of the aliasing and truncation errors relative to the sum; more: more nodes */
    #define LEAST_SPREAD 1000.0             /* smallest a: for smaller a the tails of a peak reach the next one */
    #define MEAN 1.2                        /* at least sqrt(2 pi c) e^-c I_0(c) for every c > 0 */
    #define EVEN 0.04583                    /* at least zeta(2, 15/16)/(4 pi^2): weights of the maxima of even j near full turns */
    #define ODD 0.15741                     /* at least zeta(2, 7/16)/(4 pi^2): those of odd j */
    #define EXPLICIT 64                     /* secondary maxima that are bounded one by one where u >= 1/8 */
    """
    const double DEPTH
    const double LEAST_SPREAD
    const double MEAN
    const double EVEN
    const double ODD
    const int EXPLICIT

cdef struct Tilt:
    double n
    double rate
    double u
    double v            # 1 - u
    double theta
    double slope        # T
    double off          # 1 - T
    double tilted       # r'
    double idle         # 1 - r'
    double spread       # a
    double level        # n K(theta)
    double level_error


cdef inline double log_cosh_less(double theta, double u, double v) noexcept nogil:
    """Returns log cosh(theta) - u theta."""
    if u < 0.5:
        return log1p(2 * sinh(0.5 * theta) * sinh(0.5 * theta)) - u * theta
    return v * theta - 0.6931471805599453 + log1p(exp(-2 * theta))


cdef inline void set_tilt(double theta, Tilt *p) noexcept nogil:
    cdef double weight = log_cosh_less(theta, p.u, p.v), moved = p.rate * expm1(weight)
    p.theta = theta
    p.slope = tanh(theta)
    p.off = 2 / (exp(fmin(2 * theta, 700)) + 1)
    p.tilted = p.rate * exp(weight) / (1 + moved)
    p.idle = (1 - p.rate) / (1 + moved)
    p.spread = p.n * p.tilted * p.off * (1 + p.slope)
    p.level = p.n * log1p(moved)
    # Error of n K(theta): `weight` is now, up to a factor of 1.5, the sum of the absolute values of the terms of
    # log cosh(theta) - u theta, each of which has a relative error of a few ulp.
    weight = log1p(2 * sinh(0.5 * theta) * sinh(0.5 * theta)) + p.u * theta if p.u < 0.5 else p.v * theta + 0.7
    p.level_error = UNIT * (12 * p.n * p.tilted * weight + 8 * fabs(p.level))


cdef inline double level_change(double d, Tilt *p) noexcept nogil:
    """Returns n K(theta + d) - n K(theta)."""
    cdef double weight
    if p.u < 0.5:
        weight = log1p(2 * sinh(0.5 * d) * sinh(0.5 * d) + p.slope * sinh(d)) - p.u * d
    else:
        weight = p.v * d + log1p(-0.5 * p.off * -expm1(-2 * d))
    return p.n * log1p(p.tilted * expm1(weight))


cdef inline double node(double tau, double turns, Tilt *p, double *error) noexcept nogil:
    """Returns Re phi(s)^n/s^2 over phi(theta)^n at s = theta + i (tau + 2 pi turns); error[0] grows by its rounding error."""
    cdef double x = sin(tau), y = cos(tau), t = tau + 2 * M_PI * turns
    cdef double short, length, chi, parts, half, turn, real, size, phase, weight
    # 1 - |zeta|^2 and |zeta|
    short = p.off * (1 + p.slope) * x * x
    length = sqrt(1 - short)
    if p.u < 0.5:
        chi = atan(p.slope * x / y) - p.u * t
        parts = p.slope * fabs(tau) + p.u * t
    else:
        chi = p.v * t - atan(p.off * x * y / (y * y + p.slope * x * x))
        parts = (p.v + p.off) * t
    half = sin(0.5 * chi)
    turn = 2 * length * half * cos(0.5 * chi)
    # 1 - Re zeta
    real = short / (1 + length) + 2 * length * half * half
    size = 0.5 * p.n * log1p(-p.tilted * (2 * p.idle * real + p.tilted * short))
    phase = p.n * atan2(p.tilted * turn, 1 - p.tilted * real)
    weight = 1 / (p.theta * p.theta + t * t)
    error[0] += exp(size) * weight * UNIT * (24 + 12 * fabs(size) + 6 * p.n * p.tilted * parts + 4 * fabs(phase))
    return exp(size) * weight * weight * ((p.theta * p.theta - t * t) * cos(phase) + 2 * p.theta * t * sin(phase))


cdef inline double factor(double psi, double slack, double c) noexcept nogil:
    """Returns an upper bound of exp(-c (1 - cos psi')) over all psi' within slack of psi."""
    cdef double away = 0.5 * fmax(0, fabs(remainder(psi, 2 * M_PI)) - slack)
    return exp(-2 * c * sin(away) * sin(away))


cdef double secondary_maxima(double reach, int peaks, Tilt *p) noexcept nogil:
    """Returns a bound of the contribution of the secondary maxima: sum_(j >= 1) m_j/(pi j)^2, without j = 2, 4, .., 2 peaks.

    m_j is the maximum of |phi/phi(theta)|^n over all t at a distance of at most `reach` from pi j.
    """
    cdef double c = p.n * p.tilted * p.idle * sqrt(1 - reach * reach), u = p.u, v = p.v, slack, mean, total = 0, runs, drift, psi
    cdef int j, strands
    drift = fabs(p.slope - u) if u < 0.5 else fabs(v - p.off)
    slack = drift * reach + p.off * (1 + p.slope) * p.slope * reach * reach * reach / (1 - reach * reach) + 4 * UNIT * EXPLICIT
    mean = fmin(1.0, slack / M_PI + MEAN / sqrt(2 * M_PI * c)) if c > 0 else 1.0
    if u < 0.125:
        # The maxima with an even index 2 j have the phase psi = 2 pi u j. For j <= peaks + 4 the phase is at most pi, so that the
        # factors decrease with j.
        for j in range(peaks + 1, peaks + 4):
            total += factor(2 * M_PI * u * j, slack, c) / (4 * M_PI * M_PI * j * j)
        total += factor(2 * M_PI * u * (peaks + 4), slack, c) / (4 * M_PI * M_PI * (peaks + 3))
        # All other maxima. If psi is within pi/8 of a multiple of 2 pi, they contribute at most the first summand. Otherwise their
        # factors are at most that at psi = pi/8.
        total += (EVEN + ODD) * u * (u + mean) + factor(M_PI / 8, slack, c) / 6
    else:
        for j in range(1, EXPLICIT + 1):
            psi = M_PI * v * j if u >= 0.5 else M_PI * (j & 1) - M_PI * u * j
            total += factor(psi, slack, c) / (M_PI * M_PI * j * j)
        # The terms with j > EXPLICIT are bounded separately for every full turn of psi. For u >= 1/2 the phases form one sequence;
        # otherwise they form two, one of the even j and one of the odd j.
        strands = 1 if u >= 0.5 else 2
        runs = 2 / v if u >= 0.5 else 1 / u
        total += fmin(1.0, strands * (2 + mean * runs) * (1.0 / EXPLICIT + 1 / (strands * (runs - 1)))) / (M_PI * M_PI * EXPLICIT)
    return fmin(total, 1.0 / 6)


cdef bint c_log_sign_contour(double n, double rate, double u, double v, int peaks, double accepted, double *lower,
                             double *upper) noexcept nogil:
    cdef Tilt p
    cdef double theta = atanh(u) if u <= 0.5 else 0.5 * (log(1 + u) - log(v))
    cdef double depth, reach, period, d, h, tau, error, tails, wings, low, high
    cdef dd total
    cdef int j, k, nodes
    p.n, p.rate, p.u, p.v = n, rate, u, v
    # theta is the saddle point if K is replaced by its parabola at atanh u, where K' = 0
    set_tilt(theta, &p)
    if not p.spread >= LEAST_SPREAD:
        return False
    theta = fmax(0.5 * (theta + sqrt(theta * theta + 8 / p.spread)), 2.5 / sqrt(p.spread))
    set_tilt(theta, &p)
    if not p.spread >= LEAST_SPREAD:
        return False
    depth = DEPTH + log1p(theta * sqrt(p.spread))
    d = 8.2 / sqrt(p.spread)
    period = (depth + level_change(d, &p)) / d
    tails = 1 / (theta + d)
    d = fmin(d, 0.8 * theta)
    period = fmax(period, fmax((depth + level_change(-d, &p)) / d, 30 / d))
    tails += 1 / (theta - d)
    # The last factor 2 covers the later m of the aliasing sum and the rounding of the exponents, which are below 200. `total` and
    # the errors are 2 pi times those of the integral; the level is reduced by log(2 pi) at the end.
    tails *= 2 * M_PI * exp(-1 - depth) * 2
    h = 2 * M_PI / period
    reach = asin(sqrt(2 * DEPTH / p.spread))
    # The sum is at most about 2/theta^2. If the bound of the secondary maxima already exceeds `accepted`, no node is evaluated.
    if accepted > 0 and peaks == 0 and 2 * theta * theta * secondary_maxima(reach, 0, &p) > accepted:
        return False
    # fewer than 2**7 nodes, because reach <= 0.28 and reach/h < 60
    nodes = <int> whole(ceil(reach / h), 1, 500)
    error = 4 * UNIT / (theta * theta)
    total = dd_make(0.5 / (theta * theta), 0)
    for k in range(1, nodes + 1):
        dd_accumulate(&total, node(k * h, 0, &p, &error))
    # If the remaining secondary maxima alone make the gap larger than `accepted`, none is integrated.
    d = 1 - reach / M_PI
    tau = 2 * (h + 1.044 * sqrt(2 * M_PI / p.spread)) / (d * d)
    if u * (peaks + 4) > 0.5 or (peaks > 0 and 2 * tau * secondary_maxima(reach, peaks, &p) > accepted * 2 * h * total.hi):
        peaks = 0
    for j in range(1, peaks + 1):
        # integrate by the nodes of the same rule around 2 pi j, and stop if the next maximum is negligible
        tau = ceil((2 * M_PI * j - reach) / h)
        for k in range(<int> whole(floor((2 * M_PI * j + reach) / h) - tau, 0, 1000) + 1):
            dd_accumulate(&total, node((tau + k) * h - 2 * M_PI * j, j, &p, &error))
        if factor(2 * M_PI * u * (j + 1), 0, n * p.tilted * p.idle) < 1e-14 / (theta * theta):
            peaks = j
            break
    error *= 2 * h * (1 + nodes * UNIT)
    # Truncated nodes: those between `reach` and 0.5 from a multiple of pi (`wings`; there sin(t) has a slope of at least
    # cos(0.5) >= 0.877), and those farther than 0.5 from every multiple of pi.
    wings = exp(-DEPTH) * (h + 1 / (0.877 * sqrt(2 * DEPTH * p.spread)))
    error += 2 * wings * (1 / (theta * theta) + 0.5) + 4.2 * exp(-0.1149 * p.spread) * (1 + 1 / (theta * theta))
    d = 1 - reach / M_PI
    # within 0.5 of a secondary maximum sin(t)^2 >= 0.9193 t^2, and 1.044 >= 1/sqrt(0.9193)
    error += 2 * (h + 1.044 * sqrt(2 * M_PI / p.spread)) * secondary_maxima(reach, peaks, &p) / (d * d)
    low = 2 * h * (total.hi + total.lo)
    high = low + error
    low -= error + tails
    p.level -= log(2 * M_PI)
    p.level_error += 8 * UNIT * (1 + fabs(p.level))
    lower[0] = p.level + log(low) - p.level_error if low > 0 else -INFINITY
    upper[0] = p.level + log(high) + p.level_error
    return True


def secondary_constants():
    """Return MEAN, EVEN and ODD, which a test proves to be large enough."""
    return MEAN, EVEN, ODD


cdef void each_sign_contour(const double *x, double *sides) noexcept nogil:
    sides[0] = sides[1] = NAN
    if 1 <= x[0] <= TWO_53 and x[0] == floor(x[0]) and 0 < x[1] <= 1 and 0 <= x[2] <= 1 and 0 < x[3] <= 1:
        c_log_sign_contour(x[0], x[1], x[2], x[3], <int> whole(x[4], 0, 1000), INFINITY, sides, sides + 1)


log_sign_contour = ufunc_of_pairs(
    <void *> each_sign_contour,
    "log_sign_contour(n, rate, u, v, peaks) -> (lower, upper) of log E[max(0, D - u M)]; NaN where the method does not apply.")
