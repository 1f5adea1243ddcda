"""The option ``--compose``: it adds the releases of a file to a mechanism, or composes them alone."""

import io
import json

import pytest

from shufflebounds.cli import main
from shufflebounds.composition import Ledger, to_dict
from shufflebounds.mechanisms import GaussianMechanism, LaplaceMechanism
from shufflebounds.shuffle import StrongerClones

PARTS = (GaussianMechanism(20.0), 4), (LaplaceMechanism(20.0), 1)
TABLE = "# of the spring\nmechanism, sigma, scale, times\ngaussian, 20,, 4\n\nlaplace,, 20,\n"


def asked(capsys, *words):
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def saved(kind):
    if kind == "table":
        return TABLE
    if kind == "list":
        return json.dumps([{"profile": to_dict(profile), "times": times} for profile, times in PARTS])
    if kind == "profile":
        return json.dumps(to_dict(PARTS[0][0].self_compose(4).compose(PARTS[1][0])))
    ledger = Ledger(5.0, 1e-6)
    for profile, times in PARTS:
        ledger.spend(profile, times)
    return json.dumps(ledger.to_dict())


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["table", "ledger"])
def test_every_form_of_file(kind, tmp_path, capsys):
    file = tmp_path / "releases"
    file.write_text(saved(kind))
    whole = PARTS[0][0].self_compose(4).compose(PARTS[1][0])
    answer = asked(capsys, "delta", "--compose", str(file), "--eps", "0.4")
    assert answer["mechanism"] == "composition"
    assert answer["delta"] == {side: whole.delta(0.4, bound=side) for side in ("upper", "lower")}


@pytest.mark.slow
def test_with_a_mechanism_and_from_standard_input(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(TABLE))
    answer = asked(capsys, "delta", "stronger-clones", "--users", "1e4", "--local-eps", "1", "--times", "2", "--compose", "-",
                   "--eps", "0.5")
    whole = StrongerClones(10**4, 1.0).self_compose(2).compose(PARTS[0][0].self_compose(4), PARTS[1][0])
    assert answer["delta"]["upper"] == pytest.approx(whole.delta(0.5), rel=1e-9)
    assert answer["parameters"]["compose"] == "-"


def test_curve_of_a_file(tmp_path, capsys):
    file = tmp_path / "releases.json"
    file.write_text(json.dumps(to_dict(GaussianMechanism(2.0))))
    out = tmp_path / "curve.csv"
    assert main(["curve", f"--compose={file}", "--kind", "profile", "--points", "10", "--out", str(out)]) == 0
    assert out.read_text().startswith("eps,delta_lower")


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "mechanism"), ("mechanism\n", "no release"), ("mechanism\nlaplas\n", "laplas"), ("[]", "no release"), ("{", "compose"),
     ('{"profile": "os"}', "os"), ('{"form": 2, "entries": []}', "no ledger"), ('{"form": 1, "entries": []}', "reads form 2"),
     (json.dumps([to_dict(GaussianMechanism(1.0).subsampled(0.1)), to_dict(StrongerClones(100, 1.0))]), "ReplaceOne")],
)
def test_files_that_will_not_do(text, said, tmp_path, capsys):
    file = tmp_path / "releases"
    file.write_text(text)
    with pytest.raises(SystemExit) as stop:
        main(["epsilon", "--compose", str(file), "--delta", "1e-6"])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
