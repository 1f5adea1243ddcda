"""Upper bounds of E S_+ for sums S of independent variables, by Hoelder's inequality (docs/theorems/worst-dataset, Lemma H).

    phi(z) = E e^(zX) = 1 + sum w (e^(zx) - 1),  X = x[j] with probability w[j], else 0;   z_m = theta + i m D, D the step
    B = (D/(2 pi)) sum_m u_m |phi(z_m)|^k,       u_m = exp(eta^2 (theta^2 - m^2 D^2)/2)/(theta^2 + m^2 D^2)
    E (X_1 + ... + X_k)_+ <= the largest B of the distributions of X_1, ..., X_k, for any common theta, D > 0 and eta >= 0.
    The sum is smoothed by a normal variable of variance eta^2

moments.h has the loop over atoms.

Method   phi - 1     is computed as sum w (e^(theta x) - 1) + sum w e^(theta x) (e^(imDx) - 1), so that nothing cancels if z x is
                     small. The powers of e^(iDx) are computed by repeated multiplication (moments.h)
         log|phi|    is computed as log1p(|phi|^2 - 1)/2, or as the logarithm of |phi| if |phi|^2 is below 1/2
         m > nodes   the terms are bounded by |phi(z_m)| <= phi(theta), and the sum of 1/m^2 over m > nodes by 1/nodes
         largest     a simple bound of B has phi(theta) in place of |phi(z_m)| and takes one real sum. Distributions are evaluated
                     in decreasing order of this bound; each theta for which it is below the largest B found so far is skipped.
                     After 4, 12, 28, ... nodes the bound with phi(theta) in place of the later |phi(z_m)| is compared, too
Rounding every log|phi| is increased by a bound of its error: probabilities have the relative error `blur` plus that of the
         exponential function, and e^(imDx) - 1 has the error 2 m (m + 10) UNIT D|x| (moments.h). The error of log|phi| is about
         (blur + 20 UNIT) E|e^(theta X) - 1| + (blur + (20 + 2 m) UNIT) m D E|X| e^(theta X).
         So for k users the error of log B is about sqrt(k) (blur + 20 UNIT). The caller must bound the effect of rounding x

Measured excess of the upper bounds over the exact values (tests/reference/measure_sums.py: python-flint at 300 bits; theta x to 5)
    quantity                                                    trials    peak      rms
    log|phi|, 1 to 40 atoms, masses to e^-40                    8000      6.8e+03   1.3e+02     (a)
    log B, the same, k to 1e6                                   996       3e-11     3.2e-12
    log B, the same, k to 2**53                                 1004      2.1e-06   1.8e-07
    (a) in units of UNIT (E|e^(theta X) - 1| + m D E|X| e^(theta X) + |log|phi||/1000), m = 0, 1, 5, 40; no bound was below
Cost     with 197 nodes: 20 us for 3 distributions of 4 atoms, 0.08 ms for one of 600 atoms, 0.35 ms for twelve theta; `tilt` takes
         as long as 25 theta
Source   Poisson summation and Hoelder's inequality: docs/theorems/worst-dataset, Lemma H
"""

from libc.math cimport INFINITY, cos, exp, expm1, fabs, fmax, fmin, log, log1p, sin, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

import numpy as np

from shufflebounds._core._constants cimport UNIT

cdef extern from "moments.h" nogil:
    const int MOMENT_LANES
    void moments_step(const double *re1, const double *im1, double *re, double *im, const double *weight, Py_ssize_t n,
                      Py_ssize_t rows, double *sum_re, double *sum_im)
    void moments_real(const double *x, const double *log_w, Py_ssize_t n, double theta, double step, double each, double unit,
                      double *weight, double *more, double *sums)
    double moments_gain(const double *x, const double *log_w, const double *weight, Py_ssize_t n, double theta)

cdef double LOG_2PI = 1.8378770664093453
cdef double PI = 3.141592653589793
cdef double OVER = 700.0                          # largest argument of exp
cdef double GOLDEN = 0.6180339887498949
cdef Py_ssize_t FIRST_NODES = 4                   # nodes after which `c_largest` first tries to bound the terms of all others


