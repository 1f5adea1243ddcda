"""Bounds of a shuffled matrix for few users against the maximum over every dataset in fractions."""

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds import shuffle
from shufflebounds.mechanisms import FiniteRandomizer, PrivUnit, Rappor
from tests.strategies import slow, thinned


def one_more(law, row):
    out = {}
    for counts, p in law.items():
        for y, q in enumerate(row):
            key = (*counts[:y], counts[y] + 1, *counts[y + 1:])
            out[key] = out.get(key, 0) + p * q
    return out


def exact_maximum(rows, users, factor):
    """Return the largest hockey-stick divergence over all datasets and all pairs of inputs of the target."""
    best = Fraction(0)
    for data in itertools.combinations_with_replacement(rows, users - 1):
        law = {(0,) * len(rows[0]): Fraction(1)}
        for row in data:
            law = one_more(law, row)
        laws = [one_more(law, row) for row in rows]
        for p, q in itertools.permutations(laws, 2):
            best = max(best, sum(max(p[z] - factor * q[z], Fraction(0)) for z in p))
    return best


def random_rows(rng, inputs, outputs):
    rows = []
    for _ in range(inputs):
        weights = [rng.choice([0, 1, 1, 2, 5, 9, 40]) for _ in range(outputs)]
        weights[rng.randrange(outputs)] += 1
        # The probabilities are multiples of a power of 2, and so exact doubles.
        cuts = [0, *(round(2**20 * sum(weights[: y + 1]) / sum(weights)) for y in range(outputs - 1)), 2**20]
        rows.append([Fraction(high - low, 2**20) for low, high in itertools.pairwise(cuts)])
    return rows


@pytest.mark.parametrize("seed", thinned(range(8), 2))
def test_both_bounds_are_the_exact_maximum(seed):
    rng = random.Random(seed)
    rows = random_rows(rng, rng.choice([2, 2, 3]), rng.choice([2, 2, 3]))
    if seed % 4 == 3:
        # The rows of these matrices differ by 1e-9.
        rows = [[Fraction(2**30 + step, 2**31), Fraction(2**30 - step, 2**31)] for step in (0, 1, 3)]
    if len({tuple(row) for row in rows}) == 1:
        pytest.skip("equal rows")
    users = rng.choice([2, 3, 5])
    share = rng.choice([1.0, 0.375])
    protocol = shuffle.Shuffled(FiniteRandomizer([[float(p) for p in row] for row in rows]), users, share)
    sent = [[Fraction(share) * p for p in row] + ([1 - Fraction(share)] if share < 1 else []) for row in rows]
    for eps in (0.0, 0.05, 0.7):
        if eps >= protocol._pure_epsilon():
            continue
        exact = exact_maximum(sent, users, Fraction(math.exp(eps)))
        lower, upper = (protocol.delta(eps, bound=bound) for bound in ("lower", "upper"))
        # E = e^eps is rounded in the reference value, too.
        assert Fraction(lower) <= exact * (1 + Fraction(1, 10**12)) + Fraction(1, 10**16)
        assert exact <= Fraction(upper) * (1 + Fraction(1, 10**12)) + Fraction(1, 10**16)
        assert upper <= float(exact) * (1 + 1e-9) + 1e-11


