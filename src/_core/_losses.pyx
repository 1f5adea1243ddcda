"""Privacy losses on a grid: the hockey-stick divergence of their distribution, and outcomes split or merged onto grid points.

Definition. An outcome of mass p under P and loss l has mass p e^-l under Q. Above eps its contribution to the hockey-stick
divergence is p (1 - e^(eps - l)). A distribution of losses is a list of (log p, l), l increasing.
Method
    law_hockey_stick     the hockey-stick divergence H at each loss of the distribution, in decreasing order. If e' is the next
                    loss above e, H(e) = H(e') + (e^e' - e^e) Q(loss >= e'). This is a sum of positive terms, with a small relative
                    error even in the extreme tail. The sum is compensated, with an adaptive integer exponent.
    tilted_excess, read_excess    E phi(S - K), phi(x) = (1 - e^(-c x))+/c, for a tilted distribution of S on a grid, at its
                    points and at any K. The discount c = 1 gives the hockey-stick divergence, c = 0 the stop-loss transform
                    E (S - K)+. An error of a tilted mass at distance z above K has the weight phi(z) e^(-theta z). The supremum
                    of these weights has a closed form, and their sum over the grid is bounded by an integral.
    tilted_moments  the log moment generating function of numbers on a grid and their tilted mean and variance, in vector code
    multiplied      powers of spectra by repeated squaring, in blocks that stay in the processor's cache. A block whose product is
                    negligible takes one pass; for many releases most blocks are negligible
    split           an outcome of loss g < l < g + h becomes two, of losses g and g + h, with the same total masses under P and
                    Q. The divergence does not decrease, since post-processing undoes the split. The variance grows by
                    (l-g)(g+h-l).
    merge           parts of outcomes with losses l near a grid point g and masses p balance if sum p (1 - e^(g - l)) = 0. Together
                    they then have the masses of one outcome of loss g under P and Q, and are merged into it, a randomized
                    post-processing. The part of the last outcome solves the equation, whose terms are computed by expm1. What is
                    left of an outcome goes to the next point. If outcomes are far apart, one that is closer to the grid point below
                    is balanced there by a part of the mass at a still lower point. This changes the divergence less than moving it
                    to the point above. Outcomes at the upper end that cannot be balanced are rounded down. The lowest loss is
                    rounded down, too, if it is slightly above a grid point.
    balanced        for numbers in cells between grid points: at each point, a part of the mass of the cell below and a part of that
                    of the cell above are merged. The results are the moments (mass times distance from the point) of both parts,
                    which are equal, so that the mean of the merged mass is the point
Error     of law_hockey_stick, in units of 2.2e-16 max(1, |log|), against mpmath at 50 digits, masses e^-60 .. 1:
          2.3e3 losses, peak 2.3, rms 0.50
          merge: the masses merged at a point balance up to rounding errors, which change the loss by less than 1e-13
Cost      law_hockey_stick, split and merge: 140 ns for each outcome (merge: 11 ns if many outcomes share a point). tilted_excess:
          3 ns for each point. read_excess: 60 ns for each level. multiplied, for a tenth power: 10 ns for each frequency, 1 ns
          for a negligible one. tilted_moments: 1.3 to 1.8 ns for each number with AVX-512
Source    the split is the connect-the-dots method of Doroshenko et al. 2022, section 4; the merge is new here
"""

from libc.math cimport INFINITY, ceil, exp, expm1, fabs, floor, fmax, fmin, log, log1p, pow, sqrt
from libc.stdint cimport int64_t, uint8_t

import numpy as np

