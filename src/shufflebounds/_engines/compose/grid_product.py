"""The composition of distributions of privacy losses on a common grid, by Fourier transforms.

:class:`TiltedSum` computes the sums and bounds their errors.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.types import ULP
from shufflebounds._losses.atoms import ALONE, GridPLD, union_probability
from shufflebounds._losses.tilted_sum import Summand, TiltedSum

__all__ = ["NEAR", "Product"]

NEAR = 1.5
"""Half of the length of the intervals of eps that share a truncation range, in standard deviations of the total loss.

Raised: fewer ranges, each with more points of the grid. Lowered: more ranges.
"""

_SERVED = 1.0
"""Largest distance between eps and the eps for which a Fourier transform was tilted, in standard deviations of the total loss.

Raised: fewer transforms and larger rounding errors; at 1.5 they are eight times as large in eps of 1000 binary responses. Lowered:
more transforms.
"""


class Product(TiltedSum):
    """The distribution of the total loss of independent releases on one grid, for an upper or a lower bound of a composition.

    If a release may reveal everything, the distribution for its lower bound has one loss far above all others, at which the last
    supporting line of the divergence reaches 0. Let A be the event that such a loss occurs in some release. The divergence is at
    least that of the outcomes outside of A, plus P(A) - e^eps Q(A). So the Fourier transform need not reach to this loss. With
    apart = False the transform includes this loss.
    """

    def __init__(self, laws: Sequence[GridPLD], times: Sequence[int], *, upper: bool, apart: bool = True) -> None:
        self._laws, self._times, self._log_other = laws, times, -math.inf
        summands = []
        slack = loss_error = origin = 0.0
        rests = []
        for law, r in zip(laws, times):
            held, logs, log_rest = law.index, law.log_p, law.log_rest
            if apart and not upper and held.size > 1 and (held[-1] - held[-2]) * law.step > ALONE:
                log_q = float(logs[-1] - law.losses[-1]) + law.loss_error + math.log(r)
                self._log_other = float(np.logaddexp(self._log_other, log_q)) + law.slack
                log_rest, held, logs = float(np.logaddexp(log_rest, logs[-1])), held[:-1], logs[:-1]
            # The indices are relative to the heaviest point, so that tilting changes the total mass little.
            middle = int(held[np.argmax(logs)]) if held.size else 0
            summands.append(Summand(logs, (held - middle).astype(np.float64), r))
            origin += r * (law.anchor + law.step * middle)
            total = float(np.logaddexp.reduce(np.append(logs, log_rest)))
            slack += r * (law.slack + abs(total) + 16 * ULP)
            loss_error += r * law.loss_error + 4 * ULP * abs(origin)
            rests.append((log_rest, r))
        # `widest` is 2 because the tilted distribution of the total loss may be ten times as wide at a large eps if large losses
        # are rare, for example with sampled records.
        super().__init__(
            summands, origin, laws[0].step, discount=1.0, near=NEAR, served=_SERVED, widest=2, upper=upper,
            log_rest=union_probability(rests), slack=slack, level_error=loss_error,
        )

    def log_delta(self, eps: float) -> tuple[float, float]:
        """Return the bound of the log hockey-stick divergence at eps, and minus its slope."""
        value, slope = (float(each[0]) for each in self.log_values(np.array([eps])))
        # `lost` is the log of the ratio of e^eps Q(A) to the bound (A: a loss far above all others occurs); its rounding errors are
        # far below 1.
        lost = eps + self._log_other - value if value > -math.inf else -math.inf
        return (value - 2 * math.exp(lost), slope) if lost <= -ALONE else self._whole.log_delta(eps)

    @cached_property
    def _whole(self) -> Product:
        """The distribution with all losses in the transform."""
        return Product(self._laws, self._times, upper=self.upper, apart=False)
