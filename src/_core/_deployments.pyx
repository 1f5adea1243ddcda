"""Loops over arrays of deployments: binomial noise, and shuffled randomizers whose privacy-amplification variable X has few atoms.

The search for eps is that of _crossing.pyx.

Noise     for binomial noise, log delta is the maximum of c_shift_log_delta over (P, Q) and (Q, P), with its error. The search uses
          this maximum also as its approximate curve.
LawTable      distributions of X = a - e^eps b, where a and b are densities relative to a reference measure m. A distribution has
          atoms (each with its mass under m, log a and log b) and cuts (outcomes on which m has no mass).
              delta(eps) = E(X_1 + ... + X_n)_+/n + sum over cuts of (a - e^eps b)_+
          X is computed from log a - log b - eps, so that it does not cancel if eps is close to a pure budget. The bounds
          are those of c_log_excess, the approximate curve is that of c_rough_excess, and the approximate middle of the bounds
          (the function `centre` of crossing.h) comes from a contour with few nodes. The delta of a set of distributions is their
          largest delta. So eps is found for one distribution, and the others are evaluated at this eps, at first with a large
          tolerance. If the delta of one of them exceeds the target, eps is searched for this distribution, too.

Errors    those of _binomial.pyx and _excess.pyx; the caller's `slack` is the error of log a, log b and the masses.
Cost      noise: 2 to 6 us for an eps. If X has 3 atoms, an eps takes one bound of _excess.pyx, one or two coarse bounds and about
          eleven approximate values. Together these take, in ms: 0.015 to 0.06 from 1e6 users on, 0.06 to 0.3 at 1e4, 0.6 to 10 at
          1e3, 0.3 to 20 at 1e2
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, exp, expm1, fabs, fmax, fmin, log, nextafter, sqrt
from libc.stdlib cimport calloc, free, malloc
from libc.time cimport clock, clock_t

from shufflebounds._core._binomial cimport c_shift_log_delta
from shufflebounds._core._constants cimport BEYOND, UNIT
from shufflebounds._core._crossing cimport Curve, c_crossing, c_level
from shufflebounds._core._excess cimport Tables, Users, c_forget, c_log_excess, c_most_excess, c_rough_excess
from shufflebounds._core._gaussian cimport c_gaussian_guess
from shufflebounds._core._special cimport c_log_add_exp

cdef extern from *:
    """
    #include <time.h>
    #define BLOCK 256                       /* results for binomial noise between two checks for signals, a few ms */
    #define FINE 2e-7                       /* relative gap of the bounds that are returned; smaller takes longer */
    #define COARSE 1e-4                     /* relative gap of bounds that decide whether to search, or where to start */
    #define CENTRE 0.623                    /* (value - lower)/(upper - lower) for coarse bounds and smooth densities, measured */
    #define WORK 6e7                        /* largest number of evaluations of an atom for one bound */
    """
    const long CLOCKS_PER_SEC
    const int BLOCK
    const double FINE
    const double COARSE
    const double CENTRE
    const double WORK


# ------------------------------------------------------------------------------------------------------------ binomial noise

cdef struct Noise:
    double trials
    double prob


cdef double noise_side(double eps, bint upper, const void *law) noexcept nogil:
    cdef const Noise *noise = <const Noise *> law
    cdef double error, there, back, value = c_shift_log_delta(noise.trials, noise.prob, eps, False, &error)
    there = value + error if upper else value - error
    value = c_shift_log_delta(noise.trials, noise.prob, eps, True, &error)
    back = value + error if upper else value - error
    return fmin(0, fmax(there, back))


cdef double noise_rough(double eps, const void *law) noexcept nogil:
    cdef const Noise *noise = <const Noise *> law
    cdef double error, value = c_shift_log_delta(noise.trials, noise.prob, eps, False, &error)
    if noise.prob == 0.5:
        return value
    return fmax(value, c_shift_log_delta(noise.trials, noise.prob, eps, True, &error))


cdef inline double first_eps(double delta, bint upper, double variance) noexcept nogil:
    """Returns an approximate eps of normal noise with this variance, or 0 if there is none or it is above 1."""
    cdef double eps = c_gaussian_guess(c_level(delta, upper), 1 / sqrt(variance)) if 0 < delta < 1 and variance > 9 else 0
    return eps if eps < 1 else 0


def noise_epsilon(const double[::1] trials, const double[::1] prob, const double[::1] delta, bint upper, double[::1] out):
    """Fill `out` with the upper or lower bound of epsilon of each mechanism."""
    cdef Py_ssize_t i, first = 0, count = trials.shape[0]
    cdef Noise noise
    cdef Curve curve
    curve.side, curve.rough, curve.centre = noise_side, noise_rough, NULL
    curve.ahead, curve.miss = NULL, 1e-5
    curve.law, curve.pure, curve.last, curve.span = &noise, INFINITY, BEYOND, INFINITY
    curve.close, curve.sure = 3e-13, True
    while first < count:
        with nogil:
            for i in range(first, min(count, first + BLOCK)):
                noise.trials, noise.prob = trials[i], prob[i]
                out[i] = c_crossing(&curve, delta[i], upper,
                                    first_eps(delta[i], upper, trials[i] * prob[i] * (1 - prob[i])), 0, True)
        first += BLOCK
        PyErr_CheckSignals()


def noise_log_delta(const double[::1] trials, const double[::1] prob, const double[::1] eps, bint upper, double[::1] out):
    """Fill `out` with the upper or lower bound of log delta of each mechanism."""
    cdef Py_ssize_t i, first = 0, count = trials.shape[0]
    cdef Noise noise
    while first < count:
        with nogil:
            for i in range(first, min(count, first + BLOCK)):
                noise.trials, noise.prob = trials[i], prob[i]
                out[i] = noise_side(eps[i], upper, &noise)
        first += BLOCK
        PyErr_CheckSignals()


# ------------------------------------------------------------------------------------------------------ distributions of X

cdef struct Law:
    const double *log_mass
    const double *log_a
    const double *log_b
    Py_ssize_t atoms
    const double *log_cut
    const double *log_cut_b
    Py_ssize_t cuts
    double slack
    double pure
    double users
    double *room        # buffer for the values of the atoms
    Tables *tables      # tables of sums, used again for other eps and other numbers of users


cdef inline double excess(double log_a, double log_b, double eps) noexcept nogil:
    """Returns a - e^eps b, formed from the larger of the two terms."""
    cdef double loss
    if log_a == -INFINITY and log_b == -INFINITY:
        return 0
    loss = (0 if log_a == log_b else log_a - log_b) - eps
    return exp(log_a) * -expm1(-loss) if loss > 0 else exp(log_b + eps) * expm1(loss)


cdef inline double log_gain(double eps, const Law *law) noexcept nogil:
    """Returns the log of the sum of max(0, a - e^eps b) over the cuts, the outcomes without mass under the measure m (header)."""
    cdef double gain = 0
    cdef Py_ssize_t i
    for i in range(law.cuts):
        gain += fmax(0, excess(law.log_cut[i], law.log_cut_b[i], eps))
    return log(gain) if gain > 0 else -INFINITY


cdef inline Users with_values(double eps, const Law *law) noexcept nogil:
    cdef Users users
    cdef Py_ssize_t i
    for i in range(law.atoms):
        law.room[i] = excess(law.log_a[i], law.log_b[i], eps)
    users.x, users.log_w, users.atoms, users.count, users.tables = law.room, law.log_mass, law.atoms, law.users, law.tables
    return users


cdef void c_law_log_phi(double eps, const Law *law, double rtol, double work, double *lower, double *upper) noexcept nogil:
    """Writes bounds of log delta at eps from E(X_1 + ... + X_n)_+/n and the cuts; `rtol` and `work` are those of c_log_excess."""
    cdef Users users
    cdef double cut = log_gain(eps, law), size = log(law.users), low = -INFINITY, high = -INFINITY, slack
    if law.atoms > 0:
        users = with_values(eps, law)
        # if memory runs out, the bounds are infinite and remain valid
        c_log_excess(&users, 1, rtol, work, &low, &high)
    lower[0] = c_log_add_exp(low - size * (1 + 4 * UNIT), cut - 8 * UNIT)
    upper[0] = c_log_add_exp(high - size * (1 - 4 * UNIT), cut + 8 * UNIT) if high < INFINITY else 0
    if upper[0] > -INFINITY:
        slack = fmax(law.slack, 32 * UNIT * fabs(upper[0]))
        lower[0] -= slack
        upper[0] += slack


cdef double law_side(double eps, bint upper, const void *law) noexcept nogil:
    cdef double low, high
    if eps >= (<const Law *> law).pure:
        return -INFINITY
    c_law_log_phi(eps, <const Law *> law, FINE, WORK, &low, &high)
    return fmin(0, high if upper else low)


cdef double law_centre(double eps, const void *law) noexcept nogil:
    cdef double low, high
    if eps >= (<const Law *> law).pure:
        return -INFINITY
    c_law_log_phi(eps, <const Law *> law, COARSE, WORK, &low, &high)
    return fmin(0, low + CENTRE * (high - low))


cdef double law_rough(double eps, const void *pointer) noexcept nogil:
    cdef const Law *law = <const Law *> pointer
    cdef Users users
    if eps >= law.pure:
        return -INFINITY
    if law.atoms == 0:
        return log_gain(eps, law)
    users = with_values(eps, law)
    return c_log_add_exp(c_rough_excess(&users, 1) - log(law.users), log_gain(eps, law))


cdef double law_near(double eps, const Law *law) noexcept nogil:
    """Returns law_rough, or, if it is smaller, the simple upper bound of log delta from E S_+ <= n E X_+."""
    cdef double most = 0, rough = law_rough(eps, law)
    cdef Py_ssize_t i
    if rough == -INFINITY:
        return rough
    # the buffer contains the values at eps, which law_rough has computed
    for i in range(law.atoms):
        most += exp(law.log_mass[i]) * fmax(0, law.room[i])
    return fmin(rough, c_log_add_exp(log(most) if most > 0 else -INFINITY, log_gain(eps, law)))


cdef double law_most(double eps, const Law *law) noexcept nogil:
    """Returns an upper bound of log delta at eps; it is close to law_near if that approximation is good."""
    cdef Users users
    cdef double value = -INFINITY, cut = log_gain(eps, law)
    if eps >= law.pure:
        return -INFINITY
    if law.atoms > 0:
        users = with_values(eps, law)
        value = c_most_excess(&users)
    return c_log_add_exp(value - log(law.users), cut) + fmax(law.slack, 1e-9) if value < INFINITY else INFINITY


cdef double law_guess(double delta, bint upper, const Law *law) noexcept nogil:
    """Returns an eps near the crossing, or 0 if there is no estimate.

    The estimate uses that X = a - b at eps = 0 and that the mean of X decreases by about 1 for each unit of eps.
    """
    cdef Users users = with_values(0, law)
    cdef double square = 0
    cdef Py_ssize_t i
    for i in range(law.atoms):
        square += exp(law.log_mass[i]) * users.x[i] * users.x[i]
    return first_eps(delta, upper, law.users / square) if square > 0 and law.cuts == 0 else 0


cdef double law_epsilon(const Law *law, double delta, bint upper) noexcept nogil:
    cdef Curve curve
    curve.side, curve.rough, curve.centre = law_side, law_rough, law_centre
    curve.ahead, curve.miss = NULL, 1e-5
    curve.law, curve.pure, curve.last, curve.span, curve.close = law, fmax(0, law.pure), 600, INFINITY, 1e-8
    curve.sure = law.users >= 100
    if not law.pure > 0:
        return 0
    return c_crossing(&curve, delta, upper, law_guess(delta, upper, law), 0, False)


cdef double set_epsilon(const Law *laws, Py_ssize_t number, double delta, bint upper) noexcept nogil:
    """Returns the largest eps of the distributions at this delta.

    If `upper`, every upper bound of delta at the returned eps is at most the given delta.
    """
    cdef double eps = law_epsilon(&laws[0], delta, upper), other, low, high, target, push = 1e-9
    cdef Py_ssize_t j = 0, searched = 0, since = 0
    if number == 1 or delta >= 1:
        return eps
    target = c_level(delta, upper) if delta > 0 else -INFINITY
    # cycle through the distributions until none exceeds the target at the current eps
    while since < number and eps < INFINITY:
        if j != searched and laws[j].pure > eps:
            if delta == 0:
                other = law_epsilon(&laws[j], delta, upper)
                eps = fmax(eps, other)
            else:
                c_law_log_phi(eps, &laws[j], COARSE, WORK, &low, &high)
                if high > target and law_side(eps, upper, &laws[j]) > target:
                    other = law_epsilon(&laws[j], delta, upper)
                    if other > eps:
                        eps, searched, since = other, j, 0
                    elif upper:
                        eps, searched, since = fmax(eps * (1 + push), nextafter(eps, INFINITY)), -1, 0
                        push *= 2
        since += 1
        j = (j + 1) % number
    return eps


cdef void set_log_phi(double eps, const Law *laws, Py_ssize_t number, double rtol, double work, double *most,
                      double *lower, double *upper) noexcept nogil:
    """Write bounds of the largest log delta of the distributions.

    A distribution is skipped if a simple upper bound of its log delta is below the lower bound found so far.
    """
    cdef double low, high
    cdef Py_ssize_t _turn, j, best
    lower[0] = upper[0] = -INFINITY
    for j in range(number):
        most[j] = law_most(eps, &laws[j]) if number > 1 else INFINITY
    for _turn in range(number):
        best = 0
        for j in range(1, number):
            best = j if most[j] > most[best] else best
        if most[best] < lower[0] or most[best] == -INFINITY:
            break
        most[best] = -INFINITY
        c_law_log_phi(eps, &laws[best], rtol, work, &low, &high)
        lower[0], upper[0] = fmax(lower[0], low), fmax(upper[0], high)


cdef class LawTable:
    """Sets of distributions of X with their cuts: set k is laws[sets[k]:sets[k + 1]] and starts with the largest variance."""

    cdef const double[::1] log_mass, log_a, log_b, log_cut, log_cut_b, slack, pure
    cdef const Py_ssize_t[::1] starts, cut_starts, sets
    cdef Py_ssize_t widest, most

    def __init__(self, const double[::1] log_mass, const double[::1] log_a, const double[::1] log_b, const Py_ssize_t[::1] starts,
                 const double[::1] log_cut, const double[::1] log_cut_b, const Py_ssize_t[::1] cut_starts,
                 const double[::1] slack, const double[::1] pure, const Py_ssize_t[::1] sets):
        cdef Py_ssize_t i
        self.log_mass, self.log_a, self.log_b, self.starts = log_mass, log_a, log_b, starts
        self.log_cut, self.log_cut_b, self.cut_starts = log_cut, log_cut_b, cut_starts
        self.slack, self.pure, self.sets = slack, pure, sets
        self.widest = self.most = 1
        for i in range(slack.shape[0]):
            self.widest = max(self.widest, starts[i + 1] - starts[i])
        for i in range(sets.shape[0] - 1):
            self.most = max(self.most, sets[i + 1] - sets[i])

    cdef Py_ssize_t fill(self, Py_ssize_t place, double users, double *room, Tables *tables, Law *out) noexcept nogil:
        """Write the distributions of one set to out, and return their number."""
        cdef Py_ssize_t i, j = 0
        for i in range(self.sets[place], self.sets[place + 1]):
            out[j].log_mass, out[j].log_a = &self.log_mass[0] + self.starts[i], &self.log_a[0] + self.starts[i]
            out[j].log_b, out[j].atoms = &self.log_b[0] + self.starts[i], self.starts[i + 1] - self.starts[i]
            out[j].log_cut, out[j].log_cut_b = &self.log_cut[0] + self.cut_starts[i], &self.log_cut_b[0] + self.cut_starts[i]
            out[j].cuts = self.cut_starts[i + 1] - self.cut_starts[i]
            out[j].slack, out[j].pure, out[j].users, out[j].room = self.slack[i], self.pure[i], users, room
            out[j].tables = tables + j
            j += 1
        return j

    def run(self, const Py_ssize_t[::1] places, const double[::1] users, const double[::1] at, bint epsilon, bint upper,
            double[:, ::1] out, double rtol=FINE, double work=WORK):
        """Fill `out` with bounds of each set of distributions.

        If `epsilon` is true, out[0, i] is the bound of eps at delta = at[i]. Otherwise, out[0, i] and out[1, i] are the lower and
        the upper bound of the largest log delta of the set at eps = at[i]; the computation aims at the gap `rtol` and evaluates an
        atom at most `work` times.
        """
        cdef Py_ssize_t i = 0, j, number
        cdef clock_t until
        cdef Law *laws = <Law *> malloc(self.most * sizeof(Law))
        cdef double *room = <double *> malloc((self.widest + self.most) * sizeof(double))
        cdef Tables *tables = <Tables *> calloc(self.most, sizeof(Tables))
        try:
            if laws == NULL or room == NULL or tables == NULL:
                raise MemoryError
            while i < places.shape[0]:
                # One result takes between 30 us and a second. So signals are checked at intervals of time: if the interpreter's
                # lock were acquired after every result, two threads would wait for each other.
                until = clock() + CLOCKS_PER_SEC // 50
                with nogil:
                    while i < places.shape[0]:
                        number = self.fill(places[i], users[i], room, tables, laws)
                        if epsilon:
                            out[0, i] = set_epsilon(laws, number, at[i], upper)
                        else:
                            set_log_phi(at[i], laws, number, rtol, work, room + self.widest, &out[0, i], &out[1, i])
                        i += 1
                        if clock() > until:
                            break
                PyErr_CheckSignals()
        finally:
            if tables != NULL:
                for j in range(self.most):
                    c_forget(&tables[j])
            free(tables)
            free(laws)
            free(room)

    def near(self, double users, double eps, bint upper=False):
        """Return an approximation of log delta of the first distribution at one eps or, if `upper`, an upper bound."""
        cdef Law law
        cdef double value
        cdef double *room = <double *> malloc(self.widest * sizeof(double))
        if room == NULL:
            raise MemoryError
        with nogil:
            self.fill(0, users, room, NULL, &law)
            value = law_most(eps, &law) if upper else law_near(eps, &law)
        free(room)
        return value
