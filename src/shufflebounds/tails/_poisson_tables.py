"""Tables of a Poisson-binomial law: by direct convolution of few trials, by blocks of tilted Fourier transforms otherwise."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._core._blocks import PoissonBinomialPMF, convolve
from shufflebounds._core._special import log1mexp
from shufflebounds._limits import LARGEST_EXPONENT
from shufflebounds._scipy import fft
from shufflebounds._types import FloatArray

__all__ = ["LOWER", "PMF", "UPPER", "WideWindowError", "bits_window", "served", "window_of"]

PMF, UPPER, LOWER = 0, 1, -1
SERVED = 1.5e-3         # a block serves the values above this part of its largest
DIRECT_TRIALS = 1000    # up to here direct convolution is as fast, and never loses a digit
MANY_GROUPS = 20000     # from here on one pass of series costs less than the deviances of one point
SERIES_DEPTH = 10.0     # standard deviations that it is taken for


class WideWindowError(ValueError):
    """A window would hold more values than its caller can use."""


def window_of(law: tuple[FloatArray, FloatArray | None, int], log_tail: float) -> tuple[int, FloatArray, float]:
    """Return the window of a checked law, and a bound on the relative error of every probability in it."""
    inner, multiplicities, shift = law
    if inner.size == 0:
        return shift, np.zeros(1), 0.0
    pmf = _direct(inner, multiplicities, log_tail - 20)
    if pmf is not None:
        table, first, error = _direct_tables(pmf)[PMF], 0, 4e-16 * pmf.size
        below = above = -math.inf
    else:
        first, table, error, below, above = _blocks_from_mean(PoissonBinomialPMF(inner, multiplicities), log_tail)
    table, start = _trim(table, below, above, log_tail)
    return shift + first + start, table, error


def _direct(p: FloatArray, counts: FloatArray | None, log_least: float = -math.inf) -> FloatArray | None:
    """All probabilities by convolution, or None where that is slow or one above exp(log_least) could underflow."""
    trials = p.size if counts is None else counts.sum()
    if trials > DIRECT_TRIALS:
        return None
    if log_least < -LARGEST_EXPONENT:
        depth = -np.log(np.minimum(p, 1 - p))
        if (depth.sum() if counts is None else depth @ counts) > LARGEST_EXPONENT:
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


def served(
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
    law = PoissonBinomialPMF(p, counts)
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


def _expand(law: PoissonBinomialPMF, k: FloatArray) -> None:
    """Expand the power sums of a law of many groups as far as the points near its mean need."""
    sigma = math.sqrt(law.var)
    depth = min(float(np.abs(k - law.mean).max()) / sigma + 0.5, SERIES_DEPTH)
    if law.groups >= MANY_GROUPS and np.abs(k - law.mean).min() < (SERIES_DEPTH - 0.5) * sigma and math.hypot(depth, 9.4) < sigma:
        law.expand(depth)


def _walk(law: PoissonBinomialPMF, k: FloatArray, kind: int) -> tuple[FloatArray, FloatArray]:
    """Return values of one kind at rising integers k in 0..n: runs of them by blocks, the others and the ends one by one."""
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


def _single(law: PoissonBinomialPMF, k: float, kind: int) -> tuple[float, float]:
    if kind:
        return law.tail(k, kind == UPPER)
    _, value, error = law.point(k, k > law.mean)
    return value, error


def _block(law: PoissonBinomialPMF, center: float, kind: int) -> tuple[int, FloatArray, float, float]:
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


def _blocks_from_mean(law: PoissonBinomialPMF, log_tail: float) -> tuple[int, FloatArray, float, float, float]:
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


def _next(law: PoissonBinomialPMF, edge: int, half: int, step: int) -> tuple[int, FloatArray, float]:
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
    """`window_of` for groups given by both chances, each exact where it is the smaller; at most `most` values.

    Checked by the caller: log_tail in [-1e6, -1].
    """
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
        if trials <= DIRECT_TRIALS and log_tail - 20 >= -LARGEST_EXPONENT:
            multiplicities = counts.astype(np.int64)
            up, down = np.repeat(one[small], multiplicities[small]), np.repeat(zero[~small], multiplicities[~small])
            pmf = np.convolve(convolve(up), convolve(down)[::-1])
            table, first, error = _direct_tables(pmf)[PMF], 0, 8e-16 * pmf.size
            below = above = -math.inf
        else:
            law = PoissonBinomialPMF(one, None if (counts == 1).all() else counts, zero)
            first, table, error, below, above = _blocks_from_mean(law, log_tail)
        table, start = _trim(table, below, above, log_tail)
        first, width = shift + first + start, table.size
    if width > most:
        raise WideWindowError(
            f"the window of log_tail={log_tail:g} would hold about {width:.3g} values, more than {most}: raise log_tail or "
            "take fewer users"
        )
    return first, table, error
