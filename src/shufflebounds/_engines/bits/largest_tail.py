"""The largest probability, over all datasets of the other users, that the loss of a shuffled bit exceeds eps.

Notation. A bit with value 0 is sent as 1 with probability a, a bit with value 1 as 0 with probability c, where a + c < 1. Of the N
other bits m are 1; W is the distribution of their sum after randomization, and E = e^eps. The target's bit is 0 under P and 1 under
Q. The loss does not increase in the sum of all bits, and exceeds eps up to the last sum k with W(k - 1)/W(k) < r, where
r = (1 - a - c E)/((1 - c) E - a). So the probability is

    T = P[sum <= k] = Pr[W < k] + (1 - a) W(k).

k, W and T depend on m. Exchanging 0 and 1 turns the pair (Q, P) of m ones into the pair (P, Q) of N - m ones, with a and c
exchanged.

Runs. Let B_x be a bit with value x after randomization. In the order of likelihood ratios B_0 <= B_1 <= 1 + B_0, and adding the
other bits keeps this order, because their sum has a log-concave distribution. So k rises by 0 or 1 from m to m + 1, and k - m never
rises. A run is a set of consecutive m with one value j of k - m. The sum less m is the number of changed zeros less the number of
changed ones. The more ones there are, the more probable it is that this difference is at most j. So in a run T increases with m: if
k - m is the same for two datasets, no dataset between them has a larger T than the one with more ones.

Blocks. From delta = (1 - a - c E) W(k) - (E - 1) Pr[W < k] follows T = (E (1 - a - c) W(k) - delta)/(E - 1). For all m in a block
f..l, delta is at least that of l ones and N - f zeros: these bits contain those of each dataset, and adding bits is
post-processing. For W(k), let K be the log of the moment generating function of W at theta = ln r < 0, and mu and v mean and
variance of W after tilting by theta. All three are linear in m. The tilted distribution has its mode at k, so k <= mu + 1 (Darroch
1964). Its mass at k is at most the mean of the absolute value of its characteristic function, and this is at most the mean of
e^(-v (1 - cos t)), which is e^-v I_0(v). Together

    log W(k) <= K - theta (mu + 1) + log(e^-v I_0(v)).

The last term is convex in m, because it is the log of a mean of exponentials of linear functions, and the others are linear. So the
larger value at the ends of a block is an upper bound for the block.

A second bound is for blocks of two runs: T is at most the probability that the sum of l ones and N - l zeros is at most k + 1, for
the k of this dataset.

Search. The blocks with the largest bounds are halved, until both ends of each block belong to one run, or no bound is above the
largest T that was found, or `MANY` datasets have been evaluated. In the last case the upper bound is the largest bound of a block.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from shufflebounds._base.limits import COMPARED, LARGEST_EXPONENT, MANY
from shufflebounds._base.scipy_functions import ive
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, at_each, largest, probability
from shufflebounds._core import _bits
from shufflebounds._losses.budget import Budget, log_odds

__all__ = ["largest_tails", "tails_of_two_outputs"]


def _log_bessel(v: FloatArray) -> FloatArray:
    """Return an upper bound of the log of e^-v I_0(v), the mean of e^(-v (1 - cos t))."""
    # With u = sin(t/2) it is the integral of 2/pi e^(-2 v u^2)/sqrt(1 - u^2) over 0 < u < 1. The root is at most 1 + .619 u^2 up
    # to u = 1/2, and the part beyond is at most 2/3 e^(-v/2).
    with np.errstate(divide="ignore"):
        return np.where(v < 1000, np.log(ive(0, np.minimum(v, 1000.0))), np.log1p(0.16 / v) - 0.5 * np.log(2 * math.pi * v))


class _Bits(NamedTuple):
    """How a bit is randomized: the probabilities of 1 and of 0 of a bit with value 0 (`zero`) and with value 1 (`one`).

    `budget` is the log of the ratio of both probabilities of 0.
    """

    zero: tuple[float, float]
    one: tuple[float, float]
    budget: Budget


class _Blocks:
    """Bounds of log T for blocks of datasets; see the head of this module."""

    def __init__(self, others: int, bits: _Bits, eps: float, gap: float) -> None:
        self.others, self.question = float(others), (bits.zero, bits.one, eps, gap)
        (flip, keep), (kept, flipped) = bits.zero, bits.one
        gain, loss = -keep * math.expm1(-gap), math.expm1(eps)
        theta = -math.log1p(loss / gain) if loss < 1e16 * gain else math.log(gain) - math.log(loss)
        ratio = gain / (gain + loss)
        # K - theta mu of a bit that was 0 and of one that was 1, in terms as small as q theta, so that many bits keep their digits
        totals = keep + flip * ratio, flipped + kept * ratio
        less = flip * (loss / (gain + loss))
        logs = math.log1p(-less) if less < 0.5 else math.log(totals[0]), math.log1p(flipped * loss / gain)
        tilts = -theta * flip * ratio / totals[0], theta * flipped / totals[1]
        self.exponent = [sum(terms) for terms in zip(logs, tilts)]
        self.variance = [(flip * ratio / totals[0]) * (keep / totals[0]), (kept * ratio / totals[1]) * (flipped / totals[1])]
        self.log_loss = math.log(loss)
        self.constant = math.log(gain + keep * loss) - self.log_loss - theta
        # Bounds of the rounding errors of both exponents, and of the rest.
        self.slack = [16 * ULP * (1 - theta) * (abs(log) + abs(tilt)) for log, tilt in zip(logs, tilts)]
        self.error = 64 * ULP * (8 + eps - theta + abs(self.log_loss))

    def at(self, ones: FloatArray) -> FloatArray:
        """Return the bound of log(E (1 - a - c) W(k)/(E - 1)) at each number of ones."""
        zeros = self.others - ones
        value = np.full(ones.size, self.constant + self.error)
        for number, exponent, slack in zip((zeros, ones), self.exponent, self.slack):
            value += number * (exponent + slack)
        return np.asarray(value + _log_bessel(zeros * self.variance[0] + ones * self.variance[1]))

    def over(self, first: FloatArray, last: FloatArray) -> FloatArray:
        """Return the bound of log T over each block first..last."""
        most = np.maximum(self.at(first), self.at(last))
        least = _bits.least_log_deltas(last, self.others - first, *self.question)
        # The kernel is accurate up to 2**53 bits.
        least = np.where(last - first > 2.0**53 - self.others, -np.inf, least)
        less = least - self.log_loss - most
        rounding = 8 * ULP * (abs(self.log_loss) + np.abs(most) + np.where(least > -np.inf, np.abs(least), 0.0))
        return np.asarray(most + np.log1p(-np.exp(np.minimum(less - rounding, 0.0))))


def _largest(ranges: list[tuple[int, int]], others: int, bits: _Bits, eps: float, gap: float) -> Interval:
    """Return bounds of the largest log T over the numbers of ones in all ranges (first, last)."""
    blocks = _Blocks(others, bits, eps, gap)
    best = Interval(-math.inf, -math.inf)

    def evaluated(ones: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return k - m of each dataset, and the log of the probability of all sums up to k + 1."""
        nonlocal best
        lower, upper, last, beyond = _bits.bits_log_tails(ones, others - ones, *blocks.question)
        best = Interval(max(best.lower, float(lower.max())), max(best.upper, float(upper.max())))
        return np.asarray(last - ones), beyond

    def table(first: FloatArray, last: FloatArray, run: FloatArray, end: FloatArray, beyond: FloatArray) -> FloatArray:
        """Return the rows first, last, k - m at both, the tail of `last` beyond k, and the bound, of all blocks of several runs."""
        bound = np.minimum(blocks.over(first, last), np.where(run - end > 1, np.inf, beyond))
        return np.array([first, last, run, end, beyond, bound])[:, (last - first > 1) & (run > end)]

    first, last = (np.array(ends, dtype=np.float64) for ends in zip(*ranges))
    left, count = table(first, last, evaluated(first)[0], *evaluated(last)), 2 * first.size
    while True:
        left = left[:, ~(left[-1] <= best.upper)]
        if not left.size:
            return best
        if count >= MANY:
            return Interval(best.lower, float(left[-1].max()))
        order = np.argsort(-left[-1])
        highest, left = np.ascontiguousarray(left[:, order[:COMPARED]]), left[:, order[COMPARED:]]
        first, last, run, end, beyond, _ = highest
        middle = first + np.floor((last - first) / 2)
        count += middle.size
        inner = evaluated(middle)
        left = np.hstack([left, table(first, middle, run, *inner), table(middle, last, inner[0], end, beyond)])


