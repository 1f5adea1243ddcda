"""The files and tables of the page calculator.md: those of ``shufflebounds ui``, and the C library as WebAssembly."""

import importlib.util
import json
import subprocess
import sys
from decimal import ROUND_CEILING, Context
from importlib import resources
from pathlib import Path

from shufflebounds.cli.browser.questions import answer, fields
from shufflebounds.shuffle import StrongerClones

CORE = Path(__file__).parents[1] / "src" / "_core"
FLAGS = ["--target=wasm32-wasi", "-mexec-model=reactor", "-Os", "-ffp-contract=off", "-fno-math-errno", "-w",
         "-Wl,--export-dynamic", "-Wl,--strip-all", "-Wl,-z,stack-size=1048576"]


def compile_library(folder: Path) -> Path | None:
    """Write ``shufflebounds.wasm`` and return its path, or None if there is no compiler."""
    if importlib.util.find_spec("ziglang") is None:
        return None
    path = folder / "shufflebounds.wasm"
    command = [sys.executable, "-m", "ziglang", "cc", *FLAGS, f"-I{CORE}", str(CORE / "shufflebounds.c"), "-o", str(path)]
    subprocess.run(command, check=True)
    path.chmod(0o644)
    return path


def write(folder: Path) -> None:
    """Write the files into the folder of static files of the site."""
    place = resources.files("shufflebounds.cli.browser")
    for name in ("calculator.js", "calculator.css"):
        (folder / name).write_bytes(place.joinpath(name).read_bytes())
    asked = {"question": "epsilon", "users": "1e6", "local_eps": "4", "delta": "1e-8"}
    told = {name: answer({**asked, "mechanism": name}) for name in ("clones", "stronger-clones")}
    known = {name: {key: one[key] for key in ("evidence", "neighbours", "rests")} for name, one in told.items()}
    (folder / "calculator_fields.json").write_text(json.dumps({**fields(), "told": known}), encoding="utf-8")
    compile_library(folder)


def tables() -> dict[str, str]:
    """Return the tables of the page, for a browser that runs no script: eps of numbers of users, users of targets."""
    budgets = (1.0, 2.0, 4.0, 6.0, 8.0)
    eps = {spaced(n): [rounded_up(StrongerClones(n, one).epsilon(1e-8)) for one in budgets] for n in (10**k for k in range(3, 10))}
    least = {f"{eps:g}": [spaced(StrongerClones.calibrate(eps=eps, delta=1e-8, local_eps=one).users) for one in budgets]
             for eps in (0.1, 0.25, 0.5, 1.0)}
    head = [f"$\\varepsilon_0 = {one:g}$" for one in budgets]

    def table(first: str, rows: dict[str, list[str]]) -> str:
        lines = [[first, *head], ["---"] * (1 + len(head)), *([name, *cells] for name, cells in rows.items())]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"

    return {"eps-of-users": table("users", eps), "users-of-eps": table("$\\varepsilon$", least)}


def spaced(count: int) -> str:
    """Return a number in groups of three digits."""
    return f"{count:,}".replace(",", " ")


def rounded_up(value: float) -> str:
    """Return three digits of an upper bound."""
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).create_decimal_from_float(value)):g}"
