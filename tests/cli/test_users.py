"""The smallest number of users, and the largest local budget, on the command line."""

import json

import pytest

from shufflebounds.cli.command import main
from shufflebounds.mechanisms import KaryResponse
from shufflebounds.shuffle import Shuffled, StrongerClones

TARGET = ["--eps", "0.5", "--delta", "1e-4", "--json"]


@pytest.mark.parametrize(("words", "build"), [
    (["stronger-clones", "--local-eps", "2"], lambda n: StrongerClones(n, 2.0)),
    (["kary-response", "--bins", "10", "--local-eps", "2"], lambda n: Shuffled(KaryResponse(10, 2.0), n)),
])
def test_fewest_users(capsys, words, build):
    assert main(["users", *words, *TARGET]) == 0
    answer = json.loads(capsys.readouterr().out)
    users = answer["parameters"]["users"]
    assert answer["delta"]["upper"] <= 1e-4
    assert build(users).delta(0.5) <= 1e-4 < build(users - 1).delta(0.5)


def test_largest_budget(capsys):
    assert main(["calibrate", "stronger-clones", "--users", "1000", *TARGET]) == 0
    budget = json.loads(capsys.readouterr().out)["parameters"]["local_eps"]
    assert StrongerClones(1000, budget).delta(0.5) <= 1e-4 < StrongerClones(1000, budget * (1 + 1e-6)).delta(0.5)


@pytest.mark.parametrize("words", [["users", "shuffled-bits", *TARGET], ["calibrate", "stronger-clones", *TARGET]])
def test_what_cannot_be_asked(capsys, words):
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "error" in capsys.readouterr().err
