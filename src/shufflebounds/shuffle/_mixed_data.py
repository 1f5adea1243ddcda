r"""Lower bounds from data whose users hold different inputs, by listing the law of the multiset of messages.

With :math:`c_x` of the others at x the numbers of messages of each kind are the coefficients of :math:`\prod_x P_x^{c_x}`,
:math:`P_x = \sum_y R_x(y)\, t^{s_y}`, where the shifts :math:`s_y` are powers of users + 1 (Kronecker's substitution), and a target
adds its factor. All terms are positive, so every coefficient is relatively accurate.

Many users need no such search: where the counts are nearly normal the excess grows with :math:`d^\top C^{-1} d`, d the difference
of the target's laws and C the mean covariance of the others' messages, which is convex in the shares of the inputs. So the
best data hold one input each, but for what is left of skewness among few users. That is a limit, not a proof. Of 50 random matrices
(2 to 4 inputs, 2 to 5 outputs) at 50, 200 and 1000 users and three eps each, 412 questions, i.i.d. mixtures of two inputs beat the
best data that are alike in 6: by .0003 to .006 in log delta, and by .14 and .04 in tails of e^-20 and e^-55.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
from numpy.typing import NDArray

from shufflebounds._cached import cached_property
from shufflebounds._types import ULP, FloatArray
from shufflebounds.composing.kept import Kept
from shufflebounds.shuffle._every_dataset import EveryDataset, Found, Shares, all_shares
from shufflebounds.shuffle.clones import MAX_LOCAL_EPS

__all__ = ["FEW", "MixedData", "Shares"]

_MOST_CELLS = 2048
"""Largest table of coefficients, with the holes that the substitution leaves."""

FEW = _MOST_CELLS - 1
"""Of more users no data are listed: even two kinds of messages would fill the table."""

_MOST_INPUTS = 8

_ALL = 64
"""So many data at most are tried one by one; of more the mixtures of two inputs, and what improves the best of them."""

_MOST_MOVES = 64

_LOST = 1e-316
"""What underflows in a coefficient: at most half of the least double for each of its products."""

_KEPT_BYTES = 2**25
"""Of each of the two kinds of tables so much is kept; the oldest go first."""

_KEPT_BEST = 2**12
"""So many eps are remembered with their best data."""

def _bytes(table: FloatArray) -> int:
    return table.nbytes


class MixedData:
    """All data of few users of a small randomizer, or the best that a short search finds.

    Parameters
    ----------
    rows : ndarray, shape (inputs, outputs)
        Chances of the outputs; proportional columns are merged.
    users : int
        The target included.
    """

    def __init__(self, rows: FloatArray, users: int) -> None:
        self.rows = _merged(rows)
        self.users = users
        inputs, outputs = self.rows.shape
        self._every = EveryDataset(self.rows, users)
        few = users >= 3 and inputs <= _MOST_INPUTS and (outputs - 1) * math.log(users + 1) <= math.log(_MOST_CELLS)
        self.listed = few or self._every.listed
        self._largest: Kept[float, Found] = Kept(_KEPT_BEST)
        self._powers: Kept[tuple[int, int], FloatArray] = Kept(_KEPT_BYTES, _bytes)
        self._laws: Kept[Shares, FloatArray] = Kept(_KEPT_BYTES, _bytes)
        self._found: Kept[float, tuple[float, Shares, tuple[int, int]]] = Kept(_KEPT_BEST)

    @cached_property
    def _shifts(self) -> list[int]:
        return [0, *((self.users + 1) ** y for y in range(self.rows.shape[1] - 1))]

    @cached_property
    def _error(self) -> float:
        """Relative error of a coefficient: products and sums of each of the convolutions behind it."""
        cells = float((self.users + 1) ** (self.rows.shape[1] - 1))
        # the chances themselves are off by some ulp, once for every user
        return ULP * ((cells + 4) * (2 * self.users.bit_length() + len(self.rows) + 4) + 8 * self.users)

    def _power(self, x: int, count: int) -> FloatArray:
        """Return the coefficients of the messages of so many users who hold x."""
        def made() -> FloatArray:
            if count > 1:
                return np.convolve(self._power(x, count // 2), self._power(x, count - count // 2))
            one = np.zeros(self._shifts[-1] + 1 if count else 1)
            one[self._shifts if count else 0] = self.rows[x] if count else 1.0
            return one

        return self._powers.of((x, count), made)

    def _law(self, shares: Shares) -> FloatArray:
        """Return the masses of the counts for every input of the target, one row each."""
        def made() -> FloatArray:
            rows = self._convolved(shares, self._power)
            return np.asarray(rows[:, rows.any(axis=0)])

        return self._laws.of(shares, made)

    def _convolved(self, shares: Shares, power: Callable[[int, int], FloatArray]) -> FloatArray:
        """Return the coefficients for every input of the target, from those of any number of users who hold an input."""
        others = np.ones(1)
        for x, count in enumerate(shares):
            if count:
                others = np.convolve(others, power(x, count))
        return np.array([np.convolve(others, power(x, 1)) for x in range(len(shares))])

    def _possible(self, shares: Shares) -> NDArray[np.bool_]:
        """Return which counts are possible for every input of the target, also where their mass underflows; rows as in `_law`."""
        def power(x: int, count: int) -> FloatArray:
            # one message more at a time, so that no number of ways overflows
            out, one = np.ones(1), np.zeros(self._shifts[-1] + 1)
            one[self._shifts] = self.rows[x] > 0
            for _ in range(count):
                out = (np.convolve(out, one) > 0).astype(np.float64)
            return out

        return self._convolved(shares, power)[:, self._convolved(shares, self._power).any(axis=0)] > 0

    def _value(self, shares: Shares, eps: float) -> tuple[float, tuple[int, int]]:
        """Return a lower bound of the largest hockey stick over the target's pairs, and the pair."""
        law = self._law(shares)
        low = law * (1 - self._error)
        if eps <= MAX_LOCAL_EPS:
            high = (law * (1 + self._error) + _LOST) * math.exp(eps) + 1e-290
        else:
            # e^eps is no double: only what the other input cannot produce counts
            high = np.where(self._possible(shares), np.inf, 0.0)
        values = {(i, j): float(np.maximum(low[i] - high[j], 0.0).sum()) for i, j in permutations(range(len(law)), 2)}
        best = max(values, key=values.__getitem__)
        return values[best] * (1 - self._error), best

    def best(self, eps: float) -> tuple[float, Shares, tuple[int, int]]:
        """Return a lower bound of log delta, how many of the others hold each input, and the target's two inputs.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, >= 0.
        """
        def found() -> tuple[float, Shares, tuple[int, int]]:
            value, shares, pair = self._searched(eps)
            return math.log(value) if value > 0 else -math.inf, shares, pair

        return self._found.of(eps, found)

    @property
    def every(self) -> bool:
        """Whether the distributions of every dataset are enumerated, so that `upper` bounds the largest divergence."""
        return self._every.listed

    def upper(self, eps: float) -> float:
        """Return an upper bound of log delta over every dataset, where `every` is set.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, >= 0.
        """
        value = self._every_largest(eps).upper
        return math.log(value) if value > 0 else -math.inf

    def _every_largest(self, eps: float) -> Found:
        return self._largest.of(eps, lambda: self._every.largest(eps))

    def _searched(self, eps: float) -> tuple[float, Shares, tuple[int, int]]:
        if self.every and eps <= MAX_LOCAL_EPS:
            found = self._every_largest(eps)
            return found.lower, found.shares, found.pair
        inputs, others = len(self.rows), self.users - 1
        if math.comb(others + inputs - 1, inputs - 1) <= _ALL:
            return max(self._valued(shares, eps) for shares in all_shares(others, inputs))
        start = [_two(inputs, others, x, y, others * part // 4) for x, y in combinations(range(inputs), 2) for part in range(5)]
        best = max(self._valued(shares, eps) for shares in set(start))
        step, left = max(1, others // 8), _MOST_MOVES
        while left > 0:
            tried = [self._valued(shares, eps) for shares in _moved(best[1], step)]
            left -= len(tried)
            better = max(tried)
            if better > best:
                best = better
            elif step == 1:
                break
            else:
                step //= 2
        return best

    def _valued(self, shares: Shares, eps: float) -> tuple[float, Shares, tuple[int, int]]:
        value, pair = self._value(shares, eps)
        return value, shares, pair


def _merged(rows: FloatArray) -> FloatArray:
    """Return the rows without empty columns. Proportional columns are added up: such outputs tell the same."""
    rows = rows[:, rows.any(axis=0)]
    kinds = (rows / rows.max(axis=0)).T
    out: dict[bytes, FloatArray] = {}
    for kind, column in zip(kinds, rows.T):
        key = kind.tobytes()
        out[key] = out[key] + column if key in out else column
    return np.array(list(out.values())).T


def _two(inputs: int, others: int, x: int, y: int, count: int) -> Shares:
    """Return the data where so many hold x and the rest y."""
    shares = [0] * inputs
    shares[x], shares[y] = count, others - count
    return tuple(shares)


def _moved(shares: Shares, step: int) -> list[Shares]:
    """Return the data where at most so many change from one input to another."""
    out = []
    for x, y in permutations(range(len(shares)), 2):
        if shares[x]:
            moved = list(shares)
            move = min(step, shares[x])
            moved[x] -= move
            moved[y] += move
            out.append(tuple(moved))
    return out
