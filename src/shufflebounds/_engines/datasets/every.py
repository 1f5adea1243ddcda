r"""The largest hockey-stick divergence over every dataset of few users of a small randomizer, from enumerated distributions.

The divergence of two distributions is jointly convex, and the distribution of the messages is linear in the distribution R_x of the
message of each user. So the largest divergence is attained where the inputs of all users, including the target's two, are extreme
points of the convex hull of the R_x (docs/theorems/worst-dataset). With two outputs, 0 and 1, only two inputs are extreme: those
with the smallest and the largest probability of output 1. A dataset is then given by the number of other users with the second of
these inputs. Let S be the number of 1s among the other users' messages, p and p' the probabilities that the target's message is 1
for its two inputs, and E = e^eps. Then

.. math:: \delta = \max_k \; \Pr[S \ge k] (1 - E) + \Pr[S = k - 1] (p - E p'), \qquad p > p'

The best test is a threshold of the number of 1s: S is a sum of independent bits, so Pr[S = k - 1]/Pr[S = k] and with it the
likelihood ratio is monotone in k. The case p < p' follows by exchanging the names of the outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import BLOCK, LARGEST_EXPONENT, LOG_TINY, MOST_ENUMERATED, TABLE_SIZE, TINY
from shufflebounds._base.progress import tick
from shufflebounds._base.quadrature import capped_exp
from shufflebounds._base.search import least_int
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds.tradeoff.divergences import excess

__all__ = [
    "EveryDataset", "LargestDivergence", "Shares", "all_shares", "extreme_rows", "most_enumerated", "multiset_error",
    "one_message_less",
]

Shares = tuple[int, ...]
"""Numbers of other users with each input."""


class LargestDivergence(NamedTuple):
    """The dataset with the largest divergence, the target's two inputs, and bounds of the divergence (not of its logarithm)."""

    lower: float
    upper: float
    shares: Shares
    pair: tuple[int, int]


