"""The exponentially tilted distribution of a sum of independent users, and the tilt at which a contour crosses the real axis.

    The log moment generating function is K(s) = sum n log1p(sum w expm1(s x)) over groups of n users each. In a group, X = x[j]
    with probability w[j], and these masses sum to 1. The distribution of a user tilted by theta has the probabilities
    p = w e^(theta x)/E e^(theta X) of the values y = x - mean.

Method      the sums over the atoms use expm1, so that small theta x do not cancel; products with n and sums over groups are in
            double-double. The mass at x = 0 is an argument like any other mass and not computed as 1 minus the others, because it
            may be far below an ulp of 1. Atoms whose tilted mass changes log phi by less than 1e-22 are omitted from the tilted
            distribution.
Roundings   values and masses are assumed accurate to 4 ulp, plus the error of exp(log w). Cumulant.blur bounds the effect of
            these errors on K(s) by a model (ulp counts), not by interval arithmetic. Relative to the standard deviation of the sum,
            this effect grows like sqrt(n): 3e-6 at n = 2**53

Measured error of K(theta), as a fraction of the error bound that the contour uses: theta blur + 4 UNIT (2 + |K|)
    (tests/reference/measure_errors.py: python-flint at 400 bits)
    domain                                     trials   peak     rms
    1 to 8 atoms, masses to e^-40, n to 1e6    5.0e3    0.44     0.032
    the same, n from 1e6 to 2**53              5.0e3    0.50     0.045
Cost        1 to 2 exponentials for each atom and each theta; about ten theta for a saddle point
Source      classical
"""

from libc.math cimport INFINITY, exp, expm1, fabs, fmax, ldexp, log, log1p, sqrt

from shufflebounds._core._constants cimport EXCESS_LANES, UNIT
from shufflebounds._core._dd cimport dd, dd_add, dd_make, dd_prod
from shufflebounds._core._special cimport c_log_add_exp


cdef double c_lay_out(Group *g, const double *x, const double *log_w, Py_ssize_t atoms, int power, double count,
                      double *room) noexcept nogil:
    cdef Py_ssize_t j, used = 0
    g.count = count
    g.x, g.w, g.log_w, g.p = room, room + atoms, room + 2 * atoms, room + 3 * atoms
    g.y = g.p + atoms + EXCESS_LANES
    g.log_rest = -INFINITY
    for j in range(atoms):
        if x[j] == 0:
            g.log_rest = c_log_add_exp(g.log_rest, log_w[j])
        else:
            g.x[used], g.log_w[used] = ldexp(x[j], -power), log_w[j]
            used += 1
    g.all = g.atoms = used
    return c_masses(g, 0)


cdef double c_masses(Group *g, double moved) noexcept nogil:
    cdef double total
    cdef Py_ssize_t j
    g.rest = total = exp(g.log_rest) + moved
    for j in range(g.atoms):
        g.w[j] = exp(g.log_w[j])
        total += g.w[j]
    return total


cdef inline double grow(double up, double *more) noexcept nogil:
    """Returns e^up; more[0]: e^up - 1 without cancellation."""
    cdef double grown
    if up < -0.5:
        grown = exp(up)
        more[0] = grown - 1
        return grown
    more[0] = expm1(up)
    return 1 + more[0]


