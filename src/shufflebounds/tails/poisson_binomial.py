"""The Poisson-binomial distribution: log pmf, log tails, and the range of values that has all but a given mass."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import threads as _threads
from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.types import FloatArray, plain
from shufflebounds._core._binomial import binom_logcdf, binom_logpmf, binom_logsf
from shufflebounds.tails._functions import Kind, checked_k
from shufflebounds.tails._poisson_tables import served, window_of

__all__ = ["poisson_binom_logcdf", "poisson_binom_logpmf", "poisson_binom_logsf", "poisson_binom_window"]


BINOMIAL = {Kind.PMF: binom_logpmf, Kind.UPPER: binom_logsf, Kind.LOWER: binom_logcdf}


@with_passages
def poisson_binom_logpmf(
    k: ArrayLike, p: ArrayLike, counts: ArrayLike | None = None, *, threads: int = 1
) -> FloatArray | float:
    r"""Logarithm of the Poisson-binomial probability mass function.

    .. math:: \log \Pr[S = k], \qquad S = \sum_j \mathrm{Bin}(c_j, p_j) \text{ with independent terms.}

    Parameters
    ----------
    k : array_like of float, any shape
        Values of the sum. A value that is not an integer in 0..n has probability zero.
    p : array_like of float, shape (groups,) or (..., groups), or list of arrays
        Success probabilities, each in [0, 1], in any order; an empty array stands for S = 0. An array with more dimensions contains
        several distributions: each row along the last axis is one of them, and k broadcasts against the shape of the other axes. A
        list of arrays of different lengths also contains one distribution per array.
    counts : array_like of int, of the form of p, optional
        Number of trials with each p; 1 each by default. Their total n is at most 2**53.
    threads : int
        Number of threads that compute the distributions, 1 by default. The result is the same for every number of threads.

    {log_probability}

    Raises
    ------
    ValueError
        If k has a NaN or does not broadcast against the distributions, p and counts differ in their lengths, a p lies outside
        [0, 1], a count is negative or not an integer, or `threads` is not an integer in 1..32768.

    Notes
    -----
    The distribution is exponentially tilted: its probabilities p are replaced by ``p e^t/(1 - p + p e^t)`` with t such that the
    mean is k. The characteristic function of the tilted distribution is inverted by the trapezoidal rule. For up to 2000 trials,
    direct convolution is used instead if no probability can underflow.

    The relative error of a probability, however small it is, is at most 1.5e-13 + 4 ulp of its logarithm for a single k, and
    1e-12 if many k share one transform (measured; tables in ``_core/_lattice.pyx`` and ``_core/_blocks.pyx``).

    The run time is O(groups) for a value, or O(groups + sigma log sigma) for a run of 7 sigma consecutive values, where sigma is
    the standard deviation of S.

    References
    ----------
    .. [1] Y. Hong, "On computing the distribution function for the Poisson binomial distribution", Computational
       Statistics & Data Analysis 59 (2013) 41-51: the inversion, without the tilt.
    .. [2] N. Peres, A. R. Lee, U. Keich, "Exactly computing the tail of the Poisson-binomial distribution", ACM
       Transactions on Mathematical Software 47 (2021): the tilt, with convolution in place of the inversion.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(poisson_binom_logpmf([0, 1, 2], [0.5, 0.25])).round(12).tolist()
    [0.375, 0.5, 0.125]
    """
    return _evaluate(k, p, counts, Kind.PMF, threads)


def poisson_binom_logcdf(
    k: ArrayLike, p: ArrayLike, counts: ArrayLike | None = None, *, threads: int = 1
) -> FloatArray | float:
    r"""Logarithm of the Poisson-binomial distribution function.

    .. math:: \log \Pr[S \le \lfloor k \rfloor], \qquad S = \sum_j \mathrm{Bin}(c_j, p_j)

    Parameters
    ----------
    k : array_like of float, any shape
        Values of the sum; rounded down.
    p, counts, threads
        As in `poisson_binom_logpmf`, which lists the errors and the references.

    Returns
    -------
    ndarray of the shape of k, or float
        Natural logarithm of the probability, with a small relative error also where the probability is near 1.

    Notes
    -----
    The method is that of `poisson_binom_logpmf`, which integrates a tilted characteristic function. One more factor in the
    integrand, a geometric series, adds up the probabilities of a tail. The smaller one of the two tails is computed, and the larger
    one as 1 minus the smaller one.

    Examples
    --------
    >>> float(np.exp(poisson_binom_logcdf(1, [0.5, 0.25])).round(12))
    0.875
    """
    return _evaluate(k, p, counts, Kind.LOWER, threads)


def poisson_binom_logsf(
    k: ArrayLike, p: ArrayLike, counts: ArrayLike | None = None, *, threads: int = 1
) -> FloatArray | float:
    r"""Logarithm of the survival function, :math:`\log \Pr[S > \lfloor k \rfloor]`; parameters as in `poisson_binom_logcdf`.

    Examples
    --------
    A tail that is too small to be computed as 1 minus a distribution function:

    >>> p = (2 * np.arange(1024) + 1) / 2048
    >>> round(float(poisson_binom_logsf(1023, p)), 10)
    -1023.6534670998
    """
    return _evaluate(k, p, counts, Kind.UPPER, threads)


@with_passages
def poisson_binom_window(
    p: ArrayLike, counts: ArrayLike | None = None, *, log_tail: float = -50.0, threads: int = 1
) -> tuple[int, FloatArray]:
    r"""Log probabilities of a Poisson-binomial distribution on a range of values outside of which there is little mass.

    The range first, ..., last has at most one value more at each end than the smallest one with

    .. math:: \Pr[S < \text{first}] \le e^{\text{log\_tail}}, \qquad \Pr[S > \text{last}] \le e^{\text{log\_tail}}.

    Parameters
    ----------
    p, counts : array_like, shape (groups,)
        As in `poisson_binom_logpmf`.
    log_tail : float
        Natural logarithm of the mass that may be truncated at each end, in [-1e6, -1].
    threads : int
        With 2 or more, the values above and below the mean are computed at the same time. The result is the same.

    Returns
    -------
    first : int
        Least value in the range.
    logpmf : ndarray, shape (last - first + 1,)
        Natural logarithms of Pr[S = first], Pr[S = first + 1], ...; each probability has a small relative error.

    {raises: As in `poisson_binom_logpmf`, and if log_tail lies outside [-1e6, -1].}

    Notes
    -----
    The range is computed in blocks of about 7 standard deviations, each by one inverse FFT of the exponentially tilted
    distribution. The run time is O(groups + sigma log sigma), the memory O(sigma) besides p. The relative error of each probability
    is at most 1e-12 (measured: the header of ``_core/_blocks.pyx``).

    References
    ----------
    See `poisson_binom_logpmf`.

    Examples
    --------
    >>> first, logpmf = poisson_binom_window([0.5, 1.0, 0.25], log_tail=-20)
    >>> first, np.exp(logpmf).round(12).tolist()
    (1, [0.375, 0.5, 0.125])
    """
    log_tail = _validate.real("log_tail", log_tail, -1e6, -1)
    threads = _threads.checked(threads)
    law = _checked_law(p, counts)
    deviations = 2 * math.sqrt(-2 * log_tail)
    # The variance is at most a quarter of the number of trials. It is computed only if this bound does not show that the window is
    # small enough.
    width = deviations * math.sqrt(law[0].size if law[1] is None else float(law[1].sum())) / 2
    _validate.affordable("the window", width if width <= _validate.MOST_ENTRIES else deviations * _spread(*law[:2]))
    first, logpmf, _ = window_of(law, log_tail, threads)
    return first, logpmf


def _spread(p: FloatArray, counts: FloatArray | None) -> float:
    """Return the standard deviation of a distribution whose arguments have been checked."""
    return math.sqrt(float((p * (1 - p) * (1.0 if counts is None else counts)).sum()))


def _evaluate(k: ArrayLike, p: ArrayLike, counts: ArrayLike | None, kind: Kind, threads: int) -> FloatArray | float:
    threads = _threads.checked(threads)
    rows, shape = _rows("p", p)
    if shape == ():
        return _answers(_checked_law(p, counts), k, kind)
    values = checked_k(k)
    multiplicities: list[Any] = [None] * len(rows) if counts is None else _rows("counts", counts)[0]
    if len(multiplicities) != len(rows):
        raise ValueError(f"counts holds {len(multiplicities)} distributions: it must hold {len(rows)}, as p does")
    out = np.broadcast_shapes(values.shape, shape)
    values = np.broadcast_to(values, out)
    if out[len(out) - len(shape):] != shape:
        raise ValueError(f"k has shape {np.shape(k)}: it must broadcast to the shape {shape} of the distributions that p holds")
    values = values.reshape(-1, len(rows))
    answers = np.empty(values.shape)

    def fill(i: int) -> None:
        answers[:, i] = _answers(_checked_law(rows[i], multiplicities[i]), values[:, i], kind)

    _threads.each(fill, range(len(rows)), threads)
    return answers.reshape(out)


def _rows(name: str, p: ArrayLike) -> tuple[list[ArrayLike], tuple[int, ...]]:
    """Return the distributions of a batch, and the shape of the batch: () for one distribution, (m,) for a list of m arrays."""
    if isinstance(p, list | tuple) and any(np.ndim(row) for row in p) and len({np.shape(row) for row in p}) > 1:
        return list(p), (len(p),)
    if np.ndim(p) < 2:
        return [p], ()
    array = _validate.floats(name, p, "a number")
    shape = array.shape[:-1]
    return list(array.reshape(math.prod(shape), array.shape[-1])), shape


def _answers(law: tuple[FloatArray, FloatArray | None, int], k: ArrayLike, kind: Kind) -> FloatArray | float:
    """Return log probabilities at any real k of a distribution whose arguments have been checked."""
    inner, multiplicities, shift = law
    values = checked_k(k)
    if inner.size == 1:
        # a single p: the binomial kernel is faster than the Fourier inversion
        trials = 1.0 if multiplicities is None else float(multiplicities[0])
        result = np.asarray(BINOMIAL[kind](values - shift, trials, float(inner[0])))
    else:
        result = served(inner, multiplicities, values.ravel() - shift, kind, series=True)[0].reshape(values.shape)
    return plain(result)


def _checked_law(p: ArrayLike, counts: ArrayLike | None) -> tuple[FloatArray, FloatArray | None, int]:
    """Check p and counts. Return the p strictly between 0 and 1, their multiplicities, and the number of p that are 1."""
    array = _validate.floats("p", p, "a number in [0, 1]")
    if array.ndim != 1:
        raise ValueError(f"p has shape {array.shape}: it must be one-dimensional")
    ends = (float(array.min()), float(array.max())) if array.size else (0.0, 0.0)
    if not (ends[0] >= 0 and ends[1] <= 1):
        _validate.every_entry("p", array, (array >= 0) & (array <= 1), "in [0, 1]")
    multiplicities = None
    if counts is not None:
        multiplicities = _validate.floats("counts", counts, "an integer in [0, 2**53]")
        if multiplicities.shape != array.shape:
            raise ValueError(f"counts has shape {multiplicities.shape}: it must be that of p, {array.shape}")
        valid = (multiplicities >= 0) & (multiplicities <= _validate.MAX_COUNT) & (multiplicities % 1 == 0)
        _validate.every_entry("counts", multiplicities, valid, "an integer in 0..2**53")
        total = multiplicities.sum()
        if total >= _validate.MAX_COUNT and sum(map(int, multiplicities)) > _validate.MAX_COUNT:
            raise ValueError(f"counts sum to {_validate.format_value(float(total))}: they must not exceed 2**53")
    return inner_law(array, multiplicities, ends)


def inner_law(
    array: FloatArray, multiplicities: FloatArray | None, ends: tuple[float, float] | None = None
) -> tuple[FloatArray, FloatArray | None, int]:
    """Return the result of `_checked_law` for arguments that have been checked.

    `ends` are the smallest and the largest p, if known.
    """
    low, high = ends or ((float(array.min()), float(array.max())) if array.size else (0.0, 0.0))
    if low > 0 and high < 1 and (multiplicities is None or multiplicities.all()):
        return array, multiplicities, 0
    sure = array == 1
    inside = (array > 0) & ~sure
    if multiplicities is None:
        return array[inside], None, int(np.count_nonzero(sure))
    inside &= multiplicities > 0
    return array[inside], multiplicities[inside], int(multiplicities[sure].sum())
