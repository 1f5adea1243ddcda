"""The command ``shufflebounds compare``: histograms at equal central privacy, with their errors and costs."""

from __future__ import annotations

import argparse
import math

from shufflebounds._base import __version__
from shufflebounds.cli.output.files import text_of
from shufflebounds.cli.output.printing import as_json, as_table
from shufflebounds.cli.parsers import Parser, add_forms, number
from shufflebounds.comparison import compare_at

__all__ = ["add_arguments", "run"]

HEADER = ("protocol", "any bin", "{data}", "one bin", "rmse", "messages", "bits", "local eps", "trusted")
NOTES = """\
any bin, one bin: the error in users that the worst bin, or one chosen beforehand, exceeds with probability 0.05
these errors hold for every dataset; "{data}" is the error of any bin for {which}
local eps: the guarantee against the shuffler itself; "plain text" if a message shows the user's value to whoever reads it
users: those who take part. Fewer users weaken the guarantee, except with dummy reports alone: --missing N covers N missing users"""


OPTIONAL = (("devices", 1, "largest number of messages of one person in a release; the number of users then counts messages"),
            ("colluding", 0, "number of other users who may reveal their messages"),
            ("missing", 0, "number of users whose messages may not arrive"))
"""Options of this command with their defaults and help texts. The options are parameters of `compare_at`."""


def add_arguments(command: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    for name, text in {"users": "number of users", "bins": "number of bins", "eps": "central privacy loss, in nats",
                       "delta": "failure probability"}.items():
        command.add_argument(f"--{name}", type=number, required=True, help=text)
    command.add_argument("--releases", type=number, default=1,
                         help="number of releases that meet the target together (default 1); the table shows one of them")
    for name, usual, text in OPTIONAL:
        command.add_argument(f"--{name}", type=number, default=usual, help=f"{text} (default {usual})")
    text = "the numbers of users in the bins, separated by commas or white space: a column shows the errors of these data"
    command.add_argument("--truth", metavar="FILE", help=f"{text} (- reads standard input)")
    add_forms(command, "print what the errors assume about the dataset, and which protocols could not meet the target")


def run(arguments: argparse.Namespace) -> None:
    """Print the table, the most accurate first."""
    truth = None if arguments.truth is None else _counts(arguments.truth)
    table = compare_at(users=arguments.users, bins=arguments.bins, eps=arguments.eps, delta=arguments.delta,
                       releases=arguments.releases, truth=truth, devices=arguments.devices, colluding=arguments.colluding,
                       missing=arguments.missing)
    if arguments.json:
        names = "users", "bins", "eps", "delta", "releases", "truth", *(option for option, *_ in OPTIONAL)
        given = {name: getattr(arguments, name) for name in names}
        print(as_json({"parameters": given, "rows": table.records(), "left_out": dict(table.left_out), "version": __version__}))
        return
    rows = [(row.name, *(f"{value:.5g}" for value in (row.error_any_bin, row.error_of_data, row.error_one_bin, row.rmse,
                                                       row.messages, row.bits)),
             f"{row.local_eps:.5g}" if row.local_eps < math.inf else "plain text", row.trusted) for row in table]
    data, which = ("even data", "users who are spread evenly over the bins") if truth is None else (
        "your data", f"the histogram in {arguments.truth}")
    print(as_table([tuple(name.format(data=data) for name in HEADER), *rows]))
    print(NOTES.format(data=data, which=which))
    if table.releases > 1:
        print(f"all columns are those of one release; {table.releases} releases meet the target together, and local eps adds up")
    for sentence in table.covers():
        print(sentence)
    if arguments.explain:
        print("rmse: root of the mean over all bins of the squared error, for every dataset (histogram: for the worst count in all "
              "bins); messages and bits of every user")
        for row in table:
            print(f"{row.name}: {row.profile!r}")
        for name, reason in table.left_out:
            print(f"{name}: {reason}")


def _counts(file: str) -> list[float]:
    """Return the numbers in a file, separated by commas or white space."""
    words = text_of("--truth", file).replace(",", " ").split()
    try:
        return [float(word) for word in words]
    except ValueError as problem:
        raise ValueError(f"argument --truth: {file!r} must hold the numbers of users in the bins, separated by commas or white "
                         f"space: {problem}") from None
