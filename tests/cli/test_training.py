"""The subcommands for training: DP-SGD on Poisson samples, on shuffled batches and with random allocation."""

import json

import pytest

from shufflebounds._base import __version__
from shufflebounds.cli.command import main
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.sampling import RandomAllocation


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
    assert "add or remove" in text


@pytest.mark.slow
def test_the_json_of_random_allocation_has_the_parameters(capsys):
    words = ["--sigma", "2", "--steps", "20", "--chosen", "2", "--epochs", "3", "--delta", "1e-3", "--json"]
    assert main(["allocate", *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["parameters"] == {"sigma": 2.0, "steps": 20, "chosen": 2, "epochs": 3, "delta": 1e-3}
    assert (found["mechanism"], found["version"]) == ("allocate", __version__)
    assert 0 < found["epsilon"]["lower"] <= found["epsilon"]["upper"]


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


@pytest.mark.parametrize("words", [[], ["--sigma", "1", "--eps", "1"]])
def test_either_the_noise_or_the_target(capsys, words):
    with pytest.raises(SystemExit) as stop:
        main(["sgd", *words, "--rate", "0.1", "--steps", "20", "--delta", "1e-5"])
    assert stop.value.code == 2
    assert "--sigma" in capsys.readouterr().err
