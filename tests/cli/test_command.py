"""The command line as a user meets it: numbers, both bounds, formats of the output, and error messages of one line."""

import csv
import io
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from shufflebounds import mechanisms, shuffle
from shufflebounds.cli import main
from shufflebounds.cli.output import answers
from shufflebounds.cli.registry import MECHANISMS
from tests.strategies import slow

ROOT = Path(__file__).parents[2]


def run(capsys, *words):
    """Return the exit code, stdout and stderr of one run of the command."""
    try:
        code = main(list(words))
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.slow
def test_a_warning_has_neither_file_nor_line():
    words = [sys.executable, "-m", "shufflebounds", "epsilon", "kary-response", "--bins", "10", "--local-eps", "25", "--delta=.1"]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("eps = ")
    assert done.stderr.startswith("shufflebounds: warning: local_eps=25 is above 20 nats")
    assert done.stderr.count("\n") == 1


def test_main_job(capsys):
    code, out, err = run(capsys, "epsilon", "stronger-clones", "--users", "1e6", "--local-eps", "4", "--delta", "1e-8")
    assert (code, err) == (0, "")
    assert out.startswith("eps = 0.0450729620258")
    assert "1_000_000" in out


def test_json_of_each_command(capsys):
    code, out, _ = run(capsys, "epsilon", "clones", "--users", "1e6", "--local-eps", "4", "--delta", "1e-8", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["epsilon"]["lower"] <= 0.06419684326472507 <= answer["epsilon"]["upper"]
    assert answer["mechanism"] == "clones"
    assert answer["parameters"] == {"users": 10**6, "local_eps": 4.0, "delta": 1e-8}
    assert {"theorem", "neighbours", "version"} <= set(answer)

    _, out, _ = run(capsys, "delta", "binomial-noise", "--trials", "1000000000", "--eps", "0.01", "--json")
    answer = json.loads(out)
    assert answer["delta"] == {"upper": 5e-324, "lower": 0.0}
    assert answer["log_delta"]["lower"] <= math.log(2.5) - 5438 * math.log(10) + 0.1
    assert answer["parameters"]["prob"] == 0.5

    _, out, _ = run(capsys, "delta", "clones", "--users", "10", "--local-eps", "1", "--eps", "2", "--json")
    assert json.loads(out)["log_delta"] == {"upper": "-inf", "lower": "-inf"}

    _, out, _ = run(capsys, "calibrate", "binomial-noise", "--eps", "0.1", "--delta", "1e-8", "--json")
    answer = json.loads(out)
    assert answer["parameters"]["trials"] == 8451
    assert answer["delta"]["upper"] <= 1e-8


@pytest.mark.slow
def test_shuffled_bits(capsys):
    code, out, _ = run(capsys, "delta", "shuffled-bits", "--users", "1e6", "--flip", "5e-5", "--eps", "1", "--ones", "0", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["delta"]["lower"] <= 8.717683114227460911e-9 * (1 + 1e-14)
    assert answer["delta"]["upper"] >= 8.717683114227460911e-9 * (1 - 1e-14)
    _, out, _ = run(capsys, "calibrate", "shuffled-bits", "--users", "1e6", "--eps", "1", "--delta", "1e-9", "--json")
    answer = json.loads(out)
    assert answer["parameters"]["ones"] == "worst"
    assert answer["delta"]["upper"] <= 1e-9
    assert 5.7017637389e-5 < answer["parameters"]["flip"] < 5.72e-5


def test_explain(capsys):
    _, out, _ = run(capsys, "epsilon", "clones", "--users", "100", "--local-eps", "1", "--delta", "1e-4", "--explain")
    assert shuffle.Clones.theorem in out
    assert shuffle.Clones.neighbours in out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["epsilon", "clones", "--users", "-3", "--local-eps", "4", "--delta", "1e-8"], "--users"),
        (["epsilon", "clones", "--users", "1.5", "--local-eps", "4", "--delta", "1e-8"], "--users"),
        (["epsilon", "clones", "--users", "1e30", "--local-eps", "4", "--delta", "1e-8"], "--users"),
        (["epsilon", "clones", "--users", "x", "--local-eps", "4", "--delta", "1e-8"], "--users"),
        (["epsilon", "clones", "--users", "10", "--local-eps", "0", "--delta", "1e-8"], "--local-eps"),
        (["epsilon", "clones", "--users", "10", "--local-eps", "nan", "--delta", "1e-8"], "--local-eps"),
        (["epsilon", "clones", "--users", "10", "--local-eps", "4", "--delta", "2"], "--delta"),
        (["epsilon", "clones", "--users", "10", "--local-eps", "4"], "--delta"),
        (["delta", "clones", "--users", "10", "--local-eps", "4", "--eps", "-1"], "--eps"),
        (["delta", "shuffled-bits", "--users", "10", "--flip", "0.7", "--eps", "1"], "--flip"),
        (["delta", "shuffled-bits", "--users", "10", "--flip", "0.1", "--eps", "1", "--ones", "most"], "--ones"),
        (["calibrate", "clones", "--eps", "1", "--delta", "1e-6"], "--users"),
        (["epsilon", "nothing"], "nothing"),
        (["deployments", "absent.csv"], "absent.csv"),
        ([], "COMMAND"),
    ],
)
def test_bad_input_is_one_line_and_code_2(capsys, words, named):
    code, out, err = run(capsys, *words)
    assert code == 2
    assert out == ""
    assert named in err
    assert err.count("\n") == 1
    assert "Traceback" not in err


