"""Distributions of the privacy loss of one release, computed from values of its hockey-stick divergence at finitely many eps.

The upper bound ("connect the dots") interpolates the divergence linearly in e^eps between these values. The lower bound is the
supremum of lines below the divergence, which exist because the divergence is convex in e^eps. Compositions on a grid use these
distributions.
"""

from __future__ import annotations

import math
from bisect import bisect_left

import numpy as np

from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core import _losses
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.sampled_profile import HockeyStickBounds
from shufflebounds.tradeoff.convex import Chain, across, below, distinct, joined, masses

__all__ = ["connect_the_dots", "optimistic_pld", "pessimistic_pld", "reach", "supporting_lines"]

DEEPEST_LOG = -1e7
"""Log of the smallest positive divergence that is interpolated: the upper bound rounds a smaller one up to it, and the lower bound
rounds it down to 0. Compositions truncate masses of at least e^-2e6. Raised: less tight bounds below this mass. Lowered: the error
bound of all masses grows, an ulp of the largest log; at -1e18 the upper bound would overflow."""


def reach(hockey_stick: HockeyStickBounds, log_tail: float, most: float) -> float:
    """Return an eps, at most `most`, at which the upper bound of the log divergence is at most `log_tail`.

    If no eps up to `most` or 2^20, which is above the largest budget of a mechanism (1e6), has such a small divergence, the result
    is an eps beyond which the upper bound no longer decreases.
    """
    eps, first, last = np.minimum(np.ldexp(1.0, np.arange(-30, 21)), most), 0, 26

    def high(i: int) -> float:
        return float(hockey_stick(eps[i : i + 1])[1][0])

    # Start at eps = 1/16 and multiply eps by 4 until the divergence is small: an eps that is larger than needed may take much
    # longer.
    while last < eps.size - 1 and high(last) > log_tail:
        first, last = last + 1, last + 2
    limit = max(log_tail, high(last) + 1e-9)
    # If no eps has a divergence as small as e^log_tail, `limit` is above `log_tail`. The log divergence may then be at most `limit`
    # already at an eps below entry `first`.
    first = first if limit == log_tail else 0
    for _ in range(2):
        # The divergence does not increase with eps, so bisection finds the first eps at which its log is at most `limit`.
        place = bisect_left(range(last), True, first, last, key=lambda i: high(i) <= limit)
        left = float(eps[place - 1]) if place else 0.0
        eps, first, last = np.linspace(left, float(eps[place]), 33), 0, 32
    return max(float(eps[-1]), min(most, 2.0**-30))


def _both_ways(
    eps: FloatArray, hockey_stick: HockeyStickBounds, reverse: HockeyStickBounds
) -> tuple[tuple[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray, FloatArray]]:
    """Return log bounds of the divergence at increasing eps of either sign, split into eps >= 0 and eps < 0.

    With E = e^eps, the divergence H(1/E) of (P, Q) follows from that of (Q, P) by H(1/E) = (H_reverse(E) - 1 + E)/E. The part
    eps < 0 is returned as the divergence of (Q, P) at -eps, because H(1/E) is close to its lower limit 1 - 1/E, and the small
    difference would be lost. Each part is (x, lower, upper) with increasing x, where x is eps or -eps. The parts overlap: entry 1
    of a part is the point where both join, and entry 0 is the next point of the other part.
    """
    join = int(np.searchsorted(eps, 0.0))
    right, left = eps[join:], -eps[:join][::-1]
    if hockey_stick is reverse:
        # (P, Q) and (Q, P) have the same divergence, and a symmetric grid has every |eps| twice: evaluate each |eps| once.
        distinct, place = np.unique(np.concatenate([right, left]), return_inverse=True)
        low, high = hockey_stick(distinct)
        sides = [(low[i], high[i]) for i in (place[: right.size], place[right.size :])]
    else:
        sides = [hockey_stick(right), reverse(left)]
    (right_low, right_high), (left_low, left_high) = (
        (np.where(low < DEEPEST_LOG, -np.inf, low), np.where(high > -np.inf, np.maximum(high, DEEPEST_LOG), high))
        for low, high in sides)

    x_right = np.concatenate([[-left[0]], right])
    x_left = np.concatenate([-right[1::-1], left])
    lower_right = np.concatenate([[across(-left[0], left_low[0])], right_low])
    upper_right = np.concatenate([[across(-left[0], left_high[0])], right_high])
    lower_left = np.concatenate([[across(-right[1], right_low[1]), across(-right[0], right_low[0])], left_low])
    upper_left = np.concatenate([[across(-right[1], right_high[1]), across(-right[0], right_high[0])], left_high])
    return (x_right, lower_right, upper_right), (x_left, lower_left, upper_left)


