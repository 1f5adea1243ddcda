"""Heavy tails: values so high that one of them decides the sign of a sum of independent users are taken out of its law.

    E S_+ = Pr[none] E[S_+; given none] + E[S; some] + E[S_-; some]

Layer: ``c_split``, noexcept nogil, declared in _heavy.pxd, which says what the caller has checked.

Method      the edge above which values are taken out is the lowest for which the last term, bounded by Chernoff, is less than an
            eighth of rtol of the answer; that is known roughly from the sum without its largest values
Roundings   of the means of what is taken out: 256 ulp
Checked     by the sides of _excess.pyx, which tells what was measured
Cost        some twenty passes over the atoms and one rough contour
Source      derived above
"""

from libc.math cimport INFINITY, exp, expm1, fabs, fmax, fmin, ldexp, log, log1p, sqrt

from shufflebounds._core._constants cimport UNIT
from shufflebounds._core._smoothed cimport c_contour
from shufflebounds._core._tilted cimport c_masses


cdef double c_part(Group *groups, Py_ssize_t number, double edge) noexcept nogil:
    """Move the values above `edge` behind the others and out of the laws; returns how many of them there are on average."""
    cdef Py_ssize_t i, j, k
    cdef Group *g
    cdef double x, w, chance = 0
    for i in range(number):
        g = &groups[i]
        g.atoms = groups[i].all
        k = 0
        for j in range(g.atoms):
            if g.x[j] <= edge:
                x, w = g.x[j], g.log_w[j]
                g.x[j], g.log_w[j] = g.x[k], g.log_w[k]
                g.x[k], g.log_w[k] = x, w
                k += 1
            else:
                chance += g.count * exp(g.log_w[j])
        g.atoms = k
        c_masses(g)
    return chance


cdef double c_width(Group *groups, Py_ssize_t number) noexcept nogil:
    """How far above 0 a single value has to be to decide the sign of the sum of the others, about."""
    cdef double mean = 0, var = 0
    cdef Py_ssize_t i, j
    for i in range(number):
        for j in range(groups[i].atoms):
            mean += groups[i].count * groups[i].w[j] * groups[i].x[j]
            var += groups[i].count * groups[i].w[j] * groups[i].x[j] * groups[i].x[j]
    return 2 * (fmax(-mean, 0) + 8 * sqrt(var))


cdef double c_short(const Group *groups, Py_ssize_t number, double edge) noexcept nogil:
    """Bound on E[S_-] for a sum of one value above `edge` and all other users below.

    Losses beyond edge/8 are added one by one; without them (x)_- <= e^(-s x)/(e s), at the best of some s. Given that a user is
    below, masses are at most 2 w.
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
    """Take out of the laws the values that decide the sign of the sum alone; the laws become those given that there are none.

    With some, E[S_+] = E[S] + E[S_-]; the edge is the lowest that makes the last less than rtol/8 of the answer.
    """
    cdef double edge, least, unused, sums, first, later, chance, short_of = 0
    cdef Py_ssize_t i, j
    cdef Group *g
    out.log_none = out.mean = out.error = 0
    # no lower than what the losses alone ask for
    c_part(groups, number, 0.0)
    edge = c_width(groups, number)
    edge = fmax(edge, ldexp(top, -1000)) if edge > 0 else ldexp(top, -40)
    while edge < 0.125 * top:
        c_part(groups, number, edge)
        if c_width(groups, number) <= edge:
            break
        edge *= 2
    # without larger values the sum is smaller: a bound of the answer from below
    least = -INFINITY
    if edge < 0.125 * top:
        for i in range(4):
            c_part(groups, number, ldexp(edge, -4 * i))
            if not c_gains(groups, number):
                break
            if c_contour(groups, number, 2e-3, 4e6, turns, &least, &unused) < 0 or least > -INFINITY:
                break
    else:
        edge = top
    while edge < top:
        chance = c_part(groups, number, edge)
        sums = 0
        for i in range(number):
            groups[i].above = 0
            for j in range(groups[i].atoms, groups[i].all):
                groups[i].above += exp(groups[i].log_w[j])
                sums += groups[i].count * exp(groups[i].log_w[j]) * groups[i].x[j]
        if chance < 0.25:
            short_of = chance * c_short(groups, number, edge)
            # the answer, roughly: what the others lose is at most half a jump
            if short_of <= 0.125 * rtol * fmax(exp(least), 0.3 * sums):
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
        c_masses(g)
        # n E X less what falls to the case without jumps
        later = -expm1(out.log_none - log1p(-g.above))
        out.mean += g.count * (sums + first * later)
        out.error += g.count * (sums + fabs(first) * later) * 256 * UNIT


cdef bint c_gains(const Group *groups, Py_ssize_t number) noexcept nogil:
    """Tell whether any value is above 0."""
    cdef Py_ssize_t i, j
    for i in range(number):
        for j in range(groups[i].atoms):
            if groups[i].x[j] > 0:
                return True
    return False
