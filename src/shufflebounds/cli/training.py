"""The commands ``shufflebounds sgd`` and ``shufflebounds allocate``: eps of a training run, both sides."""

from __future__ import annotations

import argparse
from abc import ABC, abstractmethod

from shufflebounds.cli.parsers import add_forms
from shufflebounds.cli.printing import as_json, as_table, both, outward
from shufflebounds.mechanisms import GaussianMechanism
from shufflebounds.profile import PrivacyProfile
from shufflebounds.sampling import RandomAllocation

__all__ = ["Allocate", "Sgd"]


class _Run(ABC):
    """A training run with Gaussian noise, asked for eps."""

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser, words: list[str]) -> None:
        """Give the sub-command its arguments."""
        parser.add_argument("--sigma", type=float, required=True, help="standard deviation of the noise over the clipping norm")
        cls.add_own(parser)
        parser.add_argument("--delta", type=float, required=True, help="failure probability")
        add_forms(parser)

    @classmethod
    @abstractmethod
    def add_own(cls, parser: argparse.ArgumentParser) -> None:
        """Give the sub-command what says how batches are drawn."""

    @classmethod
    @abstractmethod
    def profile(cls, arguments: argparse.Namespace) -> PrivacyProfile:
        """Return the whole run."""

    @classmethod
    def run(cls, arguments: argparse.Namespace) -> None:
        """Print both sides of eps."""
        whole = cls.profile(arguments)
        sides = both(lambda bound: whole.epsilon(arguments.delta, bound=bound))
        if arguments.json:
            print(as_json({"delta": arguments.delta, "epsilon": sides}))
            return
        print(as_table([("eps lower", "eps upper"), tuple(outward(sides[side], side) for side in ("lower", "upper"))]))
        if arguments.explain:
            print("neighbours: add or remove one record")


class Sgd(_Run):
    """Poisson batches."""

    @classmethod
    def add_own(cls, parser: argparse.ArgumentParser) -> None:
        """Add rate and steps."""
        parser.add_argument("--rate", type=float, required=True, help="chance of a record to be in a batch")
        parser.add_argument("--steps", type=float, required=True, help="number of batches, over all epochs")

    @classmethod
    def profile(cls, arguments: argparse.Namespace) -> PrivacyProfile:
        """Return the composition of all steps."""
        return GaussianMechanism(arguments.sigma).subsampled(arguments.rate).self_compose(arguments.steps)


class Allocate(_Run):
    """Random allocation."""

    @classmethod
    def add_own(cls, parser: argparse.ArgumentParser) -> None:
        """Add steps, chosen and epochs."""
        parser.add_argument("--steps", type=float, required=True, help="number of batches of an epoch")
        parser.add_argument("--chosen", type=float, default=1, help="how many of them a record enters; 1 by default")
        parser.add_argument("--epochs", type=float, default=1, help="number of epochs; 1 by default")

    @classmethod
    def profile(cls, arguments: argparse.Namespace) -> PrivacyProfile:
        """Return the composition of all epochs, or the one there is."""
        epoch = RandomAllocation(GaussianMechanism(arguments.sigma), arguments.steps, chosen=arguments.chosen)
        return epoch if arguments.epochs == 1 else epoch.self_compose(arguments.epochs)
