"""The command ``shufflebounds audit``: what the scores or counts of an attack refute."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from shufflebounds import audit
from shufflebounds._base import __version__
from shufflebounds._base import validate as _validate
from shufflebounds.audit import Refuted
from shufflebounds.cli.output.files import empty_figure, save, text_of
from shufflebounds.cli.output.printing import as_json, as_table, format_bound, format_parameter
from shufflebounds.cli.parsers import Parser, add_forms, number
from shufflebounds.cli.release_files import number_in, rows_of
from shufflebounds.tradeoff import Tradeoff

__all__ = ["add_arguments", "run"]

COUNTS = ("hits", "trials", "false_hits", "false_trials")
GUESSES = ("right", "guesses", "canaries")


def add_arguments(parser: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    text = "a table with the columns score and in (1 on the dataset with the record, 0 on the other); - reads standard input"
    parser.add_argument("file", metavar="FILE.csv", nargs="?", help=text)
    for option, told in zip(COUNTS, ("hits among the runs with the record", "number of these runs", "hits among the other runs",
                                     "number of the other runs")):
        parser.add_argument(f"--{option.replace('_', '-')}", type=number, help=told)
    for option, told in zip(GUESSES, ("right guesses about the canaries of one run", "guesses, a number fixed before the run",
                                      "canaries, with those that were not guessed (default: guesses)")):
        parser.add_argument(f"--{option}", type=number, help=told)
    parser.add_argument("--delta", type=number, default=0.0, help="failure probability of the claims (default 0)")
    parser.add_argument("--eps", type=number, help="also print the p-value of the claim (eps, delta)")
    parser.add_argument("--confidence", type=number, default=0.95, help="probability that no true claim is refuted (default 0.95)")
    parser.add_argument("--out", metavar="FILE", help="picture to write, .png, .svg or .pdf")
    add_forms(parser, "print what the numbers rest on")


def _scores(file: str) -> tuple[list[float], list[float]]:
    """Return the scores of the rows with in = 1 and of those with in = 0."""
    by_side: tuple[list[float], list[float]] = [], []
    for row, place in rows_of("FILE.csv", file, text_of("FILE.csv", file), {"score", "in"}):
        side = (row.get("in") or "").strip()
        score = number_in(row, "score", ("inf", "-inf"), place)
        if score is None or (isinstance(score, float) and math.isnan(score)):
            raise ValueError(f"{place}: score must be a number, and is {row.get('score')!r}")
        if side not in ("0", "1"):
            raise ValueError(f"{place}: in must be 1 for a run with the record, 0 for one without, and is {side!r}")
        by_side[side == "0"].append(float(score))
    for name, scores in zip("10", by_side):
        if not scores:
            raise ValueError(f"FILE.csv: {file!r} has no row with in = {name}: both kinds of runs are needed")
    return by_side


def _refuted(arguments: argparse.Namespace) -> tuple[str, dict[str, Any], Refuted]:
    """Return the kind of attack, its parameters, and the claims that it refutes."""
    given = {name: value for name in (*COUNTS, *GUESSES) if (value := getattr(arguments, name)) is not None}
    counts, guesses = ({name: given[name] for name in names if name in given} for names in (COUNTS, GUESSES))
    if sum((arguments.file is not None, bool(counts), bool(guesses))) != 1:
        raise ValueError("give one of these: a file of scores; --hits, --trials, --false-hits and --false-trials; or --right and "
                         "--guesses")
    for some, needed in ((counts, COUNTS), (guesses, GUESSES[:2])):
        missing = [name for name in needed if name not in some]
        if some and missing:
            raise ValueError(f"{' and '.join('--' + name.replace('_', '-') for name in missing)} must be given, too")
    if counts:
        return "decisions", counts, audit.decisions(**counts, confidence=arguments.confidence)
    if guesses:
        return "one run", guesses, audit.one_run(**guesses, confidence=arguments.confidence)
    inside, outside = _scores(arguments.file)
    told = {"file": arguments.file, "inside": len(inside), "outside": len(outside)}
    return "scores", told, audit.scores(inside, outside, confidence=arguments.confidence)


def run(arguments: argparse.Namespace) -> None:
    """Print the claims that the attack refutes, and draw them."""
    if arguments.out is not None and Path(arguments.out).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"out={arguments.out!r} must end in .png, .svg or .pdf")
    delta = _validate.real("delta", arguments.delta, 0, 1)
    claim = None if arguments.eps is None else Tradeoff.approximate(_validate.real("eps", arguments.eps, 0), delta)
    kind, told, result = _refuted(arguments)
    told |= {"delta": delta, "eps": arguments.eps, "confidence": result.confidence}
    eps, mu = result.epsilon(delta), result.gdp_mu()
    log_p = None if claim is None else result.log_p_value(claim)
    if arguments.out is not None:
        _picture(result, claim, arguments.out)
    if arguments.json:
        refuted = {"epsilon": eps, "gdp_mu": mu, "log_p_value": log_p}
        print(as_json({"audit": kind, "parameters": told, "refuted": refuted, "sentence": str(result)[1:-1],
                       "method": result.method, "out": arguments.out, "version": __version__}))
        return
    print(str(result)[1:-1])
    rows = [("refuted at this delta", f"every eps below {format_bound(eps, 'lower')}" if eps else "no eps"),
            ("refuted, Gaussian", f"every mu below {format_bound(mu, 'lower')}" if mu else "no mu")]
    if claim is not None:
        rows.append(("p-value of the claim", format_bound(result.p_value(claim), "upper")))
    rows += [("attack", kind)]
    rows += [(name.replace("_", "-"), format_parameter(value)) for name, value in told.items() if value is not None]
    print(as_table(rows))
    if arguments.out is not None:
        print(f"wrote {arguments.out}")
    if arguments.explain:
        print(f"{result.method}; the error probability is shared by all answers; a guarantee never follows from an attack")


def _picture(refuted: Refuted, claim: Tradeoff | None, out: str) -> None:
    """Draw the region of refuted claims into the file."""
    figure = empty_figure(out)
    refuted.plot(claim, figure.add_subplot())
    save("--out", out, lambda: figure.savefig(out, dpi=150))
