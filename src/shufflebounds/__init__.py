"""Exact privacy accounting for the shuffle model."""

from shufflebounds import profile, shuffle, tails
from shufflebounds.profile import DominatingPair, PrivacyProfile

__all__ = ["DominatingPair", "PrivacyProfile", "__version__", "profile", "shuffle", "tails"]

__version__ = "0.1.0"
