"""From neighbours with one record more or less to neighbours with one record replaced."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from shufflebounds._types import ULP, FloatArray, Sides
from shufflebounds.composing import Knowledge
from shufflebounds.profile import Composition, PrivacyProfile
from shufflebounds.profile.profile import checked_profile

__all__ = ["ReplaceOne"]

_SPLITS, _ROUNDS = 17, 3


@dataclass(frozen=True)
class ReplaceOne(PrivacyProfile):
    r"""What a guarantee for adding or removing a record says of replacing one: remove the old, add the new.

    .. math:: \delta(\varepsilon) \le \min_{0 \le t \le \varepsilon}
        \delta_{\text{remove}}(t) + e^t\, \delta_{\text{add}}(\varepsilon - t)

    Parameters
    ----------
    profile : PrivacyProfile
        A guarantee for neighbours with one record more or less, such as a composition of subsampled mechanisms.

    Notes
    -----
    Neighbours: **replace** one record. A bound from above only: the lower side of delta is 0. It about doubles eps, and is the
    only way in general; where the mechanism is noise on a sum, its own guarantee at twice the sensitivity is better.

    References
    ----------
    Dwork, C., Roth, A. The algorithmic foundations of differential privacy, 2014, section 2.3 (group privacy).

    Examples
    --------
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> from shufflebounds.sampling import ReplaceOne
    >>> training = GaussianMechanism(1.0).subsampled(0.01).self_compose(100)
    >>> print(f"{training.epsilon(1e-5):.3f} {ReplaceOne(training).epsilon(1e-5):.3f}")
    0.718 1.118
    """

    profile: PrivacyProfile

    theorem: ClassVar[str] = "remove one record, then add another (group privacy of two steps): an upper bound"
    neighbours: ClassVar[str] = "replace one record"
    relation: ClassVar[str] = "replace-one"

    def __post_init__(self) -> None:
        checked_profile("profile", self.profile)
        if self.profile.relation == "replace-one":
            raise ValueError(f"profile={self.profile!r} is for a replaced record already: its relation must be "
                             "'add-remove' or 'either'")

    def _both(self) -> tuple[PrivacyProfile, PrivacyProfile]:
        """Return the guarantees of removal and of addition."""
        ways = self.profile._ways if isinstance(self.profile, Composition) else self.profile._directions()
        return (ways[0], ways[1]) if ways else (self.profile, self.profile._opposite())

    def _log_delta(self, eps: FloatArray) -> Sides:
        remove, add = self._both()
        upper = np.zeros(eps.size)
        for i, total in enumerate(eps.tolist()):
            low, high = 0.0, total
            for _ in range(_ROUNDS):
                splits = np.linspace(low, high, _SPLITS) if high > low else np.array([low])
                # the two parts sum to less than eps, whatever the rounding
                rest = np.maximum(total - splits, 0.0) * (1 - 4 * ULP)
                values = np.logaddexp(remove._log_side(splits, upper=True), splits + add._log_side(rest, upper=True))
                best = int(np.argmin(values))
                upper[i] = min(upper[i], float(values[best]) + 8 * ULP * (1 + abs(float(values[best])) + total))
                low, high = splits[max(best - 1, 0)], splits[min(best + 1, splits.size - 1)]
        return Sides(np.full(eps.size, -np.inf), upper)

    def _pure_epsilon(self) -> float:
        return sum(profile._pure_epsilon() for profile in self._both()) * (1 + 4 * ULP)

    def _seconds(self) -> float:
        return 100 * self.profile._seconds()

    def _knowledge(self) -> Knowledge:
        # every value of delta is a search
        known = self.profile._knowledge()
        return replace(super()._knowledge(), convex=False, effort=100 * known.effort,
                       spacing=max(0.1, known.spacing), setup=2.5)

    def _eps_scale(self) -> float:
        return 2 * self.profile._eps_scale()
