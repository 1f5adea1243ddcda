"""The clone sum E[max(0, D - u M)], the core of every clone bound, by a sweep over the number M of clones or by _contour.pyx.

Definition. M is a random number of clones, D the sum of M independent random signs (+1 or -1, probability 1/2 each). Parameters are
u and v = 1 - u. For 0 <= u < 1
    G_m = E[max(0, D - u m) | M = m] = sum_(a >= tau) (2a - m - u m) b_m(a),  tau = floor(m (1+u)/2) + 1,
where b_m is the distribution Bin(m, 1/2). The kernels sum G_m over the distribution of M. For a clone bound let n be the number of
users, w = 1/(e^eps0 + 1), C ~ Bin(n - 1, r) the number of the other users' clones, and M = C + 1. The bound is
    delta(eps) = (1 - 2w)(1 + e^eps) sum_c Pr[C = c] G_(c+1)/(c+1),  u = tanh(eps/2)/(1 - 2w),
the hockey-stick divergence of the clone pair. Since Pr[Bin(n-1, r) = m-1]/m = Pr[Bin(n, r) = m]/(n r), the sum is
E[max(0, D - u M)]/(n r) with M ~ Bin(n, r).

Method. G_m is computed by a recursion from m to m - 1, a sweep; primes denote values at m - 1. With B = b_m(tau) 2 tau/m and
g' = 2 tau' - (m-1) - u (m-1), the step depends on whether the threshold tau decreases by one:
    tau' = tau - 1:  b' = B,                       S' = S + B/2
    tau' = tau:      b' = b_m(tau) 2 (m-tau)/m,    S' = S - B/2
    both:            G' = G + u S' - |g' - 1 - u| B/2
where b = b_m(tau) and S = Pr[Bin(m, 1/2) >= tau]. In the direction of decreasing m the recursion damps the errors of earlier steps;
in the other direction they would grow. It starts anew in every block of at most 512 steps, with b from the binomial kernel, S/b
from the tail ratio of this kernel, and G = tau b - u m S. The cancellation in this G multiplies rounding errors by about |log G|,
so the error of log G is a few ulp. For u >= 1/2 the cancellation is larger (G << S as u -> 1), so G_m/b is computed as a sum of at
most 43 positive terms.
Slope: while no threshold tau changes, G_m is linear in u, with the slope -m S_m. The threshold of m changes when u has grown by
g_m/m, g_m = 2 tau - m - u m. So one sweep also bounds the sum at every larger u, up to u plus the smallest g_m/m (`Ahead`).
Truncation range: with tanh(l) = u and k = l u - log cosh(l), G_m <= e^(-k m)/(e l). So the sum outside m = lo..hi is at most
(1 - r + r e^-k)^n/(e l) times a tail of Bin(n, r'), r' = r e^-k/(1 - r + r e^-k). The terms are largest near the mean of
Bin(n, r'), which is far below n r for small delta; the range lies around that mean. The bound of the truncated sum is added to
the upper bound only.

Measured error, relative to delta, of the middle of the two bounds, less 4 ulp(log delta), and the gap between the bounds
(tests/reference/measure_errors.py: clone bounds for 1..3e4 users, against direct sums of both distributions at 500 bits):

    domain                       trials   peak      rms       gap: peak   rms
    delta >= 1e-30               855      3.7e-14   5.5e-15   3.7e-12     6.2e-13
    1e-300 <= delta < 1e-30      107      1.4e-14   1.7e-15   1.0e-11     3.2e-12
    below                        38       0         0         3.0e-11     1.5e-11
Returned error: twelve roundings for each step of a block, 21 for each step of parallel runs, the cancellation of the starting
          values and the stated errors of the kernels; the bounds are rounded conservatively.
Cost      a step takes about 4 ns for u < 1/2 (0.7 to 1.2 ns with eight parallel runs, sweep.h) and 60 ns for u >= 1/2. A sweep has
          18 steps for each standard deviation of M.
          If a sweep would have 4000 steps or more, the contour integral is tried first (5 us at any n, .2 us if its secondary
          maxima are too large). It is used if the gap of its bounds is below 1e-10 (1 - log of the tilted mass), which is about
          1e-10 (1 + |log delta|). From 1e4 steps on, up to 40 secondary maxima are integrated (5 us each). From 1e5 steps on, a
          gap of 1e-9 is accepted, and from 1e6 steps on any gap.
Source    Feldman, McMillan, Talwar 2021 and 2023 for the pair; the sweep and the bounds are derived above.
"""

from cpython.exc cimport PyErr_CheckSignals
from libc.math cimport INFINITY, NAN, exp, fmax, log

from shufflebounds._core._binomial cimport (
    c_pmf_block, c_tails_block, checked_binom_logcdf, checked_binom_logpmf, checked_binom_logsf)
from shufflebounds._core._constants cimport TAILS_BINOMIAL
from shufflebounds._core._ufunc cimport ufunc_of_pairs

cdef extern from "compound.h" nogil:
    ctypedef struct own_ahead "Ahead":
        pass
    ctypedef struct CompoundWindow:
        pass
    bint compound_outside(double n, double rate, double u, double v)
    CompoundWindow compound_window(double n, double rate, double u, double v)
    void compound_sweep(double n, double rate, CompoundWindow *w, double *lower, double *upper, void *ahead)
    void kernel_log_sign_excess(double n, double rate, double u, double v, double *lower, double *upper)
    void kernel_log_sign_ahead(double n, double rate, double u, double v, double *lower, double *upper, void *ahead)
    double kernel_log_weighted_excess(double first, const double *log_weights, Py_ssize_t count, double u, double v, double *error)

cdef extern from *:
    """
    #define PATIENCE 65536                  /* binomial terms between two checks for signals */
    """
    const Py_ssize_t PATIENCE

