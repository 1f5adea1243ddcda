"""The tables of the documentation, by which a reader finds a name, contain every public name."""

import importlib
import inspect
import itertools
import re
import tomllib
from pathlib import Path

import pytest

import shufflebounds
from shufflebounds import (
    audit,
    composition,
    histograms,
    interop,
    mechanisms,
    profile,
    published,
    selection,
    shuffle,
    tails,
    tradeoff,
)
from shufflebounds.cli.command import COMMANDS
from shufflebounds.shuffle import samples
from tests.strategies import thinned

DOCS = Path(__file__).parents[2] / "docs"
# Types of arguments and results need not be in the index.
RESULTS = {"Bound", "FloatArray", "Guarantee", "SVTScales", "SampleSize", "samples"}
MODULES = [
    shufflebounds, tails, tradeoff, profile, shuffle, samples, mechanisms, composition, selection, histograms, interop, audit,
]


@pytest.mark.parametrize("module", thinned(MODULES, 3), ids=lambda module: module.__name__)
def test_every_public_name_stands_in_the_index(module):
    text = (DOCS / "api/index.md").read_text(encoding="utf-8")
    # The index writes families of names with equal endings as `name_...`.
    for law in re.findall(r"`(\w+)_\.\.\.`", text):
        text += " ".join(f"`{law}_log{kind}`" for kind in ("pmf", "cdf", "sf"))
    names = [name for name in module.__all__ if name not in RESULTS and not name.startswith("__")]
    assert names
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []


def test_the_lists_of_the_reference_have_every_public_name():
    for subpackage in ("shuffle", "mechanisms"):
        listed = (DOCS / "api" / f"{subpackage}.md").read_text(encoding="utf-8").split()
        assert set(getattr(shufflebounds, subpackage).__all__) - RESULTS <= set(listed)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_every_public_method_is_described(module):
    """A method may inherit its docstring from a base class."""
    classes = [value for value in (getattr(module, name) for name in module.__all__) if inspect.isclass(value)]
    bare = [f"{value.__name__}.{name}" for value in classes for name in dir(value)
            if not name.startswith("_") and callable(getattr(value, name)) and not inspect.getdoc(getattr(value, name))]
    assert bare == []


ROOT = DOCS.parent
MADE = {"_build", "generated"}
PAGES = [path for path in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))] if not MADE & set(path.parts)]


def test_every_link_within_the_project_leads_somewhere():
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
        missing = [target for target in targets if target and "://" not in target and not (page.parent / target).exists()]
        assert missing == [], page


