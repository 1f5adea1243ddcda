"""Upper bounds of E S_+ for sums S of independent variables, updated as distributions are added.

The proof is in docs/theorems/worst-dataset, Lemma H.

    S = X_1 + ... + X_k, where each X_i has one of the distributions that were added
    B(theta)         is the largest contour sum of these distributions (_moments.pyx): E(S + u)_+ <= e^(theta u) B(theta)
    values above c   are split off (docs/theorems/worst-dataset, "Large values"). Let p be the largest Pr[X > c], T(x) the largest
                     Pr[X > x], and -nu the smallest E[X | X <= c] over the distributions. Let N ~ Bin(k, p) be the number of large
                     values L_1, ..., L_N, with Pr[L > x + nu] = T(x)/p, and Y the sum given that every X_i is at most c. Then
                     E S_+ is at most E(Y + L_1 + ... + L_N)_+, which is summed over the values of N

The caller has checked: masses are >= 0 with a sum of at most 1 (up to rounding), values are finite, and no square overflows.

Method   N = 0, 1, 2  L is rounded up to one of `jumps` edges between c and the largest value; if N = 2, to every `pool`-th edge
         N >= 3       E(Y + L_1 + ...)_+ <= E Y_+ + L_1 + ..., Pr[N >= 3] <= (k p)^3/6 and E N 1{N >= 3} <= (k p)^3/2
         E(Y + u)_+   has two upper bounds, of which the smaller one is used: e^(theta u) B(theta) for the best one of the given
                      theta, and (m + (m^2 + k v)^(1/2))/2 with m = u + k E X. The latter is the largest one over the pairs (mean E
                      X, variance v) of X given X <= c; dominated pairs are dropped
         also         E S_+ <= k E X_+ is used
         edges        form a geometric sequence. If a larger value is added, each new edge receives T of the last old edge below it
         changes      `add` works on a copy of all numbers that change, so that `undo` restores them
         atoms        of a cell: the mass of a cell between two nodes moves to the ends of the cell (see convex_order.py)
Rounding B is an upper bound (_moments.pyx). Probabilities p, T and E X_+ are raised by `blur` + `error`. Means of n atoms are
         raised, or lowered for nu, by (n + 16) UNIT E|X|. The sum over N is raised by 2 `error`. For a distribution without atoms
         up to c, Y is 0

Excess   the computed log of the bound of E S_+ exceeds the formula by at most 2e-10, median below 5e-12 (30 trials of
         tests/core/test_sum_bound.py: mpmath at 60 digits, `error` = 1e-12, k to 1e5). The largest excess is caused by `error`, if
         m is far below -(k v)^(1/2)
Cost     `add` takes, for one distribution of 500 atoms and 8 theta, 20 us if its bounds are below those of other distributions at
         every theta, and otherwise .2 ms with 197 nodes
"""

from libc.math cimport INFINITY, NAN, asinh, ceil, exp, fabs, fmax, fmin, log, log1p, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from shufflebounds._core._constants cimport UNIT
from shufflebounds._core._cell_sums cimport c_cell_sums
from shufflebounds._core._moments cimport Atoms, Contour, c_largest, c_tilt

cdef extern from "sum_bound.h" nogil:
    void cover_positive(const double *more, Py_ssize_t n, const double *theta, const double *best, Py_ssize_t stride,
                        Py_ssize_t rows, const double *means, const double *variances, Py_ssize_t pairs, double error, double unit,
                        double *out)
    void cover_bins(const double *table, Py_ssize_t stride, Py_ssize_t n, double up, double down, double share, double bottom,
                    double tiny, double *low, double *high, double *low_mass, double *high_mass, double *low_log, double *high_log)
    void cover_nodes(Py_ssize_t first, Py_ssize_t n, double unit, double step, double *out)

cdef double PI = 3.141592653589793
cdef double TINY = 1e-290                         # least mass of an atom; it exceeds the sum of all products that underflow
cdef double MOST = 1e140                          # largest absolute value of an atom, so that squares do not overflow

