"""The command ``shufflebounds users``: the fewest users who hide each other well enough, each running one mechanism."""

from __future__ import annotations

import argparse

from shufflebounds.cli.parsers import add_mechanisms
from shufflebounds.cli.printing import both, parameters_of, print_report, report
from shufflebounds.cli.registry import MECHANISMS, Mechanism
from shufflebounds.shuffle import Shuffled

__all__ = ["add_arguments", "run"]

CLONES = ("stronger-clones", "clones")
"""Bounds that are asked for by a local budget."""


def _own(mechanism: Mechanism) -> dict[str, str]:
    return {name: text for name, text in mechanism.options.items() if name != "users"}


def add_arguments(command: argparse.ArgumentParser, words: list[str]) -> None:
    """Give the sub-command its arguments."""
    chosen = words[0] if words and words[0] in MECHANISMS else None
    names = [name for name in ([chosen] if chosen else MECHANISMS) if name in CLONES or MECHANISMS[name].shuffles]
    if chosen and not names:
        command.error(f"argument MECHANISM: {chosen!r} is not what one user runs")
    extra = {"eps": "privacy loss after the shuffle, in nats", "delta": "failure probability"}
    add_mechanisms(command, words, extra, names=names, wanted=_own)


def run(arguments: argparse.Namespace) -> None:
    """Answer."""
    mechanism = MECHANISMS[arguments.mechanism]
    given = {name: getattr(arguments, name) for name in _own(mechanism)}
    if arguments.mechanism in CLONES:
        assert mechanism.calibrate is not None
        profile = mechanism.calibrate(eps=arguments.eps, delta=arguments.delta, **given)
        told = parameters_of(profile, mechanism)
    else:
        local = mechanism.make(given)
        profile = Shuffled.calibrate(local, eps=arguments.eps, delta=arguments.delta)  # type: ignore[arg-type]
        told = {**parameters_of(local, mechanism), "users": profile.users}
    answers = {"delta": both(lambda side: profile.delta(arguments.eps, bound=side))}
    print_report(report(arguments.mechanism, profile, {**told, "target_eps": arguments.eps, "target_delta": arguments.delta},
                        answers), arguments)
