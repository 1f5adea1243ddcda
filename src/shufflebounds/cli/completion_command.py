"""The command ``shufflebounds completion``: a completion script for bash or zsh, and the candidate words that it asks for."""

from __future__ import annotations

import argparse

from shufflebounds.cli.command import parser_for
from shufflebounds.cli.parsers import Parser

__all__ = ["add_arguments", "run"]

BASH = """_shufflebounds() {
    local cur=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=($(compgen -W "$(shufflebounds completion words "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)" -- "$cur"))
}
complete -o default -F _shufflebounds shufflebounds"""

ZSH = """autoload -Uz bashcompinit && bashcompinit
""" + BASH


def add_arguments(parser: Parser, words: list[str]) -> None:
    """Add the arguments of the sub-command to its parser."""
    text = "bash or zsh: print the script; words: print the next candidates"
    parser.add_argument("shell", choices=("bash", "zsh", "words"), help=text)
    parser.add_argument("given", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> None:
    """Print the script, or the candidate words."""
    if arguments.shell == "words":
        print("\n".join(_following(arguments.given)))
    else:
        print(BASH if arguments.shell == "bash" else ZSH)


def _following(given: list[str]) -> list[str]:
    """Return the candidates for the word after the given ones."""
    try:
        parser = parser_for(given)
    except SystemExit:
        # A given word is neither a command nor one of its mechanisms.
        return []
    while len(parser.choices) == 1:
        parser = next(iter(parser.choices.values()))
    return list(parser.choices) or [option for option in parser.options if option.startswith("--")]
