"""Subset selection: a frequency oracle whose message is a random set of bins, more likely with the user's bin in it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.docs import with_passages
from shufflebounds._engines.errors.counted import message_rows
from shufflebounds._engines.inputs.few_outputs import FewOutputs
from shufflebounds.mechanisms.oracles._counts import FrequencyOracle
from shufflebounds.mechanisms.oracles._two_level import Others, Shares
from shufflebounds.mechanisms.oracles.kary_response import KaryResponse

__all__ = ["SubsetSelection"]


@with_passages
@dataclass(frozen=True)
class SubsetSelection(FrequencyOracle):
    r"""A random set of d bins; sets with the user's bin are :math:`e^{\varepsilon_0}` times as likely as other sets.

    .. math:: \Pr[Y = S \mid x] = \frac{e^{\varepsilon_0 [x \in S]}}{\binom{k-1}{d-1} e^{\varepsilon_0} + \binom{k-1}{d}}

    Parameters
    ----------
    {oracle: 2**20}
    size : int, optional
        Number d of bins in a message, 1 to bins - 1. The default has the smallest variance at this local budget and is close to
        :math:`k/(e^{\varepsilon_0}+1)`. For a given guarantee after a shuffle another d is the best, which
        :func:`~shufflebounds.shuffle.compare_at` finds.

    Notes
    -----
    The users' values are bins 0..k - 1. A message is a row of `size` bins in increasing order, int32; it supports these bins.
    The argument `counts` of :meth:`estimate` is how many messages support each bin.

    Neighbours: the bin is replaced. With the default size, no other frequency oracle of this package has a smaller variance for a
    bin without users at this budget. With size 1 it is :class:`KaryResponse`.

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

    def _shares(self) -> Shares:
        k, d = self.bins, self._d
        pairs = k * (k - 1)
        return Shares(d * (k - d) / pairs, d * (d - 1) / pairs, (k - d) * (k - d - 1) / pairs)

    @cached_property
    def _twin(self) -> FrequencyOracle | FewOutputs:
        return KaryResponse(self.bins, self.local_eps) if self._d == 1 else super()._twin

    def _patterns(self) -> dict[tuple[bool, ...], Fraction]:
        sets = list(combinations(range(self.bins), self._d))
        return {tuple(x in chosen for x in range(self.bins)): Fraction(1, len(sets)) for chosen in sets}

    def _others(self) -> tuple[Others, ...]:
        k, d = self.bins, self._d
        if k == 2:
            return ()
        triples = k * (k - 1) * (k - 2)
        # Take three given bins. A uniform set contains all three with probability `three`, two given ones but not the third with
        # `two`, one given bin but not the other two with `single`, and none of the three with `none`.
        three, two = d * (d - 1) * (d - 2) / triples, d * (d - 1) * (k - d) / triples
        single, none = d * (k - d) * (k - d - 1) / triples, (k - d) * (k - d - 1) * (k - d - 2) / triples
        return (Others("every other user has a third value", (two, two, three, single), (single, single, two, none)),)

    @property
    def message_bits(self) -> float:
        """Length of one message in bits, the logarithm of the number of sets."""
        k, d = self.bins, self._d
        return (math.lgamma(k + 1) - math.lgamma(d + 1) - math.lgamma(k - d + 1)) / math.log(2)

    def _messages(self, chosen: NDArray[np.int64], source: np.random.Generator) -> NDArray[np.int32]:
        sets = np.empty((chosen.size, self._d), dtype=np.int32)
        left_out = source.random(chosen.size) < self._support_probabilities().not_own
        # Subsets are drawn for `rows` users at a time, so that the table of all bins fits into the processor's cache.
        rows = max(1, 2**21 // self.bins)
        for inside, size in ((True, self._d - 1), (False, self._d)):
            users = np.flatnonzero(left_out != inside)
            for start in range(0, users.size, rows):
                part = users[start : start + rows]
                sets[part] = self._drawn(chosen[part], inside, size, source)
        return sets

    def _drawn(self, chosen: NDArray[np.int64], inside: bool, size: int, source: np.random.Generator) -> NDArray[np.int64]:
        """Return for each user a uniform set of `size` other bins, with the user's own bin added if `inside`."""
        # For small sets, drawing until all bins of a set are distinct is faster than a table of all `self.bins` bins.
        if self.bins >= 64 and size * size < self.bins:
            return self._distinct(chosen, inside, size, source)
        k, users = self.bins, np.arange(chosen.size)
        # The other bins are drawn from 0..k - 2, where the number of the user's own bin stands for bin k - 1. This number is
        # replaced by k - 1 below.
        table = np.zeros((chosen.size, k), dtype=bool)
        flat, row = table.reshape(-1), users * k
        word = np.uint16 if k < 2**16 else np.uint32
        for last in range(k - 1 - size, k - 1):
            # Floyd's algorithm adds the drawn bin, or the bin `last` if the drawn one is already in the set.
            newcomer = row + source.integers(0, last + 1, size=chosen.size, dtype=word)
            again = flat[newcomer]
            flat[newcomer] = True
            table[:, last] |= again
        table[users, k - 1] = flat[row + chosen]
        table[users, chosen] = inside
        return np.flatnonzero(table).reshape(chosen.size, self._d) - row[:, None]

    def _distinct(self, chosen: NDArray[np.int64], inside: bool, size: int, source: np.random.Generator) -> NDArray[np.int64]:
        """Return the result of `_drawn` by drawing all bins of a set independently, and again until they are distinct."""
        word = np.int16 if self.bins < 2**15 else np.int32
        own = chosen.astype(word)
        sets = np.empty((chosen.size, self._d), dtype=word)
        missing = np.arange(chosen.size)
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

    @property
    def _message_bytes(self) -> int:
        return 4 * self._d

    def _checked_messages(self, messages: ArrayLike) -> NDArray[Any]:
        sets = message_rows(messages, self._d, "set")
        _validate.labels("messages", sets.ravel(), self.bins)
        if self._d > 1 and not (sets[:, 1:] > sets[:, :-1]).all():
            raise ValueError("messages holds a row that does not rise: each must be a set of bins in increasing order")
        return sets

    def _added(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(messages.ravel().astype(np.int64), minlength=self.bins)

    def _users_in(self, counts: NDArray[Any]) -> int:
        total = int(counts.sum())
        if total % self._d:
            raise ValueError(f"counts sums to {total}: it must be a multiple of size={self._d}, the number of bins in a message")
        return total // self._d
