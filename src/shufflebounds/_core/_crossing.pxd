# eps(delta) of a curve log delta(eps) that is given by C functions: a search without the interpreter's lock.

# A decreasing curve of log delta. `law` is passed to the functions.
cdef struct Curve:
    # the upper or lower bound of log delta at 0 <= eps < inf, at most 0; -inf from `pure` on
    double (*side)(double eps, bint upper, const void *law) noexcept nogil
    # a smooth approximation of log delta; errors in its value and slope cost a few evaluations
    double (*rough)(double eps, const void *law) noexcept nogil
    # an approximation of log delta that is closer than `rough` and much faster than a bound; NULL if there is none
    double (*centre)(double eps, const void *law) noexcept nogil
    # Returns the bound at eps, as `side` does. Writes to `crossing` an estimate, by the exact slope, of the eps at which the bound
    # meets the target, or 0. Writes to `proved` whether the upper bound is proved, roundings included, to meet the target from
    # crossing (1 + close/2) on. NULL if there is no such function.
    double (*ahead)(double eps, bint upper, double target, const void *law, double *crossing, bint *proved) noexcept nogil
    const void *law
    double pure         # delta is 0 from here on; may be inf
    double last         # for pure = inf: the largest eps to evaluate; delta is constant above it, or larger eps are not supported
    double span         # eps step over which the slope of log delta changes at large eps; INFINITY if it is nearly constant
    double close        # largest relative distance of the returned eps from the crossing: 1e-13 if log delta has errors of a few
    #                     ulp, otherwise at least 2e-13
    double miss         # usual relative error of the eps at which `rough` meets the target; 1e-5 or more if unknown
    bint sure           # at eps = 0, rough has an error of at most 1 plus a tenth of its value

# Returns the target of a search for eps: log(delta), for delta in (0, 1), lowered (upper = 1) or raised by the rounding error that
# the method delta() adds to its result.
cdef double c_level(double delta, bint upper) noexcept nogil

# Returns an eps close to the crossing. For upper = 1 the upper bound was evaluated at this eps and is at most delta; for upper = 0
# the lower bound was evaluated and is at least delta. 0 <= delta <= 1. If pure = inf and the bound at `last` is above delta, the
# result is inf; for the lower bound the result is `last` if delta may change above it (endless = 0). guess: a starting eps, or 0.
# exact: an eps that is accurate to rounding, or 0.
cdef double c_crossing(const Curve *curve, double delta, bint upper, double guess, double exact, bint endless) noexcept nogil
