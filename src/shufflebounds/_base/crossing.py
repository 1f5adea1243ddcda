"""The search for the smallest eps at which a decreasing curve of log delta meets a target.

Every `eps(delta)` uses this search, except those whose curve is a C function, which use the same search in the kernel
`_core/_crossing.pyx`. Both return an eps at which the curve was evaluated and meets the target (the kernel also one for which this
follows from a value at a smaller eps), or the pure budget, at which delta is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from shufflebounds._base.limits import TINY, UNDERFLOW_EXPONENT
from shufflebounds._base.search import bracket, expand_bracket, narrowed
from shufflebounds._base.types import EXP_SLACK, ULP, FloatArray

__all__ = ["CAP", "Curve", "crossing", "eps_at", "eps_at_each", "last_positive", "rough_eps"]

Point = tuple[float, float]
"""An eps and the excess at this eps."""

CAP = 1e6
"""Largest eps of a search, in units of a typical eps (`ClosedForms.eps_scale`); above it the result is inf. Raised: longer searches
without a finite result, at eps whose square may overflow. Lowered: inf for mechanisms that protect little."""

JUMP = 20.0
"""A curve counts as discontinuous in a bracket if its decrease over the bracket is more than JUMP times the decrease of its rough
curve (`Curve.rough`).

Bounds that come from a search of finite tolerance are discontinuous (`Curve.settles`). The search for eps ends at such a bracket.
Raised: more evaluations, which only locate the discontinuity. Lowered: steep curves count as discontinuous, and eps is less
accurate.
"""

NEIGHBOURS = 6
"""Number of evaluated points through which the start of a search of `eps_at_each` is interpolated. Raised: oscillation where the
curve is not smooth. Lowered: more evaluations, because the starts are less accurate."""

RELIABLE = 1e-3
"""If the last point changes an interpolated start by more than this fraction, the search starts from the rough curve instead.

