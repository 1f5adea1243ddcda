"""The guarantee of the target's message alone, if the analyst knows which message is the target's."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shufflebounds._base.caches import cached_property
from shufflebounds._base.limits import SEARCH_GAP
from shufflebounds._base.progress import tick
from shufflebounds._base.types import ULP, FloatArray

__all__ = ["FARTHEST", "LocalGuarantee"]

FARTHEST = 1e5
"""Largest eps at which the local guarantee is compared with a search that found no finite eps. The guarantee of noise with a larger
eps is not used. Raised: the same for guarantees that protect nobody. Lowered: an infinite eps is returned for more noise."""


class LocalGuarantee:
    """Upper bounds by the guarantee of the randomizer: its delta times the probability of participation.

    For few users the blanket bound of a density may exceed these bounds, because the density is discretized.

    Parameters
    ----------
    participation : float
        Probability with which the target sends a message.
    pure : float
        A pure budget of the protocol, at most that of the randomizer.
    log_delta : callable, optional
        Returns upper bounds of the randomizer's log delta at each eps; None if no such bound is known.
    epsilon : callable, optional
        Returns an upper bound of the randomizer's eps at a delta.
    unbounded : bool
        Whether the loss of a message is known to be unbounded. Then the loss of all messages is unbounded, too, if all other users
        have the target's second value: each message may have an arbitrarily large likelihood ratio, and so has their mean.
    """

    def __init__(self, participation: float, pure: float, log_delta: Callable[[FloatArray], FloatArray] | None = None,
                 epsilon: Callable[[float], float] | None = None, unbounded: bool = False) -> None:
        self.pure, self.unbounded = pure, unbounded
        self._participation, self._log_delta, self._epsilon = participation, log_delta, epsilon

    def log_delta(self, eps: FloatArray) -> FloatArray:
        """Return the upper bound of log delta at each eps."""
        if self._log_delta is None:
            return np.zeros_like(eps)
        local = self._log_delta(eps)
        moved = np.where(local < np.inf, local, 0.0) + math.log(self._participation)
        return np.asarray(np.where(moved > -np.inf, moved + 4 * ULP * (1 - moved), -np.inf))

    def excess(self, eps: float, log_target: float) -> float:
        """Return by how much the bound of log delta exceeds `log_target` at one eps."""
        return float(self.log_delta(np.array([eps]))[0]) - log_target

    @cached_property
    def _far(self) -> tuple[float, float]:
        """An eps, and the value of :meth:`log_delta` at this eps minus 1, which :meth:`log_delta` exceeds at every smaller eps.

        :meth:`log_delta` does not increase with eps.
        """
        eps = min(0.5 * self.pure, 1.0)
        return eps, self.excess(eps, 1.0)

    def evaluated(self, bound: Callable[[float], float], eps: FloatArray) -> FloatArray:
        """Return a bound of log delta at each eps; -inf from the pure budget on."""
        values = []
        for e in eps.tolist():
            values.append(bound(e) if e < self.pure else -math.inf)
            tick()
        return np.array(values)

    def exceeds(self, eps: float, log_delta: float) -> bool:
        """Return whether :meth:`log_delta` is known to be above `log_delta` at every eps up to `eps`."""
        return eps <= self._far[0] and log_delta <= self._far[1]

    def capped(self, eps: FloatArray, bound: FloatArray) -> FloatArray:
        """Return at each eps the smaller of :meth:`log_delta` and of `bound`, another upper bound of log delta."""
        if self.exceeds(float(eps.max(initial=0.0)), float(bound.max(initial=-np.inf))):
            return bound
        return np.asarray(np.minimum(bound, self.log_delta(eps)))

    def epsilon(self, delta: float, searched: float) -> float:
        """Return the eps at which this guarantee equals `delta`, or inf if this eps is unknown or above `searched`.

        `searched` is the result of a search for eps. The search has a tolerance, so `searched` may exceed the eps of this
        guarantee; the eps of the guarantee is then the better bound.
        """
        target = math.log(delta)
        if self._epsilon is None or self.exceeds(searched, target) or self.excess(min(searched, FARTHEST), target) > SEARCH_GAP:
            return math.inf
        # `log_delta` increases the local delta by a few ulp, so the local eps at a slightly smaller delta is used.
        local = self._epsilon(min(delta / self._participation, 1.0) * (1 - 64 * ULP))
        return local if math.isfinite(local) and self.excess(local, target) <= 0 else math.inf
