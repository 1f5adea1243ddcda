"""Bounds of delta(eps) of one release at selected eps, and by convexity between them.

Trade-off functions and Renyi divergences are computed from these bounds, and so are compositions of releases whose delta is
expensive to evaluate.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.limits import MOST_ROUNDS, SAFE_EXPONENT, TINY
from shufflebounds._base.progress import tick
from shufflebounds._base.quadrature import STEEPEST, gauss_legendre, log_sum
from shufflebounds._base.types import ULP, FloatArray, IntervalArray, consistent
from shufflebounds.tradeoff.convex import Chain, across, alternate, below, hull

__all__ = ["DEPTH", "FIRST_SCALE", "FULL_DETAIL", "INTERPOLATED", "STAGES", "HockeyStickBounds", "SampledProfile", "alone"]

HockeyStickBounds = Callable[[FloatArray], IntervalArray]
"""Returns a lower and an upper bound of the log hockey-stick divergence at each eps >= 0."""

STAGES = (5.0, 10.0, 45.0)
"""Largest sqrt(-2 log delta) of each stage in which the samples of an expensive profile are placed. A stage is added when a result
needs it: the first suffices for trade-off functions at alpha above about 1e-6, the second above about 1e-22. The last one ends at
the pure budget if there is one. Raised: more values before the first result of a stage. Lowered: more stages are needed."""

_, FULL_DETAIL, DEPTH = STAGES
"""Down to delta = e^(-FULL_DETAIL**2/2) the samples are equally spaced in sqrt(-2 log delta); for smaller delta their distance
grows. They end at delta = e^(-DEPTH**2/2) if there is no pure budget."""

FIRST_SCALE = 0.05
"""The first eps of the search for an eps at which delta is smaller than at 0 by a factor of e^0.5 to e^20. The farther it is from
the eps that is found, the more values are computed."""

INTERPOLATED = 0.003
"""Fraction of the gap at the samples that interpolation between them may add, where this gap is large. Raised: less tight bounds.
Lowered: more samples; their number is proportional to 1/sqrt of this fraction."""

_NODES, _WEIGHTS = gauss_legendre(12)


class SampledProfile:
    r"""Bounds of log delta of one ordered pair at increasing eps. The first eps is 0, the last the pure budget if there is one.

    delta is convex and non-increasing in E = e^eps. So linear interpolation of the upper bounds `high` is an upper bound. Between
    two neighbouring samples, the line through the two samples before this interval is a lower bound, and so is the line through the
    two samples after it (:meth:`below`).
    """

    def __init__(
        self, sides: HockeyStickBounds, pure: float, step: float, *, convex: bool = True, depth: float | None = None,
        first_stage: bool = False, scale: float = FIRST_SCALE, matched: bool = True,
    ) -> None:
        # `matched`: whether the divergence of the reversed pair determines this one at eps < 0 (see `Losses.unmatched`).
        self.sides, self.pure, self.convex, self.depth, self.scale = sides, pure, convex, depth, scale
        self.matched = matched
        self.eps, self.low, self.high = np.empty(0), np.empty(0), np.empty(0)
        self.evaluations = 0
        if pure > TINY:
            self.add(np.zeros(1))
        if not self.eps.size or self.high[0] == -np.inf:
            # From eps = pure on, delta is 0. At smaller eps, delta is at most tanh(pure/2) < pure, which is below 2 TINY here.
            top = math.log(pure) if 0 < pure <= TINY else -math.inf
            self.eps, self.low, self.high = np.zeros(1), np.full(1, -np.inf), np.full(1, top)
            if top > -math.inf:
                self.eps, self.low, self.high = np.array([0.0, 2 * TINY]), np.full(2, -np.inf), np.array([top, -np.inf])
            return
        if first_stage:
            self._extend(step, 0)
        else:
            self._spread(step)

    def add(self, eps: FloatArray) -> None:
        """Add samples at these eps."""
        fresh = np.setdiff1d(eps, self.eps)
        fresh = fresh[fresh < self.pure]
        if fresh.size == 0:
            return
        self.evaluations += fresh.size
        with np.errstate(all="ignore"):
            low, high = consistent(self.sides(fresh), "log delta at eps={!r}", fresh)
        tick()
        # NaN from a kernel outside of its domain becomes the trivial bound.
        low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), 0.0, high)
        if not self.eps.size and self.pure < math.inf:
            fresh, low, high = np.append(fresh, self.pure), np.append(low, -np.inf), np.append(high, -np.inf)
        order = np.argsort(np.append(self.eps, fresh), kind="stable")
        self.eps = np.append(self.eps, fresh)[order]
        # delta is non-increasing, so an upper bound at one eps holds at all larger eps, and a lower bound at all smaller eps.
        self.low = np.maximum.accumulate(np.minimum(np.append(self.low, low), 0.0)[order][::-1])[::-1]
        self.high = np.minimum.accumulate(np.minimum(np.append(self.high, high), 0.0)[order])

    def _spread(self, step: float) -> None:
        """Add samples at distances of `step` in sqrt(-2 log delta); this quantity is nearly linear in eps.

        The distances grow where delta is small.
        """
        scale = self._scale()
        value = self._at(scale)
        whole = self.pure < math.inf and self.depth is None
        end, deepest = self.pure if whole else scale, self.depth or DEPTH
        last = 0.0
        if not whole and self.depth is not None:
            # Extrapolate sqrt(-2 log delta) linearly to the largest value that is needed. As a function of eps, sqrt(-2 log delta)
            # is concave, so the resulting eps is too small; the loop below increases it.
            here, there = (math.sqrt(-2 * self._at(eps)) for eps in (0.0, scale))
            ahead = (deepest - here) / max(there - here, 1e-9)
            end = min(scale * 1.5 ** math.floor(math.log(max(ahead, 1.0), 1.5)), self.pure, SAFE_EXPONENT)
        while not whole and (value := self._at(end)) > -0.5 * deepest**2 and end < min(self.pure, SAFE_EXPONENT):
            stays = end > scale and value > last - 1e-3
            if stays and (self.depth is not None or self.low[np.searchsorted(self.eps, end)] == -math.inf):
                # The remaining mass has infinite loss, or is truncated: the bounds do not change at larger eps.
                break
            last, end = value, min(1.5 * end, self.pure, SAFE_EXPONENT)
        octaves = max(4, math.ceil(math.log2(end / scale)) + 4)
        rough = end * 2.0 ** -np.arange(0, octaves + 0.5, 0.5 if step < 0.3 else 1.0)
        self.add(rough if self.depth is not None and end < self.pure else np.append(rough, end * np.array([0.85, 0.95, 0.999])))
        seen = self.high > -np.inf
        depth, eps = np.sqrt(-2 * self.high[seen]), self.eps[seen]
        levels, at = [depth[0]], depth[0]
        # If `self.depth` is given, samples at delta below e^(-depth**2/2) are not needed.
        last = depth[-1] if self.depth is None else min(depth[-1], deepest)
        while at < last and len(levels) < 10**5:
            at += min(max(step, step * (at / FULL_DETAIL) ** 2), max(0.1 * at, step))
            levels.append(at)
        # np.interp needs increasing abscissae.
        keep = np.append(True, np.diff(np.maximum.accumulate(depth)) > 0)
        self.add(np.interp(levels, depth[keep], eps[keep]))

    def _scale(self) -> float:
        """Return an eps, at most half of the pure budget, at which delta is by a factor of e^0.5 to e^20 smaller than at 0."""
        top = self.high[0]
        scale = min(self.scale, self.pure / 2)
        while (value := self._at(scale)) < top - 20 and scale > 1e-300:
            scale /= 4
        while value > top - 0.5 and scale < min(self.pure / 2, 150.0):
            scale = min(4 * scale, self.pure / 2)
            value = self._at(scale)
        return scale

    def extended(self, step: float, stage: int) -> SampledProfile:
        """Return a copy with the samples of the given stage (see STAGES) added; the samples of the stage before must be present."""
        deeper = self.copy()
        if self.high[0] > -np.inf and self.pure > TINY:
            deeper._extend(step, stage)
        return deeper

    def _extend(self, step: float, stage: int) -> None:
        """Divide the intervals of a stage (see STAGES) until sqrt(-2 log delta) changes by at most `step` in each.

        Below delta = e^(-FULL_DETAIL**2/2) the permitted change grows in proportion to -log delta.
        """
        whole = STAGES[stage] == DEPTH and self.pure < math.inf and self.depth is None
        end = self.pure if whole else self._reach(min(STAGES[stage], self.depth or DEPTH))
        end = min(end, 0.999 * self.pure)
        self.add(np.array([end]))
        for _ in range(MOST_ROUNDS):
            inside = (self.high > -np.inf) & (self.eps <= end)
            eps, depth = self.eps[inside], np.sqrt(-2 * self.high[inside])
            allowed = np.minimum(np.maximum(step, step * (depth[:-1] / FULL_DETAIL) ** 2), np.maximum(0.1 * depth[:-1], step))
            parts = np.ceil(np.minimum(np.diff(depth) / allowed, 1e3) - 0.05)
            wide = np.flatnonzero((parts > 1) & (np.diff(eps) > 1e-9 * eps[1:]))
            if not wide.size:
                break
            self.add(np.concatenate([np.linspace(eps[i], eps[i + 1], int(parts[i]), endpoint=False)[1:] for i in wide]))

    def _reach(self, deepest: float) -> float:
        """Return an eps at which delta is at most e^(-deepest**2/2) or stops decreasing; at most SAFE_EXPONENT."""
        finite = self.eps[self.high > -np.inf]
        end = self._scale() if finite.size < 2 else float(finite[-1])
        first, value = math.sqrt(-2 * self.high[0]), self._at(end)
        while value > -0.5 * deepest**2 and end < min(self.pure, SAFE_EXPONENT):
            # Extrapolate sqrt(-2 log delta) linearly to the value `deepest`; eps grows by at most a factor of 4.
            growth = (deepest - first) / max(math.sqrt(-2 * value) - first, 1e-9)
            end, before = min(end * min(max(1.02 * growth, 1.05), 4.0), self.pure, SAFE_EXPONENT), value
            value = self._at(end)
            if value > before - 1e-3:
                # The remaining mass has infinite loss, or is truncated: the bounds do not change at larger eps.
                break
        return end

    def _at(self, eps: float) -> float:
        self.add(np.array([eps]))
        return float(self.high[np.searchsorted(self.eps, eps)])

    def too_deep(self, eps: FloatArray) -> NDArray[np.bool_]:
        """Whether delta at these samples is at most e^(-depth**2/2), the size at which the samples end."""
        deepest = -math.inf if self.depth is None else -0.5 * self.depth**2
        return np.asarray(self.high[np.searchsorted(self.eps, eps)] <= deepest)

    def copy(self) -> SampledProfile:
        """Return a copy with the same values, to which samples can be added independently."""
        return copy.copy(self)

    def alone(self, upper: bool) -> SampledProfile:
        """Return a copy in which both bounds at each sample are equal to its upper bound (`upper`) or to its lower bound.

        In the copy, the gap between the interpolation and the supporting lines is due to the interpolation alone. Upper bounds that
        come from a search may be above the convex hull of all upper bounds; the copy has the values of the hull.
        """
        alone = self.copy()
        alone.low = alone.high = self._hull() if upper else self.low
        return alone

    def _hull(self) -> FloatArray:
        """Return, at the samples, the greatest convex function of e^eps that is nowhere above the upper bounds `high`."""
        x, y, _ = hull(self.eps, self.high)
        if x.size == self.eps.size or x.size < 2:
            return self.high
        left = np.clip(np.searchsorted(x, self.eps, side="right") - 1, 0, x.size - 2)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            share = np.expm1(self.eps - x[left]) / np.expm1(x[left + 1] - x[left])
            line = y[left] + np.log1p(share * np.expm1(y[left + 1] - y[left]))
        return np.fmin(self.high, line)

    def below(self, other: SampledProfile) -> Chain:
        """Return a piecewise linear lower bound of delta that ends with delta = 0; `other` has the samples of the reversed pair."""
        count = int((self.low > -np.inf).sum())
        if count == 0:
            return np.zeros(1), np.full(1, -np.inf)
        if not self.convex:
            # This lower bound follows from monotonicity alone: delta in an interval is at least the lower bound at its right end.
            after = np.append(self.low[1:count], -np.inf)
            return alternate(self.eps[:count], self.eps[:count]), alternate(self.low[:count], after)
        if not self.matched:
            # The line below the first interval uses only that the divergence is at most 1 as E = e^eps tends to 0.
            return below(np.append(-SAFE_EXPONENT, self.eps), np.append(-np.inf, self.low), np.append(0.0, self.high))
        # A line below the first interval needs an upper bound of delta at some eps < 0. `across` computes it from a sample of the
        # reversed pair at eps > 0 or, if there is none, from the value at eps = 0: the divergence of the reversed pair does not
        # increase with eps.
        before = -float(other.eps[1]) if other.eps.size > 1 else -1.0
        value = across(before, float(other.high[1]) if other.eps.size > 1 else float(self.high[0]))
        value += 8 * ULP * abs(value)
        return below(np.append(before, self.eps), np.append(-np.inf, self.low), np.append(value, self.high))

    def integrals(self, other: SampledProfile, power: float) -> tuple[float, float, FloatArray, FloatArray]:
        """Return logs of (lower integral, upper integral, gaps, own gaps).

        The integrals are those of e^(power t) times the lower and the upper bound of delta(t) over t. The quadrature (`_pieces`)
        has an error, for which the caller widens the integrals by COMPUTED_ERROR. A gap is the difference of both integrals over
        one interval between samples. An own gap is the part of this difference that is due to the gap of the bounds of delta at the
        samples; more samples cannot reduce it.
        """
        high, _ = _pieces(self.eps, self.high, power)
        eps, log_low = self.below(other)
        low, coarse = _pieces(eps, log_low, power)
        low[coarse] = -np.inf
        # In each interval, the lower bound of delta has two pieces that meet at a vertex, or no piece if it is trivial.
        folded = np.full(high.size + 1, -np.inf)
        np.logaddexp.at(folded, np.minimum(np.arange(low.size) // 2, high.size), low)
        held, _ = _pieces(self.eps, self.low, power)
        with np.errstate(invalid="ignore"):
            gap, own = (
                np.where(high > -np.inf, high + np.log1p(-np.minimum(np.exp(np.minimum(part - high, 0.0)), 1 - 1e-16)), -np.inf)
                for part in (folded[: high.size], held)
            )
        return log_sum(low), log_sum(high), gap, own


def alone(forward: SampledProfile, backward: SampledProfile, upper: bool) -> tuple[SampledProfile, SampledProfile]:
    """Return the copies of two sets of samples that :meth:`SampledProfile.alone` makes; both arguments may be one object."""
    one = forward.alone(upper)
    return one, one if backward is forward else backward.alone(upper)


def _pieces(eps: FloatArray, log_delta: FloatArray, power: float) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return logs of the integrals of e^(power t) delta(t) between neighbouring eps, and a flag for each interval that is coarse.

    Between neighbouring eps delta is taken to be linear in e^t, so the integrand is a sum of e^(power t) and e^((power + 1) t). An
    interval is coarse if one of these terms changes by more than a factor e^STEEPEST over it. The quadrature would be inaccurate in
    a coarse interval, so each factor of the integrand is replaced there by its largest value.

    In any other interval the rule of 12 nodes has a relative error below 4e-13, which is less than half of COMPUTED_ERROR. Proof:
    let w be the width of the interval, p the power, and q = abs(p + 1/2), so that (q + 1/2) w <= 8 and w <= 16. The integrand is
    a sum of nonnegative multiples of g(t) = e^(p t) (e^w - e^t), 0 <= t <= w, and of the mirror image of g for -p - 1 instead of p.
    As e^w - e^t = 2 e^((w + t)/2) sinh((w - t)/2) and abs(sinh(z)) <= abs(z) cosh(Re z), in the ellipse with the foci 0 and w
    and the larger semi-axis A w/2, abs(g) is at most e^(w/2) (w/2) (1 + A) e^((p + 1/2) w/2 + A (q + 1/2) w/2 + w/4). As
    sinh(x) >= x for x >= 0, the mean of g is at least e^(w/2) (w/2) e^((p + 1/2) w/3), by Jensen's inequality for the weight w - t.
    So the ratio of these two bounds is at most (1 + A) e^(4 A + 4). The error follows as in docs/theorems/vectors ("Masses of
    cells"), with rho = 12.
    """
    width = np.diff(eps)[:, None]
    coarse = max(abs(power), abs(power + 1)) * width[:, 0] > STEEPEST
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        part = np.where(width > 0, np.expm1(width * _NODES) / np.expm1(width), _NODES)
        after = np.exp(log_delta[1:] - log_delta[:-1])[:, None]
        values = np.exp(power * width * _NODES) * ((1 - part) + part * after)
        out = log_delta[:-1] + power * eps[:-1] + np.log(width[:, 0]) + np.log(values @ _WEIGHTS)
        crude = log_delta[:-1] + np.maximum(power * eps[:-1], power * eps[1:]) + np.log(width[:, 0])
    out = np.where(coarse, crude, out)
    return np.where(log_delta[:-1] > -np.inf, out, -np.inf), coarse
