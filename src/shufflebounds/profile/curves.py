r"""Curves of profiles: enclosed by finitely many values of delta, and the convex hull of several.

With E = e^eps the curve is :math:`f(\alpha) = \sup_E 1 - \delta(E) - E \alpha`, a supremum of lines. Lines of an upper bound
of delta, at some E only, give a curve at or below f. A polyline in E at or below delta gives a curve at or above f, and the
lines of its corners make it all up.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shufflebounds._cached import cached_property
from shufflebounds._progress import announced
from shufflebounds._types import ULP, FloatArray, Interval
from shufflebounds.composing.sampled_profile import STAGES, SampledProfile
from shufflebounds.profile.renyi import FEW_VALUES
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.closed import QUANTILE_ERROR, Gaussian
from shufflebounds.tradeoff.convex import drops
from shufflebounds.tradeoff.envelope import envelope
from shufflebounds.tradeoff.piecewise import Piecewise, prune
from shufflebounds.tradeoff.representation import log1mexp, log_quantile

__all__ = ["SKETCH", "Staged", "convex_hull", "curve", "gdp_mu", "mu_of_knots", "repeated_mu", "rounded"]

Samples = Callable[[float, int], tuple[SampledProfile, SampledProfile]]

SKETCH = 0.5
"""Distance of the samples, in quantiles of delta, around which single levels alpha are refined. A smaller distance evaluates more
values, a larger one starts the refinement further from where it ends."""

ONE_BY_ONE = 16
"""Number of levels alpha up to which each is refined on its own, with at most 4 (ROUNDS - 1) values of delta."""

ROUNDS, NARROW = 9, 1e-7
"""Most rounds of the refinement at one alpha, and the gap of log beta, relative to log beta, at which it ends: for beta near 1 that
is the relative gap of 1 - beta. It also ends when a round leaves more than
90 % of the gap: the bounds of delta themselves are then as far apart."""

BESIDE = 0.06
"""Distance of the samples beside the place of a slope, as a share of the interval: the gap falls with its square in each round, but
the errors of delta grow with its inverse."""


def _enclosing(forward: SampledProfile, backward: SampledProfile, upper: bool) -> tuple[Piecewise, FloatArray]:
    """Return a curve above or below T(P, Q), and the eps of its pieces. Forward are samples of H(Q||P), backward of H(P||Q)."""
    if upper:
        return envelope(*forward.below(backward), *backward.below(forward), upper=True)
    return envelope(forward.eps, forward.high, backward.eps, backward.high)


def curve(forward: SampledProfile, backward: SampledProfile, *, upper: bool) -> Tradeoff:
    """Return a curve at or above T(P, Q), or at or below it, as the samples enclose it."""
    return Tradeoff(_enclosing(forward, backward, upper)[0])


def _corner_mu(points: FloatArray, *, upper: bool) -> FloatArray:
    """Return the Gaussian mu of every point, from above or below."""
    alpha, beta = log_quantile(*points[:2]), log_quantile(*points[2:])
    error = QUANTILE_ERROR * (1 + np.abs(alpha))
    return np.asarray(-alpha - beta + (error if upper else -error))


class Staged(Piecewise):
    """A curve of samples that are placed as questions need them; see :data:`STAGES`.

    Few levels alpha are answered one by one, from samples SKETCH apart and some next to the eps whose line decides at alpha. Many
    levels are answered from samples as dense as the profile asks for. In both cases the first stage decides in which the line of
    that level is not the last, so no answer depends on earlier ones. What concerns the whole curve, such as its breakpoints, is
    answered by the last stage.

    Parameters
    ----------
    samples : callable
        Returns the samples of H(Q||P) and of H(P||Q), given their distance in quantiles of delta and the stage.
    spacing, sketch : float
        The distance of the samples for many levels, and for few.
    upper : bool
        Whether the curve lies at or above T(P, Q), rather than at or below.
    """

    _at: Callable[[float, int], tuple[Piecewise, float, float]]
    _near: Callable[[float, int], float]
    _spacing: float
    _sketch: float

    def __init__(self, samples: Samples, spacing: float, sketch: float, *, upper: bool) -> None:
        stages: dict[tuple[float, int], tuple[Piecewise, float, float]] = {}

        def at(step: float, stage: int) -> tuple[Piecewise, float, float]:
            if (step, stage) not in stages:
                stages[step, stage] = _decided(*samples(step, stage), upper)
            return stages[step, stage]

        def near(log_alpha: float, stage: int) -> float:
            return _refined_at(*samples(sketch, stage), log_alpha)[upper]

        own = {"_at": at, "_near": near, "_spacing": spacing, "_sketch": sketch, "atoms": None, "label": ""}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # the samples may be of any class, and a pickle holds the breakpoints alone
        return Piecewise, (self.points, None)

    @cached_property
    def points(self) -> FloatArray:
        with announced("tradeoff"):
            points = self._at(self._spacing, len(STAGES) - 1)[0].points
        points.setflags(write=False)
        return points

    def log_beta(self, x: FloatArray) -> FloatArray:
        with announced("tradeoff"):
            return self._log_beta(x)

    def _log_beta(self, x: FloatArray) -> FloatArray:
        few = x.size <= ONE_BY_ONE
        out, missing = np.empty_like(x), np.ones(x.size, bool)
        for stage in range(len(STAGES)):
            form, first, last = self._at(self._sketch if few else self._spacing, stage)
            known = missing & (x >= first) & (log1mexp(x) >= last) if stage < len(STAGES) - 1 else missing
            out[known] = [self._near(at, stage) for at in x[known].tolist()] if few else form.log_beta(x[known])
            missing &= ~known
            if not missing.any():
                break
        return out


def _decided(forward: SampledProfile, backward: SampledProfile, upper: bool) -> tuple[Piecewise, float, float]:
    """Return the curve, and the least log alpha and log(1 - alpha) at which none of the last lines of either direction decides."""
    form, eps = _enclosing(forward, backward, upper)
    limits = []
    for samples in (forward, backward):
        finite = samples.eps[samples.high > -np.inf]
        # the line of the last sample decides further out than it would among more lines
        limits.append(float(finite[-2]) if finite.size > 2 else -1.0)
    inner = np.flatnonzero((eps <= limits[0]) & (-eps <= limits[1]))
    if not inner.size:
        return form, 0.0, 0.0
    # a piece lies between the vertices of its own number and the next
    return form, float(form.points[0, inner[0]]), float(form.points[1, inner[-1] + 1])


def _refined_at(forward: SampledProfile, backward: SampledProfile, log_alpha: float) -> Interval:
    """Return bounds of log f(alpha) from the samples and more of them near the eps whose line decides at alpha."""
    at, low, high, before = np.array([log_alpha]), -math.inf, 0.0, math.inf
    mine = forward.copy()
    both = mine, mine if backward is forward else backward.copy()
    for _ in range(ROUNDS):
        below, eps = _enclosing(*both, False)
        above, corners = _enclosing(*both, True)
        low, high = max(low, float(below.log_beta(at)[0])), min(high, float(above.log_beta(at)[0]))
        gap = high - low
        if gap <= NARROW * abs(low) or gap > 0.9 * before or not eps.size or log_alpha == -math.inf:
            break
        before, place = gap, _piece(below, eps, log_alpha)
        # where f is steeper than -1 the deciding line has slope alpha, elsewhere beta, in the profile of the reversed pair
        steep = place > 0 or (place == 0 and log_alpha < low)
        corner = _piece(above, corners, log_alpha) if corners.size else place
        wanted = abs(corner) if (corner > 0) == steep else None
        if not _add_near(both[0 if steep else 1], log_alpha if steep else low, abs(place), wanted):
            break
    return Interval(low, high)


def _piece(form: Piecewise, eps: FloatArray, log_alpha: float) -> float:
    """Return the eps of the piece of a curve at alpha, of either sign."""
    return float(eps[min(int(np.searchsorted(form.points[0, 1:], log_alpha)), eps.size - 1)])


def _add_near(samples: SampledProfile, log_slope: float, eps: float, corner: float | None) -> int:
    """Add samples where delta has this slope in e^eps, by linear interpolation of its logarithm; return how many were evaluated.

    The slopes are those between the samples next to `eps`. Two more samples beside the place show how far the exact slope differs,
    and one at `corner`, where the lines from both sides meet, finds a kink of delta.
    """
    x, y = samples.eps, samples.high
    place = int(np.searchsorted(x, eps))
    first, last = max(place - 2, 0), min(place + 2, x.size - 1)
    x, y = x[first : last + 1], y[first : last + 1]
    if x.size < 2:
        return 0
    slopes, middle = drops(x, y), 0.5 * (x[1:] + x[:-1])
    known = np.isfinite(slopes)
    if not known.any():
        return 0
    falling = np.minimum.accumulate(slopes[known])
    goal = float(np.interp(-log_slope, -falling, middle[known]))
    width = float(np.diff(x)[min(max(int(np.searchsorted(x, goal)) - 1, 0), x.size - 2)])
    before = samples.evaluations
    fresh = [goal - BESIDE * width, goal, goal + BESIDE * width, *([corner] if corner is not None else [])]
    samples.add(np.array([value for value in fresh if value >= 0]))
    return samples.evaluations - before


def gdp_mu(forward: SampledProfile, backward: SampledProfile, rtol: float, evaluations: int) -> Interval:
    """Return bounds of the Gaussian mu of the curve, refined until the two are rtol apart; the samples grow."""
    best, share = 0.0, 0.5 if evaluations <= FEW_VALUES else 0.0
    while True:
        above, eps = _enclosing(forward, backward, False)
        below, _ = _enclosing(forward, backward, True)
        corners = _corner_mu(above.points[:, 1:-1], upper=True)
        most = float(corners.max(initial=0.0))
        best = max(best, float(_corner_mu(below.points[:, 1:-1], upper=False).max(initial=0.0)))
        # where f(0) < 1 no Gaussian curve lies below
        unlimited = max(above.points[3, 0], above.points[1, -1]) > -math.inf
        # where values are few, those that lower the largest corner come first
        open_ = corners > max(best * (1 + rtol), best + share * (most - best))
        if unlimited or not open_.any():
            break
        low, high = eps[1:][open_], eps[:-1][open_]
        grown = _halve(forward, np.maximum(low, 0.0), high, evaluations)
        grown += _halve(backward, np.maximum(-high, 0.0), -low, evaluations)
        if not grown:
            break
    return Interval(best, math.inf if unlimited else most)


def mu_of_knots(points: FloatArray, *, upper: bool) -> float:
    """Return the Gaussian mu of a curve of all its knots, inf where the supports of the laws differ."""
    if max(points[3, 0], points[1, -1]) > -math.inf:
        return math.inf
    return float(_corner_mu(points[:, 1:-1], upper=upper).max(initial=0.0))


def repeated_mu(above: Tradeoff, times: int) -> float:
    """Return a mu that so many releases reach at least, whose curve lies at or below `above`: each test of one, passed by all.

    Where deep losses decide, this comes close to the root of `times` that bounds the growth of mu from above.
    """
    form = above._form
    if isinstance(form, Gaussian):
        return math.sqrt(times) * form.gdp_mu() * (1 - QUANTILE_ERROR)
    if isinstance(form, Piecewise):
        one = form.points[0, 1:-1], form.points[3, 1:-1]
    else:
        # any tests give a lower bound; only for normal noise do the squares of mu add up
        log_alpha = -np.geomspace(1e-3, 700.0, 256)
        one = log_alpha, log1mexp(form.log_beta(log_alpha))
    log_alpha, log_power = (times * row * (1 + sign * 4 * ULP) for row, sign in zip(one, (-1, 1)))
    points = np.array([log_alpha, log1mexp(log_alpha), log1mexp(log_power), log_power])
    return float(_corner_mu(points[:, np.isfinite(points).all(axis=0)], upper=False).max(initial=0.0))


def _halve(samples: SampledProfile, left: FloatArray, right: FloatArray, most: int) -> int:
    """Ask for delta in the middle of these intervals, where they are wide and the samples reach; return how many were asked."""
    wide = (right - left > 1e-12 * right) & ~samples.too_deep(left)
    before = samples.evaluations
    if before < most:
        samples.add(0.5 * (left + right)[wide])
    return samples.evaluations - before


def rounded(log_alpha: FloatArray, log_beta: FloatArray, *, upper: bool) -> Tradeoff:
    """Return the curve through the knots, those that rounding has put out of order moved up (or down, for a lower side)."""
    if upper:
        log_alpha, log_beta = np.maximum.accumulate(log_alpha), np.maximum.accumulate(log_beta[::-1])[::-1]
    else:
        log_alpha, log_beta = np.minimum.accumulate(log_alpha[::-1])[::-1], np.minimum.accumulate(log_beta)
    return Tradeoff(Piecewise.through(np.minimum(log_alpha, 0.0), np.minimum(log_beta, 0.0)))


def convex_hull(curves: list[Tradeoff]) -> Tradeoff:
    """Return the greatest convex curve at or below all of the curves, that of all their knots; they are piecewise linear.

    The hull of upper bounds is an upper bound of the hull, and the hull of lower bounds a lower one.
    """
    points = np.concatenate([_pieces(f).points for f in curves], axis=1)
    return Tradeoff(prune(points[:, np.lexsort((points[2], -points[1], points[0]))]))


def _pieces(f: Tradeoff) -> Piecewise:
    if not isinstance(f._form, Piecewise):
        raise TypeError(f"{f!r} is not piecewise linear: it has no knots")
    return f._form
