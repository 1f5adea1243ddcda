"""Ordered pairs of output distributions: given by a description, or by lists of probabilities."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import Bound, FloatArray, IntervalArray
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds._losses.release import SINGLE, DominatingPairInfo, Losses
from shufflebounds.profile.profile import PrivacyProfile
from shufflebounds.tradeoff import Tradeoff

__all__ = ["DominatingPair", "GivenCurve", "MassPair", "OutcomePair"]


class GivenCurve(ClosedForms):
    """Closed form of the trade-off function only, given as a function `curve` of `upper` and `log_tail`."""

    __slots__ = ("curve",)

    def __init__(self, curve: Callable[[bool, float], Tradeoff | None]) -> None:
        self.curve = curve

    def tradeoff_of_outcomes(self, upper: bool, log_tail: float = -100.0) -> Tradeoff | None:
        return self.curve(upper, log_tail)


@with_passages
class DominatingPair(PrivacyProfile):
    r"""One ordered pair of output distributions (P, Q), whose delta is :math:`\sum_y \max(0, P(y) - e^\varepsilon Q(y))`."""

    theorem: ClassVar[str] = "exact hockey stick of the pair"
    neighbours: ClassVar[str] = "P against Q, in this order"
    relation: ClassVar[str] = "either"

    @abstractmethod
    def reverse(self) -> DominatingPair:
        """Return the pair in the other order.

        Returns
        -------
        DominatingPair
            The pair (Q, P).
        """

    def _mirrored(self) -> bool:
        """Return whether (Q, P) is known to have the same delta as (P, Q)."""
        return bool(self.reverse() == self)

    def pairs(self) -> tuple[DominatingPair, ...]:
        return (self,)

    @np.errstate(all="ignore")
    def tradeoff(self, *, bound: Bound = "lower", log_tail: float = -100.0) -> Tradeoff:
        r"""Return a bound of the trade-off function :math:`T(P, Q)` of tests of P against Q.

        Parameters
        ----------
        bound : {"lower", "upper"}
            "lower": nowhere above T(P, Q); "upper": nowhere below.
        log_tail : float
            Natural logarithm of the mass that may be truncated at each end of the range of outcomes, in [-1e6, -1]. Enumerated
            distributions are not truncated.

        Returns
        -------
        Tradeoff
            Up to 2**17 atoms the curve is exact except for the truncation: every atom has at most ("upper": at least) its mass
            under P and under Q, so the curve is a bound of the exact one. For a sum of bits the masses are reduced by their error
            bound, a relative 1e-12. For more atoms the breakpoints are selected: the deltas of the two bounds then differ by about
            a relative :math:`10^{-4} |\log\delta|`, for any number of atoms.

        {raises: If `bound` is neither word, or `log_tail` lies outside its range.}

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> curve = shuffle.ShuffledBits(users=100, flip=0.29).pair(0).tradeoff()
        >>> print(f"{curve.beta(0.05):.9f}")
        0.940223229
        """
        upper = _validate.upper_side(bound)
        found = self._closed.tradeoff_of_outcomes(upper, _validate.real("log_tail", log_tail, -1e6, -1))
        return self._tradeoff(upper) if found is None else found

    @staticmethod
    def from_pmfs(log_p: ArrayLike, log_q: ArrayLike) -> DominatingPair:
        r"""Return the pair of two distributions given as lists of log probabilities of the same outcomes.

        Parameters
        ----------
        log_p, log_q : array_like, shape (atoms,)
            Natural logarithms of the probabilities, -inf for an impossible outcome. The probabilities of each list sum to 1 within
            1e-9; missing mass is added to the upper bound as a further outcome.

        Returns
        -------
        DominatingPair
            The pair (P, Q); :meth:`reverse` returns (Q, P).

        {raises: If the shapes differ, an entry is NaN or positive, or a list does not sum to 1.}

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


class OutcomePair(DominatingPair):
    """A pair of distributions with finitely many outcomes, all of which are enumerated."""

    _prepares: ClassVar[bool] = True

    @property
    @abstractmethod
    def _atoms(self) -> LossAtoms:
        """The outcomes of (P, Q)."""

    def describe(self) -> DominatingPairInfo:
        atoms = self._atoms
        pure = math.inf if max(atoms.log_rest, atoms.log_lost) > -math.inf else float(atoms.moved(1).max(initial=0.0))
        return DominatingPairInfo(partial(_log_delta, atoms, pure), pure, losses=Losses(lambda log_tail: atoms), attained=SINGLE)


def _log_delta(atoms: LossAtoms, pure: float, eps: FloatArray) -> IntervalArray:
    lower, upper = atoms.log_delta(eps)
    return IntervalArray(np.where(eps >= pure, -np.inf, lower), np.where(eps >= pure, -np.inf, upper))


@dataclass(frozen=True, repr=False)
class MassPair(OutcomePair):
    """A pair given by two lists of probabilities, which are taken as exact.

    Storing logarithms would lose the differences of nearly equal probabilities.
    """

    p: tuple[float, ...]
    q: tuple[float, ...]

    def __repr__(self) -> str:
        return f"DominatingPair(<{len(self.p)} probabilities>)"

    def reverse(self) -> Self:
        return type(self)(self.q, self.p)

    def _mirrored(self) -> bool:
        return sorted(zip(self.p, self.q)) == sorted(zip(self.q, self.p))

    @cached_property
    def _atoms(self) -> LossAtoms:
        return LossAtoms.of_masses(np.array(self.p), np.array(self.q))


@dataclass(frozen=True, repr=False)
class _ListedPair(OutcomePair):
    log_p: tuple[float, ...]
    log_q: tuple[float, ...]

    _saved_as: ClassVar[tuple[str, Callable[..., DominatingPair]]] = "DominatingPair", DominatingPair.from_pmfs

    def __repr__(self) -> str:
        return f"DominatingPair.from_pmfs(<{len(self.log_p)} atoms>)"

    def reverse(self) -> Self:
        return type(self)(self.log_q, self.log_p)

    def _mirrored(self) -> bool:
        return sorted(zip(self.log_p, self.log_q)) == sorted(zip(self.log_q, self.log_p))

    @cached_property
    def _atoms(self) -> LossAtoms:
        missing = max(abs(1 - math.fsum(np.exp(law))) for law in (self.log_p, self.log_q))
        # A missing mass below the rounding errors of the list counts as 0.
        log_lost = math.log(missing) if missing > 1e-15 * len(self.log_p) else -math.inf
        return LossAtoms.of(np.array(self.log_p), np.array(self.log_q), log_lost=log_lost)

    def closed_forms(self) -> ClosedForms:
        if self._atoms.log_lost == -math.inf:
            return ClosedForms()
        # The missing mass counts as 0 in both errors of a test, which lowers the curve.
        log_p, log_q = np.array(self.log_p), np.array(self.log_q)
        return GivenCurve(lambda upper, log_tail: None if upper else Tradeoff._of(log_p, log_q))