cdef extern from *:
    """
    #define SEARCHED 64                     /* number of lower grid points searched for mass that balances an outcome */
    #define ROUNDED 0.015625                /* fraction of a step by which the lowest loss may be rounded down */
    #define TIED 8.9e-16                    /* relative rounding error of a grid point, 4 ulp */
    #define FAINTEST 60.0                   /* weights below e^-60 of the largest have one error bound together */
    #define NAPIER 2.718281828459045
    #define ULP 2.220446049250313e-16
    #define MULTIPLIED 256                  /* frequencies multiplied at a time: the block's arrays take 14 kB */
    #define FAINT 8.75651076269652e-27      /* e^-60 = e^-15 e^-NEGLIGIBLE: smaller products are dropped and added to the error */
    """
    const int SEARCHED
    const double ROUNDED
    const double TIED
    const double FAINTEST
    const double NAPIER
    const double ULP
    const int MULTIPLIED
    const double FAINT

from shufflebounds._core._special cimport c_log_add_exp

cdef extern from "arithmetic.h" nogil:
    Py_ssize_t whole(double x, Py_ssize_t low, Py_ssize_t high)
    Py_ssize_t slot(Py_ssize_t i, Py_ssize_t n)

cdef extern from "tilting.h" nogil:
    void tilting_moments(const double *logs, const double *place, Py_ssize_t n, double rate, double *weight, double *out)
    double tilting_largest(const double *z, Py_ssize_t n)


# A sum of exponentials with increasing exponents, stored as (total + rest) e^top. It is compensated, and rescaled only by whole
# powers of e.
cdef struct Rising:
    double top
    double total
    double rest


cdef inline void add_exp(Rising *sum, double v) noexcept nogil:
    cdef double term, old
    if v > sum.top + 1 or sum.total == 0:
        term = exp(sum.top - ceil(v)) if sum.total > 0 else 0
        sum.total, sum.rest, sum.top = sum.total * term, sum.rest * term, ceil(v)
    term = exp(v - sum.top)
    old, sum.total = sum.total, sum.total + term
    sum.rest += (old - sum.total) + term if old >= term else (term - sum.total) + old


cdef inline double log_of(const Rising *sum) noexcept nogil:
    return sum.top + log(sum.total + sum.rest) if sum.total > 0 else -INFINITY


cdef void c_law_hockey_stick(const double *loss, const double *log_p, Py_ssize_t n, double log_rest, double *out) noexcept nogil:
    """Write log H at every loss (H in the header).

    `log_rest` is the log mass of infinite loss; the losses increase, without NaN.
    """
    # `hockey_stick` is H at the current loss, and `other` is the mass under Q of the losses above it
    cdef Rising hockey_stick, other
    cdef Py_ssize_t i
    hockey_stick.top = other.top = -INFINITY
    hockey_stick.total = hockey_stick.rest = other.total = other.rest = 0
    if log_rest > -INFINITY:
        hockey_stick.top, hockey_stick.total = ceil(log_rest), exp(log_rest - ceil(log_rest))
    for i in range(n - 1, -1, -1):
        if i < n - 1 and other.total > 0:
            add_exp(&hockey_stick, log_of(&other) + loss[i + 1] + log(-expm1(-(loss[i + 1] - loss[i]))))
        out[i] = log_of(&hockey_stick)
        if log_p[i] - loss[i] > -INFINITY:
            add_exp(&other, log_p[i] - loss[i])


cdef inline void add_mass(double *out, Py_ssize_t at, double v) noexcept nogil:
    out[at] = c_log_add_exp(out[at], v)


