"""Binomial noise on a count, as from shuffled noise bits in a distributed sum."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import ALL_OUTCOMES, TINY
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, plain
from shufflebounds._core import _binomial, _deployments
from shufflebounds._engines.bits.curve_of_sum import MOST_LISTED, curve_of_sum
from shufflebounds._engines.errors.accuracy import COUNTED, ErrorLaw, log_exceeded, shift_rounding
from shufflebounds._engines.errors.intervals import CountIntervals, CountLaw, tail_of_bits
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses, Sampling
from shufflebounds.profile import DominatingPair
from shufflebounds.profile.calibration import least_count, one_of_releases
from shufflebounds.profile.chain import GroupInfo
from shufflebounds.profile.integer_noise import IntegerNoise
from shufflebounds.profile.profile import GivenCurve, KnownPair, PrivacyProfile, largest_of

__all__ = ["BinomialNoise"]

MOST_TRIALS = 2**25
"""Largest number of trials whose outcomes a composition enumerates: about 11 standard deviations on either side of the mean,
which are 64,000 outcomes at this number of trials. With more outcomes, evaluating delta at the points of the grid takes less
time."""


@dataclass(frozen=True)
class _ShiftedBinomial(DominatingPair):
    """The pair (B, B + 1), or (B + 1, B) if `shifted_first`, with B ~ Bin(trials, prob)."""

    trials: int
    prob: float
    shifted_first: bool = False

    def reverse(self) -> Self:
        return type(self)(self.trials, self.prob, not self.shifted_first)

    def describe(self) -> DominatingPairInfo:
        anchor, spacing = _middle_losses(self.trials, self.prob)
        lattice = ((-anchor if self.shifted_first else anchor), spacing) if self.trials else None
        window = _window(self.trials, self.prob, self.shifted_first)
        listed = (lambda log_tail: window(ALL_OUTCOMES)) if window and self.trials <= MOST_LISTED else None
        losses = Losses(listed, lattice, unbounded=True, window=window)
        kernel = partial(_log_delta, self.trials, self.prob, float(self.shifted_first))
        return DominatingPairInfo(kernel, sampling=Sampling(spacing=0.005), losses=losses, attained=SINGLE)

    def closed_forms(self) -> GivenCurve:
        # The pair is that of the sum of B and an unflipped bit of the target, which is 0 under P and 1 under Q.
        counts = np.full(1 if self.trials else 0, float(self.trials))
        one, zero = (chance + 0 * counts for chance in _chances(self.prob, self.shifted_first))
        return GivenCurve(lambda upper, log_tail: curve_of_sum(one, zero, counts, -math.inf, 0.0, log_tail, upper=upper))


def _log_delta(trials: int, prob: float, shifted_first: float, eps: FloatArray) -> IntervalArray:
    value, error = _binomial.shift_log_delta(trials, prob, eps, shifted_first)
    return IntervalArray(value - error, value + error)


def _chances(prob: float, shifted_first: bool) -> tuple[float, float]:
    """Return the probabilities that a bit of B (`_ShiftedBinomial`) is 1 and that it is 0.

    If `shifted_first`, the two are exchanged: up to a bijection, the pair (B + 1, B) is (B', B' + 1), where B' is the number of
    zeros.
    """
    return (1 - prob, prob) if shifted_first else (prob, 1 - prob)


def _window(trials: int, prob: float, shifted_first: bool) -> Callable[[float], LossAtoms] | None:
    """Return the function that enumerates the outcomes, or None if there are no trials or too many outcomes."""
    return partial(_outcomes, trials, prob, shifted_first) if 0 < trials <= MOST_TRIALS and prob > TINY else None


def _outcomes(trials: int, prob: float, shifted_first: bool, log_tail: float) -> LossAtoms:
    """Return the outcomes of (B, B + 1), or (B + 1, B), B ~ Bin(trials, prob), except tails of mass e^log_tail on either side."""
    one, zero = _chances(prob, shifted_first)
    # Bernstein's inequality bounds both tails of B. The outcomes of B + 1 are larger by 1; rounding shifts the range by less than
    # one value.
    reach = 2 - log_tail / 3 + math.sqrt(log_tail**2 / 9 - 2 * trials * one * zero * log_tail)
    last, before = min(trials, math.floor(trials * one + reach)), max(0, math.floor(trials * one - reach))
    k = np.append(np.arange(last, before, -1.0), [0.0, trials])
    *_, log_rest, log_other = masses = _binomial.binom_logpmf(trials - k if shifted_first else k, float(trials), prob)
    log_p, k = masses[:-2], k[:-2]
    loss = np.log((trials - k + 1) * one / (k * zero))
    lost = math.log(2) + log_tail if last - before < trials else -math.inf
    # `binom_logpmf` is tested to an error of 3e-14 + 4 ulp. The ratio of masses in `loss` has five roundings of half an ulp.
    slack = 3e-14 + 4 * ULP * (1 + float(np.abs(log_p).max(initial=0.0)))
    return LossAtoms(log_p, loss, float(log_rest), float(log_other), lost, slack, ULP * (3 + 4 * np.abs(loss)))


def _middle_losses(trials: int, prob: float) -> tuple[float, float]:
    """Return the privacy loss of the likeliest outcome of (B, B + 1), B ~ Bin(trials, prob), and the distance to the next loss."""
    trials = max(trials, 1)
    k = min(max(1, math.floor((trials + 1) * prob)), trials)
    loss = math.log((trials - k + 1) / k * (prob / (1 - prob)))
    return loss, math.log1p(1 / k) - math.log1p(-1 / (trials - k + 1)) if k < trials else math.log1p(1 / k)


@dataclass(frozen=True, slots=True)
class _Noise(ClosedForms):
    trials: int
    prob: float

    def epsilon(self, delta: float, upper: bool) -> float:
        out = np.empty(1)
        trials, prob, target = np.array([[self.trials], [self.prob], [delta]], dtype=np.float64)
        _deployments.noise_epsilon(trials, prob, target, upper, out)
        return float(out[0])


@dataclass(frozen=True)
class _Counts(IntegerNoise):
    """The noise of :class:`BinomialNoise`, whose outcomes are listed for any shift."""

    trials: int
    prob: float

    # As in `_outcomes`.
    log_error: ClassVar[float] = 3e-14 + 4 * ULP

    def _log_pmf(self, k: FloatArray) -> FloatArray:
        return np.asarray(_binomial.binom_logpmf(k, float(self.trials), self.prob))

    def _log_cdf(self, k: FloatArray) -> FloatArray:
        return np.asarray(_binomial.binom_logcdf(k, float(self.trials), self.prob))

    def _log_sf(self, k: FloatArray) -> FloatArray:
        return np.asarray(_binomial.binom_logsf(k, float(self.trials), self.prob))


@with_passages
@dataclass(frozen=True)
class BinomialNoise(CountIntervals, PrivacyProfile, ErrorLaw):
    r"""A count with binomial noise, for datasets whose counts differ by one.

    The released number is :math:`c + B`, where c is the count and :math:`B \sim \mathrm{Bin}(N, g)`. With the hockey-stick
    divergence H,

    .. math:: \delta(\varepsilon) = \max\{H_{e^\varepsilon}(B \,\|\, B+1),\; H_{e^\varepsilon}(B+1 \,\|\, B)\}, \qquad
        H_{e^\varepsilon}(P \,\|\, Q) = \sup_S\, P(S) - e^\varepsilon Q(S).

    Parameters
    ----------
    trials : int
        Number N of noise bits, 0 to 2**53.
    prob : float
        Probability g of each noise bit to be 1, in (0, 1).

    Notes
    -----
    Neighbours: the count differs by one. The formula is exact for the protocol. The likelihood ratio is monotone, so the best test
    is a threshold: :math:`H_{e^\varepsilon}(B\|B+1) = F(k) - e^\varepsilon F(k-1)` with :math:`k = \lceil (N+1)g/(g +
    e^\varepsilon(1-g)) \rceil - 1` and the cumulative distribution function F of B. This difference is computed without
    cancellation. There is no pure differential privacy, since the likelihood ratio is infinite at the ends of the support. Adding
    trials is post-processing, so delta does not increase with `trials`; delta is not monotone in `prob`.

    The values that :meth:`randomize` takes are counts over all users, in an array of any shape; independent noise is added to each.
    The messages are the released counts, and :meth:`estimate` subtracts the mean Ng of the noise. The error is :math:`B - Ng` for
    every count, so :meth:`error_tail` and :meth:`error_quantile` take no `truth`. They are for one count, whatever ``of`` is: the
    probability that any of k errors is larger than a is at most k times that of one error.

    {chen_long: section 3 (the mechanism C_H)}

    Balcer, V., Cheu, A. Separating local and shuffled differential privacy via histograms, 2020, section 3 (the noise of zsum).

    Examples
    --------
    >>> from shufflebounds import shuffle
    >>> noise = shuffle.BinomialNoise.calibrate(eps=1.0, delta=1e-6)
    >>> noise
    BinomialNoise(trials=80, prob=0.5)
    >>> noise.delta(1.0) <= 1e-6
    True
    """

    trials: int
    prob: float

    theorem: ClassVar[str] = (
        "exact for the protocol: the larger hockey-stick divergence, of both orders, of Bin(trials, prob) and its shift by one"
    )
    neighbours: ClassVar[str] = "the count differs by one; the analyst sees count plus noise"
    relation: ClassVar[str] = "either"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "trials")
        _validate.real_field(self, "prob", 0, 1, open_low=True, open_high=True)

    def pairs(self) -> tuple[DominatingPair, ...]:
        pair = _ShiftedBinomial(self.trials, self.prob)
        return pair, pair.reverse()

    def closed_forms(self) -> _Noise:
        return _Noise(self.trials, self.prob)

    def describe(self) -> DominatingPairInfo:
        # For prob = 1/2, (P, Q) and (Q, P) have the same divergences.
        lattice = _middle_losses(self.trials, self.prob) if self.trials else None
        info = super().describe()
        losses = Losses(lattice=lattice, window=_window(self.trials, self.prob, False) if self.prob == 0.5 else None)
        return replace(info, attained=info.attained._replace(single=self.prob == 0.5), losses=losses)

    def describe_group(self, size: int) -> GroupInfo:
        # Binomial masses are log-concave, so the largest shift is the worst.
        if 4 * self.variance > MOST_TRIALS:
            return GroupInfo()
        return GroupInfo.of(KnownPair(largest_of(_Counts(self.trials, self.prob)._shifts(size))))

    @classmethod
    def calibrate(cls, *, eps: float, delta: float, prob: float = 0.5, releases: int = 1, devices: int = 1) -> Self:
        """Return the mechanism with the smallest number of trials whose upper delta at `eps` is at most `delta`.

        Parameters
        ----------
        {target}
        prob : float
            Probability of each noise bit to be 1, in (0, 1).
        {releases}

        Returns
        -------
        BinomialNoise
            Its upper delta at `eps` is at most `delta`, and its epsilon(delta) at most `eps`; with one trial fewer, one of the two
            is not.

        {raises}
        InfeasibleError
            If no number of trials up to 2**53 meets the target (a ValueError).

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> shuffle.BinomialNoise.calibrate(eps=0.1, delta=1e-8).trials
        8451
        """
        if (releases, devices) != (1, 1):
            return one_of_releases(partial(cls.calibrate, prob=prob), releases, devices, eps=eps, delta=delta)
        eps, delta = _validate.target(eps, delta)
        prob = _validate.real("prob", prob, 0, 1, open_low=True, open_high=True)

        trials = least_count(lambda trials: cls(trials, prob), eps, delta)
        if trials is None:
            raise _validate.InfeasibleError(
                f"delta={delta:g} cannot be met at eps={eps:g}, prob={prob:g}: "
                f"2**53 trials give {cls(_validate.MAX_COUNT, prob).delta(eps):.3g}"
            )
        return cls(trials, prob)

    @property
    def _count_shape(self) -> None:
        return None

    def _checked_values(self, values: ArrayLike) -> NDArray[np.int64]:
        return _validate.whole_array("values", values)

    def _dummy_messages(self, number: int, source: np.random.Generator) -> NDArray[np.int64]:
        return np.empty(0, dtype=np.int64)

    def _simulated(self, values: NDArray[Any], source: np.random.Generator) -> FloatArray:
        # The values are counts over all users, to each of which the noise is added once.
        return self._added(self._messages(values, source))

    def _messages(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int64]:
        return np.asarray(values + source.binomial(self.trials, self.prob, size=values.shape))

    def _checked_messages(self, messages: ArrayLike) -> FloatArray:
        return _validate.real_array("messages", messages)

    def _added(self, messages: NDArray[Any]) -> FloatArray:
        return messages

    def _read(self, messages: ArrayLike | None, counts: ArrayLike | None, users: int | None) -> tuple[FloatArray, int]:
        # A released count needs no further aggregation.
        if messages is None or counts is not None:
            return super()._read(messages, counts, users)
        return super()._read(None, self._checked_messages(messages), users)

    def _checked_counts(self, counts: ArrayLike, users: int | None) -> tuple[FloatArray, int]:
        # The estimate does not depend on the number of users; 0 stands for an unknown one.
        return _validate.real_array("counts", counts), users or 0

    def _support(self, seen: FloatArray) -> NDArray[np.int64]:
        return _validate.whole_array("counts", seen)

    def _count_law(self, users: int) -> CountLaw:
        # The noise, and so its tails, do not depend on the count, so any number of users gives the same result.
        tail = tail_of_bits(_validate.MAX_COUNT, (1.0, 0.0), (0.0, 1.0), (self.prob, 1 - self.prob, self.trials))
        return CountLaw(lambda y, held, upper: tail(y - held, 0, upper), self._scale(), users, None if users else self.trials)

    def _estimated(self, counts: FloatArray, users: int) -> float | FloatArray:
        return plain(counts - self.trials * self.prob)

    @property
    def variance(self) -> float:
        """Variance of :meth:`estimate`, trials * prob * (1 - prob), for every count."""
        return self.trials * self.prob * (1 - self.prob)

    def _error(self, a: Fraction, truth: Any) -> Interval:
        law = np.array([self.prob]), np.array([1 - self.prob]), np.array([float(self.trials)])
        return log_exceeded(*law, Fraction(self.trials * self.prob), a)

    def _rounding(self, a: Fraction, truth: Any) -> float:
        return shift_rounding(self.trials * self.prob, self.trials + COUNTED)

    def _scale(self) -> float:
        return math.sqrt(self.variance) + 1
