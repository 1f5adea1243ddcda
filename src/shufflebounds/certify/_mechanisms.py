"""Certified hockey-stick divergences, in interval arithmetic, of local randomizers and additive noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from shufflebounds.certify._dispatch import OPERATIONS, hockey_stick_of, outcomes_of
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, Outcomes, flint, hockey_stick, larger, polynomial
from shufflebounds.certify.families import family_of


@outcomes_of.of("KaryResponse")
@outcomes_of.of("RandomizedResponse")
@outcomes_of.of("RatioBounded")
@outcomes_of.of("PureLocal")
@outcomes_of.of("LocalHashing")
@outcomes_of.of("SubsetSelection")
@outcomes_of.of("HadamardResponse")
@outcomes_of.of("UnaryEncoding")
@outcomes_of.of("PrivUnit")
def _(mechanism: Any) -> tuple[float, Callable[[], Outcomes]]:
    # All pairs of values are equivalent, in both orders.
    size, family = family_of(mechanism)

    def outcomes() -> Outcomes:
        laws = family()
        return list(zip(laws.rows[0], laws.rows[1], strict=True))

    return float(size), outcomes


@hockey_stick_of.of("FiniteRandomizer")
def _(mechanism: Any) -> Answer:
    size, family = family_of(mechanism)

    def value(factor: Ball) -> Ball:
        laws = family()
        return larger(*(hockey_stick(zip(laws.rows[i], laws.rows[j], strict=True), factor) for i, j in laws.pairs))

    return Answer(OPERATIONS * size, value)


@outcomes_of.of("GeometricMechanism")
def _(mechanism: Any) -> tuple[float, Callable[[], Outcomes]]:
    if mechanism.bound is not None:
        raise NoCertificateError("geometric noise with a bound")
    d = mechanism.sensitivity

    def outcomes() -> Outcomes:
        q = (-flint().arb(mechanism.eps) / d).exp()
        ends = 1 / (1 + q), q**d / (1 + q)
        between = [q**k * (1 - q) / (1 + q) for k in range(1, d)]
        return [ends, ends[::-1], *zip(between, between[::-1], strict=True)]

    return float(d) + 1, outcomes


@hockey_stick_of.of("GeometricMechanism")
def _(mechanism: Any) -> Answer:
    if mechanism.bound is None:
        return hockey_stick_of.default(mechanism)
    bound, most = mechanism.bound, mechanism.sensitivity

    def value(factor: Ball) -> Ball:
        ball = flint().arb
        q = (-ball(mechanism.eps) / most).exp()
        inner = [q**k * (1 - q) / (1 + q) for k in range(bound)]
        end = q**bound / (1 + q)
        law = [end, *inner[:0:-1], *inner, end] if bound else [ball(1)]
        divergences = []
        for shift in range(1, most + 1):
            gap = [ball(0)] * shift
            divergences.append(hockey_stick(zip([*law, *gap], [*gap, *law], strict=True), factor))
        return larger(*divergences)

    return Answer(10.0 * most * (2 * bound + most), value)


@hockey_stick_of.of("ThresholdedCount")
def _(mechanism: Any) -> Answer:
    noise, smallest = mechanism.noise, mechanism.threshold - mechanism.noise.sensitivity
    alone = hockey_stick_of(noise)

    def value(factor: Ball) -> Ball:
        q = (-flint().arb(noise.eps) / noise.sensitivity).exp()
        # The probability that the noise is at least `smallest`, which is positive.
        released = 0 * q if noise.bound is not None and smallest > noise.bound else q**smallest / (1 + q)
        return larger(alone.value(factor), released)

    return alone._replace(value=value)


@hockey_stick_of.of("DiscreteGaussianMechanism")
def _(mechanism: Any) -> Answer:
    sigma, shift = mechanism.sigma, mechanism.sensitivity

    def value(factor: Ball) -> Ball:
        ball = flint().arb
        square = 2 * ball(sigma) ** 2

        def tail(j: int) -> Ball:
            """Return a bound of the sum of e^(-i^2/square) over i >= j > 0: the ratio of two terms decreases."""
            return (-ball(j) ** 2 / square).exp() / -(-(2 * ball(j) + 1) / square).expm1()

        def mass(j: int) -> Ball:
            return (-ball(j) * j / square).exp()

        def end(start: int) -> int:
            """Return an index beyond which the terms are negligible at the current precision."""
            return math.ceil(math.sqrt(max(start, 0) ** 2 + 2 * sigma**2 * (0.7 * flint().ctx.prec + 10))) + 1

        last = end(0)
        whole = 1 + 2 * sum((mass(j) for j in range(1, last)), ball(0)) + (2 * tail(last)).union(ball(0))
        # The likelihood ratio of j and j + shift increases with j, so all positive terms are above the threshold m.
        start = math.floor(float((square * factor.log() / (2 * shift) - ball(shift) / 2).lower())) - 1
        rest = ball(0)
        if start < -last:
            start, rest = -last, tail(last)
        last = end(start)
        gains = sum(((mass(j) - factor * mass(j + shift)).max(ball(0)) for j in range(start, last)), ball(0))
        return (gains + (rest + tail(last)).union(ball(0))) / whole

    return Answer(400.0 * (sigma + 1), value)


@outcomes_of.of("Rappor")
def _(mechanism: Any) -> tuple[float, Callable[[], Outcomes]]:
    differ = mechanism.hashes if mechanism.bits is None else min(mechanism.hashes, mechanism.bits - mechanism.hashes)

    def outcomes() -> Outcomes:
        f, p, q = (flint().arb(x) for x in (mechanism.f, mechanism.p, mechanism.q))
        one, other = p - f * (p - q) / 2, q + f * (p - q) / 2
        # The likelihood ratio depends only on the number of ones among the bits of the first value, plus zeros among those of the
        # second value.
        first, second = ([(1 - a, a, differ), (b, 1 - b, differ)] for a, b in ((one, other), (other, one)))
        return list(zip(polynomial(first), polynomial(second), strict=True))

    return 2.0 * differ + 1, outcomes


@outcomes_of.of("BitPair")
def _(pair: Any) -> tuple[float, Callable[[], Outcomes]]:
    def outcomes() -> Outcomes:
        flip = flint().arb(pair.flip)
        others = [(flip, 1 - flip, pair.ones), (1 - flip, flip, pair.zeros)]
        zero, one = (polynomial([*others, target]) for target in ((1 - flip, flip, 1), (flip, 1 - flip, 1)))
        return list(zip(one, zero, strict=True)) if pair.reversed else list(zip(zero, one, strict=True))

    return float(pair.ones + pair.zeros + 2), outcomes


@hockey_stick_of.of("GaussianMechanism")
def _(mechanism: Any) -> Answer:
    return _gaussian(mechanism.sigma, lambda: flint().arb(mechanism.sensitivity))


@hockey_stick_of.of("GaussianVector")
def _(mechanism: Any) -> Answer:
    square = mechanism.dimension if mechanism.domain == "cube" else 4
    return _gaussian(mechanism.sigma, lambda: flint().arb(square).sqrt())


def _gaussian(sigma: float, sensitivity: Callable[[], Ball]) -> Answer:
    """Return delta of normal noise."""

    def value(factor: Ball) -> Ball:
        ball = flint().arb
        mu, root = sensitivity() / ball(sigma), ball(2).sqrt()
        middle = factor.log() / mu
        return ((middle - mu / 2) / root).erfc() / 2 - factor * ((middle + mu / 2) / root).erfc() / 2

    return Answer(10 * OPERATIONS, value)


@hockey_stick_of.of("LaplaceMechanism")
def _(mechanism: Any) -> Answer:
    def value(factor: Ball) -> Ball:
        ball = flint().arb
        return (-((factor.log() - ball(mechanism.sensitivity) / mechanism.scale) / 2).expm1()).max(ball(0))

    return Answer(OPERATIONS, value)
