"""The tables of published bounds: every bound beside the computed number, and the case that refutes each false one."""

from shufflebounds.cli.published_command import rows

KINDS = {"privacy": "privacy", "accuracy": "error, tail", "misprint": "misprint", "extraction": "extraction?"}
"""How the table names the kinds of false bounds, `PrintedBound.fault`."""


def _markdown(header: list[str], lines: list[tuple[str, ...]]) -> str:
    """Return a table; a bar inside a cell would end it."""
    cells = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in cells) + "\n"


def tables() -> dict[str, str]:
    """Return both tables, computed in a few seconds."""
    found = rows([])
    # The first column has words and wraps, so that the numbers stay visible.
    every = [
        (f"`{row['bound']}` {row['reference']}; {row['quantity']}: {row['setting']}", row["verdict"],
         *(f"{row[number]:.3g}".replace("-", "\N{NON-BREAKING HYPHEN}") for number in ("printed", "exact", "ratio")))
        for row in found
    ]
    refuted = [
        (f"`{row['bound']}` {row['counterexample']['case']}. *Why:* {row['reason']}", KINDS[row["fault"]],
         f"{row['counterexample']['printed']:.4g}", f"{row['counterexample']['truth']:.4g}")
        for row in found if "counterexample" in row
    ]
    return {
        "errata-every": _markdown(["bound, where it is published, setting", "status", "published", "computed", "ratio"], every),
        "errata-false": _markdown(["bound, case, and why", "kind", "published", "computed"], refuted),
    }
