"""delta(eps), eps(delta) and log delta: what follows from bounds of log delta alone."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds import _validate
from shufflebounds._types import EXP_SLACK, SIDES, Bound, FloatArray
from shufflebounds.profile.roots import solve

__all__ = ["Numbers"]


class Numbers(ABC):
    """The part of a profile that answers with single numbers, each on a named side."""

    @abstractmethod
    def _log_delta(self, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return a lower and an upper bound of log delta at each eps >= 0 (1-D, finite, checked)."""

    def _pure_epsilon(self) -> float:
        """Return the least eps with delta(eps) = 0, or inf; at or above its exact value."""
        return math.inf

    def _eps_scale(self) -> float:
        """Return the unit, at least 1, in which no eps above a million is looked for."""
        return 1.0

    def _near(self, log_delta: float) -> float | None:
        """Return an eps near which log delta may have that value, if there is a guess."""
        return None

    @overload
    def log_delta(self, eps: float, *, bound: Bound = ...) -> float: ...
    @overload
    def log_delta(self, eps: ArrayLike, *, bound: Bound = ...) -> float | FloatArray: ...
    @np.errstate(all="ignore")
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
        side = SIDES.index(_validate.choice("bound", bound, SIDES))
        array = _validate.real_array("eps", eps, 0)
        # a kernel that leaves its range says nothing
        value = np.nan_to_num(self._log_delta(array.ravel())[side], nan=0.0 if side else -np.inf, posinf=0.0, neginf=-np.inf)
        value = np.minimum(value, 0.0).reshape(array.shape)
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
            out = np.where(value == -np.inf, 0.0, np.nextafter(np.exp(value) * (1 + EXP_SLACK), np.inf))
        else:
            out = np.nextafter(np.exp(value) * (1 - EXP_SLACK), -np.inf)
        out = np.clip(out, 0.0, 1.0)
        return out if out.ndim else float(out)

    @overload
    def epsilon(self, delta: float, *, bound: Bound = ...) -> float: ...
    @overload
    def epsilon(self, delta: ArrayLike, *, bound: Bound = ...) -> float | FloatArray: ...
    @np.errstate(all="ignore")
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
        _validate.choice("bound", bound, SIDES)
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
        reach = delta * (1 + outward * 4 * EXP_SLACK) + outward * 1e-323
        target = min(0.0, math.nextafter(math.log(reach), outward * math.inf)) if reach > 0 else -746.0
        if delta == 1:
            target = 0.0
        side = SIDES.index(bound)

        def log_delta(eps: float) -> float:
            value = float(self._log_delta(np.array([eps]))[side][0])
            return min(0.0, value) if not math.isnan(value) else 0.0 if side else -math.inf

        return solve(log_delta, target, pure, upper=bound == "upper", cap=1e6 * self._eps_scale(), near=self._near(target))

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
