"""Frozen distributions `binom`, `poisson_binom` and `compound_binom`, named as in scipy.stats."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import FloatArray, plain
from shufflebounds.tails._functions import Kind, checked_k
from shufflebounds.tails._poisson_tables import window_of
from shufflebounds.tails.compound_binomial import _answers as answers_of_compound
from shufflebounds.tails.compound_binomial import _checked as checked_compound
from shufflebounds.tails.frozen import FrozenLaw
from shufflebounds.tails.poisson_binomial import BINOMIAL
from shufflebounds.tails.poisson_binomial import _answers as answers_of_binomials
from shufflebounds.tails.poisson_binomial import _checked_law as checked_binomials

__all__ = ["binom", "compound_binom", "poisson_binom"]


@with_passages
@dataclass(frozen=True)
class binom(FrozenLaw):
    """The frozen binomial distribution Bin(n, p).

    Parameters
    ----------
    n : int
        Number of trials, 0 to 2**53.
    p : float
        Probability of success, in [0, 1].

    {raises: If a parameter lies outside its range.}

    See Also
    --------
    binom_logsf : the same tails for arrays of n and p.

    Notes
    -----
    The errors of the logarithms are those of :func:`binom_logsf`, a few ulp. The methods have the same names and meanings as
    those of a frozen ``scipy.stats.binom(n, p)``, but ``stats``, ``entropy`` and ``moment`` are missing.

    Examples
    --------
    >>> from shufflebounds import tails
    >>> law = tails.binom(10**4, 0.5)
    >>> round(law.logsf(9000), 9), law.ppf(0.5), law.mean()
    (-3687.042014559, 5000.0, 5000.0)
    """

    n: int
    p: float

    def __post_init__(self) -> None:
        _validate.integer_field(self, "n")
        _validate.real_field(self, "p", 0, 1)

    def _log_prob(self, kind: Kind, k: ArrayLike) -> FloatArray | float:
        return plain(BINOMIAL[kind](checked_k(k), self.n, self.p))

    def support(self) -> tuple[int, int]:
        """Return (0, n)."""
        return 0, self.n

    def mean(self) -> float:
        """Return n p."""
        return self.n * self.p

    def var(self) -> float:
        """Return n p (1 - p)."""
        return self.n * self.p * (1 - self.p)

    def _draw(self, rng: np.random.Generator, size: int | tuple[int, ...] | None) -> Any:
        return rng.binomial(self.n, self.p, size)


@with_passages
@dataclass(frozen=True, eq=False, repr=False)
class poisson_binom(FrozenLaw):
    """The frozen distribution of a sum of independent Bernoulli variables.

    Parameters
    ----------
    p : array_like of float, shape (groups,)
        Success probabilities, each in [0, 1].
    counts : array_like of int, shape (groups,), optional
        Multiplicity of each p; 1 each by default. Their total is at most 2**53.

    {raises: As :func:`poisson_binom_logpmf`.}

    See Also
    --------
    poisson_binom_window : the probabilities of all values except for a given mass in the tails.

    Notes
    -----
    The errors are those of :func:`poisson_binom_logpmf`: relative to the probability, however small it is. A frozen
    ``scipy.stats.poisson_binom(p)`` has methods of the same names, but no correct digit in tails below 1e-16.

    Examples
    --------
    A tail twelve standard deviations above the mean, where 1 - cdf in double precision is 0:

    >>> import numpy as np
    >>> from shufflebounds import tails
    >>> law = tails.poisson_binom(np.linspace(0.01, 0.99, 3000))
    >>> k = np.ceil(law.mean() + 12 * law.std())
    >>> print(round(law.logsf(k), 2), law.isf(law.sf(k)) == k)
    -76.07 True
    """

    p: FloatArray
    counts: FloatArray | None = None
    _law: tuple[FloatArray, FloatArray | None, int] = field(init=False)

    def __post_init__(self) -> None:
        law = checked_binomials(self.p, self.counts)
        # the arrays are copied, so that later changes of the caller's arrays do not change the distribution
        object.__setattr__(self, "_law", (law[0].copy(), None if law[1] is None else law[1].copy(), law[2]))
        object.__setattr__(self, "p", np.array(self.p, dtype=float))
        object.__setattr__(self, "counts", None if self.counts is None else np.array(self.counts, dtype=float))

    def __repr__(self) -> str:
        """Return a representation with the number of trials."""
        first, last = self.support()
        return f"poisson_binom(<{self.p.size} probabilities>, support=({first}, {last}))"

    def _log_prob(self, kind: Kind, k: ArrayLike) -> FloatArray | float:
        return answers_of_binomials(self._law, k, kind)

    def support(self) -> tuple[int, int]:
        """Return the ends of the support: the number of p that are 1, and the number of positive p."""
        inner, counts, shift = self._law
        return shift, shift + int(inner.size if counts is None else counts.sum())

    def mean(self) -> float:
        """Return the sum of the probabilities."""
        inner, counts, shift = self._law
        return shift + math.fsum(inner if counts is None else inner * counts)

    def var(self) -> float:
        """Return the sum of p (1 - p)."""
        inner, counts, _ = self._law
        return math.fsum(inner * (1 - inner) * (1 if counts is None else counts))

    def _guess(self, log_level: FloatArray, above: NDArray[np.bool_]) -> FloatArray:
        # for such a wide distribution, a table of all probabilities takes longer than a search that starts at the normal
        # approximation
        if self.std() > 1e5:
            return super()._guess(log_level, above)
        first, logs, _ = window_of(self._law, max(float(log_level.min()) - 3, -1e6))
        below, beyond = np.logaddexp.accumulate(logs), -np.logaddexp.accumulate(logs[::-1])[::-1]
        place = np.where(above, np.searchsorted(beyond, -log_level) - 1, np.searchsorted(below, log_level))
        return np.asarray(first + place, dtype=float)

    def _draw(self, rng: np.random.Generator, size: int | tuple[int, ...] | None) -> Any:
        inner, counts, shift = self._law
        # a table is faster than the sum of one binomial variate per group
        if inner.size > 64:
            return super()._draw(rng, size)
        shape = () if size is None else (size,) if isinstance(size, int) else tuple(size)
        trials = np.ones(inner.size) if counts is None else counts
        drawn = shift + sum((rng.binomial(int(c), p, shape) for c, p in zip(trials, inner)), np.zeros(shape, dtype=np.int64))
        return drawn if shape else int(drawn)


@with_passages
@dataclass(frozen=True, eq=False, repr=False)
class compound_binom(FrozenLaw):
    r"""The frozen distribution Bin(S, p) with random S: :math:`\Pr[S = \text{first} + i] = e^{\text{log\_weights}_i}`.

    Parameters
    ----------
    first : int
        Least number of trials.
    log_weights : array_like of float, shape (sizes,)
        Natural logarithms of Pr[S = first], Pr[S = first + 1], ...; the probabilities sum to 1 within 1e-9.
    p : float
        Probability of success of each trial, in [0, 1].

    {raises: As :func:`compound_binom_logpmf`.}

    Notes
    -----
    The errors are those of :func:`compound_binom_logsf`.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds import tails
    >>> law = tails.compound_binom(1, np.full(6, -np.log(6)), 0.5)
    >>> law.support(), round(law.mean(), 12), law.ppf(0.9)
    ((0, 6), 1.75, 3.0)
    """

    first: int
    log_weights: FloatArray
    p: float

    def __post_init__(self) -> None:
        first, weights, p = checked_compound(self.first, self.log_weights, self.p)
        for name, value in (("first", first), ("log_weights", np.array(weights)), ("p", p)):
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Return a representation with the number of sizes."""
        return f"compound_binom(first={self.first}, <{self.log_weights.size} weights>, p={self.p!r})"

    def _log_prob(self, kind: Kind, k: ArrayLike) -> FloatArray | float:
        return answers_of_compound(kind, k, self.first, self.log_weights, self.p)

    def support(self) -> tuple[int, int]:
        """Return the least and the greatest value of positive probability."""
        held = np.flatnonzero(self.log_weights > -np.inf)
        last = self.first + int(held[-1])
        return (self.first + int(held[0]) if self.p == 1 else 0), (last if self.p else 0)

    def mean(self) -> float:
        """Return p E[S]."""
        return self.p * self._sizes()[0]

    def var(self) -> float:
        """Return p (1 - p) E[S] + p^2 Var[S]."""
        mean, var = self._sizes()
        return self.p * (1 - self.p) * mean + self.p**2 * var

    def _sizes(self) -> tuple[float, float]:
        """Return the mean and the variance of S."""
        weights = np.exp(self.log_weights)
        weights /= weights.sum()
        steps = np.arange(weights.size)
        mean = math.fsum(weights * steps)
        return self.first + mean, math.fsum(weights * (steps - mean) ** 2)

    def _draw(self, rng: np.random.Generator, size: int | tuple[int, ...] | None) -> Any:
        weights = np.exp(self.log_weights)
        sizes = self.first + rng.choice(weights.size, size=size, p=weights / weights.sum())
        return rng.binomial(sizes, self.p)
