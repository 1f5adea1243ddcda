"""The tables that lead to a name lead to every public one."""

import re
from pathlib import Path

import pytest

import shufflebounds
from shufflebounds import composition, histograms, interop, mechanisms, profile, selection, shuffle, tails, tradeoff
from shufflebounds.shuffle import samples

DOCS = Path(__file__).parents[1] / "docs"
# types of arguments and results, found where their functions are
RESULTS = {"Bound", "FloatArray", "Guarantee", "SVTScales", "SampleSize", "samples"}
MODULES = [shufflebounds, tails, tradeoff, profile, shuffle, samples, mechanisms, composition, selection, histograms, interop]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
@pytest.mark.parametrize("page", ["choose.md", "api/index.md"])
def test_every_public_name_stands_in_the_page(module, page):
    text = (DOCS / page).read_text(encoding="utf-8")
    # the index writes out one of three families of names that end alike
    if "`poisson_binom_...`, `compound_binom_...`" in text:
        text += " ".join(f"`{law}_binom_log{kind}`" for law in ("poisson", "compound") for kind in ("pmf", "cdf", "sf"))
    names = [name for name in module.__all__ if name not in RESULTS and not name.startswith("__")]
    assert names
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []
