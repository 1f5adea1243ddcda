"""The command ``shufflebounds users``: the least number of users for which a shuffled mechanism meets a target."""

from __future__ import annotations

import argparse
from typing import Any

from shufflebounds.cli.output.printing import both, print_report, report
from shufflebounds.cli.parsers import Parser, add_mechanisms
from shufflebounds.cli.registry import MECHANISMS, Mechanism
from shufflebounds.shuffle import Shuffled

__all__ = ["add_arguments", "answer", "own", "run", "searches"]

CLONES = ("stronger-clones", "clones")
"""The mechanisms whose parameter is a local budget instead of a randomizer."""


def own(mechanism: Mechanism) -> dict[str, str]:
    """Return the options other than the number of users."""
    return {name: text for name, text in mechanism.options.items() if name != "users"}


def searches(name: str) -> bool:
    """Return whether the number of users can be searched for."""
    return name in CLONES or MECHANISMS[name].shuffles


def add_arguments(command: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    chosen = words[0] if words and words[0] in MECHANISMS else None
    names = [name for name in ([chosen] if chosen else MECHANISMS) if searches(name)]
    if chosen and not names:
        command.error(f"argument MECHANISM: {chosen!r} is not a local randomizer, such as kary-response; to find its parameters "
                      f"for a number of users, run shufflebounds calibrate {chosen}")
    extra = {"eps": "privacy loss after the shuffle, in nats", "delta": "failure probability"}
    add_mechanisms(command, words, extra, names=names, wanted=own)


def answer(arguments: argparse.Namespace) -> dict[str, Any]:
    """Return the report."""
    mechanism = MECHANISMS[arguments.mechanism]
    given = {name: getattr(arguments, name) for name in own(mechanism)}
    if arguments.mechanism in CLONES:
        assert mechanism.calibrate is not None
        profile = mechanism.calibrate(eps=arguments.eps, delta=arguments.delta, **given)
        told = mechanism.parameters_of(profile)
    else:
        local = mechanism.make(given)
        profile = Shuffled.calibrate(local, eps=arguments.eps, delta=arguments.delta)  # type: ignore[arg-type]
        told = {**mechanism.parameters_of(local), "users": profile.users}
    answers = {"delta": both(profile.delta, arguments.eps)}
    return report(arguments.mechanism, profile, {**told, "target_eps": arguments.eps, "target_delta": arguments.delta}, answers)


def run(arguments: argparse.Namespace) -> None:
    """Compute and print the result."""
    print_report(answer(arguments), arguments)