cdef void c_merge(
    const double *log_p, const double *loss, Py_ssize_t n, double anchor, double step, Py_ssize_t first, Py_ssize_t size,
    double *out
) noexcept nogil:
    """Merge outcomes into the points anchor + step k for k = first..first + size - 1, and add their log masses to `out`.

    The caller has checked: the losses increase, none is NaN, and every loss lies between the first and the last point. On entry
    `out` is -inf.
    """
    cdef Py_ssize_t i = 0, j, t, k = first, last, lowest
    cdef double rest = 1, g, balance, mass, c, f, ref, own, left, below
    while i < n and log_p[i] == -INFINITY:
        i += 1
    lowest = i
    while i < n:
        t = whole(ceil((loss[i] - anchor) / step), first - 1, first + size)
        k = t if t > k else k
        g = anchor + step * k
        if g < loss[i]:
            # the rounded quotient gave a grid point below the loss
            k += 1
            g = anchor + step * k
        ref = log_p[i] + log(rest)
        if i == lowest and rest == 1 and k - 1 >= first and loss[i] - (g - step) < ROUNDED * step:
            # The lowest outcome is slightly above the grid point g - step, and no lower mass could balance it there. Rounding its
            # loss down to g - step changes the divergence less than merging it into g, almost a whole step above.
            out[slot(k - 1 - first, size)] = ref
            i += 1
            continue
        # The loss of this outcome is closer to the grid point g - step than to g, and the loss of the next outcome is at least g.
        # So the outcome is merged at g - step, together with as much mass from a lower grid point as makes the balance at g - step
        # zero.
        if k - 1 >= first and loss[i] - (g - step) < 0.5 * step and (i + 1 == n or loss[i + 1] >= g):
            below = anchor + step * (k - 1)
            c = -expm1(below - loss[i])
            last = -1
            for t in range(k - 2 - first, max(k - 2 - first - SEARCHED, -1), -1):
                f = out[t] - ref
                if f > -700 and 2 * c <= exp(f if f < 700 else 700) * expm1(below - (anchor + step * (first + t))):
                    last = t
                    break
            if last >= 0:
                left = out[last]
                f = c * exp(ref - left) / expm1(below - (anchor + step * (first + last)))
                out[last] = left + log1p(-f)
                add_mass(out, slot(k - 1 - first, size), c_log_add_exp(ref, left + log(f)) if f > 0 else ref)
                i += 1
                rest = 1
                continue
        j = i
        balance = mass = 0
        # all masses in the balance are relative to e^ref
        own = ref
        for t in range(i + 1, n):
            if not loss[t] < g + 0.5 * step:
                break
            ref = log_p[t] if log_p[t] > ref else ref
        own = exp(own - ref)
        while j < n and loss[j] < g + 0.5 * step:
            c = exp(log_p[j] - ref) if j > i else own
            balance -= c * expm1(g - loss[j])
            mass += c
            j += 1
        left = 1
        if balance < 0:
            while j < n and balance < 0:
                # If the balance needs less than the whole mass of an outcome, only a share of the outcome is merged at this point.
                f = exp(fmin(log_p[j] - ref, 700))
                c = -f * expm1(g - loss[j])
                if balance + c <= 0:
                    balance += c
                    mass += f
                    j += 1
                else:
                    mass += f * (-balance / c)
                    left = 1 + balance / c
                    balance = 0
            if balance < 0:
                for t in range(i, n):
                    k = whole(floor((loss[t] - anchor) / step + 0.5), first - 1, first + size)
                    # a loss that is a grid point up to rounding is not moved to another one
                    if anchor + step * k > loss[t] + TIED * fabs(loss[t]):
                        k -= 1
                    k = k if k > first else first
                    c = log_p[t] + (log(rest) if t == i else 0)
                    add_mass(out, slot(k - first, size), c)
                return
        elif balance > 0:
            while j > i:
                f = exp(log_p[j - 1] - ref) if j - 1 > i else own
                c = -f * expm1(g - loss[j - 1])
                if not (c > 0 and balance > 0):
                    break
                j -= 1
                if c <= balance:
                    balance -= c
                    left = 1
                else:
                    left = balance / c
                    balance = 0
            mass = 0
            for t in range(i, j):
                mass += exp(log_p[t] - ref) if t > i else own
            if left < 1:
                mass += exp(log_p[j] - ref) * (1 - left)
        add_mass(out, slot(k - first, size), ref + log(mass))
        i = j
        rest = left
        if rest <= 0:
            i += 1
            rest = 1
        k += 1


