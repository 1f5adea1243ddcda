"""Upper and lower bounds of the expected positive part of a sum of independent users, each with finitely many values (atoms).

    The kernels bound E S_+ for the sum S of independent X_i, one for each user. In a group of users, X = x[j] with probability
    w[j], and these masses sum to 1. If all n users are in one group, Phi_n(X) = E S_+ / n is the blanket bound of the hockey-stick
    divergence of a shuffled randomizer (docs/theorems/interval-inputs).

_tilted.pyx has the tilted distribution, _smoothed.pyx the contour, _heavy_tails.pyx heavy tails, and excess.h sums over atoms.

Checked by the caller: counts are integers >= 1 of total <= 2**53, log w <= 0, x finite. The masses w include that of x = 0. This
mass may be far below an ulp of 1, and determines the result if S > 0 requires that nearly all X_i are 0.
Method   at most 2e5 outcomes     all outcomes are enumerated, if no group has more than 3e4 users. The limit is 5e5 outcomes for up
                                  to 100 users, 5e7/users for up to 250, and 2e3 outcomes if rtol >= 1e-5. With one group of at most
                                  eight kinds of users (one for each value), the numbers of the rarer kinds are enumerated, and sums
                                  over the last two kinds are read from tables (`Kinds`). The tables are used for about 2e4 outcomes
                                  at most if rtol >= 1e-5 (a coarse contour takes as long) or if one kind has nearly all users (the
                                  contour is long), and for 5e7/users outcomes at most if rtol < 1e-5
         heavy tails              values so large that a single one makes S positive are split off (_heavy_tails.pyx). If both tails
                                  are heavy, sums of several heavy values are formed over the contour of the other values
                                  (_smoothed.tilted_nodes, _engines/excess/heavy_tails.py)
         otherwise                a contour integral with the tolerance rtol, repeated with less smoothing while the gap is above
                                  max(2e-4, 3 rtol). If a heavy tail needs too many nodes, the integral is repeated with the
                                  tolerances 1e-4 and 1e-2, for which more values are split off
         always                   the upper bound n E X_+; the lower bound n E X_+ Pr[no user has a negative value]
         a cell of datasets       one upper bound for all numbers of users within limits, by the theorem of Berry and Esseen
Roundings   values and masses are assumed accurate to 4 ulp, plus the error of exp(log w). The effect of all roundings is bounded
         by a model (ulp counts), not by interval arithmetic. This bound grows like sqrt(n): 1e-9 at n = 1e9, 3e-6 at 2**53.

Measured error (tests/reference/measure_excess.py: powers of polynomials at 400 bits, distributions on a lattice, n = 1..600, log
    masses to -60; the clone sweep; Gaussian noise from 1e3 to 1e6 users, thresholds at 1 to 6 standard deviations: no reference)
    domain                                        trials   outside the bounds  gap (log): median   peak
    enumerated                                    400      0                   1.6e-13             8.1e-10
    the same, n to 500, another seed              8940     0                   -                   9.7e-10
    contour, atom at S = 0                        84       0                   1.3e-5              9.2 (a)
    binary response, n = 1e4..1e9, eps0 to 8      600      0                   1.9e-7              1.2e-6
    Gaussian noise on [0, 1], sigma 1..2          60       -                   2.2e-7              3.1e-4
    the same, sigma = 1/2                         60       -                   1.2e-5              2.6e-5
    the same, sigma = 3/10                        60       -                   5.7e-7              20 (b)
    (a) if n Pr[X > 0] is far below 1 and positive values are large, the mass that the smoothing moves from S = 0 to positive
        numbers dominates.
    (b) with few users and at small delta the bounds can be trivial.
Cost     in ms, for ten-ary response (four atoms): 0.005 from n = 1e6 on, 0.007 at 1e4, 0.2 at 1e3, by tables 0.03 to 0.13 at 100 to
         300 (less if the tables are kept), and 1.5 at log delta = -15486. For Laplace noise of 802 atoms: 0.3 at 1e6, 2.1 at 1e4,
         6 at 1e3. The run time does not grow with n. Heavy tails take up to 0.8 s.
Source   inversion: classical; bounds by subadditivity
"""

from libc.math cimport INFINITY, erfc, exp, fabs, fmax, fmin, frexp, ldexp, log, log1p, sqrt
from libc.stdlib cimport calloc, free, malloc

from shufflebounds._core._constants cimport UNIT
from shufflebounds._core._dd cimport dd, dd_add, dd_make
from shufflebounds._core._heavy_tails cimport Jumps, c_gains, c_split
from shufflebounds._core._smoothed cimport Turn, c_contour
from shufflebounds._core._special cimport c_log_add_exp, c_mills_ratio
from shufflebounds._core._tilted cimport Cumulant, Group, c_lay_out, c_saddle, room_of

cdef extern from "arithmetic.h" nogil:
    double log_gamma(double x)
    Py_ssize_t whole(double x, Py_ssize_t low, Py_ssize_t high)

