"""A randomizer given by its matrix, for the bounds of its shuffled messages."""

from __future__ import annotations

from itertools import permutations

from shufflebounds._base.limits import FIRST_TAIL
from shufflebounds._base.types import FloatArray
from shufflebounds._engines.datasets.cases import DatasetLaws
from shufflebounds._engines.datasets.matrix import MatrixDatasets
from shufflebounds._engines.excess.excess_law import PairLaws
from shufflebounds._engines.inputs.interval import matrix_laws

__all__ = ["FewOutputs"]


class FewOutputs:
    """A randomizer given by its matrix, with the methods that the bounds of shuffled messages call (`amplification`).

    A frequency oracle has bounds for any number of inputs. If there are few inputs, its matrix gives tighter bounds, because the
    privacy blanket is larger and datasets of few users are enumerated.

    `rows` are the distributions of the outputs for each input, with a relative `error` of at most 8 ulp.
    """

    _entry_error = 0.0

    def __init__(self, rows: FloatArray, error: float) -> None:
        self._rows, self._entry_error = rows, error

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        """Return the distributions of X (`ExcessLaw`) for all ordered pairs of inputs; `cells` and `log_cut` are not used."""
        return matrix_laws(self._rows, list(permutations(range(len(self._rows)), 2)), error=self._entry_error)

    def dataset_laws(self) -> DatasetLaws | None:
        """Return the distributions for the bound of :meth:`shuffled` over all datasets (docs/theorems/worst-dataset), or None."""
        datasets = MatrixDatasets(self._rows, self._entry_error)
        return datasets.laws() if datasets.offered else None

    @property
    def _inputs(self) -> int:
        return len(self._rows)

    def _matrix(self) -> FloatArray:
        """Return the matrix of probabilities, for the enumeration of all datasets of few users."""
        return self._rows
