"""The positive part of a sum of independent users in atoms, by inversion along an exponentially tilted contour.

    E S_+,  S = sum of independent X_i;  groups of users, X = x[j] with chance w[j], else 0;  K(s) = sum n log1p(sum w expm1(s x))
    Phi_n(X) = E S_+ / n is the hockey stick behind every shuffled randomizer (docs/mathematics).

Layer: ``c_log_excess`` (noexcept nogil, declared in _excess.pxd), thin loops for Python; sums over atoms in excess.h.

Checked by the caller: counts integers >= 1 of total <= 2**53, log w <= 0 with a total of at most 1 to rounding, x finite.
Method   at most 2e5 outcomes     all of them are listed (up to 3e4 users)
         otherwise                U ~ N(0, tau^2) independent, pdf and cdf the standard normal ones:
                                  E(s+U)_+ - s_+ = tau g(|s|/tau), g(z) = pdf(z) - z cdf(-z), lies between B(z) pdf(z) and
                                  A(z) pdf(z), polynomials A, B = sum c_k He_2k (ABOVE and BELOW: linear programs of
                                  tests/reference/sandwich.py; a test holds B <= g/pdf <= A). E He_2k(S/tau) pdf(S/tau) is
                                  tau^(2k+1) f^(2k), f the density of S + U at 0. All by the trapezoid on Re s = theta,
                                  K'(theta) = 2/theta, of e^(K(s) + tau^2 s^2/2) times 1/s^2, or times s^2k
         trapezoid                adds sum_m e^(theta L m) E h(S-Lm), L = 2 pi/step, x_+ <= h(x) for the upper side: nothing to
                                  do; h(x) <= x_+ for the lower one: Chernoff's bound of that at theta +- d goes off (c_alias),
                                  L is widened until it is a thousandth of rtol
         revivals of |phi|        the angle arccos|phi_i(t)| moves at most by sd_i dt (c_stride), so that stretches with
                                  |phi| < e^-band are proven and stepped over; nodes lie in between only
         heavy tails              values that decide the sign of S alone are taken out (c_split): E S_+ given none, and
                                  E S + E S_- given some
Roundings   values and masses are taken to be good to 4 ulp, plus what exp(log w) loses; that, n log1p(sum w expm1), the phases
         n arg phi and the sum of nodes are charged by a model (ulp counts, c_cumulant's blur), not interval arithmetic.
         It grows like sqrt(n): 3e-6 at n = 2**53, 1e-9 at 1e9.

Measured error (tests/reference/measure_excess.py: powers of polynomials at 400 bits, lattice laws, n = 1..600, log masses to -60;
    the clone sweep; Gaussian noise from 1e3 to 1e6 users, 1 to 6 standard deviations out: no value to compare with)
    domain                                        trials   outside the sides   gap (log): median   peak
    listed                                        400      0                   1.1e-13             1e-9
    contour, atom at S = 0                        84       0                   1.3e-5              11 (a)
    binary response, n = 1e4..1e9, eps0 to 8      600      0                   1.9e-7              1.2e-6
    Gaussian noise on [0, 1], sigma 1..2          60       2.2e-7              3.1e-4
    the same, sigma = 1/2                         60       1.2e-5              2.6e-5
    the same, sigma = 3/10                        60       5.7e-7              18 (b)
    (a) n Pr[X > 0] << 1 and a next value far above 0: smoothing sees the atom at 0. The gap of an atom is first order in tau.
    (b) both tails heavy, no value decides alone: sums of several heavy values are formed over the contour of the others
        (tilted_nodes, shuffle/_jumps.py), without which the median is 5e-4; at few users, deep down, the sides say nothing.
Cost     ten-ary response (four atoms), ms: 0.02 at n = 1e9, 0.04 at 1e6, 0.11 at 1e4, 0.5 at 1e3; 1.5 at log delta = -15486;
         Laplace noise of 802 atoms: 0.3 at 1e6, 2.1 at 1e4, 6 at 1e3. It does not grow with n. Heavy tails up to 0.8 s.
Source   inversion: classical; the sandwich, the stride and the split are derived above
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport (INFINITY, atan2, cos, exp, expm1, fabs, floor, fmax, fmin, frexp, ldexp, log, log1p,
                        sin, sqrt)
from libc.stdlib cimport free, malloc

import numpy as np

from shufflebounds._core._dd cimport dd, dd_add, dd_make, dd_prod
from shufflebounds._core._special cimport c_log_add_exp

cdef extern from "arithmetic.h" nogil:
    double log_gamma(double x)

cdef extern from "excess.h" nogil:
    const int EXCESS_LANES
    void excess_phi(const double *p, const double *y, Py_ssize_t n, double t, double reach, double *less, double *side)

cdef double EPS = 1.1102230246251565e-16          # half an ulp of 1
cdef double SPARE = 7.0                           # aliases and nodes left out: below rtol by e^-SPARE, about
cdef double REACH = 7.0                           # the Gaussian factor ends at so many of its standard deviations
cdef double MORE_DEPTH = 31.0                     # where the answer is far below that of a Gaussian: below it by e^-31
cdef double MORE_REACH = 8.5
cdef double *ABOVE = [0.6482, -0.063716, 0.10414, 0.018912, 0.0024703]
cdef double *BELOW = [0.4103, -0.1536, -0.01702, -0.007484, 0.0]
cdef double *SIZES = [0.6482, 0.1536, 0.10414, 0.018912, 0.0024703]
cdef int TERMS = 5
cdef double LISTED = 2e5                          # so many outcomes are listed
cdef double MOST_LISTED = 3e4                     # of so many users


# -------------------------------------------------------------------------------------------------------------- the law

# One group with its values scaled and, at the current theta, its tilted law; the last atom is the rest of the mass, at 0.
cdef struct Group:
    double *log_w
    double *x
    double *w
    double *p
    double *y
    Py_ssize_t atoms
    Py_ssize_t seen        # atoms of the tilted law, the rest among them
    double count
    double rest
    double log_rest
    double above           # mass of the jumps, often far below an ulp of the rest
    double sd
    double reach


# At one theta, over all users: K, K', K'' of the sum, and what an ulp in every value and mass does to K(s) for each unit of |s|.
cdef struct Cumulant:
    double value
    double slope
    double var
    double blur


cdef inline double grow(double up, double *more) noexcept nogil:
    """e^up; more[0]: e^up - 1."""
    cdef double grown
    if up < -0.5:
        grown = exp(up)
        more[0] = grown - 1
        return grown
    more[0] = expm1(up)
    return 1 + more[0]


cdef void c_cumulant(Group *groups, Py_ssize_t number, double theta, bint tilt, Cumulant *out) noexcept nogil:
    """K(theta) = sum n log1p(sum w expm1(theta x)) and its derivatives; the tilted laws too, if asked for.

    K is infinite where a term overflows: theta is beyond the saddle then, as max(p x theta) <= 2/n + 1/e there.
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
        # where most is lost, from what is left
        left = log(g.rest + left) if gain.hi < -0.5 else log1p(gain.hi)
        mass = exp(-left)
        total = dd_add(total, dd_prod(g.count, left))
        slope = dd_add(slope, dd_prod(g.count, first.hi * mass))
        mean = first.hi * mass
        out.blur += g.count * blur * mass
        if tilt:
            # centred, so that the variance does not cancel
            second = g.rest * mass * mean * mean
            g.reach = fabs(mean)
            k = 0
            for j in range(g.atoms):
                grown = g.p[j] * mass
                y = g.x[j] - mean
                second += grown * y * y
                # the others move log phi by less than 1e-22 each
                if grown * g.count > 1e-22:
                    g.p[k], g.y[k] = grown, y
                    g.reach = fmax(g.reach, fabs(y))
                    k += 1
            g.p[k] = g.rest * mass
            g.y[k] = -mean
            k += 1
            # nothing, up to whole vectors
            while k % EXCESS_LANES:
                g.p[k] = g.y[k] = 0
                k += 1
            g.seen = k
        else:
            second = fmax(second * mass - mean * mean, 0)
        g.sd = sqrt(second)
        out.var += g.count * second
    out.value = total.hi if total.hi == total.hi else INFINITY
    out.slope = slope.hi if slope.hi == slope.hi else INFINITY
    out.blur *= EPS


