"""The largest delta of a small randomizer over all datasets of few users."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.caches import kept
from shufflebounds._base.limits import COMPARED, MANY
from shufflebounds._base.types import ULP, FloatArray, IntervalArray
from shufflebounds._engines.datasets.every import EveryDataset, LargestDivergence, Shares

__all__ = ["MixedData", "merged_outputs"]


class MixedData:
    """The largest delta of a small randomizer over all datasets of few users.

    `rows` are the distributions of the outputs for each input. `users` includes the target.
    """

    def __init__(self, rows: FloatArray, users: int) -> None:
        self.rows, self.users = merged_outputs(rows), users
        self._every = EveryDataset(self.rows, users)
        self.listed = self._every.listed

    # The caches of `best` and `_every_largest` keep the results for up to 4 * MANY eps, as many as the bounds of a composition
    # need.
    @kept(4 * MANY)
    def best(self, eps: float) -> tuple[float, Shares, tuple[int, int]]:
        """Return a lower bound of log delta, the number of other users with each input, and the target's two inputs.

        The bound is -inf for eps > 700, where e^eps would overflow.
        """
        largest = self._every_largest(eps)
        return math.log(largest.lower) if largest.lower > 0 else -math.inf, largest.shares, largest.pair

    def upper(self, eps: float) -> float:
        """Return an upper bound of log delta over every dataset; call it only if `listed`.

        For eps > 700 the bound is that of eps = 700.
        """
        value = self._every_largest(eps).upper
        return math.log(value) if value > 0 else -math.inf

    def renyi(self, orders: FloatArray, *, upper: bool) -> FloatArray:
        """Return upper or lower bounds of the largest Renyi divergences over every dataset; call it only if `listed`."""
        return self._every.renyi(orders, upper=upper)

    def tails(self, eps: FloatArray) -> IntervalArray | None:
        """Return bounds of the largest tail of the privacy loss over every dataset, or None; call it only if `listed`."""
        return self._every.tails(eps)

    @kept(4 * MANY)
    def _every_largest(self, eps: float) -> LargestDivergence:
        return self._every.largest(eps)


def merged_outputs(rows: FloatArray) -> FloatArray:
    """Return the rows without zero columns; proportional columns, whose outputs are equally informative, are replaced by their sum.

    If there are at most COMPARED columns, those that are proportional up to 4 ulp are merged, too. Merging outputs is
    post-processing, so a lower bound for the merged outputs is valid. For an upper bound, merging such columns is the same as
    changing entries by up to 5 ulp. The entries of a given matrix and of RAPPOR have errors below an ulp, so both errors together
    are within the 8 ulp that `EveryDataset` includes. Columns of other randomizers that are nearly proportional are proportional
    exactly.
    """
    rows = rows[:, rows.any(axis=0)]
    kinds = (rows / rows.max(axis=0)).T
    out: dict[bytes, FloatArray] = {}
    for kind, column in zip(kinds, rows.T):
        key = kind.tobytes()
        out[key] = out[key] + column if key in out else column
    columns = list(out.values())
    if len(columns) <= COMPARED:
        columns = _almost_merged(columns)
    return np.array(columns).T


def _almost_merged(columns: list[FloatArray]) -> list[FloatArray]:
    # Every column is compared with the first column of each class of proportional columns, so that two columns of a class differ by
    # at most 4 ulp.
    kinds: list[FloatArray] = []
    merged: list[FloatArray] = []
    for column in columns:
        kind = column / column.max()
        place = next((i for i, first in enumerate(kinds) if (np.abs(first - kind) <= 2 * ULP * kind).all()), None)
        if place is None:
            kinds.append(kind)
            merged.append(column)
        else:
            merged[place] = merged[place] + column
    return merged
