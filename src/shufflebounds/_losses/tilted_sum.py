r"""The sum of independent numbers on a common grid, by FFT of exponentially tilted masses, with bounds of all errors.

For S = X_1 + X_2 + ... a transform yields bounds of

.. math:: \mathrm{E}\, \varphi(S - K), \qquad \varphi(x) = \frac{(1 - e^{-c x})_+}{c},

The levels K are real numbers. With the discount c = 1 this expectation is the hockey-stick divergence of privacy losses. With c = 0
it is the stop-loss transform E (S - K)_+.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shufflebounds._base.caches import cached_property, kept
from shufflebounds._base.limits import (
    CACHED_ANSWERS,
    CACHED_BYTES,
    LARGE_TABLE_SIZE,
    NEGLIGIBLE,
    NEGLIGIBLE_ROUGHLY,
    TABLE_SIZE,
)
from shufflebounds._base.scipy_functions import fft
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core import _losses
from shufflebounds._losses.atoms import TooLongError
from shufflebounds._losses.window import Tails

__all__ = ["LEAST_TILT", "Summand", "TiltedSum"]

POINT_BYTES = 72
"""Bytes of memory per point of a transform (values, spectrum, its powers, logs of absolute values), for an error message."""

LEAST_TILT = 0.25
"""Smallest exponential tilt theta if the discount c is 0, in units of 1/standard deviation of the sum.

