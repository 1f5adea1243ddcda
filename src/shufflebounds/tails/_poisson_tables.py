"""Tables of a Poisson-binomial distribution: by direct convolution if there are few trials, otherwise by blocks.

Each block is computed by the Fourier transform of a tilted distribution.

A window is a range of consecutive values with its table of log probabilities. A block is the part of a table that is computed by
one transform; see `_core/_blocks.pyx`. sigma is the standard deviation of the sum.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import LARGEST_EXPONENT
from shufflebounds._base.quadrature import total_of
from shufflebounds._base.scipy_functions import fft
from shufflebounds._base.threads import each
from shufflebounds._base.types import FloatArray
from shufflebounds._core._blocks import PoissonBinomialPMF, convolve, run_around, window_ends
from shufflebounds._core._special import log1mexp
from shufflebounds.tails._functions import Kind

__all__ = ["WideWindowError", "bits_window", "served", "window_of"]

SERVED = 1.5e-3
"""A block is used for the values above this fraction of its largest value. Lowered: larger errors; raised: more blocks."""

DIRECT_TRIALS = 2000
"""Number of trials up to which direct convolution is as fast as blocks at every variance (0.07 ms at log_tail = -50), and more
accurate. Raised: the run time of a convolution grows with the number to the power 1.5, its error bound in proportion. Lowered:
larger error bounds, and up to eight times the run time where the variance is too small for the series of power sums."""


class WideWindowError(ValueError):
    """Raised if a window would have more values than the caller accepts."""


def window_of(
    law: tuple[FloatArray, FloatArray | None, int], log_tail: float, threads: int = 1
) -> tuple[int, FloatArray, float]:
    """Return the first value and the log probabilities of the window, and a bound of the relative error of every probability.

    Below the window and above it, the mass is at most e^log_tail each. The caller has checked the arguments of the distribution.
    """
    inner, multiplicities, shift = law
    if inner.size == 0:
        return shift, np.zeros(1), 0.0
    direct = _direct(inner, multiplicities, log_tail - 20)
    if direct is not None:
        first, pmf, error = direct
        table, below, above = _direct_table(pmf, Kind.PMF), -math.inf, -math.inf
    else:
        first, table, error, below, above = _blocks_from_mean(PoissonBinomialPMF(inner, multiplicities), log_tail, threads)
    start, stop = window_ends(table, below, above, log_tail)
    return shift + first + start, table[start:stop], error


def _direct(
    p: FloatArray, counts: FloatArray | None, log_least: float = -math.inf
) -> tuple[int, FloatArray, float] | None:
    """Return the first value, the probabilities of consecutive values, and a bound of their relative errors, by convolution.

    The result is None if there are more than DIRECT_TRIALS trials, or if a probability above exp(log_least) could underflow.
    Values below exp(log_least) may be omitted at both ends.
    """
    trials = p.size if counts is None else counts.sum()
    if trials > DIRECT_TRIALS:
        return None
    if log_least < -LARGEST_EXPONENT and trials > 1:
        depth = -np.log(np.minimum(p, 1 - p))
        if (depth.sum() if counts is None else depth @ counts) > LARGEST_EXPONENT:
            return None
    # The truncated mass changes values above exp(log_least) by less than a third of an ulp (DIRECT_TRIALS 2^-64).
    first, pmf = convolve(p if counts is None else np.repeat(p, counts.astype(np.int64)), math.exp(log_least) * 2.0**-64)
    return first, pmf, 4e-16 * (trials + 1)


def _direct_table(pmf: FloatArray, kind: Kind) -> FloatArray:
    """Return log Pr[S = k], log Pr[S <= k] or log Pr[S >= k] for k = 0..n; logarithms near 0 have a small relative error, too."""
    with np.errstate(divide="ignore"):
        if kind == Kind.PMF and pmf.max() < 0.5:
            return np.asarray(np.log(pmf))
        lower, upper = np.cumsum(pmf), np.cumsum(pmf[::-1])[::-1]
        below, above = np.append(0.0, lower[:-1]), np.append(upper[1:], 0.0)
        mass, rest = {Kind.PMF: (pmf, below + above), Kind.LOWER: (lower, above), Kind.UPPER: (upper, below)}[kind]
        table: FloatArray = np.where(mass < 0.5, np.log(mass), np.log1p(-np.minimum(rest, 1.0)))
    return table


def served(
    p: FloatArray, counts: FloatArray | None, k: FloatArray, kind: Kind, *, series: bool = False
) -> tuple[FloatArray, FloatArray]:
    """Return log probabilities of kind PMF (S = k), LOWER (S <= k) or UPPER (S > k), and bounds of their relative errors.

    With `series`, single points near the mean of a distribution with many groups are computed from the power sums of `_expand`, in
    an eighth of the time. The errors are not larger than without `series`, but the returned error bound is that of a whole block.
    """
    trials = float(p.size if counts is None else counts.sum())
    whole = np.floor(k)
    result = np.full(k.shape, -np.inf if kind == Kind.PMF else 0.0)
    error = np.zeros(k.shape)
    if kind == Kind.PMF:
        inside = (k == whole) & (k >= 0) & (k <= trials)
    else:
        inside = (whole >= 0) & (whole < trials)
        result[whole < 0 if kind == Kind.LOWER else whole >= trials] = -np.inf
    if not inside.any():
        return result, error
    if p.size == 0:
        result[inside] = 0.0
        return result, error
    wanted, back = np.unique(whole[inside], return_inverse=True) if k.size > 1 else (whole, np.zeros(1, dtype=np.intp))
    direct = _direct(p, counts)
    if direct is not None:
        index = wanted.astype(np.int64) + (kind == Kind.UPPER)
        _, pmf, error[inside] = direct
        result[inside] = _direct_table(pmf, kind)[index][back]
        return result, error
    law = PoissonBinomialPMF(p, counts)
    if series:
        _expand(law, wanted)
    if wanted.size == 1 and not law.reach > 0:
        # The kernel computes the smaller tail itself.
        result[inside], error[inside] = _single(law, wanted[0] + (kind == Kind.UPPER), kind)
        return result, error
    if kind == Kind.PMF:
        values, errors = _walk(law, wanted, Kind.PMF)
    else:
        # Up to the mean the lower tail is computed, and above the mean the upper tail. Pr[S > k] is Pr[S >= k + 1].
        split = int(np.searchsorted(wanted, law.mean, side="right"))
        lower, lower_errors = _walk(law, wanted[:split], Kind.LOWER)
        upper, upper_errors = _walk(law, wanted[split:] + 1, Kind.UPPER)
        values, errors = np.concatenate([lower, upper]), np.concatenate([lower_errors, upper_errors])
        turn = slice(split, None) if kind == Kind.LOWER else slice(None, split)
        small = np.minimum(values[turn], -0.5)
        errors[turn] *= np.exp(small) / -np.expm1(small)
        near_one = turn.indices(wanted.size)[0] + np.flatnonzero(values[turn] > -0.5)
        values[turn] = log1mexp(np.minimum(values[turn], 0.0))
        for i in near_one:
            values[i], errors[i] = law.tail(wanted[i] + (kind == Kind.UPPER), kind == Kind.UPPER)
    result[inside] = values[back]
    error[inside] = errors[back]
    return result, error


def _expand(law: PoissonBinomialPMF, k: FloatArray) -> None:
    """Compute the power sums of a distribution with many groups. Points up to ten standard deviations from the mean follow from the
    power sums without a pass over the groups.
    """
    deepest = 10.0
    sigma = math.sqrt(law.var)
    depth = min(float(np.abs(k - law.mean).max()) / sigma + 0.5, deepest)
    # from 20,000 groups on, computing the power sums takes less time than evaluating one point without them
    if law.groups >= 20_000 and np.abs(k - law.mean).min() < (deepest - 0.5) * sigma and math.hypot(depth, 9.4) < sigma:
        law.expand(depth)


def _walk(law: PoissonBinomialPMF, k: FloatArray, kind: Kind) -> tuple[FloatArray, FloatArray]:
    """Return the log probabilities of one kind, and bounds of their errors, at increasing integers k in 0..n.

    Runs of consecutive k are computed in blocks. Other k, and 0 and n, are computed one by one.
    """
    values, errors = np.empty(k.size), np.empty(k.size)
    sigma = math.sqrt(law.var)
    groups = law.groups
    start = 0
    while start < k.size:
        # `fewest` is the number of consecutive k from which a block is faster than single points. A block takes about 26 sigma * 20
        # ns, and a single point about 2 us plus 40 ns for each group.
        near = abs(k[start] - law.mean) < law.reach
        fewest = 1 if near else 3 + 0.5 * sigma / (2 + 0.04 * groups)
        span = 3.3 * sigma
        stop = int(np.searchsorted(k, k[start] + span, side="right"))
        served = 0
        if stop - start >= fewest and 0 < k[start] < law.trials:
            center = min(k[start] + math.floor(0.9 * span), k[stop - 1], law.trials - 1)
            while True:
                first, table, error, block_sigma = _block(law, center, kind)
                inside = np.searchsorted(k, [first, first + table.size])
                if inside[0] <= start < inside[1] or center == k[start]:
                    break
                center = k[start] + (center - k[start]) // 3
            served = int(inside[1]) - start if inside[0] <= start else 0
            if served > 0:
                run = slice(start, start + served)
                index = (k[run] - first).astype(np.int64)
                values[run], errors[run] = table[index], error
                sigma = block_sigma
                for i in start + np.flatnonzero(values[run] > -0.5):
                    values[i], errors[i] = _single(law, k[i], kind)
        if served <= 0:
            values[start], errors[start] = _single(law, k[start], kind)
            served = 1
        start += served
    return values, errors


def _single(law: PoissonBinomialPMF, k: float, kind: Kind) -> tuple[float, float]:
    if kind:
        return law.tail(k, kind == Kind.UPPER)
    _, value, error = law.point(k, k > law.mean)
    return value, error


def _block(law: PoissonBinomialPMF, center: float, kind: Kind) -> tuple[int, FloatArray, float, float]:
    """Return the values that one transform around `center` yields.

    The result is (first value, logs, bound of their relative errors, standard deviation of the tilted sum).
    """
    coefficients, period, reach, theta, exponent, sigma, error, exponent_error = law.block(center, kind)
    values = fft.irfft(coefficients, period, overwrite_x=True)
    floor, reach = SERVED * values.max(), int(min(reach, period // 2 - 1))
    if not floor > 0:
        raise MemoryError("no memory for the inversion of the Poisson-binomial law")
    # outside of the support a block contains rounding errors only
    low, values = run_around(values, floor, min(reach, int(center)), int(min(reach, law.trials - center)))
    logs = np.log(values) - theta * np.arange(low, low + values.size) + exponent
    return int(center) + low, logs, error / floor + exponent_error, sigma


def _blocks_from_mean(law: PoissonBinomialPMF, log_tail: float, threads: int = 1) -> tuple[int, FloatArray, float, float, float]:
    """Return log probabilities of consecutive values around the mean, until the log mass on either side is below log_tail.

    The result is (first value, logs, bound of their relative error, log bound of the mass below, log bound of the mass above). If
    `threads` is above 1, the values above and below the mean are computed in two threads.
    """
    sigma = math.sqrt(law.var)
    # The centers of blocks are 6.9 sigma apart, and each block is used up to 3.6 sigma from its center. A skewed distribution may
    # need one more block than this estimate assumes; that block then takes a separate pass over the groups.
    far = (8.0 + 32.0 / max(sigma, 1.0)) * max(1.0, math.ceil((math.sqrt(-2 * log_tail) - 3.4) / 6.9))
    if law.groups > 24 and math.hypot(far, 9.4) < sigma:
        law.expand(far)
    trials = int(law.trials)
    center = min(max(round(law.mean), 1), trials - 1)
    first, logs, error, _ = _block(law, center, Kind.PMF)
    sides: dict[int, tuple[list[FloatArray], float, float]] = {}

    def extend(step: int) -> None:
        """Add blocks above (step 1) or below (step -1) the central one, until the log mass beyond them is below log_tail - 4."""
        edge, end = (first + logs.size - 1, trials) if step > 0 else (first, 0)
        run, mid, error, beyond, runs = logs[::step], center, 0.0, -math.inf, []
        while edge != end and (beyond := _log_mass_beyond(run)) > log_tail - 4:
            mid, run, bound = _next(law, edge, abs(edge - mid), step)
            edge, error = edge + step * run.size, max(error, bound)
            runs.append(run[::step])
        sides[step] = runs[::step], error, -math.inf if edge == end else beyond

    each(extend, (1, -1), threads)
    (up, error_up, above), (down, error_down, below) = sides[1], sides[-1]
    low = first - sum(run.size for run in down)
    logs, error = np.concatenate([*down, logs, *up]), max(error, error_up, error_down)
    for i in np.flatnonzero(logs > -0.5):
        logs[i], bound = _single(law, float(low + i), Kind.PMF)
        error = max(error, bound)
    return low, logs, error, below, above


def _log_mass_beyond(run: FloatArray) -> float:
    """Return a bound of the log mass beyond the end of a run of probabilities, whose ratios decrease by log-concavity."""
    if run.size < 2 or run[-1] >= run[-2]:
        return math.inf
    ratio = run[-1] - run[-2]
    return float(run[-1] + ratio - log1mexp(ratio))


def _next(law: PoissonBinomialPMF, edge: int, half: int, step: int) -> tuple[int, FloatArray, float]:
    """Return the next block beyond the value `edge` in the direction of `step`: its center, log probabilities and their error."""
    start = edge + step
    if not 0 < start < law.trials:
        end = law.edge(start != 0)
        return start, np.array([end]), 1e-15 * (1 - end)
    ahead = int((0.95 if half > 300 else 0.85) * half)
    while True:
        center = int(min(max(start + step * ahead, 1), law.trials - 1))
        first, logs, error, _ = _block(law, center, Kind.PMF)
        offset = start - first if step > 0 else first + logs.size - 1 - start
        if offset >= 0:
            run = logs[offset:] if step > 0 else logs[::-1][offset:]
            return center, run, error
        ahead //= 3


def bits_window(
    one: FloatArray, zero: FloatArray, counts: FloatArray | None, *, log_tail: float, most: int
) -> tuple[int, FloatArray, float]:
    """Return the result of `window_of` for groups of bits that are 1 with probability `one` and 0 with probability `zero`.

    In each group the smaller one of `one` and `zero` must be exact; the larger one may be rounded. Raises WideWindowError if the
    window would have more than `most` values.

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
    # If the window would be too wide even for a normal distribution of the same variance, the error is raised before anything is
    # computed.
    width = min(trials + 1, 2 * math.sqrt(-2 * log_tail * total_of(counts * one, zero)))
    if width <= most:
        small = one <= zero
        if trials == 1 or (trials <= DIRECT_TRIALS and log_tail - 20 >= -LARGEST_EXPONENT):
            multiplicities = counts.astype(np.int64)
            up, down = np.repeat(one[small], multiplicities[small]), np.repeat(zero[~small], multiplicities[~small])
            floor = math.exp(log_tail - 20) * 2.0**-64
            (low, ones), (high, zeros) = convolve(up, floor), convolve(down, floor)
            first, error = low + down.size - (high + zeros.size - 1), 8e-16 * (trials + 1)
            table, below, above = _direct_table(np.convolve(ones, zeros[::-1]), Kind.PMF), -math.inf, -math.inf
        else:
            law = PoissonBinomialPMF(one, None if (counts == 1).all() else counts, zero)
            first, table, error, below, above = _blocks_from_mean(law, log_tail)
        start, stop = window_ends(table, below, above, log_tail)
        first, width, table = shift + first + start, stop - start, table[start:stop]
    if width > most:
        raise WideWindowError(
            f"the window of log_tail={log_tail:g} would hold about {width:.3g} values, more than {most}: raise log_tail or "
            "take fewer users"
        )
    return first, table, error
