"""The command ``shufflebounds``: eps, delta and calibration of shuffled protocols, with both sides of every number."""

from shufflebounds.cli.command import main

__all__ = ["main"]
