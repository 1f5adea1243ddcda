r"""Bounds of the trade-off curve of a profile from finitely many values of delta, and the convex hull of several curves.

With E = e^eps the curve is :math:`f(\alpha) = \sup_E 1 - \delta(E) - E \alpha`, a supremum of lines, one for each E. A lower bound
of f is the supremum of the lines for finitely many E, with upper bounds of delta. An upper bound of f needs a piecewise linear
function of E at or below delta: it is the supremum of the lines for the corners of this function. Samples are bounds of delta at
some eps.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import MOST_ROUNDS
from shufflebounds._base.progress import announced
from shufflebounds._base.search import bracket
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._core import _tradeoff
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.release import Sampling
from shufflebounds._losses.renyi import FEW_VALUES, enough_fall
from shufflebounds._losses.sampled_profile import INTERPOLATED, STAGES, HockeyStickBounds, SampledProfile, alone
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.closed_curves import QUANTILE_ERROR, GaussianCurve
from shufflebounds.tradeoff.convex import drops
from shufflebounds.tradeoff.envelope import envelope
from shufflebounds.tradeoff.piecewise import Piecewise, prune
from shufflebounds.tradeoff.representation import log1mexp, log_quantile

__all__ = [
    "SKETCH", "Staged", "breakpoints", "convex_hull", "curve", "curve_of_breakpoints", "curve_of_masses", "gdp_mu", "mu_of_knots",
    "repeated_mu", "sketch_step",
]

Samples = Callable[[float, int], tuple[SampledProfile, SampledProfile]]

SKETCH = 0.5
"""Distance, in sqrt(-2 log delta), of the first samples of delta if the trade-off curve is computed at a few levels alpha only;
each level then adds samples. Raised: more rounds of refinement. Lowered: more values at first."""


def sketch_step(sampling: Sampling) -> float:
    """Return the step, in sqrt(-2 log delta), of the first samples of a curve that is refined near given levels alpha."""
    # Between samples, a lower bound of delta that is not convex is only known to be monotone, so its gap is proportional to the
    # step.
    return max(sampling.spacing, SKETCH) if sampling.convex else 0.5 * sampling.spacing


def _enclosing(forward: SampledProfile, backward: SampledProfile, upper: bool) -> tuple[Piecewise, FloatArray]:
    """Return an upper or lower bound of T(P, Q), and for each of its linear pieces the eps of the line in the supremum.

    `forward` has samples of H(Q||P), `backward` samples of H(P||Q).
    """
    if upper:
        return envelope(*forward.below(backward), *backward.below(forward), upper=True)
    return envelope(forward.eps, forward.high, backward.eps, backward.high)


def _with_join(forward: SampledProfile, backward: SampledProfile, upper: bool) -> tuple[Piecewise, FloatArray]:
    """Return the results of `_enclosing`, with the lower bound changed by `_lowered` if the pair is not matched."""
    form, eps = _enclosing(forward, backward, upper)
    if upper or forward.matched:
        return form, eps
    return _lowered(form, eps, float(forward.high[0]), float(backward.high[0]))


def _lowered(form: Piecewise, eps: FloatArray, forward: float, backward: float) -> tuple[Piecewise, FloatArray]:
    """Return a lower bound of a curve whose delta is at least both divergences of an unmatched pair, and the eps of its pieces.

    `form` and `eps` are those of the supremum of lines, `forward` and `backward` the logs of H(Q||P) and of H(P||Q) at E = 1. If
    the two divergences do not join in a convex function at E = 1, the supremum has a smaller delta near E = 1. Then the vertex
    (alpha, beta) between the lines of the two divergences is replaced by (alpha - g, beta - h), where delta of the result at E = 1
    is the larger divergence. The line of the new vertex is above that of the old one by g E + h. So it is above the divergences,
    which are convex in E, up to the E where they meet the old line. The distances g and h are equal if this leaves both errors at
    least 0.
    """
    log_delta, reached = max(forward, backward), float(replace(form, side=0).log_delta(np.zeros(1))[0])
    if not log_delta > max(reached, -1e300) * (1 - 8 * ULP) + 8 * ULP:
        return form, eps
    # If the two divergences differ at E = 1, there is a piece of slope -1, and the vertex is the end next to the larger divergence.
    place = int(np.count_nonzero(eps > 0 if forward > backward else eps >= 0))
    both = math.exp(log_delta) * -math.expm1(reached - log_delta) * (1 + 4 * ULP) + 2 * ULP
    errors = np.exp(form.points[[0, 2], place])
    away = np.minimum(both / 2, errors)
    with np.errstate(divide="ignore"):
        alpha, beta = np.log(np.maximum(errors - np.maximum(away, both - away[::-1]), 0.0))
    vertex = np.array([alpha, *log1mexp(np.array([alpha])), beta, *log1mexp(np.array([beta]))])
    points = np.insert(form.points, place, vertex, axis=1)[:, np.arange(form.points.shape[1] + 1) != place + 1]
    changed = prune(points, form.side)
    assert changed.atoms is not None
    across, down = changed.atoms
    return changed, down - across


def curve(forward: SampledProfile, backward: SampledProfile, *, upper: bool) -> Tradeoff:
    """Return the upper or lower bound of T(P, Q) that follows from the samples."""
    return Tradeoff(_with_join(forward, backward, upper)[0])


def breakpoints(lists: Sequence[LossAtoms | None]) -> FloatArray | None:
    """Return eps >= 0 between which the largest of the divergences of one or two lists is linear in e^eps.

    The result is None if a list is not known or omits outcomes.
    """
    known = [atoms for atoms in lists if atoms is not None and atoms.log_lost == -math.inf]
    if len(known) < len(lists):
        return None
    # Both bounds of the divergences have their own breakpoints: the losses moved by their errors.
    eps = np.unique(np.concatenate([np.zeros(1), *(atoms.moved(way) for atoms in known for way in (-1, 1))]))
    eps = eps[eps >= 0]
    if len(known) == 1:
        return eps
    values = np.array([atoms.log_delta(eps).lower for atoms in known])
    top = np.maximum(values.max(axis=0), -1e300)
    # The differences of both divergences, relative to the larger one. If the sign changes, two lines in E = e^eps cross.
    first = -np.subtract(*np.exp(values - top))
    after = first[1:] * np.exp(np.diff(top))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = first[:-1] / (first[:-1] - after)
    crossing = eps[:-1] + np.log1p(share * np.expm1(np.diff(eps)))
    return np.unique(np.append(eps, crossing[(share > 0) & (share < 1)]))


def curve_of_breakpoints(
    forward: HockeyStickBounds, backward: HockeyStickBounds, breakpoints: tuple[FloatArray, FloatArray], *, upper: bool
) -> Piecewise:
    """Return the upper or lower bound of the curve of two divergences that are piecewise linear in e^eps.

    `forward` returns bounds of log H(Q||P), `backward` those of log H(P||Q), and `breakpoints` has the eps >= 0 of the breakpoints
    of H(P||Q) and of H(Q||P). The largest of the lines for all breakpoints is the exact curve.
    """
    own, reverse = breakpoints
    high, low = (np.minimum(bounds(eps)[not upper], 0.0) for bounds, eps in ((forward, reverse), (backward, own)))
    form, lines = envelope(reverse, high, own, low, upper=upper)
    return form if upper else _lowered(form, lines, float(high[0]), float(low[0]))[0]


def _corner_mu(points: FloatArray, *, upper: bool) -> FloatArray:
    """Return for every point (alpha, beta) a bound of the mu whose Gaussian trade-off curve contains the point."""
    alpha, beta = log_quantile(*points[:2]), log_quantile(*points[2:])
    error = QUANTILE_ERROR * (1 + np.abs(alpha))
    return np.asarray(-alpha - beta + (error if upper else -error))


class Staged(Piecewise):
    """A trade-off curve whose samples are computed in stages, when a value needs them; see :data:`STAGES`.

    For a few levels alpha, f is computed one level after the other, from samples `sketch` apart and more samples near one eps: the
    eps whose line 1 - delta - e^eps alpha is the largest at alpha. For many levels, the samples are `spacing` apart. Each level
    uses the first stage in which the largest line is not that of the last sample. So no value depends on earlier calls. Properties
    of the whole curve, such as its breakpoints, use the last stage.

    Parameters
    ----------
    samples : callable
        Returns the samples of H(Q||P) and of H(P||Q), given their distance in sqrt(-2 log delta) and the stage.
    spacing, sketch : float
        The distances of the samples for many levels and for a few levels.
    upper : bool
        Whether the curve is an upper bound of T(P, Q); otherwise it is a lower bound.
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

        own = {"_at": at, "_near": near, "_spacing": spacing, "_sketch": sketch, "atoms": None, "label": "",
               "side": 1 if upper else -1}
        for name, value in own.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # Only the breakpoints are pickled, because the samples may refer to any class.
        return Piecewise, (self.points, None, self.label, self.side)

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
        # Up to 16 levels alpha are refined one by one, each with at most 32 evaluations of delta.
        few = x.size <= 16
        out, missing = np.empty_like(x), np.ones(x.size, bool)
        for stage in range(len(STAGES)):
            form, first, last = self._at(self._sketch if few else self._spacing, stage)
            covered = missing & (x >= first) & (log1mexp(x) >= last) if stage < len(STAGES) - 1 else missing
            out[covered] = [self._near(at, stage) for at in x[covered].tolist()] if few else form.log_beta(x[covered])
            missing &= ~covered
            if not missing.any():
                break
        return out


