r"""Both sides of the trade-off curve of a profile, from enclosed values of delta at finitely many eps.

With E = e^eps the curve is :math:`f(\alpha) = \sup_E 1 - \delta(E) - E \alpha`, a supremum of lines. Lines of an upper bound
of delta, at some E only, give a curve at or below f. A polyline in E at or below delta gives a curve at or above f, and the
lines of its corners make it all up. Near the ends 1 - beta (or 1 - alpha) is carried instead of beta, so nothing cancels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from shufflebounds._core._special import log1mexp
from shufflebounds._types import UNIT, FloatArray
from shufflebounds.composing.samples import Samples
from shufflebounds.profile._least import rounded
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff._form import log_quantile

__all__ = ["Half", "curve", "gdp_mu", "halves"]


QUANTILE_ERROR = 4e-15
"""Of the normal quantiles of logarithms, relative."""



@dataclass
class Half:
    """The corners of a curve where its slope is below -1: log alpha falling, log(1 - beta), and the eps beside each corner.

    `beyond` is log delta at `right`, `rest` the logarithm of 1 - f(0).
    """

    log_alpha: FloatArray
    log_power: FloatArray
    left: FloatArray
    right: FloatArray
    beyond: FloatArray
    rest: float

    def mu(self, outward: float) -> FloatArray:
        """Return the Gaussian mu of every corner, with the rounding of the quantiles added or taken off."""
        power, alpha = (log_quantile(x, log1mexp(x)) for x in (self.log_power, self.log_alpha))
        return np.asarray(power - alpha + outward * QUANTILE_ERROR * (1 + np.abs(alpha)))


def _hull(eps: FloatArray, log_delta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the corners of the lower convex hull of (E, delta), and the log of the slopes between them (delta is falling)."""
    kept: list[tuple[float, float]] = []
    slopes: list[float] = []
    for e, d in zip(eps.tolist(), log_delta.tolist()):
        if kept and kept[-1][1] == -math.inf:
            break
        while kept:
            before, value = kept[-1]
            gap = e - before
            if d >= value:
                slope = -math.inf
            elif gap <= 0:
                slope = math.inf
            else:
                slope = value + math.log(-math.expm1(d - value)) - before - _log_expm1(gap)
            if slopes and slope >= slopes[-1]:
                kept.pop()
                slopes.pop()
            elif gap <= 0 and slope == math.inf:
                # two values at one eps: the lower one counts
                kept.pop()
            else:
                if slope > -math.inf:
                    kept.append((e, d))
                    slopes.append(slope)
                break
        if not kept:
            kept.append((e, d))
    return np.array([k[0] for k in kept]), np.array([k[1] for k in kept]), np.array(slopes)


def _log_expm1(x: float) -> float:
    return x + math.log(-math.expm1(-x)) if x > 1 else math.log(math.expm1(x))


def _half(eps: FloatArray, log_delta: FloatArray, upper: bool) -> Half:
    """Return the corners between the lines of neighbouring points, each moved outward by its rounding."""
    eps, log_delta, log_alpha = _hull(eps, log_delta)
    lines = log_delta[:-1], eps[:-1] + log_alpha, log_delta[1:], eps[1:] + log_alpha
    powers = np.logaddexp(lines[0], lines[1]), np.logaddexp(lines[2], lines[3])
    # below both lines, or above both: then so are the straight pieces between corners
    log_power = np.minimum(*powers) if upper else np.maximum(*powers)
    slack = 8 * UNIT * (2 + np.abs(log_power))
    log_power = np.minimum(log_power - slack if upper else log_power + slack, 0.0)
    return Half(log_alpha, log_power, eps[:-1], eps[1:], log_delta[1:], float(log_delta[-1]))


Points = tuple[FloatArray, FloatArray]


def _points(samples: Samples, other: Samples, upper: bool) -> Points:
    return samples.below(other) if upper else (samples.eps, samples.high.copy())


