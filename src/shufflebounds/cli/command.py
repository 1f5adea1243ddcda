"""The sub-commands: arguments read, questions asked, answers printed."""

from __future__ import annotations

import argparse
import csv
import decimal
import inspect
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

from shufflebounds._validate import InfeasibleError
from shufflebounds.cli import curve, personalized, published
from shufflebounds.cli.registry import MECHANISMS, WORDS, Mechanism
from shufflebounds.mechanisms._base import AdditiveNoise
from shufflebounds.profile import Bound, PrivacyProfile
from shufflebounds.shuffle._accuracy import ErrorLaw

__all__ = ["main"]

SIDES: tuple[Bound, Bound] = ("upper", "lower")


class _Parser(argparse.ArgumentParser):
    """A parser whose complaint is one line on stderr, with exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Print the complaint and end the process."""
        sys.stderr.write(f"{self.prog}: error: {message}\n")
        raise SystemExit(2)


def _parse(option: str, text: str) -> int | float | str:
    """Return the number that text spells, an int where it is written as one, or the option's word."""
    if text in WORDS.get(option, ()):
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None


def _add_mechanisms(
    command: argparse.ArgumentParser, names: Iterable[str], extra: dict[str, str], *, parameters: bool
) -> list[argparse.ArgumentParser]:
    """Give the command one sub-command a mechanism, with the mechanism's options and the extra ones."""
    subs: list[argparse.ArgumentParser] = []
    choices = command.add_subparsers(dest="mechanism", required=True, metavar="MECHANISM", parser_class=_Parser)
    for name in names:
        mechanism = MECHANISMS[name]
        # % is argparse's own
        line = _plain((inspect.getdoc(mechanism.build) or "").partition("\n")[0]).replace("%", "%%")
        sub = choices.add_parser(name, help=line, description=line)
        wanted = dict(mechanism.options) if parameters else _calibration_options(mechanism)
        for option, text in {**wanted, **extra}.items():
            default = mechanism.defaults.get(option)
            sub.add_argument(
                f"--{option.replace('_', '-')}",
                dest=option,
                type=partial(_parse, option),
                required=option in extra or mechanism.required(option),
                default=default,
                help=text + (f" (default {default})" if default is not None else ""),
            )
        if not parameters and _needs_users(mechanism.build):
            text = "number of users, to tell the messages per user (the privacy does not depend on it)"
            sub.add_argument("--users", type=partial(_parse, "users"), help=text)
        sub.add_argument("--json", action="store_true", help="print JSON for tools")
        sub.add_argument("--explain", action="store_true", help="print the theorem and the neighbour relation")
        subs.append(sub)
    return subs


_MARKUP = (
    (r":class:`~?(?:[^`]*\.)?([^`.]*)`", r"\1"),
    (r"\\varepsilon", "eps"),
    (r"\\(Delta|sigma)", r"\1"),
    (r"\^\{([^{}]*)\}", r"^(\1)"),
    (r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)"),
    (r":math:|`", ""),
)


def _plain(line: str) -> str:
    """Return a line of a docstring without its markup."""
    for pattern, text in _MARKUP:
        line = re.sub(pattern, text, line)
    return line


