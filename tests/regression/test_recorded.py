"""Present bounds against those recorded from an older version: they must contain a common value, and no gap may be wider.

recorded.json is written by record.py; `python -m tests.regression.record compare` prints violations and changes of the run time.
"""

import json
from collections import defaultdict
from pathlib import Path

import pytest

from tests.regression.questions import SUBJECTS, answer, key, problem, recorded

CORRECTED: dict[str, str] = json.loads(Path(__file__).with_name("corrected.json").read_text(encoding="utf-8"))
"""Keys of questions whose recorded result was wrong or whose gap may be wider, with the reason."""

QUICK = 0.02
"""Questions that take at most this CPU time in seconds are tested in every run, and the others with the slow tests."""

LATER = 0.3
"""Questions that take longer, in CPU seconds, are left to the comparison by record.py."""

BY_CLASS = defaultdict(list)
for row in recorded():
    BY_CLASS[row["build"][0]].append(row)


def problems(rows):
    """Return descriptions of the violations in the present results of these questions."""
    found = [(key(row), problem(row, answer(row))) for row in rows if key(row) not in CORRECTED]
    return [f"{name}: {what}" for name, what in found if what]


def test_all_classes_are_recorded():
    assert set(SUBJECTS) <= set(BY_CLASS)
    assert sum(map(len, BY_CLASS.values())) >= 400
    assert set(CORRECTED) <= {key(row) for rows in BY_CLASS.values() for row in rows}


@pytest.mark.parametrize("path", BY_CLASS)
def test_quick_results_agree(path):
    rows = [row for row in BY_CLASS[path] if row["seconds"] <= QUICK][:6]
    assert problems(rows) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", BY_CLASS)
def test_all_results_agree(path):
    assert problems([row for row in BY_CLASS[path] if row["seconds"] <= LATER]) == []
