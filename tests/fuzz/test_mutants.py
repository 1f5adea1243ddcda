"""Which tests run for a changed module or kernel in mutation testing."""

import re
from pathlib import Path

import pytest

from tests.fuzz import mutants
from tests.strategies import thinned

pytestmark = pytest.mark.skipif(not (mutants.ROOT / "src/_core").is_dir(), reason="needs the source tree")


@pytest.mark.parametrize(("kernel", "folders"), thinned([
    ("_gaussian", {"core", "mechanisms"}),
    ("_worst_bits", {"core", "shuffle"}),
    ("_hypergeom", {"core", "tails"}),
    # The kernel `_excess` uses the next two kernels.
    ("_smoothed", {"core", "engines/excess"}),
    ("_heavy_tails", {"core", "engines/excess"}),
    ("_cell_sums", {"core", "base", "engines/compose"}),
    ("_losses", {"core", "losses"}),
    ("_special", {"core", "tails", "composition", "selection"}),
], 3))
def test_a_kernel_runs_the_tests_of_the_folders_that_use_it(kernel, folders):
    found = mutants.tests_of(Path("src/_core") / f"{kernel}.pyx")
    assert {f"tests/{folder}" for folder in folders} <= set(found)
    assert all((mutants.ROOT / name).exists() for name in found)


def test_a_module_runs_the_tests_of_its_folder():
    assert mutants.tests_of(Path("src/shufflebounds/shuffle/bits.py")) == ("tests/shuffle",)
    assert mutants.tests_of(Path("src/shufflebounds/_engines/compose/grid.py")) == ("tests/engines/compose",)
    assert mutants.tests_of(Path("src/shufflebounds/mechanisms/noise/laplace.py")) == ("tests/mechanisms",)


def test_most_kernels_run_fewer_than_all_folders():
    assert len(mutants.tests_of(Path("src/_core/_worst_bits.pyx"))) <= 3
    assert len(mutants.tests_of(Path("src/_core/_hypergeom.pyx"))) <= 3


def test_the_changes_that_no_test_notices_are_at_places_that_exist():
    files = {path.as_posix(): path for path in (mutants.ROOT / "src").rglob("*.py*")}
    rows = [line.split("|")[1] for line in (mutants.ROOT / "tests/fuzz/unnoticed.md").read_text(encoding="utf-8").splitlines()
            if line.startswith("| `")]
    named = [name for row in rows for name in re.findall(r"`([\w/]+\.pyx?)`", row)]
    assert len(named) > 50
    assert [name for name in named if sum(file.endswith(f"/{name}") for file in files) != 1] == []
    missing = []
    for row in rows:
        text = ""
        for name in re.findall(r"`([\w/.]+)`", row):
            if name.endswith((".py", ".pyx")):
                text = next(path for file, path in files.items() if file.endswith(f"/{name}")).read_text(encoding="utf-8")
            elif not re.search(rf"\b{name}\b", text):
                missing.append((row, name))
    assert missing == []
