"""The command ``shufflebounds personalized``: one user a line, each with a budget of their own."""

from __future__ import annotations

import argparse
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from shufflebounds._types import FloatArray
from shufflebounds.profile import PrivacyProfile
from shufflebounds.shuffle import PersonalizedClones

__all__ = ["RANDOMIZERS", "add_arguments", "personalized", "working"]

RANDOMIZERS = ("bits", "laplace", "rr")
PATIENCE = 2.0          # seconds before progress is shown


def add_arguments(command: argparse.ArgumentParser, number: Any) -> None:
    """Give the sub-command its arguments."""
    command.add_argument("file", metavar="BUDGETS.csv", help="a line a user: column eps, optionally count; or an .npy array of eps")
    command.add_argument("--delta", type=number, required=True, help="failure probability")
    command.add_argument("--randomizer", choices=RANDOMIZERS, default="bits",
                         help="bits: flipped bits; laplace: Laplace noise on [0, 1]; rr: k-ary randomized response (default bits)")
    command.add_argument("--categories", type=number, help="number of categories, for rr")
    command.add_argument("--target", type=number, metavar="ROW",
                         help="the guarantee of the user in this row (first: 1) instead of every user's")
    command.add_argument("--json", action="store_true", help="print JSON for tools")
    command.add_argument("--explain", action="store_true", help="print the theorem and the neighbour relation")


def _read(file: str) -> tuple[FloatArray, FloatArray | None]:
    """Return the budgets in a file, and how many users have each where it says so."""
    path = Path(file)
    try:
        if path.suffix == ".npy":
            array = np.load(path, allow_pickle=False)
            if array.ndim != 1 or array.dtype.kind not in "iuf":
                raise ValueError(f"BUDGETS.csv: {file!r} must hold a 1-D array of numbers, got {array.dtype}, shape {array.shape}")
            return array.astype(np.float64), None
        with path.open(encoding="utf-8-sig") as stream:
            header = stream.readline()
            body = stream.read()
    except (OSError, UnicodeDecodeError, EOFError) as problem:
        raise ValueError(f"BUDGETS.csv: {file!r} cannot be read: {problem}") from None
    names = [name.strip().strip('"').lower() for name in header.split(",")]
    if "eps" not in names:
        raise ValueError(f"BUDGETS.csv: {file!r} lacks the column eps: its first line is {header.strip()[:60]!r}")
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
    """Return the place and the text of the first line that holds no numbers."""
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


@contextmanager
def working(text: str) -> Iterator[None]:
    """Show that the work goes on, with tqdm where it is installed and stderr is a terminal, from two seconds on."""
    try:
        if not sys.stderr.isatty():
            raise ImportError
        from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        yield
        return
    done = threading.Event()

    def show() -> None:
        if done.wait(PATIENCE):
            return
        with tqdm(desc=text, unit="s", bar_format="{desc} [{elapsed}]", leave=False, file=sys.stderr) as bar:
            while not done.wait(0.2):
                bar.update(0)
                bar.refresh()

    thread = threading.Thread(target=show, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


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


def personalized(arguments: argparse.Namespace) -> tuple[PrivacyProfile, dict[str, Any], dict[str, dict[str, float]]]:
    """Answer the sub-command: the guarantee, what was asked, and eps from both sides."""
    if arguments.categories is not None and arguments.randomizer != "rr":
        raise ValueError(f"categories={arguments.categories!r} goes with --randomizer rr only")
    with working("reading and bounding"):
        eps, counts = _read(arguments.file)
        profile = _profile(arguments, eps, counts)
        answers = {"epsilon": {"upper": profile.epsilon(arguments.delta), "lower": profile.epsilon(arguments.delta, bound="lower")}}
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
    return profile, asked, answers
