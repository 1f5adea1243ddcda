"""The public C interface of shufflebounds: kernels with checked arguments under stable names; the .pxd file declares them.

This module computes nothing itself. Each function checks its arguments and calls a kernel of shufflebounds._core.

Measured   no error of its own: the errors in a kernel's header hold here too, to the bit (tests/core/test_cython_tails.py).
"""

from libc.math cimport INFINITY, NAN, exp, floor
from libc.stdlib cimport free, malloc

# These imports have the form `from module cimport`, because Cython compiles this file anew only if a module after `from` changes.
from shufflebounds._core._beta cimport (
    checked_log_betainc, checked_log_betaincc, checked_nbinom_logcdf, checked_nbinom_logpmf, checked_nbinom_logsf,
)
from shufflebounds._core._binomial cimport c_shift_log_delta, checked_binom_logcdf, checked_binom_logpmf, checked_binom_logsf
from shufflebounds._core._clones cimport checked_clones_epsilon, checked_clones_log_delta
from shufflebounds._core._compound cimport c_compound_log
from shufflebounds._core._constants cimport TWO_53
from shufflebounds._core._excess cimport Users, c_log_excess
from shufflebounds._core._gamma cimport (
    checked_log_gammainc, checked_log_gammaincc, checked_poisson_logcdf, checked_poisson_logpmf, checked_poisson_logsf,
)
from shufflebounds._core._hypergeom cimport checked_hypergeom_logcdf, checked_hypergeom_logpmf, checked_hypergeom_logsf
from shufflebounds._core._lattice cimport c_lattice_log_tail, checked_poisson_binom

version = "1.1"

cdef extern from *:
    """
    #define WORK 6e7                        /* largest number of evaluations of an atom in log_excess: a few seconds */
    """
    const double WORK


cdef inline bint counts(double n) noexcept nogil:
    return 0 <= n <= TWO_53 and n == floor(n)


cdef inline bint chance(double p) noexcept nogil:
    return 0 <= p <= 1


cdef double binom_logpmf(double k, double n, double p) noexcept nogil:
    return checked_binom_logpmf(k, n, p)


cdef double binom_logcdf(double k, double n, double p) noexcept nogil:
    return checked_binom_logcdf(k, n, p)


cdef double binom_logsf(double k, double n, double p) noexcept nogil:
    return checked_binom_logsf(k, n, p)


cdef double log_gammainc(double a, double x) noexcept nogil:
    return checked_log_gammainc(a, x)


cdef double log_gammaincc(double a, double x) noexcept nogil:
    return checked_log_gammaincc(a, x)


cdef double poisson_logpmf(double k, double mu) noexcept nogil:
    return checked_poisson_logpmf(k, mu)


cdef double poisson_logcdf(double k, double mu) noexcept nogil:
    return checked_poisson_logcdf(k, mu)


cdef double poisson_logsf(double k, double mu) noexcept nogil:
    return checked_poisson_logsf(k, mu)


cdef double log_betainc(double a, double b, double x) noexcept nogil:
    return checked_log_betainc(a, b, x)


cdef double log_betaincc(double a, double b, double x) noexcept nogil:
    return checked_log_betaincc(a, b, x)


cdef double nbinom_logpmf(double k, double r, double p) noexcept nogil:
    return checked_nbinom_logpmf(k, r, p)


cdef double nbinom_logcdf(double k, double r, double p) noexcept nogil:
    return checked_nbinom_logcdf(k, r, p)


cdef double nbinom_logsf(double k, double r, double p) noexcept nogil:
    return checked_nbinom_logsf(k, r, p)


cdef double hypergeom_logpmf(double k, double total, double marked, double draws) noexcept nogil:
    return checked_hypergeom_logpmf(k, total, marked, draws)


cdef double hypergeom_logcdf(double k, double total, double marked, double draws) noexcept nogil:
    return checked_hypergeom_logcdf(k, total, marked, draws)


cdef double hypergeom_logsf(double k, double total, double marked, double draws) noexcept nogil:
    return checked_hypergeom_logsf(k, total, marked, draws)


