"""The command ``shufflebounds noise``: the least noise of a mechanism, or the largest budget, that meets a target."""

from __future__ import annotations

import argparse

from shufflebounds.cli.output.answers import add_releases
from shufflebounds.cli.output.printing import print_report, report
from shufflebounds.cli.parsers import Parser, add_mechanisms
from shufflebounds.cli.registry import MECHANISMS, Mechanism, released
from shufflebounds.cli.targets import TARGET, add_target, answers_to, target_of
from shufflebounds.composition import least_noise
from shufflebounds.profile import PrivacyProfile

__all__ = ["add_arguments", "run"]


def _own(mechanism: Mechanism) -> dict[str, str]:
    return {name: text for name, text in mechanism.options.items() if name != mechanism.noise}


def add_arguments(command: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    def more(sub: Parser, mechanism: Mechanism) -> None:
        add_target(sub)
        add_releases(sub, mechanism)

    chosen = words[0] if words and words[0] in MECHANISMS else None
    names = [name for name in ([chosen] if chosen else MECHANISMS) if MECHANISMS[name].noise is not None]
    if chosen and not names:
        command.error(f"argument MECHANISM: {chosen!r} has no standard deviation, scale or budget to search for; run "
                      f"shufflebounds calibrate {chosen}")
    add_mechanisms(command, words, {}, names=names, wanted=_own, more=more)


def run(arguments: argparse.Namespace) -> None:
    """Compute and print the result."""
    from shufflebounds.cli.release_files import releases_in
    from shufflebounds.profile.profile import Composition

    mechanism = MECHANISMS[arguments.mechanism]
    target = target_of(arguments)
    others = [] if arguments.compose is None else releases_in("--compose", arguments.compose)
    given = {name: getattr(arguments, name) for name in _own(mechanism)}
    users = arguments.users if mechanism.shuffles else None

    def of_noise(x: float) -> tuple[PrivacyProfile, dict[str, object]]:
        profile, told = released(mechanism, {**given, **mechanism.of_noise(x)}, users, arguments.times)
        return Composition(((profile, 1), *others)) if others else profile, told

    profile, told = of_noise(least_noise(lambda x: of_noise(x)[0], **target))
    if others:
        told["compose"] = arguments.compose
    told |= {f"target_{name}": target[name] for name in TARGET if name in target}
    print_report(report(arguments.mechanism, profile, told, answers_to(profile, target)), arguments)
