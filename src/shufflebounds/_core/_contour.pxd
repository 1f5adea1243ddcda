# The clone sum by a contour integral, at a cost free of the number of users. Proof and errors: the header of _contour.pyx.

# log E[max(0, D - u M)], M ~ Bin(n, rate), D a sum of M independent random signs, as a lower and an upper bound; False, and
# nothing written, where the tilted sum varies too little for the method. The caller has checked: n an integer in 1..2**53,
# 0 < rate <= 1, 0 <= u < 1, and v = 1 - u > 0 to full relative accuracy. Up to `peaks` revivals are evaluated, 5 us each, where
# they are not negligible, if that can bring the sides within `worth` of each other. False also where no revival is to be
# evaluated and those left out alone put the sides further apart than `worth` > 0.
cdef bint c_log_sign_contour(double n, double rate, double u, double v, int peaks, double worth, double *lower,
                             double *upper) noexcept nogil
