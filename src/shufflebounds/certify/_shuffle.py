"""Certificates of shuffled protocols."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, permutations, product
from typing import Any

import numpy as np

from shufflebounds._engines.excess.evaluation import Effort
from shufflebounds.certify._dispatch import Bounds, bounds_of, hockey_stick_of, kinds_of, of_people, outcomes_of, pairs_of
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, Outcomes, arb, both_orders, larger, smaller
from shufflebounds.certify.blanket import phi_answers, values_of
from shufflebounds.certify.by_definition import Reports, all_shares, bit_reports, kind_reports, moved, of_datasets, sum_outcomes
from shufflebounds.certify.clones_window import divergence_weights, every_count, of_window
from shufflebounds.certify.compositions import Listed
from shufflebounds.certify.families import Family, bit_rows, family_of, kary_family, matrix_of, sent
from shufflebounds.certify.interval_noise import interval_every_dataset, interval_outputs, within
from shufflebounds.certify.personalized import counted
from shufflebounds.certify.worst_dataset import square, worst_dataset

FEW_USERS = 16
"""Largest number of users of different budgets, or of flipped records, whose datasets are enumerated. Raised: longer run time."""


@of_people.of("ShuffledBits")
def _(protocol: Any) -> Callable[[int], Answer]:
    # Dummy reports are zeros, so they have no mirror image.
    every = range(protocol.users) if protocol.fakes else None
    datasets = every if isinstance(protocol.ones, str) else [protocol.ones]
    return lambda size: of_bits(protocol._bits, lambda: arb(protocol.flip), size, datasets)


@pairs_of.of("ShuffledBits")
def _(protocol: Any) -> list[tuple[float, Callable[[], Outcomes]]]:
    if not isinstance(protocol.ones, str):
        return pairs_of.default(protocol)
    if protocol.users > 1000:
        raise NoCertificateError("only the datasets of few users are enumerated")
    every = range(protocol.users if protocol.fakes else (protocol.users + 1) // 2)
    return [outcomes_of(pair) for ones in every for pair in (protocol.pair(ones), protocol.pair(ones).reverse())]


@hockey_stick_of.of("_UniformClones")
def _(protocol: Any) -> Answer:
    def pair(factor: Ball) -> tuple[Ball, Ball, Ball]:
        odds = arb(protocol.local_eps).exp()
        return 2 / (odds + 1) if protocol._is_stronger_clones else 1 / odds, *divergence_weights(odds, factor)

    return of_window(protocol.users - 1, pair)


@hockey_stick_of.of("ClearReports")
def _(protocol: Any) -> Answer:
    # This is the pair of the clone bounds for an infinite local budget and clones of probability 2/bins. For one bin, delta is 0.
    return of_window(protocol.fakes, lambda factor: (arb(2) / max(protocol.bins, 2), arb(min(protocol.bins - 1, 1)), factor))


@hockey_stick_of.computed("GeometricDummies", size=lambda protocol: 100.0, make=Answer)
def _(protocol: Any, factor: Ball) -> Ball:
    left, right, keep, zero = (arb(x) for x in (protocol.left, protocol.right, protocol.keep, 0))
    middle = (1 - left**protocol.shift) / (1 - left)
    masses = left**protocol.shift, middle, right / (1 - right)
    ratios = 1 - keep, 1 - keep + keep * left, 1 - keep + keep / right
    total = sum((p * q * (u - factor * v).max(zero) for p, u in zip(masses, ratios) for q, v in zip(masses, ratios)), zero)
    return zero if protocol.bins == 1 else total / (left * middle + 1 / (1 - right)) ** 2


@of_people.of("BinomialNoise", "ZeroSum")
def _(protocol: Any) -> Callable[[int], Answer]:
    trials, prob = (protocol.users, protocol.gamma) if "ZeroSum" in kinds_of(protocol) else (protocol.trials, protocol.prob)
    # No smaller shift has a larger delta.
    return lambda size: Answer(30.0 * (trials + 1), lambda factor: both_orders(moved([_binomial(trials, prob)], size), factor))


@outcomes_of.computed("_ShiftedBinomial", size=lambda pair: pair.trials + 2.0)
def _(pair: Any) -> Outcomes:
    outcomes = moved([_binomial(pair.trials, pair.prob)])
    return [(q, p) for p, q in outcomes] if pair.shifted_first else outcomes


def _binomial(trials: int, prob: float) -> tuple[Ball, Ball, int]:
    return 1 - arb(prob), arb(prob), trials


@hockey_stick_of.computed("ShuffledHistogram", size=lambda protocol: 100.0 * (protocol.users + 2), make=Answer)
def _(protocol: Any, factor: Ball) -> Ball:
    # The two counts that change are (B + 1, B') for one input and (B, B' + 1) for the other; B and B' are independent.
    outcomes = moved([_binomial(protocol.users, protocol.gamma)])
    return 0 * factor if protocol.bins == 1 else Listed([(q, p) for p, q in outcomes]).then(Listed(outcomes).value, factor)


@of_people.of("RealSum")
def _(protocol: Any) -> Callable[[int], Answer] | None:
    return None if protocol.view == "columns" and protocol.bits > 1 else lambda size: of_bits(
        protocol.users * protocol.bits, lambda: arb(protocol.flip), size * protocol.bits)


@bounds_of.of("RealSum")
def _(protocol: Any) -> Bounds:
    if of_people(protocol) is not None:
        return bounds_of.default(protocol)
    # One pair of neighbours changes the target's bits in all columns.
    below, above = map(bounds_of, protocol._closed.sides)
    return lambda eps, upper: (above if upper else below)(eps, upper)


@hockey_stick_of.of("FlippedReports")
def _(protocol: Any) -> Answer:
    # Dummy reports whose bins are known may have any bins, as the other users' reports.
    bins, flip, hidden, total = protocol.bins, protocol.flip, protocol.fakes * protocol._uniform, protocol.users + protocol.fakes
    if total > 200 or bins > 20:
        raise NoCertificateError("only few reports of few bins are enumerated")

    def sums(kinds: int, shown: int) -> Reports:
        """Return reports of each of the first `kinds` bins, of which the bits of the first `shown` bins are seen."""
        return bit_reports(kinds, shown, lambda: [
            [1 - arb(flip) if j == x else arb(flip) for j in range(shown)] for x in range(kinds)], total)

    if protocol.view == "sums" and not hidden:
        # The sums of all bins but the target's two are the same for both inputs, and independent of these two.
        return of_datasets(sums(min(bins, 3), 2), total - 1, [(shares, (0, 1)) for shares in all_shares(total - 1, min(bins, 3))])
    return of_datasets(sums(bins, bins) if protocol.view == "sums" else kind_reports(bins, 2**bins, lambda: bit_rows(
        [(x,) for x in range(bins)], bins, 1 - arb(flip), arb(flip)), total), total - hidden - 1, dummies=hidden)


@bounds_of.of("FlippedReports")
def _(protocol: Any) -> Bounds:
    # Records without uniform dummies are RAPPOR reports; 2 flip is exact in floating point.
    total, rappor = protocol.users + protocol.fakes, getattr(protocol._closed, "rappor", None)
    if protocol._uniform and protocol.view == "records" and (total > 200 or protocol.bins > 20):
        # Delta of fewer reports is an upper bound, because reports that do not depend on the target are post-processing; any number
        # is valid, and that of the numerical bound is 24. Delta of known dummies is an upper bound, because that of uniform ones is
        # at most a mean over their bins.
        few = [protocol.clear, *([protocol._closed.fewer(24)] if protocol.bins == 2 and protocol.flip > 0 else [])]
        known = bounds_of(replace(protocol, fake="known"))
        return lambda eps, upper: [*map(hockey_stick_of, few), Answer(30 * total, partial(_clones, protocol)), *known(eps, True)
                                   ] if upper else [hockey_stick_of(protocol)]
    return bounds_of.default(protocol) if rappor is None or total <= FEW_USERS else bounds_of(rappor)


def _clones(protocol: Any, factor: Ball) -> Ball:
    """Return the bound by the privacy blanket of records among uniform dummy reports.

    Let q be the flip probability and p = 1 - q. For either value, the bits of the target's two bins differ with probability
    p^2 + q^2; then the bit of the target's own bin is 1 with probability p^2/(p^2 + q^2). Any other user sends such a record of the
    first bin, with further bits as those of the target, with probability q^2 or more: if the user has a third bin, q p for the two
    bits times q/p for the bit of the third bin. The same is true of the second bin, and for a uniform dummy report the probability
    is the mean over its bins. These records are clones (docs/theorems/stronger-clones, users of different budgets).
    """
    flip, share = arb(protocol.flip), arb(1) / protocol.bins
    clone, kept = flip**2, flip**2 + (1 - flip) ** 2
    law = counted([(clone, protocol.users - 1), (share * kept + (1 - 2 * share) * clone, protocol.fakes)])
    return kept * every_count(law, (1 / flip - 1) ** 2, factor)


@hockey_stick_of.of("PersonalizedBits")
def _(protocol: Any) -> Answer:
    counts = [1] * protocol.local_eps.size if protocol.counts is None else [int(many) for many in protocol.counts]
    users, budgets = sum(counts), protocol.local_eps.tolist()
    # Over all datasets, delta of the user with the largest budget is the largest (docs/personalized).
    worst = range(len(counts)) if protocol.bits is not None else [budgets.index(max(budgets))]
    targets = worst if protocol.target is None else [protocol.target]
    if protocol.bits is None and users > FEW_USERS:
        raise NoCertificateError("only the datasets of few users are enumerated")
    # Of the users of each budget, any number may have the bit 1; a list of bits has one for each group.
    given = (list(product(*(range(many + 1) for many in counts))) if protocol.bits is None else
             [[many * int(bit) for many, bit in zip(counts, protocol.bits.tolist())]])

    def value(factor: Ball) -> Ball:
        divergences = []
        kept = [(odds / (odds + 1), 1 / (odds + 1)) for odds in (arb(e).exp() for e in budgets)]
        for target, ones in product(targets, given):
            # The target is one user of its group; the other users of the group have the bits of the dataset.
            left = [many - (i == target) for i, many in enumerate(counts)]
            law = [(*bit, n) for pair, many, high in zip(kept, left, ones, strict=True)
                   for bit, n in ((pair[::-1], min(high, many)), (pair, many - min(high, many)))]
            divergences.append(both_orders(sum_outcomes(law, (*kept[target], 1), (*kept[target][::-1], 1)), factor))
        return larger(*divergences)

    return Answer(4.0 * users**2 * len(targets) * len(given), value)


@bounds_of.of("PersonalizedBits")
def _(protocol: Any) -> Bounds:
    if protocol.bits is not None or protocol.users <= FEW_USERS:
        return bounds_of.default(protocol)
    # With all bits 0, delta is a lower bound, and so is delta of the least budget for all users. Of equal budgets, delta is known.
    (_, above), zeros = protocol._closed.sides, hockey_stick_of(protocol._zeros)
    below = getattr(protocol._closed, "least", above)
    return lambda eps, upper: bounds_of(above)(eps, True) if upper else chain([zeros], bounds_of(below)(eps, False))


def of_bits(bits: int, flip: Callable[[], Ball], width: int = 1, datasets: Sequence[int] | None = None) -> Answer:
    """Return the largest delta of shuffled bits that are flipped with one probability.

    `width` is the number of bits of the target, and `datasets` has the numbers of ones among the bits of others. None stands for
    all numbers; half of them suffice, because all bits may be exchanged with their complements.
    """
    datasets = datasets or range((bits - width) // 2 + 1)

    def value(factor: Ball) -> Ball:
        reports, shares = bit_reports(2, 1, lambda: [[flip()], [1 - flip()]], bits), ((bits - width - k, k) for k in datasets)
        return of_datasets(reports, bits - width, [(share, None) for share in shares], own=width).value(factor)

    # Powers of polynomials take a number of operations proportional to the square of their degree.
    return Answer((8.0 + 0.014 * bits) * bits * len(datasets), value)


def _stronger_flip(protocol: Any) -> Ball:
    """Return the flip probability of shuffled bits of which the messages of two inputs are a post-processing.

    If R_0/R_1 and R_1/R_0 are at most odds = (1 - flip)/flip, then R_0 = odds A + B and R_1 = A + odds B for measures A and B.
    """
    one, other = family_of(protocol.randomizer)[1]().rows
    return 1 / (1 + larger(*(larger(p, q) / smaller(p, q) for p, q in zip(one, other, strict=True))))


@of_people.of("Shuffled")
def _(protocol: Any) -> Callable[[int], Answer] | None:
    # If the stored probabilities `low` and `high` of a matrix of one bit do not sum to 1, the ball contains delta for both flip
    # probabilities, `low` and 1 - `high`.
    def flip() -> Ball:
        one, other = family_of(protocol.randomizer)[1]().rows[0]
        return one.min(other).union(1 - one.max(other))

    return None if protocol._exact is None else partial(of_bits, protocol.users, flip)


@hockey_stick_of.of("Shuffled")
def _(protocol: Any) -> Answer:
    if protocol._exact is not None or protocol._message is not None:
        return hockey_stick_of.default(protocol) if protocol._exact is not None else hockey_stick_of(protocol._message)
    if protocol._bounds.mixed is None:
        raise NoCertificateError("it has two bounds")
    return _matrix(protocol, protocol.users, protocol.participation)


@bounds_of.of("Shuffled")
def _(protocol: Any) -> Bounds:
    if protocol._message is not None or protocol._exact is not None:
        return lambda eps, upper: [hockey_stick_of(protocol)]
    if _is_noise(protocol.randomizer):
        return lambda eps, upper: _upper(protocol, eps) if upper else interval_outputs(protocol, eps, False)
    family_of(protocol.randomizer)  # raises NoCertificateError
    return lambda eps, upper: _upper(protocol, eps) if upper else _lower(protocol, eps)


def _is_noise(randomizer: Any) -> bool:
    """Return whether the outputs for inputs in an interval are divided into cells."""
    return bool({"GaussianMechanism", "LaplaceMechanism", "DiscreteGaussianMechanism"} & set(kinds_of(randomizer)))


def _upper(protocol: Any, eps: float) -> Iterator[Answer]:
    """Yield the certificates of the argument that gives the stated bound, then that of the bound for one message."""
    argument, normal = protocol.argument(eps), "GaussianMechanism" in kinds_of(protocol.randomizer)
    if argument == "shuffled bits":
        yield of_bits(protocol.users, partial(_stronger_flip, protocol))
    elif argument == "privacy blanket":
        family, noise = _family(protocol), _is_noise(protocol.randomizer)
        yield from interval_outputs(protocol, eps, True) if noise else _sums(protocol, family, family().pairs, None)
    elif argument == "worst dataset":
        yield interval_every_dataset(protocol, eps) if normal else worst_dataset(protocol)
    elif argument == "every dataset":
        yield _matrix(protocol, protocol.users, protocol.participation)
    elif argument != "one message alone":
        for (users, parts), share in product(protocol._bounds.upper.witnesses(eps), {protocol.participation, 1.0}):
            yield _matrix(protocol, users, share, parts, every=True)
    # All messages are a post-processing of the target's, which is sent with probability `participation`.
    one = hockey_stick_of(within(protocol))
    yield one._replace(value=lambda factor: protocol.participation * one.value(factor))


def _lower(protocol: Any, eps: float) -> Iterator[Answer]:
    """Yield the certificates of the datasets that the engine names, for finitely many outputs."""
    bounds = protocol._bounds
    value, place = bounds.lower._best(eps, Effort.FINE)
    if bounds.mixed is not None and (mixed := bounds.mixed.best(eps))[0] > value:
        yield _matrix(protocol, protocol.users, protocol.participation, [mixed[1:]])
    if not bounds.lower._laws.below:
        raise NoCertificateError("the dataset of its lower bound is not known")
    # All other users have one input in the engine's dataset: the input for which X has the same second moment.
    law, factor, candidates = bounds.lower._laws.below[place][2], arb(eps).exp(), []
    moment = np.logaddexp.reduce(law.log_mass + 2 * np.log(np.maximum(np.abs(law.values(eps)), 1e-300)))
    # The lower bound of a pure budget is attained by k-ary response with two or three values.
    three: list[Callable[[], Family]] = [lambda: kary_family(3, protocol.randomizer.local_eps).thinned(protocol.participation)]
    for family in [_family(protocol), *(three if "PureLocal" in kinds_of(protocol.randomizer) else [])]:
        laws = family()
        for (i, j), k in product(laws.pairs, laws.others or range(len(laws.rows))):
            here = sum(square(a - factor * b) / m for a, b, m in zip(*(laws.rows[x] for x in (i, j, k)), strict=True) if m > 0)
            candidates.append((abs(float(here.upper().log()) - moment), family, (i, j), k))
    for _, family, pair, k in sorted(candidates, key=lambda one: one[0])[:6]:
        yield from _sums(protocol, family, [pair], k)


def _matrix(protocol: Any, users: int, participation: float,
            chosen: Sequence[tuple[Sequence[int], tuple[int, int] | None]] | None = None, every: bool = False) -> Answer:
    """Return the maximum of delta over datasets of a randomizer with a matrix.

    If `every`, for each ordered pair of the target's inputs every dataset must contain some dataset of `chosen` (one more user is
    post-processing: docs/theorems/worst-dataset).
    """
    inputs, outputs, matrix = matrix_of(protocol.randomizer)
    # If every permutation of the bins permutes the outputs, the target has the bins 0 and 1, and the order of the others is free.
    alike = bool({"KaryResponse", "SubsetSelection", "UnaryEncoding"} & {*kinds_of(protocol.randomizer)})
    pairs = [(0, 1)] if alike else list(permutations(range(inputs), 2))
    if alike and (every or chosen is None):
        chosen = [(data, pair) for data, pair in chosen or product(all_shares(users - 1, inputs), pairs)
                  if pair in pairs and [*data[2:]] == sorted(data[2:])]

    def rows() -> list[list[Ball]]:
        # The messages of the protocol must be a post-processing of those that are enumerated.
        if not 0 < users <= protocol.users or participation < protocol.participation or not all(
                any(pair == one and all(a >= b for a, b in zip(own, part)) for part, one in chosen or ())
                for pair in pairs for own in all_shares(users - 1, inputs) if every and (not alike or [*own[2:]] == sorted(own[2:]))
        ) or not all(every or sum(data) == users - 1 for data, _ in chosen or ()):
            raise ArithmeticError(f"{users} users of participation {participation!r}, or these datasets, are no stronger protocol")
        return [sent(row, participation) for row in matrix()]

    return of_datasets(kind_reports(inputs, outputs + (participation < 1), rows, users), users - 1, chosen)


def _family(protocol: Any) -> Callable[[], Family]:
    """Return the function that makes the family, with participation."""
    return lambda: family_of(protocol.randomizer)[1]().thinned(protocol.participation)


def _sums(protocol: Any, family: Callable[[], Family], pairs: list[tuple[int, int]], others: int | None) -> tuple[Answer, ...]:
    """Return the certificates of the largest Phi_n (`blanket`) of the target's pairs of inputs; m is the blanket if `others` is
    None, or else the distribution of this input.
    """
    def value(factor: Ball, *, phi: Callable[..., Ball]) -> Ball:
        laws, values = family(), []
        measure = laws.blanket if others is None else laws.rows[others]
        for i, j in pairs:
            alone, law = values_of(list(zip(laws.rows[i], laws.rows[j], measure, strict=True)), factor)
            values.append(alone + phi(law, protocol.users, (1 - sum((m for _, m in law), arb(0))).max(arb(0))))
        return larger(*values)

    return phi_answers(len(family().blanket), protocol.users, value, len(pairs))
