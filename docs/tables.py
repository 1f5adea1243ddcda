"""The computed tables of the pages: ``python docs/tables.py`` writes them into the pages, between two comments that name the table.

The tables are committed, so that a page is complete wherever its Markdown is shown. tests/docs/test_page_tables.py compares every
table with a new computation; run this script after a change of a recorded time, of a measured error, or of a class, bound or test
that a table lists.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import beside_today
import c_signatures
import calculator
import certified_classes
import coverage_of_papers
import errata_tables
import gallery
import measured_costs
import measured_errors
import reference_lists
import tables_of_the_command

DOCS = Path(__file__).parent
BLOCK = re.compile(r"(<!-- begin (\S+): written by docs/tables.py -->\n).*?(\n<!-- end \2 -->)", re.S)


def quick() -> dict[str, str]:
    """Return the tables that are read from files and from the classes, by their names."""
    return {
        **measured_costs.pages(), **measured_errors.blocks(), **reference_lists.lists(), "coverage": coverage_of_papers.page(),
        "mechanisms-of-the-command": tables_of_the_command.table(), "c-signatures": c_signatures.page(),
        "certified-classes": certified_classes.table(), "gallery": gallery.page(), **calculator.tables(), **beside_today.newest(),
    }


def pages() -> list[Path]:
    """Return the pages that have a table."""
    made = {"_build", "generated"}
    return [path for path in sorted(DOCS.rglob("*.md"))
            if not made & set(path.parts) and BLOCK.search(path.read_text(encoding="utf-8"))]


def filled(text: str, tables: dict[str, str]) -> str:
    """Return the text of a page with every table replaced; KeyError for a name that no table has."""
    return BLOCK.sub(lambda found: f"{found[1]}\n{tables[found[2]].strip()}\n{found[3]}", text)


def main() -> None:
    """Write every table into its page."""
    tables = {**quick(), **errata_tables.tables()}
    for path in pages():
        path.write_text(filled(path.read_text(encoding="utf-8"), tables), encoding="utf-8")


if __name__ == "__main__":
    main()
