"""Results of a profile that need no search and no samples of its divergence, collected in :class:`ClosedForms`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from shufflebounds._base.crossing import Curve
from shufflebounds._base.types import FloatArray, IntervalArray
from shufflebounds._losses.renyi import KnownUpper, Tail, mixture_renyi, mixture_tail
from shufflebounds.tradeoff import Tradeoff

__all__ = ["ClosedForms", "mixture_limit"]


class ClosedForms:
    """Formulas that need no search and no samples of the divergence.

    A method returns None if no formula is known.

    A subclass holds the parameters of a family of pairs and defines the formulas that the family has.
    """

    __slots__ = ()

    def log_delta(self, eps: FloatArray) -> IntervalArray | None:
        """Return bounds of log delta at each eps, if a formula is tighter than the bounds that curves and compositions sample."""
        return None

    def epsilon(self, delta: float, upper: bool) -> float | None:
        """Return a bound of eps for one delta in [0, 1]."""
        return None

    def mu(self, upper: bool) -> float | None:
        """Return a bound of mu."""
        return None

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        """Return bounds of the Renyi divergences of these orders in [1, inf]; NaN if the formula does not apply to an order."""
        return None

    def side(self, eps: FloatArray, upper: bool) -> FloatArray | None:
        """Return only the upper or the lower bound of log delta at each eps, if one can be computed without the other."""
        return None

    def epsilons(self, deltas: FloatArray, upper: bool) -> FloatArray | None:
        """Return a bound of eps for each delta in [0, 1], if one call for all of them takes less time than single calls."""
        return None

    def last_positive(self, pure: float) -> float | None:
        """Return an eps, at most the pure budget `pure`, such that delta is positive at every smaller eps."""
        return None

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff | None:
        """Return a bound of the trade-off function.

        In an enumeration of outcomes, a mass of at most e^log_tail is truncated at either end.
        """
        return None

    def method(self, eps: float) -> list[str]:
        """Return lines of text that state how the bounds at one eps are computed, or an empty list."""
        return []

    def mixture(self) -> tuple[tuple[Any, ...], float]:
        """Return profiles and a rate q that describe the mechanism as a mixture, or () and 1 if it is not a mixture.

        Every pair of neighbours must yield a mixture of pairs :math:`(q P + (1-q) R, q Q + (1-q) R)`, or a post-processing
        of it, where R is any distribution and one of the returned profiles bounds the divergences of (P, Q). The Renyi divergences
        and mu of the mechanism are then at most those of (P, Q), which are finite for Gaussian noise.
        """
        return (), 1.0

    def renyi_limit(self, orders: FloatArray, upper: bool) -> FloatArray:
        """Return bounds of the Renyi divergences that follow from joint convexity if the mechanism is a mixture.

        They are used in addition to the bounds from values of delta.
        """
        return mixture_limit(*self.mixture(), orders) if upper else np.full(orders.size, -np.inf)

    def tail(self) -> Tail | None:
        """Return a function (`Tail`) that bounds the integral in `rdp` beyond an eps, or None if the mechanism is not a mixture."""
        parts, rate = self.mixture()
        if not parts:
            return None
        orders = 1 + np.geomspace(0.01, 1e6, 400)
        divergences = _largest_renyi(parts, orders)
        return lambda power, start: mixture_tail(power, start, orders, divergences, rate)

    def known_upper(self) -> KnownUpper | None:
        """Return an upper bound of delta whose Renyi divergences are known."""
        return None

    def mu_limit(self) -> float:
        """Return an upper bound of mu that follows from joint convexity if the mechanism is a mixture, otherwise inf.

        It is used in addition to the upper bound from values of delta.
        """
        return max((part._gdp_mu(True) for part in self.mixture()[0]), default=math.inf)

    def rough(self, upper: bool) -> Curve | None:
        """Return a curve close to a bound of log delta that takes less time to evaluate; the search for eps begins with it."""
        return None

    def loss_tail(self, eps: FloatArray, upper: bool) -> IntervalArray | None:
        """Return bounds of the probability that the privacy loss exceeds each eps; only the one that `upper` selects is used."""
        return None

    @property
    def of_one_pair(self) -> bool:
        """Whether the exact delta is that of one pair at every eps; False if this is not known, or if `describe` states it."""
        return False

    @property
    def mu_in_tails(self) -> float | None:
        """A lower bound of mu from tests that rarely reject; None if not known.

        It bounds the limit of t_0 - t_1 from below, as the probability to reject tends to 0. Here t_0 and t_1 are the normal
        quantiles of the probabilities that the test rejects under the first and under the second input. For normal noise the limit
        is mu.
        """
        return None

    @property
    def eps_scale(self) -> float:
        """A typical size of eps, at least 1. The search for eps ends at `crossing.CAP` times this size."""
        return 1.0


def _largest_renyi(parts: tuple[Any, ...], orders: FloatArray) -> FloatArray:
    return np.asarray(np.max([part._rdp(orders, True) for part in parts], axis=0))


def mixture_limit(parts: tuple[Any, ...], rate: float, orders: FloatArray) -> FloatArray:
    """Return upper bounds of the Renyi divergences of a mixture (`ClosedForms.mixture`) of the profiles `parts`; inf if none."""
    return mixture_renyi(orders, _largest_renyi(parts, orders), rate) if parts else np.full(orders.size, np.inf)
