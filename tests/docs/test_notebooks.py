"""The tutorial pages as notebooks: their cells are the code of the pages, whose doctests run it."""

import doctest
import importlib
import json
import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def test_the_cells_are_the_code_of_the_page(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(DOCS))
    notebooks = importlib.import_module("notebooks")
    monkeypatch.setattr("sys.argv", ["notebooks.py", str(tmp_path)])
    notebooks.main()
    assert [path.stem for path in sorted(tmp_path.iterdir())] == sorted(notebooks.PAGES)
    for path in tmp_path.iterdir():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = "".join(cell["source"] + "\n" for cell in cells if cell["cell_type"] == "code")
        page = (DOCS / "tutorial" / f"{path.stem}.md").read_text(encoding="utf-8")
        assert code
        assert code == "".join(example.source for example in doctest.DocTestParser().get_examples(page))


def test_figures_are_attached(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    notebooks = importlib.import_module("notebooks")
    for name in notebooks.PAGES:
        text = [cell for cell in notebooks.notebook(DOCS / "tutorial" / f"{name}.md")["cells"] if cell["cell_type"] == "markdown"]
        assert sum(len(cell.get("attachments", {})) for cell in text) == 1
        assert not any(re.search(r"\]\((?!https?:|attachment:)", cell["source"]) for cell in text)
