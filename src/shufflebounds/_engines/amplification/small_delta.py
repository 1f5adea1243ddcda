"""Bounds at small delta, where the default truncation of outputs is not negligible.

The upper bound truncates outputs at a smaller probability, and the lower bound uses tests of the largest message.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import MANY
from shufflebounds._base.search import bracket
from shufflebounds._base.types import FloatArray
from shufflebounds._engines.amplification.local import LocalGuarantee
from shufflebounds._engines.amplification.randomizer_laws import Distributions
from shufflebounds._engines.amplification.upper import UpperBounds
from shufflebounds._engines.datasets.largest_message import LargestMessage
from shufflebounds._engines.excess.evaluation import Effort

__all__ = ["SmallDelta"]

_MARGIN = 35.0
"""Log of the factor by which delta must exceed the truncated mass, so that truncation is negligible (`SmallDelta.limit`). Raised:
longer run time at delta for which truncation is negligible. Lowered: less tight bounds at small delta."""

_DEEP_CELLS, _TEST_CELLS = 4 * MANY, 32 * MANY
"""Numbers of cells of a density for the upper bound at very small delta, and for the tests of the lower bound. Raised: longer run
time. Lowered: less tight bounds."""


class SmallDelta:
    """Better lower and upper bounds for a randomizer whose outputs may be truncated at a far smaller probability.

    One value of log delta takes up to a second. The upper bound is that by the privacy blanket. The given `laws` have the default
    truncation.
    """

    def __init__(self, laws: Distributions, users: int, local: LocalGuarantee) -> None:
        self._laws, self._users, self._local = laws, users, local

    @cached_property
    def limit(self) -> float:
        """The smallest log delta for which the truncation of outputs is negligible."""
        return max(float(np.max(law.log_cut, initial=-np.inf)) for law in self._laws.above) + _MARGIN

    def decides(self, log_delta: float) -> bool:
        """Return whether, at this log delta, the bound of this class is at most the bound with the default truncation."""
        return log_delta < self.limit - _MARGIN

    def improved(self, eps: FloatArray, bound: FloatArray, *, upper: bool, margin: float = _MARGIN) -> FloatArray:
        """Return the bounds of log delta, improved where they are below `limit` - _MARGIN + `margin`."""
        places = np.flatnonzero(bound < self.limit - _MARGIN + margin)
        if not places.size:
            return bound
        bound = bound.copy()
        if upper:
            bound[places] = np.minimum(bound[places], self._upper(eps[places]))
        else:
            tests = [max(test.log_delta(e) for test in self._largest_messages) for e in eps[places].tolist()]
            bound[places] = np.maximum(bound[places], tests)
        return bound

    def lower_epsilon(self, delta: float) -> float:
        """Return a lower bound of eps at delta > 0."""
        return max(test.epsilon(delta) for test in self._largest_messages)

    def upper_epsilon(self, delta: float, lower: float) -> float:
        """Return an upper bound of eps at delta > 0, given a lower bound."""
        # The upper bound of delta is not monotone in eps everywhere, so the search begins at the lower bound of eps. Every eps at
        # which the upper bound is at most delta is valid.
        target = math.log(delta)

        def meets(more: float) -> bool:
            return bool(self._upper(np.array([lower + more]))[0] <= target)

        return lower + bracket(meets, 0.0, 2.0**-8 * max(lower, 2.0**-8), rtol=1e-3)[1]

    @cached_property
    def _far(self) -> tuple[UpperBounds, Effort]:
        """The upper bounds for more cells and a smaller truncated probability, and the effort with which they are computed."""
        laws = self._laws.truncated(_DEEP_CELLS, self._laws.deepest_cut)
        # With at most MANY atoms the full effort takes little time, and only the full effort gives tight bounds for a few large
        # values of X.
        effort = Effort.SAMPLED if laws.pairs[0].upper.log_mass.size > MANY else Effort.FINE
        return UpperBounds(laws, self._users), effort

    def _upper(self, eps: FloatArray) -> FloatArray:
        bounds, effort = self._far
        return self._local.capped(eps, self._local.evaluated(partial(bounds.log_delta, effort=effort), eps))

    @cached_property
    def _largest_messages(self) -> tuple[LargestMessage, ...]:
        """Tests of the largest message, for outputs truncated at a far smaller probability."""
        laws = self._laws.truncated(_TEST_CELLS, self._laws.deepest_cut)
        return tuple(LargestMessage(law, self._users) for _, _, law in laws.below)
