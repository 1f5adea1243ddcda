"""Distributions of sums on a grid against exact convolutions in fractions."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shufflebounds._losses.tilted_sum import Summand, TiltedSum

STEP = 0.25


def exact_law(summands):
    """Return {index of the grid point: probability} of the sum, in fractions."""
    total = {0: Fraction(1)}
    for mass, place, times in summands:
        for _ in range(times):
            grown = {}
            for k, p in total.items():
                for m, j in zip(mass, place):
                    grown[k + j] = grown.get(k + j, 0) + p * Fraction(m)
            total = grown
    return total


def exact_value(law, level, discount):
    """Return log E phi(S - level) with 40 digits."""
    with mp.workdps(40):
        total = mp.mpf(0)
        for place, p in law.items():
            x = mp.mpf(place) * STEP - mp.mpf(level)
            if x > 0:
                weight = x if discount == 0 else -mp.expm1(-discount * x) / discount
                total += mp.mpf(p.numerator) / mp.mpf(p.denominator) * weight
        return float(mp.log(total)) if total > 0 else -math.inf


def bounds(summands, discount, **options):
    made = [Summand(np.log(mass), np.asarray(place, dtype=float), times) for mass, place, times in summands]
    slack = sum(4e-16 * times for _, _, times in summands)
    return [
        TiltedSum(made, 0.0, STEP, discount=discount, near=near, upper=upper, slack=slack, **options)
        for near, upper in ((4.0, False), (1.5, True))
    ]


masses = st.lists(st.integers(1, 2**20), min_size=2, max_size=6).map(lambda whole: [w / sum(whole) for w in whole])


@st.composite
def sums(draw):
    out = []
    for _ in range(draw(st.integers(1, 2))):
        mass = draw(masses)
        place = draw(st.lists(st.integers(-4, 9), min_size=len(mass), max_size=len(mass), unique=True).map(sorted))
        out.append((mass, place, draw(st.integers(1, 6))))
    return out


@settings(max_examples=15, deadline=None)
@given(summands=sums(), discount=st.sampled_from([0.0, 0.5, 1.0]), share=st.floats(0, 0.999))
def test_bounds_of_random_sums(summands, discount, share):
    law = exact_law(summands)
    mean = float(sum(k * p for k, p in law.items())) * STEP
    level = mean + share * (max(law) * STEP - mean)
    exact = exact_value(law, level, discount)
    low, high = (float(one.log_values(np.array([level]))[0][0]) for one in bounds(summands, discount))
    assert low <= exact <= high
    if level < max(law) * STEP - 1e-3:
        assert high - low < 1e-6


@pytest.mark.parametrize("discount", [0.0, 1.0])
def test_values_depend_on_their_level_alone(discount):
    summands = [([0.5, 0.25, 0.25], [0, 1, 7], 40), ([0.9, 0.1], [-3, 20], 3)]
    levels = STEP * np.array([130.0, 200.0, 60.5, 331.9, 90.25])
    for widest in (0, 2):
        for used, fresh in zip(bounds(summands, discount, widest=widest), bounds(summands, discount, widest=widest)):
            together = used.log_values(levels)[0]
            for level, value in zip(levels[::-1], together[::-1]):
                assert fresh.log_values(np.array([level]))[0][0] == value


def test_widest_intervals_share_transforms():
    summands = [([0.96, 0.03, 0.01], [0, 40, 900], 50)]
    levels = STEP * np.linspace(900, 20000, 60)
    narrow, wide = (bounds(summands, 0.0, widest=widest)[1] for widest in (0, 3))
    values = [one.log_values(levels)[0] for one in (narrow, wide)]
    np.testing.assert_allclose(values[1], values[0], rtol=0, atol=2e-6)
    assert len(wide._kept__transform) < len(narrow._kept__transform)


def test_no_value_beyond_the_largest():
    summands = [([0.5, 0.5], [0, 2], 5)]
    for discount in (0.0, 1.0):
        low, high = bounds(summands, discount, log_rest=-40.0 if discount else -math.inf)
        for one in (low, high):
            value = one.log_values(np.array([10 * STEP + 1.0]))[0][0]
            assert value == pytest.approx(-40.0, abs=1e-12) if discount else value == -math.inf


@pytest.mark.slow
def test_many_numbers_share_transforms_although_their_errors_are_large():
    # The error of 4e10 numbers is above 1e-6 of every value, and a closer transform would not reduce it.
    one = TiltedSum([Summand(np.log([0.5, 0.5]), np.array([0.0, 1.0]), 4 * 10**10)], 0.0, 1e-5, discount=1.0, near=1.5, served=1.0,
                    widest=2, upper=True, slack=1e-5)
    mean, deviation = 2e10 * 1e-5, 1e5 * 1e-5
    levels = mean + deviation * np.linspace(1.0, 4.0, 60)
    calls = []
    transform = one._transform
    one._transform = lambda center: calls.append(center) or transform(center)
    values, _ = one.log_values(levels)
    assert len(set(calls)) <= 6
    # The normal limit of the number of successes; the mean of (1 - e^-x)_+ over a normal density.
    for level, value in zip(levels[::12].tolist(), values[::12].tolist()):
        with mp.workdps(30):
            exact = mp.quad(lambda x, at=level: -mp.expm1(-x) * mp.npdf(at + x, mean, deviation), [0, 0.3, 1, 3, 8])
            exact = float(mp.log(exact))
        assert exact - 1e-4 < value < exact + 0.02
