"""Objects that methods import when they are called, because an import at the top of the module would be circular.

`profile.self_compose()` returns a Composition, which is itself a profile; `mechanism.subsampled()` returns a class of
:mod:`shufflebounds.sampling`, which imports the mechanisms. Such a method calls :func:`late` with the name. No other function
of the package imports a module of the package (tests/test_imports.py).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["LATE", "late"]

LATE = {
    "Composition": "shufflebounds.profile.composition",          # PrivacyProfile.compose, self_compose
    "GaussianMechanism": "shufflebounds.mechanisms.noise.gaussian",  # the local guarantee of PersonalizedClones
    "Rappor": "shufflebounds.mechanisms.oracles.rappor",              # the records of FlippedReports
    "Subsampled": "shufflebounds.sampling.poisson",           # LocalRandomizer.subsampled
    "certify": "shufflebounds.certify",                       # PrivacyProfile.certify
    "plot_profile": "shufflebounds.report.pictures",        # PrivacyProfile.plot
    "statement": "shufflebounds.report.statement",           # PrivacyProfile.statement
    "table": "shufflebounds.report.pictures",               # the table that a notebook shows
    # The command imports only the modules that one result needs, because its start is most of its run time.
    "AdditiveNoise": "shufflebounds.mechanisms._base",
    "ErrorLaw": "shufflebounds._engines.errors.accuracy",
    "MECHANISMS": "shufflebounds.cli.registry",
    "releases_in": "shufflebounds.cli.release_files",
}
"""The module of each name."""


def late(name: str) -> Any:
    """Return the object called `name` in :data:`LATE`, and import its module if it has not been imported yet."""
    return getattr(import_module(LATE[name]), name)
