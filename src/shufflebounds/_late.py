"""The one table of names that a lower module takes from a higher one: methods of a base class that return a class built on it.

`profile.self_compose()` returns a Composition, which is itself a profile; `mechanism.subsampled()` returns a class of
:mod:`shufflebounds.sampling`, which imports the mechanisms. Such a method calls :func:`late` with the name. No other function
of the package imports a module of the package (tests/test_imports.py).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["LATE", "late"]

LATE = {
    "Composition": "shufflebounds.profile.composed",          # PrivacyProfile.compose, self_compose
    "Subsampled": "shufflebounds.sampling.poisson",           # LocalRandomizer.subsampled
    "certify": "shufflebounds.certify",                       # PrivacyProfile.certify
    "plot_profile": "shufflebounds.profile._pictures",        # PrivacyProfile.plot
    "statement": "shufflebounds.profile.statement",           # PrivacyProfile.statement
    "table": "shufflebounds.profile._pictures",               # the table that a notebook shows
    # the command imports what one of its answers needs, and no more: its start is most of its run time
    "AdditiveNoise": "shufflebounds.mechanisms._base",
    "ErrorLaw": "shufflebounds.shuffle._accuracy",
    "MECHANISMS": "shufflebounds.cli.registry",
    "releases_in": "shufflebounds.cli.releases",
}
"""The module of each name."""


def late(name: str) -> Any:
    """Return the object of that name in :data:`LATE`, importing its module if that has not happened yet."""
    return getattr(import_module(LATE[name]), name)
