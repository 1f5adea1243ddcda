"""Sweeps: one function over a grid of parameters (`runner`)."""

from shufflebounds.sweeps.runner import SweepError, SweepInterrupted, sweep

__all__ = [
    "SweepError",
    "SweepInterrupted",
    "sweep",
]
