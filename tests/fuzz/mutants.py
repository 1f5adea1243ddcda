"""Mutation testing: changes of one token in modules that compute bounds, and whether the default tests notice each change.

    python -m tests.fuzz.mutants --count 20 --seed 7                        one to ten minutes each
    python -m tests.fuzz.mutants --count 5 --seed 7 --kernels               the kernel is compiled again for each change

For a kernel the test folders are those of the kernels and of the modules that use it, directly or through another kernel.

The changes are a random sample, the same for the same seed and sources. The tests run in a temporary copy of the repository, in
this order: the files in the test folder of the changed module that mention the module or one of its functions and classes, the
other files of that folder, the files elsewhere that mention one of them, and the comparison with recorded gaps. Code on which no
number depends is not changed (`without_number` states the rule). A change that no test notices either cannot change a number
(tests/fuzz/unnoticed.md lists such places) or shows that a test is missing. A change whose tests exceed the time limit is counted
separately: it may be a slow search or a slow machine.
"""

import argparse
import ast
import io
import keyword
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "_base", "_losses", "_engines", "answers", "certify", "composition", "mechanisms", "profile", "sampling", "selection",
    "shuffle", "tails", "tradeoff",
)
PAIRS = ("upper lower", "max min", "maximum minimum", "floor ceil", "+ -", "* /", "< <=", "> >=", "True False", "right left")
COPIED = shutil.ignore_patterns(".git", "build", "__pycache__", "_build", "node_modules")
CHANGED = tokenize.NAME, tokenize.OP, tokenize.NUMBER
TEXT_MODULES = "pictures", "plotting", "export", "statement", "saving"
TEXT_FUNCTIONS = "warn", "advise", "progress", "__repr__", "__str__"
EFFORTS = "effort", "seconds"
SWAPS = {old: new for pair in map(str.split, PAIRS) for old, new in (pair, pair[::-1])}


def without_number(node):
    """Whether no answer depends on this part of the syntax tree.

    These are the statements that raise an error, calls and definitions of functions that warn, show progress or return a text, and
    functions, variables and arguments whose name contains effort or seconds.
    """
    if isinstance(node, ast.Raise | ast.Assert):
        return True
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name.strip("_") in TEXT_FUNCTIONS
    if isinstance(node, ast.FunctionDef) and node.name in TEXT_FUNCTIONS:
        return True
    targets = getattr(node, "targets", [getattr(node, "target", None)]) if isinstance(node, ast.Assign | ast.AnnAssign) else []
    names = [getattr(target, "id", "") for target in targets]
    if isinstance(node, ast.FunctionDef):
        names = [node.name]
    elif isinstance(node, ast.keyword):
        names = [node.arg or ""]
    return any(word in name.lower() for word in EFFORTS for name in names)


def changes(text):
    """Return (line, column, old, new) for every change of one token.

    Strings, imports, signatures and the places that `without_number` names are left out.
    """
    found, before = [], None
    left_out = [((node.lineno, node.col_offset), (node.end_lineno, node.end_col_offset))
                for node in ast.walk(ast.parse(text)) if without_number(node)]
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        old, code = token.string, token.line.lstrip()
        # A plus, a star or a slash without a left operand (as in `f(*args)`) is no operation and is not changed; a minus is.
        operand = before is not None and (before.type in (tokenize.NAME, tokenize.NUMBER) or before.string in (")", "]"))
        operand = operand and not keyword.iskeyword(before.string)
        new = SWAPS.get(old) if operand or old not in ("+", "*", "/") else None
        if token.type == tokenize.NUMBER and old.replace(".", "", 1).replace("e-", "", 1).replace("e", "", 1).isdigit():
            # Half of 0 is 0, so 0 is replaced by 1.
            halved = f"({old} / 2)" if float(old) else "1.0"
            new = random.choice([str(int(old) + 1), halved]) if old.isdigit() else halved
        counted = not any(start <= token.start < end for start, end in left_out)
        if new and counted and token.type in CHANGED and not code.startswith(("from ", "import ", "def ", "@")):
            found.append((*token.start, old, new))
        before = token
    return found


def kernel_changes(text):
    """Return (line, column, old, new) for every change of one token of a Cython file, which is read line by line."""
    found, quoted = [], False
    for number, line in enumerate(text.splitlines(), 1):
        code = line.partition("#")[0]
        was_quoted = quoted
        quoted ^= code.count('"""') % 2 == 1
        outside = ("cimport", "from", "import", "cdef extern", "cpdef", "@")
        if was_quoted or quoted or '"' in code or code.lstrip().startswith(outside):
            continue
        # The first token of a line belongs to a declaration or to the target of an assignment, so it is not changed.
        for token in re.finditer(r"(?<=[\w\])] )(\+|-|\*|/|<|<=|>|>=)(?= [\w(])|\b(fmax|fmin|floor|ceil)\b(?=\()", code):
            old = token.group()
            new = {"fmax": "fmin", "fmin": "fmax"}.get(old) or SWAPS[old]
            found.append((number, token.start(), old, new))
    return found


def imported(text, package):
    """Return the private modules that a Python or Cython text imports from a package, such as `shufflebounds._core`."""
    package = re.escape(package)
    lists = re.findall(rf"^from {package} c?import (\([^)]*\)|[^\n]*)", text, re.MULTILINE)
    return set(re.findall(rf"{package}\.(_\w+)", text)) | {name for names in lists for name in re.findall(r"\b_\w+", names)}


