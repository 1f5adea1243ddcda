"""The command: which sub-command is asked for, and how a run of it ends."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import re
import sys
from collections.abc import Sequence
from typing import Any

from shufflebounds import __version__
from shufflebounds._validate import InfeasibleError
from shufflebounds.cli.files import UnwritableError
from shufflebounds.cli.parsers import Parser, add_choices
from shufflebounds.cli.progress import watched

__all__ = ["COMMANDS", "main", "parser_for"]

COMMANDS = {
    "epsilon": ("answers:Epsilon", "the least eps at a given delta"),
    "delta": ("answers:Delta", "the least delta at a given eps"),
    "calibrate": ("answers:Calibrate", "the cheapest parameters that meet a target"),
    "compare": ("compare", "histograms at equal central privacy: errors, messages and bits, the most accurate first"),
    "curve": ("curve", "the trade-off function or delta(eps), as a picture or a table"),
    "statement": ("statement", "the guarantee in plain sentences, as text, Markdown or a web page"),
    "personalized": ("personalized", "eps of users who each have a local budget of their own"),
    "users": ("users", "the fewest users who hide each other well enough"),
    "sgd": ("training:Sgd", "eps of DP-SGD with Poisson batches, or the least noise for a target"),
    "allocate": ("training:Allocate", "eps of DP-SGD where each record enters one batch of an epoch, drawn for itself"),
    "published": ("published", "what the papers print beside the exact number, with a verdict on each"),
    "deployments": ("deployments", "eps of every deployment in a CSV file"),
    "completion": ("completion", "a script that makes bash or zsh complete commands, mechanisms and options"),
}
"""Where each sub-command lives, with ``add_arguments(parser, words)`` and ``run(arguments)``, and what it is for."""

INTERRUPTED = 130


def _place(name: str) -> Any:
    """Return the module or class of a sub-command."""
    module, _, inner = COMMANDS[name][0].partition(":")
    found = importlib.import_module(f"shufflebounds.cli.{module}")
    return getattr(found, inner) if inner else found


def parser_for(words: list[str]) -> Parser:
    """Return the parser of the sub-command that the words begin with; of all of them, without arguments, where they do not."""
    parser = Parser(prog="shufflebounds", description="Exact privacy accounting for the shuffle model; natural logs.")
    parser.add_argument("--version", action="version", version=f"shufflebounds {__version__}")
    built = add_choices(parser, "COMMAND", COMMANDS, lambda name: COMMANDS[name][1], words)
    if words and words[0] in built:
        sub = built[words[0]]
        _place(words[0]).add_arguments(sub, words[1:])
        if not any(isinstance(action, argparse._SubParsersAction) for action in sub._actions):
            sub.set_defaults(_options=tuple(sub._option_string_actions))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the command's name; those of the process by default.

    Returns
    -------
    int
        Exit code: 0; 1 where a target cannot be met or the output cannot be written; 130 after Ctrl-C. Bad input ends the process
        with code 2 and one line on stderr.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    parser = parser_for(words)
    arguments = parser.parse_args(words)
    try:
        watched(lambda: _run(arguments))
    except BrokenPipeError:
        # the reader has seen enough; what is buffered must not be flushed into the closed pipe at exit
        _drop_output()
    except KeyboardInterrupt:
        sys.stderr.write("shufflebounds: interrupted\n")
        if argv is None:
            # a kernel may still run: nothing is waited for
            sys.stderr.flush()
            os._exit(INTERRUPTED)
        return INTERRUPTED
    except (InfeasibleError, UnwritableError) as problem:
        sys.stderr.write(f"shufflebounds: {problem}\n")
        return 1
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EBADF, errno.EIO, errno.EDQUOT):
            raise
        _drop_output()
        sys.stderr.write(f"shufflebounds: the output cannot be written: {problem.strerror}\n")
        return 1
    except ValueError as problem:
        text = str(problem)
        named = re.match(r"(\w+)[= ]", text)
        option = named[1].replace("_", "-") if named and hasattr(arguments, named[1]) else None
        parser.error(f"argument --{option}: {text}" if option else text)
    return 0


def _run(arguments: argparse.Namespace) -> None:
    _place(arguments.command).run(arguments)
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    sys.stdout.flush()


def _drop_output() -> None:
    """Send what is still buffered nowhere."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
