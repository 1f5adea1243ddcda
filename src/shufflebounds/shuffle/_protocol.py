"""Base class of shuffle protocols with an estimate: randomization, estimation and the distribution of the error."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np

from shufflebounds._base.types import ULP, FloatArray
from shufflebounds._engines.errors.accuracy import ErrorLaw
from shufflebounds._engines.errors.counted import Counted, Counts, Estimate
from shufflebounds.profile import PrivacyProfile

__all__ = ["FlippedProtocol", "ShuffleProtocol"]


class ShuffleProtocol(Counted[Counts, Estimate], PrivacyProfile, ErrorLaw):
    """A shuffle protocol with an estimate and the distribution of its error."""


class FlippedProtocol(ShuffleProtocol[Counts, Estimate]):
    """A protocol whose users flip each of their bits with probability `flip`."""

    users: int
    flip: float

    @property
    def _fixed_users(self) -> int:
        return self.users

    def _independent_sums(self) -> tuple[PrivacyProfile, int, bool] | None:
        """Return (profile of one sum, k, exact) if the output is a function of k independent sums, else None.

        `exact`: the output is the sums themselves, and one pair of neighbours is the worst for all sums at once, so that the Renyi
        divergences are exactly k times those of one sum.
        """
        return None

    def _gdp_mu(self, upper: bool) -> float:
        found, sums = super()._gdp_mu(upper), self._independent_sums()
        if sums is None or not upper:
            return found
        one, times, _ = sums
        # The squares of mu add for independent outputs (Dong, Roth and Su 2022, Corollary 2).
        return min(found, math.sqrt(times) * one._gdp_mu(True) * (1 + 4 * ULP))

    def _rdp(self, orders: FloatArray, upper: bool) -> FloatArray:
        sums = self._independent_sums()
        if sums is None:
            return super()._rdp(orders, upper)
        one, times, exact = sums
        if not exact and not upper:
            # The lower bound must be that of a pair that neighbours attain.
            return super()._rdp(orders, False)
        value = times * one._rdp(orders, upper) * (1 + 2 * ULP if upper else 1 - 2 * ULP)
        if not upper:
            return value
        return np.minimum(value, self._pure_epsilon() if exact else super()._rdp(orders, True))

    def _scale(self) -> float:
        return math.sqrt(self.variance) + 1 / (1 - 2 * self.flip)

    @property
    @abstractmethod
    def _reports(self) -> int:
        """Number of reports of users and dummies; the estimate and the number it subtracts are at most _reports/(1 - 2 flip)."""

    def _rounding(self, a: Fraction, truth: Any) -> float:
        # Without noise, all numbers in the estimate are whole. Otherwise the estimate takes up to seven operations, whose errors
        # total at most 3 ULP of _reports/(1 - 2 flip); the errors of the sum of the users' numbers are smaller than the fourth ULP.
        return 0.0 if self.variance == 0 else 4 * ULP * self._reports / (1 - 2 * self.flip)

    def _informative(self) -> None:
        if self.flip == 0.5:
            raise ValueError("flip=0.5 must be < 0.5 for an estimate: the messages do not depend on the data")
