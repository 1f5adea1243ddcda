# Poisson tails and incomplete gamma functions in logarithms. Domains and errors: the header of _gamma.pyx.
# The caller has checked: 0 <= a, x, mu <= 1e270, k an integer <= 2**53 (it may be negative), no NaN.

# log P(a, x) and log Q(a, x), the regularized incomplete gamma functions; at a = 0 < x they are 0 and -inf.
cdef double c_log_gammainc(double a, double x) noexcept nogil
cdef double c_log_gammaincc(double a, double x) noexcept nogil

# log Pr[N = k], log Pr[N <= k], log Pr[N > k] for N ~ Poisson(mu).
cdef double c_poisson_logpmf(double k, double mu) noexcept nogil
cdef double c_poisson_logcdf(double k, double mu) noexcept nogil
cdef double c_poisson_logsf(double k, double mu) noexcept nogil

# c_lgamma1p: log Gamma(1 + a), 0 <= a <= 1; the error is relative to a up to 1/2. c_stirling_real: the Stirling error of a real a
# >= 1.
cdef double c_lgamma1p(double a) noexcept nogil
cdef double c_stirling_real(double a) noexcept nogil

# The functions behind the ufuncs and cython_tails: any doubles, NaN outside the domain; k any real number.
cdef double checked_log_gammainc(double a, double x) noexcept nogil
cdef double checked_log_gammaincc(double a, double x) noexcept nogil
cdef double checked_poisson_logpmf(double k, double mu) noexcept nogil
cdef double checked_poisson_logcdf(double k, double mu) noexcept nogil
cdef double checked_poisson_logsf(double k, double mu) noexcept nogil
