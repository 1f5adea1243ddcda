r"""Distributions of X for Gaussian noise on vectors of a ball, for every choice of the target's two vectors and of another user's.

The unit of length is the standard deviation of the noise. :math:`R_x = N(x, I)`, and :math:`X = (R_a - e^\varepsilon R_b)/R_x`
under R_x has the distribution of :math:`e^u - e^{\varepsilon + v}`, where (u, v) is normal with the means :math:`-G_{11}/2` and
:math:`-G_{22}/2`, and its covariance matrix G is the Gram matrix of (a - x, b - x). Three steps, proved in docs/theorems/vectors,
reduce all triples (a, b, x) of a ball to finitely many distributions:

- **Order.** If G' - G is positive semidefinite (G' is above G), X with the matrix G is smaller in the convex order than X with G'.
- **Families.** The maximal Gram matrices are those of right and acute triangles inscribed in a great circle, a family with two
  parameters.
- **Cells.** For each cell of parameters, one matrix G' is above the Gram matrices of all triangles in the cell. X with the matrix
  G' is discretized such that it becomes larger in the convex order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base.caches import Kept, cached_property, kept
from shufflebounds._base.convex_order import rounding_charge, shares, to_nodes
from shufflebounds._base.limits import COMPUTED_ERROR, LARGEST_EXPONENT, TINY
from shufflebounds._base.quadrature import log_normal_masses
from shufflebounds._base.scipy_functions import log_ndtr, ndtri_exp
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core import _sum_bound
from shufflebounds._engines.datasets.cases import Cases, Cell, LawTable
from shufflebounds._engines.inputs.interval_cases import GaussianNoise, IntervalCases

__all__ = ["LONGEST", "VectorCases"]

LONGEST = 6.5
"""Largest diameter of the ball in standard deviations. The second moment of X at eps = 0 is then e^42, 200 times the largest number
of users, 2**53: for a larger ball rare values dominate sums of X, and the privacy blanket gives an equally good bound."""

_CLOSE = 4e-3
"""With T the squared diameter, a cell is not divided further if G' raises the second moment of X by at most the fraction
_CLOSE max(1, 2 T). Raised: a larger bound, by up to 13 times _CLOSE in log delta. Lowered: longer run time."""

_BINS = (0.06, 0.4)
"""Smallest and largest width of a bin of outputs in standard deviations. A width w raises the second moment of X by about a
relative w^2/2, so wide bins suffice for cells whose second moment is small. Lowered: longer run time, in proportion to the inverse
square."""

_SPARSE = 0.5
"""Smallest density of bins far from the vectors, relative to that near them. The density falls with the cube root of the mass,
which is the best for the second moment. Lowered: fewer bins, and a larger bound where rare messages dominate."""

_WIDER = 8.0
"""Bins are at most this many times wider in a direction in which X changes little."""

_CORNER = 0.04
"""Half width of the cells at the two corners, which are evaluated with the first distributions. Raised: larger bounds. Lowered:
neighbouring cells have larger bounds than the corners, so that more cells are divided."""

_LEVEL = 32.0
"""Truncated masses are e^-32, e^-64, ..., so that neighbouring eps share distributions. Raised: fewer distributions with more
values."""

_CUT = 8.0
"""The tails of all cells end where outputs of probability e^-8, e^-16, ... are omitted; _LEVEL is a multiple of _CUT. Lowered:
tails with fewer values, but more different tails."""

_BETWEEN = 0.01
"""Half of the distance of the factors of R_b for which X is discretized, in units of the standard deviation of X divided by that of
R_b/R_x. The mixture for two neighbouring factors raises the second moment of X by at most the fraction _BETWEEN^2, which is far
less than that of the bins (_BINS). Raised: a larger bound. Lowered: longer run time, since more distributions are computed."""

_KEPT = 12
"""Number of tables and distributions that a cell keeps, of about 10 kB each. They suffice for two levels and several pairs of
factors. Lowered: longer run time."""

_FLOOR = 1e-6
"""Smallest eigenvalue of the derivative of the second moment with respect to G, relative to the largest. Any value gives a valid
G'."""

