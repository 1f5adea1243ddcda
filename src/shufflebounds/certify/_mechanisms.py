"""Certified hockey-stick divergences, in interval arithmetic, of local randomizers and additive noise."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from shufflebounds.certify._dispatch import OPERATIONS, hockey_stick_of, kinds_of, outcomes_of, pairs_of
from shufflebounds.certify.balls import Answer, Ball, Outcomes, arb, hockey_stick, larger, polynomial
from shufflebounds.certify.by_definition import sum_outcomes
from shufflebounds.certify.families import chances_of, family_of, geometric_row
from shufflebounds.certify.noise import noise_of, normal_delta


@outcomes_of.computed("KaryResponse", "RandomizedResponse", "RatioBounded", "PureLocal", "LocalHashing", "SubsetSelection",
                      "HadamardResponse", "UnaryEncoding", "PrivUnit", size=lambda one: float(len(family_of(one)[1]().blanket)))
def _(mechanism: Any) -> Outcomes:
    # All pairs of values are equivalent, in both orders.
    rows = family_of(mechanism)[1]().rows
    return list(zip(rows[0], rows[1], strict=True))


@outcomes_of.of("GeometricMechanism")
def _(mechanism: Any) -> tuple[float, Callable[[], Outcomes]]:
    pair, *others = pairs_of(mechanism)
    return outcomes_of.default(mechanism) if others else pair


@pairs_of.of("GeometricMechanism")
def _(mechanism: Any) -> list[tuple[float, Callable[[], Outcomes]]]:
    def outcomes(x: int) -> Outcomes:
        return list(zip(geometric_row(mechanism, 0), geometric_row(mechanism, x), strict=True))

    # The inputs x and 0 are mirror images of 0 and x. Without a bound, the two ends dominate all other pairs.
    bound, d = mechanism.bound, mechanism.sensitivity
    return [(2.0 * (bound or 0) + d + 1, partial(outcomes, x)) for x in range(d if bound is None else 1, d + 1)]


@hockey_stick_of.of("FiniteRandomizer", "GeometricMechanism")
def _(mechanism: Any) -> Answer:
    pairs = pairs_of(mechanism)
    return Answer(10.0 * sum(size for size, _ in pairs), lambda factor: larger(
        *(hockey_stick(outcomes(), factor) for _, outcomes in pairs)))


@hockey_stick_of.computed("ThresholdedCount", size=lambda mechanism: hockey_stick_of(mechanism.noise).operations, make=Answer)
def _(mechanism: Any, factor: Ball) -> Ball:
    noise, smallest = mechanism.noise, mechanism.threshold - mechanism.noise.sensitivity
    q = (-arb(noise.eps) / noise.sensitivity).exp()
    # The probability that the noise is at least `smallest`, which is positive.
    released = 0 * q if noise.bound is not None and smallest > noise.bound else q**smallest / (1 + q)
    return larger(hockey_stick_of(noise).value(factor), released)


@hockey_stick_of.computed("GaussianMechanism", "LaplaceMechanism", "DiscreteGaussianMechanism", make=Answer,
                          size=lambda one: 400 * (1 + (one.sigma if "DiscreteGaussianMechanism" in kinds_of(one) else 1)))
def _(mechanism: Any, factor: Ball) -> Ball:
    # The likelihood ratio does not decrease in the output, so delta is P - e^eps Q of the outputs above ratio e^eps.
    noise = noise_of(mechanism)
    return noise.largest_above(factor.log(), lambda y: (noise.tail(y - noise.sensitivity) - factor * noise.tail(y)).max(arb(0)))


@outcomes_of.computed("Rappor", size=lambda mechanism: 2.0 * mechanism.hashes + 1)
def _(mechanism: Any) -> Outcomes:
    differ = mechanism.hashes if mechanism.bits is None else min(mechanism.hashes, mechanism.bits - mechanism.hashes)
    one, other = chances_of(mechanism)
    # The likelihood ratio depends only on the number of ones among the bits of the first value, plus zeros among those of the
    # second value.
    first, second = ([(1 - a, a, differ), (b, 1 - b, differ)] for a, b in ((one, other), (other, one)))
    return list(zip(polynomial(first), polynomial(second), strict=True))


@outcomes_of.computed("BitPair", size=lambda pair: float(pair.ones + pair.zeros + 2))
def _(pair: Any) -> Outcomes:
    flip = arb(pair.flip)
    zero, one = (1 - flip, flip, 1), (flip, 1 - flip, 1)
    return sum_outcomes([(*one[:2], pair.ones), (*zero[:2], pair.zeros)], *((one, zero) if pair.reversed else (zero, one)))


@hockey_stick_of.computed("GaussianVector", size=lambda mechanism: 10 * OPERATIONS, make=Answer)
def _(mechanism: Any, factor: Ball) -> Ball:
    # The largest distance of two vectors is the diameter of the cube or of the sphere.
    return normal_delta(arb(mechanism.dimension if mechanism.domain == "cube" else 4).sqrt() / mechanism.sigma, factor)
