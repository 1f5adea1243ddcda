"""The command ``shufflebounds config``: the flags with which a C compiler finds the installed C library."""

from __future__ import annotations

import argparse
import os
import sys

from shufflebounds._base import get_include, get_library
from shufflebounds.cli.parsers import Parser

__all__ = ["add_arguments", "run"]


def add_arguments(parser: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    parser.add_argument("--cflags", action="store_true", help="flags of the compiler")
    parser.add_argument("--libs", action="store_true", help="flags of the linker, for the shared library")
    parser.add_argument("--static", action="store_true", help="with --libs: those for the static library")
    parser.add_argument("--pkgconfigdir", action="store_true", help="folder for PKG_CONFIG_PATH")


def run(arguments: argparse.Namespace) -> None:
    """Print the flags on one line."""
    folder = get_library()
    flags = []
    if arguments.cflags:
        flags.append(f"-I{get_include()}")
    if arguments.libs or arguments.static:
        flags += _static(folder) if arguments.static else _shared(folder)
    if arguments.pkgconfigdir:
        flags.append(os.path.join(folder, "pkgconfig"))
    if not flags:
        raise ValueError("config prints nothing without an option: pass --cflags, --libs, --static or --pkgconfigdir")
    print(*flags)


def _static(folder: str) -> list[str]:
    name = "shufflebounds.lib" if os.name == "nt" else "libshufflebounds.a"
    return [os.path.join(folder, name), *(["-lm"] if os.name != "nt" else [])]


def _shared(folder: str) -> list[str]:
    if os.name == "nt":
        # the import library of the DLL is not built: Windows links the static library
        return _static(folder)
    if sys.platform == "darwin":
        names = sorted(name for name in os.listdir(folder) if name.endswith(".dylib"))
        return [os.path.join(folder, names[-1]), f"-Wl,-rpath,{folder}"]
    return [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lshufflebounds", "-lm"]
