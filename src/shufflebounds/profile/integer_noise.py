"""Integer noise K of any distribution: an integer plus K is released, and the integers of neighbouring datasets differ by one."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from shufflebounds._base.caches import kept
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import CACHED_TABLES, DEEPER, DEEPEST, FIRST_TAIL, LARGE_TABLE_SIZE, NEGLIGIBLE
from shufflebounds._base.search import least_int
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._base.validate import MAX_COUNT, InfeasibleError
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses
from shufflebounds.profile.profile import DominatingPair, PrivacyProfile

__all__ = ["IntegerNoise"]


@with_passages
class IntegerNoise(PrivacyProfile):
    r"""An integer released with integer noise K; neighbouring datasets have integers that differ by one.

    .. math:: \delta(\varepsilon) = \max\{H_{e^\varepsilon}(K \,\|\, K+1),\; H_{e^\varepsilon}(K+1 \,\|\, K)\}

    This is a base class for your own noise distributions. A subclass implements the three logarithms ``_log_pmf``, ``_log_cdf`` and
    ``_log_sf`` at integers k. The base class derives both bounds of delta, eps, curves, divergences and compositions from them. The
    distribution need not be unimodal.

    Attributes
    ----------
    log_error : float
        The error of each logarithm l of a probability is at most `log_error` times 1 + abs(l). The value is 1e-12 unless the
        subclass sets another one.

    Notes
    -----
    The outcomes are enumerated except for a mass in the tails that is negligible relative to delta. The truncated mass is added to
    the upper bound and omitted from the lower bound.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from shufflebounds import tails
    >>> from shufflebounds.profile.extend import IntegerNoise
    >>> @dataclass(frozen=True)
    ... class PoissonNoise(IntegerNoise):
    ...     rate: float
    ...     def _log_pmf(self, k): return tails.poisson_logpmf(k, self.rate)
    ...     def _log_cdf(self, k): return tails.poisson_logcdf(k, self.rate)
    ...     def _log_sf(self, k): return tails.poisson_logsf(k, self.rate)
    >>> noise = PoissonNoise(40.0)
    >>> print(f"{noise.epsilon(1e-6):.6f} {noise.epsilon(1e-6, bound='lower'):.6f}")
    0.880893 0.880893
    """

    theorem: ClassVar[str] = "exact: the larger hockey-stick divergence of the noise and its shift by one"
    neighbours: ClassVar[str] = "the number differs by one; the analyst sees the number plus noise"
    relation: ClassVar[str] = "either"
    log_error: ClassVar[float] = 1e-12

    @abstractmethod
    def _log_pmf(self, k: FloatArray) -> FloatArray:
        """Return log Pr[K = k] at each integer k, -inf outside of the support."""

    @abstractmethod
    def _log_cdf(self, k: FloatArray) -> FloatArray:
        """Return log Pr[K <= k] at each integer k."""

    @abstractmethod
    def _log_sf(self, k: FloatArray) -> FloatArray:
        """Return log Pr[K > k] at each integer k."""

    @kept(1)
    def pairs(self) -> tuple[DominatingPair, ...]:
        return self._shifts(1)

    def _shifts(self, shift: int) -> tuple[DominatingPair, ...]:
        """Return the pair of the distributions of K and of K + shift, for an integer `shift`, in both orders."""
        return _Shift(self, False, shift), _Shift(self, True, shift)

    @kept(2 * CACHED_TABLES)
    def _shifted(self, shifted_first: bool, shift: int, log_tail: float) -> LossAtoms:
        """Return the outcomes of (K, K + s), or of (K + s, K) if `shifted_first`.

        A mass of at most e^log_tail is truncated on either side.

        s is `shift`.
        """
        plain, shifted, log_lost = self._window(shift, log_tail)
        error = self.log_error * (1 + float(np.abs(plain[plain > -np.inf]).max(initial=0.0))) + 4 * ULP
        first, second = (shifted, plain) if shifted_first else (plain, shifted)
        return LossAtoms.of(first, second, log_lost=log_lost, error=error)

    def _window(self, shift: int, log_tail: float) -> tuple[FloatArray, FloatArray, float]:
        """Return log Pr[K = k] and log Pr[K + shift = k] for consecutive k, and the log of an upper bound of the truncated mass."""
        allowed = log_tail - self.log_error * (1 - log_tail)

        def first_integer(enough: Callable[[int], bool]) -> int | None:
            # `least_int` searches nonnegative integers, here k + 2**53, starting at k = 0.
            place = least_int(lambda k: enough(k - MAX_COUNT), 0, 2 * MAX_COUNT, guess=MAX_COUNT)
            return None if place is None else place - MAX_COUNT

        last = first_integer(lambda k: self._at(self._log_sf, k) <= allowed)
        # The enumeration starts at the first integer with Pr[K <= k] above the allowed mass.
        first = first_integer(lambda k: self._at(self._log_cdf, k) > allowed)
        if last is None or first is None:
            raise InfeasibleError(f"{self!r}: more than e^{log_tail:.0f} of the mass lies beyond 2**53; noise must be smaller")
        if last - first + shift > LARGE_TABLE_SIZE:
            raise InfeasibleError(f"{self!r} has about {last - first} likely outcomes; at most {LARGE_TABLE_SIZE} are enumerated")
        k = np.arange(float(first - shift), last + shift + 1.0)
        log_pmf = np.asarray(self._log_pmf(k), dtype=np.float64)
        return log_pmf[shift:], log_pmf[:-shift], math.log(2) + log_tail

    @staticmethod
    def _at(function: Callable[[FloatArray], FloatArray], k: int) -> float:
        return float(np.asarray(function(np.array([float(k)])))[0])


@dataclass(frozen=True)
class _Shift(DominatingPair):
    """The pair of the distributions of K and of K + shift; their order is exchanged if `shifted_first` is set."""

    noise: IntegerNoise
    shifted_first: bool
    shift: int = 1

    def reverse(self) -> Self:
        return type(self)(self.noise, not self.shifted_first, self.shift)

    def describe(self) -> DominatingPairInfo:
        listed = partial(self.noise._shifted, self.shifted_first, self.shift)
        return DominatingPairInfo(partial(_log_delta, listed), losses=Losses(listed), attained=SINGLE)


def _log_delta(listed: Callable[[float], LossAtoms], eps: FloatArray) -> IntervalArray:
    """Return bounds of log delta at each eps from enumerated outcomes. The truncated mass is negligible at all these eps."""
    log_tail = FIRST_TAIL
    while True:
        lower, upper = listed(log_tail).log_delta(eps)
        if log_tail <= DEEPEST or np.all((lower > log_tail + NEGLIGIBLE) | (upper == -np.inf)):
            return IntervalArray(lower, upper)
        log_tail = max(log_tail * DEEPER, DEEPEST)
