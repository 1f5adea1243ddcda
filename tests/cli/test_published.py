"""The command ``shufflebounds published`` and the list of published bounds behind it."""

import doctest
import json
import math

import pytest

from shufflebounds import published
from shufflebounds.cli import main


def test_every_bound_is_a_public_name_and_the_other_way_round():
    named = [name for name in published.__all__ if isinstance(getattr(published, name), published.PrintedBound)]
    assert sorted(bound.__name__ for bound in published.bounds()) == sorted(named)
    assert all(getattr(published, bound.__name__) is bound for bound in published.bounds())


# The exact values of these formulas come from searches of a second or more.
SLOW = {"zhilyaev_flip_fakes", "zhilyaev_flip_sums", "liu2024_rr_rate"}


@pytest.mark.parametrize(
    "bound",
    [pytest.param(b, marks=pytest.mark.slow) if b.__name__ in SLOW else b for b in published.bounds()],
    ids=lambda bound: bound.__name__,
)
def test_a_verdict_agrees_with_its_numbers(bound):
    compared = bound.comparison()
    assert not math.isnan(compared.printed + compared.exact) or compared.printed == compared.exact
    assert compared.setting
    below, above = compared.printed < compared.exact * (1 - 1e-9), compared.printed > compared.exact * (1 + 1e-9)
    wrong = {"upper": below, "lower": above, "both": below or above}[bound.side]
    assert (bound.fault is None) == (bound.verdict != "false")
    if bound.verdict != "false":
        assert not wrong
        with pytest.raises(ValueError, match="no counterexample"):
            bound.counterexample()
        return
    case = bound.counterexample()
    assert case.case
    below, above = case.printed < case.truth, case.printed > case.truth
    assert {"upper": below, "lower": above, "both": below or above}[bound.side]


@pytest.mark.slow
def test_table(capsys):
    assert main(["published"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["bound", "verdict", "printed", "computed", "ratio", "setting", "reference"]
    assert [line.split()[0] for line in lines[1:]] == [bound.__name__ for bound in published.bounds()]
    assert [line.split()[1] for line in lines[1:]] == [bound.verdict for bound in published.bounds()]


@pytest.mark.slow
def test_json_and_reasons(capsys):
    assert main(["published", "clones", "liu2024_weight_l", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["bound"] for row in rows] == ["clones_closed_form", "clones_apple", "liu2024_weight_laplace"]
    assert rows[0]["printed"] == published.clones_closed_form(10**6, 4.0, 1e-8)
    assert rows[0]["ratio"] == rows[0]["printed"] / rows[0]["exact"] > 3
    assert "counterexample" not in rows[0]
    assert rows[2]["counterexample"]["printed"] < rows[2]["counterexample"]["truth"]
    assert main(["published", "chen_long_mu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["printed"] == "inf"
    assert main(["published", "liu2024_delta", "--explain"]) == 0
    out = capsys.readouterr().out
    assert published.liu2024_delta.reason in out
    assert published.liu2024_delta.counterexample().case in out


def test_an_unknown_bound_is_one_line_and_code_2(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["published", "nothing"])
    assert stop.value.code == 2
    assert "BOUND='nothing' must begin one of erlingsson2019" in capsys.readouterr().err


@pytest.mark.parametrize("bound", published.bounds(), ids=lambda bound: bound.__name__)
def test_the_examples_in_the_docstrings(bound):
    # doctest collects functions and classes only, and a PrintedBound is neither.
    test = doctest.DocTestParser().get_doctest(bound.__doc__, {}, bound.__name__, None, None)
    assert test.examples
    assert doctest.DocTestRunner().run(test).failed == 0
