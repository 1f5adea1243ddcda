"""The law of one release from values of its hockey stick: chords between them from above, crossing lines from below."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._core import _losses
from shufflebounds._types import UNIT, FloatArray
from shufflebounds.composing.atoms import Atoms
from shufflebounds.composing.samples import Stick

__all__ = ["connect", "dominated", "dominating", "envelope", "reach"]


def reach(stick: Stick, log_tail: float, most: float) -> float:
    """Return an eps, at most `most`, where the upper hockey stick is down to log_tail or, if it never is, no longer falls."""
    eps = np.minimum(np.ldexp(1.0, np.arange(-30, 15)), most)
    for _ in range(2):
        upper = stick(eps)[1]
        enough = upper <= max(log_tail, upper[-1] + 1e-9)
        place = int(np.argmax(enough))
        left = float(eps[place - 1]) if place else 0.0
        eps = np.linspace(left, float(eps[place]), 33)
    return max(float(eps[-1]), min(most, 2.0**-30))


def _across(x: float, value: float) -> float:
    """The hockey stick of the reversed pair at -x, from that of the pair at x <= 0: two positive terms."""
    total = -math.expm1(x) + math.exp(x + min(value, 0.0))
    return math.log(total) if total > 0 else -math.inf


def _both_ways(
    eps: FloatArray, stick: Stick, reverse: Stick
) -> tuple[int, tuple[FloatArray, FloatArray, FloatArray], tuple[FloatArray, FloatArray, FloatArray]]:
    """Bounds of the hockey stick at rising eps of either sign, on a right and a left side that join at the first eps >= 0.

    H(1/E of the pair) = (H(E) - 1 + E)/E of the reversed pair: each side in the form that stays small on it. Each is
    (x, lower, upper) with x rising, entry 1 the join and entry 0 its neighbour on the other side.
    """
    join = int(np.searchsorted(eps, 0.0))
    right, left = eps[join:], -eps[:join][::-1]
    if stick is reverse:
        # a symmetric grid asks for every value twice
        distinct, place = np.unique(np.concatenate([right, left]), return_inverse=True)
        low, high = stick(distinct)
        sides = [(low[i], high[i]) for i in (place[: right.size], place[right.size :])]
    else:
        sides = [stick(right), reverse(left)]
    (right_low, right_high), (left_low, left_high) = sides

    x_right = np.concatenate([[-left[0]], right])
    x_left = np.concatenate([-right[1::-1], left])
    lower_right = np.concatenate([[_across(-left[0], left_low[0])], right_low])
    upper_right = np.concatenate([[_across(-left[0], left_high[0])], right_high])
    lower_left = np.concatenate([[_across(-right[1], right_low[1]), _across(-right[0], right_low[0])], left_low])
    upper_left = np.concatenate([[_across(-right[1], right_high[1]), _across(-right[0], right_high[0])], left_high])
    return join, (x_right, lower_right, upper_right), (x_left, lower_left, upper_left)


def _drops(x: FloatArray, y: FloatArray) -> FloatArray:
    """Log of the slopes between neighbouring points (e^x, e^y) of a falling convex chain."""
    with np.errstate(divide="ignore", invalid="ignore"):
        fall = np.where(y[:-1] > y[1:], y[:-1] + np.log(-np.expm1(y[1:] - y[:-1])), -np.inf)
    return fall - x[1:] - np.log(-np.expm1(x[:-1] - x[1:]))


def _falls(slopes: FloatArray) -> FloatArray:
    """Log of the differences of neighbouring slopes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(slopes[:-1] > slopes[1:], slopes[:-1] + np.log(-np.expm1(slopes[1:] - slopes[:-1])), -np.inf)


Chain = tuple[FloatArray, FloatArray]


def _hull(x: FloatArray, y: FloatArray) -> Chain:
    kept = _losses.lower_hull(x, y)
    return x[kept], y[kept]


