"""Logarithms of hypergeometric probabilities and tails, with relative accuracy in the extreme tails, populations up to 2**53.

Layer: scalar kernels ``noexcept nogil`` (declared in _hypergeom.pxd, which says what the caller has checked), and ufuncs over
blocks of elements in vector code (hypergeom.h), which return NaN outside the domain. A scalar kernel of a tail evaluates a block
of one element.

Definition. X is the number of marked items among `draws` taken without replacement from `total`, of which `marked` are marked.
    pmf     b(k; marked, p) b(draws - k; total - marked, p)/b(draws; total, p), where b is the binomial pmf. This holds for every
            p; with p = draws/total its three deviances do not cancel. Above e^-0.2 it is 1 minus the tails below and above k.
    tails   Only the smaller tail is computed; the other is log(1 - e^small). A lower tail is an upper tail of marked - X. Let
            a = (j, marked+1-j, draws+1-j, rest+j), rest = total - marked - draws, with the expectations
            m = ((marked+1)(draws+1), (marked+1)(total-draws+1), ...)/(total+2), the signs e = (+, -, -, +),
            1/sigma^2 = sum 1/m_i and D = sum dev(a_i, m_i). The tail Pr[X >= j] with j >= m_0 is the smaller one. It is at most
            1 - 1/e, which is its limit for rare successes (computed for every population up to 60). Two methods compute it:
      near the mode   e^-D/sqrt(2 pi) [M(s) + (B(s) + C)/A], where s = sqrt(2 D), M is Mills' ratio, and A, B(s) and C follow.
                      Pr[X = x] is proportional to f = h e^-D at j = x + 1/2, with log h = sum 1/(24 a_i) - 7/(2880 a_i^3) + ...
                      The sum of f over x >= j is the integral of f from j - 1/2, plus the other terms of the Euler-Maclaurin
                      formula, which are e^-D times
                      C = (f^(1)/24 - 7 f^(3)/5760 + 31 f^(5)/967680 - 127 f^(7)/154828800) e^D/sigma at j - 1/2.
                      Let j = m_0 + sigma^2 y and g_i = e_i sigma^2/m_i. Then D/sigma^2 = K(y) with K'' = sum |g_i|/(1 + g_i y), and
                      t = s/sigma = sqrt(2 K(y)) has an inverse y(t), a power series. The power series of (dy/dt) h is integrated
                      term by term, which gives e^-D (A M(s) + B(s)) with a number A and a polynomial B. A sqrt(2 pi) is the
                      integral over the whole line, so that no normalisation is needed. The order of the series is 7 for
                      max(s, 2.5) < 0.03 sigma, 9 below 0.08 sigma, and 11 below 0.15 sigma if sigma > 50. The dropped terms are
                      then below 5e-14 of the tail.
      elsewhere       the pmf times the sum of positive terms by the ratios of neighbours, of at most about 450 terms

Measured error of log p in units of 1e-13 min(1, |log p|) + 4 ulp(log p), against exact sums (python-flint;
tests/reference/measure_sums.py, tests/core/test_hypergeom.py):

    domain                                               trials    peak    rms
    total to 2**53, sigma to 2500, to 40 sigma: pmf      3000      0.29    0.04
    the same, smaller tail                               3000      0.35    0.04
Cost      in arrays, AVX-512: 37 ns the pmf, 77 ns far from the mode; a tail 77 ns within 6 standard deviations of the mode for a
          population of 1e6 and more, 90 ns for one of 1e2 to 1e6, 60 to 140 ns far from the mode
Source    Loader 2000 for the pmf by binomials; Temme 1979/1982 for the idea of the uniform expansion
"""

from libc.math cimport INFINITY, NAN, floor, fmax, fmin

from shufflebounds._core._binomial cimport c_binom_logpmf, c_pmf_block, checked_binom_logpmf
from shufflebounds._core._constants cimport TAILS_BINOMIAL, TWO_53
from shufflebounds._core._special cimport c_log1mexp, c_log_add_exp
from shufflebounds._core._ufunc cimport document, ufunc_of_blocks

cdef extern from "hypergeom.h" nogil:
    const int HYPERGEOM_ABREAST
    const int HYPERGEOM_SUM
    const int HYPERGEOM_LONE
    ctypedef struct Points:
        Py_ssize_t count
        int *at
        double *j
        double *total
        double *marked
        double *draws
        double *value
    int vectors_level()
    void hypergeom_sort(int level, const double *const *x, Py_ssize_t count, double upper, Points *t, double *other, double *way)
    void hypergeom_complete(int level, const double *other, double *value, Py_ssize_t count)
    void hypergeom_groups(int level, Points *t, int way)

cdef enum:
    BLOCK = 256             # HYPERGEOM_BLOCK
    WAYS = 68               # HYPERGEOM_WAYS