_PARTS = np.array([[[1.0, 0.5], [0.5, 0.0]], [[0.0, 0.5], [0.5, 1.0]], [[0.0, -0.5], [-0.5, 0.0]]])
"""The Gram matrix G of (a - x, b - x) is the sum of these matrices times the squared lengths of a - x, b - x and a - b."""


@dataclass(frozen=True, eq=False)
class VectorCases(Cases):
    """The distributions of X for Gaussian noise on vectors of a ball.

    `noise` is the noise along a diameter of the ball, with the length of the diameter. Each user sends a message with probability
    `share`.
    """

    noise: GaussianNoise
    share: float = 1.0

    @property
    def blur(self) -> float:
        return self.noise.error

    @cached_property
    def _line(self) -> IntervalCases:
        return IntervalCases(self.noise, share=self.share)

    def thinned(self, share: float) -> VectorCases:
        return replace(self, share=self.share * share)

    def laws(self, eps: float, log_cut: float) -> LawTable:
        # In the worst triple (a, b, x), a and b are most often opposite vectors, and x = a or x = b.
        parts = [self._line.laws(eps, log_cut), *(corner.laws(eps, log_cut) for corner in self._corners)]
        sizes = np.concatenate([np.diff(part.starts) for part in parts])
        values, mass, log_mass = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return LawTable(values, mass, log_mass, np.append(0, np.cumsum(sizes)), max(part.log_cut for part in parts))

    @kept(_KEPT)
    def tail(self, depth: int) -> tuple[FloatArray, FloatArray, float]:
        """Return values and probabilities of a variable that bounds the tails of X of all triples, and the mass that is omitted.

        X is at most R_a/R_x = e^u, where u is normal with the mean -A/2 and a variance A of at most T, the squared diameter. So the
        mean of (X - s)_+ is at most its value for e^u with the variance T. The values of e^u are spread to the ends of narrow bins,
        because the bins of X, which are wide where the probability is small, would make the tails much heavier.
        """
        length = self.noise.length
        end = length - float(ndtri_exp(-_CUT * depth))
        edges = np.linspace(0.0, end, math.ceil(end / (_BINS[0] / 4)) + 1)
        log_bins = log_normal_masses(edges, 0.0, 1.0)
        bins = np.exp(log_bins)
        place = np.exp(length * edges - 0.5 * length**2) * (1 + self.blur)
        return place, to_nodes(bins, bins * _share(edges, log_bins, length)), math.exp(-_CUT * depth) * (1 + COMPUTED_ERROR)

    @cached_property
    def _corners(self) -> tuple[Cell, ...]:
        return tuple(_Triangles(self, (0.0, s), (_CORNER, _CORNER)) for s in (-math.pi / 2, math.pi / 2))

    def cells(self) -> Sequence[Cell]:
        return self._cells

    @cached_property
    def _cells(self) -> tuple[Cell, ...]:
        """Cells that cover all triangles.

        A cell is divided until its second moment of X at eps = 0 is below that of the worst triple, or division has little effect.
        """
        quarter, cells = math.pi / 4, []
        half = quarter * (1 + COMPUTED_ERROR)
        left = [_Triangles(self, (quarter, s * quarter), (half, half)) for s in (-1, 1)]
        while left:
            cell = left.pop()
            if cell.below < _BINS[0] ** 2 and not cell.small:
                left.extend(cell.parts)
            else:
                cells.append(cell)
        return tuple(cells)


class _Tables(NamedTuple):
    """A discrete distribution of a = R_a/R_x and b = R_b/R_x, from which X follows for every eps.

    For each pair of a row of (`first`, `second`, `weight`) and an entry of (`place`, `mass`), (a, b) = (first * place, second) has
    the mass weight * mass. `beyond` is the mass under R_a of outputs that are omitted.
    """

    first: FloatArray
    second: FloatArray
    weight: FloatArray
    place: FloatArray
    mass: FloatArray
    beyond: float


