"""Exact privacy accounting for the shuffle model."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

_HOME = {
    "InfeasibleError": "_validate",
    **dict.fromkeys(("DominatingPair", "PrivacyProfile", "compare"), "profile"),
    **dict.fromkeys(("SweepError", "SweepInterrupted", "sweep"), "sweeps"),
    "Tradeoff": "tradeoff",
}


def __getattr__(name: str) -> Any:
    """Import a room when it is first asked for: no program needs them all."""
    if name in _HOME:
        value = getattr(import_module(f"shufflebounds.{_HOME[name]}"), name)
    elif name in __all__:
        value = import_module(f"shufflebounds.{name}")
    else:
        raise AttributeError(f"module 'shufflebounds' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
