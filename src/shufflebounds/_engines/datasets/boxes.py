r"""An upper bound of the largest hockey-stick divergence over every dataset, by branch and bound, for few inputs and outputs.

A dataset is given by the numbers :math:`N = (N_1, \ldots, N_k)` of other users with each input. If :math:`c \le N` for every input,
the messages of N are a post-processing of those of c, because the analyst can draw the messages of the remaining users. So

.. math:: \delta_N \le \delta_c, \qquad c \le N.

A box is a set :math:`\{N : f \le N \le g,\ \sum_x N_x = n - 1\}`. For every N of the box, N_x is at least :math:`l_x = \max(f_x,
g_x + n - 1 - \sum_y g_y)`, so :math:`\delta_l` is an upper bound for all of its datasets. The box of all datasets is divided into
halves; of all boxes, the one with the largest bound is divided next. If the sum of l is n - 1, the box has one dataset, l, and its
bound is exact. The search ends when no bound exceeds delta of a known dataset; the result is then the exact maximum. If it ends
earlier, because of its limits, the largest bound of the remaining boxes is valid, but larger than the maximum. Near the worst
dataset the boxes become small; elsewhere few large boxes are enough. Each ordered pair of the target's inputs is bounded on its
own, and is dropped in a box as soon as its bound there is at most delta of a known dataset.

The result does not rise with n. The first box and all divisions are the same for every n: f and g do not depend on n. For a larger
n each l is the same or larger, so the bound of each box is the same or smaller, and fewer boxes are divided before all bounds are
below a given number. So a search that may divide the same number of boxes ends with the same bound or a smaller one.

A permutation of the inputs that only permutes the outputs is a symmetry. The maximum over all datasets is the same for two pairs of
the target's inputs that a symmetry exchanges, so one of them is evaluated. If every permutation of the inputs is a symmetry, two
boxes that differ by a permutation of the inputs that are not the target's have the same bound, and one of them is evaluated.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import Kept, kept
from shufflebounds._base.limits import BLOCK, FEW, LARGE_TABLE_SIZE, LARGEST_EXPONENT, MANY, TINY
from shufflebounds._base.progress import tick
from shufflebounds._base.quadrature import capped_exp
from shufflebounds._base.search import least_int
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._engines.datasets.every import Shares, multiset_error, one_message_less

__all__ = ["LITTLE_WORK", "WORK", "BoxesOfDatasets", "Covered", "most_in_boxes", "with_equal_values"]

WORK, LITTLE_WORK = 2**26, 2**21
"""Limits of the number of products of one search, which take about 0.1 s and 5 ms; the second is for samples of a curve. Raised:
longer run time. Lowered: larger upper bounds if the search ends before the exact maximum is known."""

_BOXES = 32
"""Smallest number of boxes that a search must be able to divide. Raised: fewer users whose datasets are searched. Lowered: longer
run time of searches that lead to no smaller bound."""

NUMBERS = sorted({round(2 ** (i / 6)) for i in range(6, 121)})
"""Numbers of users, from 2 on: searches for all numbers of users between two of them divide equally many boxes. More numbers:
longer run time of searches that end before the exact maximum is known. Fewer numbers: larger upper bounds of these searches."""

_FEW_INPUTS = 5
"""Largest number of inputs all of whose permutations are tried. Raised to 6: 20 ms for each number of users."""

Pair = tuple[int, int]
"""The target's two inputs, in order."""


class Covered(NamedTuple):
    """An upper bound of log delta, whether no smaller one is needed, and datasets that prove it.

    No smaller bound is needed if this one is the maximum over every dataset, or if the maximum is at least `useful`.

    Each of `parts` is a dataset c of other users and an ordered pair of the target's inputs. For each ordered pair that the search
    evaluates, every dataset of all other users contains some c of the list, up to a permutation of the inputs. The bound is at
    least the largest log delta of the list.
    """

    log_delta: float
    settled: bool
    parts: tuple[tuple[Shares, Pair], ...]


class _Box(NamedTuple):
    """A box with an upper bound of delta for all of its datasets, and for each pair delta of the dataset `low`.

    `first`, `last` and `low` are f, g and l of the module docstring. The first two fields determine the order in a heap: the box
    with the largest bound comes first.
    """

    negative: float
    number: int
    first: Shares
    last: Shares
    low: Shares
    values: dict[Pair, float]


