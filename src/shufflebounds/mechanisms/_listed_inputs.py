r"""Noise on finitely many input values, bounded by finite randomizers for the upper and for the lower bound.

Upper bound: the noise is a post-processing of a randomizer with finitely many outputs. Within a cell of outputs y, the likelihoods
:math:`(R_x(y))_x` of the inputs are linear combinations, with positive coefficients, of those at the two ends of the cell. So a
user can send an end of a cell, with the probability that is the integral of its coefficient, and y is then drawn given the end.
Lower bound: the analyst learns only the cell of y, which is a post-processing of the noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations

import numpy as np

from shufflebounds._cached import cached_property
from shufflebounds._types import FloatArray
from shufflebounds.mechanisms._interval import BLUR, matrix_laws
from shufflebounds.mechanisms._matrix_datasets import MatrixDatasets
from shufflebounds.shuffle.dataset_laws import DatasetLaws
from shufflebounds.shuffle.laws import ExcessLaw, PairLaws

__all__ = ["ListedInputs", "ends_listed", "laplace_rows", "named"]


@dataclass(frozen=True, eq=False)
class ListedInputs:
    """Additive noise for users who have one of finitely many values.

    Parameters
    ----------
    names : tuple of str
        Descriptions of the inputs.
    above, below : ndarray, shape (inputs, outputs)
        Probabilities of the outputs of a randomizer of which the noise is a post-processing, and of a post-processing of the noise.
    lost : float
        Total variation distance, at most, between the noise and a post-processing of the randomizer above, for any input.
    laws : tuple of PairLaws, optional
        The distributions of X of the noise itself, if known without the matrices: one entry, of a symmetric pair.
    blanket : ndarray, shape (inputs, outputs), optional
        Probabilities for the upper bound without a search over datasets, where `above` and this matrix treat the tails of the noise
        differently. Outputs may have probability 0 under some inputs. By default `above`.
    error : float
        Largest relative error of the likelihood ratios of two inputs.
    """

    names: tuple[str, ...]
    above: FloatArray
    below: FloatArray
    lost: float = 0.0
    laws: tuple[PairLaws, ...] = ()
    blanket: FloatArray | None = None
    error: float = BLUR

    @property
    def _inputs(self) -> int:
        return len(self.names)

    @cached_property
    def _mirrored(self) -> bool:
        """Whether the matrix does not change if the inputs and the outputs are both reversed."""
        return bool((np.abs(self.above[::-1, ::-1] - self.above) <= 0.5 * BLUR * self.above).all())

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """The ordered pairs of inputs, one of each two that are mirror images."""
        last = len(self.names) - 1
        return [(i, j) for i, j in permutations(range(last + 1), 2) if not self._mirrored or (i, j) <= (last - i, last - j)]

    @cached_property
    def _datasets(self) -> MatrixDatasets:
        return MatrixDatasets(self.above, self.error, self.lost)

    def excess_laws(self, cells: int = 800, log_cut: float = -60.0) -> tuple[PairLaws, ...]:
        """Return the distributions of X for all ordered pairs of the inputs, up to symmetry."""
        if self.laws:
            return self.laws
        blanket = self.above if self.blanket is None else self.blanket
        above, below = (matrix_laws(rows, self._places, names=self.names, error=self.error) for rows in (blanket, self.below))
        return tuple(
            PairLaws(over.inputs, over.upper, under.lower,
                     symmetric=self._mirrored and first + second == len(self.names) - 1)
            for (first, second), over, under in zip(self._places, above, below)
        )

    def dataset_laws(self, pair: int = 0) -> DatasetLaws | None:
        """Return for one ordered pair of inputs the distributions that the upper bound over all datasets needs, or None."""
        return self._datasets.of(*self._places[pair]) if self._datasets.offered else None


def named(inputs: tuple[float, ...], sensitivity: float) -> tuple[str, ...]:
    """Return the names of increasing values, or raise ValueError if they are further apart than `sensitivity`."""
    if inputs[-1] - inputs[0] > sensitivity * (1 + 1e-12):
        raise ValueError(f"inputs={inputs!r} lie {inputs[-1] - inputs[0]:g} apart: at most sensitivity={sensitivity:g}")
    return tuple(f"{value:g}" for value in inputs)


def ends_listed(names: tuple[str, ...], ends: PairLaws, blanket: ExcessLaw) -> ListedInputs:
    """Return the inputs with a matrix for the upper bound, from the distributions of X of the two ends of an interval.

    `ends` has few cells, which the search over datasets needs; `blanket` is the distribution for the upper bound without a search.
    The tails that `ends.upper` cuts are added to the outermost cell on their side, under the nearer input. Under the other input
    the mass is increased such that the likelihood ratio of the cell does not change.
    """
    upper = ends.upper
    log_mass, *log_heights = upper._distinct
    heights = np.stack(log_heights)
    possible = np.isfinite(heights).all(axis=0)
    log_mass, heights = log_mass[possible], heights[:, possible]
    above = np.exp(log_mass + heights - BLUR * (heights > 0))
    cut, tops = float(np.exp(upper.log_cut).sum()), heights.argmax(axis=1).tolist()
    for nearer, top in enumerate(tops):
        ratio = above[1 - nearer, top] / above[nearer, top]
        above[nearer, top] += cut
        above[1 - nearer, top] += cut * ratio
    known = (f"every other user has input {names[1]}", f"every other user has input {names[0]}",
             f"half of the other users have input {names[0]}, half {names[1]}")
    lower = tuple((text, law) for text, (_, law) in zip(known, ends.lower))
    laws = (PairLaws(f"inputs {names[0]} and {names[1]}", blanket, lower, symmetric=True),)
    return ListedInputs(names, above, above, 2 * cut, laws)


def laplace_rows(inputs: FloatArray, cells: int = 300) -> tuple[FloatArray, FloatArray]:
    r"""Return the matrices for the upper and for the lower bound of Laplace noise of scale 1 on increasing inputs.

    Between two neighbouring inputs each likelihood is a multiple of :math:`e^{-y}` or of :math:`e^y`. Over a cell of width h the
    coefficients of its two ends are :math:`\sinh(h - t)/\sinh h` and :math:`\sinh t/\sinh h`, whose integrals are both
    :math:`\tanh(h/2)`. Beyond the first and the last input all likelihood ratios are constant. With 600 instead of 300
    `cells`, log delta changes by 1e-4 at eps0 = 1 and by 1e-3 at eps0 = 4.
    """
    gaps = np.diff(inputs)
    parts = np.maximum(1, np.ceil(cells * gaps / gaps.sum())).astype(int)
    ends = np.concatenate([*(np.linspace(a, b, k + 1)[:-1] for a, b, k in zip(inputs, inputs[1:], parts)), inputs[-1:]])
    width = np.diff(ends)
    half = np.tanh(width / 2)
    heights = np.exp(-np.abs(ends - inputs[:, None]))
    above = 0.5 * (np.append(1.0, half) + np.append(half, 1.0)) * heights
    # `near` is the likelihood at the end of the cell that is nearer to the input.
    near = np.maximum(heights[:, :-1], heights[:, 1:])
    inner = 0.5 * near * -np.expm1(-width)
    below = np.concatenate([0.5 * heights[:, :1], inner, 0.5 * heights[:, -1:]], axis=1)
    return above, below
