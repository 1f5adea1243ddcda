"""The command ``shufflebounds personalized``: eps of users with different budgets, read from a file with one user per row."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from shufflebounds._base.types import FloatArray
from shufflebounds.cli.output.files import text_of
from shufflebounds.cli.output.printing import both, print_report, report
from shufflebounds.cli.parsers import Parser, add_forms, number
from shufflebounds.profile import PrivacyProfile
from shufflebounds.shuffle import PersonalizedClones

__all__ = ["RANDOMIZERS", "add_arguments", "run"]

RANDOMIZERS = ("bits", "laplace", "rr")


def add_arguments(command: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    text = "one user per row: column eps, optionally count (- reads standard input); or an .npy array of eps"
    command.add_argument("file", metavar="BUDGETS.csv", help=text)
    command.add_argument("--delta", type=number, required=True, help="failure probability")
    command.add_argument("--randomizer", choices=RANDOMIZERS, default="bits",
                         help="bits: flipped bits; laplace: Laplace noise on [0, 1]; rr: k-ary randomized response (default bits)")
    command.add_argument("--categories", type=number, help="number of categories, for rr")
    command.add_argument("--target", type=number, metavar="ROW",
                         help="the guarantee of the user in this row (first: 1) instead of every user's")
    add_forms(command)


def _read(file: str) -> tuple[FloatArray, FloatArray | None]:
    """Return the budgets in a file, and the number of users with each, or None if the file has no column for it."""
    path = Path(file)
    try:
        if path.suffix == ".npy":
            # The file is memory-mapped, so that a wrong size in its header does not allocate memory.
            array = np.load(path, mmap_mode="r", allow_pickle=False)
            if array.ndim != 1 or array.dtype.kind not in "iuf":
                raise ValueError(f"BUDGETS.csv: {file!r} must hold a 1-D array of numbers, got {array.dtype}, shape {array.shape}")
            return array.astype(np.float64), None
    except (OSError, ValueError, EOFError) as problem:
        if str(problem).startswith("BUDGETS.csv"):
            raise
        raise ValueError(f"BUDGETS.csv: {file!r} cannot be read: {problem}") from None
    header, _, body = text_of("BUDGETS.csv", file).partition("\n")
    names = [name.strip().strip('"').lower() for name in header.split(",")]
    if "eps" not in names:
        raise ValueError(f"BUDGETS.csv: {file!r} lacks the column eps: its first line is {header.strip()[:60]!r}")
    if any(names.count(name) > 1 for name in ("eps", "count", "weight")):
        raise ValueError(f"BUDGETS.csv: {file!r} has a column twice: its first line is {header.strip()[:60]!r}")
    counted = next((name for name in ("count", "weight") if name in names), None)
    columns = [names.index("eps")] + ([names.index(counted)] if counted else [])
    if not body.strip():
        raise ValueError(f"BUDGETS.csv: {file!r} holds no user")
    try:
        table = np.loadtxt(body.splitlines(), delimiter=",", usecols=columns, ndmin=2, comments="#", quotechar='"')
    except ValueError:
        raise ValueError(f"{file}:{_bad_line(body, columns)}") from None
    return table[:, 0], table[:, 1] if counted else None


def _bad_line(body: str, columns: list[int]) -> str:
    """Return the line number and the text of the first line that has no number in a column."""
    for place, line in enumerate(body.splitlines(), 2):
        text = line.partition("#")[0]
        if not text.strip():
            continue
        cells = text.split(",")
        for column in columns:
            try:
                float(cells[column].strip().strip('"'))
            except (IndexError, ValueError):
                return f"{place}: {line.strip()[:60]!r} has no number in column {column + 1}"
    return "2: the lines do not agree"


def _profile(arguments: argparse.Namespace, eps: FloatArray, counts: FloatArray | None) -> PrivacyProfile:
    target = arguments.target
    if target is not None:
        if not isinstance(target, int) or not 1 <= target <= eps.size:
            raise ValueError(f"target={target!r} must be a row in 1..{eps.size}")
        target -= 1
    if arguments.randomizer == "laplace":
        return PersonalizedClones.laplace(eps, target=target, counts=counts)
    categories = 2 if arguments.randomizer == "bits" else arguments.categories
    if categories is None:
        raise ValueError("categories must be given with --randomizer rr")
    return PersonalizedClones.randomized_response(eps, categories, target=target, counts=counts)


def run(arguments: argparse.Namespace) -> None:
    """Print both bounds of eps."""
    if arguments.categories is not None and arguments.randomizer != "rr":
        raise ValueError(f"categories={arguments.categories!r} goes with --randomizer rr only")
    eps, counts = _read(arguments.file)
    profile = _profile(arguments, eps, counts)
    answers = {"epsilon": both(profile.epsilon, arguments.delta)}
    asked: dict[str, Any] = {
        "file": arguments.file,
        "randomizer": arguments.randomizer,
        "users": int(eps.size if counts is None else counts.sum()),
        "smallest_eps": float(eps.min()),
        "largest_eps": float(eps.max()),
        "target": "every user" if arguments.target is None else arguments.target,
        "delta": arguments.delta,
    }
    if arguments.categories is not None:
        asked["categories"] = arguments.categories
    print_report(report("personalized-clones", profile, asked, answers), arguments)
