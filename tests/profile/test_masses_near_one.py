"""Pairs whose masses sum to 1 within 1e-9 only: every consumer of a pair against sums over the outcomes with 40 digits."""

import itertools

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mpf

from shufflebounds.profile import DominatingPair
from shufflebounds.sampling import AllocationPair, RandomAllocation, SampledPair, Subsampled
from tests.oracles import allocated, hockey_stick


@st.composite
def lists(draw):
    """Draw the masses of two distributions of two or three outcomes, some of them impossible, with sums of 1 within 1e-9."""
    size, found = draw(st.integers(2, 3)), []
    for _ in range(2):
        weights = [draw(st.sampled_from([0.0, 1e-6, 1.0])) * draw(st.floats(0.1, 1.0)) for _ in range(size)]
        weights[draw(st.integers(0, size - 1))] = 1.0
        law = np.array(weights) / sum(weights)
        excess = draw(st.sampled_from([0.0, 3e-17, -2e-16, 1e-12, 8e-10, -8e-10, 9.99e-10]))
        place = draw(st.integers(-1, size - 1))
        if place < 0:
            law *= 1 + excess
        elif law[place] > 2e-9:
            law[place] += excess
        found.append(law)
    return found


def readings(p, q):
    """Return pairs of lists that the masses may stand for: divided by their sums, with the missing mass apart, as they are."""
    # The library receives logarithms, whose rounding is a relative 1e-7 of a missing mass of 1e-9.
    p, q = ([mpmath.exp(mpf(float(x))) for x in law] for law in (p, q))
    # A difference of the size of rounding errors counts as 0.
    missing = [gap if (gap := 1 - mpmath.fsum(law)) > 1e-15 * len(law) else 0 for law in (p, q)]
    whole = [[x / mpmath.fsum(law) for x in law] for law in (p, q)]
    apart = [[max(missing[0], 0), 0], [0, max(missing[1], 0)]]
    listed = [[x / max(mpmath.fsum(law), 1) for x in law] + more for law, more in zip((p, q), apart)]
    # Masses that sum to more than 1 are no distribution as they are.
    return [whole, listed, *([(p, q)] if max(map(mpmath.fsum, (p, q))) <= 1 else [])]


def renyi(p, q, order):
    if any(a > 0 and not b for a, b in zip(p, q)):
        return mpmath.inf
    return mpmath.log(mpmath.fsum(a**order * b ** (1 - mpf(order)) for a, b in zip(p, q) if a)) / (mpf(order) - 1)


def mixed(p, q, rate):
    return [rate * a + (1 - rate) * b for a, b in zip(p, q)], q


def together(p, q):
    return [[a * b for a, b in itertools.product(law, law)] for law in (p, q)]


CONSUMERS = {
    "pair": (lambda pair: pair, lambda p, q: [(p, q)]),
    "reversed": (lambda pair: pair.reverse(), lambda p, q: [(q, p)]),
    "composed": (lambda pair: pair.self_compose(2), lambda p, q: [together(p, q)]),
    "sampled": (lambda pair: SampledPair(pair, 0.25), lambda p, q: [mixed(p, q, mpf(0.25))]),
    "sampled, added": (lambda pair: SampledPair(pair, 0.25, removed=False), lambda p, q: [mixed(p, q, mpf(0.25))[::-1]]),
    "both samples": (lambda pair: Subsampled(pair, 0.25), lambda p, q: [mixed(p, q, mpf(0.25)), mixed(p, q, mpf(0.25))[::-1]]),
    "allocated": (lambda pair: AllocationPair(pair, 3), lambda p, q: [allocated(p, q, 3, 1)]),
    "allocated, added": (lambda pair: AllocationPair(pair, 3, removed=False), lambda p, q: [allocated(p, q, 3, 1)[::-1]]),
    "two of three steps": (lambda pair: RandomAllocation(pair, 3, 2),
                           lambda p, q: [allocated(p, q, 3, 2), allocated(p, q, 3, 2)[::-1]]),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CONSUMERS)
@settings(max_examples=10)
@given(lists(), st.sampled_from([0.0, 1e-7, 0.1, 1.0]), st.sampled_from([1.5, 2.0, 2.5, 7.0]))
def test_bounds_hold_however_the_masses_are_read(name, masses, eps, order):
    with np.errstate(divide="ignore"):
        p, q = map(np.log, masses)
    profile = CONSUMERS[name][0](DominatingPair.from_pmfs(p, q))
    low, high = profile.delta(eps, bound="lower"), profile.delta(eps)
    less, more = profile.rdp(order, bound="lower"), profile.rdp(order)
    with mpmath.workdps(40):
        for reading in readings(p, q):
            found = CONSUMERS[name][1](*reading)
            exact = max(hockey_stick(*pair, mpmath.exp(mpf(eps))) for pair in found)
            assert low <= exact * (1 + mpf("1e-30"))
            assert exact <= high * (1 + mpf("1e-30"))
            # If P sums to 1 - d, the logarithm of the sum of p^a q^(1-a) is smaller by a d.
            exact = max(renyi(*pair, order) for pair in found)
            assert less - 1e-8 <= exact <= more + 1e-8
    assert profile.epsilon(0.01, bound="lower") <= profile.epsilon(0.01)
    assert profile.loss_tail(0.1, bound="lower") <= profile.loss_tail(0.1)
    assert profile.gdp_mu(bound="lower") <= profile.gdp_mu()
    curve = profile.tradeoff().beta([0.01, 0.5])
    assert (curve <= profile.tradeoff(bound="upper").beta([0.01, 0.5])).all()


def test_missing_mass_is_rounded_up():
    """Above all finite losses, delta is the missing mass. It is a difference of numbers near 1, with an error near 1e-16."""
    r = np.random.default_rng(1)
    for _ in range(50):
        weights = r.random(4)
        logs = np.log(weights / weights.sum() * (1 - 10 ** -r.uniform(9.1, 14)))
        missing = 1 - mpmath.fsum(mpmath.exp(mpf(float(x))) for x in logs)
        assert missing <= DominatingPair.from_pmfs(logs, logs[::-1]).delta(60.0) <= missing + 1e-14
