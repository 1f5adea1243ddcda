"""Words into arguments: numbers, a mechanism's options, and what somebody may have meant. Only what was chosen is built."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection
from functools import partial
from typing import Any, NoReturn

from shufflebounds.cli.registry import MECHANISMS, Mechanism, summary

__all__ = ["Parser", "add_choices", "add_forms", "add_mechanisms", "number"]


def _near(word: str, known: Collection[str], count: int, cutoff: float = 0.6) -> list[str]:
    """Return the known words nearest to one that was misspelt."""
    import difflib

    return difflib.get_close_matches(word, known, count, cutoff)


OTHER_NAMES = {
    "--eps0": "--local-eps", "--epsilon0": "--local-eps", "--budget": "--local-eps", "--epsilon": "--eps", "--n": "--users",
    "--d": "--bins", "--k": "--bins", "--dummies": "--fakes", "--noise": "--sigma",
}
"""What papers and other programs call an option, and its name here."""


class Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line on stderr, with exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Print the complaint and end the process."""
        sys.stderr.write(f"{self.prog}: error: {message}\n")
        raise SystemExit(2)

    def _known(self) -> set[str]:
        """Return the options of this parser and of those below it that are built."""
        known = {option for option in self._option_string_actions if option.startswith("--")}
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                for sub in {id(one): one for one in action.choices.values()}.values():
                    known |= sub._known()
        return known

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Return the arguments; an option that no parser knows is named with those that look like it."""
        options = sorted(self._known())
        for word in sys.argv[1:] if args is None else args:
            option = word.partition("=")[0]
            # argparse itself accepts the beginning of an option
            if not option.startswith("--") or option == "--" or any(one.startswith(option) for one in options):
                continue
            meant = OTHER_NAMES.get(option, option.replace("_", "-"))
            near = [meant] if meant in options else _near(option, options, 1, 0.5)
            self.error(f"unrecognized argument {option}" + (f"; did you mean {near[0]}?" if near else
                                                            f"; the options are {', '.join(options)}"))
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            known = getattr(found, "_options", ())
            near = _near(rest[0].partition("=")[0], known, 1)
            self.error(f"unrecognized arguments: {' '.join(rest)}" + (f"; did you mean {near[0]}?" if near else ""))
        return found


def number(words: tuple[str, ...], text: str) -> int | float | str:
    """Return the number that text spells, or one of the words. Whole numbers such as 3000000, 3_000_000 and 3e6 become an int."""
    if text in words:
        return text
    for kind in (int, float):
        try:
            value = kind(text)
        except ValueError:
            continue
        return int(value) if "e" in text.lower() and float(value).is_integer() else value
    raise argparse.ArgumentTypeError(f"{text!r} is not a number" + (f", nor one of {', '.join(words)}" if words else ""))


def add_choices(
    parser: argparse.ArgumentParser, what: str, names: Collection[str], helps: Callable[[str], str], words: list[str]
) -> dict[str, argparse.ArgumentParser]:
    """Give the parser sub-commands: the one that the first word names, or all of them where it names none."""
    first = words[0] if words else ""
    # a mapping that imports what it is asked for is not asked for all
    every = [first] if first in names else list(names)
    if first and not first.startswith("-") and first not in every:
        near = _near(first, every, 3, 0.5)
        near = ["--help"] if first == "help" else near
        hint = f"did you mean {' or '.join(near)}?" if near else f"choose from {', '.join(every)}"
        parser.error(f"argument {what}: invalid choice: {first!r}: {hint}")
    # with its name given, argparse need not format one, which imports much
    subs = parser.add_subparsers(dest=what.lower(), required=True, metavar=what, parser_class=Parser, prog=parser.prog)
    built: dict[str, argparse.ArgumentParser] = {}
    for name in every:
        # % is argparse's own
        text = helps(name).replace("%", "%%")
        built[name] = subs.add_parser(name, help=text, description=text)
    return built


def add_forms(parser: argparse.ArgumentParser, explained: str = "print the theorem and the neighbour relation") -> None:
    """Give the parser the two flags that say how an answer is shown."""
    parser.add_argument("--json", action="store_true", help="print JSON for tools")
    parser.add_argument("--explain", action="store_true", help=explained)


def add_mechanisms(
    parser: argparse.ArgumentParser,
    words: list[str],
    extra: dict[str, str],
    *,
    names: Collection[str] | None = None,
    wanted: Callable[[Mechanism], dict[str, str]] = lambda mechanism: mechanism.options,
    more: Callable[[argparse.ArgumentParser, Mechanism], None] | None = None,
    required: Callable[[Mechanism, str], bool] = Mechanism.required,
) -> None:
    """Give the parser one sub-command a mechanism, with the mechanism's options and the extra ones, all numbers or words."""
    chosen = add_choices(parser, "MECHANISM", MECHANISMS if names is None else names, _summary, words)
    if len(chosen) > 1:
        return
    for name, sub in chosen.items():
        mechanism = MECHANISMS[name]
        for option, text in {**wanted(mechanism), **extra}.items():
            default = mechanism.defaults.get(option)
            sub.add_argument(
                f"--{option.replace('_', '-')}",
                dest=option,
                type=partial(number, mechanism.words.get(option, ())),
                required=option in extra or required(mechanism, option),
                default=default,
                help=text.replace("%", "%%") + (f" (default {default})" if default is not None else ""),
            )
        add_forms(sub)
        if more is not None:
            more(sub, mechanism)
        sub.set_defaults(_options=tuple(sub._option_string_actions))


def _summary(name: str) -> str:
    return summary(MECHANISMS[name].build)