def pessimistic_pld(right: Chain, left: Chain) -> LossAtoms:
    """Return the distribution whose divergence interpolates given upper bounds linearly in e^eps.

    Its divergence is an upper bound at every eps, because the exact divergence is convex in e^eps.

    `right` has upper bounds of the log divergence of (P, Q), `left` those of (Q, P), at increasing eps >= 0.

    Errors of the values may make the interpolation non-convex. Its lower convex hull is then used, which is still an upper bound.
    The divergence of the resulting masses is computed again; where rounding makes it smaller than the interpolation, `slack` is
    increased by the difference.
    """
    chains = []
    for x, upper in (right, left):
        y = np.minimum(np.minimum.accumulate(upper), 0.0)
        # Keep only the first of the points at which the divergence is 0.
        size = int(np.argmax(y == -np.inf)) + 1 if (y == -np.inf).any() else y.size
        chains.append((x[:size].copy(), y[:size].copy()))
    joint = joined(*chains)
    rest = float(joint[0][1][-1])
    loss, log_p, wanted = masses(*joint)
    got = _losses.law_hockey_stick(loss, log_p, rest)
    total = float(np.logaddexp.reduce(np.append(log_p, rest)))
    # Rounding may lose all of a divergence far below ULP. No factor covers it, so its size is added to the mass of infinite loss.
    rest = float(np.logaddexp(rest, wanted[got == -np.inf].max(initial=-np.inf)))
    with np.errstate(invalid="ignore"):
        short = np.where(got > -np.inf, wanted - got, 0.0)
    slack = max(float(short.max()), -total, 0.0) + ULP * (32 + float(np.abs(wanted[wanted > -np.inf]).max(initial=0)))
    held = log_p > -np.inf
    # At the largest eps, the divergence of (P, Q) is the mass of the outcomes that are possible under P only, and that of (Q, P)
    # the mass of those possible under Q only.
    return LossAtoms(log_p[held], loss[held], rest, float(joint[1][1][-1]), -math.inf, slack, 4 * ULP * float(np.abs(loss).max()))


def optimistic_pld(right: Chain, left: Chain) -> LossAtoms:
    """Return the distribution whose divergence is the lower convex hull of given lower bounds, and so a lower bound itself.

    `right` has piecewise linear lower bounds of the log divergence of (P, Q), `left` those of (Q, P), at increasing eps >= 0.
    """
    loss, log_p, wanted = masses(*joined(right, left, lower=True))
    got = _losses.law_hockey_stick(loss, log_p, -math.inf)
    total = float(np.logaddexp.reduce(log_p))
    real = wanted > -np.inf
    slack = max(float((got[real] - wanted[real]).max(initial=0.0)), total, 0.0)
    slack += ULP * (32 + float(np.abs(wanted[real]).max(initial=0)))
    held = log_p > -np.inf
    # The last point of `right` and of `left` is where a line reaches zero. The divergence was not evaluated there, so the error of
    # the losses does not include this point.
    loss_error = 4 * ULP * max(float(np.abs(chain[0][: max(1, chain[0].size - 1)]).max()) for chain in (right, left))
    return LossAtoms(log_p[held], loss[held], -math.inf, -math.inf, -math.inf, slack, loss_error)


def connect_the_dots(eps: FloatArray, hockey_stick: HockeyStickBounds, reverse: HockeyStickBounds) -> LossAtoms:
    """Return a distribution that dominates a pair, given bounds of the divergence of the pair at increasing eps of either sign."""
    (x, _, y), (u, _, v) = _both_ways(eps, hockey_stick, reverse)
    return pessimistic_pld((x[1:], y[1:]), (u[1:], v[1:]))


def supporting_lines(eps: FloatArray, hockey_stick: HockeyStickBounds, reverse: HockeyStickBounds) -> LossAtoms:
    """Return a distribution that is dominated by a pair, given bounds of its divergence at increasing eps of either sign."""
    chains = []
    for x, low, high in _both_ways(eps, hockey_stick, reverse):
        low = np.minimum(np.maximum.accumulate(low[::-1])[::-1], 0.0)
        high = np.minimum(np.minimum.accumulate(high), 0.0)
        chains.append(distinct(*below(x, low, high)))
    return optimistic_pld(*chains)
