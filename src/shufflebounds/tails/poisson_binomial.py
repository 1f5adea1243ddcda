"""The Poisson-binomial law: log pmf, log tails, and the window that carries all but a chosen mass."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds import _validate
from shufflebounds._core._blocks import Lattice, convolve
from shufflebounds._core._special import log1mexp
from shufflebounds._scipy import fft
from shufflebounds._types import FloatArray

__all__ = ["poisson_binom_logcdf", "poisson_binom_logpmf", "poisson_binom_logsf", "poisson_binom_window"]


PMF, UPPER, LOWER = 0, 1, -1
SERVED = 1.5e-3         # a block serves the values above this part of its largest
DIRECT_TRIALS = 1000    # up to here direct convolution is as fast, and never loses a digit
DIRECT_DEPTH = 600.0    # -log of the smallest product that may appear in it: no underflow
MAX_TRIALS = 2.0**53
MANY_GROUPS = 20000     # from here on one pass of series costs less than the deviances of one point
SERIES_DEPTH = 10.0     # standard deviations that it is taken for


class WideWindowError(ValueError):
    """A window would hold more values than its caller can use."""


def poisson_binom_logpmf(k: ArrayLike, p: ArrayLike, counts: ArrayLike | None = None) -> FloatArray | float:
    r"""Logarithm of the Poisson-binomial probability mass function.

    .. math:: \log \Pr[S = k], \qquad S = \sum_j \mathrm{Bin}(c_j, p_j) \text{ with independent terms.}

    Parameters
    ----------
    k : array_like of float, any shape
        Values of the sum. A value that is not an integer in 0..n has probability zero.
    p : array_like of float, shape (groups,)
        Success probabilities, each in [0, 1], in any order.
    counts : array_like of int, shape (groups,), optional
        Multiplicity of each p; 1 each by default. Their total n is at most 2**53.

    Returns
    -------
    ndarray of the shape of k, or float
        Natural logarithm of the probability; -inf for zero.

    Raises
    ------
    ValueError
        If k has a NaN, p or counts is empty, not 1-D or of different lengths, a p lies outside [0, 1], or a count is
        negative or not an integer.

    Notes
    -----
    The law is tilted to ``p e^t/(1 - p + p e^t)`` with its mean at k, and its characteristic function inverted by the
    trapezoidal rule, so that errors are relative to the probability at any depth: at most 1.5e-13 + 1.5 ulp of the
    logarithm for a single k, 1e-12 where many k share one transform (measured: ``_core/_lattice.pyx`` and
    ``_core/_blocks.pyx`` have the tables). Up to 1000 trials the probabilities come from direct convolution where none
    can underflow. Cost O(groups) a value, or O(groups + sigma log sigma) for every run of 7 sigma values.

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
    return _evaluate(k, p, counts, PMF)


def poisson_binom_logcdf(k: ArrayLike, p: ArrayLike, counts: ArrayLike | None = None) -> FloatArray | float:
    r"""Logarithm of the Poisson-binomial distribution function.

    .. math:: \log \Pr[S \le \lfloor k \rfloor], \qquad S = \sum_j \mathrm{Bin}(c_j, p_j)

    Parameters
    ----------
    k : array_like of float, any shape
        Values of the sum; rounded down.
    p, counts : array_like, shape (groups,)
        As in `poisson_binom_logpmf`.

    Returns
    -------
    ndarray of the shape of k, or float
        Natural logarithm of the probability, with relative accuracy also where the probability is near 1.

    Raises
    ------
    ValueError
        As in `poisson_binom_logpmf`.

    Notes
    -----
    As `poisson_binom_logpmf`, with the transform of a geometric sum in the integrand. The smaller tail is computed, and
    the other one as the logarithm of 1 minus it.

    References
    ----------
    See `poisson_binom_logpmf`.

    Examples
    --------
    >>> float(np.exp(poisson_binom_logcdf(1, [0.5, 0.25])).round(12))
    0.875
    """
    return _evaluate(k, p, counts, LOWER)


