"""Argument parsing: numbers, the options of a mechanism, and suggestions for misspelt words.

Only the parsers of the chosen sub-command and mechanism are built, which keeps the start of the command fast.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NoReturn

from shufflebounds.cli.registry import MECHANISMS, Mechanism, summary

__all__ = ["Parser", "add_choices", "add_forms", "add_mechanisms", "number", "number_or_word"]


def _near(word: str, listed: Collection[str], count: int) -> list[str]:
    """Return the known words that are most similar to a misspelt one; the dashes of options are not compared."""
    import difflib

    names = {one.strip("-"): one for one in listed}
    # With a threshold of the similarity below 0.7, options with another meaning are suggested, such as --eps for --times.
    return [names[name] for name in difflib.get_close_matches(word.strip("-"), names, count, 0.7)]


OTHER_NAMES = {
    "--eps0": "--local-eps", "--epsilon0": "--local-eps", "--budget": "--local-eps", "--epsilon": "--eps", "--n": "--users",
    "--d": "--bins", "--k": "--bins", "--dummies": "--fakes", "--noise": "--sigma",
    "--times": "--releases", "--releases": "--times",
}
"""Names of options in papers and other programs, and for each the name in this command, which is suggested in the error message."""


class Parser(argparse.ArgumentParser):
    """A parser that reports an error as one line on stderr and ends with exit code 2, and that lists its options.

    Attributes
    ----------
    options : list of str
        The options that were added, such as ``--json``.
    choices : dict
        The sub-parsers by their names, added by :func:`add_choices`.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.options: list[str] = []
        self.choices: dict[str, Parser] = {}
        super().__init__(*args, **kwargs)

    def add_argument(self, *names: Any, **kwargs: Any) -> argparse.Action:
        """Add an argument as `argparse` does, and its option strings to `options`."""
        return self._listed(super().add_argument(*names, **kwargs))

    def add_one_of(self, arguments: dict[str, dict[str, Any]]) -> None:
        """Add options of which exactly one must be given, with the keywords of `add_argument` by their names."""
        group = self.add_mutually_exclusive_group(required=True)
        for name, keywords in arguments.items():
            self._listed(group.add_argument(name, **keywords))

    def _listed(self, action: argparse.Action) -> argparse.Action:
        self.options += action.option_strings
        return action

    def error(self, message: str) -> NoReturn:
        """Print the message and end the process."""
        sys.stderr.write(f"{self.prog}: error: {message}\n")
        raise SystemExit(2)

    def _known(self) -> set[str]:
        """Return the options of this parser and of its existing sub-parsers."""
        options = {option for option in self.options if option.startswith("--")}
        return options.union(*(sub._known() for sub in self.choices.values()))

    @staticmethod
    def _alike(option: str, options: list[str]) -> list[str]:
        """Return at most one option that shares a word with `option` (such as --local-eps for --eps) or has a similar spelling."""
        words = [word for word in option.strip("-").split("-") if len(word) > 2]
        begun = [one for one in options if any(own.startswith(word) for own in one.strip("-").split("-") for word in words)]
        return begun[:1] or _near(option, options, 1)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the arguments. An unknown option ends the process with a suggestion."""
        options = sorted(self._known())
        for word in sys.argv[1:] if args is None else args:
            option = word.partition("=")[0]
            # argparse accepts the beginning of an option's name, so a beginning is not reported as unknown.
            if not option.startswith("--") or option == "--" or any(one.startswith(option) for one in options):
                continue
            meant = OTHER_NAMES.get(option, option.replace("_", "-"))
            near = [meant] if meant in options else self._alike(option, options)
            self.error(f"unrecognized argument {option}" + (f"; did you mean {near[0]}?" if near else
                                                            f"; the options are {', '.join(options)}"))
        parsed, rest = self.parse_known_args(args, namespace)
        if rest:
            near = _near(rest[0].partition("=")[0], options, 1)
            self.error(f"unrecognized arguments: {' '.join(rest)}" + (f"; did you mean {near[0]}?" if near else ""))
        return parsed


def number_or_word(words: tuple[str, ...], text: str) -> int | float | str:
    """Return the number in text, or text itself if it is one of the words.

    Integers such as 3000000, 3_000_000 and 3e6 become an int.
    """
    if text in words:
        return text
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return int(value) if "e" in text.lower() and float(value).is_integer() else value
    plain = text.replace(",", "") if text.replace(",", "").isdecimal() and "," in text else ""
    hint = f"; did you mean {plain}?" if plain else "; write a million as 1e6" if text[:-1].isdecimal() else ""
    raise argparse.ArgumentTypeError(f"{text!r} is not a number" + (f", nor one of {', '.join(words)}" if words else hint))


number = partial(number_or_word, ())
"""Converts the text of an argument that must be a number."""


def add_choices(
    parser: Parser, what: str, names: Collection[str], helps: Callable[[str], str], words: list[str]
) -> dict[str, Parser]:
    """Add sub-commands and return them: the one whose name is the first word, or all of them if the first word is no such name."""
    first = words[0] if words else ""
    # If the first word is a name, the other names are not listed, because listing them would import all mechanisms.
    every = [first] if first in names else list(names)
    if first and not first.startswith("-") and first not in every:
        near = _near(first, every, 3)
        near = ["--help"] if first == "help" else near
        hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(every)}"
        parser.error(f"argument {what}: invalid choice: {first!r}: {hint}")
    # Without `prog`, argparse would format a usage message, which imports more modules.
    subs = parser.add_subparsers(dest=what.lower(), required=True, metavar=what, parser_class=Parser, prog=parser.prog)
    for name in every:
        # argparse interprets % in help texts.
        text = helps(name).replace("%", "%%")
        parser.choices[name] = subs.add_parser(name, help=text, description=text)
    return parser.choices


def add_forms(parser: Parser, explained: str = "print the neighbour relation and what each bound rests on") -> None:
    """Add the flags --json and --explain."""
    parser.add_argument("--json", action="store_true", help="print JSON for tools")
    parser.add_argument("--explain", action="store_true", help=explained)


def add_mechanisms(
    parser: Parser,
    words: list[str],
    extra: dict[str, str],
    *,
    names: Collection[str] | None = None,
    wanted: Callable[[Mechanism], dict[str, str]] = lambda mechanism: mechanism.options,
    more: Callable[[Parser, Mechanism], None] | None = None,
    required: Callable[[Mechanism, str], bool] = Mechanism.required,
) -> None:
    """Add one sub-command per mechanism, with the mechanism's options and those of `extra`.

    `wanted` selects the options, `required` says which of them have no default, and `more` adds further arguments.
    """
    listed = MECHANISMS if names is None else names
    chosen = add_choices(parser, "MECHANISM", listed, lambda name: summary(MECHANISMS[name].build), words)
    if len(chosen) > 1:
        if words and words[0].startswith("--") and not "--help".startswith(words[0]):
            parser.error(f"name a mechanism before {words[0].partition('=')[0]}, such as stronger-clones")
        return
    for name, sub in chosen.items():
        mechanism = MECHANISMS[name]
        for option, text in {**wanted(mechanism), **extra}.items():
            default = mechanism.defaults.get(option)
            sub.add_argument(
                f"--{option.replace('_', '-')}",
                dest=option,
                type=partial(number_or_word, mechanism.words.get(option, ())),
                required=option in extra or required(mechanism, option),
                default=default,
                help=text.replace("%", "%%") + (f" (default {default})" if default is not None else ""),
            )
        add_forms(sub)
        if more is not None:
            more(sub, mechanism)
