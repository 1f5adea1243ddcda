"""The tables of measured errors, taken out of the headers of the kernels for docs/numerics.md: there is one copy of each number."""

import re
from pathlib import Path

CORE = Path(__file__).parents[1] / "src" / "_core"
KERNELS = (
    "special", "binomial", "gamma", "beta", "hypergeom", "compound", "contour", "lattice", "blocks", "bits", "tilted", "excess",
    "moments", "matchings", "tradeoff", "losses", "crossing", "gaussian",
)


def table(kernel: str) -> str:
    """Return what a kernel's header says of its measured error; LookupError where it says nothing."""
    header = re.match(r'"""(.*?)"""', (CORE / f"_{kernel}.pyx").read_text(encoding="utf-8"), re.S)
    lines = header[1].splitlines() if header else []
    starts = (place for word in ("Measured", "Error ") for place, line in enumerate(lines) if word in line)
    first = next(starts, None)
    if first is None:
        raise LookupError(f"the header of _{kernel}.pyx tells no measured error")
    rest = lines[first:]
    ends = (place for place, line in enumerate(rest) if place and re.match(r"(Cost|Source|Returned|Memory)\b", line))
    end = next(ends, len(rest))
    rest[0] = re.sub(r"^.*?(Measured|Error) *", r"\1 ", rest[0])
    # the lines of some tables hang below a heading, far to the right
    indents = [len(line) - len(line.lstrip()) for line in rest[1:end] if line.startswith(" ")]
    body = [line.removeprefix(" " * 10) if min(indents) >= 10 else line for line in rest[1:end]]
    return "\n".join([f"# _{kernel}.pyx", rest[0], *body]).rstrip()


def blocks() -> dict[str, str]:
    """Return every table as a block of text, by the name under which a page has it."""
    return {f"measured-{kernel}": f"```text\n{table(kernel)}\n```\n" for kernel in KERNELS}
