"""The tables of CPU times in the pages, drawn from benchmarks/results: no time is typed.

Those of kernels-*.json (benchmarks/kernel_costs.py --record), compositions-*.json (composition_costs.py), deployments-*.json
(deployment_costs.py) and derived_answers-*.json (derived_answers.py); of a table that stands in several files the newest counts.
"""

import json
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


KINDS = ("kernels", "compositions", "deployments", "derived_answers")


def kept(kinds: tuple[str, ...] = KINDS) -> list[dict]:
    """Return the files that hold tables, the newest last."""
    paths = [path for kind in kinds for path in RESULTS.glob(f"{kind}-*.json")]
    return sorted((json.loads(path.read_text(encoding="utf-8")) for path in paths), key=lambda found: found["date"])


def tables() -> dict[str, str]:
    """Return every table by its name."""
    found = {name: table for file in kept() for name, table in file["tables"].items()}
    lines = {name: [table["header"], ["---"] * len(table["header"]), *table["rows"]] for name, table in found.items()}
    return {name: "".join("| " + " | ".join(line) + " |\n" for line in table) for name, table in lines.items()}


def write(folder: Path) -> None:
    """Write every table for a page to include, and a line on when and on what they were measured."""
    for name, table in tables().items():
        (folder / f"cost-{name}.md").write_text(table, encoding="utf-8")
    last = kept(("kernels",))[-1]
    machine = last["machine"]
    (folder / "cost-machine.md").write_text(
        f"Measured on {last['date'][:10]}, {machine['processor']}, {machine['cores']} cores with a load of {machine['load']:.1f}, "
        f"NumPy {last['versions']['numpy']}, SciPy {last['versions']['scipy']}.\n", encoding="utf-8")