def test_infeasible_target_is_code_1(capsys):
    code, out, err = run(capsys, "calibrate", "binomial-noise", "--eps", "0", "--delta", "1e-12")
    assert (code, out) == (1, "")
    assert "cannot be met" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["clear-reports", "--bins", "100"], {"fakes": 4261}),
        (["zero-sum", "--users", "1e6"], {"gamma": 3.40679e-5}),
        (["histogram", "--users", "1e6", "--bins", "50"], {"gamma": 4.26554e-5}),
        slow(["real-sum", "--users", "1e4", "--bits", "8"], {"lam": 296.56}),
        slow(["flipped-reports", "--users", "1e6", "--bins", "100", "--view", "sums"], {"flip": 5.007e-5}),
        slow(["flipped-reports", "--users", "500", "--bins", "9", "--view", "records"], {}),
    ],
)
def test_calibrated_protocols_name_error_and_cost(capsys, words, found):
    code, out, _ = run(capsys, "calibrate", *words, "--eps", "1", "--delta", "1e-6", "--json")
    answer = json.loads(out)
    assert code == 0
    assert answer["delta"]["upper"] <= 1e-6
    for name, value in found.items():
        assert answer["parameters"][name] == pytest.approx(value, rel=1e-3)
    accuracy = answer["accuracy"]
    errors = [value for name, value in accuracy.items() if name.startswith("error_95")]
    assert 0 < accuracy["standard_error"] < accuracy.get("error_95_one_bin", errors[0])
    assert len(errors) == 1 or accuracy["error_95_any_bin"] >= max(errors)
    assert len(errors) == 1 or 0 < accuracy["standard_error_even_data"] <= accuracy["standard_error"] * (1 + 1e-12)
    assert accuracy.get("messages_per_user", 1) >= 1


def test_infeasible_noise_names_what_can_be_had(capsys):
    code, out, err = run(capsys, "calibrate", "zero-sum", "--users", "1e4", "--eps", "0.1", "--delta", "1e-9")
    assert (code, out) == (1, "")
    assert "eps=0.101; 10097 users would do" in err
    code, _, err = run(capsys, "epsilon", "flipped-reports", "--users", "9", "--bins", "2", "--flip", "0.1", "--delta", "0.1")
    assert code == 2
    assert "--view" in err


def test_deployments(capsys, tmp_path):
    file = tmp_path / "list.csv"
    file.write_text(
        "# comment\nname,mechanism,users,local_eps,trials,delta\n"
        "ours,stronger-clones,1e6,4,,1e-8\n\nnoise,binomial-noise,,,80,1e-6\n"
    )
    code, out, _ = run(capsys, "deployments", str(file))
    assert code == 0
    lines = out.splitlines()
    assert [line.split()[0] for line in lines] == ["name", "ours", "noise"]
    assert "0.045072962025" in lines[1]
    code, out, _ = run(capsys, "deployments", str(file), "--json")
    answers = json.loads(out)
    assert [a["name"] for a in answers] == ["ours", "noise"]
    assert all(a["epsilon"]["lower"] <= a["epsilon"]["upper"] for a in answers)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("name,mechanism\n", "delta"),
        ("name,mechanism,delta\n", "no deployment"),
        ("name,mechanism,users,local_eps,delta\na,clone,10,1,0.1\n", "mechanism='clone'"),
        ("name,mechanism,users,local_eps,delta\na,clones,ten,1,0.1\n", "users"),
        ("name,mechanism,users,local_eps,delta\na,clones,10,,0.1\n", "local_eps is missing"),
        ("name,mechanism,users,local_eps,delta\na,clones,10,-1,0.1\n", ":2: local_eps=-1"),
        ("name,mechanism,users,local_eps,delta\na,clones,10,1,7\n", ":2: delta=7"),
    ],
)
def test_bad_deployments_name_the_line(capsys, tmp_path, text, named):
    file = tmp_path / "list.csv"
    file.write_text(text)
    code, out, err = run(capsys, "deployments", str(file))
    assert (code, out) == (2, "")
    assert named in err
    assert err.count("\n") == 1


