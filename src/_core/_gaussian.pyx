"""Gaussian noise: log delta(eps) with a bound of its error, and eps(delta).

Definition. mu = Delta/sigma, x = eps/mu - mu/2, y = x + mu, h = mu/2, c = eps/mu, M = (1 - Phi)/phi Mills' ratio:
    delta(eps) = Phi(-x) - e^eps Phi(-y) = phi(x) (M(x) - M(y)).
x is computed as (2 eps sigma^2 - Delta^2)/(2 sigma Delta) in double-double arithmetic, because the error of log phi(x) is x^2 times
the relative error of x. Three methods compute the difference for different ranges of c and h.
Ranges of M(c - h) - M(c + h) = 2 sum_j h^(2j+1) I_(2j+1)(c)/(2j+1)!,  I_n(c) = int_0^inf s^n e^(-s^2/2 - c s) ds:
    c >= 1.5, h <= max(1, c/2)      the series, with ratios r_n = I_(n+1)/I_n = (n + 1)/(c + r_(n+1)) from their continued
                                    fraction, evaluated downward: DEEP steps for c < 8, SHALLOW above. All terms are positive
    c < 1.5, h < 0.1                the series, with the recursion I_(n+1) = n I_(n-1) - c I_n, which loses three digits at most
    otherwise                       the difference itself: M(c + h) is at most 0.92 M(c - h). For x < 0 Phi(-x), a probability above
                                    1/2, is formed directly
Measured error of log delta, absolute, less 1 ulp of log delta and 0.6 ulp of x^2 (tests/reference/measure_errors.py, python-flint
at 500 bits); largest error over the returned bound: peak 0.5

    domain                                          trials    peak      rms
    mu in 1e-12..1e6, log delta >= -1               2e3       7.5e-16   7.2e-17
    the same, -700 <= log delta < -1                1.8e4     5.8e-15   2.7e-16
Returned error: 48 ulp for the continued fraction, 96 for the recursion. For the difference itself, 12 ulp of each term, divided by
          the difference. In addition, the roundings of log phi(x) and of the sum.
Cost      0.1 to 0.5 us a value, 8 us an eps
Source    the formula: Balle and Wang, Improving the Gaussian mechanism for differential privacy, ICML 2018, Theorem 8.
"""

from shufflebounds._core._ufunc cimport ufunc_of_pairs

cdef extern from "gaussian.h" nogil:
    void kernel_gaussian_log_delta(double sigma, double sensitivity, double eps, double *value, double *error)
    double kernel_gaussian_epsilon(double sigma, double sensitivity, double delta, bint upper)
    double kernel_gaussian_guess(double target, double mu)


cdef void c_gaussian_log_delta(double sigma, double sensitivity, double eps, double *value, double *error) noexcept nogil:
    kernel_gaussian_log_delta(sigma, sensitivity, eps, value, error)
cdef double c_gaussian_epsilon(double sigma, double sensitivity, double delta, bint upper) noexcept nogil:
    return kernel_gaussian_epsilon(sigma, sensitivity, delta, upper)
cdef double c_gaussian_guess(double target, double mu) noexcept nogil: return kernel_gaussian_guess(target, mu)


def gaussian_epsilon(double sigma, double sensitivity, double delta, bint upper):
    """Return the upper or the lower bound of epsilon of Gaussian noise at a delta in [0, 1]."""
    cdef double eps
    with nogil:
        eps = c_gaussian_epsilon(sigma, sensitivity, delta, upper)
    return eps


cdef void each_gaussian(const double *x, double *sides) noexcept nogil:
    c_gaussian_log_delta(x[0], x[1], x[2], sides, sides + 1)


gaussian_log_delta = ufunc_of_pairs(
    <void *> each_gaussian,
    "gaussian_log_delta(sigma, sensitivity, eps) -> (log delta, bound of its error) of Gaussian noise.")
