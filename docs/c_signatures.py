"""The page of C signatures, read from cython_tails.pxd."""

import re
from pathlib import Path

DECLARATIONS = Path(__file__).parents[1] / "src" / "shufflebounds" / "cython_tails.pxd"


def sections() -> list[tuple[str, list[tuple[str, list[str]]]]]:
    """Return the sections of the file: a title, and groups of a comment with the signatures that it describes."""
    found: list[tuple[str, list[tuple[str, list[str]]]]] = []
    comment: list[str] = []
    pending = ""
    fresh = True
    for line in DECLARATIONS.read_text(encoding="utf-8").splitlines():
        title = re.fullmatch(r"# --- (.*)", line)
        if title:
            found.append((title[1], []))
            comment, fresh = [], True
        elif line.startswith("#"):
            comment.append(line[1:].strip())
            fresh = True
        elif not line.strip():
            if found and found[-1][1] and fresh is False:
                comment = []
        elif found:
            pending = f"{pending} {line.strip()}".strip()
            if pending.endswith("nogil"):
                signature = re.sub(r"^cdef | noexcept nogil$", "", pending)
                if fresh:
                    found[-1][1].append((" ".join(comment), []))
                found[-1][1][-1][1].append(signature)
                pending, fresh = "", False
    return found


def page() -> str:
    """Return the page as Markdown."""
    lines = []
    for title, groups in sections():
        name, _, rest = title.partition(": ")
        lines += [f"## {name[0].upper()}{name[1:]}", "", *([rest[0].upper() + rest[1:], ""] if rest else [])]
        for comment, signatures in groups:
            lines += ["```c", *(f"{signature};" for signature in signatures), "```", "", comment, ""]
    return "\n".join(lines)