# A grid of tilted masses, of which the points first .. first + stored - 1 are kept. `error` bounds the error of each mass, and
# `outside` the mass outside of the grid, which the transform wraps into the grid.
cdef struct Tilted:
    double origin, step, theta, discount, error, outside
    Py_ssize_t first, stored, size


cdef inline double discounted(double x, double discount) noexcept nogil:
    return x if discount == 0 else -expm1(-discount * x) / discount


cdef void c_multiplied(double complex *spectra, Py_ssize_t number, Py_ssize_t n, const int64_t *times, double stage, double *sums) \
        noexcept nogil:
    """Replace the first one of `number` spectra of n values z by the product of their powers z**times, and add to the three `sums`.

    `stage` is a bound of the error of a value z. A frequency at which b = product of (|z| + stage)**times is at most FAINT is set
    to 0. The first sum bounds the errors of the products at the other frequencies, the second is the sum of b over these, and the
    third is the sum of b over the frequencies that are set to 0. The product is convex and increases with every |z|, so it changes
    by at most `stage` times its derivative at the larger end.
    """
    cdef double real[MULTIPLIED]
    cdef double imaginary[MULTIPLIED]
    cdef double size[MULTIPLIED]
    cdef double product[2][MULTIPLIED]
    cdef double bound[MULTIPLIED]
    cdef double growth[MULTIPLIED]
    cdef Py_ssize_t first = 0, i, j, m
    cdef double x, y
    cdef double complex *row
    cdef int64_t left
    while first < n:
        m = min(<Py_ssize_t> MULTIPLIED, n - first)
        # if the product of the largest absolute values of a block is this small, the whole block is set to 0
        x = 1
        for i in range(number):
            x *= pow(sqrt(tilting_largest(<double *> (spectra + i * n + first), m)) + stage, <double> times[i])
        if x <= FAINT * FAINT:
            sums[2] += m * x * (1 + 1e-9)
            for j in range(m):
                spectra[first + j] = 0
            first += m
            continue
        for j in range(m):
            product[0][j] = bound[j] = 1
            product[1][j] = growth[j] = 0
        for i in range(number):
            row = spectra + i * n + first
            for j in range(m):
                x, y = row[j].real, row[j].imag
                real[j], imaginary[j], size[j] = x, y, sqrt(x * x + y * y) + stage
                growth[j] += times[i] * stage / size[j]
            left = times[i]
            while True:
                if left & 1:
                    for j in range(m):
                        x, y = product[0][j], product[1][j]
                        product[0][j] = x * real[j] - y * imaginary[j]
                        product[1][j] = x * imaginary[j] + y * real[j]
                        bound[j] *= size[j]
                left >>= 1
                if not left:
                    break
                for j in range(m):
                    x, y = real[j], imaginary[j]
                    real[j] = x * x - y * y
                    imaginary[j] = 2 * x * y
                    size[j] *= size[j]
        for j in range(m):
            if bound[j] > FAINT:
                sums[0] += bound[j] * fmin(growth[j], 1.0)
                sums[1] += bound[j]
                spectra[first + j] = product[0][j] + 1j * product[1][j]
            else:
                sums[2] += bound[j]
                spectra[first + j] = 0
        first += m


cdef void c_tilted_excess(const double *g, Py_ssize_t n, Py_ssize_t turn, double theta, double step, double discount,
                          Py_ssize_t first, Py_ssize_t stop, double *tail, double *excess) noexcept nogil:
    """Write tilted tails and discounted excesses at the points first..stop - 1 of n equally spaced points; point 0 is g[turn].

    With g(k) = P(k) e^(theta l_k):  tail[k] = sum_(j >= k) P(j) e^((theta + discount) l_k - discount l_j),
    excess[k] = e^(theta l_k) E phi(S - l_k), phi as in the header. The caller has checked: theta, discount >= 0, step > 0,
    0 <= turn < n, 0 <= first <= stop <= n.
    """
    cdef double fade = exp(-theta * step), steeper = exp(-(theta + discount) * step), part = discounted(step, discount)
    cdef double w = 0, d = 0
    cdef Py_ssize_t i
    for i in range(n - 1, first - 1, -1):
        d = fade * (d + part * w)
        w = g[i + turn if i < n - turn else i + turn - n] + steeper * w
        if i < stop:
            tail[i - first], excess[i - first] = w, d


