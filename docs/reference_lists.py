"""The lists of the public names of two subpackages, for their pages of the reference."""

import importlib
import inspect

SUBPACKAGES = ("shuffle", "mechanisms")


def names(subpackage: str) -> list[str]:
    """Return the public names of a subpackage, its classes first; modules within have lists of their own."""
    module = importlib.import_module(f"shufflebounds.{subpackage}")
    public = {name: getattr(module, name) for name in module.__all__}
    classes = [name for name, value in public.items() if inspect.isclass(value)]
    return classes + [name for name, value in public.items() if inspect.isroutine(value)]


def lists() -> dict[str, str]:
    """Return the list for the page of each subpackage, by the name under which the page has it."""
    found = {}
    for subpackage in SUBPACKAGES:
        listed = "\n".join(f"   {name}" for name in names(subpackage))
        text = f".. currentmodule:: shufflebounds.{subpackage}\n\n.. autosummary::\n   :toctree: generated/\n\n{listed}\n"
        found[f"reference-{subpackage}"] = f"```{{eval-rst}}\n{text}```\n"
    return found
