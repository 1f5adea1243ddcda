"""Conversion of profiles to plain data and back: the name of the class and its parameters."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from shufflebounds._docs import with_passages
from shufflebounds.profile.bounded_profile import BoundedProfile

if TYPE_CHECKING:
    from shufflebounds.profile.profile import PrivacyProfile

__all__ = ["from_dict", "to_dict"]

SUBPACKAGES = ("mechanisms", "sampling", "shuffle")
"""Subpackages that define classes of profiles, and that may not have been imported yet."""


def to_dict(profile: BoundedProfile) -> dict[str, Any]:
    """Return a profile as plain data for JSON.

    Parameters
    ----------
    profile : PrivacyProfile
        Any of this library, compositions included, whose parameters are numbers, words, sequences or profiles.

    Returns
    -------
    dict
        ``{"profile": class, parameter: value, ...}``; `from_dict` restores all numbers exactly. A parameter that is itself called
        ``profile``, as of :class:`~shufflebounds.sampling.ReplaceOne`, has the key ``profile_``.

    Raises
    ------
    TypeError
        If `profile` is no profile, or has a parameter of another kind, such as a function.

    Examples
    --------
    >>> from shufflebounds.composition import from_dict, to_dict
    >>> from shufflebounds.mechanisms import GaussianMechanism
    >>> data = to_dict(GaussianMechanism(2.0).subsampled(0.1))
    >>> data["profile"], data["rate"]
    ('Subsampled', 0.1)
    >>> from_dict(data) == GaussianMechanism(2.0).subsampled(0.1)
    True
    """
    if not isinstance(profile, BoundedProfile):
        raise TypeError(f"{profile!r} must be a PrivacyProfile")
    if not dataclasses.is_dataclass(profile):
        raise TypeError(f"{profile!r} has no list of parameters to save")
    known = _classes().get(type(profile).__name__)
    if known is not type(profile):
        raise TypeError(f"{type(profile).__name__} is not a class of this library: only those can be read again")
    fields = {_key(field.name): _plain(getattr(profile, field.name)) for field in dataclasses.fields(profile) if field.init}
    return {"profile": type(profile).__name__, **fields}


@with_passages
def from_dict(data: Mapping[str, Any]) -> PrivacyProfile:
    """Return the profile that `to_dict` saved; its parameters are validated as in a call of its class.

    Parameters
    ----------
    data : mapping
        From :func:`to_dict`.

    Returns
    -------
    PrivacyProfile
        Equal to the one saved.

    {raises: If the class is unknown, or a parameter is missing, unknown or out of range.}
    """
    if not isinstance(data, Mapping) or "profile" not in data:
        raise ValueError(f"{data!r} is no saved profile: it must be a mapping with the key 'profile'")
    name = data["profile"]
    kind = _classes().get(name) or _classes(everywhere=True).get(name)
    if kind is None:
        raise ValueError(f"profile={name!r} is no class of this library")
    values = {"profile" if key == "profile_" else key: _built(value) for key, value in data.items() if key != "profile"}
    try:
        return cast("PrivacyProfile", kind(**values))
    except TypeError as problem:
        raise ValueError(f"{name} cannot be made of {sorted(values)}: {problem}") from None


def _key(name: str) -> str:
    """Return the key under which a parameter is saved; "profile" is the key of the class's name."""
    return "profile_" if name == "profile" else name


def _classes(*, everywhere: bool = False) -> dict[str, type[BoundedProfile]]:
    """Return the classes of this library by name, either the imported ones or all. These classes are public: names are unique."""
    if everywhere:
        # Subpackages import their modules on first use, and this module must not depend on them, so it imports them by name.
        for subpackage in SUBPACKAGES:
            module = importlib.import_module(f"shufflebounds.{subpackage}")
            for name in module.__all__:
                getattr(module, name)
    found: dict[str, type[BoundedProfile]] = {}
    rest = list(BoundedProfile.__subclasses__())
    while rest:
        kind = rest.pop()
        rest += kind.__subclasses__()
        if kind.__module__.startswith("shufflebounds.") and dataclasses.is_dataclass(kind):
            found[kind.__name__] = kind
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, BoundedProfile):
        return to_dict(value)
    if isinstance(value, np.generic | np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not np.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{value!r} cannot be saved: parameters must be numbers, words, sequences or profiles")


def _built(value: Any) -> Any:
    if isinstance(value, Mapping):
        return float(value["float"]) if set(value) == {"float"} else from_dict(value)
    return tuple(_built(part) for part in value) if isinstance(value, list) else value
