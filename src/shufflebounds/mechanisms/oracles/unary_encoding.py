"""Unary encoding: one bit for every bin, each randomized independently."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.types import ULP
from shufflebounds._engines.errors.count_errors import SupportProbabilities
from shufflebounds._engines.errors.counted import CountsOfColumns, bernoulli
from shufflebounds.mechanisms.oracles._counts import FrequencyOracle, independent_patterns
from shufflebounds.mechanisms.oracles._two_level import Others, Shares

__all__ = ["UnaryEncoding"]


@with_passages
@dataclass(frozen=True)
class UnaryEncoding(CountsOfColumns, FrequencyOracle):
    r"""One bit for every bin: 1 with probability p for the user's bin and with probability q for any other bin.

    .. math:: e^{\varepsilon_0} = \frac{p\,(1-q)}{q\,(1-p)}

    Parameters
    ----------
    bins : int
        Number k of bins, 2 to 2**20.
    p, q : float
        Probabilities that the bit is 1 for the user's bin and for any other bin, 1e-300 <= q < p < 1.

    Notes
    -----
    The users' values are bins 0..k - 1. A message is a row of bits, uint8, one for each bin; it supports the bins whose bit is 1.
    The argument `counts` of :meth:`estimate` is how many messages support each bin, the sums of the columns.

    Neighbours: the bin is replaced, which changes the probabilities of two bits. :meth:`symmetric` has q = 1 - p (basic RAPPOR).
    :meth:`optimized` has p = 1/2, which gives the smallest variance at its budget for a bin with few users.

    The privacy blanket that :meth:`shuffled` uses is a multiple of the distribution of independent bits that are 1 with probability
    q. For every word of bits except all ones it equals the smallest probability over all inputs; for all ones it is smaller.

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
        if self.local_eps > LARGEST_EXPONENT:
            most = f"at most {LARGEST_EXPONENT:g}"
            raise ValueError(f"q={self.q:g} with p={self.p!r} has the local budget {self.local_eps:g}: {most}")

    @classmethod
    def symmetric(cls, bins: int, local_eps: float) -> Self:
        r"""Return the encoding that flips every bit with the same probability :math:`q = 1 - p = 1/(e^{\varepsilon_0/2}+1)`.

        Parameters
        ----------
        bins : int
            Number of bins, 2 to 2**20.
        local_eps : float
            Budget in nats, in (0, 72]; for larger budgets p would round to 1.

        Returns
        -------
        UnaryEncoding
            Its local budget is `local_eps`, up to the rounding of p and q.

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
        r"""Return the encoding with p = 1/2 and :math:`q = 1/(e^{\varepsilon_0}+1)`, of smallest variance for a bin with few users.

        Parameters
        ----------
        bins : int
            Number of bins, 2 to 2**20.
        local_eps : float
            Budget in nats, in (0, 690].

        Returns
        -------
        UnaryEncoding
            Its local budget is `local_eps`, up to the rounding of q.

        {raises}
        """
        eps0 = _validate.real("local_eps", local_eps, 0, 690, open_low=True)
        return cls(bins, 0.5, math.exp(-eps0) / (1 + math.exp(-eps0)))

    @property
    def local_eps(self) -> float:  # type: ignore[override]
        """Budget in nats, ln(p (1 - q)/(q (1 - p)))."""
        # Both logarithms, ln(p/q) and ln((1 - q)/(1 - p)), are computed by log1p, which avoids cancellation for p close to q.
        gap = self.p - self.q
        return math.log1p(gap / self.q) + math.log1p(gap / (1 - self.p))

    def _loss_error(self) -> float:
        # The error covers the rounding of the gap, of two quotients, of two logarithms and of their sum.
        return 8 * ULP * self.local_eps

    def _shares(self) -> Shares:
        q = self.q
        return Shares(q * (1 - q), q * q, (1 - q) ** 2)

    def _log_masses(self) -> tuple[float, float, float]:
        # The masses follow from p and q without `local_eps`, whose rounding error would exceed theirs.
        p, q = self.p, self.q
        miss, other = math.log1p(-p), math.log1p(-q)
        return math.log(q) + miss, math.log(p * q + (1 - p) * (1 - q)), math.log(p) + other

    def _log_common(self) -> float:
        # The message with a one for every bin is in all lifted sets.
        return (self.bins - 2) * math.log(self.q)

    def _patterns(self) -> dict[tuple[bool, ...], Fraction]:
        return independent_patterns(self.bins, Fraction(self.q))

    def _inverse_odds(self) -> Fraction:
        p, q = Fraction(self.p), Fraction(self.q)
        return q * (1 - p) / (p * (1 - q))

    def _others(self) -> tuple[Others, ...]:
        return self._independent(self.q, 1 - self.q)

    def _support_probabilities(self) -> SupportProbabilities:
        return SupportProbabilities(self.p, 1 - self.p, self.q, 1 - self.q, self.p - self.q)

    @property
    def message_bits(self) -> int:
        """Length of one message in bits, which is the number of bins."""
        return self.bins

    def _messages(self, chosen: NDArray[np.int64], source: np.random.Generator) -> NDArray[np.uint8]:
        bits = bernoulli(source, (chosen.size, self.bins), self.q)
        bits[np.arange(chosen.size), chosen] = bernoulli(source, chosen.shape, self.p)
        return bits.view(np.uint8)

    def _simulated(self, values: NDArray[Any], source: np.random.Generator) -> NDArray[np.int64]:
        held = np.bincount(values, minlength=self.bins)
        return source.binomial(held, self.p) + source.binomial(values.size - held, self.q)