class BoxesOfDatasets:
    """Upper bounds of delta over every dataset, by the search of the module docstring.

    `rows` are the distributions of the outputs for each input, with relative errors of at most 12 ULP. `users` >= 2 includes the
    target and is at most `most_in_boxes`.
    """

    def __init__(self, rows: FloatArray, users: int) -> None:
        self.rows, self.users = rows, users
        most = max(users, most_in_boxes(rows))
        self._width = 2 ** (most - 1).bit_length()
        # About four products with the distribution of all messages for each box.
        outputs, number = rows.shape[1], next(number for number in NUMBERS if number >= users)
        self._most_boxes = max(_BOXES, WORK // (4 * outputs * math.comb(number + outputs - 1, outputs - 1)))
        self._exchangeable = _exchangeable(rows)
        self._pairs = _target_pairs(rows)
        self._laws: Kept[Shares, FloatArray] = Kept(LARGE_TABLE_SIZE, lambda law: law.size)
        # `multiset_error` is for errors of 8 ULP.
        self._error = multiset_error(rows.shape, users) + 4 * ULP * (users + 1)

    @kept(4 * MANY)
    def upper(self, eps: float, attained: float = -math.inf, useful: float = 0.0,
              most_work: float = math.inf) -> tuple[float, bool]:
        """Return an upper bound of log delta over every dataset, and whether no smaller one is needed (`Covered`).

        The arguments are those of :meth:`covered`.
        """
        found = self.covered(eps, attained, useful, most_work)
        return found.log_delta, found.settled

    def covered(self, eps: float, attained: float = -math.inf, useful: float = 0.0, most_work: float = math.inf) -> Covered:
        """Return an upper bound of log delta over every dataset, and the datasets that prove it.

        `attained` is log delta of a known dataset, or smaller. The search ends if its bound cannot be below `useful`, if the number
        of products reaches `most_work`, or if `_most_boxes` boxes are divided.
        """
        factor, others = capped_exp(eps), self.users - 1
        inputs, outputs = self.rows.shape
        known, enough = math.exp(max(attained, -LARGEST_EXPONENT)), math.exp(useful)
        parts: list[tuple[Shares, Pair]] = []
        seen, number, divided, work = set[tuple[Shares, Shares]](), 0, 0, 0
        none = (0,) * inputs
        values = dict(zip(self._pairs, self._values(none, none, self._pairs, factor).tolist()))
        heap = [_Box(-max(values.values()), 0, none, (self._width - 1,) * inputs, none, values)]
        while heap and -heap[0].negative > known and known < enough and divided < self._most_boxes and work < most_work:
            box = heapq.heappop(heap)
            divided += 1
            for first, last, low in self._halves(box, others):
                if self._exchangeable:
                    if (first, last) in seen:
                        continue
                    seen.add((first, last))
                values = box.values
                if low != box.low:
                    values = dict(zip(values, self._values(low, box.low, tuple(values), factor).tolist()))
                    # Products of the distribution of the box with one message each, and of the weights of all pairs.
                    products = sum(low) - sum(box.low) + 1 + len(values)
                    work += outputs * products * math.comb(sum(low) + outputs, outputs - 1)
                largest = min(max(values.values()), -box.negative)
                if sum(low) == others:
                    known = max(known, largest)
                left = {pair: value for pair, value in values.items() if value > known}
                parts += [(low, pair) for pair in values if pair not in left]
                if left:
                    number += 1
                    heapq.heappush(heap, _Box(-largest, number, first, last, low, left))
            tick()
        parts += [(box.low, pair) for box in heap for pair in box.values]
        bound = max([known, *(-box.negative for box in heap)])
        return Covered(math.log(bound), known >= min(bound, enough), tuple(parts))

    def witness(self, eps: float, attained: float, useful: float) -> list[tuple[Shares, Pair]]:
        """Return the datasets that prove the bound of :meth:`upper`, for each ordered pair of the target's inputs."""
        inputs = range(len(self.rows))
        orders = list(permutations(inputs)) if self._exchangeable else symmetries(self.rows)
        found, parts = self.covered(eps, attained, useful).parts, list[tuple[Shares, Pair]]()
        for pair in self._pairs:
            # Every dataset that contains another one of the list is omitted.
            lows = np.unique([low for low, one in found if one == pair], axis=0)
            fewest = [row for i, row in enumerate(lows) if not (np.delete(lows, i, axis=0) <= row).all(axis=1).any()]
            parts += [(tuple(row.tolist()), pair) for row in fewest]
        return list({(tuple(low[order.index(x)] for x in inputs), (order[a], order[b])): None
                     for low, (a, b) in parts for order in orders})

    def _halves(self, box: _Box, others: int) -> Iterator[tuple[Shares, Shares, Shares]]:
        """Yield both halves of a box, without those that contain no dataset, as (f, g, l) of the module docstring."""
        widths = [last - first for first, last in zip(box.first, box.last)]
        x = widths.index(max(widths))
        middle = (box.first[x] + box.last[x]) // 2
        for low, high in ((box.first[x], middle), (middle + 1, box.last[x])):
            first, last = [*box.first[:x], low, *box.first[x + 1:]], [*box.last[:x], high, *box.last[x + 1:]]
            if self._exchangeable:
                order = sorted(range(2, len(first)), key=lambda y: (first[y], last[y]))
                first[2:], last[2:] = [first[y] for y in order], [last[y] for y in order]
            if sum(first) <= others <= sum(last):
                left = others - sum(last)
                yield tuple(first), tuple(last), tuple(max(a, b + left) for a, b in zip(first, last))

    def _law(self, shares: Shares, start: Shares) -> FloatArray:
        """Return the probabilities of the multisets of messages of the other users.

        `start` is a dataset that `shares` contains; its distribution is likely to be in the cache.
        """

        def made() -> FloatArray:
            law, before = self._laws.get(start), start
            if law is None:
                law, before = np.ones(1), (0,) * len(shares)
            sent = sum(before)
            for row, count in zip(self.rows, (a - b for a, b in zip(shares, before))):
                for _ in range(count):
                    law = row @ np.append(law, 0.0)[self._steps[sent]]
                    sent += 1
            return law

        return self._laws.of(shares, made)

    @property
    def _steps(self) -> list[NDArray[np.intp]]:
        return _STEPS.of((self.rows.shape[1], self.users), lambda: one_message_less(self.rows.shape[1], self.users))

    def _values(self, shares: Shares, start: Shares, pairs: tuple[Pair, ...], factor: float) -> FloatArray:
        """Return an upper bound of delta of a dataset for each pair; `start` as for `_law`."""
        first, second = np.array(pairs).T
        # The rounding errors of the weights and of their products with probabilities are below 2 (outputs + 8) ulp of the sum of
        # both terms.
        error = self._error + 2 * ULP * (self.rows.shape[1] + 8)
        weights = (1 + error) * self.rows[first] - factor * (1 - error) * self.rows[second]
        law, step, total = np.append(self._law(shares, start), 0.0), self._steps[sum(shares)], np.zeros(len(pairs))
        for place in range(0, step.shape[1], BLOCK):
            excess = weights @ law[step[:, place : place + BLOCK]]
            total += np.maximum(excess, 0.0, out=excess).sum(axis=1)
        return np.asarray(total * (1 + error) + TINY * (1 + factor))


_STEPS: Kept[tuple[int, int], list[NDArray[np.intp]]] = Kept(LARGE_TABLE_SIZE, lambda steps: sum(step.size for step in steps))
"""The arrays of `one_message_less` for the last numbers of outputs and users."""


def most_in_boxes(rows: FloatArray) -> int:
    """Return the largest number of users for which the arrays of the search have at most LARGE_TABLE_SIZE entries, or 1.

    For more than FEW outputs the limit is smaller, because then the arrays take longer to be made. Also, WORK must suffice for
    _BOXES boxes.
    """
    inputs, outputs = rows.shape
    if min(inputs, outputs) < 2:
        return 1
    most, each = LARGE_TABLE_SIZE / max(1.0, outputs / FEW), outputs * (1 + len(_target_pairs(rows)))
    beyond = least_int(lambda users: outputs * math.comb(users + outputs, outputs) > most
                       or _BOXES * each * math.comb(users + outputs - 1, outputs - 1) > WORK, 2)
    assert beyond is not None
    return beyond - 1


def with_equal_values(rows: FloatArray) -> FloatArray:
    """Return the matrix with the smallest of all values that differ by up to 4 ULP in place of each of them.

    Rounding may destroy the symmetries of a matrix, for example if its rows are divided by their sums.
    """
    values, place = np.unique(rows, return_inverse=True)
    for i in range(1, values.size):
        if values[i] <= values[i - 1] * (1 + 4 * ULP):
            values[i] = values[i - 1]
    return np.asarray(values[place].reshape(rows.shape))


def symmetries(rows: FloatArray) -> tuple[tuple[int, ...], ...]:
    """Return the permutations of the inputs that are permutations of the outputs, exactly; the identity alone for many inputs.

    After such a permutation p, input x has the distribution of input p[x], except for the order of the outputs.
    """
    inputs, columns = range(len(rows)), rows[:, np.lexsort(rows)]
    if len(rows) > _FEW_INPUTS or not (np.sort(rows, axis=1) == np.sort(rows[0])).all():
        return (tuple(inputs),)
    moved = ((order, rows[[*order]]) for order in permutations(inputs))
    return tuple(order for order, other in moved if np.array_equal(other[:, np.lexsort(other)], columns))


def _target_pairs(rows: FloatArray) -> tuple[Pair, ...]:
    """Return ordered pairs of inputs such that each other pair is the image of one of them under a symmetry."""
    if _exchangeable(rows):
        return ((0, 1),)
    known = symmetries(rows)
    return tuple({min((order[x], order[y]) for order in known): None for x, y in permutations(range(len(rows)), 2)})


def _exchangeable(rows: FloatArray) -> bool:
    """Return whether every permutation of the inputs is a permutation of the outputs, exactly."""
    columns = rows[:, np.lexsort(rows)]
    for x in range(len(rows) - 1):
        swapped = rows.copy()
        swapped[[x, x + 1]] = rows[[x + 1, x]]
        if not np.array_equal(columns, swapped[:, np.lexsort(swapped)]):
            return False
    return True
