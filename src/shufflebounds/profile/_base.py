"""The profile: what every mechanism answers, each number with a named side of the truth."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds import _validate
from shufflebounds.losses import Composer, Listed, Release
from shufflebounds.profile._roots import solve

if TYPE_CHECKING:
    from shufflebounds.profile._pair import DominatingPair

__all__ = ["Bound", "Composition", "FloatArray", "PrivacyProfile"]

Bound = Literal["upper", "lower"]
FloatArray = NDArray[np.float64]

_SIDES = ("lower", "upper")
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

    _one_pair: ClassVar[bool] = False
    """Whether delta is the hockey stick of one pair of laws, the same in both orders."""

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

        return solve(log_delta, target, pure, upper=bound == "upper")

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

    def compose(self, *others: PrivacyProfile, rtol: float = 1e-5) -> Composition:
        """Return the profile of this mechanism and the others, all released.

        Parameters
        ----------
        *others : PrivacyProfile
            Mechanisms with fresh randomness of their own; each may be chosen in view of the releases before it.
        rtol : float
            The grid of losses is refined until the two sides of eps are so close, relatively, or it holds some 2**20 points;
            in [1e-12, 0.1].

        Returns
        -------
        Composition
            Enclosed on both sides.

        Raises
        ------
        TypeError
            If one of the others is not a profile.
        ValueError
            If `rtol` lies outside its range. From the questions asked of the result: if no transform within 2**22 points would
            do, with its size.

        Examples
        --------
        >>> from shufflebounds.shuffle import BinomialNoise
        >>> both = BinomialNoise(10**4, 0.5).compose(BinomialNoise(10**6, 0.5))
        >>> print(f"{both.epsilon(1e-6):.4f} {both.epsilon(1e-6, bound='lower'):.4f}")
        0.0714 0.0714
        """
        return Composition(((self, 1), *((other, 1) for other in others)), rtol)

    def self_compose(self, times: int, *, rtol: float = 1e-5) -> Composition:
        """Return the profile of that many releases of this mechanism.

        Parameters
        ----------
        times : int
            Number of releases, 1 to 2**53.
        rtol : float
            As for :meth:`compose`.

        Returns
        -------
        Composition
            Enclosed on both sides.

        Raises
        ------
        ValueError
            If an argument lies outside its range.

        Examples
        --------
        >>> from shufflebounds.shuffle import BinomialNoise
        >>> many = BinomialNoise(10**4, 0.5).self_compose(100)
        >>> print(f"{many.epsilon(1e-6):.5f} {many.epsilon(1e-6, bound='lower'):.5f}")
        0.83412 0.83412
        """
        return Composition(((self, times),), rtol)

    def _listed(self) -> Listed | None:
        """Return the outcomes of the one pair that this profile stands for, where they can be listed."""
        return None

    def _lattice(self) -> tuple[float, float] | None:
        """Return anchor and spacing of a lattice near which the heaviest losses lie."""
        return None

    def _release(self) -> Release:
        """Return what composition needs: on the whole line of eps the larger of the two directions."""
        stick = self._log_delta
        return Release(stick, stick, self._pure_epsilon(), self._listed(), self._lattice())

    def _single_pairs(self) -> tuple[PrivacyProfile, ...]:
        """Return profiles of single pairs that neighbours realise: what composes from below."""
        if self._one_pair:
            return (self,)
        try:
            return self.pairs()
        except TypeError:
            return ()


@dataclass(frozen=True)
class Composition(PrivacyProfile):
    r"""Several mechanisms released on the same data, each with fresh randomness, enclosed on both sides.

    .. math:: \delta(\varepsilon) = H_{e^\varepsilon}\left( \prod_j P_j^{r_j} \,\|\, \prod_j Q_j^{r_j} \right)

    Made by :meth:`PrivacyProfile.compose` and :meth:`PrivacyProfile.self_compose`.

    Parameters
    ----------
    factors : sequence of (PrivacyProfile, int)
        The mechanisms, each with its number of releases; compositions among them are taken apart and equal mechanisms
        counted together.
    rtol : float
        The grid is refined until the sides of eps are so close, relatively, or it holds some 2**20 points; in [1e-12, 0.1].

    Notes
    -----
    Directions. A :class:`DominatingPair` stands for itself: pairs compose in the order given, one-sided. Any other profile is
    a maximum over both orders of its neighbours. From above every release takes, at each eps of the whole line, the larger
    one, so the bound holds for adaptive choice of mechanisms and data; nothing is lost where the two orders agree. From below
    all releases take the same entry of their ``pairs()``, the best one. A profile that lists no pairs bounds the
    composition from below by what a single release leaks.

    Method. See :doc:`/composition`: losses on a grid, by connecting the dots above and merging outcomes below, tilted to eps
    and raised to their powers by FFT. Errors are relative to delta at any depth. Losses that share a lattice, such as those of
    randomized response, are exact on it.

    References
    ----------
    Doroshenko, V. et al. Connect the Dots: Tighter Discrete Approximations of Privacy Loss Distributions. PoPETs 2022.

    Koskela, A., Jälkö, J., Honkela, A. Computing Tight Differential Privacy Guarantees Using FFT. AISTATS 2020.

    Examples
    --------
    >>> from shufflebounds.shuffle import BinomialNoise
    >>> BinomialNoise(10**4, 0.5).self_compose(3).compose(BinomialNoise(10**4, 0.5))
    Composition(factors=((BinomialNoise(trials=10000, prob=0.5), 4),), rtol=1e-05)
    """

    factors: tuple[tuple[PrivacyProfile, int], ...]
    rtol: float = 1e-5

    theorem: ClassVar[str] = "composition: hockey stick of the product of the factors' dominating pairs"
    neighbours: ClassVar[str] = "those of the factors, all on the same data"

    def __post_init__(self) -> None:
        object.__setattr__(self, "rtol", _validate.real("rtol", self.rtol, 1e-12, 0.1))
        flat: list[tuple[PrivacyProfile, int]] = []
        for profile, times in self.factors:
            count = _validate.integer("times", times, 1)
            if not isinstance(profile, PrivacyProfile):
                raise TypeError(f"{profile!r} must be a PrivacyProfile to be composed")
            parts = profile.factors if isinstance(profile, Composition) else ((profile, 1),)
            for part, number in parts:
                same = next((i for i, (other, _) in enumerate(flat) if part is other or part == other), None)
                before = 0 if same is None else flat[same][1]
                total = _validate.integer("times", before + number * count, 1)
                if same is None:
                    flat.append((part, total))
                else:
                    flat[same] = (part, total)
        if not flat:
            raise ValueError("factors must not be empty: give at least one mechanism")
        object.__setattr__(self, "factors", tuple(flat))

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        # the laws already composed stay behind
        return type(self), (self.factors, self.rtol)

    @cached_property
    def _composer(self) -> Composer:
        above = [(profile._release(), times) for profile, times in self.factors]
        singles = [profile._single_pairs() for profile, _ in self.factors]
        matched = {len(pairs) for pairs in singles}
        count = 0 if 0 in matched else min(matched - {1}, default=1)
        below = []
        for i in range(count):
            side = []
            for (profile, times), (release, _), pairs in zip(self.factors, above, singles):
                pair = pairs[i] if len(pairs) > 1 else pairs[0]
                # the same object, so that both sides ask for its values once
                side.append((release if pair is profile else pair._release(), times))
            below.append(side)
        return Composer(above, below, self.rtol)

    def _log_delta(self, eps: FloatArray) -> tuple[FloatArray, FloatArray]:
        if len(self.factors) == 1 and self.factors[0][1] == 1:
            return self.factors[0][0]._log_delta(eps)
        pure = self._pure_epsilon()
        lower, upper = np.full(eps.size, -np.inf), np.full(eps.size, -np.inf)
        for i, e in enumerate(eps):
            if e < pure:
                lower[i], upper[i] = self._composer.bounds(float(e))
        # no release takes away what another leaked
        for profile, _ in self.factors:
            lower = np.maximum(lower, profile._log_delta(eps)[0])
        return np.minimum(lower, upper), upper

    def _pure_epsilon(self) -> float:
        total = math.fsum(times * profile._pure_epsilon() for profile, times in self.factors)
        return math.nextafter(total * (1 + _EXP_SLACK), math.inf) if total > 0 else 0.0
