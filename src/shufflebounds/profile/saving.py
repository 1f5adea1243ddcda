"""Conversion of profiles to plain data and back: the name of the class and its parameters."""

from __future__ import annotations

import dataclasses
import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from shufflebounds._base import validate as _validate
from shufflebounds._base.calls import class_given
from shufflebounds._base.docs import with_passages
from shufflebounds.answers.bounded_profile import BoundedProfile

__all__ = ["from_dict", "to_dict"]

SUBPACKAGES = ("interop", "mechanisms", "profile", "sampling", "shuffle")
"""Subpackages that define classes of profiles, and that may not have been imported yet."""

MOST_NESTED = 16
"""Largest depth of profiles and lists in saved data. A composition that contains a `ReplaceOne` of a composition of sampled
mechanisms has 8 levels, and no class accepts a profile with more levels. Raised: adversarial data may use up the 1000 frames of
Python's stack. Lowered: valid saved profiles may raise ValueError."""


def to_dict(profile: BoundedProfile) -> dict[str, Any]:
    """Return a profile as plain data for JSON.

    Parameters
    ----------
    profile : PrivacyProfile
        Any profile of this library, compositions included, whose parameters are numbers, words, sequences or profiles.

    Returns
    -------
    dict
        ``{"profile": class, parameter: value, ...}``; `from_dict` restores all numbers exactly. A parameter that is itself called
        ``profile``, as of :class:`~shufflebounds.sampling.ReplaceOne`, has the key ``profile_``.

    Raises
    ------
    TypeError
        If `profile` is not a profile, or has a parameter that cannot be saved, such as a function.

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
        raise TypeError(f"{profile!r} must be a PrivacyProfile{class_given(profile)}")
    if not dataclasses.is_dataclass(profile):
        raise TypeError(f"{profile!r} has no list of parameters to save")
    name, _ = _maker(type(profile))
    if _classes().get(name) is not type(profile):
        raise TypeError(f"{type(profile).__name__} is not a class of this library with a public name: only those can be read again")
    fields = {_key(field.name): _plain(getattr(profile, field.name)) for field in dataclasses.fields(profile) if field.init}
    return {"profile": name, **fields}


@with_passages
def from_dict(data: Mapping[str, Any]) -> Any:
    """Return the profile that `to_dict` saved; its parameters are validated as in a call of its class.

    Parameters
    ----------
    data : mapping
        The result of :func:`to_dict`.

    Returns
    -------
    PrivacyProfile
        Equal to the profile that was saved.

    {raises: If the class is unknown, or a parameter is missing, unknown or out of range.}
    """
    return _restored(data, 0)


def _restored(data: Any, level: int) -> Any:
    if not isinstance(data, Mapping) or "profile" not in data or not all(isinstance(key, str) for key in data):
        raise ValueError(f"{_validate.short_repr(data)} is no saved profile: it must be a mapping with the key 'profile'")
    name = data["profile"]
    kind = (_classes().get(name) or _classes(everywhere=True).get(name)) if isinstance(name, str) else None
    if kind is None:
        raise ValueError(f"profile={_validate.short_repr(name)} is no class of this library")
    values = {"profile" if key == "profile_" else key: _built(value, level + 1) for key, value in data.items() if key != "profile"}
    try:
        return _maker(kind)[1](**values)
    except TypeError as problem:
        raise ValueError(f"{name} cannot be made of {_validate.short_repr(sorted(values))}: {problem}") from None


def _key(name: str) -> str:
    """Return the key under which a parameter is saved; the key "profile" is reserved for the name of the class."""
    return "profile_" if name == "profile" else name


def _maker(kind: type[BoundedProfile]) -> tuple[str, Callable[..., object]]:
    """Return the name under which a class is saved, and a callable that makes an object of the class from its parameters."""
    maker: tuple[str, Callable[..., object]] = vars(kind).get("_saved_as", (kind.__name__, kind))
    return maker


def _classes(*, everywhere: bool = False) -> dict[str, type[BoundedProfile]]:
    """Return the public classes of this library by name: all of them if `everywhere`, otherwise those imported so far."""
    if everywhere:
        # This module must not depend on the subpackages, so it imports them by name. Each subpackage imports its modules on first
        # use.
        for subpackage in SUBPACKAGES:
            module = importlib.import_module(f"shufflebounds.{subpackage}")
            for name in module.__all__:
                getattr(module, name)
    classes: dict[str, type[BoundedProfile]] = {}
    rest = list(BoundedProfile.__subclasses__())
    while rest:
        kind = rest.pop()
        rest += kind.__subclasses__()
        package, _, path = kind.__module__.partition(".")
        if package == "shufflebounds" and dataclasses.is_dataclass(kind):
            public = getattr(sys.modules.get(f"{package}.{path.partition('.')[0]}"), "__all__", ())
            saved_as, _ = _maker(kind)
            if saved_as in public:
                classes[saved_as] = kind
    return classes


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


def _built(value: Any, level: int) -> Any:
    if level > MOST_NESTED and isinstance(value, Mapping | list):
        raise ValueError(f"the saved profile is nested more than {MOST_NESTED} levels deep")
    if isinstance(value, Mapping):
        if set(value) != {"float"}:
            return _restored(value, level)
        if value["float"] not in ("inf", "-inf", "nan"):
            raise ValueError(f"float={_validate.short_repr(value['float'])} must be one of 'inf', '-inf', 'nan'")
        return float(value["float"])
    return tuple(_built(part, level + 1) for part in value) if isinstance(value, list) else value
