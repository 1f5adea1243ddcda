"""One function over a grid of parameters: in threads, or on any executor, interruptible, into a structured array."""

from shufflebounds.sweeps.runner import SweepError, SweepInterrupted, sweep

__all__ = [
    "SweepError",
    "SweepInterrupted",
    "sweep",
]
