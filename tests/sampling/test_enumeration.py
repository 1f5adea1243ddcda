"""Sampled random matrices against enumeration in interval arithmetic: zeros, nearly equal rows and masses down to 2^-1000."""

import math
import random

import numpy as np
import pytest
from flint import arb, ctx

from shufflebounds.mechanisms import FiniteRandomizer
from shufflebounds.sampling import SampledPair, Subsampled, WithoutReplacement

BITS = 600

SEEDS = range(8)


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(BITS):
        yield


def random_row(rng, outputs, kind):
    """Return random probabilities: multiples of a power of 2, arbitrary doubles, or with masses far below an ulp of 1."""
    if kind != "tiny":
        unit = {"dyadic": 2**10, "fine": 2**53}[kind]
        cuts = sorted(rng.randrange(unit + 1) for _ in range(outputs - 1))
        return [(b - a) / unit for a, b in zip([0, *cuts], [*cuts, unit])]
    row = [rng.random() * 2.0 ** -rng.choice([20, 48, 60, 150, 1000]) if rng.random() < 0.6 else 0.0 for _ in range(outputs)]
    place = rng.randrange(outputs)
    row[place] = 0.0
    row[place] = 1 - math.fsum(row)
    return row


def random_matrix(rng):
    """Return two or three rows; the later ones may be the first one with small changes, or permuted."""
    outputs, kind = rng.choice([2, 3, 4]), rng.choice(["dyadic", "fine", "tiny"])
    rows = [random_row(rng, outputs, kind)]
    for _ in range(rng.choice([1, 1, 2])):
        choice = rng.random()
        if choice < 0.35:
            row, (i, j), step = list(rows[0]), rng.sample(range(outputs), 2), 2.0 ** -rng.choice([10, 30, 50, 53])
            if row[i] > step and row[j] + step <= 1:
                row[i], row[j] = row[i] - step, row[j] + step
        else:
            row = rng.sample(rows[0], outputs) if choice < 0.5 else random_row(rng, outputs, kind)
        rows.append(row)
    return rows


def budget(pairs):
    """Return the largest pure budget of several pairs, or inf if one has none."""
    largest = arb(0)
    for p, q in pairs:
        for a, b in zip(p, q):
            if a > 0 and not b > 0:
                return math.inf
            if a > b:
                largest = largest.max((a / b).log())
    return largest


def largest_delta(pairs, factor):
    out = arb(0)
    for p, q in pairs:
        out = out.max(sum(((a - factor * b).max(arb(0)) for a, b in zip(p, q)), arb(0)))
    return out.min(arb(1))


def largest_divergence(pairs, order):
    """Return the largest Renyi divergence, at most the pure budget, by a sum that is correct even if totals are not exactly 1."""
    a, out = arb(order), arb(0)
    for pair in pairs:
        top = budget([pair])
        if top == math.inf:
            return math.inf
        total = arb(0)
        for p, q in zip(*pair):
            if not p > 0:
                total += q
            elif order == 1:
                total += p * (p / q).log() - p + q
            else:
                total += (p * (p / q) ** (a - 1) - a * p - (1 - a) * q) / (a - 1)
        out = out.max((total if order == 1 else (1 + (a - 1) * total).log() / (a - 1)).min(top))
    return out


def sampled(pairs, rate, removed):
    """Return ((1 - q) Q + q P, Q), or its reverse, for each pair (P, Q)."""
    out = []
    for p, q in pairs:
        mixed = [(1 - rate) * b + rate * a for a, b in zip(p, q)]
        out.append((mixed, q) if removed else (q, mixed))
    return out


def questions(rng, top):
    """Return eps from 0 to the budget, some of them within a few ulp of the budget."""
    near = [top * (1 - 2.0 ** -rng.randrange(1, 52)), np.nextafter(top, 0.0), top, np.nextafter(top, math.inf), top * (1 + 4e-16)]
    return [0.0, 5e-324, rng.random() * top, *near]


def assert_bounds_hold(profile, delta, pure, rng):
    """Assert that the bounds of delta, log delta and epsilon contain the exact value, without any tolerance."""
    top = float(pure) if pure != math.inf else 5.0
    for eps in questions(rng, top):
        exact = delta(eps)
        assert not exact < profile.delta(eps, bound="lower")
        assert not exact > profile.delta(eps)
        if exact > 0:
            assert not exact.log() > profile.log_delta(eps)
    for share in (0.0, 5e-324, 1e-310, 10.0 ** -rng.uniform(0, 300), max(0.0, float(delta(rng.random() * top)))):
        low, high = profile.epsilon(share, bound="lower"), profile.epsilon(share)
        assert low <= high
        if high < math.inf:
            assert not delta(high) > share
            assert profile.delta(high) <= share
        if 0 < low < math.inf:
            assert delta(float(np.nextafter(low, 0.0))) > share


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_sampled_matrices(seed):
    rng = random.Random(seed)
    rows = random_matrix(rng)
    rate = rng.choice([1.0, 0.5, rng.random(), 2.0**-20, 10.0 ** -rng.uniform(0, 99), 1 - 2.0**-53])
    balls = [[arb(x) for x in row] for row in rows]
    pairs = [(p, q) for p in balls for q in balls if p is not q]
    matrix = FiniteRandomizer(rows)
    ways = {way: sampled(pairs, arb(rate), way) for way in (True, False)}
    cases = [(matrix, pairs), (Subsampled(matrix, rate), ways[True] + ways[False])]
    cases += [(SampledPair(matrix, rate, way), ways[way]) for way in ways]
    for profile, listed in cases:
        assert_bounds_hold(profile, lambda eps, listed=listed: largest_delta(listed, arb(eps).exp()), budget(listed), rng)
        for order in (1.0, 1 + 2.0**-40, 2.0, rng.uniform(1, 64), math.inf):
            low, high = profile.rdp(order, bound="lower"), profile.rdp(order)
            exact = budget(listed) if order == math.inf else largest_divergence(listed, order)
            if exact == math.inf:
                assert high == math.inf
            else:
                assert not exact > high
                assert not exact < low


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_batches_of_matrices(seed):
    rng = random.Random(seed)
    rows, records = random_matrix(rng), rng.choice([1, 2, 10, 1000, 2**40])
    batch = rng.randrange(1, records + 1)
    balls, share = [[arb(x) for x in row] for row in rows], arb(batch) / records
    pairs = [(p, q) for p in balls for q in balls if p is not q]
    pure = budget(pairs)

    def delta(eps):
        return share * largest_delta(pairs, 1 + (arb(eps).exp() - 1) / share)

    top = pure if pure == math.inf else (1 + share * (pure.exp() - 1)).log()
    assert_bounds_hold(WithoutReplacement(FiniteRandomizer(rows), records, batch), delta, top, rng)
