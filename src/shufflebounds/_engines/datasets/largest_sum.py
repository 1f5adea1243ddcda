r"""Upper bounds of the largest E(X_1 + ... + X_k)_+ over all choices of the distribution of each X_i from a set of distributions.

Lemma H of docs/theorems/worst-dataset: for every theta > 0, D > 0 and eta, with :math:`\varphi_x` the moment generating function of
the distribution x,

.. math:: \mathbb{E}(X_1 + \cdots + X_k + u)_+ \le e^{\theta u} \max_x \frac{D}{2\pi} \sum_{m \in \mathbb{Z}}
    \frac{e^{\eta^2 (\theta^2 - m^2 D^2)/2}}{\theta^2 + m^2 D^2}\, |\varphi_x(\theta + i m D)|^k .

Large values, X > c, are split off: X is smaller in the increasing convex order than :math:`Y + I\,(B + \nu)`, where Y is X given
:math:`X \le c`, B is X given X > c, :math:`\nu \ge -\mathbb{E} Y`, and I is 1 with probability :math:`p = \Pr[X > c]`,
independently. So the sum of the k variables X is bounded by the sum of k variables Y plus N terms :math:`B + \nu`, where N ~ Bin(k,
p).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import NamedTuple

import numpy as np

from shufflebounds._base.convex_order import gathered
from shufflebounds._base.limits import COMPUTED_ERROR, MANY, SQUARABLE
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._core import _moments, _sum_bound
from shufflebounds._engines.datasets.cases import Cases, Cell, LawTable
from shufflebounds._engines.excess.excess_law import ExcessLaw

__all__ = ["NODES", "SMOOTHING", "SPREAD", "LargestSums", "SumChoices", "single_bounds"]

SMOOTHING = 5e-4
"""Variance eta^2 of the smoothing, as a fraction of the variance of the sum. The smoothing increases eps by half this fraction.
Lowered: the sum over m needs more terms."""

SPREAD = 6.5
"""Distance between the aliases of the sum, 2 pi/D, in standard deviations of the sum. Raised: more terms are needed. Lowered: the
aliases, which add to the bound, are larger."""

NODES = 197
"""Number of terms of the sum over m > 0. The omitted terms add about 2e-5 of the bound. Lowered: the omitted terms add more to
the bound."""

_COARSER = 4.0
"""Factor by which a coarse bound multiplies SMOOTHING, so that it has fewer terms. Raised: larger coarse bounds. Lowered: longer
run time of coarse bounds."""

_COARSEST = 16.0
"""A further factor of SMOOTHING while the limit of large values is chosen, for which an approximation suffices."""

_LARGE = 7.0
"""Approximate limit c theta above which values count as large: c = _LARGE/theta. Every limit gives a valid bound."""

_LIGHT = 9.0
"""No values are split off if theta times the largest value of X is at most this. Raised: a larger bound. Lowered: longer run
time."""

_LIMITS = 1.3
"""Ratio of neighbouring limits of the large values that are tried."""

_PARTS = np.array([1.0, 0.96, 0.85, 0.0])
"""If values are large, the bound is computed for about these fractions of the number of users. Interpolation between them chooses
the number that is used. More fractions: a better choice, in longer time."""

_STRIDE, _TRIED = 6, 12
"""Two distances in steps of _LIMITS: _STRIDE between the limits that are tried first, from about _LARGE/theta to the largest value,
and _TRIED, the largest distance of later limits from the best of these. _STRIDE raised or _TRIED lowered: a larger bound if delta
is due to rare values."""

_TILTS = np.geomspace(1.0, 0.3, 8)
"""Values of theta that are used after large values are split off, relative to the best theta without them. More values: longer run
time, in proportion. Fewer: a larger bound."""

_JUMPS = 600
"""Number of grid points to which the large value is rounded up if exactly one user has a large value. If two users have large
values, each of the two values is rounded up to one of _JUMPS/10 points. Lowered: a larger bound."""

_SLACK = (1e-4, 3e-3)
"""Permitted increase of the bound of log delta: the first number if no value is large, the second one if some are, where it takes
ten times as long. A cell is not divided further if its bound exceeds the bound without cells by at most this increase. Raised: a
larger bound. Lowered: longer run time, in proportion to the inverse square root near the worst pair."""

_DIVISIONS = 64
"""Number of divisions of cells (or the number of cells, if larger) after which the bound is raised by _SLACK. After twice this
number of divisions it is raised by 2 _SLACK, and so on. Raised: longer run time. Lowered: a larger bound where rare values
dominate."""

_DEEPER = 10.0
"""Outputs may be omitted if their probability is below e^-10 of the bound; their contribution is then at most this fraction of the
bound. Lowered: a larger bound, less smooth in eps. Raised: longer tables."""


class SumChoices(NamedTuple):
    """The parameters of Lemma H: k (`users`), theta, D (`step`), eta^2 (`smoothing`), and the number of terms (`nodes`).

    Every choice gives a valid bound; theta = 0 stands for the bound k E X_+.
    """

    users: int
    theta: float
    step: float
    smoothing: float
    nodes: int


class LargestSums:
    """Upper bounds of log Gamma_k, the log of the largest E(X_1 + ... + X_k)_+/k over all pairs and inputs, for several k.

    Parameters
    ----------
    cases : Cases
        The distributions of X.
    eps : float
        Privacy loss in nats, >= 0.
    counts : sequence of int
        The numbers k >= 1.
    near : float
        An estimate of the results, which only affects the run time.
    coarse : bool
        True for bounds that are slightly larger, in less time.
    """

    def __init__(self, cases: Cases, eps: float, counts: Sequence[int], near: float, coarse: bool = False) -> None:
        self._coarser = _COARSER if coarse else 1.0
        nodes = _nodes(self._coarser)
        self._cases, self._eps, self._counts = cases, eps, np.array(counts, dtype=np.float64)
        self._logs = np.log(self._counts)
        places = np.searchsorted(-self._counts, _PARTS * -self._counts[0])
        self._knots = self._counts[np.unique(np.minimum(places, self._counts.size - 1))]
        self._split: _Sum | None = None
        while True:
            self._near, laws = near, cases.laws(eps, near - _DEEPER - 2)
            if laws.starts.size == 2 and laws.values.size > 8 * MANY:
                # Merging to values 3 % apart raises log delta by at most about 1e-2. This only affects the bound of the probability
                # that the best test accepts.
                values, log_mass = gathered(laws.values, laws.log_mass, upper=True)
                laws = laws._replace(values=values, mass=np.exp(log_mass), log_mass=log_mass, starts=np.array([0, values.size]))
            if laws.values.max(initial=0.0) > SQUARABLE:
                laws = _squarable(laws)
            light, theta = _moments.light_sums(laws.values, laws.log_mass, laws.starts, self._counts, cases.blur,
                                               SMOOTHING * self._coarser, SPREAD, nodes, _LIGHT)
            # If large values are split off, a bound is a sum of several parts. It takes longer, so it is computed for a few numbers
            # of users only.
            self._split = _Sum.split(laws, self._knots, cases.blur, theta, self._coarser, self._split) if light is None else None
            self._light = None if light is None else light - self._logs
            near = float(self._light.min()) if self._light is not None else float(self._at_knots().min())
            if not near < laws.log_cut + _DEEPER or self._near <= near:
                break
        self._laws, self._theta = laws, theta

    def _at_knots(self) -> FloatArray:
        """Return the bounds without the cells at the numbers of users `_knots`; call it only if large values are split off."""
        assert self._split is not None
        return np.asarray(np.array([self._split.log_sum(column) for column in range(self._knots.size)]) - np.log(self._knots))

    def _sum(self, place: int) -> _Sum:
        """Return the bound of the sum for the number of users counts[place]."""
        counts, blur = self._counts[[place]], self._cases.blur
        if self._split is None:
            return _Sum(self._laws, counts, blur, math.inf, self._theta, self._coarser)
        (columns,) = np.nonzero(self._knots == counts[0])
        return self._split.only(int(columns[0])) if columns.size else self._split.of(self._laws, counts)

    def approximations(self) -> FloatArray:
        """Return the bound for every number of users; if there are large values, interpolated linearly between a few numbers."""
        if self._light is not None:
            return self._light
        return np.interp(-self._counts, -self._knots, self._at_knots())

    def choices(self, place: int = 0) -> SumChoices:
        """Return the parameters of Lemma H on which :meth:`bound` depends if there are no cells and no large values are split off.

        If large values are split off, :meth:`bound` may be smaller than the bound that follows from these numbers.
        """
        users, first, starts = int(self._counts[place]), self._laws.mass * self._laws.values, self._laws.starts[:-1]
        squares = np.add.reduceat(first * self._laws.values, starts) - np.add.reduceat(first, starts) ** 2
        variance = float(self._counts[0] * squares.max())
        if not (self._theta > 0 and variance > 0):
            return SumChoices(users, 0.0, 0.0, 0.0, 0)
        return SumChoices(users, self._theta, 2 * math.pi / (SPREAD * math.sqrt(variance)), SMOOTHING * self._coarser * variance,
                          _nodes(self._coarser))

    def bound(self, place: int = 0, *, every: bool = True, rest: float = -math.inf, most: float = math.inf) -> float:
        """Return an upper bound of log Gamma_k for k = counts[place]; e^rest is what the caller adds to Gamma_k.

        If `every` is false, the cells are omitted. The result is then an approximation, too small if a case in a cell has the
        largest sum. The result may be inf if the bound exceeds `most`.
        """
        cut, cells, log_count = self._laws.log_cut, self._cases.cells(), float(self._logs[place])
        sums = self._sum(place) if self._light is None or (cells and every) else None
        bound = float(self._light[place]) if self._light is not None else -math.inf
        if self._light is None and sums is not None:
            bound = sums.log_sum(0) - log_count
        if cells:
            slack = _SLACK[self._light is None]
            bound += slack
            if every and sums is not None:
                # Cells are not divided, and outputs are omitted, if their contribution is negligible beside the other terms.
                negligible = max(cut, rest) + 2 * math.log(slack)
                bound, near = (bound, self._near) if bound >= negligible else (negligible, max(self._near, negligible))
                bound, lost = sums.covered(cells, self._eps, near - _DEEPER - 2, bound + log_count, slack, most + log_count)
                bound, cut = bound - log_count, max(cut, lost)
        bound = float(np.logaddexp(bound, cut))
        return bound + 8 * ULP * (1 + abs(bound)) if math.isfinite(bound) else bound


def single_bounds(laws: Sequence[ExcessLaw], eps: float, users: float) -> list[float]:
    """Return an upper bound of log(E(X_1 + ... + X_n)_+/n) by Lemma H for each distribution of X, to choose one of many."""
    bounds, count, log_count = [], np.array([float(users)]), math.log(users)
    for law in laws:
        (log_mass, log_a, log_b), bound = law._distinct, -math.inf
        if log_mass.size:
            values, ends, lost = _moments.excess_values(log_a, log_b, eps), np.array([0, log_mass.size]), -math.inf
            if values.max() > SQUARABLE:
                values, _, _, _, lost = _squarable(LawTable(values, log_mass, log_mass, ends))
            sums, _ = _moments.light_sums(values, log_mass, ends, count, law._slack, SMOOTHING, SPREAD, NODES, math.inf)
            assert sums is not None
            bound = float(np.logaddexp(sums[0], lost + log_count))
        if law._has_cut:
            bounds.append(law._with_cut(Interval(bound, bound), law._slack, eps, users).upper)
        else:
            bounds.append(bound - log_count + law._slack + (8 * ULP * (abs(bound) + log_count) if bound > -math.inf else 0.0))
    return bounds


def _squarable(laws: LawTable) -> LawTable:
    """Return the distributions with X = 0 in place of values whose squares overflow; their contribution to E X_+ is added to
    `log_cut`.
    """
    large = laws.values > SQUARABLE
    parts = np.where(large, laws.log_mass + np.log(np.where(large, laws.values, 1.0)), -np.inf)
    lost = float(np.logaddexp.reduceat(parts, laws.starts[:-1]).max())
    return laws._replace(values=np.where(large, 0.0, laws.values), log_cut=float(np.logaddexp(laws.log_cut, lost)) + COMPUTED_ERROR)


def _nodes(coarser: float) -> int:
    """Return the number of terms of the sum over m (Lemma H) if the smoothing eta^2 is larger by the factor `coarser`."""
    return round(NODES / math.sqrt(coarser))


class _Sum:
    """The bound of E S_+, where S is the sum of the users' X, for a set of distributions to which more can be added.

    Parameters
    ----------
    laws : LawTable
        The distributions with which the set begins.
    counts : ndarray
        The numbers k of users for which E S_+ is bounded; they differ little.
    blur : float
        Bound of the relative error of the probabilities.
    limit : float
        Values of X above `limit` are split off as large values; inf if none are.
    theta : float
        The largest theta that is used; 0 if no sum is evaluated.
    coarser : float
        Factor by which the smoothing is multiplied.
    """

    def __init__(self, laws: LawTable, counts: FloatArray, blur: float, limit: float, theta: float, coarser: float) -> None:
        self._counts, self._blur, self._limit, self._theta, self._coarser = counts, blur, limit, theta, coarser
        # Coarse bounds use every second theta, and half of the grid points for two large values.
        thetas = theta * (_TILTS[:: 2 if coarser > 1 else 1] if limit < math.inf else np.ones(1))
        self._bound = _sum_bound.SumBound(*laws[:4], counts=counts, thetas=thetas, limit=limit, smoothing=SMOOTHING * coarser,
                                      spread=SPREAD, nodes=_nodes(coarser), jumps=_JUMPS, pool=20 if coarser > 1 else 10, blur=blur,
                                      error=COMPUTED_ERROR)

    def log_sum(self, column: int) -> float:
        """Return the log of the bound of E S_+ for counts[column]."""
        return self._bound.log_sum(column)

    @classmethod
    def split(cls, laws: LawTable, counts: FloatArray, blur: float, theta: float, coarser: float, former: _Sum | None) -> _Sum:
        """Return the bound with a nearly optimal limit above which values of X are split off; `theta` is the best theta without
        splitting.

        `former` is the result for the same distributions with other truncated tails.
        """
        # The limit is chosen with the distributions that have nearly the largest second moment, or nearly the largest E X_+. The
        # other distributions rarely change the best limit, and every limit gives a valid bound.
        squares, gains = (np.add.reduceat(laws.mass * x**2, laws.starts[:-1]) for x in (laws.values, np.maximum(laws.values, 0.0)))
        largest = (squares >= 0.5 * squares.max()) | (gains >= 0.5 * gains.max())
        used = [slice(*laws.starts[i : i + 2]) for i in np.flatnonzero(largest)]
        values, mass, log_mass = (np.concatenate([atoms[part] for part in used]) for atoms in laws[:3])
        wide = LawTable(values, mass, log_mass, np.cumsum([0, *(part.stop - part.start for part in used)]))

        def tilted(limit: float, start: float) -> float:
            return _sum_bound.tilt_below(*wide[:4], limit, float(counts[0]), SMOOTHING * coarser, start)

        limit, tilt = (_LARGE / theta, theta) if former is None else (former._limit * math.sqrt(_LIMITS), former._theta)
        for _ in range(5 if former is None else 0):
            before, tilt = tilt, tilted(limit, tilt)
            limit = _LARGE / tilt
            if abs(math.log(tilt / before)) < 0.1:
                break

        def of(laws: LawTable, place: int, counts: FloatArray, coarser: float) -> _Sum:
            limit = _LIMITS**place
            return cls(laws, counts, blur, limit, tilted(limit, tilt), coarser)

        @cache
        def rough(place: int) -> float:
            return of(wide, place, counts[:1], _COARSEST * coarser).log_sum(0)

        # The limits form a grid that does not depend on eps, so that the smallest bound is smooth in eps. Far from the best limit
        # the bound does not depend on the limit. So a coarse grid of limits is tried first, and the search by small steps begins at
        # its best limit.
        first, last = (math.floor(math.log(x) / math.log(_LIMITS)) for x in (limit, max(limit, float(wide.values.max()))))
        best = first = min(range(first, last + 1, _STRIDE), key=rough)
        move = 1 if rough(first + 1) < rough(first) else -1
        while abs(best - first) < _TRIED and rough(best + move) < rough(best):
            best += move
        return of(laws, best, counts, coarser)

    def only(self, column: int) -> _Sum:
        """Return a copy for counts[column] only."""
        out = copy(self)
        out._counts, out._bound = self._counts[[column]], self._bound.only(column)
        return out

    def of(self, laws: LawTable, counts: FloatArray) -> _Sum:
        """Return the bound for the distributions `laws` and other numbers of users, with the same limit and theta."""
        return _Sum(laws, counts, self._blur, self._limit, self._theta, self._coarser)

    def covered(self, cells: Sequence[Cell], eps: float, log_cut: float, enough: float, slack: float,
                limit: float = math.inf) -> tuple[float, float]:
        """Add distributions for all cells, which are divided until the bound of the sum is at most `enough`.

        `slack` is `enough` minus the bound without cells. The method returns the bound, and the log of the contribution of outputs
        that are not among the atoms of cells. The bound is normally `enough`. It is larger if a cell that cannot be divided has a
        larger bound, or after many divisions (_DIVISIONS). If the bound would exceed `limit`, inf is returned.
        """
        divided, most, lost = 0, max(_DIVISIONS, len(cells)), -math.inf
        left, first = list(cells), enough - 0.5 * slack
        self._bound.spare(enough - 0.9 * slack)
        while left:
            if enough > limit:
                return math.inf, lost
            cell = left.pop()
            # Changing the likelihood ratios a and b of a cell by a relative r changes the log of the bound by about theta k r, for
            # k = `self._counts[0]` users. So a cell is divided until its a and b are uncertain by at most `loss`.
            loss = 0.25 * slack / (self._theta * float(self._counts[0]) + 1)
            parts, smaller = cell.laws(eps, log_cut), cell.halves(loss)
            total = self._bound.add(*parts[:4], first if smaller else math.inf)
            if smaller and total > first:
                self._bound.undo()
                left.extend(smaller)
                divided += 1
                if divided % most == 0:
                    first, enough, slack = first + slack, enough + slack, 2 * slack
                continue
            lost = max(lost, parts.log_cut)
            if total > enough:
                first, enough = total + 0.5 * slack, total + slack
            elif total > first:
                # This cell cannot be divided. So `first`, the bound above which a cell is divided, is raised halfway to `enough`;
                # otherwise all remaining cells would be divided.
                first = 0.5 * (total + enough)
        return enough if enough <= limit else math.inf, lost