cdef double c_saddle(Group *groups, Py_ssize_t number, bint tilt, Cumulant *at) noexcept nogil:
    """theta > 0 with K'(theta) = 2/theta, to a thousandth of the width of the peak: Newton inside a bracket."""
    cdef double low = 0, high = INFINITY, theta, gap, step, curve
    cdef int i
    c_cumulant(groups, number, 0.0, False, at)
    # of a Gaussian of the same moments; rationalised where the mean is far below 0
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
        # from the left the slope grows exponentially: a long step is cut
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


cdef double c_alias(Group *groups, Py_ssize_t number, double theta, double period, double depth,
                    const Cumulant *at) noexcept nogil:
    """Bound on what the trapezoid adds: sum over m != 0 of e^(theta L m - K(theta)) E(S - L m)_+.

    From (x)_+ <= e^(s x)/(e s) with s = theta +- d; the tilt d is the one that suits a Gaussian. The factor 2 covers rounding.
    """
    cdef Cumulant beside
    cdef double root = period * period - 2 * at.var * depth, total = 0, d
    d = (period - sqrt(fmax(root, 0))) / at.var if at.var * depth > 1e-6 * period * period else depth / period
    c_cumulant(groups, number, theta + d, False, &beside)
    total += exp(beside.value - at.value - d * period) / ((theta + d) * -expm1(-d * period))
    d = fmin(d, theta - 1 / period)
    if d <= 0:
        return INFINITY
    c_cumulant(groups, number, theta - d, False, &beside)
    total += exp(beside.value - at.value - d * period) / ((theta - d) * -expm1(-d * period))
    return 2 * total / 2.718281828459045 if total == total else INFINITY


