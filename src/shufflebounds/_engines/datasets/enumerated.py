r"""Lower bounds of delta from datasets with different inputs of the other users, by enumeration of the multiset of messages.

Let :math:`c_x` of the other users have input x. The probabilities of the numbers of messages of each kind are the coefficients of
:math:`\prod_x P_x^{c_x}`, where :math:`P_x = \sum_y R_x(y)\, t^{s_y}` and the shifts :math:`s_y` are powers of users + 1
(Kronecker's substitution). The target's message is one more factor. All terms are positive, so every coefficient has a small
relative error.

For many users, only datasets in which all others have the same input are evaluated, for the following reason. If the counts are
nearly normal, delta grows with :math:`d^\top C^{-1} d`, where d is the difference of the target's distributions and C the mean
covariance of the other users' messages. This form is convex in the fractions of users with each input, so in the limit the largest
value is at a dataset in which all others have the same input. For finite n this is no proof. In an experiment with 50 random
matrices (2 to 4 inputs, 2 to 5 outputs) at 50, 200 and 1000 users and three eps each (412 cases), i.i.d. mixtures of two inputs
exceeded the best dataset with equal inputs in 6 cases: by 0.0003 to 0.006 in log delta, and by 0.14 and 0.04 at deltas of e^-20 and
e^-55.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, permutations
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from shufflebounds._base.caches import cached_property, kept
from shufflebounds._base.limits import CACHED_BYTES, COMPARED, FEW, LARGEST_EXPONENT, MANY
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._engines.datasets.every import EveryDataset, LargestDivergence, Shares, all_shares

__all__ = ["MixedData", "Shares", "merged_outputs"]


class MixedData:
    """The largest delta of a small randomizer over all datasets of few users; for more users, over the datasets of a short search.

    Parameters
    ----------
    rows : ndarray, shape (inputs, outputs)
        Probabilities of the outputs; proportional columns are merged.
    users : int
        Number of users, including the target.
    """

    def __init__(self, rows: FloatArray, users: int) -> None:
        self.rows = merged_outputs(rows)
        self.users = users
        inputs, outputs = self.rows.shape
        self._every = EveryDataset(self.rows, users)
        # Datasets are searched only if the table of coefficients has at most 2048 entries, including the zeros due to Kronecker's
        # substitution.
        few = users >= 3 and inputs <= FEW and (outputs - 1) * math.log(users + 1) <= math.log(2 * MANY)
        self.listed = few or self._every.listed

    @cached_property
    def _shifts(self) -> list[int]:
        """The exponents s_y of Kronecker's substitution (module docstring), one for each output y."""
        return [0, *((self.users + 1) ** y for y in range(self.rows.shape[1] - 1))]

    @cached_property
    def _error(self) -> float:
        """Bound of the relative error of a coefficient, from the products and sums of the convolutions."""
        cells = float((self.users + 1) ** (self.rows.shape[1] - 1))
        # Errors of the convolutions, and of the probabilities in `rows`: a few ulp for every user.
        return ULP * ((cells + 4) * (2 * self.users.bit_length() + len(self.rows) + 4) + 8 * self.users)

    @kept(CACHED_BYTES, attrgetter("nbytes"))
    def _power(self, x: int, count: int) -> FloatArray:
        """Return the coefficients of P_x^count (module docstring): the messages of `count` users with input x."""
        if count > 1:
            return np.convolve(self._power(x, count // 2), self._power(x, count - count // 2))
        one = np.zeros(self._shifts[-1] + 1 if count else 1)
        one[self._shifts if count else 0] = self.rows[x] if count else 1.0
        return one

    @kept(CACHED_BYTES, attrgetter("nbytes"))
    def _law(self, shares: Shares) -> FloatArray:
        """Return the probabilities of all vectors of numbers of messages of each kind, one row for each input of the target."""
        rows = self._convolved(shares, self._power)
        return np.asarray(rows[:, rows.any(axis=0)])

    def _convolved(self, shares: Shares, power: Callable[[int, int], FloatArray]) -> FloatArray:
        """Return the coefficients of the product of the other users' factors and the target's, for every input of the target.

        ``power(x, count)`` returns the coefficients of the factor of `count` users with input x.
        """
        others = np.ones(1)
        for x, count in enumerate(shares):
            if count:
                others = np.convolve(others, power(x, count))
        return np.array([np.convolve(others, power(x, 1)) for x in range(len(shares))])

    def _possible(self, shares: Shares) -> NDArray[np.bool_]:
        """Return a mask of the entries of `_law` whose exact values are positive; the computed ones may have underflowed to 0."""
        def power(x: int, count: int) -> FloatArray:
            # Adding one message at a time, record only which coefficients are positive, so that nothing underflows.
            out, one = np.ones(1), np.zeros(self._shifts[-1] + 1)
            one[self._shifts] = self.rows[x] > 0
            for _ in range(count):
                out = (np.convolve(out, one) > 0).astype(np.float64)
            return out

        return self._convolved(shares, power)[:, self._convolved(shares, self._power).any(axis=0)] > 0

    def _value(self, shares: Shares, eps: float) -> tuple[float, Shares, tuple[int, int]]:
        """Return (lower bound of the largest divergence over the target's pairs of inputs, the dataset, the pair)."""
        law = self._law(shares)
        low = law * (1 - self._error)
        if eps <= LARGEST_EXPONENT:
            # Underflow changes each of at most 4e7 products by at most half of the smallest positive double: in total below 1e-316.
            high = (law * (1 + self._error) + 1e-316) * math.exp(eps) + 1e-290
        else:
            # e^eps would overflow. The outcomes that are impossible under the second input of a pair give a lower bound.
            high = np.where(self._possible(shares), np.inf, 0.0)
        values = {(i, j): float(np.maximum(low[i] - high[j], 0.0).sum()) for i, j in permutations(range(len(law)), 2)}
        best = max(values, key=values.__getitem__)
        return values[best] * (1 - self._error), shares, best

    # The caches of `best` and `_every_largest` keep the answers of a composition: up to some thousand eps, for both bounds.
    @kept(4 * MANY)
    def best(self, eps: float) -> tuple[float, Shares, tuple[int, int]]:
        """Return a lower bound of log delta, the number of other users with each input, and the target's two inputs.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, >= 0.
        """
        value, shares, pair = self._searched(eps)
        return math.log(value) if value > 0 else -math.inf, shares, pair

    @property
    def every(self) -> bool:
        """Whether the distributions of all datasets are enumerated; only then `upper` is a valid bound."""
        return self._every.listed

    def upper(self, eps: float) -> float:
        """Return an upper bound of log delta over every dataset; call it only if `every` is true.

        Parameters
        ----------
        eps : float
            Privacy loss in nats, >= 0.
        """
        value = self._every_largest(eps).upper
        return math.log(value) if value > 0 else -math.inf

    def renyi(self, orders: FloatArray, *, upper: bool) -> FloatArray:
        """Return upper or lower bounds of the largest Renyi divergences over every dataset; call it only if `every` is true.

        Parameters
        ----------
        orders : ndarray
            Finite orders, >= 1.
        upper : bool
        """
        return self._every.renyi(orders, upper=upper)

    @kept(4 * MANY)
    def _every_largest(self, eps: float) -> LargestDivergence:
        return self._every.largest(eps)

    def _searched(self, eps: float) -> tuple[float, Shares, tuple[int, int]]:
        if self.every and eps <= LARGEST_EXPONENT:
            found = self._every_largest(eps)
            return found.lower, found.shares, found.pair
        inputs, others = len(self.rows), self.users - 1
        if math.comb(others + inputs - 1, inputs - 1) <= COMPARED:
            return max(self._value(shares, eps) for shares in all_shares(others, inputs))
        start = [_two(inputs, others, x, y, others * part // 4) for x, y in combinations(range(inputs), 2) for part in range(5)]
        best = max(self._value(shares, eps) for shares in set(start))
        step, left = max(1, others // 8), COMPARED
        while left > 0:
            tried = [self._value(shares, eps) for shares in _neighbouring(best[1], step)]
            left -= len(tried)
            better = max(tried)
            if better > best:
                best = better
            elif step == 1:
                break
            else:
                step //= 2
        return best


def merged_outputs(rows: FloatArray) -> FloatArray:
    """Return the rows without zero columns; proportional columns, whose outputs are equally informative, are replaced by their sum.

    Parameters
    ----------
    rows : ndarray, shape (inputs, outputs)
        Probabilities of the outputs.
    """
    rows = rows[:, rows.any(axis=0)]
    kinds = (rows / rows.max(axis=0)).T
    out: dict[bytes, FloatArray] = {}
    for kind, column in zip(kinds, rows.T):
        key = kind.tobytes()
        out[key] = out[key] + column if key in out else column
    return np.array(list(out.values())).T


def _two(inputs: int, others: int, x: int, y: int, count: int) -> Shares:
    """Return the dataset with `count` other users at x and the rest at y."""
    shares = [0] * inputs
    shares[x], shares[y] = count, others - count
    return tuple(shares)


def _neighbouring(shares: Shares, step: int) -> list[Shares]:
    """Return the datasets in which up to `step` users change from one input to another, for every pair of inputs."""
    out = []
    for x, y in permutations(range(len(shares)), 2):
        if shares[x]:
            moved = list(shares)
            move = min(step, shares[x])
            moved[x] -= move
            moved[y] += move
            out.append(tuple(moved))
    return out
