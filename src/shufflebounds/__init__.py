"""Exact privacy accounting for the shuffle model."""

import os

from shufflebounds._base import __version__ as __version__
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
    **dict.fromkeys(set(__all__) - {"__version__", "get_include"}, ""),
    "CertificateGap": "shufflebounds._base.validate",
    "InconsistentBoundsError": "shufflebounds._base.types",
    "InfeasibleError": "shufflebounds._base.validate",
    **dict.fromkeys(("DominatingPair", "PrivacyProfile", "compare"), "shufflebounds.profile"),
    **dict.fromkeys(("SweepError", "SweepInterrupted", "sweep"), "shufflebounds.sweeps"),
    "Tradeoff": "shufflebounds.tradeoff",
}
__getattr__, __dir__ = lazily(__name__, _HOMES)


def get_include() -> str:
    """Return the folder of ``shufflebounds.h``, for the ``include_dirs`` of an extension in C that calls the kernels.

    Returns
    -------
    str
        An absolute path. An extension in Cython needs no folder, because ``cimport`` finds the declarations.

    Examples
    --------
    >>> import os, shufflebounds
    >>> os.listdir(shufflebounds.get_include())
    ['shufflebounds.h']
    """
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")
