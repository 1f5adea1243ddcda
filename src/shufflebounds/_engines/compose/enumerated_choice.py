"""The best adaptive strategy by its recursion (`adaptive`) over all sequences of outcomes, if there are few."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple, Self

import numpy as np

from shufflebounds._base.limits import MOST_ENUMERATED, SAME_LOG
from shufflebounds._base.types import ULP, FloatArray, Interval
from shufflebounds._engines.compose.adaptive import AdaptiveChoice
from shufflebounds._engines.compose.steps import Releases
from shufflebounds._losses.atoms import LossAtoms

__all__ = ["EnumeratedChoice"]


class _Outcomes(NamedTuple):
    """Losses and masses under P of the outcomes of a release, the mass of infinite loss, and a bound of the relative error of sums
    of these masses.
    """

    loss: FloatArray
    p: FloatArray
    rest: float
    slack: float

    @classmethod
    def of(cls, atoms: LossAtoms, upper: bool) -> Self:
        rest = np.logaddexp(atoms.log_rest, atoms.log_lost) if upper else atoms.log_rest
        return cls(atoms.moved(1 if upper else -1), np.exp(atoms.log_p), math.exp(rest), atoms.slack + ULP * (16 + atoms.loss.size))


Stages = list[list[_Outcomes]]
"""For each release the distributions among which the adversary chooses."""


class EnumeratedChoice:
    """Bounds of the best adaptive strategy without a grid; see `Adaptive` for the parameters.

    For the upper bound the releases without a choice come first, for the lower bound last, so that the bounds hold for any order.
    """

    name: ClassVar[str] = "adaptive choice of the pair over all outcomes"

    def __init__(self, below: Stages | None, above: Stages) -> None:
        self._below, self._above = below, above

    @classmethod
    def of(cls, upper: Releases, free: AdaptiveChoice) -> Self | None:
        """Return the bounds, or None if outcomes are not enumerated or have more than MOST_ENUMERATED sequences."""
        mechanism, times = upper[free.place]
        others = [pair for i, pair in enumerate(upper) if i != free.place]
        if mechanism.blocks is not None:
            return None
        above = _stages([[(one, 1)] for one in mechanism.below], times, others, True)
        below = _stages(free.pairs, free.times, free.others, False) if free.pairs else None
        return None if above is None else cls(None if below is None else below[::-1], above)

    def bounds(self, eps: float) -> tuple[Interval, bool]:
        """Return bounds of log delta at eps, and whether they are close."""
        low = -math.inf if self._below is None else _log_delta(self._below, eps, False)
        high = min(0.0, _log_delta(self._above, eps, True))
        return Interval(low, high), high - low <= SAME_LOG * (1 + abs(high))

    def method(self, eps: float) -> list[str]:
        """Return the lines of :meth:`Composition.explain` about the method."""
        return ["method: all sequences of outcomes",
                "pairs: the pair of neighbouring datasets and its order may change after every release"]


def _stages(choices: Sequence[Releases], times: int, others: Releases, upper: bool) -> Stages | None:
    """Return the releases, those without a choice first; None if there are too many sequences of outcomes."""
    found, log_sequences = Stages(), 0.0
    for several, number in (*(([[(one, 1)]], r) for one, r in others), (choices, times)):
        laws = [(pair[0][0].atoms if len(pair) == 1 and pair[0][1] == 1 else None) for pair in several]
        listed = [one for one in laws if one is not None]
        # One outcome counts as two, which also limits the number of releases.
        log_sequences += number * math.log(max(2, sum(one.loss.size for one in listed)))
        if len(listed) < len(laws) or log_sequences > math.log(MOST_ENUMERATED):
            return None
        found += [[_Outcomes.of(one, upper) for one in listed]] * number
    return found


def _log_delta(stages: Stages, eps: float, upper: bool) -> float:
    way = 1 if upper else -1
    # Every difference eps - loss - loss - ... has an error of an ulp of these numbers.
    reach = eps + sum(max(float(np.abs(law.loss).max(initial=0.0)) for law in several) for several in stages)
    value = float(_values(np.array([eps - way * 2 * ULP * len(stages) * reach]), stages)[0])
    slack = sum(max(law.slack for law in several) for several in stages) + 8 * ULP
    return math.log(value) + way * (slack + ULP * abs(math.log(value))) if value > 0 else -math.inf


def _values(x: FloatArray, stages: Stages) -> FloatArray:
    """Return the hockey-stick divergence at e^x, for each x, of the best strategy in the given releases."""
    if not stages:
        return np.maximum(-np.expm1(np.minimum(x, 1.0)), 0.0)
    best = np.zeros(x.size)
    for law in stages[0]:
        after = _values((x[:, None] - law.loss).ravel(), stages[1:]).reshape(x.size, law.loss.size)
        best = np.maximum(best, after @ law.p + law.rest)
    return best
