"""Exact privacy accounting for the shuffle model."""

from shufflebounds import (
    composition,
    histograms,
    interop,
    mechanisms,
    profile,
    published,
    sampling,
    selection,
    shuffle,
    sweeps,
    tails,
    tradeoff,
)
from shufflebounds._validate import InfeasibleError
from shufflebounds.profile import DominatingPair, PrivacyProfile, compare
from shufflebounds.sweeps import SweepError, SweepInterrupted, sweep
from shufflebounds.tradeoff import Tradeoff

__all__ = [
    "DominatingPair",
    "InfeasibleError",
    "PrivacyProfile",
    "SweepError",
    "SweepInterrupted",
    "Tradeoff",
    "__version__",
    "compare",
    "composition",
    "histograms",
    "interop",
    "mechanisms",
    "profile",
    "published",
    "sampling",
    "selection",
    "shuffle",
    "sweep",
    "sweeps",
    "tails",
    "tradeoff",
]

__version__ = "0.1.0"
