"""Write the tutorial pages as notebooks: ``python docs/notebooks.py FOLDER``.

A block of Python is a cell without its prompts and printed lines; everything else is text. Figures are stored in the notebook.
"""

import base64
import doctest
import json
import re
import sys
from pathlib import Path

DOCS = Path(__file__).parent
PAGES = ("ten-minutes", "guarantee", "protocol", "training")


def text_cell(text: str, folder: Path) -> dict:
    """Return a cell of text; its figures are attached, and links to other pages are shown as their words."""
    attached = {}

    def attach(found: re.Match[str]) -> str:
        figure = folder / found[2]
        attached[figure.name] = {"image/svg+xml": base64.b64encode(figure.read_bytes()).decode()}
        return f"![{found[1]}](attachment:{figure.name})"

    text = re.sub(r"!\[([^\]]*)\]\(([^)]+\.svg)\)", attach, text)
    text = re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)
    cell = {"cell_type": "markdown", "metadata": {}, "source": text.strip()}
    return {**cell, "attachments": attached} if attached else cell


def code_cell(block: str) -> dict:
    """Return a cell of code from a block of doctests."""
    source = "".join(example.source for example in doctest.DocTestParser().get_examples(block)).rstrip()
    return {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": [], "source": source}


def notebook(page: Path) -> dict:
    """Return a page as a notebook of format 4."""
    parts = re.split(r"^```pycon\n(.*?)^```\n", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    cells = [code_cell(part) if i % 2 else text_cell(part, page.parent) for i, part in enumerate(parts) if part.strip()]
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, cell in enumerate(cells):
        cell["id"] = f"{page.stem}-{number}"
    return {"cells": cells, "metadata": {"kernelspec": python}, "nbformat": 4, "nbformat_minor": 5}


def main() -> None:
    """Write the notebooks."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in PAGES:
        text = json.dumps(notebook(DOCS / "tutorial" / f"{name}.md"), indent=1, ensure_ascii=False)
        (folder / f"{name}.ipynb").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