def _decided(forward: SampledProfile, backward: SampledProfile, upper: bool) -> tuple[Piecewise, float, float]:
    """Return the curve and a range of alpha. In this range, f(alpha) is not given by the line of the largest sampled eps.

    The range is given by its smallest log alpha and its smallest log(1 - alpha). Outside the range, samples at larger eps are
    missing.
    """
    form, eps = _with_join(forward, backward, upper)
    limits = []
    for samples in (forward, backward):
        finite = samples.eps[samples.high > -np.inf]
        # The limit is the second largest eps of the samples with a positive delta, because the line of the last sample is the
        # largest in a range of alpha that would shrink if samples at larger eps were added.
        limits.append(float(finite[-2]) if finite.size > 2 else -1.0)
    inner = np.flatnonzero((eps <= limits[0]) & (-eps <= limits[1]))
    if not inner.size:
        return form, 0.0, 0.0
    # Piece i lies between the vertices i and i + 1.
    return form, float(form.points[0, inner[0]]), float(form.points[1, inner[-1] + 1])


def _refined_at(forward: SampledProfile, backward: SampledProfile, log_alpha: float) -> Interval:
    """Return bounds of log f(alpha), after adding samples near the eps whose line 1 - delta - e^eps alpha is the largest."""
    at, low, high, before = np.array([log_alpha]), -math.inf, 0.0, math.inf
    mine = forward.copy()
    both = mine, mine if backward is forward else backward.copy()
    # Stop at a relative gap of log beta of 1e-7 (for beta near 1, that of 1 - beta), or if the last round reduced the gap by less
    # than 2 %: the rest is then due to the gap of the bounds of delta.
    for _ in range(MOST_ROUNDS + 1):
        below, eps = _with_join(*both, False)
        above, corners = _with_join(*both, True)
        low, high = max(low, float(below.log_beta(at)[0])), min(high, float(above.log_beta(at)[0]))
        gap = high - low
        if gap <= 1e-7 * abs(low) or gap > 0.98 * before or not eps.size or log_alpha == -math.inf:
            break
        before, place = gap, _piece(below, eps, log_alpha)
        # The line that is the largest at alpha belongs to the eps at which delta, as a function of e^eps, has the slope -alpha. If
        # the slope of f at alpha is above -1, this eps is negative. The line then comes from the reversed pair, whose delta has the
        # slope -beta at -eps.
        steep = place > 0 or (place == 0 and log_alpha < low)
        corner = _piece(above, corners, log_alpha) if corners.size else place
        wanted = abs(corner) if (corner > 0) == steep else None
        if not _add_near(both[0 if steep else 1], log_alpha if steep else low, abs(place), wanted):
            break
    return Interval(low, high)


