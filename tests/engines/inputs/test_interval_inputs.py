"""The two ends of an interval as the worst pair (docs/theorems/interval-inputs), and noise for which they are not the worst."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds.mechanisms import GeometricMechanism

NOISES = {
    "laplace": lambda t: -np.abs(t),
    "gaussian": lambda t: -0.5 * t * t,
    "logistic": lambda t: -2 * np.logaddexp(t / 2, -t / 2),
    "power": lambda t: -np.abs(t) ** 1.5,
}


def rows(noise, scale, inputs, points=4001):
    """Return the masses of the cells of a fine grid for several inputs in [0, 1].

    Cells with less than 1e-25 of the largest mass are omitted.
    """
    y = np.linspace(-12, 13, points)
    out = np.exp([noise((y - x) / scale) for x in inputs])
    out = out[:, out.min(axis=0) > 1e-25 * out.max()]
    return out / out[0].sum()


def larger(first, second, base, x, y, factor, threshold):
    """Return whether E(X - c)_+ and E(c - X)_+ of the pair (first, second) are at least those of (x, y), up to the grid's error.

    X is (R_0 - e^eps R_1)/m for a pair (R_0, R_1), with m = `base`, e^eps = `factor` and c = `threshold`. The two expectations
    differ by the mean of X - c, which is the same for all pairs, so the smaller one is compared.
    """
    sides = []
    for a, b in ((first, second), (x, y)):
        excess = a - factor * b - threshold * base
        sides.append((np.maximum(excess, 0).sum(), np.maximum(-excess, 0).sum()))
    k = int(sides[0][0] > sides[0][1])
    return sides[1][k] <= sides[0][k] * (1 + 1e-4) + 1e-9


@given(st.sampled_from(sorted(NOISES)), st.floats(0.2, 4), st.floats(0, 1), st.floats(0, 1), st.floats(0, 3), st.floats(0, 1))
def test_any_pair_is_below_the_two_ends_in_the_convex_order(name, scale, a, b, log_factor, place):
    first, last, x, y = rows(NOISES[name], scale, [0.0, 1.0, a, b])
    base, factor = np.minimum(first, last), math.exp(log_factor)
    threshold = float(np.quantile((first - factor * last) / base, place))
    assert larger(first, last, base, x, y, factor, threshold)


def test_the_comparison_can_fail():
    first, last, x, y = rows(NOISES["gaussian"], 0.7, [0.0, 1.0, 0.2, 0.9])
    assert not larger(x, y, np.minimum(first, last), first, last, 1.5, 0.5)


def test_inner_inputs_of_truncated_noise_can_be_worse():
    noise = GeometricMechanism(-2 * math.log(0.9), 2, 4)
    pairs = noise.excess_laws()
    assert [pair.inputs for pair in pairs] == ["inputs 0 and 1", "inputs 0 and 2", "inputs 1 and 2"]
    cut = {pair.inputs: float(pair.upper.log_phi([0.5], 10**6)[1][0]) for pair in pairs}
    assert cut["inputs 1 and 2"] > cut["inputs 0 and 2"]


def test_truncated_noise_against_all_data_of_the_others():
    noise = GeometricMechanism(-2 * math.log(0.8), 2, 1)
    table = noise._clipped_rows(1)
    profile, eps = noise.shuffled(3), 0.2
    worst = 0.0
    for others in itertools.combinations_with_replacement(table, 2):
        for a, b in itertools.permutations(table, 2):
            laws = []
            for target in (a, b):
                joint = np.einsum("i,j,k->ijk", target, *others)
                law = {}
                for index in np.ndindex(joint.shape):
                    key = tuple(sorted(index))
                    law[key] = law.get(key, 0.0) + joint[index]
                laws.append(law)
            worst = max(worst, sum(max(0.0, p - math.exp(eps) * laws[1][k]) for k, p in laws[0].items()))
    assert profile.delta(eps, bound="lower") <= worst * (1 + 1e-9)
    assert worst <= profile.delta(eps) * (1 + 1e-9)


def test_truncated_noise_of_many_inputs_is_refused():
    with pytest.raises(ValueError, match="sensitivity=40"):
        GeometricMechanism(1.0, 40, 5).shuffled(10).delta(0.1)


@given(st.lists(st.integers(1, 8), min_size=1, max_size=6), st.integers(2, 6))
def test_the_ends_are_worst_for_log_concave_noise_on_the_integers(steps, sensitivity):
    # The ratios of neighbouring masses do not increase away from 0; beyond the last one the mass is 0.
    ratios = itertools.accumulate((Fraction(step, 8) for step in steps), lambda one, other: one * other)
    half = list(itertools.accumulate(ratios, lambda mass, ratio: mass * ratio, initial=Fraction(1)))
    most = len(half) - 1
    rows = [[half[abs(y - x)] if abs(y - x) <= most else Fraction(0) for y in range(-most, sensitivity + most + 1)]
            for x in range(sensitivity + 1)]
    base = [min(pair) for pair in zip(rows[0], rows[-1], strict=True)]
    for row in rows[1:-1]:
        # Both sums are convex and piecewise linear in t, with the same mean, so they are compared at the ratios.
        for t in {x / m for several in (row, rows[0]) for x, m in zip(several, base, strict=True) if m}:
            inner, ends = (sum(max(x - t * m, 0) for x, m in zip(several, base, strict=True)) for several in (row, rows[0]))
            assert inner <= ends
