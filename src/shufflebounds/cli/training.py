"""The commands ``shufflebounds sgd`` and ``shufflebounds allocate``: eps of a training run, or the noise for a target."""

from __future__ import annotations

import argparse

from shufflebounds._base import validate as _validate
from shufflebounds.cli.output.printing import as_json, as_table, both, format_bound
from shufflebounds.cli.parsers import add_forms, number
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile import PrivacyProfile
from shufflebounds.sampling import RandomAllocation, ShuffledBatches

__all__ = ["Allocate", "Sgd"]

SIGMA = "standard deviation of the noise over the clipping norm"


class Sgd:
    """The command ``sgd``: every batch is drawn by Poisson subsampling, or all records are shuffled and cut into batches."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser, words: list[str]) -> None:
        """Add the arguments of the sub-command to its parser; the target eps is an alternative to sigma."""
        given = parser.add_mutually_exclusive_group(required=True)
        given.add_argument("--sigma", type=float, help=SIGMA)
        given.add_argument("--eps", type=float, help="target privacy loss in nats; finds the smallest sigma that meets it")
        drawn = parser.add_mutually_exclusive_group(required=True)
        drawn.add_argument("--rate", type=float, help="Poisson batches: the probability that a record is in a batch")
        drawn.add_argument("--shuffled", action="store_true", help="batches of fixed size, cut from the shuffled records")
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
            epoch = ShuffledBatches(GaussianMechanism(sigma), steps, _or_one(arguments.batch_size))
            _print_eps(_repeated(epoch, _or_one(arguments.epochs)), arguments, {})
            return
        if arguments.batch_size is not None or arguments.epochs is not None:
            raise ValueError("--batch-size and --epochs are for --shuffled: with --rate, pass the number of all batches as --steps")
        if sigma is None:
            sigma = GaussianMechanism.from_training(
                rate=arguments.rate, steps=arguments.steps, eps=arguments.eps, delta=arguments.delta).sigma
        whole = GaussianMechanism(sigma).subsampled(arguments.rate).self_compose(arguments.steps)
        _print_eps(whole, arguments, {} if arguments.eps is None else {"sigma": sigma})


class Allocate:
    """The command ``allocate``: random allocation, in which each record enters a fixed number of random batches of an epoch."""

    @staticmethod
    def add_arguments(parser: argparse.ArgumentParser, words: list[str]) -> None:
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
        _print_eps(_repeated(epoch, arguments.epochs), arguments, {})


def _repeated(epoch: PrivacyProfile, times: int) -> PrivacyProfile:
    return epoch if times == 1 else epoch.self_compose(times)


def _or_one(value: int | None) -> int:
    return 1 if value is None else value


def _add_delta(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--delta", type=float, required=True, help="failure probability")
    add_forms(parser)


def _print_eps(whole: PrivacyProfile, arguments: argparse.Namespace, found: dict[str, float]) -> None:
    """Print both bounds of eps, and the noise that was found for a target."""
    sides = both(whole.epsilon, arguments.delta)
    if arguments.json:
        print(as_json({"delta": arguments.delta, **found, "epsilon": sides}))
        return
    cells = [*(repr(value) for value in found.values()), *(format_bound(sides[side], side) for side in ("lower", "upper"))]
    print(as_table([(*found, "eps lower", "eps upper"), cells]))
    if arguments.explain:
        changes = whole.neighbours if whole.relation == "zeroed" else "add or remove one record"
        print(f"neighbours: {changes}")
