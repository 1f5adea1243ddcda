"""The command ``shufflebounds curve``: a trade-off function or delta(eps), written to a file as a picture or as numbers."""

from __future__ import annotations

import argparse
import csv
import io
from pathlib import Path
from typing import Any

import numpy as np

from shufflebounds._base import plotting
from shufflebounds._base.limits import MOST_ROWS
from shufflebounds._base.types import FloatArray
from shufflebounds.cli.output.answers import add_questions, asked_of
from shufflebounds.cli.output.files import empty_figure, save
from shufflebounds.cli.output.printing import as_json, explain, report
from shufflebounds.cli.parsers import Parser, number
from shufflebounds.profile import PrivacyProfile
from shufflebounds.report import pictures as _pictures

__all__ = ["KINDS", "add_arguments", "check_out", "columns", "run"]

KINDS = ("tradeoff", "profile")
SUFFIXES = (".png", ".csv", ".json")


def add_arguments(parser: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    add_questions(parser, words, {}, _add_file)


def _add_file(command: Parser) -> None:
    command.add_argument("--kind", choices=KINDS, default="tradeoff",
                         help="tradeoff: beta against alpha; profile: delta against eps (default tradeoff)")
    command.add_argument("--points", type=number, default=101, help="rows of a table (default 101)")
    command.add_argument("--out", required=True, metavar="FILE", help="file to write: .png, .csv or .json")


def check_out(out: str, points: Any) -> None:
    """Raise ValueError if the ending of the file or the number of rows is invalid. Called before anything is computed."""
    suffix = Path(out).suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"out={out!r} must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")
    if not isinstance(points, int) or not 10 <= points <= MOST_ROWS:
        raise ValueError(f"points={points!r} must be an integer in 10..{MOST_ROWS}")


def columns(profile: PrivacyProfile, kind: str, points: int) -> dict[str, FloatArray]:
    """Return the columns of the curve by name, with both bounds of every number."""
    if kind == "tradeoff":
        # Half of the values of alpha are below 0.1, on a logarithmic grid, because tests with a small alpha matter most.
        small = np.geomspace(1e-6, 0.1, points // 2)
        alpha = np.unique(np.concatenate([[0.0], small, np.linspace(0.1, 1, points - points // 2)[1:]]))
        lower, upper = (np.asarray(profile.tradeoff(bound=side).beta(alpha)) for side in ("lower", "upper"))
        return {"alpha": alpha, "beta_lower": lower, "beta_upper": upper}
    eps = _pictures.losses_shown((profile,), points=points)
    out = {"eps": eps}
    for name, answer in (("delta", profile.delta), ("log_delta", profile.log_delta)):
        for side in ("lower", "upper"):
            out[f"{name}_{side}"] = np.asarray(answer(eps, bound=side))
    return out


def _csv(table: dict[str, FloatArray]) -> str:
    """Return the table as CSV, every number in full."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(table)
    writer.writerows(zip(*(column.tolist() for column in table.values())))
    return stream.getvalue()


def _tradeoff(profile: PrivacyProfile, ax: Any) -> None:
    """Draw the trade-off function, or 1 - alpha - beta if the curve is too close to the diagonal."""
    curve = profile.tradeoff()
    # In a figure, a curve with an advantage below 0.05 cannot be distinguished from the diagonal.
    if curve.advantage() >= 0.05:
        curve.plot(ax)
        title = "Trade-off function"
    else:
        alpha = plotting.alphas()
        plotting.draw_gain(ax, alpha, np.maximum(1 - alpha - np.asarray(curve.beta(alpha)), 0.0), curve.advantage())
        title = "Trade-off function, below perfect privacy"
    ax.set_title(f"{title}\n{_pictures.name_of(profile)}", fontsize="medium")


def _picture(profile: PrivacyProfile, kind: str, out: str) -> None:
    """Draw the curve into the file."""
    figure = empty_figure(out)
    ax = figure.add_subplot()
    if kind == "tradeoff":
        _tradeoff(profile, ax)
    else:
        profile.plot(ax)
        ax.set_title(f"Privacy profile, upper and lower bound\n{_pictures.name_of(profile)}", fontsize="medium")
    save("--out", out, lambda: figure.savefig(out, dpi=150, metadata={"Software": None}))


def run(arguments: argparse.Namespace) -> None:
    """Write one mechanism's curve into a file."""
    check_out(arguments.out, arguments.points)
    profile, parameters = asked_of(arguments)
    told = report(arguments.mechanism or "composition", profile, parameters, {})
    if Path(arguments.out).suffix.lower() == ".png":
        _picture(profile, arguments.kind, arguments.out)
    else:
        _write_table(profile, arguments, told)
    if arguments.json:
        print(as_json({**told, "out": arguments.out}))
        return
    print(f"wrote {arguments.out}")
    explain(told, arguments)


def _write_table(profile: PrivacyProfile, arguments: argparse.Namespace, told: dict[str, Any]) -> None:
    """Write the columns of the curve as CSV or JSON, which the suffix of the file selects."""
    table = columns(profile, arguments.kind, arguments.points)
    text = _csv(table)
    if Path(arguments.out).suffix.lower() == ".json":
        curve = {"kind": arguments.kind, "columns": {name: column.tolist() for name, column in table.items()}}
        text = as_json({**told, **curve}) + "\n"
    save("--out", arguments.out, lambda: Path(arguments.out).write_text(text, encoding="utf-8"))
