r"""Replace a distribution by one with fewer values that is larger or smaller in the convex order.

All discretizations of distributions use these functions. Let nodes :math:`z_0 < \cdots < z_m` divide the range of X into cells. Two
distributions, :math:`Z^-` and :math:`Z^+`, replace that of X. For every convex f,

.. math:: \mathbb{E} f(Z^-) \le \mathbb{E} f(X) \le \mathbb{E} f(Z^+)

For :math:`Z^+` the mass of each cell is moved to the two ends of the cell such that its mean is kept (spread). For :math:`Z^-` the
mass of each cell is moved to its mean (merged). See Shaked, Shanthikumar, *Stochastic Orders*, 3.A. An upper bound of an expected
positive part uses :math:`Z^+`, a lower bound uses :math:`Z^-`. Functions whose names start with ``log`` take and return logarithms
of masses, and logarithms l of values :math:`e^l`.

Privacy losses are spread and merged on a grid by the kernel ``_core/_losses``, which keeps the masses under P and under Q.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.limits import LOG_TINY
from shufflebounds._base.types import EXP_SLACK, ULP, FloatArray
from shufflebounds._core import _cell_sums

__all__ = [
    "at_zero", "gathered", "grid_spread", "largest_charge", "log_parts", "log_shares", "log_spread", "log_to_nodes", "merged",
    "merged_sum", "nodes_at", "rising", "rounding_charge", "shares", "spread_sum", "to_nodes",
]

_COARSE = 0.25
"""Grid step in log |x| for values with masses below e^LOG_TINY. Raised: fewer values and a larger gap."""

_CLOSE = 0.03
"""Grid step of the nodes x of `gathered` in asinh(x/u), where u is a tenth of the median's absolute value: 3 % of x for large x.
Raised: fewer values and a larger gap."""


def rounding_charge(terms: int) -> float:
    """Return the rounding charge of a cell: an upper bound of each of two rounding errors.

    The two errors are the relative error of the mass of the cell, and the error of the mean of the cell, relative to the end of the
    cell with the larger absolute value.

    The exponential of a log mass has a relative error of at most EXP_SLACK. The share of a mass that is moved to one end, and the
    product of share and mass, take five roundings of ULP/2. The sum of n nonnegative terms, in any order, adds (n - 1) ULP/2. The
    charge exceeds the total of these errors by at least 1.5 ULP; this margin covers the products of errors if n < 1e7. `terms` is
    the largest number n of values in one cell, whose masses are added.
    """
    return EXP_SLACK + ULP * (4 + terms)


def largest_charge(values: FloatArray, nodes: FloatArray) -> float:
    """Return an upper bound of `rounding_charge` for every cell, and for every node, which gets mass from its two adjacent cells.

    The charge grows with the number of values in a cell. A node gets mass from two cells, so the charge is computed for twice the
    largest number of values in a cell.
    """
    return rounding_charge(2 * int(np.bincount(_cells(values, nodes)).max(initial=0)))


def nodes_at(share: FloatArray, count: int) -> NDArray[np.intp]:
    """Return the indices of at most `count` values that serve as nodes, including the first and the last.

    `share` is increasing, from 0 at the first value to 1 at the last one. The nodes are chosen such that `share` increases by about
    the same amount from node to node.
    """
    index = np.unique(np.searchsorted(share, np.linspace(0, 1, count)).clip(0, share.size - 1))
    index[0], index[-1] = 0, share.size - 1
    return index


def shares(mean: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the fraction of the mass of each cell that is moved to the upper end, such that the mean stays the same.

    The rest is moved to the lower end. The result is 0 if both ends are equal.
    """
    width = np.subtract(high, low)
    return np.asarray(np.clip(np.divide(mean - low, width, out=np.zeros(width.shape), where=width != 0), 0.0, 1.0))


def to_nodes(mass: FloatArray, moved: FloatArray) -> FloatArray:
    """Return the masses at the nodes: of the mass of each cell, `moved` goes to the upper end and the rest to the lower end."""
    return np.asarray(np.append(mass - moved, 0.0) + np.append(0.0, moved))


def grid_spread(places: FloatArray, mass: FloatArray, first: float, size: int) -> FloatArray:
    """Return the masses at the integer nodes first, ..., first + size - 1.

    Each mass is split between the two nodes next to its place such that its mean is kept.
    """
    low = np.clip(np.floor(places), first, first + size - 2)
    cell, share = (low - first).astype(np.intp), np.clip(places - low, 0.0, 1.0)
    out: FloatArray = np.bincount(cell, mass * (1 - share), size).astype(np.float64)
    out += np.bincount(cell + 1, mass * share, size)
    return out


