r"""Certified hockey-stick divergences, in interval arithmetic, of random allocation to steps.

P and Q are the distributions of the output of a step with and without the record. delta of random allocation to one of t steps is
E max(0, X_1 + ... + X_t)/t for independent X_i under Q, which `blanket` computes. With L = dP/dQ and E = e^eps, X is L - E if the
record is removed and 1 - E L if it is added. An outcome that is impossible under Q identifies the step that used the record.

**Laplace noise.** L is constant beyond the two means. Between them the outputs are divided into cells. On a cell, X is between two
numbers, and its mean is known. E max(0, X_1 + ... + X_t) is larger if X on a cell is replaced by a variable with these two values
and the same mean, and smaller if X is replaced by this mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from shufflebounds.certify._dispatch import hockey_stick_of, kinds_of, outcomes_of
from shufflebounds.certify.allocated_gaussian import delta
from shufflebounds.certify.balls import Answer, Ball, arb, flint, hockey_stick, multisets
from shufflebounds.certify.blanket import contour, enumerated, phi_answers, values_of
from shufflebounds.certify.interval_noise import TOLERANCE, cells_of, two_atoms
from shufflebounds.certify.noise import noise_of

NUMBER, DIGITS = 100, 4
"""The number of cells for Laplace noise, and the digits of the smoothing term. Raised: a narrower ball, and longer run time."""


def _laplace(pair: Any, factor: Ball, *, phi: Callable[..., Ball]) -> Ball:
    """Return delta for Laplace noise (module docstring)."""
    noise, zero, laws, means = noise_of(pair.mechanism), arb(0), list[tuple[Ball, Ball]](), list[tuple[Ball, Ball]]()
    ends = zero, noise.sensitivity
    for first, last, _, ratios in cells_of(noise, [noise.sensitivity * i / NUMBER for i in range(NUMBER + 1)], ends, ends[1:]):
        low, high = sorted(r - factor if pair.removed else 1 - factor * r for r in ratios)
        whole = first - factor * last if pair.removed else last - factor * first
        laws += two_atoms(low, high, last, whole)
        means.append((whole / last, last))
    return phi(means, pair.steps, zero).lower().max(zero).union(phi(laws, pair.steps, zero).upper())


@hockey_stick_of.of("AllocationPair")
def _(pair: Any) -> Answer:
    noise = pair.mechanism
    if "GaussianMechanism" in kinds_of(noise):
        # Only the number of digits depends on the stated bound, whose logarithm is a guess of the size of delta.
        return Answer(4e6, lambda factor: delta(noise.sigma, noise.sensitivity, pair.steps, factor, pair.removed, max(
            -700.0, pair.log_delta(float(factor.log()), bound="lower"))), tolerance=1e-8, refined=False)
    if "LaplaceMechanism" in kinds_of(noise):
        # The prediction does not depend on delta. Measured: .2 to 1 s for delta above e^-60, 6 s at e^-366.
        phi = enumerated if pair.steps <= 2 else partial(contour, digits=DIGITS)
        return Answer(4e6, partial(_laplace, pair, phi=phi), TOLERANCE, refined=False)
    size, outcomes = outcomes_of(noise)

    def value(factor: Ball, *, phi: Callable[..., Ball]) -> Ball:
        laws = [(p, q, q) if pair.removed else (q, p, q) for p, q in outcomes()]
        alone, shared = values_of(laws, factor)
        return alone + phi(shared, pair.steps, arb(0))

    few, many = phi_answers(int(size), pair.steps, value)
    return few if few.operations < 1e6 else many


@hockey_stick_of.computed("_SeveralPair", make=Answer,
                          size=lambda pair: multisets(int(outcomes_of(pair.mechanism)[0]), pair.steps) * pair.steps**2)
def _(pair: Any, factor: Ball) -> Ball:
    # The coefficient of z^k in the product of (q + z p)^c over the outcomes, each seen c times, is the probability of the
    # counts c if k of the steps use the record, times binom(steps, k).
    steps, chosen, line, listed = pair.steps, pair.chosen, flint().arb_poly, outcomes_of(pair.mechanism)[1]()
    rows = [(line([1]), steps)]
    for p, q in listed[:-1]:
        rows = [(row * line([q, p]) ** c * math.comb(left, c), left - c) for row, left in rows for c in range(left + 1)]
    chances = [row * line([listed[-1][1], listed[-1][0]]) ** left for row, left in rows]
    both = [(row[chosen] / math.comb(steps, chosen), row[0]) for row in chances]
    return hockey_stick(both if pair.removed else [(q, p) for p, q in both], factor)
