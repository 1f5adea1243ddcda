"""The commands ``shufflebounds sgd`` and ``shufflebounds allocate``: eps of a training run, or the noise for a target."""

from __future__ import annotations

import argparse
from typing import Any

from shufflebounds._base import validate as _validate
from shufflebounds.cli.output.printing import as_json, as_table, both, explain, format_bound, report
from shufflebounds.cli.parsers import Parser, add_forms, number
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile import PrivacyProfile
from shufflebounds.sampling import RandomAllocation, ShuffledBatches

__all__ = ["Allocate", "Sgd"]

SIGMA = "standard deviation of the noise over the clipping norm"


class Sgd:
    """The command ``sgd``: every batch is drawn by Poisson subsampling, or all records are shuffled and cut into batches."""

    @staticmethod
    def add_arguments(parser: Parser, words: list[str]) -> None:
        """Add the arguments of the sub-command to its parser; the target eps is an alternative to sigma."""
        target = "target privacy loss in nats; finds the smallest sigma that meets it"
        parser.add_one_of({"--sigma": {"type": float, "help": SIGMA}, "--eps": {"type": float, "help": target}})
        parser.add_one_of({
            "--rate": {"type": float, "help": "Poisson batches: the probability that a record is in a batch"},
            "--shuffled": {"action": "store_true", "help": "batches of fixed size, cut from the shuffled records"},
        })
        text = "number of batches, over all epochs; with --shuffled, of one epoch"
        parser.add_argument("--steps", type=number, required=True, help=text)
        text = "with --shuffled: number of records of a batch; 1, which is valid for every number, by default"
        parser.add_argument("--batch-size", type=number, help=text)
        parser.add_argument("--epochs", type=number, help="with --shuffled: number of epochs; 1 by default")
        _add_delta(parser)

    @staticmethod
    def run(arguments: argparse.Namespace) -> None:
        """Print eps of the composition of all steps. If a target eps is given, sigma is the smallest that meets it."""
        sigma = arguments.sigma
        if arguments.shuffled:
            if sigma is None:
                raise ValueError("--eps is for Poisson batches: pass --sigma with --shuffled")
            steps = _validate.integer("steps", arguments.steps, 1)
            size, epochs = (1 if value is None else value for value in (arguments.batch_size, arguments.epochs))
            given = {"sigma": sigma, "steps": steps, "batch_size": size, "epochs": epochs}
            _print_eps("sgd", _repeated(ShuffledBatches(GaussianMechanism(sigma), steps, size), epochs), arguments, given)
            return
        if arguments.batch_size is not None or arguments.epochs is not None:
            raise ValueError("--batch-size and --epochs are for --shuffled: with --rate, pass the number of all batches as --steps")
        if sigma is None:
            sigma = GaussianMechanism.from_training(
                rate=arguments.rate, steps=arguments.steps, eps=arguments.eps, delta=arguments.delta).sigma
        whole = GaussianMechanism(sigma).subsampled(arguments.rate).self_compose(arguments.steps)
        given = {"sigma": sigma, "rate": arguments.rate, "steps": arguments.steps, "target_eps": arguments.eps}
        _print_eps("sgd", whole, arguments, given, () if arguments.eps is None else ("sigma",))


class Allocate:
    """The command ``allocate``: random allocation, in which each record enters a fixed number of random batches of an epoch."""

    @staticmethod
    def add_arguments(parser: Parser, words: list[str]) -> None:
        """Add the arguments of the sub-command to its parser."""
        parser.add_argument("--sigma", type=float, required=True, help=SIGMA)
        parser.add_argument("--steps", type=number, required=True, help="number of batches of an epoch")
        text = "number of batches of an epoch that a record enters; 1 by default"
        parser.add_argument("--chosen", type=number, default=1, help=text)
        parser.add_argument("--epochs", type=number, default=1, help="number of epochs; 1 by default")
        _add_delta(parser)

    @staticmethod
    def run(arguments: argparse.Namespace) -> None:
        """Print eps of all epochs."""
        epoch = RandomAllocation(GaussianMechanism(arguments.sigma), arguments.steps, chosen=arguments.chosen)
        given = {name: getattr(arguments, name) for name in ("sigma", "steps", "chosen", "epochs")}
        _print_eps("allocate", _repeated(epoch, arguments.epochs), arguments, given)


def _repeated(epoch: PrivacyProfile, times: int) -> PrivacyProfile:
    return epoch if times == 1 else epoch.self_compose(times)



def _add_delta(parser: Parser) -> None:
    parser.add_argument("--delta", type=float, required=True, help="failure probability")
    add_forms(parser)


def _print_eps(
    command: str, whole: PrivacyProfile, arguments: argparse.Namespace, given: dict[str, Any], found: tuple[str, ...] = (),
) -> None:
    """Print both bounds of eps, after the parameters in `found`, which were calibrated; as JSON with all parameters."""
    sides = both(whole.epsilon, arguments.delta)
    explained = arguments.json or arguments.explain
    given = {**{name: value for name, value in given.items() if value is not None}, "delta": arguments.delta}
    told = report(command, whole, given, {"epsilon": sides}, explained=explained)
    if arguments.json:
        print(as_json(told))
        return
    cells = [*(repr(given[name]) for name in found), *(format_bound(sides[side], side) for side in ("lower", "upper"))]
    print(as_table([(*found, "eps lower", "eps upper"), cells]))
    explain(told, arguments)
