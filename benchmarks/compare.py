"""Times of shufflebounds and of programs that a user could install instead: ``python benchmarks/compare.py [section ...]``.

Every row is measured in this run, as medians of the CPU time of alternating calls of both programs, so that other load affects both
alike. ``--record`` writes the rows to results/, with date and machine. A section is a function that returns rows (task, our value,
value of the other program, seconds, seconds of the other program, note); the column of a program that is not installed is empty.
Sections are listed in SECTIONS: to add rows, add a function to a file of compared/ and name it there.

``python benchmarks/compare.py pages`` prints every table of the docs from results/, with its date.
"""

import json
import sys

import beside_today
from compared import arrays, clone_bounds, counts, of_r, randomizers, several_releases, start, tail_laws, tradeoff_curves
from keeping import RESULTS, keep
from measuring import table

SECTIONS = {
    "binomial": tail_laws.binomial,
    "r": of_r.binomial,
    "clones": clone_bounds.clones,
    "sampled": several_releases.sampled,
    "frozen": tail_laws.frozen,
    "noise": counts.noise,
    "laws": tail_laws.laws,
    "poisson-binomial": tail_laws.poisson_binomial,
    "bits": counts.bits,
    "tradeoff": tradeoff_curves.tradeoff,
    "compose": several_releases.compose,
    "randomizers": randomizers.randomizers,
    "worst": randomizers.worst,
    "arrays": arrays.arrays,
    "alone": arrays.alone,
    "start": start.start,
}


def pages():
    """Print every table of the docs from the newest recorded results (docs/measured_costs.py makes the same tables)."""
    print(*beside_today.newest().values(), sep="\n\n")
    kinds = ("kernels", "compositions", "deployments", "growth")
    files = [json.loads(path.read_text(encoding="utf-8")) for kind in kinds for path in RESULTS.glob(f"{kind}-*.json")]
    found = {}
    for file in sorted(files, key=lambda file: file["date"]):
        axes = file.get("growth", {}).items()
        rows = [[axis, name, f"{row['exponent']:.2f}"] for axis, held in axes for name, row in held.items()]
        tables = {"growth": {"header": ["size", "answer", "exponent"], "rows": rows}} if rows else file["tables"]
        found |= {name: (file["date"][:10], [table["header"], *table["rows"]]) for name, table in tables.items()}
    for name, (date, lines) in found.items():
        print(f"\n{name}, {date}", *(" | ".join(line) for line in lines), sep="\n")


def main(names):
    """Print the table of the named sections, or of all; with --record, write it to results/ as well."""
    if names == ["pages"]:
        return pages()
    record = "--record" in names
    names = [n for n in names if n != "--record"]
    unknown = [n for n in names if n not in SECTIONS]
    if unknown:
        sys.exit(f"no section {unknown[0]!r}: choose from {', '.join(SECTIONS)}")
    rows = {name: SECTIONS[name]() for name in names or SECTIONS}
    print(table([r for section in rows.values() for r in section]))
    if record:
        keep("compare", {"rows": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
