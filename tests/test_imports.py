"""The modules of the package import each other in one direction, and only at their beginning."""

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import shufflebounds
from shufflebounds._late import LATE, late

ROOT = Path(shufflebounds.__file__).parent
ALLOWED_WITHIN_FUNCTIONS = {"shufflebounds.__main__"}
"""Modules that may import within functions: `main` sets its handler of Ctrl-C before it imports the rest of the package."""


def modules():
    """Return the syntax tree of every Python module of the package by its dotted name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = ["shufflebounds", *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def is_for_types(node):
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(nodes, names):
    """Return the modules of the package that these statements import at run time, without imports for type checkers."""
    found = set()
    for node in nodes:
        if is_for_types(node):
            found |= imports(node.orelse, names)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name in names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "shufflebounds":
            # `from package import name` imports the module of that name if there is one, and otherwise the package.
            inner = {f"{node.module}.{alias.name}" for alias in node.names} & names
            found |= inner or {node.module}
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            found |= imports(ast.iter_child_nodes(node), names)
    return found


def within_functions(tree, names):
    """Return the line of every import of the package within a function."""
    return [
        inner.lineno
        for function in ast.walk(tree) if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for inner in ast.walk(function) if isinstance(inner, ast.Import | ast.ImportFrom) and imports([inner], names)
    ]


def test_no_module_imports_itself_through_others():
    trees = modules()
    graph = {name: imports(tree.body, set(trees)) - {name} for name, tree in trees.items()}
    assert sum(map(len, graph.values())) > 500
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        raise AssertionError(f"these modules import each other: {' -> '.join(problem.args[1])}") from None


def test_no_function_imports_the_package():
    trees = modules()
    found = {name: lines for name, tree in trees.items() if (lines := within_functions(tree, set(trees)))}
    assert set(found) <= ALLOWED_WITHIN_FUNCTIONS, found


def test_the_two_checks_can_fail():
    names = {"shufflebounds.a", "shufflebounds.b"}
    assert imports(ast.parse("from shufflebounds import a\nif TYPE_CHECKING:\n    import shufflebounds.b").body, names) == {
        "shufflebounds.a"
    }
    assert within_functions(ast.parse("def f():\n    from shufflebounds.b import g"), names) == [2]


def test_every_late_name_exists():
    for name in LATE:
        assert late(name) is not None