def _joined(right: Chain, left: Chain) -> tuple[Chain, Chain]:
    """Lower convex hull of two chains that start at the join: where they bend the wrong way there, the join is lowered."""
    right, left = _hull(*right), _hull(*left)
    for _ in range(16):
        (x, y), (u, v) = right, left
        # what its rounding leaves goes to slack
        if _at_join(right, left) >= -1e-12 or min(x.size, u.size) < 2 or y[0] == -np.inf:
            break
        # the chord from the left neighbour at e^-u[1] to the right one at e^x[1], read at the join
        whole = x[1] + u[1]
        share = math.expm1(x[0] + u[1]) / math.expm1(whole) if whole < 700 else math.exp(x[0] - x[1])
        chord = (1 - share) * math.exp(_across(-u[1], v[1])) + share * math.exp(y[1])
        y[0] = min(math.log(chord) if chord > 0 else -math.inf, y[0])
        v[0] = _across(u[0], y[0])
        right, left = _hull(x, y), _hull(u, v)
    return right, left


def _at_join(right: Chain, left: Chain) -> float:
    """Mass under Q at the join: what neither side takes, 1 - Q(below) - Q(above)."""
    (x, y), (u, v) = right, left
    above = math.exp(_drops(x[:2], y[:2])[0]) if x.size > 1 else 0.0
    below = math.exp(v[0]) + (math.exp(_drops(u[:2], v[:2])[0] + u[0]) if u.size > 1 else 0.0)
    return 1 - below - above


def _masses(right: Chain, left: Chain) -> tuple[FloatArray, FloatArray]:
    """Losses and log masses under P of the law whose hockey stick has these vertices; each side starts at the join."""
    (x, y), (u, v) = right, left
    slopes = np.append(_drops(x, y), -np.inf)
    backs = np.append(_drops(u, v), -np.inf)
    at_join = _at_join(right, left)
    middle = (math.log(at_join) if at_join > 0 else -math.inf) + x[0]
    return (
        np.concatenate([-u[:0:-1], x]),
        np.concatenate([_falls(backs)[::-1], [middle], _falls(slopes) + x[1:]]),
    )


def _values(x: FloatArray, y: FloatArray, u: FloatArray, v: FloatArray) -> FloatArray:
    """Log hockey stick at the vertices of both sides, in the order of _masses."""
    with np.errstate(divide="ignore"):
        crossed = np.log(-np.expm1(-u[:0:-1]) + np.exp(np.minimum(v[:0:-1], 0) - u[:0:-1]))
    return np.concatenate([crossed, y])


def dominating(right: Chain, left: Chain) -> Atoms:
    """Return the outcomes whose hockey stick connects the upper values of both sides, each from the join on.

    Where the values bend the wrong way, by their own errors, the lower convex hull is taken: the exact hockey stick is
    convex, so it lies below that too. The masses are then recomputed into a hockey stick, and slack makes up for what their
    rounding took away.
    """
    chains = []
    for x, upper in (right, left):
        y = np.minimum(np.minimum.accumulate(upper), 0.0)
        # one zero is enough
        size = int(np.argmax(y == -np.inf)) + 1 if (y == -np.inf).any() else y.size
        chains.append((x[:size].copy(), y[:size].copy()))
    (x, y), (u, v) = _joined(*chains)
    loss, log_p = _masses((x, y), (u, v))
    rest = float(y[-1])
    wanted, got = _values(x, y, u, v), _losses.law_stick(loss, log_p, rest)
    total = float(np.logaddexp.reduce(np.append(log_p, rest)))
    with np.errstate(invalid="ignore"):
        short = np.where(wanted > -np.inf, wanted - got, 0.0)
    slack = max(float(short.max()), -total, 0.0) + UNIT * (32 + float(np.abs(wanted[wanted > -np.inf]).max(initial=0)))
    held = log_p > -np.inf
    return Atoms(log_p[held], loss[held], rest, -math.inf, slack, 4 * UNIT * float(np.abs(loss).max()))


