"""The lists of the rooms that grow by whole classes, for the reference: read off the rooms when the site is built."""

import importlib
import inspect
from pathlib import Path

ROOMS = ("shuffle", "mechanisms")


def names(room: str) -> list[str]:
    """Return the public names of a room, its classes first; modules within have lists of their own."""
    module = importlib.import_module(f"shufflebounds.{room}")
    held = {name: getattr(module, name) for name in module.__all__}
    classes = [name for name, value in held.items() if inspect.isclass(value)]
    return classes + [name for name, value in held.items() if inspect.isroutine(value)]


def write(folder: Path) -> list[str]:
    """Write a list for the page of each room to include, and return their names; paths are those from either place."""
    for room in ROOMS:
        listed = "\n".join(f"   {name}" for name in names(room))
        text = f".. currentmodule:: shufflebounds.{room}\n\n.. autosummary::\n   :toctree: ../api/generated/\n\n{listed}\n"
        (folder / f"reference-{room}.md").write_text(f"```{{eval-rst}}\n{text}```\n", encoding="utf-8")
    return [f"{folder.name}/reference-{room}.md" for room in ROOMS]
