"""The C interface is frozen: functions in tests/reference/cython_abi.json keep their signatures; functions may be added.

After an addition, run ``python -m tests.core.test_cython_abi``, which rewrites the file, and check the difference.
"""

import ctypes
import importlib
import json
from pathlib import Path

import pytest

import shufflebounds._core

FILE = Path(__file__).parents[1] / "reference" / "cython_abi.json"
FROZEN = json.loads(FILE.read_text()) if FILE.exists() else {}


def signatures(module):
    """Return {name: C signature} of the functions that a module exports."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return {name: name_of(capsule).decode() for name, capsule in sorted(vars(module).get("__pyx_capi__", {}).items())}


def modules():
    """Return the names of the installed modules that ship a .pxd and a compiled module."""
    folder = Path(shufflebounds._core.__file__).parent
    names = sorted(p.stem for p in folder.glob("*.pxd"))
    return [n for n in names if n not in ("_constants", "_dd")]


@pytest.mark.parametrize("name", FROZEN)
def test_nothing_frozen_has_changed(name):
    present = signatures(importlib.import_module(f"shufflebounds._core.{name}"))
    changed = {f: (s, present.get(f)) for f, s in FROZEN[name].items() if present.get(f) != s}
    assert not changed, f"frozen and now: {changed}"


@pytest.mark.parametrize("name", modules())
def test_every_module_is_frozen(name):
    present = signatures(importlib.import_module(f"shufflebounds._core.{name}"))
    assert FROZEN.get(name) or not present, f"{name} exports C functions: list them in {FILE.name}"


if __name__ == "__main__":
    table = {name: signatures(importlib.import_module(f"shufflebounds._core.{name}")) for name in modules()}
    FILE.write_text(json.dumps(table, indent=2) + "\n")
