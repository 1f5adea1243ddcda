"""What is common to all that is said of a mechanism on a random part of the data."""

from __future__ import annotations

from dataclasses import dataclass

from shufflebounds.profile import PrivacyProfile
from shufflebounds.profile.profile import checked_profile

__all__ = ["OfMechanism"]


@dataclass(frozen=True)
class OfMechanism(PrivacyProfile):
    """A profile that follows from that of one mechanism."""

    mechanism: PrivacyProfile

    def __post_init__(self) -> None:
        checked_profile("mechanism", self.mechanism)

    def _eps_scale(self) -> float:
        return self.mechanism._eps_scale()