cdef inline void add(Points *t, Py_ssize_t at, double j, double total, double marked, double draws) noexcept nogil:
    t.at[t.count] = <int> at
    t.j[t.count], t.total[t.count], t.marked[t.count], t.draws[t.count] = j, total, marked, draws
    t.count += 1


cdef void find(int level, Points *t, double *value) noexcept nogil:
    """Computes log Pr[X = j] of all points, as c_hypergeom_logpmf does of one."""
    cdef double[BLOCK] p, k, n, part
    cdef const double *arguments[3]
    cdef Py_ssize_t i
    arguments[0], arguments[1], arguments[2] = t.j, t.marked, p
    for i in range(t.count):
        p[i] = t.draws[i] / t.total[i]
        k[i], n[i] = t.draws[i] - t.j[i], t.total[i] - t.marked[i]
    c_pmf_block(level, TAILS_BINOMIAL, arguments, value, t.count, checked_binom_logpmf)
    arguments[0], arguments[1] = k, n
    c_pmf_block(level, TAILS_BINOMIAL, arguments, part, t.count, checked_binom_logpmf)
    for i in range(t.count):
        value[i] += part[i]
    arguments[0], arguments[1] = t.draws, t.total
    c_pmf_block(level, TAILS_BINOMIAL, arguments, part, t.count, checked_binom_logpmf)
    for i in range(t.count):
        value[i] -= part[i]


cdef void find_tails(int level, Points *t, const double *way, Py_ssize_t *lone, int *order) noexcept nogil:
    """Computes the values log Pr[X >= j] of all points. The points of the method HYPERGEOM_LONE are order[lone[0]:] instead."""
    cdef Points some
    cdef double[BLOCK] mass
    cdef Py_ssize_t[WAYS + 1] first
    cdef Py_ssize_t i, place = 0, last
    cdef int w
    for w in range(WAYS + 1):
        first[w] = 0
    for i in range(t.count):
        first[<int> way[i] + 1] += 1
    for w in range(WAYS):
        first[w + 1] += first[w]
    lone[0] = first[HYPERGEOM_LONE]
    for i in range(t.count):
        w = <int> way[i]
        order[first[w]] = <int> i
        first[w] += 1                   # the end of this list once all are placed
    for w in range(HYPERGEOM_SUM + 1):
        last = first[w] if w < HYPERGEOM_SUM else lone[0]
        some.count = 0
        while place < last:
            i = order[place]
            add(&some, i, t.j[i], t.total[i], t.marked[i], t.draws[i])
            place += 1
        while some.count % HYPERGEOM_ABREAST:
            add(&some, some.at[0], some.j[0], some.total[0], some.marked[0], some.draws[0])
        hypergeom_groups(level, &some, w)
        if w == HYPERGEOM_SUM:
            find(level, &some, mass)
            for i in range(some.count):
                some.value[i] += mass[i]
        for i in range(some.count):
            t.value[some.at[i]] = some.value[i]


cdef inline double least(double total, double marked, double draws) noexcept nogil:
    return fmax(0, draws - (total - marked))


cdef double log_tail(double k, double total, double marked, double draws, bint upper) noexcept nogil:
    """Returns log Pr[X > k] (upper) or log Pr[X <= k]."""
    cdef const double *x[4]
    cdef double value
    if k < least(total, marked, draws):
        return 0 if upper else -INFINITY
    if k >= fmin(marked, draws):
        return -INFINITY if upper else 0
    x[0], x[1], x[2], x[3] = &k, &total, &marked, &draws
    block_tail(vectors_level(), x, &value, 1, upper)
    return value


cdef double c_hypergeom_logpmf(double k, double total, double marked, double draws) noexcept nogil:
    cdef double low = least(total, marked, draws), high = fmin(marked, draws), p
    if k < low or k > high:
        return -INFINITY
    if low == high:
        return 0
    p = draws / total
    return (c_binom_logpmf(k, marked, p) + c_binom_logpmf(draws - k, total - marked, p)
            - c_binom_logpmf(draws, total, p))


cdef double c_hypergeom_logcdf(double k, double total, double marked, double draws) noexcept nogil:
    return log_tail(k, total, marked, draws, False)


cdef double c_hypergeom_logsf(double k, double total, double marked, double draws) noexcept nogil:
    return log_tail(k, total, marked, draws, True)


cdef inline double near_one(double value, double k, double total, double marked, double draws) noexcept nogil:
    """Returns log Pr[X = k]; if it is near 0, where relative accuracy matters, from the tails below and above k."""
    cdef double outside
    if value < -0.2 or least(total, marked, draws) == fmin(marked, draws):
        return value
    outside = c_log_add_exp(log_tail(k - 1, total, marked, draws, False), log_tail(k, total, marked, draws, True))
    return c_log1mexp(fmin(outside, 0))


cdef inline bint is_count(double n) noexcept nogil:
    return 0 <= n <= TWO_53 and n == floor(n)


