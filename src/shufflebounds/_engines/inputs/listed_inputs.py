"""Additive noise for users who have one of finitely many values in an interval."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import permutations
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from shufflebounds._base import validate as _validate
from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import FIRST_TAIL
from shufflebounds._base.quadrature import log_normal_masses
from shufflebounds._base.scipy_functions import log_ndtr
from shufflebounds._base.types import FloatArray
from shufflebounds._engines.datasets.cases import DatasetLaws
from shufflebounds._engines.excess.excess_law import PairLaws
from shufflebounds._engines.inputs.interval import BLUR, matrix_laws

__all__ = ["ListedInputs", "gaussian_cells", "laplace_cells", "named", "several_values"]

_CELLS = 1200
"""Number of cells into which the outputs are divided for lower bounds. More cells raise the bounds slightly and take longer."""


class _Noise(Protocol):
    """Noise on an interval whose two ends are the worst pair of inputs in the privacy blanket's bound."""

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]: ...

    def dataset_laws(self, inputs: tuple[float, ...] = ()) -> DatasetLaws | None: ...


@dataclass(frozen=True, eq=False)
class ListedInputs:
    """Additive noise for users who have one of finitely many values.

    Parameters
    ----------
    noise : object
        The noise on the interval from the first to the last value.
    below : ndarray, shape (inputs, outputs)
        Probabilities of cells of the output under each input, for lower bounds; the cell is a post-processing of the output.
    inputs : tuple of float
        The values, increasing.
    error : float
        Largest relative error of the likelihood ratios of two inputs.
    """

    names: tuple[str, ...]
    noise: _Noise
    below: FloatArray
    inputs: tuple[float, ...]
    error: float = BLUR

    @property
    def _inputs(self) -> int:
        return len(self.names)

    @property
    def _normal_mu(self) -> float | None:
        """The distance of the first and the last value in standard deviations if the noise is normal, otherwise None."""
        mu: float | None = getattr(self.noise, "_normal_mu", None)
        return mu

    @cached_property
    def _mirrored(self) -> bool:
        """Whether the matrix does not change if the inputs and the outputs are both reversed."""
        return bool((np.abs(self.below[::-1, ::-1] - self.below) <= 0.5 * BLUR * self.below).all())

    def excess_laws(self, cells: int = 800, log_cut: float = FIRST_TAIL) -> tuple[PairLaws, ...]:
        """Return the distributions of X (`ExcessLaw`) for all ordered pairs of the inputs, up to symmetry.

        All pairs have the same upper bound, that of the pair of the first and the last value, which is the worst pair.
        """
        last = len(self.names) - 1
        places = [(i, j) for i, j in permutations(range(last + 1), 2) if not self._mirrored or (i, j) <= (last - i, last - j)]
        upper = self.noise.excess_laws(cells, log_cut)[0].upper
        return tuple(
            PairLaws(laws.inputs, upper, partial(getattr, laws, "lower"), symmetric=self._mirrored and first + second == last)
            for (first, second), laws in zip(places, matrix_laws(self.below, places, names=self.names, error=self.error))
        )

    def dataset_laws(self) -> DatasetLaws | None:
        """Return the `DatasetLaws` that the upper bound over all datasets needs, or None."""
        return self.noise.dataset_laws(self.inputs)


def several_values(inputs: ArrayLike) -> tuple[float, ...]:
    """Return the different values in increasing order, or raise ValueError if there are fewer than two."""
    values = np.unique(_validate.real_array("inputs", inputs))
    if values.size < 2:
        raise ValueError(f"inputs={_validate.short_repr(inputs)} must hold at least two different values")
    return tuple(values.tolist())


def named(inputs: tuple[float, ...], sensitivity: float) -> tuple[str, ...]:
    """Return the names of increasing values, or raise ValueError if they are further apart than `sensitivity`."""
    if inputs[-1] - inputs[0] > sensitivity * (1 + 1e-12):
        raise ValueError(f"inputs={inputs!r} lie {inputs[-1] - inputs[0]:g} apart: at most sensitivity={sensitivity:g}")
    return tuple(f"{value:g}" for value in inputs)


def gaussian_cells(inputs: FloatArray) -> FloatArray:
    """Return the probabilities of the cells of the output of Gaussian noise with standard deviation 1, for increasing inputs.

    The first and the last cell are the tails beyond 10 standard deviations from the first and the last input.
    """
    edges = np.linspace(inputs[0] - 10.0, inputs[-1] + 10.0, _CELLS - 1)
    logs = [np.concatenate([log_ndtr(edges[:1] - x), log_normal_masses(edges, x, 1.0), log_ndtr(x - edges[-1:])]) for x in inputs]
    return np.asarray(np.exp(logs))


def laplace_cells(inputs: FloatArray) -> FloatArray:
    """Return the probabilities of the cells of the output of Laplace noise of scale 1, for increasing inputs.

    All inputs are ends of cells, so likelihood ratios are monotone on each cell. The first and the last cell lie beyond all inputs;
    likelihood ratios are constant there.
    """
    gaps = np.diff(inputs)
    parts = np.maximum(1, np.ceil(0.25 * _CELLS * gaps / gaps.sum())).astype(int)
    ends = np.concatenate([*(np.linspace(a, b, k + 1)[:-1] for a, b, k in zip(inputs, inputs[1:], parts)), inputs[-1:]])
    heights = np.exp(-np.abs(ends - inputs[:, None]))
    # `near` is the likelihood at the end of the cell that is nearer to the input.
    near = np.maximum(heights[:, :-1], heights[:, 1:])
    return np.concatenate([0.5 * heights[:, :1], 0.5 * near * -np.expm1(-np.diff(ends)), 0.5 * heights[:, -1:]], axis=1)
