r"""delta of a replaced record of sampled noise whose old and new contributions are opposite.

With N_a the noise around a, P = (1 - q) N_0 + q N_d and Q = (1 - q) N_0 + q N_(-d) for the rate q and the sensitivity d. The noise
is even and log-concave, so r(y) = N_d(y)/N_0(y) does not decrease, and P - E Q has the sign of

.. math:: g(y) = (1 - q)(1 - E) + q\,(r(y) - E\, r(-y)),

which does not decrease either and is at most 0 at y = 0. So delta is V(c) = P(y > c) - E Q(y > c), where g changes its sign at c;
bisection encloses c. Opposite contributions d and -d are the worst of all old and new contributions (`sampling/_opposite.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from shufflebounds.certify.balls import Ball, flint

__all__ = ["NOISES", "Noise", "opposite"]


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


def opposite(noise: Noise, rate: Ball, factor: Ball) -> Ball:
    """Return delta at e^eps = `factor`."""
    ball, d = flint().arb, noise.sensitivity

    def sign(y: Ball) -> Ball:
        return (1 - rate) * (1 - factor) + rate * (noise.log_ratio(y).exp() - factor * noise.log_ratio(-y).exp())

    def value(y: Ball) -> Ball:
        none, more, less = (noise.tail(y + shift) for shift in (0 * d, -d, d))
        return ((1 - rate) * none + rate * more - factor * ((1 - rate) * none + rate * less)).max(ball(0))

    low, high = ball(0), ball(1 if noise.whole else d.mid())
    while not sign(high) > 0:
        # Beyond d, the ratios of Laplace and geometric noise are constant.
        if high > d and sign(high).overlaps(sign(2 * high)):
            return value(high)
        low, high = (high, 2 * high) if sign(high) < 0 else (low, 2 * high)
    while high - low > (1 if noise.whole else high * ball(2) ** -flint().ctx.prec):
        middle = ((low + high) / 2).floor() if noise.whole else ((low + high) / 2).mid()
        at = sign(middle)
        if not (at > 0 or at < 0):
            return value(middle).max(value(middle + 1)) if noise.whole else value(low.union(high))
        low, high = (middle, high) if at < 0 else (low, middle)
    return value(high) if noise.whole else value(low.union(high))
