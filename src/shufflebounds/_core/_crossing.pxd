# eps(delta) of a curve log delta(eps) that is known by functions: a search without the interpreter's lock.

# A falling curve of log delta, and what the search may ask of it. law is handed to the functions.
cdef struct Curve:
    # a side of log delta at 0 <= eps < inf, at most 0; -inf from `pure` on
    double (*side)(double eps, bint upper, const void *law) noexcept nogil
    # log delta roughly, but smooth: a constant off and a slope off cost little
    double (*rough)(double eps, const void *law) noexcept nogil
    # nearer than that, and much cheaper than a side; NULL where there is no such thing
    double (*centre)(double eps, const void *law) noexcept nogil
    const void *law
    double pure         # from here on delta is 0, may be inf
    double last         # where pure = inf: the last eps looked at, from which on delta does not change or is not asked
    double close        # relative distance from the crossing that an answer may have, 3e-13 at least
    bint sure           # rough is right within a part in ten and one at eps = 0

# The log delta that an answer has to meet on its side: past delta, in (0, 1), by what delta() adds on the way back.
cdef double c_level(double delta, bint upper) noexcept nogil

# An eps at which the upper side was evaluated and is at most delta, next to the crossing; or, upper = 0, at which the lower one
# still reaches it. 0 <= delta <= 1. From pure = inf: inf where the side at `last` is above delta (lower: `last`, where it is not
# sure that delta changes no more beyond: endless = 0). guess: an eps where to begin, exact: one that is right to rounding; else 0.
cdef double c_crossing(const Curve *curve, double delta, bint upper, double guess, double exact, bint endless) noexcept nogil
