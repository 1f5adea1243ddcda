r"""Hockey-stick divergences of a composition by Fourier inversion along a tilted contour, without a grid of losses.

Let L be the sum of the privacy losses of all releases and K its cumulant generating function under P. For theta > 0

.. math:: H(\varepsilon) = \mathrm{E}_P (1 - e^{\varepsilon - L})_+ = \frac{1}{2 \pi} \int_{-\infty}^\infty
    \frac{e^{K(z) - z \varepsilon}}{z (z + 1)} dt, \qquad z = \theta + i t.

The trapezoidal rule with spacing tau is used. By Poisson's summation formula the rule, summed to infinity, equals

.. math:: \sum_{k \in \mathbb{Z}} e^{\theta k P} H(\varepsilon + k P), \qquad P = 2 \pi / \tau .

The term with k = 0 is H(eps), and the terms with k != 0 are errors of the rule. They are positive, so the rule itself is an upper
bound; for a lower bound, a bound of these terms is subtracted. The terms with k < 0 are at most e^(theta k P), since H <= 1. Those
with k > 0 are bounded by the Chernoff bound of H at a larger theta. Beyond the last node, the integrand is bounded by the bound of
\|E e^(z L)\| that the transform of each release has for larger frequencies.

References
----------
Zhu, Y., Dong, J., Wang, Y.-X. Optimal accounting of differential privacy via characteristic function. AISTATS 2022.

Trefethen, L. N., Weideman, J. A. C. The exponentially convergent trapezoidal rule. SIAM Review 56, 2014.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import Kept
from shufflebounds._base.limits import CACHED_ANSWERS, LARGEST_EXPONENT, MOST_ROUNDS, SAME_LOG, TABLE_SIZE
from shufflebounds._base.quadrature import capped_exp
from shufflebounds._base.search import least_int
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._losses.transform import LossTransform, TiltedTransform

__all__ = ["Inversion", "InversionAccount", "normal_estimate"]

RATIO = 1.06
"""Ratio of neighbouring tilts theta. All tilts are powers of RATIO, so that neighbouring eps share transforms. Raised: tilts
farther from the saddle point. Lowered: more transforms for a curve delta(eps)."""

TILTS = range(-480, 197)
"""Exponents j of the allowed tilts RATIO**j, from 7e-13 to 9e4. The number of quadrature points grows with the tilt. With a smaller
range, inversion fails for larger or for smaller losses."""

OFFSETS = (-28, -24, -20, -16, -13, -10, -8, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 24)
"""Tilts that are compared for one eps, as exponents of RATIO relative to the saddle point.

The entries up to 0 are tried as contours of the integral, all entries as tilts of the Chernoff bound. In the aliasing sum of the
module docstring, the terms with k < 0 decrease more slowly at a smaller tilt, those with k > 0 at a larger tilt. The tilt with
the shortest sufficient period P is used. With more tilts the comparison takes longer.
"""

TILTS_AT_ONCE = (OFFSETS[-1] - OFFSETS[0]) // 2
"""Number of neighbouring tilts that are computed together; those around one eps are in three such blocks. Raised: more tilts that
no eps needs. Lowered: more calls of the transform."""

FREQUENCY_RATIO = 1.25
"""Ratio of neighbouring frequencies at which the integral may be truncated. Raised: more nodes than necessary. Lowered: a longer
search."""


LONGEST = 4e8
"""Largest number of products of nodes and quadrature points of one integral; 2e8 take about a second. Raised: longer run time.
Lowered: Chernoff's bound, or another engine, is used for more compositions."""

FIRST_GUESS = 58
"""Exponent of the largest tilt, RATIO**58 = 29, at which the search for a saddle point starts: up to this tilt the quadrature of a
transform needs few points. The result of the search does not depend on it. Raised: quadratures with more points than the saddle
point needs. Lowered: more steps of the search."""

LEAST_ESTIMATE = -5000.0
"""Smallest estimate of log delta for which the integral is computed. For a smaller one the saddle point is too far from the nearest
tilt; the caller then uses a grid. Raised: more grids. Lowered: integrals that give no lower bound."""