cdef double LISTED = 2e5                          # largest number of outcomes to enumerate; more is slower than the contour
cdef double LISTED_USERS = 5e7                    # largest outcomes times users to enumerate: with few users the contour is slow
cdef double MOST_OUTCOMES = 5e5                   # largest number of outcomes to enumerate for few users, in at most about .1 s
cdef double MOST_LISTED = 3e4                     # largest number of users for an enumeration
cdef double RARE = 40                             # users of the rarer kinds: for fewer, |phi|^n stays above e^-80 on a long contour
cdef Py_ssize_t FULL_ROW = 512                    # users up to which a table has all weights: a search for the smallest saves less
cdef Py_ssize_t MOST_HELD = 2**21                 # size of the tables (16 MB) above which they are emptied between two sums
cdef double MOST_LIGHT = 5                        # theta times the largest value up to which Chernoff's bound is close
cdef double MOST_ERROR = 1e-9                     # bound of the relative roundings of c_most_excess, except those of K(theta)
cdef double INCOMPLETE = 1e-6                     # largest permitted distance from 1 of the sum of the masses of a group


# ------------------------------------------------------------------------------------------------------------ few users

# The sums over the outcomes enumerated so far, for the lower and for the upper bound, both divided by e^top.
cdef struct Listing:
    Group *groups
    Py_ssize_t number
    double *log_factorial
    double top
    dd low
    dd high


cdef void c_list(Listing *out, Py_ssize_t group, Py_ssize_t atom, double left, double log_p, double effort, double value,
                 double blur) noexcept nogil:
    """Add to `out` all outcomes in which `left` users of `group` have atoms from `atom` on, combined with all outcomes of the later
    groups.

    left = -1 stands for all users of the group. The users whose atoms are already chosen contribute log_p to the log probability of
    the outcome and `value` to the sum. `effort` is a bound of the error of log_p in units of roundoff, and `blur` is a bound of the
    error of `value`.
    """
    cdef Group *g
    cdef double k, chance, size, rest = 0, most = 0
    cdef Py_ssize_t i, j
    if group == out.number:
        size = value + blur
        if size <= 0 or log_p == -INFINITY:
            return
        # the sums are rescaled only if log_p exceeds top by 40, so that few rounding errors accumulate
        if log_p > out.top + 40:
            chance = exp(out.top - log_p) if out.top > -INFINITY else 0
            out.low = dd_make(out.low.hi * chance, 0)
            out.high = dd_make(out.high.hi * chance, 0)
            out.top = log_p
        chance = exp(log_p - out.top)
        effort = UNIT * (effort + 16)
        out.high = dd_add(out.high, dd_make(chance * (1 + effort) * size, 0))
        if value > blur:
            out.low = dd_add(out.low, dd_make(chance * (1 - effort) * (value - blur), 0))
        return
    g = &out.groups[group]
    if left < 0:
        left = g.count
        log_p += out.log_factorial[<Py_ssize_t> left]
        effort += 8 * left + 4 * out.log_factorial[<Py_ssize_t> left]
    if atom == g.atoms or left == 0:
        if left == 0 or g.log_rest > -INFINITY:
            c_list(out, group + 1, 0, -1, log_p + (left * g.log_rest - out.log_factorial[<Py_ssize_t> left] if left > 0 else 0),
                   effort - (2 * left * g.log_rest if left > 0 else 0), value, blur)
        return
    # Outcomes whose sum is not positive contribute nothing, so the recursion stops if the remaining users cannot make the sum
    # positive. `rest` is the largest value of a later atom of this group, or 0, and `most` is the largest sum of the later groups.
    for j in range(atom + 1, g.atoms):
        rest = fmax(rest, g.x[j])
    for i in range(group + 1, out.number):
        size = 0
        for j in range(out.groups[i].atoms):
            size = fmax(size, out.groups[i].x[j])
        most += size * out.groups[i].count
    # without mass at 0, the remaining users have the last atom
    k = left if g.log_rest == -INFINITY and atom == g.atoms - 1 else 0
    if g.x[atom] > rest and value + blur + (left * g.x[atom] + most) * (1 + 1e-12) <= 0:
        return
    while k <= left:
        if g.x[atom] <= 0 and value + k * g.x[atom] * (1 - 1e-12) + blur + ((left - k) * rest + most) * (1 + 1e-12) <= 0:
            return
        c_list(out, group, atom + 1, left - k, log_p + k * g.log_w[atom] - out.log_factorial[<Py_ssize_t> k],
               effort - 2 * k * g.log_w[atom], value + k * g.x[atom], blur + 10 * UNIT * k * fabs(g.x[atom]))
        k += 1


cdef bint c_few_outcomes(const Group *groups, Py_ssize_t number, double rtol) noexcept nogil:
    """Returns True if an enumeration of all outcomes is faster than the contour, or takes only a few milliseconds."""
    cdef double total = 1, k, most = 0
    cdef Py_ssize_t i, j
    for i in range(number):
        most += groups[i].count
    # with a large tolerance the contour is faster than an enumeration of many outcomes
    most = fmin(fmax(LISTED, LISTED_USERS / most), MOST_OUTCOMES) if rtol < 1e-5 else 0.01 * LISTED
    for i in range(number):
        # More than MOST_LISTED users have at most 2e5 outcomes only if they have two values each, and then the contour is faster.
        if groups[i].count > MOST_LISTED:
            return False
        for j in range(groups[i].atoms if groups[i].log_rest > -INFINITY else groups[i].atoms - 1):
            k = j + 1
            total *= (groups[i].count + k) / k
            if total > most:
                return False
    return True


