"""The largest probability, over all datasets of the other users, that the loss of a shuffled bit exceeds eps.

Notation. Of the N other bits m are 1 before each is flipped with probability q; W is the distribution of their sum, p = 1 - q and
E = e^eps. The target's bit is 0 under P and 1 under Q. The loss does not increase in the sum of all bits, and exceeds eps up to the
last sum k with W(k - 1)/W(k) < r = (p - q E)/(p E - q). So the probability is

    T = P[sum <= k] = Pr[W < k] + p W(k).

k, W and T depend on m. Exchanging 0 and 1 turns the pair (Q, P) of m ones into the pair (P, Q) of N - m ones.

Runs. Let B_x be a bit with value x after its flip. In the order of likelihood ratios B_0 <= B_1 <= 1 + B_0, and adding the other
bits keeps this order, because their sum has a log-concave distribution. So k rises by 0 or 1 from m to m + 1, and k - m never
rises. A run is a set of consecutive m with one value j of k - m. The sum less m is the number of flipped zeros less the number of
flipped ones. The more ones there are, the more probable it is that this difference is at most j. So in a run T increases with m: if
k - m is the same for two datasets a < b, no dataset between them has a larger T than b.

Blocks. From delta = (p - q E) W(k) - (E - 1) Pr[W < k] follows T = (E (p - q) W(k) - delta)/(E - 1). For all m in a..b, delta is at
least that of b ones and N - a zeros: these bits contain those of each dataset, and adding bits is post-processing. For W(k), let K
be the log of the moment generating function of W at theta = ln r < 0, and mu and v mean and variance of W after tilting by theta.
All three are linear in m. The tilted distribution has its mode at k, so k <= mu + 1 (Darroch 1964). Its mass at k is at most the
mean of the absolute value of its characteristic function, and this is at most the mean of e^(-v (1 - cos t)), which is e^-v I_0(v).
Together

    log W(k) <= K - theta (mu + 1) + log(e^-v I_0(v)).

The last term is convex in m, because it is the log of a mean of exponentials of linear functions, and the others are linear. So the
larger value at the ends of a block a..b is an upper bound for the block.

A second bound is for blocks of two runs: in the first run T is at most the probability under b that the sum is at most k + 1.

Search. The blocks with the largest bounds are halved, until both ends of each block belong to one run, or no bound is above the
largest T that was found, or `MOST` datasets have been evaluated. In the last case the upper bound is the largest bound of a block.
"""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.limits import COMPARED, LARGEST_EXPONENT
from shufflebounds._base.scipy_functions import ive
from shufflebounds._base.types import ULP, FloatArray, Interval, IntervalArray, at_each, probability
from shufflebounds._core import _bits
from shufflebounds._losses.budget import log_odds

__all__ = ["largest_tails"]

MOST = 1024
"""Number of datasets after which no block is halved. Raised: longer run time, 10 us for each. Lowered: a less tight upper bound."""


def _log_bessel(v: FloatArray) -> FloatArray:
    """Return an upper bound of the log of e^-v I_0(v), the mean of e^(-v (1 - cos t))."""
    # With u = sin(t/2) it is the integral of 2/pi e^(-2 v u^2)/sqrt(1 - u^2) over 0 < u < 1. The root is at most 1 + .619 u^2 up
    # to u = 1/2, and the part beyond is at most 2/3 e^(-v/2).
    with np.errstate(divide="ignore"):
        return np.where(v < 1000, np.log(ive(0, np.minimum(v, 1000.0))), np.log1p(0.16 / v) - 0.5 * np.log(2 * math.pi * v))