LESS_AT_LEAST, LESS_UNKNOWN = 1.0, 6.0
"""Decrease of the estimate of log delta for the next integral if the last one was inaccurate: the smallest decrease, and that if
the last integral was below its error. Raised: more nodes than necessary. Lowered: more integrals."""

MARGIN = 1e-9
"""Relative margin that is added to each error term. It exceeds the rounding errors of a sum of TABLE_SIZE positive terms, 2**20 ulp
= 2e-10. Lowered: a bound could be invalid. Raised: less tight bounds."""


class InversionAccount(NamedTuple):
    """How the bounds at one eps were computed: the tilt of the contour, the spacing of its nodes, and their number."""

    tilt: float
    spacing: float
    nodes: int


@dataclass(frozen=True, eq=False)
class _Nodes:
    """The integrand at the nodes, without the factor e^(-z eps), and bounds of its errors summed over the nodes.

    `error` comes from the moment generating functions and `rounding` from the arithmetic. The rounding error of the factor e^(-z
    eps) is at most `turning` times ulp times eps.
    """

    integrand: NDArray[np.complex128]
    error: float
    rounding: float
    turning: float


class _Parts(NamedTuple):
    """The moment generating functions of the releases on one contour, and K(theta), the cumulant generating function of all losses.

    K(theta) is inf if some function is not known.
    """

    parts: tuple[tuple[TiltedTransform, int], ...]
    cumulant: float


class _Tilt(NamedTuple):
    """Values at one tilt theta, for the sum L of all losses.

    `cumulant` is K(theta) with the error bound `error`, `mean` and `var` are K'(theta) and K''(theta), and `log_weight` is
    log(theta (theta + 1)). `log_largest` is the log of the largest value of (1 - e^-x) e^(-theta x) over x >= 0.
    """

    theta: float
    cumulant: float
    error: float
    mean: float
    var: float
    log_weight: float
    log_largest: float

    @classmethod
    def several(cls, releases: Sequence[tuple[LossTransform, int]], theta: FloatArray) -> list[_Tilt | None]:
        """Return one object for each of the increasing tilts `theta`; None where a moment generating function is not known."""
        cumulant, error, mean, var, size = np.zeros((5, theta.size))
        for transform, times in releases:
            one = transform.cumulants(theta)
            cumulant, mean, var = cumulant + times * one.value, mean + times * one.mean, var + times * one.var
            error, size = error + times * (one.error + ULP * np.abs(one.value)), size + times * np.abs(one.value)
        error += len(releases) * ULP * size
        # The largest value of (1 - e^-x) e^(-theta x) over x >= 0 is attained at x = log(1 + 1/theta).
        log_theta, log_more = np.log(theta), np.log1p(theta)
        log_largest = -theta * np.log1p(1 / theta) - log_more + 1e-12
        fields = zip(*(array.tolist() for array in (theta, cumulant, error, mean, var, log_theta + log_more, log_largest)))
        return [cls(*values) if values[2] < math.inf else None for values in fields]

    def height(self, eps: float) -> float:
        """Return the log of the integrand at frequency 0: `cumulant` - theta eps - log(theta (theta + 1))."""
        return self.cumulant - self.theta * eps - self.log_weight

    def slope(self, eps: float) -> float:
        """Return the derivative with respect to theta of the log of the integrand at t = 0."""
        return self.mean - eps - 1 / self.theta - 1 / (self.theta + 1)

    @property
    def curvature(self) -> float:
        """The second derivative with respect to theta of the log of the integrand at t = 0."""
        return self.var + self.theta**-2 + (self.theta + 1) ** -2

    def approximate(self, eps: float) -> float:
        """Return the saddle-point approximation of the log hockey-stick divergence at eps, if theta is the saddle point."""
        return self.height(eps) - 0.5 * math.log(2 * math.pi * self.curvature)

    def chernoff(self, eps: float) -> float:
        """Return Chernoff's upper bound of the log hockey-stick divergence at eps, at this tilt."""
        exponent = self.theta * eps
        return self.log_largest + self.cumulant + self.error - exponent + 4 * ULP * (abs(self.cumulant) + abs(exponent))


