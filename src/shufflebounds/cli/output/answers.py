"""The commands ``epsilon``, ``delta`` and ``calibrate``: both bounds of one number for one mechanism."""

from __future__ import annotations

import argparse
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shufflebounds.cli.output.printing import both, print_report, report
from shufflebounds.cli.parsers import Parser, add_forms, add_mechanisms, number
from shufflebounds.cli.registry import MECHANISMS, Mechanism, released
from shufflebounds.profile import PrivacyProfile

__all__ = ["DELTA", "DEVICES", "EPSILON", "SHUFFLED", "TIMES", "Calibrate", "add_questions", "asked_of", "several_options"]

DEVICES = "largest number of messages of one person in a release (default 1); the number of users then counts messages"
SHUFFLED = "number of users whose messages are shuffled; without it, the guarantee of one user's message alone"
COMPOSE = "a table or JSON of further releases on the same data; - reads standard input"
TIMES = "number of releases, each with fresh randomness (default 1)"


def add_releases(parser: Parser, mechanism: Mechanism) -> None:
    """Add the options that shuffle the mechanism among users and that compose several releases."""
    if mechanism.shuffles:
        parser.add_argument("--users", type=number, help=SHUFFLED)
    parser.add_argument("--times", type=number, help=TIMES)
    parser.add_argument("--devices", type=number, help=DEVICES)
    parser.add_argument("--compose", metavar="FILE", help=COMPOSE)


def add_questions(parser: Parser, words: list[str], extra: dict[str, str],
                  add_own: Callable[[Parser], None] = lambda parser: None) -> None:
    """Add a mechanism's options, the numeric options `extra` and those of `add_own` to the parser.

    If `words`, the arguments, begin with an option and contain --compose, only the releases of the file are composed.
    """
    def more(sub: Parser, mechanism: Mechanism) -> None:
        add_releases(sub, mechanism)
        add_own(sub)

    parser.epilog = "Without a mechanism: --compose FILE composes the releases of a file."
    if not words or not words[0].startswith("--") or "--compose" not in {word.partition("=")[0] for word in words}:
        add_mechanisms(parser, words, extra, more=more)
        return
    parser.add_argument("--compose", metavar="FILE", required=True, help=COMPOSE)
    for option, text in extra.items():
        parser.add_argument(f"--{option}", type=number, required=True, help=text)
    add_forms(parser)
    parser.set_defaults(mechanism=None)
    add_own(parser)


def asked_of(arguments: argparse.Namespace) -> tuple[PrivacyProfile, dict[str, Any]]:
    """Return the profile that the arguments describe, and its parameters as they are printed."""
    from shufflebounds.cli.release_files import releases_in
    from shufflebounds.profile.profile import Composition

    file = arguments.compose
    others = releases_in("--compose", file) if file is not None else []
    if arguments.mechanism is None:
        return Composition(tuple(others)), {"compose": file}
    mechanism = MECHANISMS[arguments.mechanism]
    given = {name: getattr(arguments, name) for name in mechanism.options}
    users = arguments.users if mechanism.shuffles else None
    profile, told = released(mechanism, given, users, arguments.times)
    if file is not None:
        profile, told = Composition(((profile, 1), *others)), {**told, "compose": file}
    if arguments.devices is not None:
        try:
            profile, told = profile.for_group(arguments.devices), {**told, "devices": arguments.devices}
        except ValueError as problem:
            raise ValueError(str(problem).replace("size=", "devices=", 1)) from None
    return profile, told


@dataclass(frozen=True)
class Question:
    """A command with one numeric argument; `answers` are the methods of the profile that compute the result."""

    asked: str
    text: str
    answers: tuple[str, ...]

    def add_arguments(self, parser: Parser, words: list[str]) -> None:
        """Add the arguments of the sub-command to its parser."""
        add_questions(parser, words, {self.asked: self.text})

    def answer(self, arguments: argparse.Namespace) -> dict[str, Any]:
        """Return the report."""
        value = getattr(arguments, self.asked)
        profile, told = asked_of(arguments)
        answers = {answer: both(getattr(profile, answer), value) for answer in self.answers}
        return report(arguments.mechanism or "composition", profile, {**told, self.asked: value}, answers)

    def run(self, arguments: argparse.Namespace) -> None:
        """Compute and print the result."""
        print_report(self.answer(arguments), arguments)


EPSILON = Question("delta", "failure probability", ("epsilon",))
"""The smallest eps at a given delta."""
DELTA = Question("eps", "privacy loss, in nats", ("delta", "log_delta"))
"""The smallest delta at a given eps."""


