"""Roots, smallest arguments and maxima, against functions with a known answer and against scans."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shufflebounds._base import search as _search


@pytest.mark.parametrize(
    ("function", "low", "high", "exact"),
    [
        (lambda x: x - 0.3, 0.0, 1.0, 0.3),
        (lambda x: x**3 - 2, 0.0, 50.0, 2 ** (1 / 3)),
        (lambda x: math.exp(x) - 1e-9, -50.0, 3.0, math.log(1e-9)),
        (lambda x: math.copysign(1.0, x - 0.125), 0.0, 1.0, 0.125),
        (lambda x: -math.inf if x < 0.7 else 1.0, 0.0, 1.0, 0.7),
        (lambda x: (x - 0.5) ** 9, 0.0, 1.7, 0.5),
        (lambda x: 1 - x, 0.0, 7.0, 1.0),
    ],
)
def test_root(function, low, high, exact):
    count = 0

    def counted(x):
        nonlocal count
        count += 1
        return function(x)

    x = _search.root(counted, low, high, function(low), function(high), rtol=1e-13)
    assert abs(x - exact) <= (1e-12 * abs(exact) if function(0.5) != 0 else 1e-2)
    assert count <= 200


@given(st.floats(1e-12, 1e12), st.floats(1e-3, 1e3))
def test_root_is_where_the_sign_changes(exact, power):
    def gap(x):
        return math.log(x / exact) * power

    x = _search.root(gap, exact / 100, exact * 1000, gap(exact / 100), gap(exact * 1000), rtol=1e-13)
    assert x == pytest.approx(exact, rel=3e-13)


@given(st.integers(-1000, 10**6), st.integers(-1000, 100), st.one_of(st.none(), st.integers(-1000, 2 * 10**6)))
def test_least_int(least, low, guess):
    asked = []

    def enough(x):
        asked.append(x)
        return x >= least

    found = _search.least_int(enough, low, 10**6, guess)
    assert found == max(least, low)
    assert min(asked, default=low) >= low
    assert len(asked) < 80
    assert _search.least_int(lambda x: False, low, 10**6, guess) is None


@given(st.floats(1e-6, 100.0))
def test_least_real_and_bracket(least):
    value = _search.least_real(lambda x: least - x, 1e-3, 100.0, enough=lambda x: x >= least)
    assert least <= value <= least * (1 + 1e-12)
    low, high = _search.bracket(lambda x: x >= least, 0.0, 1e-3, rtol=1e-13)
    assert low < least <= high <= low * (1 + 3e-13)


def test_outward():
    seen = []

    def enough(x):
        seen.append(x)
        return x >= 10

    assert _search.expand_bracket(0.0, enough, 1.0, math.inf) == 15
    assert seen == [0, 1, 3, 7, 15]
    assert _search.expand_bracket(0.0, lambda x: False, 1.0, 5.0) == 5
    assert _search.expand_bracket(5.0, lambda x: x <= 2, -1.0, 0.0) == 2
    assert _search.expand_bracket(5.0, lambda x: False, -1.0, 0.0) == 0


@given(st.lists(st.integers(-50, 0), min_size=1, max_size=40), st.integers(1, 4), st.sampled_from([0.0, 0.5, 3.0]))
def test_maximum_is_that_of_a_scan(values, batch, tolerance):
    measured = []

    def measure(blocks, enough):
        measured.extend(blocks)
        # Bounds of the value at the start of the block, and a bound for the whole block with a gap that grows with its width.
        return [(values[a] - 0.25, values[a] + 0.25, max(values[a : b + 1]) + 0.25 + (b - a) / 4) for a, b in blocks]

    found = _search.maximum(
        [(0, len(values) - 1)], measure, _search.halves, tolerance=lambda best: tolerance, batch=batch
    )
    assert found.lower <= max(values) + 0.25
    assert max(values) <= found.upper <= found.lower + 0.5 + tolerance
    assert values[found.best[0]] - 0.25 == found.lower
    # The remaining blocks contain every index exactly once.
    assert sorted(i for _, (a, b) in found.left for i in range(a, b + 1)) == list(range(len(values)))
    assert all(bound >= max(values[a : b + 1]) for bound, (a, b) in found.left)
    assert found.measured == len(measured)
    # The search stops at the limit of evaluations, and returns the blocks that it did not search.
    some = _search.maximum([(0, len(values) - 1)], measure, _search.halves, tolerance=lambda best: 0.0, most=3)
    assert some.lower <= max(values) <= some.upper
    bounds = []

    def stop(bound):
        bounds.append(bound)
        return len(bounds) > 2

    some = _search.maximum([(0, len(values) - 1)], measure, _search.halves, tolerance=lambda best: 0.0, stop=stop)
    assert some.lower <= max(values) <= some.upper
    # Blocks are passed in decreasing order of their bounds, and no block is divided after the search was stopped.
    assert bounds == sorted(bounds, reverse=True)
    assert len(bounds) <= 3
    assert len(bounds) < 3 or some.upper == bounds[-1]


def test_maximum_knows_what_was_seen_before():
    found = _search.maximum([(0, 7)], lambda blocks, _: [(-9.0, -8.0, -3.0)] * len(blocks), _search.halves,
                            tolerance=lambda best: 0.1, reached=-2.0)
    assert (found.lower, found.upper, found.best, found.measured) == (-2.0, -2.0, None, 1)


def test_a_kernel_out_of_its_range_says_nothing():
    found = _search.maximum([(0, 1)], lambda blocks, _: [(math.nan, math.nan, math.nan)] * len(blocks), _search.halves,
                            tolerance=lambda best: 0.0)
    assert (found.lower, found.upper) == (-math.inf, 0.0)
