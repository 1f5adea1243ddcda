"""Expected positive part g(y) = E(y + S)_+ of a sum S = X_1 + ... + X_m of light values, at many y and for m = n, n - 1, ... users.

Light values are those that `heavy_tails` does not enumerate, and y stands for the sum of the enumerated heavy values.
The method is Fourier inversion along a tilted contour (kernel ``_smoothed``): the integrand is evaluated once at the nodes of a
trapezoidal rule, and serves all y of an interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import LARGEST_EXPONENT, NEGLIGIBLE_ROUGHLY, SAFE_EXPONENT
from shufflebounds._base.quadrature import capped_exp
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._core import _smoothed

__all__ = ["LEFT", "WIDE", "Gains", "Light"]

_REACH = 8.5
"""The frequency at which the integral ends, in units of 1/(standard deviation of the Gaussian smoothing); see ``_smoothed``.
Raised: more nodes. Lowered: a larger truncation error."""

LEFT = 20.0
"""Log of the smallest permitted ratio of the result to a truncated part. Raised: longer run time. Lowered: a larger gap."""

WIDE = 30.0
"""If |mean| of the sum of light values exceeds 10 * WIDE standard deviations, bounds by mean and variance are tight enough.

The grid of y is then equally spaced within WIDE standard deviations of the mean. `heavy_tails` declines distributions for which the
equally spaced part of the grid is wider than 10 * WIDE standard deviations.
"""

_BAND = math.exp(-40.0)
"""Fraction of the largest integrand below which the kernel drops nodes of the quadrature. Raised: a larger error. Lowered: longer
run time."""

_SMOOTHING = 2e-4
"""Standard deviation of the Gaussian smoothing, in standard deviations of the sum. Raised: a larger gap. Lowered: more nodes."""

_BESIDE, _LONGER, _MOST_LONGER = 12.0, 1.2, 30
"""The first period of the trapezoidal rule is longer than the interval of y by _BESIDE standard deviations. It is multiplied by
_LONGER until the aliasing error is negligible, at most _MOST_LONGER times, a factor of 237. A period that is still too short leaves
an error that the bounds include. Raised: more nodes. Lowered: more values of the aliasing error."""

_FEWEST_NODES, _MOST_NODES, _MOST_PRODUCTS = 2048, 4000, 4e6
"""Limits of the number of nodes: between the first two, and such that nodes times atoms are at most the third, about 10 ms. If the
integral ends before its truncation error is negligible, the bounds include this error. Raised: longer run time."""


@dataclass(frozen=True, eq=False)
class Light:
    """Distribution of a light value: atoms `x` with log masses `log_w`, which sum to 1; `users` is the number n."""

    x: FloatArray
    log_w: FloatArray
    users: float

    @cached_property
    def w(self) -> FloatArray:
        """The probabilities of the values `x`."""
        return np.asarray(np.exp(self.log_w))

    @cached_property
    def mean(self) -> float:
        """The mean of a value."""
        return float(self.w @ self.x)

    @cached_property
    def deviation(self) -> float:
        """Standard deviation of the sum of n users, or 64 ulp of n * max |X| if this is larger.

        A larger value is valid in every bound. The floor of 64 ulp keeps the result positive if all values of X are equal doubles,
        as for densities at large eps, where every X rounds to -e^eps.
        """
        spread = math.sqrt(self.users * float(self.w @ (self.x - self.mean) ** 2))
        # The floor of 64 ulp also makes neighbouring points of the grid of y different doubles.
        return max(spread, 64 * ULP * self.users * float(np.abs(self.x).max()))

    @cached_property
    def size(self) -> float:
        """Bound, in ULP, of the error of the mean of the sum of n users, if every x and log w has an error of at most one ulp.

        An error of one ulp of log w is a relative error |log w| ULP of the mass w; 20 ULP cover the error of x and of the
        operations.
        """
        return self.users * float(self.w @ (np.abs(self.x) * (20 - self.log_w)))

    @cached_property
    def tilts(self) -> FloatArray:
        """Grid of exponential tilts theta > 0, increasing by a constant ratio."""
        most = SAFE_EXPONENT / float(np.abs(self.x).max())
        low = min(0.05 / self.deviation, most / 1000)
        return np.asarray(np.exp(np.linspace(math.log(low), math.log(most), max(8, int(8 * math.log(most / low))))))

    @cached_property
    def cumulants(self) -> FloatArray:
        """The cumulant generating function K of the sum of n users, at theta (first row) and -theta (second row) of the tilts."""
        tilted = self.x[:, None] * np.concatenate([self.tilts, -self.tilts])
        steps = self.w @ np.expm1(tilted)
        # If E e^(theta X) < 1/2, its log is computed from the sum itself instead of by log1p.
        logs = np.where(steps < -0.5, np.log(self.w @ np.exp(tilted)), np.log1p(np.maximum(steps, -0.5)))
        return np.asarray(self.users * logs.reshape(2, -1))

    @property
    def never_positive(self) -> bool:
        """Whether no value is above 0, so that E(S + y)_+ is 0 for a sum S of values and y <= 0."""
        return float(self.x.max()) <= 0

    def lines(self, way: int) -> FloatArray:
        """Return the logs of Chernoff's bounds, for every theta, of E(S + y)_+ (`way` 0) or E(S + y)_- (`way` 1) at y = 0.

        The bound for another y is larger by theta y (way 0) or -theta y (way 1).
        """
        lines: FloatArray = self.cumulants[way] - np.log(self.tilts) - 1
        return lines


@dataclass(frozen=True, eq=False)
class _Contour:
    """The Fourier integral of E(S + y)_+ (way 0) or E(S + y)_- (way 1) at one tilt, for y in the interval `ends`.

    S is the sum of the light values of one of the numbers of users in `counts`.
    """

    light: Light
    way: int
    ends: tuple[float, float]
    counts: NDArray[np.float64]

    @cached_property
    def sign(self) -> int:
        """The sign of S + y that contributes to the expectation: 1 for E(S + y)_+ (way 0), -1 for E(S + y)_- (way 1)."""
        return 1 - 2 * self.way

    @cached_property
    def place(self) -> int:
        """Index in `light.tilts` of this contour's tilt, which is near the saddle point for the middle of the interval."""
        y = sum(self.ends) / 2
        return int(np.argmin(self.light.cumulants[self.way] + self.light.tilts * self.sign * y - 2 * np.log(self.light.tilts)))

    @cached_property
    def theta(self) -> float:
        """The exponential tilt with the index `place`."""
        return float(self.light.tilts[self.place])

    def alias(self, period: float) -> FloatArray:
        """Return the log of a bound of the trapezoidal rule's aliasing error with this period, for each number m of users.

        The bound holds for all y of the interval and is relative to e^(m K(theta) + theta y), where K is the cumulant generating
        function of one user. The error comes from copies of the distribution, shifted up and down by multiples of the period. Every
        tilt above theta gives a bound for the copies on one side, every tilt below theta a bound for those on the other side. A
        bound relative to e^(theta y) is largest at one end of the interval of sign * y: the upper end for tilts above theta, the
        lower end for tilts below it.
        """
        light, theta, cumulants = self.light, self.theta, self.light.cumulants[self.way]
        beyond = light.tilts > theta
        low, top = sorted(self.sign * y for y in self.ends)
        far = np.abs(light.tilts - theta) * period
        near = far < 1e-3
        with np.errstate(over="ignore", divide="ignore"):
            ends = (light.tilts - theta) * np.where(beyond, top, low) - np.log(light.tilts) - 1
            ends -= far + np.log(-np.expm1(-np.where(near, 1.0, far)))
            bound = np.where(near, np.inf, (self.counts / light.users)[:, None] * (cumulants - cumulants[self.place]) + ends)
        larger, smaller = (bound[:, side].min(axis=1, initial=np.inf) for side in (beyond, ~beyond))
        return np.asarray(np.logaddexp(larger, smaller) + math.log(2))

    @cached_property
    def nodes(self) -> tuple[FloatArray, float, float, float, float, FloatArray]:
        """The nodes of the trapezoidal rule and its constants, as a tuple.

        The first entry has the columns that `tilted_nodes` returns. The other entries are the largest frequency of the integral,
        the cumulant generating function K(theta) of one user, its rounding error per unit of theta, the distance between
        neighbouring nodes, and for each number m of users the aliasing error relative to e^(m K(theta) + theta y).
        """
        light = self.light
        period = (self.ends[1] - self.ends[0]) + _BESIDE * light.deviation + LEFT / self.theta
        for _ in range(_MOST_LONGER):
            alias = self.alias(period)
            if alias.max() < -math.log(self.theta) - NEGLIGIBLE_ROUGHLY:
                break
            period *= _LONGER
        step, tau = 2 * math.pi / period, _SMOOTHING * light.deviation
        fewest = float(self.counts.min())
        most = int(min(max(_MOST_PRODUCTS / light.x.size, _FEWEST_NODES), _MOST_NODES))
        losses = np.ascontiguousarray(self.sign * light.x)
        nodes, end, value, value_error = _smoothed.tilted_nodes(
            losses, light.log_w, fewest, self.theta, step, _REACH / tau, most
        )
        return nodes, end, value / fewest, value_error / fewest, step, np.exp(np.minimum(alias, LARGEST_EXPONENT))

    @property
    def coarse(self) -> bool:
        """Whether the contour is too inaccurate: the smoothing is wider than 1/theta, or E e^(theta X) < e^-5."""
        return _REACH / self.nodes[1] * self.theta > 1 or self.nodes[2] < -5

    def at(self, y: FloatArray, column: NDArray[np.intp] | slice, scale: float) -> IntervalArray:
        """Return bounds of E(S + y)_+ (way 0) or E(S + y)_- (way 1), divided by e^scale.

        There is a row for each y and a column for each number of users.
        """
        nodes, end, value, value_error, step, alias = self.nodes
        counts, theta, tau = self.counts[column], self.theta, _REACH / end
        t, log_abs, phase, error = nodes.T
        part = counts / self.counts.min()
        norm = theta**2 + t**2
        log_size = np.log(np.where(t > 0, 2.0, 1.0) * step / (2 * math.pi)) + 0.5 * tau**2 * (theta**2 - t**2) + log_abs
        # Nodes whose contribution is below e^-NEGLIGIBLE_ROUGHLY of the largest are dropped; the sum of their absolute values is
        # added to the error.
        kept = log_size - np.log(norm) > (log_size - np.log(norm)).max() - NEGLIGIBLE_ROUGHLY
        dropped = np.exp(log_size[~kept])
        t, log_abs, phase, error, log_size, norm = (a[kept] for a in (t, log_abs, phase, error, log_size, norm))
        size = np.exp(log_size[:, None] + log_abs[:, None] * (part - 1))
        first = size * np.exp(1j * (phase[:, None] * part + (tau**2 * theta * t)[:, None]))
        whole = first / ((theta + 1j * t) ** 2)[:, None]
        both = np.concatenate([whole, first], axis=1).T
        total, density = np.hsplit(_smoothed.turned_sums(self.sign * y, t, np.array([both.real, both.imag])), 2)
        # The error has four parts: rounding, the nodes dropped here, the nodes dropped by the kernel (_BAND), and the truncation of
        # the integral (_REACH).
        left, beyond = capped_exp(0.5 * (tau * theta) ** 2), math.exp(-0.5 * _REACH**2)
        error = error[:, None] * part + ULP * (32 + t.size) + 4 * ULP * t[:, None] * float(np.abs(y).max())
        slack = (size * error / norm[:, None]).sum(axis=0) + left * (_BAND / (2 * theta) + beyond / (end * _REACH))
        slack += float((dropped / (theta**2 + nodes[~kept, 0] ** 2)).sum())
        slack_density = (size * error).sum(axis=0) + left * end * (_BAND + beyond) / 3 + float(dropped.sum())
        exponent = value * counts + theta * self.sign * y[:, None] - scale
        exponent_error = theta * value_error * counts + 8 * ULP * (2 + np.abs(exponent) + abs(scale) + np.abs(value * counts))
        upper = np.exp(exponent + exponent_error) * (total + slack)
        lower = np.exp(exponent - exponent_error) * (total - slack - tau**2 * (density + slack_density) - alias[column])
        return IntervalArray(np.maximum(lower, 0.0), np.maximum(upper, 0.0))