def _piece(form: Piecewise, eps: FloatArray, log_alpha: float) -> float:
    """Return the eps of the line that is the largest at alpha; it is negative for lines that come from the pair (Q, P)."""
    return float(eps[min(int(np.searchsorted(form.points[0, 1:], log_alpha)), eps.size - 1)])


def _add_near(samples: SampledProfile, log_slope: float, eps: float, corner: float | None) -> int:
    """Add samples where delta has the slope -e^log_slope in e^eps; return their number.

    One sample is placed at the eps with this slope, which is interpolated from the log slopes near `eps`. Two more samples, one on
    either side of the first, show the error of the slope. A sample at `corner`, where the supporting lines from the left and from
    the right meet, finds a kink of delta.
    """
    x, y = samples.eps, samples.high
    place = int(np.searchsorted(x, eps))
    first, last = max(place - 2, 0), min(place + 2, x.size - 1)
    x, y = x[first : last + 1], y[first : last + 1]
    if x.size < 2:
        return 0
    slopes, middle = drops(x, y), 0.5 * (x[1:] + x[:-1])
    finite = np.isfinite(slopes)
    if not finite.any():
        return 0
    falling = np.minimum.accumulate(slopes[finite])
    goal = float(np.interp(-log_slope, -falling, middle[finite]))
    width = float(np.diff(x)[min(max(int(np.searchsorted(x, goal)) - 1, 0), x.size - 2)])
    before = samples.evaluations
    # In each round the gap decreases with the square of the distance `away` of the two new samples from `goal`, but errors of delta
    # cause an error of the slope that is proportional to 1/away.
    away = 0.06 * width
    fresh = [goal - away, goal, goal + away, *([corner] if corner is not None else [])]
    samples.add(np.array([value for value in fresh if value >= 0]))
    return samples.evaluations - before