def test_shipped_deployments_have_sources(capsys):
    file = ROOT / "examples" / "deployments.csv"
    code, out, _ = run(capsys, "deployments", str(file), "--json")
    assert code == 0
    rows = list(csv.DictReader(line for line in file.read_text().splitlines() if not line.startswith("#")))
    assert len(rows) == len(json.loads(out)) >= 4
    assert all(len(row["source"]) > 20 for row in rows)


def test_runs_as_a_module():
    words = [sys.executable, "-m", "shufflebounds", "--version"]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout.startswith("shufflebounds 0.1.0")


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error():
    file = ROOT / "examples" / "deployments.csv"
    words = f"{sys.executable} -m shufflebounds deployments {file} | true"
    done = subprocess.run(words, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "profile"),
    [
        (["randomized-response", "--budget", "2"], mechanisms.RandomizedResponse(2.0)),
        (["laplace", "--scale", "0.5"], mechanisms.LaplaceMechanism(0.5)),
        (["gaussian", "--sigma", "1.5", "--sensitivity", "2"], mechanisms.GaussianMechanism(1.5, 2.0)),
        (["geometric", "--budget", "2"], mechanisms.GeometricMechanism(2.0)),
        (["geometric", "--budget", "2", "--bound", "9"], mechanisms.GeometricMechanism(2.0, bound=9)),
        (["discrete-gaussian", "--sigma", "2"], mechanisms.DiscreteGaussianMechanism(2.0)),
        (["rappor", "--f", "0.5", "--p", "0.75", "--q", "0.5"], mechanisms.Rappor(0.5, 0.75, 0.5)),
    ],
)
def test_building_blocks(capsys, words, profile):
    code, out, _ = run(capsys, "delta", *words, "--eps", "0.5", "--json")
    assert code == 0
    answer = json.loads(out)
    assert answer["delta"] == {"upper": profile.delta(0.5), "lower": profile.delta(0.5, bound="lower")}
    assert answer["parameters"]["eps"] == 0.5
    assert answer["parameters"].get("budget") == getattr(profile, "eps", None)
    code, out, _ = run(capsys, "epsilon", *words, "--delta", "1e-6")
    assert code == 0
    assert float(out.split()[2]) == profile.epsilon(1e-6)
    assert "None" not in out


def test_calibrated_building_blocks(capsys):
    _, out, _ = run(capsys, "calibrate", "gaussian", "--eps", "8", "--delta", "1e-5", "--json")
    answer = json.loads(out)
    assert answer["parameters"]["sigma"] == pytest.approx(0.6002290721989516, rel=1e-11)
    assert answer["delta"]["upper"] <= 1e-5
    _, out, _ = run(capsys, "calibrate", "geometric", "--eps", "0.5", "--delta", "5e-7", "--json")
    assert json.loads(out)["parameters"] == {
        "budget": 0.5, "sensitivity": 1, "bound": 29, "target_eps": 0.5, "target_delta": 5e-7,
    }
    _, out, _ = run(capsys, "calibrate", "laplace", "--eps", "0.5", "--delta", "0", "--sensitivity", "3", "--json")
    assert json.loads(out)["parameters"]["scale"] == 6.0


def test_the_complaint_names_the_option(capsys):
    code, _, err = run(capsys, "delta", "randomized-response", "--budget", "800", "--eps", "1")
    assert code == 2
    assert "--budget: budget=800 must be in (0, 700]" in err


def test_every_mechanism_says_what_it_proves():
    for mechanism in MECHANISMS.values():
        assert mechanism.build.theorem
        assert mechanism.build.neighbours


def test_help_is_plain_text(capsys):
    for command in ("epsilon", "delta", "calibrate", "curve"):
        for words in ((command, "--help"), (command, "geometric", "--help")):
            code, out, _ = run(capsys, *words)
            assert code == 0
            assert not any(mark in out for mark in (":math:", ":class:", "`", "\\"))
    assert "e^(-eps/Delta)" in out


def test_messages_per_user_where_users_are_told(capsys):
    words = ["calibrate", "clear-reports", "--bins", "100", "--eps", "1", "--delta", "1e-6"]
    _, out, _ = run(capsys, *words)
    assert "messages-per-user" not in out
    code, out, _ = run(capsys, *words, "--users", "1000", "--json")
    assert code == 0
    # The 4261 dummy reports are divided among 1000 users.
    assert json.loads(out)["accuracy"]["messages_per_user"] == 5.261
    code, _, err = run(capsys, *words, "--users", "0")
    assert code == 2
    assert err == ("shufflebounds: error: argument --users: users=0 must be an integer in 1..2**53; "
                   "pass the number of users, such as 10**6\n")