@dataclass(frozen=True, eq=False)
class _Window:
    """The tilts around a saddle point and the fields of :class:`_Tilt` there, as arrays over increasing tilts.

    `cumulant` is rounded up. Entry i of `places` is the exponent k of the tilt theta[i] = RATIO**k. The entry (i, j) of `apart` is
    max(theta[j] - theta[i], 0).
    """

    places: tuple[int, ...]
    theta: FloatArray
    cumulant: FloatArray
    log_weight: FloatArray
    log_largest: FloatArray
    apart: FloatArray

    @classmethod
    def of(cls, listed: Sequence[tuple[int, _Tilt]]) -> _Window:
        """Return the arrays for a sequence of (exponent, tilt) with increasing exponents."""
        places, tilts = zip(*listed)
        names = ("theta", "cumulant", "log_weight", "log_largest")
        theta, cumulant, log_weight, log_largest = (np.array([getattr(tilt, name) for tilt in tilts]) for name in names)
        apart = np.maximum(theta - theta[:, None], 0.0)
        return cls(places, theta, cumulant + np.array([tilt.error for tilt in tilts]), log_weight, log_largest, apart)

    def heights(self, eps: float) -> FloatArray:
        """Return the logarithm of the integrand at t = 0 for every tilt."""
        return self.cumulant - self.theta * eps - self.log_weight

    def chernoff(self, eps: float) -> FloatArray:
        """Return, for every tilt, its Chernoff bound of the log hockey-stick divergence at eps."""
        exponent = self.theta * eps
        return self.log_largest + self.cumulant - exponent + 4 * ULP * (np.abs(self.cumulant) + np.abs(exponent))


def _rounded_up(value: float) -> float:
    """Return the smallest power of 2^(1/4) that is at least `value`.

    Periods and numbers of nodes are rounded in this way, so that neighbouring eps share transforms.
    """
    return float(2 ** (math.ceil(4 * math.log2(value)) / 4))


def normal_estimate(eps: float, mean: float, spread: float) -> float:
    """Return an estimate of log delta at eps for a normal total loss with this mean and standard deviation.

    It is 0 if the standard deviation is 0.
    """
    if not spread > 0:
        return 0.0
    # For a normal loss with standard deviation s, delta is about e^(-z^2/2) s/(2.5 (1 + z (s + z))), where 2.5 is sqrt(2 pi).
    z = max(0.0, (eps - mean) / spread)
    return min(0.0, -0.5 * z * z - math.log((1 + z * (spread + z)) * 2.5 / max(spread, 1e-9)))


