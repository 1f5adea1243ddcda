"""Which modules of the package import which: at the top of the file, for type checkers only, in a function, or named in a string.

`LAYERS` lists the layers. A module imports only from its own layer and the layers below, and no two modules import each other. The
present exceptions are counted, and a count may only decrease: if you remove an exception, lower the number here.
"""

import ast
import functools
import re
from collections import defaultdict
from graphlib import CycleError, TopologicalSorter

from tests.package_source import ROOT, Module, sources

WITHIN_FUNCTIONS = {
    ("shufflebounds.profile.export", "shufflebounds.report.pictures"): "plot, and the table that a notebook shows",
    ("shufflebounds.profile.export", "shufflebounds.report.statement"): "statement",
    ("shufflebounds.profile.export", "shufflebounds.certify"): "certify",
    ("shufflebounds.profile.product", "shufflebounds._engines.compose.released"): "one release needs no engine of compositions",
    ("shufflebounds.mechanisms._base", "shufflebounds.sampling.poisson"): "LocalRandomizer.subsampled",
    ("shufflebounds.mechanisms._base", "shufflebounds.shuffle.shuffled"): "LocalRandomizer.shuffled, a third of the import of a "
                                                                          "sampled mechanism",
}
"""The imports within functions, each with what needs it. An import at the top would be circular, or slow the start. The command
imports what one result needs, because its start is most of its run time, and `main` sets its handler of Ctrl-C before it imports
the rest."""

LAYERS = [
    {"_core"}, {"_base"}, {"tails"}, {"tradeoff"}, {"_losses"}, {"_engines"}, {"answers"},
    {"certify", "report"}, {"profile"}, {"mechanisms", "shuffle", "sampling", "composition", "selection", "histograms"},
    {"audit", "published", "comparison", "sweeps", "interop"}, {"cli"}, {"shufflebounds", "__main__"},
]
"""The layers, lowest first, each a set of folders. A module may import from its own layer and from the layers below."""

UPWARD = {"top": 0, "types": 1, "string": 1, "function": 0}
"""Number of imports from a layer above, by kind."""

TYPES = 62
"""Number of imports for type checkers alone. They hide circles from the interpreter, and not from a reader. A new public class adds
one."""

STRINGS = 29
"""Number of modules that another module names in a string, to import them when they are needed."""


@functools.cache
def modules():
    """Return every Python module of the package by its dotted name."""
    found = {}
    for path, module in sources().items():
        parts = ["shufflebounds", *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = module
    return found


def imported(node, names):
    """Return the modules that one statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & names
    if isinstance(node, ast.ImportFrom) and node.module:
        # `from package import name` imports the module of that name if there is one, and otherwise the package.
        inner = [f"{node.module}.{alias.name}" for alias in node.names]
        return {name if name in names else node.module for name in inner} & names
    return set()


def by_statements(node, names, kind="top"):
    """Yield (kind, module) for every import in the statements within a syntax tree: "top", "types" or "function"."""
    for block in ("body", "orelse", "finalbody", "handlers", "cases"):
        for inner in getattr(node, block, ()):
            inside = kind
            if isinstance(inner, ast.If) and any(getattr(part, "id", "") == "TYPE_CHECKING" for part in ast.walk(inner.test)):
                inside = "types"
            elif isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and kind == "top":
                inside = "function"
            for name in imported(inner, names):
                yield inside, name
            yield from by_statements(inner, names, inside)


def imports(module, names):
    """Yield (kind, module) for every import of the package in a module; the kind is "string" if a string names the other one."""
    yield from by_statements(module.tree, names)
    for name in re.findall(r"""["']([\w.]+)["']""", module.text):
        if "." in name and name in names:
            yield "string", name


@functools.cache
def edges():
    """Return {kind: set of (importing module, imported module)}."""
    found, names = defaultdict(set), set(modules())
    for name, module in modules().items():
        for kind, other in imports(module, names):
            if other != name:
                found[kind].add((name, other))
    return found


def layer(name):
    """Return the index of the layer of a module in `LAYERS`; a folder that is not listed fails here."""
    parts = name.split(".")
    folder = parts[min(1, len(parts) - 1)]
    return next(i for i, folders in enumerate(LAYERS) if folder in folders)


def circles(pairs):
    """Return the groups of modules that import each other, directly or through others, as sorted lists."""
    below = defaultdict(set)
    for name, other in pairs:
        below[name].add(other)

    def reached(name):
        seen, waiting = set(), [name]
        while waiting:
            fresh = below[waiting.pop()] - seen
            seen |= fresh
            waiting += fresh
        return seen

    reach = {name: reached(name) for name in list(below)}
    groups = {frozenset(other for other in seen if name in reach.get(other, ())) for name, seen in reach.items() if name in seen}
    return sorted(map(sorted, groups), key=len)


def test_no_module_imports_itself_through_others():
    graph = defaultdict(set)
    for name, other in edges()["top"]:
        graph[name].add(other)
    assert sum(map(len, graph.values())) > 500
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as problem:
        raise AssertionError(f"these modules import each other: {' -> '.join(problem.args[1])}") from None


def test_functions_import_what_is_listed():
    free = ("shufflebounds.cli.", "shufflebounds.__main__")
    assert {pair for pair in edges()["function"] if not pair[0].startswith(free)} == set(WITHIN_FUNCTIONS)
    assert len(WITHIN_FUNCTIONS) <= 7


def test_imports_from_above_only_become_fewer():
    upward = {kind: sorted(f"{name} -> {other}" for name, other in edges()[kind] if layer(name) < layer(other)) for kind in UPWARD}
    assert all(len(found) <= UPWARD[kind] for kind, found in upward.items()), upward


def test_imports_for_types_and_names_of_modules_in_strings_only_become_fewer():
    assert len(edges()["types"]) <= TYPES
    assert len(edges()["string"]) <= STRINGS


def test_no_modules_need_each_other_if_every_kind_of_import_counts():
    assert circles(set().union(*edges().values())) == []


def test_the_checks_can_fail():
    names = {"shufflebounds.a", "shufflebounds.b", "shufflebounds.b.c"}
    text = "\n".join([
        "from shufflebounds import a", "if TYPE_CHECKING:", "    import shufflebounds.b", "def f():",
        "    from shufflebounds.b import g, c", "LATE = {'g': 'shufflebounds.b'}",
    ])
    assert set(imports(Module(text, ast.parse(text)), names)) == {
        ("top", "shufflebounds.a"), ("types", "shufflebounds.b"), ("function", "shufflebounds.b"),
        ("function", "shufflebounds.b.c"), ("string", "shufflebounds.b"),
    }
    assert circles({("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")}) == [["a", "b", "c"]]
    assert layer("shufflebounds._base.types") < layer("shufflebounds.profile.profile") < layer("shufflebounds.cli")


def test_no_module_imports_from_its_own_package():
    """Threads that import at once would wait for each other: one for the package, the other for the module.

    A module names the module that it needs, so that it does not wait until its package is complete.
    """
    found = []
    for path, module in sources().items():
        place = ["shufflebounds", *path.relative_to(ROOT).with_suffix("").parts]
        package = place[:-1]
        if path.name != "__init__.py" and len(package) > 1 and package != ["shufflebounds", "_base"]:
            found += [(path.name, node.lineno) for node in module.tree.body
                      if isinstance(node, ast.ImportFrom) and node.module == ".".join(package)]
    assert not found