class Calibrate:
    """The parameters with the smallest error that meet a target."""

    @staticmethod
    def add_arguments(parser: Parser, words: list[str]) -> None:
        """Add the arguments of the sub-command to its parser."""
        chosen = words[0] if words and words[0] in MECHANISMS else None
        names = [name for name in ([chosen] if chosen else MECHANISMS) if MECHANISMS[name].calibrate is not None]
        if chosen and not names:
            way = "noise" if MECHANISMS[chosen].noise is not None else "users"
            advice = f"'shufflebounds {way} {chosen}' finds the {'noise' if way == 'noise' else 'number of users'} for a target"
            parser.error(f"argument MECHANISM: {chosen!r} cannot be calibrated: {advice}")
        extra = {"eps": "privacy loss, in nats", "delta": "failure probability"}
        add_mechanisms(parser, words, extra, names=names, wanted=Mechanism.calibration_options, more=_add_own,
                       required=Mechanism.calibration_needs)

    @staticmethod
    def answer(arguments: argparse.Namespace) -> dict[str, Any]:
        """Return the report."""
        mechanism = MECHANISMS[arguments.mechanism]
        assert mechanism.calibrate is not None
        given = {name: getattr(arguments, name) for name in mechanism.calibration_options()}
        if mechanism.calibrates_shuffled:
            given["users"] = arguments.users
        several = {name: getattr(arguments, name) for name in several_options(mechanism) if getattr(arguments, name) is not None}
        profile = mechanism.calibrate(**given, **several, eps=arguments.eps, delta=arguments.delta)
        whole = profile if several.get("releases", 1) == 1 else profile.self_compose(several["releases"])
        whole = whole if several.get("devices", 1) == 1 else whole.for_group(several["devices"])
        answers = {
            "delta": both(whole.delta, arguments.eps),
            "epsilon": both(whole.epsilon, arguments.delta),
            **_accuracy(profile, getattr(arguments, "users", None)),
        }
        told = mechanism.parameters_of(profile)
        told |= several | {"target_eps": arguments.eps, "target_delta": arguments.delta}
        return report(arguments.mechanism, whole, told, answers)

    @classmethod
    def run(cls, arguments: argparse.Namespace) -> None:
        """Compute and print the result."""
        print_report(cls.answer(arguments), arguments)


def several_options(mechanism: Mechanism) -> dict[str, str]:
    """Return the options of a calibration for several releases, and for several messages of one person."""
    texts = {"releases": "number of releases that meet the target together (default 1); the errors are those of one release",
             "devices": DEVICES}
    taken = inspect.signature(mechanism.calibrate).parameters if mechanism.calibrate is not None else {}
    return {name: text for name, text in texts.items() if name in taken}


def _add_own(parser: Parser, mechanism: Mechanism) -> None:
    """Add options for the numbers of users and of releases, if the calibration or the costs depend on these numbers."""
    for name, text in several_options(mechanism).items():
        parser.add_argument(f"--{name}", type=number, help=text)
    if mechanism.calibrates_shuffled:
        parser.add_argument("--users", type=number, required=True, help="number of users whose messages are shuffled")
    elif _needs_users(mechanism.build):
        text = "number of users, to print the messages per user (the guarantee does not depend on it)"
        parser.add_argument("--users", type=number, help=text)


def _needs_users(protocol: Any) -> bool:
    """Return whether the messages per user depend on the number of users, although this is not a parameter of the protocol."""
    cost = getattr(protocol, "messages_per_user", None)
    return cost is not None and "users" in inspect.signature(cost).parameters


def _accuracy(profile: Any, users: Any = None) -> dict[str, dict[str, float]]:
    """Return the errors of a protocol or of additive noise, and the messages per user."""
    from shufflebounds._engines.errors.accuracy import ErrorLaw
    from shufflebounds.mechanisms._base import AdditiveNoise
    from shufflebounds.mechanisms.oracles._counts import FrequencyOracle
    from shufflebounds.shuffle import Shuffled

    if isinstance(profile, Shuffled):
        if not isinstance(profile.randomizer, FrequencyOracle):
            return {}
        return {"accuracy": {**_accuracy(profile.randomizer.errors(profile.users))["accuracy"], "messages_per_user": 1}}
    noise = isinstance(profile, AdditiveNoise)
    if not noise and not isinstance(profile, ErrorLaw):
        return {}
    told = {"standard_error": math.sqrt(profile.variance if noise else profile.mean_squared_error())}
    if noise or profile._many() == 1:
        told["error_95"] = profile.error_quantile(0.05)
    else:
        told["standard_error_even_data"] = math.sqrt(profile._mean_square(profile._even()))
        told["error_95_one_bin"] = profile.error_quantile(0.05)
        told["error_95_any_bin"] = profile.error_quantile(0.05, of="any")
        told["error_95_any_bin_even_data"] = profile._even_quantile(0.05)
    cost = getattr(profile, "messages_per_user", None)
    if cost is not None and not _needs_users(profile):
        told["messages_per_user"] = cost()
    elif cost is not None and users is not None:
        told["messages_per_user"] = cost(users)
    return {"accuracy": told}