cdef void c_read_excess(const Tilted *grid, const double *tail, const double *excess, const double *level, Py_ssize_t m,
                        bint upper, double *log_value, double *slope, double *share) noexcept nogil:
    """Write for each of m levels K a bound, a slope with the sign changed, and the fraction of the bound that is rounding error.

    The bound is one of log(e^(theta K) E phi(S - K)), and the slope is that of log E phi(S - K) as a function of K.

    The caller has checked: step > 0; theta > 0 or discount > 0; `tail` and `excess` hold the values at the points grid.first ..
    grid.first + grid.stored - 1; every level lies between these points or beyond the end of the whole grid.
    """
    cdef double theta = grid.theta, step = grid.step, discount = grid.discount
    cdef double farthest = FAINTEST / theta if theta > 0 else INFINITY
    cdef double x, fade, part, w, d, total, error, largest, shares, reached, rest, supremum
    cdef Py_ssize_t i, place, left, size = grid.size
    # The supremum of phi(z) e^(-theta z) over z > 0, at e^(-discount z) = theta/(theta + discount).
    if theta == 0:
        supremum = 1 / discount
    elif discount == 0:
        supremum = 1 / (NAPIER * theta)
    else:
        supremum = exp(theta / discount * log1p(-discount / (discount + theta))) / (discount + theta)
    for i in range(m):
        place = whole(fmin(fmax(floor((level[i] - grid.origin) / step) + 1, 0.0), <double> size), 0, size)
        x = grid.origin + step * place - level[i]
        if x <= 0 and place < size:
            # The quotient was rounded up.
            place, x = place + 1, x + step
        if place >= size:
            # Beyond the last point the difference x may be dominated by rounding, so it is limited to one step.
            x = fmin(fmax(x, 0.0), step)
        w = d = 0
        # Beyond the grid only a bound of the mass is known.
        if place < size:
            w, d = tail[slot(place - grid.first, grid.stored)], excess[slot(place - grid.first, grid.stored)]
        left = max(size - place, 0)
        fade, part = exp(-theta * x), discounted(x, discount)
        total = fade * (d + part * w)
        # The weight of a mass on the grid is at most phi at the distance from K to the last point.
        largest = fmin(supremum, discounted(step * max(left, 1), discount) * (1 + 4 * ULP))
        # `shares` bounds the sum of the weights of all points by an integral.
        shares = largest * left
        if theta > 0:
            shares = fmin(shares, largest + 1 / (step * theta * (discount + theta)))
        reached = left if theta == 0 else fmin(<double> left, FAINTEST / (theta * step))
        error = grid.error * shares + ULP * (80 + 4 * reached) * (total + 2 * grid.error * shares)
        share[i] = error / total if total > 0 else 1.0
        slope[i] = fade * (1 - discount * part) * w
        if upper:
            # Weights below e^-60 of the largest have a separate error term.
            rest = 4 * ULP * size * exp(-FAINTEST) * fmin(farthest, 1 / discount) if reached < left else 0
            total += error + grid.outside * supremum + rest
        else:
            total -= error + grid.outside * largest
        log_value[i] = log(total) if total > 0 else -INFINITY
        slope[i] = fmax(0.0, slope[i] / total) if total > 0 else 0


