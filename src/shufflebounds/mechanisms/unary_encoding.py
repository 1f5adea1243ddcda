"""Unary encoding: a bit for every bin, each flipped on its own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds import _validate
from shufflebounds._docs import with_passages
from shufflebounds._types import ULP
from shufflebounds.mechanisms._count_errors import Chances
from shufflebounds.mechanisms._counts import FrequencyOracle, bernoulli
from shufflebounds.mechanisms._two_level import Others, Shares
from shufflebounds.shuffle.clones import MAX_LOCAL_EPS

__all__ = ["UnaryEncoding"]


@with_passages
@dataclass(frozen=True)
class UnaryEncoding(FrequencyOracle):
    r"""One bit for every bin: a one with chance p in the user's own bin and with chance q in any other.

    .. math:: e^{\varepsilon_0} = \frac{p\,(1-q)}{q\,(1-p)}

    Parameters
    ----------
    bins : int
        Number k of bins, 2 to 2**20.
    p, q : float
        Chances of a one in the user's own bin and in the others, 1e-300 <= q < p < 1.

    Notes
    -----
    A message is a row of bits, uint8, one a bin, and supports the bins of its ones.

    Neighbours: the bin is replaced, which changes the chances of two bits. :meth:`symmetric` has q = 1 - p (basic RAPPOR),
    :meth:`optimized` p = 1/2, which has the least variance of a rare bin at its budget.

    The blanket of :meth:`shuffled` is the base law that a word without a one in any bin allows, at every word; the word of all
    ones allows a little more.

    References
    ----------
    Wang, T., Blocki, J., Li, N., Jha, S. Locally differentially private protocols for frequency estimation, 2017, section 4.2.

    Examples
    --------
    >>> from shufflebounds.mechanisms import UnaryEncoding
    >>> encoding = UnaryEncoding.optimized(bins=100, local_eps=1.0)
    >>> print(f"{encoding.p} {encoding.q:.6f} {encoding.local_eps:.6f}")
    0.5 0.268941 1.000000
    >>> messages = encoding.randomize([7] * 1000, rng=1)
    >>> messages.shape, int(encoding.estimate(messages).argmax())
    ((1000, 100), 7)
    """

    bins: int
    p: float
    q: float

    theorem: ClassVar[str] = "exact for unary encoding"
    neighbours: ClassVar[str] = "replace the user's bin; the analyst sees the word of bits"

    def __post_init__(self) -> None:
        _validate.integer_field(self, "bins", 2, 2**20)
        _validate.real_field(self, "p", 0, 1, open_low=True, open_high=True)
        _validate.real_field(self, "q", 1e-300, self.p, open_high=True)
        if self.local_eps > MAX_LOCAL_EPS:
            raise ValueError(f"q={self.q:g} with p={self.p!r} has the local budget {self.local_eps:g}: at most {MAX_LOCAL_EPS:g}")

    @classmethod
    def symmetric(cls, bins: int, local_eps: float) -> Self:
        r"""Return the encoding that flips every bit with the same chance, :math:`q = 1 - p = 1/(e^{\varepsilon_0/2}+1)`.

        Parameters
        ----------
        bins : int
            Number of bins, 2 to 2**20.
        local_eps : float
            Budget in nats, in (0, 72]: beyond, p is 1 as a double.

        Returns
        -------
        UnaryEncoding
            With `local_eps` met but for the rounding of p and q.

        {raises}

        Examples
        --------
        >>> from shufflebounds.mechanisms import UnaryEncoding
        >>> round(UnaryEncoding.symmetric(10, 2.0).q, 9)
        0.268941421
        """
        half = _validate.real("local_eps", local_eps, 0, 72, open_low=True) / 2
        return cls(bins, 1 / (1 + math.exp(-half)), math.exp(-half) / (1 + math.exp(-half)))

    @classmethod
    def optimized(cls, bins: int, local_eps: float) -> Self:
        r"""Return the encoding with p = 1/2 and :math:`q = 1/(e^{\varepsilon_0}+1)`, the least variance of a rare bin.

        Parameters
        ----------
        bins : int
            Number of bins, 2 to 2**20.
        local_eps : float
            Budget in nats, in (0, 690].

        Returns
        -------
        UnaryEncoding
            With `local_eps` met but for the rounding of q.

        {raises}
        """
        eps0 = _validate.real("local_eps", local_eps, 0, 690, open_low=True)
        return cls(bins, 0.5, math.exp(-eps0) / (1 + math.exp(-eps0)))

    @property
    def local_eps(self) -> float:  # type: ignore[override]
        """Budget in nats, ln(p (1 - q)/(q (1 - p)))."""
        # sums of positive terms: (p - q) enters once each way
        gap = self.p - self.q
        return math.log1p(gap / self.q) + math.log1p(gap / (1 - self.p))

    def _loss_error(self) -> float:
        # the gap, two quotients, two logarithms and their sum
        return 8 * ULP * self.local_eps

    def _shares(self) -> Shares:
        q = self.q
        return Shares(q * (1 - q), q * q, (1 - q) ** 2)

    def _others(self) -> tuple[Others, ...]:
        if self.bins == 2:
            return ()
        one, both, neither = self._shares()
        q = self.q
        classes = (one, one, both, neither)
        inside, outside = (tuple(share * part for part in classes) for share in (q, 1 - q))
        return (Others("all others hold a third value", inside, outside),)  # type: ignore[arg-type]

    def _kinds(self) -> tuple[Others, ...]:
        # permuting the inputs that are not the target's two permutes the outputs, so that these have one law of X
        return (*self._targets(), *self._others())

    def _chances(self) -> Chances:
        return Chances(self.p, 1 - self.p, self.q, 1 - self.q, self.p - self.q)

    @property
    def message_bits(self) -> int:
        """Length of one message in bits, one a bin."""
        return self.bins

    def _messages(self, held: NDArray[np.int64], source: np.random.Generator) -> NDArray[np.uint8]:
        bits = bernoulli(source, (held.size, self.bins), self.q)
        bits[np.arange(held.size), held] = bernoulli(source, held.shape, self.p)
        return bits.view(np.uint8)

    def support(self, messages: ArrayLike) -> tuple[NDArray[np.int64], int]:
        words = np.asarray(messages)
        if words.ndim != 2 or words.shape[1] != self.bins or words.shape[0] == 0:
            raise ValueError(f"messages has shape {words.shape}: it must be (users, {self.bins}), one word a row")
        if words.dtype.kind not in "bu" or int(words.max()) > 1:
            words = _validate.whole_array("messages", words, 0, 1)
        return words.sum(axis=0, dtype=np.int64), words.shape[0]
