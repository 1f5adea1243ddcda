"""Lower and upper bounds of log sum_i pmf(i) g(i) for a log-concave pmf and a monotone function g.

Delta of the shuffled histogram is such a sum, with a binomial pmf.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shufflebounds._base.limits import COMPARED, FIRST_TAIL, NEGLIGIBLE
from shufflebounds._base.quadrature import log_sum
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray
from shufflebounds._core._special import log1mexp

MOST_TERMS = 2**16
"""Largest number of terms that are summed one by one. Longer sums are divided into blocks; the terms at the ends of a block bound
its other terms. Raised: longer run time. Lowered: a larger gap."""

Enclosing = Callable[[FloatArray], IntervalArray]
"""A function that returns a lower and an upper bound of its value at each element of an array."""


def enclose_sum(
    log_pmf: Callable[[FloatArray], FloatArray],
    mode: float,
    first: float,
    last: float,
    value: Enclosing,
) -> Interval:
    """Return bounds of log sum over i = first..last of pmf(i) g(i).

    The pmf is log-concave with its largest value at `mode`; the error of its logarithm is at most 1e-13 plus a few ulp.
    ``value(i)`` returns bounds of log g(i), and g is monotone. The terms above e^FIRST_TAIL times the largest term are divided into
    at most MOST_TERMS blocks, of one term each if possible. The sum over a block is at most (at least) its number of terms times
    the largest (smallest) mass, which is at an end or at the mode, times the largest (smallest) g, which is at an end.
    """

    def upper_terms(i: FloatArray) -> FloatArray:
        return log_pmf(i) + value(i)[1]

    peak = _argmax(upper_terms, first, last)
    top = float(upper_terms(np.array([peak]))[0])
    if top == -math.inf:
        return Interval(-math.inf, -math.inf)
    low, high = (_edge(upper_terms, peak, end, top + FIRST_TAIL) for end in (first, last))
    width = math.ceil((high - low + 1) / MOST_TERMS)
    starts = np.arange(low, high + 1, width, dtype=np.float64)
    below, above = _block_logs(log_pmf, mode, starts, np.minimum(starts + width - 1, high), value)
    lower, upper = _log_sum(below, -1.0), _log_sum(above, 1.0)
    for edge, end, step in ((low - 1, first, -1.0), (high + 1, last, 1.0)):
        if (end - edge) * step >= 0:
            rest = _log_sum_beyond(log_pmf, mode, edge, end, max(1.0, (high - low) // 16), value, upper - NEGLIGIBLE)
            upper = float(np.logaddexp(upper, rest))
    return Interval(lower, upper)


def _log_sum_beyond(
    log_pmf: Callable[[FloatArray], FloatArray],
    mode: float,
    edge: float,
    end: float,
    width: float,
    value: Enclosing,
    negligible: float,
) -> float:
    """Return an upper bound of the log of the sum of pmf(i) g(i) from i = `edge` to i = `end`, in either direction.

    The widths of the first blocks are `width`, 2 `width`, 4 `width`, and so on. Far from the mode, the mass and g change by large
    factors within a block. Blocks with a log bound above `negligible` - log(number of blocks) are therefore divided.
    """
    step = 1.0 if end >= edge else -1.0
    count = math.ceil(math.log2(abs(end - edge) / width + 1)) + 1
    pieces = np.unique(np.floor(width * (2.0 ** np.arange(count) - 1)))
    near = edge + step * pieces[pieces <= abs(end - edge)]
    far = np.append(near[1:] - step, end)
    starts, ends, settled = np.minimum(near, far), np.maximum(near, far), -math.inf
    while True:
        logs = _block_logs(log_pmf, mode, starts, ends, value)[1]
        large = (logs > negligible - math.log(starts.size)) & (ends > starts)
        if not large.any() or starts.size > MOST_TERMS // 8:
            return float(np.logaddexp(settled, _log_sum(logs, 1.0)))
        settled = float(np.logaddexp(settled, _log_sum(logs[~large], 1.0)))
        # A block is divided into four runs of its terms; empty runs of shorter blocks are dropped. The end of the last run is not
        # computed from the start of the next block, because this start may be 2**53 + 1, which is not a double.
        firsts = np.floor(starts[large, None] + (ends - starts + 1)[large, None] * (np.arange(4) / 4))
        lasts = np.concatenate([firsts[:, 1:] - 1, ends[large, None]], axis=1)
        kept = lasts >= firsts
        starts, ends = firsts[kept], lasts[kept]


def at_any_eps(
    forward: Enclosing,
    backward: Enclosing,
    eps: FloatArray,
    slack: FloatArray,
) -> IntervalArray:
    """Return bounds of the log hockey-stick divergence H_(e^eps)(P || Q), eps of any sign or +-inf; `slack` is the error of eps.

    `forward` returns bounds of log H(P || Q) at eps >= 0, and `backward` those of log H(Q || P). For negative eps = -t,
    H_(e^-t)(P || Q) = 1 - e^-t + e^-t H_(e^t)(Q || P).
    """
    sides = []
    for side, at in ((0, eps + slack), (1, eps - slack)):
        out = np.where(at > 0, -np.inf, 0.0)
        ahead = (at >= 0) & (at < np.inf)
        if ahead.any():
            out[ahead] = forward(at[ahead])[side]
        behind = (at < 0) & (at > -np.inf)
        if behind.any():
            t = -at[behind]
            out[behind] = np.logaddexp(log1mexp(-t), backward(t)[side] - t) + (2 * side - 1) * 4 * ULP
        sides.append(np.minimum(out, 0.0))
    return IntervalArray(*sides)


def _block_logs(
    log_pmf: Callable[[FloatArray], FloatArray],
    mode: float,
    starts: FloatArray,
    ends: FloatArray,
    value: Enclosing,
) -> IntervalArray:
    """Return bounds of the log of the sum of pmf(i) g(i) over each of the blocks of indices starts[k]..ends[k]."""
    mass, (low, high) = log_pmf(starts), value(starts)
    smallest = largest = mass
    if (ends > starts).any():
        mass_at_end, (low_at_end, high_at_end) = log_pmf(ends), value(ends)
        low, high = np.minimum(low, low_at_end), np.maximum(high, high_at_end)
        inside = log_pmf(np.clip(mode, starts, ends))
        smallest, largest = np.minimum(mass, mass_at_end), np.maximum(np.maximum(mass, mass_at_end), inside)
    size = np.log(ends - starts + 1)
    return IntervalArray(smallest + size + low, largest + size + high)


def _log_sum(logs: FloatArray, sign: float) -> float:
    """Return the log of the sum of exponentials, rounded up (sign 1) or down (sign -1)."""
    finite = np.where(logs > -math.inf, logs, 0.0)
    logs = logs + sign * (2e-13 + 8 * ULP * np.abs(finite))
    return log_sum(logs) + sign * 1e-14


def _argmax(terms: Callable[[FloatArray], FloatArray], first: float, last: float) -> float:
    """Return the index of the largest term, if the terms increase and then decrease; any index gives valid bounds of the sum."""
    while last - first > COMPARED:
        grid = np.unique(np.floor(np.linspace(first, last, COMPARED + 1)))
        best = int(np.argmax(terms(grid)))
        first, last = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, grid.size - 1)])
    grid = np.arange(first, last + 1, dtype=np.float64)
    return float(grid[int(np.argmax(terms(grid)))])


def _edge(terms: Callable[[FloatArray], FloatArray], peak: float, end: float, level: float) -> float:
    """Return the last index from `peak` towards `end` at which a term is at least `level`; terms must decrease in this direction.

    If they do not, the bounds of the sum remain valid.
    """
    step = 1.0 if end >= peak else -1.0
    near, far = 0.0, abs(end - peak)
    while far - near > 0:
        grid = np.unique(np.ceil(np.linspace(near, far, COMPARED + 1)))[1:]
        below = terms(peak + step * grid) < level
        if not below.any():
            near = far
        else:
            place = int(np.argmax(below))
            near, far = (float(grid[place - 1]) if place else near), float(grid[place]) - 1
    return peak + step * near
