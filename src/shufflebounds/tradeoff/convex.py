r"""Decreasing convex functions of E = e^eps, given at points: convex hulls, supporting lines, and distributions of losses.

A point is (eps, log value). A chain is a sequence of points with increasing eps and decreasing values, as two arrays. The
hockey-stick divergence of a pair is such a function. For E < 1 it is near 1 - E, so a second chain has the divergence of the
reversed pair at 1/E instead, whose values are small. Both chains start at the same point near eps = 0, the join.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core import _tradeoff
from shufflebounds.tradeoff.representation import log1mexp

__all__ = ["Chain", "across", "alternate", "below", "distinct", "drops", "hull", "joined", "masses"]

Chain = tuple[FloatArray, FloatArray]


def hull(x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the vertices (x, y) of the lower convex hull of the points (e^x, e^y), and logs of the negative slopes between them.

    x increases. A point that is not below its predecessor is not a vertex.
    """
    kept, along, down = _tradeoff.lower_hull(x, np.full(x.size, np.inf), y, log1mexp(y))
    return x[kept], y[kept], down - along


def across(x: float, value: float) -> float:
    """Return the log divergence of a pair at eps = x <= 0, given the log divergence `value` of the reversed pair at -x.

    With E = e^x the result is the log of (1 - E) + E e^value, a sum of two nonnegative terms. If the sum is above 1/2, it is
    computed as 1 - E (1 - e^value).
    """
    less = math.exp(x) * math.expm1(min(value, 0.0))
    if less > -0.5:
        return math.log1p(less)
    total = -math.expm1(x) + math.exp(x + value)
    return math.log(total) if total > 0 else -math.inf


def distinct(x: FloatArray, y: FloatArray) -> Chain:
    """Return the chain with only the last (lowest) of several points at the same x."""
    kept = np.append(np.diff(x) > 0, True)
    return x[kept], y[kept]


def below(x: FloatArray, low: FloatArray, high: FloatArray) -> Chain:
    r"""Return a chain that is a lower bound of a convex decreasing function of E = e^eps, given its bounds at the points x.

    The chain begins at the second point, and ends with value 0. Let E_i = e^x[i], with the bounds `low` and `high`. For every s >=
    1, on [E_i, E_(i+1)] two lines are below the function, and so is their maximum: the left line through (E_(i-s), high) and (E_i,
    low), and the right line through (E_(i+1), low) and (E_(i+1+s), high). Each line uses the best one of s = 1, 2, 4, 8, ...: this
    is s = 1 if both bounds are equal, and a larger s if their gap is large compared with the change of the function between
    neighbouring points. Entry 2 i of the chain is at E_(i+1), and entry 2 i + 1 is the intersection of the two lines on the
    following interval. The bound is exact on an interval with one breakpoint if the function is linear on both sides of it. Beyond
    the last point the left line is extended to its zero.
    """
    # log_value = 0 may stand for a value slightly below 1. So `low` is reduced a little, and the left line need not be constant
    # there.
    eps, log_value = _tradeoff.lines_below(x, np.minimum(low, -5e-324), np.ascontiguousarray(high))
    return (eps, log_value) if eps.size else (x[1:2].copy(), np.full(1, -np.inf))


def alternate(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return the entries of both arrays alternately."""
    out = np.empty(first.size + second.size)
    out[::2], out[1::2] = first, second
    return out


def joined(right: Chain, left: Chain, *, lower: bool = False) -> tuple[Chain, Chain]:
    """Return the lower convex hulls of two chains. The value at their join is lowered until the joined function is convex.

    If `lower`, the value is lowered further, by 1, 2, 4, ... ulp, because rounding may dominate the slopes between the join and
    points close to it.
    """
    right, left = hull(*right)[:2], hull(*left)[:2]
    for turn in range(16):
        (x, y), (u, v) = right, left
        # A negative mass of up to 1e-12 is accepted, because the caller's bound of the rounding errors (slack) covers it.
        if _at_join(right, left) >= -1e-12 or min(x.size, u.size) < 2 or y[0] == -np.inf:
            break
        # Evaluate, at the join, the line through its neighbours: the left one at e^-u[1] and the right one at e^x[1].
        whole = x[1] + u[1]
        share = math.expm1(x[0] + u[1]) / math.expm1(whole) if whole < LARGEST_EXPONENT else math.exp(x[0] - x[1])
        chord = (1 - share) * math.exp(across(-u[1], v[1])) + share * math.exp(y[1])
        y[0] = min(math.log(chord) if chord > 0 else -math.inf, y[0])
        y[0] -= 2.0**turn * ULP * (1 + abs(y[0])) if lower else 0.0
        v[0] = across(u[0], y[0])
        right, left = hull(x, y)[:2], hull(u, v)[:2]
    return right, left


def masses(right: Chain, left: Chain) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return (losses, log masses under P, log divergences at the losses) of a pair, given its divergence by two joined chains."""
    (x, y), (u, v) = right, left
    slopes, backs = np.append(drops(x, y), -np.inf), np.append(drops(u, v), -np.inf)
    at_join = _at_join(right, left)
    middle = (math.log(at_join) if at_join > 0 else -math.inf) + x[0]
    with np.errstate(divide="ignore"):
        crossed = np.log(-np.expm1(-u[:0:-1]) + np.exp(np.minimum(v[:0:-1], 0) - u[:0:-1]))
    return (
        np.concatenate([-u[:0:-1], x]),
        np.concatenate([_minus(backs)[::-1], [middle], _minus(slopes) + x[1:]]),
        np.concatenate([crossed, y]),
    )


def _minus(y: FloatArray) -> FloatArray:
    """Return log(e^y[i] - e^y[i + 1]) for each i, or -inf if the values do not decrease."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(y[:-1] > y[1:], y[:-1] + np.log(-np.expm1(y[1:] - y[:-1])), -np.inf)


def drops(x: FloatArray, y: FloatArray) -> FloatArray:
    """Return the logs of minus the slopes between neighbouring points (e^x, e^y)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return _minus(y) - x[1:] - np.log(-np.expm1(x[:-1] - x[1:]))


def _at_join(right: Chain, left: Chain) -> float:
    """Return the mass under Q of the loss at the join of the two chains: 1 minus the masses of all smaller and larger losses."""
    (x, y), (u, v) = right, left
    above = math.exp(drops(x[:2], y[:2])[0]) if x.size > 1 else 0.0
    under = math.exp(v[0]) + (math.exp(drops(u[:2], v[:2])[0] + u[0]) if u.size > 1 else 0.0)
    return 1 - under - above
