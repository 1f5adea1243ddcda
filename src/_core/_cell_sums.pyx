"""Sums of two independent discrete variables, reduced to few points by the mass and the first moment in each cell.

    X and Y have increasing atoms. Points z_0 < ... < z_m divide the line into cells. For each cell, the kernel returns the
    probability that X + Y is in the cell, and the sum of probability times distance from the cell's lower end. With these numbers
    the caller reduces X + Y to few points by
    splitting    the mass of a cell moves to both ends of the cell and keeps its mean: for convex f, E f(X + Y) does not decrease
    merging      the mass of a cell moves to its mean: for convex f, E f(X + Y) does not increase
X may be multiplied by a positive factor, and be limited to its smallest atoms; the factor and the limit may depend on Y.

``wide_sums`` has no factor and no limit, and is for atoms of many orders of magnitude. For each atom x it combines those y of the
other distribution with |y| <= |x|; most of them are so small that x + y is in the cell c of x, between z_c and z_(c+1):
    0 <= y, x + y <= z_(c+1)   the mass of these y is a sum M of probabilities, added up from y = 0 outwards; their first moment
                               relative to z_c is M (x - z_c) + F, F the sum of probability times |y|
    -(x - z_c)/4 <= y < 0      the first moment is M (x - z_c) - F, where F is at most a quarter of the first term: if M and F have
                               relative errors up to e, it has at most 5/3 e, less than the 2 e that `rounding_charge` allows
All other pairs are added one by one. A second pass exchanges X and Y; each pair of atoms belongs to one of the two passes.

Roundings   each sum x + y is moved by a relative 4 UNIT (8 UNIT in M and F), up or down as requested. This is more than its
            rounding error, even with a factor, which adds an error of UNIT. Masses and distances are sums of positive terms, each
            with an error of 2 UNIT. Sums that M counts in a cell are in this cell exactly, so the caller may clip a mean that
            rounding has moved outside
Cost        cell_sums: 3 to 6 ns for each pair; for each atom of Y there is one pass over the atoms of X and the points
            wide_sums: the same for the pairs that are added one by one, which are about 2 log(4/step)/step for each atom if the
            points are a factor 1 + step apart; and .1 us for each atom
Source      Shaked, Shanthikumar, Stochastic Orders, 3.A: splitting and merging
"""

from libc.math cimport fabs

import numpy as np

from shufflebounds._core._constants cimport UNIT


cdef void c_cell_sums(const double *place, const double *mass, Py_ssize_t places, const double *jump, const double *chance,
                      Py_ssize_t jumps, const double *nodes, Py_ssize_t cells, bint upper, const double *factor,
                      const Py_ssize_t *used, double cut, double *total, double *moment) noexcept nogil:
    cdef Py_ssize_t i, j, k, low, high
    cdef double x, p, here, first, faint, scale = 1, blur = 4 * UNIT if upper else -4 * UNIT
    for j in range(jumps):
        if factor != NULL:
            scale = factor[j]
        k = -1
        here = first = 0
        faint = cut / chance[j] if chance[j] > 0 else cut
        for i in range(places if used == NULL else used[j]):
            if mass[i] < faint:
                continue
            p = mass[i] * chance[j]
            x = scale * place[i]
            x = x + jump[j] + blur * (fabs(x) + fabs(jump[j]))
            if k < 0:
                # the cell of the smallest sum is found by bisection, those of the larger sums by steps from it
                low, high = 0, cells
                while high - low > 1:
                    k = (low + high) // 2
                    if nodes[k] <= x:
                        low = k
                    else:
                        high = k
                k = low
            elif nodes[k + 1] <= x and k < cells - 1:
                total[k] += here
                moment[k] += first
                here = first = 0
                k += 1
                while nodes[k + 1] <= x and k < cells - 1:
                    k += 1
            here += p
            first += p * (x - nodes[k])
        if k >= 0:
            total[k] += here
            moment[k] += first


cdef void c_outward(const double *value, const double *mass, Py_ssize_t size, Py_ssize_t zero, double *total,
                    double *moment) noexcept nogil:
    """Writes, for every j, the sums of mass and of mass times |value| over the atoms between `zero` and j.

    These are the atoms from `zero` to j, or from j to `zero` - 1.
    """
    cdef Py_ssize_t j
    cdef double here = 0, first = 0
    for j in range(zero, size):
        here += mass[j]
        first += mass[j] * value[j]
        total[j], moment[j] = here, first
    here = first = 0
    for j in range(zero - 1, -1, -1):
        here += mass[j]
        first -= mass[j] * value[j]
        total[j], moment[j] = here, first


