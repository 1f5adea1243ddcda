r"""E(X_1 + ... + X_n)_+ of laws with heavy tails on both sides, where sums of a few large values decide.

With K users above a threshold in size, K binomial, S is a sum of n - K light values and of K heavy ones:

    E S_+ = sum_k Pr[K = k] E g_k(Y_k),    g_k(y) = E(y + light values of n - k users)_+,    Y_k a sum of k heavy values.

g_k by the contour of the kernel ``_smoothed``, shifted to every y at once; Y_1 as it is, Y_2 and so on spread to points or merged
between them, which is larger or smaller in the convex order: g_k is convex. More than k heavy values add at most
n E X_+ Pr[Bin(n - 1, p) >= k], which is made next to nothing.

The sides are some 1e-6 apart for Gaussian noise of sigma = 3/10 and 1/2 at n = 1e3 .. 1e6, 1e-4 at n = 100, in 0.05 to 0.3 s.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from shufflebounds._types import ULP, FloatArray, Interval, IntervalArray
from shufflebounds.shuffle._convex_order import RAREST, merged_sum, rising, spread_sum
from shufflebounds.shuffle._tilted_inversion import LEFT, WIDE, Gains, Light

__all__ = ["sum_with_jumps"]

_MOST = 60
"""No more heavy values than that."""

_WIDEST = 1e150
"""The square of the largest value is a double."""

_TINY = float(np.finfo(float).tiny)
"""The least full double."""

_MOST_HEAVY = 0.9
"""Of all users, so many may have a value where each value is a heavy one."""

_ALL = 16.0
"""Where fewer users on average have a value other than 0, all values are heavy ones."""

_STEP = 0.05
"""Distance of neighbouring places of sums, as logarithms, where every value is a heavy one."""

_NOTHING = Interval(-math.inf, math.inf)

_Heavy = tuple[FloatArray, FloatArray, float]
"""Rising values, their law, and the chance of all of them."""


class _NoLight:
    """The positive part of y alone: every value is a heavy one."""

    scale = 0.0

    def __init__(self, unit: float) -> None:
        self.unit = unit

    def points(self, farthest: float) -> FloatArray:
        """Where sums are kept, 0 among them."""
        return rising(self.unit, farthest, _STEP)

    def at(self, y: FloatArray, column: NDArray[np.intp] | slice) -> IntervalArray:
        """Both bounds, which are the value."""
        width = len(range(*column.indices(_MOST + 1))) if isinstance(column, slice) else column.size
        value = np.repeat(np.maximum(y, 0.0)[:, None], width, axis=1)
        return IntervalArray(value, value)


def _guess(light: Light, place: FloatArray, log_chance: FloatArray) -> float:
    """Return roughly the log of the answer: the largest term of none or one heavy value."""
    lines = (light.lines(0)[:, None] + light.tilts[:, None] * place).min(axis=0) - 2
    above = place + light.mean * light.users
    return float((log_chance + np.where(above > 0, np.log(np.where(above > 0, above, 1.0)), lines)).max())


def sum_with_jumps(values: FloatArray, log_mass: FloatArray, users: float) -> Interval:
    """Return bounds of log E S_+ of so many users with the same law.

    Parameters
    ----------
    values, log_mass : ndarray
        The atoms; the rest of the mass sits at 0.
    users : float
        A whole number, at least 2.

    Returns
    -------
    Between
        (-inf, inf) where the law is not of this kind.
    """
    order = np.argsort(-np.abs(values), kind="stable")
    x, log_w = values[order], log_mass[order]
    if not abs(x[0]) < _WIDEST:
        return _NOTHING
    count = np.cumsum(np.exp(log_w)) * users
    if 1e-3 < count[-1] < _ALL:
        # where nearly everybody has a value, the chance that nobody has one is a rounding
        return _all_heavy(x, log_w, users) if count[-1] < _MOST_HEAVY * users else _NOTHING
    # fewer leave less to the points, more leave a narrower law to the contour
    few = min(0.25, max(0.02, 8 / math.sqrt(users)))
    heavy = int(np.searchsorted(count, few))
    if heavy in (0, x.size) or not np.abs(x[heavy:]).max() > 0:
        return _NOTHING
    light, jumps = _parted(x, log_w, heavy, users)
    jump, part, chance = jumps
    log_none = math.log1p(-chance)
    log_jump = np.log(part) + math.log(chance * users) + (users - 1) * log_none
    scale = _guess(light, np.append(jump, 0.0), np.append(log_jump, users * log_none))
    if not -600 < scale < 600:
        return _NOTHING
    kept, moved = _large(x[:heavy], log_w[:heavy], users, scale - LEFT)
    if not kept.any() or log_w[:heavy][kept].min() < RAREST:
        return _NOTHING
    kept = np.append(kept, np.ones(x.size - heavy, dtype=bool))
    x, log_w = x[kept], log_w[kept]
    light, jumps = _parted(x, log_w, heavy - int((~kept).sum()), users)
    most, log_left = _enough(x, log_w, users, jumps[2], scale - LEFT)
    gains = Gains(light, most, scale, min(0.2, 0.02 / few))
    too_wide = gains.high - gains.low > 10 * WIDE * light.deviation
    if too_wide or (not gains.crude and any(contour.coarse for contour in gains.contours)):
        return _NOTHING
    return _summed(gains, users, jumps, most, np.logaddexp(moved, log_left) - scale, moved - scale)


def _all_heavy(x: FloatArray, log_w: FloatArray, users: float) -> Interval:
    """Return bounds of log E S_+ where few users have a value other than 0."""
    total = math.fsum(np.exp(log_w))
    # one gains, and nobody else has a value
    least = _log_gain(x, log_w, users) + (users - 1) * math.log1p(-total)
    if not -600 < least < 600:
        return _NOTHING
    kept, moved = _large(x, log_w, users, least - LEFT)
    x, log_w = x[kept], log_w[kept]
    if log_w.min() < RAREST:
        return _NOTHING
    # the median size
    unit = float(np.abs(x[np.searchsorted(np.cumsum(np.exp(log_w)), total / 2).clip(0, x.size - 1)]))
    if not _MOST * float(np.abs(x).max()) / unit < math.inf:
        return _NOTHING
    jumps = _parted(x, log_w, x.size, users)[1]
    most, log_left = _enough(x, log_w, users, jumps[2], least - LEFT)
    return _summed(_NoLight(unit), users, jumps, most, np.logaddexp(moved, log_left), moved)


def _parted(x: FloatArray, log_w: FloatArray, heavy: int, users: float) -> tuple[Light, _Heavy]:
    """Return the law given that a value is light, and the heavy values, the first ones, with their law and their chance."""
    chance = math.fsum(np.exp(log_w[:heavy]))
    rise = np.argsort(x[heavy:])
    light = Light(x[heavy:][rise], log_w[heavy:][rise] - math.log1p(-chance), users)
    rise = np.argsort(x[:heavy])
    return light, (x[:heavy][rise], np.exp(log_w[:heavy][rise]) / chance, chance)


def _log_gain(x: FloatArray, log_w: FloatArray, users: float) -> float:
    """Return log n E X_+."""
    return math.log(users) + float(np.logaddexp.reduce(log_w[x > 0] + np.log(x[x > 0])))


def _large(x: FloatArray, log_w: FloatArray, users: float, log_moved: float) -> tuple[NDArray[np.bool_], float]:
    """Return which values are kept if the others move E S_+ by less than that, and the log of what they move it by at most."""
    with np.errstate(divide="ignore"):
        size = log_w + np.log(np.abs(x)) + math.log(users)
    order = np.argsort(size)
    total = np.logaddexp.accumulate(size[order])
    place = int(np.searchsorted(total, log_moved))
    kept = np.ones(x.size, dtype=bool)
    kept[order[:place]] = False
    return kept, float(total[place - 1]) + 1e-9 if place else -math.inf


def _enough(x: FloatArray, log_w: FloatArray, users: float, chance: float, log_least: float) -> tuple[int, float]:
    """Return how many heavy values are looked at, and the log of what more of them add at most.

    That is n E X_+ Pr[Bin(n - 1, p) >= k] <= n E X_+ C(n - 1, k) p^k.
    """
    k, log_left = 0, _log_gain(x, log_w, users)
    while (log_left > log_least or k < 3) and k < min(_MOST, users - 1):
        k += 1
        log_left += math.log((users - k) / k) + math.log(chance) if k < users else -math.inf
    return k, log_left


def _summed(gains: Gains | _NoLight, users: float, jumps: _Heavy, most: int, log_more: float, log_less: float) -> Interval:
    """Return bounds from up to `most` heavy values; what the rest adds and takes away at most is known by its logarithm."""
    jump, part, chance = jumps
    log_none = math.log1p(-chance)
    nodes = gains.points((most + 1) * float(np.abs(jump).max()))
    lower, upper = (float(side[0, 0]) * math.exp(users * log_none) for side in gains.at(np.zeros(1), slice(0, 1)))
    above = gains.at(nodes, slice(min(2, most), None)).upper
    if not max(log_more, float(np.log(above.max(initial=1.0)))) < 600:
        return _NOTHING
    # what the masses of sums lose, or are moved within their cell, where they are no full doubles
    lost = _TINY * jump.size * nodes.size
    spread, merged, log_chance = part, part, users * log_none
    place, where = jump, jump
    for k in range(1, most + 1):
        log_chance += math.log((users - k + 1) / k) + math.log(chance) - log_none
        weight = math.exp(log_chance)
        if k > 1:
            spread, place = spread_sum(place, spread, jump, part, nodes), nodes
            where, merged = merged_sum(where, merged, jump, part, nodes)
            column = above[:, k - min(2, most)]
            # the weight may be no double where the sum is large
            upper += math.exp(min(log_chance + math.log(float(spread @ column) + k * lost * float(column.max()) + _TINY), 700.0))
        low, high = gains.at(where, slice(k, k + 1))
        lower += weight * (float(merged @ low[:, 0]) - (k - 1) * lost * float(low.max()))
        if k == 1:
            upper += weight * float(part @ high[:, 0])
    slack = 1e-11 + ULP * (8 * users * abs(log_none) + 4 * nodes.size)
    upper = upper * (1 + slack) + math.exp(log_more) + 1e-280
    lower = lower * (1 - slack) - math.exp(log_less)
    return Interval(math.log(lower) + gains.scale if lower > 0 else -math.inf, math.log(upper) + gains.scale)
