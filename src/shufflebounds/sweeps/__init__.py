"""Runs one function over a grid of parameters, in threads or on any executor; returns a structured array; can be interrupted."""

from shufflebounds.sweeps.runner import SweepError, SweepInterrupted, sweep

__all__ = [
    "SweepError",
    "SweepInterrupted",
    "sweep",
]
