"""What the command knows of every mechanism, read off its class: constructor, options, words, defaults, calibration.

A public dataclass of ``shuffle`` or ``mechanisms`` whose parameters are numbers or words is a mechanism of the command, by its name
in small letters; nothing is listed here but what the class itself cannot say.
"""

from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from typing import Any, Literal

from shufflebounds import mechanisms, shuffle
from shufflebounds.profile import PrivacyProfile

__all__ = ["MECHANISMS", "Mechanism", "plain", "released", "summary"]

SHORT = {"ShuffledHistogram": "histogram"}
"""Names that are not the class's own."""

ASKED = {"eps": "budget", "delta": "delta_of_mechanism"}
"""Parameters whose names are questions of the command, and what the options are called."""

USUAL: Mapping[str, Mapping[str, Any]] = {"binomial-noise": {"prob": 0.5}, "flipped-reports": {"fakes": 0}}
"""Defaults that the class leaves open."""

CALIBRATES = ("calibrate", "from_dp", "from_eps")
"""Class methods that find the cheapest parameters for eps and delta."""


@dataclass(frozen=True)
class Mechanism:
    """How the command builds one mechanism: its constructor and what each of its options means."""

    build: type[PrivacyProfile]
    options: dict[str, str]
    defaults: dict[str, Any]
    words: dict[str, tuple[str, ...]]
    calibrate: Callable[..., PrivacyProfile] | None = None
    renamed: dict[str, str] = field(default_factory=dict)
    """From option to the constructor's parameter, where the two differ."""

    def make(self, given: dict[str, Any]) -> PrivacyProfile:
        """Return the profile with the given options."""
        try:
            return self.build(**{self.renamed.get(name, name): value for name, value in given.items()})
        except ValueError as problem:
            for option, name in self.renamed.items():
                if str(problem).startswith(f"{name}="):
                    raise ValueError(str(problem).replace(name, option, 1)) from None
            raise

    def required(self, name: str) -> bool:
        """Return whether the option must be given."""
        return name not in self.defaults

    @property
    def shuffles(self) -> bool:
        """Whether this is what one user runs, so that many users' messages may be shuffled."""
        return hasattr(self.build, "shuffled") and "users" not in self.options

    def calibration_options(self) -> dict[str, str]:
        """Return the mechanism's own options that its calibration takes as given."""
        assert self.calibrate is not None
        taken = inspect.signature(self.calibrate).parameters
        return {name: text for name, text in self.options.items() if name in taken}

    def calibration_needs(self, name: str) -> bool:
        """Return whether the calibration must be told the option: not where it finds it itself."""
        assert self.calibrate is not None
        taken = inspect.signature(self.calibrate).parameters.get(name)
        return self.required(name) and (taken is None or taken.default is inspect.Parameter.empty)


_MARKUP = (
    (r":\w+:`~?(?:[^`]*\.)?([^`.]*)`", r"\1"),
    (r"\\varepsilon", "eps"),
    (r"\\(Delta|sigma|gamma|lambda|log|ln|exp|max|min)(?![a-z])", r"\1"),
    (r"\^\{([^{}]*)\}", r"^(\1)"),
    (r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)"),
    (r"\\le\b", "<="),
    (r"\\[a-z]+|[{}]", ""),
    (r":math:|`|\*\*(?=\w+\b[^*]*\*\*)", ""),
)


def plain(line: str) -> str:
    """Return a line of a docstring without its markup."""
    math = re.compile(r":math:`([^`]*)`")
    line = math.sub(r"\1", line)
    for pattern, text in _MARKUP:
        line = re.sub(pattern, text, line)
    return " ".join(line.split())


def summary(documented: Any) -> str:
    """Return the first line of a docstring, in plain words."""
    return plain((inspect.getdoc(documented) or "").partition("\n")[0])


def _described(build: type) -> dict[str, str]:
    """Return the first sentence of every parameter in the class's docstring."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", inspect.getdoc(build) or "", re.S | re.M)
    out: dict[str, str] = {}
    for names, text in re.findall(r"^([\w, ]+) : [^\n]*\n((?:    [^\n]*\n?|\n)*)", section[1] if section else "", re.M):
        sentence = re.split(r"(?<=[^ .]{2})[.;](?:\s|$)", " ".join(text.split()), maxsplit=1)[0]
        out.update((name, plain(sentence)) for name in names.split(", "))
    return out


def _words(hint: Any) -> tuple[str, ...]:
    """Return the words that a type hint allows."""
    if typing.get_origin(hint) is Literal:
        return tuple(word for word in typing.get_args(hint) if isinstance(word, str))
    return tuple(word for part in typing.get_args(hint) for word in _words(part))


def _is_scalar(hint: Any) -> bool:
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union else (hint,)
    return all(part in (int, float, str, bool, type(None)) or typing.get_origin(part) is Literal for part in parts)


def _read(name: str, build: Any) -> Mechanism | None:
    """Return the mechanism that a class describes, or None where it is not one that a few words can name."""
    if not (isinstance(build, type) and is_dataclass(build) and issubclass(build, PrivacyProfile)) or inspect.isabstract(build):
        return None
    hints, told = typing.get_type_hints(build), _described(build)
    asked = [f for f in fields(build) if f.init]
    if not asked or not all(_is_scalar(hints[f.name]) for f in asked):
        return None
    called = {f.name: ASKED.get(f.name, f.name) for f in asked}
    defaults = {called[f.name]: f.default for f in asked if f.default is not MISSING}
    finds = next((getattr(build, method) for method in CALIBRATES if hasattr(build, method)), None)
    if finds is not None and not {"eps"} <= inspect.signature(finds).parameters.keys():
        finds = None
    return Mechanism(
        build,
        {called[f.name]: told.get(f.name, f.name) for f in asked},
        {**defaults, **USUAL.get(name, {})},
        {called[f.name]: words for f in asked if (words := _words(hints[f.name]))},
        finds,
        {option: parameter for parameter, option in called.items() if option != parameter},
    )


class _Registry(Mapping[str, Mechanism]):
    """Mechanisms by name; a class is looked at when it is asked for."""

    def __init__(self) -> None:
        self._places = {
            SHORT.get(name) or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name.removesuffix("Mechanism")).lower(): (room, name)
            for room in (shuffle, mechanisms)
            for name in room.__all__
            if name[0].isupper()
        }

        self._found: dict[str, Mechanism | None] = {}

    def _find(self, name: str) -> Mechanism | None:
        if name not in self._found:
            room, known = self._places[name]
            self._found[name] = _read(name, getattr(room, known))
        return self._found[name]

    def __getitem__(self, name: str) -> Mechanism:
        if name not in self._places or (found := self._find(name)) is None:
            raise KeyError(name)
        return found

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._places if self._find(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


MECHANISMS = _Registry()


def released(mechanism: Mechanism, given: dict[str, Any], users: Any = None, times: Any = None) -> PrivacyProfile:
    """Return the mechanism with the given options, shuffled and composed as asked."""
    profile = mechanism.make(given)
    if users is not None:
        profile = profile.shuffled(users)  # type: ignore[attr-defined]
    return profile if times is None else profile.self_compose(times)
