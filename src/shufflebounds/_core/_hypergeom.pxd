# Hypergeometric tails in logarithms. Domains and errors: the header of _hypergeom.pyx.
# The caller has checked: integers 0 <= marked, draws <= total <= 2**53; k an integer, which may lie outside the support.

# log Pr[X = k], log Pr[X <= k], log Pr[X > k], X the number of marked items among `draws` of `total`. Where log Pr[X = k] is close
# to 0, it has an absolute error of about 1e-15, and no relative accuracy.
cdef double c_hypergeom_logpmf(double k, double total, double marked, double draws) noexcept nogil
cdef double c_hypergeom_logcdf(double k, double total, double marked, double draws) noexcept nogil
cdef double c_hypergeom_logsf(double k, double total, double marked, double draws) noexcept nogil

# The functions behind the ufuncs and cython_tails: any doubles, NaN outside the domain; k any real number.
cdef double checked_hypergeom_logpmf(double k, double total, double marked, double draws) noexcept nogil
cdef double checked_hypergeom_logcdf(double k, double total, double marked, double draws) noexcept nogil
cdef double checked_hypergeom_logsf(double k, double total, double marked, double draws) noexcept nogil