cdef inline bint hypergeom_domain(double k, double total, double marked, double draws) noexcept nogil:
    return k == k and is_count(total) and is_count(marked) and is_count(draws) and marked <= total and draws <= total


cdef double checked_hypergeom_logpmf(double k, double total, double marked, double draws) noexcept nogil:
    if not hypergeom_domain(k, total, marked, draws):
        return NAN
    return near_one(c_hypergeom_logpmf(k, total, marked, draws), k, total, marked, draws) if k == floor(k) else -INFINITY


cdef double checked_hypergeom_logcdf(double k, double total, double marked, double draws) noexcept nogil:
    return c_hypergeom_logcdf(floor(k), total, marked, draws) if hypergeom_domain(k, total, marked, draws) else NAN


cdef double checked_hypergeom_logsf(double k, double total, double marked, double draws) noexcept nogil:
    return c_hypergeom_logsf(floor(k), total, marked, draws) if hypergeom_domain(k, total, marked, draws) else NAN


cdef void block_logpmf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    cdef Points t
    cdef double[BLOCK] mass
    cdef Py_ssize_t i
    cdef double k, total, marked, draws
    t.count = 0
    for i in range(count):
        k, total, marked, draws = x[0][i], x[1][i], x[2][i], x[3][i]
        if (hypergeom_domain(k, total, marked, draws) and k == floor(k)
                and least(total, marked, draws) <= k <= fmin(marked, draws)
                and least(total, marked, draws) < fmin(marked, draws)):
            add(&t, i, k, total, marked, draws)
        else:
            value[i] = checked_hypergeom_logpmf(k, total, marked, draws)
    find(level, &t, mass)
    for i in range(t.count):
        value[t.at[i]] = near_one(mass[i], t.j[i], t.total[i], t.marked[i], t.draws[i])


cdef void block_tail(int level, const double *const *x, double *value, Py_ssize_t count, bint upper) noexcept nogil:
    """Computes log Pr[X > k] (upper) or log Pr[X <= k]. log_tail computes the elements outside of the support."""
    cdef Points t
    cdef double[BLOCK] other, way
    cdef int[BLOCK] order
    cdef Py_ssize_t i, at, lone
    hypergeom_sort(level, x, count, upper, &t, other, way)
    find_tails(level, &t, way, &lone, order)
    hypergeom_complete(level, other, t.value, count)
    for i in range(count):
        value[i] = t.value[i]
    for i in range(lone, count):
        at = order[i]
        value[at] = (checked_hypergeom_logsf if upper else checked_hypergeom_logcdf)(x[0][at], x[1][at], x[2][at], x[3][at])


cdef void block_logcdf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    block_tail(level, x, value, count, False)


cdef void block_logsf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    block_tail(level, x, value, count, True)


cdef dict HYPERGEOM_ARGUMENTS = {
    "M": "Size of the population, an integer in 0..2**53.",
    "n": "Number of marked items in the population, an integer in 0..M.",
    "N": "Number of items drawn, an integer in 0..M.",
}
cdef str HYPERGEOM_NOTES = ("Parameters as in ``scipy.stats.hypergeom``. Relative error about 1e-13, or some ulp of the logarithm: "
                            "the header of ``_core/_hypergeom.pyx`` has the table.")

hypergeom_logpmf = ufunc_of_blocks(<void *> block_logpmf, document(
    "hypergeom_logpmf(k, M, n, N)", "Log of the probability that exactly k of N drawn are marked, without replacement.",
    {"k": "Number of marked items drawn; -inf where it is not an integer of the support.", **HYPERGEOM_ARGUMENTS},
    "hypergeom_logcdf, hypergeom_logsf", "hypergeom_logpmf(0, 10**6, 1000, 10**5):.8f", "-105.41605472",
    HYPERGEOM_NOTES))

hypergeom_logcdf = ufunc_of_blocks(<void *> block_logcdf, document(
    "hypergeom_logcdf(k, M, n, N)", "Log of the probability that at most k of N drawn are marked, without replacement.",
    {"k": "Number of marked items drawn; any real number, rounded down.", **HYPERGEOM_ARGUMENTS},
    "hypergeom_logpmf, hypergeom_logsf", "hypergeom_logcdf(10, 10**6, 1000, 10**5):.8f", "-73.35557152",
    HYPERGEOM_NOTES))

hypergeom_logsf = ufunc_of_blocks(<void *> block_logsf, document(
    "hypergeom_logsf(k, M, n, N)", "Log of the probability that more than k of N drawn are marked, without replacement.",
    {"k": "Number of marked items drawn; any real number, rounded down.", **HYPERGEOM_ARGUMENTS},
    "hypergeom_logpmf, hypergeom_logcdf", "hypergeom_logsf(6 * 10**11, 2**50, 10**12, 2**49):.8f", "-20153292923.74845886",
    HYPERGEOM_NOTES))
