"""The table of the classes with and without a certificate, from the dispatch of `shufflebounds.certify` and tests/examples.py,
and the counts of the campaign `certify` from tests/fuzz/certified.json.
"""

import itertools
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from shufflebounds.certify import bounds_of, hockey_stick_of
from tests.examples import EXAMPLES, class_of
from tests.fuzz.certify import CERTIFIED


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


def _row(title, group, counts):
    """Return the row of a class; `counts` has its counts in the campaign, or None."""
    reasons = [_reason(bounds_of, profile) for profile in group]
    known = [profile for profile, reason in zip(group, reasons) if reason is None]
    alone = [_reason(hockey_stick_of, profile) is None for profile in known]
    both = "upper and lower bound" + (", delta itself if all outcomes are enumerated" if any(alone) else "")
    kind = "none" if not known else "delta itself" if all(alone) else both
    parts = [reason for profile in known for reason in _parts(profile)]
    without = "; ".join(dict.fromkeys([*(reason for reason in reasons if reason is not None), *parts]))
    asked, found = counts.get("asked", 0), counts.get("upper", 0) + counts.get("lower", 0)
    return f"| `{title}` | {kind} | {len(known)} of {len(group)} | {found:,} of {asked:,} | {without} |"


def table():
    """Return the table: what is certified, and the reason for the objects that have no certificate."""
    counts, groups = json.loads(CERTIFIED.read_text())["classes"], {}
    for example in EXAMPLES.values():
        for profile in example.profiles():
            groups.setdefault(class_of(profile), []).append(profile)
    lines = ["| class | certificate | objects of tests/examples.py | bounds certified in the campaign | "
             "without certificate, because |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *(_row(title, group, counts.get(title, {})) for title, group in groups.items())])