class Inversion:
    """The hockey-stick divergence of a product of pairs whose losses have a known moment generating function.

    Parameters
    ----------
    releases : sequence of (LossTransform, int)
        Each pair with its number of releases.
    rtol : float
        The largest relative gap between the bounds of eps that the composition accepts.
    most : float, optional
        Largest number of products of nodes and quadrature points of one integral, at most LONGEST.
    """

    name: ClassVar[str] = "inversion of the moment generating function"

    def __init__(self, releases: Sequence[tuple[LossTransform, int]], rtol: float, most: float = LONGEST) -> None:
        self._releases, self._rtol, self._most = tuple(releases), rtol, most
        # `_tolerance` is the relative gap between the bounds of eps that is aimed at. A larger fraction of rtol gives a larger gap,
        # a smaller fraction needs more nodes.
        self._tolerance = max(0.01 * rtol, SAME_LOG)
        # The range TILTS limits the number of entries.
        self._tilts: dict[int, _Tilt | None] = {}
        self._parts: Kept[int, _Parts] = Kept(CACHED_ANSWERS)
        self._nodes: Kept[tuple[int, float, int], _Nodes] = Kept(TABLE_SIZE, lambda nodes: int(nodes.integrand.size))
        self._windows: Kept[int, _Window] = Kept(CACHED_ANSWERS)
        self._last_saddle: int | None = None
        self._saddle_of: tuple[float, int] = (math.nan, 0)
        self._decays: Kept[tuple[int, int], float] = Kept(64 * CACHED_ANSWERS)

    @property
    def possible(self) -> bool:
        """Whether the moment generating functions are known at the smallest tilt.

        If they are not, every tilt needs too many quadrature points.
        """
        return self._known(TILTS[0]) is not None

    def _known(self, place: int) -> _Tilt | None:
        """Return the values of :class:`_Tilt` at the tilt RATIO**place, or None if a moment generating function is not known there.

        Up to a tilt of 94 the quadrature needs few points, so a block of neighbouring tilts is computed together.
        """
        if place not in self._tilts:
            first, count = place, 1
            if place < 3 * TILTS_AT_ONCE:
                first, count = place - place % TILTS_AT_ONCE, TILTS_AT_ONCE
            places = np.arange(first, first + count, dtype=np.float64)
            tilts = _Tilt.several(self._releases, RATIO ** np.maximum(places, TILTS[0]))
            self._tilts.update(zip(range(first, first + count), tilts))
        return self._tilts[place]

    def _part(self, place: int) -> _Parts:
        """Return the moment generating functions at the tilt RATIO**place."""
        def made() -> _Parts:
            tilted = [(transform.tilted(self._tilt(place).theta), times) for transform, times in self._releases]
            parts = tuple((part, times) for part, times in tilted if part is not None)
            complete = len(parts) == len(tilted)
            return _Parts(parts, math.fsum(times * part.scale for part, times in parts) if complete else math.inf)

        return self._parts.of(place, made)

    def _tilt(self, place: int) -> _Tilt:
        tilt = self._known(place)
        assert tilt is not None
        return tilt

    def _saddle(self, eps: float) -> int:
        """Return the exponent k of the tilt RATIO**k at which the integrand at frequency 0 is about the smallest."""
        latest = self._saddle_of
        if latest[0] != eps:
            latest = self._saddle_of = eps, self._find_saddle(eps)
        return latest[1]

    def _find_saddle(self, eps: float) -> int:
        one = self._tilt(TILTS[0])
        # Start at the saddle point of a normal loss with the mean and the variance at the smallest tilt.
        deviation = math.sqrt(max(one.var, 1e-300))
        guess = min(max(eps - one.mean, 0.0) / deviation**2 + 1 / deviation, RATIO**FIRST_GUESS)
        place = max(math.ceil(math.log(guess) / math.log(RATIO)), TILTS[0])

        def rises(place: int) -> bool:
            tilt = self._known(place)
            return place == TILTS[-1] or tilt is None or not tilt.slope(eps) < 0

        # Searches evaluate neighbouring eps in sequence, so the saddle point of the last eps is tried first. This saves time only:
        # the saddle point that is found does not depend on earlier calls.
        low = self._last_saddle
        if low is None or not rises(low) or (low > TILTS[0] and rises(low - 1)):
            low = least_int(rises, TILTS[0], TILTS[-1], place)
            assert low is not None
            self._last_saddle = low
        if low == TILTS[0]:
            return low
        above, below = self._known(low), self._tilt(low - 1)
        # The saddle point lies between the tilts `low - 1` and `low`. From one tilt to the next the cumulant may increase by orders
        # of magnitude, so the integrands at both tilts are compared, and the tilt with the smaller one is returned.
        return low if above is not None and above.height(eps) < below.height(eps) else low - 1

    def chernoff(self, eps: float) -> float:
        """Return Chernoff's upper bound of the log hockey-stick divergence at eps, at the allowed tilt next to the saddle point."""
        return min(self._tilt(self._saddle(eps)).chernoff(eps), 0.0)

    def normal_estimate(self, eps: float) -> float:
        """Return an estimate of the log hockey-stick divergence at eps in little time; it may be wrong by orders of magnitude."""
        one = self._tilt(TILTS[0])
        return normal_estimate(eps, one.mean, math.sqrt(max(one.var, 0.0)))

    def estimate(self, eps: float) -> float:
        """Return the saddle-point approximation of the log hockey-stick divergence at eps, which may be far too large."""
        return min(0.0, self._tilt(self._saddle(eps)).approximate(eps))

    def bounds(self, eps: float) -> tuple[Interval, bool]:
        """Return both bounds of log delta at eps, and whether their gap changes eps by at most a relative rtol."""
        bounds, account = self.log_delta(eps)
        # log delta has about the slope -tilt.
        return bounds, account is not None and bounds.upper - bounds.lower <= self._rtol * max(account.tilt * eps, 1.0)

    def method(self, eps: float) -> list[str]:
        """Return the lines of :meth:`Composition.explain` about the method."""
        account = self.log_delta(eps)[1]
        if account is None:
            return ["method: Chernoff's bound by the moment generating function of the loss; its inversion would take too long"]
        return ["method: the moment generating function of the loss, inverted along a tilted contour",
                f"contour: {account.nodes} nodes {account.spacing:.3g} apart, tilt {account.tilt:.3g}"]

    def log_delta(self, eps: float) -> tuple[Interval, InversionAccount | None]:
        """Return bounds of the log hockey-stick divergence at eps, and how the integral was computed.

        If the integral would take too long, the lower bound is -inf, the upper bound a Chernoff bound, and the second result None.
        """
        saddle = self._saddle(eps)
        tilt = self._tilt(saddle)
        low, high = -math.inf, min(tilt.chernoff(eps), 0.0)
        estimate = tilt.approximate(eps)
        account, gap = None, math.inf
        tolerance = self._tolerance_at(eps, tilt)
        if not estimate > LEAST_ESTIMATE:
            return Interval(low, high), account
        for _ in range(MOST_ROUNDS):
            once = self._once(eps, saddle, estimate, tolerance)
            if once is None:
                break
            bounds, size, account = once
            low, high = max(low, bounds.lower), min(high, bounds.upper)
            if high - low <= 4 * tolerance or 0.5 * gap < high - low < math.inf:
                break
            gap = high - low
            # The gap is large because the integral is far below e^estimate, and the permitted error is relative to e^estimate.
            # Repeat with a smaller estimate.
            estimate = min(estimate - LESS_AT_LEAST, size if size > -math.inf else estimate - LESS_UNKNOWN)
        return Interval(low, high), account

    def log_delta_once(self, eps: float) -> tuple[float, bool]:
        """Return (upper bound, accurate) of the log hockey-stick divergence at eps from one integral.

        `accurate` is False if the divergence is below about 1e-8 times its saddle-point approximation.
        """
        saddle = self._saddle(eps)
        tilt = self._tilt(saddle)
        high, estimate = min(tilt.chernoff(eps), 0.0), tilt.approximate(eps)
        once = self._once(eps, saddle, estimate, self._tolerance_at(eps, tilt)) if estimate > LEAST_ESTIMATE else None
        if once is None:
            return high, False
        return min(high, once[0].upper), once[0].lower > -math.inf

    def _tolerance_at(self, eps: float, tilt: _Tilt) -> float:
        """Return the goal for the gap of log delta: `_tolerance` times eps times the tilt (about minus the slope of log delta)."""
        return self._tolerance * max(tilt.theta * eps, 1.0)

    def _once(self, eps: float, saddle: int, estimate: float, tolerance: float) -> tuple[Interval, float, InversionAccount] | None:
        """Return (bounds of the log divergence, log of the integral, how it was computed), or None if this would take too long.

        The error of the integral is about tolerance * e^estimate.
        """
        place, spacing, count = self._contour(eps, saddle, estimate, tolerance)
        if count > TABLE_SIZE or count * sum(part.points for part, _ in self._part(place).parts) > self._most:
            return None
        theta = self._tilt(place).theta
        nodes = self._nodes.of((place, spacing, count), partial(_nodes, self._part(place), theta, spacing, count))
        bounds, size = self._read(nodes, self._window(saddle), place, spacing, eps)
        return bounds, size, InversionAccount(theta, spacing, count)

    def _contour(self, eps: float, saddle: int, estimate: float, tolerance: float) -> tuple[int, float, int]:
        """Return (k, spacing of the nodes, number of nodes) of the contour with the tilt RATIO**k.

        The three numbers are chosen such that each error term is about tolerance * e^estimate, where `estimate` approximates the
        log divergence. A number of nodes above TABLE_SIZE means that no contour is possible.
        """
        goal = estimate + math.log(tolerance)
        window = self._window(saddle)
        lower = window.places.index(saddle) + 1
        left = np.logaddexp(0.0, -goal) / window.theta[:lower]
        # The error term of the trapezoidal rule with k = 1 (module docstring) is bounded by the Chernoff bound at a larger tilt;
        # adding 0.7 > log 2 covers the sum of all terms with k > 0.
        beyond = np.maximum(window.chernoff(eps) - goal, 0.0) + 0.7
        with np.errstate(divide="ignore"):
            right = (beyond / window.apart[:lower]).min(axis=1)
        needed = np.maximum(left, right)
        # A tilt is excluded if the integrand at t = 0 exceeds the integral by more than a factor e^digits: up to this factor the
        # rounding error, about 1e-14 of the integrand, is below the tolerance. More digits: more cancellation. Fewer digits: fewer
        # tilts, so the period may be longer.
        digits = min(16.0, math.log(tolerance / 1e-14))
        needed[:-1][window.heights(eps)[: lower - 1] > estimate + digits] = math.inf
        index = int(np.argmin(needed))
        best, period = window.places[index], float(needed[index])
        if period == math.inf:
            return best, 1.0, TABLE_SIZE + 1
        spacing = 2 * math.pi / _rounded_up(period)
        if self._part(best).cumulant == math.inf:
            return best, spacing, TABLE_SIZE + 1
        count = self._last(best, eps, goal, spacing) / spacing + 2
        if not count <= TABLE_SIZE:
            return best, spacing, TABLE_SIZE + 1
        return best, spacing, math.ceil(_rounded_up(count))

    def _window(self, saddle: int) -> _Window:
        """Return the tilts around the saddle point RATIO**saddle for which the moment generating function is known."""
        def made() -> _Window:
            places = [saddle + offset for offset in OFFSETS if saddle + offset >= TILTS[0]]
            return _Window.of([(place, tilt) for place in places if (tilt := self._known(place)) is not None])

        return self._windows.of(saddle, made)

    def _last(self, place: int, eps: float, goal: float, spacing: float) -> float:
        """Return a frequency beyond which the integral is below e^goal, or inf if none is found.

        `place` is the exponent of the tilt, `spacing` the distance of the nodes.
        """
        tilt = self._tilt(place)
        top = self._part(place).cumulant - tilt.theta * eps

        def enough(step: int) -> bool:
            frequency = FREQUENCY_RATIO**step
            return top + self._decay(place, step) - math.log(math.pi * frequency) <= goal

        most = math.ceil(math.log(TABLE_SIZE * spacing) / math.log(FREQUENCY_RATIO))
        first = min(math.floor(math.log(4 / math.sqrt(tilt.curvature)) / math.log(FREQUENCY_RATIO)), most)
        step = least_int(enough, first, most)
        return math.inf if step is None else FREQUENCY_RATIO**step

    def _decay(self, place: int, step: int) -> float:
        """Return a bound of log |E e^(z L)|, z = theta + i t, relative to its value at t = 0, for all frequencies t >=
        FREQUENCY_RATIO**step.
        """
        def made() -> float:
            return math.fsum(times * part.decay(FREQUENCY_RATIO**step) for part, times in self._part(place).parts)

        return self._decays.of((place, step), made)

    def _read(self, nodes: _Nodes, window: _Window, place: int, spacing: float, eps: float) -> tuple[Interval, float]:
        """Return bounds of the log divergence at eps, and the log of the value of the trapezoidal rule.

        This log is -inf if the value is below its error.
        """
        tilt, size = self._tilt(place), nodes.integrand.size
        period = 2 * math.pi / spacing
        turned = nodes.integrand[1:] * np.exp((-1j * spacing * eps) * np.arange(1, size))
        total = float(nodes.integrand[0].real) + 2 * float(turned.real.sum())
        error = nodes.error + nodes.rounding + ULP * eps * nodes.turning
        total, error = (value * spacing / (2 * math.pi) for value in (total, error * (1 + MARGIN)))
        cumulant = self._part(place).cumulant
        base = cumulant - tilt.theta * eps
        # The transforms are evaluated at the double nearest to theta + 1. The rounding error e of theta + 1 changes the cumulant K
        # by about e K'(theta); `slack` includes this change.
        slack = 8 * ULP * (1 + abs(cumulant) + (tilt.theta + 1) * (eps + abs(tilt.mean)))
        # `_decay` bounds the absolute value of the transform for all frequencies above a power of FREQUENCY_RATIO. Here it is
        # called with the largest such power that is at most the frequency of the last node.
        last = spacing * (size - 1)
        step = math.floor(math.log(last) / math.log(FREQUENCY_RATIO) - MARGIN)
        decay = self._decay(place, step) + MARGIN
        error += capped_exp(decay) / (math.pi * last) * (1 + MARGIN)
        # `left` and `right` bound the sums of the error terms of the trapezoidal rule with k < 0 and with k > 0 (module docstring),
        # divided by e^base.
        width = tilt.theta * period * (1 - 1e-12)
        left = capped_exp(-base - width - math.log(-math.expm1(-width)))
        after = slice(window.places.index(place) + 1, None)
        apart = (window.theta[after] - tilt.theta) * (period * (1 - MARGIN))
        log_right = window.chernoff(eps)[after] - base - apart - np.log(-np.expm1(-apart))
        right = capped_exp(float(log_right.min(initial=LARGEST_EXPONENT)))
        low, high = total - error - (left + right) * (1 + MARGIN), total + error
        return Interval(
            base + math.log(low) - slack if low > 0 else -math.inf,
            base + math.log(high) + slack if high > 0 else -math.inf,
        ), base + math.log(total) if total > error else -math.inf