def merged(values: FloatArray, mass: FloatArray, nodes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the mass of every cell; the mean of a cell without mass is its lower end."""
    cell = _cells(values, nodes)
    total = np.bincount(cell, mass, nodes.size - 1)
    moment = np.bincount(cell, mass * values, nodes.size - 1)
    means = np.divide(moment, total, out=nodes[:-1].copy(), where=total > 0)
    return np.clip(means, nodes[:-1], nodes[1:]), np.asarray(total, dtype=np.float64)


def _cells(values: FloatArray, nodes: FloatArray) -> NDArray[np.intp]:
    """Return the index of the cell of each value; the last node belongs to the last cell."""
    return np.clip(np.searchsorted(nodes, values, side="right") - 1, 0, nodes.size - 2)


def log_shares(level: FloatArray, low: FloatArray | float, high: FloatArray | float) -> FloatArray:
    """Return the fraction of each mass that moves from its value e^level to the end e^high of its cell; the rest moves to e^low.

    The fraction is chosen such that the mean stays the same.

    The result is 0 if both ends are equal.
    """
    width = np.expm1(np.subtract(low, high))
    moved = np.exp(level - high) * np.expm1(low - level)
    out = np.zeros(np.broadcast_shapes(np.shape(moved), np.shape(width)))
    return np.asarray(np.clip(np.divide(moved, width, out=out, where=width != 0), 0.0, 1.0))


def log_parts(log_mass: FloatArray, share: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the log masses moved to the lower and upper ends of cells; `share` is the fraction that moves to the upper end."""
    with np.errstate(divide="ignore"):
        return np.asarray(log_mass + np.log1p(-share)), np.asarray(log_mass + np.log(share))


def log_to_nodes(log_mass: FloatArray, share: FloatArray) -> FloatArray:
    """Return the log masses at the nodes, given those of the cells between them, as :func:`to_nodes` does for masses."""
    low, high = log_parts(log_mass, share)
    return np.asarray(np.logaddexp(np.append(low, -np.inf), np.append(-np.inf, high)))


def log_spread(levels: FloatArray, log_mass: FloatArray, nodes: FloatArray) -> FloatArray:
    """Return the log masses at the nodes e^nodes, given those at the values e^levels.

    Each mass is split between the two nodes next to its value such that its mean is kept.
    """
    cell = _cells(levels, nodes)
    low, high = log_parts(log_mass, log_shares(levels, nodes[cell], nodes[cell + 1]))
    out = np.full(nodes.size, -np.inf)
    np.logaddexp.at(out, cell, low)
    np.logaddexp.at(out, cell + 1, high)
    return out


def at_zero(values: FloatArray, log_mass: FloatArray, kept: NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Return the distribution in which every value outside the mask `kept` is replaced by 0; all masses at 0 become one atom."""
    apart = kept & (values != 0)
    if apart.all():
        return values, log_mass
    return np.append(values[apart], 0.0), np.append(log_mass[apart], np.logaddexp.reduce(log_mass[~apart]))


def rising(unit: float, farthest: float, step: float) -> FloatArray:
    """Return the points unit sinh(k step) for k = ..., -1, 0, 1, ..., until their absolute value exceeds `farthest`.

    The points are about evenly spaced up to `unit` and grow geometrically beyond.
    """
    steps = math.ceil(math.asinh(farthest / unit) / step) + 1
    rise = unit * np.sinh(step * np.arange(1, steps + 1))
    return np.concatenate([-rise[::-1], [0.0], rise])


def spread_sum(place: FloatArray, mass: FloatArray, jump: FloatArray, prob: FloatArray, nodes: FloatArray) -> FloatArray:
    """Return masses at the nodes of a distribution that is larger in the convex order than that of X + Y.

    X has the increasing values `place` with masses `mass`. Y is independent of X and has the values `jump` with masses `prob`.
    """
    total, moment = _cell_sums.wide_sums(place, mass, jump, prob, nodes, True)
    charge = rounding_charge(place.size + jump.size)
    return to_nodes(total, np.clip(moment / np.diff(nodes) * (1 + charge), 0.0, total))


def merged_sum(place: FloatArray, mass: FloatArray, jump: FloatArray, prob: FloatArray,
               nodes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return values and masses of a distribution that is smaller in the convex order than that of X + Y.

    X and Y are those of :func:`spread_sum`. The mass of X + Y between two nodes is moved to its mean.
    """
    total, moment = _cell_sums.wide_sums(place, mass, jump, prob, nodes, False)
    kept = total > 0
    charge = rounding_charge(place.size + jump.size)
    return nodes[:-1][kept] + np.clip(moment[kept] / total[kept] * (1 - charge), 0.0, np.diff(nodes)[kept]), total[kept]


def gathered(values: FloatArray, log_mass: FloatArray, *, upper: bool) -> tuple[FloatArray, FloatArray]:
    """Return a distribution with fewer values that is larger (`upper`) or smaller in the convex order.

    The nonzero values are about 3 % apart.
    """
    values, log_mass = at_zero(values, log_mass, values != 0)
    if values[-1] == 0:
        # The mass at 0 is not moved.
        at, log_moved = gathered(values[:-1], log_mass[:-1], upper=upper)
        return np.append(at, 0.0), np.append(log_moved, log_mass[-1])
    # Masses below TINY would lose digits or underflow: the values that have them are rounded to a grid, where masses are added in
    # logarithms.
    rare = log_mass < LOG_TINY
    moved, log_moved = _on_coarse_grid(values[rare], log_mass[rare], upper)
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


def _on_coarse_grid(values: FloatArray, log_mass: FloatArray, upper: bool) -> tuple[FloatArray, FloatArray]:
    """Return a distribution with fewer values: each value is rounded up (`upper`) or down to the grid of step _COARSE."""
    away = (values > 0) == upper
    level = np.log(np.abs(values)) / _COARSE
    level = np.where(away, np.ceil(level + 1e-9), np.floor(level - 1e-9))
    at, place = np.unique(np.sign(values) * np.exp(level * _COARSE), return_inverse=True)
    out = np.full(at.size, -np.inf)
    np.logaddexp.at(out, place, log_mass)
    return at, out