class _Blocks:
    """Bounds of log T for blocks of datasets; see the head of this module."""

    def __init__(self, others: int, flip: float, eps: float, gap: float) -> None:
        keep, self.others, self.flip, self.eps, self.gap = 1 - flip, float(others), flip, eps, gap
        gain, loss = -keep * math.expm1(-gap), math.expm1(eps)
        theta = -math.log1p(loss / gain) if loss < 1e16 * gain else math.log(gain) - math.log(loss)
        ratio = gain / (gain + loss)
        # K - theta mu of a bit that was 0 and of one that was 1, in terms as small as q theta, so that many bits keep their digits
        totals = keep + flip * ratio, flip + keep * ratio
        logs = math.log1p(-flip * (loss / (gain + loss))), math.log1p(flip * loss / gain)
        tilts = -theta * flip * ratio / totals[0], theta * flip / totals[1]
        self.exponent = [sum(terms) for terms in zip(logs, tilts)]
        self.variance = [(flip * ratio / totals[0]) * (keep / totals[0]), (keep * ratio / totals[1]) * (flip / totals[1])]
        self.log_loss = math.log(loss)
        self.constant = math.log(1 - 2 * flip) + eps - self.log_loss - theta
        # Bounds of the rounding errors of both exponents, and of the rest.
        self.slack = [16 * ULP * (1 - theta) * (abs(log) + abs(tilt)) for log, tilt in zip(logs, tilts)]
        self.error = 64 * ULP * (8 + eps - theta + abs(self.log_loss))

    def at(self, ones: FloatArray) -> FloatArray:
        """Return the bound of log(E (p - q) W(k)/(E - 1)) at each number of ones."""
        zeros = self.others - ones
        value = np.full(ones.size, self.constant + self.error)
        for number, exponent, slack in zip((zeros, ones), self.exponent, self.slack):
            value += number * (exponent + slack)
        return np.asarray(value + _log_bessel(zeros * self.variance[0] + ones * self.variance[1]))

    def over(self, first: FloatArray, last: FloatArray) -> FloatArray:
        """Return the bound of log T over each block first..last."""
        most = np.maximum(self.at(first), self.at(last))
        least = _bits.shuffled_bits_log_delta(last, self.others - first, self.flip, self.eps, self.gap)[0]
        # The kernel returns NaN for more than 2**53 bits; then no lower bound of delta is used.
        less = np.fmax(least, -np.inf) - self.log_loss - most
        rounding = 8 * ULP * (abs(self.log_loss) + np.abs(most) + np.where(least > -np.inf, np.abs(least), 0.0))
        return np.asarray(most + np.log1p(-np.exp(np.minimum(less - rounding, 0.0))))


def _largest(ranges: list[tuple[int, int]], others: int, flip: float, eps: float, gap: float) -> Interval:
    """Return bounds of the largest log T over the numbers of ones in all ranges (first, last)."""
    blocks = _Blocks(others, flip, eps, gap)
    best = Interval(-math.inf, -math.inf)

    def evaluated(ones: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return k - m of each dataset, and the log of the probability of all sums up to k + 1."""
        nonlocal best
        lower, upper, last, beyond = _bits.bits_log_tails(ones, others - ones, flip, eps, gap)
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
        if count >= MOST:
            return Interval(best.lower, float(left[-1].max()))
        order = np.argsort(-left[-1])
        (first, last, run, end, beyond, _), left = left[:, order[:COMPARED]], left[:, order[COMPARED:]]
        middle = first + np.floor((last - first) / 2)
        count += middle.size
        inner = evaluated(middle)
        left = np.hstack([left, table(first, middle, run, *inner), table(middle, last, inner[0], end, beyond)])


def largest_tails(users: int, fakes: int, flip: float, eps: FloatArray, rounding: float = 0.0) -> IntervalArray:
    """Return bounds of the largest probability, over all datasets, that the privacy loss exceeds each eps > 0, for 0 < flip < 1/2.

    `fakes` dummy zeros are among the bits. `rounding` bounds the relative error of `flip` and 1 - `flip`.
    """
    others, budget = users + fakes - 1, log_odds(flip)
    # The numbers of ones of the pairs (P, Q), and those of the pairs (Q, P) with 0 and 1 exchanged
    ranges = [(0, others)] if fakes <= users else [(0, users - 1), (fakes, others)]
    # A probability of a sum has a relative error of at most `moved`, so its log likelihood ratio has twice this error.
    moved = 2 * (others + 1) * rounding

    def logs(at: float) -> Interval:
        if at <= 0:
            return Interval(-math.inf, 0.0)
        if not budget.less(at) > 0:
            return Interval(-math.inf, -math.inf)
        # As in `given_bits.bit_sides`, e^eps must not overflow.
        near = min(at, LARGEST_EXPONENT)
        found = _largest(ranges, others, flip, near, float(budget.less(near)))
        return found if near == at else Interval(-math.inf, found.upper)

    def bounds(at: float) -> Interval:
        if moved == 0:
            return logs(at)
        return Interval(logs(at + 2 * moved).lower - moved, logs(at - 2 * moved).upper + moved)

    lower, upper = at_each(bounds, eps)
    return IntervalArray(np.asarray(probability(lower, False)), np.asarray(probability(np.minimum(upper, 0.0), True)))
