"""Every console block of the pages is run: the words must be those of the output, the numbers equal to a relative `CLOSE`."""

import re
import shlex
from pathlib import Path

import pytest

from shufflebounds.cli import main

ROOT = Path(__file__).parents[2]
CLOSE = 2e-6
"""Twice the tolerance of the searches for noise: roundings differ between processors, and with them the end of a search."""

NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d_]*\.?\d*(?:e[-+]?\d+)?(?![\w])")


def blocks():
    """Yield the page, the command and the output that the page shows; commands without shown output are tested elsewhere."""
    for page in sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]):
        if "_build" in page.parts:
            continue
        for block in re.findall(r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M):
            for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
                command, _, output = part.partition("\n")
                while command.endswith("\\"):
                    more, _, output = output.partition("\n")
                    command = command[:-1] + more.lstrip("> ")
                if command.startswith("shufflebounds ") and output.strip() and "|" not in command:
                    words = shlex.split(command, comments=True)[1:]
                    yield pytest.param(words, output, id=f"{page.relative_to(ROOT)}: {command[14:70]}")


def parts(text):
    """Return the words between numbers, with white space folded, and the numbers."""
    numbers = [float(found.replace("_", "")) for found in NUMBER.findall(text)]
    return [" ".join(piece.split()) for piece in NUMBER.split(text)], numbers


@pytest.mark.slow
@pytest.mark.parametrize(("words", "shown"), list(blocks()))
def test_prints_what_the_page_shows(words, shown, capsys, monkeypatch, tmp_path):
    # Files that a block writes go to a temporary folder.
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    try:
        status = main(words)
    except SystemExit as stop:
        status = stop.code
    out = capsys.readouterr()
    printed = out.out + out.err
    assert status in (0, None) or out.err
    pieces = re.split(r"^\.\.\.\n", shown, flags=re.M)
    for piece in pieces:
        words_shown, numbers_shown = parts(piece)
        lines = piece.strip("\n").split("\n")
        if len(pieces) == 1:
            words_printed, numbers_printed = parts(printed)
        else:
            # A page may omit lines of the output; the lines that it shows must occur in the output.
            first = parts(lines[0])[0]
            every = printed.split("\n")
            start = next(i for i, line in enumerate(every) if parts(line)[0] == first)
            words_printed, numbers_printed = parts("\n".join(every[start : start + len(lines)]))
        assert words_shown == words_printed
        assert numbers_shown == pytest.approx(numbers_printed, rel=CLOSE)
