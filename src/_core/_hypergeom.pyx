"""Logarithms of hypergeometric probabilities and tails, with relative accuracy in the extreme tails, populations up to 2**53.

Layer: scalar kernels ``noexcept nogil`` (declared in _hypergeom.pxd, which says what the caller has checked), then one ufunc
each, which returns NaN outside the domain.

Definition. X is the number of marked items among `draws` taken without replacement from `total`, of which `marked` are marked.
    pmf     b(k; marked, p) b(draws - k; total - marked, p)/b(draws; total, p), where b is the binomial pmf. This holds for every
            p; with p = draws/total its three deviances do not cancel. Above e^-0.2 it is 1 minus the tails below and above k.
    tails   the smaller tail is Pr[X >= j] = pmf(j) sum_i g(i), g(i) = pmf(j + i)/pmf(j), and the other is log(1 - e^small). A
            lower tail is an upper tail of marked - X. With w = -log of the ratio of neighbours at j:
      w > 0.02 or sigma < 200   the sum of positive terms by their ratios, at most about 2000 terms
      otherwise                 Euler-Maclaurin: int_(-1/2)^inf g + g'/24 - 7 g'''/5760 at -1/2; the next term is below 1e-14
                                of the sum. 32 Gauss nodes up to g < e^-42. log g(t) = t log(r) - sum of four deviances of
                                the counts j, marked - j, draws - j, rest + j moved by t, and smaller terms, so that every
                                difference that is formed is exact: r - 1 is (marked draws - j total)/(j rest).

Measured error of log p in units of 1e-13 min(1, |log p|) + 4 ulp(log p), against exact sums (python-flint;
tests/reference/measure_gamma.py, tests/core/test_hypergeom.py):

    domain                                               trials    peak    rms
    total to 2**53, sigma to 2500, to 40 sigma: pmf      600       0.23    0.03
    the same, smaller tail                               600       0.29    0.04
Cost      in arrays, AVX-512: 45 ns the pmf, 82 ns far from the mode; a tail 0.15 us far from it and 0.25 us within 6 standard
          deviations for a population of 1e2 to 1e6, 2 us where sigma is above 200 and the tail decays slowly
Source    Loader 2000 for the pmf by binomials; the summation is that of this library
"""

from libc.math cimport INFINITY, NAN, exp, floor, fmax, fmin, log, log1p, sqrt

from shufflebounds._core._binomial cimport c_binom_logpmf, c_pmf_block, checked_binom_logpmf
from shufflebounds._core._constants cimport TAILS_BINOMIAL, TWO_53
from shufflebounds._core._dd cimport dd, dd_add, dd_neg, dd_prod
from shufflebounds._core._special cimport c_deviance, c_log1mexp, c_log_add_exp
from shufflebounds._core._ufunc cimport document, ufunc_of_blocks

cdef extern from "hypergeom.h" nogil:
    int vectors_level()
    void ratios(int level, double k, double rest, double marked, double draws, double *total)

cdef extern from "tables.h" nogil:
    const double *GAUSS_X
    const double *GAUSS_W
    const int GAUSS_HALF

cdef extern from *:
    """
    #define STEEP 0.02                      /* decrease of log pmf per step above which 2000 terms suffice */
    #define WIDE 200.0                      /* sigma up to which the terms within 9 sigma are summed one by one */
    #define DEEP 42.0                       /* the integral ends where g < e^-DEEP */
    """
    const double STEEP
    const double WIDE
    const double DEEP

cdef enum:
    BLOCK = 256             # elements of a block (loops.h)

cdef struct Cells:
    # the four counts at j; counts 0 and 3 grow with X, 1 and 2 fall
    double at[4]
    double slope        # log of (marked - j)(draws - j)/(j rest)