def law_hockey_stick(const double[::1] loss not None, const double[::1] log_p not None, double log_rest):
    """Return the log of the hockey-stick divergence at each of the losses; log_rest is the log mass of infinite loss.

    The caller has checked: loss increases, no NaN.
    """
    cdef Py_ssize_t n = loss.shape[0]
    out = np.empty(n)
    cdef double[::1] o = out
    with nogil:
        if n:
            c_law_hockey_stick(&loss[0], &log_p[0], n, log_rest, &o[0])
    return out


def split(const double[::1] log_p not None, const double[::1] loss not None, double anchor, double step, Py_ssize_t first,
          Py_ssize_t size):
    """Return log masses at the points anchor + step k, first <= k < first + size.

    The mass of a loss between two neighbouring points is divided between these points so that the masses under P and under Q stay
    the same. The caller has checked: every loss lies between the first and the last point, and no loss is NaN.
    """
    cdef Py_ssize_t i, k
    cdef double over, under
    out = np.full(size, -np.inf)
    cdef double[::1] o = out
    with nogil:
        for i in range(log_p.shape[0]):
            k = whole(floor((loss[i] - anchor) / step), first - 1, first + size)
            k = min(max(k, first), first + size - 2) if size > 1 else first
            over = loss[i] - (anchor + step * k)
            under = step - over
            k -= first
            if over <= 0 or size == 1:
                o[k] = c_log_add_exp(o[k], log_p[i])
            elif under <= 0:
                o[k + 1] = c_log_add_exp(o[k + 1], log_p[i])
            else:
                o[k] = c_log_add_exp(o[k], log_p[i] - over + log(expm1(-under) / expm1(-step)))
                o[k + 1] = c_log_add_exp(o[k + 1], log_p[i] + log(expm1(-over) / expm1(-step)))
    return out


def merge(const double[::1] log_p not None, const double[::1] loss not None, double anchor, double step, Py_ssize_t first,
          Py_ssize_t size):
    """Return the log masses that c_merge computes at the points anchor + step k, first <= k < first + size.

    The caller has checked: the losses increase, none is NaN, and every loss lies between the first and the last point.
    """
    out = np.full(size + 1, -np.inf)
    cdef double[::1] o = out
    with nogil:
        if log_p.shape[0]:
            c_merge(&log_p[0], &loss[0], log_p.shape[0], anchor, step, first, size + 1, &o[0])
    return out[:size]


def multiplied(double complex[:, ::1] spectra not None, const int64_t[::1] times not None, double stage):
    """Replace the first of several spectra by the product of the powers z**times of all, and return (error, kept, lost).

    `stage` is a bound of the error of each value z. Frequencies at which the absolute value of the product is surely at most FAINT
    are set to 0. `lost` bounds the sum of the absolute values at these frequencies, and `kept` the same sum at the other
    frequencies. `error` bounds the effect of `stage` at the other frequencies.
    """
    cdef double sums[3]
    sums[0] = sums[1] = sums[2] = 0
    if times.shape[0] != spectra.shape[0]:
        raise ValueError(f"{spectra.shape[0]} spectra have {times.shape[0]} powers, and need the same number")
    with nogil:
        if spectra.shape[0] and spectra.shape[1]:
            c_multiplied(&spectra[0, 0], spectra.shape[0], spectra.shape[1], &times[0], stage, sums)
    return sums[0], sums[1], sums[2]


def tilted_moments(const double[::1] logs not None, const double[::1] place not None, double rate):
    """Return log(sum of e^(logs + rate place)), and the mean and the variance of `place` with these weights.

    The caller has checked that the largest exponent is finite. The sum has a relative error of 36 units in the last place, in
    addition to the errors of the exponents and of their exponentials. The mean has this relative error, too, if no place is
    negative. Of n terms, runs of 256 terms below e^-60 of the largest may count as 0, which changes the sum by less than n e^-60.
    """
    cdef Py_ssize_t n = logs.shape[0]
    cdef double[3] out
    if place.shape[0] != n or not n:
        raise ValueError(f"logs and place have {n} and {place.shape[0]} numbers, and need the same number, at least one")
    cdef double[::1] weight = np.empty(n)
    with nogil:
        tilting_moments(&logs[0], &place[0], n, rate, &weight[0], out)
    return out[0], out[1], out[2]


