"""Exact privacy accounting for the shuffle model."""

from shufflebounds._base import __version__ as __version__
from shufflebounds._base import get_include, get_library
from shufflebounds._base.lazy import TYPE_CHECKING, lazily

if TYPE_CHECKING:
    from shufflebounds import (
        audit,
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
    from shufflebounds._base.types import InconsistentBoundsError
    from shufflebounds._base.validate import CertificateGap, InfeasibleError
    from shufflebounds.profile import DominatingPair, PrivacyProfile, compare
    from shufflebounds.sweeps import SweepError, SweepInterrupted, sweep
    from shufflebounds.tradeoff import Tradeoff

__all__ = [
    "CertificateGap",
    "DominatingPair",
    "InconsistentBoundsError",
    "InfeasibleError",
    "PrivacyProfile",
    "SweepError",
    "SweepInterrupted",
    "Tradeoff",
    "__version__",
    "audit",
    "compare",
    "composition",
    "get_include",
    "get_library",
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

_HOMES = {
    **dict.fromkeys(set(__all__) - {"__version__", "get_include", "get_library"}, ""),
    "CertificateGap": "shufflebounds._base.validate",
    "InconsistentBoundsError": "shufflebounds._base.types",
    "InfeasibleError": "shufflebounds._base.validate",
    **dict.fromkeys(("DominatingPair", "PrivacyProfile", "compare"), "shufflebounds.profile"),
    **dict.fromkeys(("SweepError", "SweepInterrupted", "sweep"), "shufflebounds.sweeps"),
    "Tradeoff": "shufflebounds.tradeoff",
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
