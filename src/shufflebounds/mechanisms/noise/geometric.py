"""The double geometric mechanism, which adds whole-number noise instead of Laplace noise, optionally clipped."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.crossing import Curve
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import BLOCK, COMPARED, DEEPEST, FIRST_TAIL, LARGEST_EXPONENT, MOST_ENUMERATED, ON_GRID, TABLE_SIZE
from shufflebounds._base.search import least_int
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, probability
from shufflebounds._engines.datasets.cases import DatasetLaws
from shufflebounds._engines.excess.excess_law import PairLaws
from shufflebounds._engines.inputs.interval import BLUR, checked, group_outcomes, interval_laws, matrix_laws
from shufflebounds._engines.inputs.interval_cases import GeometricNoise, interval_datasets
from shufflebounds._engines.inputs.noise_outputs import NoiseOutputs, geometric_outputs
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import SINGLE, Attained, DominatingPairInfo, Losses
from shufflebounds.mechanisms._base import AdditiveNoise, exact_product
from shufflebounds.mechanisms.noise.thresholded import ThresholdedCount
from shufflebounds.profile import DominatingPair
from shufflebounds.profile.calibration import least_count
from shufflebounds.tradeoff.representation import log1mexp

__all__ = ["GeometricMechanism"]

_MAX_BOUND = 2**50
"""Largest bound B of clipped noise. Up to this value, sums of the bound and the sensitivity are exact doubles. Raised: these sums
may be rounded. Lowered: ValueError for noise with a larger bound."""


class _Shifts(ClosedForms):
    """The noise of a `GeometricMechanism` and the noise plus a whole number, the shift, from 1 to the sensitivity."""

    __slots__ = ("bound", "eps", "rate", "sensitivity")

    def __init__(self, eps: float, sensitivity: int, bound: int | None) -> None:
        self.eps, self.sensitivity, self.bound = eps, sensitivity, bound
        self.rate = eps / sensitivity

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        # For eps far above the budget of the noise, delta is the probability of outcomes that are possible under one distribution
        # only.
        e = np.minimum(eps, 1e6)
        if self.bound is None:
            return self._free(e)
        if self.sensitivity > 2 * self.bound:
            return IntervalArray(np.zeros_like(e), np.zeros_like(e))
        low, high = np.full_like(e, -np.inf), np.full_like(e, -np.inf)
        # Shifts and eps are evaluated in blocks, so that arrays fit into the processor's cache.
        block = max(1, BLOCK // self.sensitivity)
        for first in range(1, self.sensitivity + 1, BLOCK):
            shifts = np.arange(first, min(first + BLOCK, self.sensitivity + 1), dtype=np.float64)
            for i in range(0, e.size, block):
                part = slice(i, i + block)
                sides = self._clipped(e[part], self.bound, shifts)
                low[part], high[part] = np.maximum(low[part], sides.lower), np.maximum(high[part], sides.upper)
        return IntervalArray(low, high)

    def few_shifts(self, eps: float) -> Interval:
        """Return bounds of the largest log delta over about a hundred shifts, including the smallest and the largest."""
        if self.bound is None or self.sensitivity > 2 * self.bound:
            return self.log_delta(np.array([eps])).alone()
        s = float(self.sensitivity)
        near = np.concatenate([[1.0, 2.0], np.round(np.geomspace(1, s, 64)), s - np.arange(min(s, 64.0)),
                               np.clip(self.bound + np.arange(-4.0, 5.0), 1, s), np.clip(2 * self.bound - np.arange(4.0), 1, s)])
        low, high = self._clipped(np.array([min(eps, 1e6)]), self.bound, np.unique(np.minimum(near, s)))
        return Interval(float(low[0]), float(high[0]))

    def rough(self, upper: bool) -> Curve | None:
        if self.bound is None or self.sensitivity <= 2**10:
            return None
        # For larger sensitivities, the approximate curve is the largest delta of a few shifts.
        return Curve(lambda eps: min(0.0, self.few_shifts(eps)[upper]))

    def epsilon(self, delta: float, upper: bool) -> float | None:
        if not upper or self.bound is None or delta == 0:
            return None
        # At the budget of the noise delta drops by a large factor, which a search may miss. So this eps is tested here. The
        # largest delta of a few shifts has the same drop.
        if not delta < probability(self.few_shifts(math.nextafter(self.eps, 0.0)).upper, True):
            return None
        return self.eps if probability(float(self.log_delta(np.array([self.eps])).upper[0]), True) <= delta else None

    def _gap(self, steps: FloatArray | float, e: FloatArray) -> FloatArray:
        """Return steps * eps/sensitivity - e with a small relative error, also if the two are nearly equal."""
        p, p_low = exact_product(self.eps, steps)
        r, r_low = exact_product(e, float(self.sensitivity))
        return np.asarray(((p - r) + (p_low - r_low)) / self.sensitivity)

    def _last(self, s: FloatArray | float, e: FloatArray) -> FloatArray:
        """Return the largest outcome k >= 0 whose privacy loss exceeds e, or 0 if there is none.

        For the shift s, the privacy loss of k is (s - 2k) * rate.
        """
        k = np.ceil((s - e / self.rate) / 2) - 1
        k = np.where(self._gap(s - 2 * k, e) > 0, k, k - 1)
        k = np.where(self._gap(s - 2 * (k + 1), e) > 0, k + 1, k)
        return np.asarray(np.maximum(k, 0))

    def _free(self, e: FloatArray) -> IntervalArray:
        """Return bounds of log delta of unclipped noise."""
        below = e < self.eps
        e = np.where(below, e, 0.0)
        s, rate = float(self.sensitivity), self.rate
        # In units of the rate, outcomes k <= 0 have the privacy loss s, and outcomes k = 1..last have the losses s - 2k, which
        # exceed e.
        last = self._last(s, e)
        gain = -np.expm1(e - self.eps)
        between = np.expm1(-last * rate) * np.expm1(-self._gap(s - last - 1, e))
        gain += math.exp(-rate) * np.where(last > 0, between, 0.0)
        value = np.log(gain) - math.log1p(math.exp(-rate))
        error = ULP * (24 + 2 * np.abs(value))
        return IntervalArray(np.where(below, value - error, -np.inf), np.where(below, value + error, -np.inf))

    def _clipped(self, e: FloatArray, bound: int, shifts: FloatArray) -> IntervalArray:
        """Return bounds of the largest log delta of clipped noise over these shifts."""
        rate = self.rate
        q = math.exp(-rate)
        # The relative error of log(1 - q) has to be small: it is part of gaps, and may be far below an ulp of 1.
        log_rest = float(log1mexp(np.array(-rate)))
        s = shifts[:, None]
        # `touching` marks the shifts for which only one outcome, an end of each, is possible under both distributions.
        touching = s == 2 * bound
        before = s - bound - 1
        first = np.maximum(1, s - bound + 1)
        last = np.minimum(bound - 1, self._last(s, e))
        size_between = np.maximum(last - first + 1, 0)
        ends = np.where(touching, 0.0, log_rest)
        with np.errstate(divide="ignore"):
            # Each entry of the list is for one class of outcomes with equal loss. It has three numbers: the log of (1 + q) times
            # the mass of the class, the gap loss - e, and a size to which the rounding error of the gap is proportional. The class
            # adds mass * (1 - e^-gap) to delta.
            classes: list[tuple[FloatArray, FloatArray, FloatArray | float]] = [
                # The first class consists of the outcomes that are impossible under the other distribution.
                (np.where(before <= 0, before * rate, np.log1p(q * -np.expm1(-np.maximum(before, 0.0) * rate))),
                 np.full_like(s, np.inf), 0.0),
                # The second class is the lower end of the other distribution.
                (np.where(touching, -bound * rate, log_rest - np.abs(s - bound) * rate),
                 ends + self._gap(np.where(touching, 0.0, bound - np.abs(s - bound)), e), np.abs(ends)),
                # The next two classes lie between the ends of both distributions: the outcomes k <= 0, and the outcomes
                # first..last.
                (np.log(-np.expm1(-np.maximum(bound - s, 0.0) * rate)), self._gap(s, e), 0.0),
                (np.log(-np.expm1(-size_between * rate)) - first * rate, self._gap(s - last - first, e), 0.0),
                # The last class is the upper end of the first distribution.
                (np.where(touching, -np.inf, -bound * rate), -log_rest + self._gap(np.abs(bound - s) - bound, e), abs(log_rest)),
            ]
        masses, gaps, parts = (np.stack(np.broadcast_arrays(*column)) for column in zip(*classes))
        size = np.where(np.isfinite(gaps), np.abs(gaps), 0.0) + 2 * parts
        sides = []
        for side in (-1, 1):
            moved = np.maximum(gaps + side * 4 * ULP * size, 0.0)
            with np.errstate(divide="ignore"):
                terms = masses + np.log(-np.expm1(-moved))
            value = np.logaddexp.reduce(terms).max(axis=0) - math.log1p(q)
            sides.append(value + side * ULP * (24 + 6 * np.abs(value)))
        return IntervalArray(*sides)

    def classes(self) -> tuple[FloatArray, FloatArray]:
        """Return the log masses of the classes k <= 0, k = 1, ..., s - 1 and k >= s, for unclipped noise and noise plus s."""
        k = np.arange(0.0, self.sensitivity + 1)
        log_p = math.log(-math.expm1(-self.rate)) - k * self.rate
        log_p[0], log_p[-1] = 0.0, -self.eps
        log_p -= math.log1p(math.exp(-self.rate))
        return log_p, log_p[::-1]

    def losses(self) -> Losses:
        """Return the description of the losses of the pair of the largest shift."""
        # Clipped noise has outcomes that are impossible for the shifted noise.
        unbounded = self.bound is not None
        if unbounded and self.sensitivity > 1:
            return Losses(lattice=(self.eps, 2 * self.rate), unbounded=unbounded)
        # With bound 1 there is no privacy loss strictly between those of the two ends, so there is no lattice.
        lattice = None if self.bound == 1 else (self.eps, 2 * self.rate)
        return Losses(self._atoms, lattice, lattice is not None, unbounded=unbounded)

    def _atoms(self, log_tail: float) -> LossAtoms:
        rate = self.rate
        if self.bound is None:
            log_p = np.ascontiguousarray(self.classes()[0][::-1])
            loss = rate * np.arange(-self.sensitivity, self.sensitivity + 1.0, 2.0)
            slack = ULP * (24 + 4 * float(np.abs(log_p).max()))
            return LossAtoms(log_p, loss, -math.inf, -math.inf, -math.inf, slack, 4 * ULP * self.eps)
        end, log_rest = -self.bound * rate, math.log(-math.expm1(-rate))
        with np.errstate(divide="ignore"):
            inner = float(np.log(-np.expm1(-(self.bound - 1) * rate)))
        # The four classes are k <= 0 and k > 0 between the ends, the lower end of the second distribution, and the upper end of the
        # first one.
        log_p = np.array([inner, inner - rate, log_rest + end + rate, end]) - math.log1p(math.exp(-rate))
        loss = np.array([rate, -rate, log_rest + rate, -log_rest - rate])
        order = np.argsort(loss, kind="stable")
        order = order[log_p[order] > -np.inf]
        lost = -math.inf
        if end + rate < DEEPEST:
            # Atoms with a log mass below DEEPEST count as truncated: the rounding error of such a log mass would dominate `slack`,
            # the error bound that all atoms share.
            order, lost = order[log_p[order] > DEEPEST], end + rate + 2
        slack = ULP * (24 + 4 * float(np.abs(log_p[order]).max()))
        loss_error = ULP * (8 + 4 * float(np.abs(loss).max()))
        # One end of each distribution is impossible under the other one.
        alone = end - math.log1p(math.exp(-rate))
        return LossAtoms(log_p[order], loss[order], alone, alone, lost, slack, loss_error)

    def attained(self) -> Attained:
        """Return the pair of the largest shift, or nothing if its outcomes are not enumerated."""
        bound, s = self.bound or 0, self.sensitivity
        if s == 1 or not bound:
            return SINGLE
        if not s < min(bound, MOST_ENUMERATED):
            return Attained()
        # This is the pair of the largest shift s, which neighbours attain. The classes of outcomes are: the outcomes possible under
        # the first distribution only; the lower end of the second distribution; k <= 0, k = 1, ..., s - 1 and k >= s between the
        # ends; and the upper end of the first distribution.
        rate, log_rest = self.rate, math.log(-math.expm1(-self.rate))
        k = np.arange(1.0, s)
        outer, end, inner = -(bound - s + 1) * rate, -bound * rate, math.log(-math.expm1(-(bound - s) * rate))
        near = log_rest - (bound - s) * rate
        log_p = np.array([outer, near, inner, *(log_rest - k * rate), inner - s * rate, end, -np.inf]) - math.log1p(math.exp(-rate))
        log_q = log_p[::-1]
        # `from_pmfs` treats masses as exact, so P is rounded down and Q is rounded up for a lower bound.
        size = np.where(log_p > -np.inf, np.abs(log_p), 0.0)
        pair = DominatingPair.from_pmfs(log_p - ULP * (16 + 4 * size), np.minimum(log_q + ULP * (16 + 4 * size[::-1]), 0.0))
        return Attained(profiles=lambda: (pair,))


@with_passages
@dataclass(frozen=True)
class GeometricMechanism(AdditiveNoise):
    r"""A whole number plus noise of probability :math:`\frac{1-q}{1+q} q^{|k|}`, :math:`q = e^{-\varepsilon/\Delta}`.

    With a bound B the noise is clipped to [-B, B], which moves the mass of its tails to -B and B: errors never exceed B, and delta
    is positive at every eps. For sensitivity 1 and B >= 2,

    .. math:: \delta(\varepsilon) = \frac{q^B + (q^B + q^{B-1} - q^{B-2})_+}{1 + q} \le q^{B-1}

    Parameters
    ----------
    eps : float
        Budget of the noise without clipping, in nats, in (0, 700]; eps/sensitivity must be at least 1e-12.
    sensitivity : int
        :math:`\Delta`, the largest difference of neighbouring values, 1 to 2**20.
    bound : int, optional
        B, 1 to 2**50; no clipping by default.

    Notes
    -----
    Neighbours: the whole number differs by at most `sensitivity`. delta is exact: it is a sum over classes of outcomes with equal
    likelihood ratio. Without a bound the largest shift is the worst, as the distribution is log-concave; with a bound delta is
    the maximum over all shifts up to `sensitivity`.

    Noise that is truncated at B and renormalized instead of clipped is another mechanism, with another delta: pass its
    probabilities to :meth:`DominatingPair.from_pmfs <shufflebounds.profile.DominatingPair.from_pmfs>`.

    With a bound, the target may send an output that no other user can send, which identifies the target's message even after a
    shuffle. The noise is drawn
    with NumPy's double-precision sampler, so probabilities have a relative error of about 1e-15.

    References
    ----------
    Ghosh, A., Roughgarden, T., Sundararajan, M. Universally utility-maximizing privacy mechanisms, 2009.

    Abowd, J., et al. The 2020 Census disclosure avoidance system: geometric mechanism and its truncation, as surveyed by Das.

    Examples
    --------
    >>> from shufflebounds.mechanisms import GeometricMechanism
    >>> noise = GeometricMechanism(0.5)
    >>> print(f"{noise.variance:.9f} {noise.error_quantile(0.01)}")
    7.835396178 9.0
    >>> GeometricMechanism.from_dp(eps=0.5, delta=5e-7)
    GeometricMechanism(eps=0.5, sensitivity=1, bound=29)
    """

    eps: float
    sensitivity: int = 1
    bound: int | None = None

    theorem: ClassVar[str] = "exact for double geometric noise, clipped where a bound is given"
    neighbours: ClassVar[str] = "the whole number differs by at most `sensitivity`"
    whole: ClassVar[bool] = True
    _scaled: ClassVar[tuple[str, ...]] = ("eps", "sensitivity")

    def __post_init__(self) -> None:
        _validate.real_field(self, "eps", 0, LARGEST_EXPONENT, open_low=True)
        _validate.integer_field(self, "sensitivity", 1, TABLE_SIZE)
        if self.bound is not None:
            _validate.integer_field(self, "bound", 1, _MAX_BOUND)
        if self.eps / self.sensitivity < 1e-12:
            raise ValueError(f"eps={self.eps:g} must be at least 1e-12 times sensitivity={self.sensitivity}")

    @property
    def _rate(self) -> float:
        """The rate -log q at which the log probabilities of the noise decrease with its absolute value."""
        return self.eps / self.sensitivity

    @classmethod
    def from_dp(cls, *, eps: float, delta: float, sensitivity: int = 1) -> Self:
        """Return the clipped mechanism of budget `eps` with the smallest bound that is (eps, delta)-differentially private.

        Parameters
        ----------
        eps : float
            Target privacy loss in nats, and budget of the noise, in (0, 700].
        delta : float
            Target failure probability, in (0, 1). Above 1e-3 a UserWarning says what such a delta means.
        sensitivity : int
            Largest difference of neighbouring values, 1 to 2**20.

        Returns
        -------
        GeometricMechanism
            Its upper delta at `eps` has been evaluated and is at most `delta`.

        {raises}
        InfeasibleError
            If no bound up to 2**50 meets the target (a ValueError).
        """
        eps, delta = _validate.target(eps, delta, open_eps=True, most_eps=LARGEST_EXPONENT)
        sensitivity = _validate.integer("sensitivity", sensitivity, 1, TABLE_SIZE)

        # For bounds below `guess`, delta for one of a few shifts already exceeds the target, so the search starts at `guess`.
        guess = least_int(lambda bound: _Shifts(eps, sensitivity, bound).few_shifts(eps)[1] <= math.log(delta), 1, _MAX_BOUND) or 1
        bound = least_count(lambda bound: cls(eps, sensitivity, bound), eps, delta, low=max(1, guess - 1), high=_MAX_BOUND,
                            guess=guess)
        if bound is None:
            raise _validate.InfeasibleError(f"delta={delta:g} cannot be met at eps={eps:g}: bound=2**50 is not enough")
        return cls(eps, sensitivity, bound)

    def thresholded(self, threshold: int) -> ThresholdedCount:
        """Return the guarantee of counts that are released only if they are positive and the noisy count is at least a threshold.

        Parameters
        ----------
        threshold : int
            The smallest noisy count that is released, above the sensitivity, up to 2**50.

        Returns
        -------
        ThresholdedCount
            The guarantee if the keys are not known beforehand. For a fixed list of keys a threshold is only post-processing.

        {raises: If `threshold` lies outside its range, or the noise has a bound and a sensitivity above 1.}

        Examples
        --------
        >>> from shufflebounds.mechanisms import GeometricMechanism
        >>> print(f"{GeometricMechanism(0.5).thresholded(30).delta(0.5):.3e}")
        3.139e-07
        """
        return ThresholdedCount(self, threshold)

    def describe(self) -> DominatingPairInfo:
        noise = self.closed_forms()
        pure = self.eps if self.bound is None else math.inf
        return DominatingPairInfo(noise.log_delta, pure, losses=noise.losses(), attained=noise.attained())

    @property
    def _noise_outputs(self) -> NoiseOutputs | None:
        return None if self.bound is not None else geometric_outputs(self.eps, self.sensitivity)

    def closed_forms(self) -> _Shifts:
        return _Shifts(self.eps, self.sensitivity, self.bound)

    @property
    def _inputs(self) -> int:
        return self.sensitivity + 1

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        cells, log_cut = checked(cells, log_cut)
        # Without a bound the two ends are proven to be the worst pair of inputs. With a bound all pairs are enumerated: an output
        # may be possible only for an inner input, so another pair may be worse.
        s = self.sensitivity
        if self.bound is not None:
            return self._clipped_laws(self.bound)
        k = np.arange(s // 2 + 1.0)
        near, far = (log[: k.size].copy() for log in self.closed_forms().classes())
        if s % 2 == 0:
            # Each half of the outcomes gets half of the mass of the middle outcome.
            near[-1] -= math.log(2)
            far[-1] -= math.log(2)
        loss = (s - 2 * k) * self._rate
        loss[0] = self._local_budget()
        # The loss of the outermost class is the pure budget. This class is not grouped with others, so that its loss stays exact.
        parts = group_outcomes(far[1:], near[1:], loss[1:], max(1, cells // 2)) if k.size > 1 else (np.empty(0),) * 4
        log_far, log_near, high, low = (np.append(first, part) for first, part in zip((far[0], near[0], loss[0], loss[0]), parts))
        return interval_laws(log_far, log_near, low, high, loss_error=BLUR)

    def dataset_laws(self) -> DatasetLaws | None:
        # No bound over all datasets is offered for sensitivity 1, where the blanket bound is exact.
        s, rate = self.sensitivity, self._rate
        if self.bound is not None or not 1 < s <= MOST_ENUMERATED or self.eps > LARGEST_EXPONENT:
            return None

        def ratio_tail(t: FloatArray) -> FloatArray:
            # Under input 0 the ratio R_0/R_s exceeds t at outputs k with (s - 2 k) rate > log t; outputs k < 0 count as k = 0.
            last = np.floor(0.5 * (s - np.log(t) / rate) + ON_GRID)
            return np.where(last >= 0, 1 - np.exp(-(last + 1) * rate) / (1 + math.exp(-rate)), 0.0)

        (pair,) = self.excess_laws(cells=2 * s + 2)
        return interval_datasets(GeometricNoise(s * rate, rate), pair.upper, self._local_budget(), ratio_tail)

    def _clipped_rows(self, bound: int) -> FloatArray:
        """Return the matrix of probabilities of clipped noise for the inputs 0..sensitivity."""
        s, rate = self.sensitivity, self._rate
        k = np.abs(np.arange(-bound, bound + 1.0))
        # `low` is the rounding error of `high` = k eps/s, so that the relative error of a probability is at most 4 ulp.
        product, product_low = exact_product(self.eps, k)
        high = product / s
        back, back_low = exact_product(high, float(s))
        low = ((product - back) - back_low + product_low) / s
        noise = np.exp(-high) * (1 - low) * np.where(k == bound, 1.0, -math.expm1(-rate)) / (1 + math.exp(-rate))
        return np.array([np.concatenate([np.zeros(x), noise, np.zeros(s - x)]) for x in range(s + 1)])

    def _matrix(self) -> FloatArray | None:
        """Return the matrix of clipped noise of few outputs, for the enumeration of all datasets of few users."""
        bound = self.bound
        if bound is None or 2 * bound + self.sensitivity >= COMPARED:
            return None
        rows = self._clipped_rows(bound)
        return None if self._underflows(rows, bound).any() else rows

    def _underflows(self, rows: FloatArray, bound: int) -> NDArray[np.bool_]:
        """Return for each output whether its probability for some input is positive but no normal double."""
        noise = np.arange(rows.shape[1]) - bound - np.arange(len(rows))[:, None]
        return np.asarray(((np.abs(noise) <= bound) & (rows < sys.float_info.min)).any(axis=0))

    def _clipped_laws(self, bound: int) -> tuple[PairLaws, ...]:
        s = self.sensitivity
        if s > 32:
            raise ValueError(f"sensitivity={s} must be at most 32 where the noise is clipped: all pairs are compared")
        if (s + 1) * (2 * bound + s + 1) > 2**22:
            raise ValueError(f"bound={bound} with sensitivity={s}: (sensitivity + 1)(2 bound + sensitivity + 1) must be <= 2**22")
        rows = self._clipped_rows(bound)
        # The pair of inputs (j, i) is the mirror image of (s - j, s - i), so pairs with i < j are enough.
        pairs = list(combinations(range(s + 1), 2))
        lost = self._underflows(rows, bound)
        if not lost.any():
            return matrix_laws(rows, pairs, symmetric=True)
        # Probabilities that underflow have lost digits, or are 0. For the upper bound these outputs reveal the input. For the lower
        # bounds they are merged with the nearest output whose probabilities are all normal doubles; 1e-14 bounds the relative error
        # of a sum of probabilities of which some have lost digits.
        first, last = np.flatnonzero(~lost)[[0, -1]]
        merged = np.add.reduceat(rows, np.array([0, *range(first + 1, last + 1)]), axis=1)
        rows[rows < sys.float_info.min] = 0.0
        cut = math.log(np.count_nonzero(lost) * sys.float_info.min)
        above, below = matrix_laws(rows, pairs, symmetric=True), matrix_laws(merged, pairs, symmetric=True, error=1e-14)
        return tuple(PairLaws(pair.inputs, pair.upper.revealing(cut), partial(getattr, other, "lower"), symmetric=True)
                     for pair, other in zip(above, below))

    @property
    def variance(self) -> float:
        r"""Variance of the noise and of :meth:`estimate`; without a bound, :math:`2q/(1-q)^2` with the q of the class."""
        rate = self._rate
        q, rest = math.exp(-rate), -math.expm1(-rate)
        free = 2 * q / rest**2
        if self.bound is None or self.bound * rate > 750:
            return free
        if self.bound <= 10**6:
            k = np.arange(1.0, self.bound + 1)
            return 2 * float(((2 * k - 1) * np.exp(-k * rate)).sum()) / (1 + q)
        left = -math.expm1(-self.bound * rate + math.log1p(self.bound * rest))
        return 2 * q * (2 * left / rest + math.expm1(-self.bound * rate)) / rest / (1 + q)

    def _noise(self, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[Any]:
        prob = -math.expm1(-self._rate)
        noise = rng.geometric(prob, size=shape) - rng.geometric(prob, size=shape)
        return np.asarray(noise if self.bound is None else np.clip(noise, -self.bound, self.bound))

    def _log_tail(self, t: float) -> float:
        if self.bound is not None and t >= self.bound:
            return -math.inf
        return math.log(2) - (t + 1) * self._rate - math.log1p(math.exp(-self._rate))

    def _near_quantile(self, log_prob: float) -> float:
        near = (math.log(2) - math.log1p(math.exp(-self._rate)) - log_prob) / self._rate - 1
        return near if self.bound is None else min(near, self.bound)
