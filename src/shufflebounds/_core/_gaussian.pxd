# Gaussian noise: log delta(eps) and eps(delta). Method and errors: the header of _gaussian.pyx.

# Writes log delta of Gaussian noise at eps, and a bound of its absolute error.
# The caller has checked: sigma > 0, 1e-12 <= sensitivity/sigma <= 1e6, eps >= 0; above eps = 1e140 the value is that at 1e140.
cdef void c_gaussian_log_delta(double sigma, double sensitivity, double eps, double *value, double *error) noexcept nogil

# Returns an eps at which the evaluated upper bound of delta(eps) is at most the argument `delta` if `upper`, or else the lower
# bound is at least `delta`.
# The caller has checked: 0 <= delta <= 1.
cdef double c_gaussian_epsilon(double sigma, double sensitivity, double delta, bint upper) noexcept nogil

# Returns an eps near the crossing of delta = e^target for Gaussian noise with sensitivity/sigma = mu > 0, or 0 if there is none.
cdef double c_gaussian_guess(double target, double mu) noexcept nogil