def _polar(differences: NDArray[np.complex128]) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return for complex d: abs(1 + d), its log, the angle of 1 + d, and a bound of rounding errors in ulp.

    The bound is for the errors of the log and of the angle together.
    """
    real, imaginary = differences.real, differences.imag
    modulus = np.maximum(np.hypot(1 + real, imaginary), 1e-300)
    excess = 2 * real + (real * real + imaginary * imaginary)
    log_modulus = np.where(excess > -0.75, 0.5 * np.log1p(np.maximum(excess, -0.75)), np.log(modulus))
    angle = np.arctan2(imaginary, 1 + real)
    blur = 4 * (np.abs(log_modulus) + np.abs(angle)) + 16 * np.minimum(np.abs(differences), 1.0)
    return modulus, log_modulus, angle, blur


def _nodes(tilted: _Parts, theta: float, spacing: float, count: int) -> _Nodes:
    r"""Return the integrand :math:`e^{K(z) - K(\theta)} / (z (z + 1))` at the nodes, and bounds of its errors."""
    size, turn = np.zeros(count), np.zeros(count)
    growth, rounding = np.zeros(count), np.full(count, 64.0)
    for part, times in tilted.parts:
        differences, error = part.spectrum(spacing, count)
        modulus, log_modulus, angle, blur = _polar(differences)
        size += times * log_modulus
        turn += times * angle
        growth += times * np.log1p(error / modulus)
        rounding += times * blur
    frequency = spacing * np.arange(count)
    z = theta + 1j * frequency
    weight = 1 / (z * (z + 1))
    sizes = np.exp(size) * np.abs(weight)
    both = np.full(count, 2.0)
    both[0] = 1.0
    sizes *= both
    with np.errstate(over="ignore", invalid="ignore"):
        # `growth` is n log(1 + error/|r|), where r is the transform of one release, |r| its absolute value, and n the number of
        # releases. If growth >= 1, r may be no larger than its error. Then the error of r^n is bounded by (|r| + error)^n,
        # otherwise by (|r| + error)^n - |r|^n.
        wrong = np.where(growth < 1, sizes * np.expm1(np.minimum(growth, 1.0)), np.exp(size + growth) * np.abs(weight) * both)
    integrand = np.asarray(np.exp(size + 1j * turn) * weight, dtype=np.complex128)
    return _Nodes(integrand, float(wrong.sum()), float(ULP * (rounding @ sizes)) + 1e-300, float(4 * (frequency @ sizes)))
