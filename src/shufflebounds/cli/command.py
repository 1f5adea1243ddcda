"""The command line: chooses the sub-command, runs it, and turns exceptions into exit codes."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import re
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from shufflebounds._base import __version__
from shufflebounds._base.types import InconsistentBoundsError
from shufflebounds._base.validate import InfeasibleError
from shufflebounds.cli.output.files import UnwritableError
from shufflebounds.cli.output.interruptible import log_to_stderr, watched
from shufflebounds.cli.parsers import Parser, add_choices

__all__ = ["COMMANDS", "main", "parser_for"]

COMMANDS = {
    "epsilon": ("output.answers:EPSILON", "the smallest eps at a given delta"),
    "delta": ("output.answers:DELTA", "the smallest delta at a given eps"),
    "calibrate": ("output.answers:Calibrate", "the parameters with the smallest error that meet a target"),
    "compare": ("compare_command", "histogram protocols at equal central privacy: errors, messages and bits"),
    "curve": ("curve_command", "the trade-off function or delta(eps), as a picture or a table"),
    "statement": ("statement_command", "the guarantee in plain sentences, as text, Markdown or a web page"),
    "personalized": ("personalized_command", "eps of users with different local budgets"),
    "users": ("users_command", "the least number of users that meets a target"),
    "noise": ("noise", "the least noise, or the largest budget, of one or several releases that meet a target"),
    "sgd": ("training_command:Sgd", "eps of DP-SGD with Poisson subsampling or shuffled batches, or the least noise for a target"),
    "allocate": ("training_command:Allocate",
                 "eps of DP-SGD with random allocation, each record in one batch of an epoch, or the noise"),
    "published": ("published_command", "published bounds beside the computed number, with their status"),
    "audit": ("audit_command", "what the scores or counts of an attack refute, at a stated confidence"),
    "deployments": ("deployments_command", "eps of every deployment in a CSV file"),
    "ui": ("browser.server", "a calculator in the browser, served by this machine to itself"),
    "config": ("config", "flags of a C compiler for the installed C library"),
    "completion": ("completion_command", "a script that makes bash or zsh complete commands, mechanisms and options"),
}
"""For each sub-command: the module, class or object with ``add_arguments(parser, words)`` and ``run(arguments)``; its help text."""


def _place(name: str) -> Any:
    """Return the module, class or object of a sub-command."""
    module, _, inner = COMMANDS[name][0].partition(":")
    source = importlib.import_module(f"shufflebounds.cli.{module}")
    return getattr(source, inner) if inner else source


def parser_for(words: list[str]) -> Parser:
    """Return the parser. If `words` begins with a sub-command, only its arguments are added."""
    parser = Parser(prog="shufflebounds", description="Upper and lower privacy bounds for the shuffle model; natural logs.")
    parser.add_argument("--version", action="version", version=f"shufflebounds {__version__}")
    built = add_choices(parser, "COMMAND", COMMANDS, lambda name: COMMANDS[name][1], words)
    if words and words[0] in built:
        _place(words[0]).add_arguments(built[words[0]], words[1:])
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
        Exit code: 0; 1 if a target cannot be met, two bounds contradict each other or the output cannot be written; 130 after
        Ctrl-C. Bad input ends the process with code 2 and one line on stderr.
    """
    if argv is None:
        warnings.showwarning = _warning
        log_to_stderr()
    words = list(sys.argv[1:] if argv is None else argv)
    parser = parser_for(words)
    arguments = parser.parse_args(words)
    try:
        if arguments.command == "ui":
            # This sub-command runs until Ctrl-C, so it prints no elapsed time.
            _run(arguments)
        else:
            watched(lambda: _run(arguments), arguments.command)
    except BrokenPipeError:
        # The reader, such as `head`, has closed the pipe.
        _drop_output()
    except KeyboardInterrupt:
        sys.stderr.write("shufflebounds: interrupted\n")
        # Shells expect 128 + the number of the signal.
        code = 128 + signal.SIGINT
        if argv is None:
            # A kernel may still run in a thread: exit without waiting for it.
            sys.stderr.flush()
            os._exit(code)
        return code
    except (InconsistentBoundsError, InfeasibleError, UnwritableError) as problem:
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


def _warning(message: Warning | str, *place: Any, **keywords: Any) -> None:
    """Print a warning as one line, without the place in the code that `warnings.showwarning` prints."""
    sys.stderr.write(f"shufflebounds: warning: {message}\n")


def _run(arguments: argparse.Namespace) -> None:
    _place(arguments.command).run(arguments)
    if sys.stdout is None:
        raise OSError(errno.EBADF, "standard output is closed")
    sys.stdout.flush()


def _drop_output() -> None:
    """Redirect standard output to the null device, so that buffered output cannot raise at exit."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
