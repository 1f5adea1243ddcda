"""The compound binomial distribution: a binomial count whose number of trials is itself random."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import FloatArray, plain
from shufflebounds._core import _compound
from shufflebounds._core._special import log1mexp
from shufflebounds.tails._functions import Kind, checked_k

__all__ = ["compound_binom_logcdf", "compound_binom_logpmf", "compound_binom_logsf"]


@with_passages
def compound_binom_logpmf(k: ArrayLike, first: int, log_weights: ArrayLike, p: float) -> FloatArray | float:
    r"""Logarithm of the compound binomial probability mass function.

    .. math:: \log \Pr[X = k], \qquad X \sim \mathrm{Bin}(S, p), \quad \Pr[S = \text{first} + i] = e^{\text{log\_weights}_i}.

    Parameters
    ----------
    k : array_like of float, any shape
        Counts; a k that is not an integer has probability zero.
    first : int
        Least number of trials, 0 to 2**53.
    log_weights : array_like of float, shape (sizes,)
        Natural logarithms of Pr[S = first], Pr[S = first + 1], ...; the probabilities sum to 1 within 1e-9.
    p : float
        Probability of success of each trial, in [0, 1].

    {log_probability}

    {raises: If an argument lies outside its range, `k` has a NaN, or the weights do not sum to 1.}

    Notes
    -----
    The probability is a sum of positive terms, one for each value of S, from the binomial kernel. Its relative error is a few
    1e-14, or a few ulp of its logarithm. If S ~ Bin(n, s) is itself binomial, no sum is needed: X ~ Bin(n, s p), so use
    :func:`binom_logpmf` with s p. If S is a sum of independent indicators with probabilities s_j, use :func:`poisson_binom_logpmf`
    with s_j p.

    References
    ----------
    L. Chen, Y. Long. Distributed Gaussian differential privacy via shuffling, Definition 3.1: the published double sum is a single
    binomial probability, because S is binomial.

    Examples
    --------
    A fair die determines the number of coins that are thrown. The probability of six heads is:

    >>> import numpy as np
    >>> from shufflebounds import tails
    >>> die = np.full(6, -np.log(6))
    >>> round(float(np.exp(tails.compound_binom_logpmf(6, 1, die, 0.5))), 12)
    0.002604166667
    """
    return _evaluate(Kind.PMF, k, first, log_weights, p)


def compound_binom_logcdf(k: ArrayLike, first: int, log_weights: ArrayLike, p: float) -> FloatArray | float:
    r"""Logarithm of the compound binomial distribution function, :math:`\log \Pr[X \le \lfloor k \rfloor]`.

    Parameters
    ----------
    k : array_like of float, any shape
        Counts; rounded down.
    first, log_weights, p
        As in :func:`compound_binom_logpmf`, which lists the errors and the reference.

    Returns
    -------
    ndarray of the shape of k, or float
        Natural logarithm of the probability, with a small relative error also where the probability is near 1: a probability above
        1/2 is computed as 1 minus the other tail.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds import tails
    >>> round(float(np.exp(tails.compound_binom_logcdf(0, 1, np.log([0.5, 0.5]), 0.5))), 12)
    0.375
    """
    return _evaluate(Kind.LOWER, k, first, log_weights, p)


def compound_binom_logsf(k: ArrayLike, first: int, log_weights: ArrayLike, p: float) -> FloatArray | float:
    r"""Logarithm of the survival function, :math:`\log \Pr[X > \lfloor k \rfloor]`; parameters as in :func:`compound_binom_logcdf`.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds import tails
    >>> round(float(tails.compound_binom_logsf(9999, 10000, [0.0], 0.5)), 9)
    -6931.471805599
    """
    return _evaluate(Kind.UPPER, k, first, log_weights, p)


def _evaluate(kind: Kind, k: ArrayLike, first: int, log_weights: ArrayLike, p: float) -> FloatArray | float:
    return _answers(kind, k, *_checked(first, log_weights, p))


def _checked(first: int, log_weights: ArrayLike, p: float) -> tuple[int, FloatArray, float]:
    p = _validate.real("p", p, 0, 1)
    first = _validate.integer("first", first)
    weights = _validate.floats("log_weights", log_weights, "a number <= 0")
    if weights.ndim != 1 or weights.size == 0:
        raise ValueError(f"log_weights has shape {np.shape(log_weights)}: it must be one-dimensional and not empty")
    if not (weights <= 1e-9).all():
        raise ValueError(f"log_weights holds {float(weights[~(weights <= 1e-9)][0])!r}: every entry must be <= 0")
    if abs(math.fsum(np.exp(weights)) - 1) > 1e-9:
        raise ValueError(f"log_weights sum to {math.fsum(np.exp(weights))!r} as probabilities: they must sum to 1 within 1e-9")
    if first + weights.size - 1 > _validate.MAX_COUNT:
        raise ValueError(f"first={first} with {weights.size} sizes must stay within 2**53")
    return first, weights, p


def _answers(kind: Kind, k: ArrayLike, first: int, weights: FloatArray, p: float) -> FloatArray | float:
    """Return log probabilities at any real k of a distribution whose arguments have been checked."""
    values = checked_k(k)
    flat = values.ravel()
    out = _sum(kind, flat if kind == Kind.PMF else np.floor(flat), first, weights, p)
    if kind == Kind.PMF:
        out[flat != np.floor(flat)] = -np.inf
    else:
        near = out > -0.69
        if near.any():
            out[near] = log1mexp(np.minimum(_sum(Kind(-kind), np.floor(flat[near]), first, weights, p), 0.0))
    return plain(out.reshape(values.shape))


def _sum(kind: Kind, k: FloatArray, first: int, weights: FloatArray, p: float) -> FloatArray:
    out = np.empty(k.size)
    code = {Kind.PMF: 0, Kind.LOWER: 1, Kind.UPPER: 2}[kind]
    _compound.compound_binom(code, np.ascontiguousarray(k), first, weights, p, out)
    return out
