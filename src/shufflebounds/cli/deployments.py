"""The command ``shufflebounds deployments``: eps of every line of a table."""

from __future__ import annotations

import argparse
import csv
from typing import Any

from shufflebounds.cli.answers import released
from shufflebounds.cli.files import text_of
from shufflebounds.cli.parsers import add_forms, number
from shufflebounds.cli.printing import SIDES, as_json, as_table, both, outward, parameters_of, report, shown
from shufflebounds.cli.registry import MECHANISMS

__all__ = ["HELP", "add_arguments", "run"]

HELP = "eps of every deployment in a CSV file"


def add_arguments(parser: argparse.ArgumentParser, words: list[str]) -> None:
    """Give the sub-command its arguments."""
    text = "columns: name, mechanism, its parameters, times, delta; - reads standard input"
    parser.add_argument("file", metavar="FILE.csv", help=text)
    add_forms(parser, "print the theorem of each mechanism in use")


def _number(row: dict[str, str], option: str, words: tuple[str, ...], place: str) -> Any:
    """Return what one cell says, None where it is empty."""
    text = (row.get(option) or "").strip()
    if not text:
        return None
    try:
        return number(words, text)
    except argparse.ArgumentTypeError as problem:
        raise ValueError(f"{place}: {option}: {problem}") from None


def _deployment(row: dict[str, str], place: str) -> dict[str, Any]:
    """Answer one line of the file."""
    name = (row.get("mechanism") or "").strip()
    if name not in MECHANISMS:
        raise ValueError(f"{place}: mechanism={name!r} must be one of {', '.join(MECHANISMS)}")
    mechanism = MECHANISMS[name]
    given: dict[str, Any] = {}
    for option in [*mechanism.options, "delta"]:
        value = _number(row, option, mechanism.words.get(option, ()), place)
        if value is None and option not in mechanism.defaults:
            raise ValueError(f"{place}: {option} is missing, which {name} needs")
        given[option] = mechanism.defaults[option] if value is None else value
    delta = given.pop("delta")
    users = _number(row, "users", (), place) if mechanism.shuffles else None
    times = _number(row, "times", (), place)
    try:
        profile = released(mechanism, given, users, times)
        answers = {"epsilon": both(lambda side: profile.epsilon(delta, bound=side))}
    except ValueError as problem:
        raise ValueError(f"{place}: {problem}") from None
    extra = {key: value for key, value in (("users", users), ("times", times)) if value is not None}
    told = {**parameters_of(mechanism.make(given), mechanism), **extra, "delta": delta}
    return {"name": (row.get("name") or "").strip(), **report(name, profile, told, answers)}


def _rows(file: str) -> list[tuple[dict[str, str], str]]:
    """Return every row with its place in the file."""
    every = enumerate(text_of("FILE.csv", file).splitlines(), 1)
    lines = [(i, line) for i, line in every if line.strip() and not line.startswith("#")]
    reader = csv.DictReader((line for _, line in lines), skipinitialspace=True)
    names = list(reader.fieldnames or ())
    missing = {"name", "mechanism", "delta"} - set(names)
    if missing:
        raise ValueError(f"FILE.csv: {file!r} lacks the column {', '.join(sorted(missing))}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"FILE.csv: {file!r} has the column {', '.join(twice)} twice")
    rows: list[tuple[dict[str, str], str]] = []
    while True:
        try:
            row = next(reader, None)
        except csv.Error as problem:
            raise ValueError(f"{file}:{lines[min(reader.line_num, len(lines) - 1)][0]}: {problem}") from None
        if row is None:
            return rows
        rows.append((row, f"{file}:{lines[reader.line_num - 1][0]}"))


def run(arguments: argparse.Namespace) -> None:
    """Answer every line of the file in one table."""
    reports = [_deployment(row, place) for row, place in _rows(arguments.file)]
    if not reports:
        raise ValueError(f"FILE.csv: {arguments.file!r} holds no deployment")
    if arguments.json:
        print(as_json(reports))
        return
    rows = [("name", "mechanism", "parameters", "eps (upper)", "eps (lower)")]
    for told in reports:
        parameters = ", ".join(f"{key}={shown(value)}" for key, value in told["parameters"].items() if value is not None)
        rows.append((told["name"], told["mechanism"], parameters, *(outward(told["epsilon"][side], side) for side in SIDES)))
    print(as_table(rows))
    if arguments.explain:
        for name, told in {told["mechanism"]: told for told in reports}.items():
            print(f"{name}: {told['theorem']}; {told['neighbours']}")
