"""The command ``shufflebounds curve``, which writes plots and tables to files."""

import csv
import json

import numpy as np
import pytest

from shufflebounds import shuffle
from tests.cli.test_command import run
from tests.strategies import slow

NOISE = ["binomial-noise", "--trials", "1000"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tradeoff", "profile"])
def test_picture(capsys, tmp_path, kind):
    pytest.importorskip("matplotlib")
    file = tmp_path / "curve.PNG"
    code, out, err = run(capsys, "curve", *NOISE, "--kind", kind, "--out", str(file))
    assert (code, err) == (0, "")
    assert out == f"wrote {file}\n"
    assert file.read_bytes().startswith(b"\x89PNG")


def test_csv_of_delta(capsys, tmp_path):
    file = tmp_path / "curve.csv"
    assert run(capsys, "curve", *NOISE, "--kind", "profile", "--out", str(file), "--points", "33")[0] == 0
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert len(rows) == 33
    noise = shuffle.BinomialNoise(1000, 0.5)
    for row in rows:
        eps = float(row["eps"])
        assert float(row["delta_upper"]) == noise.delta(eps)
        assert float(row["log_delta_lower"]) == noise.log_delta(eps, bound="lower")
        assert float(row["delta_lower"]) <= float(row["delta_upper"])


def test_json_of_the_tradeoff(capsys, tmp_path):
    file = tmp_path / "curve.json"
    code, out, _ = run(capsys, "curve", "clones", "--users", "1e4", "--local-eps", "2", "--out", str(file), "--json")
    assert code == 0
    assert json.loads(out)["out"] == str(file)
    report = json.loads(file.read_text())
    assert report["mechanism"] == "clones"
    assert report["parameters"] == {"users": 10**4, "local_eps": 2.0}
    assert report["kind"] == "tradeoff"
    alpha, lower, upper = (np.array(report["columns"][name]) for name in ("alpha", "beta_lower", "beta_upper"))
    assert alpha[0] == 0
    assert alpha[-1] == 1
    assert (np.diff(alpha) > 0).all()
    assert (lower <= upper + 1e-15).all()
    assert (upper <= 1 - alpha + 1e-12).all()
    protocol = shuffle.Clones(10**4, 2.0)
    # The curve is at least every line 1 - delta - e^eps alpha, up to the gap of the bounds.
    for eps in (0.0, 0.05, 0.1):
        assert (upper >= 1 - protocol.delta(eps) - np.exp(eps) * alpha - 1e-12).all()
        assert np.max(1 - lower - np.exp(eps) * alpha) <= protocol.delta(eps) * 1.01


def test_explain(capsys, tmp_path):
    _, out, _ = run(capsys, "curve", *NOISE, "--out", str(tmp_path / "c.csv"), "--explain")
    assert "theorem" in out
    assert "neighbours" in out


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--out", "curve.pdf"], "argument --out: out='curve.pdf' must end in .png, .csv or .json"),
        (["--out", "curve"], "argument --out"),
        (["--out", "c.csv", "--points", "1"], "argument --points"),
        (["--out", "c.csv", "--points", "1.5"], "argument --points"),
        (["--out", "c.csv", "--kind", "pie"], "argument --kind"),
        ([], "--out"),
    ],
)
def test_bad_words(capsys, tmp_path, monkeypatch, words, named):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "curve", *NOISE, *words)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert named in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ending", ["csv", "json", slow("png")])
def test_a_file_that_cannot_be_written_is_no_bad_input(capsys, tmp_path, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, "curve", *NOISE, "--out", f"no/such/place.{ending}")
    assert (code, out) == (1, "")
    assert err == f"shufflebounds: --out: 'no/such/place.{ending}' cannot be written: No such file or directory\n"


@pytest.mark.parametrize(("words", "title"), [
    (["gaussian", "--sigma", "1", "--times", "10"], "10 × GaussianMechanism(sigma=1.0, sensitivity=1.0)"),
    (["gaussian", "--sigma", "1"], "GaussianMechanism(sigma=1.0, sensitivity=1.0)"),
])
def test_the_title_of_a_picture_names_what_is_composed(tmp_path, monkeypatch, capsys, words, title):
    figures = pytest.importorskip("matplotlib.figure")
    seen = []
    monkeypatch.setattr(figures.Figure, "savefig", lambda figure, *a, **k: seen.append(figure.axes[0]))
    assert run(capsys, "curve", *words, "--kind", "profile", "--out", str(tmp_path / "c.png"))[0] == 0
    assert seen[0].get_title().splitlines()[-1] == title


@pytest.mark.parametrize(("users", "label"), [slow("1e6", "gain over guessing"), slow("100", "error of the second kind")])
def test_a_curve_that_hugs_the_diagonal_is_drawn_as_what_it_gains(tmp_path, monkeypatch, capsys, users, label):
    figures = pytest.importorskip("matplotlib.figure")
    seen = []
    save = figures.Figure.savefig
    monkeypatch.setattr(figures.Figure, "savefig", lambda figure, *a, **k: seen.append(figure.axes[0]) or save(figure, *a, **k))
    code, _, _ = run(capsys, "curve", "stronger-clones", "--users", users, "--local-eps", "2", "--out", str(tmp_path / "c.png"))
    assert code == 0
    assert seen[0].get_ylabel().startswith(label)


def test_a_missing_matplotlib_names_the_extra(capsys, tmp_path, monkeypatch):
    import sys

    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    code, _, err = run(capsys, "curve", *NOISE, "--out", str(tmp_path / "c.png"))
    assert code == 2
    assert "shufflebounds[plot]" in err


@pytest.mark.parametrize("mechanism", ["geometric", "randomized-response"])
def test_a_budget_of_the_mechanism_itself(capsys, tmp_path, mechanism):
    out = tmp_path / "curve.json"
    code, _, err = run(capsys, "curve", mechanism, "--budget", "1", "--out", str(out), "--points", "12")
    assert (code, err) == (0, "")
    assert json.loads(out.read_text())["parameters"]["budget"] == 1