def dominated(right: Chain, left: Chain) -> Atoms:
    """Return the outcomes whose hockey stick is the hull of the lower values of both sides, each from the join on."""
    (x, y), (u, v) = _joined(right, left)
    loss, log_p = _masses((x, y), (u, v))
    wanted, got = _values(x, y, u, v), _losses.law_stick(loss, log_p, -math.inf)
    total = float(np.logaddexp.reduce(log_p))
    real = wanted > -np.inf
    slack = max(float((got[real] - wanted[real]).max(initial=0.0)), total, 0.0)
    slack += UNIT * (32 + float(np.abs(wanted[real]).max(initial=0)))
    held = log_p > -np.inf
    # the last points of both sides are where the lines end, not where anything was asked
    blur = 4 * UNIT * max(float(np.abs(chain[0][: max(1, chain[0].size - 1)]).max()) for chain in (right, left))
    return Atoms(log_p[held], loss[held], -math.inf, -math.inf, slack, blur)


def connect(eps: FloatArray, stick: Stick, reverse: Stick) -> Atoms:
    """Return outcomes whose hockey stick lies nowhere below the one that is known at the rising eps, of either sign."""
    _, (x, _, y), (u, _, v) = _both_ways(eps, stick, reverse)
    return dominating((x[1:], y[1:]), (u[1:], v[1:]))


def _support(x: FloatArray, lower: FloatArray, upper: FloatArray) -> Chain:
    """Points of a chain nowhere above a convex falling function that lies between the bounds at x; from entry 1 on.

    Between x[k] and x[k + 1] the function is above the lines through its neighbours, (k - 1: upper, k: lower) from the left
    and (k + 2: upper, k + 1: lower) from the right: their crossing is a vertex, and exact where the function is straight on
    both sides of a kink. Beyond the last point the left line runs on to 0.
    """
    low = np.minimum(np.maximum.accumulate(lower[::-1])[::-1], 0.0)
    high = np.minimum(np.minimum.accumulate(upper), 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        size = int(np.argmax(low == -np.inf)) if (low == -np.inf).any() else low.size
        if size < 2:
            return x[1:2].copy(), np.array([-np.inf])
        x, low, high = x[: size + 2], low[: size + 2], high[: size + 2]
        k = np.arange(1, size - 1)
        wide = np.expm1(x[k + 1] - x[k])
        ratio = np.exp(low[k + 1] - low[k])
        from_left = np.expm1(high[k - 1] - low[k]) / -np.expm1(x[k - 1] - x[k])
        chord = -np.expm1(low[k + 1] - low[k]) / wide
        from_right = np.zeros(k.size)
        inner = k + 2 < x.size
        at = k[inner]
        from_right[inner] = (
            ratio[inner] * -np.expm1(high[at + 2] - low[at + 1]) / (np.exp(x[at + 1] - x[at]) * np.expm1(x[at + 2] - x[at + 1]))
        )
        from_right = np.maximum(from_right, 0.0)
        # no crossing where a line stays above the chord: the chord itself lies below the function then
        bent = (from_left > chord) & (from_right < chord)
        share = np.clip(np.nan_to_num((chord - from_right) / (from_left - from_right)), 0.0, 1.0)
        # wherever on the right line the rounding puts it, the vertex is one of that line's points
        cross = np.clip(x[k] + np.log1p(wide * share), np.nextafter(x[k], np.inf), np.nextafter(x[k + 1], -np.inf))
        value = low[k] + np.log(ratio + from_right * wide * (1 - share)) - 8 * UNIT
        value = np.clip(value, low[k + 1], low[k])
        last = size - 1
        drop = math.expm1(min(high[last - 1] - low[last], 700.0))
        end = x[last] + math.log1p(-math.expm1(x[last - 1] - x[last]) / max(drop, 1e-300))
    xs = np.concatenate([x[1:size], cross[bent], [end]])
    ys = np.concatenate([low[1:size], value[bent], [-np.inf]])
    order = np.argsort(xs, kind="stable")
    xs, ys = xs[order], ys[order]
    return xs, ys


def envelope(eps: FloatArray, stick: Stick, reverse: Stick) -> Atoms:
    """Return outcomes whose hockey stick lies nowhere above the one that is known at the rising eps, of either sign."""
    _, right, left = _both_ways(eps, stick, reverse)
    return dominated(_support(*right), _support(*left))