class EveryDataset:
    """The distributions of the multiset of messages for every dataset.

    `rows` are the distributions of the outputs for each input, with relative errors of at most 8 ULP. `users` >= 2 includes the
    target.
    """

    def __init__(self, rows: FloatArray, users: int) -> None:
        self._users = users
        self._extreme = _extreme(rows) if rows.shape[1] == 2 else list(range(len(rows)))
        self._rows = rows[self._extreme]
        inputs, outputs = self._rows.shape
        self.listed = _affordable(inputs, outputs, users)
        self._inputs = len(rows)

    @cached_property
    def _error(self) -> float:
        """Bound of the relative error of a probability of messages, which is a sum of products with one factor for each user."""
        return multiset_error(self._rows.shape, self._users)

    def _powers(self, x: int) -> list[FloatArray]:
        """Return, for outputs 0 and 1 and for j = 0..users - 1, the distribution of the number of 1s of j users with input x."""
        out = [np.ones(1)]
        for _ in range(self._users - 1):
            out.append(np.convolve(out[-1], self._rows[x]))
        return out

    @cached_property
    def _shares(self) -> list[Shares]:
        return all_shares(self._users - 1, len(self._rows))

    @cached_property
    def _bits(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return Pr[S = j], Pr[S > j] and Pr[S < j] for j = 0..users - 1, one row for each dataset, if the outputs are 0 and 1.

        S is the number of messages 1 of the other users.
        """
        low_powers, high_powers = self._powers(0), self._powers(1)
        equal = np.array([np.convolve(high_powers[high], low_powers[low]) for low, high in self._shares])
        above, below = np.zeros_like(equal), np.zeros_like(equal)
        above[:, :-1] = np.cumsum(equal[:, :0:-1], axis=1)[:, ::-1]
        below[:, 1:] = np.cumsum(equal[:, :-1], axis=1)
        return equal, above, below

    @cached_property
    def _laws(self) -> tuple[FloatArray, NDArray[np.intp]]:
        """Return the probabilities of the multisets of messages, one row for each input of the target.

        Columns are grouped by dataset; the second array has the index of the first column of each dataset.
        """
        steps = one_message_less(self._rows.shape[1], self._users)
        blocks, starts, place = [], [], 0
        for others in self._others(steps, 0, self._users - 1, np.ones(1)):
            block = self._rows @ np.append(others, 0.0)[steps[-1]]
            block = block[:, block.any(axis=0)]
            blocks.append(block)
            starts.append(place)
            place += block.shape[1]
        return np.concatenate(blocks, axis=1), np.array(starts)

    def _others(self, steps: list[NDArray[np.intp]], x: int, left: int, law: FloatArray) -> Iterator[FloatArray]:
        """Yield the probabilities of the other users' messages, for all ways to distribute `left` users over inputs from x on.

        The datasets come in the order of `all_shares`. `law` has the probabilities of the messages of the users with inputs before
        x.
        """
        last = x == len(self._rows) - 1
        for moved in range(left + 1):
            if not last:
                yield from self._others(steps, x + 1, left - moved, law)
            elif moved == left:
                yield law
            if moved < left:
                law = self._rows[x] @ np.append(law, 0.0)[steps[self._users - 1 - left + moved]]

    def largest(self, eps: float) -> LargestDivergence:
        """Return the dataset with the largest divergence at eps >= 0."""
        find = self._of_bits if self._rows.shape[1] == 2 else self._of_laws
        upper, lower, dataset, (first, second) = find(capped_exp(eps))
        if eps > LARGEST_EXPONENT:
            # e^eps would overflow; the divergence decreases in eps, so its value at LARGEST_EXPONENT is an upper bound.
            lower = 0.0
        shares = [0] * self._inputs
        for x, count in zip(self._extreme, self._shares[dataset]):
            shares[x] = count
        return LargestDivergence(lower, min(upper, 1.0), tuple(shares), (self._extreme[first], self._extreme[second]))

    def renyi(self, orders: FloatArray, *, upper: bool) -> FloatArray:
        """Return upper or lower bounds of the largest Renyi divergences, for finite orders and rows without zeros.

        Renyi divergences are jointly quasi-convex, so the datasets of extreme points suffice for them, too.
        """
        if self._rows.shape[1] == 2:
            equal, size = self._bits[0], self._users + 1
            padded = np.pad(equal, ((0, 0), (1, 1)))
            laws = [(zero * padded[:, 1:] + one * padded[:, :-1]).ravel() for zero, one in self._rows]
            starts = np.arange(len(equal)) * size
        else:
            law, starts = self._laws
            laws = list(law)
        with np.errstate(divide="ignore"):
            log_rows = np.log(self._rows)
        # Each log has an error of at most 8 ULP, that of the probability, plus its own rounding error.
        budget = float((log_rows.max(axis=0) - log_rows.min(axis=0)).max()) + ULP * (24 + 4 * float(np.abs(log_rows).max()))
        best = np.zeros(orders.size)
        for first, second in permutations(laws, 2):
            losses = _Losses.of(first, second, starts, self._error + 8 * ULP, budget, upper=upper)
            best = np.maximum(best, [losses.renyi(order) for order in orders.tolist()])
            tick()
        return best

    def tails(self, eps: FloatArray) -> IntervalArray | None:
        """Return bounds of the largest probability that the privacy loss exceeds each eps, or None if it is not known.

        The probability is not convex in the dataset, so it is known only if all datasets are enumerated, not those of extreme
        points alone.
        """
        if self._rows.shape[1] == 2 or (eps > LARGEST_EXPONENT).any():
            return None
        law, starts = self._laws
        lost = TINY * float(np.diff(np.append(starts, law.shape[1])).max())
        sides = np.zeros((2, eps.size))
        for i, factor in enumerate(np.exp(eps).tolist()):
            for first, second in permutations(law, 2):
                for upper, error in enumerate((-self._error, self._error)):
                    seen = first * (1 + error) > second * (factor * (1 - error) * (1 - 2 * error))
                    sides[upper, i] = max(sides[upper, i], np.add.reduceat(np.where(seen, first, 0.0), starts).max())
            tick()
        lower, upper = sides[0] * (1 - self._error) - lost, sides[1] * (1 + self._error) + lost
        return IntervalArray(np.maximum(lower, 0.0), np.minimum(upper, 1.0))

    def _of_bits(self, factor: float) -> tuple[float, float, int, tuple[int, int]]:
        """Return the largest divergence for two outputs as (upper, lower, dataset, pair); `factor` is e^eps."""
        equal, above, below = self._bits
        (q0, p0), (q1, p1) = self._rows
        best = (-math.inf, 0.0, 0, (0, 0))
        # Blocks of this size fit in the cache of the processor.
        step = max(1, BLOCK // equal.shape[1])
        # The target's bit is 1 with probability p. So Pr[S + bit > j] = Pr[S > j] + p Pr[S = j] and Pr[S + bit <= j] = Pr[S < j] +
        # (1 - p) Pr[S = j].
        for pair, tail, p, q in (((1, 0), above, p1, p0), ((0, 1), below, q0, q1)):
            widened = [(1 + error, factor * (1 - error)) for error in (self._error, -self._error)]
            (a, b), (c, d) = ((high * p - low * q, high - low) for high, low in widened)
            for start in range(0, len(equal), step):
                some = slice(start, start + step)
                value = a * equal[some]
                value += b * tail[some]
                row, column = divmod(int(value.argmax()), equal.shape[1])
                if value[row, column] > best[0]:
                    dataset = start + row
                    lower = c * equal[dataset, column] + d * tail[dataset, column]
                    best = (float(value[row, column]), float(lower), dataset, pair)
        return (max(best[0], 0.0) + TINY * (1 + factor), best[1] - TINY * (1 + factor), *best[2:])

    def _of_laws(self, factor: float) -> tuple[float, float, int, tuple[int, int]]:
        """Return the largest divergence for more than two outputs as (upper, lower, dataset, pair); `factor` is e^eps."""
        law, starts = self._laws
        largest, best = 0.0, (-math.inf, 0.0, 0, (0, 0))
        for pair in permutations(range(len(law)), 2):
            first, second = law[list(pair)]
            upper, lower = (
                np.add.reduceat(np.maximum(first * (1 + error) - second * (factor * (1 - error)), 0.0), starts)
                for error in (self._error, -self._error)
            )
            # Datasets that differ by a symmetry have the same value up to rounding; the first of them is returned.
            place = int(np.argmax(upper >= upper.max() * (1 - 2 * self._error)))
            largest = max(largest, float(upper.max()))
            if upper[place] > best[0] * (1 + 2 * self._error):
                best = (float(upper[place]), float(lower[place]), place, pair)
        lost = TINY * (1 + factor)
        return (largest * (1 + self._error) + lost, best[1] * (1 - self._error) - lost, *best[2:])


class _Losses(NamedTuple):
    """The log masses under P and the privacy losses of the outcomes of many pairs (P, Q), for an upper or a lower bound.

    For an upper bound, `away` are the losses moved away from 0 by their errors, and `raised` the losses increased by their errors.
    For a lower bound, `away` are moved towards 0 and `raised` decreased. `starts` has the index of the first outcome of each pair.
    `lost` is the number of outcomes with a probability below TINY, whose losses are at most `budget`; an upper bound includes them.
    """

    log_p: FloatArray
    away: FloatArray
    raised: FloatArray
    starts: NDArray[np.intp]
    lost: int
    budget: float
    upper: bool

    @classmethod
    def of(cls, p: FloatArray, q: FloatArray, starts: NDArray[np.intp], error: float, budget: float, *, upper: bool) -> _Losses:
        """Return the losses of probabilities with a relative error of at most `error`."""
        seen = (p > TINY) & (q > TINY)
        count = np.add.reduceat(seen, starts, dtype=np.intp)
        first = np.cumsum(count) - count
        log_p, log_q = np.log(p[seen]), np.log(q[seen])
        loss, side = log_p - log_q, 1 if upper else -1
        # `rounding` bounds the rounding errors of log_p and log_q, and the rounding error of an order times the loss, divided by
        # the order.
        rounding = ULP * (4 - 2 * log_p - 2 * log_q)
        blur = 2 * error + rounding
        size = np.abs(loss) + side * blur
        away = np.copysign(size if upper else np.maximum(size, 0.0), loss)
        return cls(log_p + side * (error + rounding), away, loss + side * blur, first[count > 0], int((~seen).sum()), budget, upper)

    def renyi(self, order: float) -> float:
        """Return a bound of the largest Renyi divergence of the pairs (P, Q), for one finite order (see `renyi_of_losses`)."""
        b, side = order - 1, 1 if self.upper else -1
        lost = math.log(self.lost) + LOG_TINY + order * self.budget if self.upper and self.lost else -math.inf
        if not self.starts.size:
            return self.budget if self.upper else 0.0
        groups = np.diff(np.append(self.starts, self.log_p.size))
        with np.errstate(over="ignore", invalid="ignore"):
            powers = self.log_p + b * self.raised
            top = np.maximum.reduceat(powers, self.starts)
            far = np.logaddexp(top + np.log(np.add.reduceat(np.exp(powers - np.repeat(top, groups)), self.starts)), lost)
            # Both `far` and `near` give the log of a sum of powers: `far` is this log itself, and log(1 + b * near) is the same
            # number, where `near` is a sum of positive terms. If the log is close to 0, `near` has less cancellation.
            near = np.add.reduceat(excess(self.log_p, self.away, b), self.starts)
            near += math.exp(min(lost, LARGEST_EXPONENT)) * (1 + self.budget + (1 / b if b else 0.0))
            rise = b * near
            value = np.where(np.abs(far) > 0.5, far / b if b else np.inf, np.log1p(rise) / b if b else near)
            value = np.where(rise <= 1e-17, near, value)
        return min(float(value.max()) * (1 + side * ULP * (64 + int(groups.max()))), self.budget)


def multiset_error(shape: tuple[int, ...], users: int) -> float:
    """Return a bound of the relative error of probabilities of multisets of messages, and of sums of these probabilities.

    `shape` has the numbers of inputs and outputs.
    """
    inputs, outputs = shape
    cells = math.comb(users + outputs - 1, outputs - 1)
    return ULP * float((cells + 4) * (inputs + 3) + (16 + 2 * outputs) * users + 16)


def _affordable(inputs: int, outputs: int, users: int) -> bool:
    """Return whether enumerating all datasets of `users` users is affordable; if so, it is also affordable for fewer users."""
    if min(inputs, outputs, users) < 2:
        return False
    datasets = math.comb(users - 2 + inputs, inputs - 1)
    cells = math.comb(users + outputs - 1, outputs - 1)
    # For two outputs the tables do not contain the target's message, so the target's two inputs share one table.
    copies = 1 if outputs == 2 else inputs
    # For more than two outputs, the number of datasets is limited, too, because each distribution takes at least 50 us.
    return (outputs == 2 or datasets <= MOST_ENUMERATED // 4) and datasets * cells * copies <= TABLE_SIZE


def most_enumerated(rows: FloatArray) -> int:
    """Return the largest number of users for which enumerating all datasets is affordable, or 1 if there is none."""
    inputs, outputs = rows.shape
    extreme = min(inputs, 2) if outputs == 2 else inputs
    beyond = least_int(lambda users: not _affordable(extreme, outputs, users), 2)
    # More than 2**53 users are possible only with one input or one output.
    return 1 if beyond is None else beyond - 1


def one_message_less(outputs: int, users: int) -> list[NDArray[np.intp]]:
    r"""Return for t = 1, ..., users an array that maps each multiset of t messages to the multisets with one message less.

    Row y of the array has, for each multiset of t messages, the index of the multiset without one message y in the list of all
    multisets of t - 1 messages. If the multiset has no message y, the entry is the length of this list. The list of all multisets
    of t messages begins with those without the last output; then follow the multisets of t - 1 messages, each with one message of
    the last output more.
    """
    # The arrays for one output: the only multiset of t messages becomes the only one of t - 1 messages.
    steps = [np.zeros((1, 1), dtype=np.intp) for _ in range(users)]
    for last in range(1, outputs):
        fewer, steps = steps, []
        for t in range(1, users + 1):
            size, part = math.comb(last + t - 1, last), math.comb(last + t - 2, last - 1)
            # `part` multisets of t - 1 messages do not have the last output.
            first = np.where(fewer[t - 1] == part, size, fewer[t - 1])
            more = part + steps[-1] if steps else np.full((last, 1), size, dtype=np.intp)
            missing = np.full(first.shape[1], size, dtype=np.intp)
            rest = [np.concatenate([one, other]) for one, other in zip(first, more)]
            steps.append(np.stack([*rest, np.concatenate([missing, np.arange(size)])]))
    return steps


def _extreme(rows: FloatArray) -> list[int]:
    """Return the inputs with the smallest and the largest odds of output 1; all other rows are convex combinations of these two."""
    with np.errstate(divide="ignore"):
        odds = np.log(rows[:, 1]) - np.log(rows[:, 0])
    return [int(np.argmin(odds)), int(np.argmax(odds))]


def extreme_rows(rows: FloatArray) -> FloatArray:
    """Return the rows of the two extreme inputs if there are two outputs, and otherwise all rows."""
    return rows[_extreme(rows)] if rows.shape[1] == 2 else rows


def all_shares(others: int, inputs: int) -> list[Shares]:
    """Return all ways to distribute the other users over the inputs."""
    if inputs == 1:
        return [(others,)]
    return [(first, *rest) for first in range(others + 1) for rest in all_shares(others - first, inputs - 1)]
