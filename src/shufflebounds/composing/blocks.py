"""Blocks of neighbours, each below one curve: what the pair of a release is chosen from where neighbours are too many to list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shufflebounds._types import FloatArray
from shufflebounds.composing.interpolation import pessimistic_pld
from shufflebounds.composing.loss_atoms import LossAtoms
from shufflebounds.composing.progress import tick
from shufflebounds.composing.sampled_profile import SampledProfile

__all__ = ["Blocks"]

MOST = 600
"""About so many eps are asked for."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Hockey sticks of blocks that hold all pairs of neighbours, in both orders.

    Parameters
    ----------
    rows : callable
        At given eps >= 0 an upper bound of the log hockey stick of every pair of a block, one block a row. The reversed pairs of
        a block are those of the block as far from the end.
    count : int
        How many blocks there are.
    seconds : float
        What the rows at some hundred eps cost.
    """

    rows: Callable[[FloatArray], FloatArray]
    count: int
    seconds: float

    def laws(self, samples: SampledProfile) -> list[LossAtoms]:
        """Return outcomes above each block: chords of its values at about MOST eps, which lie as these samples do."""
        last = samples.eps[-1:]
        seen = np.append(samples.eps[:-1][samples.high[:-1] > -np.inf], last)
        places = np.linspace(0.0, seen.size - 1.0, MOST)
        eps = np.unique(np.interp(places, np.arange(seen.size), seen))
        values = np.full((self.count, eps.size), -np.inf)
        inside = eps.size if samples.high[-1] > -np.inf else eps.size - 1
        values[:, :inside] = self.rows(eps[:inside])
        # at E = 1 both orders have one value
        values[:, 0] = np.minimum(values[:, 0], values[::-1, 0])
        tick()
        return [pessimistic_pld((eps, right), (eps, left)) for right, left in zip(values, values[::-1])]
