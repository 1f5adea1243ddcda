# Numbers that several kernels share (constants.h, beside their sources; neither is installed).

cdef extern from "constants.h" nogil:
    const double LOG_SQRT_2PI
    const double INV_SQRT_2PI
    const double TWO_53
    const double UNIT
    const double BAND
    const double BEYOND
    const double NEAR_SLOPE
    const double LOW_ORDER_SLOPE
    const double SERIES_VARIANCE
    const double TINY_P
    const int EXCESS_LANES
    const int TAILS_BINOMIAL
    const int TAILS_POISSON
    const int TAILS_GAMMA
    const int TAILS_NEGATIVE
    const int TAILS_BETA
