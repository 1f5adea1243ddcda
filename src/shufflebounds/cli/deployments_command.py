"""The command ``shufflebounds deployments``: eps of every row of a table."""

from __future__ import annotations

import argparse
from typing import Any

from shufflebounds.cli.output.files import text_of
from shufflebounds.cli.output.printing import SIDES, as_json, as_table, both, format_bound, format_parameter, report, rests
from shufflebounds.cli.parsers import Parser, add_forms
from shufflebounds.cli.release_files import of_row, rows_of

__all__ = ["add_arguments", "run"]


def add_arguments(parser: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    text = "columns: name, mechanism, its parameters, times, delta; - reads standard input"
    parser.add_argument("file", metavar="FILE.csv", help=text)
    add_forms(parser, "print what the bounds of each mechanism in use rest on")


def _deployment(row: dict[str, str], place: str, explained: bool) -> dict[str, Any]:
    """Return the report of one row."""
    name, profile, told = of_row(row, place, ("delta",))
    try:
        answers = {"epsilon": both(profile.epsilon, told["delta"])}
    except ValueError as problem:
        raise ValueError(f"{place}: {problem}") from None
    return {"name": (row.get("name") or "").strip(), **report(name, profile, told, answers, explained=explained)}


def run(arguments: argparse.Namespace) -> None:
    """Print a table with eps of every row of the file."""
    text = text_of("FILE.csv", arguments.file)
    explained = arguments.json or arguments.explain
    rows = rows_of("FILE.csv", arguments.file, text, {"name", "mechanism", "delta"})
    reports = [_deployment(row, place, explained) for row, place in rows]
    if not reports:
        raise ValueError(f"FILE.csv: {arguments.file!r} holds no deployment")
    if arguments.json:
        print(as_json(reports))
        return
    lines = [("name", "mechanism", "parameters", "eps (upper)", "eps (lower)")]
    for told in reports:
        parameters = ", ".join(f"{key}={format_parameter(value)}" for key, value in told["parameters"].items() if value is not None)
        lines.append((told["name"], told["mechanism"], parameters, *(format_bound(told["epsilon"][side], side) for side in SIDES)))
    print(as_table(lines))
    if arguments.explain:
        for name, told in {told["mechanism"]: told for told in reports}.items():
            print("\n".join([f"{name}: {told['theorem']}; {told['neighbours']}", *rests(told)]))
