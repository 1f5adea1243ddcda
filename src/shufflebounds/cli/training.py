"""The commands ``shufflebounds sgd`` and ``shufflebounds allocate``: eps of a training run, or the noise for a target."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod
from functools import partial

from shufflebounds.cli.parsers import add_forms, number
from shufflebounds.cli.printing import as_json, as_table, both, round_outward
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile import PrivacyProfile
from shufflebounds.sampling import RandomAllocation

__all__ = ["Allocate", "Sgd"]


_SIGMA = "standard deviation of the noise over the clipping norm"


class _Run(ABC):
    """A command that prints eps of a training run with Gaussian noise."""

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser, words: list[str]) -> None:
        """Add the arguments of the sub-command to its parser."""
        cls.add_noise(parser)
        cls.add_own(parser)
        parser.add_argument("--delta", type=float, required=True, help="failure probability")
        add_forms(parser)

    @classmethod
    def add_noise(cls, parser: argparse.ArgumentParser) -> None:
        """Add the option for the noise."""
        parser.add_argument("--sigma", type=float, required=True, help=_SIGMA)

    @classmethod
    @abstractmethod
    def add_own(cls, parser: argparse.ArgumentParser) -> None:
        """Add the options that say how batches are drawn."""

    @classmethod
    @abstractmethod
    def profile(cls, arguments: argparse.Namespace) -> PrivacyProfile:
        """Return the profile of the whole run."""

    @classmethod
    def run(cls, arguments: argparse.Namespace) -> None:
        """Print both bounds of eps."""
        whole = cls.profile(arguments)
        sides = both(lambda bound: whole.epsilon(arguments.delta, bound=bound))
        found = {} if getattr(arguments, "eps", None) is None else {"sigma": arguments.sigma}
        if arguments.json:
            print(as_json({"delta": arguments.delta, **found, "epsilon": sides}))
            return
        cells = [*(repr(value) for value in found.values()), *(round_outward(sides[side], side) for side in ("lower", "upper"))]
        print(as_table([(*found, "eps lower", "eps upper"), cells]))
        if arguments.explain:
            print("neighbours: add or remove one record")


class Sgd(_Run):
    """The command ``sgd``: every batch is drawn by Poisson subsampling."""

    @classmethod
    def add_noise(cls, parser: argparse.ArgumentParser) -> None:
        """Add sigma, or the target eps for which the smallest sigma is found."""
        given = parser.add_mutually_exclusive_group(required=True)
        given.add_argument("--sigma", type=float, help=_SIGMA)
        given.add_argument("--eps", type=float, help="target privacy loss in nats; finds the smallest sigma that meets it")

    @classmethod
    def add_own(cls, parser: argparse.ArgumentParser) -> None:
        """Add rate and steps."""
        parser.add_argument("--rate", type=float, required=True, help="probability that a record is in a batch")
        parser.add_argument("--steps", type=partial(number, ()), required=True, help="number of batches, over all epochs")

    @classmethod
    def profile(cls, arguments: argparse.Namespace) -> PrivacyProfile:
        """Return the composition of all steps. If a target eps is given, sigma is the smallest that meets it."""
        if arguments.sigma is None:
            noise = GaussianMechanism.from_training(
                rate=arguments.rate, steps=arguments.steps, eps=arguments.eps, delta=arguments.delta)
            arguments.sigma = noise.sigma
        return GaussianMechanism(arguments.sigma).subsampled(arguments.rate).self_compose(arguments.steps)


class Allocate(_Run):
    """The command ``allocate``: random allocation, in which each record enters a fixed number of random batches of an epoch."""

    @classmethod
    def add_own(cls, parser: argparse.ArgumentParser) -> None:
        """Add steps, chosen and epochs."""
        parser.add_argument("--steps", type=partial(number, ()), required=True, help="number of batches of an epoch")
        text = "number of batches of an epoch that a record enters; 1 by default"
        parser.add_argument("--chosen", type=partial(number, ()), default=1, help=text)
        parser.add_argument("--epochs", type=partial(number, ()), default=1, help="number of epochs; 1 by default")

    @classmethod
    def profile(cls, arguments: argparse.Namespace) -> PrivacyProfile:
        """Return the profile of all epochs."""
        epoch = RandomAllocation(GaussianMechanism(arguments.sigma), arguments.steps, chosen=arguments.chosen)
        return epoch if arguments.epochs == 1 else epoch.self_compose(arguments.epochs)
