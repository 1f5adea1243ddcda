"""Frozen distributions of counts with the methods of scipy.stats. Their tails have a small relative error at any probability.

A subclass defines the log probabilities, the support, the mean and the variance. The base class derives quantiles, random
variates and expectations from them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.calls import Explaining
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import COMPUTED_ERROR, MOST_ITEMS
from shufflebounds._base.scipy_functions import ndtri_exp
from shufflebounds._base.types import FloatArray, plain
from shufflebounds._core._special import log1mexp
from shufflebounds.tails._functions import Kind

__all__ = ["FrozenLaw"]


@with_passages
class FrozenLaw(metaclass=Explaining):
    r"""A distribution on consecutive integers. ``sf(k)`` is Pr[X > k], and k may be any real number.

    Probabilities below the least positive double are 0 in `pmf`, `cdf` and `sf`; their logarithms remain accurate.
    """

    @abstractmethod
    def _log_prob(self, kind: Kind, k: ArrayLike) -> FloatArray | float:
        """Return the logarithm of Pr[X = k], of Pr[X > k] or of Pr[X <= k]."""

    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Return the least and the greatest possible value (the latter may be inf)."""

    @abstractmethod
    def mean(self) -> float:
        """Return the expectation."""

    @abstractmethod
    def var(self) -> float:
        """Return the variance."""

    def logpmf(self, k: ArrayLike) -> FloatArray | float:
        """Logarithm of Pr[X = k]; -inf where k is not an integer of the support."""
        return self._log_prob(Kind.PMF, k)

    def logcdf(self, k: ArrayLike) -> FloatArray | float:
        """Logarithm of Pr[X <= k]."""
        return self._log_prob(Kind.LOWER, k)

    def logsf(self, k: ArrayLike) -> FloatArray | float:
        """Logarithm of Pr[X > k]."""
        return self._log_prob(Kind.UPPER, k)

    def pmf(self, k: ArrayLike) -> FloatArray | float:
        """Pr[X = k]."""
        return plain(np.exp(self.logpmf(k)))

    def cdf(self, k: ArrayLike) -> FloatArray | float:
        """Pr[X <= k]."""
        return plain(np.exp(self.logcdf(k)))

    def sf(self, k: ArrayLike) -> FloatArray | float:
        """Pr[X > k]."""
        return plain(np.exp(self.logsf(k)))

    def std(self) -> float:
        """Return the standard deviation."""
        return math.sqrt(self.var())

    def median(self) -> float:
        """Return the least k with Pr[X <= k] >= 1/2."""
        return float(self.ppf(0.5))

    def ppf(self, q: ArrayLike) -> FloatArray | float:
        """Least k with Pr[X <= k] >= q, up to a relative rounding error of 1e-12 in q.

        For q = 0, the least value of X minus 1.

        Parameters
        ----------
        q : array_like of float
            Levels in [0, 1].

        Returns
        -------
        ndarray of the shape of q, or float
        """
        levels = _validate.real_array("q", q, 0, 1)
        return self._quantile(levels, (levels, 1 - levels))

    def isf(self, q: ArrayLike) -> FloatArray | float:
        """Least k with Pr[X > k] <= q. This is `ppf` at 1 - q, computed without the rounding of 1 - q."""
        levels = _validate.real_array("q", q, 0, 1)
        return self._quantile(levels, (1 - levels, levels))

    def ilogcdf(self, log_q: ArrayLike) -> FloatArray | float:
        """Least k with log Pr[X <= k] >= log_q, for log_q <= 0. Unlike `ppf`, it accepts levels below the least positive double."""
        logs = _validate.log_values("log_q", log_q)
        return self._search(logs, log1mexp(logs))

    def ilogsf(self, log_q: ArrayLike) -> FloatArray | float:
        """Least k with log Pr[X > k] <= log_q, for log_q <= 0. Unlike `isf`, it accepts levels below the least positive double."""
        logs = _validate.log_values("log_q", log_q)
        return self._search(log1mexp(logs), logs)

    def interval(self, confidence: ArrayLike) -> tuple[FloatArray | float, FloatArray | float]:
        """Return the quantiles that leave the probability (1 - confidence)/2 on either side.

        `confidence` is in [0, 1] and may be an array of any shape.
        """
        outside = (1 - _validate.real_array("confidence", confidence, 0, 1)) / 2
        return self.ppf(outside), self.isf(outside)

    def expect(self, func: Callable[[FloatArray], Any] | None = None, lb: float | None = None, ub: float | None = None,
               conditional: bool = False) -> float:
        r"""Return :math:`\mathrm{E}[f(X);\, lb \le X \le ub]`.

        Parameters
        ----------
        func : callable, optional
            The function f, which is called once with the array of all values in the sum; the identity by default.
        lb, ub : float, optional
            Ends of the sum, both included; the support by default.
        conditional : bool
            Whether to divide by Pr[lb <= X <= ub], however small this probability is.

        Returns
        -------
        float
            The sum over a finite range of values. At each end at most a fraction :math:`e^{-80}` of the mass between lb and ub is
            omitted, so f must be bounded there.

        {raises: If the sum has more than 1e7 values or, if `conditional`, the range has no mass.}
        """
        first, last = self.support()
        low = first if lb is None or lb == -math.inf else max(math.ceil(_validate.real("lb", lb)), first)
        high = last if ub is None or ub == math.inf else min(math.floor(_validate.real("ub", ub)), last)
        if high >= low:
            # At each end, the truncated mass is at most e^-80 times the mass between lb and ub, so the sum is accurate even if this
            # mass is tiny. If |f| is at most e^40, the truncation changes the expectation given lb <= X <= ub by at most e^-40.
            within = float(self.logcdf(high)) - 80, float(self.logsf(low - 1)) - 80
            low, high = max(low, float(self.ilogcdf(within[0]))), min(high, float(self.ilogsf(within[1])))
        if high - low >= MOST_ITEMS:
            raise ValueError(f"{self!r} has {high - low + 1:.3g} values to sum over, more than {MOST_ITEMS:g}: give lb and ub")
        values: FloatArray = low + np.arange(int(max(high - low, -1.0)) + 1, dtype=np.float64)
        logs = np.atleast_1d(self.logpmf(values))
        top = float(logs.max(initial=-math.inf))
        if top == -math.inf:
            if conditional:
                raise ValueError(f"lb={lb}, ub={ub}: the range has no mass to condition on")
            return 0.0
        mass = np.exp(logs - top)
        terms = np.asarray(values if func is None else func(values)) * mass
        total = math.fsum(np.broadcast_to(terms, values.shape).tolist())
        return total / math.fsum(mass.tolist()) if conditional else total * math.exp(top)

    def rvs(self, size: int | tuple[int, ...] | None = None, rng: Any = None, *, random_state: Any = None) -> Any:
        """Draw random values; `rng`, also called `random_state`, is anything that numpy.random.default_rng takes."""
        if random_state is not None:
            if rng is not None:
                raise ValueError(f"rng={rng!r} and random_state={random_state!r}: give one of the two")
            rng = random_state
        if size is not None:
            # An int above 1e308 has no double, so the entries of `size` are limited first.
            _validate.affordable("the random values", float(np.prod(np.minimum(np.asarray(size, object), 2**62), dtype=np.float64)))
        return self._draw(_validate.generator(rng), size)

    def _draw(self, rng: np.random.Generator, size: int | tuple[int, ...] | None) -> Any:
        """Draw by inversion: the quantiles of uniform levels."""
        levels = np.asarray(rng.random(size))
        drawn = np.asarray(self.ppf(1 - levels if levels.size else np.ones(1))).reshape(levels.shape or ())
        return drawn.astype(np.int64) if levels.ndim else int(drawn)

    def _quantile(self, levels: FloatArray, sides: tuple[FloatArray, FloatArray]) -> FloatArray | float:
        """Return the least k with cdf(k) >= sides[0], that is, sf(k) <= sides[1].

        One entry of `sides` is `levels`, the other is 1 - levels. For levels above 1/2, 1 - levels has a rounding error of up to
        2**-53. Therefore a k that misses the condition by at most this error counts as meeting it.
        """
        with np.errstate(divide="ignore"):
            lower, upper = np.log(sides[0]), np.log(sides[1])
        rounding = np.log1p(2.0**-53 / np.maximum(1 - levels, 2.0**-53))
        return self._search(lower, upper, np.where(levels > 0.5, rounding, 0.0))

    def _search(self, log_lower: FloatArray, log_upper: FloatArray, rounding: FloatArray | None = None) -> FloatArray | float:
        """Return the least k with log cdf(k) >= log_lower, that is, log sf(k) <= log_upper.

        The condition is evaluated in the smaller one of the two tails, which avoids cancellation.
        """
        shape = np.shape(log_lower)
        target = np.atleast_1d(np.minimum(log_lower, log_upper)).ravel()
        above = np.atleast_1d(log_upper <= log_lower).ravel()
        # The given level and the tail at k have rounding errors. If their logarithms differ by at most `extra`, they count as
        # equal.
        extra = COMPUTED_ERROR + (np.zeros(target.size) if rounding is None else np.atleast_1d(rounding).ravel())
        first, last = self.support()
        out = np.full(target.size, float(first))
        nothing = target == -np.inf
        out[nothing] = np.where(above[nothing], last, first - 1)
        rest = np.flatnonzero(~nothing)

        def met(k: FloatArray, at: NDArray[np.intp]) -> NDArray[np.bool_]:
            answer = np.empty(k.size, dtype=bool)
            up = above[at]
            if up.any():
                answer[up] = self.logsf(k[up]) <= (target + extra)[at[up]]
            if not up.all():
                answer[~up] = self.logcdf(k[~up]) >= (target - extra)[at[~up]]
            return answer

        if rest.size:
            guess = np.clip(self._guess(target[rest], above[rest]), first, last)
            out[rest] = _first(met, rest, guess, float(first), float(last))
        return plain(out.reshape(shape))

    def _guess(self, log_level: FloatArray, above: NDArray[np.bool_]) -> FloatArray:
        """Return quantiles of the normal approximation, where the search starts."""
        z = ndtri_exp(np.minimum(log_level, -1e-300))
        return np.asarray(np.floor(self.mean() + np.where(above, -z, z) * self.std()))


