"""The fields of the calculator's page, read from the registry of the command, and the answers to the questions of the page."""

from __future__ import annotations

import argparse
import inspect
import math
from typing import Any, NamedTuple

from shufflebounds import tails
from shufflebounds.cli import users_command
from shufflebounds.cli.curve_command import columns
from shufflebounds.cli.output.answers import DELTA, DEVICES, EPSILON, SHUFFLED, TIMES, Calibrate, asked_of, several_options
from shufflebounds.cli.output.printing import rests
from shufflebounds.cli.parsers import number_or_word
from shufflebounds.cli.registry import MECHANISMS, USUAL, Mechanism, parameter_texts, summary

__all__ = ["QUESTIONS", "answer", "fields", "tradeoff"]

QUESTIONS: dict[str, tuple[str, Any]] = {
    "epsilon": ("ε at a given δ", EPSILON),
    "users": ("how many users I need", users_command),
    "calibrate": ("how much noise I need", Calibrate),
    "delta": ("δ at a given ε", DELTA),
}
"""For each question about a mechanism: its text on the page, and the command that answers it."""

TAILS = tuple(name for name in tails.__all__ if type(getattr(tails, name)).__name__ == "ufunc")
TEXTS = {"eps": DELTA.text, "delta": EPSILON.text, "users": SHUFFLED, "times": TIMES, "devices": DEVICES}


class Names(NamedTuple):
    """The names of the fields of a question: required and optional ones."""

    needed: list[str]
    optional: list[str]


def names_of(name: str, question: str) -> Names | None:
    """Return the names of the fields of a question about a mechanism, or None if this question cannot be asked."""
    mechanism = MECHANISMS[name]
    target, more = ["eps", "delta"], []
    must = mechanism.required
    if question in ("epsilon", "delta"):
        asked, target = mechanism.options, [QUESTIONS[question][1].asked]
        more = [*(["users"] if mechanism.shuffles else []), "times", "devices"]
    elif question == "users" and users_command.searches(name):
        asked = users_command.own(mechanism)
    elif question == "calibrate" and mechanism.calibrate is not None:
        asked, more, must = mechanism.calibration_options(), [*several_options(mechanism)], mechanism.calibration_needs
        target = [*(["users"] if mechanism.calibrates_shuffled else []), *target]
    else:
        return None
    return Names([option for option in asked if must(option)] + target, [option for option in asked if not must(option)] + more)


def _tail(name: str) -> tuple[str, dict[str, str]]:
    """Return the description of a log tail, and the descriptions of its arguments by name, in the order of the signature."""
    signature, documented = (inspect.getdoc(getattr(tails, name)) or "").split("\n\n", 2)[1:]
    texts = parameter_texts(inspect.cleandoc(documented))
    return documented.strip().partition("\n")[0], {
        argument: texts[argument] for argument in signature.partition("(")[2].rstrip(")").split(", ")}


def _described(name: str, mechanism: Mechanism) -> dict[str, Any]:
    """Return the description of a mechanism for the page: `options` are the parameters of its class, `others` all other fields."""
    texts = {**TEXTS, **several_options(mechanism)}
    asked = {question: names for question in QUESTIONS if (names := names_of(name, question)) is not None}
    return {
        "text": summary(mechanism.build),
        "class": f"{mechanism.build.__module__.split('.')[1]}.{mechanism.build.__name__}",
        "shuffles": mechanism.shuffles,
        # the method that the line of Python calls
        "finds": None if mechanism.calibrates_shuffled else getattr(mechanism.calibrate, "__name__", None),
        "questions": {question: names._asdict() for question, names in asked.items()},
        "options": {
            option: {
                "text": text, "parameter": mechanism.renamed.get(option, option), "default": mechanism.defaults.get(option),
                "words": mechanism.words.get(option, ()), "always": option in USUAL.get(name, ()),
            } for option, text in mechanism.options.items()},
        "others": {option: {"text": text} for option, text in texts.items() if option not in mechanism.options},
    }


def fields() -> dict[str, Any]:
    """Return the fields of the page: questions, mechanisms with their options, and log tails with their arguments."""
    return {
        "questions": {**{question: words for question, (words, _) in QUESTIONS.items()}, "tail": "the log tail of a distribution"},
        "mechanisms": {name: _described(name, mechanism) for name, mechanism in MECHANISMS.items()},
        "tails": {name: {"text": text, "options": {argument: {"text": told} for argument, told in arguments.items()}}
                  for name in TAILS for text, arguments in [_tail(name)]},
    }


def _one_of(what: str, word: str, listed: Any) -> str:
    if word not in listed:
        raise ValueError(f"{what}={word!r} must be one of {', '.join(listed)}")
    return word


def _numbers(query: dict[str, str], names: Names, words: dict[str, tuple[str, ...]]) -> dict[str, Any]:
    """Return the values of the fields that are filled in, or raise ValueError if the question has no such field."""
    given = {name: text for name, text in query.items() if name not in ("question", "mechanism")}
    for name in given:
        _one_of("field", name, [*names.needed, *names.optional])
    for name in names.needed:
        if name not in given:
            raise ValueError(f"{name} is missing")
    values = {}
    for name, text in given.items():
        try:
            values[name] = number_or_word(words.get(name, ()), text)
        except argparse.ArgumentTypeError as problem:
            raise ValueError(f"{name}: {problem}") from None
    return values


def _arguments(query: dict[str, str]) -> tuple[str, argparse.Namespace]:
    """Return the question of a query, and its arguments in the form of the command's parsed arguments."""
    question = _one_of("question", query.get("question", ""), QUESTIONS)
    name = _one_of("mechanism", query.get("mechanism", ""), MECHANISMS)
    names, mechanism = names_of(name, question), MECHANISMS[name]
    if names is None:
        raise ValueError(f"mechanism={name!r} has no answer to question={question!r}")
    values = _numbers(query, names, mechanism.words)
    left = {option: mechanism.defaults.get(option) for option in names.optional}
    return question, argparse.Namespace(**{"mechanism": name, "compose": None, **left, **values})


def answer(query: dict[str, str]) -> dict[str, Any]:
    """Return the report that answers a query: a question, a mechanism, and the texts of the fields.

    Raises ValueError or InconsistentBoundsError with the text that the command prints.
    """
    if query.get("question") == "tail":
        name = _one_of("mechanism", query.get("mechanism", ""), TAILS)
        arguments = list(_tail(name)[1])
        values = _numbers(query, Names(arguments, []), {})
        value = float(getattr(tails, name)(*(float(values[argument]) for argument in arguments)))
        if math.isnan(value):
            raise ValueError(f"{name} is not defined for these numbers: an argument lies outside its domain")
        return {"mechanism": name, "parameters": values, "value": value}
    question, asked = _arguments(query)
    told: dict[str, Any] = QUESTIONS[question][1].answer(asked)
    return {**told, "rests": rests(told)}


def tradeoff(query: dict[str, str]) -> dict[str, list[float]]:
    """Return the columns of the trade-off function of the mechanism of a query."""
    question, asked = _arguments(query)
    _one_of("question", question, ("epsilon", "delta"))
    return {name: column.tolist() for name, column in columns(asked_of(asked)[0], "tradeoff", 61).items()}
