"""Reports, the command and generated tables do not call a number exact or proved: these words come from the evidence."""

import ast
import re
from pathlib import Path

import pytest

from shufflebounds import cli, report

ROOT = Path(__file__).parents[2]
WORDS = re.compile(r"\b(?:proved|proven|exact)\b", re.IGNORECASE)
FILES = [
    *(path for package in (cli, report) for path in Path(package.__file__).parent.rglob("*.py")),
    *(path for path in (ROOT / "docs" / f"{name}.py" for name in ("certified_classes", "errata_tables", "tables_of_the_command"))
      if path.exists()),
]


def texts(path):
    """Return the strings of a file that may be printed: all except keys such as row["exact"]."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    keys = {id(node.slice) for node in ast.walk(tree) if isinstance(node, ast.Subscript)}
    return [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
            and id(node) not in keys]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_text_says_exact_or_proved_by_itself(path):
    found = [text for text in texts(path) if WORDS.search(text)]
    if path.name == "errata_tables.py":
        # The name of a field of the comparisons.
        found = [text for text in found if text != "exact"]
    assert found == []
