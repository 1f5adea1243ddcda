"""Certified hockey-stick divergences of shuffled protocols."""

from __future__ import annotations

from shufflebounds.certify._dispatch import hockey_stick_of, outputs_of
from shufflebounds.certify.balls import (
    Answer,
    Ball,
    blanket,
    blanket_operations,
    clones,
    flint,
    hockey_stick,
    larger,
    polynomial,
)
from shufflebounds.shuffle.bits import ShuffledBits
from shufflebounds.shuffle.clones import _UniformClones
from shufflebounds.shuffle.noise import BinomialNoise
from shufflebounds.shuffle.personalized import PersonalizedClones
from shufflebounds.shuffle.personalized_bits import PersonalizedBits
from shufflebounds.shuffle.shuffled import Shuffled
from shufflebounds.shuffle.variation_ratio import VariationRatio


@hockey_stick_of.register
def _(protocol: ShuffledBits) -> Answer:
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


@hockey_stick_of.register
def _(protocol: _UniformClones) -> Answer:
    def value(factor: Ball) -> Ball:
        odds = flint().arb(protocol.local_eps).exp()
        rate = 2 / (odds + 1) if protocol._stronger else 1 / odds
        return clones(polynomial([(1 - rate, rate, protocol.users - 1)]), odds, factor)

    return float(protocol.users) ** 2, value


@hockey_stick_of.register
def _(protocol: BinomialNoise) -> Answer:
    def value(factor: Ball) -> Ball:
        prob = flint().arb(protocol.prob)
        law = polynomial([(1 - prob, prob, protocol.trials)])
        plain, moved = [*law, 0 * prob], [0 * prob, *law]
        return larger(hockey_stick(zip(plain, moved), factor), hockey_stick(zip(moved, plain), factor))

    return 30.0 * (protocol.trials + 1), value


@hockey_stick_of.register
def _(protocol: PersonalizedClones) -> Answer:
    def value(factor: Ball) -> Ball:
        ball = flint().arb
        law = polynomial([(1 - 2 * ball(rate), 2 * ball(rate), int(many))
                          for rate, many in zip(protocol.rates.tolist(), protocol.counts.tolist())])
        weight = ball(protocol.weight)
        return protocol.scale * clones(law, (1 - weight) / weight, factor)

    return float(protocol.counts.sum() + 1) ** 2, value


@hockey_stick_of.register
def _(protocol: PersonalizedBits) -> Answer:
    if protocol.bits is None:
        return hockey_stick_of.dispatch(object)(protocol)
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

    return 4.0 * size**2 * len(targets), value


@hockey_stick_of.register
def _(protocol: Shuffled) -> Answer:
    pairs, kinds, outputs = outputs_of(protocol.randomizer)
    share = protocol.participation

    def value(factor: Ball) -> Ball:
        sent = flint().arb(share)
        # "no message" is an output like any other
        silent = [(1 - sent, 1 - sent, 1 - sent)] if share < 1 else []
        bound = larger(*(
            blanket([*((sent * a, sent * b, sent * m) for a, b, m in pair), *silent], protocol.users, factor) for pair in outputs()
        ))
        return bound if bits is None else bound.min(bits(factor))

    more, bits = (0.0, None) if protocol._bits is None else hockey_stick_of(protocol._bits)
    return more + pairs * blanket_operations(kinds + (share < 1), protocol.users), value


@hockey_stick_of.register
def _(protocol: VariationRatio) -> Answer:
    def value(factor: Ball) -> Ball:
        p, beta, q = (flint().arb(x) for x in (protocol.p, protocol.beta, protocol.q))
        alpha = beta / (p - 1)
        rest = (1 - (p + 1) * alpha).max(flint().arb(0))
        outputs = [(p * alpha, alpha, p * alpha / q), (alpha, p * alpha, p * alpha / q), (rest, rest, rest / q)]
        return blanket(outputs, protocol.users, factor)

    return blanket_operations(3, protocol.users), value
