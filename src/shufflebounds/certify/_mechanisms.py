"""Certified hockey-stick divergences, in interval arithmetic, of local randomizers and additive noise, alone or on a random part
of the data.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from shufflebounds.certify._dispatch import OPERATIONS, hockey_stick_of, kinds_of, outcomes_of, pairs_of
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, Outcomes, arb, hockey_stick, larger, largest_answer
from shufflebounds.certify.by_definition import polynomial, sum_outcomes
from shufflebounds.certify.families import chances_of, family_of, geometric_row
from shufflebounds.certify.noise import NOISES, noise_of, normal_delta


@outcomes_of.computed("KaryResponse", "RandomizedResponse", "RatioBounded", "PureLocal", "LocalHashing", "SubsetSelection",
                      "HadamardResponse", "UnaryEncoding", "PrivUnit", size=lambda one: float(len(family_of(one)[1]().blanket)))
def _(mechanism: Any) -> Outcomes:
    # All pairs of values are equivalent, in both orders.
    rows = family_of(mechanism)[1]().rows
    return list(zip(rows[0], rows[1], strict=True))


@outcomes_of.of("GeometricMechanism")
def _(mechanism: Any) -> tuple[float, Callable[[], Outcomes]]:
    return outcomes_of.default(mechanism) if len(pairs_of(mechanism)) > 1 else pairs_of(mechanism)[0]


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
    differ, (one, other) = mechanism._differ, chances_of(mechanism)
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


# ----------------------------------------------------------------------------------------------------------------- samples


def _sampled(one: Answer, rate: Ball, factor: Ball) -> Ball:
    """Return delta of a record that is removed from a sample of this rate."""
    return rate * one.value(1 + (factor - 1) / rate)


@outcomes_of.computed("SampledPair", size=lambda pair: outcomes_of(pair.mechanism)[0])
def _(pair: Any) -> Outcomes:
    rate = arb(pair.rate)
    both = [(rate * p + (1 - rate) * q, q) for p, q in outcomes_of(pair.mechanism)[1]()]
    return both if pair.removed else [(q, p) for p, q in both]


@hockey_stick_of.of("SampledPair")
def _(pair: Any) -> Answer:
    # The divergence of the mechanism at another value of e^eps (formulas of `SampledPair`).
    one = hockey_stick_of(pair.mechanism if pair.removed else pair.mechanism.reverse())

    def sampled(factor: Ball) -> Ball:
        rate = arb(pair.rate)
        if pair.removed:
            return _sampled(one, rate, factor)
        left = 1 - factor * (1 - rate)
        return left * one.value(factor * rate / left) if left > 0 else left.max(arb(0))

    return one._replace(value=sampled)


@hockey_stick_of.of("Subsampled", "RandomAllocation")
def _(profile: Any) -> Answer:
    return largest_answer(hockey_stick_of(pair) for pair in profile.pairs())


@hockey_stick_of.of("WithoutReplacement")
def _(profile: Any) -> Answer:
    one = largest_answer(hockey_stick_of(order) for order in profile._orders)

    return one._replace(value=lambda factor: _sampled(one, arb(profile.batch) / profile.records, factor))


@hockey_stick_of.of("ReplaceOne")
def _(profile: Any) -> Answer:
    if profile._known is None or "Subsampled" not in kinds_of(profile.profile):
        raise NoCertificateError("only a replaced record of one release on a sample is certified")
    mechanism, rate = profile.profile.mechanism, profile.profile.rate
    if NOISES.keys() & set(kinds_of(mechanism)):
        return Answer(1e5, lambda factor: _opposite(mechanism, arb(rate), factor))
    size, family = family_of(mechanism)

    def value(factor: Ball) -> Ball:
        inputs = family()
        mixed = [[[(1 - arb(rate)) * p + rate * q for p, q in zip(absent, row, strict=True)] for row in inputs.rows]
                 for absent in inputs.rows]
        return larger(*(hockey_stick(zip(rows[i], rows[j], strict=True), factor) for rows in mixed for i, j in inputs.pairs))

    return Answer(10.0 * size * size, value)


def _opposite(mechanism: Any, rate: Ball, factor: Ball) -> Ball:
    r"""Return delta of a replaced record of sampled noise whose old and new contributions are opposite, at e^eps = `factor`.

    With N_a the noise around a, P = (1 - q) N_0 + q N_d and Q = (1 - q) N_0 + q N_(-d) for the rate q and the sensitivity d. The
    noise is even and log-concave, so r(y) = N_d(y)/N_0(y) does not decrease, and P - E Q has the sign of

    .. math:: r(y) - E\, r(-y) - w, \qquad w = (E - 1)(1 - q)/q,

    which does not decrease either and is at most 0 at y = 0. So delta is P(y > c) - E Q(y > c) for the c at which it changes its
    sign. For y > 0, r(-y) = r(0) for Laplace and geometric noise, and r(y) r(-y) = r(0)^2 for normal noise, so r(c) is known. If r
    is smaller everywhere, c is beyond d, and P - E Q <= 0 there. Opposite contributions d and -d are the worst of all old and new
    contributions (`sampling/_opposite.py`).
    """
    noise = noise_of(mechanism)
    d, least, w = noise.sensitivity, noise.log_ratio(arb(0)).exp(), (factor - 1) * (1 - rate) / rate
    flat = {"LaplaceMechanism", "GeometricMechanism"} & set(kinds_of(mechanism))
    ratio = w + factor * least if flat else (w + (w**2 + 4 * factor * least**2).sqrt()) / 2

    def beyond(y: Ball) -> Ball:
        none, more, less = (noise.tail(y + shift) for shift in (0 * d, -d, d))
        return ((1 - rate) * none + rate * more - factor * ((1 - rate) * none + rate * less)).max(arb(0))

    return noise.largest_above(ratio.log(), beyond)