cdef void c_listed(Group *groups, Py_ssize_t number, double *lower, double *upper) noexcept nogil:
    """Writes bounds of log E S_+ by enumeration of all outcomes."""
    cdef Listing listing
    cdef double blur
    cdef Py_ssize_t i, most = 0
    for i in range(number):
        most = max(most, whole(groups[i].count, 0, <Py_ssize_t> MOST_LISTED))
    listing.log_factorial = <double *> malloc((most + 1) * sizeof(double))
    if listing.log_factorial == NULL:
        lower[0], upper[0] = -INFINITY, INFINITY
        return
    for i in range(most + 1):
        listing.log_factorial[i] = log_gamma(<double> i + 1)
    listing.groups = groups
    listing.number = number
    listing.top = -INFINITY
    listing.low = listing.high = dd_make(0, 0)
    c_list(&listing, 0, 0, -1, 0, 0, 0, 0)
    free(listing.log_factorial)
    blur = 64 * UNIT + 8 * UNIT * fabs(listing.top)
    lower[0] = listing.top + log(listing.low.hi) - blur if listing.low.hi > 0 else -INFINITY
    upper[0] = listing.top + log(listing.high.hi) + blur if listing.high.hi > 0 else -INFINITY


# The listing of one group with at most eight kinds of users (the atoms and the mass at 0), the rarest kind first. All numbers of
# users of the rarer kinds are listed. The last two kinds, a and b with x_a > x_b, have k and m - k users; sums over k are read from
# a table. Let v + k d be the sum of all values, and r_k = w_a^k w_b^(m-k)/(k! (m-k)!), divided by its largest value. Then
#     sum_k r_k (v + k d)_+ = (v + j d) sum_(k >= j) r_k + d sum_(k >= j) (k - j) r_k,    where j is the first k with v + k d > 0.
# No term is negative. Any other j gives a smaller value, so the rounding of j matters for the upper bound only, where `blur` covers
# it.
cdef struct Kinds:
    Py_ssize_t number
    double[8] x
    double[8] log_w
    double[8] share             # of the users who have this kind or a later one
    double[8] log_later         # log of the mass of the later kinds
    double[8] greatest          # largest value of this kind and the later ones
    double others               # mean number of users of all kinds but the most frequent one
    double log_size             # log of a bound of the sum of all values
    double negligible           # log of a contribution to E S_+ below which outcomes are bounded together
    double skipped              # the sum of the bounds of such outcomes, divided by e^negligible
    double *log_factorial       # those of `tables`
    double *inverse
    double **rows
    Tables *tables
    bint failed
    double top
    dd low
    dd high


cdef double *c_row(Kinds *out, Py_ssize_t left) noexcept nogil:
    """Returns the table for `left` users of the last two kinds; NULL if there is no memory.

    With the weight r_i of i users of the first of the two kinds (`Kinds`), the table holds the log of the largest weight and the
    first and the last k. For every k from the first to the last + 1, it holds sum_(i >= k) r_i and sum_(i >= k) (i - k) r_i. The
    weights r_i of all other i are below 1e-300.
    """
    cdef Py_ssize_t a = out.number - 2, b = out.number - 1, k, mode, first = 0, last = left
    cdef double *row = out.rows[left]
    cdef double *sums
    cdef double *more
    cdef double ratio, inverse, total = 0, above = 0, weight = 1
    if row != NULL:
        return row
    ratio, inverse = exp(out.log_w[a] - out.log_w[b]), exp(out.log_w[b] - out.log_w[a])
    mode = whole((left + 1) * (ratio / (1 + ratio) if ratio < 1 else 1 / (1 + 1 / ratio)), 0, left)
    if left > FULL_ROW:
        first = last = mode
        while last < left and weight > 1e-300:
            weight *= (left - last) * ratio * out.inverse[last + 1]
            last += 1
        weight = 1
        while first > 0 and weight > 1e-300:
            weight *= first * inverse * out.inverse[left - first + 1]
            first -= 1
    row = <double *> malloc((2 * (last - first) + 7) * sizeof(double))
    if row == NULL:
        return NULL
    out.rows[left] = row
    out.tables.held += 2 * (last - first) + 7
    row[0] = (mode * out.log_w[a] + (left - mode) * out.log_w[b]) - out.log_factorial[mode] - out.log_factorial[left - mode]
    row[1], row[2] = first, last
    sums, more = row + 3 - first, row + 5 + last - 2 * first
    sums[mode], sums[last + 1], more[last + 1] = 1, 0, 0
    for k in range(mode, last):
        sums[k + 1] = sums[k] * ((left - k) * ratio * out.inverse[k + 1])
    for k in range(mode, first, -1):
        sums[k - 1] = sums[k] * (k * inverse * out.inverse[left - k + 1])
    for k in range(last, first - 1, -1):
        above += total
        total += sums[k]
        sums[k], more[k] = total, above
    return row


