"""The commands ``shufflebounds sgd`` and ``shufflebounds allocate``: eps of a training run, or the noise for a target."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

from shufflebounds._base import validate as _validate
from shufflebounds.cli.output.printing import SHORT, as_json, as_table, both, explain, format_bound, report
from shufflebounds.cli.parsers import Parser, add_forms, number
from shufflebounds.cli.targets import TARGET, add_target, answers_to, target_of
from shufflebounds.composition import least_noise
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile import PrivacyProfile
from shufflebounds.sampling import RandomAllocation, ShuffledBatches

__all__ = ["Allocate", "Sgd"]

SIGMA = "standard deviation of the noise over the clipping norm; without it, the smallest that meets the target is found"

RTOL = 1e-4
"""Relative tolerance of sigma. Lowered: one or two more evaluations of a training run, each of up to a minute."""


class Sgd:
    """The command ``sgd``: every batch is drawn by Poisson subsampling, or all records are shuffled and cut into batches."""

    @staticmethod
    def add_arguments(parser: Parser, words: list[str]) -> None:
        """Add the arguments of the sub-command to its parser."""
        _add_noise(parser)
        parser.add_one_of({
            "--rate": {"type": float, "help": "Poisson batches: the probability that a record is in a batch"},
            "--shuffled": {"action": "store_true", "help": "batches of fixed size, cut from the shuffled records"},
        })
        text = "number of batches, over all epochs; with --shuffled, of one epoch"
        parser.add_argument("--steps", type=number, required=True, help=text)
        text = "with --shuffled: number of records of a batch; 1, which is valid for every number, by default"
        parser.add_argument("--batch-size", type=number, help=text)
        parser.add_argument("--epochs", type=number, help="with --shuffled: number of epochs; 1 by default")
        add_forms(parser)

    @staticmethod
    def run(arguments: argparse.Namespace) -> None:
        """Print eps of all steps. If a target is given in place of sigma, sigma is the smallest that meets it."""
        steps, rate = arguments.steps, arguments.rate
        if arguments.shuffled:
            size, epochs = (1 if value is None else value for value in (arguments.batch_size, arguments.epochs))
            _run("sgd", arguments, {"steps": steps, "batch_size": size, "epochs": epochs},
                 lambda sigma: _repeated(ShuffledBatches(GaussianMechanism(sigma), steps, size), epochs))
            return
        if arguments.batch_size is not None or arguments.epochs is not None:
            raise ValueError("--batch-size and --epochs are for --shuffled: with --rate, pass the number of all batches as --steps")
        _run("sgd", arguments, {"rate": rate, "steps": steps},
             lambda sigma: GaussianMechanism(sigma).subsampled(rate).self_compose(steps))


class Allocate:
    """The command ``allocate``: random allocation, in which each record enters a fixed number of random batches of an epoch."""

    @staticmethod
    def add_arguments(parser: Parser, words: list[str]) -> None:
        """Add the arguments of the sub-command to its parser."""
        _add_noise(parser)
        parser.add_argument("--steps", type=number, required=True, help="number of batches of an epoch")
        text = "number of batches of an epoch that a record enters; 1 by default"
        parser.add_argument("--chosen", type=number, default=1, help=text)
        parser.add_argument("--epochs", type=number, default=1, help="number of epochs; 1 by default")
        add_forms(parser)

    @staticmethod
    def run(arguments: argparse.Namespace) -> None:
        """Print eps of all epochs. If a target is given in place of sigma, sigma is the smallest that meets it."""
        given = {name: getattr(arguments, name) for name in ("steps", "chosen", "epochs")}
        _run("allocate", arguments, given, lambda sigma: _repeated(
            RandomAllocation(GaussianMechanism(sigma), arguments.steps, chosen=arguments.chosen), arguments.epochs))


def _add_noise(parser: Parser) -> None:
    parser.add_argument("--sigma", type=float, help=SIGMA)
    add_target(parser)


def _repeated(epoch: PrivacyProfile, times: int) -> PrivacyProfile:
    return epoch if times == 1 else epoch.self_compose(times)


def _run(command: str, arguments: argparse.Namespace, given: dict[str, Any], training: Callable[[float], PrivacyProfile]) -> None:
    """Print both bounds of eps for the given sigma; or the smallest sigma that meets the target, and the bounds with this sigma.

    ``training(sigma)`` returns the profile of all steps, and `given` has its other parameters.
    """
    for name in ("steps", "epochs"):
        _validate.integer(name, given.get(name, 1), 1)
    if arguments.sigma is None:
        target = target_of(arguments)
        # The other parameters are checked before the search.
        training(1.0)
        sigma = _least_sigma(given, training, target)
        whole = training(sigma)
        answers = answers_to(whole, target)
    elif any(getattr(arguments, name) is not None for name in TARGET if name != "delta"):
        raise ValueError("--sigma and a target exclude each other: pass --sigma and --delta for eps, or a target alone for sigma")
    else:
        if arguments.delta is None:
            raise ValueError("argument --delta: --sigma needs it, such as --delta 1e-6")
        target, sigma, whole = {}, arguments.sigma, training(arguments.sigma)
        answers = {"epsilon": both(whole.epsilon, arguments.delta)}
    # The table shows the bounds `shown` next to sigma; the JSON output has all results.
    shown = next(name for name in ("epsilon", "advantage", "fnr") if name in answers)
    parameters = {"sigma": sigma, **given, **{f"target_{name}": value for name, value in target.items() if name != "delta"}}
    if arguments.delta is not None:
        parameters["delta"] = arguments.delta
    told = report(command, whole, parameters, answers, explained=arguments.json or arguments.explain)
    if arguments.json:
        print(as_json(told))
        return
    names = [f"{SHORT[shown]} {side}" for side in ("lower", "upper")]
    cells = [format_bound(answers[shown][side], side) for side in ("lower", "upper")]
    print(as_table([("sigma", *names), (repr(sigma), *cells)] if target else [names, cells]))
    explain(told, arguments)


def _least_sigma(given: dict[str, Any], training: Callable[[float], PrivacyProfile], target: dict[str, float]) -> float:
    """Return the smallest sigma that meets the target; the search starts at the sigma for Poisson batches of the same mean size."""
    rate = given["rate"] if "rate" in given else max(given.get("chosen", 1) / given["steps"], 1e-6)
    steps = given["steps"] * given.get("epochs", 1)
    poisson = GaussianMechanism.from_training(rate=rate, steps=min(steps, 10**8), **target).sigma
    return poisson if "rate" in given else least_noise(training, **target, near=poisson, rtol=RTOL)
