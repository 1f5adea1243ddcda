"""What every mechanism answers: delta(eps), eps(delta) and their logarithms, each with a named side of the truth."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds import _validate
from shufflebounds.tradeoff import Tradeoff

__all__ = ["Bound", "DominatingPair", "PrivacyProfile"]

Bound = Literal["upper", "lower"]
FloatArray = NDArray[np.float64]

_SIDES = ("lower", "upper")
_ROOT_RTOL = 1e-13
_EXP_SLACK = 4 * np.finfo(float).eps


class PrivacyProfile(ABC):
    r"""A privacy profile, the function :math:`\delta(\varepsilon)` of a mechanism, enclosed on both sides.

    .. math:: \delta(\varepsilon) = \max_{(P, Q)} \sum_y \max(0, P(y) - e^\varepsilon Q(y))

    over the ordered pairs of output laws (P, Q) on neighbouring inputs. A subclass answers one question, ``_log_delta``;
    everything else follows from it here.

    Attributes
    ----------
    theorem : str
        What is proven, and where; one line.
    neighbours : str
        The neighbour relation of the guarantee; one line.
    """

    theorem: ClassVar[str]
    neighbours: ClassVar[str]

    @abstractmethod
    def _log_delta(self, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a lower and an upper bound of log delta at each eps >= 0 (1-D, finite, checked)."""

    def _pure_epsilon(self) -> float:
        """Return the least eps with delta(eps) = 0, or inf; at or above its exact value."""
        return math.inf

    @overload
    def log_delta(self, eps: float, *, bound: Bound = ...) -> float: ...
    @overload
    def log_delta(self, eps: ArrayLike, *, bound: Bound = ...) -> float | FloatArray: ...
    def log_delta(self, eps: ArrayLike, *, bound: Bound = "upper") -> float | FloatArray:
        r"""Natural logarithm of :math:`\delta(\varepsilon)`, relatively accurate where delta itself underflows.

        Parameters
        ----------
        eps : float or array_like
            Privacy loss in nats, finite and >= 0.
        bound : {"upper", "lower"}
            "upper" is never below the exact value of the quantity that the class documents, "lower" never above.

        Returns
        -------
        float or ndarray
            The chosen bound of log delta, of the shape of `eps`; -inf where delta is 0.

        Raises
        ------
        ValueError
            If `eps` is negative, not finite or empty, or `bound` is neither word.
        """
        side = _SIDES.index(_validate.choice("bound", bound, _SIDES))
        array = _validate.real_array("eps", eps, 0)
        value = np.minimum(self._log_delta(array.ravel())[side], 0.0).reshape(array.shape)
        return value if array.ndim else float(value)

    @overload
    def delta(self, eps: float, *, bound: Bound = ...) -> float: ...
    @overload
    def delta(self, eps: ArrayLike, *, bound: Bound = ...) -> float | FloatArray: ...
    def delta(self, eps: ArrayLike, *, bound: Bound = "upper") -> float | FloatArray:
        r"""The least :math:`\delta` for which the mechanism is (eps, delta)-differentially private.

        Parameters
        ----------
        eps : float or array_like
            Privacy loss in nats, finite and >= 0.
        bound : {"upper", "lower"}
            The side of the exact value on which the answer lies.

        Returns
        -------
        float or ndarray
            The chosen bound of delta in [0, 1], of the shape of `eps`. Where delta is positive but below the smallest double
            the upper bound is that double, never 0; use :meth:`log_delta` there.

        Raises
        ------
        ValueError
            If `eps` is negative, not finite or empty, or `bound` is neither word.
        """
        value = np.asarray(self.log_delta(eps, bound=bound))
        if bound == "upper":
            out = np.where(value == -np.inf, 0.0, np.nextafter(np.exp(value) * (1 + _EXP_SLACK), np.inf))
        else:
            out = np.nextafter(np.exp(value) * (1 - _EXP_SLACK), -np.inf)
        out = np.clip(out, 0.0, 1.0)
        return out if out.ndim else float(out)

    @overload
    def epsilon(self, delta: float, *, bound: Bound = ...) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike, *, bound: Bound = ...) -> float | FloatArray: ...
    def epsilon(self, delta: ArrayLike, *, bound: Bound = "upper") -> float | FloatArray:
        r"""The least :math:`\varepsilon` for which the mechanism is (eps, delta)-differentially private.

        Parameters
        ----------
        delta : float or array_like
            Failure probability in [0, 1]; 0 asks for pure differential privacy.
        bound : {"upper", "lower"}
            "upper": an eps at which the upper bound of delta was evaluated and is at most `delta`, so the mechanism has
            (eps, delta) whatever the rounding of the search. "lower": an eps at which the lower bound of delta still
            reaches `delta`, so the mechanism has no smaller one.

        Returns
        -------
        float or ndarray
            The chosen bound in nats, of the shape of `delta`; inf where no finite eps serves (delta = 0 without pure
            differential privacy).

        Raises
        ------
        ValueError
            If `delta` lies outside [0, 1] or is empty, or `bound` is neither word.

        Notes
        -----
        Brent's method on the square root of -log delta, which is nearly linear in eps, then outward steps until the
        evaluated bound is on its side.
        """
        _validate.choice("bound", bound, _SIDES)
        array = _validate.real_array("delta", delta, 0, 1)
        out = np.array([self._epsilon(float(d), bound) for d in array.ravel()]).reshape(array.shape)
        return out if out.ndim else float(out)

    def _epsilon(self, delta: float, bound: Bound) -> float:
        """Return eps(delta) for one delta in [0, 1]."""
        pure = self._pure_epsilon()
        if delta == 0:
            return pure if bound == "upper" else self._last_positive(pure)
        # past delta by what delta() adds on the way back from the logarithm, so that delta(epsilon(d)) <= d holds exactly
        outward = -1 if bound == "upper" else 1
        reach = delta * (1 + outward * 4 * _EXP_SLACK) + outward * 1e-323
        target = min(0.0, math.nextafter(math.log(reach), outward * math.inf)) if reach > 0 else -746.0
        if delta == 1:
            target = 0.0
        side = _SIDES.index(bound)

        def log_delta(eps: float) -> float:
            return min(0.0, float(self._log_delta(np.array([eps]))[side][0]))

        return _solve(log_delta, target, pure, upper=bound == "upper")

    def _last_positive(self, pure: float) -> float:
        """Return an eps with positive delta as near below the pure value as the kernels can tell."""
        if not math.isfinite(pure):
            return pure
        eps = pure
        step = np.finfo(float).eps
        while eps > 0 and self._log_delta(np.array([eps]))[0][0] == -math.inf:
            eps = max(0.0, eps - pure * step)
            step *= 2
        return float(eps)

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return the ordered pairs (P, Q) whose hockey sticks have `delta` as their maximum.

        Returns
        -------
        tuple of DominatingPair
            One entry for every ordered pair.

        Raises
        ------
        TypeError
            If the guarantee is not a maximum over listed pairs.
        """
        raise TypeError(f"{type(self).__name__} is not given by a list of pairs")


def _solve(log_delta: Callable[[float], float], target: float, pure: float, *, upper: bool) -> float:
    """Return eps with log_delta(eps) <= target (upper) or >= target (lower), next to the crossing."""
    # scipy.optimize takes half a second to import: only who asks for eps pays
    from scipy.optimize import brentq

    goal = math.sqrt(-target)

    def excess(eps: float) -> float:
        value = log_delta(eps)
        # -inf only beyond the pure value: any large number on the right side of the root
        return (math.sqrt(-value) if value > -math.inf else 2 * goal + 1e3) - goal

    low, at_low = 0.0, excess(0.0)
    if at_low >= 0:
        return 0.0
    high = min(0.05, pure / 2)
    at_high = excess(high)
    while at_high < 0:
        if high >= pure:
            return pure
        slope = (at_high - at_low) / (high - low)
        step = -1.1 * at_high / slope if slope > 0 else math.inf
        low, at_low = high, at_high
        high = min(pure, high + min(max(step, 0.01 * high), 3 * high))
        if high > 1e6:
            return math.inf
        at_high = excess(high)
    eps = float(brentq(excess, low, high, xtol=1e-300, rtol=_ROOT_RTOL)) if at_high > 0 else high
    step = _ROOT_RTOL * eps
    while (log_delta(eps) > target) if upper else (log_delta(eps) < target):
        eps = eps + step if upper else max(0.0, eps - step)
        step *= 2
        if upper and eps >= pure:
            return pure
        if not upper and eps == 0:
            break
    return eps


class DominatingPair(PrivacyProfile):
    r"""One ordered pair of output laws (P, Q), answering with :math:`\sum_y \max(0, P(y) - e^\varepsilon Q(y))`."""

    theorem: ClassVar[str] = "exact hockey stick of the pair"
    neighbours: ClassVar[str] = "P against Q, in this order"

    @abstractmethod
    def reverse(self) -> DominatingPair:
        """Return the pair in the other order.

        Returns
        -------
        DominatingPair
            The pair (Q, P).
        """

    def pairs(self) -> tuple[DominatingPair, ...]:
        """Return this pair alone.

        Returns
        -------
        tuple of DominatingPair
            The pair itself, as its only entry.
        """
        return (self,)

    @abstractmethod
    def tradeoff(self, *, log_tail: float = -100.0) -> Tradeoff:
        r"""Return a curve at or below the trade-off function :math:`T(P, Q)`, which rejects P.

        Parameters
        ----------
        log_tail : float
            Natural logarithm of the mass that may be left out on each side of a window, in [-1e6, -1]. Listed laws are taken
            whole, whatever it is.

        Returns
        -------
        Tradeoff
            Exact but for what is left out: every atom stands in it with at most its mass under P and at most its mass under
            Q. No test becomes harder by that, so the curve lies nowhere above the true one. For a sum of bits the masses are
            lowered by their error bound, some 1e-12, relatively.

        Raises
        ------
        ValueError
            If `log_tail` lies outside its range, or the window would hold more than 2**24 atoms.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> curve = shuffle.ShuffledBits(users=100, flip=0.29).pair(0).tradeoff()
        >>> print(f"{curve.beta(0.05):.9f}")
        0.940223229
        """
    @staticmethod
    def from_pmfs(log_p: ArrayLike, log_q: ArrayLike) -> DominatingPair:
        r"""Return the pair of two listed laws on the same atoms.

        Parameters
        ----------
        log_p, log_q : array_like, shape (atoms,)
            Natural logarithms of the probabilities, -inf for an impossible atom. Each law sums to 1 within 1e-9; mass that
            is missing counts as an atom of its own, on the safe side.

        Returns
        -------
        DominatingPair
            Its profile is the hockey stick of the two lists, its :meth:`reverse` that of the lists exchanged.

        Raises
        ------
        ValueError
            If the shapes differ, an entry is NaN or positive, or a law does not sum to 1.

        Examples
        --------
        >>> import numpy as np
        >>> from shufflebounds.profile import DominatingPair
        >>> pair = DominatingPair.from_pmfs(np.log([0.75, 0.25]), np.log([0.25, 0.75]))
        >>> round(pair.delta(0.0), 12), round(pair.epsilon(0.0) / float(np.log(3)), 12)
        (0.5, 1.0)
        """
        first, second = _validate.log_pmfs(log_p, log_q)
        return _ListedPair(tuple(first.tolist()), tuple(second.tolist()))


@dataclass(frozen=True, repr=False)
class _ListedPair(DominatingPair):
    log_p: tuple[float, ...]
    log_q: tuple[float, ...]

    def __repr__(self) -> str:
        return f"DominatingPair.from_pmfs(<{len(self.log_p)} atoms>)"

    def reverse(self) -> Self:
        return type(self)(self.log_q, self.log_p)

    def tradeoff(self, *, log_tail: float = -100.0) -> Tradeoff:
        _validate.real("log_tail", log_tail, -1e6, -1)
        return Tradeoff.from_pmfs(self.log_p, self.log_q)

    def _losses(self) -> tuple[FloatArray, FloatArray]:
        log_p, log_q = np.array(self.log_p), np.array(self.log_q)
        seen = log_p > -np.inf
        return log_p[seen], log_p[seen] - log_q[seen]

    def _log_delta(self, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        log_p, loss = self._losses()
        lower, upper = np.empty_like(eps), np.empty_like(eps)
        unit = np.finfo(float).eps
        missing = self._missing()
        for i, e in enumerate(eps):
            # a loss is rounded, so one that ties with eps may lie above it
            tail = loss + unit * np.abs(loss) > e
            # 1 - e^(eps - loss) is accurate as far as the loss is: its rounding is the error
            gain = -np.expm1(e - loss[tail])
            blur = unit * (2 * np.abs(log_p[tail]) + np.where(loss[tail] < np.inf, np.abs(loss[tail]), 0) + 4)
            low = np.maximum(0, gain - blur) * (1 - blur)
            high = (gain + blur) * (1 + blur)
            top = log_p[tail].max() if tail.any() else 0.0
            weight = np.exp(log_p[tail] - top)
            size = 1 + unit * (tail.sum() + 4)
            with np.errstate(divide="ignore"):
                lower[i] = top + np.log((weight @ low) / size)
                upper[i] = np.logaddexp(top + np.log((weight @ high) * size), np.log(missing))
        # outward, but -inf stays: delta is 0 there
        return np.nextafter(lower, -np.inf), np.where(upper > -np.inf, np.nextafter(upper, np.inf), upper)

    def _missing(self) -> float:
        """Return the mass that P lacks, 0 where the rounding of its entries explains it."""
        missing = abs(1 - math.fsum(np.exp(self.log_p)))
        return missing if missing > 1e-15 * len(self.log_p) else 0.0

    def _pure_epsilon(self) -> float:
        if self._missing():
            return math.inf
        _, loss = self._losses()
        largest = float(loss.max())
        return max(0.0, largest + 4 * np.finfo(float).eps * abs(largest)) if largest < math.inf else math.inf
