"""The distributions for the bound over all datasets of whole-number noise, for all pairs of inputs 0..sensitivity."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

from shufflebounds._types import FloatArray
from shufflebounds.mechanisms._interval import BLUR
from shufflebounds.mechanisms._matrix_datasets import MatrixDatasets
from shufflebounds.shuffle.dataset_laws import DatasetLaws

__all__ = ["every_pair"]


def every_pair(rows: FloatArray, lost: float = 0.0) -> DatasetLaws | None:
    """Return the distributions for the pair of both ends, with all other ordered pairs as rivals; None if an output is impossible.

    Parameters
    ----------
    rows : ndarray, shape (inputs, outputs)
        Probabilities of the outputs. The matrix does not change if inputs and outputs are both reversed.
    lost : float
        Total variation distance, at most, between the noise and these rows.
    """
    data, last = MatrixDatasets(rows, BLUR, lost), len(rows) - 1
    if not data.offered:
        return None
    # Of two pairs of inputs that are mirror images of each other, only one is kept.
    places = [(i, j) for i, j in permutations(range(last + 1), 2) if (0, last) < (i, j) <= (last - i, last - j)]
    return replace(data.of(0, last), rivals=tuple(data.of(*place) for place in places))