# --------------------------------------------------------------------------------------------------------------- nodes

# Of one group at one t: 1 - Re phi and Im phi, phi centred, and a bound below arccos |phi|.
cdef struct Turn:
    double less
    double side
    double angle


# The integrand without its Gaussian factor: log |phi|, its argument and its relative error, at t.
cdef struct Node:
    double t
    double log_abs
    double phase
    double error


cdef inline double c_angle(double square) noexcept nogil:
    """A bound below arccos of a modulus whose square is 1 + square: the first terms of 2 asin(y/2), and all are positive."""
    cdef double z = -2 * square / (1 + sqrt(fmax(1 + square, 0)))
    return sqrt(fmax(z, 0)) * (1 + z * (1.0 / 24 + z * (3.0 / 640)))


cdef double c_stride(const Group *groups, Py_ssize_t number, const Turn *turns, double band) noexcept nogil:
    """How far on |phi| is proven to stay below e^-band.

    arccos |phi_i(t)|, the angle between the states sqrt(p) and sqrt(p) e^(itx), moves at most as fast as sd_i (Fubini-Study).
    """
    cdef double best = 0, edge, low, high, middle, total
    cdef Py_ssize_t i
    cdef int _k
    for i in range(number):
        if groups[i].sd > 0:
            # arccos(e^-x) <= sqrt(2 x)
            best = fmax(best, (turns[i].angle - sqrt(2 * band / groups[i].count)) / groups[i].sd)
    if number == 1:
        return best
    low, high = best, 0
    for i in range(number):
        if groups[i].sd > 0:
            high = fmax(high, turns[i].angle / groups[i].sd)
    for _k in range(8):
        middle = 0.5 * (low + high)
        total = 0
        for i in range(number):
            edge = turns[i].angle - groups[i].sd * middle
            if edge > 0:
                total += groups[i].count * log(cos(edge))
        if total < -band:
            low = middle
        else:
            high = middle
    return low


cdef Py_ssize_t c_nodes(const Group *groups, Py_ssize_t number, double step, double last, double band, const Cumulant *at,
                        Node *nodes, Py_ssize_t most, Turn *turns, double *end) noexcept nogil:
    """Nodes t = k step up to `last` with |phi| >= e^-band, at most so many evaluations; end[0]: up to where none is missing."""
    cdef double k = 0, t = 0, less, square, effort, jump
    cdef Py_ssize_t kept = 0, _used, i
    cdef Node *node
    end[0] = last
    for _used in range(most):
        t = k * step
        if t > last:
            break
        node = &nodes[kept]
        node.t = t
        node.log_abs = 0
        for i in range(number):
            excess_phi(groups[i].p, groups[i].y, groups[i].seen, t, groups[i].reach, &turns[i].less, &turns[i].side)
            less = turns[i].less
            square = fmax(fmax(-2 * less + less * less + turns[i].side * turns[i].side, -2 * less), -1.0)
            turns[i].angle = c_angle(square)
            node.log_abs += 0.5 * groups[i].count * log1p(square)
        if node.log_abs < -band:
            jump = floor(c_stride(groups, number, turns, band) * (1 - 1e-9) / step)
            k += jump if jump > 1 else 1
            continue
        node.phase = t * at.slope
        effort = 0
        for i in range(number):
            square = atan2(turns[i].side, 1 - turns[i].less)
            node.phase += groups[i].count * square
            effort += groups[i].count * fabs(square)
        node.error = t * at.blur + EPS * (8 + 2 * fabs(node.phase) + 2 * effort - 8 * node.log_abs)
        kept += 1
        k += 1
    else:
        end[0] = t
    return kept


cdef inline double real_part(const double *series, double re, double im, double cosine, double sine) noexcept nogil:
    """Re e^(i phase) sum series[k] (re + i im)^k."""
    cdef double a = series[TERMS - 1], b = 0
    cdef int k
    for k in range(TERMS - 2, -1, -1):
        a, b = a * re - b * im + series[k], a * im + b * re
    return cosine * a - sine * b


