"""The positive part of a sum of independent users in atoms, by inversion along an exponentially tilted contour.

    E S_+,  S = sum of independent X_i;  groups of users, X = x[j] with chance w[j], else 0;  K(s) = sum n log1p(sum w expm1(s x))
    Phi_n(X) = E S_+ / n is the hockey stick behind every shuffled randomizer (docs/mathematics).

Layer: ``c_log_excess`` (noexcept nogil, declared in _excess.pxd), thin loops for Python; sums over atoms in excess.h.

Checked by the caller: counts integers >= 1 of total <= 2**53, log w <= 0 with a total of at most 1 to rounding, x finite.
Method   at most 2e5 outcomes     all of them are listed (up to 3e4 users)
         otherwise                U ~ N(0, tau^2) independent:  E(S+U)_+ - tau^2 f_{S+U}(0) <= E S_+ <= E(S+U)_+, as
                                  E(s+U)_+ - s_+ = tau g(|s|/tau), 0 <= g(z) = pdf(z) - z cdf(-z) <= pdf(z). Both by the
                                  trapezoid on Re s = theta, K'(theta) = 2/theta, of e^(K(s) + tau^2 s^2/2)/s^2 (f: 1)
         trapezoid                adds sum_m e^(theta L m) E(S+U-Lm)_+ >= 0, L = 2 pi/step: nothing to do above; below,
                                  Chernoff's bound of it at theta +- d goes off (c_alias), L is widened until that is 1e-11
         revivals of |phi|        the angle arccos|phi_i(t)| moves at most by sd_i dt (c_stride), so that stretches with
                                  |phi| < e^-40 are proven and stepped over; nodes lie in between only
         heavy tails              values that decide the sign of S alone are taken out (c_split): E S_+ given none, and
                                  E S + E S_- given some
Roundings   values and masses are taken to be good to 4 ulp, plus what exp(log w) loses; that, n log1p(sum w expm1), the phases
         n arg phi and the sum of nodes are charged by a model (ulp counts, c_cumulant's blur), not interval arithmetic.
         It grows like sqrt(n): 3e-6 at n = 2**53, 1e-9 at 1e9.

Measured   (tests/reference/measure_excess.py: powers of polynomials at 400 bits, lattice laws, n = 1..600, log masses to -60)
    domain                                   trials   outside the sides   gap (log): median   peak
    listed                                   428      0                   1e-13               1e-9
    contour, atom at S = 0                   87       0                   2e-5                10 (a)
    k-ary response, n = 1e4..1e9, any depth  24       0                   1.9e-7              3.2e-7     (against the clone sweep)
    Gaussian noise on [0,1], sigma >= 1      6        -                   2e-7                5e-6
    the same, sigma = 1/2, n = 1e3..1e6      15       -                   3e-6                6e-5
    the same, sigma = 3/10 (b)               15       -                   0.05                1.0
    (a) n Pr[X > 0] << 1 and a next value far above 0: smoothing sees the atom at 0. The gap of an atom is first order in tau.
    (b) both tails heavy, no value decides alone: 5e-5 .. 1e-3 at n = 1e6, 0.01 .. 0.1 at 1e4, up to 1 at 1e3.
Cost     two atoms of full mass: 0.1 to 1 ms up to 3e4 users; four atoms: 0.02 to 0.1 ms at n = 1e9, 0.1 to 1 ms at 1e6,
         0.4 to 3 ms at 1e3 to 1e4; 5 ms at log delta = -15000; 800 atoms: 1 ms at n = 1e6, 4 ms at 1e4, 12 ms at 1e3.
         It does not grow with n. Heavy tails up to 0.5 s.
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
    void excess_phi(const double *p, const double *y, Py_ssize_t n, double t, double reach, double *less, double *side)

cdef double EPS = 1.1102230246251565e-16          # half an ulp of 1
cdef double DEPTH = 30.0                          # of the aliases, relative to the answer
cdef double BAND = 40.0                           # |phi|^n <= e^-BAND at the nodes left out
cdef double REACH = 8.5                           # the Gaussian factor ends at so many of its standard deviations
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


cdef void c_cumulant(Group *groups, Py_ssize_t number, double theta, bint tilt, Cumulant *out) noexcept nogil:
    """K(theta) = sum n log1p(sum w expm1(theta x)) and its derivatives; the tilted laws too, if asked for.

    K is infinite where a term overflows: theta is beyond the saddle then, as max(p x theta) <= 2/n + 1/e there.
    """
    cdef Py_ssize_t i, j, k
    cdef Group *g
    cdef dd total = dd_make(0, 0), slope = dd_make(0, 0), gain, first
    cdef double up, grown, mass, second, blur, mean, y
    out.var = out.blur = 0
    for i in range(number):
        g = &groups[i]
        gain = first = dd_make(0, 0)
        second = blur = 0
        for j in range(g.atoms):
            up = theta * g.x[j]
            grown = g.w[j] * exp(up) if up < 700 else exp(up + g.log_w[j])
            gain = dd_add(gain, dd_make(g.w[j] * expm1(up) if up < 700 else grown, 0))
            first = dd_add(first, dd_make(grown * g.x[j], 0))
            second += grown * g.x[j] * g.x[j]
            blur += grown * fabs(g.x[j]) * (20 - g.log_w[j]) if grown > 0 else 0
            if tilt:
                g.p[j] = grown
        mass = 1 / (1 + gain.hi)
        total = dd_add(total, dd_prod(g.count, log1p(gain.hi)))
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
            g.seen = k + 1
            g.p[k] = g.rest * mass
            g.y[k] = -mean
        else:
            second = fmax(second * mass - mean * mean, 0)
        g.sd = sqrt(second)
        out.var += g.count * second
    out.value = total.hi if total.hi == total.hi else INFINITY
    out.slope = slope.hi if slope.hi == slope.hi else INFINITY
    out.blur *= EPS


cdef double c_saddle(Group *groups, Py_ssize_t number, Cumulant *at) noexcept nogil:
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
    c_cumulant(groups, number, theta, True, at)
    return theta


cdef double c_alias(Group *groups, Py_ssize_t number, double theta, double period, const Cumulant *at) noexcept nogil:
    """Bound on what the trapezoid adds: sum over m != 0 of e^(theta L m - K(theta)) E(S + U - L m)_+.

    From (x)_+ <= e^(s x)/(e s) with s = theta +- d; the tilt d is the one that suits a Gaussian. U's share is in the factor 2.
    """
    cdef Cumulant beside
    cdef double root = period * period - 2 * at.var * (DEPTH + 2), total = 0, d
    d = (period - sqrt(fmax(root, 0))) / at.var if at.var * (DEPTH + 2) > 1e-6 * period * period else (DEPTH + 2) / period
    c_cumulant(groups, number, theta + d, False, &beside)
    total += exp(beside.value - at.value - d * period) / ((theta + d) * -expm1(-d * period))
    d = fmin(d, theta - 1 / period)
    if d <= 0:
        return INFINITY
    c_cumulant(groups, number, theta - d, False, &beside)
    total += exp(beside.value - at.value - d * period) / ((theta - d) * -expm1(-d * period))
    return 2 * total / 2.718281828459045 if total == total else INFINITY


# --------------------------------------------------------------------------------------------------------------- nodes

# The integrand without its Gaussian factor: log |phi|, its argument and its relative error, at t.
cdef struct Node:
    double t
    double log_abs
    double phase
    double error


cdef double c_angle(double square) noexcept nogil:
    """arccos of a modulus whose square is 1 + square."""
    return atan2(sqrt(fmax(-square, 0)), sqrt(fmax(1 + square, 0)))


cdef double c_stride(Group *groups, Py_ssize_t number, const double *angles) noexcept nogil:
    """How far on |phi| is proven to stay below e^-BAND.

    arccos |phi_i(t)|, the angle between the states sqrt(p) and sqrt(p) e^(itx), moves at most as fast as sd_i (Fubini-Study).
    """
    cdef double best = 0, edge, low, high, middle, total
    cdef Py_ssize_t i
    cdef int _k
    for i in range(number):
        if groups[i].sd > 0:
            edge = exp(-BAND / groups[i].count)
            edge = atan2(sqrt(-expm1(-2 * BAND / groups[i].count)), edge)
            best = fmax(best, (angles[i] - edge) / groups[i].sd)
    if number == 1:
        return best
    low, high = best, 0
    for i in range(number):
        if groups[i].sd > 0:
            high = fmax(high, angles[i] / groups[i].sd)
    for _k in range(8):
        middle = 0.5 * (low + high)
        total = 0
        for i in range(number):
            edge = angles[i] - groups[i].sd * middle
            if edge > 0:
                total += groups[i].count * log(cos(edge))
        if total < -BAND:
            low = middle
        else:
            high = middle
    return low


cdef Py_ssize_t c_nodes(Group *groups, Py_ssize_t number, double step, double last, double drift, double blur, Node *nodes,
                        Py_ssize_t most, double *angles, double *end) noexcept nogil:
    """Nodes t = k step up to `last` with |phi| >= e^-BAND, at most so many evaluations; end[0]: up to where none is missing."""
    cdef double k = 0, t = 0, less, side, square, effort, jump
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
        node.phase = t * drift
        effort = 0
        for i in range(number):
            excess_phi(groups[i].p, groups[i].y, groups[i].seen, t, groups[i].reach, &less, &side)
            square = fmax(fmax(-2 * less + less * less + side * side, -2 * less), -1.0)
            angles[i] = c_angle(square)
            node.log_abs += 0.5 * groups[i].count * log1p(square)
            square = atan2(side, 1 - less)
            node.phase += groups[i].count * square
            effort += groups[i].count * fabs(square)
        if node.log_abs < -BAND:
            jump = floor(c_stride(groups, number, angles) * (1 - 1e-9) / step)
            k += jump if jump > 1 else 1
            continue
        node.error = t * blur + EPS * (8 + 2 * fabs(node.phase) + 2 * effort - 8 * node.log_abs)
        kept += 1
        k += 1
    else:
        end[0] = t
    return kept


cdef void c_sum(const Node *nodes, Py_ssize_t kept, double theta, double step, double tau, double end, double alias,
                double *lower, double *upper) noexcept nogil:
    """Sides of e^-K(theta) E S_+ from E(S+U)_+ and tau^2 times the density of S + U at 0."""
    cdef double total = 0, total_error = 0, density = 0, density_error = 0, t, size, turn, norm, weight, left, square = tau * tau
    # what adding so many terms rounds
    cdef double sums = EPS * kept
    cdef Py_ssize_t i
    for i in range(kept):
        t = nodes[i].t
        if t > end:
            break
        weight = 2 if t > 0 else 1
        size = weight * exp(nodes[i].log_abs + 0.5 * square * (theta * theta - t * t))
        turn = nodes[i].phase + square * theta * t
        norm = theta * theta + t * t
        density += size * cos(turn)
        density_error += size * (nodes[i].error + sums)
        size /= norm
        total += size * (cos(turn) * (theta * theta - t * t) + sin(turn) * 2 * theta * t) / norm
        total_error += size * (nodes[i].error + sums)
    weight = step / 6.283185307179586
    # the nodes left out: below e^-BAND, and beyond the Gaussian's reach
    left = exp(0.5 * square * theta * theta)
    size = left * exp(-0.5 * REACH * REACH)
    total_error = weight * total_error + left * exp(-BAND) / (2 * theta) + size / (end * REACH)
    density_error = weight * density_error + (left * exp(-BAND) * end + size * end) / 3
    total *= weight
    density *= weight
    upper[0] = total + total_error
    lower[0] = total - total_error - alias - square * (density + density_error)


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
        g.x, g.w, g.log_w, g.p, g.y = room, room + g.atoms, room + 2 * g.atoms, room + 3 * g.atoms, room + 4 * g.atoms + 1
        room += 5 * g.atoms + 2
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


cdef Py_ssize_t c_contour(Group *groups, Py_ssize_t number, double rtol, double work, double *angles,
                          double *lower, double *upper) noexcept nogil:
    """Sides of log E S_+ by the trapezoid; returns the nodes kept, or -1 without memory."""
    cdef double theta, period, step, tau, end, guess, alias = INFINITY, low, high, slack
    cdef Py_ssize_t i, most, kept, _try, size = 0
    cdef Node *nodes
    cdef Cumulant at
    theta = c_saddle(groups, number, &at)
    for i in range(number):
        size += groups[i].seen
    guess = 1 / (theta * theta * sqrt(6.283185307179586 * (at.var + 2 / (theta * theta))))
    period = fmax(1.15 * (DEPTH + 4) / theta, 1.1 * sqrt(2 * (DEPTH + 2) * at.var))
    for _try in range(24):
        alias = c_alias(groups, number, theta, period, &at)
        if alias < 1e-11 * guess:
            break
        period *= 1.25
    step = 6.283185307179586 / period
    tau = sqrt(rtol) / theta
    most = <Py_ssize_t> fmin(fmax(work / size, 2048), 4e5)
    nodes = <Node *> malloc((most + 1) * sizeof(Node))
    if nodes == NULL:
        return -1
    kept = c_nodes(groups, number, step, REACH / tau, at.slope, at.blur, nodes, most, angles, &end)
    if end < REACH / tau:
        tau = REACH / end
    c_sum(nodes, kept, theta, step, tau, end, alias, &low, &high)
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


cdef void c_split(Group *groups, Py_ssize_t number, const Users *users, double top, double rtol, double *angles,
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
            if c_contour(groups, number, 1e-2, 4e6, angles, &least, &unused) < 0 or least > -INFINITY:
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
    cdef Py_ssize_t size = number, i, j, kept = 0
    cdef double top, simple = 0, least = 0, low = -INFINITY, high = -INFINITY, scale, aim, calm
    cdef int power
    cdef Group *groups
    cdef double *room
    cdef Jumps some
    for i in range(number):
        size += 5 * users[i].atoms + 2
    groups = <Group *> malloc(number * sizeof(Group))
    room = <double *> malloc(size * sizeof(double))
    lower[0] = -INFINITY
    upper[0] = INFINITY
    if groups == NULL or room == NULL:
        free(groups)
        free(room)
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
        return 0
    upper[0] = log(simple) + 8 * EPS * (size + fabs(log(simple)))
    lower[0] = log(simple) + least * (1 + 1e-12) - 1e-12 - 8 * EPS * size if least > -1e5 else -INFINITY
    for i in range(3):
        # a rough answer comes sooner by the contour
        if c_outcomes(groups, number) <= (LISTED if rtol < 1e-5 else 0.01 * LISTED):
            c_listed(groups, number, &low, &high)
            some.log_none = some.mean = some.error = 0
        else:
            aim = rtol if i == 0 else fmax(rtol, 1e-4 if i == 1 else 1e-2)
            c_split(groups, number, users, top, aim, room + size - number, &some)
            low = high = -INFINITY
            # nobody else gains where the jumps are the only gains
            if c_gains(groups, number):
                kept = c_contour(groups, number, aim, work, room + size - number, &low, &high)
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
    return kept


cdef double c_rough_excess(const Users *users, Py_ssize_t number) noexcept nogil:
    cdef Py_ssize_t size = number, i
    cdef double top, theta, value = -INFINITY
    cdef int power
    cdef Cumulant at
    cdef Group *groups = <Group *> malloc(number * sizeof(Group))
    cdef double *room
    for i in range(number):
        size += 5 * users[i].atoms + 2
    room = <double *> malloc(size * sizeof(double))
    if groups != NULL and room != NULL:
        c_prepare(users, number, groups, room, &power, &top)
        if top > 0:
            theta = c_saddle(groups, number, &at)
            value = at.value - 0.5 * log(6.283185307179586 * (theta * theta * at.var + 2)) - log(theta) + power * 0.6931471805599453
    free(groups)
    free(room)
    return value


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