# Indices into one array of the numbers that change when a distribution is added. They are E X_+, p, the smallest mean, the bound
# for counts[0] and the number of pairs; then B for each theta and count, the edges, T at the edges, and the means and the variances
# of the pairs.
cdef enum:
    GAIN, RARE, LEAST, BOUND, PAIRS, FIXED


# The atoms up to a limit of several distributions, each conditional on a value of at most the limit.
cdef struct Light:
    double *room
    Atoms *laws
    double *weight                # probabilities of all atoms, in the order of the distributions
    double *rare                  # probabilities of larger values
    Py_ssize_t number


cdef int c_light(const double[::1] values, const double[::1] mass, const double[::1] log_mass, const Py_ssize_t[::1] starts,
                 double limit, Light *out) noexcept nogil:
    """Writes the atoms up to `limit` to memory that c_free releases; returns -1 if there is no memory."""
    cdef Py_ssize_t i, j, size = values.shape[0], k = 0
    cdef double rare, shift, scale
    cdef double *log_w
    out.number = starts.shape[0] - 1
    out.laws = <Atoms *> malloc(max(out.number, 1) * sizeof(Atoms))
    out.room = <double *> malloc((3 * size + out.number + 1) * sizeof(double))
    if out.laws == NULL or out.room == NULL:
        return -1
    log_w = out.room + size
    out.weight = log_w + size
    out.rare = out.weight + size
    for i in range(out.number):
        rare = 0
        for j in range(starts[i], starts[i + 1]):
            if values[j] > limit:
                rare += mass[j]
        out.rare[i] = rare
        shift = log1p(-fmin(rare, 1))
        scale = exp(-shift)
        out.laws[i].x = out.room + k
        out.laws[i].log_w = log_w + k
        out.laws[i].number = 0
        if rare >= 1:
            continue
        for j in range(starts[i], starts[i + 1]):
            if values[j] <= limit:
                out.room[k] = values[j]
                log_w[k] = log_mass[j] - shift
                out.weight[k] = mass[j] * scale
                k += 1
                out.laws[i].number += 1
    return 0


cdef void c_free(Light *light) noexcept nogil:
    free(light.room)
    free(light.laws)


cdef void c_moments(const Atoms *law, const double *weight, double *mean, double *size, double *square) noexcept nogil:
    """Writes the sums of w x, w |x| and w x^2."""
    cdef Py_ssize_t j
    cdef double part
    mean[0] = size[0] = square[0] = 0
    for j in range(law.number):
        part = weight[j] * law.x[j]
        mean[0] += part
        size[0] += fabs(part)
        square[0] += part * law.x[j]


cdef double c_variance(const Light *light) noexcept nogil:
    """Returns the largest variance."""
    cdef Py_ssize_t i
    cdef double mean, size, square, most = 0
    for i in range(light.number):
        c_moments(&light.laws[i], light.weight + (light.laws[i].x - light.room), &mean, &size, &square)
        most = fmax(most, square - mean * mean)
    return most


def tilt_below(const double[::1] values, const double[::1] mass, const double[::1] log_mass, const Py_ssize_t[::1] starts,
               double limit, double count, double smoothing, double start):
    """Return a nearly optimal theta for the distributions, each conditional on a value of at most `limit`.

    Parameters
    ----------
    values, mass, log_mass, starts : ndarray
        The distributions, as for `_moments`, and their probabilities.
    limit : float
        Each distribution must have a positive value that is at most `limit`.
    count, start : float
        As for `_moments.tilt`.
    smoothing : float
        The variance eta^2 of the smoothing, as a fraction of the largest variance of a sum of `count` terms.

    Returns
    -------
    float
    """
    cdef Py_ssize_t[8] chosen
    cdef Py_ssize_t used
    cdef Light light
    cdef int done
    with nogil:
        done = c_light(values, mass, log_mass, starts, limit, &light)
        if done == 0:
            start = c_tilt(light.laws, light.number, count, smoothing * count * c_variance(&light), start, chosen, &used)
        c_free(&light)
    if done < 0:
        raise MemoryError
    return start


