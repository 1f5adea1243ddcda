"""Answers of every public class, compared with the recorded ones; the comparison bit by bit runs on request only."""

import os

import pytest

from tests.regression import every_answer
from tests.strategies import slow, thinned

on_request = pytest.mark.skipif(
    "SHUFFLEBOUNDS_BITS" not in os.environ, reason="compares bits, which differ between machines: set SHUFFLEBOUNDS_BITS=1"
)


@on_request
@pytest.mark.parametrize("path", [every_answer.RECORDED, slow(every_answer.SLOW)], ids=lambda path: path.stem)
@pytest.mark.parametrize("name", every_answer.names())
def test_answers_are_equal_bit_by_bit(name, path):
    moved = every_answer.moved(name, path)
    assert not moved, "\n".join(moved)


@pytest.mark.parametrize("expensive", [False, slow(True)], ids=["quick", "expensive"])
@pytest.mark.parametrize("name", thinned(every_answer.names(), 2))
def test_bounds_are_as_close_as_recorded(name, expensive):
    # A change that only weakens a bound leaves it valid, so that a comparison with exact values does not notice it.
    weakened = every_answer.weakened(name, expensive)
    assert not weakened, "\n".join(weakened)


def test_every_example_has_recorded_answers():
    rows = every_answer.recorded()
    for name in every_answer.names():
        for profile, _ in every_answer.subjects(name):
            # Some answers of a class may be too slow to be recorded, but at least two must be recorded.
            answers = rows.get(name, {}).get(repr(profile), {})
            assert len(answers) >= 2, f"{profile!r}: record it with python -m tests.regression.every_answer record --only {name}"


def test_an_answer_has_both_bounds_and_a_refusal_its_name():
    first = every_answer.subjects("mechanisms.KaryResponse")[0][0]
    lower, upper = map(float.fromhex, every_answer.answer(first, "epsilon(0)").split())
    assert lower <= 2.0 <= upper
    for question, count in (("tradeoff.beta(0.05)", 2), ("log_delta([0.1, 0.5])", 4), ("rmse(10)", 2), ("worst()", 0)):
        assert every_answer.answer(first, question).count("0x") == count
    assert every_answer.answer(None, "shuffle.binomial_noise_epsilons([100, 1000], 0.5, 1e-6)").count("0x") == 4


@pytest.mark.parametrize(("before", "now", "weaker"), [
    ((1.0, 2.0), (1.0, 2.2), False), ((1.0, 2.0), (1.0, 2.3), True), ((1.0, 2.0), (2.1, 2.2), True),
    ((2.0, 1.0), (1.9, 1.2), False), ((1.0, 5.0, 2.0, 6.0), (1.0, 5.0, 2.0, 6.5), True), ((3.0, 3.0), (3.1, 3.1), True),
])
def test_what_counts_as_weaker(before, now, weaker):
    first, second = (" ".join(value.hex() for value in row) for row in (before, now))
    assert every_answer.is_weaker(first, second) == weaker
    assert every_answer.is_weaker(first, "ValueError")
    assert every_answer.is_weaker("ValueError", "TypeError")
    assert not every_answer.is_weaker("eps = 1.01", "eps = 1.02")