cdef void c_cumulant(Group *groups, Py_ssize_t number, double theta, bint tilt, Cumulant *out) noexcept nogil:
    """Compute K(theta) = sum n log1p(sum w expm1(theta x)) and its derivatives, and, if `tilt`, the tilted distributions.

    K is infinite where a term overflows. This happens only above the saddle point: at the saddle point, max(p x theta) <= 2/n +
    1/e.
    """
    cdef Py_ssize_t i, j, k
    cdef Group *g
    cdef dd total = dd_make(0, 0), slope = dd_make(0, 0), gain, first
    cdef double up, grown, more, mass, second, blur, mean, y, left
    out.var = out.blur = 0
    for i in range(number):
        g = &groups[i]
        gain = first = dd_make(0, 0)
        second = blur = left = 0
        for j in range(g.atoms):
            up = theta * g.x[j]
            if up < 700:
                grown = g.w[j] * grow(up, &more)
                gain = dd_add(gain, dd_make(g.w[j] * more, 0))
            else:
                grown = exp(up + g.log_w[j])
                gain = dd_add(gain, dd_make(grown, 0))
            first = dd_add(first, dd_make(grown * g.x[j], 0))
            left += grown
            second += grown * g.x[j] * g.x[j]
            blur += grown * fabs(g.x[j]) * (20 - g.log_w[j]) if grown > 0 else 0
            if tilt:
                g.p[j] = grown
        # if E e^(theta X) is below 1/2, the terms e^(theta x) are added, because sums of e^(theta x) - 1 would cancel
        left = log(g.rest + left) if gain.hi < -0.5 else log1p(gain.hi)
        mass = exp(-left)
        total = dd_add(total, dd_prod(g.count, left))
        slope = dd_add(slope, dd_prod(g.count, first.hi * mass))
        mean = first.hi * mass
        out.blur += g.count * blur * mass
        if tilt:
            # from centred values, so that the variance does not cancel
            second = g.rest * mass * mean * mean
            g.reach = fabs(mean)
            k = 0
            for j in range(g.atoms):
                grown = g.p[j] * mass
                y = g.x[j] - mean
                second += grown * y * y
                # each omitted atom changes log phi by less than 1e-22
                if grown * g.count > 1e-22:
                    g.p[k], g.y[k] = grown, y
                    g.reach = fmax(g.reach, fabs(y))
                    k += 1
            g.p[k] = g.rest * mass
            g.y[k] = -mean
            k += 1
            # pad with zeros to whole vectors
            while k % EXCESS_LANES:
                g.p[k] = g.y[k] = 0
                k += 1
            g.seen = k
            g.sd = sqrt(second)
        else:
            second = fmax(second * mass - mean * mean, 0)
        out.var += g.count * second
    out.value = total.hi if total.hi == total.hi else INFINITY
    out.slope = slope.hi if slope.hi == slope.hi else INFINITY
    out.blur *= UNIT


cdef double c_saddle(Group *groups, Py_ssize_t number, bint tilt, Cumulant *at) noexcept nogil:
    """Returns theta > 0 with K'(theta) = 2/theta, to a thousandth of the width of the peak, by Newton steps inside a bracket.

    The peak is that of e^K(s)/s^2 along Re s = theta.
    """
    cdef double low = 0, high = INFINITY, theta, gap, step, curve
    cdef int i
    c_cumulant(groups, number, 0.0, False, at)
    # the search starts at the saddle point of a Gaussian with the same moments, in a form that does not cancel if the mean is below
    # 0
    gap = sqrt(at.slope * at.slope + 8 * at.var)
    theta = 4 / (gap + at.slope) if at.slope > 0 else (gap - at.slope) / (2 * at.var)
    for i in range(400):
        c_cumulant(groups, number, theta, False, at)
        if not (at.value < INFINITY and at.slope < INFINITY and at.var < INFINITY):
            high = theta
            theta = sqrt(low * high) if low > high / 64 else high / 8
            continue
        gap = at.slope - 2 / theta
        curve = at.var + 2 / (theta * theta)
        if gap > 0:
            high = theta
        else:
            low = theta
        step = gap / curve
        if fabs(step) * sqrt(curve) < 1e-3 or high < INFINITY and high - low <= 1e-13 * high:
            break
        # K' can grow exponentially in theta, so a Newton step from the left may be far too long. Therefore steps are limited
        step = theta - step
        if step > 4 * theta:
            step = 4 * theta
        if low < step < high and (i & 3) != 3:
            theta = step
        elif high < INFINITY:
            theta = sqrt(low * high) if low > 0 else 0.25 * high
        else:
            theta *= 4
    if tilt:
        c_cumulant(groups, number, theta, True, at)
    return theta
