"""The mechanisms of the command with their options, defaults and calibration, all read from the classes.

Every public dataclass of ``shuffle`` or ``mechanisms`` whose parameters are numbers or words is a mechanism. Its name is the class
name in lower case. The constants below list the few exceptions.
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
from shufflebounds._base.lazy import module_name
from shufflebounds.profile import PrivacyProfile

__all__ = ["MECHANISMS", "Mechanism", "parameter_texts", "released", "summary", "without_markup"]

SHORT = {"ShuffledHistogram": "histogram"}
"""Exceptions from this rule: the class, and its name in the command."""

ASKED = {"eps": "budget", "delta": "delta_of_mechanism"}
"""Option names for class parameters with the name eps or delta, because these names are arguments of the command itself."""

USUAL: Mapping[str, Mapping[str, Any]] = {"binomial-noise": {"prob": 0.5}, "flipped-reports": {"fakes": 0}}
"""Defaults of the command for parameters without a default in the class."""

SCALES, BUDGETS = ("sigma", "scale"), ("local_eps", "budget")
"""Options for the amount of noise: a larger scale is more noise, a larger budget less."""

UNUSUAL = ("colluding", "missing")
"""Options that are printed only if they are not 0."""

CALIBRATES = ("calibrate", "from_dp", "from_eps")
"""Class methods that find parameters for a target, in order of preference."""


@dataclass(frozen=True)
class Mechanism:
    """One mechanism of the command: its class, and the help text, default and allowed words of each option."""

    build: type[PrivacyProfile]
    options: dict[str, str]
    defaults: dict[str, Any]
    words: dict[str, tuple[str, ...]]
    calibrate: Callable[..., PrivacyProfile] | None = None
    renamed: dict[str, str] = field(default_factory=dict)
    """For each option whose name differs from that of the constructor's parameter: the name of the parameter."""

    def make(self, given: dict[str, Any]) -> PrivacyProfile:
        """Return the profile with the given options."""
        try:
            return self.build(**{self.renamed.get(name, name): value for name, value in given.items()})
        except ValueError as problem:
            for option, name in self.renamed.items():
                if str(problem).startswith(f"{name}="):
                    raise ValueError(str(problem).replace(name, option, 1)) from None
            raise

    def parameters_of(self, profile: PrivacyProfile) -> dict[str, Any]:
        """Return the profile's parameters by the names of the command's options; with `users` if it is shuffled."""
        one, more = (profile.randomizer, {"users": profile.users}) if isinstance(profile, shuffle.Shuffled) else (profile, {})
        told = {option: getattr(one, self.renamed.get(option, option)) for option in self.options} | more
        return {option: value for option, value in told.items() if value or option not in UNUSUAL}

    def required(self, name: str) -> bool:
        """Return whether the option must be given."""
        return name not in self.defaults

    @property
    def shuffles(self) -> bool:
        """Whether the mechanism is a local randomizer, whose messages may be shuffled (option --users)."""
        return hasattr(self.build, "shuffled") and "users" not in self.options

    @property
    def calibrates_shuffled(self) -> bool:
        """Whether the calibration is for the shuffled messages of a given number of users."""
        return self.shuffles and self.calibrate is not None and "users" in inspect.signature(self.calibrate).parameters

    @property
    def noise(self) -> str | None:
        """The option for the amount of noise; None if the mechanism has none in `SCALES` and `BUDGETS`."""
        return next((name for name in (*SCALES, *BUDGETS) if name in self.options), None)

    def of_noise(self, x: float) -> dict[str, float]:
        """Return the option for the amount of noise with its value for a noise x > 0."""
        assert self.noise is not None
        return {self.noise: x if self.noise in SCALES else 1 / x}

    def calibration_options(self) -> dict[str, str]:
        """Return the options that the calibration takes as arguments."""
        assert self.calibrate is not None
        taken = inspect.signature(self.calibrate).parameters
        return {name: text for name, text in self.options.items() if name in taken}

    def calibration_needs(self, name: str) -> bool:
        """Return whether a calibration needs the option: it has no default, and the calibration does not determine it."""
        assert self.calibrate is not None
        taken = inspect.signature(self.calibrate).parameters.get(name)
        return self.required(name) and (taken is None or taken.default is inspect.Parameter.empty)


_MARKUP = (
    (r":math:`([^`]*)`", r"\1"),
    (r":\w+:`~?(?:[^`]*\.)?([^`.]*)`", r"\1"),
    (r"\\varepsilon", "eps"),
    (r"\\(Delta|sigma|gamma|lambda|log|ln|exp|max|min)(?![a-z])", r"\1"),
    (r"\^\{([^{}]*)\}", r"^(\1)"),
    (r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)"),
    (r"\\le\b", "<="),
    (r"\\[a-z]+|[{}]", ""),
    (r":math:|`|\*\*(?=\w+\b[^*]*\*\*)", ""),
)


def without_markup(line: str) -> str:
    """Return a line of a docstring without markup."""
    for pattern, text in _MARKUP:
        line = re.sub(pattern, text, line)
    return " ".join(line.split())


def summary(documented: Any) -> str:
    """Return the first line of a docstring without markup."""
    return without_markup((inspect.getdoc(documented) or "").partition("\n")[0])