def anchors(page):
    """Return the anchors of a page: the labels before its headings, and its headings as MyST and GitHub write them in addresses."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {*re.findall(r"^\(([\w-]+)\)=$", text, flags=re.M),
            *(re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings)}


def test_every_anchor_is_that_of_a_heading():
    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        links = [target.partition("#") for target in re.findall(r"\]\(([^)\s]+)\)", text) if "#" in target and "://" not in target]
        missing = [f"{name}#{anchor}" for name, _, anchor in links
                   if not (name and not name.endswith(".md")) and anchor not in anchors(page.parent / name if name else page)]
        assert missing == [], page


@pytest.mark.parametrize("word", thinned([
    "attack", "advantage", "confidence interval", "collusion", "devices", "pandas", "polars", "float32", "Rust", "WebAssembly",
    "gallery", "Prio", "DP-SGD", "Flower",
], 3))
def test_the_search_finds_what_people_type(word):
    assert [links for terms, answer, links in rows_of(DOCS / "words.md", "| you search for |") if word in terms + answer and links]


def rows_of(page, header):
    """Return the cells of the table under the given header."""
    text = page.read_text(encoding="utf-8")
    lines = text[text.index(header):].splitlines()[2:]
    table = itertools.takewhile(lambda line: line.startswith("|"), lines)
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_the_table_of_clone_bounds_holds():
    rows = rows_of(DOCS / "numerics.md", "| users, eps0, delta | eps |")
    assert len(rows) >= 8
    for case, eps, gap, ratio, *_ in rows:
        users, local, delta = map(float, case.split(","))
        users = int(users)
        bound = shuffle.StrongerClones(users, local)
        upper, lower = bound.epsilon(delta), bound.epsilon(delta, bound="lower")
        assert abs(upper - float(eps)) <= 6e-11
        assert upper / lower - 1 <= 2 * float(gap)
        closed = published.stronger_clones_closed_form(users, local, delta)
        assert f"{closed / upper:.1f}" == ratio


@pytest.mark.slow
def test_every_formula_becomes_mathml():
    latex2mathml = pytest.importorskip("docutils.utils.math.latex2mathml")
    for page in PAGES:
        text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
        for display, inline in re.findall(r"\$\$(.+?)\$\$|(?<!\\)\$([^$]+?)\$", text, flags=re.S):
            assert "<math" in latex2mathml.tex2mathml(display or inline, as_block=bool(display))


def test_the_two_sides_on_the_first_screen_are_rounded_outward():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"\| \*\*shufflebounds\*\*, (upper|lower) bound[^|]* \| \*\*([\d.]+)\*\*", text))
    bound = shuffle.StrongerClones(10**6, 4.0)
    assert bound.epsilon(1e-8) <= float(shown["upper"]) <= bound.epsilon(1e-8) + 2e-12
    assert bound.epsilon(1e-8, bound="lower") - 2e-12 <= float(shown["lower"]) <= bound.epsilon(1e-8, bound="lower")


def test_the_other_numbers_on_the_first_screen():
    shown = dict(rows_of(ROOT / "README.md", "| | eps |"))
    closed = published.stronger_clones_closed_form(10**6, 4.0, 1e-8)
    assert next(eps for name, eps in shown.items() if name.startswith("closed form")) == f"{closed:.4f}"
    for name, randomizer in ("10-ary", mechanisms.KaryResponse(10, 4.0)), ("binary randomized", mechanisms.RandomizedResponse(4.0)):
        reports = randomizer.shuffled(10**6)
        text = next(eps for row, eps in shown.items() if name in row)
        assert {f"{reports.epsilon(1e-8, bound=side):.4f}" for side in ("lower", "upper")} == {text}


def test_an_address_makes_every_link_of_the_readme_absolute(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    links = importlib.import_module("absolute_links")
    url = "https://example.org/owner/shufflebounds"
    text = links.absolute((ROOT / "README.md").read_text(encoding="utf-8"), url)
    targets = re.findall(r"\]\(([^)\s]+)\)", text)
    assert len(targets) > 20
    assert all(target.startswith(("https://", "#")) for target in targets)
    assert f"]({url}/raw/main/docs/_static/figures/headline.svg)" in text
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    urls = tomllib.loads(links.with_urls(links.with_urls(settings, url), url))["project"]["urls"]
    assert urls["Repository"] == url
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert links.with_repository(links.with_repository(citation, "https://old.example"), url).count("repository-code") == 1
    assert f'\nrepository-code: "{url}"\n' in links.with_repository(citation, url)
    recipe = (ROOT / "recipe" / "meta.yaml").read_text(encoding="utf-8")
    assert links.with_home(links.with_home(recipe, "https://old.example"), url).count("  home: ") == 1


def test_the_layout_of_contributing_is_that_of_the_sources():
    if not (ROOT / ".ci").is_dir():
        pytest.skip("the whole tree is in the repository only")
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    block = re.search(r"## The layout\n\n[^#]*?\n\n((?:    .*\n|\n)+)", text)[1]
    package = ROOT / "src" / "shufflebounds"
    named = re.findall(r"(?<![\w./])(\.?[\w/]+(?:/|\.py))(?=[\s;,]|$)|(\.ci/run)", block)
    named = {one or other for one, other in named}
    assert len(named) > 25
    assert [name for name in named if not any((above / name).exists() for above in (ROOT, package, package / "_engines"))] == []
    packages = [path.name + "/" for path in package.iterdir() if (path / "__init__.py").exists()]
    files = [path.name for path in package.glob("*.py") if not path.name.startswith("__")]
    assert [name for name in packages + files if not re.search(rf"(?<!\w){re.escape(name)}", block)] == []


def test_private_modules_have_names_of_their_own():
    package = ROOT / "src" / "shufflebounds"
    if not package.is_dir():
        pytest.skip("the sources are not here")
    names = [path.name for path in package.rglob("_*.py") if not path.name.startswith("__")]
    assert len(names) > 10
    assert [name for name in names if names.count(name) > 1] == []


def test_the_page_of_c_signatures_has_every_function(monkeypatch):
    if not (ROOT / "src" / "shufflebounds").is_dir():
        pytest.skip("the sources are not here")
    monkeypatch.syspath_prepend(str(DOCS))
    page = importlib.import_module("c_signatures").page()
    from shufflebounds import cython_tails

    assert [name for name in cython_tails.__pyx_capi__ if f" {name}(" not in page] == []


def test_the_page_of_the_command_names_every_command():
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert [name for name in COMMANDS if f"`shufflebounds {name} " not in text] == []


# Number of columns of code that fit between the two side bars of a window of 1400 pixels; site.css sets the font size.
COLUMNS = 100


def test_code_fits_beside_the_bars():
    """Lines of code fit into the width of the page. The output of commands is not checked, because wide tables can be scrolled."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^```(pycon|python|console|toml|cython)\n(.*?)^```", text, flags=re.S | re.M)
        shown = [line for kind, block in blocks for line in block.splitlines() if kind != "console" or line.startswith("$ ")]
        assert [line for line in shown if len(line) > COLUMNS] == [], page


def test_examples_of_docstrings_fit_beside_the_bars():
    package = ROOT / "src" / "shufflebounds"
    if not package.is_dir():
        pytest.skip("the sources are not here")
    for path in (ROOT / "examples" / "kernels").glob("*.py*"):
        assert max(map(len, path.read_text(encoding="utf-8").splitlines())) <= COLUMNS, path
    for path in package.rglob("*.py"):
        lines = [line.lstrip() for line in path.read_text(encoding="utf-8").splitlines()]
        assert [line for line in lines if line.startswith((">>> ", "... ")) and len(line) > COLUMNS] == [], path
