"""Questions from public reports about other programs: this library has the right answers (tests/reference/reports.json)."""

import importlib
import math

import pytest

import shufflebounds
from tests.errors import REFERENCE, distance, reference, to_decimal

CASES = {case["id"]: case for case in reference("reports")}
OUTSIDE = {"scipy-24074-2": "shapes of the incomplete beta function above 1e100 are outside its documented domain"}
"""Documented limits: the answer is NaN."""



def answer(case):
    names = ("composition", "mechanisms", "selection", "shuffle", "tails", "tradeoff")
    return eval(case["call"], {name: getattr(shufflebounds, name, None) or importlib.import_module(f"shufflebounds.{name}")
                               for name in names})


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_right(name):
    case = CASES[name]
    found, exact, tolerance = float(answer(case)), to_decimal(case["expected"]), to_decimal(case["tolerance"])
    if name in OUTSIDE:
        assert math.isnan(found)
    elif case["side"] == "exact":
        assert distance(found, exact) <= tolerance * abs(exact)
    elif case["side"] == "upper":
        # The bound is rounded to a double.
        assert exact <= to_decimal(found) * (1 + to_decimal(2.0**-52))
        assert to_decimal(found) <= exact * (1 + tolerance)
    else:
        assert to_decimal(found) >= exact - tolerance * abs(exact)


@pytest.mark.slow
def test_the_values_are_made_anew(monkeypatch):
    monkeypatch.syspath_prepend(str(REFERENCE))
    module = importlib.import_module("make_reports")
    assert set(CASES) == module.STATED | set(module.VALUES)
    assert not module.STATED & set(module.VALUES)
    assert [name for name in module.VALUES if not module.agrees(CASES[name])] == []
