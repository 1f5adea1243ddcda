"""The least noise for a target, and calibrated local randomizers, on the command line."""

import json
import math

import pytest
from scipy.special import ndtri

from shufflebounds import composition, mechanisms, shuffle
from shufflebounds.cli.registry import BUDGETS, MECHANISMS, SCALES
from tests.cli.test_command import run
from tests.strategies import slow


def answer(capsys, *words):
    code, out, err = run(capsys, *words, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.mark.parametrize(("words", "mu"), [
    (["--advantage", "0.1"], 2 * ndtri(0.55)),
    (["--fpr", "0.05", "--fnr", "0.9"], -(ndtri(0.9) + ndtri(0.05))),
    (["--advantage", "0.1", "--times", "4"], ndtri(0.55)),
], ids=["advantage", "rates", "four releases"])
def test_gaussian_noise_has_its_formula(capsys, words, mu):
    found = answer(capsys, "noise", "gaussian", "--sensitivity", "2", *words)
    assert found["parameters"]["sigma"] == pytest.approx(2 / mu, rel=3e-6)
    kind = "advantage" if "--advantage" in words else "fnr"
    value = found["parameters"][f"target_{kind}"]
    upper, lower = found[kind]["upper"], found[kind]["lower"]
    assert upper <= value if kind == "advantage" else lower >= value
    assert lower == pytest.approx(upper, rel=1e-6)


@pytest.mark.parametrize(("mechanism", "option", "x"), [
    ("discrete-gaussian", "sigma", 13.3599260168), slow("laplace", "scale", 9.9898009732),
    ("geometric", "budget", 1 / 9.9937486135)])
def test_ten_releases(capsys, mechanism, option, x):
    found = answer(capsys, "noise", mechanism, "--times", "10", "--eps", "1", "--delta", "1e-6")
    assert found["parameters"][option] == pytest.approx(x, rel=1e-5)
    assert found["parameters"]["times"] == 10
    assert found["epsilon"]["upper"] <= 1 < found["epsilon"]["upper"] * (1 + 1e-5)
    assert found["delta"]["upper"] <= 1e-6


@pytest.mark.slow
def test_releases_that_were_made_already(capsys, tmp_path):
    file = tmp_path / "made.json"
    file.write_text(json.dumps({"profile": mechanisms.GaussianMechanism(2.0).to_dict(), "times": 2}))
    found = answer(capsys, "noise", "gaussian", "--compose", str(file), "--eps", "4", "--delta", "1e-6")
    # Gaussian releases compose to one with the root of the sum of 1/sigma^2.
    whole = mechanisms.GaussianMechanism.from_dp(eps=4.0, delta=1e-6).sigma
    assert found["parameters"]["sigma"] == pytest.approx((whole**-2 - 2 / 4) ** -0.5, rel=1e-5)
    assert found["parameters"]["compose"] == str(file)


def test_the_budget_of_shuffled_messages_by_risk(capsys):
    found = answer(capsys, "noise", "kary-response", "--bins", "10", "--users", "10000", "--advantage", "0.01")
    budget = found["parameters"]["local_eps"]
    assert mechanisms.KaryResponse(10, budget).shuffled(10**4).delta(0.0) == found["advantage"]["upper"] <= 0.01
    more = mechanisms.KaryResponse(10, budget * (1 + 1e-5)).shuffled(10**4)
    assert more.delta(0.0) > 0.01


def test_every_amount_of_noise_is_found():
    for name, mechanism in MECHANISMS.items():
        amounts = [option for option in mechanism.options if option in (*SCALES, *BUDGETS)]
        assert mechanism.noise == (amounts[0] if amounts else None), name
        assert len(amounts) <= 1, name


def test_explain_and_text(capsys):
    _, out, _ = run(capsys, "noise", "gaussian", "--advantage", "0.1", "--explain")
    first, *rest = out.splitlines()
    assert first.startswith("advantage = 0.09999")
    assert "upper bound; lower bound" in first
    assert any(line.startswith("neighbours") for line in rest)
    assert any(line.startswith("upper bound: proved") for line in rest)


@pytest.mark.parametrize(("words", "text"), [
    (["noise", "gaussian"], "give one target: --eps and --delta, or --advantage, or --fpr and --fnr"),
    (["noise", "gaussian", "--eps", "1"], "give one target"),
    (["noise", "gaussian", "--eps", "1", "--delta", "1e-6", "--fpr", "0.1"], "give one target"),
    (["noise", "gaussian", "--advantage", "1"], "argument --advantage: advantage=1 must be in (0, 1)"),
    (["noise", "gaussian", "--eps", "-1", "--delta", "1e-6"], "argument --eps: eps=-1 must be in (0, 10000]"),
    (["noise", "gaussian", "--fpr", "0.6", "--fnr", "0.5"], "argument --fpr: fpr=0.6 and fnr=0.5 have the sum 1.1"),
    (["noise", "clear-reports", "--advantage", "0.1"], "run shufflebounds calibrate clear-reports"),
    (["calibrate", "gaussian-vector"], "'shufflebounds noise gaussian-vector' finds the noise for a target"),
    (["calibrate", "rappor"], "'shufflebounds users rappor' finds the number of users for a target"),
    (["calibrate", "kary-response", "--bins", "9", "--eps", "1", "--delta", "1e-6", "--users", "0"], "argument --users: users=0"),
    (["calibrate", "kary-response", "--bins", "1", "--eps", "1", "--delta", "1e-6", "--users", "10"], "argument --bins: bins=1"),
])
def test_wrong_words_say_what_to_pass(capsys, words, text):
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert text in err
    assert err.count("\n") == 1


TARGET = ["--eps", "1", "--delta", "1e-6"]


@pytest.mark.parametrize(("words", "build"), [
    slow(["kary-response", "--bins", "10"], lambda told: mechanisms.KaryResponse(10, told["local_eps"])),
    slow(["local-hashing", "--bins", "10"], lambda told: mechanisms.LocalHashing(10, told["local_eps"], told["buckets"])),
    slow(["unary-encoding", "--bins", "10"], lambda told: mechanisms.UnaryEncoding(10, told["p"], told["q"])),
    (["randomized-response"], lambda told: mechanisms.RandomizedResponse(told["budget"])),
    slow(["pure-local"], lambda told: mechanisms.PureLocal(told["local_eps"])),
])
def test_a_local_randomizer_with_its_largest_budget(capsys, words, build):
    found = answer(capsys, "calibrate", *words, "--users", "1000", *TARGET)
    told = found["parameters"]
    whole = shuffle.Shuffled(build(told), 1000)
    assert (told["users"], told["target_eps"]) == (1000, 1)
    assert found["delta"]["upper"] == whole.delta(1.0) <= 1e-6
    assert found["epsilon"]["upper"] == whole.epsilon(1e-6) <= 1
    assert whole.delta(1.0) > 1e-6 * (1 - 1e-3)
    if "accuracy" in found:
        assert found["accuracy"]["error_95_any_bin"] == whole.randomizer.error_quantile(0.05, users=1000, of="any")
        assert found["accuracy"]["messages_per_user"] == 1


@pytest.mark.slow
def test_oracles_are_those_of_the_comparison(capsys):
    rows = {row.name: row for row in shuffle.compare_at(users=300, bins=4, eps=1.0, delta=1e-6)}
    for name, names in (("kary-response", ["k-ary response"]), ("local-hashing", ["local hashing"]),
                        ("unary-encoding", ["unary encoding, symmetric", "unary encoding, optimized"])):
        found = answer(capsys, "calibrate", name, "--bins", "4", "--users", "300", *TARGET)
        least = min(rows[row].error_any_bin for row in names)
        assert found["accuracy"]["error_95_any_bin"] == pytest.approx(least, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["kary-response", "--users", "1000"], ["clear-reports"]], ids=["oracle", "protocol"])
def test_several_releases_meet_the_target_together(capsys, words):
    found = answer(capsys, "calibrate", *words, "--bins", "4", "--releases", "4", *TARGET)
    assert found["parameters"]["releases"] == 4
    assert found["epsilon"]["upper"] <= 1
    told = found["parameters"]
    one = (shuffle.ClearReports(told["fakes"], 4) if "fakes" in told else
           mechanisms.KaryResponse(4, told["local_eps"]).shuffled(1000))
    assert one.self_compose(4).epsilon(1e-6) == found["epsilon"]["upper"]
    assert one.epsilon(1e-6) < 0.7


def test_the_noise_is_that_of_the_function(capsys):
    found = answer(capsys, "noise", "laplace", "--advantage", "0.2")
    scale = composition.least_noise(mechanisms.LaplaceMechanism, advantage=0.2)
    assert found["parameters"]["scale"] == scale
    # The advantage of Laplace noise of scale b is 1 - e^(-1/(2b)).
    assert scale == pytest.approx(-1 / (2 * math.log1p(-0.2)), rel=3e-6)
