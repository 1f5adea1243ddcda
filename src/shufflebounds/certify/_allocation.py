r"""Certified hockey-stick divergences, in interval arithmetic, of random allocation to steps.

P and Q are the distributions of the output of a step with and without the record. delta of random allocation to one of t steps is
E max(0, X_1 + ... + X_t)/t for independent X_i under Q, which `blanket` computes. With L = dP/dQ and E = e^eps, X is L - E if the
record is removed and 1 - E L if it is added. An outcome that is impossible under Q identifies the step that used the record.

**Laplace noise.** L is constant beyond the two means. Between them the outputs are divided into cells. On a cell, X is between two
numbers, and its mean is known. E max(0, X_1 + ... + X_t) is larger if X on a cell is replaced by a variable with these two values
and the same mean, and smaller if X is replaced by this mean.

**Several steps** (k of t). The k steps may be drawn one from each of k disjoint blocks of s = floor(t/k) steps, and delta is at
most that for given blocks (see `RandomAllocation`): that of a composition of k allocations to one of s steps (`compositions`). For
S = L_1 + ... + L_s under Q, delta of a block at x is E (S - s x)_+/s if the record is removed and x E (s/x - S)_+/s if it is added.
Let p(c) = E (c - L)_+. The linear interpolation of p between the points of an arithmetic lattice is at least p; it is that of a
variable L' on the lattice, whose probabilities are the second differences of p. L' has the mean of L and is larger in the convex
order. So E (c - S')_+ >= E (c - S)_+ for sums of independent copies, and likewise for (S - c)_+: the blocks of L' dominate.

The lower bound is that of one step, on a sample of rate k/t, or that of a test: delta if only a sum of whole numbers z(L_i) is
seen. z(L) is log(1 + lambda (L - 1)) in units of a step, rounded to a whole number, for lambda < k/t (`sampling/_several.py`). With
the record, k of the L_i have the distribution under P and the others that under Q. Sums above a number are seen as one outcome.

The witness is the step of each lattice, and lambda; each choice gives valid bounds.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache, partial
from itertools import accumulate, chain, pairwise, product
from typing import Any

from shufflebounds._base.validate import InfeasibleError
from shufflebounds.certify._dispatch import Bounds, bounds_of, hockey_stick_of, kinds_of, outcomes_of
from shufflebounds.certify.allocated_gaussian import delta
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, arb, flint, hockey_stick, largest_answer
from shufflebounds.certify.blanket import phi_answers, values_of
from shufflebounds.certify.by_definition import drawn, multisets, powers
from shufflebounds.certify.compositions import curve_of, on_lattice
from shufflebounds.certify.interval_noise import TOLERANCE, cells_of, two_atoms
from shufflebounds.certify.noise import masses, noise_of

NUMBER, DIGITS = 100, 4
"""The number of cells for Laplace noise, and the digits of the smoothing term. Raised: a narrower ball, and longer run time."""

FINE, SPREAD = (0.2, 0.5), 150.0
"""Steps of the lattices of a test, relative to E (1 - L)_+ (the first one also for blocks), and the largest sum of a test, in steps
times sqrt(t). FINE raised: farther from the stated bound. SPREAD lowered: no bound of a small delta, where L has heavy tails."""

RATES = 0.4, 0.65, 0.85
"""The parameters lambda of the tests, in units of k/t, which are those of the engine."""

MOST = 2**16
"""Resource limit: largest number of lattice points, about 10 s for 300 steps. Raised: longer calls."""


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
        few, many = phi_answers(2 * NUMBER, pair.steps, partial(_laplace, pair), 2, TOLERANCE, (DIGITS,))
        return (few if few.operations < 1e6 else many)._replace(refined=False)
    size, outcomes = outcomes_of(noise)

    def value(factor: Ball, *, phi: Callable[..., Ball]) -> Ball:
        laws = [(p, q, q) if pair.removed else (q, p, q) for p, q in outcomes()]
        alone, shared = values_of(laws, factor)
        # The given masses may add up to slightly less than 1; nothing else has X = 0.
        return alone + phi(shared, pair.steps, sum((m.max(arb(0)) for *_, m in laws if not m > 0), arb(0)))

    few, *_, many = phi_answers(int(size), pair.steps, value)
    return few if few.operations < 1e6 else many


def _power(law: list[Ball], times: int, number: int) -> list[Ball]:
    """Return the first `number` probabilities of a sum of `times` independent numbers 0, 1, ... with this distribution."""
    one, whole, small = flint().arb_poly(law), flint().arb_poly([1]), arb(2) ** -flint().ctx.prec
    for bit in f"{times:b}":
        whole = (whole * whole).truncate(number)
        whole = (whole * one).truncate(number) if bit == "1" else whole
        # Products of numbers of all sizes take long, and small ones are not needed.
        whole = flint().arb_poly([arb(0).union(small) if p < small else p for p in whole.coeffs()])
    return [whole[i] for i in range(number)]


def _put(mechanism: Any) -> Callable[[Ball], Ball]:
    """Return E (c - L)_+ of one step, a function of c > 0."""
    answer = hockey_stick_of(mechanism)
    return lambda c: (c - 1 + answer.value(c)).max(arb(0))


@lru_cache(maxsize=2)
def _lattice(mechanism: Any, steps: int, far: float, precision: int) -> Callable[[Ball], Ball]:
    """Return E (c - S')_+ for 0 <= c <= steps e^far, a function of c; `precision` is that of the call."""
    put = _put(mechanism)
    width = arb(2) ** math.floor(math.log2(FINE[0] * float(put(arb(1)))))
    number = math.ceil(steps * math.exp(far) / float(width)) + 3
    if number > MOST:
        raise InfeasibleError(f"the sum has {number} values: at most {MOST} are tried")
    puts = [arb(0), *(put(width * i) for i in range(1, number + 1))]
    slopes = [arb(0), *((b - a) / width for a, b in pairwise(puts))]
    below = list(accumulate(_power([b - a for a, b in pairwise(slopes)], steps, number)))
    sums = list(accumulate(below, initial=arb(0)))

    def value(c: Ball) -> Ball:
        i = int((c.mid() / width).floor().unique_fmpz())
        return width * sums[i] + (c.mid() - i * width) * below[i] + arb(0, c.rad())

    return value


@curve_of.of("AllocationPair")
def _(pair: Any) -> tuple[float, Callable[[float], Callable[[Ball], Ball]]]:
    with suppress(NoCertificateError):
        return curve_of.default(pair)

    def curve(far: float) -> Callable[[Ball], Ball]:
        # Rounding `far` up lets both orders of the pair use the same sum.
        t, put = pair.steps, _lattice(pair.mechanism, pair.steps, math.ceil(2 * far) / 2, flint().ctx.prec)
        return lambda x: put(t * x) / t + 1 - x if pair.removed else put(t / x) * x / t

    return 1e4, curve


@bounds_of.of("RandomAllocation")
def _(profile: Any) -> Bounds:
    if profile._counted or profile.chosen == 1:
        return bounds_of.default(profile)
    blocks = [way._block.self_compose(profile.chosen) for way in profile._ways]
    choices = product(FINE, profile._ways, RATES if "GaussianMechanism" in kinds_of(profile.mechanism) else ())
    tests = [Answer(2e6, partial(_tested, way, rate, fine), TOLERANCE, refined=False) for fine, way, rate in choices]
    # If every step uses the record, the exact value is known.
    known = [hockey_stick_of(getattr(way._forms, "alone", None) or way._forms.whole) for way in profile._ways]
    return lambda eps, upper: chain(known, tests) if not upper else map(largest_answer, zip(
        *(on_lattice(block, eps, True) for block in blocks), strict=True))


def _tested(pair: Any, rate: float, fine: float, factor: Ball) -> Ball:
    """Return delta if only the sum of the whole numbers of the module docstring is seen; `rate` is lambda t/k."""
    noise, t, k, rate = noise_of(pair.mechanism), pair.steps, pair.chosen, rate * pair.chosen / pair.steps
    step = fine * rate * float(_put(pair.mechanism)(arb(1)))
    least, last = math.floor(math.log1p(-rate) / step), math.ceil(SPREAD * math.sqrt(t))
    edges = [noise.inverse((((i + arb(0.5)) * step).exp() / rate - (1 / arb(rate) - 1)).log()) for i in range(least + 1, last)]
    number = last - least * t
    without, with_record = (masses(noise.tail, edges, x) for x in (arb(0), noise.sensitivity))
    first = flint().arb_poly(_power(with_record, k, number)) * flint().arb_poly(_power(without, t - k, number))
    seen = list(zip([first[i] for i in range(number)], _power(without, t, number), strict=True))
    seen.append((1 - sum((p for p, _ in seen), arb(0)), 1 - sum((q for _, q in seen), arb(0))))
    return hockey_stick(seen if pair.removed else [(q, p) for p, q in seen], factor)


@hockey_stick_of.computed("_SeveralPair", make=Answer,
                          size=lambda pair: multisets(int(outcomes_of(pair.mechanism)[0]), pair.steps) * pair.steps**2)
def _(pair: Any, factor: Ball) -> Ball:
    # The coefficient of z^k in the product of (q + z p)^c over the outcomes, each seen c times, is the probability of the
    # counts c if k of the steps use the record, times binom(steps, k).
    steps, chosen, line, listed = pair.steps, pair.chosen, flint().arb_poly, outcomes_of(pair.mechanism)[1]()
    tables = [powers(line([q, p]), steps) for p, q in listed]
    chances = drawn(tables, steps, operator.mul, line([math.factorial(steps)]))
    both = [(row[chosen] / math.comb(steps, chosen), row[0]) for row in chances]
    return hockey_stick(both if pair.removed else [(q, p) for p, q in both], factor)
