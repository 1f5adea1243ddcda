"""Upper bounds of E S_+ for sums S of independent variables, by Hoelder's inequality (docs/theorems/worst-dataset, Lemma H).

    phi(z) = E e^(zX) = 1 + sum w (e^(zx) - 1),  X = x[j] with probability w[j], else 0;   z_m = theta + i m D, D the step
    B = (D/(2 pi)) sum_m u_m |phi(z_m)|^k,       u_m = exp(eta^2 (theta^2 - m^2 D^2)/2)/(theta^2 + m^2 D^2)
    E (X_1 + ... + X_k)_+ <= the largest B of the distributions of X_1, ..., X_k, for any theta, D > 0 and eta >= 0, common to all

Layer: ``c_log_moments``, ``c_log_contour`` and ``c_tilt``, noexcept nogil, declared in _moments.pxd, which says what the caller has
checked; ``log_moments``, ``log_contour``, ``tilt`` and ``largest`` for Python. moments.h has the loop over atoms.

Method   phi - 1     sum w (e^(theta x) - 1) + sum w e^(theta x) (e^(imDx) - 1), so that nothing cancels where z x is small; powers
                     of e^(iDx) by repeated multiplication, moments.h
         log|phi|    log1p of |phi|^2 - 1, or the logarithm of |phi|^2 below 1/2
         m > nodes   |phi(z_m)| <= phi(theta), and sum 1/m^2 over m > nodes is at most 1/nodes
         largest     the bound with phi(theta) in place of |phi(z_m)| takes one real sum. Distributions are evaluated in decreasing
                     order of it, and those for which it is below the largest B are skipped
Rounding every log|phi| is increased by a bound of its error: probabilities have the relative error `blur` plus that of the
         exponential function, and e^(imDx) - 1 has the error 2 m (m + 10) UNIT D|x| (moments.h). Together this is about
         (blur + 20 UNIT) E|e^(theta X) - 1| + (blur + (20 + 2 m) UNIT) m D E|X| e^(theta X),
         and so for k users about sqrt(k) (blur + 20 UNIT) in log B. Rounding of x is the caller's

Measured excess of the upper bounds over the exact values (tests/reference/measure_sums.py: python-flint at 300 bits; theta x to 5)
    quantity                                                    trials    peak      rms
    log|phi|, 1 to 40 atoms, masses to e^-40                    8000      6.8e+03   1.3e+02     (a)
    log B, the same, k to 1e6                                   996       3.1e-11   3.2e-12
    log B, the same, k to 2**53                                 1004      2.1e-06   1.8e-07
    (a) in units of UNIT (E|e^(theta X) - 1| + m D E|X| e^(theta X) + |log|phi||/1000), m = 0, 1, 5, 40; no bound was below
Cost     with 197 nodes: 20 us for 3 distributions of 4 atoms, 0.09 ms for one of 600 atoms, 0.5 ms for twelve theta; tilt: 25 theta
Source   Poisson summation and Hoelder's inequality: docs/theorems/worst-dataset, Lemma H
"""

from libc.math cimport INFINITY, cos, exp, expm1, fabs, fmax, fmin, log, log1p, sin, sqrt
from libc.stdlib cimport free, malloc

import numpy as np

from shufflebounds._core._constants cimport UNIT

cdef extern from "moments.h" nogil:
    const int MOMENT_LANES
    void moments_step(const double *re1, const double *im1, double *re, double *im, const double *weight, Py_ssize_t n,
                      Py_ssize_t rows, double *sum_re, double *sum_im)

cdef double LOG_2PI = 1.8378770664093453
cdef double OVER = 700.0                          # e^OVER is formed, no larger number


# What bounds the error of phi(theta + i m D), besides rounding of the final logarithm:
# still + min(m moving, full) + 2 m (m + 10) UNIT turning
cdef struct Blur:
    double still
    double moving
    double full
    double turning


cdef Py_ssize_t padded(Py_ssize_t atoms) noexcept nogil:
    return (atoms + MOMENT_LANES - 1) // MOMENT_LANES * MOMENT_LANES


