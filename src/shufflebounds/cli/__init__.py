"""The command ``shufflebounds``: eps, delta and calibration, with both bounds of every number."""

from shufflebounds.cli.command import main

__all__ = ["main"]
