"""The Python modules of the package, read and parsed once."""

import ast
import functools
from pathlib import Path
from typing import NamedTuple

import shufflebounds

ROOT = Path(shufflebounds.__file__).parent


class Module(NamedTuple):
    """The text of a module and its syntax tree."""

    text: str
    tree: ast.Module


@functools.cache
def sources():
    """Return {path: Module} of every Python module of the package."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(ROOT.rglob("*.py"))}
    return {path: Module(text, ast.parse(text)) for path, text in texts.items()}