For c = 0 the weights x e^(-theta x) of the masses are bounded only if theta > 0. Lowered: errors of the masses have larger weights.
Raised: the tilted mean is farther from the mean of the sum.
"""


FAINT = -110.0
"""Log of the smallest tilted mass of a summand that is kept, relative to the largest; the total of the others is added to the mass
outside of the range. Raised: a larger gap at small delta. Lowered: longer arrays, for masses below the rounding errors."""

SHALLOWEST = 20.0
"""A range may leave a tilted mass of at most e^-SHALLOWEST on either side; otherwise the transform is too long. Raised: errors for
more compositions. Lowered: bounds with a larger gap in place of these errors."""


_FARTHER = 1e-3
"""A level may be read from a transform whose rounding error moves it by this fraction more than that of a closer transform. Raised:
a larger gap for sums of 1e9 numbers or more. Lowered: more transforms, of 0.3 s each for such sums."""


class Summand(NamedTuple):
    """`times` independent summands with one distribution.

    `log_mass` has the logs of the masses. `place` has the values, in grid steps, relative to a point near the heaviest mass.
    """

    log_mass: FloatArray
    place: FloatArray
    times: int


class _Points(NamedTuple):
    """The grid points of a truncation range: `size` points that begin at `origin`. Those before index `first` are not stored."""

    origin: float
    size: int
    first: int


@dataclass(frozen=True, eq=False)
class _Transform:
    """Sums of tilted masses at the grid points of a truncation range; bounds for the levels K in an interval follow from them.

    `tail` and `excess` are the arrays of the kernel `tilted_excess` at the stored points. `error` is a bound of the error of each
    tilted mass in the range, and `outside` is a bound of the tilted mass outside the range.
    """

    theta: float
    cumulant: float
    points: _Points
    tail: FloatArray
    excess: FloatArray
    error: float
    outside: float


class TiltedSum:
    r"""Upper or lower bounds of E phi(S - K) for a sum S of independent numbers on a grid, where phi(x) = (1 - e^(-c x))_+/c.

    A bound at a level K uses a transform of the tilted distribution. The mean of this distribution is the middle of an interval
    around K. The interval depends on K alone, so a bound does not depend on the levels evaluated before, or on other levels of the
    same array.

    Parameters
    ----------
    summands : sequence of Summand
        The distributions of the numbers.
    origin : float
        The value of the sum if every summand has the place 0.
    step : float
        Distance of the grid points.
    discount : float
        The discount c >= 0.
    near : float
        A transform is used for levels within `near` standard deviations of the tilted mean. The rounding error grows as
        e^(near^2/2); the number of transforms falls as 1/near.
    served : float, optional
        Replaces `near` in wide intervals. It is smaller than `near`, but at least 0.3 `near`, half of the width of the narrowest
        interval.
    widest : int, optional
        The widest intervals of levels are 4^widest * 0.6 * `near` standard deviations wide. Tilted sums of heavy-tailed numbers
        have larger standard deviations than the sum itself, so that one transform can be used for a wider interval.
    upper : bool
        Whether the bounds are upper or lower bounds.
    log_rest : float
        Log probability that the sum S is infinite; phi(S - K) is then 1/c.
    slack : float
        Bound of the relative error of a product of masses that has one factor for each number.
    level_error : float
        Bound of the error of `origin` and of the grid points, by which levels are moved.
    """

    def __init__(
        self, summands: Sequence[Summand], origin: float, step: float, *, discount: float, near: float, widest: int = 0,
        served: float | None = None, upper: bool, log_rest: float = -math.inf, slack: float = 0.0, level_error: float = 0.0,
    ) -> None:
        self._summands, self.origin, self.step, self._discount, self._near = summands, origin, step, discount, near
        self._widest, self._served = widest, near if served is None else served
        self.upper, self.log_rest, self.slack, self.level_error = upper, log_rest, slack, level_error

    def moments(self, theta: float) -> tuple[float, float, float]:
        """Return log E e^(theta (S - origin)) of the sum S, and the mean and the variance of S after tilting by theta."""
        cumulant = mean = var = 0.0
        for logs, place, r in self._summands:
            log_total, m, v = _losses.tilted_moments(logs, place, theta * self.step)
            cumulant += r * log_total
            mean += r * self.step * m
            var += r * self.step**2 * v
        return cumulant, self.origin + mean, var

    @property
    def finite(self) -> bool:
        """Whether every summand has finite values; only then does the sum have moments."""
        return all(logs.size for logs, _, _ in self._summands)

    @cached_property
    def least_tilt(self) -> float:
        """The smallest tilt; it is also used for levels below the mean."""
        if self._discount > 0:
            return 0.0
        whole, mean, var = self.moments(0.0)
        theta = LEAST_TILT / math.sqrt(max(var, 0.25 * self.step**2))
        # If a few values are far above the mean, they may have most of the tilted mass even at this small tilt. Then
        # E e^(theta (S - mean)) exceeds e, and the tilt is halved.
        while self.moments(theta)[0] - whole - theta * (mean - self.origin) > 1:
            theta /= 2
        return theta

    @cached_property
    def _least_moments(self) -> tuple[float, float, float]:
        return self.moments(self.least_tilt)

    @cached_property
    def _width(self) -> float:
        """The largest width of an interval of levels for which one transform is used."""
        return 4.0**self._widest * 0.6 * self._near * math.sqrt(self._least_moments[2])

    def tilt(self, level: float) -> float:
        """Return an exponential tilt theta >= `least_tilt` at which the mean of the tilted sum is near the level.

        If no permitted theta moves the tilted mean to the level, the result is the end of the permitted range.
        """
        smallest = self.least_tilt
        low, high = smallest, 60 / self.step
        _, mean, var = self._least_moments
        if mean >= level:
            return smallest
        theta = min(smallest + (level - mean) / var, high) if var > 0 else high
        for _ in range(60):
            _, mean, var = self.moments(theta)
            if abs(mean - level) <= 0.02 * math.sqrt(var):
                break
            low, high = (theta, high) if mean < level else (low, theta)
            theta = theta + (level - mean) / var if var > 0 else math.inf
            if not low < theta < high:
                theta = (low + high) / 2
            if high - low <= 1e-3 * high:
                break
        return theta

    def center(self, level: float) -> float:
        """Return the middle of an interval that contains the level and has a width of at most 0.6 * `near` standard deviations."""
        return float(self._centers(np.array([level]), self._width / 4.0**self._widest)[0])

    def _centers(self, levels: FloatArray, width: float) -> FloatArray:
        """Return for each level the middle of an interval that contains the level and does not depend on the other levels.

        The interval first has the given width. If the transform for its middle is not accurate at the level, the width is divided
        by four, at most `_widest` + 11 times. If no width suffices, the middle is the level itself.
        """
        mean = self._least_moments[1]
        out, left = levels.copy(), np.arange(levels.size)
        for _ in range(self._widest + 12):
            left = left[width > 4 * ULP * np.abs(levels[left])]
            if not left.size:
                break
            at = levels[left]
            middles = mean + np.maximum(0.0, np.ceil((at - mean) / width - 0.5)) * width
            reached = np.zeros(left.size, dtype=np.bool_)
            for center in set(middles.tolist()):
                _, low, high, _ = self._interval(center)
                reached |= (middles == center) & (low <= at) & (at <= high)
            out[left[reached]] = middles[reached]
            left = left[~reached]
            width /= 4
        return out

    def _shared_centers(self, levels: FloatArray) -> FloatArray:
        """Return the middles of :meth:`_centers`, or a smaller middle if its transform is also accurate at the level and not
        longer.

        The tilted sum of heavy-tailed numbers has a large standard deviation at every tilt that moves the mean. One transform may
        then suffice for levels for which :meth:`_centers` chooses several.
        """
        out = self._centers(levels, self._width)
        for part in range(1, self._widest):
            middle = self._least_moments[1] + self._width / 4.0**part
            _, low, high, deviation = self._interval(middle)
            for center in set(out[(out > middle) & (low <= levels) & (levels <= high)].tolist()):
                if deviation <= self._interval(center)[3]:
                    out[(out == center) & (low <= levels) & (levels <= high)] = middle
        return out

    @kept(CACHED_ANSWERS)
    def _interval(self, center: float) -> tuple[float, float, float, float]:
        """Return (theta, low, high, deviation) for the interval of levels around `center`.

        The transform with the exponential tilt theta is accurate for the levels K in low..high. The last number is the standard
        deviation of the tilted sum.
        """
        theta = self.tilt(center)
        # A level is at most half of the largest width away from the middle of its interval; the factor 1 + 1e-9 covers rounding.
        deviation = max(math.sqrt(self.moments(theta)[2]), 0.5 * self.step)
        far = min(self._served * deviation, 0.5 * self._width * (1 + 1e-9))
        return theta, -math.inf if theta == self.least_tilt else center - far, center + far, deviation

    def points(self, level: float) -> int:
        """Return the number of points of the transform that is used for the given level."""
        return self._transform(float(self._shared_centers(np.array([level]))[0])).points.size

    def log_values(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds of log E phi(S - K) (see the class) at the levels K, and their slopes in K with the sign changed."""
        rest = self.log_rest + (self.slack if self.upper else -self.slack)
        values, slopes = np.full(levels.size, rest), np.zeros(levels.size)
        side = -1 if self.upper else 1
        at = levels + side * (self.level_error + 4 * ULP * np.abs(levels))
        inside = np.flatnonzero(at < self.last)
        if inside.size:
            values[inside], slopes[inside] = self._closest(at[inside])
        return values, slopes

    @cached_property
    def last(self) -> float:
        """The largest finite value of the sum, or -inf if there is none."""
        if not self.finite:
            return -math.inf
        return self.origin + self.step * sum(r * float(place[-1]) for _, place, r in self._summands)

    def _closest(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return bounds of log E phi(S - K) (see the class) at the levels K, and their slopes in K with the sign changed.

        Where the rounding error is more than 1e-6 of the bound, another transform is computed, with a tilted mean closer to the
        level, unless the error is almost as large at the tilted mean itself.
        """
        centers = self._shared_centers(levels)
        values, slopes, shares = self._read(levels, centers)
        # With a threshold above 1e-6, the gap near the largest value of the sum is wider. With a lower one, more transforms are
        # computed.
        blurred = np.flatnonzero(shares > 1e-6)
        if blurred.size:
            # The error of a transform of very many summands is mostly not due to the distance of the level from the tilted mean.
            least = np.where(centers[blurred] < self.last, self._read(centers[blurred], centers[blurred])[2], 0.0)
            moved = _FARTHER * slopes[blurred] * levels[blurred]
            blurred = blurred[shares[blurred] - least > np.minimum(least, moved)]
        if blurred.size:
            again, steeper, _ = self._read(levels[blurred], self._centers(levels[blurred], self._width / 64))
            better = again < values[blurred] if self.upper else again > values[blurred]
            values[blurred[better]], slopes[blurred[better]] = again[better], steeper[better]
        return values, slopes

    def _read(self, levels: FloatArray, centers: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return bounds of log E phi(S - K) at the levels K, their negative slopes, and the fractions that are rounding error.

        centers[i] is the middle of the interval that contains levels[i]. It is also the mean of the tilted sum in the transform for
        this level.
        """
        out = np.empty((3, levels.size))
        for center in set(centers.tolist()):
            held = np.flatnonzero(centers == center)
            one, at = self._transform(center), levels[held]
            origin, size, first = one.points
            logs, slopes, shares = _losses.read_excess(
                at, one.tail, one.excess, first, size, origin, self.step, one.theta, self._discount, one.error, one.outside,
                self.upper,
            )
            away = one.theta * (at - self.origin)
            raw = one.cumulant - away
            slack = self.slack + 8 * ULP * (abs(one.cumulant) + np.abs(away) + np.abs(raw))
            slack = slack if self.upper else -slack
            rest = self.log_rest + (self.slack if self.upper else -self.slack)
            out[0, held] = np.where(logs > -np.inf, np.logaddexp(raw + logs + slack, self.log_rest + slack), rest)
            out[1, held], out[2, held] = slopes, shares
        return out[0], out[1], out[2]

    @kept(CACHED_BYTES, lambda transform: transform.tail.nbytes + transform.excess.nbytes)
    def _transform(self, center: float) -> _Transform:
        theta, low, high, _ = self._interval(center)
        step = self.step
        cumulant = mean = var = rough = lost = 0.0
        tilted = []
        support = 1
        for logs, place, r in self._summands:
            weight = logs + theta * step * place
            top = float(weight.max())
            weight -= top
            kept = weight > FAINT
            # `rough` bounds the relative error of a product of tilted masses, and `lost` bounds the mass that is dropped.
            rough += r * ULP * float((np.abs(logs[kept]) + np.abs(theta * step * place[kept])).max() + 120)
            lost += r * math.exp(FAINT) * (place.size - np.count_nonzero(kept))
            place = place[kept]
            weight = np.exp(weight[kept])
            total = float(weight.sum())
            weight /= total
            m = float((weight * place).sum())
            cumulant += r * (top + math.log(total))
            mean += r * m
            var += r * float((weight * (place - m) ** 2).sum())
            support += r * int(place[-1] - place[0])
            tilted.append(Summand(weight, place, r))
        deviation = max(math.sqrt(var), 0.5)
        lowest, size, outside = self._window(tilted, mean, deviation, support)
        values, error = _power(tilted, size)
        origin = self.origin + step * lowest
        # Only the points that are used for levels of the interval are stored.
        left = int(min(max((min(low, center) - origin) / step - 2, 0), size - 1))
        right = int(min(max((max(high, center) - origin) / step + 4, left + 1), size))
        tail, excess = _losses.tilted_excess(values, theta, step, self._discount, lowest % size, left, right)
        cumulant += rough if self.upper else -rough
        return _Transform(theta, cumulant, _Points(origin, size, left), tail, excess, error, outside + lost)

    def _window(self, tilted: Sequence[Summand], mean: float, deviation: float, support: int) -> tuple[int, int, float]:
        """Return a truncation range of the sum such that the tilted mass outside is negligible, by Chernoff bounds.

        The result consists of the first grid point, the number of points, and an upper bound of the tilted mass outside the range.

        On either side of the range the mass is at most e^-NEGLIGIBLE. If such a range has more than TABLE_SIZE/4 points, the limit
        of the mass is e^-NEGLIGIBLE_ROUGHLY. If that range has more than LARGE_TABLE_SIZE points, the limit is e^-SHALLOWEST. The
        upper bound multiplies the mass outside by its largest possible weight, so a larger mass widens the gap.
        """
        tails = Tails(tilted, mean, deviation)
        for depth in (NEGLIGIBLE, NEGLIGIBLE_ROUGHLY, SHALLOWEST):
            down, up = tails.reach(-1, -depth), tails.reach(1, -depth)
            # With 32 more points on either side of the range, no level for which the transform is used lies at the edge.
            first = math.floor(mean - down) - 32
            size = math.ceil(mean + up) + 32 - first
            if size >= support or size <= (TABLE_SIZE // 4 if depth == NEGLIGIBLE else LARGE_TABLE_SIZE):
                break
        # next_fast_len fails for huge lengths, so the length is limited to a number that is refused below.
        size = fft.next_fast_len(min(support, size, 2 * LARGE_TABLE_SIZE), real=True)
        if size > LARGE_TABLE_SIZE:
            # If a few large values have a small mass, the range may be longer than permitted; the caller then uses a coarser grid.
            memory = size * POINT_BYTES / 2**20
            raise TooLongError(
                f"the composition needs a transform of {size} points, about {memory:.0f} MiB, more than "
                f"{LARGE_TABLE_SIZE}: compose fewer releases at once"
            )
        if size >= support:
            return sum(r * int(place[0]) for _, place, r in tilted), size, 0.0
        return first, size, 2 * math.exp(-depth) * (1 + 1e-6)


def _power(tilted: Sequence[Summand], size: int) -> tuple[FloatArray, float]:
    """Return the circular convolution of the distributions of all summands, and a bound of the error of its values.

    `tilted` has masses, not their logs; the masses of a summand sum to 1. A transform has log2(size) rounded butterfly stages, so
    each output has an error of at most 4 ulp log2(size) times the sum of the absolute inputs.
    """
    stage = 4 * ULP * (math.log2(size) + 2)
    # All arrays share one block. The C library keeps about as much freed memory as the largest block that a process has released,
    # so later transforms, and the work space of NumPy's transforms, reuse memory pages instead of allocating new ones. Allocating
    # new pages takes as long as a transform.
    room = np.empty((len(tilted) + 3, size // 2 + 1), dtype=np.complex128)
    values, spectra = room[0].view(np.float64)[:size], room[1 : len(tilted) + 1]
    for (weight, place, _), spectrum in zip(tilted, spectra):
        values[:] = 0.0
        np.add.at(values, np.mod(place, size).astype(np.intp), weight)
        np.fft.rfft(values, out=spectrum)
    times = np.array([one.times for one in tilted], dtype=np.int64)
    grown, whole, lost = _losses.multiplied(spectra, times, stage)
    error = grown + lost + whole * (4 * ULP * (int(times.sum()) + times.size) + stage)
    return np.fft.irfft(spectra[0], size, out=values), 2 * error / size
