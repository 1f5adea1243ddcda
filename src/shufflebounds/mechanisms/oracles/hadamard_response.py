"""Hadamard response: a frequency oracle whose messages are words, with a fast estimate by the Walsh-Hadamard transform."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.docs import with_passages
from shufflebounds._engines.errors.counted import CountsOfLabels
from shufflebounds.mechanisms.oracles._counts import FrequencyOracle
from shufflebounds.mechanisms.oracles._two_level import Others, Shares

__all__ = ["HadamardResponse"]


@with_passages
@dataclass(frozen=True)
class HadamardResponse(CountsOfLabels, FrequencyOracle):
    r"""A random word y of :math:`\log_2 K` bits; for bin x, words with an even number of ones in common with x + 1 are more likely.

    .. math:: \Pr[Y = y \mid x] = \frac{2}{K} \, \frac{e^{\varepsilon_0 [\langle y, x+1\rangle \text{ even}]}}{e^{\varepsilon_0}+1},
        \qquad K = 2^{\lceil\log_2(k+1)\rceil}

    Here :math:`\langle y, x+1\rangle` is the number of ones that the binary words y and x + 1 have in common.

    Parameters
    ----------
    {oracle: 2**24}

    Notes
    -----
    The users' values are bins 0..k - 1. A message is a word y in 0..K - 1, int64. It supports the bins x for which :math:`\langle
    y, x+1\rangle` is even. The argument `counts` of :meth:`estimate` is how often each of the K words was sent.

    Neighbours: the bin is replaced. For each bin half of all words are more likely, and for two bins a quarter of all words are
    more likely for both. The variance is close to the smallest possible for budgets below about 1, and larger than that of subset
    selection or hashing for larger budgets. The estimate takes one fast Walsh-Hadamard transform of length K.

    References
    ----------
    Acharya, J., Sun, Z., Zhang, H. Hadamard response: estimating distributions privately, efficiently, and with little
    communication, 2019, section 4 (high privacy).

    Examples
    --------
    >>> from shufflebounds.mechanisms import HadamardResponse
    >>> response = HadamardResponse(bins=100, local_eps=1.0)
    >>> response.message_bits
    7
    >>> messages = response.randomize([7] * 1000, rng=1)
    >>> int(response.estimate(messages).argmax())
    7
    """

    bins: int
    local_eps: float

    theorem: ClassVar[str] = "exact for Hadamard response"
    neighbours: ClassVar[str] = "replace the user's bin; the analyst sees the word"

    def __post_init__(self) -> None:
        self._check(2**24)

    def _shares(self) -> Shares:
        return Shares(0.25, 0.25, 0.25)

    def _log_common(self) -> float:
        # The word 0 is in the lifted sets of all bins. No other word is: the codes 1..k of the bins include all powers of 2 below
        # K. A quarter of the words are in the lifted sets of two bins.
        return math.log(4 / self._labels)

    def _patterns(self) -> dict[tuple[bool, ...], Fraction]:
        return {tuple((word & (x + 1)).bit_count() % 2 == 0 for x in range(self.bins)): Fraction(1, self._labels)
                for word in range(self._labels)}

    def _others(self) -> tuple[Others, ...]:
        eighth = (0.125, 0.125, 0.125, 0.125)
        independent = Others("every other user has a value whose parity is independent of the target's two", eighth, eighth)
        # The target's two bins have the codes 1 and 2. A word has even parity with 1 xor 2 if its parities with 1 and 2 are equal.
        summed = Others("every other user has a value whose parity is the sum of the target's two", (0.0, 0.0, 0.25, 0.25),
                        (0.25, 0.25, 0.0, 0.0))
        return () if self.bins == 2 else (summed,) if self.bins == 3 else (independent, summed)

    @property
    def _labels(self) -> int:
        return 1 << self.message_bits

    @property
    def message_bits(self) -> int:
        """Length of one message in bits, log2(K)."""
        return self.bins.bit_length()

    def _messages(self, chosen: NDArray[np.int64], source: np.random.Generator) -> NDArray[np.int64]:
        code = chosen + 1
        word = source.integers(0, 1 << self.message_bits, size=code.size)
        depends = source.random(code.size) >= math.exp(self._log_base())
        odd = np.bitwise_count(word & code) & 1 == 1
        # Flipping the bit of the word at the lowest 1 of the code is a bijection from words of odd to words of even parity, so the
        # results are uniform on the words of even parity.
        return np.where(depends & odd, word ^ (code & -code), word)

    def _support(self, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        size = self._labels
        spectrum = counts
        width = 1
        while width < size:
            pairs = spectrum.reshape(-1, 2, width)
            spectrum = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
            width *= 2
        return np.asarray((counts.sum() + spectrum[1 : self.bins + 1]) // 2)
