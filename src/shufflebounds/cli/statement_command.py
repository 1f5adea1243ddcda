"""The command ``shufflebounds statement``: a guarantee in plain sentences, printed or written to a file."""

from __future__ import annotations

import argparse
from pathlib import Path

from shufflebounds.cli.output.answers import add_questions, asked_of
from shufflebounds.cli.output.files import save
from shufflebounds.cli.output.printing import as_json, report
from shufflebounds.cli.parsers import Parser

__all__ = ["add_arguments", "run"]

FORMS = {".txt": "text", ".md": "markdown", ".html": "html"}
"""The format of a statement by the suffix of its file."""


def add_arguments(parser: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    add_questions(parser, words, {"delta": "failure probability"}, _add_form)


def _add_form(command: Parser) -> None:
    text = "form of the statement (default: text, or by the ending of the file)"
    command.add_argument("--form", choices=tuple(FORMS.values()), help=text)
    command.add_argument("--out", metavar="FILE", help="write a file instead of printing: .txt, .md or .html")


def run(arguments: argparse.Namespace) -> None:
    """Print the statement, or write it to a file."""
    form = arguments.form or "text"
    if arguments.out is not None:
        ending = Path(arguments.out).suffix.lower()
        if ending not in FORMS:
            raise ValueError(f"out={arguments.out!r} must end in .txt, .md or .html")
        form = arguments.form or FORMS[ending]
    profile, parameters = asked_of(arguments)
    stated = profile.statement(delta=arguments.delta)
    if arguments.json:
        sides = {"upper": stated.epsilon, "lower": stated.epsilon_lower}
        told = report(arguments.mechanism or "composition", profile, {**parameters, "delta": arguments.delta}, {"epsilon": sides})
        print(as_json({**told, "sentences": list(stated.sentences)}))
        return
    text = {"text": lambda: f"{stated}\n", "markdown": stated.markdown, "html": stated.html}[form]()
    if arguments.out is None:
        print(text, end="")
        return
    save("--out", arguments.out, lambda: Path(arguments.out).write_text(text, encoding="utf-8"))
    print(f"wrote {arguments.out}")
