"""Exact privacy accounting for the shuffle model."""

from shufflebounds import profile, published, shuffle, tails
from shufflebounds._validate import InfeasibleError
from shufflebounds.profile import DominatingPair, PrivacyProfile

__all__ = ["DominatingPair", "InfeasibleError", "PrivacyProfile", "__version__", "profile", "published", "shuffle", "tails"]

__version__ = "0.1.0"