def poisson_binom_logsf(k: ArrayLike, p: ArrayLike, counts: ArrayLike | None = None) -> FloatArray | float:
    r"""Logarithm of the Poisson-binomial survival function.

    .. math:: \log \Pr[S > \lfloor k \rfloor], \qquad S = \sum_j \mathrm{Bin}(c_j, p_j)

    Parameters
    ----------
    k : array_like of float, any shape
        Values of the sum; rounded down.
    p, counts : array_like, shape (groups,)
        As in `poisson_binom_logpmf`.

    Returns
    -------
    ndarray of the shape of k, or float
        Natural logarithm of the probability, with relative accuracy also where the probability is near 1.

    Raises
    ------
    ValueError
        As in `poisson_binom_logpmf`.

    Notes
    -----
    See `poisson_binom_logcdf`.

    References
    ----------
    See `poisson_binom_logpmf`.

    Examples
    --------
    A tail that 1 minus a distribution function cannot see:

    >>> p = (2 * np.arange(1024) + 1) / 2048
    >>> round(float(poisson_binom_logsf(1023, p)), 10)
    -1023.6534670998
    """
    return _evaluate(k, p, counts, UPPER)


def poisson_binom_window(
    p: ArrayLike, counts: ArrayLike | None = None, *, log_tail: float = -50.0
) -> tuple[int, FloatArray]:
    r"""Log probabilities of the values that carry all but a chosen mass of a Poisson-binomial law.

    The window first, ..., last is, up to a value at either end, the smallest with

    .. math:: \Pr[S < \text{first}] \le e^{\text{log\_tail}}, \qquad \Pr[S > \text{last}] \le e^{\text{log\_tail}}.

    Parameters
    ----------
    p, counts : array_like, shape (groups,)
        As in `poisson_binom_logpmf`.
    log_tail : float
        Natural logarithm of the mass that may stay outside on each side, in [-1e6, -1].

    Returns
    -------
    first : int
        Least value in the window.
    logpmf : ndarray, shape (last - first + 1,)
        Natural logarithms of Pr[S = first], Pr[S = first + 1], ...; each with relative accuracy in the probability.

    Raises
    ------
    ValueError
        As in `poisson_binom_logpmf`, and if log_tail lies outside [-1e6, -1].

    Notes
    -----
    Blocks of about 7 standard deviations, each one inverse FFT of the tilted law: about 30 coefficients differ from
    zero. Near the mean all blocks share one pass over p. Time O(groups + sigma log sigma), memory O(sigma) beside p.
    Relative error of each probability at most 1e-12 (measured: the header of ``_core/_blocks.pyx``).

    References
    ----------
    See `poisson_binom_logpmf`.

    Examples
    --------
    >>> first, logpmf = poisson_binom_window([0.5, 1.0, 0.25], log_tail=-20)
    >>> first, np.exp(logpmf).round(12).tolist()
    (1, [0.375, 0.5, 0.125])
    """
    depth = -_validate.real("log_tail", log_tail, -1e6, -1)
    _checked_law(p, counts)
    _validate.affordable("the window", _spread(p, counts) * 2 * math.sqrt(2 * depth))
    first, logpmf, _ = _window_with_error(p, counts, log_tail=log_tail)
    return first, logpmf


def _spread(p: ArrayLike, counts: ArrayLike | None) -> float:
    """Return the standard deviation of a checked law."""
    chances = np.asarray(p, dtype=np.float64)
    return math.sqrt(float((chances * (1 - chances) * (1.0 if counts is None else np.asarray(counts, dtype=np.float64))).sum()))


def _window_with_error(
    p: ArrayLike, counts: ArrayLike | None = None, *, log_tail: float = -50.0
) -> tuple[int, FloatArray, float]:
    """`poisson_binom_window` and a bound on the relative error of every probability in it."""
    return _window_of(_checked_law(p, counts), _validate.real("log_tail", log_tail, -1e6, -1))


def _window_of(law: tuple[FloatArray, FloatArray | None, int], log_tail: float) -> tuple[int, FloatArray, float]:
    inner, multiplicities, shift = law
    if inner.size == 0:
        return shift, np.zeros(1), 0.0
    pmf = _direct(inner, multiplicities, log_tail - 20)
    if pmf is not None:
        table, first, error = _direct_tables(pmf)[PMF], 0, 4e-16 * pmf.size
        below = above = -math.inf
    else:
        first, table, error, below, above = _blocks_from_mean(Lattice(inner, multiplicities), log_tail)
    table, start = _trim(table, below, above, log_tail)
    return shift + first + start, table, error


