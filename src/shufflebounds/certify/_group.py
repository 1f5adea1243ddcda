r"""Certificates for groups of records.

A chain changes the k records one after the other. For eps_1 + ... + eps_k <= eps, delta of the group is at most the sum of
e^(eps_1 + ... + eps_(j-1)) delta(eps_j) (docs/composition). The witness is the split; each delta(eps_j) is certified by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from shufflebounds.certify._by_kind import by_kind
from shufflebounds.certify._dispatch import Bounds, bounds_of, hockey_stick_of, reached
from shufflebounds.certify._shuffle import exact_bits, moved_noise, of_bits
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, flint, hockey_stick

SECONDS = 10.0
"""Limit of the predicted run time for one record at one eps."""


@by_kind
def _together(profile: Any) -> Callable[[int], Answer] | None:
    """Return the function from the size of a group to its exact delta, or None if it is not enumerated."""
    return None


@_together.of("BinomialNoise")
def _(noise: Any) -> Callable[[int], Answer]:
    return lambda size: moved_noise(noise.trials, noise.prob, size)


@_together.of("ZeroSum")
def _(protocol: Any) -> Callable[[int], Answer]:
    return lambda size: moved_noise(protocol.users, protocol.gamma, size)


@_together.of("ShuffledBits")
def _(protocol: Any) -> Callable[[int], Answer]:
    return lambda size: of_bits(protocol._bits, lambda: flint().arb(protocol.flip), size)


@_together.of("RealSum")
def _(protocol: Any) -> Callable[[int], Answer]:
    return lambda size: of_bits(protocol.users * protocol.bits, lambda: flint().arb(protocol.flip), size * protocol.bits)


@_together.of("Shuffled")
def _(protocol: Any) -> Callable[[int], Answer]:
    return lambda size: exact_bits(protocol, size)


@by_kind
def _difference(protocol: Any) -> Callable[[], Any] | None:
    """Return the generating function of the difference of two counts that all records of a group change alike, or None."""
    return None


@_difference.of("ClearReports")
def _(protocol: Any) -> Callable[[], Any]:
    def dummies() -> Any:
        share = flint().arb(1) / protocol.bins
        return flint().arb_poly([share, 1 - 2 * share, share]) ** protocol.fakes

    return dummies


@_difference.of("ShuffledHistogram")
def _(protocol: Any) -> Callable[[], Any]:
    def noise() -> Any:
        line, gamma = flint().arb_poly, flint().arb(protocol.gamma)
        return (line([gamma, 1 - gamma]) * line([1 - gamma, gamma])) ** protocol.users

    return noise


@hockey_stick_of.of("Group")
def _(group: Any) -> Answer:
    if group._known.above is None:
        bounds_of(group.profile)  # raises NoCertificateError if there is none
        raise NoCertificateError("it has two bounds, so pass bound='upper' or bound='lower'")
    together = _together(group.profile) if group.size > 1 else None
    return hockey_stick_of(group._known.above) if together is None else together(group.size)


@bounds_of.of("Group")
def _(group: Any) -> Bounds:
    info, one = group._known, bounds_of(group.profile)
    if info.above is None:
        return lambda eps, upper: [_chain(group, one, eps)] if upper else _lower(group, one, eps)
    if group.size > 1 and _together(group.profile) is not None:
        return bounds_of.default(group)
    below, above = bounds_of(info.below), bounds_of(info.above)
    return lambda eps, upper: (above if upper else below)(eps, upper)


def _chain(group: Any, one: Bounds, eps: float) -> Answer:
    """Return the bound of a chain of changes."""
    profile, chain = group.profile, group._closed
    split, counts = [part.tolist() for part in (chain.best(eps)[0], np.asarray(chain.counts, dtype=int))]
    whole = sum(Fraction(at) * many for at, many in zip(split, counts, strict=True))
    if sum(counts) != group.size or whole > Fraction(eps):
        raise ArithmeticError("the parts of eps are too large")
    listed = {at: list(one(at, True)) for at in split}
    operations = sum(min((way.operations for way in ways[:-1] or ways), default=0.0) for ways in listed.values())

    def value(factor: Ball) -> Ball:
        ball = flint().arb
        deltas = {at: reached(profile, ways, at, "upper", 15, SECONDS).upper() for at, ways in listed.items()}
        total, before = ball(0), ball(1)
        for at, many in zip(split, counts, strict=True):
            step = ball(at).exp()
            total += before * deltas[at] * ((step**many - 1) / (step - 1) if at > 0 else many)
            before *= step**many
        return total.min(ball(1))

    return Answer(operations, value, max(way.tolerance for ways in listed.values() for way in ways), refined=False)


def _lower(group: Any, one: Bounds, eps: float) -> Iterator[Answer]:
    """Yield the lower bounds of one record, then that of a test of the whole group."""
    yield from one(eps, False)
    difference = _difference(group.profile)
    if difference is not None:
        yield _test(difference, 2 * group.size)
    elif len(group._closed.ways) > 1:
        raise NoCertificateError("the test of a whole group is not certified")


def _test(difference: Callable[[], Any], shift: int) -> Answer:
    """Return the larger divergence, of both orders, of a sum and the sum that is moved by `shift`."""

    def value(factor: Ball) -> Ball:
        law = difference()
        masses, gap = [law[k] for k in range(law.degree() + 1)], [flint().arb(0)] * shift
        both = [[*gap, *masses], [*masses, *gap]]
        return hockey_stick(zip(*both, strict=True), factor).max(hockey_stick(zip(*both[::-1], strict=True), factor))

    return Answer(1e6, value)
