r"""Bins of similar budgets: the clone sum over a few thousand bins instead of millions of users, with a bound of the error.

A user with budget b sends a clone of the target's message with probability 2 r(b); r is the rate (`clone_families`). In every
family log r is concave in b and r(b)/b does not increase. Within a bin, log r is therefore at least its linear interpolation
between the ends of the bin, and at most its linear extrapolation from the neighbouring bins; and r is at most the line through the
origin and the point at the lower end of the bin. The clone sum does not increase in any rate: smaller rates give an upper bound of
the sum, larger rates a lower bound.

After this rounding, all rates of a bin are replaced by their mean, and the change of the clone sum is bounded. The clone sum
:math:`\mathbb{E}\,h(C)` is symmetric in the users' probabilities to be a clone, and affine in each. Replacing two probabilities p,
q by two that are closer to each other and have the same sum changes the clone sum by :math:`d\,\mathbb{E}\,\Delta^2 h(C')`. Here d
is the increase of pq, h(c) the summand for c clones, :math:`\Delta^2` the second difference, and C' the number of clones among the
users other than these two. A sequence of such steps makes all probabilities of a bin equal; the total of d is S/2, where S is the
sum of squared distances of the probabilities from their mean. Two bounds of :math:`|\mathbb{E}\,\Delta^2 h(C')|` are used:

* The summand h decreases, and h(c + 1) >= h(c)/4. So :math:`|\mathbb{E}\,\Delta^2 h(C')|` is at most :math:`\mathbb{E}\,h(C')`, and
  this is at most :math:`(1 - \tfrac34 p)^{-2}` times the clone sum, where p is the largest probability;
* :math:`h(c) \le e^{b - kc}/(c+1)`, with k and b from ``CloneLaw._decay``. The distribution of C' tilted by :math:`e^{-kc}` is
  Poisson-binomial. Let V be its variance; then its characteristic function has
  :math:`|\varphi(t)| \le e^{-2V \sin^2(t/2)}`, its pmf w has :math:`\max w \le 0.63/\sqrt V` and
  :math:`\max|\Delta w| \le \pi/(4V)`, and the second differences of w change sign twice (w is a Polya frequency sequence). With
  the shift :math:`(Tw)(c) = w(c - 1)` and :math:`a = 1 - e^{-k}`,
  :math:`\|(1 - e^{-k} T)^2 w\|_1 \le a^2 + 4a \max w + \pi/V`. The event that C' is below half its mean, where 1/(c+1) is larger,
  adds at most a term with the factor :math:`e^{-0.153\,\mathbb{E} C'}` (Chernoff).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import SAME_LOG, TABLE_SIZE
from shufflebounds._base.quadrature import capped_exp, total_of
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._core import _clones
from shufflebounds._engines.clones.law import CloneLaw

__all__ = ["BinnedLaw", "BudgetBins"]

Rates = Callable[[FloatArray], FloatArray]


@dataclass(kw_only=True)
class BinnedLaw(CloneLaw):
    """Distribution of the number of clones, where all users of a bin have the bin's mean rate.

    The bounds of `log_sum` and `log_alone` are valid for all rates of the users that lie in the interval [smallest, largest] of
    their bin and have the mean rate of the bin. `users` is the number of users in each bin.
    """

    smallest: FloatArray
    largest: FloatArray
    users: FloatArray

    @classmethod
    def of(cls, mean: FloatArray, smallest: FloatArray, largest: FloatArray, users: FloatArray) -> Self:
        """Return the distribution for bins with these mean, smallest and largest rates and these numbers of users."""
        return cls(mean, users, smallest=np.minimum(smallest, 0.5), largest=np.minimum(largest, 0.5), users=users)

    @cached_property
    def _half_spread(self) -> float:
        """An upper bound of S/2, half the sum of squared distances of probabilities from their mean (module docstring)."""
        # The variance of numbers in an interval is at most width^2/4, and the probability to send a clone is twice the rate. So
        # S is at most the sum over the bins of users * (2 width)^2/4.
        return 0.5 * float(self.users @ (self.largest - self.smallest) ** 2) * (1 + 1e-9)

    @cached_property
    def _simple_error(self) -> float:
        """A bound of the error of the log of the clone sum, by the largest probability p (first bound of the module docstring)."""
        return self._half_spread / (1 - 1.5 * float(self.largest.max(initial=0.0))) ** 2

    @property
    def log_alone(self) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return total_of(np.log1p(-2 * self.largest[self.users > 0]), self.users[self.users > 0])

    def log_sum(self, u: float, v: float) -> Interval:
        lower, upper = super().log_sum(u, v)
        error = self._simple_error
        if error > SAME_LOG and lower > -math.inf:
            error = min(error, self._tilted_error(*self._decay(u, v), lower))
        return Interval(lower - error, upper + error)

    def _tilted_error(self, decay: float, beyond: float, log_sum: float) -> float:
        """Return a bound of the error of the log of the clone sum, by a tilted distribution (second bound of the module docstring).

        The summand for c clones is at most e^(beyond - decay c)/(c + 1), and the clone sum is at least e^log_sum.
        """
        if not decay >= 0:
            return math.inf
        a = -math.expm1(-decay)
        var, mean, smallest = _clones.tilted_bins(self.smallest, self.largest, self.users, decay)
        # C' is the number of clones without two users, each of whom adds at most 1/4 to the variance and 1 to the mean of the
        # number. So 1/2 and 2 are subtracted.
        var, mean = var - 0.5, mean - 2
        if not (var > 1 and mean > 1):
            return math.inf
        norm = a * a + 2.52 * a / math.sqrt(var) + math.pi / var
        norm = norm / (mean / 2 + 1) + 4 * math.exp(-0.153 * mean)
        log_mass = total_of(np.log1p(-a * self.probs), self.counts) - 2 * math.log(smallest)
        rest = self._half_spread * norm * capped_exp(beyond + log_mass - log_sum) * (1 + 1e-9)
        # `rest` is a bound of the relative error of the clone sum. As |log(1 - rest)| > log(1 + rest), the result is valid for the
        # upper and for the lower bound.
        return -math.log1p(-rest) if rest < 1 else math.inf


@dataclass(frozen=True, eq=False)
class BudgetBins:
    """Bins of neighbouring budgets; all fields are arrays with one entry for each bin.

    The distinct budgets of all users are sorted; `starts` has the index of the first budget of each bin in this list. `low` and
    `high` are the smallest and the largest budget of the bin, `counts` its number of users, and low + part * (high - low) the mean
    budget of these users. `loss_error` bounds the rounding error of `part`.
    """

    starts: NDArray[np.intp]
    low: FloatArray
    high: FloatArray
    counts: FloatArray
    part: FloatArray
    loss_error: FloatArray

    @classmethod
    def of(cls, budgets: FloatArray, counts: FloatArray, sizes: Sequence[int], *, windowed: bool = False) -> list[Self]:
        """Return a division of the increasing budgets into about n bins, for each number n in `sizes`.

        The edges of the bins balance the number of distinct budgets in a bin and the width of the bin. For a family with window
        decompositions (`windowed`, see `clone_families`) the width is measured in log(budget) and in log(1 + 1000 (budget/smallest
        - 1)), because a user's rate depends on the ratio of this user's budget to the target's. A target with one of the smallest
        budgets has few clones, so an error of a rate matters most there, and the bins near the smallest budget are narrow.
        """
        # With fewer than 32 bins, narrow bins near the smallest budget would leave too few bins for the other budgets.
        windowed = windowed and min(sizes) >= 32

        def widths(part: FloatArray) -> list[FloatArray]:
            if not windowed:
                return [part / (1 + part)]
            with np.errstate(over="ignore"):
                ratio = np.minimum(part / budgets[0], 1e300)
            return [np.log(ratio), np.log1p(1e3 * (ratio - 1))]

        first_widths, last_widths = (widths(end) for end in (budgets[:1], budgets[-1:]))
        number, starts, last = len(first_widths), [np.zeros(1, dtype=np.intp)] * len(sizes), [0.0] * len(sizes)
        step = 1 / max(budgets.size - 1, 1)
        # The budgets are read in parts of TABLE_SIZE, because temporary arrays for all budgets would take ten times their memory.
        for first in range(0, budgets.size, TABLE_SIZE):
            part = budgets[first : first + TABLE_SIZE]
            share = np.arange(first, first + part.size) * step
            if first + part.size == budgets.size > 1:
                share[-1] = 1.0
            for width, low, high in zip(widths(part), first_widths, last_widths):
                share += (width - low[0]) * (number / max(high[0] - low[0], 1e-300))
            for i, size in enumerate(sizes):
                cell = np.floor(share * (size / (1 + number**2)))
                starts[i] = np.append(starts[i], first + np.flatnonzero(np.diff(cell, prepend=last[i]) > 0))
                last[i] = float(cell[-1])
        return [cls._from(one, budgets, counts) for one in starts]

    @classmethod
    def _from(cls, starts: NDArray[np.intp], budgets: FloatArray, counts: FloatArray) -> Self:
        """Return the bins whose first budgets have the indices `starts` in the sorted budgets."""
        sizes = np.diff(starts, append=budgets.size)
        low, high = budgets[starts], budgets[starts + sizes - 1]
        users, above = np.empty((2, starts.size))
        edges = np.append(np.unique(np.searchsorted(starts, np.arange(0, budgets.size, TABLE_SIZE))), starts.size)
        for i, j in pairwise(edges.tolist()):
            part = slice(int(starts[i]), int(starts[j - 1] + sizes[j - 1]))
            at = starts[i:j] - starts[i]
            users[i:j] = np.add.reduceat(counts[part], at)
            above[i:j] = np.add.reduceat((budgets[part] - np.repeat(low[i:j], sizes[i:j])) * counts[part], at)
        width = np.maximum(high - low, 1e-300)
        part_of = np.minimum(above / (users * width), 1.0)
        return cls(starts, low, high, users, part_of, np.minimum(4 * ULP * (sizes + 8.0), 1.0))

    def upto(self, i: int, budgets: FloatArray, counts: FloatArray) -> Self:
        """Return the bins of the users with the first i + 1 distinct budgets; the last bin ends after budget i."""
        k = self.place(i)
        start = int(self.starts[k])
        last = self._from(np.zeros(1, dtype=np.intp), budgets[start : i + 1], counts[start : i + 1])
        rest = (np.append(old[:k], new) for old, new in zip(self._arrays[1:], last._arrays[1:]))
        return type(self)(self.starts[: k + 1], *rest)

    @property
    def middle(self) -> FloatArray:
        """The mean budget of each bin, up to rounding."""
        return self.low + self.part * (self.high - self.low)

    @property
    def _arrays(self) -> tuple[FloatArray, ...]:
        """All fields, in the order of the constructor."""
        return self.starts.astype(np.float64), self.low, self.high, self.counts, self.part, self.loss_error

    def place(self, i: int) -> int:
        """Return the index of the bin that contains the distinct budget with index i."""
        return int(self.starts.searchsorted(i, side="right")) - 1

    def _ends(self, rates: Rates) -> tuple[FloatArray, FloatArray]:
        """Return the rates at the smallest and at the largest budget of each bin."""
        values = rates(np.concatenate([self.low, self.high]))
        return values[: self.low.size], values[self.low.size :]

    def rounded_down(self, rates: Rates, i: int, j: int, own: float | None = None) -> BinnedLaw:
        """Return the distribution of the number of clones with each rate rounded down, for an upper bound of delta.

        The target has one of the budgets i..j and is not counted among the other users. If the target's budget `own` is not given,
        the user with the largest rate is omitted instead; the bound is then valid for every target in i..j.
        """
        first, last = self._ends(rates)
        low, high = np.minimum(first, last), np.maximum(first, last)
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            logs, rise = np.log(first), np.log(last) - np.log(first)
            chord = np.exp(logs + self.part * rise - np.abs(rise) * self.loss_error)
        # If the rate at one end of a bin is 0, its logarithm cannot be interpolated, and all rates of the bin are rounded down to
        # 0.
        high = np.where(low > 0, high, 0.0)
        mean = np.where(low > 0, np.clip(chord * (1 - 8 * ULP * (4 + np.abs(logs))), low, high), 0.0)
        begin, end = self.place(i), self.place(j)
        taken = begin + int(np.argmax(high[begin : end + 1]))
        rate = float(high[taken]) if own is None else float(rates(np.array([own]))[0])
        return self._without(taken, rate, mean, low, high)

    def rounded_up(self, rates: Rates, i: int, own: float) -> BinnedLaw:
        """Return the distribution of the number of clones with each rate rounded up, for a lower bound of delta.

        The target has budget `own`, the distinct budget with index i, and is not counted among the other users.
        """
        first, last = self._ends(rates)
        width = self.high - self.low
        with np.errstate(divide="ignore", invalid="ignore", under="ignore", over="ignore"):
            logs, ends = np.log(first), np.log(last)
            # `left` and `right` are the differences of log rates from the bin before to this bin, and from this bin to the next,
            # changed by their rounding errors such that the extrapolated rates are larger.
            left = np.diff(logs, prepend=np.nan) + 1e-13 * (1 + np.abs(logs))
            right = np.diff(ends, append=np.nan) - 1e-13 * (1 + np.abs(ends))
            rise = np.exp(left * (width / np.diff(self.low, prepend=np.nan)))
            fall = np.exp(-right * (width / np.diff(self.high, append=np.nan)))
            lines = [(first, first * self.high / self.low), (first, first * rise), (last * fall, last)]
            means = np.stack([v + self.part * (w - v) + np.abs(w - v) * self.loss_error for v, w in lines])
        means = np.where(np.isfinite(means), means, np.inf) * (1 + 1e-14)
        best = np.argmin(means, axis=0)
        v, w = (np.choose(best, [line[end] for line in lines]) for end in (0, 1))
        mean = np.minimum(np.take_along_axis(means, best[None], axis=0)[0] + 1e-300, 0.5)
        rate = float(rates(np.array([own]))[0])
        return self._without(self.place(i), rate, mean, np.minimum(v, w), np.maximum(v, w) * (1 + 1e-14) + 1e-300)

    def _without(self, taken: int, rate: float, mean: FloatArray, low: FloatArray, high: FloatArray) -> BinnedLaw:
        """Return the distribution without the target, who is in the bin with index `taken` and has the rate `rate`.

        The mean rate of this bin is then that of its other users.
        """
        counts, users = self.counts.copy(), float(self.counts[taken])
        counts[taken] -= 1
        if users > 1:
            mean[taken] = min(max(mean[taken] - (rate - mean[taken]) / (users - 1), low[taken]), high[taken], 0.5)
        return BinnedLaw.of(mean, low, high, counts)
