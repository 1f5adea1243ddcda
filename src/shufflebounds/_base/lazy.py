"""Packages that import each public name at its first use, which keeps the import of the library fast."""

from __future__ import annotations

import sys
from importlib import import_module

# `shufflebounds --version` imports this module, and importing `typing` would take longer than the rest of the import. Type checkers
# take a constant named TYPE_CHECKING to be true.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

__all__ = ["lazily", "missing", "module_name"]


def missing(package: str, name: str, listed: Iterable[str]) -> str:
    """Return the error message for a name that the package does not have, with up to three similar names."""
    near: list[str] = []
    if not name.startswith("_"):
        # difflib takes milliseconds to import and only this error needs it, so it is imported here.
        from difflib import get_close_matches

        public = [one for one in listed if not one.startswith("_")]
        near = [one for one in public if name.lower() in one.lower()][:3] or get_close_matches(name, public, 3, 0.7)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"module {package!r} has no attribute {name!r}{hint}"


def module_name(kind: str) -> str:
    """Return the name of the module that defines the class of the given name, e.g. kary_response for KaryResponse.

    The suffix Mechanism is dropped: the module of GaussianMechanism is gaussian.
    """
    import re

    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.removesuffix("Mechanism")).lower()


def lazily(package: str, homes: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package.

    The mapping `homes` gives the module that defines each name, or "" if the name is a module of the package.
    """

    def find(name: str) -> Any:
        if name not in homes:
            # Only names of classes are looked up in the subpackages: another name may come from an import statement that looks for
            # a module.
            modules = [f"{package}.{one}" for one, home in homes.items() if not home] if name[:1].isupper() else []
            owner = next((one for one in sorted(modules) if name in getattr(import_module(one), "__all__", ())), None)
            raise AttributeError(f"module {package!r} has no attribute {name!r}; it is in {owner}" if owner else
                                 missing(package, name, homes))
        home = homes[name]
        value = getattr(import_module(home), name) if home else import_module(f"{package}.{name}")
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted({*vars(sys.modules[package]), *homes})
