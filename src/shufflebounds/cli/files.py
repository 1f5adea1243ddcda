"""Files that the command reads; a dash is standard input."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["text_of"]


def text_of(argument: str, file: str) -> str:
    """Return the text of the file, or raise ValueError naming the argument."""
    try:
        if file == "-":
            return sys.stdin.read()
        return Path(file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise ValueError(f"{argument}: {file!r} cannot be read: {problem}") from None