def parameter_texts(docstring: str) -> dict[str, str]:
    """Return the first sentence about each parameter in a docstring."""
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\w[^\n]*\n-+\n|\Z)", docstring, re.S | re.M)
    out: dict[str, str] = {}
    for names, text in re.findall(r"^([\w, ]+) : [^\n]*\n((?:    [^\n]*\n?|\n)*)", section[1] if section else "", re.M):
        sentence = re.split(r"(?<=[^ .]{2})[.;](?:\s|$)", " ".join(text.split()), maxsplit=1)[0]
        out.update((name, without_markup(sentence)) for name in names.split(", "))
    return out


def _words(hint: Any) -> tuple[str, ...]:
    """Return the words that a type hint allows."""
    if typing.get_origin(hint) is Literal:
        return tuple(word for word in typing.get_args(hint) if isinstance(word, str))
    return tuple(word for part in typing.get_args(hint) for word in _words(part))


def _is_scalar(hint: Any) -> bool:
    parts = typing.get_args(hint) if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union else (hint,)
    return all(part in (int, float, str, bool, type(None)) or typing.get_origin(part) is Literal for part in parts)


def _of_budget(build: type, budget: str | None) -> Callable[..., PrivacyProfile] | None:
    """Return the function that finds the local budget of a shuffled local randomizer, or None if there is none.

    If only the number of bins of a frequency oracle is given, its other parameters are those that
    :func:`~shufflebounds.shuffle.compare_at` chooses.
    """
    replaced = (budget, "p", "q")
    own = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
           for name, parameter in inspect.signature(build).parameters.items() if name not in replaced]
    bins = any(parameter.name == "bins" for parameter in own)
    if budget is None and not bins:
        return None

    def calibrate(*, users: int, eps: float, delta: float, releases: int = 1, devices: int = 1, **given: Any) -> PrivacyProfile:
        target: dict[str, Any] = {"users": users, "eps": eps, "delta": delta, "releases": releases, "devices": devices}
        if bins and all(value is None for name, value in given.items() if name != "bins"):
            from shufflebounds.comparison import calibrated_oracle

            return calibrated_oracle(build, bins=given["bins"], **target)
        return shuffle.Shuffled.calibrate(lambda value: build(**given, **{str(budget): value}), **target)

    more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in ("users", "eps", "delta", "releases", "devices")]
    calibrate.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
    return calibrate


def _inspected(name: str, build: Any) -> Mechanism | None:
    """Return the mechanism that a class describes, or None if its parameters are not all numbers or words."""
    if not (isinstance(build, type) and is_dataclass(build) and issubclass(build, PrivacyProfile)) or inspect.isabstract(build):
        return None
    hints, told = typing.get_type_hints(build), parameter_texts(inspect.getdoc(build) or "")
    asked = sorted((f for f in fields(build) if f.init), key=lambda f: f.name in UNUSUAL)
    if not asked or not all(_is_scalar(hints[f.name]) for f in asked):
        return None
    called = {f.name: ASKED.get(f.name, f.name) for f in asked}
    budget = next((parameter for parameter, option in called.items() if option in BUDGETS), None)
    defaults = {called[f.name]: f.default for f in asked if f.default is not MISSING}
    finds = next((getattr(build, method) for method in CALIBRATES if hasattr(build, method)), None)
    if finds is not None and not {"eps"} <= inspect.signature(finds).parameters.keys():
        finds = None
    if finds is None and hasattr(build, "shuffled") and "users" not in called:
        finds = _of_budget(build, budget)
    return Mechanism(
        build,
        {called[f.name]: told.get(f.name, f.name) for f in asked},
        {**defaults, **USUAL.get(name, {})},
        {called[f.name]: words for f in asked if (words := _words(hints[f.name]))},
        finds,
        {option: parameter for parameter, option in called.items() if option != parameter},
    )


class _Registry(Mapping[str, Mechanism]):
    """Mapping from names to mechanisms. A class is inspected when its name is first used."""

    def __init__(self) -> None:
        self._places = {
            SHORT.get(name) or module_name(name).replace("_", "-"): (package, name)
            for package in (shuffle, mechanisms)
            for name in package.__all__
            if name[0].isupper()
        }

        self._found: dict[str, Mechanism | None] = {}

    def _find(self, name: str) -> Mechanism | None:
        if name not in self._found:
            package, attribute = self._places[name]
            self._found[name] = _inspected(name, getattr(package, attribute))
        return self._found[name]

    def __getitem__(self, name: str) -> Mechanism:
        if name not in self._places or (mechanism := self._find(name)) is None:
            raise KeyError(name)
        return mechanism

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._places if self._find(name) is not None)

    def __len__(self) -> int:
        return sum(1 for _ in self)


MECHANISMS = _Registry()


def released(mechanism: Mechanism, given: dict[str, Any], users: Any, times: Any) -> tuple[PrivacyProfile, dict[str, Any]]:
    """Return the mechanism with the given options, shuffled among `users` and composed `times` times if these are not None.

    The second result is the dictionary of the parameters as they are printed.
    """
    profile = mechanism.make(given)
    told = mechanism.parameters_of(profile)
    if users is not None:
        profile, told["users"] = profile.shuffled(users), users  # type: ignore[attr-defined]
    if times is not None:
        profile, told["times"] = profile.self_compose(times), times
    return profile, told
