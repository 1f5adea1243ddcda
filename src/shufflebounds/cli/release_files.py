"""Read releases from a row of a table, or from a file."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Mapping
from typing import Any

from shufflebounds import composition
from shufflebounds._base import validate as _validate
from shufflebounds.cli.output.files import text_of
from shufflebounds.cli.parsers import number_or_word
from shufflebounds.cli.registry import MECHANISMS, released
from shufflebounds.profile import PrivacyProfile

__all__ = ["of_row", "releases_in", "rows_of"]


def rows_of(argument: str, file: str, text: str, needed: set[str]) -> list[tuple[dict[str, str], str]]:
    """Return every row of a CSV table with its file and line, such as ``file.csv:3``."""
    lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")]
    reader = csv.DictReader((line for _, line in lines), skipinitialspace=True)
    names = list(reader.fieldnames or ())
    missing = needed - set(names)
    if missing:
        raise ValueError(f"{argument}: {file!r} lacks the column {', '.join(sorted(missing))}; its first line must name the "
                         f"columns {', '.join(sorted(needed))} and those of the options, and is {','.join(names)[:60]!r}")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"{argument}: {file!r} has the column {', '.join(twice)} twice")
    rows: list[tuple[dict[str, str], str]] = []
    while True:
        try:
            row = next(reader, None)
        except csv.Error as problem:
            raise ValueError(f"{file}:{lines[min(reader.line_num, len(lines) - 1)][0]}: {problem}") from None
        if row is None:
            return rows
        rows.append((row, f"{file}:{lines[reader.line_num - 1][0]}"))


def number_in(row: dict[str, str], option: str, words: tuple[str, ...], place: str) -> Any:
    """Return the number or word in one cell, or None if the cell is empty."""
    text = (row.get(option) or "").strip()
    if not text:
        return None
    try:
        return number_or_word(words, text)
    except argparse.ArgumentTypeError as problem:
        raise ValueError(f"{place}: {option}: {problem}") from None


def of_row(row: dict[str, str], place: str, more: tuple[str, ...] = ()) -> tuple[str, PrivacyProfile, dict[str, Any]]:
    """Return the name of the mechanism, the profile and the parameters of one row.

    `more` has the names of further columns, which must contain a number.
    """
    name = (row.get("mechanism") or "").strip()
    if name not in MECHANISMS:
        raise ValueError(f"{place}: mechanism={name!r} must be one of {', '.join(MECHANISMS)}")
    mechanism = MECHANISMS[name]
    given: dict[str, Any] = {}
    for option in [*mechanism.options, *more]:
        value = number_in(row, option, mechanism.words.get(option, ()), place)
        if value is None and option not in mechanism.defaults:
            raise ValueError(f"{place}: {option} is missing, which {name} needs")
        given[option] = mechanism.defaults[option] if value is None else value
    besides = {option: given.pop(option) for option in more}
    users = number_in(row, "users", (), place) if mechanism.shuffles else None
    times = number_in(row, "times", (), place)
    try:
        profile, told = released(mechanism, given, users, times)
    except ValueError as problem:
        raise ValueError(f"{place}: {problem}") from None
    return name, profile, {**told, **besides}


def releases_in(argument: str, file: str) -> list[tuple[PrivacyProfile, int]]:
    """Return the releases of a file: a table of mechanisms, saved profiles, or a ledger."""
    text = text_of(argument, file)
    if text.lstrip()[:1] in ("{", "["):
        try:
            out = _saved(json.loads(text))
        except RecursionError:
            raise ValueError(f"{argument}: {file!r}: the data is nested too deeply") from None
        except ValueError as problem:
            raise ValueError(f"{argument}: {file!r}: {problem}") from None
    else:
        out = [(of_row(row, place)[1], 1) for row, place in rows_of(argument, file, text, {"mechanism"})]
    if not out:
        raise ValueError(f"{argument}: {file!r} holds no release")
    return out


def _saved(data: Any) -> list[tuple[PrivacyProfile, int]]:
    """Return the releases of JSON: a ledger, a profile, {"profile": ..., "times": n}, or a list of those."""
    if isinstance(data, list):
        return [release for part in data for release in _saved(part)]
    if isinstance(data, Mapping) and "entries" in data:
        return [(profile, times) for profile, times, _ in composition.Ledger.from_dict(data).entries]
    if isinstance(data, Mapping) and isinstance(data.get("profile"), Mapping):
        return [(composition.from_dict(data["profile"]), _validate.integer("times", data.get("times", 1), 1))]
    return [(composition.from_dict(data), 1)]
