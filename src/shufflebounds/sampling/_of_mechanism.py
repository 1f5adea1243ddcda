"""The base class of mechanisms that run on a random part of the dataset."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from shufflebounds._base.evidence import Evidence
from shufflebounds._losses.closed_forms import ClosedForms
from shufflebounds.profile import Composition, PrivacyProfile
from shufflebounds.profile.profile import CHANGES, of_one_record

__all__ = ["OfMechanism", "OfMechanismForms", "OfPresence"]


class OfMechanismForms(ClosedForms):
    """Results for a mechanism on a random part of the dataset, derived from those for the mechanism on all of its input.

    `parts` and `rate` state how the output distributions are mixtures.
    """

    def __init__(self, mechanism: PrivacyProfile, parts: tuple[PrivacyProfile, ...] = (), rate: float = 1.0) -> None:
        self.mechanism, self.parts, self.rate = mechanism, parts, rate

    @property
    def eps_scale(self) -> float:
        return self.mechanism._eps_scale()

    def mu(self, upper: bool) -> float | None:
        # By joint convexity mu is at most that of the mechanism. For normal and discrete normal noise this mu is attained. Consider
        # the event that some output exceeds T. Sampling multiplies the probability of this event by a factor that does not depend
        # on T. So, in the limit T -> inf, the difference between the normal quantiles of the event's probabilities under the two
        # neighbours is the same as without sampling.
        limit = self.mechanism._closed.mu_in_tails
        return limit if limit is None or not upper else self.mechanism._gdp_mu(True)

    def mixture(self) -> tuple[tuple[PrivacyProfile, ...], float]:
        return self.parts, self.rate


@dataclass(frozen=True)
class OfMechanism(PrivacyProfile):
    """A privacy profile that is derived from the profile of one mechanism."""

    mechanism: PrivacyProfile

    def __post_init__(self) -> None:
        of_one_record("mechanism", self.mechanism)

    def claims(self, eps: float, *, upper: bool) -> Iterable[Evidence]:
        yield from super().claims(eps, upper=upper)
        yield from self.mechanism.claims(eps, upper=upper)

    def closed_forms(self) -> ClosedForms:
        return OfMechanismForms(self.mechanism)


@dataclass(frozen=True)
class OfPresence(OfMechanism):
    """A privacy profile under add/remove adjacency, derived from a mechanism whose guarantee covers the absence of a record."""

    relation: ClassVar[str] = "add-remove"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_presence(self.mechanism)


def checked_presence(mechanism: PrivacyProfile) -> None:
    """Raise ValueError if the mechanism's guarantee compares two values of a record, not the presence and absence of a record."""
    if mechanism._covers_absence:
        # The mechanism reports a fixed value for a user who is not sampled, so a guarantee for replaced values covers absence.
        return
    if isinstance(mechanism, Composition):
        for factor, _ in mechanism.factors:
            checked_presence(factor)
    elif mechanism.relation in ("replace-one", "zeroed"):
        replaced = "; for a replaced record use WithoutReplacement" if mechanism.relation == "replace-one" else ""
        raise ValueError(f"mechanism={mechanism!r} is private for {CHANGES[mechanism.relation]}, but not under its removal: "
                         "sampling for neighbours with and without a record needs noise on a sum, a local randomizer or a "
                         f"DominatingPair{replaced}")