cdef double c_sum(const Node *nodes, Py_ssize_t kept, double theta, double step, double tau, double reach, double band,
                  double alias, double *lower, double *upper) noexcept nogil:
    """Sides of e^-K(theta) E S_+: E(S+U)_+ less what U adds at most, and at least; returns what errors part them by."""
    cdef double total = 0, total_error = 0, most = 0, least = 0, error = 0, end = reach / tau, square = tau * tau, peak
    cdef double t, size, turn, cosine, sine, norm, less, weight = step / 6.283185307179586, left
    # what adding so many terms rounds
    cdef double sums = EPS * (kept + 16)
    cdef Py_ssize_t i
    for i in range(kept):
        t = nodes[i].t
        if t > end:
            break
        size = exp(nodes[i].log_abs + 0.5 * square * (theta * theta - t * t)) * (2 if t > 0 else 1)
        turn = nodes[i].phase + square * theta * t
        cosine, sine = cos(turn), sin(turn)
        less, norm = theta * theta - t * t, theta * theta + t * t
        most += size * real_part(ABOVE, square * less, 2 * square * theta * t, cosine, sine)
        least += size * real_part(BELOW, square * less, 2 * square * theta * t, cosine, sine)
        error += size * real_part(SIZES, square * norm, 0, 1, 0) * (nodes[i].error + sums)
        size /= norm
        total += size * (cosine * less + sine * 2 * theta * t) / norm
        total_error += size * (nodes[i].error + sums)
    # the nodes left out: below e^-band, and beyond the Gaussian's reach; with v = tau |s| the terms of the second sums are at
    # most left^2 e^(-v^2/2) sum SIZES v^2k, which is below .66 and falls like v^8 e^(-v^2/2) there
    left = exp(0.5 * square * theta * theta)
    peak = exp(-0.5 * reach * reach)
    total_error = weight * total_error + left * (exp(-band) / (2 * theta) + peak / (end * reach))
    peak *= real_part(SIZES, reach * reach, 0, 1, 0)
    error = weight * error + left * left * (exp(-band) * end / 4
                                            + sqrt(1 + square * theta * theta) * peak * (1.2 / reach + tau * step) / tau / 3)
    upper[0] = weight * total + total_error - square * (weight * least - error)
    lower[0] = weight * total - total_error - square * (weight * most + error) - alias
    return 2 * total_error + 2 * square * error + alias


# ------------------------------------------------------------------------------------------------------------ few users

# The outcomes listed so far: two sums over e^top.
cdef struct Listing:
    Group *groups
    Py_ssize_t number
    double top
    dd low
    dd high


cdef void c_list(Listing *out, Py_ssize_t group, Py_ssize_t atom, double left, double log_p, double effort, double value,
                 double blur) noexcept nogil:
    """All ways to deal `left` users of this group to the atoms from this one on, and the later groups."""
    cdef Group *g
    cdef double k, chance, size
    if group == out.number:
        size = value + blur
        if size <= 0 or log_p == -INFINITY:
            return
        # rarely, so that few roundings of the scale add up
        if log_p > out.top + 40:
            chance = exp(out.top - log_p) if out.top > -INFINITY else 0
            out.low = dd_make(out.low.hi * chance, 0)
            out.high = dd_make(out.high.hi * chance, 0)
            out.top = log_p
        chance = exp(log_p - out.top)
        effort = EPS * (effort + 16)
        out.high = dd_add(out.high, dd_make(chance * (1 + effort) * size, 0))
        if value > blur:
            out.low = dd_add(out.low, dd_make(chance * (1 - effort) * (value - blur), 0))
        return
    g = &out.groups[group]
    if left < 0:
        left = g.count
        log_p += log_gamma(left + 1)
        effort += 8 * left + 4 * log_gamma(left + 1)
    if atom == g.atoms or left == 0:
        if left == 0 or g.rest > 0:
            c_list(out, group + 1, 0, -1, log_p + (left * g.log_rest - log_gamma(left + 1) if left > 0 else 0),
                   effort - (left * g.log_rest if left > 0 else 0), value, blur)
        return
    # without a rest the last atom takes whoever is left
    k = left if g.rest == 0 and atom == g.atoms - 1 else 0
    while k <= left:
        c_list(out, group, atom + 1, left - k, log_p + k * g.log_w[atom] - log_gamma(k + 1), effort - 2 * k * g.log_w[atom],
               value + k * g.x[atom], blur + 10 * EPS * k * fabs(g.x[atom]))
        k += 1


