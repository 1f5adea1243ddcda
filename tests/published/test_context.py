"""Formulas of Liu et al. exactly as published, results quoted by Balcer and Cheu, and the survey's first pages."""

import math
from fractions import Fraction

import numpy as np
import pytest

from shufflebounds import published
from shufflebounds.shuffle import ShuffledBits


def clones(rate, others):
    law = np.array([1.0])
    for _ in range(others):
        law = np.convolve(law, [1 - 2 * rate, 2 * rate])
    return law


def half(count, k):
    return math.comb(count, k) / 2**count if 0 <= k <= count else 0.0


def below(count, k):
    return sum(half(count, j) for j in range(min(k, count) + 1))


def literal(eps, weight, law):
    """Return delta at the published infimum in exact fractions, by trying every t at which a rounded term changes."""
    others = len(law) - 1
    for t in sorted({Fraction(i + 1, j) - 1 for i in range(1, others + 1) for j in range(1, i + 2)}):
        floors = [math.floor(i - Fraction(i + 1) / (t + 1)) for i in range(others + 1)]
        over = sum(law[i] * half(i, floors[i] + 1) for i in range(1, others + 1))
        under = sum(law[i] * half(i, floors[i]) for i in range(1, others + 1))
        if under and -2 * weight - (1 - 2 * weight) * over / under >= -math.exp(eps):
            first, second = (sum(law[i] * below(i, floors[i] + up) for i in range(1, others + 1)) for up in (0, 1))
            return max(0.0, (2 * weight - math.exp(eps)) * first + (1 - 2 * weight) * second)
    return 0.0


@pytest.mark.parametrize("others", [1, 2, 5, 12])
@pytest.mark.parametrize(("weight", "rate"), [(0.1, 0.25), (0.3, 0.05), (0.2, 0.5)])
def test_the_published_infimum_by_every_t(others, weight, rate):
    for eps in (0.01, 0.5, 0.8):
        value = published.liu2024_delta_literal(eps, weight, [rate], counts=[others])
        assert value == pytest.approx(literal(eps, weight, clones(rate, others)), abs=1e-12)


def test_rounding_only_lowers_the_printed_delta():
    for eps in (0.1, 0.5, 1.0):
        for others in (3, 40, 1000):
            case = {"rates": [0.2], "counts": [others]}
            assert published.liu2024_delta_literal(eps, 0.15, **case) <= published.liu2024_delta(eps, 0.15, **case) * (1 + 1e-12)


def test_the_published_curve_exceeds_perfect_privacy():
    for weight in (0.1, 0.25):
        assert published.liu2024_tradeoff(math.inf, weight, [0.2], counts=[9]) == pytest.approx(1 - 2 * weight)
    # If the power is used instead of the type II error, the curve exceeds 1 - alpha, the curve of perfect privacy.
    law = clones(0.2, 9)
    alpha = sum(law[i] * below(i, math.floor(i - Fraction(i + 1, 2))) for i in range(10))
    assert published.liu2024_tradeoff(1.0, 0.1, [0.2], counts=[9]) > 1 - alpha


def test_the_close_laws_of_the_lemma():
    # For Y = (1, 0), Z = (1/2, 1/2) and eps = ln 2, D(Y||Z) is exactly ln 2, and delta of Z against Y is the mass of Z where Y has
    # none.
    y, z = np.array([1.0, 0.0]), np.array([0.5, 0.5])
    assert np.maximum(y - 2 * z, 0).sum() == 0
    assert np.maximum(z - 2 * y, 0).sum() == published.das2022_close_distributions.counterexample().truth


def test_a_statistical_distance_is_at_most_one():
    with pytest.raises(ValueError, match=r"distance=1\.5"):
        published.das2022_close_distributions(0.5, 1.5)


def test_the_right_tail_is_proven_for_small_distances_only():
    bound = published.zhilyaev_flip_right
    for eps, delta, holds in ((0.5, 1e-2, True), (1.0, 1e-6, True), (2.0, 1e-6, False), (3.0, 1e-2, False)):
        pair = ShuffledBits(10**4, bound(10**4, eps, delta)).pair(0).reverse()
        assert (pair.delta(eps, bound="upper" if holds else "lower") <= delta) == holds


def test_one_message_shuffled_is_local_privacy():
    for users in (2, 5, 30):
        for flip in (0.05, 0.2, 0.4):
            bits = ShuffledBits(users, flip)
            for delta in (1e-6, 1e-3):
                local = published.balcer_cheu_local_eps(users, bits.epsilon(delta))
                # The left side is delta of one user's flipped bit at the published local eps.
                assert max(0.0, 1 - flip - math.exp(local) * flip) <= delta


def test_orders_of_table_1():
    errors = {row.protocol: row.error for row in published.balcer_cheu_table(10**8, 10**6, 0.5, 1e-4)}
    assert min(errors, key=errors.get) == "central"
    assert max(errors, key=errors.get) == "local"
    with pytest.raises(ValueError, match="bins"):
        published.balcer_cheu_table(10, 2, 0.5, 0.1)
