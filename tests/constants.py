"""Counts the numeric constants of the package: names that a module binds to a number that its author chose.

Print the table, by subpackage, and the constants without a docstring::

    python -m tests.constants
"""

import ast
from collections import Counter
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "src" / "shufflebounds"


class Constant(NamedTuple):
    """A constant: the file, relative to the package, the line, the name, and whether a docstring follows."""

    file: str
    line: int
    name: str
    documented: bool


def chosen(node):
    """Return whether an expression is arithmetic, or a call of a function, with at least one number written in it."""
    if not all(isinstance(part, (ast.Constant, ast.UnaryOp, ast.BinOp, ast.Name, ast.Attribute, ast.Call, ast.operator, ast.unaryop,
                                 ast.expr_context)) for part in ast.walk(node)):
        return False
    values = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
    return any(type(value) in (int, float) for value in values) and not any(isinstance(value, str) for value in values)


def in_source(text, file="<text>"):
    """Return the constants of one module. If several names are bound to a tuple, each element is one constant."""
    found = []
    body = ast.parse(text).body
    for place, node in enumerate(body):
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or node.value is None:
            continue
        after = body[place + 1] if place + 1 < len(body) else None
        documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            names, values = [target], [node.value]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                names, values = target.elts, node.value.elts
            elif isinstance(node.value, ast.Tuple):
                # A name for a tuple of several numbers is one constant.
                values = node.value.elts[:1]
            found += [Constant(file, node.lineno, name.id, documented) for name, value in zip(names, values)
                      if isinstance(name, ast.Name) and chosen(value)]
    return found


def constants():
    """Return all constants of the package."""
    return [one for path in sorted(PACKAGE.rglob("*.py"))
            for one in in_source(path.read_text(encoding="utf-8"), str(path.relative_to(PACKAGE)))]


def table():
    """Return the number of constants of each subpackage, and of each module outside of subpackages, in decreasing order."""
    return Counter(one.file.split("/")[0] for one in constants()).most_common()


if __name__ == "__main__":
    for name, count in table():
        print(f"{name:20}{count:5}")
    print(f"{'total':20}{len(constants()):5}")
    print(*(f"{one.file}:{one.line} {one.name} has no docstring" for one in constants() if not one.documented), sep="\n")