cdef extern from "vectors.h" nogil:
    int vectors_level()

cdef enum:
    TERMS = 256             # TAILS_BLOCK, the most elements of a block


cdef void c_log_sign_excess(double n, double rate, double u, double v, double *lower, double *upper) noexcept nogil:
    kernel_log_sign_excess(n, rate, u, v, lower, upper)
cdef void c_log_sign_ahead(double n, double rate, double u, double v, double *lower, double *upper, Ahead *ahead) noexcept nogil:
    kernel_log_sign_ahead(n, rate, u, v, lower, upper, <void *> ahead)
cdef double c_log_weighted_excess(double first, const double *log_weights, Py_ssize_t count, double u, double v,
                                  double *error) noexcept nogil:
    return kernel_log_weighted_excess(first, log_weights, count, u, v, error)

# the struct of compound.h has the fields of that of _compound.pxd
assert sizeof(own_ahead) == sizeof(Ahead)


cdef void each_sign_excess(const double *x, double *sides) noexcept nogil:
    sides[0] = sides[1] = NAN
    if compound_outside(x[0], x[1], x[2], x[3]):
        return
    if x[3] == 0:
        sides[0] = sides[1] = -INFINITY
        return
    c_log_sign_excess(x[0], x[1], x[2], x[3], sides, sides + 1)


cdef void each_sign_ahead(const double *x, double *both) noexcept nogil:
    cdef Ahead ahead
    cdef double lower, upper
    both[0] = both[1] = NAN
    if compound_outside(x[0], x[1], x[2], x[3]) or x[3] == 0:
        return
    c_log_sign_ahead(x[0], x[1], x[2], x[3], &lower, &upper, &ahead)
    both[0], both[1] = ahead.pull, ahead.still


cdef void each_sign_sweep(const double *x, double *sides) noexcept nogil:
    cdef CompoundWindow w
    sides[0] = sides[1] = NAN
    if compound_outside(x[0], x[1], x[2], x[3]) or x[3] == 0:
        return
    w = compound_window(x[0], x[1], x[2], x[3])
    compound_sweep(x[0], x[1], &w, sides, sides + 1, NULL)


log_sign_excess = ufunc_of_pairs(
    <void *> each_sign_excess,
    "log_sign_excess(n, rate, u, v) -> (lower, upper): bounds of log E[max(0, D - u M)], M ~ Bin(n, rate), v = 1 - u.")
log_sign_ahead = ufunc_of_pairs(
    <void *> each_sign_ahead,
    "log_sign_ahead(n, rate, u, v) -> (pull, still) of Ahead in _compound.pxd, for tests.")
log_sign_sweep = ufunc_of_pairs(
    <void *> each_sign_sweep,
    "log_sign_sweep(n, rate, u, v): the same bounds by the sweep at any n; the contour integral is tested against it.")


def log_weighted_excess(double first, const double[::1] log_weights, double u, double v):
    """Return log sum_i exp(log_weights[i]) G_m/m, m = first + i + 1, G_m = E max(0, D - u m), and a bound of its error."""
    cdef double error = 0, value
    cdef Py_ssize_t count = log_weights.shape[0]
    if count == 0:
        raise ValueError("log_weights must not be empty")
    with nogil:
        value = c_log_weighted_excess(first, &log_weights[0], count, u, v, &error)
    return value, error


cdef double c_compound_log(int kind, double k, double first, const double *log_weights, Py_ssize_t count,
                           double p) noexcept nogil:
    """Returns log Pr[X = k] (kind 0), log Pr[X <= k] (1) or log Pr[X > k] (2) for X ~ Bin(S, p).

    S is random: Pr[S = first + i] = e^log_weights[i].

    All terms are positive, with small relative errors. They are evaluated in blocks by vector code. A block whose weights are below
    e^-50 of the largest term so far is dropped, because it is below the rounding error of the sum.
    """
    cdef double top = -INFINITY, total = 0, most
    cdef double[TERMS] at, n, prob, term
    cdef const double *x[3]
    cdef Py_ssize_t start = 0, size, i
    cdef int level = vectors_level()
    x[0], x[1], x[2] = at, n, prob
    for i in range(min(count, <Py_ssize_t> TERMS)):
        at[i], prob[i] = k, p
    while start < count:
        size = min(count - start, <Py_ssize_t> TERMS)
        most = -INFINITY
        for i in range(size):
            most, n[i] = fmax(most, log_weights[start + i]), first + start + i
        if most > top - 50 and most > -INFINITY:
            if kind == 0:
                c_pmf_block(level, TAILS_BINOMIAL, x, term, size, checked_binom_logpmf)
            else:
                c_tails_block(level, TAILS_BINOMIAL, x, term, size, kind - 1,
                              checked_binom_logcdf if kind == 1 else checked_binom_logsf)
            most = top
            for i in range(size):
                term[i] += log_weights[start + i]
                most = fmax(most, term[i])
            if most > -INFINITY:
                total *= exp(top - most)
                top = most
                for i in range(size):
                    total += exp(term[i] - top)
        start += size
    return top + log(total) if total > 0 else -INFINITY


def compound_binom(int kind, const double[::1] k, double first, const double[::1] log_weights, double p, double[::1] out):
    """Fill `out` with c_compound_log at every k, and check for signals every few milliseconds."""
    cdef Py_ssize_t i, start = 0, count = log_weights.shape[0], block = max(1, PATIENCE // max(1, count))
    while start < k.shape[0]:
        with nogil:
            for i in range(start, min(k.shape[0], start + block)):
                out[i] = c_compound_log(kind, k[i], first, &log_weights[0], count, p)
        start += block
        PyErr_CheckSignals()