def balanced(const double[:] mass not None, const double[:] near not None, const double[:] far not None,
             const uint8_t[:] free not None, Py_ssize_t last):
    """Return moments at the first `last` + 1 ends of cells; the first moment is 0. See `_exchanged` in grid_sums.py.

    The mean of cell k is at the distances near[k] and far[k] from its left and right end. A moment is the mass that a cell gives to
    an end times this distance. Cell k gives the mass moment[k]/near[k] to its left end and the rest to its right end, or nothing if
    the rest is negative. If free[k], it may keep mass: the moment at its right end is half of the largest that cell k + 1 can give
    there, or 0 if that cell is free.
    """
    cdef Py_ssize_t k, n = mass.shape[0]
    if not (near.shape[0] == far.shape[0] == free.shape[0] == n and 0 <= last < n):
        raise ValueError("the arrays need the same number of cells, more than `last`")
    out = np.zeros(last + 1)
    cdef double[::1] moment = out
    with nogil:
        for k in range(last):
            if not free[k]:
                moment[k + 1] = fmax(0.0, far[k] * (mass[k] - moment[k] / near[k]))
            elif not free[k + 1]:
                moment[k + 1] = 0.5 * (1 - far[k + 1]) * mass[k + 1]
    return out


def tilted_excess(const double[::1] g not None, double theta, double step, double discount, Py_ssize_t turn=0, Py_ssize_t first=0,
                  Py_ssize_t stop=-1):
    """Return (tail, excess) for tilted masses g[k] = P(k) e^(theta l_k) at equally spaced points l_k.

    tail[k] = sum_(j >= k) P(j) e^((theta + discount) l_k - discount l_j) and excess[k] = e^(theta l_k) E phi(S - l_k), for k from
    `first` to stop - 1, or to the end if stop is -1. The points are in the order of `g` from index `turn` on, followed by those
    before `turn`.
    """
    cdef Py_ssize_t n = g.shape[0]
    first, stop = min(max(first, 0), n), n if stop < 0 else min(max(stop, first), n)
    tail, excess = np.empty(stop - first), np.empty(stop - first)
    cdef double[::1] w = tail, d = excess
    with nogil:
        if stop > first:
            c_tilted_excess(&g[0], n, turn % n, theta, step, discount, first, stop, &w[0], &d[0])
    return tail, excess


def read_excess(const double[::1] level not None, const double[::1] tail not None, const double[::1] excess not None,
                Py_ssize_t first, Py_ssize_t size, double origin, double step, double theta, double discount, double error,
                double outside, bint upper):
    """Return for every level K a bound, a slope with the sign changed, and the rounding error as a fraction of the bound.

    The bound is one of log(e^(theta K) E phi(S - K)), and the slope is that of log E phi(S - K) as a function of K.

    `tail` and `excess` hold the values at the points from `first` on, of a grid of `size` points with the distance `step` that
    starts at `origin`. `error` is a bound of the error of each tilted mass. `outside` is a bound of the tilted mass outside of the
    grid, which may be wrapped into the grid or lost.
    """
    cdef Py_ssize_t m = level.shape[0]
    cdef Tilted grid = Tilted(origin, step, theta, discount, error, outside, first, tail.shape[0], size)
    out = np.empty((3, m))
    cdef double[:, ::1] o = out
    if excess.shape[0] != tail.shape[0]:
        raise ValueError(f"tail and excess have {tail.shape[0]} and {excess.shape[0]} points, and need the same number")
    with nogil:
        if m and tail.shape[0]:
            c_read_excess(&grid, &tail[0], &excess[0], &level[0], m, upper, &o[0, 0], &o[1, 0], &o[2, 0])
    return out[0], out[1], out[2]
