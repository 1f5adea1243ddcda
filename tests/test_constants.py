"""The number of numeric constants of the package may decrease but not increase, and each constant has a docstring."""

import json
from pathlib import Path

from tests import constants

MOST = json.loads(Path(__file__).with_name("constants.json").read_text(encoding="utf-8"))["most"]


def test_the_number_of_constants_does_not_rise():
    """A new number follows from a rule or from `_limits`; the allowed number of constants is in tests/constants.json."""
    found = len(constants.constants())
    assert found <= MOST, f"{found} numeric constants, {MOST} allowed: python -m tests.constants lists them by subpackage"


def test_the_constants_have_docstrings():
    assert [one for one in constants.constants() if not one.documented] == []


def test_what_counts_as_a_constant():
    text = "\n".join([
        'A = 2**20', '"""The size of a table."""', 'B, C = -1.5, 3 * ULP', 'D = math.log(1e8)', 'E: float = 1e-9',
        # The values in these lines are no numbers that an author chose.
        'F = B', 'G = "text"', 'H = [1, 2]', 'I = True', 'J = name(4, "text")', 'def f():\n    K = 3',
        'L = (1, 2, 3)',
    ])
    found = constants.in_source(text)
    assert [one.name for one in found] == ["A", "B", "C", "D", "E", "L"]
    assert [one.name for one in found if one.documented] == ["A"]