@pytest.mark.parametrize(("users", "eps"), thinned([(40, 0.3), (300, 0.1), slow(1000, 0.05)], 2))
def test_two_outputs_against_convolutions_of_integers(users, eps):
    # The probabilities are multiples of 1/16, so that all coefficients are integers divided by 16^users.
    protocol = shuffle.Shuffled(FiniteRandomizer([[0.25, 0.75], [0.5, 0.5], [0.6875, 0.3125]]), users)
    factor = Fraction(math.exp(eps))
    low, up = (protocol.delta(eps, bound=bound) for bound in ("lower", "upper"))
    assert low <= up <= low * (1 + 1e-7)
    inner = Fraction(0)
    for high in {0, 1, users // 2, users - 1}:
        law = [1]
        for zero, one in [(4, 12)] * high + [(11, 5)] * (users - 1 - high):
            law = [zero * a + one * b for a, b in zip([*law, 0], [0, *law])]
        for (a, b), (c, d) in itertools.permutations([(4, 12), (8, 8), (11, 5)], 2):
            p, q = ([zero * x + one * y for x, y in zip([*law, 0], [0, *law])] for zero, one in ((a, b), (c, d)))
            part = sum(max(x * factor.denominator - factor.numerator * y, 0) for x, y in zip(p, q))
            inner = max(inner, Fraction(part, factor.denominator * 16**users))
    assert float(inner) <= up * (1 + 1e-12)


@pytest.mark.parametrize(("inputs", "outputs", "users"), [(2, 4, 6), (3, 5, 4), slow(2, 9, 4), slow(4, 4, 5)])
def test_more_outputs(inputs, outputs, users):
    rng = random.Random(outputs)
    rows = random_rows(rng, inputs, outputs)
    protocol = shuffle.Shuffled(FiniteRandomizer([[float(p) for p in row] for row in rows]), users)
    for eps in (0.0, 0.3):
        exact = float(exact_maximum(rows, users, Fraction(math.exp(eps))))
        lower, upper = (protocol.delta(eps, bound=bound) for bound in ("lower", "upper"))
        assert lower * (1 - 1e-12) - 1e-15 <= exact <= upper * (1 + 1e-12) + 1e-15
        assert upper - lower <= 1e-9


@pytest.mark.parametrize(("inputs", "outputs", "users"), [(2, 10, 6), (3, 6, 8), slow(2, 4, 40)])
def test_the_enumeration_has_entries_for_multisets_only(inputs, outputs, users):
    # A table for every vector of counts would have 11**9 entries here, or take minutes of convolutions.
    weights = np.random.default_rng(outputs).dirichlet(3 * np.ones(outputs), inputs)
    protocol = shuffle.Shuffled(FiniteRandomizer(weights), users)
    assert protocol.argument(0.1) == "every dataset"
    law, starts = protocol._bounds.mixed._every._laws
    multisets, datasets = math.comb(users + outputs - 1, outputs - 1), math.comb(users + inputs - 2, inputs - 1)
    assert law.shape == (inputs, multisets * datasets)
    for x in range(inputs):
        np.testing.assert_allclose(np.add.reduceat(law[x], starts), 1, atol=1e-12)


def test_argument_and_worst_dataset_are_returned():
    protocol = shuffle.Shuffled(FiniteRandomizer([[0.3, 0.7], [0.4, 0.6], [0.8, 0.2]]), 60)
    assert protocol.argument(0.3) == "every dataset"
    assert "target between" in protocol.data(0.3) or "every other user" in protocol.data(0.3)
    assert protocol.epsilon(1e-3, bound="upper") <= protocol.epsilon(1e-3, bound="lower") * (1 + 1e-6)


def test_eps_above_700():
    protocol = shuffle.Shuffled(FiniteRandomizer([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]), 5)
    assert protocol.delta(800.0, bound="lower") == pytest.approx(0.5)
    assert protocol.delta(800.0) == pytest.approx(0.5)


@pytest.mark.parametrize(("cells", "arc", "users", "held"), [
    (5, 2, 9, (0, 1, 2, 3)), slow(7, 3, 8, (0, 2, 4)),
])
def test_arcs_of_a_circle_are_below_the_bound_of_priv_unit(cells, arc, users, held):
    """Some inputs at equal angles and caps that are unions of cells make PrivUnit on the circle a matrix.

    All datasets of the matrix are enumerated.
    """
    local_eps = 1.0
    lifted = (np.arange(cells)[None, :] - np.array(held)[:, None]) % cells < arc
    rows = np.where(lifted, math.exp(local_eps), 1.0)
    randomizer = FiniteRandomizer(rows / rows.sum(axis=1, keepdims=True))
    matrix = randomizer.shuffled(users)
    unit = PrivUnit(dimension=2, local_eps=local_eps, cap=arc / cells)
    for eps in (0.02, 0.2, 0.5):
        assert matrix.argument(eps) == "every dataset"
        exact = matrix.log_delta(eps, bound="lower")
        assert exact <= unit.shuffled(users).log_delta(eps) + 1e-9
    # For many users the bound is that of the worst dataset, and the matrix gives the delta of some dataset.
    many = unit.shuffled(4000)
    assert many.argument(0.05) == "worst dataset"
    assert randomizer.shuffled(4000).log_delta(0.05, bound="lower") <= many.log_delta(0.05)


def test_priv_unit_with_wide_caps_is_below_its_blanket():
    unit = PrivUnit(dimension=3, local_eps=1.0)
    protocol = unit.shuffled(10**4)
    eps = protocol.epsilon(1e-6)
    assert protocol.argument(eps) == "worst dataset"
    # The bound is about half-way between the lower bound and the blanket.
    assert protocol.epsilon(1e-6, bound="lower") < eps < 0.96 * shuffle.shuffled_epsilons(unit, 10**4, 1e-6, method="blanket")
    # Narrow caps may be disjoint from the caps of both target vectors; the bound is then that of the blanket.
    assert PrivUnit(dimension=3, local_eps=4.0).dataset_laws() is None


def rappor_rows(report, bits):
    """Return the sets of bits of all values, and the probabilities of all reports for each."""
    one, _, other, _, _ = report._support_probabilities()
    held = list(itertools.combinations(range(bits), report.hashes))
    words = np.array(list(itertools.product((0, 1), repeat=bits)))
    chances = np.array([[one if bit in value else other for bit in range(bits)] for value in held])
    return held, np.where(words, chances[:, None, :], 1 - chances[:, None, :]).prod(axis=2)


@pytest.mark.parametrize(("report", "users", "eps"), [
    (Rappor(0.5, 0.75, 0.5, 1, 3), 8, 0.1), (Rappor(0.5, 0.75, 0.5, 1, 3), 10, 0.02),
    slow(Rappor(0.3, 0.9, 0.2, 2, 4), 3000, 0.03),
])
def test_all_values_of_rappor_are_below_its_bound(report, users, eps):
    """The upper bound is at least that of the matrix of all values; for few users every dataset is enumerated."""
    matrix, protocol = FiniteRandomizer(rappor_rows(report, report.bits)[1]).shuffled(users), report.shuffled(users)
    assert matrix.log_delta(eps, bound="lower") <= protocol.log_delta(eps) + 1e-9
    argument = protocol.argument(eps)
    assert argument == "worst dataset" if users >= 1000 else argument.startswith("every dataset")


@pytest.mark.parametrize("report", [
    Rappor(0.5, 0.75, 0.5, 2), slow(Rappor(0.1, 0.9, 0.3, 2)), slow(Rappor(0.5, hashes=3)),
], ids=repr)
def test_values_of_rappor_with_common_bits_are_smaller_in_the_convex_order(report):
    h = report.hashes
    bits = 3 * h - 1
    held, rows = rappor_rows(report, bits)
    first = held[0]
    for second in held[1:]:
        if not set(first) & set(second):
            continue
        for third, row in zip(held, rows):
            i, j = len(set(third) & set(first)), len(set(third) & (set(second) - set(first)))
            law = report._of_kind(i, j, upper=True)
            for eps in (0.0, 0.3):
                x = (rows[0] - math.exp(eps) * rows[held.index(second)]) / row
                above, mass = law.values(eps), np.exp(law.log_mass)
                for level in np.linspace(x.min(), x.max(), 9):
                    assert row @ np.maximum(x - level, 0) <= mass @ np.maximum(above - level, 0) + 1e-11


def test_rappor_with_two_hashes_is_far_below_its_blanket():
    report = Rappor(0.5, 0.75, 0.5, 2)
    protocol = report.shuffled(10**4)
    eps = protocol.epsilon(1e-6)
    # The blanket alone gives .0235.
    assert protocol.epsilon(1e-6, bound="lower") < eps < 0.0179
    assert protocol.argument(eps) == "worst dataset"
    # These randomizers have too many kinds of users, or a blanket with a mass near 0.
    for other in (Rappor(0.5, hashes=30), Rappor(1e-200, hashes=2)):
        assert other.dataset_laws() is None
