"""Docstrings: module constants have one; of the passages that docstrings share, no placeholder is left and every one is used."""

import ast
import importlib
import inspect
import pkgutil
import re

import pytest

import shufflebounds
from shufflebounds.profile.extend import with_passages
from tests.package_source import ROOT, sources

OPTIONAL = ("interop", "cli")
FOLDERS = {path.name for path in ROOT.iterdir() if path.is_dir()}


def documented():
    """Yield the functions and classes of the package, with the members of the classes."""
    for module in pkgutil.walk_packages(shufflebounds.__path__, "shufflebounds."):
        if not any(f".{name}" in module.name for name in OPTIONAL):
            for value in list(vars(importlib.import_module(module.name)).values()):
                if inspect.isfunction(value) or inspect.isclass(value):
                    yield value
                    yield from (getattr(member, "__func__", member) for member in vars(value).values())


ARITHMETIC = (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Name, ast.Attribute, ast.Call, ast.operator, ast.unaryop, ast.expr_context)


def is_chosen(node):
    """Return whether an expression is arithmetic, or a call of a function, with a number that its author wrote."""
    parts = list(ast.walk(node))
    types = {type(part.value) for part in parts if isinstance(part, ast.Constant)}
    return all(isinstance(part, ARITHMETIC) for part in parts) and bool(types & {int, float}) and str not in types


def test_every_number_of_a_module_has_a_docstring():
    missing = []
    for path, module in sources().items():
        body = module.tree.body
        for node, after in zip(body, [*body[1:], ast.Pass()]):
            # A call whose result is several names, as of the nodes and weights of a quadrature rule, is no number of its author.
            if isinstance(node, ast.AnnAssign) or (isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)):
                values = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Tuple):
                values = node.value.elts
            else:
                continue
            documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if not documented and any(map(is_chosen, filter(None, values))):
                missing.append(f"{path.name}:{node.lineno}")
    assert not missing


def test_no_passage_is_left_out():
    # The words of a passage that is not replaced may go on in the next line.
    left = {str(value) for value in documented() if re.search(r"^ *\{\w+(: [^{}]*)?\}$", value.__doc__ or "", re.MULTILINE)}
    assert left == set()


def test_a_list_of_exceptions_ends_before_other_text():
    wrong = set()
    for value in documented():
        text = inspect.cleandoc(value.__doc__ or "")
        for section in re.findall(r"^Raises\n-+\n(.*?)(?=\n\n\S[^\n]*\n-{3,}$|\Z)", text, re.MULTILINE | re.DOTALL):
            wrong |= {(str(value), line) for line in section.splitlines() if re.match(r"\S+ \S", line)}
    assert wrong == set()


def test_every_passage_is_said_more_than_once():
    text = "".join(path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py"))
    passages = re.findall(r"^\[(\w+)\]$", sources()[ROOT / "_base" / "docs.py"].text, re.MULTILINE)
    assert len(passages) > 10
    assert [name for name in passages if len(re.findall(rf"\{{{name}(: .*)?\}}\n", text)) < 2] == []


def test_a_passage_keeps_its_indentation_and_takes_its_words():
    @with_passages
    class Some:
        """A class.

        {population}
        """

        @classmethod
        def calibrate(cls):
            """Return it.

            {target}
            {raises: If it rains.}
            """

    assert "users : int\n    Number n of users" in inspect.getdoc(Some)
    assert inspect.getdoc(Some.calibrate).endswith("ValueError\n    If it rains.")


@pytest.mark.parametrize("folder", ["_base", "_losses", *sorted(f"_engines/{path.name}" for path in (ROOT / "_engines").iterdir()
                                                                if (path / "__init__.py").exists())])
def test_a_folder_says_what_each_of_its_modules_is(folder):
    modules = {path.stem for path in (ROOT / folder).glob("*.py")} - {"__init__"}
    text = ast.get_docstring(ast.parse((ROOT / folder / "__init__.py").read_text(encoding="utf-8")))
    assert set(re.findall(r"`([a-z]\w*)`", text)) - FOLDERS == modules


def test_modules_that_docstrings_name_exist():
    modules = {path.stem for path in ROOT.rglob("*.py")} | {path.name for path in ROOT.rglob("*") if path.is_dir()}
    kernels = {path.name.split(".")[0] for path in (ROOT / "_core").iterdir()}
    unknown = []
    for path in ROOT.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        # A path, or a name that was a module's before it lost its underscore.
        for name in re.findall(r"`((?:_?[a-z]\w*/)+_?[a-z]\w*)`", text):
            if name.split("/")[-1] not in modules | kernels:
                unknown.append((path.name, name))
        for name in re.findall(r"`_([a-z]\w*)`", text):
            if name in modules and f"_{name}" not in modules | kernels and not re.search(rf"\b_{name}\b(?!`)", text):
                unknown.append((path.name, f"_{name}"))
    assert not unknown
