"""The tables of CPU times in the pages, drawn from benchmarks/results: no time is typed.

Those of kernels-*.json (benchmarks/kernel_costs.py --record), compositions-*.json (composition_costs.py), deployments-*.json
(deployment_costs.py), derived_answers-*.json (derived_answers.py) and questions-*.json (user_questions.py); of a table that stands
in several files the newest counts.
So do the rows of compare-*.json (compare.py --record), which were measured beside other programs.
"""

import json
import re
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"


KINDS = ("kernels", "compositions", "deployments", "derived_answers", "questions")

PEERS = {"tails": ("binomial", "r", "laws", "frozen", "poisson-binomial"), "releases": ("sampled", "compose"),
         "single": ("clones", "noise", "bits", "tradeoff")}
"""Tables of docs/numerics.md, each with the sections of benchmarks/compare.py whose rows it shows."""


def kept(kinds: tuple[str, ...] = KINDS) -> list[dict]:
    """Return the files that hold tables, the newest last."""
    paths = [path for kind in kinds for path in RESULTS.glob(f"{kind}-*.json")]
    return sorted((json.loads(path.read_text(encoding="utf-8")) for path in paths), key=lambda found: found["date"])


def tables() -> dict[str, str]:
    """Return every table by its name."""
    found = {name: table for file in kept() for name, table in file["tables"].items()}
    lines = {name: [table["header"], ["---"] * len(table["header"]), *table["rows"]] for name, table in found.items()}
    return {name: "".join("| " + " | ".join(map(_unbroken, line)) + " |\n" for line in table) for name, table in lines.items()}


def _unbroken(cell: str) -> str:
    """Return a cell of a table; a number and its unit stay on one line."""
    return re.sub(r"(?<=\d) (?=(?:ns|us|µs|ms|s)$)", "\N{NO-BREAK SPACE}", cell)


def duration(seconds: float) -> str:
    """Return seconds as text with three digits and a unit, which stay on one line."""
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.3g}\N{NO-BREAK SPACE}{unit}"
    return f"{seconds / 1e-9:.3g}\N{NO-BREAK SPACE}ns"


def beside_peers() -> dict[str, str]:
    """Return the tables of PEERS: every recorded row for which the other program was installed, also where it is faster."""
    newest = {name: (rows, file) for file in kept(("compare",)) for name, rows in file["rows"].items()}
    found = {}
    for table, sections in PEERS.items():
        header = ["task", "other program", "result here", "its result", "time here", "its time", "its time / ours"]
        lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
        for task, ours, theirs, seconds, peer_seconds, note in (row for name in sections for row in newest[name][0]):
            if peer_seconds:
                ratio = float(f"{peer_seconds / seconds:.2g}")
                times = duration(seconds), duration(peer_seconds), f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:g}"
                lines.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in (task, note, ours, theirs, *times)) + " |")
        dates = sorted({newest[name][1]["date"][:10] for name in sections})
        lines += ["", f"Recorded on {' and '.join(dates)}."]
        found[table] = "\n".join(lines) + "\n"
    return found


def pages() -> dict[str, str]:
    """Return every table by the name under which a page has it, and a line on when and on what they were measured."""
    last = kept(("kernels",))[-1]
    machine = last["machine"]
    return {
        **{f"cost-{name}": table for name, table in tables().items()},
        **{f"peers-{name}": table for name, table in beside_peers().items()},
        "cost-machine":
            f"Measured on {last['date'][:10]}, {machine['processor']}, {machine['cores']} cores with a load of "
            f"{machine['load']:.1f}, NumPy {last['versions']['numpy']}, SciPy {last['versions']['scipy']}.\n",
    }
