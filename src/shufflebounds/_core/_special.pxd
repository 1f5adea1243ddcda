# Elementary functions without cancellation. Domains: the docstring of each function in _special.pyx. The header of _special.pyx
# has the errors.

cdef double c_log1pmx(double x) noexcept nogil
cdef double c_log1mexp(double x) noexcept nogil
cdef double c_log_add_exp(double a, double b) noexcept nogil
cdef double c_log_sub_exp(double a, double b) noexcept nogil
cdef double c_stirling_error(double n) noexcept nogil
cdef double c_mills_ratio(double x) noexcept nogil
cdef double c_log_ratio(double x, double m, double m_lo, double *lo) noexcept nogil
cdef double c_deviance(double x, double m, double d) noexcept nogil
cdef double c_deviance_dd(double x, double m, double m_lo, double d, double d_lo, double *lo) noexcept nogil
