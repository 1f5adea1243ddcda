"""The distributions that a randomizer states for the upper bound over all datasets, for all inputs of the users.

The bound is that of docs/theorems/worst-dataset, which `worst` evaluates. The method `dataset_laws` of a randomizer returns a
`DatasetLaws`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import cached_property
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._core import _moments
from shufflebounds._engines.datasets.pair_weights import signed_choices
from shufflebounds._engines.excess.evaluation import log_gain, rounding
from shufflebounds._engines.excess.excess_law import ExcessLaw

__all__ = ["Blocks", "Cases", "Cell", "DatasetLaws", "FiniteCases", "LawTable"]


class LawTable(NamedTuple):
    """Several distributions with finitely many values, one after the other, in the format of the kernel `_moments`.

    `values`, `mass` and `log_mass` have the atoms of all distributions. `starts` has the index of the first atom of each, and last
    the number of all atoms. The remaining mass of each distribution is at 0. `log_cut` is the log of the contribution to delta of
    outputs that are not among the atoms, the largest over the distributions.
    """

    values: FloatArray
    mass: FloatArray
    log_mass: FloatArray
    starts: NDArray[np.intp]
    log_cut: float = -math.inf


class Cell(ABC):
    """A set of cases, with distributions of X (`ExcessLaw`) that bound those of all cases.

    A case consists of the target's two inputs and the input of another user.
    """

    @abstractmethod
    def laws(self, eps: float, log_cut: float) -> LawTable:
        """Return distributions such that, for every number s, E(s + X)_+ of each case is at most that of one of them.

        `log_cut` is the log of the probability of the outputs that may be truncated.
        """

    @abstractmethod
    def halves(self, loss: float) -> Sequence[Cell]:
        """Return smaller cells that cover this one; none if masses and ratios have a relative uncertainty of at most `loss`."""


class Cases(ABC):
    """The distributions of X (`ExcessLaw`) for the pairs of the target's inputs and the inputs of another user.

    If `cells` is empty, `laws` has the distributions of all pairs and inputs. Otherwise `cells` covers the other pairs and inputs,
    for which the expected positive part of the sum of the X is usually not the largest.
    """

    @property
    @abstractmethod
    def blur(self) -> float:
        """Bound of the relative error of the probabilities."""

    @abstractmethod
    def laws(self, eps: float, log_cut: float) -> LawTable:
        """Return distributions for some pairs and inputs, in the sense of :meth:`Cell.laws`."""

    @cached_property
    def variance(self) -> float:
        """The largest second moment of X at eps = 0, from :meth:`laws`."""
        laws = self.laws(0.0, -20.0)
        return float(np.add.reduceat(laws.mass * laws.values**2, laws.starts[:-1]).max())

    def cells(self) -> Sequence[Cell]:
        """Return cells that cover all other pairs and inputs."""
        return ()

    @abstractmethod
    def thinned(self, share: float) -> Cases:
        """Return the distributions of X if each user sends a message with probability `share` only."""


@dataclass(frozen=True, eq=False)
class FiniteCases(Cases):
    """Distributions of X with finitely many atoms.

    In `DatasetLaws.cases` there is one distribution for every pair of the target's inputs and every input of another user; inputs
    with equal distributions may share one. For every pair and input the distribution of X must be a mixture of the distributions
    that are given.

    Parameters
    ----------
    log_mass, log_a, log_b : ndarray
        The atoms of all distributions, as for `ExcessLaw`.
    starts : ndarray
        Index of the first atom of each distribution, and last the number of all atoms.
    cuts : tuple of (ndarray, ndarray)
        Log masses under R_0 and R_1 of the outputs that are not among the atoms, for each distribution that has such outputs.
    error : float
        Bound of the relative error of the masses, in addition to the rounding error of `log_mass`.
    """

    log_mass: FloatArray
    log_a: FloatArray
    log_b: FloatArray
    starts: NDArray[np.intp]
    cuts: tuple[tuple[FloatArray, FloatArray], ...] = ()
    error: float = 0.0

    @classmethod
    def of(cls, laws: Sequence[ExcessLaw], error: float = 0.0) -> FiniteCases:
        """Return the given distributions; the mass at X = 0 is not among the atoms."""
        parts = []
        for law in laws:
            seen = (law._distinct[1] > -np.inf) | (law._distinct[2] > -np.inf)
            parts.append([part[seen] for part in law._distinct])
        starts = np.concatenate([[0], np.cumsum([part[0].size for part in parts])])
        cuts = tuple((np.asarray(law.log_cut), np.asarray(law.log_cut_b)) for law in laws if law._has_cut)
        log_mass, log_a, log_b = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return cls(log_mass, log_a, log_b, starts, cuts, error)

    @classmethod
    def widened(cls, log_mass: FloatArray, log_a: FloatArray, log_b: FloatArray, loss_error: float = 0.0) -> FiniteCases:
        """Return distributions given as rows of arrays; X is increased by more than its rounding error, for an upper bound.

        `loss_error` bounds the relative errors of the masses in addition to a few ulp.
        """
        move = ULP * (2 + np.abs(log_a) + np.abs(log_b) + 2 * np.abs(log_mass)) + loss_error
        starts = np.arange(0, log_mass.size + 1, log_mass.shape[-1])
        return cls(log_mass.ravel(), (log_a + move).ravel(), (log_b - move).ravel(), starts, error=loss_error)

    @cached_property
    def blur(self) -> float:
        return rounding(self.log_mass, self.log_a, self.log_b) + self.error

    @cached_property
    def _mass(self) -> FloatArray:
        return np.exp(self.log_mass)

    def laws(self, eps: float, log_cut: float) -> LawTable:
        values = _moments.excess_values(self.log_a, self.log_b, eps)
        lost = -math.inf
        for cut in self.cuts:
            lost = max(lost, log_gain(*cut, eps))
        return LawTable(values, self._mass, self.log_mass, self.starts, lost)

    def thinned(self, share: float) -> FiniteCases:
        # "No message" is one more atom at the end of every distribution.
        move, ends = math.log(share), self.starts[1:]
        return FiniteCases(np.insert(self.log_mass + move, ends, math.log1p(-share)), np.insert(self.log_a, ends, 0.0),
                           np.insert(self.log_b, ends, 0.0), self.starts + np.arange(self.starts.size),
                           tuple((cut + move, cut_b + move) for cut, cut_b in self.cuts), self.error)


class Blocks(NamedTuple):
    """Bounds of c_-, the negative mass of W (`pair_weights`), if the proof matches the drawn users within blocks of four.

    `bound` returns an upper bound of c_- for an even number of drawn pairs, valid if at least `fewest` users remain without these
    pairs. `rough` returns an approximation of this bound in less time. The approximation decreases in the number of pairs, unless
    it is negligible.
    """

    bound: Callable[[int], float]
    rough: Callable[[int], float]
    fewest: int


@dataclass(frozen=True, eq=False)
class DatasetLaws:
    r"""Distributions for an upper bound of delta over all datasets and all ordered pairs of inputs of the target user.

    R_x is the distribution of the message of a user with input x, (R_0, R_1) are those of the target's two inputs, and m is a
    measure with :math:`m \le R_x` for every input x. X is the privacy-amplification random variable of a pair, see
    :class:`ExcessLaw`.

    Parameters
    ----------
    blankets : FiniteCases
        The distributions of :math:`(R_0/m, R_1/m)` under m for the pairs of the target's inputs, or larger distributions in the
        convex order. A pair may be omitted if another pair has a larger distribution in the convex order.
    cases : Cases
        The distributions of :math:`(R_0/R_j, R_1/R_j)` under :math:`R_j`, for the same pairs.
    ratios : FiniteCases
        For each input x the distribution of :math:`(1, R_x/m)` under m, or a larger one in the convex order.
    log_minorant : float
        Logarithm of g, the total mass of m.
    distance : float
        Upper bound of :math:`\max_\pi \sum_{a < j} \pi_a \pi_j \int (R_a - R_j)^2/m` over distributions :math:`\pi` of inputs.
    local_eps : float
        Upper bound of :math:`|\ln(R_a/R_j)|` over all inputs a, j and outputs; inf if the ratios are unbounded.
    ratio_tail : callable
        Given an array of t > 1, returns for each t an upper bound of :math:`R_a\{y : R_a(y) > t\, R_j(y)\}` over all inputs a, j.
    cut_norm : float
        Upper bound of the integral of :math:`(R_0^2 + R_1^2)/m` over the outputs that are not among the atoms of `blankets`.
    others : FiniteCases, optional
        The distributions under m for the pairs that are not in `blankets` and `cases`. For these pairs the bound by the privacy
        blanket is used.
    blocks : Blocks, optional
        Bounds of c_- if the drawn users are matched in blocks, if such bounds are known.
    lost : float
        Upper bound of the total variation distance between these R_x and the exact output distributions. It adds n (1 + e^eps)
        `lost` to delta.
    """

    blankets: FiniteCases
    cases: Cases
    ratios: FiniteCases
    log_minorant: float
    distance: float
    local_eps: float
    ratio_tail: Callable[[FloatArray], FloatArray]
    cut_norm: float = 0.0
    others: FiniteCases | None = None
    blocks: Blocks | None = None
    lost: float = 0.0

    @cached_property
    def signed(self) -> list[tuple[int, float]]:
        """The numbers s of pairs of users that the proof may draw, each with c_-, the negative mass of W (`pair_weights`)."""
        return signed_choices(self.ratio_tail)

    def thinned(self, share: float) -> DatasetLaws:
        """Return the `DatasetLaws` if each user sends a message with probability `share` only: "no message" is one more output."""
        if share == 1:
            return self
        tail = self.ratio_tail
        return replace(
            self, blankets=self.blankets.thinned(share), cases=self.cases.thinned(share), ratios=self.ratios.thinned(share),
            log_minorant=math.log1p(share * math.expm1(self.log_minorant)), distance=share * self.distance,
            ratio_tail=lambda t: share * tail(t), cut_norm=share * self.cut_norm, lost=share * self.lost,
            others=None if self.others is None else self.others.thinned(share),
        )
