"""The clone sum as a contour integral: an upper and a lower bound. The run time does not grow with the number of users.

_compound.pyx uses this kernel or its own sweep.

Definition. S = D - u M with M ~ Bin(n, r) and D a sum of M random signs. S is thus the sum of n independent values, each 1 - u or
-1 - u with probability r/2, else 0. With phi(s) = 1 - r + r e^(-us) cosh s and any theta > 0
    E max(0, S) = 1/(2 pi) int phi(theta + it)^n / (theta + it)^2 dt.
Theta is chosen close to the saddle point of the integrand, n K'(theta) = 2/theta, K = log phi; the bounds hold for every theta.

Form.  T = tanh theta, r' = r e^(-u theta) cosh theta / phi(theta), a = n r' (1 - T^2), zeta = e^(-iut) (cos t + i T sin t):
    phi(s)/phi(theta) = 1 - r' + r' zeta,   |zeta|^2 = 1 - (1 - T^2) sin^2 t,   arg zeta = chi = atan(T tan t) - u t,
    |1 - r' + r' zeta|^2 = 1 - 2 r' (1 - r') (1 - Re zeta) - r'^2 (1 - |zeta|^2).
The terms that are subtracted from 1 have one sign. The two terms of chi have opposite signs. Multiplied by n r', each of them is
about n r' T t, at most 9 sigma theta radians, so the phases need no argument reduction and no extended precision at any n. For
u >= 1/2, chi is computed from 1 - u and 1 - T.

Bounds. docs/theorems/contours.md proves the error terms, that of the secondary maxima included.
    aliasing    is bounded at tilts 8.2/sqrt(a) above and below theta; with the period 2 pi/h the relative sum of its terms is e^-36
    truncation  |phi/phi(theta)|^n <= exp(-a sin^2(t)/2) by the triangle inequality; nodes with a sin^2(t)/2 up to 36 are evaluated
    maxima      secondary maxima: the bound exp(-a sin^2(t)/2) is 1 again at t = pi j. At t = pi j + tau, near such a point, the
                phase psi = pi j (1 - u) of zeta adds the factor exp(-c |zeta| (1 - cos(psi + chi(tau)))), c = n r' (1 - r'), and
                1/|s|^2 is 1/(pi j)^2, not 1/theta^2. The weights of all secondary maxima with j > 0 sum to about u^2/5, which is
                below theta^2 u^2 relative to the central peak. If the variance of M is so small that the first secondary maximum,
                psi = 2 pi u, is not reduced, the relative sum is theta^2/12. Up to `peaks` maxima of even j = 2, 4, .. may be
                integrated, by nodes of the same rule. The bound of the remaining maxima widens the gap.

Measured error against the sweep of _compound.pyx, in 137,224 cases of n = 1e5 .. 1e9, r = 0.001 .. 0.99, u = x/sqrt(n r), with no
secondary maximum integrated. The column `middle` is the distance between the middles of the bounds of both methods. The gap is that
between the bounds of the integral; _compound.pyx uses the integral only if this gap is small enough. (The intervals of both methods
also intersected in 240,000 cases of n = 1e3 .. 2e6 with rational, steep and narrow integrands, and in 103,213 cases with 1 to 40
secondary maxima integrated.)

    n r       x         middle    gap: peak   rms                n r       x         middle    gap: peak   rms
    1e4..1e5  1..6      2.1e-6    1.4e-5      1.3e-6             1e6..1e7  6..40     2.5e-7    2.6e-6      2.5e-7
    1e5..1e6  1..6      2.3e-6    1.2e-5      1.2e-6             1e7..1e8  below 1   1.2e-8    3.9e-7      1.0e-7
    1e5..1e6  6..40     1.5e-5    2.9e-4      2.3e-5             1e7..1e8  1..6      2.1e-8    1.0e-7      1.2e-8
    1e6..1e7  below 1   1.5e-7    4.0e-6      1.0e-6             1e7..1e8  6..40     2.3e-9    2.9e-8      2.4e-9
    1e6..1e7  1..6      2.0e-7    1.1e-6      1.2e-7             beyond    any       2.1e-9    4.0e-8      falling like 1/n, 1/n^2
Returned error: aliasing, truncation and secondary maxima as above; for each node 24 roundings of its value, 12 of its exponent and
          6 of the parts of its phase.
Cost      13 to 25 nodes, 5 us at any n
Source    the integral is that of E max(0, S) in any text on saddle points; the bounds are derived above.
"""

from libc.math cimport INFINITY, NAN, floor

from shufflebounds._core._constants cimport TWO_53
from shufflebounds._core._ufunc cimport ufunc_of_pairs

cdef extern from "contour.h" nogil:
    const double CONTOUR_MEAN
    const double CONTOUR_EVEN
    const double CONTOUR_ODD
    Py_ssize_t whole(double x, Py_ssize_t low, Py_ssize_t high)
    bint kernel_log_sign_contour(double n, double rate, double u, double v, int peaks, double accepted, double *lower,
                                 double *upper)


cdef bint c_log_sign_contour(double n, double rate, double u, double v, int peaks, double accepted, double *lower,
                             double *upper) noexcept nogil:
    return kernel_log_sign_contour(n, rate, u, v, peaks, accepted, lower, upper)


def secondary_constants():
    """Return CONTOUR_MEAN, CONTOUR_EVEN and CONTOUR_ODD, which a test proves to be large enough."""
    return CONTOUR_MEAN, CONTOUR_EVEN, CONTOUR_ODD


cdef void each_sign_contour(const double *x, double *sides) noexcept nogil:
    sides[0] = sides[1] = NAN
    if 1 <= x[0] <= TWO_53 and x[0] == floor(x[0]) and 0 < x[1] <= 1 and 0 <= x[2] <= 1 and 0 < x[3] <= 1:
        c_log_sign_contour(x[0], x[1], x[2], x[3], <int> whole(x[4], 0, 1000), INFINITY, sides, sides + 1)


log_sign_contour = ufunc_of_pairs(
    <void *> each_sign_contour,
    "log_sign_contour(n, rate, u, v, peaks) -> (lower, upper) of log E[max(0, D - u M)]; NaN where the method does not apply.")