class _Triangles(Cell):
    """Triangles a, b, x with angles (pi/2 + t + s)/2 at a, (pi/2 + t - s)/2 at b and pi/2 - t at x, for t and s in two intervals.

    `center` has the centers of the intervals of t and s, and `half` has half of their widths.
    """

    def __init__(self, cases: VectorCases, center: tuple[float, float], half: tuple[float, float]) -> None:
        self._cases, self._center, self._half = cases, center, half
        # The cache has tables for each level, and masses for each level and factor of R_b, because a search evaluates each cell at
        # many eps.
        self._known: Kept[tuple[float, ...], Any] = Kept(_KEPT)

    def halves(self, loss: float) -> Sequence[Cell]:
        return () if self.small else self.parts

    @property
    def small(self) -> bool:
        """Whether smaller cells would have nearly the same matrix."""
        _, first, second = self._above
        return not self._far and first + second <= _CLOSE * max(1.0, 2 * self._cases.noise.length**2)

    @cached_property
    def parts(self) -> tuple[_Triangles, ...]:
        """The two halves of the cell, without those that contain no triangle."""
        _, first, second = self._above
        (t, s), (high, wide) = self._center, self._half
        if first > second:
            high *= 0.5
            places = [(t - high, s), (t + high, s)]
        else:
            wide *= 0.5
            places = [(t, s - wide), (t, s + wide)]
        # No angle is above pi/2: t >= 0 and abs(s) <= pi/2 - t. A cell that meets this region at a single corner is omitted: other
        # cells contain the corner, and COMPUTED_ERROR in `_above` covers its rounding.
        return tuple(_Triangles(self._cases, (t, s), (high, wide)) for t, s in places
                     if t - high + max(abs(s) - wide, 0.0) < (1 - 16 * ULP) * math.pi / 2)

    @cached_property
    def below(self) -> float:
        """1 - M/M_0, with M the second moment of X at eps = 0 for the matrix `_above`, and M_0 that of the worst triple.

        The value is -inf if `_above` is far above the Gram matrices of the triangles (`_far`).
        """
        gram = self._above[0]
        if self._far:
            return -math.inf
        moment = math.expm1(gram[0, 0]) + math.expm1(gram[1, 1]) - 2 * math.expm1(gram[0, 1])
        return 1 - moment / math.expm1(self._cases.noise.length**2)

    @property
    def _far(self) -> bool:
        """Whether an entry of `_above` is above 1 + twice the largest entry of all triangles, so that exponentials may overflow."""
        return bool(self._above[0].max() > 2 * self._cases.noise.length**2 + 1)

    @cached_property
    def _above(self) -> tuple[FloatArray, float, float]:
        """A matrix that is above the Gram matrices of all triangles, and the resulting increase of the second moment of X at eps
        = 0.

        The second and the third number are the relative increases due to the widths of the intervals of t and of s.
        """
        (t, s), (high, wide), square = self._center, self._half, self._cases.noise.length**2

        def gram(lengths: ArrayLike) -> FloatArray:
            return np.asarray(square * np.tensordot(np.array(lengths), _PARTS, 1))

        # The squared lengths of a - x, b - x and a - b are `square` times (1 + sin(t - s))/2, (1 + sin(t + s))/2 and cos(t)^2.
        minus, plus = 0.5 * math.cos(t - s), 0.5 * math.cos(t + s)
        center = gram((0.5 * (1 + math.sin(t - s)), 0.5 * (1 + math.sin(t + s)), math.cos(t) ** 2))
        # `parts` has the Taylor terms of the three squared lengths, divided by `square`, in t and in s. The terms of second order
        # are at most (dt + ds)^2/4 <= (dt^2 + ds^2)/2 in absolute value for each of the first two lengths, and at most dt^2 for the
        # third.
        parts = gram([(high * minus, high * plus, -high * math.sin(2 * t)), *np.diag((0.5, 0.5, 1.0)) * high**2,
                      (-wide * minus, wide * plus, 0.0), *np.diag((0.5, 0.5, 0.0))[:2] * wide**2])
        # If G increases by a small matrix, the second moment of X at eps = 0 increases by the scalar product of this matrix with
        # `rates`, times e^top.
        top = center.max()
        rates = np.exp(center - top) * np.array([[1.0, -1.0], [-1.0, 1.0]])
        size, axes = np.linalg.eigh(rates)
        root = axes * np.sqrt(np.maximum(size, _FLOOR * size[-1]))
        inverse = np.linalg.inv(root)
        # For each Taylor term, `smallest` is the matrix above the term and above its negative that has the smallest scalar product
        # with `rates`.
        size, axes = np.linalg.eigh(root.T @ parts @ root)
        smallest = inverse.T @ (axes * np.abs(size)[:, None]) @ axes.swapaxes(1, 2) @ inverse
        # Rounding may leave a negative eigenvalue of smallest - parts or smallest + parts: raise `smallest` until both have none.
        below = np.linalg.eigvalsh(np.stack([smallest - parts, smallest + parts]))[:, :, 0].min(axis=0)
        smallest += (np.maximum(-below, 0.0) + COMPUTED_ERROR * np.abs(smallest).max(axis=(1, 2)))[:, None, None] * np.eye(2)
        more = smallest[:4].sum(axis=0), smallest[4:].sum(axis=0)
        first, second = (float(np.sum(rates * above)) / max(float(rates.sum()), TINY) for above in more)
        return center + more[0] + more[1] + COMPUTED_ERROR * square * np.eye(2), first, second

    @cached_property
    def _products(self) -> tuple[float, float, float]:
        """E a^2 - 1, E a b - 1 and E b^2 - 1 for a = R_a/R_x and b = R_b/R_x under R_x."""
        gram = self._above[0]
        return math.expm1(gram[0, 0]), math.expm1(gram[0, 1]), math.expm1(gram[1, 1])

    @cached_property
    def _width(self) -> float:
        """The width w of a bin. Bins raise the second moment by a relative w^2/2.

        w^2 is at most `below`, and at most the relative increase of the second moment (`_above`) that is due to the size of the
        cell; but w is not outside the limits _BINS.
        """
        _, first, second = self._above
        return math.sqrt(min(max(min(self.below, first + second), _BINS[0] ** 2), _BINS[1] ** 2))

    def _tables(self, level: int) -> _Tables:
        """Return the distribution of (a, b) for the Gram matrix `_above`, truncated at the probability e^(-_LEVEL level)."""
        gram, width = self._above[0], self._width
        # log a = r z - r^2/2 + t w - t^2/2 and log b = q z - q^2/2 with independent normal z and w.
        q = math.sqrt(gram[1, 1])
        r = gram[0, 1] / q
        t = math.sqrt(max(gram[0, 0] - r * r, 0.0))
        end = -float(ndtri_exp(-_LEVEL * level))
        # Bins may be wide in a direction in which X changes little.
        change = math.hypot(t, r - q)
        edges = _edges(min(r, 0.0), max(q, r), end, width * min(max(change / max(q, abs(r)), 1.0), _WIDER))
        across = _edges(0.0, t, end, width * min(max(change / max(t, TINY), 1.0), _WIDER))
        # e^(t w - t^2/2) is replaced by its values at the edges of bins of w.
        log_other = log_normal_masses(across, 0.0, 1.0)
        other = np.exp(log_other)
        # On a bin of z the point (e^(r z), e^(q z)) runs from one corner of a rectangle to the opposite one, on one side of the
        # diagonal. It is replaced by three corners of the rectangle.
        log_bins = log_normal_masses(edges, 0.0, 1.0)
        bins, one, two = np.exp(log_bins), _share(edges, log_bins, r), _share(edges, log_bins, q)
        a, b = np.exp(r * edges - 0.5 * r * r), np.exp(q * edges - 0.5 * q * q)
        nodes = to_nodes(bins * (1 - np.abs(one - two)), bins * np.minimum(one, two))
        third = (a[1:], b[:-1]) if r <= q else (a[:-1], b[1:])
        weight = np.append(nodes, bins * np.abs(one - two))
        beyond = float(np.exp(log_ndtr(np.array([edges[0] - r, r - edges[-1], -end - t, -end]))).sum()) * (1 + COMPUTED_ERROR)
        return _Tables(np.append(a, third[0]), np.append(b, third[1]), weight, np.exp(t * across - 0.5 * t * t),
                       to_nodes(other, other * _share(across, log_other, t)), beyond)

    def _masses(self, level: int, factor: float, unit: float, step: float) -> tuple[int, FloatArray, float]:
        """Return the masses of R_a/R_x - factor R_b/R_x as `_sum_bound.product_masses` does, and the omitted mass under R_a."""
        a, b, weight, place, mass, beyond = self._known.of((level,), lambda: self._tables(level))
        # X is increased by the errors of masses and ratios. Positive values of X whose mass under R_a is small are omitted;
        # otherwise the largest value would be about e^(1.4 end), with `end` of `_tables`.
        first, masses, lost = _sum_bound.product_masses(
            place, mass, a * (1 + self._cases.blur), b * (factor * (1 - self._cases.blur)), weight, math.exp(-_LEVEL * level), unit,
            step, rounding_charge(place.size + weight.size))
        return first, masses, beyond + lost

    def laws(self, eps: float, log_cut: float) -> LawTable:
        # X = R_a/R_x - factor R_b/R_x is linear in the factor. Between two factors of a grid, the distribution of X is smaller in
        # the convex order than a mixture of the distributions for these two factors, with the same mean (Jensen's inequality). The
        # distributions on the grid are cached.
        factor, depth = math.exp(eps), math.ceil(min(max(-log_cut, 1.0), LARGEST_EXPONENT) / _CUT)
        level = math.ceil(depth * _CUT / _LEVEL)
        own, both, other = self._products
        square = own + factor**2 * other - 2 * factor * both + math.expm1(eps) ** 2
        # The computed second moment of X may be inaccurate by cancellation. It only determines the unit of the values and the grid
        # of factors, and each choice of them gives a valid bound.
        unit = _power_of_two(math.sqrt(max(square, COMPUTED_ERROR * own)))
        gap = _power_of_two(2 * _BETWEEN * unit / math.sqrt(1 + other))
        low = math.floor(factor / gap) * gap
        part, step = (factor - low) / gap, 0.25 * self._width

        def kept(factor: float) -> tuple[int, FloatArray, float]:
            answer: tuple[int, FloatArray, float] = self._known.of(
                (level, unit, factor), lambda: self._masses(level, factor, unit, step))
            return answer

        (first, masses, lost), (second, others, more) = kept(low), kept(low + gap if part > 0 else low)
        values, total = _sum_bound.mixed_atoms(first, masses, second, others, part, unit, step)
        place, tail, omitted = self._cases.tail(depth)
        values, total = _sum_bound.with_tail(values, total, place, tail, rounding_charge(total.size + tail.size))
        beyond = (1 - part) * lost + part * more + omitted
        if self._cases.share < 1:
            # "No message" is an output that is equally likely for every input.
            share = self._cases.share
            values, total, beyond = np.append(values, -math.expm1(eps)), np.append(total * share, 1 - share), beyond * share
        total = np.maximum(total, TINY)
        return LawTable(values, total, np.log(total), np.array([0, total.size]), math.log(max(beyond, TINY)))


def _power_of_two(x: float) -> float:
    """Return the largest power of two that is at most x > 0."""
    return math.ldexp(0.5, math.frexp(x)[1])


def _edges(low: float, high: float, end: float, width: float) -> FloatArray:
    """Return the edges of bins from low - end to high + end, of about the given width between low and high and wider outside."""
    fine = np.linspace(low - end, high + end, 401)
    apart = np.maximum(np.maximum(low - fine, fine - high), 0.0)
    density = max(1.0, high - low) / width * np.maximum(np.exp(-(apart**2) / 6), _SPARSE)
    climb = np.append(0.0, np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(fine)))
    return np.asarray(np.interp(np.linspace(0.0, climb[-1], math.ceil(climb[-1]) + 1), climb, fine))


def _share(edges: FloatArray, log_mass: FloatArray, slope: float) -> FloatArray:
    """Return the share of each bin's mass to put at its upper edge so that the mean of e^(slope z), z normal, is unchanged."""
    mean = np.exp(np.minimum(log_normal_masses(edges, slope, 1.0) - log_mass + 0.5 * slope * slope, LARGEST_EXPONENT))
    ends = np.exp(np.minimum(slope * edges, LARGEST_EXPONENT))
    return shares(mean, ends[:-1], ends[1:])