cdef Py_ssize_t moments_room(Py_ssize_t atoms, Py_ssize_t thetas) noexcept nogil:
    return padded(atoms) * (4 + thetas) + thetas * (3 + sizeof(Blur) // sizeof(double))


cdef double c_real(const Atoms *law, double theta, double step, double blur, double *weight, Blur *error) noexcept nogil:
    """Returns phi(theta) - 1; writes w e^(theta x) and the constants of the error bound. inf where e^(theta x) overflows."""
    cdef Py_ssize_t j
    cdef double up, w, grown, more, part, gain = 0, size = 0, still = 0, moving = 0, full = 0, turning = 0
    # each of MOMENT_LANES sums has atoms/MOMENT_LANES terms
    cdef double each = blur + UNIT * (12 + law.number / <double> MOMENT_LANES)
    for j in range(law.number):
        up = theta * law.x[j]
        if up > OVER:
            return INFINITY
        w = exp(law.log_w[j])
        if up < 1:
            more = expm1(up)
            grown = w * (1 + more) if up > -0.5 else w * exp(up)
            more *= w
        else:
            grown = exp(up + law.log_w[j])
            more = grown - w
        weight[j] = grown
        gain += more
        size += fabs(more)
        # the exponential of a rounded argument
        part = each - UNIT * law.log_w[j]
        still += part * fabs(more) + 2 * UNIT * fabs(up) * grown
        part = (part + 2 * UNIT * fabs(up)) * grown
        full += 2 * part
        moving += part * step * fabs(law.x[j])
        turning += grown * step * fabs(law.x[j])
    error.still = still + law.number * UNIT * size
    error.moving = moving
    error.full = full
    error.turning = turning
    return gain


cdef inline void c_bounds(double re, double im, double error, double *upper, double *lower) noexcept nogil:
    """Writes bounds of log |1 + re + i im| for an error of at most `error`."""
    cdef double square = (2 * re + re * re) + im * im, size, value
    error += 4 * UNIT * (fabs(re) + re * re + im * im)
    if square > -0.5:
        value = 0.5 * log1p(square)
        size = sqrt(1 + square)
    else:
        size = sqrt((1 + re) * (1 + re) + im * im)
        value = log(size) if size > 0 else -INFINITY
    upper[0] = value + log1p(error / size) + 4 * UNIT * fabs(value) if error < size else log(size + error) + 4 * UNIT
    if lower != NULL:
        lower[0] = value + log1p(-error / size) - 4 * UNIT * fabs(value) if error < size else -INFINITY


cdef void c_log_moments(const Atoms *law, const double *theta, Py_ssize_t thetas, double step, Py_ssize_t nodes, double blur,
                        double *room, double *upper, double *lower) noexcept nogil:
    cdef Py_ssize_t n = padded(law.number), j, t, m, at
    cdef double *re1 = room
    cdef double *im1 = room + n
    cdef double *re = room + 2 * n
    cdef double *im = room + 3 * n
    cdef double *weight = room + 4 * n
    cdef double *sum_re = weight + thetas * n
    cdef double *sum_im = sum_re + thetas
    cdef double *gain = sum_im + thetas
    cdef Blur *error = <Blur *> (gain + thetas)
    cdef double half, s, c
    for j in range(n):
        half = 0.5 * (step * law.x[j]) if j < law.number else 0
        s = sin(half)
        c = cos(half)
        re1[j] = -2 * s * s
        im1[j] = 2 * s * c
        re[j] = im[j] = 0
    for t in range(thetas):
        for j in range(law.number, n):
            weight[t * n + j] = 0
        gain[t] = c_real(law, theta[t], step, blur, weight + t * n, &error[t])
        if gain[t] == INFINITY:
            for m in range((nodes + 1) * thetas):
                upper[m] = INFINITY
                if lower != NULL:
                    lower[m] = -INFINITY
            return
        c_bounds(gain[t], 0, error[t].still, &upper[t * (nodes + 1)],
                 NULL if lower == NULL else &lower[t * (nodes + 1)])
    for m in range(1, nodes + 1):
        moments_step(re1, im1, re, im, weight, n, thetas, sum_re, sum_im)
        for t in range(thetas):
            at = t * (nodes + 1) + m
            c_bounds(gain[t] + sum_re[t], sum_im[t],
                     error[t].still + fmin(m * error[t].moving, error[t].full) + 2 * m * (m + 10) * UNIT * error[t].turning,
                     &upper[at], NULL if lower == NULL else &lower[at])


cdef double c_log_contour(const double *log_phi, double count, double theta, const Contour *contour,
                          const double *log_weight) noexcept nogil:
    cdef Py_ssize_t m
    cdef double square = theta * theta, t, value, top, total = 0, half = 0.5 * contour.smoothing, size
    cdef double first = count * log_phi[0] + (log_weight[0] if log_weight != NULL else 0)
    if not first < INFINITY:
        return INFINITY
    # the terms beyond the last node, with sum 1/m^2 <= 1/nodes, and e^(-half t^2) at most its value at the first omitted node
    t = (contour.nodes + 1) * contour.step
    value = first + half * (square - t * t) + log(2 / (contour.step * contour.step * contour.nodes))
    # the sum is in units of e^top; no term exceeds the one at m = 0 by more than its weight
    top = first + half * square - log(square)
    size = fabs(first) + half * square + fabs(log(square)) + fabs(value)
    total = exp(value - top)
    for m in range(contour.nodes + 1):
        t = m * contour.step
        value = count * log_phi[m] + half * (square - t * t) - log(square + t * t)
        if log_weight != NULL:
            value += log_weight[m]
        total += (1 if m == 0 else 2) * exp(value - top)
    # each exponent has a few roundings of its terms, and a term is at most e^(value - top), value >= top - 745
    return top + log(total) + log(contour.step) - LOG_2PI + UNIT * (800 + 16 * size)


cdef double c_tilt(const Atoms *laws, Py_ssize_t number, double count, double smoothing, double start) noexcept nogil:
    cdef Py_ssize_t i, j
    cdef double top = 0, end, low, high, left, right, at_left, at_right, width = 0.25
    for i in range(number):
        for j in range(laws[i].number):
            top = fmax(top, laws[i].x[j])
    end = log(OVER / top) if top > 0 else INFINITY
    low = fmin(log(start), end - 1)
    at_left = c_objective(laws, number, count, smoothing, low)
    high = low + width
    at_right = c_objective(laws, number, count, smoothing, fmin(high, end))
    # the objective is convex in theta: walk downhill until it rises, then golden sections
    if at_right > at_left:
        while True:
            right = low
            low -= width
            left = c_objective(laws, number, count, smoothing, low)
            if left >= at_left or low < -650:
                break
            at_left = left
            high = right
            width *= 1.5
    else:
        while high < end:
            left = high
            high += width
            right = c_objective(laws, number, count, smoothing, fmin(high, end))
            if right >= at_right:
                break
            at_right = right
            low = left
            width *= 1.5
        high = fmin(high, end)
    left = high - 0.6180339887498949 * (high - low)
    right = low + 0.6180339887498949 * (high - low)
    at_left = c_objective(laws, number, count, smoothing, left)
    at_right = c_objective(laws, number, count, smoothing, right)
    while high - low > 1e-4:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - 0.6180339887498949 * (high - low)
            at_left = c_objective(laws, number, count, smoothing, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + 0.6180339887498949 * (high - low)
            at_right = c_objective(laws, number, count, smoothing, right)
    return exp(0.5 * (low + high))


cdef double c_objective(const Atoms *laws, Py_ssize_t number, double count, double smoothing, double log_theta) noexcept nogil:
    """Returns the maximum over distributions of count log phi(theta) - 2 log theta + smoothing theta^2/2."""
    cdef Py_ssize_t i, j
    cdef double theta = exp(log_theta), up, gain, most = -INFINITY
    for i in range(number):
        gain = 0
        for j in range(laws[i].number):
            up = theta * laws[i].x[j]
            gain += exp(laws[i].log_w[j]) * expm1(up) if up < 30 else exp(up + laws[i].log_w[j])
        most = fmax(most, log1p(fmax(gain, -1 + 1e-16)))
    return count * most - 2 * log_theta + 0.5 * smoothing * theta * theta


# ------------------------------------------------------------------------------------------------------------ for Python


cdef Py_ssize_t c_read(const double[::1] values, const double[::1] log_mass, const Py_ssize_t[::1] starts,
                       Atoms *laws) noexcept nogil:
    """Write the distributions; returns the largest number of atoms."""
    cdef Py_ssize_t i, most = 1
    for i in range(starts.shape[0] - 1):
        laws[i].x = &values[0] + starts[i]
        laws[i].log_w = &log_mass[0] + starts[i]
        laws[i].number = starts[i + 1] - starts[i]
        most = max(most, laws[i].number)
    return most


def log_moments(const double[::1] values, const double[::1] log_mass, const Py_ssize_t[::1] starts, const double[::1] thetas,
                double step, Py_ssize_t nodes, double blur=0.0):
    """Return upper and lower bounds of log abs(E e^(zX)) at z = theta + i m step, m = 0..nodes.

    Parameters
    ----------
    values, log_mass : ndarray
        Values and log probabilities of the atoms of all distributions, one after the other. The remaining mass of each is at 0.
    starts : ndarray
        Index of the first atom of each distribution, and the end.
    thetas : ndarray
        Positive.
    step : float
        Positive.
    nodes : int
        Largest m.
    blur : float
        Bound of the relative error of each probability, beyond the rounding of the exponential function.

    Returns
    -------
    upper, lower : ndarray, shape (distributions, thetas, nodes + 1)
        inf and -inf where theta times a value exceeds 700.
    """
    cdef Py_ssize_t laws = starts.shape[0] - 1, rows = thetas.shape[0], i, most
    cdef double[:, :, ::1] upper = np.empty((laws, rows, nodes + 1)), lower = np.empty((laws, rows, nodes + 1))
    cdef Atoms *atoms = <Atoms *> malloc(max(laws, 1) * sizeof(Atoms))
    cdef double *room = NULL
    if atoms != NULL:
        most = c_read(values, log_mass, starts, atoms)
        room = <double *> malloc(moments_room(most, rows) * sizeof(double))
    if room == NULL:
        free(atoms)
        raise MemoryError
    with nogil:
        for i in range(laws):
            c_log_moments(&atoms[i], &thetas[0], rows, step, nodes, blur, room, &upper[i, 0, 0], &lower[i, 0, 0])
    free(room)
    free(atoms)
    return np.asarray(upper), np.asarray(lower)


def log_contour(const double[:, ::1] log_phi, const double[::1] counts, double theta, double step, double smoothing,
                const double[::1] log_weight=None):
    """Return upper bounds of the logs of contour sums, for every row of `log_phi` and every number of users.

    Parameters
    ----------
    log_phi : ndarray, shape (rows, nodes + 1)
        Upper bounds of log abs(phi(theta + i m step)), m = 0..nodes, or of sums of such logs with exponents. For larger m the value
        at m = 0 must be an upper bound.
    counts : ndarray
        Exponents k by which a row is multiplied.
    theta, step, smoothing : float
        theta, D and eta^2 of the module docstring.
    log_weight : ndarray, optional
        Logs of further factors of the terms m = 0..nodes; 0 by default. For larger m, the product of such a factor and of the
        powers of phi must be at most that at m = 0.

    Returns
    -------
    ndarray, shape (rows, counts)
        log B of the module docstring.
    """
    cdef Py_ssize_t rows = log_phi.shape[0], columns = counts.shape[0], i, j
    cdef double[:, ::1] out = np.empty((rows, columns))
    cdef const double *weight = NULL
    cdef Contour contour
    contour.step, contour.smoothing, contour.nodes = step, smoothing, log_phi.shape[1] - 1
    if log_weight is not None:
        weight = &log_weight[0]
    with nogil:
        for i in range(rows):
            for j in range(columns):
                out[i, j] = c_log_contour(&log_phi[i, 0], counts[j], theta, &contour, weight)
    return np.asarray(out)


def tilt(const double[::1] values, const double[::1] log_mass, const Py_ssize_t[::1] starts, double count, double smoothing,
         double start):
    """Return the theta that nearly minimizes the largest B of the distributions; `c_tilt` has the objective.

    Parameters
    ----------
    values, log_mass, starts : ndarray
        As for log_moments; each distribution has a positive value.
    count, smoothing : float
        The number k of users, and eta^2.
    start : float
        A first value.

    Returns
    -------
    float
    """
    cdef Py_ssize_t laws = starts.shape[0] - 1
    cdef Atoms *atoms = <Atoms *> malloc(max(laws, 1) * sizeof(Atoms))
    if atoms == NULL:
        raise MemoryError
    with nogil:
        c_read(values, log_mass, starts, atoms)
        start = c_tilt(atoms, laws, count, smoothing, start)
    free(atoms)
    return start


def largest(const double[::1] values, const double[::1] log_mass, const Py_ssize_t[::1] starts, const double[::1] counts,
            const double[::1] thetas, double step, double smoothing, Py_ssize_t nodes, double blur=0.0,
            const double[:, ::1] known=None):
    """Return upper bounds of the largest log B over the distributions, for every theta and every number of users.

    Parameters
    ----------
    values, log_mass, starts, thetas, step, nodes, blur
        As for log_moments.
    counts, smoothing
        As for log_contour.
    known : ndarray, shape (thetas, counts), optional
        Values that the result is at least. A distribution is not evaluated where a bound of its B that takes less time is below the
        largest value so far for every theta and count.

    Returns
    -------
    ndarray, shape (thetas, counts)
    """
    cdef Py_ssize_t laws = starts.shape[0] - 1, rows = thetas.shape[0], columns = counts.shape[0], i, j, t, m, place, most
    cdef double value
    cdef bint needed
    cdef double[:, ::1] best = np.full((rows, columns), -INFINITY) if known is None else np.array(known)
    cdef double[:, ::1] real = np.empty((laws, rows))
    cdef double[::1] sums = np.empty(rows)
    cdef Py_ssize_t[::1] order
    cdef Atoms *atoms = <Atoms *> malloc(max(laws, 1) * sizeof(Atoms))
    cdef double *room = NULL
    cdef double *phi
    cdef Blur error
    cdef Contour contour
    contour.step, contour.smoothing, contour.nodes = step, smoothing, nodes
    if atoms != NULL:
        most = c_read(values, log_mass, starts, atoms)
        room = <double *> malloc((moments_room(most, rows) + rows * (nodes + 1)) * sizeof(double))
    if room == NULL:
        free(atoms)
        raise MemoryError
    phi = room + moments_room(most, rows)
    with nogil:
        # the bound with phi(theta) in place of |phi(z_m)|
        for m in range(nodes + 1):
            phi[m] = 0
        for t in range(rows):
            sums[t] = c_log_contour(phi, 1, thetas[t], &contour, NULL)
        for i in range(laws):
            for t in range(rows):
                value = c_real(&atoms[i], thetas[t], step, blur, room, &error)
                if value < INFINITY:
                    c_bounds(value, 0, error.still, &real[i, t], NULL)
                else:
                    real[i, t] = INFINITY
    order = np.argsort(np.negative(np.asarray(real[:, 0])), kind="stable")
    with nogil:
        for place in range(laws):
            i = order[place]
            needed = False
            for t in range(rows):
                for j in range(columns):
                    # the rounding of the product, and of the sum
                    value = counts[j] * real[i, t] + sums[t]
                    if not value + 8 * UNIT * (fabs(value) + fabs(sums[t])) <= best[t, j]:
                        needed = True
            if not needed:
                continue
            c_log_moments(&atoms[i], &thetas[0], rows, step, nodes, blur, room, phi, NULL)
            for t in range(rows):
                for j in range(columns):
                    best[t, j] = fmax(best[t, j], c_log_contour(phi + t * (nodes + 1), counts[j], thetas[t], &contour, NULL))
    free(room)
    free(atoms)
    return np.asarray(best)
