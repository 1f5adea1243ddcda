"""Base class of profiles whose bounds are those of two other profiles, one with a smaller and one with a larger delta.

Examples: randomized response whose flip probability is known up to rounding, and a protocol that is a post-processing of a second
one while a third one is a post-processing of it.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from shufflebounds._base.types import FloatArray, IntervalArray
from shufflebounds.profile.profile import PrivacyProfile
from shufflebounds.tradeoff import Tradeoff

__all__ = ["BetweenProfiles"]


class BetweenProfiles(PrivacyProfile):
    """A profile between two other profiles, for some values of its parameters or for all of them."""

    @property
    @abstractmethod
    def _enclosing(self) -> tuple[PrivacyProfile, PrivacyProfile] | None:
        """Two profiles, whose deltas are at most and at least the delta of this profile; None if the class has its own bounds."""

    def _log_delta(self, eps: FloatArray) -> IntervalArray:
        assert self._enclosing is not None
        below, above = self._enclosing
        return IntervalArray(below._log_side(eps, upper=False), above._log_side(eps, upper=True))

    def _tradeoff(self, upper: bool) -> Tradeoff:
        # The profile with the larger delta has the smaller trade-off function.
        return super()._tradeoff(upper) if self._enclosing is None else self._enclosing[not upper]._tradeoff(upper)

    def _gdp_mu(self, upper: bool) -> float:
        return super()._gdp_mu(upper) if self._enclosing is None else self._enclosing[upper]._gdp_mu(upper)

    def _rdp(self, orders: FloatArray, upper: bool) -> FloatArray:
        if self._enclosing is None:
            return super()._rdp(orders, upper)
        found = self._enclosing[upper]._rdp(orders, upper)
        # A Renyi divergence is at most the largest privacy loss.
        return np.minimum(found, self._pure_epsilon()) if upper else found
