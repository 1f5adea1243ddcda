"""The script that draws the figures of the documentation, on its fastest figure, and a function that only the script uses."""

import importlib.util
import io
import math
import re
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

SCRIPT = Path(__file__).parents[2] / "docs" / "make_figures.py"
FIGURES = sorted(path.stem for path in (SCRIPT.parent / "_static" / "figures").glob("*.svg"))
SLOW = {
    "areas", "audit", "bits", "bounds", "chernoff", "growth", "headline", "histogram", "hockey-stick", "mechanisms", "noise",
    "overshoot", "protocol-clones", "randomizers", "reals", "rules", "worst_dataset", "year",
}


LONG = {"budgets", "comparison", "shuffled-batches", "training"}
"""Figures that take over ten seconds. Their labels are those of the last run of the script, which nothing compares."""


@pytest.fixture(scope="module")
def script():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        yield load()


def load(name="make_figures"):
    spec = importlib.util.spec_from_file_location(name, SCRIPT.with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_figure_is_drawn(script, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["make_figures.py", "noise", "--folder", str(tmp_path)])
    script.main()
    assert (tmp_path / "noise.svg").read_text().startswith("<?xml")


def texts(figure):
    """Return the texts of an SVG that matplotlib wrote, which has each of them in a comment."""
    return re.findall(r"<!-- (.*?) -->", figure, re.DOTALL)


def drawn(figure):
    with io.StringIO() as stream:
        figure.savefig(stream, format="svg", metadata={"Date": None})
        return texts(stream.getvalue())


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in FIGURES if name not in LONG])
@pytest.mark.filterwarnings("ignore:local_eps")
def test_the_labels_of_a_committed_figure_are_those_of_the_code(script, name):
    """Numbers in titles, labels and legends are computed. If this fails, run docs/make_figures.py with the name and look at it.

    Of a figure that takes long only the wide form is drawn: the script writes both forms at once.
    """
    forms = ((nullcontext, script.FOLDER), (script.narrow, script.FOLDER / "narrow"))
    for form, folder in forms[: 1 if name in SLOW else 2]:
        with form():
            figure = script.drawn(script.FIGURES[name])
            try:
                assert drawn(figure) == texts((folder / f"{name}.svg").read_text(encoding="utf-8"))
            finally:
                script.plt.close(figure)


@pytest.mark.slow
def test_the_labels_of_the_committed_plots_are_those_of_the_library(script):
    pictures = load("make_pictures")
    for name, ax in pictures.plots().items():
        assert drawn(ax.figure) == texts((pictures.STATIC / f"{name}.svg").read_text(encoding="utf-8"))


def test_every_figure_stands_in_a_page(script):
    assert set(script.FIGURES) == set(FIGURES)
    made = {"_build", "generated"}
    pages = [SCRIPT.parents[1] / "README.md", *(path for path in SCRIPT.parent.rglob("*.md") if not made & set(path.parts))]
    page = "".join(path.read_text() for path in pages)
    for name in script.FIGURES:
        assert f"_static/figures/{name}.svg" in page
        assert (script.FOLDER / f"{name}.svg").exists()
        width = re.search(r'<svg [^>]*width="([\d.]+)pt"', (script.FOLDER / "narrow" / f"{name}.svg").read_text(encoding="utf-8"))
        assert float(width[1]) < 390 * 72 / 96 * 1.2, "on a phone the type of a wider figure would be too small"


def test_composed_noise_is_the_product_of_its_laws(script):
    noise = np.array([math.comb(10, k) * 0.25**k * 0.75 ** (10 - k) for k in range(11)])
    p, q = np.append(noise, 0), np.insert(noise, 0, 0)
    cubes = [np.multiply.outer(np.multiply.outer(x, x), x) for x in (p, q)]
    truth = max(np.maximum(a - math.e * b, 0).sum() for a, b in (cubes, cubes[::-1]))
    value = script.composed(10, 0.25, 3, np.array([1.0]))[0]
    assert truth <= value <= truth + 1e-3


def test_lines_enclose_the_curve_of_their_pair(script):
    # The trade-off curve of randomized response with budget ln 3 is the maximum of its supporting lines at eps = ln 3, one for each
    # order of the pair.
    curve = script.lines_below(np.array([0.0, math.log(3)]), np.array([0.5, 0.0]))
    alpha = script.ALPHA
    assert curve == pytest.approx(np.maximum(1 - 3 * alpha, (1 - alpha) / 3), abs=1e-12)
