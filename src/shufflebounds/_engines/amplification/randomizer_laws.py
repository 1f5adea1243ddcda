"""The distributions of X (`excess.excess_law`) of a randomizer whose users participate with a given probability."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.caches import Kept, cached_property, immutable
from shufflebounds._base.limits import CACHED_BYTES
from shufflebounds._base.types import FloatArray, Interval
from shufflebounds._engines.amplification.two_users import TwoUsers
from shufflebounds._engines.datasets.cases import DatasetLaws
from shufflebounds._engines.excess.excess_law import BLUR, ExcessLaw, PairLaws, Randomizer

__all__ = ["Distributions"]


class Distributions:
    """Properties of a randomizer that the bounds use.

    Parameters
    ----------
    source : Randomizer
        The randomizer. It must have `excess_laws`; other attributes that the properties of this class read are optional. If it has
        `_twin`, a randomizer of another class with the same messages, that randomizer is used instead.
    participation : float
        Probability with which each user sends a message; "no message" is one more output.
    pairs : tuple of PairLaws, optional
        The distributions of X (`excess.excess_law`), with participation taken into account; by default those of
        ``source.excess_laws()``. If they are given, there are no distributions for the bound over all datasets.
    """

    def __init__(self, source: Randomizer, participation: float, pairs: tuple[PairLaws, ...] | None = None) -> None:
        self.source: Randomizer = getattr(source, "_twin", source)
        self.participation, self._pairs = participation, pairs

    @cached_property
    def pairs(self) -> tuple[PairLaws, ...]:
        """The distributions of X for the ordered pairs of inputs, up to symmetry."""
        if self._pairs is not None:
            return self._pairs
        return tuple(pair.thinned(self.participation) for pair in _laws_of(self.source))

    @cached_property
    def above(self) -> tuple[ExcessLaw, ...]:
        """The different distributions of X of the privacy blanket."""
        return tuple({id(pair.upper): pair.upper for pair in self.pairs}.values())

    @cached_property
    def below(self) -> tuple[tuple[str, str, ExcessLaw], ...]:
        """All distributions of X for lower bounds, each with descriptions of the pair of inputs and of the dataset."""
        return tuple((pair.inputs, text, law) for pair in self.pairs for text, law in pair.lower)

    @cached_property
    def pure(self) -> float:
        """The pure budget of the privacy blanket."""
        return max(0.0, *(pair.upper.pure_epsilon for pair in self.pairs))

    @cached_property
    def over_datasets(self) -> DatasetLaws | None:
        """The `DatasetLaws` for the upper bound over all datasets (docs/theorems/worst-dataset), or None if the randomizer has
        none.
        """
        laws = getattr(self.source, "dataset_laws", None)
        data = None if laws is None or self._pairs is not None else laws()
        return None if data is None else data.thinned(self.participation)

    @cached_property
    def blanket_only(self) -> Distributions:
        """These distributions of X, without `over_datasets`."""
        return Distributions(self.source, self.participation, self.pairs)

    def truncated(self, cells: int, log_cut: float) -> Distributions:
        """Return the distributions of X with outputs divided into `cells` cells and truncated at the probability e^log_cut."""
        pairs = tuple(pair.thinned(self.participation) for pair in self.source.excess_laws(cells=cells, log_cut=log_cut))
        return Distributions(self.source, self.participation, pairs)

    @property
    def deepest_cut(self) -> float:
        """The log of the smallest probability at which outputs may be truncated; -inf if only the default is available."""
        return float(getattr(self.source, "_deepest_cut", -math.inf))

    @property
    def error(self) -> float:
        """The largest error of the log likelihood ratios log a and log b in the distributions of X (`ExcessLaw`)."""
        return float(getattr(self.source, "error", BLUR))

    @cached_property
    def two_users(self) -> TwoUsers | None:
        """The bounds for two users, if the noise is normal. The result is None if the distributions of X are given."""
        return None if self._pairs is not None else TwoUsers.of(getattr(self.source, "_normal_mu", None), self.participation)

    @property
    def flip(self) -> Interval | None:
        """Bounds of the flip probability if the randomizer is randomized response of one bit and every user participates."""
        flip: Interval | None = getattr(self.source, "_flip", None) if self.participation == 1 else None
        return flip

    @property
    def clones_budget(self) -> float | None:
        """The pure budget if the privacy blanket is the sum of `StrongerClones` for this budget, otherwise None."""
        budget: float | None = getattr(self.source, "_clones_budget", None)
        return budget if self.participation == 1 else None

    @property
    def two_inputs(self) -> bool:
        """Whether each message is a post-processing of one bit, because the randomizer has two inputs or rounds to two inputs."""
        return getattr(self.source, "_inputs", math.inf) == 2 or getattr(self.source, "_flip", None) is not None

    @cached_property
    def matrix(self) -> FloatArray | None:
        """The matrix of the randomizer (inputs, outputs) with full participation, or None if the randomizer has none."""
        matrix = getattr(self.source, "_matrix", None)
        rows: FloatArray | None = matrix() if matrix is not None else None
        return rows

    @cached_property
    def thinned_matrix(self) -> FloatArray | None:
        """The matrix with "no message" as one more output."""
        rows, share = self.matrix, self.participation
        return rows if rows is None or share == 1 else np.append(rows * share, np.full((len(rows), 1), 1 - share), axis=1)


def _atoms(pairs: tuple[PairLaws, ...]) -> int:
    laws = (law for pair in pairs for law in (pair.upper, *(() if pair.deferred else (law for _, law in pair.lower))))
    return sum(law.log_mass.size for law in laws)


_KNOWN: Kept[Randomizer, tuple[PairLaws, ...]] = Kept(CACHED_BYTES // 64, _atoms)
"""The distributions of X of the last randomizers, which are the same for every number of users. An atom takes about 64 bytes."""


def _laws_of(source: Randomizer) -> tuple[PairLaws, ...]:
    """Return the distributions of X for the ordered pairs of inputs of a randomizer, from the cache if its class is immutable.

    Pairs with deferred distributions (of a matrix) are not cached: the cache limits the size of its entries, and the size of a
    distribution that is computed later is not known yet.
    """
    if not immutable(source):
        return source.excess_laws()
    pairs = _KNOWN.of(source, source.excess_laws)
    if any(pair.deferred for pair in pairs):
        _KNOWN.pop(source, None)
    return pairs
