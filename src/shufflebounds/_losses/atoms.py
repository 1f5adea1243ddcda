"""Distributions of privacy losses, as enumerated outcomes (`LossAtoms`) and on a grid (`GridPLD`).

Mechanisms with finitely many outcomes return them as `LossAtoms`, from which divergences, Renyi divergences and trade-off functions
follow. Compositions move the outcomes to a grid, for an upper or for a lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.limits import LARGE_TABLE_SIZE, MOST_ENUMERATED, SAFE_EXPONENT
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._core import _losses, _tradeoff
from shufflebounds.tradeoff.divergences import renyi_of_losses
from shufflebounds.tradeoff.representation import log1mexp

__all__ = [
    "ALONE", "GridPLD", "InputRows", "LossAtoms", "TooLongError", "grid", "log_ratios", "multisets", "number_of_multisets",
    "union_probability",
]

ALONE = 20.0
"""A smallest or largest loss of a lower bound is isolated if it is ALONE nats from all others (`LossAtoms.law`, `Product`). The
lower bound omits a fraction of at most e^-ALONE = 2e-9 of a mass. Raised: longer grids. Lowered: a larger omitted fraction."""


class TooLongError(ValueError):
    """A distribution or a transform would have too many points. The message states how many."""


def grid(anchor: float, step: float, index: NDArray[np.int64]) -> FloatArray:
    """Return the grid points with these indices."""
    return np.asarray(anchor + step * index, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class GridPLD:
    """A distribution of privacy losses on a grid. Entry i of `log_p` is the log mass under P of the loss anchor + step index[i].

    The mass under Q is e^-loss times the mass under P. If every mass is multiplied by e^slack and every loss increased by
    `loss_error`, an upper bound dominates the release. If every mass is multiplied by e^-slack and every loss decreased by
    `loss_error`, the release dominates a lower bound. `log_rest` is the log mass of infinite loss.
    """

    anchor: float
    step: float
    index: NDArray[np.int64]
    log_p: FloatArray
    log_rest: float
    slack: float
    loss_error: float

    @property
    def losses(self) -> FloatArray:
        """The grid points."""
        return grid(self.anchor, self.step, self.index)


@dataclass(frozen=True, eq=False)
class LossAtoms:
    """The enumerated outcomes of a pair of distributions (P, Q).

    `log_rest` and `log_other` have no default, so every caller states these masses.

    Parameters
    ----------
    log_p : ndarray
        Log masses under P of the outcomes that are possible under both P and Q.
    loss : ndarray
        Their privacy losses log(P/Q), increasing; the log masses under Q are ``log_p - loss``.
    log_rest : float
        Log mass under P of the outcomes that Q cannot produce, whose loss is infinite.
    log_other : float
        Log mass under Q of the outcomes that P cannot produce, whose loss is minus infinity.
    log_lost : float
        Upper bound of the log mass of the truncated outcomes, under P and under Q.
    slack : float
        Bound of the relative error of the masses under P.
    loss_error : float or ndarray
        Bound of the error of the losses: one number for all, or one for each loss, so that small losses may be more accurate.
    """

    log_p: FloatArray
    loss: FloatArray
    log_rest: float
    log_other: float
    log_lost: float
    slack: float
    loss_error: float | FloatArray

    @classmethod
    def of(cls, log_p: FloatArray, log_q: FloatArray, *, log_lost: float = -math.inf, error: float = 0.0) -> LossAtoms:
        """Return the outcomes of two lists of log probabilities with an absolute error of at most `error` each."""
        with np.errstate(invalid="ignore"):
            return cls._of(log_p, log_q, log_p - log_q, lambda loss: 2 * error + ULP * np.abs(loss), log_lost, error)

    @classmethod
    def of_masses(cls, p: FloatArray, q: FloatArray) -> LossAtoms:
        """Return the outcomes of two lists of probabilities.

        The relative error of each loss is below 4 ulp. The difference of two rounded logarithms would have an absolute error of an
        ulp of the logarithms, which may exceed the loss where the probabilities are nearly equal.
        """
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            return cls._of(np.log(p), np.log(q), log_ratios(p, q), lambda loss: 4 * ULP * np.abs(loss), -math.inf, 0.0)

    @classmethod
    def _of(cls, log_p: FloatArray, log_q: FloatArray, loss: FloatArray,
            loss_error: Callable[[FloatArray], FloatArray], log_lost: float, error: float) -> LossAtoms:
        """Return the outcomes sorted by loss. The function `loss_error` maps losses to bounds of their errors."""
        seen = log_p > -np.inf
        log_other = float(np.logaddexp.reduce(log_q[~seen], initial=-np.inf))
        log_p, log_q, loss = log_p[seen], log_q[seen], loss[seen]
        unbounded_loss = log_q == -np.inf
        log_rest = float(np.logaddexp.reduce(log_p[unbounded_loss], initial=-np.inf))
        log_p, loss = log_p[~unbounded_loss], loss[~unbounded_loss]
        order = np.argsort(loss, kind="stable")
        size = float(np.abs(log_p).max(initial=0.0))
        return cls(log_p[order], loss[order], log_rest, log_other, log_lost, error + ULP * (8 + size), loss_error(loss[order]))

    @classmethod
    def product(cls, parts: Sequence[tuple[LossAtoms, int]]) -> LossAtoms | None:
        """Return the outcomes of independent releases of these distributions. The result is None if there are more than
        MOST_ENUMERATED.

        Repeated releases of one distribution are enumerated as multisets of its outcomes, each with its multinomial coefficient as
        a factor.
        """
        size = math.prod(number_of_multisets(atoms.loss.size, times) for atoms, times in parts)
        if size > MOST_ENUMERATED:
            return None
        log_p, loss, loss_error, slack = np.zeros(1), np.zeros(1), np.zeros(1), 0.0
        for atoms, times in parts:
            more, error = atoms._repeated(times)
            log_p, loss = np.add.outer(log_p, more.log_p).ravel(), np.add.outer(loss, more.loss).ravel()
            # Add the rounding error of the sum to the errors of its terms.
            loss_error = np.add.outer(loss_error, more.loss_error).ravel() + ULP * np.abs(loss)
            slack += times * atoms.slack + error
        count = sum(times for _, times in parts)
        slack += count * ULP * float(np.abs(log_p).max(initial=0.0))
        names = ("log_rest", "log_other")
        rest, other = (union_probability([(getattr(atoms, name), times) for atoms, times in parts]) for name in names)
        lost = float(np.logaddexp.reduce([atoms.log_lost + math.log(times) for atoms, times in parts]))
        order = np.argsort(loss, kind="stable")
        return cls(log_p[order], loss[order], rest, other, lost, slack + 8 * ULP * count, loss_error[order])

    def _repeated(self, times: int) -> tuple[LossAtoms, float]:
        """Return the outcomes with finite losses of `times` releases, and an error bound of their log masses.

        The bound covers the errors of the multinomial coefficients only.
        """
        if times == 1 or not self.loss.size:
            return replace(self, loss_error=self.loss_error + ULP * np.abs(self.loss)), 0.0
        counts = multisets(self.loss.size, times)
        factorials = np.array([math.lgamma(count + 1.0) for count in range(times + 1)])
        log_p = factorials[times] - factorials[counts].sum(axis=1) + counts @ self.log_p
        # Losses of opposite sign may cancel in the sum, so its rounding error is proportional to the absolute values of the losses.
        loss_error = counts @ (self.loss_error + (1 + times) * ULP * np.abs(self.loss))
        # Each log factorial has a relative error of at most 16 ulp. The log factorials that are subtracted have a sum of at most
        # log(times!).
        return replace(self, log_p=log_p, loss=counts @ self.loss, loss_error=loss_error), 48 * ULP * float(factorials[times])

    def reversed(self) -> LossAtoms:
        """Return the outcomes of (Q, P)."""
        log_q, loss = (np.ascontiguousarray(logs[::-1]) for logs in (self.log_p - self.loss, -self.loss))
        slack = self.slack + self.most_blur + ULP * float(np.abs(log_q).max(initial=1.0))
        return replace(self, log_p=log_q, loss=loss, log_rest=self.log_other, log_other=self.log_rest, slack=slack,
                       loss_error=np.broadcast_to(self.loss_error, loss.shape)[::-1])

    @property
    def most_blur(self) -> float:
        """The largest error bound of a loss."""
        return float(np.max(self.loss_error, initial=0.0))

    def log_lost_other(self, reverse: LossAtoms, *, symmetric: bool) -> float | None:
        """Return a bound of the log mass under Q of the outcomes that are truncated in this list, or None if no bound is known.

        Parameters
        ----------
        reverse : LossAtoms
            The enumerated outcomes of (Q, P), which may be others than those of (P, Q).
        symmetric : bool
            Whether (Q, P) has the same distribution of losses as (P, Q).
        """
        if max(self.log_lost, reverse.log_lost) == -math.inf:
            return -math.inf
        if np.array_equal(self.loss, -reverse.loss[::-1]):
            return reverse.log_lost
        if not symmetric:
            return None
        # As (Q, P) has the same distribution of losses, each outcome of loss l has a partner of loss -l. If the list lacks the
        # partner of an outcome, the list of (Q, P) lacks this outcome.
        hidden = self.log_p[(self.loss > -self.loss[0]) | (self.loss < -self.loss[-1])]
        return float(np.logaddexp.reduce(np.append(hidden, self.log_lost)))

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        r"""Return both bounds of the log hockey-stick divergence :math:`\sum_y \max(0, P(y) - e^\varepsilon Q(y))` at each eps."""
        return IntervalArray(self.log_side(eps, upper=False), self.log_side(eps, upper=True))

    def log_side(self, eps: FloatArray, *, upper: bool) -> FloatArray:
        """Return one of the bounds of :meth:`log_delta`."""
        size = float(np.abs(np.stack([self.log_p, self.log_p - self.loss])).max(initial=0.0))
        slack = self.slack + ULP * (16 + 2 * size + self.loss.size)
        order = np.argsort(-eps, kind="stable")
        way, rest = (1, float(np.logaddexp(self.log_rest, self.log_lost))) if upper else (-1, self.log_rest)
        out = np.empty_like(eps)
        out[order] = _tradeoff.log_hockey_stick_of_losses(*self._falling(way), eps[order])
        value = np.logaddexp(out, rest)
        value += way * np.where(value > -np.inf, slack + ULP * (8 + np.abs(value)), 0.0)
        return np.where(np.isneginf(value), -np.inf, np.minimum(value, 0.0)) if upper else value

    def moved(self, way: int | FloatArray) -> FloatArray:
        """Return the losses, increased by their error bounds if `way` is 1 and decreased by them if `way` is -1."""
        # One more ulp covers the rounding of this sum.
        return np.asarray(self.loss + way * (self.loss_error + ULP * np.abs(self.loss)))

    def _falling(self, way: int) -> tuple[FloatArray, FloatArray]:
        """Return log masses and losses by decreasing loss.

        The losses are increased (`way` = 1) or decreased (-1) by their error bounds.
        """
        log_p, loss = self.log_p[::-1], self.moved(way)[::-1]
        if np.any(loss[1:] > loss[:-1]):
            order = np.argsort(-loss, kind="stable")
            log_p, loss = log_p[order], loss[order]
        return np.ascontiguousarray(log_p), np.ascontiguousarray(loss)

    def renyi(self, orders: FloatArray, *, upper: bool) -> FloatArray:
        """Return upper or lower bounds of the Renyi divergences of P from Q for orders in [1, inf].

        The divergences are computed as sums of positive terms.
        """
        if self.log_rest > -math.inf or (upper and self.log_lost > -math.inf):
            return np.full(orders.size, np.inf)
        side = 1 if upper else -1
        # With b = order - 1, a loss l of mass p contributes p (e^(b l) - (1 + b) + b e^-l) to the sum, which increases with |l|. So
        # all losses l are moved away from 0 for an upper bound, and towards 0 for a lower bound.
        away = np.where(self.loss < 0, -1.0, 1.0)
        loss = self.moved(side * away)
        if not upper:
            loss = away * np.maximum(away * loss, 0.0)
        raised = self.moved(side)
        unit = ULP * (64 + self.loss.size)
        out = np.empty(orders.size)
        for i, order in enumerate(orders.tolist()):
            value = renyi_of_losses(self.log_p + side * self.slack, loss, math.exp(self.log_other), order, raised)
            size = 1 + float(np.abs(self.log_p).max(initial=0.0)) / max(1.0, value * order)
            # The masses sum to 1 only up to rounding, so the computed divergence may exceed the largest loss, which is also an
            # upper bound.
            out[i] = min(value * (1 + side * unit * size), max(0.0, float(raised.max(initial=0.0))))
        if upper and loss.any():
            # A positive divergence may underflow: round up.
            return np.asarray(np.nextafter(out, np.inf))
        return np.maximum(out, 0.0)

    def knots(self, *, upper: bool) -> FloatArray | None:
        """Return logs of alpha, 1 - alpha, beta, 1 - beta at the breakpoints of T(P, Q), or None if outcomes are truncated.

        Alpha and beta are rounded up for the upper bound and down for the lower bound. Of alpha and 1 - alpha, the smaller one is
        rounded and the larger one is computed from it, so that both describe the same point; likewise for beta.
        """
        if self.log_lost > -math.inf:
            return None
        knots = _tradeoff.tradeoff_knots(self.log_p, self.log_p - self.loss, self.log_rest, self.log_other)
        out = np.empty_like(knots)
        for row, error in ((0, self.slack), (2, self.slack + self.most_blur)):
            level, rest = knots[row], knots[row + 1]
            by_level, smaller = level <= rest, np.minimum(level, rest)
            size = ULP * (16 + 4 * np.abs(np.maximum(smaller, -1e300))) + error
            moved = np.minimum(np.where(by_level == upper, smaller + size, smaller - size), 0.0)
            other = log1mexp(moved)
            out[row], out[row + 1] = np.where(by_level, moved, other), np.where(by_level, other, moved)
        return out

    def law(self, anchor: float, step: float, *, upper: bool) -> GridPLD:
        """Return a distribution on the grid that dominates these outcomes if `upper`, and that is dominated by them otherwise."""
        loss, below, above = self.loss, 0, self.loss.size
        if not upper and loss.size > 2:
            # A grid that extends to an isolated loss, far from all others, would be long. An isolated smallest loss below -ALONE
            # has little mass under P and is omitted. An isolated largest loss is moved to the grid point below it, or to one at
            # most 8 ulp above.
            below, above = int(loss[1] - loss[0] > ALONE < -loss[0]), above - int(loss[-1] - loss[-2] > ALONE)
        far, loss = np.floor((loss[above:] - anchor) / step * (1 + 4 * ULP)).astype(np.int64), loss[below:above]
        # A loss within `snap`, a bound of its rounding error, of a grid point is moved to the grid point.
        snap = 64 * ULP * max(float(np.abs(loss).max(initial=0.0)), abs(anchor))
        nearest = anchor + step * np.round((loss - anchor) / step)
        loss = np.where(np.abs(loss - nearest) <= snap, nearest, loss)
        first, size = _span(loss, anchor, step)
        most = 8 * LARGE_TABLE_SIZE  # the arrays for more points would take more than a gigabyte
        if size > most:
            raise TooLongError(
                f"the composition needs {size} points for the losses of one release, more than {most}: its scale is far "
                "below that of its losses"
            )
        shape = _losses.split if upper else _losses.merge
        log_p = shape(self.log_p[below:above], loss, anchor, step, first, size)
        held = np.flatnonzero(log_p > -np.inf)
        index, log_p = np.append(first + held, far), np.append(log_p[held], self.log_p[above:])
        rest = float(np.logaddexp(self.log_rest, self.log_lost)) if upper else self.log_rest
        # The kernel moves the mean of merged losses to a grid point. The move and its rounding change the loss by at most 64 ulp.
        error = 8 * ULP * (8 + float(np.abs(grid(anchor, step, far)).max(initial=0.0)))
        return GridPLD(anchor, step, index, log_p, rest, self.slack, self.most_blur + 1.25 * snap + error)


def log_ratios(p: FloatArray, q: FloatArray) -> FloatArray:
    """Return log(p/q) with a relative error below 4 ulp; inf, -inf or NaN where p or q is 0."""
    ratio = p / q
    # p - q is exact if p and q are within a factor of 2 of each other.
    near = (ratio >= 0.5) & (ratio <= 2)
    far = np.where((ratio > 1e-300) & (ratio < 1e300), np.log(ratio), np.log(p) - np.log(q))
    return np.asarray(np.where(near, np.log1p((p - q) / q), far))


class InputRows(NamedTuple):
    """The log probabilities of the outputs, one row for each input, and the differences of any two rows.

    ratios[i, j] is row j of `log_rows` minus row i of `log_rows`. The sums of the probabilities in two rows differ by at most
    `apart`.
    """

    log_rows: FloatArray
    ratios: FloatArray
    error: float
    apart: float = 0.0


def union_probability(chances: list[tuple[float, int]]) -> float:
    """Return the log of the probability that at least one of independent events happens.

    Each entry of `chances` is the log of the probability of an event and the number of independent copies of this event.
    """
    chances = [(log, times) for log, times in chances if times and log > -math.inf]
    if max((log for log, _ in chances), default=-math.inf) < -SAFE_EXPONENT:
        return float(np.logaddexp.reduce([log + math.log(times) for log, times in chances]))
    none = sum(times * (math.log1p(-math.exp(log)) if log < -1 else math.log(-math.expm1(log))) if log < 0 else -math.inf
               for log, times in chances)
    return math.log(-math.expm1(none)) if none < 0 else -math.inf


def _span(loss: FloatArray, anchor: float, step: float) -> tuple[int, int]:
    """Return the largest grid index whose point is at or below all losses, and the number of points up to the largest loss."""
    if not loss.size:
        return 0, 1
    first = math.floor((loss[0] - anchor) / step)
    while anchor + step * first > loss[0]:
        first -= 1
    last = math.ceil((loss[-1] - anchor) / step)
    while anchor + step * last < loss[-1]:
        last += 1
    return first, last - first + 1


def number_of_multisets(kinds: int, times: int) -> float:
    """Return the number of multisets of `times` outcomes out of `kinds`, or inf if it is certainly above MOST_ENUMERATED."""
    if kinds < 2:
        return 1.0
    if times > MOST_ENUMERATED or kinds > MOST_ENUMERATED:
        return math.inf
    return math.comb(times + kinds - 1, min(times, kinds - 1)) if min(times, kinds - 1) < 64 else math.inf


def multisets(kinds: int, times: int) -> NDArray[np.intp]:
    """Return all vectors of `kinds` non-negative integers that sum to `times`, one per row."""
    rows, left = np.zeros((1, 0), dtype=np.intp), np.array([times], dtype=np.intp)
    for _ in range(kinds - 1):
        ways = left + 1
        first = np.repeat(np.cumsum(ways) - ways, ways)
        here = np.arange(int(ways.sum())) - first
        rows, left = np.column_stack([np.repeat(rows, ways, axis=0), here]), np.repeat(left, ways) - here
    return np.column_stack([rows, left])
