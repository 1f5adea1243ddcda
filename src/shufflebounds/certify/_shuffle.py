"""Certified hockey-stick divergences, in interval arithmetic, of shuffled protocols."""

from __future__ import annotations

import math
from functools import reduce
from itertools import permutations, zip_longest
from typing import Any

import numpy as np

from shufflebounds._engines.datasets.every import all_shares
from shufflebounds.certify._by_kind import kinds_of
from shufflebounds.certify._dispatch import hockey_stick_of, outputs_of
from shufflebounds.certify._worst_dataset import worst_dataset
from shufflebounds.certify.balls import (
    MOST_OPERATIONS,
    Answer,
    Ball,
    blanket_delta,
    blanket_operations,
    clones_delta,
    flint,
    hockey_stick,
    larger,
    polynomial,
)


@hockey_stick_of.of("ShuffledBits")
def _(protocol: Any) -> Answer:
    bits = protocol._bits
    datasets = range(protocol.users) if isinstance(protocol.ones, str) else [protocol.ones]

    def value(factor: Ball) -> Ball:
        flip = flint().arb(protocol.flip)
        found = []
        for ones in datasets:
            others = [(flip, 1 - flip, ones), (1 - flip, flip, bits - 1 - ones)]
            zero, one = (polynomial([*others, target]) for target in ((1 - flip, flip, 1), (flip, 1 - flip, 1)))
            found += [hockey_stick(zip(zero, one), factor), hockey_stick(zip(one, zero), factor)]
        return larger(*found)

    return 60.0 * bits * len(datasets), value


@hockey_stick_of.of("_UniformClones")
def _(protocol: Any) -> Answer:
    def value(factor: Ball) -> Ball:
        odds = flint().arb(protocol.local_eps).exp()
        rate = 2 / (odds + 1) if protocol._stronger else 1 / odds
        return clones_delta(polynomial([(1 - rate, rate, protocol.users - 1)]), odds, factor)

    return float(protocol.users) ** 2, value


@hockey_stick_of.of("BinomialNoise")
def _(protocol: Any) -> Answer:
    def value(factor: Ball) -> Ball:
        prob = flint().arb(protocol.prob)
        law = polynomial([(1 - prob, prob, protocol.trials)])
        plain, moved = [*law, 0 * prob], [0 * prob, *law]
        return larger(hockey_stick(zip(plain, moved), factor), hockey_stick(zip(moved, plain), factor))

    return 30.0 * (protocol.trials + 1), value


@hockey_stick_of.of("PersonalizedClones")
def _(protocol: Any) -> Answer:
    def value(factor: Ball) -> Ball:
        ball = flint().arb
        law = polynomial([(1 - 2 * ball(rate), 2 * ball(rate), int(many))
                          for rate, many in zip(protocol.rates.tolist(), protocol.counts.tolist())])
        weight = ball(protocol.weight)
        return protocol.scale * clones_delta(law, (1 - weight) / weight, factor)

    return float(protocol.counts.sum() + 1) ** 2, value


@hockey_stick_of.of("PersonalizedBits")
def _(protocol: Any) -> Answer:
    if protocol.bits is None:
        return hockey_stick_of.default(protocol)
    bits, size = protocol.bits.tolist(), protocol.local_eps.size
    counts = [1] * size if protocol.counts is None else [int(many) for many in protocol.counts]
    targets = range(size) if protocol.target is None else [protocol.target]

    def value(factor: Ball) -> Ball:
        found = []
        kept = [(odds / (odds + 1), 1 / (odds + 1)) for odds in (flint().arb(e).exp() for e in protocol.local_eps.tolist())]
        for target in targets:
            others = [(*(pair[::-1] if bit else pair), many - (i == target))
                      for i, (pair, bit, many) in enumerate(zip(kept, bits, counts)) if many > (i == target)]
            zero, one = (polynomial([*others, (*pair, 1)]) for pair in (kept[target], kept[target][::-1]))
            found += [hockey_stick(zip(zero, one), factor), hockey_stick(zip(one, zero), factor)]
        return larger(*found)

    return 4.0 * sum(counts) ** 2 * len(targets), value


@hockey_stick_of.of("Shuffled")
def _(protocol: Any) -> Answer:
    found = _every_dataset(protocol)
    if found is not None:
        return found
    answers = [answer for answer in (_blanket(protocol), worst_dataset(protocol)) if answer is not None]
    if not answers:
        outputs_of(protocol.randomizer)  # raises TypeError
    if protocol._bits is not None:
        answers.append(hockey_stick_of(protocol._bits))
    # Each answer is an upper bound of delta. Answers that would take too long are left out; if all would, `certified` refuses.
    quick = [answer for answer in answers if answer[0] <= MOST_OPERATIONS] or answers[:1]
    return sum(operations for operations, _ in quick), lambda factor: reduce(
        lambda one, other: one.min(other), (value(factor) for _, value in quick))


def _blanket(protocol: Any) -> Answer | None:
    """Return the bound of the privacy blanket, or None if the outputs are not known."""
    try:
        pairs, kinds, outputs = outputs_of(protocol.randomizer)
    except TypeError:
        return None
    share = protocol.participation

    def value(factor: Ball) -> Ball:
        sent = flint().arb(share)
        # "No message" is one more output, with the same probability for every input.
        silent = [(1 - sent, 1 - sent, 1 - sent)] if share < 1 else []
        messages = ([(sent * a, sent * b, sent * m) for a, b, m in pair] for pair in outputs())
        return larger(*(blanket_delta([*sent_outputs, *silent], protocol.users, factor) for sent_outputs in messages))

    return pairs * blanket_operations(kinds + (share < 1), protocol.users), value


def _every_dataset(protocol: Any) -> Answer | None:
    """Return the maximum of delta over all datasets if the randomizer is a matrix, or None if there are too many datasets."""
    if protocol._bounds.mixed is None or "FiniteRandomizer" not in kinds_of(protocol.randomizer):
        return None
    columns, counts = np.unique(protocol.randomizer._rows, axis=1, return_counts=True)
    others, (inputs, kinds) = protocol.users - 1, columns.shape
    kinds += protocol.participation < 1
    # By Kronecker's substitution, the numbers of messages of each kind are the digits of the exponent of a single variable.
    shifts = [0, *((protocol.users + 1) ** y for y in range(kinds - 1))]
    operations = 8.0 * (shifts[-1] * protocol.users + 1) * math.comb(others + inputs - 1, inputs - 1) * inputs**2
    if operations > MOST_OPERATIONS:
        return None

    def value(factor: Ball) -> Ball:
        library = flint()
        ball, share = library.arb, library.arb(protocol.participation)
        rows = []
        for row in columns.tolist():
            one = [ball(0)] * (shifts[-1] + 1)
            masses = [share * many * ball(p) for p, many in zip(row, counts.tolist())] + [1 - share] * (protocol.participation < 1)
            for shift, mass in zip(shifts, masses, strict=True):
                one[shift] = mass
            rows.append(library.arb_poly(one))
        best = ball(0)
        for shares in all_shares(others, inputs):
            rest = library.arb_poly([1])
            for row, count in zip(rows, shares):
                rest *= row**count
            laws = [[law[k] for k in range(law.degree() + 1)] for law in (rest * row for row in rows)]
            for first, second in permutations(laws, 2):
                best = best.max(hockey_stick(zip_longest(first, second, fillvalue=ball(0)), factor))
        return best

    return operations, value
