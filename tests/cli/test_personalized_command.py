"""The command ``shufflebounds personalized``."""

import json

import numpy as np
import pytest

from shufflebounds.cli import main
from shufflebounds.shuffle import PersonalizedClones

EPS = np.linspace(0.5, 2, 50)


@pytest.fixture
def budgets(tmp_path):
    path = tmp_path / "budgets.csv"
    path.write_text("name,eps\n" + "".join(f"u,{e!r}\n" for e in EPS.tolist()))
    return str(path)


def answer(capsys, *arguments):
    assert main(["personalized", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_the_randomizers(budgets, capsys):
    for arguments, profile in (
        ([], PersonalizedClones.randomized_response(EPS, 2)),
        (["--randomizer", "laplace"], PersonalizedClones.laplace(EPS)),
        (["--randomizer", "rr", "--categories", "4", "--target", "3"], PersonalizedClones.randomized_response(EPS, 4, target=2)),
    ):
        report = answer(capsys, budgets, "--delta", "1e-5", *arguments)
        assert report["epsilon"]["upper"] == profile.epsilon(1e-5)
        assert report["epsilon"]["lower"] == profile.epsilon(1e-5, bound="lower")
        assert report["parameters"]["users"] == 50


def test_counts_and_npy(tmp_path, capsys):
    path = tmp_path / "b.csv"
    for column in ("count", "weight"):
        path.write_text(f"{column},eps\n30,1\n\n20,2  # two groups\n")
        report = answer(capsys, str(path), "--delta", "1e-3")
        assert report["parameters"]["users"] == 50
        assert report["epsilon"]["upper"] == PersonalizedClones.randomized_response([1, 2], 2, counts=[30, 20]).epsilon(1e-3)
    np.save(tmp_path / "b.npy", EPS)
    assert answer(capsys, str(tmp_path / "b.npy"), "--delta", "1e-3")["parameters"]["largest_eps"] == 2.0


def test_text_and_explanation(budgets, capsys):
    assert main(["personalized", budgets, "--delta", "1e-5", "--explain"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("eps = ")
    assert "every user" in out
    assert "replace one user's bit" in out


@pytest.mark.parametrize(
    ("text", "arguments", "word"),
    [
        ("user\n1\n", [], "lacks the column eps"),
        ("eps\n", [], "holds no user"),
        ("eps\n1\nx\n", [], ":3: 'x' has no number"),
        ("eps\n1\n-1\n", [], "-1"),
        ("eps,count\n1,0\n", [], "counts"),
        ("eps\n1\n", ["--target", "2"], "target=2"),
        ("eps\n1\n", ["--randomizer", "rr"], "categories"),
        ("eps\n1\n", ["--categories", "3"], "categories"),
        ("eps\n1\n", ["--delta", "2"], "delta=2"),
    ],
)
def test_bad_input_is_one_line_and_code_2(tmp_path, capsys, text, arguments, word):
    path = tmp_path / "b.csv"
    path.write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["personalized", str(path), "--delta", "1e-5", *arguments])
    assert stop.value.code == 2
    problem = capsys.readouterr().err
    assert word in problem
    assert problem.count("\n") == 1


def test_missing_file(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["personalized", "no-such-file.csv", "--delta", "1e-5"])
    assert stop.value.code == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_column_twice_is_refused(tmp_path, capsys):
    file = tmp_path / "twice.csv"
    file.write_text("eps,eps\n1,2\n")
    with pytest.raises(SystemExit):
        main(["personalized", str(file), "--delta", "1e-6"])
    assert "a column twice" in capsys.readouterr().err


def test_a_header_that_lies_about_its_size_takes_no_memory(tmp_path, capsys):
    file = tmp_path / "lie.npy"
    with file.open("wb") as out:
        np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": (10**12,)})
        out.write(bytes(80))
    with pytest.raises(SystemExit):
        main(["personalized", str(file), "--delta", "1e-6"])
    assert "cannot be read" in capsys.readouterr().err


def test_a_field_of_many_digits_is_refused(tmp_path, capsys):
    file = tmp_path / "long.csv"
    file.write_text("eps\n" + "1" * 131_073 + "\n")
    with pytest.raises(SystemExit):
        main(["personalized", str(file), "--delta", "1e-6"])
    assert "eps holds inf" in capsys.readouterr().err
