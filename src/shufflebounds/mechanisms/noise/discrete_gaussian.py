"""The discrete Gaussian mechanism, which adds whole-number noise instead of normal noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import (
    BLOCK,
    FIRST_TAIL,
    LARGE_TABLE_SIZE,
    LARGEST_EXPONENT,
    MANY,
    MOST_ENUMERATED,
    NEGLIGIBLE,
    ON_GRID,
    TABLE_SIZE,
    UNDERFLOW_EXPONENT,
)
from shufflebounds._base.scipy_functions import ndtri_exp
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray
from shufflebounds._engines.datasets.cases import DatasetLaws
from shufflebounds._engines.excess.excess_law import PairLaws
from shufflebounds._engines.inputs.integer_mu import mu_bounds
from shufflebounds._engines.inputs.interval import BLUR, checked, group_outcomes, interval_laws
from shufflebounds._engines.inputs.interval_cases import DiscreteGaussianNoise, interval_datasets
from shufflebounds._engines.inputs.noise_outputs import NoiseOutputs, whole_normal_outputs
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses
from shufflebounds.mechanisms._base import AdditiveNoise, exact_product, shift_by_error
from shufflebounds.tradeoff import Tradeoff
from shufflebounds.tradeoff.piecewise import Piecewise

__all__ = ["DiscreteGaussianMechanism"]


@dataclass(frozen=True, eq=False)
class _Shift(ClosedForms):
    """Discrete Gaussian noise, and the same noise plus the sensitivity."""

    sigma: float
    sensitivity: int

    @property
    def mu_in_tails(self) -> float:
        return self.sensitivity / self.sigma * (1 - 2 * ULP)

    @cached_property
    def log_total(self) -> float:
        """The log of the sum of all e^(-k^2/(2 sigma^2))."""
        return math.log(_theta(self.sigma))

    def tail_sums(self, start: FloatArray, gain_from: FloatArray | None = None) -> IntervalArray:
        r"""Return bounds of the log of :math:`\sum_{j \ge start} p_j g_j` for each start.

        p_j is the probability of the noise j. g_j is 1, or, if `gain_from` is given, the positive part of 1 - e^(gain_from -
        loss_j).
        """
        rows = max(1, int(BLOCK / (30 * self.sigma + 3)))  # by the largest number of terms of a sum
        if start.size > rows:
            parts = [slice(i, i + rows) for i in range(0, start.size, rows)]
            sums = [self.tail_sums(start[part], None if gain_from is None else gain_from[part]) for part in parts]
            return IntervalArray(*np.concatenate(sums, axis=1))
        s, d = self.sigma, float(self.sensitivity)
        # The sum is over the range of the largest terms. This range extends beyond the mode of p_j, because g_j increases over part
        # of it if the threshold is far below 0.
        reach = s * math.sqrt(2 * NEGLIGIBLE)
        first = np.maximum(start, -math.ceil(1.5 * reach))
        step = np.maximum(first, 0.0) / (s * s)
        near = np.where(first > 0, (np.sqrt(step * step + 2 * (NEGLIGIBLE + 30) / (s * s)) - step) * s * s, 1.6 * reach - first)
        j = first[:, None] + np.arange(math.ceil(near.max(initial=0.0)) + 3)
        low = high = np.ones_like(j)
        exponent = -0.5 * (j / s) ** 2
        if gain_from is not None:
            # 2 sigma^2 (loss - eps) is a whole number minus a double-double, so its relative error is small even near 0.
            square, square_low = exact_product(s, s)
            p, p_low = exact_product(2 * gain_from, square)
            gap = ((d * (2 * j + d) - p[:, None]) - (p_low + 2 * gain_from * square_low)[:, None]) / (2 * square)
            exponent[gap <= 0] = -np.inf
            gap = np.maximum(gap, 0.0)
            low, high = -np.expm1(-gap * (1 - 6 * ULP)), -np.expm1(-gap * (1 + 6 * ULP))
        place = (np.arange(first.size), exponent.argmax(axis=1))
        top = exponent[place]
        weight = np.exp(exponent - top[:, None])
        noise = ULP * (6 * np.where(weight > 0, np.abs(exponent), 0.0) + 6)
        size = ULP * (j.shape[1] + 8)
        # In the extreme tail the relative errors of the weights may exceed 1; the lower bound is then the largest term alone.
        below = np.maximum((weight * low * (1 - noise)).sum(axis=1) * (1 - size), low[place])
        above = (weight * high * (1 + noise)).sum(axis=1) * (1 + size)
        # Beyond the last term the masses decrease at least geometrically, and by symmetry also before the first term.
        after = weight[:, -1] / -np.expm1(-(2 * j[:, -1] + 1) / (2 * s * s))
        before = np.where(first > start, weight[:, 0] / -np.expm1(-(2 * np.abs(first) + 1) / (2 * s * s)), 0.0)
        above += (after + before) * (1 + 1e-9)
        shift = top - self.log_total
        error = ULP * (8 + 4 * np.abs(shift))
        return IntervalArray(shift + np.log(below) - error, shift + np.log(above) + error)

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        s, d = self.sigma, self.sensitivity
        # The threshold m is limited to 2^31, so that its product with twice the sensitivity is an exact double.
        largest = 2.0**31 * d / (s * s)
        capped = np.minimum(eps, largest)
        m = capped * s * s / d - d / 2
        # The sum starts one or two terms earlier, because the threshold may have been rounded up.
        start = np.floor(m - 4 * ULP * (np.abs(m) + d))
        lower, upper = self.tail_sums(start, capped)
        return IntervalArray(np.where(eps > largest, -np.inf, lower), upper)

    def atoms(self, log_tail: float) -> LossAtoms:
        s, d = self.sigma, float(self.sensitivity)
        last = min(math.floor(s * math.sqrt(2 * UNDERFLOW_EXPONENT)), LARGE_TABLE_SIZE)
        total = self.log_total
        k = np.arange(-last, last + 1.0)
        log_p = -0.5 * (k / s) ** 2 - total
        # The masses beyond the last outcome decrease at least geometrically, so their sum is bounded by a geometric series.
        beyond = last + 1.0
        log_lost = math.log(2) - 0.5 * (beyond / s) ** 2 - math.log(-math.expm1(-(2 * beyond + 1) / (2 * s * s))) - total
        loss = d * (2 * k + d) / (2 * s * s)
        slack = ULP * (16 + 6 * float(np.abs(log_p).max()))
        return LossAtoms(log_p, loss, -math.inf, -math.inf, log_lost * (1 - 8 * ULP), slack, 6 * ULP * float(np.abs(loss).max()))

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray:
        out = orders * (self.sensitivity / self.sigma) ** 2 / 2
        for i, step in enumerate(orders - 1):
            c = float(step) * self.sensitivity
            part = c - round(c) if c < 2.0**53 else 0.0
            if part:
                out[i] += _log_theta_ratio(self.sigma, part) / float(step)
        return shift_by_error(out, 512 * ULP, upper)

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff | None:
        if upper or self.sigma > 2000:
            return None
        reach = math.ceil(15 * self.sigma + 2)
        k = np.arange(float(-reach), reach + self.sensitivity + 1)
        total = self.log_total
        laws = [-0.5 * ((k - shift) / self.sigma) ** 2 - total for shift in (0, self.sensitivity)]
        knots = LossAtoms.of(laws[0], laws[1], error=ULP * (16 + 4 * float(np.abs(laws[0]).max()))).knots(upper=upper)
        return None if knots is None else Tradeoff(Piecewise(knots, None, side=-1))

    def mu(self, upper: bool) -> float:
        return self._mu[upper]

    @cached_property
    def _mu(self) -> Interval:
        return mu_bounds(self.sigma, self.sensitivity, self.log_total, lambda k: self.tail_sums(np.array([k])).alone())

    @property
    def eps_scale(self) -> float:
        return max(1.0, (self.sensitivity / self.sigma) ** 2)


@dataclass(frozen=True)
class DiscreteGaussianMechanism(AdditiveNoise):
    r"""A whole number plus noise of probability proportional to :math:`e^{-k^2/(2\sigma^2)}`.

    .. math::
        \delta(\varepsilon) = \sum_{j > m} p_j \Bigl(1 - e^{\varepsilon - \Delta(2j + \Delta)/(2\sigma^2)}\Bigr), \qquad
        m = \frac{\sigma^2 \varepsilon}{\Delta} - \frac{\Delta}{2}

    Here :math:`p_j` is the probability that the noise is j, and :math:`\Delta` is `sensitivity`.

    Parameters
    ----------
    sigma : float
        Parameter of the distribution, in [0.001, 1e5]; the standard deviation is slightly smaller.
    sensitivity : int
        :math:`\Delta`, the largest difference of neighbouring values, 1 to 2**20, at most 1e4 sigma.

    Notes
    -----
    Neighbours: the whole number differs by at most `sensitivity`; the largest shift is the worst, as the distribution is
    log-concave. delta is exact for the mechanism.

    The sum over j ends at terms below a relative e^-45; the rest is bounded by a geometric series and added to the upper bound. The
    gap is a relative 1e-13 of delta, or a few ulp of log delta if that is larger.

    The Renyi divergence of order a is at most a Delta^2/(2 sigma^2), with equality if a Delta is a whole number. Up to
    sigma = 2000 the lower bound of :meth:`tradeoff` has a vertex for every outcome, except for the outcomes in the lower and in the
    upper tail of mass e^-100.

    :meth:`gdp_mu` is slightly above Delta/sigma. The relative gap of mu is below 1e-9 for sigma up to 186, and below 2e-5 beyond.

    There is no pure budget. The messages of :meth:`shuffled` keep the tails of the noise; only the computation truncates them, and
    adds at most their probability to the upper bound of delta. :meth:`randomize` draws by rejection from a double geometric
    distribution in double precision, so probabilities have a relative error of about 1e-15.

    References
    ----------
    Canonne, C., Kamath, G., Steinke, T. The discrete Gaussian for differential privacy, 2020, Theorem 7 and Algorithm 3.

    Examples
    --------
    >>> from shufflebounds.mechanisms import DiscreteGaussianMechanism
    >>> noise = DiscreteGaussianMechanism(sigma=2.0)
    >>> print(f"{noise.delta(1.0):.12f} {noise.error_quantile(0.01)}")
    0.007248776846 5.0
    >>> round(noise.rdp(2.0), 12)
    0.25
    """

    sigma: float
    sensitivity: int = 1

    theorem: ClassVar[str] = "exact for discrete Gaussian noise (Canonne, Kamath, Steinke 2020, Theorem 7)"
    neighbours: ClassVar[str] = "the whole number differs by at most `sensitivity`"
    whole: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _validate.real_field(self, "sigma", 1e-3, 1e5)
        _validate.integer_field(self, "sensitivity", 1, 2**20)
        if self.sensitivity > 1e4 * self.sigma:
            raise ValueError(f"sensitivity={self.sensitivity} must be at most 1e4 times sigma={self.sigma:g}")

    @cached_property
    def _pair(self) -> _Shift:
        return _Shift(self.sigma, self.sensitivity)

    def describe(self) -> DominatingPairInfo:
        pair, step = self._pair, self.sensitivity / self.sigma**2
        losses = Losses(pair.atoms, (step * self.sensitivity / 2, step), on_lattice=True)
        return DominatingPairInfo(pair.log_delta, losses=losses, attained=SINGLE)

    @property
    def _noise_outputs(self) -> NoiseOutputs | None:
        return whole_normal_outputs(self.sigma, self.sensitivity, self.closed_forms().log_total, self._log_tail)

    def closed_forms(self) -> _Shift:
        return self._pair

    @property
    def _deepest_cut(self) -> float:
        """The `log_cut` of `excess_laws` for upper bounds at very small delta.

        -inf means that there are no such bounds: likelihood ratios would overflow, or more than MANY outcomes would remain.
        """
        s = self.sigma / self.sensitivity
        farthest = 0.5 + s * math.sqrt(2 * LARGEST_EXPONENT)
        fits = farthest < LARGEST_EXPONENT * s * s and 2 * farthest * self.sensitivity < MANY
        return -LARGEST_EXPONENT if fits else -math.inf

    def _cut(self, log_cut: float) -> int:
        """Return the number of outputs that are kept on each side of the interval if the mass e^log_cut may be truncated."""
        return max(1, math.ceil(self.sigma * math.sqrt(-2 * min(log_cut, -1.0))))

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        cells, log_cut = checked(cells, log_cut)
        # The two ends of the interval 0..sensitivity are the worst pair of inputs.
        s, d = self.sigma, self.sensitivity
        cut = self._cut(log_cut)
        # `y` are the outcomes from the middle downwards, beyond the cut until their masses underflow.
        y = d // 2 - np.arange(d // 2 + cut + math.ceil(40 * s) + 2.0)
        total = self._pair.log_total
        near, far = (-0.5 * ((y - x) / s) ** 2 - total for x in (0.0, float(d)))
        if d % 2 == 0:
            # Each half of the outcomes gets half of the mass of the middle outcome.
            near[0] -= math.log(2)
            far[0] -= math.log(2)
        loss = d * (d - 2 * y) / (2 * s * s)
        kept = int((y >= -cut).sum())
        parts = group_outcomes(far[:kept], near[:kept], loss[:kept], max(1, cells // 2))
        beyond = [np.logaddexp.reduce(log[kept:]) for log in (far, near)]
        ends = (*beyond, loss[kept], math.inf)
        log_far, log_near, low, high = (np.append(part, end) for part, end in zip(parts, ends))
        return interval_laws(log_far, log_near, low, high, unbounded_loss=True, loss_error=BLUR)

    def dataset_laws(self) -> DatasetLaws | None:
        s, d = self.sigma, self.sensitivity
        cut = max(1, math.ceil(s * math.sqrt(120)))
        if 2 * cut + d > MOST_ENUMERATED or d * (d + 2 * cut + 1) > TABLE_SIZE:
            return None

        def ratio_tail(t: FloatArray) -> FloatArray:
            # Under input 0 the ratio R_0/R_d exceeds t at outputs k < d/2 - s^2 log(t)/d.
            starts = np.ceil(s * s * np.log(t) / d - 0.5 * d - ON_GRID)
            return np.exp(np.minimum(self._pair.tail_sums(starts).upper, 0.0))

        # The truncated outputs are below -cut and above d + cut; R_0^2/R_d is e^(d^2/s^2) times the distribution of the noise
        # around -d.
        (pair,) = self.excess_laws(cells=200)
        near, far, shifted = self._pair.tail_sums(cut + 1.0 + np.array([0.0, d, -d])).upper.tolist()
        norm = 2 * (math.exp(min((d / s) ** 2 + shifted, LARGEST_EXPONENT)) + math.exp(near) + math.exp(far))
        noise = DiscreteGaussianNoise(d / s, 1 / s, self._pair.log_total)
        return interval_datasets(noise, pair.upper, math.inf, ratio_tail, log_left_out=far, cut_norm=norm)

    @property
    def variance(self) -> float:
        r"""Variance of the noise and of :meth:`estimate`; for sigma >= 2.5 it is sigma**2 up to rounding."""
        s = self.sigma
        if s >= 1:
            k = np.arange(1.0, 4.0)
            dual = np.exp(-2 * (math.pi * s * k) ** 2)
            return s * s * (1 - 8 * (math.pi * s) ** 2 * float((k * k * dual).sum()) / (1 + 2 * float(dual.sum())))
        k = np.arange(1.0, 12.0)
        mass = np.exp(-0.5 * (k / s) ** 2)
        return 2 * float((k * k * mass).sum()) / (1 + 2 * float(mass.sum()))

    def _noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
        s = self.sigma
        scale = math.floor(s) + 1
        prob = -math.expm1(-1 / scale)
        out = np.empty(math.prod(shape), dtype=np.int64)
        todo = np.arange(out.size)
        while todo.size:
            drawn = rng.geometric(prob, size=todo.size) - rng.geometric(prob, size=todo.size)
            kept = rng.random(todo.size) < np.exp(-0.5 * ((np.abs(drawn) - s * s / scale) / s) ** 2)
            out[todo[kept]] = drawn[kept]
            todo = todo[~kept]
        return out.reshape(shape)

    def _log_tail(self, t: float) -> float:
        # Larger t are replaced by 1e9 sigma, where the probability underflows.
        return math.log(2) + self._pair.tail_sums(np.array([min(t, 1e9 * max(1.0, self.sigma)) // 1 + 1])).alone().upper

    def _near_quantile(self, log_prob: float) -> float:
        return -self.sigma * float(ndtri_exp(min(log_prob, -1e-300) - math.log(2)))


def _theta(s: float) -> float:
    r"""Return the sum of e^(-k^2/(2 s^2)) over all integers k, by Poisson summation for s >= 0.5."""
    k = np.arange(1.0, 9.0)
    if s < 0.5:
        return 1 + 2 * float(np.exp(-0.5 * (k / s) ** 2).sum())
    return math.sqrt(2 * math.pi) * s * (1 + 2 * float(np.exp(-2 * (math.pi * s * k) ** 2).sum()))


def _log_theta_ratio(s: float, c: float) -> float:
    r"""Return log(theta(c)/theta(0)) for c in [-1/2, 1/2], without cancellation; theta(c) = sum_k e^(-(k - c)^2/(2 s^2))."""
    k = np.arange(1.0, 9.0)
    if s >= 0.4:
        dual = np.exp(-2 * (math.pi * s * k) ** 2)
        return math.log1p(-4 * float((dual * np.sin(math.pi * k * c) ** 2).sum()) / (1 + 2 * float(dual.sum())))
    at = -0.5 * (c / s) ** 2
    if at < -0.5:
        beside = np.exp(-0.5 * k * (k - 2 * c) / (s * s)) + np.exp(-0.5 * k * (k + 2 * c) / (s * s))
        return at + math.log1p(float(beside.sum())) - math.log(_theta(s))
    # theta(c) - theta(0) is summed term by term with expm1, which avoids the cancellation of two nearly equal sums.
    log_mass = -0.5 * (k / s) ** 2
    moved = sum(_times_expm1(log_mass, at + sign * k * c / (s * s)) for sign in (1, -1))
    return math.log1p((math.expm1(at) + float(np.sum(moved))) / _theta(s))


def _times_expm1(log_mass: FloatArray, x: FloatArray) -> FloatArray:
    """Return e^log_mass (e^x - 1), also if e^x overflows and the mass underflows."""
    mass = np.exp(log_mass)
    return np.where(x > 1, np.exp(log_mass + np.maximum(x, 1.0)) - mass, mass * np.expm1(np.minimum(x, 1.0)))