The crossing of a rough curve has an error of about this size. Raised: more evaluations of the curve. Lowered: more evaluations of
the rough curve."""


@dataclass(frozen=True)
class Curve:
    """A decreasing curve of log delta, at most 0, as a function of eps >= 0.

    Attributes
    ----------
    log_delta : callable
        Returns log delta at one eps.
    rough : Curve, optional
        A cheaper curve that is close to this one, above or below. The search begins where the rough curve meets the
        target. The fields `pure` and `cap` of this curve replace those of the rough curve.
    pure : float
        The pure budget: log delta is -inf for every eps >= `pure`.
    cap : float
        The largest eps that is evaluated.
    rtol : float
        Permitted relative distance of the returned eps from the crossing. A smaller `rtol` needs more evaluations.
    settles : float
        If this curve is the rough curve of another curve and `settles` is larger than the other curve's `rtol`, `settles` replaces
        that `rtol`. Curves whose bounds have a gap, such as those of a search over datasets, set `settles` to their tolerance.
    jumps : bool
        If this curve is the rough curve of another curve: whether the other curve may be discontinuous (JUMP). False if this curve
        may be wrong by orders of magnitude, so that its slope says nothing about the other curve.
    """

    log_delta: Callable[[float], float]
    rough: Curve | None = None
    pure: float = math.inf
    cap: float = CAP
    rtol: float = 1e-13
    settles: float = 0.0
    jumps: bool = True


def eps_at(bound: Callable[[float], float], delta: float, *, upper: bool, rough: Curve | None, pure: float,
           cap: float = CAP) -> float:
    """Return an upper or a lower bound of the eps at which the curve is equal to the given `delta`, in (0, 1].

    `bound` returns an upper or a lower bound of log delta at one eps. It may be positive, and NaN stands for the trivial bound. The
    other arguments are those of `Curve`.
    """
    return crossing(Curve(lambda eps: _within_range(bound(eps), upper), rough, pure, cap), _target(delta, upper), upper=upper)


def rough_eps(rough: Curve, delta: float, *, upper: bool, pure: float) -> float:
    """Return the eps at which the rough curve meets delta. :func:`eps_at` starts its search at this eps."""
    return crossing(replace(rough, pure=pure, cap=CAP), _target(delta, upper), upper=upper)


def eps_at_each(bounds: Callable[[FloatArray], FloatArray], deltas: FloatArray, *, upper: bool, rough: Curve | None, pure: float,
                cap: float = CAP) -> FloatArray:
    """Return a bound, as `eps_at` does, for each of several increasing delta in (0, 1], in fewer evaluations than single searches.

    `bounds` returns the bounds of log delta at an array of eps. The first two searches are for the smallest and the largest delta,
    the next one is for the delta in the middle, the next ones are for those in the middle of both halves, and so on. A search
    starts at the eps that the results of earlier searches predict (`_interpolated`). So the bound for one delta depends on the
    other delta, but only within the tolerance of a single search.
    """
    targets = np.array([_target(delta, upper) for delta in deltas.tolist()])
    answers, values = np.empty(targets.size), dict[float, float]()

    def log_delta(eps: float) -> float:
        if eps not in values:
            values[eps] = _within_range(float(bounds(np.array([eps]))[0]), upper)
        return values[eps]

    curve, points = Curve(log_delta, rough, pure, cap), np.zeros((2, 0))
    place = np.arange(targets.size)
    # The largest power of two that divides the index; the ends come first.
    turn = np.where((place == 0) | (place == place[-1]), place.size, place & -place)
    for one in np.unique(turn)[::-1]:
        at = np.flatnonzero(turn == one)
        eps, slope = _interpolated(points, np.sqrt(-targets[at]))
        # Searches aim half of the tolerance beyond the crossing, so that most of them end after one evaluation.
        eps = eps * (1 + (0.5 if upper else -0.5) * _tolerance(curve))
        slope[~(eps < min(pure, cap))] = 0.0
        new = eps[slope > 0]
        if new.size:
            values.update(zip(new.tolist(), (_within_range(value, upper) for value in bounds(new).tolist())))
        for i, *guess in zip(at.tolist(), eps.tolist(), slope.tolist()):
            answers[i] = crossing(curve, float(targets[i]), upper=upper, guess=(guess[0], guess[1]))
        measured = {math.sqrt(-values[eps]): eps for eps in answers[turn >= one].tolist() if values.get(eps, -math.inf) > -math.inf}
        points = np.array(sorted(measured.items())).reshape(-1, 2).T
    return answers


def _interpolated(points: FloatArray, depth: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the predicted eps at each depth = sqrt(-log delta), and the slope of the depth in eps (0 if unreliable).

    `points` holds increasing depths and the eps at each depth. The prediction is the polynomial through the nearest points
    (Neville's scheme).
    """
    size, step = min(points.shape[1], NEIGHBOURS), 1e-4 * depth
    if size < NEIGHBOURS - 2:
        return np.zeros(depth.size), np.zeros(depth.size)
    first = np.clip(np.searchsorted(points[0], depth) - size // 2, 0, points.shape[1] - size)
    # The second half of each array is for the slope.
    at, (near, values) = np.concatenate([depth, depth + step]), points[:, np.arange(size)[:, None] + np.concatenate([first, first])]
    for degree in range(1, size):
        before = values[0]
        share = (at - near[:-degree]) / (near[degree:] - near[:-degree])
        values = values[:-1] + share * (values[1:] - values[:-1])
    (eps, beside), error = values[0].reshape(2, -1), np.abs(values[0] - before)[: depth.size]
    reliable = (error <= RELIABLE * eps) & (beside > eps)
    return eps, np.divide(step, beside - eps, out=np.zeros(depth.size), where=reliable)


def _target(delta: float, upper: bool) -> float:
    """Return the target for log delta at the returned eps."""
    # delta() rounds the exponential conservatively. Adjusting the target by this rounding makes delta(epsilon(d)) <= d exact.
    outward = -1 if upper else 1
    reach = delta * (1 + outward * 4 * EXP_SLACK) + outward * 1e-323
    target = min(0.0, math.nextafter(math.log(reach), outward * math.inf)) if reach > 0 else -UNDERFLOW_EXPONENT
    return 0.0 if delta == 1 else target


def _within_range(value: float, upper: bool) -> float:
    """Return min(value, 0), a bound of log delta, or the trivial bound if the value is NaN."""
    return min(0.0, value) if not math.isnan(value) else 0.0 if upper else -math.inf


def last_positive(log_delta: Callable[[float], float], pure: float, cap: float = CAP) -> float:
    """Return the largest eps found, at most `pure`, at which delta is positive; inf if delta is positive at every eps searched.

    `log_delta` returns a lower bound of log delta. If no pure budget is known, the search ends at `cap`.
    """
    def positive(eps: float) -> bool:
        return log_delta(eps) > -math.inf

    if math.isfinite(pure):
        return expand_bracket(pure, positive, -pure * ULP, 0.0)
    if positive(cap):
        return pure
    # No finite pure budget is known, but there may be one, so the search goes up to `cap`.
    return bracket(lambda eps: not positive(eps), 0.0, cap, rtol=1e-12)[0] if positive(0.0) else 0.0


def crossing(curve: Curve, target: float, *, upper: bool, guess: Point = (0.0, 0.0)) -> float:
    """Return a close upper or lower bound of the eps at which the curve meets the target, a log delta <= 0.

    If `upper` is true, the curve was evaluated at the returned eps and is at most the target there, or the returned eps is `pure`.
    If `upper` is false, the curve was evaluated at the returned eps and is at least the target there, or the returned eps is 0 or
    `pure`. If `pure` is inf and the curve is above the target up to `cap`, the result is inf. `guess` is an eps and the slope of
    sqrt(-log delta) there: if the slope is positive, the search starts at this eps instead of the crossing of the rough curve.
    """
    if curve.pure < TINY:
        # Both 0 and `pure` are within the absolute tolerance TINY of the crossing. At such small eps, differences of eps may
        # underflow to 0.
        return curve.pure if upper else 0.0
    goal, rough = math.sqrt(-target), curve.rough
    if rough is not None:
        rough = replace(rough, log_delta=cache(rough.log_delta), pure=curve.pure, cap=curve.cap)
    rtol = _tolerance(curve)

    def excess(eps: float) -> float:
        """Return sqrt(-log delta) - sqrt(-target), which is nearly linear in eps.

        The difference is computed as a quotient, so that its sign is exact.
        """
        value = curve.log_delta(eps)
        if value == target:
            return 0.0
        # From the pure budget on, log delta is -inf. Only the sign of the excess sqrt(-log delta) - sqrt(-target) is used there, so
        # any large number may be returned.
        return (target - value) / (goal + math.sqrt(-value)) if value > -math.inf else goal + 1e3

    at, slope = guess if guess[1] > 0 else (0.0, 0.0) if rough is None else _rough_crossing(rough, target, upper)
    value = excess(at)
    # Near a pure budget, the rough curve may be far steeper than the curve. So the slope of the rough curve is used to estimate the
    # distance to the crossing only if the curve at the guess is close to the target.
    valid = (value >= 0 if upper else value <= 0) and abs(value) <= 0.1 * goal
    if slope > 0 and valid and abs(value) <= slope * rtol * at:
        return at
    right = value < 0
    # With a guess, the first step is 1.02 times the estimated distance to the crossing. A longer step would widen the bracket. A
    # shorter step would more often not reach the crossing. Without a guess the first step is 0.05, a typical eps.
    step = max(1.02 * abs(value) / slope, 0.5 * rtol * at) if slope > 0 else min(0.05, 0.5 * curve.pure)
    # If the guess itself is a valid answer, the first step ends half of the tolerance before the crossing: most often the search
    # ends there, without the evaluations of a bracket.
    close = slope * rtol * at if slope > 0 and valid and rtol > curve.rtol else 0.0
    if close > 0:
        step = (abs(value) - 0.5 * close) / slope
    while True:
        if at >= curve.pure if right else at == 0:
            return at
        if right and at >= curve.cap:
            # The crossing lies above `cap`. The upper bound is then `pure`; the lower bound is `cap`, or inf if `pure` is inf.
            return curve.pure if upper or curve.pure == math.inf else at
        # Evaluate the curve at `cap` if the step ends beyond it: the slope of a rough curve may be far too small.
        there = min(at + step, curve.pure, curve.cap) if right else max(at - step, 0.0)
        last, at, value = (at, value), there, excess(there)
        if (value < 0) != right:
            break
        rise = (value - last[1]) / (at - last[0])
        # Use the slope of the curve itself: near a pure budget, the slope of the rough curve may be far larger.
        if close > 0 and abs(value) <= rise * rtol * at:
            return at
        # The next step ends 10 % beyond the point where the line through the last two points reaches the target.
        step = min(max(1.1 * abs(value) / rise, step), 3 * at) if rise > 0 else 3 * at
    (low, at_low), (high, at_high) = sorted([last, (at, value)])
    # The search aims half of the tolerance beyond the crossing (above it for an upper bound, below it for a lower bound). An
    # evaluated eps within half of the tolerance of this aim is a valid answer and ends the search, even if the bracket is wide.
    margin = 0.5 * rtol * min((at_high - at_low) / (high - low) * high, goal)
    aim = margin if upper else -margin

    def enough(low: float, high: float, at_low: float, at_high: float) -> bool:
        if min(abs(at_low), abs(at_high)) <= margin:
            return True
        fall = (at_high - at_low) / JUMP
        if rough is None or not (rough.settles and rough.jumps) or not slope * (high - low) < fall < goal / JUMP:
            return False
        # The slope of the rough curve is known at the guess only. It may be steeper elsewhere in the bracket, so its decrease over
        # the whole bracket is evaluated.
        return _fall(rough, low, high) < fall

    if high == curve.pure and high - low > 4 * ULP * high:
        (low, at_low), (high, at_high) = _below_pure(excess, (low, at_low), (high, at_high))
    # If the curve exceeds the target at eps = 0 only, the crossing is 0, where only the absolute tolerance TINY ends the search.
    low, high, at_low, at_high = narrowed(
        lambda eps: excess(eps) - aim, low, high, at_low - aim, at_high - aim, rtol=rtol, xtol=TINY, enough=enough
    )
    if upper:
        return low if abs(at_low) <= margin else high
    return high if abs(at_high) <= margin else low


def _tolerance(curve: Curve) -> float:
    """Return the largest permitted relative distance of the returned eps from the crossing."""
    return curve.rtol if curve.rough is None else max(curve.rtol, curve.rough.settles)


def _below_pure(excess: Callable[[float], float], below: Point, pure: Point) -> tuple[Point, Point]:
    """Return a narrower bracket of the crossing, given one whose upper end is the pure budget.

    A point is an eps and its excess, sqrt(-log delta) - sqrt(-target).

    As eps approaches the pure budget, delta often falls like a power of the distance d = pure - eps, so that it may cross the
    target where d is many orders of magnitude smaller than eps. Therefore the variable of this search is -log d. The search ends
    when d is known to about 20 %; in that bracket the curve is smooth in eps.
    """
    first, last = -math.log(pure[0] - below[0]), -math.log(ULP * pure[0])
    points = {first: below, last: pure}

    def of_log(distance: float) -> float:
        eps = pure[0] - math.exp(-distance)
        points[distance] = eps, excess(eps)
        return points[distance][1]

    # The excess at the pure budget may be any positive number. Minus the excess at the other end is used, so that the first step
    # bisects.
    first, last, *_ = narrowed(of_log, first, last, below[1], -below[1], rtol=0.0, xtol=0.1)
    return points[first], points[last]


def _rough_crossing(rough: Curve, target: float, upper: bool) -> tuple[float, float]:
    """Return the eps at which the rough curve meets the target, and the slope of sqrt(-log delta) of the rough curve there.

    Both are 0 if the rough curve does not meet the target below its pure budget and its cap.
    """
    eps = crossing(rough, target, upper=upper)
    reach = 1e-4 * min(eps, rough.pure - eps)
    if not (reach > 0 and eps < rough.cap):
        return 0.0, 0.0
    slope = _fall(rough, eps, eps + reach) / reach
    return (eps, slope) if 0 < slope < math.inf else (0.0, 0.0)


def _fall(rough: Curve, low: float, high: float) -> float:
    """Return the increase of sqrt(-log delta) of the curve from `low` to `high`."""
    return math.sqrt(-rough.log_delta(high)) - math.sqrt(-rough.log_delta(low))