cdef double c_positive(const double *row, Py_ssize_t left, double v, double d) noexcept nogil:
    """Returns sum_k r_k (v + k d)_+."""
    cdef Py_ssize_t j = 0 if v > 0 else whole(-v / d, 0, left) + 1, first = <Py_ssize_t> row[1], last = <Py_ssize_t> row[2]
    if j < first:
        return fmax(v + j * d, 0) * row[3] + d * (row[5 + last - first] + (first - j) * row[3])
    return fmax(v + j * d, 0) * row[3 + j - first] + d * row[5 + last - 2 * first + j] if j <= last else 0


cdef void c_pairs(Kinds *out, Py_ssize_t kind, Py_ssize_t left, double log_p, double effort, double value,
                  double blur) noexcept nogil:
    """Add to `out` all outcomes in which `left` users have kinds from `kind` on; the other arguments are those of `c_list`."""
    cdef Py_ssize_t k, mode, last = out.number - 2
    cdef double chance, size, d, more
    cdef const double *row
    cdef int turn
    if value + blur + left * out.greatest[kind] + 1e-12 * left * fabs(out.greatest[kind]) <= 0:
        return
    if kind == last:
        row = c_row(out, left)
        if row == NULL:
            out.failed = True
            return
        d = out.x[last] - out.x[last + 1]
        value += left * out.x[last + 1]
        blur += 10 * UNIT * left * fmax(fabs(out.x[last]), fabs(out.x[last + 1]))
        size = fabs(out.log_w[last]) + fabs(out.log_w[last + 1])
        effort = UNIT * (effort + 4 * left * (1 + size) + 64)
        log_p += row[0]
        if log_p > out.top + 40:
            chance = exp(out.top - log_p) if out.top > -INFINITY else 0
            out.low, out.high, out.top = dd_make(out.low.hi * chance, 0), dd_make(out.high.hi * chance, 0), log_p
        chance = exp(log_p - out.top)
        # a weight below 1e-300 may have underflowed
        size = 1e-290 * (fabs(value) + blur + left * d)
        out.high = dd_add(out.high, dd_make(chance * (1 + effort) * (c_positive(row, left, value + blur, d) + size), 0))
        out.low = dd_add(out.low, dd_make(chance * (1 - effort) * fmax(c_positive(row, left, value - blur, d) - size, 0), 0))
        return
    # The total weight of the outcomes with k users of this kind increases in k up to the mode and decreases beyond it.
    mode = whole((left + 1) * out.share[kind], 0, left)
    for turn in range(2):
        k = mode - turn
        while 0 <= k <= left:
            size = log_p + k * out.log_w[kind] - out.log_factorial[k]
            more = size + (left - k) * out.log_later[kind] - out.log_factorial[left - k] + out.log_size
            if more < out.negligible:
                out.skipped += (k + 1 if turn else left - k + 1) * exp(more - out.negligible)
                break
            c_pairs(out, kind + 1, left - k, size, effort - 2 * k * out.log_w[kind], value + k * out.x[kind],
                    blur + 10 * UNIT * k * fabs(out.x[kind]))
            k += -1 if turn else 1


cdef inline double likely(double users, double w) noexcept nogil:
    """Returns how many numbers of successes in `users` trials have a probability above about e^-60 (Bernstein's inequality)."""
    cdef double mean = users * w, var = mean * (1 - w)
    return fmin(users, mean + 20 + sqrt(400 + 120 * var)) - fmax(0, mean - sqrt(120 * var)) + 1


cdef double c_kinds(const Group *g, Kinds *out) noexcept nogil:
    """Fill in the kinds of users. Returns the number of outcomes that a listing computes, or inf if there are too many kinds."""
    cdef Py_ssize_t i, j, n = 0
    cdef double x, w, log_size, before = 0, cost = 1
    if g.atoms > 7:
        return INFINITY
    for i in range(g.atoms + 1):
        x, w = g.x[i] if i < g.atoms else 0, g.log_w[i] if i < g.atoms else g.log_rest
        if w == -INFINITY:
            continue
        j = n
        while j > 0 and out.log_w[j - 1] > w:
            out.x[j], out.log_w[j] = out.x[j - 1], out.log_w[j - 1]
            j -= 1
        out.x[j], out.log_w[j] = x, w
        n += 1
    if n < 2:
        return INFINITY
    if out.x[n - 2] < out.x[n - 1]:
        out.x[n - 2], out.x[n - 1] = out.x[n - 1], out.x[n - 2]
        out.log_w[n - 2], out.log_w[n - 1] = out.log_w[n - 1], out.log_w[n - 2]
    if not (out.x[n - 2] > out.x[n - 1] and fabs(out.log_w[n - 2] - out.log_w[n - 1]) < 600):
        return INFINITY
    out.number = n
    log_size = -INFINITY
    for i in range(n - 1, -1, -1):
        out.log_later[i] = log_size
        log_size = c_log_add_exp(log_size, out.log_w[i])
        out.share[i] = exp(out.log_w[i] - log_size)
        out.greatest[i] = fmax(out.x[i], out.greatest[i + 1]) if i < n - 1 else out.x[i]
    for i in range(n - 2):
        cost *= likely(g.count, exp(out.log_w[i]))
        before += exp(out.log_w[i])
    # weights above 1e-300 = e^-690 are at most this far from the mean (Bernstein's inequality)
    w = 1 / (1 + exp(out.log_w[n - 1] - out.log_w[n - 2]))
    log_size = fmin(g.count, 460 + 75 * sqrt(g.count * w * (1 - w)))
    out.others = g.count * (before + exp(fmin(out.log_w[n - 2], out.log_w[n - 1])))
    return 1.6 * cost + 0.3 * log_size * (likely(g.count, before) if n > 2 else 1)


