"""Auditing a program that implements a protocol: it runs on two neighbouring datasets, and a test compares the outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shufflebounds._base import validate as _validate
from shufflebounds._base.calls import explained
from shufflebounds._base.docs import with_passages
from shufflebounds._base.progress import announced, tick
from shufflebounds._base.types import FloatArray
from shufflebounds.audit.refuted import Refuted, level_of
from shufflebounds.audit.simultaneous_limits import Together
from shufflebounds.audit.two_samples import Counts, TwoSamples
from shufflebounds.profile.profile import PrivacyProfile, checked_profile

__all__ = ["program"]

_PILOT = 0.1
"""Number of pilot runs as a fraction of the runs that count. Raised: longer run time. Lowered: thresholds farther from the best
ones."""

_THRESHOLDS = 40
"""Largest number of thresholds. Raised: each threshold has a smaller error probability. Lowered: the best threshold is farther
from those tested."""


@explained
@with_passages
def program(
    run: Callable[[Any, np.random.Generator], Any], protocol: PrivacyProfile, data: ArrayLike, neighbour: ArrayLike, *, runs: int,
    rng: Any = None, score: Callable[[Any], float] | None = None, confidence: float = 0.95, log_alpha: float | None = None,
) -> Refuted:
    """Return the claims that many runs of a program on two neighbouring datasets refute, by a test that depends on the protocol.

    Parameters
    ----------
    run : callable
        ``run(dataset, generator)`` runs the program once and returns what the analyst sees: a number, or the counts that
        ``protocol.aggregate`` returns. The program may draw its randomness from the generator or from its own source.
    protocol : PrivacyProfile
        The protocol that the program is meant to implement. It chooses the score; :meth:`Refuted.p_value` tests its guarantee.
    data, neighbour : array_like
        The two datasets (the values of all users), as arguments of `run`. If their lengths are equal, they must differ in one user
        ("replace-one"); otherwise one of them must have one user more ("add-remove"). Other conditions of the tested claim are not
        checked, for example that two numbers differ by at most the sensitivity.
    runs : int
        Number of runs on each dataset that count, 10 to 10**7. Before them, runs/10 + 10 pilot runs on each dataset choose the
        thresholds.
    {rng}
    score : callable, optional
        A function of the output that returns a number, which should be larger for outputs on `neighbour`. By default the score of a
        number is the number itself. The default score of counts is the estimated number of users in the bin that has one user more
        in `neighbour`, minus that in the bin that has one user more in `data`; for a randomizer with a `matrix`, it is the
        log-likelihood ratio to first order.
    confidence : float
        Probability in (0, 1) that no true claim is refuted.
    log_alpha : float, optional
        In place of `confidence`: the natural logarithm of 1 - confidence, in [-1e5, 0).

    Returns
    -------
    Refuted
        The refuted claims. There is one test for each of up to 40 thresholds of the score and for each order of the two datasets. A
        test uses the numbers of runs on `data` and on `neighbour` whose score is at least the threshold, and the product of their
        p-values (``test="product"`` of :func:`decisions`).

    Raises
    ------
    TypeError
        If `protocol` is no profile.
    ValueError
        If the datasets are no neighbours, a score is NaN or not a number, or an argument lies outside its range.

    Notes
    -----
    The audit is valid for every score. For a sum of bits, with or without noise, the default score is the best one, because the
    likelihood ratio is monotone in the sum; for histograms it is close to the best one.

    A program that passes may still be wrong: test several pairs of datasets, among them the worst one of the protocol, and divide
    the error probability by the number of pairs.

    Examples
    --------
    >>> from shufflebounds import audit, shuffle
    >>> protocol = shuffle.ShuffledBits.calibrate(users=20, eps=1.0, delta=1e-6)
    >>> others = [0] * 19
    >>> found = audit.program(protocol.simulate, protocol, [0] + others, [1] + others, runs=500, rng=1)
    >>> print(f"{found.epsilon(1e-6):.4f} {found.p_value(protocol)}")
    0.0279 1.0
    """
    checked_profile("protocol", protocol)
    runs, level = _validate.integer("runs", runs, 10, 10**7), level_of(confidence, log_alpha)
    first, second = np.asarray(data), np.asarray(neighbour)
    relation = _relation(first, second)
    statistic = score or _statistic(protocol, first, second)
    source = _validate.generator(rng)

    def scores(times: int) -> tuple[FloatArray, FloatArray]:
        """Return the scores of runs on the neighbour, and those of runs on the data."""
        out = np.empty((2, times))
        for i in range(times):
            for j, dataset in enumerate((second, first)):
                out[j, i] = _score(statistic, run(dataset, source))
            tick()
        return out[0], out[1]

    with announced("audit.program"):
        pilot = np.unique(np.concatenate(scores(10 + math.ceil(_PILOT * runs))))
        shares = np.linspace(0, 1, _THRESHOLDS)
        at = pilot if pilot.size <= _THRESHOLDS else np.unique(np.quantile(pilot, shares, method="inverted_cdf"))
        more, less = (np.sort(one) for one in scores(runs))
    x, y = runs - np.searchsorted(more, at), runs - np.searchsorted(less, at)
    # In the first direction the data are P and the neighbour is Q.
    counts = Counts(y, runs, x, runs), Counts(x, runs, y, runs)
    method = f"{at.size} thresholds from pilot runs, {runs} runs on each dataset"
    return TwoSamples(counts, Together(4 * at.size), level, relation, method, "product")


def _relation(data: NDArray[Any], neighbour: NDArray[Any]) -> str:
    """Return how the datasets differ, or raise ValueError if they are no neighbours."""
    if data.ndim != neighbour.ndim or data.shape[1:] != neighbour.shape[1:]:
        raise ValueError(f"neighbour has shape {neighbour.shape}, data {data.shape}: they must hold values of the same kind")
    if data.ndim == 0:
        return "replace-one"
    if abs(len(data) - len(neighbour)) == 1:
        return "add-remove"
    if len(data) == len(neighbour):
        rows = np.any((data != neighbour).reshape(len(data), -1), axis=1).sum()
        if rows == 1:
            return "replace-one"
        raise ValueError(f"neighbour differs from data in the values of {rows} users: it must differ in those of one user")
    raise ValueError(f"neighbour has {len(neighbour)} users, data {len(data)}: neighbours differ by one user at most")


def _score(statistic: Callable[[Any], float], output: Any) -> float:
    """Return the score of one output, or raise ValueError."""
    try:
        score = np.asarray(statistic(output), dtype=np.float64)
    except (TypeError, ValueError):
        score = np.array(math.nan)
    if score.ndim or np.isnan(score):
        raise ValueError(f"score of the output {_validate.short_repr(output)} is not a number: pass score=..., a function that "
                         "returns one number for each output")
    return float(score)


def _statistic(protocol: PrivacyProfile, data: NDArray[Any], neighbour: NDArray[Any]) -> Callable[[Any], float]:
    """Return the function that scores an output: a number is its own score; the score of counts is the difference between the
    counts of the two bins in which the datasets differ.
    """
    base: Any = getattr(protocol, "randomizer", protocol)
    matrix = np.array(getattr(base, "matrix", ()))

    def changed(output: NDArray[Any]) -> float:
        counts, datasets = output, (neighbour, data)
        if matrix.size:
            # The score is proportional to the log-likelihood ratio, to first order, if every message has the distribution `seen`,
            # the mean over both datasets. A message that no input of the datasets produces has the count 0.
            seen = matrix[np.concatenate([data, neighbour])].mean(axis=0)
            gain = matrix[neighbour].sum(axis=0) - matrix[data].sum(axis=0)
            return float(np.divide(gain, seen, out=np.zeros_like(seen), where=seen > 0) @ counts)
        if hasattr(base, "_support_probabilities"):
            # The counts of a frequency oracle are counts of messages; the estimate has one entry for each bin.
            counts = np.asarray(base.estimate(counts=output, users=len(data)))
        if data.ndim == 1 and data.dtype.kind in "iu":
            return float(np.subtract(*(np.bincount(one, minlength=counts.size) for one in datasets)) @ counts)
        return float((np.subtract(*(one.sum(axis=0) for one in datasets)) * counts).sum())

    return lambda output: output if np.ndim(output) == 0 else changed(np.asarray(output))
