"""The composition of distributions of privacy losses on a common grid, by Fourier transforms.

`Composer` makes one object for each grid and bound. :class:`TiltedSum` computes the sums and bounds their errors.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shufflebounds._base.types import ULP
from shufflebounds._losses.atoms import GridPLD, union_probability
from shufflebounds._losses.tilted_sum import Summand, TiltedSum

__all__ = ["NEAR", "Product"]

NEAR = 1.5
"""Largest distance between eps and the eps for which a Fourier transform was tilted, in standard deviations of the total loss.

Raised: fewer transforms and larger rounding errors. Lowered: more transforms.
"""


class Product(TiltedSum):
    """The distribution of the total loss of independent releases on one grid, for an upper or a lower bound of a composition.

    Each release has a distribution of losses on a grid of the same step, and is repeated a number of times.
    """

    def __init__(self, laws: Sequence[GridPLD], times: Sequence[int], *, upper: bool) -> None:
        summands = []
        slack = loss_error = origin = 0.0
        rests = []
        for law, r in zip(laws, times):
            held = np.flatnonzero(law.log_p > -np.inf)
            logs = law.log_p[held]
            # The indices are relative to the heaviest point, so that tilting changes the total mass little.
            middle = int(held[np.argmax(logs)]) if held.size else 0
            summands.append(Summand(logs, (held - middle).astype(np.float64), r))
            origin += r * (law.anchor + law.step * (law.first + middle))
            total = float(np.logaddexp.reduce(np.append(logs, law.log_rest)))
            slack += r * (law.slack + abs(total) + 16 * ULP)
            loss_error += r * law.loss_error + 4 * ULP * abs(origin)
            rests.append((law.log_rest, r))
        super().__init__(
            summands, origin, laws[0].step, discount=1.0, near=NEAR, upper=upper, log_rest=union_probability(rests), slack=slack,
            level_error=loss_error,
        )

    def log_delta(self, eps: float) -> tuple[float, float]:
        """Return the bound of the log hockey-stick divergence at eps, and minus its slope."""
        values, slopes = self.log_values(np.array([eps]))
        return float(values[0]), float(slopes[0])
