"""Certified hockey-stick divergences, in interval arithmetic, of local randomizers and additive noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shufflebounds.certify._dispatch import OPERATIONS, hockey_stick_of, outcomes_of
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, Outcomes, flint, hockey_stick, larger, polynomial
from shufflebounds.certify.families import family_of, geometric_row
from shufflebounds.certify.opposite import NOISES


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
    return float(d) + 1, lambda: list(zip(geometric_row(mechanism, 0), geometric_row(mechanism, d), strict=True))


@hockey_stick_of.of("GeometricMechanism")
def _(mechanism: Any) -> Answer:
    if mechanism.bound is None:
        return hockey_stick_of.default(mechanism)
    d = mechanism.sensitivity

    def value(factor: Ball) -> Ball:
        first = geometric_row(mechanism, 0)
        return larger(*(hockey_stick(zip(first, geometric_row(mechanism, x), strict=True), factor) for x in range(1, d + 1)))

    return Answer(10.0 * d * (2 * mechanism.bound + d), value)


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
    def value(factor: Ball) -> Ball:
        noise, ball = NOISES["DiscreteGaussianMechanism"](mechanism), flint().arb
        d, square = noise.sensitivity, ball(mechanism.sigma) ** 2
        # The likelihood ratio of the noise around 0 and around -d increases: all outputs above this threshold count.
        edge = square * factor.log() / d - d / 2
        first, last = (int(end.floor().unique_fmpz()) + 1 for end in (edge.lower(), edge.upper()))
        return larger(*((noise.tail(ball(k)) - factor * noise.tail(k + d)).max(ball(0)) for k in {first, last}))

    return Answer(400.0 * (mechanism.sigma + 1), value)


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
