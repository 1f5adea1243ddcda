"""Additive noise in interval arithmetic: its tails and its likelihood ratios."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from shufflebounds.certify._dispatch import kinds_of
from shufflebounds.certify.balls import Ball, arb, flint, larger, normal_tail


class Noise(NamedTuple):
    """Noise N: ln r(y) and its inverse, Pr[N > y] (for whole numbers Pr[N >= y]), the sensitivity, and whether N is whole.

    r(y) is the ratio of the densities of N + sensitivity and N at y. Where it is constant, the inverse is beyond these y.
    """

    log_ratio: Callable[[Ball], Ball]
    inverse: Callable[[Ball], Ball]
    tail: Callable[[Ball], Ball]
    sensitivity: Ball
    whole: bool = False

    def largest_above(self, log_ratio: Ball, beyond: Callable[[Ball], Ball]) -> Ball:
        """Return `beyond`(y), a probability of the outputs above y, for the y at which ln r exceeds `log_ratio`."""
        edge = self.inverse(log_ratio)
        # None: the precision is too low to know the whole number.
        ends = {end.floor().unique_fmpz() for end in (edge.lower(), edge.upper())} if self.whole else [edge]
        return arb(0).union(arb(1)) if None in ends else larger(*(beyond(arb(y) + self.whole) for y in ends))


def normal_delta(mu: Ball, factor: Ball) -> Ball:
    """Return delta of normal noise whose means differ by mu standard deviations."""
    middle = factor.log() / mu
    return normal_tail(middle - mu / 2) - factor * normal_tail(middle + mu / 2)


def masses(tail: Callable[[Ball], Ball], edges: Sequence[Ball], x: Ball, whole: bool = False) -> list[Ball]:
    """Return the probabilities of x + N on both outer half-lines and between the edges, as differences of the smaller tails.

    If N is whole, edges are whole, and each edge belongs to the interval to its right.
    """
    beyond = min(sum(1 for y in edges if y < x) + 1, len(edges))
    # P(N < y) = P(N >= 1 - y) for whole numbers.
    low, high = [tail(whole + x - y) for y in edges[:beyond]], [tail(y - x) for y in edges[beyond - 1:]]
    return [low[0], *(b - a for a, b in pairwise(low)), *(a - b for a, b in pairwise(high)), high[-1]]


def _normal(mechanism: Any) -> Noise:
    sigma, d = arb(mechanism.sigma), arb(mechanism.sensitivity)
    return Noise(lambda y: d * (2 * y - d) / 2 / sigma**2, lambda s: sigma**2 * s / d + d / 2, lambda y: normal_tail(y / sigma), d)


def _discrete(mechanism: Any) -> Noise:
    d = arb(mechanism.sensitivity)
    square = 2 * arb(mechanism.sigma) ** 2

    def beyond(j: int) -> Ball:
        """Return the sum of e^(-i^2/square) over i >= j > 0; the ratios of its terms decrease."""
        last = math.ceil(math.sqrt(j**2 + 1.4 * mechanism.sigma**2 * (flint().ctx.prec + 15))) + 1
        rest = (-arb(last) ** 2 / square).exp() / -(-(2 * arb(last) + 1) / square).expm1()
        return sum(((-arb(i) ** 2 / square).exp() for i in range(j, last)), rest.union(arb(0)))

    whole = 1 + 2 * beyond(1)

    def tail(y: Ball) -> Ball:
        k = int(y.unique_fmpz())
        return beyond(k) / whole if k > 0 else 1 - beyond(1 - k) / whole

    return Noise(lambda y: d * (2 * y - d) / square, lambda s: square * s / d / 2 + d / 2, tail, d, True)


def _two_sided(mechanism: Any) -> Noise:
    """Return Laplace or geometric noise, whose density is proportional to e^(-|y|/scale)."""
    d, whole = arb(mechanism.sensitivity), not hasattr(mechanism, "scale")
    scale = d / arb(mechanism.eps) if whole else arb(mechanism.scale)

    def tail(y: Ball) -> Ball:
        end = 1 - y if whole and not y > 0 else abs(y)
        beyond = (-end / scale).exp() / (1 + (-1 / scale).exp() if whole else 2)
        return beyond if y > 0 else 1 - beyond if whole or y < 0 else beyond.union(1 - beyond)

    return Noise(lambda y: (abs(y) - abs(y - d)) / scale, lambda s: (scale * s + d) / 2, tail, d, whole)


NOISES = {"GaussianMechanism": _normal, "DiscreteGaussianMechanism": _discrete, "LaplaceMechanism": _two_sided,
          "GeometricMechanism": _two_sided}
"""Functions from a mechanism to its noise, by class."""


def noise_of(mechanism: Any) -> Noise:
    """Return the noise of a mechanism that is one of `NOISES`, at the precision of the call."""
    return next(NOISES[kind](mechanism) for kind in kinds_of(mechanism) if kind in NOISES)
