"""The profile: what every mechanism answers, each number with a named side of the truth."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds import _validate
from shufflebounds.profile._dual import curve, gdp_mu
from shufflebounds.profile._least import least
from shufflebounds.profile._renyi import renyi
from shufflebounds.profile._roots import solve
from shufflebounds.profile._samples import Samples
from shufflebounds.tradeoff import Tradeoff

if TYPE_CHECKING:
    from shufflebounds.profile._pair import DominatingPair

__all__ = ["Bound", "FloatArray", "PrivacyProfile"]

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

    _convex: ClassVar[bool] = True
    """Whether the documented delta is convex, rather than a minimum of several."""

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

    def _listed(self) -> tuple[DominatingPair, ...]:
        """Return the pairs, or none where there is no list of them."""
        try:
            return self.pairs()
        except TypeError:
            return ()

    @property
    def _sampling(self) -> float:
        """How far apart delta is sampled for a curve, in normal quantiles: the dearer delta, the further."""
        return 0.01

    def _effort(self, rtol: float, most: int) -> tuple[float, int]:
        """Return how far apart the sides of mu and of a Renyi divergence may stay, relatively, and the most evaluations."""
        return (rtol, most) if self._sampling < 0.1 else (0.01 * self._sampling, 2**8)

    def _samples(self, least_step: float = 0.0) -> tuple[Samples, Samples]:
        """Return samples of H(Q||P) and of H(P||Q), where the guarantee is that of a pair (P, Q)."""
        step = max(self._sampling, least_step)
        both = Samples(self._log_delta, self._pure_epsilon(), step, convex=self._convex)
        return both, both

    def tradeoff(self, *, bound: Bound = "lower") -> Tradeoff:
        r"""Return a curve beside the trade-off function of the mechanism.

        .. math:: f(\alpha) = \inf_{(P, Q)} T(P, Q)(\alpha),

        the least error of the second kind that a test of level alpha has on any pair of neighbours. Where the pairs are not
        listed (:meth:`pairs`), f is the curve that belongs to delta,
        :math:`\sup_{\varepsilon \ge 0} \max\{1 - \delta - e^\varepsilon \alpha,\; e^{-\varepsilon}(1 - \delta - \alpha)\}`.

        Parameters
        ----------
        bound : {"lower", "upper"}
            "lower", the guarantee: nowhere above f. "upper": nowhere below f.

        Returns
        -------
        Tradeoff
            "lower" has the delta of the mechanism, at least, at every eps, and may be composed. An infimum of several curves
            need not be convex: "lower" is then its convex hull, and "upper" the infimum itself.

        Raises
        ------
        ValueError
            If `bound` is neither word.

        Notes
        -----
        Lines of the upper delta at some hundred eps enclose f from below; from above its convexity does, with the lines through
        neighbouring values. Where no class says otherwise, the deltas of the two sides are about
        :math:`10^{-4} |\log\delta|` apart, relatively, or as far as those of :meth:`delta` itself; beyond
        :math:`\alpha = e^{-50}` the sides part further, and f(0) is met where there is pure privacy only.

        References
        ----------
        Dong, J., Roth, A., Su, W. J. Gaussian differential privacy, 2022, section 2.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> clones = shuffle.StrongerClones(users=10**6, local_eps=4.0)
        >>> below, above = clones.tradeoff(), clones.tradeoff(bound="upper")
        >>> print(f"{below.beta(0.05):.7f}", bool(below.beta(0.05) <= above.beta(0.05)))
        0.9489427 True
        """
        upper = _validate.choice("bound", bound, _SIDES) == "upper"
        return self._tradeoff(upper)

    def _tradeoff(self, upper: bool) -> Tradeoff:
        """Return a curve nowhere below the exact one, or nowhere above it."""
        pairs = self._listed()
        if pairs:
            return least([pair._tradeoff(upper) for pair in pairs], upper=upper)
        return curve(*self._samples(), upper=upper)

    def gdp_mu(self, *, bound: Bound = "upper") -> float:
        r"""Return the least :math:`\mu` for which the mechanism is :math:`\mu`-Gaussian differentially private.

        .. math:: \mu = \sup_\alpha\; \Phi^{-1}(1 - \alpha) - \Phi^{-1}(f(\alpha))

        Parameters
        ----------
        bound : {"upper", "lower"}
            The side of the exact value on which the answer lies.

        Returns
        -------
        float
            inf where the supports of a pair differ: no Gaussian curve lies below then. The upper bound is inf, too, where nothing
            finite can be proven, as without pure privacy.

        Raises
        ------
        ValueError
            If `bound` is neither word.

        Notes
        -----
        A Gaussian curve is convex, so the corners of a piecewise linear curve decide. The two curves of :meth:`tradeoff` are
        refined where they leave mu open, until the sides are 1e-7 apart, relatively, where delta is that well known.

        References
        ----------
        Dong, J., Roth, A., Su, W. J. Gaussian differential privacy, 2022, section 2.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> print(f"{shuffle.ShuffledBits(users=100, flip=0.29).gdp_mu():.9f}")
        0.111388484
        >>> shuffle.BinomialNoise(trials=100, prob=0.5).gdp_mu()
        inf
        """
        upper = _validate.choice("bound", bound, _SIDES) == "upper"
        return self._gdp_mu(upper)

    def _gdp_mu(self, upper: bool) -> float:
        """Return mu, from above or below."""
        pairs = self._listed()
        if pairs:
            return max(pair._gdp_mu(upper) for pair in pairs)
        return gdp_mu(*self._samples(0.05), upper, *self._effort(1e-7, 1500))

    @overload
    def rdp(self, order: float, *, bound: Bound = ...) -> float: ...
    @overload
    def rdp(self, order: ArrayLike, *, bound: Bound = ...) -> float | FloatArray: ...
    def rdp(self, order: ArrayLike, *, bound: Bound = "upper") -> float | FloatArray:
        r"""Return the Renyi divergence of the worst pair, both orders of a pair counted.

        .. math:: D_a(P \| Q) = \frac{1}{a-1} \log \sum_y P(y)^a Q(y)^{1-a}

        Parameters
        ----------
        order : float or array_like
            a >= 1: 1 asks for the Kullback-Leibler divergence, inf for the maximal one (pure differential privacy).
        bound : {"upper", "lower"}
            The side of the exact value on which the answer lies. Where the pairs are not listed the value is that of one pair with
            the whole of delta as its profile, which is at least that of any pair of the mechanism.

        Returns
        -------
        float or ndarray
            In nats, of the shape of `order`; inf where the supports of a pair differ, and as an upper bound where nothing finite
            can be proven.

        Raises
        ------
        ValueError
            If `order` is below 1, NaN or empty, or `bound` is neither word.

        Notes
        -----
        :math:`e^{(a-1)D} = 1 + a(a-1) \int_0^\infty (e^{(a-1)t} + e^{-at})\, \delta(t)\, dt`, with delta enclosed by straight
        lines in :math:`e^t` between adaptively chosen t: all terms are positive. The sides are 1e-6 apart, relatively, or as far
        as those of delta.

        References
        ----------
        Sason, I., Verdu, S. f-divergence inequalities, 2016 (the integral).

        Mironov, I. Renyi differential privacy, 2017.

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> bits = shuffle.ShuffledBits(users=100, flip=0.25, ones=0)
        >>> [f"{v:.5f}" for v in bits.rdp([1, 2, 8])]
        ['0.00674', '0.01361', '0.05768']
        """
        upper = _validate.choice("bound", bound, _SIDES) == "upper"
        array = _validate.orders("order", order)
        value = self._rdp(array.ravel(), upper).reshape(array.shape)
        return value if array.ndim else float(value)

    def _rdp(self, orders: FloatArray, upper: bool) -> FloatArray:
        """Return the largest divergences, from above or below; orders in [1, inf]."""
        pairs = self._listed()
        if pairs:
            return np.asarray(np.max([pair._rdp(orders, upper) for pair in pairs], axis=0))
        reverse, own = self._samples(0.05)
        pure = self._pure_epsilon()
        largest = pure if upper else self._last_positive(pure)
        rtol, most = self._effort(1e-6, 2**13)
        value = np.array([renyi(own, reverse, float(a), upper, rtol, most) if a < math.inf else largest for a in orders])
        return np.minimum(value, largest) if upper else value
