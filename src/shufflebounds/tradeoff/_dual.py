"""The curve that the lines of delta(eps) enclose from below."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._core import _tradeoff
from shufflebounds._types import UNIT, FloatArray
from shufflebounds.tradeoff._form import log1mexp
from shufflebounds.tradeoff.piecewise import Piecewise

__all__ = ["envelope"]


def envelope(eps: FloatArray, log_delta: FloatArray, eps_reverse: FloatArray, log_reverse: FloatArray) -> Piecewise:
    """Return max(0, 1 - delta - e^eps alpha, e^-eps (1 - reverse - alpha)) over checked, rising eps; nowhere above it.

    A vertex may stand anywhere as long as it lies on or below both its lines: then so does the chord to the next vertex,
    which shares a line with it. So alpha is taken as it comes out, and beta rounded down from both lines there.
    """
    steep, flat = _Lines(eps, log_delta), _Lines(eps_reverse, log_reverse)
    if not steep.size and not flat.size:
        points = np.array([[-np.inf], [0.0], [-np.inf], [0.0]])
        return Piecewise(points, None)
    middle = _meet(steep, flat)
    ends = np.array([[-np.inf], [0.0], [-np.inf], [0.0]])
    first = steep.vertices()[:, ::-1]
    last = flat.vertices()[[2, 3, 0, 1]]
    if steep.size:
        ends[2:, 0] = _down(np.array([steep.delta[-1]]))[:, 0]
        first = np.concatenate([ends[:, :1], first], axis=1)
    if flat.size:
        end = np.array([[-np.inf], [0.0], [-np.inf], [0.0]])
        end[:2, 0] = _down(np.array([flat.delta[-1]]))[:, 0]
        last = np.concatenate([last, end], axis=1)
    points = np.concatenate([first, middle, last], axis=1)
    # what rounding has put out of order moves down and left, never up
    points[2] = np.minimum.accumulate(points[2])
    points[3] = np.maximum.accumulate(points[3])
    points[0] = np.minimum.accumulate(points[0, ::-1])[::-1]
    points[1] = np.maximum.accumulate(points[1, ::-1])[::-1]
    return Piecewise(points, None)


class _Lines:
    """The lines 1 - delta - e^eps x that touch their own envelope, eps rising, and log x where neighbours meet."""

    def __init__(self, eps: FloatArray, log_delta: FloatArray) -> None:
        useful = log_delta < 0
        eps, log_delta = eps[useful], log_delta[useful]
        self.eps, self.delta, self.meets = eps, log_delta, np.empty(0)
        if eps.size:
            kept, across, down = _tradeoff.lower_hull(eps, np.full(eps.size, np.inf), log_delta, log1mexp(log_delta))
            self.eps, self.delta, self.meets = eps[kept], log_delta[kept], down - across

    @property
    def size(self) -> int:
        return self.eps.size

    @property
    def reach(self) -> float:
        """Return log x where the flattest line gives way to the next."""
        return float(self.meets[0]) if self.meets.size else -math.inf

    def drop(self) -> None:
        """Drop the flattest line."""
        self.eps, self.delta, self.meets = self.eps[1:], self.delta[1:], self.meets[1:]

    def vertices(self) -> FloatArray:
        """Return the vertices between the lines, log x falling."""
        ends = self.ends()
        x = np.minimum(self.meets, np.minimum(ends[:-1], ends[1:]))
        out = np.empty((4, x.size))
        out[0], out[1] = x, _rest(x)
        one, two = self.below(x, slice(None, -1)), self.below(x, slice(1, None))
        out[2], out[3] = np.minimum(one[0], two[0]), np.maximum(one[1], two[1])
        return out

    def ends(self) -> FloatArray:
        """Return log x where each line meets 0, rounded down; beyond, y = 0 would lie above the line."""
        y = log1mexp(self.delta)
        end: FloatArray = y - self.eps
        # a line 1 - x ends at 1, exactly
        return np.where(end < 0, end - 8 * UNIT * (np.abs(y) + self.eps), 0.0)

    def below(self, x: FloatArray, which: slice) -> FloatArray:
        """Return log y and log(1 - y), rounded so that y lies below the chosen lines at e^x."""
        eps, delta = self.eps[which], self.delta[which]
        # e^x may be read from its complement, which is rounded on its own
        x = x + 2 * UNIT * np.where(x > -1, 1.0, 0.0)
        fall = eps + x
        blur = 4 * UNIT * (1 + np.abs(eps) + np.where(x > -np.inf, np.abs(x), 0.0))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            # 1 - y as a sum
            rest = np.logaddexp(delta, fall)
            out = _down(rest + blur + 4 * UNIT * np.abs(rest))
            # y as a difference, for where delta is near 1
            left = log1mexp(delta)
            size = np.exp(fall - left)
            y = left + np.log1p(-size * (1 + blur + 8 * UNIT * np.abs(left))) - 8 * UNIT * (1 + np.abs(left))
        y = np.where(np.isnan(y), -np.inf, np.minimum(y, 0.0))
        out[0] = np.maximum(out[0], y)
        return out


def _down(rest: FloatArray) -> FloatArray:
    """Return log y, rounded down, and log(1 - y) given the latter."""
    rest = np.minimum(rest, 0.0)
    y = log1mexp(rest)
    y = np.where(y > -np.inf, y - 4 * UNIT * np.abs(y), y)
    # what no double resolves from 1 still is not 1
    return np.array([np.minimum(y, np.where(rest > -np.inf, -5e-324, 0.0)), rest])


def _rest(x: FloatArray) -> FloatArray:
    """Return log(1 - e^x), rounded up: a level read from it lies no further right."""
    rest: FloatArray = np.minimum(log1mexp(x) * (1 - 4 * UNIT) + 4 * UNIT, 0.0)
    return rest


def _meet(steep: _Lines, flat: _Lines) -> FloatArray:
    """Drop the lines near slope -1 that the other family tops, and return the vertex between the two families, or its end."""
    while steep.size and flat.size:
        e1, e2 = float(steep.eps[0]), float(flat.eps[0])
        if e1 + e2 == 0:
            (steep if steep.delta[0] > flat.delta[0] else flat).drop()
            continue
        left1, left2 = (float(log1mexp(d.delta[:1])[0]) for d in (steep, flat))
        width = e1 + e2 + math.log(-math.expm1(-e1 - e2))
        x = _log_minus(e2 + left1, left2) - width
        y = _log_minus(e1 + left2, left1) - width
        if x <= steep.reach:
            steep.drop()
        elif y <= flat.reach:
            flat.drop()
        else:
            return _corner(steep, flat, min(x, float(steep.ends()[0])))
    lines = steep if steep.size else flat
    # one family alone ends where its flattest line meets 0
    while (x := float(lines.ends()[0])) <= lines.reach:
        lines.drop()
    end = np.array([[x], [float(_rest(np.array([x]))[0])], [-np.inf], [0.0]])
    return end if steep.size else end[[2, 3, 0, 1]]


def _corner(steep: _Lines, flat: _Lines, x: float) -> FloatArray:
    # left of where the flat line is 0, too
    x = min(x, float(_down(flat.delta[:1])[0, 0]))
    at = np.array([x])
    one = steep.below(at, slice(0, 1))
    # the flat line at x, from its own side: e^-eps (1 - delta - e^x)
    left, eps = float(log1mexp(flat.delta[:1])[0]), float(flat.eps[0])
    size = math.exp(min(x + 2 * UNIT - left, 0.0))
    share = size * (1 + 8 * UNIT * (1 + abs(x) + abs(left)))
    y = left - eps + math.log1p(-share) if share < 1 else -math.inf
    y -= 8 * UNIT * (1 + abs(y)) if y > -math.inf else 0.0
    two = np.array([min(y, 0.0)])
    beta = np.minimum(one[0], two)
    return np.array([at, _rest(at), beta, np.maximum(one[1], log1mexp(two))])


def _log_minus(a: float, b: float) -> float:
    """Return log(e^a - e^b), -inf where that is not positive."""
    return a + math.log(-math.expm1(b - a)) if b < a else -math.inf
