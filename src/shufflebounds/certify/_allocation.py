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

The bound by a sum over the steps, for a removed record, is that of docs/theorems/random-allocation: with v = z L and the slope b of
its chord, Lambda is at most a constant times the product of V = (1 + v) e^(-b v/(1 + v)^2), apart from the mean of Lambda where
the sum of v/(1 + v)^2 is outside of an interval, which Chernoff's inequality bounds. V does not decrease in L, because 0 <= b <= 1.
So on a cell of outputs V is between its values at the two ends, and its mean is at most that for the largest e^(-b v/(1 + v)^2) of
the cell. E (V_1 ... V_t - c)_+ is convex in each V_i and does not decrease, so two atoms at the ends with this mean give an upper
bound. It is that of t releases on a lattice (`compositions`). Where L has no bound, outputs are omitted; they add at most their
probability with the record.

Basic composition: a block has at most the delta of a step, so delta at eps is at most k times that of a step at eps/k. For a pure
budget this is 0.

The lower bound is that of one step, on a sample of rate k/t, or that of a test: delta if only a sum of whole numbers z(L_i) is
seen. z(L) is log(1 + lambda (L - 1)) in units of a step, rounded to a whole number, for lambda < k/t (`sampling/_several.py`) and
the smallest L of a cell of outputs: every function of the outputs gives a lower bound. With the record, k of the outputs have the
distribution P and the others Q. Sums above a number are seen as one outcome.

The witness is the step of each lattice, lambda, z, and the interval of v; each choice gives valid bounds.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from itertools import accumulate, pairwise, product
from typing import Any

from shufflebounds._base.limits import COMPARED
from shufflebounds._base.validate import InfeasibleError
from shufflebounds.certify._dispatch import Bounds, bounds_of, hockey_stick_of, kinds_of, outcomes_of
from shufflebounds.certify.allocated_gaussian import delta
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, arb, flint, hockey_stick, largest_answer, smaller
from shufflebounds.certify.blanket import phi_answers, values_of
from shufflebounds.certify.by_definition import drawn, multisets, powers
from shufflebounds.certify.compositions import Listed, _excess, _masses, curve_of, on_lattice
from shufflebounds.certify.interval_noise import TOLERANCE, cells_of, two_atoms
from shufflebounds.certify.noise import noise_of
from shufflebounds.certify.worst_dataset import square

NUMBER, DIGITS = 100, 4
"""The number of cells and the digits of the smoothing term for one step of Laplace noise. Raised: a narrower ball, and longer run
time."""

FINE, SPREAD = (0.2, 0.5), 150.0
"""Steps of the lattices of a test, relative to E (1 - L)_+ (the first one also for blocks), and the largest sum of a test, in steps
times sqrt(t). FINE raised: farther from the stated bound. SPREAD lowered: no bound of a small delta, where L has heavy tails."""

CELLS, EXPONENTS = 1000, [0.05 * 1000 ** (i / (COMPARED - 1)) for i in range(COMPARED)]
"""Half the number of cells of continuous noise, and the exponents of Chernoff's inequality, which are those of the engine. More
cells: closer to the stated bound, and longer run time."""

RATES = 0.4, 0.65, 0.85
"""The parameters lambda of the tests, in units of k/t, which are those of the engine."""

LEAST, MOST = 2**13, 2**16
"""Smallest number of lattice points, and a resource limit: the largest one, about 10 s for 300 steps. Raised: longer calls."""


