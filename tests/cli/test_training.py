"""The commands of a training run."""

import json

import pytest

from shufflebounds.cli.command import main
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.sampling import RandomAllocation


@pytest.mark.slow
def test_poisson_batches(capsys):
    assert main(["sgd", "--sigma", "2", "--rate", "0.125", "--steps", "20", "--delta", "1e-5", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["epsilon"]
    run = GaussianMechanism(2.0).subsampled(0.125).self_compose(20)
    assert found == {"upper": run.epsilon(1e-5), "lower": run.epsilon(1e-5, bound="lower")}


@pytest.mark.slow
def test_random_allocation(capsys):
    assert main(["allocate", "--sigma", "2", "--steps", "20", "--delta", "1e-3", "--explain"]) == 0
    text = capsys.readouterr().out
    lower, upper = map(float, text.splitlines()[1].split())
    run = RandomAllocation(GaussianMechanism(2.0), 20)
    assert lower <= run.epsilon(1e-3, bound="lower") <= run.epsilon(1e-3) <= upper
    assert "add or remove" in text


def test_bad_rates(capsys):
    with pytest.raises(SystemExit):
        main(["sgd", "--sigma", "2", "--rate", "2", "--steps", "20", "--delta", "1e-5"])
    assert "argument --rate" in capsys.readouterr().err
