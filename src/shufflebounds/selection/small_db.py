"""SmallDB: a small database, chosen by the exponential mechanism, that answers many linear queries approximately."""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import combinations_with_replacement
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.docs import with_passages
from shufflebounds._base.limits import LARGEST_EXPONENT, MOST_ITEMS
from shufflebounds._base.scipy_functions import betaln
from shufflebounds._base.types import FloatArray
from shufflebounds._base.validate import MAX_COUNT
from shufflebounds._core._binomial import binom_logpmf
from shufflebounds.selection.probabilities import selection_probs

__all__ = ["SmallDBError", "small_db", "small_db_error"]


class SmallDBError(NamedTuple):
    """An upper bound `error` of the error of SmallDB, and the number `size` of records of the small database for which it holds."""

    error: float
    size: int


@with_passages
def small_db_error(domain: int, queries: int, records: int, eps: float, beta: float, *, size: int | None = None) -> SmallDBError:
    r"""Upper bound of the error of every answer of SmallDB, with probability 1 - beta.

    SmallDB chooses one of the :math:`\binom{m+|X|-1}{m}` databases of m records by the exponential mechanism. The score of a
    database is minus the largest error of its answers. With probability at least :math:`1 - \beta` the error of every query is at
    most

    .. math:: \sqrt{\frac{\ln(2|Q|)}{2m}} + \frac{2}{\varepsilon n}\Bigl(\ln\binom{m+|X|-1}{m} + \ln\frac1\beta\Bigr)

    Parameters
    ----------
    domain : int
        Number \|X\| of possible records, 1 to 2**53.
    queries : int
        Number \|Q\| of linear queries, means over the records of a function in [0, 1]; 1 to 2**53.
    records : int
        Number n of records in the dataset, 1 to 2**53. It is public, since neighbouring datasets differ in one replaced record.
    eps : float
        Budget in nats, in (0, 700].
    beta : float
        Probability of a larger error, in (0, 1).
    size : int, optional
        Number m of records of the small database; by default the one with the smallest bound.

    Returns
    -------
    SmallDBError
        ``(error, size)``. The error is an upper bound. A bound above 1 is trivial, because all answers are in [0, 1].

    {raises}

    Notes
    -----
    By Hoeffding's inequality and a union bound over the queries, for every number above the square root in the bound there is a
    database of m records whose error is at most this number. The number of databases is finite, so there is also one whose error is
    at most the square root. The second term of the bound is the error of the exponential mechanism, whose scores have a sensitivity
    of at most 1/n. The published theorem uses :math:`m = \ln|Q|/\alpha^2` and counts :math:`|X|^m` databases.

    References
    ----------
    .. [1] A. Blum, K. Ligett, A. Roth, "A learning theory approach to noninteractive database privacy", JACM 2013.
    .. [2] S. Das, "Differential privacy: ideas, concepts and advances", 2022, Theorems 6.10 to 6.12.

    Examples
    --------
    >>> from shufflebounds.selection import small_db_error
    >>> found = small_db_error(domain=1000, queries=100, records=10**6, eps=1.0, beta=0.05)
    >>> round(found.error, 4), found.size
    (0.0162, 166899)
    """
    cells = _validate.integer("domain", domain, 1)
    asked = _validate.integer("queries", queries, 1)
    people = _validate.integer("records", records, 1)
    eps = _validate.real("eps", eps, 0, LARGEST_EXPONENT, open_low=True)
    beta = _validate.failure(beta)

    def bound(m: int) -> float:
        spread = 2 / (eps * people) * (_log_choose(m, cells - 1) - math.log(beta))
        return (math.sqrt(math.log(2 * asked) / (2 * m)) + spread) * (1 + 1e-15)

    if size is not None:
        size = _validate.integer("size", size, 1)
        return SmallDBError(bound(size), size)
    # The derivative of the bound, times m^(3/2), increases with m. So the bound first decreases with m and then increases.
    best = 1
    while best < 2**52 and bound(2 * best) < bound(best):
        best *= 2

    def increases(m: int) -> bool:
        # For large m, one more record changes the bound by less than the rounding error of the bound, so bounds at larger distances
        # are compared.
        return bound(m + max(1, m // 10**6)) >= bound(m)

    best = bisect_left(range(2 * best), True, lo=max(1, best // 2), key=increases)
    return SmallDBError(bound(best), best)


def _log_choose(first: int, second: int) -> float:
    """Return an upper bound of the log of the binomial coefficient (first + second)!/(first! second!)."""
    if not first or not second:
        return 0.0
    total = first + second
    if total > MAX_COUNT:
        # betaln is a difference of log gamma functions, each of which may be 1e7 times as large as the result. The relative error
        # of this cancellation is below 1e-8.
        return (-math.log(total + 1) - float(betaln(second + 1, first + 1))) * (1 + 1e-8)
    # The coefficient follows from the binomial probability of `first`. As p = first/total maximizes this probability, the rounding
    # error of p has no effect.
    entropy = first * math.log1p(second / first) + second * math.log1p(first / second)
    return (entropy + float(binom_logpmf(first, total, first / total))) * (1 + 1e-14) + 1e-13


@with_passages
def small_db(counts: ArrayLike, queries: ArrayLike, eps: float, size: int, rng: Any = None) -> NDArray[np.int64]:
    r"""Run SmallDB: return an eps-private database of `size` records whose answers are close to those of the dataset.

    Parameters
    ----------
    counts : array_like of int, shape (domain,)
        Number of records of each kind in the dataset, at least one in all.
    queries : array_like of float, shape (queries, domain)
        Value of each query for each kind of record, in [0, 1]; the answer of a query is the mean over the records.
    eps : float
        Budget in nats, in (0, 700], for neighbours that differ in one replaced record.
    size : int
        Number m of records of the small database, >= 1.
    {rng}

    Returns
    -------
    ndarray of int, shape (domain,)
        Number of records of each kind in the small database, `size` in all.

    Raises
    ------
    ValueError
        If an argument is outside its range, or the number of databases times the domain exceeds 2e7, so that they cannot be
        enumerated.

    Notes
    -----
    Every database of `size` records is enumerated. Its score is minus the largest error of its answers, and
    :func:`selection_probs` computes its probability, so the output has the exact distribution of the mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> from shufflebounds.selection import small_db
    >>> half, first = [1, 1, 0, 0], [1, 0, 0, 0]
    >>> small_db([4000, 3000, 2000, 1000], [half, first], eps=1.0, size=10, rng=1).sum()
    np.int64(10)
    """
    data = _validate.whole_array("counts", counts, 0)
    asked = _validate.real_array("queries", queries, 0, 1)
    eps = _validate.real("eps", eps, 0, LARGEST_EXPONENT, open_low=True)
    size = _validate.integer("size", size, 1)
    if data.ndim != 1 or asked.ndim != 2 or asked.shape[1] != data.size:
        raise ValueError(f"queries has shape {asked.shape}: it must be (queries, domain) with domain {data.shape} as in counts")
    if not data.sum():
            raise ValueError("counts has no records (all are 0): pass at least one")
    source = _validate.generator(rng)
    databases, probs = _law(data, asked, eps, size)
    return np.asarray(databases[source.choice(len(probs), p=probs / probs.sum())])


def _law(data: NDArray[np.int64], asked: FloatArray, eps: float, size: int) -> tuple[NDArray[np.int64], FloatArray]:
    """Return every database with `size` records and its probability."""
    many = math.comb(size + data.size - 1, size)
    if many * data.size > MOST_ITEMS:
        raise ValueError(f"size={size} gives {many:.3g} databases of {data.size} kinds of records, too many to enumerate: "
                         f"size must be such that their number times {data.size} is at most {MOST_ITEMS:g}")
    records = np.array(list(combinations_with_replacement(range(data.size), size)), dtype=np.int64)
    databases = np.zeros((many, data.size), dtype=np.int64)
    np.add.at(databases, (np.arange(many)[:, None], records), 1)
    errors = np.abs(databases @ asked.T / size - asked @ data / data.sum())
    return databases, selection_probs(-errors.max(axis=1), eps, sensitivity=1 / int(data.sum()))
