"""The lists of the public names of two subpackages, for their pages of the reference."""

import importlib
import inspect

ROOMS = ("shuffle", "mechanisms")


def names(room: str) -> list[str]:
    """Return the public names of a subpackage, its classes first; modules within have lists of their own."""
    module = importlib.import_module(f"shufflebounds.{room}")
    held = {name: getattr(module, name) for name in module.__all__}
    classes = [name for name, value in held.items() if inspect.isclass(value)]
    return classes + [name for name, value in held.items() if inspect.isroutine(value)]


def lists() -> dict[str, str]:
    """Return the list for the page of each subpackage, by the name under which the page has it."""
    found = {}
    for room in ROOMS:
        listed = "\n".join(f"   {name}" for name in names(room))
        text = f".. currentmodule:: shufflebounds.{room}\n\n.. autosummary::\n   :toctree: generated/\n\n{listed}\n"
        found[f"reference-{room}"] = f"```{{eval-rst}}\n{text}```\n"
    return found