cdef inline int raised(double *place, double value) noexcept nogil:
    """Sets a number to the maximum of itself and `value`; returns whether it was smaller."""
    if not value > place[0]:
        return 0
    place[0] = value
    return 1


cdef class SumBound:
    """A bound of E S_+ for sums of k independent terms, each with a distribution of a set to which more distributions can be added.

    Parameters
    ----------
    values, mass, log_mass, starts : ndarray
        The first distributions, as for `_moments`, and their probabilities.
    counts : ndarray
        The numbers k, which differ little.
    thetas : ndarray
        The values of theta, the largest first. Pass 0 if only the bound k E X_+ is needed.
    limit : float
        Values above `limit` are split off; inf for none.
    smoothing, spread : float
        eta^2 as a fraction of the largest variance of a sum of counts[0] terms, and 2 pi/step in units of the standard deviation of
        this sum.
    nodes : int
        The number of terms of a contour sum.
    jumps, pool : int
        The number of edges, and how many edges are combined into one for the case of two large values.
    blur, error : float
        Bounds of the relative errors of the given probabilities, and of sums of probabilities and moments.
    """

    cdef double[::1] counts, thetas, now, before
    cdef double limit, blur, error
    cdef Py_ssize_t jumps, pool
    cdef Contour contour

    def __init__(self, const double[::1] values, const double[::1] mass, const double[::1] log_mass, const Py_ssize_t[::1] starts,
                 *, const double[::1] counts, const double[::1] thetas, double limit, double smoothing, double spread,
                 Py_ssize_t nodes, Py_ssize_t jumps, Py_ssize_t pool, double blur, double error):
        cdef Light light
        cdef double variance = 0
        cdef int done
        self.counts, self.thetas = np.array(counts), np.array(thetas)
        self.limit, self.jumps, self.pool, self.blur, self.error = limit, jumps, pool, blur, error
        with nogil:
            done = c_light(values, mass, log_mass, starts, limit, &light)
            if done == 0:
                variance = c_variance(&light)
            c_free(&light)
        if done < 0:
            raise MemoryError
        variance = counts[0] * variance if variance > 0 else 1
        self.contour.step, self.contour.smoothing = 2 * PI / (spread * sqrt(variance)), smoothing * variance
        self.contour.nodes = nodes
        self.now = np.zeros(self.tail() + 2 * jumps)
        self.now[LEAST], self.now[BOUND] = INFINITY, -INFINITY
        self.now[FIXED:self.tail()] = -INFINITY
        self.add(values, mass, log_mass, starts)

    cdef Py_ssize_t tail(self) noexcept nogil:
        """Return the index of the first edge."""
        return FIXED + self.thetas.shape[0] * self.counts.shape[0]

    def only(self, Py_ssize_t column):
        """Return a copy for counts[column] only."""
        cdef SumBound out = SumBound.__new__(SumBound)
        cdef Py_ssize_t rows = self.thetas.shape[0], columns = self.counts.shape[0]
        now = np.asarray(self.now)
        out.counts, out.thetas, out.contour = self.counts[column:column + 1].copy(), self.thetas, self.contour
        out.limit, out.jumps, out.pool, out.blur, out.error = self.limit, self.jumps, self.pool, self.blur, self.error
        best = now[FIXED:self.tail()].reshape(rows, columns)[:, column]
        out.now = np.concatenate([now[:FIXED], best, now[self.tail():]])
        out.now[BOUND] = self.log_sum(column)
        return out

    def add(self, const double[::1] values, const double[::1] mass, const double[::1] log_mass, const Py_ssize_t[::1] starts,
            double most=INFINITY):
        """Add distributions, and return the log of the bound for counts[0].

        If the bound exceeds `most`, some of the distributions may not have been evaluated. The caller must then call :meth:`undo`.
        """
        cdef Py_ssize_t laws = starts.shape[0] - 1, pairs = self.tail() + 2 * self.jumps, size
        cdef Light light
        cdef int done
        self.before = self.now
        size = pairs + 2 * <Py_ssize_t> self.before[PAIRS]
        self.now = np.empty(size + 2 * laws)
        with nogil:
            memcpy(&self.now[0], &self.before[0], size * sizeof(double))
            done = c_light(values, mass, log_mass, starts, self.limit, &light)
            if done == 0:
                done = self.joined(values, mass, starts, &light, most)
            c_free(&light)
        if done < 0:
            raise MemoryError
        return self.now[BOUND]

    def spare(self, double most):
        """Drop values of theta (set B to inf) as long as the bound for counts[0] is at most `most`.

        Later calls then take less time.
        """
        cdef Py_ssize_t t, columns = self.counts.shape[0]
        cdef double former
        now = np.array(self.now)
        self.now = now
        for t in range(self.thetas.shape[0] - 1, -1, -1):
            former = self.now[FIXED + t * columns]
            self.now[FIXED + t * columns] = INFINITY
            if not self.bound(0) <= most:
                self.now[FIXED + t * columns] = former
        self.now[BOUND] = self.bound(0)

    def undo(self):
        """Remove the distributions of the last call of :meth:`add`."""
        self.now = self.before

    def log_sum(self, Py_ssize_t column):
        """Return the log of the bound of E S_+ for counts[column]."""
        cdef double value
        with nogil:
            value = self.bound(column)
        if value != value:
            raise MemoryError
        return value

    cdef int joined(self, const double[::1] values, const double[::1] mass, const Py_ssize_t[::1] starts, const Light *light,
                    double most) noexcept nogil:
        """Add the distributions to `now`; returns -1 without memory."""
        cdef Py_ssize_t i, j
        cdef int changed = 0, added = 0
        cdef double *now = &self.now[0]
        cdef double gain, part, up = 1 + self.blur + self.error, mean, size, square
        cdef bint split = self.limit < INFINITY
        for i in range(light.number):
            gain = 0
            for j in range(starts[i], starts[i + 1]):
                if values[j] > 0:
                    gain += mass[j] * values[j]
            changed |= raised(&now[GAIN], gain * up)
            if split:
                changed |= raised(&now[RARE], light.rare[i] * up)
                c_moments(&light.laws[i], light.weight + (light.laws[i].x - light.room), &mean, &size, &square)
                part = (light.laws[i].number + 16) * UNIT * size
                if mean - part < now[LEAST]:
                    now[LEAST] = mean - part
                    changed = 1
                changed |= self.paired(mean + part, square - mean * mean)
        if split:
            added = self.tails(values, mass, starts, light)
            if added > 0 and most < INFINITY:
                now[BOUND] = self.bound(0)
                if now[BOUND] > most:
                    return 0
            changed |= added
        if self.thetas[0] > 0 and added >= 0:
            # the bound exceeds e^most as soon as both k E X_+ and B do
            if split or log(self.counts[0] * now[GAIN]) <= most:
                most = INFINITY
            added = c_largest(light.laws, light.number, &self.counts[0], self.counts.shape[0], &self.thetas[0],
                              self.thetas.shape[0], &self.contour, self.blur, most, now + FIXED)
            changed |= added
        if added < 0:
            return -1
        if changed:
            now[BOUND] = self.bound(0)
        return -1 if now[BOUND] != now[BOUND] else 0

    cdef int paired(self, double mean, double variance) noexcept nogil:
        """Add a pair (mean, variance) unless another pair has both numbers at least as large; returns whether it was added."""
        cdef Py_ssize_t i, kept = 0, number = <Py_ssize_t> self.now[PAIRS]
        cdef double *pairs = &self.now[self.tail() + 2 * self.jumps]
        for i in range(number):
            if pairs[2 * i] >= mean and pairs[2 * i + 1] >= variance:
                return 0
        for i in range(number):
            if pairs[2 * i] > mean or pairs[2 * i + 1] > variance:
                pairs[2 * kept] = pairs[2 * i]
                pairs[2 * kept + 1] = pairs[2 * i + 1]
                kept += 1
        pairs[2 * kept] = mean
        pairs[2 * kept + 1] = variance
        self.now[PAIRS] = kept + 1
        return 1

    cdef int tails(self, const double[::1] values, const double[::1] mass, const Py_ssize_t[::1] starts,
                   const Light *light) noexcept nogil:
        """Raise T(x), the largest Pr[X > x], at each edge x to its maximum over these distributions.

        Returns 1 if T was raised at an edge, -1 if there is no memory.
        """
        cdef Py_ssize_t i, j, low, high, middle
        cdef int changed = 0
        cdef double *edges = &self.now[self.tail()]
        cdef double *beyond = edges + self.jumps
        cdef double *table
        cdef double top = 0, above, up = 1 + self.blur + self.error
        for i in range(light.number):
            if light.rare[i] > 0:
                for j in range(starts[i], starts[i + 1]):
                    top = fmax(top, values[j])
        if not top > self.limit:
            return 0
        table = <double *> malloc(2 * self.jumps * sizeof(double))
        if table == NULL:
            return -1
        if top > edges[self.jumps - 1]:
            self.spanned(top * (1 + 16 * UNIT), table)
        for i in range(light.number):
            if not light.rare[i] > 0:
                continue
            for j in range(self.jumps):
                table[j] = 0
            low = 1
            for j in range(starts[i], starts[i + 1]):
                if values[j] > self.limit:
                    # find the first edge `low` that is not below the value; the search is short, because most values are slightly
                    # above the value before
                    high = self.jumps - 1
                    if edges[low - 1] < values[j]:
                        high = min(low + 3, high) if values[j] <= edges[min(low + 3, high)] else high
                    else:
                        low = 1
                    while low < high:
                        middle = (low + high) // 2
                        if edges[middle] < values[j]:
                            low = middle + 1
                        else:
                            high = middle
                    table[low] += mass[j]
            above = 0
            for j in range(self.jumps - 2, -1, -1):
                above += table[j + 1]
                changed |= raised(&beyond[j], above * up)
        free(table)
        return changed

    cdef void spanned(self, double top, double *old) noexcept nogil:
        """Replace the edges by edges up to `top`. Each new edge gets the T of the largest old edge that is not above it."""
        cdef Py_ssize_t i, j = 0
        cdef double *edges = &self.now[self.tail()]
        cdef double step = log(top / self.limit) / (self.jumps - 1)
        memcpy(old, edges, 2 * self.jumps * sizeof(double))
        for i in range(self.jumps):
            edges[i] = top if i == self.jumps - 1 else self.limit * exp(i * step)
            while j < self.jumps - 1 and old[j + 1] <= edges[i]:
                j += 1
            edges[self.jumps + i] = old[self.jumps + j]

    cdef double bound(self, Py_ssize_t column) noexcept nogil:
        """Return the log of the bound of E S_+ for counts[column], or NaN if there is no memory."""
        cdef double simple, more
        cdef const double *now = &self.now[0]
        if not now[GAIN] > 0:
            return -INFINITY
        simple = log(self.counts[column] * now[GAIN])
        if self.limit < INFINITY:
            more = self.with_jumps(column)
            return simple if more >= simple else more
        return fmin(simple, now[FIXED + column]) if self.thetas[0] > 0 else simple

    cdef double with_jumps(self, Py_ssize_t column) noexcept nogil:
        """Return the log of the sum over N = 0, 1, 2 and N >= 3 large values for counts[column], or NaN if there is no memory."""
        cdef Py_ssize_t masses = self.jumps - 1, few = (masses + self.pool - 1) // self.pool, points, i, j, k
        cdef Py_ssize_t pairs = <Py_ssize_t> self.now[PAIRS], columns = self.counts.shape[0]
        cdef double *edges = &self.now[self.tail()]
        cdef double *beyond = edges + self.jumps
        cdef double *means
        cdef double *more
        cdef double *part
        cdef double *mass
        cdef double *pooled
        cdef double count = self.counts[column], rare = self.now[RARE], expected = count * rare, each, total, one = 0, two = 0
        cdef double first = 0, above
        if rare >= 1:
            return INFINITY
        # the values of u in E(Y + u)_+: 0, the values of L, and the sums of two pooled values of L
        points = 1 if rare == 0 else 1 + masses + few * (few + 1) // 2
        means = <double *> malloc((2 * pairs + 2 * points + masses + few) * sizeof(double))
        if means == NULL:
            return NAN
        more = means + 2 * pairs
        part = more + points
        mass = part + points
        pooled = mass + masses
        for i in range(pairs):
            means[i] = count * beyond[self.jumps + 2 * i]
            means[pairs + i] = count * beyond[self.jumps + 2 * i + 1]
        more[0] = 0
        if rare > 0:
            above = rare
            for j in range(few):
                pooled[j] = 0
            for i in range(masses):
                # the mass between two edges is placed at the upper one
                more[1 + i] = edges[i + 1] - self.now[LEAST]
                mass[i] = fmax(above - beyond[i + 1], 0) / rare
                above = beyond[i + 1]
                pooled[i // self.pool] += mass[i]
            k = 1 + masses
            for i in range(few):
                for j in range(i, few):
                    more[k] = more[min((i + 1) * self.pool, masses)] + more[min((j + 1) * self.pool, masses)]
                    k += 1
        cover_positive(more, points, &self.thetas[0], &self.now[FIXED + column], columns, self.thetas.shape[0], means,
                       means + pairs, pairs, self.error, UNIT, part)
        each = log1p(-rare)
        total = part[0] * exp(count * each)
        if rare > 0:
            for i in range(masses):
                one += mass[i] * part[1 + i]
                first += mass[i] * more[1 + i]
            k = 1 + masses
            for i in range(few):
                for j in range(i, few):
                    two += (1 if i == j else 2) * pooled[i] * pooled[j] * part[k]
                    k += 1
            total += expected * exp((count - 1) * each) * one + 0.5 * expected * expected * exp((count - 2) * each) * two
            total += expected * expected * expected * (part[0] / 6 + 0.5 * first)
        free(means)
        return log(total + TINY) + 2 * self.error


def bin_atoms(const double[:, :, ::1] tables, double up, double down, double share, double silent):
    """Return a distribution for each given one: it has two atoms per bin and is larger in the convex order than X = up a - down b.

    Parameters
    ----------
    tables : ndarray, shape (7, distributions, bins)
        For each bin its mass; the mean, the smallest and the largest value of a; the same three numbers for b.
    up, down : float
        Positive.
    share, silent : float
        All masses are multiplied by `share`. If `share` is below 1, there is one more atom at `silent`, with the mass 1 - share.

    Returns
    -------
    (ndarray, ndarray, ndarray, ndarray)
        Values, masses, logarithms of the masses, and the index of the first atom of each distribution, followed by the end.
    """
    cdef Py_ssize_t laws = tables.shape[1], bins = tables.shape[2], each = 2 * bins + (share < 1), i, k
    cdef double[::1] values = np.empty(laws * each), mass = np.empty(laws * each), log_mass = np.empty(laws * each)
    with nogil:
        for i in range(laws):
            k = i * each
            cover_bins(&tables[0, i, 0], laws * bins, bins, up, down, share, -MOST, TINY, &values[k], &values[k + bins], &mass[k],
                       &mass[k + bins], &log_mass[k], &log_mass[k + bins])
            if share < 1:
                values[k + 2 * bins], mass[k + 2 * bins], log_mass[k + 2 * bins] = silent, 1 - share, log1p(-share)
    return np.asarray(values), np.asarray(mass), np.asarray(log_mass), np.arange(0, laws * each + 1, each)


cdef Py_ssize_t c_above(const double *values, Py_ssize_t number, double value, bint equal) noexcept nogil:
    """Returns how many of the increasing values are below `value`, or at most `value` if `equal`."""
    cdef Py_ssize_t low = 0, high = number, middle
    while low < high:
        middle = (low + high) // 2
        if values[middle] < value or (equal and values[middle] == value):
            low = middle + 1
        else:
            high = middle
    return low


cdef void c_excesses(const double *values, const double *masses, Py_ssize_t number, double *above, double *excess) noexcept nogil:
    """Writes Pr[X > x] and E(X - x)_+ for each of the increasing values x of a variable X."""
    cdef Py_ssize_t i
    above[number - 1] = excess[number - 1] = 0
    for i in range(number - 2, -1, -1):
        above[i] = above[i + 1] + masses[i + 1]
        excess[i] = excess[i + 1] + above[i] * (values[i + 1] - values[i])


def product_masses(const double[::1] place, const double[::1] mass, const double[::1] first, const double[::1] second,
                   const double[::1] weight, double left_out, double unit, double step, double charge):
    """Return a distribution with few values, larger in the convex order than that of X = A B - C, and what was omitted.

    A is independent of (B, C). Positive values of X are omitted if they contribute little to E A B.

    Parameters
    ----------
    place, mass : ndarray
        The values of A, increasing and positive, and their probabilities.
    first, second, weight : ndarray
        The values of B > 0 and of C >= 0, and their probabilities.
    left_out : float
        Values of A are omitted if they contribute at most this number to E A B.
    unit, step : float
        The new values are unit sinh(m step) for integers m.
    charge : float
        Bound of the relative rounding error of a mass (`convex_order.rounding_charge`).

    Returns
    -------
    (int, ndarray, float)
        The first m, the masses for this m and the following ones, and the part of E A B that was omitted.
    """
    cdef Py_ssize_t places = place.shape[0], jumps = first.shape[0], steps, cells, i, j, lowest = 0, highest = -1
    cdef double[::1] after = np.zeros(places + 1), jump = np.empty(jumps), nodes, total, moment, out
    cdef Py_ssize_t[::1] used = np.empty(jumps, dtype=np.intp)
    cdef double beyond = 0, farthest = 0, each = left_out / jumps, moved = 0, before = 0
    with nogil:
        for i in range(places - 1, -1, -1):
            after[i] = after[i + 1] + place[i] * mass[i]
        for j in range(jumps):
            # the number of values that are not omitted is found by bisection of the decreasing array `after`
            i = 0
            steps = places
            while i < steps:
                cells = (i + steps) // 2
                if after[cells] * fmax(first[j] * weight[j], TINY) > each:
                    i = cells + 1
                else:
                    steps = cells
            i = min(i, c_above(&place[0], places, MOST / fmax(first[j], TINY), False))
            used[j] = i = max(i, c_above(&place[0], places, second[j] / first[j], True))
            jump[j] = fmax(-second[j], -MOST)
            beyond += first[j] * weight[j] * after[i]
            farthest = fmax(farthest, fmax(first[j] * place[max(i, 1) - 1] - second[j], second[j]))
        steps = <Py_ssize_t> ceil(asinh(fmin(farthest, MOST) / unit) / step) + 1
        cells = 2 * steps
    nodes, total, moment, out = np.empty(cells + 1), np.zeros(cells), np.zeros(cells), np.empty(cells + 1)
    with nogil:
        cover_nodes(-steps, cells + 1, unit, step, &nodes[0])
        c_cell_sums(&place[0], &mass[0], places, &jump[0], &weight[0], jumps, &nodes[0], cells, True, &first[0], &used[0], 0,
                    &total[0], &moment[0])
        for i in range(cells + 1):
            # the mass of each cell moves to the two ends of the cell and keeps its mean
            before = moved
            moved = fmin(moment[i] / (nodes[i + 1] - nodes[i]) * (1 + charge), total[i]) if i < cells else 0
            out[i] = (total[i] - moved if i < cells else 0) + before
            if out[i] > 0:
                lowest, highest = i if highest < 0 else lowest, i
    return lowest - steps, np.array(out[lowest:highest + 1]), beyond


def mixed_atoms(Py_ssize_t first, const double[::1] masses, Py_ssize_t second, const double[::1] others, double part, double unit,
                double step):
    """Return values and masses of a mixture of two results of `product_masses`; the second one has the probability `part`."""
    cdef Py_ssize_t low = min(first, second), high = max(first + masses.shape[0], second + others.shape[0]), m, kept = 0
    cdef double[::1] values = np.empty(high - low), out = np.empty(high - low)
    cdef double each
    with nogil:
        cover_nodes(low, high - low, unit, step, &values[0])
        for m in range(low, high):
            each = (1 - part) * masses[m - first] if first <= m < first + masses.shape[0] else 0
            if second <= m < second + others.shape[0]:
                each += part * others[m - second]
            if each > 0:
                values[kept] = values[m - low]
                out[kept] = each
                kept += 1
    return np.asarray(values)[:kept], np.asarray(out)[:kept]


def with_tail(const double[::1] values, const double[::1] masses, const double[::1] place, const double[::1] tail, double charge):
    """Return values and masses of a variable Z that combines the bounds of two variables X and Y.

    Every convex function of s that is at most E(X - s)_+ and at most E(Y - s)_+ is at most E(Z - s)_+.

    Z has the values of X up to a first value, and those of Y from a second value on. Between these two values E(Z - s)_+ is linear
    in s. So a convex function that is at most E(Z - s)_+ at both values is at most E(Z - s)_+ between them, too.

    Parameters
    ----------
    values, masses : ndarray
        The values of X, increasing, and their probabilities. X = 0 with the remaining probability.
    place, tail : ndarray
        The values and probabilities of Y. If Y has no mass below its first value, E(Y - s)_+ is not used for s below it.
    charge : float
        Bound of the relative rounding error of sums of all masses.

    Returns
    -------
    (ndarray, ndarray)
        Values and masses of Z; those of X if no common tangent is found at a value of X that is at least 0.
    """
    cdef Py_ssize_t size = values.shape[0], more = place.shape[0], i, j, k
    cdef double[:, ::1] own = np.empty((2, size)), other = np.empty((2, more)), out
    cdef double slope = 0
    with nogil:
        c_excesses(&values[0], &masses[0], size, &own[0, 0], &own[1, 0])
        c_excesses(&place[0], &tail[0], more, &other[0, 0], &other[1, 0])
        j = 0
        for i in range(size - 1):
            # place[j] is the value of Y at which E(Y - s)_+ minus the tangent of E(X - s)_+ at values[i] is the smallest; j grows
            # with i
            while j < more - 1 and (other[0, j] > own[0, i] or place[j] <= values[i]):
                j += 1
            if place[j] > values[i] and other[1, j] < own[1, i] - own[0, i] * (place[j] - values[i]):
                break
        else:
            i = size
        i = size if i < size and values[i] < 0 else i
        if i < size:
            # the steepest line through the point of X and a point of Y
            slope = (own[1, i] - other[1, j]) / (place[j] - values[i])
            while j < more - 1 and own[1, i] - other[1, j + 1] > slope * (place[j + 1] - values[i]):
                j += 1
                slope = (own[1, i] - other[1, j]) / (place[j] - values[i])
    if i == size:
        return np.asarray(values), np.asarray(masses)
    out = np.empty((2, i + 1 + more - j))
    with nogil:
        for k in range(i + 1):
            out[0, k], out[1, k] = values[k], masses[k]
        for k in range(j, more):
            out[0, i + 1 + k - j], out[1, i + 1 + k - j] = place[k], tail[k]
        # the masses at both ends of the line follow from the slopes; raising a mass keeps an upper bound valid
        out[1, i] = fmax(masses[i] - (slope - own[0, i]), 0) + charge * (masses[i] + own[0, i])
        out[1, i + 1] = fmax(slope - other[0, j], 0) + charge * slope
    return np.asarray(out[0]), np.asarray(out[1])
