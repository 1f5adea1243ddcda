"""E(X_1 + ... + X_n)_+ of a law in atoms: negligible atoms are left out, very many are gathered, and the kernel does the rest."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shufflebounds._core import _excess
from shufflebounds._types import ULP, FloatArray, Interval
from shufflebounds.shuffle._convex_order import gathered
from shufflebounds.shuffle._heavy_tails import sum_with_jumps

__all__ = ["HEAVY", "MANY", "NORMAL", "excesses", "rounding", "sums", "without_negligible"]

MANY = 1024
"""Laws of more atoms are gathered at each eps."""

_GATHERED = 1024

HEAVY = 1e6
"""Values beyond are no matter of a mean and a variance: such laws are left as they are."""

_TOO_MANY = 8000
"""Laws of more atoms are gathered even where there are very large ones."""

_FEW = 8
"""Of fewer users nothing is gained by counting the heavy values apart."""

_ROUGH = 1e7
"""No more work than that is asked for where a rough answer will do."""

_CLOSE = 2e-3
"""Sides so close need no second method."""

_LIGHT = -600.0
"""Log masses below are not gathered: their sums would leave the doubles."""

_FAR = 40.0
"""So far below all gains, in logarithms, is next to nothing at first."""

NORMAL = -708.0
"""Log masses below are no doubles of full precision."""


def rounding(log_mass: FloatArray, log_a: FloatArray, log_b: FloatArray) -> float:
    """Return the relative error that exp of these logarithms makes."""
    sizes = [np.abs(np.where(x > -np.inf, x, 0.0)).max(initial=0.0) for x in (log_mass, log_a, log_b)]
    # masses next to the least double have few digits
    return 4 * ULP * (1 + 2 * float(sum(sizes))) + 64 * math.exp(min(0.0, float(sizes[0]) - 744.0))


def sums(values: FloatArray, log_mass: FloatArray, users: float, upper: bool | None,
         effort: tuple[float, float]) -> Interval:
    """Return bounds of log E S_+ for so many users; only one of them where one is asked for and that is less work."""
    count = np.array([float(users)])
    heavy = float(np.abs(values).max()) > HEAVY
    if log_mass.size > (_TOO_MANY if heavy else MANY):
        # each side has a law of its own
        def one(side: bool) -> float:
            if heavy:
                return sums(*gathered(values, log_mass, upper=side), users, side, effort)[side]
            return _gathered_excess(values, log_mass, count, side, effort)

        return Interval(-math.inf if upper else one(False), math.inf if upper is False else one(True))
    found = Interval(-math.inf, math.inf)
    if heavy and users > _FEW and effort[1] > _ROUGH:
        found = sum_with_jumps(values, log_mass, users)
    if found.upper - found.lower < _CLOSE:
        return found
    lower, high = _excess.log_excess(values, log_mass, np.array([0, log_mass.size], dtype=np.intp), count, *effort)
    return Interval(max(lower, found.lower), min(high, found.upper))


def without_negligible(values: FloatArray, log_mass: FloatArray, users: float, asked: bool | None,
                       effort: tuple[float, float]) -> tuple[float, float, NDArray[np.bool_]]:
    """Return bounds of log E S_+ and the atoms they were formed from: the kernel needs not see what can add next to nothing.

    An atom x of mass w that goes to 0 moves E S_+ by at most n w |x|.
    """
    with np.errstate(divide="ignore"):
        # the mass at 0 is listed: what is missing from 1 is known less well
        size = np.where(values == 0, np.inf, log_mass + np.log(np.abs(values)))
    order = np.argsort(size, kind="stable")
    total = np.logaddexp.accumulate(size[order])
    floor = float(np.logaddexp.reduce(size[values > 0], initial=-np.inf)) - _FAR
    kept = np.ones(size.size, dtype=bool)
    for more in (_FAR, math.inf, 0.0):
        place = int(np.searchsorted(total, floor))
        kept[:] = True
        kept[order[:place]] = False
        lower, upper = sums(values[kept], log_mass[kept], users, asked, effort) if kept.any() else (-math.inf, -math.inf)
        moved = math.log(users) + float(total[place - 1]) if place else -math.inf
        if moved == -math.inf or moved < lower - 30:
            break
        floor = min(floor, lower - math.log(users)) - more
    if moved > -math.inf:
        lower = lower + math.log1p(-math.exp(moved - lower)) if moved < lower else -math.inf
        upper = float(np.logaddexp(upper, moved))
    return lower, upper, kept


def _gathered_excess(values: FloatArray, log_mass: FloatArray, count: FloatArray, upper: bool,
                     effort: tuple[float, float]) -> float:
    """Return one bound of log E S_+ from a law of fewer values that is smaller (upper false) or larger in the convex order.

    Between nodes the masses go to their mean, or to the two nodes, the mean kept; what rounding moves is made up for. Nodes are as
    dense as the third root of the density, which moves the variance the least; a third of them is spread evenly.
    """
    light = log_mass < _LIGHT
    order = np.argsort(np.where(light, np.inf, values), kind="stable")[: values.size - int(light.sum())]
    x, mass = values[order], np.exp(log_mass[order])
    gap = np.diff(x, append=x[-1])
    weight = np.cumsum(np.cbrt(mass * gap * gap))
    even = np.arcsinh(x / np.sqrt(mass @ (x * x)))
    share = 0.7 * weight / weight[-1] + 0.3 * (even - even[0]) / (even[-1] - even[0])
    index = np.unique(np.searchsorted(share, np.linspace(0, 1, _GATHERED)).clip(0, x.size - 1))
    index[0], index[-1] = 0, x.size - 1
    cell = np.clip(np.searchsorted(index, np.arange(x.size), side="right") - 1, 0, index.size - 2)
    ends = x[index]
    size = np.maximum(np.abs(ends[:-1]), np.abs(ends[1:]))
    # sums of so many terms
    loss_error = ULP * (64 + float(np.diff(index).max()))
    if upper:
        part = np.clip((x - ends[cell]) / np.maximum(ends[cell + 1] - ends[cell], 1e-300), 0.0, 1.0)
        total = np.bincount(cell, mass * (1 - part), index.size) + np.bincount(cell + 1, mass * part, index.size)
        size = np.maximum(np.append(size, 0.0), np.append(0.0, size))
        at = ends + loss_error * size
    else:
        total = np.bincount(cell, mass, index.size - 1)
        at = np.bincount(cell, mass * x, index.size - 1) / np.maximum(total, 1e-300) - loss_error * size
    kept = total > 0
    at, log_total = np.concatenate([at[kept], values[light]]), np.concatenate([np.log(total[kept]), log_mass[light]])
    return float(_excess.log_excess(at, log_total, np.array([0, at.size], dtype=np.intp), count, *effort)[upper])


def excesses(log_a: FloatArray, log_b: FloatArray, eps: float) -> FloatArray:
    """Return a - e^eps b from the logarithms of a and b, without cancellation where their difference is good."""
    with np.errstate(invalid="ignore", over="ignore"):
        loss = np.where(log_a == log_b, 0.0, log_a - log_b) - eps
        # from the larger of the two terms, so that neither overflows
        value = np.where(loss > 0, np.exp(log_a) * -np.expm1(-loss), np.exp(log_b + eps) * np.expm1(loss))
    return np.asarray(np.where((log_a == -np.inf) & (log_b == -np.inf), 0.0, value))