# The fields are terms of a bound of the error of phi(theta + i m D): `still` + min(m `moving`, `full`) + 2 m (m + 10) UNIT
# `turning`. The rounding of the final logarithm is not included.
cdef struct Blur:
    double still
    double moving
    double full
    double turning


cdef Py_ssize_t padded(Py_ssize_t atoms) noexcept nogil:
    return (atoms + MOMENT_LANES - 1) // MOMENT_LANES * MOMENT_LANES


cdef Py_ssize_t moments_room(Py_ssize_t atoms, Py_ssize_t thetas) noexcept nogil:
    return padded(atoms) * (4 + thetas) + thetas * (3 + sizeof(Blur) // sizeof(double))


cdef double c_real(const Atoms *law, double theta, double step, double blur, double *weight, double *more,
                   Blur *error) noexcept nogil:
    """Returns phi(theta) - 1. Writes w e^(theta x), w (e^(theta x) - 1) and the constants of the error bound.

    The result is inf if e^(theta x) overflows.
    """
    cdef Py_ssize_t j
    cdef double[6] sums
    # each of MOMENT_LANES sums has atoms/MOMENT_LANES terms
    cdef double each = blur + UNIT * (12 + law.number / <double> MOMENT_LANES)
    for j in range(law.number):
        if theta * law.x[j] > OVER:
            return INFINITY
    moments_real(law.x, law.log_w, law.number, theta, step, each, UNIT, weight, more, sums)
    error.still = sums[2] + law.number * UNIT * sums[1]
    error.moving = sums[3]
    error.full = sums[4]
    error.turning = sums[5]
    return sums[0]


cdef inline void c_bounds(double re, double im, double error, double *upper, double *lower) noexcept nogil:
    """Writes bounds of log |1 + re + i im|, where re + i im may have an error of at most `error`."""
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


# The arrays of one distribution in the memory of `moments_room`: c_1, c_m and the tilted masses for each theta (moments.h), the
# sums at the current node, and phi(theta) - 1 with the constants of the error bound. n is the padded number of atoms.
cdef struct Steps:
    Py_ssize_t n
    Py_ssize_t thetas
    double *re1
    double *im1
    double *re
    double *im
    double *weight
    double *sum_re
    double *sum_im
    double *gain
    Blur *error


cdef int c_start(const Atoms *law, const double *theta, Py_ssize_t thetas, double step, Py_ssize_t nodes, double blur, double *room,
                 Steps *steps, double *upper, double *lower) noexcept nogil:
    """Writes the bounds of log|phi| at m = 0; returns False if e^(theta x) overflows, and then writes infinite bounds at all m."""
    cdef Py_ssize_t n = padded(law.number), j, t, m
    cdef double half, s, c
    steps.n, steps.thetas, steps.re1, steps.im1, steps.re, steps.im = n, thetas, room, room + n, room + 2 * n, room + 3 * n
    steps.weight = room + 4 * n
    steps.sum_re = steps.weight + thetas * n
    steps.sum_im = steps.sum_re + thetas
    steps.gain = steps.sum_im + thetas
    steps.error = <Blur *> (steps.gain + thetas)
    for j in range(n):
        half = 0.5 * (step * law.x[j]) if j < law.number else 0
        s = sin(half)
        c = cos(half)
        steps.re1[j] = -2 * s * s
        steps.im1[j] = 2 * s * c
    for t in range(thetas):
        for j in range(law.number, n):
            steps.weight[t * n + j] = 0
        steps.gain[t] = c_real(law, theta[t], step, blur, steps.weight + t * n, steps.re, &steps.error[t])
        if steps.gain[t] == INFINITY:
            for m in range((nodes + 1) * thetas):
                upper[m] = INFINITY
                if lower != NULL:
                    lower[m] = -INFINITY
            return 0
        c_bounds(steps.gain[t], 0, steps.error[t].still, &upper[t * (nodes + 1)],
                 NULL if lower == NULL else &lower[t * (nodes + 1)])
    for j in range(n):
        steps.re[j] = steps.im[j] = 0
    return 1


cdef void c_steps(const Steps *steps, Py_ssize_t first, Py_ssize_t last, Py_ssize_t nodes, double *upper,
                  double *lower) noexcept nogil:
    """Writes the bounds of log|phi| at m = first, ..., last; those at smaller m must have been written before."""
    cdef Py_ssize_t t, m, at
    cdef const Blur *error
    for m in range(first, last + 1):
        moments_step(steps.re1, steps.im1, steps.re, steps.im, steps.weight, steps.n, steps.thetas, steps.sum_re, steps.sum_im)
        for t in range(steps.thetas):
            at = t * (nodes + 1) + m
            error = &steps.error[t]
            c_bounds(steps.gain[t] + steps.sum_re[t], steps.sum_im[t],
                     error.still + fmin(m * error.moving, error.full) + 2 * m * (m + 10) * UNIT * error.turning,
                     &upper[at], NULL if lower == NULL else &lower[at])


cdef void c_moved(const Steps *steps, Py_ssize_t source, Py_ssize_t target) noexcept nogil:
    """Overwrites the numbers of one theta by those of another one."""
    memcpy(steps.weight + target * steps.n, steps.weight + source * steps.n, steps.n * sizeof(double))
    steps.gain[target] = steps.gain[source]
    steps.error[target] = steps.error[source]


cdef void c_log_moments(const Atoms *law, const double *theta, Py_ssize_t thetas, double step, Py_ssize_t nodes, double blur,
                        double *room, double *upper, double *lower) noexcept nogil:
    cdef Steps steps
    if c_start(law, theta, thetas, step, nodes, blur, room, &steps, upper, lower):
        c_steps(&steps, 1, nodes, nodes, upper, lower)


cdef double c_log_contour(const double *log_phi, double count, double theta, const Contour *contour,
                          const double *log_weight) noexcept nogil:
    cdef Py_ssize_t m
    cdef double square = theta * theta, t, value, top, total = 0, half = 0.5 * contour.smoothing, size
    cdef double first = count * log_phi[0] + (log_weight[0] if log_weight != NULL else 0)
    if not first < INFINITY:
        return INFINITY
    # a bound of the terms beyond the last node: the sum of 1/m^2 over these m is at most 1/nodes, and e^(-half t^2) decreases
    t = (contour.nodes + 1) * contour.step
    value = first + half * (square - t * t) + log(2 / (contour.step * contour.step * contour.nodes))
    # The sum is divided by e^top, the size of the term at m = 0. Later terms are then at most 1, apart from their weights.
    top = first + half * square - log(square)
    size = fabs(first) + half * square + fabs(log(square)) + fabs(value)
    total = exp(value - top)
    for m in range(contour.nodes + 1):
        t = m * contour.step
        value = count * log_phi[m] + half * (square - t * t) - log(square + t * t)
        if log_weight != NULL:
            value += log_weight[m]
        total += (1 if m == 0 else 2) * exp(value - top)
    # Each exponent has a few roundings of its terms. Only terms with value >= top - 745 are not 0, which limits the exponents that
    # matter.
    return top + log(total) + log(contour.step) - LOG_2PI + UNIT * (800 + 16 * size)


cdef double c_objective(const Atoms *law, const double *weight, double count, double smoothing, double deviation,
                        double log_theta) noexcept nogil:
    """Returns an approximation of log B up to a constant, which is accurate if the sum is normal.

    The value is count log phi(theta) + smoothing theta^2/2 - log theta + log M(theta deviation), where
    M(x) = 4/(3x + (x^2 + 8)^(1/2)) is close to Mills' ratio.
    `weight` holds the probabilities exp(log_w).
    """
    cdef double theta = exp(log_theta), x = theta * deviation
    cdef double gain = moments_gain(law.x, law.log_w, weight, law.number, theta)
    return count * log1p(fmax(gain, -1 + 1e-16)) - log_theta - log(3 * x + sqrt(x * x + 8)) + 0.5 * smoothing * theta * theta


cdef double c_variance(const Atoms *law, double *weight) noexcept nogil:
    """Returns the variance, and writes the probabilities."""
    cdef Py_ssize_t j
    cdef double w, mean = 0, square = 0
    for j in range(law.number):
        w = weight[j] = exp(law.log_w[j])
        mean += w * law.x[j]
        square += w * law.x[j] * law.x[j]
    return fmax(square - mean * mean, 0)


cdef double c_largest_objective(const Atoms *laws, double **weights, const Py_ssize_t *chosen, Py_ssize_t number, double count,
                                double smoothing, double deviation, double log_theta) noexcept nogil:
    cdef Py_ssize_t i
    cdef double most = -INFINITY
    for i in range(number):
        most = fmax(most, c_objective(&laws[chosen[i]], weights[chosen[i]], count, smoothing, deviation, log_theta))
    return most


cdef double c_least(const Atoms *laws, double **weights, const Py_ssize_t *chosen, Py_ssize_t number, double count,
                    double smoothing, double deviation, double at) noexcept nogil:
    """Returns the log theta that minimizes the largest objective of the chosen distributions. The search starts at `at`."""
    cdef double low = at, high = at, middle = c_largest_objective(laws, weights, chosen, number, count, smoothing, deviation, at)
    cdef double width = 0.25
    cdef double left, right, at_left, at_right
    # the objective is convex in theta, so the bracket is extended until the objective is larger at both ends
    at_left = at_right = middle
    while at_left <= middle and low > -650:
        middle, at = at_left, low
        low -= width
        at_left = c_largest_objective(laws, weights, chosen, number, count, smoothing, deviation, low)
        width *= 1.5
    width = 0.25
    if at == high:
        while at_right <= middle and high < 650:
            middle, low = at_right, fmax(low, high - width)
            high += width
            at_right = c_largest_objective(laws, weights, chosen, number, count, smoothing, deviation, high)
            width *= 1.5
    left = high - GOLDEN * (high - low)
    right = low + GOLDEN * (high - low)
    at_left = c_largest_objective(laws, weights, chosen, number, count, smoothing, deviation, left)
    at_right = c_largest_objective(laws, weights, chosen, number, count, smoothing, deviation, right)
    while high - low > 1e-4:
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = c_largest_objective(laws, weights, chosen, number, count, smoothing, deviation, left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = c_largest_objective(laws, weights, chosen, number, count, smoothing, deviation, right)
    return 0.5 * (low + high)


cdef double c_tilt(const Atoms *laws, Py_ssize_t number, double count, double smoothing, double start,
                   Py_ssize_t *chosen, Py_ssize_t *number_chosen) noexcept nogil:
    cdef Py_ssize_t used = 0, i, best, size = 0
    cdef double at = log(start), value, most, largest = -INFINITY, deviation = 0
    cdef double **weights = <double **> malloc(max(number, 1) * sizeof(double *))
    cdef double *room
    for i in range(number):
        size += laws[i].number
    room = <double *> malloc(max(size, 1) * sizeof(double))
    if weights == NULL or room == NULL:
        free(weights)
        free(room)
        number_chosen[0] = 0
        # every theta gives a valid bound
        return start
    size = 0
    for i in range(number):
        weights[i] = room + size
        size += laws[i].number
        deviation = fmax(deviation, c_variance(&laws[i], weights[i]))
    deviation = sqrt(count * deviation + smoothing)
    # find, one by one, the distributions whose objective may be the largest near the minimum
    while used < 8:
        best = 0
        most = -INFINITY
        for i in range(number):
            value = c_objective(&laws[i], weights[i], count, smoothing, deviation, at)
            if value > most:
                most = value
                best = i
        if most <= largest + 1e-9 * (1 + fabs(largest)):
            break
        chosen[used] = best
        used += 1
        at = c_least(laws, weights, chosen, used, count, smoothing, deviation, at)
        largest = c_largest_objective(laws, weights, chosen, used, count, smoothing, deviation, at)
    free(weights)
    free(room)
    number_chosen[0] = used
    return exp(at)


cdef inline bint c_open(const double *best, Py_ssize_t columns) noexcept nogil:
    """Returns whether one of the bounds for a value of theta is finite."""
    cdef Py_ssize_t j
    for j in range(columns):
        if best[j] < INFINITY:
            return True
    return False


cdef int c_largest(const Atoms *laws, Py_ssize_t number, const double *counts, Py_ssize_t columns, const double *thetas,
                   Py_ssize_t rows, const Contour *contour, double blur, double enough, double *best) noexcept nogil:
    cdef Py_ssize_t i, j, t, _, most = 1
    cdef int raised = 0
    cdef double value
    cdef Py_ssize_t k, used, last
    cdef bint above
    cdef Blur error
    cdef Steps steps
    cdef Contour part
    cdef Py_ssize_t size
    cdef double *room
    cdef double *phi
    cdef double *sums
    cdef double *real
    cdef double *order
    cdef double *at
    cdef Py_ssize_t *chosen
    for i in range(number):
        most = max(most, laws[i].number)
    size = moments_room(most, rows) + rows * (contour.nodes + 4) + number * (rows + 1)
    room = <double *> malloc(size * sizeof(double))
    if room == NULL:
        return -1
    phi = room + moments_room(most, rows)
    sums = phi + rows * (contour.nodes + 1)
    real = sums + rows
    order = real + number * rows
    at = order + number
    chosen = <Py_ssize_t *> (at + rows)
    # the bound with phi(theta) in place of |phi(z_m)|
    for i in range(contour.nodes + 1):
        phi[i] = 0
    for t in range(rows):
        if c_open(best + t * columns, columns):
            sums[t] = c_log_contour(phi, 1, thetas[t], contour, NULL)
    for i in range(number):
        for t in range(rows):
            if not c_open(best + t * columns, columns):
                continue
            value = c_real(&laws[i], thetas[t], contour.step, blur, room, room + padded(most), &error)
            if value < INFINITY:
                c_bounds(value, 0, error.still, &real[i * rows + t], NULL)
            else:
                real[i * rows + t] = INFINITY
        order[i] = real[i * rows] if c_open(best, columns) else 0
    for _ in range(number):
        # process the distributions in decreasing order of phi at the first theta
        i = 0
        for j in range(1, number):
            if order[j] > order[i]:
                i = j
        order[i] = -INFINITY
        used = 0
        for t in range(rows):
            if not c_open(best + t * columns, columns):
                continue
            for j in range(columns):
                # 8 UNIT covers the rounding of the product and of the sum
                value = counts[j] * real[i * rows + t] + sums[t]
                if not value + 8 * UNIT * (fabs(value) + fabs(sums[t])) <= best[t * columns + j]:
                    chosen[used] = t
                    at[used] = thetas[t]
                    used += 1
                    break
        if used == 0:
            if rows == 1:
                # phi(theta) of the remaining distributions is smaller, and so are their bounds
                break
            continue
        part = contour[0]
        part.nodes = 0 if c_start(&laws[i], at, used, contour.step, contour.nodes, blur, room, &steps, phi, NULL) else contour.nodes
        while used > 0 and part.nodes < contour.nodes:
            last = min(2 * part.nodes + FIRST_NODES, contour.nodes)
            c_steps(&steps, part.nodes + 1, last, contour.nodes, phi, NULL)
            part.nodes = last
            k = 0
            while k < used:
                # the first nodes decide most cases; the terms after them are bounded like the terms after the last node
                above = False
                for j in range(columns):
                    value = c_log_contour(phi + k * (contour.nodes + 1), counts[j], at[k], &part, NULL)
                    above = above or not value <= best[chosen[k] * columns + j]
                if above:
                    k += 1
                    continue
                # this theta needs no more nodes, so the last theta of the list replaces it
                used -= 1
                c_moved(&steps, used, k)
                memcpy(phi + k * (contour.nodes + 1), phi + used * (contour.nodes + 1), (last + 1) * sizeof(double))
                chosen[k] = chosen[used]
                at[k] = at[used]
            steps.thetas = used
        for k in range(used):
            t = chosen[k]
            for j in range(columns):
                value = c_log_contour(phi + k * (contour.nodes + 1), counts[j], at[k], contour, NULL)
                if value > best[t * columns + j]:
                    best[t * columns + j] = value
                    raised = 1
        if best[0] > enough:
            break
    free(room)
    return raised


# ------------------------------------------------------------------------------------------------------------ for Python


cdef Py_ssize_t c_read(const double[::1] values, const double[::1] log_mass, const Py_ssize_t[::1] starts,
                       Atoms *laws) noexcept nogil:
    """Write the distributions to `laws`; returns the largest number of atoms of one."""
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
        Values and log probabilities of the atoms of all distributions, one distribution after the other. The remaining mass of each
        distribution is at 0.
    starts : ndarray
        Index of the first atom of each distribution, and the end.
    thetas : ndarray
        Values of theta, positive.
    step : float
        The step D, positive.
    nodes : int
        Largest m.
    blur : float
        Bound of the relative error of each probability, beyond the rounding of the exponential function.

    Returns
    -------
    upper, lower : ndarray, shape (distributions, thetas, nodes + 1)
        The bounds; inf and -inf where theta times a value exceeds 700.
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
    """Return upper bounds of the logs of contour sums B, for every row of `log_phi` and every number of users.

    Parameters
    ----------
    log_phi : ndarray, shape (rows, nodes + 1)
        Upper bounds of log abs(phi(theta + i m step)), m = 0..nodes, or of weighted sums of such logs. The value at m = 0 must be
        an upper bound for every m > nodes.
    counts : ndarray
        Exponents k by which a row is multiplied.
    theta, step, smoothing : float
        theta, D and eta^2 of the module docstring.
    log_weight : ndarray, optional
        Logs of further factors of the terms m = 0..nodes; 0 by default. For every m > nodes, the product of this factor and of the
        powers of phi must be at most the product for m = 0.

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
    """Return the theta that nearly minimizes the largest contour sum B of the distributions; `c_tilt` has the objective.

    Parameters
    ----------
    values, log_mass, starts : ndarray
        As for log_moments; each distribution must have a positive value.
    count, smoothing : float
        The number k of users, and eta^2.
    start : float
        The theta at which the search starts.

    Returns
    -------
    (float, list of int)
        theta, and the indices of the distributions that attain the maximum of the objective near theta.
    """
    cdef Py_ssize_t laws = starts.shape[0] - 1, used = 0, i
    cdef Py_ssize_t[8] chosen
    cdef Atoms *atoms = <Atoms *> malloc(max(laws, 1) * sizeof(Atoms))
    if atoms == NULL:
        raise MemoryError
    with nogil:
        c_read(values, log_mass, starts, atoms)
        start = c_tilt(atoms, laws, count, smoothing, start, chosen, &used)
    free(atoms)
    return start, [chosen[i] for i in range(used)]


def largest(const double[::1] values, const double[::1] log_mass, const Py_ssize_t[::1] starts, const double[::1] counts,
            const double[::1] thetas, double step, double smoothing, Py_ssize_t nodes, double blur=0.0,
            const double[:, ::1] reached=None):
    """Return upper bounds of the largest log B over the distributions, for every theta and every number of users.

    Parameters
    ----------
    values, log_mass, starts, thetas, step, nodes, blur
        As for log_moments.
    counts, smoothing
        As for log_contour.
    reached : ndarray, shape (thetas, counts), optional
        Results are at least these numbers. A distribution is not evaluated if, for every theta and count, a simpler bound of its B
        is below the largest value so far.

    Returns
    -------
    ndarray, shape (thetas, counts)
    """
    cdef Py_ssize_t laws = starts.shape[0] - 1
    cdef int done = -1
    cdef double[:, ::1] best = np.full((thetas.shape[0], counts.shape[0]), -INFINITY) if reached is None else np.array(reached)
    cdef Atoms *atoms = <Atoms *> malloc(max(laws, 1) * sizeof(Atoms))
    cdef Contour contour
    contour.step, contour.smoothing, contour.nodes = step, smoothing, nodes
    if atoms != NULL:
        with nogil:
            c_read(values, log_mass, starts, atoms)
            done = c_largest(atoms, laws, &counts[0], counts.shape[0], &thetas[0], thetas.shape[0], &contour, blur, INFINITY,
                             &best[0, 0])
        free(atoms)
    if done < 0:
        raise MemoryError
    return np.asarray(best)


def light_sums(const double[::1] values, const double[::1] log_mass, const Py_ssize_t[::1] starts, const double[::1] counts,
               double blur, double smoothing, double spread, Py_ssize_t nodes, double limit):
    """Return upper bounds of the log of the largest E S_+ for each number of users, with a nearly optimal theta.

    Parameters
    ----------
    values, log_mass, starts, counts, nodes, blur
        As for largest.
    smoothing : float
        eta^2, as a fraction of the largest variance of a sum of counts[0] terms.
    spread : float
        2 pi/step, in units of the standard deviation of this sum.
    limit : float
        Largest permitted product of theta and a value.

    Returns
    -------
    (ndarray or None, float)
        The bounds and theta. If a value exceeds limit/theta, the bounds are None.
    """
    cdef Py_ssize_t laws = starts.shape[0] - 1, columns = counts.shape[0], i, j, most
    cdef int done = -1
    cdef bint heavy = False
    cdef double top = -INFINITY, variance = 0, gain = 0, w, x, mean, square, part, theta = 0
    cdef Py_ssize_t[8] chosen
    cdef double[:, ::1] best = np.full((1, columns), -INFINITY)
    cdef double[::1] out = np.full(columns, -INFINITY), thetas = np.zeros(1)
    cdef Atoms *atoms = <Atoms *> malloc(max(laws, 1) * sizeof(Atoms))
    cdef Contour contour
    if atoms == NULL:
        raise MemoryError
    with nogil:
        most = c_read(values, log_mass, starts, atoms)
        for i in range(laws):
            mean = square = part = 0
            for j in range(atoms[i].number):
                w = exp(atoms[i].log_w[j])
                x = atoms[i].x[j]
                mean += w * x
                square += w * x * x
                part += w * fmax(x, 0)
                top = fmax(top, x)
            variance = fmax(variance, square - mean * mean)
            gain = fmax(gain, part)
        # n E X_+ bounds E S_+; its terms have a few roundings each
        gain *= 1 + blur + (most + 1500) * UNIT
        if top <= 0 or gain <= 0:
            done = 0
        elif not variance > 0:
            for j in range(columns):
                out[j] = log(counts[j] * gain) + 8 * UNIT
            done = 0
        else:
            contour.smoothing = smoothing * counts[0] * variance
            contour.step = 2 * PI / (spread * sqrt(counts[0] * variance))
            contour.nodes = nodes
            thetas[0] = theta = c_tilt(atoms, laws, counts[0], contour.smoothing, 4 / sqrt(counts[0] * variance), chosen, &i)
            heavy, done = theta * top > limit, 0
            if not heavy:
                done = c_largest(atoms, laws, &counts[0], columns, &thetas[0], 1, &contour, blur, INFINITY, &best[0, 0])
                for j in range(columns):
                    w = log(counts[j] * gain)
                    out[j] = fmin(best[0, j], w + 8 * UNIT * (1 + fabs(w)))
    free(atoms)
    if done < 0:
        raise MemoryError
    return (None if heavy else np.asarray(out)), theta


def excess_values(const double[::1] log_a, const double[::1] log_b, double eps):
    """Return a - e^eps b from the logarithms of a and b; its relative error is that of the difference log a - log b - eps.

    Returns
    -------
    ndarray
        a - e^eps b, but 0 where both logarithms are -inf, and -1e140 in place of smaller numbers.
    """
    cdef Py_ssize_t i
    cdef double loss
    cdef double[::1] out = np.empty(log_a.shape[0])
    with nogil:
        for i in range(log_a.shape[0]):
            loss = (log_a[i] - log_b[i] if log_a[i] != log_b[i] else 0) - eps
            if log_a[i] == -INFINITY and log_b[i] == -INFINITY:
                out[i] = 0
            elif loss > 0:
                # the larger one of the two terms is factored out, so that an exponential overflows only if the result does
                out[i] = exp(log_a[i]) * -expm1(-loss)
            else:
                # values below -1e140 are replaced by -1e140, so that squares do not overflow; a larger value keeps an upper bound
                # valid
                out[i] = fmax(exp(log_b[i] + eps) * expm1(loss), -1e140)
    return np.asarray(out)
