"""Replacement of a distribution, or that of a sum, by one with fewer values that is larger or smaller in the convex order."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._core import _jumps
from shufflebounds._types import ULP, FloatArray

__all__ = ["RAREST", "gathered", "merged_sum", "rising", "spread_sum"]

RAREST = -690.0
"""Log masses below this, near the smallest normal double (e^-708.4), are added as logarithms."""

_COARSE = 0.25
"""Grid step in log |x| for values with masses below e^RAREST. Raised: fewer values and a larger gap."""

_CLOSE = 0.03
"""Grid step of the nodes, in asinh(x/unit). Raised: fewer values and a larger gap."""


def rising(unit: float, farthest: float, step: float) -> FloatArray:
    """Return the points unit * sinh(k step), k = ..., -1, 0, 1, ...: even near 0, geometric beyond `unit`, up to `farthest`."""
    steps = math.ceil(math.asinh(farthest / unit) / step) + 1
    rise = unit * np.sinh(step * np.arange(1, steps + 1))
    return np.concatenate([-rise[::-1], [0.0], rise])


def spread_sum(place: FloatArray, mass: FloatArray, jump: FloatArray, prob: FloatArray, nodes: FloatArray) -> FloatArray:
    """Return masses at the nodes of a distribution that is larger in the convex order than that of place + jump.

    `place` with masses `mass` and `jump` with masses `prob` are independent.
    """
    total, moment = _jumps.cell_sums(place, mass, jump, prob, nodes, True)
    # the factor covers the rounding errors
    far = np.clip(moment / np.diff(nodes) * (1 + 8 * ULP), 0.0, total)
    return np.asarray(np.append(total - far, 0.0) + np.append(0.0, far))


def merged_sum(place: FloatArray, mass: FloatArray, jump: FloatArray, prob: FloatArray,
               nodes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return places and masses of a distribution that is smaller in the convex order than that of place + jump.

    The mass between two nodes is placed at its mean.
    """
    total, moment = _jumps.cell_sums(place, mass, jump, prob, nodes, False)
    kept = total > 0
    return nodes[:-1][kept] + np.clip(moment[kept] / total[kept] * (1 - 8 * ULP), 0.0, np.diff(nodes)[kept]), total[kept]


def gathered(values: FloatArray, log_mass: FloatArray, *, upper: bool) -> tuple[FloatArray, FloatArray]:
    """Return a distribution with fewer values, larger (upper) or smaller in the convex order: about 0.03 apart in log |x|."""
    # tiny masses are added as logarithms, at values that are rounded up or down
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
    """Return a distribution with fewer values: each value is rounded up (upper) or down to the grid."""
    nonzero = values != 0
    x, w = values[nonzero], log_mass[nonzero]
    away = (x > 0) == upper
    level = np.log(np.abs(x)) / _COARSE
    level = np.where(away, np.ceil(level + 1e-9), np.floor(level - 1e-9))
    at, place = np.unique(np.sign(x) * np.exp(level * _COARSE), return_inverse=True)
    out = np.full(at.size, -np.inf)
    np.logaddexp.at(out, place, w)
    return at, out