cdef double c_outcomes(const Group *groups, Py_ssize_t number) noexcept nogil:
    """How many outcomes there are, or somewhat more than are listed."""
    cdef double total = 1, k
    cdef Py_ssize_t i, j
    for i in range(number):
        # so many users have few enough outcomes only where they toss one coin: the contour is faster
        if groups[i].count > MOST_LISTED:
            return 2 * LISTED
        for j in range(groups[i].atoms if groups[i].rest > 0 else groups[i].atoms - 1):
            k = j + 1
            total *= (groups[i].count + k) / k
            if total > LISTED:
                return total
    return total


# ------------------------------------------------------------------------------------------------------------- the sides

cdef inline Py_ssize_t room_of(Py_ssize_t atoms) noexcept nogil:
    """Doubles for the arrays of a group, the tilted law in whole vectors with the rest of the mass."""
    return 5 * atoms + 2 * EXCESS_LANES


cdef void c_prepare(const Users *users, Py_ssize_t number, Group *groups, double *room, int *power, double *most) noexcept nogil:
    """Copy the laws, values scaled by a power of 2 to at most 1 above; most[0]: the largest scaled value."""
    cdef Py_ssize_t i, j
    cdef double top = 0
    cdef Group *g
    for i in range(number):
        for j in range(users[i].atoms):
            top = fmax(top, users[i].x[j])
    frexp(top, power)
    most[0] = ldexp(top, -power[0])
    for i in range(number):
        g = &groups[i]
        g.atoms = users[i].atoms
        g.count = users[i].count
        g.x, g.w, g.log_w, g.p = room, room + g.atoms, room + 2 * g.atoms, room + 3 * g.atoms
        g.y = g.p + g.atoms + EXCESS_LANES
        room += room_of(g.atoms)
        for j in range(g.atoms):
            g.x[j] = ldexp(users[i].x[j], -power[0])
            g.log_w[j] = users[i].log_w[j]
        c_masses(g)


cdef void c_masses(Group *g) noexcept nogil:
    """Masses from their logarithms, and the rest; a full mass is known to rounding only."""
    cdef Py_ssize_t j
    cdef dd mass = dd_make(1, 0)
    for j in range(g.atoms):
        g.w[j] = exp(g.log_w[j])
        mass = dd_add(mass, dd_make(-g.w[j], 0))
    g.rest = mass.hi if mass.hi > 8 * EPS else 0
    g.log_rest = log(g.rest) if g.rest > 0 else 0


# Users who hold a value above a threshold so high that a single one decides the sign of the sum.
cdef struct Jumps:
    double log_none        # log of the chance that there are none
    double mean            # E[S; there are some], bounded by error
    double error


cdef void c_listed(Group *groups, Py_ssize_t number, double *lower, double *upper) noexcept nogil:
    cdef Listing listing
    cdef double blur
    listing.groups = groups
    listing.number = number
    listing.top = -INFINITY
    listing.low = listing.high = dd_make(0, 0)
    c_list(&listing, 0, 0, -1, 0, 0, 0, 0)
    blur = 64 * EPS + 8 * EPS * fabs(listing.top)
    lower[0] = listing.top + log(listing.low.hi) - blur if listing.low.hi > 0 else -INFINITY
    upper[0] = listing.top + log(listing.high.hi) + blur if listing.high.hi > 0 else -INFINITY


# How far a trapezoid goes: e^-depth is what may be left out, next to the answer of a Gaussian, and reach the end of U's factor.
cdef struct Effort:
    double depth
    double reach
    Py_ssize_t most        # evaluations of phi


cdef Py_ssize_t c_trapezoid(Group *groups, Py_ssize_t number, double theta, double tau, const Effort *effort,
                            const Cumulant *at, Node *nodes, Turn *turns, double *lower, double *upper,
                            double *errors) noexcept nogil:
    """Sides of e^-K(theta) E S_+, and what errors part them by; returns the nodes kept."""
    cdef double wide = sqrt(theta * theta * at.var + 2), depth = effort.depth + log(wide), alias = INFINITY, step, end
    cdef double period = fmax(1.15 * (depth + 4) / theta, 1.1 * sqrt(2 * (depth + 4) * at.var))
    cdef Py_ssize_t kept, _try
    for _try in range(24):
        alias = c_alias(groups, number, theta, period, depth + 4, at)
        # next to the saddle point's value of the answer
        if alias * theta * 2.5066282746310002 * wide < exp(-effort.depth):
            break
        period *= 1.25
    step = 6.283185307179586 / period
    kept = c_nodes(groups, number, step, effort.reach / tau, depth, at, nodes, effort.most, turns, &end)
    tau = fmax(tau, effort.reach / end)
    errors[0] = c_sum(nodes, kept, theta, step, tau, effort.reach, depth, alias, lower, upper)
    return kept


