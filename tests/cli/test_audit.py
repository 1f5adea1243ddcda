"""The command ``shufflebounds audit``: sentence, table, JSON and picture, and what it refuses."""

import json

import pytest

from shufflebounds import audit
from shufflebounds.cli import main

SCORES = "score,in\n2.5,1\n# a comment\n-inf,0\n inf,1\n1e-3,0\n" + "3,1\n0,0\n" * 30
COUNTS = ["--hits", "95", "--trials", "100", "--false-hits", "5", "--false-trials", "100"]


def run(capsys, *words):
    """Return the exit code, stdout and stderr of one run of the command."""
    try:
        code = main(["audit", *words])
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.slow
def test_scores_of_a_file(capsys, tmp_path):
    file, picture = tmp_path / "scores.csv", tmp_path / "out.svg"
    file.write_text(SCORES)
    code, out, _ = run(capsys, str(file), "--delta", "1e-3", "--eps", "0.5", "--out", str(picture), "--explain")
    assert code == 0
    found = audit.scores([2.5, float("inf"), *[3.0] * 30], [float("-inf"), 1e-3, *[0.0] * 30])
    assert out.startswith(str(found)[1:-1])
    assert f"every eps below {found.epsilon(1e-3):.10g}"[:24] in out
    assert "p-value of the claim" in out
    assert "private" not in out
    assert picture.read_text().startswith("<?xml")
    code, out, _ = run(capsys, str(file), "--json")
    told = json.loads(out)
    assert (told["audit"], told["refuted"]["epsilon"], told["refuted"]["log_p_value"]) == ("scores", found.epsilon(), None)
    assert told["parameters"]["inside"] == told["parameters"]["outside"] == 32
    assert told["version"]


@pytest.mark.slow
def test_counts(capsys):
    told = json.loads(run(capsys, *COUNTS, "--confidence", "0.99", "--json")[1])
    assert told["refuted"]["epsilon"] == audit.decisions(95, 100, 5, 100, confidence=0.99).epsilon()
    words = ["--right", "75", "--guesses", "100", "--canaries", "1e3", "--delta", "1e-4", "--eps", "0.5", "--json"]
    told = json.loads(run(capsys, *words)[1])
    assert told["refuted"]["epsilon"] == audit.one_run(75, 100, canaries=1000).epsilon(1e-4)
    assert told["refuted"]["log_p_value"] < -3
    code, out, _ = run(capsys, "--right", "2", "--guesses", "4")
    assert (code, "refuted at this delta  no eps" in out) == (0, True)


@pytest.mark.parametrize(("words", "text"), [
    ([], "give one of these"), (["x.csv", *COUNTS], "give one of these"),
    (COUNTS[:4], "--false-hits and --false-trials must be given"), (["--right", "3"], "--guesses must be given"),
    (["--hits", "11", "--trials", "10", *COUNTS[4:]], "hits=11 must be at most trials=10"),
    (["none.csv"], "cannot be read"), ([*COUNTS, "--out", "x.txt"], "must end in .png, .svg or .pdf"),
    ([*COUNTS, "--confidence", "2"], "argument --confidence"), ([*COUNTS, "--delta", "2"], "argument --delta"),
])
def test_what_is_refused(capsys, words, text):
    code, _, err = run(capsys, *words)
    assert code == 2
    assert text in err


@pytest.mark.parametrize(("table", "text"), [
    ("score\n1\n", "lacks the column in"), ("score,in\n1,2\n", ":2: in must be 1 for a run with the record"),
    ("score,in\nnan,1\n", ":2: score must be a number"), ("score,in\n,1\n", ":2: score must be a number"),
    ("score,in\n1,1\n", "no row with in = 0"),
])
def test_files_that_are_refused(capsys, tmp_path, table, text):
    file = tmp_path / "scores.csv"
    file.write_text(table)
    code, _, err = run(capsys, str(file))
    assert code == 2
    assert text in err