cdef inline double log_growth(const Cells *cells, double t, double *first) noexcept nogil:
    """Returns log g(t), and writes the derivative of log g(t) - t slope to first[0]."""
    cdef double total = 0, sign = 1, moved, part
    cdef int i
    first[0] = 0
    for i in range(4):
        sign = -1 if i == 1 or i == 2 else 1
        moved = sign * t
        part = log1p(moved / cells.at[i])
        total -= c_deviance(cells.at[i] + moved, cells.at[i], moved) + 0.5 * part
        total += moved / (12 * cells.at[i] * (cells.at[i] + moved))
        first[0] -= sign * (part + 0.5 / (cells.at[i] + moved))
    return t * cells.slope + total


cdef double smooth_sum(const Cells *cells, double var) noexcept nogil:
    """Returns sum_(i >= 0) g(i) by the Euler-Maclaurin formula."""
    cdef double w = -cells.slope, far = var * (sqrt(w * w + 2 * DEEP / var) - w), half = 0.5 * (far + 0.5), total = 0
    cdef double second = 0, first, unused, value
    cdef int i
    for i in range(GAUSS_HALF):
        total += GAUSS_W[i] * (exp(log_growth(cells, -0.5 + half * (1 - GAUSS_X[i]), &unused))
                               + exp(log_growth(cells, -0.5 + half * (1 + GAUSS_X[i]), &unused)))
    value = exp(log_growth(cells, -0.5, &first))
    first += cells.slope
    for i in range(4):
        second -= 1 / cells.at[i]
    return half * total + value * (first / 24 - 7 * first * (first * first + 3 * second) / 5760)


cdef double log_sum(int level, double j, double total, double marked, double draws) noexcept nogil:
    """Returns log(Pr[X >= j]/Pr[X = j]) for j in the support and above the mean."""
    cdef double rest = total - marked - draws, var, sum_
    cdef Cells cells
    cdef dd lead
    var = draws * (marked / total) * ((total - marked) / total) * ((total - draws) / total)
    if var > WIDE * WIDE:
        cells.at[0], cells.at[1], cells.at[2], cells.at[3] = j, marked - j, draws - j, rest + j
        lead = dd_add(dd_prod(marked, draws), dd_neg(dd_prod(j, total)))
        cells.slope = log1p(lead.hi / (j * (rest + j)))
        if cells.slope > -STEEP:
            return log(smooth_sum(&cells, var))
    ratios(level, j, rest, marked, draws, &sum_)
    return log(sum_)


cdef inline double log_upper(double j, double total, double marked, double draws) noexcept nogil:
    """Returns log Pr[X >= j] for j in the support and above the mean."""
    return c_hypergeom_logpmf(j, total, marked, draws) + log_sum(vectors_level(), j, total, marked, draws)


cdef inline double least(double total, double marked, double draws) noexcept nogil:
    return fmax(0, draws - (total - marked))


cdef inline double log_tail(double k, double total, double marked, double draws, bint upper) noexcept nogil:
    """Returns log Pr[X > k] (upper) or log Pr[X <= k]."""
    cdef double low = least(total, marked, draws), high = fmin(marked, draws), small
    cdef dd lead
    if k < low:
        return 0 if upper else -INFINITY
    if k >= high:
        return -INFINITY if upper else 0
    # if k + 1 is above the mean, the upper tail is the smaller one, unless most of the probability is at k + 1 itself
    lead = dd_add(dd_prod(marked, draws), dd_neg(dd_prod(k + 1, total)))
    if lead.hi <= 0:
        small = log_upper(k + 1, total, marked, draws)
        lead = dd_add(dd_prod(marked, draws), dd_neg(dd_prod(k, total)))
        if small < -0.7 or lead.hi < 0:
            return small if upper else c_log1mexp(fmin(small, 0))
    small = log_upper(marked - k, total, marked, total - draws)
    return c_log1mexp(fmin(small, 0)) if upper else small


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


cdef struct Masses:
    # up to BLOCK points j of hypergeometric distributions, whose probabilities are computed together
    Py_ssize_t count
    int at[BLOCK]                       # the place of a point among the elements of the block
    double j[BLOCK]
    double total[BLOCK]
    double marked[BLOCK]
    double draws[BLOCK]
    double value[BLOCK]                 # log Pr[X = j]


