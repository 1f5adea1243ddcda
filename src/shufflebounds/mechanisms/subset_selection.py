"""Subset selection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds import _validate
from shufflebounds._docs import with_passages
from shufflebounds.mechanisms._counts import FrequencyOracle
from shufflebounds.mechanisms._two_level import Others, Shares

__all__ = ["SubsetSelection"]

_BLOCK = 2**21
"""Cells of the table of bins in which subsets are drawn: it stays in the cache."""

_MANY = 64
"""From so many bins on a few of them are drawn without a table."""


@with_passages
@dataclass(frozen=True)
class SubsetSelection(FrequencyOracle):
    r"""A set of d bins, uniform but for the user's bin, which raises its chance by :math:`e^{\varepsilon_0}`.

    .. math:: \Pr[Y = S \mid x] = \frac{e^{\varepsilon_0 [x \in S]}}{\binom{k-1}{d-1} e^{\varepsilon_0} + \binom{k-1}{d}}

    Parameters
    ----------
    {oracle: 2**20}
    size : int, optional
        Number d of bins in a message, 1 to bins - 1. By default the d of least variance at this local budget, next to
        :math:`k/(e^{\varepsilon_0}+1)`. At equal privacy after the shuffle the best is another:
        :func:`~shufflebounds.shuffle.compare_at` finds it.

    Notes
    -----
    A message is a row of `size` bins in rising order, int32, and supports them.

    Neighbours: the bin is replaced. Of all local randomizers it has the least variance of a rare bin; size 1 is
    :class:`KaryResponse`.

    References
    ----------
    Ye, M., Barg, A. Optimal schemes for discrete distribution estimation under locally differential privacy, 2018, section 3.

    Wang, S. et al. Mutual information optimally local private discrete distribution estimation, 2016.

    Examples
    --------
    >>> from shufflebounds.mechanisms import SubsetSelection
    >>> selection = SubsetSelection(bins=10, local_eps=1.0)
    >>> selection.size
    2
    >>> messages = selection.randomize([7] * 1000, rng=1)
    >>> messages.shape, int(selection.estimate(messages).argmax())
    ((1000, 2), 7)
    """

    bins: int
    local_eps: float
    size: int | None = None

    theorem: ClassVar[str] = "exact for subset selection"
    neighbours: ClassVar[str] = "replace the user's bin; the analyst sees the set"

    def __post_init__(self) -> None:
        self._check(2**20)
        self._check_size("size", math.floor(self.bins / (math.exp(self.local_eps) + 1)), 1, self.bins - 1)

    @property
    def _d(self) -> int:
        assert self.size is not None
        return self.size

    @property
    def _inputs(self) -> int:
        return self.bins

    def _shares(self) -> Shares:
        k, d = self.bins, self._d
        pairs = k * (k - 1)
        return Shares(d * (k - d) / pairs, d * (d - 1) / pairs, (k - d) * (k - d - 1) / pairs)

    def _others(self) -> tuple[Others, ...]:
        k, d = self.bins, self._d
        if k == 2:
            return ()
        triples = k * (k - 1) * (k - 2)
        # sets with 3, 2, 1 or 0 given members
        three, two = d * (d - 1) * (d - 2) / triples, d * (d - 1) * (k - d) / triples
        single, none = d * (k - d) * (k - d - 1) / triples, (k - d) * (k - d - 1) * (k - d - 2) / triples
        return (Others("all others hold a third value", (two, two, three, single), (single, single, two, none)),)

    def _kinds(self) -> tuple[Others, ...]:
        # permuting the inputs that are not the target's two permutes the outputs, so that these have one law of X
        return (*self._targets(), *self._others())

    @property
    def message_bits(self) -> float:
        """Length of one message in bits, the logarithm of the number of sets."""
        k, d = self.bins, self._d
        return (math.lgamma(k + 1) - math.lgamma(d + 1) - math.lgamma(k - d + 1)) / math.log(2)

    def _messages(self, held: NDArray[np.int64], source: np.random.Generator) -> NDArray[np.int32]:
        sets = np.empty((held.size, self._d), dtype=np.int32)
        left_out = source.random(held.size) < self._chances().not_own
        rows = max(1, _BLOCK // self.bins)
        for inside, size in ((True, self._d - 1), (False, self._d)):
            users = np.flatnonzero(left_out != inside)
            for start in range(0, users.size, rows):
                part = users[start : start + rows]
                sets[part] = self._drawn(held[part], inside, size, source)
        return sets

    def _drawn(self, held: NDArray[np.int64], inside: bool, size: int, source: np.random.Generator) -> NDArray[np.int64]:
        """Return for each user a uniform set of `size` other bins, with the own one where it is inside."""
        if self.bins >= _MANY and size * size < self.bins:
            return self._distinct(held, inside, size, source)
        k, users = self.bins, np.arange(held.size)
        # the last column stands for the other bin that the user's own displaces
        table = np.zeros((held.size, k), dtype=bool)
        flat, row = table.reshape(-1), users * k
        word = np.uint16 if k < 2**16 else np.uint32
        for last in range(k - 1 - size, k - 1):
            # Floyd: the newcomer, or `last` where that is in already
            newcomer = row + source.integers(0, last + 1, size=held.size, dtype=word)
            again = flat[newcomer]
            flat[newcomer] = True
            table[:, last] |= again
        table[users, k - 1] = flat[row + held]
        table[users, held] = inside
        return np.flatnonzero(table).reshape(held.size, self._d) - row[:, None]

    def _distinct(self, held: NDArray[np.int64], inside: bool, size: int, source: np.random.Generator) -> NDArray[np.int64]:
        """The same for few bins of many: drawn one by one; sets that hold a bin twice are drawn again."""
        word = np.int16 if self.bins < 2**15 else np.int32
        own = held.astype(word)
        sets = np.empty((held.size, self._d), dtype=word)
        missing = np.arange(held.size)
        while missing.size:
            drawn = np.empty((missing.size, self._d), dtype=word)
            drawn[:, :size] = source.integers(0, self.bins - 1, size=(missing.size, size), dtype=word)
            drawn[:, :size] += drawn[:, :size] >= own[missing, None]
            if inside:
                drawn[:, size] = own[missing]
            drawn.sort(axis=1)
            sets[missing] = drawn
            missing = missing[(drawn[:, 1:] == drawn[:, :-1]).any(axis=1)]
        return sets.astype(np.int64)

    def support(self, messages: ArrayLike) -> tuple[NDArray[np.int64], int]:
        sets = np.asarray(messages)
        if sets.ndim != 2 or sets.shape[1] != self._d or sets.shape[0] == 0:
            raise ValueError(f"messages has shape {sets.shape}: it must be (users, {self._d}), one set a row")
        counts = np.bincount(_validate.labels("messages", sets.ravel(), self.bins), minlength=self.bins)
        if self._d > 1 and not (sets[:, 1:] > sets[:, :-1]).all():
            raise ValueError("messages holds a row that does not rise: each must be a set of bins in rising order")
        return counts, sets.shape[0]
