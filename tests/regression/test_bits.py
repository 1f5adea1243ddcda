"""Results of every public class, compared with the recorded ones bit by bit; the comparison runs on request only (see bits.py)."""

import os

import pytest

from tests.public_classes import profile_classes
from tests.regression import bits

on_request = pytest.mark.skipif(
    "SHUFFLEBOUNDS_BITS" not in os.environ, reason="compares bits, which differ between machines: set SHUFFLEBOUNDS_BITS=1"
)


@on_request
@pytest.mark.parametrize("name", bits.subjects())
def test_results_are_equal_bit_by_bit(name):
    moved = bits.moved(name)
    assert not moved, "\n".join(moved)


@pytest.mark.parametrize("slow", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["quick", "expensive"])
@pytest.mark.parametrize("name", bits.subjects())
def test_bounds_are_as_close_as_recorded(name, slow):
    # A change that only weakens a bound leaves it valid, so that a comparison with exact values does not notice it.
    weakened = bits.weakened(name, slow=slow)
    assert not weakened, "\n".join(weakened)


def test_every_public_class_is_recorded():
    named = {*bits.subjects(), *bits.LEFT_OUT}
    missing = profile_classes().keys() - named
    assert not missing, f"add profiles of {sorted(missing)} to subjects() in tests/regression/bits.py and record them"
    # DominatingPair is abstract; results of its constructor from_pmfs are recorded.
    gone = named - profile_classes().keys() - {"profile.DominatingPair"}
    assert not gone, f"{sorted(gone)} are no public classes"


def test_every_subject_has_recorded_answers():
    rows = bits.recorded()
    for name, profiles in bits.subjects().items():
        for profile in profiles:
            # Some results of a class may be too slow to be recorded, but at least two must be recorded.
            answers = rows.get(name, {}).get(repr(profile), {})
            assert len(answers) >= 2, f"{profile!r}: record it with python -m tests.regression.bits record"


def test_an_answer_has_both_bounds_and_a_refusal_its_name():
    first = bits.subjects()["mechanisms.KaryResponse"][0]
    lower, upper = map(float.fromhex, bits.answer(first, "epsilon(0)").split())
    assert lower <= 2.0 <= upper
    assert bits.answer(first, "tradeoff.beta(0.05)").count("0x") == 2