cdef inline void add(Masses *m, Py_ssize_t at, double j, double total, double marked, double draws) noexcept nogil:
    m.at[m.count] = <int> at
    m.j[m.count], m.total[m.count], m.marked[m.count], m.draws[m.count] = j, total, marked, draws
    m.count += 1


cdef void find(int level, Masses *m) noexcept nogil:
    """Computes the values of all points, as c_hypergeom_logpmf does of one."""
    cdef double p[BLOCK]
    cdef double k[BLOCK]
    cdef double n[BLOCK]
    cdef double part[BLOCK]
    cdef const double *arguments[3]
    cdef Py_ssize_t i
    arguments[0], arguments[1], arguments[2] = m.j, m.marked, p
    for i in range(m.count):
        p[i] = m.draws[i] / m.total[i]
        k[i], n[i] = m.draws[i] - m.j[i], m.total[i] - m.marked[i]
    c_pmf_block(level, TAILS_BINOMIAL, arguments, m.value, m.count, checked_binom_logpmf)
    arguments[0], arguments[1] = k, n
    c_pmf_block(level, TAILS_BINOMIAL, arguments, part, m.count, checked_binom_logpmf)
    for i in range(m.count):
        m.value[i] += part[i]
    arguments[0], arguments[1] = m.draws, m.total
    c_pmf_block(level, TAILS_BINOMIAL, arguments, part, m.count, checked_binom_logpmf)
    for i in range(m.count):
        m.value[i] -= part[i]


cdef void block_logpmf(int level, const double *const *x, double *value, Py_ssize_t count) noexcept nogil:
    cdef Masses m
    cdef Py_ssize_t i
    cdef double k, total, marked, draws
    m.count = 0
    for i in range(count):
        k, total, marked, draws = x[0][i], x[1][i], x[2][i], x[3][i]
        if (hypergeom_domain(k, total, marked, draws) and k == floor(k)
                and least(total, marked, draws) <= k <= fmin(marked, draws)
                and least(total, marked, draws) < fmin(marked, draws)):
            add(&m, i, k, total, marked, draws)
        else:
            value[i] = checked_hypergeom_logpmf(k, total, marked, draws)
    find(level, &m)
    for i in range(m.count):
        value[m.at[i]] = near_one(m.value[i], m.j[i], m.total[i], m.marked[i], m.draws[i])


cdef void block_tail(int level, const double *const *x, double *value, Py_ssize_t count, bint upper) noexcept nogil:
    """Computes log Pr[X > k] (upper) or log Pr[X <= k], as log_tail does of one element."""
    cdef Masses m
    cdef Py_ssize_t i, at
    cdef double k, total, marked, draws, small
    cdef bint mirrored[BLOCK]
    cdef dd lead
    m.count = 0
    for i in range(count):
        k, total, marked, draws = floor(x[0][i]), x[1][i], x[2][i], x[3][i]
        if hypergeom_domain(k, total, marked, draws) and least(total, marked, draws) <= k < fmin(marked, draws):
            lead = dd_add(dd_prod(marked, draws), dd_neg(dd_prod(k + 1, total)))
            mirrored[m.count] = lead.hi > 0
            if lead.hi > 0:
                add(&m, i, marked - k, total, marked, total - draws)
            else:
                add(&m, i, k + 1, total, marked, draws)
        elif hypergeom_domain(k, total, marked, draws):
            value[i] = log_tail(k, total, marked, draws, upper)
        else:
            value[i] = NAN
    find(level, &m)
    for i in range(m.count):
        at = m.at[i]
        small = m.value[i] + log_sum(level, m.j[i], m.total[i], m.marked[i], m.draws[i])
        if small >= -0.7 and not mirrored[i]:
            # log_tail decides which tail is the smaller one
            value[at] = log_tail(m.j[i] - 1, m.total[i], m.marked[i], m.draws[i], upper)
        else:
            value[at] = small if upper != mirrored[i] else c_log1mexp(fmin(small, 0))


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
