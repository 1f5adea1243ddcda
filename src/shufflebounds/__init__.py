"""Exact privacy accounting for the shuffle model."""

from shufflebounds import composition, histograms, profile, published, selection, shuffle, tails, tradeoff
from shufflebounds._validate import InfeasibleError
from shufflebounds.profile import DominatingPair, PrivacyProfile
from shufflebounds.tradeoff import Tradeoff

__all__ = [
    "DominatingPair",
    "InfeasibleError",
    "PrivacyProfile",
    "Tradeoff",
    "__version__",
    "composition",
    "histograms",
    "profile",
    "published",
    "selection",
    "shuffle",
    "tails",
    "tradeoff",
]

__version__ = "0.1.0"