cdef Py_ssize_t c_contour(Group *groups, Py_ssize_t number, double rtol, double work, Turn *turns,
                          double *lower, double *upper) noexcept nogil:
    """Sides of log E S_+ by the trapezoid; returns the nodes kept, or -1 without memory."""
    cdef Cumulant at
    cdef double theta = c_saddle(groups, number, True, &at), tau, low, high, errors, slack
    cdef Py_ssize_t i, kept, size = 0
    cdef Node *nodes
    cdef Effort effort
    for i in range(number):
        size += groups[i].seen
    effort.depth, effort.reach, effort.most = SPARE - log(rtol), REACH, <Py_ssize_t> fmin(fmax(work / size, 2048), 4e5)
    nodes = <Node *> malloc((effort.most + 1) * sizeof(Node))
    if nodes == NULL:
        return -1
    # what the integrals of the two polynomials are apart
    tau = sqrt(rtol / (ABOVE[0] - BELOW[0])) / theta
    kept = c_trapezoid(groups, number, theta, tau, &effort, &at, nodes, turns, &low, &high, &errors)
    if high - low > rtol * high and errors > 0.25 * (high - low):
        # the answer is far below that of a Gaussian
        effort.depth, effort.reach = fmax(MORE_DEPTH, effort.depth + 3), MORE_REACH
        kept = c_trapezoid(groups, number, theta, tau, &effort, &at, nodes, turns, &low, &high, &errors)
    free(nodes)
    # the exponent: the values and masses as given are good to a few ulp
    slack = theta * at.blur + 4 * EPS * (2 + fabs(at.value))
    lower[0] = at.value + log(low) - slack if low > 0 else -INFINITY
    upper[0] = at.value + log(high) + slack if high > 0 else INFINITY
    return kept


cdef double c_part(Group *groups, Py_ssize_t number, const Users *users, double edge) noexcept nogil:
    """Move the values above `edge` behind the others and out of the laws; returns how many of them there are on average."""
    cdef Py_ssize_t i, j, k
    cdef Group *g
    cdef double x, w, chance = 0
    for i in range(number):
        g = &groups[i]
        g.atoms = users[i].atoms
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


cdef void c_split(Group *groups, Py_ssize_t number, const Users *users, double top, double rtol, Turn *turns,
                  Jumps *out) noexcept nogil:
    """Take out of the laws the values that decide the sign of the sum alone; the laws become those given that there are none.

    With some, E[S_+] = E[S] + E[S_-]; the edge is the lowest that makes the last less than rtol/8 of the answer.
    """
    cdef double edge, least, unused, sums, first, later, chance, short_of = 0
    cdef Py_ssize_t i, j
    cdef Group *g
    out.log_none = out.mean = out.error = 0
    # no lower than what the losses alone ask for
    c_part(groups, number, users, 0.0)
    edge = c_width(groups, number)
    edge = fmax(edge, ldexp(top, -1000)) if edge > 0 else ldexp(top, -40)
    while edge < 0.125 * top:
        c_part(groups, number, users, edge)
        if c_width(groups, number) <= edge:
            break
        edge *= 2
    # without larger values the sum is smaller: a bound of the answer from below
    least = -INFINITY
    if edge < 0.125 * top:
        for i in range(4):
            c_part(groups, number, users, ldexp(edge, -4 * i))
            if not c_gains(groups, number):
                break
            if c_contour(groups, number, 2e-3, 4e6, turns, &least, &unused) < 0 or least > -INFINITY:
                break
    else:
        edge = top
    while edge < top:
        chance = c_part(groups, number, users, edge)
        sums = 0
        for i in range(number):
            groups[i].above = 0
            for j in range(groups[i].atoms, users[i].atoms):
                groups[i].above += exp(groups[i].log_w[j])
                sums += groups[i].count * exp(groups[i].log_w[j]) * groups[i].x[j]
        if chance < 0.25:
            short_of = chance * c_short(groups, number, edge)
            # the answer, roughly: what the others lose is at most half a jump
            if short_of <= 0.125 * rtol * fmax(exp(least), 0.3 * sums):
                break
        edge *= 1.4142135623730951
    if edge >= top:
        c_part(groups, number, users, top)
        return
    out.error = short_of
    for i in range(number):
        out.log_none += groups[i].count * log1p(-groups[i].above)
    for i in range(number):
        g = &groups[i]
        sums = first = 0
        for j in range(users[i].atoms):
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
        out.error += g.count * (sums + fabs(first) * later) * 256 * EPS


