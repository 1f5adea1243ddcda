# Negative binomial tails and incomplete beta functions in logarithms. Domains and errors: the header of _beta.pyx.
# The caller has checked: 0 < a, b, r <= 1e100, 0 <= x, p <= 1, k an integer <= 2**53 (it may be negative), no NaN.

# log I_x(a, b) and log(1 - I_x(a, b)).
cdef double c_log_betainc(double a, double b, double x) noexcept nogil
cdef double c_log_betaincc(double a, double b, double x) noexcept nogil

# log Pr[F = k], log Pr[F <= k], log Pr[F > k], F the failures before the r-th success, each trial a success with probability p.
cdef double c_nbinom_logpmf(double k, double r, double p) noexcept nogil
cdef double c_nbinom_logcdf(double k, double r, double p) noexcept nogil
cdef double c_nbinom_logsf(double k, double r, double p) noexcept nogil

# log Gamma(z + e) - log Gamma(z) with a small error relative to e; 0 <= e <= 1, z > 0.
cdef double c_lgamma_step(double e, double z) noexcept nogil

# The functions behind the ufuncs and cython_tails: any doubles, NaN outside the domain; k any real number.
cdef double checked_log_betainc(double a, double b, double x) noexcept nogil
cdef double checked_log_betaincc(double a, double b, double x) noexcept nogil
cdef double checked_nbinom_logpmf(double k, double r, double p) noexcept nogil
cdef double checked_nbinom_logcdf(double k, double r, double p) noexcept nogil
cdef double checked_nbinom_logsf(double k, double r, double p) noexcept nogil
