"""Certified hockey-stick divergences, in interval arithmetic, of local randomizers and additive noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from shufflebounds.certify._dispatch import OPERATIONS, hockey_stick_of, kinds_of, outcomes_of, pairs_of
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, Outcomes, flint, hockey_stick, larger, polynomial
from shufflebounds.certify.families import chances_of, family_of, geometric_row


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
    _, family = family_of(mechanism)

    def outcomes() -> Outcomes:
        laws = family()
        return list(zip(laws.rows[0], laws.rows[1], strict=True))

    return float(len(family().blanket)), outcomes


@outcomes_of.of("GeometricMechanism")
def _(mechanism: Any) -> tuple[float, Callable[[], Outcomes]]:
    if mechanism.bound is not None:
        raise NoCertificateError("geometric noise with a bound")
    d = mechanism.sensitivity
    return float(d) + 1, lambda: list(zip(geometric_row(mechanism, 0), geometric_row(mechanism, d), strict=True))


@pairs_of.of("GeometricMechanism")
def _(mechanism: Any) -> list[tuple[float, Callable[[], Outcomes]]]:
    if mechanism.bound is None:
        return pairs_of.default(mechanism)

    def outcomes(x: int) -> Outcomes:
        return list(zip(geometric_row(mechanism, 0), geometric_row(mechanism, x), strict=True))

    # The inputs x and 0 are mirror images of 0 and x.
    return [(2.0 * mechanism.bound + mechanism.sensitivity + 1, partial(outcomes, x)) for x in range(1, mechanism.sensitivity + 1)]


@hockey_stick_of.of("FiniteRandomizer")
@hockey_stick_of.of("GeometricMechanism")
def _(mechanism: Any) -> Answer:
    pairs = pairs_of(mechanism)
    return Answer(10.0 * sum(size for size, _ in pairs), lambda factor: larger(
        *(hockey_stick(outcomes(), factor) for _, outcomes in pairs)))


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
        noise, ball = noise_of(mechanism), flint().arb
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
        one, other = chances_of(mechanism)
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
@hockey_stick_of.of("GaussianVector")
def _(mechanism: Any) -> Answer:
    def value(factor: Ball) -> Ball:
        ball = flint().arb
        # The largest distance of two vectors is the diameter of the cube or of the sphere.
        size = (ball(mechanism.sensitivity) if hasattr(mechanism, "sensitivity") else
                ball(mechanism.dimension if mechanism.domain == "cube" else 4).sqrt())
        mu, root = size / ball(mechanism.sigma), ball(2).sqrt()
        middle = factor.log() / mu
        return ((middle - mu / 2) / root).erfc() / 2 - factor * ((middle + mu / 2) / root).erfc() / 2

    return Answer(10 * OPERATIONS, value)


@hockey_stick_of.of("LaplaceMechanism")
def _(mechanism: Any) -> Answer:
    def value(factor: Ball) -> Ball:
        ball = flint().arb
        return (-((factor.log() - ball(mechanism.sensitivity) / mechanism.scale) / 2).expm1()).max(ball(0))

    return Answer(OPERATIONS, value)


class Noise(NamedTuple):
    """Noise N: ln r(y), Pr[N > y] (for whole numbers Pr[N >= y]), the sensitivity, and whether the noise is whole."""

    log_ratio: Callable[[Ball], Ball]
    tail: Callable[[Ball], Ball]
    sensitivity: Ball
    whole: bool = False


def _normal(mechanism: Any) -> Noise:
    sigma, d = flint().arb(mechanism.sigma), flint().arb(mechanism.sensitivity)
    return Noise(lambda y: d * (2 * y - d) / (2 * sigma**2), lambda y: (y / (sigma * flint().arb(2).sqrt())).erfc() / 2, d)


def _discrete(mechanism: Any) -> Noise:
    ball, d = flint().arb, flint().arb(mechanism.sensitivity)
    square = 2 * ball(mechanism.sigma) ** 2

    def beyond(j: int) -> Ball:
        """Return the sum of e^(-i^2/square) over i >= j > 0; the ratios of its terms decrease."""
        last = math.ceil(math.sqrt(j**2 + 1.4 * mechanism.sigma**2 * (flint().ctx.prec + 15))) + 1
        rest = (-ball(last) ** 2 / square).exp() / -(-(2 * ball(last) + 1) / square).expm1()
        return sum(((-ball(i) ** 2 / square).exp() for i in range(j, last)), rest.union(ball(0)))

    whole = 1 + 2 * beyond(1)

    def tail(y: Ball) -> Ball:
        k = int(y.unique_fmpz())
        return beyond(k) / whole if k > 0 else 1 - beyond(1 - k) / whole

    return Noise(lambda y: d * (2 * y - d) / square, tail, d, True)


def _laplace(mechanism: Any) -> Noise:
    scale, d = flint().arb(mechanism.scale), flint().arb(mechanism.sensitivity)

    def tail(y: Ball) -> Ball:
        half = (-abs(y) / scale).exp() / 2
        return half if y > 0 else 1 - half if y < 0 else half.union(1 - half)

    return Noise(lambda y: (abs(y) - abs(y - d)) / scale, tail, d)


def _geometric(mechanism: Any) -> Noise:
    d = flint().arb(mechanism.sensitivity)
    rate = flint().arb(mechanism.eps) / d

    def tail(y: Ball) -> Ball:
        beyond = (-rate * (y if y > 0 else 1 - y)).exp() / (1 + (-rate).exp())
        return beyond if y > 0 else 1 - beyond

    return Noise(lambda y: rate * (abs(y) - abs(y - d)), tail, d, True)


NOISES = {"GaussianMechanism": _normal, "DiscreteGaussianMechanism": _discrete, "LaplaceMechanism": _laplace,
          "GeometricMechanism": _geometric}
"""Functions from a mechanism to its noise, by class."""


def noise_of(mechanism: Any) -> Noise:
    """Return the noise of a mechanism that is one of `NOISES`, at the precision of the call."""
    return next(NOISES[kind](mechanism) for kind in kinds_of(mechanism) if kind in NOISES)
