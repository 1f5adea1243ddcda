# Worst-case datasets of shuffled bits and of sums of shuffled bits. Method and errors: the header of _worst_bits.pyx.
#
# Checked by the caller: others, fakes, ones, zeros and width >= 1 whole numbers, their total at most 2**53, 0 < flip < 1/2,
# 0 <= eps < width ln((1 - flip)/flip), eps <= 700; gap = ln((1 - flip)/flip) - eps, accurate to an ulp, used if width = 1.

# Bounds of the largest log delta over all datasets of `others` bits, with `fakes` dummy reports of value 0 (0 if width > 1).
# The target adds `width` bits, all 0 or all 1.
# Returns False if memory runs out; the outputs are then not bounds.
cdef bint c_worst_log_delta(double others, double fakes, double width, double flip, double eps, double gap, double loose,
                            double *lower, double *upper) noexcept nogil
# Bounds for a given dataset of `ones` bits of value 1 and `zeros` bits of value 0. S is the sum of these bits, each flipped with
# probability flip; S + Bin(width, flip) is compared with S + Bin(width, 1 - flip).
cdef void c_sum_log_delta(double ones, double zeros, double width, double flip, double eps, double *lower,
                          double *upper) noexcept nogil