cdef bint c_gains(const Group *groups, Py_ssize_t number) noexcept nogil:
    """Tell whether any value is above 0."""
    cdef Py_ssize_t i, j
    for i in range(number):
        for j in range(groups[i].atoms):
            if groups[i].x[j] > 0:
                return True
    return False


cdef Py_ssize_t c_log_excess(const Users *users, Py_ssize_t number, double rtol, double work,
                             double *lower, double *upper) noexcept nogil:
    cdef Py_ssize_t size = 0, terms = 0, i, j, kept = 0
    cdef double top, simple = 0, least = 0, low = -INFINITY, high = -INFINITY, scale, aim, calm
    cdef int power
    cdef Group *groups
    cdef double *room
    cdef Turn *turns
    cdef Jumps some
    for i in range(number):
        size += room_of(users[i].atoms)
        terms += users[i].atoms
    groups = <Group *> malloc(number * sizeof(Group))
    room = <double *> malloc(size * sizeof(double))
    turns = <Turn *> malloc(number * sizeof(Turn))
    lower[0] = -INFINITY
    upper[0] = INFINITY
    if groups == NULL or room == NULL or turns == NULL:
        free(groups)
        free(room)
        free(turns)
        return -1
    c_prepare(users, number, groups, room, &power, &top)
    scale = power * 0.6931471805599453
    # (x)_+ is subadditive: n E X_+ bounds the answer; from below, so does a gain while nobody has a loss
    for i in range(number):
        aim = 0
        for j in range(groups[i].atoms):
            simple += groups[i].count * groups[i].w[j] * fmax(groups[i].x[j], 0)
            aim += groups[i].w[j] if groups[i].x[j] < 0 else 0
        if aim > 0.5:
            # what is left is not known from what is not
            calm = groups[i].rest
            for j in range(groups[i].atoms):
                calm += groups[i].w[j] if groups[i].x[j] >= 0 else 0
            least += groups[i].count * log(calm) if calm > 0 else -INFINITY
        else:
            least += groups[i].count * log1p(-aim)
    if simple <= 0:
        # no gain at all, or one of a chance below the smallest double
        upper[0] = -INFINITY if top <= 0 else scale - 700
        free(groups)
        free(room)
        free(turns)
        return 0
    upper[0] = log(simple) + 8 * EPS * (terms + 1 + fabs(log(simple)))
    lower[0] = log(simple) + least * (1 + 1e-12) - 1e-12 - 8 * EPS * (terms + 1) if least > -1e5 else -INFINITY
    for i in range(3):
        # a rough answer comes sooner by the contour
        if c_outcomes(groups, number) <= (LISTED if rtol < 1e-5 else 0.01 * LISTED):
            c_listed(groups, number, &low, &high)
            some.log_none = some.mean = some.error = 0
        else:
            aim = rtol if i == 0 else fmax(rtol, 1e-4 if i == 1 else 1e-2)
            c_split(groups, number, users, top, aim, turns, &some)
            low = high = -INFINITY
            # nobody else gains where the jumps are the only gains
            if c_gains(groups, number):
                # a coarse U would reach from what jumps give into the bulk
                kept = c_contour(groups, number, aim if i == 0 else fmax(rtol, 0.3 * aim), work, turns, &low, &high)
            if kept < 0:
                break
        if some.mean > 0:
            low = c_log_add_exp(low + some.log_none * (1 + 16 * EPS), log(fmax(some.mean - some.error, 1e-320))) - 4 * EPS
            high = c_log_add_exp(high + some.log_none * (1 - 16 * EPS), log(some.mean + some.error)) + 4 * EPS
        lower[0] = fmax(lower[0], low)
        upper[0] = fmin(upper[0], high + 4 * EPS * fabs(high))
        if upper[0] - lower[0] < 2e-4:
            break
        # coarser, where a heavy tail needs too many nodes: fewer values are left on the contour
        c_prepare(users, number, groups, room, &power, &top)
    lower[0] += scale - 4 * EPS * (fabs(scale) + fabs(lower[0]))
    upper[0] += scale + 4 * EPS * fabs(scale)
    free(groups)
    free(room)
    free(turns)
    return kept


cdef double c_rough_excess(const Users *users, Py_ssize_t number) noexcept nogil:
    cdef Py_ssize_t size = 0, i
    cdef double top, theta, value = -INFINITY
    cdef int power
    cdef Cumulant at
    cdef Group *groups = <Group *> malloc(number * sizeof(Group))
    cdef double *room
    for i in range(number):
        size += room_of(users[i].atoms)
    room = <double *> malloc(size * sizeof(double))
    if groups != NULL and room != NULL:
        c_prepare(users, number, groups, room, &power, &top)
        if top > 0:
            theta = c_saddle(groups, number, False, &at)
            value = at.value - 0.5 * log(6.283185307179586 * (theta * theta * at.var + 2)) - log(theta) + power * 0.6931471805599453
    free(groups)
    free(room)
    return value


