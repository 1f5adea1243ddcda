r"""Users in bins of like budgets: a clone sum over some thousand groups instead of millions, with a bound of what that costs.

Of each family the logarithm of the rate is concave in the user's own budget, and the rate over the budget falls. So within a bin
the rates lie above the exponential of the chord of their logarithms, and below that of the neighbouring chords, prolonged, or of
the line through 0 and the lower end. The clone sum falls in every rate: putting the rates on such a curve rounds it up, or down.

Then all rates of a bin are replaced by their mean. The sum is affine in each chance and symmetric: replacing two chances p, q by
others of the same sum that are closer adds :math:`d\,\mathbb{E}\,\Delta^2 h(C')`, d the increase of pq, h(c) the summand, C' the
clones without the two users. Such steps make all equal, and their d sum up to S/2, S the squared distances of the chances from
their mean. Two bounds of :math:`|\mathbb{E}\,\Delta^2 h(C')|`:

* h falls and h(c + 1) >= h(c)/4: it is at most :math:`\mathbb{E}\,h(C') \le (1 - \tfrac34 p)^{-2}` times the sum itself;
* :math:`h(c) \le e^{b - kc}/(c+1)`. Tilted by :math:`e^{-kc}`, the law of C' is Poisson-binomial, of some variance V, so that
  :math:`|\varphi(t)| \le e^{-2V \sin^2(t/2)}`, its pmf w has :math:`\max w \le 0.63/\sqrt V`, :math:`\max|\Delta w| \le \pi/(4V)`,
  and its second differences change sign twice (it is a Polya frequency sequence). With T the shift and :math:`a = 1 - e^{-k}`,
  :math:`\|(1 - e^{-k} T)^2 w\|_1 \le a^2 + 4a \max w + \pi/V`. Below half the mean, where 1/(c+1) is larger, there is a part
  :math:`e^{-0.153\,\mathbb{E} C'}` (Chernoff).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from shufflebounds._cached import cached_property
from shufflebounds._types import ULP, FloatArray, Interval
from shufflebounds.shuffle._clones.law import CloneLaw

__all__ = ["BinnedLaw", "Bins"]

NO_COST = 1e-9
"""A smaller bound of the cost need not be bettered."""

FEW = 32
"""Fewer bins are too coarse for the rates in a window."""

Rates = Callable[[FloatArray], FloatArray]


@dataclass(kw_only=True)
class BinnedLaw(CloneLaw):
    """The clones of users in bins at their mean rates; `log_sum` and `log_alone` hold for any rates in the bins of that mean.

    `least` and `largest` are the ends of each bin's rates, `users` how many it holds.
    """

    least: FloatArray
    largest: FloatArray
    users: FloatArray

    @classmethod
    def of(cls, mean: FloatArray, least: FloatArray, largest: FloatArray, users: FloatArray) -> Self:
        """Return the law of these mean rates."""
        return cls(mean, users, least=np.minimum(least, 0.5), largest=np.minimum(largest, 0.5), users=users)

    @cached_property
    def _half_spread(self) -> float:
        # a variance is at most a quarter of the square of the width, and a chance twice a rate
        return 0.5 * float(self.users @ (self.largest - self.least) ** 2) * (1 + 1e-9)

    @cached_property
    def _plain_cost(self) -> float:
        return self._half_spread / (1 - 1.5 * float(self.largest.max(initial=0.0))) ** 2

    @property
    def log_alone(self) -> float:
        with np.errstate(divide="ignore", invalid="ignore"):
            return float(np.log1p(-2 * self.largest[self.users > 0]) @ self.users[self.users > 0])

    def log_sum(self, u: float, v: float) -> Interval:
        lower, upper = super().log_sum(u, v)
        cost = self._plain_cost
        if cost > NO_COST and lower > -math.inf:
            cost = min(cost, self._log_cost(*self._decay(u, v), lower))
        return Interval(lower - cost, upper + cost)

    def _log_cost(self, decay: float, beyond: float, log_sum: float) -> float:
        """Return the second bound of the cost: terms are at most e^(beyond - decay c)/(c + 1), the sum at least e^log_sum."""
        if not decay >= 0:
            return math.inf
        a, falls = -math.expm1(-decay), math.exp(-decay)
        chance = np.stack([2 * self.least, 2 * self.largest])
        scale = 1 - a * chance
        var = float(self.users @ (falls * chance * (1 - chance) / scale**2).min(axis=0)) - 0.5
        mean = float(self.users @ (falls * chance[0] / scale[0])) - 2
        if not (var > 1 and mean > 1):
            return math.inf
        norm = a * a + 2.52 * a / math.sqrt(var) + math.pi / var
        norm = norm / (mean / 2 + 1) + 4 * math.exp(-0.153 * mean)
        log_mass = float(np.log1p(-a * self.chances) @ self.counts) - 2 * math.log(float(scale.min()))
        rest = self._half_spread * norm * math.exp(min(beyond + log_mass - log_sum, 700.0)) * (1 + 1e-9)
        # log(1 - rest) moves further than log(1 + rest): it serves both sides
        return -math.log1p(-rest) if rest < 1 else math.inf


@dataclass(frozen=True, eq=False)
class Bins:
    """Neighbouring budgets together: where each bin starts, its ends, how many users, where between the ends their mean lies."""

    starts: NDArray[np.intp]
    low: FloatArray
    high: FloatArray
    counts: FloatArray
    part: FloatArray
    loss_error: FloatArray

    @classmethod
    def of(cls, budgets: FloatArray, counts: FloatArray, size: int, *, windowed: bool = False) -> Self:
        """Return about `size` bins of increasing budgets, alike in their numbers of budgets and none wide.

        Windowed: widths count relative to the budget, and to its distance from the smallest. In a window that serves a user, the
        rates of those of larger budgets fall off with their ratio to hers, and who has the smallest hides among few.
        """
        with np.errstate(over="ignore"):
            ratio = np.minimum(budgets / budgets[0], 1e300)
        scales = [np.log(ratio), np.log1p(1e3 * (ratio - 1))] if windowed and size >= FEW else [budgets / (1 + budgets)]
        share = np.linspace(0, 1, budgets.size)
        for scale in scales:
            share += (scale - scale[0]) * (len(scales) / max(scale[-1] - scale[0], 1e-300))
        cell = np.floor(share * (size / (1 + len(scales) ** 2)))
        return cls._from(np.flatnonzero(np.r_[True, cell[1:] > cell[:-1]]), budgets, counts)

    @classmethod
    def _from(cls, starts: NDArray[np.intp], budgets: FloatArray, counts: FloatArray) -> Self:
        sizes = np.diff(starts, append=budgets.size)
        low, high = budgets[starts], budgets[starts + sizes - 1]
        users = np.add.reduceat(counts, starts)
        above = np.add.reduceat((budgets - np.repeat(low, sizes)) * counts, starts)
        width = np.maximum(high - low, 1e-300)
        part = np.minimum(above / (users * width), 1.0)
        return cls(starts, low, high, users, part, np.minimum(4 * ULP * (sizes + 8.0), 1.0))

    def upto(self, i: int, budgets: FloatArray, counts: FloatArray) -> Self:
        """Return the bins of the users up to position i."""
        k = self.place(i)
        start = int(self.starts[k])
        last = self._from(np.zeros(1, dtype=np.intp), budgets[start : i + 1], counts[start : i + 1])
        rest = (np.append(old[:k], new) for old, new in zip(self._arrays[1:], last._arrays[1:]))
        return type(self)(self.starts[: k + 1], *rest)

    @property
    def middle(self) -> FloatArray:
        """The mean budget of each bin, about."""
        return self.low + self.part * (self.high - self.low)

    @property
    def _arrays(self) -> tuple[FloatArray, ...]:
        return self.starts.astype(np.float64), self.low, self.high, self.counts, self.part, self.loss_error

    def place(self, i: int) -> int:
        """Return the bin of position i."""
        return int(np.searchsorted(self.starts, i, side="right")) - 1

    def _ends(self, rates: Rates) -> tuple[FloatArray, FloatArray]:
        values = rates(np.concatenate([self.low, self.high]))
        return values[: self.low.size], values[self.low.size :]

    def rounded_down(self, rates: Rates, i: int, j: int, own: float | None = None) -> BinnedLaw:
        """Return the clones at rates that are at most the users' own, without the user of largest rate in positions i..j.

        Of a single position `own` is the budget.
        """
        first, last = self._ends(rates)
        low, high = np.minimum(first, last), np.maximum(first, last)
        with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
            logs, rise = np.log(first), np.log(last) - np.log(first)
            chord = np.exp(logs + self.part * rise - np.abs(rise) * self.loss_error)
        # next to a rate of 0 there is no chord
        high = np.where(low > 0, high, 0.0)
        mean = np.where(low > 0, np.clip(chord * (1 - 8 * ULP * (4 + np.abs(logs))), low, high), 0.0)
        begin, end = self.place(i), self.place(j)
        taken = begin + int(np.argmax(high[begin : end + 1]))
        rate = float(high[taken]) if own is None else float(rates(np.array([own]))[0])
        return self._without(taken, rate, mean, low, high)

    def rounded_up(self, rates: Rates, i: int, own: float) -> BinnedLaw:
        """Return the clones at rates that are at least the users' own, without the user at position i, whose budget is `own`."""
        first, last = self._ends(rates)
        width = self.high - self.low
        with np.errstate(divide="ignore", invalid="ignore", under="ignore", over="ignore"):
            logs, ends = np.log(first), np.log(last)
            # a slope is as wrong as the logarithms are, over the distance
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
        """Return what is left when one user of at least, or at most, this rate goes."""
        counts, many = self.counts.copy(), float(self.counts[taken])
        counts[taken] -= 1
        if many > 1:
            mean[taken] = min(max(mean[taken] - (rate - mean[taken]) / (many - 1), low[taken]), high[taken], 0.5)
        return BinnedLaw.of(mean, low, high, counts)