def gdp_mu(forward: SampledProfile, backward: SampledProfile, rtol: float, evaluations: int, cap: float = math.inf) -> Interval:
    """Return bounds of mu, the parameter of Gaussian differential privacy of the curve, from samples.

    Samples are added until the relative gap of the bounds is at most rtol.

    `cap` is another upper bound of mu. If the upper bound from samples would certainly exceed `cap`, no samples are added for it.

    The refinement also ends if more samples could reduce the gap of mu by at most the fraction 2 INTERPOLATED. The rest of this gap
    is then due to the gap of the bounds of delta.
    """
    best, share = 0.0, 0.5 if evaluations <= FEW_VALUES else 0.0
    while True:
        above, eps = _enclosing(forward, backward, False)
        corners = _corner_mu(above.points[:, 1:-1], upper=True)
        most = float(corners.max(initial=0.0))
        best = _attained_mu(forward, backward, best, most, rtol)
        # If f(0) < 1, no Gaussian trade-off curve is at or below f, and mu is infinite.
        unlimited = max(above.points[3, 0], above.points[1, -1]) > -math.inf
        if unlimited or not most > best * (1 + rtol / 4):
            break
        for upper in (True, False):
            # The upper and the lower bounds of delta give one bound of mu each; start with the upper bounds. Refine as if these
            # bounds were delta itself. `attained` is the largest mu at the samples: only intervals whose corner has a larger mu can
            # change the bound of mu.
            one, other = alone(forward, backward, upper)
            form, eps = _enclosing(one, other, False)
            corners = _corner_mu(form.points[:, 1:-1], upper=True)
            attained = _attained_mu(one, other, best, float(corners.max(initial=0.0)), rtol)
            if upper and attained >= cap:
                continue
            threshold = attained + max(rtol / 8 * attained, INTERPOLATED / 2 * (most - best))
            # If only a few values of delta may be computed, start with the intervals whose corners have the largest mu.
            open_ = corners > max(threshold, attained + share * (float(corners.max(initial=0.0)) - attained))
            low, high = eps[1:][open_], eps[:-1][open_]
            grown = _halve(forward, np.maximum(low, 0.0), high, evaluations)
            grown += _halve(backward, np.maximum(-high, 0.0), -low, evaluations)
            if grown:
                break
        else:
            break
    best = _mu_of_samples(forward, backward, best, most, rtol)
    upper_bound = math.inf if unlimited else most
    # A bound of delta that is not computed from enumerated pairs need not be convex in e^eps. `most` is mu of the convex hull of
    # this bound. `best` is computed from single values and may exceed `most`.
    return Interval(min(best, upper_bound), upper_bound)


