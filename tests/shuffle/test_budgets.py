"""Shuffled randomizers and columns at eps within a few ulp of the pure budget, and few users, against interval arithmetic."""

import math

import numpy as np
import pytest
from flint import arb, ctx

from shufflebounds.mechanisms import FiniteRandomizer, GaussianVector, KaryResponse, Rappor, RatioBounded, UnaryEncoding
from shufflebounds.shuffle import RealSum

BITS = 600


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(BITS):
        yield


def near(budget):
    """Return values of eps: a few ulp below and above a budget, and much smaller ones."""
    top = float(budget)
    below = [top * (1 - 2.0**-k) for k in (2, 20, 40, 48, 50, 51, 52)]
    return [0.0, *below, float(np.nextafter(top, 0.0)), top, float(np.nextafter(top, math.inf)), top * (1 + 1e-15)]


def hockey_stick(pairs, eps):
    factor = arb(eps).exp()
    return sum(((p - factor * q).max(arb(0)) for p, q in pairs), arb(0))


def assert_bounds_hold(profile, pairs):
    """Assert that both bounds are valid for one pair, without any tolerance at eps close to its budget."""
    budget = max(((p / q).log() for p, q in pairs), key=float)
    for eps in near(budget):
        exact = hockey_stick(pairs, eps).min(arb(1))
        # A comparison with an interval is true only if it is true for all numbers of the interval.
        assert not exact < profile.delta(eps, bound="lower")
        assert not exact > profile.delta(eps)
    assert hockey_stick(pairs, profile.epsilon(0.0)) == 0


def rappor_pairs(f, p, q, d):
    """Return the probabilities of the classes of reports of two values that differ in 2 d bits."""
    f, p, q = arb(f), arb(p), arb(q)
    one, other = p * (1 - f / 2) + q * f / 2, q * (1 - f / 2) + p * f / 2
    pairs = {}
    for i in range(d + 1):
        for j in range(d + 1):
            number = math.comb(d, i) * math.comb(d, j)
            first = number * one**i * (1 - one) ** (d - i) * other**j * (1 - other) ** (d - j)
            second = number * other**i * (1 - other) ** (d - i) * one**j * (1 - one) ** (d - j)
            a, b = pairs.get(i - j, (arb(0), arb(0)))
            pairs[i - j] = a + first, b + second
    return list(pairs.values())


@pytest.mark.parametrize(
    "parameters",
    [(0.5, 0.5, 0.0, 2, 4), (0.5, 0.5, 0.49999999999954525, 2), (0.5475985997870787, 0.8170601088849108, 0.8170601088841677, 2, 4),
     (0.8767279895818285, 0.5930888760194813, 0.0, 3, 4), (0.5, 1.0, 0.9999999999990905, 3),
     (0.2765687327927041, 1.0, 0.9999999999990905, 1)],
)
def test_shuffled_rappor(parameters):
    """The rounding errors of the loss of one bit, and of 1 - q* for q* close to 1, were once missing in the error bound."""
    report = Rappor(*parameters)
    pairs = rappor_pairs(*parameters[:3], report._differ)
    assert_bounds_hold(report, pairs)
    assert_bounds_hold(report.shuffled(1), pairs)


@pytest.mark.parametrize("p", [1 + 2**-40, 3.0, 1e133, 2.4537132467529067e280])
@pytest.mark.parametrize("part", [1.0, 0.3315956447238394])
def test_variation_ratio_of_any_size(p, part):
    """When the mass of the largest loss was computed from shares of about 1/p, lower bounds were too large by 2e-14."""
    known = RatioBounded(p, part * (p - 1) / (p + 1), p)
    a = arb(known.beta) / (arb(p) - 1)
    rest = (1 - (arb(p) + 1) * a).max(arb(0))
    for profile in (known, known.shuffled(1)):
        assert_bounds_hold(profile, [(p * a, a), (a, p * a), (rest, rest)] if rest > 0 else [(p * a, a), (a, p * a)])


@pytest.mark.parametrize("p", [0.75, 0.3, 0.9999])
@pytest.mark.parametrize("ratio", [0.5, 1 - 2**-45])
def test_unary_encoding(p, ratio):
    q = p * ratio
    a, b = arb(p), arb(q)
    encoding = UnaryEncoding(2, p, q)
    pairs = [(a * (1 - b), b * (1 - a)), (b * (1 - a), a * (1 - b)), (a * b, a * b), ((1 - a) * (1 - b), (1 - a) * (1 - b))]
    for profile in (encoding, encoding.shuffled(1)):
        assert_bounds_hold(profile, pairs)


@pytest.mark.parametrize(
    ("users", "lam", "bits"), [(1, 0.75, 2), (2, 1.6015625, 3), (2, 1.5028352371023164, 3), (2, 0.06838664203427669, 3)]
)
def test_columns_next_to_their_budget(users, lam, bits):
    """The upper bound was once too small here, because the quotient of eps and the number of columns was rounded up."""
    protocol = RealSum(users, lam, bits, view="columns")
    q = arb(protocol.flip)

    def column(ones, others):
        law = [arb(1)]
        for chance in [1 - q] * ones + [q] * (others - ones):
            law = [a * (1 - chance) + b * chance for a, b in zip([*law, arb(0)], [arb(0), *law])]
        return law

    largest = {}
    for ones in range(users):
        pairs = [(arb(1), arb(1))]
        for _ in range(bits):
            pairs = [(p * a, r * b) for p, r in pairs for a, b in zip(column(ones + 1, users), column(ones, users))]
        for eps in near(bits * ((1 - q) / q).log()):
            both = hockey_stick(pairs, eps).max(hockey_stick([(r, p) for p, r in pairs], eps))
            largest[eps] = largest.get(eps, arb(0)).max(both)
    for eps, exact in largest.items():
        # The worst dataset may differ between columns, so the enumeration gives a lower bound of the exact value.
        assert exact <= protocol.delta(eps)
    assert largest[max(largest)] == 0 == protocol.delta(protocol.epsilon(0.0))


@pytest.mark.slow
@pytest.mark.parametrize(("vector", "eps"), [(GaussianVector(0.7, 2, "sphere"), 0.0), (GaussianVector(1.0, 2), 0.5)], ids=repr)
@pytest.mark.parametrize("participation", [1.0, 0.25])
def test_delta_of_few_shuffled_messages_is_at_most_the_local_one(vector, eps, participation):
    """For two users, the discretized blanket once exceeded the delta of the target's message alone."""
    alone, pair = vector.shuffled(1, participation), vector.shuffled(2, participation)
    most = participation * vector.delta(eps) * (1 + 1e-13)
    assert alone.delta(eps) <= most
    assert pair.delta(eps) <= most
    assert alone.epsilon(0.25 * participation) <= vector.epsilon(0.25) * (1 + 1e-12)


def test_one_shuffled_message_has_the_local_delta():
    vector = GaussianVector(1.0, 2)
    assert vector.shuffled(1, 0.25).delta(0.5) <= 0.25 * vector.delta(0.5) * (1 + 1e-13)


def test_a_shuffled_matrix_has_the_budget_of_the_matrix():
    for randomizer in (FiniteRandomizer([[771 / 1024, 253 / 1024], [772 / 1024, 252 / 1024]]), KaryResponse(3, 1.0)):
        shuffled = randomizer.shuffled(5)
        assert shuffled.epsilon(0.0) == randomizer.epsilon(0.0)
