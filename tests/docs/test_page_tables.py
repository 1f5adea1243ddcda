"""The computed tables in the pages are those that docs/tables.py computes now.

Tables that are read from files and classes are equal to the letter. The numbers of published bounds come from the C library of the
machine, so that the last digit shown may differ by one.
"""

import importlib
import re
from decimal import Decimal
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
NUMBER = re.compile(r"(?<![\w.])[-\N{NON-BREAKING HYPHEN}]?\d+(?:\.\d+)?(?:e[-+\N{NON-BREAKING HYPHEN}]?\d+)?(?![\w.])")

pytestmark = pytest.mark.skipif(not (DOCS.parent / "src/_core").is_dir(), reason="needs the source tree")


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("tables")


def in_pages(script):
    """Return the text of every table as the pages have it, by its name, and fail if two pages have the same one."""
    found = [(name, block) for page in script.pages()
             for block, name in ((m[0], m[2]) for m in script.BLOCK.finditer(page.read_text(encoding="utf-8")))]
    names = [name for name, _ in found]
    assert len(set(names)) == len(names)
    return {name: re.sub(r"^<!--.*-->$", "", block, flags=re.M).strip() for name, block in found}


def last_digit(number):
    """Return a number as it is written, and the unit of its last digit; trailing zeros of three digits are not written."""
    value = Decimal(number.replace("\N{NON-BREAKING HYPHEN}", "-"))
    return value, Decimal(1).scaleb(min(value.as_tuple().exponent, value.adjusted() - 2)) if value.is_finite() else 0


def agree(shown, computed):
    """Return whether two rows have the same words, and numbers that differ by at most one unit of their last digit."""
    for old, new in zip(shown.split(" | "), computed.split(" | "), strict=True):
        if old != new:
            if not (NUMBER.fullmatch(old.strip(" |")) and NUMBER.fullmatch(new.strip(" |"))):
                return False
            (a, x), (b, y) = (last_digit(cell.strip(" |")) for cell in (old, new))
            if abs(a - b) > max(x, y):
                return False
    return True


@pytest.mark.slow
def test_tables_of_files_and_classes_are_fresh(script):
    shown, computed = in_pages(script), {name: text.strip() for name, text in script.quick().items()}
    assert [name for name in computed if shown.get(name) != computed[name]] == [], "python docs/tables.py writes them"
    assert set(shown) - set(computed) == {"errata-every", "errata-false"}


@pytest.mark.slow
def test_tables_of_published_bounds_are_fresh(script):
    shown = in_pages(script)
    for name, text in script.errata_tables.tables().items():
        for old, new in zip(shown[name].splitlines(), text.strip().splitlines(), strict=True):
            assert agree(old, new), f"{old}\n{new}\npython docs/tables.py writes it"


def test_agreement_is_within_one_unit_of_the_last_digit():
    row = "| n = 10^4 | false | 1.23e\N{NON-BREAKING HYPHEN}05 | 1 | inf |"
    for old, new in (("1.23e", "1.24e"), ("| 1 |", "| 0.9999 |")):
        assert agree(row, row.replace(old, new))
    for old, new in (("1.23e", "1.25e"), ("10^4", "10^5"), ("n =", "m ="), ("05", "06"), ("inf", "1"), ("false", "proven"),
                     ("| 1 |", "| 2 |")):
        assert not agree(row, row.replace(old, new))


def test_no_page_includes_a_file_that_is_not_in_the_sources():
    for page in DOCS.rglob("*.md"):
        if not {"_build", "generated"} & set(page.parts):
            for name in re.findall(r"\{(?:literal)?include\} (\S+)", page.read_text(encoding="utf-8")):
                target = (page.parent / name).resolve()
                assert target.exists(), (page, name)
                assert not {"_build", "_generated", "generated"} & set(target.parts), (page, name)
