"""The target of a search for noise on the command line: eps and delta, an advantage, or the two error rates of an attack."""

from __future__ import annotations

import argparse

from shufflebounds.cli.output.printing import SIDES, both
from shufflebounds.cli.parsers import Parser
from shufflebounds.profile import PrivacyProfile

__all__ = ["RISKS", "TARGET", "add_target", "answers_to", "target_of"]

RISKS = {
    "advantage": "target in place of eps and delta: the largest difference of the probabilities of a test under the two neighbours",
    "fpr": "target in place of eps and delta, with --fnr: the false-positive rate of an attack",
    "fnr": "least false-negative rate of every attack with a false-positive rate of at most --fpr",
}
TARGET = {"eps": "target privacy loss in nats, with --delta", "delta": "failure probability", **RISKS}


def add_target(parser: Parser) -> None:
    """Add the options of a target."""
    for name, text in TARGET.items():
        parser.add_argument(f"--{name}", type=float, help=text)


def target_of(arguments: argparse.Namespace) -> dict[str, float]:
    """Return the target that is given, checked: one of its three kinds."""
    given = {name: value for name in TARGET if (value := getattr(arguments, name)) is not None}
    if set(given) not in ({"eps", "delta"}, {"advantage"}, {"fpr", "fnr"}):
        raise ValueError("give one target: --eps and --delta, or --advantage, or --fpr and --fnr")
    return given


def answers_to(profile: PrivacyProfile, target: dict[str, float]) -> dict[str, dict[str, float]]:
    """Return both bounds of the quantities that the target limits: delta and epsilon, the advantage, or the error rate fnr."""
    if "delta" in target:
        return {"delta": both(profile.delta, target["eps"]), "epsilon": both(profile.epsilon, target["delta"])}
    if "advantage" in target:
        return {"advantage": both(profile.delta, 0.0)}
    return {"fnr": {side: float(profile.tradeoff(bound=side).beta(target["fpr"])) for side in SIDES}}