def folder_of(path):
    """Return the folder of the tests of a module: the nearest of the folders above it that has the same name in tests/.

    `answers` is tested through the methods of profiles.
    """
    place = (ROOT / path).relative_to(ROOT / "src/shufflebounds").parent
    for above in (place, *place.parents):
        names = [part.removeprefix("_") for part in above.parts]
        if names and (ROOT / "tests" / Path(*names)).is_dir():
            return "/".join(["tests", *names])
    return "tests/profile" if place.parts == ("answers",) else "tests"


def tests_of(path):
    """Return the paths of the tests for a changed file: those of its folder, or for a kernel of the folders that use it."""
    if path.suffix != ".pyx":
        return (folder_of(path),)
    texts = {one.stem: one.read_text(encoding="utf-8") for one in (ROOT / "src/_core").glob("_*.pyx")}
    sources = {name: imported(text, "shufflebounds._core") for name, text in texts.items()}
    kernels, before = {path.stem}, set()
    while kernels != before:
        before = set(kernels)
        kernels |= {name for name, used in sources.items() if used & kernels}
    package = ROOT / "src/shufflebounds"
    users = [one for one in package.rglob("*.py") if imported(one.read_text(encoding="utf-8"), "shufflebounds._core") & kernels]
    return ("tests/core", *sorted({folder_of(one) for one in users} - {"tests"}))


def ordered(copy, path, names, elsewhere):
    """Return three lists of test files: those under `names` that mention the module or a name that it defines; the others under
    `names`; and those in `elsewhere` that mention it or belong to the recorded answers.
    """
    text = (copy / path).read_text()
    words = {path.stem.strip("_"), *re.findall(r"^(?:def|class|cpdef) (\w+)", text, re.MULTILINE)}

    def found(name):
        return sorted((copy / name).rglob("test_*.py")) if (copy / name).is_dir() else [copy / name]

    def mentions(file):
        return bool(words & set(re.findall(r"\w+", file.stem + " " + file.read_text())))

    own = [file for name in names for file in found(name)]
    far = [file for file in elsewhere if file not in own and (file.parent.name == "regression" or mentions(file))]
    parts = [file for file in own if mentions(file)], [file for file in own if not mentions(file)], far
    return [[str(file.relative_to(copy)) for file in several] for several in parts]


def verdict_of(copy, paths, limit):
    """Return whether the default tests in the copy noticed the change, or ran longer than the limit in seconds."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *paths]
    env = {**os.environ, "PYTHONPATH": f"{copy}/src"}
    try:
        done = subprocess.run(command, cwd=copy, env=env, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return "timed out"
    return "noticed" if done.returncode else "NOT NOTICED"


def passing_files(copy):
    """Return the test files that pass in the unchanged copy; some need the repository's history, for example."""
    command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-p", "no:cacheprovider", "tests"]
    report = subprocess.run(command, cwd=copy, env={**os.environ, "PYTHONPATH": f"{copy}/src"}, capture_output=True, text=True)
    failing = set(re.findall(r"^(?:FAILED|ERROR) ([^:\s]+)", report.stdout, re.MULTILINE))
    return [file for file in sorted((copy / "tests").rglob("test_*.py")) if str(file.relative_to(copy)) not in failing]


def builds(copy):
    """Return whether the changed kernel compiles in the copy."""
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    return subprocess.run(command, cwd=copy, capture_output=True).returncode == 0


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.mutants", description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=20, help="number of changes (default 20)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for the tests (default 600)")
    parser.add_argument("--only", default="", help="modules whose path contains this")
    parser.add_argument("--kernels", action="store_true", help="change .pyx files, and run the tests of their users")
    parser.add_argument("--tests", nargs="*", help="the only test files to run")
    options = parser.parse_args()
    random.seed(options.seed)
    if options.kernels:
        modules, found = sorted((ROOT / "src/_core").glob("_*.pyx")), kernel_changes
    else:
        source, found = ROOT / "src/shufflebounds", changes
        modules = [path for folder in FOLDERS for path in sorted((source / folder).rglob("*.py"))
                   if path.stem not in TEXT_MODULES]
    modules = [path for path in modules if options.only in str(path)]
    places = [(path.relative_to(ROOT), change) for path in modules for change in found(path.read_text())]
    seen = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        shutil.copytree(ROOT, copy, dirs_exist_ok=True, ignore=COPIED)
        elsewhere = [] if options.tests or options.kernels else passing_files(copy)
        passing = {}
        for path, (line, column, old, new) in random.sample(places, min(options.count, len(places))):
            names = tuple(options.tests or tests_of(path))
            for name in names:
                if name not in passing:
                    passing[name] = verdict_of(copy, [name], options.limit) == "NOT NOTICED"
                if not passing[name]:
                    raise SystemExit(f"{name} fails, or exceeds --limit, without any change")
            text = (copy / path).read_text()
            lines = text.splitlines(keepends=True)
            code = lines[line - 1]
            lines[line - 1] = code[:column] + new + code[column + len(old):]
            (copy / path).write_text("".join(lines))
            if options.kernels and not builds(copy):
                verdict = "no build"
            else:
                verdicts = (verdict_of(copy, files, options.limit) for files in ordered(copy, path, names, elsewhere) if files)
                verdict = next((found for found in verdicts if found != "NOT NOTICED"), "NOT NOTICED")
            (copy / path).write_text(text)
            seen[verdict] += 1
            print(f"{verdict:12}{path}:{line}:{column + 1}  {old} -> {new}  | {code.strip()}", flush=True)
    print(", ".join(f"{many} {verdict}" for verdict, many in sorted(seen.items())))


if __name__ == "__main__":
    main()
