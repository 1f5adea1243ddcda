"""The table of the classes with and without a certificate, from the dispatch of `shufflebounds.certify` and tests/examples.py."""

import itertools
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from shufflebounds.certify import bounds_of, hockey_stick_of
from tests.examples import EXAMPLES


def _reason(function, profile):
    """Return why there is no certificate, or None."""
    try:
        function(profile)
    except TypeError as reason:
        return str(reason)
    return None


def _parts(profile):
    """Return why one side of a profile that has certificates has none at some eps."""
    for upper, eps in itertools.product((True, False), (0.05, 0.3)):
        try:
            list(bounds_of(profile)(eps, upper))
        except TypeError as reason:
            yield f"{'upper' if upper else 'lower'} bound at some eps: {reason}"


def _rows(name, profiles):
    """Return the rows of a class: one, or for shuffled protocols one for each randomizer."""
    groups = {}
    for profile in profiles:
        randomizer = getattr(profile, "randomizer", None)
        groups.setdefault(name if randomizer is None else f"{name} of {type(randomizer).__name__}", []).append(profile)
    for title, group in groups.items():
        reasons = [_reason(bounds_of, profile) for profile in group]
        known = [profile for profile, reason in zip(group, reasons) if reason is None]
        alone = [_reason(hockey_stick_of, profile) is None for profile in known]
        both = "upper and lower bound" + (", delta itself if all outcomes are enumerated" if any(alone) else "")
        kind = "none" if not known else "delta itself" if all(alone) else both
        parts = [reason for profile in known for reason in _parts(profile)]
        without = "; ".join(dict.fromkeys([*(reason for reason in reasons if reason is not None), *parts]))
        yield f"| `{title}` | {kind} | {len(known)} of {len(group)} | {without} |"


def table():
    """Return the table: what is certified, and the reason for the objects that have no certificate."""
    lines = ["| class | certificate | objects of tests/examples.py | without certificate, because |", "|---|---|---|---|"]
    for name, example in EXAMPLES.items():
        lines += _rows(name, example.profiles())
    return "\n".join(lines)
