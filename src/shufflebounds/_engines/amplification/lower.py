"""The lower bound of delta: the largest delta of the datasets that a randomizer lists, or of all datasets of few users."""

from __future__ import annotations

import math

from shufflebounds._base.limits import SAME_LOG
from shufflebounds._base.types import Interval
from shufflebounds._engines.amplification.randomizer_laws import Distributions
from shufflebounds._engines.datasets.enumerated import MixedData
from shufflebounds._engines.excess.evaluation import Effort, largest_of

__all__ = ["LowerBounds"]

_LISTED = 8
"""Number of datasets that an explanation lists with their values. Randomizers given by a matrix have thousands of datasets."""


class LowerBounds:
    """The lower bound at one eps, and the dataset that attains it.

    If there are few users, `mixed` enumerates all datasets.
    """

    def __init__(self, laws: Distributions, users: int, mixed: MixedData | None) -> None:
        self._laws, self._users, self._mixed = laws, users, mixed

    def log_delta(self, eps: float, effort: Effort) -> float:
        """Return the lower bound of log delta."""
        alike = self._best(eps, effort)[0]
        return alike if self._mixed is None else max(alike, self._mixed.best(eps)[0])

    def dataset(self, eps: float) -> str:
        """Return a description of the dataset of the other users, with the target's pair of inputs if there are several."""
        value, place = self._best(eps, Effort.FINE)
        if self._mixed is not None:
            mixed, shares, target = self._mixed.best(eps)
            if mixed > value + SAME_LOG:
                parts = (f"{count} {'has' if count == 1 else 'have'} input {x}" for x, count in enumerate(shares) if count)
                inputs = " and ".join(parts)
                return f"of the other users {inputs}; target between inputs {target[0]} and {target[1]}"
        if not self._laws.below:
            return "none known"
        return self._words(place)

    def _words(self, place: int) -> str:
        inputs, text, _ = self._laws.below[place]
        return text if len(self._laws.pairs) == 1 else f"{text}; target between {inputs}"

    def compared(self, eps: float) -> dict[str, float]:
        """Return lower bounds of log delta for the first _LISTED datasets that the randomizer lists."""
        return {self._words(place): law.log_phi_side(eps, self._users, upper=False)
                for place, (_, _, law) in enumerate(self._laws.below[:_LISTED])}

    def _best(self, eps: float, effort: Effort) -> tuple[float, int]:
        """Return (value, index) of the largest lower bound at one eps over the datasets that `Distributions.below` lists."""
        if not self._laws.below:
            return -math.inf, 0
        laws = [law for _, _, law in self._laws.below]

        def value(place: int) -> float:
            return laws[place].log_phi_side(eps, self._users, upper=False, effort=effort)

        if len(laws) == 1:
            return value(0), 0
        most = [law.most_log_phi(eps, self._users) for law in laws]
        if effort is Effort.FINE and not any(law.heavy for law in laws):
            # Approximate values, which take less time, exclude most datasets. For heavy tails approximate values take at least as
            # long as accurate ones.
            roughly: dict[int, Interval] = {}

            def rough(place: int) -> float:
                roughly[place] = laws[place].rough_log_phi(eps, self._users)
                return roughly[place].lower

            largest_of(most, rough)
            most = [roughly[place].upper if place in roughly else -math.inf for place in range(len(laws))]
        best, largest = largest_of(most, value)
        return largest, best
