"""Certified hockey-stick divergences, in interval arithmetic, of pairs with enumerated outcomes and of their compositions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from shufflebounds.certify._dispatch import hockey_stick_of, outcomes_of
from shufflebounds.certify.balls import (
    Answer,
    NoCertificateError,
    Outcomes,
    flint,
    largest_answer,
    multiset_probabilities,
    multisets,
)


@outcomes_of.of("_ListedPair")
def _(pair: Any) -> tuple[float, Callable[[], Outcomes]]:
    def outcomes() -> Outcomes:
        ball = flint().arb
        first, second = ([ball(x).exp() if x > -math.inf else ball(0) for x in law] for law in (pair.log_p, pair.log_q))
        return list(zip(first, second, strict=True))

    return float(len(pair.log_p)), outcomes


@outcomes_of.of("MassPair")
def _(pair: Any) -> tuple[float, Callable[[], Outcomes]]:
    def outcomes() -> Outcomes:
        ball = flint().arb
        return [(ball(p), ball(q)) for p, q in zip(pair.p, pair.q, strict=True)]

    return float(len(pair.p)), outcomes


@outcomes_of.of("Composition")
def _(composition: Any) -> tuple[float, Callable[[], Outcomes]]:
    parts = [(*outcomes_of(profile), times) for profile, times in composition.factors]
    if not all(known.attained.single for known, _ in composition._product.released.pairs):
        raise NoCertificateError("a factor is not a single pair of distributions")

    def outcomes() -> Outcomes:
        one = flint().arb(1)
        out = [(one, one)]
        for _, listed, times in parts:
            out = [(p * r, q * s) for p, q in out for r, s in multiset_probabilities(listed(), times)]
        return out

    return math.prod(multisets(int(size), times) for size, _, times in parts), outcomes


@hockey_stick_of.of("Composition")
def _(composition: Any) -> Answer:
    if not composition._by_adjacency:
        return hockey_stick_of.default(composition)
    return largest_answer(hockey_stick_of(way) for way in composition._by_adjacency)