cdef inline Py_ssize_t c_before(const double *value, Py_ssize_t low, Py_ssize_t high, double level, bint equal) noexcept nogil:
    """Returns the first j, low <= j <= high, with value[j] >= level (`equal`) or > level; high if there is none."""
    cdef Py_ssize_t middle
    while low < high:
        middle = (low + high) // 2
        if value[middle] < level or (value[middle] == level and not equal):
            low = middle + 1
        else:
            high = middle
    return low


cdef Py_ssize_t c_nearer(const double *place, const double *mass, Py_ssize_t places, const double *jump, const double *chance,
                         Py_ssize_t jumps, Py_ssize_t zero, const double *summed, const double *first, const double *nodes,
                         Py_ssize_t cells, bint upper, bint equal, Py_ssize_t stride, double *total, double *moment) noexcept nogil:
    """Adds the pairs with |jump| < |place| (<= if `equal`) to the masses and moments of the cells, by the method of `wide_sums`.

    Only every `stride`-th place is used. Returns the number of pairs that are added one by one. If `total` is NULL, these pairs are
    only counted.
    """
    cdef Py_ssize_t n, i, j, k, start, stop, middle, step, low, c = 0, left = zero, right = zero, pairs = 0
    cdef double x, p, size, z, here, moved, blur = 4 * UNIT if upper else -4 * UNIT
    for n in range((places + stride - 1) // stride):
        i = n * stride
        x, p, size = place[i], mass[i], fabs(place[i])
        while c < cells - 1 and nodes[c + 1] <= x:
            c += 1
        if p == 0:
            continue
        # the jumps left, ..., right - 1 are those with |jump| < |x| (<= if `equal`); along the places x, |x| first decreases and
        # then increases, so both ends of this range of jumps first move inwards and then outwards
        while left > 0 and (jump[left - 1] > -size or (equal and jump[left - 1] == -size)):
            left -= 1
        while left < zero and (jump[left] < -size or (not equal and jump[left] == -size)):
            left += 1
        while right < jumps and (jump[right] < size or (equal and jump[right] == size)):
            right += 1
        while right > zero and (jump[right - 1] > size or (not equal and jump[right - 1] == size)):
            right -= 1
        # the jumps from `zero` to start - 1 lead to the cell of x; the sums x + jump increase, so `start` is found by bisection
        start, stop = zero, right
        while start < stop:
            middle = (start + stop) // 2
            z = x + jump[middle]
            if z + blur * (size + jump[middle]) <= nodes[c + 1]:
                start = middle + 1
            else:
                stop = middle
        # a negative jump moves the sum from a node x into the cell below this node
        low = c - 1 if x == nodes[c] and c > 0 else c
        stop = c_before(jump, left, zero, -0.25 * (x - nodes[low]), True)
        pairs += right - start + stop - left
        if total == NULL:
            continue
        if start > zero:
            here, moved = p * summed[start - 1], p * first[start - 1]
            total[c] += here
            moment[c] += here * (x - nodes[c]) + moved + 2 * blur * (size * here + moved)
        k, here, moved = c, 0, 0
        for j in range(start, right):
            z = x + jump[j]
            z = z + blur * (size + jump[j])
            if nodes[k + 1] <= z and k < cells - 1:
                total[k] += here
                moment[k] += moved
                here = moved = 0
                # the next sum is most often in the next cell, but cells near x may be much narrower than the distance of two jumps
                k += 1
                step = 1
                while k + step < cells and nodes[k + step] <= z:
                    k += step
                    step *= 2
                k = c_before(nodes, k, min(k + step, cells), z, False) - 1
            here += p * chance[j]
            moved += p * chance[j] * (z - nodes[k])
        total[k] += here
        moment[k] += moved
        k = low
        if stop < zero:
            here, moved = p * summed[stop], p * first[stop]
            total[k] += here
            moment[k] += here * (x - nodes[k]) - moved + 2 * blur * (size * here + moved)
        here = moved = 0
        for j in range(stop - 1, left - 1, -1):
            z = x + jump[j]
            z = z + blur * (size - jump[j])
            if nodes[k] > z and k > 0:
                total[k] += here
                moment[k] += moved
                here = moved = 0
                k -= 1
                step = 1
                while k - step > 0 and nodes[k - step] > z:
                    k -= step
                    step *= 2
                k = max(c_before(nodes, max(k - step, 0), k + 1, z, False) - 1, 0)
            here += p * chance[j]
            moved += p * chance[j] * (z - nodes[k])
        total[k] += here
        moment[k] += moved
    return pairs


def cell_sums(const double[::1] place, const double[::1] mass, const double[::1] jump, const double[::1] chance,
              const double[::1] nodes, bint upper, const double[::1] factor=None, const Py_ssize_t[::1] used=None,
              double cut=0):
    """Return the mass of X + Y in each cell between nodes, and the sum of mass times distance from the lower end of the cell.

    Parameters
    ----------
    place, mass, jump, chance : ndarray
        The increasing values and their probabilities: `place` and `mass` of X, `jump` and `chance` of Y.
    nodes : ndarray
        Increasing ends of the cells, at least two; all sums lie between the first and the last.
    upper : bool
        True: sums are rounded up; False: down.
    factor : ndarray, optional
        Positive numbers, one for each value of Y: the results are those of factor X + Y.
    used : ndarray, optional
        For each value of Y, the number of values of X that are used, from the smallest one on.
    cut : float
        Pairs with a mass below `cut`, up to rounding, are omitted. Without `cut`, products could underflow, which takes 13 times as
        long.

    Returns
    -------
    (ndarray, ndarray)
    """
    cdef Py_ssize_t cells = nodes.shape[0] - 1
    cdef double[::1] total = np.zeros(cells), moment = np.zeros(cells)
    if place.shape[0] > 0 and jump.shape[0] > 0:
        with nogil:
            c_cell_sums(&place[0], &mass[0], place.shape[0], &jump[0], &chance[0], jump.shape[0], &nodes[0], cells, upper,
                        NULL if factor is None else &factor[0], NULL if used is None else &used[0], cut, &total[0], &moment[0])
    return np.asarray(total), np.asarray(moment)


def wide_sums(const double[::1] place, const double[::1] mass, const double[::1] jump, const double[::1] chance,
              const double[::1] nodes, bint upper):
    """Return the result of `cell_sums` without factors and limits, in less time if the values range over many orders of magnitude.

    Parameters
    ----------
    place, mass, jump, chance, nodes, upper
        As for :func:`cell_sums`.

    Returns
    -------
    (ndarray, ndarray)
    """
    cdef Py_ssize_t cells = nodes.shape[0] - 1, places = place.shape[0], jumps = jump.shape[0], middle, zero, pairs
    cdef double[::1] total = np.zeros(cells), moment = np.zeros(cells)
    cdef double[::1] summed = np.empty(places + jumps), first = np.empty(places + jumps)
    if places > 0 and jumps > 0:
        with nogil:
            middle, zero = c_before(&place[0], 0, places, 0, True), c_before(&jump[0], 0, jumps, 0, True)
            c_outward(&place[0], &mass[0], places, middle, &summed[0], &first[0])
            c_outward(&jump[0], &chance[0], jumps, zero, &summed[places], &first[places])
            # every 16th atom is tried to find out whether most pairs would be added one by one, which takes longer than `cell_sums`
            pairs = c_nearer(&place[0], &mass[0], places, &jump[0], &chance[0], jumps, zero, &summed[places], &first[places],
                             &nodes[0], cells, upper, True, 16, NULL, NULL)
            pairs += c_nearer(&jump[0], &chance[0], jumps, &place[0], &mass[0], places, middle, &summed[0], &first[0], &nodes[0],
                              cells, upper, False, 16, NULL, NULL)
            if 32 * pairs > places * jumps:
                c_cell_sums(&place[0], &mass[0], places, &jump[0], &chance[0], jumps, &nodes[0], cells, upper, NULL, NULL, 0,
                            &total[0], &moment[0])
            else:
                c_nearer(&place[0], &mass[0], places, &jump[0], &chance[0], jumps, zero, &summed[places], &first[places], &nodes[0],
                         cells, upper, True, 1, &total[0], &moment[0])
                c_nearer(&jump[0], &chance[0], jumps, &place[0], &mass[0], places, middle, &summed[0], &first[0], &nodes[0], cells,
                         upper, False, 1, &total[0], &moment[0])
    return np.asarray(total), np.asarray(moment)
