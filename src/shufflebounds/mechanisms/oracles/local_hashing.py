"""Local hashing: randomized response on a random hash of the user's bin; the hash function is part of the message."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import BLOCK, MOST_ENUMERATED
from shufflebounds._engines.errors.counted import message_rows
from shufflebounds.mechanisms.oracles._counts import FrequencyOracle, independent_patterns
from shufflebounds.mechanisms.oracles._two_level import Others, Shares

__all__ = ["LocalHashing"]


@with_passages
@dataclass(frozen=True)
class LocalHashing(FrequencyOracle):
    r"""A random public hash function into g buckets, and the bucket of the user's bin after g-ary randomized response.

    .. math:: h_a(x) = \sum_i a_i x_i \bmod g, \qquad
        \Pr[Y = (a, r) \mid x] = \frac{g^{-L}\, e^{\varepsilon_0 [r = h_a(x)]}}{e^{\varepsilon_0} + g - 1}

    Here :math:`x_i` are the L bits of the index x of the user's bin, and a is uniform on :math:`\{0..g-1\}^L`.

    Parameters
    ----------
    {oracle: 2**30}
    buckets : int, optional
        Number g of buckets, 2 to 2**30. The default has the smallest variance at this local budget and is close to
        :math:`e^{\varepsilon_0}+1` (at most 2**30). For a given guarantee after a shuffle another g is the best, which
        :func:`~shufflebounds.shuffle.compare_at` finds.

    Notes
    -----
    The users' values are bins 0..k - 1. A message is a row of 1 + L unsigned integers: the bucket r, then the coefficients
    :math:`a_i` of the hash function, that of the lowest bit first. The message supports the bins x with :math:`h_a(x) = r`.
    The argument `counts` of :meth:`estimate` is how many messages support each bin.

    Neighbours: the bin is replaced. The estimate is unbiased and the privacy bounds are valid without the assumption of an ideal
    hash function. The estimate involves two bins at a time, and the bounds after a shuffle three: the target's two and that of
    another user. (Where datasets are enumerated, so are all hash functions.) For three bins and uniform a and r, the events that
    :math:`h_a(x) = r` are independent, as for ideal hashing. Proof: one of the bins, x, differs from the other two, y and z, in
    some bit i, and y differs from z in some bit j. Modulo g, :math:`\pm a_i` is a term of :math:`h_a(x) - h_a(y)`, but not of
    :math:`h_a(y) - h_a(z)`, of which :math:`\pm a_j` is a term. So these two differences and :math:`r - h_a(y)` are independent and
    uniform.

    :meth:`aggregate` takes about 0.5 ns times users times bins.

    References
    ----------
    Wang, T., Blocki, J., Li, N., Jha, S. Locally differentially private protocols for frequency estimation, 2017, section 4.3.

    Carter, J. L., Wegman, M. N. Universal classes of hash functions, 1979.

    Examples
    --------
    >>> from shufflebounds.mechanisms import LocalHashing
    >>> hashing = LocalHashing(bins=100, local_eps=1.0)
    >>> hashing.buckets, hashing.message_bits
    (4, 16.0)
    >>> messages = hashing.randomize([7] * 1000, rng=1)
    >>> messages.shape, int(hashing.estimate(messages).argmax())
    ((1000, 8), 7)
    """

    bins: int
    local_eps: float
    buckets: int | None = None

    theorem: ClassVar[str] = "exact for local hashing by a universal family, the hash function public"
    neighbours: ClassVar[str] = "replace the user's bin; the analyst sees the hash function and the bucket"

    def __post_init__(self) -> None:
        self._check(2**30)
        self._check_size("buckets", math.floor(min(math.exp(self.local_eps), 2.0**30)) + 1, 2, 2**30)

    @property
    def _g(self) -> int:
        assert self.buckets is not None
        return self.buckets

    @property
    def _length(self) -> int:
        """Number of bits of a bin."""
        return (self.bins - 1).bit_length()

    @property
    def _word(self) -> type[np.uint8] | type[np.uint16] | type[np.uint32]:
        """The smallest unsigned integer type in which twice the number of a bucket does not overflow."""
        return np.uint8 if self._g <= 2**7 else np.uint16 if self._g <= 2**15 else np.uint32

    def _shares(self) -> Shares:
        hit = 1 / self._g
        miss = (self._g - 1) / self._g
        return Shares(hit * miss, hit * hit, miss * miss)

    def _log_common(self) -> float:
        # Only the hash function 0 has the same value for all bins, since these include 0 and all powers of 2 below 2^L. The bucket
        # must be this value.
        return (1 - self._length) * math.log(self._g)

    def _patterns(self) -> dict[tuple[bool, ...], Fraction]:
        # The events that the hash of a bin is the bucket are independent for three bins, but not for four.
        if self.bins <= 3:
            return independent_patterns(self.bins, Fraction(1, self._g))
        total = self._g ** (self._length + 1)
        if total > MOST_ENUMERATED:
            return {}
        # The buckets of the bins under each hash function: the sums of its values a_i over the bits of the bin.
        steps = np.indices((self._g,) * self._length).reshape(self._length, -1)
        bits = np.arange(self.bins)[:, None] >> np.arange(self._length) & 1
        hashes = bits @ steps % self._g
        inside = (hashes == np.arange(self._g)[:, None, None]).transpose(1, 0, 2).reshape(self.bins, -1)
        classes, counts = np.unique(inside, axis=1, return_counts=True)
        return {tuple(one): Fraction(count, total) for one, count in zip(classes.T.tolist(), counts.tolist())}

    def _others(self) -> tuple[Others, ...]:
        return self._independent(1 / self._g, (self._g - 1) / self._g)

    @property
    def message_bits(self) -> float:
        """Length of one message in bits: the hash function and the bucket, (L + 1) log2(buckets)."""
        return (self._length + 1) * math.log2(self._g)

    def _messages(self, chosen: NDArray[np.int64], source: np.random.Generator) -> NDArray[np.integer]:
        g, word = self._g, self._word
        columns = source.integers(0, g, size=(1 + self._length, chosen.size), dtype=word)
        hashed = np.zeros(chosen.size, dtype=word)
        for i in range(self._length):
            bit = ((chosen >> i) & 1).astype(word)
            hashed = _reduced(hashed + bit * columns[1 + i], g)
        is_uniform = source.random(chosen.size) < math.exp(self._log_base())
        columns[0] = np.where(is_uniform, columns[0], hashed)
        return columns.T

    @property
    def _message_bytes(self) -> int:
        return (1 + self._length) * np.dtype(self._word).itemsize

    def _checked_messages(self, messages: ArrayLike) -> NDArray[Any]:
        seen = message_rows(messages, 1 + self._length, "message")
        if seen.size and (seen.dtype != self._word or int(seen.max()) >= self._g):
            seen = _validate.whole_array("messages", seen, 0, self._g - 1).astype(self._word)
        return seen

    def _added(self, messages: NDArray[Any]) -> NDArray[np.int64]:
        columns = np.ascontiguousarray(messages.T)
        counts = np.zeros(self.bins, dtype=np.int64)
        for start in range(0, len(messages), BLOCK):
            self._compare(columns[:, start : start + BLOCK], counts)
        return counts

    def _compare(self, columns: NDArray[Any], counts: NDArray[np.int64]) -> None:
        """Add one block of messages to `counts`: a message counts for every bin whose hash is the message's bucket."""
        reported, coefficients = columns[0], columns[1:]
        # above[i] is the hash of the bits of a bin's number from bit i on. For the next bin, only the entries up to the lowest set
        # bit of its number change.
        above = [np.zeros_like(reported) for _ in range(self._length + 1)]
        counts[0] += np.count_nonzero(reported == 0)
        for x in range(1, self.bins):
            lowest = (x & -x).bit_length() - 1
            hashed = _reduced(above[lowest + 1] + coefficients[lowest], self._g)
            counts[x] += np.count_nonzero(hashed == reported)
            above[: lowest + 1] = [hashed] * (lowest + 1)


def _reduced(total: NDArray[Any], modulus: int) -> NDArray[Any]:
    """Return total modulo `modulus`, for totals below twice the modulus.

    If total < modulus, the unsigned difference total - modulus wraps around to a number above total, so the smaller of the two is
    the result.
    """
    return np.asarray(np.minimum(total, total - total.dtype.type(modulus)))
