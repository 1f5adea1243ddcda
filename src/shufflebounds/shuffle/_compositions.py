r"""Upper bounds of the largest E S_+ of a sum S over users of several kinds, over all numbers M_j of users of each kind.

.. math:: \log \max_{M_1 + \cdots + M_k = n} \mathbb{E}\Bigl(\sum_{j} \sum_{i \le M_j} X^{(j)}_i\Bigr)_+

S denotes the double sum, and :math:`X^{(j)}_i` are independent privacy-amplification random variables (`ExcessLaw`). A kind j is an
input of a user, and :math:`M_j` is the number of the n users with this input; inputs with the same distribution of X are one kind.
The maximum is found by branch and bound over cells, that is over sets :math:`\{L_j \le M_j \le U_j\}` of these numbers. In a cell,
:math:`L_j` users are certainly of kind j; the kind of the remaining users is unassigned. They are given the distribution of X of
the privacy blanket, which is larger in the convex order than that of every kind; the expected positive part of a sum of independent
variables does not decrease if one of them increases in this order. So one evaluation of E S_+ with :math:`L_j` users of each kind
is an upper bound for the whole cell.

Before this evaluation, a bound that takes less time is tried. For any theta > 0, let :math:`k_j = \ln \mathbb{E}\, e^{\theta
X^{(j)}}`, and let :math:`v_j` be the variance and :math:`\rho_j` the third absolute central moment of :math:`X^{(j)}` under the
distribution tilted by theta. With sums over all users,

.. math:: \mathbb{E} S_+ \le e^{\sum k} \Bigl[\frac{1}{\theta^2 \sqrt{2 \pi \sum v}}
    + \frac{2}{e\,\theta}\, 0.56\, \frac{\sum \rho}{(\sum v)^{3/2}}\Bigr]

by the theorem of Berry and Esseen for the tilted sum, since :math:`s_+ e^{-\theta s}` has the integral :math:`1/\theta^2` and the
total variation :math:`2/(e\,\theta)`. In a cell it is bounded by the largest value at the corners, where all unassigned users are
of one kind (docs/theorems/worst-dataset).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from shufflebounds._convex_order import at_zero
from shufflebounds._core import _excess
from shufflebounds._limits import TABLE_SIZE
from shufflebounds._search import maximum
from shufflebounds._types import ULP, FloatArray
from shufflebounds.shuffle._chernoff import log_moment, saddle
from shufflebounds.shuffle._excess import largest_of

__all__ = ["Compositions", "without_rare_gains"]

Numbers = tuple[int, ...]
"""A number of users for each kind."""

Cell = tuple[Numbers, Numbers]
"""The smallest and the largest number of users of each kind."""


class Compositions:
    """Sums of n users, each of one of several kinds, at one eps.

    Parameters
    ----------
    kinds : sequence of (ndarray, ndarray)
        Values of X and log masses of each kind, which sum to 1.
    blanket : (ndarray, ndarray)
        Values and log masses of a distribution that is larger in the convex order than that of every kind.
    log_gains : sequence of float
        For each of these distributions, the logarithm of E X_+ over the outputs that were dropped from it.
    users : int
        Number n of users.
    slack : float
        Relative error of the positive part of the sum that comes from the rounding of values and masses.
    """

    def __init__(self, kinds: Sequence[tuple[FloatArray, FloatArray]], blanket: tuple[FloatArray, FloatArray],
                 log_gains: Sequence[float], users: int, slack: float) -> None:
        self._laws, self._log_gains = [*kinds, blanket], log_gains
        self._values, self._masses = (np.concatenate([law[i] for law in self._laws]) for i in (0, 1))
        self._starts = np.cumsum([0, *(law[0].size for law in self._laws)], dtype=np.intp)
        self._count, self._users, self._slack = len(kinds), users, slack
        self.evaluations = 0
        self._tilt: _BerryEsseen | None = None

    def log_excess(self, numbers: Sequence[int], rtol: float = 1e-4) -> float:
        """Return an upper bound of log E S_+ for these numbers of users of each kind, and the blanket for the remaining users."""
        self.evaluations += 1
        counts = np.array([*numbers, self._users - sum(numbers)], dtype=np.float64)
        # The kernel stops after 2e7 evaluations of an atom, about 30 ms; the bound is then less tight.
        upper = _excess.log_excess(self._values, self._masses, self._starts, counts, rtol, 2e7)[1]
        upper += self._slack + 32 * ULP * abs(upper) if upper > -math.inf else 0.0
        return self._with_gains(upper, counts)

    def _with_gains(self, upper: float, counts: FloatArray) -> float:
        """Return the bound with the contribution of the dropped outputs of these numbers of users."""
        # The dropped outputs are added separately: (s + x)_+ <= s_+ + x_+.
        gains = [gain + math.log(count) for gain, count in zip(self._log_gains, counts) if count > 0 and gain > -math.inf]
        return float(np.logaddexp.reduce([upper, *gains])) + 4 * ULP if gains else upper

    def alike(self, kind: int) -> float:
        """Return an upper bound of log E S_+ if all users are of the kind with index `kind`."""
        return self.log_excess([self._users * (j == kind) for j in range(self._count)])

    def widest(self) -> tuple[int, float]:
        """Return the kind for which the bound of :meth:`alike` is largest, and this bound.

        Kinds whose approximate value is clearly smaller are not evaluated.
        """
        counts = self._users * np.eye(self._count, self._count + 1)
        rough = [self._with_gains(_excess.rough_excess(self._values, self._masses, self._starts, row), row) for row in counts]
        return largest_of(rough, self.alike)

    def largest(self, start: float, tolerance: float, most: int) -> float:
        """Return an upper bound of the largest log E S_+ over all numbers of users of each kind.

        Parameters
        ----------
        start : float
            The largest value of log E S_+ that is known.
        tolerance : float
            Cells whose bound exceeds the largest known value by at most `tolerance` are not divided.
        most : int
            Largest number of evaluations. When it is reached, the largest bound of a cell is returned.

        Returns
        -------
        float
            At least `start` + `tolerance`.
        """
        self._tilt = _tilted(self._laws[:-1], self._log_gains[:-1], self._users)
        whole = (0,) * self._count, (self._users,) * self._count
        # If a rough bound suffices, the Berry-Esseen bound is used instead of a search, unless it is much larger than `start`.
        if tolerance >= 0.1 and self._tilt is not None:
            quick = self._tilt.log_excess(*whole, self._users)
            if quick <= start + 0.3:
                return quick
        # The relative gap of the kernel is a share of the tolerance. Above 1e-3 no run time is saved, and bounds of heavy tails are
        # larger by 1 to 3 in the logarithm.
        goal, rtol = start + tolerance, min(max(0.05 * tolerance, 1e-4), 1e-3)
        # One search evaluates at most 2**20 atoms, about 0.5 s, and at most 400 cells of more than three kinds.
        most = min(most, TABLE_SIZE // sum(law[0].size for law in self._laws))
        most = most if self._count <= 3 else min(most, 400)
        bounds: dict[Cell, float] = {}
        parents: dict[Cell, Cell] = {}
        calls, look, before = 0, self.evaluations + 25, math.inf

        def measure(cells: Sequence[Cell], enough: float) -> list[tuple[float, float, float]]:
            nonlocal goal, calls, before
            goal, calls = enough, calls + 1
            values = [-math.inf] * len(cells)
            # Every eighth call also evaluates one dataset. If it is worse than every dataset with users of one kind (`start`), the
            # goal of the search is raised.
            if calls % 8 == 1 and calls > 1:
                values[0] = self.log_excess(_inside(*parents[cells[0]], self._users))
                goal = max(goal, values[0] + tolerance)
            for place, (low, high) in enumerate(cells):
                bound = math.inf if self._tilt is None else self._tilt.log_excess(low, high, self._users)
                if bound > goal:
                    bound = min(bound, self.log_excess(low, rtol))
                    values[place] = bound if low == high else values[place]
                bounds[low, high] = bound
            before = bounds[whole] - goal if calls == 1 else before
            return [(-math.inf, value, bounds[cell]) for value, cell in zip(values, cells)]

        def split(cell: Cell) -> list[Cell]:
            low, high = cell
            bound = bounds.pop(cell)
            if bound <= goal or low == high:
                return []
            wide = max(range(self._count), key=lambda j: high[j] - low[j])
            edges = self._divided(low[wide], high[wide], (bound - goal) / tolerance)
            parts = (_tightened(_put(low, wide, first), _put(high, wide, end - 1), self._users) for first, end in pairwise(edges))
            pieces = [part for part in parts if part is not None]
            parents.update((piece, cell) for piece in pieces)
            return pieces

        def stop(bound: float) -> bool:
            nonlocal look, before
            # With more than eight kinds, most cells may be too wide for their bounds to fall below the goal within the limit of
            # evaluations. The search ends if 25 evaluations reduce the gap to the goal by less than a twentieth.
            if self._count > 8 and self.evaluations >= look:
                if bound - goal > 0.95 * before:
                    return True
                look, before = self.evaluations + 25, bound - goal
            return self.evaluations >= most

        found = maximum([whole], measure, split, tolerance=lambda best: tolerance, known=start, stop=stop)
        # Usually start + tolerance is returned. Unlike the largest bound of a cell, it is a smooth function of eps, so that
        # searches for eps end sooner.
        return max(start + tolerance, found.upper)

    def _divided(self, low: int, high: int, excess: float) -> list[int]:
        """Return the first numbers of the parts into which the range low..high is divided, and high + 1.

        `excess` is the distance of the bound of the range above the goal, in units of the tolerance. With two kinds, a part of
        length l has l unassigned users, and the distance of its bound from the value of a dataset in it is about proportional to l.
        This value is at most one tolerance below the goal if the dataset is as bad as the worst known one. So a part that is
        1/(excess + 1) of the range has a bound of at most about the goal.
        """
        parts = min(max(math.ceil(excess) + 1, 2), 8) if self._count == 2 else 2
        parts = min(parts, high - low + 1)
        return [low + (high + 1 - low) * i // parts for i in range(parts + 1)]


@dataclass(frozen=True)
class _BerryEsseen:
    """The moments of each kind in the Berry-Esseen bound at one theta, and the log of n E X_+ over the dropped outputs.

    The columns of `moments` are log E e^(theta X), and the means, variances and third absolute central moments of X under the
    distributions tilted by theta.
    """

    theta: float
    moments: FloatArray
    log_gain: float
    loss_error: float

    def log_excess(self, low: Numbers, high: Numbers, users: int) -> float:
        """Return the Berry-Esseen upper bound of log E S_+ for all numbers of users in a cell (`c_log_cell` has the proof)."""
        most = _excess.log_cell(self.moments, self.theta, low, high, users) + self.loss_error
        return float(np.logaddexp(most, self.log_gain)) if self.log_gain > -math.inf else most


def _tilted(laws: Sequence[tuple[FloatArray, FloatArray]], log_gains: Sequence[float], users: int) -> _BerryEsseen | None:
    """Return the moments of the kinds, tilted at the saddle point of the kind with the largest Chernoff bound of E S_+.

    The result is None if X is never positive for some kind, or if theta |X| exceeds 700, where e^(theta X) would overflow.
    """
    full = [(values, np.exp(log_mass)) for values, log_mass in laws]
    if not all(float(values.max()) > 0 for values, _ in full):
        return None
    theta, largest = 0.0, -math.inf
    for values, mass in full:
        point = saddle(values, mass, users)
        value = users * log_moment(values, mass, point) - math.log(point)
        if value > largest:
            theta, largest = point, value
    if not max(theta * float(np.abs(values).max()) for values, _ in full) < 700:
        return None
    moments, size = np.empty((len(full), 4)), 0.0
    for row, (values, mass) in zip(moments, full):
        cumulant = log_moment(values, mass, theta)
        weight = mass * np.exp(theta * values - cumulant)
        mean = weight @ values
        centred = np.abs(values - mean)
        row[:] = cumulant, mean, weight @ centred**2, weight @ centred**3 * (1 + 1e-9)
        size = max(size, float(weight @ np.abs(values)))
    # Values and masses have errors of a few ulp, and each cumulant is a sum of `terms` terms.
    terms = max(values.size for values, _ in full)
    loss_error = 1e-9 + ULP * users * (64 + 2 * terms) * (theta * size + float(np.abs(moments[:, 0]).max()))
    gain = max(log_gains)
    log_gain = gain + math.log(users) if gain > -math.inf else gain
    return _BerryEsseen(theta, moments, log_gain, loss_error)


def _put(numbers: Numbers, place: int, number: int) -> Numbers:
    """Return `numbers` with the entry at index `place` replaced by `number`."""
    return (*numbers[:place], number, *numbers[place + 1 :])


def _inside(low: Numbers, high: Numbers, users: int) -> Numbers:
    """Return a dataset inside a cell: numbers of users of each kind that add up to `users`.

    They are low + t (high - low), with the same t for each kind, up to rounding.
    """
    free, width = users - sum(low), sum(high) - sum(low)
    numbers = [a + free * (b - a) // width for a, b in zip(low, high)]
    for j in range(len(numbers)):
        numbers[j] += min(users - sum(numbers), high[j] - numbers[j])
    return tuple(numbers)


def _tightened(low: Numbers, high: Numbers, users: int) -> Cell | None:
    """Return the smallest cell that contains all datasets of this cell, or None if the cell contains no dataset.

    A dataset is a vector of numbers of users of each kind that add up to `users`.
    """
    least, most = sum(low), sum(high)
    if least > users or most < users:
        return None
    # The other kinds have between least - a and most - b users, and each number in between occurs.
    above, below = users - most, users - least
    return tuple([max(a, above + b) for a, b in zip(low, high)]), tuple([min(b, below + a) for a, b in zip(low, high)])


def without_rare_gains(
    values: FloatArray, log_mass: FloatArray, log_most: float
) -> tuple[tuple[FloatArray, FloatArray], float]:
    """Return the distribution of X with its largest values replaced by 0, and the log of E X_+ over the dropped values.

    This log is at most `log_most`. Values are dropped because the kernel takes ten times as long if rare values are much larger
    than typical sums.
    """
    order = np.argsort(-values, kind="stable")
    with np.errstate(divide="ignore"):
        log_gain = np.logaddexp.accumulate(np.where(values > 0, log_mass + np.log(np.maximum(values, 0.0)), -np.inf)[order])
    left = int(np.searchsorted(log_gain, log_most, side="right"))
    if left == 0 or values[order[0]] <= 0:
        return (values, log_mass), -math.inf
    kept = np.ones(values.size, dtype=bool)
    kept[order[:left]] = False
    return at_zero(values, log_mass, kept), float(log_gain[left - 1]) + 8 * ULP * (values.size + abs(float(log_gain[left - 1])))
