"""Heavy tails: values so large that a single one makes the sum positive are treated separately from the other values of the users.

    E S_+ = Pr[none] E[S_+ | none] + E[S; some] + E[S_-; some]
    Here `none` is the event that no user has such a value, and `some` is its complement. E[X; some] is the expectation of X times
    the indicator of `some`.

Method      values above an edge are split off. The edge is the lowest one tried at which a Chernoff bound of E[S_-; some] is below
            rtol/8 of a lower estimate of E S_+. This estimate comes from the sum without the largest values, or from their mean
Roundings   256 ulp of the means of the values that are split off
Checked     as a part of _excess.pyx, whose header states the measured errors
Cost        about twenty passes over the atoms and one contour with a large tolerance
Source      derived above
"""

from libc.math cimport INFINITY, exp, expm1, fabs, fmax, fmin, ldexp, log, log1p, sqrt

from shufflebounds._core._constants cimport UNIT
from shufflebounds._core._smoothed cimport c_contour
from shufflebounds._core._tilted cimport c_masses


cdef double c_part(Group *groups, Py_ssize_t number, double edge) noexcept nogil:
    """Reorder the values so that those above `edge` come last, and move the mass of these values to the value 0.

    Returns the expected number of users with a value above `edge`.
    """
    cdef Py_ssize_t i, j, k
    cdef Group *g
    cdef double x, w, chance = 0
    for i in range(number):
        g = &groups[i]
        g.above = 0
        k = 0
        for j in range(g.all):
            if g.x[j] <= edge:
                x, w = g.x[j], g.log_w[j]
                g.x[j], g.log_w[j] = g.x[k], g.log_w[k]
                g.x[k], g.log_w[k] = x, w
                k += 1
            else:
                g.above += exp(g.log_w[j])
        g.atoms = k
        c_masses(g, g.above)
        chance += g.count * g.above
    return chance


cdef double c_width(Group *groups, Py_ssize_t number) noexcept nogil:
    """Returns 2 (m + 8 sigma). A larger value most often makes the sum positive: m = max(0, -mean), sigma its deviation."""
    cdef double mean = 0, var = 0
    cdef Py_ssize_t i, j
    for i in range(number):
        for j in range(groups[i].atoms):
            mean += groups[i].count * groups[i].w[j] * groups[i].x[j]
            var += groups[i].count * groups[i].w[j] * groups[i].x[j] * groups[i].x[j]
    return 2 * (fmax(-mean, 0) + 8 * sqrt(var))


cdef double c_short(const Group *groups, Py_ssize_t number, double edge) noexcept nogil:
    """Returns a bound of E[S_-] for the sum S of one value above `edge` of one user and values below `edge` of all other users.

    The contributions of values below -edge/8 are added one by one. For the other values, (x)_- <= e^(-s x)/(e s) is used with the
    best of six s. Given that a user's value is below the edge, the probabilities of its values are at most 2 w.
    """
    cdef double best = INFINITY, large = 0, far = edge / 8, total, sum, x, s
    cdef Py_ssize_t i, j
    cdef int k
    for k in range(1, 7):
        s = ldexp(1.0, k) / edge
        total = -s * edge - log(s) - 1
        large = 0
        for i in range(number):
            sum = 0
            for j in range(groups[i].atoms):
                x = groups[i].x[j]
                if x < -far:
                    large -= 2 * groups[i].count * groups[i].w[j] * x
                else:
                    sum += groups[i].w[j] * expm1(-s * x) * (1 if x > 0 else 1 + 2 * groups[i].above)
            total += groups[i].count * log1p(sum)
        best = fmin(best, total)
    return large + exp(best)


cdef void c_split(Group *groups, Py_ssize_t number, double top, double rtol, Turn *turns,
                  Jumps *out) noexcept nogil:
    """Split off the values above an edge. They are so large that a single one makes the sum S positive with high probability.

    The distributions in `groups` are replaced by the conditional ones, given that no user has a value above the edge. On the event
    that some user has such a value, E[S_+] = E[S] + E[S_-] is used. The edge is the lowest one tried for which the part of E[S_-]
    from this event is less than rtol/8 of E S_+.
    """
    cdef double edge, lower_log, unused, sums, first, later, chance, short_of = 0
    cdef Py_ssize_t i, j
    cdef Group *g
    out.log_none = out.mean = out.error = 0
    # the edge is at least 2 (m + 8 sigma), where -m and sigma are the mean and the standard deviation of the sum of the negative
    # values
    c_part(groups, number, 0.0)
    edge = c_width(groups, number)
    edge = fmax(edge, ldexp(top, -1000)) if edge > 0 else ldexp(top, -40)
    while edge < 0.125 * top:
        c_part(groups, number, edge)
        if c_width(groups, number) <= edge:
            break
        edge *= 2
    # the sum without the larger values gives a lower bound of E S_+
    lower_log = -INFINITY
    if edge < 0.125 * top:
        for i in range(4):
            c_part(groups, number, ldexp(edge, -4 * i))
            if not c_gains(groups, number):
                break
            if c_contour(groups, number, 2e-3, INFINITY, 4e6, turns, &lower_log, &unused) < 0 or lower_log > -INFINITY:
                break
    else:
        edge = top
    while edge < top:
        chance = c_part(groups, number, edge)
        sums = 0
        for i in range(number):
            for j in range(groups[i].atoms, groups[i].all):
                sums += groups[i].count * exp(groups[i].log_w[j]) * groups[i].x[j]
        if chance < 0.25:
            short_of = chance * c_short(groups, number, edge)
            # 0.3 times `sums` is roughly a lower bound of E[S_+]: as the edge is at least 2 (m + 8 sigma), the other users subtract
            # at most half of a value above the edge.
            if short_of <= 0.125 * rtol * fmax(exp(lower_log), 0.3 * sums):
                break
        edge *= 1.4142135623730951
    if edge >= top:
        c_part(groups, number, top)
        return
    out.error = short_of
    for i in range(number):
        out.log_none += groups[i].count * log1p(-groups[i].above)
    for i in range(number):
        g = &groups[i]
        sums = first = 0
        for j in range(groups[i].all):
            unused = exp(g.log_w[j]) * g.x[j]
            if j < g.atoms:
                first += unused
                g.log_w[j] -= log1p(-g.above)
            else:
                sums += unused
        g.log_rest -= log1p(-g.above)
        c_masses(g, 0)
        # the part of n E X that comes from the event that some user has a value above the edge
        later = -expm1(out.log_none - log1p(-g.above))
        out.mean += g.count * (sums + first * later)
        out.error += g.count * (sums + fabs(first) * later) * 256 * UNIT


cdef bint c_gains(const Group *groups, Py_ssize_t number) noexcept nogil:
    """Returns whether any value is above 0."""
    cdef Py_ssize_t i, j
    for i in range(number):
        for j in range(groups[i].atoms):
            if groups[i].x[j] > 0:
                return True
    return False
