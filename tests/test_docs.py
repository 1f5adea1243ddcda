"""Passages that docstrings share: no placeholder is left, and every passage is used."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import shufflebounds
from shufflebounds import _docs

OPTIONAL = ("interop", "cli")


def documented():
    """Yield the functions and classes of the package, with the members of the classes."""
    for module in pkgutil.walk_packages(shufflebounds.__path__, "shufflebounds."):
        if not any(f".{name}" in module.name for name in OPTIONAL):
            for value in list(vars(importlib.import_module(module.name)).values()):
                if inspect.isfunction(value) or inspect.isclass(value):
                    yield value
                    yield from (getattr(member, "__func__", member) for member in vars(value).values())


def test_no_passage_is_left_out():
    left = {str(value) for value in documented() if re.search(r"^ *\{\w+(: .*)?\}$", value.__doc__ or "", re.MULTILINE)}
    assert left == set()


def test_every_passage_is_said_more_than_once():
    text = "".join(path.read_text(encoding="utf-8") for path in Path(shufflebounds.__file__).parent.rglob("*.py"))
    assert [name for name in _docs._PASSAGES if len(re.findall(rf"\{{{name}(: .*)?\}}\n", text)) < 2] == []


def test_a_passage_keeps_its_indentation_and_takes_its_words():
    @_docs.with_passages
    class Some:
        """A class.

        {population}
        """

        @classmethod
        def calibrate(cls):
            """Return it.

            {rare_error}
            {raises: If it rains.}
            """

    assert "users : int\n    Number n of users" in inspect.getdoc(Some)
    assert inspect.getdoc(Some.calibrate).endswith("ValueError\n    If it rains.")