class Gains:
    """Bounds of g_k(y) / e^scale at any y, for k = 0, 1, ..., most, with g_k(y) = E(y + light values of n - k users)_+."""

    def __init__(self, light: Light, most: int, scale: float, fine: float) -> None:
        self.fine = fine
        self.light, self.scale = light, scale
        self.counts = light.users - np.arange(most + 1.0)
        # For y below `low`, g(y) = E(y + S)_+ is at most e^-20 of e^scale, the size of the result. For y above `high`, g(y) is E(y
        # + S) up to a relative error of e^-20.
        mean, sd = light.mean * light.users, light.deviation
        self.low = float(((scale - LEFT - light.lines(0)) / light.tilts).max())
        self.high = float(((light.lines(1) - math.log(sd) + LEFT) / light.tilts).min())
        self.low, self.high = min(self.low, -mean - sd), max(self.high, -mean + sd)
        # If the standard deviation of the sum S of light values is small beside its mean, bounds by mean and variance are close
        # enough.
        self.crude = abs(mean) > 10 * WIDE * sd
        if self.crude:
            self.low, self.high = -mean - WIDE * sd, -mean + WIDE * sd
        self.ends = [self.low]
        for way, end in ((0, -mean), (1, self.high)):
            # The range of y on either side of the mean is divided into at most six intervals, each with its own tilt.
            pieces = max(1, min(6, math.ceil(abs(end - self.ends[-1]) / (6 * sd))))
            self.ends += np.linspace(self.ends[-1], end, pieces + 1)[1:].tolist()
            if way == 0:
                below = pieces
        self.contours = [_Contour(light, int(i >= below), (a, b), self.counts)
                         for i, (a, b) in enumerate(zip(self.ends, self.ends[1:]))]

    def points(self, farthest: float) -> FloatArray:
        """Return the grid of sums of heavy values: equally spaced from `low` to `high`, with steps growing geometrically beyond."""
        width = self.fine * (self.light.deviation if self.crude else min(self.light.deviation, 2 / self.contours[0].theta))
        bulk = np.linspace(self.low, self.high, max(2, math.ceil((self.high - self.low) / width)) + 1)
        span = farthest + abs(self.low) + abs(self.high)
        steps = math.ceil(math.log1p(self.fine * span / width) / self.fine) + 1
        beyond = width * np.expm1(self.fine * np.arange(1, steps + 1)) / self.fine
        return np.concatenate([self.low - beyond[::-1], bulk, self.high + beyond])

    @np.errstate(over="ignore")
    def at(self, y: FloatArray, column: NDArray[np.intp] | slice) -> IntervalArray:
        """Return bounds of g_k(y) / e^scale, with a row for each y and a column for each selected k."""
        # Bounds above the largest double are infinite, and the caller then uses none of them.
        counts = self.counts[column]
        light, size = self.light, math.exp(-self.scale)
        mean = y[:, None] + light.mean * counts
        value_error = 8 * ULP * (light.size + np.abs(y)[:, None])
        # The lower bound of E(y + S)_+ is the positive part of the mean (Jensen); the upper bound is Scarf's, by mean and variance,
        # or Chernoff's.
        lower = np.maximum(mean - value_error, 0.0) * size
        root = np.hypot(mean, light.deviation)
        scarf = 0.5 * np.where(mean > 0, mean + root, light.deviation**2 / (root - np.minimum(mean, 0.0)))
        upper = (scarf * (1 + 8 * ULP) + value_error) * size
        for way, outside in enumerate((y <= self.low, y > self.high)):
            if outside.any():
                # `cumulants` has K of n users; for m users the cumulant is K m/n. If K < 0, the largest cumulant is that of the
                # smallest m, which is used for all m.
                most = np.maximum(light.cumulants[way], light.cumulants[way] * counts.min() / light.users)
                lines = most - np.log(light.tilts) - 1 + y[outside][:, None] * light.tilts * (1 - 2 * way)
                tail = np.exp(lines.min(axis=1) - self.scale + 1e-9)[:, None]
                if way:
                    tail = tail + np.maximum(mean[outside] + value_error[outside], 0.0) * size
                upper[outside] = np.minimum(upper[outside], tail)
        if not self.crude:
            cell = np.where((y > self.low) & (y <= self.high), np.searchsorted(self.ends, y) - 1, -1)
            for i, contour in enumerate(self.contours):
                inside = cell == i
                if inside.any():
                    low, high = contour.at(y[inside], column, self.scale)
                    if contour.way:
                        low += (mean[inside] - value_error[inside]) * size
                        high += (mean[inside] + value_error[inside]) * size
                    lower[inside], upper[inside] = np.maximum(lower[inside], low), np.minimum(upper[inside], high)
        if light.never_positive:
            upper[y <= 0] = 0.0
        return IntervalArray(lower, upper)
