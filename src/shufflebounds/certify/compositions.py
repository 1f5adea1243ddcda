r"""delta of a composition: a sum over all outcomes if they are few, otherwise bounds by losses on a lattice. Also delta of groups.

**Outcomes.** Each release has a list of pairs (P, Q), of which an adversary chooses one after the earlier results. With V(E) =
(1 - E)_+ for no release, the largest delta of a set R of releases at E = e^eps is

.. math:: V_R(E) = \max_{r \in R} \max_{(P, Q)} \sum_y P(y)\, V_{R - r}(E\, Q(y)/P(y)).

For the last release, the sum is that over the outcomes with P > E Q: a partial sum in the order of the likelihood ratios. Releases
with one pair come first, because their results can only help to choose the pairs of later releases. If every release has one
pair, half of the releases are combined to a first release, and the others to a last one.

**Lattice.** Let D(x) be the largest delta of one release at x = e^eps > 0, a convex function, and l_i = (i + 1/2) h. The linear
interpolation of D between (0, 1) and the points x_i = e^l_i is at least D. The interpolation is the divergence of a pair (P, Q)
with the losses l_i. The change of its slope at x_i is the mass of l_i under Q; x_i times this change is the mass under P. Beyond
the last point, the loss is infinite.

- Upper bound: a pair with a larger D dominates the release, and the product of such pairs the composition (docs/composition).
- Lower bound, if neighbours attain a pair with this D: the loss L of this pair has P(L > l_i) = D(x_i) + x_i Q(L > l_i), and
  Q(L > l_i) is at least minus the slope of the interpolation after x_i. So under P the loss L is stochastically at least the loss
  of the interpolation minus h, if the smallest loss is replaced by -infinity and infinite losses are omitted. The same is true of
  sums, and delta, the mean of (1 - e^(eps - sum))_+ under P, increases with the sum.

The witness is (h, the number of points).

**Groups.** A chain of neighbouring datasets changes the k records of a group one after the other. For eps_1 + ... + eps_k <= eps,
delta of the group is at most the sum of e^(eps_1 + ... + eps_(j-1)) delta(eps_j) (docs/composition). The witness is the list of the
eps_j; each delta(eps_j) is certified by itself.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import partial
from itertools import accumulate, chain, pairwise, zip_longest
from typing import Any

import shufflebounds.certify._dispatch as dispatch
from shufflebounds.certify._dispatch import Bounds, bounds_of, hockey_stick_of, kinds_of, of_people, outcomes_of, pairs_of
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, Outcomes, arb, both_orders, flint, larger, largest_answer
from shufflebounds.certify.by_definition import Bits, drawn, moved, multisets, powers
from shufflebounds.certify.sampled_gaussians import SAMPLED_OPERATIONS, SAMPLED_TOLERANCE, Part, delta

SLACK = 1e-9
"""Logarithms of likelihood ratios that differ by less are compared in interval arithmetic. Their errors in doubles are smaller."""

MOST_LISTED = 1e5
"""Largest number of outcomes that are sorted for the curve D. Raised: longer calls."""

TOLERANCE = 0.02
"""Allowed distance from the stated bound in log delta, on a lattice."""

Factors = Sequence[tuple[Any, int]]
Curve = Callable[[Ball], Ball]


class Listed:
    """A pair with listed outcomes, in the order of their likelihood ratios."""

    def __init__(self, outcomes: Outcomes) -> None:
        known, zero = [], arb(0)
        # `rest` contains the part of the outcomes whose likelihood ratio is not known accurately, for every e^eps.
        self.rest = zero
        for p, q in outcomes:
            # A number that may be 0 is neither equal nor unequal to 0.
            if p == 0:
                continue
            ratio: Ball = (q / p).log() if p != 0 and q != 0 else -math.inf
            if p != 0 and (q == 0 or (abs(ratio) < 1e5 and ratio.rad() < SLACK / 8)):
                known.append((float(ratio), p, q))
            else:
                self.rest += p.union(zero)
        known.sort(key=lambda one: one[0])
        self._logs, self._outcomes = [ratio for ratio, *_ in known], [(p, q) for _, p, q in known]
        self._sums = [list(accumulate((one[i] for one in self._outcomes), initial=zero)) for i in (0, 1)]

    def value(self, factor: Ball) -> Ball:
        """Return the divergence at e^eps = `factor` >= 0."""
        at, zero = arb(math.inf) if factor == 0 else -factor.log(), arb(0)
        if at.is_nan():
            raise ArithmeticError("it is not known whether e^eps is positive")
        first, last = (bisect_right(self._logs, float(end) + way * SLACK) for way, end in ((-1, at.lower()), (1, at.upper())))
        # The outcomes between `first` and `last` have a likelihood ratio near `factor`.
        near = ((p - factor * q).max(zero) for p, q in self._outcomes[first:last])
        return sum(near, self._sums[0][first] - factor * self._sums[1][first]) + self.rest

    def then(self, later: Curve, factor: Ball) -> Ball:
        """Return the divergence of this pair and a later one at e^eps = `factor`; `later` returns that of the later pair."""
        return sum((p * later(factor * q / p) for p, q in self._outcomes), self.rest)


def _product(parts: Sequence[tuple[Callable[[], Outcomes], int]]) -> Listed:
    """Return the outcomes of independent releases, each made a number of times."""
    out = [(arb(1), arb(1))]
    for listed, times in parts:
        tables = [list(zip(powers(p, times), powers(q, times), strict=True)) for p, q in listed()]
        sets = drawn(tables, times, lambda one, other: (one[0] * other[0], one[1] * other[1]), (arb(math.factorial(times)),) * 2)
        out = [(p * r, q * s) for r, s in sets for p, q in out]
    return Listed(out)


def every_outcome(factors: Factors) -> Answer:
    """Return delta of a composition of releases with listed outcomes."""
    listed = [(pairs_of(profile), times) for profile, times in factors]
    choices = [(pairs, times) for pairs, times in listed if len(pairs) > 1]
    sizes, halves = [1.0, 1.0], list[list[tuple[Callable[[], Outcomes], int]]]([[], []])
    for ((size, outcomes), *_), times in (one for one in listed if len(one[0]) == 1):
        for share in (times - times // 2, times // 2):
            half = 0 if choices else sizes.index(min(sizes))
            sizes[half] *= multisets(int(size), share)
            halves[half].append((outcomes, share))
    later = math.prod(sum(size for size, _ in pairs) ** times * times for pairs, times in choices)
    last = min((sum(size for size, _ in pairs) / len(pairs) for pairs, _ in choices), default=1.0)

    def value(factor: Ball) -> Ball:
        rest = [[Listed(outcomes()) for _, outcomes in pairs] for pairs, _ in choices] or [[_product(halves[1])]]

        def largest(left: tuple[int, ...], at: Ball) -> Ball:
            fewer = [(pairs, (*left[:i], left[i] - 1, *left[i + 1:])) for i, pairs in enumerate(rest) if left[i]]
            return larger(*(pair.then(partial(largest, other), at) if any(other) else pair.value(at)
                            for pairs, other in fewer for pair in pairs))

        return _product(halves[0]).then(partial(largest, tuple(times for _, times in choices) or (1,)), factor)

    return Answer(dispatch.OPERATIONS * (sizes[1] + sizes[0] * later / last) / 4, value)


@dispatch.by_kind
def curve_of(profile: Any) -> tuple[float, Callable[[float], Curve]]:
    """Return the number of ball operations of a value of D(x), and a function that returns a bound D of delta for 1 <= x <= e^far.

    If D is not delta itself, it is that of a dominating pair; `curve_of.default` returns delta itself.
    """
    if "_LossPair" in kinds_of(profile):
        # The masses on a lattice are those of distributions whose sums are 1, which lists of another program need not be.
        outcomes_of.default(profile)
    with suppress(NoCertificateError):
        pairs = pairs_of(profile)
        if sum(size for size, _ in pairs) < MOST_LISTED:
            return 12.0 * len(pairs), lambda far: _largest([Listed(outcomes()) for _, outcomes in pairs])
    answer = hockey_stick_of(profile)
    if not answer.refined:
        raise NoCertificateError(f"delta of {type(profile).__name__} has too few digits to be composed")
    return answer.operations, lambda far: answer.value


def _largest(pairs: Sequence[Listed]) -> Curve:
    return lambda x: larger(*(pair.value(x) for pair in pairs))


def _masses(curves: Sequence[Curve], step: Ball, last: int) -> tuple[list[Ball], Ball]:
    """Return the masses under P of losses at (i + 1/2) step, -last <= i < last, and the mass of infinite losses.

    `curves` are D, and that of (Q, P) unless it is the same.
    """
    points = [((i + arb(0.5)) * step).exp() for i in range(last)]
    up, *others = ([curve(x) for x in points] for curve in curves)
    # D(1/x) = 1 - (1 - d)/x for the value d of (Q, P) at x.
    low = [(1 / x, 1 - (1 - d) / x) for x, d in zip(points, others[0] if others else up, strict=True)]
    curve = [*low[::-1], *zip(points, up, strict=True)]
    slopes = [(a - b) / (z - y) for (y, a), (z, b) in pairwise([(0 * step, 1 + 0 * step), *curve])] + [0 * step]
    return [x * (s - t) for (x, _), (s, t) in zip(curve, pairwise(slopes), strict=True)], up[-1]


def _excess(parts: Sequence[tuple[list[Ball], int]], step: Ball, factor: Ball) -> Ball:
    """Return E (1 - e^-sum factor)_+ for independent losses; their masses are those of multiples of `step` around 0."""
    whole = math.prod((flint().arb_poly(masses) ** times for masses, times in parts), start=flint().arb_poly([1]))
    end = sum((len(masses) - 1) * times for masses, times in parts)
    start = max(0, math.floor(end / 2 + float(factor.log().lower() / step)) - 1)
    return sum((whole[j] * (1 - factor * ((arb(end) / 2 - j) * step).exp()).max(arb(0)) for j in range(start, end + 1)), arb(0))


def _attained(factors: Factors) -> Iterator[Factors]:
    """Yield factors of which each is one pair that neighbours attain."""
    lists = [[profile] if profile._pair_info().attained.single else profile._attained for profile, _ in factors]
    for place in range(max(map(len, lists)) if all(lists) else 0):
        yield [(pairs[min(place, len(pairs) - 1)], times) for pairs, (_, times) in zip(lists, factors, strict=True)]


def on_lattice(composition: Any, eps: float, upper: bool) -> Iterator[Answer]:
    """Yield upper or lower bounds of delta of a composition; the stated bounds are used for the choice of the lattice alone."""
    bound, number = "upper" if upper else "lower", sum(times for _, times in composition.factors)
    depth, later = (max(composition.log_delta(at, bound=bound), -600.0) for at in (eps, eps + 0.01 / number))
    tilt = max((depth - later) * number / 0.01, 1.0)
    # For the upper bound, the variance of a loss increases by at most a quarter of the squared step.
    step = (math.sqrt(4 * TOLERANCE / number) if upper else 0.75 * TOLERANCE / number) / tilt
    for factors in [composition.factors] if upper else _attained(composition.factors):
        lasts = [math.ceil(min(profile._epsilon(math.exp(depth - 9) / number, True) / step, 1e6)) + 2 for profile, _ in factors]
        # A lower bound needs delta itself.
        parts = [([(curve_of if upper else curve_of.default)(one)
                   for one in ((profile,) if profile.reverse() is profile else (profile, profile.reverse()))], last, times)
                 for last, (profile, times) in zip(lasts, factors, strict=True)]

        def value(factor: Ball, parts: list[tuple[list[tuple[float, Callable[[float], Curve]]], int, int]]) -> Ball:
            # Masses are second differences of D, so twice the digits of delta cancel.
            flint().ctx.prec, h = 100 - math.ceil(3 * depth), arb(step)
            laws = [(*_masses([curve(last * step) for _, curve in both], h, last), times) for both, last, times in parts]
            if upper:
                # The probability of an infinite loss is at most the sum of those of all releases.
                return sum((times * rest for _, rest, times in laws), _excess([(law, times) for law, _, times in laws], h, factor))
            return _excess([([0 * h, *law[1:]], times) for law, _, times in laws], h, factor * (number * h).exp())

        operations = sum(last * (20 * times + sum(one for one, _ in both)) for both, last, times in parts)
        yield Answer(operations, partial(value, parts=parts), TOLERANCE, refined=False)


@outcomes_of.computed("_ListedPair", size=lambda pair: len(pair.log_p) + 1.0)
def _(pair: Any) -> Outcomes:
    laws = (pair._complete.with_sum_one([arb(x).exp() for x in law.tolist()]) for law in pair._complete[:2])
    return list(zip_longest(*laws, fillvalue=arb(0)))


@outcomes_of.computed("MassPair", size=lambda pair: float(len(pair.p)))
def _(pair: Any) -> Outcomes:
    return [(arb(p), arb(q)) for p, q in zip(pair.p, pair.q, strict=True)]


@hockey_stick_of.of("Composition")
def _(composition: Any) -> Answer:
    if composition._by_adjacency:
        return largest_answer(hockey_stick_of(way) for way in composition._by_adjacency)
    noises = [_gaussian(*factor) for factor in composition.factors]
    # A release on all records has the same delta for a record that is removed or added.
    ways = {removed for _, removed in filter(None, noises)} - {None}
    if None in noises or len(ways) > 1:
        return every_outcome(composition.factors)
    parts, operations = [part for part, _ in filter(None, noises)], SAMPLED_OPERATIONS * len(noises) if ways else 1e4
    return Answer(operations, lambda factor: delta(parts, factor, False not in ways), SAMPLED_TOLERANCE, refined=False)


@bounds_of.of("Composition")
def _(composition: Any) -> Bounds:
    ways, exact = composition._by_adjacency or (composition,), list[Answer]()
    with suppress(NoCertificateError):
        exact = [hockey_stick_of(composition)]

    def bounds(eps: float, upper: bool) -> Iterator[Answer]:
        yield from exact
        if not exact or exact[0].refined:
            lattices = [on_lattice(way, eps, upper) for way in ways]
            yield from map(largest_answer, zip(*lattices, strict=True)) if upper else chain(*lattices)

    return bounds


def _gaussian(profile: Any, times: int) -> tuple[Part, bool | None] | None:
    """Return Gaussian noise with the direction of its sample, if it is on one, or None for other mechanisms."""
    mechanism, rate = (profile.mechanism, profile.rate) if "SampledPair" in kinds_of(profile) else (profile, 1.0)
    if "GaussianMechanism" not in kinds_of(mechanism):
        return None
    return Part(mechanism.sigma, mechanism.sensitivity, rate, times), profile.removed if rate < 1 else None


# ------------------------------------------------------------------------------------------------------------------ groups


def _difference(protocol: Any) -> list[Bits]:
    """Return the distribution of the difference of two counts that all records of a group change alike."""
    if "ClearReports" in kinds_of(protocol):
        return [(arb(1) / protocol.bins, 1 - arb(2) / protocol.bins, arb(1) / protocol.bins, protocol.fakes)]
    return [(p, 1 - p, protocol.users) for p in (arb(protocol.gamma), 1 - arb(protocol.gamma))]


@hockey_stick_of.of("Group")
def _(group: Any) -> Answer:
    if group._known.above is None:
        raise NoCertificateError("it has two bounds")
    together = of_people(group.profile) if group.size > 1 else None
    return hockey_stick_of(group._known.above) if together is None else together(group.size)


@bounds_of.of("Group")
def _(group: Any) -> Bounds:
    info, one = group._known, bounds_of(group.profile)
    if info.above is None:
        return lambda eps, upper: [_chain(group, one, eps)] if upper else _lower(group, one, eps)
    if group.size > 1 and of_people(group.profile) is not None:
        return bounds_of.default(group)
    return lambda eps, upper: bounds_of(info.above if upper else info.below)(eps, upper)


def _chain(group: Any, one: Bounds, eps: float) -> Answer:
    """Return the bound of a chain of changes."""
    profile, chain = group.profile, group._closed
    split, counts = chain.best(eps)[0].tolist(), [int(many) for many in chain.counts]
    if not eps < chain.pure:
        # delta of every record is 0 at an equal part of the group's pure budget.
        split, counts = [math.nextafter(eps / group.size, 0.0)], [group.size]
    whole = sum(Fraction(at) * many for at, many in zip(split, counts, strict=True))
    if min(counts) < 0 or sum(counts) != group.size or whole > Fraction(eps):
        raise ArithmeticError("the parts of eps are too large")
    listed = {at: list(one(at, True)) for at in split}
    operations = sum(min((way.operations for way in ways[:-1] or ways), default=0.0) for ways in listed.values())

    def value(factor: Ball) -> Ball:
        # 10 s is the limit of the predicted run time at one eps.
        deltas = {at: dispatch.reached(profile, ways, at, "upper", 15, 10.0) for at, ways in listed.items()}
        total, before = arb(0), arb(1)
        for at, many in zip(split, counts, strict=True):
            step = arb(at).exp()
            total += before * deltas[at] * ((step**many - 1) / (step - 1) if at > 0 else many)
            before *= step**many
        return total.min(arb(1))

    return Answer(operations, value, max(way.tolerance for ways in listed.values() for way in ways), refined=False)


def _lower(group: Any, one: Bounds, eps: float) -> Iterator[Answer]:
    """Yield the lower bounds of one record, then that of a test of the whole group."""
    yield from one(eps, False)
    if {"ClearReports", "ShuffledHistogram"} & set(kinds_of(group.profile)):
        yield Answer(1e6, lambda factor: both_orders(moved(_difference(group.profile), 2 * group.size), factor))
    elif len(group._closed.ways) > 1:
        raise NoCertificateError("the test of a whole group is not certified")