def _laplace(pair: Any, factor: Ball, *, phi: Callable[..., Ball]) -> Ball:
    """Return delta for Laplace noise (module docstring)."""
    zero, laws, means = arb(0), list[tuple[Ball, Ball]](), list[tuple[Ball, Ball]]()
    for p, q, *ratios in _cells(pair.mechanism, 0.0, NUMBER // 2):
        low, high = sorted(ratio - factor if pair.removed else 1 - factor * ratio for ratio in ratios)
        whole = p - factor * q if pair.removed else q - factor * p
        laws += two_atoms(low, high, q, whole)
        means.append((whole / q, q))
    return phi(means, pair.steps, zero).lower().max(zero).union(phi(laws, pair.steps, zero).upper())


@hockey_stick_of.of("AllocationPair")
def _(pair: Any) -> Answer:
    noise = pair.mechanism
    if pair.steps == 1:
        return hockey_stick_of(noise if pair.removed else noise.reverse())
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
    width = arb(2) ** math.floor(math.log2(min(FINE[0] * float(put(arb(1))), steps * math.exp(far) / LEAST)))
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


# The formula above is that of one step. delta of several steps can be composed if their joint outcomes are enumerated.
curve_of.of("_SeveralPair")(curve_of.default)


@bounds_of.of("RandomAllocation")
def _(profile: Any) -> Bounds:
    if profile._counted or profile.chosen == 1:
        return bounds_of.default(profile)
    k, steps = profile.chosen, profile.steps

    def bounds(eps: float, upper: bool) -> Iterator[Answer]:
        ways = sorted(profile._ways, key=lambda way: -way.log_delta(eps))
        if upper:
            near, later = profile.log_delta(eps), profile.log_delta(eps + 0.01)
            blocks = [next(on_lattice(way._block.self_compose(k), eps, True)) for way in ways]
            yield largest_answer(blocks)
            one = largest_answer(hockey_stick_of(way.mechanism if way.removed else way.mechanism.reverse()) for way in ways)
            yield one._replace(value=lambda factor: k * one.value((factor.log() / k).exp()))
            total = partial(_by_sum, near=near, tilt=max(near - later, 0.01) / 0.01)
            # If the blocks give the stated bound, they come closer to it.
            if k < steps and any(way.removed and way.log_delta(eps) < way._forms.blocks.log_delta(eps) for way in ways):
                yield largest_answer(Answer(3e5 * steps, partial(total, way), TOLERANCE, refined=False) if way.removed else block
                                     for way, block in zip(ways, blocks, strict=True))
            return
        for way in ways:
            yield from bounds_of(getattr(way._forms, "alone", None) or way._forms.whole)(eps, False)
        for fine, way, rate in product(FINE, ways, RATES):
            yield Answer(2e6, partial(_tested, way, rate, fine), TOLERANCE, refined=False)

    return bounds


def _cells(mechanism: Any, near: float, many: int = CELLS) -> list[tuple[Ball, Ball, Ball, Ball]]:
    """Return the probabilities of cells of outputs under P and Q, with the smallest and the largest L of each cell.

    Continuous noise has 2 `many` cells between two half-lines, whose probability is about e^(near - 12).
    """
    with suppress(NoCertificateError):
        return [(p, q, *([p / q] * 2 if q > 0 else [0 * p, arb(math.inf)])) for p, q in outcomes_of(mechanism)[1]()]
    noise, far = noise_of(mechanism), getattr(mechanism, "sigma", 0.0) * math.sqrt(2 * (12 - near))
    d, number = noise.sensitivity, math.ceil(far)
    edges = ([arb(i) for i in range(-number, mechanism.sensitivity + number + 2)] if noise.whole else
             [d / 2 + (d / 2 + far) * i / many for i in range(-many, many + 1)])
    cells = [(p, q, low, high) for p, q, _, (high, low) in cells_of(noise, edges, (0 * d, d), (d,))]
    # Without a pure budget, L is infinite at one end and 0 at the other one.
    return [(*cells[0][:3], arb(math.inf)), *cells[1:-1], (*cells[-1][:2], 0 * d, cells[-1][3])] if far else cells


def _by_sum(pair: Any, factor: Ball, *, near: float, tilt: float) -> Ball:
    """Return the bound by a sum over the steps; `near` approximates its logarithm, and -`tilt` the slope of this logarithm."""
    flint().ctx.prec = 100 - math.ceil(3 * near)
    t, k, bound, eps = pair.steps, pair.chosen, pair._forms.sum_bound, float(factor.log())
    log_z, outside = bound.parameters(eps, pair._forms.blocks.log_delta(eps))
    (first, last), z = map(arb, sorted(max(0.0, v) for v in bound.interval(log_z, outside))), arb(log_z).exp()
    log_g = [((-v).exp() * v.bessel_i(0)).log() for v in (first, last)]
    fall, scale, cells = (log_g[0] - log_g[1]) / (last - first), 1 / (z**k * math.comb(t, k)), _cells(pair.mechanism, near)
    rows, law = list[tuple[Ball, Ball]](), list[tuple[Ball, Ball]]()
    for p, q, *ends in (cell for cell in cells if cell[-1] < math.inf):
        rises, mass = [1 + z * ratio for ratio in ends], q + z * p
        # The ball of p_i (1 - p_i), with p_i - 1/2 = 1/2 - 1/(1 + z L).
        part = arb(0.25) - square(1 / rises[0].union(rises[1]) - arb(0.5))
        low, high = (rise * (-fall * (rise - 1) / rise**2).exp() for rise in rises)
        rows.append((mass, part))
        law += two_atoms(low, high, q, (mass * (-fall * part).exp().upper()).min(high * q))

    def beyond(way: int, v: Ball, log_size: Ball) -> Ball:
        # The sum v is not negative.
        return 0 * v if v == 0 else smaller(*(scale * (log_size * (way > 0 or c >= 1) - way * c * v).exp() * sum(
            (mass * (way * c * part).exp().upper() for mass, part in rows), arb(0)) ** t for c in EXPONENTS))

    size, none = sum((x * q for x, q in law), arb(0)), (1 - sum((q for _, q in law), arb(0))).max(arb(0))
    both, top = [*((x * q / size, q) for x, q in law), (arb(0), none)], max(float((x / size).log()) for x, _ in law)
    step, total = arb(max(math.sqrt(TOLERANCE / t) / tilt, 4 * top / LEAST)), scale * (log_g[0] + fall * first).exp() * size**t
    losses, rest = _masses([Listed(one).value for one in (both, [(q, p) for p, q in both])], step, math.ceil(top / float(step)) + 2)
    left = sum((k * p + (t - k) * q for p, q, _, high in cells if not high < math.inf), t * rest * total)
    return total * _excess([(losses, t)], step, factor / total) + left + beyond(-1, first, log_g[0]) + beyond(1, last, log_g[1])


def _tested(pair: Any, rate: float, fine: float, factor: Ball) -> Ball:
    """Return delta if only the sum of the whole numbers of the module docstring is seen; `rate` is lambda t/k."""
    t, k, rate, near = pair.steps, pair.chosen, rate * pair.chosen / pair.steps, pair.log_delta(float(factor.log()), bound="lower")
    step = fine * rate * float(_put(pair.mechanism)(arb(1)))
    least, last = math.floor(math.log1p(-rate) / step), math.ceil(SPREAD * math.sqrt(t))
    number, laws = last - least * t, [[arb(0)] * (last - least + 1) for _ in range(2)]
    for *masses, low, _ in _cells(pair.mechanism, max(near, -700.0)):
        at = min(round(math.log1p(rate * (float(low) - 1)) / step), last) - least
        for law, mass in zip(laws, masses, strict=True):
            law[at] += mass
    first = flint().arb_poly(_power(laws[0], k, number)) * flint().arb_poly(_power(laws[1], t - k, number))
    seen = list(zip([first[i] for i in range(number)], _power(laws[1], t, number), strict=True))
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
