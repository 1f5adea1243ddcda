"""The hockey-stick divergence of a sum of privacy losses of randomized responses.

By the theorems of Kairouz, Oh and Viswanath and of Murtagh and Vadhan, this is the delta of the optimal composition of pure
mechanisms.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import search as _search
from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import LARGEST_EXPONENT, MOST_ENUMERATED, NEGLIGIBLE, NEGLIGIBLE_ROUGHLY, TABLE_SIZE
from shufflebounds._base.quadrature import log_sum
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._core._binomial import binom_logcdf, binom_logpmf, binom_logsf
from shufflebounds._core._special import log_add_exp
from shufflebounds._core._tradeoff import ratio_argsort, tradeoff_knots
from shufflebounds._engines.compose.composer import Composer
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.lattice import common_step
from shufflebounds._losses.release import DominatingPairInfo, Losses

__all__ = ["BudgetSum"]


WHOLE = 64
"""Largest number of equal randomized responses for which every number of adverse answers (loss -eps) is enumerated. For more
responses only a range of these numbers is enumerated. Raised: longer run time. Lowered: the range of smaller groups is truncated,
too."""


class _Half(NamedTuple):
    """The distribution of the total loss of one half of the groups: decreasing losses, log P(loss), and prefix sums."""

    loss: FloatArray
    log_p: FloatArray
    log_mass: FloatArray        # log of the mass under Q of the first i losses, i = 0, 1, ...
    log_hockey_stick: FloatArray       # log of the hockey-stick divergence of this half at eps = loss[i]


class _AdverseRange(NamedTuple):
    """The enumerated numbers first..last of adverse answers (loss -eps_j) of each group, and the log of the truncated mass."""

    first: NDArray[np.int64]
    last: NDArray[np.int64]
    log_dropped: float


class BudgetSum:
    r"""The privacy loss of independent randomized responses, ``counts[j]`` of them with budget ``eps[j]``.

    Definition  L = sum_j eps_j (c_j - 2 M_j), M_j ~ Bin(c_j, 1/(1 + e^eps_j)) under P; Q(l) = e^-l P(l).
    Computes    log E_P max(0, 1 - e^(e - L)), the hockey-stick divergence of (P, Q) at e >= 0, as a lower and an upper bound.
    Method      The groups are divided into two halves, and the total losses of each half are enumerated and sorted. The divergence
                H of the second half at any level e is a sum of two positive terms from prefix sums: for neighbouring losses
                a > e >= b, H(e) = H(a) + (1 - e^(e-a)) e^a Q(loss >= a). The divergence of the sum is the mean, over the losses l
                of the first half under P, of H(e - l). For a group of more than WHOLE responses, only outcomes near the mean of
                the distribution tilted by e^(theta L), theta >= 0, are enumerated. The other outcomes contribute to the divergence
                at most e^(K(theta) - theta e) times their tilted mass, where K is the cumulant generating function of L. This
                term is added to the upper bound.
    Fallbacks   If a half would have more than 2**20 losses, the responses are composed on a grid of losses. If the grid would take
                more than 10 s, the upper bound is that of the best exponential moment (`_renyi`), and for the lower bound every
                budget is rounded down to one of two values.
    Error       4e-14 per group from the kernels, 4 ulp of every logarithm, and the rounding of 1/(1 + e^eps), which matters far
                from the mean. Rounding of the losses is covered by a shift of e. All errors are rounded conservatively.
    Cost        0.4 s for 2**20 losses in each half, the largest number; on the grid 0.1 to a few seconds.
    """

    def __init__(self, eps: FloatArray, counts: NDArray[np.int64]) -> None:
        keep = (eps > 0) & (counts > 0)
        self.eps, where = np.unique(eps[keep], return_inverse=True)
        self.counts = np.bincount(where, weights=counts[keep], minlength=self.eps.size).astype(np.int64)
        # The sum of all budgets is computed exactly, because delta is exactly 0 at an eps equal to this sum.
        self._pure = _exact_sum(self.eps.tolist(), self.counts.tolist())
        self.pure = float(self._pure)
        self._kept: tuple[_AdverseRange, _Half, _Half] | None = None

    @cached_property
    def _coarse(self) -> BudgetSum | None:
        """The sum with every budget rounded down to one of two values, or None if the exact sum is fast enough."""
        large = int((self.counts > WHOLE).sum())
        # On the grid, a group of more than WHOLE mechanisms takes as long as 50 smaller groups; 1250 smaller groups take about 10
        # s.
        if 50 * large + (self.eps.size - large) < 1250:
            return None
        # Choose the two values for which the rounded losses keep most of their variance.
        counts = np.cumsum(self.counts[::-1])[::-1]
        split = int(np.argmax(counts * (self.eps - self.eps[0]) * (self.eps + self.eps[0])))
        return BudgetSum(self.eps[[0, split]], np.array([self.counts[:split].sum(), self.counts[split:].sum()]))

    def log_excess(self, e: float) -> Interval:
        """Return bounds of the log hockey-stick divergence of the sum at the privacy loss e >= 0."""
        if Fraction(e) >= self._pure:
            return Interval(-math.inf, -math.inf)
        # For more than about 1e10 equal mechanisms only a shorter range fits into a half. The grid would be less accurate.
        for depth in (NEGLIGIBLE, NEGLIGIBLE_ROUGHLY, 7.0)[: 3 if self.eps.size <= 2 else 1]:
            window = self._window(e, depth)
            halves = self._halves(window)
            if halves is not None:
                break
        if halves is None and self._coarse is not None:
            return Interval(self._coarse.log_excess(e)[0], self._renyi(e))
        if halves is None:
            return self._on_a_grid(e)
        left, right = halves
        reach = float(left.loss[0] - left.loss[-1] + right.loss[0] - right.loss[-1]) + self.pure * (window.log_dropped == -math.inf)
        groups = self.eps.size
        shift = ULP * (groups + 2) * (float(np.abs(left.loss[[0, -1]]).max() + np.abs(right.loss[[0, -1]]).max()) + e)
        lower, upper = (_log_divergence(left, right, e + side * shift) for side in (1.0, -1.0))
        depth = -float(left.log_p.min() + right.log_p.min()) if window.log_dropped == -math.inf else -upper
        error = 4e-14 * groups + 4 * ULP * (max(depth, -upper, 1.0) + reach + e)
        error += _chance_error(self.eps, self.counts, window.first, window.last)
        upper = float(log_add_exp(upper + error, window.log_dropped))
        return Interval(lower - error, min(0.0, upper))

    def _renyi(self, e: float) -> float:
        """Return the bound from one moment of x = L - e, by (1 - e^-x)_+ <= t^t/(1 + t)^(1 + t) e^(t x) for every t > 0."""
        theta = self._tilt(e, conversion=True)
        if theta == 0:
            return 0.0
        rate = self._rate(theta)
        log_factor = theta * math.log(theta / (1 + theta)) - math.log1p(theta)
        return min(0.0, rate - theta * e + log_factor + 8 * ULP * (rate + theta * e - log_factor + 1))

    def _rate(self, theta: float) -> float:
        """Return log E_P e^(theta L), where L is the total privacy loss."""
        eps = self.eps
        terms = self.counts * (theta * eps + np.log1p(np.exp(-(2 * theta + 1) * eps)) - np.log1p(np.exp(-eps)))
        return math.fsum(terms.tolist())

    def _on_a_grid(self, e: float) -> Interval:
        lower, upper = self._composer.bounds(e)
        return Interval(lower, min(0.0, upper, self._renyi(e)))

    @cached_property
    def _composer(self) -> Composer:
        """The composition on a grid of losses. Mechanisms with few joint outcomes are enumerated as one."""
        large = self.counts > WHOLE
        # `common_step` recognises a lattice only if its step is at least 1/4096 of the largest gap. So products of mechanisms with
        # losses on one lattice are limited to 2**8 outcomes.
        most = MOST_ENUMERATED if common_step(2 * self.eps) is None else 2**8
        out = []
        for eps, count in zip(self.eps[large].tolist(), self.counts[large].tolist(), strict=True):
            size = min(count, most - 1)
            out.append((_release([eps], [size]), count // size))
            if count % size:
                out.append((_release([eps], [count % size]), 1))
        parts: list[list[int]] = [[]]
        for j in np.flatnonzero(~large).tolist():
            if math.prod(int(self.counts[i]) + 1 for i in [*parts[-1], j]) > most:
                parts.append([])
            parts[-1].append(j)
        out += [(_release(self.eps[part].tolist(), self.counts[part].tolist()), 1) for part in parts if part]
        return Composer(out, [out], 1e-6)

    def _window(self, e: float, depth: float) -> _AdverseRange:
        """Return the ranges outside of which the tilted mass of a group is at most e^-depth at either end."""
        counts, eps = self.counts, self.eps
        first, last = np.zeros_like(counts), counts.copy()
        large = counts > WHOLE
        if not large.any():
            return _AdverseRange(first, last, -math.inf)
        theta = self._tilt(e)
        adverse = 1 / (1 + np.exp(np.minimum((2 * theta + 1) * eps, LARGEST_EXPONENT)))
        mean, var = counts * adverse, counts * adverse * (1 - adverse)
        # By Bernstein's inequality. The truncated mass that is added to the upper bound is the exact tail.
        width = depth / 3 + np.sqrt(depth**2 / 9 + 2 * depth * var)
        first[large] = np.maximum(0, np.floor(mean - width))[large]
        last[large] = np.minimum(counts, np.ceil(mean + width))[large]
        outside = log_sum(np.concatenate([
            binom_logcdf(first[large] - 1.0, counts[large], adverse[large]),
            binom_logsf(last[large], counts[large], adverse[large]),
        ]))
        rate = self._rate(theta)
        dropped = rate - theta * e + outside
        return _AdverseRange(first, last, dropped + 1e-9 + 8 * ULP * (rate + theta * e))

    def _tilt(self, e: float, *, conversion: bool = False) -> float:
        """Return theta >= 0 at which the tilted mean loss is e, or 0 if the mean exceeds e. Every value gives a valid bound.

        If `conversion` is true, theta is that of `_renyi`, at which the tilted mean loss is e + log(1 + 1/theta).
        """
        # To save time, the tilt for the bound from one moment is computed with the sorted budgets in up to 1024 groups, each
        # budget replaced by the smallest one of its group.
        starts = np.unique(np.linspace(0, self.eps.size, 1025).astype(int)[:-1]) if conversion else np.arange(self.eps.size)
        eps, counts = self.eps[starts], np.add.reduceat(self.counts, starts)

        def mean(theta: float) -> float:
            value = float((counts * eps * np.tanh((theta + 0.5) * eps)).sum())
            return value - math.log1p(1 / theta) if conversion and theta > 0 else value

        if not conversion and mean(0.0) >= e:
            return 0.0
        limit = 40 / float(self.eps.min())
        rtol = 1e-6 if conversion else 1e-15
        return _search.bracket(lambda theta: theta >= limit or mean(theta) >= e, 0.0, 1.0, rtol=rtol)[0]

    def _halves(self, window: _AdverseRange) -> tuple[_Half, _Half] | None:
        if self._kept is not None and (self._kept[0].first == window.first).all() and (self._kept[0].last == window.last).all():
            return self._kept[1:]
        sizes = window.last - window.first + 1
        parts: tuple[list[int], list[int]] = ([], [])
        atoms = [1, 1]
        for j in np.argsort(-sizes):
            side = int(atoms[1] < atoms[0])
            parts[side].append(int(j))
            atoms[side] *= int(sizes[j])
            if atoms[side] > TABLE_SIZE:
                return None
        left, right = (self._half(part, window) for part in parts)
        self._kept = (window, left, right)
        return left, right

    def _half(self, part: list[int], window: _AdverseRange) -> _Half:
        loss, log_p = _outcomes(
            [(float(self.eps[j]), float(self.counts[j]), int(window.first[j]), int(window.last[j])) for j in part]
        )
        order = ratio_argsort(np.zeros(loss.size), loss)
        loss, log_p = loss[order], log_p[order]
        log_mass = _prefix(log_p - loss)
        with np.errstate(divide="ignore"):
            steps = loss[:-1] + log_mass[1:-1] + np.log(-np.expm1(loss[1:] - loss[:-1]))
        return _Half(loss, log_p, log_mass, _prefix(steps))


def _exact_sum(eps: list[float], counts: list[int]) -> Fraction:
    """Return the exact sum of all budgets, as a fraction whose denominator is a power of two."""
    parts = [x.as_integer_ratio() for x in eps]
    last = max((below for _, below in parts), default=1)
    return Fraction(sum(above * count * (last // below) for (above, below), count in zip(parts, counts, strict=True)), last)


def _outcomes(groups: list[tuple[float, float, int, int]]) -> tuple[FloatArray, FloatArray]:
    """Return the losses of all joint outcomes and their log probabilities under P, unsorted.

    A group (eps, count, first, last) has `count` equal mechanisms, of which first..last may give an adverse answer.
    """
    loss, log_p = np.zeros(1), np.zeros(1)
    for eps, count, first, last in groups:
        adverse = np.arange(first, last + 1, dtype=np.float64)
        loss = np.add.outer(loss, (count - 2 * adverse) * eps).ravel()
        log_p = np.add.outer(log_p, binom_logpmf(adverse, count, 1 / (1 + math.exp(eps)))).ravel()
    return loss, log_p


def _chance_error(eps: FloatArray, counts: NDArray[Any], first: NDArray[Any], last: NDArray[Any]) -> float:
    """Return a bound of the error that the rounding of 1/(1 + e^eps) causes in the log probabilities of first..last adverse
    answers.
    """
    mean = counts / (1 + np.exp(eps))
    return 2 * ULP * float(np.maximum(np.abs(first - mean), np.abs(last - mean)).sum())


def _release(eps: list[float], counts: list[int]) -> DominatingPairInfo:
    """Return the enumerated outcomes of independent randomized responses with these budgets and counts."""
    loss, log_p = _outcomes([(e, float(c), 0, int(c)) for e, c in zip(eps, counts, strict=True)])
    error = 4e-14 * len(eps) + 4 * ULP * (float(np.abs(log_p).max()) + float(np.abs(loss).max()))
    error += _chance_error(np.array(eps), np.array(counts), np.zeros(len(eps)), np.array(counts))
    atoms = LossAtoms.of(log_p, log_p - loss, error=error)
    return DominatingPairInfo(atoms.log_delta, float(loss.max()), losses=Losses(lambda log_tail: atoms))


def _prefix(x: FloatArray) -> FloatArray:
    """Return the logs of the sums of the first 0, 1, ... terms e^x, by compensated summation."""
    return tradeoff_knots(np.ascontiguousarray(x), np.ascontiguousarray(x))[0] if x.size else np.array([-math.inf])


def _log_divergence(left: _Half, right: _Half, e: float) -> float:
    """Return the log of the hockey-stick divergence of the sum of both halves at the privacy loss e."""
    levels = e - left.loss
    above = np.searchsorted(-right.loss, -levels, side="left")
    inside = above > 0
    if not inside.any():
        return -math.inf
    levels, above = levels[inside], above[inside]
    edge = right.loss[above - 1]
    with np.errstate(divide="ignore"):
        beyond = edge + right.log_mass[above] + np.log(-np.expm1(levels - edge))
        hockey_stick = log_add_exp(right.log_hockey_stick[above - 1], beyond)
    return log_sum(left.log_p[inside] + hockey_stick)
