"""The script that draws the figures of the documentation, on its fastest figure, and a function that only the script uses."""

import importlib.util
import math
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

SCRIPT = Path(__file__).parents[1] / "docs" / "make_figures.py"


@pytest.fixture(scope="module")
def script():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPT.parent)
        yield load()


def load():
    spec = importlib.util.spec_from_file_location("make_figures", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_figure_is_drawn(script, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["make_figures.py", "noise", "--folder", str(tmp_path)])
    script.main()
    assert (tmp_path / "noise.svg").read_text().startswith("<?xml")


def test_every_figure_stands_in_a_page(script):
    made = {"_build", "_generated", "generated"}
    page = "".join(path.read_text() for path in SCRIPT.parent.rglob("*.md") if not made & set(path.parts))
    for name in script.FIGURES:
        assert f"_static/figures/{name}.svg" in page
        assert (script.FOLDER / f"{name}.svg").exists()


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
