"""The command ``shufflebounds published``: published bounds in comparison with computed numbers."""

from __future__ import annotations

import argparse
from typing import Any

from shufflebounds import published
from shufflebounds.cli.output.printing import as_json, as_table
from shufflebounds.cli.parsers import Parser, add_forms

__all__ = ["HEADER", "add_arguments", "cells", "explanation", "rows", "run"]

HEADER = ("bound", "verdict", "printed", "computed", "ratio", "setting", "reference")


def add_arguments(command: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    command.add_argument("bound", nargs="*", metavar="BOUND", help="names, or beginnings of names; every bound by default")
    add_forms(command, "print the reasons, and the cases that refute false bounds")


def run(arguments: argparse.Namespace) -> None:
    """Print the table of published bounds."""
    table = rows(arguments.bound)
    if arguments.json:
        print(as_json(table))
        return
    print(as_table([HEADER, *map(cells, table)]))
    if arguments.explain:
        for row in table:
            print(f"{row['bound']}: {explanation(row)}")


def rows(beginnings: list[str]) -> list[dict[str, Any]]:
    """Return one dictionary for each bound whose name begins with one of the words, or for every bound if there are no words."""
    for word in beginnings:
        if not any(bound.__name__.startswith(word) for bound in published.bounds()):
            raise ValueError(f"BOUND={word!r} must begin one of {', '.join(bound.__name__ for bound in published.bounds())}")
    return [_row(bound) for bound in published.bounds() if bound.__name__.startswith(tuple(beginnings) or "")]


def _row(bound: published.PrintedBound[Any]) -> dict[str, Any]:
    compared = bound.comparison()
    row: dict[str, Any] = {
        "bound": bound.__name__,
        "reference": bound.reference,
        **compared._asdict(),
        "ratio": compared.ratio,
        "side": bound.side,
        "verdict": bound.verdict,
        "reason": bound.reason,
    }
    if bound.fault is not None:
        row["fault"] = bound.fault
    if bound.shown is not None:
        row["counterexample"] = bound.counterexample()._asdict()
    return row


def explanation(row: dict[str, Any]) -> str:
    """Return the reason of the verdict, and the counterexample if there is one."""
    case = row.get("counterexample")
    against = f"; {case['case']}: printed {case['printed']:.6g}, computed {case['truth']:.6g}" if case else ""
    return f"{row['reason']}{against}"


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    """Return the row as it is printed, under :data:`HEADER`."""
    return (
        row["bound"],
        row["verdict"],
        f"{row['printed']:.6g}",
        f"{row['exact']:.6g}",
        f"{row['ratio']:.4g}",
        f"{row['quantity']}: {row['setting']}",
        row["reference"],
    )