cdef void c_forget(Tables *tables) noexcept nogil:
    cdef Py_ssize_t i
    if tables.rows != NULL:
        for i in range(tables.users + 1):
            free(tables.rows[i])
    free(tables.rows)
    free(tables.log_factorial)
    tables.rows, tables.log_factorial, tables.users, tables.held = NULL, NULL, 0, 0


cdef bint c_ready(Tables *tables, Py_ssize_t users, double first, double second) noexcept nogil:
    """Empty the tables unless they belong to these masses and this number of users; returns False if there is no memory."""
    # Allocate space for more users than in this call, for later calls: at most MOST_LISTED.
    cdef Py_ssize_t size = users if tables.users == 0 else max(users, min(users + users // 2, <Py_ssize_t> MOST_LISTED)), i
    if users <= tables.users and tables.first == first and tables.second == second and tables.held <= MOST_HELD:
        return True
    c_forget(tables)
    tables.log_factorial = <double *> malloc(2 * (size + 1) * sizeof(double))
    tables.rows = <double **> calloc(size + 1, sizeof(double *))
    tables.users = size
    if tables.log_factorial == NULL or tables.rows == NULL:
        c_forget(tables)
        return False
    tables.inverse = tables.log_factorial + size + 1
    for i in range(size + 1):
        tables.log_factorial[i] = log_gamma(<double> i + 1)
        tables.inverse[i] = 1 / fmax(i, 1)
    tables.first, tables.second = first, second
    return True


cdef bint c_paired(const Group *g, Kinds *out, Tables *tables, double about, double *lower, double *upper) noexcept nogil:
    """Writes bounds of log E S_+ by the listing of pairs of kinds; returns whether the bounds are close.

    `about` is near log E S_+.
    """
    cdef Py_ssize_t users = whole(g.count, 0, <Py_ssize_t> MOST_LISTED)
    cdef double blur
    out.failed = not c_ready(tables, users, out.log_w[out.number - 2], out.log_w[out.number - 1])
    if not out.failed:
        out.tables, out.log_factorial, out.inverse, out.rows = tables, tables.log_factorial, tables.inverse, tables.rows
        out.log_size = log(g.count) + 1
        out.negligible, out.skipped = about - 42, 0
        out.top, out.low, out.high = -INFINITY, dd_make(0, 0), dd_make(0, 0)
        c_pairs(out, 0, users, out.log_factorial[users], 8 * g.count + 4 * out.log_factorial[users], 0, 0)
    if out.failed or not (out.low.hi > 0 and out.top > -600):
        return False
    blur = 64 * UNIT + 8 * UNIT * fabs(out.top)
    lower[0] = out.top + log(out.low.hi) - blur
    upper[0] = c_log_add_exp(out.top + log(out.high.hi), out.negligible + log(out.skipped + 1e-300) + 1e-9) + blur
    return upper[0] - lower[0] < 1e-9


# ------------------------------------------------------------------------------------------------------------ the bounds

cdef double c_prepare(const Users *users, Py_ssize_t number, Group *groups, double *room, int *power, double *most) noexcept nogil:
    """Copy the distributions, with values scaled by a power of 2 to at most 1. most[0] is the largest scaled value.

    Returns the largest distance of a sum of masses from 1.
    """
    cdef Py_ssize_t i, j
    cdef double top = 0, missing = 0
    for i in range(number):
        for j in range(users[i].atoms):
            top = fmax(top, users[i].x[j])
    frexp(top, power)
    most[0] = ldexp(top, -power[0])
    for i in range(number):
        missing = fmax(missing, fabs(1 - c_lay_out(&groups[i], users[i].x, users[i].log_w, users[i].atoms, power[0],
                                                   users[i].count, room)))
        room += room_of(users[i].atoms)
    return missing


cdef double c_saddle_value(Group *groups, Py_ssize_t number) noexcept nogil:
    """Returns the saddle-point approximation of log E S_+, with a correction that makes it exact for a normal S.

    Let theta be the saddle point, sd the tilted standard deviation, y = theta sd and x = y - 2/y. A normal S has the mean -x sd and
    E S_+ = sd phi(x) (1 - x M(x)), where M is Mills' ratio.
    """
    cdef Cumulant at
    cdef double theta = c_saddle(groups, number, False, &at), y = theta * sqrt(at.var), x = y - 2 / y, mills
    if not -37 < x < 40:
        # for such x, M(x) overflows or 1 - x M(x) cancels; the correction of the logarithm is near one of its limits, -0.0413 or 0
        return at.value - 0.5 * log(6.283185307179586 * (y * y + 2)) - log(theta) - (0.0413 if x < 0 else 0)
    mills = c_mills_ratio(fabs(x))
    if x < 0:
        mills = 2.5066282746310002 * exp(0.5 * x * x) - mills
    return at.value - 0.91893853320467274 - 2 / (y * y) + log((1 - x * mills) * y / theta)


cdef int c_log_excess(const Users *users, Py_ssize_t number, double rtol, double work,
                      double *lower, double *upper) noexcept nogil:
    cdef Py_ssize_t size = 0, terms = 0, i, j
    cdef int done = 0
    cdef bint listed, paired, whole = False
    cdef Kinds kinds
    cdef Tables own
    cdef double top, simple = -INFINITY, gain = 0, none_negative = 0, low = -INFINITY, high = -INFINITY
    cdef double scale, aim, negative, nonnegative, enough, cost, enumerable
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
    if not c_prepare(users, number, groups, room, &power, &top) <= INCOMPLETE:
        free(groups)
        free(room)
        free(turns)
        return -2
    scale = power * 0.6931471805599453
    # (x)_+ is subadditive, so n E X_+ is an upper bound of E S_+. The product of n E X_+ and Pr[no user has a negative value] is a
    # lower bound. `simple` is log(n E X_+), formed from the logarithms of the masses, because masses may underflow.
    for i in range(number):
        negative = 0
        for j in range(groups[i].atoms):
            if groups[i].x[j] > 0:
                gain += groups[i].w[j] * groups[i].x[j]
                simple = c_log_add_exp(simple, log(groups[i].count) + groups[i].log_w[j] + log(groups[i].x[j]))
            negative += groups[i].w[j] if groups[i].x[j] < 0 else 0
        if negative > 0.5:
            # Pr[X >= 0] is small here, so its masses are added instead of computing 1 - Pr[X < 0]
            nonnegative = groups[i].rest
            for j in range(groups[i].atoms):
                nonnegative += groups[i].w[j] if groups[i].x[j] >= 0 else 0
            none_negative += groups[i].count * log(nonnegative) if nonnegative > 0 else -INFINITY
        else:
            none_negative += groups[i].count * log1p(-negative)
    upper[0] = simple + 8 * UNIT * (terms + 8 + fabs(simple)) if simple > -INFINITY else -INFINITY
    lower[0] = simple + none_negative * (1 + 1e-12) - 1e-12 - 8 * UNIT * (terms + 8) if none_negative > -1e5 else -INFINITY
    if gain <= 0:
        # no value is positive, or the probabilities of all positive values underflow
        lower[0] += scale - 4 * UNIT * (fabs(scale) + fabs(lower[0])) if simple > -INFINITY else 0
        upper[0] += scale + 4 * UNIT * fabs(scale)
        free(groups)
        free(room)
        free(turns)
        return 0
    own = Tables(0, 0, 0, 0, NULL, NULL, NULL)
    enough = fmax(2e-4, 3 * rtol)
    listed = c_few_outcomes(groups, number, rtol)
    paired = number == 1 and groups[0].count <= MOST_LISTED
    kinds.others = INFINITY
    cost = c_kinds(&groups[0], &kinds) if paired else INFINITY
    # Tables are used up to `enumerable` outcomes. With a large tolerance, 0.1 LISTED outcomes take as long as a contour integral,
    # or less time if one kind has nearly all users.
    enumerable = 0.1 * LISTED if rtol >= 1e-5 or kinds.others <= RARE else 0
    if rtol < 1e-5:
        enumerable = fmax(enumerable, LISTED_USERS / groups[0].count)
    paired = cost < INFINITY and (listed or cost <= enumerable)
    if paired:
        low = c_saddle_value(groups, number)
        paired = c_paired(&groups[0], &kinds, &own if users[0].tables == NULL else users[0].tables, low, &low, &high)
        c_forget(&own)
    for i in range(3):
        if paired:
            some.log_none = some.mean = some.error = 0
        elif listed:
            c_listed(groups, number, &low, &high)
            some.log_none = some.mean = some.error = 0
        else:
            aim = rtol if i == 0 else fmax(rtol, 1e-4 if i == 1 else 1e-2)
            if i == 1 and aim == rtol:
                # the first round has computed the sum with this tolerance
                continue
            c_split(groups, number, top, aim, turns, &some)
            if whole and some.mean == 0:
                # No values are split off in this round, as in the first one, so it would compute the same sum with more smoothing.
                # More smoothing would help only if the first round gave no lower bound.
                continue
            low = high = -INFINITY
            # if all positive values are split off, the rest of the sum has no positive part
            if c_gains(groups, number):
                # A larger tolerance means wider smoothing, which would move more of the probability just below 0 to positive
                # values.
                done = c_contour(groups, number, aim if i == 0 else fmax(rtol, 0.3 * aim), enough, work, turns, &low, &high)
            if done < 0:
                break
            whole = done == 1 and some.mean == 0 and low > -INFINITY
        if some.mean > 0:
            low = c_log_add_exp(low + some.log_none * (1 + 16 * UNIT), log(fmax(some.mean - some.error, 1e-320))) - 4 * UNIT
            high = c_log_add_exp(high + some.log_none * (1 - 16 * UNIT), log(some.mean + some.error)) + 4 * UNIT
        lower[0] = fmax(lower[0], low)
        upper[0] = fmin(upper[0], high + 4 * UNIT * fabs(high))
        if upper[0] - lower[0] < enough or listed or paired:
            break
        # The gap is too large, because a heavy tail needs too many nodes. The next round has a larger tolerance, for which more
        # values are split off.
        c_prepare(users, number, groups, room, &power, &top)
    lower[0] += scale - 4 * UNIT * (fabs(scale) + fabs(lower[0]))
    upper[0] += scale + 4 * UNIT * fabs(scale)
    free(groups)
    free(room)
    free(turns)
    return -1 if done < 0 else 0


cdef double c_rough_excess(const Users *users, Py_ssize_t number) noexcept nogil:
    cdef Py_ssize_t size = 0, i
    cdef double top, value = -INFINITY
    cdef int power
    cdef Group *groups = <Group *> malloc(number * sizeof(Group))
    cdef double *room
    for i in range(number):
        size += room_of(users[i].atoms)
    room = <double *> malloc(size * sizeof(double))
    if groups != NULL and room != NULL:
        c_prepare(users, number, groups, room, &power, &top)
        if top > 0:
            value = c_saddle_value(groups, number) + power * 0.6931471805599453
    free(groups)
    free(room)
    return value


cdef double chernoff(Group *group, double *theta, Cumulant *at) noexcept nogil:
    """Returns an upper bound of log E S_+ of one group, from s_+ <= e^(theta s)/(e theta) at the saddle point theta."""
    theta[0] = c_saddle(group, 1, False, at)
    return at.value - log(theta[0]) - 1 + theta[0] * at.blur


cdef double c_most_excess(const Users *users) noexcept nogil:
    cdef double top, theta, part, most, value = INFINITY, gain = -INFINITY, lightest = 1
    cdef int power
    cdef Py_ssize_t j
    cdef Cumulant at
    cdef Moments one
    cdef Group group
    cdef double *room = <double *> malloc(room_of(users.atoms) * sizeof(double))
    if room == NULL:
        return INFINITY
    if c_prepare(users, 1, &group, room, &power, &top) <= INCOMPLETE:
        for j in range(group.atoms):
            lightest = fmin(lightest, group.w[j])
            if group.x[j] > 0:
                gain = c_log_add_exp(gain, group.log_w[j] + log(group.x[j]))
        value = gain + log(group.count)
        # subnormal masses have lost digits
        if gain > -INFINITY and lightest > 1e-300:
            value = fmin(value, chernoff(&group, &theta, &at))
            one.cumulant, one.mean, one.variance = at.value / group.count, at.slope / group.count, at.var / group.count
            one.third = group.rest * fabs(one.mean) ** 3
            for j in range(group.atoms):
                one.third += group.w[j] * exp(theta * group.x[j]) * fabs(group.x[j] - one.mean) ** 3
            one.third *= exp(-one.cumulant)
            if one.variance > 0 and one.third < INFINITY:
                value = fmin(value, c_log_cell(&one, 1, theta, &group.count, &group.count, group.count) + theta * at.blur)
            # If a few large values dominate the bound, the values above `top` are split off. E S_+ is at most n E[X; X > top]
            # plus E S_+ of the other values.
            gain = 0
            while theta * top > MOST_LIGHT:
                top, most = 0.5 * top, 0
                for j in range(group.atoms):
                    if group.x[j] > top and group.w[j] > 0:
                        gain += group.w[j] * group.x[j]
                        group.rest += group.w[j]
                        group.w[j], group.log_w[j] = 0, -INFINITY
                    most = fmax(most, group.x[j] if group.w[j] > 0 else 0)
                part = log(gain) + log(group.count) if gain > 0 else -INFINITY
                if part > value or not most > 0:
                    break
                value, top = fmin(value, c_log_add_exp(part, chernoff(&group, &theta, &at))), most
        # -inf: no value is positive
        if value > -INFINITY:
            value += power * 0.6931471805599453 + MOST_ERROR * (1 + fabs(value))
    free(room)
    return value


# ------------------------------------------------------------------------------------------------------------ a cell

cdef double c_log_cell(const Moments *kinds, Py_ssize_t number, double theta, const double *low, const double *high,
                       double users) noexcept nogil:
    cdef Moments assigned, corner
    cdef Py_ssize_t j
    cdef double unassigned = users, peak = -INFINITY, normal = -INFINITY, error = -INFINITY, place = -INFINITY
    cdef double wide = 0, third = 0, z
    assigned.cumulant = assigned.mean = assigned.variance = assigned.third = 0
    for j in range(number):
        unassigned -= low[j]
        assigned.cumulant += low[j] * kinds[j].cumulant
        assigned.mean += low[j] * kinds[j].mean
        assigned.variance += low[j] * kinds[j].variance
        assigned.third += low[j] * kinds[j].third
    for j in range(number):
        # without unassigned users the cell has one corner only
        if unassigned > 0 and not high[j] > low[j] or not unassigned > 0 and j > 0:
            continue
        corner.cumulant = assigned.cumulant + unassigned * kinds[j].cumulant
        corner.mean = assigned.mean + unassigned * kinds[j].mean
        corner.variance = assigned.variance + unassigned * kinds[j].variance
        corner.third = assigned.third + unassigned * kinds[j].third
        if not corner.variance > 0:
            return INFINITY
        peak = fmax(peak, corner.cumulant - 0.5 * log(6.283185307179586 * corner.variance))
        normal = fmax(normal, corner.cumulant - theta * corner.mean + 0.5 * theta * theta * corner.variance)
        error = fmax(error, corner.cumulant - 1.5 * log(corner.variance))
        wide = fmax(wide, corner.variance)
        place = fmax(place, corner.mean - theta * corner.variance)
        third = fmax(third, corner.third)
    peak -= 2 * log(theta)
    z = place / sqrt(wide)
    # for |z| >= 30, cancellation in the sum below would cause a larger error than the caller adds
    if -30 < z < 30:
        z = exp(-0.5 * z * z) * 0.3989422804014327 + 0.5 * z * erfc(-0.7071067811865476 * z)
        peak = fmin(peak, normal + 0.5 * log(wide) + log(z))
    # 0.412 = 2/e 0.56, where 0.56 is the constant of the theorem of Berry and Esseen for independent summands (Shevtsova 2010), and
    # 2/(e theta) is the total variation of x_+ e^(-theta x)
    return c_log_add_exp(peak, error + log(0.41202497411201544 * third / theta))


def log_cell(const double[:, ::1] moments, double theta, low, high, double users):
    """Return the Berry-Esseen upper bound of log E[max(0, S)] that holds for all sums S of a cell; c_log_cell has the formula.

    Parameters
    ----------
    moments : ndarray, shape (kinds, 4)
        Cumulant, mean, variance and third absolute central moment of every kind, tilted by theta.
    theta : float
        The tilt, > 0.
    low, high : sequence of int
        The smallest and the largest number of users of each kind in the cell.
    users : float
        Number of all users.

    Returns
    -------
    float
        The bound without the rounding errors of the moments.
    """
    cdef Py_ssize_t number = moments.shape[0], j
    cdef double value
    cdef double *room = <double *> malloc(2 * number * sizeof(double))
    if room == NULL:
        raise MemoryError
    try:
        for j in range(number):
            room[j] = low[j]
            room[number + j] = high[j]
        value = c_log_cell(<const Moments *> &moments[0, 0], number, theta, room, room + number, users)
    finally:
        free(room)
    return value


cdef Py_ssize_t c_fill(const double[::1] values, const double[::1] log_mass, const Py_ssize_t[::1] starts,
                       const double[::1] counts, Users *users) noexcept nogil:
    """Write the groups with a positive number of users to `users`, and return their number."""
    cdef Py_ssize_t used = 0, i
    for i in range(counts.shape[0]):
        if counts[i] > 0:
            users[used].x = &values[0] + starts[i]
            users[used].log_w = &log_mass[0] + starts[i]
            users[used].atoms = starts[i + 1] - starts[i]
            users[used].count = counts[i]
            users[used].tables = NULL
            used += 1
    return used


cdef c_raise(Py_ssize_t done):
    """Raise the exception for an error code of c_log_excess."""
    if done == -1:
        raise MemoryError
    if done == -2:
        raise ValueError("the masses of a group do not sum to 1: pass the whole distribution, with the mass of the value 0")


def log_excess(const double[::1] values, const double[::1] log_mass, const Py_ssize_t[::1] starts, const double[::1] counts,
               double rtol=2e-7, double work=6e7):
    """Return bounds of log E[max(0, S)] for a sum S over groups of users.

    Group i has the atoms starts[i]..starts[i+1] and counts[i] users.

    Parameters
    ----------
    values, log_mass : ndarray
        Values and log probabilities of the atoms of all groups, one group after the other. The probabilities of a group, including
        that of the value 0, sum to 1.
    starts : ndarray
        Index of the first atom of each group, and the end.
    counts : ndarray
        Number of users of each group; groups without users are omitted.
    rtol, work : float
        The relative gap of the bounds that the computation aims at, and the largest number of evaluations of an atom.

    Returns
    -------
    (float, float)
        Lower and upper bound.
    """
    cdef Py_ssize_t done
    cdef double lower = -INFINITY, upper = INFINITY
    cdef Users *users = <Users *> malloc(counts.shape[0] * sizeof(Users))
    if users == NULL:
        raise MemoryError
    with nogil:
        done = c_log_excess(users, c_fill(values, log_mass, starts, counts, users), rtol, work, &lower, &upper)
    free(users)
    c_raise(done)
    return lower, upper


def rough_excess(const double[::1] values, const double[::1] log_mass, const Py_ssize_t[::1] starts, const double[::1] counts):
    """Return an approximation of log E[max(0, S)]; `c_rough_excess` states its error, and log_excess the parameters."""
    cdef double value
    cdef Users *users = <Users *> malloc(counts.shape[0] * sizeof(Users))
    if users == NULL:
        raise MemoryError
    with nogil:
        value = c_rough_excess(users, c_fill(values, log_mass, starts, counts, users))
    free(users)
    return value