cdef double poisson_binom_log_tail(const double *p, const double *counts_, Py_ssize_t groups, double k, int upper,
                                   double *rel_error) noexcept nogil:
    cdef double total = 0, unused = NAN, value
    cdef Py_ssize_t j
    if rel_error == NULL:
        rel_error = &unused
    rel_error[0] = NAN
    if groups < 1 or not (k == floor(k)):
        return NAN
    for j in range(groups):
        if not (0 < p[j] < 1) or (counts_ != NULL and not (counts(counts_[j]) and counts_[j] > 0)):
            return NAN
        total += counts_[j] if counts_ != NULL else 1
    if total > TWO_53:
        return NAN
    value = c_lattice_log_tail(p, NULL, counts_, groups, k, upper != 0, NULL, rel_error)
    return value


cdef double poisson_binom(const double *p, const double *counts_, Py_ssize_t groups, double k, int upper) noexcept nogil:
    cdef double *work = NULL
    cdef double value = NAN
    if groups >= 1:
        work = <double *> malloc(2 * groups * sizeof(double))
    if work != NULL:
        value = checked_poisson_binom(p, counts_, groups, k, upper, work, NULL)
    free(work)
    return value


cdef double poisson_binom_logcdf(const double *p, const double *counts_, Py_ssize_t groups, double k) noexcept nogil:
    return poisson_binom(p, counts_, groups, k, 0)


cdef double poisson_binom_logsf(const double *p, const double *counts_, Py_ssize_t groups, double k) noexcept nogil:
    return poisson_binom(p, counts_, groups, k, 1)


cdef double compound_binom_log(int kind, double k, double first, const double *log_weights, Py_ssize_t count,
                               double p) noexcept nogil:
    cdef Py_ssize_t i
    if not (0 <= kind <= 2 and count >= 1 and k == k and counts(first) and counts(first + count) and chance(p)):
        return NAN
    for i in range(count):
        if not log_weights[i] <= 1e-9:
            return NAN
    if kind == 0 and k != floor(k):
        return -INFINITY
    return c_compound_log(kind, floor(k), first, log_weights, count, p)


cdef double shift_log_delta(double n, double p, double eps, int reverse, double *error) noexcept nogil:
    error[0] = NAN
    if not (counts(n) and 0 < p < 1 and 0 <= eps < INFINITY):
        return NAN
    error[0] = 0
    return c_shift_log_delta(n, p, eps, reverse != 0, error)


cdef void clones_log_delta(double users, double local_eps, double eps, int stronger, double *lower, double *upper) noexcept nogil:
    checked_clones_log_delta(users, local_eps, eps, stronger != 0, lower, upper)


cdef double clones_epsilon(double users, double local_eps, double delta, int stronger, int upper) noexcept nogil:
    return checked_clones_epsilon(users, local_eps, delta, stronger != 0, upper != 0)


cdef void log_excess(const double *x, const double *log_w, Py_ssize_t atoms, double users, double rtol, double *lower,
                     double *upper) noexcept nogil:
    cdef Users group
    cdef Py_ssize_t j
    lower[0] = upper[0] = NAN
    if not (atoms >= 1 and counts(users) and users >= 1 and 1e-14 <= rtol <= 0.1):
        return
    for j in range(atoms):
        if not (-INFINITY < x[j] < INFINITY and log_w[j] <= 0):
            return
    group.x, group.log_w, group.atoms, group.count, group.tables = x, log_w, atoms, users, NULL
    if c_log_excess(&group, 1, rtol, WORK, lower, upper) < 0:
        lower[0] = upper[0] = NAN


cdef double quad_binom_pmf(int count, double *x) noexcept nogil:
    return exp(binom_logpmf(x[1], x[2], x[0])) if count == 3 else NAN


cdef double quad_binom_sf(int count, double *x) noexcept nogil:
    return exp(binom_logsf(x[1], x[2], x[0])) if count == 3 else NAN
