"""The options and sub-commands that a parser lists are those that argparse takes."""

import argparse
import re
from pathlib import Path

import pytest

from shufflebounds import cli
from shufflebounds.cli.command import COMMANDS, parser_for
from shufflebounds.cli.registry import MECHANISMS


@pytest.fixture
def following(capsys):
    """Return a function that asks the command which words may follow the given ones."""
    def asked(words):
        assert cli.main(["completion", "words", *words]) in (0, None)
        return capsys.readouterr().out.split()
    return asked


@pytest.mark.parametrize("words", [
    *([name] for name in COMMANDS if name not in ("epsilon", "delta", "calibrate", "curve", "users", "statement", "noise")),
    ["epsilon", "clones"], ["curve", "kary-response"], ["calibrate", "shuffled-bits"], ["users", "kary-response"],
    ["statement", "clones"], ["noise", "laplace"],
], ids=" ".join)
def test_every_option_is_listed_and_shown_by_the_help(words, capsys, following):
    listed = {option for option in following(words) if option.startswith("--")}
    with pytest.raises(SystemExit):
        parser_for(words).parse_args([*words, "--help"])
    shown = set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", capsys.readouterr().out, re.M))
    assert shown == listed
    assert len(listed) > 1 or words == ["completion"]


def test_the_options_of_a_mechanism_are_those_of_the_registry(following):
    for name in ("stronger-clones", "flipped-reports"):
        assert {f"--{option.replace('_', '-')}" for option in MECHANISMS[name].options} <= set(following(["epsilon", name]))


def test_no_private_name_of_argparse_is_used():
    private = {name for kind in (argparse, argparse.ArgumentParser, argparse.Action) for name in dir(kind)
               if name.startswith("_") and not name.startswith("__")} | {"_actions", "_option_string_actions"}
    for path in Path(cli.__file__).parent.rglob("*.py"):
        assert not private & set(re.findall(r"\.(_[a-zA-Z]\w*)", path.read_text(encoding="utf-8"))), path.name