def _first(met: Callable[[FloatArray, NDArray[np.intp]], NDArray[np.bool_]], which: NDArray[np.intp], at: FloatArray, first: float,
           last: float) -> FloatArray:
    """Return the least k in first..last that meets the condition, for each level in `which`; `last` meets it for every level.

    The search starts at the guesses `at`. Its step doubles until the value of the condition changes; then it bisects.
    """
    low, high = np.full(at.size, first - 1), np.full(at.size, last)
    step, turned, went = np.ones(at.size), np.zeros(at.size, dtype=bool), np.zeros(at.size, dtype=np.int8)
    live = np.arange(at.size)
    while live.size:
        k = at[live]
        ok = met(k, which[live])
        high[live[ok]], low[live[~ok]] = k[ok], k[~ok]
        turned[live] |= went[live] == np.where(ok, -1, 1)
        went[live] = np.where(ok, 1, -1)
        live = live[high[live] - low[live] > 1]
        leap = np.where(went[live] > 0, high[live] - step[live], low[live] + step[live])
        middle = low[live] + np.floor((np.minimum(high[live], 2.0**1000) - low[live]) / 2)
        at[live] = np.where(turned[live] | (leap <= low[live]) | (leap >= high[live]), middle, leap)
        step[live] *= 2
    return high
