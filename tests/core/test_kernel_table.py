"""The table of src/_core/README.md lists every kernel and the modules that call it."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "_core"
PACKAGE = ROOT / "src" / "shufflebounds"

pytestmark = pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources of the kernels are in the repository only")


def imported(text):
    """Return the kernels that a Python module imports, or names of which it imports."""
    lists = re.findall(r"from shufflebounds\._core import ([\w, ]+)", text)
    listed = {name for one in lists for name in re.split(r",\s*", one)}
    return listed.union(re.findall(r"from shufflebounds\._core\.(\w+) import", text))


def called_by(name, modules, sources):
    """Return the packages whose Python modules import the kernel, and the kernels that cimport it."""
    packages = {str(path.parent.relative_to(PACKAGE)) for path, kernels in modules.items() if name in kernels}
    pattern = rf"from shufflebounds\._core\.{name} cimport|from shufflebounds\._core cimport [^\n]*\b{name}\b"
    kernels = {
        path.stem for path, text in sources.items() if path.stem != name and re.search(pattern, text)
    }
    return sorted(packages), sorted(kernels)


def test_every_kernel_stands_in_the_table_with_its_callers():
    text = (SOURCES / "README.md").read_text(encoding="utf-8")
    rows = {cells[0]: cells[2:] for cells in re.findall(r"^\| `(\w+)` \|([^|]+)\|([^|]*)\|([^|]*)\|$", text, re.M)}
    assert sorted(rows) == sorted(path.stem for path in SOURCES.glob("*.pyx"))
    modules = {path: imported(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    sources = {path: path.read_text(encoding="utf-8") for folder in (SOURCES, PACKAGE, PACKAGE / "_core")
               for path in [*folder.glob("*.pyx"), *folder.glob("*.pxd")]}
    for name, listed in rows.items():
        packages, kernels = (sorted(re.findall(r"[\w/]+", cell)) for cell in listed)
        callers = called_by(name, modules, sources)
        assert (packages, kernels) == callers, f"the callers of {name} have changed: edit src/_core/README.md"


def test_every_kernel_is_declared_beside_the_package():
    for path in SOURCES.glob("_*.pyx"):
        declared = {suffix for suffix in (".pxd", ".pyi") if (PACKAGE / "_core" / f"{path.stem}{suffix}").exists()}
        assert ".pyi" in declared, f"{path.stem} has no {path.stem}.pyi in src/shufflebounds/_core"
