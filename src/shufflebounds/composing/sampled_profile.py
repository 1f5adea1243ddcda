"""delta(eps) at chosen eps, enclosed, and what its convexity says between them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shufflebounds._types import ULP, FloatArray, IntervalArray
from shufflebounds.tradeoff.convex import Chain, across, alternate, below

__all__ = ["STEEP", "SampledProfile", "HockeyStickBounds"]

HockeyStickBounds = Callable[[FloatArray], IntervalArray]
"""A lower and an upper bound of the log hockey stick at each eps >= 0."""

DEPTH = 45.0
"""Without pure privacy the samples end at delta = e^(-DEPTH**2/2)."""

FULL_DETAIL = 10.0
"""Down to delta = e^(-FULL_DETAIL**2/2) the samples are equally dense on the scale of normal quantiles."""

LEAST_PURE = 1e-290
"""Smaller pure budgets are not looked into."""

STEEP = 8.0
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1), 0.5 * _WEIGHTS


class SampledProfile:
    r"""Bounds of log delta of one direction at increasing eps, the first 0, the last the pure budget where there is one.

    With E = e^eps, delta is convex and non-increasing in E: `high` joined by straight lines lies above it, and the lines through
    the neighbours of an interval lie below it inside (:meth:`below`).
    """

    def __init__(
        self, sides: HockeyStickBounds, pure: float, step: float, *, convex: bool = True, depth: float | None = None
    ) -> None:
        self.sides, self.pure, self.convex, self.depth = sides, pure, convex, depth
        self.eps, self.low, self.high = np.empty(0), np.empty(0), np.empty(0)
        self.evaluations = 0
        if pure > LEAST_PURE:
            self.add(np.zeros(1))
        if not self.eps.size or self.high[0] == -np.inf:
            # delta <= tanh(pure/2) where there is a pure budget
            top = math.log(pure) if 0 < pure <= LEAST_PURE else -math.inf
            self.eps, self.low, self.high = np.zeros(1), np.full(1, -np.inf), np.full(1, top)
            if top > -math.inf:
                self.eps, self.low, self.high = np.array([0.0, 2 * LEAST_PURE]), np.full(2, -np.inf), np.array([top, -np.inf])
            return
        self._spread(step)

    def add(self, eps: FloatArray) -> None:
        """Evaluate delta at these eps too."""
        fresh = np.setdiff1d(eps, self.eps)
        fresh = fresh[fresh < self.pure]
        if fresh.size == 0:
            return
        self.evaluations += fresh.size
        with np.errstate(all="ignore"):
            low, high = self.sides(fresh)
        # a kernel that leaves its range says nothing
        low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), 0.0, high)
        if not self.eps.size and self.pure < math.inf:
            fresh, low, high = np.append(fresh, self.pure), np.append(low, -np.inf), np.append(high, -np.inf)
        order = np.argsort(np.append(self.eps, fresh), kind="stable")
        self.eps = np.append(self.eps, fresh)[order]
        # delta never rises, so a bound serves its neighbours as well
        self.low = np.maximum.accumulate(np.minimum(np.append(self.low, low), 0.0)[order][::-1])[::-1]
        self.high = np.minimum.accumulate(np.minimum(np.append(self.high, high), 0.0)[order])

    def _spread(self, step: float) -> None:
        """Place the samples `step` apart in sqrt(-2 log delta), which is nearly linear in eps; wider apart deep down."""
        top = self.high[0]
        scale = min(0.05, self.pure / 2)
        while (value := self._at(scale)) < top - 20 and scale > 1e-300:
            scale /= 4
        while value > top - 0.5 and scale < min(self.pure / 2, 150.0):
            scale = min(4 * scale, self.pure / 2)
            value = self._at(scale)
        whole = self.pure < math.inf and self.depth is None
        end, deepest = self.pure if whole else scale, self.depth or DEPTH
        last = 0.0
        if not whole and self.depth is not None:
            # so far the values are likely to be too shallow: quantiles are concave in eps where they are not nearly straight
            here, there = (math.sqrt(-2 * self._at(eps)) for eps in (0.0, scale))
            ahead = (deepest - here) / max(there - here, 1e-9)
            end = min(scale * 1.5 ** max(0, math.floor(math.log(max(ahead, 1.0), 1.5))), self.pure, 600.0)
        while not whole and (value := self._at(end)) > -0.5 * deepest**2 and end < min(self.pure, 600.0):
            stays = end > scale and value > last - 1e-3
            if stays and (self.depth is not None or self.low[np.searchsorted(self.eps, end)] == -math.inf):
                # the rest of the mass has infinite loss, or is truncated: neither bound changes further out
                break
            last, end = value, min(1.5 * end, self.pure, 600.0)
        octaves = max(4, math.ceil(math.log2(end / scale)) + 4)
        rough = end * 2.0 ** -np.arange(0, octaves + 0.5, 0.5 if step < 0.3 else 1.0)
        self.add(rough if self.depth is not None and end < self.pure else np.append(rough, end * np.array([0.85, 0.95, 0.999])))
        seen = self.high > -np.inf
        depth, eps = np.sqrt(-2 * self.high[seen]), self.eps[seen]
        levels, at = [depth[0]], depth[0]
        # without a pure budget the roughest values may lie far deeper than anybody looks
        last = depth[-1] if self.depth is None else min(depth[-1], deepest)
        while at < last and len(levels) < 10**5:
            at += min(max(step, step * (at / FULL_DETAIL) ** 2), max(0.1 * at, step))
            levels.append(at)
        # np.interp wants increasing abscissae
        keep = np.append(True, np.diff(np.maximum.accumulate(depth)) > 0)
        self.add(np.interp(levels, depth[keep], eps[keep]))

    def _at(self, eps: float) -> float:
        self.add(np.array([eps]))
        return float(self.high[np.searchsorted(self.eps, eps)])

    def too_deep(self, eps: FloatArray) -> NDArray[np.bool_]:
        """Whether delta at these samples is below what is looked into."""
        deepest = -math.inf if self.depth is None else -0.5 * self.depth**2
        return np.asarray(self.high[np.searchsorted(self.eps, eps)] <= deepest)

    def copy(self) -> SampledProfile:
        """Return samples with the same values, which grow on their own."""
        return copy.copy(self)

    def below(self, other: SampledProfile) -> Chain:
        """Return a chain from 0 on that lies nowhere above delta and ends with delta = 0; `other` samples the other direction."""
        count = int((self.low > -np.inf).sum())
        if count == 0:
            return np.zeros(1), np.full(1, -np.inf)
        if not self.convex:
            return self._stairs(count)
        # how steep delta is at most at E = 1: from the first sample of the other direction, or as steep as a hockey stick can be
        before = -float(other.eps[1]) if other.eps.size > 1 else -1.0
        value = across(before, float(other.high[1]) if other.eps.size > 1 else float(self.high[0]))
        value += 4 * ULP * (2 + abs(value))
        return below(np.append(before, self.eps), np.append(-np.inf, self.low), np.append(value, self.high))

    def integrals(self, other: SampledProfile, power: float) -> tuple[float, float, FloatArray, FloatArray]:
        """Return logs of both sides of the integral of e^(power t) delta(t), and of the gap that each interval leaves.

        The last are logs of the gap that the values themselves leave: more of them would not close it.
        """
        high, _ = _pieces(self.eps, self.high, power)
        eps, log_low = self.below(other)
        low, coarse = _pieces(eps, log_low, power)
        low[coarse] = -np.inf
        # the lower side has two pieces in each interval, which meet at a vertex; none where it says nothing
        folded = np.full(high.size + 1, -np.inf)
        np.logaddexp.at(folded, np.minimum(np.arange(low.size) // 2, high.size), low)
        held, _ = _pieces(self.eps, self.low, power)
        with np.errstate(invalid="ignore"):
            gap, own = (
                np.where(high > -np.inf, high + np.log1p(-np.minimum(np.exp(np.minimum(part - high, 0.0)), 1 - 1e-16)), -np.inf)
                for part in (folded[: high.size], held)
            )
        return _total(low), _total(high), gap, own

    def _stairs(self, count: int) -> tuple[FloatArray, FloatArray]:
        """Return the same by monotonicity alone: the value to the right of an interval serves all of it."""
        after = np.append(self.low[1:count], -np.inf)
        return alternate(self.eps[:count], self.eps[:count]), alternate(self.low[:count], after)


def _pieces(eps: FloatArray, log_delta: FloatArray, power: float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the logs of the integrals of e^(power t) delta(t) between neighbours, delta linear in e^t; and which are coarse.

    A coarse piece, over which the weight or e^t moves by more than e^STEEP, is bounded by its largest terms. As delta is linear
    in e^t, the rule has few digits on a wide piece even where the weight is constant, which it is at order 1.
    """
    width = np.diff(eps)[:, None]
    coarse = max(abs(power), 1.0) * width[:, 0] > STEEP
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        part = np.where(width > 0, np.expm1(width * _NODES) / np.expm1(width), _NODES)
        after = np.exp(log_delta[1:] - log_delta[:-1])[:, None]
        values = np.exp(power * width * _NODES) * ((1 - part) + part * after)
        out = log_delta[:-1] + power * eps[:-1] + np.log(width[:, 0]) + np.log(values @ _WEIGHTS)
        crude = log_delta[:-1] + np.maximum(power * eps[:-1], power * eps[1:]) + np.log(width[:, 0])
    out = np.where(coarse, crude, out)
    return np.where(log_delta[:-1] > -np.inf, out, -np.inf), coarse


def _total(logs: FloatArray) -> float:
    top = float(logs.max(initial=-math.inf))
    return top + math.log(float(np.exp(logs - top).sum())) if -math.inf < top < math.inf else top
