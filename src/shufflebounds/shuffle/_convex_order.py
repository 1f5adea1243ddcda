"""Laws of fewer values that are larger or smaller in the convex order than a law, or than the law of a sum."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._core import _jumps
from shufflebounds._types import ULP, FloatArray

__all__ = ["RAREST", "gathered", "merged_sum", "rising", "spread_sum"]

RAREST = -690.0
"""A logarithm above that of the least full double."""

_COARSE = 0.25
"""How far apart, as logarithms, values are kept whose masses are no doubles."""

_CLOSE = 0.03
"""Distance of neighbouring nodes, as logarithms."""


def rising(unit: float, farthest: float, step: float) -> FloatArray:
    """Return points that rise to either side of 0, evenly within the unit and by one ratio beyond."""
    steps = math.ceil(math.asinh(farthest / unit) / step) + 1
    rise = unit * np.sinh(step * np.arange(1, steps + 1))
    return np.concatenate([-rise[::-1], [0.0], rise])


def spread_sum(place: FloatArray, mass: FloatArray, jump: FloatArray, chance: FloatArray, nodes: FloatArray) -> FloatArray:
    """Return the masses at the nodes of a law at or above that of a sum in the convex order."""
    total, moment = _jumps.cell_sums(place, mass, jump, chance, nodes, True)
    # more for the rounding of the two
    far = np.clip(moment / np.diff(nodes) * (1 + 8 * ULP), 0.0, total)
    return np.asarray(np.append(total - far, 0.0) + np.append(0.0, far))


def merged_sum(place: FloatArray, mass: FloatArray, jump: FloatArray, chance: FloatArray,
               nodes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the places and masses of a law at or below that of a sum: what lies between two nodes is at its mean."""
    total, moment = _jumps.cell_sums(place, mass, jump, chance, nodes, False)
    kept = total > 0
    return nodes[:-1][kept] + np.clip(moment[kept] / total[kept] * (1 - 8 * ULP), 0.0, np.diff(nodes)[kept]), total[kept]


def gathered(values: FloatArray, log_mass: FloatArray, *, upper: bool) -> tuple[FloatArray, FloatArray]:
    """Return a law of fewer values that is larger or smaller in the convex order: of one size they are a few hundredths apart."""
    # masses that are no doubles are added as logarithms, at values that are larger or smaller
    rare = log_mass < RAREST
    moved, log_moved = _rounded(values[rare], log_mass[rare], upper)
    if rare.all():
        return moved, log_moved
    values, log_mass = values[~rare], log_mass[~rare]
    rise = np.argsort(values)
    x, w = values[rise], np.exp(log_mass[rise])
    size = np.abs(x)
    unit = float(size[np.searchsorted(np.cumsum(w), 0.5 * w.sum()).clip(0, x.size - 1)]) or float(size.max())
    nodes = rising(0.1 * unit, float(size.max()), _CLOSE)
    whole = np.zeros(1), np.ones(1)
    at, mass = (nodes, spread_sum(x, w, *whole, nodes)) if upper else merged_sum(x, w, *whole, nodes)
    kept = mass > 0
    return np.append(at[kept], moved), np.append(np.log(mass[kept]), log_moved)


def _rounded(values: FloatArray, log_mass: FloatArray, upper: bool) -> tuple[FloatArray, FloatArray]:
    """Return a law of fewer values, none of which lies below, or none above, the one that it stands for."""
    held = values != 0
    x, w = values[held], log_mass[held]
    away = (x > 0) == upper
    level = np.log(np.abs(x)) / _COARSE
    level = np.where(away, np.ceil(level + 1e-9), np.floor(level - 1e-9))
    at, place = np.unique(np.sign(x) * np.exp(level * _COARSE), return_inverse=True)
    out = np.full(at.size, -np.inf)
    np.logaddexp.at(out, place, w)
    return at, out
