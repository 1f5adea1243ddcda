# The clone sum by Fourier inversion along a tilted contour; its run time does not depend on the number of users.
# Proof and errors: the header of _contour.pyx.

# Bounds of log E[max(0, D - u M)], M ~ Bin(n, rate), D a sum of M independent random signs. At most `peaks` secondary maxima of the
# integrand are integrated, 5 us each, and only if the gap of the bounds can then be at most `accepted`. Returns False and writes
# nothing if the standard deviation of the tilted sum is too small for the method, or if peaks = 0 and the bound of the secondary
# maxima alone exceeds `accepted` > 0.
# The caller has checked: n an integer in 1..2**53, 0 < rate <= 1, 0 <= u < 1, and v = 1 - u > 0 to full relative accuracy.
cdef bint c_log_sign_contour(double n, double rate, double u, double v, int peaks, double accepted, double *lower,
                             double *upper) noexcept nogil