def test_calibrated_noise_names_its_error(capsys):
    _, out, _ = run(capsys, "calibrate", "laplace", "--eps", "1", "--delta", "0", "--json")
    accuracy = json.loads(out)["accuracy"]
    assert accuracy["standard_error"] == pytest.approx(math.sqrt(2), rel=1e-15)
    assert accuracy["error_95"] == pytest.approx(math.log(20), rel=1e-14)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["epsilom"], "did you mean epsilon"),
        (["compare", "--users", "9", "--bins", "2", "--eps", "1", "--delta", ".1", "--times", "5"], "did you mean --releases"),
        (["users", "shuffled-bits", "--flip", ".1", "--eps", "1", "--delta", ".1"], "run shufflebounds calibrate shuffled-bits"),
        (["epsilon", "cloens"], "did you mean clones"),
        (["epsilon", "clones", "--users", "9", "--local-eps", "1", "--delta", ".1", "--jsn"], "did you mean --json"),
        (["epsilon", "clones", "--users", "9", "--eps", "1", "--delta", ".1"], "did you mean --local-eps"),
        (["delta", "nothing-like-it"], "choose from"),
    ],
)
def test_a_slip_is_answered_with_what_may_be_meant(capsys, words, meant):
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert meant in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_times_compose(capsys):
    words = ["binomial-noise", "--trials", "1000", "--delta", "1e-6", "--json"]
    _, out, _ = run(capsys, "epsilon", *words, "--times", "10")
    many = shuffle.BinomialNoise(1000, 0.5).self_compose(10)
    answer = json.loads(out)
    assert answer["parameters"]["times"] == 10
    assert answer["epsilon"]["lower"] <= many.epsilon(1e-6)
    assert many.epsilon(1e-6, bound="lower") <= answer["epsilon"]["upper"]
    code, _, err = run(capsys, "epsilon", *words, "--times", "0")
    assert code == 2
    assert "--times" in err


@pytest.mark.slow
def test_standard_input_and_a_column_of_times(capsys, monkeypatch):
    text = "name,mechanism,trials,times,delta\nonce,binomial-noise,80,,1e-6\nten,binomial-noise,80,10,1e-6\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    code, out, _ = run(capsys, "deployments", "-", "--json")
    once, ten = json.loads(out)
    assert code == 0
    assert "times" not in once["parameters"]
    assert ten["parameters"]["times"] == 10
    assert ten["epsilon"]["lower"] > once["epsilon"]["upper"]


def test_columns_that_stand_twice_are_refused(capsys, tmp_path):
    file = tmp_path / "list.csv"
    file.write_text("name,mechanism,users,users,local_eps,delta\na,clones,10,10,1,0.1\n")
    code, _, err = run(capsys, "deployments", str(file))
    assert code == 2
    assert "users twice" in err


def test_a_field_beyond_every_limit_is_one_line(capsys, tmp_path):
    file = tmp_path / "list.csv"
    file.write_text("name,mechanism,users,local_eps,delta\n" + "a" * 140_000 + ",clones,10,1,0.1\n")
    code, _, err = run(capsys, "deployments", str(file))
    assert code == 2
    assert "field" in err
    assert err.count("\n") == 1


def test_an_interrupt_is_one_line_and_130(capsys, monkeypatch):
    def stopped(question, arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(answers.Question, "run", stopped)
    code, out, err = run(capsys, "epsilon", "clones", "--users", "9", "--local-eps", "1", "--delta", "0.1")
    assert (code, out, err) == (130, "", "shufflebounds: interrupted\n")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("output", ["> /dev/full", ">&-"])
def test_output_that_cannot_be_written_is_one_line(output):
    words = f"{sys.executable} -m shufflebounds epsilon clones --users 9 --local-eps 1 --delta 0.1 {output}"
    done = subprocess.run(words, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("shufflebounds: the output cannot be written")
    assert done.stderr.count("\n") == 1


def test_completion(capsys):
    for shell in ("bash", "zsh"):
        _, out, _ = run(capsys, "completion", shell)
        assert "complete -o default -F _shufflebounds shufflebounds" in out
    words = [run(capsys, "completion", "words", *given)[1].split() for given in ([], ["epsilon"], ["delta", "clones"], ["nothing"])]
    assert "calibrate" in words[0]
    assert "kary-response" in words[1]
    assert {"--users", "--local-eps", "--eps", "--json"} <= set(words[2])
    assert words[3] == []


def test_every_scalar_profile_is_a_mechanism_by_itself():
    assert {"stronger-clones", "histogram", "laplace", "kary-response", "subset-selection"} <= set(MECHANISMS)
    assert "personalized-clones" not in MECHANISMS
    for name, mechanism in MECHANISMS.items():
        assert all(text and "`" not in text and "\\" not in text for text in mechanism.options.values()), name
    assert MECHANISMS["flipped-reports"].words == {"view": ("sums", "records"), "fake": ("uniform", "known")}
    assert MECHANISMS["shuffled-bits"].words == {"ones": ("worst",)}
