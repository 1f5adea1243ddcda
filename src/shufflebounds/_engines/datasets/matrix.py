"""The distributions that the upper bound over all datasets needs, for a randomizer with a known matrix.

See docs/theorems/worst-dataset. R_x is the row of input x, the distribution of its outputs, and m = min_x R_x the privacy blanket.
"""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import COMPUTED_ERROR, TABLE_SIZE
from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._engines.datasets.cases import DatasetLaws, FiniteCases

__all__ = ["MatrixDatasets"]


class MatrixDatasets:
    """The distributions that the upper bound over all datasets needs (`DatasetLaws`), for all pairs of rows of a matrix.

    Parameters
    ----------
    rows : ndarray, shape (inputs, outputs)
        Probabilities of the outputs. Outputs that no input can produce are dropped.
    loss_error : float
        Relative error of the probabilities, in addition to a few ulp.
    lost : float
        Upper bound of the total variation distance between the rows and those of the randomizer that they approximate.
    """

    def __init__(self, rows: FloatArray, loss_error: float = 0.0, lost: float = 0.0) -> None:
        self._rows, self._loss_error, self._lost = rows[:, rows.any(axis=0)], loss_error, lost
        self._base = self._rows.min(axis=0)
        # Equal rows have the same distributions, so only the first of them is used.
        self._cases = np.unique(self._rows, axis=0, return_index=True)[1]
        self._cases.sort()

    @property
    def offered(self) -> bool:
        """Whether the bound is available: every output has a positive probability under every input, and two rows differ.

        The mass of m = min_x R_x must also be above COMPUTED_ERROR: the error term of the bound grows with its inverse.
        """
        return bool((self._base > 0).all()) and math.fsum(self._base) > COMPUTED_ERROR and self._cases.size > 1

    def _ratios(self) -> FloatArray:
        """Return R_a(y)/R_j(y) at all outputs y, for all ordered pairs (a, j) of the distinct rows, including a = j."""
        rows = self._rows[self._cases]
        return np.asarray(rows[:, None, :] / rows[None, :, :])

    @cached_property
    def _sorted_ratios(self) -> list[tuple[FloatArray, FloatArray]]:
        """For each pair of `_ratios`: the increasing likelihood ratios, and for each its tail probability.

        The tail probability is that of a ratio at least as large, under the first row of the pair.
        """
        rows = self._rows[self._cases]
        tails = []
        for row, ratios in zip(np.repeat(rows, len(rows), axis=0), self._ratios().reshape(-1, rows.shape[1])):
            order = np.argsort(ratios)
            tails.append((ratios[order], np.append(np.cumsum(row[order][::-1])[::-1], 0.0)))
        return tails

    def _tail(self, t: FloatArray) -> FloatArray:
        # The tail probability at t is that of ratios above t. Decreasing t by the rounding error of a ratio makes sure that no such
        # ratio is omitted.
        below = t * (1 - 4 * ULP)
        largest = np.max([above[np.searchsorted(ratios, below, side="right")] for ratios, above in self._sorted_ratios], axis=0)
        return np.asarray(largest * (1.0 + 8.0 * ULP * self._rows.shape[1]))

    @cached_property
    def _scaled(self) -> FloatArray:
        """The rows divided by sqrt(m): the Euclidean norm of a difference of two scaled rows is its norm in L^2(1/m)."""
        return np.asarray(self._rows[self._cases] / np.sqrt(self._base))

    @cached_property
    def _ball(self) -> tuple[float, FloatArray]:
        """The squared radius of a ball that contains all rows, and its centre, given by weights of the different rows.

        Every centre gives a valid bound; the iterations approach the centre of the smallest ball.
        """
        scaled = self._scaled
        weights = np.full(len(scaled), 1.0 / len(scaled))
        best, chosen = math.inf, weights
        for step in range(200):
            gaps = ((scaled - weights @ scaled) ** 2).sum(axis=1)
            if gaps.max() < best:
                best, chosen = float(gaps.max()), weights.copy()
            move = 1.0 / (step + 2)
            weights *= 1 - move
            weights[int(gaps.argmax())] += move
        return best, chosen

    @property
    def centre(self) -> FloatArray:
        """The centre of `_ball`, given by weights of all rows; `DatasetLaws.distance` depends on this centre."""
        weights = np.zeros(len(self._rows))
        weights[self._cases] = self._ball[1]
        return weights

    def _distance(self) -> float:
        """Return the squared radius, increased by a bound of its rounding errors.

        If all rows are equal up to rounding, these errors exceed the radius.
        """
        scaled = self._scaled
        radius: float = math.sqrt(self._ball[0]) + 4 * ULP * float(np.linalg.norm(scaled)) * len(scaled)
        return radius**2 * (1 + 1e-9)

    def laws(self) -> DatasetLaws:
        """Return the `DatasetLaws` for all ordered pairs of different inputs."""
        log_rows, log_base = np.log(self._rows[self._cases]), np.log(self._base)
        first, second = np.array(list(permutations(range(len(log_rows)), 2))).T
        ratios = log_rows - log_base
        blankets = self._laws(log_base, ratios[first], ratios[second])
        others, most = None, max(1, TABLE_SIZE // log_rows.size)
        if first.size > most:
            # The pairs with the largest second moments of X are kept.
            laws = blankets.laws(0.0, -math.inf)
            order = np.argsort(-np.add.reduceat(laws.mass * laws.values**2, laws.starts[:-1]), kind="stable")
            others = self._laws(log_base, ratios[first[order[most:]]], ratios[second[order[most:]]])
            first, second = first[order[:most]], second[order[:most]]
            blankets = self._laws(log_base, ratios[first], ratios[second])
        # The axes: pair, kind of another user's input, output.
        cases = self._laws(log_rows, log_rows[first][:, None] - log_rows, log_rows[second][:, None] - log_rows)
        local_eps = float(np.log(self._ratios().max())) + 8 * ULP + 2 * self._loss_error
        return DatasetLaws(blankets, cases, self._laws(log_base, np.zeros_like(ratios), ratios), math.log(math.fsum(self._base)),
                           self._distance(), local_eps, self._tail, others=others, lost=self._lost)

    def _laws(self, log_mass: FloatArray, log_a: FloatArray, log_b: FloatArray) -> FiniteCases:
        return FiniteCases.widened(np.broadcast_to(log_mass, log_a.shape), log_a, log_b, self._loss_error)
