"""The commands ``shufflebounds sgd`` and ``shufflebounds allocate``: eps of a training run, or its noise."""

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
    """A training run with Gaussian noise, asked for eps."""

    @classmethod
    def add_arguments(cls, parser: argparse.ArgumentParser, words: list[str]) -> None:
        """Give the sub-command its arguments."""
        cls.add_noise(parser)
        cls.add_own(parser)
        parser.add_argument("--delta", type=float, required=True, help="failure probability")
        add_forms(parser)

    @classmethod
    def add_noise(cls, parser: argparse.ArgumentParser) -> None:
        """Give the sub-command its noise."""
        parser.add_argument("--sigma", type=float, required=True, help=_SIGMA)

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
        found = {} if getattr(arguments, "eps", None) is None else {"sigma": arguments.sigma}
        if arguments.json:
            print(as_json({"delta": arguments.delta, **found, "epsilon": sides}))
            return
        cells = [*(repr(value) for value in found.values()), *(round_outward(sides[side], side) for side in ("lower", "upper"))]
        print(as_table([(*found, "eps lower", "eps upper"), cells]))
        if arguments.explain:
            print("neighbours: add or remove one record")


class Sgd(_Run):
    """Poisson batches."""

    @classmethod
    def add_noise(cls, parser: argparse.ArgumentParser) -> None:
        """Add sigma, or the eps for which the least sigma is found."""
        given = parser.add_mutually_exclusive_group(required=True)
        given.add_argument("--sigma", type=float, help=_SIGMA)
        given.add_argument("--eps", type=float, help="target privacy loss in nats: finds the least sigma that meets it")

    @classmethod
    def add_own(cls, parser: argparse.ArgumentParser) -> None:
        """Add rate and steps."""
        parser.add_argument("--rate", type=float, required=True, help="chance of a record to be in a batch")
        parser.add_argument("--steps", type=partial(number, ()), required=True, help="number of batches, over all epochs")

    @classmethod
    def profile(cls, arguments: argparse.Namespace) -> PrivacyProfile:
        """Return the composition of all steps, with the least noise where a target is given in its place."""
        if arguments.sigma is None:
            noise = GaussianMechanism.from_training(
                rate=arguments.rate, steps=arguments.steps, eps=arguments.eps, delta=arguments.delta)
            arguments.sigma = noise.sigma
        return GaussianMechanism(arguments.sigma).subsampled(arguments.rate).self_compose(arguments.steps)


class Allocate(_Run):
    """Random allocation."""

    @classmethod
    def add_own(cls, parser: argparse.ArgumentParser) -> None:
        """Add steps, chosen and epochs."""
        parser.add_argument("--steps", type=partial(number, ()), required=True, help="number of batches of an epoch")
        parser.add_argument("--chosen", type=partial(number, ()), default=1, help="how many of them a record enters; 1 by default")
        parser.add_argument("--epochs", type=partial(number, ()), default=1, help="number of epochs; 1 by default")

    @classmethod
    def profile(cls, arguments: argparse.Namespace) -> PrivacyProfile:
        """Return the composition of all epochs, or the one there is."""
        epoch = RandomAllocation(GaussianMechanism(arguments.sigma), arguments.steps, chosen=arguments.chosen)
        return epoch if arguments.epochs == 1 else epoch.self_compose(arguments.epochs)
