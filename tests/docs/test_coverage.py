"""The page that lists the papers' items: each item names existing functions, and every published bound occurs."""

import importlib.util
import re
from pathlib import Path

import pytest

from shufflebounds import published

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def coverage():
    spec = importlib.util.spec_from_file_location("coverage_of_papers", DOCS / "coverage_of_papers.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_every_name_and_test_exists(coverage):
    assert coverage.page().count("\n| **") == sum(len(coverage.items(text)) for text in coverage.PAPERS.values()) > 100


def test_every_printed_bound_of_the_papers_has_its_item(coverage):
    named = {name for text in coverage.PAPERS.values() for item in coverage.items(text) for name in item.names}
    papers = ("balcer_cheu", "chen_long", "cheu2019", "das2022", "liu2024", "zhilyaev")
    assert {bound.__name__ for bound in published.bounds() if bound.__name__.startswith(papers)} <= {
        name.removeprefix("published.") for name in named
    }


@pytest.mark.parametrize("name", ["shuffle.Nothing", "figure:nothing"])
def test_what_does_not_exist_is_refused(coverage, name):
    with pytest.raises(LookupError, match="no "):
        coverage.checked(name)
    with pytest.raises(LookupError, match="no test"):
        coverage.exists("test_pages.py::test_nothing")


@pytest.mark.skipif(not (DOCS.parent / "src/_core").is_dir(), reason="needs the source tree")
def test_the_tables_of_the_kernels_have_their_measured_errors():
    spec = importlib.util.spec_from_file_location("measured_errors", DOCS / "measured_errors.py")
    measured = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(measured)
    for table in measured.blocks().values():
        assert len(re.findall(r"\d\S* {2,}.*\d|losses, peak \d", table, re.M)) >= 1
    # A kernel whose header states a measured error occurs in the page. The files that only create ufuncs have no such header.
    stated = {path.stem.removeprefix("_") for path in measured.CORE.glob("_*.pyx") if path.stem != "_ufunc"
            and re.search(r"^ *Measured.*error|^Measured", path.read_text(encoding="utf-8")[:6000], re.M)}
    assert stated <= set(measured.KERNELS)
