"""The convolution of distributions of losses, by FFT of exponentially tilted masses, with bounds of all errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from shufflebounds._cached import cached_property
from shufflebounds._core import _losses
from shufflebounds._limits import CACHED_ANSWERS
from shufflebounds._scipy import fft
from shufflebounds._types import ULP, FloatArray
from shufflebounds.composing.kept import Kept
from shufflebounds.composing.loss_atoms import GridPLD, TooLongError, union_probability
from shufflebounds.composing.window import Tails

__all__ = ["BYTES_A_POINT", "NEAR", "Product"]

MOST_POINTS = 2**22
"""Largest number of points of a transform."""

BYTES_A_POINT = 72
"""Memory per point of a transform: values, spectrum, its powers, and logarithms of their sizes."""

ENOUGH = -20.0
"""Log of the tilted mass outside of the window (the range of losses of a transform), if less would need more than MOST_POINTS
points."""

NEAR = 1.5
"""A transform is used for eps within this number of standard deviations of the eps that it was tilted to."""

OUTSIDE, LONG, OUTSIDE_LONG = -45.0, 2**18, -30.0
"""Log of the tilted mass outside of the window on either side; OUTSIDE_LONG if the window would have more than LONG points."""

MARGIN = 32
"""Number of extra points on both sides of a window."""

KEPT = 2**21
"""Total number of points of the cached transforms: enough for all short transforms of a curve, or for one long transform."""

BLURRED, SHORT = 1e-6, 2.0**-6
"""If rounding exceeds the share BLURRED of a value, the intervals of eps are shortened by the factor SHORT."""

FINEST = 12
"""Largest number of times that an interval of eps is divided by four to bring its middle near eps."""


class _Window(NamedTuple):
    """First point and size of a window, the range of losses of a transform, and a bound of the tilted mass beyond each end."""

    lowest: int
    size: int
    beyond: float


@dataclass(frozen=True, eq=False)
class _Block:
    """Tilted tail sums and divergences near one eps. `error` bounds the error of each mass inside of the window."""

    theta: float
    cumulant: float
    origin: float
    tail: FloatArray
    hockey_stick: FloatArray
    error: float
    above: float
    outside: float


def _points(block: _Block) -> int:
    return int(block.hockey_stick.size)


class Product:
    """The composition of distributions with a common step, each with a multiplicity, as an upper or a lower bound."""

    def __init__(self, laws: Sequence[GridPLD], times: Sequence[int], *, upper: bool) -> None:
        self.upper = upper
        self.step = laws[0].step
        self.times = times
        self._logs: list[FloatArray] = []
        self._index: list[FloatArray] = []
        self.slack = self.loss_error = self.origin = 0.0
        rests = []
        for law, r in zip(laws, times):
            held = np.flatnonzero(law.log_p > -np.inf)
            logs = law.log_p[held]
            # Indices are relative to the heaviest point, so that tilting changes the total mass little.
            middle = int(held[np.argmax(logs)]) if held.size else 0
            self._logs.append(logs)
            self._index.append((held - middle).astype(np.float64))
            self.origin += r * (law.anchor + self.step * (law.first + middle))
            total = float(np.logaddexp.reduce(np.append(logs, law.log_rest)))
            self.slack += r * (law.slack + abs(total) + 16 * ULP)
            self.loss_error += r * law.loss_error + 4 * ULP * abs(self.origin)
            rests.append((law.log_rest, r))
        self.log_rest = union_probability(rests)
        self._blocks: Kept[float, _Block] = Kept(KEPT, _points)
        self._tilts: Kept[float, tuple[float, float]] = Kept(CACHED_ANSWERS)

    def moments(self, theta: float) -> tuple[float, float, float]:
        """Return the log of the moment generating function at theta (relative to the origin), and the tilted mean and variance."""
        cumulant = mean = var = 0.0
        for logs, index, r in zip(self._logs, self._index, self.times):
            x = self.step * index
            weight = logs + theta * x
            top = float(weight.max())
            weight = np.exp(weight - top)
            total = float(weight.sum())
            m = float((weight * x).sum()) / total
            cumulant += r * (top + math.log(total))
            mean += r * m
            var += r * float((weight * (x - m) ** 2).sum()) / total
        return cumulant, self.origin + mean, var

    @property
    def finite(self) -> bool:
        """Whether every factor has outcomes of finite loss; only then does the product have moments."""
        return all(logs.size for logs in self._logs)

    @property
    def _rest(self) -> float:
        """The bound of log delta at an eps above all finite losses: the log of the mass of infinite losses."""
        return self.log_rest + (self.slack if self.upper else -self.slack)

    @cached_property
    def _untilted(self) -> tuple[float, float, float]:
        return self.moments(0.0)

    def tilt(self, eps: float) -> float:
        """Return theta >= 0 at which the tilted mean is near eps, or the end of the allowed range."""
        low, high = 0.0, 60 / self.step
        _, mean, var = self._untilted
        if mean >= eps:
            return 0.0
        theta = min((eps - mean) / var, high) if var > 0 else high
        for _ in range(60):
            _, mean, var = self.moments(theta)
            if abs(mean - eps) <= 0.02 * math.sqrt(var):
                break
            low, high = (theta, high) if mean < eps else (low, theta)
            theta = theta + (eps - mean) / var if var > 0 else math.inf
            if not low < theta < high:
                theta = (low + high) / 2
            if high - low <= 1e-3 * high:
                break
        return theta

    def log_delta(self, eps: float) -> tuple[float, float]:
        """Return the bound of the log hockey-stick divergence at eps, and minus its slope."""
        if not self.finite:
            return self._rest, 0.0
        outward = (-1 if self.upper else 1) * (self.loss_error + 4 * ULP * abs(eps))
        at = eps + outward
        value, slope, blurred = self._read(self._transformed(self.center(at)), at)
        if blurred > BLURRED:
            # eps is near the largest loss, where delta falls fast: use a tilt that is closer to eps.
            finer = self._read(self._transformed(self.center(at, SHORT)), at)
            value, slope = (min if self.upper else max)((value, slope), finer[:2])
        return value, slope

    def points(self, eps: float) -> int:
        """Return the number of points of the transform that serves eps."""
        return _points(self._transformed(self.center(eps)))

    def center(self, eps: float, share: float = 1.0) -> float:
        """Return the middle of the interval that contains eps. It depends on eps alone, and a transform tilted to it serves eps."""
        _, mean, var = self._untilted
        width = share * 0.6 * NEAR * math.sqrt(var)
        for _ in range(FINEST):
            if width <= 4 * ULP * abs(eps):
                break
            center = mean + max(0, math.ceil((eps - mean) / width - 0.5)) * width
            if self._reaches(center, eps):
                return center
            width /= 4
        return eps

    def _reaches(self, center: float, eps: float) -> bool:
        """Whether the transform tilted to the center serves eps."""
        theta, far = self._tilts.of(center, partial(self._range, center))
        return eps <= center + far and (theta == 0 or eps >= center - far)

    def _range(self, center: float) -> tuple[float, float]:
        """Return the tilt for this center, and the distance from it at which the transform is accurate."""
        theta = self.tilt(center)
        return theta, NEAR * max(math.sqrt(self.moments(theta)[2]), 0.5 * self.step)

    def _transformed(self, center: float) -> _Block:
        return self._blocks.of(center, partial(self._transform, center))

    def _read(self, block: _Block, eps: float) -> tuple[float, float, float]:
        """Return the bound at eps, minus its slope, and the share of it that is rounding error."""
        theta, size = block.theta, block.hockey_stick.size
        place = max(0, math.floor((eps - block.origin) / self.step) + 1)
        x = block.origin + self.step * place - eps
        if x <= 0:
            # The quotient was rounded up.
            place, x = place + 1, x + self.step
        # Beyond the last point the difference may be dominated by rounding: limit it to one step.
        x = min(max(x, 0.0), self.step) if place >= size else x
        # Beyond the window only a bound of the mass is known.
        tail, hockey_stick = (float(block.tail[place]), float(block.hockey_stick[place])) if place < size else (0.0, 0.0)
        fade, part = math.exp(-theta * x), -math.expm1(-x)
        total = fade * (hockey_stick + part * tail)
        # Largest weight of a mass in the divergence, and a bound of the sum of all weights by an integral.
        largest = 1.0 if theta == 0 else math.exp(theta * math.log1p(-1 / (1 + theta))) / (1 + theta)
        # The weight of a mass is at most 1 - e^-(distance of the last point from eps).
        largest = min(largest, -math.expm1(-self.step * max(size - place, 1)) * (1 + 4 * ULP))
        shares = largest * max(size - place, 0)
        if theta > 0:
            shares = min(shares, largest + 1 / (self.step * theta * (1 + theta)))
        reached = size - place if theta == 0 else min(size - place, 60 / (theta * self.step))
        error = block.error * shares + ULP * (80 + 4 * reached) * (total + 2 * block.error * shares)
        blurred = error / total if total > 0 else 1.0
        if self.upper:
            # Terms below e^-60 of the largest have a separate error term.
            total += error + block.above + (4 * ULP * size * math.exp(-60.0) if reached < size - place else 0.0)
        else:
            total -= error + block.outside * largest
        if not total > 0:
            return self._rest, 0.0, blurred
        raw = block.cumulant - theta * (eps - self.origin)
        slack = self.slack + 8 * ULP * (abs(block.cumulant) + abs(theta * (eps - self.origin)) + abs(raw))
        outward = slack if self.upper else -slack
        value = float(np.logaddexp(raw + math.log(total) + outward, self.log_rest + outward))
        return value, max(0.0, fade * (1 - part) * tail / total), blurred

    def _transform(self, eps: float) -> _Block:
        theta = known[0] if (known := self._tilts.get(eps)) else self.tilt(eps)
        step = self.step
        cumulant = mean = var = rough = lost = 0.0
        tilted = []
        support = 1
        for logs, index, r in zip(self._logs, self._index, self.times):
            weight = logs + theta * step * index
            top = float(weight.max())
            weight -= top
            kept = weight > -110
            rough += r * ULP * float((np.abs(logs[kept]) + np.abs(theta * step * index[kept])).max() + 120)
            lost += r * math.exp(-110.0) * (index.size - np.count_nonzero(kept))
            place = index[kept]
            weight = np.exp(weight[kept])
            total = float(weight.sum())
            weight /= total
            m = float((weight * place).sum())
            cumulant += r * (top + math.log(total))
            mean += r * m
            var += r * float((weight * (place - m) ** 2).sum())
            support += r * int(place[-1] - place[0])
            tilted.append((weight, place))
        deviation = max(math.sqrt(var), 0.5)
        lowest, size, beyond = self._window(tilted, mean, deviation, support)
        values, error = self._power(tilted, size)
        tail, hockey_stick = _losses.tilted_hockey_stick(np.roll(values, -(lowest % size)), theta, step)
        return _Block(
            theta,
            cumulant + (rough if self.upper else -rough),
            self.origin + step * lowest,
            tail,
            hockey_stick,
            error,
            beyond + lost,
            2 * beyond,
        )

    def _window(self, tilted: list[tuple[FloatArray, FloatArray]], mean: float, deviation: float, support: int) -> _Window:
        """Return a window that contains all but a tilted mass of e^OUTSIDE on either side, by Chernoff bounds."""
        tails = Tails([(weight, place, r) for (weight, place), r in zip(tilted, self.times)], mean, deviation)
        for limit in (OUTSIDE, OUTSIDE_LONG, ENOUGH):
            down, up = tails.reach(-1, limit), tails.reach(1, limit)
            first = math.floor(mean - down) - MARGIN
            size = math.ceil(mean + up) + MARGIN - first
            if size >= support or size <= (LONG if limit == OUTSIDE else MOST_POINTS):
                break
        # next_fast_len raises for lengths that are far too long.
        size = fft.next_fast_len(min(support, size, 2 * MOST_POINTS), real=True)
        if size > MOST_POINTS:
            # A few large losses of little mass may need a longer window than allowed; the caller then takes a coarser grid.
            raise TooLongError(
                f"the composition needs a transform of {size} points, about {size * BYTES_A_POINT / 2**20:.0f} MiB, more than "
                f"{MOST_POINTS}: compose fewer releases at once"
            )
        if size >= support:
            return _Window(sum(r * int(place[0]) for (_, place), r in zip(tilted, self.times)), size, 0.0)
        return _Window(first, size, math.exp(limit) * (1 + 1e-6))

    def _power(self, tilted: list[tuple[FloatArray, FloatArray]], size: int) -> tuple[FloatArray, float]:
        """Return the circular convolution power, and a bound of the error of its values.

        A transform consists of log2(size) rounded butterfly stages, so each output has an error of at most 4 ulp log2(size) times
        the sum of the absolute inputs.
        """
        stage = 4 * ULP * (math.log2(size) + 2)
        spectra = []
        for weight, place in tilted:
            folded = np.bincount(np.mod(place, size).astype(np.intp), weights=weight, minlength=size)
            spectra.append(fft.rfft(folded))
        sizes = np.zeros(spectra[0].size)
        for spectrum, r in zip(spectra, self.times):
            sizes += r * np.log(np.abs(spectrum) + stage)
        kept = sizes > OUTSIDE - 15
        dropped = float(np.exp(sizes[~kept]).sum())
        sizes = sizes[kept]
        growth = np.zeros(sizes.size)
        product = np.ones(sizes.size, dtype=np.complex128)
        for spectrum, r in zip(spectra, self.times):
            part = spectrum[kept]
            with np.errstate(divide="ignore"):
                growth += r * np.log1p(stage / np.abs(part))
            product *= _whole_power(part, r)
        size_sum = float(np.exp(sizes).sum())
        error = float((np.exp(sizes) * -np.expm1(-growth)).sum()) + dropped
        error += size_sum * (4 * ULP * (sum(self.times) + len(spectra)) + stage)
        full = np.zeros(spectra[0].size, dtype=np.complex128)
        full[kept] = product
        return fft.irfft(full, size), 2 * error / size


def _whole_power(base: np.ndarray, times: int) -> np.ndarray:
    """Return base**times by repeated squaring; the relative error is below 4 * 2.2e-16 times the exponent."""
    out = base.copy() if times & 1 else np.ones_like(base)
    while times := times >> 1:
        base = base * base
        if times & 1:
            out *= base
    return out
