r"""Certificates for groups of records.

A chain of neighbouring datasets changes the k records one after the other. For eps_1 + ... + eps_k <= eps, delta of the group is at
most the sum of e^(eps_1 + ... + eps_(j-1)) delta(eps_j) (docs/composition). The witness is the list of the eps_j; each delta(eps_j)
is certified by itself.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from shufflebounds.certify._dispatch import Bounds, bounds_of, hockey_stick_of, kinds_of, of_people, reached
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, arb, both_orders
from shufflebounds.certify.by_definition import Bits, moved


def _difference(protocol: Any) -> list[Bits]:
    """Return the distribution of the difference of two counts that all records of a group change alike."""
    if "ClearReports" in kinds_of(protocol):
        share = arb(1) / protocol.bins
        return [(share, 1 - 2 * share, share, protocol.fakes)]
    gamma = arb(protocol.gamma)
    return [(gamma, 1 - gamma, protocol.users), (1 - gamma, gamma, protocol.users)]


@hockey_stick_of.of("Group")
def _(group: Any) -> Answer:
    if group._known.above is None:
        raise NoCertificateError("it has two bounds")
    together = of_people(group.profile) if group.size > 1 else None
    return hockey_stick_of(group._known.above) if together is None else together(group.size)


@bounds_of.of("Group")
def _(group: Any) -> Bounds:
    info, one = group._known, bounds_of(group.profile)
    if info.above is None:
        return lambda eps, upper: [_chain(group, one, eps)] if upper else _lower(group, one, eps)
    if group.size > 1 and of_people(group.profile) is not None:
        return bounds_of.default(group)
    return lambda eps, upper: bounds_of(info.above if upper else info.below)(eps, upper)


def _chain(group: Any, one: Bounds, eps: float) -> Answer:
    """Return the bound of a chain of changes."""
    profile, chain = group.profile, group._closed
    split, counts = chain.best(eps)[0].tolist(), [int(many) for many in chain.counts]
    if not eps < chain.pure:
        # delta of every record is 0 at an equal part of the group's pure budget.
        split, counts = [math.nextafter(eps / group.size, 0.0)], [group.size]
    whole = sum(Fraction(at) * many for at, many in zip(split, counts, strict=True))
    if sum(counts) != group.size or whole > Fraction(eps):
        raise ArithmeticError("the parts of eps are too large")
    listed = {at: list(one(at, True)) for at in split}
    operations = sum(min((way.operations for way in ways[:-1] or ways), default=0.0) for ways in listed.values())

    def value(factor: Ball) -> Ball:
        # 10 s is the limit of the predicted run time at one eps.
        deltas = {at: reached(profile, ways, at, "upper", 15, 10.0) for at, ways in listed.items()}
        total, before = arb(0), arb(1)
        for at, many in zip(split, counts, strict=True):
            step = arb(at).exp()
            total += before * deltas[at] * ((step**many - 1) / (step - 1) if at > 0 else many)
            before *= step**many
        return total.min(arb(1))

    return Answer(operations, value, max(way.tolerance for ways in listed.values() for way in ways), refined=False)


def _lower(group: Any, one: Bounds, eps: float) -> Iterator[Answer]:
    """Yield the lower bounds of one record, then that of a test of the whole group."""
    yield from one(eps, False)
    if {"ClearReports", "ShuffledHistogram"} & set(kinds_of(group.profile)):
        yield Answer(1e6, lambda factor: both_orders(moved(_difference(group.profile), 2 * group.size), factor))
    elif len(group._closed.ways) > 1:
        raise NoCertificateError("the test of a whole group is not certified")
