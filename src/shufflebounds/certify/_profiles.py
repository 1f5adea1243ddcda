"""Certified hockey-stick divergences, in interval arithmetic, of pairs with enumerated outcomes and of their compositions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from shufflebounds.certify._by_kind import kinds_of
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
from shufflebounds.certify.sampled_gaussians import OPERATIONS, TOLERANCE, Part, delta


@outcomes_of.of("_ListedPair")
def _(pair: Any) -> tuple[float, Callable[[], Outcomes]]:
    def outcomes() -> Outcomes:
        ball = flint().arb
        # Lists whose sums are not 1 are completed first, by the rules of `DominatingPair.from_pmfs`.
        first, second = ([ball(x).exp() if x > -math.inf else ball(0) for x in law.tolist()] for law in pair._complete[:2])
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
    if not all(info.attained.single for info, _ in composition._product.released.pairs):
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
    if composition._by_adjacency:
        return largest_answer(hockey_stick_of(way) for way in composition._by_adjacency)
    releases = [(_release(profile), times) for profile, times in composition.factors]
    # A release on all records has the same delta for a record that is removed or added.
    ways = {removed for (_, removed), _ in releases} - {None}
    if any(part is None for (part, _), _ in releases) or len(ways) > 1:
        return hockey_stick_of.default(composition)
    parts = [Part(*part, times) for (part, _), times in releases if part is not None]
    operations = sum(OPERATIONS if part.rate < 1 else 1e4 for part in parts)
    return Answer(operations, lambda factor: delta(parts, factor, False not in ways), TOLERANCE, refined=False)


def _release(profile: Any) -> tuple[tuple[float, float, float] | None, bool | None]:
    """Return (sigma, sensitivity, rate) of Gaussian noise, or None, and the direction of a sample, or None."""
    if "GaussianMechanism" in kinds_of(profile):
        return (profile.sigma, profile.sensitivity, 1.0), None
    if "SampledPair" in kinds_of(profile) and "GaussianMechanism" in kinds_of(profile.mechanism):
        return (profile.mechanism.sigma, profile.mechanism.sensitivity, profile.rate), profile.removed if profile.rate < 1 else None
    return None, None


_REASONS = {
    "AccountingProfile": "the numbers of another program are not recomputed",
    "DensityRandomizer": "no family of certificates integrates a density that is given as a function",
    "OfEveryUser": "the rates of clones are not certified, only given rates are",
    "OfOneUser": "the rates of clones are not certified, only given rates are",
}
"""Classes without a certificate, with the reason."""


def _refuse(reason: str) -> Callable[[Any], Answer]:
    def refused(profile: Any) -> Answer:
        raise NoCertificateError(reason)

    return refused


for _name, _reason in _REASONS.items():
    hockey_stick_of.of(_name)(_refuse(_reason))
