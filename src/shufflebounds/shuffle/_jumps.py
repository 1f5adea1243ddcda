r"""E(X_1 + ... + X_n)_+ of laws with heavy tails on both sides, where sums of a few large values decide.

With K users above a threshold in size, K binomial, S is a sum of n - K light values and of K heavy ones:

    E S_+ = sum_k Pr[K = k] E g_k(Y_k),    g_k(y) = E(y + light values of n - k users)_+,    Y_k a sum of k heavy values.

g_k by the contour of the kernel ``_excess``, shifted to every y at once; Y_1 as it is, Y_2 and so on spread to points or merged
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
from shufflebounds._core import _excess, _jumps
from shufflebounds._types import UNIT, Between, FloatArray

__all__ = ["sum_with_jumps"]


_MOST = 60
"""Never more of them."""

_REACH = 8.5
"""The smoothing ends at so many of its deviations (``_excess``)."""

_LEFT = 20.0
"""What is left out is e^-20 of the answer."""

_SMOOTH = 2e-4
"""Deviation of the smoothing in those of the bulk."""

_PIECES = 6
"""No more tilts than that on either side of the mean."""

_NARROW = 300.0
"""Where the mean of the light values is so many of their deviations off, it and their variance tell enough."""

_NEXT_TO_NOTHING = 30.0

_BAND = math.exp(-40.0)


@dataclass(frozen=True, eq=False)
class _Light:
    """The light values of n users and fewer."""

    x: FloatArray
    log_w: FloatArray
    users: float

    @cached_property
    def mean(self) -> float:
        return float(np.exp(self.log_w) @ self.x)

    @cached_property
    def deviation(self) -> float:
        """Of n users."""
        w = np.exp(self.log_w)
        rest = max(0.0, 1.0 - math.fsum(w))
        return math.sqrt(self.users * float(w @ (self.x - self.mean) ** 2 + rest * self.mean**2))

    @cached_property
    def size(self) -> float:
        """What an ulp of every value and mass moves the sum by, in ulps."""
        return self.users * float(np.exp(self.log_w) @ (np.abs(self.x) * (20 - self.log_w)))

    @cached_property
    def tilts(self) -> FloatArray:
        most = 600 / float(np.abs(self.x).max())
        low = min(0.05 / self.deviation, most / 4)
        return np.asarray(np.exp(np.linspace(math.log(low), math.log(most), max(8, int(8 * math.log(most / low))))))

    @cached_property
    def cumulants(self) -> FloatArray:
        """K(theta) of n users at the tilts, and at the tilts reversed."""
        steps: FloatArray = np.exp(self.log_w) @ np.expm1(self.x[:, None] * np.concatenate([self.tilts, -self.tilts]))
        return np.asarray(self.users * np.log1p(steps).reshape(2, -1))

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
        nodes, end, value, blur = _excess.tilted_nodes(np.ascontiguousarray(self.sign * light.x), light.log_w, least, self.theta,
                                                       step, _REACH / tau, most)
        # over e^(K + theta y) at the far end, and nearer to it elsewhere
        alias = math.exp(alias - level) / self.theta
        return nodes, end, value / least, blur / least, step, alias

    @property
    def coarse(self) -> bool:
        """Whether so many nodes are needed that the smoothing is as wide as the bulk."""
        return _REACH / self.nodes[1] * self.theta > 1

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
        error = error[:, None] * part + UNIT * (32 + t.size) + 4 * UNIT * t[:, None] * float(np.abs(y).max())
        slack = (size * error / norm[:, None]).sum(axis=0) + left * (_BAND / (2 * theta) + beyond / (end * _REACH))
        slack += float((dropped / (theta**2 + nodes[~kept, 0] ** 2)).sum())
        slack_density = (size * error).sum(axis=0) + left * end * (_BAND + beyond) / 3 + float(dropped.sum())
        exponent = value * counts + theta * self.sign * y[:, None] - scale
        blurred = theta * blur * counts + 8 * UNIT * (2 + np.abs(exponent) + abs(scale) + np.abs(value * counts))
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
        self.ends = [self.low]
        for way, end in ((0, -mean), (1, self.high)):
            pieces = max(1, min(_PIECES, math.ceil(abs(end - self.ends[-1]) / (6 * sd))))
            self.ends += np.linspace(self.ends[-1], end, pieces + 1)[1:].tolist()
            if way == 0:
                below = pieces
        # next to the sum of the others the light values hardly spread
        self.crude = abs(mean) > _NARROW * sd
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
        blur = 8 * UNIT * (light.size + np.abs(y)[:, None])
        # from below by the mean alone, from above by mean and variance (Scarf), or by an exponential
        lower = np.maximum(mean - blur, 0.0) * size
        root = np.hypot(mean, light.deviation)
        scarf = 0.5 * np.where(mean > 0, mean + root, light.deviation**2 / (root - np.minimum(mean, 0.0)))
        upper = (scarf * (1 + 8 * UNIT) + blur) * size
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


def _guess(light: _Light, place: FloatArray, log_chance: FloatArray) -> float:
    """Return roughly the log of the answer: the largest term of none or one heavy value."""
    lines = (light.lines(0)[:, None] + light.tilts[:, None] * place).min(axis=0) - 2
    above = place + light.mean * light.users
    with np.errstate(divide="ignore"):
        return float((log_chance + np.maximum(lines * (above <= 0) + np.where(above > 0, -np.inf, 0.0),
                                              np.log(np.maximum(above, 0.0)))).max())


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
    nothing = Between(-math.inf, math.inf)
    order = np.argsort(-np.abs(values), kind="stable")
    x, log_w = values[order], log_mass[order]
    count = np.cumsum(np.exp(log_w)) * users
    # fewer leave less to the points, more leave a narrower law to the contour
    few = min(0.25, max(0.02, 8 / math.sqrt(users)))
    heavy = int(np.searchsorted(count, few))
    if heavy in (0, x.size) or not np.abs(x[heavy:]).max() > 0:
        return nothing
    chance = math.fsum(np.exp(log_w[:heavy]))
    rise = np.argsort(x[heavy:])
    light = _Light(x[heavy:][rise], log_w[heavy:][rise] - math.log1p(-chance), users)
    rise = np.argsort(x[:heavy])
    jump, part = x[:heavy][rise], np.exp(log_w[:heavy][rise]) / chance
    log_none = math.log1p(-chance)
    log_jump = np.append(log_w[:heavy][rise] + math.log(users) + (users - 1) * log_none, users * log_none)
    scale = _guess(light, np.append(jump, 0.0), log_jump)
    if not -600 < scale < 600:
        return nothing
    # all that is left out: n E X_+ Pr[Bin(n - 1, p) >= k] <= n E X_+ C(n - 1, k) p^k
    gain = math.log(users) + float(np.logaddexp.reduce(log_mass[values > 0] + np.log(values[values > 0])))
    k, log_left = 0, gain - scale
    while (log_left > -_LEFT or k < 3) and k < min(_MOST, users - 2):
        k += 1
        log_left += math.log((users - k) / k) + math.log(chance)
    gains = _Gains(light, k, scale, min(0.2, 0.02 / few))
    if not gains.crude and any(contour.coarse for contour in gains.contours):
        return nothing
    nodes = gains.points((k + 1) * float(np.abs(jump).max()))
    return _summed(gains, nodes, (jump, part), (chance, log_none), log_left, k)


def _summed(gains: _Gains, nodes: FloatArray, jumps: tuple[FloatArray, FloatArray], chances: tuple[float, float], log_left: float,
            most: int) -> Between:
    jump, part = jumps
    chance, log_none = chances
    users = gains.light.users
    lower, upper = (float(side[0, 0]) * math.exp(users * log_none) for side in gains.at(np.zeros(1), slice(0, 1)))
    above = gains.at(nodes, slice(min(2, most), None))[1]
    spread, merged, log_chance = part, part, users * log_none
    place, where = jump, jump
    for k in range(1, most + 1):
        log_chance += math.log((users - k + 1) / k) + math.log(chance) - log_none
        weight = math.exp(log_chance)
        if k > 1:
            spread, place = _jumps.spread_sum(place, spread, jump, part, nodes), nodes
            where, merged = _jumps.merged_sum(where, merged, jump, part, nodes)
            upper += weight * float(spread @ above[:, k - min(2, most)])
        low, high = gains.at(where, slice(k, k + 1))
        lower += weight * float(merged @ low[:, 0])
        if k == 1:
            upper += weight * float(part @ high[:, 0])
    slack = 1e-11 + UNIT * (8 * users * abs(log_none) + 4 * nodes.size)
    upper = upper * (1 + slack) + math.exp(log_left) + 1e-280
    lower *= 1 - slack
    return Between(math.log(lower) + gains.scale if lower > 0 else -math.inf, math.log(upper) + gains.scale)