def _attained_mu(forward: SampledProfile, backward: SampledProfile, best: float, most: float, rtol: float) -> float:
    """Return a lower bound of mu from the curve through the samples; `best` and `most` are known lower and upper bounds."""
    best = max(best, float(_corner_mu(_enclosing(forward, backward, True)[0].points[:, 1:-1], upper=False).max(initial=0.0)))
    if forward.convex and backward.convex:
        return best
    # Between samples, a lower bound of delta that is not convex is only known to be monotone. The single samples then give a larger
    # lower bound of mu, so that fewer intervals have to be divided.
    return _mu_of_samples(forward, backward, best, most, rtol)


def _mu_of_samples(forward: SampledProfile, backward: SampledProfile, best: float, most: float, rtol: float) -> float:
    """Return a lower bound of mu from the single samples; `best` and `most` are known lower and upper bounds."""
    precise = max(rtol / 16, INTERPOLATED / 8 * (1 - best / most)) if most > 0 else rtol
    for samples in (forward, backward):
        positive = samples.low > -np.inf
        best = _mu_of_values(samples.eps[positive], samples.low[positive], best, most, precise)
    return best


def _mu_of_values(eps: FloatArray, log_delta: FloatArray, attained: float, most: float, rtol: float) -> float:
    """Return a lower bound of mu from lower bounds of log delta at single eps; `attained` and `most` are bounds known before.

    If the mechanism is mu-Gaussian differentially private, its delta is at most that of N(0, 1) and N(mu, 1) at every eps (Dong,
    Roth, Su 2022). A mu for which this fails at one of the eps is a lower bound, so nothing is interpolated between the eps.
    """
    def enough(mu: float) -> bool:
        return not bool((log_delta > GaussianCurve(mu, -1).log_delta(eps)).any())

    return attained if enough(attained) or not most > attained else bracket(enough, attained, most, rtol=rtol)[0]


def mu_of_knots(points: FloatArray, *, upper: bool) -> float:
    """Return a bound of the Gaussian mu of a curve, given all its breakpoints; inf if P and Q have different supports."""
    if max(points[3, 0], points[1, -1]) > -math.inf:
        return math.inf
    return float(_corner_mu(points[:, 1:-1], upper=upper).max(initial=0.0))


def repeated_mu(above: Tradeoff, times: int) -> float:
    """Return a lower bound of mu of `times` releases, given an upper bound `above` of the trade-off curve of one release.

    Each test of one release gives a test of the composition, which rejects if the test rejects in every release. If rare large
    losses determine mu, this lower bound is close to an upper bound of mu: sqrt(times) times mu of one release.
    """
    form = above._form
    if isinstance(form, GaussianCurve):
        return math.sqrt(times) * form.gdp_mu() * (1 - QUANTILE_ERROR)
    if isinstance(form, Piecewise):
        one = form.points[0, 1:-1], form.points[3, 1:-1]
    else:
        # A curve without breakpoints is evaluated at 256 levels alpha. Each level is a test, and any set of tests gives a lower
        # bound of mu.
        log_alpha = -np.geomspace(1e-3, 700.0, 256)
        one = log_alpha, log1mexp(form.log_beta(log_alpha))
    log_alpha, log_power = (times * row * (1 + sign * 4 * ULP) for row, sign in zip(one, (-1, 1)))
    points = np.array([log_alpha, log1mexp(log_alpha), log1mexp(log_power), log_power])
    return float(_corner_mu(points[:, np.isfinite(points).all(axis=0)], upper=False).max(initial=0.0))


