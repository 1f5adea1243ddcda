"""eps(delta) by a search on compiled functions for log delta(eps). The loops over arrays of deployments use this search.

Method. First, the search finds the eps at which a smooth approximation of log delta equals the target. Log delta itself is
evaluated there: the approximate middle of its bounds, or the requested bound. The offset is the approximation minus this value. If
the offset is small, the distance to the crossing follows from the slope and the second derivative of the approximation; once two
values of log delta are known, the slope through them replaces the slope of the approximation. Otherwise the search solves for eps
again with the approximation corrected by the offset and by a term linear in eps. The last steps evaluate the requested bound: each
step moves eps by the estimated remaining distance in the conservative direction, until the bound meets the target. A bracket is
kept throughout, and is bisected if the estimates do not lead to the crossing. The approximation is solved in terms of
sqrt(-log delta), which is nearly linear in eps. Next to the pure budget, where delta falls like a power of the distance of eps from
the budget, a step changes the logarithm of this distance, which is known to a relative 1e-3 at the end of the search.
If a curve has a function `ahead`, which returns the slope of its bound, one Newton step is made from an eps a little below the
crossing. delta is linear in e^eps between neighbouring likelihood ratios of the two distributions: if no ratio lies between this
eps and the crossing, no second evaluation is needed.

Guarantee the requested bound of delta meets the target at the returned eps: the bound was evaluated there, or follows from an
          evaluation (`ahead`). The exceptions are the ends of the range: eps = 0, and the pure budget, at which delta is 0.
Measured error   the search adds no error of its own: it returns an eps at which the bound of delta is known. Relative gap of the
          two bounds of eps, for random deployments, 10 to 1e12 users or trials, delta 0.1 to 1e-40 (for clones this is the gap of
          _contour.pyx)
                                          trials   median   peak
          clones                          19150    3.0e-13  1.4e-8
          binomial noise                  16545    4.8e-13  2.2e-11
Cost      one to four evaluations of a bound and seven of the approximation if it is accurate; at most 200
"""

cdef extern from "crossing.h" nogil:
    ctypedef struct own_curve "Curve":
        pass
    double kernel_level(double delta, bint upper)
    double kernel_crossing(const void *curve, double delta, bint upper, double guess, double exact, bint endless)


cdef double c_level(double delta, bint upper) noexcept nogil: return kernel_level(delta, upper)
cdef double c_crossing(const Curve *curve, double delta, bint upper, double guess, double exact, bint endless) noexcept nogil:
    return kernel_crossing(<const void *> curve, delta, upper, guess, exact, endless)

# the struct of crossing.h has the fields of that of _crossing.pxd
assert sizeof(own_curve) == sizeof(Curve)