def sandwich():
    """Return the two series in Hermite polynomials of even order, above and below, for the test that holds them."""
    return [ABOVE[i] for i in range(TERMS)], [BELOW[i] for i in range(TERMS)], [SIZES[i] for i in range(TERMS)]


def log_excess(const double[::1] values, const double[::1] log_mass, const Py_ssize_t[::1] starts, const double[::1] counts,
               double rtol=2e-7, double work=6e7):
    """log E[max(0, S)], S a sum over groups of users: atoms starts[i]..starts[i+1] and counts[i] users each.

    Parameters
    ----------
    values, log_mass : ndarray
        The atoms of all groups, one group after the other; the rest of each group's mass sits at 0.
    starts : ndarray
        First atom of each group, and the end.
    counts : ndarray
        Users of each group.
    rtol, work : float
        Aimed-at distance of the sides, and evaluations of an atom that may be spent on it.

    Returns
    -------
    (float, float)
        Lower and upper bound.
    """
    cdef Py_ssize_t number = counts.shape[0], i, done
    cdef double lower = -INFINITY, upper = INFINITY
    cdef Users *users = <Users *> malloc(number * sizeof(Users))
    if users == NULL:
        raise MemoryError
    for i in range(number):
        users[i].x = &values[0] + starts[i]
        users[i].log_w = &log_mass[0] + starts[i]
        users[i].atoms = starts[i + 1] - starts[i]
        users[i].count = counts[i]
    with nogil:
        done = c_log_excess(users, number, rtol, work, &lower, &upper)
    free(users)
    if done < 0:
        raise MemoryError
    return lower, upper


def log_excess_rows(const double[:, ::1] values, const double[::1] log_mass, double count, double rtol=2e-7, double work=6e7):
    """log E[max(0, S)] of `count` users with the same law, for each row of values.

    Returns
    -------
    (ndarray, ndarray)
        Lower and upper bounds, one a row.
    """
    cdef Py_ssize_t i, rows = values.shape[0], done = 0
    cdef double[::1] lower = np.empty(rows), upper = np.empty(rows)
    cdef Users users
    users.log_w = &log_mass[0]
    users.atoms = log_mass.shape[0]
    users.count = count
    for i in range(rows):
        with nogil:
            users.x = &values[i, 0]
            done = c_log_excess(&users, 1, rtol, work, &lower[i], &upper[i])
        if done < 0:
            raise MemoryError
        # up to a second may have passed
        PyErr_CheckSignals()
    return np.asarray(lower), np.asarray(upper)


def tilted_nodes(const double[::1] values, const double[::1] log_mass, double count, double theta, double step, double last,
                 Py_ssize_t most):
    """The characteristic function of a sum of `count` users tilted by theta, at nodes k step where it is not proven negligible.

    Parameters
    ----------
    values, log_mass : ndarray
        The atoms of one user, the rest of the mass at 0.
    count, theta : float
        Users, and the tilt > 0.
    step, last : float
        Distance of the nodes, and how far they go.
    most : int
        So many places are looked at, at most.

    Returns
    -------
    (ndarray, float, float, float)
        Columns t, log |phi|, arg phi and a bound of the relative error; up to where no node is missing with |phi| above e^-40;
        K(theta); what rounding does to it for each unit of theta.
    """
    cdef Py_ssize_t atoms = values.shape[0], kept, i
    cdef double[::1] room = np.empty(room_of(atoms))
    cdef double[:, ::1] out = np.empty((most + 1, 4))
    cdef double end = 0
    cdef Cumulant at
    cdef Group group
    cdef Turn turn
    with nogil:
        # unscaled: the caller's theta times the values is moderate
        group.atoms, group.count = atoms, count
        group.x, group.w, group.log_w = &room[0], &room[atoms], &room[2 * atoms]
        group.p, group.y = &room[3 * atoms], &room[4 * atoms + EXCESS_LANES]
        for i in range(atoms):
            group.x[i], group.log_w[i] = values[i], log_mass[i]
        c_masses(&group)
        c_cumulant(&group, 1, theta, True, &at)
        kept = c_nodes(&group, 1, step, last, 40, &at, <Node *> &out[0, 0], most, &turn, &end)
    return np.asarray(out)[:kept], end, at.value, at.blur
