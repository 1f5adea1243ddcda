"""Bounds of several releases for a group of records: the smaller ones of two orders of composition and group privacy."""

from __future__ import annotations

from typing import Any

import numpy as np

from shufflebounds._base.types import FloatArray, IntervalArray, consistent
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds.tradeoff import Tradeoff

__all__ = ["TwoOrders"]


class TwoOrders(ClosedForms):
    """Bounds of a composition of groups of the same size.

    The profile `each` composes the bounds of the groups. The profile `whole` is the group of the composition for one record. Every
    release is a mechanism with the guarantee for one record, and the same records change in all releases. So the upper bounds of
    both profiles hold for the same releases. The lower bounds are those of `whole`: the larger ones of `each` and of one record.
    """

    def __init__(self, each: Any, whole: Any) -> None:
        self.each, self.whole = each, whole

    def _profiles(self, upper: bool) -> tuple[Any, ...]:
        return (self.whole, self.each) if upper else (self.whole,)

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return consistent(IntervalArray(self.side(eps, False), self.side(eps, True)), "log delta at eps={!r}", eps)

    def side(self, eps: FloatArray, upper: bool) -> FloatArray:
        return np.asarray(np.min([one._known_side(eps, upper=upper) for one in self._profiles(upper)], axis=0))

    def method(self, eps: float) -> list[str]:
        bounds = {one._log_side_at(eps, upper=True): one for one in self._profiles(True)}
        better = bounds[min(bounds)]
        order = "the releases are composed, and then the group's records change" if better is self.whole else "groups are composed"
        return [f"order: {order}", *better._method(eps)]

    def epsilon(self, delta: float, upper: bool) -> float:
        return min(float(one._epsilon(delta, upper)) for one in self._profiles(upper))

    def mu(self, upper: bool) -> float:
        return min(float(one._gdp_mu(upper)) for one in self._profiles(upper))

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray:
        return np.asarray(np.min([one._rdp(orders, upper) for one in self._profiles(upper)], axis=0))

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff:
        # The larger one of two lower curves is not computed at every point: the curve of the smaller mu is returned.
        curve: Tradeoff = min(self._profiles(not upper), key=lambda one: float(one._gdp_mu(not upper)))._tradeoff(upper)
        return curve

    def loss_tail(self, eps: FloatArray, upper: bool) -> IntervalArray:
        tails = [one._loss_tail(eps, upper) for one in self._profiles(upper)]
        return IntervalArray(tails[0].lower, np.min([tail.upper for tail in tails], axis=0))

    def last_positive(self, pure: float) -> float:
        return float(self.whole._last_positive(pure))

    @property
    def eps_scale(self) -> float:
        return float(self.each._eps_scale())
