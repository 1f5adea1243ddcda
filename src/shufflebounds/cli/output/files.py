"""Files that the command reads or writes; a dash is standard input."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["UnwritableError", "empty_figure", "save", "text_of"]


class UnwritableError(Exception):
    """A file of the command's output cannot be written."""


def empty_figure(out: str) -> Any:
    """Return an empty figure, or raise ValueError naming the file if matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ValueError(f"out={out!r} needs matplotlib: pip install 'shufflebounds[plot]'") from None
    # A Figure without pyplot needs no display.
    return Figure(figsize=(6.0, 4.5), layout="constrained")


def save(argument: str, file: str, write: Callable[[], object]) -> None:
    """Call `write`, which writes the file, or raise UnwritableError naming the argument."""
    try:
        write()
    except OSError as problem:
        raise UnwritableError(f"{argument}: {file!r} cannot be written: {problem.strerror or problem}") from None


def text_of(argument: str, file: str) -> str:
    """Return the text of the file, or raise ValueError naming the argument."""
    try:
        if file == "-":
            return sys.stdin.read()
        return Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) and problem.strerror else str(problem)
        raise ValueError(f"argument {argument}: {file!r} cannot be read: {reason}; pass a file that exists, or - for standard input"
                         ) from None
