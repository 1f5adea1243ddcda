# The worst data of shuffled bits and of sums of them. Method and errors: the header of _worst.pyx.
#
# Checked by the caller: others, fakes, ones, zeros and width >= 1 whole numbers, their total at most 2**53, 0 < flip < 1/2,
# 0 <= eps < width ln((1 - flip)/flip), eps <= 700; gap = ln((1 - flip)/flip) - eps to an ulp, used where width = 1.

# Both sides of the largest log delta over all data of so many other bits, and fakes that are 0 (none where width > 1);
# False, and nothing proven, without memory.
cdef bint c_worst_log_delta(double others, double fakes, double width, double flip, double eps, double gap, double loose,
                            double *lower, double *upper) noexcept nogil
# Both sides for known data: S of `ones` and `zeros` bits; S + Bin(width, flip) against S + Bin(width, 1 - flip).
cdef void c_sum_log_delta(double ones, double zeros, double width, double flip, double eps, double *lower,
                          double *upper) noexcept nogil
