"""Blocks (sets) of datasets. Each block has an upper bound of the hockey-stick divergence that holds for all datasets in it.

If there are too many pairs of neighbours to enumerate, an adaptive adversary is modeled as choosing a block, not a pair, after
every result of the composition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from shufflebounds._base.progress import tick
from shufflebounds._base.types import FloatArray
from shufflebounds._losses.atoms import LossAtoms
from shufflebounds._losses.interpolation import pessimistic_pld
from shufflebounds._losses.sampled_profile import SampledProfile

__all__ = ["Blocks"]


@dataclass(frozen=True, eq=False)
class Blocks:
    """Upper bounds of the hockey-stick divergence for blocks that together contain all pairs of neighbours, in both orders.

    Parameters
    ----------
    rows : callable
        Returns, for an array of eps >= 0, one row for each block. The row has, at each eps, an upper bound of the log divergence of
        every pair in the block. Block `count - 1 - i` has the pairs of block i in reversed order.
    count : int
        Number of blocks.
    """

    rows: Callable[[FloatArray], FloatArray]
    count: int

    def laws(self, samples: SampledProfile) -> list[LossAtoms]:
        """Return for each block a distribution of losses that dominates all its pairs.

        The bounds of the divergence at about 600 values of eps are interpolated linearly in e^eps.

        The values of eps are spaced like those of `samples`.
        """
        last = samples.eps[-1:]
        seen = np.append(samples.eps[:-1][samples.high[:-1] > -np.inf], last)
        # With fewer than 600 values of eps, the bounds of adaptive compositions have a wider gap. The run time is proportional to
        # the number of values.
        places = np.linspace(0.0, seen.size - 1.0, 600)
        eps = np.unique(np.interp(places, np.arange(seen.size), seen))
        values = np.full((self.count, eps.size), -np.inf)
        inside = eps.size if samples.high[-1] > -np.inf else eps.size - 1
        values[:, :inside] = self.rows(eps[:inside])
        # At eps = 0 the divergences of (P, Q) and (Q, P) are equal, so the smaller upper bound is valid for both.
        values[:, 0] = np.minimum(values[:, 0], values[::-1, 0])
        tick()
        return [pessimistic_pld((eps, right), (eps, left)) for right, left in zip(values, values[::-1])]
