"""Certified hockey-stick divergences, in interval arithmetic, of local randomizers and additive noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shufflebounds.certify._dispatch import OPERATIONS, hockey_stick_of, outcomes_of
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, Outcomes, flint, hockey_stick, larger
from shufflebounds.certify.families import family_of


@outcomes_of.of("KaryResponse")
@outcomes_of.of("RandomizedResponse")
@outcomes_of.of("RatioBounded")
@outcomes_of.of("PureLocal")
@outcomes_of.of("LocalHashing")
@outcomes_of.of("SubsetSelection")
@outcomes_of.of("HadamardResponse")
@outcomes_of.of("UnaryEncoding")
def _(mechanism: Any) -> tuple[float, Callable[[], Outcomes]]:
    # All pairs of values are equivalent, in both orders.
    size, family = family_of(mechanism)

    def outcomes() -> Outcomes:
        known = family()
        return list(zip(known.rows[0], known.rows[1], strict=True))

    return float(size), outcomes


@hockey_stick_of.of("FiniteRandomizer")
def _(mechanism: Any) -> Answer:
    size, family = family_of(mechanism)

    def value(factor: Ball) -> Ball:
        known = family()
        return larger(*(hockey_stick(zip(known.rows[i], known.rows[j], strict=True), factor) for i, j in known.pairs))

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


@hockey_stick_of.of("GaussianMechanism")
def _(mechanism: Any) -> Answer:
    def value(factor: Ball) -> Ball:
        ball = flint().arb
        mu, root = ball(mechanism.sensitivity) / mechanism.sigma, ball(2).sqrt()
        middle = factor.log() / mu
        return ((middle - mu / 2) / root).erfc() / 2 - factor * ((middle + mu / 2) / root).erfc() / 2

    return Answer(10 * OPERATIONS, value)


@hockey_stick_of.of("LaplaceMechanism")
def _(mechanism: Any) -> Answer:
    def value(factor: Ball) -> Ball:
        ball = flint().arb
        return (-((factor.log() - ball(mechanism.sensitivity) / mechanism.scale) / 2).expm1()).max(ball(0))

    return Answer(OPERATIONS, value)
