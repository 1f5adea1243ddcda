"""The subcommands for training: DP-SGD on Poisson samples, on shuffled batches and with random allocation."""

import json

import pytest

from shufflebounds import __version__
from shufflebounds.cli.command import main
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.sampling import RandomAllocation, ShuffledBatches
from tests.strategies import slow


@pytest.mark.slow
def test_poisson_batches(capsys):
    assert main(["sgd", "--sigma", "2", "--rate", "0.125", "--steps", "20", "--delta", "1e-5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    run = GaussianMechanism(2.0).subsampled(0.125).self_compose(20)
    assert found["epsilon"] == {"upper": run.epsilon(1e-5), "lower": run.epsilon(1e-5, bound="lower")}
    assert found["parameters"] == {"sigma": 2.0, "rate": 0.125, "steps": 20, "delta": 1e-5}
    assert (found["mechanism"], found["neighbours"]) == ("sgd", run.neighbours)
    assert found["version"] == __version__


@pytest.mark.slow
def test_random_allocation(capsys):
    assert main(["allocate", "--sigma", "2", "--steps", "20", "--delta", "1e-3", "--explain"]) == 0
    text = capsys.readouterr().out
    lower, upper = map(float, text.splitlines()[1].split())
    run = RandomAllocation(GaussianMechanism(2.0), 20)
    assert lower <= run.epsilon(1e-3, bound="lower") <= run.epsilon(1e-3) <= upper
    assert run.neighbours in text
    assert run.theorem in text
    assert "docs/numerics" in text


@pytest.mark.slow
def test_the_json_of_random_allocation_has_the_parameters(capsys):
    words = ["--sigma", "2", "--steps", "20", "--chosen", "2", "--epochs", "3", "--delta", "1e-3", "--json"]
    assert main(["allocate", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"] == {"sigma": 2.0, "steps": 20, "chosen": 2, "epochs": 3, "delta": 1e-3}
    assert (found["mechanism"], found["version"]) == ("allocate", __version__)
    assert 0 < found["epsilon"]["lower"] <= found["epsilon"]["upper"]


@pytest.mark.slow
def test_shuffled_batches(capsys):
    words = ["sgd", "--shuffled", "--sigma", "40", "--steps", "10", "--delta", "1e-5"]
    one = ShuffledBatches(GaussianMechanism(40.0), 10, 100)
    assert main([*words, "--batch-size", "100", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["epsilon"]
    assert found == {"upper": one.epsilon(1e-5), "lower": one.epsilon(1e-5, bound="lower")}
    assert main([*words, "--batch-size", "100", "--epochs", "3", "--explain"]) == 0
    text = capsys.readouterr().out
    assert float(text.splitlines()[1].split()[1]) > found["upper"]
    assert "counts as zero" in text
    assert main([*words, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epsilon"]["upper"] == ShuffledBatches(GaussianMechanism(40.0), 10).epsilon(1e-5)


@pytest.mark.parametrize(("words", "message"), [
    (["--shuffled", "--epochs", "0", "--sigma", "1"], "argument --epochs: epochs=0"),
    (["--eps", "1", "--rate", "0.1", "--advantage", "0.1"], "give one target: --eps and --delta, or"),
    (["--sigma", "1", "--rate", "0.1", "--epochs", "2"], "--shuffled"),
    (["--sigma", "1", "--rate", "0.1", "--batch-size", "2"], "--shuffled"),
    (["--sigma", "1", "--shuffled", "--rate", "0.1"], "--rate"),
    (["--sigma", "1"], "--shuffled"),
    (["--sigma", "1", "--shuffled", "--batch-size", "0"], "--batch-size"),
])
def test_arguments_of_another_sampling(capsys, words, message):
    with pytest.raises(SystemExit) as stop:
        main(["sgd", *words, "--steps", "20", "--delta", "1e-5"])
    assert stop.value.code == 2
    assert message in capsys.readouterr().err


def test_bad_rates(capsys):
    with pytest.raises(SystemExit):
        main(["sgd", "--sigma", "2", "--rate", "2", "--steps", "20", "--delta", "1e-5"])
    assert "argument --rate" in capsys.readouterr().err


def test_a_target_in_place_of_the_noise(capsys):
    assert main(["sgd", "--eps", "0.5", "--rate", "0.05", "--steps", "1", "--delta", "1e-5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    sigma = found["parameters"]["sigma"]
    assert found["parameters"] == {"sigma": sigma, "rate": 0.05, "steps": 1, "target_eps": 0.5, "delta": 1e-5}
    run = GaussianMechanism(sigma).subsampled(0.05).self_compose(1)
    assert found["epsilon"]["upper"] == run.epsilon(1e-5) <= 0.5
    assert main(["sgd", "--eps", "0.5", "--rate", "0.05", "--steps", "1", "--delta", "1e-5"]) == 0
    head, cells = capsys.readouterr().out.splitlines()
    assert head.split() == ["sigma", "eps", "lower", "eps", "upper"]
    assert float(cells.split()[0]) == sigma


@pytest.mark.parametrize(("words", "target", "shown"), [
    (["sgd", "--rate", "0.05", "--steps", "10"], ["--advantage", "0.1"], ["advantage"]),
    slow(["sgd", "--shuffled", "--steps", "100", "--batch-size", "10"], ["--advantage", "0.2"], ["advantage"]),
    slow(["allocate", "--steps", "10"], ["--eps", "1", "--delta", "1e-3"], ["delta", "epsilon"]),
    slow(["allocate", "--steps", "10"], ["--fpr", "0.05", "--fnr", "0.8"], ["fnr"]),
])
def test_the_noise_of_every_sampling_for_every_target(capsys, words, target, shown):
    assert main([*words, *target, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    value = {name: float(number) for name, number in zip(target[::2], target[1::2])}
    for name in shown:
        side, goal = ("lower" if name == "fnr" else "upper"), value["--eps" if name == "epsilon" else f"--{name}"]
        # The bound of shuffled batches jumps as sigma grows.
        assert found[name][side] == pytest.approx(goal, rel=0.05 if "--shuffled" in words else 5e-4) or name == "delta"
        assert found[name][side] >= goal if name == "fnr" else found[name][side] <= goal
    # The sigma that is found gives the same number if it is passed.
    if shown[-1] == "epsilon":
        assert main([*words, "--sigma", repr(found["parameters"]["sigma"]), "--delta", value_of(target), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["epsilon"] == found["epsilon"]


def value_of(target):
    return target[target.index("--delta") + 1]


def test_explain_says_what_the_bounds_rest_on(capsys):
    assert main(["sgd", "--sigma", "2", "--rate", "0.125", "--steps", "1", "--delta", "1e-5", "--explain"]) == 0
    text = capsys.readouterr().out
    assert "exact for Poisson sampling" in text
    assert "upper bound: proved" in text


@pytest.mark.parametrize("words", [[], ["--sigma", "1", "--eps", "1"], ["--sigma", "1", "--advantage", "0.1"]])
def test_either_the_noise_or_the_target(capsys, words):
    with pytest.raises(SystemExit) as stop:
        main(["sgd", *words, "--rate", "0.1", "--steps", "20", "--delta", "1e-5"])
    assert stop.value.code == 2
    assert ("--sigma and a target exclude each other" if words else "give one target") in capsys.readouterr().err
