"""Several messages of one person in one shuffle: the advice of docs/limits.md, by enumeration of the sum of the bits."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from shufflebounds.shuffle import ShuffledBits

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
DEVICES, FLIP, OWNED, DELTA = 10**4, 0.25, 10, 1e-6


def bits(ones, zeros):
    """Return the distribution of the sum of flipped bits, `ones` of which are 1."""
    return np.convolve(binom.pmf(np.arange(ones + 1), ones, 1 - FLIP), binom.pmf(np.arange(zeros + 1), zeros, FLIP))


def largest_delta(eps):
    """Return the largest delta at eps if all owned bits change from 0 to 1 or back, over datasets of the other devices."""
    found = []
    for ones in (0, 1000, 5000, DEVICES - OWNED):
        others = bits(ones, DEVICES - OWNED - ones)
        p, q = np.convolve(others, bits(OWNED, 0)), np.convolve(others, bits(0, OWNED))
        found += [np.maximum(a - np.exp(eps) * b, 0.0).sum() for a, b in ((p, q), (q, p))]
    return max(found)


@pytest.mark.slow
def test_the_guarantee_for_a_person_with_several_devices_holds_and_is_nearly_attained():
    person = ShuffledBits(DEVICES, FLIP).for_group(OWNED)
    assert 0.998 * DELTA < largest_delta(person.epsilon(DELTA)) <= DELTA
    assert largest_delta(person.epsilon(DELTA, bound="lower")) >= 0.998 * DELTA


@pytest.mark.slow
def test_composition_of_separate_shuffles_does_not_cover_several_devices():
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    composed, violated, times = map(float, re.search(
        r"\d\.\d+ \d\.\d+ ([\d.]+) ```.*?\.epsilon\(1e-6\)` is ([\d.]+)\..*? is more than (\d+) times", text).group(2, 1, 3))
    eps = ShuffledBits(DEVICES, FLIP).self_compose(OWNED).epsilon(DELTA)
    assert round(eps, 4) == composed
    assert largest_delta(eps) == pytest.approx(violated, abs=5e-5)
    assert largest_delta(eps) > times * DELTA