def _tails_with_error(
    k: ArrayLike, p: ArrayLike, counts: ArrayLike | None = None
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(log Pr[S = k], log Pr[S <= k], log Pr[S > k], bound on the relative error of all three) at the integers k."""
    inner, multiplicities, shift = _checked_law(p, counts)
    values = _checked_k(k)
    flat = np.floor(values.ravel()) - shift
    results = [_served(inner, multiplicities, flat, kind) for kind in (PMF, LOWER, UPPER)]
    error = np.max([r[1] for r in results], axis=0)
    pmf, lower, upper = (r[0].reshape(values.shape) for r in results)
    return pmf, lower, upper, error.reshape(values.shape)


def _evaluate(k: ArrayLike, p: ArrayLike, counts: ArrayLike | None, kind: int) -> FloatArray | float:
    return _answers(_checked_law(p, counts), k, kind)


def _answers(law: tuple[FloatArray, FloatArray | None, int], k: ArrayLike, kind: int) -> FloatArray | float:
    """Log probabilities of a checked law at any k."""
    inner, multiplicities, shift = law
    values = _checked_k(k)
    result = _served(inner, multiplicities, values.ravel() - shift, kind, series=True)[0].reshape(values.shape)
    return result if values.ndim else float(result)


def _checked_k(k: ArrayLike) -> FloatArray:
    values = _validate.floats("k", k, "a real number")
    if np.isnan(values).any():
        raise ValueError("k has a NaN: every k must be a real number")
    return values


def _checked_law(p: ArrayLike, counts: ArrayLike | None) -> tuple[FloatArray, FloatArray | None, int]:
    """The p strictly between 0 and 1, their multiplicities, and the number of certain successes."""
    array = _validate.floats("p", p, "a number in [0, 1]")
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"p has shape {array.shape}: it must be one-dimensional and not empty")
    low, high = array.min(), array.max()
    if not (low >= 0 and high <= 1):
        bad = array[~((array >= 0) & (array <= 1))][0]
        raise ValueError(f"p holds {_validate.shown(float(bad))}: every entry must be in [0, 1]")
    multiplicities = None
    if counts is not None:
        multiplicities = _validate.floats("counts", counts, "an integer in [0, 2**53]")
        if multiplicities.shape != array.shape:
            raise ValueError(f"counts has shape {multiplicities.shape}: it must be that of p, {array.shape}")
        bad = multiplicities[~((multiplicities >= 0) & (multiplicities <= MAX_TRIALS) & (multiplicities % 1 == 0))]
        if bad.size:
            raise ValueError(f"counts holds {_validate.shown(float(bad[0]))}: every entry must be an integer in 0..2**53")
        total = multiplicities.sum()
        if total >= MAX_TRIALS and sum(map(int, multiplicities)) > MAX_TRIALS:
            raise ValueError(f"counts sum to {_validate.shown(float(total))}: they must not exceed 2**53")
    if low > 0 and high < 1 and (multiplicities is None or multiplicities.all()):
        return array, multiplicities, 0
    sure = array == 1
    inside = (array > 0) & ~sure
    if multiplicities is None:
        return array[inside], None, int(np.count_nonzero(sure))
    inside &= multiplicities > 0
    return array[inside], multiplicities[inside], int(multiplicities[sure].sum())


def _direct(p: FloatArray, counts: FloatArray | None, log_least: float = -math.inf) -> FloatArray | None:
    """All probabilities by convolution, or None where that is slow or one above exp(log_least) could underflow."""
    trials = p.size if counts is None else counts.sum()
    if trials > DIRECT_TRIALS:
        return None
    if log_least < -DIRECT_DEPTH:
        depth = -np.log(np.minimum(p, 1 - p))
        if (depth.sum() if counts is None else depth @ counts) > DIRECT_DEPTH:
            return None
    return convolve(p if counts is None else np.repeat(p, counts.astype(np.int64)))


def _direct_tables(pmf: FloatArray) -> dict[int, FloatArray]:
    """Log Pr[S = k], log Pr[S <= k] and log Pr[S >= k] for k = 0..n, each right also near 0."""
    lower, upper = np.cumsum(pmf), np.cumsum(pmf[::-1])[::-1]
    below, above = np.append(0.0, lower[:-1]), np.append(upper[1:], 0.0)
    tables = {}
    with np.errstate(divide="ignore"):
        for kind, mass, rest in ((PMF, pmf, below + above), (LOWER, lower, above), (UPPER, upper, below)):
            tables[kind] = np.where(mass < 0.5, np.log(mass), np.log1p(-np.minimum(rest, 1.0)))
    return tables


def _served(
    p: FloatArray, counts: FloatArray | None, k: FloatArray, kind: int, *, series: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Log probabilities of kind PMF (S = k), LOWER (S <= k) or UPPER (S > k), and their relative errors.

    series: single points near the mean of many groups by the series of blocks, an eighth of the time; their errors are no
    larger, but the bound of them is that of a whole block.
    """
    trials = float(p.size if counts is None else counts.sum())
    whole = np.floor(k)
    result = np.full(k.shape, -np.inf if kind == PMF else 0.0)
    error = np.zeros(k.shape)
    if kind == PMF:
        inside = (k == whole) & (k >= 0) & (k <= trials)
    else:
        inside = (whole >= 0) & (whole < trials)
        result[whole < 0 if kind == LOWER else whole >= trials] = -np.inf
    if not inside.any():
        return result, error
    if p.size == 0:
        result[inside] = 0.0
        return result, error
    wanted, back = np.unique(whole[inside], return_inverse=True)
    pmf = _direct(p, counts)
    if pmf is not None:
        index = wanted.astype(np.int64) + (kind == UPPER)
        result[inside] = _direct_tables(pmf)[kind][index][back]
        error[inside] = 4e-16 * pmf.size
        return result, error
    law = Lattice(p, counts)
    if series:
        _expand(law, wanted)
    if kind == PMF:
        values, errors = _walk(law, wanted, PMF)
    else:
        # the smaller tail; Pr[S > k] is Pr[S >= k + 1]
        split = int(np.searchsorted(wanted, law.mean, side="right"))
        lower, lower_errors = _walk(law, wanted[:split], LOWER)
        upper, upper_errors = _walk(law, wanted[split:] + 1, UPPER)
        values, errors = np.concatenate([lower, upper]), np.concatenate([lower_errors, upper_errors])
        turn = slice(split, None) if kind == LOWER else slice(None, split)
        small = np.minimum(values[turn], -0.5)
        errors[turn] *= np.exp(small) / -np.expm1(small)
        near_one = turn.indices(wanted.size)[0] + np.flatnonzero(values[turn] > -0.5)
        values[turn] = log1mexp(np.minimum(values[turn], 0.0))
        for i in near_one:
            values[i], errors[i] = law.tail(wanted[i] + (kind == UPPER), kind == UPPER)
    result[inside] = values[back]
    error[inside] = errors[back]
    return result, error


def _expand(law: Lattice, k: FloatArray) -> None:
    """Take the series of a law of many groups as far as the points near its mean ask for."""
    sigma = math.sqrt(law.var)
    depth = min(float(np.abs(k - law.mean).max()) / sigma + 0.5, SERIES_DEPTH)
    if law.groups >= MANY_GROUPS and np.abs(k - law.mean).min() < (SERIES_DEPTH - 0.5) * sigma and math.hypot(depth, 9.4) < sigma:
        law.expand(depth)


def _walk(law: Lattice, k: FloatArray, kind: int) -> tuple[FloatArray, FloatArray]:
    """Values of one kind at increasing integers k in 0..n: runs of them by blocks, stragglers and the ends singly."""
    values, errors = np.empty(k.size), np.empty(k.size)
    sigma = math.sqrt(law.var)
    groups = law.groups
    start = 0
    while start < k.size:
        # a block costs about 26 sigma * 20 ns, a point about 2 us + 40 ns a group
        near = abs(k[start] - law.mean) < law.reach
        worth = 1 if near else 3 + 0.5 * sigma / (2 + 0.04 * groups)
        span = 3.3 * sigma
        stop = int(np.searchsorted(k, k[start] + span, side="right"))
        served = 0
        if stop - start >= worth and 0 < k[start] < law.trials:
            center = min(k[start] + math.floor(0.9 * span), k[stop - 1], law.trials - 1)
            while True:
                first, table, error, block_sigma = _block(law, center, kind)
                inside = np.searchsorted(k, [first, first + table.size])
                if inside[0] <= start < inside[1] or center == k[start]:
                    break
                center = k[start] + (center - k[start]) // 3
            served = int(inside[1]) - start
            if served > 0 and inside[0] <= start:
                run = slice(start, start + served)
                index = (k[run] - first).astype(np.int64)
                values[run], errors[run] = table[index], error
                sigma = block_sigma
                near_one = np.flatnonzero(values[run] > -0.5)
                for i in start + near_one:
                    values[i], errors[i] = _single(law, k[i], kind)
            else:
                served = 0
        if served == 0:
            values[start], errors[start] = _single(law, k[start], kind)
            served = 1
        start += served
    return values, errors


def _single(law: Lattice, k: float, kind: int) -> tuple[float, float]:
    if kind:
        return law.tail(k, kind == UPPER)
    _, value, error = law.point(k, k > law.mean)
    return value, error


def _block(law: Lattice, center: float, kind: int) -> tuple[int, FloatArray, float, float]:
    """The values that one transform about center serves: (first, logs, relative error bound, tilted sigma)."""
    coefficients, period, reach, theta, exponent, sigma, error, exponent_error = law.block(center, kind)
    values = fft.irfft(coefficients, period, overwrite_x=True)
    top = values.max()
    if not top > 0:
        raise MemoryError("no memory for the inversion of the Poisson-binomial law")
    reach = int(min(reach, period // 2 - 1))
    values = np.concatenate([values[-reach:], values[: reach + 1]])
    good = values >= SERVED * top
    # the run about the center: a block reaches beyond the support, where only rounding is left
    left = reach - int(np.argmin(good[reach::-1])) + 1 if not good[: reach + 1].all() else 0
    right = reach + int(np.argmin(good[reach:])) - 1 if not good[reach:].all() else 2 * reach
    left = max(left, reach - int(center))
    right = int(min(right, reach + law.trials - center))
    offsets = np.arange(left - reach, right - reach + 1)
    logs = np.log(values[left : right + 1])
    logs -= theta * offsets
    logs += exponent
    return int(center) + left - reach, logs, error / (SERVED * top) + exponent_error, sigma


def _blocks_from_mean(law: Lattice, log_tail: float) -> tuple[int, FloatArray, float, float, float]:
    """Consecutive log probabilities about the mean until both tails fall below log_tail.

    Returns (first, logs, relative error bound, log bound of the mass below, the same above).
    """
    sigma = math.sqrt(law.var)
    # centers lie 6.9 sigma apart and serve 3.6 sigma either way; a skew law may need one more, by a pass of its own
    far = (8.0 + 32.0 / max(sigma, 1.0)) * max(1.0, math.ceil((math.sqrt(-2 * log_tail) - 3.4) / 6.9))
    if law.groups > 24 and math.hypot(far, 9.4) < sigma:
        law.expand(far)
    if law.trials == 1:
        ends = np.array([law.edge(False), law.edge(True)])
        return 0, ends, 1e-15 * (1 - ends.min()), -math.inf, -math.inf
    trials = int(law.trials)
    center = min(max(round(law.mean), 1), trials - 1)
    first, logs, error, _ = _block(law, center, PMF)
    above, up, below, down = -math.inf, [], -math.inf, []
    last, run, mid = first + logs.size - 1, logs, center
    while last < trials and (above := _beyond(run)) > log_tail - 4:
        start, run, bound = _next(law, last, last - mid, 1)
        mid, last, error = start, last + run.size, max(error, bound)
        up.append(run)
    if last == trials:
        above = -math.inf
    low, run, mid = first, logs[::-1], center
    while low > 0 and (below := _beyond(run)) > log_tail - 4:
        start, run, bound = _next(law, low, mid - low, -1)
        mid, low, error = start, low - run.size, max(error, bound)
        down.append(run[::-1])
    if low == 0:
        below = -math.inf
    logs = np.concatenate([*down[::-1], logs, *up])
    for i in np.flatnonzero(logs > -0.5):
        logs[i], bound = _single(law, float(low + i), PMF)
        error = max(error, bound)
    return low, logs, error, below, above


def _beyond(run: FloatArray) -> float:
    """Bound on the log mass after a run: probabilities are log-concave, so their ratios decrease."""
    if run.size < 2 or run[-1] >= run[-2]:
        return math.inf
    ratio = run[-1] - run[-2]
    return float(run[-1] + ratio - log1mexp(ratio))


def _next(law: Lattice, edge: int, half: int, step: int) -> tuple[int, FloatArray, float]:
    """The run of values after edge (in the direction step) with its center and its error."""
    start = edge + step
    if not 0 < start < law.trials:
        end = law.edge(start != 0)
        return start, np.array([end]), 1e-15 * (1 - end)
    ahead = int((0.95 if half > 300 else 0.85) * half)
    while True:
        center = int(min(max(start + step * ahead, 1), law.trials - 1))
        first, logs, error, _ = _block(law, center, PMF)
        offset = start - first if step > 0 else first + logs.size - 1 - start
        if offset >= 0:
            run = logs[offset:] if step > 0 else logs[::-1][offset:]
            return center, run, error
        ahead //= 3


def _trim(table: FloatArray, below: float, above: float, log_tail: float) -> tuple[FloatArray, int]:
    """The smallest part of a table that leaves at most exp(log_tail) outside on each side."""

    def cut(logs: FloatArray, outside: float) -> int:
        large = logs > log_tail
        logs = logs[: int(np.argmax(large)) + 1] if large.any() else logs
        mass = math.exp(outside - log_tail) + np.cumsum(np.exp(np.minimum(logs - log_tail, 9.0)))
        return int(np.searchsorted(mass, 1.0, side="right"))

    first = cut(table, below)
    last = table.size - cut(table[::-1], above)
    return np.ascontiguousarray(table[first:last]), first


def bits_window(
    one: FloatArray, zero: FloatArray, counts: FloatArray | None, *, log_tail: float, most: int
) -> tuple[int, FloatArray, float]:
    """`_window_with_error` for groups given by both chances, each exact where it is the smaller; at most `most` values."""
    log_tail = _validate.real("log_tail", log_tail, -1e6, -1)
    if counts is None:
        counts = np.ones(one.size)
    inside = (one > 0) & (zero > 0)
    shift = int(counts[zero == 0].sum())
    one, zero, counts = (np.ascontiguousarray(a[inside]) for a in (one, zero, counts))
    if one.size == 0:
        return shift, np.zeros(1), 0.0
    trials = counts.sum()
    # a Gaussian window, to refuse before computing
    width = min(trials + 1, 2 * math.sqrt(-2 * log_tail * float((counts * one) @ zero)))
    if width <= most:
        small = one <= zero
        if trials <= DIRECT_TRIALS and log_tail - 20 >= -DIRECT_DEPTH:
            multiplicities = counts.astype(np.int64)
            up, down = np.repeat(one[small], multiplicities[small]), np.repeat(zero[~small], multiplicities[~small])
            pmf = np.convolve(convolve(up), convolve(down)[::-1])
            table, first, error = _direct_tables(pmf)[PMF], 0, 8e-16 * pmf.size
            below = above = -math.inf
        else:
            law = Lattice(one, None if (counts == 1).all() else counts, zero)
            first, table, error, below, above = _blocks_from_mean(law, log_tail)
        table, start = _trim(table, below, above, log_tail)
        first, width = shift + first + start, table.size
    if width > most:
        raise WideWindowError(
            f"the window of log_tail={log_tail:g} would hold about {width:.3g} values, more than {most}: raise log_tail or "
            "take fewer users"
        )
    return first, table, error