def _halve(samples: SampledProfile, left: FloatArray, right: FloatArray, most: int) -> int:
    """Add samples in the middle of intervals that are wide enough and inside the sampled range; return the number of samples.

    Intervals in which more samples would not tighten the bounds (`enough_fall`) are skipped. At most about `most` samples are
    added.
    """
    wide = (right - left > 1e-12 * right) & ~samples.too_deep(left)
    with np.errstate(invalid="ignore"):
        first, last = (np.minimum(np.searchsorted(samples.eps, at), samples.eps.size - 1) for at in (left, right))
        own_gap = np.maximum(*((samples.high - samples.low)[place] for place in (first, last)))
        wide &= ~(samples.high[first] - samples.high[last] < enough_fall(own_gap))
    before = samples.evaluations
    if before < most:
        samples.add(0.5 * (left + right)[wide])
    return samples.evaluations - before


def curve_of_masses(
    low: Sequence[FloatArray], high: Sequence[FloatArray], log_lost: float = -math.inf, *, upper: bool,
) -> Tradeoff:
    """Return a bound of T(P, Q) from bounds of the log masses of outcomes, which are in the order of decreasing Q/P.

    `low` and `high` hold lower and upper bounds of the log masses, under P and under Q. `log_lost` is the log of a bound of the
    mass of all other outcomes under P and under Q. The tests that reject the first k outcomes have the errors alpha and beta, which
    are rounded up for an upper bound and down for a lower bound. Of alpha and 1 - alpha, the smaller one is a sum of masses and the
    larger one is computed from it; likewise for beta. So 1 - beta has a small relative error, too, and a small delta of the curve
    is accurate.
    """
    own, other = (high, low) if upper else (low, high)
    # In a sum of masses that is bounded above (alpha, beta or the complement of one of them), the mass `log_lost` is added for the
    # outcomes that are not listed.
    lost = -math.inf if upper else log_lost
    out = _tradeoff.tradeoff_knots(own[0], own[1], lost, lost, other[0], other[1])
    if upper:
        out[::2] = np.logaddexp(out[::2], log_lost)
    out = np.minimum(out, 0.0, out=out)
    for level, rest in (out[:2], out[2:]):
        by_level = level <= rest
        level[~by_level] = log1mexp(rest[~by_level])
        rest[by_level] = log1mexp(level[by_level])
    # At the first points alpha (or beta) is computed as a sum of masses, at the later ones its complement is. Where the two ranges
    # meet, rounding may put neighbouring points out of order.
    forward = [np.maximum if upper else np.minimum, np.minimum if upper else np.maximum]
    for row, order in enumerate(forward * 2):
        turn = 1 if (row < 2) == upper else -1
        out[row] = order.accumulate(out[row, ::turn])[::turn]
    if upper:
        # The tests that never and that always reject.
        out = np.column_stack([[-np.inf, 0.0, 0.0, -np.inf], out, [0.0, -np.inf, -np.inf, 0.0]])
    return Tradeoff(prune(out, 1 if upper else -1))


def convex_hull(curves: list[Tradeoff]) -> Tradeoff:
    """Return the greatest convex curve at or below all of the piecewise linear curves: the convex hull of their breakpoints.

    If all curves are upper bounds, the result is an upper bound of the convex hull of the exact curves. If all are lower bounds,
    the result is a lower bound of that hull.
    """
    pieces = [_pieces(f) for f in curves]
    points = np.concatenate([one.points for one in pieces], axis=1)
    return Tradeoff(prune(points[:, np.lexsort((points[2], -points[1], points[0]))], pieces[0].side))


def _pieces(f: Tradeoff) -> Piecewise:
    if not isinstance(f._form, Piecewise):
        raise TypeError(f"{f!r} is not piecewise linear: it has no breakpoints")
    return f._form
