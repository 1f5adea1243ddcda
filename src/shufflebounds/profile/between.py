"""Bounds of a profile whose delta is between those of two other profiles.

Two examples are randomized response with a flip probability that is known only up to rounding, and a protocol between two
mechanisms: a post-processing of the mechanism `above`, of which the mechanism `below` is a post-processing.
"""

from __future__ import annotations

import numpy as np

from shufflebounds._base.evidence import bound_lines
from shufflebounds._base.types import FloatArray, IntervalArray
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds.answers.answering import Answering
from shufflebounds.tradeoff import Tradeoff

__all__ = ["Between"]


class Between(ClosedForms):
    """Results for a profile with the pure budget `pure`, whose delta is between that of `below` and that of `above`."""

    def __init__(self, below: Answering, above: Answering, pure: float) -> None:
        self.sides, self.pure = (below, above), pure

    def log_delta(self, eps: FloatArray) -> IntervalArray:
        return IntervalArray(self.side(eps, False), self.side(eps, True))

    def method(self, eps: float) -> list[str]:
        below, above = self.sides
        if below is above:
            return above._method(eps)
        lines = []
        for side, word, upper in ((above, "above", True), (below, "below", False)):
            lines += [line.replace("method:", f"method {word}:", 1) for line in side._method(eps)]
            lines += bound_lines(self.further(eps, upper), upper=upper)
        return lines

    def further(self, eps: float, upper: bool) -> dict[str, float]:
        """Return bounds of log delta at one eps, in addition to those of both profiles, by name."""
        return {}

    def side(self, eps: FloatArray, upper: bool) -> FloatArray:
        return self.sides[upper]._log_side(eps, upper=upper)

    def epsilon(self, delta: float, upper: bool) -> float | None:
        return self.sides[upper]._epsilon(delta, upper)

    def tradeoff(self, upper: bool, log_tail: float = -100.0) -> Tradeoff | None:
        # The profile with the larger delta has the smaller trade-off function.
        return self.sides[not upper]._tradeoff(upper)

    def mu(self, upper: bool) -> float | None:
        return self.sides[upper]._gdp_mu(upper)

    def loss_tail(self, eps: FloatArray, upper: bool) -> IntervalArray | None:
        below, above = self.sides
        return above._loss_tail(eps, upper) if below is above else None

    @property
    def of_one_pair(self) -> bool:
        # If both profiles are of one class, so is the exact one, with a parameter, such as the sensitivity, between theirs.
        below, above = self.sides
        return type(below) is type(above) and below._of_one_pair and above._of_one_pair

    @property
    def mu_in_tails(self) -> float | None:
        return self.sides[False]._closed.mu_in_tails

    def renyi(self, orders: FloatArray, upper: bool) -> FloatArray | None:
        bound = self.sides[upper]._rdp(orders, upper)
        # A Renyi divergence is at most the largest privacy loss.
        return np.minimum(bound, self.pure) if upper else bound

    @property
    def eps_scale(self) -> float:
        return self.sides[True]._eps_scale()