def _calibration_options(mechanism: Mechanism) -> dict[str, str]:
    """Return the mechanism's own options that its calibration takes as given."""
    assert mechanism.calibrate is not None
    taken = inspect.signature(mechanism.calibrate).parameters
    return {name: text for name, text in mechanism.options.items() if name in taken}


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="shufflebounds", description="Exact privacy accounting for the shuffle model; natural logs.")
    parser.add_argument("--version", action="version", version=f"shufflebounds {version('shufflebounds')}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=_Parser)
    delta = {"delta": "failure probability"}
    eps = {"eps": "privacy loss, in nats"}

    epsilon_command = commands.add_parser("epsilon", help="the least eps at a given delta")
    _add_mechanisms(epsilon_command, MECHANISMS, delta, parameters=True)
    delta_command = commands.add_parser("delta", help="the least delta at a given eps")
    _add_mechanisms(delta_command, MECHANISMS, eps, parameters=True)
    calibrate_command = commands.add_parser("calibrate", help="the cheapest parameters that meet a target")
    ready = [name for name, mechanism in MECHANISMS.items() if mechanism.calibrate is not None]
    _add_mechanisms(calibrate_command, ready, eps | delta, parameters=False)

    curve_command = commands.add_parser("curve", help="the trade-off function or delta(eps), as a picture or a table")
    for sub in _add_mechanisms(curve_command, MECHANISMS, {}, parameters=True):
        curve.add_arguments(sub, partial(_parse, ""))

    text = "eps of users who each have a local budget of their own"
    personalized.add_arguments(commands.add_parser("personalized", help=text, description=text), partial(_parse, ""))

    text = "what the papers print beside the exact number, with a verdict on each"
    published.add_arguments(commands.add_parser("published", help=text, description=text))

    table = commands.add_parser("deployments", help="eps of every deployment in a CSV file")
    table.add_argument("file", metavar="FILE.csv", help="columns: name, mechanism, its parameters, delta")
    table.add_argument("--json", action="store_true", help="print JSON for tools")
    table.add_argument("--explain", action="store_true", help="print the theorem of each mechanism in use")
    return parser


def _both(answer: Callable[[Bound], float]) -> dict[str, float]:
    return {side: answer(side) for side in SIDES}


def _parameters(profile: PrivacyProfile, mechanism: Mechanism | None = None) -> dict[str, Any]:
    names = {old: new for new, old in mechanism.renamed.items()} if mechanism else {}
    return {
        names.get(f.name, f.name): getattr(profile, f.name)
        for f in fields(profile)  # type: ignore[arg-type]
        if f.init
    }


def _accuracy(profile: Any, users: Any = None) -> dict[str, dict[str, float]]:
    """Return the error that follows from the parameters of a protocol or a noise, and what it costs."""
    if not isinstance(profile, ErrorLaw | AdditiveNoise):
        return {}
    told = {"standard_error": math.sqrt(profile.variance)}
    if isinstance(profile, AdditiveNoise) or profile._many() == 1:
        told["error_95"] = profile.error_quantile(0.05)
    else:
        told["error_95_one_bin"] = profile.error_quantile(0.05)
        told["error_95_any_bin"] = profile.error_quantile(0.05, of="any")
        told["error_95_any_bin_even_data"] = profile.error_quantile(0.05, profile._even(), of="any")
    cost = getattr(profile, "messages_per_user", None)
    if cost is not None and not _needs_users(profile):
        told["messages_per_user"] = cost()
    elif cost is not None and users is not None:
        told["messages_per_user"] = cost(users)
    return {"accuracy": told}


def _needs_users(protocol: Any) -> bool:
    """Return whether the protocol's cost depends on a number of users that is no parameter of its own."""
    cost = getattr(protocol, "messages_per_user", None)
    return cost is not None and "users" in inspect.signature(cost).parameters


def _report(
    name: str,
    profile: PrivacyProfile,
    asked: dict[str, Any],
    answers: dict[str, dict[str, float]],
    parameters: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return everything that is known of one answer, in the order in which it is printed."""
    return {
        "mechanism": name,
        "parameters": {**(_parameters(profile, MECHANISMS[name]) if parameters is None else parameters), **asked},
        **answers,
        "theorem": profile.theorem,
        "neighbours": profile.neighbours,
        "version": version("shufflebounds"),
    }


def _json(value: Any) -> str:
    """Return JSON with infinities as strings, which JSON cannot spell otherwise."""

    def plain(item: Any) -> Any:
        if isinstance(item, dict):
            return {key: plain(entry) for key, entry in item.items()}
        if isinstance(item, list | tuple):
            return [plain(entry) for entry in item]
        return str(item) if isinstance(item, float) and not math.isfinite(item) else item

    return json.dumps(plain(value), indent=2, allow_nan=False)


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return the rows with their columns aligned."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def _outward(value: float, side: Bound) -> str:
    """Return twelve digits of value, rounded to its own side of the truth."""
    if not math.isfinite(value):
        return str(value)
    rounding = decimal.ROUND_CEILING if side == "upper" else decimal.ROUND_FLOOR
    return f"{float(decimal.Context(prec=12, rounding=rounding).create_decimal_from_float(value)):.12g}"


_SHORT = {"epsilon": "eps", "delta": "delta", "log_delta": "log delta"}


def _print(report: dict[str, Any], arguments: argparse.Namespace) -> None:
    if arguments.json:
        print(_json(report))
        return
    for key, short in _SHORT.items():
        if key in report:
            sides = report[key]
            print(f"{short} = {sides['upper']!r}  (upper bound; lower bound {sides['lower']!r})")
    rows = [("mechanism", report["mechanism"])]
    rows += [(name.replace("_", "-"), _shown(value)) for name, value in report["parameters"].items() if value is not None]
    rows += [(name.replace("_", "-"), f"{value:.6g}") for name, value in report.get("accuracy", {}).items()]
    print(_table(rows))
    if arguments.explain:
        print(_table([("theorem", report["theorem"]), ("neighbours", report["neighbours"])]))


def _shown(value: Any) -> str:
    return f"{value:,}".replace(",", "_") if isinstance(value, int) else str(value)


def _answer(arguments: argparse.Namespace) -> None:
    """Run epsilon, delta or calibrate."""
    mechanism = MECHANISMS[arguments.mechanism]
    given = {name: getattr(arguments, name) for name in mechanism.options if hasattr(arguments, name)}
    if arguments.command == "calibrate":
        assert mechanism.calibrate is not None
        asked = {"eps": arguments.eps, "delta": arguments.delta}
        profile = mechanism.calibrate(**given, **asked)
        answers = {
            "delta": _both(lambda side: profile.delta(arguments.eps, bound=side)),
            "epsilon": _both(lambda side: profile.epsilon(arguments.delta, bound=side)),
            **_accuracy(profile, getattr(arguments, "users", None)),
        }
        asked = {f"target_{name}": value for name, value in asked.items()}
    else:
        profile = mechanism.make(given)
        if arguments.command == "epsilon":
            asked = {"delta": arguments.delta}
            answers = {"epsilon": _both(lambda side: profile.epsilon(arguments.delta, bound=side))}
        else:
            asked = {"eps": arguments.eps}
            answers = {
                "delta": _both(lambda side: profile.delta(arguments.eps, bound=side)),
                "log_delta": _both(lambda side: profile.log_delta(arguments.eps, bound=side)),
            }
    _print(_report(arguments.mechanism, profile, asked, answers), arguments)


def _curve(arguments: argparse.Namespace) -> None:
    """Write one mechanism's curve into a file."""
    curve.check_out(arguments.out, arguments.points)
    mechanism = MECHANISMS[arguments.mechanism]
    profile = mechanism.make({name: getattr(arguments, name) for name in mechanism.options})
    report = _report(arguments.mechanism, profile, {}, {})
    curve.write(profile, arguments, report, _json)
    if arguments.json:
        print(_json({**report, "out": arguments.out}))
        return
    print(f"wrote {arguments.out}")
    if arguments.explain:
        print(_table([("theorem", report["theorem"]), ("neighbours", report["neighbours"])]))


def _deployment(row: dict[str, str], place: str) -> dict[str, Any]:
    """Answer one line of a deployments file."""
    name = (row.get("mechanism") or "").strip()
    if name not in MECHANISMS:
        raise ValueError(f"{place}: mechanism={name!r} must be one of {', '.join(MECHANISMS)}")
    mechanism = MECHANISMS[name]
    given: dict[str, Any] = {}
    for option in [*mechanism.options, "delta"]:
        text = (row.get(option) or "").strip()
        if text:
            try:
                given[option] = _parse(option, text)
            except argparse.ArgumentTypeError as problem:
                raise ValueError(f"{place}: {option}: {problem}") from None
        elif option in mechanism.defaults:
            given[option] = mechanism.defaults[option]
        else:
            raise ValueError(f"{place}: {option} is missing, which {name} needs")
    delta = given.pop("delta")
    try:
        profile = mechanism.make(given)
        answers = {"epsilon": _both(lambda side: profile.epsilon(delta, bound=side))}
    except ValueError as problem:
        raise ValueError(f"{place}: {problem}") from None
    return {"name": (row.get("name") or "").strip(), **_report(name, profile, {"delta": delta}, answers)}


def _deployments(arguments: argparse.Namespace) -> None:
    """Answer every line of a deployments file in one table."""
    try:
        text = Path(arguments.file).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise ValueError(f"FILE.csv: {arguments.file!r} cannot be read: {problem}") from None
    lines = [(i, line) for i, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")]
    reader = csv.DictReader((line for _, line in lines), skipinitialspace=True)
    missing = {"name", "mechanism", "delta"} - set(reader.fieldnames or ())
    if missing:
        raise ValueError(f"FILE.csv: {arguments.file!r} lacks the column {', '.join(sorted(missing))}")
    reports = []
    for row in reader:
        reports.append(_deployment(row, f"{arguments.file}:{lines[reader.line_num - 1][0]}"))
    if not reports:
        raise ValueError(f"FILE.csv: {arguments.file!r} holds no deployment")
    if arguments.json:
        print(_json(reports))
        return
    rows = [("name", "mechanism", "parameters", "eps (upper)", "eps (lower)")]
    for report in reports:
        parameters = ", ".join(f"{key}={_shown(value)}" for key, value in report["parameters"].items() if value is not None)
        sides = [_outward(report["epsilon"][side], side) for side in SIDES]
        rows.append((report["name"], report["mechanism"], parameters, *sides))
    print(_table(rows))
    if arguments.explain:
        seen = {report["mechanism"]: report for report in reports}
        for name, report in seen.items():
            print(f"{name}: {report['theorem']}; {report['neighbours']}")


def _published(arguments: argparse.Namespace) -> None:
    """Print the table of printed bounds."""
    rows = published.rows(arguments.bound)
    if arguments.json:
        print(_json(rows))
        return
    print(_table([published.HEADER, *map(published.cells, rows)]))
    if arguments.explain:
        for row in rows:
            print(f"{row['bound']}: {published.explanation(row)}")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments after the command's name; those of the process by default.

    Returns
    -------
    int
        Exit code: 0, or 1 where a target cannot be met. Bad input ends the process with code 2 and one line on stderr.
    """
    parser = _parser()
    arguments = parser.parse_args(argv)
    try:
        if arguments.command == "deployments":
            _deployments(arguments)
        elif arguments.command == "curve":
            _curve(arguments)
        elif arguments.command == "published":
            _published(arguments)
        elif arguments.command == "personalized":
            profile, asked, answers = personalized.personalized(arguments)
            _print(_report("personalized-clones", profile, asked, answers, {}), arguments)
        else:
            _answer(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # the reader has seen enough; what is buffered must not be flushed into the closed pipe at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except InfeasibleError as problem:
        sys.stderr.write(f"shufflebounds: {problem}\n")
        return 1
    except ValueError as problem:
        text = str(problem)
        named = re.match(r"(\w+)[= ]", text)
        option = named[1].replace("_", "-") if named and hasattr(arguments, named[1]) else None
        parser.error(f"argument --{option}: {text}" if option else text)
    return 0
