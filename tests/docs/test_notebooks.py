"""The tutorial pages as notebooks: the code of all cells runs, and prints what the page shows."""

import contextlib
import importlib
import io
import json
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
def test_cells_run_in_order(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(DOCS))
    notebooks = importlib.import_module("notebooks")
    monkeypatch.setattr("sys.argv", ["notebooks.py", str(tmp_path)])
    notebooks.main()
    assert [path.stem for path in sorted(tmp_path.iterdir())] == sorted(notebooks.PAGES)
    for path in tmp_path.iterdir():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        names, printed = {}, io.StringIO()
        with contextlib.redirect_stdout(printed):
            for cell in cells:
                if cell["cell_type"] == "code":
                    exec(compile(cell["source"], path.name, "single" if "\n" not in cell["source"] else "exec"), names)
        lines = [line for line in printed.getvalue().splitlines() if line.strip()]
        page = (DOCS / "tutorial" / f"{path.stem}.md").read_text(encoding="utf-8")
        blocks = "".join(re.findall(r"^```pycon\n(.*?)^```", page, re.S | re.M)).splitlines()
        assert lines
        assert [line for line in lines if line not in blocks] == []


def test_figures_are_attached(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    notebooks = importlib.import_module("notebooks")
    for name in notebooks.PAGES:
        text = [cell for cell in notebooks.notebook(DOCS / "tutorial" / f"{name}.md")["cells"] if cell["cell_type"] == "markdown"]
        assert sum(len(cell.get("attachments", {})) for cell in text) == 1
        assert not any(re.search(r"\]\((?!https?:|attachment:)", cell["source"]) for cell in text)
