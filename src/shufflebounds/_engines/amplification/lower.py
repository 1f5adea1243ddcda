"""The lower bound of delta: the largest value of the datasets that a randomizer lists or a search finds."""

from __future__ import annotations

import math

import numpy as np

from shufflebounds._base.caches import Kept, cached_property
from shufflebounds._base.limits import CACHED_ANSWERS, COMPARED, FEW, SAME_LOG
from shufflebounds._base.types import Interval
from shufflebounds._engines.amplification.distributions import Distributions
from shufflebounds._engines.datasets.enumerated import MixedData
from shufflebounds._engines.excess.evaluation import Effort, largest_of
from shufflebounds._engines.excess.heavy_tails import few_enough
from shufflebounds._engines.excess.laws import ExcessLaw

__all__ = ["LowerBounds"]


class LowerBounds:
    """The lower bound at one eps, and the dataset that attains it.

    Parameters
    ----------
    laws : Distributions
    users : int
        Number n of users.
    mixed : MixedData, optional
        A search over datasets whose users have different inputs.
    """

    def __init__(self, laws: Distributions, users: int, mixed: MixedData | None) -> None:
        self._laws, self._users, self._mixed = laws, users, mixed
        self._widest_known: Kept[float, list[int]] = Kept(CACHED_ANSWERS)

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
        inputs, text, _ = self._laws.below[place]
        return text if len(self._laws.pairs) == 1 else f"{text}; target between {inputs}"

    def _widest(self, eps: float) -> list[int]:
        """Return the indices of the distributions with the largest second moments, at most COMPARED, largest first.

        The second moment ignores outputs that identify the target's message. If there are more than COMPARED distributions, the one
        with the largest mass of such outputs takes the last place.
        """
        below = self._laws.below
        if len(below) > COMPARED and eps > 0:
            # A matrix of many inputs has thousands of distributions. Their order changes slowly with eps, so it is determined only
            # at eps that are powers of two; every choice gives a valid lower bound.
            eps = 2.0 ** round(math.log2(eps))

        def ordered() -> list[int]:
            wide = np.array([law.spread(eps) for _, _, law in below])
            widest = [int(place) for place in np.argsort(-wide, kind="stable")[:COMPARED]]
            if len(below) > COMPARED and self._most_lost not in widest:
                widest[-1] = self._most_lost
            return widest

        return self._widest_known.of(eps, ordered)

    @cached_property
    def _most_lost(self) -> int:
        """The index of the distribution with the largest mass of outputs that identify the target's message."""
        return int(np.argmax([law.lost for _, _, law in self._laws.below]))

    def _best(self, eps: float, effort: Effort) -> tuple[float, int]:
        """Return (value, index) of the largest lower bound at one eps over the datasets that `Distributions.below` lists."""
        if not self._laws.below:
            return -math.inf, 0
        places = self._widest(eps)
        tried = [self._laws.below[place][2] for place in places]

        def value(law: ExcessLaw) -> float:
            return law.log_phi_side(eps, self._users, upper=False, effort=effort)

        if len(tried) > 1:
            found: dict[int, Interval] = {}

            def rough(place: int) -> float:
                found[place] = tried[place].rough_log_phi(eps, self._users)
                return found[place].lower

            # Where one value decides, the saddle point alone may also be too small by more than `error`.
            near = [max(law.approximate_log_phi(eps, self._users, parted) for parted in {False, law.one_decides(self._users)})
                    for law in tried]
            # For heavy tails a rough value takes at least as long as an accurate one.
            heavy = any(law.heavy for law in tried)
            # The approximation of a skewed sum of a thousand users was seen to be too small by .9.
            error = 2.0 if heavy or few_enough(self._users) or len(tried) <= FEW else 0.3
            if effort is not Effort.FINE or heavy:
                place, largest = largest_of(near, lambda place: value(tried[place]), error)
                return largest, places[place]
            least = largest_of(near, rough, error)[1]
            places = [places[place] for place, bounds in sorted(found.items()) if bounds.upper >= least]
        values = [value(self._laws.below[place][2]) for place in places]
        best = int(np.argmax(values))
        return values[best], places[best]
