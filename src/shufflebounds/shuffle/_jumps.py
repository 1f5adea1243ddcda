r"""E(X_1 + ... + X_n)_+ of laws with heavy tails on both sides, where sums of a few large values decide.

With K users above a threshold in size, K binomial, S is a sum of n - K light values and of K heavy ones:

    E S_+ = sum_k Pr[K = k] E g_k(Y_k),    g_k(y) = E(y + light values of n - k users)_+,    Y_k a sum of k heavy values.

g_k by the contour of the kernel ``_smoothed``, shifted to every y at once; Y_1 as it is, Y_2 and so on spread to points or merged
between them, which is larger or smaller in the convex order (``_jumps``): g_k is convex. More than k heavy values add at most
n E X_+ Pr[Bin(n - 1, p) >= k], which is made next to nothing.

The sides are some 1e-6 apart for Gaussian noise of sigma = 3/10 and 1/2 at n = 1e3 .. 1e6, 1e-4 at n = 100, in 0.05 to 0.3 s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shufflebounds._cached import cached_property
from shufflebounds._core import _jumps, _smoothed
from shufflebounds._types import ULP, Between, FloatArray

__all__ = ["gathered", "sum_with_jumps"]


_MOST = 60
"""Never more of them."""

_REACH = 8.5
"""The smoothing ends at so many of its deviations (``_smoothed``)."""

_LEFT = 20.0
"""What is left out is e^-20 of the answer."""

_SMOOTH = 2e-4
"""Deviation of the smoothing in those of the bulk."""

_PIECES = 6
"""No more tilts than that on either side of the mean."""

_WIDEST = 1e150
"""The square of the largest value is a double."""

_TINY, _RAREST = float(np.finfo(float).tiny), -690.0
"""The least full double, and a logarithm above its own."""

_COARSE = 0.25
"""How far apart, as logarithms, values are kept whose masses are no doubles."""

_MOST_HEAVY = 0.9
"""Of all users, so many may have a value where each value is a heavy one."""

_ALL = 16.0
"""Where fewer users on average have a value other than 0, all values are heavy ones."""

_STEP, _CLOSE = 0.05, 0.03

_WIDE = 30.0
"""So many deviations to either side of the mean are the bulk then, and ten times as many at most."""

_NARROW = 300.0
"""Where the mean of the light values is so many of their deviations off, it and their variance tell enough."""

_NEXT_TO_NOTHING = 30.0

_BAND = math.exp(-40.0)

_NOTHING = Between(-math.inf, math.inf)

_Heavy = tuple[FloatArray, FloatArray, float]
"""Rising values, their law, and the chance of all of them."""


@dataclass(frozen=True, eq=False)
class _Light:
    """The light values of n users and fewer."""

    x: FloatArray
    log_w: FloatArray
    users: float

    @cached_property
    def w(self) -> FloatArray:
        return np.asarray(np.exp(self.log_w))

    @cached_property
    def rest(self) -> float:
        """The mass at 0, to rounding."""
        return 1.0 - math.fsum(self.w)

    @cached_property
    def mean(self) -> float:
        return float(self.w @ self.x)

    @cached_property
    def deviation(self) -> float:
        """Of n users."""
        return math.sqrt(self.users * float(self.w @ (self.x - self.mean) ** 2 + max(0.0, self.rest) * self.mean**2))

    @cached_property
    def size(self) -> float:
        """What an ulp of every value and mass moves the sum by, in ulps."""
        return self.users * float(self.w @ (np.abs(self.x) * (20 - self.log_w)))

    @cached_property
    def tilts(self) -> FloatArray:
        most = 600 / float(np.abs(self.x).max())
        low = min(0.05 / self.deviation, most / 1000)
        return np.asarray(np.exp(np.linspace(math.log(low), math.log(most), max(8, int(8 * math.log(most / low))))))

    @cached_property
    def cumulants(self) -> FloatArray:
        """K(theta) of n users at the tilts, and at the tilts reversed."""
        tilted = self.x[:, None] * np.concatenate([self.tilts, -self.tilts])
        steps = self.w @ np.expm1(tilted)
        # where most is lost, from what is left; a full mass is known to rounding only, as in the kernel
        left = self.w @ np.exp(tilted) + (self.rest + 8 * ULP if self.rest > 8 * ULP else 0.0)
        return np.asarray(self.users * np.where(steps < -0.5, np.log(left), np.log1p(np.maximum(steps, -0.5))).reshape(2, -1))

    def lines(self, way: int) -> FloatArray:
        """Logarithms of bounds of E(S + y)_+ (way 0) or E(S + y)_- (way 1) at y = 0: the slope in y is theta or -theta."""
        lines: FloatArray = self.cumulants[way] - np.log(self.tilts) - 1
        return lines


@dataclass(frozen=True, eq=False)
class _Contour:
    """E(S + y)_+ (or _-) of n - k light users for y between two ends, at one tilt."""

    light: _Light
    way: int
    ends: tuple[float, float]
    counts: NDArray[np.float64]

    @cached_property
    def sign(self) -> int:
        return 1 - 2 * self.way

    @cached_property
    def place(self) -> int:
        y = sum(self.ends) / 2
        return int(np.argmin(self.light.cumulants[self.way] + self.light.tilts * self.sign * y - 2 * np.log(self.light.tilts)))

    @cached_property
    def theta(self) -> float:
        return float(self.light.tilts[self.place])

    def alias(self, period: float, top: float) -> float:
        """Log of what the trapezoid adds, at the far end."""
        light, theta = self.light, self.theta
        lines = light.lines(self.way) + light.tilts * top
        far = np.abs(light.tilts - theta) * period
        near = far < 1e-3
        with np.errstate(over="ignore", divide="ignore"):
            bound = np.where(near, np.inf, lines - far - np.log(-np.expm1(-np.where(near, 1.0, far))))
        beyond = light.tilts > theta
        return float(np.logaddexp(bound[beyond].min(initial=np.inf), bound[~beyond].min(initial=np.inf))) + math.log(2)

    @cached_property
    def nodes(self) -> tuple[FloatArray, float, float, float, float, float]:
        light = self.light
        top = max(self.sign * y for y in self.ends)
        level = light.cumulants[self.way][self.place] + self.theta * top - math.log(self.theta)
        period = (self.ends[1] - self.ends[0]) + 12 * light.deviation + _LEFT / self.theta
        for _ in range(30):
            alias = self.alias(period, top)
            if alias < level - 30:
                break
            period *= 1.2
        step, tau = 2 * math.pi / period, _SMOOTH * light.deviation
        least = float(self.counts.min())
        most = int(min(max(4e6 / light.x.size, 2048), 4e3))
        nodes, end, value, blur = _smoothed.tilted_nodes(np.ascontiguousarray(self.sign * light.x), light.log_w, least, self.theta,
                                                       step, _REACH / tau, most)
        # over e^(K + theta y) at the far end, and nearer to it elsewhere
        alias = math.exp(alias - level) / self.theta
        return nodes, end, value / least, blur / least, step, alias

    @property
    def coarse(self) -> bool:
        """Whether so many nodes are needed that the smoothing is as wide as the bulk, or the tilt leaves next to nothing."""
        return _REACH / self.nodes[1] * self.theta > 1 or self.nodes[2] < -5

    def at(self, y: FloatArray, column: NDArray[np.intp] | slice, scale: float) -> tuple[FloatArray, FloatArray]:
        """Bounds over e^scale, an y each row, a count each column."""
        nodes, end, value, blur, step, alias = self.nodes
        counts, theta, tau = self.counts[column], self.theta, _REACH / end
        t, log_abs, phase, error = nodes.T
        part = counts / self.counts.min()
        norm = theta**2 + t**2
        log_size = np.log(np.where(t > 0, 2.0, 1.0) * step / (2 * math.pi)) + 0.5 * tau**2 * (theta**2 - t**2) + log_abs
        # next to nothing, but for its size
        kept = log_size - np.log(norm) > (log_size - np.log(norm)).max() - _NEXT_TO_NOTHING
        dropped = np.exp(log_size[~kept])
        t, log_abs, phase, error, log_size, norm = (a[kept] for a in (t, log_abs, phase, error, log_size, norm))
        size = np.exp(log_size[:, None] + log_abs[:, None] * (part - 1))
        turned = phase[:, None] * part + (tau**2 * theta * t)[:, None]
        first = size * np.exp(1j * turned)
        whole = first / ((theta + 1j * t) ** 2)[:, None]
        angle = np.multiply.outer(self.sign * y, t)
        cosine, sine = np.cos(angle), np.sin(angle)
        total = cosine @ whole.real - sine @ whole.imag
        density = cosine @ first.real - sine @ first.imag
        # what rounding moves, the nodes that were dropped, those below the band, and what lies beyond the reach
        left, beyond = math.exp(0.5 * (tau * theta) ** 2), math.exp(-0.5 * _REACH**2)
        error = error[:, None] * part + ULP * (32 + t.size) + 4 * ULP * t[:, None] * float(np.abs(y).max())
        slack = (size * error / norm[:, None]).sum(axis=0) + left * (_BAND / (2 * theta) + beyond / (end * _REACH))
        slack += float((dropped / (theta**2 + nodes[~kept, 0] ** 2)).sum())
        slack_density = (size * error).sum(axis=0) + left * end * (_BAND + beyond) / 3 + float(dropped.sum())
        exponent = value * counts + theta * self.sign * y[:, None] - scale
        blurred = theta * blur * counts + 8 * ULP * (2 + np.abs(exponent) + abs(scale) + np.abs(value * counts))
        upper = np.exp(exponent + blurred) * (total + slack)
        lower = np.exp(exponent - blurred) * (total - slack - tau**2 * (density + slack_density) - alias)
        return np.maximum(lower, 0.0), np.maximum(upper, 0.0)


class _Gains:
    """g_k(y) over e^scale, k = 0, 1, ..., at any y."""

    def __init__(self, light: _Light, most: int, scale: float, fine: float) -> None:
        self.fine = fine
        self.light, self.scale = light, scale
        self.counts = light.users - np.arange(most + 1.0)
        # where less than e^-20 of the answer is gained, and where next to nothing more than the mean
        mean, sd = light.mean * light.users, light.deviation
        self.low = float(((scale - _LEFT - light.lines(0)) / light.tilts).max())
        self.high = float(((light.lines(1) - math.log(sd) + _LEFT) / light.tilts).min())
        self.low, self.high = min(self.low, -mean - sd), max(self.high, -mean + sd)
        # next to the sum of the others the light values hardly spread
        self.crude = abs(mean) > _NARROW * sd
        if self.crude:
            self.low, self.high = -mean - _WIDE * sd, -mean + _WIDE * sd
        self.ends = [self.low]
        for way, end in ((0, -mean), (1, self.high)):
            pieces = max(1, min(_PIECES, math.ceil(abs(end - self.ends[-1]) / (6 * sd))))
            self.ends += np.linspace(self.ends[-1], end, pieces + 1)[1:].tolist()
            if way == 0:
                below = pieces
        self.contours = [_Contour(light, int(i >= below), (a, b), self.counts)
                         for i, (a, b) in enumerate(zip(self.ends, self.ends[1:]))]

    def points(self, farthest: float) -> FloatArray:
        """Where sums are kept: evenly in the bulk, and farther and farther apart beyond."""
        width = self.fine * (self.light.deviation if self.crude else min(self.light.deviation, 2 / self.contours[0].theta))
        bulk = np.linspace(self.low, self.high, max(2, math.ceil((self.high - self.low) / width)) + 1)
        span = farthest + abs(self.low) + abs(self.high)
        steps = math.ceil(math.log1p(self.fine * span / width) / self.fine) + 1
        beyond = width * np.expm1(self.fine * np.arange(1, steps + 1)) / self.fine
        return np.concatenate([self.low - beyond[::-1], bulk, self.high + beyond])

    def at(self, y: FloatArray, column: NDArray[np.intp] | slice) -> tuple[FloatArray, FloatArray]:
        counts = self.counts[column]
        light, size = self.light, math.exp(-self.scale)
        mean = y[:, None] + light.mean * counts
        blur = 8 * ULP * (light.size + np.abs(y)[:, None])
        # from below by the mean alone, from above by mean and variance (Scarf), or by an exponential
        lower = np.maximum(mean - blur, 0.0) * size
        root = np.hypot(mean, light.deviation)
        scarf = 0.5 * np.where(mean > 0, mean + root, light.deviation**2 / (root - np.minimum(mean, 0.0)))
        upper = (scarf * (1 + 8 * ULP) + blur) * size
        for way, outside in enumerate((y <= self.low, y > self.high)):
            if outside.any():
                # fewer users lose less
                most = np.maximum(light.cumulants[way], light.cumulants[way] * counts.min() / light.users)
                lines = most - np.log(light.tilts) - 1 + y[outside][:, None] * light.tilts * (1 - 2 * way)
                tail = np.exp(lines.min(axis=1) - self.scale + 1e-9)[:, None]
                if way:
                    tail = tail + np.maximum(mean[outside] + blur[outside], 0.0) * size
                upper[outside] = np.minimum(upper[outside], tail)
        if not self.crude:
            cell = np.where((y > self.low) & (y <= self.high), np.searchsorted(self.ends, y) - 1, -1)
            for i, contour in enumerate(self.contours):
                inside = cell == i
                if inside.any():
                    low, high = contour.at(y[inside], column, self.scale)
                    if contour.way:
                        low += (mean[inside] - blur[inside]) * size
                        high += (mean[inside] + blur[inside]) * size
                    lower[inside], upper[inside] = np.maximum(lower[inside], low), np.minimum(upper[inside], high)
        return lower, upper


def _rising(unit: float, farthest: float, step: float) -> FloatArray:
    """Return points that rise to either side of 0, evenly within the unit and by one ratio beyond."""
    steps = math.ceil(math.asinh(farthest / unit) / step) + 1
    rise = unit * np.sinh(step * np.arange(1, steps + 1))
    return np.concatenate([-rise[::-1], [0.0], rise])


class _NoLight:
    """The positive part of y alone: every value is a heavy one."""

    scale = 0.0

    def __init__(self, unit: float) -> None:
        self.unit = unit

    def points(self, farthest: float) -> FloatArray:
        """Where sums are kept, 0 among them."""
        return _rising(self.unit, farthest, _STEP)

    def at(self, y: FloatArray, column: NDArray[np.intp] | slice) -> tuple[FloatArray, FloatArray]:
        """Both bounds, which are the value."""
        width = len(range(*column.indices(_MOST + 1))) if isinstance(column, slice) else column.size
        value = np.repeat(np.maximum(y, 0.0)[:, None], width, axis=1)
        return value, value


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
    rare = log_mass < _RAREST
    moved, log_moved = _rounded(values[rare], log_mass[rare], upper)
    if rare.all():
        return moved, log_moved
    values, log_mass = values[~rare], log_mass[~rare]
    rise = np.argsort(values)
    x, w = values[rise], np.exp(log_mass[rise])
    size = np.abs(x)
    unit = float(size[np.searchsorted(np.cumsum(w), 0.5 * w.sum()).clip(0, x.size - 1)]) or float(size.max())
    nodes = _rising(0.1 * unit, float(size.max()), _CLOSE)
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


def _guess(light: _Light, place: FloatArray, log_chance: FloatArray) -> float:
    """Return roughly the log of the answer: the largest term of none or one heavy value."""
    lines = (light.lines(0)[:, None] + light.tilts[:, None] * place).min(axis=0) - 2
    above = place + light.mean * light.users
    return float((log_chance + np.where(above > 0, np.log(np.where(above > 0, above, 1.0)), lines)).max())


def sum_with_jumps(values: FloatArray, log_mass: FloatArray, users: float) -> Between:
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
    kept, moved = _large(x[:heavy], log_w[:heavy], users, scale - _LEFT)
    if not kept.any() or log_w[:heavy][kept].min() < _RAREST:
        return _NOTHING
    kept = np.append(kept, np.ones(x.size - heavy, dtype=bool))
    x, log_w = x[kept], log_w[kept]
    light, jumps = _parted(x, log_w, heavy - int((~kept).sum()), users)
    most, log_left = _enough(x, log_w, users, jumps[2], scale - _LEFT)
    gains = _Gains(light, most, scale, min(0.2, 0.02 / few))
    too_wide = gains.high - gains.low > 10 * _WIDE * light.deviation
    if too_wide or (not gains.crude and any(contour.coarse for contour in gains.contours)):
        return _NOTHING
    return _summed(gains, users, jumps, most, np.logaddexp(moved, log_left) - scale, moved - scale)


def _all_heavy(x: FloatArray, log_w: FloatArray, users: float) -> Between:
    """Return bounds of log E S_+ where few users have a value other than 0."""
    total = math.fsum(np.exp(log_w))
    # one gains, and nobody else has a value
    least = _log_gain(x, log_w, users) + (users - 1) * math.log1p(-total)
    if not -600 < least < 600:
        return _NOTHING
    kept, moved = _large(x, log_w, users, least - _LEFT)
    x, log_w = x[kept], log_w[kept]
    if log_w.min() < _RAREST:
        return _NOTHING
    # the median size
    unit = float(np.abs(x[np.searchsorted(np.cumsum(np.exp(log_w)), total / 2).clip(0, x.size - 1)]))
    if not _MOST * float(np.abs(x).max()) / unit < math.inf:
        return _NOTHING
    jumps = _parted(x, log_w, x.size, users)[1]
    most, log_left = _enough(x, log_w, users, jumps[2], least - _LEFT)
    return _summed(_NoLight(unit), users, jumps, most, np.logaddexp(moved, log_left), moved)


def _parted(x: FloatArray, log_w: FloatArray, heavy: int, users: float) -> tuple[_Light, _Heavy]:
    """Return the law given that a value is light, and the heavy values, the first ones, with their law and their chance."""
    chance = math.fsum(np.exp(log_w[:heavy]))
    rise = np.argsort(x[heavy:])
    light = _Light(x[heavy:][rise], log_w[heavy:][rise] - math.log1p(-chance), users)
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


def _summed(gains: _Gains | _NoLight, users: float, jumps: _Heavy, most: int, log_more: float, log_less: float) -> Between:
    """Return bounds from up to `most` heavy values; what the rest adds and takes away at most is known by its logarithm."""
    jump, part, chance = jumps
    log_none = math.log1p(-chance)
    nodes = gains.points((most + 1) * float(np.abs(jump).max()))
    lower, upper = (float(side[0, 0]) * math.exp(users * log_none) for side in gains.at(np.zeros(1), slice(0, 1)))
    above = gains.at(nodes, slice(min(2, most), None))[1]
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
    return Between(math.log(lower) + gains.scale if lower > 0 else -math.inf, math.log(upper) + gains.scale)
