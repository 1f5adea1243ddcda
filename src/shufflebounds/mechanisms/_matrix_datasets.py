"""The distributions of a randomizer with a known matrix for the upper bound over all datasets (docs/theorems/worst-dataset).

R_x is the row of input x, the distribution of its outputs, and m = min_x R_x the privacy blanket.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import numpy as np

from shufflebounds._cached import cached_property
from shufflebounds._limits import COMPUTED_ERROR
from shufflebounds._types import ULP, FloatArray
from shufflebounds.mechanisms._interval import blanket_of
from shufflebounds.shuffle.dataset_laws import DatasetLaws
from shufflebounds.shuffle.laws import ExcessLaw

__all__ = ["MatrixDatasets"]


class MatrixDatasets:
    """The distributions that the upper bound over all datasets needs (`DatasetLaws`), for all pairs of rows of a matrix.

    Parameters
    ----------
    rows : ndarray, shape (inputs, outputs)
        Probabilities of the outputs. Outputs that no input can produce are dropped.
    loss_error : float
        Relative error of the probabilities beyond a few units in the last place.
    lost : float
        Total variation distance, at most, between the rows and those of the randomizer that they stand for.
    """

    def __init__(self, rows: FloatArray, loss_error: float = 0.0, lost: float = 0.0) -> None:
        self._rows, self._loss_error, self._lost = rows[:, rows.any(axis=0)], loss_error, lost
        self._base, self._rest = blanket_of(self._rows)
        # Of equal rows only the first one is used.
        self._kinds = np.unique(self._rows, axis=0, return_index=True)[1]
        self._kinds.sort()

    @property
    def offered(self) -> bool:
        """Whether the bound is available: every output must have a positive probability under every input.

        The error term of the bound grows with the inverse of the mass of m = min_x R_x.
        """
        return bool((self._base > 0).all()) and math.fsum(self._base) > COMPUTED_ERROR

    def _ratios(self) -> FloatArray:
        """Return the likelihood ratios R_a(y)/R_j(y) of all ordered pairs of different rows a, j at all outputs y."""
        rows = self._rows[self._kinds]
        return np.asarray(rows[:, None, :] / rows[None, :, :])

    @cached_property
    def _sorted_ratios(self) -> list[tuple[FloatArray, FloatArray]]:
        """For each ordered pair of different rows: their likelihood ratios in increasing order, and for each the tail probability.

        The tail probability of a ratio is the probability of a ratio at least as large.
        """
        rows = self._rows[self._kinds]
        found = []
        for row, ratios in zip(np.repeat(rows, len(rows), axis=0), self._ratios().reshape(-1, rows.shape[1])):
            order = np.argsort(ratios)
            found.append((ratios[order], np.append(np.cumsum(row[order][::-1])[::-1], 0.0)))
        return found

    def _tail(self, t: FloatArray) -> FloatArray:
        # t is decreased by the rounding error of a ratio, so that no ratio above t is missed.
        least = t * (1 - 4 * ULP)
        largest = np.max([above[np.searchsorted(ratios, least, side="right")] for ratios, above in self._sorted_ratios], axis=0)
        return np.asarray(largest * (1.0 + 8.0 * ULP * self._rows.shape[1]))

    def _distance(self) -> float:
        """Return the square of the radius of a ball that contains all rows, in the Euclidean norm with weights 1/m.

        Every centre gives a valid radius. More iterations approach the centre of the smallest ball.
        """
        scaled = self._rows[self._kinds] / np.sqrt(self._base)
        weights = np.full(len(scaled), 1.0 / len(scaled))
        best = math.inf
        for step in range(200):
            centre = weights @ scaled
            gaps = ((scaled - centre) ** 2).sum(axis=1)
            best = min(best, float(gaps.max()))
            move = 1.0 / (step + 2)
            weights *= 1 - move
            weights[int(gaps.argmax())] += move
        # The second term covers rounding errors, which dominate if all rows are equal up to rounding.
        radius: float = math.sqrt(best) + 4 * ULP * float(np.linalg.norm(scaled)) * len(scaled)
        return radius**2 * (1 + 1e-9)

    @cached_property
    def _shared(self) -> tuple[tuple[ExcessLaw, ...], float, float, float]:
        """The arguments `heights`, `log_minorant`, `distance` and `local_eps` of DatasetLaws, which do not depend on the pair."""
        heights = tuple(self._law(self._base, self._rows[x], self._base, self._rest) for x in self._kinds)
        local_eps = float(np.log(self._ratios().max())) + 8 * ULP + 2 * self._loss_error
        return heights, math.log(math.fsum(self._base)), self._distance(), local_eps

    def of(self, first: int, second: int) -> DatasetLaws:
        """Return the distributions for one ordered pair of inputs.

        Parameters
        ----------
        first, second : int
            The target's two inputs.
        """
        rows = self._rows
        others = tuple((f"every other user has input {x}", self._law(rows[first], rows[second], rows[x], 0.0)) for x in self._kinds)
        blanket = self._law(rows[first], rows[second], self._base, self._rest)
        return DatasetLaws(blanket, others, *self._shared, self._tail, self._lost)

    def of_ends(self) -> DatasetLaws | None:
        """Return the distributions for the pair of both ends, with all other ordered pairs as rivals.

        The matrix must not change if inputs and outputs are both reversed. Returns None if no bound is offered.
        """
        if not self.offered:
            return None
        last = len(self._rows) - 1
        # Of two pairs of inputs that are mirror images of each other, only one is kept.
        places = [(i, j) for i, j in permutations(range(last + 1), 2) if (0, last) < (i, j) <= (last - i, last - j)]
        return replace(self.of(0, last), rivals=tuple(self.of(*place) for place in places))

    def _law(self, first: FloatArray, second: FloatArray, base: FloatArray, rest: float) -> ExcessLaw:
        """Return the distribution of X for two rows and m = `base`, rounded up by the errors of the rows; `rest` is 1 - m."""
        return ExcessLaw.of(first, second, base, rest).widened(upper=True, error=self._loss_error)
