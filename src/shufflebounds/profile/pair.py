"""One ordered pair of output laws, listed or known by its formula."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds import _validate
from shufflebounds._cached import cached_property
from shufflebounds._docs import with_passages
from shufflebounds._types import Bound, FloatArray, IntervalArray, largest
from shufflebounds.composing import DominatingPairInfo, LossAtoms
from shufflebounds.profile.profile import PrivacyProfile
from shufflebounds.tradeoff import Tradeoff

__all__ = ["DominatingPair", "LargestPair", "MassPair", "OutcomePair"]

@with_passages
class DominatingPair(PrivacyProfile):
    r"""One ordered pair of output laws (P, Q), answering with :math:`\sum_y \max(0, P(y) - e^\varepsilon Q(y))`."""

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

    def _opposite(self) -> DominatingPair:
        return self.reverse()

    def _mirrored(self) -> bool:
        """Tell whether the pair in the other order is known to be the same."""
        return bool(self.reverse() == self)

    def pairs(self) -> tuple[DominatingPair, ...]:
        return (self,)

    def _listed_pairs(self) -> tuple[DominatingPair, ...]:
        # it gives its own answers, not the largest of a list
        return ()

    def _pair_info(self) -> DominatingPairInfo:
        reverse = self.reverse()
        return DominatingPairInfo(self._log_delta, reverse._log_delta, self._pure_epsilon(), reverse._pure_epsilon(), single=True)

    @np.errstate(all="ignore")
    def tradeoff(self, *, bound: Bound = "lower", log_tail: float = -100.0) -> Tradeoff:
        r"""Return a curve beside the trade-off function :math:`T(P, Q)`, which rejects P.

        Parameters
        ----------
        bound : {"lower", "upper"}
            "lower": nowhere above T(P, Q); "upper": nowhere below.
        log_tail : float
            Natural logarithm of the mass that may be left out on each side of a window, in [-1e6, -1]. Listed laws are taken
            whole, whatever it is.

        Returns
        -------
        Tradeoff
            Up to 2**17 atoms exact but for what is left out: every atom stands in it with at most ("upper": at least) its mass
            under P and at most its mass under Q. No test becomes harder by that, so the curve lies nowhere above the true one.
            For a sum of bits the masses are lowered by their error bound, a relative 1e-12. Beyond, corners are chosen:
            the deltas of the two sides are about a relative :math:`10^{-4} |\log\delta|` apart, at any number of atoms.

        {raises: If `bound` is neither word, or `log_tail` lies outside its range.}

        Examples
        --------
        >>> from shufflebounds import shuffle
        >>> curve = shuffle.ShuffledBits(users=100, flip=0.29).pair(0).tradeoff()
        >>> print(f"{curve.beta(0.05):.9f}")
        0.940223229
        """
        upper = _validate.upper_side(bound)
        return self._tradeoff(upper, _validate.real("log_tail", log_tail, -1e6, -1))

    def _tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff:
        """Return a curve on the named side; a class that lists windows of its outcomes leaves out e^log_tail on either end."""
        return super()._tradeoff(upper)

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

        {raises: If the shapes differ, an entry is NaN or positive, or a law does not sum to 1.}

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
    """A pair of distributions with finitely many outcomes, all of which are listed."""

    @property
    @abstractmethod
    def _atoms(self) -> LossAtoms:
        """The outcomes of (P, Q)."""

    def _pair_info(self) -> DominatingPairInfo:
        return replace(super()._pair_info(), listed=lambda log_tail: self._atoms)

    def _log_delta(self, eps: FloatArray) -> IntervalArray:
        lower, upper = self._atoms.log_delta(eps)
        beyond = eps >= self._pure_epsilon()
        return IntervalArray(np.where(beyond, -np.inf, lower), np.where(beyond, -np.inf, upper))

    def _pure_epsilon(self) -> float:
        atoms = self._atoms
        if max(atoms.log_rest, atoms.log_lost) > -math.inf:
            return math.inf
        return float(atoms.moved(1).max(initial=0.0))


@dataclass(frozen=True, repr=False)
class MassPair(OutcomePair):
    """Two lists of probabilities, taken as exact: where these are nearly equal, their logarithms would not tell them apart."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    def __repr__(self) -> str:
        return f"DominatingPair(<{len(self.p)} probabilities>)"

    def reverse(self) -> Self:
        return type(self)(self.q, self.p)

    def _mirrored(self) -> bool:
        return sorted(zip(self.p, self.q)) == sorted(zip(self.q, self.p))

    def _seconds(self) -> float:
        # they are sorted first
        return 1e-7 * len(self.p)

    @cached_property
    def _atoms(self) -> LossAtoms:
        return LossAtoms.of_masses(np.array(self.p), np.array(self.q))


@dataclass(frozen=True, repr=False)
class _ListedPair(OutcomePair):
    log_p: tuple[float, ...]
    log_q: tuple[float, ...]

    def __repr__(self) -> str:
        return f"DominatingPair.from_pmfs(<{len(self.log_p)} atoms>)"

    def reverse(self) -> Self:
        return type(self)(self.log_q, self.log_p)

    def _mirrored(self) -> bool:
        return sorted(zip(self.log_p, self.log_q)) == sorted(zip(self.log_q, self.log_p))

    def _seconds(self) -> float:
        # they are checked and sorted first
        return 1e-7 * len(self.log_p)

    @cached_property
    def _atoms(self) -> LossAtoms:
        missing = [_missing(law) for law in (self.log_p, self.log_q)]
        log_lost = math.log(max(missing)) if max(missing) else -math.inf
        return LossAtoms.of(np.array(self.log_p), np.array(self.log_q), log_lost=log_lost)

    def _tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff:
        if upper or self._atoms.log_lost == -math.inf:
            return super()._tradeoff(upper, log_tail)
        # missing mass is left out of both errors, which lowers the curve
        return Tradeoff._of(np.array(self.log_p), np.array(self.log_q))


def _missing(law: tuple[float, ...]) -> float:
    """Return the mass that a law lacks; what the rounding of its entries explains counts as 0."""
    missing = abs(1 - math.fsum(np.exp(law)))
    return missing if missing > 1e-15 * len(law) else 0.0


class LargestPair(PrivacyProfile):
    """A guarantee that is the largest of several: of its pairs, unless it says otherwise."""

    def _several(self) -> tuple[PrivacyProfile, ...]:
        """Return what the guarantee is the largest of."""
        return self.pairs()

    def _log_delta(self, eps: FloatArray) -> IntervalArray:
        return largest(one._log_delta(eps) for one in self._several())

    def _pure_epsilon(self) -> float:
        return max(one._pure_epsilon() for one in self._several())