def largest_tails(users: int, fakes: int, flip: float, eps: FloatArray, rounding: float = 0.0) -> IntervalArray:
    """Return bounds of the largest probability, over all datasets, that the privacy loss exceeds each eps > 0, for 0 < flip < 1/2.

    `fakes` dummy zeros are among the bits. `rounding` bounds the relative error of `flip` and 1 - `flip`.
    """
    others, bits = users + fakes - 1, _Bits((flip, 1 - flip), (1 - flip, flip), log_odds(flip))
    # The numbers of ones of the pairs (P, Q), and those of the pairs (Q, P) with 0 and 1 exchanged
    ranges = [(0, others)] if fakes <= users else [(0, users - 1), (fakes, others)]
    return _tails(ranges, others, bits, eps, rounding)


def tails_of_two_outputs(rows: FloatArray, users: int, eps: FloatArray) -> IntervalArray:
    """Return the bounds of `largest_tails` for a randomizer with two inputs and two outputs.

    `rows` are the distributions of the outputs for both inputs; all entries are positive and have errors of at most 8 ulp.
    """
    first, second = rows[np.argsort(rows[:, 1])].tolist()
    sides = []
    # The output 1 is more probable for the second input, the output 0 for the first one.
    for zero, one in ((first, second), (second[::-1], first[::-1])):
        # The complement of the smaller probability of a row has a smaller error than the larger one.
        below, above = ((chance, 1 - chance) if chance < 0.5 else (1 - other, other) for other, chance in (zero, one))
        logs = math.log(below[1]), math.log(above[1])
        bits = _Bits(below, above, Budget(logs[0] - logs[1]))
        sides.append(_tails([(0, users - 1)], users - 1, bits, eps, (16 - sum(logs)) * ULP))
    return largest(sides)


def _tails(ranges: list[tuple[int, int]], others: int, bits: _Bits, eps: FloatArray, rounding: float) -> IntervalArray:
    # A probability of a sum has a relative error of at most `moved`, so its log likelihood ratio has twice this error. A smaller
    # rounding error of the budget moves the threshold by less than such a change of eps.
    moved = 2 * (others + 1) * rounding

    def logs(at: float) -> Interval:
        if at <= 0:
            return Interval(-math.inf, 0.0)
        if not bits.budget.less(at) > 0:
            return Interval(-math.inf, -math.inf)
        # As in `given_bits.bit_sides`, e^eps must not overflow.
        near = min(at, LARGEST_EXPONENT)
        found = _largest(ranges, others, bits, near, float(bits.budget.less(near)))
        return found if near == at else Interval(-math.inf, found.upper)

    def bounds(at: float) -> Interval:
        if moved == 0:
            return logs(at)
        return Interval(logs(at + 2 * moved).lower - moved, logs(at - 2 * moved).upper + moved)

    lower, upper = at_each(bounds, eps)
    return IntervalArray(np.asarray(probability(lower, False)), np.asarray(probability(np.minimum(upper, 0.0), True)))
