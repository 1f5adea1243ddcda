"""Gamma_n alone is no bound over all datasets: an example of docs/theorems/worst-dataset.md in rational arithmetic."""

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from tests.strategies import slow

PAGE = Path(__file__).parents[3] / "docs" / "theorems" / "worst-dataset.md"


def binomial(users, p):
    return [math.comb(users, k) * p**k * (1 - p) ** (users - k) for k in range(users + 1)]


def of_two(zeros, ones, rows):
    """Return the distribution of the number of ones in the messages of users with value 0 and users with value 1."""
    out = [Fraction(0)] * (zeros + ones + 1)
    for i, a in enumerate(binomial(zeros, rows[0])):
        for j, b in enumerate(binomial(ones, rows[1])):
            out[i + j] += a * b
    return out


def largest_delta(users, rows, factor):
    """Return the largest hockey-stick divergence over the inputs of the other users; rows are the probabilities of a one."""
    best = Fraction(0)
    for zeros in range(users):
        others = of_two(zeros, users - 1 - zeros, rows)
        p, q = ([(1 - row) * a + row * b for a, b in zip([*others, 0], [0, *others])] for row in rows)
        best = max(best, sum((max(a - factor * b, Fraction(0)) for a, b in zip(p, q)), Fraction(0)))
    return best


def gamma(users, rows, factor):
    """Return the largest mean positive part of the sum of n terms (R_0 - E R_1)/R_j, divided by n."""
    gains = [(1 - rows[0]) - factor * (1 - rows[1]), rows[0] - factor * rows[1]]
    best = Fraction(0)
    for zeros in range(users + 1):
        total = Fraction(0)
        for i, a in enumerate(binomial(zeros, rows[0])):
            for j, b in enumerate(binomial(users - zeros, rows[1])):
                of_zeros = (zeros - i) * gains[0] / (1 - rows[0]) + i * gains[1] / rows[0]
                of_ones = (users - zeros - j) * gains[0] / (1 - rows[1]) + j * gains[1] / rows[1]
                total += a * b * max(of_zeros + of_ones, Fraction(0))
        best = max(best, total / users)
    return best


@pytest.mark.parametrize("place", [0, 1, 2, slow(3)])
def test_a_dataset_is_above_gamma_of_all_users(place):
    text = " ".join(PAGE.read_text(encoding="utf-8").split())
    found = re.search(
        r"R_0 = \((\d\.\d+), \d\.\d+\)\$ and \$R_1 = \(\d\.\d+, (\d\.\d+)\).{0,40}E = (\d\.\d+)[^.]*"
        r" are ([\d.]+), ([\d.]+), ([\d.]+) and ([\d.]+) at \$n = (\d+), (\d+), (\d+)\$ and (\d+)", text,
    )
    assert found, "the page no longer states the example"
    first, last, factor, *numbers = found.groups()
    rows, factor = (1 - Fraction(first), Fraction(last)), Fraction(factor)
    users = int(numbers[4 + place])
    excess = math.log(largest_delta(users, rows, factor) / gamma(users, rows, factor))
    assert excess == pytest.approx(float(numbers[place]), abs=6e-4)
    assert excess > 0
