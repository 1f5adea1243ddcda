"""Trade-off functions from values of delta at finitely many eps, as maxima of lines.

Upper bounds of delta give a lower curve, and lower bounds of delta give an upper curve. A lower curve is rounded down, an upper
curve up.
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np

from shufflebounds._base.types import ULP, FloatArray
from shufflebounds.tradeoff.convex import hull
from shufflebounds.tradeoff.piecewise import Piecewise
from shufflebounds.tradeoff.representation import log1mexp

__all__ = ["envelope"]


class _Rounding(IntEnum):
    """The direction of rounding as a sign: down (-1) for a lower curve, up (1) for an upper curve."""

    DOWN = -1
    UP = 1


def envelope(
    eps: FloatArray, log_delta: FloatArray, eps_reverse: FloatArray, log_reverse: FloatArray, *, upper: bool = False
) -> tuple[Piecewise, FloatArray]:
    """Return a trade-off curve from values of delta at increasing eps, and for each of its linear pieces the eps of the line.

    The curve is the maximum, over eps, of 0 and of the lines 1 - delta - e^eps alpha and e^-eps (1 - reverse - alpha). Here
    `reverse` is delta of the reversed pair.

    The lower curve is nowhere above the exact one: each vertex is on or below both adjacent lines, so the segment between two
    neighbouring vertices is below their common line. The upper curve is nowhere below the exact one: each vertex is on or above all
    lines, and the maximum of lines is convex. So alpha of a vertex need not be the exact intersection, if beta is computed from
    both lines at this alpha and rounded in the direction of the bound.

    The returned eps are in the order of alpha of the pieces; a piece of a line e^-eps (1 - reverse - alpha) has -eps. There is one
    vertex between two pieces, and the first vertex precedes all pieces.
    """
    side = _Rounding.UP if upper else _Rounding.DOWN
    steep, flat = _Lines(eps, log_delta, side), _Lines(eps_reverse, log_reverse, side)
    end = np.array([[-np.inf], [0.0], [-np.inf], [0.0]])
    if not steep.size and not flat.size:
        return Piecewise(end, None, side=side), np.empty(0)
    middle = _meet(steep, flat)
    parts = [steep.vertices()[:, ::-1], middle, flat.vertices()[[2, 3, 0, 1]]]
    if steep.size:
        parts.insert(0, np.concatenate([end[:2], _rounded_pair(steep.delta[-1:], side)]))
    if flat.size:
        parts.append(np.concatenate([_rounded_pair(flat.delta[-1:], side), end[:2]]))
    points = np.concatenate(parts, axis=1)
    # Rounding may break the order of the vertices. It is restored such that the curve remains a valid bound.
    for row, sign in enumerate((1, -1, -1, 1)):
        _keep_order(points[row], rising=sign > 0, up=sign * side * (1 if row < 2 else -1) > 0)
    return Piecewise(points, None, side=side), np.concatenate([steep.eps[::-1], -flat.eps])


def _keep_order(row: FloatArray, *, rising: bool, up: bool) -> None:
    """Change the row in place until it is monotone, by raising entries if `up`, otherwise by lowering them."""
    ordered = row if rising == up else row[::-1]
    ordered[:] = (np.maximum if up else np.minimum).accumulate(ordered)


class _Lines:
    """The lines y = 1 - delta - e^eps x in the order of eps, without lines that are nowhere the largest one.

    `meets` holds log x of the intersections of neighbouring lines. `side` is the direction of rounding (`_Rounding`).
    """

    def __init__(self, eps: FloatArray, log_delta: FloatArray, side: int) -> None:
        self.side = side
        useful = log_delta < 0
        self.eps, self.delta, self.meets = eps[useful], log_delta[useful], np.empty(0)
        if self.size:
            self.eps, self.delta, self.meets = hull(self.eps, self.delta)

    @property
    def size(self) -> int:
        """The number of lines."""
        return self.eps.size

    @property
    def reach(self) -> float:
        """Return log x of the intersection of the flattest line and the next one."""
        return float(self.meets[0]) if self.meets.size else -math.inf

    def drop(self) -> None:
        """Remove the flattest line."""
        self.eps, self.delta, self.meets = self.eps[1:], self.delta[1:], self.meets[1:]

    def vertices(self) -> FloatArray:
        """Return the vertices between neighbouring lines in the order of decreasing x.

        The rows are log x, log(1 - x), log y, log(1 - y).
        """
        x = self.meets
        if self.side == _Rounding.DOWN:
            ends = self.ends()
            x = np.minimum(x, np.minimum(ends[:-1], ends[1:]))
        x = np.minimum(x, 0.0)
        one, two = self.heights(x, slice(None, -1)), self.heights(x, slice(1, None))
        return np.array([x, _rest(x, self.side), *_outer(one, two, self.side)])

    def ends(self) -> FloatArray:
        """Return log x of the zero of each line, rounded down. Beyond its zero a line is negative."""
        y = log1mexp(self.delta)
        # The line 1 - x has its zero exactly at 1, because y and eps are 0 for it.
        return y - self.eps - 8 * ULP * (np.abs(y) + self.eps)

    def heights(self, x: FloatArray, which: slice) -> FloatArray:
        """Return log y and log(1 - y) of the chosen lines at alpha = e^x, rounded down for a lower curve and up for an upper one.

        y is 0 where a line is negative.
        """
        eps, delta, side = self.eps[which], self.delta[which], self.side
        # e^x may have been computed as 1 minus another number, so x is changed by a bound of the rounding error.
        x = x - side * 2 * ULP * np.where(x > -1, 1.0, 0.0)
        fall = eps + x
        loss_error = 4 * ULP * (1 + np.abs(eps) + np.where(x > -np.inf, np.abs(x), 0.0))
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            # 1 - y is a sum of positive terms, delta and e^(eps + x).
            rest = np.logaddexp(delta, fall)
            out = _rounded_pair(rest - side * (loss_error + 4 * ULP * np.abs(rest)), side)
            # If delta is near 1, y is computed as a difference instead.
            left = log1mexp(delta)
            size = np.exp(fall - left)
            part = np.log1p(-size * (1 - side * (loss_error + 8 * ULP * np.abs(left))))
            # Where y is nearly 0, `part` may be as low as -36, so a bound of the rounding error of `part` is added, too.
            y = left + part + side * ULP * (8 * (1 + np.abs(left)) + 4 * np.abs(part))
        y = np.where(np.isnan(y), -np.inf, np.minimum(y, 0.0))
        out[0] = np.maximum(out[0], y) if side == _Rounding.DOWN else np.minimum(out[0], y)
        return out


def _outer(one: FloatArray, two: FloatArray, side: int) -> FloatArray:
    """Return log y and log(1 - y) of two lines: of the lower one if `side` is DOWN, of the upper one if it is UP."""
    first, second = (np.minimum, np.maximum) if side == _Rounding.DOWN else (np.maximum, np.minimum)
    return np.array([first(one[0], two[0]), second(one[1], two[1])])


def _rounded_pair(rest: FloatArray, side: int) -> FloatArray:
    """Return log y and log(1 - y), given log(1 - y). log y is rounded down if `side` is DOWN, up if it is UP."""
    rest = np.minimum(rest, 0.0)
    y = log1mexp(rest)
    y = np.where(y > -np.inf, y + side * 4 * ULP * np.abs(y), y)
    # A y that rounds to 1 is still below 1.
    return np.array([np.minimum(y, np.where((rest > -np.inf) & (side == _Rounding.DOWN), -5e-324, 0.0)), rest])


def _rest(x: FloatArray, side: int) -> FloatArray:
    """Return log(1 - e^x), rounded down if `side` is UP and up if it is DOWN, so that alpha = 1 - e^x is rounded conservatively."""
    return np.minimum(log1mexp(x) * (1 + side * 4 * ULP) - side * 4 * ULP, 0.0)


def _meet(steep: _Lines, flat: _Lines) -> FloatArray:
    """Return the vertex between the lines of slope below -1 (`steep`) and those of slope above -1 (`flat`).

    If only one family has lines, the vertex is the zero of its flattest line. Lines that are nowhere the largest are removed from
    both families.
    """
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
            return _corner(steep, flat, x)
    lines = steep if steep.size else flat
    while (x := float(lines.ends()[0])) <= lines.reach:
        lines.drop()
    if lines.side == _Rounding.UP:
        x = min(0.0, x + 16 * ULP * (abs(float(log1mexp(lines.delta[:1])[0])) + float(lines.eps[0])))
    end = np.array([[x], [float(_rest(np.array([x]), lines.side)[0])], [-np.inf], [0.0]])
    return end if steep.size else end[[2, 3, 0, 1]]


def _corner(steep: _Lines, flat: _Lines, x: float) -> FloatArray:
    """Return the vertex where the flattest lines of both families meet, at log alpha = x.

    For a lower curve, rounding may make a line reach 0 to the left of x. The vertex is then moved to this zero.
    """
    side = steep.side
    if side == _Rounding.DOWN:
        # Both lines are at least 0 up to this alpha.
        x = min(x, float(steep.ends()[0]), float(_rounded_pair(flat.delta[:1], side)[0, 0]))
    first = _both_at(steep, flat, x)
    # The line of a large eps falls to 0 within an ulp of x, so that rounding of x may move beta to 0 or far above the flat line. An
    # alpha beyond the rounding error of x gives a vertex on the flat line.
    second = _both_at(steep, flat, x + side * 16 * ULP * (2 + abs(x) + float(steep.eps[0])))
    return second if side * first[2, 0] > side * second[2, 0] + 1e-9 else first


def _both_at(steep: _Lines, flat: _Lines, x: float) -> FloatArray:
    """Return the vertex at log alpha = x that is on or below (DOWN), or on or above (UP), the flattest lines of both families."""
    side = steep.side
    at = np.array([min(x, 0.0)])
    # The flat line has the value e^-eps (1 - delta - e^x) at log alpha = x.
    left, eps = float(log1mexp(flat.delta[:1])[0]), float(flat.eps[0])
    share = math.exp(min(x - side * 2 * ULP - left, 0.0)) * (1 - side * 8 * ULP * (1 + abs(x) + abs(left)))
    y = left - eps + math.log1p(-share) if share < 1 else -math.inf
    y += side * 8 * ULP * (1 + abs(y)) if y > -math.inf else 0.0
    two = np.array([min(y, 0.0)])
    return np.array([at, _rest(at, side), *_outer(steep.heights(at, slice(0, 1)), np.array([two, log1mexp(two)]), side)])


def _log_minus(a: float, b: float) -> float:
    """Return log(e^a - e^b), or -inf if the difference is not positive."""
    return a + math.log(-math.expm1(b - a)) if b < a else -math.inf
