"""Certificates of shuffled protocols."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import permutations, zip_longest
from typing import Any

import numpy as np

from shufflebounds._base.types import FloatArray
from shufflebounds._engines.datasets.every import all_shares
from shufflebounds._engines.excess.evaluation import Effort
from shufflebounds.certify._by_kind import kinds_of
from shufflebounds.certify._dispatch import Bounds, bounds_of, hockey_stick_of
from shufflebounds.certify._worst_dataset import worst_dataset
from shufflebounds.certify.balls import Answer, Ball, NoCertificateError, flint, hockey_stick, larger, polynomial
from shufflebounds.certify.blanket import TOLERANCE, contour, enumerated, enumeration_operations, phi_operations, values_of
from shufflebounds.certify.clones_window import binomial_window, every_count, window_operations
from shufflebounds.certify.families import Family, family_of, kary_family, matrix_of


@hockey_stick_of.of("ShuffledBits")
def _(protocol: Any) -> Answer:
    datasets = range(protocol.users) if isinstance(protocol.ones, str) else [protocol.ones]
    return _of_bits(protocol._bits, datasets, lambda: flint().arb(protocol.flip))


@hockey_stick_of.of("_UniformClones")
def _(protocol: Any) -> Answer:
    users, local_eps, stronger = protocol.users, protocol.local_eps, protocol._stronger
    return Answer(window_operations(users, local_eps, stronger=stronger),
                  lambda factor: binomial_window(users, local_eps, factor, stronger=stronger))


@hockey_stick_of.of("BinomialNoise")
def _(protocol: Any) -> Answer:
    def value(factor: Ball) -> Ball:
        prob = flint().arb(protocol.prob)
        law = polynomial([(1 - prob, prob, protocol.trials)])
        plain, moved = [*law, 0 * prob], [0 * prob, *law]
        return larger(hockey_stick(zip(plain, moved), factor), hockey_stick(zip(moved, plain), factor))

    return Answer(30.0 * (protocol.trials + 1), value)


@hockey_stick_of.of("PersonalizedClones")
def _(protocol: Any) -> Answer:
    def value(factor: Ball) -> Ball:
        ball = flint().arb
        law = polynomial([(1 - 2 * ball(rate), 2 * ball(rate), int(many))
                          for rate, many in zip(protocol.rates.tolist(), protocol.counts.tolist())])
        weight = ball(protocol.weight)
        return protocol.scale * every_count(law, (1 - weight) / weight, factor)

    return Answer(12.0 * protocol.counts.sum() + 0.5 * float(protocol.rates.size) * protocol.counts.sum(), value)


@hockey_stick_of.of("PersonalizedBits")
def _(protocol: Any) -> Answer:
    if protocol.bits is None:
        return hockey_stick_of.default(protocol)
    bits, size = protocol.bits.tolist(), protocol.local_eps.size
    targets = range(size) if protocol.target is None else [protocol.target]

    def value(factor: Ball) -> Ball:
        found = []
        kept = [(odds / (odds + 1), 1 / (odds + 1)) for odds in (flint().arb(e).exp() for e in protocol.local_eps.tolist())]
        for target in targets:
            others = [(*(pair[::-1] if bit else pair), 1) for i, (pair, bit) in enumerate(zip(kept, bits)) if i != target]
            zero, one = (polynomial([*others, (*pair, 1)]) for pair in (kept[target], kept[target][::-1]))
            found += [hockey_stick(zip(zero, one), factor), hockey_stick(zip(one, zero), factor)]
        return larger(*found)

    return Answer(4.0 * size**2 * len(targets), value)


def _of_bits(bits: int, datasets: Iterable[int], flip: Callable[[], Ball]) -> Answer:
    """Return the largest delta of shuffled bits that are flipped with one probability; `datasets` has numbers of ones."""
    datasets = list(datasets)

    def value(factor: Ball) -> Ball:
        change, found = flip(), []
        for ones in datasets:
            others = [(change, 1 - change, ones), (1 - change, change, bits - 1 - ones)]
            zero, one = (polynomial([*others, target]) for target in ((1 - change, change, 1), (change, 1 - change, 1)))
            found += [hockey_stick(zip(zero, one), factor), hockey_stick(zip(one, zero), factor)]
        return larger(*found)

    return Answer(60.0 * bits * len(datasets), value)


def _stronger_bits(protocol: Any, flip: float) -> Answer:
    """Return delta of shuffled bits of which the messages of two inputs are a post-processing.

    With odds = (1 - flip)/flip, R_0 = odds A + B and R_1 = A + odds B for measures A and B if both ratios are at most `odds`.
    """
    _, family = family_of(protocol.randomizer)

    def allowed() -> Ball:
        change, rows = flint().arb(flip), family().rows
        if len(rows) != 2 or not all(p * change <= q * (1 - change) for one, other in (rows, rows[::-1])
                                     for p, q in zip(one, other, strict=True)):
            raise ArithmeticError(f"bits of flip probability {flip!r} do not bound the randomizer")
        return change

    return _of_bits(protocol.users, range(protocol.users), allowed)


def _exact_bits(protocol: Any) -> Answer:
    """Return delta of shuffled randomized response of one bit."""
    _, family = family_of(protocol.randomizer)
    return _of_bits(protocol.users, range(protocol.users),
                    lambda: larger(*(row[0].min(row[1]) for row in family().rows)))


@hockey_stick_of.of("Shuffled")
def _(protocol: Any) -> Answer:
    if protocol._exact is not None:
        return _exact_bits(protocol)
    if protocol._bounds.mixed is None:
        family_of(protocol.randomizer)  # raises NoCertificateError
        raise NoCertificateError("it has two bounds, so pass bound='upper' or bound='lower'")
    return _datasets(protocol.randomizer, protocol.users, protocol.participation, _all_datasets)


@bounds_of.of("Shuffled")
def _(protocol: Any) -> Bounds:
    if protocol.inputs is not None:
        raise NoCertificateError("a list of inputs is given")
    family_of(protocol.randomizer)  # raises NoCertificateError
    return lambda eps, upper: _upper(protocol, eps) if upper else _lower(protocol, eps)


def _upper(protocol: Any, eps: float) -> Iterator[Answer]:
    """Yield the certificates of the argument that gives the stated bound, then that of one message."""
    argument = protocol.argument(eps)
    if argument == "shuffled bits":
        yield _exact_bits(protocol) if protocol._exact is not None else _stronger_bits(protocol, protocol._bits.flip)
    elif argument == "privacy blanket":
        family = _family(protocol)
        yield from _sums(protocol, [(family, i, j, lambda known: known.least) for i, j in family().pairs])
    elif argument == "worst dataset":
        yield worst_dataset(protocol)
    elif argument == "every dataset":
        yield _datasets(protocol.randomizer, protocol.users, protocol.participation, _all_datasets)
    else:
        for data in protocol._bounds.upper._stronger:
            for share in {protocol.participation, 1.0}:
                yield _datasets(protocol.randomizer, data._every._users, share, _all_datasets)
    one = hockey_stick_of(protocol.randomizer)
    # The messages are a post-processing of the target's message, which is sent with probability `participation`.
    yield one._replace(value=lambda factor: protocol.participation * one.value(factor))


def _lower(protocol: Any, eps: float) -> Iterator[Answer]:
    """Yield the certificates of the datasets that the engine names."""
    if protocol._exact is not None:
        yield _exact_bits(protocol)
        return
    bounds = protocol._bounds
    value, place = bounds.lower._best(eps, Effort.FINE)
    if bounds.mixed is not None:
        mixed, shares, pair = bounds.mixed.best(eps)
        if mixed > value:
            yield _datasets(protocol.randomizer, protocol.users, protocol.participation, lambda others, inputs: [(shares, pair)])
    if not bounds.lower._laws.below:
        raise NoCertificateError("the dataset of its lower bound is not known")
    # The engine's dataset is the one of equal inputs whose X has the same second moment.
    law, found = bounds.lower._laws.below[place][2], []
    moment = _log_moment(law.log_mass, law.values(eps))
    for family in _attained(protocol):
        known, factor = family(), math.exp(eps)
        rows = [np.array([float(p) for p in row]) for row in known.rows]
        for (i, j), k in itertools.product(known.pairs, range(len(rows))):
            seen = rows[k] > 0
            here = _log_moment(-np.log(rows[k][seen]), rows[i][seen] - factor * rows[j][seen])
            found.append((abs(here - moment), family, i, j, k))
    found.sort(key=lambda one: one[0])
    for _, family, i, j, k in found[:3]:
        yield from _sums(protocol, [(family, i, j, partial(lambda k, known: known.rows[k], k))])


def _log_moment(log_weights: FloatArray, values: FloatArray) -> float:
    """Return the log of the weighted sum of the squares of the values."""
    with np.errstate(all="ignore"):
        terms = log_weights + 2 * np.log(np.abs(values))
    return float(np.logaddexp.reduce(np.minimum(terms, 1e4), initial=-1e4))


def _family(protocol: Any) -> Callable[[], Family]:
    """Return the function that makes the family, with participation."""
    _, family = family_of(protocol.randomizer)
    return lambda: family().thinned(protocol.participation)


def _attained(protocol: Any) -> list[Callable[[], Family]]:
    """Return the functions that make the families in which a lower bound is attained."""
    if "PureLocal" not in kinds_of(protocol.randomizer):
        return [_family(protocol)]
    kary = [kary_family(bins, protocol.randomizer.local_eps) for bins in (2, 3)]
    return [lambda one=one: one().thinned(protocol.participation) for one in kary]  # type: ignore[misc]


def _sums(protocol: Any, choices: list[tuple[Callable[[], Family], int, int, Callable[[Family], list[Ball]]]]) -> Iterator[Answer]:
    """Yield the certificates of the largest Phi_n of several (family, target's inputs i and j, m)."""
    users, kinds = protocol.users, max(len(family().least) for family, *_ in choices)

    def value(factor: Ball, *, phi: Callable[..., Ball]) -> Ball:
        one, found = flint().arb(1), []
        for family, i, j, least in choices:
            known = family()
            measure = least(known)
            alone, law = values_of(list(zip(known.rows[i], known.rows[j], measure, strict=True)), factor)
            found.append(alone + phi(law, users, (one - sum(measure)).max(0 * one)))
        return larger(*found)

    yield Answer(len(choices) * enumeration_operations(kinds, users), partial(value, phi=enumerated))
    yield Answer(len(choices) * phi_operations(kinds), partial(value, phi=contour), TOLERANCE, refined=False)


Datasets = Callable[[int, int], list[tuple[tuple[int, ...], "tuple[int, int] | None"]]]
"""A function of the numbers of other users and of inputs: the counts of the other users' inputs, with the target's pair or None."""


def _all_datasets(others: int, inputs: int) -> list[tuple[tuple[int, ...], tuple[int, int] | None]]:
    return [(shares, None) for shares in all_shares(others, inputs)]


def _datasets(randomizer: Any, users: int, participation: float, datasets: Datasets) -> Answer:
    """Return the maximum of delta over datasets of a randomizer with a matrix."""
    inputs, outputs, matrix = matrix_of(randomizer)
    outputs += participation < 1
    # By Kronecker's substitution, the numbers of messages of each output are the digits of the exponent of a single variable.
    shifts = [0, *((users + 1) ** y for y in range(outputs - 1))]
    size = 8.0 * (float(shifts[-1]) * users + 1)
    number = 1 if datasets is not _all_datasets else math.comb(users + inputs - 2, inputs - 1) * inputs**2

    def value(factor: Ball) -> Ball:
        library = flint()
        ball, share = library.arb, library.arb(participation)
        rows = []
        for row in matrix():
            one = [ball(0)] * (shifts[-1] + 1)
            for shift, mass in zip(shifts, [share * p for p in row] + [1 - share] * (participation < 1), strict=True):
                one[shift] = mass
            rows.append(library.arb_poly(one))
        best = ball(0)
        for shares, pair in datasets(users - 1, inputs):
            rest = library.arb_poly([1])
            for row, count in zip(rows, shares):
                rest *= row**count
            laws = [[law[k] for k in range(law.degree() + 1)] for law in (rest * row for row in rows)]
            for first, second in permutations(laws, 2) if pair is None else [(laws[pair[0]], laws[pair[1]])]:
                best = best.max(hockey_stick(zip_longest(first, second, fillvalue=ball(0)), factor))
        return best

    return Answer(size * number, value)