def halves(forward: Samples, backward: Samples, *, upper: bool) -> tuple[Half, Half]:
    """Return the corners of T(P, Q) right of alpha = 0 and of beta = 0; forward samples H(Q||P), backward H(P||Q)."""
    same = forward is backward
    first = _points(forward, backward, upper)
    second = first if same else _points(backward, forward, upper)
    step = 16 * UNIT
    while True:
        # at E = 1 both directions have one value; where the neighbours' chord lies below it, its line is none of the supremum
        top = min(first[1][0], second[1][0]) if not upper else max(first[1][0], second[1][0])
        first[1][0] = second[1][0] = top
        left = _half(*first, upper)
        right = left if same else _half(*second, upper)
        if left.log_alpha.size == 0 or right.log_alpha.size == 0:
            return left, right
        sides = math.exp(left.log_alpha[0]) + math.exp(right.log_alpha[0]) + math.exp(top)
        if sides <= 1 + 16 * UNIT:
            return left, right
        # the chord from 1/E' to E, in E - 1; left and right begin at 1
        ahead, behind = math.expm1(min(left.right[0], 700.0)), -math.expm1(-right.right[0])
        there = behind + math.exp(right.beyond[0] - right.right[0])
        chord = float(np.logaddexp(math.log(behind) + left.beyond[0], math.log(ahead) + math.log(there)))
        chord += -math.log(ahead + behind) + (-8 if upper else 8) * UNIT * (1 + abs(math.log(ahead + behind)))
        if chord >= top:
            if not upper:
                return left, right
            # a neighbour is so near that rounding makes the slope: delta may be lowered, until it does not
            chord = top - step
            step *= 4
        first = first[0], np.append(chord, first[1][1:])
        second = first if same else (second[0], np.append(chord, second[1][1:]))


def curve(forward: Samples, backward: Samples, *, upper: bool) -> Tradeoff:
    """Return a curve at or above T(P, Q), or at or below it, as the samples enclose it."""
    left, right = halves(forward, backward, upper=upper)
    with np.errstate(divide="ignore"):
        ends = np.array([-np.inf]), np.array([_log_rest(left.rest)])
        log_alpha = np.concatenate([ends[0], left.log_alpha[::-1], log1mexp(right.log_power), [_log_rest(right.rest)]])
        log_beta = np.concatenate([ends[1], log1mexp(left.log_power)[::-1], right.log_alpha, [-np.inf]])
    return rounded(log_alpha, log_beta, upper=upper)


def _log_rest(log_delta: float) -> float:
    return float(log1mexp(log_delta)) if log_delta > -math.inf else 0.0


def gdp_mu(forward: Samples, backward: Samples, upper: bool, rtol: float, evaluations: int) -> float:
    """Return the Gaussian mu of the curve from above or below, refined until the two are rtol apart; the samples grow."""
    same = forward is backward
    best = 0.0
    while True:
        above = halves(forward, backward, upper=False)
        below = halves(forward, backward, upper=True)
        best = max([best, *(float(half.mu(-1).max(initial=0.0)) for half in (below[:1] if same else below))])
        most = max(float(half.mu(1).max(initial=0.0)) for half in above)
        unlimited = max(half.rest for half in above) > -math.inf
        done = most <= best * (1 + rtol) or unlimited
        wanted = 0
        for half, samples in zip(above[:1] if same else above, (forward, backward)):
            if done or samples.evaluations >= evaluations:
                continue
            open_ = half.mu(1) > best * (1 + rtol)
            left, right = half.left[open_], half.right[open_]
            # where the samples end by choice, they are not made denser either
            wide = (right - left > 1e-12 * right) & ~samples.too_deep(left)
            before = samples.evaluations
            samples.add(0.5 * (left + right)[wide])
            wanted += samples.evaluations - before
        if wanted == 0:
            break
    if upper:
        # where f(0) < 1 no Gaussian curve lies below
        return math.inf if unlimited else most
    return best
