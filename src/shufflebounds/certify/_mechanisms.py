"""Certified hockey-stick divergences, in interval arithmetic, of local randomizers and additive noise."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np

from shufflebounds.certify._dispatch import OPERATIONS, hockey_stick_of, outcomes_of, outputs_of
from shufflebounds.certify.balls import Answer, Ball, Outcomes, Outputs, flint, hockey_stick, larger


@outputs_of.of("FiniteRandomizer")
def _(randomizer: Any) -> tuple[int, int, Callable[[], list[Outputs]]]:
    least = randomizer._rows.min(axis=0)
    kinds = []
    for first, second in permutations(randomizer._rows, 2):
        columns, counts = np.unique(np.stack([first, second, least]), axis=1, return_counts=True)
        kinds.append((columns, counts.tolist()))

    def outputs() -> list[Outputs]:
        ball = flint().arb
        return [
            [(many * ball(a), many * ball(b), many * ball(m)) for a, b, m, many in zip(*columns.tolist(), counts, strict=True)]
            for columns, counts in kinds
        ]

    return len(kinds), max(columns.shape[1] for columns, _ in kinds), outputs


@hockey_stick_of.of("FiniteRandomizer")
def _(mechanism: Any) -> Answer:
    pairs, kinds, outputs = outputs_of(mechanism)
    return OPERATIONS * pairs * kinds, lambda factor: larger(*(
        hockey_stick([(a, b) for a, b, _ in pair], factor) for pair in outputs()
    ))


@outputs_of.of("RatioBounded")
def _(randomizer: Any) -> tuple[int, int, Callable[[], list[Outputs]]]:

    def outputs() -> list[Outputs]:
        p, beta, q = (flint().arb(x) for x in (randomizer.p, randomizer.beta, randomizer.q))
        alpha = beta / (p - 1)
        rest = (1 - (p + 1) * alpha).max(flint().arb(0))
        return [[(p * alpha, alpha, p * alpha / q), (alpha, p * alpha, p * alpha / q), (rest, rest, rest / q)]]

    return 1, 3, outputs


@outputs_of.of("KaryResponse")
def _(randomizer: Any) -> tuple[int, int, Callable[[], list[Outputs]]]:

    def outputs() -> list[Outputs]:
        odds = flint().arb(randomizer.local_eps).exp()
        small, others = 1 / (odds + randomizer.bins - 1), randomizer.bins - 2
        third = [(others * small,) * 3] if others else []
        return [[(odds * small, small, small), (small, odds * small, small), *third]]

    return 1, 2 + (randomizer.bins > 2), outputs


@outcomes_of.of("KaryResponse")
def _(mechanism: Any) -> tuple[float, Callable[[], Outcomes]]:
    _, kinds, outputs = outputs_of(mechanism)
    return kinds, lambda: [(a, b) for a, b, _ in outputs()[0]]


@outcomes_of.of("GeometricMechanism")
def _(mechanism: Any) -> tuple[float, Callable[[], Outcomes]]:
    if mechanism.bound is not None:
        raise TypeError("GeometricMechanism with a bound has no certified digits")
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

    return 10 * OPERATIONS, value


@hockey_stick_of.of("LaplaceMechanism")
def _(mechanism: Any) -> Answer:
    def value(factor: Ball) -> Ball:
        ball = flint().arb
        return (-((factor.log() - ball(mechanism.sensitivity) / mechanism.scale) / 2).expm1()).max(ball(0))

    return OPERATIONS, value
